"""Beliefs and the Bethe log partition function from the messages of belief propagation.

With h_ij(k) the product of exp(unary_ik) and all messages to i but that of j (Yedidia, Freeman & Weiss 2005),

    log Z = sum_i log Z_i - sum_{links ij} (log Z_i + log Z_j - log Z_ij),
    Z_i  = sum_k h_ij(k) m_ji(k)  for any j,      Z_ij = sum_{a,b} psi(a, b) h_ij(a) h_ji(b).

It is stationary in the messages, so a small error of theirs counts only squared, and exact on forests.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from linkwise._lanes import padded
from linkwise._math import exp_nonpositive
from linkwise._numba import inline_kernel, kernel
from linkwise.inference.log_messages import log_message, sum_before
from linkwise.inference.message_graph import MessageGraph, PotentialTables, reward_shift
from linkwise.inference.potentials import log_agree
from linkwise.inference.reduce import Problem

__all__ = ["Beliefs", "beliefs_from_messages"]


class Beliefs(NamedTuple):
    """What the messages say.

    Attributes
    ----------
    prob : (n, K) float64
    agreement : (m,) float64
    log_partition : float
        ``-inf`` if some node has no label left.
    """

    prob: NDArray[np.float64]
    agreement: NDArray[np.float64]
    log_partition: float


@kernel
def _node_beliefs(
    graph: MessageGraph,
    unary: NDArray[np.float64],
    messages: NDArray[np.float64],
    n_labels: int,
    width: int,
    prob: NDArray[np.float64],
    terms: NDArray[np.float64],
) -> None:
    """Beliefs of all places; a cavity, shifted to maximum 0, replaces the message it leaves out."""
    order, indptr = graph.order, graph.indptr
    before = np.empty(max(graph.max_degree, 1) * width)
    after = np.empty(width)
    for place in range(order.shape[0]):
        first = indptr[place]
        last = indptr[place + 1]
        sum_before(place, first, first, last, last, unary, messages, width, before, after)
        for k in range(n_labels):
            after[k] = before[max(last - first - 1, 0) * width + k]
            if last > first:
                after[k] += messages[(last - 1) * width + k]
        top = _largest(after, 0, n_labels)
        if top == -np.inf:
            terms[place] = -np.inf
            return
        mass = 0.0
        for k in range(n_labels):
            after[k] = exp_nonpositive(after[k] - top)
            mass += after[k]
        for k in range(n_labels):
            prob[order[place], k] = after[k] / mass
        log_mass = math.log(mass)
        terms[place] = top + log_mass
        after[:] = 0.0
        for slot in range(last - 1, first - 1, -1):
            row = slot * width
            for k in range(n_labels):
                incoming = messages[row + k]
                messages[row + k] = before[(slot - first) * width + k] + after[k]
                after[k] += incoming
            highest = _largest(messages, row, n_labels)
            for k in range(n_labels):
                messages[row + k] -= highest
            for k in range(n_labels, width):
                messages[row + k] = -np.inf
            terms[place] -= (top - highest) + log_mass


@inline_kernel
def _largest(values: NDArray[np.float64], start: int, n_labels: int) -> float:
    """Largest entry of one row."""
    top = -np.inf
    for k in range(n_labels):
        top = max(top, values[start + k])
    return top


@kernel
def _link_beliefs(
    graph: MessageGraph,
    tables: PotentialTables,
    cavities: NDArray[np.float64],
    n_labels: int,
    width: int,
    shift: NDArray[np.float64],
    agreement: NDArray[np.float64],
    terms: NDArray[np.float64],
) -> None:
    """Probability of equal labels and log Z_ij of every link, from the cavities of its two ends."""
    indptr, split, reverse, edges = graph.indptr, graph.split, graph.reverse, graph.edges
    agree, differ, coupling = tables.agree, tables.differ, tables.coupling
    mine = np.empty(width)
    weight = np.empty(width)
    joint = np.empty(width)
    for place in range(split.shape[0]):
        for slot in range(split[place], indptr[place + 1]):
            edge = edges[slot]
            theirs = reverse[slot] * width
            for k in range(width):
                mine[k] = cavities[slot * width + k]
            log_message(mine, 0.0, slot, edge, agree, differ, coupling, n_labels, width, weight, joint)
            for k in range(n_labels):
                joint[k] += cavities[theirs + k]
            top = _largest(joint, 0, n_labels)
            if top == -np.inf:
                terms[edge] = -np.inf
                return
            mass = 0.0
            equal = 0.0
            for k in range(n_labels):
                log_equal = log_agree(coupling, edge, k) - shift[edge] + (mine[k] + cavities[theirs + k])
                mass += exp_nonpositive(joint[k] - top)
                equal += exp_nonpositive(log_equal - top)
            terms[edge] = top + math.log(mass) + shift[edge]
            agreement[edge] = min(equal / mass, 1.0)


def beliefs_from_messages(
    problem: Problem, graph: MessageGraph, tables: PotentialTables, messages: NDArray[np.float64]
) -> Beliefs:
    """Node and link beliefs and the Bethe log partition function.

    Parameters
    ----------
    problem : Problem
    graph : MessageGraph
    tables : PotentialTables
        In ``LOGARITHMIC`` form.
    messages : (2 m * width,) float64
        Log messages; overwritten.

    Returns
    -------
    Beliefs
    """
    n_nodes, n_labels = problem.unary.shape
    width = padded(n_labels)
    constant = problem.unary.max(axis=1).sum()
    prob = problem.unary if problem.disposable else np.empty((n_nodes, n_labels))
    prob[:] = 1.0 / n_labels
    agreement = np.full(len(problem.pairs), 1.0 / n_labels)
    node_terms, link_terms = np.zeros(n_nodes), np.zeros(len(problem.pairs))
    _node_beliefs(graph, tables.unary, messages, n_labels, width, prob, node_terms)
    if (node_terms == -np.inf).any():
        return Beliefs(prob, agreement, -np.inf)
    shift = reward_shift(problem.coupling)
    _link_beliefs(graph, tables, messages, n_labels, width, shift, agreement, link_terms)
    return Beliefs(prob, agreement, float(constant + node_terms.sum() + link_terms.sum()))
