"""Tests that repeat themselves: one test for many cases, since a test of its own costs each of them 4 ms."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

#: ``make test-long``: as many random cases as there ever were.
LONG = bool(os.environ.get("LINKWISE_TEST_LONG"))
#: ``make test`` takes one of so many random cases.
ONE_OF = 5


def examples(n_long: int, at_least: int = 10) -> int:
    """How many random cases a test takes: all in ``make test-long``, else a fifth, but at least so many."""
    assert at_least >= 3, "two cases are no sample"
    return n_long if LONG else min(n_long, max(at_least, n_long // ONE_OF))


def share(n_long: int) -> int:
    """A count that many random cases together have to reach: a fifth of it, as ``examples`` takes a fifth."""
    return n_long if LONG else n_long // ONE_OF


def for_seeds(n_seeds: int) -> Callable[[Any], Any]:
    """Run a test, or every test of a class, for all values of ``seed`` below a number."""
    return for_cases(("seed",), [(seed,) for seed in range(n_seeds)])


def for_cases(names: tuple[str, ...], cases: Iterable[tuple[Any, ...]]) -> Callable[[Any], Any]:
    """Run a test, or every test of a class, for all values of some arguments; a failure names its own."""
    all_given = [dict(zip(names, case, strict=True)) for case in cases]

    def repeat(test: Any) -> Any:
        if isinstance(test, type):
            for name, method in list(vars(test).items()):
                if name.startswith("test"):
                    setattr(test, name, repeat(method))
            return test

        @wraps(test)
        def every(*arguments: Any, **others: Any) -> None:
            for given in all_given:
                try:
                    test(*arguments, **given, **others)
                except Exception as error:
                    error.add_note(", ".join(f"{name}={value!r}" for name, value in given.items()))
                    raise

        signature = inspect.signature(test)
        kept = [one for name, one in signature.parameters.items() if name not in names]
        assert len(kept) + len(names) == len(signature.parameters), f"{test.__name__} does not take {names}"
        every.__signature__ = signature.replace(parameters=kept)
        return every

    return repeat
