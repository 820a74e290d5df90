"""Warnings of many runs: caught together, passed on once each."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["warn_once"]


@contextmanager
def warn_once(stacklevel: int = 4) -> Iterator[set[type[Warning]]]:
    """Catch the warnings of a block, threads included, and issue one for each place that warned.

    Parameters
    ----------
    stacklevel : int, default=4
        As in ``warnings.warn``, counted from here: 4 is the caller of the function that has the block.

    Yields
    ------
    set of warning classes
        Empty; what the block adds to it is not passed on, because the caller sums it up.

    Examples
    --------
    >>> import warnings
    >>> from linkwise._run_warnings import warn_once
    >>> def runs():
    ...     with warn_once():
    ...         for number in range(3):
    ...             warnings.warn(f"run {number} has empty clusters", stacklevel=1)
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     runs()
    >>> [str(warning.message) for warning in caught]
    ['run 0 has empty clusters (and 2 more like it in other runs)']
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
