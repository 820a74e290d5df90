"""Explore & Consolidate against the paper's pseudo-code, and on a line that is easy to follow by hand."""

from __future__ import annotations

import numpy as np
import pytest

from linkwise.active.knowledge import DIFFERENT, NO_ANSWERS, SAME, UNSURE, Knowledge, append
from linkwise.active.strategies.explore_consolidate import PATIENCE, explore_consolidate
from tests.active.strategies.sessions import (
    Budget,
    Person,
    asked_by,
    asks_again,
    faulty,
    nearest,
    rng_at,
    small_set,
    truth,
)
from tests.repeats import examples


def transcription(X, person, k, seed):
    """Figures 2 and 3 of Basu, Banerjee & Mooney 2004, with loops; ``k`` None: the rule of the docstring."""
    n = len(X)
    neighbourhoods = [[int(rng_at(seed, 0).choice(n))]]
    used = {neighbourhoods[0][0]}
    since_founding, centroids = 0, None
    try:
        while len(used) < n:
            exploring = since_founding < PATIENCE if k is None else len(neighbourhoods) < k
            free = [row for row in range(n) if row not in used]
            if exploring:
                # The row that is farthest from all neighbourhoods.
                gap = {
                    row: min(np.linalg.norm(X[row] - X[y]) for N in neighbourhoods for y in N) for row in free
                }
                row, centroids = max(free, key=gap.get), None
            else:
                row = int(rng_at(seed, len(person.asked)).choice(free))
            if centroids is None:
                centroids = [X[N].mean(axis=0) for N in neighbourhoods]
            used.add(row)
            answers = []
            for h in sorted(range(len(neighbourhoods)), key=lambda h: ((X[row] - centroids[h]) ** 2).sum()):
                answers.append(person(row, nearest(X, row, neighbourhoods[h])))
                if answers[-1] == SAME:
                    neighbourhoods[h].append(row)
                    break
            if exploring:
                centroids = None  # Consolidate estimates them once, when it begins
            since_founding += 1
            if all(answer == DIFFERENT for answer in answers) and (k is None or len(neighbourhoods) < k):
                neighbourhoods.append([row])
                since_founding = 0
    except Budget:
        pass
    return person.asked


@pytest.mark.parametrize("given", [True, False], ids=["K known", "K unknown"])
@pytest.mark.parametrize("seed", range(examples(12, 6)))
def test_asks_what_the_pseudo_code_asks(seed, given):
    X, y, k = small_set(seed)
    for answer in (truth(y), faulty(y, seed)):
        person = Person(answer, 60)
        wanted = transcription(X, person, k if given else None, seed)
        n_clusters = k if given else None
        asked = asked_by(explore_consolidate, X, answer, len(wanted), n_clusters=n_clusters, seed=seed)
        assert asked == wanted
        assert len(wanted) >= len(X) - 1  # one question for each row at least: all rows were reached


def test_explore_goes_to_the_farthest_row_and_ends_with_k_neighbourhoods():
    X = np.array([[0.0], [1.0], [10.0], [4.0], [11.0]])
    answers = append(NO_ANSWERS, 4, 0, DIFFERENT)
    # 0 and 11 are different; 4 is four away from row 0, 10 one away from row 4.
    pair = explore_consolidate(Knowledge(X, answers, 3), 1, rng_at(0, 1))
    assert pair.tolist() == [[3, 0]]
    # Three neighbourhoods: random rows now, so that rows 1 and 2 both come first for some seed.
    answers = append(append(answers, 3, 0, DIFFERENT), 3, 4, DIFFERENT)
    first = {explore_consolidate(Knowledge(X, answers, 3), 1, rng_at(seed, 3))[0, 0] for seed in range(20)}
    assert first == {1, 2}


def test_a_row_is_asked_about_until_same():
    X = np.array([[0.0], [1.0], [10.0], [4.0], [11.0]])
    answers = append(append(NO_ANSWERS, 4, 0, DIFFERENT), 3, 0, DIFFERENT)
    pairs = explore_consolidate(Knowledge(X, answers, 3), 1, rng_at(0, 2))
    assert pairs.tolist() == [[3, 4]]
    answers = append(answers, 3, 4, SAME)
    pairs = explore_consolidate(Knowledge(X, answers, 3), 1, rng_at(0, 3))
    assert pairs[0, 0] in (1, 2)  # row 3 is settled


def test_consolidate_keeps_the_centroids_of_explore():
    # Explore found {0} at 0 and {1} at 10; then 4.5 joined the second one: its mean would be 7.25.
    X = np.array([[0.0], [10.0], [4.5], [4.0]])
    answers = append(NO_ANSWERS, 1, 0, DIFFERENT)
    answers = append(append(answers, 2, 0, DIFFERENT), 2, 1, SAME)
    pairs = explore_consolidate(Knowledge(X, answers, 2), 2, rng_at(0, 3))
    assert pairs.tolist() == [[3, 0], [3, 2]]  # nearest centroid first, its nearest row is shown


def test_unsure_is_not_asked_again_and_founds_nothing():
    X = np.array([[0.0], [10.0], [4.0], [9.0]])
    answers = append(append(NO_ANSWERS, 1, 0, DIFFERENT), 2, 0, UNSURE)
    pairs = explore_consolidate(Knowledge(X, answers, 3), 1, rng_at(0, 2))
    assert pairs.tolist() == [[2, 1]]
    answers = append(answers, 2, 1, DIFFERENT)
    pairs = explore_consolidate(Knowledge(X, answers, 3), 9, rng_at(0, 3))
    assert pairs.tolist()[:2] == [[3, 1], [3, 0]]
    assert [3, 2] not in pairs.tolist()[:2]  # row 2 is no neighbourhood


def test_several_questions_are_new_and_different():
    X, y, k = small_set(3)
    answers = NO_ANSWERS
    for i, j in asked_by(explore_consolidate, X, truth(y), 12, n_clusters=k):
        answers = append(answers, i, j, truth(y)(i, j))
    knowledge = Knowledge(X, answers, k)
    pairs = explore_consolidate(knowledge, 30, rng_at(0, 12))
    assert pairs.shape == (30, 2)
    assert not asks_again(knowledge, pairs)
    assert len({frozenset(pair) for pair in pairs.tolist()}) == 30


def test_several_questions_are_about_as_many_rows():
    X = np.array([[0.0], [1.0], [10.0], [4.0], [11.0]])
    answers = append(append(NO_ANSWERS, 4, 0, DIFFERENT), 3, 0, DIFFERENT)
    pairs = explore_consolidate(Knowledge(X, answers, 3), 3, rng_at(0, 2))
    # Row 3 is under way; then the farthest of rows 1 and 2, both one away: the first, and the other.
    assert pairs.tolist() == [[3, 4], [1, 0], [2, 4]]


def test_no_pair_is_left():
    X = np.array([[0.0], [1.0], [2.0]])
    answers = NO_ANSWERS
    for i, j in ((1, 0), (2, 0), (2, 1)):
        answers = append(answers, i, j, DIFFERENT)
    assert explore_consolidate(Knowledge(X, answers), 2, rng_at(0, 3)).shape == (0, 2)
