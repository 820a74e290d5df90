"""The spectral step: degrees, eigenvectors of the normalised affinity, and labels from their rows.

d_i = sum_j abs(A_ij) (the diagonal counts), eigenvectors of D^-1/2 A D^-1/2 with the largest eigenvalues,
rows scaled to length one (Shi & Malik 2000; Ng, Jordan & Weiss 2002), then k-means or another rounding. After
clipping the affinity is not positive semi-definite, so the largest eigenvalues are meant with their sign.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh, qr, svd
from sklearn.cluster import KMeans

from linkwise.spectral.eigenvectors import Eigenpairs, Operator, leading_eigenpairs

__all__ = [
    "ASSIGNMENTS",
    "SpectralEmbedding",
    "affinity_embedding",
    "assign_labels",
    "cluster_centers",
    "cluster_qr",
    "discretise",
    "row_normalised",
]

#: Ways to turn the rows of an embedding into labels.
ASSIGNMENTS = ("kmeans", "discretize", "cluster_qr")

#: Degrees are raised to this share of their mean, so that a point without affinity has one.
_DEGREE_FLOOR = 1e-8

#: Matrices up to this size are diagonalised completely.
_SMALL = 300


class SpectralEmbedding(NamedTuple):
    """Leading eigenvectors of a normalised affinity.

    Attributes
    ----------
    eigenvalues : (k,) float64
        Largest first.
    vectors : (N, k) float64
        Orthonormal eigenvectors of D^-1/2 A D^-1/2.
    degrees : (N,) float64
        Diagonal of D.
    converged : bool
    n_iter : int
        Products with blocks of vectors; 0 if the matrix was diagonalised completely.
    history : (r, k) float64
        Eigenvalues as they were improved; one row if the matrix was diagonalised completely.
    """

    eigenvalues: NDArray[np.float64]
    vectors: NDArray[np.float64]
    degrees: NDArray[np.float64]
    converged: bool
    n_iter: int
    history: NDArray[np.float64]

    def rows(self) -> NDArray[np.float64]:
        """The vectors with rows of length one: what is clustered."""
        return row_normalised(self.vectors)


def row_normalised(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rows scaled to length one; rows of zeros stay.

    Parameters
    ----------
    vectors : (N, k) float64

    Returns
    -------
    (N, k) float64

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise.spectral.normalised_cut import row_normalised
    >>> row_normalised(np.array([[3.0, 4.0], [0.0, 0.0]]))
    array([[0.6, 0.8],
           [0. , 0. ]])
    """
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(length > 0.0, length, 1.0))


def affinity_embedding(
    affinity: NDArray[np.float64],
    k: int,
    *,
    rng: np.random.Generator,
    tol: float = 1e-4,
    degree_regularisation: float = 0.0,
) -> SpectralEmbedding:
    """Leading eigenvectors of D^-1/2 A D^-1/2.

    Parameters
    ----------
    affinity : (N, N) float64
        Symmetric; negative entries count with their sign in A and without it in the degrees.
    k : int
        Number of eigenvectors, at most N.
    rng : numpy.random.Generator
        Draws the start of the iteration.
    tol : float, default=1e-4
        Norm of the residual of an eigenvector.
    degree_regularisation : float, default=0.0
        Adds ``degree_regularisation * mean(d) / N`` to every entry of A (regularised spectral clustering).

    Returns
    -------
    SpectralEmbedding

    Examples
    --------
    Two blocks that do not touch have the eigenvalue 1 twice, and constant rows inside a block.

    >>> import numpy as np
    >>> from linkwise.spectral.normalised_cut import affinity_embedding
    >>> A = np.kron(np.eye(2), np.ones((2, 2)))
    >>> found = affinity_embedding(A, 2, rng=np.random.default_rng(0))
    >>> found.eigenvalues.round(6)
    array([1., 1.])
    >>> rows = found.rows()
    >>> (rows @ rows.T).round(6) + 0.0
    array([[1., 1., 0., 0.],
           [1., 1., 0., 0.],
           [0., 0., 1., 1.],
           [0., 0., 1., 1.]])
    """
    n = affinity.shape[0]
    degrees = _absolute_row_sums(affinity)
    background = degree_regularisation * float(degrees.mean()) / n
    degrees = floored_degrees(degrees + n * background)
    scale = 1.0 / np.sqrt(degrees)

    if n <= _SMALL:
        matrix = scale[:, np.newaxis] * (affinity + background) * scale
        values, vectors = eigh(matrix, subset_by_index=[n - k, n - 1])
        values = values[::-1]
        return SpectralEmbedding(values, vectors[:, ::-1], degrees, True, 0, values[np.newaxis])

    def product(block: NDArray[np.float64]) -> NDArray[np.float64]:
        scaled = np.ascontiguousarray((scale[:, np.newaxis] * block).T)
        image = scaled @ affinity  # symmetric; rows times matrix is the fast order for few rows
        if background:
            image += background * scaled.sum(axis=1, keepdims=True)
        return np.asarray((image * scale).T)

    return embedding_of(product, degrees, k, rng=rng, tol=tol)


def embedding_of(
    product: Operator, degrees: NDArray[np.float64], k: int, *, rng: np.random.Generator, tol: float
) -> SpectralEmbedding:
    """The same from a function that multiplies by D^-1/2 A D^-1/2."""
    pairs: Eigenpairs = leading_eigenpairs(product, degrees.size, k, rng=rng, tol=tol)
    return SpectralEmbedding(
        pairs.values, pairs.vectors, degrees, pairs.converged, pairs.n_iter, pairs.history
    )


