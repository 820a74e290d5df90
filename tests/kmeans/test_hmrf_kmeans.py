"""HMRFKMeans and its settings as a whole."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import sklearn
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from linkwise import Constraints
from linkwise.exceptions import InfeasibleConstraints
from linkwise.kmeans.hmrf_kmeans import HMRFKMeans
from linkwise.kmeans.variants import MPCKMeans, PCKMeans
from linkwise.metrics import pairwise_f1
from linkwise.persistence import load_model, save_model
from tests.kmeans import kmeans_oracle as oracle
from tests.kmeans.kmeans_cases import COMBINATIONS, fit_quietly, random_data, random_links
from tests.repeats import LONG, examples, for_seeds
from tests.sklearn_checks import estimator_checks

ENGINES = ["auto", "icm", "belief_propagation", "lp", "exact"]


@estimator_checks(
    HMRFKMeans(random_state=0),
    HMRFKMeans(metric="full", n_init=1, random_state=0),
    HMRFKMeans(metric="per_cluster", n_init=1, random_state=0),
    PCKMeans(random_state=0),
    MPCKMeans(n_init=1, random_state=0),
)
def test_sklearn_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        check(estimator)


def assert_never_rises(model):
    history = model.objectives_
    assert np.isfinite(history).all()
    assert np.diff(history).max() <= 1e-10 * (1 + np.abs(history).max())


class TestObjective:
    @pytest.mark.parametrize(
        ("name", "kind", "engine"),
        [
            (*combination, engine)
            for i, combination in enumerate(COMBINATIONS)
            for j, engine in enumerate(ENGINES)
            if LONG or (i // 2 + j) % 2 == 0
        ],
    )
    def test_never_rises_and_hard_links_hold(self, name, kind, engine):
        for seed in range(examples(4, 3)):
            rng = np.random.default_rng(seed)
            n = int(rng.integers(12, 40))
            X, _ = random_data(rng, name, n, 3, 3)
            # Engines that prove optimality get fewer links: many random ones make hard problems.
            links = random_links(rng, n, n if engine in ("icm", "belief_propagation") else n // 2)
            if seed % 2:
                free = np.setdiff1d(np.arange(n), links.pairs)
                if free.size > 1:
                    links = links + Constraints(n, must_link=[free[:2].tolist()])
            model = HMRFKMeans(
                3,
                distortion=name,
                metric=kind,
                inference=engine,
                penalty="constant" if seed % 4 == 3 else "distance",
                weight=(0.5, 2.0) if seed % 3 == 2 else 1.0,
                penalty_bound="diameter" if seed % 4 == 2 else "box",
                n_init=1,  # every start has a history of its own; only one is kept
                tol=0.0,
                max_iter=15,
                random_state=seed,
            )
            fit_quietly(model, X, links)
            assert_never_rises(model)
            assert not model.violations_[np.isinf(links.weights)].any()
            np.testing.assert_array_equal(model.violations_, links.violations(model.labels_))

    @pytest.mark.parametrize(
        ("name", "kind", "penalty"),
        [
            (*combination, penalty)
            for i, combination in enumerate(COMBINATIONS)
            for j, penalty in enumerate(("distance", "constant"))
            if LONG or (i // 2 + j) % 2 == 0  # every metric with both penalties
        ],
    )
    def test_equals_the_sum_written_out(self, name, kind, penalty):
        rng = np.random.default_rng(3)
        X, _ = random_data(rng, name, 25, 3, 3)
        links = random_links(rng, 25, 30)
        options = {"distortion": name, "metric": kind, "penalty": penalty}
        model = fit_quietly(HMRFKMeans(3, **options, weight=(0.7, 1.3), n_init=2, random_state=0), X, links)
        seen = oracle.prepared(X, name)
        signed = [
            (tuple(pair), 0.7 * w if w > 0 else 1.3 * w)
            for pair, w in zip(links.pairs, links.weights, strict=True)
        ]
        unary = oracle.unary_table(seen, model.cluster_centers_, model.metric_, kind, name)
        tables = oracle.link_tables(seen, signed, model.metric_, kind, name, penalty, 3)
        expected = oracle.objective(unary, tables, signed, model.labels_)
        expected += oracle.metric_term(seen, model.metric_, kind, name, 3)
        assert model.objective_ == pytest.approx(expected, rel=1e-9)
        assert model.objective_ == model.objectives_[-1]
        assert len(model.objectives_) == 3 * model.n_iter_ + 1

    def test_links_at_unit_cost_change_the_clusters_for_the_better(self):
        X, y = load_iris(return_X_y=True)
        hard = Constraints.sample(y, 200, overlap=True, random_state=0)
        links = Constraints(150, hard.must_link, hard.cannot_link, weight=1.0)
        plain = HMRFKMeans(3, random_state=0).fit(X)
        linked = HMRFKMeans(3, random_state=0).fit(X, constraints=links)
        assert pairwise_f1(y, linked.labels_) > pairwise_f1(y, plain.labels_) + 0.05
        assert linked.violations_.sum() < 5


class TestAgainstKMeans:
    @for_seeds(8)
    def test_equals_lloyd_from_the_same_start(self, seed):
        rng = np.random.default_rng(seed)
        X, _ = random_data(rng, "euclidean", 200, 3, 4)
        start = X[rng.choice(200, size=4, replace=False)]
        theirs = KMeans(4, init=start, n_init=1, algorithm="lloyd", tol=0.0, max_iter=300).fit(X)
        for ours in (
            HMRFKMeans(4, metric=None, init=start, tol=0.0, max_iter=300),
            PCKMeans(4, init=start, tol=0.0, max_iter=300),
        ):
            ours.fit(X)
            np.testing.assert_array_equal(ours.labels_, theirs.labels_)
            np.testing.assert_allclose(ours.cluster_centers_, theirs.cluster_centers_, rtol=1e-10)
            assert ours.objective_ == pytest.approx(theirs.inertia_, rel=1e-10)
            assert ours.score(X) == pytest.approx(theirs.score(X), rel=1e-10)
            np.testing.assert_allclose(ours.transform(X), theirs.transform(X) ** 2, rtol=1e-6, atol=1e-9)

    @pytest.mark.parametrize(("name", "kind"), COMBINATIONS)
    def test_without_links_labels_are_those_of_predict(self, name, kind):
        X, _ = random_data(np.random.default_rng(0), name, 80, 3, 3)
        for links in (None, Constraints(80)):
            model = HMRFKMeans(3, distortion=name, metric=kind, random_state=0)
            fit_quietly(model, X, links)
            np.testing.assert_array_equal(model.labels_, model.predict(X))
            np.testing.assert_array_equal(model.labels_, model.transform(X).argmin(axis=1))
            assert model.violations_.sum() == 0
            assert model.inference_["exact"]


class TestInvariance:
    @pytest.mark.parametrize(("name", "kind"), COMBINATIONS)
    def test_order_of_rows_and_features(self, name, kind):
        rng = np.random.default_rng(5)
        X, _ = random_data(rng, name, 40, 4, 3)
        links = random_links(rng, 40, 15)
        start = X[:3]
        rows, features = rng.permutation(40), rng.permutation(4)
        options = {"distortion": name, "metric": kind, "inference": "exact"}
        model = fit_quietly(HMRFKMeans(3, **options, init=start), X, links)
        twin = fit_quietly(
            HMRFKMeans(3, **options, init=start[:, features]), X[rows][:, features], links[rows]
        )
        np.testing.assert_array_equal(model.labels_[rows], twin.labels_)
        np.testing.assert_allclose(model.cluster_centers_[:, features], twin.cluster_centers_, rtol=1e-8)
        assert model.objective_ == pytest.approx(twin.objective_, rel=1e-9)

    @pytest.mark.parametrize("kind", ["diag", "full", "per_cluster"])
    def test_units_do_not_matter_to_a_learned_metric(self, kind):
        rng = np.random.default_rng(6)
        X, _ = random_data(rng, "euclidean", 60, 3, 3)
        links = random_links(rng, 60, 20)
        model, twin = (
            fit_quietly(HMRFKMeans(3, metric=kind, inference="exact", init=data[:3]), data, links)
            for data in (X, 1000.0 * X + 7.0)
        )
        np.testing.assert_array_equal(model.labels_, twin.labels_)
        np.testing.assert_allclose(model.metric_, twin.metric_ * 1e6, rtol=1e-5)

    def test_threads_and_restarts(self):
        rng = np.random.default_rng(7)
        X, _ = random_data(rng, "euclidean", 300, 3, 5)
        links = random_links(rng, 300, 60)
        one = fit_quietly(HMRFKMeans(5, random_state=0), X, links)
        two = fit_quietly(HMRFKMeans(5, random_state=0, n_jobs=2), X, links)
        np.testing.assert_array_equal(one.labels_, two.labels_)
        np.testing.assert_array_equal(one.objectives_, two.objectives_)
        many = fit_quietly(HMRFKMeans(5, random_state=0, n_init=6), X, links)
        assert many.objective_ <= one.objective_


class TestEdges:
    def test_contradictory_soft_links(self):
        X = np.array([[0.0], [1.0], [10.0], [11.0]])
        links = Constraints(4, [(0, 1), (1, 2)], [(0, 2), (0, 3)], weight=[1.0, 1.0, 1.0, 1.0])
        start = [[0.0], [10.0]]
        model = HMRFKMeans(
            2, metric=None, penalty="constant", inference="exact", init=start, compute_gap=True
        )
        model.fit(X, constraints=links)
        assert model.labels_[0] == model.labels_[1] != model.labels_[2] == model.labels_[3]
        assert model.violations_.sum() == 1
        assert model.inference_["exact"]
        np.testing.assert_allclose(model.inference_["details"]["gaps"], 0.0, atol=1e-9)
        assert len(model.inference_["details"]["gaps"]) == model.n_iter_ + 1

    @pytest.mark.parametrize("engine", ENGINES)
    def test_one_cluster(self, engine):
        X = np.random.default_rng(0).normal(size=(10, 2))
        links = Constraints(10, [(0, 1)], [(2, 3)], weight=1.0)
        model = HMRFKMeans(1, inference=engine).fit(X, constraints=links)
        assert (model.labels_ == 0).all()
        assert model.violations_.tolist() == [False, True]
        np.testing.assert_allclose(model.cluster_centers_[0], X.mean(axis=0))
        with pytest.raises(InfeasibleConstraints):
            HMRFKMeans(1, inference=engine).fit(X, constraints=Constraints(10, cannot_link=[(2, 3)]))

    @pytest.mark.parametrize("kind", [None, "diag", "full", "per_cluster"])
    def test_more_clusters_than_distinct_rows(self, kind):
        X = np.repeat([[0.0, 1.0], [5.0, 2.0]], 5, axis=0)
        model = HMRFKMeans(4, metric=kind, random_state=0)
        with pytest.warns(ConvergenceWarning, match="2 of 4 clusters"):
            model.fit(X)
        assert len(np.unique(model.labels_)) == 2
        assert_never_rises(model)
        assert np.isfinite(model.cluster_centers_).all()

    def test_identical_rows(self):
        model = fit_quietly(HMRFKMeans(2, random_state=0), np.ones((6, 3)))
        assert np.isfinite(model.objective_)
        np.testing.assert_array_equal(model.metric_, np.ones(3))

    @pytest.mark.parametrize("kind", ["diag", "full", "per_cluster"])
    def test_constant_features_keep_a_weight_of_one_and_do_not_matter(self, kind):
        rng = np.random.default_rng(0)
        X, _ = random_data(rng, "euclidean", 60, 2, 3)
        links = random_links(rng, 60, 20)
        padded = np.column_stack([X, np.full(60, 0.1)])
        options = {"metric": kind, "inference": "exact", "shrinkage": 0.0}
        model = fit_quietly(HMRFKMeans(3, **options, init=X[:3]), X, links)
        twin = fit_quietly(HMRFKMeans(3, **options, init=padded[:3]), padded, links)
        np.testing.assert_array_equal(model.labels_, twin.labels_)
        assert model.objective_ == pytest.approx(twin.objective_, rel=1e-9)
        assert (
            (twin.metric_[..., -1] == np.eye(3)[2]).all()
            if kind == "full"
            else (twin.metric_[..., -1] == 1).all()
        )

    @pytest.mark.parametrize("kind", ["full", "per_cluster"])
    def test_more_features_than_rows(self, kind):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(8, 20))
        links = random_links(rng, 8, 6)
        model = fit_quietly(HMRFKMeans(3, metric=kind, random_state=0), X, links)
        assert_never_rises(model)
        values = np.linalg.eigvalsh(model.metric_) if kind == "full" else model.metric_
        assert (values > 0).all()
        assert np.isfinite(values).all()

    def test_empty_clusters_are_given_a_row(self):
        X = np.array([[0.0], [1.0], [2.0], [30.0]])
        start = np.array([[1.0], [500.0], [900.0]])
        model = HMRFKMeans(3, metric=None, init=start).fit(X)
        assert model.n_reseeds_ >= 1
        assert len(np.unique(model.labels_)) == 3
        assert_never_rises(model)

    def test_empty_clusters_when_every_row_is_linked(self):
        X = np.array([[0.0], [1.0], [2.0], [30.0]])
        start = np.array([[1.0], [500.0]])
        chained = Constraints(4, must_link=[(0, 1), (1, 2), (2, 3)])
        with pytest.warns(ConvergenceWarning, match="1 of 2 clusters have no rows"):
            model = HMRFKMeans(2, metric=None, init=start).fit(X, constraints=chained)
        assert (model.labels_ == 0).all()
        soft = Constraints(4, must_link=[(0, 1), (1, 2), (2, 3)], weight=0.1)
        model = HMRFKMeans(2, metric=None, init=start).fit(X, constraints=soft)
        assert model.labels_[3] != model.labels_[0] == model.labels_[1] == model.labels_[2]
        assert_never_rises(model)

    def test_infeasible_hard_links(self):
        X = np.random.default_rng(0).normal(size=(6, 2))
        triangle = Constraints(6, cannot_link=[(0, 1), (1, 2), (0, 2)])
        with pytest.raises(InfeasibleConstraints):
            HMRFKMeans(2).fit(X, constraints=triangle)
        labels = HMRFKMeans(3, random_state=0).fit(X, constraints=triangle).labels_
        assert len(set(labels[:3].tolist())) == 3

    @pytest.mark.parametrize("engine", ENGINES)
    def test_hard_links_of_labels_are_kept(self, engine):
        X, y = load_iris(return_X_y=True)
        known = np.where(np.arange(150) % 5 == 0, y, -1)
        links = Constraints.from_labels(known)
        model = HMRFKMeans(3, inference=engine, random_state=0).fit(X, constraints=links)
        assert model.violations_.sum() == 0
        assert pairwise_f1(known[known >= 0], model.labels_[known >= 0]) == 1.0

    def test_max_iter_warns(self):
        X, _ = random_data(np.random.default_rng(0), "euclidean", 200, 2, 6)
        with pytest.warns(ConvergenceWarning, match="max_iter=1"):
            model = HMRFKMeans(6, max_iter=1, random_state=0).fit(X)
        assert not model.converged_
        assert model.n_iter_ == 1


class TestBadInput:
    X = np.random.default_rng(0).normal(size=(10, 2))

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"n_clusters": 0}, "n_clusters must be a whole number"),
            ({"n_clusters": 11}, "n_samples=10 should be >= n_clusters=11"),
            ({"weight": -1.0}, "weight must be"),
            ({"weight": (1.0, 2.0, 3.0)}, "weight must be"),
            ({"weight": float("inf")}, "weight must be"),
            ({"penalty": "square"}, "penalty must be one of"),
            ({"penalty_bound": "big"}, "penalty_bound must be one of"),
            ({"init": "random"}, "init must be"),
            ({"init": np.zeros((2, 3))}, "init must hold finite centres"),
            ({"metric_weight": 0.0}, "metric_weight must be"),
            ({"smoothing": 1.0}, "smoothing must lie"),
            ({"tol": -1.0}, "tol must be"),
            ({"distortion": "cosine", "metric": "full"}, "'euclidean' only"),
        ],
    )
    def test_parameters(self, options, message):
        with pytest.raises(ValueError, match=message):
            HMRFKMeans(**{"n_clusters": 2, **options}).fit(self.X)

    def test_data(self):
        with pytest.raises(ValueError, match="NaN"):
            HMRFKMeans(2).fit(np.array([[1.0], [np.nan], [2.0]]))
        with pytest.raises(TypeError, match=r"[Ss]parse"):
            HMRFKMeans(2).fit(csr_matrix(np.eye(3)))
        with pytest.raises(ValueError, match="row 2 holds -1"):
            HMRFKMeans(2, distortion="kl").fit([[1.0, 2.0], [2.0, 1.0], [1.0, -1.0]])
        with pytest.raises(ValueError, match="row 1 is zero"):
            HMRFKMeans(2, distortion="cosine").fit([[1.0, 2.0], [0.0, 0.0], [1.0, -1.0]])
        with pytest.raises(TypeError, match=r"linkwise\.Constraints"):
            HMRFKMeans(2).fit(self.X, constraints=[(0, 1)])
        with pytest.raises(ValueError, match="about 4 samples"):
            HMRFKMeans(2).fit(self.X, constraints=Constraints(4))
        with pytest.raises(NotFittedError):
            HMRFKMeans(2).predict(self.X)


class TestSparse:
    @pytest.mark.parametrize("kind", [None, "diag"])
    @pytest.mark.parametrize("name", ["cosine", "kl", "i_divergence"])
    def test_equals_dense(self, name, kind):
        rng = np.random.default_rng(0)
        X = rng.poisson(0.6, size=(60, 15)).astype(float)
        X[:, 0] += 1.0
        links = random_links(rng, 60, 25)
        options = {"distortion": name, "metric": kind, "inference": "exact"}
        dense, sparse = (
            fit_quietly(HMRFKMeans(3, **options, init=X[:3]), data, links) for data in (X, csr_matrix(X))
        )
        np.testing.assert_array_equal(dense.labels_, sparse.labels_)
        np.testing.assert_allclose(dense.objective_, sparse.objective_, rtol=1e-9)
        np.testing.assert_array_equal(sparse.predict(csr_matrix(X)), dense.predict(X))
        assert_never_rises(sparse)


class TestSettings:
    def test_are_what_they_say(self):
        rng = np.random.default_rng(0)
        X, _ = random_data(rng, "euclidean", 60, 3, 3)
        links = random_links(rng, 60, 30)
        for setting, general in (
            (PCKMeans(3, random_state=0), HMRFKMeans(3, metric=None, penalty="constant", random_state=0)),
            (MPCKMeans(3, random_state=0), HMRFKMeans(3, random_state=0)),
            (
                MPCKMeans(3, metric="per_cluster", random_state=0),
                HMRFKMeans(3, metric="per_cluster", random_state=0),
            ),
        ):
            left, right = fit_quietly(setting, X, links), fit_quietly(general, X, links)
            np.testing.assert_array_equal(left.objectives_, right.objectives_)
            np.testing.assert_array_equal(left.predict(X), right.predict(X))
            assert "distortion" not in setting.get_params()

    @pytest.mark.parametrize(
        ("name", "metric", "penalty"),
        [
            ("euclidean", "diag", "distance"),
            ("cosine", None, "constant"),
            ("kl", None, "constant"),
            ("i_divergence", None, "distance"),
        ],
    )
    def test_auto_depends_on_the_distortion(self, name, metric, penalty, tmp_path):
        rng = np.random.default_rng(0)
        X, _ = random_data(rng, name, 60, 5, 3)
        links = random_links(rng, 60, 30)
        settings = {"distortion": name, "n_init": 2, "random_state": 0}
        left = fit_quietly(HMRFKMeans(3, **settings), X, links)
        right = fit_quietly(HMRFKMeans(3, metric=metric, penalty=penalty, **settings), X, links)
        np.testing.assert_array_equal(left.objectives_, right.objectives_)
        other = "distance" if penalty == "constant" else "constant"
        changed = fit_quietly(HMRFKMeans(3, metric=metric, penalty=other, **settings), X, links)
        assert changed.objective_ != left.objective_
        save_model(left, tmp_path / "model")
        again = load_model(tmp_path / "model")
        np.testing.assert_array_equal(again.predict(X), left.predict(X))
        assert again.get_params() == left.get_params()

    def test_words_get_no_weights(self):
        """With many more columns than rows no metric can be learned: .40 with "diag", .87 without."""
        rng = np.random.default_rng(0)
        topics = 0.8 * rng.dirichlet(np.full(600, 0.3)) + 0.2 * rng.dirichlet(np.full(600, 0.05), size=3)
        y = np.arange(90) % 3
        X = csr_matrix(np.array([rng.multinomial(60, topics[topic]) for topic in y], dtype=float))
        drawn = Constraints.sample(y, 60, overlap=True, random_state=0)
        links = Constraints(90, drawn.must_link, drawn.cannot_link, weight=1.0)
        model, weighted = (
            fit_quietly(HMRFKMeans(3, distortion="cosine", random_state=0, **options), X, links)
            for options in ({}, {"metric": "diag"})
        )
        assert model.metric_ is None
        assert pairwise_f1(y, model.labels_) > pairwise_f1(y, weighted.labels_) + 0.1

    @pytest.mark.parametrize("routing", [False, True])
    def test_in_a_grid_search_over_a_pipeline(self, routing):
        X, y = load_iris(return_X_y=True)
        links = Constraints.sample(y, 60, overlap=True, certainty=0.95, random_state=0)
        with sklearn.config_context(enable_metadata_routing=routing):
            pipeline = Pipeline(
                [("scale", StandardScaler()), ("model", MPCKMeans(3, n_init=1, random_state=0))]
            )
            search = GridSearchCV(pipeline, {"model__metric": ["diag", "full"]}, cv=3, error_score="raise")
            search.fit(X, **{"constraints" if routing else "model__constraints": links})
        assert np.isfinite(search.cv_results_["mean_test_score"]).all()
        assert not hasattr(clone(search.best_estimator_["model"]), "labels_")
