"""Elimination orders: in which order to sum nodes out so that the tables of exact inference stay small."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from linkwise._kernels import kernel
from linkwise.graph.colouring import degeneracy
from linkwise.graph.csr import Adjacency, induced_subgraph
from linkwise.graph.min_fill import eliminate_by_fill, initial_fill

__all__ = ["EliminationOrder", "min_fill_order"]


class EliminationOrder(NamedTuple):
    """An order of the nodes and what each is connected to when its turn comes.

    ``order`` (t,) has all nodes if ``complete``, otherwise those before the search gave up. ``width`` is
    the largest number of neighbours at elimination: tables have K ** (width + 1) entries; if not
    ``complete``, a width above ``max_width`` that this order (or any order) needs at least.
    ``bags[bags_indptr[r]:bags_indptr[r + 1]]`` are the neighbours of ``order[r]`` when it is eliminated,
    without the node itself, ascending. They are a clique from then on, and all come later in the order; the
    one that comes first is the parent of the node in the elimination tree (none: a root).
    """

    order: NDArray[np.int64]
    width: int
    complete: bool
    bags_indptr: NDArray[np.int64]
    bags: NDArray[np.int64]


@kernel
def _peel(
    indptr: NDArray[np.int64], neighbours: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Nodes with at most one neighbour left, as they become so; that neighbour or -1; degrees left."""
    n_nodes = indptr.size - 1
    degree = indptr[1:] - indptr[:-1]
    order = np.empty(n_nodes, dtype=np.int64)
    hold = np.full(n_nodes, -1, dtype=np.int64)
    head = 0
    tail = 0
    for node in range(n_nodes):
        if degree[node] <= 1:
            order[tail] = node
            tail += 1
    while head < tail:
        node = order[head]
        degree[node] = -1
        for slot in range(indptr[node], indptr[node + 1]):
            other = neighbours[slot]
            if degree[other] >= 0:
                hold[head] = other
                degree[other] -= 1
                if degree[other] == 1:
                    order[tail] = other
                    tail += 1
        head += 1
    return order[:tail], hold[:tail], degree


def min_fill_order(graph: Adjacency, max_width: int | None = None) -> EliminationOrder:
    """Eliminate next the node whose neighbours lack the fewest edges among each other.

    Eliminating a node joins its neighbours pairwise. Nodes with at most one neighbour go first; then the
    greedy rule of Rose (1970) picks the fewest fill-in edges, then the smallest degree, then the smallest
    index, so nodes whose neighbours already are a clique go for free. Fill-in counts are updated, not
    recomputed. The search gives up as soon as the width is known to exceed ``max_width``: at once if the
    degeneracy, a lower bound of the width of every order, exceeds it.
    """
    none = np.empty(0, dtype=np.int64)
    if max_width is not None:
        needed, _ = degeneracy(graph)
        if needed > max_width:
            return EliminationOrder(none, needed, False, np.zeros(1, dtype=np.int64), none)
    limit = graph.indptr.size if max_width is None else max_width
    order, hold, degree_left = _peel(graph.indptr, graph.neighbours)
    sizes = (hold >= 0).astype(np.int64)
    bags = hold[hold >= 0]
    width = int(sizes.max(initial=0))
    complete = True
    rest = np.flatnonzero(degree_left >= 0)
    if rest.size:
        core = induced_subgraph(graph, rest)
        fill = initial_fill(core.indptr, core.neighbours)
        by_cost = np.lexsort((np.diff(core.indptr), fill))
        core_order, core_sizes, core_bags, core_width = eliminate_by_fill(
            core.indptr, core.neighbours, limit, fill, by_cost
        )
        order = np.concatenate((order, rest[core_order]))
        sizes = np.concatenate((sizes, core_sizes))
        bags = np.concatenate((bags, rest[core_bags]))
        width = max(width, int(core_width))
        complete = core_order.size == rest.size
    return EliminationOrder(order, width, complete, np.concatenate(([0], np.cumsum(sizes))), bags)
