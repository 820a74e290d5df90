from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp, softmax

from linkwise.inference import mean_field as module
from linkwise.inference.local_search.hard_links import hard_rows
from linkwise.inference.mean_field import mean_field
from linkwise.inference.sweep_layout import sweep_layout
from tests.inference.marginal_cases import (
    brute_force,
    grid_problem,
    make_problem,
    permuted_labels,
    permuted_points,
    random_problem,
    slow_bound,
)
from tests.inference.oracle import enumerate_problem
from tests.repeats import examples, share

KINDS = {
    "soft": {"hard": 0.0},
    "hard": {"hard": 0.4, "must_hard": False},
    "forbidden": {"hard": 0.3, "must_hard": False, "forbidden": 0.3},
    "partly_hard": {"hard": 0.1, "must_hard": False, "partly_hard": 0.5},
    "strong": {"hard": 0.2, "scale": 100.0},
}


def run(problem, seed=0, **options):
    return mean_field(problem, np.random.default_rng(seed), **options)


def ratio(problem):
    """(m, K) log_agree - log_differ, which is the coupling itself in both forms."""
    c = problem.coupling
    return c if c.ndim == 2 else np.repeat(c[:, None], problem.unary.shape[1], axis=1)


def right_hand_side(problem, q):
    """unary + sum_j ratio_ij q_j of every node, with (-inf) 0 = 0: the log of the coordinate update."""
    scores = problem.unary.copy()
    for (i, j), r in zip(problem.pairs, ratio(problem), strict=True):
        scores[i] += np.where(q[j] > 0.0, r, 0.0) * q[j]
        scores[j] += np.where(q[i] > 0.0, r, 0.0) * q[i]
    return scores


