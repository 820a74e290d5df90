"""Elimination orders: in which order to sum nodes out so that the tables of exact inference stay small."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from linkwise._arrays import Bools, Ints, ShortInts
from linkwise._kernels import kernel
from linkwise.graph.colouring import degeneracy
from linkwise.graph.csr import Adjacency, induced_subgraph, with_room


class EliminationOrder(NamedTuple):
    """An order of the nodes and what each is connected to when its turn comes.

    ``order`` (t,) has all nodes if ``complete``. ``width`` is the largest number of neighbours at
    elimination, tables have K ** (width + 1) entries; if not ``complete``, a lower bound above ``max_width``.
    ``bags`` from ``bags_indptr[r]`` are the later neighbours of ``order[r]``, a clique; the first of them is
    its parent.
    """

    order: Ints
    width: int
    complete: bool
    bags_indptr: Ints
    bags: Ints


@kernel
def _peel(indptr: ShortInts, neighbours: ShortInts) -> tuple[Ints, Ints, Ints]:
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


@kernel
def _initial_fill(indptr: ShortInts, neighbours: ShortInts) -> Ints:
    """Missing edges among the neighbours of each node: d (d - 1) / 2 less its triangles, O(m sqrt m)."""
    n_nodes = indptr.size - 1
    fill = np.empty(n_nodes, dtype=np.int64)
    for node in range(n_nodes):
        degree = indptr[node + 1] - indptr[node]
        fill[node] = degree * (degree - 1) // 2
    # Every edge points to the end of larger (degree, index): then no node has more than sqrt(2 m) ahead.
    ahead_start = np.zeros(n_nodes + 1, dtype=np.int64)
    ahead = np.empty(neighbours.size // 2, dtype=np.int64)
    filled = 0
    for node in range(n_nodes):
        degree = indptr[node + 1] - indptr[node]
        for slot in range(indptr[node], indptr[node + 1]):
            other = neighbours[slot]
            other_degree = indptr[other + 1] - indptr[other]
            if degree < other_degree or (degree == other_degree and node < other):
                ahead[filled] = other
                filled += 1
        ahead_start[node + 1] = filled
    seen_from = np.full(n_nodes, -1, dtype=np.int64)
    for a in range(n_nodes):
        for slot in range(ahead_start[a], ahead_start[a + 1]):
            seen_from[ahead[slot]] = a
        for slot in range(ahead_start[a], ahead_start[a + 1]):
            b = ahead[slot]
            for slot_b in range(ahead_start[b], ahead_start[b + 1]):
                c = ahead[slot_b]
                if seen_from[c] == a:
                    fill[a] -= 1
                    fill[b] -= 1
                    fill[c] -= 1
    return fill


@kernel
def _comes_before(fill: Ints, degree: Ints, a: int, b: int) -> bool:
    """Order of the heap: least fill-in, then least degree, then least index."""
    if fill[a] != fill[b]:
        return bool(fill[a] < fill[b])
    if degree[a] != degree[b]:
        return bool(degree[a] < degree[b])
    return a < b


@kernel
def _settle(heap: Ints, place: Ints, size: int, start: int, fill: Ints, degree: Ints) -> None:
    """Move the node at ``start`` up or down to where its key belongs."""
    node = heap[start]
    spot = start
    while spot > 0 and _comes_before(fill, degree, node, heap[(spot - 1) >> 1]):
        heap[spot] = heap[(spot - 1) >> 1]
        place[heap[spot]] = spot
        spot = (spot - 1) >> 1
    while 2 * spot + 1 < size:
        child = 2 * spot + 1
        if child + 1 < size and _comes_before(fill, degree, heap[child + 1], heap[child]):
            child += 1
        if not _comes_before(fill, degree, heap[child], node):
            break
        heap[spot] = heap[child]
        place[heap[spot]] = spot
        spot = child
    heap[spot] = node
    place[node] = spot


@kernel
def _contains(pool: Ints, start: int, length: int, value: int) -> bool:
    """Whether a sorted list of the pool holds the value."""
    low = start
    high = start + length
    while low < high:
        middle = (low + high) >> 1
        if pool[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low < start + length and pool[low] == value


@kernel
def _insert(
    pool: Ints, pool_end: int, starts: Ints, lengths: Ints, rooms: Ints, gone: Bools, node: int, value: int
) -> tuple[Ints, int]:
    """Insert into a node's sorted list: drop eliminated nodes when it is full, move it when still full."""
    start = starts[node]
    if lengths[node] == rooms[node]:
        kept = 0
        for slot in range(start, start + lengths[node]):
            if not gone[pool[slot]]:
                pool[start + kept] = pool[slot]
                kept += 1
        lengths[node] = kept
        # Half full after the move, so that moves and clean-ups stay rare.
        if 4 * kept >= 3 * rooms[node]:
            rooms[node] = 2 * kept + 4
            pool = with_room(pool, pool_end, pool_end + rooms[node])
            for slot in range(kept):
                pool[pool_end + slot] = pool[start + slot]
            start = pool_end
            starts[node] = start
            pool_end += rooms[node]
    slot = start + lengths[node]
    while slot > start and pool[slot - 1] > value:
        pool[slot] = pool[slot - 1]
        slot -= 1
    pool[slot] = value
    lengths[node] += 1
    return pool, pool_end


