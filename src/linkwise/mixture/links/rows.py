"""The rows that carry links and their constrained posterior."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from linkwise._arrays import Floats, Ints
from linkwise._kernels.math import log_sum_exp_rows
from linkwise.constraints import Constraints
from linkwise.graph import compact, group_labels
from linkwise.inference import Marginals, PottsField, marginals


class LinkedRows(NamedTuple):
    """Links among the rows that have any.

    ``rows`` (n,) of the data, ascending; ``pairs`` (m, 2) in the numbering of ``rows``; ``coupling`` (m,) 2
    W: what a violated link costs (the prior runs over ordered pairs, so each counts twice); ``cluster_of``
    (K,) of each component, for links act on clusters. ``prior_power`` (n,) is the power of pi that a row
    brings along: 1 when points are sampled independently (assumption 2 of Shental et al. 2003), 1 / (size
    of its chunklet) when chunklets are (assumption 1), so that a chunklet brings pi once.
    """

    rows: Ints
    pairs: Ints
    coupling: Floats
    prior_power: Floats
    cluster_of: Ints

    @property
    def n_clusters(self) -> int:
        """Number of labels the links see."""
        return int(self.cluster_of.max()) + 1


class LinkedPosterior(NamedTuple):
    """P(component k | X, links) of the linked rows (n, K), and the answer of inference over clusters."""

    responsibilities: Floats
    marginals: Marginals


def select_linked_rows(
    constraints: Constraints, cluster_of: Ints, *, chunklets_once: bool = False, judged: Ints | None = None
) -> LinkedRows:
    """Take the links out of the constraints; ``chunklets_once``: a chunklet brings pi once.

    ``judged`` (m, 2) are all pairs that were judged, sorted: also those whose answers cancel, of coupling 0.
    """
    chosen, coupling = constraints.pairs, 2.0 * constraints.weights
    if judged is not None and len(judged) > len(chosen):
        of_judged = np.zeros(len(judged))
        of_judged[pair_places(judged, chosen)] = coupling
        chosen, coupling = judged, of_judged
    rows, pairs = compact(chosen)
    prior_power = np.ones(len(rows))
    if chunklets_once:
        chunklets, _ = group_labels(len(rows), pairs[coupling == np.inf])
        prior_power = 1.0 / np.bincount(chunklets)[chunklets]
    return LinkedRows(rows, pairs, coupling, prior_power, cluster_of)


def pair_places(pairs: Ints, wanted: Ints) -> Ints:
    """Places (w,) of some pairs in a sorted list (m, 2) that has all of them."""
    rows, local = compact(pairs)
    key = np.array([len(rows), 1])
    return np.searchsorted(local @ key, np.searchsorted(rows, wanted) @ key)


def link_field(pairs: Ints, coupling: Floats, n_points: int) -> PottsField:
    """A field of the links with scores still to come (``with_unary``), so that it is analysed once."""
    return PottsField(np.zeros((n_points, 1)), pairs, coupling)


def linked_posterior(
    linked: LinkedRows,
    links: PottsField,
    log_density: Floats,
    log_weights: Floats,
    method: str | Callable[..., Any],
    random_state: Any,
    initial: Floats | None,
    **options: Any,
) -> LinkedPosterior:
    """Constrained posterior of the linked rows; ``log_density`` (n, K) becomes the responsibilities.

    ``links`` is the field of ``link_field``, and ``initial`` (n, n_clusters) the marginals of the step
    before.
    """
    joint = log_density
    for k, log_weight in enumerate(log_weights):
        joint[:, k] += linked.prior_power * log_weight
    scores = sum_components(joint, linked.cluster_of)
    if scores is not joint:
        for k, cluster in enumerate(linked.cluster_of):
            joint[:, k] = np.exp(joint[:, k] - scores[:, cluster])
    found = marginals(
        links.with_unary(scores), method, random_state, initial=initial, overwrite_unary=True, **options
    )
    if scores is joint:
        return LinkedPosterior(found.prob, found)
    for k, cluster in enumerate(linked.cluster_of):
        joint[:, k] *= found.prob[:, cluster]
    return LinkedPosterior(joint, found)


def sum_components(log_values: Floats, cluster_of: Ints) -> Floats:
    """log-sum-exp over the components of each cluster; components of a cluster stand side by side."""
    n_clusters = int(cluster_of.max()) + 1
    if n_clusters == len(cluster_of):
        return log_values
    by_cluster = log_values.reshape(len(log_values) * n_clusters, -1)
    return log_sum_exp_rows(by_cluster).reshape(len(log_values), n_clusters)
