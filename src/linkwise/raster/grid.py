"""The grid of a raster: size, CRS, transform; which pixels have data; how large they are on the ground."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from affine import Affine
from numpy.typing import NDArray
from pyproj import CRS, Proj, Transformer
from rasterio.windows import Window

from linkwise._arrays import Bools, Floats

#: Corners of two grids that are nearer than this, in pixels, are the same.
_SAME_PIXEL = 1e-2
#: Rows between which the area of a pixel of a projected raster is interpolated.
_AREA_ROWS = 65


class Grid(NamedTuple):
    """Size, CRS and transform of a raster."""

    height: int
    width: int
    crs: Any
    transform: Affine

    @property
    def shape(self) -> tuple[int, int]:
        """Height and width."""
        return self.height, self.width


def as_stack(stack: Any) -> Any:
    """A DataArray with its dimensions in the order (band, y, x); a single band gets its dimension."""
    if not isinstance(stack, xr.DataArray) or not {"y", "x"} <= set(stack.dims) <= {"band", "y", "x"}:
        given = stack.dims if isinstance(stack, xr.DataArray) else type(stack).__name__
        raise ValueError(f"a stack is a DataArray with dimensions band, y and x, not {given}; use read_stack")
    if "band" not in stack.dims:
        stack = stack.expand_dims("band")
    return stack.transpose("band", "y", "x")


def grid_of(stack: Any) -> Grid:
    """Read the grid of a DataArray or Dataset, of its part if it was cut."""
    height, width = int(stack.sizes["y"]), int(stack.sizes["x"])
    transform = stack.rio.transform()
    # The stored transform is exact, but it is that of the whole; coordinates are those of the part.
    if "x" in stack.coords and "y" in stack.coords:
        x, y = float(stack["x"][0]), float(stack["y"][0])
        column, row = applied(~transform, x, y)
        column, row = round(column - 0.5, 2), round(row - 0.5, 2)
        if (column, row) != (0.0, 0.0):
            if transform.b or transform.d:
                raise ValueError("a part of a rotated raster has no place of its own; pass the whole raster")
            c, f = applied(transform, column, row)
            transform = Affine(transform.a, transform.b, c, transform.d, transform.e, f)
    return Grid(height, width, stack.rio.crs, transform)


def applied(transform: Affine, x: Any, y: Any) -> tuple[Any, Any]:
    """Apply a transform to numbers or arrays, alike in all versions of affine."""
    a, b, c, d, e, f = transform[:6]
    return a * x + b * y + c, d * x + e * y + f


def same_place(a: Affine, b: Affine, shape: tuple[int, int]) -> bool:
    """Whether the corners of two grids of this shape are the same, up to a hundredth of a pixel."""
    height, width = shape
    corners = [(0, 0), (width, 0), (0, height), (width, height)]
    size = min(np.hypot(a.a, a.d), np.hypot(a.b, a.e))
    distance = max(np.hypot(*np.subtract(applied(a, *corner), applied(b, *corner))) for corner in corners)
    return bool(distance <= _SAME_PIXEL * size)


def nodata_of(stack: Any) -> list[float | None]:
    """The value of each band that stands for no data, None if there is none."""
    given = stack.attrs.get("nodatavals")
    n_bands = int(stack.sizes["band"])
    if given is not None and len(given) == n_bands:
        return [None if value is None else float(value) for value in given]
    value = stack.rio.nodata
    return [None if value is None else float(value)] * n_bands


def valid_pixels(values: NDArray[Any], nodata: list[float | None]) -> Bools:
    """Pixels (h, w) of a window (bands, h, w) that have data in every band."""
    valid = np.ones(values.shape[1:], dtype=bool)
    for band, missing in zip(values, nodata, strict=True):
        if band.dtype.kind == "f":
            valid &= np.isfinite(band)
        if missing is not None and not np.isnan(missing):
            valid &= band != band.dtype.type(missing) if fits(missing, band.dtype) else True
    return valid


def class_codes(values: Any) -> NDArray[np.integer]:
    """The codes of a map, if they are whole numbers from 0, which is no data."""
    codes = np.asarray(values)
    if codes.dtype.kind not in "ui":
        raise ValueError(
            f"a map holds whole numbers, not {codes.dtype}; pass what classify or write_map made"
        )
    if codes.size and int(codes.min()) < 0:
        raise ValueError(f"class {int(codes.min())} is none: write 0 for no data, and 1, 2, ... for classes")
    return codes


def fits(value: float, dtype: np.dtype[Any]) -> bool:
    """Whether a number of this type can have the value."""
    if dtype.kind == "f":
        return True
    limits = np.iinfo(dtype)
    return limits.min <= value <= limits.max and value == int(value)


def windows_of(height: int, width: int, side: int) -> Iterator[Window]:
    """Square windows in reading order; those at the right and lower edge may be smaller."""
    for row in range(0, height, side):
        for column in range(0, width, side):
            yield Window(column, row, min(side, width - column), min(side, height - row))


def pixel_areas(grid: Grid) -> Floats:
    """Area on the ground of a pixel of each row (height,), in square metres.

    In degrees: on the ellipsoid, in the middle column. Projected: divided by the areal scale of the
    projection.
    """
    if grid.crs is None:
        raise ValueError(
            "the raster has no CRS, so areas are not known; give it one, e.g. by gdal_edit.py -a_srs"
        )
    crs = CRS.from_user_input(grid.crs)
    transform = grid.transform
    if crs.is_geographic:
        # The corners of a pixel, and their polygon on an equal-area cylinder.
        ellipsoid = crs.get_geod()
        assert ellipsoid is not None
        flat = Proj(proj="cea", a=ellipsoid.a, b=ellipsoid.b)
        rows = np.arange(grid.height) + np.array([[0], [0], [1], [1]])
        columns = grid.width // 2 + np.array([[0], [1], [1], [0]])
        longitude, latitude = applied(transform, columns, rows)
        x, y = flat(longitude - longitude[0], np.clip(latitude, -90.0, 90.0))
        y = y - y[0]
        return np.abs((x * np.roll(y, -1, axis=0) - y * np.roll(x, -1, axis=0)).sum(axis=0)) / 2.0
    unit = crs.axis_info[0].unit_conversion_factor if crs.axis_info else 1.0
    flat_area = abs(transform.determinant) * unit**2
    rows = np.linspace(0.0, grid.height, min(_AREA_ROWS, grid.height + 1))
    x, y = applied(transform, np.full(len(rows), grid.width / 2), rows)
    longitude, latitude = Transformer.from_crs(crs, crs.geodetic_crs, always_xy=True).transform(x, y)
    scale = np.asarray(Proj(crs).get_factors(longitude, latitude).areal_scale)
    if not np.isfinite(scale).all():
        raise ValueError("parts of the raster lie outside its projection, so areas are not known; crop it")
    return flat_area / np.interp(np.arange(grid.height) + 0.5, rows, scale)
