from __future__ import annotations

import numpy as np
import pytest

from linkwise.inference.local_polytope import milp_labels
from linkwise.inference.scoring import problem_score
from tests.inference.exact_cases import enumerate_fast, grid_pairs, make_problem, random_problem
from tests.repeats import LONG, examples, share


def test_labels_match_enumeration():
    rng = np.random.default_rng(0)
    n_feasible = 0
    for _ in range(examples(100)):
        problem = random_problem(rng, max_states=300)
        best = enumerate_fast(problem)[3]
        answer = milp_labels(problem, time_limit=20.0)
        assert answer.optimal
        if best == -np.inf:
            assert answer.labels is None
            assert answer.upper_bound == -np.inf
            continue
        n_feasible += 1
        score = problem_score(problem, answer.labels)
        assert abs(score - best) <= 1e-9 * max(1.0, abs(best))
        assert best - 1e-12 * abs(best) <= answer.upper_bound <= best + 1e-6 * max(1.0, abs(best))
    assert n_feasible >= share(70)


@pytest.mark.parametrize("scale", [1e-12, 1e-6, 1.0, 1e6, 1e12])
def test_scale_of_the_scores_does_not_matter(scale):
    rng = np.random.default_rng(1)
    n_feasible = 0
    for _ in range(15 if LONG else 7):
        problem = random_problem(rng, shape="clique", n_labels=3, max_states=300)
        scaled = make_problem(problem.unary * scale, problem.pairs, problem.coupling * scale)
        best = enumerate_fast(scaled)[3]
        answer = milp_labels(scaled, time_limit=20.0)
        if best > -np.inf:
            n_feasible += 1
            assert abs(problem_score(scaled, answer.labels) - best) <= 1e-9 * max(scale, abs(best))
    assert n_feasible >= (5 if LONG else 3)


def test_not_called_optimal_when_small_scores_drown():
    # The unary scores are below what the solver resolves beside couplings of 1e12.
    rng = np.random.default_rng(2)
    clique = [(i, j) for i in range(5) for j in range(i + 1, 5)]
    problem = make_problem(rng.normal(size=(5, 3)), clique, np.full(10, 1e12))
    answer = milp_labels(problem, time_limit=20.0)
    assert not answer.optimal or problem_score(problem, answer.labels) == pytest.approx(
        enumerate_fast(problem)[3]
    )


def test_time_limit_gives_a_bound_or_nothing_but_no_lie():
    rng = np.random.default_rng(3)
    pairs = grid_pairs(12, 12)
    problem = make_problem(rng.normal(size=(144, 5)), pairs, rng.normal(scale=2.0, size=len(pairs)))
    proven = milp_labels(problem, time_limit=60.0)
    assert proven.optimal
    best = problem_score(problem, proven.labels)
    hurried = milp_labels(problem, time_limit=0.02)
    assert hurried.upper_bound >= best - 1e-6
    if hurried.labels is not None:
        score = problem_score(problem, hurried.labels)
        assert score <= best + 1e-6
        assert hurried.optimal == (hurried.upper_bound - score <= 1e-6 * max(1.0, abs(score)))
    else:
        assert not hurried.optimal
