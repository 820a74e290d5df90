"""Exact inference on forests: one pass up, one pass down, O(n K) by the Potts structure.

Up, in logarithms: with ``h_c`` the score of everything below and at node c, its message ``m_c`` to the parent
is that of :mod:`linkwise.inference.exact.tree_messages`.

Down, in probabilities: ``P(z_c = a) = sum_b P(z_parent = b) exp(h_c(a) + theta(a, b) - m_c(b))``, a product
with a stochastic matrix. It adds positive numbers only, so there is no division of messages, no
``-inf`` minus ``-inf``, and errors do not grow with depth.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from linkwise._kernels import inline_kernel, kernel
from linkwise._kernels.math import exp_nonpositive
from linkwise._kernels.prefetch import prefetch
from linkwise.inference.exact.rooted_forest import RootedForest, root_forest
from linkwise.inference.exact.tree_messages import SAFE, is_moderate, linear_message, send_message
from linkwise.inference.problem import Problem, log_agree, log_differ, remembered

__all__ = ["fill_forest", "forest_best_labels", "forest_marginals"]

#: How many places before its visit a row is fetched: a forest whose nodes lie in random order takes half as
#: long.
_AHEAD = 8
_CACHE_LINE = 8  # numbers


@kernel
def _normalise(row: NDArray[np.float64]) -> float:
    """Divide by the sum, which is returned; ``row /= row.sum()`` would take numba a second to compile."""
    total = 0.0
    for k in range(row.shape[0]):
        total += row[k]
    for k in range(row.shape[0]):
        row[k] /= total
    return total


@kernel
def _root_sum(h: NDArray[np.float64]) -> float:
    """Shift h so that its maximum is 0; the logarithm of the sum of exp(h) before that."""
    n_labels = h.shape[0]
    top = h[0]
    for k in range(1, n_labels):
        top = max(top, h[k])
    if top == -np.inf:
        return top
    total = 0.0
    for k in range(n_labels):
        h[k] -= top
        total += math.exp(h[k])
    return top + math.log(total)


@kernel
def _from_parent(
    own: NDArray[np.float64],
    above: NDArray[np.float64],
    coupling: NDArray[np.float64],
    edge: int,
    row: NDArray[np.float64],
    sent: NDArray[np.float64],
    same: NDArray[np.float64],
) -> float:
    """Marginal of a node, over its scores ``own``, from that of its parent, ``above``; their agreement.

    The message to the parent is made again, which takes less time than keeping it takes memory: where plain
    numbers will do, no further exponentials are needed. The last three arguments are overwritten.
    """
    n_labels = own.shape[0]
    top = 0
    lowest = 0.0
    for a in range(n_labels):
        row[a] = exp_nonpositive(own[a])
        lowest = min(lowest, own[a])
        if own[a] > own[top]:
            top = a
    rest = 0.0
    for a in range(n_labels):
        sent[a] = row[a]
        if a != top:
            rest += row[a]
    differ = log_differ(coupling, edge)
    if lowest > -SAFE and is_moderate(coupling, edge, n_labels):
        linear_message(sent, coupling, edge, top, rest)
        apart = math.exp(differ)
        together = math.exp(log_agree(coupling, edge, 0))
        for a in range(n_labels):
            if coupling.ndim == 2:
                together = math.exp(log_agree(coupling, edge, a))
            share = above[a] / sent[a]
            same[a] = share * together * row[a]
            sent[a] = share * apart
        leave_top = sent[top]
        sent[top] = 0.0
        for a in range(n_labels):
            own[a] = row[a] * leave_top if a != top else 0.0
    else:
        send_message(own, coupling, edge, sent)
        # A parent label of probability 0 contributes nothing, and its message may be -inf.
        for a in range(n_labels):
            stay = own[a] + log_agree(coupling, edge, a) - sent[a]
            same[a] = above[a] * exp_nonpositive(stay) if above[a] > 0.0 else 0.0
        # If the parent has the top label, exp(differ - m) can overflow although exp(h + differ - m) <= 1.
        log_leave_top = differ - sent[top]
        for b in range(n_labels):
            sent[b] = above[b] * exp_nonpositive(differ - sent[b]) if b != top else 0.0
        for a in range(n_labels):
            leaves = a != top and above[top] > 0.0
            own[a] = above[top] * exp_nonpositive(own[a] + log_leave_top) if leaves else 0.0
    leaving = 0.0
    together = 0.0
    for b in range(n_labels):
        leaving += sent[b]
        together += same[b]
    for a in range(n_labels):
        own[a] += same[a] + row[a] * max(leaving - sent[a], 0.0)
    return together / _normalise(own)


@inline_kernel
def _fetch(
    place: int,
    table: NDArray[np.float64],
    order: NDArray[np.int32],
    parent: NDArray[np.int32],
    edge: NDArray[np.int32],
    coupling: NDArray[np.float64],
) -> None:
    """Ask the memory for what a visit of this place will read; changes no result."""
    n_labels = table.shape[1]
    for k in range(0, n_labels, _CACHE_LINE):
        prefetch(table, order[place] * n_labels + k)
    if parent[place] >= 0:
        for k in range(0, n_labels, _CACHE_LINE):
            prefetch(table, order[parent[place]] * n_labels + k)
        prefetch(coupling, edge[place] * (coupling.size // coupling.shape[0]))


@kernel
def _solve_forest(
    table: NDArray[np.float64],
    order: NDArray[np.int32],
    parent: NDArray[np.int32],
    edge: NDArray[np.int32],
    coupling: NDArray[np.float64],
    agreement: NDArray[np.float64],
) -> float:
    """Scores of the nodes in ``order`` become marginals, one tree after the other; the log partition."""
    n_places = order.shape[0]
    n_labels = table.shape[1]
    message = np.empty(n_labels)
    row = np.empty(n_labels)
    same = np.empty(n_labels)
    log_partition = 0.0
    lost = 0.0
    start = 0
    while start < n_places:
        stop = start + 1
        while stop < n_places and parent[stop] >= 0:
            stop += 1
        for place in range(stop - 1, start - 1, -1):
            _fetch(max(place - _AHEAD, start), table, order, parent, edge, coupling)
            own = table[order[place]]
            if parent[place] < 0:
                shift = _root_sum(own)
            else:
                shift = send_message(own, coupling, edge[place], message)
                above = table[order[parent[place]]]
                for k in range(n_labels):
                    above[k] += message[k]
            # Compensated: digits lost to a long sum are added at its end.
            term = shift + lost
            total = log_partition + term
            lost = term - (total - log_partition) if total > -np.inf else 0.0
            log_partition = total
        for place in range(start, stop):
            _fetch(min(place + _AHEAD, n_places - 1), table, order, parent, edge, coupling)
            own = table[order[place]]
            if parent[place] < 0:
                for k in range(n_labels):
                    own[k] = exp_nonpositive(own[k])
                _normalise(own)
                continue
            above = table[order[parent[place]]]
            agreement[edge[place]] = _from_parent(own, above, coupling, edge[place], row, message, same)
        start = stop
    return log_partition


def forest_marginals(problem: Problem) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """Sum-product on a forest: exact marginals, agreement and log partition in one calibrated pass.

    Parameters
    ----------
    problem : Problem
        Its graph has no cycle; any number of components.

    Returns
    -------
    prob : (n, K)
        P(z_i = k); NaN in a tree that allows no labelling.
    agreement : (m,)
        P(z_i == z_j).
    log_partition : float
        ``-inf`` if the hard links allow no labelling.

    Examples
    --------
    >>> from linkwise.inference import PottsField
    >>> from linkwise.inference.problem import reduce_field
    >>> from linkwise.inference.exact.trees import forest_marginals
    >>> field = PottsField([[0.0, 0.0], [0.0, 0.0]], [(0, 1)], [float("-inf")])
    >>> problem = reduce_field(field, keep_zero_in_component=True).problem
    >>> prob, agreement, log_partition = forest_marginals(problem)
    >>> agreement, round(log_partition, 4)
    (array([0.]), 0.6931)
    """
    forest = remembered(problem, "rooted forest", lambda: root_forest(problem.graph))
    prob = problem.unary if problem.disposable else problem.unary.copy()
    agreement = np.empty(len(problem.pairs))
    return prob, agreement, fill_forest(forest, problem.coupling, prob, agreement)


def fill_forest(
    forest: RootedForest,
    coupling: NDArray[np.float64],
    table: NDArray[np.float64],
    agreement: NDArray[np.float64],
) -> float:
    """Marginals of a forest among the nodes of a problem.

    Parameters
    ----------
    forest : RootedForest
        Of some of the nodes, whose links are all in it.
    coupling : (m,) or (m, K) float64
    table : (n, K) float64
        Scores of all nodes; those of the forest become P(z_i = k).
    agreement : (m,)
        Receives P(z_i == z_j) of the links in the forest.

    Returns
    -------
    float
        log partition of the forest, ``-inf`` if it allows no labelling.

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise.graph import adjacency
    >>> from linkwise.inference.exact.rooted_forest import root_forest
    >>> from linkwise.inference.exact.trees import fill_forest
    >>> forest = root_forest(adjacency(2, np.array([[0, 1]])))
    >>> table, agreement = np.zeros((2, 2)), np.empty(1)
    >>> log_partition = fill_forest(forest, np.array([-np.inf]), table, agreement)
    >>> table, agreement, round(log_partition, 4)
    (array([[0.5, 0.5], [0.5, 0.5]]), array([0.]), 0.6931)
    """
    return float(_solve_forest(table, *forest, coupling, agreement))


@kernel
def _maximise(
    h: NDArray[np.float64],
    parent: NDArray[np.int32],
    edge: NDArray[np.int32],
    coupling: NDArray[np.float64],
) -> NDArray[np.int64]:
    """Max-product up, choices back down; ``h`` comes in as the unary scores by place."""
    n_places, n_labels = h.shape
    top = np.zeros(n_places, dtype=np.int64)
    second = np.zeros(n_places, dtype=np.int64)
    for place in range(n_places - 1, -1, -1):
        best = 0
        for a in range(1, n_labels):
            if h[place, a] > h[place, best]:
                best = a
        runner_up = -1
        for a in range(n_labels):
            if a != best and (runner_up < 0 or h[place, a] > h[place, runner_up]):
                runner_up = a
        top[place] = best
        second[place] = runner_up
        above = parent[place]
        # Shifted so that scores stay small however deep the tree is.
        shift = h[place, best] if h[place, best] > -np.inf else 0.0
        for a in range(n_labels):
            h[place, a] -= shift
        if above < 0:
            continue
        differ = log_differ(coupling, edge[place])
        for b in range(n_labels):
            other = runner_up if b == best else best
            value = log_agree(coupling, edge[place], b) + h[place, b]
            if other >= 0:
                value = max(value, differ + h[place, other])
            h[above, b] += value
    labels = np.empty(n_places, dtype=np.int64)
    for place in range(n_places):
        above = parent[place]
        if above < 0:
            labels[place] = top[place]
            continue
        b = labels[above]
        other = second[place] if b == top[place] else top[place]
        stay = log_agree(coupling, edge[place], b) + h[place, b]
        leave = log_differ(coupling, edge[place]) + h[place, other] if other >= 0 else -np.inf
        labels[place] = other if leave > stay else b
    return labels


def forest_best_labels(problem: Problem) -> NDArray[np.int64]:
    """Max-product on a forest: a labelling of highest score, ties settled by back-tracking.

    Parameters
    ----------
    problem : Problem
        Its graph has no cycle; any number of components.

    Returns
    -------
    (n,) int64
        Of score ``-inf`` only if no labelling is allowed.

    Examples
    --------
    >>> from linkwise.inference import PottsField
    >>> from linkwise.inference.problem import reduce_field
    >>> from linkwise.inference.exact.trees import forest_best_labels
    >>> field = PottsField([[0.0, 0.0], [0.0, 1.0]], [(0, 1)], [float("-inf")])
    >>> forest_best_labels(reduce_field(field, keep_zero_in_component=False).problem)
    array([0, 1])
    """
    order, parent, edge = root_forest(problem.graph)
    labels = np.empty(len(order), dtype=np.int64)
    labels[order] = _maximise(problem.unary[order], parent, edge, problem.coupling)
    return labels
