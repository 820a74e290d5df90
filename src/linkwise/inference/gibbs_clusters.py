"""Cluster moves for Gibbs sampling: whole groups of points exchange two labels at once.

The labels are paired at random. Points whose label is in {a, b} form an Ising model: each may take the other
label of its pair, and links to points of other pairs do not notice. A satisfied link binds its ends with
probability 1 - exp(-strength); what is bound exchanges a and b together, and each group does so with the
probability its unary scores give (Swendsen & Wang 1987; Wang, Swendsen & Kotecký 1989 for links that
repel). Strong links, around loops too, no longer hold the chain.

With hard cannot-links the groups are Kempe chains. All labellings are then within reach of each other if the
graph of hard links is bipartite, or if some order gives every point fewer than K earlier neighbours
(Las Vergnas & Meyniel 1981). Otherwise they may not be.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from linkwise._numba import kernel
from linkwise._random import counter_uniform
from linkwise.graph import adjacency, core_numbers, group_labels, induced_subgraph, two_colouring
from linkwise.graph.disjoint_set import find
from linkwise.inference.hard_links import hard_rows
from linkwise.inference.reduce import Problem

__all__ = ["exchange_labels", "may_be_reducible"]


def may_be_reducible(problem: Problem) -> bool:
    """Whether some labellings might never be reached from others, because of hard cannot-links.

    Parameters
    ----------
    problem : Problem

    Returns
    -------
    bool
        False is a proof, for the theorems quoted above; True is not.

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise.inference import PottsField
    >>> from linkwise.inference.gibbs_clusters import may_be_reducible
    >>> from linkwise.inference.reduce import reduce_field
    >>> ring = [(0, 1), (1, 2), (2, 0)]
    >>> fields = [PottsField(np.zeros((3, n_labels)), ring, [-np.inf] * 3) for n_labels in (3, 4)]
    >>> [may_be_reducible(reduce_field(field, keep_zero_in_component=True).problem) for field in fields]
    [False, False]
    """
    hard = hard_rows(problem)
    if not hard.any():
        return False
    pairs = problem.pairs[hard]
    if (problem.coupling[hard] > -np.inf).any() or (problem.unary[np.unique(pairs)] == -np.inf).any():
        return True
    n_nodes, n_labels = problem.unary.shape
    graph = adjacency(n_nodes, pairs)
    component, n_components = group_labels(n_nodes, pairs)
    largest_core = np.zeros(n_components, dtype=np.int64)
    np.maximum.at(largest_core, component, core_numbers(graph)[1])
    crowded = induced_subgraph(graph, np.flatnonzero(largest_core[component] >= n_labels))
    return two_colouring(crowded)[1].size > 0


@kernel
def _pair_labels(n_labels: int, seed: np.uint64, sweep: int) -> NDArray[np.int64]:
    """Partner of each label in a random pairing; with an odd number of labels one is its own."""
    shuffled = np.arange(n_labels)
    for last in range(n_labels - 1, 0, -1):
        pick = int(counter_uniform(seed, last, sweep) * (last + 1))
        shuffled[last], shuffled[pick] = shuffled[pick], shuffled[last]
    partner = np.arange(n_labels)
    for first in range(0, n_labels - 1, 2):
        partner[shuffled[first]] = shuffled[first + 1]
        partner[shuffled[first + 1]] = shuffled[first]
    return partner


@kernel
def exchange_labels(
    nodes: NDArray[np.int64],
    sticky: NDArray[np.bool_],
    unary: NDArray[np.float64],
    indptr: NDArray[np.int64],
    neighbours: NDArray[np.int64],
    edges: NDArray[np.int64],
    coupling: NDArray[np.float64],
    seeds: NDArray[np.uint64],
    sweep: int,
    labels: NDArray[np.int64],
) -> None:
    """One cluster move over ``nodes`` (those that are ``sticky``), given all others; changes ``labels``.

    ``gain`` is what exchanging a node's label adds to the score through its unary and the links outside the
    Ising model. Links whose reward depends on the label, r_a and r_b, are split into a
    coupling (r_a + r_b) / 2 and a gain of (r_b - r_a) / 2 for leaving a at either end.
    """
    partner = _pair_labels(unary.shape[1], seeds[0], sweep)
    group = np.empty(labels.shape[0], dtype=np.int64)
    gain = np.empty(labels.shape[0])
    for node in nodes:
        group[node] = node
    for node in nodes:
        here = labels[node]
        there = partner[here]
        difference = unary[node, there] - unary[node, here]
        for slot in range(indptr[node], indptr[node + 1]):
            other = neighbours[slot]
            other_label = labels[other]
            if here == there or (other_label != here and other_label != there):
                continue
            edge = edges[slot]
            if coupling.ndim == 1:
                reward_here = coupling[edge]
                reward_there = reward_here
            else:
                reward_here = coupling[edge, here]
                reward_there = coupling[edge, there]
            if not sticky[other]:
                difference += reward_there if other_label == there else -reward_here
                continue
            if reward_here != reward_there:
                if min(reward_here, reward_there) == -np.inf:
                    difference = -np.inf
                    continue
                difference += 0.5 * (reward_there - reward_here)
            strength = 0.5 * (reward_here + reward_there)
            satisfied = (other_label == here) == (strength > 0.0)
            if not satisfied or other < node:
                continue
            if counter_uniform(seeds[1], edge, sweep) < -math.expm1(-abs(strength)):
                group[find(group, other)] = find(group, node)
        gain[node] = difference
    for node in nodes:
        root = find(group, node)
        if root != node:
            gain[root] += gain[node]
    for node in nodes:
        root = find(group, node)
        # exp overflows to inf for a hopeless exchange, and 1 / (1 + inf) is the 0 wanted.
        if counter_uniform(seeds[2], root, sweep) < 1.0 / (1.0 + math.exp(-gain[root])):
            labels[node] = partner[labels[node]]
