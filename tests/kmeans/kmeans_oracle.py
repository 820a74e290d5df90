"""The objective of HMRF-KMeans, written out pair by pair and feature by feature."""

from __future__ import annotations

import itertools
import math

import numpy as np

LOG2 = math.log(2.0)


def xlogx(x):
    return x * math.log(x) if x > 0 else 0.0


def prepared(X, distortion, smoothing=0.1):
    """Rows as the distortion sees them, dense."""
    X = np.asarray(X, dtype=float)
    if distortion == "euclidean":
        return X
    if distortion == "cosine":
        return np.array([row / math.sqrt(sum(v * v for v in row)) for row in X])
    if distortion == "kl":
        X = np.array([row / sum(row) for row in X])
    return np.array([(1 - smoothing) * row + smoothing * sum(row) / len(row) for row in X])


def matrix_of(metric, cluster, n_features, kind):
    """The metric of a cluster as a (d, d) matrix."""
    if kind is None:
        return np.eye(n_features)
    if kind == "diag":
        return np.diag(metric)
    if kind == "per_cluster":
        return np.diag(metric[cluster])
    return metric


def distance(x, y, A, distortion):
    """D(x, y) with y the centre."""
    if distortion == "euclidean":
        gap = x - y
        return float(gap @ A @ gap)
    if distortion == "cosine":
        return 1.0 - float(x @ A @ y) / math.sqrt(float(x @ A @ x) * float(y @ A @ y))
    a = np.diag(A)
    return sum(a[m] * (xlogx(x[m]) - x[m] * math.log(y[m]) - x[m] + y[m]) for m in range(len(x)))


def phi(x, y, A, distortion):
    """Penalty of a pair of rows."""
    if distortion in ("euclidean", "cosine"):
        return distance(x, y, A, distortion)
    a, total = np.diag(A), 0.0
    for m in range(len(x)):
        both = x[m] + y[m]
        for value in (x[m], y[m]):
            if value > 0:
                total += a[m] * value * math.log(2 * value / both)
    return total


def phi_max(X, A, distortion, kind, bound="box"):
    """The largest penalty, or the bound that stands for it."""
    if distortion == "euclidean":
        if bound == "diameter":
            return max(distance(x, y, A, distortion) for x, y in itertools.combinations(X, 2))
        if kind == "full":
            middle = X.mean(axis=0)
            return 4 * max(distance(x, middle, A, distortion) for x in X)
        return sum(A[m, m] * (X[:, m].max() - X[:, m].min()) ** 2 for m in range(X.shape[1]))
    if distortion == "cosine":
        return 1.0 if (X >= 0).all() else 2.0
    return 2 * LOG2 * max(float(np.diag(A) @ x) for x in X)


def link_tables(X, links, metric, kind, distortion, penalty, n_clusters, bound="box"):
    """Cost of each link for every pair of labels of its ends, (m, K, K); ``links`` are signed weights."""
    tables = []
    tops = [
        phi_max(X, matrix_of(metric, k, X.shape[1], kind), distortion, kind, bound) for k in range(n_clusters)
    ]
    for (i, j), weight in links:
        table = np.zeros((n_clusters, n_clusters))
        for a, b in itertools.product(range(n_clusters), repeat=2):
            phis = [phi(X[i], X[j], matrix_of(metric, k, X.shape[1], kind), distortion) for k in (a, b)]
            if weight > 0 and a != b:
                table[a, b] = weight * (1.0 if penalty == "constant" else (phis[0] + phis[1]) / 2)
            if weight < 0 and a == b:
                table[a, b] = -weight * (1.0 if penalty == "constant" else tops[a] - phis[0])
        tables.append(table)
    return tables


def unary_table(X, centres, metric, kind, distortion, metric_weight=1.0):
    """What each row pays for each cluster, (n, K)."""
    table = np.zeros((len(X), len(centres)))
    for i, x in enumerate(X):
        for k, centre in enumerate(centres):
            A = matrix_of(metric, k, X.shape[1], kind)
            table[i, k] = distance(x, centre, A, distortion)
            if kind == "per_cluster":
                table[i, k] -= metric_weight * math.log(np.linalg.det(A))
    return table


def metric_term(X, metric, kind, distortion, n_clusters, metric_weight=1.0, shrinkage=1.0):
    """The part of the objective that depends on the metric alone."""
    if kind is None:
        return 0.0
    if distortion == "euclidean":
        if kind == "per_cluster":
            prior = X.var(axis=0) / n_clusters ** (2 / X.shape[1])
            return shrinkage * sum(
                sum(a * v - metric_weight * math.log(a) for a, v in zip(weights, prior, strict=True))
                for weights in metric
            )
        A = matrix_of(metric, 0, X.shape[1], kind)
        return -metric_weight * len(X) * math.log(np.linalg.det(A))
    if distortion == "cosine":
        middle = X.sum(axis=0)
    else:
        middle = X.mean(axis=0)
    total = sum(distance(x, middle, np.eye(X.shape[1]), distortion) for x in X)
    prior = sum(a * a / 2 - math.log(a) - 0.5 for a in metric)
    return metric_weight * total / X.shape[1] * prior


def objective(unary, tables, links, labels):
    """Cost of labels, without the metric's own term."""
    total = sum(unary[i, k] for i, k in enumerate(labels))
    for ((i, j), _), table in zip(links, tables, strict=True):
        total += table[labels[i], labels[j]]
    return total
