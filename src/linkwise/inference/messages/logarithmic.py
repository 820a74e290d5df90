"""Sum-product messages in logarithms: right for potentials of any size, ``-inf`` included.

With h the log cavity of the sender, a link sends

    m(b) = log( exp(log_agree_b + h(b)) + exp(log_differ) sum_{a != b} exp(h(a)) ) - max_a h(a).

That is plain arithmetic with one vectorised exp and log per label. (Shifted by the largest entry and not by
the sum, an entry such as -1e12 keeps its last digits.) Where a sum leaves the range of floats (hard links,
opposing scores hundreds of nats apart), that one entry is done term by term in logarithms instead.
"""

from __future__ import annotations

import math

import numpy as np

from linkwise._arrays import Floats
from linkwise._kernels import contracting_kernel, inline_kernel, kernel
from linkwise._kernels.math import exp_nonpositive, log_positive
from linkwise._kernels.simd import (
    WIDTH,
    lane_max,
    lane_sum,
    larger,
    load,
    select_below,
    splat,
    store,
)
from linkwise.inference.messages.layout import (
    CONTRADICTION,
    MessageGraph,
    PotentialTables,
    differ_of,
    load_agree,
    load_own,
    outgoing,
    row_of_scores,
    row_to_write,
)
from linkwise.inference.problem import log_agree, log_differ

# Terms below this may have lost digits to underflow.
_SMALLEST = 1e-290


@kernel
def _log_add(x: float, y: float) -> float:
    """log(exp(x) + exp(y)), also when both are -inf."""
    high = max(x, y)
    if high == -np.inf:
        return high
    return high + math.log1p(exp_nonpositive(min(x, y) - high))


@kernel
def _mend_message(
    cavity: Floats, n_labels: int, coupling: Floats, edge: int, weight: Floats, message: Floats
) -> None:
    """Entries that left the range of floats again, with every sum in logarithms.

    They are few: over a hard link, it is that of a label the sender has for certain.
    """
    top = 0
    for k in range(1, n_labels):
        if cavity[k] > cavity[top]:
            top = k
    second = -np.inf
    shift = 0.0
    for k in range(n_labels):
        if k != top:
            second = max(second, cavity[k])
        shift = max(shift, log_agree(coupling, edge, k))
    mass = 0.0
    for k in range(n_labels):
        if weight[k] >= _SMALLEST:
            continue
        if k != top:
            if mass == 0.0:
                for other in range(n_labels):
                    mass += exp_nonpositive(cavity[other] - cavity[top])
            others = math.log(mass - exp_nonpositive(cavity[k] - cavity[top]))
        elif second == -np.inf:
            others = -np.inf
        else:
            rest = 0.0
            for other in range(n_labels):
                if other != top:
                    rest += exp_nonpositive(cavity[other] - second)
            others = (second - cavity[top]) + math.log(rest)
        agree = log_agree(coupling, edge, k) - shift + (cavity[k] - cavity[top])
        message[k] = _log_add(agree, log_differ(coupling, edge) - shift + others)


@inline_kernel
def log_message(
    cavity: Floats,
    top: float,
    slot: int,
    edge: int,
    links: Floats,
    agree: Floats,
    coupling: Floats,
    n_labels: int,
    weight: Floats,
    message: Floats,
) -> None:
    """Write the message over a link for a log cavity with maximum ``top``."""
    width = cavity.shape[0]
    zero = splat(0.0)
    one = splat(1.0)
    highest = splat(top)
    total = zero
    others = zero
    n_top = zero
    for k in range(0, width, WIDTH):
        w = exp_nonpositive(load(cavity, k) - highest)
        store(weight, k, w)
        total = total + w
        others = others + select_below(w, one, w, zero)
        n_top = n_top + select_below(w, one, zero, one)
    mass = lane_sum(total)
    everything = splat(mass)
    rest = splat(lane_sum(others) + (lane_sum(n_top) - 1.0))
    apart = splat(differ_of(links, agree, slot))
    for k in range(0, width, WIDTH):
        w = load(weight, k)
        complement = select_below(w, one, everything - w, rest)
        store(weight, k, apart * complement + load_agree(links, agree, slot, edge, k) * w)
    smallest = np.inf
    for k in range(n_labels):
        smallest = min(smallest, weight[k])
    for k in range(0, width, WIDTH):
        store(message, k, log_positive(load(weight, k)))
    if not smallest >= _SMALLEST:
        _mend_message(cavity, n_labels, coupling, edge, weight, message)
        message[n_labels:width] = 0.0


@inline_kernel
def sum_before(
    own: Floats, begin: int, first: int, last: int, end: int, messages: Floats, before: Floats, after: Floats
) -> None:
    """Write own scores plus messages before each half-edge of first:last, and messages from ``last`` on.

    The half-edges of the place are begin:end; ``own`` (width,) has its scores, padded with -inf.
    """
    width = own.shape[0]
    for k in range(0, width, WIDTH):
        total = load(own, k)
        for slot in range(begin, first):
            total = total + load(messages, slot * width + k)
        store(before, k, total)
        for slot in range(first, last - 1):
            total = total + load(messages, slot * width + k)
            store(before, (slot + 1 - first) * width + k, total)
        total = splat(0.0)
        for slot in range(last, end):
            total = total + load(messages, slot * width + k)
        store(after, k, total)


@contracting_kernel
def sweep_log(
    start: int,
    stop: int,
    forwards: bool,
    graph: MessageGraph,
    tables: PotentialTables,
    messages: Floats,
    damping: float,
) -> float:
    """Send from the places start:stop to later or earlier ones; the largest change or ``CONTRADICTION``.

    A change is measured against the old entry where that is above 1, so that scores of 1e12 nats can converge
    at all. Sums over all other messages come from running sums on both sides, never by subtraction.
    """
    order, edges = graph.order, graph.edges
    indptr, split, later_ptr = graph.indptr, graph.split, graph.later_ptr
    rows = graph.later_rows if forwards else graph.earlier_rows
    unary, links, agree, coupling = tables.unary, tables.links, tables.agree, tables.coupling
    n_labels, width = tables.n_labels, tables.width
    own = np.full(width, -np.inf)
    before = np.empty(max(graph.max_degree, 1) * width)
    after, cavity, weight, fresh = np.empty(width), np.empty(width), np.empty(width), np.empty(width)
    zero = splat(0.0)
    one = splat(1.0)
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
        lowest = 0.0
        for slot in range(last - 1, first - 1, -1):
            highest = splat(-np.inf)
            for k in range(0, width, WIDTH):
                behind = load(after, k)
                h = load(before, (slot - first) * width + k) + behind
                store(cavity, k, h)
                highest = larger(h, highest)
                store(after, k, behind + load(messages, slot * width + k))
            top = lane_max(highest)
            lowest = min(lowest, top)
            log_message(cavity, top, slot, edges[slot], links, agree, coupling, n_labels, weight, fresh)
            out = row_to_write(rows, offset + slot, forwards, messages, width)
            for k in range(0, width, WIDTH):
                new = load(fresh, k)
                old = load(messages, out + k)
                step = new - old
                size = larger(zero - old, one)
                moved = larger(larger(step, zero - step) / size, moved)
                if damping > 0.0:
                    new = take * new + keep * old
                store(messages, out + k, new)
        if lowest == -np.inf:
            return CONTRADICTION
    return lane_max(moved)
