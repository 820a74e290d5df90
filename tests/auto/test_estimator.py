"""LinkedClustering as a whole: what it promises about links, labels, records, seeds and inputs."""

from __future__ import annotations

import itertools
import pickle
import re
import warnings
from functools import cache

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, ClusterMixin, clone
from sklearn.cluster import AgglomerativeClustering, KMeans
from sklearn.datasets import make_blobs
from sklearn.exceptions import NotFittedError
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from linkwise import PPC, ConstrainedEM, Constraints, LinkedClustering, PCKMeans
from linkwise.auto import CandidateRecord, Consensus
from linkwise.auto.candidates import CANDIDATES, EFFORTS, own_candidates
from linkwise.datasets import make_rings
from linkwise.exceptions import InfeasibleConstraints
from tests.repeats import LONG
from tests.sklearn_checks import estimator_checks

X, Y = make_blobs(60, centers=[[0, 0], [5, 0], [0, 5]], cluster_std=0.8, random_state=0)
LINKS = Constraints.sample(Y, 20, certainty=0.95, random_state=0)
HARD = Constraints.sample(Y, 20, random_state=1)
LABELS = np.where(np.arange(60) % 4 == 0, Y, -1)
QUICK = (("linked", PCKMeans(n_init=1)), "k-means, no links")


def linked(n_clusters=3, candidates=QUICK, **options):
    return LinkedClustering(n_clusters, candidates=list(candidates), random_state=0, **options)


@cache
def number_found(known):
    """A fit that finds the number of clusters from "labels", "links" or "rows"; nobody changes it."""
    return linked("auto").fit(
        X, labels=LABELS if known == "labels" else None, constraints=LINKS if known == "links" else None
    )


@cache
def three_compared():
    """A fit that compares three candidates; nobody changes it."""
    return linked(3, [*QUICK, "mixture, diagonal"]).fit(X, constraints=LINKS)


class Counted(PCKMeans):
    """K-means under links that counts its fits."""

    n_fits = 0

    def fit(self, X, y=None, *, constraints=None):
        Counted.n_fits += 1
        return super().fit(X, y, constraints=constraints)


@pytest.mark.parametrize(
    ("n_pairs", "certainty", "expected"), [(40, None, 6), (250, None, 3), (40, 0.9, 6), (250, 0.9, 6)]
)
def test_many_hard_links_need_fewer_folds_but_all_soft_links_are_asked_for(n_pairs, certainty, expected):
    rows, y = make_blobs(600, centers=[[0, 0], [9, 0], [0, 9]], random_state=0)
    links = Constraints.sample(y, n_pairs, certainty=certainty, random_state=0)
    Counted.n_fits = 0
    model = linked(3, [("counted", Counted(n_init=1)), "k-means, no links"], cv=5)
    model.fit(rows, constraints=links)
    assert Counted.n_fits == expected
    assert adjusted_rand_score(y, model.labels_) == 1.0


class Scripted(ClusterMixin, BaseEstimator):
    """Labels that are given, whatever the links say; new rows are all of cluster 0."""

    def __init__(self, n_clusters=2, *, labels=None, error=None, only_with=None):
        self.n_clusters = n_clusters
        self.labels = labels
        self.error = error
        self.only_with = only_with

    def fit(self, X, y=None, *, constraints=None):
        if self.error and (self.only_with is None or constraints.n_pairs >= self.only_with):
            raise ValueError(self.error)
        self.labels_ = np.asarray(self.labels)
        return self

    def predict(self, X):
        return np.zeros(len(X), dtype=np.int64)


class Plain(Scripted):
    """The same without links."""

    def fit(self, X, y=None):
        return super().fit(X)


@estimator_checks(
    LinkedClustering(2, effort="quick", random_state=0),
    LinkedClustering(candidates=["k-means, no links"], random_state=0),
)
def test_sklearn_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)


