"""Shrinkage of covariances: a prior over them that knows no units, and its part of the objective and M-step.

Every component has pseudo-rows beside its own: ``pooled`` of them are spread like all components together
(covariance P), and ``wide`` of them like the data (covariance V, or variances alone). The log prior of one
covariance S is

    - pooled / 2 (log|S| - log|P| + tr(P S^-1) - D)  -  wide / 2 (log|S| - log|V| + tr(V S^-1) - D),

the form of an inverse Wishart density. Each bracket is twice a Kullback-Leibler divergence, so that the value
is at most 0, and 0 for S = P = V. It does not change under any linear map of the features; with variances
alone its second part does not change with their units. V is fixed. P is a parameter: the best one for given
covariances is their harmonic mean, P = (mean_k S_k^-1)^-1, so that nothing but the covariances has to be
kept. The best covariances for a given P are

    S_k = (pooled P + wide V + n_k W_k) / (pooled + wide + n_k),    W_k the weighted covariance of the rows.

Both steps raise the penalised likelihood, so EM never lowers it. "tied" covariances are their own pool: only
the wide rows act on them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from linkwise._arrays import Floats
from linkwise._validation import check_number
from linkwise.mixture.gaussian.data import Points
from linkwise.mixture.gaussian.gaussians import Gaussians, log_determinants
from linkwise.mixture.gaussian.passes import statistics_pass

#: Share of the pseudo-rows that are spread like the data. They keep directions open in which all components
#: are flat.
_WIDE_SHARE = 1.0 / 16.0
#: With more columns than this, covariances are shrunk to the covariance of the data, not to its variances
#: alone, which would fill the narrow directions of correlated columns (breast cancer, 30 columns, without
#: links: adjusted Rand index .15, with the covariance .42). With fewer the variances are better: wisconsin, 9
#: columns, .81 and .75 without links, .81 and .77 with right links among 30 % of the rows.
_FEW_COLUMNS = 10
#: Rows for each column from which on the covariance of the data is good enough for it. Right links among 30 %
#: of the rows, variances and covariance: wine .78 and .69 (3 rows a column), .88 and .81 (6), .94 and .97
#: (14), forest types .54 and .37 (6), .55 and .55 (15; without links .19 and .35).
_ROWS_A_COLUMN = 10
#: Pseudo-rows of "auto" at most, where classes do not say which rows are whose: those of ten columns, or as
#: many for each column. With D (D + 1) / 2 of them all covariances would be one.
_MOST_ROWS = 55.0
_ROWS_AT_ONCE = 8192


class CovariancePrior(NamedTuple):
    """Pseudo-rows of every component.

    ``variances`` (D,) and ``covariance`` (D, D) are those of the data; None: columns count as uncorrelated.
    """

    pooled: float
    wide: float
    variances: Floats
    covariance: Floats | None = None


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


def correlations_count(n_samples: int, n_features: int, covariance_type: str) -> bool:
    """Whether covariances are shrunk to the covariance of the data, not to its variances alone."""
    many = n_features > _FEW_COLUMNS and n_samples >= _ROWS_A_COLUMN * n_features
    return many and covariance_type in ("full", "tied")


def most_unlabelled_rows(n_features: int, correlated: bool) -> float:
    """Pseudo-rows of "auto" at most, where classes do not say which rows are whose."""
    return _MOST_ROWS * n_features / _FEW_COLUMNS if correlated else _MOST_ROWS


def covariance_prior(points: Points, n_rows: float, reg_covar: float) -> CovariancePrior | None:
    """Return the prior of ``n_rows`` pseudo-rows; None if there are none."""
    if n_rows <= 0.0:
        return None
    return prior_of_moments(column_moments(points), points.n_samples, n_rows, reg_covar)


def column_moments(points: Points, covariance_type: str = "diag") -> Floats:
    """Sums over the rows of the distance to the offset (first row) and of its square (1, D) or (D, D)."""
    about = points.offset[np.newaxis]
    total = np.zeros((1, 1))
    for start in range(0, points.n_samples, _ROWS_AT_ONCE):
        rows = np.arange(start, min(start + _ROWS_AT_ONCE, points.n_samples))
        part = statistics_pass(points, about, np.ones((len(rows), 1)), covariance_type, rows=rows)
        total = total + np.vstack([part.first, part.second.reshape(-1, points.n_features)])
    return total


def prior_of_moments(moments: Floats, n_samples: int, n_rows: float, reg_covar: float) -> CovariancePrior:
    """The prior of ``n_rows`` > 0 pseudo-rows for data with these ``column_moments``."""
    mean, square = moments[0] / n_samples, moments[1:] / n_samples
    correlated = len(square) == len(mean) > 1
    of_columns = np.diagonal(square) if correlated else square[0]
    variances = np.maximum(of_columns - mean**2, 0.0) + reg_covar
    covariance = None
    if correlated:
        covariance = square - np.outer(mean, mean)
        np.fill_diagonal(covariance, variances)
        if lapack.dpotrf(covariance)[1]:
            # Columns depend on each other: only without correlations they have room in all directions.
            covariance = None
    return CovariancePrior(n_rows * (1.0 - _WIDE_SHARE), n_rows * _WIDE_SHARE, variances, covariance)


def pooled_covariance(gaussians: Gaussians) -> Floats:
    """Harmonic mean of the covariances, in the shape of one component; "tied": the covariance itself."""
    _, factors, covariance_type = gaussians
    if covariance_type in ("diag", "spherical"):
        return np.asarray(1.0 / np.mean(factors**2, axis=0))
    if covariance_type == "tied":
        return _inverse(factors @ factors.T)
    return _inverse(np.mean(factors @ factors.transpose(0, 2, 1), axis=0))


def _inverse(precision: Floats) -> Floats:
    inverse = np.linalg.inv(precision)
    return np.asarray((inverse + inverse.T) / 2.0)


def mean_covariance(covariances: Floats, counts: Floats, covariance_type: str) -> Floats:
    """Mean of the covariances weighted by the rows of their components, in the shape of one."""
    if covariance_type == "tied":
        return covariances
    return np.asarray(np.tensordot(counts / counts.sum(), covariances, axes=1))


def log_prior(gaussians: Gaussians, prior: CovariancePrior, pooled: Floats | None = None) -> float:
    """Return the log prior of all covariances, with the best P for them; at most 0.

    That P is ``pooled``, see ``pooled_covariance``, if it is known.
    """
    means, factors, covariance_type = gaussians
    n_features = means.shape[1]
    roots = log_determinants(gaussians)  # -log|S| / 2
    value = 0.0
    if covariance_type == "tied":
        roots = roots[:1]
    else:
        if pooled is None:
            pooled = pooled_covariance(gaussians)
        if covariance_type == "full":
            log_det = float(np.linalg.slogdet(pooled)[1])
        elif covariance_type == "diag":
            log_det = float(np.log(pooled).sum())
        else:
            log_det = n_features * float(np.log(pooled))
        # For this P the traces add up to K D.
        value += prior.pooled * float((roots + 0.5 * log_det).sum())
    variances, log_det = prior.variances, float(np.log(prior.variances).sum())
    if covariance_type in ("full", "tied") and prior.covariance is not None:
        log_det = float(np.linalg.slogdet(prior.covariance)[1])
        traces = np.einsum("...ij,...ij->...", prior.covariance @ factors, factors)
    elif covariance_type in ("full", "tied"):
        traces = np.einsum("...ij,...ij,i->...", factors, factors, variances)
    elif covariance_type == "diag":
        traces = factors**2 @ variances
    else:
        traces = factors**2 * variances.sum()
    of_wide = roots + 0.5 * (log_det - traces + n_features)
    return value + prior.wide * float(np.sum(of_wide))


def shrink(
    covariances: Floats, counts: Floats, pooled: Floats, prior: CovariancePrior, covariance_type: str
) -> Floats:
    """Covariances with the pseudo-rows among their rows; ``counts`` (K,) are the rows of each component.

    ``pooled`` is P, see ``pooled_covariance``.
    """
    wide: Floats = prior.variances
    if covariance_type == "spherical":
        wide = np.asarray(wide.mean())
    elif covariance_type != "diag":
        wide = np.diag(wide) if prior.covariance is None else prior.covariance
    if covariance_type == "tied":
        n_rows = counts.sum()
        return np.asarray((prior.wide * wide + n_rows * covariances) / (prior.wide + n_rows))
    own = counts.reshape((-1,) + (1,) * (covariances.ndim - 1))
    total = prior.pooled + prior.wide + own
    return np.asarray((prior.pooled * pooled + prior.wide * wide + own * covariances) / total)
