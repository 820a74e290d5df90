"""Classes and confidences of a stack, window by window or in memory."""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import Any

import numpy as np
import rasterio
import xarray as xr
from numpy.typing import NDArray
from rasterio.windows import Window

from linkwise._validation import check_whole_number
from linkwise.raster.grid import as_stack, grid_of, nodata_of, valid_pixels, windows_of
from linkwise.raster.models import PixelModel, pixel_model
from linkwise.raster.smoothing import HALO, check_smooth, smooth_tile

__all__ = ["class_type", "classify", "iter_windows"]

#: Megabytes of blocks that GDAL keeps; its own choice is a twentieth of the memory of the machine.
CACHE = 256
#: Larger numbers than this have squares that do not fit into float32; they are no measurements.
_LARGEST = 1e15


def classify(
    stack: xr.DataArray, model: Any, *, smooth: float | None = None, window: int = 512
) -> xr.Dataset:
    """Classify every pixel of a stack and return the map in memory.

    Parameters
    ----------
    stack : xarray.DataArray
        From :func:`read_stack`.
    model : fitted mixture or classifier
        A mixture of linkwise (also after a scaler in a Pipeline), or anything with ``predict_proba``.
        Mixtures compute in float32 if the bands are of 16 bits or float32, otherwise in float64.
    smooth : float, optional
        Certainty in [.5, 1) that two neighbouring pixels are of one class: the labels are then those of a
        Potts field on the grid of pixels. None classifies every pixel separately.
    window : int, default=512
        Side of the windows that are read and classified one after another. Without smoothing the result does
        not depend on it.

    Returns
    -------
    xarray.Dataset
        ``classes`` (y, x), 1 to K and 0 where there is no data; ``confidence`` (y, x) float32, the
        probability of the class, NaN where there is no data. With smoothing it is the probability given the
        classes of the four neighbours.

    See Also
    --------
    iter_windows : the same for scenes that are larger than memory.
    write_map : write the result as a GeoTIFF.

    Examples
    --------
    >>> import numpy as np, xarray as xr
    >>> from linkwise import PPC
    >>> from linkwise.raster import classify
    >>> values = np.random.default_rng(0).normal(size=(2, 20, 20)) + 8 * (np.arange(20) >= 10)
    >>> stack = xr.DataArray(values, dims=("band", "y", "x")).rio.write_crs("EPSG:32721")
    >>> model = PPC(2, random_state=0).fit(values.reshape(2, -1).T)
    >>> found = classify(stack, model)
    >>> found["classes"].dtype, bool((found["classes"][:, :10] == found["classes"][0, 0]).all())
    (dtype('uint8'), True)
    """
    stack = as_stack(stack)
    grid = grid_of(stack)
    pixels = pixel_model(model, int(stack.sizes["band"]))
    classes = np.zeros(grid.shape, dtype=class_type(pixels.n_classes))
    confidence = np.full(grid.shape, np.nan, dtype=np.float32)
    for place, some_classes, some_confidence in _run(stack, pixels, smooth, window, ()):
        classes[place.toslices()] = some_classes
        confidence[place.toslices()] = some_confidence
    coords = {name: stack.coords[name] for name in ("y", "x", "spatial_ref") if name in stack.coords}
    found = xr.Dataset({"classes": (("y", "x"), classes), "confidence": (("y", "x"), confidence)}, coords)
    if grid.crs is not None:
        found = found.rio.write_crs(grid.crs)
    found = found.rio.write_transform(grid.transform)
    found["classes"].attrs["_FillValue"] = classes.dtype.type(0)
    found["confidence"].attrs["_FillValue"] = np.float32(np.nan)
    found.attrs["n_classes"] = pixels.n_classes
    return found


def iter_windows(
    stack: xr.DataArray,
    model: Any,
    *,
    smooth: float | None = None,
    window: int = 512,
    done: Container[tuple[int, int]] = (),
) -> Iterator[tuple[Window, NDArray[np.unsignedinteger], NDArray[np.float32]]]:
    """Classify a stack window by window, in reading order.

    Parameters
    ----------
    stack, model, smooth, window
        As in :func:`classify`.
    done : container of (row, column), optional
        Upper left corners of windows to leave out: :attr:`MapWriter.done` of a run that was interrupted.

    Yields
    ------
    window : rasterio.windows.Window
    classes : (h, w) uint8 or uint16
        1 to K; 0 where there is no data.
    confidence : (h, w) float32
        NaN where there is no data.

    Raises
    ------
    ValueError
        If the model has another number of bands, or no pixel of the stack has data.
    """
    stack = as_stack(stack)
    check_smooth(smooth)
    check_whole_number(window, "window", 16)
    return _run(stack, pixel_model(model, int(stack.sizes["band"])), smooth, window, done)


