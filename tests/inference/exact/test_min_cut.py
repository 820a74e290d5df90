from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow

from linkwise.graph import adjacency
from linkwise.inference.exact.min_cut import max_flow, min_cut_labels, signed_two_colouring
from linkwise.inference.scoring import problem_score
from tests.inference.exact_cases import enumerate_fast, grid_pairs, make_problem, random_problem, ring_pairs
from tests.repeats import examples, share


def scipy_flow(graph, capacity, terminal):
    """Maximum flow by scipy, which takes integers only."""
    n = len(terminal)
    rows = np.repeat(np.arange(n), np.diff(graph.indptr))
    source, sink = np.flatnonzero(terminal > 0), np.flatnonzero(terminal < 0)
    values = np.concatenate([capacity, terminal[source], -terminal[sink]]).astype(np.int32)
    starts = np.concatenate([rows, np.full(len(source), n), sink])
    ends = np.concatenate([graph.neighbours, source, np.full(len(sink), n + 1)])
    return maximum_flow(csr_array((values, (starts, ends)), shape=(n + 2, n + 2)), n, n + 1).flow_value


def cut_value(graph, capacity, terminal, source_side):
    rows = np.repeat(np.arange(len(terminal)), np.diff(graph.indptr))
    crossing = source_side[rows] & ~source_side[graph.neighbours]
    return (
        terminal[(terminal > 0) & ~source_side].sum()
        - terminal[(terminal < 0) & source_side].sum()
        + capacity[crossing].sum()
    )


def test_flow_equals_scipy_and_the_cut_proves_it():
    rng = np.random.default_rng(0)
    for _ in range(examples(300)):
        n = int(rng.integers(2, 60))
        found = {tuple(sorted(rng.choice(n, 2, replace=False).tolist())) for _ in range(rng.integers(4 * n))}
        graph = adjacency(n, np.array(sorted(found), dtype=np.int64).reshape(-1, 2))
        capacity = rng.integers(0, 20, 2 * len(found)).astype(float)
        terminal = rng.integers(-15, 16, n).astype(float)
        flow, source_side = max_flow(graph, capacity, terminal)
        assert flow == scipy_flow(graph, capacity, terminal)
        assert cut_value(graph, capacity, terminal, source_side) == flow


@pytest.mark.parametrize("strength", [1, 5, 40])
def test_flow_on_a_grid_equals_scipy(strength):
    rng = np.random.default_rng(1)
    pairs = grid_pairs(60, 60)
    graph = adjacency(3600, pairs)
    capacity = rng.integers(0, strength + 1, 2 * len(pairs)).astype(float)
    terminal = rng.integers(-15, 16, 3600).astype(float)
    flow, source_side = max_flow(graph, capacity, terminal)
    assert flow == scipy_flow(graph, capacity, terminal)
    assert cut_value(graph, capacity, terminal, source_side) == flow


def test_float_capacities_need_no_rounding():
    rng = np.random.default_rng(2)
    pairs = grid_pairs(100, 100)
    graph = adjacency(10_000, pairs)
    capacity = rng.exponential(size=2 * len(pairs))
    terminal = rng.normal(size=10_000)
    flow, source_side = max_flow(graph, capacity, terminal)
    assert cut_value(graph, capacity, terminal, source_side) == pytest.approx(flow, rel=1e-12)


def test_infinite_capacities():
    graph = adjacency(3, np.array([[0, 1], [1, 2]]))
    infinite = np.full(4, np.inf)
    flow, source_side = max_flow(graph, infinite, np.array([np.inf, 0.0, -2.5]))
    assert (flow, source_side.tolist()) == (2.5, [True, True, True])
    assert max_flow(graph, infinite, np.array([np.inf, 0.0, -np.inf]))[0] == np.inf


