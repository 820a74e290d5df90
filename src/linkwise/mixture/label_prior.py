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
from scipy.special import logsumexp, softmax

from linkwise.graph import group_labels
from linkwise.inference import PottsField, marginals
from linkwise.inference.reduce import induced, reduce_field
from linkwise.mixture.linked_rows import LinkedRows, sum_components

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
        self._rest, _ = induced(problem, rest)

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
        log_omega, counts = self._constant, np.zeros(len(per_cluster))
        for part in (self._of_singles, self._of_pairs, self._of_rest):
            part_log_omega, part_counts = part(per_cluster)
            log_omega += part_log_omega
            counts += part_counts
        within = np.exp(log_weights - per_cluster[self._cluster_of])
        return log_omega, counts[self._cluster_of] * within

    def _of_singles(self, log_weights: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """Chunklets linked to nothing: sum_k pi_k^a."""
        scores = self._singles[:, np.newaxis] * log_weights
        log_omega = self._n_singles @ logsumexp(scores, axis=1)
        return float(log_omega), (self._n_singles * self._singles) @ softmax(scores, axis=1)

    def _of_pairs(self, log_weights: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """Two groups joined by a link: sum_kl pi_k^a pi_l^b exp(-cost of k, l)."""
        powers, coupling = self._pairs[:, :2], self._pairs[:, 2]
        scores = powers[:, :, np.newaxis] * log_weights
        first, second = softmax(scores, axis=2).transpose(1, 0, 2)
        agree = np.exp(np.minimum(coupling, 0.0))[:, np.newaxis]
        differ = np.exp(-np.maximum(coupling, 0.0))[:, np.newaxis]
        # The probability of another label is added up, not 1 - p, which would cancel.
        others = 1.0 - np.eye(len(log_weights))
        joint_first = first * (agree * second + differ * (second @ others))
        joint_second = second * (agree * first + differ * (first @ others))
        omega = joint_first.sum(axis=1)
        log_omega = self._n_pairs @ (np.log(omega) + logsumexp(scores, axis=2).sum(axis=1))
        weight = self._n_pairs / omega
        counts = (weight * powers[:, 0]) @ joint_first + (weight * powers[:, 1]) @ joint_second
        return float(log_omega), counts

    def _of_rest(self, log_weights: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """Larger components, by inference."""
        if not self._rest_power.size:
            return 0.0, np.zeros(len(log_weights))
        unary = self._rest_power[:, np.newaxis] * log_weights
        field = PottsField(unary, self._rest.pairs, self._rest.coupling)
        found = marginals(field, self._method, self._random_state)
        self.exact = self.exact and found.exact
        return found.log_partition, self._rest_power @ found.prob
