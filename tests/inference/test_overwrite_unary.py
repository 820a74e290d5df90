"""Probabilities written over the scores: the same numbers, and no second table of that size."""

import tracemalloc

import numpy as np
import pytest

from linkwise.inference import PottsField, marginals
from tests.repeats import examples


def random_field(rng):
    """Free points, chunklets, trees, rings and dropped links, all in one field."""
    n, n_labels = int(rng.integers(2, 25)), int(rng.integers(2, 5))
    pairs = rng.integers(0, n, size=(int(rng.integers(0, n)), 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    coupling = rng.choice([np.inf, 1.5, -1.5, -0.5, 0.0], size=len(pairs))
    return PottsField(rng.normal(scale=3.0, size=(n, n_labels)), pairs, coupling)


@pytest.mark.parametrize("method", ["auto", "exact", "belief_propagation", "mean_field"])
@pytest.mark.parametrize("max_table", [4, 2**18])
def test_same_numbers(method, max_table):
    options = {"max_table": max_table} if method == "auto" else {}
    for seed in range(examples(20)):
        field = random_field(np.random.default_rng(seed))
        scores = field.unary.copy()
        kept = marginals(field, method, 0, **options)
        np.testing.assert_array_equal(field.unary, scores)
        assert not np.shares_memory(kept.prob, field.unary)
        over = marginals(field, method, 0, overwrite_unary=True, **options)
        assert over.prob is field.unary
        np.testing.assert_array_equal(over.prob, kept.prob)
        np.testing.assert_array_equal(over.agreement, kept.agreement)
        assert (over.log_partition, over.parts) == (kept.log_partition, kept.parts)


def links_of(kind, n):
    rng = np.random.default_rng(0)
    shuffled = rng.permutation(n)
    if kind == "pairs":
        return shuffled.reshape(-1, 2), rng.choice([2.0, -2.0], size=n // 2)
    if kind == "hard pairs":
        return shuffled.reshape(-1, 2), rng.choice([np.inf, -np.inf], size=n // 2)
    if kind == "chain":
        return np.column_stack([shuffled[:-1], shuffled[1:]]), np.full(n - 1, 1.0)
    rings = shuffled[: n // 3 * 3].reshape(-1, 3)
    return np.concatenate([rings[:, [0, 1]], rings[:, [1, 2]], rings[:, [0, 2]]]), np.full(n // 3 * 3, 1.0)


@pytest.mark.parametrize(
    ("kind", "n_labels"), [("pairs", 120), ("hard pairs", 120), ("chain", 120), ("rings", 30)]
)
def test_no_second_table(kind, n_labels):
    n = 6000
    links = PottsField(np.zeros((n, 1)), *links_of(kind, n))
    scores = np.random.default_rng(0).normal(size=(n, n_labels))
    marginals(links.with_unary(scores))
    tracemalloc.start()
    try:
        found = marginals(links.with_unary(scores), overwrite_unary=True)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found.exact
    assert found.prob is scores
    # A ring of three needs a table of K ** 3 entries and smaller ones.
    tables = 1.1 * 8 * n_labels**3 if kind == "rings" else 0.0
    assert peak - tables < 0.5 * scores.nbytes
