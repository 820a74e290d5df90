"""Links propagated through a kernel: the posterior covariance of a Gaussian process that observes them.

A kernel K is the covariance of a zero-mean Gaussian process f whose sign is the label. A must-link observes
f_i - f_j ~ N(0, e²), a cannot-link f_i + f_j ~ N(0, e²); the posterior covariance is the new affinity,

    Kbar = (K^-1 + V E^-1 V^T)^-1,   V (N x L): +1 at i, -1 (must) or +1 (cannot) at j,   E = diag(e_l²)

(Lu & Carreira-Perpinan 2008, Eqs. 2 and 3; their Eq. 5 has another factor, see the errata E2). It is never
computed like that: with U = V^T K (L x N) and the Cholesky factor R of E + V^T K V (L x L),

    Kbar = K - W^T W,   W = R^-1 U.

No inverse of K is needed, so K may be singular; its condition number does not matter. For one link this is
the equivalent kernel in closed form, ``kernel_profile``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.linalg import LinAlgError, cholesky, eigh
from scipy.linalg.blas import dsyrk, dtrsm

from linkwise._arrays import Bools, Floats, Ints
from linkwise._kernels import kernel
from linkwise.spectral.kernels import gaussian_kernel

#: Smallest variance of a link relative to the kernel's mean diagonal. A link this hard is kept to 1e-5 of the
#: kernel's scale, and the Cholesky factor of E + V^T K V still has six digits when V^T K V is singular.
VARIANCE_FLOOR = 1e-10

#: Eigenvalues of E + V^T K V below this share of the largest are dropped when Cholesky fails.
_DROPPED_SHARE = 1e-10

_TILE = 64


class SignedLinks(NamedTuple):
    """Links (L,): signs +1 for must-links and -1 for cannot-links, variances e_l² in units of the kernel."""

    pairs: Ints
    signs: Floats
    variances: Floats

    def select(self, rows: Bools) -> SignedLinks:
        """The links of these rows."""
        return SignedLinks(self.pairs[rows], self.signs[rows], self.variances[rows])


def signed_links(pairs: ArrayLike, weights: ArrayLike, softness: float, scale: float) -> SignedLinks:
    """Signs and variances of links of weights as in :class:`linkwise.Constraints`, a hard link as 1.

    The variance is ``softness**2 / w * scale``, at least ``1e-10 * scale``, the mean diagonal: 0 is the hard
    limit.
    """
    values = np.asarray(weights, dtype=np.float64)
    strength = np.where(np.isinf(values), 1.0, np.abs(values))
    variances = np.maximum(softness**2 / strength, VARIANCE_FLOOR) * scale
    return SignedLinks(np.asarray(pairs, dtype=np.int64).reshape(-1, 2), np.sign(values), variances)


def signed_incidence(n_points: int, links: SignedLinks) -> sparse.csc_array:
    """The sparse matrix V (N x L) with one column per link: +1 at i, -1 (must) or +1 (cannot) at j."""
    n_links = len(links.pairs)
    values = np.column_stack([np.ones(n_links), -links.signs]).ravel()
    starts = np.arange(0, 2 * n_links + 1, 2)
    return sparse.csc_array((values, links.pairs.ravel(), starts), shape=(n_points, n_links))


class Propagation(NamedTuple):
    """What links do to a kernel: Kbar = K - W^T W, kept as W (L or r, N).

    ``factor`` is the lower Cholesky factor R of E + V^T K V, or T (r, L) with T^T T its pseudo-inverse.
    """

    links: SignedLinks
    factor: Floats
    triangular: bool
    whitened: Floats

    def whiten(self, columns: Floats) -> Floats:
        """w(x) = R^-1 V^T k(X, x) of further points, from their ``link_columns`` (L, n)."""
        if not self.triangular:
            return self.factor @ columns
        return _solve_lower(self.factor, columns)


def link_columns(rows_of_kernel: Floats, links: SignedLinks) -> Floats:
    """U = V^T K: one row per link, K[i] - K[j] for a must-link and K[i] + K[j] for a cannot-link."""
    columns: Floats = rows_of_kernel[links.pairs[:, 0]]
    columns -= links.signs[:, np.newaxis] * rows_of_kernel[links.pairs[:, 1]]
    return columns


def propagate(columns: Floats, links: SignedLinks) -> Propagation:
    """Condition the Gaussian process on links, O(N L² + L³); ``columns``, U (L, N), is overwritten."""
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


def propagated_kernel(kernel_matrix: Floats, propagation: Propagation, *, clip: bool = False) -> Floats:
    """Kbar = K - W^T W as a new matrix; optionally max(0, Kbar), the affinity of algorithm A."""
    result = np.array(kernel_matrix, dtype=np.float64, order="C")
    if len(propagation.whitened):
        # The transpose of a C array is a Fortran array, as BLAS takes it: its upper triangle is the lower one
        dsyrk(-1.0, propagation.whitened.T, beta=1.0, c=result.T, lower=0, overwrite_c=1)
    _mirror_lower(result, 0.0 if clip else -np.inf)
    return result


def _solve_lower(factor: Floats, columns: Floats, *, overwrite: bool = False) -> Floats:
    """R^-1 U for lower triangular R (Fortran order); U (L, n) in C order is not copied when overwritten."""
    if columns.size == 0:
        return columns
    # U^T is a Fortran array: solve X R^T = U^T from the right.
    solved = dtrsm(1.0, factor, columns.T, side=1, lower=1, trans_a=1, overwrite_b=int(overwrite))
    return np.asarray(solved.T)


@kernel
def _mirror_lower(matrix: Floats, least: float) -> None:
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


class KernelProfile(NamedTuple):
    """A kernel seen from one point, before and after a link.

    Attributes
    ----------
    positions : (n, d) float64
    original : (n,) float64
        k(point, positions).
    equivalent : (n,) float64
        kbar(point, positions).
    """

    positions: NDArray[np.float64]
    original: NDArray[np.float64]
    equivalent: NDArray[np.float64]


def kernel_profile(
    positions: ArrayLike,
    point: ArrayLike,
    sites: ArrayLike,
    kind: str,
    *,
    sigma: float = 1.0,
    softness: float = 0.0,
) -> KernelProfile:
    """A Gaussian kernel seen from one point, before and after one link: figure 1 and table 1 of the paper.

    With the sites far apart and the point near the first one, the profile around the first site is the
    asymmetric kernel k'_a with its negative lobe; around the second site it is k'_s for a must-link and -k'_s
    for a cannot-link.

    Parameters
    ----------
    positions : (n,) or (n, d) array_like
        Where the kernel is evaluated.
    point : float or (d,) array_like
        The other argument of the kernel.
    sites : (2,) or (2, d) array_like
        The ends of the link.
    kind : {"must", "cannot"}
    sigma : float, default=1.0
    softness : float, default=0.0

    Returns
    -------
    KernelProfile

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise.spectral import kernel_profile
    >>> seen = kernel_profile([0.0, 1.0, -2.0, 20.0], point=1.0, sites=[0.0, 20.0], kind="must")
    >>> seen.original.round(2)
    array([0.61, 1.  , 0.01, 0.  ])
    >>> seen.equivalent.round(2)
    array([ 0.3 ,  0.82, -0.03,  0.3 ])
    """
    at = _as_points(positions)
    ends = _as_points(sites)
    origin = np.atleast_2d(np.asarray(point, dtype=np.float64))
    every = np.concatenate([ends, origin, at])
    matrix = gaussian_kernel(every[:3], every, sigma)
    sign = _sign(kind)
    columns = matrix[0] + sign * matrix[1]
    variance = columns[0] + sign * columns[1] + softness**2
    change = columns[2] * columns[3:] / variance if variance > 0.0 else 0.0
    return KernelProfile(at, matrix[2, 3:], matrix[2, 3:] - change)


def _sign(kind: str) -> float:
    if kind not in ("must", "cannot"):
        raise ValueError(f'kind must be "must" or "cannot", got {kind!r}; pass one of them')
    return -1.0 if kind == "must" else 1.0


def _as_points(values: ArrayLike) -> Floats:
    points = np.asarray(values, dtype=np.float64)
    return points[:, np.newaxis] if points.ndim == 1 else points
