"""Sum-product messages as plain numbers: the fast arithmetic of belief propagation.

With h the cavity distribution of the sender (all it knows but what the receiver told it), a link sends

    m(b) = A_b h(b) + D (1 - h(b)),        A_b, D <= 1 the potentials of equal and different labels.

Where 1 - h(b) would cancel (a strong cannot-link and h(b) near 1), it is summed from the other labels, so a
message keeps its *relative* accuracy however small. What plain numbers cannot do is hold ratios beyond
the range of floats; a message entry that comes near it is reported, and the caller starts over in
logarithms.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise._kernels import inline_kernel, kernel
from linkwise._kernels.lanes import (
    WIDTH,
    any_above,
    hint,
    lane_max,
    lane_min,
    lane_sum,
    larger,
    load,
    select_below,
    smaller,
    splat,
    store,
)
from linkwise.inference.messages.layout import AHEAD, UNEVEN, MessageGraph, PotentialTables

__all__ = ["OUT_OF_RANGE", "load_agree", "sweep_linear"]

#: Returned instead of a change when a message left the range of floats.
OUT_OF_RANGE = -1.0
# A product of numbers <= 1 that underflows is off by at most 2e-308; a sum of this size does not notice.
_SMALLEST = 1e-290


@inline_kernel
def load_agree(agree: NDArray[np.float64], slot: int, edge: int, k: int) -> Any:
    """Potentials of equal labels k, k + 1, ..."""
    if agree.ndim == 1:
        return splat(agree[slot])
    return load(agree, edge * agree.shape[1] + k)


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
    gain: NDArray[np.float64],
    messages: NDArray[np.float64],
    width: int,
    damping: float,
    before: NDArray[np.float64],
    after: NDArray[np.float64],
    cavity: NDArray[np.float64],
    change: float,
) -> float:
    """Send along the half-edges first:last of a place; the largest relative change of a message entry so far.

    Products over all other messages come from running products on both sides (``before``, ``after``), not
    from dividing the belief by a message.
    """
    zero = splat(0.0)
    one = splat(1.0)
    keep = splat(damping)
    for k in range(0, width, WIDTH):
        product = load(unary, place * width + k)
        for slot in range(begin, first):
            product = product * load(messages, slot * width + k)
        store(before, k, product)
        for slot in range(first, last - 1):
            product = product * load(messages, slot * width + k)
            store(before, (slot + 1 - first) * width + k, product)
        product = one
        for slot in range(last, end):
            product = product * load(messages, slot * width + k)
        store(after, k, product)

    lowest = 1.0
    for slot in range(last - 1, first - 1, -1):
        total = zero
        top = zero
        for k in range(0, width, WIDTH):
            behind = load(after, k)
            h = load(before, (slot - first) * width + k) * behind
            store(cavity, k, h)
            total = total + h
            top = larger(h, top)
            store(after, k, behind * load(messages, slot * width + k))
        mass = lane_sum(total)
        scale = 1.0 / mass
        out = rows[offset + slot] * width
        soon = rows[min(max(offset + slot + ahead, 0), rows.shape[0] - 1)] * width
        hint(messages, soon, soon + width)
        smallest = one
        if gain[slot] > UNEVEN:
            base = splat(differ[slot])
            slope = splat(gain[slot] * scale)
            for k in range(0, width, WIDTH):
                new = base + slope * load(cavity, k)
                old = load(messages, out + k)
                step = new - old
                size = larger(step, zero - step)
                # Dividing only where it raises the maximum takes 5 % off a sweep.
                if any_above(size, splat(change) * new):
                    change = max(change, lane_max(size / new))
                smallest = smaller(new, smallest)
                store(messages, out + k, new - keep * step)
        else:
            largest = lane_max(top)
            top = splat(largest)
            others = zero
            n_top = zero
            for k in range(0, width, WIDTH):
                h = load(cavity, k)
                others = others + select_below(h, top, h, zero)
                n_top = n_top + select_below(h, top, zero, one)
            rest = splat(lane_sum(others) + (lane_sum(n_top) - 1.0) * largest)
            everything = splat(mass)
            apart = splat(differ[slot])
            normaliser = splat(scale)
            edge = edges[slot]
            for k in range(0, width, WIDTH):
                h = load(cavity, k)
                complement = select_below(h, top, everything - h, rest)
                new = (apart * complement + load_agree(agree, slot, edge, k) * h) * normaliser
                old = load(messages, out + k)
                step = new - old
                size = larger(step, zero - step)
                # Dividing only where it raises the maximum takes 5 % off a sweep.
                if any_above(size, splat(change) * new):
                    change = max(change, lane_max(size / new))
                smallest = smaller(new, smallest)
                store(messages, out + k, new - keep * step)
        lowest = min(lowest, lane_min(smallest) * mass)
    if not lowest >= _SMALLEST:
        return OUT_OF_RANGE
    return change


@kernel
def sweep_linear(
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
    """Send from the places start:stop to later or earlier ones; the largest change or ``OUT_OF_RANGE``."""
    indptr, split, edges, later_ptr = graph.indptr, graph.split, graph.edges, graph.later_ptr
    rows = graph.later_rows if forwards else graph.earlier_rows
    unary, agree, differ, gain = tables.unary, tables.agree, tables.differ, tables.gain
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
            change = _send(
                place, indptr[place], first, last, indptr[place + 1], rows, offset, ahead, edges,
                unary, agree, differ, gain, messages, width, damping, before, after, cavity, change,
            )  # fmt: skip
            if change < 0.0:
                return change
    return change
