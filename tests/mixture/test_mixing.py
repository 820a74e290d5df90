"""The M-step of the mixing weights against enumeration of every labelling."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize
from scipy.special import logsumexp, softmax

from linkwise import Constraints
from linkwise.mixture.label_prior import LabelPrior
from linkwise.mixture.linked_rows import select_linked_rows
from linkwise.mixture.mixing import grid_mixing, log_omega_disjoint, newton_mixing
from tests.mixture import oracle


def linked_of(links, n_components):
    return select_linked_rows(links, np.arange(n_components))


def prior_of(linked):
    return LabelPrior(linked, "exact", 0)


def feasible_links(rng, n, n_components, **options):
    while True:
        links = oracle.random_links(rng, n, **options)
        try:
            links.check(n_components)
        except ValueError:
            continue
        return links


@pytest.mark.parametrize("seed", range(60))
def test_omega_and_its_gradient(seed):
    rng = np.random.default_rng(seed)
    n_components = int(rng.integers(2, 4))
    links = feasible_links(rng, int(rng.integers(2, 6)), n_components)
    weights = rng.dirichlet(np.full(n_components, 2.0))
    linked = linked_of(links, n_components)
    prior = prior_of(linked)
    log_omega, counts = prior(np.log(weights))
    assert prior.exact
    # Rows without links add log sum pi = 0 and N pi to the whole.
    assert log_omega == pytest.approx(oracle.log_omega(weights, links), abs=1e-10)
    n_free = len(links) - len(linked.rows)
    np.testing.assert_allclose(counts + n_free * weights, oracle.prior_counts(weights, links), atol=1e-10)
    gradient = approx_fprime(np.log(weights), lambda eta: prior(eta)[0], 1e-7)
    np.testing.assert_allclose(gradient, counts, atol=1e-5)
    assert log_omega <= 1e-12
    assert (log_omega == pytest.approx(0.0, abs=1e-12)) == (links.n_pairs == 0)


@pytest.mark.parametrize("seed", range(60))
def test_newton_matches_moments_and_beats_every_other_weight(seed):
    rng = np.random.default_rng(seed)
    n_components = int(rng.integers(2, 5))
    links = feasible_links(rng, 6, n_components, hard=0.1)
    linked = linked_of(links, n_components)
    n_free = 10.0
    # Counts that some posterior could have: the mean of the statistics under a random other prior.
    other = rng.dirichlet(np.full(n_components, 3.0))
    prior = prior_of(linked)
    counts = prior(np.log(other))[1] + n_free * rng.dirichlet(np.full(n_components, 3.0))

    start = np.log(rng.dirichlet(np.full(n_components, 3.0)))
    step = newton_mixing(counts, n_free, start, prior)
    assert step.converged
    weights = np.exp(step.log_weights)
    assert weights.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(prior(step.log_weights)[1] + n_free * weights, counts, atol=1e-6)

    def objective(eta):
        return counts @ eta - n_free * logsumexp(eta) - prior(eta)[0]

    best = minimize(lambda eta: -objective(np.append(eta, 0.0)), np.zeros(n_components - 1), tol=1e-12)
    np.testing.assert_allclose(weights, softmax(np.append(best.x, 0.0)), atol=1e-4)
    assert step.n_passes < 40


def test_objective_is_concave():
    rng = np.random.default_rng(0)
    for _ in range(100):
        links = feasible_links(rng, 5, 3)
        linked = linked_of(links, 3)
        a, b = rng.normal(scale=2.0, size=(2, 3))
        middle = prior_of(linked)((a + b) / 2)[0]
        ends = [prior_of(linked)(eta)[0] for eta in (a, b)]
        assert middle <= np.mean(ends) + 1e-10


def test_unattainable_counts_stop_at_the_smallest_weight():
    """Two points linked apart cannot both be in one component: f has no interior maximum."""
    linked = linked_of(Constraints(2, cannot_link=[(0, 1)]), 2)
    step = newton_mixing(np.array([2.0, 0.0]), 0.0, np.log([0.5, 0.5]), prior_of(linked))
    assert np.isfinite(step.log_weights).all()
    free = newton_mixing(np.array([5.0, 0.0]), 5.0, np.log([0.5, 0.5]), lambda eta: (0.0, np.zeros(2)))
    assert np.exp(free.log_weights[1]) == pytest.approx(1e-8, rel=1e-6)


def test_unidentified_weights_stay():
    """K = 2 and every point in a hard cannot-link pair: f is constant in pi."""
    linked = linked_of(Constraints(4, cannot_link=[(0, 1), (2, 3)]), 2)
    start = np.log([0.3, 0.7])
    step = newton_mixing(np.array([2.0, 2.0]), 0.0, start, prior_of(linked))
    np.testing.assert_allclose(step.log_weights, start, atol=1e-6)


class TestClosedForms:
    """Lu & Leen 2007, section 3.1, corrected (erratum E1), and what 'disjoint' costs when it is wrong."""

    pi = np.array([0.5, 0.3, 0.2])
    s = 0.38

    @pytest.mark.parametrize(
        ("must", "cannot", "expected"),
        [
            ([(0, 1)], [], 0.38),
            ([], [(0, 1)], 0.62),
            ([(0, 1), (2, 3)], [(4, 5)], 0.38**2 * 0.62),
        ],
    )
    def test_disjoint_hard_pairs(self, must, cannot, expected):
        links = Constraints(6, must, cannot)
        linked = linked_of(links, 3)
        for log_omega in (
            log_omega_disjoint(linked, np.log(self.pi))[0],
            prior_of(linked)(np.log(self.pi))[0],
            oracle.log_omega(self.pi, links),
        ):
            assert np.exp(log_omega) == pytest.approx(expected)

    def test_the_printed_form_has_its_exponents_swapped(self):
        links = Constraints(6, [(0, 1), (2, 3)], [(4, 5)])
        truth = np.exp(oracle.log_omega(self.pi, links))
        printed = (1 - self.s) ** 2 * self.s
        assert truth == pytest.approx(0.0895, abs=1e-4)
        assert printed == pytest.approx(0.1461, abs=1e-4)

    @pytest.mark.parametrize(("links", "disjoint", "exact"), [
        (Constraints(3, cannot_link=[(0, 1), (1, 2)]), 0.384, 0.400),
        (Constraints(3, cannot_link=[(0, 1), (1, 2), (0, 2)]), 0.238, 0.180),
        (Constraints(7, cannot_link=[(0, j) for j in range(1, 7)]), 0.0568, 0.0955),
    ])  # fmt: skip
    def test_disjointness_is_an_assumption(self, links, disjoint, exact):
        linked = linked_of(links, 3)
        assert np.exp(log_omega_disjoint(linked, np.log(self.pi))[0]) == pytest.approx(disjoint, abs=5e-4)
        assert np.exp(prior_of(linked)(np.log(self.pi))[0]) == pytest.approx(exact, abs=5e-4)

    def test_gradient_of_the_disjoint_form(self):
        links = Constraints(5, [(0, 1), (1, 2)], [(3, 4), (0, 4)], weight=[0.5, np.inf, 1.0, np.inf])
        linked = linked_of(links, 3)
        eta = np.log(self.pi)
        gradient = approx_fprime(eta, lambda e: log_omega_disjoint(linked, e)[0], 1e-7)
        np.testing.assert_allclose(log_omega_disjoint(linked, eta)[1], gradient, atol=1e-5)

    def test_chunklets_joined_by_a_cannot_link(self):
        """Omega = p_a p_b - p_{a+b} with p_m = sum_k pi_k^m (assumption 2)."""
        links = Constraints(5, [(0, 1), (1, 2), (3, 4)], [(0, 3)])
        p = {m: (self.pi**m).sum() for m in (2, 3, 5)}
        linked = linked_of(links, 3)
        assert np.exp(prior_of(linked)(np.log(self.pi))[0]) == pytest.approx(p[3] * p[2] - p[5])

    def test_chunklets_drawn_as_a_whole_have_omega_one(self):
        links = Constraints(5, [(0, 1), (1, 2), (3, 4)])
        linked = select_linked_rows(links, np.arange(3), chunklets_once=True)
        log_omega, counts = prior_of(linked)(np.log(self.pi))
        assert log_omega == pytest.approx(0.0, abs=1e-12)
        np.testing.assert_allclose(counts, 2 * self.pi)


def test_grid_finds_the_best_node():
    links = Constraints(6, [(0, 1), (2, 3)], [(4, 5)], weight=1.0)
    prior = prior_of(linked_of(links, 2))
    counts = np.array([7.0, 3.0])
    step = grid_mixing(counts, prior)
    grid = np.arange(1, 100) / 100
    values = [counts @ np.log([p, 1 - p]) - oracle.log_omega(np.array([p, 1 - p]), links) for p in grid]
    assert np.exp(step.log_weights[0]) == pytest.approx(grid[int(np.argmax(values))])
    assert step.n_passes == 99
