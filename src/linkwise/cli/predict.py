"""``linkwise predict``: clusters of new rows by a fitted model."""

from __future__ import annotations

import sys
from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
import typer
from numpy.typing import NDArray

from linkwise._arrays import Ints
from linkwise._pages import Page, TextTable
from linkwise._validation import counted
from linkwise.cli import options
from linkwise.cli.errors import CommandError
from linkwise.cli.output import (
    REPORT,
    Output,
    check_folder,
    refuse_input,
    refuse_result,
    write_text,
    writing_results,
)
from linkwise.cli.parts import (
    Parts,
    Piece,
    Progress,
    check_scheduler,
    connected,
    find_parts,
    is_parts,
    read_piece,
)
from linkwise.cli.parts.labels import write_labels
from linkwise.cli.samples import (
    Preparation,
    Samples,
    cluster_columns,
    load_prepared_model,
    output_frame,
    read_samples,
)
from linkwise.cli.tables import write_csv, write_frame

if TYPE_CHECKING:
    import pandas


def predict(
    model_folder: Annotated[
        Path,
        typer.Argument(metavar="MODEL", help="Folder that `linkwise fit -o` or `linkwise classes -o` wrote."),
    ],
    data: options.DataArgument,
    id_column: options.IdOption = None,
    impute: Annotated[
        bool, typer.Option("--impute", help="Replace missing values by the medians of the training rows.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="CSV, TSV or Parquet file, standard output by default; for many files a folder.",
        ),
    ] = None,
    scheduler: options.SchedulerOption = None,
    safe_csv: options.SafeCsvOption = False,
    as_json: options.JsonOption = False,
) -> None:
    """Predict the clusters of new rows with a fitted model; no links are needed.

    The file needs the columns the model was fitted to; others are ignored.
    """
    out = Output(as_json)
    model, preparation = load_prepared_model(model_folder)
    if not hasattr(model, "predict"):
        raise CommandError(
            f"{model_folder}: {type(model).__name__} cannot predict new rows; fit another method"
        )
    if impute and preparation is not None and not preparation.medians:
        raise CommandError(
            f"{model_folder} has no medians, because it was fitted to many files; fill in missing values"
        )
    preparation = preparation or _bare_preparation(model, model_folder)
    if is_parts(data) or scheduler is not None:
        if impute:
            raise CommandError("--impute is for one file in memory; leave it out, or pass one file")
        predict_parts(
            out, data, model, preparation, options.needed_folder(output),
            id_column=id_column, scheduler=scheduler,
        )  # fmt: skip
        return
    if output is not None:
        refuse_input(output, data)
        refuse_result(output)
    samples = read_samples(
        data, id_column=id_column, features=preparation.columns, impute=impute, medians=preparation.medians
    )
    for note in samples.notes:
        out.warn(note)
    frame, sizes = _predictions(model, preparation, samples, out)
    if output is not None:
        write_frame(output, frame)
        counts = ", ".join(f"{name}: {count}" for name, count in sizes.items())
        out.say(f"{len(frame)} rows written to {output} ({counts})")
    elif not as_json:
        write_csv(frame, sys.stdout)
    record: dict[str, Any] = {"n_rows": len(frame), "sizes": sizes, "file": output}
    if output is None:
        record["rows"] = frame.to_dict("records")
    out.finish(record)


def _bare_preparation(model: Any, folder: Path) -> Preparation:
    """Use the columns by name, unscaled, for models that were saved in Python."""
    if not hasattr(model, "feature_names_in_"):
        raise CommandError(
            f"{folder} does not say which columns it needs; fit it to a DataFrame, or with `linkwise fit`"
        )
    names = [str(name) for name in model.feature_names_in_]
    return Preparation.bare(names, getattr(model, "cluster_names_", None), model)


