from __future__ import annotations

import numpy as np
import pytest

from linkwise.inference.local_search import hard_links as module
from linkwise.inference.local_search.hard_links import disjoint_supports, feasible_labels, hard_rows, soften
from linkwise.inference.scoring import problem_score
from tests.inference.marginal_cases import brute_force, make_problem, random_problem
from tests.repeats import examples, share


@pytest.mark.parametrize("forbidden", [0.0, 0.3])
def test_status_and_labels_against_enumeration(forbidden):
    counts = {"feasible": 0, "infeasible": 0}
    for seed in range(examples(150)):
        problem = random_problem(seed, hard=0.5, must_hard=False, forbidden=forbidden)
        allowed = brute_force(problem)[1] > -np.inf
        status, labels = feasible_labels(problem, np.random.default_rng(seed))
        assert status == ("feasible" if allowed else "infeasible")
        if status == "feasible":
            assert problem_score(problem, labels) > -np.inf
        counts[status] += 1
    assert min(counts.values()) > share(10)


def test_links_hard_for_some_labels_are_decided_too():
    counts = {"feasible": 0, "infeasible": 0}
    for seed in range(examples(300)):
        problem = random_problem(seed, hard=0.2, must_hard=False, partly_hard=0.6)
        allowed = brute_force(problem)[1] > -np.inf
        status, labels = feasible_labels(problem, np.random.default_rng(seed))
        assert status == ("feasible" if allowed else "infeasible")
        counts[status] += 1
        if status == "feasible":
            assert problem_score(problem, labels) > -np.inf
    assert min(counts.values()) > share(10)


def test_free_points_get_their_best_label():
    problem = make_problem([[0.0, 1.0, 5.0], [3.0, 0.0, 0.0], [2.0, 0.0, 0.0]], [(1, 2)], [-np.inf])
    assert feasible_labels(problem, np.random.default_rng(0))[1][0] == 2


def test_other_draws_give_other_labellings():
    problem = make_problem(np.zeros((6, 3)), [(i, i + 1) for i in range(5)], [-np.inf] * 5)
    found = {tuple(feasible_labels(problem, np.random.default_rng(seed))[1]) for seed in range(30)}
    assert len(found) > 3


def test_supports_are_disjoint_maximal_and_keep_the_labels():
    checked = 0
    for seed in range(examples(300)):
        problem = random_problem(seed, hard=0.5, must_hard=False, forbidden=0.1)
        status, labels = feasible_labels(problem, np.random.default_rng(seed))
        if status != "feasible" or not hard_rows(problem).any():
            continue
        checked += 1
        restricted = disjoint_supports(problem, labels)
        allowed = restricted.unary > -np.inf
        np.testing.assert_array_equal(restricted.unary[allowed], problem.unary[allowed])
        assert allowed[np.arange(len(labels)), labels].all()
        assert (restricted.coupling > -np.inf).all()
        soft = problem.coupling > -np.inf
        np.testing.assert_array_equal(restricted.coupling[soft], problem.coupling[soft])
        hard_pairs = problem.pairs[hard_rows(problem)]
        assert not (allowed[hard_pairs[:, 0]] & allowed[hard_pairs[:, 1]]).any()
        for node in range(len(labels)):
            across = [b if a == node else a for a, b in hard_pairs if node in (a, b)]
            taken = allowed[across].any(axis=0) | (problem.unary[node] == -np.inf)
            assert (allowed[node] | taken).all()
    assert checked > share(50)


def test_a_link_hard_for_one_label_restricts_only_that_label():
    problem = make_problem([[0.0, 0.0], [1.0, 0.0]], [(0, 1)], [[-np.inf, 2.0]])
    np.testing.assert_array_equal(
        disjoint_supports(problem, np.array([1, 1])).unary > -np.inf, [[False, True], [True, True]]
    )


def test_softened_links_outweigh_any_point():
    problem = make_problem([[0.0, -50.0, -np.inf], [0.0, -1.0, 0.0]], [(0, 1)], [-np.inf])
    np.testing.assert_array_equal(soften(problem).coupling, [-50.0 - module._SOFTENED])
    np.testing.assert_array_equal(soften(problem).unary, problem.unary)
