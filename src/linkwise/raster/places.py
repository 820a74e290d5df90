"""Which pixels points and polygons lie on."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import rasterio
import shapely
from numpy.typing import NDArray
from pyproj import CRS, Transformer
from pyproj.exceptions import CRSError
from rasterio.features import rasterize

from linkwise._arrays import Bools, Floats, Ints
from linkwise._validation import listed
from linkwise.raster.grid import Grid, applied

_LON_LAT = "EPSG:4326"
#: Names of coordinate columns, and whether they are degrees.
_PAIRS = (
    ("longitude", "latitude", True),
    ("lon", "lat", True),
    ("long", "lat", True),
    ("lng", "lat", True),
    ("x", "y", False),
    ("easting", "northing", False),
)
#: Most pixels that samples may cover.
MOST_PIXELS = 50_000_000


class Places(NamedTuple):
    """Pixels (n,) in reading order, their classes (n,), samples (n,) they are from, and all classes."""

    pixels: Ints
    classes: NDArray[np.str_]
    groups: Ints
    skipped: list[str]
    all_classes: list[str]
    kind: str
    number: Callable[[int], str]

    def at(self, kept: Ints) -> Places:
        """Some of the pixels."""
        return self._replace(pixels=self.pixels[kept], classes=self.classes[kept], groups=self.groups[kept])

    def named(self, groups: Ints) -> str:
        """List samples for a message."""
        return _listed(self.kind, [self.number(int(group)) for group in np.unique(groups)])


class Points(NamedTuple):
    """Points in the CRS of the raster."""

    x: Floats
    y: Floats
    classes: NDArray[np.str_]
    rows: Ints
    skipped: list[str]
    kind: str
    number: Callable[[int], str]


def _listed(kind: str, numbers: Sequence[str]) -> str:
    """``line 4``, ``lines 4, 7 and 3 more``."""
    if len(numbers) == 1:
        return f"{kind} {numbers[0]}"
    return f"{kind}s {listed(numbers)}"


def coordinate_columns(table: Any, x: str | None, y: str | None) -> tuple[str, str, bool] | None:
    """Columns of the coordinates and whether they are longitude and latitude; None if there are none."""
    if (x is None) != (y is None):
        raise ValueError("x and y belong together; name both columns, or none")
    if x is not None and y is not None:
        for name in (x, y):
            if name not in table.columns:
                raise ValueError(
                    f"there is no column {name!r} in the samples; name one of {columns_of(table)}"
                )
        degrees = any(x.lower() == a and y.lower() == b and flag for a, b, flag in _PAIRS)
        return x, y, degrees
    by_lower = {str(name).lower(): str(name) for name in table.columns}
    for first, second, degrees in _PAIRS:
        if first in by_lower and second in by_lower:
            return by_lower[first], by_lower[second], degrees
    return None


def class_texts(table: Any, label: str | None) -> NDArray[Any]:
    """Class of each row as text, "" where it is missing."""
    if label is None:
        raise ValueError(f"label is missing; name the column with the classes, one of {columns_of(table)}")
    if label not in table.columns:
        raise ValueError(f"there is no column {label!r} in the samples; name one of {columns_of(table)}")
    return texts_of(table[label].to_numpy(dtype=object))


def texts_of(values: NDArray[Any]) -> NDArray[Any]:
    """Classes as text; whole numbers that became floats lose their point, missing ones are ""."""
    import pandas

    texts = np.empty(len(values), dtype=object)
    for place, (value, missing) in enumerate(zip(values, pandas.isna(values), strict=True)):
        if missing:
            texts[place] = ""
        elif isinstance(value, float | np.floating) and float(value).is_integer():
            texts[place] = str(int(value))
        else:
            texts[place] = str(value).strip()
    return texts


def columns_of(table: Any) -> str:
    """Names of the first columns of a table, for messages."""
    names = [str(name) for name in table.columns]
    return ", ".join(names[:20]) + (" ..." if len(names) > 20 else "")


def table_points(
    table: Any,
    label: str | None,
    x: str | None,
    y: str | None,
    crs: Any,
    grid: Grid,
    line: Callable[[int], str],
) -> Points:
    """Points of a table, in the CRS of the raster."""
    import pandas

    classes = class_texts(table, label)
    columns = coordinate_columns(table, x, y)
    if columns is None:
        raise ValueError(
            f"the samples have no columns lon/lat or x/y, but {columns_of(table)}; name them by x= and "
            "y=, or the columns of band values by values="
        )
    first, second, degrees = columns
    coordinates = [
        pandas.to_numeric(table[name], errors="coerce").to_numpy(float) for name in (first, second)
    ]
    kind = line(0).split()[0]

    def number(row: int) -> str:
        return line(row).split()[1]

    known = classes != ""
    bad = np.flatnonzero(known & ~np.isfinite(coordinates).all(axis=0))
    if len(bad):
        raise ValueError(
            f"{_listed(kind, [number(int(row)) for row in bad])} of the samples: no number in {first} or "
            f"{second}; write one, or remove the row"
        )
    skipped = [f"{int((~known).sum())} samples without a class"] if not known.all() else []
    if crs is None and not degrees and _looks_like_degrees(coordinates, known, grid):
        raise ValueError(
            f"{first} and {second} look like degrees, but the raster is in {_unit(grid)}; pass "
            'crs="EPSG:4326"'
        )
    source = crs if crs is not None else (_LON_LAT if degrees else grid.crs)
    rows = np.flatnonzero(known)
    xs, ys = _moved(coordinates[0][rows], coordinates[1][rows], source, grid.crs)
    return Points(xs, ys, classes[rows].astype(str), rows, skipped, kind, number)


def _looks_like_degrees(coordinates: Sequence[NDArray[Any]], known: Bools, grid: Grid) -> bool:
    if CRS.from_user_input(grid.crs).is_geographic or not known.any():
        return False
    x, y = (np.abs(values[known]) for values in coordinates)
    corner = np.abs(applied(grid.transform, grid.width / 2, grid.height / 2))
    return bool(x.max() <= 180 and y.max() <= 90 and max(corner) > 1000)


def _unit(grid: Grid) -> str:
    crs = CRS.from_user_input(grid.crs)
    return crs.axis_info[0].unit_name + "s" if crs.axis_info else "other units"


def _moved(x: NDArray[Any], y: NDArray[Any], source: Any, target: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """Coordinates in the CRS of the raster."""
    move = _transformer(source, target)
    if move is None:
        return x, y
    xs, ys = move.transform(x, y)
    return np.asarray(xs, dtype=float), np.asarray(ys, dtype=float)


def _transformer(source: Any, target: Any) -> Transformer | None:
    """None if both are the same."""
    if target is None:
        raise ValueError(
            'the raster has no CRS, so samples cannot be placed on it; pass crs="EPSG:..." to read_stack'
        )
    try:
        first, second = CRS.from_user_input(source), CRS.from_user_input(target)
    except CRSError as error:
        raise ValueError(f"{source!r} is no CRS that is known; write e.g. EPSG:4326") from error
    return None if first == second else Transformer.from_crs(first, second, always_xy=True)


def point_places(points: Points, grid: Grid, outside: str) -> Places:
    """Pixels that points lie on."""
    if not len(points.rows):
        raise ValueError("no sample has a class; name another column of classes")
    rows, columns, inside = _cells(points.x, points.y, grid)
    skipped = list(points.skipped)
    if not inside.all():
        numbers = [points.number(int(row)) for row in points.rows[~inside]]
        _check_outside(points.kind, numbers, len(inside), outside)
        skipped.append(f"{_listed(points.kind, numbers)} outside the raster")
    pixels = rows[inside] * grid.width + columns[inside]
    all_classes = sorted(set(points.classes.tolist()))
    return Places(
        pixels, points.classes[inside], points.rows[inside], skipped, all_classes, points.kind, points.number
    )


def _cells(x: NDArray[Any], y: NDArray[Any], grid: Grid) -> tuple[Ints, Ints, Bools]:
    """Row, column and whether they are inside."""
    with np.errstate(invalid="ignore"):
        columns, rows = applied(~grid.transform, x, y)
        inside = (columns >= 0) & (columns < grid.width) & (rows >= 0) & (rows < grid.height)
    columns, rows = np.where(inside, columns, 0.0), np.where(inside, rows, 0.0)
    return np.floor(rows).astype(np.int64), np.floor(columns).astype(np.int64), inside


def _check_outside(kind: str, numbers: list[str], n_samples: int, outside: str) -> None:
    """Refuse samples outside the raster, or all of them."""
    if len(numbers) == n_samples:
        raise ValueError(
            f"all {n_samples} samples lie outside the raster; longitude and latitude swapped? Otherwise pass "
            "their crs"
        )
    if outside == "raise":
        raise ValueError(
            f"{_listed(kind, numbers)} of the samples outside the raster ({len(numbers)} of {n_samples}); "
            'remove them, or pass outside="skip"'
        )


def vector_places(
    path: Any, grid: Grid, label: str | None, crs: Any, all_touched: bool, outside: str
) -> Places:
    """Pixels of the polygons or points of a vector file."""
    import pyogrio
    from pyogrio.errors import DataSourceError

    path = os.fspath(path)
    try:
        about, _, geometries, fields = pyogrio.raw.read(path)
    except DataSourceError as error:
        reason = " ".join(str(error).split())[:120]
        raise ValueError(
            f"{path} is no file of samples that can be read ({reason}); pass a table, a vector file or a "
            "label raster"
        ) from error
    names = [str(name) for name in about["fields"]]
    if label is None or label not in names:
        wrong = "label is missing" if label is None else f"there is no column {label!r} in {path}"
        raise ValueError(f"{wrong}; name one of {', '.join(names[:20]) or 'its columns, but it has none'}")
    source = about["crs"] if about["crs"] is not None else crs
    if source is None:
        raise ValueError(f'{path} has no CRS; pass crs="EPSG:..."')
    classes = texts_of(np.asarray(fields[names.index(label)], dtype=object))
    shapes = shapely.from_wkb(np.asarray(geometries, dtype=object))
    known = classes != ""
    skipped = [f"{int((~known).sum())} features without a class"] if not known.all() else []
    empty = known & (shapely.is_missing(shapes) | shapely.is_empty(shapes))
    if empty.any():
        skipped.append(f"{int(empty.sum())} features without a shape")
    rows = np.flatnonzero(known & ~empty)
    if not len(rows):
        raise ValueError(f"no feature of {path} has a class and a shape; correct the column {label!r}")
    shapes = _moved_shapes(shapes[rows], source, grid.crs)

    def number(row: int) -> str:
        return str(row + 1)

    kinds = shapely.get_type_id(shapes)
    if (kinds == 0).all():
        points = Points(
            shapely.get_x(shapes),
            shapely.get_y(shapes),
            classes[rows].astype(str),
            rows,
            skipped,
            "feature",
            number,
        )
        return point_places(points, grid, outside)
    odd = np.flatnonzero(~np.isin(kinds, (3, 6)))
    if len(odd):
        raise ValueError(
            f"feature {number(int(rows[odd[0]]))} of {path} is a {shapes[odd[0]].geom_type}; "
            "pass a file of polygons, or one of points"
        )
    return _polygon_places(
        shapes, classes[rows].astype(str), rows, skipped, grid, all_touched, outside, number
    )


def _moved_shapes(shapes: NDArray[Any], source: Any, target: Any) -> NDArray[Any]:
    move = _transformer(source, target)
    if move is None:
        return shapes

    def moved(coordinates: NDArray[Any]) -> NDArray[Any]:
        return np.column_stack(move.transform(coordinates[:, 0], coordinates[:, 1]))

    return np.asarray(shapely.transform(shapes, moved))


def _polygon_places(
    shapes: NDArray[Any],
    classes: NDArray[np.str_],
    rows: Ints,
    skipped: list[str],
    grid: Grid,
    all_touched: bool,
    outside: str,
    number: Callable[[int], str],
) -> Places:
    """Pixels of polygons, each drawn in the window around it."""
    in_pixels = np.asarray(
        shapely.transform(shapes, lambda xy: np.column_stack(applied(~grid.transform, xy[:, 0], xy[:, 1])))
    )
    bounds = shapely.bounds(in_pixels)
    with np.errstate(invalid="ignore"):
        inside = (
            (bounds[:, 2] > 0)
            & (bounds[:, 0] < grid.width)
            & (bounds[:, 3] > 0)
            & (bounds[:, 1] < grid.height)
        )
    if not inside.all():
        numbers = [number(int(row)) for row in rows[~inside]]
        _check_outside("feature", numbers, len(inside), outside)
        skipped = [*skipped, f"{_listed('feature', numbers)} outside the raster"]
    pixels: list[Ints] = []
    counts = np.zeros(len(shapes), dtype=np.int64)
    for place in np.flatnonzero(inside):
        left, top = np.maximum(np.floor(bounds[place, :2]).astype(np.int64), 0)
        right, bottom = np.minimum(np.ceil(bounds[place, 2:]).astype(np.int64), (grid.width, grid.height))
        drawn = rasterize(
            [in_pixels[place]],
            out_shape=(max(bottom - top, 1), max(right - left, 1)),
            transform=rasterio.Affine.translation(left, top),
            all_touched=all_touched,
            dtype=np.uint8,
        )
        row, column = np.nonzero(drawn)
        pixels.append((row + top) * grid.width + column + left)
        counts[place] = len(row)
        if counts.sum() > MOST_PIXELS:
            raise ValueError(f"the polygons cover more than {MOST_PIXELS} pixels; pass smaller ones")
    thin = np.flatnonzero(inside & (counts == 0))
    if len(thin):
        numbers = [number(int(row)) for row in rows[thin]]
        skipped = [
            *skipped,
            f"{_listed('feature', numbers)} without a pixel centre inside (all_touched=True takes them)",
        ]
    everything = np.concatenate(pixels) if pixels else np.empty(0, dtype=np.int64)
    all_classes = sorted(set(classes.tolist()))
    return Places(
        everything.astype(np.int64),
        np.repeat(classes, counts),
        np.repeat(rows, counts),
        skipped,
        all_classes,
        "feature",
        number,
    )
