"""Precision factors against plain linear algebra."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.mixture import GaussianMixture

from linkwise.mixture.gaussian.gaussians import (
    COVARIANCE_TYPES,
    Gaussians,
    log_determinants,
    log_normalisers,
    n_free_parameters,
    precision_factors,
    precision_factors_of_precisions,
)
from tests.mixture import gaussian_oracle as oracle


@given(
    seed=st.integers(0, 2**32 - 1),
    d=st.integers(1, 8),
    k=st.integers(1, 5),
    covariance_type=st.sampled_from(COVARIANCE_TYPES),
)
def test_factors_and_determinants(seed, d, k, covariance_type):
    rng = np.random.default_rng(seed)
    covariances, matrices = oracle.random_covariances(rng, k, d, covariance_type)
    factors = precision_factors(covariances, covariance_type)
    assert factors.shape == covariances.shape
    as_triangles = oracle.as_matrices(factors, covariance_type, k, d)
    precisions = np.linalg.inv(matrices)
    np.testing.assert_allclose(
        as_triangles @ as_triangles.transpose(0, 2, 1), precisions, rtol=1e-9, atol=1e-10
    )
    assert not np.tril(as_triangles, -1).any()
    gaussians = Gaussians(np.zeros((k, d)), factors, covariance_type)
    half_log_det = -0.5 * np.linalg.slogdet(matrices)[1]
    np.testing.assert_allclose(log_determinants(gaussians), half_log_det, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(
        log_normalisers(gaussians), half_log_det - 0.5 * d * np.log(2 * np.pi), rtol=1e-10, atol=1e-10
    )
    if covariance_type == "tied":
        given_precisions = precisions[0]
    else:
        given_precisions = {"full": precisions, "diag": 1.0 / covariances, "spherical": 1.0 / covariances}[
            covariance_type
        ]
    np.testing.assert_allclose(
        precision_factors_of_precisions(given_precisions, covariance_type), factors, rtol=1e-8, atol=1e-9
    )


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_parameter_count_is_the_one_in_scikit_learns_bic(covariance_type):
    X = np.random.default_rng(0).normal(size=(60, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = GaussianMixture(2, covariance_type=covariance_type, max_iter=2, random_state=0).fit(X)
    count = (theirs.bic(X) + 2 * theirs.score(X) * len(X)) / np.log(len(X))
    assert n_free_parameters(2, 3, covariance_type) == pytest.approx(count)


def test_a_degenerate_covariance_is_named():
    good = np.eye(2)
    for bad in (np.ones((2, 2)), np.zeros((2, 2)), np.full((2, 2), np.nan), np.diag([1.0, -1.0])):
        with pytest.raises(
            ValueError, match=r"covariance of component 1 is not positive definite.*reg_covar"
        ):
            precision_factors(np.stack([good, bad]), "full")
        with pytest.raises(ValueError, match=r"the tied covariance is not positive definite.*reg_covar"):
            precision_factors(bad, "tied")
    with pytest.raises(ValueError, match=r"component 1 is not positive definite \(a variance is 0\)"):
        precision_factors(np.array([[1.0, 1.0], [0.0, 1.0]]), "diag")
    with pytest.raises(ValueError, match=r"component 0 is not positive definite \(a variance is nan\)"):
        precision_factors(np.array([np.nan, 1.0]), "spherical")
    with pytest.raises(ValueError, match="precision of component 1 is not positive definite"):
        precision_factors_of_precisions(np.stack([good, np.ones((2, 2)) - 2 * good]), "full")
    with pytest.raises(ValueError, match="precision of component 1 is -1: it must be positive"):
        precision_factors_of_precisions(np.array([1.0, -1.0]), "spherical")
