"""Max-product belief propagation: a labelling of high score, polished; the best one on forests."""

from __future__ import annotations

import numpy as np

from linkwise._arrays import Floats, Ints, ShortInts
from linkwise._kernels import kernel
from linkwise._kernels.simd import WIDTH, load, padded, store
from linkwise._threads import Workers
from linkwise.graph import group_labels, is_forest
from linkwise.inference.engines import EngineLabels, labels_engine, number, whole
from linkwise.inference.local_search.forest_descent import polish
from linkwise.inference.messages.layout import (
    CONTRADICTION,
    MAXIMUM,
    MessageGraph,
    PotentialTables,
    link_tables,
    load_own,
    message_graph,
    potential_tables,
    shift_scores,
    targets,
)
from linkwise.inference.messages.sweeps import SETTLED, sweep_bands, sweep_work, sweeps, sweeps_within
from linkwise.inference.problem import Problem, log_ratio
from linkwise.inference.scoring import component_scores, n_broken, problem_score

# Noise that breaks ties, as a share of the typical score.
_JITTER = 1e-6
# Sweeps without a better labelling after which the rest is left to the polish.
_PATIENCE = 100


@kernel
def _decode(
    graph: MessageGraph, target: ShortInts, tables: PotentialTables, messages: Floats, labels: Ints
) -> None:
    """Label the places in turn: the best label given those of earlier neighbours and what later ones say.

    On a forest in breadth-first order this is the back-tracking of dynamic programming. Elsewhere it
    breaks ties consistently, where the best label of each belief by itself would not.
    """
    order, indptr, split, edges = graph.order, graph.indptr, graph.split, graph.edges
    unary, coupling, n_labels = tables.unary, tables.coupling, tables.n_labels
    width = tables.width
    score = np.empty(width)
    for place in range(order.shape[0]):
        row = order[place] * n_labels
        load_own(score, unary, row, n_labels)
        for k in range(0, width, WIDTH):
            total = load(score, k)
            for slot in range(split[place], indptr[place + 1]):
                total = total + load(messages, slot * width + k)
            store(score, k, total)
        for slot in range(indptr[place], split[place]):
            label = labels[order[target[slot]]]
            score[label] += log_ratio(coupling, edges[slot], label)
        best = 0
        for k in range(1, n_labels):
            if score[k] > score[best]:
                best = k
        labels[order[place]] = best


@labels_engine(
    "belief_propagation",
    damping=number(below=1.0),
    tol=number(positive=True),
    max_iter=whole(1),
    max_work=number(positive=True, optional=True),
)
def max_product(
    problem: Problem,
    rng: np.random.Generator,
    *,
    initial: Ints | None = None,
    n_threads: int = 1,
    damping: float = 0.3,
    tol: float = 1e-9,
    max_iter: int = 300,
    max_work: float | None = None,
) -> EngineLabels:
    """A labelling of high score by max-product belief propagation, forest descent as the polish.

    Labels are decoded after every sweep and the best ones of each component kept: messages that do not
    converge still pass through good labellings. Seeded noise, a millionth of the typical score, breaks
    symmetries: on flat fields all messages would stay flat. Links that contradict each other are found only
    where they leave some node without a label. The result scores no less than ``initial`` and is optimal if
    the graph is a forest.

    ``damping`` is the share of the old message that is kept while messages still move. Sweeps stop when no
    message changes by more than ``tol`` times the typical score, after ``max_iter``, or when a hundred of
    them have found nothing better. ``max_work`` limits the message entries, but allows one sweep in any
    case. ``details["residuals"]`` holds the largest change in each sweep.
    """
    n_nodes, n_labels = problem.unary.shape
    forest = is_forest(len(problem.unary), problem.pairs)
    graph = message_graph(problem.graph)
    scale = _typical_score(problem)
    jitter = 0.0 if forest else _JITTER * scale
    unary = problem.unary + jitter * rng.random((n_nodes, n_labels))
    shift_scores(unary, graph.order)
    tables = potential_tables(unary, problem, link_tables(problem, graph, MAXIMUM))
    target = targets(graph)
    messages = np.zeros(len(graph.edges) * padded(n_labels))
    component, n_components = group_labels(n_nodes, problem.pairs)
    labels = best = problem.unary.argmax(axis=1)
    best_scores = np.full(n_components, -np.inf)
    best_at = 0
    residuals: list[float] = []
    max_iter = sweeps_within(max_work, sweep_work(problem), max_iter)
    for change in sweeps(
        MAXIMUM, graph, tables, messages, damping=0.0 if forest else damping, settled=SETTLED * scale,
        bands=sweep_bands(graph, forest), workers=Workers(n_threads),
    ):  # fmt: skip
        if change == CONTRADICTION:
            return EngineLabels(best, -np.inf, True, True, len(residuals), {"residuals": np.array(residuals)})
        residuals.append(change)
        n_iter = len(residuals)
        _decode(graph, target, tables, messages, labels)
        scores = component_scores(problem, labels, component, n_components)
        better = (scores > best_scores) | (n_iter == 1)
        if better.any():
            best = np.where(better[component], labels, best)
            best_scores = np.where(better, scores, best_scores)
            best_at = n_iter
        if change <= tol * scale or n_iter == max_iter or n_iter - best_at >= _PATIENCE:
            break
    converged = residuals[-1] <= tol * scale
    optimal = forest and converged
    if not optimal:
        # Labels that hold the links already make a search for others needless.
        search = initial is None or n_broken(problem, initial) > 0
        best, _ = polish(problem, best, rng, search=search)
        if initial is not None and problem_score(problem, initial) > problem_score(problem, best):
            best, _ = polish(problem, initial, rng)
    bound = problem_score(problem, best) if optimal else None
    return EngineLabels(best, bound, optimal, converged, len(residuals), {"residuals": np.array(residuals)})


def _typical_score(problem: Problem) -> float:
    """The smaller of the median spread of the unary scores and the median coupling, zeros left out."""
    lowest = np.where(problem.unary > -np.inf, problem.unary, np.inf).min(axis=1)
    spread = problem.unary.max(axis=1) - lowest
    strength = np.abs(problem.coupling[np.isfinite(problem.coupling)])
    medians = [np.median(values[values > 0.0]) for values in (spread, strength) if (values > 0.0).any()]
    return float(min(medians, default=1.0))
