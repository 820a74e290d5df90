"""The ``linkwise`` command; it needs ``linkwise[cli]``."""

from __future__ import annotations

import sys

from linkwise.cli.errors import (
    INTERRUPTED,
    exit_code_of_signal,
    leave,
    leave_interrupted,
    listening,
    wants_json,
)

__all__ = ["main"]


def main() -> None:
    """Run the command line; what ``linkwise`` and ``python -m linkwise`` call."""
    try:
        arguments = sys.argv[1:]
        with listening(arguments):
            _run(arguments)
    except KeyboardInterrupt:  # in the instant before and after it listens
        leave_interrupted(exit_code_of_signal() or INTERRUPTED)


def _run(arguments: list[str]) -> None:
    """Import what is large, and run."""
    try:
        from linkwise.cli.app import run
    except ImportError as error:
        if error.name not in ("typer", "rich"):
            raise
        leave(
            f'the command line needs {error.name}; pip install "linkwise[cli]"',
            1,
            kind="bad_input",
            as_json=wants_json(arguments),
        )
    run()
