"""Matrices over named classes, entries in [-1, 1], as an HTML table and as a matplotlib picture."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from linkwise._arrays import Floats

# The ends and the middle of ColorBrewer's RdBu, which colour-blind readers can tell apart.
_APART, _NEUTRAL, _TOGETHER = (178, 24, 43), (247, 247, 247), (33, 102, 172)
_UNDEFINED = (224, 224, 224)
# Beyond this strength the cell is dark enough for white figures.
_DARK = 0.6


def heat_colours(value: float) -> tuple[str, str]:
    """Background and text colour (CSS) of an entry: -1 red (apart), 0 white, +1 blue (together), NaN grey."""
    if math.isnan(value):
        red, green, blue = _UNDEFINED
        strength = 0.0
    else:
        strength = min(abs(value), 1.0)
        end = _TOGETHER if value > 0 else _APART
        red, green, blue = (
            round(low + strength * (high - low)) for low, high in zip(_NEUTRAL, end, strict=True)
        )
    return f"#{red:02x}{green:02x}{blue:02x}", "#ffffff" if strength > _DARK else "#1a1a1a"


def heat_table(values: Floats, names: Sequence[Any], caption: str) -> str:
    """Write a matrix (L, L) as an HTML table with coloured cells; names are escaped, styles are inline."""
    cell = "padding:0.25em 0.5em;text-align:right"
    heads = "".join(f"<th style='{cell}' scope='col'>{escape(str(name))}</th>" for name in names)
    rows = []
    for name, row in zip(names, values.tolist(), strict=True):
        cells = []
        for value in row:
            background, text = heat_colours(value)
            cells.append(f"<td style='{cell};background:{background};color:{text}'>{signed(value)}</td>")
        rows.append(f"<tr><th style='{cell}' scope='row'>{escape(str(name))}</th>{''.join(cells)}</tr>")
    return (
        f"<table class='heat' style='border-collapse:collapse'><caption>{escape(caption)}</caption>"
        f"<tr><th></th>{heads}</tr>{''.join(rows)}</table>"
    )


def signed(value: float) -> str:
    """Write at most two digits after the point, a proper minus sign and no negative zero; NaN is a dash."""
    if math.isnan(value):
        return "–"
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "0") else text.replace("-", "−")


def draw_heat_map(values: Floats, names: Sequence[Any], title: str, ax: Any = None) -> Any:
    """Draw a matrix (L, L) on matplotlib axes, with its figures in the cells up to 20 classes."""
    axes = new_axes() if ax is None else ax
    image = axes.imshow(values, cmap="RdBu", vmin=-1.0, vmax=1.0)
    places = range(len(names))
    # Two dollar signs in the name of a class are no formula.
    look = {"labels": [str(name) for name in names], "parse_math": False}
    axes.set_xticks(places, rotation=45, ha="right", **look)
    axes.set_yticks(places, **look)
    if len(names) <= 20:
        for row, column in np.argwhere(~np.isnan(values)).tolist():
            value = float(values[row, column])
            axes.text(column, row, signed(value), ha="center", va="center", color=heat_colours(value)[1])
    axes.set_title(title)
    axes.figure.colorbar(image, ax=axes, label="apart (−1) … together (+1)")
    return axes


def new_axes() -> Any:
    """Make axes of a new figure; an error says what to install when matplotlib is missing."""
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError('plots need matplotlib; install it with pip install "linkwise[plot]"') from error
    return pyplot.subplots(layout="constrained")[1]
