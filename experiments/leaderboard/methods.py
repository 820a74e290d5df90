"""Methods of the leaderboard: what is fitted, with which links, and what it is without links."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from sklearn.cluster import KMeans, SpectralClustering
from sklearn.mixture import GaussianMixture

from linkwise.auto.estimator import LinkedClustering
from linkwise.discriminative.clustering import DiscriminativeClustering
from linkwise.kmeans.cop_kmeans import COPKMeans
from linkwise.kmeans.variants import MPCKMeans, PCKMeans
from linkwise.mixture.constrained_em import ConstrainedEM
from linkwise.mixture.ppc import PPC
from linkwise.spectral.constrained import ConstrainedSpectralClustering
from linkwise.spectral.learning import SpectralLearning

__all__ = ["BEFORE", "CHOSEN_WITHOUT", "KNOWN_WITHOUT", "METHODS", "WITHOUT_LINKS", "Method"]

#: Name of the reference: of the clusterings without links the one that keeps most links.
CHOSEN_WITHOUT = "best without links, chosen by the links"

#: Starts of scikit-learn's estimators.
N_INIT = 10


class Method(NamedTuple):
    """An estimator and the links it is given.

    ``build(n_clusters, seed)`` makes the estimator. ``links`` is "soft" (with their certainty), "hard" (only
    where all links are right), or None. ``counterpart`` names the same without links.
    """

    build: Callable[[int, int], Any]
    links: str | None = None
    counterpart: str | None = None


def _default(estimator: Any, **settings: Any) -> Callable[[int, int], Any]:
    return lambda k, seed: estimator(k, random_state=seed, **settings)


#: Every method with links, with its defaults.
METHODS: dict[str, Method] = {
    "LinkedClustering": Method(_default(LinkedClustering), "soft", "LinkedClustering, no links"),
    "DiscriminativeClustering": Method(
        _default(DiscriminativeClustering), "soft", "DiscriminativeClustering, no links"
    ),
    "PPC": Method(_default(PPC), "soft", "PPC, no links"),
    "ConstrainedEM": Method(_default(ConstrainedEM), "hard", "PPC, no links"),
    "MPCKMeans": Method(_default(MPCKMeans), "soft", "MPCKMeans, no links"),
    "PCKMeans": Method(_default(PCKMeans), "soft", "PCKMeans, no links"),
    "COPKMeans": Method(_default(COPKMeans), "hard", "PCKMeans, no links"),
    "ConstrainedSpectralClustering": Method(
        _default(ConstrainedSpectralClustering), "soft", "ConstrainedSpectralClustering, no links"
    ),
    "SpectralLearning": Method(_default(SpectralLearning), "soft", "SpectralLearning, no links"),
}

#: The same without links, and scikit-learn. The reference chooses among these; of equals it takes the first.
WITHOUT_LINKS: dict[str, Method] = {
    "ConstrainedSpectralClustering, no links": Method(_default(ConstrainedSpectralClustering)),
    "sklearn SpectralClustering": Method(_default(SpectralClustering, affinity="nearest_neighbors")),
    "PPC, no links": Method(_default(PPC)),
    "PPC tied, no links": Method(_default(PPC, covariance_type="tied")),
    "PPC diagonal, no links": Method(_default(PPC, covariance_type="diag")),
    "sklearn GaussianMixture": Method(_default(GaussianMixture, n_init=N_INIT)),
    "sklearn KMeans": Method(_default(KMeans, n_init=N_INIT)),
    "PCKMeans, no links": Method(_default(PCKMeans)),
    "MPCKMeans, no links": Method(_default(MPCKMeans)),
    "SpectralLearning, no links": Method(_default(SpectralLearning)),
    "LinkedClustering, no links": Method(_default(LinkedClustering)),
    "DiscriminativeClustering, no links": Method(_default(DiscriminativeClustering)),
}

#: The reference chooses among these: what a user finds elsewhere or in the papers. LinkedClustering and
#: DiscriminativeClustering are what is to be judged.
KNOWN_WITHOUT = tuple(
    name for name in WITHOUT_LINKS if not name.startswith(("LinkedClustering", "DiscriminativeClustering"))
)

#: Defaults of before the mixtures, K-means and spectral clustering were tuned to the links. Starts and the
#: stopping rule are today's, which no parameter undoes.
BEFORE: dict[str, Method] = {
    "PPC, earlier defaults": Method(
        _default(PPC, n_init=1, max_iter=100, tol=1e-3, reg_covar=1e-6, shrinkage=0.0, linked_weight=1.0),
        "soft",
        "PPC, no links",
    ),
    "MPCKMeans, earlier defaults": Method(
        _default(MPCKMeans, init="constraints", n_init=1), "soft", "MPCKMeans, no links"
    ),
    "ConstrainedSpectralClustering, earlier defaults": Method(
        _default(
            ConstrainedSpectralClustering, affinity="heat", softness=0.1, base_rates=None, diffusion_time=20.0
        ),
        "soft",
        "ConstrainedSpectralClustering, no links",
    ),
}
