import numpy as np
import pytest

from linkwise._kernels.simd import padded
from linkwise.exceptions import InfeasibleConstraints
from linkwise.graph import adjacency
from linkwise.inference import PottsField
from linkwise.inference.messages.layout import (
    MAXIMUM,
    link_tables,
    message_graph,
    potential_tables,
    shift_scores,
)
from linkwise.inference.messages.max_product import max_product
from linkwise.inference.messages.sweeps import run_to_fixed_point, sweeps
from linkwise.inference.problem import Problem, reduce_field
from linkwise.inference.scoring import problem_score
from tests.inference.message_oracle import messages_by_name, worst_message_error
from tests.inference.oracle import enumerate_problem, random_field
from tests.repeats import examples, for_seeds, share


def problem_of(field):
    return reduce_field(field, keep_zero_in_component=False).problem


def random_problem(rng, **options):
    try:
        return problem_of(random_field(rng, **options))
    except InfeasibleConstraints:
        return None


def in_whole_numbers(field):
    """The same field with rounded scores: many ties."""
    soft = np.isfinite(field.coupling)
    return PottsField(
        np.round(field.unary), field.pairs, np.where(soft, np.round(field.coupling), field.coupling)
    )


def max_messages(problem, damping=0.0, max_iter=500):
    n_labels = problem.unary.shape[1]
    graph = message_graph(problem.graph)
    scores = problem.unary.copy()
    shift_scores(scores, graph.order)
    tables = potential_tables(scores, problem, link_tables(problem, graph, MAXIMUM))
    messages = np.zeros(len(graph.edges) * padded(n_labels))
    outcome = run_to_fixed_point(
        sweeps(MAXIMUM, graph, tables, messages, damping=damping, settled=0.1), 1e-12, max_iter
    )
    return messages_by_name(problem, graph, messages), outcome


@for_seeds(5)
def test_finds_the_best_labels_of_forests(seed):
    rng = np.random.default_rng(seed)
    n_feasible = 0
    for case in range(examples(60)):
        try:
            field = random_field(rng, shape="tree", hard=0.3, per_label=case % 2 == 1)
            problem = problem_of(in_whole_numbers(field) if case % 3 == 0 else field)
        except InfeasibleConstraints:
            continue
        best = enumerate_problem(problem)[3]
        answer = max_product(problem, np.random.default_rng(case))
        assert answer.optimal
        if best == -np.inf:
            assert problem_score(problem, answer.labels) == -np.inf
            continue
        assert problem_score(problem, answer.labels) == pytest.approx(best, abs=1e-10)
        assert answer.upper_bound == pytest.approx(best, abs=1e-10)
        assert answer.converged
        n_feasible += 1
    assert n_feasible > share(32)


def test_scores_of_any_size_on_forests():
    # Whole numbers, so that the score of a labelling is exact.
    rng = np.random.default_rng(20)
    for _ in range(200):
        field = random_field(rng, shape="tree", hard=0.0)
        n, n_labels = field.unary.shape
        unary = rng.choice([0.0, 1.0, -2.0, 5.0, 700.0, -3e4, 1e12, -np.inf], size=(n, n_labels))
        unary[np.arange(n), rng.integers(n_labels, size=n)] = 0.0
        size = rng.choice([1.0, 2.0, 30.0, 1e12, np.inf], size=len(field.pairs))
        sign = np.where(size < np.inf, rng.choice([-1.0, 1.0], size=len(size)), -1.0)
        problem = problem_of(PottsField(unary, field.pairs, sign * size))
        answer = max_product(problem, rng)
        assert answer.optimal
        assert problem_score(problem, answer.labels) == enumerate_problem(problem)[3]


def test_loops_are_solved_well_and_never_called_optimal():
    rng = np.random.default_rng(21)
    n_best = n_cases = 0
    for case in range(examples(150, 50)):
        shape = str(rng.choice(["cycle", "dense", "clique"]))
        problem = random_problem(
            rng, n=6, n_labels=3, shape=shape, hard=0.2, must_hard=False, per_label=case % 2 == 1
        )
        best = enumerate_problem(problem)[3]
        answer = max_product(problem, np.random.default_rng(case))
        score = problem_score(problem, answer.labels)
        if best == -np.inf:
            continue
        assert not answer.optimal
        assert answer.upper_bound is None
        assert -np.inf < score <= best + 1e-10
        n_cases += 1
        n_best += score > best - 1e-9
    assert n_cases > share(100)
    assert n_best > 0.95 * n_cases


@pytest.mark.parametrize("per_label", [False, True])
def test_messages_satisfy_the_dense_equations(per_label):
    rng = np.random.default_rng(22)
    n_checked = 0
    for n_labels in (1, 2, 3, 4, 5, 9):
        for _ in range(12):
            field = random_field(
                rng,
                n=5,
                n_labels=min(n_labels, 4),
                shape="cycle",
                hard=0.2,
                must_hard=False,
                per_label=per_label,
            )
            unary = rng.normal(scale=3.0, size=(len(field.unary), n_labels))
            coupling = field.coupling
            if per_label:
                coupling = np.sign(coupling[:, :1]) * rng.exponential(2.0, size=(len(coupling), n_labels))
            problem = problem_of(PottsField(unary, field.pairs, coupling))
            messages, outcome = max_messages(problem, damping=0.3)
            if outcome.failure == 0.0 and outcome.converged:
                n_checked += 1
                assert worst_message_error(problem, messages, np.max) < 1e-9
    assert n_checked > 40


