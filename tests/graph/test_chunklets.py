from __future__ import annotations

import numpy as np
import pytest

from linkwise.exceptions import InfeasibleConstraints
from linkwise.graph import chunklet_labels
from tests.graph.oracle import components, distance, random_links


def check(n, pairs, weights):
    """Groups of hard must-links, or the shortest chain behind a hard cannot-link inside one of them."""
    groups = components(n, pairs[weights == np.inf])
    clashes = [
        row for row, (i, j) in enumerate(pairs.tolist()) if groups[i] == groups[j] and weights[row] == -np.inf
    ]
    if not clashes:
        found, n_groups = chunklet_labels(n, pairs, weights)
        assert found.tolist() == groups
        assert n_groups == len(set(groups))
        return "groups"
    with pytest.raises(InfeasibleConstraints) as caught:
        chunklet_labels(n, pairs, weights)
    witness = caught.value.witness
    assert witness.kind == "path"
    assert set(witness.must_link) <= set(map(tuple, pairs[weights == np.inf].tolist()))
    (apart,) = witness.cannot_link
    assert list(apart) in pairs[clashes].tolist()
    assert len(witness.must_link) == distance(n, pairs[weights == np.inf], *apart)
    return "clash"


def test_random_links():
    rng = np.random.default_rng(0)
    outcomes = []
    for _ in range(600):
        n = int(rng.integers(1, 15))
        pairs, weights = random_links(rng, n, 0.8 * rng.random(), must=0.25, cannot=rng.choice([0, 0.3]))
        outcomes.append(check(n, pairs, weights))
    assert all(outcomes.count(kind) > 50 for kind in ("clash", "groups")), outcomes


def test_soft_links_are_not_closed():
    assert chunklet_labels(3, np.array([[0, 1], [1, 2]]), np.array([1.0, 1.0]))[1] == 3


@pytest.mark.parametrize("n", [0, 3])
def test_nothing_to_join(n):
    groups, n_groups = chunklet_labels(n, np.empty((0, 2), dtype=np.int64), np.empty(0))
    assert groups.tolist() == list(range(n))
    assert n_groups == n


@pytest.mark.parametrize("shape", ["chain", "star"])
def test_a_million_must_links(shape):
    n = 1_000_000
    later = np.arange(1, n)
    pairs = np.column_stack((later - 1 if shape == "chain" else np.zeros_like(later), later))
    weights = np.full(n - 1, np.inf)
    weights[-1] = -1.0
    groups, n_groups = chunklet_labels(n, pairs, weights)
    assert n_groups == 2
    assert groups.sum() == 1
