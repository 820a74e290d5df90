"""Shrinkage of covariances: its prior against the formula written out, its M-step, and EM with it."""

from __future__ import annotations

import warnings
from typing import ClassVar

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from linkwise import PPC, ConstrainedEM, Constraints
from linkwise.mixture.gaussian.data import points_of
from linkwise.mixture.gaussian.gaussians import Gaussians, precision_factors
from linkwise.mixture.gaussian.shrinkage import (
    CovariancePrior,
    automatic_rows,
    column_moments,
    covariance_prior,
    log_prior,
    mean_covariance,
    pooled_covariance,
    prior_of_moments,
    pseudo_rows,
    shrink,
)
from tests.repeats import LONG

TYPES = ("full", "tied", "diag", "spherical")
K, D = 3, 4


def random_covariances(rng, covariance_type):
    if covariance_type == "spherical":
        return rng.uniform(0.2, 3.0, K)
    if covariance_type == "diag":
        return rng.uniform(0.2, 3.0, (K, D))
    roots = rng.normal(size=(K, D, 2 * D))
    full = roots @ roots.transpose(0, 2, 1) / D
    return full[0] if covariance_type == "tied" else full


def matrices(covariances, covariance_type):
    """(K, D, D), or (1, D, D) for "tied"."""
    if covariance_type == "spherical":
        return covariances[:, np.newaxis, np.newaxis] * np.eye(D)
    if covariance_type == "diag":
        return np.array([np.diag(row) for row in covariances])
    return covariances.reshape(-1, D, D)


def twice_divergence(target, covariance):
    ratio = np.linalg.solve(covariance, target)
    return np.trace(ratio) - np.linalg.slogdet(ratio)[1] - D


def written_out(covariances, covariance_type, prior, pooled):
    """The log prior by its definition, for any P."""
    value = 0.0
    for one in matrices(covariances, covariance_type):
        if covariance_type != "tied":
            value -= prior.pooled / 2 * twice_divergence(pooled, one)
        wide = np.diag(prior.variances) if prior.covariance is None else prior.covariance
        value -= prior.wide / 2 * twice_divergence(wide, one)
    return value


def as_matrix(pooled, covariance_type):
    if covariance_type == "spherical":
        return pooled * np.eye(D)
    return np.diag(pooled) if covariance_type == "diag" else pooled


def quiet_fit(model, X, links=None):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, constraints=links)


@pytest.mark.parametrize(
    ("covariance_type", "correlated"),
    [*((kind, False) for kind in TYPES), ("full", True), ("tied", True)],
)
@pytest.mark.parametrize("seed", range(3))
class TestPrior:
    def case(self, seed, covariance_type, correlated):
        rng = np.random.default_rng(seed)
        covariances = random_covariances(rng, covariance_type)
        factors = precision_factors(covariances, covariance_type)
        gaussians = Gaussians(rng.normal(size=(K, D)), factors, covariance_type)
        prior = CovariancePrior(5.0, 2.0, rng.uniform(0.5, 2.0, D))
        if correlated:
            of_data = random_covariances(rng, "tied")
            prior = prior._replace(variances=np.diagonal(of_data), covariance=of_data)
        return rng, covariances, gaussians, prior

    def test_is_the_formula_at_the_best_pool(self, seed, covariance_type, correlated):
        rng, covariances, gaussians, prior = self.case(seed, covariance_type, correlated)
        pooled = pooled_covariance(gaussians)
        value = log_prior(gaussians, prior)
        best = written_out(covariances, covariance_type, prior, as_matrix(pooled, covariance_type))
        assert value == pytest.approx(best, abs=1e-10)
        assert value <= 0.0
        if covariance_type != "tied":
            for _ in range(20):
                other = pooled * np.exp(rng.normal(scale=0.1))
                other = as_matrix(other, covariance_type)
                assert written_out(covariances, covariance_type, prior, other) < value

    def test_the_m_step_is_a_maximum(self, seed, covariance_type, correlated):
        """Of the expected log-likelihood with scatter W_k and n_k rows, plus the prior, for a given P."""
        rng, rows, gaussians, prior = self.case(seed, covariance_type, correlated)
        counts = rng.uniform(3.0, 30.0, K)
        pooled = pooled_covariance(gaussians)
        shrunk = shrink(rows, counts, pooled, prior, covariance_type)

        def value(covariances):
            weights = [counts.sum()] if covariance_type == "tied" else counts
            pairs = zip(
                weights, matrices(covariances, covariance_type), matrices(rows, covariance_type), strict=True
            )
            data = sum(
                -n / 2 * (np.linalg.slogdet(one)[1] + np.trace(np.linalg.solve(one, own)))
                for n, one, own in pairs
            )
            return data + written_out(covariances, covariance_type, prior, as_matrix(pooled, covariance_type))

        top = value(shrunk)
        for _ in range(20):
            step = rng.normal(scale=1e-3, size=shrunk.shape)
            if covariance_type in ("full", "tied"):
                step = step + np.swapaxes(step, -1, -2)
            assert value(shrunk + step) < top

    def test_units_do_not_matter(self, seed, covariance_type, correlated):
        rng, covariances, gaussians, prior = self.case(seed, covariance_type, correlated)
        scale = np.full(D, 7.0) if covariance_type == "spherical" else np.exp(rng.normal(size=D))
        if covariance_type == "spherical":
            scaled = covariances * 49.0
        elif covariance_type == "diag":
            scaled = covariances * scale**2
        else:
            scaled = covariances * np.outer(scale, scale)
        other = Gaussians(gaussians.means, precision_factors(scaled, covariance_type), covariance_type)
        in_units = prior._replace(variances=prior.variances * scale**2)
        if correlated:
            in_units = in_units._replace(covariance=prior.covariance * np.outer(scale, scale))
        assert log_prior(other, in_units) == pytest.approx(log_prior(gaussians, prior), abs=1e-9)