def test_never_scores_less_than_the_start():
    rng = np.random.default_rng(23)
    n_feasible = 0
    for case in range(60):
        problem = random_problem(
            rng, n=7, n_labels=3, shape="dense", hard=0.2, must_hard=False, per_label=case % 2 == 1, scale=5.0
        )
        *_, best, labelling = enumerate_problem(problem)
        if labelling is None:
            continue
        start = labelling.astype(np.int64)
        answer = max_product(problem, np.random.default_rng(case), initial=start, max_iter=1)
        assert problem_score(problem, answer.labels) == pytest.approx(best, abs=1e-10)
        worse = rng.integers(3, size=7)
        answer = max_product(problem, np.random.default_rng(case), initial=worse, max_iter=1)
        assert problem_score(problem, answer.labels) >= problem_score(problem, worse)
        n_feasible += 1
    assert n_feasible > 30


def test_symmetric_fields_are_decided():
    # Flat scores: without noise every message of these rings and grids would stay flat.
    ring = np.array([(i, (i + 1) % 8) for i in range(8)])
    answer = max_product(
        problem_of(PottsField(np.zeros((8, 2)), ring, -np.ones(8))), np.random.default_rng(0)
    )
    assert (answer.labels[ring[:, 0]] != answer.labels[ring[:, 1]]).all()
    answer = max_product(problem_of(PottsField(np.zeros((8, 3)), ring, np.ones(8))), np.random.default_rng(0))
    assert len(np.unique(answer.labels)) == 1


def test_noise_helps_where_all_scores_are_equal():
    # 3-colouring of random graphs: 10 broken links over these six with noise, 66 without.
    n_broken = 0.0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        ends = rng.integers(500, size=(1050, 2))
        pairs = np.unique(np.sort(ends[ends[:, 0] != ends[:, 1]], axis=1), axis=0)[:1000]
        problem = Problem(np.zeros((500, 3)), pairs, -np.ones(len(pairs)), adjacency(500, pairs))
        n_broken -= problem_score(problem, max_product(problem, rng).labels)
    assert n_broken < 33


def planted_problem(rng, n, m, n_labels, flipped):
    """Links that tell the truth but for a share ``flipped``."""
    truth = rng.integers(n_labels, size=n)
    ends = rng.integers(n, size=(m, 2))
    pairs = np.unique(np.sort(ends[ends[:, 0] != ends[:, 1]], axis=1), axis=0)
    equal = truth[pairs[:, 0]] == truth[pairs[:, 1]]
    sign = np.where(equal ^ (rng.random(len(pairs)) < flipped), 1.0, -1.0)
    unary = rng.normal(size=(n, n_labels))
    unary[np.arange(n), truth] += 1.0
    return Problem(unary, pairs, 2.0 * sign, adjacency(n, pairs)), truth


def test_recovers_planted_labels_better_than_the_scores_alone():
    problem, truth = planted_problem(np.random.default_rng(24), 2000, 8000, 4, 0.05)
    answer = max_product(problem, np.random.default_rng(0))
    assert problem_score(problem, answer.labels) >= problem_score(problem, truth)
    assert (answer.labels == truth).mean() > (problem.unary.argmax(axis=1) == truth).mean() + 0.2


def test_hard_cannot_links_are_satisfied_when_that_is_possible():
    rng = np.random.default_rng(25)
    for seed in range(20):
        truth = rng.integers(3, size=40)
        pairs = np.array([(i, j) for i in range(40) for j in range(i) if truth[i] != truth[j]])[:, ::-1]
        pairs = pairs[rng.random(len(pairs)) < 0.15]
        field = PottsField(rng.normal(scale=4.0, size=(40, 3)), pairs, np.full(len(pairs), -np.inf))
        problem = problem_of(field)
        answer = max_product(problem, np.random.default_rng(seed))
        assert problem_score(problem, truth) > -np.inf
        assert problem_score(problem, answer.labels) > -np.inf


def test_the_unit_of_the_scores_does_not_matter():
    problem, _ = planted_problem(np.random.default_rng(26), 300, 900, 3, 0.2)
    labels = [
        max_product(
            problem._replace(unary=factor * problem.unary, coupling=factor * problem.coupling),
            np.random.default_rng(1),
        ).labels
        for factor in (1.0, 2.0**-20, 2.0**30)
    ]
    np.testing.assert_array_equal(labels[0], labels[1])
    np.testing.assert_array_equal(labels[0], labels[2])


def test_labels_do_not_depend_on_the_number_of_threads():
    problem, _ = planted_problem(np.random.default_rng(27), 30000, 40000, 3, 0.1)
    answers = [max_product(problem, np.random.default_rng(2), n_threads=n, max_iter=15) for n in (1, 2, 4)]
    for other in answers[1:]:
        np.testing.assert_array_equal(other.labels, answers[0].labels)
        np.testing.assert_array_equal(other.details["residuals"], answers[0].details["residuals"])


def test_same_seed_same_labels_and_honest_convergence():
    rng = np.random.default_rng(28)
    outcomes = set()
    for _ in range(20):
        problem = random_problem(rng, n=9, n_labels=2, shape="clique", hard=0.0, scale=4.0)
        first, second = (max_product(problem, np.random.default_rng(5), max_iter=30) for _ in range(2))
        np.testing.assert_array_equal(first.labels, second.labels)
        residuals = first.details["residuals"]
        assert len(residuals) == first.n_iter <= 30
        assert first.converged == (residuals[-1] < 1e-6)
        outcomes.add(first.converged)
    assert outcomes == {True, False}
