"""In which order local search visits nodes, and how far ahead it prefetches what it will read."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from linkwise._kernels import kernel
from linkwise._kernels.random import counter_uniform

__all__ = ["AHEAD_ENDS", "AHEAD_LINKS", "AHEAD_ROW", "random_runs", "shuffled"]

#: How many nodes ahead the place of a node's links, the links and the data of their ends are prefetched;
#: between 4 and 64 the time hardly changes.
AHEAD_ROW, AHEAD_LINKS, AHEAD_ENDS = 16, 8, 4
# Nodes of a run: their rows of scores fit into the second-level cache, and forests get no worse.
_RUN = 1024


@kernel
def _join_runs(
    nodes: NDArray[np.int64], run: int, run_order: NDArray[np.int64], backwards: NDArray[np.bool_]
) -> NDArray[np.int64]:
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


def random_runs(nodes: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """A random permutation of nodes in ascending order; of many nodes, runs in random order and direction.

    A full permutation of a million nodes misses the cache at every step. Runs take a quarter of the time
    and, on grids, ICM ends at slightly higher scores, also than with ``shuffled``. Below 2048 nodes the runs
    have length one.
    """
    run = min(max(len(nodes) // 1024, 1), 512)
    if run == 1:
        return rng.permutation(nodes)
    n_runs = -(-len(nodes) // run)
    return _join_runs(nodes, run, rng.permutation(n_runs), rng.random(n_runs) < 0.5)


@kernel
def _shuffle_runs(
    nodes: NDArray[np.int64], run: int, run_order: NDArray[np.int64], seed: np.uint64
) -> NDArray[np.int64]:
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


def shuffled(nodes: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """A random permutation of nodes in ascending order; of many nodes, runs in random order, each shuffled.

    Runs stay in the cache, which saves a third of the time of a large forest. Unlike those of ``random_runs``
    they must be shuffled inside, or a small cycle would be cut at the same node every time.
    """
    if len(nodes) < 16 * _RUN:
        return rng.permutation(nodes)
    n_runs = -(-len(nodes) // _RUN)
    return _shuffle_runs(nodes, _RUN, rng.permutation(n_runs), rng.integers(2**64, dtype=np.uint64))
