"""Every wrong formula of Lu & Carreira-Perpinan 2008: the printed form fails, the corrected one holds.

E11 is a caption ("4 images A-B" for A-D) and no formula.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from linkwise.spectral.algorithm_b import cannot_link_vectors, weakest_affinity
from linkwise.spectral.normalised_cut import CutSettings, constrained_affinity
from linkwise.spectral.propagation import (
    link_columns,
    propagate,
    propagated_kernel,
    signed_links,
)
from tests.spectral.spectral_oracle import equivalent_kernel, gaussian, incidence, precision_of_links


@pytest.fixture
def K():
    return gaussian(np.random.default_rng(0).normal(size=(30, 2)), 0.8) + 1e-6 * np.eye(30)


def propagated(K, pairs, weights, softness):
    links = signed_links(pairs, weights, softness, 1.0)
    return propagated_kernel(K, propagate(link_columns(K, links), links))


def test_e1_the_density_has_exponent_one_half(K):
    f = np.linalg.cholesky(K) @ np.random.default_rng(1).normal(size=30)
    quadratic = -0.5 * f @ np.linalg.solve(K, f)
    log_determinant = np.linalg.slogdet(2 * np.pi * K)[1]
    truth = multivariate_normal(np.zeros(30), K).logpdf(f)
    assert -0.5 * log_determinant + quadratic == pytest.approx(truth, rel=1e-6)
    assert abs(-0.5 * 30 * log_determinant + quadratic - truth) > 100


class TestE2TheFactorOfEquation5:
    e = 0.3

    def test_monte_carlo_agrees_with_equation_3(self):
        K = np.array([[1.0, 0.4], [0.4, 1.0]])
        f = np.random.default_rng(2).multivariate_normal([0, 0], K, size=400_000)
        difference = f[:, 0] - f[:, 1]
        weight = np.exp(-0.5 * difference**2 / self.e**2)
        sampled = (weight * difference**2).sum() / weight.sum()
        direction = np.array([1.0, -1.0])

        def variance(M):
            return direction @ np.linalg.inv(np.linalg.inv(K) + M) @ direction

        shape = np.array([[1.0, -1.0], [-1.0, 1.0]])
        assert variance(shape / self.e**2) == pytest.approx(sampled, rel=0.01)
        assert variance(shape / (2 * self.e**2)) > 1.5 * sampled
        links = signed_links([(0, 1)], [1.0], self.e, 1.0)
        ours = propagated_kernel(K, propagate(link_columns(K, links), links))
        assert direction @ ours @ direction == pytest.approx(sampled, rel=0.01)

    @pytest.mark.parametrize(("kind", "sign"), [("must", -1.0), ("cannot", 1.0)])
    def test_equations_6_and_7_hold_after_doubling(self, kind, sign):
        K = gaussian([0.0, 0.7, 1.5, -1.0], 1.0)
        rest = 1.0 + sign * K[0, 1]
        hard = equivalent_kernel(K, 0, 1, kind)
        ours = equivalent_kernel(K, 0, 1, kind, softness=self.e)
        printed = (self.e**2 * K + rest * hard) / (self.e**2 + rest)
        corrected = (self.e**2 * K + 2 * rest * hard) / (self.e**2 + 2 * rest)
        np.testing.assert_allclose(ours, corrected, atol=1e-14)
        assert np.abs(ours - printed).max() > 0.01


@pytest.mark.parametrize(("kind", "sign"), [("must", -1.0), ("cannot", 1.0)])
def test_e3_equation_8_lacks_the_kernel(K, kind, sign):
    column = K[2:, 0] + sign * K[2:, 1]
    update = np.outer(column, column) / (K[0, 0] + K[1, 1] + 2 * sign * K[0, 1])
    block = equivalent_kernel(K, 0, 1, kind)[2:, 2:]
    np.testing.assert_allclose(block, K[2:, 2:] - update, atol=1e-13)
    assert np.abs(block - update).max() > 0.5


def test_e4_it_is_the_must_link_that_fades_between_near_points():
    K = gaussian([0.0, 1e-3, 0.5, -0.7, 1.2], 1.0)
    must = equivalent_kernel(K, 0, 1, "must", softness=0.1)
    cannot = equivalent_kernel(K, 0, 1, "cannot", softness=0.1)
    assert np.abs(must - K).max() < 1e-3
    assert np.abs(cannot - K).max() > 0.9


def test_e5_a_hard_must_link_between_near_points_does_act():
    x = np.concatenate([[0.0, 1e-3], np.linspace(-3.0, 3.0, 61)])
    K = gaussian(x, 1.0)
    hard = equivalent_kernel(K, 0, 1, "must", softness=1e-5)
    # Table 1 says K' = K here. The limit conditions the derivative of f at the site to 0.
    limit = K - np.outer(x * K[:, 0], x * K[:, 0])
    np.testing.assert_allclose(hard, limit, atol=2e-3)
    assert np.abs(hard - K).max() == pytest.approx(np.exp(-1.0), abs=2e-3)
    same = np.concatenate([[0.0, 0.0], x[2:]])
    duplicates = gaussian(same, 1.0)
    np.testing.assert_allclose(
        equivalent_kernel(duplicates, 0, 1, "must", softness=1e-5), duplicates, atol=1e-9
    )


def test_e6_the_block_inverse_has_no_outer_inverse():
    rng = np.random.default_rng(3)
    A, B = rng.normal(size=(3, 3)), rng.normal(size=(3, 2))
    whole = np.block([[A, B], [np.zeros((2, 3)), np.eye(2)]])
    right = np.block([[np.linalg.inv(A), -np.linalg.inv(A) @ B], [np.zeros((2, 3)), np.eye(2)]])
    np.testing.assert_allclose(np.linalg.inv(whole), right, atol=1e-12)
    assert np.abs(np.linalg.inv(whole) - np.linalg.inv(right)).max() > 0.1


def test_e7_soft_links_between_duplicates_need_no_condition():
    K = gaussian([0.0, 0.0, 1.0], 1.0)  # K_ii = K_ij, which the paper excludes
    M = precision_of_links(3, [(0, 1)], [1.0], [0.01])
    assert np.linalg.det(np.eye(3) + M @ K) == pytest.approx(1.0)
    np.testing.assert_allclose(propagated(K, [(0, 1)], [1.0], 0.1), K, atol=1e-14)


def test_e8_an_l_by_l_system_is_enough_and_the_diagonal_counts_its_own_links(K):
    pairs, signs = np.array([(0, 1), (0, 2), (0, 3), (4, 5)]), np.array([-1.0, -1.0, 1.0, 1.0])
    variances = np.full(4, 0.01)
    M = precision_of_links(30, pairs, signs, variances)
    V = incidence(30, pairs, signs)
    np.testing.assert_allclose(M, V @ np.diag(1 / variances) @ V.T)
    assert M[0, 0] == pytest.approx(300.0)  # m_0 = 1, c_0 = 2; the printed "c_j" would not say of whom
    links = signed_links(pairs, signs, 0.1, 1.0)
    found = propagate(link_columns(K, links), links)
    assert found.factor.shape == (4, 4)
    np.testing.assert_allclose(propagated_kernel(K, found), np.linalg.inv(np.linalg.inv(K) + M), atol=1e-8)


def test_e9_one_cannot_link_only_lowers_affinities_but_two_can_raise_them():
    x = np.linspace(0.0, 4.0, 40)
    K = gaussian(x, 0.4)
    one = propagated(K, [(5, 15)], [-np.inf], 0.1)
    assert (one - K).max() <= 1e-15
    two = propagated(K, [(5, 15), (16, 35)], [-np.inf, -np.inf], 0.1)
    assert (two - K)[5, 35] > 0.01


def test_e10_no_cannot_links_means_the_must_link_kernel():
    K = gaussian(np.linspace(0.0, 9.0, 24), 0.8)
    pairs, weights = np.array([(5, 20)]), np.array([np.inf])
    affinity, *_ = constrained_affinity(K, pairs, weights, CutSettings(3, "B", "clip", 0.1, 0.0, 1e-4))
    expected = propagated(K, pairs, weights, 0.1)
    assert expected.min() < 0
    np.testing.assert_allclose(affinity, np.maximum(expected, 0.0), atol=1e-14)
    # And the cannot-links are numbered by the index of the matrix they make, k.
    must = propagate(
        link_columns(K, signed_links(pairs, weights, 0.1, 1.0)), signed_links(pairs, weights, 0.1, 1.0)
    )
    vectors, _ = cannot_link_vectors(K, must, signed_links(np.empty((0, 2)), [], 0.1, 1.0))
    np.testing.assert_array_equal(weakest_affinity(expected.copy(), vectors), np.maximum(expected, 0.0))