def floored_degrees(degrees: NDArray[np.float64]) -> NDArray[np.float64]:
    """Degrees raised to a small share of their mean; 1 if all are 0."""
    mean = float(degrees.mean())
    return np.maximum(degrees, _DEGREE_FLOOR * mean if mean > 0.0 else 1.0)


def _absolute_row_sums(affinity: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sums of abs(A) over rows, without an N x N temporary."""
    sums = np.empty(affinity.shape[0])
    for start in range(0, affinity.shape[0], 256):
        np.abs(affinity[start : start + 256]).sum(axis=1, out=sums[start : start + 256])
    return sums


def assign_labels(
    rows: NDArray[np.float64], k: int, method: str, *, n_init: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Labels from the rows of an embedding.

    Parameters
    ----------
    rows : (N, m) float64
        Row-normalised eigenvectors.
    k : int
    method : {"kmeans", "discretize", "cluster_qr"}
    n_init : int
        Starts of k-means.
    rng : numpy.random.Generator

    Returns
    -------
    (N,) int64

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise.spectral.normalised_cut import assign_labels
    >>> rows = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> assign_labels(rows, 2, "cluster_qr", n_init=1, rng=np.random.default_rng(0))
    array([0, 0, 1])
    """
    if k == 1:
        return np.zeros(len(rows), dtype=np.int64)
    if method == "kmeans":
        seed = int(rng.integers(2**31))
        return KMeans(k, n_init=n_init, random_state=seed).fit_predict(rows).astype(np.int64)
    if method == "discretize":
        return discretise(rows, rng=rng)
    return cluster_qr(rows)


def discretise(
    rows: NDArray[np.float64], *, rng: np.random.Generator, max_iter: int = 30, n_restarts: int = 5
) -> NDArray[np.int64]:
    """Rotate the embedding so that its rows come close to unit vectors (Yu & Shi 2003).

    Alternates between labels (the largest coordinate of each rotated row) and the rotation that fits them
    best; the best of a few starts.

    Parameters
    ----------
    rows : (N, k) float64
        Row-normalised eigenvectors, one column per cluster.
    rng : numpy.random.Generator
    max_iter, n_restarts : int

    Returns
    -------
    (N,) int64

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise.spectral.normalised_cut import discretise
    >>> turned = np.array([[0.6, 0.8], [0.6, 0.8], [-0.8, 0.6]])
    >>> labels = discretise(turned, rng=np.random.default_rng(0))
    >>> bool(labels[0] == labels[1] != labels[2])
    True
    """
    best_labels, best_fit = np.zeros(len(rows), dtype=np.int64), -np.inf
    for _ in range(n_restarts):
        rotation = _spread_rows(rows, int(rng.integers(len(rows))))
        labels, fit = best_labels, -np.inf
        for _iteration in range(max_iter):
            labels = (rows @ rotation).argmax(axis=1)
            sums = np.zeros((rows.shape[1], rows.shape[1]))
            np.add.at(sums, labels, rows)
            left, singular, right = svd(sums)
            rotation = (left @ right).T
            improved = singular.sum() > fit * (1.0 + 1e-12) + 1e-12
            fit = float(singular.sum())
            if not improved:
                break
        if fit > best_fit:
            best_labels, best_fit = labels, fit
    return best_labels.astype(np.int64)


def _spread_rows(rows: NDArray[np.float64], first: int) -> NDArray[np.float64]:
    """K rows as columns: one given, each further one the least parallel to those before."""
    chosen = [rows[first]]
    overlap = np.zeros(len(rows))
    for _ in range(rows.shape[1] - 1):
        overlap += np.abs(rows @ chosen[-1])
        chosen.append(rows[int(overlap.argmin())])
    return np.column_stack(chosen)


def cluster_qr(rows: NDArray[np.float64]) -> NDArray[np.int64]:
    """Labels from a pivoted QR decomposition: no start, no iteration (Damle, Minden & Ying 2019).

    The k rows that QR picks first are most independent of each other, one in each cluster; the rotation
    closest to them turns the clusters onto the axes.

    Parameters
    ----------
    rows : (N, k) float64
        Row-normalised eigenvectors, one column per cluster.

    Returns
    -------
    (N,) int64

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise.spectral.normalised_cut import cluster_qr
    >>> cluster_qr(np.array([[0.6, 0.8], [0.6, 0.8], [-0.8, 0.6]]))
    array([0, 0, 1])
    """
    pivots = qr(rows.T, mode="r", pivoting=True)[1][: rows.shape[1]]
    left, _, right = svd(rows[pivots].T, full_matrices=False)
    return np.abs(rows @ (left @ right)).argmax(axis=1).astype(np.int64)


def cluster_centers(rows: NDArray[np.float64], labels: NDArray[np.int64], k: int) -> NDArray[np.float64]:
    """Mean row of each cluster; a cluster without rows gets NaN, so that nothing is nearest to it.

    Parameters
    ----------
    rows : (N, m) float64
    labels : (N,) int64
    k : int

    Returns
    -------
    (k, m) float64

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise.spectral.normalised_cut import cluster_centers
    >>> cluster_centers(np.array([[1.0], [3.0], [5.0]]), np.array([0, 0, 1]), 2)
    array([[2.],
           [5.]])
    """
    sums = np.zeros((k, rows.shape[1]))
    np.add.at(sums, labels, rows)
    counts = np.bincount(labels, minlength=k).astype(np.float64)
    counts[counts == 0] = np.nan
    return np.asarray(sums / counts[:, np.newaxis])
