"""Stacks are read lazily; files that do not match are named."""

import numpy as np
import pytest
import rasterio

from linkwise.raster import read_stack
from tests.raster.raster_cases import CRS, TRANSFORM, scene, write


@pytest.fixture
def values():
    return scene()[0]


def test_one_file(tmp_path, values):
    path = write(tmp_path / "scene.tif", values, nodata=-1, names=["blue", "green", "red", "2013-09-14"])
    stack = read_stack(path)
    assert stack.dims == ("band", "y", "x")
    assert not stack.variable._in_memory
    assert stack["band"].values.tolist() == ["blue", "green", "red", "2013-09-14"]
    assert "date" not in stack.coords  # only one band has one
    assert stack.rio.crs == rasterio.CRS.from_user_input(CRS)
    assert stack.rio.transform() == TRANSFORM
    assert stack.rio.nodata == -1
    assert stack.dtype == np.int16
    np.testing.assert_array_equal(stack.values, values)
    assert float(stack["x"][0]) == TRANSFORM.c + 15.0
    assert float(stack["y"][-1]) == TRANSFORM.f - 30.0 * values.shape[1] + 15.0


@pytest.mark.parametrize(
    "key",
    [
        np.s_[:, 3:9, 5:7],
        np.s_[2, 4],
        np.s_[1:3, 10, :],
        np.s_[::2, ::7, ::-3],
        np.s_[::-1, 5:5, :],
        np.s_[[3, 0], [4, 4, 1], 2],
    ],
)
def test_every_kind_of_index(tmp_path, values, key):
    paths = [write(tmp_path / f"{k}.tif", band[np.newaxis]) for k, band in enumerate(values)]
    expected = (
        values[key] if not any(isinstance(part, list) for part in key) else values[np.ix_(*key[:2])][..., 2]
    )
    np.testing.assert_array_equal(read_stack(paths)[key].values, expected)


def test_files_of_a_pattern_come_by_name_with_dates(tmp_path, values):
    for day, band in zip((19, 3, 11, 27), values, strict=True):
        write(tmp_path / f"ndvi_201309{day:02}.tif", band[np.newaxis])
    stack = read_stack(tmp_path / "*.tif")
    assert stack["date"].dt.day.values.tolist() == [3, 11, 19, 27]
    np.testing.assert_array_equal(stack.values, values[[1, 2, 0, 3]])
    np.testing.assert_array_equal(read_stack(tmp_path / "*.tif", bands=[4, "ndvi_20130903"]), values[[3, 1]])


def test_jpeg_2000(tmp_path, values):
    path = tmp_path / "scene.jp2"
    write(path, values, driver="JP2OpenJPEG", QUALITY="100", REVERSIBLE="YES")
    np.testing.assert_array_equal(read_stack(path)[:, 5:20, 7:30].values, values[:, 5:20, 7:30])


def test_types_and_nodata_may_differ(tmp_path, values):
    a = write(tmp_path / "a.tif", values[:1], nodata=-9)
    b = write(tmp_path / "b.tif", values[:1].astype(np.float32) / 2, nodata=-5)
    stack = read_stack([b, a])
    assert stack.dtype == np.float32
    assert stack.attrs["nodatavals"] == [-5.0, -9.0]
    np.testing.assert_array_equal(stack.values, np.stack([values[0] / 2, values[0]]))


def test_only_windows_are_read(tmp_path):
    """Tiles that hold garbage do no harm as long as nobody asks for them."""
    path = write(
        tmp_path / "a.tif", np.ones((1, 64, 64), dtype=np.uint8), tiled=True, blockxsize=32, blockysize=32,
        compress="deflate",
    )  # fmt: skip
    with rasterio.open(path) as file:
        offset = int(file.get_tag_item("BLOCK_OFFSET_1_1", "TIFF", bidx=1))
    content = bytearray(path.read_bytes())
    content[offset : offset + 8] = b"garbage!"
    path.write_bytes(content)
    stack = read_stack(path)
    assert (stack[0, :32, :].values == 1).all()
    with pytest.raises(OSError, match=r"a\.tif cannot be read"):
        stack.values  # noqa: B018


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"values": np.ones((1, 60, 79), dtype=np.int16)}, "80 x 60 pixels, .*79 x 60"),
        ({"crs": "EPSG:32722"}, r"different CRS \(EPSG:32721, EPSG:32722\)"),
        ({"transform": TRANSFORM @ rasterio.Affine.translation(1, 0)}, "different transforms"),
        ({"transform": rasterio.Affine(30.1, 0, TRANSFORM.c, 0, -30, TRANSFORM.f)}, "different transforms"),
    ],
)
def test_files_that_do_not_match_are_named(tmp_path, values, change, message):
    first = write(tmp_path / "first.tif", values[:1])
    write(tmp_path / "second.tif", values[1:2])
    odd = write(tmp_path / "odd.tif", **{"values": values[:1], **change})
    with pytest.raises(ValueError, match=message) as caught:
        read_stack([first, tmp_path / "second.tif", odd])
    assert "first.tif" in str(caught.value)
    assert "odd.tif" in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_rounded_corners_are_the_same_place(tmp_path, values):
    a = write(tmp_path / "a.tif", values[:1])
    moved = TRANSFORM @ rasterio.Affine.translation(1e-6, -1e-6)
    assert read_stack([a, write(tmp_path / "b.tif", values[1:2], transform=moved)]).shape == (2, 60, 80)


@pytest.mark.filterwarnings("ignore::rasterio.errors.NotGeoreferencedWarning")
def test_other_bad_input(tmp_path, values):
    bare = write(tmp_path / "bare.tif", values, crs=None)
    with pytest.raises(ValueError, match=r"bare\.tif has no CRS"):
        read_stack(bare)
    assert read_stack(bare, crs="EPSG:32722").rio.crs.to_epsg() == 32722
    nowhere = write(tmp_path / "nowhere.tif", values, transform=rasterio.Affine.identity())
    with pytest.raises(ValueError, match=r"nowhere\.tif has no transform"):
        read_stack(nowhere)
    (tmp_path / "text.tif").write_text("no raster")
    with pytest.raises(ValueError, match=r"text\.tif is no raster"):
        read_stack(tmp_path / "text.tif")
    with pytest.raises(FileNotFoundError, match=r"absent\.tif does not exist"):
        read_stack(tmp_path / "absent.tif")
    with pytest.raises(FileNotFoundError, match="no file matches"):
        read_stack(tmp_path / "*.jp2")
    masked = write(tmp_path / "rgba.tif", values.astype(np.uint8), photometric="RGB", alpha="YES")
    with pytest.raises(ValueError, match=r"band 4 of .*rgba\.tif is marked as transparency"):
        read_stack(masked)
    assert read_stack(masked, bands=[1, 2, 3, 4]).shape == (4, 60, 80)
    with pytest.raises(ValueError, match="no raster was given"):
        read_stack([])
    good = write(tmp_path / "good.tif", values)
    with pytest.raises(ValueError, match="listed twice"):
        read_stack([good, good])
    with pytest.raises(ValueError, match="no band 'nir'"):
        read_stack(good, bands=["nir"])
    with pytest.raises(ValueError, match="no band 5"):
        read_stack(good, bands=[5])
    with pytest.raises(ValueError, match="band 'band_2' is named twice"):
        read_stack(good, bands=[2, "band_2"])
    for value in (1e9, float("inf"), 0.5):
        with pytest.raises(ValueError, match=r"nodata is .*, which bands of int16 cannot hold"):
            read_stack(good, nodata=value)
