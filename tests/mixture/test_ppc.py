"""PPC against scikit-learn without links and against enumeration with them."""

from __future__ import annotations

import tracemalloc
import warnings
from functools import cache
from itertools import product
from typing import ClassVar

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture

from linkwise import PPC, Constraints
from linkwise.datasets import make_rings
from linkwise.exceptions import InfeasibleConstraints
from linkwise.mixture.links.em_step import LinkedStep, automatic_weight
from tests.mixture import oracle
from tests.repeats import LONG, examples, for_seeds


def blobs(rng, n, d, k, spread=2.0):
    centres = rng.normal(scale=spread, size=(k, d))
    y = rng.integers(k, size=n)
    return centres[y] + rng.normal(size=(n, d)), y


def start_of(rng, d, k, covariance_type):
    precisions = {
        "full": np.tile(np.eye(d), (k, 1, 1)) * rng.uniform(0.5, 2, size=(k, 1, 1)),
        "tied": np.eye(d) * 0.7,
        "diag": rng.uniform(0.5, 2, size=(k, d)),
        "spherical": rng.uniform(0.5, 2, size=k),
    }[covariance_type]
    return {
        "weights_init": rng.dirichlet(np.full(k, 5.0)),
        "means_init": rng.normal(scale=2.0, size=(k, d)),
        "precisions_init": precisions,
    }


def fit_quietly(model, X, links=None):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, constraints=links)


class TestWithoutLinks:
    @pytest.mark.parametrize("covariance_type", ["full", "tied", "diag", "spherical"])
    @pytest.mark.parametrize("links", [None, Constraints(200)], ids=["none", "empty"])
    def test_equals_gaussian_mixture_from_the_same_start(self, covariance_type, links):
        rng = np.random.default_rng(0)
        X, _ = blobs(rng, 200, 3, 4)
        options = {"covariance_type": covariance_type, "tol": 0.0, "max_iter": 25}
        start = start_of(rng, 3, 4, covariance_type)
        ours = fit_quietly(PPC(4, shrinkage=0, **options, **start), X, links)
        theirs = GaussianMixture(4, **options, **start)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            theirs.fit(X)
        for name in ("weights_", "means_", "covariances_", "precisions_cholesky_", "lower_bound_"):
            np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-8)
        np.testing.assert_allclose(ours.score_samples(X), theirs.score_samples(X), rtol=1e-8)
        assert ours.aic(X) == pytest.approx(theirs.aic(X))
        assert ours.bic(X) == pytest.approx(theirs.bic(X))
        if hasattr(theirs, "lower_bounds_"):
            np.testing.assert_allclose(ours.lower_bounds_, theirs.lower_bounds_, rtol=1e-8)
        np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))

    def test_stops_where_gaussian_mixture_stops(self):
        rng = np.random.default_rng(1)
        X, _ = blobs(rng, 300, 2, 3)
        start = start_of(rng, 2, 3, "full")
        ours, theirs = PPC(3, shrinkage=0, **start).fit(X), GaussianMixture(3, **start).fit(X)
        assert ours.n_iter_ == theirs.n_iter_
        assert ours.converged_

    def test_fit_predict_equals_predict_and_stores_no_table(self):
        X, _ = blobs(np.random.default_rng(2), 100, 2, 3)
        model = PPC(3, random_state=0)
        labels = model.fit_predict(X)
        np.testing.assert_array_equal(labels, model.predict(X))
        np.testing.assert_array_equal(labels, model.labels_)
        assert not hasattr(model, "responsibilities_")

    def test_links_of_certainty_one_half_change_nothing(self):
        rng = np.random.default_rng(3)
        X, y = blobs(rng, 80, 2, 2)
        start = start_of(rng, 2, 2, "full")
        nothing = Constraints.sample(y, 20, certainty=0.5, random_state=0)
        plain, linked = PPC(2, **start).fit(X), PPC(2, **start).fit(X, constraints=nothing)
        np.testing.assert_array_equal(plain.means_, linked.means_)


