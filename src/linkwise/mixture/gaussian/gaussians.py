"""Precision factors of Gaussians, in scikit-learn's four shapes of covariance.

| covariance_type | covariances, precision factors |
| --- | --- |
| "full" | (K, D, D), one matrix a component |
| "tied" | (D, D), one matrix for all |
| "diag" | (K, D), variances; factors 1 / standard deviation |
| "spherical" | (K,), one variance a component |

The factor P of a precision matrix is upper triangular with P P' = inverse covariance, so that
(x - mu)' inverse (x - mu) = |P' (x - mu)|^2.

Additive sufficient statistics of a Gaussian mixture, and the M-step that needs nothing else.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from linkwise._arrays import Floats

COVARIANCE_TYPES = ("full", "tied", "diag", "spherical")


class Gaussians(NamedTuple):
    """K Gaussian densities: means (K, D) and the factors that ``precision_factors`` returns."""

    means: Floats
    factors: Floats
    covariance_type: str


def _component(k: int, covariance_type: str) -> str:
    return "the tied covariance" if covariance_type == "tied" else f"the covariance of component {k}"


def _degenerate(k: int, covariance_type: str, detail: str, at: str = "") -> ValueError:
    return ValueError(
        f"{_component(k, covariance_type)} is not positive definite ({detail}){at}: its points are too few "
        "or lie in a lower dimension. Increase reg_covar, scale the features, use fewer components or a "
        'simpler covariance_type such as "diag".'
    )


def precision_factors(covariances: Floats, covariance_type: str) -> Floats:
    """Upper triangular factors P of the inverse covariances: P = L^-T with covariance = L L'."""
    covariances = np.asarray(covariances, dtype=np.float64)
    if covariance_type in ("diag", "spherical"):
        bad = np.argwhere(~(covariances > 0.0))
        if bad.size:
            where = tuple(bad[0])
            at = f" at feature {where[1]}" if len(where) > 1 else ""
            raise _degenerate(where[0], covariance_type, f"a variance is {covariances[where]:.3g}", at)
        return 1.0 / np.sqrt(covariances)
    matrices = covariances[np.newaxis] if covariance_type == "tied" else covariances
    factors = np.empty_like(matrices)
    for k, matrix in enumerate(matrices):
        # Straight LAPACK: numpy's and scipy's wrappers take five times as long as a 10 x 10 matrix needs.
        lower, failed = lapack.dpotrf(matrix, lower=1, clean=1)
        if not failed:
            inverse, failed = lapack.dtrtri(lower, lower=1)
        if failed or not np.isfinite(inverse).all():
            raise _degenerate(k, covariance_type, f"its Cholesky factorisation stops at feature {failed - 1}")
        factors[k] = inverse.T
    return factors[0] if covariance_type == "tied" else factors


def precision_factors_of_precisions(precisions: Floats, covariance_type: str) -> Floats:
    """Upper triangular factors P of given precisions, precision = P P'."""
    precisions = np.asarray(precisions, dtype=np.float64)
    if covariance_type in ("diag", "spherical"):
        bad = np.argwhere(~(precisions > 0.0))
        if bad.size:
            where = tuple(bad[0])
            raise ValueError(
                f"the precision of component {where[0]} is {precisions[where]:.3g}: it must be positive."
                " Pass variances and precisions above 0."
            )
        return np.sqrt(precisions)
    matrices = precisions[np.newaxis] if covariance_type == "tied" else precisions
    factors = np.empty_like(matrices)
    for k, matrix in enumerate(matrices):
        # Cholesky of the matrix read backwards gives an upper triangular factor read backwards.
        lower, failed = lapack.dpotrf(matrix[::-1, ::-1], lower=1, clean=1)
        if failed:
            name = _component(k, covariance_type).replace("covariance", "precision")
            raise ValueError(f"{name} is not positive definite: give a symmetric positive definite matrix.")
        factors[k] = lower[::-1, ::-1]
    return factors[0] if covariance_type == "tied" else factors


def log_determinants(gaussians: Gaussians) -> Floats:
    """Half the log-determinant of each precision matrix, log |det P_k|."""
    means, factors, covariance_type = gaussians
    n_components, n_features = means.shape
    if covariance_type == "full":
        return np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1)
    if covariance_type == "tied":
        return np.full(n_components, np.log(np.diagonal(factors)).sum())
    if covariance_type == "diag":
        return np.log(factors).sum(axis=1)
    return n_features * np.log(factors)


def log_normalisers(gaussians: Gaussians) -> Floats:
    """Log-density of each Gaussian at its mean: log |det P_k| - D / 2 log(2 pi)."""
    return log_determinants(gaussians) - 0.5 * gaussians.means.shape[1] * math.log(2.0 * math.pi)


