"""Hard links of K-means: must-links contracted to chunklets, cannot-links between these."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from linkwise.constraints import Constraints
from linkwise.exceptions import InfeasibleConstraints
from linkwise.graph import check_feasibility, chunklet_labels, group_labels, unique_pairs
from linkwise.graph.witness import subgraph_witness

__all__ = ["HardLinks", "hard_links", "hard_part", "matched_start", "refuse"]


@dataclass(frozen=True)
class HardLinks:
    """Hard links, contracted to chunklets 0..g-1: groups of rows that must-links join.

    ``rows`` (c,) have a link, ``chunklet`` (c,) is theirs and ``sizes`` (g,) count the rows of chunklets.
    ``apart`` (m, 2) are the chunklets that must differ, i < j, sorted; ``link_of`` (m,) is the first
    cannot-link that each comes from. ``component`` (g,) numbers chunklets that cannot-links join, directly or
    through others.
    """

    n_clusters: int
    rows: NDArray[np.int64]
    chunklet: NDArray[np.int64]
    sizes: NDArray[np.int64]
    apart: NDArray[np.int64]
    component: NDArray[np.int64]
    must_link: NDArray[np.int64]
    cannot_link: NDArray[np.int64]
    link_of: NDArray[np.int64]
    find_start: Callable[[], NDArray[np.int64] | None]

    @cached_property
    def start(self) -> NDArray[np.int64] | None:
        """Labels (g,) that keep every link; None if the search for them ran out of budget.

        They are only needed where the search for the best labels takes long: sparse links are known to be
        feasible without them.
        """
        return self.find_start()


def hard_links(constraints: Constraints, n_clusters: int, *, node_budget: int = 200_000) -> HardLinks:
    """Contract hard links and look for labels that keep them.

    Raises InfeasibleConstraints, with a witness, if no labels with K clusters keep the links.
    """
    pairs, weights = constraints.pairs, constraints.weights
    check = partial(check_feasibility, len(constraints), pairs, weights, n_clusters, node_budget=node_budget)
    found = check(labelling=False)
    if found.witness is not None:
        raise InfeasibleConstraints(found.witness)
    must_link, cannot_link = constraints.must_link, constraints.cannot_link
    rows = np.unique(pairs)
    groups, _ = chunklet_labels(len(constraints), pairs, weights)
    _, first, chunklet = np.unique(groups[rows], return_index=True, return_inverse=True)
    chunklet = chunklet.astype(np.int64)
    place = np.empty(len(constraints), dtype=np.int64)
    place[rows] = chunklet
    apart, row_of = unique_pairs(len(first), place[cannot_link])
    link_of = np.full(len(apart), len(cannot_link))
    np.minimum.at(link_of, row_of, np.arange(len(cannot_link)))

    def find_start() -> NDArray[np.int64] | None:
        searched = found.status == "unknown" or found.labels is not None
        labels = found.labels if searched else check().labels
        return None if labels is None else labels[rows[first]]

    return HardLinks(
        n_clusters,
        rows,
        chunklet,
        np.bincount(chunklet, minlength=len(first)),
        apart,
        group_labels(len(first), apart)[0],
        must_link,
        cannot_link,
        link_of,
        find_start,
    )


def hard_part(constraints: Constraints | None, n_clusters: int) -> HardLinks | None:
    """The hard links among others that may be soft; None if there are none."""
    hard = np.empty(0, dtype=bool) if constraints is None else np.isinf(constraints.weights)
    if constraints is None or not hard.any():
        return None
    pairs, must = constraints.pairs[hard], constraints.weights[hard] > 0
    return hard_links(Constraints(len(constraints), pairs[must], pairs[~must]), n_clusters)


def matched_start(links: HardLinks, cost: NDArray[np.float64], nodes: NDArray[np.int64]) -> NDArray[np.int64]:
    """The labels known to keep the links, renamed in every component so that they cost least, (s,).

    ``cost`` (g, K) is that of all chunklets, ``nodes`` (s,) the chunklets to label.
    """
    assert links.start is not None
    colours = links.start[nodes]
    number, component = np.unique(links.component[nodes], return_inverse=True)
    value = np.zeros((len(number), links.n_clusters, links.n_clusters))
    np.add.at(value, (component, colours), cost[nodes])
    label_of = np.array([linear_sum_assignment(table)[1] for table in value])
    return label_of[component, colours].astype(np.int64)


def refuse(links: HardLinks, edges: NDArray[np.int64]) -> NoReturn:
    """Raise InfeasibleConstraints for rows (s,) of ``apart`` that no labels keep."""
    groups, _ = group_labels(int(links.rows.max()) + 1, links.must_link)
    broken = links.cannot_link[links.link_of[edges]]
    raise InfeasibleConstraints(subgraph_witness(links.must_link, groups, broken, links.n_clusters))