class TestLinkedWeight:
    @pytest.mark.parametrize("mixing", ["exact", "ignore"])
    @pytest.mark.parametrize("seed", range(6))
    def test_objective_is_the_weighted_sum_of_both_parts(self, seed, mixing):
        rng = np.random.default_rng(seed)
        X, _ = blobs(rng, 9, 2, 2)
        links = Constraints(9, [(0, 1)], [(1, 2), (3, 4)], weight=[0.7, 1.1, np.inf])
        start = start_of(rng, 2, 2, "full")
        parameters = (start["weights_init"], start["means_init"], np.linalg.inv(start["precisions_init"]))
        model = fit_quietly(
            PPC(2, linked_weight=3.0, mixing=mixing, max_iter=1, tol=0.0, shrinkage=0, **start), X, links
        )
        linked = oracle.penalised_log_likelihood(X[:5], *parameters, links[np.arange(5)])
        if mixing == "ignore":
            linked = oracle.posterior(X[:5], *parameters, links[np.arange(5)])[1]
        free = oracle.posterior(X[5:], *parameters, Constraints(4))[1]
        # Five linked and four free rows count nine together: 4 u + 5 * 3 u = 9.
        expected = (free + 3.0 * linked) * 9 / 19
        assert model.lower_bound_ * 9 == pytest.approx(expected, abs=1e-8)

    @pytest.mark.parametrize(("mixing", "seed"), product(["exact", "ignore", "fixed"], range(4)))
    def test_objective_never_falls(self, mixing, seed):
        rng = np.random.default_rng(seed)
        X, y = blobs(rng, 60, 2, 3)
        links = Constraints.sample(y[:30], 25, overlap=True, flip=0.2, certainty=0.9, random_state=seed)
        links = Constraints(60, links.must_link, links.cannot_link, certainty=0.9)
        model = fit_quietly(
            PPC(
                3, linked_weight=4.0, mixing=mixing, inference="exact", reg_covar=0.0, tol=0.0, n_init=1,
                max_iter=15, random_state=seed,
            ),
            X, links,
        )  # fmt: skip
        assert model.n_decreases_ == 0

    def test_weights_are_those_of_the_weighted_rows(self):
        # Two groups that nobody can confuse: 6 linked rows on the left, 2 free rows left and 8 right.
        X = np.r_[np.arange(8) * 0.01, 100.0 + np.arange(8) * 0.01][:, np.newaxis]
        links = Constraints(16, [(0, 1), (2, 3), (4, 5)], weight=1.0)
        model = PPC(2, linked_weight=5.0, mixing="ignore", random_state=0).fit(X, constraints=links)
        assert np.sort(model.weights_) == pytest.approx([8 / 40, 32 / 40])

    @pytest.mark.parametrize("kind", ["no links", "every row linked"])
    def test_means_nothing_where_all_rows_are_of_one_kind(self, kind):
        X, y = blobs(np.random.default_rng(5), 60, 2, 3)
        links = None if kind == "no links" else Constraints.sample(y, 30, certainty=0.9, random_state=0)
        plain, weighted = (
            PPC(3, linked_weight=weight, random_state=0).fit(X, constraints=links) for weight in (1.0, 7.0)
        )
        np.testing.assert_allclose(plain.means_, weighted.means_, rtol=1e-10)
        assert plain.lower_bound_ == pytest.approx(weighted.lower_bound_, rel=1e-10)

    @pytest.mark.parametrize("n_init", [1, 2] if LONG else [1])
    def test_auto_leaves_clusters_that_free_rows_would_destroy(self, n_init):
        # Two rings around one centre are no two Gaussians: the likelihood of all rows prefers other clusters.
        X, y, links = self.rings()
        auto, plain = (self.fitted(weight, n_init) for weight in ("auto", 1.0))
        assert adjusted_rand_score(y, auto.labels_) > adjusted_rand_score(y, plain.labels_) + 0.2
        assert auto.converged_
        n_linked = len(np.unique(links.pairs))
        assert auto.linked_weight_ == automatic_weight(n_linked, 2, X.shape[1]) > 1.0
        assert plain.linked_weight_ == 1.0

    def test_auto_is_the_plain_model_where_clusters_are_gaussian(self):
        X, y = load_iris(return_X_y=True)
        links = Constraints.sample(y, 30, certainty=0.9, random_state=1)
        auto, plain = (
            PPC(3, linked_weight=weight, random_state=0).fit(X, constraints=links) for weight in ("auto", 1.0)
        )
        np.testing.assert_array_equal(auto.means_, plain.means_)
        assert auto.lower_bounds_ == plain.lower_bounds_
        assert auto.linked_weight_ == 1.0

    def test_a_weight_that_ends_badly_is_not_kept(self, monkeypatch):
        X, _, links = self.rings()
        plain = self.fitted(1.0, n_init=1)

        def degenerate(self, linked_weight):
            raise ValueError("the covariance of component 0 is not positive definite")

        monkeypatch.setattr(LinkedStep, "weighted", degenerate)
        auto = PPC(2, n_init=1, random_state=0).fit(X, constraints=links)
        np.testing.assert_array_equal(auto.means_, plain.means_)

    @pytest.mark.parametrize(("n_linked", "weight"), [(20, 4.0), (4, 1.0), (80, 10.0)])
    def test_automatic_weight(self, n_linked, weight):
        assert automatic_weight(n_linked, 2, 4) == weight

    @classmethod
    @cache
    def fitted(cls, linked_weight, n_init):
        X, _, links = cls.rings()
        model = PPC(2, linked_weight=linked_weight, n_init=n_init, random_state=0)
        return model.fit(X, constraints=links)

    @staticmethod
    @cache
    def rings():
        X, y = make_rings(random_state=0)
        rows = np.random.default_rng(1).permutation(len(y))[:90]
        found = Constraints.sample(y[rows], 90, overlap=True, random_state=0)
        pairs = rows[found.must_link], rows[found.cannot_link]
        return X, y, Constraints(len(y), *pairs, certainty=0.99)


