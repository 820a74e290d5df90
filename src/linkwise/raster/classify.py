"""Classes and confidences of a stack, window by window or in memory."""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np
import rasterio
import xarray as xr
from numpy.typing import NDArray
from rasterio.windows import Window
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from sklearn.utils.validation import check_is_fitted

from linkwise._arrays import Bools, Floats
from linkwise._validation import check_whole_number
from linkwise.mixture.gaussian.data import points_of
from linkwise.mixture.gaussian.gaussians import Gaussians
from linkwise.mixture.gaussian.passes import log_density_pass, posterior_pass
from linkwise.mixture.prediction import FittedMixture
from linkwise.raster.grid import as_stack, grid_of, nodata_of, valid_pixels, windows_of
from linkwise.raster.smoothing import HALO, check_smooth, smooth_tile

#: Log-probability of a class that a classifier excludes.
_SMALLEST = 1e-30


class PixelModel(Protocol):
    """What the map asks of a model. ``values`` are (bands, n) of float32 or float64."""

    @property
    def n_classes(self) -> int:
        """Number of classes."""

    @property
    def takes_anything(self) -> bool:
        """Whether pixels may hold NaN and fill values; their results are not used."""

    def label(self, values: NDArray[np.floating]) -> tuple[NDArray[np.integer], NDArray[np.floating]]:
        """Number (n,) of the most probable class of each pixel, from 0, and its probability (n,)."""

    def scores(self, values: NDArray[np.floating]) -> Floats:
        """Log-probability (n, K) of each class, up to a constant in each row."""


class _Mixture(NamedTuple):
    """A mixture of one Gaussian for each class, in the units of the raster."""

    gaussians: Gaussians
    log_weights: Floats
    offset: Floats

    @property
    def n_classes(self) -> int:
        return len(self.log_weights)

    @property
    def takes_anything(self) -> bool:
        return True

    def label(self, values: NDArray[np.floating]) -> tuple[NDArray[np.integer], NDArray[np.floating]]:
        found = posterior_pass(
            points_of(values.T, self.offset), self.gaussians, self.log_weights, labels=True, confidence=True
        )
        assert found.labels is not None
        assert found.confidence is not None
        return found.labels, found.confidence

    def scores(self, values: NDArray[np.floating]) -> Floats:
        points = points_of(values.T, self.offset)
        return log_density_pass(points, self.gaussians, log_weights=self.log_weights)


class _Classifier(NamedTuple):
    """Anything with ``predict_proba``."""

    model: Any
    n_classes: int

    @property
    def takes_anything(self) -> bool:
        return False

    def label(self, values: NDArray[np.floating]) -> tuple[NDArray[np.integer], NDArray[np.floating]]:
        probabilities = self.model.predict_proba(np.ascontiguousarray(values.T))
        labels = probabilities.argmax(axis=1)
        return labels, np.take_along_axis(probabilities, labels[:, np.newaxis], axis=1)[:, 0]

    def scores(self, values: NDArray[np.floating]) -> Floats:
        probabilities = self.model.predict_proba(np.ascontiguousarray(values.T))
        return np.log(np.maximum(probabilities, _SMALLEST, dtype=np.float64))


def pixel_model(model: Any, n_bands: int) -> PixelModel:
    """Prepare a fitted model for pixels of so many bands."""
    if not hasattr(model, "predict_proba"):
        raise ValueError(
            f"{type(model).__name__} has no predict_proba, so it gives no confidence; pass a mixture such as "
            "CPPC, or a classifier with probabilities"
        )
    check_is_fitted(model)
    wanted = getattr(model, "n_features_in_", n_bands)
    if wanted != n_bands:
        raise ValueError(
            f"the model was fitted to {wanted} bands, but the stack has {n_bands}; pass the same bands"
        )
    folded = _fold(model)
    if folded is not None:
        return folded
    n_classes = np.shape(model.predict_proba(np.zeros((1, n_bands), dtype=np.float32)))[1]
    return _Classifier(model, n_classes)


