"""A mixture of Gaussians for every class on its own, with as many as BIC asks for."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans

from linkwise.mixture.em import MixtureParameters
from linkwise.mixture.gaussian.data import Points, points_of
from linkwise.mixture.gaussian.gaussians import n_free_parameters
from linkwise.mixture.gaussian.passes import em_pass, posterior_pass, statistics_pass
from linkwise.mixture.gaussian.shrinkage import (
    CovariancePrior,
    automatic_rows,
    covariance_prior,
    pooled_covariance,
)
from linkwise.mixture.links.em_step import new_parameters

__all__ = ["first_clusters"]

#: Gaussians of one class, and rows that each must have for each feature.
_MOST = 8
_ROWS_PER_FEATURE = 2
#: So many rows of a class choose its Gaussians; the others join them later.
_SAMPLE = 4000
_N_ITERATIONS = 60
_TOL = 1e-4


def first_clusters(
    points: Points,
    X: NDArray[np.floating],
    labels: NDArray[np.int64],
    order: NDArray[np.int64],
    covariance_type: str,
    reg_covar: float,
) -> NDArray[np.int64]:
    """Cluster the rows of each class; clusters (n,) are numbered by class, -1 for rows that were not used.

    ``order`` (n,) lists the rows by class. Numbers of Gaussians are tried until two more do not lower BIC.
    ``X`` are the data for k-means, ``points`` those for EM.
    """
    start = np.full(len(labels), -1, dtype=np.int64)
    ends = np.searchsorted(labels[order], np.arange(labels.max() + 2))
    samples = [order[begin:end][:: -(-(end - begin) // _SAMPLE)] for begin, end in pairwise(ends.tolist())]
    spread = _spread_within([X[rows] for rows in samples])
    first = 0
    for rows in samples:
        own = points_of(np.ascontiguousarray(_taken(points, rows)), points.offset)
        # The class alone has to be told apart into parts, so it is its spread that covariances shrink to.
        alone = covariance_prior(own, automatic_rows(own.n_features), reg_covar)
        assert alone is not None
        parts = _best_parts(own, X[rows] / spread, alone, covariance_type, reg_covar)
        start[rows] = first + parts
        first += int(parts.max()) + 1
    return start


def _spread_within(samples: list[NDArray[np.floating]]) -> NDArray[np.float64]:
    """Compute the standard deviation (d,) within classes: features in which classes differ weigh more."""
    total = sum(len(rows) * rows.var(axis=0, dtype=np.float64) for rows in samples)
    variances = np.asarray(total) / sum(len(rows) for rows in samples)
    return np.sqrt(np.where(variances > 0.0, variances, 1.0))


def _taken(points: Points, rows: NDArray[np.int64]) -> NDArray[np.floating]:
    """Copy some rows (m, d) of the data."""
    columns = np.arange(points.n_features) * points.column_stride
    return np.asarray(points.values[rows[:, np.newaxis] * points.row_stride + columns])


def _best_parts(
    points: Points,
    scaled: NDArray[np.floating],
    prior: CovariancePrior,
    covariance_type: str,
    reg_covar: float,
) -> NDArray[np.int64]:
    """Assign the rows of one class (n,) to the mixture with the lowest BIC."""
    n_rows, n_features = scaled.shape
    best, lowest, best_k = np.zeros(n_rows, dtype=np.int64), np.inf, 1
    most = min(_MOST, n_rows // (_ROWS_PER_FEATURE * n_features + 1), len(np.unique(scaled, axis=0)))
    for k in range(1, most + 1):
        if k > best_k + 2:
            break
        parts = np.zeros(n_rows, dtype=np.int64)
        if k > 1:
            parts = KMeans(k, n_init=1, random_state=0).fit(scaled).labels_.astype(np.int64)
        fitted, log_likelihood = _fit(points, parts, k, prior, covariance_type, reg_covar)
        bic = n_free_parameters(k, n_features, covariance_type) * np.log(n_rows) - 2.0 * log_likelihood
        if bic < lowest:
            found = posterior_pass(points, fitted.gaussians, fitted.log_weights, labels=True).labels
            assert found is not None
            lowest, best_k = bic, k
            best = np.unique(found, return_inverse=True)[1]
    return best


def _fit(
    points: Points,
    parts: NDArray[np.int64],
    n_components: int,
    prior: CovariancePrior,
    covariance_type: str,
    reg_covar: float,
) -> tuple[MixtureParameters, float]:
    """Run EM with shrunk covariances from an assignment; return the mixture and its log-likelihood."""
    known = np.zeros((len(parts), n_components))
    known[np.arange(len(parts)), parts] = 1.0
    centres = np.repeat(points.offset[np.newaxis], n_components, axis=0)
    statistics = statistics_pass(points, centres, known, covariance_type)
    pooled, previous = None, -np.inf
    for _ in range(_N_ITERATIONS):
        log_weights = np.log((statistics.counts + 0.5) / (statistics.counts + 0.5).sum())
        fitted = new_parameters(
            statistics, covariance_type, reg_covar, log_weights, np.empty(0), prior, pooled
        )
        statistics = em_pass(points, fitted.gaussians, log_weights)
        if n_components == 1 or statistics.log_likelihood - previous < _TOL * len(parts):
            break
        previous, pooled = statistics.log_likelihood, pooled_covariance(fitted.gaussians)
    return fitted, statistics.log_likelihood