class TestAgainstEnumeration:
    @for_seeds(examples(15, 6))
    def test_objective_and_responsibilities(self, seed):
        rng = np.random.default_rng(seed)
        n, d, k = int(rng.integers(3, 7)), int(rng.integers(1, 3)), int(rng.integers(2, 4))
        X, _ = blobs(rng, n, d, k)
        links = oracle.random_links(rng, n)
        start = start_of(rng, d, k, "full")
        covariances = np.linalg.inv(start["precisions_init"])
        try:
            links.check(k)
        except InfeasibleConstraints:
            with pytest.raises(InfeasibleConstraints):
                PPC(k, **start).fit(X, constraints=links)
            return
        model = fit_quietly(
            PPC(k, max_iter=1, tol=0.0, reg_covar=0.1, shrinkage=0, linked_weight=1, **start), X, links
        )
        expected = oracle.penalised_log_likelihood(
            X, start["weights_init"], start["means_init"], covariances, links
        )
        assert model.lower_bound_ * n == pytest.approx(expected, abs=1e-8)
        resp, _ = oracle.posterior(X, model.weights_, model.means_, model.covariances_, links)
        np.testing.assert_allclose(model.responsibilities_, resp, atol=1e-8)
        broken = [sum(resp_pair) for resp_pair in zip(*_violations(X, model, links), strict=True)]
        np.testing.assert_allclose(model.violation_probability_, broken, atol=1e-8)

    @for_seeds(examples(10, 6))
    def test_several_components_per_cluster(self, seed):
        rng = np.random.default_rng(seed)
        X, _ = blobs(rng, 5, 2, 2)
        links = oracle.random_links(rng, 5, hard=0.2, n_pairs=3)
        start = start_of(rng, 2, 4, "full")
        cluster_of = np.array([0, 0, 1, 1])
        try:
            links.check(2)
        except InfeasibleConstraints:
            return
        model = fit_quietly(
            PPC(
                2,
                components_per_cluster=2,
                max_iter=1,
                tol=0.0,
                reg_covar=0.5,
                shrinkage=0,
                linked_weight=1,
                **start,
            ),
            X,
            links,
        )
        expected = oracle.penalised_log_likelihood(
            X,
            start["weights_init"],
            start["means_init"],
            np.linalg.inv(start["precisions_init"]),
            links,
            cluster_of,
        )
        assert model.lower_bound_ * 5 == pytest.approx(expected, abs=1e-8)
        resp, _ = oracle.posterior(X, model.weights_, model.means_, model.covariances_, links, cluster_of)
        np.testing.assert_allclose(model.responsibilities_, resp.reshape(5, 2, 2).sum(axis=2), atol=1e-8)
        assert model.means_.shape == (4, 2)
        assert model.predict_proba(X).shape == (5, 2)

    @pytest.mark.parametrize(
        ("mixing", "seed"),
        [*product(["exact"], range(examples(12, 3))), *product(["ignore", "fixed"], range(examples(5, 3)))],
    )
    def test_objective_never_falls(self, mixing, seed):
        rng = np.random.default_rng(seed)
        X, y = blobs(rng, 40, 2, 3)
        links = Constraints.sample(
            y, 25, overlap=True, flip=0.2, certainty=rng.uniform(0.6, 0.99), random_state=seed
        ) + Constraints(40, must_link=[(0, 1)], cannot_link=[(2, 3), (3, 4)])
        model = fit_quietly(
            PPC(
                3,
                mixing=mixing,
                inference="exact",
                reg_covar=0.0,
                tol=0.0,
                n_init=1,
                max_iter=15,
                random_state=seed,
            ),
            X,
            links,
        )
        assert model.n_decreases_ == 0
        assert model.inference_["exact"]

    @pytest.mark.parametrize("seed", [0, 1, 2, 4, 6, 11])  # feasible links, and both components stay
    def test_gradient_vanishes_at_convergence(self, seed):
        rng = np.random.default_rng(seed)
        n, d, k = 7, 1, 2
        X = np.concatenate([rng.normal(-2, 1, size=(4, d)), rng.normal(2, 1, size=(3, d))])
        links = oracle.random_links(rng, n, hard=0.2, n_pairs=4, must=0.7)
        model = fit_quietly(
            PPC(
                k,
                reg_covar=0.0,
                shrinkage=0,
                linked_weight=1,
                tol=1e-14,
                n_init=1,
                max_iter=4000,
                covariance_type="tied",
                random_state=0,
            ),
            X,
            links,
        )

        def objective(theta):
            weights = np.exp(np.append(theta[0], 0.0))
            weights /= weights.sum()
            covariance = np.exp(theta[1]) * np.eye(1)
            means = theta[2:].reshape(k, d)
            return oracle.penalised_log_likelihood(X, weights, means, [covariance, covariance], links)

        theta = np.concatenate(
            [
                [np.log(model.weights_[0] / model.weights_[1])],
                [np.log(model.covariances_[0, 0])],
                model.means_.ravel(),
            ]
        )
        assert model.weights_.min() > 1e-6
        gradient = approx_fprime(theta, objective, 1e-6)
        assert np.abs(gradient).max() < 2e-4