class TestLinks:
    def test_data_of_a_shape_that_k_means_does_not_find(self):
        rings, y = make_rings(120, random_state=0)
        links = Constraints.sample(y, 40, certainty=0.95, random_state=0)
        model = linked(2, ["spectral, near", "k-means, no links"]).fit(rings, constraints=links)
        assert adjusted_rand_score(y, model.labels_) > 0.95
        assert model.gain_.value > 0.2
        assert model.gain_.low > 0.0
        assert model.n_clusters_ == 2

    @settings(deadline=None, max_examples=8)
    @given(st.integers(0, 10_000), st.integers(2, 4), st.booleans(), st.integers(5, 25))
    def test_hard_links_are_never_broken(self, seed, k, mixed, n_links):
        """Links of random classes, which contradict the data."""
        rng = np.random.default_rng(seed)
        hidden = rng.integers(k, size=24)
        links = Constraints.sample(hidden, n_links, overlap=True, random_state=seed)
        if mixed:
            links = links + Constraints.sample(
                hidden, 10, overlap=True, flip=0.3, certainty=0.7, random_state=seed + 1
            )
        members = [*QUICK, ("wrong", Scripted(labels=np.arange(24) % k))]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = linked(k, members, cv=2).fit(X[:24], constraints=links)
        hard = np.isinf(links.weights)
        assert not links.violations(model.labels_)[hard].any()
        np.testing.assert_array_equal(model.violations_, links.violations(model.labels_))
        assert set(model.labels_) <= set(range(k))
        if mixed and not hard.all():
            assert model.noise_ == pytest.approx(model.violations_[~hard].mean())
        else:
            assert np.isnan(model.noise_)

    def test_a_single_candidate_that_breaks_hard_links_is_corrected(self):
        wrong = Scripted(labels=np.arange(60) % 3)
        model = linked(3, [("wrong", wrong)]).fit(X, constraints=HARD)
        assert isinstance(model.best_estimator_, Consensus)
        assert not model.violations_.any()

    def test_links_decide_who_votes(self):
        """Both candidates are scripted: the one that agrees with all links has all votes."""
        members = [("right", Scripted(labels=Y)), ("wrong", Scripted(labels=np.arange(60) % 3))]
        links = Constraints.sample(Y, 30, certainty=0.99, random_state=0)
        model = linked(3, members).fit(X, constraints=links)
        assert [(one.candidate, one.chosen) for one in model.selection_] == [
            ("right", True),
            ("wrong", False),
        ]
        assert model.selection_[0].agreement == 1.0
        assert model.selection_[1].agreement == pytest.approx(
            1.0 - links.violations(np.arange(60) % 3).mean()
        )
        np.testing.assert_array_equal(model.labels_, Y)
        assert type(model.best_estimator_) is Scripted

    def test_the_gain_is_that_over_the_best_without_links(self):
        half = np.where(np.arange(60) < 30, Y, 0)
        members = [
            ("right", Scripted(labels=Y)), ("half", Plain(labels=half)), ("none", Plain(labels=np.zeros(60))),
        ]  # fmt: skip
        links = Constraints.sample(Y, 30, certainty=0.95, random_state=0)
        model = linked(3, members).fit(X, constraints=links)
        agreements = {one.candidate: one.agreement for one in model.selection_}
        best = max(agreements["half"], agreements["none"])
        assert model.gain_.value == pytest.approx(agreements["right"] - best)
        assert model.gain_.low < model.gain_.value < model.gain_.high

    def test_no_gain_is_known_if_all_see_links(self):
        model = linked(3, ["mixture, tied"]).fit(X, constraints=LINKS)
        assert np.isnan(model.gain_).all()

    def test_too_few_links_cannot_choose(self):
        links = Constraints(60, [(0, 1)] if Y[0] == Y[1] else (), [] if Y[0] == Y[1] else [(0, 1)])
        with pytest.warns(
            UserWarning, match=r"^1 link is too few to choose a clustering by; .* at least 5 links"
        ):
            model = linked().fit(X, constraints=links)
        assert np.isnan([one.agreement for one in model.selection_]).all()
        assert np.isnan(model.gain_).all()
        assert not model.violations_.any()
        assert [one.weight for one in model.selection_] == [1.0, 0.0]

    def test_links_that_all_follow_from_others_or_none(self):
        """A triangle has no news for anyone who sees two of its links; whole rows have."""
        pairs = list(itertools.combinations(np.flatnonzero(Y == 0)[:5].tolist(), 2))
        model = linked(3).fit(X, constraints=Constraints(60, pairs))
        assert not model.violations_.any()
        assert np.isfinite(model.selection_[0].agreement)


class Remembering(Scripted):
    """The same, and it keeps the links of its fit."""

    def fit(self, X, y=None, *, constraints=None):
        self.constraints_ = constraints
        return super().fit(X, constraints=constraints)


class Wavering(Scripted):
    """The given labels while some of 20 links are missing, else others."""

    def fit(self, X, y=None, *, constraints=None):
        super().fit(X)
        if constraints.n_pairs == 20:
            self.labels_ = np.arange(60) % 3
        return self


class Unlinked(Scripted):
    """The given labels, without links."""

    def fit(self, X, y=None):
        return super().fit(X)


