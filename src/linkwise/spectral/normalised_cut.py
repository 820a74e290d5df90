"""The constrained normalised cut of a dense kernel: affinities under links, their eigenvectors, new points.

d_i = sum_j abs(A_ij) (the diagonal counts), eigenvectors of D^-1/2 A D^-1/2 with the largest eigenvalues,
rows scaled to length one (Shi & Malik 2000; Ng, Jordan & Weiss 2002). After clipping the affinity is not
positive semi-definite, so the largest eigenvalues are meant with their sign.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh

from linkwise._arrays import Floats, Ints
from linkwise.graph.parity import link_parity
from linkwise.spectral.algorithm_b import (
    cannot_link_vectors,
    largest_products,
    must_link_sums,
    weakest_affinity,
)
from linkwise.spectral.eigenvectors import leading_eigenpairs
from linkwise.spectral.propagation import (
    VARIANCE_FLOOR,
    Propagation,
    SignedLinks,
    link_columns,
    propagate,
    propagated_kernel,
    signed_links,
)

#: Degrees are raised to this share of their mean, so that a point without affinity has one.
_DEGREE_FLOOR = 1e-8

#: Matrices up to this size are diagonalised completely.
_SMALL = 300

#: A link changes only its own two points if no other point's abs(k(x, i) -+ k(x, j)) reaches this share of
#: the scale.
_FELT = 1e-3

#: What a link does: changes affinities of other points; says what the kernel knows already (a must-link
#: between near duplicates); reaches no other point, because the kernel is too narrow at both sites.
ACTIVE, KNOWN, UNREACHED = 0, 1, 2

#: A point whose variance fell below this share of its prior variance has been wiped out.
WIPED_SHARE = 1e-4


@dataclass(frozen=True)
class CutSettings:
    """How links become a clustering; every solver reads the same record."""

    n_clusters: int
    algorithm: str
    negative_affinities: str
    softness: float
    degree_regularisation: float
    eigen_tol: float


class SpectralEmbedding(NamedTuple):
    """Leading eigenvectors (N, k) of a normalised affinity, degrees (N,), products, values (r, k) so far."""

    eigenvalues: Floats
    vectors: Floats
    degrees: Floats
    converged: bool
    n_iter: int
    history: Floats

    def rows(self) -> Floats:
        """The vectors with rows of length one: what is clustered."""
        return row_normalised(self.vectors)


def row_normalised(vectors: Floats) -> Floats:
    """Rows scaled to length one; rows of zeros stay."""
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(length > 0.0, length, 1.0))


def affinity_embedding(
    affinity: Floats,
    k: int,
    *,
    rng: np.random.Generator,
    tol: float = 1e-4,
    degree_regularisation: float = 0.0,
) -> SpectralEmbedding:
    """Leading eigenvectors of D^-1/2 A D^-1/2; degrees count entries without sign.

    ``degree_regularisation`` adds that share of mean(d) / N to every entry of A.
    """
    n = affinity.shape[0]
    degrees = _absolute_row_sums(affinity)
    background = degree_regularisation * float(degrees.mean()) / n
    degrees = floored_degrees(degrees + n * background)
    scale = 1.0 / np.sqrt(degrees)

    if n <= _SMALL:
        matrix = scale[:, np.newaxis] * (affinity + background) * scale
        values, vectors = eigh(matrix, subset_by_index=[n - k, n - 1])
        values = values[::-1]
        return SpectralEmbedding(values, vectors[:, ::-1], degrees, True, 0, values[np.newaxis])

    def product(block: Floats) -> Floats:
        scaled = np.ascontiguousarray((scale[:, np.newaxis] * block).T)
        image = scaled @ affinity  # symmetric; rows times matrix is the fast order for few rows
        if background:
            image += background * scaled.sum(axis=1, keepdims=True)
        return np.asarray((image * scale).T)

    found = leading_eigenpairs(product, n, k, rng=rng, tol=tol)
    return SpectralEmbedding(
        found.values, found.vectors, degrees, found.converged, found.n_iter, found.history
    )


def floored_degrees(degrees: Floats) -> Floats:
    """Degrees raised to a small share of their mean; 1 if all are 0."""
    mean = float(degrees.mean())
    return np.maximum(degrees, _DEGREE_FLOOR * mean if mean > 0.0 else 1.0)


def _absolute_row_sums(affinity: Floats) -> Floats:
    """Sums of abs(A) over rows, without an N x N temporary."""
    sums = np.empty(affinity.shape[0])
    for start in range(0, affinity.shape[0], 256):
        np.abs(affinity[start : start + 256]).sum(axis=1, out=sums[start : start + 256])
    return sums


class Cannot(NamedTuple):
    """Cannot-links of algorithm B: the links, w_k (n_c, N) and the divisors of w_k(x)."""

    links: SignedLinks
    vectors: Floats
    divisors: Floats


class KernelCut(NamedTuple):
    """A constrained normalised cut of a dense kernel.

    ``affinity`` (N, N) is max(0, Kbar), or Kbar if "signed". ``propagation`` is that of all links (A) or of
    the must-links (B), ``effects`` (L,) are ``ACTIVE``, ``KNOWN`` or ``UNREACHED``.
    """

    affinity: Floats
    embedding: SpectralEmbedding
    propagation: Propagation
    cannot: Cannot | None
    prior_diagonal: Floats
    effects: Ints
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
    kernel_matrix: Floats, pairs: Ints, weights: Floats, settings: CutSettings
) -> tuple[Floats, Propagation, Cannot | None, Ints]:
    """The affinity of algorithm A, or of B where points apart from a third do not become similar."""
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


def _effects(columns: Floats, links: SignedLinks, scale: float) -> Ints:
    """What each link does to points that are not its own two, (L,), from U = V^T K."""
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
    kernel_matrix: Floats, pairs: Ints, weights: Floats, settings: CutSettings, rng: np.random.Generator
) -> KernelCut:
    """Constrained affinity of a kernel (N, N) and its spectral embedding."""
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


def extend_rows(cut: KernelCut, kernel_rows: Floats) -> Floats:
    """Embedding (n, k) of further points by the eigenvectors' own equation, from their kernel (n, N).

    kbar(x, x_j) = k(x, x_j) - w(x).w(x_j), less max_k w_k(x) w_k(x_j) for algorithm B; then y(x) = sum_j
    max(0, kbar(x, x_j)) e_j / (sqrt(d_j) lambda), scaled to length one.
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
