"""COPKMeans: links never broken, inertia never rising, K-means without links."""

from __future__ import annotations

import itertools
import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning

from linkwise import Constraints, COPKMeans
from linkwise.exceptions import (
    ApproximationWarning,
    InfeasibleConstraints,
    InferenceBudgetExceeded,
)
from linkwise.kmeans.hard.descent import run_hard_descent
from linkwise.metrics import pairwise_f1
from tests.kmeans.hard.test_assignment import GROTZSCH, find_nothing, hard_to_colour, wide_case
from tests.repeats import LONG, examples, for_seeds, share
from tests.sklearn_checks import estimator_checks


@estimator_checks(
    COPKMeans(random_state=0),
    COPKMeans(3, init="k-means++", n_init=2, random_state=0),
)
def test_sklearn_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        check(estimator)


def fit_quietly(model, X, links=None):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, constraints=links)


def random_problem(rng):
    """Overlapping clusters with true links, sometimes with repeated rows."""
    n, k = int(rng.integers(6, 60)), int(rng.integers(1, 6))
    k = min(k, n)
    y = rng.integers(k, size=n)
    X = rng.normal(size=(k, 3))[y] + rng.normal(size=(n, 3))
    if rng.random() < 0.3:
        X = np.round(X)
    n_pairs = int(rng.integers(1, min(3 * n, n * (n - 1) // 2)))
    return X, y, k, Constraints.sample(y, n_pairs, overlap=True, random_state=rng)


def assert_falling(history):
    assert (np.diff(history) <= 1e-9 * (abs(history[0]) + 1e-12)).all()


def inertia(X, labels, centres):
    return sum(float(((x - centres[k]) ** 2).sum()) for x, k in zip(X, labels, strict=True))


@pytest.mark.parametrize("load", [load_iris, load_wine])
def test_keeps_overlapping_true_links(load):
    X, y = load(return_X_y=True)
    for n_pairs, seed in itertools.product((75, 150, 225, 300), range(8 if LONG else 3)):
        links = Constraints.sample(y, n_pairs, overlap=True, random_state=seed)
        # Few starts: each keeps the links. One draw has the default.
        model = COPKMeans(3, random_state=seed, **({"n_init": 2} if seed else {})).fit(X, constraints=links)
        assert not links.violations(model.labels_).any()
        assert model.inference_["exact"]
        assert model.converged_
        assert_falling(model.objectives_)


def test_links_help_on_wine():
    X, y = load_wine(return_X_y=True)
    links = Constraints.sample(y, 300, overlap=True, random_state=0)
    with_links = COPKMeans(3, random_state=0).fit(X, constraints=links)
    without = COPKMeans(3, random_state=0, n_init=5).fit(X)
    assert pairwise_f1(y, with_links.labels_) > pairwise_f1(y, without.labels_) + 0.2


def test_random_fits_keep_links_and_never_rise():
    rng = np.random.default_rng(0)
    n_reseeds = 0
    for seed in range(examples(100)):
        X, _, k, links = random_problem(rng)
        init = rng.choice(["constraints", "k-means++", "far"])
        # Centres far from the data leave clusters empty.
        start = X[:1] + 50.0 * rng.normal(size=(k, 3)) if init == "far" else init
        model = fit_quietly(COPKMeans(k, init=start, n_init=2, tol=0.0, random_state=seed), X, links)
        assert not links.violations(model.labels_).any()
        assert_falling(model.objectives_)
        assert len(model.objectives_) == 2 * model.n_iter_ + 1
        assert model.inertia_ == pytest.approx(inertia(X, model.labels_, model.cluster_centers_))
        assert model.inertia_ == model.objectives_[-1]
        n_reseeds += model.n_reseeds_
        if model.converged_:
            for cluster in np.unique(model.labels_):
                mean = X[model.labels_ == cluster].mean(axis=0)
                np.testing.assert_allclose(model.cluster_centers_[cluster], mean, atol=1e-9)
    assert n_reseeds > share(10)


def test_first_assignment_is_the_best_one_there_is():
    rng = np.random.default_rng(1)
    n_checked = 0
    for _ in range(examples(60)):
        n, k = 6, int(rng.integers(2, 4))
        X, centres, y = rng.normal(size=(n, 2)), rng.normal(size=(k, 2)), rng.integers(k, size=n)
        links = Constraints.sample(y, int(rng.integers(1, 10)), overlap=True, random_state=rng)
        best = min(
            inertia(X, labels, centres)
            for labels in itertools.product(range(k), repeat=n)
            if not links.violations(labels).any()
        )
        model = fit_quietly(COPKMeans(k, init=centres, max_iter=1), X, links)
        if model.n_reseeds_ == 0:
            assert model.objectives_[0] == pytest.approx(best, rel=1e-9)
            n_checked += 1
    assert n_checked > share(40)


@for_seeds(10)
def test_without_links_it_is_kmeans(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(5, 4))[rng.integers(5, size=300)] + 1e3 + 0.7 * rng.normal(size=(300, 4))
    start = X[rng.choice(300, size=5, replace=False)]
    tol = [0.0, 1e-4, 1e-2][seed % 3]
    other = KMeans(5, init=start, n_init=1, tol=tol, algorithm="lloyd").fit(X)
    for links in (None, Constraints(300)):
        model = COPKMeans(5, init=start, tol=tol).fit(X, constraints=links)
        np.testing.assert_array_equal(model.labels_, other.labels_)
        np.testing.assert_allclose(model.cluster_centers_, other.cluster_centers_, rtol=1e-9)
        assert model.inertia_ == pytest.approx(other.inertia_, rel=1e-9)
        np.testing.assert_array_equal(model.predict(X), model.labels_)
        assert model.inference_["exact"]
        assert model.inference_["details"]["n_unproven"] == 0


class TestInvariances:
    @pytest.fixture
    def case(self):
        X, y = load_iris(return_X_y=True)
        X = X + 1e-6 * np.random.default_rng(0).normal(size=X.shape)  # no ties
        return X, Constraints.sample(y, 100, overlap=True, random_state=3), X[[3, 70, 120]]

    def test_order_of_rows(self, case):
        X, links, start = case
        order = np.random.default_rng(1).permutation(len(X))
        model = COPKMeans(3, init=start).fit(X, constraints=links)
        shuffled = COPKMeans(3, init=start).fit(X[order], constraints=links[order])
        np.testing.assert_array_equal(shuffled.labels_, model.labels_[order])
        assert shuffled.inertia_ == pytest.approx(model.inertia_, rel=1e-12)

    def test_order_of_clusters(self, case):
        X, links, start = case
        model = COPKMeans(3, init=start).fit(X, constraints=links)
        turned = COPKMeans(3, init=start[[2, 0, 1]]).fit(X, constraints=links)
        np.testing.assert_array_equal(np.array([2, 0, 1])[turned.labels_], model.labels_)

    def test_units_and_origin(self, case):
        X, links, start = case
        model = COPKMeans(3, init=start).fit(X, constraints=links)
        moved = COPKMeans(3, init=1e3 * (start + 7)).fit(1e3 * (X + 7), constraints=links)
        np.testing.assert_array_equal(moved.labels_, model.labels_)
        assert moved.inertia_ == pytest.approx(1e6 * model.inertia_)

    def test_threads_and_seed(self, case):
        X, links, _ = case
        first = COPKMeans(3, random_state=5, n_init=3).fit(X, constraints=links)
        second = COPKMeans(3, random_state=5, n_init=3, n_jobs=2).fit(X, constraints=links)
        np.testing.assert_array_equal(first.cluster_centers_, second.cluster_centers_)

    def test_redundant_links_change_nothing(self, case):
        X, links, start = case
        groups = links.chunklets()
        pairs = [(i, j) for i, j in itertools.combinations(range(len(X)), 2) if groups[i] == groups[j]]
        closed = links + Constraints(len(X), must_link=pairs)
        assert closed.n_pairs > links.n_pairs
        model = COPKMeans(3, init=start).fit(X, constraints=links)
        other = COPKMeans(3, init=start).fit(X, constraints=closed)
        np.testing.assert_array_equal(model.labels_, other.labels_)


class TestEmptyClusters:
    def test_a_chunklet_moves_as_a_whole(self):
        # The third centre attracts nobody; the pair far right gains most by founding its cluster.
        X = np.array([[0.0], [1.0], [10.0], [20.0], [21.0]])
        links = Constraints(5, must_link=[(3, 4)], cannot_link=[(0, 2), (0, 4)])
        model = COPKMeans(3, init=np.array([[0.0], [12.0], [500.0]])).fit(X, constraints=links)
        assert model.n_reseeds_ == 1
        assert model.labels_.tolist() == [0, 0, 1, 2, 2]
        assert_falling(model.objectives_)

    def test_a_row_alone_does_not_leave_its_cluster(self):
        # The last row pays most, but moving it would only empty another cluster.
        X = np.array([[0.0], [1.0], [100.0]])
        model = COPKMeans(3, init=np.array([[0.0], [50.0], [500.0]])).fit(X)
        assert model.n_reseeds_ == 1
        assert model.labels_.tolist() == [0, 2, 1]

    def test_all_rows_alike(self):
        links = Constraints(6, must_link=[(0, 1)], cannot_link=[(1, 2)])
        with pytest.warns(ConvergenceWarning, match="1 of 3 clusters have no rows"):
            model = COPKMeans(3, random_state=0).fit(np.ones((6, 2)), constraints=links)
        assert not links.violations(model.labels_).any()
        assert model.inertia_ == 0.0

    def test_everything_must_linked(self):
        links = Constraints.from_labels([0] * 5)
        with pytest.warns(ConvergenceWarning, match="1 of 2 clusters"):
            model = COPKMeans(2, random_state=0).fit(np.arange(10.0).reshape(5, 2), constraints=links)
        assert len(np.unique(model.labels_)) == 1

    def test_more_distinct_rows_than_clusters_leave_none_empty(self):
        rng = np.random.default_rng(2)
        for seed in range(30):
            X = rng.normal(size=(40, 2))
            model = COPKMeans(8, init=100.0 + rng.normal(size=(8, 2)), random_state=seed).fit(X)
            assert len(np.unique(model.labels_)) == 8
            assert model.n_reseeds_ >= 1


class TestEdges:
    def test_one_point(self):
        model = COPKMeans(1).fit([[3.0, 4.0]])
        assert model.labels_.tolist() == [0]
        assert model.inertia_ == 0.0

    def test_as_many_clusters_as_rows(self):
        links = Constraints(4, cannot_link=list(itertools.combinations(range(4), 2)))
        model = COPKMeans(4, random_state=0).fit(np.array([[0.0], [0.0], [0.0], [1.0]]), constraints=links)
        assert sorted(model.labels_.tolist()) == [0, 1, 2, 3]
        assert model.inertia_ == 0.0

    def test_more_clusters_than_rows(self):
        with pytest.raises(ValueError, match="n_samples=3 should be >= n_clusters=4; ask for fewer"):
            COPKMeans(4).fit(np.eye(3))

    def test_missing_values(self):
        X = np.eye(4)
        X[2, 1] = np.nan
        with pytest.raises(ValueError, match="NaN"):
            COPKMeans(2).fit(X)

    def test_one_cluster_with_cannot_links(self):
        with pytest.raises(InfeasibleConstraints) as error:
            COPKMeans(1).fit(np.eye(4), constraints=Constraints(4, cannot_link=[(1, 3)]))
        assert error.value.witness.kind == "single_cluster"
        assert error.value.witness.cannot_link == ((1, 3),)

    def test_too_few_clusters_for_a_clique(self):
        links = Constraints(9, must_link=[(4, 8)], cannot_link=[(0, 4), (0, 6), (6, 8), (1, 2)])
        with pytest.raises(InfeasibleConstraints) as error:
            COPKMeans(2).fit(np.random.default_rng(0).normal(size=(9, 2)), constraints=links)
        witness = error.value.witness
        assert set(witness.cannot_link) == {(0, 4), (0, 6), (6, 8)}
        assert witness.must_link == ((4, 8),)
        COPKMeans(3, random_state=0).fit(np.random.default_rng(0).normal(size=(9, 2)), constraints=links)

    def test_soft_links_are_refused(self):
        links = Constraints(4, [(0, 1)], [(1, 2), (2, 3)], weight=[np.inf, 0.5, np.inf])
        with pytest.raises(
            ValueError, match=r"1 of 3 links are soft, e.g. \(1, 2\) with weight -0.5.*PCKMeans"
        ):
            COPKMeans(2).fit(np.eye(4), constraints=links)
        hard = Constraints(4, links.must_link, links.cannot_link)  # what the message says
        assert not hard.violations(
            COPKMeans(2, random_state=0).fit_predict(np.eye(4), constraints=hard)
        ).any()

    def test_links_of_other_rows_and_raw_pairs(self):
        with pytest.raises(ValueError, match="about 5 samples, but X has 4 rows"):
            COPKMeans(2).fit(np.eye(4), constraints=Constraints(5))
        with pytest.raises(TypeError, match="build one with"):
            COPKMeans(2).fit(np.eye(4), constraints=[(0, 1)])

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("n_clusters", 0),
            ("n_init", 1.5),
            ("max_iter", True),
            ("tol", -1.0),
            ("tol", np.nan),
            ("time_limit", -0.1),
            ("node_budget", 0),
            ("init", "random"),
            ("init", np.zeros((3, 4))),
            ("init", np.full((2, 4), np.nan)),
        ],
    )
    def test_bad_parameters(self, name, value):
        with pytest.raises(ValueError, match=name):
            COPKMeans(2).set_params(**{name: value}).fit(np.eye(4))

    def test_stopped_early(self):
        X = np.random.default_rng(0).normal(size=(500, 2))
        with pytest.warns(ConvergenceWarning, match="max_iter=1 "):
            model = COPKMeans(8, max_iter=1, random_state=0).fit(X)
        assert not model.converged_
        assert model.n_iter_ == 1
        np.testing.assert_array_equal(model.predict(X), model.labels_)

    def test_restarts_keep_the_lowest_inertia(self, monkeypatch):
        rng = np.random.default_rng(3)
        X = rng.normal(size=(200, 2))
        links = Constraints(200, cannot_link=[(0, 1)])
        runs = []
        monkeypatch.setattr(
            "linkwise.kmeans.cop_kmeans.run_hard_descent",
            lambda *arguments, **options: (
                runs.append(run_hard_descent(*arguments, **options).history[-1])
                or run_hard_descent(*arguments, **options)
            ),
        )
        several = COPKMeans(9, n_init=8, random_state=0).fit(X, constraints=links)
        assert len(set(runs)) == 8
        assert several.inertia_ == min(runs)

    def test_verbose(self, capsys):
        COPKMeans(2, n_init=1, verbose=1, random_state=0).fit(np.eye(4))
        assert "start 1 of 1, from k-means++\n  iteration 0: inertia" in capsys.readouterr().out


class TestPrediction:
    def test_new_rows_go_to_the_nearest_centre(self):
        X = np.array([[0.0], [1.0], [8.0], [9.0]])
        links = Constraints(4, cannot_link=[(0, 1)])
        model = COPKMeans(2, init=[[0.0], [9.0]]).fit(X, constraints=links)
        assert model.labels_.tolist() == [0, 1, 1, 1]
        assert model.cluster_centers_.ravel().tolist() == [0.0, 6.0]
        assert model.predict([[2.9], [3.1]]).tolist() == [0, 1]
        assert model.predict(X).tolist() == [0, 0, 1, 1]  # new rows: nothing is known of their links
        assert model.transform([[2.0]]).tolist() == [[4.0, 16.0]]
        assert model.score([[2.0], [7.0]]) == -5.0

    def test_pickle_and_clone(self):
        X, y = load_iris(return_X_y=True)
        links = Constraints.sample(y, 50, random_state=0)
        model = COPKMeans(3, random_state=0).fit(X, constraints=links)
        twin = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(twin.predict(X), model.predict(X))
        assert not hasattr(clone(model), "cluster_centers_")


class TestOutOfBudget:
    def test_unproven_assignments_are_reported(self):
        links, _, truth = wide_case(0)
        rng = np.random.default_rng(0)
        X = rng.normal(size=(len(truth), 4))
        with pytest.warns(
            ApproximationWarning, match="assignment steps could not be proven .* raise time_limit"
        ):
            model = fit_quietly(COPKMeans(6, time_limit=0.0, random_state=0), X, links)
        assert not model.inference_["exact"]
        assert model.inference_["details"]["n_unproven"] >= 1
        assert not links.violations(model.labels_).any()
        assert_falling(model.objectives_)

    def test_contradiction_found_by_the_assignment(self):
        X = np.random.default_rng(0).normal(size=(11, 2))
        links = Constraints(11, cannot_link=GROTZSCH)
        with pytest.raises(InfeasibleConstraints) as error:
            COPKMeans(3, node_budget=1, random_state=0).fit(X, constraints=links)
        assert set(error.value.witness.cannot_link) <= {tuple(pair) for pair in links.cannot_link.tolist()}
        model = fit_quietly(COPKMeans(4, node_budget=1, random_state=0), X, links)
        assert not links.violations(model.labels_).any()

    def test_unknown_feasibility_settled_by_labels(self):
        links, _, truth = hard_to_colour()
        X = np.random.default_rng(0).normal(size=(len(truth), 2))
        model = fit_quietly(COPKMeans(3, node_budget=1, random_state=0), X, links)
        assert not links.violations(model.labels_).any()

    def test_neither_labels_nor_a_proof(self, monkeypatch):
        links, _, truth = hard_to_colour()
        X = np.random.default_rng(0).normal(size=(len(truth), 2))
        monkeypatch.setattr("linkwise.kmeans.hard.assignment.SEARCH_WORK", 0)
        monkeypatch.setattr("linkwise.kmeans.hard.assignment.best_labels", find_nothing)
        with pytest.raises(
            InferenceBudgetExceeded, match=r"with 3 clusters .* raise node_budget and time_limit"
        ):
            COPKMeans(3, node_budget=1, random_state=0).fit(X, constraints=links)
