"""Which module defines which public name; a module is imported when a name of it is first asked for."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any

ESTIMATORS = {
    "COPKMeans": "linkwise.kmeans.cop_kmeans",
    "CPPC": "linkwise.mixture.cppc",
    "ConstrainedEM": "linkwise.mixture.constrained_em",
    "ConstrainedSpectralClustering": "linkwise.spectral.constrained",
    "DiscriminativeClustering": "linkwise.discriminative.clustering",
    "HMRFKMeans": "linkwise.kmeans.hmrf_kmeans",
    "MPCKMeans": "linkwise.kmeans.variants",
    "PCKMeans": "linkwise.kmeans.variants",
    "PPC": "linkwise.mixture.ppc",
    "SpectralLearning": "linkwise.spectral.learning",
}

MODULES = {
    **ESTIMATORS,
    "LinkedClustering": "linkwise.auto.estimator",
    "ClassBeliefs": "linkwise.beliefs",
    "Constraints": "linkwise.constraints",
}


def resolver(package: str, table: Mapping[str, str]) -> Callable[[str], Any]:
    """Make the ``__getattr__`` of a package whose public names are defined in these modules."""

    def find(name: str) -> Any:
        if name not in table:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(table[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return find
