"""Sum-product belief propagation: marginals from messages, exact on forests, close to it on most loops."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise._lanes import padded
from linkwise.graph import group_labels
from linkwise.inference.bethe import beliefs_from_messages
from linkwise.inference.linear_messages import OUT_OF_RANGE
from linkwise.inference.log_messages import CONTRADICTION
from linkwise.inference.message_graph import (
    LINEAR,
    LOGARITHMIC,
    LinkTables,
    MessageGraph,
    coloured_order,
    link_tables,
    message_graph,
    potential_tables,
)
from linkwise.inference.reduce import Problem, remembered
from linkwise.inference.registry import EngineMarginals, choice, marginals_engine, number, whole
from linkwise.inference.residual_schedule import residual_visits
from linkwise.inference.schedules import SETTLED, Propagation, run_to_fixed_point, sweeps
from linkwise.inference.work import LOGARITHMIC_ENTRY, sweep_work, sweeps_within

__all__ = ["belief_propagation", "is_forest", "message_layout", "run_messages"]


@marginals_engine(
    "belief_propagation",
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
    >>> from linkwise.inference.belief_propagation import belief_propagation
    >>> from linkwise.inference.reduce import reduce_field
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
