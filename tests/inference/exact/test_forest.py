from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.csgraph import minimum_spanning_tree

from linkwise.exceptions import ApproximationWarning
from linkwise.graph import adjacency
from linkwise.inference.engines import find_marginals_engine
from linkwise.inference.exact.forest import (
    forest_best_labels,
    forest_marginals,
    maximum_spanning_forest,
    root_forest,
    spanning_forest,
)
from linkwise.inference.scoring import problem_score
from tests.inference.exact_cases import (
    check_marginals,
    enumerate_fast,
    make_problem,
    precise_marginals,
    random_problem,
    ring_pairs,
)
from tests.inference.oracle import enumerate_problem
from tests.repeats import LONG, examples, share


def without_some_links(rng, problem):
    keep = rng.random(len(problem.pairs)) < 0.75
    return make_problem(problem.unary, problem.pairs[keep], problem.coupling[keep])


def test_fast_enumeration_is_that_of_the_oracle():
    rng = np.random.default_rng(10)
    for _ in range(60):
        problem = random_problem(rng, max_states=300)
        for fast, slow in zip(enumerate_fast(problem), enumerate_problem(problem), strict=True):
            if slow is None:
                assert fast is None
            else:
                np.testing.assert_allclose(fast, slow, rtol=1e-12, atol=1e-12)


def test_random_forests_match_enumeration():
    rng = np.random.default_rng(0)
    n_feasible = 0
    for case in range(examples(400)):
        problem = random_problem(rng, shape="tree", n_labels=1 if case % 20 == 0 else None)
        if case % 3 == 0:
            problem = without_some_links(rng, problem)
        n_feasible += check_marginals(problem, *forest_marginals(problem))
        best = enumerate_fast(problem)[3]
        found = problem_score(problem, forest_best_labels(problem))
        assert found == best or abs(found - best) <= 1e-9 * max(1.0, abs(best))
    assert share(285) <= n_feasible < examples(400)


COUPLINGS = (1e-12, 1e3, 1e12, -1e-12, -1e3, -1e12, 59.0, 61.0, -61.0, 1999.0, 2001.0)


@pytest.mark.parametrize(
    ("odds", "coupling", "n_labels"),
    [
        (odds, coupling, n_labels)
        for i, odds in enumerate((60.0, 700.0, 2000.0))
        for j, coupling in enumerate(COUPLINGS)
        for n_labels in (2, 3)
        if LONG or (i + j + n_labels) % 2 == 0
    ],
)
def test_opposing_evidence_under_strong_links(odds, coupling, n_labels):
    unary = np.zeros((4, n_labels))
    unary[0, 0] = odds
    unary[1, 1] = odds
    unary[2, 1] = 0.75 * odds
    unary[3] = [0.3, 0.1, -0.2][:n_labels]
    pairs = [(0, 1), (1, 2), (2, 3)]
    for order in ([0, 1, 2, 3], [3, 2, 1, 0], [1, 2, 0, 3]):
        place = np.argsort(order)
        renumbered = np.sort(place[np.array(pairs)], axis=1)
        problem = make_problem(unary[order], renumbered, [coupling, 0.7 * coupling, coupling])
        prob, agreement, log_partition = forest_marginals(problem)
        true_prob, true_log_partition, true_agreement = precise_marginals(problem)
        np.testing.assert_allclose(prob, true_prob, rtol=0, atol=1e-10)
        np.testing.assert_allclose(agreement, true_agreement, rtol=0, atol=1e-10)
        # 1e12 nats of penalty that nothing can avoid leave 1e-4 of a float.
        assert log_partition == pytest.approx(true_log_partition, rel=1e-12, abs=1e-10)


def test_forbidden_labels_and_hard_links_give_no_nan():
    unary = np.array([[0.0, -np.inf, -np.inf], [-np.inf, 1.0, -2000.0], [3.0, 0.0, -np.inf]])
    problem = make_problem(unary, [(0, 1), (1, 2)], [40.0, -np.inf])
    assert check_marginals(problem, *forest_marginals(problem))


