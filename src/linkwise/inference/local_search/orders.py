"""In which order local search visits nodes, and how far ahead it prefetches what it will read."""

from __future__ import annotations

import numpy as np

from linkwise._arrays import Bools, Ints
from linkwise._kernels import kernel
from linkwise._kernels.random import counter_uniform

#: How many nodes ahead the place of a node's links, the links and the data of their ends are prefetched;
#: between 4 and 64 the time hardly changes.
AHEAD_ROW, AHEAD_LINKS, AHEAD_ENDS = 16, 8, 4
# Nodes of a run: their rows of scores fit into the second-level cache, and forests get no worse.
_RUN = 1024


@kernel
def _join_runs(nodes: Ints, run: int, run_order: Ints, backwards: Bools) -> Ints:
    """The runs of ``run`` consecutive entries of ``nodes`` in the given order, some of them reversed."""
    order = np.empty_like(nodes)
    filled = 0
    for index in run_order:
        start = index * run
        stop = min(start + run, nodes.shape[0])
        for place in range(start, stop):
            order[filled] = nodes[start + stop - 1 - place] if backwards[index] else nodes[place]
            filled += 1
    return order


def random_runs(nodes: Ints, rng: np.random.Generator) -> Ints:
    """A random permutation of ascending nodes; of many, runs in random order and direction.

    Full permutations of a million nodes miss the cache at every step: runs take a quarter of the time, and on
    grids ICM ends at slightly higher scores.
    """
    run = min(max(len(nodes) // 1024, 1), 512)
    if run == 1:
        return rng.permutation(nodes)
    n_runs = -(-len(nodes) // run)
    return _join_runs(nodes, run, rng.permutation(n_runs), rng.random(n_runs) < 0.5)


@kernel
def _shuffle_runs(nodes: Ints, run: int, run_order: Ints, seed: np.uint64) -> Ints:
    """The runs of ``run`` consecutive entries of ``nodes`` in the given order, each shuffled."""
    order = np.empty_like(nodes)
    filled = 0
    for index in run_order:
        start = index * run
        for place in range(start, min(start + run, nodes.shape[0])):
            other = filled - int(counter_uniform(seed, index, place) * (place - start + 1))
            order[filled] = order[other]
            order[other] = nodes[place]
            filled += 1
    return order


def shuffled(nodes: Ints, rng: np.random.Generator) -> Ints:
    """A random permutation of ascending nodes; of many, runs in random order, each shuffled.

    Runs save a third of the time of a large forest; unshuffled, a small cycle would always be cut at one
    node.
    """
    if len(nodes) < 16 * _RUN:
        return rng.permutation(nodes)
    n_runs = -(-len(nodes) // _RUN)
    return _shuffle_runs(nodes, _RUN, rng.permutation(n_runs), rng.integers(2**64, dtype=np.uint64))