def test_brute_force_is_the_oracle():
    for seed in range(40):
        problem = random_problem(seed, forbidden=0.1)
        prob, log_partition, agreement, _, _ = brute_force(problem)
        truth = enumerate_problem(problem)
        assert log_partition == pytest.approx(truth[1])
        if prob is not None:
            np.testing.assert_allclose(prob, truth[0], atol=1e-12)
            np.testing.assert_allclose(agreement, truth[2], atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_bound_on_random_problems(kind):
    """The bound is that of the returned table, never falls, and never exceeds log Z; flags never lie."""
    n_feasible = 0
    for seed in range(examples(80)):
        problem = random_problem(seed, **KINDS[kind])
        prob, log_partition, agreement, _, _ = brute_force(problem)
        answer = run(problem, seed)
        q = answer.prob
        assert np.isfinite(q).all()
        np.testing.assert_allclose(q.sum(axis=1), 1.0, rtol=1e-12)
        assert (q >= 0.0).all()
        assert (q[problem.unary == -np.inf] == 0.0).all() or not answer.converged
        if prob is None:
            assert answer.log_partition == -np.inf
            continue
        assert answer.log_partition > -np.inf
        if answer.exact:
            np.testing.assert_allclose(q, prob, atol=1e-12)
            assert answer.log_partition == pytest.approx(log_partition, abs=1e-10)
            np.testing.assert_allclose(answer.agreement, agreement, atol=1e-12)
            continue
        n_feasible += 1
        size = 1.0 + np.abs(np.where(problem.unary > -np.inf, problem.unary, 0.0)).sum()
        assert answer.log_partition_kind == "lower_bound"
        assert answer.log_partition <= log_partition + 1e-11 * size
        assert answer.log_partition == pytest.approx(slow_bound(problem, q), abs=1e-10 * size)
        bounds = answer.details["bounds"]
        assert len(bounds) == answer.n_iter
        assert bounds[-1] == answer.log_partition
        assert (np.diff(bounds) >= -1e-12 * size).all()
        first, second = q[problem.pairs[:, 0]], q[problem.pairs[:, 1]]
        np.testing.assert_allclose(answer.agreement, (first * second).sum(axis=1), atol=1e-12)
    assert n_feasible > share(32)


@pytest.mark.parametrize("kind", ["soft", "hard", "partly_hard"])
def test_fixed_point_equations_hold_at_convergence(kind):
    checked = 0
    for seed in range(examples(120)):
        problem = random_problem(seed, **KINDS[kind])
        answer = run(problem, seed, tol=1e-11, max_iter=5000)
        if answer.exact or not answer.converged:
            continue
        checked += 1
        # Where hard links gave a label away, the support is fixed; on it the equations are the same.
        scores = np.where(answer.prob > 0.0, right_hand_side(problem, answer.prob), -np.inf)
        np.testing.assert_allclose(softmax(scores, axis=1), answer.prob, atol=1e-9)
    assert checked > share(50)


def test_bound_is_stationary_at_the_solution():
    """Central differences of the slow bound in the logits of every point."""
    step = 1e-4
    for seed in range(25):
        problem = random_problem(seed, hard=0.0, n=4, n_labels=3)
        q = run(problem, seed, tol=1e-12, max_iter=10_000).prob
        logits = np.log(q)
        for i in range(q.shape[0]):
            for k in range(q.shape[1]):
                values = []
                for sign in (1.0, -1.0):
                    moved = logits.copy()
                    moved[i, k] += sign * step
                    values.append(slow_bound(problem, softmax(moved, axis=1)))
                assert abs(values[0] - values[1]) / (2 * step) < 1e-6


@pytest.mark.parametrize(("w", "expected_gap"), [(1.1, 0.50), (2.0, 0.96)])
def test_repelling_pair_leaves_the_saddle(w, expected_gap):
    """Do-not-link pair, two labels, flat data (spec 3.7): synchronous updates cycle, the saddle is worse."""
    problem = make_problem(np.full((2, 2), np.log(0.5)), [(0, 1)], [-2 * w])

    q = np.array([[0.6, 0.4], [0.6, 0.4]])
    for _ in range(500):
        before, q = q, softmax(right_hand_side(problem, q), axis=1)
    assert np.abs(q - before).max() == pytest.approx(expected_gap, abs=0.01)
    np.testing.assert_allclose(softmax(right_hand_side(problem, q), axis=1), before, atol=1e-9)

    saddle = slow_bound(problem, np.full((2, 2), 0.5))
    assert saddle == pytest.approx(-w)
    for seed in range(10):
        answer = run(problem, seed)
        assert answer.converged
        # q_1 = (p, 1 - p), q_2 = (1 - p, p) with p = sigmoid(2 w (2 p - 1)), solved by iteration.
        p = 1.0
        for _ in range(2000):
            p = 1 / (1 + np.exp(-2 * w * (2 * p - 1)))
        assert sorted(answer.prob[0]) == pytest.approx([1 - p, p], abs=1e-5)
        best = -4 * w * p * (1 - p) - 2 * np.log(2) - 2 * (p * np.log(p) + (1 - p) * np.log(1 - p))
        assert answer.log_partition == pytest.approx(best, abs=1e-9)
        assert answer.log_partition > saddle + 0.01
    if w == 2.0:
        assert best == pytest.approx(-1.35, abs=0.005)


def test_a_symmetric_warm_start_leaves_the_saddle_too():
    problem = make_problem(np.zeros((2, 2)), [(0, 1)], [-4.0])
    answer = run(problem, initial=np.full((2, 2), 0.5))
    assert answer.log_partition > slow_bound(problem, np.full((2, 2), 0.5)) + 0.3
    stuck = run(problem, initial=np.full((2, 2), 0.5), jitter=0.0)
    assert stuck.log_partition == pytest.approx(slow_bound(problem, np.full((2, 2), 0.5)))


def test_warm_start_at_the_solution_stays_there():
    checked = 0
    for seed in range(20):
        problem = random_problem(seed, hard=0.0)
        cold = run(problem, seed)
        if cold.exact or not cold.converged:
            continue
        warm = run(problem, seed, initial=cold.prob)
        assert warm.n_iter <= max(10, cold.n_iter // 2 + 1)
        np.testing.assert_allclose(warm.prob, cold.prob, atol=1e-4)
        assert warm.log_partition == pytest.approx(cold.log_partition, abs=1e-6)
        checked += 1
    assert checked >= 8


def test_warm_start_decides_between_optima():
    problem = make_problem(np.zeros((2, 2)), [(0, 1)], [6.0])
    for label in range(2):
        start = np.full((2, 2), 0.1)
        start[:, label] = 0.9
        assert (run(problem, initial=start).prob.argmax(axis=1) == label).all()


def test_warm_start_on_forbidden_labels_only():
    problem = make_problem([[0.0, -np.inf], [0.0, 1.0]], [(0, 1)], [0.5])
    answer = run(problem, initial=np.array([[0.0, 1.0], [0.5, 0.5]]))
    np.testing.assert_array_equal(answer.prob[0], [1.0, 0.0])


@pytest.mark.parametrize("coupling", [np.zeros(2), np.zeros((2, 3))])
def test_exact_without_couplings(coupling):
    rng = np.random.default_rng(0)
    problem = make_problem(rng.normal(size=(3, 3)), [(0, 1), (1, 2)], coupling)
    answer = run(problem)
    assert answer.exact
    assert answer.log_partition_kind == "exact"
    np.testing.assert_allclose(answer.prob, softmax(problem.unary, axis=1))
    assert answer.log_partition == pytest.approx(logsumexp(problem.unary, axis=1).sum())
    np.testing.assert_allclose(answer.agreement, brute_force(problem)[2])


@pytest.mark.parametrize("per_label", [False, True])
def test_one_link_is_never_called_exact(per_label):
    coupling = [[0.0, 1e-3]] if per_label else [1e-3]
    assert not run(make_problem(np.zeros((2, 2)), [(0, 1)], coupling)).exact


def test_permuting_points_labels_and_adding_a_component():
    """From a fixed start without noise; couplings weak enough for one optimum."""
    for seed in range(30):
        rng = np.random.default_rng(seed)
        problem = random_problem(seed, n=6, n_labels=3, hard=0.0, scale=0.4)
        start = rng.dirichlet(np.ones(3), size=6)
        options = {"tol": 1e-12, "max_iter": 2000, "jitter": 0.0}
        answer = run(problem, initial=start, **options)

        order = rng.permutation(6)
        other, rows = permuted_points(problem, order)
        permuted = run(other, initial=start[order], **options)
        np.testing.assert_allclose(permuted.prob, answer.prob[order], atol=1e-9)
        np.testing.assert_allclose(permuted.agreement, answer.agreement[rows], atol=1e-9)
        assert permuted.log_partition == pytest.approx(answer.log_partition, abs=1e-10)

        labels = rng.permutation(3)
        permuted = run(permuted_labels(problem, labels), initial=start[:, labels], **options)
        np.testing.assert_allclose(permuted.prob, answer.prob[:, labels], atol=1e-12)
        assert permuted.log_partition == pytest.approx(answer.log_partition, abs=1e-10)

        shape = (1,) if problem.coupling.ndim == 1 else (1, 3)
        more = make_problem(
            np.concatenate([problem.unary, rng.normal(size=(2, 3))]),
            np.concatenate([problem.pairs, [[6, 7]]]),
            np.concatenate([problem.coupling, np.full(shape, 0.3)]),
        )
        larger = run(more, initial=np.concatenate([start, np.full((2, 3), 1 / 3)]), **options)
        np.testing.assert_allclose(larger.prob[:6], answer.prob, atol=1e-9)


@pytest.mark.parametrize("n_labels", [1, 2, 3, 4, 5, 8, 11])
def test_rows_of_any_length(n_labels):
    """Rows are padded to whole SIMD lanes; no number of labels may leak into the padding."""
    problem = grid_problem(3, n_labels, [0.7, -0.5], seed=n_labels)
    answer = run(problem, tol=1e-11)
    assert answer.prob.shape == (9, n_labels)
    np.testing.assert_allclose(answer.prob, softmax(right_hand_side(problem, answer.prob), axis=1), atol=1e-9)
    assert answer.log_partition == pytest.approx(slow_bound(problem, answer.prob), abs=1e-10)
    per_label = problem._replace(coupling=ratio(problem))
    same = run(per_label, tol=1e-11)
    np.testing.assert_allclose(same.prob, answer.prob, atol=1e-9)


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("per_label", [False, True])
def test_same_numbers_for_any_number_of_threads(monkeypatch, shuffled, per_label):
    monkeypatch.setattr("linkwise.inference.sweep_layout._CHUNK", 8)
    problem = grid_problem(40, 3, [0.4, -0.3, 1.2], seed=1, shuffled=shuffled)
    if per_label:
        problem = problem._replace(coupling=ratio(problem))
    assert max(len(step) for step in sweep_layout(problem).steps) > 1
    answers = [run(problem, seed=3, n_threads=n_threads, max_iter=8) for n_threads in (1, 2, 5)]
    for answer in answers[1:]:
        np.testing.assert_array_equal(answer.prob, answers[0].prob)
        np.testing.assert_array_equal(answer.agreement, answers[0].agreement)
        np.testing.assert_array_equal(answer.details["bounds"], answers[0].details["bounds"])
    # The sums over chunks are the bound of the whole lattice.
    assert answers[0].log_partition == pytest.approx(slow_bound(problem, answers[0].prob), rel=1e-12)


def test_bound_of_many_flat_points():
    """Products of hundreds of normalisers would overflow; their logarithms must all arrive."""
    problem = grid_problem(30, 9, [0.1, -0.1], seed=3)
    answer = run(problem._replace(unary=np.zeros_like(problem.unary)))
    np.testing.assert_allclose(answer.prob, 1 / 9, atol=1e-3)
    assert answer.log_partition == pytest.approx(
        slow_bound(problem._replace(unary=0 * problem.unary), answer.prob)
    )


def test_asking_for_memory_ahead_changes_nothing(monkeypatch):
    problem = grid_problem(40, 5, [0.4, -0.3], seed=1)
    answer = run(problem, max_iter=5)
    monkeypatch.setattr(module, "sweep_layout", lambda p: sweep_layout(p)._replace(scattered=True))
    np.testing.assert_array_equal(run(problem, max_iter=5).prob, answer.prob)


def test_seed_and_iteration_limit():
    problem = grid_problem(12, 3, [2.0, -1.0], seed=4)
    np.testing.assert_array_equal(run(problem, 5).prob, run(problem, 5).prob)
    short = run(problem, 5, max_iter=2)
    assert short.n_iter == 2
    assert not short.converged
    assert short.log_partition == pytest.approx(slow_bound(problem, short.prob), abs=1e-9)


def test_hard_links_keep_supports_apart():
    n_checked = 0
    for seed in range(100):
        problem = random_problem(seed, hard=0.5, must_hard=False)
        answer = run(problem, seed)
        hard = hard_rows(problem)
        if answer.log_partition > -np.inf and hard.any():
            n_checked += 1
            np.testing.assert_array_equal(answer.agreement[hard], 0.0)
    assert n_checked > 40


def test_hard_pair_of_two_labels_takes_the_better_labelling():
    """Opposing log-odds of 60 under a hard link (trap T2): the bound is the score of the best labelling."""
    problem = make_problem([[60.0, 0.0], [61.0, 0.0]], [(0, 1)], [-np.inf])
    answer = run(problem)
    np.testing.assert_array_equal(answer.prob, [[0.0, 1.0], [1.0, 0.0]])
    assert answer.log_partition == pytest.approx(61.0)
    assert brute_force(problem)[1] == pytest.approx(np.logaddexp(60.0, 61.0))


def test_hard_chain_starts_from_its_best_labelling():
    """With two labels a chain of hard links has two labellings, and no single change leads to the other."""
    unary = np.zeros((7, 2))
    unary[:, 0] = [3.0, -3.0, 3.0, 2.0, -1.0, -1.0, -3.0]
    problem = make_problem(unary, [(i, i + 1) for i in range(6)], [-np.inf] * 6)
    for seed in range(5):
        answer = run(problem, seed)
        np.testing.assert_array_equal(answer.prob.argmax(axis=1), [0, 1] * 3 + [0])
        assert answer.log_partition == pytest.approx(3 + 3 - 1 - 3)


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e3, 1e6])
def test_no_overflow_at_any_scale(scale):
    for seed in range(20):
        problem = random_problem(seed, scale=scale, hard=0.2, must_hard=False)
        prob, log_partition, _, _, _ = brute_force(problem)
        answer = run(problem, seed)
        if prob is not None:
            assert np.isfinite(answer.prob).all()
            assert -np.inf < answer.log_partition <= log_partition + 1e-9 * max(1.0, scale)


@pytest.mark.parametrize("n_labels", [1, 2, 3])
def test_infeasible_is_minus_infinity_and_exact(n_labels):
    clique = [(i, j) for i in range(n_labels + 1) for j in range(i + 1, n_labels + 1)]
    problem = make_problem(np.zeros((n_labels + 1, n_labels)), clique, [-np.inf] * len(clique))
    answer = run(problem)
    assert answer.log_partition == -np.inf
    assert answer.exact


def test_unknown_feasibility_gives_no_bound_but_a_table(monkeypatch):
    problem = make_problem([[1.0, 0.0, 0.0], [2.0, 0.0, 1.0]], [(0, 1)], [-np.inf])
    monkeypatch.setattr(module, "feasible_labels", lambda p, rng: ("unknown", np.zeros(2, dtype=np.int64)))
    monkeypatch.setattr(module, "polish", lambda p, labels, rng: (labels, 0))
    answer = run(problem)
    assert answer.log_partition == -np.inf
    assert answer.log_partition_kind == "lower_bound"
    assert not answer.exact
    assert not answer.converged
    assert np.isfinite(answer.prob).all()
    assert answer.agreement[0] < 0.01
