"""Undirected graphs as arrays: canonical pairs, compressed sparse rows, subgraphs, and arrays that grow.

The compressed rows are built by a counting sort.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from linkwise._kernels import kernel

__all__ = ["Adjacency", "adjacency", "breadth_first_order", "induced_subgraph", "unique_pairs", "with_room"]


class Adjacency(NamedTuple):
    """Neighbours of every node, as three flat arrays.

    Attributes
    ----------
    indptr : (n + 1,) int64
        The half-edges of node i are ``indptr[i]:indptr[i + 1]``.
    neighbours : (2 m,) int64
        The other end of each half-edge, ascending within a node when pairs are sorted by row.
    edges : (2 m,) int64
        The row of ``pairs`` each half-edge came from.
    """

    indptr: NDArray[np.int64]
    neighbours: NDArray[np.int64]
    edges: NDArray[np.int64]


@kernel
def _counting_sort(
    n_nodes: int, pairs: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Two passes over the pairs: count, then place. O(n + m)."""
    n_pairs = pairs.shape[0]
    indptr = np.zeros(n_nodes + 1, dtype=np.int64)
    for edge in range(n_pairs):
        indptr[pairs[edge, 0] + 1] += 1
        indptr[pairs[edge, 1] + 1] += 1
    for node in range(n_nodes):
        indptr[node + 1] += indptr[node]
    cursor = indptr[:-1].copy()
    neighbours = np.empty(2 * n_pairs, dtype=np.int64)
    edges = np.empty(2 * n_pairs, dtype=np.int64)
    # Lower ends first: with i < j and rows sorted, the neighbours of a node come out ascending.
    for side in range(2):
        for edge in range(n_pairs):
            node = pairs[edge, 1 - side]
            slot = cursor[node]
            neighbours[slot] = pairs[edge, side]
            edges[slot] = edge
            cursor[node] = slot + 1
    return indptr, neighbours, edges


def adjacency(n_nodes: int, pairs: NDArray[np.int64]) -> Adjacency:
    """Compressed sparse rows of the graph with these edges.

    Parameters
    ----------
    n_nodes : int
    pairs : (m, 2) int64
        One row per undirected edge, no loops.

    Returns
    -------
    Adjacency

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise.graph import adjacency
    >>> graph = adjacency(4, np.array([[0, 1], [1, 3]]))
    >>> graph.neighbours[graph.indptr[1]:graph.indptr[2]]
    array([0, 3])
    """
    return Adjacency(*_counting_sort(n_nodes, pairs))


@kernel
def _breadth_first(indptr: NDArray[np.int64], neighbours: NDArray[np.int64]) -> NDArray[np.int64]:
    """Nodes in the order a breadth-first search from 0, then from the next unseen node, meets them."""
    n_nodes = indptr.shape[0] - 1
    order = np.empty(n_nodes, dtype=np.int64)
    seen = np.zeros(n_nodes, dtype=np.bool_)
    head = 0
    tail = 0
    for start in range(n_nodes):
        if seen[start]:
            continue
        seen[start] = True
        order[tail] = start
        tail += 1
        while head < tail:
            node = order[head]
            head += 1
            for slot in range(indptr[node], indptr[node + 1]):
                other = neighbours[slot]
                if not seen[other]:
                    seen[other] = True
                    order[tail] = other
                    tail += 1
    return order


def breadth_first_order(graph: Adjacency) -> NDArray[np.int64]:
    """Order of the nodes that keeps neighbours close in memory.

    Sweeps over a graph whose numbering is random miss the cache at every neighbour; renumbering by
    breadth-first search puts the neighbours of a node near it. Components stay contiguous.

    Parameters
    ----------
    graph : Adjacency

    Returns
    -------
    (n,) int64
        ``order[r]`` is the node that comes at place r.

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise.graph import adjacency, breadth_first_order
    >>> breadth_first_order(adjacency(4, np.array([[0, 3], [2, 3]])))
    array([0, 3, 2, 1])
    """
    return _breadth_first(graph.indptr, graph.neighbours)


def unique_pairs(n_nodes: int, pairs: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Each unordered pair once, smaller index first, rows sorted.

    Parameters
    ----------
    n_nodes : int
    pairs : (m, 2) int64
        Any orientation, any order, with repetitions.

    Returns
    -------
    pairs : (u, 2) int64
    row_of : (m,) int64
        The row of the result that each input pair became.

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise.graph import unique_pairs
    >>> unique_pairs(9, np.array([[5, 2], [0, 1], [2, 5]]))
    (array([[0, 1], [2, 5]]), array([1, 0, 1]))
    """
    low = np.minimum(pairs[:, 0], pairs[:, 1])
    high = np.maximum(pairs[:, 0], pairs[:, 1])
    key = low * n_nodes + high
    if np.all(key[1:] > key[:-1]):
        return np.column_stack([low, high]), np.arange(len(key))
    unique, row_of = np.unique(key, return_inverse=True)
    return np.column_stack(np.divmod(unique, n_nodes)), row_of.astype(np.int64, copy=False)


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


@kernel
def with_room(array: NDArray[np.int64], filled: int, needed: int) -> NDArray[np.int64]:
    """The array if it has ``needed`` places, else its first ``filled`` values in one twice as long."""
    if needed <= array.size:
        return array
    larger = np.empty(2 * needed, dtype=np.int64)
    for place in range(filled):
        larger[place] = array[place]
    return larger
