"""``linkwise predict``: clusters of new rows by a fitted model."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
import typer

from linkwise._pages import Page, TextTable
from linkwise._validation import counted
from linkwise.cli import options
from linkwise.cli.errors import CommandError
from linkwise.cli.output import REPORT, Output, check_folder, write_text, writing_results
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
from linkwise.cli.parts.fit import batches, write_part
from linkwise.cli.samples import Preparation, Samples, load_prepared_model, output_frame, read_samples
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
    labels = getattr(model, "labels_", np.zeros(1, dtype=int))
    clusters = [str(name) for name in getattr(model, "cluster_names_", range(int(max(labels)) + 1))]
    return Preparation(names, [0.0] * len(names), [1.0] * len(names), [], clusters)


def _predictions(
    model: Any, preparation: Preparation, samples: Samples, out: Output
) -> tuple[pandas.DataFrame, dict[str, int]]:
    """Make the table to be written, and count the rows of every cluster."""
    X = preparation.apply(samples.features)
    labels = np.asarray(model.predict(X))
    results: dict[str, Any] = {"cluster": labels}
    named = preparation.clusters != [str(k) for k in range(len(preparation.clusters))]
    if named:
        results["name"] = np.array(preparation.clusters, dtype=object)[labels]
    if hasattr(model, "predict_proba"):
        probabilities = np.asarray(model.predict_proba(X))
        results |= {f"probability_{k}": column for k, column in enumerate(probabilities.T)}
    found = results["name" if named else "cluster"].tolist()
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
    sizes = np.zeros(len(preparation.clusters), dtype=np.int64)
    progress, done = Progress(parts.n_rows), 0
    with connected(scheduler), writing_results(output, "predict") as draft:
        for batch in batches(parts):
            numbers = [number for file in batch for number in parts.pieces_of(parts.paths[file])]
            found = iter(_predicted(parts, numbers, model, preparation))
            for file in batch:
                mine = [next(found) for _ in parts.pieces_of(parts.paths[file])]
                labels = np.concatenate([np.empty(0, dtype=np.int64), *(one for one, _ in mine)])
                prob = None
                if mine and mine[0][1] is not None:
                    prob = np.concatenate([one for _, one in mine])
                write_part(draft / "labels", parts, file, done, labels, prob)
                sizes += np.bincount(labels, minlength=len(sizes))
                done += len(labels)
            progress.say(f"{done} of {parts.n_rows} rows")
        progress.end()
        names = [[name, str(size)] for name, size in zip(preparation.clusters, sizes.tolist(), strict=True)]
        table = TextTable("Clusters", ["cluster", "rows"], names, 1)
        page = Page(f"Clusters of {data}")
        page.table(table)
        write_text(draft / REPORT, page.html())
    out.table(table)
    out.say(f"{done} rows in {counted(len(parts.paths), 'file')} written to {output / 'labels'}")
    out.finish({"n_rows": done, "n_files": len(parts.paths), "sizes": sizes, "folder": output / "labels"})


def _predicted(
    parts: Parts, numbers: list[int], model: Any, preparation: Preparation
) -> list[tuple[Any, Any]]:
    """Labels and probabilities of some pieces."""
    import dask

    shared = dask.delayed((model, parts.columns, parts.dtype, preparation), traverse=False, pure=True)
    found = dask.compute(*(dask.delayed(_predict_piece)(shared, parts.pieces[number]) for number in numbers))
    for number, result in zip(numbers, found, strict=True):
        if isinstance(result, _Bad):
            row = sum(piece.n_rows for piece in parts.pieces[:number]) + result.row
            what = "is missing" if np.isnan(result.value) else "is infinite"
            raise ValueError(f"{parts.place(row)}: {parts.columns[result.column]!r} {what}; fill it in")
    return list(found)


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
