"""Slow, literal forms of the propagated kernel and of algorithm B, and kernels to try them on."""

from __future__ import annotations

import numpy as np


def incidence(n_points, pairs, signs):
    """V, one column per link."""
    V = np.zeros((n_points, len(pairs)))
    for link, ((i, j), sign) in enumerate(zip(pairs, signs, strict=True)):
        V[i, link] += 1.0
        V[j, link] -= sign
    return V


def precision_of_links(n_points, pairs, signs, variances):
    """M of Eq. 3, entry by entry."""
    M = np.zeros((n_points, n_points))
    for (i, j), sign, variance in zip(pairs, signs, variances, strict=True):
        M[i, i] += 1.0 / variance
        M[j, j] += 1.0 / variance
        M[i, j] -= sign / variance
        M[j, i] -= sign / variance
    return M


def by_inverses(K, pairs, signs, variances):
    """(K^-1 + M)^-1, for well-conditioned K."""
    return np.linalg.inv(np.linalg.inv(K) + precision_of_links(len(K), pairs, signs, variances))


def by_svd(K, pairs, signs, variances):
    """The same for any K: K^1/2 (I - P diag(s² / (1 + s²)) P^T) K^1/2, P and s by the SVD of
    K^1/2 V E^-1/2.
    """
    values, vectors = np.linalg.eigh(K)
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    scaled = root @ incidence(len(K), pairs, signs) / np.sqrt(variances)
    P, s, _ = np.linalg.svd(scaled, full_matrices=False)
    shrink = s**2 / (1.0 + s**2)
    return root @ (np.eye(len(K)) - (P * shrink) @ P.T) @ root


def algorithm_b(K, pairs, signs, variances, *, clip=True):
    """Algorithm B word for word: one N x N posterior per cannot-link, then the smallest entry."""
    must = signs > 0
    K_must = by_inverses(K, pairs[must], signs[must], variances[must])
    versions = [
        by_inverses(K_must, pairs[[link]], signs[[link]], variances[[link]]) for link in np.flatnonzero(~must)
    ]
    weakest = np.min(versions, axis=0) if versions else K_must
    return np.maximum(0.0, weakest) if clip else weakest


def gaussian(x, sigma):
    """Gaussian kernel of points on a line or in a plane."""
    x = np.asarray(x, dtype=float).reshape(len(x), -1)
    squared = ((x[:, np.newaxis] - x) ** 2).sum(axis=2)
    return np.exp(-0.5 * squared / sigma**2)


def random_links(rng, n_points, n_links):
    """Different pairs with random signs."""
    every = np.array([(i, j) for i in range(n_points) for j in range(i + 1, n_points)])
    pairs = every[rng.choice(len(every), size=min(n_links, len(every)), replace=False)]
    return pairs, rng.choice([-1.0, 1.0], size=len(pairs))


def equivalent_kernel(K, first, second, kind, *, softness=0.0):
    """The kernel after one link, in closed form.

    With u = k(., i) - k(., j) for a must-link, k(., i) + k(., j) for a cannot-link, and s = u(i) -+ u(j),
    kbar(x, y) = k(x, y) - u(x) u(y) / (s + e²); s = 2 (1 -+ K_ij) for a unit diagonal. The printed Eqs. 6
    and 7 belong to another convention of e (errata E2); Eq. 8 lacks its "K -" (E3). A hard must-link (e =
    0) between points that the kernel cannot tell apart leaves K as it is.
    """
    sign = -1.0 if kind == "must" else 1.0
    column = K[:, first] + sign * K[:, second]
    variance = column[first] + sign * column[second] + softness**2
    return K - np.outer(column, column) / variance if variance > 0.0 else K
