"""Coordinates in which Euclidean distance is diffusion distance on the graph of neighbours; no links."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh, null_space

from linkwise.spectral.eigenvectors import smallest_eigenpairs
from linkwise.spectral.kernels import nearest_neighbours, normalised_adjacency
from linkwise.spectral.solvers import AffinitySettings, affinity_graph

__all__ = ["diffusion_embedding"]

#: Graphs up to this size are diagonalised as dense matrices.
_DENSE = 1000


def diffusion_embedding(
    X: Any,
    n_components: int,
    *,
    affinity: str = "self_tuning",
    n_neighbors: int = 10,
    diffusion_time: float = 20.0,
    seed: int = 0,
) -> NDArray[np.float64]:
    """Diffusion map (N, n_components) of rows X (N, d): a cheap space for methods that need vectors.

    With S = D^-1/2 G D^-1/2 of the weighted graph G, S v_k = lambda_k v_k and degrees d, row i has the
    coordinates exp(-t (1 - lambda_k)) v_ki sqrt(sum(d) / d_i), largest lambda first and without the constant
    one. With all N - 1 of them the squared distance of two rows is sum_l (P_il - P_jl)² / pi_l, where P =
    D^-1/2 exp(-t (1 - S)) D^1/2 is the chance to walk there in the time t and pi = d / sum(d) (Coifman and
    Lafon 2006).
    """
    n = X.shape[0]
    graph = affinity_graph(
        nearest_neighbours(X), AffinitySettings(affinity, n_neighbors, diffusion_time, None)
    )
    adjacency = normalised_adjacency(graph)
    degrees = np.asarray(graph.sum(axis=1), dtype=np.float64)
    k = min(n_components, n - 1)
    if n <= _DENSE:
        vectors = eigh(adjacency.toarray(), subset_by_index=[n - k - 1, n - 1])[1]
    else:
        laplacian = -adjacency
        laplacian.setdiag(1.0)
        vectors = smallest_eigenpairs(laplacian.tocsr(), k + 1, rng=np.random.default_rng(seed)).vectors
    # A graph in parts has the eigenvalue 1 several times: the constant function is taken out of their span.
    constant = np.sqrt(degrees / degrees.sum())
    vectors = vectors @ null_space((constant @ vectors)[np.newaxis])[:, :k]
    values, rotation = eigh(vectors.T @ (adjacency @ vectors))
    values, vectors = values[::-1], vectors @ rotation[:, ::-1]
    return np.asarray(vectors / constant[:, np.newaxis] * np.exp(-diffusion_time * (1.0 - values)))
