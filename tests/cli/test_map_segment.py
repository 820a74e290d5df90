"""``linkwise segment`` reads rasters of any number of bands and keeps their georeference."""

from __future__ import annotations

import numpy as np
import pytest
import rasterio
from PIL import Image
from sklearn.metrics import adjusted_rand_score

from linkwise.cli.images import read_picture
from tests.cli.map_scene import CRS, GAP, TRANSFORM, make_scene


def test_regions_of_a_geotiff(invoke, tmp_path):
    scene = make_scene(tmp_path)
    result = invoke("segment", scene.raster, "-k", 4, "--starts", 2, "-o", "regions")
    assert result.exit_code == 0, result.output
    with rasterio.open("regions/labels.tif") as file:
        assert file.crs == CRS
        assert file.transform == TRANSFORM
        assert file.nodata == 0
        labels = file.read(1)
    assert (labels[GAP] == 0).all()
    valid = labels > 0
    assert valid.sum() == labels.size - 54
    assert adjusted_rand_score(scene.truth[valid], labels[valid]) > 0.98
    picture = np.asarray(Image.open("regions/labels.png"))
    np.testing.assert_array_equal(picture[valid] + 1, labels[valid])


def test_six_bands_and_blocks(tmp_path):
    """Bands are scaled alike whatever their units; a block that has a pixel without data is left out."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(6, 8, 12)) * np.array([1, 10, 100, 1e4, 1e-3, 1]).reshape(6, 1, 1)
    values[3, 1, 1] = np.nan
    profile = {"count": 6, "height": 8, "width": 12, "dtype": "float64"}
    with rasterio.open(tmp_path / "six.tif", "w", crs=CRS, transform=TRANSFORM, **profile) as file:
        file.write(values)
    picture = read_picture(tmp_path / "six.tif")
    assert picture.pixels.shape == (8, 12, 6)
    assert picture.georeference == (CRS, TRANSFORM)
    assert (~picture.mask).sum() == 1
    inside = picture.pixels[picture.mask]
    np.testing.assert_allclose(
        np.percentile(inside, (2, 98), axis=0), np.repeat([[0.0], [1.0]], 6, axis=1), atol=1e-9
    )
    assert picture.shown().shape == (8, 12, 3)
    assert read_picture(tmp_path / "six.tif", block=4).mask.tolist() == [[False, True, True], [True] * 3]


def test_complex_numbers_are_refused(refused, tmp_path):
    """Regions were those of the real part."""
    profile = {"count": 1, "height": 8, "width": 12, "dtype": "complex64"}
    with rasterio.open(tmp_path / "radar.tif", "w", crs=CRS, transform=TRANSFORM, **profile) as file:
        file.write(np.full((1, 8, 12), 1 + 2j, dtype=np.complex64))
    assert refused("segment", "radar.tif", "-k", 2) == "radar.tif holds complex numbers; pass their amplitude"


@pytest.mark.parametrize("bands", [1, 3, 6])
def test_tiff_without_georeference(tmp_path, bands):
    """Grey and coloured ones are ordinary images; GDAL reads the others."""
    values = np.arange(bands * 35, dtype=np.uint8).reshape(bands, 5, 7)
    with rasterio.open(tmp_path / "plain.tif", "w", count=bands, height=5, width=7, dtype="uint8") as file:
        file.write(values)
    picture = read_picture(tmp_path / "plain.tif")
    assert picture.georeference is None
    np.testing.assert_allclose(picture.pixels, np.moveaxis(values, 0, 2) / 255)


def test_alpha_is_no_colour(tmp_path):
    values = np.full((4, 5, 7), 90, dtype=np.uint8)
    values[0] = np.arange(7)
    values[3] = 255
    values[3, 2, 3] = 0
    profile = {"count": 4, "height": 5, "width": 7, "dtype": "uint8", "photometric": "RGB", "alpha": "YES"}
    with rasterio.open(tmp_path / "rgba.tif", "w", crs=CRS, transform=TRANSFORM, **profile) as file:
        file.write(values)
    picture = read_picture(tmp_path / "rgba.tif")
    assert picture.pixels.shape == (5, 7, 3)
    assert np.argwhere(~picture.mask).tolist() == [[2, 3]]


def test_raster_that_is_damaged(refused, tmp_path):
    scene = make_scene(tmp_path)
    content = scene.raster.read_bytes()
    (tmp_path / "cut.tif").write_bytes(content[: len(content) // 3])
    line = refused("segment", "cut.tif", "-k", 2)
    assert "cut.tif" in line
    with (
        rasterio.open(scene.raster) as file,
        rasterio.open(tmp_path / "none.tif", "w", **file.profile) as empty,
    ):
        empty.write(np.full((3, *file.shape), file.nodata, dtype=np.int16))
    assert "nodata" in refused("segment", "none.tif", "-k", 2)
