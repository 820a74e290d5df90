"""Heat maps over classes: beliefs, and the separability under the clusters found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from linkwise._arrays import Floats
from linkwise._pages import heat_colours, signed
from linkwise._validation import label_codes
from linkwise.beliefs import ClassBeliefs
from linkwise.displays._drawing import axes_or_new
from linkwise.displays._inputs import fitted_step, needed
from linkwise.metrics import separability as separability_of

# Of more classes, no figures are written into the cells.
_MOST_FIGURES = 20


class SeparabilityDisplay:
    """How much each two classes share their clusters, as a heat map: +1 always, -1 never.

    Blue is together, red apart. The figures in the cells say the same in grey; with more than 20 classes
    negative cells carry a minus sign instead. Undefined cells are grey.

    Parameters
    ----------
    separability : (L, L) array_like
        Symmetric, in [-1, 1]; NaN where undefined (a class of one row).
    classes : sequence of length L, optional
        Names; 0 .. L - 1 by default.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes, Figure
    image_ : AxesImage

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from linkwise.displays import SeparabilityDisplay
    >>> display = SeparabilityDisplay.from_predictions(["oak", "oak", "elm", "elm"], [0, 0, 0, 1])
    >>> display.classes
    ('elm', 'oak')
    >>> display.image_.get_array().tolist()
    [[-1.0, 0.0], [0.0, 1.0]]
    """

    def __init__(self, separability: ArrayLike, classes: Sequence[Any] | None = None) -> None:
        self.separability, self.classes = _check_square(separability, classes)

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> Self:
        """Draw ``separability_`` of a fitted CPPC."""
        model = fitted_step(estimator)
        matrix = needed(model, "separability_", "CPPC has one; otherwise use from_predictions(y, labels)")
        return cls(matrix, model.classes_.tolist()).plot(ax)

    @classmethod
    def from_predictions(cls, y: ArrayLike, labels: ArrayLike, *, ax: Any = None) -> Self:
        """Draw the separability of classes ``y`` under any clusters ``labels``.

        Rows whose class is -1, NaN or None are left out.
        """
        return cls(separability_of(y, labels), label_codes(y)[1].tolist()).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on the axes given, or on new ones; returns the display."""
        self.ax_ = axes_or_new(ax, size=_size(self.classes))
        self.image_ = _draw(self.separability, self.classes, "separability", self.ax_)
        self.figure_ = self.ax_.figure
        return self


