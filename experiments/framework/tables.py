"""Tables of results: for the terminal, for the pages, and as files."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from experiments.framework.summary import Row

__all__ = ["TIDY", "markdown_table", "plain_table", "read_table", "table_text", "target_list", "wide"]

#: Columns of a tidy table after those of the setting.
TIDY = (
    "method", "measure", "n", "mean", "low", "high",
    "difference", "difference_low", "difference_high", "text",
)  # fmt: skip


def wide(table: Sequence[Row], measure: str) -> tuple[list[str], list[list[str]]]:
    """A tidy table with a column for each method.

    Parameters
    ----------
    table : list of dict
        From :func:`experiments.framework.summary.summarise`.
    measure : str

    Returns
    -------
    head, rows
        The setting, draws, and for each method the mean with half the width of its interval; words as they
        are.

    Examples
    --------
    >>> from experiments.framework.tables import wide
    >>> row = {"links": 9, "method": "PPC", "measure": "f", "n": 4, "mean": 0.8, "low": 0.7, "high": 0.9}
    >>> wide([row], "f")
    (['links', 'draws', 'PPC'], [['9', '4', '0.800 ± 0.100']])
    """
    rows = [row for row in table if row["measure"] == measure]
    if not rows:
        return [], []
    keys = [key for key in rows[0] if key not in TIDY]
    methods = list(dict.fromkeys(row["method"] for row in rows))
    settings: dict[tuple[str, ...], dict[str, Row]] = {}
    for row in rows:
        settings.setdefault(tuple(str(row[key]) for key in keys), {})[row["method"]] = row
    lines = []
    for setting, found in settings.items():
        draws = str(max(int(row["n"]) for row in found.values()))
        cells = [_estimate(found[method]) if method in found else "" for method in methods]
        lines.append([*setting, draws, *cells])
    return [*keys, "draws", *methods], lines


def _estimate(row: Row) -> str:
    if row.get("text"):
        return str(row["text"])
    if row["mean"] is None or row["mean"] != row["mean"]:  # no draw has a value
        return ""
    if row["low"] is None or row["low"] != row["low"]:
        return f"{row['mean']:.3f}"
    return f"{row['mean']:.3f} ± {row['high'] - row['mean']:.3f}"


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A table in Markdown, numbers with three decimals and nothing for NaN.

    Parameters
    ----------
    head : list of str
    rows : list of list

    Returns
    -------
    str

    Examples
    --------
    >>> from experiments.framework.tables import markdown_table
    >>> print(markdown_table(["method", "rank"], [["PPC", 0.25]]))
    | method | rank |
    | --- | --- |
    | PPC | 0.250 |
    """

    def text(value: Any) -> str:
        if isinstance(value, float):
            return "" if value != value else f"{value:.3f}"
        return str(value).replace("|", "\\|")

    lines = [list(head), ["---"] * len(head), *[[text(value) for value in row] for row in rows]]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def plain_table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A table for the terminal, columns aligned at the right.

    Parameters
    ----------
    head : list of str
    rows : list of list

    Returns
    -------
    str

    Examples
    --------
    >>> from experiments.framework.tables import plain_table
    >>> print(plain_table(["links", "f"], [[20, 0.25]]))
    links     f
    -----  ----
       20  0.25
    """
    cells = [list(head), *[[f"{c:.3g}" if isinstance(c, float) else str(c) for c in row] for row in rows]]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    cells.insert(1, ["-" * width for width in widths])
    return "\n".join(
        "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in cells
    )


def table_text(table: Sequence[Row]) -> str:
    """A tidy table as CSV, numbers with seven digits.

    Parameters
    ----------
    table : list of dict

    Returns
    -------
    str
    """
    keys = [key for key in table[0] if key not in TIDY] if table else []
    text = io.StringIO()
    writer = csv.DictWriter(text, [*keys, *TIDY], lineterminator="\n", restval="")
    writer.writeheader()
    for row in table:
        writer.writerow({key: _digits(value) for key, value in row.items()})
    return text.getvalue()


def _digits(value: Any) -> Any:
    if value is None or (isinstance(value, float) and value != value):
        return ""
    return f"{value:.7g}" if isinstance(value, float) else value


def read_table(path: str | Path) -> list[Row]:
    """A tidy table that :func:`table_text` wrote.

    Parameters
    ----------
    path : path

    Returns
    -------
    list of dict
        Statistics as numbers, None where there is none; settings as numbers where they are.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from experiments.framework.tables import TIDY, read_table, table_text
    >>> row = {"links": 9, **dict.fromkeys(TIDY), "method": "PPC", "measure": "f", "mean": 0.8, "text": ""}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "table.csv"
    ...     _ = path.write_text(table_text([row]))
    ...     read_table(path) == [row]
    True
    """
    with Path(path).open(newline="", encoding="utf-8") as file:
        return [
            {key: _value(text, word=key in ("method", "measure", "text")) for key, text in row.items()}
            for row in csv.DictReader(file)
        ]


def _value(text: str, word: bool) -> Any:
    if word:
        return text
    if text == "":
        return None
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def target_list(found: Sequence[Any]) -> str:
    """Markdown of targets that have ``what``, ``wanted``, ``measured`` and ``reached`` (or None)."""
    words = {True: "yes", False: "**no**", None: "not measured yet"}
    rows = [[one.what, one.wanted, one.measured, words[one.reached]] for one in found]
    n_reached = sum(one.reached is True for one in found)
    return (
        f"{n_reached} of {len(found)} targets are reached.\n\n"
        f"{markdown_table(['target', 'wanted', 'measured', 'reached'], rows)}\n"
    )
