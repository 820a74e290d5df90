"""Forest block descent: the best labels of a random induced forest, all at once, given the rest.

Any set of nodes whose induced subgraph has no cycle can be maximised exactly in two passes while the other
nodes keep their labels. Taking such sets at random, the score never falls; a labelling that no forest
improves is a fixed point of ICM, but not conversely. On a graph that is itself a forest one step is exact.
"""

from __future__ import annotations

import numpy as np

from linkwise._arrays import Floats, Ints
from linkwise._kernels import inline_kernel, kernel
from linkwise._kernels.random import counter_uniform
from linkwise._kernels.simd import prefetch
from linkwise.graph import Adjacency
from linkwise.inference.engines import EngineLabels, labels_engine, whole
from linkwise.inference.exact.junction_tree import find_components
from linkwise.inference.local_search.hard_links import lexicographic, recolour
from linkwise.inference.local_search.icm import AHEAD_ENDS, AHEAD_LINKS, AHEAD_ROW, descend
from linkwise.inference.problem import Problem, log_agree, log_differ, log_ratio
from linkwise.inference.scoring import n_broken, problem_score

#: ``tree[node, 0]`` of a node that is not in the forest.
OUTSIDE = -(1 << 62)
# Nodes of a run: their rows of scores fit into the second-level cache, and forests get no worse.
_RUN = 1024


@kernel
def _shuffle_runs(nodes: Ints, run: int, run_order: Ints, seed: np.uint64) -> Ints:
    """The runs of ``run`` consecutive entries of ``nodes`` in the given order, each shuffled."""
    order = np.empty_like(nodes)
    filled = 0
    for index in run_order:
        start = index * run
        for place in range(start, min(start + run, nodes.shape[0])):
            other = filled - int(counter_uniform(seed, index, place) * (place - start + 1))
            order[filled] = order[other]
            order[other] = nodes[place]
            filled += 1
    return order


