"""The graph as message passing reads it: places in sweep order, every message beside its reader.

A message is a row of a ``(2 m, width)`` table. Row s belongs to the half-edge s of its *receiver*, so a node
reads its incoming messages in one piece and writes outgoing ones to the rows ``reverse[s]``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from linkwise._kernels import kernel
from linkwise._kernels.lanes import padded
from linkwise.graph import Adjacency, breadth_first_order, greedy_colouring
from linkwise.inference.problem import Problem

__all__ = [
    "AHEAD",
    "EVEN",
    "LINEAR",
    "LOGARITHMIC",
    "MAXIMUM",
    "UNEVEN",
    "LinkTables",
    "MessageGraph",
    "PotentialTables",
    "coloured_order",
    "link_tables",
    "message_graph",
    "potential_tables",
    "reward_shift",
]

#: How messages are represented: probabilities, their logarithms, or scores of the best labelling.
LINEAR, LOGARITHMIC, MAXIMUM = 0, 1, 2
#: A message differ + gain * h with gain < 0 cancels where h is near 1: relative to its smallest value, agree,
#: rounding is off by 2e-16 / agree. Cannot-links with a smaller potential take the longer way.
EVEN = 1e-3
#: The ``gain`` of such links; a true gain lies in [-1, 1].
UNEVEN = -2.0
#: How many messages before it is written a row is fetched. Hardware does not foresee the rows of neighbours:
#: without, a sweep over a random graph takes 1.6 times as long.
AHEAD = 12
#: Rows of scores laid out at a time, so that there is no second table in between.
_ROWS = 4096


class MessageGraph(NamedTuple):
    """Half-edges by place, those to earlier places before those to later ones.

    Attributes
    ----------
    order : (n,) int64
        The node at each place; a sweep visits the places in turn.
    indptr : (n + 1,) int64
        Half-edges of place p are ``indptr[p]:indptr[p + 1]``.
    split : (n,) int64
        The first half-edge of a place that leads to a later place.
    target : (2 m,) int64
        Place at the other end.
    reverse : (2 m,) int64
        The same link seen from the other end.
    edges : (2 m,) int64
        Row of ``pairs`` of the problem.
    earlier_rows, later_rows : (m,) int64
        The rows that a pass to earlier and a pass to later places write, in the order of the half-edges.
    later_ptr : (n + 1,) int64
        A place writes ``later_rows[later_ptr[p]:later_ptr[p + 1]]``.
    max_degree : int
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

    Attributes
    ----------
    unary : (n * width,) float64
        Rows by place, shifted so that the largest log entry is 0; padding is a label nobody can take.
    agree : (2 m,) or (m, width) float64
        Potential of equal labels, per half-edge; per link and label if the coupling is.
    differ : (2 m,) float64
        Potential of different labels, per half-edge.
    gain : (2 m,) float64
        agree - differ where a message may be written differ + gain * h (see ``EVEN``); ``UNEVEN`` for
        couplings per label and for strong cannot-links.
    coupling : (m,) or (m, K) float64
        The coupling of the problem.
    """

    unary: NDArray[np.float64]
    agree: NDArray[np.float64]
    differ: NDArray[np.float64]
    gain: NDArray[np.float64]
    coupling: NDArray[np.float64]


@kernel
def _lay_out(
    order: NDArray[np.int64],
    indptr: NDArray[np.int64],
    neighbours: NDArray[np.int64],
    edges: NDArray[np.int64],
) -> tuple[NDArray[np.int64], ...]:
    """Half-edges in the order of the places, earlier targets first, and the way back of each."""
    n_nodes = order.shape[0]
    place = np.empty(n_nodes, dtype=np.int64)
    for position in range(n_nodes):
        place[order[position]] = position
    new_indptr = np.empty(n_nodes + 1, dtype=np.int64)
    split = np.empty(n_nodes, dtype=np.int64)
    target = np.empty(edges.shape[0], dtype=np.int64)
    reverse = np.empty(edges.shape[0], dtype=np.int64)
    new_edges = np.empty(edges.shape[0], dtype=np.int64)
    slot_of = np.full(edges.shape[0] // 2, -1, dtype=np.int64)
    slot = 0
    new_indptr[0] = 0
    for position in range(n_nodes):
        node = order[position]
        for later in range(2):
            if later:
                split[position] = slot
            for old in range(indptr[node], indptr[node + 1]):
                other = place[neighbours[old]]
                if (other > position) != (later == 1):
                    continue
                edge = edges[old]
                target[slot] = other
                new_edges[slot] = edge
                if slot_of[edge] < 0:
                    slot_of[edge] = slot
                else:
                    reverse[slot] = slot_of[edge]
                    reverse[slot_of[edge]] = slot
                slot += 1
        new_indptr[position + 1] = slot
    return new_indptr, split, target, reverse, new_edges


def message_graph(graph: Adjacency, order: NDArray[np.int64] | None = None) -> MessageGraph:
    """Lay the graph out for sweeps in a given order.

    Parameters
    ----------
    graph : Adjacency
    order : (n,) int64, optional
        The node at each place; breadth first by default. On a forest that makes the pass from the
        last place to the first and back exact: every node has one earlier neighbour, its parent.

    Returns
    -------
    MessageGraph

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise.graph import adjacency
    >>> from linkwise.inference.messages.layout import message_graph
    >>> path = message_graph(adjacency(3, np.array([[0, 2], [1, 2]])))
    >>> path.order, path.target, path.reverse
    (array([0, 2, 1]), array([1, 0, 2, 1]), array([1, 0, 3, 2]))
    """
    if order is None:
        order = breadth_first_order(graph)
    indptr, split, target, reverse, edges = _lay_out(order, graph.indptr, graph.neighbours, graph.edges)
    degree = np.diff(indptr)
    later = target > np.repeat(np.arange(len(order)), degree)
    later_ptr = np.concatenate([[0], np.cumsum(indptr[1:] - split)])
    return MessageGraph(
        order, indptr, split, target, reverse, edges,
        reverse[~later], reverse[later], later_ptr, int(degree.max(initial=0)),
    )  # fmt: skip


def coloured_order(graph: Adjacency) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Nodes by colour, and where each colour starts: no link joins two nodes of one colour.

    Parameters
    ----------
    graph : Adjacency

    Returns
    -------
    order : (n,) int64
    class_ptr : (n_colours + 1,) int64

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise.graph import adjacency
    >>> from linkwise.inference.messages.layout import coloured_order
    >>> coloured_order(adjacency(3, np.array([[0, 2], [1, 2]])))
    (array([2, 0, 1]), array([0, 1, 3]))
    """
    colours = greedy_colouring(graph)
    class_ptr = np.concatenate([[0], np.cumsum(np.bincount(colours))])
    return np.argsort(colours, kind="stable"), class_ptr


