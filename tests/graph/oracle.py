"""Slow, obvious graph algorithms on sets and dicts, and random graphs to compare them on."""

from __future__ import annotations

from collections import deque
from itertools import combinations, product

import numpy as np

from linkwise.graph import Adjacency, adjacency


def as_pairs(edges) -> np.ndarray:
    return np.array(sorted(tuple(sorted(edge)) for edge in edges), dtype=np.int64).reshape(-1, 2)


def random_pairs(rng, n_nodes: int, probability: float) -> np.ndarray:
    return as_pairs([pair for pair in combinations(range(n_nodes), 2) if rng.random() < probability])


def random_graph(rng, n_nodes: int, probability: float) -> Adjacency:
    return adjacency(n_nodes, random_pairs(rng, n_nodes, probability))


def random_sparse_pairs(rng, n_nodes: int, n_pairs: int) -> np.ndarray:
    pairs = np.sort(rng.integers(n_nodes, size=(n_pairs, 2)), axis=1)
    return np.unique(pairs[pairs[:, 0] < pairs[:, 1]], axis=0)


def random_links(
    rng, n_nodes: int, probability: float, must: float = 0.12, cannot: float = 0.48
) -> tuple[np.ndarray, np.ndarray]:
    """Mixed links: hard must, hard cannot, and soft ones whose weights can cancel exactly."""
    pairs = random_pairs(rng, n_nodes, probability)
    soft = 1.0 - must - cannot
    kinds = [np.inf, -np.inf, 1.0, -1.0, 0.5, -0.5]
    weights = rng.choice(kinds, size=len(pairs), p=[must, cannot, *[soft / 4] * 4])
    return pairs, weights


def planted_pairs(rng, n_nodes: int, n_colours: int, n_pairs: int) -> np.ndarray:
    """Edges between nodes of different colour of a hidden colouring."""
    hidden = rng.integers(n_colours, size=n_nodes)
    pairs = random_sparse_pairs(rng, n_nodes, 3 * n_pairs)
    pairs = pairs[hidden[pairs[:, 0]] != hidden[pairs[:, 1]]]
    return pairs[np.sort(rng.permutation(len(pairs))[:n_pairs])]


def neighbour_sets(n_nodes: int, pairs) -> list[set[int]]:
    sets = [set() for _ in range(n_nodes)]
    for i, j in np.asarray(pairs).tolist():
        sets[i].add(j)
        sets[j].add(i)
    return sets


def components(n_nodes: int, pairs) -> list[int]:
    """Component of each node, numbered by first appearance."""
    near = neighbour_sets(n_nodes, pairs)
    label = [-1] * n_nodes
    count = 0
    for start in range(n_nodes):
        if label[start] < 0:
            label[start] = count
            queue = deque([start])
            while queue:
                for other in near[queue.popleft()]:
                    if label[other] < 0:
                        label[other] = count
                        queue.append(other)
            count += 1
    return label


def distance(n_nodes: int, pairs, start: int, end: int) -> int | None:
    near = neighbour_sets(n_nodes, pairs)
    shell, seen, steps = {start}, {start}, 0
    while shell:
        if end in shell:
            return steps
        shell = {other for node in shell for other in near[node]} - seen
        seen |= shell
        steps += 1
    return None


def satisfies(labels, must_link, cannot_link) -> bool:
    return all(labels[i] == labels[j] for i, j in must_link) and all(
        labels[i] != labels[j] for i, j in cannot_link
    )


def has_labelling(must_link, cannot_link, n_clusters: int) -> bool:
    """Grow all partitions of the points involved into at most K labels, point by point."""
    points = sorted({point for link in [*must_link, *cannot_link] for point in link})
    partial = [()]
    for count, point in enumerate(points):
        before = {other: place for place, other in enumerate(points[:count])}
        equal = [before[a + b - point] for a, b in must_link if point in (a, b) and a + b - point in before]
        unequal = [
            before[a + b - point] for a, b in cannot_link if point in (a, b) and a + b - point in before
        ]
        partial = [
            (*labels, label)
            for labels in partial
            for label in range(min(max(labels, default=-1) + 2, n_clusters))
            if all(labels[place] == label for place in equal)
            and all(labels[place] != label for place in unequal)
        ]
    return bool(partial)


