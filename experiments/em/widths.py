"""How fast exact inference becomes hopeless as links are added."""

from __future__ import annotations

import numpy as np

from experiments.framework.experiment import Experiment, Size
from experiments.framework.summary import Row
from linkwise.constraints.builders import draw_pairs
from linkwise.graph import adjacency, min_fill_order

__all__ = ["EXPERIMENTS", "link_graph_widths"]


def link_graph_widths(draw: int, points: int, links: int) -> list[Row]:
    """Min-fill width of a random link graph: exact inference costs K ** (width + 1).

    Shental et al. (2003) advise to keep the number of negative links O(N); the width grows without
    bound all the same (erratum S6).

    Parameters
    ----------
    draw : int
    points, links : int

    Returns
    -------
    list of dict
        "width".

    Examples
    --------
    >>> from experiments.em.widths import link_graph_widths
    >>> link_graph_widths(0, points=100, links=20)
    [{'method': 'min-fill', 'width': 1}]
    """
    rng = np.random.default_rng([draw, points, links])
    pairs = draw_pairs(np.arange(points), links, True, rng)
    return [{"method": "min-fill", "width": min_fill_order(adjacency(points, pairs)).width}]


_SETTINGS = [
    {"points": points, "links": links}
    for points, links in ((100, 50), (100, 100), (100, 150), (100, 200), (200, 200), (200, 300))
]

EXPERIMENTS = (
    Experiment(
        "link_graph_widths",
        "Width of random link graphs, on which exact inference depends exponentially",
        "constrained EM, section 3: O(N) negative links",
        link_graph_widths,
        quick=Size(_SETTINGS, 10),
        full=Size(_SETTINGS, 50),
        measures=("width",),
        axis="links",
    ),
)
