"""Tests that repeat themselves: every seed is tried, and a failure names its own."""

from __future__ import annotations

import inspect

import pytest

from tests.repeats import for_seeds


def test_every_seed_is_tried():
    seen = []

    @for_seeds(4)
    def test(other, seed):
        seen.append((other, seed))

    assert list(inspect.signature(test).parameters) == ["other"]
    test(other="one")
    assert seen == [("one", 0), ("one", 1), ("one", 2), ("one", 3)]


def test_a_failure_names_its_seed():
    @for_seeds(4)
    def test(seed):
        assert seed != 2, "two"

    with pytest.raises(AssertionError, match="two") as failed:
        test()
    assert failed.value.__notes__ == ["seed=2"]


def test_a_test_without_seed_is_refused():
    with pytest.raises(AssertionError, match="takes no seed"):
        for_seeds(3)(lambda other: None)
