"""Solvers on the sparse neighbour graph alone: signed Laplacian, and a basis of graph eigenvectors.

Both do algorithm A with signed affinities: without clipping, the propagated kernel keeps a form that needs no
N x N matrix.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import cholesky, eigh, solve_triangular
from scipy.sparse.linalg import cg

from linkwise._threads import chunk_bounds
from linkwise.spectral.eigenvectors import factor_stays_sparse, smallest_eigenpairs
from linkwise.spectral.kernels import nearest_neighbours, normalised_adjacency
from linkwise.spectral.normalised_cut import WIPED_SHARE, CutSettings, floored_degrees, row_normalised
from linkwise.spectral.out_of_sample import NeighbourExtension
from linkwise.spectral.propagation import SignedLinks, signed_incidence, signed_links
from linkwise.spectral.solvers import AffinitySettings, Solution, affinity_graph, graph_parts, joined_parts

__all__ = ["BasisSolver", "SignedLaplacianSolver"]

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

    def _extension(self, rows: NDArray[np.float64]) -> NeighbourExtension:
        return NeighbourExtension(self._points, self._neighbours, rows, self._affinity.n_neighbors)


class SignedLaplacianSolver(_GraphSolver):
    """Links as edges of the graph: K = (Lap + tau I)^-1, so that Kbar^-1 = Lap + tau I + V E^-1 V^T.

    This precision is sparse: a must-link is an edge, a cannot-link an edge that pushes its ends to opposite
    values. The eigenvectors with the smallest eigenvalues do not depend on tau = 1 / diffusion_time, which
    only sets the scale of the softness.
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

    def solve(self, pairs: NDArray[np.int64], weights: NDArray[np.float64]) -> Solution:
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

    Kbar = F (I + F^T V E^-1 V^T F)^-1 F^T needs an m x m Cholesky factor for any number of links, so a new
    set of links costs O(N m²). The diffusion time is raised to 4 / lambda_m if it is less, so that what the
    basis leaves out would be small in the kernel: on large graphs a fixed time reaches only a few
    neighbours.
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

    def solve(self, pairs: NDArray[np.int64], weights: NDArray[np.float64]) -> Solution:
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

    def _degrees(self, posterior: NDArray[np.float64]) -> NDArray[np.float64]:
        """sum_j abs(Kbar_ij), estimated on some columns."""
        columns = posterior[self._columns].T
        degrees = np.empty(len(posterior))
        for start, stop in chunk_bounds(0, len(posterior), _ROWS_AT_ONCE):
            affinities = posterior[start:stop] @ columns
            degrees[start:stop] = np.abs(affinities, out=affinities).sum(axis=1)
        return degrees * (len(posterior) / len(self._columns))


def posterior_factor(factor: NDArray[np.float64], links: SignedLinks) -> NDArray[np.float64]:
    """B (N, m) with B B^T = F (I + F^T V E^-1 V^T F)^-1 F^T: the propagated kernel of K = F F^T."""
    observed = factor[links.pairs[:, 0]] - links.signs[:, np.newaxis] * factor[links.pairs[:, 1]]
    observed /= np.sqrt(links.variances)[:, np.newaxis]
    precision = observed.T @ observed
    precision[np.diag_indices_from(precision)] += 1.0
    lower = cholesky(precision, lower=True)
    return np.ascontiguousarray(solve_triangular(lower, factor.T, lower=True).T)