class TestVoteWithoutLinks:
    """Two candidates find the truth with links, and one finds thirds of the rows without."""

    thirds = np.arange(60) // 20
    candidates = (
        ("one", Scripted(labels=Y)), ("two", Scripted(labels=Y)), ("plain", Unlinked(labels=thirds))
    )  # fmt: skip

    def test_has_a_share_that_falls_with_the_answers(self):
        shares = []
        for n_links in (6, 20):
            links = Constraints.sample(Y, n_links, certainty=0.9, random_state=1)
            model = linked(3, self.candidates).fit(X, constraints=links)
            n = (np.tanh(np.abs(links.weights)) ** 2).sum()
            shares.append(model.share_without_links_)
            assert shares[-1] == pytest.approx(3.0 / (3.0 + n))
        assert shares[1] < shares[0]

    def test_is_the_clustering_without_links(self, monkeypatch):
        seen = []
        monkeypatch.setattr(
            "linkwise.auto.estimator.Consensus", lambda *given: seen.append(given[-1]) or Consensus(*given)
        )
        links = Constraints.sample(Y, 6, certainty=0.9, random_state=1)
        model = linked(3, self.candidates).fit(X, constraints=links)
        assert adjusted_rand_score(self.thirds, seen[0].labels) == 1.0
        assert seen[0].share == model.share_without_links_ > 0.0

    def test_decides_where_links_say_next_to_nothing(self):
        links = Constraints.sample(Y, 5, certainty=0.52, random_state=1)
        model = linked(3, self.candidates).fit(X, constraints=links)
        assert model.share_without_links_ > 0.99
        assert adjusted_rand_score(self.thirds, model.labels_) == 1.0

    def test_is_absent_where_all_candidates_use_links(self):
        assert linked(3, self.candidates[:2]).fit(X, constraints=LINKS).share_without_links_ == 0.0

    def test_is_absent_where_some_rows_were_compared(self, monkeypatch):
        monkeypatch.setitem(EFFORTS, "balanced", EFFORTS["balanced"]._replace(n_rows=50))
        candidates = (("one", PCKMeans(n_init=1)), ("two", PCKMeans(n_init=2)), "k-means, no links")
        model = linked(3, candidates).fit(X, constraints=LINKS)
        assert model.n_rows_compared_ < 60
        assert model.share_without_links_ == 0.0

    def test_is_absent_where_one_candidate_is_left(self):
        links = Constraints.sample(Y, 20, random_state=1)
        fails = Scripted(labels=Y, error="no", only_with=20)
        candidates = (self.candidates[0], ("fails", fails), ("plain", Unlinked(labels=np.zeros(60, int))))
        with pytest.warns(UserWarning, match="candidate 'fails' has no vote"):
            model = linked(3, candidates).fit(X, constraints=links)
        assert isinstance(model.best_estimator_, Scripted)
        assert model.share_without_links_ == 0.0

    def test_is_absent_without_links(self):
        assert linked(3).fit(X).share_without_links_ == 0.0


class TestFitsOfFolds:
    """Five of the six fits of each candidate see part of the links, and find the truth."""

    candidates = (("one", Wavering(labels=Y)), ("two", Wavering(labels=Y)))

    def test_share_the_vote_of_their_candidate(self):
        model = linked(3, self.candidates).fit(X, constraints=LINKS)
        assert adjusted_rand_score(Y, model.labels_) == 1.0
        for one in model.best_estimator_.estimators:
            np.testing.assert_array_equal(one.labels_, np.arange(60) % 3)

    def test_share_it_under_hard_links_that_stand_alone(self):
        links = Constraints.sample(Y, 20, random_state=1)
        assert len(np.unique(links.pairs)) == 40
        model = linked(3, self.candidates).fit(X, constraints=links)
        assert adjusted_rand_score(Y, model.labels_) == 1.0
        for one in model.best_estimator_.estimators:
            np.testing.assert_array_equal(one.labels_, np.arange(60) % 3)

    def test_have_no_vote_where_hard_links_interlock(self):
        """Which are right and imply others, so that the final fits, which see all of them, know more."""
        rows = np.arange(0, 60, 4)
        some = Constraints.sample(Y[rows], 20, overlap=True, random_state=1)
        links = Constraints(60, rows[some.must_link], rows[some.cannot_link])
        assert links.n_pairs == 20
        model = linked(3, self.candidates).fit(X, constraints=links)
        assert adjusted_rand_score(np.arange(60) % 3, model.labels_) > 0.1
        assert adjusted_rand_score(Y, model.labels_) < 0.5
        assert not model.violations_.any()


