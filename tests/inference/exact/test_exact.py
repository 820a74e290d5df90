from __future__ import annotations

import math

import numpy as np
import pytest

from linkwise.exceptions import InferenceBudgetExceeded
from linkwise.inference.engines import find_labels_engine, find_marginals_engine
from linkwise.inference.exact import exact
from linkwise.inference.exact.exact import exact_best_labels, exact_marginals, solve_marginals
from linkwise.inference.exact.junction_tree import plan
from linkwise.inference.problem import reduce_field
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
from tests.inference.oracle import enumerate_problem, random_field
from tests.repeats import LONG, examples, share

RNG = np.random.default_rng(0)


def side_by_side(problems):
    starts = np.cumsum([0] + [len(p.unary) for p in problems])
    return make_problem(
        np.concatenate([p.unary for p in problems]),
        np.concatenate([p.pairs + start for p, start in zip(problems, starts, strict=False)]),
        np.concatenate([p.coupling for p in problems]),
    )


def random_parts(rng, n_labels):
    """Several components with couplings of one form, some of them without links."""
    parts = [random_problem(rng, n_labels=n_labels, max_states=300) for _ in range(int(rng.integers(2, 6)))]
    return [p for p in parts if p.coupling.ndim == parts[0].coupling.ndim and len(p.pairs)] or parts[:1]


def test_engines_are_registered():
    assert find_marginals_engine("exact").solve is exact_marginals
    assert find_labels_engine("exact").solve is exact_best_labels


def test_reduced_fields_match_the_oracle():
    rng = np.random.default_rng(1)
    for case in range(examples(120)):
        field = random_field(rng, per_label=case % 2 == 1, must_hard=False)
        problem = reduce_field(field, keep_zero_in_component=True).problem
        prob, log_partition, agreement, best, _ = enumerate_problem(problem)
        found = exact_marginals(problem, rng)
        labels = exact_best_labels(problem, rng)
        assert found.exact
        assert labels.optimal
        assert found.log_partition == pytest.approx(log_partition, abs=1e-10)
        assert problem_score(problem, labels.labels) == pytest.approx(best, abs=1e-9)
        if log_partition > -np.inf:
            np.testing.assert_allclose(found.prob, prob, atol=1e-10)
            np.testing.assert_allclose(found.agreement, agreement, atol=1e-10)


def test_marginals_match_enumeration():
    rng = np.random.default_rng(2)
    n_feasible = 0
    for case in range(examples(400)):
        problem = random_problem(rng, n_labels=1 if case % 25 == 0 else None)
        result = exact_marginals(problem, rng)
        assert result.exact
        assert result.log_partition_kind == "exact"
        n_feasible += check_marginals(problem, result.prob, result.agreement, result.log_partition)
    assert share(285) <= n_feasible < examples(400)


def test_components_are_independent():
    rng = np.random.default_rng(3)
    for _ in range(examples(150)):
        parts = random_parts(rng, int(rng.integers(2, 4)))
        problem = side_by_side(parts)
        result = exact_marginals(problem, rng)
        labels = exact_best_labels(problem, rng)
        expected = [enumerate_fast(part) for part in parts]
        log_partition = sum(part[1] for part in expected)
        best = sum(part[3] for part in expected)
        assert labels.optimal
        if best == -np.inf:
            assert result.log_partition == -np.inf
            assert problem_score(problem, labels.labels) == labels.upper_bound == -np.inf
            continue
        assert result.log_partition == pytest.approx(log_partition, rel=1e-12, abs=1e-10)
        np.testing.assert_allclose(result.prob, np.concatenate([part[0] for part in expected]), atol=1e-10)
        np.testing.assert_allclose(
            result.agreement, np.concatenate([part[2] for part in expected]), atol=1e-10
        )
        assert problem_score(problem, labels.labels) == pytest.approx(best, rel=1e-12, abs=1e-9)


def test_couplings_of_all_magnitudes():
    rng = np.random.default_rng(12)
    n_precise = 0
    for case in range(examples(100)):
        n_labels = 2 + case % 2
        drawn = random_problem(rng, n_labels=n_labels, max_states=100)
        coupling = rng.choice([-1.0, 1.0], size=len(drawn.pairs)) * 10.0 ** rng.uniform(
            -12, 12, size=len(drawn.pairs)
        )
        unary = rng.normal(size=drawn.unary.shape) * 10.0 ** rng.uniform(-3, 3)
        problem = make_problem(unary, drawn.pairs, coupling)
        best = enumerate_fast(problem)[3]
        labels = exact_best_labels(problem, rng)
        assert labels.optimal
        assert problem_score(problem, labels.labels) == pytest.approx(best, rel=1e-12, abs=1e-9)
        true_prob, log_partition, agreement = precise_marginals(problem)
        # A penalty of 1e12 nats that no labelling avoids leaves only 1e-4 of a float for the rest.
        if abs(log_partition) < 1e4:
            n_precise += 1
            result = exact_marginals(problem, rng)
            np.testing.assert_allclose(result.prob, true_prob, atol=1e-10)
            np.testing.assert_allclose(result.agreement, agreement, atol=1e-10)
            assert result.log_partition == pytest.approx(log_partition, rel=1e-12, abs=1e-10)
    assert n_precise > share(80)


