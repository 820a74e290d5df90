"""Moves of many points at once for Gibbs sampling, where links hold points that single draws rarely move.

Cluster moves: the labels are paired at random. Points whose label is in {a, b} form an Ising model: each
may take the other label of its pair, and links to points of other pairs do not notice. A satisfied link
binds its ends with probability 1 - exp(-strength); what is bound exchanges a and b together, and each group
does so with the probability its unary scores give (Swendsen & Wang 1987; Wang, Swendsen & Kotecký 1989 for
links that repel). So strong links, around loops too, no longer hold the chain. With hard cannot-links the
groups are Kempe chains. All labellings are then within reach of each other if the graph of hard links is
bipartite, or if some order gives every point fewer than K earlier neighbours (Las Vergnas & Meyniel 1981).
Otherwise they may not be.

Forest moves: all points of a random induced forest are drawn at once, given the rest. Messages run up to the
roots as in exact inference on trees, then labels are drawn from the roots down. Chains of strong links that
disagree with their points, where exchanging whole groups of labels is no help, mix in one step.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from linkwise._arrays import Bools, Floats, Ints
from linkwise._kernels import kernel
from linkwise._kernels.random import counter_uniform
from linkwise.graph import Adjacency, adjacency, core_numbers, group_labels, induced_subgraph, two_colouring
from linkwise.graph.csr import find
from linkwise.inference.exact.forest import send_message
from linkwise.inference.gibbs.sweeps import draw_label
from linkwise.inference.local_search.forest_descent import OUTSIDE, grow_forest, root_chosen
from linkwise.inference.local_search.hard_links import hard_rows
from linkwise.inference.problem import Problem


def may_be_reducible(problem: Problem) -> bool:
    """Whether hard cannot-links might keep some labellings apart; False is a proof (see above)."""
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
def _pair_labels(n_labels: int, seed: np.uint64, sweep: int) -> Ints:
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
    nodes: Ints,
    sticky: Bools,
    unary: Floats,
    graph: Adjacency,
    coupling: Floats,
    seeds: NDArray[np.uint64],
    sweep: int,
    labels: Ints,
) -> None:
    """One cluster move over ``nodes`` (those that are ``sticky``), given all others; changes ``labels``.

    ``gain`` is what exchanging a node's label adds to the score through its unary and the links outside the
    Ising model. Links whose reward depends on the label, r_a and r_b, are split into a
    coupling (r_a + r_b) / 2 and a gain of (r_b - r_a) / 2 for leaving a at either end.
    """
    indptr, neighbours, edges = graph
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


@kernel
def _forest_order(
    nodes: Ints, strong_pairs: Ints, n_nodes: int, seeds: NDArray[np.uint64], sweep: int
) -> Ints:
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
    nodes: Ints,
    strong_pairs: Ints,
    unary: Floats,
    graph: Adjacency,
    coupling: Floats,
    seeds: NDArray[np.uint64],
    sweep: int,
    labels: Ints,
) -> None:
    """Draw the labels of a random induced forest among ``nodes``, chosen without looking at the labels."""
    indptr, neighbours, edges = graph
    n_nodes, n_labels = unary.shape
    applicants = _forest_order(nodes, strong_pairs, n_nodes, seeds, sweep)
    tree = np.full((n_nodes, 2), OUTSIDE)
    most_links = 0
    for node in range(n_nodes):
        most_links = max(most_links, indptr[node + 1] - indptr[node])
    grow_forest(graph, applicants, tree, np.empty(most_links, dtype=np.int64))
    order = np.empty_like(applicants)
    parent = np.empty_like(applicants)
    parent_edge = np.empty_like(applicants)
    size = root_chosen(graph, applicants, tree, order, parent, parent_edge)
    scores = np.empty((size, n_labels))
    agree, weight, message = np.empty(n_labels), np.empty(n_labels), np.empty(n_labels)
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
            send_message(scores[place], coupling, parent_edge[place], agree, weight, message)
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


#: Links of this strength hold their ends: a lone pair of coupling 3 needs 5 sweeps to forget itself, of
#: coupling 6 a hundred.
STRONG = 3.0
#: Links of this strength hold their ends together with others: on a chain of links of coupling 1.5 and K = 2,
#: sweeps with block moves take six times as long and give five times as many effective samples.
_HOLDING = 1.0
#: Where correlations die out by this factor with every link, block moves gave at most a tenth more effective
#: samples on random graphs, for six times the time. Nearer to 1 they gave up to three times as many on grids.
_DIES_OUT = 0.75
_N_STEPS = 32
_N_AVERAGED = 16


def sticky_nodes(problem: Problem) -> Bools:
    """Nodes for block moves: those that their neighbours hold, where that carries far.

    A node may stick if it has a strong link, or if the influences of its neighbours add up to 1: otherwise
    single draws mix fast (Dobrushin 1968). Where correlations die out all the same, single draws are enough.
    """
    n_nodes, n_labels = problem.unary.shape
    strength, influence = np.abs(problem.coupling), _influence(problem.coupling, n_labels)
    if strength.ndim == 2:
        strength, influence = strength.max(axis=1), influence.max(axis=1)
    total = np.where(strength >= STRONG, 1.0, influence)
    held = np.bincount(problem.pairs.ravel(), np.repeat(total, 2), n_nodes) >= 1.0
    holding = np.zeros(n_nodes, dtype=bool)
    holding[problem.pairs[strength >= _HOLDING]] = True
    if (held & ~holding).any():
        signed = influence if problem.coupling.ndim == 2 else np.copysign(influence, problem.coupling)
        if correlation_growth(n_nodes, problem.pairs, signed) < _DIES_OUT:
            held &= holding
    return held


def correlation_growth(n_nodes: int, pairs: Ints, influence: Floats) -> float:
    """Factor by which a disturbance grows with every link it passes, none twice in a row; 0 on small trees.

    The spectral radius of the non-backtracking operator with the influences (m,) as weights, negative if they
    push away. Below 1 the flat fixed point of belief propagation is stable (Mooij & Kappen 2005).
    """
    signals = np.random.default_rng(0).normal(size=(len(pairs), 2))
    received = np.empty(n_nodes)
    growth = np.empty(_N_STEPS)
    for step in range(_N_STEPS):
        size = float(np.linalg.norm(signals))
        if size == 0.0:
            return 0.0
        signals /= size
        _pass_on(pairs, influence, signals, received)
        growth[step] = np.linalg.norm(signals)
    if growth[-1] == 0.0:
        return 0.0
    return float(np.exp(np.log(growth[-_N_AVERAGED:]).mean()))


@kernel
def _pass_on(pairs: Ints, influence: Floats, signals: Floats, received: Floats) -> None:
    """One step: a link passes on what an end received from other links. Column 0 goes to the second end."""
    received[:] = 0.0
    for edge in range(pairs.shape[0]):
        received[pairs[edge, 1]] += signals[edge, 0]
        received[pairs[edge, 0]] += signals[edge, 1]
    for edge in range(pairs.shape[0]):
        forth, back = signals[edge, 0], signals[edge, 1]
        signals[edge, 0] = influence[edge] * (received[pairs[edge, 0]] - back)
        signals[edge, 1] = influence[edge] * (received[pairs[edge, 1]] - forth)


def _influence(coupling: Floats, n_labels: int) -> Floats:
    """How far a neighbour's label moves a point's distribution (total variation), all else being flat."""
    weight = np.exp(-np.abs(coupling))
    others = max(n_labels - 1, 1)
    return (1.0 - weight) / np.where(coupling > 0.0, 1.0 + others * weight, others + weight)
