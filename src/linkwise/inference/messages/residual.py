"""The largest change first: residual belief propagation (Elidan, McGraw & Koller 2006), by nodes.

The priority of a node bounds how far its incoming messages have moved since it last sent (their
changes added up, so that many small ones count; Sutton & McCallum 2007). The node of largest priority
sends to all its neighbours, and so on until no priority exceeds the tolerance.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from linkwise._kernels import inline_kernel, kernel
from linkwise._kernels.lanes import padded
from linkwise.inference.messages.layout import MessageGraph, PotentialTables
from linkwise.inference.messages.logarithmic import send_log

__all__ = ["residual_visits"]


@inline_kernel
def _sift_up(
    heap: NDArray[np.int64], position: NDArray[np.int64], priority: NDArray[np.float64], at: int
) -> None:
    """Restore the heap (largest priority first) after the priority at ``at`` has grown."""
    place = heap[at]
    while at > 0:
        parent = (at - 1) // 2
        if priority[heap[parent]] >= priority[place]:
            break
        heap[at] = heap[parent]
        position[heap[at]] = at
        at = parent
    heap[at] = place
    position[place] = at


@inline_kernel
def _sift_down(heap: NDArray[np.int64], position: NDArray[np.int64], priority: NDArray[np.float64]) -> None:
    """Restore the heap after the priority at its top has fallen."""
    size = heap.shape[0]
    at = 0
    place = heap[0]
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and priority[heap[child + 1]] > priority[heap[child]]:
            child += 1
        if priority[heap[child]] <= priority[place]:
            break
        heap[at] = heap[child]
        position[heap[at]] = at
        at = child
    heap[at] = place
    position[place] = at


@inline_kernel
def _row_change(
    old: NDArray[np.float64], at_old: int, new: NDArray[np.float64], at_new: int, n_labels: int
) -> float:
    """Largest change of a message, relative to entries above 1 as in the sweeps."""
    change = 0.0
    for k in range(n_labels):
        x = old[at_old + k]
        y = new[at_new + k]
        if x != y:
            change = max(change, abs(y - x) / max(1.0, -x))
    return change


@kernel
def _visit(
    n_visits: int,
    heap: NDArray[np.int64],
    position: NDArray[np.int64],
    priority: NDArray[np.float64],
    graph: MessageGraph,
    tables: PotentialTables,
    messages: NDArray[np.float64],
    n_labels: int,
    width: int,
    damping: float,
    tol: float,
) -> float:
    """Visit the place of largest priority, again and again; the largest left, or a negative code."""
    indptr, target, reverse, edges = graph.indptr, graph.target, graph.reverse, graph.edges
    unary, agree, differ, coupling = tables.unary, tables.agree, tables.differ, tables.coupling
    before = np.empty(max(graph.max_degree, 1) * width)
    sent = np.empty(max(graph.max_degree, 1) * width)
    after = np.empty(width)
    cavity = np.empty(width)
    weight = np.empty(width)
    fresh = np.empty(width)
    for _ in range(n_visits):
        place = heap[0]
        if priority[place] <= tol:
            break
        first = indptr[place]
        last = indptr[place + 1]
        for slot in range(first, last):
            row = reverse[slot] * width
            for k in range(width):
                sent[(slot - first) * width + k] = messages[row + k]
        moved = send_log(
            place, first, first, last, last, reverse, 0, 0, edges, unary, agree, differ, coupling,
            messages, n_labels, width, damping, before, after, cavity, weight, fresh,
        )  # fmt: skip
        if moved < 0.0:
            return moved
        # A damped message still has this part of its way to go.
        priority[place] = damping * moved
        _sift_down(heap, position, priority)
        for slot in range(first, last):
            other = target[slot]
            row = reverse[slot] * width
            priority[other] += _row_change(sent, (slot - first) * width, messages, row, n_labels)
            _sift_up(heap, position, priority, position[other])
    return priority[heap[0]]


def residual_visits(
    graph: MessageGraph,
    tables: PotentialTables,
    messages: NDArray[np.float64],
    n_labels: int,
    *,
    damping: float,
    tol: float,
) -> Iterator[float]:
    """Send from the node whose neighbours have changed most, for ever or until no priority exceeds ``tol``.

    Parameters
    ----------
    graph : MessageGraph
    tables : PotentialTables
        In ``LOGARITHMIC`` form.
    messages : (2 m * width,) float64
        Log messages, updated in place.
    n_labels : int
    damping, tol : float

    Yields
    ------
    float
        The largest priority after every n visits, comparable with the change in a sweep, or the code
        ``CONTRADICTION``; that is the last.
    """
    n_nodes = len(graph.order)
    priority = np.where(np.diff(graph.indptr) > 0, np.inf, 0.0)
    heap = np.argsort(-priority, kind="stable")
    position = np.empty_like(heap)
    position[heap] = np.arange(n_nodes)
    left = np.inf
    while left >= 0.0:
        left = _visit(
            n_nodes, heap, position, priority, graph, tables, messages,
            n_labels, padded(n_labels), damping, tol,
        )  # fmt: skip
        yield left