def class_type(n_classes: int) -> np.dtype[np.unsignedinteger]:
    """The smallest type that holds 0 to ``n_classes``."""
    if n_classes > np.iinfo(np.uint16).max:
        raise ValueError(
            f"a map holds at most {np.iinfo(np.uint16).max} classes, not {n_classes}; take fewer"
        )
    return np.dtype(np.uint8 if n_classes <= np.iinfo(np.uint8).max else np.uint16)


def _run(
    stack: xr.DataArray,
    pixels: PixelModel,
    smooth: float | None,
    side: int,
    done: Container[tuple[int, int]],
) -> Iterator[tuple[Window, NDArray[np.unsignedinteger], NDArray[np.float32]]]:
    side = check_whole_number(side, "window", 16)
    coupling = check_smooth(smooth)
    grid = grid_of(stack)
    halo = 0 if coupling is None else HALO
    nodata = nodata_of(stack)
    any_valid = False
    for window in windows_of(*grid.shape, side):
        row, column = int(window.row_off), int(window.col_off)
        if (row, column) in done:
            any_valid = True
            continue
        # Even, see smoothing.HALO.
        top, left = (max(start - halo - (start & 1 and halo > 0), 0) for start in (row, column))
        bottom, right = (
            min(row + window.height + halo, grid.height),
            min(column + window.width + halo, grid.width),
        )
        with rasterio.Env(GDAL_CACHEMAX=CACHE):
            values = stack[:, top:bottom, left:right].values
        valid = valid_pixels(values, nodata)
        any_valid |= bool(valid.any())
        classes, confidence = _tile(values, valid, pixels, coupling, (top, left))
        inner = np.s_[row - top : row - top + window.height, column - left : column - left + window.width]
        yield window, classes[inner], confidence[inner]
    if not any_valid:
        raise ValueError(
            "no pixel of the stack has data in every band; check its nodata value, or pass nodata="
        )


def _tile(
    values: NDArray[Any],
    valid: NDArray[np.bool_],
    pixels: PixelModel,
    coupling: float | None,
    corner: tuple[int, int],
) -> tuple[NDArray[np.unsignedinteger], NDArray[np.float32]]:
    """Classes and confidences of a tile."""
    classes = np.zeros(valid.shape, dtype=class_type(pixels.n_classes))
    confidence = np.full(valid.shape, np.nan, dtype=np.float32)
    if valid.any():
        _refuse_huge(values, valid, corner)
        table = values.reshape(len(values), -1).astype(np.result_type(values.dtype, np.float32), copy=False)
        if not (valid.all() or pixels.takes_anything):
            table = np.where(valid.ravel(), table, table.dtype.type(0))
        if coupling is None:
            labels, sure = pixels.label(table)
        else:
            labels, sure = smooth_tile(pixels.scores(table), valid, coupling)
        np.add(labels.reshape(valid.shape), 1, out=classes, casting="unsafe")
        confidence[:] = sure.reshape(valid.shape)
        if not valid.all():
            classes[~valid] = 0
            confidence[~valid] = np.nan
    return classes, confidence


def _refuse_huge(values: NDArray[Any], valid: NDArray[np.bool_], corner: tuple[int, int]) -> None:
    """Refuse a fill value that nobody declared."""
    if values.dtype.kind != "f" or not (np.abs(np.nan_to_num(values)) > _LARGEST).any():
        return
    bad = np.argwhere((np.abs(values) > _LARGEST) & valid)
    if len(bad):
        band, row, column = bad[0].tolist()
        raise ValueError(
            f"band {band + 1} holds {values[band, row, column]:.3g} in row {corner[0] + row}, column "
            f"{corner[1] + column}; if it stands for no data, pass "
            f"nodata={float(values[band, row, column])!r} to read_stack"
        )
