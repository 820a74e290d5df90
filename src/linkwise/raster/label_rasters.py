"""Which pixels a label raster gives a class to."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

import numpy as np
import rasterio
import xarray as xr
from numpy.typing import NDArray
from rasterio.enums import Resampling
from rasterio.vrt import WarpedVRT
from scipy import sparse
from scipy.sparse import csgraph

from linkwise.raster.grid import Grid, grid_of, same_place, windows_of
from linkwise.raster.legend import names_in
from linkwise.raster.places import MOST_PIXELS, Places

__all__ = ["label_raster_places"]

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


def _patches(pixels: NDArray[np.int64], codes: NDArray[np.int64], width: int) -> NDArray[np.int64]:
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


def _codes_of_array(labels: xr.DataArray, grid: Grid) -> tuple[NDArray[np.int64], NDArray[Any]]:
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
    return _known(codes, array.rio.nodata, 0)


def _codes_of_file(path: str, grid: Grid) -> tuple[tuple[NDArray[np.int64], NDArray[Any]], dict[int, str]]:
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
                some, their_codes = _known(on_grid.read(1, window=window), file.nodata, 0)
                row, column = np.divmod(some, int(window.width))
                pixels.append((row + int(window.row_off)) * grid.width + column + int(window.col_off))
                codes.append(their_codes)
                if sum(map(len, pixels)) > MOST_PIXELS:
                    raise ValueError(f"{path} has more than {MOST_PIXELS} labelled pixels; pass a part of it")
    everything = np.concatenate(pixels)
    order = np.argsort(everything, kind="stable")
    return (everything[order], np.concatenate(codes)[order]), names


def _known(codes: NDArray[Any], nodata: float | None, unknown: int) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Numbers in reading order and codes of the pixels that have a class."""
    flat = codes.ravel()
    known = flat != unknown
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
