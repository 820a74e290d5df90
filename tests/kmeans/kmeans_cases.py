"""Random problems for the K-means family."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from linkwise import Constraints

#: Every distortion with every metric it can learn.
COMBINATIONS = [
    ("euclidean", None),
    ("euclidean", "diag"),
    ("euclidean", "full"),
    ("euclidean", "per_cluster"),
    ("cosine", None),
    ("cosine", "diag"),
    ("kl", None),
    ("kl", "diag"),
    ("i_divergence", None),
    ("i_divergence", "diag"),
]


def random_data(rng, distortion, n, d, k):
    """Overlapping clusters of the kind of data the distortion is for."""
    y = rng.integers(k, size=n)
    if distortion in ("kl", "i_divergence"):
        rates = rng.gamma(1.0, 4.0, size=(k, d))
        X = rng.poisson(rates[y]).astype(float)
        X[:, 0] += 1.0  # no empty rows
    else:
        X = rng.normal(scale=1.5, size=(k, d))[y] + rng.normal(size=(n, d)) * rng.uniform(0.3, 2.0, size=d)
    return X, y


def random_links(rng, n, m, *, hard=0.0):
    """Links at random, true or not; a share of the must-links is hard."""
    pairs = set()
    while len(pairs) < m:
        i, j = sorted(rng.choice(n, size=2, replace=False).tolist())
        pairs.add((i, j))
    pairs = sorted(pairs)
    must = rng.random(m) < 0.5
    weight = rng.uniform(0.2, 2.0, size=m)
    weight[must & (rng.random(m) < hard)] = np.inf
    order = np.argsort(~must, kind="stable")
    return Constraints(
        n,
        [pair for pair, is_must in zip(pairs, must, strict=True) if is_must],
        [pair for pair, is_must in zip(pairs, must, strict=True) if not is_must],
        weight=weight[order],
    )


def fit_quietly(model, X, links=None):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, constraints=links)
