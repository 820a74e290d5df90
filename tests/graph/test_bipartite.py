from __future__ import annotations

import numpy as np

from linkwise.graph import adjacency, two_colouring
from tests.graph.oracle import can_be_coloured, cycle, random_pairs
from tests.repeats import for_seeds


@for_seeds(80)
def test_two_colours_or_an_odd_ring(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 16))
    pairs = random_pairs(rng, n, rng.random() * 3 / n)
    colours, ring, ring_edges = two_colouring(adjacency(n, pairs))
    if can_be_coloured(pairs, 2):
        assert ring.size == 0
        assert set(colours.tolist()) <= {0, 1}
        assert np.all(colours[pairs[:, 0]] != colours[pairs[:, 1]])
    else:
        assert ring.size % 2 == 1
        assert len(set(ring.tolist())) == ring.size
        for place, edge in enumerate(ring_edges):
            assert sorted((ring[place], ring[(place + 1) % ring.size])) == pairs[edge].tolist()


def test_long_rings():
    for length in (100_000, 100_001):
        colours, ring, _ = two_colouring(adjacency(length, cycle(length)))
        assert ring.size == (length if length % 2 else 0)
        assert np.isin(colours, (0, 1)).all() or length % 2
