"""Maps on disk: complete, resumable, or not there at all."""

import os
import pickle
import signal
import subprocess
import sys
from xml.etree import ElementTree

import numpy as np
import pytest
import rasterio
import xarray as xr
from rasterio.windows import Window

from linkwise.raster import Legend, MapWriter, classify, fingerprint, iter_windows, read_stack, write_map
from tests import warm_python
from tests.raster.raster_cases import CRS, TRANSFORM, scene, write

NAMES = ["forest", "pasture & <grass>", "Água"]


@pytest.fixture
def stack(tmp_path):
    values, _ = scene((70, 90))
    values[:, :7, :9] = -1
    folder = tmp_path / "scene"
    folder.mkdir()
    return read_stack(write(folder / "scene.tif", values, nodata=-1))


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_map_opens_again_with_all_it_needs(tmp_path, stack, fitted):
    found = classify(stack, fitted)
    write_map(tmp_path / "out" / "map.tif", found, names=NAMES, colors=["#0072B2", "#E69F00", "#112233"])
    assert names_in(tmp_path / "out") == ["map.qml", "map.tif", "map.tif.aux.xml"]
    with rasterio.open(tmp_path / "out" / "map.tif") as file:
        assert file.crs == rasterio.CRS.from_user_input(CRS)
        assert file.transform == TRANSFORM
        assert file.nodata == 0
        assert file.profile["tiled"]
        assert file.compression.name == "deflate"
        assert file.descriptions == ("class", "confidence")
        assert file.units[1] == "percent"
        assert file.colormap(1)[1] == (0, 114, 178, 255)
        assert file.colormap(1)[3] == (0x11, 0x22, 0x33, 255)
        assert file.colorinterp[0] == rasterio.enums.ColorInterp.palette
        assert [file.tags(1)[f"class_{code}"] for code in (1, 2, 3)] == NAMES
        classes, confidence = file.read()
    np.testing.assert_array_equal(classes, found["classes"])
    expected = np.nan_to_num(100.0 * found["confidence"].values).round()
    np.testing.assert_array_equal(confidence, expected)
    assert (confidence[classes > 0] >= 33).all()


def test_names_reach_gdal_and_qgis(tmp_path, stack, fitted):
    write_map(tmp_path / "map.tif", classify(stack, fitted), names=NAMES)
    categories = ElementTree.parse(tmp_path / "map.tif.aux.xml").findall(".//Category")
    assert [category.text for category in categories] == ["no data", *NAMES]
    entries = ElementTree.parse(tmp_path / "map.qml").findall(".//paletteEntry")
    assert [(entry.get("value"), entry.get("label")) for entry in entries] == [
        (str(code), name) for code, name in enumerate(NAMES, start=1)
    ]
    assert [entry.get("color") for entry in entries] == Legend(NAMES).colors


@pytest.mark.parametrize("window", [16, 37, 64])
def test_windows_need_not_match_the_tiles(tmp_path, stack, fitted, window):
    with MapWriter(tmp_path / "map.tif", like=stack, legend=NAMES) as writer:
        parts = list(iter_windows(stack, fitted, window=window))
        for part in parts[::-1]:
            writer.write(*part)
        assert names_in(tmp_path) == [".map.tif.windows", "scene"]
    with rasterio.open(tmp_path / "map.tif") as file:
        np.testing.assert_array_equal(file.read(1), classify(stack, fitted)["classes"])


def test_many_classes_need_two_bytes(tmp_path, stack):
    codes = np.arange(70 * 90).reshape(70, 90) % 300 + 1
    classes = xr.DataArray(codes, dims=("y", "x"), coords={"y": stack["y"], "x": stack["x"]})
    write_map(tmp_path / "map.tif", classes.rio.write_crs(CRS), names=range(300))
    with rasterio.open(tmp_path / "map.tif") as file:
        assert file.count == 1
        assert file.dtypes == ("uint16",)
        np.testing.assert_array_equal(file.read(1), codes)
        assert file.transform == TRANSFORM


def test_nothing_is_overwritten_unasked(tmp_path, stack, fitted):
    found = classify(stack, fitted)
    (tmp_path / "map.qml").write_text("my own style")
    with pytest.raises(FileExistsError, match=r"map\.qml exists.*overwrite=True"):
        write_map(tmp_path / "map.tif", found, names=NAMES)
    assert names_in(tmp_path) == ["map.qml", "scene"]
    (tmp_path / "map.tif").write_text("mine")
    write_map(tmp_path / "map.tif", found, names=NAMES, overwrite=True)
    assert rasterio.open(tmp_path / "map.tif").count == 2


