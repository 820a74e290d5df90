"""Algorithm B: one cannot-link at a time, so that two of them do not act like a must-link.

Under algorithm A two cannot-links that share a point act like a must-link between its two opponents, which is
wrong with more than two clusters. Algorithm B (Lu & Carreira-Perpinan 2008) conditions K^m, the kernel after
all must-links, on each cannot-link alone and takes the smallest affinity of all versions:

    A_ij = max(0, min_k K^{c,k}_ij),   K^{c,k} = K^m - w_k w_k^T,
    w_k = u_k / sqrt(d_k + e_k²),   u_k = K^m (e_i + e_j),   d_k = u_k[i] + u_k[j].

Since min_k K^{c,k}_ij = K^m_ij - max_k w_k[i] w_k[j], one (n_c, N) array is all that is needed.
"""

from __future__ import annotations

import numpy as np

from linkwise._arrays import Floats
from linkwise._kernels import kernel
from linkwise._kernels.simd import WIDTH, larger, load, splat, store
from linkwise._threads import chunk_bounds
from linkwise.spectral.propagation import Propagation, SignedLinks

#: Rows and columns of the block of maxima that stays in registers.
_BLOCK_ROWS, _BLOCK_COLUMNS = 4, 2 * WIDTH

#: Columns whose vectors stay in the cache while all rows pass.
_TILE = 64
# Products of a call of a kernel, a few tenths of a second: between two calls a signal gets through.
_SLICE = 3 * 10**8


def cannot_link_vectors(
    rows_of_kernel: Floats, must: Propagation, links: SignedLinks
) -> tuple[Floats, Floats]:
    """w_k (n_c, N) of every cannot-link, and the divisors sqrt(d_k + e_k²) that further points need."""
    i, j = links.pairs[:, 0], links.pairs[:, 1]
    vectors = must_link_sums(rows_of_kernel[i] + rows_of_kernel[j], must.whitened, must.whitened, links)
    every = np.arange(len(links.pairs))
    divisors = np.sqrt(vectors[every, i] + vectors[every, j] + links.variances)
    vectors /= divisors[:, np.newaxis]
    return vectors, divisors


def must_link_sums(sums: Floats, whitened: Floats, whitened_there: Floats, links: SignedLinks) -> Floats:
    """K^m(i, .) + K^m(j, .) of every cannot-link from those of K, ``sums`` (n_c, n), overwritten."""
    if len(whitened):
        at_links = whitened[:, links.pairs[:, 0]] + whitened[:, links.pairs[:, 1]]
        sums -= at_links.T @ whitened_there
    return sums


def weakest_affinity(must_kernel: Floats, vectors: Floats, *, clip: bool = True) -> Floats:
    """K^m - max_k w_k w_k^T (N, N) in place, clipped at 0; ``vectors`` (n_c, N) are w_k."""
    n_links, n = vectors.shape
    least = 0.0 if clip else -np.inf
    if n_links == 0:
        return np.maximum(must_kernel, least, out=must_kernel)
    # Rows of points instead of links, padded to whole blocks: what a block needs lies side by side.
    padding = -n % max(_BLOCK_ROWS, _BLOCK_COLUMNS)
    padded = np.pad(vectors, ((0, 0), (0, padding)))
    points = np.ascontiguousarray(padded.T)
    at_once = max(1, _SLICE // (n * n_links * _BLOCK_COLUMNS)) * _BLOCK_COLUMNS
    for start, stop in chunk_bounds(0, n, at_once):
        _subtract_largest_products(must_kernel, padded, points, least, start, stop)
    return must_kernel


@kernel
def _subtract_largest_products(
    matrix: Floats, vectors: Floats, points: Floats, least: float, start: int, stop: int
) -> None:
    """Lower triangle of these columns, block by block in registers, then mirrored."""
    n = matrix.shape[0]
    n_links = vectors.shape[0]
    columns = np.empty(n_links * _BLOCK_COLUMNS)
    rows = points.ravel()
    maxima = np.empty(_BLOCK_ROWS * _BLOCK_COLUMNS)
    for column in range(start, stop, _BLOCK_COLUMNS):
        for k in range(n_links):
            for c in range(_BLOCK_COLUMNS):
                columns[k * _BLOCK_COLUMNS + c] = vectors[k, column + c]
        for row in range(column, n, _BLOCK_ROWS):
            m00 = splat(-np.inf)
            m01 = splat(-np.inf)
            m10 = splat(-np.inf)
            m11 = splat(-np.inf)
            m20 = splat(-np.inf)
            m21 = splat(-np.inf)
            m30 = splat(-np.inf)
            m31 = splat(-np.inf)
            at0 = row * n_links
            at1 = at0 + n_links
            at2 = at1 + n_links
            at3 = at2 + n_links
            for k in range(n_links):
                c0 = load(columns, k * _BLOCK_COLUMNS)
                c1 = load(columns, k * _BLOCK_COLUMNS + WIDTH)
                r0 = splat(rows[at0 + k])
                m00 = larger(r0 * c0, m00)
                m01 = larger(r0 * c1, m01)
                r1 = splat(rows[at1 + k])
                m10 = larger(r1 * c0, m10)
                m11 = larger(r1 * c1, m11)
                r2 = splat(rows[at2 + k])
                m20 = larger(r2 * c0, m20)
                m21 = larger(r2 * c1, m21)
                r3 = splat(rows[at3 + k])
                m30 = larger(r3 * c0, m30)
                m31 = larger(r3 * c1, m31)
            store(maxima, 0, m00)
            store(maxima, WIDTH, m01)
            store(maxima, 2 * WIDTH, m10)
            store(maxima, 3 * WIDTH, m11)
            store(maxima, 4 * WIDTH, m20)
            store(maxima, 5 * WIDTH, m21)
            store(maxima, 6 * WIDTH, m30)
            store(maxima, 7 * WIDTH, m31)
            for r in range(min(_BLOCK_ROWS, n - row)):
                for c in range(min(_BLOCK_COLUMNS, n - column)):
                    i, j = row + r, column + c
                    if j <= i:
                        value = max(matrix[i, j] - maxima[r * _BLOCK_COLUMNS + c], least)
                        matrix[i, j] = value
                        matrix[j, i] = value


def largest_products(left: Floats, right: Floats) -> Floats:
    """max_k left[k, i] right[k, j], (n, m): what algorithm B subtracts between two sets of points."""
    result = np.full((left.shape[1], right.shape[1]), -np.inf)
    points, vectors = np.ascontiguousarray(left.T), np.ascontiguousarray(right)
    for start, stop in chunk_bounds(0, len(points), max(1, _SLICE // right.size)):
        _raise_to_products(points[start:stop], vectors, result[start:stop])
    return result


@kernel
def _raise_to_products(points: Floats, vectors: Floats, result: Floats) -> None:
    """Maxima of products, a tile of columns at a time."""
    for start in range(0, result.shape[1], _TILE):
        stop = min(start + _TILE, result.shape[1])
        for i in range(result.shape[0]):
            for k in range(vectors.shape[0]):
                value = points[i, k]
                for j in range(start, stop):
                    result[i, j] = max(result[i, j], value * vectors[k, j])
