from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from linkwise.inference.exact import junction_tree as junction_plan
from linkwise.inference.exact.junction_tree import junction_best_labels, junction_marginals, plan
from linkwise.inference.scoring import problem_score
from tests.inference.exact_cases import (
    check_marginals,
    enumerate_fast,
    grid_pairs,
    make_problem,
    precise_marginals,
    random_problem,
    ring_pairs,
)
from tests.repeats import examples, share


def solve(problem, planned):
    prob = np.full(problem.unary.shape, np.nan)
    agreement = np.full(len(problem.pairs), np.nan)
    log_partition = junction_marginals(problem, planned.buckets, prob, agreement)
    labels = np.zeros(len(prob), dtype=np.int64)
    junction_best_labels(problem, planned.buckets, labels)
    return prob, agreement, log_partition, labels


def join(first, second):
    """Two problems side by side."""
    n = len(first.unary)
    return make_problem(
        np.concatenate([first.unary, second.unary]),
        np.concatenate([first.pairs, second.pairs + n]),
        np.concatenate([first.coupling, second.coupling]),
    )


@pytest.mark.parametrize("shape", ["cycle", "clique", "dense"])
def test_random_loopy_problems_match_enumeration(shape):
    rng = np.random.default_rng(0)
    n_feasible = 0
    for _ in range(examples(200)):
        problem = random_problem(rng, shape=shape)
        planned = plan(problem)
        if planned.forest.any():
            continue
        prob, agreement, log_partition, labels = solve(problem, planned)
        n_feasible += check_marginals(problem, prob, agreement, log_partition)
        best, found = enumerate_fast(problem)[3], problem_score(problem, labels)
        assert found == best or abs(found - best) <= 1e-9 * max(1.0, abs(best))
    assert n_feasible >= share(90)


@pytest.mark.parametrize("odds", [60.0, 2000.0])
@pytest.mark.parametrize("coupling", [1e-12, 61.0, 1e3, 1e12, -1e-12, -61.0, -1e3])
def test_opposing_evidence_under_strong_links(odds, coupling):
    unary = np.zeros((4, 3))
    unary[0, 0] = unary[1, 1] = odds
    unary[2, 1] = 0.75 * odds
    unary[3] = [0.3, 0.1, -0.2]
    problem = make_problem(
        unary, [(0, 1), (0, 3), (1, 2), (1, 3), (2, 3)], [coupling, 0.7 * coupling, 1.0, coupling, coupling]
    )
    prob, agreement, log_partition, _ = solve(problem, plan(problem))
    true_prob, true_log_partition, true_agreement = precise_marginals(problem)
    np.testing.assert_allclose(prob, true_prob, rtol=0, atol=1e-10)
    np.testing.assert_allclose(agreement, true_agreement, rtol=0, atol=1e-10)
    assert log_partition == pytest.approx(true_log_partition, rel=1e-12, abs=1e-10)


