"""CPPC: plain EM without beliefs, the paper's collapse with its weights, real data, and refusals."""

from __future__ import annotations

import pickle
import warnings
from functools import cache
from itertools import product

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits, load_wine
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from linkwise import PPC
from linkwise._threads import Workers
from linkwise.beliefs import ClassBeliefs
from linkwise.datasets import make_eleven_gaussians
from linkwise.exceptions import ApproximationWarning
from linkwise.mixture.classes.e_step import class_rows
from linkwise.mixture.classes.em import ClassRun, ClassStep
from linkwise.mixture.classes.plan import class_start
from linkwise.mixture.classes.tables import TablesInMemory
from linkwise.mixture.cppc import CPPC, _keep_leader
from linkwise.mixture.em import best_run
from linkwise.mixture.gaussian.data import points_of
from tests.mixture import class_oracle
from tests.sklearn_checks import estimator_checks

COVARIANCE_TYPES = ["full", "tied", "diag", "spherical"]


@estimator_checks(
    CPPC(random_state=0),
    CPPC(2, normalize="none", covariance_type="diag", init="paper", random_state=0),
)
def test_sklearn_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        check(estimator)


@pytest.fixture(scope="module")
def eleven():
    return make_eleven_gaussians(random_state=0)


@pytest.fixture(scope="module")
def small():
    X, y, beliefs = make_eleven_gaussians(12, random_state=1)
    return X, y, beliefs


def quiet_fit(model, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y)


@pytest.fixture(scope="module")
def fitted_eleven(eleven):
    """A function that fits clusters to the eleven Gaussians once; for tests that change nothing in them."""
    X, y, beliefs = eleven
    return cache(lambda n_clusters: quiet_fit(CPPC(n_clusters, beliefs=beliefs, random_state=0), X, y))


@pytest.fixture(scope="module")
def fitted_small(small):
    """The small set in four clusters; for tests that change nothing in it."""
    X, y, beliefs = small
    return quiet_fit(CPPC(4, beliefs=beliefs, random_state=0), X, y)