class BeliefDisplay:
    """Beliefs about classes and the resulting separability, side by side.

    Where the colours of a cell differ, the data did not follow the belief. Without separability there is a
    single heat map.

    Parameters
    ----------
    beliefs : ClassBeliefs, DataFrame or (L, L) array_like
    separability : (L, L) array_like, optional
        In the same order of classes.
    classes : sequence of length L, optional
        Names; by default those of the beliefs.

    Attributes
    ----------
    ax_ : matplotlib Axes, or array of two
    figure_ : matplotlib Figure
    images_ : list of AxesImage
        Of the beliefs and, if there is one, of the separability.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from linkwise.beliefs import ClassBeliefs
    >>> from linkwise.displays import BeliefDisplay
    >>> beliefs = ClassBeliefs.keep(["oak", "elm"]).merge("oak", "elm", 0.5)
    >>> display = BeliefDisplay(beliefs, separability=[[0.9, 0.8], [0.8, 0.7]]).plot()
    >>> [ax.get_title() for ax in display.ax_]
    ['beliefs', 'separability']
    >>> display.images_[0].get_array().tolist()
    [[1.0, 0.5], [0.5, 1.0]]
    """

    def __init__(
        self, beliefs: Any, separability: ArrayLike | None = None, classes: Sequence[Any] | None = None
    ) -> None:
        table = beliefs if isinstance(beliefs, ClassBeliefs) else ClassBeliefs(beliefs, classes)
        if classes is not None:
            table = table.select(classes)
        self.beliefs, self.classes = table.values, table.classes
        self.separability: Floats | None = None
        if separability is not None:
            self.separability, _ = _check_square(separability, self.classes)

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> Self:
        """Draw ``beliefs_`` and ``separability_`` of a fitted CPPC, on two axes."""
        model = fitted_step(estimator)
        beliefs = needed(model, "beliefs_", "fit a CPPC, or pass BeliefDisplay(beliefs)")
        return cls(ClassBeliefs(beliefs, model.classes_.tolist()), model.separability_).plot(ax)

    @classmethod
    def from_predictions(cls, beliefs: Any, y: ArrayLike, labels: ArrayLike, *, ax: Any = None) -> Self:
        """Draw beliefs beside the separability of classes ``y`` under any clusters ``labels``, on two axes.

        Beliefs in an array are in the order of the sorted classes. Rows whose class is -1, NaN or None are
        left out.
        """
        classes = label_codes(y)[1].tolist()
        named = hasattr(beliefs, "classes") or hasattr(beliefs, "columns")
        table = ClassBeliefs(beliefs) if named else ClassBeliefs(beliefs, classes)
        return cls(ClassBeliefs(table.for_classes(classes), classes), separability_of(y, labels)).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on the axes given (two if there is separability), or on new ones; returns the display."""
        panels = [("beliefs", self.beliefs)]
        if self.separability is not None:
            panels.append(("separability", self.separability))
        given = axes_or_new(ax, n_columns=len(panels), size=_size(self.classes))
        axes = np.atleast_1d(np.asarray(given, dtype=object)).ravel()
        if len(axes) != len(panels):
            raise ValueError(
                f"{len(panels)} heat maps need {len(panels)} axes, got {len(axes)}; pass those of "
                f"plt.subplots(1, {len(panels)}), or leave ax out"
            )
        self.images_ = [
            _draw(values, self.classes, title, panel)
            for (title, values), panel in zip(panels, axes, strict=True)
        ]
        self.ax_ = axes if len(axes) > 1 else axes[0]
        self.figure_ = axes[0].figure
        return self


def _check_square(values: ArrayLike, classes: Sequence[Any] | None) -> tuple[Floats, tuple[Any, ...]]:
    matrix = np.asarray(values, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.size == 0:
        raise ValueError(
            f"separability must be a square matrix, got shape {matrix.shape}; pass one row and one column "
            "per class"
        )
    names = tuple(range(len(matrix)) if classes is None else classes)
    if len(names) != len(matrix):
        raise ValueError(
            f"separability is about {len(matrix)} classes, but there are {len(names)} names; pass one "
            "name for each"
        )
    if (np.abs(matrix) > 1.0 + 1e-9).any():
        row, column = np.argwhere(np.abs(matrix) > 1.0 + 1e-9)[0].tolist()
        raise ValueError(
            f"separability of ({row}, {column}) is {matrix[row, column]:g}, outside [-1, 1]; correct it"
        )
    return matrix, names


def _size(classes: Sequence[Any]) -> tuple[float, float]:
    return (6.4, 4.8) if len(classes) <= _MOST_FIGURES else (8.4, 7.0)


def draw_heat_map(values: Floats, names: Sequence[Any], title: str, ax: Any = None) -> Any:
    """Draw a matrix (L, L) on matplotlib axes, with its figures in the cells if there are few classes."""
    axes = axes_or_new(ax)
    image = axes.imshow(values, cmap="RdBu", vmin=-1.0, vmax=1.0)
    places = range(len(names))
    # Two dollar signs in the name of a class are no formula.
    look = {"labels": [str(name) for name in names], "parse_math": False}
    axes.set_xticks(places, rotation=45, ha="right", **look)
    axes.set_yticks(places, **look)
    if len(names) <= _MOST_FIGURES:
        for row, column in np.argwhere(~np.isnan(values)).tolist():
            value = float(values[row, column])
            axes.text(column, row, signed(value), ha="center", va="center", color=heat_colours(value)[1])
    axes.set_title(title)
    axes.figure.colorbar(image, ax=axes, label="apart (−1) … together (+1)")
    return axes


def _draw(values: Floats, names: Sequence[Any], title: str, ax: Any) -> Any:
    draw_heat_map(values, names, title, ax)
    ax.set_xlabel("class")
    ax.set_ylabel("class")
    ax.set_facecolor(heat_colours(np.nan)[0])
    if len(names) > _MOST_FIGURES:
        # Both ends of the colours are dark: without figures only a sign tells them apart in grey.
        rows, columns = np.nonzero(values < -0.1)
        colours = [heat_colours(value)[1] for value in values[rows, columns].tolist()]
        ax.scatter(columns, rows, marker="_", s=12, linewidths=0.8, color=colours, zorder=3)
        ax.tick_params(labelsize=6)
        ax.tick_params(axis="x", labelrotation=90)
    return ax.images[-1]
