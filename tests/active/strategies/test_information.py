"""Expected number of questions against an enumeration, and what every question must be."""

from __future__ import annotations

import numpy as np
import pytest

from linkwise.active.knowledge import NO_ANSWERS, Knowledge, append
from linkwise.active.landscape import survey
from linkwise.active.posterior import SURE
from linkwise.active.strategies.information import _NOISE, _Observed, expected_questions, information
from tests.active.strategies.sessions import asks_again, faulty, rng_at, small_set


def mean_over_truths(prob, allowed):
    """Ask as described for each group that may be true, and weigh the number of questions by its chance.

    Groups are asked about, the likeliest first, until "same", or until what remains is sure: the next group,
    or a new one, has a share of at least SURE of what is left.
    """
    groups = [(p, g) for g, p in enumerate(prob[:-1]) if allowed[g]]
    groups.sort(key=lambda one: -one[0])
    new = prob[-1]
    # Groups that cannot be asked about remain possible, but never get an answer "same".
    total = 0.0
    for truth, chance in enumerate(prob):
        left, n_questions = 1.0, 0
        for p, g in groups:
            if max(p, new) >= SURE * left:
                break
            n_questions += 1
            left -= p
            if g == truth:
                break
        total += chance * n_questions
    return max(total, 1.0)


@pytest.mark.parametrize("n_groups", [1, 2, 3, 6])
@pytest.mark.parametrize("all_allowed", [True, False])
def test_expected_questions(n_groups, all_allowed):
    rng = np.random.default_rng(n_groups)
    prob = rng.dirichlet(np.full(n_groups + 1, 0.5), size=200)
    allowed = np.ones((200, n_groups), dtype=bool) if all_allowed else rng.random((200, n_groups)) < 0.6
    expected = [mean_over_truths(p, a) for p, a in zip(prob, allowed, strict=True)]
    np.testing.assert_allclose(expected_questions(prob, allowed), expected, rtol=1e-9)


def test_expected_questions_by_hand():
    prob = np.array([[0.5, 0.3, 0.2], [0.95, 0.03, 0.02], [0.25, 0.25, 0.5]])
    allowed = np.ones((3, 2), dtype=bool)
    # .5 same at once; .5 a second question, after which all is known. A sure row takes one.
    # Of three, after .25 and .25 both were asked about with chance 1 and .75.
    np.testing.assert_allclose(expected_questions(prob, allowed), [1.5, 1.0, 1.75])


@pytest.mark.usefixtures("fewest_candidates")
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("n_pairs", [1, 5])
def test_questions_are_new_and_differ_from_each_other(seed, n_pairs):
    X, y, k = small_set(seed)
    answer = faulty(y, seed)
    answers, seen = NO_ANSWERS, set()
    for _ in range(8):
        knowledge = Knowledge(X, answers, k if seed % 2 else None)
        pairs = information(knowledge, n_pairs, rng_at(seed, len(answers.says)))
        codes = {frozenset(pair) for pair in pairs.tolist()}
        assert len(codes) == len(pairs) == n_pairs
        assert all(len(code) == 2 for code in codes)
        assert not codes & seen
        i, j = pairs[0].tolist()
        seen.add(frozenset((i, j)))
        answers = append(answers, i, j, answer(i, j))


def test_first_question_is_about_the_centre():
    X, _, _ = small_set(1)
    knowledge = Knowledge(X)
    (pair,) = information(knowledge, 1, rng_at(0, 0))
    assert knowledge.surveyed.centre in pair.tolist()


def test_without_doubts_it_asks_about_landmarks():
    """Another row would have to be surveyed first, with all that follows from it."""
    X = np.repeat([[0.0, 0.0], [50.0, 50.0]], 30, axis=0) + np.random.default_rng(0).normal(size=(60, 2))
    landscape = survey(X, n_landmarks=20)
    rows = landscape.rows[landscape.rows < 30]
    answers = NO_ANSWERS
    for row in rows[1:].tolist():
        answers = append(answers, row, int(rows[0]), 1)
    for row in landscape.rows[landscape.rows >= 30].tolist():
        answers = append(answers, row, int(rows[0]), -1)
    knowledge = Knowledge(X, answers, 2, landscape)
    pairs = information(knowledge, 25, np.random.default_rng(0))
    assert len(pairs) == 25
    assert np.isin(pairs, landscape.rows).all()
    assert not asks_again(knowledge, pairs)


@pytest.mark.parametrize("seed", range(10))
def test_observed_rows_change_the_covariance_as_if_it_were_written_again(seed):
    rng = np.random.default_rng(seed)
    root, doubt = rng.normal(size=(30, 12)), rng.random(30)
    covariance = root @ root.T
    found = _Observed(covariance, doubt)
    for row in rng.choice(30, size=8, replace=True).tolist():
        found.observe(row)
        step = covariance[row]
        covariance = covariance - np.outer(step, step) / (step[row] + _NOISE)
        np.testing.assert_allclose(found.variance, np.diag(covariance), atol=1e-10)
        np.testing.assert_allclose(found.drop, covariance**2 @ doubt, atol=1e-9)
