"""Areas of classes on the ground, and how sure they are."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import rasterio
import xarray as xr
from numpy.typing import ArrayLike

from linkwise._arrays import Floats, Ints
from linkwise.raster.grid import Grid, class_codes, grid_of, pixel_areas
from linkwise.raster.legend import names_in
from linkwise.raster.writing import MapWriter

_HECTARE = 1e4
#: Rows of a file that are counted at once.
_STRIP = 1024


class ClassArea(NamedTuple):
    """Area of a class.

    Attributes
    ----------
    name : str
    pixels : int
        Pixels of the class on the map.
    hectares : float
        Area of these pixels.
    adjusted : float
        Area with the errors of the map taken into account, in hectares; NaN if they are not known.
    standard_error : float
        Of ``adjusted``, in hectares; NaN if it is not known.
    """

    name: str
    pixels: int
    hectares: float
    adjusted: float
    standard_error: float


def areas(
    classes: xr.DataArray | xr.Dataset | str | os.PathLike[str] | MapWriter,
    pixel_area: float | ArrayLike | None = None,
    confusion: ArrayLike | None = None,
    *,
    names: Sequence[str] | None = None,
) -> list[ClassArea]:
    """Measure the area of each class of a map in hectares.

    Parameters
    ----------
    classes : xarray.DataArray, xarray.Dataset, path or MapWriter
        What :func:`classify` returned, a file that :class:`MapWriter` wrote, which is read in strips, or a
        writer that has all windows but is still open.
    pixel_area : float or (height,) array_like, optional
        Square metres of a pixel, or of a pixel of each row. By default from the CRS: in degrees it depends on
        the latitude; on a projected map it is corrected by the areal scale of the projection.
    confusion : (K, K) array_like, optional
        Held-out samples by class on the map (rows) and true class (columns).
    names : sequence of str, optional
        By default those in the file, or the numbers.

    Returns
    -------
    list of ClassArea

    Notes
    -----
    With W_i the share of the map that class i has, and n_ij samples of class j that the map says are class i,

        share_j = sum_i W_i n_ij / n_i ,
        Var(share_j) = sum_i W_i^2 (n_ij / n_i) (1 - n_ij / n_i) / (n_i - 1)

    (Olofsson et al. 2013). This supposes that samples were drawn at random within each class of
    the map. A class of the map with fewer than two samples leaves all areas without a standard error, and
    without samples also without adjusted areas.

    References
    ----------
    P. Olofsson, G. M. Foody, S. V. Stehman and C. E. Woodcock, Making better use of accuracy data in land
    change studies, Remote Sensing of Environment 129, 2013.

    Examples
    --------
    >>> import numpy as np, xarray as xr
    >>> from linkwise.raster import areas
    >>> classes = xr.DataArray(np.repeat([[1, 2]], [300, 100], axis=1), dims=("y", "x"))
    >>> [round(area.hectares, 1) for area in areas(classes, pixel_area=900.0)]
    [27.0, 9.0]
    >>> area = areas(classes, 900.0, confusion=[[45, 5], [0, 50]])[1]
    >>> round(area.adjusted, 2), round(area.standard_error, 2)
    (11.7, 1.16)
    """
    counts, square_metres, known = _count(classes, pixel_area)
    n_classes = counts.shape[1]
    if names is None:
        names = [known.get(code, str(code)) for code in range(1, n_classes + 1)]
    if len(names) < n_classes:
        raise ValueError(
            f"the map has {n_classes} classes, but there are {len(names)} names; pass one for each"
        )
    n_classes = len(names)
    counts = np.pad(counts, ((0, 0), (0, n_classes - counts.shape[1])))
    hectares = square_metres @ counts / _HECTARE
    adjusted = error = np.full(n_classes, np.nan)
    if confusion is not None:
        adjusted, error = _adjust(hectares, np.asarray(confusion, dtype=np.float64))
    pixels = counts.sum(axis=0)
    return [
        ClassArea(str(name), int(pixels[k]), float(hectares[k]), float(adjusted[k]), float(error[k]))
        for k, name in enumerate(names)
    ]


def _adjust(hectares: Floats, confusion: Floats) -> tuple[Floats, Floats]:
    """Adjusted areas and their standard errors."""
    n_classes = len(hectares)
    if confusion.shape != (n_classes, n_classes):
        raise ValueError(
            f"confusion has shape {confusion.shape}, but there are {n_classes} classes; pass a row for each "
            "class of the map and a column for each true class"
        )
    if not (confusion >= 0.0).all():
        raise ValueError("confusion holds a negative or missing count; pass numbers of samples")
    on_map = hectares > 0.0
    rows = confusion[on_map]
    weights = hectares[on_map] / hectares.sum() if on_map.any() else hectares[on_map]
    with np.errstate(divide="ignore", invalid="ignore"):
        share = rows / rows.sum(axis=1, keepdims=True)
        variance = share * (1.0 - share) / (rows.sum(axis=1, keepdims=True) - 1.0)
    # One sample says nothing of a variance.
    variance[rows.sum(axis=1) < 2] = np.nan
    return hectares.sum() * (weights @ share), hectares.sum() * np.sqrt(weights**2 @ variance)


def _count(classes: Any, pixel_area: float | ArrayLike | None) -> tuple[Ints, Floats, dict[int, str]]:
    """Pixels of each row and class (height, K), square metres of a pixel of each row, names in the file."""
    names: dict[int, str] = {}
    if isinstance(classes, str | os.PathLike):
        with rasterio.open(classes) as file:
            grid = Grid(file.height, file.width, file.crs, file.transform)
            names = names_in(file.tags(1))
            most = max(names, default=0)
            tables = []
            for first in range(0, file.height, _STRIP):
                height = min(_STRIP, file.height - first)
                strip = rasterio.windows.Window(0, first, file.width, height)
                tables.append(_row_counts(file.read(1, window=strip), most))
    elif isinstance(classes, MapWriter):
        grid, names = classes.grid, dict(enumerate(classes.legend.names, start=1))
        most = len(names)
        tables = [_row_counts(pixels[0], most) for _, pixels in classes.strips()]
    else:
        array = classes["classes"] if isinstance(classes, xr.Dataset) else classes
        grid = Grid(int(array.sizes["y"]), int(array.sizes["x"]), None, rasterio.Affine.identity())
        if pixel_area is None:
            grid = grid_of(array)
        most = int(classes.attrs.get("n_classes", 0))
        tables = [_row_counts(array.values, most)]
    width = max(table.shape[1] for table in tables)
    counts = np.concatenate([np.pad(table, ((0, 0), (0, width - table.shape[1]))) for table in tables])
    square_metres = pixel_areas(grid) if pixel_area is None else np.asarray(pixel_area, dtype=np.float64)
    return counts, np.broadcast_to(square_metres, (grid.height,)), names


def _row_counts(values: Any, most: int) -> Ints:
    """Pixels of each row and each class from 1 on; 0 is no data."""
    codes = class_codes(values)
    most = max(most, int(codes.max()) if codes.size else 0)
    return np.array([np.bincount(row, minlength=most + 1)[1:] for row in codes], dtype=np.int64).reshape(
        -1, most
    )
