"""Sums over sets of labels against the enumeration of all ways to give different labels."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from linkwise import PPC, Constraints
from linkwise.exceptions import InfeasibleConstraints
from linkwise.inference import PottsField, best_labels, marginals
from linkwise.inference.exact.distinct_labels import distinct_components, distinct_marginals
from linkwise.inference.exact.junction_tree import find_components, plan
from tests.inference.exact_cases import make_problem
from tests.repeats import LONG


def apart(n):
    return np.array(list(itertools.combinations(range(n), 2)))


def enumerate_ways(unary):
    """Marginals, log partition and highest score over all ways to give n rows different labels."""
    n, n_labels = unary.shape
    ways = np.array(list(itertools.permutations(range(n_labels), n)))
    scores = unary[np.arange(n), ways].sum(axis=1)
    best = scores.max()
    if best == -np.inf:
        return None, best, best
    weights = np.exp(scores - best)
    prob = np.array([np.bincount(way, weights, n_labels) for way in ways.T]) / weights.sum()
    return prob, float(best + np.log(weights.sum())), float(best)


def random_scores(rng):
    n_labels = int(rng.integers(3, 8))
    n = int(rng.integers(3, n_labels + 1))
    unary = rng.normal(scale=rng.choice([0.3, 3.0, 300.0]), size=(n, n_labels))
    if rng.random() < 0.4:
        unary[rng.random(unary.shape) < 0.65] = -np.inf
        unary[np.arange(n), rng.integers(n_labels, size=n)] = rng.normal(size=n)
    if rng.random() < 0.3:
        unary[:, 0] += 2000.0  # all want the same label, so all but one must take another
    return unary


def test_agrees_with_enumeration():
    rng = np.random.default_rng(0)
    n_impossible = 0
    for _ in range(200):
        unary = random_scores(rng)
        prob, log_partition, _ = enumerate_ways(unary)
        found = np.full(unary.shape, 7.0)
        found_partition = distinct_marginals(unary, np.arange(len(unary)), found)
        if prob is None:
            n_impossible += 1
            assert found_partition == -np.inf
            assert np.isnan(found).all()
        else:
            assert found_partition == pytest.approx(log_partition, rel=1e-12, abs=1e-11)
            np.testing.assert_allclose(found, prob, atol=1e-11)
    assert 5 <= n_impossible <= 50


@pytest.mark.parametrize("method", ["auto", "exact"])
@pytest.mark.parametrize("per_label", [False, True])
def test_engines_agree_with_enumeration(method, per_label):
    """Beside free rows, a tree and a ring, and with rows joined by must-links."""
    rng = np.random.default_rng(1)
    for _ in range(15 if LONG else 6):
        n, n_labels = 6, int(rng.integers(6, 8))
        own = np.sort(rng.choice(16, size=12, replace=False))
        clique, other = own[:6], own[6:]
        pairs = [*clique[apart(n)], *other[[(0, 1), (1, 2), (2, 3), (3, 1)]], (other[4], clique[2])]
        coupling = np.array([-np.inf] * 15 + [1.0, -2.0, 0.5, -0.3] + [np.inf])
        unary = rng.normal(scale=3.0, size=(16, n_labels))
        field = PottsField(unary, pairs, np.tile(coupling[:, None], n_labels) if per_label else coupling)
        joined = unary[clique]
        joined[2] += unary[other[4]]
        prob, log_partition, best = enumerate_ways(joined)
        rest = np.setdiff1d(np.arange(16), [*clique, other[4]])
        place = {row: number for number, row in enumerate(rest)}
        ring = [(place[i], place[j]) for i, j in pairs[15:19]]
        alone = PottsField(unary[rest], ring, coupling[15:19])
        expected = marginals(alone, "exact")

        found = marginals(field, method)
        assert found.exact
        np.testing.assert_allclose(found.prob[clique], prob, atol=1e-11)
        np.testing.assert_allclose(found.prob[other[4]], prob[2], atol=1e-11)
        np.testing.assert_allclose(found.prob[rest], expected.prob, atol=1e-11)
        assert found.log_partition == pytest.approx(log_partition + expected.log_partition, abs=1e-9)
        np.testing.assert_allclose(found.agreement, [*np.zeros(15), *expected.agreement, 1.0], atol=1e-11)
        assert found.parts["distinct_labels"] == 7

        answer = best_labels(field, method, random_state=0)
        assert answer.optimal
        assert answer.score == pytest.approx(best + best_labels(alone, "exact").score, abs=1e-9)
        assert len({*answer.labels[clique]}) == n


def test_only_where_every_two_nodes_are_linked_apart_by_hard_links():
    links = apart(6)

    def chosen(pairs, coupling, n_labels=6, max_table=2**18):
        problem = make_problem(np.zeros((6, n_labels)), pairs, coupling)
        found = plan(problem, max_table).distinct
        component, sizes, _ = find_components(problem)
        assert (found == distinct_components(problem, component, sizes, max_table)).all()
        return found.tolist()

    hard = np.full(15, -np.inf)
    soft = np.where(np.arange(15) == 4, -50.0, -np.inf)
    assert chosen(links, hard) == [True]
    assert chosen(links, np.tile(hard[:, None], 6)) == [True]
    assert chosen(links, soft) == [False]
    assert chosen(links[1:], hard[1:]) == [False]
    assert chosen(links, hard, n_labels=5) == [False]
    assert chosen(links, hard, n_labels=15) == [False]  # 15 * 2 ** 15 > 2 ** 18
    assert chosen(links, hard, n_labels=15, max_table=2**22) == [True]
    assert chosen(links, hard, max_table=100) == [False]
    for_some = np.tile(hard[:, None], 6)
    for_some[3, 2] = -50.0
    assert chosen(links, for_some) == [False]


def test_more_labels_than_enumeration_allows():
    """Equal scores: every labelling is as likely, and there are K! / (K - n)! of them."""
    for n, n_labels in ((10, 10), (12, 12), (7, 14)):
        found = marginals(PottsField(np.zeros((n, n_labels)), apart(n), np.full(n * (n - 1) // 2, -np.inf)))
        assert found.exact
        np.testing.assert_allclose(found.prob, 1 / n_labels, rtol=1e-10)
        expected = math.lgamma(n_labels + 1) - math.lgamma(n_labels - n + 1)
        assert found.log_partition == pytest.approx(expected, rel=1e-12)


def test_forbidden_labels_that_leave_none():
    unary = np.zeros((7, 8))
    unary[:, 6:] = -np.inf
    field = PottsField(unary, apart(7), np.full(21, -np.inf))
    for solve in (marginals, best_labels):
        with pytest.raises(InfeasibleConstraints):
            solve(field)


def test_a_mixture_with_ten_labelled_classes_is_exact():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(10), 12)
    X = rng.normal(size=(120, 2)) + 6 * np.c_[y % 4, y // 4]
    links = Constraints.from_labels(np.where(np.arange(120) % 4 == 0, y, -1))
    model = PPC(10, covariance_type="tied", random_state=0).fit(X, constraints=links)
    assert model.inference_["exact"]
    assert model.inference_["method"] == "distinct_labels"
    assert model.inference_["details"]["prior_exact"]
    assert (np.diff(model.lower_bounds_) > -1e-9).all()