def test_contradiction_is_minus_infinity():
    unary = np.array([[0.0, -np.inf], [0.0, -np.inf], [0.0, 0.0]])
    problem = make_problem(unary, [(0, 1), (1, 2)], [-np.inf, 1.0])
    assert forest_marginals(problem)[2] == -np.inf
    assert problem_score(problem, forest_best_labels(problem)) == -np.inf


def tree_pairs(kind, n):
    child = np.arange(1, n)
    if kind == "chain":
        parent = child - 1
    elif kind == "star":
        parent = np.zeros(n - 1, dtype=np.int64)
    else:
        rng = np.random.default_rng(1)
        parent = (rng.random(n - 1) * child).astype(np.int64)
        shuffled = rng.permutation(n)
        parent, child = shuffled[parent], shuffled[child]
    pairs = np.sort(np.column_stack([parent, child]), axis=1)
    return pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]


@pytest.mark.parametrize("kind", ["chain", "star", "random"])
def test_large_trees_have_the_closed_form(kind):
    # Without evidence any tree has Z = K prod_e (exp(agree) + (K - 1) exp(differ)).
    n, n_labels = 60_000, 3
    coupling = np.random.default_rng(0).normal(size=n - 1)
    problem = make_problem(np.zeros((n, n_labels)), tree_pairs(kind, n), coupling)
    prob, agreement, log_partition = forest_marginals(problem)
    agree, differ = np.exp(np.minimum(coupling, 0)), (n_labels - 1) * np.exp(-np.maximum(coupling, 0))
    np.testing.assert_allclose(prob, 1 / n_labels, atol=1e-10)
    np.testing.assert_allclose(agreement, agree / (agree + differ), atol=1e-10)
    assert log_partition == pytest.approx(np.log(n_labels) + np.log(agree + differ).sum(), rel=1e-13)
    labels = forest_best_labels(problem)
    assert problem_score(problem, labels) == 0.0


def test_long_chain_matches_forward_backward():
    rng = np.random.default_rng(5)
    n, n_labels = 5000, 4
    unary = rng.normal(scale=3.0, size=(n, n_labels))
    coupling = rng.normal(scale=3.0, size=n - 1)
    problem = make_problem(unary, tree_pairs("chain", n), coupling)
    weight = np.exp(unary)
    same = np.eye(n_labels, dtype=bool)
    table = np.where(
        same, np.exp(np.minimum(coupling, 0))[:, None, None], np.exp(-np.maximum(coupling, 0))[:, None, None]
    )
    forward, backward = np.empty((n, n_labels)), np.ones((n, n_labels))
    forward[0] = weight[0] / weight[0].sum()
    log_partition = np.log(weight[0].sum())
    for i in range(1, n):
        forward[i] = (forward[i - 1] @ table[i - 1]) * weight[i]
        log_partition += np.log(forward[i].sum())
        forward[i] /= forward[i].sum()
    for i in range(n - 2, -1, -1):
        backward[i] = table[i] @ (weight[i + 1] * backward[i + 1])
        backward[i] /= backward[i].sum()
    expected = forward * backward
    expected /= expected.sum(axis=1, keepdims=True)
    prob, _, found = forest_marginals(problem)
    np.testing.assert_allclose(prob, expected, atol=1e-11)
    assert found == pytest.approx(log_partition, rel=1e-13)


def test_ties_are_settled_by_back_tracking():
    problem = make_problem(np.zeros((1000, 2)), tree_pairs("chain", 1000), np.full(999, -np.inf))
    assert problem_score(problem, forest_best_labels(problem)) == 0.0


def test_root_forest_orders_parents_first_and_refuses_rings():
    rng = np.random.default_rng(2)
    for _ in range(50):
        problem = without_some_links(rng, random_problem(rng, shape="tree"))
        order, parent, edge = root_forest(problem.graph)
        assert sorted(order) == list(range(len(problem.unary)))
        assert (parent < np.arange(len(order))).all()
        assert sorted(edge[edge >= 0]) == list(range(len(problem.pairs)))
        for place in np.flatnonzero(parent >= 0):
            assert sorted((order[place], order[parent[place]])) == list(problem.pairs[edge[place]])
    with pytest.raises(ValueError, match="cycle"):
        root_forest(adjacency(3, ring_pairs(1, 3)))