def _fold(model: Any) -> _Mixture | None:
    """A mixture, also after steps that scale columns: the scale goes into the Gaussians; None for others."""
    steps = (
        [step for _, step in model.steps if step not in (None, "passthrough")]
        if isinstance(model, Pipeline)
        else [model]
    )
    mixture, before = steps[-1], steps[:-1]
    if not isinstance(mixture, FittedMixture) or mixture._n_gaussians > mixture._n_clusters:
        return None
    scale, shift = np.ones(mixture.means_.shape[1]), np.zeros(mixture.means_.shape[1])
    for step in before:  # x becomes x * scale + shift
        own = _scaling(step, len(scale))
        if own is None:
            return None
        scale, shift = scale * own[0], shift * own[0] + own[1]
    if (scale == 0.0).any():
        return None
    means = (mixture.means_ - shift) / scale
    factors, kind = mixture.precisions_cholesky_, mixture.covariance_type
    if before:
        # |P' (scale * x + shift - mean)| = |(scale * P)' (x - new mean)|: a scaled triangle stays one.
        if kind in ("full", "tied"):
            factors = factors * scale[:, np.newaxis]
        else:
            factors = np.broadcast_to(np.reshape(factors, (len(means), -1)), means.shape) * scale
            kind = "diag"
    with np.errstate(divide="ignore"):
        log_weights = np.log(mixture.weights_)
    offset = mixture.weights_ @ means / mixture.weights_.sum()
    return _Mixture(Gaussians(means, factors, kind), log_weights, offset)


def _scaling(step: Any, n_columns: int) -> tuple[Floats, Floats] | None:
    """Factor and shift of each column if that is all a step does."""
    one, zero = np.ones(n_columns), np.zeros(n_columns)
    if type(step) is StandardScaler:
        factor = one / (step.scale_ if step.with_std else one)
        return factor, -(step.mean_ if step.with_mean else zero) * factor
    if type(step) is RobustScaler:
        factor = one / (step.scale_ if step.with_scaling else one)
        return factor, -(step.center_ if step.with_centering else zero) * factor
    if type(step) is MinMaxScaler and not step.clip:
        return one * step.scale_, zero + step.min_
    if type(step) is MaxAbsScaler:
        return one / step.scale_, zero
    return None


#: Megabytes of blocks that GDAL keeps; its own choice is a twentieth of the memory of the machine.
CACHE = 256
#: Larger numbers than this have squares that do not fit into float32; they are no measurements.
_LARGEST = 1e15


def classify(
    stack: xr.DataArray, model: Any, *, smooth: float | None = None, window: int = 512
) -> xr.Dataset:
    """Classify every pixel of a stack and return the map in memory.

    Parameters
    ----------
    stack : xarray.DataArray
        From :func:`read_stack`.
    model : fitted mixture or classifier
        A mixture of linkwise (also after a scaler in a Pipeline), or anything with ``predict_proba``.
        Mixtures compute in float32 if the bands are of 16 bits or float32, otherwise in float64.
    smooth : float, optional
        Certainty in [.5, 1) that two neighbouring pixels are of one class: the labels are then those of a
        Potts field on the grid of pixels. None classifies every pixel separately.
    window : int, default=512
        Side of the windows that are read and classified one after another. Without smoothing the result does
        not depend on it.

    Returns
    -------
    xarray.Dataset
        ``classes`` (y, x), 1 to K and 0 where there is no data; ``confidence`` (y, x) float32, the
        probability of the class, NaN where there is no data. With smoothing it is the probability given the
        classes of the four neighbours.

    See Also
    --------
    iter_windows : the same for scenes that are larger than memory.
    write_map : write the result as a GeoTIFF.

    Examples
    --------
    >>> import numpy as np, xarray as xr
    >>> from linkwise import PPC
    >>> from linkwise.raster import classify
    >>> values = np.random.default_rng(0).normal(size=(2, 20, 20)) + 8 * (np.arange(20) >= 10)
    >>> stack = xr.DataArray(values, dims=("band", "y", "x")).rio.write_crs("EPSG:32721")
    >>> model = PPC(2, random_state=0).fit(values.reshape(2, -1).T)
    >>> found = classify(stack, model)
    >>> found["classes"].dtype, bool((found["classes"][:, :10] == found["classes"][0, 0]).all())
    (dtype('uint8'), True)
    """
    stack = as_stack(stack)
    grid = grid_of(stack)
    pixels = pixel_model(model, int(stack.sizes["band"]))
    classes = np.zeros(grid.shape, dtype=class_type(pixels.n_classes))
    confidence = np.full(grid.shape, np.nan, dtype=np.float32)
    for place, some_classes, some_confidence in _run(stack, pixels, smooth, window, ()):
        classes[place.toslices()] = some_classes
        confidence[place.toslices()] = some_confidence
    coords = {name: stack.coords[name] for name in ("y", "x", "spatial_ref") if name in stack.coords}
    found = xr.Dataset({"classes": (("y", "x"), classes), "confidence": (("y", "x"), confidence)}, coords)
    if grid.crs is not None:
        found = found.rio.write_crs(grid.crs)
    found = found.rio.write_transform(grid.transform)
    found["classes"].attrs["_FillValue"] = classes.dtype.type(0)
    found["confidence"].attrs["_FillValue"] = np.float32(np.nan)
    found.attrs["n_classes"] = pixels.n_classes
    return found