@pytest.mark.parametrize("max_table", [2**22, 8, 1])
def test_labels_match_enumeration_by_every_route(max_table):
    rng = np.random.default_rng(4)
    answered = set()
    for case in range({2**22: 300 if LONG else 100, 8: 150, 1: 100}[max_table]):
        problem = random_problem(rng, n_labels=1 if case % 25 == 0 else None, max_states=300)
        best = enumerate_fast(problem)[3]
        result = exact_best_labels(problem, rng, max_table=max_table)
        score = problem_score(problem, result.labels)
        assert result.optimal
        assert score == best or abs(score - best) <= 1e-9 * max(1.0, abs(best))
        if best == -np.inf:
            assert result.upper_bound == -np.inf
            continue
        assert result.upper_bound >= best - 1e-9 * max(1.0, abs(best))
        parts = result.details.get("parts", {})
        answered |= {name for name, nodes in parts.items() if nodes.size}
        if parts:
            assert sorted(np.concatenate(list(parts.values()))) == list(range(len(problem.unary)))
    expected = {2**22: {"junction_tree"}, 8: {"junction_tree", "milp"}, 1: {"milp"}}[max_table]
    assert answered == expected | {"tree", "min_cut"}


def test_flags_stay_honest_without_time():
    rng = np.random.default_rng(5)
    outcomes = []
    for _ in range(examples(300)):
        problem = random_problem(rng, shape="dense", n_labels=3, max_states=300)
        best = enumerate_fast(problem)[3]
        initial = rng.integers(3, size=len(problem.unary))
        result = exact_best_labels(problem, rng, initial=initial, max_table=1, time_limit=0.0)
        score = problem_score(problem, result.labels)
        assert score <= best + 1e-9
        assert result.upper_bound >= best - 1e-9 * max(1.0, abs(best))
        assert result.converged == result.optimal
        if result.optimal:
            assert score == pytest.approx(best, rel=1e-12, abs=1e-9)
        else:
            assert score >= problem_score(problem, initial)
            assert result.details["gap"] == result.upper_bound - score
        outcomes.append(result.optimal)
    assert share(30) < sum(outcomes) < share(270)


def test_budget_is_refused_with_the_width():
    pairs = grid_pairs(40, 40)
    problem = make_problem(np.zeros((1600, 3)), pairs, np.ones(len(pairs)))
    with pytest.raises(InferenceBudgetExceeded, match=r"1600 groups.*belief_propagation") as caught:
        exact_marginals(problem, RNG)
    assert caught.value.width >= math.floor(math.log(2**22, 3))
    ring = make_problem(np.zeros((5, 3)), ring_pairs(1, 5), np.ones(5))
    with pytest.raises(InferenceBudgetExceeded) as caught:
        exact_marginals(ring, RNG, max_table=26)
    assert caught.value.width == 2
    assert exact_marginals(ring, RNG, max_table=27).exact


def test_integer_program_out_of_reach_is_refused(monkeypatch):
    monkeypatch.setattr(exact, "MAX_VARIABLES", 100)
    pairs = grid_pairs(6, 6)
    problem = make_problem(np.zeros((36, 3)), pairs, -np.ones(len(pairs)))
    with pytest.raises(InferenceBudgetExceeded, match="36 groups"):
        exact_best_labels(problem, RNG, max_table=1)


def test_wide_attractive_pair_labels_need_no_budget():
    rng = np.random.default_rng(6)
    pairs = grid_pairs(60, 60)
    side = rng.random(3600) < 0.5
    coupling = rng.exponential(size=len(pairs))
    coupling[side[pairs[:, 0]] != side[pairs[:, 1]]] *= -1.0
    problem = make_problem(rng.normal(size=(3600, 2)), pairs, coupling)
    result = exact_best_labels(problem, rng)
    assert result.optimal
    assert result.details["parts"]["min_cut"].size == 3600


