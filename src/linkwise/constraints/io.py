"""Files of links read and written, and links as a sentence and as HTML."""

from __future__ import annotations

import csv
import gzip
import os
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np
from numpy.typing import NDArray

from linkwise._files import replacing

if TYPE_CHECKING:
    from linkwise.constraints.constraints import Constraints

__all__ = [
    "LinkList",
    "by_id",
    "by_row",
    "cell_text",
    "column_names",
    "frame_records",
    "html",
    "link_list",
    "link_sign",
    "link_strength",
    "records",
    "summary",
    "whole_number",
    "write",
]

_KINDS = {"must_link": 1.0, "must": 1.0, "same": 1.0, "cannot_link": -1.0, "cannot": -1.0, "different": -1.0}
_STRENGTHS = ("weight", "certainty")
# What `linkwise fit` writes beside the links, so that its file can be read again; it says nothing about them.
_RESULTS = ("kept", "violation_probability")
_SHOWN = 10

Record = tuple[str, dict[str, str]]


@dataclass(frozen=True)
class LinkList:
    """The lines of a file of links, before they are put together.

    Attributes
    ----------
    pairs : (m, 2) int64
        Row numbers, i < j.
    weights : (m,) float64
        Signed; infinite for hard links.
    """

    pairs: NDArray[np.int64]
    weights: NDArray[np.float64]


def link_list(
    path: str | os.PathLike[str],
    lines: Iterable[Record],
    find: Callable[[str, str], int],
    *,
    certainty: float | None = None,
) -> LinkList:
    """Every line of a file as one link; nothing is left out, and every message names file and line.

    Parameters
    ----------
    path : path_like
        For the messages.
    lines : iterable of (place in the file, cells by column)
        What :func:`records` or :func:`frame_records` yields.
    find : function of a column and its cell
        The row number that is meant: :func:`by_row` or :func:`by_id`.
    certainty : float, optional
        Of links that have neither weight nor certainty of their own; without it they are hard.

    Returns
    -------
    LinkList
    """
    pairs: list[tuple[int, int]] = []
    weights: list[float] = []
    for place, cells in lines:
        try:
            i, j = find("i", cells["i"]), find("j", cells["j"])
            if i == j:
                point = _shown(cells["i"].strip())
                raise ValueError(f"{point} is linked to itself: i and j are one point; remove the line")
            pairs.append((min(i, j), max(i, j)))
            weights.append(link_sign(cells) * link_strength(cells, certainty))
        except ValueError as error:
            raise ValueError(f"{path}, {place}: {error}") from None
    return LinkList(np.array(pairs, dtype=np.int64).reshape(-1, 2), np.array(weights, dtype=np.float64))


def records(path: str | os.PathLike[str], ends: Sequence[str] = ("i", "j")) -> Iterator[Record]:
    """Lines of a CSV file (tabs in ``.tsv``; ``.gz`` is unpacked): place in the file, and cells as they are.

    Parameters
    ----------
    path : path_like
    ends : sequence of str
        The columns that say which points are linked.

    Raises
    ------
    ValueError
        If a column is missing, unknown, repeated or without a name, or a line has another number of cells.
    """
    try:
        with _opened(path) as stream:
            reader = csv.reader(stream, delimiter=_separator(path), strict=True)
            names = _checked_columns(path, next(reader, []), ends)
            line = reader.line_num + 1
            for row in reader:
                place, line = f"line {line}", reader.line_num + 1
                if not any(cell.strip() for cell in row):
                    continue
                if len(row) != len(names):
                    amount = "more" if len(row) > len(names) else "fewer"
                    raise ValueError(
                        f"{path}, {place}: {amount} cells ({len(row)}) than the first line has names "
                        f"({', '.join(names)}); write one for each, empty if not known"
                    )
                yield place, dict(zip(names, row, strict=True))
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} is not text in UTF-8 ({error.reason} at byte {error.start}); save it as CSV in UTF-8"
        ) from None
    except csv.Error as error:
        raise ValueError(f"{path}, line {reader.line_num} is no CSV: {error}; correct the line") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(f"{path} is damaged ({error}); copy or pack it again") from None


def column_names(path: str | os.PathLike[str]) -> list[str]:
    """Names in the first line, in lower case; enough to tell which kind of file it is."""
    with _opened(path) as stream:
        try:
            return [name.strip().lower() for name in next(csv.reader(stream, delimiter=_separator(path)), [])]
        except (UnicodeDecodeError, csv.Error, EOFError, zlib.error, gzip.BadGzipFile):
            return []  # reading the file says what is wrong with it


def _separator(path: str | os.PathLike[str]) -> str:
    return "\t" if Path(path).name.lower().removesuffix(".gz").endswith(".tsv") else ","


