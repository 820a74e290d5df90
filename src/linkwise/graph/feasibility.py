"""Can the hard links be satisfied with K clusters?  A labelling, or a proof in the user's own links."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from linkwise._arrays import Floats, Ints
from linkwise.exceptions import InfeasibleConstraints, Witness
from linkwise.graph.colourability import k_colouring
from linkwise.graph.csr import adjacency, compact, group_labels, is_forest, unique_pairs
from linkwise.graph.parity import two_colouring
from linkwise.graph.witness import (
    groups_witness,
    path_witness,
    ring_witness,
    single_cluster_witness,
)

#: Among more nodes than this, and many more than links, only those with links are looked at.
_MANY_NODES = 1 << 22
_NODES_PER_LINK = 8
#: Rounds in which nodes of low degree are left out before the search starts.
_ROUNDS = 8


class Feasibility(NamedTuple):
    """Answer to the question of feasibility.

    Attributes
    ----------
    status : {"feasible", "infeasible", "unknown"}
    witness : Witness or None
        The links that contradict each other, if infeasible.
    labels : (n,) int64 or None
        A labelling 0..K-1 that satisfies every hard link, if feasible, wanted, and K was given.
    """

    status: Literal["feasible", "infeasible", "unknown"]
    witness: Witness | None
    labels: NDArray[np.int64] | None


def chunklet_labels(
    n_nodes: int, pairs: Ints, weights: Floats, names: Ints | None = None
) -> tuple[Ints, int]:
    """Chunklet (n,) of each node by first appearance, and their number; InfeasibleConstraints if broken."""
    must_link = pairs[weights == np.inf]
    groups, n_groups = group_labels(n_nodes, must_link)
    cannot_link = pairs[weights == -np.inf]
    clash = groups[cannot_link[:, 0]] == groups[cannot_link[:, 1]]
    if clash.any():
        start, end = cannot_link[np.argmax(clash)].tolist()
        raise InfeasibleConstraints(path_witness(n_nodes, must_link, start, end, names))
    return groups, n_groups


def check_feasibility(
    n_nodes: int,
    pairs: NDArray[np.int64],
    weights: NDArray[np.float64],
    n_clusters: int | None = None,
    *,
    node_budget: int = 200_000,
    labelling: bool = True,
) -> Feasibility:
    """Decide whether some labelling satisfies all hard links; soft links are ignored.

    Hard must-links are contracted; what is left is K-colouring of the graph of hard cannot-links. One
    and two clusters, and graphs whose K-core is empty, take linear time; beyond, the question is
    NP-hard and an exact search runs under a budget. The answer is never wrong, but may be "unknown".

    Parameters
    ----------
    n_nodes : int
    pairs : (m, 2) int64
        One row per unordered pair, i < j.
    weights : (m,) float64
        ``+inf`` hard must-link, ``-inf`` hard cannot-link, finite: soft.
    n_clusters : int, optional
        Number of labels; without it any number is allowed.
    node_budget : int
        Search nodes after which the answer is "unknown".
    labelling : bool
        Whether ``labels`` are wanted; without them sparse links need no search.

    Returns
    -------
    Feasibility

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise.graph import check_feasibility
    >>> ring = np.array([[0, 1], [0, 2], [1, 2]])
    >>> check_feasibility(4, ring, np.full(3, -np.inf), n_clusters=3).labels
    array([1, 0, 2, 0])
    >>> found = check_feasibility(4, ring, np.full(3, -np.inf), n_clusters=2)
    >>> found.status, found.witness.kind, found.witness.points
    ('infeasible', 'odd_ring', (0, 1, 2))
    """
    if n_clusters is not None and n_clusters < 1:
        raise ValueError(f"n_clusters must be at least 1, got {n_clusters}; pass n_clusters=1 or more")
    names = None
    if n_nodes > max(_MANY_NODES, _NODES_PER_LINK * len(pairs)) and (n_clusters is None or not labelling):
        hard = np.isinf(weights)
        weights = weights[hard]
        names, pairs = compact(pairs[hard])
        n_nodes = len(names)
    try:
        groups, n_groups = chunklet_labels(n_nodes, pairs, weights, names)
    except InfeasibleConstraints as contradiction:
        return Feasibility("infeasible", contradiction.witness, None)
    if n_clusters is None:
        return Feasibility("feasible", None, None)
    must_link, cannot_link = pairs[weights == np.inf], pairs[weights == -np.inf]
    if n_clusters == 1:
        if len(cannot_link):
            first, second = (cannot_link[0] if names is None else names[cannot_link[0]]).tolist()
            return Feasibility("infeasible", single_cluster_witness((first, second)), None)
        labels = np.zeros(n_nodes, dtype=np.int64) if labelling else None
        return Feasibility("feasible", None, labels)

    edges, edge_of = unique_pairs(n_groups, groups[cannot_link])
    if not labelling and _is_sparse(n_groups, edges, n_clusters):
        return Feasibility("feasible", None, None)
    graph = adjacency(n_groups, edges)
    if n_clusters == 2:
        colours, ring, ring_edges = two_colouring(graph)
        if ring.size:
            links = cannot_link[_first_link(edge_of, len(edges))[ring_edges]]
            backwards = groups[links[:, 0]] != ring
            links[backwards] = links[backwards, ::-1]
            return Feasibility("infeasible", ring_witness(n_nodes, must_link, links, names), None)
        return Feasibility("feasible", None, colours[groups] if labelling else None)

    found = k_colouring(graph, n_clusters, node_budget=node_budget)
    if found.status == "feasible":
        return Feasibility("feasible", None, found.colours[groups] if labelling else None)
    if found.status == "unknown":
        return Feasibility("unknown", None, None)
    links = cannot_link[_first_link(edge_of, len(edges))[found.proof]]
    n_involved = np.unique(edges[found.proof]).size
    is_clique = len(found.proof) == n_involved * (n_involved - 1) // 2
    proof = groups_witness(must_link, groups, links, n_clusters, names, clique=is_clique)
    return Feasibility("infeasible", proof, None)


def _is_sparse(n_nodes: int, edges: Ints, n_colours: int) -> bool:
    """Whether it is a forest, or vanishes in few rounds of leaving out nodes with fewer than K neighbours."""
    if is_forest(n_nodes, edges):
        return True
    for _ in range(_ROUNDS):
        degree = np.bincount(edges.ravel(), minlength=n_nodes)
        edges = edges[(degree[edges] >= n_colours).all(axis=1)]
    return len(edges) == 0


def _first_link(edge_of: Ints, n_edges: int) -> Ints:
    """For every edge between chunklets, the first of the caller's cannot-links that became part of it."""
    first = np.empty(n_edges, dtype=np.int64)
    # Of repeated places the last assignment stays, so the first link has to come last.
    first[edge_of[::-1]] = np.arange(edge_of.size)[::-1]
    return first
