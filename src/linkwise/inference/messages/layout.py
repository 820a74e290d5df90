"""The graph and the potentials as message passing reads them: places in sweep order, messages by receiver.

A message is a row of a ``(2 m, width)`` table. Row s belongs to the half-edge s of its *receiver*, so a node
reads its incoming messages in one piece and writes outgoing ones to the rows ``reverse[s]``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from linkwise._kernels import inline_kernel, kernel
from linkwise._kernels.simd import hint, load, padded, splat
from linkwise.graph import Adjacency, breadth_first_order
from linkwise.inference.problem import Problem
from linkwise.inference.sweep_layout import renumbered

__all__ = [
    "CONTRADICTION",
    "LINEAR",
    "LOGARITHMIC",
    "MAXIMUM",
    "OUT_OF_RANGE",
    "UNEVEN",
    "LinkTables",
    "MessageGraph",
    "PotentialTables",
    "link_tables",
    "load_agree",
    "message_graph",
    "outgoing",
    "potential_tables",
    "reward_shift",
    "row_to_write",
]

#: Returned instead of a change when a message left the range of floats, and when no label is left for a node.
OUT_OF_RANGE, CONTRADICTION = -1.0, -2.0
#: How messages are represented: probabilities, their logarithms, or scores of the best labelling.
LINEAR, LOGARITHMIC, MAXIMUM = 0, 1, 2
#: A message differ + gain * h with gain < 0 cancels where h is near 1: relative to its smallest value, agree,
#: rounding is off by 2e-16 / agree. Cannot-links with a smaller potential take the longer way.
_EVEN = 1e-3
#: The ``gain`` of such links; a true gain lies in [-1, 1].
UNEVEN = -2.0
#: How many messages before it is written a row is fetched. Hardware does not foresee the rows of neighbours:
#: without, a sweep over a random graph takes 1.6 times as long.
_AHEAD = 12
#: Rows of scores laid out at a time, so that there is no second table in between.
_ROWS = 4096


class MessageGraph(NamedTuple):
    """Half-edges by place, those to earlier places before those to later ones.

    A sweep visits the places in turn; ``order`` (n,) has the node at each. Place p has the half-edges
    ``indptr[p]:indptr[p + 1]``, from ``split[p]`` on those to later places. By half-edge (2 m,):
    ``target``, the place at the other end; ``reverse``, the same link seen from there; ``edges``, the row
    of ``pairs``. ``earlier_rows`` and ``later_rows`` (m,) are the rows that a pass to earlier and to later
    places writes, in the order of the half-edges; a place writes ``later_rows[later_ptr[p]:later_ptr[p +
    1]]``.
    """

    order: NDArray[np.int64]
    indptr: NDArray[np.int64]
    split: NDArray[np.int64]
    target: NDArray[np.int64]
    reverse: NDArray[np.int64]
    edges: NDArray[np.int64]
    earlier_rows: NDArray[np.int64]
    later_rows: NDArray[np.int64]
    later_ptr: NDArray[np.int64]
    max_degree: int


class LinkTables(NamedTuple):
    """The part of the ``PotentialTables`` that scores do not change."""

    agree: NDArray[np.float64]
    differ: NDArray[np.float64]
    gain: NDArray[np.float64]


class PotentialTables(NamedTuple):
    """Scores and links laid out for a sweep, with rows padded to ``width``.

    ``unary`` (n * width,): rows by place, shifted so that the largest log entry is 0; the labels of the
    padding are forbidden. ``agree`` (2 m,) or (m, width) and ``differ`` (2 m,): potentials of equal and
    different labels, per half-edge; ``agree`` per link and label if the coupling is. ``gain`` (2 m,): agree
    - differ where a message may be written differ + gain * h (see ``_EVEN``), ``UNEVEN`` for couplings per
    label and strong cannot-links. ``coupling`` (m,) or (m, K): that of the problem, with its number of
    labels.
    """

    unary: NDArray[np.float64]
    agree: NDArray[np.float64]
    differ: NDArray[np.float64]
    gain: NDArray[np.float64]
    coupling: NDArray[np.float64]
    n_labels: int


@inline_kernel
def outgoing(
    indptr: NDArray[np.int64],
    split: NDArray[np.int64],
    later_ptr: NDArray[np.int64],
    place: int,
    forwards: bool,
) -> tuple[int, int, int]:
    """Half-edges first:last that a place sends along in a pass; the one at s writes ``rows[offset + s]``."""
    if forwards:
        first = split[place]
        return first, indptr[place + 1], later_ptr[place] - first
    return indptr[place], split[place], -later_ptr[place]


@inline_kernel
def row_to_write(
    rows: NDArray[np.int64], at: int, forwards: bool, messages: NDArray[np.float64], width: int
) -> int:
    """First entry of the row that a pass writes as its ``at``-th; prefetches one that comes soon."""
    ahead = _AHEAD if forwards else -_AHEAD
    soon = rows[min(max(at + ahead, 0), rows.shape[0] - 1)] * width
    hint(messages, soon, soon + width)
    return rows[at] * width


@inline_kernel
def load_agree(agree: NDArray[np.float64], slot: int, edge: int, k: int) -> Any:
    """Potentials of equal labels k, k + 1, ..."""
    if agree.ndim == 1:
        return splat(agree[slot])
    return load(agree, edge * agree.shape[1] + k)


@kernel
def _reversed_slots(edges: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each half-edge the other half-edge of the same link."""
    reverse = np.empty_like(edges)
    slot_of = np.full(edges.shape[0] // 2, -1, dtype=np.int64)
    for slot in range(edges.shape[0]):
        other = slot_of[edges[slot]]
        if other < 0:
            slot_of[edges[slot]] = slot
        else:
            reverse[slot] = other
            reverse[other] = slot
    return reverse


def message_graph(graph: Adjacency) -> MessageGraph:
    """Lay the graph out for sweeps in breadth-first order.

    On a forest every place then has one earlier neighbour, its parent, so that one sweep backwards and
    forwards is exact.
    """
    order = breadth_first_order(graph)
    indptr, split, target, edges = renumbered(order, *graph)
    reverse = _reversed_slots(edges)
    degree = np.diff(indptr)
    later = target > np.repeat(np.arange(len(order)), degree)
    later_ptr = np.concatenate([[0], np.cumsum(indptr[1:] - split)])
    return MessageGraph(
        order, indptr, split, target, reverse, edges,
        reverse[~later], reverse[later], later_ptr, int(degree.max(initial=0)),
    )  # fmt: skip


def potential_tables(
    problem: Problem, graph: MessageGraph, arithmetic: int, links: LinkTables | None = None
) -> PotentialTables:
    """Scores and links in the layout of ``graph``; ``links`` are those of ``link_tables``, if known.

    ``LINEAR``: all in [0, 1]; ``LOGARITHMIC``: log unary, links in [0, 1]; ``MAXIMUM``: all logarithms.
    """
    n_nodes, n_labels = problem.unary.shape
    unary = np.full((n_nodes, padded(n_labels)), -np.inf)
    for start in range(0, n_nodes, _ROWS):
        rows = slice(start, start + _ROWS)
        unary[rows, :n_labels] = problem.unary[graph.order[rows]]
    unary -= unary.max(axis=1, keepdims=True)
    if arithmetic == LINEAR:
        np.exp(unary, out=unary)
    if links is None:
        links = link_tables(problem, graph, arithmetic)
    return PotentialTables(unary.ravel(), *links, problem.coupling, n_labels)


def link_tables(problem: Problem, graph: MessageGraph, arithmetic: int) -> LinkTables:
    """Potentials of the links in the layout of ``graph``; scores do not matter."""
    n_labels = problem.unary.shape[1]
    if problem.coupling.ndim == 1:
        links = problem.coupling[graph.edges]
        agree, differ = np.minimum(links, 0.0), -np.maximum(links, 0.0)
    else:
        shift = reward_shift(problem.coupling)
        agree = np.zeros((len(problem.coupling), padded(n_labels)))
        agree[:, :n_labels] = problem.coupling - shift[:, None]
        differ = -shift[graph.edges]
    if arithmetic != MAXIMUM:
        np.exp(agree, out=agree)
        np.exp(differ, out=differ)
    gain = np.full(len(differ), UNEVEN)
    if problem.coupling.ndim == 1:
        np.subtract(agree, differ, out=gain, where=links >= np.log(_EVEN))
    return LinkTables(agree, differ, gain)


def reward_shift(coupling: NDArray[np.float64]) -> NDArray[np.float64]:
    """What the tables subtract from the log potentials of each link so that none exceeds 0."""
    if coupling.ndim == 1:
        return np.zeros(len(coupling))
    return np.maximum(coupling.max(axis=1), 0.0)
