import numpy as np
import pytest
from scipy.special import expit, logsumexp

from linkwise.exceptions import InfeasibleConstraints
from linkwise.graph import adjacency, reversed_slots
from linkwise.inference import PottsField, marginals
from linkwise.inference.messages.layout import (
    LINEAR,
    LOGARITHMIC,
    link_tables,
    message_graph,
    shift_scores,
    targets,
    to_numbers,
    to_scores,
)
from linkwise.inference.messages.sum_product import belief_propagation, propagate, run_messages
from linkwise.inference.problem import Problem, reduce_field
from tests.inference.message_oracle import (
    bethe_free_energy,
    flooding,
    messages_by_name,
    node_belief,
    pair_belief,
    worst_message_error,
)
from tests.inference.oracle import enumerate_problem, random_field
from tests.repeats import LONG, examples, for_seeds, share

RNG = np.random.default_rng(0)


def problem_of(field):
    return reduce_field(field, keep_zero_in_component=True).problem


def random_problem(rng, **options):
    """A reduced random field, or None when its hard must-links contradict each other."""
    try:
        return problem_of(random_field(rng, **options))
    except InfeasibleConstraints:
        return None


def loopy_problem(rng, scale, *, per_label=False, hard=0.0, n=7, n_labels=3):
    shape = str(rng.choice(["cycle", "dense", "clique"]))
    field = random_field(
        rng, n=n, n_labels=n_labels, shape=shape, hard=hard, must_hard=False, per_label=per_label, scale=scale
    )
    return problem_of(PottsField(rng.normal(size=(n, n_labels)), field.pairs, field.coupling))


def run(problem, arithmetic, **options):
    settings = {"damping": 0.3, "tol": 1e-12, "max_iter": 2000} | options
    graph = message_graph(problem.graph)
    scores = problem.unary.copy()
    shift_scores(scores, graph.order)
    links = link_tables(problem, graph, arithmetic)
    messages, outcome = run_messages(problem, graph, arithmetic, links, scores, **settings)
    if arithmetic == LINEAR and outcome.failure == 0.0:
        messages = np.log(messages)
    return graph, messages, outcome


def assert_exact(problem, tolerance=1e-10):
    prob, log_partition, agreement, _, _ = enumerate_problem(problem)
    answer = belief_propagation(problem, RNG)
    if prob is None:
        assert answer.log_partition == -np.inf
        assert answer.exact
        return answer
    assert answer.exact
    assert answer.log_partition_kind == "exact"
    np.testing.assert_allclose(answer.prob, prob, rtol=0, atol=tolerance)
    np.testing.assert_allclose(answer.agreement, agreement, rtol=0, atol=tolerance)
    # Scores of 1e12 that cancel leave their rounding behind.
    largest = np.abs(problem.unary[np.isfinite(problem.unary)]).max()
    rounding = 1e-15 * largest * len(problem.unary)
    np.testing.assert_allclose(answer.log_partition, log_partition, rtol=0, atol=tolerance + rounding)
    return answer


@for_seeds(5)
def test_equals_enumeration_on_forests(seed):
    rng = np.random.default_rng(seed)
    seen = []
    for case in range(examples(60)):
        shape = "tree" if case % 4 else "empty"
        problem = random_problem(rng, shape=shape, hard=0.3, per_label=case % 2 == 1)
        if problem is None:
            continue
        answer = assert_exact(problem)
        seen.append(answer.n_iter)
        assert answer.converged
    assert len(seen) > share(36)
    assert set(seen) <= {0, 1, 2}


def test_many_trees_and_single_nodes_at_once():
    rng = np.random.default_rng(3)
    parts = [random_problem(rng, shape="tree", hard=0.0, n=4, n_labels=3) for _ in range(60)]
    unary = np.concatenate([part.unary for part in parts] + [np.zeros((5, 3))])
    pairs = np.concatenate([part.pairs + 4 * index for index, part in enumerate(parts)])
    coupling = np.concatenate([part.coupling for part in parts])
    answer = belief_propagation(Problem(unary, pairs, coupling, adjacency(len(unary), pairs)), RNG)
    whole = [enumerate_problem(part) for part in parts]
    np.testing.assert_allclose(answer.prob[:-5], np.concatenate([w[0] for w in whole]), atol=1e-10)
    np.testing.assert_allclose(answer.prob[-5:], 1 / 3)
    np.testing.assert_allclose(answer.agreement, np.concatenate([w[2] for w in whole]), atol=1e-10)
    assert answer.log_partition == pytest.approx(sum(w[1] for w in whole) + 5 * np.log(3), rel=1e-12)
    assert answer.exact


