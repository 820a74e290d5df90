"""The rows to be clustered: read and checked, and scaled in the same way when they are fitted and later."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from linkwise._arrays import Floats, Ints
from linkwise._files import reading
from linkwise._tables import MISSING, label_names, read_frame
from linkwise._validation import counted, listed
from linkwise.cli.errors import CommandError
from linkwise.cli.output import write_json
from linkwise.cli.tables import as_option, refuse_unknown
from linkwise.constraints.cells import cell_text
from linkwise.constraints.io import id_places

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True)
class Samples:
    """The rows of a data file.

    ``labels`` (n,) are strings, or integers if all are whole numbers, and None where a cell is empty; they
    only score. ``known`` are such labels that are fitted to. ``notes`` tell the user what was done to the
    data.
    """

    path: Path
    features: pandas.DataFrame
    ids: pandas.Series | None = None
    labels: NDArray[Any] | None = None
    known: NDArray[Any] | None = None
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.features)

    @property
    def row_names(self) -> NDArray[Any]:
        """The ids, or row numbers counted from 0."""
        return np.arange(len(self)) if self.ids is None else self.ids.to_numpy()

    @property
    def places(self) -> dict[str, int] | None:
        """Row number of each id, as links name it; None without ids."""
        return None if self.ids is None else id_places(self.ids.tolist())

    def name_of(self, row: int) -> str:
        """Id or number of a row, for messages and tables."""
        return str(row) if self.ids is None else str(self.ids.iloc[row])


def output_frame(
    samples: Samples,
    results: Mapping[str, Any],
    kept: Mapping[str, Any] | None = None,
    *,
    note: Callable[[str], None],
) -> pandas.DataFrame:
    """Make a table to be written: ids or row numbers, columns ``kept``, results under free names."""
    import pandas

    kept = dict(kept or {})
    taken = set(kept) if samples.ids is None else {str(samples.ids.name), *kept}
    columns: dict[str, Any] = {}

    def put(name: str, values: Any) -> None:
        chosen = free_name(name, taken)
        if chosen != name:
            note(f"{name!r} is a column of the data; the results are in {chosen!r}")
        taken.add(chosen)
        columns[chosen] = values

    if samples.ids is None:
        put("row", samples.row_names)
    else:
        columns[str(samples.ids.name)] = samples.row_names
    columns |= kept
    for name, values in results.items():
        put(name, values)
    return pandas.DataFrame(columns)


def cluster_columns(labels: Ints, names: Sequence[str] | None, prob: Any) -> dict[str, Any]:
    """Results as columns: the cluster (n,), its name if it has one, and probabilities (n, K) if known."""
    columns: dict[str, Any] = {"cluster": labels}
    if names is not None:
        columns["name"] = np.array(names, dtype=object)[labels]
    if prob is not None:
        columns |= {f"probability_{k}": column for k, column in enumerate(np.asarray(prob).T)}
    return columns


def free_name(name: str, taken: Container[str]) -> str:
    """Add ``_linkwise`` to the name of a result until no other column has it."""
    while name in taken:
        name += "_linkwise"
    return name


def read_samples(
    path: str | Path,
    *,
    id_column: str | None = None,
    label_column: str | None = None,
    known_column: str | None = None,
    features: Sequence[str] = (),
    ignore: Sequence[str] = (),
    impute: bool = False,
    medians: Sequence[float] = (),
) -> Samples:
    """Read rows by ``features``, or all other columns; ``impute`` by ``medians`` or those of the file."""
    path = Path(path)
    roles = {"--id": id_column, "--label": label_column, "--labels-column": known_column}
    special = [name for name in roles.values() if name is not None]
    frame = read_frame(path, [*special])
    refuse_unknown(path, [*special, *features, *ignore], frame.columns)
    _refuse_two_roles(roles)
    left_out = {*special, *ignore}
    chosen = list(dict.fromkeys(features)) or [name for name in frame.columns if name not in left_out]
    if not chosen:
        raise CommandError(
            f"{path} has no column left to cluster by (it has {listed(list(frame.columns))}); pass --features"
        )
    ids = None if id_column is None else checked_ids(path, frame[id_column])
    table = _numbers(path, frame[chosen], chosen=bool(features))
    notes = [
        f"column {name!r} only counts the rows; if it is an id, pass --id {name}"
        for name in table.columns[(np.diff(table.to_numpy(), axis=0) == 1.0).all(axis=0)]
        if len(table) > 2 and not features
    ]
    table = _without_missing(path, table, ids, impute, medians, notes)
    labels = None
    if label_column is not None:
        _refuse_rounded(path, frame[label_column])
        labels = label_names(frame[label_column])
    known = None if known_column is None else _known_labels(path, frame[known_column], notes)
    return Samples(path, table, ids, labels, known, tuple(notes))


def _refuse_two_roles(roles: Mapping[str, str | None]) -> None:
    """Refuse a column that two options name."""
    named: dict[str, str] = {}
    for option, name in roles.items():
        if name is not None and named.setdefault(name, option) != option:
            reason = (
                "a column holds ids or classes, not both"
                if named[name] == "--id"
                else "what is fitted to cannot score the fit: leave --label out, or name another column"
            )
            raise CommandError(f"{named[name]} and {option} both name {name!r}; {reason}")


def _known_labels(path: Path, column: pandas.Series, notes: list[str]) -> NDArray[Any]:
    """Labels to fit to; marks such as NA, which would become a class, are unknown, and a note says so."""
    _refuse_rounded(path, column)
    texts = column.map(cell_text).str.strip()
    unknown = texts.isin(_UNKNOWN_LABELS)
    known = label_names(column.mask(unknown))
    if all(name is None for name in known):
        raise CommandError(f"{path}: column {column.name!r} has no label; fill in some cells")
    marks = Counter(texts[unknown & column.notna() & (texts != "")])
    if marks:
        told = ", ".join(f"{text!r} in {count} rows" for text, count in marks.items())
        notes.append(f"column {column.name!r}: {told} means unknown")
    return known


def checked_ids(path: Path, ids: pandas.Series) -> pandas.Series:
    """Give the ids back as they are, once they are known to be complete, different and not rounded."""
    _refuse_rounded(path, ids)
    names = [cell_text(name) for name in ids.tolist()]
    empty = [row for row, name in enumerate(names) if not name.strip()]
    if empty:
        raise CommandError(
            f"{path}: the id in column {ids.name!r} is empty in row {listed(empty)} (counted from 0); "
            "give every row an id"
        )
    counts = Counter(names)
    repeated = [name for name, count in counts.items() if count > 1]
    if repeated:
        rows = [row for row, name in enumerate(names) if name == repeated[0]]
        raise CommandError(
            f"{path}: ids must differ, but column {ids.name!r} has {listed(repeated)} more than once "
            f"({repeated[0]} in rows {listed(rows)}, counted from 0); give every row an id of its own"
        )
    return ids


def _refuse_rounded(path: Path, column: pandas.Series) -> None:
    """Refuse ids and classes that are floats beyond 2**53, where neighbours are rounded to one number."""
    if column.dtype.kind != "f":
        return
    large = np.flatnonzero(np.abs(column.to_numpy(dtype=np.float64, na_value=np.nan)) >= 2**53)
    if large.size:
        row = int(large[0])
        raise CommandError(
            f"{path}: {column.name!r} is {float(column.iloc[row])} in row {row}, a float beyond "
            "2**53, where neighbouring whole numbers are rounded to one; write the column as integers or text"
        )


def _numbers(path: Path, table: pandas.DataFrame, *, chosen: bool) -> pandas.DataFrame:
    """Make all columns float64; an error names the first entry that is no number."""
    import pandas

    if all(isinstance(dtype, np.dtype) and dtype.kind in "iuf" for dtype in table.dtypes):
        return table.astype(np.float64)  # of thousands of columns, one by one would take most of the time
    columns = {}
    for name in table.columns:
        column = _without_blanks(table[name])
        numbers = pandas.to_numeric(column, errors="coerce")
        bad = np.flatnonzero((numbers.isna() & column.notna()).to_numpy())
        if bad.size or pandas.api.types.is_datetime64_any_dtype(column):
            row = int(bad[0]) if bad.size else 0
            fix = (
                "correct it"
                if chosen or 0 < bad.size < 0.5 * len(column)
                else "name the column with --label or --id, or leave it out with --ignore "
                f"{as_option([name])!r}"
            )
            raise CommandError(
                f"{path}: {name!r} is {str(column.iloc[row])!r} in row {row}, which is no number; {fix}"
            )
        columns[name] = numbers.to_numpy(dtype=np.float64, na_value=np.nan)
    return pandas.DataFrame(columns)


def _without_blanks(column: pandas.Series) -> pandas.Series:
    """Strip blanks around cells of text, and mark those that mean a missing number."""
    from pandas.api.types import is_object_dtype, is_string_dtype

    if not (is_object_dtype(column) or is_string_dtype(column)):
        return column
    column = column.map(lambda value: value.strip() if isinstance(value, str) else value)
    return column.mask(column.isin(MISSING))


def _without_missing(
    path: Path,
    table: pandas.DataFrame,
    ids: pandas.Series | None,
    impute: bool,
    given_medians: Sequence[float],
    notes: list[str],
) -> pandas.DataFrame:
    import pandas

    values = table.to_numpy()
    infinite = np.isinf(values)
    if infinite.any():
        row, column = np.argwhere(infinite)[0].tolist()
        raise CommandError(
            f"{path}: {table.columns[column]!r} is infinite in row {_named(row, ids)}; correct it"
        )
    missing = np.isnan(values)
    if not missing.any():
        return table
    rows = np.flatnonzero(missing.any(axis=1)).tolist()
    where = [str(table.columns[column]) for column in np.flatnonzero(missing.any(axis=0))]
    if not impute:
        count = int(missing.sum())
        raise CommandError(
            f"{path}: {counted(count, 'value')} {'is' if count == 1 else 'are'} missing, in "
            f"row {listed([_named(row, ids) for row in rows])} (counted from 0), column {listed(where)}; "
            f"fill {'it' if count == 1 else 'them'} in, leave the row out, or pass --impute"
        )
    empty = [str(name) for name in table.columns[missing.all(axis=0)]]
    if empty and not given_medians:
        raise CommandError(f"{path}: column {listed(empty)} has no value at all; leave it out with --ignore")
    medians = pandas.Series(given_medians, table.columns) if given_medians else table.median()
    notes.append(
        f"{int(missing.sum())} missing values in {len(rows)} rows were replaced by medians of their columns: "
        + listed([f"{name} {medians[name]:g}" for name in where], 12)
    )
    return table.fillna(medians)


def _named(row: int, ids: pandas.Series | None) -> str:
    return str(row) if ids is None else f"{row} (id {ids.iloc[row]})"


_FILE = "columns.json"
# Marks in a column of labels that name no class.
_UNKNOWN_LABELS = frozenset({*MISSING, "-1", "-1.0", "?"})


@dataclass(frozen=True)
class Preparation:
    """Columns of the estimator, (x - centre) / scale, medians for --impute, and names of clusters."""

    columns: list[str]
    centres: list[float]
    scales: list[float]
    medians: list[float]
    clusters: list[str]

    @classmethod
    def of(cls, samples: Samples, *, standardize: bool, clusters: list[str]) -> Preparation:
        """Learn from the training rows; constant columns are only centred."""
        values = samples.features.to_numpy()
        centres, scales = np.zeros(values.shape[1]), np.ones(values.shape[1])
        if standardize:
            centres, spread = values.mean(axis=0), values.std(axis=0)
            scales = safe_scales(spread, np.abs(values).max(axis=0))
        medians = np.median(values, axis=0)
        names = [str(name) for name in samples.features.columns]
        return cls(names, centres.tolist(), scales.tolist(), medians.tolist(), clusters)

    @classmethod
    def bare(cls, columns: Sequence[str], clusters: Sequence[Any] | None, model: Any) -> Preparation:
        """Take the columns as they are, for models that were saved in Python."""
        flat, names = [0.0] * len(columns), range(_n_clusters(model)) if clusters is None else clusters
        return cls(list(columns), flat, [1.0] * len(columns), [], [str(name) for name in names])

    def scaled(self, values: Any) -> Any:
        """Scale rows (n, d), or a frame of them, whose columns are those of the estimator."""
        return (values - np.array(self.centres)) / np.array(self.scales)

    def apply(self, features: pandas.DataFrame) -> pandas.DataFrame:
        """Scale the columns, in the order of the estimator."""
        return self.scaled(features[self.columns])


def safe_scales(spread: Floats, largest: Floats) -> Floats:
    """The spread (d,) of columns; 1 where it is rounding, some 1e-16 of the largest value (d,)."""
    return np.where(spread <= 1e-12 * np.maximum(largest, 1e-300), 1.0, spread)


def save_prepared_model(path: str | Path, model: Any, preparation: Preparation) -> Path:
    """Write a new model folder: what ``linkwise.persistence`` writes, and the columns beside it."""
    from linkwise.persistence import save_model

    folder = save_model(model, path)
    write_json(folder / _FILE, asdict(preparation))
    return folder


def load_prepared_model(path: str | Path) -> tuple[Any, Preparation | None]:
    """Read a model folder; no preparation where the model was saved by ``save_model`` alone."""
    from linkwise.persistence import load_model

    # The path is that of the model or of the results it is part of.
    with reading(path, Path(path).parent):
        folder = Path(path)
        if not folder.exists():
            raise CommandError(
                f"{folder}: no such folder; pass the model folder that `linkwise fit -o` wrote"
            )
        if not (folder / "model.json").exists() and (folder / "model" / "model.json").exists():
            folder = folder / "model"
        if not (folder / "model.json").exists():
            raise CommandError(f"{folder} holds no model.json; pass the folder that `linkwise fit -o` wrote")
        model = load_model(folder)
        try:
            content = json.loads((folder / _FILE).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return model, None
        except (ValueError, RecursionError) as error:
            raise CommandError(f"{folder / _FILE} is damaged: {error}; fit the model again") from None
        return model, _checked_preparation(content, model, folder / _FILE)


def _checked_preparation(content: Any, model: Any, file: Path) -> Preparation:
    """Check that what was read fits the columns and clusters of the model."""
    names = [field.name for field in fields(Preparation)]
    if not isinstance(content, dict) or set(content) != set(names):
        raise CommandError(f"{file} was not written by this version of linkwise; fit the model again")
    n_columns, n_clusters = model.n_features_in_, _n_clusters(model)
    sizes = {"clusters": n_clusters, **dict.fromkeys(names[:-1], n_columns)}
    for name in names:
        values, kind = content[name], str if name in ("columns", "clusters") else float
        if name == "medians" and values == []:
            continue  # of a fit to many files
        if not isinstance(values, list) or len(values) != sizes[name]:
            raise CommandError(f"{file}: {name} must be a list of {sizes[name]}; fit the model again")
        for place, value in enumerate(values):
            number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
            if not (isinstance(value, str) if kind is str else number):
                wanted = "text" if kind is str else "a number"
                raise CommandError(f"{file}: {name}[{place}] must be {wanted}; fit the model again")
            if name == "scales" and not value > 0:
                raise CommandError(f"{file}: scales[{place}] must be above 0; fit the model again")
    return Preparation(**content)


def _n_clusters(model: Any) -> int:
    """The labels are 0 .. this - 1."""
    if hasattr(model, "selection_"):  # a LinkedClustering may have found the number
        return int(model.n_clusters_)
    return int(model._n_clusters if hasattr(model, "_n_clusters") else model.n_clusters)
