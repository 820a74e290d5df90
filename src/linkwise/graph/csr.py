"""Undirected graphs as arrays: canonical pairs, compressed sparse rows, components, subgraphs.

What every fit with links calls is NumPy and SciPy: compiling it would take longer than a small fit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from linkwise._kernels import kernel

__all__ = ["Adjacency", "adjacency", "breadth_first_order", "induced_subgraph", "unique_pairs", "with_room"]


class Adjacency(NamedTuple):
    """Neighbours of every node, as three flat arrays.

    The half-edges of node i are ``indptr[i]:indptr[i + 1]``, with ``indptr`` (n + 1,). ``neighbours`` (2
    m,) is the other end of each half-edge, ascending within a node when pairs are sorted by row, and
    ``edges`` (2 m,) the row of ``pairs`` it came from.
    """

    indptr: NDArray[np.int64]
    neighbours: NDArray[np.int64]
    edges: NDArray[np.int64]


def adjacency(n_nodes: int, pairs: NDArray[np.int64]) -> Adjacency:
    """Compressed sparse rows of the graph with the edges ``pairs`` (m, 2), in O(n + m)."""
    n_pairs = len(pairs)
    # Lower ends first: with i < j and rows sorted, the neighbours of a node come out ascending.
    nodes = np.concatenate((pairs[:, 1], pairs[:, 0]))
    others = np.concatenate((pairs[:, 0], pairs[:, 1]))
    indptr, order = counting_sort(nodes, n_nodes)
    return Adjacency(indptr, others[order], order % max(n_pairs, 1))


def counting_sort(values: NDArray[np.int64], n_values: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Places of each value 0, 1, ... in order, and where those of every value begin.

    The columns of a sparse matrix with one entry each, by rows: scipy's conversion is a stable counting sort.
    """
    n_places = len(values)
    marks = sparse.csc_array(
        (np.ones(n_places, dtype=np.int8), values, np.arange(n_places + 1)), shape=(n_values, n_places)
    ).tocsr()
    return marks.indptr.astype(np.int64), marks.indices.astype(np.int64)


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
    """Order (n,) of the nodes that keeps neighbours close in memory; components stay contiguous.

    Sweeps over a graph whose numbering is random miss the cache at every neighbour.
    """
    return _breadth_first(graph.indptr, graph.neighbours)


def unique_pairs(n_nodes: int, pairs: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Each unordered pair once (u, 2), smaller index first, rows sorted; the row (m,) that each became."""
    low = np.minimum(pairs[:, 0], pairs[:, 1])
    high = np.maximum(pairs[:, 0], pairs[:, 1])
    key = low * n_nodes + high
    if np.all(key[1:] > key[:-1]):
        return np.column_stack([low, high]), np.arange(len(key))
    unique, row_of = np.unique(key, return_inverse=True)
    return np.column_stack(np.divmod(unique, n_nodes)), row_of.astype(np.int64, copy=False)


def induced_subgraph(graph: Adjacency, nodes: NDArray[np.int64]) -> Adjacency:
    """The edges with both ends among ``nodes``, renumbered in that order; ``edges`` stay the same."""
    place = np.full(len(graph.indptr) - 1, -1)
    place[nodes] = np.arange(len(nodes))
    starts, degrees = graph.indptr[nodes], np.diff(graph.indptr)[nodes]
    ends = np.cumsum(degrees)
    slots = np.arange(degrees.sum()) + np.repeat(starts - ends + degrees, degrees)
    columns = place[graph.neighbours[slots]]
    kept = columns >= 0
    n_before = np.concatenate(([0], np.cumsum(kept)))
    return Adjacency(n_before[np.concatenate(([0], ends))], columns[kept], graph.edges[slots[kept]])


@kernel
def with_room(array: NDArray[np.int64], filled: int, needed: int) -> NDArray[np.int64]:
    """The array if it has ``needed`` places, else its first ``filled`` values in one twice as long."""
    if needed <= array.size:
        return array
    larger = np.empty(2 * needed, dtype=np.int64)
    for place in range(filled):
        larger[place] = array[place]
    return larger
