"""Neighbourhoods of must-links, and the choice of those far apart."""

from __future__ import annotations

import numpy as np
import pytest

from linkwise._neighbourhoods import choose_far_apart, neighbourhoods


def test_neighbourhoods_are_the_groups_of_two_and_more():
    members, groups, n_groups = neighbourhoods(9, np.array([[0, 3], [3, 5], [7, 8]]))
    assert members.tolist() == [0, 3, 5, 7, 8]
    assert groups.tolist() == [0, 0, 0, 1, 1]
    assert n_groups == 2


@pytest.mark.parametrize("seed", range(30))
def test_far_apart_equals_the_definition(seed):
    rng = np.random.default_rng(seed)
    place, sizes = rng.normal(size=(8, 2)), rng.integers(2, 9, size=8).astype(float)
    distance = np.sqrt(((place[:, np.newaxis] - place) ** 2).sum(axis=2))
    found = choose_far_apart(lambda g: distance[g], sizes, 5, first=3)
    chosen = [3]
    while len(chosen) < 5:
        scores = {
            g: min(distance[g, c] * np.sqrt(sizes[g] * sizes[c]) for c in chosen)
            for g in range(8)
            if g not in chosen
        }
        chosen.append(max(scores, key=lambda g: (scores[g], -g)))
    assert found.tolist() == chosen


def test_coincident_groups_are_still_chosen_once_each():
    found = choose_far_apart(lambda g: np.zeros(4), np.ones(4), 3, first=2)
    assert sorted(found.tolist()) == [0, 1, 2]


def test_distinct_leaves_coincident_groups_out():
    place = np.array([0.0, 0.0, 3.0, 0.0])
    found = choose_far_apart(lambda g: np.abs(place - place[g]), np.ones(4), 4, first=1, distinct=True)
    assert found.tolist() == [1, 2]
