"""Grids: pixels without data, places, and areas on the ground."""

import numpy as np
import pytest
import rasterio
from pyproj import Geod

from linkwise.raster.grid import Grid, applied, pixel_areas, valid_pixels, windows_of


def test_windows_cover_every_pixel_once():
    seen = np.zeros((70, 33), dtype=int)
    for window in windows_of(70, 33, 16):
        seen[window.toslices()] += 1
    assert (seen == 1).all()


def test_valid_pixels():
    values = np.array([[[1, 2, 3]], [[4, 1, 6]]], dtype=np.uint8)
    assert valid_pixels(values, [1.0, None]).tolist() == [[False, True, True]]
    assert valid_pixels(values, [1.0, 1.0]).tolist() == [[False, False, True]]
    # A nodata value that the type cannot hold is in no pixel: 257 is not 1.
    assert valid_pixels(values, [257.0, -9999.0]).all()
    assert valid_pixels(values, [float("nan"), 1.5]).all()
    assert valid_pixels(values, [float("inf"), float("-inf")]).all()
    floats = values.astype(np.float32)
    floats[0, 0, 2] = np.inf
    assert valid_pixels(floats, [2.0, None]).tolist() == [[True, False, False]]
    # Declared in double precision, stored in single.
    floats[1, 0, 0] = -3.4e38
    assert valid_pixels(floats, [None, -3.4e38]).tolist() == [[False, True, False]]


def test_areas_in_degrees_are_those_of_the_ellipsoid():
    step = 0.01
    grid = Grid(3, 4, rasterio.CRS.from_epsg(4326), rasterio.Affine(step, 0, 10, 0, -step, 60))
    found = pixel_areas(grid)
    geod = Geod(ellps="WGS84")
    for row, area in enumerate(found):
        # Sides along parallels are no geodesics: many short ones.
        lon = np.linspace(10, 10 + step, 50)
        north, south = np.full(50, 60 - step * row), np.full(50, 60 - step * (row + 1))
        expected, _ = geod.polygon_area_perimeter(np.append(lon, lon[::-1]), np.append(north, south))
        assert area == pytest.approx(abs(expected), rel=1e-6)


def test_areas_of_rotated_pixels_in_degrees():
    turned = rasterio.Affine(0.00866, 0.005, 179.9, 0.005, -0.00866, 60)
    grid = Grid(3, 4, rasterio.CRS.from_epsg(4326), turned)
    corners = [applied(turned, *corner) for corner in ((2, 1), (3, 1), (3, 2), (2, 2))]
    expected, _ = Geod(ellps="WGS84").polygon_area_perimeter(*zip(*corners, strict=True))
    assert pixel_areas(grid)[1] == pytest.approx(abs(expected), rel=1e-3)


def test_areas_of_projections():
    """Web Mercator at 60 degrees north makes areas four times too large; feet are no metres."""
    x, y = 1.1e6, 8.4e6
    mercator = Grid(5, 5, rasterio.CRS.from_epsg(3857), rasterio.Affine(100, 0, x, 0, -100, y))
    assert pixel_areas(mercator) == pytest.approx(np.full(5, 2.5e3), rel=0.02)
    utm = Grid(5, 5, rasterio.CRS.from_epsg(32721), rasterio.Affine(10, 0, 5e5, 0, -10, 9e6))
    assert pixel_areas(utm) == pytest.approx(np.full(5, 100.0 / 0.9996**2), rel=1e-5)
    feet = Grid(5, 5, rasterio.CRS.from_epsg(2263), rasterio.Affine(10, 0, 9.8e5, 0, -10, 2e5))
    assert pixel_areas(feet) == pytest.approx(np.full(5, 9.29), rel=1e-3)
    sinusoidal = rasterio.CRS.from_proj4("+proj=sinu +R=6371007.181 +units=m")
    modis = Grid(2, 2, sinusoidal, rasterio.Affine(231.656, 0, -6.07e6, 0, -231.656, -1.278e6))
    assert pixel_areas(modis) == pytest.approx(np.full(2, 231.656**2), rel=1e-9)
    with pytest.raises(ValueError, match="no CRS"):
        pixel_areas(Grid(2, 2, None, rasterio.Affine.identity()))