class TestDoubtfulLinks:
    """Candidates are scripted, so that their votes on every link are known."""

    links = Constraints.sample(Y, 30, flip=0.2, certainty=0.9, random_state=0)
    wrong = links.violations(Y)

    def test_votes_of_fits_without_a_link_change_its_certainty(self):
        model = linked(3, [("right", Remembering(labels=Y))]).fit(X, constraints=self.links)
        assert 0 < self.wrong.sum() < 15
        # Odds 9 of the certainty, times or divided by 4 of the votes.
        odds = np.where(self.wrong, 9 / 4, 9 * 4)
        np.testing.assert_allclose(model.violation_probability_, 1 / (1 + odds))
        seen = model.best_estimator_.constraints_
        np.testing.assert_array_equal(seen.pairs, self.links.pairs)
        np.testing.assert_allclose(seen.weights, np.sign(self.links.weights) * 0.5 * np.log(odds))

    def test_candidates_vote_by_how_well_they_agree_with_the_other_links(self):
        other = np.arange(60) % 3
        model = linked(3, [("right", Scripted(labels=Y)), ("other", Scripted(labels=other))])
        model.fit(X, constraints=self.links)
        agreed = {one.candidate: one.agreement for one in model.selection_}
        both = self.links.violations(Y) != self.links.violations(other)
        doubt = model.violation_probability_
        assert agreed["right"] > agreed["other"]
        # Where the two differ the vote of the better one is the larger one, in every fold.
        assert ((doubt > 0.1) == self.wrong)[both].all()
        assert len(set(doubt[both].round(6))) > 2

    def test_hard_links_are_never_doubted(self):
        sure = Constraints.sample(Y, 10, random_state=3)
        model = linked(3, [("other", Remembering(labels=np.arange(60) % 3))])
        links = sure + self.links
        model.fit(X, constraints=links)
        hard = np.isinf(links.weights)
        assert hard.sum() == 10
        assert not model.violation_probability_[hard].any()
        assert (model.violation_probability_[~hard] > 0.0).all()
        seen = model.best_estimator_.estimators[0].constraints_
        assert np.isinf(seen.weights).sum() == 10

    def test_links_that_nobody_was_asked_about_keep_their_certainty(self):
        """Too few links, and links of rows that candidates are not compared on."""
        few = self.links[:12]
        assert 0 < few.n_pairs < 5
        with pytest.warns(UserWarning, match="too few"):
            model = linked(3).fit(X[:12], constraints=few)
        np.testing.assert_allclose(model.violation_probability_, 0.1)
        n = 1500
        y = np.arange(n) % 3
        rows = np.c_[y, y * 2.0] + np.random.default_rng(0).normal(scale=0.1, size=(n, 2))
        links = Constraints.sample(y, 400, certainty=0.9, random_state=0)
        model = linked(3, ["k-means, no links", "mixture, tied"], effort="quick").fit(rows, constraints=links)
        asked = model.violation_probability_ < 0.09
        np.testing.assert_allclose(model.violation_probability_[~asked], 0.1)
        np.testing.assert_allclose(model.violation_probability_[asked], 1 / 37)
        assert 0 < asked.sum() < links.n_pairs
        assert model.n_rows_compared_ == 500

    def test_none_without_links(self):
        assert linked().fit(X).violation_probability_.shape == (0,)


class TestShape:
    """Rows of two Gaussians of one centre, which only their widths tell apart."""

    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.normal(0, 1, (100, 4)), rng.normal(0, 4, (100, 4))])
    hidden = np.repeat([0, 1], 100)
    members = ("mixture", "k-means, no links", "mixture, no links")

    def test_mixtures_have_a_larger_vote_where_clusters_look_gaussian(self):
        links = Constraints.sample(self.hidden, 12, certainty=0.9, random_state=0)
        model = linked(2, self.members).fit(self.rows, constraints=links)
        mixture, means, plain = model.selection_[:3]
        assert re.fullmatch(r"clusters look Gaussian: vote times [2-7]\.\d", mixture.reason)
        assert (means.reason, plain.reason) == ("", mixture.reason)

    def test_without_links(self):
        model = linked(2, [*self.members, "spectral, near, no links"]).fit(self.rows)
        votes = {one.candidate: one.weight for one in model.selection_}
        assert votes["k-means, no links"] == votes["spectral, near, no links"]
        assert 1.0 < votes["mixture, no links"] / votes["k-means, no links"] <= np.exp(2.0)
        assert adjusted_rand_score(self.hidden, model.labels_) > 0.5

    def test_two_candidates_without_links_have_the_same_vote(self):
        model = linked(2, self.members).fit(self.rows)
        assert [one.weight for one in model.selection_[:3]] == [0.0, 0.5, 0.5]

    def test_mixtures_of_users_count_as_such(self):
        given = [PPC(covariance_type="diag"), ConstrainedEM(), GaussianMixture(), PCKMeans(), "mixture"]
        assert [one.gaussian for one in own_candidates(given, "balanced")] == [True, True, True, False, True]
        assert not any(CANDIDATES[name].gaussian for name in CANDIDATES if not name.startswith("mixture"))