def test_wide_frustrated_labels_by_integer_program():
    rng = np.random.default_rng(7)
    pairs = grid_pairs(8, 8)
    problem = make_problem(rng.normal(size=(64, 3)), pairs, rng.normal(size=len(pairs)))
    by_tables = exact_best_labels(problem, rng)
    by_program = exact_best_labels(problem, rng, max_table=100)
    assert by_tables.details["parts"]["junction_tree"].size == by_program.details["parts"]["milp"].size == 64
    assert by_tables.optimal
    assert by_program.optimal
    assert problem_score(problem, by_program.labels) == pytest.approx(
        problem_score(problem, by_tables.labels)
    )


def test_solve_marginals_leaves_wide_components_out():
    rng = np.random.default_rng(8)
    ring = make_problem(rng.normal(size=(4, 2)), ring_pairs(1, 4), rng.normal(size=4))
    chain = make_problem(rng.normal(size=(3, 2)), [(0, 1), (1, 2)], rng.normal(size=2))
    pairs = grid_pairs(5, 5)
    grid = make_problem(rng.normal(size=(25, 2)), pairs, rng.normal(size=len(pairs)))
    problem = side_by_side([ring, grid, chain])
    planned = plan(problem, max_table=8)
    assert planned.feasible.tolist() == [True, False, True]
    prob, agreement, log_partition = solve_marginals(problem, planned)
    np.testing.assert_array_equal(prob[4:29], grid.unary)
    assert np.isnan(agreement[4:-2]).all()
    expected = enumerate_fast(ring), enumerate_fast(chain)
    np.testing.assert_allclose(prob[:4], expected[0][0], atol=1e-10)
    np.testing.assert_allclose(prob[29:], expected[1][0], atol=1e-10)
    assert log_partition == pytest.approx(expected[0][1] + expected[1][1])


def test_renumbering_points_labels_and_links_changes_nothing():
    rng = np.random.default_rng(9)
    for _ in range(examples(100)):
        problem = random_problem(rng)
        n, n_labels = problem.unary.shape
        node, label = rng.permutation(n), rng.permutation(n_labels)
        pairs = np.sort(np.argsort(node)[problem.pairs], axis=1)
        order = np.lexsort((pairs[:, 1], pairs[:, 0]))
        coupling = problem.coupling[order]
        moved = make_problem(
            problem.unary[node][:, label],
            pairs[order],
            coupling[:, label] if coupling.ndim == 2 else coupling,
        )
        before, after = exact_marginals(problem, rng), exact_marginals(moved, rng)
        if before.log_partition == -np.inf:
            assert after.log_partition == -np.inf
            continue
        np.testing.assert_allclose(after.prob, before.prob[node][:, label], atol=1e-10)
        np.testing.assert_allclose(after.agreement, before.agreement[order], atol=1e-10)
        assert after.log_partition == pytest.approx(before.log_partition, rel=1e-12, abs=1e-10)


def test_gradient_of_log_partition_gives_marginals_on_a_wide_strip():
    # d log Z / d unary_ik = P(z_i = k), and for a cannot-link d log Z / d coupling_e = agreement.
    rng = np.random.default_rng(11)
    pairs = grid_pairs(6, 9)
    unary, coupling = rng.normal(size=(54, 3)), -rng.exponential(size=len(pairs))
    result = exact_marginals(make_problem(unary, pairs, coupling), rng)
    assert result.details["width"] >= 6
    step = 1e-5
    for node, label in zip(rng.integers(54, size=6), rng.integers(3, size=6), strict=True):
        values = []
        for sign in (1, -1):
            moved = unary.copy()
            moved[node, label] += sign * step
            values.append(exact_marginals(make_problem(moved, pairs, coupling), rng).log_partition)
        assert (values[0] - values[1]) / (2 * step) == pytest.approx(result.prob[node, label], abs=1e-8)
    for edge in rng.integers(len(pairs), size=4):
        values = []
        for sign in (1, -1):
            moved = coupling.copy()
            moved[edge] += sign * step
            values.append(exact_marginals(make_problem(unary, pairs, moved), rng).log_partition)
        assert (values[0] - values[1]) / (2 * step) == pytest.approx(result.agreement[edge], abs=1e-8)


def test_frustrated_and_balanced_parts_joined_by_a_link_without_sign():
    # Rewards 5 and -5 neither attract nor repel, but tilt both ends: the parts are not independent.
    rng = np.random.default_rng(13)
    pairs = [(0, 1), (0, 2), (1, 2), (2, 3), (3, 4), (3, 5), (4, 5)]
    for _ in range(40):
        coupling = np.repeat([-1.0, 1.0], [4, 3])[:, None] * rng.exponential(size=(7, 2))
        coupling[3] = [5.0, -5.0]
        problem = make_problem(rng.normal(scale=3.0, size=(6, 2)), pairs, coupling)
        result = exact_best_labels(problem, rng)
        assert problem_score(problem, result.labels) == pytest.approx(enumerate_fast(problem)[3])
