"""Omega(pi): the normaliser of the prior over the labels of linked rows, and its gradient.

Omega(pi) = sum_Z prod_i pi_{z_i} g(Z), in penalty form, is the partition function of the field of the links
with log pi in place of the data, and dlog Omega / dlog pi_k = E_prior[n_k] comes from the same inference
pass.

The prior sees only how groups of rows are joined, not which rows they are, so alike components are computed
once: a thousand disjoint must-links cost as much as one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.graph import group_labels
from linkwise.inference import PottsField, marginals
from linkwise.inference.reduce import induced, reduce_field
from linkwise.mixture.kernels_omega import add_pairs, add_singles
from linkwise.mixture.linked_rows import LinkedRows, link_field, sum_components

__all__ = ["LabelPrior"]

#: Engines whose marginals are the gradient of the partition function they return.
_ENGINES = ("auto", "exact", "tree", "belief_propagation")


class LabelPrior:
    """log Omega and expected counts as a function of log pi.

    Parameters
    ----------
    linked : LinkedRows
    method : str or engine
        For components of more than two groups. Engines that return no partition function to differentiate
        (mean field, Gibbs, engines of the user) leave them to ``auto``.
    random_state : int

    Attributes
    ----------
    exact : bool
        Whether everything asked so far was exact.
    """

    def __init__(self, linked: LinkedRows, method: str | Callable[..., Any], random_state: int) -> None:
        self._cluster_of = linked.cluster_of
        self._method = method if method in _ENGINES else "auto"
        self._random_state = random_state
        self.exact = True
        flat = np.zeros((len(linked.rows), linked.n_clusters))
        field = PottsField(flat, linked.pairs, linked.coupling)
        problem, groups, _, self._constant = reduce_field(field, keep_zero_in_component=False)
        power = np.bincount(groups, linked.share, minlength=len(problem.unary))
        component, n_components = group_labels(len(power), problem.pairs)
        n_groups = np.bincount(component, minlength=n_components)[component]
        self._singles, self._n_singles = np.unique(power[n_groups == 1], return_counts=True)
        first, second = problem.pairs.T
        in_pair = n_groups[first] == 2
        ends = np.sort(np.column_stack([power[first], power[second]])[in_pair], axis=1)
        kinds = np.column_stack([ends, problem.coupling[in_pair]])
        self._pairs, self._n_pairs = np.unique(kinds, axis=0, return_counts=True)
        rest = np.flatnonzero(n_groups > 2)
        self._rest_power = power[rest]
        inside, _ = induced(problem, rest)
        self._rest = link_field(inside.pairs, inside.coupling, len(rest))

    def __call__(self, log_weights: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """Log Omega and E_prior[n_k], every row counted by its share, at these log weights.

        Parameters
        ----------
        log_weights : (K,)
            Need not be normalised.

        Returns
        -------
        log_omega : float
        counts : (K,)
        """
        per_cluster = sum_components(log_weights[np.newaxis], self._cluster_of)[0]
        log_omega, counts = self._of_rest(per_cluster)
        log_omega += self._constant
        log_omega += add_singles(self._singles, self._n_singles, per_cluster, counts)
        log_omega += add_pairs(self._pairs, self._n_pairs, per_cluster, counts)
        within = np.exp(log_weights - per_cluster[self._cluster_of])
        return log_omega, counts[self._cluster_of] * within

    def _of_rest(self, log_weights: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """Larger components, by inference."""
        if not self._rest_power.size:
            return 0.0, np.zeros(len(log_weights))
        unary = self._rest_power[:, np.newaxis] * log_weights
        found = marginals(
            self._rest.with_unary(unary), self._method, self._random_state, overwrite_unary=True
        )
        self.exact = self.exact and found.exact
        return found.log_partition, self._rest_power @ found.prob
