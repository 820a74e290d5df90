"""How displays look: colours, markers, axes and legends, points drawn by cluster, links drawn as lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from linkwise._arrays import Bools, Floats, Ints
from linkwise.constraints import Constraints

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


def draw_points(
    ax: Any, points: Floats, codes: Ints | None, names: NDArray[Any]
) -> tuple[dict[Any, Any], list[Any]]:
    """Draw one scatter for each cluster (``codes``, -1: grey); scatters by label, entries for a legend."""
    size = point_size(len(points))
    scatters: dict[Any, Any] = {}
    handles = []
    if codes is None:
        codes = np.full(len(points), -1)
    unknown = codes < 0
    if unknown.any():
        scatters[None] = ax.scatter(*points[unknown].T, s=0.6 * size, color="0.6", linewidths=0, zorder=2)
        handles += [cluster_handle(None, -1)] if len(names) else []
    for number, name in enumerate(names.tolist()):
        scatters[name] = ax.scatter(
            *points[codes == number].T,
            s=size,
            edgecolors="0.15",
            linewidths=0.4,
            zorder=2,
            **point_style(number),
        )
        handles.append(cluster_handle(name, number))
    return scatters, handles


def cluster_handle(label: Any, number: int) -> Any:
    """Make the legend entry of a cluster, whatever the size of its points: ``cluster 2``, or its name."""
    from matplotlib.lines import Line2D

    if number < 0:
        return Line2D([], [], linestyle="none", marker="o", color="0.6", markersize=4, label="no cluster")
    text = label if isinstance(label, str) else f"cluster {label}"
    edge: dict[str, Any] = {"markeredgecolor": "0.15", "markeredgewidth": 0.4}
    return Line2D([], [], linestyle="none", markersize=6, label=text, **edge, **point_style(number))


# Kinds of links and their states, in the order of the legend.
_KINDS = ("must_link", "cannot_link")
_STATES = ("open", "kept", "violated")
_DASHED = (0, (4.0, 2.0))
_LOOKS: dict[str, dict[str, Any]] = {
    "open": {"color": "0.15", "linewidth": 1.2, "zorder": 1.8},
    "kept": {"color": "0.4", "linewidth": 1.0, "zorder": 1.8},
    "violated": {"color": VIOLATED, "linewidth": 2.2, "zorder": 3.0},
}


class LinkLines(NamedTuple):
    """LineCollections by ``(kind, state)``, crosses on violated links, and legend entries of all groups."""

    lines: dict[tuple[str, str], Any]
    crosses: Any
    handles: list[Any]


def link_states(constraints: Constraints, codes: Ints | None) -> Ints:
    """For each link 0 if it is open (an end has no label), 1 if kept, 2 if violated."""
    if codes is None:
        return np.zeros(constraints.n_pairs, dtype=np.int64)
    known = (codes[constraints.pairs] >= 0).all(axis=1)
    return np.where(known, 1 + constraints.violations(codes), 0)


def thin_links(weights: Floats, states: Ints, max_links: int) -> Bools:
    """Choose at most ``max_links`` links at even distances: violated ones first, then both kinds."""
    if max_links < 0:
        raise ValueError(f"max_links must be at least 0, got {max_links}; pass max_links=0 or more")
    drawn = np.ones(len(weights), dtype=bool)
    if len(weights) <= max_links:
        return drawn
    drawn[:] = False
    violated = np.flatnonzero(states == 2)
    drawn[_evenly(violated, max_links)] = True
    seats = max_links - int(drawn.sum())
    must, cannot = (np.flatnonzero((states != 2) & side) for side in (weights > 0, weights < 0))
    if len(must) + len(cannot):
        must_seats = round(seats * len(must) / (len(must) + len(cannot)))
        drawn[_evenly(must, must_seats)] = True
        drawn[_evenly(cannot, seats - must_seats)] = True
    return drawn


def _evenly(rows: Ints, seats: int) -> Ints:
    if len(rows) <= seats:
        return rows
    return rows[(np.arange(seats) * len(rows)) // max(seats, 1)]


def draw_links(ax: Any, points: Floats, constraints: Constraints, states: Ints, drawn: Bools) -> LinkLines:
    """Draw must-links solid, cannot-links dashed; violated ones red, thick and crossed out."""
    from matplotlib.collections import LineCollection
    from matplotlib.lines import Line2D

    segments = points[constraints.pairs]
    slim = _slimming(int(drawn.sum()))
    lines: dict[tuple[str, str], Any] = {}
    handles = []
    for kind, sign in zip(_KINDS, (1.0, -1.0), strict=True):
        for number, state in enumerate(_STATES):
            group = (np.sign(constraints.weights) == sign) & (states == number)
            if not group.any():
                continue
            chosen = group & drawn
            style: dict[str, Any] = {**_LOOKS[state], "linestyle": "-" if sign > 0 else _DASHED}
            if chosen.any():
                slimmed = {**style, "linewidth": slim * style["linewidth"]}
                lines[kind, state] = ax.add_collection(LineCollection(segments[chosen], **slimmed))
            marker: dict[str, Any] = (
                {"marker": "x", "markersize": 6, "markeredgewidth": 2} if state == "violated" else {}
            )
            label = _label(kind, state, int(group.sum()), int(chosen.sum()))
            handles.append(Line2D([], [], **style, **marker, label=label))
    crossed = segments[drawn & (states == 2)].mean(axis=1)
    crosses = None
    if len(crossed):
        crosses = ax.scatter(
            *crossed.T, marker="x", s=36.0 * slim, linewidths=2.0 * slim, color=VIOLATED, zorder=3.1
        )
    ax.autoscale_view()
    return LinkLines(lines, crosses, handles)


def _slimming(n_drawn: int) -> float:
    """Factor on line widths: 1 up to 60 links, 0.45 from 300 on, so that the points can be seen."""
    return max(0.45, min(1.0, (60.0 / max(n_drawn, 1)) ** 0.5))


def _label(kind: str, state: str, n_links: int, n_drawn: int) -> str:
    name = kind.replace("_", "-") + ("" if state == "open" else f", {state}")
    return f"{name} ({n_links})" if n_drawn == n_links else f"{name} ({n_drawn} of {n_links} drawn)"
