"""Criteria of a legend that is simply given: no EM, one Gaussian for each cluster."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.metrics import belief_adherence, separability
from linkwise.mixture.classes.criteria import class_criteria, mixture_likelihoods
from linkwise.mixture.gaussian.data import points_of
from linkwise.mixture.gaussian.gaussians import Gaussians, n_free_parameters, precision_factors

__all__ = ["legend_criteria", "mixture_criteria"]

#: Added to the variances, as CPPC does.
_REG_COVAR = 1e-6


def mixture_criteria(
    X: NDArray[np.float64],
    y: NDArray[Any],
    labels: NDArray[np.int64],
    beliefs: NDArray[np.float64],
    criterion_weight: float,
    weights: NDArray[np.float64],
    gaussians: Gaussians,
) -> dict[str, float]:
    """The criteria of :mod:`linkwise.mixture.classes.criteria` for any mixture and any labels.

    Parameters
    ----------
    X : (n, d) float64
    y : (n,) ndarray
        Classes.
    labels : (n,) int64
        Cluster of each row, a number of a component.
    beliefs : (L, L) float64
        In the order of the sorted classes.
    criterion_weight : float
        Weight of the beliefs in cBIC.
    weights : (K,) float64
    gaussians : Gaussians
        Full covariances.

    Returns
    -------
    dict
        "bic", "icl", "cbic", "bic_paper", "cbic_paper"; lower is better.
    """
    n_components, n_features = gaussians.means.shape
    log_weights = np.log(weights)
    return class_criteria(
        mixture_likelihoods(points_of(X), gaussians, log_weights, labels),
        n_components=n_components,
        n_parameters=n_free_parameters(n_components, n_features, "full"),
        n_labelled=len(y),
        adherence=belief_adherence(beliefs, separability(y, labels), normalize=True),
        criterion_weight=criterion_weight,
    )


def legend_criteria(
    X: NDArray[np.float64],
    y: NDArray[Any],
    legend: NDArray[Any],
    beliefs: NDArray[np.float64],
    criterion_weight: float,
) -> dict[str, float]:
    """Criteria of a legend whose clusters are Gaussians with the shares and moments of their own rows.

    Parameters
    ----------
    X : (n, d) float64
    y, legend : (n,) ndarray
        Class and cluster of each row; the same array for the legend as it is.
    beliefs : (L, L) float64
    criterion_weight : float

    Returns
    -------
    dict
        As in :func:`mixture_criteria`.

    Examples
    --------
    >>> import numpy as np
    >>> from experiments.classes.legend_scores import legend_criteria
    >>> X = np.random.default_rng(0).normal(size=(60, 2)) + np.repeat([[0], [9], [9]], 20, axis=0)
    >>> y = np.repeat([0, 1, 2], 20)
    >>> beliefs = np.array([[1.0, -1.0, -1.0], [-1.0, 1.0, 1.0], [-1.0, 1.0, 1.0]])
    >>> two = legend_criteria(X, y, np.minimum(y, 1), beliefs, 0.5)
    >>> two["cbic"] < legend_criteria(X, y, y, beliefs, 0.5)["cbic"]
    True
    """
    _, codes = np.unique(legend, return_inverse=True)
    members = [X[codes == k] for k in range(codes.max() + 1)]
    floor = _REG_COVAR * np.eye(X.shape[1])
    covariances = np.stack([np.cov(rows.T, bias=True).reshape(floor.shape) + floor for rows in members])
    gaussians = Gaussians(
        np.stack([rows.mean(axis=0) for rows in members]), precision_factors(covariances, "full"), "full"
    )
    shares = np.bincount(codes) / len(codes)
    return mixture_criteria(X, y, codes.astype(np.int64), beliefs, criterion_weight, shares, gaussians)
