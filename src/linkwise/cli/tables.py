"""Tables and links in files: CSV, TSV and Parquet, in and out."""

from __future__ import annotations

import csv
import gzip
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any

from linkwise._files import replacing
from linkwise._validation import listed
from linkwise.cli.errors import INFEASIBLE, CommandError
from linkwise.constraints.cells import opened
from linkwise.constraints.io import Columns, LinkList, by_id, by_row, link_list, records

if TYPE_CHECKING:
    import pandas

    from linkwise.cli.samples import Samples
    from linkwise.constraints import Constraints

_SEPARATORS = {".csv": ",", ".txt": ",", ".tsv": "\t"}
_PARQUET = (".parquet", ".pq")
# What is taken for a missing number; in columns of text only an empty cell is.
MISSING = ["", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "None"]
# What a .gz file that is cut off or overwritten raises.
_BAD_ARCHIVE = (EOFError, zlib.error, gzip.BadGzipFile)
# A spreadsheet takes a cell that begins with one of these for a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_safe_csv = ContextVar("safe_csv", default=False)


def refuse_unknown(path: str | Path, wanted: Iterable[str], known: Sequence[str]) -> None:
    """Refuse the name of a column that a file has not."""
    for name in wanted:
        if name not in known:
            raise CommandError(
                f"{path} has no column {name!r}; it has {listed(list(known), 12)}: name one of these"
            )


def table_suffix(path: str | Path) -> str:
    """Give ``.csv``, ``.tsv`` or ``.parquet`` for a file name, or raise an error that lists them."""
    path = Path(path)
    suffix = Path(path.stem).suffix if path.suffix == ".gz" else path.suffix
    suffix = suffix.lower()
    if suffix in _PARQUET:
        return ".parquet"
    if suffix in _SEPARATORS:
        return suffix
    raise CommandError(
        f"{path}: linkwise reads and writes .csv, .tsv and .parquet files, not {suffix or 'this'}; convert it"
    )


def read_frame(path: str | Path, text_columns: Sequence[str] = ()) -> pandas.DataFrame:
    """Read a table as it is; ``text_columns`` of a CSV file stay text, so that the id 007 stays 007."""
    path = Path(path)
    if path.is_dir():
        raise CommandError(f"{path} is a folder; pass a .csv or .parquet file")
    suffix = table_suffix(path)
    frame = _read_parquet(path) if suffix == ".parquet" else _read_csv(path, suffix, text_columns)
    frame.columns = [str(name) for name in frame.columns]
    _refuse_repeated(path, list(frame.columns))
    if not len(frame):
        raise CommandError(f"{path} has column names but no rows; pass a file with rows")
    return frame


def column_names(path: str | Path) -> list[str]:
    """The names of the columns of a CSV file; none of a Parquet file, whose cells have types of their own."""
    suffix = table_suffix(path)
    if suffix == ".parquet" or Path(path).is_dir():
        return []
    return _header(Path(path), _SEPARATORS[suffix])


def _read_parquet(path: Path) -> pandas.DataFrame:
    import pandas

    with open(path, "rb"):  # a missing file is named by the system's own error
        pass
    try:
        import pyarrow  # type: ignore[import-untyped]
        import pyarrow.parquet  # type: ignore[import-untyped]
    except ImportError:
        raise no_pyarrow(path) from None
    # As floats, which pandas makes of integers with gaps, ids and classes beyond 2**53 would be rounded.
    exact = {pyarrow.int64(): pandas.Int64Dtype(), pyarrow.uint64(): pandas.UInt64Dtype()}
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            return file.read().to_pandas(types_mapper=exact.get).reset_index(drop=True)
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise CommandError(
            f"{path} is no Parquet file that can be read ({_first_line(error)}); write it again"
        ) from None


def no_pyarrow(path: str | Path) -> CommandError:
    """The error for a Parquet file without pyarrow."""
    return CommandError(f'{path}: Parquet needs pyarrow; pip install "linkwise[parquet]"')