def _violations(X, model, links):
    """Posterior probability of violation of each link, split over labellings, by enumeration."""
    import itertools

    joint = oracle.log_density(X, model.means_, model.covariances_) + np.log(model.weights_)
    rows = np.arange(len(X))
    labellings = list(itertools.product(range(len(model.weights_)), repeat=len(X)))
    logs = np.array([joint[rows, list(z)].sum() + oracle.log_penalty(z, links) for z in labellings])
    probability = np.exp(logs - logs.max())
    probability /= probability.sum()
    return [links.violations(z) * p for z, p in zip(labellings, probability, strict=True)]


class TestIdentities:
    """Spec mixture.md, section 10, as far as they are not tested elsewhere."""

    def setup_method(self):
        rng = np.random.default_rng(0)
        self.X, self.y = blobs(rng, 60, 2, 3)
        self.start = start_of(rng, 2, 3, "full")

    def fit(self, links, **options):
        return fit_quietly(PPC(3, **{**self.start, "tol": 1e-9, "max_iter": 200, **options}), self.X, links)

    def test_soft_weights_tend_to_hard_links(self):
        pairs = Constraints.sample(self.y, 20, random_state=0)
        hard = self.fit(pairs)
        gaps = []
        for weight in (4.0, 32.0):
            soft = self.fit(Constraints(60, pairs.must_link, pairs.cannot_link, weight=weight))
            gaps.append(np.abs(soft.responsibilities_ - hard.responsibilities_).max())
        assert gaps[-1] < 1e-6
        assert gaps[0] > gaps[-1]

    def test_permuting_points_permutes_rows(self):
        links = Constraints.sample(self.y, 20, certainty=0.9, random_state=0)
        order = np.random.default_rng(1).permutation(60)
        model = self.fit(links, max_iter=50)
        shuffled = fit_quietly(PPC(3, **self.start, tol=1e-9, max_iter=50), self.X[order], links[order])
        np.testing.assert_allclose(shuffled.responsibilities_, model.responsibilities_[order], atol=1e-6)

    def test_permuting_components_permutes_columns(self):
        links = Constraints.sample(self.y, 20, certainty=0.9, random_state=0)
        order = [2, 0, 1]
        turned = {name: value[order] for name, value in self.start.items()}
        model = self.fit(links, max_iter=50)
        other = self.fit(links, max_iter=50, **turned)
        np.testing.assert_allclose(other.responsibilities_, model.responsibilities_[:, order], atol=1e-6)

    def test_hard_links_give_equal_rows_and_two_clusters_opposite_ones(self):
        links = Constraints(60, must_link=[(0, 1), (1, 2)], cannot_link=[(3, 4)])
        start = start_of(np.random.default_rng(5), 2, 2, "full")
        model = fit_quietly(PPC(2, **start), self.X, links)
        resp = model.responsibilities_
        np.testing.assert_allclose(resp.sum(axis=1), 1.0)
        np.testing.assert_allclose(resp[0], resp[1])
        np.testing.assert_allclose(resp[0], resp[2])
        np.testing.assert_allclose(resp[3] + resp[4], [1.0, 1.0])

    def test_one_component(self):
        soft = Constraints(60, [(0, 1)], [(2, 3)], weight=1.0)
        model = PPC(1, shrinkage=0, linked_weight=1).fit(self.X, constraints=soft)
        plain = GaussianMixture(1).fit(self.X)
        assert model.lower_bound_ == pytest.approx(plain.lower_bound_, abs=1e-10)
        with pytest.raises(InfeasibleConstraints, match="2 and 3 are linked apart"):
            PPC(1).fit(self.X, constraints=Constraints(60, cannot_link=[(2, 3)]))

    def test_small_variance_limit_is_constrained_k_means(self):
        """I10: W scaled with 1 / sigma^2, the posterior becomes the best labelling."""
        rng = np.random.default_rng(3)
        X = rng.normal(size=(6, 1))
        means = np.array([[-0.5], [0.6]])
        pairs, cost = [(0, 1), (2, 3), (4, 5)], np.array([0.3, 0.2, 0.5])
        sigma = 0.05
        links = Constraints(6, pairs[:2], pairs[2:], weight=cost / (2 * sigma**2))
        model = PPC(2, weights_init=[0.5, 0.5], means_init=means, covariance_type="spherical", mixing="fixed",
                    precisions_init=[sigma**-2] * 2)  # fmt: skip
        from linkwise.mixture.gaussian.source import RowsInMemory
        from linkwise.mixture.links.em_step import LinkedStep

        model._check_parameters(len(X))
        linked = model._linked_rows(links)
        source = RowsInMemory(X, 0.0)
        start = model._starts(source, links, linked.coupling, None, np.random.RandomState(0))[0][0]
        step = LinkedStep(source, linked, "spherical", 0.0, "exact", "fixed", None, 0)
        resp = step.e_step(start).responsibilities

        def energy(z):
            return 0.5 * ((X[:, 0] - means[list(z), 0]) ** 2).sum() + sum(
                c
                for (i, j), c, must in zip(pairs, cost, [True, True, False], strict=True)
                if (z[i] == z[j]) != must
            )

        import itertools

        best = min(itertools.product(range(2), repeat=6), key=energy)
        np.testing.assert_allclose(resp, np.eye(2)[list(best)], atol=1e-6)

    def test_links_elsewhere_do_not_matter(self):
        """I17: a component of links not connected to another does not change it."""
        few = Constraints(60, [(0, 1)], [(1, 2)], weight=1.0)
        more = few + Constraints(60, [(10, 11)], [(12, 13)], weight=2.0)
        one, two = self.fit(few, max_iter=1), self.fit(more, max_iter=1)
        # After the same single M-step start the posterior of rows 0..2 depends on the parameters only.
        assert one.lower_bound_ != two.lower_bound_
        resp, _ = oracle.posterior(self.X[:3], two.weights_, two.means_, two.covariances_, few[:3])
        np.testing.assert_allclose(two.responsibilities_[:3], resp, atol=1e-8)


