"""Two colours: breadth-first search decides, and an odd ring is the proof when there is none."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from linkwise._numba import kernel
from linkwise.graph.csr import Adjacency

__all__ = ["two_colouring"]


@kernel
def _two_colours(
    indptr: NDArray[np.int64], neighbours: NDArray[np.int64], edges: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Colours, and on failure the nodes and edges of an odd ring (empty on success)."""
    n_nodes = indptr.size - 1
    colours = np.full(n_nodes, -1, dtype=np.int64)
    parent = np.full(n_nodes, -1, dtype=np.int64)
    parent_edge = np.full(n_nodes, -1, dtype=np.int64)
    queue = np.empty(n_nodes, dtype=np.int64)
    head = 0
    tail = 0
    left = -1
    right = -1
    closing_edge = -1
    for start in range(n_nodes):
        if colours[start] >= 0:
            continue
        colours[start] = 0
        queue[tail] = start
        tail += 1
        while head < tail and left < 0:
            node = queue[head]
            head += 1
            for slot in range(indptr[node], indptr[node + 1]):
                other = neighbours[slot]
                if colours[other] < 0:
                    colours[other] = 1 - colours[node]
                    parent[other] = node
                    parent_edge[other] = edges[slot]
                    queue[tail] = other
                    tail += 1
                elif colours[other] == colours[node]:
                    left, right, closing_edge = node, other, edges[slot]
                    break
        if left >= 0:
            break
    if left < 0:
        return colours, queue[:0], queue[:0]

    # In breadth-first search an edge joins equal or neighbouring depths; equal colours mean equal
    # depth, so the two branches reach their lowest common ancestor in the same step.
    half = 0
    a, b = left, right
    while a != b:
        a, b = parent[a], parent[b]
        half += 1
    ring = np.empty(2 * half + 1, dtype=np.int64)
    ring_edges = np.empty(2 * half + 1, dtype=np.int64)
    a, b = left, right
    for step in range(half):
        ring[half - step] = a
        ring_edges[half - step - 1] = parent_edge[a]
        ring[half + 1 + step] = b
        ring_edges[half + 1 + step] = parent_edge[b]
        a, b = parent[a], parent[b]
    ring[0] = a
    ring_edges[half] = closing_edge
    return colours, ring, ring_edges


def two_colouring(
    graph: Adjacency,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Colour a graph with two colours or find an odd ring, O(n + m).

    Parameters
    ----------
    graph : Adjacency

    Returns
    -------
    colours : (n,) int64
        Proper colours 0 and 1 if ``ring`` is empty.
    ring : (l,) int64
        Nodes of a simple ring of odd length, in order; empty if two colours are enough.
    ring_edges : (l,) int64
        Edge from each node of the ring to the next, the last one back to the first.

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise.graph import adjacency, two_colouring
    >>> two_colouring(adjacency(4, np.array([[0, 1], [1, 2], [2, 3]])))[0]
    array([0, 1, 0, 1])
    >>> two_colouring(adjacency(4, np.array([[0, 1], [1, 2], [1, 3], [2, 3]])))[1]
    array([1, 2, 3])
    """
    colours, ring, ring_edges = _two_colours(graph.indptr, graph.neighbours, graph.edges)
    return colours, ring, ring_edges
