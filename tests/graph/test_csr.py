from __future__ import annotations

from collections import deque

import numpy as np

from linkwise.graph import adjacency, breadth_first_order, induced_subgraph, unique_pairs
from tests.graph.oracle import components, neighbour_sets, random_pairs
from tests.repeats import for_seeds


@for_seeds(60)
def test_rows_hold_the_neighbours_in_order(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 20))
    pairs = random_pairs(rng, n, rng.random())
    graph = adjacency(n, pairs)
    near = neighbour_sets(n, pairs)
    assert graph.indptr[0] == 0
    assert graph.indptr.size == n + 1
    for node in range(n):
        row = slice(graph.indptr[node], graph.indptr[node + 1])
        assert graph.neighbours[row].tolist() == sorted(near[node])
        for other, edge in zip(graph.neighbours[row], graph.edges[row], strict=True):
            assert sorted((node, other)) == pairs[edge].tolist()


def test_rows_of_unsorted_pairs_hold_the_same_neighbours():
    pairs = np.array([[4, 1], [0, 3], [2, 0], [4, 0]])
    graph = adjacency(5, pairs)
    for node, expected in enumerate(neighbour_sets(5, pairs)):
        assert set(graph.neighbours[graph.indptr[node] : graph.indptr[node + 1]].tolist()) == expected


def test_no_edges():
    graph = adjacency(3, np.empty((0, 2), dtype=np.int64))
    assert graph.indptr.tolist() == [0, 0, 0, 0]
    assert breadth_first_order(graph).tolist() == [0, 1, 2]


@for_seeds(60)
def test_breadth_first_order(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 20))
    pairs = random_pairs(rng, n, 2 / n)
    near = neighbour_sets(n, pairs)
    expected, seen = [], set()
    for start in range(n):
        queue = deque([start] if start not in seen else [])
        seen.add(start)
        while queue:
            node = queue.popleft()
            expected.append(node)
            fresh = sorted(near[node] - seen)
            seen.update(fresh)
            queue.extend(fresh)
    order = breadth_first_order(adjacency(n, pairs))
    assert order.tolist() == expected
    label = np.array(components(n, pairs))[order]
    assert np.all(np.diff(label) >= 0)


@for_seeds(60)
def test_induced_subgraph(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 15))
    pairs = random_pairs(rng, n, rng.random())
    nodes = rng.permutation(n)[: rng.integers(0, n + 1)]
    part = induced_subgraph(adjacency(n, pairs), nodes)
    near = neighbour_sets(n, pairs)
    assert part.indptr.size == nodes.size + 1
    for row, node in enumerate(nodes):
        slots = slice(part.indptr[row], part.indptr[row + 1])
        assert set(nodes[part.neighbours[slots]].tolist()) == near[node] & set(nodes.tolist())
        for other, edge in zip(nodes[part.neighbours[slots]], part.edges[slots], strict=True):
            assert sorted((node, other)) == pairs[edge].tolist()


def test_unique_pairs():
    rng = np.random.default_rng(0)
    for _ in range(100):
        n = int(rng.integers(2, 10))
        pairs = rng.integers(n, size=(int(rng.integers(0, 12)), 2))
        unique, row_of = unique_pairs(n, pairs)
        expected = sorted({(min(pair), max(pair)) for pair in pairs.tolist()})
        assert list(map(tuple, unique.tolist())) == expected
        np.testing.assert_array_equal(unique[row_of], np.sort(pairs, axis=1))
