"""Which clusters have rows, and why some of those that EM started with have none in the end."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from linkwise._threads import Workers
from linkwise.graph import group_labels
from linkwise.mixture.em import MixtureParameters, run_em
from linkwise.mixture.gaussian.data import Points
from linkwise.mixture.gaussian.passes import posterior_pass
from linkwise.mixture.links.em_step import LinkedStep
from linkwise.mixture.links.rows import LinkedRows

__all__ = ["EMPTY_WEIGHT", "loss_reason", "occupied_clusters", "occupied_without_links"]

#: A cluster of a smaller weight is empty even if links give it a row: no new row will be told to be in it.
EMPTY_WEIGHT = 1e-6

_FROM_FIT_WITHOUT_LINKS = (
    "start from the fit without links (fit without constraints, then with warm_start=True)"
)
#: Eight mosaics of 400 rows, each with a chain and a grid of links: that start alone mended 1 of 10 losses.
_OMEGA_REMEDY = f'Use mixing="exact" or "fixed"; or {_FROM_FIT_WITHOUT_LINKS}, which alone is rarely enough.'


def occupied_clusters(
    labels: NDArray[np.int64], weights: NDArray[np.float64], cluster_of: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Whether each cluster is the most probable one of some row and has a weight that counts.

    Parameters
    ----------
    labels : (n,) int64
    weights : (K,)
    cluster_of : (K,) int64
        Cluster of each component.

    Returns
    -------
    (n_clusters,) bool

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise.mixture.links.occupancy import occupied_clusters
    >>> occupied_clusters(np.array([0, 0, 2]), np.array([0.7, 0.3, 1e-9]), np.arange(3))
    array([ True, False, False])
    """
    weight = np.bincount(cluster_of, weights)
    return (np.bincount(labels, minlength=len(weight)) > 0) & (weight >= EMPTY_WEIGHT)


def occupied_without_links(
    points: Points,
    start: MixtureParameters,
    cluster_of: NDArray[np.int64],
    *,
    mixing: str,
    reg_covar: float,
    tol: float,
    max_iter: int,
    workers: Workers,
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Clusters that have rows at a start, and those that have rows where EM without links leads from it.

    Parameters
    ----------
    points : Points
    start : MixtureParameters
    cluster_of : (K,) int64
    mixing, reg_covar, tol, max_iter
        As of the fit with links.
    workers : Workers

    Returns
    -------
    at_start, at_end : (n_clusters,) bool
    """
    step = LinkedStep(
        points, None, start.gaussians.covariance_type, reg_covar, "auto", mixing, None, 0, workers
    )
    try:
        end = run_em(step, start, tol=tol, max_iter=max_iter).parameters
    except ValueError:  # a degenerate covariance: this start leads nowhere without links
        end = start
    return _occupied(points, start, cluster_of, workers), _occupied(points, end, cluster_of, workers)


def _occupied(
    points: Points, parameters: MixtureParameters, cluster_of: NDArray[np.int64], workers: Workers
) -> NDArray[np.bool_]:
    found = posterior_pass(points, parameters.gaussians, parameters.log_weights, labels=True, workers=workers)
    assert found.labels is not None
    return occupied_clusters(cluster_of[found.labels], np.exp(parameters.log_weights), cluster_of)


def loss_reason(
    linked: LinkedRows,
    n_samples: int,
    *,
    mixing: str,
    learns_noise: bool,
    prior_exact: bool,
    kept_without_links: bool,
) -> str:
    """Why clusters lost their rows, and what to do about it, in a sentence or two.

    Parameters
    ----------
    linked : LinkedRows
    n_samples : int
    mixing : str
    learns_noise : bool
        Whether links count as observations, which leaves out Omega too.
    prior_exact : bool
        Whether log Omega was exact.
    kept_without_links : bool
        Whether EM from the same start keeps some of these clusters if there are no links.

    Returns
    -------
    str
    """
    hard = linked.pairs[linked.coupling == np.inf]
    n_groups = group_labels(len(linked.rows), hard)[1] + n_samples - len(linked.rows)
    if n_groups < linked.n_clusters:
        return (
            f"Hard must-links join all rows into {n_groups} group{'s' if n_groups > 1 else ''}, so no more "
            f"clusters than that can have rows. Use n_components={n_groups} or less, or soften links "
            "(certainty)."
        )
    if not kept_without_links:
        return (
            "The links are not the cause: EM from the same start loses them without links too. Use fewer "
            "components, several starts (n_init) or another covariance_type."
        )
    if not (linked.coupling > 0).any():
        return (
            "The cannot-links outweigh the data. Use fewer components, weaker links or more starts (n_init)."
        )
    if learns_noise:
        return (
            "learn_noise counts links as observations and leaves out the normaliser Omega of the label "
            "prior; without it, must-links reward one cluster for all rows. Set learn_noise=False and give "
            f"the links a certainty. {_OMEGA_REMEDY}"
        )
    if mixing == "ignore":
        return (
            'mixing="ignore" leaves out the normaliser Omega of the label prior; without it, must-links '
            f"reward one cluster for all rows. {_OMEGA_REMEDY}"
        )
    if mixing == "disjoint" and np.bincount(linked.pairs.ravel()).max() > 1:
        return (
            'mixing="disjoint" computes the normaliser Omega of the label prior as if no two links shared a '
            "row or chunklet. Here some do, and it takes back only a part of the reward that must-links give "
            f"to one cluster for all rows. {_OMEGA_REMEDY}"
        )
    if not prior_exact and mixing in ("exact", "grid"):
        return (
            "The normaliser Omega of the label prior is only an approximation for these links "
            '(inference_["details"]), which may be poor where many strong must-links form loops. Use '
            f'mixing="fixed", weaker links, or {_FROM_FIT_WITHOUT_LINKS}.'
        )
    return (
        "The must-links outweigh what the data say of these clusters; Omega is not the cause. Use weaker "
        f"links, fewer components or more starts (n_init), or {_FROM_FIT_WITHOUT_LINKS}."
    )
