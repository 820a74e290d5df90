"""Spectral clustering whose affinities are changed by links."""

from typing import TYPE_CHECKING

from linkwise._exports import resolver

if TYPE_CHECKING:
    from linkwise.spectral.constrained import ConstrainedSpectralClustering as ConstrainedSpectralClustering
    from linkwise.spectral.learning import SpectralLearning as SpectralLearning
    from linkwise.spectral.propagation import KernelProfile as KernelProfile
    from linkwise.spectral.propagation import kernel_profile as kernel_profile

__all__ = ["ConstrainedSpectralClustering", "KernelProfile", "SpectralLearning", "kernel_profile"]

__getattr__ = resolver(
    __name__,
    {
        "ConstrainedSpectralClustering": "linkwise.spectral.constrained",
        "KernelProfile": "linkwise.spectral.propagation",
        "SpectralLearning": "linkwise.spectral.learning",
        "kernel_profile": "linkwise.spectral.propagation",
    },
)
