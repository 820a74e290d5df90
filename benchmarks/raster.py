"""Maps: windows of a raster by a mixture, smoothing, and a whole scene of 20,000 x 20,000 pixels from disk.

Twelve bands of int16, ten classes in ragged patches, full covariances. The scene is an uncompressed tiled
GeoTIFF (9.6 GB) made of one repeated block; it is deleted afterwards. One thread.
"""

from __future__ import annotations

import os
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture
from threadpoolctl import threadpool_limits

from benchmarks._table import Measured, Table
from benchmarks._timing import best_of, in_child
from linkwise import PPC

#: Pixels along a side of the scene; fewer for a trial run: LINKWISE_RASTER_SIDE=4000.
SIDE = int(os.environ.get("LINKWISE_RASTER_SIDE", "20000"))
N_BANDS, N_CLASSES, BLOCK, WINDOW = 12, 10, 1024, 512
#: Bands and classes of the windows; the first is that of the target.
SHAPES = ((N_BANDS, N_CLASSES), (4, 5), (6, 20), (24, 10))
#: Noise in units of the spread of the class means.
NOISE = (0.6, 1.0, 1.5)
SMOOTH = 0.8


def _block(n_bands: int, n_classes: int, noise: float, side: int) -> tuple[Any, Any, Any]:
    """Pixels (bands, side, side), their classes, and the means of the classes."""
    rng = np.random.default_rng(0)
    patches = rng.integers(n_classes, size=(side // 16 + 1, side // 16 + 1)).repeat(16, 0).repeat(16, 1)
    row, column = np.mgrid[:side, :side] + rng.integers(-2, 3, size=(2, side, side))
    truth = patches[row.clip(0), column.clip(0)]
    means = 5000.0 + 1000.0 * rng.normal(size=(n_classes, n_bands))
    pixels = np.empty((n_bands, side, side), dtype=np.int16)
    for band in range(n_bands):
        values = means[truth, band] + 1000.0 * noise * rng.normal(size=(side, side))
        pixels[band] = values.round().clip(-32000, 32000)
    return pixels, truth, means


def _model(means: Any, noise: float) -> PPC:
    """A mixture with these means, fitted enough to be one."""
    n_classes, n_bands = means.shape
    rng = np.random.default_rng(1)
    codes = rng.integers(n_classes, size=20_000)
    rows = means[codes] + 1000.0 * noise * rng.normal(size=(len(codes), n_bands))
    precisions = np.tile(np.eye(n_bands) / (1000.0 * noise) ** 2, (n_classes, 1, 1))
    weights = np.full(n_classes, 1.0 / n_classes)
    start = {"means_init": means, "precisions_init": precisions, "weights_init": weights}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return PPC(n_classes, n_init=1, max_iter=1, random_state=0, **start).fit(rows)


def _peer(model: PPC) -> GaussianMixture:
    """The same mixture in scikit-learn."""
    peer = GaussianMixture(len(model.means_))
    for name in ("weights_", "means_", "covariances_", "precisions_cholesky_"):
        setattr(peer, name, getattr(model, name))
    return peer


def _megapixels(seconds: float, n_pixels: int) -> float:
    return n_pixels / seconds / 1e6


def windows_table() -> Table:
    from linkwise.raster.classify import _tile, pixel_model

    rows, measured = [], {}
    for n_bands, n_classes in SHAPES:
        pixels, _, means = _block(n_bands, n_classes, 1.0, WINDOW)
        model = _model(means, 1.0)
        prepared, peer = pixel_model(model, n_bands), _peer(model)
        valid = np.ones((WINDOW, WINDOW), dtype=bool)

        def ours(pixels: Any = pixels, prepared: Any = prepared, valid: Any = valid) -> Any:
            return _tile(pixels, valid, prepared, None, (0, 0))[0]

        def theirs(pixels: Any = pixels, peer: Any = peer) -> Any:
            return peer.predict(pixels.reshape(len(pixels), -1).T.astype(np.float64))

        seconds, found = best_of(ours, clock=time.thread_time)
        slow, expected = best_of(theirs, clock=time.thread_time)
        same = float((found.ravel() == expected + 1).mean())
        ratio = slow / seconds
        if not measured:
            measured["raster window"] = Measured(ratio)
        n_pixels = WINDOW**2
        rows.append(
            [n_bands, n_classes, _megapixels(seconds, n_pixels), _megapixels(slow, n_pixels), ratio, same]
        )
    return Table(
        f"Windows of {WINDOW} x {WINDOW} pixels in memory: megapixels per second",
        ["bands", "classes", "linkwise", "GaussianMixture.predict", "ratio", "same class"],
        rows,
        "Processor time, from int16 to classes; linkwise also gives the confidence.",
        measured,
    )


def _write_scene(path: Path, side: int, noise: float) -> Any:
    """Write the scene, block by block, and return the means of its classes."""
    import rasterio
    from rasterio.windows import Window

    pixels, _, means = _block(N_BANDS, N_CLASSES, noise, BLOCK)
    with rasterio.open(
        path, "w", driver="GTiff", width=side, height=side, count=N_BANDS, dtype="int16", crs="EPSG:32721",
        transform=rasterio.Affine(10, 0, 5e5, 0, -10, 9e6), tiled=True, blockxsize=256, blockysize=256,
        interleave="pixel", bigtiff="yes",
    ) as file:  # fmt: skip
        for row in range(0, side, BLOCK):
            for column in range(0, side, BLOCK):
                height, width = min(BLOCK, side - row), min(BLOCK, side - column)
                file.write(pixels[:, :height, :width], window=Window(column, row, width, height))
    return means


def _scan(path: str, model: PPC, side: int, smooth: float | None) -> float:
    """Processor seconds to read and classify a square of the scene, the best of three."""
    from linkwise.raster import iter_windows, read_stack

    with threadpool_limits(1):
        stack = read_stack(path)[:, :side, :side]
        for _ in iter_windows(stack[:, :600, :600], model, smooth=smooth):
            pass
        seconds = []
        for _ in range(3):
            start = time.process_time()
            for _ in iter_windows(stack, model, smooth=smooth, window=WINDOW):
                pass
            seconds.append(time.process_time() - start)
        return min(seconds)


def smoothing_table() -> Table:
    rows, worst = [], 0.0
    side = min(2048, SIDE)
    for noise in NOISE:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "scene.tif"
            model = _model(_write_scene(path, side, noise), noise)
            plain = _scan(str(path), model, side, None)
            smoothed = _scan(str(path), model, side, SMOOTH)
            right = _share_right(path, model, noise)
        added = smoothed / plain - 1.0
        worst = max(worst, added)
        n_pixels = side**2
        rows.append([noise, *right, _megapixels(plain, n_pixels), _megapixels(smoothed, n_pixels), added])
    return Table(
        f"Smoothing ({SMOOTH}), {side} x {side} pixels from disk: megapixels per second",
        ["noise", "right, plain", "right, smoothed", "plain", "smoothed", "added time / plain"],
        rows,
        "Processor time, reading included.",
        {"raster smoothing": Measured(worst)},
    )


def _share_right(path: Path, model: PPC, noise: float) -> list[float]:
    from linkwise.raster import classify, read_stack

    _, truth, _ = _block(N_BANDS, N_CLASSES, noise, BLOCK)
    stack = read_stack(path)[:, :BLOCK, :BLOCK]
    return [
        float((classify(stack, model, smooth=s)["classes"].values == truth + 1).mean())
        for s in (None, SMOOTH)
    ]


def _map(path: str, target: str, model: PPC, side: int, smooth: float | None) -> tuple[float, float, float]:
    """Seconds on the clock and of the processor for a whole map, and the peak memory in MiB."""
    from linkwise.raster import MapWriter, iter_windows, read_stack

    with threadpool_limits(1):
        stack = read_stack(path)[:, :side, :side]
        for _ in iter_windows(stack[:, :64, :64], model, smooth=smooth, window=64):
            pass  # loads the kernels
        start, processor = time.perf_counter(), time.process_time()
        names = [f"class {code}" for code in range(1, N_CLASSES + 1)]
        with MapWriter(target, like=stack, legend=names, overwrite=True) as writer:
            for window, classes, confidence in iter_windows(stack, model, smooth=smooth, window=WINDOW):
                writer.write(window, classes, confidence)
        seconds, processor = time.perf_counter() - start, time.process_time() - processor
    status = Path("/proc/self/status").read_text()
    return seconds, processor, int(status.split("VmHWM:")[1].split()[0]) / 1024.0


def scene_table() -> Table:
    rows, per_pixel, memory = [], [], 0.0
    with tempfile.TemporaryDirectory() as folder:
        path, target = Path(folder) / "scene.tif", Path(folder) / "map.tif"
        model = _model(_write_scene(path, SIDE, 1.0), 1.0)
        in_child(_map, str(path), str(target), model, min(600, SIDE), SMOOTH)  # compiles
        # Windows of a smoothed map are all alike: a quarter of the scene tells what the whole needs.
        sides = [(SIDE // 8, None), (SIDE // 4, None), (SIDE // 2, None), (SIDE // 2, SMOOTH), (SIDE, None)]
        for side, smooth in sides:
            seconds, processor, mebibytes = in_child(_map, str(path), str(target), model, side, smooth)
            memory = max(memory, mebibytes)
            if smooth is None:
                per_pixel.append(processor / side**2)
            size = target.stat().st_size / 2**20
            rows.append(
                [f"{side:,}", smooth or "", seconds, processor, side**2 / processor / 1e6, mebibytes, size]
            )
    return Table(
        f"A map on disk from {N_BANDS} bands of int16 on disk, windows of {WINDOW} pixels",
        ["side", "smooth", "s", "s, processor", "megapixels / s, processor", "peak MiB", "map, MiB"],
        rows,
        "Reading, classes, confidence, compressing, writing, reading back; peak memory of the whole process.",
        {
            "raster memory": Measured(memory),
            "raster growth": Measured(per_pixel[-1] / per_pixel[0]),
        },
    )


def run() -> Iterator[Table]:
    with threadpool_limits(1):
        yield windows_table()
        yield smoothing_table()
        yield scene_table()
