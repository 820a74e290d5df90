"""Look for a colouring by simulated annealing: what exact search cannot reach on large dense graphs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from linkwise._kernels import kernel
from linkwise._kernels.random import counter_uniform
from linkwise.graph.csr import Adjacency

__all__ = ["anneal_colouring"]

#: Inverse temperatures of the first and the last sweep, in units of one edge with equal ends.
_WARM, _COLD = 0.2, 8.0
_SEED = np.uint64(0)
#: Nodes and edges looked at in one call of the kernel: at most some 0.1 s.
_STEPS_AT_ONCE = 10_000_000


@kernel
def _random_colours(
    indptr: NDArray[np.int32], neighbours: NDArray[np.int32], n_colours: int
) -> tuple[NDArray[np.int64], NDArray[np.int32], int]:
    """Random colours, how often the neighbours of each node show each colour, and the clashing edges."""
    n_nodes = indptr.size - 1
    colours = np.empty(n_nodes, dtype=np.int64)
    for node in range(n_nodes):
        colours[node] = int(n_colours * counter_uniform(_SEED, 0, node))
    shown = np.zeros((n_nodes, n_colours), dtype=np.int32)
    clashes = 0
    for node in range(n_nodes):
        for slot in range(indptr[node], indptr[node + 1]):
            shown[node, colours[neighbours[slot]]] += 1
        clashes += shown[node, colours[node]]
    return colours, shown, clashes // 2


@kernel
def _anneal(
    indptr: NDArray[np.int32],
    neighbours: NDArray[np.int32],
    first: int,
    last: int,
    n_sweeps: int,
    colours: NDArray[np.int64],
    shown: NDArray[np.int32],
    clashes: int,
) -> int:
    """The Metropolis sweeps ``first`` to ``last`` while the temperature falls, in place; clashing edges."""
    n_nodes = indptr.size - 1
    n_colours = shown.shape[1]
    for sweep in range(first, last):
        beta = _WARM + (_COLD - _WARM) * sweep / n_sweeps
        for node in range(n_nodes):
            # One draw: its whole part proposes another colour, the rest decides on it.
            draw = (n_colours - 1) * counter_uniform(_SEED, sweep + 1, node)
            old = colours[node]
            new = int(draw)
            draw -= new
            new += new >= old
            change = shown[node, new] - shown[node, old]
            if change > 0 and draw >= np.exp(-beta * change):
                continue
            clashes += change
            colours[node] = new
            for slot in range(indptr[node], indptr[node + 1]):
                shown[neighbours[slot], old] -= 1
                shown[neighbours[slot], new] += 1
        if clashes == 0:
            break
    return clashes


def anneal_colouring(graph: Adjacency, n_colours: int, *, n_moves: int) -> NDArray[np.int64] | None:
    """A proper colouring (n,) found by simulated annealing of the antiferromagnetic Potts model, or None.

    ``n_moves`` changes are proposed in all. The same for the same arguments; None proves nothing.
    """
    n_nodes = graph.indptr.size - 1
    n_sweeps = n_moves // max(n_nodes, 1)
    # Some sweeps at a time, so that an interrupt gets through.
    at_once = max(_STEPS_AT_ONCE // max(n_nodes + graph.neighbours.size, 1), 1)
    colours, shown, clashes = _random_colours(graph.indptr, graph.neighbours, n_colours)
    for first in range(0, n_sweeps, at_once):
        last = min(first + at_once, n_sweeps)
        clashes = _anneal(graph.indptr, graph.neighbours, first, last, n_sweeps, colours, shown, clashes)
        if clashes == 0:
            break
    return colours if clashes == 0 else None
