"""Tables as names and rows of text: CSV, Parquet and Excel files, and data frames of any library."""

from __future__ import annotations

import csv
import gzip
import os
import re
import zlib
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any, TextIO

_PARQUET = (".parquet", ".pq")

PathLike = str | os.PathLike[str]


def file_table(path: PathLike) -> Any:
    """The columns of a Parquet file or of the first sheet of a workbook; None for a file of text."""
    suffix = _suffix(path)
    if suffix in _PARQUET:
        return _parquet(path)
    return _excel(path) if suffix == ".xlsx" else None


def frame_table(name: object, frame: Any) -> tuple[list[str], list[list[Any]]]:
    """Names and columns of a frame of pandas, polars or pyarrow, or of a mapping; ``name`` for messages."""
    given = _frame_columns(name, frame)
    return [str(title) for title, _ in given], [_as_list(column) for _, column in given]


def text_lines(path: PathLike) -> Generator[tuple[str, list[str]], None, None]:
    """Separator and column names of a text file, also ``.gz``, then place and cells of each line."""
    line = 1
    try:
        with opened(path) as stream:
            separator = _separator(stream)
            reader = csv.reader(stream, delimiter=separator, strict=True)
            titles = next(reader, [])
            yield separator, titles
            line = reader.line_num + 1
            for row in reader:
                place, line = f"line {line}", reader.line_num + 1
                if not any(cell.strip() for cell in row):
                    continue
                if len(row) != len(titles):
                    amount = "more" if len(row) > len(titles) else "fewer"
                    raise ValueError(
                        f"{path}, {place}: {amount} cells ({len(row)}) than the first line has names "
                        f"({', '.join(title.strip().lower() for title in titles)}); write one for each, "
                        "empty if not known"
                    )
                yield place, row
    except UnicodeDecodeError as error:
        raise _encoding_error(path, error) from None
    except csv.Error as error:
        raise ValueError(f"{path}, line {line} is no CSV: {error}; correct the line") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(f"{path} is damaged ({error}); copy or pack it again") from None


def _frame_columns(name: object, frame: Any) -> list[tuple[Any, Any]]:
    """Names and columns of a frame."""
    titles = getattr(frame, "column_names", None)  # of pyarrow, whose columns are the arrays
    if titles is None:
        titles = frame.keys() if isinstance(frame, Mapping) else getattr(frame, "columns", None)
    if titles is None:
        raise TypeError(
            f"{name} is a {type(frame).__name__}, which has no named columns; pass a DataFrame, or a dict of "
            "lists"
        )
    titles = list(titles)
    if hasattr(frame, "iloc"):  # of pandas, where a repeated name gives several columns
        return [(title, frame.iloc[:, place]) for place, title in enumerate(titles)]
    return [(title, frame[title]) for title in titles]


def _as_list(column: Any) -> list[Any]:
    for method in ("to_pylist", "to_list", "tolist"):
        if hasattr(column, method):
            return list(getattr(column, method)())
    return list(column)


def column_names(path: PathLike) -> list[str]:
    """Names in the first line, in lower case; enough to tell which kind of file it is."""
    if _suffix(path) in (*_PARQUET, ".xlsx"):
        return []
    with opened(path) as stream:
        try:
            separator = _separator(stream)
            return [name.strip().lower() for name in next(csv.reader(stream, delimiter=separator), [])]
        except (UnicodeDecodeError, csv.Error, EOFError, zlib.error, gzip.BadGzipFile):
            return []  # reading the file says what is wrong with it


def _suffix(path: PathLike) -> str:
    return Path(Path(path).name.lower().removesuffix(".gz")).suffix


def _separator(stream: TextIO) -> str:
    """Comma, semicolon or tab: whichever divides the first line into most names."""
    first = stream.readline()
    stream.seek(0)
    return max(",;\t", key=lambda mark: len(next(csv.reader([first], delimiter=mark), [])))


def opened(path: PathLike) -> TextIO:
    """Open a text file, packed if its name ends in ``.gz``."""
    if Path(path).suffix.lower() == ".gz":
        return gzip.open(path, "rt", newline="", encoding="utf-8-sig")
    return open(path, newline="", encoding="utf-8-sig")


def _encoding_error(path: PathLike, error: UnicodeDecodeError) -> ValueError:
    """Say in which line text is not UTF-8, and what it seems to be."""
    unpacked: Any = gzip.open if Path(path).suffix.lower() == ".gz" else open
    with unpacked(path, "rb") as stream:
        content: bytes = stream.read()
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return ValueError(
            f"{path} is not text in UTF-8 but in UTF-16 (Excel's Unicode text); save it as CSV in UTF-8"
        )
    try:
        content.decode("utf-8-sig")
    except UnicodeDecodeError as whole:
        error = whole
    line = content.count(b"\n", 0, error.start) + 1
    guess = content[error.start : error.start + 1].decode("latin-1")
    seems = f" (in Latin-1 it would be {guess!r})" if guess.isprintable() else ""
    return ValueError(
        f"{path}, line {line} is not text in UTF-8: byte {error.start} is "
        f"0x{content[error.start]:02x}{seems}; save it as CSV in UTF-8"
    )


def _parquet(path: PathLike) -> dict[str, list[Any]]:
    """Columns of a Parquet file; whole numbers stay whole, also where some are missing."""
    with open(path, "rb"):  # a missing file is named by the system's own error
        pass
    try:
        import pyarrow  # type: ignore[import-untyped]
        import pyarrow.parquet  # type: ignore[import-untyped]
    except ImportError:
        raise ValueError(f"{path}: reading Parquet needs pyarrow; pip install pyarrow") from None
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            table = file.read()
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ValueError(f"{path} is no Parquet file that can be read ({reason}); write it again") from None
    titles = list(table.column_names)
    repeated = sorted({title for title in titles if titles.count(title) > 1})
    if repeated:
        raise ValueError(
            f"{path} has several columns named {', '.join(map(repr, repeated))}; keep one of each"
        )
    # pandas writes row labels that have no name under this one; they say nothing about links.
    return {
        title: table[title].to_pylist()
        for title in titles
        if not re.fullmatch(r"__index_level_[0-9]+__", title)
    }


def _excel(path: PathLike) -> Any:
    """The first sheet of a workbook, its cells as they are."""
    with open(path, "rb"):
        pass
    try:
        import pandas

        return pandas.read_excel(path, dtype=object, keep_default_na=False, na_values=[""])
    except ImportError:
        raise ValueError(
            f"{path}: reading .xlsx needs pandas and openpyxl; pip install pandas openpyxl, or save it as CSV"
        ) from None
    except Exception as error:  # zipfile, openpyxl and pandas each have their own
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ValueError(
            f"{path} is no workbook that can be read ({reason}); save it again, or as CSV"
        ) from None


def cell_text(value: Any) -> str:
    """A cell of a frame as the text it would be in a CSV file; whole floats lose their ``.0``."""
    if isinstance(value, str):
        return value
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
    except (TypeError, ValueError):  # pandas.NA refuses to be a truth value
        return True
