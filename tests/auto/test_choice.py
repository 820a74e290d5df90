"""Votes and gains against closed forms and sums written out."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from linkwise import Constraints
from linkwise.auto.choice import (
    Gain,
    agreement,
    doubted_links,
    held_out_kept,
    paired_gain,
    right_log_odds,
    vote_weights,
)
from linkwise.model_selection.held_out import LinkFold, Questions

NAN = float("nan")


def questions(pairs, same, trust=None):
    trust = np.ones(len(pairs)) if trust is None else np.array(trust)
    return Questions(np.array(pairs), np.array(same), trust)


class TestHeldOutKept:
    def test_by_hand(self):
        """Question 0 is asked twice and once answered right, 1 never, 2 and 3 once, 2 answered wrong."""
        asked = questions([(0, 1), (1, 2), (2, 3), (0, 3)], [True, False, True, False])
        nothing = Constraints(4)
        folds = [LinkFold(nothing, np.array([0, 2])), LinkFold(nothing, np.array([0, 3]))]
        kept = held_out_kept(asked, folds, [np.array([0, 0, 0, 1]), np.array([0, 1, 1, 1])])
        np.testing.assert_array_equal(kept, [0.5, NAN, 0.0, 1.0])

    def test_a_fold_more_than_fits_is_refused(self):
        with pytest.raises(ValueError, match="zip"):
            held_out_kept(questions([(0, 1)], [True]), [], [np.zeros(2, dtype=int)])


class TestAgreement:
    def test_equal_trust_gives_the_share_and_its_standard_error(self):
        kept = np.repeat([1.0, 0.0], [7, 3])
        mean, error = agreement(kept, np.full(10, 0.4))
        assert mean == pytest.approx(0.7)
        assert error == pytest.approx(math.sqrt(0.7 * 0.3 / 10))

    def test_trust_weighs_and_what_was_not_asked_is_left_out(self):
        mean, error = agreement(np.array([1.0, NAN, 0.0]), np.array([3.0, 100.0, 1.0]))
        assert mean == pytest.approx(0.75)
        # Weights 3 and 1 of 4, distances 1/4 and 3/4 from the mean.
        assert error == pytest.approx(math.sqrt((3 * 0.25) ** 2 + (1 * 0.75) ** 2) / 4)

    @pytest.mark.parametrize(
        ("kept", "trust"), [([NAN, NAN], [1.0, 1.0]), ([1.0, 0.0], [0.0, 0.0]), ([], [])]
    )
    def test_nothing_asked(self, kept, trust):
        assert np.isnan(agreement(np.array(kept), np.array(trust))).all()


def votes_of(agreements, n_links):
    """Votes of candidates that all use links."""
    return vote_weights(np.array(agreements), np.ones(len(agreements), dtype=bool), n_links)


class TestVoteWeights:
    @pytest.mark.parametrize(
        ("n_links", "nats"),
        [
            (4.0, 3.0),  # three quarters of a nat for each of few links
            (100.0, 15.0),  # not 75
            (10_000.0, 100.0),  # the square root of very many
        ],
    )
    def test_nats_between_a_candidate_that_keeps_all_and_one_that_keeps_none(self, n_links, nats):
        votes = votes_of([1.0, 0.0], n_links)
        assert math.log(votes[0] / votes[1]) == pytest.approx(nats)
        assert votes.sum() == pytest.approx(1.0)

    @pytest.mark.parametrize(
        ("n_links", "nats"), [(4.0, 3.0), (24.0, 18.0), (100.0, 30.0), (10_000.0, 100.0)]
    )
    def test_hard_links_may_decide_more(self, n_links, nats):
        votes = vote_weights(np.array([1.0, 0.0]), np.ones(2, dtype=bool), n_links, certain=True)
        assert math.log(votes[0] / votes[1]) == pytest.approx(nats)

    def test_what_else_speaks_for_a_candidate_multiplies_its_vote(self):
        plain, more = (
            vote_weights(np.array([0.9, 0.7, NAN]), np.array([True, False, True]), 10.0, nats)
            for nats in (0.0, np.array([0.0, 2.0, 2.0]))
        )
        assert more[1] / more[0] == pytest.approx(math.exp(2.0) * plain[1] / plain[0])
        assert more[2] == 0.0

    def test_without_links_all_vote_alike_and_failures_never(self):
        np.testing.assert_allclose(votes_of([0.2, NAN, 0.9], 0.0), [0.5, 0.0, 0.5])

    def test_many_links_leave_the_best(self):
        np.testing.assert_allclose(votes_of([0.5, 0.7, 0.6], 1e6), [0.0, 1.0, 0.0], atol=1e-9)

    def test_a_candidate_without_links_counts_less_unless_it_agrees_better(self):
        uses_links = np.array([True, False, True])
        votes = vote_weights(np.array([0.8, 0.8, NAN]), uses_links, 25.0)
        assert votes[0] / votes[1] == pytest.approx(math.exp(1.0))
        # An agreement that is higher by a fifteenth, one of 15 nats, makes up for it.
        better = np.array([0.8, 0.8 + 1.0 / 15.0, NAN])
        assert vote_weights(better, uses_links, 25.0)[:2] == pytest.approx([0.5, 0.5])

    @given(
        st.lists(st.floats(0.0, 1.0), min_size=1, max_size=6),
        st.floats(0.0, 1e4),
        st.floats(-0.5, 0.5),
    )
    def test_only_differences_count_and_the_order_stays(self, values, n_links, shift):
        agreements = np.array(values)
        votes = votes_of(agreements, n_links)
        assert votes.sum() == pytest.approx(1.0)
        np.testing.assert_allclose(votes_of(agreements + shift, n_links), votes, atol=1e-9)
        assert (np.diff(votes[np.argsort(agreements, kind="stable")]) >= -1e-12).all()


class TestPairedGain:
    def test_is_mcnemars(self):
        """With b links kept by the result alone and c by the reference alone it is (b - c) / n."""
        b, c, both, none = 9, 3, 20, 8
        n = b + c + both + none
        kept = np.repeat([1.0, 0.0, 1.0, 0.0], [b, c, both, none])
        reference = np.repeat([0.0, 1.0, 1.0, 0.0], [b, c, both, none])
        gain = paired_gain(kept, reference, np.ones(n))
        error = math.sqrt(b + c - (b - c) ** 2 / n) / n
        assert gain.value == pytest.approx((b - c) / n)
        assert gain.high - gain.value == pytest.approx(norm.ppf(0.95) * error, rel=1e-3)
        assert gain.value - gain.low == pytest.approx(gain.high - gain.value)

    def test_equal_answers_gain_nothing_for_sure(self):
        kept = np.array([1.0, 0.0, 1.0])
        assert paired_gain(kept, kept, np.ones(3)) == Gain(0.0, 0.0, 0.0)

    def test_links_that_one_was_not_asked_are_left_out(self):
        gain = paired_gain(np.array([1.0, 1.0, NAN]), np.array([0.0, NAN, 1.0]), np.ones(3))
        assert gain.value == 1.0


class TestDoubt:
    @given(st.floats(0.51, 0.99), st.floats(0.0, 1.0), st.sampled_from([-1.0, 1.0]))
    def test_is_the_rule_of_bayes(self, certainty, support, sign):
        """Answer and vote are two witnesses; each is right with a probability of its own."""
        reliable = 0.2 + 0.6 * support
        right, wrong = certainty * reliable, (1.0 - certainty) * (1.0 - reliable)
        weight = sign * 0.5 * math.log(certainty / (1.0 - certainty))
        (found,) = right_log_odds(np.array([weight]), np.array([support]))
        assert 1.0 / (1.0 + math.exp(-found)) == pytest.approx(right / (right + wrong))

    def test_hard_links_and_links_without_votes_stay(self):
        weights = np.array([np.inf, -np.inf, 0.7, -0.7])
        found = right_log_odds(weights, np.array([0.0, NAN, NAN, 0.5]))
        np.testing.assert_allclose(found, [np.inf, np.inf, 1.4, 1.4])

    def test_links_that_are_rather_wrong_are_left_out(self):
        links = Constraints(5, [(0, 1), (1, 2)], [(0, 3), (3, 4)], weight=np.array([1.0, 2.0, np.inf, 1.0]))
        assert links.weights.tolist() == [1.0, -np.inf, 2.0, -1.0]
        found = doubted_links(links, np.array([0.5, np.inf, -0.1, 3.0]))
        assert found.pairs.tolist() == [[0, 1], [0, 3], [3, 4]]
        np.testing.assert_allclose(found.weights, [0.25, -np.inf, -1.5])
        assert found.n_samples == 5
