"""Moments of a block of points, weighted by responsibilities; see ``kernels_block`` for its layout.

Sums over a block are taken in the type of the points, sums over blocks in float64.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from linkwise._numba import kernel
from linkwise.mixture import simd

__all__ = ["diagonal_moments", "full_moments", "moment_rows"]


def moment_rows(n_features: int) -> int:
    """Rows of a full moment matrix: the features and the constant 1, rounded up to whole tiles of 3."""
    return -(-(n_features + 1) // 3) * 3


@kernel
def diagonal_moments(
    block: NDArray[np.floating],
    n_panels: int,
    centres: NDArray[np.floating],
    responsibilities: NDArray[np.floating],
    moments: NDArray[np.float64],
) -> None:
    """Add sum q d, then sum q d * d, with d = (x - mu_k, 1), to moments[k] (2 * n_rows,)."""
    panel_size = simd.panel_size(block)
    n_components, n_rows = centres.shape
    for k in range(n_components):
        centre = centres[k]
        weights = responsibilities[k]
        for i in range(n_rows):
            mean = simd.broadcast_panel(centre, i)
            first = second = simd.zeros_panel(block)
            for panel in range(n_panels):
                d = simd.subtract(simd.load_panel(block, (panel * n_rows + i) * panel_size), mean)
                w = simd.multiply(d, simd.load_panel(weights, panel * panel_size))
                first = simd.add(first, w)
                second = simd.multiply_add(w, d, second)
            moments[k, i] += simd.total(first)
            moments[k, n_rows + i] += simd.total(second)


@kernel
def full_moments(
    block: NDArray[np.floating],
    n_panels: int,
    centres: NDArray[np.floating],
    responsibilities: NDArray[np.floating],
    moments: NDArray[np.float64],
) -> None:
    """Add sum q d d', d = (x - mu_k, 1), to moments[k] (n_rows, n_rows): tiles on and right of the diagonal.

    A tile of 3 x 3 keeps nine sums in registers: 6 loads for 9 multiply-adds. Going up from the last rows,
    the tile on the diagonal makes the deviations that the tiles right of it find ready. A component whose
    responsibilities are exactly 0 in the whole block is skipped.
    """
    size = simd.vector_size(block)
    panel_size = simd.panel_size(block)
    n_components, n_rows = centres.shape
    deviations = np.empty(n_panels * n_rows * panel_size, dtype=block.dtype)
    weighted = np.empty(n_panels * 3 * panel_size, dtype=block.dtype)
    for k in range(n_components):
        centre = centres[k]
        weights = responsibilities[k]
        count = simd.zeros_panel(block)
        for panel in range(n_panels):
            count = simd.add(count, simd.load_panel(weights, panel * panel_size))
        if simd.total(count) == 0.0:
            continue
        for i in range(n_rows - 3, -1, -3):
            s00 = s01 = s02 = s11 = s12 = s22 = simd.zeros(block)
            for panel in range(n_panels):
                source = (panel * n_rows + i) * panel_size
                target = panel * 3 * panel_size
                for lane in range(0, panel_size, size):
                    q = simd.load(weights, panel * panel_size + lane)
                    d0 = simd.subtract(simd.load(block, source + lane), simd.broadcast(centre, i))
                    w0 = simd.multiply(d0, q)
                    simd.store(deviations, source + lane, d0)
                    simd.store(weighted, target + lane, w0)
                    lane += panel_size
                    d1 = simd.subtract(simd.load(block, source + lane), simd.broadcast(centre, i + 1))
                    w1 = simd.multiply(d1, q)
                    simd.store(deviations, source + lane, d1)
                    simd.store(weighted, target + lane, w1)
                    lane += panel_size
                    d2 = simd.subtract(simd.load(block, source + lane), simd.broadcast(centre, i + 2))
                    w2 = simd.multiply(d2, q)
                    simd.store(deviations, source + lane, d2)
                    simd.store(weighted, target + lane, w2)
                    s00 = simd.multiply_add(w0, d0, s00)
                    s01 = simd.multiply_add(w0, d1, s01)
                    s02 = simd.multiply_add(w0, d2, s02)
                    s11 = simd.multiply_add(w1, d1, s11)
                    s12 = simd.multiply_add(w1, d2, s12)
                    s22 = simd.multiply_add(w2, d2, s22)
            moments[k, i, i] += simd.total(s00)
            moments[k, i, i + 1] += simd.total(s01)
            moments[k, i, i + 2] += simd.total(s02)
            moments[k, i + 1, i + 1] += simd.total(s11)
            moments[k, i + 1, i + 2] += simd.total(s12)
            moments[k, i + 2, i + 2] += simd.total(s22)
            for j in range(i + 3, n_rows, 3):
                s00 = s01 = s02 = s10 = s11 = s12 = s20 = s21 = s22 = simd.zeros(block)
                for panel in range(n_panels):
                    left = panel * 3 * panel_size
                    right = (panel * n_rows + j) * panel_size
                    for lane in range(0, panel_size, size):
                        w0 = simd.load(weighted, left + lane)
                        w1 = simd.load(weighted, left + panel_size + lane)
                        w2 = simd.load(weighted, left + 2 * panel_size + lane)
                        d = simd.load(deviations, right + lane)
                        s00 = simd.multiply_add(w0, d, s00)
                        s10 = simd.multiply_add(w1, d, s10)
                        s20 = simd.multiply_add(w2, d, s20)
                        d = simd.load(deviations, right + panel_size + lane)
                        s01 = simd.multiply_add(w0, d, s01)
                        s11 = simd.multiply_add(w1, d, s11)
                        s21 = simd.multiply_add(w2, d, s21)
                        d = simd.load(deviations, right + 2 * panel_size + lane)
                        s02 = simd.multiply_add(w0, d, s02)
                        s12 = simd.multiply_add(w1, d, s12)
                        s22 = simd.multiply_add(w2, d, s22)
                moments[k, i, j] += simd.total(s00)
                moments[k, i, j + 1] += simd.total(s01)
                moments[k, i, j + 2] += simd.total(s02)
                moments[k, i + 1, j] += simd.total(s10)
                moments[k, i + 1, j + 1] += simd.total(s11)
                moments[k, i + 1, j + 2] += simd.total(s12)
                moments[k, i + 2, j] += simd.total(s20)
                moments[k, i + 2, j + 1] += simd.total(s21)
                moments[k, i + 2, j + 2] += simd.total(s22)
