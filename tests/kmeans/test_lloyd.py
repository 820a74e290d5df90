"""The fused pass against sums written out."""

from __future__ import annotations

import numpy as np

from linkwise.kmeans.lloyd import assign_rows, weighted_distances
from tests.repeats import for_seeds


def case(seed):
    rng = np.random.default_rng(seed)
    n, d, k = rng.integers(1, 60), rng.integers(1, 7), rng.integers(1, 6)
    X, centres = rng.normal(size=(n, d)), rng.normal(size=(k, d))
    weights, bias = rng.uniform(0.1, 3.0, size=(k, d)), rng.normal(size=k)
    given = np.where(rng.random(n) < 0.3, rng.integers(k, size=n), -1) if seed % 2 else None
    return X, centres, weights, bias, given


@for_seeds(60)
def test_equals_the_table(seed):
    X, centres, weights, bias, given = case(seed)
    table = np.array(
        [
            [b + sum(w * (x - c) ** 2) for c, w, b in zip(centres, weights, bias, strict=True)]
            for x in X
        ]
    )  # fmt: skip
    np.testing.assert_allclose(weighted_distances(X, centres, weights) + bias, table, rtol=1e-12, atol=1e-12)
    found = assign_rows(X, centres, weights, bias, given)
    expected = table.argmin(axis=1) if given is None else np.where(given >= 0, given, table.argmin(axis=1))
    np.testing.assert_array_equal(found.labels, expected)
    np.testing.assert_allclose(found.cost, table[np.arange(len(X)), expected], rtol=1e-12, atol=1e-12)
    for k, centre in enumerate(centres):
        gap = X[expected == k] - centre
        assert found.counts[k] == len(gap)
        np.testing.assert_allclose(found.first[k], gap.sum(axis=0), atol=1e-11)
        np.testing.assert_allclose(found.second[k], (gap**2).sum(axis=0), atol=1e-11)


def test_the_first_of_equals_wins():
    found = assign_rows(np.zeros((3, 1)), np.array([[1.0], [-1.0]]), np.ones((2, 1)), np.zeros(2))
    assert found.labels.tolist() == [0, 0, 0]


def test_threads_change_nothing():
    rng = np.random.default_rng(0)
    X, centres = rng.normal(size=(40_000, 3)), rng.normal(size=(4, 3))
    arguments = (X, centres, np.ones((4, 3)), np.zeros(4))
    one, two = assign_rows(*arguments), assign_rows(*arguments, n_threads=2)
    for left, right in zip(one, two, strict=True):
        np.testing.assert_array_equal(left, right)
