"""Constrained normalised cut of a dense kernel: algorithms A and B, and their extension to new points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from linkwise.graph.parity import link_parity
from linkwise.spectral.algorithm_b import (
    cannot_link_vectors,
    largest_products,
    must_link_sums,
    weakest_affinity,
)
from linkwise.spectral.normalised_cut import SpectralEmbedding, affinity_embedding, row_normalised
from linkwise.spectral.propagation import (
    VARIANCE_FLOOR,
    Propagation,
    SignedLinks,
    link_columns,
    propagate,
    propagated_kernel,
    signed_links,
)

__all__ = ["CutSettings", "KernelCut", "constrained_affinity", "extend_rows", "solve_kernel"]

#: Nobody but its two sites feels a link if no other point's abs(k(x, i) -+ k(x, j)) reaches this share of
#: the scale.
_FELT = 1e-3

#: What a link does: changes affinities of other points; says what the kernel knows already (a must-link
#: between near duplicates); reaches no other point, because the kernel is too narrow at both sites.
ACTIVE, KNOWN, UNREACHED = 0, 1, 2

#: A point whose variance fell below this share of its prior variance has been wiped out.
WIPED_SHARE = 1e-4


@dataclass(frozen=True)
class CutSettings:
    """How links become a clustering; every solver reads the same record.

    Attributes
    ----------
    n_clusters : int
    algorithm : {"A", "B"}
    negative_affinities : {"clip", "signed"}
    softness, degree_regularisation, eigen_tol : float
    """

    n_clusters: int
    algorithm: str
    negative_affinities: str
    softness: float
    degree_regularisation: float
    eigen_tol: float


class Cannot(NamedTuple):
    """Cannot-links of algorithm B: the links, w_k (n_c, N) and the divisors of w_k(x)."""

    links: SignedLinks
    vectors: NDArray[np.float64]
    divisors: NDArray[np.float64]


class KernelCut(NamedTuple):
    """A constrained normalised cut of a dense kernel.

    Attributes
    ----------
    affinity : (N, N) float64
        max(0, Kbar), or Kbar for ``negative_affinities="signed"``.
    embedding : SpectralEmbedding
    propagation : Propagation
        Of all links (A) or of the must-links (B).
    cannot : Cannot or None
        Of algorithm B.
    prior_diagonal : (N,) float64
        Diagonal of K.
    effects : (L,) int64
        ``ACTIVE``, ``KNOWN`` or ``UNREACHED`` for each link.
    settings : CutSettings
    """

    affinity: NDArray[np.float64]
    embedding: SpectralEmbedding
    propagation: Propagation
    cannot: Cannot | None
    prior_diagonal: NDArray[np.float64]
    effects: NDArray[np.int64]
    settings: CutSettings

    @property
    def trace_ratio(self) -> float:
        """trace(Kbar) / trace(K)."""
        return float(self.affinity.trace() / self.prior_diagonal.sum())

    @property
    def background(self) -> float:
        """What ``degree_regularisation`` adds to every entry of the affinity."""
        tau = self.settings.degree_regularisation
        return float(tau / (1.0 + tau) * self.embedding.degrees.mean() / len(self.prior_diagonal))

    @property
    def n_wiped(self) -> int:
        """Points that lost nearly all their variance."""
        return int((self.affinity.diagonal() < WIPED_SHARE * self.prior_diagonal).sum())


def constrained_affinity(
    kernel_matrix: NDArray[np.float64],
    pairs: NDArray[np.int64],
    weights: NDArray[np.float64],
    settings: CutSettings,
) -> tuple[NDArray[np.float64], Propagation, Cannot | None, NDArray[np.int64]]:
    """The affinity of algorithm A or B.

    Parameters
    ----------
    kernel_matrix : (N, N) float64
        K.
    pairs : (L, 2) int64
    weights : (L,) float64
        As in :class:`linkwise.Constraints`.
    settings : CutSettings

    Returns
    -------
    affinity, propagation, cannot, effects
        As in :class:`KernelCut`.

    Examples
    --------
    Points 5 and 35 are both linked apart from others, not to each other: algorithm A makes them friends.

    >>> import numpy as np
    >>> from linkwise.spectral.kernel_cut import CutSettings, constrained_affinity
    >>> x = np.linspace(0.0, 4.0, 40)
    >>> K = np.exp(-0.5 * np.subtract.outer(x, x) ** 2 / 0.2**2)
    >>> pairs, weights = np.array([[5, 15], [16, 35]]), np.array([-np.inf, -np.inf])
    >>> for algorithm in "AB":
    ...     settings = CutSettings(2, algorithm, "clip", 0.1, 0.0, 1e-4)
    ...     print(algorithm, constrained_affinity(K, pairs, weights, settings)[0][5, 35].round(2))
    A 0.27
    B 0.0
    """
    clip = settings.negative_affinities == "clip"
    scale = float(kernel_matrix.diagonal().mean())
    links = signed_links(pairs, weights, settings.softness, scale)
    joint = np.ones(len(weights), dtype=bool) if settings.algorithm == "A" else links.signs > 0
    together = links.select(joint)
    columns = link_columns(kernel_matrix, together)
    effects = np.zeros(len(weights), dtype=np.int64)
    effects[joint] = _effects(columns, together, scale)
    if settings.softness**2 <= VARIANCE_FLOOR:
        # In the hard limit implied links change nothing but the size of the system.
        kept = link_parity(kernel_matrix.shape[0], together.pairs, together.signs).independent
        columns, together = columns[kept], together.select(kept)
    propagation = propagate(columns, together)
    affinity = propagated_kernel(kernel_matrix, propagation, clip=clip and settings.algorithm == "A")
    if settings.algorithm == "A":
        return affinity, propagation, None, effects
    apart = links.select(~joint)
    vectors, divisors = cannot_link_vectors(kernel_matrix, propagation, apart)
    effects[~joint] = _effects(vectors * divisors[:, np.newaxis], apart, scale)
    weakest_affinity(affinity, vectors, clip=clip)
    return affinity, propagation, Cannot(apart, vectors, divisors), effects


def _effects(columns: NDArray[np.float64], links: SignedLinks, scale: float) -> NDArray[np.int64]:
    """Whether any point but a link's own two feels it, from U = V^T K."""
    every = np.arange(len(columns))
    i, j = links.pairs[:, 0], links.pairs[:, 1]
    variance = columns[every, i] - links.signs * columns[every, j]
    others = np.abs(columns)
    others[every, i] = 0.0
    others[every, j] = 0.0
    felt = others.max(axis=1, initial=0.0) >= _FELT * scale
    if columns.shape[1] <= 2:
        felt[:] = True
    return np.where(felt, ACTIVE, np.where(variance < _FELT * scale, KNOWN, UNREACHED))


