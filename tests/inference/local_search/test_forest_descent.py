from __future__ import annotations

import itertools

import numpy as np
import pytest

from linkwise.graph import adjacency, group_labels
from linkwise.inference.exact.junction_tree import find_components
from linkwise.inference.local_search.forest_descent import (
    OUTSIDE,
    forest_descent,
    grow_forest,
    polish,
    root_chosen,
    shuffled,
)
from linkwise.inference.local_search.icm import icm
from linkwise.inference.scoring import n_broken, problem_score
from tests.inference.label_cases import (
    KINDS,
    best_score,
    best_single_change,
    make_problem,
    random_problem,
    slow_broken,
    slow_score,
)
from tests.inference.oracle import GRAPHS, random_pairs
from tests.repeats import examples, share


def is_forest(n, pairs):
    return len(pairs) == n - group_labels(n, pairs)[1]


def inside(pairs, chosen):
    """Pairs with both ends chosen, in the numbering of all nodes."""
    return pairs[chosen[pairs].all(axis=1)]


@pytest.mark.parametrize("shape", GRAPHS)
def test_induced_forest_is_acyclic_and_maximal(shape):
    rng = np.random.default_rng(0)
    tree = np.empty((60, 2), dtype=np.int64)
    roots = np.empty(60, dtype=np.int64)
    for _ in range(30):
        n = int(rng.integers(1, 25))
        pairs = random_pairs(rng, n, shape)
        graph = adjacency(n, pairs)
        order = rng.permutation(n)
        grow_forest(graph, order, tree, roots)
        chosen = tree[:n, 0] != OUTSIDE
        assert chosen[order[0]]
        # Nodes outside are single nodes of the graph of the inside pairs.
        assert is_forest(n, inside(pairs, chosen))
        for node in np.flatnonzero(~chosen):
            larger = chosen.copy()
            larger[node] = True
            assert not is_forest(n, inside(pairs, larger))
        if is_forest(n, pairs):
            assert chosen.all()

        places, parent, parent_edge = np.empty((3, n), dtype=np.int64)
        count = root_chosen(graph, order, tree, places, parent, parent_edge)
        np.testing.assert_array_equal(np.sort(places[:count]), np.flatnonzero(chosen))
        assert (parent[:count] < np.arange(count)).all()
        joined = np.flatnonzero(parent[:count] >= 0)
        assert len(joined) == len(inside(pairs, chosen))
        for place in joined:
            ends = {int(places[place]), int(places[parent[place]])}
            assert ends == set(pairs[parent_edge[place]].tolist())


@pytest.mark.parametrize("n", [1, 7, 20_000])
def test_shuffled_is_a_random_permutation(n):
    nodes = np.arange(0, 2 * n, 2)
    rng = np.random.default_rng(0)
    first = np.zeros(4)
    for _ in range(400):
        order = shuffled(nodes, rng)
        np.testing.assert_array_equal(np.sort(order), nodes)
        if n > 1:
            first[np.argmin([np.argmax(order == node) for node in nodes[:4]])] += 1
    if n > 1:
        # Of the first four nodes, each comes first as often as the others.
        assert (np.abs(first - 100) < 40).all()


@pytest.mark.parametrize("kind", KINDS)
def test_exact_on_forests_in_one_step(kind):
    rng = np.random.default_rng(1)
    infeasible = 0
    for _ in range(examples(200)):
        problem = random_problem(
            rng,
            shape="tree",
            kind=kind,
            hard=float(rng.choice([0.0, 0.5])),
            forbidden=float(rng.choice([0.0, 0.4])),
        )
        start = rng.integers(problem.unary.shape[1], size=len(problem.unary))
        answer = forest_descent(problem, rng, initial=start)
        best = best_score(problem)
        assert problem_score(problem, answer.labels) == pytest.approx(best, abs=1e-9)
        assert answer.optimal
        assert answer.converged
        assert answer.upper_bound == pytest.approx(best, abs=1e-9)
        if best > -np.inf and n_broken(problem, start) == 0:
            assert answer.n_iter <= 1
        infeasible += best == -np.inf
    assert infeasible > share(10)


