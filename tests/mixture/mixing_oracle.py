"""Brute force for the prior of the labels: every labelling is visited, a chunklet may bring pi once."""

from __future__ import annotations

import itertools
from functools import cache

import numpy as np
from scipy.special import logsumexp


@cache
def all_labellings(n_labels, n_points):
    """All (n_labels ** n_points, n_points) labellings, and the same one-hot."""
    labellings = np.array(list(itertools.product(range(n_labels), repeat=n_points)))
    return labellings, (labellings[:, :, np.newaxis] == np.arange(n_labels)).astype(float)


class Enumeration:
    """Every labelling of all points, its penalty, and the power of pi it brings.

    ``log P(Z) = sum_i share_i log pi_c(z_i) + sum_i log(pi_{z_i} / pi_c(z_i)) + log g(Z)``: a cluster is
    drawn once per chunklet or once per point, a Gaussian of it once per point.
    """

    def __init__(self, links, cluster_of, share):
        self.cluster_of = np.asarray(cluster_of)
        self.labellings, one_hot = all_labellings(len(self.cluster_of), len(links))
        self.plain = one_hot.sum(axis=1)
        self.shared = np.einsum("zik,i->zk", one_hot, share)
        clusters = self.cluster_of[self.labellings]
        self.penalty = np.zeros(len(clusters))
        for (i, j), weight in zip(links.pairs, links.weights, strict=True):
            violated = (clusters[:, i] == clusters[:, j]) != (weight > 0)
            self.penalty[violated] -= 2.0 * abs(weight)

    def log_prior(self, eta):
        """log pi(Z) g(Z) of every labelling at log weights that need not sum to one."""
        of_cluster = np.array(
            [logsumexp(eta[self.cluster_of == c]) for c in range(self.cluster_of.max() + 1)]
        )
        of_cluster = of_cluster[self.cluster_of]
        return self.shared @ of_cluster + self.plain @ (eta - of_cluster) + self.penalty

    def log_omega(self, eta):
        """log sum_Z pi(Z) g(Z)."""
        return float(logsumexp(self.log_prior(eta)))

    def prior_counts(self, eta):
        """Expected counts, every point by its share."""
        logs = self.log_prior(eta)
        return np.exp(logs - logsumexp(logs)) @ self.shared

    def posterior(self, eta, log_density):
        """Expected counts by share given the data, and log sum_Z P(X, Z) g(Z)."""
        logs = self.log_prior(eta) + log_density[np.arange(log_density.shape[0]), self.labellings].sum(axis=1)
        total = float(logsumexp(logs))
        return np.exp(logs - total) @ self.shared, total


def log_omega_by_links(links, cluster_of, share, eta):
    """The definition of ``mixing="disjoint"``, one group and one link after the other.

    Points joined by hard must-links are one group that brings pi_c^a, a the sum of its shares. A link inside
    a group is a constant, links between the same two groups add up, and the links left count as if each had
    its two groups for itself: a factor E[g] under independent groups.
    """
    cluster_of = np.asarray(cluster_of)
    log_weights = np.array([logsumexp(eta[cluster_of == c]) for c in range(cluster_of.max() + 1)])
    groups = links.chunklets()
    powers = [share[groups == g].sum() for g in range(groups.max() + 1)]
    total = sum(logsumexp(power * log_weights) for power in powers)
    between = {}
    for (i, j), weight in zip(links.pairs, links.weights, strict=True):
        first, second = sorted((groups[i], groups[j]))
        if first == second:
            total -= 2.0 * abs(weight) if weight < 0 else 0.0
            continue
        # Penalty form: weights that cancel leave the constant that both kinds cost at least.
        together, apart = between.get((first, second), (0.0, 0.0))
        between[first, second] = (
            (together, apart + 2.0 * weight) if weight > 0 else (together - 2.0 * weight, apart)
        )
    for (first, second), (cost_together, cost_apart) in between.items():
        p, q = (np.exp(powers[g] * log_weights - logsumexp(powers[g] * log_weights)) for g in (first, second))
        agree = float(p @ q)
        total += np.log(np.exp(-cost_together) * agree + np.exp(-cost_apart) * (1.0 - agree))
    return float(total)
