from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

from linkwise.inference.local_polytope import solve_relaxation
from linkwise.inference.lp import kleinberg_tardos, lp
from linkwise.inference.scoring import best_per_component, problem_score
from tests.inference.label_cases import KINDS, best_score, make_problem, random_problem, slow_score
from tests.repeats import LONG, examples, share

LOOPY = ("cycle", "clique", "dense")


def full_local_polytope(problem):
    """Value of the relaxation with one variable per link and pair of labels; None if infeasible."""
    n, n_labels = problem.unary.shape
    table_size = n_labels**2
    n_variables = n * n_labels + len(problem.pairs) * table_size
    gain = np.zeros(n_variables)
    upper = np.ones(n_variables)
    gain[: n * n_labels] = problem.unary.ravel()
    rows, right = [], []
    for i in range(n):
        row = np.zeros(n_variables)
        row[i * n_labels : (i + 1) * n_labels] = 1.0
        rows.append(row)
        right.append(1.0)
    for e, ((i, j), c) in enumerate(zip(problem.pairs, problem.coupling, strict=True)):
        base = n * n_labels + e * table_size
        for a in range(n_labels):
            for b in range(n_labels):
                if problem.coupling.ndim == 2:
                    value = c[a] if a == b else 0.0
                else:
                    value = min(c, 0.0) if a == b else -max(c, 0.0)
                gain[base + a * n_labels + b] = value
            over_first, over_second = np.zeros((2, n_variables))
            over_first[base + a * n_labels : base + (a + 1) * n_labels] = 1.0
            over_first[i * n_labels + a] = -1.0
            over_second[base + a : base + table_size : n_labels] = 1.0
            over_second[j * n_labels + a] = -1.0
            rows += [over_first, over_second]
            right += [0.0, 0.0]
    upper[gain == -np.inf] = 0.0
    gain[gain == -np.inf] = 0.0
    bounds = np.column_stack([np.zeros(n_variables), upper])
    answer = linprog(-gain, A_eq=np.array(rows), b_eq=right, bounds=bounds, method="highs")
    assert answer.status in (0, 2)
    return None if answer.status == 2 else -answer.fun


@pytest.mark.parametrize("kind", KINDS)
def test_equals_the_full_local_polytope(kind):
    rng = np.random.default_rng(0)
    fractional = infeasible = 0
    many = LONG or kind == "costs"  # where few problems have no labelling
    for _ in range(60 if many else 25):
        problem = random_problem(
            rng,
            n=int(rng.integers(4, 7)),
            n_labels=int(rng.choice([1, 2, 2, 3, 3])),
            shape=str(rng.choice(["cycle", "clique", "clique"])),
            kind=kind,
            hard=float(rng.choice([0.0, 0.3])),
            forbidden=float(rng.choice([0.0, 0.2])),
            unary_scale=float(rng.choice([0.1, 1.0])),
        )
        if len(problem.pairs) == 0:
            continue
        expected = full_local_polytope(problem)
        relaxed = solve_relaxation(problem)
        if expected is None:
            assert relaxed.status == "infeasible"
            infeasible += 1
            continue
        assert relaxed.status == "solved"
        assert relaxed.upper_bound == pytest.approx(expected, abs=1e-7)
        np.testing.assert_allclose(relaxed.shares.sum(axis=1), 1.0, atol=1e-7)
        assert (relaxed.shares[problem.unary == -np.inf] == 0).all()
        fractional += (np.abs(relaxed.shares - 0.5) < 0.49).any()
    assert fractional > (5 if many else 2)
    assert infeasible > 0


@pytest.mark.parametrize("kind", KINDS)
def test_bound_is_never_below_the_optimum_and_flags_are_true(kind):
    rng = np.random.default_rng(1)
    tight = loose = hopeless = 0
    for _ in range(100 if LONG else 40):
        problem = random_problem(
            rng,
            n_labels=int(rng.integers(1, 4)),
            shape=str(rng.choice([*LOOPY, "sparse", "two_parts"])),
            kind=kind,
            hard=float(rng.choice([0.0, 0.3])),
            forbidden=float(rng.choice([0.0, 0.2])),
            scale=float(rng.choice([1e-6, 1.0, 1e6])),
            unary_scale=float(rng.choice([0.1, 1.0])),
        )
        size = sum(np.abs(x[x > -np.inf]).sum() for x in (problem.unary, problem.coupling))
        best = best_score(problem)
        answer = lp(problem, rng, n_roundings=3)
        score = slow_score(problem, answer.labels)
        assert answer.converged
        # The bound is exact up to the order in which the oracle adds.
        assert answer.upper_bound >= best - 1e-14 * size
        assert score <= best + 1e-12 * size
        if answer.optimal:
            assert score == pytest.approx(best, abs=1e-10 * size)
            tight += best > -np.inf
            hopeless += best == -np.inf
        else:
            assert answer.upper_bound > score
            loose += 1
    assert tight > (50 if LONG else 20)
    assert loose > (1 if LONG else 0)
    assert hopeless > (3 if LONG else 1)