def test_forbidden_labels_and_scores_of_any_size_on_forests():
    # Whole numbers: sums with 1e12 are exact, so the enumeration is exact too.
    rng = np.random.default_rng(4)
    arithmetic = set()
    for _ in range(examples(300)):
        field = random_field(rng, shape="tree", hard=0.0)
        n, n_labels = field.unary.shape
        unary = rng.choice([0.0, 1.0, -2.0, 5.0, 700.0, -3e4, 1e12, -np.inf], size=(n, n_labels))
        unary[np.arange(n), rng.integers(n_labels, size=n)] = 0.0
        size = rng.choice([1.0, 2.0, 30.0, 1e3, 1e12, np.inf], size=len(field.pairs))
        sign = np.where(size < np.inf, rng.choice([-1.0, 1.0], size=len(size)), -1.0)
        answer = assert_exact(problem_of(PottsField(unary, field.pairs, sign * size)))
        arithmetic.add(answer.details["arithmetic"])
    assert arithmetic == {"linear", "logarithmic"}


@pytest.mark.parametrize("nats", [60.0, 600.0, 5e4, 1e12])
def test_opposing_scores_under_a_hard_cannot_link(nats):
    # Both points want label 0; which one gets it depends on the small difference alone.
    field = PottsField([[nats, 0.0], [nats + 1.0, 0.0]], [(0, 1)], [-np.inf])
    answer = belief_propagation(problem_of(field), RNG)
    np.testing.assert_allclose(answer.prob[0], [expit(-1.0), expit(1.0)], rtol=1e-12)
    np.testing.assert_allclose(answer.prob[1], [expit(1.0), expit(-1.0)], rtol=1e-12)
    assert answer.agreement[0] == 0.0


def test_a_hub_of_thousands_of_links_does_not_underflow():
    rng = np.random.default_rng(5)
    n_leaves, n_labels = 5000, 3
    unary = rng.normal(size=(n_leaves + 1, n_labels))
    pairs = np.column_stack([np.zeros(n_leaves, dtype=np.int64), np.arange(1, n_leaves + 1)])
    coupling = rng.normal(scale=2.0, size=n_leaves)
    agree, differ = np.minimum(coupling, 0.0), -np.maximum(coupling, 0.0)
    table = np.where(np.eye(n_labels, dtype=bool), agree[:, None, None], differ[:, None, None])
    hub = unary[0] + logsumexp(unary[1:, :, None] + table, axis=1).sum(axis=0)

    answer = belief_propagation(Problem(unary, pairs, coupling, adjacency(n_leaves + 1, pairs)), RNG)
    assert answer.details["arithmetic"] == "logarithmic"
    assert answer.log_partition == pytest.approx(logsumexp(hub), rel=1e-13)
    np.testing.assert_allclose(answer.prob[0], np.exp(hub - logsumexp(hub)), atol=1e-10)


@pytest.mark.parametrize("n_labels", [1, 2, 3, 4, 5, 9])
def test_both_arithmetics_go_the_same_way(n_labels):
    rng = np.random.default_rng(6)
    n_compared = 0
    for case in range(25):
        problem = loopy_problem(rng, 3.0, per_label=case % 2 == 1, hard=0.1, n=6, n_labels=n_labels)
        graph, linear, outcome = run(problem, LINEAR, damping=0.0, max_iter=7)
        _, logarithmic, _ = run(problem, LOGARITHMIC, damping=0.0, max_iter=7)
        if outcome.failure != 0.0:
            continue
        n_compared += 1
        want, have = (messages_by_name(problem, graph, table) for table in (linear, logarithmic))
        for key in want:
            np.testing.assert_allclose(have[key], want[key], rtol=0, atol=1e-10)
    assert n_compared >= 10


def test_both_arithmetics_reach_the_same_fixed_point():
    rng = np.random.default_rng(18)
    for case in range(30):
        problem = loopy_problem(rng, 0.5, per_label=case % 2 == 1)
        graph, linear, first = run(problem, LINEAR)
        _, logarithmic, second = run(problem, LOGARITHMIC)
        assert first.converged
        assert second.converged
        want, have = (messages_by_name(problem, graph, table) for table in (linear, logarithmic))
        for key in want:
            np.testing.assert_allclose(have[key], want[key], rtol=0, atol=1e-10)


