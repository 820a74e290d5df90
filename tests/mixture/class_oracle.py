"""The class-level model with every pair of rows written out: O(N^2), and sums over all labellings."""

from __future__ import annotations

import itertools

import numpy as np
from scipy.special import logsumexp, softmax


def pair_matrix(codes, weights):
    """(N, N) weight of each pair of rows; nothing on the diagonal, nothing for unlabelled rows."""
    n = len(codes)
    pairs = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            if i != j and codes[i] >= 0 and codes[j] >= 0:
                pairs[i, j] = weights[codes[i], codes[j]]
    return pairs


def objective(unary, prob, pairs):
    """F with the entropy in the convention 0 log 0 = 0."""
    positive = prob > 0
    free = (prob[positive] * (unary[positive] - np.log(prob[positive]))).sum()
    return free + 0.5 * np.sum(pairs * (prob @ prob.T))


def updated_row(unary, prob, pairs, i):
    return softmax(unary[i] + pairs[i] @ prob)


def sequential_sweep(unary, prob, pairs, codes):
    prob = prob.copy()
    for i in by_class(codes):
        prob[i] = updated_row(unary, prob, pairs, i)
    return prob


def block_sweep(unary, prob, pairs, codes):
    prob = prob.copy()
    for label in [*range(codes.max() + 1), -1]:
        members = np.flatnonzero(codes == label)
        for i, row in [(i, updated_row(unary, prob, pairs, i)) for i in members]:
            prob[i] = row
    return prob


def by_class(codes):
    labelled = [i for label in range(codes.max() + 1) for i in np.flatnonzero(codes == label)]
    return [*labelled, *np.flatnonzero(codes < 0)]


def log_omega(log_weights, codes, weights):
    """log sum_Z prod pi exp(sum_{i<j} A [z_i = z_j]) over the labelled rows."""
    labelled = codes[codes >= 0]
    terms = []
    for z in itertools.product(range(len(log_weights)), repeat=len(labelled)):
        term = sum(log_weights[k] for k in z)
        for i, j in itertools.combinations(range(len(z)), 2):
            if z[i] == z[j]:
                term += weights[labelled[i], labelled[j]]
        terms.append(term)
    return logsumexp(terms)
