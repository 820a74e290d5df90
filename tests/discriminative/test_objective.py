"""The objective of boundaries against sums over all labellings, finite differences and known values."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.optimize import check_grad, minimize
from scipy.special import softmax

from linkwise.discriminative.objective import (
    boundary_objective,
    in_row_space,
    information,
    learn_boundaries,
    link_table,
)
from tests.repeats import examples

RNG = np.random.default_rng(0)


def slow_objective(coefficients, features, pairs, weights, count, a, penalty):
    """P(link) by summing over the labels of its two rows; entropies term by term."""
    prob = softmax(features @ coefficients, axis=1)
    n, k = prob.shape
    value = 0.0
    for (i, j), weight, times in zip(pairs, weights, count, strict=True):
        certainty = min(1.0 / (1.0 + np.exp(-2.0 * abs(weight))), 0.99)
        likelihood = 0.0
        for first, second in product(range(k), repeat=2):
            agrees = (first == second) == (weight > 0)
            likelihood += prob[i, first] * prob[j, second] * (certainty if agrees else 1.0 - certainty)
        value += times * np.log(likelihood)
    mean = [sum(prob[i, c] for i in range(n)) / n for c in range(k)]
    value += a * -sum(m * np.log(m) for m in mean)
    value -= a * sum(-prob[i, c] * np.log(prob[i, c]) for i in range(n) for c in range(k)) / n
    return value - 0.5 * sum(
        penalty[b] * coefficients[b, c] ** 2 for b in range(len(penalty)) for c in range(k)
    )


def draw(rng):
    n, b, k, m = rng.integers(2, 8), rng.integers(1, 5), rng.integers(1, 5), rng.integers(0, 7)
    features, coefficients = rng.normal(size=(n, b)), rng.normal(size=(b, k))
    pairs = np.array([rng.choice(n, 2, replace=False) for _ in range(m)], dtype=np.int64).reshape(-1, 2)
    weights = rng.choice([-np.inf, -1.0, -0.2, 0.3, 2.0, np.inf], m)
    return features, coefficients, pairs, weights, float(rng.uniform(0, 30)), rng.uniform(0, 2, b)


def test_value_and_gradient_on_many_small_cases():
    rng = np.random.default_rng(1)
    for _ in range(examples(200)):
        features, coefficients, pairs, weights, a, penalty = draw(rng)
        count = rng.uniform(0.0, 2.0, len(pairs))
        links = link_table(len(features), pairs, weights, count)
        value, gradient = boundary_objective(coefficients, features, links, a, penalty)
        assert value == pytest.approx(
            slow_objective(coefficients, features, pairs, weights, count, a, penalty), abs=1e-8
        )

        def of(flat, part, links=links, features=features, a=a, penalty=penalty, shape=coefficients.shape):
            found = boundary_objective(flat.reshape(shape), features, links, a, penalty)
            return found[0] if part == 0 else found[1].ravel()

        error = check_grad(lambda w: of(w, 0), lambda w: of(w, 1), coefficients.ravel())
        assert error < 1e-4 * (1.0 + np.abs(gradient).max())


def test_information_of_clear_equal_clusters_is_log_k_and_of_doubt_none():
    with np.errstate(divide="ignore"):
        clear = np.log(np.maximum(np.eye(4)[np.arange(12) % 4], 1e-300))
    assert information(clear) == pytest.approx(np.log(4.0))
    assert information(np.full((9, 3), np.log(1.0 / 3.0))) == pytest.approx(0.0, abs=1e-9)


def test_weights_of_rows_count_as_copies():
    log_prob = np.log(softmax(RNG.normal(size=(5, 3)), axis=1))
    copies = np.array([1, 3, 0, 2, 1])
    assert information(log_prob, copies.astype(float)) == pytest.approx(
        information(np.repeat(log_prob, copies, axis=0))
    )


def test_a_hard_link_counts_as_one_of_certainty_99():
    features, coefficients = RNG.normal(size=(4, 2)), RNG.normal(size=(2, 3))
    pairs = np.array([[0, 1], [2, 3]])
    sure = 0.5 * np.log(99.0)
    hard, soft = (
        boundary_objective(coefficients, features, link_table(4, pairs, weights), 5.0, np.ones(2))
        for weights in (np.array([np.inf, -np.inf]), np.array([sure, -sure]))
    )
    assert hard[0] == pytest.approx(soft[0], rel=1e-12)
    np.testing.assert_allclose(hard[1], soft[1], rtol=1e-12)


def test_climbing_never_falls_and_ends_at_a_stationary_point():
    features = np.column_stack([RNG.normal(size=(60, 2)), np.ones(60)])
    start = (features[:, 0] > 0).astype(np.int64)
    pairs = RNG.integers(60, size=(15, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    weights = np.where(start[pairs[:, 0]] == start[pairs[:, 1]], 1.5, -1.5)
    links, penalty = link_table(60, pairs, weights), np.array([0.3, 0.3, 0.003])
    found = learn_boundaries(features, links, start, 2, 20.0, penalty, max_iter=500, tol=1e-12)
    assert found.converged
    assert (np.diff(found.objectives) >= -1e-9).all()
    value, gradient = boundary_objective(found.coefficients, features, links, 20.0, penalty)
    assert value == pytest.approx(found.objectives[-1])
    assert np.abs(gradient).max() < 1e-3


def test_more_features_than_rows_are_reduced_without_changing_the_objective():
    rng = np.random.default_rng(2)
    for _ in range(100):
        n, k = int(rng.integers(2, 7)), int(rng.integers(1, 4))
        b = n + int(rng.integers(2, 20))
        features = rng.normal(size=(n, b))
        if rng.random() < 0.3:
            features[:, 1] = features[:, 0]
        penalty = rng.choice([0.01, 0.3, 2.0], b)
        pairs = np.array([rng.choice(n, 2, replace=False) for _ in range(3)])
        links = link_table(n, pairs, rng.choice([-np.inf, -0.2, 2.0], 3))
        reduced, of_reduced, basis = in_row_space(features, penalty)
        assert reduced.shape[1] <= 3 * n
        np.testing.assert_allclose(basis.T @ basis, np.eye(basis.shape[1]), atol=1e-12)
        np.testing.assert_allclose(reduced @ basis.T, features, atol=1e-12)
        coefficients = rng.normal(size=(reduced.shape[1], k))
        ours, gradient = boundary_objective(coefficients, reduced, links, 5.0, of_reduced)
        value, full = boundary_objective(basis @ coefficients, features, links, 5.0, penalty)
        assert ours == pytest.approx(value, abs=1e-9)
        # The gradient has no part outside of the basis: no coefficient there is worth anything.
        np.testing.assert_allclose(basis @ gradient, full, atol=1e-9)


def test_few_features_stay_as_they_are():
    features, penalty = RNG.normal(size=(6, 7)), np.ones(7)
    reduced, of_reduced, basis = in_row_space(features, penalty)
    assert reduced is features
    assert of_reduced is penalty
    assert basis is None


def test_boundaries_of_many_features_are_those_of_a_search_among_all_coefficients():
    rng = np.random.default_rng(3)
    start = np.arange(12) % 2
    features = np.column_stack([rng.normal(size=(12, 40)) + start[:, np.newaxis], np.ones(12)])
    penalty = np.append(np.full(40, 0.5), 0.005)
    links = link_table(12, np.array([(0, 2), (1, 3), (0, 1)]), np.array([1.0, 1.0, -1.0]))
    found = learn_boundaries(features, links, start, 2, 20.0, penalty, max_iter=500, tol=1e-14)

    def descend(flat):
        value, gradient = boundary_objective(flat.reshape(41, 2), features, links, 20.0, penalty)
        return -value, -gradient.ravel()

    best = minimize(descend, found.coefficients.ravel(), jac=True, options={"gtol": 1e-9})
    assert found.coefficients.shape == (41, 2)
    assert found.objectives[-1] == pytest.approx(-best.fun, abs=1e-6)
    np.testing.assert_allclose(found.coefficients, best.x.reshape(41, 2), atol=1e-3)
