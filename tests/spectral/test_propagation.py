from __future__ import annotations

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from linkwise.spectral.propagation import (
    SignedLinks,
    kernel_profile,
    link_columns,
    propagate,
    propagated_kernel,
    signed_incidence,
    signed_links,
)
from tests.repeats import for_seeds
from tests.spectral.spectral_oracle import (
    by_inverses,
    by_svd,
    equivalent_kernel,
    gaussian,
    incidence,
    precision_of_links,
    random_links,
)


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """The matrices are small: threads would only wait for each other."""
    with threadpool_limits(1):
        yield


def propagated(K, links, **options):
    return propagated_kernel(K, propagate(link_columns(K, links), links), **options)


def random_kernel(rng, n_points):
    factor = rng.normal(size=(n_points, n_points + 2))
    return factor @ factor.T / n_points


@for_seeds(80)
def test_random_links_and_weights_against_the_direct_inverse(seed):
    rng = np.random.default_rng(seed)
    n_points = int(rng.integers(2, 12))
    K = random_kernel(rng, n_points) + 0.1 * np.eye(n_points)
    pairs, signs = random_links(rng, n_points, int(rng.integers(0, 9)))
    weights = signs * rng.exponential(size=len(signs))
    links = signed_links(pairs, weights, softness=0.3, scale=2.0)
    variances = 0.3**2 / np.abs(weights) * 2.0
    np.testing.assert_allclose(links.variances, variances)
    expected = by_inverses(K, pairs, signs, variances)
    np.testing.assert_allclose(propagated(K, links), expected, atol=1e-9)
    np.testing.assert_allclose(propagated(K, links, clip=True), np.maximum(expected, 0.0), atol=1e-9)
    np.testing.assert_array_equal(propagated(K, links), propagated(K, links).T)
    np.testing.assert_array_equal(
        signed_incidence(n_points, links).toarray(), incidence(n_points, pairs, signs)
    )


@pytest.mark.parametrize(("sigma", "condition"), [(0.2, 1e4), (0.5, 1e10), (1.0, 1e18), (3.0, 1e18)])
@pytest.mark.parametrize(("softness", "tolerance"), [(1e-1, 1e-13), (1e-3, 1e-10), (1e-5, 1e-9)])
def test_woodbury_against_svd_at_any_condition(sigma, condition, softness, tolerance):
    rng = np.random.default_rng(0)
    K = gaussian(rng.normal(size=(150, 2)), sigma)
    assert np.linalg.cond(K) > condition
    pairs, signs = random_links(rng, 150, 40)
    links = signed_links(pairs, signs, softness, 1.0)
    reference = by_svd(K, pairs, signs, links.variances)
    assert np.abs(propagated(K, links) - reference).max() < tolerance
    # The forms that the paper prints lose it: Eq. 2 for hard links, the inverse of K for wide kernels.
    if softness == 1e-5:
        M = precision_of_links(150, pairs, signs, links.variances)
        printed = K - K @ np.linalg.inv(np.eye(150) + M @ K) @ M @ K
        assert np.abs(printed - reference).max() > 1e-5
    if sigma == 1.0:
        assert np.abs(by_inverses(K, pairs, signs, links.variances) - reference).max() > 1e-6


class TestHardLimit:
    def projection(self, K, pairs, signs):
        V = incidence(len(K), pairs, signs)
        return K - K @ V @ np.linalg.pinv(V.T @ K @ V, rcond=1e-9) @ V.T @ K

    @for_seeds(50)
    def test_is_the_projection_whatever_links_are_redundant(self, seed):
        rng = np.random.default_rng(seed)
        K = random_kernel(rng, 10) + np.eye(10)
        sides = rng.choice([-1.0, 1.0], 10)
        pairs, _ = random_links(rng, 10, 14)
        signs = sides[pairs[:, 0]] * sides[pairs[:, 1]]
        expected = self.projection(K, pairs, signs)
        hard = signed_links(pairs, signs * np.inf, softness=0.0, scale=K.trace() / 10)
        np.testing.assert_allclose(propagated(K, hard), expected, atol=1e-7)
        # Repetition, order and weights cancel in the limit.
        again = np.concatenate([pairs, pairs])[rng.permutation(28)]
        signs_again = sides[again[:, 0]] * sides[again[:, 1]]
        weights = signs_again * rng.uniform(0.2, 5.0, 28)
        np.testing.assert_allclose(
            propagated(K, signed_links(again, weights, 0.0, K.trace() / 10)), expected, atol=1e-7
        )

    def test_ends_are_equal_or_opposite(self):
        K = gaussian(np.arange(6.0), 1.0)
        links = signed_links([(0, 5), (1, 4)], [np.inf, -np.inf], softness=0.0, scale=1.0)
        found = propagated(K, links)
        np.testing.assert_allclose(found[0], found[5], atol=1e-9)
        np.testing.assert_allclose(found[1], -found[4], atol=1e-9)

    def test_singular_system_falls_back_to_the_pseudo_inverse(self):
        # A ring of must-links without any variance: the Cholesky factor does not exist.
        K = gaussian(np.arange(6.0), 1.0)
        pairs, signs = np.array([(0, 2), (2, 4), (0, 4), (0, 2)]), np.ones(4)
        links = SignedLinks(pairs, signs, np.full(4, -1e-14))
        found = propagate(link_columns(K, links), links)
        assert not found.triangular
        np.testing.assert_allclose(propagated_kernel(K, found), self.projection(K, pairs, signs), atol=1e-9)
        columns = link_columns(K, links)
        np.testing.assert_allclose(found.whiten(columns), found.whitened, atol=1e-12)


