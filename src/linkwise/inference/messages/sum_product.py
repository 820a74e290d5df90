"""Sum-product belief propagation: marginals from messages, exact on forests, close to it on most loops.

Beliefs and the Bethe log partition function come from the messages at the end. With h_ij(k) the product of
exp(unary_ik) and all messages to i but that of j (Yedidia, Freeman & Weiss 2005),

    log Z = sum_i log Z_i - sum_{links ij} (log Z_i + log Z_j - log Z_ij),
    Z_i  = sum_k h_ij(k) m_ji(k)  for any j,      Z_ij = sum_{a,b} psi(a, b) h_ij(a) h_ji(b).

It is stationary in the messages, so a small error of theirs counts only squared, and exact on forests.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any

import numpy as np

from linkwise._arrays import Bools, Floats
from linkwise._kernels import inline_kernel, kernel
from linkwise._kernels.math import exp_nonpositive
from linkwise._kernels.simd import padded
from linkwise._threads import Workers
from linkwise.graph import Adjacency
from linkwise.inference.engines import EngineMarginals, marginals_engine, number, whole
from linkwise.inference.exact.forest import RootedForest, fill_forest, hanging_trees
from linkwise.inference.messages.layout import (
    CONTRADICTION,
    LINEAR,
    LOGARITHMIC,
    OUT_OF_RANGE,
    LinkTables,
    MessageGraph,
    PotentialTables,
    link_tables,
    load_own,
    message_graph,
    outgoing,
    potential_tables,
    row_of_scores,
    row_to_write,
    shift_scores,
    to_numbers,
    to_scores,
)
from linkwise.inference.messages.logarithmic import log_message, sum_before
from linkwise.inference.messages.sweeps import (
    LOGARITHMIC_ENTRY,
    SETTLED,
    Bands,
    Propagation,
    run_to_fixed_point,
    sweep_bands,
    sweeps,
    sweeps_within,
)
from linkwise.inference.problem import Problem, cached, log_agree


@marginals_engine(
    "belief_propagation",
    uses_initial=False,
    differentiable=True,
    damping=number(below=1.0),
    tol=number(positive=True),
    max_iter=whole(1),
    max_work=number(positive=True, optional=True),
)
def belief_propagation(
    problem: Problem,
    rng: np.random.Generator,
    *,
    initial: Floats | None = None,
    n_threads: int = 1,
    damping: float = 0.3,
    tol: float = 1e-8,
    max_iter: int = 300,
    max_work: float | None = None,
) -> EngineMarginals:
    """Marginals, pair agreements and the Bethe log partition function by loopy belief propagation.

    Exact on forests, after one sweep and one more to see that nothing moves. Messages start flat, without
    random jitter: where a field is symmetric, the symmetric fixed point is the right marginal. ``initial``
    is not used: first messages made from the marginals of a similar problem saved one sweep of ten where
    the fixed point is unique, and led to another one, no better, where it is not. ``damping`` is the share
    of the old message that is kept while messages still move by more than a tenth; sweeps end when no log
    message changes by more than ``tol``, or after ``max_iter``. ``max_work`` limits the message entries,
    those in logarithms counted four times, but allows one sweep in any case.

    ``details["residuals"]`` holds the largest change in each sweep, ``details["arithmetic"]`` whether
    messages were plain numbers or, for potentials beyond the range of floats, logarithms,
    ``details["work"]`` the message entries, and ``details["limited"]`` whether their limit ended it.
    """
    prob = problem.unary if problem.may_overwrite_unary else problem.unary.copy()
    agreement = np.full(len(problem.pairs), 1.0 / prob.shape[1])
    return propagate(
        problem, None, None, prob, agreement, n_threads=n_threads, damping=damping, tol=tol,
        max_iter=max_iter, max_work=max_work,
    )  # fmt: skip


def propagate(
    problem: Problem,
    chosen: Bools | None,
    key: Hashable,
    prob: Floats,
    agreement: Floats,
    *,
    n_threads: int = 1,
    damping: float = 0.3,
    tol: float = 1e-8,
    max_iter: int = 300,
    max_work: float | None = None,
) -> EngineMarginals:
    """Belief propagation in the components that have the chosen nodes (None: all), where their scores stand.

    None of these components may be a tree. Trees that hang on their rings are not swept, but solved.
    In ``prob`` (n, K) the scores of the nodes become beliefs, and ``agreement`` (m,) receives that of their
    links; the log partition is theirs alone. What is known of these nodes is cached under ``key``.
    """
    graph, trees = cached(problem, ("message graph", key), lambda: _rings_and_trees(problem.graph, chosen))
    problem.forget_graph()
    constant = fill_forest(trees, problem.coupling, prob, agreement, down=False)
    # The same for messages that are numbers and for those that are logarithms.
    links = cached(problem, ("link tables", key), lambda: link_tables(problem, graph, LINEAR))
    # In breadth-first order every ring leaves a place with two earlier neighbours.
    forest = bool((graph.split - graph.indptr[:-1] <= 1).all())
    constant += shift_scores(prob, graph.order)
    bands = cached(problem, ("bands", key), lambda: sweep_bands(graph, forest))
    workers = Workers(n_threads)
    work, most = 0, max_iter
    arithmetic, run = LINEAR, Propagation(np.empty(0), True, CONTRADICTION)
    # Else a tree leaves the node it hangs on without a label.
    for arithmetic in (LINEAR, LOGARITHMIC) if constant > -np.inf else ():
        per_sweep = (len(graph.edges) + 2 * int((trees.edge >= 0).sum())) * padded(prob.shape[1])
        per_sweep *= LOGARITHMIC_ENTRY if arithmetic == LOGARITHMIC else 1
        most = sweeps_within(None if max_work is None else max_work - work, per_sweep, max_iter)
        messages, run = run_messages(
            problem, graph, arithmetic, links, prob, damping=0.0 if forest else damping, tol=tol,
            max_iter=most, bands=bands, workers=workers,
        )  # fmt: skip
        work += per_sweep * len(run.residuals)
        if run.failure != OUT_OF_RANGE:
            break
        # Freed before those in logarithms are made.
        messages = np.empty(0)
    n_iter = len(run.residuals)
    details: dict[str, Any] = {
        "work": work,
        "limited": not run.converged and n_iter == most < max_iter,
        "residuals": run.residuals,
        "arithmetic": "linear" if arithmetic == LINEAR else "logarithmic",
    }
    if run.failure == CONTRADICTION:
        for nodes, edges in ((graph.order, graph.edges), (trees.order, trees.edge[trees.edge >= 0])):
            prob[nodes], agreement[edges] = np.nan, np.nan
        return EngineMarginals(prob, -np.inf, agreement, True, True, n_iter, "exact", details)
    if arithmetic == LINEAR:
        np.log(messages, out=messages)
    tables = potential_tables(prob, problem, links)
    log_partition = constant + _node_beliefs(graph, tables, messages)
    if log_partition > -np.inf:
        log_partition += _link_beliefs(graph, tables, messages, agreement)
    messages = np.empty(0)
    fill_forest(trees, problem.coupling, prob, agreement, up=False)
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


def _rings_and_trees(graph: Adjacency, chosen: Bools | None) -> tuple[MessageGraph, RootedForest]:
    """Places of the nodes that messages go between, and the trees that hang on them."""
    if chosen is None:
        none = np.empty(0, dtype=np.int32)
        return message_graph(graph), RootedForest(none, none, none)
    nodes = np.flatnonzero(chosen).astype(np.int32)
    trees, stays = hanging_trees(graph, nodes)
    return message_graph(graph, nodes, stays), trees


def run_messages(
    problem: Problem,
    graph: MessageGraph,
    arithmetic: int,
    links: LinkTables,
    scores: Floats,
    *,
    damping: float,
    tol: float,
    max_iter: int,
    bands: Bands | None = None,
    workers: Workers | None = None,
) -> tuple[Floats, Propagation]:
    """Sum-product messages from a flat start in one arithmetic, and how the iteration ended.

    ``scores`` (n, K) are shifted; numbers take their place while the messages are numbers.
    """
    tables = potential_tables(scores, problem, links)
    flat = 1.0 if arithmetic == LINEAR else 0.0
    messages = np.full(len(graph.edges) * tables.width, flat)
    changes = sweeps(
        arithmetic, graph, tables, messages, damping=damping, settled=SETTLED,
        bands=bands, workers=workers,
    )  # fmt: skip
    if arithmetic == LINEAR:
        to_numbers(scores, graph.order)
    run = run_to_fixed_point(changes, tol, max_iter)
    if arithmetic == LINEAR:
        to_scores(scores, graph.order)
    return messages, run


@kernel
def _node_beliefs(graph: MessageGraph, tables: PotentialTables, messages: Floats) -> float:
    """Beliefs of all places take the place of their scores; the terms of the nodes in log Z.

    A cavity, shifted to maximum 0, replaces the message it leaves out. -inf if a node has no label left.
    """
    order, indptr = graph.order, graph.indptr
    unary, n_labels, width = tables.unary, tables.n_labels, tables.width
    before = np.empty(max(graph.max_degree, 1) * width)
    after = np.empty(width)
    own = np.full(width, -np.inf)
    total = 0.0
    lost = 0.0
    for place in range(order.shape[0]):
        first = indptr[place]
        last = indptr[place + 1]
        own_row = row_of_scores(unary, order, place, True, n_labels)
        load_own(own, unary, own_row, n_labels)
        sum_before(own, first, first, last, last, messages, before, after)
        for k in range(n_labels):
            after[k] = before[max(last - first - 1, 0) * width + k]
            if last > first:
                after[k] += messages[(last - 1) * width + k]
        top = _largest(after, 0, n_labels)
        if top == -np.inf:
            return -np.inf
        mass = 0.0
        for k in range(n_labels):
            after[k] = exp_nonpositive(after[k] - top)
            mass += after[k]
        for k in range(n_labels):
            unary[own_row + k] = after[k] / mass
        log_mass = math.log(mass)
        term = top + log_mass
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
            term -= (top - highest) + log_mass
        # Compensated: digits lost to a long sum are added at its end.
        term += lost
        new = total + term
        lost = term - (new - total)
        total = new
    return total + lost


@inline_kernel
def _largest(values: Floats, start: int, n_labels: int) -> float:
    """Largest entry of one row."""
    top = -np.inf
    for k in range(n_labels):
        top = max(top, values[start + k])
    return top


@kernel
def _link_beliefs(graph: MessageGraph, tables: PotentialTables, cavities: Floats, agreement: Floats) -> float:
    """Probability of equal labels of every link from the cavities of its two ends; the sum of log Z_ij."""
    indptr, split, later_ptr, edges = graph.indptr, graph.split, graph.later_ptr, graph.edges
    links, agree, coupling = tables.links, tables.agree, tables.coupling
    n_labels, width = tables.n_labels, tables.width
    mine = np.empty(width)
    weight = np.empty(width)
    joint = np.empty(width)
    total = 0.0
    lost = 0.0
    for place in range(split.shape[0]):
        first, last, offset = outgoing(indptr, split, later_ptr, place, True)
        for slot in range(first, last):
            edge = edges[slot]
            theirs = row_to_write(graph.later_rows, offset + slot, True, cavities, width)
            for k in range(width):
                mine[k] = cavities[slot * width + k]
            shift = 0.0
            for k in range(n_labels):
                shift = max(shift, log_agree(coupling, edge, k))
            log_message(mine, 0.0, slot, edge, links, agree, coupling, n_labels, weight, joint)
            for k in range(n_labels):
                joint[k] += cavities[theirs + k]
            top = _largest(joint, 0, n_labels)
            if top == -np.inf:
                return -np.inf
            mass = 0.0
            equal = 0.0
            for k in range(n_labels):
                log_equal = log_agree(coupling, edge, k) - shift + (mine[k] + cavities[theirs + k])
                mass += exp_nonpositive(joint[k] - top)
                equal += exp_nonpositive(log_equal - top)
            agreement[edge] = min(equal / mass, 1.0)
            # Compensated: digits lost to a long sum are added at its end.
            term = top + math.log(mass) + shift + lost
            new = total + term
            lost = term - (new - total)
            total = new
    return total + lost
