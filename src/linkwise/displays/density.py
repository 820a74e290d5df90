"""Density contours of a fitted mixture over its points."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from linkwise._arrays import Floats
from linkwise.displays._drawing import axes_or_new, draw_points, name_axes, place_legend
from linkwise.displays._inputs import Plane, check_points, codes_if_any, fitted_step, needed, plane_of

_SHARES = (0.25, 0.5, 0.75, 0.95)
# Log densities this far below the outermost contour are all alike.
_FLOOR = 30.0


class DensityDisplay:
    """Contours of a density in the plane: each encloses a given share of the points.

    With two features these are contours of the density itself; with more, of its marginal density on two
    features or on the plane of the first two principal components, which a Gaussian mixture has in
    closed form.

    Parameters
    ----------
    points : (n, 2) array_like
    point_log_density : (n,) array_like
        Log density at the points: its quantiles are the levels.
    grid_x, grid_y : (width,), (height,) array_like
        Places of the grid.
    log_density : (height, width) array_like
        Log density on the grid.
    labels : (n,) array_like, optional
        Clusters of the points.
    shares : sequence of float in (0, 1), default=(0.25, 0.5, 0.75, 0.95)
        The contour of share s runs where the density is exceeded at s of the points.
    axis_labels : (str, str)

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes, Figure
    levels_ : (n_levels,) ndarray
        Log densities of the contours, rising.
    shares_ : tuple of float
        The shares they belong to. Shares with equal levels are one contour.
    contours_ : QuadContourSet or None
        Levels above every density on the grid are not drawn; the legend says which.
    scatters_ : dict
        Label to the PathCollection of its points.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from linkwise import PPC
    >>> from linkwise.datasets import make_four_blobs
    >>> from linkwise.displays import DensityDisplay
    >>> X, _ = make_four_blobs(50, random_state=0)
    >>> model = PPC(4, n_init=3, random_state=0).fit(X)
    >>> display = DensityDisplay.from_estimator(model, X, shares=(0.5, 0.9))
    >>> inside = model.score_samples(X) > display.levels_[0]
    >>> display.shares_[0], float(inside.mean())
    (0.9, 0.9)
    """

    def __init__(
        self,
        points: ArrayLike,
        point_log_density: ArrayLike,
        grid_x: ArrayLike,
        grid_y: ArrayLike,
        log_density: ArrayLike,
        *,
        labels: ArrayLike | None = None,
        shares: Sequence[float] = _SHARES,
        axis_labels: tuple[str, str] = ("", ""),
    ) -> None:
        self.points = check_points(points)
        self.point_log_density = np.asarray(point_log_density, dtype=np.float64)
        self.grid_x, self.grid_y = np.asarray(grid_x, dtype=np.float64), np.asarray(grid_y, dtype=np.float64)
        self.log_density = np.asarray(log_density, dtype=np.float64)
        self.labels = labels
        self.shares = tuple(float(share) for share in shares)
        self.axis_labels = axis_labels
        if self.point_log_density.shape != (len(self.points),):
            raise ValueError(
                f"point_log_density has shape {self.point_log_density.shape}, but there are "
                f"{len(self.points)} points; pass one value for each"
            )
        if self.log_density.shape != (self.grid_y.size, self.grid_x.size):
            raise ValueError(
                f"log_density has shape {self.log_density.shape}, but the grid has {self.grid_y.size} rows "
                f"and {self.grid_x.size} columns; pass one value for each cell"
            )
        if not self.shares or not all(0.0 < share < 1.0 for share in self.shares):
            raise ValueError(
                f"shares must lie between 0 and 1, got {list(self.shares)}; pass for example (0.5, 0.9)"
            )
        self._codes, self._names = codes_if_any(labels, len(self.points))

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        labels: ArrayLike | None = None,
        features: Sequence[Any] | None = None,
        shares: Sequence[float] = _SHARES,
        resolution: int = 200,
        ax: Any = None,
    ) -> Self:
        """Draw the density of a fitted estimator.

        Parameters
        ----------
        estimator : fitted density estimator
            With ``score_samples``; for more than two features a Gaussian mixture (PPC, ConstrainedEM, CPPC,
            GaussianMixture).
        X : (n, n_features) array_like or DataFrame
            Rows to draw; the contours enclose shares of them.
        labels : (n,) array_like, optional
            Clusters of the rows. By default those the estimator predicts, if it does.
        features : two column numbers or names, optional
            Draw these features instead of principal components.
        shares : sequence of float, default=(0.25, 0.5, 0.75, 0.95)
        resolution : int, default=200
            Places of the grid in each direction.
        ax : matplotlib Axes, optional

        Returns
        -------
        DensityDisplay
        """
        model = fitted_step(estimator)
        needed(model, "score_samples", "a density display needs a mixture or another density estimator")
        plane = plane_of(X, features)
        if plane.axes is None:
            raise ValueError(
                "X has one feature, but density contours need at least two; use a histogram, or add a feature"
            )
        if labels is None and hasattr(estimator, "predict"):
            labels = estimator.predict(X)
        low, high = plane.points.min(axis=0), plane.points.max(axis=0)
        margin = np.where(high > low, 0.15 * (high - low), 1.0)
        x, y = (np.linspace(low[i] - margin[i], high[i] + margin[i], resolution) for i in (0, 1))
        grid = np.column_stack([axis.ravel() for axis in np.meshgrid(x, y)])
        on_points, on_grid = (_log_density(estimator, plane, places) for places in (plane.points, grid))
        display = cls(
            plane.points,
            on_points,
            x,
            y,
            on_grid.reshape(resolution, resolution),
            labels=labels,
            shares=shares,
            axis_labels=plane.axis_labels,
        )
        return display.plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on the axes given, or on new ones; returns the display."""
        axes = axes_or_new(ax)
        from matplotlib.lines import Line2D

        outermost_first = sorted(set(self.shares), reverse=True)
        levels, places = np.unique(
            np.quantile(self.point_log_density, 1.0 - np.array(outermost_first)), return_index=True
        )
        self.levels_ = levels
        self.shares_ = tuple(outermost_first[place] for place in places)
        self.scatters_, handles = draw_points(axes, self.points, self._codes, self._names)
        looks = _looks(len(levels))
        shown = np.isfinite(levels) & (levels < self.log_density.max())
        for look, share, on_grid in zip(looks, self.shares_, shown, strict=True):
            label = f"around {share:.0%} of the points" + ("" if on_grid else " (not on the grid)")
            handles.append(Line2D([], [], **look, label=label))
        self.contours_ = None
        if shown.any():
            # Contours cannot be drawn beside minus infinity, where a density is zero.
            floor = levels[shown].min() - _FLOOR
            drawn = [look for look, on_grid in zip(looks, shown, strict=True) if on_grid]
            self.contours_ = axes.contour(
                self.grid_x,
                self.grid_y,
                np.maximum(self.log_density, floor),
                levels=levels[shown],
                zorder=2.5,
                **{
                    f"{name}s": [look[name] for look in drawn] for name in ("color", "linewidth", "linestyle")
                },
            )
        name_axes(axes, *self.axis_labels)
        place_legend(axes, handles)
        self.ax_, self.figure_ = axes, axes.figure
        return self


