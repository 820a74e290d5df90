"""Warnings of many runs: caught together, issued once each."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["warn_once"]


@contextmanager
def warn_once(stacklevel: int = 4) -> Iterator[set[type[Warning]]]:
    """Catch the warnings of a block, threads included, and issue one for each place that warned.

    Yields an empty set. Warnings of the classes that the block adds to it are dropped, because the caller
    sums them up. ``stacklevel`` is as in ``warnings.warn``: 4 is the caller of the function that has the
    block.
    """
    summed_up: set[type[Warning]] = set()
    with warnings.catch_warnings(record=True) as caught:
        yield summed_up
    places: dict[tuple[type[Warning], str, int], list[str]] = {}
    for warning in caught:
        if not issubclass(warning.category, tuple(summed_up)):
            key = (warning.category, warning.filename, warning.lineno)
            places.setdefault(key, []).append(str(warning.message))
    for (category, _, _), messages in places.items():
        others = len(set(messages)) - 1
        more = f" (and {others} more like it in other runs)" if others else ""
        warnings.warn(messages[0] + more, category, stacklevel=stacklevel)
