"""What a lasso around rows says, in a few answers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

__all__ = ["answers_of_groups"]

#: Rows that stand for a group.
N_SPEAKERS = 3


def answers_of_groups(
    X: NDArray[np.float64], relation: str, a: Sequence[int], b: Sequence[int]
) -> tuple[list[tuple[int, int]], str]:
    """Pairs, and the answer about each of them, that say what two groups of rows are to each other.

    At most three rows stand for each group: the one nearest to its mean, and then the ones furthest from
    those before. "together" makes a chain of answers "same" through all speakers, at most five. "apart" makes
    answers "different" about the first speakers of both groups, the second ones and the third ones. Nothing
    is said about the other rows: the model moves them along.
    """
    first, second = sorted(set(a)), sorted(set(b))
    if relation == "together":
        both = [*_speakers(X, first), *(_speakers(X, second) if second else [])]
        chain = list(dict.fromkeys(both))
        if len(chain) < 2:
            raise ValueError("one row belongs together with itself; draw around two rows or more")
        return list(pairwise(chain)), "same"
    shared = sorted(set(first) & set(second))
    if shared:
        raise ValueError(f"row {shared[0]} is in both groups; draw them so that they do not overlap")
    if not second:
        raise ValueError("there is one group; draw around the second one, too")
    pairs = zip(_speakers(X, first), _speakers(X, second), strict=False)
    return list(pairs), "different"


def _speakers(X: NDArray[np.float64], rows: Sequence[int]) -> list[int]:
    """The row nearest to the mean, then the furthest from those chosen."""
    points = X[np.asarray(rows)]
    chosen = [int(((points - points.mean(axis=0)) ** 2).sum(axis=1).argmin())]
    away = ((points - points[chosen[0]]) ** 2).sum(axis=1)
    while len(chosen) < min(N_SPEAKERS, len(rows)):
        away[chosen] = -1.0
        chosen.append(int(away.argmax()))
        away = np.minimum(away, ((points - points[chosen[-1]]) ** 2).sum(axis=1))
    return [int(rows[place]) for place in chosen]