def _looks(n_levels: int) -> list[dict[str, Any]]:
    """Style contours from outside to inside: pale to black, thin to thick, dotted and dashed to solid."""
    dashes: list[Any] = ["-"] * n_levels
    dashes[: n_levels - 1] = [(0, (1, 2)), (0, (5, 2)), *["-"] * n_levels][: n_levels - 1]
    inward = np.linspace(0.0, 1.0, n_levels) if n_levels > 1 else np.ones(1)
    return [
        {"color": f"{0.4 * (1.0 - depth):.2f}", "linewidth": 1.1 + 0.9 * depth, "linestyle": dash}
        for depth, dash in zip(inward.tolist(), dashes, strict=True)
    ]


def projected_log_density(places: Floats, weights: Floats, means: Floats, covariances: Floats) -> Floats:
    """Log density of a mixture of Gaussians in the plane, (n,); means (K, 2), covariances (K, 2, 2)."""
    joint = np.empty((len(weights), len(places)))
    with np.errstate(divide="ignore"):
        log_weights = np.log(weights)
    for k, (mean, covariance) in enumerate(zip(means, covariances, strict=True)):
        offset = places - mean
        distance = np.einsum("ni,ni->n", offset, np.linalg.solve(covariance, offset.T).T)
        joint[k] = (
            log_weights[k] - 0.5 * distance - np.log(2.0 * np.pi) - 0.5 * np.linalg.slogdet(covariance)[1]
        )
    return np.asarray(logsumexp(joint, axis=0))


def _log_density(estimator: Any, plane: Plane, places: Floats) -> Floats:
    """Give the density itself if the plane shows all features in their order, otherwise its marginal."""
    assert plane.axes is not None
    if np.array_equal(plane.axes, np.eye(2)):
        with warnings.catch_warnings():
            # The grid has the features of X in their order, but not their names.
            warnings.filterwarnings("ignore", "X does not have valid feature names")
            return np.asarray(estimator.score_samples(places), dtype=np.float64)
    model = fitted_step(estimator)
    if model is not estimator:
        raise ValueError(
            "a pipeline is drawn only with two features; pass its last step and the transformed rows"
        )
    for attribute in ("weights_", "means_", "covariances_", "covariance_type"):
        needed(model, attribute, "with more than two features only Gaussian mixtures have marginal densities")
    means = (np.asarray(model.means_) - plane.origin) @ plane.axes.T
    covariances = plane.axes @ _full(model) @ plane.axes.T
    return projected_log_density(places, np.asarray(model.weights_), means, covariances)


def _full(model: Any) -> Floats:
    """Covariances (K, D, D) whatever their type."""
    n_components, n_features = np.shape(model.means_)
    covariances = np.asarray(model.covariances_)
    if model.covariance_type == "full":
        return covariances
    if model.covariance_type == "tied":
        return np.broadcast_to(covariances, (n_components, n_features, n_features))
    variances = covariances.reshape(n_components, -1)
    return np.asarray(variances[:, :, np.newaxis] * np.eye(n_features))
