"""The consensus of clusterings against the dense definition, and its votes against counts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score

from linkwise import Constraints
from linkwise.auto.consensus import Consensus, Plain, consensus_labels, consensus_rows, membership_table
from tests.repeats import examples, for_seeds


def random_members(rng, n=30, m=4, k=3):
    memberships = [rng.integers(k + i % 2, size=n) for i in range(m)]
    weights = rng.random(m) + 0.1
    return memberships, weights / weights.sum()


def co_membership(memberships, weights):
    """S_ij = sum_m w_m [labels_m(i) = labels_m(j)], entry by entry."""
    n = len(memberships[0])
    table = np.zeros((n, n))
    for labels, weight in zip(memberships, weights, strict=True):
        for i in range(n):
            for j in range(n):
                table[i, j] += weight * (labels[i] == labels[j])
    return table


class Fitted:
    """Labels of the training rows; new rows are numbers of training rows."""

    def __init__(self, labels):
        self.labels_ = np.asarray(labels)

    def predict(self, X):
        return self.labels_[np.asarray(X)[:, 0].astype(int)]


class TestWithoutLinks:
    @for_seeds(5)
    def test_is_one_more_voter(self, seed):
        rng = np.random.default_rng(seed)
        memberships, weights = random_members(rng)
        labels, share = rng.integers(3, size=30), 0.3
        found = Consensus(
            "abcd", [Fitted(one) for one in memberships], weights, 3, None, 0, plain=Plain(labels, share)
        )
        voters = [Fitted(one) for one in (*memberships, labels)]
        expected = Consensus("abcde", voters, np.append(0.7 * weights, share), 3, None, 0)
        np.testing.assert_array_equal(found.labels_, expected.labels_)

    def test_has_no_vote_for_new_rows(self):
        memberships, weights = random_members(np.random.default_rng(0))
        plain = Plain(memberships[0], 0.1)
        found = Consensus("abcd", [Fitted(one) for one in memberships], weights, 3, None, 0, plain=plain)
        assert len(found.estimators) == 4
        np.testing.assert_allclose(found.predict_proba(np.arange(30)[:, None]).sum(axis=1), 1.0)


class TestRows:
    def test_the_table_makes_the_co_membership(self):
        memberships, weights = random_members(np.random.default_rng(0))
        table = membership_table(memberships, weights)
        np.testing.assert_allclose((table @ table.T).toarray(), co_membership(memberships, weights))

    def test_numbers_without_rows_make_no_column(self):
        table = membership_table([np.array([0, 5, 5]), np.array([2, 2, 1])], np.array([0.5, 0.5]))
        assert table.shape == (3, 4)

    @for_seeds(5)
    @pytest.mark.parametrize("k", [2, 3, 5])
    def test_span_the_eigenvectors_of_the_normalised_co_membership(self, seed, k):
        memberships, weights = random_members(np.random.default_rng(seed))
        dense = co_membership(memberships, weights)
        degree = dense.sum(axis=1)
        values, vectors = np.linalg.eigh(dense / np.sqrt(np.outer(degree, degree)))
        assert values[-k] - values[-k - 1] > 1e-6  # else the span is not defined
        wanted = vectors[:, -k:]
        rows = consensus_rows(membership_table(memberships, weights), k)
        np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0)
        # Rows scaled to length one agree up to a rotation: their inner products are the same.
        wanted /= np.linalg.norm(wanted, axis=1, keepdims=True)
        np.testing.assert_allclose(rows @ rows.T, wanted @ wanted.T, atol=1e-7)

    def test_fewer_columns_where_the_clusterings_have_no_more(self):
        labels = np.array([0, 0, 1, 1])
        assert consensus_rows(membership_table([labels, 1 - labels], np.array([0.5, 0.5])), 4).shape == (4, 2)


class TestLabels:
    @pytest.mark.parametrize("links", [None, Constraints(12), Constraints(12, [(0, 3)], [(0, 1)])])
    def test_a_single_member_is_reproduced(self, links):
        labels = np.arange(12) % 3
        found = consensus_labels([labels], np.ones(1), 3, links, 0)
        assert adjusted_rand_score(found, labels) == 1.0
        assert found.dtype == np.int64

    def test_the_majority_wins(self):
        truth = np.repeat([0, 1], 10)
        rng = np.random.default_rng(0)
        wrong = [np.where(rng.permutation(20) < 3, 1 - truth, truth) for _ in range(7)]
        assert adjusted_rand_score(consensus_labels(wrong, np.full(7, 1 / 7), 2, None, 0), truth) == 1.0

    def test_names_of_clusters_do_not_matter(self):
        truth = np.repeat([0, 1, 2], 5)
        renamed = [truth, 2 - truth, (truth + 1) % 3]
        assert adjusted_rand_score(consensus_labels(renamed, np.full(3, 1 / 3), 3, None, 0), truth) == 1.0

    def test_a_vote_of_nearly_one_decides(self):
        first, second = np.repeat([0, 1], 10), np.tile([0, 1], 10)
        found = consensus_labels([first, second], np.array([0.95, 0.05]), 2, None, 0)
        assert adjusted_rand_score(found, first) == 1.0

    def test_fewer_clusters_than_asked_for_if_members_have_fewer(self):
        labels = np.zeros(6, dtype=int)
        assert consensus_labels([labels, labels], np.full(2, 0.5), 3, None, 0).tolist() == [0] * 6

    @settings(deadline=None, max_examples=examples(40, 12))
    @given(st.integers(0, 2**32 - 1), st.integers(2, 4), st.integers(1, 4))
    def test_hard_links_are_kept_and_soft_ones_ignored(self, seed, k, m):
        rng = np.random.default_rng(seed)
        hidden = rng.integers(k, size=20)
        links = Constraints.sample(hidden, 15, overlap=True, random_state=seed % 1000)
        soft = Constraints.sample(hidden, 15, overlap=True, certainty=0.8, flip=0.5, random_state=seed % 1000)
        memberships = [rng.integers(k, size=20) for _ in range(m)]
        found = consensus_labels(memberships, np.full(m, 1 / m), k, links + soft, 0)
        assert found.shape == (20,)
        assert set(found) <= set(range(k))
        assert not links.violations(found).any()


class TestConsensus:
    def make(self, seed=0, k=3):
        rng = np.random.default_rng(seed)
        truth = np.repeat(np.arange(k), 10)
        members = [np.where(rng.random(30) < 0.2, rng.integers(k, size=30), truth) for _ in range(3)]
        weights = np.array([0.5, 0.3, 0.2])
        return Consensus("abc", [Fitted(one) for one in members], weights, k, None, seed), members, weights

    def test_all_fits_of_a_member_share_its_vote_about_the_training_rows(self):
        _, members, weights = self.make()
        fits = [Fitted(one) for one in members]
        rng = np.random.default_rng(1)
        others = [
            [rng.permutation(one) for _ in range(size)] for one, size in zip(members, (2, 0, 5), strict=True)
        ]
        found = Consensus("abc", fits, weights, 3, None, 0, others)
        everything = [*others[0], members[0], members[1], *others[2], members[2]]
        shares = np.array([0.5 / 3] * 3 + [0.3] + [0.2 / 6] * 6)
        assert adjusted_rand_score(found.labels_, consensus_labels(everything, shares, 3, None, 0)) == 1.0
        votes = np.array([found.shares[m][members[m]] for m in range(3)])
        np.testing.assert_allclose(found.responsibilities_, np.tensordot(weights, votes, axes=1))
        # The votes of the others decide: with the members alone, labels are different.
        assert adjusted_rand_score(found.labels_, Consensus("abc", fits, weights, 3, None, 0).labels_) < 1.0

    def test_probabilities_are_votes_counted_row_by_row(self):
        model, members, weights = self.make()
        X = np.arange(30)[:, None]
        wanted = np.zeros((30, 3))
        for labels, weight in zip(members, weights, strict=True):
            for row in range(30):
                peers = model.labels_[labels == labels[row]]
                for cluster in range(3):
                    wanted[row, cluster] += weight * np.mean(peers == cluster)
        found = model.predict_proba(X)
        np.testing.assert_allclose(found, wanted)
        np.testing.assert_allclose(found.sum(axis=1), 1.0)
        np.testing.assert_array_equal(model.predict(X), wanted.argmax(axis=1))

    def test_a_single_member_predicts_as_itself(self):
        labels = np.arange(12) % 3
        model = Consensus(["a"], [Fitted(labels)], np.ones(1), 3, None, 0)
        assert adjusted_rand_score(model.predict(np.arange(12)[:, None]), labels) == 1.0
        np.testing.assert_array_equal(model.predict(np.arange(12)[:, None]), model.labels_)

    def test_a_cluster_without_training_rows_says_nothing(self):
        """A member whose cluster 2 was empty may still predict it for a new row."""
        model = Consensus(["a"], [Fitted([0, 0, 1, 1])], np.ones(1), 3, None, 0)
        model.estimators = (Fitted([2, 2, 2, 2]),)
        np.testing.assert_allclose(model.predict_proba(np.zeros((2, 1))), 1 / 3)