def test_reaches_the_fixed_point_of_dense_flooding_on_weak_fields():
    rng = np.random.default_rng(7)
    for case in range(examples(30)):
        problem = loopy_problem(rng, 0.4, per_label=case % 2 == 1)
        messages = flooding(problem)
        nodes = [node_belief(problem, messages, node) for node in range(len(problem.unary))]
        links = [pair_belief(problem, messages, edge) for edge in range(len(problem.pairs))]
        free_energy = bethe_free_energy(problem, nodes, links)
        answer = belief_propagation(problem, RNG, tol=1e-12)
        assert answer.converged
        assert not answer.exact
        assert answer.log_partition_kind == "bethe"
        np.testing.assert_allclose(answer.prob, nodes, rtol=0, atol=1e-10)
        np.testing.assert_allclose(answer.agreement, [np.trace(table) for table in links], atol=1e-10)
        assert -answer.log_partition == pytest.approx(free_energy, abs=1e-9)


@pytest.mark.parametrize("arithmetic", [LINEAR, LOGARITHMIC])
@pytest.mark.parametrize("per_label", [False, True])
def test_converged_messages_are_consistent_however_strong(arithmetic, per_label):
    rng = np.random.default_rng(8)
    n_checked = 0
    for _ in range(20 if LONG else 8):
        problem = loopy_problem(rng, 4.0, per_label=per_label, hard=0.2)
        graph, table, outcome = run(problem, arithmetic)
        if outcome.failure != 0.0 or not outcome.converged:
            continue
        n_checked += 1
        messages = messages_by_name(problem, graph, table)
        assert worst_message_error(problem, messages) < 1e-8
        nodes = [node_belief(problem, messages, node) for node in range(len(problem.unary))]
        links = [pair_belief(problem, messages, edge) for edge in range(len(problem.pairs))]
        for (i, j), joint in zip(problem.pairs, links, strict=True):
            np.testing.assert_allclose(joint.sum(axis=1), nodes[i], atol=1e-8)
            np.testing.assert_allclose(joint.sum(axis=0), nodes[j], atol=1e-8)
        answer = belief_propagation(problem, RNG, tol=1e-12, max_iter=2000)
        if answer.converged and answer.details["arithmetic"] == ["linear", "logarithmic"][arithmetic]:
            np.testing.assert_allclose(answer.prob, nodes, atol=1e-8)
            np.testing.assert_allclose(answer.agreement, [np.trace(joint) for joint in links], atol=1e-8)
            free_energy = bethe_free_energy(problem, nodes, links)
            assert -answer.log_partition == pytest.approx(free_energy, rel=1e-8, abs=1e-8)
    assert n_checked >= (10 if LONG else 4)


def test_the_fixed_point_is_stationary():
    # Then the derivative of log Z by a score is the belief of it (the messages do not matter).
    rng = np.random.default_rng(9)
    step = 1e-4
    for case in range(15):
        problem = loopy_problem(rng, 1.0, per_label=case % 2 == 1, n=5)

        def log_partition(unary, coupling, problem=problem):
            changed = problem._replace(unary=unary, coupling=coupling)
            return belief_propagation(changed, RNG, tol=1e-13, max_iter=3000).log_partition

        answer = belief_propagation(problem, RNG, tol=1e-13, max_iter=3000)
        assert answer.converged
        for node, label in ((0, 0), (3, 2)):
            change = np.zeros_like(problem.unary)
            change[node, label] = step
            slope = log_partition(problem.unary + change, problem.coupling) - log_partition(
                problem.unary - change, problem.coupling
            )
            assert slope / (2 * step) == pytest.approx(answer.prob[node, label], abs=1e-6)
        change = np.zeros_like(problem.coupling)
        change[0] = step
        slope = log_partition(problem.unary, problem.coupling + change) - log_partition(
            problem.unary, problem.coupling - change
        )
        attractive = problem.coupling.ndim == 1 and problem.coupling[0] > 0
        assert slope / (2 * step) == pytest.approx(answer.agreement[0] - attractive, abs=1e-6)