def _predictions(
    model: Any, preparation: Preparation, samples: Samples, out: Output
) -> tuple[pandas.DataFrame, dict[str, int]]:
    """Make the table to be written, and count the rows of every cluster."""
    X: Any = preparation.apply(samples.features)
    if not hasattr(model, "feature_names_in_"):  # fitted to many files, or by the workbench
        X = X.to_numpy()
    labels = np.asarray(model.predict(X))
    clusters = preparation.clusters
    names = None if clusters == [str(k) for k in range(len(clusters))] else clusters
    prob = model.predict_proba(X) if hasattr(model, "predict_proba") else None
    results = cluster_columns(labels, names, prob)
    found = results["cluster" if names is None else "name"].tolist()
    sizes = {str(name): count for name, count in sorted(Counter(found).items())}
    return output_frame(samples, results, note=out.warn), sizes


def predict_parts(
    out: Output,
    data: Path,
    model: Any,
    preparation: Preparation,
    output: Path,
    *,
    id_column: str | None,
    scheduler: str | None,
) -> None:
    """Predict the clusters of the rows of many files, and write a file for each of them."""
    check_scheduler(scheduler)
    parts = find_parts(data, id_column=id_column, features=preparation.columns)
    check_folder(output, "predict", ["labels", REPORT])
    progress, n_clusters = Progress(parts.n_rows), len(preparation.clusters)
    with connected(scheduler), writing_results(output, "predict") as draft:
        label = partial(_predicted, parts, model, preparation)
        sizes = write_labels(draft / "labels", parts, label, n_clusters, progress)
        names = [[name, str(size)] for name, size in zip(preparation.clusters, sizes.tolist(), strict=True)]
        table = TextTable("Clusters", ["cluster", "rows"], names, 1)
        page = Page(f"Clusters of {data}")
        page.table(table)
        write_text(draft / REPORT, page.html())
    out.table(table)
    out.say(f"{parts.n_rows} rows in {counted(len(parts.paths), 'file')} written to {output / 'labels'}")
    out.finish(
        {"n_rows": parts.n_rows, "n_files": len(parts.paths), "sizes": sizes, "folder": output / "labels"}
    )


def _predicted(
    parts: Parts, model: Any, preparation: Preparation, numbers: list[int]
) -> tuple[Ints, NDArray[np.floating] | None]:
    """Labels, and probabilities if the model has them, of the rows of some pieces."""
    import dask

    if not numbers:
        nothing = np.empty((0, len(preparation.clusters)), dtype=parts.dtype)
        return np.empty(0, dtype=np.int64), nothing if hasattr(model, "predict_proba") else None
    shared = dask.delayed((model, parts.columns, parts.dtype, preparation), traverse=False, pure=True)
    found = dask.compute(*(dask.delayed(_predict_piece)(shared, parts.pieces[number]) for number in numbers))
    for number, result in zip(numbers, found, strict=True):
        if isinstance(result, _Bad):
            row = sum(piece.n_rows for piece in parts.pieces[:number]) + result.row
            what = "is missing" if np.isnan(result.value) else "is infinite"
            raise ValueError(f"{parts.place(row)}: {parts.columns[result.column]!r} {what}; fill it in")
    labels, prob = zip(*found, strict=True)
    return np.concatenate(labels), None if prob[0] is None else np.concatenate(prob)


class _Bad(NamedTuple):
    """A value of a piece that is no number."""

    row: int
    column: int
    value: float


def _predict_piece(shared: tuple[Any, Any, Any, Preparation], piece: Piece) -> tuple[Any, Any] | _Bad:
    """Labels, and probabilities if the model has them, of one piece."""
    import pandas

    model, columns, dtype, preparation = shared
    rows = read_piece(piece, columns, dtype, preparation)
    bad = np.argwhere(~np.isfinite(rows))
    if len(bad):
        row, column = bad[0].tolist()
        return _Bad(row, column, float(rows[row, column]))
    named = hasattr(model, "feature_names_in_")
    X: Any = pandas.DataFrame(rows, columns=list(columns)) if named else rows
    prob = np.asarray(model.predict_proba(X)) if hasattr(model, "predict_proba") else None
    return np.asarray(model.predict(X), dtype=np.int64), prob
