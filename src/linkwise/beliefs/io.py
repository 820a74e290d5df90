"""Check class beliefs, read them from CSV and write them; every message names the entry."""

from __future__ import annotations

import csv
import numbers
import os
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from linkwise._arrays import Bools, Floats
from linkwise._files import replacing
from linkwise._validation import refuse_masked

# Two halves of a table that were computed in different orders differ by rounding, never by more.
_ROUNDING = 1e-12


def check_names(classes: Sequence[Any]) -> tuple[Hashable, ...]:
    """Names as Python values: no repeats, nothing that marks an unlabelled row."""
    if isinstance(classes, str):
        raise ValueError(
            f"classes is the single string {classes!r}; pass a list of names, e.g. [{classes!r}]"
        )
    names = tuple(name.item() if isinstance(name, np.generic) else name for name in classes)
    seen: dict[Hashable, int] = {}
    for place, name in enumerate(names):
        if not isinstance(name, Hashable):
            raise ValueError(f"class {place} is {name!r}: a name must be a string or a number; rename it")
        if name is None or name != name or (isinstance(name, numbers.Real) and name == -1):
            raise ValueError(f"class {place} is {name!r}, which marks unlabelled rows; give it another name")
        if name in seen:
            raise ValueError(
                f"classes {seen[name]} and {place} are both {name!r}; names must differ: rename one"
            )
        seen[name] = place
    if not names:
        raise ValueError("classes is empty: there are no classes; name at least one")
    return names


def check_table(values: ArrayLike, names: Sequence[Hashable]) -> Floats:
    """The matrix as (L, L) float64: square, finite, within [-1, 1] and symmetric."""
    n_classes = len(names)
    refuse_masked(values, "beliefs", "write 0 where there is no opinion")
    table = _as_numbers(values, names)
    if table.shape != (n_classes, n_classes):
        raise ValueError(
            f"beliefs has shape {table.shape}, but there are {n_classes} classes; "
            f"pass a table of shape ({n_classes}, {n_classes})"
        )

    def refuse(bad: Bools, reason: str) -> None:
        if bad.any():
            a, b = np.argwhere(bad)[0]
            raise ValueError(f"the belief about ({names[a]!r}, {names[b]!r}) is {table[a, b]:g}: {reason}")

    refuse(np.isnan(table), "write 0 where there is no opinion")
    refuse(
        np.abs(table) > 1.0,
        "beliefs lie between -1 (keep apart) and 1 (keep together); divide the table by its largest entry",
    )
    differ = np.argwhere(np.abs(table - table.T) > _ROUNDING)
    if len(differ):
        a, b = differ[0]
        raise ValueError(
            f"the belief about ({names[a]!r}, {names[b]!r}) is {table[a, b]:g}, "
            f"but about ({names[b]!r}, {names[a]!r}) it is {table[b, a]:g}; "
            "write the same value in both places"
        )
    return (table + table.T) / 2.0 + 0.0  # no negative zeros


def _as_numbers(values: ArrayLike, names: Sequence[Hashable]) -> Floats:
    """A float copy; an entry that is no number is named."""
    try:
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        try:
            entries = np.array(values, dtype=object)
        except ValueError:
            entries = np.empty(0, dtype=object)
        if entries.shape != (len(names), len(names)):
            raise ValueError(
                f"beliefs must be a square table of numbers in [-1, 1]; "
                f"pass {len(names)} rows of {len(names)}"
            ) from error
        for (a, b), entry in np.ndenumerate(entries):
            try:
                float(entry)
            except (TypeError, ValueError):
                raise ValueError(
                    f"the belief about ({names[a]!r}, {names[b]!r}) is {entry!r}: "
                    "write a number in [-1, 1], 0 where there is no opinion"
                ) from None
        raise


def same_names(rows: Sequence[Hashable], columns: Sequence[Hashable]) -> None:
    """Refuse a table whose rows and columns are about different classes."""
    row_set, column_set = set(rows), set(columns)
    only_rows = [name for name in rows if name not in column_set]
    only_columns = [name for name in columns if name not in row_set]
    if only_rows or only_columns:
        parts = [
            f"{', '.join(repr(name) for name in found[:5])}{' ...' * (len(found) > 5)} only among the {where}"
            for found, where in ((only_rows, "rows"), (only_columns, "columns"))
            if found
        ]
        raise ValueError(
            f"rows and columns must name the same classes: {'; '.join(parts)}; correct the names"
        )


def read(path: str | os.PathLike[str]) -> tuple[tuple[Hashable, ...], Floats]:
    """Names and checked table of a CSV file whose first line and first column are the names."""
    try:
        with open(path, newline="", encoding="utf-8-sig") as stream:
            reader = csv.reader(stream, skipinitialspace=True, strict=True)
            lines = [(reader.line_num, row) for row in reader if any(cell.strip() for cell in row)]
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} is not text in UTF-8 ({error.reason} at byte {error.start}); save it as CSV in UTF-8"
        ) from None
    except csv.Error as error:
        raise ValueError(f"{path}, line {reader.line_num} is no CSV: {error}; correct the line") from None
    if not lines or len(lines[0][1]) < 2:
        raise ValueError(
            f"{path} has no line of class names separated by commas; the first line must be "
            ",name,name,... and every further line name,value,value,..."
        )
    header = [cell.strip() for cell in lines[0][1][1:]]
    row_names = [row[0].strip() for _, row in lines[1:]]
    for place, text in enumerate(header + row_names):
        if not text:
            where = "first line" if place < len(header) else "first column"
            raise ValueError(f"{path}: a class name in the {where} is empty; every class needs a name")
    columns, rows = _numbers_if_all(header), _numbers_if_all(row_names)
    try:
        columns, rows = check_names(columns), check_names(rows)
        same_names(rows, columns)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    table = np.empty((len(rows), len(columns)))
    for (line, row), name in zip(lines[1:], rows, strict=True):
        if len(row) != len(header) + 1:
            raise ValueError(
                f"{path}, line {line}: class {name!r} has {len(row) - 1} values for {len(header)} classes; "
                "write one for each"
            )
        # Rows may come in another order than columns; the table gets the order of the columns.
        table[columns.index(name)] = [
            _number(path, line, (name, other), cell) for other, cell in zip(columns, row[1:], strict=True)
        ]
    try:
        return columns, check_table(table, columns)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _number(path: Any, line: int, entry: tuple[Hashable, Hashable], cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        found = repr(cell.strip()) if cell.strip() else "empty"
        raise ValueError(
            f"{path}, line {line}: the belief about {entry!r} is {found}; "
            "write a number in [-1, 1], 0 for no opinion"
        ) from None


def _numbers_if_all(names: Sequence[str]) -> tuple[Hashable, ...]:
    """Whole numbers if every name is one, as in the y of many data sets."""
    try:
        return tuple(int(name) for name in names)
    except ValueError:
        return tuple(names)


def write(path: str | os.PathLike[str], names: Sequence[Hashable], table: Floats) -> None:
    """Write the table with its names; numbers get as many digits as reading them back needs."""
    with replacing(path) as draft, open(draft, "w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(["class", *names])
        for name, row in zip(names, table.tolist(), strict=True):
            writer.writerow([name, *(repr(value) for value in row)])
