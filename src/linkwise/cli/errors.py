"""Exit codes, and one clear line on standard error instead of a traceback."""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, NoReturn

import typer

__all__ = ["BAD_INPUT", "DEFECT", "EXIT_CODES", "INFEASIBLE", "USAGE", "CommandError", "guard", "terminable"]

BAD_INPUT, USAGE, INFEASIBLE, DEFECT = 1, 2, 3, 70
INTERRUPTED, BROKEN_PIPE, TERMINATED = 130, 141, 143

EXIT_CODES = (
    "Exit codes: 0 done; 1 the data, the links or a file are bad; 2 wrong usage; 3 the hard links contradict "
    "each other or need more clusters; 70 a defect in linkwise (see --debug); 130 interrupted; 141 the "
    "reader of a pipe went away; 143 terminated."
)


class CommandError(Exception):
    """Something the user can put right.

    Parameters
    ----------
    message : str
        One line: what is wrong, where, and what to do.
    exit_code : int, default=1
    """

    def __init__(self, message: str, exit_code: int = BAD_INPUT) -> None:
        super().__init__(message)
        self.code = exit_code


@contextmanager
def guard(*, debug: bool = False) -> Iterator[None]:
    """Turn exceptions into a line on standard error and an exit code.

    Parameters
    ----------
    debug : bool, default=False
        Let them through instead, with their traceback.
    """
    from linkwise.exceptions import InfeasibleConstraints, InferenceBudgetExceeded

    try:
        yield
        sys.stdout.flush()
    except KeyboardInterrupt:
        _fail("interrupted; files that were not complete have not been written", INTERRUPTED)
    except OSError as error:
        if error.errno == errno.EPIPE:
            close_pipe()
            raise typer.Exit(BROKEN_PIPE) from None
        if debug:
            raise
        _fail(_about_file(error), BAD_INPUT)
    except Exception as error:
        if debug or hasattr(error, "exit_code"):  # typer's own
            raise
        if isinstance(error, CommandError):
            _fail(str(error), error.code)
        if isinstance(error, InfeasibleConstraints):
            _fail(str(error), INFEASIBLE)
        if isinstance(error, ImportError):
            _fail(f'{error}; pip install "linkwise[cli]" installs what the command line needs', BAD_INPUT)
        if isinstance(error, MemoryError):
            _fail(f"not enough memory: {error}; use fewer rows or another --method", BAD_INPUT)
        if isinstance(error, ValueError | InferenceBudgetExceeded | UnicodeError):
            _fail(str(error), BAD_INPUT)
        _fail(
            f"unexpected {type(error).__name__}: {error}. This is a defect; linkwise --debug shows where.",
            DEFECT,
        )


def _about_file(error: OSError) -> str:
    reason = (error.strerror or str(error)).lower()
    return f"{error.filename}: {reason}" if error.filename else str(error)


def _fail(message: str, code: int) -> NoReturn:
    line = " ".join(message.split())
    # The reader of standard error may be gone as well.
    with suppress(OSError):
        print(f"linkwise: {line}", file=sys.stderr, flush=True)
    raise typer.Exit(code) from None


def close_pipe() -> None:
    """Send the rest of standard output to nowhere, so that Python's last flush finds no broken pipe."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, sys.stdout.fileno())
    except (OSError, ValueError):  # standard output is no file
        pass
    finally:
        os.close(nowhere)


@contextmanager
def terminable() -> Iterator[None]:
    """Clean up on SIGTERM as on Ctrl-C: temporary files are removed on the way out."""

    def leave(number: int, frame: FrameType | None) -> NoReturn:
        raise SystemExit(TERMINATED)

    before: Any = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
