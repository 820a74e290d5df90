"""What the answers say about every landmark: a posterior over groups, new groups, and wrong answers.

Groups are the clusters that answers have found. For landmarks that were asked about, the posterior is that of
a Potts field: the unary term of a row is what all other rows say about it (``predictors``), and an answer of
error rate e pulls two rows together or apart with log((1 - e) / e). So one answer against which everything
else speaks is doubted instead of believed, and an answer that nothing speaks against is as good as certain.
Landmarks that were not asked about have the probabilities of the predictors.

A row may belong to a cluster that no answer has found yet. The more rows like it are known, the less likely
that is: with s the similarity to known rows summed up, the chance is alpha / (alpha + s), as in a Chinese
restaurant whose tables are near or far. How often rows did found a group tells alpha.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from linkwise.active.grouping import join
from linkwise.active.knowledge import UNSURE, Answers
from linkwise.active.landscape import Landscape
from linkwise.active.predictors import Guess, guess_groups, ridge
from linkwise.inference import PottsField, marginals

__all__ = ["SURE", "Posterior", "infer"]

#: A group is founded, or a row is taken as known, when it is this probable.
SURE = 0.9
#: A row that answers leave open is learned from when a group is this probable.
_LIKELY = 0.7
#: Beta prior of the share of wrong answers.
_ERRORS, _RIGHT = 0.4, 20.0
#: An answer counts at most this many nats.
_MOST = 30.0
#: Share of every prediction that is spread over all groups.
_DOUBT = 0.02
#: Prior of log alpha: mean and standard deviation; and the grid on which it is averaged.
_ALPHA, _ALPHA_SPREAD = 0.3, 1.5
_ALPHAS = np.exp(np.linspace(np.log(0.003), np.log(3.0), 30))
#: Similarity to known rows that every row has.
_LEAST_SIMILARITY = 0.02
#: Kernels of the landscape, and the penalty, of the quick predictions that found groups.
_QUICK, _QUICK_PENALTY = (1, 4, 6), 0.3
_MOST_ROUNDS = 30
#: Nats that it would take to make one group of two without an answer.
_APART = 10.0


@dataclass(frozen=True, eq=False)
class Posterior:
    """Probabilities given the answers.

    Attributes
    ----------
    asked : (t,) int64
        Landmarks in answers; the centre of the landscape if there are none.
    group : (t,) int64
        Likeliest group of each; -1: none found yet.
    trust : (t,) float64
        How far each is learned from: 0 for open rows, 1 for certain ones.
    prob : (l, g + 1) float64
        Probability of each group for each landmark; last that of a group not found yet.
    held_out : (t, g) float64
        What the predictors say about each asked landmark without itself.
    wrong : (m,) float64
        Probability that each answer is wrong; 0 for "unsure".
    error_rate : float
        Share of wrong answers, learned.
    similarity : (l, l) float64
        Mean of the kernels, weighted by how well they predict.
    merge_chance : (g, g) float64
        Chance that two groups are one after all, as it was when the later one was found.
    """

    asked: NDArray[np.int64]
    group: NDArray[np.int64]
    trust: NDArray[np.float64]
    prob: NDArray[np.float64]
    held_out: NDArray[np.float64]
    wrong: NDArray[np.float64]
    error_rate: float
    similarity: NDArray[np.float64]
    merge_chance: NDArray[np.float64]

    @property
    def n_groups(self) -> int:
        """Groups found so far."""
        return self.prob.shape[1] - 1


@dataclass(eq=False)
class _Asked:
    """Landmarks in answers and the answers about them, in the numbering of these landmarks.

    ``places`` (t,) landmarks in the order in which they were first asked about; ``pairs`` (q, 2) and ``says``
    (q,) the answers that were not "unsure", ``number`` (q,) their places among all.
    """

    places: NDArray[np.int64]
    pairs: NDArray[np.int64]
    says: NDArray[np.int64]
    certainty: NDArray[np.float64]
    number: NDArray[np.int64]

    def strength(self, error_rate: float) -> NDArray[np.float64]:
        """Log-odds of each answer, positive for "same"."""
        certainty = np.where(np.isnan(self.certainty), 1.0 - error_rate, self.certainty)
        with np.errstate(divide="ignore"):
            odds = np.log(certainty) - np.log1p(-certainty)
        return np.asarray(self.says * np.minimum(odds, _MOST), dtype=np.float64)


@dataclass(eq=False)
class _Groups:
    """Groups of asked landmarks: ``label`` (t,), -1 for open ones; ``open_prob`` (t, g) is for these.

    ``merge_chance`` (g, g) as in ``Posterior``.
    """

    label: NDArray[np.int64]
    open_prob: NDArray[np.float64]
    merge_chance: NDArray[np.float64]
    alpha: float


def infer(landscape: Landscape, answers: Answers, n_clusters: int | None = None) -> Posterior:
    """Posterior given the answers, whose rows must be landmarks."""
    asked = _asked(landscape, answers)
    error_rate = _ERRORS / (_ERRORS + _RIGHT)
    for attempt in range(2):
        groups = _found_groups(landscape, asked, asked.strength(error_rate), n_clusters)
        targets, trust = _targets(groups)
        for _ in range(2):
            guess, prob, agreement = _believe(landscape, asked, groups, targets, trust, error_rate)
            learned, learned_trust = _learned(prob)
            unchanged = np.array_equal(learned.argmax(axis=1), targets.argmax(axis=1)) and np.array_equal(
                learned_trust > 0.0, trust > 0.0
            )
            targets, trust = learned, learned_trust
            if unchanged:
                break
        wrong = np.where(asked.says > 0, 1.0 - agreement, agreement)
        free = np.isnan(asked.certainty)
        before, error_rate = error_rate, (_ERRORS + wrong[free].sum()) / (_ERRORS + _RIGHT + free.sum())
        if attempt or abs(np.log(error_rate / before)) < 0.4:
            break
    every = _everywhere(landscape, asked, groups, guess, trust, n_clusters)
    every[asked.places] = prob
    all_wrong = np.zeros(len(answers.says))
    all_wrong[asked.number] = wrong
    label = np.where(trust > 0.0, prob[:, :-1].argmax(axis=1), -1)
    return Posterior(
        asked.places,
        label,
        trust,
        every,
        guess.held_out,
        all_wrong,
        float(error_rate),
        np.tensordot(guess.kernel_weights, landscape.kernels, 1),
        groups.merge_chance,
    )


def _asked(landscape: Landscape, answers: Answers) -> _Asked:
    """The landmarks in answers; the centre alone if no answer says anything."""
    number = np.flatnonzero(answers.says != UNSURE)
    if not len(number):
        nothing = np.empty(0, dtype=np.int64)
        return _Asked(np.array([landscape.centre]), nothing.reshape(0, 2), nothing, np.empty(0), nothing)
    pairs = landscape.place[answers.pairs[number]]
    # The second row of a question was there before the first.
    places, first = np.unique(pairs[:, ::-1], return_index=True)
    order = np.argsort(first)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return _Asked(
        places[order],
        rank[np.searchsorted(places, pairs)],
        answers.says[number].astype(np.int64),
        answers.certainty[number],
        number,
    )


def _found_groups(
    landscape: Landscape, asked: _Asked, strength: NDArray[np.float64], n_clusters: int | None
) -> _Groups:
    """Groups among the asked landmarks: joined rows that nothing known resembles, or answers set apart.

    The part that was asked about first is a group. Then, in the same order, a part that surely belongs to
    none of the groups found so far is one, until no more are found.
    """
    part = join(len(asked.places), asked.pairs, strength)
    sizes = np.bincount(part)
    group_of = np.full(len(sizes), -1, dtype=np.int64)
    group_of[0] = 0  # parts are numbered by their first row
    most = len(sizes) if n_clusters is None else n_clusters
    between = np.zeros((len(sizes), len(sizes)))
    np.add.at(between, tuple(part[asked.pairs].T), strength)
    between += between.T
    chance = np.zeros((len(sizes), len(sizes)))
    for _ in range(_MOST_ROUNDS):
        alpha = _restaurant(landscape, asked.places, group_of[part])
        n_groups = int(group_of.max()) + 1
        prob = _part_probabilities(landscape, asked, part, group_of, between, alpha)
        is_open = group_of < 0
        apart = np.array([between[:, group_of == group].sum(axis=1) < 0.0 for group in range(n_groups)])
        new = (prob[:, -1] > SURE) | (apart.all(axis=0) & (prob[:, -1] > 0.5))
        founders: list[int] = []
        for one in np.flatnonzero(is_open & new).tolist():
            if n_groups + len(founders) < most and all(between[one, other] < 0.0 for other in founders):
                founders.append(one)
        if not founders:
            break
        for number, one in enumerate(founders, start=n_groups):
            chance[number, :n_groups] = prob[one, :-1]
            group_of[one] = number
    n_groups = int(group_of.max()) + 1
    chance = chance[:n_groups, :n_groups]
    return _Groups(group_of[part], prob[part][:, :n_groups], chance + chance.T, alpha)


def _part_probabilities(
    landscape: Landscape,
    asked: _Asked,
    part: NDArray[np.int64],
    group_of: NDArray[np.int64],
    between: NDArray[np.float64],
    alpha: float,
) -> NDArray[np.float64]:
    """Probability of each group, and last of a new one, for parts that are no group yet: (parts, g + 1)."""
    n_groups = int(group_of.max()) + 1
    known = group_of[part] >= 0
    targets = np.eye(n_groups)[group_of[part][known]]
    penalty = np.full(int(known.sum()), _QUICK_PENALTY)
    quick = [
        ridge(
            landscape.kernels[k][np.ix_(asked.places, asked.places)], np.flatnonzero(known), targets, penalty
        )
        for k in _QUICK
    ]
    prob = np.mean([one[0] for one in quick], axis=0)
    new = _novelty(landscape, asked.places, asked.places[known], np.ones(len(targets)), alpha)
    log_prob = np.column_stack([np.log(prob) + np.log1p(-new)[:, None], np.log(new)])
    by_part = np.zeros((len(group_of), n_groups + 1))
    np.add.at(by_part, part, log_prob)
    by_part /= np.bincount(part)[:, None]
    for group in range(n_groups):
        by_part[:, group] += between[:, group_of == group].sum(axis=1)
    return np.asarray(np.exp(by_part - logsumexp(by_part, axis=1, keepdims=True)), dtype=np.float64)


def _restaurant(landscape: Landscape, places: NDArray[np.int64], group: NDArray[np.int64]) -> float:
    """Posterior mean of alpha: which rows with a group founded it, in the order in which they were asked."""
    seated = np.flatnonzero(group >= 0)
    alike = np.tril(landscape.together[np.ix_(places[seated], places[seated])], -1).sum(axis=1)
    founds = np.zeros(len(seated), dtype=bool)
    founds[np.unique(group[seated], return_index=True)[1]] = True
    alike, founds = alike[1:] + _LEAST_SIMILARITY, founds[1:]
    log_density = -0.5 * ((np.log(_ALPHAS) - np.log(_ALPHA)) / _ALPHA_SPREAD) ** 2
    share = _ALPHAS[:, None] / (_ALPHAS[:, None] + alike)
    log_density = log_density + np.log(np.where(founds, share, 1.0 - share)).sum(axis=1)
    density = np.exp(log_density - log_density.max())
    return float(density @ _ALPHAS / density.sum())


def _novelty(
    landscape: Landscape,
    places: NDArray[np.int64],
    known: NDArray[np.int64],
    trust: NDArray[np.float64],
    alpha: float,
) -> NDArray[np.float64]:
    """Chance that a landmark founds a group: alpha / (alpha + s); a known one does not count for itself."""
    alike = landscape.together[np.ix_(places, known)] * trust
    alike[places[:, None] == known] = 0.0
    return np.asarray(alpha / (alpha + alike.sum(axis=1) + _LEAST_SIMILARITY), dtype=np.float64)


def _targets(groups: _Groups) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """What to learn at first: groups as they were found, and open rows that are likely in one."""
    n_groups = groups.open_prob.shape[1]
    targets = np.where(groups.label[:, None] >= 0, np.eye(n_groups)[groups.label], groups.open_prob)
    best = targets.max(axis=1)
    trust = np.where(groups.label >= 0, 1.0, np.where(best > _LIKELY, best, 0.0))
    return targets / np.maximum(targets.sum(axis=1, keepdims=True), 1e-12), trust


def _learned(prob: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """What to learn next: the posterior of asked landmarks, where a group is likely."""
    best = prob[:, :-1].max(axis=1)
    total = np.maximum(prob[:, :-1].sum(axis=1, keepdims=True), 1e-12)
    return prob[:, :-1] / total, np.where(best > _LIKELY, best, 0.0)


def _believe(
    landscape: Landscape,
    asked: _Asked,
    groups: _Groups,
    targets: NDArray[np.float64],
    trust: NDArray[np.float64],
    error_rate: float,
) -> tuple[Guess, NDArray[np.float64], NDArray[np.float64]]:
    """Predictors, the posterior of asked landmarks (t, g + 1), and the agreement of each answer's rows."""
    known = np.flatnonzero(trust > 0.0)
    places, n_groups = asked.places, targets.shape[1]
    guess = guess_groups(landscape, places[known], targets[known], trust[known])
    held_out = guess.prob[places]
    held_out[known] = guess.held_out
    held_out = (1.0 - _DOUBT) * held_out + _DOUBT / n_groups
    new = _novelty(landscape, places, places[known], trust[known], groups.alpha)
    unary = np.column_stack([np.log(held_out) + np.log1p(-new)[:, None], np.log(new)])
    # A row that is alone in its group founded it: no other row says so, but it was sure.
    hard = np.where(trust > 0.0, targets.argmax(axis=1), -1)
    alone = np.flatnonzero((hard >= 0) & (np.bincount(hard[hard >= 0], minlength=n_groups)[hard] == 1))
    unary[alone, :-1] = np.log((1.0 - SURE) * held_out[alone])
    unary[alone, hard[alone]] = np.log(SURE)
    # Rows of a group that was found are not in one that was not.
    unary[groups.label >= 0, -1] = -_MOST
    if not len(asked.pairs):
        return guess._replace(held_out=held_out), np.eye(n_groups + 1)[hard], np.empty(0)
    # Groups are one only if answers say so, not because their rows are alike.
    first = np.unique(groups.label, return_index=True)[1][-n_groups:]
    pairs = np.concatenate([asked.pairs, np.column_stack([first[i] for i in np.triu_indices(n_groups, 1)])])
    strength = np.concatenate([asked.strength(error_rate), np.full(len(pairs) - len(asked.pairs), -_APART)])
    field = PottsField(unary, pairs, strength)
    result = marginals(field, method="belief_propagation")
    if not result.converged:
        result = marginals(field, method="mean_field")
    return guess._replace(held_out=held_out), result.prob, result.agreement[: len(asked.pairs)]


def _everywhere(
    landscape: Landscape,
    asked: _Asked,
    groups: _Groups,
    guess: Guess,
    trust: NDArray[np.float64],
    n_clusters: int | None,
) -> NDArray[np.float64]:
    """Probabilities of groups, and of a new one, for all landmarks."""
    known = trust > 0.0
    if guess.prob.shape[1] == n_clusters:
        return np.column_stack([guess.prob, np.zeros(len(guess.prob))])
    everyone = np.arange(len(landscape.rows))
    new = _novelty(landscape, everyone, asked.places[known], trust[known], groups.alpha)
    return np.column_stack([guess.prob * (1.0 - new)[:, None], new])
