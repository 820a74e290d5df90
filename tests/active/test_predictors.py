"""Predictors against refits without the row, a direct discriminant, and a general optimiser."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import softmax
from sklearn.covariance import ledoit_wolf

from linkwise.active import predictors
from linkwise.active.landscape import survey
from linkwise.active.predictors import SMALLEST, guess_groups, inverse_of, ridge, shares


def kernel_of(rng, n):
    """A positive definite matrix with unit diagonal and values in [0, 1]."""
    points = rng.standard_normal((n, 3))
    return np.exp(-0.5 * ((points[:, None] - points) ** 2).sum(axis=2))


def soft_targets(rng, m, g):
    targets = rng.dirichlet(np.full(g, 0.3), size=m)
    targets[: m // 2] = np.eye(g)[rng.integers(g, size=m // 2)]
    return targets


def as_shares(values):
    values = [max(value, SMALLEST) for value in values]
    return [value / sum(values) for value in values]


def one_fit(kernel, known, targets, penalty, wanted):
    """Kernel ridge regression of one landmark, with the normal equations solved anew."""
    gram = kernel[np.ix_(known, known)] + np.diag(penalty)
    return as_shares(kernel[wanted, known] @ np.linalg.solve(gram, targets))


@pytest.mark.parametrize("equal_trust", [True, False])
def test_ridge_equals_a_fit_without_the_row(equal_trust):
    rng = np.random.default_rng(3)
    kernel = kernel_of(rng, 25)
    known = rng.permutation(25)[:12]
    targets = soft_targets(rng, 12, 3)
    penalty = np.full(12, 0.1) if equal_trust else 0.1 / rng.uniform(0.05, 1.0, size=12)
    (dual,), (held_out,) = ridge(kernel[None, known[:, None], known], targets, penalty)
    everywhere = shares(kernel[:, known] @ dual)
    for row in range(25):
        np.testing.assert_allclose(everywhere[row], one_fit(kernel, known, targets, penalty, row), rtol=1e-9)
    for place in range(12):
        kept = np.arange(12) != place
        without = one_fit(kernel, known[kept], targets[kept], penalty[kept], known[place])
        np.testing.assert_allclose(held_out[place], without, rtol=1e-7)


def test_ridge_of_one_known_row():
    kernel = kernel_of(np.random.default_rng(0), 4)
    (dual,), (held_out,) = ridge(kernel[None, 2:3, 2:3], np.array([[0.0, 1.0]]), np.array([0.1]))
    everywhere = shares(kernel[:, [2]] @ dual)
    # Nothing is known without the row: both groups are equal.
    np.testing.assert_allclose(held_out, [[0.5, 0.5]])
    value = kernel[:, 2] / 1.1
    np.testing.assert_allclose(
        everywhere[:, 1], np.maximum(value, SMALLEST) / (np.maximum(value, SMALLEST) + SMALLEST)
    )


def discriminant_by_hand(points, groups, wanted, n_groups):
    """Densities of Gaussians with a common shrunk covariance, times the shares of the groups."""
    centred = points.copy()
    means = {}
    for group in set(groups.tolist()):
        means[group] = points[groups == group].mean(axis=0)
        centred[groups == group] -= means[group]
    covariance = ledoit_wolf(centred, assume_centered=True)[0]
    precision = np.linalg.inv(covariance)
    found = []
    for point in wanted:
        density = []
        for group in range(n_groups):
            if group not in means:
                density.append(0.0)
                continue
            away = point - means[group]
            density.append(np.mean(groups == group) * np.exp(-0.5 * away @ precision @ away))
        found.append(as_shares(np.array(density) / sum(density)))
    return np.array(found)


def test_discriminant_equals_densities():
    rng = np.random.default_rng(5)
    features = rng.standard_normal((40, 3)) @ rng.standard_normal((3, 3))
    known = rng.permutation(40)[:17]
    groups = np.append(np.arange(3), rng.integers(3, size=14))
    (slopes, offsets), held_out = predictors._discriminant(features[known], np.eye(4)[groups])
    everywhere = shares(softmax(features @ slopes + offsets, axis=1))
    np.testing.assert_allclose(
        everywhere, discriminant_by_hand(features[known], groups, features, 4), rtol=1e-8
    )
    for fold in range(5):
        out = np.arange(17) % 5 == fold
        expected = discriminant_by_hand(features[known[~out]], groups[~out], features[known[out]], 4)
        np.testing.assert_allclose(held_out[out], expected, rtol=1e-8)


def test_discriminant_of_single_points():
    features = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0], [0.3, 0.1], [3.8, 0.2]])
    (slopes, offsets), held_out = predictors._discriminant(features[:3], np.eye(3))
    everywhere = features @ slopes + offsets
    assert everywhere.argmax(axis=1).tolist() == [0, 1, 2, 0, 1]
    assert np.isfinite(held_out).all()


def stacking_objective(weights, held_out, targets, trust):
    """Log-likelihood of the mixed predictions, each row counted by its trust, and a flat prior."""
    total = predictors._PRIOR_COUNT / len(weights) * np.log(weights).sum()
    for m in range(len(targets)):
        mixed = sum(weights[c] * held_out[c, m] @ targets[m] for c in range(len(weights)))
        total += trust[m] * np.log(mixed)
    return total


@pytest.mark.parametrize("seed", range(3))
def test_stacking_maximises_its_objective(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    held_out = rng.dirichlet(np.full(3, 0.5), size=(4, 20)) * 0.98 + 0.02 / 3
    targets = soft_targets(rng, 20, 3)
    trust = rng.uniform(0.1, 1.0, size=20)

    def loss(free):
        weights = np.exp(free - np.logaddexp.reduce(free))
        return -stacking_objective(weights, held_out, targets, trust)

    best = minimize(loss, np.zeros(4), tol=1e-12)
    found = predictors._stack(held_out, targets, trust)
    assert found.sum() == pytest.approx(1.0)
    # Thirty steps of EM are near the maximum, and many more steps reach it.
    assert stacking_objective(found, held_out, targets, trust) > -best.fun - 0.02
    monkeypatch.setattr(predictors, "_N_STEPS", 3000)
    exact = predictors._stack(held_out, targets, trust)
    np.testing.assert_allclose(exact, np.exp(best.x - np.logaddexp.reduce(best.x)), atol=1e-4)


def test_guess_is_the_weighted_mean_of_all_predictors():
    rng = np.random.default_rng(1)
    y = np.repeat(np.arange(3), 12)
    landscape = survey(3.0 * rng.standard_normal((3, 2))[y] + rng.standard_normal((36, 2)))
    known = rng.permutation(36)[:10]
    targets, trust = np.eye(3)[y[known]], rng.uniform(0.7, 1.0, size=10)
    guess = guess_groups(landscape, known, targets, trust)
    one_by_one = []
    for kernel in landscape.kernels:
        (dual,), (held_out,) = ridge(kernel[None, known[:, None], known], targets, 0.1 / trust)
        one_by_one.append((shares(kernel[:, known] @ dual), held_out))
    (slopes, offsets), held_out = predictors._discriminant(landscape.features[known], targets)
    one_by_one.append((shares(softmax(landscape.features @ slopes + offsets, axis=1)), held_out))
    prob = guess.prob(landscape, np.arange(36))
    weights = predictors._stack(np.array([one[1] for one in one_by_one]), targets, trust)
    np.testing.assert_allclose(prob, sum(w * one[0] for w, one in zip(weights, one_by_one, strict=True)))
    np.testing.assert_allclose(
        guess.held_out, sum(w * one[1] for w, one in zip(weights, one_by_one, strict=True))
    )
    np.testing.assert_allclose(guess.kernel_weights, weights[:-1] / weights[:-1].sum())
    np.testing.assert_allclose(prob.sum(axis=1), 1.0)
    # With fewer known rows than groups + 3 there is no discriminant, and no weight for one.
    few = guess_groups(landscape, known[:5], targets[:5], trust[:5])
    assert few.kernel_weights.shape == (7,)
    assert few.kernel_weights.sum() == pytest.approx(1.0)


@pytest.mark.parametrize(("n", "d"), [(5, 3), (20, 1), (10, 30), (200, 4)])
def test_shrunk_covariance_is_that_of_scikit_learn(n, d):
    points = np.random.default_rng(n).standard_normal((n, d)) * np.arange(1, d + 1)
    first = np.where(np.arange(n)[:, None] < 4, points, 0.0)
    found = predictors._shrunk_covariances(np.stack([points, first]), np.array([n, 4]))
    np.testing.assert_allclose(found[0], ledoit_wolf(points, assume_centered=True)[0], atol=1e-9)
    np.testing.assert_allclose(found[1], ledoit_wolf(points[:4], assume_centered=True)[0], atol=1e-9)


def test_shrunk_covariance_of_points_without_spread():
    found = predictors._shrunk_covariances(np.zeros((1, 4, 2)), np.array([4]))
    np.testing.assert_array_equal(found, np.zeros((1, 2, 2)))


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("lowest", [0.1, -0.3])
def test_inverse_of_a_symmetric_matrix_also_where_an_eigenvalue_is_negative(seed, lowest):
    rng = np.random.default_rng(seed)
    vectors = np.linalg.qr(rng.normal(size=(9, 9)))[0]
    matrix = (vectors * np.append(lowest, rng.uniform(0.1, 3.0, size=8))) @ vectors.T
    matrix = (matrix + matrix.T) / 2.0
    found = inverse_of(matrix)
    np.testing.assert_allclose(found @ matrix, np.eye(9), atol=1e-10)
    assert np.array_equal(found, found.T) or lowest < 0.0
