"""Training rows: the pixels of points, polygons or a label raster, or samples that carry band values."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import rasterio
import xarray as xr
from numpy.typing import NDArray
from rasterio.enums import Resampling
from rasterio.vrt import WarpedVRT
from scipy import sparse
from scipy.sparse import csgraph

from linkwise._arrays import Bools, Floats, Ints
from linkwise._tables import label_names, read_frame, table_suffix
from linkwise._validation import check_choice, listed
from linkwise.raster.grid import Grid, as_stack, grid_of, nodata_of, same_place, valid_pixels, windows_of
from linkwise.raster.legend import names_in
from linkwise.raster.places import (
    MOST_PIXELS,
    Places,
    class_texts,
    columns_of,
    coordinate_columns,
    point_places,
    table_points,
    vector_places,
)

_TABLES = (".csv", ".tsv", ".txt", ".parquet", ".pq")
_RASTERS = (".tif", ".tiff", ".jp2", ".img", ".vrt")
#: Side of the squares of pixels that are read together.
_BLOCK = 256
#: Band values of samples this many times larger or smaller than those of the raster are in other units.
_OTHER_UNITS = 50.0


class TrainingRows(NamedTuple):
    """Rows to fit a model to.

    Attributes
    ----------
    X : (n, bands) float64
        Values of the bands.
    y : (n,) str
        Class of each row.
    pixels : (n, 2) int64
        Row and column in the raster; -1 for samples that carry the values themselves.
    groups : (n,) int64
        Number of the sample, polygon or connected patch of a label raster that each row is from; rows that
        carry values share it where they are of one place. Rows of one group should stay on one side of a
        split into training and test rows.
    skipped : list of str
        What was left out and why, one line each.
    """

    X: Floats
    y: NDArray[np.str_]
    pixels: Ints
    groups: Ints
    skipped: list[str]


def training_rows(
    stack: xr.DataArray,
    samples: Any,
    *,
    label: str | None = None,
    x: str | None = None,
    y: str | None = None,
    values: Sequence[str] | None = None,
    factor: float = 1.0,
    crs: Any = None,
    all_touched: bool = False,
    outside: str = "raise",
    min_pixels: int = 2,
    max_per_class: int | None = None,
    names: Mapping[int, str] | None = None,
    random_state: Any = 0,
) -> TrainingRows:
    """Collect the pixels whose class is known. Samples are moved to the grid of the raster, never the raster.

    Parameters
    ----------
    stack : xarray.DataArray
        From :func:`read_stack`.
    samples : path, DataFrame or DataArray
        Points: a table (CSV, TSV, Parquet) with columns lon/lat or x/y. Polygons or points: a vector file
        (GeoPackage, Shapefile, GeoJSON). A label raster: a file or DataArray of whole numbers, 0 or its
        nodata value for unknown.
    label : str
        Column with the class; not for label rasters. Samples without a class are skipped.
    x, y : str, optional
        Columns of the coordinates, if they are not named longitude/latitude, lon/lat or x/y.
    values : list of str, optional
        Columns of a table that hold the values of the bands, in the order of the bands: such samples may lie
        anywhere. Also used if the table has all names of the bands as columns and no coordinates.
    factor : float, default=1
        Band values of ``values`` are multiplied by it: 10000 if samples are in 0 to 1 and pixels in 0 to
        10000.
    crs : optional
        CRS of the samples. By default that of the vector file or label raster; EPSG:4326 for lon/lat; that
        of the raster for x/y.
    all_touched : bool, default=False
        Take all pixels that a polygon touches; otherwise those whose centre is inside.
    outside : {"raise", "skip"}, default="raise"
        What to do with samples outside the raster. If all are, it raises in any case.
    min_pixels : int, default=2
        Fewest pixels of a class.
    max_per_class : int, optional
        Use at most this many pixels of a class, drawn at random.
    names : dict of int to str, optional
        Names of the codes of a label raster. By default those in its metadata, or the numbers.
    random_state : int or None, default=0
        For ``max_per_class``.

    Returns
    -------
    TrainingRows

    Raises
    ------
    ValueError
        Naming the rows, features or classes that are wrong, and the fix.

    Examples
    --------
    >>> import numpy as np, pandas as pd, xarray as xr
    >>> from linkwise.raster import training_rows
    >>> stack = xr.DataArray(np.arange(24.0).reshape(2, 3, 4), dims=("band", "y", "x"))
    >>> stack = stack.assign_coords(y=[25.0, 15.0, 5.0], x=[5.0, 15.0, 25.0, 35.0])
    >>> stack = stack.rio.write_crs("EPSG:32721")
    >>> points = pd.DataFrame({"x": [2.0, 8.0, 33.0], "y": [28.0, 11.0, 1.0], "class": ["a", "a", "b"]})
    >>> rows = training_rows(stack, points, label="class", min_pixels=1)
    >>> rows.X, rows.pixels.tolist()
    (array([[ 0., 12.],
           [ 4., 16.],
           [11., 23.]]), [[0, 0], [1, 0], [2, 3]])
    """
    check_choice(outside, "outside", ("raise", "skip"))
    stack = as_stack(stack)
    grid = grid_of(stack)
    table = _table_of(samples, label)
    if table is not None:
        columns = _value_columns(table, values, stack, x, y)
        if columns is not None:
            return _rows_with_values(
                table, columns, stack, label, factor, min_pixels, _line_of(samples), (x, y)
            )
        points = table_points(table, label, x, y, crs, grid, _line_of(samples))
        places = point_places(points, grid, outside)
    elif isinstance(samples, xr.DataArray) or Path(os.fspath(samples)).suffix.lower() in _RASTERS:
        places = label_raster_places(samples, grid, names)
    else:
        places = vector_places(samples, grid, label, crs, all_touched, outside)
    return _rows_of_pixels(stack, grid, places, min_pixels, max_per_class, random_state)


def _rows_of_pixels(
    stack: xr.DataArray,
    grid: Grid,
    places: Places,
    min_pixels: int,
    max_per_class: int | None,
    random_state: Any,
) -> TrainingRows:
    places = _without_repeats(places, grid)
    if max_per_class is not None:
        places = _thinned(places, max_per_class, random_state)
    X, valid = _pixel_values(stack, grid, places.pixels)
    skipped = list(places.skipped)
    if not valid.all():
        if not valid.any():
            raise ValueError("all samples lie on pixels without data; pass the right nodata= to read_stack")
        where = places.named(places.groups[~valid])
        skipped.append(f"{int((~valid).sum())} pixels without data ({where})")
    pixels = np.column_stack(np.divmod(places.pixels, grid.width))
    rows = TrainingRows(X[valid], places.classes[valid], pixels[valid], places.groups[valid], skipped)
    _check_classes(rows.y, places.all_classes, min_pixels)
    return rows


def _without_repeats(places: Places, grid: Grid) -> Places:
    """Each pixel once; two classes at one pixel are an error."""
    order = np.lexsort((places.groups, places.pixels))
    pixels, classes = places.pixels[order], places.classes[order]
    repeated = pixels[1:] == pixels[:-1]
    clash = np.flatnonzero(repeated & (classes[1:] != classes[:-1]))
    if len(clash):
        groups = places.groups[order]
        first, second = int(groups[clash[0]]), int(groups[clash[0] + 1])
        row, column = divmod(int(pixels[clash[0]]), grid.width)
        n_pixels = len(np.unique(pixels[clash]))
        raise ValueError(
            f"{places.kind} {places.number(first)} ({classes[clash[0]]}) and {places.kind} "
            f"{places.number(second)} ({classes[clash[0] + 1]}) overlap at pixel (row {row}, column {column})"
            + (f" and {n_pixels - 1} more pixels are in two classes" if n_pixels > 1 else "")
            + "; correct one of them"
        )
    kept = np.sort(order[np.append(True, ~repeated)]) if len(order) else order
    return places.at(kept)


def _thinned(places: Places, most: int, random_state: Any) -> Places:
    """At most so many pixels of each class, drawn at random."""
    shuffled = np.random.default_rng(random_state).permutation(len(places.pixels))
    kept = []
    for name in np.unique(places.classes):
        kept.append(shuffled[places.classes[shuffled] == name][:most])
    return places.at(np.sort(np.concatenate(kept)))


def _pixel_values(stack: xr.DataArray, grid: Grid, pixels: Ints) -> tuple[Floats, Bools]:
    """Band values (n, bands) of pixels, and whether they have data; squares of the raster are read once."""
    rows, columns = np.divmod(pixels, grid.width)
    block = (rows // _BLOCK) * (grid.width // _BLOCK + 1) + columns // _BLOCK
    order = np.argsort(block, kind="stable")
    starts = np.flatnonzero(np.diff(block[order])) + 1
    nodata = nodata_of(stack)
    X = np.empty((len(pixels), int(stack.sizes["band"])))
    valid = np.empty(len(pixels), dtype=bool)
    for some in np.split(order, starts):
        if not len(some):
            continue
        top, left = rows[some].min(), columns[some].min()
        part = stack[:, top : rows[some].max() + 1, left : columns[some].max() + 1].values
        found = part[:, rows[some] - top, columns[some] - left]
        X[some] = found.T
        valid[some] = valid_pixels(found[:, np.newaxis], nodata)[0]
    return X, valid


def _check_classes(y: NDArray[Any], all_classes: Sequence[str], min_pixels: int) -> None:
    """Refuse classes with too few rows, also those that lost all of theirs."""
    found, counts = np.unique(y, return_counts=True)
    n_rows = dict(zip(found.tolist(), counts.tolist(), strict=True))
    few = [name for name in sorted(all_classes) if n_rows.get(name, 0) < min_pixels]
    if few:
        found_few = listed([f"{name!r} {n_rows.get(name, 0)}" for name in few])
        raise ValueError(
            f"classes with fewer than {min_pixels} pixels: {found_few}; add samples of them, or leave "
            "them out"
        )


def _line_of(samples: Any) -> Callable[[int], str]:
    """How rows of a table are named: by line of a file, or by number."""
    if isinstance(samples, str | os.PathLike) and not str(samples).endswith((".parquet", ".pq")):
        return lambda row: f"line {row + 2}"
    return lambda row: f"row {row}"


def _table_of(samples: Any, label: str | None) -> Any:
    """A DataFrame if the samples are a table, None otherwise; classes in text stay as they are written."""
    import pandas

    if isinstance(samples, pandas.DataFrame):
        return samples.reset_index(drop=True)
    if isinstance(samples, xr.DataArray):
        return None
    path = Path(os.fspath(samples))
    suffix = Path(path.stem).suffix.lower() if path.suffix.lower() == ".gz" else path.suffix.lower()
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist; check the folder and the name")
    if suffix not in _TABLES:
        return None
    table = read_frame(path, [] if label is None else [label])
    if label in table.columns and table_suffix(path) != ".parquet":
        table[label] = label_names(table[label])
    return table


def _value_columns(
    table: Any, values: Sequence[str] | None, stack: xr.DataArray, x: str | None, y: str | None
) -> list[str] | None:
    """Columns of band values if the table has them and they are to be used."""
    names = [str(name) for name in np.atleast_1d(stack["band"].values)] if "band" in stack.coords else []
    if values is None:
        if not names or not set(names) <= set(table.columns) or coordinate_columns(table, x, y) is not None:
            return None
        return names
    columns = list(values)
    missing = [name for name in columns if name not in table.columns]
    if missing:
        raise ValueError(f"there is no column {missing[0]!r} in the samples; name one of {columns_of(table)}")
    n_bands = int(stack.sizes["band"])
    if len(columns) != n_bands:
        raise ValueError(
            f"values names {len(columns)} columns, but the stack has {n_bands} bands; name one for each"
        )
    return columns


def _rows_with_values(
    table: Any,
    columns: list[str],
    stack: xr.DataArray,
    label: str | None,
    factor: float,
    min_pixels: int,
    line: Callable[[int], str],
    coordinates: tuple[str | None, str | None],
) -> TrainingRows:
    """Rows of a table that holds the values of the bands."""
    import pandas

    if not np.isfinite(factor) or factor == 0.0:
        raise ValueError(f"factor is {factor:g}; pass what the values are to be multiplied by, 1 for nothing")
    classes = class_texts(table, label)
    X = table[columns].apply(pandas.to_numeric, errors="coerce").to_numpy(dtype=np.float64) * factor
    known, skipped = classes != "", []
    if not known.all():
        skipped.append(f"{int((~known).sum())} samples without a class")
    whole = np.isfinite(X).all(axis=1)
    if (known & ~whole).any():
        bad = np.flatnonzero(known & ~whole)
        column = columns[int((~np.isfinite(X[bad[0]])).argmax())]
        skipped.append(
            f"{len(bad)} samples with a missing value (first: {line(int(bad[0]))}, column {column})"
        )
    used = np.flatnonzero(known & whole)
    if not len(used):
        raise ValueError(
            f"no sample has a class and a number in all of {', '.join(columns[:4])}; correct the table"
        )
    _check_units(X[used], stack)
    none = np.full((len(used), 2), -1, dtype=np.int64)
    # Years of one place are no independent samples.
    groups, place = used.astype(np.int64), coordinate_columns(table, *coordinates)
    if place is not None:
        groups = table.iloc[used].groupby(list(place[:2]), dropna=False).ngroup().to_numpy(dtype=np.int64)
    rows = TrainingRows(X[used], classes[used].astype(str), none, groups, skipped)
    _check_classes(rows.y, sorted(set(classes[known].tolist())), min_pixels)
    return rows


def _check_units(X: Floats, stack: xr.DataArray) -> None:
    """Refuse samples in other units than the raster: a factor was forgotten."""
    grid = grid_of(stack)
    top, left = max(grid.height // 2 - 128, 0), max(grid.width // 2 - 128, 0)
    part = stack[:, top : top + 256, left : left + 256].values
    valid = valid_pixels(part, nodata_of(stack))
    if not valid.any():
        return
    of_raster = float(np.median(np.abs(part[:, valid].astype(np.float64))))
    of_samples = float(np.median(np.abs(X)))
    ratio = of_raster / of_samples if of_samples > 0.0 and of_raster > 0.0 else 1.0
    if not 1.0 / _OTHER_UNITS < ratio < _OTHER_UNITS:
        likely = 10.0 ** np.round(np.log10(ratio))
        raise ValueError(
            f"samples have values of about {of_samples:.3g}, pixels of about {of_raster:.3g}; pass "
            f"factor={likely:g} if the samples are in other units"
        )


#: Side of the windows that are read.
_READ = 1024


def label_raster_places(labels: Any, grid: Grid, names: Mapping[int, str] | None) -> Places:
    """Pixels of a label raster, moved to the grid of the stack by nearest neighbours if needed."""
    known_names: dict[int, str] = {}
    if isinstance(labels, xr.DataArray):
        codes = _codes_of_array(labels, grid)
    else:
        codes, known_names = _codes_of_file(os.fspath(labels), grid)
    known_names.update(names or {})
    pixels, found = codes
    if not len(pixels):
        raise ValueError(
            "the label raster has no class inside the raster; correct its CRS or its nodata value"
        )
    distinct, inverse = np.unique(found, return_inverse=True)
    texts = np.array([known_names.get(int(code), str(int(code))) for code in distinct])
    patches = _patches(pixels, inverse, grid.width)
    code_of_patch = np.zeros(patches.max() + 1, dtype=np.int64)
    code_of_patch[patches] = inverse
    return Places(
        pixels,
        texts[inverse],
        patches,
        [],
        sorted(set(texts.tolist())),
        "class",
        lambda group: str(texts[code_of_patch[group]]),
    )


def _patches(pixels: Ints, codes: Ints, width: int) -> Ints:
    """Number of the connected patch of one class that each pixel is in; neighbours may meet at a corner."""
    edges = []
    # Right, and below: left, straight and right.
    for down, across in ((0, 1), (1, -1), (1, 0), (1, 1)):
        columns = pixels % width + across
        here = np.flatnonzero((columns >= 0) & (columns < width))
        wanted = pixels[here] + down * width + across
        place = np.minimum(np.searchsorted(pixels, wanted), len(pixels) - 1)
        same = (pixels[place] == wanted) & (codes[place] == codes[here])
        edges.append((here[same], place[same]))
    ends = [np.concatenate(side) for side in zip(*edges, strict=True)]
    graph = sparse.coo_array((np.ones(len(ends[0]), dtype=np.int8), tuple(ends)), shape=(len(pixels),) * 2)
    return np.asarray(csgraph.connected_components(graph, directed=False)[1], dtype=np.int64)


def _codes_of_array(labels: xr.DataArray, grid: Grid) -> tuple[Ints, NDArray[Any]]:
    array = labels.squeeze([dim for dim in labels.dims if dim not in ("y", "x") and labels.sizes[dim] == 1])
    if set(array.dims) != {"y", "x"}:
        raise ValueError(f"the label raster has shape {labels.shape}; pass one band (y, x)")
    own = grid_of(array)
    if (
        own.shape != grid.shape
        or (own.crs is not None and own.crs != grid.crs)
        or not same_place(own.transform, grid.transform, grid.shape)
    ):
        if own.crs is None:
            raise ValueError(
                "the label raster has no CRS and another grid than the stack; set it by "
                'labels.rio.write_crs("EPSG:...")'
            )
        outside = 0 if array.rio.nodata is None else array.rio.nodata
        target = {"transform": grid.transform, "shape": grid.shape, "nodata": outside}
        array = array.rio.reproject(grid.crs, resampling=Resampling.nearest, **target)
    codes = np.asarray(array.transpose("y", "x").values)
    return _known(codes, array.rio.nodata)


def _codes_of_file(path: str, grid: Grid) -> tuple[tuple[Ints, NDArray[Any]], dict[int, str]]:
    with rasterio.open(path) as file:
        if file.crs is None:
            raise ValueError(f"{path} has no CRS; write it by gdal_edit.py -a_srs")
        if file.count > 1:
            raise ValueError(
                f"{path} has {file.count} bands; pass a label raster of one, as gdal_translate -b 1 cuts out"
            )
        same = (
            file.shape == grid.shape
            and file.crs == grid.crs
            and same_place(file.transform, grid.transform, grid.shape)
        )
        names = names_in(file.tags(1))
        pixels, codes = [], []
        with ExitStack() as opened:
            on_grid = file
            if not same:
                height, width = grid.shape
                warped = {"crs": grid.crs, "transform": grid.transform, "height": height, "width": width}
                on_grid = opened.enter_context(WarpedVRT(file, resampling=Resampling.nearest, **warped))
            for window in windows_of(*grid.shape, _READ):
                some, their_codes = _known(on_grid.read(1, window=window), file.nodata)
                row, column = np.divmod(some, int(window.width))
                pixels.append((row + int(window.row_off)) * grid.width + column + int(window.col_off))
                codes.append(their_codes)
                if sum(map(len, pixels)) > MOST_PIXELS:
                    raise ValueError(f"{path} has more than {MOST_PIXELS} labelled pixels; pass a part of it")
    everything = np.concatenate(pixels)
    order = np.argsort(everything, kind="stable")
    return (everything[order], np.concatenate(codes)[order]), names


def _known(codes: NDArray[Any], nodata: float | None) -> tuple[Ints, NDArray[Any]]:
    """Numbers in reading order and codes of the pixels that have a class; 0 is none."""
    flat = codes.ravel()
    known = flat != 0
    if flat.dtype.kind == "f":
        known &= np.isfinite(flat)
    if nodata is not None:
        known &= flat != nodata
    pixels = np.flatnonzero(known)
    found = flat[pixels]
    if found.dtype.kind == "f" and len(found) and (found != np.round(found)).any():
        bad = found[found != np.round(found)][0]
        raise ValueError(f"the label raster holds {bad:g}; write whole numbers")
    return pixels, found
