"""Files of links: by row number or by id, hard, weighted or with a certainty."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from linkwise.cli.errors import INFEASIBLE, CommandError
from linkwise.cli.samples import Samples
from linkwise.cli.tables import read_frame, table_suffix

if TYPE_CHECKING:
    from linkwise.constraints import Constraints

__all__ = [
    "LinkList",
    "build_links",
    "check_links",
    "link_sign",
    "link_strength",
    "read_link_list",
    "read_links",
]

_KINDS = {"must_link": 1.0, "must": 1.0, "same": 1.0, "cannot_link": -1.0, "cannot": -1.0, "different": -1.0}


@dataclass(frozen=True)
class LinkList:
    """The lines of a file of links, before they are put together.

    Attributes
    ----------
    pairs : (m, 2) int64
        Row numbers.
    weights : (m,) float64
        Signed; infinite for hard links.
    """

    pairs: NDArray[np.int64]
    weights: NDArray[np.float64]


def read_links(
    path: str | Path | None, samples: Samples, *, certainty: float | None = None, by_row: bool = False
) -> Constraints:
    """Links among the rows of a data file.

    Parameters
    ----------
    path : path_like or None
        Columns ``i, j, kind`` and, if wanted, ``weight`` or ``certainty``. None: no links.
    samples : Samples
        If they have ids, ``i`` and ``j`` are ids.
    certainty : float, optional
        Of links that have neither weight nor certainty of their own; without it they are hard.
    by_row : bool, default=False
        ``i`` and ``j`` are row numbers although there are ids.

    Returns
    -------
    Constraints
    """
    from linkwise.constraints import Constraints

    if path is None:
        return Constraints(len(samples))
    places = None
    if samples.ids is not None and not by_row:
        places = {str(name).strip(): row for row, name in enumerate(samples.ids.tolist())}
    links = read_link_list(path, len(samples), places=places, certainty=certainty)
    return build_links(links, len(samples), samples)


def read_link_list(
    path: str | Path,
    n_samples: int | None,
    *,
    places: Mapping[str, int] | None = None,
    certainty: float | None = None,
) -> LinkList:
    """The lines of a file of links; every message names the line.

    Parameters
    ----------
    path : path_like
    n_samples : int or None
        None: any row number will do.
    places : mapping from id to row number, optional
    certainty : float, optional

    Returns
    -------
    LinkList
    """
    pairs, weights = [], []
    for line, record in _records(Path(path)):
        try:
            ends = [_end(record, name, n_samples, places) for name in ("i", "j")]
            if ends[0] == ends[1]:
                raise CommandError(f"{record['i']} is linked to itself; remove the line")
            pairs.append((min(ends), max(ends)))
            weights.append(link_sign(record) * link_strength(record, certainty))
        except CommandError as error:
            raise CommandError(f"{path}, line {line}: {error}") from None
    if not pairs:
        raise CommandError(f"{path} has no links; leave --links out to do without")
    return LinkList(np.array(pairs, dtype=np.int64), np.array(weights))


def build_links(links: LinkList, n_samples: int, samples: Samples | None = None) -> Constraints:
    """Put the lines together: soft evidence adds up, hard contradictions are refused with their proof."""
    from linkwise.constraints import Constraints
    from linkwise.exceptions import InfeasibleConstraints

    must = links.weights > 0
    strength = np.abs(np.concatenate([links.weights[must], links.weights[~must]]))
    try:
        return Constraints(n_samples, links.pairs[must], links.pairs[~must], weight=strength)
    except InfeasibleConstraints as error:
        raise CommandError(_witness(error, samples), INFEASIBLE) from None


def check_links(links: Constraints, n_clusters: int, samples: Samples | None = None) -> None:
    """Refuse hard links that this many clusters cannot satisfy."""
    from linkwise.exceptions import InfeasibleConstraints

    try:
        links.check(n_clusters)
    except InfeasibleConstraints as error:
        raise CommandError(_witness(error, samples), INFEASIBLE) from None


def _witness(error: Any, samples: Samples | None) -> str:
    """The proof of a contradiction; where links were given by id, the ids of its rows."""
    message = f"the links cannot all hold: {error.witness.message}"
    if samples is None or samples.ids is None:
        return message
    points = sorted({point for link in error.witness.must_link + error.witness.cannot_link for point in link})
    names = ", ".join(f"row {point} is {samples.name_of(point)!r}" for point in points[:12])
    return f"{message} ({names})"


def _records(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """Line number and cells, as text without blanks around it."""
    if path.is_dir() or table_suffix(path) == ".parquet":
        frame = read_frame(path)
        _refuse_columns(path, list(frame.columns))
        for row, values in enumerate(frame.to_dict("records")):
            yield (
                row,
                {
                    name: "" if value is None or value != value else str(value)
                    for name, value in values.items()
                },
            )
        return
    separator = "\t" if table_suffix(path) == ".tsv" else ","
    try:
        with open(path, newline="", encoding="utf-8-sig") as stream:
            reader = csv.DictReader(stream, delimiter=separator, skipinitialspace=True)
            _refuse_columns(path, [name.strip() for name in reader.fieldnames or []])
            for record in reader:
                if None in record:
                    raise CommandError(
                        f"{path}, line {reader.line_num}: more cells than the first line has names"
                    )
                cells = {str(name).strip(): (value or "").strip() for name, value in record.items()}
                if any(cells.values()):
                    yield reader.line_num, cells
    except UnicodeDecodeError as error:
        raise CommandError(f"{path} is not text in UTF-8 ({error.reason} at byte {error.start})") from None
    except csv.Error as error:
        raise CommandError(f"{path} is no CSV file: {error}") from None


def _refuse_columns(path: Path, names: list[str]) -> None:
    missing = [name for name in ("i", "j", "kind") if name not in names]
    if missing:
        found = f"it has {', '.join(names)}" if names else "it is empty"
        raise CommandError(
            f"{path} has no column {', '.join(missing)} ({found}); the first line must be i,j,kind and may "
            "go on with weight or certainty"
        )


def _end(record: dict[str, str], name: str, n_samples: int | None, places: Mapping[str, int] | None) -> int:
    text = record[name]
    if places is not None:
        if text not in places:
            raise CommandError(
                f"{name} is {text!r}, which is no id of the data; correct it, or use --links-by row"
            )
        return places[text]
    try:
        row = int(text)
    except ValueError:
        raise CommandError(
            f"{name} is {text!r}, which is no row number; for links by id name the column: --id"
        ) from None
    if row < 0 or (n_samples is not None and row >= n_samples):
        last = "" if n_samples is None else f"..{n_samples - 1}"
        raise CommandError(f"{name} is {row}, but rows are numbered 0{last}")
    return row


def link_sign(record: dict[str, str]) -> float:
    """+1 for a must-link, -1 for a cannot-link."""
    kind = record["kind"].lower().replace("-", "_").replace(" ", "_")
    if kind not in _KINDS:
        raise CommandError(f"kind is {record['kind']!r}; write must_link or cannot_link")
    return _KINDS[kind]


def link_strength(record: dict[str, str], certainty: float | None) -> float:
    """abs(W) of a link: its own weight or certainty, or that of the command line, or hard."""
    given = {name: record[name] for name in ("weight", "certainty") if record.get(name)}
    if len(given) == 2:
        raise CommandError("a link has a weight or a certainty, not both; empty one of the cells")
    numbers = {}
    for name, text in given.items():
        try:
            numbers[name] = float(text)
        except ValueError:
            raise CommandError(f"{name} is {text!r}, which is no number") from None
    weight = numbers.get("weight")
    if weight is not None:
        if not weight >= 0:
            raise CommandError(
                f"weight is {weight:g}; it must be >= 0, or inf for a hard link: kind gives the sign"
            )
        return weight
    sure = numbers.get("certainty", certainty)
    if sure is None:
        return np.inf
    if not 0.5 <= sure <= 1.0:
        raise CommandError(f"certainty is {sure:g}; it must lie between 0.5 (a guess) and 1 (hard)")
    with np.errstate(divide="ignore"):
        return float(0.5 * (np.log(sure) - np.log1p(-sure)))
