"""Areas of classes and their standard errors."""

import numpy as np
import pytest
import xarray as xr

from linkwise.raster import areas, write_map
from tests.raster.raster_cases import CRS, TRANSFORM


def map_of(codes, crs=CRS, transform=TRANSFORM):
    height, width = codes.shape
    x = transform.c + transform.a * (np.arange(width) + 0.5)
    y = transform.f + transform.e * (np.arange(height) + 0.5)
    return xr.DataArray(codes, dims=("y", "x"), coords={"y": y, "x": x}).rio.write_crs(crs)


def test_formula_written_out():
    """Loss of forest, forest and no forest on a map of 30 m pixels: the counts of Olofsson's example."""
    pixels = [22353, 1122543, 610228]
    codes = np.repeat([1, 2, 3], pixels)[np.newaxis].astype(np.uint8)
    classes = xr.DataArray(codes, dims=("y", "x"))
    found = areas(classes, 900.0, [[97, 0, 3], [3, 279, 18], [2, 1, 97]], names=["loss", "forest", "other"])
    assert [area.pixels for area in found] == pixels
    shares = np.array([97 / 100, 3 / 300, 2 / 100])
    weights = np.array(pixels) / sum(pixels)
    assert found[0].adjusted == pytest.approx(sum(pixels) * 0.09 * (weights * shares).sum())
    variance = (weights**2 * shares * (1 - shares) / (np.array([100, 300, 100]) - 1)).sum()
    assert found[0].standard_error == pytest.approx(sum(pixels) * 0.09 * variance**0.5)
    assert sum(area.adjusted for area in found) == pytest.approx(sum(pixels) * 0.09)


def test_the_standard_error_is_that_of_draws():
    """Maps and samples drawn again and again: the spread of the estimates."""
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1, 2], [5000, 3000, 2000])
    mapped = np.where(rng.random(len(truth)) < 0.85, truth, rng.integers(3, size=len(truth)))
    classes = xr.DataArray((mapped + 1)[np.newaxis], dims=("y", "x"))
    found, errors = [], []
    for _ in range(400):
        confusion = np.zeros((3, 3))
        for code in range(3):
            chosen = rng.choice(np.flatnonzero(mapped == code), 60)
            confusion[code] = np.bincount(truth[chosen], minlength=3)
        result = areas(classes, 1e4, confusion)
        found.append([area.adjusted for area in result])
        errors.append([area.standard_error for area in result])
    np.testing.assert_allclose(np.mean(found, axis=0), [5000, 3000, 2000], rtol=0.02)
    np.testing.assert_allclose(np.std(found, axis=0), np.mean(errors, axis=0), rtol=0.1)


def test_too_few_samples_give_no_number():
    classes = xr.DataArray(np.array([[1, 1, 2, 2, 0]]), dims=("y", "x"))
    one = areas(classes, 100.0, [[5, 1], [0, 1]])
    assert np.isfinite([area.adjusted for area in one]).all()
    assert np.isnan([area.standard_error for area in one]).all()
    none = areas(classes, 100.0, [[5, 1], [0, 0]])
    assert np.isnan([area.adjusted for area in none]).all()
    # A class that is not on the map needs none.
    absent = areas(classes, 100.0, [[5, 1, 0], [0, 4, 1], [0, 0, 0]], names=["a", "b", "c"])
    assert np.isfinite([area.standard_error for area in absent]).all()
    assert absent[2].pixels == 0
    assert absent[2].adjusted > 0.0


def test_files_and_arrays_agree(tmp_path):
    codes = np.random.default_rng(0).integers(0, 4, size=(1100, 70)).astype(np.uint8)
    classes = map_of(codes)
    write_map(tmp_path / "map.tif", classes, names=["a", "b", "c"])
    from_file, from_memory = areas(tmp_path / "map.tif"), areas(classes, names=["a", "b", "c"])
    assert from_file == from_memory or [a[:3] for a in from_file] == [a[:3] for a in from_memory]
    assert [area.pixels for area in from_file] == np.bincount(codes.ravel())[1:].tolist()
    with pytest.raises(ValueError, match="whole numbers, not float64"):
        areas(classes.astype(float))
    with pytest.raises(ValueError, match="class -1 is none"):
        areas(classes.astype(int) - 1)
    with pytest.raises(ValueError, match="3 classes, but there are 2 names"):
        areas(classes, names=["a", "b"])
    with pytest.raises(ValueError, match="confusion has shape"):
        areas(classes, confusion=np.ones((2, 2)))
    with pytest.raises(ValueError, match="negative or missing"):
        areas(classes, confusion=-np.ones((3, 3)))
