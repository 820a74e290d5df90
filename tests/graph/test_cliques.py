from __future__ import annotations

from itertools import combinations

import numpy as np

from linkwise.graph import adjacency, find_clique
from tests.graph.oracle import as_pairs, complete, largest_clique, neighbour_sets, random_pairs
from tests.repeats import for_seeds


def is_clique(n, pairs, nodes) -> bool:
    near = neighbour_sets(n, pairs)
    return all(b in near[a] for a, b in combinations(nodes.tolist(), 2))


@for_seeds(60)
def test_finds_every_size_there_is(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 11))
    pairs = random_pairs(rng, n, rng.random())
    largest = largest_clique(n, pairs)
    for size in range(2, n + 2):
        found = find_clique(adjacency(n, pairs), size)
        assert is_clique(n, pairs, found)
        assert np.all(np.diff(found) > 0)
        assert found.size == size if size <= largest else found.size < size


def test_hidden_clique_in_a_sparse_graph():
    rng = np.random.default_rng(0)
    n = 20_000
    hidden = np.sort(rng.choice(n, size=12, replace=False))
    edges = {tuple(pair) for pair in np.sort(rng.integers(n, size=(60_000, 2)), axis=1) if pair[0] < pair[1]}
    pairs = as_pairs(edges | {tuple(hidden[pair]) for pair in complete(12)})
    assert find_clique(adjacency(n, pairs), 12).tolist() == hidden.tolist()
    assert find_clique(adjacency(n, pairs), 13).size < 13


def test_without_work_it_gives_up_and_says_so():
    found = find_clique(adjacency(20, complete(20)), 20, work=1)
    assert 1 <= found.size < 20


def test_no_edges():
    assert find_clique(adjacency(3, np.empty((0, 2), dtype=np.int64)), 2).size == 1
    assert find_clique(adjacency(0, np.empty((0, 2), dtype=np.int64)), 2).size == 0
