"""Parameters that EM starts from: of a hard assignment of the rows, or as the user gave them."""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from linkwise._arrays import Floats, Ints
from linkwise.mixture.em import MixtureParameters
from linkwise.mixture.gaussian.data import Points
from linkwise.mixture.gaussian.gaussians import Gaussians, Statistics, precision_factors_of_precisions
from linkwise.mixture.gaussian.passes import statistics_pass
from linkwise.mixture.gaussian.shrinkage import CovariancePrior
from linkwise.mixture.links.em_step import new_parameters

__all__ = ["GivenParts", "are_factors", "assigned_start", "given_start"]

_ROWS_AT_ONCE = 8192


def assigned_start(
    points: Points,
    labels: Ints,
    n_gaussians: int,
    covariance_type: str,
    reg_covar: float,
    coupling: Floats,
    prior: CovariancePrior | None,
) -> MixtureParameters:
    """Parameters of a hard assignment of the rows, labels (n,)."""
    # Moments about the means of the assignment, found first, keep their digits for clusters far apart.
    about = np.tile(points.offset, (n_gaussians, 1))
    rough = _assigned_statistics(points, labels, about, covariance_type)
    about += rough.first / np.maximum(rough.counts, 1.0)[:, np.newaxis]
    statistics = _assigned_statistics(points, labels, about, covariance_type)
    counts = statistics.counts + 10 * np.finfo(np.float64).eps
    log_weights = np.log(counts / counts.sum())
    return new_parameters(statistics, covariance_type, reg_covar, log_weights, coupling, prior)


def _assigned_statistics(points: Points, labels: Ints, about: Floats, covariance_type: str) -> Statistics:
    """Sum statistics of a hard assignment, a few rows at a time so that no (n, K) table is needed."""
    parts = []
    for start in range(0, points.n_samples, _ROWS_AT_ONCE):
        rows = np.arange(start, min(start + _ROWS_AT_ONCE, points.n_samples))
        one_hot = (labels[rows, np.newaxis] == np.arange(len(about))).astype(np.float64)
        parts.append(statistics_pass(points, about, one_hot, covariance_type, rows=rows))
    return reduce(add, parts)


class GivenParts(NamedTuple):
    """Parts of a start that the user gave: weights (G,), means (G, D), precisions by covariance type."""

    weights: ArrayLike | None
    means: ArrayLike | None
    precisions: ArrayLike | None


def given_start(
    given: GivenParts,
    start: MixtureParameters | None,
    covariance_type: str,
    shape: tuple[int, int],
    coupling: Floats,
    *,
    fixed: bool,
) -> MixtureParameters:
    """Replace parts of a start of ``shape`` (G, D) by what the user gave; ``fixed`` weights are equal."""
    n_gaussians = shape[0]
    log_weights = None if start is None else start.log_weights
    means = None if start is None else start.gaussians.means
    factors = None if start is None else start.gaussians.factors
    if given.weights is not None:
        weights = _checked(given.weights, (n_gaussians,), "weights_init")
        if (weights < 0).any() or not np.isclose(weights.sum(), 1.0):
            raise ValueError(
                f"weights_init must be >= 0 and sum to 1, its sum is {weights.sum():.6g}"
                "; pass weights / weights.sum()"
            )
        with np.errstate(divide="ignore"):
            log_weights = np.log(weights)
    elif fixed:
        log_weights = np.full(n_gaussians, -np.log(n_gaussians))
    if given.means is not None:
        means = _checked(given.means, shape, "means_init")
    if given.precisions is not None:
        wanted = _shape_of_factors(covariance_type, *shape)
        precisions = _checked(given.precisions, wanted, "precisions_init")
        factors = precision_factors_of_precisions(precisions, covariance_type)
    assert log_weights is not None
    assert means is not None
    assert factors is not None
    gaussians = Gaussians(means, factors, covariance_type)
    return MixtureParameters(log_weights, gaussians, _covariances(gaussians), coupling)


def are_factors(factors: Floats, covariance_type: str, n_gaussians: int, n_features: int) -> bool:
    """Return whether an array may hold the factors of precisions of this type."""
    if factors.shape != _shape_of_factors(covariance_type, n_gaussians, n_features):
        return False
    if not (n_gaussians == n_features > 1 and factors.ndim == 2):
        return True
    # As many features as components: variances of "diag" have no zeros, the factor of "tied" does.
    return bool(np.tril(factors, -1).any()) == (covariance_type == "diag")


def _shape_of_factors(covariance_type: str, n_gaussians: int, n_features: int) -> tuple[int, ...]:
    """Return the shape of covariances, precisions and their factors."""
    return {
        "full": (n_gaussians, n_features, n_features),
        "tied": (n_features, n_features),
        "diag": (n_gaussians, n_features),
        "spherical": (n_gaussians,),
    }[covariance_type]


def _checked(values: ArrayLike, shape: tuple[int, ...], name: str) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    if array.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, got {array.shape}; pass that shape")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} holds NaN or infinite values; correct them, or pass None")
    return array


def _covariances(gaussians: Gaussians) -> Floats:
    """Compute covariances from precision factors, in the shape of the covariance type."""
    _, factors, covariance_type = gaussians
    if covariance_type in ("diag", "spherical"):
        return 1.0 / factors**2
    inverse = np.linalg.inv(factors)
    return np.swapaxes(inverse, -1, -2) @ inverse
