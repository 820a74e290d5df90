"""How the process ends: exit codes, one clear line instead of a traceback, and signals.

Ctrl-C and SIGTERM end the process soon, with one line and the right exit code. Python raises
``KeyboardInterrupt`` in the main thread between two instructions; a kernel may run for seconds before the
next one, and libraries turn the exception into another one or swallow it. So the signal is remembered here,
errors that follow it are not reported, and a thread ends the process if the main thread has not done so.

This module imports nothing large, because it has to be there before anything large is imported.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

INTERRUPTED, TERMINATED = 130, 143
_CODES = {int(signal.SIGINT): INTERRUPTED, int(signal.SIGTERM): TERMINATED}
_NAMES = {INTERRUPTED: "interrupted", TERMINATED: "terminated"}

# How long the main thread has to remove its drafts, in seconds.
_GRACE = 2.0

_signal_code: int | None = None
_said = threading.Lock()
_open_until_the_end: list[socket.socket] = []


def exit_code_of_signal() -> int | None:
    """Give 130 or 143 once a signal has come, else None."""
    return _signal_code


def wants_json(arguments: list[str]) -> bool:
    """Tell whether the arguments ask for JSON, even if they are wrong otherwise."""
    own = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return "--json" in own


def leave(
    message: str, code: int, *, kind: str, as_json: bool = False, result: dict[str, Any] | None = None
) -> NoReturn:
    """End the process with a line "what is wrong; what to do", with ``--json`` also an object."""
    line = " ".join(message.split())
    _say(line, code, kind, as_json, result)
    raise SystemExit(code) from None


def leave_interrupted(code: int, *, as_json: bool = False) -> NoReturn:
    """End the process after a signal; the line is printed once, by whichever thread is first."""
    if _said.acquire(blocking=False):
        _say_interrupted(code, as_json)
    raise SystemExit(code) from None


def _say_interrupted(code: int, as_json: bool) -> None:
    line = f"{_NAMES[code]}; run the command again: what was not complete has not been written"
    _say(line, code, _NAMES[code], as_json, None)


def _say(line: str, code: int, kind: str, as_json: bool, result: dict[str, Any] | None) -> None:
    # The reader of either stream may be gone, or the disk behind it full: then nothing can be printed.
    if as_json:
        record = {**(result or {}), "error": {"message": line, "kind": kind, "exit_code": code}}
        with suppress(OSError, ValueError):
            print(json.dumps(record, ensure_ascii=False), flush=True)
    with suppress(OSError, ValueError):
        print(f"linkwise: {line}", file=sys.stderr, flush=True)


@contextmanager
def listening(arguments: list[str]) -> Iterator[None]:
    """Obey SIGINT and SIGTERM inside the block; enter it before anything large is imported."""
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
    """Remember the first signal and unwind the main thread; later signals do nothing."""
    if _signal_code is None:
        _remember(number, frame)
        raise KeyboardInterrupt


def _end_soon(wake: socket.socket, as_json: bool) -> None:
    """Wait for a signal, give the main thread some time to clean up, then end the process."""
    code = None
    while code is None:  # other signals have handlers of their own
        code = _CODES.get(wake.recv(1)[0])
    threading.Event().wait(_GRACE)
    if _said.acquire(blocking=False):
        _say_interrupted(code, as_json)
    os._exit(code)


def _quiet(hook: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Make a hook print no traceback of what a signal interrupted."""

    def print_unless_interrupted(details: Any) -> None:
        if _signal_code is None:
            hook(details)

    return print_unless_interrupted


BAD_INPUT, USAGE, INFEASIBLE, DEFECT = 1, 2, 3, 70
BROKEN_PIPE = 141

EXIT_CODES = (
    "Exit codes: 0 done; 1 the data, the links or a file are bad; 2 wrong usage; 3 the hard links contradict "
    "each other or need more clusters; 70 a defect in linkwise (see --debug); 130 interrupted; 141 the "
    "reader of a pipe ended first; 143 terminated."
)

