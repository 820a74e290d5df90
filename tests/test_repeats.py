"""Tests that repeat themselves: every seed is tried, and a failure names its own."""

from __future__ import annotations

import inspect

import pytest

from tests import repeats
from tests.repeats import examples, for_cases, for_seeds


def test_a_fifth_of_the_cases_but_never_none(monkeypatch):
    monkeypatch.setattr(repeats, "LONG", False)
    assert [examples(n) for n in (3, 12, 90)] == [3, 10, 18]
    assert [examples(n, 5) for n in (3, 12, 90)] == [3, 5, 18]
    with pytest.raises(AssertionError, match="no sample"):
        examples(90, 0)
    monkeypatch.setattr(repeats, "LONG", True)
    assert [examples(n, 5) for n in (3, 12, 90)] == [3, 12, 90]


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


def test_a_test_without_these_arguments_is_refused():
    with pytest.raises(AssertionError, match="does not take"):
        for_seeds(3)(lambda other: None)


def test_every_test_of_a_class_and_several_arguments():
    seen = []

    @for_cases(("a", "b"), [(1, "x"), (2, "y")])
    class TestBoth:
        def test_one(self, a, b):
            seen.append(("one", a, b))

        def test_two(self, a, other, b):
            assert a < other, "small"

    TestBoth().test_one()
    assert seen == [("one", 1, "x"), ("one", 2, "y")]
    assert list(inspect.signature(TestBoth.test_two).parameters) == ["self", "other"]
    with pytest.raises(AssertionError, match="small") as failed:
        TestBoth().test_two(other=2)
    assert failed.value.__notes__ == ["a=2, b='y'"]
