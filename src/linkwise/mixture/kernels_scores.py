"""Log-densities of a block of points; see ``kernels_block`` for its layout."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from linkwise._numba import kernel
from linkwise.mixture import simd

__all__ = ["block_scores", "pack_factors"]


def pack_factors(factors: NDArray[np.floating]) -> NDArray[np.floating]:
    """Reorder upper triangular factors (n, D, D) into the order ``block_scores`` reads them.

    ``packed[k, j // 2, 2 * i + j % 2] = factors[k, i, j]``, with an odd D padded by zeros: columns in pairs,
    shape (n, ceil(D / 2), 4 * ceil(D / 2)).
    """
    n_factors, n_features, _ = factors.shape
    even = n_features + n_features % 2
    padded = np.zeros((n_factors, even, even), dtype=factors.dtype)
    padded[:, :n_features, :n_features] = factors
    pairs = padded.reshape(n_factors, even, even // 2, 2).transpose(0, 2, 1, 3)
    return np.ascontiguousarray(pairs).reshape(n_factors, even // 2, 2 * even)


@kernel
def block_scores(
    block: NDArray[np.floating],
    n_panels: int,
    centres: NDArray[np.floating],
    factors: NDArray[np.floating],
    constants: NDArray[np.floating],
    scores: NDArray[np.floating],
) -> None:
    """Write scores[k, point] = constants[k] - |P_k' (x - mu_k)|^2 / 2.

    ``factors`` with three axes are packed triangles P (a single one serves all k), with two axes (K, D) the
    diagonals of P; numba drops the branch that does not apply. Two columns of a triangle against a panel of
    points keep 8 sums in registers: 6 loads for 8 multiply-adds. The last two rows of a pair of columns are
    new, and their deviations are made there, between the products of others: 10 % faster than all at first.
    """
    panel_size = simd.panel_size(block)
    n_components, n_rows = centres.shape
    deviations = np.empty(n_rows * panel_size, dtype=block.dtype)
    for k in range(n_components):
        centre = centres[k]
        factor = factors[k if factors.shape[0] > 1 else 0]
        row = scores[k]
        for panel in range(n_panels):
            first = panel * n_rows * panel_size
            square = simd.zeros_panel(block)
            if factors.ndim == 3:
                for pair in range(factor.shape[0]):
                    columns = factor[pair]
                    even = odd = simd.zeros_panel(block)
                    for i in range(2 * pair):
                        d = simd.load_panel(deviations, i * panel_size)
                        even = simd.multiply_add(d, simd.broadcast_panel(columns, 2 * i), even)
                        odd = simd.multiply_add(d, simd.broadcast_panel(columns, 2 * i + 1), odd)
                    i = 2 * pair
                    lane = i * panel_size
                    d = simd.subtract(simd.load_panel(block, first + lane), simd.broadcast_panel(centre, i))
                    simd.store(deviations, lane, d)
                    even = simd.multiply_add(d, simd.broadcast_panel(columns, 2 * i), even)
                    odd = simd.multiply_add(d, simd.broadcast_panel(columns, 2 * i + 1), odd)
                    i += 1
                    lane += panel_size
                    d = simd.subtract(simd.load_panel(block, first + lane), simd.broadcast_panel(centre, i))
                    simd.store(deviations, lane, d)
                    odd = simd.multiply_add(d, simd.broadcast_panel(columns, 2 * i + 1), odd)
                    square = simd.multiply_add(even, even, simd.multiply_add(odd, odd, square))
            else:
                for i in range(factor.shape[0]):
                    x = simd.load_panel(block, first + i * panel_size)
                    d = simd.subtract(x, simd.broadcast_panel(centre, i))
                    y = simd.multiply(d, simd.broadcast_panel(factor, i))
                    square = simd.multiply_add(y, y, square)
            half = simd.fill_panel(deviations, -0.5)
            constant = simd.broadcast_panel(constants, k)
            simd.store(row, panel * panel_size, simd.multiply_add(square, half, constant))