def relative_shifts(old: Gaussians, new: Gaussians, new_covariances: Floats) -> tuple[Floats, Floats]:
    """How far each Gaussian moved, in its own standard deviations, and how much it changed its shape (K,).

    The second is the root mean square of the eigenvalues of S_old^-1 S_new - 1. Units do not change either.
    """
    moves = new.means - old.means
    n_components, n_features = moves.shape
    factors = old.factors
    if old.covariance_type in ("diag", "spherical"):
        roots = factors.reshape(n_components, -1)
        shapes = new_covariances.reshape(n_components, -1) * roots**2 - 1.0
        return np.linalg.norm(moves * roots, axis=1), np.sqrt(np.mean(shapes**2, axis=1))
    turned_moves = np.squeeze(moves[:, np.newaxis, :] @ factors, axis=1)
    lengths = np.linalg.norm(turned_moves, axis=1)
    turned = np.swapaxes(factors, -1, -2) @ new_covariances @ factors - np.eye(n_features)
    shapes = np.sqrt((turned**2).sum(axis=(-1, -2)) / n_features)
    return lengths, np.broadcast_to(shapes, n_components)


def n_free_parameters(n_components: int, n_features: int, covariance_type: str) -> int:
    """Free parameters of a mixture: means, covariances and K - 1 mixing weights (for AIC and BIC)."""
    covariance = {
        "full": n_components * n_features * (n_features + 1) // 2,
        "tied": n_features * (n_features + 1) // 2,
        "diag": n_components * n_features,
        "spherical": n_components,
    }[covariance_type]
    return covariance + n_components * n_features + n_components - 1


@dataclass(frozen=True)
class Statistics:
    """Sums over points of responsibilities q_nk times powers of d = x_n - centres[k].

    The sums of disjoint sets of points taken about the same centres add: ``a + b``. The centres are the
    previous means, so a tight cluster far from the others keeps its digits.

    ``counts`` (K,): S0_k = sum_n q_nk. ``first`` (K, D): S1_k = sum_n q_nk d. ``second`` (K, D, D) or, for
    "diag" and "spherical", its diagonal (K, D): S2_k = sum_n q_nk d d'. ``log_likelihood``: sum_n log sum_k
    pi_k N(x_n; mu_k, Sigma_k) over points whose posterior was computed on the way. ``centres`` (K, D).
    """

    counts: Floats
    first: Floats
    second: Floats
    log_likelihood: float
    centres: Floats

    def __add__(self, other: Statistics) -> Statistics:
        if not np.array_equal(self.centres, other.centres):
            raise ValueError(
                "statistics about different centres do not add: take both with the same means and the same "
                "offset of the points"
            )
        return Statistics(
            self.counts + other.counts,
            self.first + other.first,
            self.second + other.second,
            self.log_likelihood + other.log_likelihood,
            self.centres,
        )

    def weighted(self, weight: float) -> Statistics:
        """The statistics if every point counts ``weight`` times."""
        return Statistics(
            weight * self.counts,
            weight * self.first,
            weight * self.second,
            weight * self.log_likelihood,
            self.centres,
        )


def m_step(statistics: Statistics, covariance_type: str, reg_covar: float) -> tuple[Floats, Floats]:
    """Means and covariances that maximise the expected log-likelihood.

    With nk = S0 + 10 eps and shift = S1 / nk: mu = centre + shift, Sigma = S2 / nk - shift shift' + reg_covar
    I; "tied" pools the scatter of all components, "diag" keeps the diagonal and "spherical" its mean. The
    formulas of scikit-learn's GaussianMixture, except that a component without points stays at its centre.

    The relative error of a variance is about eps (shift / sigma)^2: harmless unless a component moves by more
    than some 1e4 of its new standard deviations in one step, and gone in the next.
    """
    counts = statistics.counts + 10.0 * np.finfo(np.float64).eps
    shifts = statistics.first / counts[:, np.newaxis]
    means = statistics.centres + shifts
    if covariance_type in ("diag", "spherical"):
        variances = statistics.second / counts[:, np.newaxis] - shifts**2 + reg_covar
        return means, variances if covariance_type == "diag" else variances.mean(axis=1)
    outer = shifts[:, :, np.newaxis] * shifts[:, np.newaxis, :]
    weights = counts[:, np.newaxis, np.newaxis]
    if covariance_type == "tied":
        covariances = (statistics.second - weights * outer).sum(axis=0) / counts.sum()
    else:
        covariances = statistics.second / weights - outer
    diagonal = np.arange(shifts.shape[1])
    covariances[..., diagonal, diagonal] += reg_covar
    return means, covariances
