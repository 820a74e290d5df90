"""Which candidates there are, and what may be given in their place."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.cluster import AgglomerativeClustering, FeatureAgglomeration, KMeans
from sklearn.datasets import make_blobs
from sklearn.decomposition import PCA
from sklearn.mixture import GaussianMixture
from sklearn.pipeline import make_pipeline

from linkwise import PPC, Constraints
from linkwise.auto.candidates import CANDIDATES, EFFORTS, own_candidates, scouts, usable
from linkwise.exceptions import ApproximationWarning
from linkwise.inference import marginals

X, Y = make_blobs(30, centers=2, random_state=0)
LABELS = np.where(np.arange(30) % 3 == 0, Y, -1)


class TestOwn:
    def test_all_of_them_have_the_number_of_clusters_and_labels(self):
        for name, candidate in CANDIDATES.items():
            assert candidate.name == name
            model = candidate.fit(X, Constraints.from_labels(LABELS), 2, 0)
            assert model.labels_.shape == (30,)
            assert set(model.labels_) <= {0, 1}
            assert model.predict(X).shape == (30,)

    def test_those_without_links_never_see_any(self):
        """Links that contradict the data change nothing."""
        wrong = Constraints(30, np.stack([np.flatnonzero(Y == 0), np.flatnonzero(Y == 1)], axis=1))
        for candidate in CANDIDATES.values():
            if not candidate.uses_links:
                labels = candidate.fit(X, wrong, 2, 0).labels_
                np.testing.assert_array_equal(labels, candidate.fit(X, None, 2, 0).labels_)

    def test_there_are_both_kinds_for_every_effort(self):
        for effort in EFFORTS:
            found = own_candidates("auto", effort)
            assert {one.uses_links for one in found} == {True, False}
        assert len(own_candidates("auto", "quick")) < len(own_candidates("auto", "thorough"))

    def test_scouts_are_some_of_them(self):
        for effort in EFFORTS:
            found = own_candidates("auto", effort)
            assert 2 <= len(scouts(found)) <= 3
            assert set(scouts(found)) <= set(found)
        mine = own_candidates([KMeans(), GaussianMixture(), PPC()], "quick")
        assert scouts(mine) == mine[:2]


class TestWork:
    """Many hard links between ten clusters."""

    def test_mixtures_have_a_limit_of_their_own(self, monkeypatch):
        rng = np.random.default_rng(0)
        y = rng.integers(10, size=200)
        rows = rng.normal(size=(200, 3)) + 0.3 * rng.normal(size=(10, 3))[y]
        links = Constraints.sample(y, 700, overlap=True, random_state=0)
        work = {"rows": 0, "prior": 0}
        for part in work:

            def counting(*args, part=part, **options):
                found = marginals(*args, **options)
                work[part] += found.details.get("work", 0)
                return found

            monkeypatch.setattr(f"linkwise.mixture.links.{part}.marginals", counting)
        monkeypatch.setattr("linkwise.auto.candidates._MIXTURE_WORK", 3e6)
        for name in ("mixture", "mixture, tied", "mixture, diagonal"):
            work.update(rows=0, prior=0)
            with pytest.warns(ApproximationWarning, match="certainty < 1"):
                model = CANDIDATES[name].fit(rows, links, 10, 0)
            assert model.inference_["details"]["reason"] is not None
            assert links.satisfaction(model.labels_) == 1.0
            # What exceeds it are last sweeps, and those of mean field, one or two for every step.
            assert max(work.values()) < 3 * 3e6
        mine = own_candidates([PPC(random_state=0)], "quick")[0].build(10, 0)
        assert mine._max_work is None


class TestUsable:
    FULL = frozenset({"mixture", "mixture, no links", "mixture, not shrunk, no links"})

    @staticmethod
    def names(links, counts, shape, given="auto"):
        return {one.name for one in usable(own_candidates(given, "balanced"), links, counts, shape)}

    def test_full_covariances_need_more_rows_in_a_cluster_than_columns(self):
        soft = Constraints.sample(Y, 10, certainty=0.9, random_state=0)
        many = self.names(soft, [3], (31, 10))
        assert many >= self.FULL
        assert self.names(soft, [3], (30, 10)) == many - self.FULL
        # Of several numbers of clusters one that allows it is enough.
        assert self.names(soft, [2, 3], (30, 10)) == many

    def test_a_mixture_that_the_user_names_is_tried_however_few_the_rows_are(self):
        assert self.names(None, [3], (30, 50), ["mixture", "k-means, no links"]) == {
            "mixture",
            "k-means, no links",
        }

    def test_hard_links_and_groups_bring_candidates_of_their_own(self):
        shape = (30, 2)
        soft = self.names(Constraints.sample(Y, 10, certainty=0.9, random_state=0), [2], shape)
        hard = self.names(Constraints.sample(Y, 5, random_state=0), [2], shape)
        groups = self.names(Constraints.from_labels(LABELS), [2], shape)
        assert "k-means under hard links" in hard - soft
        assert groups - soft == {
            "k-means under hard links", "discriminant of groups", "forest of groups"
        }  # fmt: skip

    def test_groups_of_one_row_teach_no_classifier(self):
        """Disjoint pairs under hard links, of which no must-link has an end in common with a cannot-link."""
        shape, classifiers = (30, 2), {"discriminant of groups", "forest of groups"}
        disjoint = Constraints(30, [(0, 1), (2, 3)], [(4, 5), (6, 7), (8, 9)])
        assert not self.names(disjoint, [2], shape) & classifiers
        # Three rows in two groups are a row too few, four are enough.
        assert not self.names(Constraints(30, [(0, 1)], [(0, 2)]), [2], shape) & classifiers
        assert self.names(Constraints(30, [(0, 1), (2, 3)], [(0, 2)]), [2], shape) >= classifiers


class TestGiven:
    def test_names_estimators_and_pairs(self):
        given = [
            "mixture",
            KMeans(n_init=1),
            ("mine", PPC(covariance_type="diag")),
            GaussianMixture(max_iter=7),
        ]
        found = own_candidates(given, "quick")
        assert [one.name for one in found] == [
            "mixture", "KMeans(n_init=1)", "mine", "GaussianMixture(max_iter=7)",
        ]  # fmt: skip
        assert [one.uses_links for one in found] == [True, False, True, False]

    def test_are_built_anew_with_their_settings(self):
        given = GaussianMixture(9, max_iter=7)
        [candidate] = own_candidates((given,), "quick")
        built = candidate.build(3, 5)
        assert built is not given
        assert (built.n_components, built.max_iter, built.random_state) == (3, 7, 5)
        assert given.n_components == 9

    def test_a_seed_of_their_own_stays(self):
        [candidate] = own_candidates([KMeans(random_state=4)], "quick")
        assert candidate.build(3, 5).random_state == 4

    @pytest.mark.parametrize("given", [KMeans(n_init=1), GaussianMixture(), AgglomerativeClustering()])
    def test_have_labels_once_fitted(self, given):
        [candidate] = own_candidates([given], "quick")
        labels = candidate.fit(X, Constraints.from_labels(LABELS), 2, 0).labels_
        assert len(labels) == 30
        assert set(labels) == {0, 1}


class NoNumber(ClusterMixin, BaseEstimator):
    def fit(self, X, y=None):
        return self


class TestRefused:
    @pytest.mark.parametrize("given", ["mixture", [], {}, None, 3, {"mixture"}])
    def test_no_list(self, given):
        with pytest.raises(ValueError, match=r'^candidates must be "auto" or a list .*; pass for example'):
            own_candidates(given, "quick")

    def test_unknown_name_lists_the_known(self):
        with pytest.raises(ValueError, match=r"^there is no candidate 'mixtur'; use one of .*'mixture'"):
            own_candidates(["mixtur"], "quick")

    @pytest.mark.parametrize(
        "given",
        [
            3,
            None,
            KMeans,
            PCA(),
            FeatureAgglomeration(),
            NoNumber(),
            make_pipeline(KMeans()),
            ("a", 3),
            ("a",),
        ],
        ids=str,
    )
    def test_no_clusterer_with_a_number_of_clusters(self, given):
        with pytest.raises(
            ValueError, match="is no clusterer with n_clusters or n_components; pass an estima"
        ):
            own_candidates([given], "quick")

    def test_two_of_one_name(self):
        with pytest.raises(ValueError, match=r"two candidates are named 'PPC\(\)'; pass pairs \(name, estim"):
            own_candidates([PPC(), "mixture", PPC()], "quick")