class TestLabels:
    @pytest.mark.parametrize(
        "labels",
        [
            LABELS,
            LABELS.tolist(),
            np.where(LABELS < 0, np.nan, LABELS),
            np.array(["a", "b", "c", None], dtype=object)[LABELS],
            pd.Series(LABELS).where(LABELS >= 0),
        ],
        ids=["-1", "list", "nan", "names", "pandas"],
    )
    def test_of_all_kinds_give_the_clusters_and_their_names(self, labels):
        model = linked("auto").fit(X, labels=labels)
        assert model.n_clusters_ == 3
        np.testing.assert_array_equal(model.labels_, number_found("labels").labels_)
        assert len(model.classes_) == len(model.cluster_names_) == 3
        known = LABELS >= 0
        names = [str(model.classes_[code]) for code in LABELS[known]]
        assert model.cluster_names_[model.labels_[known]].tolist() == names
        assert model.contingency_.sum() == known.sum()
        assert model.split_classes_ == model.shared_clusters_ == {}

    def test_are_the_same_as_links_of_labels(self):
        links = Constraints.from_labels(LABELS)
        first, second = linked().fit(X, labels=LABELS), linked().fit(X, constraints=links)
        np.testing.assert_array_equal(first.labels_, second.labels_)
        assert first.selection_ == second.selection_

    def test_classifiers_are_tried(self):
        model = linked(3, [*QUICK, "discriminant of groups", "forest of groups"]).fit(X, labels=LABELS)
        tried = {one.candidate: one for one in model.selection_}
        assert tried["discriminant of groups"].agreement > 0.9
        assert adjusted_rand_score(Y, model.labels_) > 0.9
        without = linked(3, [*QUICK, "discriminant of groups"]).fit(X, constraints=LINKS)
        assert "discriminant of groups" not in {one.candidate for one in without.selection_}

    def test_and_links_together(self):
        model = linked("auto").fit(X, labels=LABELS, constraints=LINKS)
        both = LINKS + Constraints.from_labels(LABELS)
        np.testing.assert_array_equal(model.violations_, both.violations(model.labels_))
        assert not model.violations_[np.isinf(both.weights)].any()

    def test_more_clusters_than_classes(self):
        model = linked(4).fit(X, labels=LABELS)
        assert model.n_clusters_ == 4
        assert len(model.cluster_names_) == 4
        assert len(model.classes_) == 3

    @pytest.mark.parametrize("labels", [np.full(60, -1), [None] * 60], ids=["-1", "None"])
    def test_nobody_labelled_is_as_without(self, labels):
        model = linked("auto").fit(X, labels=labels)
        assert model.n_clusters_ == number_found("rows").n_clusters_ == 3

    def test_one_class_does_not_make_one_cluster(self):
        labels = np.where(Y == 1, 0, -1)
        model = linked("auto").fit(X, labels=labels)
        assert model.n_clusters_ > 1
        assert len(set(model.labels_[Y == 1])) == 1

    @pytest.mark.parametrize("first", ["b", 7, (1, 2)], ids=["text", "a number", "a pair"])
    def test_with_ids_in_another_order_are_refused(self, first):
        ids = pd.Index([first, *(f"row {i}" for i in range(1, 60))], dtype=object, tupleize_cols=False)
        rows, labels = pd.DataFrame(X, index=ids), pd.Series(LABELS, index=ids)
        expected = linked().fit(X, labels=LABELS).labels_
        for same in (labels, labels.reset_index(drop=True)):
            np.testing.assert_array_equal(linked().fit(rows, labels=same).labels_, expected)
        with pytest.raises(ValueError, match=r"in different orders: row 0 is 'row 59' in labels"):
            linked().fit(rows, labels=labels[::-1])

    def test_refused(self):
        with pytest.raises(
            ValueError, match=r"^labels has 50 entries, but X has 60 rows; give -1 or None for unk"
        ):
            linked().fit(X, labels=LABELS[:50])
        with pytest.raises(InfeasibleConstraints, match="need 3 clusters but n_clusters=2"):
            linked(2).fit(X, labels=LABELS)
        first, second = (int(np.flatnonzero(code == LABELS)[0]) for code in (0, 1))
        with pytest.raises(InfeasibleConstraints, match=r"must be together .* but are linked apart; remove"):
            linked().fit(X, labels=LABELS, constraints=Constraints(60, [(first, second)]))
        renamed = np.where(LABELS >= 0, (LABELS + 1) % 3, -1)
        with pytest.raises(ValueError, match=r"^row 0 is of class \d in one and \d in the other of the"):
            linked().fit(X, labels=renamed, constraints=Constraints.from_labels(LABELS))


class TestNumberOfClusters:
    def test_by_links(self):
        links = Constraints.sample(Y, 40, overlap=True, certainty=0.99, random_state=0)
        model = linked("auto").fit(X, constraints=links)
        assert model.n_clusters_ == 3
        # Scouts looked at all numbers from 2 to 10, at 3 once.
        assert sorted({one.n_clusters for one in model.selection_}) == list(range(2, 11))
        assert all(one.weight == 0.0 for one in model.selection_ if one.n_clusters != 3)
        assert sum(one.weight for one in model.selection_ if one.candidate != "consensus") == pytest.approx(
            1.0
        )

    def test_by_shape_without_links(self):
        assert number_found("rows").n_clusters_ == 3
        assert linked("auto").fit(X, constraints=Constraints(60)).n_clusters_ == 3
        blob = np.random.default_rng(0).normal(size=(80, 2))
        assert linked("auto").fit(blob).n_clusters_ == 1

    def test_hard_links_that_need_more_than_ten(self):
        clique = Constraints(60, cannot_link=list(itertools.combinations(range(12), 2)))
        model = linked("auto", ["k-means, no links"]).fit(X, constraints=clique)
        assert model.n_clusters_ == 12
        assert len(set(model.labels_[:12])) == 12

    @pytest.mark.parametrize(
        ("k", "match"),
        [(0, "n_clusters must be a whole number >= 1"), (61, "n_clusters=61 clusters cannot be made of n_"),
         (2.5, "n_clusters must be a whole number"), ("two", "n_clusters must be one of auto; got 'two'")],
    )  # fmt: skip
    def test_refused(self, k, match):
        with pytest.raises(ValueError, match=match):
            linked(k).fit(X)


