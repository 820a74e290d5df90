"""A graph renumbered by the order in which a sweep visits its nodes, and the problem in coloured order.

Nodes of one colour have no links among them, so they can be updated side by side and the sweep is still
one update after another. The nodes are renumbered colour by colour: a class is then a range of places, a
sweep in the order of places is a coloured sweep, and a neighbour is up to date exactly if it comes before.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from linkwise._arrays import Floats, Ints, ShortInts
from linkwise._kernels import kernel
from linkwise._threads import chunk_bounds
from linkwise.graph import Adjacency, greedy_colouring
from linkwise.inference.problem import Problem

#: Nodes a kernel may work on side by side, as SIMD lanes; 16 measured best of 16..64 at K = 10 and 34.
BLOCK = 16
#: Blocks handed to a thread at a time: a millisecond or so of work at K = 10.
_CHUNK = 512
#: A graph is scattered if the neighbours of consecutive places mostly lie further apart than this.
_NEAR = 64


class SweepLayout(NamedTuple):
    """Graph and links by place; the arrays of an engine are in this order, too.

    ``order`` (n,): nodes by colour, then index. ``blocks``: first places of at most ``BLOCK`` nodes of one
    colour. ``steps``: ranges of blocks that are independent of each other. ``indptr``, ``split``,
    ``neighbours``, ``edges``: see ``renumbered``. ``coupling``: (2 m,) by half-edge, or (m, K) by ``edges``.
    ``scattered``: sweeps should prefetch.
    """

    order: ShortInts
    blocks: Ints
    steps: list[list[tuple[int, int]]]
    indptr: ShortInts
    split: ShortInts
    neighbours: ShortInts
    edges: ShortInts
    coupling: Floats
    scattered: bool


def sweep_layout(problem: Problem) -> SweepLayout:
    """Colour the graph and renumber the problem by colour."""
    colours = greedy_colouring(problem.graph)
    order = np.argsort(colours, kind="stable").astype(np.int32)
    indptr, split, neighbours, edges = renumbered(order, problem.graph)
    coupling = problem.coupling[edges] if problem.coupling.ndim == 1 else problem.coupling
    blocks, steps = _plan(np.bincount(colours))
    first_neighbours = neighbours[indptr[:-1][np.diff(indptr) > 0]]
    scattered = (
        bool(np.mean(np.abs(np.diff(first_neighbours)) > _NEAR) > 0.5) if len(first_neighbours) > 1 else False
    )
    return SweepLayout(order, blocks, steps, indptr, split, neighbours, edges, coupling, scattered)


@kernel
def renumbered(order: ShortInts, graph: Adjacency) -> tuple[ShortInts, ShortInts, ShortInts, ShortInts]:
    """Compressed rows by place: indptr, split (where later places begin), neighbours, rows of ``pairs``."""
    indptr, neighbours, edges = graph
    n_nodes = order.shape[0]
    place = np.full(indptr.shape[0] - 1, -1, dtype=np.int32)
    for here in range(n_nodes):
        place[order[here]] = here
    n_slots = 0
    for node in order:
        for old in range(indptr[node], indptr[node + 1]):
            n_slots += place[neighbours[old]] >= 0
    new_indptr = np.empty(n_nodes + 1, dtype=np.int32)
    split = np.empty(n_nodes, dtype=np.int32)
    new_neighbours = np.empty(n_slots, dtype=np.int32)
    new_edges = np.empty(n_slots, dtype=np.int32)
    slot = 0
    new_indptr[0] = 0
    for here in range(n_nodes):
        node = order[here]
        for later in (False, True):
            if later:
                split[here] = slot
            for old in range(indptr[node], indptr[node + 1]):
                other = place[neighbours[old]]
                if other >= 0 and (other > here) == later:
                    new_neighbours[slot] = other
                    new_edges[slot] = edges[old]
                    slot += 1
        new_indptr[here + 1] = slot
    return new_indptr, split, new_neighbours, new_edges


def _plan(class_sizes: Ints) -> tuple[Ints, list[list[tuple[int, int]]]]:
    """Blocks within the classes; a large class becomes a step of many ranges, a run of small ones a range."""
    starts = [np.empty(0, dtype=np.int64)]
    steps: list[list[tuple[int, int]]] = []
    n_blocks = 0
    first_place = 0
    open_range = 0
    for size in class_sizes.tolist():
        starts.append(np.arange(first_place, first_place + size, BLOCK))
        first_place += size
        first_block, n_blocks = n_blocks, n_blocks + len(starts[-1])
        if n_blocks - first_block > _CHUNK:
            if open_range < first_block:
                steps.append([(open_range, first_block)])
            steps.append(chunk_bounds(first_block, n_blocks, _CHUNK))
            open_range = n_blocks
    if open_range < n_blocks:
        steps.append([(open_range, n_blocks)])
    return np.append(np.concatenate(starts), first_place), steps
