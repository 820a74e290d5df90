"""The M-step against two passes in extended precision; statistics that add."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkwise.mixture.gaussian.data import points_of
from linkwise.mixture.gaussian.gaussians import COVARIANCE_TYPES, Statistics, m_step
from linkwise.mixture.gaussian.passes import statistics_pass
from tests.mixture import gaussian_oracle as oracle


@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(2, 60),
    d=st.integers(1, 6),
    k=st.integers(1, 5),
    covariance_type=st.sampled_from(COVARIANCE_TYPES),
    reg_covar=st.sampled_from([0.0, 1e-6, 0.5]),
)
def test_m_step_equals_two_passes(seed, n, d, k, covariance_type, reg_covar):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + 5.0
    q = rng.dirichlet(np.ones(k), size=n)
    about = X[rng.integers(n, size=k)]
    means, covariances = m_step(
        statistics_pass(points_of(X), about, q, covariance_type), covariance_type, reg_covar
    )
    _, expected_means, expected = oracle.maximise(X, q.astype(oracle.EXTENDED), covariance_type, reg_covar)
    np.testing.assert_allclose(means, expected_means.astype(float), rtol=1e-10)
    assert covariances.shape == expected.shape
    np.testing.assert_allclose(covariances, expected.astype(float), rtol=1e-10, atol=1e-10)


def test_statistics_of_parts_add():
    rng = np.random.default_rng(0)
    X, q, about = rng.normal(size=(50, 3)), rng.random((50, 2)), rng.normal(size=(2, 3))
    offset = X.mean(axis=0)
    whole = statistics_pass(points_of(X), about, q, "full")
    parts = [
        statistics_pass(points_of(X[part], offset), about, q[part], "full")
        for part in (slice(20), slice(20, None))
    ]
    together = parts[0] + parts[1]
    for name in ("counts", "first", "second"):
        np.testing.assert_allclose(getattr(together, name), getattr(whole, name), rtol=1e-12, atol=1e-12)
    elsewhere = statistics_pass(points_of(X), about + 1.0, q, "full")
    with pytest.raises(ValueError, match="different centres do not add"):
        whole + elsewhere


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_a_component_without_points_stays(covariance_type):
    second = np.stack([4.0 * np.eye(2), np.zeros((2, 2))])
    if covariance_type in ("diag", "spherical"):
        second = second.diagonal(axis1=1, axis2=2)
    statistics = Statistics(
        np.array([4.0, 0.0]), np.zeros((2, 2)), second, 0.0, np.array([[1.0, 2.0], [3.0, 4.0]])
    )
    means, covariances = m_step(statistics, covariance_type, 0.25)
    assert means.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    expected = {
        "full": [1.25 * np.eye(2), 0.25 * np.eye(2)],
        "tied": 1.25 * np.eye(2),
        "diag": [[1.25, 1.25], [0.25, 0.25]],
        "spherical": [1.25, 0.25],
    }[covariance_type]
    np.testing.assert_allclose(covariances, expected)
