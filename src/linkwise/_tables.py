"""The one reader of tables in files: CSV, TSV and Parquet, as they are written."""

from __future__ import annotations

import csv
import errno
import gzip
import os
import re
import warnings
import zlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from linkwise._validation import listed
from linkwise.constraints.cells import opened

if TYPE_CHECKING:
    import pandas

SEPARATORS = {".csv": ",", ".txt": ",", ".tsv": "\t"}
_PARQUET = (".parquet", ".pq")
# What is taken for a missing number; in columns of text only an empty cell is.
MISSING = ["", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "None"]
# What a .gz file that is cut off or overwritten raises.
_BAD_ARCHIVE = (EOFError, zlib.error, gzip.BadGzipFile)


def table_suffix(path: str | Path) -> str:
    """Give ``.csv``, ``.tsv`` or ``.parquet`` for a file name, or raise an error that lists them."""
    path = Path(path)
    suffix = Path(path.stem).suffix if path.suffix == ".gz" else path.suffix
    suffix = suffix.lower()
    if suffix in _PARQUET:
        return ".parquet"
    if suffix in SEPARATORS:
        return suffix
    raise ValueError(
        f"{path}: linkwise reads and writes .csv, .tsv and .parquet files, not {suffix or 'this'}; convert it"
    )


def _suffix_of_file(path: str | Path) -> str:
    """``table_suffix`` of a file to read; a name without a suffix is likelier a folder that is not there."""
    if not Path(path).suffix and not Path(path).exists():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    return table_suffix(path)


def read_frame(path: str | Path, text_columns: Sequence[str] = ()) -> pandas.DataFrame:
    """Read a table as it is; ``text_columns`` of a CSV file stay text, so that the id 007 stays 007."""
    path = Path(path)
    if path.is_dir():
        raise ValueError(f"{path} is a folder; pass a .csv or .parquet file")
    suffix = _suffix_of_file(path)
    frame = _read_parquet(path) if suffix == ".parquet" else _read_csv(path, suffix, text_columns)
    frame.columns = [str(name) for name in frame.columns]
    _refuse_repeated(path, list(frame.columns))
    if not len(frame):
        raise ValueError(f"{path} has column names but no rows; pass a file with rows")
    return frame


def column_names(path: str | Path) -> list[str]:
    """The names of the columns of a CSV file; none of a Parquet file, whose cells have types of their own."""
    if Path(path).is_dir():
        return []
    suffix = _suffix_of_file(path)
    if suffix == ".parquet":
        return []
    return _header(Path(path), SEPARATORS[suffix])


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
        raise ValueError(
            f"{path} is no Parquet file that can be read ({first_line(error)}); write it again"
        ) from None


def no_pyarrow(path: str | Path) -> ValueError:
    """The error for a Parquet file without pyarrow."""
    return ValueError(f'{path}: Parquet needs pyarrow; pip install "linkwise[parquet]"')


def _read_csv(path: Path, suffix: str, text_columns: Sequence[str]) -> pandas.DataFrame:
    import pandas

    separator = SEPARATORS[suffix]
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
        raise ValueError(
            f"{path}: the lines have more cells than the first line has names; name every column"
        ) from None
    except _BAD_ARCHIVE as error:
        raise _damaged_archive(path, error) from None
    except (pandas.errors.ParserError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} cannot be read as CSV ({first_line(error)}); correct it") from None
    for name in text_columns:
        # Blanks belong to ids, but a quotation mark behind them would become part of the text.
        bad = frame[name].str.match(r'\s+"', na=False) if name in names else None
        if bad is not None and bad.any():
            raise ValueError(
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
                raise ValueError(
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
        raise ValueError(
            f"{path} is not text in UTF-8 ({error.reason} at byte {error.start}); save it as UTF-8"
        ) from None
    except _BAD_ARCHIVE as error:
        raise _damaged_archive(path, error) from None
    except csv.Error as error:
        raise ValueError(f"{path} is no CSV file ({error}); save it as one") from None
    if not any(names):
        raise ValueError(f"{path} is empty; the first line must hold the names of the columns")
    if len(names) == 1 and ";" in names[0]:
        raise ValueError(f"{path} is separated by semicolons; save it with commas (.csv) or tabs (.tsv)")
    if not all(names):
        place = names.index("") + 1
        raise ValueError(f"{path}: column {place} has no name; give it one in the first line")
    _refuse_repeated(path, names)
    if all(_is_number(name) for name in names):
        raise ValueError(f"{path}: the first line holds numbers ({listed(names)}); it must name the columns")
    return names


def _refuse_repeated(path: Path, names: Sequence[str]) -> None:
    """Refuse two columns of one name: it would be unclear which of them is meant."""
    repeated = sorted(name for name, count in Counter(names).items() if count > 1)
    if repeated:
        raise ValueError(
            f"{path} has several columns named {listed([repr(name) for name in repeated])}; rename them"
        )


def _damaged_archive(path: Path, error: Exception) -> ValueError:
    return ValueError(f"{path} is damaged ({first_line(error)}); compress it again")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def label_names(column: pandas.Series) -> NDArray[Any]:
    """Strings, or integers if every label is written as one; None where there is none."""
    names = [
        None if missing else value for value, missing in zip(column.tolist(), column.isna(), strict=True)
    ]
    texts = [None if name is None else str(name).strip() for name in names]
    texts = [text or None for text in texts]
    known = [text for text in texts if text is not None]
    result = np.empty(len(texts), dtype=object)
    # pandas writes whole numbers as 1.0 where others are missing.
    if known and all(re.fullmatch(r"(0|-?[1-9][0-9]*)(\.0)?", text) for text in known):
        result[:] = [None if text is None else int(text.removesuffix(".0")) for text in texts]
    else:
        result[:] = texts
    return result


def first_line(error: Exception) -> str:
    """The first line of what an error says, or what it is if it says nothing."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
