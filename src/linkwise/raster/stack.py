"""Bands of one or many raster files as one lazy array."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Sequence
from datetime import date
from itertools import groupby
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
import rasterio
import rioxarray  # noqa: F401  (registers .rio)
import xarray as xr
from numpy.typing import NDArray
from rasterio.enums import ColorInterp
from rasterio.errors import RasterioIOError
from rasterio.windows import Window
from xarray.backends import BackendArray, CachingFileManager
from xarray.core import indexing

from linkwise.raster.grid import Grid, applied, fits, same_place

PathLike = str | os.PathLike[str]
#: xarray shares open files among threads, but GDAL must not use one in two threads at the same time.
_reading = Lock()


class _Source(NamedTuple):
    """A band of a file."""

    path: str
    number: int
    name: str
    dtype: str
    nodata: float | None
    date: np.datetime64 | None


class _Bands(BackendArray):
    """Bands (band, y, x) that are read when they are asked for."""

    def __init__(self, sources: Sequence[_Source], shape: tuple[int, int]) -> None:
        self.sources = list(sources)
        self.shape = (len(self.sources), *shape)
        self.dtype = np.result_type(*[source.dtype for source in self.sources])
        self._files = {
            path: CachingFileManager(rasterio.open, path, mode="r") for path in _paths(self.sources)
        }

    def __getitem__(self, key: Any) -> Any:
        return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.BASIC, self._read)

    def _read(self, key: tuple[Any, ...]) -> NDArray[Any]:
        """Read the smallest window around the key, then take the key from it."""
        spans: list[tuple[int, int]] = []
        inner: list[Any] = []
        for part, size in zip(key, self.shape, strict=True):
            places = range(size)[part]
            if isinstance(places, int):
                spans.append((places, places + 1))
                inner.append(0)
            elif len(places) == 0:
                spans.append((0, 0))
                inner.append(slice(0, 0))
            else:
                first, last = min(places[0], places[-1]), max(places[0], places[-1])
                spans.append((first, last + 1))
                inner.append(slice(None) if places.step == 1 else np.asarray(places) - first)
        (first, last), rows, columns = spans
        window = Window(columns[0], rows[0], columns[1] - columns[0], rows[1] - rows[0])
        values = np.empty((last - first, int(window.height), int(window.width)), dtype=self.dtype)
        if values.size:
            self._fill(values, self.sources[first:last], window)
        for axis in range(2, -1, -1):
            values = values[(slice(None),) * axis + (inner[axis],)]
        return values

    def _fill(self, values: NDArray[Any], sources: Sequence[_Source], window: Window) -> None:
        start = 0
        for path, group in groupby(sources, key=lambda source: source.path):
            numbers = [source.number for source in group]
            part = values[start : start + len(numbers)]
            with _reading, self._files[path].acquire_context() as file:
                try:
                    # GDAL converts from the type of the file where it differs.
                    file.read(numbers, window=window, out=part)
                except RasterioIOError as error:
                    raise OSError(
                        f"{path} cannot be read ({_reason(error)}); is the file damaged?"
                    ) from error
            start += len(numbers)


def read_stack(
    paths: PathLike | Iterable[PathLike],
    *,
    bands: Sequence[int | str] | None = None,
    nodata: float | None = None,
    crs: Any = None,
) -> xr.DataArray:
    """Describe the bands of raster files as one array; pixels are read when they are asked for.

    Parameters
    ----------
    paths : path, glob pattern or list of paths
        Anything that GDAL reads. Files of a pattern are ordered by name, those of a list as given. All must
        have one size, CRS and transform.
    bands : list of int or str, optional
        Bands to take, in this order: numbers from 1 in the order of the files, or names.
    nodata : float, optional
        Value that stands for no data, if the files do not say so.
    crs : optional
        CRS of files that have none, e.g. "EPSG:32721".

    Returns
    -------
    xarray.DataArray
        Dimensions ("band", "y", "x"). Coordinate ``band`` has the names: descriptions of the bands, or names
        of the files; ``date`` is there if all of these hold one. ``stack.rio`` has CRS, transform and nodata.

    Raises
    ------
    ValueError, OSError
        Naming the file, or the two files that do not match.

    Examples
    --------
    >>> import tempfile, numpy as np, rasterio
    >>> from linkwise.raster import read_stack
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = f"{folder.name}/scene.tif"
    >>> profile = {"count": 2, "height": 3, "width": 4, "dtype": "int16", "crs": "EPSG:32721"}
    >>> with rasterio.open(path, "w", transform=rasterio.Affine(10, 0, 5e5, 0, -10, 9e6), **profile) as file:
    ...     file.write(np.arange(24, dtype="int16").reshape(2, 3, 4))
    >>> stack = read_stack(path)
    >>> stack.shape, stack.rio.crs.to_epsg()
    ((2, 3, 4), 32721)
    >>> stack[1, 2].values
    array([20, 21, 22, 23], dtype=int16)
    """
    files = _listed(paths)
    sources: list[_Source] = []
    grid: Grid | None = None
    for path in files:
        found, its_grid = _describe(path, len(files) > 1, crs, refuse_alpha=bands is None)
        if grid is None:
            grid = its_grid
        else:
            _check_same(files[0], grid, path, its_grid)
        sources += found
    assert grid is not None
    names = _distinct([source.name for source in sources])
    sources = [source._replace(name=name) for source, name in zip(sources, names, strict=True)]
    if bands is not None:
        sources = [sources[place] for place in _chosen(bands, [source.name for source in sources])]
    if nodata is not None:
        kinds = sorted({source.dtype for source in sources})
        if not any(fits(float(nodata), np.dtype(kind)) for kind in kinds):
            raise ValueError(
                f"nodata is {nodata:g}, which bands of {' and '.join(kinds)} cannot hold; pass another one, "
                "or leave it out"
            )
        sources = [source._replace(nodata=float(nodata)) for source in sources]
    return _as_array(sources, grid)


def _as_array(sources: list[_Source], grid: Grid) -> xr.DataArray:
    columns = np.arange(grid.width) + 0.5
    rows = np.arange(grid.height) + 0.5
    x, _ = applied(grid.transform, columns, np.full(grid.width, 0.5))
    _, y = applied(grid.transform, np.full(grid.height, 0.5), rows)
    coords: dict[str, Any] = {"band": [source.name for source in sources], "y": y, "x": x}
    if all(source.date is not None for source in sources):
        coords["date"] = ("band", np.array([source.date for source in sources], dtype="datetime64[ns]"))
    lazy = indexing.LazilyIndexedArray(_Bands(sources, grid.shape))
    stack = xr.DataArray(lazy, dims=("band", "y", "x"), coords=coords)
    stack = stack.rio.write_crs(grid.crs).rio.write_transform(grid.transform)
    missing = [source.nodata for source in sources]
    if missing[0] is not None and fits(missing[0], stack.dtype):
        stack.attrs["_FillValue"] = missing[0]
    stack.attrs["nodatavals"] = missing
    stack.attrs["files"] = _paths(sources)
    return stack


def _paths(sources: Iterable[_Source]) -> list[str]:
    return list(dict.fromkeys(source.path for source in sources))


def _listed(paths: PathLike | Iterable[PathLike]) -> list[str]:
    """Paths of the files: a pattern is looked up and sorted by name, a list stays as it is."""
    if isinstance(paths, str | os.PathLike):
        text = os.fspath(paths)
        if not glob.has_magic(text) or os.path.exists(text):
            found = [text]
        else:
            found = sorted(glob.glob(text))
            if not found:
                raise FileNotFoundError(f"no file matches {text}; check the folder and the pattern")
    else:
        found = [os.fspath(path) for path in paths]
        if not found:
            raise ValueError("no raster was given; pass a path, a pattern such as 'scene/*.tif', or a list")
    twice = [path for place, path in enumerate(found) if path in found[:place]]
    if twice:
        raise ValueError(f"{twice[0]} is listed twice; remove one")
    return found


def _describe(path: str, one_of_many: bool, crs: Any, *, refuse_alpha: bool) -> tuple[list[_Source], Grid]:
    """The bands of a file and its grid."""
    try:
        with rasterio.open(path) as file:
            if not file.count:
                raise ValueError(
                    f"{path} holds no bands of its own; pass one of its parts, "
                    f"{', '.join(file.subdatasets[:3]) or 'but it has none'}"
                )
            its_crs = file.crs or (rasterio.CRS.from_user_input(crs) if crs is not None else None)
            if its_crs is None:
                raise ValueError(
                    f'{path} has no CRS; pass crs="EPSG:...", or write it by gdal_edit.py -a_srs'
                )
            if file.transform.is_identity:
                raise ValueError(
                    f"{path} has no transform, so the place of its pixels is not known; write one by "
                    "gdal_edit.py -a_ullr"
                )
            grid = Grid(file.height, file.width, its_crs, file.transform)
            sources = []
            for number in file.indexes:
                described = file.descriptions[number - 1]
                stem = Path(path).stem
                if described:
                    name = described
                elif file.count == 1:
                    name = stem
                else:
                    name = f"{stem}_{number}" if one_of_many else f"band_{number}"
                when = _date_in(described or "")
                if when is None and (one_of_many or file.count == 1):
                    when = _date_in(stem)
                if file.dtypes[number - 1].startswith("complex"):
                    raise ValueError(f"band {number} of {path} holds complex numbers; pass its amplitude")
                if refuse_alpha and file.colorinterp[number - 1] is ColorInterp.alpha:
                    raise ValueError(
                        f"band {number} of {path} is marked as transparency (alpha); name the bands to use "
                        "(bands=), and it among them only if it was measured"
                    )
                sources.append(
                    _Source(path, number, name, file.dtypes[number - 1], file.nodatavals[number - 1], when)
                )
            return sources, grid
    except RasterioIOError as error:
        if not os.path.exists(path) and "://" not in path and ":" not in path[2:]:
            raise FileNotFoundError(f"{path} does not exist; check the folder and the name") from error
        raise ValueError(
            f"{path} is no raster that GDAL can read ({_reason(error)}); pass a GeoTIFF, for instance"
        ) from error


def _reason(error: Exception) -> str:
    """The last words of GDAL, on one line."""
    return " ".join(str(error.__cause__ or error).split())[:120]


def _check_same(first: str, a: Grid, second: str, b: Grid) -> None:
    """Refuse files that do not lie on one grid."""
    fix = "warp one to the grid of the other, e.g. by gdalwarp"
    if a.shape != b.shape:
        raise ValueError(
            f"{first} has {a.width} x {a.height} pixels, {second} has {b.width} x {b.height}; {fix}"
        )
    if a.crs != b.crs:
        raise ValueError(f"{first} and {second} have different CRS ({_short(a.crs)}, {_short(b.crs)}); {fix}")
    if not same_place(a.transform, b.transform, a.shape):
        raise ValueError(
            f"{first} and {second} have different transforms (upper left corners "
            f"{a.transform.c:.8g}, {a.transform.f:.8g} and {b.transform.c:.8g}, {b.transform.f:.8g}; pixels "
            f"{a.transform.a:.6g} and {b.transform.a:.6g} wide); {fix}"
        )


def _short(crs: Any) -> str:
    code = crs.to_epsg()
    return f"EPSG:{code}" if code else crs.to_proj4()[:60]


def _date_in(text: str) -> np.datetime64 | None:
    """The first date such as 2013-09-14, 2013_09_14 or 20130914 in a name."""
    for year, month, day in re.findall(r"(?<!\d)((?:19|20)\d\d)[-_.]?(\d\d)[-_.]?(\d\d)(?!\d)", text):
        try:
            return np.datetime64(date(int(year), int(month), int(day)), "ns")
        except ValueError:
            continue
    return None


def _distinct(names: list[str]) -> list[str]:
    """Names that differ: a repeated one gets a number."""
    seen: set[str] = set()
    result = []
    for name in names:
        own, number = name, 2
        while own in seen:
            own, number = f"{name}_{number}", number + 1
        seen.add(own)
        result.append(own)
    return result


def _chosen(bands: Sequence[int | str], names: list[str]) -> list[int]:
    """Places of bands that are given by number from 1 or by name."""
    if isinstance(bands, str | int):
        bands = [bands]
    places = []
    for band in bands:
        if isinstance(band, str):
            if band not in names:
                raise ValueError(f"there is no band {band!r}; name one of {', '.join(names[:12])}")
            places.append(names.index(band))
        elif 1 <= int(band) <= len(names):
            places.append(int(band) - 1)
        else:
            raise ValueError(f"there is no band {band}; give numbers from 1 to {len(names)}")
    if not places:
        raise ValueError("bands is empty; name at least one band")
    if len(set(places)) < len(places):
        twice = next(names[place] for place in places if places.count(place) > 1)
        raise ValueError(f"band {twice!r} is named twice; name each band once")
    return places