def test_integral_shares_are_certified():
    rng = np.random.default_rng(2)
    certified = 0
    for _ in range(examples(75)):
        problem = random_problem(rng, n=6, n_labels=3, shape=str(rng.choice(LOOPY)), kind="costs", scale=1.0)
        problem = problem._replace(unary=4.0 * problem.unary)
        relaxed = solve_relaxation(problem)
        if (np.abs(relaxed.shares - 0.5) > 0.499).all():
            answer = lp(problem, rng)
            assert answer.optimal
            assert answer.details["n_fractional"] == 0
            assert slow_score(problem, answer.labels) == pytest.approx(best_score(problem), abs=1e-9)
            certified += 1
    assert certified > share(37)


def test_one_cannot_link_with_flat_scores_costs_nothing():
    for n_labels in (2, 3, 5):
        problem = make_problem(np.zeros((2, n_labels)), [(0, 1)], [-7.0])
        relaxed = solve_relaxation(problem)
        assert relaxed.upper_bound == pytest.approx(0.0, abs=1e-9)
    # The same with one label: the link cannot be kept.
    assert solve_relaxation(make_problem(np.zeros((2, 1)), [(0, 1)], [-7.0])).upper_bound == pytest.approx(
        -7.0
    )


def test_frustrated_triangle_has_a_gap_and_says_so():
    problem = make_problem(np.zeros((3, 2)), [(0, 1), (0, 2), (1, 2)], [-1.0, -1.0, -1.0])
    answer = lp(problem, np.random.default_rng(0))
    assert answer.upper_bound == pytest.approx(0.0, abs=1e-9)
    assert problem_score(problem, answer.labels) == -1.0
    assert not answer.optimal
    assert answer.details["n_fractional"] == 3


def separate_conditions(problem):
    """The weaker program for rewards per label: each diagonal entry bounded by itself."""
    n, n_labels = problem.unary.shape
    n_variables = (n + len(problem.pairs)) * n_labels
    gain = np.concatenate([problem.unary.ravel(), problem.coupling.ravel()])
    rows, right = [], []
    for e, (i, j) in enumerate(problem.pairs):
        for a in range(n_labels):
            d = (n + e) * n_labels + a
            first, second, lower = np.zeros((3, n_variables))
            first[[d, i * n_labels + a]] = 1.0, -1.0
            second[[d, j * n_labels + a]] = 1.0, -1.0
            lower[[d, i * n_labels + a, j * n_labels + a]] = -1.0, 1.0, 1.0
            rows += [first, second, lower]
            right += [0.0, 0.0, 1.0]
    one = np.kron(np.eye(n), np.ones(n_labels))
    one = np.column_stack([one, np.zeros((n, n_variables - n * n_labels))])
    return -linprog(-gain, A_ub=np.array(rows), b_ub=right, A_eq=one, b_eq=np.ones(n), bounds=(0, 1)).fun


def test_mixed_signs_need_the_joint_condition():
    rng = np.random.default_rng(11)
    weaker = 0
    for _ in range(examples(40)):
        problem = random_problem(rng, n=5, n_labels=3, shape="clique", kind="mixed_signs", unary_scale=0.1)
        bound, weak = solve_relaxation(problem).upper_bound, separate_conditions(problem)
        assert bound <= weak + 1e-7
        weaker += bound < weak - 1e-3
        one_sign = problem._replace(coupling=np.abs(problem.coupling) * rng.choice([-1, 1], size=(10, 1)))
        assert solve_relaxation(one_sign).upper_bound == pytest.approx(
            separate_conditions(one_sign), abs=1e-7
        )
    assert weaker > 5


def test_infeasible_relaxation_is_a_proof():
    unary = np.array([[0.0, -np.inf], [0.0, -np.inf], [0.0, 0.0]])
    problem = make_problem(unary, [(0, 1), (0, 2), (1, 2)], [-np.inf, 1.0, 1.0])
    answer = lp(problem, np.random.default_rng(0))
    assert answer.optimal
    assert answer.upper_bound == -np.inf
    assert problem_score(problem, answer.labels) == -np.inf


def test_infeasible_labels_with_feasible_shares_are_not_a_proof():
    problem = make_problem(np.zeros((3, 2)), [(0, 1), (0, 2), (1, 2)], np.full(3, -np.inf))
    answer = lp(problem, np.random.default_rng(0))
    assert not answer.optimal
    assert answer.upper_bound == pytest.approx(0.0, abs=1e-9)
    assert problem_score(problem, answer.labels) == -np.inf


def test_an_infeasible_tree_beside_a_cycle_is_a_proof():
    unary = np.array([[0.0, 0.0]] * 3 + [[0.0, -np.inf]] * 2)
    problem = make_problem(unary, [(0, 1), (0, 2), (1, 2), (3, 4)], [1.0, 1.0, 1.0, -np.inf])
    answer = lp(problem, np.random.default_rng(0))
    assert answer.optimal
    assert answer.upper_bound == -np.inf
    assert problem_score(problem, answer.labels) == -np.inf