def shuffled(nodes: Ints, rng: np.random.Generator) -> Ints:
    """A random permutation of ascending nodes; of many, runs in random order, each shuffled.

    Runs save a third of the time of a large forest; unshuffled, a small cycle would always be cut at one
    node.
    """
    if len(nodes) < 16 * _RUN:
        return rng.permutation(nodes)
    n_runs = -(-len(nodes) // _RUN)
    return _shuffle_runs(nodes, _RUN, rng.permutation(n_runs), rng.integers(2**64, dtype=np.uint64))


@inline_kernel
def _find(tree: Ints, node: int) -> int:
    """Root of a node of the forest; a root holds minus the size of its tree. Halves the path."""
    while tree[node, 0] >= 0:
        above = tree[node, 0]
        if tree[above, 0] >= 0:
            tree[node, 0] = tree[above, 0]
            above = tree[above, 0]
        node = above
    return node


@kernel
def grow_forest(graph: Adjacency, order: Ints, tree: Ints, roots: Ints) -> None:
    """Take each node of ``order`` into the forest unless two of its neighbours there are in one tree.

    ``tree`` (n, 2) is a union-find by size: column 0 becomes the node above, minus the size of the tree at
    its root, or ``OUTSIDE``. Column 1 and ``roots`` (largest degree,) are scratch.
    """
    indptr, neighbours = graph.indptr, graph.neighbours
    n_candidates = order.shape[0]
    flat = tree.reshape(-1)
    for node in order:
        tree[node, 0] = OUTSIDE
        tree[node, 1] = -1
    for turn in range(n_candidates):
        prefetch(indptr, order[min(turn + AHEAD_ROW, n_candidates - 1)])
        prefetch(neighbours, indptr[order[min(turn + AHEAD_LINKS, n_candidates - 1)]])
        ahead = order[min(turn + AHEAD_ENDS, n_candidates - 1)]
        for slot in range(indptr[ahead], indptr[ahead + 1]):
            prefetch(flat, 2 * neighbours[slot])

        node = order[turn]
        n_trees = 0
        closes_cycle = False
        for slot in range(indptr[node], indptr[node + 1]):
            other = neighbours[slot]
            if tree[other, 0] != OUTSIDE:
                root = _find(tree, other)
                if tree[root, 1] == node:
                    closes_cycle = True
                    break
                tree[root, 1] = node
                roots[n_trees] = root
                n_trees += 1
        if closes_cycle:
            continue
        if n_trees == 0:
            tree[node, 0] = -1
            continue
        largest = roots[0]
        for index in range(1, n_trees):
            if tree[roots[index], 0] < tree[largest, 0]:
                largest = roots[index]
        minus_size = tree[largest, 0] - 1
        for index in range(n_trees):
            if roots[index] != largest:
                minus_size += tree[roots[index], 0]
                tree[roots[index], 0] = largest
        tree[largest, 0] = minus_size
        tree[node, 0] = largest


@kernel
def root_chosen(
    graph: Adjacency, candidates: Ints, tree: Ints, order: Ints, parent: Ints, parent_edge: Ints
) -> int:
    """Fill ``order``, ``parent`` places and ``parent_edge`` rows breadth first; the number of nodes."""
    indptr, neighbours, edges = graph
    flat = tree.reshape(-1)
    for node in candidates:
        tree[node, 1] = -1
    head = 0
    tail = 0
    for start in candidates:
        if tree[start, 0] == OUTSIDE or tree[start, 1] >= 0:
            continue
        tree[start, 1] = tail
        order[tail] = start
        parent[tail] = -1
        parent_edge[tail] = -1
        tail += 1
        while head < tail:
            prefetch(indptr, order[min(head + AHEAD_ROW, tail - 1)])
            prefetch(neighbours, indptr[order[min(head + AHEAD_LINKS, tail - 1)]])
            ahead = order[min(head + AHEAD_ENDS, tail - 1)]
            for slot in range(indptr[ahead], indptr[ahead + 1]):
                prefetch(flat, 2 * neighbours[slot])

            node = order[head]
            for slot in range(indptr[node], indptr[node + 1]):
                other = neighbours[slot]
                if tree[other, 0] != OUTSIDE and tree[other, 1] < 0:
                    tree[other, 1] = tail
                    order[tail] = other
                    parent[tail] = head
                    parent_edge[tail] = edges[slot]
                    tail += 1
            head += 1
    return tail


# Gains below this share of the terms that changed are rounding: the forest counts as no improvement.
_ROUNDING = 1e-14


@kernel
def _condition(
    unary: Floats, graph: Adjacency, coupling: Floats, order: Ints, tree: Ints, labels: Ints, h: Floats
) -> None:
    """Unary scores of the forest's nodes by place, plus log_ratio of their links to nodes outside."""
    indptr, neighbours, edges = graph
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
    coupling: Floats,
    order: Ints,
    parent: Ints,
    parent_edge: Ints,
    labels: Ints,
    h: Floats,
    proposal: Ints,
    changed: Ints,
) -> int:
    """Best labels of the forest, by place, and the places that differ from ``labels``; their number.

    On the way up row p of ``h`` becomes the score of everything at and below place p, up to a constant: the
    message to the parent is max(h_b + ratio_b, max_{a != b} h_a), shifted by max h. Ties keep labels.
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
    unary: Floats,
    graph: Adjacency,
    coupling: Floats,
    nodes: Ints,
    proposal: Ints,
    component: Ints,
    labels: Ints,
    previous: Ints,
    gain: Floats,
    size: Floats,
) -> None:
    """Take the new labels of ``nodes`` in components whose score they raise, and by how much (``gain``)."""
    indptr, neighbours, edges = graph
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


def _descend(
    problem: Problem,
    labels: Ints,
    rng: np.random.Generator,
    patience: int,
    max_iter: int,
    stop_when_feasible: Problem | None = None,
) -> tuple[Ints, int]:
    """ICM, then forests until no component has improved for ``patience`` of them in a row."""
    labels = descend(problem, labels, rng).labels
    n_nodes, n_labels = problem.unary.shape
    graph = problem.graph
    component, _, acyclic = find_components(problem)
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
        grow_forest(graph, candidates, tree, roots)
        n_chosen = root_chosen(graph, candidates, tree, *walk)
        order, parent, parent_edge = walk[:, :n_chosen]
        _condition(problem.unary, graph, problem.coupling, order, tree, labels, h)
        n_changed = _maximise(problem.coupling, order, parent, parent_edge, labels, h, proposal, changed)
        places = changed[:n_changed]
        nodes, new = order[places], proposal[places]
        _accept(problem.unary, graph, problem.coupling, nodes, new, component, labels, previous, gain, size)
        failures = np.where(gain > _ROUNDING * size, 0, failures + 1)
        # The forest of an acyclic component is the whole component: one step was exact.
        active = active[~(acyclic | (failures >= patience))[component[active]]]
    return labels, n_iter


def polish(
    problem: Problem,
    labels: Ints,
    rng: np.random.Generator,
    *,
    patience: int = 5,
    max_iter: int = 100,
    search: bool = True,
) -> tuple[Ints, int]:
    """Improve a labelling by ICM and then by exact steps over random induced forests.

    One that breaks hard links is repaired first (``lexicographic``, then if ``search`` a colouring of the
    hard links). A component is left alone after ``patience`` forests without improvement, all after
    ``max_iter``. Returns labels that score no less, the best in components without a cycle, and the number of
    forests.
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
    initial: Ints | None = None,
    n_threads: int = 1,
    patience: int = 5,
    max_iter: int = 100,
) -> EngineLabels:
    """Forest block descent from ``initial`` or the best label of each node; optimal without cycles."""
    start = problem.unary.argmax(axis=1) if initial is None else np.asarray(initial, dtype=np.int64)
    labels, n_iter = polish(problem, start, rng, patience=patience, max_iter=max_iter)
    optimal = bool(find_components(problem)[2].all())
    bound = problem_score(problem, labels) if optimal else None
    return EngineLabels(labels, bound, optimal, optimal or n_iter < max_iter, n_iter)
