"""Every way to update the mixing weights with every sampling assumption and every kind of link."""

from __future__ import annotations

import warnings
from functools import cache, partial

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from sklearn.exceptions import ConvergenceWarning

from linkwise import PPC, ConstrainedEM, Constraints
from linkwise.mixture.links import em_step as link_steps
from linkwise.mixture.links.prior import DisjointPrior, LabelPrior
from linkwise.mixture.links.rows import select_linked_rows
from linkwise.mixture.links.weights import grid_mixing
from tests.mixture import oracle
from tests.mixture.mixing_oracle import Enumeration, log_omega_by_links
from tests.repeats import LONG, for_cases

HARD = np.inf
#: Name: (must-links, cannot-links, weights, whether contraction leaves links that share no group).
LINKS = {
    "hard must": ([(0, 1), (2, 3)], [], None, True),
    "hard must, a chunklet of three": ([(0, 1), (1, 2), (3, 4)], [], None, True),
    "hard must, the chunklet closed": ([(0, 1), (1, 2), (0, 2)], [], None, True),
    "hard cannot": ([], [(0, 1), (2, 3)], None, True),
    "hard cannot, a path": ([], [(0, 1), (1, 2)], None, False),
    "hard cannot, a triangle": ([], [(0, 1), (1, 2), (0, 2)], None, False),
    "soft must": ([(0, 1), (2, 3)], [], 0.4, True),
    "soft must, a star": ([(0, 1), (0, 2), (0, 3)], [], 0.7, False),
    "soft cannot": ([], [(0, 1), (2, 3)], 0.4, True),
    "soft cannot, a path": ([], [(0, 1), (1, 2), (2, 3)], 0.8, False),
    "chunklets held apart": ([(0, 1), (2, 3)], [(0, 2)], None, True),
    "chunklets held apart twice": ([(0, 1), (2, 3)], [(0, 2), (1, 3)], [HARD, HARD, HARD, 0.5], True),
    "soft between chunklets": ([(0, 1), (2, 3)], [(0, 2), (1, 3)], [HARD, HARD, 0.3, 0.5], True),
    "for and against": ([(0, 1), (2, 3), (0, 2)], [(1, 3)], [HARD, HARD, 0.9, 0.5], True),
    "soft inside a chunklet": ([(0, 1), (1, 2)], [(0, 2), (2, 3)], [HARD, HARD, 0.6, 0.8], True),
    "mixed, overlapping": ([(0, 1), (1, 2)], [(2, 3), (3, 4)], [HARD, 0.5, HARD, 0.7], False),
    "chunklets in a triangle": ([(0, 1)], [(0, 2), (1, 3), (2, 3)], None, False),
}
SAMPLING = ("chunklets", "points")
N_POINTS = 5


def links_of(name):
    must, cannot, weight, disjoint = LINKS[name]
    return Constraints(N_POINTS, must, cannot, weight=weight), disjoint


def has_soft_must(links):
    return bool(((links.weights > 0) & np.isfinite(links.weights)).any())


def share_of(links, sampling):
    """Power of pi of every point, from the words of the two assumptions."""
    chunklets = links.chunklets()
    return np.ones(len(links)) if sampling == "points" else 1.0 / np.bincount(chunklets)[chunklets]


@cache
def enumeration(name, sampling, per_cluster):
    """All labellings of the points under these links."""
    links, _ = links_of(name)
    return Enumeration(links, np.repeat(np.arange(3), per_cluster), share_of(links, sampling))


cases = for_cases(
    ("name", "sampling", "per_cluster"),
    [(name, sampling, per) for name in LINKS for sampling in SAMPLING for per in (1, 2)],
)


