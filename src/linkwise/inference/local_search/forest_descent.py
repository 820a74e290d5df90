"""Forest block descent: the best labels of a random induced forest, all at once, given the rest.

Any set of nodes whose induced subgraph has no cycle can be maximised exactly in two passes while the other
nodes keep their labels. Taking such sets at random, the score never falls; a labelling that no forest
improves is a fixed point of ICM, but not conversely. On a graph that is itself a forest one step is exact.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from linkwise._kernels import kernel
from linkwise._kernels.simd import prefetch
from linkwise.graph import group_labels
from linkwise.inference.engines import EngineLabels, labels_engine, whole
from linkwise.inference.local_search.hard_links import lexicographic, recolour
from linkwise.inference.local_search.icm import descend
from linkwise.inference.local_search.induced_forest import OUTSIDE, grow_forest, root_chosen
from linkwise.inference.local_search.orders import AHEAD_ENDS, AHEAD_LINKS, AHEAD_ROW, shuffled
from linkwise.inference.problem import Problem, log_agree, log_differ, log_ratio
from linkwise.inference.scoring import n_broken, problem_score

__all__ = ["acyclic_components", "forest_descent", "polish"]

# Gains below this share of the terms that changed are rounding: the forest counts as no improvement.
_ROUNDING = 1e-14


@kernel
def _condition(
    unary: NDArray[np.float64],
    indptr: NDArray[np.int32],
    neighbours: NDArray[np.int32],
    edges: NDArray[np.int64],
    coupling: NDArray[np.float64],
    order: NDArray[np.int64],
    tree: NDArray[np.int64],
    labels: NDArray[np.int64],
    h: NDArray[np.float64],
) -> None:
    """Unary scores of the forest's nodes by place, with the links to nodes outside added to them.

    Links count by log_ratio: what they give when their ends differ is a constant.
    """
    n_places = order.shape[0]
    n_labels = unary.shape[1]
    rows = unary.reshape(-1)
    trees = tree.reshape(-1)
    for place in range(n_places):
        prefetch(indptr, order[min(place + AHEAD_ROW, n_places - 1)])
        ahead = order[min(place + AHEAD_LINKS, n_places - 1)]
        for entry in range(ahead * n_labels, (ahead + 1) * n_labels, 8):
            prefetch(rows, entry)
        prefetch(neighbours, indptr[ahead])
        prefetch(edges, indptr[ahead])
        ahead = order[min(place + AHEAD_ENDS, n_places - 1)]
        for slot in range(indptr[ahead], indptr[ahead + 1]):
            prefetch(trees, 2 * neighbours[slot])
            prefetch(labels, neighbours[slot])
            if coupling.ndim == 1:
                prefetch(coupling, edges[slot])

        node = order[place]
        for label in range(n_labels):
            h[place, label] = unary[node, label]
        for slot in range(indptr[node], indptr[node + 1]):
            other = neighbours[slot]
            if tree[other, 0] == OUTSIDE:
                label = labels[other]
                h[place, label] += log_ratio(coupling, edges[slot], label)


@kernel
def _maximise(
    coupling: NDArray[np.float64],
    order: NDArray[np.int64],
    parent: NDArray[np.int64],
    parent_edge: NDArray[np.int64],
    labels: NDArray[np.int64],
    h: NDArray[np.float64],
    proposal: NDArray[np.int64],
    changed: NDArray[np.int64],
) -> int:
    """Best labels of the forest, by place, and the places that differ from ``labels``; returns their number.

    A node keeps its label on ties. Overwrites ``h``.

    On the way up row p of ``h`` becomes the score of everything at and below place p, up to a constant: the
    message to the parent is max(h_b + ratio_b, max_{a != b} h_a), shifted by max h.
    """
    n_places = order.shape[0]
    n_labels = h.shape[1]
    for place in range(n_places - 1, -1, -1):
        above = parent[place]
        if above < 0:
            continue
        first = h[place, 0]
        second = -np.inf
        for label in range(1, n_labels):
            second = max(second, min(first, h[place, label]))
            first = max(first, h[place, label])
        best = 0
        while h[place, best] != first:
            best += 1
        edge = parent_edge[place]
        if coupling.ndim == 1 and coupling[edge] < 0.0:
            # A cannot-link matters only to the parent's label that its child wants.
            h[above, best] += max(coupling[edge], second - first)
            continue
        for label in range(n_labels):
            agreeing = h[place, label] + log_ratio(coupling, edge, label)
            differing = second if label == best else first
            h[above, label] += max(agreeing, differing) - first
    n_changed = 0
    for place in range(n_places):
        prefetch(labels, order[min(place + AHEAD_LINKS, n_places - 1)])
        if parent[place] >= 0:
            label = proposal[parent[place]]
            h[place, label] += log_ratio(coupling, parent_edge[place], label)
        highest = h[place, 0]
        for label in range(1, n_labels):
            highest = max(highest, h[place, label])
        chosen = labels[order[place]]
        if h[place, chosen] < highest:
            chosen = 0
            while h[place, chosen] != highest:
                chosen += 1
            changed[n_changed] = place
            n_changed += 1
        proposal[place] = chosen
    return n_changed


@kernel
def _accept(
    unary: NDArray[np.float64],
    indptr: NDArray[np.int32],
    neighbours: NDArray[np.int32],
    edges: NDArray[np.int64],
    coupling: NDArray[np.float64],
    nodes: NDArray[np.int64],
    proposal: NDArray[np.int64],
    component: NDArray[np.int64],
    labels: NDArray[np.int64],
    previous: NDArray[np.int64],
    gain: NDArray[np.float64],
    size: NDArray[np.float64],
) -> None:
    """Take the new labels of ``nodes`` in the components whose score they raise; ``gain`` says by how much.

    The gain is summed over the terms that change, so it is exact to the rounding of those terms,
    whose absolute values are added up in ``size``. ``previous`` equals ``labels`` on entry and on return.
    """
    gain[:] = 0.0
    size[:] = 0.0
    for row in range(nodes.shape[0]):
        labels[nodes[row]] = proposal[row]
    for node in nodes:
        before = previous[node]
        after = labels[node]
        part = component[node]
        gain[part] += unary[node, after] - unary[node, before]
        size[part] += abs(unary[node, after]) + abs(unary[node, before])
        for slot in range(indptr[node], indptr[node + 1]):
            other = neighbours[slot]
            if other < node and previous[other] != labels[other]:
                continue
            edge = edges[slot]
            old = (
                log_agree(coupling, edge, before) if before == previous[other] else log_differ(coupling, edge)
            )
            new = log_agree(coupling, edge, after) if after == labels[other] else log_differ(coupling, edge)
            gain[part] += new - old
            size[part] += abs(new) + abs(old)
    for node in nodes:
        part = component[node]
        if gain[part] > _ROUNDING * size[part]:
            previous[node] = labels[node]
        else:
            labels[node] = previous[node]


def acyclic_components(problem: Problem) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Connected components (n,), and which of them are trees or single nodes (n_components,)."""
    component, n_components = group_labels(len(problem.unary), problem.pairs)
    n_links = np.bincount(component[problem.pairs[:, 0]], minlength=n_components)
    return component, n_links < np.bincount(component, minlength=n_components)


