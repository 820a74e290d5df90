"""``linkwise fit`` and ``linkwise predict`` on many Parquet files, computed with Dask chunk by chunk."""

from __future__ import annotations

import glob
import hashlib
import logging
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from linkwise._tables import first_line, no_pyarrow
from linkwise._validation import listed
from linkwise.cli.errors import CommandError
from linkwise.cli.samples import Preparation
from linkwise.cli.tables import as_option, refuse_unknown

if TYPE_CHECKING:
    import pyarrow  # type: ignore[import-untyped]

#: Numbers in one chunk, unless a row group has more: 32 MB of float64.
_CHUNK_NUMBERS = 1 << 22
_SUFFIXES = (".parquet", ".pq")
# Seconds that a scheduler has to answer, and seconds between two lines of progress in a file.
_PATIENCE = 10
_BETWEEN_LINES = 2.0


def is_parts(data: str | Path) -> bool:
    """Tell whether the argument names many files: a pattern, or a folder."""
    return not os.path.isfile(data) and (os.path.isdir(data) or glob.has_magic(str(data)))


@dataclass(frozen=True)
class Piece:
    """Neighbouring row groups of a file, which become one chunk; workers may be in another folder."""

    path: Path
    groups: tuple[int, ...]
    n_rows: int


@dataclass(frozen=True)
class Parts:
    """Parquet files with the same columns, in the order of their names."""

    paths: tuple[Path, ...]
    names: tuple[str, ...]
    """Of the files to write for each: names of the files, with folders where they are in several."""
    columns: tuple[str, ...]
    """Columns to cluster by."""
    id_column: str | None
    dtype: np.dtype[np.floating]
    pieces: tuple[Piece, ...]

    @property
    def n_rows(self) -> int:
        """Number of rows of all files."""
        return sum(piece.n_rows for piece in self.pieces)

    @cached_property
    def _numbers(self) -> dict[Path, list[int]]:
        numbers: dict[Path, list[int]] = {path.absolute(): [] for path in self.paths}
        for number, piece in enumerate(self.pieces):
            numbers[piece.path].append(number)
        return numbers

    def pieces_of(self, path: Path) -> list[int]:
        """Numbers of the pieces of a file."""
        return self._numbers[path.absolute()]

    def n_rows_of(self, path: Path) -> int:
        """Number of rows of a file."""
        return sum(self.pieces[number].n_rows for number in self.pieces_of(path))

    def place(self, row: int) -> str:
        """Say where a row is: ``data/b.parquet: row 30``."""
        first = 0
        for path in self.paths:
            n_rows = self.n_rows_of(path)
            if row < first + n_rows:
                return f"{path}: row {row - first} (counted from 0)"
            first += n_rows
        raise IndexError(row)

    def fingerprint(self) -> str:
        """Tell these files, as they are now, from others."""
        about = [(str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in self.paths]
        return hashlib.sha256(repr((about, self.columns)).encode()).hexdigest()[:16]

    def array(self, preparation: Preparation | None) -> Any:
        """The rows as a Dask array, scaled; nothing is read yet."""
        import dask.array as da
        from dask.task_spec import Task

        # Rows of another scale have another name, also in another process with the same scheduler.
        scale = hashlib.sha256(repr(preparation).encode()).hexdigest()[:16]
        name = f"linkwise-parquet-{self.fingerprint()}-{scale}"
        layer = {
            (name, number, 0): Task(
                (name, number, 0), read_piece, piece, self.columns, self.dtype, preparation
            )
            for number, piece in enumerate(self.pieces)
        }
        sizes = tuple(piece.n_rows for piece in self.pieces)
        return da.Array(layer, name, (sizes, (len(self.columns),)), dtype=self.dtype)


def find_parts(
    data: str | Path,
    *,
    id_column: str | None = None,
    features: Sequence[str] = (),
    ignore: Sequence[str] = (),
) -> Parts:
    """Find the files of a pattern or in a folder, and compare their columns; no row is read."""
    pattern = os.path.join(glob.escape(str(data)), "*") if os.path.isdir(data) else str(data)
    found = sorted(path for path in glob.glob(pattern) if os.path.isfile(path))
    if os.path.isdir(data):
        found = [path for path in found if path.lower().endswith(_SUFFIXES)]
    if not found:
        raise CommandError(f"{data}: no Parquet file has such a name; check the path, and quote the pattern")
    for name in found:
        if not name.lower().endswith(_SUFFIXES):
            raise CommandError(f"{name}: many files must be Parquet files; convert it, or name it alone")
    try:
        import pyarrow.parquet  # type: ignore[import-untyped]  # noqa: F401
    except ImportError:
        raise no_pyarrow(found[0]) from None
    paths = tuple(Path(path) for path in found)
    schemas = {path: schema_of(path) for path in paths}
    # Columns of a file without rows may be of no type at all.
    filled = [path for path in paths if _n_rows(path)]
    if not filled:
        raise CommandError(f"{data}: all {len(paths)} files are empty; pass files with rows")
    columns = _columns(filled[0], schemas[filled[0]], id_column, features, ignore)
    pieces: list[Piece] = []
    single = True
    for path, schema in schemas.items():
        for name in [*columns, *([] if id_column is None else [id_column])]:
            if name not in schema.names:
                remedy = (
                    "leave out the file" if features else "leave it out with --ignore, or leave out the file"
                )
                raise CommandError(f"{path} has no column {name!r}, which {filled[0]} has; {remedy}")
        if path in filled:
            _refuse_ids(path, schema, id_column)
            _refuse_text(path, schema, columns, chosen=bool(features))
            single = single and all(str(schema.field(name).type) == "float" for name in columns)
        pieces += _pieces(path.absolute(), len(columns))
    return Parts(
        paths, _output_names(paths), tuple(columns), id_column,
        np.dtype(np.float32 if single else np.float64), tuple(pieces),
    )  # fmt: skip


def _n_rows(path: Path) -> int:
    import pyarrow.parquet

    return int(pyarrow.parquet.read_metadata(path).num_rows)


def schema_of(path: Path) -> Any:
    """Names and types of the columns of a file."""
    import pyarrow
    import pyarrow.parquet

    try:
        return pyarrow.parquet.read_schema(path)
    except (pyarrow.ArrowException, ValueError) as error:
        reason = first_line(error)
        raise CommandError(f"{path} is no Parquet file that can be read ({reason}); write it again") from None


def _columns(
    path: Path, schema: Any, id_column: str | None, features: Sequence[str], ignore: Sequence[str]
) -> list[str]:
    """The columns to cluster by."""
    special = [] if id_column is None else [id_column]
    refuse_unknown(path, [*special, *features, *ignore], schema.names)
    chosen = list(dict.fromkeys(features)) or [
        name for name in schema.names if name not in {*special, *ignore}
    ]
    if not chosen:
        raise CommandError(
            f"{path} has no column left to cluster by (it has {listed(schema.names)}); pass --features"
        )
    return chosen


def _refuse_ids(path: Path, schema: Any, id_column: str | None) -> None:
    """Refuse ids that are neither integers nor text."""
    import pyarrow

    if id_column is None:
        return
    kind = schema.field(id_column).type
    text = pyarrow.types.is_string(kind) or pyarrow.types.is_large_string(kind)
    if not (text or pyarrow.types.is_integer(kind)):
        raise CommandError(f"{path}: ids in {id_column!r} are {kind}; write them as integers or text")


def _refuse_text(path: Path, schema: Any, columns: Sequence[str], *, chosen: bool) -> None:
    """Refuse columns that hold no numbers."""
    import pyarrow

    for name in columns:
        kind = schema.field(name).type
        numbers = (pyarrow.types.is_integer, pyarrow.types.is_floating, pyarrow.types.is_boolean)
        if not any(check(kind) for check in numbers):
            out = f"name it with --id, or leave it out with --ignore {as_option([name])!r}"
            remedy = "write it as numbers" if chosen else out
            raise CommandError(f"{path}: column {name!r} is of type {kind}, not of numbers; {remedy}")


def _pieces(path: Path, n_columns: int) -> Iterator[Piece]:
    """Put small row groups together; empty ones are left out."""
    import pyarrow.parquet

    about = pyarrow.parquet.read_metadata(path)
    groups: list[int] = []
    n_rows = 0
    for number in range(about.num_row_groups):
        size = about.row_group(number).num_rows
        if groups and (n_rows + size) * n_columns > _CHUNK_NUMBERS:
            yield Piece(path, tuple(groups), n_rows)
            groups, n_rows = [], 0
        if size:
            groups.append(number)
            n_rows += size
    if groups:
        yield Piece(path, tuple(groups), n_rows)


def _output_names(paths: Sequence[Path]) -> tuple[str, ...]:
    """A name for the results of each file."""
    names = [path.name for path in paths]
    if len(set(names)) < len(names):
        common = os.path.commonpath([path.resolve().parent for path in paths])
        names = [path.resolve().relative_to(common).as_posix() for path in paths]
    short = [str(Path(name).with_suffix(".parquet")) for name in names]
    # a.pq beside a.parquet becomes a.pq.parquet.
    return tuple(
        f"{name}.parquet" if short.count(one) > 1 and not name.endswith(".parquet") else one
        for name, one in zip(names, short, strict=True)
    )


def read_columns(piece: Piece, columns: Sequence[str]) -> pyarrow.Table:
    """Columns of a piece as they are; an error names the file."""
    import pyarrow
    import pyarrow.parquet

    try:
        with pyarrow.parquet.ParquetFile(piece.path) as file:
            return file.read_row_groups(list(piece.groups), columns=list(columns), use_threads=False)
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise OSError(
            f"{piece.path} cannot be read ({first_line(error)}); check that all workers see it"
        ) from None


def read_piece(
    piece: Piece, columns: Sequence[str], dtype: np.dtype[np.floating], preparation: Preparation | None
) -> NDArray[np.floating]:
    """Rows (n, d) of a piece, scaled in float64; missing values are NaN."""
    table = read_columns(piece, columns)
    rows = np.empty((table.num_rows, len(columns)), dtype=dtype)
    for place, name in enumerate(columns):
        column = table.column(name).to_numpy().astype(np.float64, copy=False)
        if preparation is not None:
            column = (column - preparation.centres[place]) / preparation.scales[place]
        rows[:, place] = column
    return rows


def id_rows(parts: Parts, wanted: set[str]) -> dict[str, int]:
    """Row number of each wanted id; one that two rows have is refused. Ids of other rows are not compared."""
    import pyarrow
    import pyarrow.compute  # type: ignore[import-untyped]

    assert parts.id_column is not None
    places: dict[str, int] = {}
    values = pyarrow.array(sorted(wanted), type=pyarrow.large_string())
    first = 0
    for piece in parts.pieces:
        ids = read_columns(piece, [parts.id_column]).column(0).cast(pyarrow.large_string())
        if ids.null_count:
            row = first + int(np.flatnonzero(ids.is_null().to_numpy())[0])
            raise CommandError(f"{parts.place(row)} has no id in {parts.id_column!r}; give every row an id")
        rows = np.flatnonzero(pyarrow.compute.is_in(ids, value_set=values).to_numpy())
        for row, name in zip(rows.tolist(), ids.take(rows).to_pylist(), strict=True):
            if name in places:
                raise CommandError(
                    f"ids must differ, but {name!r} is the id of two rows ({parts.place(places[name])}, "
                    f"{parts.place(first + row)}); give every row an id of its own"
                )
            places[name] = first + row
        first += piece.n_rows
    return places


def check_scheduler(address: str | None) -> None:
    """Refuse an address that is none."""
    if address is not None and address != "local" and "://" not in address:
        raise CommandError(
            f"--scheduler {address} is no address; write local, or for example tcp://host:8786"
        )


@contextmanager
def connected(address: str | None) -> Iterator[Any]:
    """Yield a client of the scheduler, or None for threads of this process; close what was started."""
    try:
        import dask.array  # noqa: F401
    except ImportError as error:
        raise CommandError(f'many files need Dask ({error}); pip install "linkwise[dask]"') from None
    if address is None:
        yield None
        return
    from distributed import Client, LocalCluster

    if address == "local":
        with (
            LocalCluster(
                n_workers=os.cpu_count(),
                threads_per_worker=1,
                host="127.0.0.1",
                dashboard_address=None,
                silence_logs=logging.ERROR,
            ) as cluster,
            Client(cluster) as client,
        ):
            yield client
        return
    try:
        client = Client(address, timeout=_PATIENCE)
    except (OSError, ValueError) as error:
        raise CommandError(
            f"no scheduler answers at {address} ({first_line(error)}); start one with `dask scheduler`, or "
            "check the address"
        ) from None
    with client:
        yield client


class Progress:
    """Lines on standard error: one that changes on a terminal, else one every two seconds."""

    def __init__(self, n_rows: int) -> None:
        self.n_rows, self.iteration = n_rows, 0
        self._last = self._said = time.perf_counter()
        self._live = sys.stderr.isatty()

    def __call__(self, iteration: int, objective: float) -> None:
        """Tell about an iteration that has ended."""
        now = time.perf_counter()
        if iteration > 0:
            speed = self.n_rows / max(now - self._last, 1e-9)
            self.say(f"iteration {iteration}: objective {objective:.6f}, {speed:.3g} rows/s", now)
        self.iteration, self._last = iteration, now

    def say(self, line: str, now: float | None = None) -> None:
        """Print a line, unless the last one is too young."""
        if self._live:
            print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)
        elif now is None or now - self._said >= _BETWEEN_LINES or self.iteration == 0:
            print(line, file=sys.stderr, flush=True)
            self._said = time.perf_counter()

    def end(self) -> None:
        """Clear the line that changes."""
        if self._live:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