@kernel
def _eliminate_by_fill(
    indptr: ShortInts, neighbours: ShortInts, max_width: int, fill: Ints, heap: Ints
) -> tuple[Ints, Ints, Ints, int]:
    """Min-fill elimination of a whole graph, up to the first node with more than ``max_width`` neighbours.

    Returns the nodes in order (t,), the numbers of their neighbours (t,), these neighbours end to end, and
    the largest number. With c common neighbours of a and b, the fill-in edge (a, b) changes the counts by
    fill[a] += deg(a) - c, fill[b] += deg(b) - c, and fill[w] -= 1 for the common neighbours w. When v then
    leaves, its d neighbours u are a clique, so fill[u] -= deg(u) - d.
    """
    n_nodes = indptr.size - 1
    degree = indptr[1:] - indptr[:-1]
    # Neighbour lists stay sorted and keep eliminated nodes until they run full. Writing every node into
    # the lists of its neighbours sorts them.
    pool = np.empty(2 * neighbours.size + 16, dtype=np.int64)
    pool_end = neighbours.size
    starts = indptr[:-1].copy()
    rooms = degree.copy()
    lengths = np.zeros(n_nodes, dtype=np.int64)
    for node in range(n_nodes):
        for slot in range(indptr[node], indptr[node + 1]):
            other = neighbours[slot]
            pool[starts[other] + lengths[other]] = node
            lengths[other] += 1
    gone = np.zeros(n_nodes, dtype=np.bool_)

    # The heap compares copies of the counts, brought up to date one node at a time.
    heap_fill = fill.copy()
    heap_degree = degree.copy()
    place = np.empty(n_nodes, dtype=np.int64)
    for spot in range(n_nodes):
        place[heap[spot]] = spot
    heap_size = n_nodes

    order = np.empty(n_nodes, dtype=np.int64)
    sizes = np.empty(n_nodes, dtype=np.int64)
    bags = np.empty(4 * n_nodes + 16, dtype=np.int64)
    bags_end = 0
    width = 0
    changed = np.empty(n_nodes, dtype=np.int64)
    is_changed = np.zeros(n_nodes, dtype=np.bool_)
    for step in range(n_nodes):
        node = heap[0]
        size = degree[node]
        width = max(width, size)
        if size > max_width:
            return order[:step], sizes[:step], bags[:bags_end], width
        heap_size -= 1
        heap[0] = heap[heap_size]
        place[heap[0]] = 0
        if heap_size > 0:
            _settle(heap, place, heap_size, 0, heap_fill, heap_degree)

        bags = with_room(bags, bags_end, bags_end + size)
        bag = bags[bags_end : bags_end + size]
        bags_end += size
        filled = 0
        for slot in range(starts[node], starts[node] + lengths[node]):
            if not gone[pool[slot]]:
                bag[filled] = pool[slot]
                filled += 1
        order[step] = node
        sizes[step] = size

        n_changed = 0
        missing = fill[node]
        for first in range(size):
            if missing == 0:
                break
            for second in range(first + 1, size):
                a, b = bag[first], bag[second]
                if lengths[a] > lengths[b]:
                    a, b = b, a
                if _contains(pool, starts[a], lengths[a], b):
                    continue
                missing -= 1
                # An eliminated node cannot be common: it would have joined a and b.
                common = 0
                for slot in range(starts[a], starts[a] + lengths[a]):
                    other = pool[slot]
                    if _contains(pool, starts[b], lengths[b], other):
                        common += 1
                        fill[other] -= 1
                        if not is_changed[other]:
                            is_changed[other] = True
                            changed[n_changed] = other
                            n_changed += 1
                fill[a] += degree[a] - common
                fill[b] += degree[b] - common
                degree[a] += 1
                degree[b] += 1
                pool, pool_end = _insert(pool, pool_end, starts, lengths, rooms, gone, a, b)
                pool, pool_end = _insert(pool, pool_end, starts, lengths, rooms, gone, b, a)
        gone[node] = True
        for other in bag:
            fill[other] -= degree[other] - size
            degree[other] -= 1
            if not is_changed[other]:
                is_changed[other] = True
                changed[n_changed] = other
                n_changed += 1
        for spot in range(n_changed):
            other = changed[spot]
            is_changed[other] = False
            if other != node:
                heap_fill[other] = fill[other]
                heap_degree[other] = degree[other]
                _settle(heap, place, heap_size, place[other], heap_fill, heap_degree)
    return order, sizes, bags[:bags_end], width


def min_fill_order(graph: Adjacency, max_width: int | None = None) -> EliminationOrder:
    """Eliminate next the node whose neighbours lack the fewest edges among each other (Rose 1970).

    Ties go to the smallest degree, then index. It gives up as soon as the width must exceed ``max_width``: at
    once if the degeneracy, a lower bound of the width of every order, exceeds it.
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
        fill = _initial_fill(core.indptr, core.neighbours)
        by_cost = np.lexsort((np.diff(core.indptr), fill))
        core_order, core_sizes, core_bags, core_width = _eliminate_by_fill(
            core.indptr, core.neighbours, limit, fill, by_cost
        )
        order = np.concatenate((order, rest[core_order]))
        sizes = np.concatenate((sizes, core_sizes))
        bags = np.concatenate((bags, rest[core_bags]))
        width = max(width, int(core_width))
        complete = core_order.size == rest.size
    return EliminationOrder(order, width, complete, np.concatenate(([0], np.cumsum(sizes))), bags)
