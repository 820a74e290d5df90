"""Tables that are written, and links that are read."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any

from linkwise._files import replacing
from linkwise._tables import SEPARATORS, no_pyarrow, table_suffix
from linkwise._validation import listed
from linkwise.cli.errors import INFEASIBLE, CommandError
from linkwise.constraints.io import Columns, LinkList, by_id, by_row, link_list, records

if TYPE_CHECKING:
    import pandas

    from linkwise.cli.samples import Samples
    from linkwise.constraints import Constraints

# A spreadsheet takes a cell that begins with one of these for a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_safe_csv = ContextVar("safe_csv", default=False)


def as_option(columns: Iterable[str]) -> str:
    """Write column names so that an option such as --ignore reads them: as a line of CSV."""
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(columns)
    return line.getvalue()


def refuse_unknown(path: str | Path, wanted: Iterable[str], known: Sequence[str]) -> None:
    """Refuse the name of a column that a file has not."""
    for name in wanted:
        if name not in known:
            raise CommandError(
                f"{path} has no column {name!r}; it has {listed(list(known), 12)}: name one of these"
            )


def write_frame(path: str | Path, frame: pandas.DataFrame) -> Path:
    """Write a table as CSV, TSV or Parquet by the suffix of the name, all or nothing."""
    suffix = table_suffix(path)
    with replacing(path) as draft:
        if suffix == ".parquet":
            try:
                frame.to_parquet(draft, index=False)
            except ImportError:
                raise no_pyarrow(path) from None
        else:
            write_csv(frame, draft, SEPARATORS[suffix])
    return Path(path)


def protect_csv(wanted: bool) -> bool:
    """Make the CSV files of this command safe for spreadsheets, or not; the callback of the option."""
    _safe_csv.set(wanted)
    return wanted


def write_csv(frame: pandas.DataFrame, target: Any, separator: str = ",") -> None:
    """Write CSV to a path or a stream; with ``--safe-csv`` no cell of text is taken for a formula."""
    if _safe_csv.get():
        frame = frame.rename(columns=_without_formula)
        texts = [name for name in frame.columns if frame[name].dtype.kind not in "biuf"]
        frame = frame.assign(**{name: frame[name].map(_without_formula) for name in texts})
    frame.to_csv(target, index=False, sep=separator)


def _without_formula(value: Any) -> Any:
    """Put an apostrophe, which spreadsheets do not show, before text; leave anything else as it is."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def read_links(
    path: str | Path | None,
    samples: Samples,
    *,
    certainty: float | None = None,
    by_row: bool = False,
    columns: Columns | None = None,
    softened_by: str = "--certainty",
) -> Constraints:
    """Links among the rows of a data file, by id if it has ids; the rest is as in ``read_link_list``.

    ``softened_by`` is what the command has to make hard links soft, for the advice of an error.
    """
    from linkwise.constraints import Constraints

    if path is None:
        return Constraints(len(samples))
    places = None if by_row else samples.places
    links = read_link_list(path, len(samples), places=places, certainty=certainty, columns=columns)
    built = build_links(links, len(samples), samples, softened_by)
    if not built.n_pairs:
        raise CommandError(
            f"{path}: no link is left, because answers about one pair cancel each other or have a certainty "
            "of 0.5; correct them, or leave --links out"
        )
    return built


def read_link_list(
    path: str | Path,
    n_samples: int | None,
    *,
    places: Mapping[str, int] | None = None,
    certainty: float | None = None,
    columns: Columns | None = None,
) -> LinkList:
    """Links of a file by row number or by the ids in ``places``; ``certainty`` of those that have none."""
    path = Path(path)
    if path.is_dir():
        raise CommandError(f"{path} is a folder; pass a file of links")
    find: Callable[[str, str], int]
    if places is None:
        find = by_row(n_samples, "for links by id name the column: --id")
    else:
        find = by_id(places, "correct it, or use --links-by row")
    try:
        links = link_list(path, records(path, columns or Columns()), find, certainty=certainty)
    except ValueError as error:
        raise CommandError(str(error)) from None
    if not len(links.pairs):
        raise CommandError(f"{path} has no links; write some into it, or leave it out")
    return links


def build_links(
    links: LinkList, n_samples: int, samples: Samples | None = None, softened_by: str = "--certainty"
) -> Constraints:
    """Put the lines together: soft evidence adds up, hard contradictions are refused with their proof."""
    from linkwise.constraints import Constraints
    from linkwise.exceptions import InfeasibleConstraints

    try:
        return Constraints._from_list(links, n_samples)
    except InfeasibleConstraints as error:
        raise CommandError(_witness(error, samples, softened_by=softened_by), INFEASIBLE) from None


def link_frame(links: Constraints, first: Any, second: Any, kept: Any) -> pandas.DataFrame:
    """Tabulate links: the names of both ends (m,), kind, weight, and whether they were kept (m,)."""
    import pandas

    kind = ["must_link" if weight > 0 else "cannot_link" for weight in links.weights.tolist()]
    return pandas.DataFrame(
        {"i": first, "j": second, "kind": kind, "weight": abs(links.weights), "kept": kept}
    )


def add_labels(links: Constraints, samples: Samples, certainty: float | None) -> Constraints:
    """Add to the links what the known labels of some rows say."""
    from linkwise.constraints import Constraints
    from linkwise.exceptions import InfeasibleConstraints

    assert samples.known is not None
    try:
        return links + Constraints.from_labels(samples.known, certainty=certainty)
    except InfeasibleConstraints as error:
        raise CommandError(_witness(error, samples, "links and labels"), INFEASIBLE) from None
    except ValueError as error:  # a file of links says another class of a row
        raise CommandError(str(error)) from None


def check_links(links: Constraints, n_clusters: int, samples: Samples | None = None) -> None:
    """Refuse hard links that this many clusters cannot satisfy."""
    from linkwise.exceptions import InfeasibleConstraints

    try:
        links.check(n_clusters)
    except InfeasibleConstraints as error:
        raise CommandError(_witness(error, samples), INFEASIBLE) from None


def _witness(
    error: Any, samples: Samples | None, what: str = "links", softened_by: str = "--certainty"
) -> str:
    """Give the proof of a contradiction, with the ids of its rows where links were given by id."""
    from linkwise.constraints.ids import named_points

    # The advice of the library, after the semicolon, is about Python.
    told, _, _ = error.witness.message.partition("; ")
    if "classes" in told:
        return f"{told}; ask for more clusters with -k, or pass --labels-certainty if labels may be wrong"
    if samples is not None and samples.ids is not None:
        told = f"{told} ({named_points(error.witness, samples.name_of)})"
    more = "" if error.witness.kind == "path" else ", or ask for more clusters"
    either = ", or" if not more else ","
    return (
        f"the {what} cannot all hold: {told}; remove one of these links{either} make them soft with "
        f"{softened_by}{more}"
    )
