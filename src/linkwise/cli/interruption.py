"""Ctrl-C and SIGTERM: one line, the right exit code, and soon, whatever the process is doing.

Python raises ``KeyboardInterrupt`` in the main thread, between two instructions. Two things may go wrong
with it. A kernel runs for seconds before the next instruction, or a thread pool waits for one. And libraries
turn the exception into another one (a reader of CSV calls the file damaged) or swallow it in a callback. So
the signal is remembered here, errors that follow it are not believed, and a thread ends the process if
the main thread has not done so shortly after.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, NoReturn

__all__ = ["INTERRUPTED", "exit_code_of_signal", "leave", "leave_interrupted", "listening", "wants_json"]

INTERRUPTED, TERMINATED = 130, 143
_CODES = {int(signal.SIGINT): INTERRUPTED, int(signal.SIGTERM): TERMINATED}
_NAMES = {INTERRUPTED: "interrupted", TERMINATED: "terminated"}

# How long the main thread has to remove its drafts, in seconds.
_GRACE = 2.0

_signal_code: int | None = None
_said = threading.Lock()
_open_until_the_end: list[socket.socket] = []


def exit_code_of_signal() -> int | None:
    """130 or 143 once a signal has come, else None."""
    return _signal_code


def wants_json(arguments: list[str]) -> bool:
    """Whether the arguments of a command ask for JSON, although they may be wrong otherwise."""
    own = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return "--json" in own


def leave(
    message: str, code: int, *, kind: str, as_json: bool = False, result: dict[str, Any] | None = None
) -> NoReturn:
    """End the process with one line on standard error and, for scripts, a JSON object on standard output.

    Parameters
    ----------
    message : str
        What is wrong and, after a semicolon, what to do.
    code : int
        Exit code.
    kind : str
        The kind of failure, for scripts.
    as_json : bool, default=False
    result : dict, optional
        What was found before the failure; goes into the JSON object.
    """
    line = " ".join(message.split())
    _say(line, code, kind, as_json, result)
    raise SystemExit(code) from None


def leave_interrupted(code: int, *, as_json: bool = False) -> NoReturn:
    """End the process after a signal; the line is printed once, whoever comes first."""
    if _said.acquire(blocking=False):
        _say_interrupted(code, as_json)
    raise SystemExit(code) from None


def _say_interrupted(code: int, as_json: bool) -> None:
    line = f"{_NAMES[code]}; run the command again: what was not complete has not been written"
    _say(line, code, _NAMES[code], as_json, None)


def _say(line: str, code: int, kind: str, as_json: bool, result: dict[str, Any] | None) -> None:
    # The reader of either stream may be gone, or the disk behind it full: there is nobody left to tell.
    if as_json:
        record = {**(result or {}), "error": {"message": line, "kind": kind, "exit_code": code}}
        with suppress(OSError, ValueError):
            print(json.dumps(record, ensure_ascii=False), flush=True)
    with suppress(OSError, ValueError):
        print(f"linkwise: {line}", file=sys.stderr, flush=True)


@contextmanager
def listening(arguments: list[str]) -> Iterator[None]:
    """Obey SIGINT and SIGTERM inside the block, which is all that the process has to do.

    To be entered before anything large is imported.

    Parameters
    ----------
    arguments : list of str
        Of the command.
    """
    # A process that was started with a signal ignored (nohup, a job in the background) goes on ignoring it.
    heard = [number for number in _CODES if signal.getsignal(number) is not signal.SIG_IGN]
    as_json = wants_json(arguments)
    # Nothing may be raised in the middle of starting a thread: the exception would break its locks.
    _obey(heard, _remember)
    # The bytes are written by the C handler, also while the main thread is inside a kernel.
    writer, reader = socket.socketpair()
    writer.setblocking(False)
    signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    sys.unraisablehook = _quiet(sys.unraisablehook)
    threading.excepthook = _quiet(threading.excepthook)
    threading.Thread(target=_end_soon, args=(reader, as_json), name="signals", daemon=True).start()
    try:
        _obey(heard, _raise)
        if _signal_code is not None:
            raise KeyboardInterrupt
        yield
    except (Exception, KeyboardInterrupt):
        # An import that was interrupted may fail with any error.
        if _signal_code is None:
            raise
        leave_interrupted(_signal_code, as_json=as_json)
    finally:
        # Python is about to end; an exception would only interrupt that. If it hangs, the thread ends it.
        _obey(heard, _remember)
        _open_until_the_end.append(writer)


def _obey(numbers: list[int], handler: Callable[[int, FrameType | None], None]) -> None:
    for number in numbers:
        signal.signal(number, handler)


def _remember(number: int, frame: FrameType | None) -> None:
    """Only take note of a signal."""
    global _signal_code
    _signal_code = _signal_code or _CODES[number]


def _raise(number: int, frame: FrameType | None) -> None:
    """Remember the signal and unwind the main thread; later signals find it unwinding and do nothing."""
    if _signal_code is None:
        _remember(number, frame)
        raise KeyboardInterrupt


def _end_soon(wake: socket.socket, as_json: bool) -> None:
    """Wait for a signal; give the main thread some time to clean up; then end the process."""
    code = None
    while code is None:  # other signals have handlers of their own
        code = _CODES.get(wake.recv(1)[0])
    threading.Event().wait(_GRACE)
    if _said.acquire(blocking=False):
        _say_interrupted(code, as_json)
    os._exit(code)


def _quiet(hook: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A hook that prints no traceback of what a signal broke off."""

    def print_unless_interrupted(details: Any) -> None:
        if _signal_code is None:
            hook(details)

    return print_unless_interrupted