def potential_tables(
    problem: Problem, graph: MessageGraph, arithmetic: int, links: LinkTables | None = None
) -> PotentialTables:
    """Unary and link potentials in the layout of ``graph``.

    Parameters
    ----------
    problem : Problem
    graph : MessageGraph
    arithmetic : {LINEAR, LOGARITHMIC, MAXIMUM}
        ``LINEAR``: all in [0, 1]; ``LOGARITHMIC``: log unary, links in [0, 1]; ``MAXIMUM``: all logarithms.
    links : LinkTables, optional
        Those of ``link_tables``, if they are known.

    Returns
    -------
    PotentialTables
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
    return PotentialTables(unary.ravel(), *links, problem.coupling)


def link_tables(problem: Problem, graph: MessageGraph, arithmetic: int) -> LinkTables:
    """Potentials of the links in the layout of ``graph``.

    Parameters
    ----------
    problem : Problem
        Only its links and its number of labels matter.
    graph : MessageGraph
    arithmetic : {LINEAR, LOGARITHMIC, MAXIMUM}

    Returns
    -------
    LinkTables
    """
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
        np.subtract(agree, differ, out=gain, where=links >= np.log(EVEN))
    return LinkTables(agree, differ, gain)


def reward_shift(coupling: NDArray[np.float64]) -> NDArray[np.float64]:
    """What the tables subtract from the log potentials of each link so that none exceeds 0."""
    if coupling.ndim == 1:
        return np.zeros(len(coupling))
    return np.maximum(coupling.max(axis=1), 0.0)
