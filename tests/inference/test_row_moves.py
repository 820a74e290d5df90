"""Moves of rows in place, beside the copies that numpy makes."""

import numpy as np
import pytest

from linkwise.graph import group_labels
from linkwise.inference.problem import (
    add_groups,
    gather_rows,
    normalise_rows,
    scatter_rows,
    spread_groups,
)
from tests.repeats import for_seeds


@for_seeds(60)
def test_against_fancy_indexing(seed):
    rng = np.random.default_rng(seed)
    # Some tables have more rows than are moved at once.
    n, n_labels = rng.integers(1, 3000 if seed % 10 == 0 else 30), rng.integers(1, 5)
    table = rng.normal(size=(n, n_labels))
    order = rng.permutation(n)
    moved = table.copy()
    gather_rows(moved, order)
    np.testing.assert_array_equal(moved, table[order])
    scatter_rows(moved, order)
    np.testing.assert_array_equal(moved, table)

    groups, n_groups = group_labels(n, rng.integers(0, n, size=(rng.integers(0, n + 1), 2)))
    add_groups(moved, groups)
    sums = np.zeros((n_groups, n_labels))
    np.add.at(sums, groups, table)
    np.testing.assert_allclose(moved[:n_groups], sums, rtol=1e-14)
    before = moved.copy()
    spread_groups(moved, groups)
    np.testing.assert_array_equal(moved, before[groups])


def test_normalise():
    rng = np.random.default_rng(0)
    scores = rng.normal(scale=200.0, size=(500, 4))
    scores[::3, 1] = -np.inf
    log_normalisers = np.logaddexp.reduce(scores, axis=1)
    table = scores.copy()
    total = normalise_rows(table)
    assert total == pytest.approx(log_normalisers.sum(), rel=1e-14)
    np.testing.assert_allclose(table, np.exp(scores - log_normalisers[:, None]), rtol=1e-12)
    assert normalise_rows(np.empty((0, 3))) == 0.0