def balanced_by_enumeration(sign, pairs, n):
    """Whether some labelling satisfies every link with a sign."""
    for z in itertools.product((0, 1), repeat=n):
        if all(s == 0 or (z[i] == z[j]) == (s > 0) for (i, j), s in zip(pairs, sign, strict=True)):
            return True
    return False


def test_signed_two_colouring_finds_frustration():
    rng = np.random.default_rng(3)
    outcomes = []
    for _ in range(examples(400)):
        problem = random_problem(rng, n_labels=2, max_states=64)
        sign = problem.coupling if problem.coupling.ndim == 1 else problem.coupling.sum(axis=1)
        swapped, frustrated = signed_two_colouring(problem)
        balanced = balanced_by_enumeration(sign, problem.pairs, len(problem.unary))
        assert balanced == (not frustrated.any())
        outcomes.append(balanced)
        for (i, j), s in zip(problem.pairs, sign, strict=True):
            if s != 0 and not frustrated[i]:
                assert (swapped[i] == swapped[j]) == (s > 0)
    assert share(100) < sum(outcomes) < 0.9 * len(outcomes)


def make_balanced(rng, problem):
    """Change signs so that a random swapping makes every link attract."""
    side = rng.random(len(problem.unary)) < rng.choice([0.0, 0.5])
    same = side[problem.pairs[:, 0]] == side[problem.pairs[:, 1]]
    coupling = problem.coupling.copy()
    if coupling.ndim == 1:
        coupling = np.where(same & (coupling > -np.inf), np.abs(coupling), -np.abs(coupling))
        keep = ~(same & (coupling == -np.inf))
    else:
        total = coupling.sum(axis=1)
        coupling[same & (total < 0) & (total > -np.inf)] *= -1.0
        coupling[~same & (total > 0)] *= -1.0
        keep = ~(same & (total == -np.inf))
    return make_problem(problem.unary, problem.pairs[keep], coupling[keep])


def test_labels_match_enumeration():
    rng = np.random.default_rng(4)
    n_feasible = 0
    for _ in range(500):
        problem = make_balanced(rng, random_problem(rng, n_labels=2))
        swapped, frustrated = signed_two_colouring(problem)
        assert not frustrated.any()
        best = enumerate_fast(problem)[3]
        found = problem_score(problem, min_cut_labels(problem, swapped))
        assert found == best or abs(found - best) <= 1e-9 * max(1.0, abs(best))
        n_feasible += best > -np.inf
    assert 350 < n_feasible < 500


def test_contradictory_hard_links_score_minus_infinity():
    unary = np.array([[0.0, -np.inf], [0.0, 0.0], [0.0, 0.0], [-np.inf, 0.0]])
    problem = make_problem(unary, [(0, 1), (0, 3), (1, 2), (2, 3)], [-np.inf, 1.0, -np.inf, 5.0])
    swapped, frustrated = signed_two_colouring(problem)
    assert not frustrated.any()
    labels = min_cut_labels(problem, swapped)
    assert problem_score(problem, labels) == enumerate_fast(problem)[3]
    ring = make_problem(unary[[0, 0, 3, 3]], ring_pairs(1, 4), np.full(4, -np.inf))
    assert problem_score(ring, min_cut_labels(ring, signed_two_colouring(ring)[0])) == -np.inf


def test_no_neighbouring_labelling_is_better_on_a_large_grid():
    rng = np.random.default_rng(5)
    pairs = grid_pairs(300, 300)
    unary = np.zeros((90_000, 2))
    unary[:, 1] = rng.normal(scale=2.0, size=90_000)
    problem = make_problem(unary, pairs, rng.exponential(size=len(pairs)))
    labels = min_cut_labels(problem, np.zeros(90_000, dtype=bool))
    best = problem_score(problem, labels)
    for i in range(0, 300, 20):
        for block in (1, 7, 60):
            changed = labels.reshape(300, 300).copy()
            changed[i : i + block, i : i + block] ^= 1
            assert problem_score(problem, changed.ravel()) <= best + 1e-9
