"""One pass over a range of rows, block by block, inside one compiled call.

A block holds up to ``PANELS`` panels of 16 (float64) or 32 (float32) points, feature by feature, so that the
points of a panel are the lanes of SIMD registers: point n, feature i is element
``((n // lanes) * n_rows + i) * lanes + n % lanes``. Row ``n_features`` of a panel is all ones, so that counts
and sums come out of the same products as second moments; further rows, if any, are zeros.

There is one kernel for all passes, and everything it needs lies in one flat array, because compiling is
dear: a helper of its own costs 0.2 s, an ``np.empty`` inside a kernel 0.1 s. An array without elements stands
for an input not given or an output not wanted. The number of axes of ``factors`` and ``moments`` tells full
from diagonal covariances; numba drops the branch that does not apply.
"""

from __future__ import annotations

import numpy as np

from linkwise._arrays import AnyFloats, Floats, Ints
from linkwise._kernels import kernel
from linkwise._kernels.math import exp_nonpositive, log_positive
from linkwise._kernels.simd import (
    TILE,
    WIDTH,
    add_outer,
    add_tile_sums,
    add_upper_outer,
    broadcast_panel,
    broadcast_rows,
    lane_sum,
    larger,
    load,
    load_double,
    load_panel,
    load_rows,
    multiply_add,
    panel_size,
    peek,
    poke,
    scale_rows,
    select_below,
    splat_panel,
    store,
    store_rows,
    subtract_rows,
    vector_size,
    zero_tile,
)

#: Panels in a block: 256 points in float64, 512 in float32. Half as many cost 2 % (10 to 50 features), twice
#: as many 10 %, since the block then leaves the second-level cache.
PANELS = 16
_PANEL_BYTES = 128
#: Responsibilities below this are 0 in float32: their products with deviations would leave the normal
#: numbers, which some processors compute 100 times slower (a whole pass over 50 features 1.3 times).
_LEAST = 1e-33


