"""Random maximal induced forests: sets of nodes among which the links close no cycle."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from linkwise._kernels import inline_kernel, kernel
from linkwise._kernels.simd import prefetch
from linkwise.inference.local_search.orders import AHEAD_ENDS, AHEAD_LINKS, AHEAD_ROW

__all__ = ["OUTSIDE", "grow_forest", "root_chosen"]

#: ``tree[node, 0]`` of a node that is not in the forest.
OUTSIDE = -(1 << 62)


@inline_kernel
def _find(tree: NDArray[np.int64], node: int) -> int:
    """Root of a node of the forest; a root holds minus the size of its tree. Halves the path."""
    while tree[node, 0] >= 0:
        above = tree[node, 0]
        if tree[above, 0] >= 0:
            tree[node, 0] = tree[above, 0]
            above = tree[above, 0]
        node = above
    return node


@kernel
def grow_forest(
    indptr: NDArray[np.int32],
    neighbours: NDArray[np.int32],
    order: NDArray[np.int64],
    tree: NDArray[np.int64],
    roots: NDArray[np.int64],
) -> None:
    """Take each node of ``order`` into the forest unless two of its neighbours there are in one tree.

    The candidates are a union of connected components. ``tree`` (n, 2) is a union-find by size, in one array
    because both columns are read together: column 0 becomes the node above, minus the size of the tree at its
    root, or ``OUTSIDE``. Column 1 and ``roots`` (largest degree,) are scratch.
    """
    n_candidates = order.shape[0]
    flat = tree.reshape(-1)
    for node in order:
        tree[node, 0] = OUTSIDE
        tree[node, 1] = -1
    for turn in range(n_candidates):
        prefetch(indptr, order[min(turn + AHEAD_ROW, n_candidates - 1)])
        prefetch(neighbours, indptr[order[min(turn + AHEAD_LINKS, n_candidates - 1)]])
        ahead = order[min(turn + AHEAD_ENDS, n_candidates - 1)]
        for slot in range(indptr[ahead], indptr[ahead + 1]):
            prefetch(flat, 2 * neighbours[slot])

        node = order[turn]
        n_trees = 0
        closes_cycle = False
        for slot in range(indptr[node], indptr[node + 1]):
            other = neighbours[slot]
            if tree[other, 0] != OUTSIDE:
                root = _find(tree, other)
                if tree[root, 1] == node:
                    closes_cycle = True
                    break
                tree[root, 1] = node
                roots[n_trees] = root
                n_trees += 1
        if closes_cycle:
            continue
        if n_trees == 0:
            tree[node, 0] = -1
            continue
        largest = roots[0]
        for index in range(1, n_trees):
            if tree[roots[index], 0] < tree[largest, 0]:
                largest = roots[index]
        minus_size = tree[largest, 0] - 1
        for index in range(n_trees):
            if roots[index] != largest:
                minus_size += tree[roots[index], 0]
                tree[roots[index], 0] = largest
        tree[largest, 0] = minus_size
        tree[node, 0] = largest


@kernel
def root_chosen(
    indptr: NDArray[np.int32],
    neighbours: NDArray[np.int32],
    edges: NDArray[np.int64],
    candidates: NDArray[np.int64],
    tree: NDArray[np.int64],
    order: NDArray[np.int64],
    parent: NDArray[np.int64],
    parent_edge: NDArray[np.int64],
) -> int:
    """Walk the trees of the forest breadth first from their first candidates; returns the number of nodes.

    ``tree`` is as :func:`grow_forest` leaves it; column 1 is overwritten. Filled from the front: ``order``,
    the node at each place, ``parent``, the place of its parent (-1 at a root), and ``parent_edge``, the row
    of ``pairs`` that joins them.
    """
    flat = tree.reshape(-1)
    for node in candidates:
        tree[node, 1] = -1
    head = 0
    tail = 0
    for start in candidates:
        if tree[start, 0] == OUTSIDE or tree[start, 1] >= 0:
            continue
        tree[start, 1] = tail
        order[tail] = start
        parent[tail] = -1
        parent_edge[tail] = -1
        tail += 1
        while head < tail:
            prefetch(indptr, order[min(head + AHEAD_ROW, tail - 1)])
            prefetch(neighbours, indptr[order[min(head + AHEAD_LINKS, tail - 1)]])
            ahead = order[min(head + AHEAD_ENDS, tail - 1)]
            for slot in range(indptr[ahead], indptr[ahead + 1]):
                prefetch(flat, 2 * neighbours[slot])

            node = order[head]
            for slot in range(indptr[node], indptr[node + 1]):
                other = neighbours[slot]
                if tree[other, 0] != OUTSIDE and tree[other, 1] < 0:
                    tree[other, 1] = tail
                    order[tail] = other
                    parent[tail] = head
                    parent_edge[tail] = edges[slot]
                    tail += 1
            head += 1
    return tail
