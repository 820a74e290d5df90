"""The graph and the potentials as message passing reads them: places in sweep order, messages by receiver.

A message is a row of a ``(2 m, width)`` table. Row s belongs to the half-edge s of its *receiver*, so a node
reads its incoming messages in one piece and writes outgoing ones to the rows ``reverse[s]``. Rows are whole
vectors: with K = 10, rows of K numbers saved 17 % of the memory, but sweeps took 1.4 to 2 times as long.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from linkwise._arrays import Bools, Floats, ShortInts
from linkwise._kernels import inline_kernel, kernel
from linkwise._kernels.math import exp_nonpositive
from linkwise._kernels.simd import hint, load, padded, splat
from linkwise.graph import Adjacency, breadth_first_order, reversed_slots
from linkwise.inference.problem import Problem
from linkwise.inference.sweep_layout import renumbered

#: Returned instead of a change when a message left the range of floats, and when no label is left for a node.
OUT_OF_RANGE, CONTRADICTION = -1.0, -2.0
#: How messages are represented: probabilities, their logarithms, or scores of the best labelling.
LINEAR, LOGARITHMIC, MAXIMUM = 0, 1, 2
#: A message differ + gain * h with gain < 0 cancels where h is near 1: relative to its smallest value, agree,
#: rounding is off by 2e-16 / agree. Cannot-links with a smaller potential take the longer way.
_EVEN = 1e-3
#: The gain of such links; a true gain lies in [-1, 1].
UNEVEN = -2.0
#: How many messages before it is written a row is fetched. Hardware does not foresee the rows of neighbours:
#: without, a sweep over a random graph takes 1.6 times as long.
_AHEAD = 12
#: How many places before its visit a row of scores is fetched, and the messages to a place. Hardware sees
#: these coming, but not in time: without, a sweep over a grid of a million places takes 1.2 times as long.
_PLACES_AHEAD = 8
#: Numbers below exp(-700) are as good as 0 beside the 1 of the best label.
_LOWEST = -700.0
#: A cannot-link whose potential is 0; see ``PotentialTables.links``.
_NEVER = -2.0


class MessageGraph(NamedTuple):
    """Half-edges by place, those to earlier places before those to later ones.

    A sweep visits the places in turn; ``order`` (n,) has the node at each. Place p has the half-edges
    ``indptr[p]:indptr[p + 1]``, from ``split[p]`` on those to later places. ``edges`` (2 m,) has the row of
    ``pairs`` by half-edge. ``earlier_rows`` and ``later_rows`` (m,) are the rows that a pass to earlier and
    to later places writes, in the order of the half-edges; a place writes
    ``later_rows[later_ptr[p]:later_ptr[p + 1]]``. Nodes and links are those of a whole problem, of which the
    graph may be a part.

    Kept from one EM step to the next, so half the memory counts.
    """

    order: ShortInts
    indptr: ShortInts
    split: ShortInts
    edges: ShortInts
    earlier_rows: ShortInts
    later_rows: ShortInts
    later_ptr: ShortInts
    max_degree: int


class LinkTables(NamedTuple):
    """The part of the ``PotentialTables`` that scores do not change."""

    links: Floats
    agree: Floats


class PotentialTables(NamedTuple):
    """Scores and links as a sweep reads them.

    ``unary`` (n * K,): rows by node, shifted so that the largest log entry is 0. ``LINEAR`` has exp(s) for
    s > -700 and s itself below, which counts as 0: so scores come back from their numbers (see
    ``to_scores``).

    ``links`` (2 m,), by half-edge: of the potentials of equal and different labels, divided by the larger
    one, that is 1, it has the smaller one; with a minus sign if it is that of equal labels (cannot-links),
    or ``_NEVER`` if that one is 0. ``MAXIMUM`` has the coupling instead. If couplings depend on the label,
    ``agree`` (m, width) has the potentials of equal labels by link and ``links`` those of different ones;
    otherwise ``agree`` (0,) is empty. ``coupling`` (m,) or (m, K): that of the problem, with its number of
    labels, which fill a row of a message up to ``width``.
    """

    unary: Floats
    links: Floats
    agree: Floats
    coupling: Floats
    n_labels: int
    width: int


@inline_kernel
def outgoing(
    indptr: ShortInts, split: ShortInts, later_ptr: ShortInts, place: int, forwards: bool
) -> tuple[int, int, int]:
    """Half-edges first:last that a place sends along in a pass; the one at s writes ``rows[offset + s]``."""
    if forwards:
        first = split[place]
        return first, indptr[place + 1], later_ptr[place] - first
    return indptr[place], split[place], -later_ptr[place]


@inline_kernel
def row_to_write(rows: ShortInts, at: int, forwards: bool, messages: Floats, width: int) -> int:
    """First entry of the row that a pass writes as its ``at``-th; prefetches one that comes soon."""
    ahead = _AHEAD if forwards else -_AHEAD
    soon = rows[min(max(at + ahead, 0), rows.shape[0] - 1)] * width
    hint(messages, soon, soon + width)
    return rows[at] * width


@inline_kernel
def row_of_scores(unary: Floats, order: ShortInts, place: int, forwards: bool, n_labels: int) -> int:
    """First entry of the scores of a place; prefetches those of one that comes soon."""
    ahead = _PLACES_AHEAD if forwards else -_PLACES_AHEAD
    soon = order[min(max(place + ahead, 0), order.shape[0] - 1)] * n_labels
    hint(unary, soon, soon + n_labels)
    return order[place] * n_labels


@inline_kernel
def incoming(indptr: ShortInts, place: int, forwards: bool, messages: Floats, width: int) -> tuple[int, int]:
    """First and last-plus-one entry of the messages to a place; prefetches those to one that comes soon."""
    ahead = _PLACES_AHEAD if forwards else -_PLACES_AHEAD
    soon = min(max(place + ahead, 0), indptr.shape[0] - 2)
    hint(messages, indptr[soon] * width, indptr[soon + 1] * width)
    return indptr[place] * width, indptr[place + 1] * width


@inline_kernel
def differ_of(links: Floats, agree: Floats, slot: int) -> float:
    """Potential of different labels."""
    if agree.ndim == 1 and links[slot] < 0.0:
        return 1.0
    return links[slot]


@inline_kernel
def load_own(own: Floats, unary: Floats, row: int, n_labels: int) -> None:
    """Copy the scores that begin at ``row``. A slice would do, but its errors take 1.4 s to compile."""
    for k in range(n_labels):
        own[k] = unary[row + k]


@inline_kernel
def load_agree(links: Floats, agree: Floats, slot: int, edge: int, k: int) -> Any:
    """Potentials of equal labels k, k + 1, ..."""
    if agree.ndim == 2:
        return load(agree, edge * agree.shape[1] + k)
    link = links[slot]
    if link >= 0.0:
        return splat(1.0)
    return splat(0.0 if link == _NEVER else -link)


@inline_kernel
def gain_of(links: Floats, agree: Floats, slot: int) -> float:
    """Agree - differ where a message may be written differ + gain * h (see ``_EVEN``), else ``UNEVEN``."""
    link = links[slot]
    if agree.ndim == 2 or -_EVEN < link < 0.0 or link == _NEVER:
        return UNEVEN
    return 1.0 - link if link >= 0.0 else -link - 1.0


@kernel
def _written_rows(
    indptr: ShortInts, split: ShortInts, reverse: ShortInts
) -> tuple[ShortInts, ShortInts, ShortInts]:
    """``earlier_rows``, ``later_rows`` and ``later_ptr`` of a ``MessageGraph``."""
    n_places = split.shape[0]
    earlier = np.empty(reverse.shape[0] // 2, dtype=np.int32)
    later = np.empty(reverse.shape[0] // 2, dtype=np.int32)
    later_ptr = np.zeros(n_places + 1, dtype=np.int32)
    for place in range(n_places):
        n_later = later_ptr[place]
        for slot in range(indptr[place], split[place]):
            earlier[slot - n_later] = reverse[slot]
        for slot in range(split[place], indptr[place + 1]):
            later[n_later + slot - split[place]] = reverse[slot]
        later_ptr[place + 1] = n_later + indptr[place + 1] - split[place]
    return earlier, later, later_ptr


def message_graph(
    graph: Adjacency, nodes: ShortInts | None = None, stays: Bools | None = None
) -> MessageGraph:
    """Lay the graph, or the components of it that have these nodes, out for sweeps in breadth-first order.

    On a forest every place then has one earlier neighbour, its parent, so that one sweep backwards and
    forwards is exact. Only nodes that ``stays`` (n,) says get a place; the others hang on them as trees.
    """
    order = breadth_first_order(graph, nodes)
    if stays is not None:
        order = order[stays[order]]
    indptr, split, target, edges = renumbered(order, graph)
    del target
    earlier, later, later_ptr = _written_rows(
        indptr, split, reversed_slots(edges, int(edges.max(initial=-1)) + 1)
    )
    max_degree = int(np.diff(indptr).max(initial=0))
    return MessageGraph(order, indptr, split, edges, earlier, later, later_ptr, max_degree)


def targets(graph: MessageGraph) -> ShortInts:
    """The place (2 m,) at the other end of each half-edge."""
    owner = np.repeat(np.arange(len(graph.order), dtype=np.int32), np.diff(graph.indptr))
    return owner[reversed_slots(graph.edges, int(graph.edges.max(initial=-1)) + 1)]


@kernel
def shift_scores(table: Floats, order: ShortInts) -> float:
    """Subtract from each of these rows its largest score; the sum, or -inf if a row has no other score."""
    total = 0.0
    lost = 0.0
    for place in range(order.shape[0]):
        row = table[order[place]]
        top = -np.inf
        for k in range(row.shape[0]):
            top = max(top, row[k])
        if top == -np.inf:
            return top
        for k in range(row.shape[0]):
            row[k] -= top
        # Compensated: digits lost to a long sum are added at its end.
        top += lost
        new = total + top
        lost = top - (new - total)
        total = new
    return total + lost


@kernel
def to_numbers(table: Floats, order: ShortInts) -> None:
    """Replace the shifted scores of these rows by their exponentials, as ``PotentialTables`` says."""
    for place in range(order.shape[0]):
        row = table[order[place]]
        for k in range(row.shape[0]):
            if row[k] > _LOWEST:
                row[k] = exp_nonpositive(row[k])


@kernel
def to_scores(table: Floats, order: ShortInts) -> None:
    """Take ``to_numbers`` back."""
    for place in range(order.shape[0]):
        row = table[order[place]]
        for k in range(row.shape[0]):
            if row[k] > 0.0:
                row[k] = math.log(row[k])


def potential_tables(table: Floats, problem: Problem, links: LinkTables) -> PotentialTables:
    """Shifted scores (n, K), or their exponentials, and the links for a sweep."""
    n_labels = table.shape[1]
    return PotentialTables(table.reshape(-1), *links, problem.coupling, n_labels, padded(n_labels))


def link_tables(problem: Problem, graph: MessageGraph, arithmetic: int) -> LinkTables:
    """Potentials of the links in the layout of ``graph``; scores do not matter.

    ``LINEAR`` and ``LOGARITHMIC``: in [0, 1]; ``MAXIMUM``: logarithms.
    """
    coupling = problem.coupling
    if coupling.ndim == 1:
        links = coupling[graph.edges]
        if arithmetic != MAXIMUM:
            repels = links < 0.0
            np.negative(np.abs(links, out=links), out=links)
            np.exp(links, out=links)
            links[repels & (links == 0.0)] = -_NEVER
            np.negative(links, out=links, where=repels)
        return LinkTables(links, np.empty(0))
    shift = np.maximum(coupling.max(axis=1), 0.0)
    agree = np.zeros((len(coupling), padded(coupling.shape[1])))
    agree[:, : coupling.shape[1]] = coupling - shift[:, None]
    links = -shift[graph.edges]
    if arithmetic != MAXIMUM:
        np.exp(agree, out=agree)
        np.exp(links, out=links)
    return LinkTables(links, agree)