def test_bad_input_leaves_nothing(tmp_path, stack, fitted):
    found = classify(stack, fitted)
    with pytest.raises(ValueError, match="class 3 is not in the legend of 2"):
        write_map(tmp_path / "map.tif", found, names=NAMES[:2])
    with pytest.raises(ValueError, match=r"map\.png is no name of a GeoTIFF"):
        write_map(tmp_path / "map.png", found, names=NAMES)
    with pytest.raises(ValueError, match="two classes are named 'a'"):
        write_map(tmp_path / "map.tif", found, names=["a", "b", "a"])
    with pytest.raises(ValueError, match="no CRS"):
        write_map(tmp_path / "map.tif", found["classes"].drop_vars("spatial_ref"), names=NAMES)
    whole = found["classes"].values, found["confidence"].values
    with (
        pytest.raises(ValueError, match="shape"),
        MapWriter(tmp_path / "map.tif", like=stack, legend=NAMES) as w,
    ):
        w.write(Window(0, 0, 90, 70), *(part[:5] for part in whole))
    with (
        pytest.raises(ValueError, match="reaches over"),
        MapWriter(tmp_path / "map.tif", like=stack, legend=NAMES) as w,
    ):
        w.write(Window(1, 0, 90, 70), *whole)
    with (
        pytest.raises(ValueError, match="leave 90 pixels"),
        MapWriter(tmp_path / "map.tif", like=stack, legend=NAMES) as w,
    ):
        w.write(Window(0, 0, 90, 69), *(part[:69] for part in whole))
    codes = whole[0].astype(np.int64)
    codes[69, 89] = -1  # some programs write this for unknown
    for wrong, words in ((codes, "class -1 is none"), (0.5 * codes, "whole numbers, not float64")):
        with (
            pytest.raises(ValueError, match=words),
            MapWriter(tmp_path / "map.tif", like=stack, legend=NAMES) as w,
        ):
            w.write(Window(0, 0, 90, 70), wrong, whole[1])
    assert names_in(tmp_path) == ["scene"]


def interrupted(path, stack, parts=(), error=KeyboardInterrupt, names=NAMES, key="same"):
    """Write some windows, then fail; return the windows that were there before."""
    before = set()

    def run():
        with MapWriter(path, like=stack, legend=names, fingerprint=key) as writer:
            before.update(writer.done)
            for part in parts:
                writer.write(*part)
            raise error

    with pytest.raises(error):
        run()
    return before


def test_an_error_between_windows_leaves_nothing_and_ctrl_c_a_journal(tmp_path, stack, fitted):
    first = next(iter_windows(stack, fitted, window=32))
    interrupted(tmp_path / "map.tif", stack, [first], RuntimeError)
    assert names_in(tmp_path) == ["scene"]
    interrupted(tmp_path / "map.tif", stack, [first])
    assert names_in(tmp_path) == [".map.tif.windows", "scene"]
    # A file on a network that is away for a moment: the next run goes on, too.
    assert interrupted(tmp_path / "map.tif", stack, error=OSError) == {(0, 0)}
    assert interrupted(tmp_path / "map.tif", stack, error=RuntimeError) == {(0, 0)}
    assert names_in(tmp_path) == ["scene"]
    # Nothing could take this up.
    interrupted(tmp_path / "map.tif", stack, [first], key=None)
    assert names_in(tmp_path) == ["scene"]


def test_overviews_of_an_earlier_map_go_with_it(tmp_path, stack, fitted):
    found = classify(stack, fitted)
    write_map(tmp_path / "map.tif", found, names=NAMES)
    (tmp_path / "map.tif.ovr").write_text("old", encoding="utf-8")
    with pytest.raises(ValueError, match="not in the legend"):
        write_map(tmp_path / "map.tif", found, names=NAMES[:2], overwrite=True)
    assert "map.tif.ovr" in names_in(tmp_path)
    write_map(tmp_path / "map.tif", found, names=NAMES, overwrite=True)
    assert "map.tif.ovr" not in names_in(tmp_path)
    for name in ("map.tif", "map.qml", "map.tif.aux.xml"):
        (tmp_path / name).unlink()
    (tmp_path / "map.tif.ovr").write_text("of the user", encoding="utf-8")
    with pytest.raises(FileExistsError, match=r"map\.tif\.ovr exists"):
        write_map(tmp_path / "map.tif", found, names=NAMES)


def test_two_writers_of_one_map(tmp_path, stack):
    second = MapWriter(tmp_path / "map.tif", like=stack, legend=NAMES)
    with MapWriter(tmp_path / "map.tif", like=stack, legend=NAMES) as first:
        with pytest.raises(BlockingIOError, match="another run is writing"):
            second.__enter__()
        first.write(Window(0, 0, 90, 70), np.ones((70, 90)), np.ones((70, 90)))
    assert "map.tif" in names_in(tmp_path)


