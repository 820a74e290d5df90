"""Training rows from points, polygons, label rasters and tables with band values."""

import numpy as np
import pandas as pd
import pyogrio
import pytest
import rasterio
import shapely
import xarray as xr
from pyproj import Transformer
from rasterio.features import rasterize

from linkwise.raster import read_stack, training_rows
from linkwise.raster.samples import _pixel_values
from tests.raster.raster_cases import CRS, TRANSFORM, scene, write

SHAPE = (300, 280)


@pytest.fixture(scope="module")
def values():
    found = scene(SHAPE, n_bands=3)[0]
    found[:, 200:210, :] = -1
    return found


@pytest.fixture(scope="module")
def stack(values, tmp_path_factory):
    return read_stack(write(tmp_path_factory.mktemp("scene") / "scene.tif", values, nodata=-1))


def centre(row, column):
    """Coordinates of the centre of a pixel."""
    return TRANSFORM.c + 30.0 * (column + 0.5), TRANSFORM.f - 30.0 * (row + 0.5)


def box(top, left, bottom, right, inset=0.1):
    """A polygon around pixels, smaller by a tenth of a pixel."""
    x = TRANSFORM.c + 30.0 * np.array([left + inset, right - inset])
    y = TRANSFORM.f - 30.0 * np.array([bottom - inset, top + inset])
    return shapely.box(x[0], y[0], x[1], y[1])


def vector(path, shapes, classes, crs=CRS, column="class"):
    kind = shapes[0].geom_type
    pyogrio.raw.write(
        path, shapely.to_wkb(np.array(shapes)), [np.array(classes, dtype=object)], [column], crs=crs,
        geometry_type=kind,
    )  # fmt: skip
    return path


def lon_lat(x, y):
    return Transformer.from_crs(CRS, "EPSG:4326", always_xy=True).transform(x, y)


PIXELS = [(3, 4), (299, 279), (0, 0), (150, 20), (151, 20), (90, 260)]


