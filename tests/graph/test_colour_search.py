from __future__ import annotations

import numpy as np

from linkwise.graph import adjacency, find_clique
from linkwise.graph.colour_search import COLOURED, OUT_OF_BUDGET, REFUTED, search_colouring
from tests.graph.oracle import (
    can_be_coloured,
    cycle,
    is_colouring,
    mycielski,
    random_pairs,
    random_sparse_pairs,
)
from tests.repeats import examples, for_seeds

NO_CLIQUE = np.empty(0, dtype=np.int64)
GROETZSCH = mycielski(5, cycle(5))


def test_search_agrees_with_plain_backtracking():
    rng = np.random.default_rng(0)
    outcomes = []
    for _ in range(250):
        n = int(rng.integers(1, 15))
        n_colours = int(rng.integers(1, 6))
        pairs = random_pairs(rng, n, rng.random())
        graph = adjacency(n, pairs)
        clique = find_clique(graph, n_colours + 1)[:n_colours] if rng.random() < 0.5 else NO_CLIQUE
        found = search_colouring(graph, n_colours, clique=clique, budget=10**6)
        expected = COLOURED if can_be_coloured(pairs, n_colours) else REFUTED
        assert found.status == expected
        outcomes.append(found.status)
        if found.status == COLOURED:
            assert is_colouring(pairs, found.colours, n_colours)
        else:
            assert not can_be_coloured(pairs[found.proof], n_colours)
    assert min(outcomes.count(COLOURED), outcomes.count(REFUTED)) > 50


@for_seeds(examples(8, 3))
def test_search_on_graphs_of_critical_density(seed):
    """Around the threshold most searches have to jump back often; a quarter of these are refuted."""
    rng = np.random.default_rng(seed)
    pairs = random_sparse_pairs(rng, 60, 145)
    found = search_colouring(adjacency(60, pairs), 3, clique=NO_CLIQUE, budget=10**7)
    assert (found.status == COLOURED) == can_be_coloured(pairs, 3)
    if found.status == COLOURED:
        assert is_colouring(pairs, found.colours, 3)
    else:
        assert not can_be_coloured(pairs[found.proof], 3)


def test_budget_is_kept():
    n, pairs = mycielski(*GROETZSCH)
    full = search_colouring(adjacency(n, pairs), 4, clique=NO_CLIQUE, budget=10**7)
    assert full.status == REFUTED
    exact = search_colouring(adjacency(n, pairs), 4, clique=NO_CLIQUE, budget=full.n_search_nodes)
    assert exact.status == REFUTED
    short = search_colouring(adjacency(n, pairs), 4, clique=NO_CLIQUE, budget=full.n_search_nodes - 1)
    assert short.status == OUT_OF_BUDGET
    assert short.n_search_nodes == full.n_search_nodes - 1