CHILD = """
import pickle, sys
from linkwise.raster import MapWriter, fingerprint, iter_windows, read_stack

folder, n_windows, smooth = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
stack = read_stack(folder + "/scene/scene.tif")
model = pickle.load(open(folder + "/scene/model", "rb"))
names = ["forest", "pasture & <grass>", "Água"]
key = fingerprint(stack, model, smooth=smooth, window=16)
with MapWriter(folder + "/map.tif", like=stack, legend=names, fingerprint=key) as writer:
    for part in iter_windows(stack, model, smooth=smooth, window=16, done=writer.done):
        writer.write(*part)
        n_windows -= 1
        if n_windows == 0:
            print("written", flush=True)
            sys.stdin.read()
"""


def test_a_killed_run_is_taken_up(tmp_path, stack, fitted):
    (tmp_path / "scene" / "model").write_bytes(pickle.dumps(fitted))
    child = warm_python.Popen(
        [sys.executable, "-c", CHILD, tmp_path, "11", "0.8"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert child.stdout.readline() == b"written\n"
    child.send_signal(signal.SIGKILL)
    child.wait()
    assert names_in(tmp_path) == [".map.tif.windows", "scene"]
    journal = tmp_path / ".map.tif.windows"
    # A power cut may tear the last record, or fill it with zeros.
    content = journal.read_bytes()
    journal.write_bytes(content[:-7])
    settings = {"smooth": 0.8, "window": 16}
    key = fingerprint(stack, fitted, **settings)
    seen = []
    with MapWriter(tmp_path / "map.tif", like=stack, legend=NAMES, fingerprint=key) as writer:
        assert len(writer.done) == 10
        for part in iter_windows(stack, fitted, done=writer.done, **settings):
            seen.append(part[0])
            writer.write(*part)
    assert len(seen) == 5 * 6 - 10
    assert names_in(tmp_path) == ["map.qml", "map.tif", "map.tif.aux.xml", "scene"]
    with rasterio.open(tmp_path / "map.tif") as file:
        np.testing.assert_array_equal(file.read(1), classify(stack, fitted, **settings)["classes"])


@pytest.mark.parametrize("change", ["fingerprint", "names", "damage"])
def test_another_run_is_not_taken_up(tmp_path, stack, fitted, change):
    interrupted(tmp_path / "map.tif", stack, iter_windows(stack, fitted, window=32))
    if change == "damage":
        journal = tmp_path / ".map.tif.windows"
        content = bytearray(journal.read_bytes())
        content[len(content) // 2] ^= 1
        journal.write_bytes(content)
    names = NAMES[::-1] if change == "names" else NAMES
    key = "other" if change == "fingerprint" else "same"
    found = interrupted(tmp_path / "map.tif", stack, names=names, key=key)
    assert 0 < len(found) < 9 if change == "damage" else not found


def test_the_fingerprint_knows_what_matters(tmp_path, stack, fitted):
    key = fingerprint(stack, fitted)
    assert key == fingerprint(
        read_stack(tmp_path / "scene" / "scene.tif"), pickle.loads(pickle.dumps(fitted))
    )
    others = {fingerprint(stack, fitted, smooth=0.8), fingerprint(stack, fitted, window=64)}
    others |= {fingerprint(stack[:, 1:], fitted), fingerprint(stack[::-1], fitted)}
    others |= {fingerprint(stack.load(), fitted), fingerprint(stack + 1, fitted)}
    os.utime(tmp_path / "scene" / "scene.tif", ns=(1, 1))
    others.add(fingerprint(read_stack(tmp_path / "scene" / "scene.tif"), fitted))
    assert len(others - {key}) == 7


FULL_DISK = """
import resource, sys
import numpy as np, xarray as xr
from linkwise.raster import MapWriter
from rasterio.windows import Window

rng = np.random.default_rng(0)
stack = xr.DataArray(np.zeros((1, 512, 512), dtype=np.uint8), dims=("band", "y", "x"))
stack = stack.assign_coords(x=np.arange(512.0), y=np.arange(512.0)[::-1]).rio.write_crs("EPSG:32721")
for limits in ((100_000, -1), (-1, 100_000)):
    try:
        with MapWriter(sys.argv[1], like=stack, legend=range(200)) as writer:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limits[0], -1))
            for row in range(0, 512, 64):
                writer.write(Window(0, row, 512, 64), rng.integers(1, 200, (64, 512)), rng.random((64, 512)))
            resource.setrlimit(resource.RLIMIT_FSIZE, (limits[1], -1))
    except OSError as error:
        print(error)
    else:
        print("written")
"""


def test_a_full_disk_leaves_nothing(tmp_path):
    """A limit of the size of files, which both exceed, first stops the journal, then the GeoTIFF."""
    run = warm_python.run([sys.executable, "-c", FULL_DISK, tmp_path / "map.tif"])
    assert run.returncode == 0, run.stderr
    assert len(run.stdout.splitlines()) == 2
    for line in run.stdout.splitlines():
        assert "map.tif could not be written" in line
        assert "is the disk full?" in line
    assert names_in(tmp_path) == []