class TestErratumE1:
    """Unbalanced classes and must-links only: the printed Omega, with its exponents swapped, fails here."""

    rng = np.random.default_rng(0)
    y = (rng.random(20_000) < 0.2).astype(int)
    pairs = rng.permutation(20_000).reshape(-1, 2)
    kept = pairs[y[pairs[:, 0]] == y[pairs[:, 1]]]
    rows = np.sort(kept.ravel())
    X = (rng.normal(size=20_000) + 3.0 * y)[rows, np.newaxis]
    links = Constraints(len(rows), must_link=np.searchsorted(rows, kept))
    start: ClassVar = {
        "weights_init": [0.5, 0.5],
        "means_init": [[0.0], [3.0]],
        "precisions_init": np.ones((2, 1, 1)),
    }

    @classmethod
    @cache
    def fitted(cls):
        return PPC(2, tol=1e-8, max_iter=500, **cls.start).fit(cls.X, constraints=cls.links)

    def test_weights_are_recovered(self):
        model = self.fitted()
        assert model.weights_[0] == pytest.approx(0.8, abs=0.02)

    def test_ignoring_omega_is_biased(self):
        model = PPC(2, tol=1e-8, max_iter=500, mixing="ignore", **self.start).fit(
            self.X, constraints=self.links
        )
        assert model.weights_[0] > 0.9

    def test_the_printed_exponents_would_drive_a_component_out(self):
        """Swapped: must-links enter as (1 - s), so f grows towards pi = (1, 0)."""
        model = self.fitted()
        counts = model.responsibilities_.sum(axis=0)
        n_pairs = len(self.links.pairs)
        grid = np.linspace(0.01, 0.99, 99)
        s = grid**2 + (1 - grid) ** 2
        data = counts[0] * np.log(grid) + counts[1] * np.log1p(-grid)
        corrected, printed = data - n_pairs * np.log(s), data - n_pairs * np.log(1 - s)
        assert grid[corrected.argmax()] == pytest.approx(0.8, abs=0.02)
        assert grid[printed.argmax()] > 0.95


