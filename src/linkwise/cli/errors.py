"""Exit codes, and one clear line on standard error instead of a traceback."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from linkwise.cli.interruption import INTERRUPTED, exit_code_of_signal, leave, leave_interrupted

__all__ = ["BAD_INPUT", "DEFECT", "EXIT_CODES", "INFEASIBLE", "USAGE", "CommandError", "guard"]

BAD_INPUT, USAGE, INFEASIBLE, DEFECT = 1, 2, 3, 70
BROKEN_PIPE = 141

EXIT_CODES = (
    "Exit codes: 0 done; 1 the data, the links or a file are bad; 2 wrong usage; 3 the hard links contradict "
    "each other or need more clusters; 70 a defect in linkwise (see --debug); 130 interrupted; 141 the "
    "reader of a pipe went away; 143 terminated."
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
    """Something the user can put right.

    Parameters
    ----------
    message : str
        One line: what is wrong and where; then, after a semicolon, what to do.
    exit_code : int, default=1
    result : dict, optional
        What was found nevertheless, for the JSON object.
    """

    def __init__(
        self, message: str, exit_code: int = BAD_INPUT, *, result: dict[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.code = exit_code
        self.result = result


@contextmanager
def guard(*, debug: bool = False, as_json: bool = False, command: str = "") -> Iterator[None]:
    """Turn exceptions into a line on standard error and an exit code.

    Parameters
    ----------
    debug : bool, default=False
        Print the traceback before.
    as_json : bool, default=False
        Print a JSON object on standard output, too.
    command : str
        The subcommand, for messages that know no better advice than its help.
    """
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
    """Message and exit code of an error."""
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
