"""Tests that repeat themselves with random cases."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any


def for_seeds(n_seeds: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test for every seed below a number. All are one test, since a test of its own costs each 4 ms."""

    def repeat(test: Callable[..., None]) -> Callable[..., None]:
        @wraps(test)
        def every(*arguments: Any, **given: Any) -> None:
            for seed in range(n_seeds):
                try:
                    test(*arguments, seed=seed, **given)
                except Exception as error:
                    error.add_note(f"seed={seed}")
                    raise

        signature = inspect.signature(test)
        others = [one for name, one in signature.parameters.items() if name != "seed"]
        assert len(others) < len(signature.parameters), f"{test.__name__} takes no seed"
        every.__signature__ = signature.replace(parameters=others)  # type: ignore[attr-defined]
        return every

    return repeat
