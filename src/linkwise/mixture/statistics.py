"""Additive sufficient statistics of a Gaussian mixture, and the M-step that needs nothing else."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Statistics", "m_step"]


@dataclass(frozen=True)
class Statistics:
    """Sums over points of responsibilities q_nk times powers of d = x_n - centres[k].

    The sums of disjoint sets of points taken about the same centres add: ``a + b``. The centres are the
    previous means, so a tight cluster far from the others keeps its digits.

    Attributes
    ----------
    counts : (K,)
        S0_k = sum_n q_nk.
    first : (K, D)
        S1_k = sum_n q_nk d.
    second : (K, D, D) or (K, D)
        S2_k = sum_n q_nk d d'; its diagonal for "diag" and "spherical".
    log_likelihood : float
        sum_n log sum_k pi_k N(x_n; mu_k, Sigma_k) over points whose posterior was computed on the way, 0
        where responsibilities were given.
    centres : (K, D)
    """

    counts: NDArray[np.float64]
    first: NDArray[np.float64]
    second: NDArray[np.float64]
    log_likelihood: float
    centres: NDArray[np.float64]

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


def m_step(
    statistics: Statistics, covariance_type: str, reg_covar: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Means and covariances that maximise the expected log-likelihood.

    With nk = S0 + 10 eps and shift = S1 / nk: mu = centre + shift, Sigma = S2 / nk - shift shift' + reg_covar
    I; "tied" pools the scatter of all components, "diag" keeps the diagonal and "spherical" its mean. The
    formulas of scikit-learn's GaussianMixture, except that a component without points stays at its centre.

    The relative error of a variance is about eps (shift / sigma)^2: harmless unless a component moves by more
    than some 1e4 of its new standard deviations in one step, and gone in the next.

    Parameters
    ----------
    statistics : Statistics
    covariance_type : {"full", "tied", "diag", "spherical"}
    reg_covar : float
        Added to every variance.

    Returns
    -------
    means : (K, D)
    covariances : (K, D, D), (D, D), (K, D) or (K,)

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise.mixture.statistics import Statistics, m_step
    >>> statistics = Statistics(
    ...     counts=np.array([2.0]), first=np.array([[4.0]]), second=np.array([[10.0]]), log_likelihood=0.0,
    ...     centres=np.array([[1.0]]),
    ... )
    >>> means, covariances = m_step(statistics, "diag", 0.0)
    >>> means.round(6), covariances.round(6)
    (array([[3.]]), array([[1.]]))
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
