"""What an answer changed: rows that moved from one cluster to another, whatever numbers the clusters have."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

__all__ = ["change_in_words", "renamed"]

# Moves that are listed one by one.
_TOLD = 3


def renamed(before: NDArray[np.int64], after: NDArray[np.int64]) -> NDArray[np.int64]:
    """The new labels, each cluster under the number of the old one that it shares most rows with.

    Clusters are matched one to one so that the fewest rows move. A cluster without a match gets a number that
    no old one has.
    """
    old, old_of = np.unique(before, return_inverse=True)
    new, new_of = np.unique(after, return_inverse=True)
    shared = np.bincount(old_of * len(new) + new_of, minlength=len(old) * len(new)).reshape(
        len(old), len(new)
    )
    names = np.full(len(new), -1, dtype=np.int64)
    for row, column in zip(*linear_sum_assignment(shared, maximize=True), strict=True):
        if shared[row, column]:
            names[column] = old[row]
    free = names < 0
    names[free] = int(old.max()) + 1 + np.arange(np.count_nonzero(free))
    return names[new_of]


def change_in_words(before: NDArray[np.int64], after: NDArray[np.int64]) -> str:
    """Say which rows moved; ``after`` has the numbers of ``renamed``."""
    moved = before != after
    if not moved.any():
        return "no row moved"
    pairs, counts = np.unique(np.column_stack([before, after])[moved], axis=0, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    parts = []
    for place in order[:_TOLD].tolist():
        source, target = pairs[place].tolist()
        gone = "" if (after == source).any() else " (gone)"
        new = "" if (before == target).any() else " (new)"
        parts.append(f"{counts[place]} from cluster {source}{gone} to {target}{new}")
    rest = int(counts[order[_TOLD:]].sum())
    if rest:
        parts.append(f"{rest} elsewhere")
    total = int(moved.sum())
    return f"{_rows(total)} moved: {', '.join(parts)}"


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count} rows"
