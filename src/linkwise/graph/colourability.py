"""Can a graph be coloured with K colours?  Cheap proofs first, then exact search under a budget."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from linkwise._arrays import Bools, Ints, ShortInts
from linkwise._kernels import kernel
from linkwise._kernels.random import counter_uniform
from linkwise.graph.colour_search import COLOURED, OUT_OF_BUDGET, REFUTED, search_colouring
from linkwise.graph.colouring import core_numbers, dsatur_colouring, first_fit
from linkwise.graph.csr import Adjacency, adjacency, group_labels, induced_subgraph

#: Inverse temperatures of the first and the last sweep, in units of one edge with equal ends.
_WARM, _COLD = 0.2, 8.0
_SEED = np.uint64(0)
#: Nodes and edges looked at in one call of the kernel: at most some 0.1 s.
_STEPS_AT_ONCE = 10_000_000


@kernel
def _later_neighbours(indptr: ShortInts, neighbours: ShortInts, order: Ints) -> tuple[Ints, Ints]:
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


@kernel
def _random_colours(indptr: ShortInts, neighbours: ShortInts, n_colours: int) -> tuple[Ints, ShortInts, int]:
    """Random colours, how often the neighbours of each node show each colour, and the clashing edges."""
    n_nodes = indptr.size - 1
    colours = np.empty(n_nodes, dtype=np.int64)
    for node in range(n_nodes):
        colours[node] = int(n_colours * counter_uniform(_SEED, 0, node))
    shown = np.zeros((n_nodes, n_colours), dtype=np.int32)
    clashes = 0
    for node in range(n_nodes):
        for slot in range(indptr[node], indptr[node + 1]):
            shown[node, colours[neighbours[slot]]] += 1
        clashes += shown[node, colours[node]]
    return colours, shown, clashes // 2


@kernel
def _anneal(
    indptr: ShortInts,
    neighbours: ShortInts,
    first: int,
    last: int,
    n_sweeps: int,
    colours: Ints,
    shown: ShortInts,
    clashes: int,
) -> int:
    """The Metropolis sweeps ``first`` to ``last`` while the temperature falls, in place; clashing edges."""
    n_nodes = indptr.size - 1
    n_colours = shown.shape[1]
    for sweep in range(first, last):
        beta = _WARM + (_COLD - _WARM) * sweep / n_sweeps
        for node in range(n_nodes):
            # One draw: its whole part proposes another colour, the rest decides on it.
            draw = (n_colours - 1) * counter_uniform(_SEED, sweep + 1, node)
            old = colours[node]
            new = int(draw)
            draw -= new
            new += new >= old
            change = shown[node, new] - shown[node, old]
            if change > 0 and draw >= np.exp(-beta * change):
                continue
            clashes += change
            colours[node] = new
            for slot in range(indptr[node], indptr[node + 1]):
                shown[neighbours[slot], old] -= 1
                shown[neighbours[slot], new] += 1
        if clashes == 0:
            break
    return clashes


def anneal_colouring(graph: Adjacency, n_colours: int, *, n_moves: int) -> Ints | None:
    """A proper colouring (n,) by simulated annealing of the Potts model in ``n_moves``, or None."""
    n_nodes = graph.indptr.size - 1
    n_sweeps = n_moves // max(n_nodes, 1)
    # Some sweeps at a time, so that an interrupt gets through.
    at_once = max(_STEPS_AT_ONCE // max(n_nodes + graph.neighbours.size, 1), 1)
    colours, shown, clashes = _random_colours(graph.indptr, graph.neighbours, n_colours)
    for first in range(0, n_sweeps, at_once):
        last = min(first + at_once, n_sweeps)
        clashes = _anneal(graph.indptr, graph.neighbours, first, last, n_sweeps, colours, shown, clashes)
        if clashes == 0:
            break
    return colours if clashes == 0 else None


#: Steps of the clique search and moves of annealing per search node of the budget; all three then take
#: about the same time.
_CLIQUE_STEPS = 100
_ANNEALING_MOVES = 100
#: The exact search first gets this part of the budget.
_FIRST_SHARE = 8
#: A trial to make a proof smaller may cost this many times the search nodes of the proof.
_PATIENCE = 10


class KColouring(NamedTuple):
    """A proper colouring (n,) if feasible; a few edges (k,) that cannot be coloured if infeasible."""

    status: Literal["feasible", "infeasible", "unknown"]
    colours: Ints
    proof: Ints


_NONE = np.empty(0, dtype=np.int64)


def _components(graph: Adjacency) -> list[Ints]:
    """Nodes of every connected component, ascending; small components first."""
    n_nodes = graph.indptr.size - 1
    sources = np.repeat(np.arange(n_nodes), np.diff(graph.indptr))
    half_edges = np.column_stack((sources, graph.neighbours.astype(np.int64)))
    labels, n_components = group_labels(n_nodes, half_edges)
    sizes = np.bincount(labels, minlength=n_components)
    parts = np.split(np.argsort(labels, kind="stable"), np.cumsum(sizes)[:-1])
    return [parts[component] for component in np.argsort(sizes, kind="stable")]


def shrink_refutation(pairs: Ints, n_colours: int, *, budget: int) -> Ints:
    """Rows (k,) of fewer edges that still cannot be coloured; with enough ``budget`` none can be spared."""
    rows = np.arange(len(pairs))
    left = budget
    limit = budget

    def refuted_part(candidates: Ints) -> Ints | None:
        """Rows used to refute the candidates, None if they were not refuted."""
        nonlocal left, limit
        nodes, ends = np.unique(pairs[candidates], return_inverse=True)
        graph = adjacency(nodes.size, ends.reshape(-1, 2))
        found = search_colouring(graph, n_colours, clique=_NONE, budget=min(left, limit))
        left -= found.n_search_nodes
        if found.status != REFUTED:
            return None
        limit = _PATIENCE * found.n_search_nodes
        return candidates[found.proof]

    smaller = refuted_part(rows)
    while smaller is not None and smaller.size < rows.size:
        rows = smaller
        smaller = refuted_part(rows)

    nodes, degrees = np.unique(pairs[rows], return_counts=True)
    for node in nodes[np.argsort(degrees, kind="stable")]:
        touched = (pairs[rows] == node).any(axis=1)
        if left > 0 and touched.any():
            smaller = refuted_part(rows[~touched])
            rows = rows if smaller is None else smaller
    for row in rows:
        if left > 0 and (rows == row).any():
            smaller = refuted_part(rows[rows != row])
            rows = rows if smaller is None else smaller
    return rows


def _proof_rows(graph: Adjacency, edges: Ints, n_colours: int, budget: int) -> Ints:
    """Fewer of the edges of a refutation that still cannot be coloured."""
    sources = np.repeat(np.arange(graph.indptr.size - 1), np.diff(graph.indptr))
    chosen = np.flatnonzero((sources < graph.neighbours) & np.isin(graph.edges, edges))
    pairs = np.column_stack((sources[chosen], graph.neighbours[chosen].astype(np.int64)))
    rows = graph.edges[chosen[shrink_refutation(pairs, n_colours, budget=budget)]]
    return np.sort(rows.astype(np.int64))


def _decide(graph: Adjacency, n_colours: int, budget: int) -> tuple[KColouring, int]:
    """Answer for a connected graph that DSATUR could not colour, and the search nodes spent."""
    clique = find_clique(graph, n_colours + 1, work=_CLIQUE_STEPS * budget)
    if clique.size > n_colours:
        return KColouring("infeasible", _NONE, np.unique(induced_subgraph(graph, clique).edges)), 0
    # A short search settles most graphs. Large dense ones are easy for annealing and out of reach of
    # any search, so annealing comes before the rest of the budget.
    found = search_colouring(graph, n_colours, clique=clique, budget=budget // _FIRST_SHARE)
    spent = found.n_search_nodes
    if found.status == OUT_OF_BUDGET:
        colours = anneal_colouring(graph, n_colours, n_moves=_ANNEALING_MOVES * budget)
        if colours is not None:
            return KColouring("feasible", colours, _NONE), spent
        found = search_colouring(graph, n_colours, clique=clique, budget=budget - spent)
        spent += found.n_search_nodes
    if found.status == COLOURED:
        return KColouring("feasible", found.colours, _NONE), spent
    if found.status == REFUTED:
        return KColouring("infeasible", _NONE, _proof_rows(graph, found.proof, n_colours, budget)), spent
    return KColouring("unknown", _NONE, _NONE), spent


def k_colouring(graph: Adjacency, n_colours: int, *, node_budget: int = 200_000) -> KColouring:
    """Colour a graph with ``n_colours`` >= 2 colours, or find edges that cannot be coloured so.

    A node with fewer than K neighbours can be coloured last, so only the K-core counts. DSATUR colours most
    of it; the components left are searched for a clique of K + 1 nodes, then exactly within ``node_budget``,
    and annealed.
    """
    order, cores = core_numbers(graph)
    colours = np.full(cores.size, -1, dtype=np.int64)
    core_nodes = np.flatnonzero(cores >= n_colours)
    if core_nodes.size:
        core = induced_subgraph(graph, core_nodes)
        core_colours = dsatur_colouring(core)
        undecided = False
        for nodes in _components(core) if core_colours.max() >= n_colours else ():
            if core_colours[nodes].max() >= n_colours:
                answer, spent = _decide(induced_subgraph(core, nodes), n_colours, node_budget)
                node_budget -= spent
                if answer.status == "infeasible":
                    return answer
                if answer.status == "feasible":
                    core_colours[nodes] = answer.colours
                else:
                    undecided = True
        if undecided:
            return KColouring("unknown", _NONE, _NONE)
        colours[core_nodes] = core_colours
    # Along the order core numbers never fall: the nodes before the core are coloured last to first.
    first_fit(graph.indptr, graph.neighbours, order[: order.size - core_nodes.size][::-1].copy(), colours)
    return KColouring("feasible", colours, _NONE)
