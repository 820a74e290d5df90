"""A kernel seen from one row, or whole: what links do to affinities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from linkwise._arrays import Floats
from linkwise._validation import check_constraints
from linkwise.constraints import Constraints
from linkwise.displays._drawing import (
    axes_or_new,
    draw_links,
    line_style,
    link_states,
    place_legend,
    thin_links,
)
from linkwise.displays._inputs import fitted_step, needed

_MOST_LINKS = 100
# Values within this share of the largest are near zero.
_FAINT = 0.02
# Contours on either side of zero, as shares of the largest value.
_LEVELS = np.array([_FAINT, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0])


class KernelDisplay:
    """Columns of a kernel over 1-D or 2-D positions, or the matrix over 1-D positions.

    The pictures of Lu & Carreira-Perpiñán (2008), figure 1: a link makes points near one site
    similar or dissimilar to points near the other. Zero is white and negative values are red; in 1-D a line
    marks zero, in 2-D contours of negative values are dashed and points with negative values are triangles.

    Parameters
    ----------
    positions : (n,), (n, 1) or (n, 2) array_like
    values : (n,) or (n, m) array_like
        m columns, each a curve in 1-D; in 2-D there must be one. With ``matrix=True`` the (n, n) matrix.
    names : sequence of length m, optional
        Of the curves, for the legend.
    matrix : bool, default=False
        Draw a matrix over 1-D positions as an image, in the order of the positions.
    constraints : Constraints, optional
        Links to draw over 2-D positions, at most 100 of them (see :class:`ClusterDisplay`); in 1-D their ends
        are marked on the axis.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes, Figure
    lines_ : list of Line2D
        In 1-D.
    image_ : QuadMesh or None
        Of a matrix.
    contours_ : QuadContourSet or None
        Over 2-D positions that are a full grid.
    scatters_ : dict
        Over other 2-D positions: ``"positive"``, ``"negative"``, ``"near_zero"`` to PathCollection.

    Examples
    --------
    A must-link between two far points makes their surroundings alike (K' of the paper):

    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from linkwise.displays import KernelDisplay
    >>> x = np.linspace(-1.0, 7.0, 81)
    >>> kernel = np.exp(-0.5 * (x[:, None] - x) ** 2)
    >>> first, second = 10, 60
    >>> difference = kernel[:, first] - kernel[:, second]
    >>> linked = kernel - np.outer(difference, difference) / difference[[first, second]].dot([1.0, -1.0])
    >>> display = KernelDisplay.from_matrix(x, linked, columns=[first])
    >>> affinity = display.lines_[0].get_ydata()
    >>> bool(np.isclose(affinity[first], affinity[second])), kernel[first, second] < 1e-5
    (True, np.True_)
    """

    def __init__(
        self,
        positions: ArrayLike,
        values: ArrayLike,
        *,
        names: Sequence[str] | None = None,
        matrix: bool = False,
        constraints: Constraints | None = None,
    ) -> None:
        self.positions = _positions(positions)
        n_positions, n_dimensions = self.positions.shape
        self.values = np.asarray(values, dtype=np.float64)
        if self.values.ndim == 1:
            self.values = self.values[:, np.newaxis]
        if self.values.ndim != 2 or len(self.values) != n_positions or self.values.shape[1] == 0:
            raise ValueError(
                f"values has shape {np.shape(values)}, but there are {n_positions} positions; "
                "pass one row for each"
            )
        if not np.isfinite(self.values).all():
            row = int(np.argmin(np.isfinite(self.values).all(axis=1)))
            raise ValueError(f"values of position {row} are not finite; leave the position out")
        if matrix and (n_dimensions != 1 or self.values.shape != (n_positions, n_positions)):
            raise ValueError(
                f"matrix=True needs 1-D positions and an (n, n) matrix, got {n_dimensions}-D positions and "
                f"shape {self.values.shape}; in 2-D draw one column: from_matrix(positions, kernel, "
                "columns=[row])"
            )
        if n_dimensions == 2 and self.values.shape[1] > 1:
            raise ValueError(
                f"values has {self.values.shape[1]} columns, but a 2-D picture shows one; draw each on axes "
                "of its own"
            )
        n_columns = self.values.shape[1]
        if names is not None and len(names) != n_columns:
            raise ValueError(f"there are {len(names)} names for {n_columns} columns; pass one for each")
        self.names = None if names is None else [str(name) for name in names]
        self.matrix = matrix
        self.constraints = check_constraints(constraints, n_positions)

    @classmethod
    def from_matrix(
        cls,
        positions: ArrayLike,
        kernel: ArrayLike,
        *,
        columns: Sequence[int] | None = None,
        constraints: Constraints | None = None,
        ax: Any = None,
    ) -> Self:
        """Draw some ``columns`` of an (n, n) kernel matrix, or the matrix (1-D positions only)."""
        table = np.asarray(kernel, dtype=np.float64)
        n_positions = len(_positions(positions))
        if table.shape != (n_positions, n_positions):
            raise ValueError(
                f"kernel has shape {table.shape}, but {n_positions} positions need "
                f"{(n_positions, n_positions)}; pass one row and one column for each"
            )
        if columns is None:
            return cls(positions, table, matrix=True, constraints=constraints).plot(ax)
        chosen = np.asarray(columns)
        if chosen.ndim != 1 or chosen.size == 0 or not np.isin(chosen, np.arange(n_positions)).all():
            raise ValueError(
                f"columns must be row numbers between 0 and {n_positions - 1}, got {columns!r}; correct them"
            )
        names = [f"from row {column}" for column in chosen.tolist()]
        return cls(positions, table[:, chosen], names=names, constraints=constraints).plot(ax)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: ArrayLike,
        *,
        columns: Sequence[int] | None = None,
        constraints: Constraints | None = None,
        ax: Any = None,
    ) -> Self:
        """Draw ``affinity_matrix_`` of a fitted spectral clustering over the rows X it was fitted to.

        The matrix must be dense, and X must have one or two columns. ``columns`` are the rows whose kernel
        columns are drawn.
        """
        matrix = needed(
            fitted_step(estimator),
            "affinity_matrix_",
            "fit a spectral clustering with the dense solver, or pass from_matrix(positions, kernel)",
        )
        table = matrix.toarray() if hasattr(matrix, "toarray") else matrix
        return cls.from_matrix(X, table, columns=columns, constraints=constraints, ax=ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on the axes given, or on new ones; returns the display."""
        axes = axes_or_new(ax)
        self.lines_: list[Any] = []
        self.scatters_: dict[str, Any] = {}
        self.image_ = self.contours_ = None
        if self.matrix:
            self._draw_matrix(axes)
        elif self.positions.shape[1] == 1:
            self._draw_curves(axes)
        else:
            self._draw_plane(axes)
        self.ax_, self.figure_ = axes, axes.figure
        return self

    def _draw_curves(self, axes: Any) -> None:
        order = np.argsort(self.positions[:, 0], kind="stable")
        places = self.positions[order, 0]
        axes.axhline(0.0, color="0.6", linewidth=0.8, zorder=1)
        for number, column in enumerate(self.values[order].T):
            style = {**line_style(number), "marker": None}
            label = None if self.names is None else self.names[number]
            self.lines_ += axes.plot(places, column, linewidth=1.6, label=label, **style)
        handles = [] if self.names is None else list(self.lines_)
        if self.constraints is not None and self.constraints.n_pairs:
            ends = self.positions[np.unique(self.constraints.pairs), 0]
            handles += axes.plot(
                ends, np.zeros(len(ends)), "^", color="black", markersize=7, label="ends of links", zorder=3
            )
        axes.set_xlabel("position")
        axes.set_ylabel("kernel")
        place_legend(axes, handles)

    def _draw_matrix(self, axes: Any) -> None:
        order = np.argsort(self.positions[:, 0], kind="stable")
        places, values = self.positions[order, 0], self.values[np.ix_(order, order)]
        limit = _limit(values)
        self.image_ = axes.pcolormesh(
            places, places, values, cmap="RdBu", vmin=-limit, vmax=limit, shading="nearest", rasterized=True
        )
        if len(places) > 1:
            faint = _FAINT * limit
            axes.contour(
                places, places, values, levels=[-faint, faint], colors="black", linewidths=0.8,
                linestyles=["--", "-"],
            )  # fmt: skip
        axes.set_aspect("equal")
        axes.set_xlabel("position")
        axes.set_ylabel("position")
        _colour_bar(axes, self.image_, f"kernel (lines at ±{_FAINT:.0%} of the largest, − dashed)")

    def _draw_plane(self, axes: Any) -> None:
        values = self.values[:, 0]
        limit = _limit(values)
        grid = _grid(self.positions, values)
        look = {"cmap": "RdBu", "vmin": -limit, "vmax": limit}
        label = "kernel" if self.names is None else f"kernel {self.names[0]}"
        handles: list[Any] = []
        if grid is not None:
            levels = limit * np.concatenate([-_LEVELS[::-1], _LEVELS])
            filled = axes.contourf(*grid, levels=levels, **look)
            self.contours_ = axes.contour(
                *grid, levels=levels, colors="black", linewidths=0.7,
                linestyles=["--" if level < 0 else "-" for level in levels],
            )  # fmt: skip
            _colour_bar(axes, filled, f"{label} (negative: dashed)", format="%.2g", ticks=levels)
        else:
            faint = _FAINT * limit
            texts = {
                "near_zero": f"within {_FAINT:.0%} of zero", "positive": "positive", "negative": "negative"
            }  # fmt: skip
            for name, marker, size, chosen in (
                ("near_zero", ".", 20, np.abs(values) <= faint),
                ("positive", "o", 40, values > faint),
                ("negative", "v", 40, values < -faint),
            ):
                if chosen.any():
                    self.scatters_[name] = axes.scatter(
                        *self.positions[chosen].T, c=values[chosen], marker=marker, s=size, edgecolors="0.3",
                        linewidths=0.5, label=texts[name], **look,
                    )  # fmt: skip
            handles += list(self.scatters_.values())
            _colour_bar(axes, handles[-1], label)
        if self.constraints is not None and self.constraints.n_pairs:
            states = link_states(self.constraints, None)
            drawn = thin_links(self.constraints.weights, states, _MOST_LINKS)
            handles += draw_links(axes, self.positions, self.constraints, states, drawn).handles
            ends = self.positions[np.unique(self.constraints.pairs[drawn])]
            axes.scatter(*ends.T, s=46, facecolors="none", edgecolors="black", linewidths=1.4, zorder=3)
        axes.set_aspect("equal")
        axes.set_xlabel("position 1")
        axes.set_ylabel("position 2")
        place_legend(axes, handles, below=True)


def _limit(values: Floats) -> float:
    """Largest size of a value, for colours that are even around zero."""
    return float(np.abs(values).max()) or 1.0


def _colour_bar(axes: Any, mappable: Any, label: str, **look: Any) -> None:
    """Add a bar as tall as the axes, whatever their aspect."""
    axes.figure.colorbar(mappable, cax=axes.inset_axes((1.03, 0.0, 0.04, 1.0)), label=label, **look)


def _positions(positions: ArrayLike) -> Floats:
    places = np.asarray(positions, dtype=np.float64)
    if places.ndim == 1:
        places = places[:, np.newaxis]
    if places.ndim != 2 or places.shape[1] not in (1, 2) or len(places) == 0:
        raise ValueError(
            f"positions must be (n,), (n, 1) or (n, 2), got shape {np.shape(positions)}"
            "; pass one row for each point"
        )
    if not np.isfinite(places).all():
        raise ValueError(
            f"position {int(np.argmin(np.isfinite(places).all(axis=1)))} is not finite"
            "; correct it or leave it out"
        )
    return places


def _grid(positions: Floats, values: Floats) -> tuple[Floats, Floats, Floats] | None:
    """Axes and table of values if the positions are a full grid of at least 2 x 2, in any order."""
    x, column = np.unique(positions[:, 0], return_inverse=True)
    y, row = np.unique(positions[:, 1], return_inverse=True)
    if min(len(x), len(y)) < 2 or len(x) * len(y) != len(positions):
        return None
    table = np.full((len(y), len(x)), np.nan)
    table[row, column] = values
    return None if np.isnan(table).any() else (x, y, table)
