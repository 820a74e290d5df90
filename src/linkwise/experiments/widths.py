"""How fast exact inference becomes hopeless as links are added."""

from __future__ import annotations

import numpy as np

from linkwise._link_builders import draw_pairs
from linkwise.graph import adjacency, min_fill_order

__all__ = ["link_graph_widths"]

_SIZES = ((100, 50), (100, 100), (100, 150), (100, 200), (200, 200), (200, 300))


def link_graph_widths(n_draws: int = 10, seed: int = 0) -> tuple[list[str], list[list[float]]]:
    """Min-fill width of random link graphs: exact inference costs K ** (width + 1).

    Shental et al. (2003) advise to keep the number of negative links O(N); the width grows without
    bound all the same (erratum S6).

    Parameters
    ----------
    n_draws : int
    seed : int

    Returns
    -------
    head : list of str
    rows : list of list
        Points, links, and the smallest, mean and largest width over the draws.

    Examples
    --------
    >>> from linkwise.experiments import link_graph_widths
    >>> head, rows = link_graph_widths(n_draws=2)
    >>> head
    ['points', 'links', 'least', 'mean', 'most']
    """
    rng = np.random.default_rng(seed)
    rows = []
    for n_points, n_links in _SIZES:
        widths = [
            min_fill_order(adjacency(n_points, draw_pairs(np.arange(n_points), n_links, True, rng))).width
            for _ in range(n_draws)
        ]
        rows.append([n_points, n_links, min(widths), float(np.mean(widths)), max(widths)])
    return ["points", "links", "least", "mean", "most"], rows
