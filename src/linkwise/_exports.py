"""Which module defines which public name: imported when first asked for, so nobody waits for the others."""

__all__ = ["ESTIMATORS", "MODULES"]

ESTIMATORS = {
    "COPKMeans": "linkwise.cluster.cop_kmeans",
    "CPPC": "linkwise.mixture.cppc",
    "ConstrainedEM": "linkwise.mixture.constrained_em",
    "ConstrainedSpectralClustering": "linkwise.cluster.spectral",
    "HMRFKMeans": "linkwise.cluster.hmrf_kmeans",
    "MPCKMeans": "linkwise.cluster.settings",
    "PCKMeans": "linkwise.cluster.settings",
    "PPC": "linkwise.mixture.ppc",
    "SpectralLearning": "linkwise.cluster.spectral_learning",
}

MODULES = {
    **ESTIMATORS,
    "ClassBeliefs": "linkwise.beliefs",
    "Constraints": "linkwise.constraints",
}
