"""Clustering that listens to what people know."""

import importlib
from typing import TYPE_CHECKING, Any

from linkwise._exports import MODULES

if TYPE_CHECKING:
    from linkwise.beliefs import ClassBeliefs as ClassBeliefs
    from linkwise.cluster.cop_kmeans import COPKMeans as COPKMeans
    from linkwise.cluster.hmrf_kmeans import HMRFKMeans as HMRFKMeans
    from linkwise.cluster.settings import MPCKMeans as MPCKMeans
    from linkwise.cluster.settings import PCKMeans as PCKMeans
    from linkwise.cluster.spectral import ConstrainedSpectralClustering as ConstrainedSpectralClustering
    from linkwise.cluster.spectral_learning import SpectralLearning as SpectralLearning
    from linkwise.constraints import Constraints as Constraints
    from linkwise.mixture.constrained_em import ConstrainedEM as ConstrainedEM
    from linkwise.mixture.cppc import CPPC as CPPC
    from linkwise.mixture.ppc import PPC as PPC

__version__ = "0.1.0.dev0"

__all__ = [*MODULES, "__version__"]


def __getattr__(name: str) -> Any:
    if name not in MODULES:
        raise AttributeError(f"module 'linkwise' has no attribute {name!r}")
    value = getattr(importlib.import_module(MODULES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *MODULES})