def test_close_to_the_truth_on_weak_loops_and_closer_than_ignoring_the_links():
    rng = np.random.default_rng(10)
    errors, naive = [], []
    for _ in range(60):
        problem = loopy_problem(rng, 0.5, n=6)
        prob, log_partition, _, _, _ = enumerate_problem(problem)
        answer = belief_propagation(problem, RNG)
        errors.append(np.abs(answer.prob - prob).max())
        alone = np.exp(problem.unary - logsumexp(problem.unary, axis=1, keepdims=True))
        naive.append(np.abs(alone - prob).max())
        assert answer.log_partition == pytest.approx(log_partition, abs=0.5)
    assert np.mean(errors) < 0.1 * np.mean(naive)


def test_points_labels_and_links_may_come_in_any_order():
    rng = np.random.default_rng(11)
    for case in range(30):
        field = random_field(
            rng, n=7, n_labels=3, shape="dense", hard=0.0, per_label=case % 2 == 1, scale=0.5
        )
        points, labels, links = rng.permutation(7), rng.permutation(3), rng.permutation(len(field.pairs))
        place = np.argsort(points)
        coupling = field.coupling[links] if case % 2 == 0 else field.coupling[links][:, labels]
        shuffled = PottsField(field.unary[points][:, labels], place[field.pairs[links]][:, ::-1], coupling)
        want = belief_propagation(problem_of(field), RNG, tol=1e-12)
        have = belief_propagation(problem_of(shuffled), RNG, tol=1e-12)
        np.testing.assert_allclose(have.prob, want.prob[points][:, labels], atol=1e-9)
        assert have.log_partition == pytest.approx(want.log_partition, abs=1e-9)


def test_a_link_given_as_two_halves_counts_once():
    rng = np.random.default_rng(12)
    field = random_field(rng, n=7, n_labels=3, shape="dense", hard=0.0)
    halves = PottsField(field.unary, np.repeat(field.pairs, 2, axis=0), np.repeat(field.coupling, 2) / 2)
    want, have = (belief_propagation(problem_of(f), RNG) for f in (field, halves))
    np.testing.assert_allclose(have.prob, want.prob, atol=1e-12)
    assert have.log_partition == pytest.approx(want.log_partition, abs=1e-10)


def grid_problem(rng, side, n_labels, coupling):
    index = np.arange(side * side).reshape(side, side)
    right = np.column_stack([index[:, :-1].ravel(), index[:, 1:].ravel()])
    down = np.column_stack([index[:-1].ravel(), index[1:].ravel()])
    pairs = np.concatenate([right, down])
    pairs = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
    strength = coupling * rng.normal(size=len(pairs))
    return Problem(rng.normal(size=(side * side, n_labels)), pairs, strength, adjacency(side * side, pairs))


def test_numbers_do_not_depend_on_the_number_of_threads():
    problem = grid_problem(np.random.default_rng(13), 100, 3, 0.8)
    answers = [belief_propagation(problem, RNG, n_threads=n, max_iter=12) for n in (1, 2, 5)]
    for other in answers[1:]:
        np.testing.assert_array_equal(other.prob, answers[0].prob)
        np.testing.assert_array_equal(other.details["residuals"], answers[0].details["residuals"])
        assert other.log_partition == answers[0].log_partition


def test_a_symmetric_field_keeps_its_symmetric_marginals():
    ring = [(0, 1), (1, 2), (2, 3), (0, 3)]
    answer = belief_propagation(problem_of(PottsField(np.zeros((4, 3)), ring, [6.0] * 4)), RNG)
    np.testing.assert_allclose(answer.prob, 1 / 3, atol=1e-12)


def test_convergence_is_reported_honestly():
    rng = np.random.default_rng(15)
    outcomes = set()
    for _ in range(40):
        problem = loopy_problem(rng, 6.0, n_labels=2)
        answer = belief_propagation(problem, RNG, max_iter=40, tol=1e-8)
        residuals = answer.details["residuals"]
        assert len(residuals) == answer.n_iter <= 40
        assert answer.converged == (residuals[-1] <= 1e-8)
        assert (residuals[:-1] > 1e-8).all()
        assert not answer.exact
        outcomes.add(answer.converged)
    assert outcomes == {True, False}


def test_contradictions_that_empty_a_node_are_found_on_loops_too():
    # Labels 0 and 1 are taken by two fixed neighbours; the third has nothing left.
    unary = [[0.0, -np.inf], [-np.inf, 0.0], [0.0, 0.0]]
    problem = problem_of(PottsField(unary, [(0, 1), (0, 2), (1, 2)], [-np.inf] * 3))
    answer = belief_propagation(problem, RNG)
    assert answer.log_partition == -np.inf
    assert answer.exact


