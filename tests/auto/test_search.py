"""Trials of scripted candidates, members that fail, and rows to compare on."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from linkwise import Constraints
from linkwise.auto.candidates import Candidate
from linkwise.auto.search import enough_folds, fit_members, rows_to_choose_on, try_candidates
from linkwise.exceptions import InferenceBudgetExceeded
from linkwise.model_selection.held_out import LinkFold, Questions, link_folds

NAN = float("nan")


class Scripted:
    """Labels by a function of K and the links; counts its fits."""

    def __init__(self, k, answer, log):
        self.k, self.answer, self.log = k, answer, log

    def fit(self, X, constraints=None):
        self.log.append(constraints)
        self.labels_ = self.answer(self.k, constraints)
        return self


def scripted(name, answer, *, uses_links=True):
    log = []
    return Candidate(name, uses_links, lambda k, seed: Scripted(k, answer, log)), log


def fails(error):
    def answer(k, links):
        raise error

    return answer


TRUTH = np.array([0, 0, 1, 1])
X = np.zeros((4, 1))
QUESTIONS = Questions(
    np.array([(0, 1), (0, 2), (2, 3)]), np.array([True, False, True]), np.array([1.0, 1.0, 0.5])
)
FOLDS = [
    LinkFold(Constraints(4, cannot_link=[(0, 2)]), np.array([0, 2])),
    LinkFold(Constraints(4, [(0, 1), (2, 3)]), np.array([1])),
]


class TestTrials:
    def test_links_are_those_of_the_fold_and_without_links_one_fit_is_enough(self):
        linked, seen = scripted("linked", lambda k, links: TRUTH)
        plain, unseen = scripted("plain", lambda k, links: np.zeros(4), uses_links=False)
        trials = try_candidates([linked, plain], [2], X, QUESTIONS, FOLDS, 0)
        assert seen == [fold.kept for fold in FOLDS]
        assert unseen == [None]
        assert [trial.candidate.name for trial in trials] == ["linked", "plain"]
        assert trials[0].kept.tolist() == [1.0, 1.0, 1.0]
        assert trials[1].kept.tolist() == [1.0, 0.0, 1.0]
        # Trust 1, 1 and .5: of 2.5 the plain one keeps 1.5.
        assert [trial.agreement for trial in trials] == pytest.approx([1.0, 0.6])
        assert all(len(trial.memberships) == 2 for trial in trials)

    def test_answers_are_those_of_the_fit_that_was_not_told(self):
        """Right only where it was told: all answers are wrong."""
        parrot, _ = scripted("parrot", lambda k, links: np.zeros(4) if len(links.must_link) else np.arange(4))
        [trial] = try_candidates([parrot], [2], X, QUESTIONS, FOLDS, 0)
        assert trial.kept.tolist() == [0.0, 0.0, 0.0]

    def test_every_number_of_clusters_with_every_candidate(self):
        one, _ = scripted("one", lambda k, links: np.arange(4) % k)
        two, _ = scripted("two", lambda k, links: np.arange(4) % k, uses_links=False)
        trials = try_candidates([one, two], [1, 2, 3], X, QUESTIONS, FOLDS, 0)
        assert [(trial.n_clusters, trial.candidate.name) for trial in trials] == [
            (k, name) for k in (1, 2, 3) for name in ("one", "two")
        ]
        threaded = try_candidates([one, two], [1, 2, 3], X, QUESTIONS, FOLDS, 0, n_jobs=2)
        assert [trial.agreement for trial in threaded] == [trial.agreement for trial in trials]

    @pytest.mark.parametrize(
        "error",
        [ValueError("too odd"), np.linalg.LinAlgError("too odd"), RuntimeError("too odd"),
         InferenceBudgetExceeded("too odd", 9)],
    )  # fmt: skip
    def test_a_failure_is_written_down(self, error):
        bad, _ = scripted("bad", fails(error))
        good, _ = scripted("good", lambda k, links: TRUTH)
        first, second = try_candidates([bad, good], [2], X, QUESTIONS, FOLDS, 0)
        assert "too odd" in first.failure
        assert np.isnan([first.agreement, first.error, *first.kept]).all()
        assert (second.failure, second.agreement) == ("", 1.0)

    def test_a_failure_in_one_fold_is_one_of_all(self):
        def answer(k, links):
            if len(links.must_link):
                raise ValueError("too odd")
            return TRUTH

        [trial] = try_candidates([scripted("bad", answer)[0]], [2], X, QUESTIONS, FOLDS, 0)
        assert trial.failure == "too odd"

    def test_warnings_of_trials_are_not_shown(self):
        def answer(k, links):
            warnings.warn("not yet", stacklevel=1)
            return TRUTH

        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try_candidates([scripted("loud", answer)[0]], [2], X, QUESTIONS, FOLDS, 0)


class TestMembers:
    def test_the_others_share_the_vote_of_one_that_fails(self):
        good = [scripted(name, lambda k, links: TRUTH)[0] for name in ("a", "c")]
        bad = scripted("b", fails(ValueError("too odd")))[0]
        members = [good[0], bad, good[1]]
        with pytest.warns(
            UserWarning, match="candidate 'b' has no vote, because it cannot be fitted: too odd"
        ):
            left, fitted, weights = fit_members(members, np.array([0.3, 0.5, 0.2]), X, None, 2, 0)
        assert [one.name for one in left] == ["a", "c"]
        assert len(fitted) == 2
        np.testing.assert_allclose(weights, [0.6, 0.4])

    def test_warnings_say_which_candidate_they_are_about(self):
        """Advice to raise a parameter is left out: the caller did not build the candidate."""

        def answer(k, links):
            warnings.warn("still moving; raise max_iter", ConvergenceWarning, stacklevel=1)
            return TRUTH

        loud = [scripted(name, answer)[0] for name in ("a", "b")]
        with pytest.warns(ConvergenceWarning) as caught:
            fit_members(loud, np.full(2, 0.5), X, None, 2, 0)
        assert [str(one.message) for one in caught] == [
            "candidate 'a': still moving", "candidate 'b': still moving"
        ]  # fmt: skip
        assert {one.filename for one in caught} == {__file__}

    def test_none_is_left(self):
        bad = scripted("b", fails(ValueError("too odd")))[0]
        with pytest.raises(ValueError, match="no candidate could be fitted: too odd; pass other candidates"):
            fit_members([bad], np.ones(1), X, None, 2, 0)


def rows_of(n, links, n_rows, seed=0):
    return rows_to_choose_on(n, links, n_rows, np.random.default_rng(seed))


class TestRows:
    def test_all_if_there_are_few(self):
        np.testing.assert_array_equal(rows_of(10, Constraints(10, [(0, 1)]), 10), np.arange(10))

    def test_linked_rows_and_others(self):
        links = Constraints(1000, [(0, 999), (5, 7)], [(500, 501)], certainty=0.9)
        rows = rows_of(1000, links, 100)
        assert len(rows) == 100
        assert set(links.pairs.ravel()) <= set(rows)
        assert (np.diff(rows) > 0).all()

    @pytest.mark.parametrize("links", [None, Constraints(1000)])
    def test_any_rows_without_links(self, links):
        rows = rows_of(1000, links, 100)
        assert len(rows) == 100
        assert rows.max() > 800
        np.testing.assert_array_equal(rows, rows_of(1000, links, 100))
        assert rows.tolist() != rows_of(1000, links, 100, seed=1).tolist()

    def test_whole_groups_if_there_are_too_many(self):
        links = Constraints(
            1000, [(3 * i, 3 * i + 1) for i in range(300)], [(3 * i, 3 * i + 2) for i in range(300)]
        )
        rows = rows_of(1000, links, 100)
        assert len(rows) <= 100
        inside = np.isin(np.arange(900), rows)
        linked = inside.reshape(300, 3).all(axis=1)
        assert 12 <= linked.sum() <= 16  # groups of three fill half
        assert links[rows].n_pairs >= 2 * linked.sum()

    def test_labels_are_drawn_where_all_are_linked(self):
        y = np.arange(1000) % 3
        links = Constraints.from_labels(np.where(np.arange(1000) < 900, y, -1))
        rows = rows_of(1000, links, 100)
        assert len(rows) == 100
        known = links[rows]
        labelled = known.row_classes >= 0
        assert labelled.sum() >= 50
        # All that labels say about them is still said.
        assert len(np.unique(known.chunklets()[labelled])) == 3
        assert (np.bincount(known.row_classes[labelled]) >= 8).all()

    def test_one_large_group_of_links_keeps_many(self):
        rng = np.random.default_rng(0)
        pairs = np.array([rng.choice(1000, 2, replace=False) for _ in range(3000)])
        links = Constraints(1000, pairs, certainty=0.9)
        rows = rows_of(1000, links, 200)
        assert len(rows) == 200
        assert links[rows].n_pairs >= 50


class TestEnoughFolds:
    @staticmethod
    def folds(n_pairs, *, overlap=False):
        y = np.arange(900) % 3
        links = Constraints.sample(y, n_pairs, overlap=overlap, random_state=0)
        return y, *link_folds(links, 5, np.random.default_rng(0))

    @pytest.mark.parametrize(
        ("n_pairs", "expected"), [(50, 5), (100, 5), (125, 4), (130, 4), (170, 3), (250, 2), (400, 2)]
    )
    def test_a_hundred_answers_are_enough_and_two_folds_the_fewest(self, n_pairs, expected):
        _, questions, folds = self.folds(n_pairs)
        assert len(enough_folds(questions, folds)[1]) == expected

    def test_the_questions_are_those_that_the_folds_ask(self):
        y, questions, folds = self.folds(1500, overlap=True)
        fewer, first = enough_folds(questions, folds)
        assert len(first) == 2
        for before, after in zip(folds, first, strict=False):
            assert after.kept is before.kept
            np.testing.assert_array_equal(fewer.pairs[after.asked], questions.pairs[before.asked])
            np.testing.assert_array_equal(fewer.same[after.asked], questions.same[before.asked])
            np.testing.assert_array_equal(fewer.trust[after.asked], questions.trust[before.asked])
        # Every question is asked, so none counts that nobody answers.
        np.testing.assert_array_equal(
            np.unique(np.concatenate([fold.asked for fold in first])), np.arange(len(fewer.pairs))
        )
        np.testing.assert_array_equal(y[fewer.pairs[:, 0]] == y[fewer.pairs[:, 1]], fewer.same)
