"""Trees that hang on the rings of a graph: exact in one pass up before messages circle, and one down after.

What messages from a tree say never changes, so only the rings need sweeps and memory for messages: with as
many random links as rows, two thirds of the links.
"""

from __future__ import annotations

import numpy as np

from linkwise._arrays import Bools, ShortInts
from linkwise._kernels import kernel
from linkwise.graph import Adjacency
from linkwise.inference.exact.forest import RootedForest


@kernel
def _peel(graph: Adjacency, nodes: ShortInts) -> tuple[ShortInts, ShortInts, ShortInts, Bools]:
    """Take leaves away until none is left; ``order``, ``parent``, ``edge`` of the trees, and who stays."""
    indptr, neighbours, edges = graph
    degree = np.zeros(indptr.shape[0] - 1, dtype=np.int32)
    leaves = np.empty(nodes.shape[0], dtype=np.int32)
    n_leaves = 0
    for node in nodes:
        degree[node] = indptr[node + 1] - indptr[node]
        if degree[node] == 1:
            leaves[n_leaves] = node
            n_leaves += 1
    slots = np.empty(nodes.shape[0], dtype=np.int32)
    done = 0
    while done < n_leaves:
        node = leaves[done]
        degree[node] = 0
        for slot in range(indptr[node], indptr[node + 1]):
            other = neighbours[slot]
            if degree[other] > 0:
                slots[done] = slot
                degree[other] -= 1
                if degree[other] == 1:
                    leaves[n_leaves] = other
                    n_leaves += 1
        done += 1
    stays = degree > 0
    # From here on the place of a node; roots come first, and leaves that went last before earlier ones.
    place = degree
    place[:] = -1
    n_roots = 0
    for leaf in range(n_leaves):
        above = neighbours[slots[leaf]]
        if stays[above] and place[above] < 0:
            place[above] = n_roots
            n_roots += 1
    order = np.empty(n_roots + n_leaves, dtype=np.int32)
    parent = np.full(n_roots + n_leaves, -1, dtype=np.int32)
    edge = np.full(n_roots + n_leaves, -1, dtype=np.int32)
    for here in range(n_roots, n_roots + n_leaves):
        leaf = n_roots + n_leaves - 1 - here
        above = neighbours[slots[leaf]]
        order[here] = leaves[leaf]
        place[leaves[leaf]] = here
        parent[here] = place[above]
        edge[here] = edges[slots[leaf]]
        if stays[above]:
            order[place[above]] = above
    return order, parent, edge, stays


def hanging_trees(graph: Adjacency, nodes: ShortInts) -> tuple[RootedForest, Bools]:
    """The trees that hang on rings, and whether a node (n,) is on a ring or between rings.

    ``nodes``: all those of some components, none of which is a tree; the others are on none. The roots of
    the trees are the nodes they hang on.
    """
    *forest, stays = _peel(graph, nodes)
    return RootedForest(*forest), stays
