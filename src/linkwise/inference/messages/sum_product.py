"""Sum-product belief propagation: marginals from messages, exact on forests, close to it on most loops.

Beliefs and the Bethe log partition function come from the messages at the end. With h_ij(k) the product of
exp(unary_ik) and all messages to i but that of j (Yedidia, Freeman & Weiss 2005),

    log Z = sum_i log Z_i - sum_{links ij} (log Z_i + log Z_j - log Z_ij),
    Z_i  = sum_k h_ij(k) m_ji(k)  for any j,      Z_ij = sum_{a,b} psi(a, b) h_ij(a) h_ji(b).

It is stationary in the messages, so a small error of theirs counts only squared, and exact on forests.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise._kernels import inline_kernel, kernel
from linkwise._kernels.math import exp_nonpositive
from linkwise._kernels.simd import padded
from linkwise._threads import Workers
from linkwise.graph import is_forest
from linkwise.inference.engines import EngineMarginals, marginals_engine, number, whole
from linkwise.inference.messages.layout import (
    CONTRADICTION,
    LINEAR,
    LOGARITHMIC,
    OUT_OF_RANGE,
    LinkTables,
    MessageGraph,
    PotentialTables,
    link_tables,
    message_graph,
    potential_tables,
    reward_shift,
)
from linkwise.inference.messages.logarithmic import log_message, sum_before
from linkwise.inference.messages.sweeps import (
    LOGARITHMIC_ENTRY,
    SETTLED,
    Bands,
    Propagation,
    run_to_fixed_point,
    sweep_bands,
    sweep_work,
    sweeps,
    sweeps_within,
)
from linkwise.inference.problem import Problem, cached, log_agree

__all__ = ["belief_propagation", "run_messages"]


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
    initial: NDArray[np.float64] | None = None,
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
    forest = cached(problem, "is forest", lambda: is_forest(len(problem.unary), problem.pairs))
    graph = cached(problem, "message graph", lambda: message_graph(problem.graph))
    # The same for messages that are numbers and for those that are logarithms.
    links = cached(problem, "link tables", lambda: link_tables(problem, graph, LINEAR))
    bands = cached(problem, "bands", lambda: sweep_bands(graph, forest))
    workers = Workers(n_threads)
    work = 0
    for arithmetic in (LINEAR, LOGARITHMIC):
        per_sweep = sweep_work(problem) * (LOGARITHMIC_ENTRY if arithmetic == LOGARITHMIC else 1)
        most = sweeps_within(None if max_work is None else max_work - work, per_sweep, max_iter)
        messages, run = run_messages(
            problem, graph, arithmetic, links, damping=0.0 if forest else damping, tol=tol, max_iter=most,
            bands=bands, workers=workers,
        )  # fmt: skip
        work += per_sweep * len(run.residuals)
        if run.failure != OUT_OF_RANGE:
            break
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
    prob, agreement, log_partition = _beliefs_from_messages(problem, graph, tables, messages)
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
    links: LinkTables | None = None,
    *,
    damping: float,
    tol: float,
    max_iter: int,
    bands: Bands | None = None,
    workers: Workers | None = None,
) -> tuple[NDArray[np.float64], Propagation]:
    """Sum-product messages from a flat start in one arithmetic, and how the iteration ended."""
    tables = potential_tables(problem, graph, arithmetic, links)
    flat = 1.0 if arithmetic == LINEAR else 0.0
    messages = np.full(len(graph.edges) * padded(tables.n_labels), flat)
    changes = sweeps(
        arithmetic, graph, tables, messages, damping=damping, settled=SETTLED,
        bands=bands, workers=workers,
    )  # fmt: skip
    return messages, run_to_fixed_point(changes, tol, max_iter)


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
        sum_before(place, first, last, indptr, unary, messages, before, after)
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
    width: int,
    shift: NDArray[np.float64],
    agreement: NDArray[np.float64],
    terms: NDArray[np.float64],
) -> None:
    """Probability of equal labels and log Z_ij of every link, from the cavities of its two ends."""
    indptr, split, reverse, edges = graph.indptr, graph.split, graph.reverse, graph.edges
    agree, differ, coupling, n_labels = tables.agree, tables.differ, tables.coupling, tables.n_labels
    mine = np.empty(width)
    weight = np.empty(width)
    joint = np.empty(width)
    for place in range(split.shape[0]):
        for slot in range(split[place], indptr[place + 1]):
            edge = edges[slot]
            theirs = reverse[slot] * width
            for k in range(width):
                mine[k] = cavities[slot * width + k]
            log_message(mine, 0.0, slot, edge, agree, differ, coupling, n_labels, weight, joint)
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


def _beliefs_from_messages(
    problem: Problem, graph: MessageGraph, tables: PotentialTables, messages: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """Node beliefs (n, K), P(equal) of every link, and Bethe's log Z, -inf if a node has no label left.

    ``tables`` and ``messages`` are logarithms; the messages are overwritten.
    """
    n_nodes, n_labels = problem.unary.shape
    width = padded(n_labels)
    constant = problem.unary.max(axis=1).sum()
    prob = problem.unary if problem.may_overwrite_unary else np.empty((n_nodes, n_labels))
    prob[:] = 1.0 / n_labels
    agreement = np.full(len(problem.pairs), 1.0 / n_labels)
    node_terms, link_terms = np.zeros(n_nodes), np.zeros(len(problem.pairs))
    _node_beliefs(graph, tables.unary, messages, n_labels, width, prob, node_terms)
    if (node_terms == -np.inf).any():
        return prob, agreement, -np.inf
    shift = reward_shift(problem.coupling)
    _link_beliefs(graph, tables, messages, width, shift, agreement, link_terms)
    return prob, agreement, float(constant + node_terms.sum() + link_terms.sum())