class TestCandidates:
    def test_of_users(self):
        given = [
            KMeans(n_init=1),
            ("mine", GaussianMixture()),
            PPC(covariance_type="diag"),
            "k-means, no links",
        ]
        model = linked(3, given).fit(X, constraints=LINKS)
        records = [one for one in model.selection_ if one.candidate != "consensus"]
        assert [(one.candidate, one.uses_links) for one in records] == [
            ("KMeans(n_init=1)", False), ("mine", False), ("PPC(covariance_type='diag')", True),
            ("k-means, no links", False),
        ]  # fmt: skip
        assert model.labels_.dtype == np.int64
        assert adjusted_rand_score(Y, model.labels_) > 0.9
        assert adjusted_rand_score(model.labels_, model.predict(X)) > 0.9

    @pytest.mark.parametrize("given", [KMeans(n_init=1), GaussianMixture(), PCKMeans(), PPC()], ids=str)
    def test_alone(self, given):
        model = linked(3, [given]).fit(X, constraints=LINKS)
        assert type(model.best_estimator_) is type(given)
        assert model.predict(X).dtype == model.labels_.dtype == np.int64
        assert hasattr(model, "predict_proba") == hasattr(given, "predict_proba")

    def test_without_predict(self):
        model = linked(3, [AgglomerativeClustering()]).fit(X, constraints=LINKS)
        assert adjusted_rand_score(Y, model.labels_) > 0.9
        assert not hasattr(model, "predict_proba")
        with pytest.raises(
            AttributeError, match=r"^AgglomerativeClustering has no predict; use labels_, or pass"
        ):
            model.predict(X)

    def test_that_fails_has_no_vote_and_says_why(self):
        bad = ("bad", Scripted(error="it is too odd"))
        model = linked(3, [bad, *QUICK]).fit(X, constraints=LINKS)
        record = model.selection_[0]
        assert (record.candidate, record.reason, record.weight, record.chosen) == (
            "bad",
            "it is too odd",
            0.0,
            False,
        )
        with pytest.raises(
            ValueError, match=r"^no candidate could be fitted: it is too odd; pass other candidates$"
        ):
            linked(3, [bad]).fit(X, constraints=LINKS)
        with pytest.raises(
            ValueError, match=r"^no candidate could be fitted: it is too odd; pass other candidates$"
        ):
            linked(3, [bad]).fit(X)

    def test_that_fails_in_the_end_has_no_vote(self):
        bad = ("bad", Scripted(labels=Y, error="it is too odd", only_with=20))
        with pytest.warns(UserWarning, match="'bad' has no vote, because it cannot be fitted: it is too odd"):
            model = linked(3, [bad, *QUICK]).fit(X, constraints=LINKS)
        assert model.selection_[0].weight == 0.0
        assert sum(one.weight for one in model.selection_[:3]) == pytest.approx(1.0)

    def test_refused(self):
        with pytest.raises(ValueError, match=r"^there is no candidate 'magic'"):
            linked(3, ["magic"]).fit(X)
        with pytest.raises(ValueError, match=r"^candidates must be"):
            LinkedClustering(candidates="magic").fit(X)


class TestRecords:
    @property
    def model(self):
        return three_compared()

    def test_have_the_fields_of_the_contract(self):
        fields = ("candidate", "uses_links", "n_clusters", "agreement", "error", "weight", "chosen", "reason")
        assert CandidateRecord._fields == fields
        frame = pd.DataFrame(self.model.selection_)
        assert tuple(frame.columns) == fields
        assert frame["n_clusters"].eq(3).all()
        assert frame["chosen"].sum() == 1
        assert frame["agreement"].between(0.0, 1.0).all()
        assert frame["error"].ge(0.0).all()

    def test_votes_sum_to_one(self):
        own = [one for one in self.model.selection_ if one.candidate != "consensus"]
        assert sum(one.weight for one in own) == pytest.approx(1.0)
        best = self.model.best_estimator_
        if isinstance(best, Consensus):
            assert best.weights.sum() == pytest.approx(1.0)
            voted = {one.candidate: one.weight for one in own if one.weight}
            assert voted == pytest.approx(dict(zip(best.names, best.weights, strict=True)))
            assert self.model.selection_[-1].candidate == "consensus"

    def test_table(self, capsys):
        text = self.model.table()
        assert "agreement" in text.splitlines()[0]
        assert len(text.splitlines()) == 1 + len(self.model.selection_)
        assert "chosen" in text.splitlines()[1]
        linked(3, verbose=1).fit(X, constraints=LINKS)
        assert "k-means, no links" in capsys.readouterr().out
        with pytest.raises(NotFittedError):
            linked().table()

    def test_predictions(self):
        new = X + 0.01
        probabilities = self.model.predict_proba(new)
        assert probabilities.shape == (60, 3)
        np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
        assert probabilities.min() >= 0.0
        np.testing.assert_array_equal(self.model.predict(new), probabilities.argmax(axis=1))
        np.testing.assert_array_equal(
            linked().fit_predict(X, constraints=LINKS), linked().fit(X, constraints=LINKS).labels_
        )

    def test_other_attributes(self):
        assert self.model.n_features_in_ == 2
        assert self.model.n_rows_compared_ == 60
        assert self.model.converged_ in (True, False)
        assert not hasattr(self.model, "classes_")


