"""Brute force for mixtures with links: every labelling is visited, densities come from scipy."""

from __future__ import annotations

import itertools

import numpy as np
from scipy.special import logsumexp
from scipy.stats import multivariate_normal


def log_density(X, means, covariances):
    """log N(x_i; k) by scipy, covariances (K, D, D)."""
    return np.column_stack(
        [
            multivariate_normal(mean, covariance).logpdf(X).reshape(len(X))
            for mean, covariance in zip(means, covariances, strict=True)
        ]
    )


def log_penalty(labels, links, cluster_of=None):
    """log g(Z) in penalty form: -2 |W| for every violated link, straight from Eq. 2.7."""
    labels = np.asarray(labels) if cluster_of is None else np.asarray(cluster_of)[list(labels)]
    total = 0.0
    for (i, j), weight in zip(links.pairs, links.weights, strict=True):
        if (labels[i] == labels[j]) != (weight > 0):
            total -= 2.0 * abs(weight)
    return total


def log_omega(weights, links, cluster_of=None):
    """log sum_Z prod_i pi_{z_i} g(Z) over all labellings of all points."""
    terms = [
        sum(np.log(weights[k]) for k in labels) + log_penalty(labels, links, cluster_of)
        for labels in itertools.product(range(len(weights)), repeat=len(links))
    ]
    return float(logsumexp(terms))


def prior_counts(weights, links):
    """Expected number of points in each component under the prior."""
    labellings = np.array(list(itertools.product(range(len(weights)), repeat=len(links))))
    logs = np.array([np.log(weights)[z].sum() + log_penalty(z, links) for z in labellings])
    probability = np.exp(logs - logsumexp(logs))
    return np.array([(probability * (labellings == k).sum(axis=1)).sum() for k in range(len(weights))])


def posterior(X, weights, means, covariances, links, cluster_of=None):
    """Responsibilities (n, K) and log sum_Z P(X, Z) g(Z)."""
    joint = log_density(X, means, covariances) + np.log(weights)
    labellings = np.array(list(itertools.product(range(len(weights)), repeat=len(X))))
    rows = np.arange(len(X))
    logs = np.array([joint[rows, z].sum() + log_penalty(z, links, cluster_of) for z in labellings])
    total = float(logsumexp(logs))
    probability = np.exp(logs - total)
    resp = np.array([[probability[labellings[:, i] == k].sum() for k in range(len(weights))] for i in rows])
    return resp, total


def penalised_log_likelihood(X, weights, means, covariances, links, cluster_of=None):
    """log sum_Z P(X, Z) g(Z) - log Omega."""
    return posterior(X, weights, means, covariances, links, cluster_of)[1] - log_omega(
        weights, links, cluster_of
    )


def random_links(rng, n, *, hard=0.3, n_pairs=None, must=0.5):
    """Random links among n points, a share of them hard; hard contradictions are drawn again."""
    from linkwise import Constraints
    from linkwise.exceptions import InfeasibleConstraints

    everything = list(itertools.combinations(range(n), 2))
    while True:
        chosen = rng.permutation(len(everything))[: n_pairs or rng.integers(1, n + 1)]
        sign = rng.random(len(chosen)) < must
        strength = np.where(rng.random(len(chosen)) < hard, np.inf, rng.exponential(1.0, len(chosen)))
        pairs = np.array(everything)[chosen]
        weight = np.concatenate([strength[sign], strength[~sign]])
        try:
            return Constraints(n, pairs[sign], pairs[~sign], weight=weight)
        except InfeasibleConstraints:
            continue