@pytest.mark.parametrize("covariance_type", ["full", "tied"])
def test_linear_maps_do_not_matter(covariance_type):
    rng = np.random.default_rng(0)
    covariances, of_data = random_covariances(rng, covariance_type), random_covariances(rng, "tied")
    values = []
    for turn in (np.eye(D), rng.normal(size=(D, D))):
        prior = CovariancePrior(5.0, 3.0, np.full(D, np.nan), turn @ of_data @ turn.T)
        factors = precision_factors(turn @ covariances @ turn.T, covariance_type)
        values.append(log_prior(Gaussians(np.zeros((K, D)), factors, covariance_type), prior))
    assert values[0] == pytest.approx(values[1], abs=1e-9)


def test_moments_of_correlated_columns():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 3)) @ rng.normal(size=(3, 3)) + 1e3
    prior = prior_of_moments(column_moments(points_of(X), "full"), len(X), 32.0, 1e-3)
    np.testing.assert_allclose(prior.covariance, np.cov(X.T, bias=True) + 1e-3 * np.eye(3), rtol=1e-8)
    np.testing.assert_array_equal(prior.variances, np.diagonal(prior.covariance))
    # Columns that depend on each other leave no room in some direction; one column has no correlations.
    X[:, 2] = X[:, 0]
    assert prior_of_moments(column_moments(points_of(X), "full"), len(X), 32.0, 0.0).covariance is None
    alone = prior_of_moments(column_moments(points_of(X[:, :1]), "full"), len(X), 32.0, 0.0)
    assert alone.covariance is None
    np.testing.assert_allclose(alone.variances, X[:, 0].var())


def test_rows_and_variances():
    X = np.random.default_rng(0).normal(size=(20_000, 3)) * [1.0, 10.0, 0.1] + 1e4
    prior = covariance_prior(points_of(X), 32.0, 0.0)
    assert prior.pooled + prior.wide == pytest.approx(32.0)
    assert prior.wide == pytest.approx(2.0)
    np.testing.assert_allclose(prior.variances, X.var(axis=0), rtol=1e-9)
    assert covariance_prior(points_of(X), 0.0, 0.0) is None
    assert automatic_rows(10) == 55.0
    assert pseudo_rows("auto", 30) == 465.0
    assert pseudo_rows("auto", 30, 55.0) == 55.0
    assert pseudo_rows("auto", 4, 55.0) == 10.0
    assert pseudo_rows(200.0, 30, 55.0) == 200.0


def test_mean_covariance_weighs_by_rows():
    covariances = np.array([[1.0, 2.0], [3.0, 6.0]])
    np.testing.assert_allclose(mean_covariance(covariances, np.array([1.0, 3.0]), "diag"), [2.5, 5.0])