class TestPriors:
    """log Omega and its gradient."""

    def problem(self, name, sampling, per_cluster):
        links, disjoint = links_of(name)
        cluster_of = np.repeat(np.arange(3), per_cluster)
        linked = select_linked_rows(links, cluster_of, chunklets_once=sampling == "chunklets")
        share = share_of(links, sampling)
        free = np.setdiff1d(np.arange(N_POINTS), linked.rows)
        rng = np.random.default_rng(len(name))
        eta = np.log(rng.dirichlet(np.full(len(cluster_of), 2.0)))
        return links, linked, share, len(free), eta, disjoint

    @cases
    def test_exact_is_the_sum_over_all_labellings(self, name, sampling, per_cluster):
        _, linked, _, n_free, eta, _ = self.problem(name, sampling, per_cluster)
        everything = enumeration(name, sampling, per_cluster)
        log_omega, counts = LabelPrior(linked, "exact", 0)(eta)
        assert log_omega == pytest.approx(everything.log_omega(eta), abs=1e-10)
        np.testing.assert_allclose(counts + n_free * np.exp(eta), everything.prior_counts(eta), atol=1e-10)

    @cases
    def test_disjoint_is_the_product_over_links(self, name, sampling, per_cluster):
        links, linked, share, n_free, eta, disjoint = self.problem(name, sampling, per_cluster)
        prior = DisjointPrior(linked)
        log_omega, counts = prior(eta)
        # Points without links bring log sum_k pi_k, which is 0 at normalised weights.
        assert log_omega == pytest.approx(log_omega_by_links(links, linked.cluster_of, share, eta), abs=1e-10)
        shifted = eta + 0.3
        expected = log_omega_by_links(links, linked.cluster_of, share, shifted) - 0.3 * n_free
        assert prior(shifted)[0] == pytest.approx(expected, abs=1e-10)
        gradient = approx_fprime(eta, lambda e: prior(e)[0], 1e-7)
        np.testing.assert_allclose(counts, gradient, atol=1e-5)
        assert counts.sum() == pytest.approx(linked.prior_power.sum())
        if disjoint:
            everything = enumeration(name, sampling, per_cluster)
            assert log_omega == pytest.approx(everything.log_omega(eta), abs=1e-10)
            np.testing.assert_allclose(
                counts + n_free * np.exp(eta), everything.prior_counts(eta), atol=1e-10
            )
            assert counts.min() >= 0.0

    @pytest.mark.parametrize("prior", [DisjointPrior, lambda linked: LabelPrior(linked, "exact", 0)])
    def test_chunklets_drawn_as_a_whole_bring_no_factor(self, prior):
        """Links only and assumption 1: Omega is 1, and a chunklet counts once."""
        for name in ("hard must", "hard must, a chunklet of three", "hard must, the chunklet closed"):
            links, _ = links_of(name)
            linked = select_linked_rows(links, np.arange(3), chunklets_once=True)
            pi = np.array([0.85, 0.1, 0.05])
            log_omega, counts = prior(linked)(np.log(pi))
            assert log_omega == pytest.approx(0.0, abs=1e-12)
            np.testing.assert_allclose(counts, linked.prior_power.sum() * pi)


def steps():
    """What a user can combine: chunklets need hard must-links, and the grid at most four components."""
    models = [(ConstrainedEM, "chunklets", 1), (ConstrainedEM, "points", 1)]
    for m, (model_class, sampling, per_cluster) in enumerate([*models, (PPC, "points", 2)]):
        for n, name in enumerate(LINKS):
            for w, mixing in enumerate(("exact", "disjoint", "grid", "ignore", "fixed")):
                # A Latin square: any two of model, links and mixing meet; the grid is coarse and needs all.
                if not LONG and mixing != "grid" and (m + n + w) % 3:
                    continue
                if sampling == "chunklets" and has_soft_must(links_of(name)[0]):
                    continue
                if mixing == "grid" and per_cluster > 1:
                    continue
                yield mixing, name, model_class, sampling, per_cluster


