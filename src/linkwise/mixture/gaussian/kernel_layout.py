"""Converts Gaussians to the padded arrays that the kernel reads, and its sums back to statistics."""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linkwise.mixture.gaussian.data import Points
from linkwise.mixture.gaussian.gaussians import Gaussians, Statistics, log_normalisers
from linkwise.mixture.gaussian.kernels import moment_rows, pack_factors

Scalar = TypeVar("Scalar", bound=np.generic)


class PackedGaussians(NamedTuple):
    """Gaussians as kernels read them, in the type of the points.

    ``centres`` (K, n_rows): means less the offset of the points, padded with zeros to the rows of a block.
    ``factors``: packed triangles (K or 1, D / 2, 2 D), D rounded up to even, or diagonals (K, D).
    ``constants`` (K,): log-density at the mean, plus the log-weight.
    """

    centres: NDArray[np.floating]
    factors: NDArray[np.floating]
    constants: NDArray[np.floating]


def _is_diagonal(covariance_type: str) -> bool:
    return covariance_type in ("diag", "spherical")


def _pack_centres(points: Points, means: NDArray[np.float64], covariance_type: str) -> NDArray[np.floating]:
    """Means as kernels subtract them (K, n_rows)."""
    n_components, n_features = means.shape
    n_rows = n_features + 1 if _is_diagonal(covariance_type) else moment_rows(n_features)
    centres = np.zeros((n_components, n_rows), dtype=points.dtype)
    centres[:, :n_features] = means - points.offset
    return centres


def pack_gaussians(
    points: Points, gaussians: Gaussians, log_weights: NDArray[np.float64] | None
) -> PackedGaussians:
    """Gaussians as kernels read them."""
    means, factors, covariance_type = gaussians
    constants = log_normalisers(gaussians)
    if log_weights is not None:
        constants = constants + log_weights
    if covariance_type == "full":
        packed = pack_factors(factors.astype(points.dtype))
    elif covariance_type == "tied":
        packed = pack_factors(factors.astype(points.dtype)[np.newaxis])
    else:
        diagonals = factors.reshape(len(means), -1).astype(points.dtype)
        packed = np.array(np.broadcast_to(diagonals, means.shape))
    centres = _pack_centres(points, means, covariance_type)
    return PackedGaussians(centres, packed, constants.astype(points.dtype))


def pack_means(points: Points, means: NDArray[np.float64], covariance_type: str) -> PackedGaussians:
    """Centres alone, for kernels that are given responsibilities and compute no density."""
    centres = _pack_centres(points, means, covariance_type)
    factors = np.empty((0, 0) if _is_diagonal(covariance_type) else (0, 0, 0), dtype=points.dtype)
    return PackedGaussians(centres, factors, np.empty(0, dtype=points.dtype))


def zero_moments(centres: NDArray[np.floating], covariance_type: str) -> NDArray[np.float64]:
    """Sums to start from: (K, n_rows, n_rows) or, for diagonal covariances, (K, 2 * n_rows)."""
    n_components, n_rows = centres.shape
    return np.zeros(
        (n_components, 2 * n_rows) if _is_diagonal(covariance_type) else (n_components, n_rows, n_rows)
    )


def unpack_moments(
    points: Points, centres: NDArray[np.floating], moments: NDArray[np.float64], log_likelihood: float
) -> Statistics:
    """Take the moments of d = (x - mu_k, 1) apart."""
    n_features = points.n_features
    if moments.ndim == 3:
        counts = moments[:, n_features, n_features].copy()
        first = moments[:, :n_features, n_features].copy()
        upper = np.triu(moments[:, :n_features, :n_features])
        second = upper + np.triu(upper, 1).transpose(0, 2, 1)
    else:
        halves = moments.reshape(len(centres), 2, -1)
        counts = halves[:, 0, n_features].copy()
        first = halves[:, 0, :n_features].copy()
        second = halves[:, 1, :n_features].copy()
    # The centres as the kernels rounded them: the moments are about exactly these.
    about = points.offset + centres[:, :n_features].astype(np.float64)
    return Statistics(counts, first, second, log_likelihood, about)


def read_only(array: ArrayLike, dtype: type[Scalar]) -> NDArray[Scalar]:
    """A contiguous read-only view (or copy): numba compiles once more for every kind of array it meets."""
    view = np.ascontiguousarray(array, dtype=dtype).view()
    view.flags.writeable = False
    return view