class TestManyRows:
    def test_many_rows_with_few_linked_need_little_beside_the_result(self):
        """Beside the (n, K) result only the linked rows keep responsibilities."""
        rng = np.random.default_rng(0)
        n, d, k = 250_000, 10, 10
        centres = rng.normal(scale=4.0, size=(k, d))
        y = rng.integers(k, size=n)
        X = centres[y] + rng.normal(size=(n, d))
        some = Constraints.sample(y[:10_000], 5_000, certainty=0.9, random_state=0)
        links = Constraints(n, some.must_link, some.cannot_link, certainty=0.9)
        start = {"weights_init": np.full(k, 0.1), "precisions_init": np.tile(np.eye(d), (k, 1, 1))}
        model = PPC(k, means_init=centres + 0.5, tol=0.0, max_iter=2, **start)
        mebibyte = 2**20
        for constraints, allowed in (
            (None, 10 * mebibyte),
            (links, model.n_components * n * 8 + 15 * mebibyte),
        ):
            tracemalloc.start()
            fit_quietly(model, X, constraints)
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            assert peak < allowed
        assert links.satisfaction(model.labels_) > 0.99


class TestLearningNoise:
    def test_flip_rate_is_recovered(self):
        X, y = load_iris(return_X_y=True)
        rates = []
        for seed in range(6):
            links = Constraints.sample(y, 60, flip=0.3, certainty=0.8, random_state=seed)
            model = fit_quietly(PPC(3, learn_noise=True, n_init=1, random_state=seed), X, links)
            rates.append((model.noise_, links.violations(y).mean()))
        learned, realised = np.array(rates).T
        assert np.abs(learned - realised).mean() < 0.05

    def test_clean_links_are_learned_to_be_clean(self):
        X, y = load_iris(return_X_y=True)
        links = Constraints.sample(y, 37, certainty=0.8, random_state=0)
        model = fit_quietly(PPC(3, learn_noise=True, n_init=5, random_state=0), X, links)
        assert model.noise_ < 0.02

    def test_kinds_have_rates_of_their_own(self):
        rng = np.random.default_rng(0)
        y = rng.integers(2, size=600)
        X = rng.normal(size=(600, 2)) + 6.0 * y[:, np.newaxis]
        right = Constraints.sample(y, 200, certainty=0.8, random_state=0)
        wrong = rng.permutation(len(right.cannot_link))[:20]
        kept = np.setdiff1d(np.arange(len(right.cannot_link)), wrong)
        links = Constraints(
            600,
            np.concatenate([right.must_link, right.cannot_link[wrong]]),
            right.cannot_link[kept],
            certainty=0.8,
        )
        model = PPC(2, learn_noise="kind", random_state=0).fit(X, constraints=links)
        assert model.noise_[0] == pytest.approx(20 / len(links.must_link), abs=0.02)
        assert model.noise_[1] < 0.02
        suspects = np.argsort(model.violation_probability_)[-20:]
        flipped = {tuple(pair) for pair in right.cannot_link[wrong].tolist()}
        assert {tuple(pair) for pair in links.pairs[suspects].tolist()} == flipped

    def test_objective_never_falls(self):
        X, y = load_iris(return_X_y=True)
        for seed in range(3):
            links = Constraints.sample(y, 60, flip=0.2, certainty=0.7, random_state=seed)
            model = fit_quietly(
                PPC(3, learn_noise=True, reg_covar=0.0, tol=0.0, n_init=1, max_iter=30, random_state=seed),
                X,
                links,
            )
            assert model.n_decreases_ == 0


