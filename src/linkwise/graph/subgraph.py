"""The part of a graph on some of its nodes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from linkwise._numba import kernel
from linkwise.graph.csr import Adjacency

__all__ = ["induced_subgraph"]


@kernel
def _select(
    indptr: NDArray[np.int64],
    neighbours: NDArray[np.int64],
    edges: NDArray[np.int64],
    nodes: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Rows of the nodes, columns outside left out and the others renumbered."""
    place = np.full(indptr.size - 1, -1, dtype=np.int64)
    n_half_edges = 0
    for row in range(nodes.size):
        place[nodes[row]] = row
        n_half_edges += indptr[nodes[row] + 1] - indptr[nodes[row]]
    new_indptr = np.zeros(nodes.size + 1, dtype=np.int64)
    new_neighbours = np.empty(n_half_edges, dtype=np.int64)
    new_edges = np.empty(n_half_edges, dtype=np.int64)
    filled = 0
    for row in range(nodes.size):
        for slot in range(indptr[nodes[row]], indptr[nodes[row] + 1]):
            column = place[neighbours[slot]]
            if column >= 0:
                new_neighbours[filled] = column
                new_edges[filled] = edges[slot]
                filled += 1
        new_indptr[row + 1] = filled
    return new_indptr, new_neighbours[:filled].copy(), new_edges[:filled].copy()


def induced_subgraph(graph: Adjacency, nodes: NDArray[np.int64]) -> Adjacency:
    """The edges with both ends among ``nodes``, which are renumbered 0, 1, ... in the order given.

    Parameters
    ----------
    graph : Adjacency
    nodes : (k,) int64
        Distinct nodes.

    Returns
    -------
    Adjacency
        ``edges`` keeps the numbers of the whole graph.

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise.graph import adjacency, induced_subgraph
    >>> graph = adjacency(4, np.array([[0, 1], [1, 3], [2, 3]]))
    >>> part = induced_subgraph(graph, np.array([1, 2, 3]))
    >>> part.indptr, part.neighbours, part.edges
    (array([0, 1, 2, 4]), array([2, 2, 0, 1]), array([1, 2, 1, 2]))
    """
    return Adjacency(*_select(graph.indptr, graph.neighbours, graph.edges, nodes))
