"""Sum-product messages as plain numbers: the fast arithmetic of belief propagation.

With h the cavity distribution of the sender (all it knows but what the receiver told it), a link sends

    m(b) = A_b h(b) + D (1 - h(b)),        A_b, D <= 1 the potentials of equal and different labels.

Where 1 - h(b) would cancel (a strong cannot-link and h(b) near 1), it is summed from the other labels, so a
message keeps its *relative* accuracy however small. What plain numbers cannot do is hold ratios beyond
the range of floats; a message entry that comes near it is reported, and the caller starts over in
logarithms.
"""

from __future__ import annotations

import numpy as np

from linkwise._arrays import Floats
from linkwise._kernels import contracting_kernel
from linkwise._kernels.simd import (
    WIDTH,
    any_above,
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
from linkwise.inference.messages.layout import (
    OUT_OF_RANGE,
    UNEVEN,
    MessageGraph,
    PotentialTables,
    differ_of,
    gain_of,
    incoming,
    load_agree,
    load_own,
    outgoing,
    row_of_scores,
    row_to_write,
)

# A product of numbers <= 1 that underflows is off by at most 2e-308; a sum of this size does not notice.
_SMALLEST = 1e-290


@contracting_kernel
def sweep_linear(
    start: int,
    stop: int,
    forwards: bool,
    graph: MessageGraph,
    tables: PotentialTables,
    messages: Floats,
    damping: float,
) -> float:
    """Send from the places start:stop to later or earlier ones; the largest change or ``OUT_OF_RANGE``.

    A change is relative to the entry of the message. Products over all other messages come from running
    products on both sides (``before``, ``after``), not from dividing the belief by a message.
    """
    order, edges = graph.order, graph.edges
    indptr, split, later_ptr = graph.indptr, graph.split, graph.later_ptr
    rows = graph.later_rows if forwards else graph.earlier_rows
    unary, links, agree, n_labels = tables.unary, tables.links, tables.agree, tables.n_labels
    width = tables.width
    before = np.empty(max(graph.max_degree, 1) * width)
    after, cavity = np.empty(width), np.empty(width)
    # Vectors reach into the next row of scores; the factor 0 makes lanes beyond the labels 0.
    is_label = np.zeros(width)
    is_label[:n_labels] = 1.0
    own = np.zeros(width)
    zero = splat(0.0)
    one = splat(1.0)
    keep = splat(damping)
    change = 0.0
    limit = zero
    for turn in range(stop - start):
        place = start + turn if forwards else stop - 1 - turn
        first, last, offset = outgoing(indptr, split, later_ptr, place, forwards)
        if first == last:
            continue
        begin, end = incoming(indptr, place, forwards, messages, width)
        row = row_of_scores(unary, order, place, forwards, n_labels)
        at_end = row + width > unary.shape[0]
        if at_end:
            load_own(own, unary, row, n_labels)
        for k in range(0, width, WIDTH):
            product = larger(load(own, k) if at_end else load(unary, row + k), zero) * load(is_label, k)
            for at in range(begin + k, first * width, width):
                product = product * load(messages, at)
            store(before, k, product)
            for at in range(k, (last - 1 - first) * width, width):
                product = product * load(messages, first * width + at)
                store(before, width + at, product)
            product = one
            for at in range(last * width + k, end, width):
                product = product * load(messages, at)
            store(after, k, product)

        lowest = one
        for slot in range(last - 1, first - 1, -1):
            total = zero
            for k in range(0, width, WIDTH):
                behind = load(after, k)
                h = load(before, (slot - first) * width + k) * behind
                store(cavity, k, h)
                total = total + h
                store(after, k, behind * load(messages, slot * width + k))
            mass = lane_sum(total)
            scale = 1.0 / mass
            out = row_to_write(rows, offset + slot, forwards, messages, width)
            smallest = one
            gain = gain_of(links, agree, slot)
            base = splat(differ_of(links, agree, slot))
            if gain > UNEVEN:
                slope = splat(gain * scale)
                for k in range(0, width, WIDTH):
                    new = base + slope * load(cavity, k)
                    old = load(messages, out + k)
                    step = new - old
                    size = larger(step, zero - step)
                    # Dividing only where it raises the maximum takes 5 % off a sweep.
                    if any_above(size, limit * new):
                        change = max(change, lane_max(size / new))
                        limit = splat(change)
                    smallest = smaller(new, smallest)
                    store(messages, out + k, new - keep * step)
            else:
                top = zero
                for k in range(0, width, WIDTH):
                    top = larger(load(cavity, k), top)
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
                normaliser = splat(scale)
                edge = edges[slot]
                for k in range(0, width, WIDTH):
                    h = load(cavity, k)
                    complement = select_below(h, top, everything - h, rest)
                    new = (base * complement + load_agree(links, agree, slot, edge, k) * h) * normaliser
                    old = load(messages, out + k)
                    step = new - old
                    size = larger(step, zero - step)
                    # Dividing only where it raises the maximum takes 5 % off a sweep.
                    if any_above(size, limit * new):
                        change = max(change, lane_max(size / new))
                        limit = splat(change)
                    smallest = smaller(new, smallest)
                    store(messages, out + k, new - keep * step)
            lowest = smaller(smallest * splat(mass), lowest)
        if not lane_min(lowest) >= _SMALLEST:
            return OUT_OF_RANGE
    return change
