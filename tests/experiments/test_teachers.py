"""Experiments of constrained EM: what teachers say, and who is told what."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from experiments.em import faces as portraits
from experiments.em import teachers as teaching
from experiments.framework.data_files import DataMissing
from experiments.ppc.greedy_cop import greedy_cop_labels
from linkwise import Constraints
from linkwise.datasets import load_bundled
from linkwise.exceptions import InferenceBudgetExceeded

SIX = np.array([0, 0, 0, 1, 1, 1])


class TestLinks:
    def test_teachers_see_the_share_of_points(self):
        y = np.arange(200) % 4
        links = teaching.teachers_links(y, 0.3, 10, seed=1)
        seen = np.unique(links.pairs)
        assert 45 <= len(seen) <= 60  # six subsets of ten, which may overlap
        assert links.satisfaction(y) == 1.0
        assert links == teaching.teachers_links(y, 0.3, 10, seed=1)
        assert links != teaching.teachers_links(y, 0.3, 10, seed=2)


class TestSixAlgorithms:
    def test_links_and_starts_of_the_variants(self, monkeypatch):
        given = []

        class Recorder:
            inference_ = {"exact": True}  # noqa: RUF012

            def __init__(self, n_clusters, **settings):
                self.labels_ = np.zeros(6, dtype=int)
                self.settings = settings

            def fit(self, X, constraints=None):
                given.append((constraints, self.settings))
                return self

        monkeypatch.setattr(teaching, "COPKMeans", Recorder)
        monkeypatch.setattr(teaching, "ConstrainedEM", Recorder)
        X = np.arange(6.0)[:, np.newaxis]
        links = Constraints(6, [(0, 1), (4, 5)], [(0, 5)])
        rows = teaching.six_algorithms(X, SIX, links, seed=0)
        assert tuple(row["method"] for row in rows) == teaching.ALGORITHMS
        counts = [None if g is None else (len(g.must_link), len(g.cannot_link)) for g, _ in given]
        assert counts == [(2, 0), (2, 1), None, (2, 0), (2, 1)]
        (_, first), (_, second), *mixtures = given
        np.testing.assert_array_equal(first["init"], second["init"])
        assert all(settings == mixtures[0][1] for _, settings in mixtures)
        assert mixtures[0][1]["init_params"] == "kmeans"

    def test_links_of_all_points_give_the_classes(self):
        X, y = load_bundled("iris")
        rows = teaching.six_algorithms(X, y, Constraints.from_labels(y), seed=0)
        score = {row["method"]: row["f"] for row in rows}
        assert score["COP +-"] == score["EM +-"] == 1.0
        assert score["k-means"] < 1.0

    def test_gains_are_differences_within_the_draw(self):
        X, y = load_bundled("iris")
        rows = teaching.six_algorithms(X, y, teaching.teachers_links(y, 0.3, 10, seed=3), seed=3)
        row = {r["method"]: r for r in rows}
        for measure, method, other in (
            ("gain_of_must", "COP +", "k-means"),
            ("gain_of_must", "EM +", "EM"),
            ("gain_of_cannot", "COP +-", "COP +"),
            ("gain_of_cannot", "EM +-", "EM +"),
            ("over_cop", "EM", "k-means"),
            ("over_cop", "EM +", "COP +"),
            ("over_cop", "EM +-", "COP +-"),
        ):
            assert row[method][measure] == row[method]["f"] - row[other]["f"]
        assert "gain_of_must" not in row["EM +-"]
        assert "gain_of_cannot" not in row["EM +"]
        assert set().union(*rows) - {"method"} == set(teaching.MEASURES)

    def test_failure_of_cop_leaves_the_others(self, monkeypatch):
        class Failing(teaching.COPKMeans):
            def fit(self, X, y=None, *, constraints=None):
                if len(constraints.cannot_link):
                    raise InferenceBudgetExceeded("no labels found", width=9)
                return super().fit(X, constraints=constraints)

        monkeypatch.setattr(teaching, "COPKMeans", Failing)
        X, y = load_bundled("iris")
        rows = teaching.six_algorithms(X, y, teaching.teachers_links(y, 0.3, 10, seed=0), seed=0)
        row = {r["method"]: r for r in rows}
        assert row["COP +-"]["f"] is None
        assert row["COP +-"]["cop_failed"] == 1.0
        assert row["COP +"]["cop_failed"] == 0.0
        assert "over_cop" not in row["EM +-"]
        assert "over_cop" in row["EM +"]
        assert row["EM +-"]["f"] > 0.5


class TestGreedyCop:
    def test_labels_keep_the_links_and_failure_is_not_infeasibility(self):
        rng = np.random.default_rng(0)
        n_failed = 0
        for _ in range(200):
            truth, X = rng.integers(3, size=9), rng.normal(size=(9, 2))
            links = Constraints.sample(truth, 12, overlap=True, random_state=rng)
            labels = greedy_cop_labels(X, links, X[:3], max_iter=5)
            if labels is None:
                n_failed += 1
            else:
                assert links.satisfaction(labels) == 1.0
        assert 0 < n_failed < 200

    def test_first_assignment_is_that_of_a_slow_reading_of_the_paper(self):
        rng = np.random.default_rng(1)
        for _ in range(100):
            truth, X = rng.integers(3, size=7), rng.normal(size=(7, 2))
            links = Constraints.sample(truth, 8, overlap=True, random_state=rng)
            together = np.eye(7, dtype=bool)
            together[tuple(links.must_link.T)] = True
            together |= together.T
            for k, i, j in product(range(7), repeat=3):
                together[i, j] |= together[i, k] and together[k, j]
            apart = np.zeros((7, 7), dtype=bool)
            for i, j in links.cannot_link:
                apart[np.ix_(together[i], together[j])] = apart[np.ix_(together[j], together[i])] = True
            expected = np.full(7, -1)
            for row in range(7):
                for cluster in np.argsort(((X[row] - X[:3]) ** 2).sum(axis=1)):
                    placed = expected >= 0
                    broken = (placed & together[row] & (expected != cluster)) | (
                        placed & apart[row] & (expected == cluster)
                    )
                    if not broken.any():
                        expected[row] = cluster
                        break
                if expected[row] < 0:
                    break
            found = greedy_cop_labels(X, links, X[:3], max_iter=1)
            assert (found is None) == (expected.min() < 0)
            if found is not None:
                np.testing.assert_array_equal(found, expected)

    def test_without_links_it_is_lloyd(self):
        from sklearn.cluster import KMeans

        X, _ = load_bundled("iris")
        labels = greedy_cop_labels(X, Constraints(len(X)), X[[0, 60, 120]])
        lloyd = KMeans(3, init=X[[0, 60, 120]], n_init=1, tol=0.0, algorithm="lloyd").fit(X)
        np.testing.assert_array_equal(labels, lloyd.labels_)


class TestFaces:
    def test_missing_data_are_named(self, monkeypatch):
        monkeypatch.delenv("LINKWISE_DATA", raising=False)
        portraits._faces.cache_clear()
        with pytest.raises(DataMissing, match="LINKWISE_DATA"):
            portraits.faces(0, share=0.5)

    def test_people_share_a_covariance(self, monkeypatch):
        X, y = load_bundled("iris")
        codes = np.unique(y, return_inverse=True)[1]
        monkeypatch.setattr(portraits, "_faces", lambda: (X, codes))
        fitted, linked = [], []

        class Recorder(teaching.ConstrainedEM):
            def fit(self, X, y=None, *, constraints=None):
                fitted.append(super().fit(X, constraints=constraints))
                linked.append(constraints)
                return self

        monkeypatch.setattr(teaching, "ConstrainedEM", Recorder)
        rows = {row["method"]: row for row in portraits.faces(0, share=0.5)}
        assert set(rows) == set(teaching.ALGORITHMS)
        assert [model.covariances_.shape for model in fitted] == [(4, 4)] * 3
        assert linked[0] is None
        assert 50 <= len(np.unique(linked[2].pairs)) <= 80
        assert linked[2].satisfaction(codes) == 1.0
        assert rows["EM +-"]["f"] > rows["EM"]["f"]
