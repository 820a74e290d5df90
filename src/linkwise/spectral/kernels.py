"""Kernels: heat diffusion on the graph of nearest neighbours, Gaussian with a local width, precomputed.

A link reaches exactly as far as the kernel does, so the kernel decides what links can do: a narrow Gaussian
does not propagate them, heat on a graph follows the shape of the data.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import LinAlgError, cholesky
from scipy.sparse.csgraph import reverse_cuthill_mckee
from scipy.special import ive
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.neighbors import NearestNeighbors

from linkwise._arrays import Floats, Ints
from linkwise._kernels import kernel
from linkwise._kernels.simd import WIDTH, load, splat, store
from linkwise._row_tables import exact_origin, from_origin
from linkwise._threads import chunk_bounds

#: Columns of the heat kernel computed side by side: one cache line of a row.
_COLUMNS = 2 * WIDTH

#: Products of a call of the kernel, a few tenths of a second: between two calls a signal gets through.
_SLICE = 3 * 10**8

#: Rows of a matrix that are compared with its columns at once.
_BAND = 128

#: A point's own scale is its distance to this neighbour (Zelnik-Manor & Perona 2004).
_SCALE_NEIGHBOUR = 7

#: Least weight of an edge to a near neighbour: an outlier stays tied to the points nearest to it.
_LEAST_EDGE = 1e-6

#: The Chebyshev series of the heat kernel is cut where the rest is below this.
_SERIES_REST = 1e-13


def neighbour_graph(neighbours: NearestNeighbors, n_neighbors: int) -> sparse.csr_array:
    """Symmetric graph (N, N) of ones with an edge where either point is among the nearest of the other."""
    count = min(n_neighbors, neighbours.n_samples_fit_ - 1)
    directed = sparse.csr_array(neighbours.kneighbors_graph(n_neighbors=count, mode="connectivity"))
    return sparse.csr_array(directed.maximum(directed.T))


def self_tuning_graph(neighbours: NearestNeighbors, n_neighbors: int) -> sparse.csr_array:
    """The same edges with weights exp(-d_ij² / (s_i s_j)), s_i being the distance of i to its 7th neighbour.

    Zelnik-Manor & Perona 2004; on all pairs this is no positive semi-definite kernel, a graph needs none.
    """
    most = neighbours.n_samples_fit_ - 1
    count, place = min(n_neighbors, most), min(_SCALE_NEIGHBOUR, most)
    distances, nearest = neighbours.kneighbors(n_neighbors=max(count, place))
    scale = distances[:, place - 1].copy()
    # Duplicates have distance 0 to each other: then all scales are raised to the smallest positive one.
    positive = scale[scale > 0.0]
    scale = np.maximum(scale, positive.min() if positive.size else 1.0)
    distances, nearest = distances[:, :count], nearest[:, :count]
    weights = np.exp(-((distances / scale[:, np.newaxis]) * (distances / scale[nearest])))
    starts = np.arange(0, weights.size + 1, count)
    edges = np.maximum(weights, _LEAST_EDGE).ravel()
    directed = sparse.csr_array((edges, nearest.ravel(), starts), shape=(most + 1, most + 1))
    return sparse.csr_array(directed.maximum(directed.T))


def normalised_adjacency(graph: sparse.csr_array) -> sparse.csr_array:
    """D^-1/2 G D^-1/2, whose difference from the identity is the normalised Laplacian."""
    scale = 1.0 / np.sqrt(graph.sum(axis=1))
    rows = np.repeat(np.arange(graph.shape[0]), np.diff(graph.indptr))
    values = graph.data * scale[rows] * scale[graph.indices]
    return sparse.csr_array((values, graph.indices, graph.indptr), shape=graph.shape)


def heat_columns(adjacency: sparse.csr_array, columns: Ints, diffusion_time: float) -> Floats:
    """Columns of exp(-t (I - S)), as rows (m, N), without any other part; S is the normalised adjacency.

    exp(-t (I - S)) = e^-t I_0(t) + 2 sum_k e^-t I_k(t) T_k(S) with Bessel functions I_k and Chebyshev
    polynomials T_k; about 7 sqrt(t) + 5 products with S reach machine precision.
    """
    # Neighbours with near numbers share cache lines: twice as fast at N = 5000.
    order = reverse_cuthill_mckee(sparse.csr_matrix(adjacency), symmetric_mode=True).astype(np.int64)
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    banded = sparse.csr_array(adjacency[order][:, order])
    columns = np.asarray(columns, dtype=np.int64)
    by_place = np.argsort(place[columns])
    result = np.empty((columns.size, order.size))
    coefficients = heat_series(diffusion_time)
    at_once = max(1, _SLICE // (banded.nnz * len(coefficients) * _COLUMNS + 1)) * _COLUMNS
    for start, stop in chunk_bounds(0, columns.size, at_once):
        chosen = by_place[start:stop]
        _heat_columns(
            banded.indptr.astype(np.int64), banded.indices.astype(np.int64), banded.data, order,
            place[columns[chosen]], chosen, coefficients, result,
        )  # fmt: skip
    return result


def heat_series(diffusion_time: float) -> Floats:
    """Coefficients of T_0(S), T_1(S), ... in exp(-t (I - S)); all are positive and they sum to 1."""
    most = int(10.0 * np.sqrt(diffusion_time) + 20.0)
    coefficients = 2.0 * ive(np.arange(most), diffusion_time)
    coefficients[0] /= 2.0
    rest = np.cumsum(coefficients[::-1])[::-1]
    return np.asarray(coefficients[: max(2, int((rest > _SERIES_REST).sum()))])


@kernel
def _heat_columns(
    indptr: Ints,
    indices: Ints,
    values: Floats,
    order: Ints,
    columns: Ints,
    target: Ints,
    coefficients: Floats,
    result: Floats,
) -> None:
    """T_{k+1} = 2 S T_k - T_{k-1} for ``columns``, a few at a time, to ``target``; row r is ``order[r]``."""
    n = indptr.size - 1
    before = np.empty(n * _COLUMNS)
    current = np.empty(n * _COLUMNS)
    total = np.empty(n * _COLUMNS)
    for start in range(0, columns.size, _COLUMNS):
        used = min(_COLUMNS, columns.size - start)
        before[:] = 0.0
        current[:] = 0.0
        total[:] = 0.0
        for c in range(used):
            current[columns[start + c] * _COLUMNS + c] = 1.0
            total[columns[start + c] * _COLUMNS + c] = coefficients[0]
        for degree in range(1, coefficients.size):
            factor = splat(1.0 if degree == 1 else 2.0)
            coefficient = splat(coefficients[degree])
            for row in range(n):
                first = splat(0.0)
                second = splat(0.0)
                for slot in range(indptr[row], indptr[row + 1]):
                    place = indices[slot] * _COLUMNS
                    value = splat(values[slot])
                    first = first + value * load(current, place)
                    second = second + value * load(current, place + WIDTH)
                # T_{k-1} of this row is not needed any more: its place takes T_{k+1}.
                here = row * _COLUMNS
                first = factor * first - load(before, here)
                second = factor * second - load(before, here + WIDTH)
                store(before, here, first)
                store(before, here + WIDTH, second)
                store(total, here, load(total, here) + coefficient * first)
                store(total, here + WIDTH, load(total, here + WIDTH) + coefficient * second)
            before, current = current, before
        for c in range(used):
            for row in range(n):
                result[target[start + c], order[row]] = total[row * _COLUMNS + c]


def heat_kernel(adjacency: sparse.csr_array, diffusion_time: float) -> Floats:
    """exp(-t (I - S)), scaled to unit diagonal."""
    result = heat_columns(adjacency, np.arange(adjacency.shape[0]), diffusion_time)
    _unit_diagonal(result, 1.0 / np.sqrt(result.diagonal()))
    return result


@kernel
def _unit_diagonal(matrix: Floats, scale: Floats) -> None:
    """Scale rows and columns and make the matrix exactly symmetric; rounding below 0 is set to 0."""
    tile = 64
    n = matrix.shape[0]
    for row_start in range(0, n, tile):
        row_stop = min(row_start + tile, n)
        for column_start in range(0, row_stop, tile):
            for i in range(row_start, row_stop):
                for j in range(column_start, min(column_start + tile, i + 1)):
                    value = max(0.5 * (matrix[i, j] + matrix[j, i]) * scale[i] * scale[j], 0.0)
                    matrix[i, j] = value
                    matrix[j, i] = value
        for i in range(row_start, row_stop):
            matrix[i, i] = 1.0


#: A precomputed kernel may have eigenvalues down to minus this share of its mean diagonal.
_INDEFINITE_SHARE = 1e-6


def nearest_neighbours(points: Any) -> NearestNeighbors:
    """Neighbours of points, measured from ``exact_origin(points)``, as rows to look up must be."""
    return NearestNeighbors().fit(from_origin(points, exact_origin(points)))


def neighbour_weights(distances: Floats) -> Floats:
    """Weights (n, m) of the nearest points by inverse distance, with sum 1; those that coincide share all."""
    coincides = distances == 0.0
    with np.errstate(divide="ignore"):
        weights = np.where(coincides.any(axis=1, keepdims=True), coincides, 1.0 / distances)
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def local_scale(neighbours: NearestNeighbors) -> float:
    """Width for a Gaussian kernel: the median positive distance to the 7th nearest neighbour, or 1."""
    count = min(_SCALE_NEIGHBOUR, neighbours.n_samples_fit_ - 1)
    distances = neighbours.kneighbors(n_neighbors=count)[0]
    for candidates in (distances[:, -1], distances[:, -1][distances[:, -1] > 0], [1.0]):
        if len(candidates) and np.median(candidates) > 0:
            return float(np.median(candidates))
    raise AssertionError("the last candidate is positive")


def gaussian_kernel(X: Any, Y: Any, sigma: float) -> Floats:
    """exp(-abs(x - y)² / (2 sigma²)), (n, m)."""
    origin = exact_origin(Y)
    rows = from_origin(X, origin)
    # Around the origin the squares that scikit-learn subtracts are not much larger than their difference.
    table = euclidean_distances(rows, None if Y is X else from_origin(Y, origin), squared=True)
    result: Floats = np.asarray(table, dtype=np.float64)
    result *= -0.5 / sigma**2
    return np.exp(result, out=result)


def check_kernel(matrix: Floats) -> None:
    """Refuse a matrix that is no kernel: not square, not symmetric, or not positive semi-definite."""
    n = matrix.shape[0]
    if matrix.shape != (n, n):
        raise ValueError(
            f"affinity='precomputed' needs a square kernel matrix, got shape {matrix.shape}; "
            "pass K with one row and one column per sample"
        )
    largest = float(np.abs(matrix).max())
    row, column = _first_asymmetry(matrix, 1e-8 * largest)
    if row >= 0:
        raise ValueError(
            f"the precomputed kernel is not symmetric: K[{row}, {column}] = {matrix[row, column]:.6g} but "
            f"K[{column}, {row}] = {matrix[column, row]:.6g}; pass (K + K.T) / 2"
        )
    diagonal = matrix.diagonal()
    scale = float(diagonal.mean())
    if scale <= 0.0 or diagonal.min() < 0.0:
        row = int(diagonal.argmin())
        raise ValueError(
            f"the precomputed kernel has K[{row}, {row}] = {diagonal[row]:.6g}: a kernel's diagonal is >= 0 "
            "and not all 0; pass a similarity, not a distance, with its diagonal"
        )
    lifted = matrix.copy()
    lifted[np.diag_indices(n)] += _INDEFINITE_SHARE * scale
    try:
        cholesky(lifted, overwrite_a=True, check_finite=False)
    except LinAlgError:
        smallest = float(np.linalg.eigvalsh(matrix)[0])
        raise ValueError(
            "the precomputed kernel is not positive semi-definite (smallest eigenvalue "
            f"{smallest:.3g}), so it is no covariance that links could be propagated through; add "
            f"{-smallest:.3g} to its diagonal, or use affinity='heat' on the data"
        ) from None


def _first_asymmetry(matrix: Floats, tolerance: float) -> tuple[int, int]:
    """First place (row by row) whose mirror image differs, or (-1, -1)."""
    for start, stop in chunk_bounds(0, len(matrix), _BAND):
        differs = np.abs(matrix[start:stop] - matrix[:, start:stop].T) > tolerance
        if differs.any():
            row, column = np.argwhere(differs)[0].tolist()
            return start + row, column
    return -1, -1
