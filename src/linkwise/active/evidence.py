"""How likely a grouping of the landmarks that were asked about is, and groups that should be divided.

The evidence of a grouping is the log probability of

- each row with a group, given all other rows (quick ridge regression with three kernels), or of founding one;
- each open row, summed over all groups and a new one, with the answers about it;
- the answers inside groups.

The regression depends on which rows have a group, not on which group that is, so that many groupings of the
same rows are compared at the cost of a product of matrices each.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from linkwise._arrays import Bools, Floats, Ints
from linkwise._kernels import kernel
from linkwise.active.knowledge import UNSURE, Answers
from linkwise.active.landscape import Landscape
from linkwise.active.predictors import SMALLEST, inverse_of

#: An answer counts at most this many nats.
MOST = 30.0
#: Similarity to known rows that every row has.
LEAST_SIMILARITY = 0.02
#: Kernels of the landscape, and the penalty, of the quick regression.
_QUICK, _PENALTY = (1, 4, 6), 0.3
#: Groups of fewer rows are not divided, and at most so many divisions are looked at.
_LEAST_DIVIDED, _MOST_SPLITS = 3, 6
#: Nats by which two groups must be likelier one than two to be united: odds of 9 to 1.
_MUCH = 2.2
#: Times that all rows of a proposed division are moved to where they fit best.
_N_MOVES = 3


class Split(NamedTuple):
    """A division of a group that was considered: its probability, and the landmarks of both sides."""

    chance: float
    group: int
    rows: Ints
    others: Ints


@dataclass(eq=False)
class Told:
    """Landmarks in answers and the answers about them, in the numbering of these landmarks.

    ``places`` (t,) landmarks in the order in which they were first asked about; ``pairs`` (q, 2) and ``says``
    (q,) the answers that were not "unsure", ``number`` (q,) their places among all.
    """

    places: Ints
    pairs: Ints
    says: Ints
    certainty: Floats
    number: Ints

    def strength(self, error_rate: float) -> Floats:
        """Log-odds of each answer, positive for "same"."""
        certainty = np.where(np.isnan(self.certainty), 1.0 - error_rate, self.certainty)
        with np.errstate(divide="ignore"):
            odds = np.log(certainty) - np.log1p(-certainty)
        return np.asarray(self.says * np.minimum(odds, MOST), dtype=np.float64)


@dataclass(eq=False)
class Asked(Told):
    """The same with what the landscape says about them.

    ``kernels`` (7, t, t) and ``nearness`` (t, t), with zeros on the diagonal, are those of the landscape
    between these landmarks. ``beyond`` are the number of answers without a certainty that are not among
    these, and how many of them are wrong. ``operators`` keeps what ``operators_of`` computed.
    """

    kernels: Floats
    nearness: Floats
    beyond: tuple[float, float] = (0.0, 0.0)
    operators: dict[bytes, Floats] = field(default_factory=dict)

    @cached_property
    def nearness_before(self) -> Floats:
        """Nearness of each to those that were asked about before it, (t, t), else 0."""
        return np.tril(self.nearness, -1)


class Evidence:
    """Evidence of groupings in which the same asked landmarks, ``known`` (t,) bool, have a group."""

    def __init__(self, asked: Asked, known: Bools, strength: Floats, alpha: float) -> None:
        n_asked = len(asked.places)
        self.asked, self.known, self.strength = asked, known, strength
        self.operators = operators_of(asked, known)
        self.new = asked_novelty(asked, known.astype(np.float64), alpha)
        self.new_when_asked = _chance_of_new(asked.nearness_before @ known.astype(np.float64), alpha)
        # Strength of the answers about each pair of rows, (t, t).
        signed = np.zeros((n_asked, n_asked))
        np.add.at(signed, tuple(asked.pairs.T), strength)
        self.signed = signed + signed.T
        self.signed_known = np.ascontiguousarray(self.signed[:, known])

    def scores(self, label: Ints) -> Floats:
        """Log score of each group, and last of a new one, for each row with its answers, (t, g + 1)."""
        return self._scores(*self._told(label))

    def value(self, label: Ints) -> float:
        """Log probability of the grouping (t,) and the answers, up to a constant."""
        return self._value(label, *self._told(label))

    def merged_values(self, label: Ints) -> Floats:
        """``value`` if group b < a were one with group a, at [a, b] of (g, g); 0 elsewhere.

        Sums over a union are sums of sums: all unions cost little more than one grouping.
        """
        group, n_groups = label[self.known], int(label.max()) + 1
        sums = group_sums(self.operators, group, n_groups)
        answers = _sums_by_group(self.signed_known, group, n_groups)
        values = np.zeros((n_groups, n_groups))
        for a in range(n_groups):
            for b in range(a):
                merged = np.where(label == a, b, label)
                prob = mean_shares(_united_columns(sums, a, b))
                values[a, b] = self._value(merged - (merged > a), prob, _united_columns(answers, a, b))
        return values

    def improved(self, label: Ints) -> tuple[Ints, float]:
        """Move rows to where other rows and answers put them; the best labels (t,) met, and their value."""
        told = self._told(label)
        best, best_value = label, self._value(label, *told)
        n_groups = int(label.max()) + 1
        for _ in range(_N_MOVES):
            moved = np.where(self.known, self._scores(*told)[:, :-1].argmax(axis=1), -1)
            if np.array_equal(moved, label) or not np.bincount(moved[self.known], minlength=n_groups).all():
                break
            label = moved
            told = self._told(label)
            value = self._value(label, *told)
            if value > best_value:
                best, best_value = label, value
        return best, best_value

    def _told(self, label: Ints) -> tuple[Floats, Floats]:
        """What other rows and what answers say of each group for each row, both (t, g)."""
        group, n_groups = label[self.known], int(label.max()) + 1
        prob = quick_prob(self.operators, group, n_groups)
        return prob, _sums_by_group(self.signed_known, group, n_groups)

    def _value(self, label: Ints, prob: Floats, answers: Floats) -> float:
        """``value`` from what ``_told`` gave."""
        return float(_log_value(prob, answers, label, self.new, self.new_when_asked))

    def _scores(self, prob: Floats, answers: Floats) -> Floats:
        """``scores`` from what ``_told`` gave."""
        scores = np.column_stack([np.log(prob) + np.log1p(-self.new)[:, None], np.log(self.new)])
        scores[:, :-1] += answers
        return scores


def operators_of(asked: Asked, known: Bools) -> Floats:
    """``quick_operators`` of the asked landmarks, computed once for each set of known ones."""
    key = known.tobytes()
    if key not in asked.operators:
        asked.operators[key] = quick_operators(asked, known)
    return asked.operators[key]


def quick_operators(asked: Asked, known: Bools) -> Floats:
    """Matrices (3, t, m) that make predictions of m group indicators; of known rows without themselves."""
    n_known = int(known.sum())
    operators = np.empty((len(_QUICK), len(known), n_known))
    for operator, k in zip(operators, _QUICK, strict=True):
        similarity = asked.kernels[k][:, known]
        inverse = inverse_of(similarity[known] + _PENALTY * np.eye(n_known))
        operator[~known] = similarity[~known] @ inverse
        operator[known] = np.eye(n_known) - inverse / np.diag(inverse)[:, None]
    return operators


def quick_prob(operators: Floats, group: Ints, n_groups: int) -> Floats:
    """Mean of the quick predictions, (t, g), from the groups (m,) of known rows."""
    return mean_shares(group_sums(operators, group, n_groups))


@kernel
def group_sums(operators: Floats, group: Ints, n_groups: int) -> Floats:
    """Quick predictions before they are made shares, (3, t, g), from the groups (m,) of known rows."""
    n_kernels, n_rows, n_known = operators.shape
    sums = np.zeros((n_kernels, n_rows, n_groups))
    for k in range(n_kernels):
        for i in range(n_rows):
            for j in range(n_known):
                sums[k, i, group[j]] += operators[k, i, j]
    return sums


@kernel
def mean_shares(sums: Floats) -> Floats:
    """Mean over kernels, (t, g), of sums (3, t, g) as shares."""
    n_kernels, n_rows, n_groups = sums.shape
    mean = np.zeros((n_rows, n_groups))
    for k in range(n_kernels):
        for i in range(n_rows):
            total = 0.0
            for g in range(n_groups):
                total += max(sums[k, i, g], SMALLEST)
            for g in range(n_groups):
                mean[i, g] += max(sums[k, i, g], SMALLEST) / (total * n_kernels)
    return mean


def _united_columns(values: Floats, a: int, b: int) -> Floats:
    """Values with group a of the last axis, behind b, added to group b."""
    united = np.ascontiguousarray(np.delete(values, a, axis=-1))
    united[..., b] += values[..., a]
    return united


@kernel
def _sums_by_group(values: Floats, group: Ints, n_groups: int) -> Floats:
    """Sum of the columns (t, m) of each group, (t, g)."""
    total = np.zeros((len(values), n_groups))
    for i in range(len(values)):
        for j in range(len(group)):
            total[i, group[j]] += values[i, j]
    return total


@kernel
def _log_value(prob: Floats, answers: Floats, label: Ints, new: Floats, new_when_asked: Floats) -> float:
    """Evidence of a grouping (t,) from predictions and strengths of answers (t, g): see the module."""
    n_groups = prob.shape[1]
    founded = np.zeros(n_groups, dtype=np.bool_)
    total = 0.0
    for i in range(len(label)):
        own = label[i]
        if own >= 0:
            total += 0.5 * answers[i, own]  # each answer inside a group is seen from both ends
            if founded[own]:
                total += np.log(prob[i, own]) + np.log1p(-new[i])
            else:
                founded[own] = True
                total += np.log(new_when_asked[i])
        else:
            top = 0.0
            for g in range(n_groups):
                top = max(top, answers[i, g])
            ways = new[i] * np.exp(-top)
            for g in range(n_groups):
                ways += prob[i, g] * (1.0 - new[i]) * np.exp(answers[i, g] - top)
            total += top + np.log(ways)
    return total


def log_total(scores: Floats) -> Floats:
    """Logarithm of the sum of exponentials by row, (t,)."""
    top = scores.max(axis=1)
    return np.asarray(top + np.log(np.exp(scores - top[:, None]).sum(axis=1)), dtype=np.float64)


def merge_chances(evidence: Evidence, label: Ints) -> Floats:
    """Chance that two groups are one, (g, g), from the evidence for either."""
    chance = np.tril(expit(evidence.merged_values(label) - evidence.value(label)), -1)
    return chance + chance.T


def divide(evidence: Evidence, label: Ints, most: int) -> tuple[Ints, list[Split]]:
    """Divide groups where that is likelier than not; returns the labels (t,) and the divisions not made."""
    value = evidence.value(label)
    refused: list[Split] = []
    left = list(range(int(label.max()) + 1))
    for _ in range(_MOST_SPLITS):
        left.sort(key=lambda group: int((label == group).sum()))
        if not left or (label == left[-1]).sum() < _LEAST_DIVIDED:
            break
        group = left.pop()
        rows = np.flatnonzero(label == group)
        signed = evidence.signed[np.ix_(rows, rows)] / MOST
        sides: dict[bytes, Bools] = {}  # two kernels often propose the same
        for k in _QUICK:
            away = _other_side(evidence.asked.kernels[k][np.ix_(rows, rows)] + signed)
            if away.any():
                sides.setdefault(away.tobytes(), away)
        proposals = []
        for away in sides.values():
            proposal = label.copy()
            proposal[rows[away]] = label.max() + 1
            proposals.append(evidence.improved(proposal))
        if not proposals:
            continue
        proposal, proposed = max(proposals, key=lambda one: one[1])
        away = proposal[rows] != label[rows]
        if not away.any() or away.all():
            continue
        if proposed > value and label.max() + 1 < most:
            label, value = proposal, proposed
            left += [group, int(label.max())]
        else:
            places = evidence.asked.places[rows]
            refused.append(Split(float(expit(proposed - value)), group, places[~away], places[away]))
    return label, refused


def unite(evidence: Evidence, label: Ints) -> tuple[Ints, list[Split], Floats]:
    """Make one group of two where that is likelier than not, the likeliest first.

    Two groups far apart are predicted nearly as well as one, and one less has to be founded: rows must be
    predicted better by much more than that. And not where more answers between the two say "different" than
    "same": then rows that are alike are a reason to ask once more. What is not united has a chance of at most
    a half. Returns the labels (t,), the same array if no two are one, the unions as divisions not made, and
    the chance that two groups left are one, (g, g).
    """
    places, known = evidence.asked.places, evidence.known
    unions: list[Split] = []
    while True:
        chance = merge_chances(evidence, label)
        groups = label[known]
        indicators = np.eye(len(chance))[groups]
        between = indicators.T @ evidence.signed[np.ix_(known, known)] @ indicators
        first = np.unique(groups, return_index=True)[1]
        founding = -np.log(evidence.new_when_asked[known][np.maximum(first, first[:, None])])
        refused = (between < 0.0) | (chance <= expit(founding + _MUCH))
        chance[refused] = np.minimum(chance[refused], 0.5)
        b, a = sorted(int(group) for group in np.unravel_index(int(chance.argmax()), chance.shape))
        if chance[a, b] <= 0.5:
            return label, unions, chance
        unions.append(Split(1.0 - float(chance[a, b]), b, places[label == b], places[label == a]))
        label = np.where(label == a, b, label)
        label = label - (label > a)


def _other_side(similarity: Floats) -> Bools:
    """The rows on the other side than the first, if rows are divided by the leading eigenvector."""
    centred = similarity - similarity.mean(axis=0) - similarity.mean(axis=1)[:, None] + similarity.mean()
    vector = np.linalg.eigh(centred)[1][:, -1]
    return np.asarray((vector > 0.0) != (vector[0] > 0.0))


def told_landmarks(landscape: Landscape, answers: Answers) -> Told:
    """The landmarks in answers; the centre alone if no answer says anything."""
    number = np.flatnonzero(answers.says != UNSURE)
    says, certainty = answers.says[number].astype(np.int64), answers.certainty[number]
    if not len(number):
        nothing = np.empty((0, 2), dtype=np.int64)
        return Told(np.array([landscape.centre]), nothing, says, certainty, number)
    pairs = landscape.place[answers.pairs[number]]
    # The second row of a question was there before the first.
    places, first = np.unique(pairs[:, ::-1], return_index=True)
    order = np.argsort(first)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return Told(places[order], rank[np.searchsorted(places, pairs)], says, certainty, number)


def asked_landmarks(
    landscape: Landscape, told: Answers | Told, beyond: tuple[float, float] = (0.0, 0.0)
) -> Asked:
    """The landmarks in answers, with their similarities."""
    one = told if isinstance(told, Told) else told_landmarks(landscape, told)
    square = np.ix_(one.places, one.places)
    nearness = landscape.nearness[square]
    np.fill_diagonal(nearness, 0.0)
    kernels = np.stack([kernel[square] for kernel in landscape.kernels])
    return Asked(one.places, one.pairs, one.says, one.certainty, one.number, kernels, nearness, beyond)


def novelty(landscape: Landscape, known: Ints, trust: Floats, alpha: float) -> Floats:
    """Chance that a landmark founds a group, (l,), given those ``known`` (m,) that are trusted by ``trust``.

    A known one does not count for itself.
    """
    alike = landscape.nearness[known]
    alike[np.arange(len(known)), known] = 0.0
    return _chance_of_new(trust @ alike, alpha)


def asked_novelty(asked: Asked, trust: Floats, alpha: float) -> Floats:
    """``novelty`` of asked landmarks, given those of them that are trusted by ``trust`` (t,)."""
    return _chance_of_new(asked.nearness @ trust, alpha)


def _chance_of_new(alike: Floats, alpha: float) -> Floats:
    """Chance of a new group, from the similarity (t,) to known rows."""
    return np.asarray(alpha / (alpha + alike + LEAST_SIMILARITY), dtype=np.float64)
