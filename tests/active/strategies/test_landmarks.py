"""Strategies see landmarks: few rows of many, and coordinates in the place of distances."""

from __future__ import annotations

import numpy as np
import pytest

from linkwise.active.knowledge import DIFFERENT, NO_ANSWERS, Knowledge, append
from linkwise.active.landscape import survey
from linkwise.active.strategies import find_strategy
from tests.active.strategies.sessions import rng_at

NAMES = ("explore_consolidate", "min_max", "npu", "random")


@pytest.mark.parametrize("name", NAMES)
def test_only_landmarks_are_asked_about(name):
    X = np.random.default_rng(0).standard_normal((120, 2))
    landscape = survey(X, asked=np.array([7, 90]), n_landmarks=20)
    answers = append(NO_ANSWERS, 7, 90, DIFFERENT)
    pairs = find_strategy(name)(Knowledge(X, answers, None, landscape), 12, rng_at(0, 1))
    assert len(pairs) == 12
    assert np.isin(pairs, landscape.rows).all()
    # As if there were no other rows.
    few = append(NO_ANSWERS, *landscape.place[[7, 90]], DIFFERENT)
    alone = find_strategy(name)(Knowledge(X[landscape.rows], few), 12, rng_at(0, 1))
    np.testing.assert_array_equal(pairs, landscape.rows[alone])


@pytest.mark.parametrize("name", NAMES)
def test_all_rows_are_landmarks_of_few_rows(name):
    X = np.random.default_rng(0).standard_normal((30, 2))
    answers = append(NO_ANSWERS, 3, 1, DIFFERENT)
    strategy = find_strategy(name)
    alone = strategy(Knowledge(X, answers), 4, rng_at(0, 1))
    np.testing.assert_array_equal(strategy(Knowledge(X, answers, None, survey(X)), 4, rng_at(0, 1)), alone)


def test_distances_are_enough():
    # Farthest first on a circle of which only distances along the arc are given.
    angles = np.arange(12) / 12.0
    gaps = np.abs(angles[:, None] - angles)
    arcs = np.minimum(gaps, 1.0 - gaps)
    landscape = survey(arcs, metric="precomputed")
    answers = append(append(NO_ANSWERS, 6, 0, DIFFERENT), 3, 0, DIFFERENT)
    answers = append(answers, 3, 6, DIFFERENT)
    (pair,) = find_strategy("min_max")(Knowledge(arcs, answers, None, landscape), 1, rng_at(0, 3))
    assert pair[0] == 9
