"""Picture of the leaderboard: a line of dots for every method."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from experiments.framework.summary import Row
from experiments.leaderboard.methods import CHOSEN_WITHOUT, METHODS
from experiments.leaderboard.summary import NOISY, RIGHT, Estimate, mean_score, measured, scores

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["SHOWN", "draw_leaderboard"]

#: Methods on the page: all with links, the reference, and scikit-learn.
SHOWN = (
    *METHODS, CHOSEN_WITHOUT, "sklearn SpectralClustering", "sklearn GaussianMixture", "sklearn KMeans",
)  # fmt: skip

_GROUPS = (("right links", RIGHT, "C0", "o"), ("15 % of the links wrong", NOISY, "C1", "D"))


def draw_leaderboard(table: Sequence[Row]) -> Figure:
    """Mean scores with right and with wrong links, best first, with intervals over the repeats.

    Parameters
    ----------
    table : list of dict
        Tidy table of the experiment "leaderboard".

    Returns
    -------
    Figure
    """
    from matplotlib.figure import Figure

    known = scores(table)
    lines = [
        (name, [mean_score(known, name, measured(known, group[1])) for group in _GROUPS]) for name in SHOWN
    ]
    lines = [line for line in lines if any(_is_known(estimate) for estimate in line[1])]
    lines.sort(key=lambda line: max(one.mean for one in line[1] if _is_known(one)))
    figure = Figure(figsize=(8.2, 0.36 * len(lines) + 1.3), layout="constrained")
    axes = figure.subplots()
    for place, (name, estimates) in enumerate(lines):
        means = [one.mean for one in estimates if _is_known(one)]
        axes.plot([min(means), max(means)], [place, place], color="0.8", linewidth=2, zorder=1)
        for (label, _, colour, marker), one in zip(_GROUPS, estimates, strict=True):
            if not _is_known(one):
                continue
            spread = one.half_width if one.half_width == one.half_width else 0.0
            axes.errorbar(
                one.mean, place, xerr=spread, color=colour, marker=marker, markersize=6, linewidth=1.2,
                linestyle="none", label=label if name == "LinkedClustering" else None, zorder=2,
            )  # fmt: skip
        if name == CHOSEN_WITHOUT:
            for colour, one in ((group[2], one) for group, one in zip(_GROUPS, estimates, strict=True)):
                axes.axvline(one.mean, color=colour, linewidth=0.8, linestyle=":", zorder=0)
    axes.set_yticks(range(len(lines)), [name for name, _ in lines], fontsize=9)
    n_sets = len({case.set for case in known})
    axes.set_xlabel(f"mean adjusted Rand index of rows without links, {n_sets} sets", fontsize=9)
    axes.grid(axis="x", alpha=0.25)
    axes.legend(loc="lower right", fontsize=9, frameon=False)
    return figure


def _is_known(estimate: Estimate) -> bool:
    return estimate.mean == estimate.mean
