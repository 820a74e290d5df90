"""Contract hard must-links: points that must be together become one node of a smaller graph."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from linkwise.exceptions import InfeasibleConstraints
from linkwise.graph.csr import unique_pairs
from linkwise.graph.disjoint_set import group_labels
from linkwise.graph.witness import path_witness

__all__ = ["DROPPED_EDGE", "INSIDE_GROUP", "Contraction", "chunklet_labels", "contract"]

#: ``Contraction.edge_of`` of a link whose two ends are in one group.
INSIDE_GROUP = -1
#: ``Contraction.edge_of`` of a link whose merged edge weighs exactly zero.
DROPPED_EDGE = -2


class Contraction(NamedTuple):
    """Links between chunklets, and where every link of the caller went.

    Attributes
    ----------
    groups : (n,) int64
        Chunklet of each node, numbered in order of first appearance.
    n_groups : int
    pairs : (m', 2) int64
        Edges between chunklets, i < j, sorted, one row per unordered pair.
    weights : (m',) float64
        Sum of the soft weights of the merged links; ``-inf`` if one of them is a hard cannot-link.
        Never zero, never ``+inf``.
    edge_of : (m,) int64
        Row of ``pairs`` each input link became part of; ``INSIDE_GROUP`` (-1) if both ends are in one
        chunklet; ``DROPPED_EDGE`` (-2) if the merged weight was exactly zero.
    """

    groups: NDArray[np.int64]
    n_groups: int
    pairs: NDArray[np.int64]
    weights: NDArray[np.float64]
    edge_of: NDArray[np.int64]


def chunklet_labels(
    n_nodes: int, pairs: NDArray[np.int64], weights: NDArray[np.float64]
) -> tuple[NDArray[np.int64], int]:
    """Groups of nodes joined by hard must-links.

    Parameters
    ----------
    n_nodes, pairs, weights
        As in :func:`contract`.

    Returns
    -------
    groups : (n,) int64
        Chunklet of each node, numbered in order of first appearance.
    n_groups : int

    Raises
    ------
    InfeasibleConstraints
        If a hard cannot-link has both ends in one chunklet; the witness is the shortest chain of
        must-links between them.

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise.graph import chunklet_labels
    >>> chunklet_labels(4, np.array([[0, 2], [1, 3]]), np.array([np.inf, 2.0]))
    (array([0, 1, 0, 2]), 3)
    """
    must_link = pairs[weights == np.inf]
    groups, n_groups = group_labels(n_nodes, must_link)
    cannot_link = pairs[weights == -np.inf]
    clash = groups[cannot_link[:, 0]] == groups[cannot_link[:, 1]]
    if clash.any():
        start, end = cannot_link[np.argmax(clash)].tolist()
        raise InfeasibleConstraints(path_witness(n_nodes, must_link, start, end))
    return groups, n_groups


def contract(n_nodes: int, pairs: NDArray[np.int64], weights: NDArray[np.float64]) -> Contraction:
    """Join the nodes of hard must-links and merge the links between the groups.

    Evidence about the same two chunklets is independent, so parallel soft weights add; a hard
    cannot-link absorbs them. A soft link inside a chunklet is a constant and disappears. Soft links
    are never closed transitively.

    Parameters
    ----------
    n_nodes : int
    pairs : (m, 2) int64
        One row per unordered pair, i < j.
    weights : (m,) float64
        ``+inf`` hard must-link, ``-inf`` hard cannot-link, finite: soft.

    Returns
    -------
    Contraction

    Raises
    ------
    InfeasibleConstraints
        If a hard cannot-link has both ends in one chunklet, see :func:`chunklet_labels`.

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise.graph import contract
    >>> pairs = np.array([[0, 1], [0, 2], [1, 2], [2, 3]])
    >>> merged = contract(4, pairs, np.array([np.inf, 0.5, 1.0, -np.inf]))
    >>> merged.groups
    array([0, 0, 1, 2])
    >>> merged.pairs.tolist(), merged.weights.tolist(), merged.edge_of.tolist()
    ([[0, 1], [1, 2]], [1.5, -inf], [-1, 0, 0, 1])
    """
    groups, n_groups = chunklet_labels(n_nodes, pairs, weights)
    ends = groups[pairs]
    between = np.flatnonzero(ends[:, 0] != ends[:, 1])
    merged, row_of = unique_pairs(n_groups, ends[between])
    # No +inf is left between groups, so -inf (hard) absorbs whatever is added to it.
    sums = np.bincount(row_of, weights[between], minlength=len(merged)).astype(np.float64, copy=False)
    kept = sums != 0.0
    new_row = np.where(kept, np.cumsum(kept) - 1, DROPPED_EDGE)
    edge_of = np.full(len(pairs), INSIDE_GROUP, dtype=np.int64)
    edge_of[between] = new_row[row_of]
    return Contraction(groups, n_groups, merged[kept], sums[kept], edge_of)