class TestSteps:
    """One EM step of a fit: its objective and its new weights."""

    def step(self, model_class, links, per_cluster, **options):
        """A fit of one iteration, the log weights it started from, and the densities there."""
        X = np.random.default_rng(0).normal(scale=2.0, size=(N_POINTS + 7, 1))
        n_gaussians = 3 * per_cluster
        rng = np.random.default_rng(1)
        start = {
            "weights_init": rng.dirichlet(np.full(n_gaussians, 4.0)),
            "means_init": np.linspace(-2.0, 2.0, n_gaussians)[:, np.newaxis],
            "precisions_init": np.ones((n_gaussians, 1, 1)),
        }
        if per_cluster > 1:
            options["components_per_cluster"] = per_cluster
        everything = Constraints(len(X), links.must_link, links.cannot_link, weight=weights_by_kind(links))
        model = model_class(3, inference="exact", max_iter=1, reg_covar=0.1, shrinkage=0, **start, **options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X, constraints=everything)
        density = oracle.log_density(X, start["means_init"], np.ones((n_gaussians, 1, 1)))
        return model, np.log(start["weights_init"]), density

    @for_cases(("mixing", "name", "model_class", "sampling", "per_cluster"), steps())
    def test_objective_and_weights(self, monkeypatch, mixing, name, model_class, sampling, per_cluster):
        links, _ = links_of(name)
        monkeypatch.setattr(link_steps, "grid_mixing", partial(grid_mixing, step=0.05))
        options = {"sampling": sampling} if model_class is ConstrainedEM else {}
        model, eta, density = self.step(model_class, links, per_cluster, mixing=mixing, **options)
        share = share_of(links, sampling)
        cluster_of = np.repeat(np.arange(3), per_cluster)
        everything = enumeration(name, sampling, per_cluster)
        counts, log_total = everything.posterior(eta, density[:N_POINTS])
        free = density[N_POINTS:] + eta
        log_free = np.logaddexp.reduce(free, axis=1)
        counts = counts + np.exp(free - log_free[:, np.newaxis]).sum(axis=0)

        def log_omega(e):
            if mixing == "ignore":
                return 0.0
            if mixing == "disjoint":
                return log_omega_by_links(links, cluster_of, share, e)
            return everything.log_omega(e)

        objective = log_total + log_free.sum() - log_omega(eta)
        assert model.lower_bounds_[0] * len(density) == pytest.approx(objective, abs=1e-8)

        new = np.log(model.weights_)
        if mixing == "fixed":
            np.testing.assert_allclose(new, eta)
        elif mixing == "ignore":
            np.testing.assert_allclose(model.weights_, counts / counts.sum(), atol=1e-10)
        elif mixing == "grid":
            nodes = np.array([(a, b, 20 - a - b) for a in range(1, 19) for b in range(1, 20 - a)]) / 20
            logs = np.log(nodes)
            terms = logs @ everything.shared.T + everything.penalty
            values = logs @ counts - np.logaddexp.reduce(terms, axis=1)
            np.testing.assert_allclose(model.weights_, nodes[values.argmax()], atol=1e-12)
        else:

            def f(e):
                normalised = e - np.logaddexp.reduce(e)
                return counts @ normalised - log_omega(normalised)

            assert f(new) >= f(eta)
            gradient = approx_fprime(new, f, 1e-6)
            # Counts outside what the prior can give push a weight to the smallest one allowed.
            inside = model.weights_ > 1e-7
            np.testing.assert_allclose(gradient[inside], 0.0, atol=2e-4)

    def test_grid_with_several_components(self):
        links, _ = links_of("mixed, overlapping")
        cluster_of = np.repeat(np.arange(2), 2)
        linked = select_linked_rows(links, cluster_of)
        everything = Enumeration(links, cluster_of, np.ones(N_POINTS))
        counts = np.array([4.0, 2.5, 3.0, 0.5])
        found = grid_mixing(counts, LabelPrior(linked, "exact", 0), step=0.1)
        steps = [
            np.array([a, b, c, 10 - a - b - c]) / 10
            for a in range(1, 8) for b in range(1, 9 - a) for c in range(1, 10 - a - b)
        ]  # fmt: skip
        values = [counts @ np.log(node) - everything.log_omega(np.log(node)) for node in steps]
        np.testing.assert_allclose(np.exp(found.log_weights), steps[int(np.argmax(values))])
        assert found.n_passes == len(steps)

    def test_must_links_of_chunklets_have_a_closed_update(self):
        """pi_k is the mean of the chunklets' responsibilities, with exact and with disjoint alike."""
        links, _ = links_of("hard must")
        closed = [
            self.step(ConstrainedEM, links, 1, mixing=mixing)[0].weights_
            for mixing in ("ignore", "exact", "disjoint")
        ]
        np.testing.assert_allclose(closed[1], closed[0], atol=1e-9)
        np.testing.assert_allclose(closed[2], closed[0], atol=1e-9)


@pytest.mark.parametrize("model_class", [PPC, ConstrainedEM])
def test_a_grid_of_millions_is_refused(model_class):
    with pytest.raises(ValueError, match='mixing="grid" would try millions of weights for 5 components'):
        model_class(5, mixing="grid").fit(np.arange(20.0)[:, np.newaxis])


def weights_by_kind(links):
    """Weights in the order Constraints takes them: must-links first."""
    size = np.abs(links.weights)
    return np.concatenate([size[links.weights > 0], size[links.weights < 0]])


@pytest.mark.parametrize("sampling", SAMPLING)
def test_few_passes_under_hard_links_end_where_many_do(monkeypatch, sampling):
    """Generalised EM: an M-step of three passes raises the objective, and EM goes on from there."""
    rng = np.random.default_rng(0)
    y = np.arange(80) % 4
    X = rng.normal(size=(80, 2)) + 4.0 * np.array([(0, 0), (1, 0), (0, 1), (1, 1)])[y]
    links = Constraints.sample(y, 70, overlap=True, random_state=0)
    fits = []
    for passes in (link_steps.PASSES_UNDER_HARD_LINKS, 200):
        monkeypatch.setattr(link_steps, "PASSES_UNDER_HARD_LINKS", passes)
        options = {"linked_weight": 1, "n_init": 1, "tol": 1e-9, "max_iter": 500, "random_state": 0}
        model = ConstrainedEM(4, sampling=sampling, inference="belief_propagation", **options)
        fits.append(model.fit(X, constraints=links))
    assert not fits[0].inference_["exact"]  # else all passes are made
    assert fits[0].lower_bound_ == pytest.approx(fits[1].lower_bound_, abs=1e-6)
    np.testing.assert_allclose(fits[0].weights_, fits[1].weights_, atol=1e-3)
    assert (np.diff(fits[0].lower_bounds_) > -1e-7).all()
