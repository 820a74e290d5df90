from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pytest

from linkwise.graph import adjacency, core_numbers, degeneracy, min_fill_order
from tests.graph.oracle import (
    as_pairs,
    complete,
    cycle,
    eliminate,
    random_pairs,
    random_sparse_pairs,
    treewidth,
)
from tests.repeats import for_seeds


def bags(found) -> list[list[int]]:
    return [
        found.bags[found.bags_indptr[step] : found.bags_indptr[step + 1]].tolist()
        for step in range(found.order.size)
    ]


def random_tree(rng, n: int) -> np.ndarray:
    shuffled = rng.permutation(n)
    return as_pairs([(shuffled[i], shuffled[rng.integers(i)]) for i in range(1, n)])


def random_k_tree(rng, n: int, k: int) -> np.ndarray:
    shuffled = rng.permutation(n)
    edges = list(combinations(shuffled[: k + 1], 2))
    cliques = list(combinations(shuffled[: k + 1], k))
    for node in shuffled[k + 1 :]:
        base = cliques[rng.integers(len(cliques))]
        edges += [(node, other) for other in base]
        cliques += [(*part, node) for part in combinations(base, k - 1)]
    return as_pairs(edges)


def grid(height: int, width: int) -> np.ndarray:
    cells = np.arange(height * width).reshape(height, width)
    across = np.column_stack((cells[:, :-1].ravel(), cells[:, 1:].ravel()))
    down = np.column_stack((cells[:-1].ravel(), cells[1:].ravel()))
    return as_pairs([*across.tolist(), *down.tolist()])


@for_seeds(60)
def test_every_step_follows_the_rule(seed):
    """The same order on plain sets: same neighbours each time, and no node had a lower cost."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 26))
    pairs = random_pairs(rng, n, rng.random() ** 2)
    found = min_fill_order(adjacency(n, pairs))
    assert found.complete
    assert sorted(found.order.tolist()) == list(range(n))
    steps = eliminate(n, pairs, found.order.tolist())
    assert bags(found) == [neighbours for neighbours, _, _ in steps]
    assert found.width == max(len(neighbours) for neighbours, _, _ in steps)
    # Nodes outside the 2-core are peeled first, each with at most one neighbour; then the rule is strict.
    n_peeled = int(np.sum(core_numbers(adjacency(n, pairs))[1] < 2))
    assert all(len(neighbours) <= 1 for neighbours, _, _ in steps[:n_peeled])
    assert all(cost == least for _, cost, least in steps[n_peeled:])


def test_width_is_never_below_the_treewidth_and_rarely_above():
    rng = np.random.default_rng(0)
    exact = 0
    for _ in range(250):
        n = int(rng.integers(1, 8))
        pairs = random_pairs(rng, n, rng.random())
        width, best = min_fill_order(adjacency(n, pairs)).width, treewidth(n, pairs)
        assert width >= best
        assert best >= degeneracy(adjacency(n, pairs))[0]
        exact += width == best
    assert exact >= 245


def test_the_oracle_knows_the_treewidth():
    rng = np.random.default_rng(1)
    for _ in range(10):
        pairs = random_pairs(rng, 6, 0.5)
        widths = [
            max(len(step[0]) for step in eliminate(6, pairs, order)) for order in permutations(range(6))
        ]
        assert treewidth(6, pairs) == min(widths)


@for_seeds(5)
def test_known_widths(seed):
    rng = np.random.default_rng(seed)
    assert min_fill_order(adjacency(300, random_tree(rng, 300))).width == 1
    length = int(rng.integers(3, 300))
    assert min_fill_order(adjacency(length, cycle(length))).width == 2
    size = int(rng.integers(1, 40))
    assert min_fill_order(adjacency(size, complete(size))).width == size - 1
    for k in (1, 2, 3, 7):
        assert min_fill_order(adjacency(120, random_k_tree(rng, 120, k))).width == k
    assert min_fill_order(adjacency(5, np.empty((0, 2), dtype=np.int64))).width == 0
    assert min_fill_order(adjacency(0, np.empty((0, 2), dtype=np.int64))).complete


def test_grid():
    found = min_fill_order(adjacency(8 * 15, grid(8, 15)))
    steps = eliminate(8 * 15, grid(8, 15), found.order.tolist())
    assert bags(found) == [neighbours for neighbours, _, _ in steps]
    assert all(cost == least for _, cost, least in steps)
    assert found.width >= 8


@for_seeds(40)
def test_early_exit(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 26))
    pairs = random_pairs(rng, n, rng.random())
    graph = adjacency(n, pairs)
    free = min_fill_order(graph)
    for max_width in range(free.width + 2):
        found = min_fill_order(graph, max_width=max_width)
        if free.width <= max_width:
            assert found.complete
            assert found.order.tolist() == free.order.tolist()
            assert found.bags.tolist() == free.bags.tolist()
            assert found.width == free.width
            continue
        assert not found.complete
        done = found.order.size
        assert found.order.tolist() == free.order[:done].tolist()
        assert bags(found) == bags(free)[:done]
        assert all(len(bag) <= max_width for bag in bags(found))
        needed, _ = degeneracy(graph)
        if needed > max_width:
            assert found.width == needed
            assert done == 0
        else:
            # It stopped exactly at the first node that is too wide.
            assert found.width == len(bags(free)[done]) > max_width


def test_several_components_are_a_forest():
    pairs = np.concatenate((cycle(5), complete(4) + 5))
    found = min_fill_order(adjacency(10, pairs))
    assert found.complete
    assert found.width == 3
    assert sum(not bag for bag in bags(found)) == 3


@pytest.mark.parametrize("seed", range(3))
def test_unsorted_rows_make_no_difference(seed):
    rng = np.random.default_rng(seed)
    pairs = random_pairs(rng, 30, 0.2)
    turned = pairs[rng.permutation(len(pairs))][:, ::-1].copy()
    one, other = min_fill_order(adjacency(30, pairs)), min_fill_order(adjacency(30, turned))
    assert one.order[-20:].tolist() == other.order[-20:].tolist()
    assert one.width == other.width


def test_large_graphs():
    rng = np.random.default_rng(0)
    tree = np.column_stack((np.arange(1, 100_000) // 2, np.arange(1, 100_000)))
    tree = tree[tree[:, 0] < tree[:, 1]]
    assert min_fill_order(adjacency(100_000, tree)).width == 1
    leaves = np.arange(2, 20_000)
    hubs = np.concatenate((np.column_stack((leaves * 0, leaves)), np.column_stack((leaves * 0 + 1, leaves))))
    assert min_fill_order(adjacency(20_000, hubs)).width == 2
    assert min_fill_order(adjacency(3000, random_k_tree(rng, 3000, 20))).width == 20
    dense = adjacency(3000, random_sparse_pairs(rng, 3000, 300_000))
    assert not min_fill_order(dense, max_width=20).complete
