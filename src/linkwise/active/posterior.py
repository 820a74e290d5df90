"""What the answers say about every landmark: a posterior over groups, new groups, and wrong answers.

Groups are the clusters that answers have found. For landmarks that were asked about, the posterior is that of
a Potts field: the unary term of a row is what all other rows say about it (``predictors``), and an answer of
error rate e pulls two rows together or apart with log((1 - e) / e). So an answer that contradicts everything
else counts as probably wrong, and an answer that contradicts nothing is as good as certain.
Landmarks that were not asked about have the probabilities of the predictors.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from linkwise._arrays import Floats, Ints
from linkwise.active.evidence import (
    MOST,
    Asked,
    Split,
    Told,
    asked_landmarks,
    asked_novelty,
    log_total,
    novelty,
    told_landmarks,
)
from linkwise.active.groups import SURE, Groups, find_groups
from linkwise.active.knowledge import UNSURE, Answers, first_answers
from linkwise.active.landscape import Landscape
from linkwise.active.long import N_EXACT, N_ROWS, choose_core, contract, hand_on, steps
from linkwise.active.predictors import Guess, guess_groups, learn_more
from linkwise.graph import group_labels
from linkwise.inference import PottsField, marginals

#: A row that answers leave open is learned from when a group is this probable.
_LIKELY = 0.7
#: Beta prior of the share of wrong answers. A person who seems to err less than he does is not asked again
#: about rows that are hard to tell, and there his errors stay. With 1 in place of .8, ten right answers gave
#: worse labels on rings (half A of the leaderboard's sets).
_ERRORS, _RIGHT = 0.8, 20.0
_PRIOR_RATE = _ERRORS / (_ERRORS + _RIGHT)
#: Answers can contradict each other if at least this share of them closes a circle. Of 20 to 100 questions of
#: the default with 10 % wrong answers .29 to .62 do (three sets of half A), of 100 random pairs of 400 rows
#: none. Half A, draw 0, random pairs after 50, 100 and 200 right answers: .484, .508 and .687 from the
#: remembered share alone, .487, .642 and .753 from the prior one alone, .501, .661 and .789 from both.
_MANY_CIRCLES = 0.15
#: Share of every prediction that is spread over all groups.
_DOUBT = 0.02
#: Nats that it would take to make one group of two without an answer.
_APART = 10.0
#: Clusters that no answer has found: two at least if their number is not known, and not more than these.
_FEWEST_NEW, _MOST_NEW = 2, 8


@dataclass(frozen=True, eq=False)
class Posterior:
    """Probabilities given the answers: of t landmarks in answers, all l landmarks, g groups and m answers."""

    asked: Ints  # (t,) landmarks in answers; the centre of the landscape if there are none
    group: Ints  # (t,) likeliest group of each; -1: none found yet
    trust: Floats  # (t,) how far each is learned from: 0 for open rows, 1 for certain ones
    prob: Floats  # (l, g + 1) probability of each group for each landmark; last that of a group not found yet
    held_out: Floats  # (t, g) what the predictors say about each asked landmark without itself
    wrong: Floats  # (m,) probability that each answer is wrong; 0 for "unsure"
    error_rate: float  # share of wrong answers, learned
    kernel_weights: Floats  # (7,) how well each kernel of the landscape predicts; their sum is 1
    # (g, g) chance that two groups are one after all, as it was when the later one was found
    merge_chance: Floats
    splits: list[Split]  # divisions of groups that were considered and found less likely than not
    converged: bool = True  # whether the last inference in the Potts field converged
    start_kept: float = 0.0  # share of the answers with which the clusters without answers agree

    @property
    def n_groups(self) -> int:
        """Groups found so far."""
        return self.prob.shape[1] - 1


class Remembered(NamedTuple):
    """What ``n_answers`` answers said.

    Rows in answers (t,), the group of each, -1 for none, how probable it was, and the share of wrong answers.
    """

    rows: Ints
    group: Ints
    sure: Floats
    error_rate: float
    n_answers: int


class _Settled(NamedTuple):
    """What is known about the landmarks in answers: see ``Posterior``; ``prob`` (t, g + 1)."""

    asked: Told
    groups: Groups
    guess: Guess
    prob: Floats
    trust: Floats
    wrong: Floats
    error_rate: float
    converged: bool

    @property
    def group(self) -> Ints:
        """Likeliest group of each, (t,); -1: none found yet."""
        group = np.where(self.trust > 0.0, self.prob[:, :-1].argmax(axis=1), -1)
        return np.asarray(group, dtype=np.int64)


def infer(
    landscape: Landscape, answers: Answers, n_clusters: int | None = None, n_given: int = 0
) -> Posterior:
    """Posterior given the answers, whose rows must be landmarks.

    The search for groups also looks at two others, and takes those with most evidence. One are the clusters
    that the rows had without answers: few answers about pairs at random find no groups of their own. The
    other are the groups that the answers up to the last full ten gave, which the landscape remembers: an
    answer may join two groups wrongly, but what many answers have built stands. The share of wrong answers
    that they gave is remembered, too (``_settle``). The result depends on the answers and their order alone.
    The first ``n_given`` were given all at once.

    After 200 more answers groups are remembered at every look at all rows instead, and if more than 200
    landmarks are in answers, only a core of them is searched for groups (``long``).
    """
    before: Remembered | None = None
    key = repr(n_clusters).encode()
    done = 0
    for n_before in steps(n_given, len(answers.says)):
        part = [column[done:n_before].tobytes() for column in answers[:3]]
        key = hashlib.sha256(b"".join([key, *part])).digest()
        done = n_before
        last = n_before == len(answers.says)
        if last or key not in landscape.earlier:
            settled = _settled_after(landscape, first_answers(answers, n_before), n_clusters, n_given, before)
            landscape.earlier[key] = _remembered(landscape, settled, n_before)
            if last:
                return _everywhere(landscape, answers, n_clusters, settled)
        before = landscape.earlier[key]
    settled = _settled_after(landscape, answers, n_clusters, n_given, before)
    return _everywhere(landscape, answers, n_clusters, settled)


def _settled_after(
    landscape: Landscape, answers: Answers, n_clusters: int | None, n_given: int, before: Remembered | None
) -> _Settled:
    """What these answers say about the landmarks in them, given what fewer of them said."""
    others = [_first_groups(landscape, answers)]
    if before is None:
        return _settle(landscape, asked_landmarks(landscape, answers), n_clusters, others, _PRIOR_RATE)
    remembered = np.full(len(landscape.rows), -1, dtype=np.int64)
    remembered[landscape.place[before.rows]] = before.group
    others.append(remembered)
    told = told_landmarks(landscape, answers)
    if len(answers.says) - n_given <= N_EXACT or len(told.places) <= N_ROWS:
        asked = asked_landmarks(landscape, told)
        return _settle(landscape, asked, n_clusters, others, before.error_rate)
    return _settle_core(landscape, told, n_clusters, others, before)


def _remembered(landscape: Landscape, settled: _Settled, n_answers: int) -> Remembered:
    """What is kept of it."""
    rows = landscape.rows[settled.asked.places]
    sure = settled.prob[:, :-1].max(axis=1)
    return Remembered(rows, settled.group, sure, settled.error_rate, n_answers)


def _first_groups(landscape: Landscape, answers: Answers) -> Ints:
    """Clusters (l,) without answers of the landmarks in answers; -1 for the others."""
    rows = np.unique(answers.pairs[answers.says != UNSURE])
    groups = np.full(len(landscape.rows), -1, dtype=np.int64)
    places = landscape.place[rows]
    groups[places] = landscape.start[places]
    return groups


def _settle(
    landscape: Landscape, asked: Asked, n_clusters: int | None, others: list[Ints], remembered: float
) -> _Settled:
    """Posterior of the landmarks in answers; ``others`` (l,) are groups to compare with those of the answers.

    Groups and the share of wrong answers are found in turn, and where that ends depends on its start. The
    start is the share ``remembered`` if answers can contradict each other. Otherwise only the predictors can
    contradict them: who takes many answers for wrong finds groups that contradict many, and nothing puts that
    right. So the prior share is a second start then, and the end with fewer wrong answers counts.
    """
    remembered = max(remembered, _PRIOR_RATE)
    found = _settle_from(landscape, asked, n_clusters, others, remembered)
    if remembered == _PRIOR_RATE or _circles(asked) >= _MANY_CIRCLES * len(asked.pairs):
        return found
    again = _settle_from(landscape, asked, n_clusters, others, _PRIOR_RATE)
    return again if again.error_rate < found.error_rate else found


def _circles(asked: Told) -> int:
    """Number of answers that close a circle of answers, so that the others can contradict them."""
    n_parts = group_labels(len(asked.places), asked.pairs)[1]
    return len(asked.pairs) - len(asked.places) + n_parts


def _settle_from(
    landscape: Landscape, asked: Asked, n_clusters: int | None, others: list[Ints], error_rate: float
) -> _Settled:
    """Posterior of the landmarks in answers if the share of wrong answers is ``error_rate`` at first."""
    n_likely = n_clusters or int(landscape.start.max()) + 1
    for attempt in range(2):
        groups = find_groups(asked, asked.strength(error_rate), n_clusters, others, n_likely)
        targets, trust = _targets(groups)
        for _ in range(2):
            guess, prob, agreement, converged = _believe(
                landscape, asked, groups, targets, trust, error_rate, n_clusters, n_likely
            )
            learned, learned_trust = _learned(prob)
            unchanged = np.array_equal(learned.argmax(axis=1), targets.argmax(axis=1)) and np.array_equal(
                learned_trust > 0.0, trust > 0.0
            )
            targets, trust = learned, learned_trust
            if unchanged:
                break
        wrong = np.where(asked.says > 0, 1.0 - agreement, agreement)
        free = np.isnan(asked.certainty)
        n_free, n_wrong = free.sum() + asked.beyond[0], wrong[free].sum() + asked.beyond[1]
        before, error_rate = error_rate, (_ERRORS + n_wrong) / (_ERRORS + _RIGHT + n_free)
        if attempt or abs(np.log(error_rate / before)) < 0.4:
            break
    return _Settled(asked, groups, guess, prob, trust, wrong, float(error_rate), converged)


def _settle_core(
    landscape: Landscape, told: Told, n_clusters: int | None, others: list[Ints], before: Remembered
) -> _Settled:
    """``_settle`` for the core of a long session; rows outside follow it (``hand_on``)."""
    places = told.places
    old = others[-1][places]
    sure = np.zeros(len(landscape.rows))
    sure[landscape.place[before.rows]] = before.sure
    recent = np.zeros(len(places), dtype=bool)
    recent[told.pairs[told.number >= before.n_answers]] = True
    inside = choose_core(old, sure[places], recent, landscape.seed)
    answers = contract(told, inside, old)
    kept, outside = answers.kept, np.flatnonzero(~inside)
    dropped = answers.dropped[np.isnan(told.certainty[answers.dropped])]
    beyond = float(len(dropped)), float((told.says[dropped] < 0).sum())
    core = Told(places[inside], answers.pairs, told.says[kept], told.certainty[kept], told.number[kept])
    found = _settle(
        landscape, asked_landmarks(landscape, core, beyond), n_clusters, others, before.error_rate
    )
    n_groups = found.prob.shape[1] - 1
    predicted = found.guess.prob(landscape, places[outside])
    predicted = (1.0 - _DOUBT) * predicted + _DOUBT / n_groups
    group = hand_on(old, inside, found.group, predicted)
    known = found.trust > 0.0
    new = novelty(landscape, core.places[known], found.trust[known], found.groups.alpha)[places[outside]]
    scores = np.column_stack([np.log(predicted) + np.log1p(-new)[:, None], np.log(new)])
    # Rows of a group that was found are not in one that was not.
    if n_groups == n_clusters:
        scores[:, -1] = -MOST
    scores[group[outside] >= 0, -1] = -MOST
    scores[:, :-1] += _strength_by_group(told, found.error_rate, group, n_groups)[outside]
    prob = np.empty((len(places), n_groups + 1))
    prob[inside] = found.prob
    prob[outside] = np.exp(scores - log_total(scores)[:, None])
    held_out = np.empty((len(places), n_groups))
    held_out[inside], held_out[outside] = found.guess.held_out, predicted
    one, other = prob[told.pairs[:, 0]], prob[told.pairs[:, 1]]
    agreement = np.einsum("qg,qg->q", one[:, :-1], other[:, :-1])
    wrong = np.where(told.says > 0, 1.0 - agreement, agreement)
    wrong[kept] = found.wrong
    targets, trust = _learned(prob)
    known = trust > 0.0
    guess = learn_more(found.guess, landscape, places[known], targets[known], trust[known])
    guess = guess._replace(held_out=held_out)
    return found._replace(asked=told, guess=guess, prob=prob, trust=trust, wrong=wrong)


def _strength_by_group(told: Told, error_rate: float, group: Ints, n_groups: int) -> Floats:
    """Log-odds of the answers about each row for each group, (t, g)."""
    total = np.zeros((len(group), n_groups))
    strength = told.strength(error_rate)
    for one, other in (told.pairs.T, told.pairs.T[::-1]):
        named = group[other] >= 0
        np.add.at(total, (one[named], group[other[named]]), strength[named])
    return total


def _start_kept(landscape: Landscape, asked: Told) -> float:
    """Share of the answers with which the clusters without answers agree; 1 if there are none."""
    start = landscape.start[asked.places[asked.pairs]]
    agree = (start[:, 0] == start[:, 1]) == (asked.says > 0)
    return float(agree.mean()) if len(agree) else 1.0


def _targets(groups: Groups) -> tuple[Floats, Floats]:
    """What to learn at first: groups as they were found, and open rows that are likely in one."""
    n_groups = groups.open_prob.shape[1]
    targets = np.where(groups.label[:, None] >= 0, np.eye(n_groups)[groups.label], groups.open_prob)
    best = targets.max(axis=1)
    trust = np.where(groups.label >= 0, 1.0, np.where(best > _LIKELY, best, 0.0))
    return targets / np.maximum(targets.sum(axis=1, keepdims=True), 1e-12), trust


def _learned(prob: Floats) -> tuple[Floats, Floats]:
    """What to learn next: the posterior of asked landmarks, where a group is likely."""
    best = prob[:, :-1].max(axis=1)
    total = np.maximum(prob[:, :-1].sum(axis=1, keepdims=True), 1e-12)
    return prob[:, :-1] / total, np.where(best > _LIKELY, best, 0.0)


def _believe(
    landscape: Landscape,
    asked: Asked,
    groups: Groups,
    targets: Floats,
    trust: Floats,
    error_rate: float,
    n_clusters: int | None,
    n_likely: int,
) -> tuple[Guess, Floats, Floats, bool]:
    """Predictors, posterior of asked landmarks (t, g + 1), agreement of answers' rows, and convergence.

    Two rows whose groups are not found yet may be in two of them: there is a state for each.
    """
    known = np.flatnonzero(trust > 0.0)
    places, n_groups = asked.places, targets.shape[1]
    kernels = asked.kernels if len(known) == len(places) else asked.kernels[:, known[:, None], known]
    guess = guess_groups(landscape, places[known], targets[known], trust[known], kernels)
    held_out = np.empty((len(places), n_groups))
    held_out[known] = guess.held_out
    open_rows = np.flatnonzero(trust <= 0.0)
    held_out[open_rows] = guess.prob(landscape, places[open_rows])
    held_out = (1.0 - _DOUBT) * held_out + _DOUBT / n_groups
    new = asked_novelty(asked, trust, groups.alpha)
    fewest = n_groups + _FEWEST_NEW if n_clusters is None else n_clusters
    n_new = int(np.clip(max(n_likely, fewest) - n_groups, 1, _MOST_NEW))
    unary = np.column_stack([np.log(held_out) + np.log1p(-new)[:, None], *[np.log(new / n_new)] * n_new])
    # A group is that of the row that founded it: no other row says so, but it was sure. Without this it may
    # be open which group is which, and then nothing is learned from any row. So is a row alone in a group.
    first = np.unique(groups.label, return_index=True)[1][-n_groups:]
    hard = np.where(trust > 0.0, targets.argmax(axis=1), -1)
    alone = np.flatnonzero((hard >= 0) & (np.bincount(hard[hard >= 0], minlength=n_groups)[hard] == 1))
    for rows, own in ((alone, hard[alone]), (first, np.arange(n_groups))):
        unary[rows, :n_groups] = np.log((1.0 - SURE) * held_out[rows])
        unary[rows, own] = np.log(SURE)
    # Rows of a group that was found are not in one that was not.
    unary[groups.label >= 0, n_groups:] = -MOST
    if n_groups == n_clusters:  # there is none that was not found
        unary[:, n_groups:] = -MOST
    if not len(asked.pairs):
        return guess._replace(held_out=held_out), np.eye(n_groups + 1)[hard], np.empty(0), True
    # Groups are one only if answers say so, not because their rows are alike.
    pairs = np.concatenate([asked.pairs, np.column_stack([first[i] for i in np.triu_indices(n_groups, 1)])])
    strength = np.concatenate([asked.strength(error_rate), np.full(len(pairs) - len(asked.pairs), -_APART)])
    if (np.abs(strength) >= MOST).any():
        # Facts can contradict the predictors so much that being sure is not enough.
        unary[first] = np.where(np.eye(n_groups, n_groups + n_new, dtype=bool), 0.0, -MOST)
    field = PottsField(unary, pairs, strength)
    result = marginals(field, method="belief_propagation")
    if not result.converged:
        result = marginals(field, method="mean_field")
    prob = np.column_stack([result.prob[:, :n_groups], result.prob[:, n_groups:].sum(axis=1)])
    agreement = result.agreement[: len(asked.pairs)]
    return guess._replace(held_out=held_out), prob, agreement, bool(result.converged)


def _everywhere(
    landscape: Landscape, answers: Answers, n_clusters: int | None, settled: _Settled
) -> Posterior:
    """The posterior of all landmarks: those in no answer have the probabilities of the predictors."""
    asked, groups, guess, trust = settled.asked, settled.groups, settled.guess, settled.trust
    known = trust > 0.0
    everyone = np.arange(len(landscape.rows))
    if isinstance(asked, Asked):
        prob = guess.prob(landscape, everyone)
    else:  # a long session, in which most landmarks may be asked about: only the others are guessed
        others = np.setdiff1d(everyone, asked.places)
        prob = np.zeros((len(everyone), settled.prob.shape[1] - 1))
        prob[others] = guess.prob(landscape, others)
    new = np.zeros(len(everyone))
    if prob.shape[1] != n_clusters:
        new = novelty(landscape, asked.places[known], trust[known], groups.alpha)
    every = np.column_stack([prob * (1.0 - new)[:, None], new])
    every[asked.places] = settled.prob
    wrong = np.zeros(len(answers.says))
    wrong[asked.number] = settled.wrong
    return Posterior(
        asked.places,
        settled.group,
        trust,
        every,
        guess.held_out,
        wrong,
        settled.error_rate,
        guess.kernel_weights,
        groups.merge_chance,
        groups.splits,
        settled.converged,
        _start_kept(landscape, asked),
    )
