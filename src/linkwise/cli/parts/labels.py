"""Clusters of the rows of many files: a Parquet file of labels for each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise._arrays import Ints
from linkwise.cli.parts import Parts, Progress, read_columns, schema_of
from linkwise.cli.samples import free_name

#: From the numbers of some pieces to labels (n,) and probabilities (n, K), or None, of their rows.
Label = Callable[[list[int]], tuple[Ints, NDArray[np.floating] | None]]

# Rows whose labels are in memory at once, unless a file has more.
_ROWS_AT_ONCE = 4_000_000


def write_labels(folder: Path, parts: Parts, label: Label, n_clusters: int, progress: Progress) -> Ints:
    """Write clusters and probabilities for every file; return the number of rows of each cluster (K,)."""
    sizes = np.zeros(n_clusters, dtype=np.int64)
    done = 0
    for batch in _batches(parts):
        labels, prob = label([number for file in batch for number in parts.pieces_of(parts.paths[file])])
        start = 0
        for file in batch:
            stop = start + parts.n_rows_of(parts.paths[file])
            some = None if prob is None else prob[start:stop]
            _write(folder, parts, file, done + start, labels[start:stop], some)
            start = stop
        sizes += np.bincount(labels, minlength=n_clusters)
        done += len(labels)
        progress.say(f"labels of {done} of {parts.n_rows} rows written")
    progress.end()
    return sizes


def _batches(parts: Parts) -> Iterator[list[int]]:
    """Numbers of files whose labels are computed together."""
    batch: list[int] = []
    n_rows = 0
    for file, path in enumerate(parts.paths):
        size = parts.n_rows_of(path)
        if batch and n_rows + size > _ROWS_AT_ONCE:
            yield batch
            batch, n_rows = [], 0
        batch.append(file)
        n_rows += size
    yield batch


def _write(
    folder: Path, parts: Parts, file: int, first_row: int, labels: Ints, prob: NDArray[np.floating] | None
) -> None:
    """Write the results of one file: ids or row numbers of all files together, clusters, probabilities."""
    import pyarrow  # type: ignore[import-untyped]
    import pyarrow.parquet  # type: ignore[import-untyped]

    columns: dict[str, Any] = {}
    if parts.id_column is None:
        columns["row"] = pyarrow.array(np.arange(first_row, first_row + len(labels)))
    else:
        pieces = [parts.pieces[number] for number in parts.pieces_of(parts.paths[file])]
        ids = [read_columns(piece, [parts.id_column]).column(0) for piece in pieces]
        # A file without rows may not know of what type its ids are; the others keep their own.
        kind = schema_of((pieces or parts.pieces)[0].path).field(parts.id_column).type
        columns[parts.id_column] = pyarrow.chunked_array(
            [chunk for column in ids for chunk in column.chunks], type=kind
        )
    columns[free_name("cluster", columns)] = pyarrow.array(labels)
    if prob is not None:
        for k, column in enumerate(prob.T):
            columns[free_name(f"probability_{k}", columns)] = pyarrow.array(np.ascontiguousarray(column))
    path = folder / parts.names[file]
    path.parent.mkdir(parents=True, exist_ok=True)
    pyarrow.parquet.write_table(pyarrow.table(columns), path)
