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
from numpy.typing import NDArray
from scipy.special import expit

from linkwise._kernels import kernel
from linkwise.active.knowledge import UNSURE, Answers
from linkwise.active.landscape import Landscape
from linkwise.active.predictors import SMALLEST

__all__ = [
    "LEAST_SIMILARITY",
    "MOST",
    "Asked",
    "Evidence",
    "Split",
    "asked_landmarks",
    "divide",
    "log_total",
    "merge_chances",
    "novelty",
    "operators_of",
    "quick_operators",
    "quick_prob",
    "unite",
]

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
    rows: NDArray[np.int64]
    others: NDArray[np.int64]


@dataclass(eq=False)
class Asked:
    """Landmarks in answers and the answers about them, in the numbering of these landmarks.

    ``places`` (t,) landmarks in the order in which they were first asked about; ``pairs`` (q, 2) and ``says``
    (q,) the answers that were not "unsure", ``number`` (q,) their places among all. ``operators`` keeps what
    ``operators_of`` computed.
    """

    places: NDArray[np.int64]
    pairs: NDArray[np.int64]
    says: NDArray[np.int64]
    certainty: NDArray[np.float64]
    number: NDArray[np.int64]
    operators: dict[bytes, NDArray[np.float64]] = field(default_factory=dict)

    def strength(self, error_rate: float) -> NDArray[np.float64]:
        """Log-odds of each answer, positive for "same"."""
        certainty = np.where(np.isnan(self.certainty), 1.0 - error_rate, self.certainty)
        with np.errstate(divide="ignore"):
            odds = np.log(certainty) - np.log1p(-certainty)
        return np.asarray(self.says * np.minimum(odds, MOST), dtype=np.float64)


