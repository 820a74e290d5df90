"""The posterior: certain with right answers on clusters far apart; wrong answers are found out."""

from __future__ import annotations

import numpy as np
import pytest

from linkwise.active.knowledge import NO_ANSWERS, Answers
from linkwise.active.landscape import survey
from linkwise.active.posterior import infer
from tests.active.test_evidence import answers_of, blobs

CENTRES = [[0, 0], [8, 0], [0, 8]]
#: One row of each cluster compared with each other, then others with the first of their cluster.
PAIRS = [(12, 0), (24, 0), (24, 12), (1, 0), (13, 12), (25, 24), (2, 1), (14, 13), (26, 25), (3, 0), (15, 12)]
RIGHT = [-1, -1, -1, 1, 1, 1, 1, 1, 1, 1, 1]


@pytest.mark.parametrize("seed", range(5))
def test_right_answers(seed):
    X, y = blobs(seed, CENTRES)
    posterior = infer(survey(X, seed=seed), answers_of(PAIRS, RIGHT))
    assert posterior.n_groups == 3
    assert posterior.prob.sum(axis=1) == pytest.approx(1.0)
    assert np.array_equal(posterior.prob[:, :3].argmax(axis=1), y)
    assert (posterior.prob[posterior.asked].max(axis=1) > 0.95).all()
    assert (posterior.wrong < 0.1).all()
    assert posterior.error_rate < 0.05


def test_no_answers():
    X, _ = blobs(0, CENTRES)
    landscape = survey(X)
    posterior = infer(landscape, NO_ANSWERS)
    assert posterior.asked.tolist() == [landscape.centre]
    assert posterior.prob.shape == (36, 2)
    assert posterior.wrong.shape == (0,)


def test_unsure_says_nothing():
    X, _ = blobs(0, CENTRES)
    landscape = survey(X)
    with_unsure = infer(landscape, answers_of([*PAIRS, (5, 30)], [*RIGHT, 0]))
    without = infer(landscape, answers_of(PAIRS, RIGHT))
    assert with_unsure.wrong[-1] == 0.0
    assert np.array_equal(with_unsure.prob, without.prob)


@pytest.mark.parametrize("seed", range(5))
def test_a_wrong_answer_is_doubted(seed):
    """Row 4 is told to be in another cluster, in the midst of rows of its own; nothing else is doubted."""
    X, y = blobs(seed, CENTRES)
    posterior = infer(survey(X, seed=seed), answers_of([*PAIRS, (4, 14)], [*RIGHT, 1]))
    assert posterior.wrong[-1] > 0.5
    assert posterior.wrong[:-1].max() < 0.5
    assert posterior.prob[4].argmax() == y[4]


def test_an_answer_that_is_certain_is_believed():
    X, _ = blobs(0, CENTRES)
    answers = answers_of([*PAIRS, (4, 14)], [*RIGHT, 1])
    answers.certainty[-1] = 1.0
    posterior = infer(survey(X), answers)
    assert posterior.wrong[-1] < 0.01
    assert posterior.prob[4].argmax() == posterior.prob[14].argmax()


def test_error_rate_is_learned_from_answers_without_certainty():
    X, _ = blobs(0, CENTRES)
    more = [(first + k, first) for first in (0, 12, 24) for k in (4, 5, 6, 7)]
    pairs = [*PAIRS, *more, (8, 14), (20, 26), (32, 1)]
    says = [*RIGHT, *[1] * 12, 1, 1, 1]
    posterior = infer(survey(X), answers_of(pairs, says))
    assert (posterior.wrong > 0.5).tolist() == [False] * 23 + [True] * 3
    assert 0.04 < posterior.error_rate < 0.15  # 3 of 26, and a prior of .8 of 20.8
    told = answers_of(pairs, says, certainty=0.9)
    prior = infer(survey(X), NO_ANSWERS).error_rate
    assert infer(survey(X), told).error_rate == pytest.approx(prior)


def test_number_of_clusters_is_a_limit():
    X, _ = blobs(0, CENTRES)
    posterior = infer(survey(X, n_clusters=2), answers_of(PAIRS, RIGHT), 2)
    assert posterior.n_groups == 2
    assert not posterior.prob[np.setdiff1d(np.arange(36), posterior.asked), -1].any()


def test_what_is_remembered_changes_nothing():
    """The same answers give the same posterior, whatever was asked of the landscape before."""
    rng = np.random.default_rng(0)
    X, y = blobs(0, CENTRES, spread=2.0)
    pairs = np.array([rng.choice(36, 2, replace=False) for _ in range(45)])
    says = np.where((y[pairs[:, 0]] == y[pairs[:, 1]]) ^ (rng.random(45) < 0.1), 1, -1)
    answers = answers_of(pairs, says)
    fresh = infer(survey(X), answers)
    used = survey(X)
    for n in (45, 7, 33, 20, 44):
        infer(used, Answers(pairs[:n], answers.says[:n], answers.certainty[:n], ("",) * n))
    other = answers_of(pairs[::-1], says[::-1])
    infer(used, other)
    again = infer(used, answers)
    assert np.array_equal(fresh.prob, again.prob)
    assert np.array_equal(fresh.wrong, again.wrong)
