"""The experiment on Sinop: legends are compared on the same samples, and every measure is what it says."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import rasterio

from experiments.framework.data_files import DataMissing
from experiments.maps import sinop

DATES = 12


@pytest.fixture
def data(tmp_path, monkeypatch):
    """Samples and images of the same form, whose four classes are far apart."""
    rng = np.random.default_rng(0)
    names = np.array(["Cerrado", "Forest", "Pasture", "Soy_Corn"])
    means = 0.3 + 0.5 * rng.random((4, DATES))
    codes = np.repeat(np.arange(4), 60)
    folder = tmp_path / "sinop"
    folder.mkdir()
    columns = [f"ndvi_{date + 1:02d}" for date in range(DATES)]
    table = pd.DataFrame(means[codes] + rng.normal(0, 0.03, (240, DATES)), columns=columns)
    table.insert(0, "longitude", np.arange(240) // 2)
    table.insert(1, "latitude", 0.0)
    table.assign(label=names[codes]).to_csv(folder / "samples_modis_ndvi.csv.gz", index=False)
    truth = np.arange(12)[:, np.newaxis] // 3 + 0 * np.arange(16)
    transform = rasterio.Affine(0.1, 0.0, -55.0, 0.0, -0.1, -11.0)
    for date in range(DATES):
        image = (10_000 * (means[truth, date] + rng.normal(0, 0.03, truth.shape))).astype(np.int16)
        profile = {"count": 1, "height": 12, "width": 16, "dtype": "int16", "driver": "JP2OpenJPEG"}
        path = folder / f"NDVI_2013-{date + 1:02d}-14.jp2"
        with rasterio.open(
            path, "w", crs="EPSG:4326", transform=transform, QUALITY=100, REVERSIBLE="YES", **profile
        ) as file:
            file.write(image, 1)
    places = {"longitude": -55.0 + 0.05 + 0.1 * np.arange(4), "latitude": -11.05 - 0.3 * np.arange(4)}
    pd.DataFrame({**places, "label": names}).to_csv(folder / "samples_sinop_crop.csv", index=False)
    monkeypatch.setenv("LINKWISE_DATA", str(tmp_path))
    sinop._fitted.cache_clear()
    sinop._stack.cache_clear()
    yield tmp_path
    sinop._fitted.cache_clear()
    sinop._stack.cache_clear()


def test_pasture_and_soy_are_told_apart(data):
    rows = {row["method"]: row for row in sinop.sinop_legend(0, "pasture and soy")}
    assert list(rows) == [sinop.COARSE, sinop.NEW, sinop.TOLD]
    assert [row["clusters"] for row in rows.values()] == [3, 4, 4]
    assert rows[sinop.COARSE]["ari"] < 0.8
    assert rows[sinop.COARSE]["within"] == 0.0
    assert rows[sinop.NEW]["ari"] == rows[sinop.NEW]["within"] == rows[sinop.TOLD]["held_out"] == 1.0
    # Soy is mapped as pasture, or pasture as soy: 3 of the 12 lines of the map, and one of the four points.
    assert rows[sinop.COARSE]["map"] == pytest.approx(0.75, abs=0.03)
    assert rows[sinop.NEW]["map"] > 0.98
    assert [row["points"] for row in rows.values()] == [3, 4, 4]


def test_data_are_named_if_missing(monkeypatch, tmp_path):
    monkeypatch.setenv("LINKWISE_DATA", str(tmp_path))
    sinop._fitted.cache_clear()
    with pytest.raises(DataMissing, match="modis_matogrosso"):
        sinop.sinop_legend(0, "four soy rotations")
