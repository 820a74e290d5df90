"""Bucket elimination over flat tables: the kernels behind the junction tree.

Nodes are named by the step at which they are eliminated. The bucket of step t is a table over its node
and its separator, the later nodes it is joined to when its turn comes, ordered by step, the first axis
slowest:

    table[t][a, x] = score of node t = a beside separator x, with everything eliminated into it

Eliminating t leaves a message over the separator, which is added to the table of the separator's first
node (its parent). Going back, ``P(t, x) = P(x) P(t | x)`` needs no division: the conditional is
what the elimination leaves in the table.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from linkwise._arrays import Floats, Ints
from linkwise._kernels import kernel, reassociating_kernel
from linkwise._kernels.math import exp_nonpositive, log_positive
from linkwise.graph import Adjacency


class Buckets(NamedTuple):
    """Elimination of the narrow components with loops, one component after the other.

    ``order`` (t,): node of each step; ``step_of`` (n,): step of each node, or -1. ``separators`` from
    ``separator_indptr[s]``: later steps that step s is joined to. ``offset`` (t,): place of its table.
    ``component_start`` (c + 1,): first steps. ``n_entries``, ``n_message``: of the largest tables and
    message.
    """

    order: Ints
    step_of: Ints
    separator_indptr: Ints
    separators: Ints
    offset: Ints
    component_start: Ints
    n_entries: int
    n_message: int


@kernel
def _runs(bucket: Ints, separator: Ints, n_labels: int, sizes: Ints, strides: Ints) -> int:
    """Joined axes, fastest first, in which a message lies in its parent's ``bucket``: sizes and strides.

    A stride is 0 along axes that the message lacks. Both lists of axes ascend. Returns the number of runs.
    """
    match = separator.shape[0] - 1
    stride = 1
    run = -1
    for axis in range(bucket.shape[0], -1, -1):
        step = 0
        if axis == 0 or (match >= 1 and bucket[axis - 1] == separator[match]):
            step = stride
            stride *= n_labels
            match -= 1
        if run >= 0 and (strides[run] > 0) == (step > 0):
            sizes[run] *= n_labels
        else:
            run += 1
            sizes[run] = n_labels
            strides[run] = step
    return run + 1


@kernel
def _advance(digits: Ints, n_runs: int, sizes: Ints, strides: Ints, at: int) -> int:
    """Next place of the odometer over all runs but the fastest two; the place in the message."""
    for run in range(2, n_runs):
        digits[run] += 1
        at += strides[run]
        if digits[run] < sizes[run]:
            return at
        at -= sizes[run] * strides[run]
        digits[run] = 0
    return at


@kernel
def _add_message(
    table: Floats, n_runs: int, sizes: Ints, strides: Ints, message: Floats, digits: Ints
) -> None:
    """Add a message to every entry of a table that projects onto it."""
    inner = sizes[0]
    middle = sizes[1] if n_runs > 1 else 1
    for run in range(n_runs):
        digits[run] = 0
    at = 0
    for start in range(0, table.shape[0], inner * middle):
        if strides[0] > 0:
            source = message[at : at + inner]
            for m in range(middle):
                target = table[start + m * inner : start + (m + 1) * inner]
                for x in range(inner):
                    target[x] += source[x]
        else:
            for m in range(middle):
                value = message[at + m]
                target = table[start + m * inner : start + (m + 1) * inner]
                for x in range(inner):
                    target[x] += value
        at = _advance(digits, n_runs, sizes, strides, at)


@reassociating_kernel
def _project(table: Floats, n_runs: int, sizes: Ints, strides: Ints, message: Floats, digits: Ints) -> None:
    """Sum a table onto the axes of a message."""
    inner = sizes[0]
    middle = sizes[1] if n_runs > 1 else 1
    for run in range(n_runs):
        digits[run] = 0
    for x in range(message.shape[0]):
        message[x] = 0.0
    at = 0
    for start in range(0, table.shape[0], inner * middle):
        if strides[0] > 0:
            target = message[at : at + inner]
            for m in range(middle):
                source = table[start + m * inner : start + (m + 1) * inner]
                for x in range(inner):
                    target[x] += source[x]
        else:
            for m in range(middle):
                source = table[start + m * inner : start + (m + 1) * inner]
                total = 0.0
                for x in range(inner):
                    total += source[x]
                message[at + m] += total
        at = _advance(digits, n_runs, sizes, strides, at)


@kernel
def _add_link(table: Floats, n_labels: int, stride: int, coupling: Floats, rewards: bool) -> None:
    """Add the link between the node of a bucket and the separator axis of this stride."""
    size = table.shape[0] // n_labels
    differ = 0.0 if rewards else -max(coupling[0], 0.0)
    for a in range(n_labels):
        agree = coupling[a] if rewards else min(coupling[0], 0.0)
        for start in range(0, size, stride * n_labels):
            for b in range(n_labels):
                value = agree if a == b else differ
                if value != 0.0:
                    first = a * size + start + b * stride
                    for x in range(first, first + stride):
                        table[x] += value


@reassociating_kernel
def _agreement(table: Floats, n_labels: int, stride: int) -> float:
    """Sum of the entries where the node and the separator axis of this stride have the same label."""
    size = table.shape[0] // n_labels
    total = 0.0
    for a in range(n_labels):
        for start in range(0, size, stride * n_labels):
            first = a * size + start + a * stride
            for x in range(first, first + stride):
                total += table[x]
    return total


@kernel
def _eliminate_sum(table: Floats, n_labels: int, message: Floats, total: Floats) -> float:
    """Log-sum over the node, shifted to maximum 0, into ``message``; the conditional stays. The shift."""
    size = message.shape[0]
    for x in range(size):
        message[x] = table[x]
    for a in range(1, n_labels):
        for x in range(size):
            message[x] = max(message[x], table[a * size + x])
    for x in range(size):
        # Where nothing is allowed the conditional is 0, not -inf minus -inf.
        if message[x] == -np.inf:
            message[x] = 0.0
        total[x] = 0.0
    for a in range(n_labels):
        for x in range(size):
            weight = exp_nonpositive(table[a * size + x] - message[x])
            table[a * size + x] = weight
            total[x] += weight
    shift = -np.inf
    for x in range(size):
        # The largest weight is 1, so a sum below 1 is 0.
        value = message[x] + log_positive(max(total[x], 1.0))
        message[x] = value if total[x] > 0.0 else -np.inf
        total[x] = 1.0 / max(total[x], 1.0)
    for x in range(size):
        shift = max(shift, message[x])
    for a in range(n_labels):
        for x in range(size):
            table[a * size + x] *= total[x]
    if shift > -np.inf:
        for x in range(size):
            message[x] -= shift
    return shift


@kernel
def _eliminate_max(table: Floats, n_labels: int, message: Floats) -> None:
    """Maximum over the node, shifted to maximum 0, into ``message``."""
    size = message.shape[0]
    for x in range(size):
        message[x] = table[x]
    for a in range(1, n_labels):
        for x in range(size):
            message[x] = max(message[x], table[a * size + x])
    shift = -np.inf
    for x in range(size):
        shift = max(shift, message[x])
    if shift > -np.inf:
        for x in range(size):
            message[x] -= shift


@kernel
def _load_component(
    first: int,
    last: int,
    unary: Floats,
    coupling: Floats,
    rewards: bool,
    graph: Adjacency,
    buckets: Buckets,
    tables: Floats,
) -> None:
    """Scores and links of steps ``first`` to ``last`` into their tables; ``coupling`` (m, K) or (m, 1)."""
    n_labels = unary.shape[1]
    indptr, neighbours, edges = graph
    for step in range(first, last):
        node = buckets.order[step]
        begin, end = buckets.separator_indptr[step], buckets.separator_indptr[step + 1]
        size = n_labels ** (end - begin)
        table = tables[buckets.offset[step] : buckets.offset[step] + size * n_labels]
        for a in range(n_labels):
            for x in range(a * size, (a + 1) * size):
                table[x] = unary[node, a]
        for slot in range(indptr[node], indptr[node + 1]):
            later = buckets.step_of[neighbours[slot]]
            if later > step:
                axis = begin + np.searchsorted(buckets.separators[begin:end], later)
                stride = n_labels ** (end - 1 - axis)
                _add_link(table, n_labels, stride, coupling[edges[slot]], rewards)


@kernel
def _parent(
    separator: Ints, n_labels: int, buckets: Buckets, tables: Floats, sizes: Ints, strides: Ints
) -> tuple[Floats, int]:
    """Table of the first step of a separator, and in how many runs its message lies there (``_runs``)."""
    above = separator[0]
    bucket = buckets.separators[buckets.separator_indptr[above] : buckets.separator_indptr[above + 1]]
    n_entries = n_labels ** (bucket.shape[0] + 1)
    table = tables[buckets.offset[above] : buckets.offset[above] + n_entries]
    return table, _runs(bucket, separator, n_labels, sizes, strides)


@kernel
def fill_marginals(
    unary: Floats,
    coupling: Floats,
    rewards: bool,
    graph: Adjacency,
    buckets: Buckets,
    prob: Floats,
    agreement: Floats,
    shift: Floats,
) -> None:
    """Marginals of the nodes in ``order`` and agreement of their links; ``shift`` (t,): log partition."""
    n_labels = unary.shape[1]
    indptr, neighbours, edges = graph
    order, offset, separator_indptr = buckets.order, buckets.offset, buckets.separator_indptr
    tables = np.empty(buckets.n_entries)
    buffer = np.empty(buckets.n_message)
    totals = np.empty(buckets.n_message)
    sizes = np.empty(64, dtype=np.int64)
    strides = np.empty(64, dtype=np.int64)
    digits = np.empty(64, dtype=np.int64)
    for c in range(buckets.component_start.shape[0] - 1):
        first, last = buckets.component_start[c], buckets.component_start[c + 1]
        _load_component(first, last, unary, coupling, rewards, graph, buckets, tables)
        for step in range(first, last):
            separator = buckets.separators[separator_indptr[step] : separator_indptr[step + 1]]
            size = n_labels ** separator.shape[0]
            table = tables[offset[step] : offset[step] + size * n_labels]
            message = buffer[:size]
            shift[step] = _eliminate_sum(table, n_labels, message, totals[:size])
            if separator.shape[0] > 0:
                target, n_runs = _parent(separator, n_labels, buckets, tables, sizes, strides)
                _add_message(target, n_runs, sizes, strides, message, digits)
        for step in range(last - 1, first - 1, -1):
            begin, end = separator_indptr[step], separator_indptr[step + 1]
            separator = buckets.separators[begin:end]
            size = n_labels ** (end - begin)
            table = tables[offset[step] : offset[step] + size * n_labels]
            if end > begin:
                target, n_runs = _parent(separator, n_labels, buckets, tables, sizes, strides)
                message = buffer[:size]
                _project(target, n_runs, sizes, strides, message, digits)
                for a in range(n_labels):
                    for x in range(size):
                        table[a * size + x] *= message[x]
            node = order[step]
            mass = 0.0
            for a in range(n_labels):
                total = 0.0
                for x in range(a * size, (a + 1) * size):
                    total += table[x]
                prob[node, a] = total
                mass += total
            for a in range(n_labels):
                prob[node, a] /= mass
            for slot in range(indptr[node], indptr[node + 1]):
                later = buckets.step_of[neighbours[slot]]
                if later > step:
                    axis = begin + np.searchsorted(separator, later)
                    same = _agreement(table, n_labels, n_labels ** (end - 1 - axis))
                    agreement[edges[slot]] = same / mass


@kernel
def fill_best_labels(
    unary: Floats, coupling: Floats, rewards: bool, graph: Adjacency, buckets: Buckets, labels: Ints
) -> None:
    """A labelling of highest score of the nodes in ``order``, by back-tracking through the tables."""
    n_labels = unary.shape[1]
    order, offset, separator_indptr = buckets.order, buckets.offset, buckets.separator_indptr
    tables = np.empty(buckets.n_entries)
    buffer = np.empty(buckets.n_message)
    sizes = np.empty(64, dtype=np.int64)
    strides = np.empty(64, dtype=np.int64)
    digits = np.empty(64, dtype=np.int64)
    for c in range(buckets.component_start.shape[0] - 1):
        first, last = buckets.component_start[c], buckets.component_start[c + 1]
        _load_component(first, last, unary, coupling, rewards, graph, buckets, tables)
        for step in range(first, last):
            separator = buckets.separators[separator_indptr[step] : separator_indptr[step + 1]]
            if separator.shape[0] == 0:
                continue
            size = n_labels ** separator.shape[0]
            table = tables[offset[step] : offset[step] + size * n_labels]
            _eliminate_max(table, n_labels, buffer[:size])
            target, n_runs = _parent(separator, n_labels, buckets, tables, sizes, strides)
            _add_message(target, n_runs, sizes, strides, buffer[:size], digits)
        for step in range(last - 1, first - 1, -1):
            begin, end = separator_indptr[step], separator_indptr[step + 1]
            size = n_labels ** (end - begin)
            at = offset[step]
            for place in range(begin, end):
                at += labels[order[buckets.separators[place]]] * n_labels ** (end - 1 - place)
            best = 0
            for a in range(1, n_labels):
                if tables[at + a * size] > tables[at + best * size]:
                    best = a
            labels[order[step]] = best