def test_singular_kernels_are_welcome():
    # Duplicates: K is singular, and a must-link between them changes nothing.
    K = gaussian([0.0, 0.0, 1.0, 2.0], 1.0)
    links = signed_links([(0, 1)], [np.inf], softness=0.1, scale=1.0)
    np.testing.assert_allclose(propagated(K, links), K, atol=1e-15)
    links = signed_links([(0, 1), (1, 2)], [np.inf, -np.inf], softness=0.1, scale=1.0)
    np.testing.assert_allclose(
        propagated(K, links), by_svd(K, links.pairs, links.signs, links.variances), atol=1e-12
    )


def test_softness_is_relative_to_the_kernel():
    rng = np.random.default_rng(1)
    K = random_kernel(rng, 8)
    pairs, signs = random_links(rng, 8, 5)
    plain = propagated(K, signed_links(pairs, signs, 0.1, K.trace() / 8))
    scaled = propagated(100.0 * K, signed_links(pairs, signs, 0.1, 100.0 * K.trace() / 8))
    np.testing.assert_allclose(scaled, 100.0 * plain, rtol=1e-10)


def test_further_points():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(40, 2))
    K = gaussian(x, 1.0)
    pairs, signs = random_links(rng, 25, 12)
    links = signed_links(pairs, signs, 0.1, 1.0)
    everything = propagated(K, links)
    part = propagate(link_columns(K[:25, :25], links), links)
    # The 15 points that were left out, from their kernel values alone.
    outside = part.whiten(link_columns(K[:25, 25:], links))
    np.testing.assert_allclose(K[25:, :25] - outside.T @ part.whitened, everything[25:, :25], atol=1e-12)
    np.testing.assert_allclose(K[25:, 25:] - outside.T @ outside, everything[25:, 25:], atol=1e-12)


def test_permuting_points_permutes_the_result():
    rng = np.random.default_rng(3)
    K = gaussian(rng.normal(size=(30, 2)), 1.0)
    pairs, signs = random_links(rng, 30, 10)
    order = rng.permutation(30)
    place = np.argsort(order)
    plain = propagated(K, signed_links(pairs, signs, 0.1, 1.0))
    permuted = propagated(K[np.ix_(order, order)], signed_links(place[pairs], signs, 0.1, 1.0))
    np.testing.assert_allclose(permuted, plain[np.ix_(order, order)], atol=1e-13)


class TestEquivalentKernel:
    @pytest.mark.parametrize("kind", ["must", "cannot"])
    @pytest.mark.parametrize("softness", [0.0, 0.3])
    def test_is_the_propagated_kernel_of_one_link(self, kind, softness):
        K = gaussian(np.linspace(0.0, 3.0, 12), 0.7)
        sign = 1.0 if kind == "must" else -1.0
        links = SignedLinks(np.array([[2, 9]]), np.array([sign]), np.array([max(softness**2, 1e-14)]))
        expected = propagated(K, links)
        np.testing.assert_allclose(equivalent_kernel(K, 2, 9, kind, softness=softness), expected, atol=1e-9)

    def test_profile_is_a_row_of_it(self):
        x = np.array([-1.0, 4.0, 0.3, 0.0, 1.0, 5.0])
        seen = kernel_profile(x[3:], x[2], x[:2], "cannot", sigma=0.8, softness=0.2)
        full = equivalent_kernel(gaussian(x, 0.8), 0, 1, "cannot", softness=0.2)
        np.testing.assert_allclose(seen.equivalent, full[2, 3:], atol=1e-12)
        np.testing.assert_allclose(seen.original, gaussian(x, 0.8)[2, 3:], atol=1e-12)

    def test_three_shapes_of_figure_1(self):
        # Sites far apart, the point near the first: k'_a around it, +-k'_s around the second site.
        x = np.linspace(-3.0, 3.0, 61)
        near = kernel_profile(x, 1.0, [0.0, 40.0], "must")
        np.testing.assert_allclose(
            near.equivalent, near.original - 0.5 * np.exp(-0.5) * np.exp(-0.5 * x**2), atol=1e-12
        )
        assert near.equivalent.min() < -0.02  # the negative lobe
        for kind, sign in (("must", 1.0), ("cannot", -1.0)):
            far = kernel_profile(40.0 + x, 1.0, [0.0, 40.0], kind)
            np.testing.assert_allclose(
                far.equivalent, sign * 0.5 * np.exp(-0.5) * np.exp(-0.5 * x**2), atol=1e-12
            )

    def test_other_kinds_are_refused(self):
        with pytest.raises(ValueError, match="must be"):
            kernel_profile([0.0, 1.0], 0.0, [0.0, 1.0], "maybe")

    def test_hard_must_link_between_duplicates_changes_nothing(self):
        seen = kernel_profile([0.0, 1.0, 2.0], 0.0, [1.0, 1.0], "must")
        np.testing.assert_array_equal(seen.equivalent, seen.original)
