"""A map small enough to be drawn: every n-th pixel, the size of a pixel on the ground, names and colours."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import numpy as np
import rasterio
import xarray as xr
from numpy.typing import NDArray
from pyproj import CRS, Transformer
from rasterio.enums import Resampling

from linkwise.raster.grid import Grid, class_codes, grid_of
from linkwise.raster.legend import names_in


class SmallMap(NamedTuple):
    """Codes (h, w) of a map, 0 for no data; metres of a pixel, names and colours if they are known."""

    codes: NDArray[np.unsignedinteger]
    cell_size: tuple[float, float] | None
    names: dict[int, str] | None = None
    colors: dict[int, str] | None = None


def every_nth(shape: tuple[int, int], most: int) -> int:
    """Return the step between pixels that leaves at most so many along the longer side."""
    return max(1, -(-max(shape) // most))


def ground_size(grid: Grid) -> tuple[float, float] | None:
    """Return height and width in metres of the pixel in the middle of a raster; None without a CRS."""
    if grid.crs is None:
        return None
    crs = CRS.from_user_input(grid.crs)
    along = grid.transform
    # The pixel in the middle, the one right of it and the one below.
    columns, rows = grid.width // 2 + np.array([0.5, 1.5, 0.5]), grid.height // 2 + np.array([0.5, 0.5, 1.5])
    x, y = along.a * columns + along.b * rows + along.c, along.d * columns + along.e * rows + along.f
    if not crs.is_geographic:
        x, y = Transformer.from_crs(crs, crs.geodetic_crs, always_xy=True).transform(x, y)
    globe = crs.get_geod()
    if globe is None:
        return None
    _, _, metres = globe.inv([x[0]] * 2, [y[0]] * 2, x[1:], y[1:])
    width, height = (float(side) for side in metres)
    return (height, width) if np.isfinite([height, width]).all() and min(height, width) > 0.0 else None


def north_up(pixels: NDArray[Any], grid: Grid) -> NDArray[Any]:
    """Turn pixels (..., h, w) of a raster whose first row is the southernmost, to be drawn."""
    turned = grid.crs is not None and grid.transform.e > 0.0 and not grid.transform.is_identity
    return pixels[..., ::-1, :] if turned else pixels


def small_map(classes: Any, most: int) -> SmallMap:
    """Thin a map: what ``classify`` returned, or the path of a file that ``MapWriter`` wrote."""
    if isinstance(classes, str | os.PathLike):
        with rasterio.open(classes) as file:
            grid = Grid(file.height, file.width, file.crs, file.transform)
            step = every_nth(grid.shape, most)
            shape = tuple(-(-side // step) for side in grid.shape)
            codes = file.read(1, out_shape=shape, resampling=Resampling.nearest)
            names = names_in(file.tags(1)) or None
            colors = _colors(file) if names else None
    else:
        array = classes["classes"] if isinstance(classes, xr.Dataset) else classes
        grid, names, colors = grid_of(array), None, None
        step = every_nth(grid.shape, most)
        codes = np.asarray(array[::step, ::step].values)
    codes, size = north_up(class_codes(codes), grid), ground_size(grid)
    return SmallMap(codes, None if size is None else (step * size[0], step * size[1]), names, colors)


def _colors(file: Any) -> dict[int, str] | None:
    """Colours of the codes as #RRGGBB; None without a colour table."""
    try:
        table = file.colormap(1)
    except ValueError:
        return None
    return {code: "#{:02X}{:02X}{:02X}".format(*channels[:3]) for code, channels in table.items()}
