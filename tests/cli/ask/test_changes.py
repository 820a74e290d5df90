"""What an answer changed, whatever numbers the clusters have."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from linkwise.cli.ask.conversation import change_in_words, renamed
from tests.repeats import for_seeds


@for_seeds(30)
def test_renaming_lets_the_fewest_rows_move(seed):
    rng = np.random.default_rng(seed)
    before, after = rng.integers(0, 3, 25), rng.integers(0, rng.integers(1, 5), 25)
    found = renamed(before, after)
    assert np.array_equal(found[:, None] == found, after[:, None] == after)  # the same clusters
    fewest = min(
        (np.array(names)[after] != before).sum()
        for names in itertools.permutations(range(-2, 5), int(after.max()) + 1)
    )
    assert (found != before).sum() == fewest


def test_a_cluster_without_a_match_gets_a_number_of_its_own():
    assert renamed(np.array([0, 0, 0, 1]), np.array([5, 5, 9, 7])).tolist() == [0, 0, 2, 1]


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ([0, 0, 1], [0, 0, 1], "no row moved"),
        ([0, 0, 1, 1], [0, 1, 1, 1], "1 row moved: 1 from cluster 0 to 1"),
        ([0, 0, 0, 0], [0, 0, 1, 1], "2 rows moved: 2 from cluster 0 to 1 (new)"),
        ([0, 0, 1], [0, 0, 0], "1 row moved: 1 from cluster 1 (gone) to 0"),
        (
            [0] * 9 + [1] * 9 + [2] * 9,
            [0] * 5 + [1] * 4 + [1] * 6 + [2] * 3 + [2] * 6 + [0] * 2 + [1],
            "10 rows moved: 4 from cluster 0 to 1, 3 from cluster 1 to 2, 2 from cluster 2 to 0, 1 elsewhere",
        ),
    ],
)
def test_the_words(before, after, words):
    assert change_in_words(np.array(before), np.array(after)) == words
