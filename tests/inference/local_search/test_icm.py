from __future__ import annotations

import numpy as np
import pytest

from linkwise.inference import PottsField, best_labels
from linkwise.inference.local_search.hard_links import lexicographic, recolour
from linkwise.inference.local_search.icm import _visit, descend, feasible_start, icm, random_runs
from linkwise.inference.problem import reduce_field
from linkwise.inference.scoring import component_scores, n_broken, problem_score
from tests.inference.label_cases import (
    best_score,
    best_single_change,
    make_problem,
    random_problem,
    slow_broken,
    slow_score,
)
from tests.repeats import examples, share


def grid_pairs(height, width):
    node = np.arange(height * width).reshape(height, width)
    right = np.column_stack([node[:, :-1].ravel(), node[:, 1:].ravel()])
    down = np.column_stack([node[:-1].ravel(), node[1:].ravel()])
    pairs = np.concatenate([right, down])
    return pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]


def test_score_is_the_sum_of_its_terms():
    rng = np.random.default_rng(0)
    for _ in range(200):
        problem = random_problem(rng, hard=0.2, forbidden=0.2)
        labels = rng.integers(problem.unary.shape[1], size=len(problem.unary))
        expected = slow_score(problem, labels)
        assert problem_score(problem, labels) == pytest.approx(expected, rel=1e-12, abs=1e-12)
        assert n_broken(problem, labels) == slow_broken(problem, labels)
        component = np.zeros(len(labels), dtype=np.int64)
        assert component_scores(problem, labels, component, 1)[0] == pytest.approx(expected, abs=1e-9)


def test_score_of_many_terms_does_not_drift():
    terms = np.tile([1e16, 1.0, -1e16, 0.0], 1000)
    problem = make_problem(terms[:, None], [], [])
    assert problem_score(problem, np.zeros(4000, dtype=np.int64)) == 1000.0


def test_component_scores_split_the_score():
    unary = [[1.0, 0.0], [2.0, 0.0], [4.0, 0.0], [8.0, 0.0]]
    problem = make_problem(unary, [(0, 2), (1, 3)], [-16.0, 32.0])
    parts = component_scores(problem, np.array([0, 0, 0, 1]), np.array([0, 1, 0, 1]), 2)
    np.testing.assert_array_equal(parts, [1.0 + 4.0 - 16.0, 2.0 - 32.0])


def test_every_visit_takes_the_best_label_and_reports_its_gain():
    rng = np.random.default_rng(1)
    moves = 0
    for _ in range(examples(150)):
        problem = random_problem(rng)
        labels = rng.integers(problem.unary.shape[1], size=len(problem.unary))
        stale = np.ones(len(labels), dtype=bool)
        for node in rng.integers(len(labels), size=3 * len(labels)):
            before, was_stale = labels.copy(), stale.copy()
            gain = _visit(problem.unary, problem.graph, problem.coupling, np.array([node]), labels, stale)
            scores = []
            for label in range(problem.unary.shape[1]):
                changed = before.copy()
                changed[node] = label
                scores.append(slow_score(problem, changed))
            assert gain >= 0
            assert scores[labels[node]] == pytest.approx(max(scores), abs=1e-9)
            assert gain == pytest.approx(scores[labels[node]] - scores[before[node]], abs=1e-9)
            assert (np.delete(labels, node) == np.delete(before, node)).all()
            if labels[node] != before[node]:
                moves += 1
                assert was_stale[node]
                neighbours = problem.graph.neighbours[
                    problem.graph.indptr[node] : problem.graph.indptr[node + 1]
                ]
                assert stale[neighbours].all()
            assert not stale[node]
    assert moves > share(200)


@pytest.mark.parametrize("order", ["random", "coloured"])
def test_ends_where_no_single_change_helps_and_never_falls(order):
    rng = np.random.default_rng(2)
    for _ in range(examples(300)):
        problem = random_problem(rng, n=int(rng.integers(2, 12)))
        start = rng.integers(problem.unary.shape[1], size=len(problem.unary))
        answer = icm(problem, rng, initial=start, order=order)
        score = slow_score(problem, answer.labels)
        assert answer.converged
        assert not answer.optimal
        assert answer.upper_bound is None
        assert best_single_change(problem, answer.labels) <= score + 1e-9
        assert (answer.details["gains"] >= 0).all()
        assert len(answer.details["gains"]) == answer.n_iter
        assert slow_score(problem, start) + answer.details["gains"].sum() == pytest.approx(score, abs=1e-9)


