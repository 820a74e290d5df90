"""Class labels of the cells of a grid, as an image."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import floor, log10
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import ndimage

from linkwise._arrays import Bools
from linkwise.displays._drawing import COLOURS, LITERAL, axes_or_new, contrasting, place_legend
from linkwise.displays._inputs import codes_of, fitted_step, needed

# Regions narrower than this share of the longer side have no room for a mark.
_ROOM = 0.025
# Pixels along the longer side of a raster that are drawn; more cannot be seen.
_MOST_DRAWN = 1500
# The scale bar is the longest round length up to this share of the width.
_BAR = 0.3


class ClassMapDisplay:
    """Map of classes or segments: one colour for each, and its mark in its largest region.

    The marks (the label itself if it is short, otherwise a number, explained in the legend) make the map
    readable in grey and with many classes; colours repeat after 24.

    Parameters
    ----------
    labels : (height, width) array_like
        Numbers or strings; -1, NaN or None for cells without a class, which stay white.
    class_names : mapping of label to name, or sequence in the order of the sorted labels, optional
        For the legend.
    colors : mapping of label to colour, or sequence in the order of the sorted labels, optional
        Such as "#0072B2". By default colours that colour-blind people can tell apart.
    cell_size : (height, width) or float, optional
        Metres of a cell on the ground; then a scale bar takes the place of row and column numbers.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes, Figure
    image_ : AxesImage
        Its array holds the number of each cell's class among ``classes_``, masked where there is none.
    classes_ : (L,) ndarray
        Sorted labels.
    marks_ : dict
        Label to the Text in its largest region; classes without enough room have none.
    scale_bar_ : (float, AnchoredSizeBar) or None
        Length in metres and the bar.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from linkwise.displays import ClassMapDisplay
    >>> labels = np.repeat(["water", "wood"], [40, 60])
    >>> display = ClassMapDisplay.from_predictions(labels, (10, 10))
    >>> [text.get_text() for text in display.ax_.get_legend().get_texts()]
    ['1  water', '2  wood']
    >>> display.image_.get_array()[3:5, 0].tolist()
    [0, 1]
    """

    def __init__(
        self,
        labels: ArrayLike,
        class_names: Mapping[Any, str] | Sequence[str] | None = None,
        *,
        colors: Mapping[Any, str] | Sequence[str] | None = None,
        cell_size: tuple[float, float] | float | None = None,
    ) -> None:
        image = np.asarray(labels)
        if image.ndim != 2 or image.size == 0:
            raise ValueError(
                f"labels has shape {image.shape}, but a map has rows and columns; with one label for "
                "each cell use from_predictions(labels, shape)"
            )
        codes, self.classes_ = codes_of(image.ravel(), image.size)
        self.codes = codes.reshape(image.shape)
        labels_there = self.classes_.tolist()
        self.names = _for_each(labels_there, class_names, "class_names", "name")
        given = _for_each(labels_there, colors, "colors", "colour") if colors is not None else COLOURS
        self.colors = [given[number % len(given)] for number in range(len(labels_there))]
        size = np.broadcast_to(np.nan if cell_size is None else cell_size, 2)
        self.cell_size = None if cell_size is None else (float(size[0]), float(size[1]))

    @classmethod
    def from_raster(
        cls,
        classes: Any,
        *,
        class_names: Mapping[Any, str] | Sequence[str] | None = None,
        colors: Mapping[Any, str] | Sequence[str] | None = None,
        ax: Any = None,
    ) -> Self:
        """Draw a map of :mod:`linkwise.raster` with a scale bar.

        ``classes`` is what ``classify`` returned, or the path of a map that ``write_map`` or ``linkwise map``
        wrote, with its names and colours. 0 is no data. Of a large map every n-th pixel is drawn, at most
        1500 along a side.
        """
        from linkwise.raster.picture import small_map

        found = small_map(classes, _MOST_DRAWN)
        labels = np.where(found.codes > 0, found.codes.astype(np.int64), -1)
        display = cls(
            labels,
            found.names if class_names is None else class_names,
            colors=found.colors if colors is None else colors,
            cell_size=found.cell_size,
        )
        return display.plot(ax)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        shape: Iterable[int],
        *,
        mask: ArrayLike | None = None,
        class_names: Mapping[Any, str] | Sequence[str] | None = None,
        ax: Any = None,
    ) -> Self:
        """Draw ``labels_`` of an estimator fitted to the cells of a grid of this shape (height, width).

        ``mask`` (height, width) tells the cells it was fitted to, as in
        :meth:`linkwise.Constraints.from_grid`.
        """
        labels = needed(
            fitted_step(estimator), "labels_", "use from_predictions(estimator.predict(X), shape)"
        )
        return cls.from_predictions(labels, shape, mask=mask, class_names=class_names, ax=ax)

    @classmethod
    def from_predictions(
        cls,
        labels: ArrayLike,
        shape: Iterable[int],
        *,
        mask: ArrayLike | None = None,
        class_names: Mapping[Any, str] | Sequence[str] | None = None,
        ax: Any = None,
    ) -> Self:
        """Draw one label for each cell of a grid of this shape (height, width), in C order.

        With a ``mask`` (height, width) only its cells have labels; the others stay white.
        """
        sides = tuple(int(side) for side in shape)
        if len(sides) != 2 or min(sides) < 1:
            raise ValueError(f"shape must be (height, width), got {sides}; pass image.shape[:2]")
        values = np.asarray(labels)
        kept = np.ones(sides, dtype=bool) if mask is None else np.asarray(mask, dtype=bool)
        if kept.shape != sides:
            raise ValueError(
                f"mask has shape {kept.shape}, but the grid has {sides}; pass a mask of the shape of the grid"
            )
        if values.shape != (int(kept.sum()),):
            raise ValueError(
                f"labels has shape {values.shape}, but the grid of shape {sides} has {int(kept.sum())} cells"
                + ("" if mask is None else " inside the mask")
                + "; pass one label for each"
            )
        image = np.full(sides, None, dtype=object)
        image[kept] = values.tolist()
        return cls(image, class_names).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on the axes given, or on new ones; returns the display."""
        axes = axes_or_new(ax)
        from matplotlib.colors import ListedColormap
        from matplotlib.patches import Patch

        n_classes = len(self.classes_)
        colours = self.colors
        self.image_ = axes.imshow(
            np.ma.masked_less(self.codes, 0),
            cmap=ListedColormap(colours or ["white"]),
            vmin=-0.5,
            vmax=max(n_classes, 1) - 0.5,
            interpolation="nearest",
            aspect=1.0 if self.cell_size is None else self.cell_size[0] / self.cell_size[1],
        )
        self.marks_: dict[Any, Any] = {}
        handles = []
        short = all(len(_plain(label)) <= 3 for label in self.classes_.tolist())
        for number, label in enumerate(self.classes_.tolist()):
            mark = _plain(label) if short else str(number + 1)
            name = self.names[number]
            text = name if name == mark else f"{mark}  {name}"
            handles.append(Patch(facecolor=colours[number], edgecolor="0.15", linewidth=0.5, label=text))
            row, column, room = inner_place(self.codes == number)
            if room >= max(1.0, _ROOM * max(self.codes.shape)):
                self.marks_[label] = axes.text(
                    column, row, mark, ha="center", va="center", weight="bold",
                    color=contrasting(colours[number]), **LITERAL,
                )  # fmt: skip
        if (self.codes < 0).any():
            handles.append(Patch(facecolor="white", edgecolor="0.15", linewidth=0.5, label="no class"))
        self.scale_bar_ = None
        if self.cell_size is None:
            axes.set_xlabel("column")
            axes.set_ylabel("row")
        else:
            axes.set(xticks=[], yticks=[])
            self.scale_bar_ = _add_scale_bar(axes, self.cell_size[1], len(self.codes[0]))
        place_legend(axes, handles)
        self.ax_, self.figure_ = axes, axes.figure
        return self