class TestSettings:
    @pytest.mark.parametrize("effort", ["quick", "balanced", "thorough"])
    def test_effort(self, request, effort):
        if effort == "balanced" and not LONG:
            request.getfixturevalue("fewer_candidates")  # those of "thorough", which takes all
        model = LinkedClustering(3, effort=effort, random_state=0, cv=2).fit(
            X[::2], constraints=LINKS[::2] + HARD[::2]
        )
        names = {one.candidate for one in model.selection_} - {"consensus"}
        assert len(names) <= (9 if effort == "quick" else len(CANDIDATES))
        members = model.best_estimator_.names if isinstance(model.best_estimator_, Consensus) else ("one",)
        assert len(members) <= EFFORTS[effort].n_members

    def test_refused(self):
        with pytest.raises(ValueError, match=r"^effort must be one of quick, balanced, thorough; got 'much'"):
            linked(effort="much").fit(X)
        with pytest.raises(ValueError, match=r"^cv must be a whole number >= 2, got 1"):
            linked(cv=1).fit(X)
        with pytest.raises(ValueError, match=r"^random_state must be"):
            LinkedClustering(random_state="x").fit(X)

    def test_cv_is_the_number_of_folds(self):
        log = []

        class Counting(Scripted):
            def fit(self, X, y=None, *, constraints=None):
                log.append(constraints.n_pairs)
                return super().fit(X, constraints=constraints)

        for cv in (2, 4):
            log.clear()
            linked(3, [("one", Counting(labels=Y))], cv=cv).fit(X, constraints=LINKS)
            assert sorted(log) == [20 - 20 // cv] * cv + [20]

    def test_seed_and_threads(self):
        links = Constraints.sample(Y, 20, overlap=True, flip=0.2, certainty=0.8, random_state=0)
        first = linked("auto").fit(X, constraints=links)
        for twin in (linked("auto"), linked("auto", n_jobs=2)) if LONG else (linked("auto", n_jobs=2),):
            twin.fit(X, constraints=links)
            assert str(twin.selection_) == str(first.selection_)
            np.testing.assert_array_equal(twin.labels_, first.labels_)
            np.testing.assert_array_equal(twin.predict_proba(X), first.predict_proba(X))
        by_generator = [
            linked().set_params(random_state=np.random.default_rng(3)).fit(X, constraints=links).selection_
            for _ in range(2)
        ]
        assert by_generator[0] == by_generator[1]

    def test_a_fit_forgets_the_one_before(self):
        model = linked("auto").fit(X, labels=LABELS)
        model.fit(X, constraints=LINKS)
        fresh = number_found("links")
        assert vars(model).keys() == vars(fresh).keys()
        assert model.selection_ == fresh.selection_

    def test_pickle_and_clone(self):
        model = linked(3, [*QUICK, "discriminant of groups", KMeans(n_init=1)]).fit(X, labels=LABELS)
        twin = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(twin.predict(X), model.predict(X))
        assert twin.selection_ == model.selection_
        assert not hasattr(clone(model), "labels_")
        assert clone(model).get_params()["candidates"][1] == QUICK[1]

    def test_callbacks(self):
        callback = pytest.importorskip("sklearn.callback", reason="scikit-learn >= 1.9 has callbacks")
        assert callback
        seen = []

        class Recorder:
            max_propagation_depth = None

            def setup(self, estimator, context):
                seen.append("setup")

            def on_fit_task_begin(self, estimator, context):
                seen.append(("begin", context.task_name, context.task_id))

            def on_fit_task_end(self, estimator, context, **_):
                seen.append(("end", context.task_name, context.task_id))

            def teardown(self, estimator, context):
                seen.append("teardown")

        followed = linked().set_callbacks(Recorder()).fit(X, constraints=LINKS)
        begun = [event[1:] for event in seen if event[0] == "begin"]
        assert begun[0] == ("fit", 0)
        assert {("candidate", 0), ("candidate", 1)} <= set(begun)
        assert sorted(begun) == sorted(event[1:] for event in seen if event[0] == "end")
        assert (seen[0], seen[-2], seen[-1]) == ("setup", ("end", "fit", 0), "teardown")
        np.testing.assert_array_equal(followed.labels_, linked().fit(X, constraints=LINKS).labels_)


class TestData:
    def test_float32(self):
        small = X.astype(np.float32)
        model = linked(3).fit(small, constraints=LINKS)
        assert adjusted_rand_score(model.labels_, linked(3).fit(X, constraints=LINKS).labels_) > 0.9
        assert model.predict(small).shape == (60,)

    def test_frames_are_matched_by_id(self):
        ids = [f"row {i}" for i in range(60)]
        frame = pd.DataFrame(X, columns=["a", "b"], index=ids)
        links = Constraints(
            60, [(f"row {i}", f"row {j}") for i, j in LINKS.must_link],
            [(f"row {i}", f"row {j}") for i, j in LINKS.cannot_link], certainty=0.95, index=ids,
        )  # fmt: skip
        order = np.random.default_rng(0).permutation(60)
        model = linked().fit(frame.iloc[order], constraints=links, labels=LABELS[order])
        expected = linked().fit(X[order], constraints=LINKS[order], labels=LABELS[order])
        np.testing.assert_array_equal(model.labels_, expected.labels_)
        np.testing.assert_array_equal(model.violations_, expected.violations_)
        assert model.feature_names_in_.tolist() == ["a", "b"]
        with pytest.raises(ValueError, match="feature names"):
            model.predict(frame[["b", "a"]])

    def test_more_rows_than_are_compared(self):
        many, y = make_blobs(1300, centers=[[0, 0], [5, 0], [0, 5]], cluster_std=0.8, random_state=0)
        links = Constraints.sample(y, 40, certainty=0.95, random_state=0)
        model = linked(3, effort="quick").fit(many, constraints=links)
        assert model.n_rows_compared_ == EFFORTS["quick"].n_rows < 1300
        assert model.labels_.shape == (1300,)
        assert model.violations_.shape == (40,)
        assert adjusted_rand_score(y, model.labels_) > 0.9

    @pytest.mark.parametrize("as_labels", [True, False])
    def test_more_linked_rows_than_are_compared(self, as_labels):
        many, y = make_blobs(1300, centers=[[0, 0], [5, 0], [0, 5]], cluster_std=0.8, random_state=0)
        known = {"labels": np.where(np.arange(1300) < 1100, y, -1)}
        if not as_labels:
            known = {"constraints": Constraints.sample(y, 600, random_state=0)}
        model = linked(3, ["k-means, no links", ("truth", KMeans(n_init=1))], effort="quick").fit(
            many, **known
        )
        assert model.n_rows_compared_ <= EFFORTS["quick"].n_rows < 1100
        assert not model.violations_.any()
        assert np.isfinite(model.selection_[0].agreement)

    def test_in_a_pipeline_with_routing(self):
        with sklearn.config_context(enable_metadata_routing=True):
            pipeline = Pipeline([("scale", StandardScaler()), ("model", linked())])
            pipeline.fit(X, constraints=LINKS, labels=LABELS)
        assert pipeline["model"].n_clusters_ == 3
        assert len(pipeline["model"].violations_) > 20

    def test_clusters_without_rows_are_told(self):
        few = np.repeat([[0.0, 0.0], [5.0, 0.0]], 10, axis=0)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = linked(4, ["k-means, no links"]).fit(few)
        assert len(np.unique(model.labels_)) < 4
        assert any("of n_clusters=4 clusters have rows" in str(one.message) for one in caught)

    def test_constant_rows(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = linked(3).fit(np.zeros((60, 2)), constraints=HARD)
        assert not model.violations_.any()

    @pytest.mark.parametrize(
        ("call", "error", "match"),
        [
            (lambda: linked().fit(sp.csr_array(X)), TypeError, "dense data is required"),
            (lambda: linked().fit(np.where(X > 4, np.nan, X)), ValueError, "contains NaN"),
            (lambda: linked().fit(X[:, 0]), ValueError, "Expected 2D array"),
            (lambda: linked(1).fit(X[:1]), ValueError, "minimum of 2 is required"),
            (lambda: linked().fit(X, LINKS), TypeError, "pass links by name, as in"),
            (
                lambda: linked().fit(X, constraints=[(0, 1)]),
                TypeError,
                "must be a linkwise.Constraints, got list",
            ),
            (
                lambda: linked().fit(X, constraints=LINKS[:50]),
                ValueError,
                "about 50 samples, but X has 60 rows",
            ),
            (
                lambda: linked(2).fit(X, labels=LABELS),
                InfeasibleConstraints,
                r"the labels have 3 classes \(0, 1, 2\): .* but n_clusters=2; use n_clusters >= 3",
            ),
            (
                lambda: linked().fit(pd.DataFrame(X), labels=pd.Series(LABELS).sort_index(ascending=False)),
                ValueError,
                r"row 0 is 59 in labels and 0 in X; pass labels.loc\[X.index\]",
            ),
            (lambda: linked().predict(X), NotFittedError, "not fitted"),
            (lambda: linked().predict_proba(X), NotFittedError, "not fitted"),
            (lambda: three_compared().predict(X[:, :1]), ValueError, "expecting 2 features"),
        ],
    )
    def test_refused(self, call, error, match):
        with pytest.raises(error, match=match):
            call()