# Spanning forests


def test_engine_is_registered_as_tree():
    assert find_marginals_engine("tree").solve is spanning_forest


def test_spanning_forest_is_exact_on_forests_and_silent():
    rng = np.random.default_rng(3)
    for _ in range(100):
        problem = random_problem(rng, shape="tree")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            result = spanning_forest(problem, rng)
        assert result.exact
        assert result.log_partition_kind == "exact"
        check_marginals(problem, result.prob, result.agreement, result.log_partition)


def test_dropped_links_are_reported_and_bounds_hold():
    rng = np.random.default_rng(4)
    kinds = []
    for _ in range(examples(250, 80)):
        problem = random_problem(rng)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = spanning_forest(problem, rng)
        log_partition = enumerate_fast(problem)[1]
        if result.log_partition == -np.inf:
            assert log_partition == -np.inf
            continue
        if result.exact:
            assert not caught
            check_marginals(problem, result.prob, result.agreement, result.log_partition)
            continue
        assert [warning.category for warning in caught] == [ApproximationWarning]
        dropped = result.details["dropped"]
        assert len(dropped) == result.details["n_dropped"] > 0
        assert str(result.details["n_dropped"]) in str(caught[0].message)
        kinds.append(result.log_partition_kind)
        if result.log_partition_kind == "upper_bound":
            assert result.log_partition >= log_partition - 1e-9
        elif result.log_partition_kind == "lower_bound":
            assert result.log_partition <= log_partition + 1e-9
        else:
            assert result.log_partition_kind == "approximation"
        kept = np.setdiff1d(np.arange(len(problem.pairs)), dropped)
        forest = make_problem(problem.unary, problem.pairs[kept], problem.coupling[kept])
        check_marginals(forest, result.prob, result.agreement[kept], result.log_partition)
        ends = problem.pairs[dropped]
        product = (result.prob[ends[:, 0]] * result.prob[ends[:, 1]]).sum(axis=1)
        np.testing.assert_allclose(result.agreement[dropped], product)
    assert set(kinds) == {"upper_bound", "lower_bound", "approximation"}


def test_spanning_forest_has_the_largest_total_strength():
    rng = np.random.default_rng(6)
    for case in range(100):
        problem = random_problem(rng, shape="dense")
        if len(problem.pairs) == 0:
            continue
        coupling = np.where(np.isinf(problem.coupling), 1e3, problem.coupling)
        strength = np.abs(coupling) if coupling.ndim == 1 else np.abs(coupling).max(axis=1)
        strength = strength + 1e-9 * (strength == 0)
        kept = maximum_spanning_forest(problem, np.random.default_rng(case))
        n = len(problem.unary)
        weights = csr_array((-strength, problem.pairs.T), shape=(n, n))
        assert strength[kept].sum() == pytest.approx(-minimum_spanning_tree(weights).sum())
        root_forest(adjacency(n, problem.pairs[kept]))


def test_ties_follow_the_seed():
    problem = make_problem(np.zeros((6, 2)), ring_pairs(1, 6), np.ones(6))
    dropped = [
        int(np.flatnonzero(~maximum_spanning_forest(problem, np.random.default_rng(s)))[0]) for s in range(60)
    ]
    again = [
        int(np.flatnonzero(~maximum_spanning_forest(problem, np.random.default_rng(s)))[0]) for s in range(60)
    ]
    assert dropped == again
    assert set(dropped) == set(range(6))


def test_hard_links_are_kept_first():
    problem = make_problem(np.zeros((3, 3)), [(0, 1), (0, 2), (1, 2)], [1e9, -np.inf, -np.inf])
    kept = maximum_spanning_forest(problem, np.random.default_rng(0))
    assert kept.tolist() == [False, True, True]
