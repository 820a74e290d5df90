"""Class scores of pixels by a fitted model: mixtures in one fused pass, others by ``predict_proba``."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from sklearn.utils.validation import check_is_fitted

from linkwise.mixture.gaussian.data import points_of
from linkwise.mixture.gaussian.gaussians import Gaussians
from linkwise.mixture.gaussian.passes import log_density_pass, posterior_pass
from linkwise.mixture.prediction import FittedMixture

__all__ = ["PixelModel", "pixel_model"]

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

    def scores(self, values: NDArray[np.floating]) -> NDArray[np.float64]:
        """Log-probability (n, K) of each class, up to a constant in each row."""


class _Mixture(NamedTuple):
    """A mixture of one Gaussian for each class, in the units of the raster."""

    gaussians: Gaussians
    log_weights: NDArray[np.float64]
    offset: NDArray[np.float64]

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

    def scores(self, values: NDArray[np.floating]) -> NDArray[np.float64]:
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

    def scores(self, values: NDArray[np.floating]) -> NDArray[np.float64]:
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


def _scaling(step: Any, n_columns: int) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
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
