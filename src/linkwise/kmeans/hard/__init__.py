"""K-means under hard links: assignment, search and Lloyd's algorithm."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NoReturn

import numpy as np
from scipy.optimize import linear_sum_assignment

from linkwise._arrays import Floats, Ints
from linkwise.constraints import Constraints
from linkwise.exceptions import InfeasibleConstraints
from linkwise.graph import check_feasibility, chunklet_labels, group_labels, unique_pairs
from linkwise.graph.witness import groups_witness


@dataclass(frozen=True)
class HardLinks:
    """Hard links, contracted to chunklets 0..g-1: groups of rows that must-links join.

    ``rows`` (c,) have a link, ``chunklet`` (c,) is theirs, ``sizes`` (g,) count rows. ``apart`` (m, 2) must
    differ, i < j, sorted, because of cannot-link ``link_of`` (m,). ``component`` (g,): joined by
    cannot-links.
    """

    n_clusters: int
    rows: Ints
    chunklet: Ints
    sizes: Ints
    apart: Ints
    component: Ints
    must_link: Ints
    cannot_link: Ints
    link_of: Ints
    find_start: Callable[[], Ints | None]

    @cached_property
    def start(self) -> Ints | None:
        """Labels (g,) that keep every link; None if the search for them ran out of budget."""
        return self.find_start()


def hard_links(constraints: Constraints, n_clusters: int, *, node_budget: int = 200_000) -> HardLinks:
    """Contract hard links and look for labels that keep them; InfeasibleConstraints if there are none.

    Soft links are left out.
    """
    hard = np.isinf(constraints.weights)
    pairs, weights = constraints.pairs[hard], constraints.weights[hard]
    check = partial(check_feasibility, len(constraints), pairs, weights, n_clusters, node_budget=node_budget)
    found = check(labelling=False)
    if found.witness is not None:
        constraints._refuse(found.witness, n_clusters)
    must_link, cannot_link = pairs[weights > 0], pairs[weights < 0]
    rows = np.unique(pairs)
    groups, _ = chunklet_labels(len(constraints), pairs, weights)
    _, first, chunklet = np.unique(groups[rows], return_index=True, return_inverse=True)
    chunklet = chunklet.astype(np.int64)
    place = np.empty(len(constraints), dtype=np.int64)
    place[rows] = chunklet
    apart, row_of = unique_pairs(len(first), place[cannot_link])
    link_of = np.full(len(apart), len(cannot_link))
    np.minimum.at(link_of, row_of, np.arange(len(cannot_link)))

    def find_start() -> Ints | None:
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
    if constraints is None or not np.isinf(constraints.weights).any():
        return None
    return hard_links(constraints, n_clusters)


def matched_start(links: HardLinks, cost: Floats, nodes: Ints) -> Ints:
    """Known labels of ``nodes`` (s,), renamed in every component so that they cost least, ``cost`` (g, K)."""
    assert links.start is not None
    colours = links.start[nodes]
    number, component = np.unique(links.component[nodes], return_inverse=True)
    value = np.zeros((len(number), links.n_clusters, links.n_clusters))
    np.add.at(value, (component, colours), cost[nodes])
    label_of = np.array([linear_sum_assignment(table)[1] for table in value])
    return label_of[component, colours].astype(np.int64)


def refuse(links: HardLinks, edges: Ints) -> NoReturn:
    """Raise InfeasibleConstraints for rows (s,) of ``apart`` that no labels keep."""
    groups, _ = group_labels(int(links.rows.max()) + 1, links.must_link)
    broken = links.cannot_link[links.link_of[edges]]
    raise InfeasibleConstraints(groups_witness(links.must_link, groups, broken, links.n_clusters))
