"""Exact inference on forests: one pass up, one pass down, O(n K) by the Potts structure.

Up, in logarithms: with ``h_c`` the score of everything below and at node c, its message to the parent is

    m_c(b) = log( exp(agree_b + h_c(b)) + exp(differ) sum_{a != b} exp(h_c(a)) ).

Down, in probabilities: ``P(z_c = a) = sum_b P(z_parent = b) exp(h_c(a) + theta(a, b) - m_c(b))``, a product
with a stochastic matrix. It adds positive numbers only, so there is no division of messages, no
``-inf`` minus ``-inf``, and errors do not grow with depth.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from linkwise._math import exp_nonpositive, log_positive
from linkwise._numba import kernel
from linkwise.inference.potentials import log_agree, log_differ
from linkwise.inference.reduce import Problem, remembered
from linkwise.inference.rooted_forest import root_forest

__all__ = ["forest_best_labels", "forest_marginals"]

#: Exponents up to this size can be multiplied in linear space and logged again without harm.
_SAFE = 300.0
#: exp(-_NEGLIGIBLE) is below half the spacing of the floats at 1.
_NEGLIGIBLE = 38.0
_TINY = 1e-17


def _by_place(coupling: NDArray[np.float64], edge: NDArray[np.int64]) -> NDArray[np.float64]:
    """Coupling of each place to its parent: read in order instead of at random. Anything at the roots."""
    if len(coupling) == 0:
        return np.zeros((len(edge), *coupling.shape[1:]))
    return coupling[edge]


@kernel
def _log_add(x: float, y: float) -> float:
    """log(exp(x) + exp(y)); a term that cannot change the last digit is left out, also when both are -inf."""
    high = max(x, y)
    low = min(x, y)
    if low > high - _NEGLIGIBLE:
        return high + math.log1p(math.exp(low - high))
    return high


@kernel
def send_message(
    h: NDArray[np.float64], coupling: NDArray[np.float64], edge: int, message: NDArray[np.float64]
) -> float:
    """Shift h so that its maximum is 0, write its message over the edge, return the shift."""
    n_labels = h.shape[0]
    top = 0
    for a in range(1, n_labels):
        if h[a] > h[top]:
            top = a
    shift = h[top]
    if shift == -np.inf:
        for a in range(n_labels):
            message[a] = -np.inf
        return shift
    second = -np.inf
    lowest = 0.0
    for a in range(n_labels):
        h[a] -= shift
        lowest = min(lowest, h[a])
        if a != top:
            second = max(second, h[a])
    for a in range(n_labels):
        message[a] = exp_nonpositive(h[a])
    rest = 0.0
    for a in range(n_labels):
        if a != top:
            rest += message[a]
    # sum_{a != b} exp(h_a) is 1 + (rest - exp(h_b)) for b != top: nothing cancels, for the 1 stays.
    differ = log_differ(coupling, edge)
    largest = -differ
    for a in range(n_labels):
        largest = max(largest, abs(log_agree(coupling, edge, a)))
    if lowest > -_SAFE and largest < _SAFE:
        apart = math.exp(differ)
        together = math.exp(log_agree(coupling, edge, 0))
        for b in range(n_labels):
            if coupling.ndim == 2:
                together = math.exp(log_agree(coupling, edge, b))
            message[b] = log_positive(together * message[b] + apart * (1.0 + (rest - message[b])))
        message[top] = math.log(math.exp(log_agree(coupling, edge, top)) + apart * rest)
        return shift
    for b in range(n_labels):
        if b != top:
            others = rest - message[b]
            leave = differ + math.log1p(others) if others > _TINY else differ
            message[b] = _log_add(log_agree(coupling, edge, b) + h[b], leave)
    message[top] = log_agree(coupling, edge, top)
    if second > -np.inf:
        # exp(h) may have underflowed for all labels but the top: a sum with a reference of its own.
        total = 0.0
        for a in range(n_labels):
            if a != top:
                total += math.exp(h[a] - second)
        message[top] = _log_add(message[top], differ + second + math.log(total))
    return shift


@kernel
def _collect(
    h: NDArray[np.float64],
    parent: NDArray[np.int64],
    coupling: NDArray[np.float64],
    message: NDArray[np.float64],
    shift: NDArray[np.float64],
) -> None:
    """Upward pass. ``h`` comes in as the unary scores by place and leaves normalised to maximum 0."""
    n_labels = h.shape[1]
    for place in range(h.shape[0] - 1, -1, -1):
        above = parent[place]
        if above >= 0:
            shift[place] = send_message(h[place], coupling, place, message[place])
            for k in range(n_labels):
                h[above, k] += message[place, k]
        else:
            top = h[place, 0]
            for k in range(1, n_labels):
                top = max(top, h[place, k])
            shift[place] = top
            if top > -np.inf:
                total = 0.0
                for k in range(n_labels):
                    h[place, k] -= top
                    total += math.exp(h[place, k])
                shift[place] += math.log(total)


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
def _distribute(
    h: NDArray[np.float64],
    parent: NDArray[np.int64],
    coupling: NDArray[np.float64],
    message: NDArray[np.float64],
    prob: NDArray[np.float64],
    agreement: NDArray[np.float64],
) -> None:
    """Downward pass: marginal of each place and its agreement with its parent. Overwrites ``message``."""
    n_places, n_labels = h.shape
    same = np.empty(n_labels)
    for place in range(n_places):
        row = prob[place]
        own = h[place]
        for a in range(n_labels):
            row[a] = exp_nonpositive(own[a])
        if parent[place] < 0:
            _normalise(row)
            continue
        above = prob[parent[place]]
        sent = message[place]
        differ = log_differ(coupling, place)
        top = 0
        for a in range(1, n_labels):
            if own[a] > own[top]:
                top = a
        # A parent label of probability 0 contributes nothing, and its message may be -inf.
        for a in range(n_labels):
            stay = own[a] + log_agree(coupling, place, a) - sent[a]
            same[a] = above[a] * exp_nonpositive(stay) if above[a] > 0.0 else 0.0
        # If the parent has the top label, exp(differ - m) can overflow although exp(h + differ - m) <= 1.
        leave_top = differ - sent[top]
        for b in range(n_labels):
            sent[b] = above[b] * exp_nonpositive(differ - sent[b]) if b != top else 0.0
        leaving = 0.0
        for b in range(n_labels):
            leaving += sent[b]
        for a in range(n_labels):
            row[a] = same[a] + row[a] * max(leaving - sent[a], 0.0)
        if above[top] > 0.0:
            for a in range(n_labels):
                if a != top:
                    row[a] += above[top] * exp_nonpositive(own[a] + leave_top)
        together = 0.0
        for a in range(n_labels):
            together += same[a]
        agreement[place] = together / _normalise(row)


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
    >>> from linkwise.inference.reduce import reduce_field
    >>> from linkwise.inference.tree import forest_marginals
    >>> field = PottsField([[0.0, 0.0], [0.0, 0.0]], [(0, 1)], [float("-inf")])
    >>> problem = reduce_field(field, keep_zero_in_component=True).problem
    >>> prob, agreement, log_partition = forest_marginals(problem)
    >>> agreement, round(log_partition, 4)
    (array([0.]), 0.6931)
    """
    order, parent, edge = remembered(problem, "rooted forest", lambda: root_forest(problem.graph))
    coupling = _by_place(problem.coupling, edge)
    h = problem.unary[order]
    message = np.empty_like(h)
    shift = np.empty(len(h))
    _collect(h, parent, coupling, message, shift)
    prob_by_place = np.empty_like(h)
    agreement_by_place = np.empty(len(h))
    _distribute(h, parent, coupling, message, prob_by_place, agreement_by_place)
    prob = h
    prob[order] = prob_by_place
    agreement = np.empty(len(problem.pairs))
    below = edge >= 0
    agreement[edge[below]] = agreement_by_place[below]
    return prob, agreement, float(shift.sum())


@kernel
def _maximise(
    h: NDArray[np.float64], parent: NDArray[np.int64], coupling: NDArray[np.float64]
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
        differ = log_differ(coupling, place)
        for b in range(n_labels):
            other = runner_up if b == best else best
            value = log_agree(coupling, place, b) + h[place, b]
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
        stay = log_agree(coupling, place, b) + h[place, b]
        leave = log_differ(coupling, place) + h[place, other] if other >= 0 else -np.inf
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
    >>> from linkwise.inference.reduce import reduce_field
    >>> from linkwise.inference.tree import forest_best_labels
    >>> field = PottsField([[0.0, 0.0], [0.0, 1.0]], [(0, 1)], [float("-inf")])
    >>> forest_best_labels(reduce_field(field, keep_zero_in_component=False).problem)
    array([0, 1])
    """
    order, parent, edge = root_forest(problem.graph)
    labels = np.empty(len(order), dtype=np.int64)
    labels[order] = _maximise(problem.unary[order], parent, _by_place(problem.coupling, edge))
    return labels
