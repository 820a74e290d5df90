"""Which rows belong together when samples are held out."""

from __future__ import annotations

import numpy as np
import pandas as pd
import rasterio
import xarray as xr
from scipy import ndimage

from linkwise.raster import training_rows

HEIGHT, WIDTH = 40, 55


def stack_of(n_bands=2):
    values = np.random.default_rng(0).normal(size=(n_bands, HEIGHT, WIDTH)) + 5.0
    transform = rasterio.Affine(30.0, 0.0, 500_000.0, 0.0, -30.0, 9_000_000.0)
    stack = xr.DataArray(values, dims=("band", "y", "x"), coords={"band": [f"b{k}" for k in range(n_bands)]})
    return stack.rio.write_crs("EPSG:32721").rio.write_transform(transform)


def test_patches_of_a_label_raster():
    """The same patches as scipy finds in each class, corners included."""
    stack = stack_of()
    codes = (np.random.default_rng(1).random((HEIGHT, WIDTH)) * 4).astype(np.uint8)
    labels = xr.DataArray(codes, dims=("y", "x")).rio.write_crs("EPSG:32721")
    labels = labels.rio.write_transform(stack.rio.transform())
    rows = training_rows(stack, labels)
    assert len(rows.y) == (codes > 0).sum()
    expected = np.zeros((HEIGHT, WIDTH), dtype=int)
    for code in (1, 2, 3):
        patches, count = ndimage.label(codes == code, structure=np.ones((3, 3)))
        expected[patches > 0] = patches[patches > 0] + expected.max()
        assert count > 1
    pairs = set(zip(expected[tuple(rows.pixels.T)].tolist(), rows.groups.tolist(), strict=True))
    assert (
        len(pairs) == len({one for one, _ in pairs}) == len({other for _, other in pairs}) == expected.max()
    )


def test_years_of_one_place():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(12, 2)) + 5.0, columns=["b0", "b1"])
    table["lon"], table["lat"] = np.repeat([1.0, 2.0, 2.0], 4), np.tile([5.0, 6.0], 6)
    table["class"] = np.tile(["a", "b"], 6)
    rows = training_rows(stack_of(), table, label="class", values=["b0", "b1"])
    places = table.groupby(["lon", "lat"]).ngroup()
    assert len(set(zip(places, rows.groups, strict=True))) == 4
    alone = training_rows(stack_of(), table[["b0", "b1", "class"]], label="class", values=["b0", "b1"])
    assert len(set(alone.groups.tolist())) == 12