class TestWithoutBeliefs:
    @pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
    @pytest.mark.parametrize("settings", [{"beliefs": np.zeros((9, 9))}, {"confidence": 1e-13}])
    def test_equals_plain_em_from_the_same_start(self, small, covariance_type, settings):
        X, y, _ = small
        model = quiet_fit(
            CPPC(
                11, covariance_type=covariance_type, random_state=0, max_iter=8, tol=0.0, shrinkage=0,
                init="paper", **settings,
            ),
            X, y,
        )  # fmt: skip
        start = class_start(X, y - 1, 11, np.random.RandomState(0))
        tables = TablesInMemory(points_of(X), class_rows(y - 1, 9), start, 11, Workers())
        step = ClassStep(tables, np.zeros((9, 9)), covariance_type, 1e-6, False, "ignore", 0)
        begin = step.start_parameters()
        precisions = (
            np.linalg.inv(begin.covariances)
            if covariance_type in ("full", "tied")
            else 1.0 / begin.covariances
        )
        plain = PPC(
            11, covariance_type=covariance_type, weights_init=np.exp(begin.log_weights),
            means_init=begin.gaussians.means, precisions_init=precisions, max_iter=8, tol=0.0, shrinkage=0,
        )  # fmt: skip
        quiet_fit(plain, X, None)
        np.testing.assert_allclose(model.lower_bounds_[:8], plain.lower_bounds_, rtol=1e-7)
        np.testing.assert_allclose(model.means_, plain.means_, rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(model.weights_, plain.weights_, rtol=1e-6)
        np.testing.assert_array_equal(model.labels_, plain.predict(X))
        np.testing.assert_array_equal(model.labels_, model.predict(X))


class TestPrintedWeights:
    @pytest.mark.parametrize("n_components", [4, 5, 7, 9, 12])
    def test_collapse_to_four_clusters(self, eleven, n_components):
        X, y, beliefs = eleven
        model = CPPC(
            n_components, beliefs=beliefs, confidence=0.2, normalize="none", shrinkage=0, init="paper",
            random_state=0,
        )  # fmt: skip
        if n_components > 4:
            with pytest.warns(UserWarning, match=f"{n_components - 4} of {n_components} clusters are empty"):
                model.fit(X, y)
        else:
            model.fit(X, y)
        assert model.n_occupied_ == 4
        held = sorted(tuple(np.flatnonzero(column) + 1) for column in model.contingency_.T if column.any())
        assert held == [(1,), (2, 3), (4,), (5, 6, 7, 8, 9)]
        assert model.converged_
        assert model.means_.shape == (n_components, 2)
        # Printed criteria of the spec, which an independent prototype found.
        expected = {4: -2327, 5: -2319}
        if n_components in expected:
            assert round(model.criteria_["cbic_paper"]) == expected[n_components]

    def test_normalised_weights_find_the_modes_of_class_1(self, fitted_eleven):
        fits = {k: fitted_eleven(k) for k in (3, 4, 5, 6)}
        assert min(fits, key=lambda k: fits[k].criteria_["cbic"]) == 5
        table = fits[5].contingency_
        assert (table[0] > 150).sum() == 2
        assert table[1].argmax() == table[2].argmax()


class TestFixedPoint:
    @pytest.mark.parametrize(("normalize", "diagonal"), product(["class", "none"], [0.3, -0.3]))
    def test_responsibilities_are_the_mean_field_of_all_pairs(self, small, normalize, diagonal):
        X, y, beliefs = small
        beliefs = 0.9 * beliefs
        np.fill_diagonal(beliefs, diagonal)
        y = np.where(np.arange(len(y)) % 5 == 0, -1, y)
        confidence = 0.5 if normalize == "class" else 0.02
        model = quiet_fit(
            CPPC(
                6, beliefs=beliefs, confidence=confidence, normalize=normalize, shrinkage=0, random_state=0
            ),
            X, y,
        )  # fmt: skip
        assert model.sweep_ == ("block" if diagonal > 0 else "sequential")
        codes = np.where(y < 0, -1, y - 1)
        sizes = np.bincount(codes[codes >= 0])
        strengths = beliefs
        if normalize == "class":
            # Half the log-odds of the certainty that a belief states.
            strengths = 0.5 * np.log((1 + beliefs) / (1 - beliefs)) / np.sqrt(np.outer(sizes, sizes))
        pairs = class_oracle.pair_matrix(codes, 2 * confidence * strengths)
        log_joint = np.array(
            [
                np.log(weight) - 0.5 * np.sum(((X - mean) @ factor) ** 2, axis=1)
                + np.log(np.diagonal(factor)).sum() - np.log(2 * np.pi)
                for weight, mean, factor in zip(
                    model.weights_, model.means_, model.precisions_cholesky_, strict=True
                )
            ]
        ).T  # fmt: skip
        prob = model.responsibilities_
        updated = [class_oracle.updated_row(log_joint, prob, pairs, i) for i in range(len(prob))]
        np.testing.assert_allclose(updated, prob, atol=1e-4)
        bound = class_oracle.objective(log_joint, prob, pairs) / len(X)
        assert model.lower_bound_ == pytest.approx(bound, abs=1e-8)

    def test_forced_block_sweeps_do_not_settle_with_a_negative_diagonal(self, eleven):
        X, y, beliefs = eleven
        beliefs = beliefs.copy()
        beliefs[0, 0] = beliefs[3, 3] = -0.5
        settings = {
            "beliefs": beliefs,
            "confidence": 0.2,
            "normalize": "none",
            "random_state": 0,
            "max_iter": 20,
            "init": "paper",
        }
        with (
            pytest.warns(ConvergenceWarning, match="block"),
            pytest.warns(UserWarning, match=r"\d of 11 clusters"),
        ):
            block = CPPC(11, sweep="block", **settings).fit(X, y)
        assert not block.converged_
        sequential = quiet_fit(CPPC(11, **settings), X, y)
        assert sequential.sweep_ == "sequential"
        assert sequential.n_decreases_ == 0 < block.n_decreases_
        assert sequential.lower_bound_ > block.lower_bound_

    def test_a_strong_pull_of_single_pairs_is_swept_sequentially(self, small):
        X, y, beliefs = small
        model = CPPC(
            4, beliefs=beliefs, confidence=3.0, criterion_weight=0.2, normalize="none", random_state=0
        )
        assert quiet_fit(model, X, y).sweep_ == "sequential"


class TestMeasures:
    def test_separability_counts_pairs(self, small):
        X, y, beliefs = small
        y = np.where(np.arange(len(y)) % 7 == 0, -1, y)
        model = quiet_fit(CPPC(5, beliefs=beliefs, init="paper", random_state=0), X, y)
        for a in range(9):
            for b in range(9):
                pairs = [
                    (i, j)
                    for i in np.flatnonzero(y == a + 1)
                    for j in np.flatnonzero(y == b + 1)
                    if (i < j if a == b else True)
                ]
                together = sum(model.labels_[i] == model.labels_[j] for i, j in pairs)
                assert model.separability_[a, b] == pytest.approx(2 * together / len(pairs) - 1)
        assert model.adherence_ == pytest.approx(((beliefs - model.separability_) ** 2).sum())
        for a in range(9):
            for k in range(5):
                assert model.contingency_[a, k] == ((y == a + 1) & (model.labels_ == k)).sum()

    @pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
    def test_criteria_of_the_fitted_mixture(self, small, covariance_type):
        X, y, beliefs = small
        y = np.where(np.arange(len(y)) % 7 == 0, -1, y)
        options = {"covariance_type": covariance_type, "init": "paper", "max_iter": 20, "random_state": 0}
        model = CPPC(5, beliefs=beliefs, criterion_weight=0.4, **options)
        quiet_fit(model, X, y)
        N, n_labelled, penalty = len(X), (y > 0).sum(), model.bic(X) + 2 * model.score_samples(X).sum()
        assert model.criteria_["bic"] == pytest.approx(model.bic(X))
        distance = max(model.adherence_ / (4 * 81), 1 / n_labelled)
        expected = 0.6 * -2 * model.score_samples(X).sum() + 0.4 * n_labelled * np.log(distance) + penalty
        assert model.criteria_["cbic"] == pytest.approx(expected)
        covariances = model.covariances_
        if covariance_type == "tied":
            covariances = np.tile(covariances, (5, 1, 1))
        elif covariance_type != "full":
            covariances = [np.eye(2) * variance for variance in covariances]
        density = np.empty(N)
        for i, k in enumerate(model.labels_):
            offset = X[i] - model.means_[k]
            density[i] = np.exp(-0.5 * offset @ np.linalg.solve(covariances[k], offset)) / (
                2 * np.pi * np.sqrt(np.linalg.det(covariances[k]))
            )
        rss = ((1 - density) ** 2).sum()
        assert model.criteria_["bic_paper"] == pytest.approx(N * np.log(rss / N) + 5 * np.log(N))
        joint = np.log(density) + np.log(model.weights_[model.labels_])
        assert model.criteria_["icl"] == pytest.approx(-2 * joint.sum() + penalty)

    @pytest.mark.parametrize(("normalize", "default"), [("class", 0.25), ("none", 0.3)])
    def test_default_of_the_criterion_weight(self, small, normalize, default):
        X, y, _ = small
        settings = {
            "confidence": 0.3,
            "normalize": normalize,
            "init": "paper",
            "max_iter": 20,
            "random_state": 0,
        }
        criteria = [
            quiet_fit(CPPC(4, criterion_weight=w, **settings), X, y).criteria_ for w in (None, default, 0.6)
        ]
        assert criteria[0] == criteria[1] != criteria[2]

    def test_class_with_a_single_row(self):
        X, y, _ = make_eleven_gaussians(20, random_state=0)
        y = np.where(np.arange(len(y)) == 3, 10, y)
        model = quiet_fit(CPPC(random_state=0), X, y)
        assert np.isnan(model.separability_[-1, -1])
        assert np.isfinite(model.adherence_)
        assert np.isfinite(model.criteria_["cbic"])


class TestInvariances:
    def test_order_of_rows(self, small, fitted_small):
        X, y, beliefs = small
        order = np.random.default_rng(0).permutation(len(y))
        first = fitted_small
        second = quiet_fit(CPPC(4, beliefs=beliefs, random_state=0), X[order], y[order])
        np.testing.assert_array_equal(second.labels_, first.labels_[order])
        assert second.lower_bound_ == pytest.approx(first.lower_bound_, abs=1e-6)

    def test_names_of_classes(self, small, fitted_small):
        X, y, beliefs = small
        names = np.array(["zero", *"kjihgfedc"])[y]  # sorted the other way round
        by_number = fitted_small
        by_name = quiet_fit(CPPC(4, beliefs=beliefs[::-1, ::-1], random_state=0), X, names)
        np.testing.assert_array_equal(by_name.classes_, sorted("kjihgfedc"))
        assert adjusted_rand_score(by_name.labels_, by_number.labels_) == 1.0
        assert by_name.lower_bound_ == pytest.approx(by_number.lower_bound_, abs=1e-3)
        np.testing.assert_allclose(by_name.separability_, by_number.separability_[::-1, ::-1])

    def test_named_beliefs_find_their_classes(self, small, fitted_small):
        X, y, beliefs = small
        order = np.random.default_rng(0).permutation(9)
        named = ClassBeliefs(beliefs[np.ix_(order, order)], (order + 1).tolist())
        for given in (named, named.to_frame()):
            model = quiet_fit(CPPC(4, beliefs=given, random_state=0), X, y)
            np.testing.assert_array_equal(model.beliefs_, beliefs)
            np.testing.assert_array_equal(model.labels_, fitted_small.labels_)

    def test_float32(self, eleven):
        X, y, beliefs = eleven
        models = [
            quiet_fit(CPPC(5, beliefs=beliefs, confidence=0.2, random_state=0), X.astype(dtype), y)
            for dtype in (np.float64, np.float32)
        ]
        double, single = models
        assert single.responsibilities_.dtype == np.float32
        assert (double.labels_ == single.labels_).mean() > 0.999
        assert single.lower_bound_ == pytest.approx(double.lower_bound_, abs=1e-3)
        for name in ("bic", "icl", "cbic"):
            assert single.criteria_[name] == pytest.approx(double.criteria_[name], rel=1e-4)

    @pytest.mark.parametrize("settings", [{}, {"n_init": 2, "init": "paper"}])
    def test_number_of_threads(self, eleven, settings):
        X, y, beliefs = eleven
        models = [
            quiet_fit(CPPC(6, beliefs=beliefs, random_state=0, n_jobs=n_jobs, max_iter=10, **settings), X, y)
            for n_jobs in (1, 2)
        ]
        np.testing.assert_array_equal(models[0].responsibilities_, models[1].responsibilities_)
        np.testing.assert_array_equal(models[0].means_, models[1].means_)
        assert models[0].lower_bounds_ == models[1].lower_bounds_

    def test_restarts_keep_the_highest_objective(self, small):
        X, y, beliefs = small
        many, one = (
            quiet_fit(CPPC(6, beliefs=beliefs, init="paper", random_state=0, n_init=n_init), X, y)
            for n_init in (2, 1)
        )
        assert many.lower_bound_ >= one.lower_bound_
        assert many.responsibilities_.shape == (len(X), 6)

    def test_restarts_that_meet_within_rounding(self):
        """The first of two runs that differ by rounding is the best one, so it must keep its table."""
        runs = [
            ClassRun(None, [bound], True, 0, prob=np.full((1, 1), bound), settled=True)
            for bound in (-1.5, -1.0 - 1e-14, -1.0)
        ]
        leading: list[ClassRun] = []
        for run in runs:
            _keep_leader(leading, run)
            best = best_run(leading.__getitem__, range(len(leading)), tol=0, max_iter=0)
            assert best.prob is not None
        assert [run.prob is None for run in runs] == [True, False, False]

    @pytest.mark.parametrize("n_components", [2, 3])
    def test_restarts_with_no_more_clusters_than_classes(self, n_components):
        """The first start is the classes; further ones find higher objectives, the same ones every time."""
        X, y = load_wine(return_X_y=True)
        X = StandardScaler().fit_transform(X)
        rng = np.random.default_rng(1)
        noisy = np.where(rng.random(len(y)) < 0.3, rng.integers(3, size=len(y)), y)
        one, first, many, again = (
            quiet_fit(
                CPPC(n_components, beliefs=0.6 * np.eye(3) - 0.3, shrinkage=0, n_init=n_init, random_state=0),
                X,
                noisy,
            )
            for n_init in (1, 1, 3, 3)
        )
        np.testing.assert_array_equal(one.means_, first.means_)
        assert many.lower_bound_ >= one.lower_bound_ + (0.01 if n_components == 3 else 0.0)
        np.testing.assert_array_equal(many.labels_, again.labels_)


class TestUnlabelledRows:
    def test_markers_are_the_same(self, small):
        X, y, beliefs = small
        gaps = np.arange(len(y)) % 4 == 0
        results = [
            quiet_fit(CPPC(5, beliefs=beliefs, init="paper", random_state=0), X, marked)
            for marked in (
                np.where(gaps, -1, y),
                np.where(gaps, np.nan, y),
                np.where(gaps, None, y.astype(object)),
                pd.Series(y).mask(gaps).astype("Int64"),
            )
        ]
        for result in results[1:]:
            np.testing.assert_array_equal(result.labels_, results[0].labels_)
        assert results[0].contingency_.sum() == (~gaps).sum()
        assert len(results[0].labels_) == len(y)

    def test_they_take_the_posterior_of_the_mixture(self, small):
        X, y, beliefs = small
        gaps = np.arange(len(y)) % 4 == 0
        model = quiet_fit(CPPC(5, beliefs=beliefs, random_state=0), X, np.where(gaps, -1, y))
        np.testing.assert_allclose(model.responsibilities_[gaps], model.predict_proba(X[gaps]), atol=1e-9)
        assert np.abs(model.responsibilities_[~gaps] - model.predict_proba(X[~gaps])).max() > 1e-3

    def test_mostly_unlabelled(self, eleven):
        X, y, beliefs = eleven
        seen = np.where(np.arange(len(y)) % 10 == 0, y, -1)
        model = quiet_fit(CPPC(4, beliefs=beliefs, random_state=0), X, seen)
        truth = np.array([0, 1, 2, 2, 3, 4, 4, 4, 4, 4])[y]
        assert adjusted_rand_score(truth, model.labels_) > 0.95


class TestSampledOmega:
    def test_mild_weights_are_sampled(self, small):
        X, y, beliefs = small
        beliefs = 0.9 * beliefs
        model = quiet_fit(CPPC(4, beliefs=beliefs, confidence=0.05, mixing="sampled", random_state=0), X, y)
        assert model.mixing_["effective_sample_size"] > 100
        assert model.mixing_["n_ignored"] == 0
        assert model.weights_.sum() == pytest.approx(1.0)
        plain = quiet_fit(CPPC(4, beliefs=beliefs, confidence=0.05, random_state=0), X, y)
        assert not hasattr(plain, "mixing_")
        assert np.abs(plain.weights_ - model.weights_).max() < 0.1
        assert model.n_iter_ < 500

    def test_printed_weights_fall_back_with_a_warning(self, eleven):
        X, y, beliefs = eleven
        model = CPPC(
            4,
            beliefs=beliefs,
            confidence=0.2,
            normalize="none",
            mixing="sampled",
            random_state=0,
            max_iter=60,
        )
        with pytest.warns(ApproximationWarning, match="Omega"):
            model.fit(X, y)
        assert model.mixing_["smallest_effective_sample_size"] < 2
        assert model.mixing_["n_ignored"] > 0


class TestRealData:
    def test_digits_in_three_coarse_classes(self):
        X, digits = load_digits(return_X_y=True)
        X = PCA(15, random_state=0).fit_transform(X)
        beliefs = np.full((3, 3), -1.0)
        np.fill_diagonal(beliefs, 0.1)
        fits = {k: quiet_fit(CPPC(k, beliefs=beliefs, random_state=0), X, digits // 4) for k in (9, 10, 13)}
        chosen = min(fits, key=lambda k: fits[k].criteria_["cbic"])
        assert 9 < chosen < 13
        assert adjusted_rand_score(digits, fits[chosen].labels_) >= 0.75
        printed = min(fits, key=lambda k: fits[k].criteria_["cbic_paper"])
        assert printed < chosen

    @pytest.mark.parametrize("strength", [0.5, 1.0])
    def test_wine_with_a_class_split_in_two_is_mended(self, strength):
        X, y = load_wine(return_X_y=True)
        X = PCA(5, random_state=0).fit_transform(StandardScaler().fit_transform(X))
        half = np.random.default_rng(0).random(len(y)) < 0.5
        named = np.where((y == 1) & half, 3, y)
        beliefs = ClassBeliefs.keep(range(4)).merge(1, 3, strength)
        fits = {k: quiet_fit(CPPC(k, beliefs=beliefs, random_state=0), X, named) for k in (2, 3, 4)}
        chosen = min(fits, key=lambda k: fits[k].criteria_["cbic"])
        assert chosen == 3
        assert adjusted_rand_score(y, fits[3].labels_) >= 0.95


class TestManners:
    def test_new_rows_use_the_mixture_alone(self, small, fitted_small):
        (X, y, _), model = small, fitted_small
        proba = model.predict_proba(X + 0.5)
        np.testing.assert_allclose(proba.sum(axis=1), 1.0)
        np.testing.assert_array_equal(model.predict(X + 0.5), proba.argmax(axis=1))
        assert model.score(X, y) == pytest.approx(model.score_samples(X).mean())
        rows, labels = model.sample(500)
        assert rows.shape == (500, 2)
        assert set(labels) <= set(range(4))

    def test_clone_pickle_refit_and_pipeline(self, small):
        X, y, beliefs = small
        model = CPPC(beliefs=ClassBeliefs(beliefs, range(1, 10)), random_state=0)
        assert model.n_components is None
        fitted = quiet_fit(clone(model), X, y)
        assert fitted.n_components is None
        assert len(fitted.means_) == fitted.contingency_.shape[1]
        twin = pickle.loads(pickle.dumps(fitted))
        np.testing.assert_array_equal(twin.predict(X), fitted.predict(X))
        fitted.set_params(n_components=4)
        assert quiet_fit(fitted, X, y).means_.shape == (4, 2)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.set_params(n_components=3)
            scores = cross_val_score(make_pipeline(StandardScaler(), clone(model)), X, y, cv=2)
        assert np.isfinite(scores).all()

    def test_convergence_warning_names_a_remedy(self, small):
        X, y, beliefs = small
        with pytest.warns(ConvergenceWarning, match="max_iter=2"):
            model = CPPC(5, beliefs=beliefs, init="paper", max_iter=2, random_state=0).fit(X, y)
        assert not model.converged_
        assert model.n_iter_ == 2

    def test_predict_before_fit(self):
        with pytest.raises(NotFittedError):
            CPPC().predict(np.zeros((2, 2)))

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"n_components": 0}, "n_components must be a whole number >= 1, got 0"),
            ({"n_components": 2.5}, "n_components must be a whole number"),
            ({"n_components": 10_000}, "10000 components cannot be fitted to n_samples=132"),
            ({"confidence": -0.1}, "confidence must be a finite number >= 0, got -0.1"),
            ({"confidence": np.nan}, "confidence must be a finite number"),
            ({"n_clusters": "many"}, "n_clusters must be one of auto; got 'many'"),
            ({"shrinkage": -1.0}, 'shrinkage is -1.0: pass "auto"'),
            ({"init": "random"}, "init must be one of evidence, paper"),
            (
                {"confidence": 1.5, "normalize": "none"},
                "a confidence above 1 needs a criterion_weight of its own",
            ),
            ({"criterion_weight": 1.5}, "criterion_weight must lie between 0 and 1, got 1.5"),
            ({"normalize": "rows"}, "normalize must be one of class, none; got 'rows'"),
            ({"sweep": "random"}, "sweep must be one of auto, sequential, block"),
            ({"mixing": "exact"}, "mixing must be one of ignore, sampled"),
            ({"covariance_type": "banded"}, "covariance_type must be one of"),
            ({"tol": -1.0}, "tol must be a finite number >= 0"),
            ({"max_iter": 0}, "max_iter must be a whole number >= 1"),
            ({"beliefs": np.zeros((3, 3))}, "3"),
            ({"beliefs": np.triu(np.ones((9, 9)))}, r"\(0, 1\)"),
            ({"beliefs": np.full((9, 9), 2.0)}, r"\(0, 0\)"),
            ({"beliefs": np.full((9, 9), np.nan)}, r"\(0, 0\)"),
            ({"beliefs": ClassBeliefs.keep(list("abcdefghi"))}, "beliefs say nothing about 1"),
        ],
    )
    def test_bad_parameters(self, small, settings, message):
        X, y, _ = small
        with pytest.raises(ValueError, match=message):
            CPPC(**settings).fit(X, y)

    def test_bad_y(self, small):
        X, y, _ = small
        with pytest.raises(ValueError, match="requires y to be passed"):
            CPPC().fit(X, None)
        with pytest.raises(ValueError, match="y has 131 labels, but X has 132 rows"):
            CPPC().fit(X, y[:-1])
        with pytest.raises(ValueError, match="no labelled row"):
            CPPC().fit(X, np.full(len(y), -1))
        with pytest.raises(ValueError, match="continuous"):
            CPPC().fit(X, X[:, 0])
        with pytest.raises(ValueError, match="one label per sample"):
            CPPC().fit(X, y[:, np.newaxis])

    def test_smallest_problems(self):
        X = np.arange(8.0).reshape(4, 2)
        for n_components in (None, 1):
            model = quiet_fit(CPPC(n_components, reg_covar=0.1, random_state=0), X, np.zeros(4, dtype=int))
            assert model.n_occupied_ == 1
            np.testing.assert_allclose(model.means_, X.mean(axis=0)[np.newaxis])
            assert model.converged_

    def test_report_names_what_was_split(self, fitted_eleven):
        model = fitted_eleven(5)
        decisions = {(decision.kind, tuple(decision.classes)) for decision in model.report().decisions}
        assert ("split", (1,)) in decisions
        with pytest.raises(NotFittedError):
            CPPC().report()
