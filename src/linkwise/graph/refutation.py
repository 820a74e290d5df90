"""Make a proof that a graph cannot be coloured smaller, so that a person can read it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from linkwise.graph.colour_search import REFUTED, search_colouring
from linkwise.graph.csr import adjacency

__all__ = ["shrink_refutation"]

#: A trial may cost this many times the search nodes of the proof it tries to improve.
_PATIENCE = 10

_NO_CLIQUE = np.empty(0, dtype=np.int64)


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
        found = search_colouring(graph, n_colours, clique=_NO_CLIQUE, budget=min(left, limit))
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
