"""Ways to solve the constrained cut, and which one suits a problem.

A solver is built once from the data; ``solve(pairs, weights)`` then answers for any set of links, which is
what makes interactive use fast. All return the same record.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy import sparse
from scipy.linalg import cholesky, eigh, solve_triangular
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import cg
from sklearn.neighbors import NearestNeighbors

from linkwise._arrays import Floats, Ints
from linkwise._shared_work import SharedWork, shared
from linkwise._threads import chunk_bounds
from linkwise.graph import group_labels
from linkwise.spectral.eigenvectors import factor_stays_sparse, smallest_eigenpairs
from linkwise.spectral.kernels import (
    gaussian_kernel,
    heat_kernel,
    local_scale,
    nearest_neighbours,
    neighbour_graph,
    normalised_adjacency,
    self_tuning_graph,
)
from linkwise.spectral.normalised_cut import (
    WIPED_SHARE,
    CutSettings,
    KernelCut,
    floored_degrees,
    row_normalised,
    solve_kernel,
)
from linkwise.spectral.out_of_sample import (
    Extension,
    GaussianExtension,
    NeighbourExtension,
    PrecomputedExtension,
)
from linkwise.spectral.propagation import SignedLinks, signed_incidence, signed_links

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

    ``rows`` (N, k) have length one. ``eigenvalues`` (k,), largest first; of the signed Laplacian smallest
    first. ``affinity`` (N, N) if dense. ``trace_ratio``: trace(Kbar) / trace(K); ``n_wiped``: points that
    lost nearly all variance. ``effects`` (L,): ``ACTIVE``, ``KNOWN`` or ``UNREACHED``. ``n_parts`` of the
    neighbour graph that nothing joins. ``history`` (r, k): eigenvalues as they were improved.
    """

    rows: Floats
    eigenvalues: Floats
    affinity: Floats | None
    trace_ratio: float
    n_wiped: int
    effects: Ints
    n_parts: int
    extension: Extension
    converged: bool
    n_iter: int
    history: Floats


class Solver(Protocol):
    """Built once from the data, asked once per set of links."""

    def solve(self, pairs: Ints, weights: Floats) -> Solution:
        """Embedding under these links."""


def affinity_graph(neighbours: NearestNeighbors, affinity: AffinitySettings) -> sparse.csr_array:
    """The weighted graph (N, N) on which heat flows."""
    build = self_tuning_graph if affinity.kind == "self_tuning" else neighbour_graph
    return build(neighbours, affinity.n_neighbors)


def graph_parts(graph: sparse.csr_array) -> Ints:
    """Connected part of each point of a graph."""
    return np.asarray(connected_components(graph, directed=False)[1], dtype=np.int64)


def joined_parts(parts: Ints, pairs: Ints, weights: Floats) -> int:
    """Number of parts that are left when must-links join parts of a graph."""
    return group_labels(int(parts.max()) + 1, parts[pairs[weights > 0]])[1]


class KernelOf:
    """The kernel of a set of points, with what is needed to extend it."""

    def __init__(self, X: Any, affinity: AffinitySettings, columns: Ints) -> None:
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

    def __init__(
        self,
        X: Any,
        affinity: AffinitySettings,
        settings: CutSettings,
        seed: int,
        work: SharedWork | None = None,
    ) -> None:
        self._kernel = shared(
            work, ("kernel", affinity), lambda: KernelOf(X, affinity, np.arange(X.shape[0]))
        )
        self._settings = settings
        self._seed = seed

    def solve(self, pairs: Ints, weights: Floats) -> Solution:
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

    def _prepare(self, ends: Ints) -> None:
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

    def solve(self, pairs: Ints, weights: Floats) -> Solution:
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
    cut: KernelCut, rows: Floats, extension: Extension, n_parts: int, *, affinity: Floats | None
) -> Solution:
    found = cut.embedding
    return Solution(
        rows, found.eigenvalues, affinity, cut.trace_ratio, cut.n_wiped, cut.effects, n_parts,
        extension, found.converged, found.n_iter, found.history,
    )  # fmt: skip


def choose_solver(n_samples: int, affinity: str) -> str:
    """The solver that ``auto`` stands for."""
    return "dense" if n_samples <= DENSE_LIMIT or affinity == "precomputed" else "landmark"


#: Columns whose affinities estimate the degrees of all points.
_DEGREE_COLUMNS = 1000

#: The diffusion time is raised until the last eigenvector of the basis counts exp(-this) in the kernel.
_LAST_EXPONENT = 4.0

#: Random vectors that estimate the mean diagonal of a kernel; the error is below a few percent.
_PROBES = 16

_ROWS_AT_ONCE = 4096


class _GraphSolver:
    """The normalised Laplacian of the neighbour graph."""

    def __init__(self, X: Any, affinity: AffinitySettings, settings: CutSettings, seed: int) -> None:
        self._points = X
        self._neighbours = nearest_neighbours(X)
        self._affinity = affinity
        self._settings = settings
        self._seed = seed
        graph = affinity_graph(self._neighbours, affinity)
        self._parts = graph_parts(graph)
        adjacency = normalised_adjacency(graph)
        self._laplacian = sparse.csr_array(sparse.eye_array(adjacency.shape[0]) - adjacency)

    def _extension(self, rows: Floats) -> NeighbourExtension:
        return NeighbourExtension(self._points, self._neighbours, rows, self._affinity.n_neighbors)


