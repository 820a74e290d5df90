"""The ``linkwise`` command; it needs ``linkwise[cli]``."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line; what ``linkwise`` and ``python -m linkwise`` call."""
    try:
        from linkwise.cli.app import run
    except ImportError as error:
        if error.name not in ("typer", "rich"):
            raise
        sys.exit(f'linkwise: the command line needs {error.name}; pip install "linkwise[cli]"')
    run()