def test_links_of_coupling_zero_carry_no_information():
    rng = np.random.default_rng(16)
    unary = rng.normal(size=(3, 4))
    pairs = np.array([[0, 1], [0, 2], [1, 2]])
    problem = Problem(unary, pairs, np.zeros(3), adjacency(3, pairs))
    answer = belief_propagation(problem, RNG)
    prob = np.exp(unary - logsumexp(unary, axis=1, keepdims=True))
    np.testing.assert_allclose(answer.prob, prob, atol=1e-14)
    np.testing.assert_allclose(answer.agreement, np.einsum("ek,ek->e", prob[pairs[:, 0]], prob[pairs[:, 1]]))
    assert answer.log_partition == pytest.approx(logsumexp(unary, axis=1).sum(), abs=1e-12)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"damping": 1.0}, "damping is 1.0"),
        ({"tol": 0.0}, "tol is 0.0"),
        ({"max_iter": 0}, "max_iter is 0"),
    ],
)
def test_senseless_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        marginals(PottsField([[0.0, 1.0]], [], []), "belief_propagation", **options)


def test_message_graph_is_consistent():
    rng = np.random.default_rng(17)
    for _ in range(50):
        problem = random_problem(rng, hard=0.0)
        n_nodes = len(problem.unary)
        graph = message_graph(problem.graph)
        order, target = graph.order, targets(graph)
        reverse = reversed_slots(graph.edges, len(problem.pairs))
        pairs = set()
        for place in range(n_nodes):
            slots = np.arange(graph.indptr[place], graph.indptr[place + 1])
            assert (target[slots[slots < graph.split[place]]] < place).all()
            assert (target[slots[slots >= graph.split[place]]] > place).all()
            for slot in slots:
                assert reverse[reverse[slot]] == slot
                assert target[reverse[slot]] == place
                ends = sorted((order[place], order[target[slot]]))
                assert problem.pairs[graph.edges[slot]].tolist() == ends
                pairs.add(tuple(ends))
            rows = graph.later_rows[graph.later_ptr[place] : graph.later_ptr[place + 1]]
            np.testing.assert_array_equal(rows, reverse[slots[slots >= graph.split[place]]])
        assert len(pairs) == len(problem.pairs)
        np.testing.assert_array_equal(
            np.sort(np.concatenate([graph.earlier_rows, graph.later_rows])), np.arange(2 * len(problem.pairs))
        )


def test_scores_come_back_from_their_numbers():
    scores = np.array([[0.0, -1e-9, -3.0, -699.0], [-701.0, -1e12, -np.inf, 0.0], [5.0, 6.0, 7.0, 8.0]])
    table, order = scores.copy(), np.array([1, 0], dtype=np.int32)
    to_numbers(table, order)
    np.testing.assert_allclose(table[0], np.exp(scores[0]))
    np.testing.assert_array_equal(table[1], [-701.0, -1e12, -np.inf, 1.0])
    to_scores(table, order)
    np.testing.assert_allclose(table, scores, rtol=1e-15, atol=1e-15)


def test_components_among_others_are_answered_where_they_stand():
    rng = np.random.default_rng(3)
    ring = loopy_problem(rng, 1.0)
    alone = belief_propagation(ring, RNG)
    n, shift = len(ring.unary), 2
    unary = np.vstack([rng.normal(size=(shift, 3)), ring.unary])
    pairs = np.vstack([[[0, 1]], ring.pairs + shift])
    coupling = np.append(-1.0, ring.coupling)
    whole = Problem(unary, pairs, coupling, adjacency(n + shift, pairs))
    prob, agreement = unary.copy(), np.full(len(pairs), np.nan)
    chosen = np.arange(shift + n) >= shift
    answer = propagate(whole, chosen, "key", prob, agreement)
    np.testing.assert_array_equal(prob[:shift], unary[:shift])
    assert np.isnan(agreement[0])
    np.testing.assert_allclose(prob[shift:], alone.prob, rtol=0, atol=1e-14)
    np.testing.assert_allclose(agreement[1:], alone.agreement, rtol=0, atol=1e-14)
    assert answer.log_partition == pytest.approx(alone.log_partition, rel=1e-13)
