"""Let Ctrl-C through while code of another library runs for long."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from typing import TypeVar

__all__ = ["run_interruptibly"]

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
