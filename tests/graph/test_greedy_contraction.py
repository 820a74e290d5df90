"""Greedy contraction against connected components and against a slow transcription."""

from __future__ import annotations

import numpy as np
import pytest

from linkwise.graph import group_labels
from linkwise.graph.greedy_contraction import join


def slow_contraction(n, pairs, strength, least=0.0):
    """Join the two parts with the largest sum of strengths between them while it is above ``least``."""
    parts = [{row} for row in range(n)]
    while True:
        best, chosen = least, None
        for a in range(len(parts)):
            for b in range(a + 1, len(parts)):
                total = sum(
                    value
                    for (i, j), value in zip(pairs, strength, strict=True)
                    if (i in parts[a] and j in parts[b]) or (i in parts[b] and j in parts[a])
                )
                if total > best + 1e-12:
                    best, chosen = total, (a, b)
        if chosen is None:
            break
        parts[chosen[0]] |= parts.pop(chosen[1])
    parts.sort(key=min)
    return [next(number for number, part in enumerate(parts) if row in part) for row in range(n)]


def random_pairs(rng, n, m):
    return np.array([rng.choice(n, size=2, replace=False) for _ in range(m)], dtype=np.int64).reshape(-1, 2)


@pytest.mark.parametrize("seed", range(5))
def test_without_contradictions_parts_are_components(seed):
    rng = np.random.default_rng(seed)
    truth = rng.integers(4, size=30)
    pairs = random_pairs(rng, 30, 40)
    same = truth[pairs[:, 0]] == truth[pairs[:, 1]]
    strength = np.where(same, 1.0, -1.0) * rng.uniform(0.1, 30.0, size=40)
    expected, _ = group_labels(30, pairs[same])
    np.testing.assert_array_equal(join(30, pairs, strength), expected)


@pytest.mark.parametrize("seed", range(25))
def test_contradictions_against_slow_contraction(seed):
    least = 0.5 * (seed % 3)
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 12))
    # More answers than pairs of rows, so that pairs repeat, and no agreement among them.
    pairs = random_pairs(rng, n, int(rng.integers(1, 4 * n)))
    strength = rng.standard_normal(len(pairs)) + 0.3
    found = join(n, pairs, strength, least).tolist()
    assert found == slow_contraction(n, pairs.tolist(), strength.tolist(), least)


def test_order_of_answers_and_of_their_rows_does_not_matter():
    rng = np.random.default_rng(7)
    pairs = random_pairs(rng, 20, 70)
    strength = rng.standard_normal(70)
    found = join(20, pairs, strength)
    for _ in range(5):
        order = rng.permutation(70)
        turned = pairs[order]
        turned[::2] = turned[::2, ::-1]
        np.testing.assert_array_equal(join(20, turned, strength[order]), found)


def test_numbers_of_rows_do_not_matter_but_for_the_numbers_of_parts():
    rng = np.random.default_rng(8)
    pairs = random_pairs(rng, 20, 70)
    strength = rng.standard_normal(70)
    found = join(20, pairs, strength)
    new_number = rng.permutation(20)
    renamed = join(20, new_number[pairs], strength)[new_number]
    np.testing.assert_array_equal(renamed[:, None] == renamed, found[:, None] == found)


def test_by_hand():
    # 0 = 1 (strength 3), 1 = 2 (2), 0 differs from 2 (1): the sum of {0, 1} and 2 is 1 > 0, so all are one.
    pairs = np.array([[0, 1], [1, 2], [0, 2]])
    assert join(4, pairs, np.array([3.0, 2.0, -1.0])).tolist() == [0, 0, 0, 1]
    # With a stronger "different" only the strongest "same" holds.
    assert join(4, pairs, np.array([3.0, 2.0, -2.5])).tolist() == [0, 0, 1, 2]
    assert join(4, pairs, np.array([2.0, 3.0, -2.5])).tolist() == [0, 1, 1, 2]
    # Answers that are as strong for as against do not join.
    assert join(2, np.array([[0, 1], [1, 0]]), np.array([1.0, -1.0])).tolist() == [0, 1]
    assert join(3, np.empty((0, 2), dtype=np.int64), np.empty(0)).tolist() == [0, 1, 2]


def test_what_it_takes_to_join_counts_once_for_two_parts():
    # Two answers of 1.5 together are above 2, however many they are; each alone, or against a third, is not.
    assert join(2, np.array([[0, 1], [1, 0]]), np.array([1.5, 1.5]), 2.0).tolist() == [0, 0]
    assert join(2, np.array([[0, 1]]), np.array([1.5]), 2.0).tolist() == [0, 1]
    assert join(2, np.array([[0, 1], [1, 0], [0, 1]]), np.array([1.5, 1.5, -1.5]), 2.0).tolist() == [0, 1]
    # 0 = 1 is joined first; what is said of either holds for both: 1.2 + 1.2 for row 2.
    pairs = np.array([[0, 1], [0, 2], [1, 2]])
    assert join(3, pairs, np.array([3.0, 1.2, 1.2]), 2.0).tolist() == [0, 0, 0]
