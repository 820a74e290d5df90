"""``ClassMapDisplay.from_raster``: names, colours and a scale that is true on the ground."""

from __future__ import annotations

import numpy as np
import pytest
import rasterio
import xarray as xr
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from linkwise.displays import ClassMapDisplay
from linkwise.raster import Legend, write_map
from linkwise.raster.picture import small_map

CODES = np.repeat(np.repeat(np.array([[1, 2, 0], [3, 3, 2]], dtype=np.uint8), 40, axis=0), 50, axis=1)


def located(codes, crs="EPSG:32721", pixel=30.0, corner=(500_000.0, 9_000_000.0)):
    transform = rasterio.Affine(pixel, 0.0, corner[0], 0.0, -pixel, corner[1])
    return xr.DataArray(codes, dims=("y", "x")).rio.write_crs(crs).rio.write_transform(transform)


def test_map_in_memory():
    display = ClassMapDisplay.from_raster(located(CODES), ax=Figure().subplots())
    assert display.classes_.tolist() == [1, 2, 3]
    drawn = display.image_.get_array()
    assert drawn.mask.sum() == 40 * 50
    length, bar = display.scale_bar_
    # 150 pixels of 30 m are 4.5 km; the longest round length up to 30 % of it.
    assert length == 1000.0
    assert bar.txt_label.get_text() == "1 km"
    shown = bar.size_bar.get_children()[0].get_width()
    assert shown == pytest.approx(1000.0 / 30.0, rel=2e-3)
    assert not display.ax_.get_xlabel()


def test_north_is_up_also_where_the_first_row_is_the_southernmost():
    south_up = located(CODES).rio.write_transform(rasterio.Affine(30.0, 0.0, 5e5, 0.0, 30.0, 8e6))
    display = ClassMapDisplay.from_raster(south_up, ax=Figure().subplots())
    whole = ClassMapDisplay.from_raster(located(CODES), ax=Figure().subplots())
    np.testing.assert_array_equal(display.image_.get_array()[::-1], whole.image_.get_array())


def test_written_map_brings_names_and_colours(tmp_path):
    legend = Legend(["water", "wood", "a $x$ b"], ["#123456", "#ABCDEF", "#00FF00"])
    write_map(tmp_path / "map.tif", located(CODES), names=legend)
    display = ClassMapDisplay.from_raster(tmp_path / "map.tif", ax=Figure().subplots())
    entries = display.ax_.get_legend()
    texts = [text.get_text() for text in entries.get_texts()]
    assert texts == ["1  water", "2  wood", "3  a $x$ b", "no class"]
    colours = [to_hex(patch.get_facecolor()).upper() for patch in entries.get_patches()]
    assert colours[:3] == legend.colors
    for code, colour in enumerate(legend.colors):
        row, column = np.argwhere(np.equal(CODES, code + 1))[0]
        rgba = display.image_.to_rgba(display.image_.get_array())[row, column]
        assert to_hex(rgba).upper() == colour
    other = ClassMapDisplay.from_raster(
        tmp_path / "map.tif", class_names=["a", "b", "c"], colors={1: "#FF0000", 2: "#00FF00", 3: "#0000FF"},
        ax=Figure().subplots(),
    )  # fmt: skip
    assert other.names == ["a", "b", "c"]
    assert other.colors == ["#FF0000", "#00FF00", "#0000FF"]


def test_degrees_are_metres_at_their_latitude():
    """At 60 degrees a degree of longitude is half as long as one of latitude."""
    found = small_map(located(CODES, "EPSG:4326", 0.001, (20.0, 60.04)), 1000)
    height, width = found.cell_size
    assert height == pytest.approx(111.4, rel=0.002)
    assert width == pytest.approx(55.8, rel=0.002)
    display = ClassMapDisplay.from_raster(
        located(CODES, "EPSG:4326", 0.001, (20.0, 60.04)), ax=Figure().subplots()
    )
    assert display.ax_.get_aspect() == pytest.approx(height / width)


@pytest.mark.parametrize("written", [False, True])
def test_large_maps_are_thinned(tmp_path, written):
    codes = (1 + np.arange(120)[:, np.newaxis] // 40 + 0 * np.arange(3500)).astype(np.uint8)
    raster = located(codes, pixel=10.0)
    if written:
        write_map(tmp_path / "map.tif", raster, names=["a", "b", "c"])
        raster = tmp_path / "map.tif"
    found = small_map(raster, 1500)
    assert found.codes.shape == (40, 1167)
    assert np.bincount(found.codes[:, 5]).tolist()[1:] in ([13, 14, 13], [14, 13, 13], [13, 13, 14])
    assert found.cell_size == pytest.approx((30.0, 30.0), rel=2e-3)


def test_no_crs_no_scale():
    bare = xr.DataArray(CODES, dims=("y", "x"))
    display = ClassMapDisplay.from_raster(bare, ax=Figure().subplots())
    assert display.scale_bar_ is None
    assert display.ax_.get_xlabel() == "column"


def test_confidence_is_no_map():
    with pytest.raises(ValueError, match="whole numbers, not float32; pass"):
        ClassMapDisplay.from_raster(located(CODES.astype(np.float32)))


def test_colours_of_labels():
    labels = np.array([["b", "a"], ["c", "c"]])
    display = ClassMapDisplay(labels, colors={"a": "#111111", "b": "#222222", "c": "#333333"}).plot(
        Figure().subplots()
    )
    assert to_hex(display.image_.to_rgba(display.image_.get_array())[0, 0]) == "#222222"
    with pytest.raises(ValueError, match="colors has no colour for 'c'; add it"):
        ClassMapDisplay(labels, colors={"a": "#111111", "b": "#222222"})
