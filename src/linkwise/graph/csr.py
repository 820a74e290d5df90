"""Undirected graphs as arrays: canonical pairs, compressed sparse rows, components, subgraphs.

What every fit with links calls is NumPy and SciPy: compiling it would take longer than a small fit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from linkwise._arrays import Ints, ShortInts
from linkwise._kernels import kernel

#: More nodes than this have pairs of numbers that no single 64-bit number tells apart.
_MOST_NODES = 3_000_000_000


class Adjacency(NamedTuple):
    """Neighbours of every node: half-edges ``indptr[i]:indptr[i + 1]``, their other ends and rows.

    ``neighbours`` and ``edges`` (2 m,) have 32 bits, because a mixture keeps the graph between EM steps.
    """

    indptr: ShortInts
    neighbours: ShortInts
    edges: ShortInts


def adjacency(n_nodes: int, pairs: Ints) -> Adjacency:
    """Compressed sparse rows of the graph with the edges ``pairs`` (m, 2), in O(n + m)."""
    n_pairs = len(pairs)
    # Lower ends first: with i < j and rows sorted, the neighbours of a node come out ascending.
    ends = pairs.astype(np.int32).T
    indptr, order = counting_sort(ends[::-1].reshape(-1), n_nodes)
    neighbours = ends.reshape(-1)[order]
    order %= max(n_pairs, 1)
    return Adjacency(indptr, neighbours, order)


def counting_sort(values: ShortInts, n_values: int) -> tuple[ShortInts, ShortInts]:
    """Places of each value 0, 1, ... in order and where they begin, by scipy's stable conversion."""
    n_places = len(values)
    marks = sparse.csc_array(
        (np.ones(n_places, dtype=np.int8), values, np.arange(n_places + 1, dtype=np.int32)),
        shape=(n_values, n_places),
    ).tocsr()
    return marks.indptr, marks.indices


@kernel
def _breadth_first(indptr: ShortInts, neighbours: ShortInts, starts: ShortInts) -> ShortInts:
    """Nodes in the order in which breadth-first searches from each start not yet seen meet them."""
    order = np.empty(starts.shape[0], dtype=np.int32)
    seen = np.zeros(indptr.shape[0] - 1, dtype=np.bool_)
    head = 0
    tail = 0
    for start in starts:
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


def breadth_first_order(graph: Adjacency, nodes: ShortInts | None = None) -> ShortInts:
    """Order (n,) of nodes that keeps neighbours close in memory; components stay contiguous."""
    if nodes is None:
        nodes = np.arange(len(graph.indptr) - 1, dtype=np.int32)
    return _breadth_first(graph.indptr, graph.neighbours, nodes)


def compact(pairs: Ints) -> tuple[Ints, Ints]:
    """The nodes (c,) that pairs join, ascending, and the pairs (m, 2) as places among them."""
    nodes, places = np.unique(pairs, return_inverse=True)
    return nodes, places.reshape(-1, 2).astype(np.int64, copy=False)


def unique_pairs(n_nodes: int, pairs: Ints) -> tuple[Ints, Ints]:
    """Each unordered pair once (u, 2), smaller index first, rows sorted; the row (m,) that each became."""
    low, high = pairs.T
    if not (low < high).all():
        low, high = np.minimum(low, high), np.maximum(low, high)
    if n_nodes > _MOST_NODES:
        found, row_of = np.unique(np.column_stack([low, high]), axis=0, return_inverse=True)
        return found, row_of.reshape(-1).astype(np.int64, copy=False)
    key = low * n_nodes
    key += high
    if np.all(key[1:] > key[:-1]):
        del key
        return np.column_stack([low, high]), np.arange(len(pairs))
    unique, row_of = np.unique(key, return_inverse=True)
    return np.column_stack(np.divmod(unique, n_nodes)), row_of.astype(np.int64, copy=False)


@kernel
def reversed_slots(edges: ShortInts, n_links: int) -> ShortInts:
    """For each half-edge the other half-edge of the same link; rows of ``pairs`` are below ``n_links``."""
    reverse = np.empty_like(edges)
    slot_of = np.full(n_links, -1, dtype=np.int32)
    for slot in range(edges.shape[0]):
        other = slot_of[edges[slot]]
        if other < 0:
            slot_of[edges[slot]] = slot
        else:
            reverse[slot] = other
            reverse[other] = slot
    return reverse


def induced_subgraph(graph: Adjacency, nodes: Ints) -> Adjacency:
    """The edges with both ends among ``nodes``, renumbered in that order; ``edges`` stay the same."""
    place = np.full(len(graph.indptr) - 1, -1, dtype=np.int32)
    place[nodes] = np.arange(len(nodes), dtype=np.int32)
    starts, degrees = graph.indptr[nodes], np.diff(graph.indptr)[nodes]
    ends = np.cumsum(degrees, dtype=np.int32)
    slots = np.arange(degrees.sum(), dtype=np.int32)
    slots += np.repeat(starts - ends + degrees, degrees)
    columns = place[graph.neighbours[slots]]
    indptr = np.append(np.int32(0), ends)
    kept = columns >= 0
    if not kept.all():
        columns, slots = columns[kept], slots[kept]
        indptr = np.append(np.int32(0), np.cumsum(kept, dtype=np.int32))[indptr]
    return Adjacency(indptr, columns, graph.edges[slots])


@kernel
def with_room(array: Ints, filled: int, needed: int) -> Ints:
    """The array if it has ``needed`` places, else its first ``filled`` values in one twice as long."""
    if needed <= array.size:
        return array
    larger = np.empty(2 * needed, dtype=np.int64)
    for place in range(filled):
        larger[place] = array[place]
    return larger


@kernel
def find(parent: Ints, node: int) -> int:
    """Root of ``node``; every second node on the way is pointed at its grandparent."""
    while parent[node] != node:
        parent[node] = parent[parent[node]]
        node = parent[node]
    return node


@kernel
def _join(pairs: Ints, labels: Ints) -> int:
    """Join the nodes of all pairs; fills in the groups and returns their number. Allocates nothing."""
    for node in range(labels.shape[0]):
        labels[node] = node
    for row in range(pairs.shape[0]):
        a = find(labels, pairs[row, 0])
        b = find(labels, pairs[row, 1])
        # The smaller root on top, so that a root is the first node of its group.
        if a < b:
            labels[b] = a
        else:
            labels[a] = b
    # Parents come before their children: those already hold the number of their group.
    n_groups = 0
    for node in range(labels.shape[0]):
        if labels[node] == node:
            labels[node] = n_groups
            n_groups += 1
        else:
            labels[node] = labels[labels[node]]
    return n_groups


def group_labels(n_nodes: int, pairs: Ints) -> tuple[Ints, int]:
    """Groups of nodes joined by pairs: the connected components, numbered in order of first appearance."""
    labels = np.empty(n_nodes, dtype=np.int64)
    return labels, int(_join(pairs, labels))


def is_forest(n_nodes: int, pairs: Ints) -> bool:
    """Whether the graph has no cycle: a forest has as many edges as nodes minus components."""
    return len(pairs) == n_nodes - group_labels(n_nodes, pairs)[1]
