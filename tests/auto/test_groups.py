"""Groups that hard links tell apart, against a closure written out pair by pair; classifiers of groups."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import make_blobs
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.metrics import adjusted_rand_score

from linkwise import Constraints
from linkwise.auto.groups import METHODS, GroupClassifier, mutual_groups
from tests.repeats import examples


def closure(links):
    """What hard links say of every pair: +1 same, -1 different, 0 nothing; repeated until nothing is new."""
    n = links.n_samples
    known = np.eye(n, dtype=int)
    for (i, j), weight in zip(links.pairs.tolist(), links.weights.tolist(), strict=True):
        if np.isinf(weight):
            known[i, j] = known[j, i] = np.sign(weight)
    while True:
        before = known.copy()
        for i, j, k in itertools.product(range(n), repeat=3):
            if known[i, j] == 1 and known[j, k] != 0:
                known[i, k] = known[k, i] = known[j, k]
        if (before == known).all():
            return known


class TestMutualGroups:
    @settings(deadline=None, max_examples=examples(60, 15))
    @given(st.integers(0, 2**32 - 1), st.integers(2, 4), st.integers(1, 14))
    def test_pairs_of_rows_in_groups_are_known(self, seed, k, n_links):
        rng = np.random.default_rng(seed)
        y = rng.integers(3, size=9)
        pairs = np.array(list(itertools.combinations(range(9), 2)))
        pairs = pairs[rng.choice(len(pairs), n_links, replace=False)]
        same = y[pairs[:, 0]] == y[pairs[:, 1]]
        hard = rng.random(n_links) < 0.8
        weight = np.where(hard, np.inf, 0.7)
        links = Constraints(
            9, pairs[same], pairs[~same], weight=np.concatenate([weight[same], weight[~same]])
        )  # fmt: skip
        known, group = closure(links), mutual_groups(links, k)
        rows = np.flatnonzero(group >= 0)
        for i, j in itertools.combinations(rows, 2):
            assert known[i, j] == (1 if group[i] == group[j] else -1)
        # Groups are whole and numbered from 0, at most k, the largest first.
        for row in rows:
            assert (group[known[row] == 1] == group[row]).all()
        sizes = np.bincount(group[rows]) if len(rows) else np.zeros(0)
        assert len(sizes) <= k
        assert (np.diff(sizes) <= 0).all()
        # One more cannot be added, and there are two if any two rows are linked apart.
        if len(sizes) < k:
            for row in np.flatnonzero(group < 0):
                told_apart = (known[row][rows] == -1).all()
                assert not (len(rows) and told_apart)
        assert (len(sizes) >= 2) == bool((known == -1).any())

    def test_labels_give_their_classes(self):
        y = np.array([2, 0, -1, 0, 1, 2, 2, -1])
        group = mutual_groups(Constraints.from_labels(y), 3)
        assert group.tolist() == [0, 1, -1, 1, 2, 0, 0, -1]
        assert mutual_groups(Constraints.from_labels(y), 2).tolist() == [0, 1, -1, 1, -1, 0, 0, -1]

    def test_nothing_without_hard_cannot_links(self):
        assert len(mutual_groups(None, 3)) == 0
        assert (mutual_groups(Constraints(4, [(0, 1)]), 2) == -1).all()
        assert (mutual_groups(Constraints(4, [(0, 1)], [(1, 2)], certainty=0.9), 2) == -1).all()


def trained(method, X, y):
    """scikit-learn's classifier of a method."""
    if method == "discriminant":
        return LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto").fit(X, y)
    return ExtraTreesClassifier(100, random_state=3).fit(X, y)


@pytest.mark.parametrize("method", METHODS)
class TestGroupClassifier:
    X, y = make_blobs(60, centers=3, cluster_std=0.6, random_state=0)
    known = np.where(np.arange(60) % 5 == 0, y, -1)

    @pytest.mark.parametrize("seed", range(examples(20, 8)))
    def test_new_rows_have_the_groups_of_scikit_learn(self, method, seed):
        """Arrays of ours against the classifier itself, with two groups and more, in both precisions."""
        rng = np.random.default_rng(seed)
        n_groups, n_features = 2 + seed % 3, 1 + seed % 4
        y = np.r_[np.arange(n_groups).repeat(2), rng.integers(n_groups, size=40)]
        X = rng.normal(size=(len(y), n_features)) + y[:, None]
        X = X.astype(np.float32 if seed % 2 else np.float64)
        links = Constraints.from_labels(y)
        model = GroupClassifier(n_groups, method, random_state=3).fit(X, constraints=links)
        group = mutual_groups(links, n_groups)
        direct = trained(method, X, group)
        new = np.concatenate([X, 3.0 * rng.normal(size=(200, n_features)).astype(X.dtype)])
        prob = np.sort(direct.predict_proba(new), axis=1)
        clear = prob[:, -1] - prob[:, -2] > 1e-9
        assert clear.sum() > 150
        np.testing.assert_array_equal(model.predict(new)[clear], direct.predict(new)[clear])

    def test_learns_the_groups_and_keeps_them(self, method):
        links = Constraints.from_labels(self.known)
        model = GroupClassifier(3, method, random_state=0).fit(self.X, constraints=links)
        assert adjusted_rand_score(self.y, model.labels_) > 0.85
        np.testing.assert_array_equal(model.predict(self.X), model.labels_)

    def test_rows_of_groups_stay_where_the_classifier_errs(self, method):
        """A plane cannot part the corners of a square, nor trees two rows that are alike."""
        X = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0], [0.0, 0.0]])
        links = Constraints.from_labels([0, 0, 1, 1, 1])
        model = GroupClassifier(2, method, random_state=0).fit(X, constraints=links)
        assert not links.violations(model.labels_).any()
        assert links.violations(model.predict(X)).any()

    @pytest.mark.parametrize(
        "links", [None, Constraints(60, [(0, 1)]), Constraints(60, cannot_link=[(0, 1)], certainty=0.9)]
    )
    def test_refuses_links_that_tell_nothing_apart(self, method, links):
        with pytest.raises(ValueError, match="hard links tell no two groups apart; give labels"):
            GroupClassifier(3, method).fit(self.X, constraints=links)


@pytest.mark.filterwarnings("error")
def test_a_group_of_one_row_is_no_news():
    X = np.random.default_rng(0).normal(size=(7, 2))
    links = Constraints.from_labels([0, 0, 0, 1, 1, 1, 2])
    model = GroupClassifier(3).fit(X, constraints=links)
    assert not links.violations(model.labels_).any()


def test_refuses_other_classifiers():
    links = Constraints.from_labels([0, 1])
    with pytest.raises(ValueError, match="method must be one of discriminant, forest; got 'trees'"):
        GroupClassifier(2, "trees").fit(np.zeros((2, 1)), constraints=links)
