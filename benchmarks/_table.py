"""What a section yields: tables, and the measurements that DESIGN.md sets a limit to."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Measured", "Table"]


@dataclass(frozen=True)
class Measured:
    """A measurement that is held against a target.

    Attributes
    ----------
    value : float or None
        None if nothing could be measured.
    at_least : bool
        The anchor was stopped before it was done, so the true value is larger.
    reason : str
        Why there is no value.
    """

    value: float | None = None
    at_least: bool = False
    reason: str = ""

    def __str__(self) -> str:
        if self.value is None:
            return self.reason
        return f"{'> ' if self.at_least else ''}{self.value:.3g}"


@dataclass(frozen=True)
class Table:
    """A table of a section.

    Attributes
    ----------
    title : str
    head : list of str
    rows : list of list
        Floats are shown with three digits, NaN as an empty cell.
    note : str
        Sentences below the table.
    measured : dict of str to Measured
        Names of ``benchmarks._targets.TARGETS`` and what this table says about them.
    """

    title: str
    head: list[str]
    rows: list[list[Any]]
    note: str = ""
    measured: dict[str, Measured] = field(default_factory=dict)

    def cells(self) -> list[list[str]]:
        """The rows as they are shown."""
        return [[_text(cell) for cell in row] for row in self.rows]

    def plain(self) -> str:
        """Title, table and note for the terminal."""
        # Imported here: the experiments load every estimator, and processes that only measure show no table.
        from experiments.framework.tables import plain_table

        table = plain_table(self.head, self.cells())
        return "\n".join(part for part in (self.title, table, self.note) if part)

    def markdown(self) -> str:
        """Title, table and note for a page."""
        from experiments.framework.tables import markdown_table

        table = markdown_table(self.head, self.cells())
        return "\n\n".join(part for part in (f"### {self.title}", table, self.note) if part)


def _text(cell: Any) -> str:
    """A single line."""
    if isinstance(cell, float):
        return "" if math.isnan(cell) else f"{cell:.3g}"
    return " ".join(str(cell).split())
