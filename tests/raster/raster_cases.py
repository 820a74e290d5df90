"""Scenes that tests write as real files."""

import numpy as np
import rasterio

CRS = "EPSG:32721"
TRANSFORM = rasterio.Affine(30.0, 0.0, 600_000.0, 0.0, -30.0, 8_700_000.0)


def write(path, values, *, crs=CRS, transform=TRANSFORM, nodata=None, names=None, **options):
    """Write (bands, height, width) as a raster."""
    values = np.asarray(values)
    count, height, width = values.shape
    with rasterio.open(
        path, "w", count=count, height=height, width=width, dtype=values.dtype, crs=crs, transform=transform,
        nodata=nodata, **options,
    ) as file:  # fmt: skip
        file.write(values)
        for number, name in enumerate(names or [], start=1):
            file.set_band_description(number, name)
    return path


def scene(shape=(60, 80), n_bands=4, n_classes=3, seed=0, noise=60.0, patch=12):
    """Bands of int16 and the true classes from 0: square patches of classes, and noise."""
    rng = np.random.default_rng(seed)
    height, width = shape
    coarse = rng.integers(n_classes, size=(-(-height // patch), -(-width // patch)))
    truth = coarse.repeat(patch, axis=0).repeat(patch, axis=1)[:height, :width]
    centres = np.random.default_rng(99).uniform(500, 900, size=(n_classes, n_bands))
    values = centres[truth].transpose(2, 0, 1) + rng.normal(scale=noise, size=(n_bands, *shape))
    return values.round().astype(np.int16), truth
