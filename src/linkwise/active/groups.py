"""Groups that answers have found, among the landmarks that were asked about.

First rows are joined by answers (``grouping``). The part that was asked about first is a group; then, in that
order, a part that surely belongs to none of the groups found so far is one. At last a group is divided where
that explains answers and similarities better: one wrong answer "same" may have joined two clusters.

A row may belong to a cluster that no answer has found yet. The more rows like it are known, the less likely
that is: with s the similarity to known rows summed up, the chance is alpha / (alpha + s), as in a Chinese
restaurant whose tables are near or far. How often rows did found a group tells alpha.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logsumexp

from linkwise.active.grouping import join
from linkwise.active.knowledge import UNSURE, Answers
from linkwise.active.landscape import Landscape
from linkwise.active.predictors import ridge

__all__ = ["MOST", "SURE", "Asked", "Groups", "Split", "asked_landmarks", "find_groups", "novelty"]

#: A group is founded, or a row is taken as known, when it is this probable.
SURE = 0.9
#: An answer counts at most this many nats.
MOST = 30.0
#: Prior of log alpha: mean and standard deviation; and the grid on which it is averaged.
_ALPHA, _ALPHA_SPREAD = 0.3, 1.5
_ALPHAS = np.exp(np.linspace(np.log(0.003), np.log(3.0), 30))
#: Similarity to known rows that every row has.
_LEAST_SIMILARITY = 0.02
#: Kernels of the landscape, and the penalty, of the quick predictions that found groups.
_QUICK, _QUICK_PENALTY = (1, 4, 6), 0.3
_MOST_ROUNDS = 30
#: Groups of fewer rows are not divided, and at most so many divisions are made or looked at.
_LEAST_DIVIDED, _MOST_SPLITS = 3, 6
_N_MOVES = 3


class Split(NamedTuple):
    """A division of a group that was considered: its probability, and the landmarks of both sides."""

    chance: float
    group: int
    rows: NDArray[np.int64]
    others: NDArray[np.int64]


@dataclass(eq=False)
class Asked:
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
        return np.asarray(self.says * np.minimum(odds, MOST), dtype=np.float64)


@dataclass(eq=False)
class Groups:
    """Groups of asked landmarks: ``label`` (t,), -1 for open ones; ``open_prob`` (t, g) is for these.

    ``merge_chance`` (g, g) and ``splits`` as in ``Posterior``.
    """

    label: NDArray[np.int64]
    open_prob: NDArray[np.float64]
    merge_chance: NDArray[np.float64]
    alpha: float
    splits: list[Split]


def asked_landmarks(landscape: Landscape, answers: Answers) -> Asked:
    """The landmarks in answers; the centre alone if no answer says anything."""
    number = np.flatnonzero(answers.says != UNSURE)
    if not len(number):
        nothing = np.empty(0, dtype=np.int64)
        return Asked(np.array([landscape.centre]), nothing.reshape(0, 2), nothing, np.empty(0), nothing)
    pairs = landscape.place[answers.pairs[number]]
    # The second row of a question was there before the first.
    places, first = np.unique(pairs[:, ::-1], return_index=True)
    order = np.argsort(first)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return Asked(
        places[order],
        rank[np.searchsorted(places, pairs)],
        answers.says[number].astype(np.int64),
        answers.certainty[number],
        number,
    )


def find_groups(
    landscape: Landscape,
    asked: Asked,
    strength: NDArray[np.float64],
    n_clusters: int | None = None,
    earlier: NDArray[np.int64] | None = None,
) -> Groups:
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
    found = group_of[part]
    label = found
    if earlier is not None:
        label = _better(landscape, asked, label, earlier[asked.places], strength, alpha)
    label, splits = _divide(landscape, asked, label, strength, alpha, most)
    if label is found:
        return Groups(label, prob[part][:, :n_groups], chance + chance.T, alpha, splits)
    # The groups are others than those founded: which of them are one is asked again.
    scores = _row_scores(landscape, asked, label, strength, alpha)[0]
    open_prob = np.exp(scores - logsumexp(scores, axis=1, keepdims=True))[:, :-1]
    return Groups(label, open_prob, _merge_chances(landscape, asked, label, strength, alpha), alpha, splits)


def _better(
    landscape: Landscape,
    asked: Asked,
    label: NDArray[np.int64],
    earlier: NDArray[np.int64],
    strength: NDArray[np.float64],
    alpha: float,
) -> NDArray[np.int64]:
    """The labels (t,), or those that fewer answers gave, with rows moved, if these have more evidence."""
    known = earlier >= 0
    if not known.any():
        return label
    order = np.unique(earlier[known], return_index=True)[1].argsort()
    number = np.full(int(earlier.max()) + 1, -1)
    number[np.unique(earlier[known])[order]] = np.arange(len(order))
    other = np.where(known, number[earlier], -1)
    other, value = _improve(landscape, asked, other, strength, _signed(asked, strength), alpha)
    return other if value > _log_evidence(landscape, asked, label, strength, alpha) else label


def _merge_chances(
    landscape: Landscape,
    asked: Asked,
    label: NDArray[np.int64],
    strength: NDArray[np.float64],
    alpha: float,
) -> NDArray[np.float64]:
    """Chance that two groups are one, (g, g), from the evidence for either."""
    n_groups = int(label.max()) + 1
    chance = np.zeros((n_groups, n_groups))
    evidence = _log_evidence(landscape, asked, label, strength, alpha)
    for a in range(n_groups):
        for b in range(a):
            merged = np.where(label == a, b, label)
            merged = merged - (merged > a)
            chance[a, b] = expit(_log_evidence(landscape, asked, merged, strength, alpha) - evidence)
    return chance + chance.T


def _divide(
    landscape: Landscape,
    asked: Asked,
    label: NDArray[np.int64],
    strength: NDArray[np.float64],
    alpha: float,
    most: int,
) -> tuple[NDArray[np.int64], list[Split]]:
    """Divide groups where that is likelier than not; returns the labels (t,) and the divisions not made."""
    kernels = landscape.kernels[np.ix_(np.array(_QUICK), asked.places, asked.places)]
    signed = _signed(asked, strength)
    evidence = _log_evidence(landscape, asked, label, strength, alpha)
    refused: list[Split] = []
    left = list(range(int(label.max()) + 1))
    n_looked = 0
    while left and n_looked < _MOST_SPLITS:
        left.sort(key=lambda group: int((label == group).sum()))
        group = left.pop()
        rows = np.flatnonzero(label == group)
        if len(rows) < _LEAST_DIVIDED:
            break
        n_looked += 1
        proposals = []
        for kernel in kernels:
            away = _other_side(kernel[np.ix_(rows, rows)] + signed[np.ix_(rows, rows)] / MOST)
            if away.any():
                proposal = label.copy()
                proposal[rows[away]] = label.max() + 1
                proposals.append(_improve(landscape, asked, proposal, strength, signed, alpha))
        if not proposals:
            continue
        proposal, value = max(proposals, key=lambda one: one[1])
        gain = value - evidence
        away = proposal[rows] != label[rows]
        if not away.any() or away.all():
            continue
        if gain > 0.0 and label.max() + 1 < most:
            label, evidence = proposal, evidence + gain
            left += [group, int(label.max())]
        else:
            sides = asked.places[rows[~away]], asked.places[rows[away]]
            refused.append(Split(float(expit(gain)), group, *sides))
    return label, refused


def _improve(
    landscape: Landscape,
    asked: Asked,
    label: NDArray[np.int64],
    strength: NDArray[np.float64],
    signed: NDArray[np.float64],
    alpha: float,
) -> tuple[NDArray[np.int64], float]:
    """Move rows to groups that other rows and answers speak for; the best labels (t,) and their evidence."""
    best, best_value = label, _log_evidence(landscape, asked, label, strength, alpha)
    known = label >= 0
    n_groups = int(label.max()) + 1
    for _ in range(_N_MOVES):
        scores = _row_scores(landscape, asked, label, np.zeros_like(strength), alpha)[0][:, :-1]
        scores += signed[:, known] @ np.eye(n_groups)[label[known]]
        moved = np.where(known, scores.argmax(axis=1), -1)
        if np.array_equal(moved, label) or len(np.unique(moved[known])) < n_groups:
            break
        label = moved
        value = _log_evidence(landscape, asked, label, strength, alpha)
        if value > best_value:
            best, best_value = label, value
    return best, best_value


def _signed(asked: Asked, strength: NDArray[np.float64]) -> NDArray[np.float64]:
    """Strength of the answers about each pair of asked landmarks, (t, t)."""
    signed = np.zeros((len(asked.places), len(asked.places)))
    np.add.at(signed, tuple(asked.pairs.T), strength)
    return signed + signed.T


def _other_side(similarity: NDArray[np.float64]) -> NDArray[np.bool_]:
    """The rows on the other side than the first, if rows are divided by the leading eigenvector."""
    centred = similarity - similarity.mean(axis=0) - similarity.mean(axis=1)[:, None] + similarity.mean()
    vector = np.linalg.eigh(centred)[1][:, -1]
    return np.asarray((vector > 0.0) != (vector[0] > 0.0))


def _log_evidence(
    landscape: Landscape,
    asked: Asked,
    label: NDArray[np.int64],
    strength: NDArray[np.float64],
    alpha: float,
) -> float:
    """Log probability of a grouping and the answers, up to a constant.

    Rows with a group count with what the other rows say about them, founders with the chance that they found
    one, open rows with the sum over all groups; answers inside a group count with their strength.
    """
    scores, founding = _row_scores(landscape, asked, label, strength, alpha)
    known = label >= 0
    total = float(logsumexp(scores[~known], axis=1).sum())
    own = scores[known, label[known]]
    own[founding[known]] = scores[known, -1][founding[known]]
    pair_labels = label[asked.pairs]
    inside = (pair_labels[:, 0] == pair_labels[:, 1]) & (pair_labels[:, 0] >= 0)
    return total + float(own.sum()) + float(strength[inside].sum())


def _row_scores(
    landscape: Landscape,
    asked: Asked,
    label: NDArray[np.int64],
    strength: NDArray[np.float64],
    alpha: float,
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Log score of each group, and last of a new one, for each row (t, g + 1), and which rows founded one.

    Open rows have the answers about them in it, rows with a group what is said without themselves. The last
    column of a founder is the chance that it founds a group when it is asked about.
    """
    places, n_groups = asked.places, int(label.max()) + 1
    known = np.flatnonzero(label >= 0)
    prob = _quick_prob(landscape, places, known, np.eye(n_groups)[label[known]])
    new = novelty(landscape, places, places[known], np.ones(len(known)), alpha)
    founding = np.zeros(len(label), dtype=bool)
    founding[known[np.unique(label[known], return_index=True)[1]]] = True
    before = np.tril(landscape.together[np.ix_(places, places)], -1)[:, known].sum(axis=1)
    new = np.where(founding, alpha / (alpha + before + _LEAST_SIMILARITY), new)
    scores = np.column_stack([np.log(prob) + np.log1p(-new)[:, None], np.log(new)])
    for this, other in (asked.pairs.T, asked.pairs[:, ::-1].T):
        counts = (label[this] < 0) & (label[other] >= 0)
        np.add.at(scores, (this[counts], label[other][counts]), strength[counts])
    return scores, founding


def _quick_prob(
    landscape: Landscape,
    places: NDArray[np.int64],
    known: NDArray[np.int64],
    targets: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Quick predictions of asked landmarks, (t, g); of known ones without themselves."""
    penalty = np.full(len(known), _QUICK_PENALTY)
    prob = np.zeros((len(places), targets.shape[1]))
    for k in _QUICK:
        everywhere, held_out = ridge(landscape.kernels[k][np.ix_(places, places)], known, targets, penalty)
        everywhere[known] = held_out
        prob += everywhere / len(_QUICK)
    return prob


def _part_probabilities(
    landscape: Landscape,
    asked: Asked,
    part: NDArray[np.int64],
    group_of: NDArray[np.int64],
    between: NDArray[np.float64],
    alpha: float,
) -> NDArray[np.float64]:
    """Probability of each group, and last of a new one, for parts that are no group yet: (parts, g + 1)."""
    n_groups = int(group_of.max()) + 1
    known = group_of[part] >= 0
    targets = np.eye(n_groups)[group_of[part][known]]
    prob = _quick_prob(landscape, asked.places, np.flatnonzero(known), targets)
    new = novelty(landscape, asked.places, asked.places[known], np.ones(len(targets)), alpha)
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


def novelty(
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
