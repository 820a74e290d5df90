"""Two rows of a table side by side, with marks where they differ."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from linkwise._arrays import Floats
from linkwise._tables import MISSING, column_names, read_frame
from linkwise.cli.tables import refuse_unknown
from linkwise.constraints.cells import cell_text

if TYPE_CHECKING:
    import pandas
    from rich.table import Table

EQUAL, CLOSE, UNLIKE = "", "~", "≠"
# Numbers that differ by less than this share of the column's standard deviation are close.
_CLOSE = 0.5
# Fields shown where the user names none; the others are counted.
_MOST_FIELDS = 20
# Lines that a long text may take.
_MOST_LINES = 4
_MISSING = "(missing)"


def text_frame(path: Path) -> pandas.DataFrame:
    """A table whose cells are as they are written: the code 007 is not 7."""
    return read_frame(path, column_names(path))


def as_numbers(column: pandas.Series) -> Floats | None:
    """The numbers in a column, NaN where there is none; None if most cells are something else."""
    import pandas

    numbers = pandas.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    filled = int((column.notna() & ~column.isin(MISSING)).sum())
    return numbers if 2 * np.isfinite(numbers).sum() > filled else None


class Field(NamedTuple):
    """One column of the two rows: its name, both values as text, and how they compare."""

    name: str
    left: str
    right: str
    mark: str
    distance: float


@dataclass(frozen=True)
class Records:
    """The columns to show, all ``columns`` of the file, and the ``spread`` (std) of those of numbers."""

    frame: pandas.DataFrame
    columns: list[str]
    spread: dict[str, float]
    all_columns: bool
    image_column: str | None = None
    folder: Path = Path()

    @classmethod
    def read(
        cls, path: Path, columns: Sequence[str], image_column: str | None, left_out: Sequence[str]
    ) -> Records:
        """Read the columns named, or all but those ``left_out``, as they are written in the file."""
        frame = text_frame(path)
        refuse_unknown(path, [*columns, *([] if image_column is None else [image_column])], frame.columns)
        chosen = list(columns) or [name for name in frame.columns if name not in left_out]
        if image_column is not None:
            chosen = [image_column, *(name for name in chosen if name != image_column)]
        frame, every = frame[chosen], list(frame.columns)
        numbers = {name: as_numbers(frame[name]) for name in chosen}
        spread = {name: float(np.nanstd(found)) for name, found in numbers.items() if found is not None}
        return cls(frame, every, spread, not columns, image_column, path.parent)

    def fields(self, i: int, j: int) -> tuple[list[Field], int]:
        """The fields to show of two rows, of many those that differ most, and how many are left out."""
        fields = [self.compared(name, i, j) for name in self.frame.columns]
        if not self.all_columns or len(fields) <= _MOST_FIELDS:
            return fields, 0
        numbers = [name in self.spread for name in self.frame.columns]
        order = sorted(range(len(fields)), key=lambda place: (numbers[place], -fields[place].distance, place))
        return [fields[place] for place in sorted(order[:_MOST_FIELDS])], len(fields) - _MOST_FIELDS

    def compared(self, name: str, i: int, j: int) -> Field:
        """Compare two rows in one column."""
        values = [self.frame[name].iloc[row] for row in (i, j)]
        left, right = (printable(cell_text(value)) for value in values)
        distance = 0.0 if left == right else np.inf
        if distance and name == self.image_column:
            distance = np.inf
        elif distance and self.spread.get(name, 0.0) > 0 and left and right:
            apart = abs(_number(values[0]) - _number(values[1])) / self.spread[name]
            distance = apart if np.isfinite(apart) else np.inf
        mark = EQUAL if distance == 0 else CLOSE if distance < _CLOSE else UNLIKE
        return Field(printable(name), left or _MISSING, right or _MISSING, mark, distance)

    def images(self, i: int, j: int) -> list[Path]:
        """The two files that the image column names, counted from the folder of the data."""
        assert self.image_column is not None
        names = [cell_text(self.frame[self.image_column].iloc[row]) for row in (i, j)]
        return [(self.folder / name).resolve() for name in names]


def printable(text: str) -> str:
    """One line of text that cannot steer the terminal: line breaks become blanks, other controls marks."""
    return "".join(
        character if not unicodedata.category(character).startswith("C") else "�"
        for character in " ".join(text.split())
    )


def drawn(fields: Sequence[Field], names: tuple[str, str], width: int) -> Table:
    """A table as wide as the terminal, the two records beside each other."""
    from rich import box
    from rich.cells import cell_len
    from rich.table import Table
    from rich.text import Text

    widest = max([cell_len(field.name) for field in fields], default=0)
    name_width = min(widest, max(10, width // 4))
    value_width = max(8, (width - name_width - 7) // 2)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    table.add_column("", width=1)
    table.add_column("", width=name_width, overflow="ellipsis", no_wrap=True)
    texts = [*names, *(text for field in fields for text in (field.left, field.right))]
    needed = max(map(cell_len, texts))
    for name in names:
        table.add_column(Text(name), width=min(value_width, needed), overflow="fold")
    most = _MOST_LINES * (value_width - 2)  # lines are broken between words
    for field in fields:
        style = "bold" if field.mark == UNLIKE else ""
        cells = _excerpts(field.left, field.right, most)
        table.add_row(Text(field.mark, style), Text(field.name), *(Text(cell, style) for cell in cells))
    return table


def _excerpts(left: str, right: str, most: int) -> tuple[str, str]:
    """The parts of two texts to show, so that they hold the place where the texts begin to differ."""
    shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(left, right, strict=False)))
    start = 0 if left == right or shared < most // 2 else shared - most // 4

    def part(text: str) -> str:
        cut = text[start:] if not start else "…" + text[start + 1 :]
        return cut if len(cut) <= most else cut[: most - 1] + "…"

    return part(left), part(right)


def _number(text: Any) -> float:
    try:
        return float(text)
    except (TypeError, ValueError):
        return np.nan


def open_images(paths: Sequence[Path]) -> str | None:
    """Show files in the viewer of the system; gives a line where that cannot be done."""
    for path in paths:
        if not path.is_file():
            return f"{printable(str(path))}: there is no such file"
    viewer = shutil.which("open" if sys.platform == "darwin" else "xdg-open")
    if hasattr(os, "startfile"):
        for path in paths:
            os.startfile(path)
        return None
    if viewer is None:
        return "this system has no command to open a file with (xdg-open)"
    silent: dict[str, Any] = {
        "stdin": subprocess.DEVNULL,
        "stdout": subprocess.DEVNULL,
        "stderr": subprocess.DEVNULL,
    }
    for path in paths:
        subprocess.Popen([viewer, str(path)], start_new_session=True, **silent)
    return None
