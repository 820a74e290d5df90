"""Runs that take long: their warnings are issued once, and Ctrl-C gets through code of other libraries."""

from __future__ import annotations

import atexit
import contextvars
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

Result = TypeVar("Result")

# Seconds after which the main thread looks for signals.
_PAUSE = 0.1

# Events of functions that ran on when the main thread was interrupted; set when they return.
_given_up: list[threading.Event] = []


def run_interruptibly(function: Callable[[], Result]) -> Result:
    """Call a function that runs for long without looking for signals, such as a solver of SciPy.

    Python raises KeyboardInterrupt between two instructions of the main thread. So the function, which must
    release the interpreter lock, runs in another thread, and its result is given up after an interrupt.
    """
    if threading.current_thread() is not threading.main_thread():
        # Signals come to the main thread alone.
        return function()
    results: list[Result] = []
    errors: list[BaseException] = []
    done = threading.Event()
    context = contextvars.copy_context()

    def work() -> None:
        try:
            results.append(context.run(function))
        except BaseException as error:
            errors.append(error)
        finally:
            done.set()

    thread = threading.Thread(target=work, daemon=True)
    try:
        thread.start()
        while not done.wait(_PAUSE):
            pass
    except KeyboardInterrupt:
        _given_up.append(done)
        raise
    if errors:
        raise errors[0]
    return results[0]


@atexit.register
def _end_by_the_signal() -> None:
    """End as Python does after an uncaught KeyboardInterrupt, but before it takes the interpreter apart.

    A solver that returned meanwhile could not get the interpreter lock. Python would end its thread within
    C++ code that must not be left that way, and the process would abort.
    """
    interrupted = getattr(sys, "last_type", None) is KeyboardInterrupt
    if os.name == "posix" and interrupted and not all(done.is_set() for done in _given_up):
        sys.stdout.flush()
        sys.stderr.flush()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)


@contextmanager
def warn_once() -> Iterator[set[type[Warning]]]:
    """Catch the warnings of a block, threads included, and issue one for each place that warned.

    Warnings of classes that the block adds to the set it is given are dropped: the caller sums them up.
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
        warnings.warn(messages[0] + more, category, stacklevel=4)