def can_be_coloured(edges, n_colours: int) -> bool:
    """Backtracking without any cleverness but the order of the nodes: good to a few dozen of them."""
    edges = [tuple(edge) for edge in edges]
    nodes = sorted({node for edge in edges for node in edge})
    near = {node: {a if b == node else b for a, b in edges if node in (a, b)} for node in nodes}
    nodes.sort(key=lambda node: -len(near[node]))
    colours: dict[int, int] = {}
    tried = [0] * (len(nodes) + 1)
    place = 0
    while 0 <= place < len(nodes):
        node = nodes[place]
        colours.pop(node, None)
        refused = {colours[other] for other in near[node] if other in colours}
        free = [colour for colour in range(tried[place], n_colours) if colour not in refused]
        if free:
            colours[node] = free[0]
            tried[place] = free[0] + 1
            place += 1
            tried[place] = 0
        else:
            place -= 1
    return place == len(nodes)


def largest_clique(n_nodes: int, pairs) -> int:
    near = neighbour_sets(n_nodes, pairs)
    for size in range(n_nodes, 1, -1):
        for nodes in combinations(range(n_nodes), size):
            if all(b in near[a] for a, b in combinations(nodes, 2)):
                return size
    return min(n_nodes, 1)


def treewidth(n_nodes: int, pairs) -> int:
    """Best width over all orders, by the sets of nodes already eliminated."""
    near = neighbour_sets(n_nodes, pairs)

    def neighbours_at_elimination(gone: frozenset[int], node: int) -> int:
        seen, stack, found = {node}, [node], 0
        while stack:
            for other in near[stack.pop()] - seen:
                seen.add(other)
                if other in gone:
                    stack.append(other)
                else:
                    found += 1
        return found

    best = {frozenset(): 0}
    for size in range(1, n_nodes + 1):
        for nodes in combinations(range(n_nodes), size):
            gone = frozenset(nodes)
            best[gone] = min(
                max(best[gone - {node}], neighbours_at_elimination(gone - {node}, node)) for node in nodes
            )
    return best[frozenset(range(n_nodes))]


def eliminate(n_nodes: int, pairs, order) -> list[tuple[list[int], tuple[int, ...], tuple[int, ...]]]:
    """For each node of the order: its neighbours then, its (fill, degree, index), and the least of all."""
    near = dict(enumerate(neighbour_sets(n_nodes, pairs)))

    def cost(node: int) -> tuple[int, int, int]:
        missing = sum(b not in near[a] for a, b in combinations(sorted(near[node]), 2))
        return missing, len(near[node]), node

    steps = []
    for node in order:
        steps.append((sorted(near[node]), cost(node), min(cost(other) for other in near)))
        for a, b in product(near[node], repeat=2):
            if a != b:
                near[a].add(b)
        for other in near.pop(node):
            near[other].discard(node)
    return steps


def cycle(length: int) -> np.ndarray:
    return as_pairs([(i, (i + 1) % length) for i in range(length)])


def complete(size: int) -> np.ndarray:
    return as_pairs(combinations(range(size), 2))


def mycielski(n_nodes: int, pairs) -> tuple[int, np.ndarray]:
    """Mycielski's construction: one colour more, no new triangle. From a 5-ring: the Grötzsch graph."""
    edges = [tuple(pair) for pair in np.asarray(pairs).tolist()]
    shadows = [(a, b + n_nodes) for a, b in edges] + [(b, a + n_nodes) for a, b in edges]
    apex = [(node + n_nodes, 2 * n_nodes) for node in range(n_nodes)]
    return 2 * n_nodes + 1, as_pairs(edges + shadows + apex)


def is_colouring(pairs, colours, n_colours) -> bool:
    """Whether colours (n,) are in range and differ at both ends of each pair."""
    proper = np.all(colours[pairs[:, 0]] != colours[pairs[:, 1]])
    return bool(proper and np.all((colours >= 0) & (colours < n_colours)))
