"""Kernels from feature values and from the caller: Gaussian with a local width, and precomputed.

A link reaches exactly as far as the kernel does, so the kernel decides what links can do: a narrow Gaussian
does not propagate them, heat on a graph (:mod:`linkwise.cluster.heat`) follows the shape of the data.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cholesky
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.neighbors import NearestNeighbors

from linkwise._numba import kernel
from linkwise.cluster.origin import exact_origin, from_origin

__all__ = ["check_kernel", "gaussian_kernel", "local_scale", "nearest_neighbours"]

#: A precomputed kernel may have eigenvalues down to minus this share of its mean diagonal.
_INDEFINITE_SHARE = 1e-6


def nearest_neighbours(points: Any) -> NearestNeighbors:
    """Neighbours of points, measured from ``exact_origin(points)``: so has to be whatever is asked of them.

    Parameters
    ----------
    points : (n, d) array or sparse matrix

    Returns
    -------
    sklearn.neighbors.NearestNeighbors
        Fitted.

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise.cluster.kernels import nearest_neighbours
    >>> nearest_neighbours(np.array([[1e9], [1e9 + 2.0]])).kneighbors(n_neighbors=1)[0].ravel()
    array([2., 2.])
    """
    return NearestNeighbors().fit(from_origin(points, exact_origin(points)))


def local_scale(neighbours: NearestNeighbors, *, neighbour: int = 7) -> float:
    """Width for a Gaussian kernel: the median distance of the points to their 7th nearest neighbour.

    Parameters
    ----------
    neighbours : sklearn.neighbors.NearestNeighbors
        Fitted to the points.
    neighbour : int, default=7

    Returns
    -------
    float
        With many duplicates the median may be 0; then the median over the points with a positive distance;
        1 if all points are equal.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.neighbors import NearestNeighbors
    >>> from linkwise.cluster.kernels import local_scale
    >>> local_scale(NearestNeighbors().fit(np.arange(20.0)[:, np.newaxis]), neighbour=2)
    1.0
    """
    count = min(neighbour, neighbours.n_samples_fit_ - 1)
    distances = neighbours.kneighbors(n_neighbors=count)[0]
    for candidates in (distances[:, -1], distances[:, -1][distances[:, -1] > 0], [1.0]):
        if len(candidates) and np.median(candidates) > 0:
            return float(np.median(candidates))
    raise AssertionError("the last candidate is positive")


def gaussian_kernel(X: Any, Y: Any, sigma: float) -> NDArray[np.float64]:
    """exp(-abs(x - y)² / (2 sigma²)).

    Parameters
    ----------
    X : (n, d) array or sparse matrix
    Y : (m, d) array or sparse matrix
    sigma : float

    Returns
    -------
    (n, m) float64

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise.cluster.kernels import gaussian_kernel
    >>> gaussian_kernel(np.array([[0.0]]), np.array([[0.0], [2.0]]), sigma=1.0).round(4)
    array([[1.    , 0.1353]])
    """
    origin = exact_origin(Y)
    rows = from_origin(X, origin)
    # Around the origin the squares that scikit-learn subtracts are not much larger than their difference.
    table = euclidean_distances(rows, None if Y is X else from_origin(Y, origin), squared=True)
    result: NDArray[np.float64] = np.asarray(table, dtype=np.float64)
    result *= -0.5 / sigma**2
    return np.exp(result, out=result)


def check_kernel(matrix: NDArray[np.float64]) -> None:
    """Refuse a matrix that is no kernel: not square, not symmetric, or not positive semi-definite.

    Parameters
    ----------
    matrix : (N, N) float64
        Finite.

    Raises
    ------
    ValueError
        Naming what is wrong and what to do.

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise.cluster.kernels import check_kernel
    >>> check_kernel(np.array([[1.0, 0.5], [0.4, 1.0]]))
    Traceback (most recent call last):
    ...
    ValueError: the precomputed kernel is not symmetric: K[0, 1] = 0.5 but K[1, 0] = 0.4; pass (K + K.T) / 2
    """
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


@kernel
def _first_asymmetry(matrix: NDArray[np.float64], tolerance: float) -> tuple[int, int]:
    """First place (row by row) whose mirror image differs, or (-1, -1)."""
    n = matrix.shape[0]
    for i in range(n):
        for j in range(i + 1, n):
            if abs(matrix[i, j] - matrix[j, i]) > tolerance:
                return i, j
    return -1, -1
