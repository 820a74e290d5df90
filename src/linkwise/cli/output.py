"""What a command says: tables and sentences for people, or one JSON object for scripts."""

from __future__ import annotations

import json
import math
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Output", "TextTable", "as_json"]

# Without a terminal there is no width to fit in; long enough that no cell is cut.
_WIDTH_OF_A_FILE = 200


@dataclass(frozen=True)
class TextTable:
    """A table of cells that are text already, for the terminal and for the report.

    Attributes
    ----------
    title : str
    columns : sequence of str
        Heads; all of them empty for a list of facts.
    rows : sequence of sequences of str
    text_columns : int
        How many columns at the left hold text; the others hold figures.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    text_columns: int = 1


class Output:
    """The voice of one command.

    Parameters
    ----------
    as_json : bool, default=False
        Keep standard output for the JSON object.
    """

    def __init__(self, as_json: bool = False) -> None:
        from rich.console import Console

        self.as_json = as_json
        self.warnings: list[str] = []
        width = None if sys.stdout.isatty() else _WIDTH_OF_A_FILE
        self._console = Console(width=width, highlight=False, soft_wrap=True)
        self._errors = Console(stderr=True, highlight=False, soft_wrap=True)

    def say(self, text: str = "") -> None:
        """Print a line for people."""
        if not self.as_json:
            self._console.print(text, markup=False)

    def warn(self, text: str) -> None:
        """Print a line on standard error, and keep it for the JSON object and the report."""
        line = " ".join(text.split())
        if line not in self.warnings:
            self.warnings.append(line)
            self._errors.print(f"warning: {line}", markup=False, style="yellow")

    def table(self, table: TextTable) -> None:
        """Print a table for people."""
        if self.as_json:
            return
        from rich import box
        from rich.table import Table
        from rich.text import Text

        drawn = Table(
            title=Text(table.title, style="bold"),
            title_justify="left",
            box=box.SIMPLE_HEAD,
            pad_edge=False,
            show_header=any(table.columns),
        )
        for place, name in enumerate(table.columns):
            drawn.add_column(Text(name), justify="left" if place < table.text_columns else "right")
        for row in table.rows:
            drawn.add_row(*(Text(cell) for cell in row))
        self._console.print(drawn, soft_wrap=False)

    def record(self, result: dict[str, Any]) -> dict[str, Any]:
        """The JSON object of a result: plain values, and the warnings so far."""
        return {**_plain(result), "warnings": self.warnings}

    def finish(self, result: dict[str, Any]) -> None:
        """Print the JSON object, if that was asked for."""
        if self.as_json:
            print(as_json(self.record(result)))

    @contextmanager
    def progress(self, task: str, total: int | None = None) -> Iterator[Callable[[], None]]:
        """Show a bar on standard error while something long runs, if a person is watching.

        Warnings raised meanwhile become lines of :meth:`warn`.

        Parameters
        ----------
        task : str
        total : int, optional
            Number of steps; without it the bar only moves.

        Yields
        ------
        callable
            To be called after every step.
        """
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        columns: list[Any] = [TextColumn("{task.description}"), BarColumn()]
        if total is not None:
            columns.append(MofNCompleteColumn())
        bar = Progress(
            *columns,
            TimeElapsedColumn(),
            console=self._errors,
            transient=True,
            disable=not self._errors.is_terminal,
        )
        with warnings.catch_warnings(record=True) as raised:
            warnings.simplefilter("default")
            try:
                with bar:
                    number = bar.add_task(task, total=total)
                    yield lambda: bar.advance(number)
            finally:
                texts = [str(warning.message) for warning in raised]
        for text in texts:
            self.warn(text)


def _plain(value: Any) -> Any:
    """Numbers of numpy as Python's; NaN and infinities, which JSON does not have, as None."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def as_json(value: Any) -> str:
    """A JSON text; NaN and infinities become null, paths and other objects their text.

    Parameters
    ----------
    value : Any

    Returns
    -------
    str

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise.cli.output import as_json
    >>> print(as_json({"rates": np.array([0.5, np.nan])}))
    {"rates": [0.5, null]}
    """
    return json.dumps(_plain(value), ensure_ascii=False, allow_nan=False)
