"""What the estimators accept as data: arrays and frames of Dask, xarray, Zarr, folders of Parquet or Zarr.

All become a ``Table``: a Dask array whose chunks span all columns and have known numbers of rows. Nothing is
kept in memory: data that were not persisted by the user are read again in every pass.
"""

from __future__ import annotations

import glob
import os
import sys
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import dask
import dask.array as da
import numpy as np
from dask.highlevelgraph import HighLevelGraph
from numpy.typing import NDArray

from linkwise._arrays import Ints
from linkwise.constraints import Constraints


class Table(NamedTuple):
    """Data (n, d) of Dask in chunks of whole rows; ``names`` (d,) are those of the columns, or None."""

    array: Any
    names: NDArray[np.object_] | None

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return int(self.array.shape[0])

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return int(self.array.shape[1])

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type that the data are read as: float32 stays, all else becomes float64."""
        single = self.array.dtype == np.float32
        return np.dtype(np.float32 if single else np.float64)

    @property
    def chunk_starts(self) -> Ints:
        """First row of each chunk, and the number of rows at the end."""
        return np.concatenate([[0], np.cumsum(self.array.chunks[0])]).astype(np.int64)

    def place(self, row: int) -> str:
        """Say where a row is: ``row 130 (row 30 of chunk 1)``."""
        starts = self.chunk_starts
        chunk = int(np.searchsorted(starts, row, side="right")) - 1
        return f"row {row} (row {row - int(starts[chunk])} of chunk {chunk})"


def read_table(X: Any, constraints: Any, client: Any) -> tuple[Table, Any]:
    """Make a table of the data; links with ids are put into the order of its rows, computed by the client."""
    has_ids = isinstance(constraints, Constraints) and constraints.index is not None
    X = _opened(X)
    if has_ids and _is_frame(X):
        ids, X = _ids(X, constraints.index_name, client)
        constraints = constraints._for_rows(ids)
    elif has_ids:
        warnings.warn(
            f"the links have ids, but X, a {type(X).__name__}, has none: its rows are taken in the order of "
            "the links. Pass a Dask DataFrame with these ids or, if the order is right, "
            "constraints.with_index(None)",
            stacklevel=4,
        )
    array, names = lazy_array(X)
    array = known_sizes(array, client)
    if array.numblocks[1] > 1:
        array = array.rechunk({1: -1})
    return Table(_optimized(array), names), constraints


def _optimized(array: da.Array) -> da.Array:
    """The array with fewer tasks. What workers hold for it stays: Dask's own optimization forgets it."""
    distributed = sys.modules.get("distributed")  # without it nobody holds anything
    futures = () if distributed is None else (distributed.Future,)
    held = {key: value for key, value in array.dask.items() if isinstance(value, futures)}
    (array,) = dask.optimize(array)
    if not held:
        return array
    tasks = {key: node for key, node in array.dask.items() if key not in held}
    graph = HighLevelGraph({array.name: {**tasks, **held}}, {array.name: set()})
    return da.Array(graph, array.name, array.chunks, dtype=array.dtype)


def known_sizes(array: Any, client: Any) -> Any:
    """The array with known sizes of chunks; Dask's own function would change the array of the user."""
    if not any(np.isnan(size) for size in array.chunks[0]):
        return array
    first = array.to_delayed().reshape(array.numblocks[0], -1)[:, 0]
    sizes = dask.compute(*(dask.delayed(len)(block) for block in first), scheduler=client)
    array = array.copy()
    array._chunks = (tuple(map(int, sizes)), *array.chunks[1:])
    return array


def lazy_array(X: Any) -> tuple[da.Array, NDArray[np.object_] | None]:
    """A Dask array (n, d) of any collection, its sizes perhaps unknown, and the names of its columns."""
    X, names = _opened(X), None
    if _is_frame(X):
        text = [name for name in X.columns if isinstance(name, str)]
        names = np.array(text, dtype=object) if len(text) == len(X.columns) else None
        for name, dtype in X.dtypes.items():
            if getattr(dtype, "kind", "O") not in "biuf":
                raise ValueError(
                    f"column {name!r} is of type {dtype}, not of numbers; drop it, or convert it to numbers"
                )
        # Together with others, truth values and numbers that may be missing would become objects.
        odd = [
            name for name, dtype in X.dtypes.items() if not isinstance(dtype, np.dtype) or dtype.kind == "b"
        ]
        array = (X.astype(dict.fromkeys(odd, "float64")) if odd else X).to_dask_array()
    else:
        array = X
    if not isinstance(array, da.Array):
        raise TypeError(
            f"X is a {type(X).__name__}; pass a Dask array or DataFrame, an xarray.DataArray with Dask "
            "inside, a zarr.Array or the path of a folder; for data in memory use the estimators of linkwise"
        )
    if array.ndim != 2:
        raise ValueError(
            f"X has {array.ndim} dimensions; reshape it to rows and columns, as in X.reshape(-1, n_features)"
        )
    if array.dtype.kind not in "biuf":
        raise ValueError(
            f"X is of type {array.dtype}, not of real numbers; convert it, as in X.astype(float)"
        )
    return array, names


def _opened(X: Any) -> Any:
    """Open folders and Zarr arrays, and take the Dask array out of xarray."""
    if isinstance(X, str | os.PathLike):
        path = os.fspath(X)
        if (Path(path) / "zarr.json").exists() or (Path(path) / ".zarray").exists():
            return da.from_zarr(path)
        if "://" not in path and not glob.has_magic(path) and not os.path.exists(path):
            raise FileNotFoundError(f"{path} does not exist; pass a folder of Parquet files or a Zarr array")
        import dask.dataframe as dd

        return dd.read_parquet(path)
    kind = type(X).__module__.split(".")[0]
    if kind == "zarr":
        return da.from_zarr(X)
    if kind == "xarray" and not hasattr(X, "data"):
        raise TypeError(f"X is a {type(X).__name__}; pass one of its arrays, as in X.to_dataarray()")
    if kind == "xarray" and not isinstance(X.data, da.Array):
        raise TypeError(
            "X is a DataArray without Dask inside; pass X.chunk(), or use the estimators of linkwise itself"
        )
    return X.data if kind == "xarray" else X


def _is_frame(X: Any) -> bool:
    return hasattr(X, "to_dask_array") and hasattr(X, "columns")


def _ids(frame: Any, name: Any, client: Any) -> tuple[Any, Any]:
    """Ids of the rows of a frame: the column that the index of the links was taken from, or its own index."""
    if name is not None and name in list(frame.columns):
        return dask.compute(frame[name], scheduler=client)[0], frame.drop(columns=[name])
    return dask.compute(frame.index, scheduler=client)[0], frame