def _read_csv(path: Path, suffix: str, text_columns: Sequence[str]) -> pandas.DataFrame:
    import pandas

    separator = _SEPARATORS[suffix]
    names = _header(path, separator)
    missing = {name: [""] if name in text_columns else MISSING for name in names}
    try:
        with warnings.catch_warnings():
            # Lines that are longer than the header lose cells with no more than this warning.
            warnings.simplefilter("error", pandas.errors.ParserWarning)
            frame = pandas.read_csv(
                path,
                sep=separator,
                header=0,
                names=names,
                float_precision="round_trip",  # pandas 2 would round the last digit
                # In a single column an empty line is a missing value.
                skip_blank_lines=len(names) > 1,
                encoding="utf-8-sig",
                dtype=dict.fromkeys(text_columns, str),
                na_values=missing,
                keep_default_na=False,
                index_col=False,
                low_memory=False,
            )
    except pandas.errors.ParserWarning:
        raise CommandError(
            f"{path}: the lines have more cells than the first line has names; name every column"
        ) from None
    except _BAD_ARCHIVE as error:
        raise _damaged_archive(path, error) from None
    except (pandas.errors.ParserError, UnicodeDecodeError) as error:
        raise CommandError(f"{path} cannot be read as CSV ({_first_line(error)}); correct it") from None
    for name in text_columns:
        # Blanks belong to ids, but a quotation mark behind them would become part of the text.
        bad = frame[name].str.match(r'\s+"', na=False) if name in names else None
        if bad is not None and bad.any():
            raise CommandError(
                f"{path}: {name!r} has blanks before a quotation mark in row {int(bad.argmax())} "
                "(counted from 0); remove the blanks"
            )
    if frame[names[-1]].isna().any():
        _refuse_short_lines(path, separator, len(names))
    return frame


def _refuse_short_lines(path: Path, separator: str, n_columns: int) -> None:
    """Refuse lines with too few cells, which pandas would fill up with missing values."""
    with opened(path) as stream:
        reader = csv.reader(stream, delimiter=separator)
        for row in reader:
            if 0 < len(row) < n_columns and not (len(row) == 1 and not row[0].strip()):
                raise CommandError(
                    f"{path}, line {reader.line_num}: fewer cells ({len(row)}) than the first line has names "
                    f"({n_columns}); write one for each, an empty one for a missing value"
                )


def _header(path: Path, separator: str) -> list[str]:
    """Read the column names of a CSV file, and check that they are names, each of them once."""
    try:
        with opened(path) as stream:
            names = [
                name.strip()
                for name in next(csv.reader(stream, delimiter=separator, skipinitialspace=True), [])
            ]
    except UnicodeDecodeError as error:
        raise CommandError(
            f"{path} is not text in UTF-8 ({error.reason} at byte {error.start}); save it as UTF-8"
        ) from None
    except _BAD_ARCHIVE as error:
        raise _damaged_archive(path, error) from None
    except csv.Error as error:
        raise CommandError(f"{path} is no CSV file ({error}); save it as one") from None
    if not any(names):
        raise CommandError(f"{path} is empty; the first line must hold the names of the columns")
    if len(names) == 1 and ";" in names[0]:
        raise CommandError(f"{path} is separated by semicolons; save it with commas (.csv) or tabs (.tsv)")
    if not all(names):
        place = names.index("") + 1
        raise CommandError(f"{path}: column {place} has no name; give it one in the first line")
    _refuse_repeated(path, names)
    if all(_is_number(name) for name in names):
        raise CommandError(
            f"{path}: the first line holds numbers ({listed(names)}); it must name the columns"
        )
    return names


def _refuse_repeated(path: Path, names: Sequence[str]) -> None:
    """Refuse two columns of one name: it would be unclear which of them is meant."""
    repeated = sorted(name for name, count in Counter(names).items() if count > 1)
    if repeated:
        raise CommandError(
            f"{path} has several columns named {listed([repr(name) for name in repeated])}; rename them"
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
            write_csv(frame, draft, _SEPARATORS[suffix])
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


def _damaged_archive(path: Path, error: Exception) -> CommandError:
    return CommandError(f"{path} is damaged ({_first_line(error)}); compress it again")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__


def read_links(
    path: str | Path | None,
    samples: Samples,
    *,
    certainty: float | None = None,
    by_row: bool = False,
    columns: Columns | None = None,
) -> Constraints:
    """Links among the rows of a data file, by id if it has ids; the rest is as in ``read_link_list``."""
    from linkwise.constraints import Constraints

    if path is None:
        return Constraints(len(samples))
    places = None if by_row else samples.places
    links = read_link_list(path, len(samples), places=places, certainty=certainty, columns=columns)
    built = build_links(links, len(samples), samples)
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
        raise CommandError(f"{path} has no links; leave --links out to do without")
    return links


def build_links(links: LinkList, n_samples: int, samples: Samples | None = None) -> Constraints:
    """Put the lines together: soft evidence adds up, hard contradictions are refused with their proof."""
    from linkwise.constraints import Constraints
    from linkwise.exceptions import InfeasibleConstraints

    try:
        return Constraints._from_list(links, n_samples)
    except InfeasibleConstraints as error:
        raise CommandError(_witness(error, samples), INFEASIBLE) from None


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


def _witness(error: Any, samples: Samples | None, what: str = "links") -> str:
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
        f"--certainty{more}"
    )
