"""Whole EM iterations made of the passes: scikit-learn's numbers, and stability far from the origin."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.mixture import GaussianMixture

from linkwise.mixture.gaussian.data import points_of
from linkwise.mixture.gaussian.gaussians import (
    COVARIANCE_TYPES,
    Gaussians,
    m_step,
    precision_factors,
    precision_factors_of_precisions,
)
from linkwise.mixture.gaussian.passes import em_pass, posterior_pass
from tests.mixture import gaussian_oracle as oracle
from tests.repeats import examples

REG_COVAR = 1e-6


def run_em(X, weights, means, factors, covariance_type, n_iter, reg_covar=REG_COVAR):
    """Weights, means, covariances, factors, and the log-likelihood a sample of every iteration."""
    points = points_of(X)
    trace = []
    covariances = None
    for _ in range(n_iter):
        statistics = em_pass(points, Gaussians(means, factors, covariance_type), np.log(weights))
        trace.append(statistics.log_likelihood / len(X))
        means, covariances = m_step(statistics, covariance_type, reg_covar)
        factors = precision_factors(covariances, covariance_type)
        weights = statistics.counts / statistics.counts.sum()
    return weights, means, covariances, factors, trace


def start(seed, covariance_type, n=600, d=3, k=4):
    rng = np.random.default_rng(seed)
    centres = rng.normal(scale=2.0, size=(k, d))
    X = centres[rng.integers(k, size=n)] + rng.normal(size=(n, d))
    covariances, matrices = oracle.random_covariances(rng, k, d, covariance_type)
    precisions = np.linalg.inv(matrices)
    precisions = {
        "full": precisions,
        "tied": precisions[0],
        "diag": np.diagonal(precisions, axis1=1, axis2=2),
        "spherical": precisions[:, 0, 0],
    }[covariance_type]
    return X, rng.dirichlet(np.full(k, 5.0)), X[:k] + 0.1, precisions, covariances


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
@pytest.mark.parametrize("n_iter", [1, 20])
@pytest.mark.parametrize("seed", [0, 1])
def test_iterations_equal_scikit_learn(covariance_type, n_iter, seed):
    X, weights, means, precisions, _ = start(seed, covariance_type)
    theirs = GaussianMixture(
        len(means),
        covariance_type=covariance_type,
        tol=0.0,
        max_iter=n_iter,
        reg_covar=REG_COVAR,
        init_params="random_from_data",
        weights_init=weights,
        means_init=means,
        precisions_init=precisions,
        random_state=0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs.fit(X)
    factors = precision_factors_of_precisions(precisions, covariance_type)
    weights, means, covariances, factors, trace = run_em(X, weights, means, factors, covariance_type, n_iter)
    np.testing.assert_allclose(weights, theirs.weights_, rtol=1e-8)
    np.testing.assert_allclose(means, theirs.means_, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(covariances, theirs.covariances_, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(factors, theirs.precisions_cholesky_, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(trace[-1], theirs.lower_bound_, rtol=1e-10)
    result = posterior_pass(
        points_of(X),
        Gaussians(means, factors, covariance_type),
        np.log(weights),
        labels=True,
        probabilities=True,
        log_likelihood=True,
    )
    np.testing.assert_allclose(result.probabilities, theirs.predict_proba(X), atol=1e-8)
    np.testing.assert_allclose(result.log_likelihood, theirs.score_samples(X), rtol=1e-8)
    assert np.array_equal(result.labels, theirs.predict(X))


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_the_likelihood_never_falls(covariance_type):
    for seed in range(examples(20)):
        X, weights, means, _, covariances = start(seed, covariance_type, n=150)
        factors = precision_factors(covariances, covariance_type)
        trace = run_em(X, weights, means, factors, covariance_type, 15, reg_covar=0.0)[-1]
        assert np.all(np.diff(trace) > -1e-12), seed


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_float32_follows_float64(covariance_type):
    """Twenty iterations in float32 end within 1e-4 of a standard deviation (1e-7 a step, times the slow
    directions in which EM contracts by about 0.99 a step and lets errors add up).
    """
    X, weights, means, _, covariances = start(3, covariance_type, n=5000)
    X = X.astype(np.float32)
    factors = precision_factors(covariances, covariance_type)
    single = run_em(X, weights, means, factors, covariance_type, 20)
    double = run_em(X.astype(np.float64), weights, means, factors, covariance_type, 20)
    for left, right in zip(single[:3], double[:3], strict=True):
        np.testing.assert_allclose(left, right, atol=1e-4)
    np.testing.assert_allclose(single[-1], double[-1], rtol=1e-5)


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_an_offset_of_a_million_sigma_changes_nothing(covariance_type):
    X, weights, means, _, covariances = start(4, covariance_type)
    # On this grid the shift is exact, so that both runs see the same data.
    X = np.round(X * 2.0**20) / 2.0**20
    shift = 2.0**20 * np.array([1.0, -1.0, 0.5])
    factors = precision_factors(covariances, covariance_type)
    here = run_em(X, weights, means, factors, covariance_type, 10)
    there = run_em(X + shift, weights, means + shift, factors, covariance_type, 10)
    np.testing.assert_allclose(there[0], here[0], rtol=1e-8)
    np.testing.assert_allclose(there[1] - shift, here[1], atol=1e-8)
    np.testing.assert_allclose(there[2], here[2], rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(there[-1], here[-1], rtol=1e-10)


def test_an_offset_of_a_thousand_sigma_changes_nothing_in_float32():
    X, weights, means, _, covariances = start(5, "full", n=4000)
    X = np.round(X * 2.0**8) / 2.0**8
    shift = 2.0**10
    factors = precision_factors(covariances, "full")
    here = run_em(X.astype(np.float32), weights, means, factors, "full", 10)
    there = run_em((X + shift).astype(np.float32), weights, means + shift, factors, "full", 10)
    np.testing.assert_allclose(there[1] - shift, here[1], atol=1e-5)
    np.testing.assert_allclose(there[2], here[2], atol=1e-5)


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_tight_clusters_a_million_sigma_apart(covariance_type):
    rng = np.random.default_rng(6)
    d, k = 3, 3
    centres = 1e6 * np.array([[0.0, 0.0, 0.0], [1.0, -1.0, 0.3], [-0.5, 1.0, 1.0]])
    labels = np.arange(900) % k
    noise = rng.normal(size=(900, d)) @ np.array([[1.0, 0.5, 0.0], [0.0, 1.0, 0.3], [0.0, 0.0, 0.7]])
    X = centres[labels] + noise
    means = centres + rng.normal(size=(k, d))
    weights = np.full(k, 1.0 / k)
    covariances = oracle.random_covariances(rng, k, d, covariance_type)[0]
    ours = run_em(X, weights, means, precision_factors(covariances, covariance_type), covariance_type, 3)
    expected_trace = []
    for _ in range(3):
        weights, means, covariances, log_likelihood = oracle.em_step(
            X, weights, means, covariances, covariance_type, REG_COVAR
        )
        expected_trace.append(float(log_likelihood) / len(X))
    np.testing.assert_allclose(ours[0], weights.astype(float), rtol=1e-12)
    np.testing.assert_allclose(ours[1], means.astype(float), rtol=1e-14, atol=1e-9)
    np.testing.assert_allclose(ours[2], covariances.astype(float), rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(ours[-1], expected_trace, rtol=1e-9)

    # The textbook formula about one common origin fails here, so this test can tell them apart.
    centred = X - X.mean(axis=0)
    own = centred[labels == 1]
    naive = own.T @ own / len(own) - np.outer(own.mean(axis=0), own.mean(axis=0))
    exact = np.cov(own.T, bias=True)
    assert np.abs(naive - exact).max() > 1e-6