def inner_place(region: Bools) -> tuple[int, int, float]:
    """Row, column and depth of the cell farthest from the edge of the largest part of a region."""
    parts, _ = ndimage.label(region)
    largest = int(np.bincount(parts.ravel())[1:].argmax()) + 1
    rows, columns = ndimage.find_objects(parts)[largest - 1]
    inside = np.pad(parts[rows, columns] == largest, 1)
    distance = ndimage.distance_transform_edt(inside)
    row, column = np.unravel_index(int(distance.argmax()), distance.shape)
    return int(row) - 1 + rows.start, int(column) - 1 + columns.start, float(distance.max())


def _plain(label: Any) -> str:
    """Write the label as text; whole floats without their point."""
    return f"{label:g}" if isinstance(label, float) else str(label)


def _for_each(
    labels: list[Any], given: Mapping[Any, str] | Sequence[str] | None, parameter: str, what: str
) -> list[str]:
    """Take what was given for each label; the labels themselves if nothing was."""
    if given is None:
        return [_plain(label) for label in labels]
    if isinstance(given, Mapping):
        missing = [label for label in labels if label not in given]
        if missing:
            raise ValueError(f"{parameter} has no {what} for {missing[0]!r}; add it")
        return [str(given[label]) for label in labels]
    if len(given) != len(labels):
        raise ValueError(
            f"{parameter} has {len(given)} {what}s, but there are {len(labels)} classes: {labels[:8]}; "
            f"pass a dict of label to {what} if some classes may be absent"
        )
    return [str(value) for value in given]


def _add_scale_bar(ax: Any, cell_width: float, n_columns: int) -> tuple[float, Any]:
    """Draw a bar of a round length into the lower left corner; returns the length in metres and the bar."""
    from mpl_toolkits.axes_grid1.anchored_artists import AnchoredSizeBar

    most = _BAR * n_columns * cell_width
    power = 10.0 ** floor(log10(most))
    length = max(step * power for step in (1, 2, 5) if step * power <= most)
    text = f"{length / 1000:g} km" if length >= 1000 else f"{length:g} m"
    bar = AnchoredSizeBar(
        ax.transData, length / cell_width, text, "lower left", pad=0.3, sep=3, borderpad=0.5,
        frameon=True, size_vertical=0.0, color="black",
    )  # fmt: skip
    bar.patch.set(alpha=0.85, edgecolor="none")
    ax.add_artist(bar)
    return length, bar
