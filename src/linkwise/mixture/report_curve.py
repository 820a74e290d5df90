"""The criterion of a sweep over the number of clusters, drawn as inline SVG."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from linkwise.model_selection import ComponentSweep

__all__ = ["curve_svg", "round_ticks"]

_WIDTH, _HEIGHT = 720, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 80, 60, 20, 50


def round_ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round numbers between two values, about as many as wanted.

    Parameters
    ----------
    low, high : float
    about : int, default=5

    Returns
    -------
    list of float

    Examples
    --------
    >>> from linkwise.mixture.report_curve import round_ticks
    >>> round_ticks(3, 48)
    [10.0, 20.0, 30.0, 40.0]
    """
    if not high > low:
        return [low]
    raw = (high - low) / about
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1.0, 2.0, 5.0, 10.0) if factor * power >= raw)
    first, last = math.ceil(low / step), math.floor(high / step)
    return [number * step for number in range(first, last + 1)]


def curve_svg(sweep: ComponentSweep) -> str:
    """Mean criterion with its spread, the chosen K, and the occupied clusters on a second axis.

    Values of K whose criterion is not finite are left out of the line.

    Parameters
    ----------
    sweep : ComponentSweep

    Returns
    -------
    str
        An ``svg`` element.
    """
    table = sweep.table[np.isfinite(sweep.table["mean"])]
    spread = np.nan_to_num(table["std"])
    k_low, k_high = float(sweep.table["n_components"][0]), float(sweep.table["n_components"][-1])
    low = float((table["mean"] - spread).min(initial=np.inf))
    high = float((table["mean"] + spread).max(initial=-np.inf))
    if not high > low:
        low, high = (0.0, 1.0) if math.isinf(low) else (low - 1.0, low + 1.0)
    most = float(max(sweep.table["n_occupied"].max(), 1.0))

    def x(k: float) -> float:
        share = 0.5 if k_high == k_low else (k - k_low) / (k_high - k_low)
        return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)

    def y(value: float, bottom: float = low, top: float = high) -> float:
        return _HEIGHT - _BOTTOM - (value - bottom) / (top - bottom) * (_HEIGHT - _TOP - _BOTTOM)

    def points(values: list[tuple[float, float]]) -> str:
        return " ".join(f"{a:.1f},{b:.1f}" for a, b in values)

    ks, means = table["n_components"].tolist(), table["mean"].tolist()
    upper = [(x(k), y(mean + s)) for k, mean, s in zip(ks, means, spread.tolist(), strict=True)]
    lower = [(x(k), y(mean - s)) for k, mean, s in zip(ks, means, spread.tolist(), strict=True)]
    occupied = [(x(row["n_components"]), y(row["n_occupied"], 0.0, most)) for row in sweep.table]
    chosen = x(sweep.best_n_components)
    name = escape(sweep.criterion)
    floor = _HEIGHT - _BOTTOM
    middle = (_TOP + floor) / 2
    parts = [
        f"<svg viewBox='0 0 {_WIDTH} {_HEIGHT}' style='max-width:{_WIDTH}px;width:100%' role='img' "
        f"font-family='system-ui,sans-serif' font-size='12'>"
        f"<title>{name} against the number of clusters; lowest mean at {sweep.best_n_components}</title>"
    ]
    for value in round_ticks(low, high):
        parts.append(
            f"<path d='M{_LEFT} {y(value):.1f}H{_WIDTH - _RIGHT}' stroke='#e5e5e5'/>"
            f"<text x='{_LEFT - 8}' y='{y(value) + 4:.1f}' text-anchor='end'>{value:.6g}</text>"
        )
    for value in (tick for tick in round_ticks(0.0, most, 4) if tick == round(tick)):
        height = y(value, 0.0, most)
        parts.append(f"<text x='{_WIDTH - _RIGHT + 8}' y='{height + 4:.1f}' fill='#666'>{value:.0f}</text>")
    for k in (tick for tick in round_ticks(k_low, k_high, 10) if tick == round(tick)):
        parts.append(f"<text x='{x(k):.1f}' y='{floor + 18}' text-anchor='middle'>{k:.0f}</text>")
    parts += [
        f"<polygon points='{points(upper + lower[::-1])}' fill='#2166ac' fill-opacity='.18'/>",
        f"<polyline points='{points(occupied)}' fill='none' stroke='#888' stroke-dasharray='2 4'/>",
        f"<path d='M{chosen:.1f} {_TOP}V{floor}' stroke='#b2182b' stroke-dasharray='6 4'/>",
        f"<text x='{chosen:.1f}' y='{_TOP - 6}' fill='#b2182b' text-anchor='middle'>"
        f"chosen: {sweep.best_n_components}</text>",
        f"<polyline points='{points([(x(k), y(m)) for k, m in zip(ks, means, strict=True)])}' fill='none' "
        "stroke='#2166ac' stroke-width='2'/>",
        *(
            f"<circle cx='{x(k):.1f}' cy='{y(m):.1f}' r='3.5' fill='#2166ac'/>"
            for k, m in zip(ks, means, strict=True)
        ),
        f"<g text-anchor='middle'><text x='{(_LEFT + _WIDTH - _RIGHT) / 2}' y='{_HEIGHT - 8}'>"
        "number of clusters</text>",
        f"<text transform='translate(14 {middle}) rotate(-90)' fill='#2166ac'>{name}, mean ± std</text>",
        f"<text transform='translate({_WIDTH - 10} {middle}) rotate(-90)' fill='#666'>"
        "occupied (dotted)</text></g></svg>",
    ]
    return "".join(parts)
