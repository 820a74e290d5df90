"""Can a graph be coloured with K colours?  Cheap proofs first, then exact search under a budget."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from linkwise.graph.annealing import anneal_colouring
from linkwise.graph.cliques import find_clique
from linkwise.graph.colour_search import COLOURED, OUT_OF_BUDGET, REFUTED, search_colouring
from linkwise.graph.colouring import core_numbers, dsatur_colouring, first_fit
from linkwise.graph.csr import Adjacency, adjacency, induced_subgraph
from linkwise.graph.disjoint_set import group_labels

__all__ = ["KColouring", "k_colouring", "shrink_refutation"]

#: Steps of the clique search and moves of annealing per search node of the budget; all three then take
#: about the same time.
_CLIQUE_STEPS = 100
_ANNEALING_MOVES = 100
#: The exact search first gets this part of the budget.
_FIRST_SHARE = 8
#: A trial to make a proof smaller may cost this many times the search nodes of the proof.
_PATIENCE = 10


class KColouring(NamedTuple):
    """Answer to the question of K-colourability.

    ``colours`` (n,) is a proper colouring with colours below K if feasible, otherwise empty. ``proof`` (k,)
    has edges that cannot be coloured if infeasible: few, but not always the fewest.
    """

    status: Literal["feasible", "infeasible", "unknown"]
    colours: NDArray[np.int64]
    proof: NDArray[np.int64]


_NONE = np.empty(0, dtype=np.int64)


def _components(graph: Adjacency) -> list[NDArray[np.int64]]:
    """Nodes of every connected component, ascending; small components first."""
    n_nodes = graph.indptr.size - 1
    sources = np.repeat(np.arange(n_nodes), np.diff(graph.indptr))
    half_edges = np.column_stack((sources, graph.neighbours.astype(np.int64)))
    labels, n_components = group_labels(n_nodes, half_edges)
    sizes = np.bincount(labels, minlength=n_components)
    parts = np.split(np.argsort(labels, kind="stable"), np.cumsum(sizes)[:-1])
    return [parts[component] for component in np.argsort(sizes, kind="stable")]


def shrink_refutation(pairs: NDArray[np.int64], n_colours: int, *, budget: int) -> NDArray[np.int64]:
    """Rows (k,) of edges that still cannot be coloured, of a graph that cannot; ascending.

    A refutation names the edges it used; only these are kept, as often as that helps. Then nodes and at
    last single edges are left out one by one. With enough ``budget``, in search nodes, no edge of the
    result can be spared.
    """
    rows = np.arange(len(pairs))
    left = budget
    limit = budget

    def refuted_part(candidates: NDArray[np.int64]) -> NDArray[np.int64] | None:
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


def _proof_rows(graph: Adjacency, edges: NDArray[np.int64], n_colours: int, budget: int) -> NDArray[np.int64]:
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

    A node with fewer than K neighbours can always be coloured last, so only the K-core counts. DSATUR
    colours most of it; each component where that fails is searched for a clique of K + 1 nodes, then
    exactly, and annealed if the search takes long. ``node_budget`` search nodes are allowed in all, and as
    many again to make a proof smaller.
    """
    order, cores = core_numbers(graph)
    colours = np.full(cores.size, -1, dtype=np.int64)
    core_nodes = np.flatnonzero(cores >= n_colours)
    if core_nodes.size:
        core = induced_subgraph(graph, core_nodes)
        core_colours, n_used = dsatur_colouring(core)
        undecided = False
        for nodes in _components(core) if n_used > n_colours else ():
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
