"""Indian Pines as a GeoTIFF: from the file to a map whose legend is finer than that of the samples."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import rasterio
import xarray as xr
from typer.testing import CliRunner

from linkwise.cli.app import app
from linkwise.raster import write_map

DATA = Path(os.environ.get("LINKWISE_DATA", "")) / "indian_pines.npz"
BANDS = [16, 31, 61, 111, 171]
#: Two classes that get one name.
MERGED = ("Hay-windrowed", "Wheat")


@pytest.mark.skipif(not DATA.is_file(), reason="indian_pines.npz is not in the folder named by LINKWISE_DATA")
def test_hay_and_wheat_are_told_apart_again(tmp_path):
    with np.load(DATA, allow_pickle=False) as stored:
        cube, truth, names = stored["X"], stored["gt"], stored["class_names"].tolist()
    transform = rasterio.Affine(20.0, 0.0, 500_000.0, 0.0, -20.0, 4_480_000.0)
    profile = {
        "count": 200,
        "height": 145,
        "width": 145,
        "dtype": "uint16",
        "tiled": True,
        "compress": "deflate",
    }
    profile |= {"blockxsize": 64, "blockysize": 64, "interleave": "pixel", "zlevel": 1}
    with rasterio.open(tmp_path / "pines.tif", "w", crs="EPSG:32616", transform=transform, **profile) as file:
        file.write(np.moveaxis(cube, 2, 0))
    coarse = ["harvested" if name in MERGED else name for name in names[1:]]
    distinct = list(dict.fromkeys(coarse))
    codes = np.array([0, *(1 + distinct.index(name) for name in coarse)], dtype=np.uint8)[truth]
    labels = xr.DataArray(codes, dims=("y", "x")).rio.write_crs("EPSG:32616").rio.write_transform(transform)
    write_map(tmp_path / "labels.tif", labels, names=distinct)
    beliefs = pd.DataFrame(2.0 * np.eye(15) - 1.0, index=distinct, columns=distinct)
    beliefs.loc["harvested", "harvested"] = 0.1
    beliefs.to_csv(tmp_path / "beliefs.csv", index_label="class")
    arguments = ["map", tmp_path / "pines.tif", "--samples", tmp_path / "labels.tif", "--per-class", 240]
    arguments += ["--bands", ",".join(map(str, BANDS)), "--beliefs", tmp_path / "beliefs.csv", "--repeats", 1]
    arguments += ["--window", 64, "-o", tmp_path / "map.tif", "--json"]
    result = CliRunner().invoke(app, list(map(str, arguments)))
    assert result.exit_code == 0, result.output
    record = json.loads(result.stdout)
    assert {"harvested (a)", "harvested (b)", "Woods", "Oats"} <= set(record["legend"])
    assert "harvested" not in record["legend"]
    with rasterio.open(tmp_path / "map.tif") as file:
        assert file.crs.to_epsg() == 32616
        assert file.transform == transform
        assert file.shape == (145, 145)
        found = file.read(1)
        told = {int(key[6:]): name for key, name in file.tags(1).items() if key.startswith("class_")}
    assert [told[code] for code in sorted(told)] == record["legend"]
    # Every part is hay or wheat, on the pixels of both, most of which were not fitted.
    parts = [code for code, name in told.items() if name.startswith("harvested")]
    counts = np.array(
        [[np.sum(found[truth == names.index(name)] == code) for name in MERGED] for code in parts]
    )
    assert set(counts.argmax(axis=1).tolist()) == {0, 1}
    assert counts.max(axis=1).sum() > 0.98 * counts.sum()
    assert counts.sum() > 0.95 * np.isin(truth, [names.index(name) for name in MERGED]).sum()
    # The other classes keep their names and places.
    woods = truth == names.index("Woods")
    assert np.mean(found[woods] == record["legend"].index("Woods") + 1) > 0.8