def iter_windows(
    stack: xr.DataArray,
    model: Any,
    *,
    smooth: float | None = None,
    window: int = 512,
    done: Container[tuple[int, int]] = (),
) -> Iterator[tuple[Window, NDArray[np.unsignedinteger], NDArray[np.float32]]]:
    """Classify a stack window by window, in reading order.

    Parameters
    ----------
    stack, model, smooth, window
        As in :func:`classify`.
    done : container of (row, column), optional
        Upper left corners of windows to leave out: :attr:`MapWriter.done` of a run that was interrupted.

    Yields
    ------
    window : rasterio.windows.Window
    classes : (h, w) uint8 or uint16
        1 to K; 0 where there is no data.
    confidence : (h, w) float32
        NaN where there is no data.

    Raises
    ------
    ValueError
        If the model has another number of bands, or no pixel of the stack has data.
    """
    stack = as_stack(stack)
    check_smooth(smooth)
    check_whole_number(window, "window", 16)
    return _run(stack, pixel_model(model, int(stack.sizes["band"])), smooth, window, done)


def class_type(n_classes: int) -> np.dtype[np.unsignedinteger]:
    """The smallest type that holds 0 to ``n_classes``."""
    if n_classes > np.iinfo(np.uint16).max:
        raise ValueError(
            f"a map holds at most {np.iinfo(np.uint16).max} classes, not {n_classes}; take fewer"
        )
    return np.dtype(np.uint8 if n_classes <= np.iinfo(np.uint8).max else np.uint16)


def _run(
    stack: xr.DataArray, pixels: PixelModel, smooth: float | None, side: int, done: Container[tuple[int, int]]
) -> Iterator[tuple[Window, NDArray[np.unsignedinteger], NDArray[np.float32]]]:
    side = check_whole_number(side, "window", 16)
    coupling = check_smooth(smooth)
    grid = grid_of(stack)
    halo = 0 if coupling is None else HALO
    nodata = nodata_of(stack)
    any_valid = False
    for window in windows_of(*grid.shape, side):
        row, column = int(window.row_off), int(window.col_off)
        if (row, column) in done:
            any_valid = True
            continue
        # Even, see smoothing.HALO.
        top, left = (max(start - halo - (start & 1 and halo > 0), 0) for start in (row, column))
        bottom, right = (
            min(row + window.height + halo, grid.height),
            min(column + window.width + halo, grid.width),
        )
        with rasterio.Env(GDAL_CACHEMAX=CACHE):
            values = stack[:, top:bottom, left:right].values
        valid = valid_pixels(values, nodata)
        any_valid |= bool(valid.any())
        classes, confidence = _tile(values, valid, pixels, coupling, (top, left))
        inner = np.s_[row - top : row - top + window.height, column - left : column - left + window.width]
        yield window, classes[inner], confidence[inner]
    if not any_valid:
        raise ValueError(
            "no pixel of the stack has data in every band; check its nodata value, or pass nodata="
        )


def _tile(
    values: NDArray[Any], valid: Bools, pixels: PixelModel, coupling: float | None, corner: tuple[int, int]
) -> tuple[NDArray[np.unsignedinteger], NDArray[np.float32]]:
    """Classes and confidences of a tile."""
    classes = np.zeros(valid.shape, dtype=class_type(pixels.n_classes))
    confidence = np.full(valid.shape, np.nan, dtype=np.float32)
    if valid.any():
        _refuse_huge(values, valid, corner)
        table = values.reshape(len(values), -1).astype(np.result_type(values.dtype, np.float32), copy=False)
        if not (valid.all() or pixels.takes_anything):
            table = np.where(valid.ravel(), table, table.dtype.type(0))
        if coupling is None:
            labels, sure = pixels.label(table)
        else:
            labels, sure = smooth_tile(pixels.scores(table), valid, coupling)
        np.add(labels.reshape(valid.shape), 1, out=classes, casting="unsafe")
        confidence[:] = sure.reshape(valid.shape)
        if not valid.all():
            classes[~valid] = 0
            confidence[~valid] = np.nan
    return classes, confidence


def _refuse_huge(values: NDArray[Any], valid: Bools, corner: tuple[int, int]) -> None:
    """Refuse a fill value that nobody declared."""
    if values.dtype.kind != "f" or not (np.abs(np.nan_to_num(values)) > _LARGEST).any():
        return
    bad = np.argwhere((np.abs(values) > _LARGEST) & valid)
    if len(bad):
        band, row, column = bad[0].tolist()
        raise ValueError(
            f"band {band + 1} holds {values[band, row, column]:.3g} in row {corner[0] + row}, column "
            f"{corner[1] + column}; if it stands for no data, pass "
            f"nodata={float(values[band, row, column])!r} to read_stack"
        )
