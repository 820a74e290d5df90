"""Which clusters have rows, and why some of those that EM started with have none in the end."""

from __future__ import annotations

import numpy as np

from linkwise._arrays import Bools, Floats, Ints
from linkwise.graph import group_labels
from linkwise.mixture.links.rows import LinkedRows

#: A cluster of a smaller weight is empty even if links give it a row: no new row will be told to be in it.
EMPTY_WEIGHT = 1e-6

_FROM_FIT_WITHOUT_LINKS = (
    "start from the fit without links (fit without constraints, then with warm_start=True)"
)
#: Eight mosaics of 400 rows, each with a chain and a grid of links: that start alone mended 1 of 10 losses.
_OMEGA_REMEDY = f'Use mixing="exact" or "fixed"; or {_FROM_FIT_WITHOUT_LINKS}, which alone is rarely enough.'


def occupied_clusters(n_rows: Ints, weights: Floats, cluster_of: Ints) -> Bools:
    """Whether each cluster is the most probable one of some row and has a weight that counts.

    ``n_rows`` (K,) are the rows of each cluster.
    """
    return (n_rows > 0) & (np.bincount(cluster_of, weights) >= EMPTY_WEIGHT)


def loss_reason(
    linked: LinkedRows,
    n_samples: int,
    n_lost: int,
    n_lost_linked: int,
    *,
    mixing: str,
    learns_noise: bool,
    prior_exact: bool,
) -> str:
    """Why clusters lost their rows, and what to do about it, in a sentence or two.

    ``n_lost`` are the rows that these clusters had at the start, and ``n_lost_linked`` those of them that
    carry links. ``learns_noise`` says that links count as
    observations, which leaves out Omega too, and ``prior_exact`` that log Omega was exact.
    """
    hard = linked.pairs[linked.coupling == np.inf]
    n_groups = group_labels(len(linked.rows), hard)[1] + n_samples - len(linked.rows)
    if n_groups < linked.n_clusters:
        return (
            f"Hard must-links join all rows into {n_groups} group{'s' if n_groups > 1 else ''}, so no more "
            f"clusters than that can have rows. Use n_components={n_groups} or less, or soften links "
            "(certainty)."
        )
    if 2 * n_lost_linked < n_lost:
        return (
            f"The links are probably not the cause: only {n_lost_linked} of the {n_lost} rows that these "
            "clusters had at the start carry links. Use fewer components, several starts (n_init) or another "
            "covariance_type."
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