def test_trees_need_no_linear_program():
    rng = np.random.default_rng(3)
    for _ in range(40):
        problem = random_problem(rng, shape="tree")
        answer = lp(problem, rng, time_limit=0.0)
        assert answer.optimal
        assert answer.converged
        assert answer.upper_bound == pytest.approx(best_score(problem), abs=1e-9)


def test_time_limit():
    rng = np.random.default_rng(4)
    problem = random_problem(rng, n=60, n_labels=4, shape="dense", kind="costs")
    start = rng.integers(4, size=60)
    answer = lp(problem, rng, initial=start, time_limit=1e-4)
    assert not answer.converged
    assert not answer.optimal
    assert answer.upper_bound is None
    assert problem_score(problem, answer.labels) > problem_score(problem, start)


def test_initial_labels_are_a_candidate():
    rng = np.random.default_rng(5)
    for _ in range(30):
        problem = random_problem(rng, n=7, n_labels=2, shape="clique", kind="costs")
        start = rng.integers(2, size=7)
        answer = lp(problem, rng, initial=start, n_roundings=0)
        assert problem_score(problem, answer.labels) >= problem_score(problem, start) - 1e-9


def test_scores_of_very_different_size():
    rng = np.random.default_rng(6)
    for _ in range(examples(60)):
        problem = random_problem(rng, n=5, n_labels=3, shape="cycle", kind="costs")
        coupling = problem.coupling * 10.0 ** rng.integers(-3, 13, size=len(problem.coupling))
        unary = problem.unary * 10.0 ** rng.integers(-3, 13, size=(5, 1)) - 1e6
        problem = problem._replace(unary=unary, coupling=coupling)
        best = best_score(problem)
        answer = lp(problem, rng)
        size = np.abs(unary).sum() + np.abs(coupling).sum()
        assert answer.upper_bound >= best - 1e-15 * size
        if answer.optimal:
            assert slow_score(problem, answer.labels) == pytest.approx(best, abs=1e-11 * size)


def test_rounding_draws_labels_with_their_shares():
    rng = np.random.default_rng(7)
    shares = np.array([[0.5, 0.3, 0.2], [0.0, 1.0, 0.0], [0.1, 0.1, 0.8]])
    component = np.zeros(3, dtype=np.int64)
    draws = np.array([kleinberg_tardos(shares, component, rng) for _ in range(6000)])
    for node in range(3):
        counts = np.bincount(draws[:, node], minlength=3) / 6000
        np.testing.assert_allclose(counts, shares[node], atol=0.03)
        assert (counts[shares[node] == 0] == 0).all()


def test_rounding_separates_rarely_and_never_equals():
    rng = np.random.default_rng(8)
    first = rng.dirichlet(np.ones(4))
    second = 0.8 * first + 0.2 * rng.dirichlet(np.ones(4))
    shares = np.array([first, second, first])
    component = np.zeros(3, dtype=np.int64)
    draws = np.array([kleinberg_tardos(shares, component, rng) for _ in range(4000)])
    assert (draws[:, 0] == draws[:, 2]).all()
    # Kleinberg & Tardos: P(apart) <= 2 * (half the sum of absolute differences).
    assert 0 < (draws[:, 0] != draws[:, 1]).mean() <= np.abs(first - second).sum() + 0.02


def test_rounding_costs_at_most_twice_the_relaxation_with_must_links_only():
    rng = np.random.default_rng(9)
    for _ in range(5):
        problem = random_problem(rng, n=7, n_labels=3, shape="clique", kind="costs")
        problem = problem._replace(unary=-np.abs(problem.unary), coupling=np.abs(problem.coupling))
        relaxed = solve_relaxation(problem)
        component = np.zeros(7, dtype=np.int64)
        scores = [
            problem_score(problem, kleinberg_tardos(relaxed.shares, component, rng)) for _ in range(400)
        ]
        # Scores are minus costs; four standard errors of the mean are allowed.
        slack = 4 * np.std(scores) / 20 + 1e-9
        assert -np.mean(scores) <= 2 * -relaxed.upper_bound + slack


def test_components_draw_for_themselves():
    shares = np.full((400, 2), 0.5)
    labels = kleinberg_tardos(shares, np.arange(400), np.random.default_rng(10))
    assert 120 < labels.sum() < 280


def test_best_parts_are_joined():
    unary = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    problem = make_problem(unary, [(0, 1), (2, 3)], [1.0, 1.0])
    component = np.array([0, 0, 1, 1])
    candidates = [np.array([0, 0, 0, 0]), np.array([1, 1, 1, 1]), np.array([0, 1, 0, 1])]
    np.testing.assert_array_equal(best_per_component(problem, candidates, component, 2), [0, 0, 1, 1])
