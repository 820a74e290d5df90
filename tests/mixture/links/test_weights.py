"""The M-step of the mixing weights against enumeration of every labelling."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize
from scipy.special import logsumexp, softmax

from linkwise import PPC, Constraints
from linkwise.inference import marginals
from linkwise.mixture.links import prior as label_prior
from linkwise.mixture.links.prior import DisjointPrior, LabelPrior
from linkwise.mixture.links.rows import link_field, select_linked_rows
from linkwise.mixture.links.weights import (
    PASSES_PER_COMPONENT,
    LastValue,
    grid_mixing,
    newton_mixing,
)
from tests.mixture import oracle
from tests.repeats import examples, for_seeds


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


@pytest.mark.parametrize("seed", range(20))
def test_one_field_for_posterior_and_prior_gives_the_same_omega(seed, monkeypatch):
    # A share below 0: also fields whose groups are mostly single or in pairs.
    monkeypatch.setattr(label_prior, "_MOST", -1.0)
    rng = np.random.default_rng(seed)
    linked = linked_of(feasible_links(rng, 7, 3), 3)
    links = link_field(linked.pairs, linked.coupling, len(linked.rows))
    eta = rng.normal(size=3)
    log_omega, counts = LabelPrior(linked, "exact", 0, links=links)(eta)
    expected = prior_of(linked)(eta)
    assert log_omega == pytest.approx(expected[0], rel=1e-12, abs=1e-12)
    np.testing.assert_allclose(counts, expected[1], rtol=1e-11, atol=1e-12)


@for_seeds(30)
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


@for_seeds(examples(20))
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
    for _ in range(examples(100)):
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
            DisjointPrior(linked)(np.log(self.pi))[0],
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
        assert np.exp(DisjointPrior(linked)(np.log(self.pi))[0]) == pytest.approx(disjoint, abs=5e-4)
        assert np.exp(prior_of(linked)(np.log(self.pi))[0]) == pytest.approx(exact, abs=5e-4)

    def test_gradient_of_the_disjoint_form(self):
        links = Constraints(5, [(0, 1), (1, 2)], [(3, 4), (0, 4)], weight=[0.5, np.inf, 1.0, np.inf])
        linked = linked_of(links, 3)
        eta = np.log(self.pi)
        gradient = approx_fprime(eta, lambda e: DisjointPrior(linked)(e)[0], 1e-7)
        np.testing.assert_allclose(DisjointPrior(linked)(eta)[1], gradient, atol=1e-5)

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


class TestInferencePasses:
    """Every evaluation of log Omega costs a pass over the links, so none may be wasted."""

    def ordered(self, eta):
        """100 rows held together: where two weights are the largest, log Omega nearly has a kink."""
        return float(logsumexp(100.0 * eta)), 100.0 * softmax(100.0 * eta)

    @for_seeds(20)
    def test_a_kink_is_found_in_few_passes(self, seed):
        rng = np.random.default_rng(seed)
        share, start = rng.dirichlet(np.full(4, 20.0)), np.log(rng.dirichlet(np.full(4, 20.0)))
        step = newton_mixing(100.0 * share, 0.0, start, self.ordered)
        assert step.converged
        np.testing.assert_allclose(softmax(100.0 * step.log_weights), share, atol=1e-9)
        # Halving the steps takes 45 on average and up to 70.
        assert step.n_passes <= 32

    @for_seeds(10)
    def test_empty_components_take_no_more(self, seed):
        """The weights of components without rows end at the smallest; the others match their counts."""
        rng = np.random.default_rng(seed)
        links = feasible_links(rng, 6, 5)
        counts = np.append(20.0 * rng.dirichlet(np.full(3, 5.0)), [0.0, 0.0])
        prior = prior_of(linked_of(links, 5))
        n_linked = prior(np.log(np.full(5, 0.2)))[1].sum()
        step = newton_mixing(counts, 20.0 - n_linked, np.log(np.full(5, 0.2)), prior)
        assert step.converged
        # On average 107, and up to the limit,, if the slope toward still smaller weights counts.
        assert step.n_passes <= 32
        weights = np.exp(step.log_weights)
        np.testing.assert_allclose(weights[3:], 1e-8, rtol=1e-6)
        expected = (20.0 - n_linked) * weights + prior(step.log_weights)[1]
        np.testing.assert_allclose(expected[:3], counts[:3], atol=1e-6)

    def test_passes_are_limited(self):
        step = newton_mixing(np.full(4, 25.0), 0.0, np.log([0.1, 0.2, 0.3, 0.4]), self.ordered, max_passes=5)
        assert step.n_passes == 5
        assert not step.converged
        assert self.ordered(step.log_weights)[0] < self.ordered(np.log([0.1, 0.2, 0.3, 0.4]))[0]

    def test_a_gain_that_a_concave_function_cannot_make_is_refused(self):
        """Belief propagation may come to another fixed point, with a much lower log Omega."""
        start = np.log([0.3, 0.7])

        def jumping(eta):
            log_omega, counts = self.ordered(eta)
            return (log_omega if abs(eta - start).max() < 1e-12 else log_omega - 500.0), counts

        step = newton_mixing(np.array([50.0, 50.0]), 0.0, start, jumping)
        assert not step.converged
        np.testing.assert_allclose(step.log_weights, start)

    def test_a_product_over_links_that_share_a_point_is_not_concave(self):
        """Refusing its gains would leave the weights where they were: here f has no maximum inside."""
        links = Constraints(8, cannot_link=[(0, j) for j in range(1, 8)])
        prior = DisjointPrior(linked_of(links, 2))
        counts, start = np.array([1.5, 11.5]), np.log([0.35, 0.65])

        def f(eta):
            return counts @ eta - prior(eta)[0]

        refused = newton_mixing(counts, 5.0, start, prior)
        step = newton_mixing(counts, 5.0, start, prior, concave=False)
        # f = (n_0 - 7) log pi_0 + (n_1 - 7) log pi_1 up to a constant.
        assert f(step.log_weights) > f(start) + 50.0
        assert np.exp(step.log_weights[0]) == pytest.approx(1e-8, rel=1e-6)
        np.testing.assert_allclose(refused.log_weights, start)

    def test_the_last_value_is_not_computed_again(self):
        asked = []

        def prior(eta):
            asked.append(eta)
            return float(eta.sum()), eta.copy()

        remembering = LastValue(prior)
        eta = np.log([0.5, 0.5])
        first = remembering(eta)
        assert remembering(eta.copy()) == first
        assert len(asked) == 1
        eta[:] = np.log([0.1, 0.9])
        assert remembering(eta)[0] == pytest.approx(np.log(0.09))
        assert len(asked) == 2

    @pytest.mark.parametrize(("mixing", "per_step"), [("exact", 4 * PASSES_PER_COMPONENT), ("fixed", 0)])
    def test_of_a_fit_on_a_grid(self, monkeypatch, mixing, per_step):
        passes = []

        def counted(*arguments, **options):
            passes.append(arguments)
            return marginals(*arguments, **options)

        monkeypatch.setattr(label_prior, "marginals", counted)
        rng = np.random.default_rng(0)
        quarter = np.add.outer(np.arange(12) // 6 * 2, np.arange(12) // 6).ravel()
        X = rng.normal(size=(144, 2)) + 2.0 * np.array([[0, 0], [1, 0], [0, 1], [1, 1]])[quarter]
        model = PPC(4, mixing=mixing, n_init=1, random_state=0)
        links = Constraints.from_grid((12, 12), certainty=0.9)
        model.fit(X, constraints=links)
        assert not model.inference_["details"]["prior_exact"]
        # One more to tell whether log Omega was exact at the end, and one for the first step.
        assert len(passes) <= per_step * model.n_iter_ + 2
        assert PPC(4, mixing=mixing, random_state=0).fit(X, constraints=links).n_occupied_ == 4
