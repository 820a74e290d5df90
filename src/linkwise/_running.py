"""Runs that take long: their warnings are issued once, and Ctrl-C gets through code of other libraries."""

from __future__ import annotations

import contextvars
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

__all__ = ["run_interruptibly", "warn_once"]

Result = TypeVar("Result")

# Seconds after which the main thread looks for signals.
_PAUSE = 0.1


def run_interruptibly(function: Callable[[], Result]) -> Result:
    """Call a function that runs for long without looking for signals, such as a solver of SciPy.

    Python raises KeyboardInterrupt only between two instructions of the main thread. So the function, which
    must release the interpreter lock, runs in a thread of its own while the main thread waits. After an
    interrupt its result is given up; it ends by its own time limit, or with the process.
    """
    if threading.current_thread() is not threading.main_thread():
        # Signals come to the main thread alone.
        return function()
    results: list[Result] = []
    errors: list[BaseException] = []
    context = contextvars.copy_context()

    def work() -> None:
        try:
            results.append(context.run(function))
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(_PAUSE)
    if errors:
        raise errors[0]
    return results[0]


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
