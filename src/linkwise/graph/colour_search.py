"""Exact colouring with a given number of colours: depth-first search that learns which edges matter."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from linkwise._arrays import Bools, Ints
from linkwise._kernels import kernel
from linkwise.graph.csr import Adjacency, with_room

REFUTED = 0
COLOURED = 1
OUT_OF_BUDGET = 2

#: Candidates of highest saturation compared by priority; more would mean long walks on large graphs.
_COMPARED = 64
#: Search nodes before the first restart, per node of the graph and at least.
_FIRST_RUN_PER_NODE, _SHORTEST_RUN = 2, 1000
#: Stored levels of blame after which the search gives up (64 MiB).
_MOST_BLAME = 2**23


class ColourSearch(NamedTuple):
    """Status, colours (n,) if ``COLOURED``, and if ``REFUTED`` the edges (k,) that cannot be coloured."""

    status: int
    colours: Ints
    proof: Ints
    n_search_nodes: int


@kernel
def _unlink(node: int, bucket: int, heads: Ints, after: Ints, before: Ints) -> None:
    """Take a node out of the doubly linked list of its bucket."""
    if before[node] >= 0:
        after[before[node]] = after[node]
    else:
        heads[bucket] = after[node]
    if after[node] >= 0:
        before[after[node]] = before[node]


@kernel
def _link(node: int, bucket: int, heads: Ints, after: Ints, before: Ints) -> None:
    """Put a node at the head of the doubly linked list of a bucket."""
    after[node] = heads[bucket]
    before[node] = -1
    if heads[bucket] >= 0:
        before[heads[bucket]] = node
    heads[bucket] = node


@kernel
def _most_saturated(heads: Ints, after: Ints, priority: Ints) -> int:
    """A node of highest saturation, the one of highest priority among the first few of its bucket."""
    bucket = heads.size - 1
    while heads[bucket] < 0:
        bucket -= 1
    best = heads[bucket]
    node = after[best]
    compared = 1
    while node >= 0 and compared < _COMPARED:
        if priority[node] > priority[best]:
            best = node
        node = after[node]
        compared += 1
    return best


@kernel
def _blame(
    graph: Adjacency,
    node: int,
    colours: Ints,
    level_of: Ints,
    culprit: Ints,
    in_conflict: Bools,
    conflict: Ints,
    size: int,
    in_proof: Bools,
) -> int:
    """Add to the conflict, for each colour refused to ``node``, the earliest level that refuses it."""
    indptr, neighbours = graph.indptr, graph.neighbours
    culprit[:] = -1
    for slot in range(indptr[node], indptr[node + 1]):
        colour = colours[neighbours[slot]]
        if colour >= 0 and (
            culprit[colour] < 0 or level_of[neighbours[slot]] < level_of[neighbours[culprit[colour]]]
        ):
            culprit[colour] = slot
    for slot in culprit:
        if slot >= 0:
            in_proof[slot] = True
            level = level_of[neighbours[slot]]
            if not in_conflict[level]:
                in_conflict[level] = True
                conflict[size] = level
                size += 1
    return size


@kernel
def _search(
    graph: Adjacency, n_colours: int, clique: Ints, priority: Ints, by_priority: Ints, budget: int
) -> tuple[int, Ints, Bools, int]:
    """One run of the search; nodes that get stuck rise in ``priority``, in place."""
    indptr, neighbours = graph.indptr, graph.neighbours
    n_nodes = indptr.size - 1
    colours = np.full(n_nodes, -1, dtype=np.int64)
    refusals = np.zeros((n_nodes, n_colours), dtype=np.int32)
    saturation = np.zeros(n_nodes, dtype=np.int64)
    heads = np.full(n_colours + 1, -1, dtype=np.int64)
    after = np.empty(n_nodes, dtype=np.int64)
    before = np.empty(n_nodes, dtype=np.int64)
    for node in by_priority:
        _link(node, 0, heads, after, before)

    node_at = np.empty(n_nodes, dtype=np.int64)
    level_of = np.full(n_nodes, -1, dtype=np.int64)
    next_colour = np.zeros(n_nodes, dtype=np.int64)
    n_used = np.zeros(n_nodes + 1, dtype=np.int64)
    # blamed[blamed_start[l]:blamed_start[l + 1]]: the earlier levels that made colours fail at level l.
    # Only the deepest level grows, so one stack holds them all.
    blamed = np.empty(1024, dtype=np.int64)
    blamed_start = np.zeros(n_nodes + 1, dtype=np.int64)
    culprit = np.empty(n_colours, dtype=np.int64)
    in_conflict = np.zeros(n_nodes, dtype=np.bool_)
    conflict = np.empty(n_nodes, dtype=np.int64)
    in_proof = np.zeros(neighbours.size, dtype=np.bool_)

    spent = 0
    level = 0
    descending = True
    while True:
        if descending:
            if level == n_nodes:
                return COLOURED, colours, in_proof, spent
            node = clique[level] if level < clique.size else _most_saturated(heads, after, priority)
            _unlink(node, saturation[node], heads, after, before)
            node_at[level] = node
            level_of[node] = level
            next_colour[level] = 0
            blamed_start[level + 1] = blamed_start[level]
            descending = False
        node = node_at[level]

        # Colours not in use yet are interchangeable: whatever refutes one of them refutes all, with the
        # same blame, so only one is tried.
        colour = next_colour[level]
        last = min(n_used[level] + 1, n_colours)
        while colour < last and refusals[node, colour] > 0:
            colour += 1

        size = 0
        stuck = node
        exhausted = colour >= last
        if exhausted:
            for place in range(blamed_start[level], blamed_start[level + 1]):
                in_conflict[blamed[place]] = True
                conflict[size] = blamed[place]
                size += 1
        else:
            if spent == budget:
                return OUT_OF_BUDGET, colours, in_proof, spent
            spent += 1
            next_colour[level] = colour + 1
            colours[node] = colour
            for slot in range(indptr[node], indptr[node + 1]):
                other = neighbours[slot]
                refusals[other, colour] += 1
                if colours[other] < 0 and refusals[other, colour] == 1:
                    _unlink(other, saturation[other], heads, after, before)
                    saturation[other] += 1
                    _link(other, saturation[other], heads, after, before)
                    if saturation[other] == n_colours:
                        stuck = other
            if stuck == node:
                n_used[level + 1] = max(n_used[level], colour + 1)
                level += 1
                descending = True
                continue

        priority[stuck] += 1
        size = _blame(graph, stuck, colours, level_of, culprit, in_conflict, conflict, size, in_proof)
        target = level
        if exhausted:
            if size == 0:
                return REFUTED, colours, in_proof, spent
            target = 0
            for place in range(size):
                target = max(target, conflict[place])
            _link(node, saturation[node], heads, after, before)
            level -= 1

        # Levels between were not to blame: undo down to the last one that was, and try its next colour.
        while level >= target:
            node = node_at[level]
            colour = colours[node]
            colours[node] = -1
            for slot in range(indptr[node], indptr[node + 1]):
                other = neighbours[slot]
                refusals[other, colour] -= 1
                if colours[other] < 0 and refusals[other, colour] == 0:
                    _unlink(other, saturation[other], heads, after, before)
                    saturation[other] -= 1
                    _link(other, saturation[other], heads, after, before)
            if level > target:
                _link(node, saturation[node], heads, after, before)
            level -= 1
        level = target
        filled = blamed_start[level + 1]
        if filled + size > _MOST_BLAME:
            return OUT_OF_BUDGET, colours, in_proof, spent
        blamed = with_room(blamed, filled, filled + size)
        for place in range(blamed_start[level], filled):
            in_conflict[blamed[place]] = False
        for place in range(size):
            if in_conflict[conflict[place]] and conflict[place] != level:
                blamed[filled] = conflict[place]
                filled += 1
            in_conflict[conflict[place]] = False
        blamed_start[level + 1] = filled


def search_colouring(graph: Adjacency, n_colours: int, *, clique: Ints, budget: int) -> ColourSearch:
    """Colour a connected graph with ``n_colours`` colours, or prove that it cannot be done.

    Depth-first search: the node whose neighbours show most colours comes next (Brélaz 1979), after those of
    ``clique``; of the colours not in use one is tried. A dead end leads back to the last node that
    contributed to it (conflict-directed backjumping, Prosser 1993); the edges blamed are the proof. Long runs
    start afresh from the nodes that got stuck most often (Boussemart et al. 2004), up to ``budget`` search
    nodes.
    """
    n_nodes = graph.indptr.size - 1
    priority = np.diff(graph.indptr)
    run = max(_FIRST_RUN_PER_NODE * n_nodes, _SHORTEST_RUN)
    spent = 0
    while True:
        status, colours, in_proof, spent_now = _search(
            graph, n_colours, clique, priority, np.argsort(priority, kind="stable"), min(run, budget - spent)
        )
        spent += spent_now
        if status != OUT_OF_BUDGET or spent_now < run:
            return ColourSearch(status, colours, np.unique(graph.edges[in_proof]), spent)
        run *= 2
        clique = clique[:0]
