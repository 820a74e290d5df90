"""The message of a node to its neighbour over one link, in O(K).

With ``h`` the score of everything behind and at the node,

    m(b) = log( exp(agree_b + h(b)) + exp(differ) sum_{a != b} exp(h(a)) ).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from linkwise._kernels import kernel
from linkwise._kernels.math import exp_nonpositive, log_positive
from linkwise.inference.problem import log_agree, log_differ

__all__ = ["SAFE", "is_moderate", "linear_message", "send_message"]

#: Exponents up to this size can be multiplied in linear space and logged again without harm.
SAFE = 300.0
#: exp(-_NEGLIGIBLE) is below half the spacing of the floats at 1.
_NEGLIGIBLE = 38.0
_TINY = 1e-17


@kernel
def _log_add(x: float, y: float) -> float:
    """log(exp(x) + exp(y)); a term that cannot change the last digit is left out, also when both are -inf."""
    high = max(x, y)
    low = min(x, y)
    if low > high - _NEGLIGIBLE:
        return high + math.log1p(math.exp(low - high))
    return high


@kernel
def is_moderate(coupling: NDArray[np.float64], edge: int, n_labels: int) -> bool:
    """Whether messages over the edge are normal numbers if the scores sent lie within ``SAFE``.

    Costs (one value per link) always leave one of the two terms of a message alone, if there are two.
    """
    if coupling.ndim == 1 and n_labels > 1:
        return True
    largest = -log_differ(coupling, edge)
    for a in range(n_labels):
        largest = max(largest, abs(log_agree(coupling, edge, a)))
    return largest < SAFE


@kernel
def linear_message(
    weight: NDArray[np.float64], coupling: NDArray[np.float64], edge: int, top: int, rest: float
) -> None:
    """exp(m(b)) from exp(h), which it replaces; ``top`` has weight 1, and ``rest`` is the sum of the others.

    sum_{a != b} exp(h_a) is 1 + (rest - exp(h_b)) for b != top: nothing cancels, for the 1 stays.
    """
    apart = math.exp(log_differ(coupling, edge))
    together = math.exp(log_agree(coupling, edge, 0))
    for b in range(weight.shape[0]):
        if coupling.ndim == 2:
            together = math.exp(log_agree(coupling, edge, b))
        weight[b] = together * weight[b] + apart * (1.0 + (rest - weight[b]))
    weight[top] = math.exp(log_agree(coupling, edge, top)) + apart * rest


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
    differ = log_differ(coupling, edge)
    if lowest > -SAFE and is_moderate(coupling, edge, n_labels):
        linear_message(message, coupling, edge, top, rest)
        for b in range(n_labels):
            message[b] = log_positive(message[b])
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
