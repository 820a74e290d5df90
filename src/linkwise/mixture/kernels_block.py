"""What every pass does to a block of points: load it, and turn scores into responsibilities.

A block holds up to ``PANELS`` panels of 16 (float64) or 32 (float32) points, feature by feature, so that
the points of a panel are the lanes of SIMD registers: point ``n``, feature ``i`` is element
``((n // panel_size) * n_rows + i) * panel_size + n % panel_size`` of a flat array. Row ``n_features`` of a
panel is all ones, so that counts and sums come out of the same products as second moments; further rows, if
any, are zeros.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from linkwise._math import log_positive
from linkwise._numba import kernel
from linkwise.mixture import simd

__all__ = ["PANELS", "empty_block", "empty_scores", "load_block", "normalise"]

#: Panels in a block: 256 points in float64, 512 in float32. Half as many cost 2 % (10 to 50 features), twice
#: as many 10 %, since the block then leaves the second-level cache.
PANELS = 16


@kernel
def empty_block(centres: NDArray[np.floating]) -> NDArray[np.floating]:
    """Room for a block, all zeros: lanes without a point must hold something finite."""
    block = np.empty(PANELS * simd.panel_size(centres) * centres.shape[1], dtype=centres.dtype)
    for n in range(block.size):
        block[n] = 0.0
    return block


@kernel
def load_block(
    values: NDArray[np.floating],
    row_stride: int,
    column_stride: int,
    rows: NDArray[np.int64],
    first: int,
    count: int,
    offset: NDArray[np.float64],
    n_rows: int,
    block: NDArray[np.floating],
) -> None:
    """Read the rows number first, ..., first + count - 1 of a selection into panels, less the offset.

    An empty ``rows`` selects all. The offset is subtracted in float64 before the block's type rounds. Lanes
    after the last point keep what they held, which responsibilities of 0 will cancel.
    """
    # Unsigned, so that no index needs numba's test for counting from the end: half the time of this loop.
    panel_size = np.uintp(simd.panel_size(block))
    n_features = np.uintp(offset.shape[0])
    column_step = np.uintp(column_stride)
    for n in range(np.uintp(count)):
        row = rows[np.uintp(first) + n] if rows.size > 0 else first + np.intp(n)
        source = np.uintp(row) * np.uintp(row_stride)
        target = (n // panel_size) * np.uintp(n_rows) * panel_size + n % panel_size
        for i in range(n_features):
            block[target + i * panel_size] = values[source + i * column_step] - offset[i]
        block[target + n_features * panel_size] = 1.0


@kernel
def empty_scores(centres: NDArray[np.floating]) -> NDArray[np.floating]:
    """Room for a score of every component and point of a block.

    Rows are longer than a block by a panel: rows a power of two apart would share few sets of the cache.
    """
    return np.empty((centres.shape[0], (PANELS + 1) * simd.panel_size(centres)), dtype=centres.dtype)


@kernel
def normalise(scores: NDArray[np.floating], count: int, n_panels: int, log_sums: NDArray[np.float64]) -> None:
    """Replace scores (K, lanes) by their softmax over k and write log sum_k exp(score) of each point.

    Lanes from ``count`` on belong to no point and get responsibilities of 0.
    """
    panel_size = simd.panel_size(scores)
    n_components = scores.shape[0]
    largest = np.empty(n_panels * panel_size, dtype=scores.dtype)
    sums = np.empty(n_panels * panel_size, dtype=scores.dtype)
    for lane in range(0, n_panels * panel_size, panel_size):
        top = simd.load_panel(scores[0], lane)
        for k in range(1, n_components):
            top = simd.maximum(simd.load_panel(scores[k], lane), top)
        total = simd.zeros_panel(sums)
        for k in range(n_components):
            q = simd.exp_nonpositive(simd.subtract(simd.load_panel(scores[k], lane), top))
            simd.store(scores[k], lane, q)
            total = simd.add(total, q)
        scale = simd.divide(simd.fill_panel(sums, 1.0), total)
        for k in range(n_components):
            simd.store(scores[k], lane, simd.multiply(simd.load_panel(scores[k], lane), scale))
        simd.store(largest, lane, top)
        simd.store(sums, lane, total)
    for n in range(count):
        log_sums[n] = largest[n] + log_positive(np.float64(sums[n]))
    for k in range(n_components):
        for n in range(count, n_panels * panel_size):
            scores[k, n] = 0.0
