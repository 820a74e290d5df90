from __future__ import annotations

import itertools

import numpy as np

from linkwise.graph import group_labels
from linkwise.graph.parity import link_parity
from tests.repeats import for_seeds
from tests.spectral.spectral_oracle import incidence


def random_multigraph(rng):
    n_points = int(rng.integers(2, 8))
    n_links = int(rng.integers(0, 12))
    first = rng.integers(0, n_points, n_links)
    second = (first + rng.integers(1, n_points, n_links)) % n_points
    return n_points, np.column_stack([first, second]), rng.choice([-1.0, 1.0], n_links)


@for_seeds(100)
def test_independent_links_are_those_that_raise_the_rank(seed):
    n_points, pairs, signs = random_multigraph(np.random.default_rng(seed))
    found = link_parity(n_points, pairs, signs)
    V = incidence(n_points, pairs, signs)
    ranks = [0, *(np.linalg.matrix_rank(V[:, : stop + 1]) for stop in range(len(pairs)))]
    np.testing.assert_array_equal(found.independent, np.diff(ranks) == 1)


@for_seeds(100)
def test_unbalanced_components_are_those_without_a_two_sided_labelling(seed):
    n_points, pairs, signs = random_multigraph(np.random.default_rng(seed))
    found = link_parity(n_points, pairs, signs)
    component, n_components = group_labels(n_points, pairs)
    expected = []
    for number in range(n_components):
        inside = component[pairs[:, 0]] == number if len(pairs) else np.zeros(0, dtype=bool)
        satisfied = any(
            all(
                sides[i] * sides[j] == sign for (i, j), sign in zip(pairs[inside], signs[inside], strict=True)
            )
            for sides in itertools.product([-1, 1], repeat=n_points)
        )
        if not satisfied:
            expected.append(np.flatnonzero(component == number).tolist())
    assert [points.tolist() for points in found.unbalanced] == expected
    np.testing.assert_array_equal(
        group_labels(n_points, np.column_stack([np.arange(n_points), found.component]))[0], component
    )


@for_seeds(60)
def test_sides_satisfy_the_links_of_a_balanced_set(seed):
    rng = np.random.default_rng(seed)
    sides = rng.choice([-1.0, 1.0], 30)
    first = rng.integers(0, 30, 60)
    second = (first + rng.integers(1, 30, 60)) % 30
    found = link_parity(30, np.column_stack([first, second]), sides[first] * sides[second])
    assert found.unbalanced == []
    np.testing.assert_array_equal(found.side[first] == found.side[second], sides[first] == sides[second])


def test_a_long_chain_needs_no_recursion():
    n_points = 200_000
    pairs = np.column_stack([np.arange(n_points - 1)[::-1], np.arange(1, n_points)[::-1]])
    found = link_parity(n_points, pairs, np.full(n_points - 1, -1.0))
    assert found.independent.all()
    np.testing.assert_array_equal(found.side, np.arange(n_points) % 2)
