"""Max-product messages in logarithms, O(K) from the two largest entries of the cavity.

With h the log cavity of the sender, a link sends (Bilenko & Basu 2004, section 3; Potts form)

    m(b) = max( log_agree_b + h(b), log_differ + max_{a != b} h(a) ),       shifted so that its maximum is 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from linkwise._arrays import Floats
from linkwise._kernels import contracting_kernel, inline_kernel
from linkwise._kernels.simd import WIDTH, lane_max, lane_sum, larger, load, select_below, splat, store
from linkwise.inference.messages.layout import (
    CONTRADICTION,
    MessageGraph,
    PotentialTables,
    load_own,
    outgoing,
    row_of_scores,
    row_to_write,
)
from linkwise.inference.messages.logarithmic import sum_before


@inline_kernel
def _load_agree(agree: Floats, link: float, edge: int, k: int) -> Any:
    """Log potentials of equal labels k, k + 1, ..."""
    if agree.ndim == 2:
        return load(agree, edge * agree.shape[1] + k)
    return splat(min(link, 0.0))


@contracting_kernel
def sweep_max(
    start: int,
    stop: int,
    forwards: bool,
    graph: MessageGraph,
    tables: PotentialTables,
    messages: Floats,
    damping: float,
) -> float:
    """Send from the places start:stop to later or earlier ones; the largest change or ``CONTRADICTION``."""
    order, edges = graph.order, graph.edges
    indptr, split, later_ptr = graph.indptr, graph.split, graph.later_ptr
    rows = graph.later_rows if forwards else graph.earlier_rows
    unary, links, agree, n_labels = tables.unary, tables.links, tables.agree, tables.n_labels
    width = tables.width
    own = np.full(width, -np.inf)
    before = np.empty(max(graph.max_degree, 1) * width)
    after, cavity = np.empty(width), np.empty(width)
    zero = splat(0.0)
    one = splat(1.0)
    lowest = splat(-np.inf)
    keep = splat(damping)
    take = splat(1.0 - damping)
    moved = zero
    for turn in range(stop - start):
        place = start + turn if forwards else stop - 1 - turn
        first, last, offset = outgoing(indptr, split, later_ptr, place, forwards)
        if first == last:
            continue
        row = row_of_scores(unary, order, place, forwards, n_labels)
        load_own(own, unary, row, n_labels)
        sum_before(own, indptr[place], first, last, indptr[place + 1], messages, before, after)
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
            link = links[slot]
            penalty = splat(link if agree.ndim == 2 else -max(link, 0.0))
            edge = edges[slot]
            highest = lowest
            for k in range(0, width, WIDTH):
                h = load(cavity, k)
                apart = penalty + select_below(h, top, top, second)
                new = larger(_load_agree(agree, link, edge, k) + h, apart)
                store(cavity, k, new)
                highest = larger(new, highest)
            shift = splat(lane_max(highest))
            out = row_to_write(rows, offset + slot, forwards, messages, width)
            for k in range(0, width, WIDTH):
                new = load(cavity, k) - shift
                old = load(messages, out + k)
                step = new - old
                moved = larger(larger(step, zero - step), moved)
                if damping > 0.0:
                    new = take * new + keep * old
                store(messages, out + k, new)
        if lowest_top == -np.inf:
            return CONTRADICTION
    return lane_max(moved)
