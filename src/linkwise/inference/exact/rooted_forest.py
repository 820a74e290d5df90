"""A forest in breadth-first order, the order of every pass over it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from linkwise._kernels import kernel
from linkwise.graph import Adjacency

__all__ = ["RootedForest", "root_forest"]


class RootedForest(NamedTuple):
    """A forest in breadth-first order: parents before children, components contiguous.

    Attributes
    ----------
    order : (n,) int32
        The node at each place.
    parent : (n,) int32
        Place of the parent, -1 at a root.
    edge : (n,) int32
        Row of ``pairs`` that joins the node to its parent, -1 at a root.
    """

    order: NDArray[np.int32]
    parent: NDArray[np.int32]
    edge: NDArray[np.int32]


@kernel
def _root(
    indptr: NDArray[np.int64],
    neighbours: NDArray[np.int64],
    edges: NDArray[np.int64],
    order: NDArray[np.int32],
    parent: NDArray[np.int32],
    edge: NDArray[np.int32],
) -> bool:
    """Breadth-first search from the first node of every component; False if it meets a cycle."""
    n_nodes = indptr.shape[0] - 1
    seen = np.zeros(n_nodes, dtype=np.bool_)
    tail = 0
    head = 0
    for start in range(n_nodes):
        if seen[start]:
            continue
        seen[start] = True
        order[tail] = start
        parent[tail] = -1
        edge[tail] = -1
        tail += 1
        while head < tail:
            node = order[head]
            for slot in range(indptr[node], indptr[node + 1]):
                if edges[slot] == edge[head]:
                    continue
                other = neighbours[slot]
                if seen[other]:
                    return False
                seen[other] = True
                order[tail] = other
                parent[tail] = head
                edge[tail] = edges[slot]
                tail += 1
            head += 1
    return True


def root_forest(graph: Adjacency) -> RootedForest:
    """Root every tree of a forest at its first node.

    Parameters
    ----------
    graph : Adjacency
        Any number of components, no cycle.

    Returns
    -------
    RootedForest

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise.graph import adjacency
    >>> from linkwise.inference.exact.rooted_forest import root_forest
    >>> root_forest(adjacency(4, np.array([[0, 3], [2, 3]]))).parent
    array([-1,  0,  1, -1], dtype=int32)
    """
    # Kept from one EM step to the next, so half the memory counts; nobody has 2**31 nodes in memory.
    forest = RootedForest(*np.empty((3, len(graph.indptr) - 1), dtype=np.int32))
    if not _root(*graph, *forest):
        raise ValueError("the graph has a cycle: use the junction tree, or drop links to a spanning forest")
    return forest
