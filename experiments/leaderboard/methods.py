"""Methods of the leaderboard: what is fitted, with which links, and what it is without links."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from sklearn.cluster import KMeans, SpectralClustering
from sklearn.mixture import GaussianMixture

from linkwise.kmeans.cop_kmeans import COPKMeans
from linkwise.kmeans.hmrf_kmeans import HMRFKMeans
from linkwise.kmeans.variants import MPCKMeans, PCKMeans
from linkwise.mixture.constrained_em import ConstrainedEM
from linkwise.mixture.ppc import PPC
from linkwise.spectral.constrained import ConstrainedSpectralClustering
from linkwise.spectral.learning import SpectralLearning

__all__ = ["COUNTERPARTS", "METHODS", "Method"]

#: Starts of every mixture and every kind of k-means.
N_INIT = 2


class Method(NamedTuple):
    """An estimator and the links it is given.

    ``build(n_clusters, seed)`` makes the estimator. ``links`` is "soft" (with their true certainty), "unsure"
    (certainty 0.9 whatever the truth), "hard", or None. ``counterpart`` names the same without links.
    """

    build: Callable[[int, int], Any]
    links: str | None
    counterpart: str | None


def _ppc(**settings: Any) -> Callable[[int, int], PPC]:
    return lambda k, seed: PPC(k, n_init=N_INIT, random_state=seed, **settings)


def _kmeans(estimator: Any, **settings: Any) -> Callable[[int, int], Any]:
    return lambda k, seed: estimator(k, n_init=N_INIT, random_state=seed, **settings)


def _spectral(estimator: Any, **settings: Any) -> Callable[[int, int], Any]:
    return lambda k, seed: estimator(k, random_state=seed, **settings)


#: Every method with links.
METHODS: dict[str, Method] = {
    "PPC soft": Method(_ppc(), "soft", "PPC, no links"),
    "PPC hard": Method(_ppc(), "hard", "PPC, no links"),
    "PPC learn_noise": Method(_ppc(learn_noise=True), "unsure", "PPC, no links"),
    "PPC learn_noise, k-means start": Method(
        _ppc(learn_noise=True, init_params="kmeans"), "unsure", "PPC, no links"
    ),
    "ConstrainedEM": Method(
        lambda k, seed: ConstrainedEM(k, n_init=N_INIT, random_state=seed), "hard", "PPC, no links"
    ),
    "HMRFKMeans full": Method(_kmeans(HMRFKMeans, metric="full"), "soft", "HMRFKMeans full, no links"),
    "PCKMeans": Method(_kmeans(PCKMeans), "soft", "PCKMeans, no links"),
    "PCKMeans hard": Method(_kmeans(PCKMeans), "hard", "PCKMeans, no links"),
    "MPCKMeans": Method(_kmeans(MPCKMeans), "soft", "MPCKMeans, no links"),
    "PCKMeans, k-means++ start": Method(_kmeans(PCKMeans, init="k-means++"), "soft", "PCKMeans, no links"),
    "MPCKMeans, k-means++ start": Method(_kmeans(MPCKMeans, init="k-means++"), "soft", "MPCKMeans, no links"),
    "COPKMeans": Method(_kmeans(COPKMeans, time_limit=5.0), "hard", "PCKMeans, no links"),
    "ConstrainedSpectral": Method(
        _spectral(ConstrainedSpectralClustering), "soft", "ConstrainedSpectral, no links"
    ),
    "SpectralLearning": Method(_spectral(SpectralLearning), "soft", "SpectralLearning, no links"),
}

#: The same without links, and scikit-learn.
COUNTERPARTS: dict[str, Method] = {
    "PPC, no links": Method(_ppc(), None, None),
    "HMRFKMeans full, no links": Method(_kmeans(HMRFKMeans, metric="full"), None, None),
    "PCKMeans, no links": Method(_kmeans(PCKMeans), None, None),
    "MPCKMeans, no links": Method(_kmeans(MPCKMeans), None, None),
    "ConstrainedSpectral, no links": Method(_spectral(ConstrainedSpectralClustering), None, None),
    "SpectralLearning, no links": Method(_spectral(SpectralLearning), None, None),
    "sklearn GaussianMixture": Method(
        lambda k, seed: GaussianMixture(k, n_init=N_INIT, random_state=seed), None, None
    ),
    "sklearn KMeans": Method(_kmeans(KMeans), None, None),
    "sklearn SpectralClustering": Method(
        _spectral(SpectralClustering, affinity="nearest_neighbors"), None, None
    ),
}