class TestDecoding:
    def field_of_the_spec(self):
        """K = 3, two points linked apart, marginals (.403, .339, .258) twice: both argmax to 0."""
        weights = np.array([0.45, 0.35, 0.2])
        X = np.array([[0.0], [0.0], [1.0], [-1.0], [2.0]])
        return X, weights

    @pytest.mark.parametrize("decode", ["marginal", "map"])
    def test_hard_links_hold_in_labels(self, decode):
        X, weights = self.field_of_the_spec()
        links = Constraints(5, cannot_link=[(0, 1)])
        model = PPC(3, decode=decode, mixing="fixed", max_iter=1, weights_init=weights, reg_covar=1.0,
                    means_init=[[0.0], [0.1], [0.2]], precisions_init=np.ones((3, 1, 1)))  # fmt: skip
        fit_quietly(model, X, links)
        top = model.responsibilities_[:2].argmax(axis=1)
        assert top[0] == top[1]
        assert model.labels_[0] != model.labels_[1]

    def test_map_is_the_best_labelling(self):
        rng = np.random.default_rng(0)
        X, _ = blobs(rng, 6, 1, 3, spread=1.0)
        links = oracle.random_links(rng, 6, hard=0.0, n_pairs=6)
        model = fit_quietly(PPC(3, decode="map", max_iter=2, reg_covar=0.3, random_state=0), X, links)
        import itertools

        joint = oracle.log_density(X, model.means_, model.covariances_) + np.log(model.weights_)
        best = max(
            itertools.product(range(3), repeat=6),
            key=lambda z: joint[np.arange(6), list(z)].sum() + oracle.log_penalty(z, links),
        )
        np.testing.assert_array_equal(model.labels_, best)


class TestBadInput:
    def setup_method(self):
        self.X, self.y = blobs(np.random.default_rng(0), 30, 2, 2)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"n_components": 0}, "n_components must be a whole number >= 1, got 0"),
            ({"n_components": 31}, "31 components cannot be fitted to n_samples=30"),
            ({"tol": -1.0}, "tol must be a finite number >= 0"),
            ({"linked_weight": 0.0}, "linked_weight must be a finite number > 0"),
            ({"linked_weight": "much"}, "linked_weight must be a finite number > 0"),
            (
                {"covariance_type": "round"},
                "covariance_type must be one of full, tied, diag, spherical; got 'round'",
            ),
            ({"mixing": "guess"}, "mixing must be one of exact, disjoint, grid, ignore, fixed"),
            ({"init_params": "luck"}, "init_params must be one of"),
            ({"decode": "coin"}, "decode must be one of"),
            ({"learn_noise": "much"}, "learn_noise is .much.: pass False, True"),
            ({"components_per_cluster": 0}, "components_per_cluster must be a whole number >= 1"),
            ({"n_components": 5, "mixing": "grid"}, "limited to 4"),
            ({"weights_init": [0.5, 0.6]}, "weights_init must be >= 0 and sum to 1"),
            ({"means_init": [[0.0, 1.0]]}, r"means_init must have shape \(2, 2\), got \(1, 2\)"),
            ({"precisions_init": np.ones((2, 2))}, r"precisions_init must have shape \(2, 2, 2\)"),
            ({"inference": "magic"}, "marginals has no method 'magic'"),
        ],
    )
    def test_parameters(self, options, message):
        links = Constraints.sample(self.y, 5, certainty=0.9, random_state=0)
        with pytest.raises(ValueError, match=message):
            PPC(**{"n_components": 2, **options}).fit(self.X, constraints=links)

    def test_raw_pairs_are_refused(self):
        with pytest.raises(
            TypeError, match=r"constraints must be a linkwise.Constraints, got list; build one with"
        ):
            PPC(2).fit(self.X, constraints=[(0, 1)])

    def test_links_of_other_rows(self):
        with pytest.raises(ValueError, match="constraints are about 12 samples, but X has 30 rows"):
            PPC(2).fit(self.X, constraints=Constraints(12))

    def test_nan(self):
        self.X[3, 1] = np.nan
        with pytest.raises(ValueError, match="NaN"):
            PPC(2).fit(self.X)

    def test_too_few_clusters_for_the_links(self):
        links = Constraints(30, cannot_link=[(0, 1), (1, 2), (0, 2)])
        with pytest.raises(InfeasibleConstraints) as caught:
            PPC(2).fit(self.X, constraints=links)
        assert caught.value.witness.kind == "odd_ring"

    def test_constant_column_and_identical_points(self):
        links = Constraints.sample(self.y, 8, certainty=0.9, random_state=0)
        constant = np.column_stack([self.X, np.ones(30)])
        assert np.isfinite(fit_quietly(PPC(2, random_state=0), constant, links).lower_bound_)
        with pytest.raises(ValueError, match="positive definite"):
            PPC(2, reg_covar=0.0, random_state=0).fit(constant, constraints=links)
        identical = np.ones((30, 2))
        model = fit_quietly(PPC(2, random_state=0), identical, Constraints(30, cannot_link=[(0, 1)]))
        assert model.labels_[0] != model.labels_[1]
        assert np.isfinite(model.responsibilities_).all()

    def test_links_on_one_point_only(self):
        star = Constraints(30, cannot_link=[(0, j) for j in range(1, 30)])
        model = fit_quietly(PPC(2, random_state=0), self.X, star)
        assert (model.labels_[1:] != model.labels_[0]).all()


