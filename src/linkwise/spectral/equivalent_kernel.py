"""What one link does to a kernel, in closed form: the equivalent kernels of Lu & Carreira-Perpinan 2008.

With u = k(., 1) - k(., 2) for a must-link, k(., 1) + k(., 2) for a cannot-link, and s = u(1) -+ u(2),

    kbar(x, y) = k(x, y) - u(x) u(y) / (s + e²),

the mean of k and of the hard kernel k' (e = 0) with weights e² and s; s = 2 (1 -+ K12) for a unit diagonal.
The printed Eqs. 6 and 7 belong to another convention of e (errata E2); Eq. 8 lacks its "K -" (E3).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linkwise.spectral.kernels import gaussian_kernel

__all__ = ["KernelProfile", "equivalent_kernel", "kernel_profile"]


def equivalent_kernel(
    kernel_matrix: ArrayLike, first: int, second: int, kind: str, *, softness: float = 0.0
) -> NDArray[np.float64]:
    """The kernel after one link.

    Parameters
    ----------
    kernel_matrix : (N, N) array_like
    first, second : int
        The two ends of the link.
    kind : {"must", "cannot"}
    softness : float, default=0.0
        e, in the units of sqrt(k); 0 is a hard link.

    Returns
    -------
    (N, N) float64
        K itself for a hard must-link between points that the kernel cannot tell apart.

    Examples
    --------
    A hard must-link makes the columns of its ends equal, their mean; a cannot-link makes them opposite.

    >>> import numpy as np
    >>> from linkwise.spectral.equivalent_kernel import equivalent_kernel
    >>> K = np.array([[1.0, 0.0, 0.6], [0.0, 1.0, 0.2], [0.6, 0.2, 1.0]])
    >>> equivalent_kernel(K, 0, 1, "must")[:, :2].round(3) + 0.0
    array([[0.5, 0.5],
           [0.5, 0.5],
           [0.4, 0.4]])
    >>> equivalent_kernel(K, 0, 1, "cannot")[:, :2].round(3) + 0.0
    array([[ 0.5, -0.5],
           [-0.5,  0.5],
           [ 0.2, -0.2]])
    """
    matrix = np.asarray(kernel_matrix, dtype=np.float64)
    sign = _sign(kind)
    column = matrix[:, first] + sign * matrix[:, second]
    variance = column[first] + sign * column[second] + softness**2
    if variance <= 0.0:
        return matrix.copy()
    return np.asarray(matrix - np.outer(column, column) / variance)


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


def _as_points(values: ArrayLike) -> NDArray[np.float64]:
    points = np.asarray(values, dtype=np.float64)
    return points[:, np.newaxis] if points.ndim == 1 else points
