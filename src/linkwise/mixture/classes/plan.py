"""Where CPPC starts, and with how many clusters: classes joined and divided as data and beliefs tell.

Classes that may be one are joined first, then the groups are divided. With "auto" there must be evidence:

* classes believed apart (below 0) are never joined, those believed together (1) always, any other if one
  Gaussian for both is the better description after the belief's reward;
* a class believed whole (1) is never divided, one believed split (-1) always, any other if its parts are
  stable and have the better ICL after the belief's own reward or cost. Parts of different groups may be
  joined in the end, by the same rule as classes.

With a given number of clusters the same costs say what to divide or to join, stable or not.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from linkwise.mixture.classes.e_step import SURE_STRENGTH
from linkwise.mixture.classes.evidence import (
    Division,
    best_counts,
    class_divisions,
    joined,
    joining_cost,
    moments_of,
    pair_loss,
)
from linkwise.mixture.classes.starts import split_widest

__all__ = ["Evidence", "Plan", "make_plan"]

#: Parts that a class may be divided into by "auto".
_MOST_PARTS = 8
#: Adjusted Rand index that halves of the rows must reach. On half of the tasks of the experiment
#: ``coarse_classes`` .8 and .85 had mean indices to the true classes of .83 and .84, no limit .79.
_STABLE = 0.85


class _Shape(NamedTuple):
    """What all covariances have in common."""

    covariance_type: str
    reg_covar: float
    shrinkage: float


class Evidence(NamedTuple):
    """The evidence for dividing one class, or joining two.

    ``kind`` is "split" or "merge", ``classes`` are their numbers, ``gain`` the nats for it (beliefs included)
    and ``data_gain`` those of the data alone, ``stability`` how well halves of the rows find the parts again
    (NaN for a merge), ``n_rows`` how many rows change their cluster, ``reason`` why it was left.
    """

    kind: str
    classes: tuple[int, ...]
    n_parts: int
    gain: float
    data_gain: float
    stability: float
    n_rows: int
    accepted: bool
    reason: str


@dataclass(frozen=True)
class Plan:
    """Start (n,) of the rows, -1 where unlabelled, its number of clusters, and the evidence for it.

    ``alternatives`` has ICL and number of clusters of the classes as they are, of each class divided on its
    own by BIC (what one would do by hand), and of the plan.
    """

    labels: NDArray[np.int64]
    n_clusters: int
    evidence: tuple[Evidence, ...]
    alternatives: dict[str, dict[str, float]]


def make_plan(
    X: NDArray[np.floating],
    codes: NDArray[np.integer],
    beliefs: NDArray[np.float64],
    weights: NDArray[np.float64],
    n_clusters: int | None,
    *,
    covariance_type: str,
    reg_covar: float,
    shrinkage: float,
    random_state: np.random.RandomState,
) -> Plan:
    """Plan the clusters of labelled rows; ``weights`` (L, L) are the pair weights A, None means "auto"."""
    shape = _Shape(covariance_type, reg_covar, shrinkage)
    evidence: list[Evidence] = []
    # No opinion is no reason to join classes if the number of clusters is given.
    fewest = 0.0 if n_clusters is None else np.nextafter(0.0, 1.0)
    groups = [np.flatnonzero(codes == label) for label in range(len(beliefs))]
    groups, joined_cost = _join(X, codes, groups, beliefs, weights, fewest, None, shape, evidence)
    seeds = random_state.randint(2**31, size=len(groups))
    if n_clusters is None:
        most = _MOST_PARTS
    else:
        most = 1 if n_clusters <= len(groups) else -(-n_clusters // len(groups)) + 3
    found = []
    for rows, seed in zip(groups, seeds, strict=True):
        own = np.unique(codes[rows])
        whole = n_clusters is None and bool((beliefs[own, own] >= 1.0).all())
        divisions = class_divisions(
            X[rows], 1 if whole else most, *shape, int(seed), judge=n_clusters is None
        )
        costs = [_cost(one, codes[rows], beliefs, weights) for one in divisions]
        found.append(_Group(rows, own, divisions, np.array(costs)))
    if n_clusters is None:
        chosen = [_divide(group, beliefs, evidence) for group in found]
    else:
        wanted = min(max(n_clusters, len(groups)), sum(len(group.divisions) for group in found))
        counts = best_counts([group.costs for group in found], wanted)
        assert counts is not None
        chosen = [group.divisions[count - 1] for group, count in zip(found, counts, strict=True)]
    total = sum(one.criterion for one in chosen)
    parts = _parts(groups, chosen)
    if n_clusters is None or n_clusters < len(parts):
        least = 0.0 if n_clusters is None else -np.inf
        parts, cost = _join(X, codes, parts, beliefs, weights, least, n_clusters, shape, evidence)
        total += cost
    elif len(parts) < n_clusters:
        parts = split_widest(X, parts, n_clusters, random_state)
    labels = np.full(len(X), -1, dtype=np.int64)
    for cluster, rows in enumerate(parts):
        labels[rows] = cluster
    more = len(beliefs) - len(groups)
    by_hand = [min(group.divisions, key=lambda one: one.bic) for group in found]
    alternatives = {
        "classes as they are": _alternative([group.divisions[0] for group in found], more, joined_cost),
        "each class divided on its own": _alternative(by_hand, more, joined_cost),
        "proposal": {"n_clusters": float(len(parts)), "icl": float(total)},
    }
    return Plan(labels, len(parts), tuple(evidence), alternatives)


class _Group(NamedTuple):
    """Rows of classes that were joined, or of one class, and the parts they may be divided into."""

    rows: NDArray[np.int64]
    classes: NDArray[np.int64]
    divisions: list[Division]
    costs: NDArray[np.float64]


def _alternative(divisions: list[Division], more: int, joined_cost: float) -> dict[str, float]:
    """Clusters and ICL of divisions of the groups, with so many classes that were joined apart again."""
    return {
        "n_clusters": float(sum(one.n_parts for one in divisions) + more),
        "icl": float(sum(one.criterion for one in divisions)) - joined_cost,
    }


def _cost(
    one: Division, codes: NDArray[np.integer], beliefs: NDArray[np.float64], weights: NDArray[np.float64]
) -> float:
    """ICL of a division with the cost that the beliefs about its classes add.

    A class that must be split (-1) costs much as a whole; its number of parts is left to the data.
    """
    own, place = np.unique(codes, return_inverse=True)
    table = np.zeros((len(own), one.n_parts), dtype=np.int64)
    np.add.at(table, (place, one.labels), 1)
    among = weights[np.ix_(own, own)].copy()
    split = beliefs[own, own] <= -1.0
    among[split, split] = 0.0
    still_whole = int((np.count_nonzero(table[split], axis=1) == 1).sum())
    return one.criterion + 2.0 * (pair_loss(table, among) + SURE_STRENGTH * len(codes) * still_whole)


def _divide(group: _Group, beliefs: NDArray[np.float64], evidence: list[Evidence]) -> Division:
    """Choose the parts of a group, and note what spoke for them."""
    divisions, costs = group.divisions, group.costs
    if len(divisions) == 1:
        return divisions[0]
    several = np.arange(1, len(divisions))
    stable = several[[divisions[place].stability >= _STABLE for place in several]]
    better = stable[costs[stable] < costs[0]]
    chosen = 0
    if len(better):
        chosen = int(better[costs[better].argmin()])
    elif (beliefs[group.classes, group.classes] <= -1.0).any():
        chosen = int(several[costs[several].argmin()])
    told = chosen or int(several[costs[several].argmin()])
    gain = float(costs[0] - costs[told]) / 2.0
    reason = ""
    if not chosen:
        reason = (
            "fits to two halves of the rows divide it differently" if gain > 0.0 else "one Gaussian is enough"
        )
    one = divisions[told]
    sizes = np.bincount(one.labels)
    evidence.append(
        Evidence(
            "split", tuple(group.classes.tolist()), one.n_parts, gain,
            float(divisions[0].criterion - one.criterion) / 2.0, one.stability,
            int(sizes.sum() - sizes.max()), bool(chosen), reason,
        )
    )  # fmt: skip
    return divisions[chosen]


def _parts(groups: list[NDArray[np.int64]], chosen: list[Division]) -> list[NDArray[np.int64]]:
    """Rows of every part, the first parts of all groups before the others."""
    first = [rows[one.labels == 0] for rows, one in zip(groups, chosen, strict=True)]
    others = [
        rows[one.labels == part]
        for rows, one in zip(groups, chosen, strict=True)
        for part in range(1, one.n_parts)
    ]
    return [rows for rows in [*first, *others] if len(rows)]


def _join(
    X: NDArray[np.floating],
    codes: NDArray[np.integer],
    parts: list[NDArray[np.int64]],
    beliefs: NDArray[np.float64],
    weights: NDArray[np.float64],
    least: float,
    n_clusters: int | None,
    shape: _Shape,
    evidence: list[Evidence],
) -> tuple[list[NDArray[np.int64]], float]:
    """Join the clusters that cost least, and return what that adds to -2 log L and its penalty.

    Only clusters of different classes whose beliefs are at least ``least`` are joined: while that lowers the
    cost, or until there are ``n_clusters``. Then clusters of one class may be joined, too.
    """
    n_classes = len(beliefs)
    tables = {place: np.bincount(codes[rows], minlength=n_classes) for place, rows in enumerate(parts)}
    free = {
        pair
        for pair in combinations(tables, 2)
        if _may_join(tables[pair[0]], tables[pair[1]], beliefs, least)
    }
    if not free:
        return parts, 0.0
    rows_of = dict(enumerate(parts))
    moments = {place: moments_of(X[rows]) for place, rows in rows_of.items()}
    n_rows = sum(one.n_rows for one in moments.values())
    pooled = np.sum([one.n_rows * one.covariance for one in moments.values()], axis=0) / n_rows
    pooled += shape.reg_covar * np.eye(X.shape[1])
    saved = 0.0

    def cost(a: int, b: int) -> tuple[float, float]:
        data = joining_cost(moments[a], moments[b], pooled, shape.covariance_type, shape.shrinkage)
        return data - 2.0 * float(tables[a] @ weights @ tables[b]), data

    costs = {pair: cost(*pair) for pair in free}
    while costs and (n_clusters is None or len(rows_of) > n_clusters):
        (a, b), (value, data) = min(costs.items(), key=lambda item: (item[1][0], item[0]))
        accepted = n_clusters is not None or value < 0.0
        if n_clusters is None:
            names = tuple(np.flatnonzero(tables[a] + tables[b]).tolist())
            evidence.append(
                Evidence(
                    "merge", names, 1, -value / 2.0, -data / 2.0, np.nan,
                    int(min(moments[a].n_rows, moments[b].n_rows)), accepted,
                    "" if accepted else "the data tell them apart",
                )
            )  # fmt: skip
        if not accepted:
            break
        saved += data
        tables[a] = tables[a] + tables.pop(b)
        rows_of[a] = np.sort(np.concatenate([rows_of[a], rows_of.pop(b)]))
        moments[a] = joined(moments[a], moments.pop(b))
        costs = {pair: value for pair, value in costs.items() if a not in pair and b not in pair}
        for other in rows_of:
            pair = (min(a, other), max(a, other))
            if other != a and _may_join(tables[a], tables[other], beliefs, least):
                costs[pair] = cost(*pair)
    return list(rows_of.values()), saved


def _may_join(
    a: NDArray[np.integer], b: NDArray[np.integer], beliefs: NDArray[np.float64], least: float
) -> bool:
    """Whether clusters with these rows (L,) of each class may be joined."""
    if least == -np.inf:
        return True
    between = beliefs[np.ix_(np.flatnonzero(a), np.flatnonzero(b))]
    return not (a * b).any() and bool((between >= least).all())
