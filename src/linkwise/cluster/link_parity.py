"""Which links say something new, and which contradict each other, when there are two sides.

With two clusters a must-link says "same side" and a cannot-link "other side". A union-find that also
keeps the parity of each point tells, in nearly linear time, whether a link is already implied by earlier
ones, and whether the links of a component cannot all hold (a ring with an odd number of cannot-links).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from linkwise._numba import kernel

__all__ = ["LinkParity", "link_parity"]


class LinkParity(NamedTuple):
    """What the signs of links imply.

    Attributes
    ----------
    independent : (m,) bool
        Links that no earlier links imply; their number is the rank of the signed incidence matrix V.
    component : (n,) int64
        Lowest point of each point's connected component of links.
    side : (n,) int64
        0 or 1: the side of each point relative to the lowest point of its component (balanced ones).
    unbalanced : list of (.,) int64 arrays
        Points of every component whose links cannot all hold with two sides, sorted.
    """

    independent: NDArray[np.bool_]
    component: NDArray[np.int64]
    side: NDArray[np.int64]
    unbalanced: list[NDArray[np.int64]]


@kernel
def _find_with_parity(parent: NDArray[np.int64], parity: NDArray[np.int64], node: int) -> tuple[int, int]:
    """Root of a node and its parity against the root; paths are halved on the way."""
    total = 0
    while parent[node] != node:
        above = parent[node]
        if parent[above] != above:
            parity[node] ^= parity[above]
            parent[node] = parent[above]
        total ^= parity[node]
        node = parent[node]
    return node, total


@kernel
def _signed_forest(
    n_points: int, pairs: NDArray[np.int64], apart: NDArray[np.bool_]
) -> tuple[NDArray[np.bool_], NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """Independent links, root and parity of every point, and which roots are unbalanced."""
    parent = np.arange(n_points)
    parity = np.zeros(n_points, dtype=np.int64)
    unbalanced = np.zeros(n_points, dtype=np.bool_)
    independent = np.zeros(pairs.shape[0], dtype=np.bool_)
    for row in range(pairs.shape[0]):
        a, parity_a = _find_with_parity(parent, parity, pairs[row, 0])
        b, parity_b = _find_with_parity(parent, parity, pairs[row, 1])
        odd = parity_a ^ parity_b ^ np.int64(apart[row])
        if a == b:
            # An odd ring forces f = 0 on the whole component: one new equation, and none after it.
            if odd == 1 and not unbalanced[a]:
                unbalanced[a] = True
                independent[row] = True
            continue
        independent[row] = not (unbalanced[a] and unbalanced[b])
        low, high = min(a, b), max(a, b)
        parent[high] = low
        parity[high] = odd
        unbalanced[low] = unbalanced[a] or unbalanced[b]
    root = np.empty(n_points, dtype=np.int64)
    side = np.empty(n_points, dtype=np.int64)
    for point in range(n_points):
        root[point], side[point] = _find_with_parity(parent, parity, point)
    return independent, root, side, unbalanced


def link_parity(n_points: int, pairs: NDArray[np.int64], signs: NDArray[np.float64]) -> LinkParity:
    """Parity union-find over signed links, O(n + m) up to the inverse Ackermann function.

    Parameters
    ----------
    n_points : int
    pairs : (m, 2) int64
    signs : (m,) float64
        Positive: must-link; negative: cannot-link.

    Returns
    -------
    LinkParity

    Examples
    --------
    Two must-links imply the third; three cannot-links in a ring are unbalanced.

    >>> import numpy as np
    >>> from linkwise.cluster.link_parity import link_parity
    >>> ring = np.array([[0, 1], [1, 2], [0, 2]])
    >>> link_parity(4, ring, np.array([1.0, 1.0, 1.0])).independent
    array([ True,  True, False])
    >>> link_parity(4, ring, np.array([-1.0, -1.0, -1.0])).unbalanced
    [array([0, 1, 2])]
    """
    pairs = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    independent, root, side, odd_roots = _signed_forest(n_points, pairs, np.asarray(signs) < 0)
    unbalanced = [np.flatnonzero(root == low) for low in np.unique(root[odd_roots[root]])]
    return LinkParity(independent, root, side, unbalanced)
