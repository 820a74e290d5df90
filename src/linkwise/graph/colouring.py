"""Colour a graph so that neighbours differ: greedy, DSATUR, and the smallest-last order behind them."""

from __future__ import annotations

import numpy as np

from linkwise._arrays import Ints, ShortInts
from linkwise._kernels import kernel
from linkwise.graph.csr import Adjacency


@kernel
def first_fit(indptr: ShortInts, neighbours: ShortInts, order: Ints, colours: Ints) -> None:
    """Give each node of ``order`` the smallest colour its coloured (>= 0) neighbours leave, in place."""
    last_refused = np.full(indptr.size, -1, dtype=np.int64)
    for node in order:
        for slot in range(indptr[node], indptr[node + 1]):
            colour = colours[neighbours[slot]]
            if colour >= 0:
                last_refused[colour] = node
        colour = 0
        while last_refused[colour] == node:
            colour += 1
        colours[node] = colour


def _largest_degree_first(indptr: ShortInts) -> Ints:
    """Nodes by falling degree, ties by index."""
    return np.argsort(-np.diff(indptr), kind="stable")


def greedy_colouring(graph: Adjacency) -> Ints:
    """Colours (n,) by falling degree (Welsh & Powell 1967): equal ones may be updated together, O(n + m)."""
    colours = np.full(graph.indptr.size - 1, -1, dtype=np.int64)
    first_fit(graph.indptr, graph.neighbours, _largest_degree_first(graph.indptr), colours)
    return colours


@kernel
def _smallest_last(
    graph: Adjacency, order: Ints, degree: Ints, place: Ints, bucket_start: Ints, cores: Ints
) -> None:
    """Removal order and core numbers; the nodes left stay sorted by current degree in ``order``."""
    indptr, neighbours = graph.indptr, graph.neighbours
    n_nodes = indptr.size - 1
    core = 0
    for rank in range(n_nodes):
        node = order[rank]
        core = max(core, degree[node])
        cores[node] = core
        # Lower buckets are empty, and where they start does not matter until a node of theirs is removed.
        bucket_start[degree[node]] = rank + 1
        for slot in range(indptr[node], indptr[node + 1]):
            other = neighbours[slot]
            if place[other] > rank:
                front = bucket_start[degree[other]]
                swapped = order[front]
                order[front] = other
                order[place[other]] = swapped
                place[swapped] = place[other]
                place[other] = front
                bucket_start[degree[other]] += 1
                degree[other] -= 1


def core_numbers(graph: Adjacency) -> tuple[Ints, Ints]:
    """Smallest-last order (n,) (Matula & Beck 1983) and core number (n,) of each node, O(n + m).

    The core number is the largest k such that the node is in a part where every node has k neighbours or
    more.
    """
    n_nodes = len(graph.indptr) - 1
    order = _largest_degree_first(graph.indptr)[::-1].copy()
    degree = np.diff(graph.indptr)
    place = np.empty(n_nodes, dtype=np.int64)
    place[order] = np.arange(n_nodes)
    bucket_start = np.append(0, np.cumsum(np.bincount(degree, minlength=n_nodes)[:n_nodes]))
    cores = np.empty(n_nodes, dtype=np.int64)
    _smallest_last(graph, order, degree, place, bucket_start, cores)
    return order, cores


def degeneracy(graph: Adjacency) -> tuple[int, Ints]:
    """Largest core number, and the smallest-last order; the treewidth is at least that number."""
    order, cores = core_numbers(graph)
    return int(cores.max(initial=0)), order


@kernel
def _push(heap: Ints, size: int, key: int) -> None:
    """Add a key to the max-heap ``heap[:size]``."""
    child = size
    while child > 0:
        above = (child - 1) >> 1
        if heap[above] >= key:
            break
        heap[child] = heap[above]
        child = above
    heap[child] = key


@kernel
def _drop_top(heap: Ints, size: int) -> None:
    """Remove the largest key of the max-heap ``heap[:size]``."""
    key = heap[size - 1]
    place = 0
    while True:
        child = 2 * place + 1
        if child >= size - 1:
            break
        if child + 1 < size - 1 and heap[child + 1] > heap[child]:
            child += 1
        if heap[child] <= key:
            break
        heap[place] = heap[child]
        place = child
    heap[place] = key


@kernel
def _dsatur(indptr: ShortInts, neighbours: ShortInts, by_degree: Ints) -> Ints:
    """DSATUR with a lazy heap of (saturation, degree, index) keys."""
    n_nodes = indptr.size - 1
    rank = np.empty(n_nodes, dtype=np.int64)
    for place in range(n_nodes):
        rank[by_degree[place]] = place
    colours = np.full(n_nodes, -1, dtype=np.int64)
    saturation = np.zeros(n_nodes, dtype=np.int64)
    # refused[indptr[v] + v + c]: a neighbour of v has colour c, for the deg(v) + 1 colours v may need.
    refused = np.zeros(neighbours.size + n_nodes, dtype=np.bool_)
    heap = np.empty(neighbours.size, dtype=np.int64)
    size = 0
    next_rank = 0
    for _ in range(n_nodes):
        node = -1
        while size > 0 and node < 0:
            key = heap[0]
            _drop_top(heap, size)
            size -= 1
            candidate = by_degree[n_nodes - 1 - key % n_nodes]
            if colours[candidate] < 0 and saturation[candidate] == key // n_nodes:
                node = candidate
        while node < 0:
            if colours[by_degree[next_rank]] < 0:
                node = by_degree[next_rank]
            next_rank += 1
        colour = 0
        while refused[indptr[node] + node + colour]:
            colour += 1
        colours[node] = colour
        for slot in range(indptr[node], indptr[node + 1]):
            other = neighbours[slot]
            if colours[other] < 0 and colour <= indptr[other + 1] - indptr[other]:
                mark = indptr[other] + other + colour
                if not refused[mark]:
                    refused[mark] = True
                    saturation[other] += 1
                    _push(heap, size, saturation[other] * n_nodes + n_nodes - 1 - rank[other])
                    size += 1
    return colours


def dsatur_colouring(graph: Adjacency) -> Ints:
    """Colour next the node whose neighbours show most colours (Brélaz 1979); colours (n,).

    Exact on bipartite graphs. Colours above the degree of a node are not counted: memory O(n + m), time
    O((n + m) log n).
    """
    return _dsatur(graph.indptr, graph.neighbours, _largest_degree_first(graph.indptr))