def moment_rows(n_features: int) -> int:
    """Rows of a full moment matrix: the features and the constant 1, rounded up to whole tiles."""
    return -(-(n_features + 1) // TILE) * TILE


def room(centres: AnyFloats) -> tuple[AnyFloats, Floats]:
    """Memory for a block, its deviations, weighted rows, scores and two numbers of each point; log sums."""
    n_components, n_rows = centres.shape
    n_panels = PANELS * (2 * n_rows + TILE + 2) + (PANELS + 1) * n_components
    lanes = _PANEL_BYTES // centres.itemsize
    return np.empty(n_panels * lanes, dtype=centres.dtype), np.empty(PANELS * lanes)


def pack_factors(factors: AnyFloats) -> AnyFloats:
    """Reorder upper triangular factors (n, D, D) into the order in which scores read them.

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
def gaussian_pass(
    values: AnyFloats,
    row_stride: int,
    column_stride: int,
    offset: Floats,
    rows: Ints,
    start: int,
    stop: int,
    responsibilities: Floats,
    centres: AnyFloats,
    factors: AnyFloats,
    constants: AnyFloats,
    room: AnyFloats,
    log_sums: Floats,
    moments: Floats,
    log_density: Floats,
    labels: Ints,
    probabilities: AnyFloats,
    log_likelihood: Floats,
    confidence: AnyFloats,
) -> float:
    """Pass over the rows number start, ..., stop - 1 of a selection; return the sum of their log-likelihoods.

    An empty ``rows`` selects all. Responsibilities come from the Gaussians, or are given; then the sum is 0.
    Moments are added to ``moments``, the other outputs are written.
    """
    lanes = panel_size(room)
    size = vector_size(room)
    n_components, n_rows = centres.shape
    n_features = offset.shape[0]
    # Where things lie in ``room``. Rows of scores are longer than a block by a panel: rows a power of two
    # apart would share few sets of the cache.
    deviations = PANELS * n_rows * lanes
    weighted = 2 * deviations
    scores = weighted + PANELS * TILE * lanes
    row_length = (PANELS + 1) * lanes
    tops = scores + n_components * row_length
    sums = tops + PANELS * lanes
    least = splat_panel(room, _LEAST if size > WIDTH else 0.0)
    total_log_likelihood = 0.0
    for first in range(start, stop, PANELS * lanes):
        count = min(PANELS * lanes, stop - first)
        n_panels = (count + lanes - 1) // lanes

        # Load the block. The offset is subtracted in float64 before the block's type rounds. Lanes after the
        # last point repeat it: they must be finite, and responsibilities of 0 will cancel them.
        for n in range(n_panels * lanes):
            row = first + min(n, count - 1)
            source = (peek(rows, row) if rows.shape[0] > 0 else row) * row_stride
            lane = n & (lanes - 1)
            target = (n - lane) * n_rows + lane
            for i in range(n_features):
                poke(room, target, peek(values, source) - peek(offset, i))
                source += column_stride
                target += lanes
        for panel in range(n_panels):
            block = panel * n_rows * lanes
            store(room, block + n_features * lanes, splat_panel(room, 1.0))
            for i in range(n_features + 1, n_rows):
                store(room, block + i * lanes, splat_panel(room, 0.0))

        if responsibilities.shape[0] > 0:
            for k in range(n_components):
                at = scores + k * row_length
                for n in range(n_panels * lanes):
                    given = peek(responsibilities, (first + n) * n_components + k) if n < count else 0.0
                    poke(room, at + n, given)
        else:
            # scores[k, n] = constants[k] - |P_k' (x - mu_k)|^2 / 2. Two columns of a packed triangle (a
            # single one serves all k) against a panel of points keep 8 sums in registers: 6 loads for 8
            # multiply-adds. The last two rows of a pair of columns are new, and their deviations are made
            # there, between the products of others: 10 % faster than all at first.
            for k in range(n_components):
                centre = k * n_rows
                for panel in range(n_panels):
                    block = panel * n_rows * lanes
                    square = splat_panel(room, 0.0)
                    if factors.ndim == 3:
                        n_pairs = factors.shape[1]
                        columns = k * n_pairs * 4 * n_pairs if factors.shape[0] > 1 else 0
                        for pair in range(n_pairs):
                            even = odd = splat_panel(room, 0.0)
                            for i in range(2 * pair):
                                d = load_panel(room, deviations + i * lanes)
                                even = multiply_add(d, broadcast_panel(factors, columns + 2 * i), even)
                                odd = multiply_add(d, broadcast_panel(factors, columns + 2 * i + 1), odd)
                            i = 2 * pair
                            d = load_panel(room, block + i * lanes) - broadcast_panel(centres, centre + i)
                            store(room, deviations + i * lanes, d)
                            even = multiply_add(d, broadcast_panel(factors, columns + 2 * i), even)
                            odd = multiply_add(d, broadcast_panel(factors, columns + 2 * i + 1), odd)
                            i += 1
                            d = load_panel(room, block + i * lanes) - broadcast_panel(centres, centre + i)
                            store(room, deviations + i * lanes, d)
                            odd = multiply_add(d, broadcast_panel(factors, columns + 2 * i + 1), odd)
                            square = multiply_add(even, even, multiply_add(odd, odd, square))
                            columns += 4 * n_pairs
                    else:
                        for i in range(n_features):
                            d = load_panel(room, block + i * lanes) - broadcast_panel(centres, centre + i)
                            y = d * broadcast_panel(factors, k * n_features + i)
                            square = multiply_add(y, y, square)
                    half = splat_panel(room, -0.5)
                    score = multiply_add(square, half, broadcast_panel(constants, k))
                    store(room, scores + k * row_length + panel * lanes, score)

            if log_density.shape[0] > 0:
                for n in range(count):
                    for k in range(n_components):
                        at = (first + n) * n_components + k
                        poke(log_density, at, peek(room, scores + k * row_length + n))
            if labels.shape[0] > 0:
                for n in range(count):
                    best = 0
                    top_score = peek(room, scores + n)
                    for k in range(1, n_components):
                        score = peek(room, scores + k * row_length + n)
                        if score > top_score:
                            best = k
                            top_score = score
                    poke(labels, first + n, best)

            if moments.shape[0] + probabilities.shape[0] + log_likelihood.shape[0] + confidence.shape[0] > 0:
                # Softmax over k, and log sum_k exp(score) of each point.
                for lane in range(0, n_panels * lanes, lanes):
                    top = load_panel(room, scores + lane)
                    for k in range(1, n_components):
                        top = larger(load_panel(room, scores + k * row_length + lane), top)
                    total = splat_panel(room, 0.0)
                    for k in range(n_components):
                        at = scores + k * row_length + lane
                        q = exp_nonpositive(load_panel(room, at) - top)
                        q = select_below(q, least, splat_panel(room, 0.0), q)
                        store(room, at, q)
                        total = total + q
                    scale = splat_panel(room, 1.0) / total
                    for k in range(n_components):
                        at = scores + k * row_length + lane
                        store(room, at, load_panel(room, at) * scale)
                    store(room, tops + lane, top)
                    store(room, sums + lane, total)
                for n in range(0, n_panels * lanes, WIDTH):
                    logarithm = log_positive(load_double(room, sums + n))
                    store(log_sums, n, load_double(room, tops + n) + logarithm)
                for n in range(count):
                    total_log_likelihood += peek(log_sums, n)
                if log_likelihood.shape[0] > 0:
                    for n in range(count):
                        poke(log_likelihood, first + n, peek(log_sums, n))
                if confidence.shape[0] > 0:
                    # The largest term of the sum is exp(0).
                    for n in range(count):
                        poke(confidence, first + n, 1.0 / peek(room, sums + n))
                if probabilities.shape[0] > 0:
                    for n in range(count):
                        for k in range(n_components):
                            at = (first + n) * n_components + k
                            poke(probabilities, at, peek(room, scores + k * row_length + n))
                for k in range(n_components):
                    for n in range(count, n_panels * lanes):
                        poke(room, scores + k * row_length + n, 0.0)

        # Sums over a block are taken in the type of the points, sums over blocks in float64. A component
        # whose responsibilities are exactly 0 in the whole block is skipped.
        for k in range(moments.shape[0]):
            centre = k * n_rows
            weights = scores + k * row_length
            share = splat_panel(room, 0.0)
            for panel in range(n_panels):
                share = share + load_panel(room, weights + panel * lanes)
            if lane_sum(share) == 0.0:
                continue
            if moments.ndim == 3:
                # Sums of q d d', d = (x - mu_k, 1): tiles on and right of the diagonal. A tile keeps nine
                # sums in registers: 6 loads for 9 multiply-adds. Going up from the last rows, the tile on
                # the diagonal makes the deviations that the tiles right of it find ready.
                for i in range(n_rows - TILE, -1, -TILE):
                    tile = zero_tile(room)
                    for panel in range(n_panels):
                        source = (panel * n_rows + i) * lanes
                        target = weighted + panel * TILE * lanes
                        for lane in range(0, lanes, size):
                            d = load_rows(room, source + lane, lanes)
                            d = subtract_rows(d, broadcast_rows(centres, centre + i))
                            w = scale_rows(d, load(room, weights + panel * lanes + lane))
                            store_rows(room, deviations + source + lane, lanes, d)
                            store_rows(room, target + lane, lanes, w)
                            tile = add_upper_outer(tile, w, d)
                    add_tile_sums(moments, (centre + i) * n_rows + i, n_rows, tile)
                    for j in range(i + TILE, n_rows, TILE):
                        tile = zero_tile(room)
                        for panel in range(n_panels):
                            left = weighted + panel * TILE * lanes
                            right = deviations + (panel * n_rows + j) * lanes
                            for lane in range(0, lanes, size):
                                w = load_rows(room, left + lane, lanes)
                                tile = add_outer(tile, w, load_rows(room, right + lane, lanes))
                        add_tile_sums(moments, (centre + i) * n_rows + j, n_rows, tile)
            else:
                # Sums of q d, then of q d * d.
                for i in range(n_rows):
                    first_moment = second_moment = splat_panel(room, 0.0)
                    for panel in range(n_panels):
                        x = load_panel(room, (panel * n_rows + i) * lanes)
                        d = x - broadcast_panel(centres, centre + i)
                        w = d * load_panel(room, weights + panel * lanes)
                        first_moment = first_moment + w
                        second_moment = multiply_add(w, d, second_moment)
                    moments[k, i] += lane_sum(first_moment)
                    moments[k, n_rows + i] += lane_sum(second_moment)
    return total_log_likelihood
