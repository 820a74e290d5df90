"""Parts of a graph with signed edges: greedy contraction, which weighs edges that contradict each other."""

from __future__ import annotations

import heapq

import numpy as np
from numpy.typing import NDArray

__all__ = ["join"]


def join(
    n: int, pairs: NDArray[np.int64], strength: NDArray[np.float64], least: float = 0.0
) -> NDArray[np.int64]:
    """Parts (n,) of n nodes from pairs (m, 2) of a strength (m,): positive says same, negative different.

    The two parts with the strongest pairs for being one are joined, and what was said of either holds for
    both, until no two have more than ``least`` for being one (greedy additive edge contraction). Pairs
    without a contradiction give the nodes that a chain of pairs "same" joins. Parts are numbered by their
    first node.
    """
    between: list[dict[int, float]] = [{} for _ in range(n)]
    for (i, j), value in zip(pairs.tolist(), strength.tolist(), strict=True):
        between[i][j] = between[j][i] = between[i].get(j, 0.0) + value
    part = np.arange(n)
    queue = [(-value, i, j) for i in range(n) for j, value in between[i].items() if i < j and value > least]
    heapq.heapify(queue)
    while queue:
        value, i, j = heapq.heappop(queue)
        if between[i].get(j) != -value:
            continue  # joined or weakened since
        part[part == j] = i
        del between[i][j], between[j][i]
        for k, other in between[j].items():
            del between[k][j]
            total = between[i].get(k, 0.0) + other
            between[i][k] = between[k][i] = total
            if total > least:
                heapq.heappush(queue, (-total, min(i, k), max(i, k)))
        between[j] = {}
    return np.unique(part, return_inverse=True)[1].astype(np.int64)
