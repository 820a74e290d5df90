"""Which points get block moves."""

import numpy as np
import pytest

from linkwise.inference.gibbs.block_moves import correlation_growth, sticky_nodes
from tests.inference.marginal_cases import make_problem
from tests.repeats import for_seeds


def non_backtracking(pairs, influence):
    """The operator as a matrix over directed links."""
    directed = np.concatenate([pairs, pairs[:, ::-1]])
    weight = np.concatenate([influence, influence])
    follows = directed[:, 1][:, None] == directed[None, :, 0]
    returns = directed[:, 0][:, None] == directed[None, :, 1]
    return follows * ~returns * weight[None, :]


@for_seeds(8)
def test_growth_is_the_spectral_radius(seed):
    rng = np.random.default_rng(seed)
    n = 16
    pairs = np.column_stack(np.triu_indices(n, 1))
    pairs = pairs[rng.random(len(pairs)) < 0.7]
    influence = rng.uniform(0.1, 0.9, size=len(pairs)) * rng.choice([1.0, 1.0, 1.0, -1.0], size=len(pairs))
    radius = np.abs(np.linalg.eigvals(non_backtracking(pairs, influence))).max()
    assert correlation_growth(n, pairs, influence) == pytest.approx(radius, rel=0.1)


def test_a_tree_has_no_growth():
    star = np.column_stack([np.zeros(5, dtype=np.int64), np.arange(1, 6)])
    assert correlation_growth(6, star, np.full(5, 0.9)) == 0.0


def random_graph(n, n_links, coupling):
    rng = np.random.default_rng(0)
    pairs = np.unique(np.sort(rng.integers(0, n, size=(n_links, 2)), axis=1), axis=0)
    pairs = pairs[pairs[:, 0] < pairs[:, 1]]
    return make_problem(np.zeros((n, 2)), pairs, rng.choice(coupling, size=len(pairs)))


def test_weak_links_that_disagree_leave_nobody_stuck():
    problem = random_graph(500, 2000, [0.5, -0.5])
    assert np.bincount(problem.pairs.ravel()).max() * np.tanh(0.25) > 1.0
    assert not sticky_nodes(problem).any()


@pytest.mark.parametrize("coupling", [[0.5], [1.2, -1.2], [1.2, 0.1], [-np.inf]])
def test_links_that_agree_or_hold_do(coupling):
    assert sticky_nodes(random_graph(500, 2000, coupling)).mean() > 0.5


def test_only_the_ends_of_strong_links_among_weak_ones():
    problem = random_graph(500, 2000, [0.5, -0.5])
    coupling = problem.coupling.copy()
    coupling[7] = 3.5
    found = np.flatnonzero(sticky_nodes(problem._replace(coupling=coupling)))
    np.testing.assert_array_equal(found, np.sort(problem.pairs[7]))
