"""Find a clique of a wanted size: more groups than clusters, pairwise linked apart."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from linkwise._arrays import Bools, Ints
from linkwise._kernels import kernel
from linkwise.graph.colouring import core_numbers
from linkwise.graph.csr import Adjacency


@kernel
def _later_neighbours(
    indptr: NDArray[np.int32], neighbours: NDArray[np.int32], order: Ints
) -> tuple[Ints, Ints]:
    """For the node at each place of the order, the places of its neighbours after it."""
    n_nodes = indptr.size - 1
    place = np.empty(n_nodes, dtype=np.int64)
    for rank in range(n_nodes):
        place[order[rank]] = rank
    later_indptr = np.zeros(n_nodes + 1, dtype=np.int64)
    later = np.empty(neighbours.size // 2, dtype=np.int64)
    filled = 0
    for rank in range(n_nodes):
        for slot in range(indptr[order[rank]], indptr[order[rank] + 1]):
            if place[neighbours[slot]] > rank:
                later[filled] = place[neighbours[slot]]
                filled += 1
        later_indptr[rank + 1] = filled
    return later_indptr, later


@kernel
def _densest_candidate(adjacent: Bools, candidates: Ints) -> int:
    """Place of the candidate with most neighbours among the candidates; the first of equals."""
    best = 0
    best_degree = -1
    for place in range(candidates.size):
        degree = 0
        for other in range(candidates.size):
            degree += adjacent[candidates[place], candidates[other]]
        if degree > best_degree:
            best_degree = degree
            best = place
    return best


@kernel
def _colour_bound(adjacent: Bools, candidates: Ints, colours: Ints, last_refused: Ints) -> int:
    """Number of colours first-fit gives the candidates: no clique among them is larger."""
    n_colours = 0
    for colour in range(candidates.size + 1):
        last_refused[colour] = -1
    for place in range(candidates.size):
        for other in range(place):
            if adjacent[candidates[place], candidates[other]]:
                last_refused[colours[other]] = place
        colour = 0
        while last_refused[colour] == place:
            colour += 1
        colours[place] = colour
        n_colours = max(n_colours, colour + 1)
    return n_colours


@kernel
def _search_clique(later_indptr: Ints, later: Ints, wanted: int, work: int) -> Ints:
    """Branch and bound among the later neighbours of every node, from the densest part of the graph."""
    n_nodes = later_indptr.size - 1
    widest = 0
    for rank in range(n_nodes):
        widest = max(widest, later_indptr[rank + 1] - later_indptr[rank])
    deepest = min(widest, wanted) + 1
    adjacent = np.zeros((widest, widest), dtype=np.bool_)
    index_of = np.full(n_nodes, -1, dtype=np.int64)
    candidates = np.empty((deepest, widest), dtype=np.int64)
    counts = np.zeros(deepest, dtype=np.int64)
    chosen = np.empty(deepest, dtype=np.int64)
    colours = np.empty(widest, dtype=np.int64)
    last_refused = np.empty(widest + 1, dtype=np.int64)
    best = np.zeros(min(n_nodes, 1), dtype=np.int64)
    for root in range(n_nodes - 1, -1, -1):
        local = later[later_indptr[root] : later_indptr[root + 1]]
        if local.size < wanted - 1:
            continue
        if work <= 0:
            break
        for a in range(local.size):
            index_of[local[a]] = a
        for a in range(local.size):
            for b in range(local.size):
                adjacent[a, b] = False
        for a in range(local.size):
            for slot in range(later_indptr[local[a]], later_indptr[local[a] + 1]):
                b = index_of[later[slot]]
                if b >= 0:
                    adjacent[a, b] = True
                    adjacent[b, a] = True
            work -= later_indptr[local[a] + 1] - later_indptr[local[a]]
        for a in range(local.size):
            index_of[local[a]] = -1
        depth = 0
        counts[0] = local.size
        for a in range(local.size):
            candidates[0, a] = a
        while depth >= 0:
            left = candidates[depth, : counts[depth]]
            # The clique in hand is the root and one node per depth above; those left may extend it.
            in_hand = 1 + depth
            work -= 1 + left.size * left.size
            if (
                work <= 0
                or in_hand + left.size < wanted
                or in_hand + _colour_bound(adjacent, left, colours, last_refused) < wanted
            ):
                depth -= 1
                continue
            pick = _densest_candidate(adjacent, left)
            node = left[pick]
            left[pick] = left[left.size - 1]
            counts[depth] -= 1
            chosen[depth] = node
            if in_hand + 1 > best.size:
                best = np.empty(in_hand + 1, dtype=np.int64)
                best[0] = root
                for place in range(in_hand):
                    best[place + 1] = local[chosen[place]]
                if best.size == wanted:
                    return best
            depth += 1
            counts[depth] = 0
            for other in left[: left.size - 1]:
                if adjacent[node, other]:
                    candidates[depth, counts[depth]] = other
                    counts[depth] += 1
    return best


def find_clique(graph: Adjacency, size: int, *, work: int = 20_000_000) -> Ints:
    """The sorted nodes of a clique of ``size`` >= 2 nodes, or of a smaller one if none was found.

    A clique lies among the later neighbours of its first node in smallest-last order; there branch and bound
    looks for it, with first-fit colouring as the bound, for at most ``work`` elementary steps.
    """
    order, _ = core_numbers(graph)
    places = _search_clique(*_later_neighbours(graph.indptr, graph.neighbours, order), size, work)
    return np.sort(order[places])