def solve_kernel(
    kernel_matrix: NDArray[np.float64],
    pairs: NDArray[np.int64],
    weights: NDArray[np.float64],
    settings: CutSettings,
    rng: np.random.Generator,
) -> KernelCut:
    """Constrained affinity and its spectral embedding.

    Parameters
    ----------
    kernel_matrix : (N, N) float64
    pairs : (L, 2) int64
    weights : (L,) float64
    settings : CutSettings
    rng : numpy.random.Generator

    Returns
    -------
    KernelCut

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise.spectral.kernel_cut import CutSettings, solve_kernel
    >>> K = np.kron(np.eye(2), np.full((3, 3), 0.9)) + 0.1 * np.eye(6)
    >>> settings = CutSettings(2, "A", "clip", 0.1, 0.0, 1e-4)
    >>> cut = solve_kernel(K, np.empty((0, 2), int), np.empty(0), settings, np.random.default_rng(0))
    >>> cut.embedding.eigenvalues.round(6), cut.trace_ratio
    (array([1., 1.]), 1.0)
    """
    affinity, propagation, cannot, effects = constrained_affinity(kernel_matrix, pairs, weights, settings)
    embedding = affinity_embedding(
        affinity,
        settings.n_clusters,
        rng=rng,
        tol=settings.eigen_tol,
        degree_regularisation=settings.degree_regularisation,
    )
    diagonal = kernel_matrix.diagonal().copy()
    return KernelCut(affinity, embedding, propagation, cannot, diagonal, effects, settings)


def extend_rows(cut: KernelCut, kernel_rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Embedding of further points by the eigenvectors' own equation.

    kbar(x, x_j) = k(x, x_j) - w(x).w(x_j), less max_k w_k(x) w_k(x_j) for algorithm B; then
    y(x) = sum_j max(0, kbar(x, x_j)) e_j / (sqrt(d_j) lambda), scaled to length one.

    Parameters
    ----------
    cut : KernelCut
    kernel_rows : (n, N) float64
        k between these points and those of the cut.

    Returns
    -------
    (n, n_clusters) float64

    Examples
    --------
    A point of the cut gets the row it has.

    >>> import numpy as np
    >>> from linkwise.spectral.kernel_cut import CutSettings, extend_rows, solve_kernel
    >>> K = np.exp(-0.5 * np.subtract.outer(np.arange(6.0), np.arange(6.0)) ** 2)
    >>> settings = CutSettings(2, "B", "clip", 0.1, 0.0, 1e-4)
    >>> pairs, weights = np.array([[0, 1], [2, 3]]), np.array([np.inf, -np.inf])
    >>> cut = solve_kernel(K, pairs, weights, settings, np.random.default_rng(0))
    >>> bool(np.allclose(extend_rows(cut, K), cut.embedding.rows()))
    True
    """
    columns = kernel_rows.T
    whitened = cut.propagation.whiten(link_columns(columns, cut.propagation.links))
    affinity = kernel_rows - whitened.T @ cut.propagation.whitened
    if cut.cannot is not None and len(cut.cannot.divisors):
        links = cut.cannot.links
        sums = columns[links.pairs[:, 0]] + columns[links.pairs[:, 1]]
        sums = must_link_sums(sums, cut.propagation.whitened, whitened, links)
        affinity -= largest_products(sums / cut.cannot.divisors[:, np.newaxis], cut.cannot.vectors)
    if cut.settings.negative_affinities == "clip":
        np.maximum(affinity, 0.0, out=affinity)
    embedding = cut.embedding
    values = embedding.eigenvalues
    weights = embedding.vectors / np.sqrt(embedding.degrees)[:, np.newaxis]
    weights = np.where(np.abs(values) > 1e-12, weights / np.where(values == 0.0, 1.0, values), 0.0)
    if cut.settings.degree_regularisation:
        affinity += cut.background
    return row_normalised(affinity @ weights)
