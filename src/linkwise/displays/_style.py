"""Colours, markers, axes and legends of all displays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

# The first eight are those of Okabe and Ito, in an order that keeps the lightness of the first five
# apart. Each further one is the colour farthest (CIELAB) from all before it and from white, as seen by
# normal, protanope, deuteranope and tritanope eyes; the least distance among all of them is 15.
COLOURS = (
    "#0072B2", "#E69F00", "#009E73", "#F0E442", "#CC79A7", "#000000", "#56B4E9", "#D55E00",
    "#8700F0", "#5A2D00", "#001E87", "#00FF87", "#5A4B5A", "#9678FF", "#A5D2B4", "#96A55A",
    "#3C0F5A", "#964B3C", "#D2C3E1", "#1E2D1E", "#5A4BC3", "#A50F87", "#A53C0F", "#96FFB4",
)  # fmt: skip

# Eleven markers against 24 colours: no two of the first 264 clusters look alike.
MARKERS = ("o", "^", "s", "D", "v", "P", "*", "<", "p", ">", "h")

# Yellow is too pale for a line on white.
_LINE_COLOURS = tuple(colour for colour in COLOURS if colour != "#F0E442")
_DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)), (0, (8, 3)))

# Darker than vermilion, so that it differs from every cluster also in grey; broken links are thicker, too.
VIOLATED = "#B00020"

# For text that holds a name of the user: two dollar signs in it are no formula.
LITERAL: dict[str, Any] = {"parse_math": False}


def import_pyplot() -> Any:
    """``matplotlib.pyplot``, or an error that says what to install."""
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError('displays need matplotlib; install it with pip install "linkwise[plot]"') from error
    return pyplot


def axes_or_new(ax: Any = None, n_columns: int = 1, size: tuple[float, float] = (6.4, 4.8)) -> Any:
    """The axes given, or those of a new figure: one, or an array of several side by side."""
    if ax is not None:
        return ax
    figure_size = (n_columns * size[0], size[1])
    return import_pyplot().subplots(1, n_columns, figsize=figure_size, layout="constrained")[1]


def point_style(number: int) -> dict[str, Any]:
    """Colour and marker of a cluster, by its number in the sorted labels."""
    return {"color": COLOURS[number % len(COLOURS)], "marker": MARKERS[number % len(MARKERS)]}


def line_style(number: int) -> dict[str, Any]:
    """Colour, marker and dashes of a curve."""
    return {
        "color": _LINE_COLOURS[number % len(_LINE_COLOURS)],
        "marker": MARKERS[number % len(MARKERS)],
        "linestyle": _DASHES[number % len(_DASHES)],
    }


def point_size(n_points: int) -> float:
    """Area of a marker in square points: 36 for a few points, 4 for very many."""
    return float(min(36.0, max(4.0, 36.0 * (150.0 / max(n_points, 1)) ** 0.5)))


def contrasting(colour: str) -> str:
    """Black or white, whichever can be read on the colour."""
    red, green, blue = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    return "white" if 0.299 * red + 0.587 * green + 0.114 * blue < 140 else "black"


def place_legend(ax: Any, handles: Sequence[Any], *, gap: float = 0.02, below: bool = False) -> Any:
    """A legend right of the axes (``gap``: share of their width) or below, or inside if there is no room."""
    if not handles:
        return None
    place: dict[str, Any] = {"loc": "best", "frameon": True, "framealpha": 0.85}
    if ax.figure.get_layout_engine() is not None and below:
        # xlabel, which is below as well, keeps its own place above the legend.
        place = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.2), "ncols": min(3, len(handles))}
    elif ax.figure.get_layout_engine() is not None:
        place = {"loc": "upper left", "bbox_to_anchor": (1.0 + gap, 1.0), "borderaxespad": 0.0}
    look = {"ncols": 1 + (len(handles) - 1) // 20, "fontsize": "small", "frameon": False}
    legend = ax.legend(handles=handles, **{**look, **place})
    for text in legend.get_texts():
        text.set(**LITERAL)
    return legend


def name_axes(ax: Any, x: str, y: str) -> None:
    """Write names of the user's columns to the axes, as they are."""
    ax.set_xlabel(x, **LITERAL)
    ax.set_ylabel(y, **LITERAL)
