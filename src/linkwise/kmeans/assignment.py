"""The assignment step of the linked rows: a Potts field of distortions and link costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from linkwise._arrays import Bools, Floats, Ints
from linkwise.constraints import Constraints
from linkwise.inference import PottsField, best_labels
from linkwise.kmeans.distortions.base import Distortion, Metric, ViolatedLinks


class WeightedLinks(NamedTuple):
    """Links about linked ``rows`` (c,): ``pairs`` (m, 2), ``local`` as places, costs (m,), inf if hard."""

    rows: Ints
    pairs: Ints
    local: Ints
    must: Bools
    weight: Floats

    def violated(self, labels: Ints) -> Bools:
        """Which links the labels (n,) of the data violate, (m,)."""
        ends = labels[self.pairs]
        return (ends[:, 0] == ends[:, 1]) != self.must

    def violated_links(self, labels: Ints) -> ViolatedLinks:
        """The violated soft links, for the metric step; what a hard one costs depends on no metric."""
        chosen = self.violated(labels) & np.isfinite(self.weight)
        pairs = self.pairs[chosen]
        return ViolatedLinks(pairs, self.must[chosen], self.weight[chosen], labels[pairs])


class LinkedLabels(NamedTuple):
    """Labels (c,) of the linked rows, their cost above a lower bound (NaN if none), as in ``BestLabels``."""

    labels: Ints
    optimal: bool
    converged: bool
    gap: float
    method: str
    n_iter: int
    parts: Mapping[str, int]


def weighted_links(constraints: Constraints, must_weight: float, cannot_weight: float) -> WeightedLinks:
    """Multiply the weights of links by those of their kind; hard links stay hard."""
    rows, ends = np.unique(constraints.pairs, return_inverse=True)
    must = constraints.weights > 0
    hard = np.isinf(constraints.weights)
    weight = np.abs(constraints.weights) * np.where(hard, 1.0, np.where(must, must_weight, cannot_weight))
    return WeightedLinks(rows, constraints.pairs, ends.reshape(-1, 2).astype(np.int64), must, weight)


def link_costs(
    links: WeightedLinks, distortion: Distortion, rows: Any, metric: Metric, penalty: str
) -> Floats:
    """Cost of each link when violated, (m,) or with metrics of every cluster (m, K); cannot-links < 0.

    Bilenko & Basu 2004, Eq. 6, each pair once: w phi(i, j) for a must-link and w (phi_max - phi(i, j)) for a
    cannot-link, or w itself for ``penalty="constant"``.
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


def violation_costs(coupling: Floats, violated: Bools, ends: Ints) -> Floats:
    """What each link costs (m,), 0 unless violated, given the labels (m, 2) of its ends."""
    if coupling.ndim == 1:
        return np.where(violated, np.abs(coupling), 0.0)
    both = np.abs(np.take_along_axis(coupling, ends, axis=1))
    return np.where(violated, 0.5 * both.sum(axis=1), 0.0)


def assign_linked(
    links: WeightedLinks,
    unary: Floats,
    coupling: Floats,
    method: str | Callable[..., Any],
    previous: Ints | None,
    rng: np.random.Generator,
    *,
    options: Mapping[str, Any] | None = None,
    n_threads: int = 1,
    want_bound: bool = False,
) -> LinkedLabels:
    """Labels of the linked rows of little cost, never above that of the previous ones (c,).

    ``unary`` (c, K) is the cost of rows, ``coupling`` that of links; ``want_bound`` also bounds the best
    cost.
    """
    field = PottsField(-unary, links.local, coupling)
    best = best_labels(field, method, rng, initial=previous, n_threads=n_threads, **(options or {}))
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
    return LinkedLabels(labels, best.optimal, best.converged, gap, best.method, best.n_iter, best.parts)