def test_keeps_labels_on_ties():
    # 0.1 + 0.2 and 0.3 differ by rounding only.
    unary = [[0.3, 0.1, 0.3], [0.0, 9.0, 0.0], [0.0, 0.0, 0.0]]
    problem = make_problem(unary, [(0, 1)], [0.2])
    for start in ([0, 1, 2], [1, 1, 1], [2, 1, 0]):
        answer = icm(problem, np.random.default_rng(0), initial=np.array(start))
        np.testing.assert_array_equal(answer.labels, start)
        assert answer.n_iter == 1


def test_default_start_is_the_best_label_of_each_node():
    unary = [[0.0, 1.0], [5.0, 0.0], [0.0, 2.0]]
    answer = icm(make_problem(unary, [], []), np.random.default_rng(0))
    np.testing.assert_array_equal(answer.labels, [1, 0, 1])
    assert answer.details["gains"].sum() == 0


def test_start_is_not_changed():
    start = np.array([1, 1])
    icm(make_problem([[9.0, 0.0], [9.0, 0.0]], [(0, 1)], [1.0]), np.random.default_rng(0), initial=start)
    np.testing.assert_array_equal(start, [1, 1])


def test_hard_links_stay_satisfied():
    rng = np.random.default_rng(3)
    seen = 0
    for _ in range(examples(300)):
        problem = random_problem(
            rng, n_labels=3, kind=str(rng.choice(["costs", "rewards"])), hard=0.4, forbidden=0.1
        )
        feasible = best_score(problem) > -np.inf
        start = rng.integers(3, size=len(problem.unary)) if rng.random() < 0.5 else None
        answer = icm(problem, rng, initial=start)
        assert (problem_score(problem, answer.labels) > -np.inf) == feasible
        if feasible:
            score = slow_score(problem, answer.labels)
            assert best_single_change(problem, answer.labels) <= score + 1e-9
            seen += 1
    assert seen > share(200)


