"""Forest moves for Gibbs sampling: all points of a random induced forest are drawn at once, given the rest.

Forward filtering, backward sampling: messages run up to the roots as in exact inference on trees, then
labels are drawn from the roots down. Chains of strong links that disagree with their points, where
exchanging whole groups of labels is no help, mix in one step.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from linkwise._numba import kernel
from linkwise._random import counter_uniform
from linkwise.inference.gibbs_sweep import draw_label
from linkwise.inference.induced_forest import OUTSIDE, grow_forest, root_chosen
from linkwise.inference.tree_messages import send_message

__all__ = ["resample_forest"]


@kernel
def _forest_order(
    nodes: NDArray[np.int64],
    strong_pairs: NDArray[np.int64],
    n_nodes: int,
    seeds: NDArray[np.uint64],
    sweep: int,
) -> NDArray[np.int64]:
    """Nodes in the order they apply for the forest: ends of strong links in random order, then the others."""
    order = np.empty(nodes.shape[0], dtype=np.int64)
    taken = np.zeros(n_nodes, dtype=np.bool_)
    size = 0
    pairs = strong_pairs.copy()
    for last in range(pairs.shape[0] - 1, -1, -1):
        pick = int(counter_uniform(seeds[0], last, sweep) * (last + 1))
        for side in range(2):
            node = pairs[pick, side]
            pairs[pick, side] = pairs[last, side]
            if not taken[node]:
                taken[node] = True
                order[size] = node
                size += 1
    first = size
    for node in nodes:
        if not taken[node]:
            order[size] = node
            size += 1
    for last in range(size - 1, first, -1):
        pick = first + int(counter_uniform(seeds[1], last, sweep) * (last - first + 1))
        order[last], order[pick] = order[pick], order[last]
    return order


@kernel
def resample_forest(
    nodes: NDArray[np.int64],
    strong_pairs: NDArray[np.int64],
    unary: NDArray[np.float64],
    indptr: NDArray[np.int64],
    neighbours: NDArray[np.int64],
    edges: NDArray[np.int64],
    coupling: NDArray[np.float64],
    seeds: NDArray[np.uint64],
    sweep: int,
    labels: NDArray[np.int64],
) -> None:
    """Draw the labels of a random induced forest among ``nodes`` from their conditional distribution.

    The forest is chosen without looking at the labels, so the move leaves the field's distribution as it is.
    """
    n_nodes, n_labels = unary.shape
    applicants = _forest_order(nodes, strong_pairs, n_nodes, seeds, sweep)
    tree = np.full((n_nodes, 2), OUTSIDE)
    grow_forest(indptr, neighbours, applicants, tree, np.empty(np.diff(indptr).max(), dtype=np.int64))
    order = np.empty_like(applicants)
    parent = np.empty_like(applicants)
    parent_edge = np.empty_like(applicants)
    size = root_chosen(indptr, neighbours, edges, applicants, tree, order, parent, parent_edge)
    scores = np.empty((size, n_labels))
    message = np.empty(n_labels)
    for place in range(size):
        node = order[place]
        for label in range(n_labels):
            scores[place, label] = unary[node, label]
        for slot in range(indptr[node], indptr[node + 1]):
            other = neighbours[slot]
            if tree[other, 0] == OUTSIDE:
                if coupling.ndim == 1:
                    scores[place, labels[other]] += coupling[edges[slot]]
                else:
                    scores[place, labels[other]] += coupling[edges[slot], labels[other]]
    for place in range(size - 1, -1, -1):
        if parent[place] >= 0:
            send_message(scores[place], coupling, parent_edge[place], message)
            for label in range(n_labels):
                scores[parent[place], label] += message[label]
    for place in range(size):
        if parent[place] >= 0:
            above = labels[order[parent[place]]]
            if coupling.ndim == 1:
                scores[place, above] += coupling[parent_edge[place]]
            else:
                scores[place, above] += coupling[parent_edge[place], above]
        uniform = counter_uniform(seeds[2], order[place], sweep)
        labels[order[place]] = draw_label(scores[place], uniform)