_KINDS = {BAD_INPUT: "bad_input", USAGE: "usage", INFEASIBLE: "infeasible", DEFECT: "defect"}

# What to do about an error of the system. Others have the last one.
_REMEDIES = {
    errno.ENOENT: "check the path",
    errno.ENOTDIR: "check the path",
    errno.EISDIR: "pass a file",
    errno.EACCES: "change its permissions, or pass another path",
    errno.EPERM: "change its permissions, or pass another path",
    errno.EROFS: "pass a path that can be written to",
    errno.ENOSPC: "free some space, or write to another place",
    errno.EDQUOT: "free some space, or write to another place",
    errno.EFBIG: "raise the limit (ulimit -f), or write to another place",
    errno.ENAMETOOLONG: "use a shorter name",
}
_OTHER_REMEDY = "check the path and the disk"


class CommandError(Exception):
    """An error the user can correct, and how; ``result`` is what was found nevertheless, for JSON."""

    def __init__(
        self, message: str, exit_code: int = BAD_INPUT, *, result: dict[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.code = exit_code
        self.result = result


@contextmanager
def guard(*, debug: bool = False, as_json: bool = False, command: str = "") -> Iterator[None]:
    """Turn exceptions into a line on standard error and an exit code; ``command`` is for the advice."""
    try:
        yield
        sys.stdout.flush()
    except KeyboardInterrupt:
        leave_interrupted(exit_code_of_signal() or INTERRUPTED, as_json=as_json)
    except Exception as error:
        code = exit_code_of_signal()
        if code is not None:  # libraries turn an interruption into errors of their own
            leave_interrupted(code, as_json=as_json)
        if hasattr(error, "exit_code"):  # typer's own
            raise
        if debug:
            traceback.print_exc()
        if isinstance(error, OSError) and error.errno == errno.EPIPE:
            close_pipe()
            raise SystemExit(BROKEN_PIPE) from None
        _fail(error, as_json, f"`linkwise {command} --help`".replace("  ", " ") + " explains the options")


def _fail(error: Exception, as_json: bool, advice: str) -> NoReturn:
    message, code = _explained(error)
    if code == INFEASIBLE:
        advice = "remove one of these links, make them soft with --certainty, or ask for more clusters"
    if "; " not in message:
        message = f"{message.rstrip('.')}; {advice}"
    leave(message, code, kind=_KINDS[code], as_json=as_json, result=getattr(error, "result", None))


def _explained(error: Exception) -> tuple[str, int]:
    """Give the message and the exit code of an error."""
    from linkwise.exceptions import InfeasibleConstraints, InferenceBudgetExceeded

    if isinstance(error, CommandError):
        return str(error), error.code
    if isinstance(error, InfeasibleConstraints):
        return str(error), INFEASIBLE
    if isinstance(error, OSError):
        return _about_file(error), BAD_INPUT
    if isinstance(error, ImportError):
        return f'{error}; pip install "linkwise[cli]" installs what the command line needs', BAD_INPUT
    if isinstance(error, MemoryError):
        return f"not enough memory: {error}; use fewer rows or another --method", BAD_INPUT
    if isinstance(error, ValueError | InferenceBudgetExceeded | UnicodeError):
        return str(error), BAD_INPUT
    return (
        f"unexpected {type(error).__name__}: {error}. This is a defect; linkwise --debug shows where, please "
        "report it",
        DEFECT,
    )


def _about_file(error: OSError) -> str:
    if error.errno is None:
        return str(error)
    reason = (error.strerror or str(error)).lower()
    # Every file that is written is named, see `linkwise._files.naming`; what remains is what was printed.
    place = Path(os.fsdecode(error.filename)) if error.filename else "standard output"
    return f"{place}: {reason}; {_REMEDIES.get(error.errno, _OTHER_REMEDY)}"


def close_pipe() -> None:
    """Send the rest of standard output to nowhere, so that Python's last flush finds no broken pipe."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, sys.stdout.fileno())
    except (OSError, ValueError):  # standard output is no file
        pass
    finally:
        os.close(nowhere)
