"""Shrinkage of covariances: a prior over them that knows no units, and its part of the objective and M-step.

Every component has pseudo-rows beside its own: ``pooled`` of them are spread like all components together
(covariance P), and ``wide`` of them like the data (variances v, no correlations). The log prior of one
covariance S is

    - pooled / 2 (log|S| - log|P| + tr(P S^-1) - D)  -  wide / 2 (log|S| - log|V| + tr(V S^-1) - D),

the form of an inverse Wishart density. Each bracket is twice a Kullback-Leibler divergence, so that the value
is at most 0, and 0 for S = P = V. It does not change with the units of the features, and its first part not
under any linear map. V = diag(v) is fixed. P is a parameter: the best one for given covariances is their
harmonic mean, P = (mean_k S_k^-1)^-1, so that nothing but the covariances has to be kept. The best
covariances for a given P are

    S_k = (pooled P + wide V + n_k W_k) / (pooled + wide + n_k),    W_k the weighted covariance of the rows.

Both steps raise the penalised likelihood, so EM never lowers it. "tied" covariances are their own pool: only
the wide rows act on them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from linkwise._validation import check_number
from linkwise.mixture.gaussian.data import Points
from linkwise.mixture.gaussian.gaussians import Gaussians, log_determinants
from linkwise.mixture.gaussian.passes import statistics_pass

__all__ = [
    "MOST_UNLABELLED_ROWS",
    "CovariancePrior",
    "automatic_rows",
    "check_shrinkage",
    "column_moments",
    "covariance_prior",
    "log_prior",
    "mean_covariance",
    "pooled_covariance",
    "prior_of_moments",
    "pseudo_rows",
    "shrink",
]

#: Share of the pseudo-rows that are spread like the data. They keep directions open in which all components
#: are flat.
_WIDE_SHARE = 1.0 / 16.0
#: Pseudo-rows of "auto" at most, where classes do not say which rows are whose: those of ten columns. With
#: more columns the rows would be so many that all covariances are one, and a mixture of one covariance finds
#: outliers. Five sets of half A of the leaderboard with 16 to 59 columns (400 rows, one draw), mean adjusted
#: Rand index without links and with 30 % of the rows in right links: .29 and .50 without a limit, .39 and .59
#: with 55, .41 and .61 with 30, .41 and .60 with D + 2, .42 and .59 with none. Breast cancer: .03 and .52,
#: .21 and .53 with 55, .74 and .83 with none.
MOST_UNLABELLED_ROWS = 55.0
_ROWS_AT_ONCE = 8192


class CovariancePrior(NamedTuple):
    """Pseudo-rows of every component: ``variances`` (D,) are those of the data."""

    pooled: float
    wide: float
    variances: NDArray[np.float64]


def automatic_rows(n_features: int) -> float:
    """Pseudo-rows of ``shrinkage="auto"``: as many as a full covariance has parameters, D (D + 1) / 2.

    Mean ARI of rows without links, 19 sets of 400 rows: .42 without links, .52 and .60 with 10 and 30 % of
    the rows in right links, .42 and .54 with 15 % wrong. With D + 2 rows .40, .51, .60, .40, .51. With 4 (D +
    2) .42, .52, .61, .42, .53, but then two classes of unlike shapes in two dimensions (the third artificial
    set of PPC, 150 pairs) are lost: accuracy .62 for .91.
    """
    return n_features * (n_features + 1) / 2.0


def check_shrinkage(shrinkage: object) -> None:
    """Refuse what is neither "auto" nor a number >= 0."""
    if isinstance(shrinkage, str) and shrinkage == "auto":
        return
    try:
        check_number(shrinkage, "shrinkage")
    except ValueError:
        raise ValueError(
            f'shrinkage is {shrinkage!r}: pass "auto", or a number of pseudo-rows >= 0 (0: no shrinkage)'
        ) from None


def pseudo_rows(shrinkage: float | str, n_features: int, most: float = np.inf) -> float:
    """The number of pseudo-rows that ``shrinkage`` stands for; "auto" stands for ``most`` at most."""
    return min(automatic_rows(n_features), most) if isinstance(shrinkage, str) else float(shrinkage)


def covariance_prior(points: Points, n_rows: float, reg_covar: float) -> CovariancePrior | None:
    """Return the prior of ``n_rows`` pseudo-rows; None if there are none."""
    if n_rows <= 0.0:
        return None
    return prior_of_moments(column_moments(points), points.n_samples, n_rows, reg_covar)


def column_moments(points: Points) -> NDArray[np.float64]:
    """Sums (2, D) over the rows of the distance to the offset, and of its square."""
    about = points.offset[np.newaxis]
    total = np.zeros((2, points.n_features))
    for start in range(0, points.n_samples, _ROWS_AT_ONCE):
        rows = np.arange(start, min(start + _ROWS_AT_ONCE, points.n_samples))
        part = statistics_pass(points, about, np.ones((len(rows), 1)), "diag", rows=rows)
        total += np.vstack([part.first, part.second])
    return total


def prior_of_moments(
    moments: NDArray[np.float64], n_samples: int, n_rows: float, reg_covar: float
) -> CovariancePrior:
    """The prior of ``n_rows`` > 0 pseudo-rows for data with these ``column_moments``."""
    mean, square = moments / n_samples
    variances = np.maximum(square - mean**2, 0.0) + reg_covar
    return CovariancePrior(n_rows * (1.0 - _WIDE_SHARE), n_rows * _WIDE_SHARE, variances)


def pooled_covariance(gaussians: Gaussians) -> NDArray[np.float64]:
    """Harmonic mean of the covariances, in the shape of one component; "tied": the covariance itself."""
    _, factors, covariance_type = gaussians
    if covariance_type in ("diag", "spherical"):
        return np.asarray(1.0 / np.mean(factors**2, axis=0))
    if covariance_type == "tied":
        return _inverse(factors @ factors.T)
    return _inverse(np.mean(factors @ factors.transpose(0, 2, 1), axis=0))


def _inverse(precision: NDArray[np.float64]) -> NDArray[np.float64]:
    inverse = np.linalg.inv(precision)
    return np.asarray((inverse + inverse.T) / 2.0)


def mean_covariance(
    covariances: NDArray[np.float64], counts: NDArray[np.float64], covariance_type: str
) -> NDArray[np.float64]:
    """Mean of the covariances weighted by the rows of their components, in the shape of one."""
    if covariance_type == "tied":
        return covariances
    return np.asarray(np.tensordot(counts / counts.sum(), covariances, axes=1))


def log_prior(gaussians: Gaussians, prior: CovariancePrior) -> float:
    """Return the log prior of all covariances, with the best P for them; at most 0."""
    means, factors, covariance_type = gaussians
    n_features = means.shape[1]
    roots = log_determinants(gaussians)  # -log|S| / 2
    value = 0.0
    if covariance_type == "tied":
        roots = roots[:1]
    else:
        pooled = pooled_covariance(gaussians)
        if covariance_type == "full":
            log_det = float(np.linalg.slogdet(pooled)[1])
        elif covariance_type == "diag":
            log_det = float(np.log(pooled).sum())
        else:
            log_det = n_features * float(np.log(pooled))
        # For this P the traces add up to K D.
        value += prior.pooled * float((roots + 0.5 * log_det).sum())
    variances = prior.variances
    if covariance_type in ("full", "tied"):
        traces = np.einsum("...ij,...ij,i->...", factors, factors, variances)
    elif covariance_type == "diag":
        traces = factors**2 @ variances
    else:
        traces = factors**2 * variances.sum()
    of_wide = roots + 0.5 * (np.log(variances).sum() - traces + n_features)
    return value + prior.wide * float(np.sum(of_wide))


def shrink(
    covariances: NDArray[np.float64],
    counts: NDArray[np.float64],
    pooled: NDArray[np.float64],
    prior: CovariancePrior,
    covariance_type: str,
) -> NDArray[np.float64]:
    """Covariances with the pseudo-rows among their rows; ``counts`` (K,) are the rows of each component.

    ``pooled`` is P, see ``pooled_covariance``.
    """
    wide: NDArray[np.float64] = prior.variances
    if covariance_type == "spherical":
        wide = np.asarray(wide.mean())
    elif covariance_type != "diag":
        wide = np.diag(wide)
    if covariance_type == "tied":
        n_rows = counts.sum()
        return np.asarray((prior.wide * wide + n_rows * covariances) / (prior.wide + n_rows))
    own = counts.reshape((-1,) + (1,) * (covariances.ndim - 1))
    total = prior.pooled + prior.wide + own
    return np.asarray((prior.pooled * pooled + prior.wide * wide + own * covariances) / total)
