"""The assignment step of the linked rows: a Potts field of distortions and link costs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from linkwise.constraints import Constraints
from linkwise.inference import PottsField, best_labels
from linkwise.kmeans.distortions.base import Distortion, Metric, ViolatedLinks

__all__ = [
    "LinkedLabels",
    "WeightedLinks",
    "assign_linked",
    "link_costs",
    "violation_costs",
    "weighted_links",
]


class WeightedLinks(NamedTuple):
    """Links with the costs of the K-means papers.

    Attributes
    ----------
    rows : (c,) int64
        Rows that have a link, ascending.
    pairs : (m, 2) int64
        Rows of the data.
    local : (m, 2) int64
        The same in the numbering of ``rows``.
    must : (m,) bool
    weight : (m,)
        Cost of a violated link, or factor of its penalty; ``inf`` for a hard one.
    """

    rows: NDArray[np.int64]
    pairs: NDArray[np.int64]
    local: NDArray[np.int64]
    must: NDArray[np.bool_]
    weight: NDArray[np.float64]

    def violated(self, labels: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which links the labels (n,) of the data violate, (m,)."""
        ends = labels[self.pairs]
        return (ends[:, 0] == ends[:, 1]) != self.must

    def violated_links(self, labels: NDArray[np.int64]) -> ViolatedLinks:
        """The violated soft links, for the metric step; what a hard one costs depends on no metric."""
        chosen = self.violated(labels) & np.isfinite(self.weight)
        pairs = self.pairs[chosen]
        return ViolatedLinks(pairs, self.must[chosen], self.weight[chosen], labels[pairs])


class LinkedLabels(NamedTuple):
    """Answer of the assignment step.

    Attributes
    ----------
    labels : (c,) int64
    optimal : bool
        Proven to be the best assignment.
    converged : bool
    gap : float
        Cost above a lower bound of the best assignment; NaN if no bound was asked for or found.
    method : str
    """

    labels: NDArray[np.int64]
    optimal: bool
    converged: bool
    gap: float
    method: str


def weighted_links(constraints: Constraints, must_weight: float, cannot_weight: float) -> WeightedLinks:
    """Links with their weights times those of their kind.

    Parameters
    ----------
    constraints : Constraints
    must_weight, cannot_weight : float
        At least 0; hard links stay hard.

    Returns
    -------
    WeightedLinks

    Examples
    --------
    >>> from linkwise import Constraints
    >>> from linkwise.kmeans.assignment import weighted_links
    >>> links = weighted_links(Constraints(9, [(2, 7)], [(4, 7)], weight=[3.0, float("inf")]), 2.0, 5.0)
    >>> links.rows, links.weight
    (array([2, 4, 7]), array([ 6., inf]))
    """
    rows, ends = np.unique(constraints.pairs, return_inverse=True)
    must = constraints.weights > 0
    hard = np.isinf(constraints.weights)
    weight = np.abs(constraints.weights) * np.where(hard, 1.0, np.where(must, must_weight, cannot_weight))
    return WeightedLinks(rows, constraints.pairs, ends.reshape(-1, 2).astype(np.int64), must, weight)


def link_costs(
    links: WeightedLinks, distortion: Distortion, rows: Any, metric: Metric, penalty: str
) -> NDArray[np.float64]:
    """Cost of each link when violated, signed as the coupling of a Potts field.

    Bilenko & Basu 2004, Eq. 6, each pair once: w phi(i, j) for a must-link and w (phi_max - phi(i, j)) for a
    cannot-link, or w itself for ``penalty="constant"``.

    Parameters
    ----------
    links : WeightedLinks
    distortion : Distortion
    rows : Any
        Rows of the distortion.
    metric : Metric
    penalty : {"distance", "constant"}

    Returns
    -------
    (m,) or, with metrics of every cluster, (m, K)
        Positive for must-links, negative for cannot-links.
    """
    sign = np.where(links.must, 1.0, -1.0)
    if penalty == "constant":
        return sign * links.weight
    phi = distortion.pair_penalty(rows, links.pairs, metric)
    cannot = ~links.must
    cost = phi.copy()
    if cannot.any():
        # Rounding may put the farthest pair a little beyond phi_max.
        cost[cannot] = np.maximum(distortion.largest_penalty(rows, metric) - phi[cannot], 0.0)
    hard = np.isinf(links.weight)
    factor = np.where(hard, 1.0, links.weight)
    cost[hard] = np.inf
    return (cost.T * (sign * factor)).T


def violation_costs(
    coupling: NDArray[np.float64], violated: NDArray[np.bool_], ends: NDArray[np.int64]
) -> NDArray[np.float64]:
    """What each link costs under labels: 0 unless violated.

    Parameters
    ----------
    coupling : (m,) or (m, K)
        From ``link_costs``.
    violated : (m,) bool
    ends : (m, 2) int64
        Labels of both ends.

    Returns
    -------
    (m,)
    """
    if coupling.ndim == 1:
        return np.where(violated, np.abs(coupling), 0.0)
    both = np.abs(np.take_along_axis(coupling, ends, axis=1))
    return np.where(violated, 0.5 * both.sum(axis=1), 0.0)


def assign_linked(
    links: WeightedLinks,
    unary: NDArray[np.float64],
    coupling: NDArray[np.float64],
    method: str | Callable[..., Any],
    previous: NDArray[np.int64] | None,
    rng: np.random.Generator,
    *,
    n_threads: int = 1,
    want_bound: bool = False,
) -> LinkedLabels:
    """Labels of the linked rows that cost little in total, never more than the previous ones.

    Parameters
    ----------
    links : WeightedLinks
    unary : (c, K)
        What each linked row would pay for each cluster.
    coupling : (m,) or (m, K)
        From ``link_costs``.
    method : str or engine
        Of :func:`linkwise.inference.best_labels`.
    previous : (c,) int64 or None
        Labels of the last step.
    rng : numpy.random.Generator
    n_threads : int, default=1
    want_bound : bool, default=False
        Bound the best cost by a linear program where the method does not.

    Returns
    -------
    LinkedLabels
    """
    field = PottsField(-unary, links.local, coupling)
    best = best_labels(field, method, rng, initial=previous, n_threads=n_threads)
    labels, score = best.labels, best.score
    if previous is not None:
        old_score = field.score(previous)
        if old_score >= score:
            labels, score = previous, old_score
    gap = np.nan
    if best.upper_bound is not None:
        gap = max(best.upper_bound - score, 0.0)
    elif want_bound:
        relaxed = best_labels(field, "lp", rng, initial=labels)
        if relaxed.upper_bound is not None:
            gap = max(relaxed.upper_bound - score, 0.0)
    return LinkedLabels(labels, best.optimal, best.converged, gap, best.method)
