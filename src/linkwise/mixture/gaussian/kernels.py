"""What every pass does to a block of points: load it, and turn scores into responsibilities.

A block holds up to ``PANELS`` panels of 16 (float64) or 32 (float32) points, feature by feature, so that
the points of a panel are the lanes of SIMD registers: point ``n``, feature ``i`` is element
``((n // panel_size) * n_rows + i) * panel_size + n % panel_size`` of a flat array. Row ``n_features`` of a
panel is all ones, so that counts and sums come out of the same products as second moments; further rows, if
any, are zeros.

Log-densities of a block of points; see ``kernels_block`` for its layout.

Moments of a block of points, weighted by responsibilities; see ``kernels_block`` for its layout.

Sums over a block are taken in the type of the points, sums over blocks in float64.

One pass over a range of rows, block by block, inside one compiled call.

The number of axes of ``factors`` and ``moments`` tells full from diagonal covariances; numba drops the branch
that does not apply. There are two kernels, not one for each pass in ``passes``, because each compiles for
more than a second: an array without elements stands for an input not given or an output not wanted.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from linkwise._kernels import kernel, simd
from linkwise._kernels.math import log_positive

__all__ = [
    "PANELS",
    "block_scores",
    "diagonal_moments",
    "empty_block",
    "empty_scores",
    "full_moments",
    "load_block",
    "moment_rows",
    "moments_range",
    "normalise",
    "pack_factors",
    "posterior_range",
]

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


@kernel
def moments_range(
    values: NDArray[np.floating],
    row_stride: int,
    column_stride: int,
    offset: NDArray[np.float64],
    rows: NDArray[np.int64],
    start: int,
    stop: int,
    responsibilities: NDArray[np.float64],
    centres: NDArray[np.floating],
    factors: NDArray[np.floating],
    constants: NDArray[np.floating],
    moments: NDArray[np.float64],
) -> float:
    """Add the moments of the rows number start, ..., stop - 1 of a selection; return their log-likelihood.

    Responsibilities come from the Gaussians, or from ``responsibilities``; then the log-likelihood is 0.
    """
    panel_size = simd.panel_size(centres)
    block_size = PANELS * panel_size
    n_components = centres.shape[0]
    block = empty_block(centres)
    weights = empty_scores(centres)
    log_sums = np.empty(block_size, dtype=np.float64)
    log_likelihood = 0.0
    for first in range(start, stop, block_size):
        count = min(block_size, stop - first)
        n_panels = (count + panel_size - 1) // panel_size
        load_block(values, row_stride, column_stride, rows, first, count, offset, centres.shape[1], block)
        if responsibilities.size > 0:
            for k in range(n_components):
                for n in range(count):
                    weights[k, n] = responsibilities[first + n, k]
                for n in range(count, n_panels * panel_size):
                    weights[k, n] = 0.0
        else:
            block_scores(block, n_panels, centres, factors, constants, weights)
            normalise(weights, count, n_panels, log_sums)
            for n in range(count):
                log_likelihood += log_sums[n]
        if moments.ndim == 3:
            full_moments(block, n_panels, centres, weights, moments)
        else:
            diagonal_moments(block, n_panels, centres, weights, moments)
    return log_likelihood


@kernel
def posterior_range(
    values: NDArray[np.floating],
    row_stride: int,
    column_stride: int,
    offset: NDArray[np.float64],
    rows: NDArray[np.int64],
    start: int,
    stop: int,
    centres: NDArray[np.floating],
    factors: NDArray[np.floating],
    constants: NDArray[np.floating],
    log_density: NDArray[np.float64],
    labels: NDArray[np.int64],
    probabilities: NDArray[np.floating],
    log_likelihood: NDArray[np.float64],
) -> None:
    """Write what is wanted of the rows number start, ..., stop - 1 of a selection."""
    panel_size = simd.panel_size(centres)
    block_size = PANELS * panel_size
    n_components = centres.shape[0]
    block = empty_block(centres)
    scores = empty_scores(centres)
    log_sums = np.empty(block_size, dtype=np.float64)
    for first in range(start, stop, block_size):
        count = min(block_size, stop - first)
        n_panels = (count + panel_size - 1) // panel_size
        load_block(values, row_stride, column_stride, rows, first, count, offset, centres.shape[1], block)
        block_scores(block, n_panels, centres, factors, constants, scores)
        if log_density.size > 0:
            for n in range(count):
                for k in range(n_components):
                    log_density[first + n, k] = scores[k, n]
        if labels.size > 0:
            for n in range(count):
                best = 0
                for k in range(1, n_components):
                    if scores[k, n] > scores[best, n]:
                        best = k
                labels[first + n] = best
        if probabilities.size > 0 or log_likelihood.size > 0:
            normalise(scores, count, n_panels, log_sums)
        if probabilities.size > 0:
            for n in range(count):
                for k in range(n_components):
                    probabilities[first + n, k] = scores[k, n]
        if log_likelihood.size > 0:
            for n in range(count):
                log_likelihood[first + n] = log_sums[n]
