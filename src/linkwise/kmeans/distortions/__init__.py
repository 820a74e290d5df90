"""Distortions of HMRF-KMeans: distances, centres and metrics."""

from __future__ import annotations

from linkwise.kmeans.distortions.base import Distortion
from linkwise.kmeans.distortions.cosine import Cosine
from linkwise.kmeans.distortions.divergences import Divergence
from linkwise.kmeans.distortions.euclidean import SquaredEuclidean

DISTORTIONS = ("euclidean", "cosine", "kl", "i_divergence")
METRICS = (None, "diag", "full", "per_cluster")


def make_distortion(
    name: str,
    metric: str | None,
    n_clusters: int,
    *,
    metric_weight: float = 1.0,
    shrinkage: float = 1.0,
    smoothing: float = 0.1,
    penalty_bound: str = "box",
) -> Distortion:
    """Make the distortion of this name with the metric it is to learn; refuse what does not go together."""
    made: Distortion
    if name == "euclidean":
        made = SquaredEuclidean(
            metric, n_clusters, metric_weight=metric_weight, shrinkage=shrinkage, penalty_bound=penalty_bound
        )
    elif name == "cosine":
        made = Cosine(metric, metric_weight=metric_weight)
    elif name in ("kl", "i_divergence"):
        made = Divergence(metric, normalise=name == "kl", metric_weight=metric_weight, smoothing=smoothing)
    else:
        raise ValueError(
            f"distortion must be one of {', '.join(DISTORTIONS)}; got {name!r}: pass one of them"
        )
    if metric not in METRICS:
        raise ValueError(
            f'metric must be None, "diag", "full" or "per_cluster", got {metric!r}; pass one of them'
        )
    if metric not in made.metrics:
        raise ValueError(
            f"metric={metric!r} is defined for distortion='euclidean' only, whose Gaussian normaliser keeps "
            f"it from collapsing; distortion={name!r} learns metric='diag' or None"
            ": pass one of these"
        )
    return made
