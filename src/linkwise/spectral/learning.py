"""Spectral learning (Kamvar, Klein & Manning 2003): the baseline that overwrites linked affinities."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from linkwise._arrays import Floats, Ints
from linkwise.constraints import Constraints
from linkwise.spectral.base import SpectralClusterer
from linkwise.spectral.normalised_cut import CutSettings, solve_kernel
from linkwise.spectral.solvers import KernelOf


def overwritten_affinity(kernel_matrix: Floats, pairs: Ints, weights: Floats) -> Floats:
    """A copy whose linked entries are sqrt(K_ii K_jj) for must-links and 0 for cannot-links.

    A link of weight W moves the entry the share tanh(abs(W)) = 2 g - 1 of the way, g its certainty.
    """
    result = kernel_matrix.copy()
    i, j = pairs[:, 0], pairs[:, 1]
    diagonal = kernel_matrix.diagonal()
    target = np.where(weights > 0, np.sqrt(diagonal[i]) * np.sqrt(diagonal[j]), 0.0)
    share = np.tanh(np.abs(weights))
    result[i, j] += share * (target - result[i, j])
    result[j, i] = result[i, j]
    return result


class SpectralLearning(SpectralClusterer):
    """Spectral clustering with the linked entries of the affinity set to 1 and 0.

    A link changes one entry, so its effect on the clusters is small unless many points are linked. The
    spectral step is that of :class:`ConstrainedSpectralClustering`, for comparison; Kamvar et al. normalise
    differently.

    Parameters
    ----------
    n_clusters : int, default=8
    affinity : {"rbf", "heat", "self_tuning", "precomputed"}, default="rbf"
        As in ConstrainedSpectralClustering.
    n_neighbors : int, default=10
    diffusion_time : float, default=20.0
    sigma : "auto" or float, default="auto"
    assign_labels : {"kmeans", "discretize", "cluster_qr"}, default="kmeans"
    n_init : int, default=10
    keep_hard_links : bool, default=True
        Whether labels keep every hard link, as in ConstrainedSpectralClustering. False is the method of
        Kamvar et al.
    eigen_tol : float, default=1e-4
    random_state : int, RandomState, Generator or None

    Attributes
    ----------
    labels_ : (n_samples,) int64
    affinity_matrix_ : (n_samples, n_samples) float64
    embedding_ : (n_samples, n_clusters) float64
    embedding_centers_ : (n_clusters, n_clusters) float64
    eigenvalues_ : (n_clusters,) float64
    violations_ : (n_pairs,) bool
        Which links ``labels_`` break, in the order of ``constraints.pairs``.
    violation_rate_ : float
        Share of the links that ``labels_`` break.
    objective_ : float
        The sum of ``eigenvalues_``, which the embedding maximises; n_clusters minus it is the least
        normalised cut that any clustering could have.
    objectives_ : (r,) float64
        The same whenever the eigensolver improved its vectors.
    converged_ : bool
    n_iter_ : int
    classes_, cluster_names_, contingency_ : (L,), (K,) and (L, K) ndarrays
        If the links were built from labels: the classes, a name of each cluster after its labelled rows, and
        their counts; also ``split_classes_`` and ``shared_clusters_``, as in :class:`PPC`.
    n_features_in_ : int

    Notes
    -----
    Stores N x N matrices.

    References
    ----------
    S. D. Kamvar, D. Klein and C. D. Manning, Spectral learning, IJCAI 2003.

    Examples
    --------
    Links change single entries. The rings are still cut across, while propagated links separate them.

    >>> from linkwise import Constraints
    >>> from linkwise.spectral.learning import SpectralLearning
    >>> from linkwise.datasets import make_rings
    >>> from linkwise.metrics import rand_score
    >>> X, y = make_rings(200, random_state=0)
    >>> links = Constraints.sample(y, 60, overlap=True, random_state=0)
    >>> model = SpectralLearning(2, sigma=0.5, random_state=0).fit(X, constraints=links)
    >>> round(rand_score(y, model.labels_), 1)
    0.5
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        affinity: str = "rbf",
        n_neighbors: int = 10,
        diffusion_time: float = 20.0,
        sigma: str | float = "auto",
        assign_labels: str = "kmeans",
        n_init: int = 10,
        keep_hard_links: bool = True,
        eigen_tol: float = 1e-4,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.affinity = affinity
        self.n_neighbors = n_neighbors
        self.diffusion_time = diffusion_time
        self.sigma = sigma
        self.assign_labels = assign_labels
        self.n_init = n_init
        self.keep_hard_links = keep_hard_links
        self.eigen_tol = eigen_tol
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, *, constraints: Constraints | None = None) -> Self:
        """Cluster the rows of X (n_samples, n_features), dense or sparse, under links between them.

        For ``affinity="precomputed"`` X is the kernel, (n_samples, n_samples).

        Raises
        ------
        InfeasibleConstraints
            If no labels keep the hard links; ``witness`` has a few of them that contradict each other.
        """
        data, pairs, weights, constraints = self._checked_data(X, y, constraints)
        hard = self._hard_links(constraints)
        seed = self._new_seed()
        kernel = KernelOf(data, self._affinity_settings(float(self.diffusion_time)), np.arange(data.shape[0]))
        settings = CutSettings(int(self.n_clusters), "A", "clip", 1.0, 0.0, float(self.eigen_tol))
        none = np.empty((0, 2), dtype=np.int64), np.empty(0)
        affinity = overwritten_affinity(kernel.matrix, pairs, weights)
        cut = solve_kernel(affinity, *none, settings, np.random.default_rng(seed))
        self.affinity_matrix_ = cut.affinity
        self.eigenvalues_ = cut.embedding.eigenvalues
        self.converged_ = cut.embedding.converged
        self.n_iter_ = cut.embedding.n_iter
        self._extension = kernel.extension(cut)
        rows = cut.embedding.rows()
        labels = self._new_labels(rows, seed, hard)
        self._store_labels(rows, labels, cut.embedding.history, constraints)
        if not self.converged_:
            warnings.warn(
                f"the eigenvectors did not reach eigen_tol={self.eigen_tol:g}; raise it or sigma",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self
