"""Many links that are given at first, in short: some of their rows, with what the links say about these.

The posterior learns from every row in an answer, and its cost grows with the third power of their number. So
of thousands of links it sees about ``N_ROWS`` rows: parts that links join, those that have most links to each
other, with a few rows of each.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.special import expit, logit

from linkwise.active.groups import join
from linkwise.active.knowledge import DIFFERENT, SAME, Answers

__all__ = ["N_ROWS", "summarise"]

#: Links about at most this many rows are taken as they are; of more, about so many rows are kept.
N_ROWS = 200
#: Rows of a part, at first; what is left is shared out at the end.
_FEW = 5
#: Nats of a fact.
_MOST = 30.0


def summarise(given: Answers, n_rows: int = N_ROWS, seed: int = 0) -> Answers:
    """The links, or what they say about ``n_rows`` of their rows.

    Rows of a part are linked to its first row, and first rows of parts that links set apart are set apart. A
    part has the mean certainty of its links; two parts have the sum of the evidence between them.
    """
    rows, ends = np.unique(given.pairs, return_inverse=True)
    if len(rows) <= n_rows:
        return given
    ends = ends.reshape(-1, 2).astype(np.int64)
    odds = given.says * np.minimum(logit(given.certainty), _MOST)
    part = join(len(rows), ends, odds)
    members = _members(part, np.random.default_rng(seed))
    inside = (part[ends[:, 0]] == part[ends[:, 1]]) & (odds > 0.0)
    apart = _apart(part[ends], odds, len(members))
    taken, n_taken = _taken([len(one) for one in members], apart, n_rows)
    total = np.bincount(part[ends[inside, 0]], given.certainty[inside], minlength=len(members))
    certainty = total / np.maximum(np.bincount(part[ends[inside, 0]], minlength=len(members)), 1)
    pairs, says, sure = [], [], []
    for one in taken:
        first, *others = rows[members[one][: n_taken[one]]].tolist()
        for other in others:
            pairs.append((other, first))
            says.append(SAME)
            sure.append(certainty[one])
        for other, evidence in apart[one].items():
            if other < one and other in n_taken:
                pairs.append((first, int(rows[members[other][0]])))
                says.append(DIFFERENT)
                sure.append(1.0 if evidence >= _MOST else float(expit(evidence)))
    return Answers(
        np.array(pairs, dtype=np.int64).reshape(-1, 2),
        np.array(says, dtype=np.int8),
        np.array(sure, dtype=np.float64),
        ("",) * len(pairs),
    )


def _members(part: NDArray[np.int64], rng: np.random.Generator) -> list[NDArray[np.int64]]:
    """Rows of each part in random order."""
    order = rng.permutation(len(part))
    order = order[np.argsort(part[order], kind="stable")]
    return np.split(order, np.cumsum(np.bincount(part))[:-1])


def _apart(ends: NDArray[np.int64], odds: NDArray[np.float64], n_parts: int) -> list[dict[int, float]]:
    """For each part the parts that links set it apart from, and how strongly."""
    outside = ends[:, 0] != ends[:, 1]
    total = coo_array((odds[outside], ends[outside].T), shape=(n_parts, n_parts)).tocsr()
    total = (total + total.T).tocoo()
    found: list[dict[int, float]] = [{} for _ in range(n_parts)]
    for i, j, value in zip(total.row.tolist(), total.col.tolist(), total.data.tolist(), strict=True):
        if value < 0.0:
            found[i][j] = -value
    return found


def _taken(sizes: list[int], apart: list[dict[int, float]], n_rows: int) -> tuple[list[int], dict[int, int]]:
    """Parts to keep, the next always the one with most links to those before it, and the rows of each."""
    n_links = np.zeros(len(sizes))
    # Of parts with as many links to those taken, the one with most links, then the largest.
    worth = np.array([len(one) for one in apart]) + np.array(sizes) / (1.0 + max(sizes))
    worth /= 1.0 + worth.max()
    n_taken: dict[int, int] = {}
    left = n_rows
    while left > 0 and len(n_taken) < len(sizes):
        one = int((n_links + worth).argmax())
        n_taken[one] = min(sizes[one], _FEW, left)
        left -= n_taken[one]
        n_links[list(apart[one])] += 1.0
        n_links[list(n_taken)] = -np.inf
    while left > 0 and any(n_taken[one] < sizes[one] for one in n_taken):
        for one in n_taken:
            if left > 0 and n_taken[one] < sizes[one]:
                n_taken[one] += 1
                left -= 1
    return list(n_taken), n_taken
