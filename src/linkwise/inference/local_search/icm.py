"""Iterated conditional modes: every node in turn takes the label that suits its neighbours best."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from linkwise._arrays import Bools, Floats, Ints
from linkwise._kernels import kernel
from linkwise._kernels.simd import prefetch
from linkwise._threads import Workers, chunk_bounds
from linkwise.graph import Adjacency, greedy_colouring, group_labels
from linkwise.inference.engines import EngineLabels, choice, labels_engine, whole
from linkwise.inference.local_search.hard_links import lexicographic, recolour
from linkwise.inference.problem import Problem, cached, log_ratio
from linkwise.inference.scoring import best_per_component, n_broken

#: How many nodes ahead the place of a node's links, the links and the data of their ends are prefetched;
#: between 4 and 64 the time hardly changes.
AHEAD_ROW, AHEAD_LINKS, AHEAD_ENDS = 16, 8, 4
# Gains below this share of the compared scores are rounding: a tie, and ties keep the label.
_TIE = 1e-14
# Nodes of a colour class that one task of the thread pool visits.
_CHUNK = 16384


class Descent(NamedTuple):
    """Where a descent ended; ``gains`` (n_iter,) is what each sweep added to the score, never negative."""

    labels: Ints
    n_iter: int
    converged: bool
    gains: Floats


@kernel
def _join_runs(nodes: Ints, run: int, run_order: Ints, backwards: Bools) -> Ints:
    """The runs of ``run`` consecutive entries of ``nodes`` in the given order, some of them reversed."""
    order = np.empty_like(nodes)
    filled = 0
    for index in run_order:
        start = index * run
        stop = min(start + run, nodes.shape[0])
        for place in range(start, stop):
            order[filled] = nodes[start + stop - 1 - place] if backwards[index] else nodes[place]
            filled += 1
    return order


def random_runs(nodes: Ints, rng: np.random.Generator) -> Ints:
    """A random permutation of ascending nodes; of many, runs in random order and direction.

    Full permutations of a million nodes miss the cache at every step: runs take a quarter of the time, and on
    grids ICM ends at slightly higher scores.
    """
    run = min(max(len(nodes) // 1024, 1), 512)
    if run == 1:
        return rng.permutation(nodes)
    n_runs = -(-len(nodes) // run)
    return _join_runs(nodes, run, rng.permutation(n_runs), rng.random(n_runs) < 0.5)


@kernel
def _visit(
    unary: Floats, graph: Adjacency, coupling: Floats, order: Ints, labels: Ints, stale: Bools
) -> float:
    """Visit the stale nodes of ``order``, those with a neighbour that changed; returns the total gain.

    The score of label k at node i is unary[i, k] + sum over links to neighbours of label k of log_ratio.
    """
    indptr, neighbours, edges = graph
    n_visits = order.shape[0]
    n_labels = unary.shape[1]
    rows = unary.reshape(-1)
    score = np.empty(n_labels)
    total = 0.0
    for visit in range(n_visits):
        prefetch(indptr, order[min(visit + AHEAD_ROW, n_visits - 1)])
        ahead = order[min(visit + AHEAD_LINKS, n_visits - 1)]
        for place in range(ahead * n_labels, (ahead + 1) * n_labels, 8):
            prefetch(rows, place)
        prefetch(neighbours, indptr[ahead])
        prefetch(edges, indptr[ahead])
        ahead = order[min(visit + AHEAD_ENDS, n_visits - 1)]
        for slot in range(indptr[ahead], indptr[ahead + 1]):
            prefetch(labels, neighbours[slot])
            if coupling.ndim == 1:
                prefetch(coupling, edges[slot])

        node = order[visit]
        if not stale[node]:
            continue
        stale[node] = False
        for label in range(n_labels):
            score[label] = unary[node, label]
        for slot in range(indptr[node], indptr[node + 1]):
            label = labels[neighbours[slot]]
            score[label] += log_ratio(coupling, edges[slot], label)
        best = score[0]
        for label in range(1, n_labels):
            best = score[label] if score[label] > best else best
        current = score[labels[node]]
        gain = best - current
        if gain > _TIE * (abs(best) + abs(current)):
            label = 0
            while score[label] != best:
                label += 1
            labels[node] = label
            total += gain
            for slot in range(indptr[node], indptr[node + 1]):
                stale[neighbours[slot]] = True
    return total


def descend(
    problem: Problem,
    labels: Ints,
    rng: np.random.Generator,
    *,
    max_iter: int = 1000,
    order: str = "random",
    n_threads: int = 1,
) -> Descent:
    """Sweep over the nodes until no single change of a label raises the score, which must be finite."""
    labels = labels.copy()
    stale = np.ones(len(labels), dtype=np.bool_)
    arrays = (problem.unary, problem.graph, problem.coupling)
    gains: list[float] = []
    if order == "random":
        while stale.any() and len(gains) < max_iter:
            nodes = random_runs(np.flatnonzero(stale), rng)
            gains.append(_visit(*arrays, nodes, labels, stale))
    else:
        classes = cached(problem, "colour classes", lambda: _colour_classes(problem))
        chunks = [[c[first:last] for first, last in chunk_bounds(0, len(c), _CHUNK)] for c in classes]

        def visit_stale(chunk: Ints) -> float:
            return _visit(*arrays, chunk[stale[chunk]], labels, stale)

        workers = Workers(n_threads)
        while stale.any() and len(gains) < max_iter:
            gain = 0.0
            for colour in rng.permutation(len(classes)):
                gain += sum(workers.map(visit_stale, chunks[colour]))
            gains.append(gain)
    return Descent(labels, len(gains), not stale.any(), np.array(gains))


def _colour_classes(problem: Problem) -> list[Ints]:
    """Nodes of each colour of a colouring."""
    colours = greedy_colouring(problem.graph)
    by_colour = np.argsort(colours, kind="stable")
    return np.split(by_colour, np.cumsum(np.bincount(colours))[:-1])


def feasible_start(problem: Problem, labels: Ints, rng: np.random.Generator) -> Ints:
    """A labelling near the given one that breaks no hard link, or the best attempt, by single changes."""
    if n_broken(problem, labels) == 0:
        return labels
    attempt = descend(lexicographic(problem), labels, rng).labels
    left = n_broken(problem, attempt)
    if left:
        coloured = recolour(problem, attempt, rng)
        if n_broken(problem, coloured) < left:
            return coloured
    return attempt


@labels_engine("icm", n_restarts=whole(1), max_iter=whole(1), order=choice("random", "coloured"))
def icm(
    problem: Problem,
    rng: np.random.Generator,
    *,
    initial: Ints | None = None,
    n_threads: int = 1,
    n_restarts: int = 1,
    max_iter: int = 1000,
    order: str = "random",
) -> EngineLabels:
    """Iterated conditional modes (Besag 1986), with Bilenko & Basu 2004, Eq. 7.

    A sweep visits, in random order, every node with a neighbour that changed since its last visit. The node
    takes the label of highest score given its neighbours and keeps its own on ties, so the score never
    falls and the sweeps end at a labelling that no single change improves.

    A start that breaks hard links is repaired first. ``n_restarts`` descents go from the same start in other
    random orders, and every connected component keeps its best. (On random links this beats starts drawn from
    the softmax of the unary scores, and by far uniform labels.) ``order="coloured"`` visits the classes of a
    graph colouring in random order; their nodes do not touch each other and are shared among the threads.
    ``details["gains"]`` holds what each sweep of the first descent added to the score.
    """
    start = problem.unary.argmax(axis=1) if initial is None else np.asarray(initial, dtype=np.int64)
    start = feasible_start(problem, start, rng)
    searched = lexicographic(problem) if n_broken(problem, start) else problem
    descents = [
        descend(searched, start, rng, max_iter=max_iter, order=order, n_threads=n_threads)
        for _ in range(n_restarts)
    ]
    labels = descents[0].labels
    if len(descents) > 1:
        component, n_components = group_labels(len(labels), problem.pairs)
        labels = best_per_component(searched, [found.labels for found in descents], component, n_components)
    return EngineLabels(
        labels,
        upper_bound=None,
        optimal=False,
        converged=all(found.converged for found in descents),
        n_iter=max(found.n_iter for found in descents),
        details={"gains": descents[0].gains},
    )
