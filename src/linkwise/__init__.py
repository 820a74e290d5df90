"""Constrained clustering with must-links, cannot-links, a few labels and beliefs about classes."""

from typing import TYPE_CHECKING

from linkwise._exports import MODULES, resolver

if TYPE_CHECKING:
    from linkwise.auto.estimator import LinkedClustering as LinkedClustering
    from linkwise.beliefs import ClassBeliefs as ClassBeliefs
    from linkwise.constraints import Constraints as Constraints
    from linkwise.discriminative.clustering import DiscriminativeClustering as DiscriminativeClustering
    from linkwise.kmeans.cop_kmeans import COPKMeans as COPKMeans
    from linkwise.kmeans.hmrf_kmeans import HMRFKMeans as HMRFKMeans
    from linkwise.kmeans.variants import MPCKMeans as MPCKMeans
    from linkwise.kmeans.variants import PCKMeans as PCKMeans
    from linkwise.mixture.constrained_em import ConstrainedEM as ConstrainedEM
    from linkwise.mixture.cppc import CPPC as CPPC
    from linkwise.mixture.ppc import PPC as PPC
    from linkwise.spectral.constrained import ConstrainedSpectralClustering as ConstrainedSpectralClustering
    from linkwise.spectral.learning import SpectralLearning as SpectralLearning

__version__ = "0.1.0"

__all__ = [*MODULES, "__version__"]


__getattr__ = resolver(__name__, MODULES)


def __dir__() -> list[str]:
    return sorted({*globals(), *MODULES})
