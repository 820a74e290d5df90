"""K-means with links: HMRF-KMeans and its settings, and COP-KMeans."""

from typing import TYPE_CHECKING

from linkwise._exports import ESTIMATORS, resolver

if TYPE_CHECKING:
    from linkwise.kmeans.cop_kmeans import COPKMeans as COPKMeans
    from linkwise.kmeans.hmrf_kmeans import HMRFKMeans as HMRFKMeans
    from linkwise.kmeans.variants import MPCKMeans as MPCKMeans
    from linkwise.kmeans.variants import PCKMeans as PCKMeans

__all__ = ["COPKMeans", "HMRFKMeans", "MPCKMeans", "PCKMeans"]

__getattr__ = resolver(__name__, {name: ESTIMATORS[name] for name in __all__})
