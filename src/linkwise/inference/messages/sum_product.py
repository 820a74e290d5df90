"""Sum-product belief propagation: marginals from messages, exact on forests, close to it on most loops.

Beliefs and the Bethe log partition function from the messages of belief propagation.

With h_ij(k) the product of exp(unary_ik) and all messages to i but that of j (Yedidia, Freeman & Weiss 2005),

    log Z = sum_i log Z_i - sum_{links ij} (log Z_i + log Z_j - log Z_ij),
    Z_i  = sum_k h_ij(k) m_ji(k)  for any j,      Z_ij = sum_{a,b} psi(a, b) h_ij(a) h_ji(b).

It is stationary in the messages, so a small error of theirs counts only squared, and exact on forests.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from linkwise._kernels import inline_kernel, kernel
from linkwise._kernels.lanes import padded
from linkwise._kernels.math import exp_nonpositive
from linkwise.graph import group_labels
from linkwise.inference.engines import EngineMarginals, choice, marginals_engine, number, whole
from linkwise.inference.messages.layout import (
    LINEAR,
    LOGARITHMIC,
    LinkTables,
    MessageGraph,
    PotentialTables,
    coloured_order,
    link_tables,
    message_graph,
    potential_tables,
    reward_shift,
)
from linkwise.inference.messages.linear import OUT_OF_RANGE
from linkwise.inference.messages.logarithmic import CONTRADICTION, log_message, sum_before
from linkwise.inference.messages.residual import residual_visits
from linkwise.inference.messages.sweeps import SETTLED, Propagation, run_to_fixed_point, sweeps
from linkwise.inference.problem import Problem, log_agree, remembered
from linkwise.inference.work import LOGARITHMIC_ENTRY, sweep_work, sweeps_within

__all__ = [
    "Beliefs",
    "belief_propagation",
    "beliefs_from_messages",
    "is_forest",
    "message_layout",
    "run_messages",
]


@marginals_engine(
    "belief_propagation",
    uses_initial=False,
    differentiable=True,
    schedule=choice("sequential", "coloured", "residual"),
    damping=number(below=1.0),
    tol=number(positive=True),
    max_iter=whole(1),
    max_work=number(positive=True, optional=True),
)
def belief_propagation(
    problem: Problem,
    rng: np.random.Generator,
    *,
    initial: NDArray[np.float64] | None = None,
    n_threads: int = 1,
    schedule: str = "sequential",
    damping: float = 0.3,
    tol: float = 1e-8,
    max_iter: int = 300,
    max_work: float | None = None,
) -> EngineMarginals:
    """Marginals, pair agreements and the Bethe log partition function by loopy belief propagation.

    Exact on forests, after one sweep and one more to see that nothing moves. Messages start flat, without
    random jitter: where a field is symmetric, the symmetric fixed point is the right marginal.

    Parameters
    ----------
    problem : Problem
    rng : numpy.random.Generator
        Not used.
    initial : (n, K) float64, optional
        Not used. First messages made from the marginals of a similar problem saved one sweep of ten
        where the fixed point is unique, and led to another one, no better, where it is not.
    n_threads : int, default=1
        Used by the coloured schedule.
    schedule : {"sequential", "coloured", "residual"}, default="sequential"
        ``sequential`` sweeps backwards and forwards over a breadth-first order. ``coloured`` visits nodes
        without common links together, so it runs in parallel; on grids it can take twice as many
        sweeps. ``residual`` sends the largest change first: a visit costs several times as much, but
        fields in which changes are local, such as strong must-links on a grid, need fewer.
        Forests are always swept sequentially.
    damping : float, default=0.3
        Share of the old message that is kept while messages still move by more than a tenth.
    tol : float, default=1e-8
        Stop when no log message changes by more than this.
    max_iter : int, default=300
        Limit of sweeps.
    max_work : float or None, default=None
        Limit of message entries, those in logarithms counted four times; allows one sweep in any case.

    Returns
    -------
    EngineMarginals
        ``details["residuals"]`` holds the largest change in each sweep, ``details["arithmetic"]`` whether
        messages were plain numbers or, for potentials beyond the range of floats, logarithms,
        ``details["work"]`` the message entries, and ``details["limited"]`` whether their limit ended it.

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise.inference import PottsField
    >>> from linkwise.inference.messages.sum_product import belief_propagation
    >>> from linkwise.inference.problem import reduce_field
    >>> field = PottsField([[1.0, 0.0], [0.0, 0.0]], pairs=[(0, 1)], coupling=[2.0])
    >>> problem = reduce_field(field, keep_zero_in_component=True).problem
    >>> answer = belief_propagation(problem, np.random.default_rng(0))
    >>> answer.prob.round(3)
    array([[0.731, 0.269],
           [0.676, 0.324]])
    >>> answer.exact, answer.n_iter
    (True, 2)
    """
    forest = remembered(problem, "is forest", lambda: is_forest(problem))
    if forest:
        schedule, damping = "sequential", 0.0
    graph, class_ptr = remembered(
        problem, ("message layout", schedule), lambda: message_layout(problem, schedule)
    )
    by_residual = schedule == "residual"
    # The same for messages that are numbers and for those that are logarithms.
    links = remembered(problem, ("link tables", schedule), lambda: link_tables(problem, graph, LINEAR))
    arithmetic = LOGARITHMIC if by_residual else LINEAR
    per_sweep = sweep_work(problem) * (LOGARITHMIC_ENTRY if by_residual else 1)
    most = sweeps_within(max_work, per_sweep, max_iter)
    messages, run = run_messages(
        problem, graph, arithmetic, class_ptr, by_residual=by_residual,
        damping=damping, tol=tol, max_iter=most, n_threads=n_threads, links=links,
    )  # fmt: skip
    work = per_sweep * len(run.residuals)
    if run.failure == OUT_OF_RANGE:
        arithmetic = LOGARITHMIC
        per_sweep *= LOGARITHMIC_ENTRY
        most = sweeps_within(None if max_work is None else max_work - work, per_sweep, max_iter)
        messages, run = run_messages(
            problem, graph, arithmetic, class_ptr, by_residual=by_residual,
            damping=damping, tol=tol, max_iter=most, n_threads=n_threads, links=links,
        )  # fmt: skip
        work += per_sweep * len(run.residuals)
    n_iter = len(run.residuals)
    details: dict[str, Any] = {
        "work": work,
        "limited": not run.converged and n_iter == most < max_iter,
        "residuals": run.residuals,
        "arithmetic": "linear" if arithmetic == LINEAR else "logarithmic",
    }
    if run.failure == CONTRADICTION:
        prob = np.full(problem.unary.shape, np.nan)
        agreement = np.full(len(problem.pairs), np.nan)
        return EngineMarginals(prob, -np.inf, agreement, True, True, n_iter, "exact", details)
    if arithmetic == LINEAR:
        np.log(messages, out=messages)
    tables = potential_tables(problem, graph, LOGARITHMIC, links)
    prob, agreement, log_partition = beliefs_from_messages(problem, graph, tables, messages)
    # A node without a label proves that there is no labelling, whatever the graph.
    exact = (forest and run.converged) or log_partition == -np.inf
    return EngineMarginals(
        prob=prob,
        log_partition=log_partition,
        agreement=agreement,
        exact=exact,
        converged=run.converged,
        n_iter=n_iter,
        log_partition_kind="exact" if exact else "bethe",
        details=details,
    )


def run_messages(
    problem: Problem,
    graph: MessageGraph,
    arithmetic: int,
    class_ptr: NDArray[np.int64],
    *,
    by_residual: bool,
    damping: float,
    tol: float,
    max_iter: int,
    n_threads: int,
    links: LinkTables | None = None,
) -> tuple[NDArray[np.float64], Propagation]:
    """Sum-product messages from a flat start in one arithmetic, and how the iteration ended."""
    n_labels = problem.unary.shape[1]
    tables = potential_tables(problem, graph, arithmetic, links)
    messages = np.full(len(graph.edges) * padded(n_labels), 1.0 if arithmetic == LINEAR else 0.0)
    if by_residual:
        changes = residual_visits(graph, tables, messages, n_labels, damping=damping, tol=tol)
    else:
        changes = sweeps(
            arithmetic, graph, class_ptr, tables, messages, n_labels,
            damping=damping, settled=SETTLED, n_threads=n_threads,
        )  # fmt: skip
    return messages, run_to_fixed_point(changes, tol, max_iter)


def message_layout(problem: Problem, schedule: str) -> tuple[MessageGraph, NDArray[np.int64]]:
    """Message graph in the order of a schedule, and the classes that may be visited together."""
    if schedule == "coloured":
        order, class_ptr = coloured_order(problem.graph)
        return message_graph(problem.graph, order), class_ptr
    return message_graph(problem.graph), np.array([0, len(problem.unary)])


def is_forest(problem: Problem) -> bool:
    """Whether the graph has no cycle: a forest has as many links as nodes minus components."""
    n_nodes = len(problem.unary)
    _, n_components = group_labels(n_nodes, problem.pairs)
    return len(problem.pairs) == n_nodes - n_components


class Beliefs(NamedTuple):
    """What the messages say.

    Attributes
    ----------
    prob : (n, K) float64
    agreement : (m,) float64
    log_partition : float
        ``-inf`` if some node has no label left.
    """

    prob: NDArray[np.float64]
    agreement: NDArray[np.float64]
    log_partition: float


@kernel
def _node_beliefs(
    graph: MessageGraph,
    unary: NDArray[np.float64],
    messages: NDArray[np.float64],
    n_labels: int,
    width: int,
    prob: NDArray[np.float64],
    terms: NDArray[np.float64],
) -> None:
    """Beliefs of all places; a cavity, shifted to maximum 0, replaces the message it leaves out."""
    order, indptr = graph.order, graph.indptr
    before = np.empty(max(graph.max_degree, 1) * width)
    after = np.empty(width)
    for place in range(order.shape[0]):
        first = indptr[place]
        last = indptr[place + 1]
        sum_before(place, first, first, last, last, unary, messages, width, before, after)
        for k in range(n_labels):
            after[k] = before[max(last - first - 1, 0) * width + k]
            if last > first:
                after[k] += messages[(last - 1) * width + k]
        top = _largest(after, 0, n_labels)
        if top == -np.inf:
            terms[place] = -np.inf
            return
        mass = 0.0
        for k in range(n_labels):
            after[k] = exp_nonpositive(after[k] - top)
            mass += after[k]
        for k in range(n_labels):
            prob[order[place], k] = after[k] / mass
        log_mass = math.log(mass)
        terms[place] = top + log_mass
        after[:] = 0.0
        for slot in range(last - 1, first - 1, -1):
            row = slot * width
            for k in range(n_labels):
                incoming = messages[row + k]
                messages[row + k] = before[(slot - first) * width + k] + after[k]
                after[k] += incoming
            highest = _largest(messages, row, n_labels)
            for k in range(n_labels):
                messages[row + k] -= highest
            for k in range(n_labels, width):
                messages[row + k] = -np.inf
            terms[place] -= (top - highest) + log_mass


@inline_kernel
def _largest(values: NDArray[np.float64], start: int, n_labels: int) -> float:
    """Largest entry of one row."""
    top = -np.inf
    for k in range(n_labels):
        top = max(top, values[start + k])
    return top


@kernel
def _link_beliefs(
    graph: MessageGraph,
    tables: PotentialTables,
    cavities: NDArray[np.float64],
    n_labels: int,
    width: int,
    shift: NDArray[np.float64],
    agreement: NDArray[np.float64],
    terms: NDArray[np.float64],
) -> None:
    """Probability of equal labels and log Z_ij of every link, from the cavities of its two ends."""
    indptr, split, reverse, edges = graph.indptr, graph.split, graph.reverse, graph.edges
    agree, differ, coupling = tables.agree, tables.differ, tables.coupling
    mine = np.empty(width)
    weight = np.empty(width)
    joint = np.empty(width)
    for place in range(split.shape[0]):
        for slot in range(split[place], indptr[place + 1]):
            edge = edges[slot]
            theirs = reverse[slot] * width
            for k in range(width):
                mine[k] = cavities[slot * width + k]
            log_message(mine, 0.0, slot, edge, agree, differ, coupling, n_labels, width, weight, joint)
            for k in range(n_labels):
                joint[k] += cavities[theirs + k]
            top = _largest(joint, 0, n_labels)
            if top == -np.inf:
                terms[edge] = -np.inf
                return
            mass = 0.0
            equal = 0.0
            for k in range(n_labels):
                log_equal = log_agree(coupling, edge, k) - shift[edge] + (mine[k] + cavities[theirs + k])
                mass += exp_nonpositive(joint[k] - top)
                equal += exp_nonpositive(log_equal - top)
            terms[edge] = top + math.log(mass) + shift[edge]
            agreement[edge] = min(equal / mass, 1.0)


def beliefs_from_messages(
    problem: Problem, graph: MessageGraph, tables: PotentialTables, messages: NDArray[np.float64]
) -> Beliefs:
    """Node and link beliefs and the Bethe log partition function.

    Parameters
    ----------
    problem : Problem
    graph : MessageGraph
    tables : PotentialTables
        In ``LOGARITHMIC`` form.
    messages : (2 m * width,) float64
        Log messages; overwritten.

    Returns
    -------
    Beliefs
    """
    n_nodes, n_labels = problem.unary.shape
    width = padded(n_labels)
    constant = problem.unary.max(axis=1).sum()
    prob = problem.unary if problem.disposable else np.empty((n_nodes, n_labels))
    prob[:] = 1.0 / n_labels
    agreement = np.full(len(problem.pairs), 1.0 / n_labels)
    node_terms, link_terms = np.zeros(n_nodes), np.zeros(len(problem.pairs))
    _node_beliefs(graph, tables.unary, messages, n_labels, width, prob, node_terms)
    if (node_terms == -np.inf).any():
        return Beliefs(prob, agreement, -np.inf)
    shift = reward_shift(problem.coupling)
    _link_beliefs(graph, tables, messages, n_labels, width, shift, agreement, link_terms)
    return Beliefs(prob, agreement, float(constant + node_terms.sum() + link_terms.sum()))