def points_frame(pixels=PIXELS, degrees=False):
    x, y = np.array([centre(*pixel) for pixel in pixels]).T
    if degrees:
        x, y = lon_lat(x, y)
    names = ("lon", "lat") if degrees else ("x", "y")
    return pd.DataFrame({names[0]: x, names[1]: y, "class": ["a", "b"] * (len(pixels) // 2)})


@pytest.mark.parametrize(
    ("kind", "degrees"),
    [("frame", False), ("frame", True), ("csv", True), ("gpkg", False), ("gpkg", True), ("geojson", True)],
)
def test_points(tmp_path, stack, values, kind, degrees):
    frame = points_frame(degrees=degrees)
    samples = frame
    if kind == "csv":
        samples = tmp_path / "points.csv"
        frame.to_csv(samples, index=False)
    elif kind != "frame":
        shapes = [shapely.Point(*place) for place in frame.iloc[:, :2].to_numpy()]
        samples = vector(tmp_path / f"p.{kind}", shapes, frame["class"], "EPSG:4326" if degrees else CRS)
    rows = training_rows(stack, samples, label="class")
    assert rows.pixels.tolist() == [list(pixel) for pixel in PIXELS]
    assert rows.y.tolist() == ["a", "b"] * 3
    np.testing.assert_array_equal(rows.X, [values[:, row, column] for row, column in PIXELS])
    assert rows.skipped == []


def test_tables_are_read_as_by_every_command(tmp_path, stack):
    """Lines with a cell too many had their cells one column to the left, the first one left out."""
    path, frame = tmp_path / "points.csv", points_frame()
    lines = ["x,y,class", *(f"{row.x},{row.y},{row[3]},seen" for row in frame.itertuples())]
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(ValueError, match="more cells than the first line has names"):
        training_rows(stack, path, label="class")
    frame.to_csv(path, index=False, sep=";")
    with pytest.raises(ValueError, match="separated by semicolons"):
        training_rows(stack, path, label="class")
    # Names of classes stay as they are written, but whole numbers beside gaps are whole numbers.
    for told, names in ((["NA", "007", ""] * 2, ["NA", "007"]), (["1.0", "2.0", ""] * 2, ["1", "2"])):
        frame.assign(**{"class": told}).to_csv(path, index=False)
        rows = training_rows(stack, path, label="class")
        assert sorted(set(rows.y.tolist())) == sorted(names)
        assert rows.skipped == ["2 samples without a class"]


def test_columns_and_crs_of_points(stack):
    frame = points_frame(degrees=True).rename(columns={"lon": "east", "lat": "north"})
    rows = training_rows(stack, frame, label="class", x="east", y="north", crs="EPSG:4326")
    assert rows.pixels.tolist() == [list(pixel) for pixel in PIXELS]
    with pytest.raises(ValueError, match=r"east and north look like degrees.*crs=\"EPSG:4326\""):
        training_rows(stack, frame, label="class", x="east", y="north")
    with pytest.raises(
        ValueError, match="no column 'easting' in the samples; name one of east, north, class"
    ):
        training_rows(stack, frame, label="class", x="easting", y="north")
    with pytest.raises(ValueError, match="x and y belong together"):
        training_rows(stack, frame, label="class", x="east")
    with pytest.raises(ValueError, match="no columns lon/lat or x/y, but east, north, class"):
        training_rows(stack, frame, label="class")
    with pytest.raises(ValueError, match="'EPSG:nowhere' is no CRS"):
        training_rows(stack, frame, label="class", x="east", y="north", crs="EPSG:nowhere")


def test_points_outside(tmp_path, stack):
    frame = points_frame([*PIXELS, (-1, 5), (10, 280)])
    path = tmp_path / "points.csv"
    frame.to_csv(path, index=False)
    with pytest.raises(ValueError, match=r"lines 8, 9 of the samples outside the raster \(2 of 8\)"):
        training_rows(stack, path, label="class")
    rows = training_rows(stack, path, label="class", outside="skip")
    assert rows.skipped == ["lines 8, 9 outside the raster"]
    assert len(rows.y) == 6
    swapped = points_frame(degrees=True).rename(columns={"lon": "lat", "lat": "lon"})
    for outside in ("raise", "skip"):
        with pytest.raises(ValueError, match=r"all 6 samples .*longitude and latitude swapped\?"):
            training_rows(stack, swapped, label="class", outside=outside)


def test_points_that_are_not_usable(stack):
    frame = points_frame()
    frame.loc[2, "class"] = None
    frame.loc[3, "class"] = "  "
    assert training_rows(stack, frame, label="class").skipped == ["2 samples without a class"]
    missing = frame.assign(**{"class": frame["class"].astype("string")})
    assert training_rows(stack, missing, label="class").skipped == ["2 samples without a class"]
    frame.loc[4, "x"] = np.nan
    with pytest.raises(ValueError, match="row 4 of the samples: no number in x or y"):
        training_rows(stack, frame, label="class")
    with pytest.raises(ValueError, match="no column 'klass' in the samples; name one of x, y, class"):
        training_rows(stack, frame, label="klass")
    with pytest.raises(ValueError, match="label is missing"):
        training_rows(stack, frame)
    with pytest.raises(ValueError, match="no sample has a class"):
        training_rows(stack, points_frame().assign(**{"class": None}), label="class")


def test_two_classes_at_one_pixel(stack):
    frame = points_frame([*PIXELS, (3, 4), (3, 4)])
    with pytest.raises(ValueError, match=r"row 6 \(a\) and row 7 \(b\) overlap at pixel \(row 3, column 4\)"):
        training_rows(stack, frame, label="class")
    frame["class"] = "a"
    assert len(training_rows(stack, frame, label="class").y) == 6  # one class twice is one pixel


def test_pixels_without_data_and_too_few(stack):
    frame = points_frame([(3, 4), (5, 5), (205, 3), (9, 9)])
    rows = training_rows(stack, frame, label="class", min_pixels=1)
    assert rows.skipped == ["1 pixels without data (row 2)"]
    with pytest.raises(ValueError, match="classes with fewer than 2 pixels: 'a' 1; add samples"):
        training_rows(stack, frame, label="class")
    with pytest.raises(ValueError, match="all samples lie on pixels without data"):
        training_rows(stack, points_frame([(205, 3), (206, 3)]), label="class")


@pytest.mark.parametrize("suffix", ["gpkg", "shp", "geojson"])
@pytest.mark.parametrize("all_touched", [False, True])
def test_polygons(tmp_path, stack, values, suffix, all_touched):
    """Compared with all polygons drawn on the whole grid at once."""
    # Not on a centre: GeoJSON rounds to a centimetre, and no centre of a pixel may be that near.
    middle = shapely.Point(*np.add(centre(100, 120), (7.0, 3.0)))
    ring = middle.buffer(700.0).difference(middle.buffer(200.0))
    edge = shapely.Point(*np.add(centre(2, 278), (7.0, 3.0))).buffer(300.0)
    shapes, classes = [box(10, 10, 20, 25), ring, edge], ["wood", "water", "wood"]
    written, crs = shapes, CRS
    if suffix == "geojson":
        written = [shapely.transform(shape, lambda c: np.column_stack(lon_lat(*c.T))) for shape in shapes]
        crs = "EPSG:4326"
    path = vector(tmp_path / f"p.{suffix}", written, classes, crs)
    rows = training_rows(stack, path, label="class", all_touched=all_touched)
    numbered = [(shape, number) for number, shape in enumerate(shapes, start=1)]
    drawn = rasterize(numbered, out_shape=SHAPE, transform=TRANSFORM, all_touched=all_touched)
    expected = np.argwhere(drawn > 0)
    order = np.lexsort(rows.pixels.T[::-1])
    np.testing.assert_array_equal(rows.pixels[order], expected)
    np.testing.assert_array_equal(rows.groups[order] + 1, drawn[tuple(expected.T)])
    np.testing.assert_array_equal(rows.y, np.array(classes)[rows.groups])
    np.testing.assert_array_equal(rows.X, values[:, *rows.pixels.T].T)


def test_bad_polygons(tmp_path, stack):
    overlapping = vector(
        tmp_path / "a.gpkg",
        [box(0, 0, 9, 9), box(50, 50, 60, 60), box(8, 8, 12, 12)],
        ["wood", "wood", "water"],
    )
    with pytest.raises(
        ValueError, match=r"feature 1 \(wood\) and feature 3 \(water\) overlap .*row 8, column 8"
    ):
        training_rows(stack, overlapping, label="class")
    with pytest.raises(ValueError, match=r"no column 'klass' in .*a\.gpkg; name one of class"):
        training_rows(stack, overlapping, label="klass")
    outside = vector(tmp_path / "b.gpkg", [box(0, 0, 9, 9), box(400, 50, 410, 60)], ["wood", "water"])
    with pytest.raises(ValueError, match=r"feature 2 of the samples outside the raster \(1 of 2\)"):
        training_rows(stack, outside, label="class")
    with pytest.raises(ValueError, match="'water' 0"):  # a class must not be lost in silence
        training_rows(stack, outside, label="class", outside="skip")
    away = vector(tmp_path / "c.gpkg", [box(400, 50, 410, 60)] * 2, ["wood", "water"])
    with pytest.raises(ValueError, match="all 2 samples"):
        training_rows(stack, away, label="class")
    with pytest.warns(UserWarning, match="crs"):
        bare = vector(tmp_path / "d.gpkg", [box(0, 0, 9, 9)], ["wood"], crs=None)
    with pytest.raises(ValueError, match=r"d\.gpkg has no CRS"):
        training_rows(stack, bare, label="class")
    assert len(training_rows(stack, bare, label="class", crs=CRS).y) == 81
    lines = vector(tmp_path / "e.gpkg", [shapely.LineString([centre(0, 0), centre(5, 5)])], ["wood"])
    with pytest.raises(ValueError, match=r"feature 1 of .*e\.gpkg is a LineString"):
        training_rows(stack, lines, label="class")
    thin_one = shapely.box(*(np.array(centre(30, 30)) + 5), *(np.array(centre(30, 30)) + 9))
    thin = vector(tmp_path / "g.gpkg", [box(0, 0, 9, 9), thin_one], ["wood", "wood"])
    assert "feature 2 without a pixel centre inside" in training_rows(stack, thin, label="class").skipped[0]
    assert len(training_rows(stack, thin, label="class", all_touched=True).y) == 82
    (tmp_path / "text.gpkg").write_text("no samples")
    with pytest.raises(ValueError, match=r"text\.gpkg is no file of samples"):
        training_rows(stack, tmp_path / "text.gpkg", label="class")
    with pytest.raises(FileNotFoundError, match=r"absent\.gpkg"):
        training_rows(stack, tmp_path / "absent.gpkg", label="class")


def test_label_rasters(tmp_path, stack, values):
    codes = np.zeros(SHAPE, dtype=np.uint8)
    codes[5:9, 7:30], codes[100:120, 250:280], codes[50, 50] = 1, 4, 255
    path = write(tmp_path / "labels.tif", codes[np.newaxis], nodata=255)
    rows = training_rows(stack, path, names={4: "water"})
    np.testing.assert_array_equal(rows.pixels, np.argwhere((codes > 0) & (codes < 255)))
    assert set(rows.y) == {"1", "water"}
    np.testing.assert_array_equal(rows.X, values[:, *rows.pixels.T].T)
    few = training_rows(stack, path, max_per_class=10)
    assert sorted(few.y) == ["1"] * 10 + ["4"] * 10
    with pytest.raises(ValueError, match="write whole numbers"):
        training_rows(stack, write(tmp_path / "half.tif", codes[np.newaxis] / 2.0))
    with pytest.raises(ValueError, match="no class inside the raster"):
        training_rows(stack, write(tmp_path / "none.tif", 0 * codes[np.newaxis]))
    with pytest.raises(ValueError, match=r"two\.tif has 2 bands"):
        training_rows(stack, write(tmp_path / "two.tif", np.stack([codes, codes])))


def test_a_label_array_of_one_row(stack):
    row = stack[:, 3:4, :20].load()
    labels = row[:1].copy(data=np.repeat([[[1, 2]]], 10, axis=2).astype(np.int16))
    del labels.attrs["nodatavals"]
    for shaped in (labels, labels.squeeze("band", drop=True), labels.squeeze("band", drop=True).T):
        assert sorted(training_rows(row, shaped).y) == ["1"] * 10 + ["2"] * 10


@pytest.mark.parametrize("kind", ["file", "array"])
def test_label_rasters_on_another_grid(tmp_path, stack, kind):
    """Degrees, half of the scene: compared with the code at the centre of each pixel."""
    west, north = lon_lat(TRANSFORM.c, TRANSFORM.f)
    step = 0.0004
    transform = rasterio.Affine(step, 0, west, 0, -step, north)
    codes = np.random.default_rng(0).integers(1, 4, size=(120, 110)).astype(np.uint8)
    path = write(tmp_path / "labels.tif", codes[np.newaxis], crs="EPSG:4326", transform=transform)
    samples = path
    if kind == "array":
        x = west + step * (np.arange(110) + 0.5)
        y = north - step * (np.arange(120) + 0.5)
        samples = xr.DataArray(codes, dims=("y", "x"), coords={"y": y, "x": x}).rio.write_crs("EPSG:4326")
    rows = training_rows(stack, samples, min_pixels=1)
    lon, lat = lon_lat(*np.array([centre(*pixel) for pixel in rows.pixels]).T)
    there = codes[np.floor((north - lat) / step).astype(int), np.floor((lon - west) / step).astype(int)]
    assert len(rows.y) > 10_000
    assert (rows.y == there.astype(str)).mean() > 0.98  # the warp of GDAL is exact to an eighth of a pixel


def test_samples_with_band_values(stack):
    names = [str(name) for name in stack["band"].values]
    frame = pd.DataFrame(np.full((6, 3), 700.0) + np.arange(6)[:, np.newaxis], columns=names)
    frame["class"] = ["a", "b"] * 3
    rows = training_rows(stack, frame, label="class")  # no coordinates: columns have the names of the bands
    np.testing.assert_array_equal(rows.X, frame[names])
    assert (rows.pixels == -1).all()
    renamed = frame.rename(columns=dict(zip(names, "uvw", strict=True)))
    np.testing.assert_array_equal(
        training_rows(stack, renamed, label="class", values=["w", "v", "u"]).X, rows.X[:, ::-1]
    )
    small = renamed.assign(u=renamed.u / 1e4, v=renamed.v / 1e4, w=renamed.w / 1e4)
    for factor in (0.0, float("nan")):
        with pytest.raises(ValueError, match="factor is"):
            training_rows(stack, small, label="class", values=["u", "v", "w"], factor=factor)
    with pytest.raises(ValueError, match="pass factor=10000"):
        training_rows(stack, small, label="class", values=["u", "v", "w"])
    np.testing.assert_allclose(
        training_rows(stack, small, label="class", values=["u", "v", "w"], factor=10_000).X, rows.X
    )
    renamed.loc[1, "v"] = np.nan
    assert (
        "row 1, column v" in training_rows(stack, renamed, label="class", values=["u", "v", "w"]).skipped[0]
    )
    with pytest.raises(ValueError, match="values names 2 columns, but the stack has 3 bands"):
        training_rows(stack, renamed, label="class", values=["u", "v"])
    with pytest.raises(ValueError, match="no column 'z'"):
        training_rows(stack, renamed, label="class", values=["u", "v", "z"])


def test_values_of_pixels_in_any_order(stack, values):
    pixels = np.random.default_rng(0).permutation(SHAPE[0] * SHAPE[1])[:5000]
    from linkwise.raster.grid import grid_of

    X, valid = _pixel_values(stack, grid_of(stack), pixels)
    expected = values.reshape(3, -1)[:, pixels].T
    np.testing.assert_array_equal(X, expected)
    np.testing.assert_array_equal(valid, (expected != -1).all(axis=1))
