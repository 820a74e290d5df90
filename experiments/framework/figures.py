"""Curves of a tidy table, with their intervals."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from threadpoolctl import threadpool_limits

from experiments.framework.summary import Row
from experiments.framework.tables import TIDY

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from experiments.framework.experiment import Experiment

__all__ = ["draw_curves", "save_figure"]

_COLUMNS = 3
_MARKERS = "os^Dv<>P*X"


def draw_curves(table: list[Row], measure: str, axis: str) -> Figure:
    """A panel for each setting beside the axis, and a line with its interval for each method.

    Parameters
    ----------
    table : list of dict
        From :func:`experiments.framework.summary.summarise`.
    measure : str
    axis : str
        Column of the setting.

    Returns
    -------
    Figure
    """
    from matplotlib.figure import Figure

    rows = [row for row in table if row["measure"] == measure]
    keys = [key for key in rows[0] if key not in TIDY and key != axis]
    panels = list(dict.fromkeys(tuple(row[key] for key in keys) for row in rows))
    methods = list(dict.fromkeys(row["method"] for row in rows))
    n_columns = min(_COLUMNS, len(panels))
    n_lines = -(-len(panels) // n_columns)
    figure = Figure(figsize=(3.6 * n_columns + 0.4, 2.7 * n_lines + 0.8), layout="constrained")
    axes = figure.subplots(n_lines, n_columns, squeeze=False).ravel()
    for ax, panel in zip(axes, panels, strict=False):
        for place, method in enumerate(methods):
            curve = sorted(
                (row for row in rows if tuple(row[k] for k in keys) == panel and row["method"] == method),
                key=lambda row: row[axis],
            )
            if not curve:
                continue
            x = [row[axis] for row in curve]
            colour, line = f"C{place % 10}", "-" if place < 10 else "--"
            ax.plot(
                x, [row["mean"] for row in curve], f"{line}{_MARKERS[place % 10]}",
                color=colour, markersize=4, linewidth=1.4, label=method,
            )  # fmt: skip
            known = [row for row in curve if row["low"] is not None and row["low"] == row["low"]]
            ax.fill_between(
                [row[axis] for row in known],
                [row["low"] for row in known],
                [row["high"] for row in known],
                color=colour, alpha=0.15, linewidth=0,
            )  # fmt: skip
        ax.set_title(", ".join(str(value) for value in panel), fontsize=9)
        ax.set_xlabel(axis, fontsize=8)
        ax.tick_params(labelsize=8)
        ax.grid(alpha=0.25)
    for ax in axes[len(panels) :]:
        ax.set_axis_off()
    for ax in axes[::n_columns]:
        ax.set_ylabel(measure, fontsize=8)
    handles = {
        label: handle
        for ax in axes[: len(panels)]
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)
    }
    figure.legend(
        handles.values(), handles.keys(), loc="outside lower center", ncols=min(4, len(methods)), fontsize=8,
        frameon=False,
    )  # fmt: skip
    return figure


def save_figure(experiment: Experiment, table: list[Row], path: str | Path) -> None:
    """Write the experiment's picture, or the curves of its first measure, as PNG.

    Parameters
    ----------
    experiment : Experiment
        With a figure.
    table : list of dict
        Not empty.
    path : path
    """
    if experiment.picture is not None:
        with threadpool_limits(1):
            experiment.picture(Path(path))
    elif experiment.chart is not None:
        experiment.chart(table).savefig(path, dpi=90)
    elif experiment.axis is not None:
        draw_curves(table, experiment.measures[0], experiment.axis).savefig(path, dpi=90)