def test_exact_on_a_mixture_of_trees_and_single_nodes_but_not_optimal_with_a_cycle():
    rng = np.random.default_rng(2)
    unary = rng.normal(size=(9, 3))
    pairs = [(0, 1), (1, 2), (3, 4), (5, 6), (5, 7), (6, 7)]
    loopy = make_problem(unary, pairs, rng.normal(size=6))
    component, _, acyclic = find_components(loopy)
    np.testing.assert_array_equal(component, [0, 0, 0, 1, 1, 2, 2, 2, 3])
    np.testing.assert_array_equal(acyclic, [True, True, False, True])
    assert not forest_descent(loopy, rng).optimal
    assert forest_descent(loopy, rng).upper_bound is None
    trees = make_problem(unary, pairs[:5], loopy.coupling[:5])
    answer = forest_descent(trees, rng)
    assert answer.optimal
    assert problem_score(trees, answer.labels) == pytest.approx(best_score(trees), abs=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_never_falls_and_ends_at_a_fixed_point_of_icm(kind):
    rng = np.random.default_rng(3)
    optimal = 0
    for _ in range(examples(100)):
        problem = random_problem(rng, n=7, shape=str(rng.choice(["cycle", "dense", "sparse"])), kind=kind)
        start = rng.integers(problem.unary.shape[1], size=7)
        given = start.copy()
        # One forest at a time, so that each step is seen to raise the score.
        labels, scores = start, [slow_score(problem, start)]
        for _ in range(4):
            labels, _ = polish(problem, labels, rng, max_iter=1)
            scores.append(slow_score(problem, labels))
        assert (np.diff(scores) >= -1e-9).all()
        labels, n_iter = polish(problem, start, rng)
        np.testing.assert_array_equal(start, given)
        score = slow_score(problem, labels)
        assert score >= scores[0] - 1e-9
        assert best_single_change(problem, labels) <= score + 1e-9
        assert n_iter <= 100
        optimal += score >= best_score(problem) - 1e-9
    assert optimal > share(75)


def test_beats_single_changes():
    # Every node prefers label 0 slightly, but a chain that starts in label 1 cannot leave it one by one.
    n = 30
    unary = np.tile([0.5, 0.0], (n, 1))
    pairs = np.column_stack([np.arange(n - 1), np.arange(1, n)])
    problem = make_problem(unary, pairs, np.full(n - 1, 2.0))
    start = np.ones(n, dtype=np.int64)
    rng = np.random.default_rng(0)
    np.testing.assert_array_equal(icm(problem, rng, initial=start).labels, 1)
    labels, n_iter = polish(problem, start, rng)
    np.testing.assert_array_equal(labels, 0)
    assert n_iter == 1
    # On a ring no forest holds all nodes, but two arcs of the ring do.
    ring = make_problem(unary, np.concatenate([pairs, [[0, n - 1]]]), np.full(n, 2.0))
    np.testing.assert_array_equal(polish(ring, start, rng)[0], 0)


def test_keeps_labels_on_ties():
    rng = np.random.default_rng(4)
    for shape in GRAPHS:
        pairs = random_pairs(rng, 8, shape)
        problem = make_problem(np.zeros((8, 3)), pairs, np.zeros(len(pairs)))
        start = rng.integers(3, size=8)
        labels, n_iter = polish(problem, start, rng, patience=4)
        np.testing.assert_array_equal(labels, start)
        assert n_iter <= 4


def test_an_optimum_stays():
    rng = np.random.default_rng(5)
    n_optima = 0
    for _ in range(examples(50)):
        problem = random_problem(rng, n=6, n_labels=3, shape="dense")
        best, _ = max(
            (polish(problem, rng.integers(3, size=6), rng) for _ in range(10)),
            key=lambda found: slow_score(problem, found[0]),
        )
        if slow_score(problem, best) < best_score(problem) - 1e-9:
            continue
        np.testing.assert_array_equal(polish(problem, best, rng)[0], best)
        n_optima += 1
    assert n_optima > share(30)


@pytest.mark.parametrize("kind", ["costs", "rewards"])
def test_repairs_an_infeasible_start(kind):
    rng = np.random.default_rng(6)
    repaired = 0
    for _ in range(examples(250)):
        problem = random_problem(
            rng,
            n_labels=int(rng.integers(2, 4)),
            kind=kind,
            hard=0.5,
            forbidden=float(rng.choice([0.0, 0.2])),
        )
        start = rng.integers(problem.unary.shape[1], size=len(problem.unary))
        labels, _ = polish(problem, start, rng)
        if best_score(problem) > -np.inf:
            score = slow_score(problem, labels)
            assert score > -np.inf
            assert best_single_change(problem, labels) <= score + 1e-9
            repaired += slow_broken(problem, start) > 0
        else:
            assert slow_broken(problem, labels) <= slow_broken(problem, start)
    assert repaired > share(100)


def test_repairs_a_wall_between_two_colourings():
    height, width = 9, 8
    row, column = np.divmod(np.arange(height * width), width)
    start = (row + column + (column >= 4)) % 2
    node = np.arange(height * width).reshape(height, width)
    pairs = np.concatenate(
        [
            np.column_stack([node[:, :-1].ravel(), node[:, 1:].ravel()]),
            np.column_stack([node[:-1].ravel(), node[1:].ravel()]),
        ]
    )
    problem = make_problem(np.zeros((height * width, 2)), pairs, np.full(len(pairs), -np.inf))
    assert n_broken(problem, start) == height
    assert n_broken(problem, polish(problem, start, np.random.default_rng(0))[0]) == 0


def test_proves_that_a_tree_allows_nothing():
    problem = make_problem([[0.0, -np.inf], [0.0, -np.inf]], [(0, 1)], [-np.inf])
    answer = forest_descent(problem, np.random.default_rng(0))
    assert answer.optimal
    assert answer.upper_bound == -np.inf
    assert problem_score(problem, answer.labels) == -np.inf


@pytest.mark.parametrize("scale", [1e-9, 1e9, 1e15])
def test_large_and_small_magnitudes(scale):
    rng = np.random.default_rng(7)
    for _ in range(60):
        problem = random_problem(rng, shape="tree", hard=0.2, scale=scale)
        problem = problem._replace(unary=problem.unary + 1e3 * scale)
        best = best_score(problem)
        answer = forest_descent(problem, rng)
        if best == -np.inf:
            assert problem_score(problem, answer.labels) == -np.inf
        else:
            assert problem_score(problem, answer.labels) == pytest.approx(best, rel=1e-12)


def test_strong_links_do_not_drown_weak_scores():
    unary = [[0.0, 1e-3], [1e-3, 0.0], [0.0, 1e-3]]
    problem = make_problem(unary, [(0, 1), (1, 2)], [1e12, 1e12])
    answer = forest_descent(problem, np.random.default_rng(0), initial=np.zeros(3, dtype=np.int64))
    np.testing.assert_array_equal(answer.labels, 1)


def test_same_seed_same_labels_and_patience_of_every_component():
    rng = np.random.default_rng(8)
    problem = random_problem(rng, n=50, n_labels=3, shape="sparse")
    first, second = (forest_descent(problem, np.random.default_rng(9)) for _ in range(2))
    np.testing.assert_array_equal(first.labels, second.labels)
    short = forest_descent(problem, np.random.default_rng(9), max_iter=2)
    assert short.n_iter == 2
    assert not short.converged


def test_patience_is_kept_by_every_component():
    # The maximal forests of a ring are all nodes but one. With this patience each ring has seen all five with
    # near certainty, so its labels are the best among those that agree with them at some node.
    rng = np.random.default_rng(10)
    n_rings = 1000
    unary = rng.normal(size=(5 * n_rings, 2))
    ring = np.array([(0, 1), (0, 4), (1, 2), (2, 3), (3, 4)])
    pairs = (5 * np.arange(n_rings)[:, None, None] + ring).reshape(-1, 2)
    problem = make_problem(unary, pairs, rng.normal(scale=2.0, size=len(pairs)))
    labels, n_iter = polish(problem, unary.argmax(axis=1), rng, patience=80, max_iter=1000)
    assert 80 <= n_iter < 200
    everything = list(itertools.product(range(2), repeat=5))
    for first in range(0, 5 * 100, 5):
        rows = slice(first, first + 5)
        part = make_problem(unary[rows], ring, problem.coupling[rows])
        found = labels[rows]
        reachable = [np.array(z) for z in everything if (np.array(z) == found).any()]
        assert slow_score(part, found) >= max(slow_score(part, z) for z in reachable) - 1e-9
