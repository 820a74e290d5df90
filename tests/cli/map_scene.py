"""A small scene whose classes are known, with samples under a legend that is too coarse."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
import rasterio

from linkwise.cli.map import classifier
from tests.repeats import LONG

TRANSFORM = rasterio.Affine(30.0, 0.0, 500_000.0, 0.0, -30.0, 9_000_000.0)
CRS = "EPSG:32721"
NAMES = ("crops", "forest", "pasture", "water")
#: What the four true classes are called in the samples: crops and pasture have one name.
GIVEN = {"crops": "open", "pasture": "open", "forest": "forest", "water": "water"}
NODATA = -9999
N_POINTS = 120
#: Rows and columns without data.
GAP = np.s_[0:6, 0:9]


@contextmanager
def two_folds() -> Iterator[None]:
    """Samples are held out in two folds in ``make test``: with five they were half of each run."""
    with pytest.MonkeyPatch.context() as patch:
        if not LONG:
            patch.setattr(classifier, "_FOLDS", 2)
        yield


class Scene(NamedTuple):
    """Files of the scene; ``truth`` (height, width) are numbers into NAMES."""

    folder: Path
    truth: np.ndarray

    @property
    def raster(self) -> Path:
        """Three bands, int16."""
        return self.folder / "scene.tif"

    @property
    def points(self) -> Path:
        """N_POINTS points in the coordinates of the raster."""
        return self.folder / "points.csv"

    @property
    def beliefs(self) -> Path:
        """Open may be several classes; all others stay."""
        return self.folder / "beliefs.csv"


def make_scene(folder: Path, shape: tuple[int, int] = (60, 90)) -> Scene:
    """Write the raster, points, polygons, and beliefs."""
    rng = np.random.default_rng(0)
    height, width = shape
    rows, columns = np.mgrid[:height, :width]
    truth = (rows // 20 + columns // 15) % 4
    means = np.array([[3000, 7000, 2000], [1000, 2500, 6000], [5000, 3500, 3000], [500, 400, 300]])
    values = means[truth] + rng.normal(0, 350, (height, width, 3))
    values = values.round().astype(np.int16)
    values[GAP] = NODATA
    profile = {"count": 3, "height": height, "width": width, "dtype": "int16", "nodata": NODATA}
    with rasterio.open(folder / "scene.tif", "w", crs=CRS, transform=TRANSFORM, **profile) as file:
        file.write(np.moveaxis(values, 2, 0))
        file.descriptions = ("red", "nir", "swir")
    free = np.argwhere(values[:, :, 0] != NODATA)
    chosen = free[rng.choice(len(free), N_POINTS, replace=False)]
    x = TRANSFORM.c + 30.0 * (chosen[:, 1] + rng.random(N_POINTS))
    y = TRANSFORM.f - 30.0 * (chosen[:, 0] + rng.random(N_POINTS))
    true = np.array(NAMES)[truth[chosen[:, 0], chosen[:, 1]]]
    given = pd.Series(true).map(GIVEN)
    pd.DataFrame({"x": x, "y": y, "label": given, "true": true}).to_csv(folder / "points.csv", index=False)
    (folder / "beliefs.csv").write_text(
        "class,forest,open,water\nforest,1,-1,-1\nopen,-1,0.1,-1\nwater,-1,-1,1\n", encoding="utf-8"
    )
    return Scene(folder, truth)


def write_polygons(scene: Scene, path: Path) -> None:
    """Write one square of 5 x 5 pixels inside each of the 18 patches, with the given class."""
    import pyogrio
    import shapely

    shapes, names = [], []
    for row in range(7, scene.truth.shape[0], 20):
        for column in range(5, scene.truth.shape[1], 15):
            if row < 6 and column < 9:
                continue
            left, top = TRANSFORM.c + 30.0 * column, TRANSFORM.f - 30.0 * row
            shapes.append(shapely.box(left, top - 150.0, left + 150.0, top))
            names.append(GIVEN[NAMES[scene.truth[row, column]]])
    pyogrio.raw.write(
        path, shapely.to_wkb(np.array(shapes)), [np.array(names, dtype=object)], ["kind"],
        geometry_type="Polygon", crs=CRS, driver="GPKG",
    )  # fmt: skip
