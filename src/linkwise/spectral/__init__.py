"""Spectral clustering whose affinities obey links."""

from typing import TYPE_CHECKING

from linkwise._exports import resolver

if TYPE_CHECKING:
    from linkwise.spectral.constrained import ConstrainedSpectralClustering as ConstrainedSpectralClustering
    from linkwise.spectral.learning import SpectralLearning as SpectralLearning

__all__ = ["ConstrainedSpectralClustering", "SpectralLearning"]

__getattr__ = resolver(
    __name__,
    {
        "ConstrainedSpectralClustering": "linkwise.spectral.constrained",
        "SpectralLearning": "linkwise.spectral.learning",
    },
)
