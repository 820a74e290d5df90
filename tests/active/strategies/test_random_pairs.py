"""Random pairs: new, different, and each as likely as any other."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from linkwise.active.knowledge import NO_ANSWERS, SAME, UNSURE, Knowledge, append
from linkwise.active.strategies.random_pairs import random_pairs


@pytest.mark.parametrize("n_pairs", [1, 4])
def test_every_new_pair_is_as_likely(n_pairs):
    answers = append(append(NO_ANSWERS, 3, 1, SAME), 0, 2, UNSURE)
    knowledge = Knowledge(np.zeros((7, 1)), answers)
    new = set(combinations(range(7), 2)) - {(1, 3), (0, 2)}
    counts = dict.fromkeys(new, 0)
    for seed in range(4000):
        pairs = random_pairs(knowledge, n_pairs, np.random.default_rng(seed)).tolist()
        assert len({tuple(pair) for pair in pairs}) == n_pairs
        for i, j in pairs:
            counts[min(i, j), max(i, j)] += 1
    expected = 4000 * n_pairs / len(new)
    chi2 = sum((count - expected) ** 2 / expected for count in counts.values())
    assert chi2 < 43.8  # 99.9 % of 18 degrees of freedom; drawing without replacement varies less


@pytest.mark.parametrize("n_pairs", [1, 8, 15, 40])
def test_as_many_as_wanted_or_as_there_are(n_pairs):
    pairs = random_pairs(Knowledge(np.zeros((6, 1))), n_pairs, np.random.default_rng(0))
    assert len({frozenset(pair) for pair in pairs.tolist()}) == min(n_pairs, 15)
    assert pairs.dtype == np.int64
    assert (pairs[:, 0] != pairs[:, 1]).all()


def test_many_rows_take_no_list_of_all_pairs():
    pairs = random_pairs(Knowledge(np.zeros((10**6, 1))), 5, np.random.default_rng(0))
    assert pairs.shape == (5, 2)