@cache
def iris_fit(**options):
    """A fit to the data of the class below, for tests that change nothing in it."""
    return fit_quietly(PPC(3, random_state=0, **options), TestModes.X, TestModes.links)


class TestModes:
    X, y = load_iris(return_X_y=True)
    links = Constraints.sample(y, 30, certainty=0.9, random_state=1)

    @pytest.mark.parametrize(("mixing", "max_iter"), [("disjoint", 2), ("grid", 1)])
    def test_other_mixing_agrees_with_exact_on_disjoint_links(self, mixing, max_iter):
        options = {"linked_weight": 1, "n_init": 1, "max_iter": max_iter, "random_state": 0}
        exact = fit_quietly(PPC(3, **options), self.X, self.links)
        other = fit_quietly(PPC(3, **options, mixing=mixing), self.X, self.links)
        np.testing.assert_allclose(
            other.weights_, exact.weights_, atol=1e-5 if mixing == "disjoint" else 0.011
        )

    @pytest.mark.parametrize("inference", ["exact", "tree", "mean_field", "gibbs", "belief_propagation"])
    def test_every_engine(self, inference):
        exact = iris_fit(linked_weight=1, n_init=1)
        other = PPC(3, linked_weight=1, n_init=1, random_state=0, inference=inference)
        fit_quietly(other, self.X, self.links)
        atol = {"mean_field": 0.05, "gibbs": 0.03}.get(inference, 1e-6)
        np.testing.assert_allclose(other.weights_, exact.weights_, atol=atol)
        assert (other.labels_ == exact.labels_).mean() > 0.97
        assert other.inference_["method"] == inference

    def test_threads_do_not_change_the_numbers(self):
        one = fit_quietly(PPC(3, n_init=3, random_state=0), self.X, self.links)
        two = fit_quietly(PPC(3, n_init=3, random_state=0, n_jobs=2), self.X, self.links)
        np.testing.assert_array_equal(one.means_, two.means_)

    def test_warm_start(self):
        model = PPC(3, random_state=0, max_iter=3, warm_start=True)
        first = fit_quietly(model, self.X, self.links).lower_bound_
        second = fit_quietly(model, self.X, self.links).lower_bound_
        assert second > first

    def test_sample(self):
        model = iris_fit()
        X, y = model.sample(20_000)
        assert X.shape == (20_000, 4)
        np.testing.assert_allclose(np.bincount(y) / 20_000, model.weights_, atol=0.02)
        np.testing.assert_allclose(X[y == 1].mean(axis=0), model.means_[1], atol=0.05)

    def test_score_takes_weights(self):
        model = iris_fit()
        weight = np.arange(150.0)
        expected = np.average(model.score_samples(self.X), weights=weight)
        assert model.score(self.X, sample_weight=weight) == pytest.approx(expected)

    def test_float32(self):
        double = iris_fit()
        single = fit_quietly(PPC(3, random_state=0), self.X.astype(np.float32), self.links)
        np.testing.assert_allclose(single.means_, double.means_, atol=1e-2)
        assert (single.labels_ == double.labels_).mean() > 0.98

    def test_says_when_it_did_not_converge(self):
        with pytest.warns(ConvergenceWarning, match="max_iter=1"):
            model = PPC(3, max_iter=1, random_state=0).fit(self.X, constraints=self.links)
        assert not model.converged_
        assert model.n_iter_ == 1
