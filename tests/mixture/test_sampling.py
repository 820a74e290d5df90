"""Rows drawn from a fitted mixture: their law, their repeatability and the memory they need."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy.stats import kstest

from linkwise import CPPC, PPC, ConstrainedEM
from linkwise.mixture.gaussian.gaussians import COVARIANCE_TYPES
from tests.mixture.gaussian_oracle import as_matrices

RNG = np.random.default_rng(0)
Y = np.repeat([0, 1, 2], [300, 200, 100])
X = RNG.normal(size=(600, 3)) @ RNG.normal(size=(3, 3)) + 9.0 * np.eye(3)[Y]


def fitted(covariance_type, model_class=PPC, **options):
    model = model_class(3, covariance_type=covariance_type, random_state=0, **options)
    return model.fit(X, Y) if model_class is CPPC else model.fit(X)


def slow_sample(model, n_samples):
    """The same draws, row by row with the root of the row's covariance."""
    rng = np.random.RandomState(0)
    counts = rng.multinomial(n_samples, model.weights_ / model.weights_.sum())
    noise = rng.standard_normal((n_samples, model.means_.shape[1]))
    covariances = as_matrices(model.covariances_, model.covariance_type, len(model.means_), 3)
    component = np.repeat(np.arange(len(counts)), counts)
    rows = [
        model.means_[k] + np.linalg.cholesky(covariances[k]) @ unit
        for k, unit in zip(component, noise, strict=True)
    ]
    return np.array(rows), component


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
@pytest.mark.parametrize("model_class", [PPC, ConstrainedEM, CPPC])
def test_the_draws_of_the_slow_way(covariance_type, model_class):
    model = fitted(covariance_type, model_class)
    for n_samples in (1, 7, 900):
        rows, labels = model.sample(n_samples)
        expected, component = slow_sample(model, n_samples)
        np.testing.assert_allclose(rows, expected, atol=1e-10)
        np.testing.assert_array_equal(labels, component)
        np.testing.assert_array_equal(model.sample(n_samples)[0], rows)


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_their_law(covariance_type):
    """More rows than a block holds: whitened by the fit, they are standard normal in every direction."""
    model = fitted(covariance_type)
    n_samples = 30_000
    rows, labels = model.sample(n_samples)
    covariances = as_matrices(model.covariances_, covariance_type, 3, 3)
    np.testing.assert_allclose(np.bincount(labels) / n_samples, model.weights_, atol=0.02)
    for k in range(3):
        own = rows[labels == k]
        scale = np.sqrt(np.diag(covariances[k]) / len(own))
        assert (np.abs(own.mean(axis=0) - model.means_[k]) < 4.5 * scale).all()
        white = np.linalg.solve(np.linalg.cholesky(covariances[k]), (own - model.means_[k]).T)
        np.testing.assert_allclose(np.cov(white), np.eye(3), atol=6.0 / np.sqrt(len(own)))
        for direction in (*white, white.sum(axis=0) / np.sqrt(3.0)):
            assert kstest(direction, "norm").pvalue > 1e-4


def test_several_components_per_cluster():
    model = PPC(2, components_per_cluster=2, random_state=0, reg_covar=1e-3).fit(X)
    _, labels = model.sample(2_000)
    share = model.weights_.reshape(2, 2).sum(axis=1)
    np.testing.assert_allclose(np.bincount(labels) / 2_000, share, atol=0.05)


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_memory_is_that_of_the_rows(covariance_type):
    """A covariance for every row would be 40 times as much."""
    n_samples, n_features = 20_000, 40
    rng = np.random.default_rng(0)
    data = rng.normal(size=(300, n_features)) + 9.0 * (np.arange(300) % 2)[:, np.newaxis]
    model = PPC(2, covariance_type=covariance_type, random_state=0, reg_covar=0.1).fit(data)
    tracemalloc.start()
    model.sample(n_samples)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2 * n_samples * n_features * 8


def test_number_of_rows():
    model = fitted("diag")
    assert model.sample(1e3)[0].shape == (1000, 3)
    for bad in (0, -1, 2.5, "ten", True, np.nan):
        with pytest.raises(ValueError, match="n_samples must be a whole number >= 1"):
            model.sample(bad)
