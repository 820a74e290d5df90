"""Two sides: colour a graph with two colours, and find out what signed links imply.

With two clusters a must-link says "same side" and a cannot-link "other side". A union-find that also keeps
the parity of each point tells, in nearly linear time, whether a link is already implied by earlier ones,
and whether the links of a component cannot all hold (a ring with an odd number of cannot-links).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from linkwise._arrays import Bools, Floats, Ints
from linkwise._kernels import kernel
from linkwise.graph.csr import Adjacency


@kernel
def two_colouring(graph: Adjacency) -> tuple[Ints, Ints, Ints]:
    """Colours 0 and 1 (n,) of a graph, or the nodes (l,) of an odd ring and its edges (l,), O(n + m)."""
    indptr, neighbours, edges = graph
    n_nodes = indptr.size - 1
    colours = np.full(n_nodes, -1, dtype=np.int64)
    parent = np.full(n_nodes, -1, dtype=np.int64)
    parent_edge = np.full(n_nodes, -1, dtype=np.int64)
    queue = np.empty(n_nodes, dtype=np.int64)
    head = 0
    tail = 0
    left = -1
    right = -1
    closing_edge = -1
    for start in range(n_nodes):
        if colours[start] >= 0:
            continue
        colours[start] = 0
        queue[tail] = start
        tail += 1
        while head < tail and left < 0:
            node = queue[head]
            head += 1
            for slot in range(indptr[node], indptr[node + 1]):
                other = neighbours[slot]
                if colours[other] < 0:
                    colours[other] = 1 - colours[node]
                    parent[other] = node
                    parent_edge[other] = edges[slot]
                    queue[tail] = other
                    tail += 1
                elif colours[other] == colours[node]:
                    left, right, closing_edge = node, other, edges[slot]
                    break
        if left >= 0:
            break
    if left < 0:
        return colours, queue[:0], queue[:0]

    # In breadth-first search an edge joins equal or neighbouring depths; equal colours mean equal
    # depth, so the two branches reach their lowest common ancestor in the same step.
    half = 0
    a, b = left, right
    while a != b:
        a, b = parent[a], parent[b]
        half += 1
    ring = np.empty(2 * half + 1, dtype=np.int64)
    ring_edges = np.empty(2 * half + 1, dtype=np.int64)
    a, b = left, right
    for step in range(half):
        ring[half - step] = a
        ring_edges[half - step - 1] = parent_edge[a]
        ring[half + 1 + step] = b
        ring_edges[half + 1 + step] = parent_edge[b]
        a, b = parent[a], parent[b]
    ring[0] = a
    ring_edges[half] = closing_edge
    return colours, ring, ring_edges


class LinkParity(NamedTuple):
    """What the signs of links imply.

    ``independent`` (m,): not implied by earlier ones, rank of the signed incidence matrix. ``component``
    (n,): its lowest point; ``side`` (n,) relative to that. ``unbalanced``: points whose links cannot all
    hold.
    """

    independent: Bools
    component: Ints
    side: Ints
    unbalanced: list[Ints]


@kernel
def _find_with_parity(parent: Ints, parity: Ints, node: int) -> tuple[int, int]:
    """Root of a node and its parity against the root; paths are halved on the way."""
    total = 0
    while parent[node] != node:
        above = parent[node]
        parity[node] ^= parity[above]
        parent[node] = parent[above]
        total ^= parity[node]
        node = parent[node]
    return node, total


@kernel
def _signed_forest(
    pairs: Ints, apart: Ints, parent: Ints, parity: Ints, unbalanced: Bools, independent: Bools
) -> None:
    """Join the points of all pairs into ``parent`` and ``parity``; mark new links and unbalanced roots."""
    for row in range(pairs.shape[0]):
        a, parity_a = _find_with_parity(parent, parity, pairs[row, 0])
        b, parity_b = _find_with_parity(parent, parity, pairs[row, 1])
        odd = parity_a ^ parity_b ^ apart[row]
        if a == b:
            # An odd ring forces f = 0 on the whole component: one new equation, and none after it.
            if odd == 1 and not unbalanced[a]:
                unbalanced[a] = True
                independent[row] = True
            continue
        both = unbalanced[a] and unbalanced[b]
        either = unbalanced[a] or unbalanced[b]
        independent[row] = not both
        if b < a:
            a, b = b, a
        parent[b] = a
        parity[b] = odd
        unbalanced[a] = either
    for point in range(parent.shape[0]):
        root, side = _find_with_parity(parent, parity, point)
        parent[point] = root
        parity[point] = side


def link_parity(n_points: int, pairs: Ints, signs: Floats) -> LinkParity:
    """Parity union-find over links of these signs (m,): + must-link, - cannot-link; about O(n + m)."""
    pairs = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    root, side = np.arange(n_points), np.zeros(n_points, dtype=np.int64)
    odd_roots, independent = np.zeros(n_points, dtype=bool), np.zeros(len(pairs), dtype=bool)
    _signed_forest(pairs, (np.asarray(signs) < 0).astype(np.int64), root, side, odd_roots, independent)
    odd = np.flatnonzero(odd_roots[root])
    odd = odd[np.argsort(root[odd], kind="stable")]
    unbalanced = np.split(odd, np.flatnonzero(np.diff(root[odd])) + 1) if odd.size else []
    return LinkParity(independent, root, side, unbalanced)
