"""``linkwise predict`` on many Parquet files: one file of clusters for each."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from linkwise._pages import Page, TextTable
from linkwise.cli.output import REPORT, Output, check_folder, write_text, writing_results
from linkwise.cli.parts.files import Parts, Piece, find_parts, read_piece
from linkwise.cli.parts.fit import batches, write_part
from linkwise.cli.parts.scheduler import Progress, check_scheduler, connected
from linkwise.cli.samples import Preparation


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
    out.say(f"{done} rows in {len(parts.paths)} files written to {output / 'labels'}")
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