def _opened(path: str | os.PathLike[str]) -> TextIO:
    if Path(path).suffix.lower() == ".gz":
        return gzip.open(path, "rt", newline="", encoding="utf-8-sig")
    return open(path, newline="", encoding="utf-8-sig")


def frame_records(
    path: str | os.PathLike[str], frame: Any, ends: Sequence[str] = ("i", "j")
) -> Iterator[Record]:
    """Rows of a DataFrame under the same rules as the lines of a CSV file.

    Parameters
    ----------
    path : path_like
        Where the frame comes from, for the messages.
    frame : DataFrame
    ends : sequence of str
    """
    names = _checked_columns(path, [str(name) for name in frame.columns], ends)
    columns = [frame.iloc[:, place].tolist() for place in range(len(names))]
    for row, values in enumerate(zip(*columns, strict=True)):
        cells = {name: cell_text(value) for name, value in zip(names, values, strict=True)}
        if any(cell.strip() for cell in cells.values()):
            yield f"row {row} (counted from 0)", cells


def cell_text(value: Any) -> str:
    """A cell of a DataFrame as the text it would be in a CSV file; whole floats lose their ``.0``.

    Examples
    --------
    >>> from linkwise.constraints.io import cell_text
    >>> cell_text(7.0), cell_text(None), cell_text(" a "), cell_text(2**53 + 1)
    ('7', '', ' a ', '9007199254740993')
    """
    if value is None or _is_gap(value):
        return ""
    # Integers with a gap among them come as floats; beyond 2**53 they may have been rounded, and stay floats.
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return str(value)


def _is_gap(value: Any) -> bool:
    """Whether a cell is NaN, NaT or pandas.NA."""
    try:
        return bool(value != value)
    except TypeError:  # pandas.NA refuses to be a truth value
        return True


def _shown(text: str) -> str:
    """Text for a message, which is a single line whatever the file holds."""
    return text if text.isprintable() else repr(text)


def _checked_columns(path: Any, given: Sequence[str], ends: Sequence[str]) -> list[str]:
    """Column names in lower case, once they are known to be those of links, each of them once."""
    names = [name.strip().lower() for name in given]
    known = [*ends, "kind", *_STRENGTHS]
    rule = f"the first line must be {','.join(known[:-2])} and may go on with weight or certainty"
    missing = [name for name in known[:-2] if name not in names]
    if missing:
        found = f"it has {', '.join(map(_shown, names))}" if any(names) else "it is empty"
        if len(names) == 1 and ";" in names[0]:
            found = "it is separated by semicolons; save it with commas"
        raise ValueError(f"{path} has no column {', '.join(missing)} ({found}); {rule}")
    if "" in names:
        raise ValueError(f"{path}: column {names.index('') + 1} has no name; name it or remove it")
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ValueError(
            f"{path} has several columns named {', '.join(map(repr, repeated))}; keep one of each"
        )
    unknown = [given[place].strip() for place, name in enumerate(names) if name not in {*known, *_RESULTS}]
    if unknown:
        raise ValueError(
            f"{path} has unknown columns: {', '.join(map(repr, unknown))}; links have the columns "
            f"{', '.join(known)}: rename or remove the others, so that nothing is overlooked"
        )
    return names


def by_row(
    n_samples: int | None, remedy: str = "write row numbers counted from 0"
) -> Callable[[str, str], int]:
    """Cells are row numbers.

    Parameters
    ----------
    n_samples : int or None
        None: any row number will do.
    remedy : str
        What to do about a cell that is none.

    Returns
    -------
    function of a column and its cell

    Examples
    --------
    >>> from linkwise.constraints.io import by_row
    >>> by_row(5)("i", " 4")
    4
    """
    limit = 2**63 - 1 if n_samples is None else n_samples

    def find(column: str, cell: str) -> int:
        row = whole_number(cell)
        if row is None:
            raise ValueError(f"{column} is {cell.strip()!r}, which is no row number; {remedy}")
        if not 0 <= row < limit:
            last = "" if n_samples is None else f"..{n_samples - 1}"
            raise ValueError(f"{column} is {row}, but rows are numbered 0{last}; correct it")
        return row

    return find


def by_id(places: Mapping[str, int], remedy: str = "correct it") -> Callable[[str, str], int]:
    """Cells are ids, compared exactly as they stand: blanks around an id are part of it.

    Parameters
    ----------
    places : mapping from id to row number
    remedy : str
        What to do about a cell that is no id.

    Returns
    -------
    function of a column and its cell
    """
    stripped: dict[str, str] = {}

    def find(column: str, cell: str) -> int:
        if cell in places:
            return places[cell]
        if not stripped:
            stripped.update((name.strip(), name) for name in places)
        near = stripped.get(cell.strip())
        if near is not None:
            raise ValueError(
                f"{column} is {cell!r}, which is no id of the data, but {near!r} is: they differ in blanks; "
                "write both alike"
            )
        raise ValueError(f"{column} is {cell!r}, which is no id of the data; {remedy}")

    return find