class SignedLaplacianSolver(_GraphSolver):
    """Links as edges of the graph: K = (Lap + tau I)^-1, so that Kbar^-1 = Lap + tau I + V E^-1 V^T.

    This precision is sparse. Its smallest eigenvectors do not depend on tau = 1 / diffusion_time, which only
    sets the scale of the softness.
    """

    def __init__(self, X: Any, affinity: AffinitySettings, settings: CutSettings, seed: int) -> None:
        super().__init__(X, affinity, settings, seed)
        self._direct = factor_stays_sparse(self._laplacian)
        self._scale = self._mean_diagonal()

    def _mean_diagonal(self) -> float:
        """Mean diagonal of (Lap + tau I)^-1 by Hutchinson's estimator."""
        n = self._laplacian.shape[0]
        matrix = self._laplacian + sparse.eye_array(n) / self._affinity.diffusion_time
        signs = np.random.default_rng(self._seed).choice([-1.0, 1.0], size=(_PROBES, n))
        return float(np.mean([probe @ cg(matrix, probe, rtol=1e-3)[0] for probe in signs]) / n)

    def solve(self, pairs: Ints, weights: Floats) -> Solution:
        """Embedding under these links."""
        n = self._laplacian.shape[0]
        links = signed_links(pairs, weights, self._settings.softness, self._scale)
        incidence = signed_incidence(n, links)
        strength = sparse.diags_array(1.0 / links.variances, shape=(len(pairs), len(pairs)))
        precision = sparse.csr_array(self._laplacian + incidence @ strength @ incidence.T)
        tol = 1e-6
        if not self._direct:
            tol /= max(1.0, float(precision.diagonal().max()))
        found = smallest_eigenpairs(
            precision, self._settings.n_clusters, rng=np.random.default_rng(self._seed), tol=tol,
            direct=self._direct,
        )  # fmt: skip
        rows = row_normalised(found.vectors)
        return Solution(
            rows, found.values, None, float("nan"), 0, np.zeros(len(pairs), dtype=np.int64),
            joined_parts(self._parts, pairs, weights), self._extension(rows), found.converged, found.n_iter,
            found.history,
        )  # fmt: skip


class BasisSolver(_GraphSolver):
    """A heat kernel of the m smoothest functions on the graph, found once: K = F F^T with F of shape (N, m).

    Kbar = F (I + F^T V E^-1 V^T F)^-1 F^T: a new set of links costs O(N m²). The diffusion time is raised to
    4 / lambda_m if it is less, so that what the basis leaves out is small.
    """

    def __init__(
        self, X: Any, affinity: AffinitySettings, settings: CutSettings, seed: int, n_basis: int
    ) -> None:
        super().__init__(X, affinity, settings, seed)
        rng = np.random.default_rng(seed)
        n = self._laplacian.shape[0]
        found = smallest_eigenpairs(self._laplacian, min(n_basis, n), rng=rng)
        values = np.maximum(found.values, 0.0)
        last = float(values[-1])
        self.diffusion_time = max(affinity.diffusion_time, _LAST_EXPONENT / last if last > 0.0 else 0.0)
        self._factor = row_normalised(found.vectors * np.exp(-0.5 * self.diffusion_time * values))
        self._columns = rng.permutation(n)[:_DEGREE_COLUMNS]
        self._converged, self._n_iter = found.converged, found.n_iter

    def solve(self, pairs: Ints, weights: Floats) -> Solution:
        """Embedding under these links."""
        links = signed_links(pairs, weights, self._settings.softness, 1.0)
        posterior = posterior_factor(self._factor, links)
        scaled = posterior / np.sqrt(floored_degrees(self._degrees(posterior)))[:, np.newaxis]
        values, rotation = eigh(scaled.T @ scaled)
        k = self._settings.n_clusters
        rows = row_normalised(scaled @ rotation[:, ::-1][:, :k])
        variance = np.einsum("nm,nm->n", posterior, posterior)
        return Solution(
            rows, values[::-1][:k], None, float(variance.mean()), int((variance < WIPED_SHARE).sum()),
            np.zeros(len(pairs), dtype=np.int64), joined_parts(self._parts, pairs, weights),
            self._extension(rows), self._converged, self._n_iter, values[::-1][np.newaxis, :k],
        )  # fmt: skip

    def _degrees(self, posterior: Floats) -> Floats:
        """sum_j abs(Kbar_ij), estimated on some columns."""
        columns = posterior[self._columns].T
        degrees = np.empty(len(posterior))
        for start, stop in chunk_bounds(0, len(posterior), _ROWS_AT_ONCE):
            affinities = posterior[start:stop] @ columns
            degrees[start:stop] = np.abs(affinities, out=affinities).sum(axis=1)
        return degrees * (len(posterior) / len(self._columns))


def posterior_factor(factor: Floats, links: SignedLinks) -> Floats:
    """B (N, m) with B B^T = F (I + F^T V E^-1 V^T F)^-1 F^T: the propagated kernel of K = F F^T."""
    observed = factor[links.pairs[:, 0]] - links.signs[:, np.newaxis] * factor[links.pairs[:, 1]]
    observed /= np.sqrt(links.variances)[:, np.newaxis]
    precision = observed.T @ observed
    precision[np.diag_indices_from(precision)] += 1.0
    lower = cholesky(precision, lower=True)
    return np.ascontiguousarray(solve_triangular(lower, factor.T, lower=True).T)
