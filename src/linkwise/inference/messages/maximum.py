"""Max-product messages in logarithms, O(K) from the two largest entries of the cavity.

With h the log cavity of the sender, a link sends (Bilenko & Basu 2004, section 3; Potts form)

    m(b) = max( log_agree_b + h(b), log_differ + max_{a != b} h(a) ),       shifted so that its maximum is 0.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from linkwise._kernels import inline_kernel, kernel
from linkwise._kernels.lanes import WIDTH, hint, lane_max, lane_sum, larger, load, select_below, splat, store
from linkwise.inference.messages.layout import AHEAD, MessageGraph, PotentialTables
from linkwise.inference.messages.linear import load_agree
from linkwise.inference.messages.logarithmic import CONTRADICTION, sum_before

__all__ = ["sweep_max"]


@inline_kernel
def _send(
    place: int,
    begin: int,
    first: int,
    last: int,
    end: int,
    rows: NDArray[np.int64],
    offset: int,
    ahead: int,
    edges: NDArray[np.int64],
    unary: NDArray[np.float64],
    agree: NDArray[np.float64],
    differ: NDArray[np.float64],
    messages: NDArray[np.float64],
    width: int,
    damping: float,
    before: NDArray[np.float64],
    after: NDArray[np.float64],
    cavity: NDArray[np.float64],
) -> float:
    """Send along the half-edges first:last of a place; the largest change of a message."""
    sum_before(place, begin, first, last, end, unary, messages, width, before, after)
    zero = splat(0.0)
    one = splat(1.0)
    lowest = splat(-np.inf)
    keep = splat(damping)
    take = splat(1.0 - damping)
    change = zero
    lowest_top = 0.0
    for slot in range(last - 1, first - 1, -1):
        highest = lowest
        for k in range(0, width, WIDTH):
            behind = load(after, k)
            h = load(before, (slot - first) * width + k) + behind
            store(cavity, k, h)
            highest = larger(h, highest)
            store(after, k, behind + load(messages, slot * width + k))
        largest = lane_max(highest)
        lowest_top = min(lowest_top, largest)
        top = splat(largest)
        runner_up = lowest
        n_top = zero
        for k in range(0, width, WIDTH):
            h = load(cavity, k)
            runner_up = larger(select_below(h, top, h, lowest), runner_up)
            n_top = n_top + select_below(h, top, zero, one)
        second = splat(lane_max(runner_up) if lane_sum(n_top) == 1.0 else largest)
        penalty = splat(differ[slot])
        edge = edges[slot]
        highest = lowest
        for k in range(0, width, WIDTH):
            h = load(cavity, k)
            apart = penalty + select_below(h, top, top, second)
            new = larger(load_agree(agree, slot, edge, k) + h, apart)
            store(cavity, k, new)
            highest = larger(new, highest)
        shift = splat(lane_max(highest))
        out = rows[offset + slot] * width
        soon = rows[min(max(offset + slot + ahead, 0), rows.shape[0] - 1)] * width
        hint(messages, soon, soon + width)
        for k in range(0, width, WIDTH):
            new = load(cavity, k) - shift
            old = load(messages, out + k)
            step = new - old
            change = larger(larger(step, zero - step), change)
            if damping > 0.0:
                new = take * new + keep * old
            store(messages, out + k, new)
    if lowest_top == -np.inf:
        return CONTRADICTION
    return lane_max(change)


@kernel
def sweep_max(
    start: int,
    stop: int,
    forwards: bool,
    graph: MessageGraph,
    tables: PotentialTables,
    messages: NDArray[np.float64],
    n_labels: int,
    width: int,
    damping: float,
) -> float:
    """Send from the places start:stop to later or earlier ones; the largest change or ``CONTRADICTION``."""
    indptr, split, edges, later_ptr = graph.indptr, graph.split, graph.edges, graph.later_ptr
    rows = graph.later_rows if forwards else graph.earlier_rows
    unary, agree, differ = tables.unary, tables.agree, tables.differ
    before = np.empty(max(graph.max_degree, 1) * width)
    after = np.empty(width)
    cavity = np.empty(width)
    ahead = AHEAD if forwards else -AHEAD
    change = 0.0
    for step in range(stop - start):
        place = start + step if forwards else stop - 1 - step
        first = split[place] if forwards else indptr[place]
        last = indptr[place + 1] if forwards else split[place]
        offset = (later_ptr[place] if forwards else first - later_ptr[place]) - first
        if first < last:
            moved = _send(
                place, indptr[place], first, last, indptr[place + 1], rows, offset, ahead, edges,
                unary, agree, differ, messages, width, damping, before, after, cavity,
            )  # fmt: skip
            if moved < 0.0:
                return moved
            change = max(change, moved)
    return change
