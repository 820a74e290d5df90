from __future__ import annotations

import numpy as np
import pytest

from linkwise.graph import (
    adjacency,
    core_numbers,
    degeneracy,
    dsatur_colouring,
    greedy_colouring,
)
from linkwise.graph.colouring import first_fit
from tests.graph.oracle import (
    complete,
    cycle,
    neighbour_sets,
    random_pairs,
    random_sparse_pairs,
)
from tests.repeats import for_cases, for_seeds

CASES = [(seed, n, density) for seed, n in enumerate([1, 2, 5, 9, 14, 20] * 6) for density in (0.1, 0.3, 0.7)]


def is_proper(pairs, colours) -> bool:
    return bool(np.all(colours[pairs[:, 0]] != colours[pairs[:, 1]]) and np.all(colours >= 0))


@for_cases(("seed", "n", "density"), CASES)
def test_greedy_takes_the_smallest_free_colour_by_falling_degree(seed, n, density):
    pairs = random_pairs(np.random.default_rng(seed), n, density)
    near = neighbour_sets(n, pairs)
    expected: dict[int, int] = {}
    for node in sorted(range(n), key=lambda node: (-len(near[node]), node)):
        refused = {expected.get(other) for other in near[node]}
        expected[node] = next(colour for colour in range(n) if colour not in refused)
    assert greedy_colouring(adjacency(n, pairs)).tolist() == [expected[node] for node in range(n)]


@for_cases(("seed", "n", "density"), CASES)
def test_dsatur_follows_saturation_degree_index(seed, n, density):
    pairs = random_pairs(np.random.default_rng(seed), n, density)
    near = neighbour_sets(n, pairs)
    expected: dict[int, int] = {}
    while len(expected) < n:

        def key(node):
            seen = {expected[other] for other in near[node] if other in expected}
            return -sum(colour <= len(near[node]) for colour in seen), -len(near[node]), node

        node = min((node for node in range(n) if node not in expected), key=key)
        refused = {expected.get(other) for other in near[node]}
        expected[node] = next(colour for colour in range(n) if colour not in refused)
    colours = dsatur_colouring(adjacency(n, pairs))
    assert colours.tolist() == [expected[node] for node in range(n)]
    assert is_proper(pairs, colours)


@for_seeds(20)
def test_dsatur_is_exact_on_bipartite_graphs(seed):
    rng = np.random.default_rng(seed)
    side = rng.integers(2, size=200)
    pairs = random_sparse_pairs(rng, 200, 400)
    pairs = pairs[side[pairs[:, 0]] != side[pairs[:, 1]]]
    colours = dsatur_colouring(adjacency(200, pairs))
    assert colours.max() == 1
    assert is_proper(pairs, colours)


@for_cases(("seed", "n", "density"), CASES)
def test_smallest_last_order_and_cores(seed, n, density):
    pairs = random_pairs(np.random.default_rng(seed), n, density)
    graph = adjacency(n, pairs)
    order, cores = core_numbers(graph)
    assert sorted(order.tolist()) == list(range(n))
    left = {node: set(others) for node, others in enumerate(neighbour_sets(n, pairs))}
    largest = 0
    for node in order.tolist():
        assert len(left[node]) == min(len(others) for others in left.values())
        largest = max(largest, len(left[node]))
        assert cores[node] == largest
        for other in left.pop(node):
            left[other].discard(node)
    value, same_order = degeneracy(graph)
    assert value == largest
    assert same_order.tolist() == order.tolist()

    # A node is in the k-core if it survives the repeated removal of nodes of degree below k.
    for k in range(n + 1):
        alive = set(range(n))
        near = neighbour_sets(n, pairs)
        while weak := {node for node in alive if len(near[node] & alive) < k}:
            alive -= weak
        assert alive == set(np.flatnonzero(cores >= k).tolist())

    colours = np.full(n, -1)
    first_fit(graph.indptr, graph.neighbours, order[::-1].copy(), colours)
    assert is_proper(pairs, colours)
    assert colours.max() <= value


def test_known_degeneracies():
    assert degeneracy(adjacency(7, cycle(7)))[0] == 2
    assert degeneracy(adjacency(6, complete(6)))[0] == 5
    assert degeneracy(adjacency(3, np.empty((0, 2), dtype=np.int64)))[0] == 0
    assert degeneracy(adjacency(0, np.empty((0, 2), dtype=np.int64)))[0] == 0


@pytest.mark.parametrize("shape", ["sparse", "two hubs", "star"])
def test_large_graphs(shape):
    n = 50_000
    rng = np.random.default_rng(0)
    leaves = np.arange(2, n)
    if shape == "sparse":
        pairs = random_sparse_pairs(rng, n, 150_000)
    else:
        pairs = np.column_stack((leaves * 0, leaves))
        if shape == "two hubs":
            pairs = np.concatenate((pairs, np.column_stack((leaves * 0 + 1, leaves))))
    graph = adjacency(n, pairs)
    assert is_proper(pairs, greedy_colouring(graph))
    colours = dsatur_colouring(graph)
    assert is_proper(pairs, colours)
    value, order = degeneracy(graph)
    place = np.argsort(order)
    later = np.bincount(
        np.where(place[pairs[:, 0]] < place[pairs[:, 1]], pairs[:, 0], pairs[:, 1]), minlength=n
    )
    assert later.max() == value
    if shape != "sparse":
        assert colours.max() == 1
