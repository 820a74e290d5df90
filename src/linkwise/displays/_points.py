"""Points drawn by cluster."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.displays._style import point_size, point_style

__all__ = ["cluster_handle", "draw_points"]


def draw_points(
    ax: Any, points: NDArray[np.float64], codes: NDArray[np.int64] | None, names: NDArray[Any]
) -> tuple[dict[Any, Any], list[Any]]:
    """One scatter a cluster; points without a label are small and grey.

    Parameters
    ----------
    ax : matplotlib Axes
    points : (n, 2)
    codes : (n,) int64 or None
        Number of the cluster, -1 for none.
    names : (K,)
        Labels of the clusters.

    Returns
    -------
    scatters : dict
        Label to PathCollection; the label None for the points without one.
    handles : list of Line2D
        Entries of a legend.
    """
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
    """Legend entry of a cluster, whatever the size of its points: ``cluster 2``, or its name."""
    from matplotlib.lines import Line2D

    if number < 0:
        return Line2D([], [], linestyle="none", marker="o", color="0.6", markersize=4, label="no cluster")
    text = label if isinstance(label, str) else f"cluster {label}"
    edge: dict[str, Any] = {"markeredgecolor": "0.15", "markeredgewidth": 0.4}
    return Line2D([], [], linestyle="none", markersize=6, label=text, **edge, **point_style(number))