def whole_number(cell: str) -> int | None:
    """The whole number that a cell holds, or None."""
    text = cell.strip()
    # More digits than any row number has; Python refuses to convert some thousand of them.
    return int(text) if re.fullmatch(r"[+-]?[0-9]{1,40}", text) else None


def link_sign(cells: Mapping[str, str]) -> float:
    """+1 for a must-link, -1 for a cannot-link."""
    kind = cells["kind"].strip().lower().replace("-", "_").replace(" ", "_")
    if kind not in _KINDS:
        raise ValueError(f"kind is {cells['kind'].strip()!r}; write must_link or cannot_link")
    return _KINDS[kind]


def link_strength(cells: Mapping[str, str], certainty: float | None = None) -> float:
    """abs(W) of a link: its own weight or certainty, or the certainty of all others, or hard."""
    given = {name: cells[name].strip() for name in _STRENGTHS if cells.get(name, "").strip()}
    if len(given) == 2:
        raise ValueError("a link has a weight or a certainty, not both; empty one of the cells")
    for name, text in given.items():
        number = _number(name, text)
        if name == "weight":
            if not number >= 0:
                raise ValueError(
                    f"weight is {text}; it must be >= 0, or inf for a hard link: kind gives the sign"
                    ", so write its size"
                )
            return number
        certainty = number
        if not 0.5 <= certainty <= 1.0:
            raise ValueError(
                f"certainty is {text}; it must lie between 0.5 (a guess) and 1 (hard): write 0.9 for 90 %"
            )
    if certainty is None:
        return np.inf
    from linkwise.constraints.evidence import (
        certainty_weight,  # loads numba, which the command starts without
    )

    return float(certainty_weight(np.float64(certainty)))


def _number(name: str, text: str) -> float:
    try:
        if not text.isascii() or "_" in text:
            raise ValueError
        return float(text)
    except ValueError:
        raise ValueError(f"{name} is {text!r}, which is no number; write for example 0.9") from None


def write(path: str | os.PathLike[str], pairs: NDArray[np.int64], weights: NDArray[np.float64]) -> None:
    """Write all links or, if the writing is stopped, leave the file as it was."""
    with replacing(path) as draft, open(draft, "w", newline="", encoding="utf-8") as stream:
        stream.write("i,j,kind,weight\n")
        for (i, j), weight in zip(pairs.tolist(), weights.tolist(), strict=True):
            stream.write(f"{i},{j},{'must_link' if weight > 0 else 'cannot_link'},{abs(weight)!r}\n")


def summary(links: Constraints) -> str:
    """``150 samples, 40 must-links (12 hard), 60 cannot-links; 23 chunklets`` (of two or more samples)."""

    def count(number: int, noun: str) -> str:
        return f"{number} {noun}" + ("" if number == 1 else "s")

    def kind(chosen: NDArray[np.bool_], noun: str) -> str:
        hard = int(np.isinf(links.weights[chosen]).sum())
        return count(int(chosen.sum()), noun) + (f" ({hard} hard)" if hard else "")

    sizes = np.bincount(links.chunklets()) if links.n_samples else np.zeros(0)
    return (
        f"{count(links.n_samples, 'sample')}, {kind(links.weights > 0, 'must-link')}, "
        f"{kind(links.weights < 0, 'cannot-link')}; {count(int((sizes > 1).sum()), 'chunklet')}"
    )


def html(links: Constraints) -> str:
    """A heading and the first few links as a table."""
    rows = [
        f"<tr><td>{i}</td><td>{j}</td><td>{'must-link' if weight > 0 else 'cannot-link'}</td>"
        f"<td>{'hard' if np.isinf(weight) else f'{abs(weight):.3g}'}</td></tr>"
        for (i, j), weight in zip(links.pairs[:_SHOWN].tolist(), links.weights[:_SHOWN].tolist(), strict=True)
    ]
    if links.n_pairs > _SHOWN:
        rows.append(f"<tr><td colspan='4'>… and {links.n_pairs - _SHOWN} more</td></tr>")
    head = "<tr><th>i</th><th>j</th><th>kind</th><th>weight</th></tr>"
    return f"<div><b>Constraints</b>: {escape(summary(links))}<table>{head}{''.join(rows)}</table></div>"
