"""Ways to solve the constrained cut, and which one suits a problem.

A solver is built once from the data; ``solve(pairs, weights)`` then answers for any set of links, which is
what makes interactive use fast. All return the same record.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from sklearn.neighbors import NearestNeighbors

from linkwise.graph import group_labels
from linkwise.spectral.kernels import (
    gaussian_kernel,
    heat_kernel,
    local_scale,
    nearest_neighbours,
    neighbour_graph,
    normalised_adjacency,
    self_tuning_graph,
)
from linkwise.spectral.normalised_cut import CutSettings, KernelCut, solve_kernel
from linkwise.spectral.out_of_sample import (
    Extension,
    GaussianExtension,
    NeighbourExtension,
    PrecomputedExtension,
)

__all__ = [
    "DENSE_LIMIT",
    "GRAPH_AFFINITIES",
    "AffinitySettings",
    "DenseSolver",
    "KernelOf",
    "LandmarkSolver",
    "Solution",
    "Solver",
    "affinity_graph",
    "choose_solver",
    "graph_parts",
    "joined_parts",
]

#: ``solver="auto"`` stores N x N matrices up to this many points. On moons, rings and spirals of 4000 points
#: 1000 landmarks were no worse than the dense solver with 20, 100 and 500 links (a fixed diffusion time
#: reaches less far on a denser graph) and 13 times faster; on digits (1797 points, 10 classes) dense was
#: better by 0.01.
DENSE_LIMIT = 3000


#: Affinities that are heat on a graph of neighbours.
GRAPH_AFFINITIES = ("heat", "self_tuning")


class AffinitySettings(NamedTuple):
    """Where affinities come from; ``sigma`` None takes the scale of the data (``local_scale``)."""

    kind: str
    n_neighbors: int
    diffusion_time: float
    sigma: float | None


class Solution(NamedTuple):
    """Answer of a solver to a set of links.

    ``rows`` (N, k) have length one. ``eigenvalues`` (k,) are those of the normalised affinity, largest
    first; of the signed Laplacian, smallest first. Only the dense solver has an ``affinity`` (N, N).
    ``trace_ratio`` is the variance left by the links, trace(Kbar) / trace(K), and ``n_wiped`` counts points
    that lost nearly all of theirs. ``effects`` (L,) are ``ACTIVE``, ``KNOWN`` or ``UNREACHED``. ``n_parts``
    counts parts of the neighbour graph that neither edges nor must-links join; 1 for other kernels.
    ``history`` (r, k) are the eigenvalues as they were improved.
    """

    rows: NDArray[np.float64]
    eigenvalues: NDArray[np.float64]
    affinity: NDArray[np.float64] | None
    trace_ratio: float
    n_wiped: int
    effects: NDArray[np.int64]
    n_parts: int
    extension: Extension
    converged: bool
    n_iter: int
    history: NDArray[np.float64]


class Solver(Protocol):
    """Built once from the data, asked once per set of links."""

    def solve(self, pairs: NDArray[np.int64], weights: NDArray[np.float64]) -> Solution:
        """Embedding under these links."""


def affinity_graph(neighbours: NearestNeighbors, affinity: AffinitySettings) -> sparse.csr_array:
    """The weighted graph (N, N) on which heat flows."""
    build = self_tuning_graph if affinity.kind == "self_tuning" else neighbour_graph
    return build(neighbours, affinity.n_neighbors)


def graph_parts(graph: sparse.csr_array) -> NDArray[np.int64]:
    """Connected part of each point of a graph."""
    return np.asarray(connected_components(graph, directed=False)[1], dtype=np.int64)


def joined_parts(parts: NDArray[np.int64], pairs: NDArray[np.int64], weights: NDArray[np.float64]) -> int:
    """Number of parts that are left when must-links join parts of a graph."""
    return group_labels(int(parts.max()) + 1, parts[pairs[weights > 0]])[1]


class KernelOf:
    """The kernel of a set of points, with what is needed to extend it."""

    def __init__(self, X: Any, affinity: AffinitySettings, columns: NDArray[np.int64]) -> None:
        self.affinity = affinity
        self.columns = columns
        self.points = X
        self.neighbours: NearestNeighbors | None = None
        self.parts = np.zeros(X.shape[0], dtype=np.int64)
        self.sigma = affinity.sigma
        if affinity.kind == "precomputed":
            self.matrix = np.ascontiguousarray(X, dtype=np.float64)
            return
        self.neighbours = nearest_neighbours(X)
        if affinity.kind == "rbf":
            if self.sigma is None:
                self.sigma = local_scale(self.neighbours)
            self.matrix = gaussian_kernel(X, X, self.sigma)
            return
        graph = affinity_graph(self.neighbours, affinity)
        self.parts = graph_parts(graph)
        self.matrix = heat_kernel(normalised_adjacency(graph), affinity.diffusion_time)

    def extension(self, cut: KernelCut) -> Extension:
        """Extension of a cut of this kernel to further points."""
        if self.affinity.kind == "precomputed":
            return PrecomputedExtension(cut, self.columns)
        if self.affinity.kind == "rbf":
            assert self.sigma is not None
            return GaussianExtension(cut, self.points, self.sigma)
        rows = cut.embedding.rows()
        return NeighbourExtension(self.points, self.neighbours, rows, self.affinity.n_neighbors)


class DenseSolver:
    """The whole N x N kernel: exact, both algorithms, any affinity."""

    def __init__(self, X: Any, affinity: AffinitySettings, settings: CutSettings, seed: int) -> None:
        self._kernel = KernelOf(X, affinity, np.arange(X.shape[0]))
        self._settings = settings
        self._seed = seed

    def solve(self, pairs: NDArray[np.int64], weights: NDArray[np.float64]) -> Solution:
        """Embedding under these links."""
        rng = np.random.default_rng(self._seed)
        cut = solve_kernel(self._kernel.matrix, pairs, weights, self._settings, rng)
        n_parts = joined_parts(self._kernel.parts, pairs, weights)
        return _solution_of(
            cut, cut.embedding.rows(), self._kernel.extension(cut), n_parts, affinity=cut.affinity
        )


class LandmarkSolver:
    """A dense cut of some points, extended to all: the ends of links and points drawn at random."""

    def __init__(
        self, X: Any, affinity: AffinitySettings, settings: CutSettings, seed: int, n_landmarks: int
    ) -> None:
        self._X = X
        self._affinity = affinity
        self._settings = settings
        self._seed = seed
        self._drawn = np.random.default_rng(seed).permutation(X.shape[0])[:n_landmarks]
        self._landmarks = np.empty(0, dtype=np.int64)

    def _prepare(self, ends: NDArray[np.int64]) -> None:
        """Kernel of the landmarks; kept while the landmarks stay the same."""
        landmarks = np.union1d(self._drawn, ends)
        if np.array_equal(landmarks, self._landmarks):
            return
        chosen = self._X[landmarks]
        if self._affinity.kind == "precomputed":
            chosen = chosen[:, landmarks]
        self._kernel = KernelOf(chosen, self._affinity, landmarks)
        self._landmarks = landmarks
        self._others = np.setdiff1d(np.arange(self._X.shape[0]), landmarks, assume_unique=True)

    def solve(self, pairs: NDArray[np.int64], weights: NDArray[np.float64]) -> Solution:
        """Embedding under these links."""
        self._prepare(pairs.ravel())
        rng = np.random.default_rng(self._seed)
        places = np.searchsorted(self._landmarks, pairs)
        cut = solve_kernel(self._kernel.matrix, places, weights, self._settings, rng)
        extension = self._kernel.extension(cut)
        rows = np.empty((self._X.shape[0], self._settings.n_clusters))
        rows[self._landmarks] = cut.embedding.rows()
        if len(self._others):
            rows[self._others] = extension.rows(self._X[self._others])
        n_parts = joined_parts(self._kernel.parts, places, weights)
        return _solution_of(cut, rows, extension, n_parts, affinity=None)


def _solution_of(
    cut: KernelCut,
    rows: NDArray[np.float64],
    extension: Extension,
    n_parts: int,
    *,
    affinity: NDArray[np.float64] | None,
) -> Solution:
    found = cut.embedding
    return Solution(
        rows, found.eigenvalues, affinity, cut.trace_ratio, cut.n_wiped, cut.effects, n_parts,
        extension, found.converged, found.n_iter, found.history,
    )  # fmt: skip


def choose_solver(n_samples: int, affinity: str) -> str:
    """The solver that ``auto`` stands for."""
    return "dense" if n_samples <= DENSE_LIMIT or affinity == "precomputed" else "landmark"
