"""Picture of the experiment "ask": mean curves with their intervals, a panel for each kind of answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from experiments.active.curves import CHECKPOINTS
from experiments.active.summary import OURS, mean_of, scores, whole
from experiments.framework.summary import Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_ask"]

_MARKERS = "os^Dv<>P"


def draw_ask(table: Sequence[Row]) -> Figure:
    """Mean score over the sets by the number of answers, for each method and kind of answers.

    Parameters
    ----------
    table : list of dict
        Tidy table of the experiment "ask".

    Returns
    -------
    Figure
    """
    from matplotlib.figure import Figure

    table, _ = whole(table)
    found = scores(table)
    conditions = list(dict.fromkeys(row["condition"] for row in table))
    methods = list(dict.fromkeys(row["method"] for row in table))
    figure = Figure(figsize=(3.7 * len(conditions) + 0.4, 4.0), layout="constrained")
    panels = figure.subplots(1, len(conditions), squeeze=False, sharey=True).ravel()
    for ax, condition in zip(panels, conditions, strict=True):
        for place, method in enumerate(methods):
            curve = [(m, mean_of(found, condition, method, m)) for m in CHECKPOINTS]
            curve = [(m, one) for m, one in curve if one.mean == one.mean]
            if not curve:
                continue
            x, means = [m for m, _ in curve], [one.mean for _, one in curve]
            ax.plot(
                x, means, f"-{_MARKERS[place % 8]}", color=f"C{place}", label=method, markersize=4,
                linewidth=2.4 if method == OURS else 1.2, zorder=3 if method == OURS else 2,
            )  # fmt: skip
            spread = [one.half_width if one.half_width == one.half_width else 0.0 for _, one in curve]
            ax.fill_between(
                x,
                [mean - half for mean, half in zip(means, spread, strict=True)],
                [mean + half for mean, half in zip(means, spread, strict=True)],
                color=f"C{place}", alpha=0.15, linewidth=0,
            )  # fmt: skip
        ax.set_title(f"answers: {condition}", fontsize=9)
        ax.set_xlabel("answers", fontsize=9)
        ax.grid(alpha=0.25)
        ax.tick_params(labelsize=8)
    n_sets = len({row["set"] for row in table})
    panels[0].set_ylabel(f"mean adjusted Rand index, {n_sets} sets", fontsize=9)
    handles = {
        label: handle for ax in panels for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)
    }
    figure.legend(
        handles.values(), handles.keys(), loc="outside lower center", ncols=4, fontsize=8, frameon=False
    )
    return figure
