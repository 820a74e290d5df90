"""Strategies by name."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from linkwise.active.knowledge import DIFFERENT, NO_ANSWERS, SAYS, Knowledge, append
from linkwise.active.landscape import survey
from linkwise.active.strategies import find_strategy, strategy, strategy_names
from linkwise.active.strategies.random_pairs import random_pairs
from tests.active.strategies.sessions import asks_again, rng_at
from tests.repeats import examples

NAMES = ("explore_consolidate", "min_max", "npu", "random")


def test_names_and_functions():
    assert {"random", "explore_consolidate", "min_max", "npu"} <= set(strategy_names())
    assert find_strategy("random") is random_pairs
    assert find_strategy(random_pairs) is random_pairs
    assert find_strategy(test_names_and_functions) is test_names_and_functions


@pytest.mark.parametrize("wanted", ["randon", None, 3, ("random",)])
def test_an_unknown_name_lists_the_names(wanted):
    with pytest.raises(ValueError, match=r"strategy=.* is not known; choose one of .*min_max.*npu.*random"):
        find_strategy(wanted)


def test_a_name_is_given_once():
    with pytest.raises(ValueError, match="there is a strategy 'random' already"):
        strategy("random")(random_pairs)


@pytest.mark.usefixtures("fewest_candidates")
@pytest.mark.parametrize("name", strategy_names())
@pytest.mark.parametrize("n_clusters", [None, 3])
def test_all_return_new_pairs_of_different_rows(name, n_clusters, monkeypatch):
    monkeypatch.setattr(
        sys.modules["linkwise.active.strategies.npu"], "N_TREES", 5
    )  # a forest takes nearly all the time
    rng = np.random.default_rng(5)
    X = rng.standard_normal((30, 2))
    answers = NO_ANSWERS
    for m in range(examples(12, 6)):
        knowledge = Knowledge(X, answers, n_clusters)
        pairs = find_strategy(name)(knowledge, 1 + m % 3, np.random.default_rng([0, m]))
        assert pairs.shape == (1 + m % 3, 2)
        assert pairs.dtype == np.int64
        assert (pairs[:, 0] != pairs[:, 1]).all()
        assert pairs.min() >= 0
        assert pairs.max() < 30
        assert len({frozenset(pair) for pair in pairs.tolist()}) == len(pairs)
        assert not asks_again(knowledge, pairs) or name in ("auto", "information")  # these ask again
        again = find_strategy(name)(knowledge, 1 + m % 3, np.random.default_rng([0, m]))
        np.testing.assert_array_equal(pairs, again)
        i, j = pairs[-1]
        answers = append(answers, i, j, list(SAYS.values())[rng.choice(3, p=[0.4, 0.5, 0.1])])


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