def test_feasible_start_of_a_frustrated_checkerboard():
    # Unary scores want the wrong checkerboard on one half: single changes cannot move the wall between them.
    height, width = 10, 12
    row, column = np.divmod(np.arange(height * width), width)
    wanted = (row + column + (column >= width // 2)) % 2
    unary = np.where(wanted[:, None] == np.arange(2), 3.0, 0.0)
    pairs = grid_pairs(height, width)
    problem = make_problem(unary, pairs, np.full(len(pairs), -np.inf))
    rng = np.random.default_rng(0)
    assert n_broken(problem, descend(lexicographic(problem), wanted, rng).labels) > 0
    assert n_broken(problem, feasible_start(problem, wanted, rng)) == 0
    assert problem_score(problem, icm(problem, rng).labels) == 3.0 * height * width / 2


def test_recolouring_chooses_names_by_score_and_leaves_the_rest_alone():
    unary = np.zeros((6, 3))
    unary[0, 2] = unary[1, 0] = unary[2, 1] = 5.0
    ring = [(0, 1), (0, 2), (1, 2)]
    problem = make_problem(unary, [*ring, (3, 4)], np.full(4, -np.inf))
    fixed = recolour(problem, np.array([0, 0, 0, 2, 0, 1]), np.random.default_rng(0))
    np.testing.assert_array_equal(fixed, [2, 0, 1, 2, 0, 1])


def test_without_any_feasible_labelling_few_links_are_broken():
    triangle = make_problem(np.zeros((3, 2)), [(0, 1), (0, 2), (1, 2)], np.full(3, -np.inf))
    answer = icm(triangle, np.random.default_rng(0), initial=np.zeros(3, dtype=np.int64))
    assert n_broken(triangle, answer.labels) == 1
    assert not answer.optimal


def test_lexicographic_problem_orders_by_broken_links_first():
    rng = np.random.default_rng(4)
    for _ in range(100):
        problem = random_problem(rng, n_labels=3, hard=0.3, forbidden=0.2, scale=10.0 ** rng.integers(-3, 4))
        counting = lexicographic(problem)
        assert np.isfinite(counting.unary).all()
        assert np.isfinite(counting.coupling).all()
        a, b = rng.integers(3, size=(2, len(problem.unary)))
        broken_a, broken_b = slow_broken(problem, a), slow_broken(problem, b)
        if broken_a != broken_b:
            assert (slow_score(counting, a) > slow_score(counting, b)) == (broken_a < broken_b)
        elif broken_a == 0:
            assert slow_score(counting, a) == slow_score(problem, a)


def test_large_magnitudes():
    # Log-odds of 60 against each other under links of 1e12, and a unary offset that all labels share.
    unary = np.array([[60.0, 0.0], [0.0, 60.0], [0.0, 1.0]]) - 1e6
    problem = make_problem(unary, [(0, 1), (1, 2)], [1e12, -1e12])
    answer = icm(problem, np.random.default_rng(0))
    assert answer.converged
    assert answer.labels[1] != answer.labels[2]
    assert best_single_change(problem, answer.labels) <= slow_score(problem, answer.labels)


def test_restarts_keep_the_best_of_every_component():
    # Copies of one small problem: with restarts enough of them reach what the luckiest copy reaches at once.
    rng = np.random.default_rng(5)
    part = random_problem(rng, n=12, n_labels=3, shape="clique", kind="costs", unary_scale=0.3)
    copies = 40
    pairs = (12 * np.arange(copies)[:, None, None] + part.pairs).reshape(-1, 2)
    problem = make_problem(np.tile(part.unary, (copies, 1)), pairs, np.tile(part.coupling, copies))
    start = np.tile(part.unary.argmax(axis=1), copies)

    def scores(labels):
        return np.array([slow_score(part, z) for z in labels.reshape(copies, 12)])

    once = scores(icm(problem, np.random.default_rng(0), initial=start).labels)
    many = icm(problem, np.random.default_rng(0), initial=start, n_restarts=10)
    assert np.ptp(once) > 0
    assert (scores(many.labels) >= once - 1e-9).all()
    assert scores(many.labels).mean() > once.mean()
    assert scores(many.labels).min() >= np.median(once)


def test_same_seed_same_labels():
    problem = random_problem(np.random.default_rng(6), n=60, n_labels=4, shape="sparse")
    first, second = (icm(problem, np.random.default_rng(7), n_restarts=3) for _ in range(2))
    np.testing.assert_array_equal(first.labels, second.labels)
    assert first.n_iter == second.n_iter


def test_coloured_sweeps_do_not_depend_on_threads():
    rng = np.random.default_rng(8)
    pairs = grid_pairs(250, 200)
    problem = make_problem(rng.normal(size=(50_000, 4)), pairs, rng.normal(size=len(pairs)))
    answers = [
        icm(problem, np.random.default_rng(9), order="coloured", n_threads=n_threads)
        for n_threads in (1, 2, 5)
    ]
    for answer in answers[1:]:
        np.testing.assert_array_equal(answer.labels, answers[0].labels)
        np.testing.assert_array_equal(answer.details["gains"], answers[0].details["gains"])


@pytest.mark.parametrize("n", [1, 5, 2047, 2048, 5000, 700_001])
def test_random_runs_are_a_permutation(n):
    nodes = np.arange(0, 3 * n, 3)
    order = random_runs(nodes, np.random.default_rng(0))
    np.testing.assert_array_equal(np.sort(order), nodes)
    if n > 1:
        assert (order != nodes).any()
        assert (order != random_runs(nodes, np.random.default_rng(1))).any()


def test_iteration_limit_is_reported():
    # The left link of each node is the stronger one, so label 1 travels to the right, node by node.
    n = 200
    unary = np.zeros((n, 2))
    unary[0, 1] = 10.0
    pairs = np.column_stack([np.arange(n - 1), np.arange(1, n)])
    coupling = 1.0 + 0.01 * np.arange(n - 1)[::-1]
    problem = make_problem(unary, pairs, coupling)
    start = np.zeros(n, dtype=np.int64)
    short = icm(problem, np.random.default_rng(0), initial=start, max_iter=1)
    assert not short.converged
    assert short.n_iter == 1
    full = icm(problem, np.random.default_rng(0), initial=start)
    assert full.converged
    assert full.n_iter > 1
    np.testing.assert_array_equal(full.labels, 1)


def test_bad_order_is_refused():
    with pytest.raises(ValueError, match="random, coloured"):
        best_labels(PottsField([[0.0]], [], []), "icm", order="rows")


def test_works_on_reduced_fields_of_mixed_links():
    field = PottsField(
        np.array([[2.0, 0.0], [0.0, 1.0], [0.0, 0.5], [0.0, 0.0]]),
        [(0, 1), (1, 2), (2, 3), (0, 3)],
        [np.inf, 1.0, -np.inf, -2.0],
    )
    reduction = reduce_field(field, keep_zero_in_component=False)
    labels = icm(reduction.problem, np.random.default_rng(0)).labels
    expanded = labels[reduction.groups]
    assert field.score(expanded) == reduction.constant + problem_score(reduction.problem, labels)
    assert expanded[0] == expanded[1]
    assert expanded[2] != expanded[3]
