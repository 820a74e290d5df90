"""Links propagated through a kernel: the posterior covariance of a Gaussian process that observes them.

A kernel K is the covariance of a zero-mean Gaussian process f whose sign is the label. A must-link observes
f_i - f_j ~ N(0, e²), a cannot-link f_i + f_j ~ N(0, e²); the posterior covariance is the new affinity,

    Kbar = (K^-1 + V E^-1 V^T)^-1,   V (N x L): +1 at i, -1 (must) or +1 (cannot) at j,   E = diag(e_l²)

(Lu & Carreira-Perpinan 2008, Eqs. 2 and 3; their Eq. 5 has another factor, see the errata E2). It is never
computed like that: with U = V^T K (L x N) and the Cholesky factor R of E + V^T K V (L x L),

    Kbar = K - W^T W,   W = R^-1 U.

No inverse of K is needed, so K may be singular; its condition number does not matter.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.linalg import LinAlgError, cholesky, eigh
from scipy.linalg.blas import dsyrk, dtrsm

from linkwise._kernels import kernel

__all__ = [
    "Propagation",
    "SignedLinks",
    "link_columns",
    "propagate",
    "propagated_kernel",
    "signed_incidence",
    "signed_links",
]

#: Smallest variance of a link relative to the kernel's mean diagonal. A link this hard is kept to 1e-5 of the
#: kernel's scale, and the Cholesky factor of E + V^T K V still has six digits when V^T K V is singular.
VARIANCE_FLOOR = 1e-10

#: Eigenvalues of E + V^T K V below this share of the largest are dropped when Cholesky fails.
_DROPPED_SHARE = 1e-10

_TILE = 64


class SignedLinks(NamedTuple):
    """Links as the Gaussian process observes them.

    Attributes
    ----------
    pairs : (L, 2) int64
    signs : (L,) float64
        +1 must-link, -1 cannot-link.
    variances : (L,) float64
        e_l², in units of the kernel.
    """

    pairs: NDArray[np.int64]
    signs: NDArray[np.float64]
    variances: NDArray[np.float64]

    def select(self, rows: NDArray[np.bool_]) -> SignedLinks:
        """The links of these rows."""
        return SignedLinks(self.pairs[rows], self.signs[rows], self.variances[rows])


def signed_links(pairs: ArrayLike, weights: ArrayLike, softness: float, scale: float) -> SignedLinks:
    """Signs and variances of links.

    Parameters
    ----------
    pairs : (L, 2) array_like of int
    weights : (L,) array_like
        As in :class:`linkwise.Constraints`: the sign is the kind of link, infinite weights are hard.
    softness : float
        e relative to the kernel: a link of weight w has variance ``softness**2 / w * scale``; a hard link
        counts as w = 1. The variance is at least ``1e-10 * scale``, so 0 means the hard limit.
    scale : float
        Mean diagonal of the kernel.

    Returns
    -------
    SignedLinks

    Examples
    --------
    >>> from linkwise import Constraints
    >>> from linkwise.spectral.propagation import signed_links
    >>> links = Constraints(4, must_link=[(0, 1)], cannot_link=[(1, 2)], weight=[float("inf"), 4.0])
    >>> signed_links(links.pairs, links.weights, softness=0.5, scale=1.0).variances
    array([0.25  , 0.0625])
    """
    values = np.asarray(weights, dtype=np.float64)
    strength = np.where(np.isinf(values), 1.0, np.abs(values))
    variances = np.maximum(softness**2 / strength, VARIANCE_FLOOR) * scale
    return SignedLinks(np.asarray(pairs, dtype=np.int64).reshape(-1, 2), np.sign(values), variances)


def signed_incidence(n_points: int, links: SignedLinks) -> sparse.csc_array:
    """The sparse matrix V (N x L) with one column per link: +1 at i, -1 (must) or +1 (cannot) at j.

    Parameters
    ----------
    n_points : int
    links : SignedLinks

    Returns
    -------
    (n_points, L) scipy.sparse.csc_array

    Examples
    --------
    >>> from linkwise.spectral.propagation import signed_incidence, signed_links
    >>> signed_incidence(3, signed_links([(0, 1), (1, 2)], [1.0, -1.0], 0.1, 1.0)).toarray()
    array([[ 1.,  0.],
           [-1.,  1.],
           [ 0.,  1.]])
    """
    n_links = len(links.pairs)
    values = np.column_stack([np.ones(n_links), -links.signs]).ravel()
    starts = np.arange(0, 2 * n_links + 1, 2)
    return sparse.csc_array((values, links.pairs.ravel(), starts), shape=(n_points, n_links))


class Propagation(NamedTuple):
    """What links do to a kernel: Kbar = K - W^T W, kept as W.

    Attributes
    ----------
    links : SignedLinks
    factor : (L, L) float64 or (r, L) float64
        Lower Cholesky factor R of E + V^T K V; or, if ``triangular`` is False, T with T^T T its
        pseudo-inverse.
    triangular : bool
    whitened : (L or r, N) float64
        W.
    """

    links: SignedLinks
    factor: NDArray[np.float64]
    triangular: bool
    whitened: NDArray[np.float64]

    def whiten(self, columns: NDArray[np.float64]) -> NDArray[np.float64]:
        """w(x) = R^-1 V^T k(X, x) of further points.

        Parameters
        ----------
        columns : (L, n) float64
            V^T k(X, x): :func:`link_columns` of the kernel between the training points and these points.

        Returns
        -------
        (L or r, n) float64
        """
        if not self.triangular:
            return self.factor @ columns
        return _solve_lower(self.factor, columns)

    def entries(
        self, kernel_entries: NDArray[np.float64], rows: NDArray[np.int64], columns: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Kbar at single places.

        Parameters
        ----------
        kernel_entries : (m,) float64
            K[rows, columns].
        rows, columns : (m,) int64

        Returns
        -------
        (m,) float64
        """
        return kernel_entries - np.einsum("lm,lm->m", self.whitened[:, rows], self.whitened[:, columns])

    def product(
        self, kernel_product: NDArray[np.float64], vectors: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Kbar times vectors.

        Parameters
        ----------
        kernel_product : (N,) or (N, m) float64
            K @ vectors.
        vectors : (N,) or (N, m) float64

        Returns
        -------
        ndarray of the same shape
        """
        return kernel_product - self.whitened.T @ (self.whitened @ vectors)


def link_columns(rows_of_kernel: NDArray[np.float64], links: SignedLinks) -> NDArray[np.float64]:
    """U = V^T K: one row per link, K[i] - K[j] for a must-link and K[i] + K[j] for a cannot-link.

    Parameters
    ----------
    rows_of_kernel : (N, n) float64
        k between the training points and some points; K itself for U.
    links : SignedLinks

    Returns
    -------
    (L, n) float64

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise.spectral.propagation import link_columns, signed_links
    >>> link_columns(np.eye(3), signed_links([(0, 1), (1, 2)], [1.0, -1.0], 0.1, 1.0))
    array([[ 1., -1.,  0.],
           [ 0.,  1.,  1.]])
    """
    columns: NDArray[np.float64] = rows_of_kernel[links.pairs[:, 0]]
    columns -= links.signs[:, np.newaxis] * rows_of_kernel[links.pairs[:, 1]]
    return columns


def propagate(columns: NDArray[np.float64], links: SignedLinks) -> Propagation:
    """Condition the Gaussian process on links, O(N L² + L³).

    Parameters
    ----------
    columns : (L, N) float64
        U, from :func:`link_columns` of the kernel; overwritten.
    links : SignedLinks

    Returns
    -------
    Propagation

    Examples
    --------
    A must-link between two far points makes them one: the correlation of the sites goes to 1.

    >>> import numpy as np
    >>> from linkwise.spectral.propagation import link_columns, propagate, propagated_kernel, signed_links
    >>> K = np.exp(-0.5 * np.subtract.outer([0.0, 1.0, 9.0, 10.0], [0.0, 1.0, 9.0, 10.0]) ** 2)
    >>> links = signed_links([(0, 3)], [np.inf], softness=0.1, scale=1.0)
    >>> propagated_kernel(K, propagate(link_columns(K, links), links)).round(2)
    array([[0.5 , 0.3 , 0.3 , 0.5 ],
           [0.3 , 0.82, 0.18, 0.3 ],
           [0.3 , 0.18, 0.82, 0.3 ],
           [0.5 , 0.3 , 0.3 , 0.5 ]])
    """
    i, j = links.pairs[:, 0], links.pairs[:, 1]
    gram = columns[:, i] - links.signs * columns[:, j]
    gram = 0.5 * (gram + gram.T)
    gram[np.diag_indices_from(gram)] += links.variances
    try:
        factor = np.asfortranarray(cholesky(gram, lower=True, check_finite=False))
        return Propagation(links, factor, True, _solve_lower(factor, columns, overwrite=True))
    except LinAlgError:
        # Rounding made a nearly singular matrix indefinite. U lies in the range of V^T K V, so
        # the pseudo-inverse is the limit.
        values, vectors = eigh(gram)
        kept = values > _DROPPED_SHARE * values[-1]
        whitening = (vectors[:, kept] / np.sqrt(values[kept])).T
        return Propagation(links, whitening, False, whitening @ columns)


def propagated_kernel(
    kernel_matrix: NDArray[np.float64], propagation: Propagation, *, clip: bool = False
) -> NDArray[np.float64]:
    """Kbar = K - W^T W as a new matrix; optionally max(0, Kbar), the affinity of algorithm A.

    Parameters
    ----------
    kernel_matrix : (N, N) float64
    propagation : Propagation
    clip : bool, default=False

    Returns
    -------
    (N, N) float64
    """
    result = np.array(kernel_matrix, dtype=np.float64, order="C")
    if len(propagation.whitened):
        # The transpose of a C array is the Fortran array BLAS wants: its upper triangle is our lower one.
        dsyrk(-1.0, propagation.whitened.T, beta=1.0, c=result.T, lower=0, overwrite_c=1)
    _mirror_lower(result, 0.0 if clip else -np.inf)
    return result


def _solve_lower(
    factor: NDArray[np.float64], columns: NDArray[np.float64], *, overwrite: bool = False
) -> NDArray[np.float64]:
    """R^-1 U for lower triangular R (Fortran order); U (L, n) in C order is not copied when overwritten."""
    if columns.size == 0:
        return columns
    # U^T is a Fortran array: solve X R^T = U^T from the right.
    solved = dtrsm(1.0, factor, columns.T, side=1, lower=1, trans_a=1, overwrite_b=int(overwrite))
    return np.asarray(solved.T)


@kernel
def _mirror_lower(matrix: NDArray[np.float64], least: float) -> None:
    """Raise the lower triangle to ``least`` and copy it onto the upper one, tile by tile."""
    n = matrix.shape[0]
    for row_start in range(0, n, _TILE):
        row_stop = min(row_start + _TILE, n)
        for column_start in range(0, row_stop, _TILE):
            for i in range(row_start, row_stop):
                for j in range(column_start, min(column_start + _TILE, i + 1)):
                    value = max(matrix[i, j], least)
                    matrix[i, j] = value
                    matrix[j, i] = value
