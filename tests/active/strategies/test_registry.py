"""Strategies by name."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from linkwise.active.knowledge import NO_ANSWERS, SAYS, Knowledge, append
from linkwise.active.strategies import find_strategy, strategy, strategy_names
from linkwise.active.strategies.random_pairs import random_pairs
from tests.repeats import examples


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
        assert not knowledge.is_asked(pairs).any() or name in ("auto", "information")  # these ask again
        again = find_strategy(name)(knowledge, 1 + m % 3, np.random.default_rng([0, m]))
        np.testing.assert_array_equal(pairs, again)
        i, j = pairs[-1]
        answers = append(answers, i, j, list(SAYS.values())[rng.choice(3, p=[0.4, 0.5, 0.1])])