def test_many_rings_have_the_closed_form():
    # Eigenvalues of the transfer matrix: Z = (a + (K - 1) d) ** L + (K - 1) (a - d) ** L
    # with a = exp(agree), d = exp(differ).
    n_rings, length, n_labels = 20_000, 5, 4
    coupling = np.repeat(np.random.default_rng(0).normal(scale=2.0, size=n_rings), length)
    pairs = ring_pairs(n_rings, length)
    problem = make_problem(np.zeros((n_rings * length, n_labels)), pairs, coupling[pairs[:, 0]])
    planned = plan(problem)
    assert (planned.widths == 2).all()
    assert planned.feasible.all()
    prob, agreement, log_partition, labels = solve(problem, planned)
    strength = coupling[::length]
    a, d = np.exp(np.minimum(strength, 0)), np.exp(-np.maximum(strength, 0))
    large, small = a + (n_labels - 1) * d, a - d
    each = large**length + (n_labels - 1) * small**length
    assert log_partition == pytest.approx(np.log(each).sum(), rel=1e-12)
    np.testing.assert_allclose(prob, 0.25, atol=1e-10)
    # P(agree) = d log Z / d log a / L
    slope = a * (large ** (length - 1) + (n_labels - 1) * small ** (length - 1)) / each
    np.testing.assert_allclose(agreement, slope[pairs[:, 0] // length], atol=1e-10)
    assert problem_score(problem, labels) == 0.0


def test_ladder_matches_transfer_matrices():
    # Columns of a 3 x 60 strip as one variable with K ** 3 states: chain elimination by hand.
    rng = np.random.default_rng(3)
    n_columns, n_labels = 60, 3
    pairs = grid_pairs(3, n_columns)
    coupling = rng.normal(scale=1.5, size=len(pairs))
    unary = rng.normal(scale=1.5, size=(3 * n_columns, n_labels))
    problem = make_problem(unary, pairs, coupling)
    value = {(int(i), int(j)): c for (i, j), c in zip(pairs, coupling, strict=True)}
    states = np.indices((n_labels,) * 3).reshape(3, -1)

    def log_link(i, j, first, second):
        c = value[(i, j)]
        return np.where(first == second, min(c, 0.0), -max(c, 0.0))

    def log_column(column):
        nodes = [row * n_columns + column for row in range(3)]
        score = sum(unary[node, states[row]] for row, node in enumerate(nodes))
        return score + sum(log_link(nodes[r], nodes[r + 1], states[r], states[r + 1]) for r in range(2))

    log_sum = best = log_column(0)
    for column in range(1, n_columns):
        step = sum(
            log_link(
                row * n_columns + column - 1,
                row * n_columns + column,
                states[row][:, None],
                states[row][None, :],
            )
            for row in range(3)
        )
        log_sum = np.logaddexp.reduce(log_sum[:, None] + step, axis=0) + log_column(column)
        best = (best[:, None] + step).max(axis=0) + log_column(column)
    prob, _, log_partition, labels = solve(problem, plan(problem))
    assert log_partition == pytest.approx(np.logaddexp.reduce(log_sum), rel=1e-13)
    last = np.exp(log_sum - np.logaddexp.reduce(log_sum))
    np.testing.assert_allclose(prob[n_columns - 1], np.bincount(states[0], last, n_labels), atol=1e-11)
    assert problem_score(problem, labels) == pytest.approx(best.max(), rel=1e-13)


def test_widths_of_known_graphs():
    clique = np.array([(i, j) for i in range(6) for j in range(i + 1, 6)])
    assert plan(make_problem(np.zeros((6, 2)), clique, np.ones(15))).widths.tolist() == [5]
    assert plan(make_problem(np.zeros((9, 2)), ring_pairs(1, 9), np.ones(9))).widths.tolist() == [2]
    assert plan(make_problem(np.zeros((3, 2)), [(0, 1)], np.ones(1))).widths.tolist() == [1, 0]
    strip = make_problem(np.zeros((60, 2)), grid_pairs(3, 20), np.ones(97))
    assert 3 <= plan(strip).widths[0] <= 4


def test_separators_are_later_steps_and_cover_the_links():
    rng = np.random.default_rng(1)
    for _ in range(100):
        problem = random_problem(rng, shape="dense")
        buckets = plan(problem).buckets
        for step, node in enumerate(buckets.order):
            separator = buckets.separators[
                buckets.separator_indptr[step] : buckets.separator_indptr[step + 1]
            ]
            assert (separator > step).all()
            assert (np.diff(separator) > 0).all()
            assert buckets.step_of[node] == step
            graph = problem.graph
            later = buckets.step_of[graph.neighbours[graph.indptr[node] : graph.indptr[node + 1]]]
            assert set(later[later > step]) <= set(separator)


def test_plan_refuses_by_table_and_by_total(monkeypatch):
    problem = make_problem(np.zeros((30, 3)), grid_pairs(3, 10), np.ones(47))
    width = int(plan(problem).widths[0])
    assert plan(problem, max_table=3 ** (width + 1)).feasible.all()
    assert not plan(problem, max_table=3 ** (width + 1) - 1).feasible.any()
    assert plan(problem, max_table=3 ** (width + 1) - 1).widths[0] >= width
    entries = int((3 ** (np.diff(plan(problem).buckets.separator_indptr) + 1)).sum())
    for budget, feasible in ((entries, True), (entries - 1, False)):
        monkeypatch.setattr(junction_plan, "total_budget", lambda _, budget=budget: budget)
        assert plan(problem).feasible.tolist() == [feasible]
    assert plan(problem).widths.tolist() == [width]


def test_narrow_components_are_found_beside_wide_ones():
    rng = np.random.default_rng(2)
    for case in range(60):
        narrow = random_problem(rng, shape="cycle", n_labels=2)
        n_side = [6, 12, 40][case % 3]
        pairs = grid_pairs(n_side, n_side)
        coupling = np.ones((len(pairs), 2)) if narrow.coupling.ndim == 2 else np.ones(len(pairs))
        wide = make_problem(np.zeros((n_side**2, 2)), pairs, coupling)
        both = join(narrow, wide) if case % 2 else join(wide, narrow)
        place = 0 if case % 2 else n_side**2
        planned = plan(both, max_table=2**4)
        here = planned.component[place]
        assert planned.feasible.tolist() == [
            c == here or planned.forest[c] for c in range(len(planned.sizes))
        ]
        if planned.forest[here]:
            continue
        prob, agreement, log_partition, _ = solve(both, planned)
        rows = slice(place, place + len(narrow.unary))
        links = (both.pairs[:, 0] >= rows.start) & (both.pairs[:, 0] < rows.stop)
        check_marginals(narrow, prob[rows], agreement[links], log_partition)


def test_large_wide_component_is_refused_by_a_probe():
    pairs = grid_pairs(300, 300)
    planned = plan(make_problem(np.zeros((90_000, 2)), pairs, np.ones(len(pairs))))
    assert not planned.feasible.any()
    assert planned.widths[0] > 21


def test_large_narrow_component_passes_the_probes():
    pairs = grid_pairs(2, 20_000)
    problem = make_problem(np.zeros((40_000, 2)), pairs, np.ones(len(pairs)))
    planned = plan(problem)
    assert planned.feasible.all()
    prob, _, log_partition, _ = solve(problem, planned)
    np.testing.assert_allclose(prob, 0.5, atol=1e-10)
    d = np.exp(-1.0)
    rung = np.array([[1.0, d], [d, 1.0]]).ravel()
    transfer = np.kron([[1.0, d], [d, 1.0]], [[1.0, d], [d, 1.0]])
    state, expected = rung, 0.0
    for _ in range(19_999):
        state = (state @ transfer) * rung
        expected += np.log(state.sum())
        state /= state.sum()
    assert log_partition == pytest.approx(expected, rel=1e-12)


def test_nothing_large_is_allocated_before_a_refusal():
    pairs = grid_pairs(40, 40)
    problem = make_problem(np.zeros((1600, 3)), pairs, np.ones(len(pairs)))
    plan(problem)
    tracemalloc.start()
    try:
        assert not plan(problem).feasible.any()
        assert tracemalloc.get_traced_memory()[1] < 5e6
    finally:
        tracemalloc.stop()


def test_contradictions_are_minus_infinity():
    clique = [(i, j) for i in range(4) for j in range(i + 1, 4)]
    problem = make_problem(np.zeros((4, 3)), clique, np.full(6, -np.inf))
    _, _, log_partition, labels = solve(problem, plan(problem))
    assert log_partition == -np.inf
    assert problem_score(problem, labels) == -np.inf


def test_ties_are_settled_by_back_tracking():
    problem = make_problem(np.zeros((8, 2)), ring_pairs(1, 8), np.full(8, -np.inf))
    labels = solve(problem, plan(problem))[3]
    assert problem_score(problem, labels) == 0.0