class TestFits:
    rng = np.random.default_rng(4)
    y = np.repeat([0, 1, 2], 25)
    X = rng.normal(size=(75, 3)) * [1.0, 0.5, 2.0] + 3.0 * np.eye(3)[y]
    wide = rng.normal(size=(120, 11)) @ rng.normal(size=(11, 11)) + 6.0 * np.repeat(
        [[0.0], [1.0]], 60, axis=0
    )
    kinds: ClassVar = {
        "none": None,
        "soft": Constraints.sample(y, 20, certainty=0.9, overlap=True, random_state=0),
        "hard": Constraints.sample(y, 20, overlap=True, random_state=1),
    }

    @pytest.mark.parametrize(
        ("covariance_type", "kind", "per_cluster"),
        [
            (covariance_type, kind, per_cluster)
            for i, covariance_type in enumerate(TYPES)
            for j, kind in enumerate(("none", "soft", "hard"))
            for per_cluster in (1, 2)
            if LONG or (i + j + per_cluster) % 2 == 0
        ],
    )
    def test_the_objective_never_falls(self, covariance_type, kind, per_cluster):
        model = PPC(
            3, covariance_type=covariance_type, components_per_cluster=per_cluster, inference="exact",
            reg_covar=0.0, tol=0.0, max_iter=10, n_init=1, random_state=0,
        )  # fmt: skip
        quiet_fit(model, self.X, self.kinds[kind])
        assert (np.diff(model.lower_bounds_) > -1e-11).all()
        assert model.n_decreases_ == 0
        assert model.shrinkage_ == 6.0

    @pytest.mark.parametrize("covariance_type", TYPES)
    def test_the_objective_has_the_prior_in_it(self, covariance_type):
        """Sum of the log-likelihood of the rows and the log prior, at parameters that are a fixed point."""
        model = PPC(3, covariance_type=covariance_type, shrinkage=20.0, tol=1e-13, max_iter=2000,
                    reg_covar=0.0, random_state=0)  # fmt: skip
        quiet_fit(model, self.X)
        gaussians = Gaussians(model.means_, model.precisions_cholesky_, covariance_type)
        prior = CovariancePrior(18.75, 1.25, self.X.var(axis=0))
        expected = model.score(self.X) + log_prior(gaussians, prior) / len(self.X)
        assert model.lower_bound_ == pytest.approx(expected, abs=1e-9)

    @pytest.mark.parametrize("covariance_type", TYPES)
    @pytest.mark.parametrize("n_samples", [110, 109])
    def test_the_objective_has_the_covariance_of_many_columns_in_it(self, covariance_type, n_samples):
        """Eleven columns, from ten rows for each of them on."""
        X = self.wide[:n_samples]
        model = PPC(2, covariance_type=covariance_type, tol=1e-13, max_iter=5000, reg_covar=0.0,
                    random_state=0)  # fmt: skip
        quiet_fit(model, X)
        gaussians = Gaussians(model.means_, model.precisions_cholesky_, covariance_type)
        correlated = n_samples == 110 and covariance_type in ("full", "tied")
        n_rows = 60.5 if correlated else 55.0
        assert model.shrinkage_ == n_rows
        covariance = np.cov(X.T, bias=True) if correlated else None
        prior = CovariancePrior(n_rows * 15 / 16, n_rows / 16, X.var(axis=0), covariance)
        expected = model.score(X) + log_prior(gaussians, prior) / len(X)
        assert model.lower_bound_ == pytest.approx(expected, abs=1e-8)

    @pytest.mark.parametrize("covariance_type", ["full", "tied", "diag"])
    def test_units_do_not_matter(self, covariance_type):
        scale = np.array([1e-3, 1.0, 1e4])
        links = self.kinds["soft"]
        first, other = (
            PPC(
                3,
                covariance_type=covariance_type,
                means_init=3.0 * np.eye(3) * unit,
                reg_covar=0.0,
                weights_init=np.full(3, 1 / 3),
                precisions_init=start,
            )
            for unit, start in (
                (1.0, precisions(np.ones(3), covariance_type)),
                (scale, precisions(scale, covariance_type)),
            )
        )
        quiet_fit(first, self.X, links)
        quiet_fit(other, self.X * scale, links)
        assert first.n_iter_ == other.n_iter_ > 2
        np.testing.assert_allclose(other.responsibilities_, first.responsibilities_, atol=1e-7)
        np.testing.assert_allclose(other.means_, first.means_ * scale, rtol=1e-6)

    @pytest.mark.parametrize("covariance_type", ["full", "tied"])
    def test_linear_maps_of_many_columns_do_not_matter(self, covariance_type):
        links = Constraints.sample(np.repeat([0, 1], 60), 20, certainty=0.9, random_state=0)
        turn = np.random.default_rng(1).normal(size=(11, 11))
        back = np.linalg.inv(turn)
        means = np.array([self.wide[0], self.wide[-1]])
        found = []
        for move, shape in ((np.eye(11), np.eye(11)), (turn, back @ back.T)):
            model = PPC(
                2, covariance_type=covariance_type, means_init=means @ move, reg_covar=0.0,
                weights_init=np.full(2, 0.5), tol=1e-6, max_iter=1000,
                precisions_init=shape if covariance_type == "tied" else np.array([shape] * 2),
            )  # fmt: skip
            found.append(quiet_fit(model, self.wide @ move, links))
        assert found[0].n_iter_ == found[1].n_iter_ > 2
        np.testing.assert_allclose(found[1].responsibilities_, found[0].responsibilities_, atol=1e-6)
        np.testing.assert_allclose(found[1].means_, found[0].means_ @ turn, atol=1e-5)

    def test_single_precision(self):
        links = self.kinds["soft"]
        double = quiet_fit(PPC(3, random_state=0), self.X, links)
        single = quiet_fit(PPC(3, random_state=0), self.X.astype(np.float32), links)
        np.testing.assert_array_equal(single.labels_, double.labels_)
        np.testing.assert_allclose(single.covariances_, double.covariances_, rtol=1e-3, atol=1e-3)

    @pytest.mark.parametrize("model_class", [PPC, ConstrainedEM])
    def test_many_rows_give_one_shape(self, model_class):
        """A million pseudo-rows leave all components the same covariance; none leaves each its own."""
        pooled, own = (
            quiet_fit(
                model_class(3, shrinkage=rows, linked_weight=1, n_init=1, max_iter=60, random_state=0),
                self.X,
                self.kinds["hard"],
            )
            for rows in (1e6, 0)
        )
        spread = np.ptp(pooled.covariances_, axis=0).max()
        assert spread < 1e-3 < np.ptp(own.covariances_, axis=0).max()

    def test_clusters_of_two_rows_do_not_collapse(self):
        """Two equal rows are a spurious maximum of the likelihood; pseudo-rows bound it."""
        X = np.random.default_rng(0).normal(size=(40, 3))
        X[1] = X[0]
        start = {
            "means_init": [X[0], X.mean(axis=0)],
            "weights_init": [0.05, 0.95],
            "precisions_init": [1e4 * np.eye(3), np.eye(3)],
        }
        plain = quiet_fit(PPC(2, shrinkage=0, **start), X)
        shrunk = quiet_fit(PPC(2, **start), X)
        assert np.linalg.eigvalsh(plain.covariances_[0]).max() < 1e-5
        assert np.linalg.eigvalsh(shrunk.covariances_).min() > 0.05

    @pytest.mark.parametrize("shrinkage", ["none", -1.0, np.nan, None, True, [1.0]])
    def test_anything_else_is_refused(self, shrinkage):
        with pytest.raises(ValueError, match=r'shrinkage is .*: pass "auto", or a number of pseudo-rows'):
            PPC(3, shrinkage=shrinkage).fit(self.X)


def precisions(scale, covariance_type):
    one = np.diag(scale**-2.0)
    return {"full": np.array([one] * 3), "tied": one, "diag": np.array([scale**-2.0] * 3)}[covariance_type]


def test_only_automatic_pseudo_rows_have_the_correlations_of_many_columns():
    """One component is its own pool, so that S = (w V + n W) / (w + n), with V = W or its diagonal."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 12)) @ rng.normal(size=(12, 12))
    found = np.cov(X.T, bias=True)
    automatic = quiet_fit(PPC(1, reg_covar=0.0, tol=1e-12), X)
    assert automatic.shrinkage_ == pytest.approx(66.0)
    np.testing.assert_allclose(automatic.covariances_[0], found, rtol=1e-6)
    given = quiet_fit(PPC(1, shrinkage=66.0, reg_covar=0.0, tol=1e-12), X)
    wide = 66.0 / 16.0
    expected = (wide * np.diag(np.diag(found)) + 200.0 * found) / (wide + 200.0)
    np.testing.assert_allclose(given.covariances_[0], expected, rtol=1e-6)
