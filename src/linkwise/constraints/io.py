"""The one grammar of tables of links, in files and data frames, for the library and the command.

A table has two columns that name the points of a link (``i`` and ``j``, the two that are given as left and
right, or the only two that are nothing else), the column ``kind``, and may have ``weight`` or ``certainty``
and ``source`` (or ``annotator``). Every other column is refused, so that no knowledge is overlooked, unless
the caller asks to ignore it. No link is left out, and none becomes hard because something was not understood.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from linkwise._arrays import Floats, Ints
from linkwise._files import replacing
from linkwise.constraints.cells import PathLike, cell_text, file_table, frame_table, text_lines

_KINDS = {
    **dict.fromkeys(["must_link", "must", "same", "yes", "1", "+1", "1.0"], 1.0),
    **dict.fromkeys(["cannot_link", "cannot", "different", "no", "0", "0.0", "-1", "-1.0"], -1.0),
}
_STRENGTHS = ("weight", "certainty")
_SOURCES = ("source", "annotator")
_KNOWN = ("kind", *_STRENGTHS, *_SOURCES)
# Classes of the two points, which links made of labels are written with.
_CLASSES = ("class_i", "class_j")
# What `linkwise fit` writes beside the links, so that its file can be read again; it says nothing about them.
_RESULTS = ("kept", "violation_probability")
# Columns of these names hold something else than the points of a link.
_LOOKALIKES = {
    "confidence", "weights", "certainties", "probability", "prob", "score", "strength", "sure", "annotators",
    "sources", "user", "rater", "link", "label", "relation", "type", "note", "comment", "date", "time",
}  # fmt: skip

Record = tuple[str, dict[str, str]]


@dataclass(frozen=True)
class Columns:
    """Which columns name the points of a link, if the caller says so, and which to leave out."""

    left: str | None = None
    right: str | None = None
    ignore: Sequence[str] = ()
    ends: tuple[str, ...] | None = None  # fixed names, as the four coordinates of two pixels


_ANY_COLUMNS = Columns()


@dataclass(frozen=True)
class LinkList:
    """Lines of a table of links: pairs (m, 2), i < j, signed weights (m,), sources (m,), row classes."""

    pairs: Ints
    weights: Floats
    source: tuple[str, ...] | None = None
    classes: Mapping[int, str] = field(default_factory=dict)

    def row_labels(self, n_samples: int) -> list[Any] | None:
        """Class of each row or None; as numbers if all are whole ones, as in the y of many data sets."""
        if not self.classes:
            return None
        whole = all(name == str(whole_number(name)) for name in self.classes.values())
        names = [self.classes.get(row) for row in range(n_samples)]
        return [int(name) if whole and name else name for name in names]


def link_list(
    name: object, lines: Iterable[Record], find: Callable[[str, str], int], *, certainty: float | None = None
) -> LinkList:
    """Every line of a table as one link, by ``find(column, cell)``; ``certainty`` if a link has none."""
    pairs: list[tuple[int, int]] = []
    weights: list[float] = []
    sources: list[str] = []
    classes: dict[int, str] = {}
    for place, cells in lines:
        try:
            i, j = find("i", cells["i"]), find("j", cells["j"])
            if i == j:
                point = _shown(cells["i"].strip())
                raise ValueError(f"{point} is linked to itself: i and j are one point; remove the line")
            pairs.append((min(i, j), max(i, j)))
            weights.append(link_sign(cells) * link_strength(cells, certainty))
            if "source" in cells:
                sources.append(cells["source"].strip())
            for row, column in zip((i, j), _CLASSES, strict=True):
                label = cells.get(column, "")
                if label.strip() and classes.setdefault(row, label) != label:
                    raise ValueError(
                        f"{column} is {label!r}, but above the same row is {classes[row]!r}; correct it"
                    )
        except ValueError as error:
            raise ValueError(f"{name}, {place}: {error}") from None
    return LinkList(
        np.array(pairs, dtype=np.int64).reshape(-1, 2),
        np.array(weights, dtype=np.float64),
        tuple(sources) if sources else None,
        classes,
    )


def records(path: PathLike, columns: Columns = _ANY_COLUMNS) -> Iterator[Record]:
    """Lines of a file of links: their place in it, and the cells by the names of the grammar."""
    frame = file_table(path)
    return _csv_records(path, columns) if frame is None else frame_records(path, frame, columns)


def frame_records(name: object, frame: Any, columns: Columns = _ANY_COLUMNS) -> Iterator[Record]:
    """Rows of a data frame under the same rules as the lines of a file; ``name`` is for the messages."""
    titles, values = frame_table(name, frame)
    names = _checked_columns(name, titles, columns)
    lengths = {title: len(column) for title, column in zip(titles, values, strict=True)}
    if len({*lengths.values()}) > 1:
        raise ValueError(f"{name} has columns of several lengths ({lengths}); pass as many cells in each")
    rows = (
        (f"row {row} (counted from 0)", [cell_text(value) for value in cells])
        for row, cells in enumerate(zip(*values, strict=True))
    )
    return _named(name, rows, names, decimal_comma=False)


def _csv_records(path: PathLike, columns: Columns) -> Iterator[Record]:
    with closing(text_lines(path)) as lines:
        separator, titles = next(lines)
        names = _checked_columns(path, titles, columns)
        yield from _named(path, lines, names, decimal_comma=separator == ";")


def _named(
    name: object, rows: Iterable[tuple[str, list[str]]], names: Sequence[str], *, decimal_comma: bool
) -> Iterator[Record]:
    """Rows as cells by name; empty ones and ignored columns left out, 0 beside -1 refused."""
    seen: dict[str, str] = {}
    for place, row in rows:
        if not any(cell.strip() for cell in row):
            continue
        cells = {title: cell for title, cell in zip(names, row, strict=True) if title}
        if decimal_comma:
            for title in ("kind", *_STRENGTHS):
                if re.fullmatch(r"\s*[+-]?[0-9]*,[0-9]+([eE][+-]?[0-9]+)?\s*", cells.get(title, "")):
                    cells[title] = cells[title].replace(",", ".")
        kind = cells["kind"].strip().removesuffix(".0")
        if kind in ("0", "-1"):
            seen.setdefault(kind, place)
            if len(seen) == 2:
                other, where = next(iter(seen.items()))
                raise ValueError(
                    f"{name}, {place}: kind is {kind}, but {where} has {other}, so 0 may mean not known; "
                    "write must_link or cannot_link, and leave out what is not known"
                )
        yield place, cells


def _shown(text: str) -> str:
    """Text for a message, which is a single line whatever the file holds."""
    return text if text.isprintable() else repr(text)


def _checked_columns(name: object, given: Sequence[str], columns: Columns) -> list[str]:
    """The name in the grammar of each column, "" for those to leave out, once all are understood."""
    titles = [title.strip() for title in given]
    names = [title.lower() for title in titles]
    if not any(names):
        raise ValueError(f"{name} has no column i, j, kind (it is empty); {_rule(columns)}")
    found = f"it has {', '.join(map(_shown, titles))}"
    ignored = _wanted(name, names, columns.ignore, "ignore", found)
    if "" in names:
        raise ValueError(f"{name}: column {names.index('') + 1} has no name; name it or remove it")
    repeated = sorted({title for title in names if names.count(title) > 1})
    if repeated:
        raise ValueError(
            f"{name} has several columns named {', '.join(map(repr, repeated))}; keep one of each"
        )
    ends = _ends(name, names, ignored, columns, found)
    if "kind" not in {*names} - ignored:
        raise ValueError(f"{name} has no column kind ({found}); {_rule(columns)}")
    known = {title: title for title in _KNOWN} | {"annotator": "source"} | dict.fromkeys(_RESULTS, "")
    known |= {title: title for title in _CLASSES} | ends | dict.fromkeys(ignored, "")
    unknown = [title for title in titles if title.lower() not in known]
    if unknown:
        raise ValueError(
            f"{name} has unknown columns: {', '.join(map(repr, unknown))}; links have the columns "
            f"{', '.join((*ends, *_KNOWN))}: rename the others, or leave them out with ignore_columns= "
            "(--ignore-columns), so that nothing is overlooked"
        )
    if {*_SOURCES} <= {*names} - ignored - {*ends}:
        raise ValueError(f"{name} has the columns source and annotator, which mean the same; leave one out")
    return [known[title] for title in names]


def _rule(columns: Columns) -> str:
    first = ",".join((*(columns.ends or ("i", "j")), "kind"))
    return f"the first line must be {first} and may go on with weight or certainty, and source"


def _wanted(name: object, names: Sequence[str], wanted: Sequence[str], verb: str, found: str) -> set[str]:
    """Columns the caller names, in lower case; one that is not there is refused."""
    if isinstance(wanted, str):
        wanted = (wanted,)
    lower = {str(title).strip().lower(): title for title in wanted}
    for title, as_given in lower.items():
        if title not in names:
            raise ValueError(f"{name} has no column {as_given!r} to {verb} ({found}); correct the name")
    return set(lower)


def _ends(
    name: object, names: Sequence[str], ignored: set[str], columns: Columns, found: str
) -> dict[str, str]:
    """Which columns name the points of a link, and what the grammar calls them."""
    if columns.ends is not None:
        missing = [title for title in columns.ends if title not in names]
        if missing:
            raise ValueError(f"{name} has no column {', '.join(missing)} ({found}); {_rule(columns)}")
        return {title: title for title in columns.ends}
    if columns.left is not None or columns.right is not None:
        if columns.left is None or columns.right is None:
            raise ValueError(
                f"{name}: left and right are the two columns of points; name both or none of them"
            )
        left, right = (str(title).strip().lower() for title in (columns.left, columns.right))
        _wanted(name, names, (columns.left, columns.right), "take points from", found)
        if left == right or {left, right} & ({"kind"} | ignored):
            raise ValueError(
                f"{name}: {columns.left!r} and {columns.right!r} cannot be the two points; name two other "
                "columns"
            )
        return {left: "i", right: "j"}
    if {"i", "j"} <= {*names} - ignored:
        return {"i": "i", "j": "j"}
    rest = [title for title in names if title not in {*_KNOWN, *_CLASSES, *_RESULTS} | ignored]
    likely = [title for title in rest if title not in _LOOKALIKES]
    if len(rest) == 2 == len(likely):
        return {rest[0]: "i", rest[1]: "j"}
    if len(likely) == 2:
        return {likely[0]: "i", likely[1]: "j"}  # the others are refused by name
    raise ValueError(
        f"{name} has no column i, j, and it is not clear which two columns are the points ({found}); name "
        "them with left= and right= (--left, --right), and leave others out with ignore_columns= "
        "(--ignore-columns)"
    )


def by_row(
    n_samples: int | None, remedy: str = "write row numbers counted from 0"
) -> Callable[[str, str], int]:
    """A function that reads cells as row numbers; without ``n_samples`` any row number will do."""
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


def id_places(ids: Iterable[Hashable]) -> dict[str, int]:
    """Row number of each id as text; ids that look alike as text are refused."""
    texts = [cell_text(name) for name in ids]
    places = dict(zip(texts, range(len(texts)), strict=True))
    if len(places) < len(texts):
        row = next(row for row, text in enumerate(texts) if places[text] != row)
        raise ValueError(
            f"the ids of rows {row} and {places[texts[row]]} are both {texts[row]!r} in a table of links; "
            "rename one of them"
        )
    return places


def by_id(places: Mapping[str, int], remedy: str = "correct it") -> Callable[[str, str], int]:
    """A function that reads cells as ids, exactly as they stand: blanks around an id are part of it."""
    alike: dict[str, str] = {}

    def find(column: str, cell: str) -> int:
        if cell in places:
            return places[cell]
        if not alike:
            alike.update((_core(name), name) for name in places)
        near = alike.get(_core(cell))
        if near is None:
            raise ValueError(f"{column} is {cell!r}, which is no id of the data; {remedy}")
        reason = "blanks" if near.strip() == cell.strip() else "the way numbers are written"
        raise ValueError(
            f"{column} is {cell!r}, which is no id of the data, but {near!r} is: they differ in {reason}; "
            "write both alike"
        )

    return find


def _core(name: str) -> str:
    """An id without blanks, and a whole number without leading zeros and ``.0``."""
    text = name.strip()
    number = re.fullmatch(r"0*([0-9]{1,40})(\.0*)?", text)
    return number.group(1) if number else text


def whole_number(cell: str) -> int | None:
    """The whole number that a cell holds, or None."""
    text = cell.strip()
    # More digits than any row number has; Python refuses to convert some thousand of them.
    return int(text) if re.fullmatch(r"[+-]?[0-9]{1,40}", text) else None


def link_sign(cells: Mapping[str, str]) -> float:
    """+1 for a must-link, -1 for a cannot-link."""
    kind = cells["kind"].strip().lower()
    if kind not in _KINDS:
        kind = kind.replace("-", "_").replace(" ", "_")
    if kind not in _KINDS:
        raise ValueError(f"kind is {cells['kind'].strip()!r}; write must_link or cannot_link")
    return _KINDS[kind]


def link_strength(cells: Mapping[str, str], certainty: float | None = None) -> float:
    """abs(W) of a link: its own weight or certainty, or the certainty of all others, or hard."""
    columns = [name for name in _STRENGTHS if name in cells]
    given = {name: cells[name].strip() for name in columns if cells[name].strip()}
    if len(given) == 2:
        raise ValueError("a link has a weight or a certainty, not both; empty one of the cells")
    for name, text in given.items():
        number = _number(name, text)
        if name == "weight":
            if not number >= 0:
                raise ValueError(
                    f"weight is {text}; it must be >= 0, or inf for a hard link: kind gives the sign, so "
                    "write its size"
                )
            return number
        certainty = number
        if not 0.5 <= certainty <= 1.0:
            raise ValueError(
                f"certainty is {text}; it must lie between 0.5 (a guess) and 1 (hard): write 0.9 for 90 %"
            )
    if certainty is None:
        if columns:
            raise ValueError(
                f"{' and '.join(columns)} {'are' if len(columns) > 1 else 'is'} empty, and the link is not "
                "taken for hard; write certainty 1 or weight inf if it is, or give certainty= (--certainty) "
                "for all such"
            )
        return np.inf
    from linkwise.constraints.evidence import certainty_weight  # loads numba; the command starts without

    return float(certainty_weight(np.float64(certainty)))


def _number(name: str, text: str) -> float:
    try:
        if not text.isascii() or "_" in text:
            raise ValueError
        return float(text)
    except ValueError:
        raise ValueError(f"{name} is {text!r}, which is no number; write for example 0.9") from None


def write(
    path: PathLike,
    pairs: Ints,
    weights: Floats,
    *,
    source: Sequence[str] | None = None,
    ids: Sequence[Hashable] | None = None,
    classes: Sequence[Any] | None = None,
) -> None:
    """Write all links, or leave the file as it was; ``source`` by link, ``ids`` and ``classes`` by row."""
    names = None if ids is None else list(id_places(ids))
    labels = [] if classes is None else [cell_text(label) for label in classes]
    with replacing(path) as draft, open(draft, "w", newline="", encoding="utf-8") as stream:
        # Python leaves a carriage return without quotation marks, and would read it as the end of the line.
        returns = any("\r" in name for name in (*(names or ()), *(source or ()), *labels))
        quoting: Any = csv.QUOTE_ALL if returns else csv.QUOTE_MINIMAL
        writer = csv.writer(stream, lineterminator="\n", quoting=quoting)
        head = ["i", "j", "kind", "weight"]
        head += (["source"] if source is not None else []) + (list(_CLASSES) if labels else [])
        writer.writerow(head)
        for place, ((i, j), weight) in enumerate(zip(pairs.tolist(), weights.tolist(), strict=True)):
            row = [i, j] if names is None else [names[i], names[j]]
            row += ["must_link" if math.copysign(1.0, weight) > 0 else "cannot_link", repr(abs(weight))]
            row += ([source[place]] if source is not None else []) + (
                [labels[i], labels[j]] if labels else []
            )
            writer.writerow(row)