class Evidence:
    """Evidence of groupings in which the same asked landmarks, ``known`` (t,) bool, have a group."""

    def __init__(
        self,
        landscape: Landscape,
        asked: Asked,
        known: NDArray[np.bool_],
        strength: NDArray[np.float64],
        alpha: float,
    ) -> None:
        places = asked.places
        self.landscape, self.asked, self.known, self.strength = landscape, asked, known, strength
        self.operators = operators_of(landscape, asked, known)
        self.new = novelty(landscape, places, places[known], np.ones(int(known.sum())), alpha)
        before = np.tril(landscape.nearness[np.ix_(places, places)], -1)[:, known].sum(axis=1)
        self.new_when_asked = alpha / (alpha + before + LEAST_SIMILARITY)
        # Strength of the answers about each pair of rows, (t, t).
        signed = np.zeros((len(places), len(places)))
        np.add.at(signed, tuple(asked.pairs.T), strength)
        self.signed = signed + signed.T
        self.signed_known = np.ascontiguousarray(self.signed[:, known])

    @cached_property
    def kernels(self) -> NDArray[np.float64]:
        """Kernels of the quick regression between asked landmarks, (3, t, t)."""
        places = self.asked.places
        return np.asarray(self.landscape.kernels[np.ix_(np.array(_QUICK), places, places)])

    def scores(self, label: NDArray[np.int64]) -> NDArray[np.float64]:
        """Log score of each group, and last of a new one, for each row with its answers, (t, g + 1)."""
        scores, answers = self._scores(label)
        scores[:, :-1] += answers
        return scores

    def value(self, label: NDArray[np.int64]) -> float:
        """Log probability of the grouping (t,) and the answers, up to a constant."""
        group, n_groups = label[self.known], int(label.max()) + 1
        prob = quick_prob(self.operators, group, n_groups)
        answers = _sums_by_group(self.signed_known, group, n_groups)
        return float(_log_value(prob, answers, label, self.new, self.new_when_asked))

    def improved(self, label: NDArray[np.int64]) -> tuple[NDArray[np.int64], float]:
        """Move rows to where other rows and answers put them; the best labels (t,) met, and their value."""
        best, best_value = label, self.value(label)
        n_groups = int(label.max()) + 1
        for _ in range(_N_MOVES):
            moved = np.where(self.known, self.scores(label)[:, :-1].argmax(axis=1), -1)
            if np.array_equal(moved, label) or len(np.unique(moved[self.known])) < n_groups:
                break
            label = moved
            value = self.value(label)
            if value > best_value:
                best, best_value = label, value
        return best, best_value

    def _scores(self, label: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Log scores without answers (t, g + 1), and the strength of the answers for each group (t, g)."""
        group, n_groups = label[self.known], int(label.max()) + 1
        prob = quick_prob(self.operators, group, n_groups)
        scores = np.column_stack([np.log(prob) + np.log1p(-self.new)[:, None], np.log(self.new)])
        return scores, _sums_by_group(self.signed_known, group, n_groups)


def operators_of(landscape: Landscape, asked: Asked, known: NDArray[np.bool_]) -> NDArray[np.float64]:
    """``quick_operators`` of the asked landmarks, computed once for each set of known ones."""
    key = known.tobytes()
    if key not in asked.operators:
        asked.operators[key] = quick_operators(landscape, asked.places, known)
    return asked.operators[key]


def quick_operators(
    landscape: Landscape, places: NDArray[np.int64], known: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Matrices (3, t, m) that make predictions of m group indicators; of known rows without themselves."""
    n_known = int(known.sum())
    operators = np.empty((len(_QUICK), len(places), n_known))
    for operator, k in zip(operators, _QUICK, strict=True):
        similarity = landscape.kernels[k][np.ix_(places, places[known])]
        inverse = np.linalg.inv(similarity[known] + _PENALTY * np.eye(n_known))
        np.matmul(similarity, inverse, out=operator)
        operator[known] = np.eye(n_known) - inverse / np.diag(inverse)[:, None]
    return operators


@kernel
def quick_prob(
    operators: NDArray[np.float64], group: NDArray[np.int64], n_groups: int
) -> NDArray[np.float64]:
    """Mean of the quick predictions, (t, g), from the groups (m,) of known rows."""
    n_kernels, n_rows, n_known = operators.shape
    mean = np.zeros((n_rows, n_groups))
    one = np.empty(n_groups)
    for k in range(n_kernels):
        for i in range(n_rows):
            one[:] = 0.0
            for j in range(n_known):
                one[group[j]] += operators[k, i, j]
            total = 0.0
            for g in range(n_groups):
                one[g] = max(one[g], SMALLEST)
                total += one[g]
            for g in range(n_groups):
                mean[i, g] += one[g] / (total * n_kernels)
    return mean


@kernel
def _sums_by_group(
    values: NDArray[np.float64], group: NDArray[np.int64], n_groups: int
) -> NDArray[np.float64]:
    """Sum of the columns (t, m) of each group, (t, g)."""
    total = np.zeros((len(values), n_groups))
    for i in range(len(values)):
        for j in range(len(group)):
            total[i, group[j]] += values[i, j]
    return total


@kernel
def _log_value(
    prob: NDArray[np.float64],
    answers: NDArray[np.float64],
    label: NDArray[np.int64],
    new: NDArray[np.float64],
    new_when_asked: NDArray[np.float64],
) -> float:
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


def log_total(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Logarithm of the sum of exponentials by row, (t,)."""
    top = scores.max(axis=1)
    return np.asarray(top + np.log(np.exp(scores - top[:, None]).sum(axis=1)), dtype=np.float64)


def merge_chances(evidence: Evidence, label: NDArray[np.int64]) -> NDArray[np.float64]:
    """Chance that two groups are one, (g, g), from the evidence for either."""
    n_groups = int(label.max()) + 1
    chance = np.zeros((n_groups, n_groups))
    value = evidence.value(label)
    for a in range(n_groups):
        for b in range(a):
            merged = np.where(label == a, b, label)
            chance[a, b] = expit(evidence.value(merged - (merged > a)) - value)
    return chance + chance.T


def divide(evidence: Evidence, label: NDArray[np.int64], most: int) -> tuple[NDArray[np.int64], list[Split]]:
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
        proposals = []
        for similarity in evidence.kernels:
            away = _other_side((similarity + evidence.signed / MOST)[np.ix_(rows, rows)])
            if away.any():
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


def unite(
    evidence: Evidence, label: NDArray[np.int64]
) -> tuple[NDArray[np.int64], list[Split], NDArray[np.float64]]:
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


def _other_side(similarity: NDArray[np.float64]) -> NDArray[np.bool_]:
    """The rows on the other side than the first, if rows are divided by the leading eigenvector."""
    centred = similarity - similarity.mean(axis=0) - similarity.mean(axis=1)[:, None] + similarity.mean()
    vector = np.linalg.eigh(centred)[1][:, -1]
    return np.asarray((vector > 0.0) != (vector[0] > 0.0))


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


def novelty(
    landscape: Landscape,
    places: NDArray[np.int64],
    known: NDArray[np.int64],
    trust: NDArray[np.float64],
    alpha: float,
) -> NDArray[np.float64]:
    """Chance that a landmark founds a group: alpha / (alpha + s); a known one does not count for itself."""
    alike = landscape.nearness[np.ix_(places, known)] * trust
    alike[places[:, None] == known] = 0.0
    return np.asarray(alpha / (alpha + alike.sum(axis=1) + LEAST_SIMILARITY), dtype=np.float64)
