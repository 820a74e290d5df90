"""Nearest centres for distortions without a kernel of their own: a table of a few thousand rows at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise._threads import chunk_bounds, thread_map

__all__ = ["assign_blocks"]

_BLOCK = 8192


def assign_blocks(
    distances: Callable[[Any], NDArray[np.float64]],
    rows: Any,
    given: NDArray[np.int64] | None,
    n_threads: int,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Label of the smallest distance, or the given one, and that distance.

    Parameters
    ----------
    distances : callable
        Rows to table (n, K).
    rows : object with ``len`` and ``take``
    given : (n,) int64 or None
        -1 for rows that are free.
    n_threads : int

    Returns
    -------
    labels : (n,) int64
    cost : (n,)
    """
    n_rows = len(rows)
    labels = np.empty(n_rows, dtype=np.int64)
    cost = np.empty(n_rows)

    def assign_block(bounds: tuple[int, int]) -> None:
        block = slice(*bounds)
        table = distances(rows.take(block))
        chosen = table.argmin(axis=1)
        if given is not None:
            chosen = np.where(given[block] >= 0, given[block], chosen)
        labels[block] = chosen
        cost[block] = np.take_along_axis(table, chosen[:, np.newaxis], axis=1)[:, 0]

    with thread_map(n_threads) as mapper:
        mapper(assign_block, chunk_bounds(0, n_rows, _BLOCK))
    return labels, cost
