import numpy as np
import pytest

from linkwise.graph import adjacency
from linkwise.inference.exact.forest import hanging_trees
from linkwise.inference.messages.sum_product import belief_propagation, propagate
from linkwise.inference.problem import Problem
from tests.inference.oracle import enumerate_problem
from tests.repeats import for_seeds

#: A ring 0, 1, 2, 3 with a tree of two levels on 1 and a leaf on 3.
PAIRS = np.array([[0, 1], [0, 3], [1, 2], [1, 4], [2, 3], [3, 7], [4, 5], [4, 6]])


def random_loopy(rng, n_labels, *, per_label=False):
    """A random graph with trees on its rings, and the nodes of its components with rings."""
    n = 60
    pairs = np.unique(np.sort(rng.integers(0, n, size=(75, 2)), axis=1), axis=0)
    pairs = pairs[pairs[:, 0] < pairs[:, 1]]
    shape = (len(pairs), n_labels) if per_label else len(pairs)
    unary = rng.normal(size=(n, n_labels))
    problem = Problem(unary, pairs, rng.normal(size=shape), adjacency(n, pairs))
    stays = np.ones(n, dtype=bool)
    for _ in range(n):
        degree = np.bincount(pairs[stays[pairs].all(axis=1)].ravel(), minlength=n)
        stays = degree > 1
    loopy = stays.copy()
    for _ in range(n):
        ends = pairs[loopy[pairs].any(axis=1)]
        loopy[ends.ravel()] = True
    return problem, np.flatnonzero(loopy).astype(np.int32), stays


def test_leaves_are_peeled_off_to_the_rings():
    trees, stays = hanging_trees(adjacency(8, PAIRS), np.arange(8, dtype=np.int32))
    np.testing.assert_array_equal(stays, [True] * 4 + [False] * 4)
    joined = {
        (int(trees.order[here]), int(trees.order[parent]), tuple(PAIRS[edge].tolist()))
        for here, (parent, edge) in enumerate(zip(trees.parent, trees.edge, strict=True))
        if parent >= 0
    }
    assert joined == {(4, 1, (1, 4)), (5, 4, (4, 5)), (6, 4, (4, 6)), (7, 3, (3, 7))}
    assert set(trees.order[trees.parent < 0].tolist()) == {1, 3}
    assert (trees.parent < np.arange(len(trees.order))).all()


@for_seeds(6)
def test_peeling_equals_counting_degrees_again_and_again(seed):
    problem, nodes, expected = random_loopy(np.random.default_rng(seed), 3)
    trees, stays = hanging_trees(problem.graph, nodes)
    np.testing.assert_array_equal(stays, expected)
    assert set(trees.order.tolist()) | set(np.flatnonzero(stays).tolist()) == set(nodes.tolist())
    assert (trees.parent < np.arange(len(trees.order))).all()
    assert stays[trees.order[trees.parent < 0]].all()


@pytest.mark.parametrize("per_label", [False, True])
@for_seeds(4)
def test_answers_are_those_of_messages_everywhere(seed, per_label):
    problem, nodes, _ = random_loopy(np.random.default_rng(seed), 3, per_label=per_label)
    everywhere = belief_propagation(problem, np.random.default_rng(0), tol=1e-13, max_iter=2000)
    prob, agreement = problem.unary.copy(), np.full(len(problem.pairs), np.nan)
    answer = propagate(
        problem, np.isin(np.arange(len(prob)), nodes), None, prob, agreement, tol=1e-13, max_iter=2000
    )
    assert everywhere.converged
    assert answer.converged
    among = np.isin(problem.pairs[:, 0], nodes)
    np.testing.assert_allclose(prob[nodes], everywhere.prob[nodes], rtol=0, atol=1e-11)
    np.testing.assert_allclose(agreement[among], everywhere.agreement[among], rtol=0, atol=1e-11)
    others = np.setdiff1d(np.arange(len(prob)), nodes)
    np.testing.assert_array_equal(prob[others], problem.unary[others])
    assert np.isnan(agreement[~among]).all()


def test_trees_on_a_ring_that_says_nothing_are_exact():
    rng = np.random.default_rng(1)
    coupling = rng.normal(size=len(PAIRS))
    coupling[[0, 1, 2, 4]] = 1e-300
    problem = Problem(rng.normal(size=(8, 3)), PAIRS, coupling, adjacency(8, PAIRS))
    true_prob, log_partition, true_agreement, *_ = enumerate_problem(problem)
    prob, agreement = problem.unary.copy(), np.full(len(PAIRS), np.nan)
    answer = propagate(problem, np.ones(8, dtype=bool), None, prob, agreement)
    np.testing.assert_allclose(prob, true_prob, rtol=1e-12)
    np.testing.assert_allclose(agreement, true_agreement, rtol=1e-12)
    assert answer.log_partition == pytest.approx(log_partition, rel=1e-13)


@pytest.mark.parametrize(
    ("links", "forbidden"),
    [([6, 7], [(5, 0), (6, 1)]), ([5], [(7, 1), (3, 1)])],
    ids=["inside a tree", "where it hangs"],
)
def test_a_tree_may_leave_no_label(links, forbidden):
    problem = Problem(np.zeros((8, 2)), PAIRS, np.full(len(PAIRS), 0.5), adjacency(8, PAIRS))
    problem.coupling[links] = -np.inf
    for node, label in forbidden:
        problem.unary[node, label] = -np.inf
    prob, agreement = problem.unary.copy(), np.zeros(len(PAIRS))
    answer = propagate(problem, np.ones(8, dtype=bool), None, prob, agreement)
    assert answer.log_partition == -np.inf
    assert answer.exact
    assert np.isnan(prob).all()
    assert np.isnan(agreement).all()