def _descend(
    problem: Problem,
    labels: NDArray[np.int64],
    rng: np.random.Generator,
    patience: int,
    max_iter: int,
    stop_when_feasible: Problem | None = None,
) -> tuple[NDArray[np.int64], int]:
    """ICM, then forests until no component has improved for ``patience`` of them in a row."""
    labels = descend(problem, labels, rng).labels
    n_nodes, n_labels = problem.unary.shape
    graph = problem.graph
    component, acyclic = acyclic_components(problem)
    failures = np.zeros(len(acyclic), dtype=np.int64)
    degree = np.diff(graph.indptr)
    active = np.flatnonzero(degree)

    previous = labels.copy()
    tree = np.empty((n_nodes, 2), dtype=np.int64)
    roots = np.empty(degree.max(initial=0), dtype=np.int64)
    walk = np.empty((3, len(active)), dtype=np.int64)
    h = np.empty((len(active), n_labels))
    proposal, changed = np.empty((2, len(active)), dtype=np.int64)
    gain, size = np.empty((2, len(acyclic)))
    n_iter = 0
    while active.size and n_iter < max_iter:
        if stop_when_feasible is not None and n_broken(stop_when_feasible, labels) == 0:
            break
        n_iter += 1
        candidates = shuffled(active, rng)
        grow_forest(graph.indptr, graph.neighbours, candidates, tree, roots)
        n_chosen = root_chosen(*graph, candidates, tree, *walk)
        order, parent, parent_edge = walk[:, :n_chosen]
        _condition(problem.unary, *graph, problem.coupling, order, tree, labels, h)
        n_changed = _maximise(problem.coupling, order, parent, parent_edge, labels, h, proposal, changed)
        places = changed[:n_changed]
        nodes, new = order[places], proposal[places]
        _accept(problem.unary, *graph, problem.coupling, nodes, new, component, labels, previous, gain, size)
        failures = np.where(gain > _ROUNDING * size, 0, failures + 1)
        # The forest of an acyclic component is the whole component: one step was exact.
        active = active[~(acyclic | (failures >= patience))[component[active]]]
    return labels, n_iter


def polish(
    problem: Problem,
    labels: NDArray[np.int64],
    rng: np.random.Generator,
    *,
    patience: int = 5,
    max_iter: int = 100,
    search: bool = True,
) -> tuple[NDArray[np.int64], int]:
    """Improve a labelling by ICM and then by exact steps over random induced forests.

    A labelling that breaks hard links is repaired first: the same steps on the problem in which fewest
    broken links come first (``lexicographic``), then, where that sticks, a
    colouring of the hard links.

    A component is left alone after ``patience`` forests in a row without improvement, and all after
    ``max_iter``, once more as many for a repair. ``search`` says whether a repair that sticks goes on to
    colour the hard links, which may take a second. Returns labels that score no less, the highest possible
    in components without a cycle, and the number of forests.
    """
    n_repair = 0
    if n_broken(problem, labels):
        counting = lexicographic(problem)
        labels, n_repair = _descend(counting, labels, rng, patience, max_iter, stop_when_feasible=problem)
        if n_broken(problem, labels):
            coloured = recolour(problem, labels, rng) if search else labels
            if n_broken(problem, coloured):
                return labels, n_repair
            labels = coloured
    labels, n_iter = _descend(problem, labels, rng, patience, max_iter)
    return labels, n_repair + n_iter


@labels_engine("forest_descent", patience=whole(1), max_iter=whole(1))
def forest_descent(
    problem: Problem,
    rng: np.random.Generator,
    *,
    initial: NDArray[np.int64] | None = None,
    n_threads: int = 1,
    patience: int = 5,
    max_iter: int = 100,
) -> EngineLabels:
    """Forest block descent from a given labelling or from the best label of each node; see :func:`polish`.

    Optimal if the graph has no cycle.
    """
    start = problem.unary.argmax(axis=1) if initial is None else np.asarray(initial, dtype=np.int64)
    labels, n_iter = polish(problem, start, rng, patience=patience, max_iter=max_iter)
    optimal = bool(acyclic_components(problem)[1].all())
    bound = problem_score(problem, labels) if optimal else None
    return EngineLabels(labels, bound, optimal, optimal or n_iter < max_iter, n_iter)
