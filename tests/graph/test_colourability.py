from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from linkwise.graph import adjacency, find_clique, k_colouring
from linkwise.graph.colour_search import COLOURED, REFUTED, search_colouring
from linkwise.graph.colourability import anneal_colouring, shrink_refutation
from tests.graph.oracle import (
    as_pairs,
    can_be_coloured,
    complete,
    cycle,
    is_colouring,
    largest_clique,
    mycielski,
    neighbour_sets,
    planted_pairs,
    random_pairs,
    random_sparse_pairs,
)
from tests.repeats import LONG, examples, for_seeds, share

NO_CLIQUE = np.empty(0, dtype=np.int64)
GROETZSCH = mycielski(5, cycle(5))


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


@pytest.mark.parametrize("seed", [0, 2, 6])
def test_a_small_contradiction_in_a_large_graph_is_found_where_it_lies(seed):
    """Without restarts the search would colour thousands of innocent nodes again and again."""
    rng = np.random.default_rng(seed)
    far = planted_pairs(rng, 3000, 3, 5400)
    small_n, small = GROETZSCH
    bridge = [[int(rng.integers(3000)), 3000 + int(rng.integers(small_n))] for _ in range(20)]
    pairs = np.concatenate((far, bridge, small + 3000))
    found = search_colouring(adjacency(3000 + small_n, pairs), 3, clique=NO_CLIQUE, budget=200_000)
    assert found.status == REFUTED
    answer = k_colouring(adjacency(3000 + small_n, pairs), 3)
    assert answer.status == "infeasible"
    assert np.unique(pairs[answer.proof]).tolist() == list(range(3000, 3000 + small_n))
    assert len(answer.proof) == len(small)


def test_shrunk_refutations_can_spare_no_edge():
    rng = np.random.default_rng(1)
    shrunk = 0
    for case in range(examples(200)):
        n_colours = int(rng.integers(2, 5))
        pairs = random_pairs(rng, int(rng.integers(n_colours + 1, 13)), 0.3 + 0.6 * rng.random())
        if case % 4 == 0:
            n_colours, pairs = 3, random_sparse_pairs(rng, 25, 70)
        if can_be_coloured(pairs, n_colours):
            continue
        rows = shrink_refutation(pairs, n_colours, budget=10**6)
        assert np.all(np.diff(rows) > 0)
        assert not can_be_coloured(pairs[rows], n_colours)
        for row in rows:
            assert can_be_coloured(pairs[rows[rows != row]], n_colours)
        shrunk += 1
    assert shrunk > share(50)


def test_shrinking_without_budget_keeps_a_proof():
    n, pairs = GROETZSCH
    wider = np.concatenate((pairs, [[0, n], [1, n]]))
    for budget in (0, 1, 10, 100):
        assert not can_be_coloured(wider[shrink_refutation(wider, 3, budget=budget)], 3)


@for_seeds(40)
def test_k_colouring_with_any_budget_is_never_wrong(seed):
    rng = np.random.default_rng(seed)
    n, n_colours = int(rng.integers(1, 15)), int(rng.integers(2, 5))
    pairs = random_pairs(rng, n, 0.2 + 0.6 * rng.random())
    possible = can_be_coloured(pairs, n_colours)
    for budget in (0, 1, 5, 50, 200_000):
        answer = k_colouring(adjacency(n, pairs), n_colours, node_budget=budget)
        if answer.status == "feasible":
            assert possible
            assert is_colouring(pairs, answer.colours, n_colours)
        elif answer.status == "infeasible":
            assert not possible
            assert not can_be_coloured(pairs[answer.proof], n_colours)
    assert answer.status == ("feasible" if possible else "infeasible")


def test_k_colouring_of_several_components():
    """Every component counts: a bad one is found among good ones, whatever its number."""
    n, pairs = GROETZSCH
    parts = [cycle(5), pairs, cycle(7)]
    offsets = np.cumsum([0, 5, n])
    together = np.concatenate([part + offset for part, offset in zip(parts, offsets, strict=True)])
    answer = k_colouring(adjacency(n + 12, together), 3)
    assert answer.status == "infeasible"
    assert np.unique(together[answer.proof]).tolist() == list(range(5, 5 + n))
    answer = k_colouring(adjacency(n + 12, together), 4)
    assert is_colouring(together, answer.colours, 4)


@pytest.mark.parametrize(
    ("n_nodes", "n_colours", "n_pairs"), [(200, 3, 450), (200, 5, 1600), (1000, 3, 3500)]
)
def test_hidden_colourings_are_found(n_nodes, n_colours, n_pairs):
    for seed in range(3 if LONG else 1):
        pairs = planted_pairs(np.random.default_rng(seed), n_nodes, n_colours, n_pairs)
        assert len(pairs) == n_pairs
        answer = k_colouring(adjacency(n_nodes, pairs), n_colours)
        assert answer.status == "feasible"
        assert is_colouring(pairs, answer.colours, n_colours)


def test_annealing_returns_colourings_or_nothing():
    rng = np.random.default_rng(5)
    found = 0
    for _ in range(60):
        n, n_colours = int(rng.integers(1, 12)), int(rng.integers(2, 5))
        pairs = random_pairs(rng, n, rng.random())
        colours = anneal_colouring(adjacency(n, pairs), n_colours, n_moves=200 * n)
        if colours is None:
            continue
        assert is_colouring(pairs, colours, n_colours)
        found += 1
    assert found > 30
    assert anneal_colouring(adjacency(4, complete(4)), 3, n_moves=1000) is None


def test_annealing_reaches_a_dense_hidden_colouring():
    pairs = planted_pairs(np.random.default_rng(0), 5000, 3, 37_500)
    colours = anneal_colouring(adjacency(5000, pairs), 3, n_moves=10**7)
    assert is_colouring(pairs, colours, 3)


def test_no_nodes_and_no_edges():
    empty = adjacency(0, as_pairs([]))
    assert k_colouring(empty, 3).colours.size == 0
    assert search_colouring(empty, 3, clique=NO_CLIQUE, budget=0).status == COLOURED
    assert k_colouring(adjacency(3, as_pairs([])), 3).colours.tolist() == [0, 0, 0]
