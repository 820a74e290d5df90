"""Omega(pi) of single groups and of pairs of groups, and its gradient, as loops over their kinds."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from linkwise._numba import kernel
from linkwise.inference.log_sums import log_sum_exp

__all__ = ["add_pairs", "add_singles"]


@kernel
def add_singles(
    powers: NDArray[np.float64],
    n_alike: NDArray[np.int64],
    log_weights: NDArray[np.float64],
    counts: NDArray[np.float64],
) -> float:
    """Groups linked to nothing: log sum_k pi_k^a; adds the expected counts to ``counts``."""
    n_labels = log_weights.shape[0]
    scores = np.empty(n_labels)
    log_omega = 0.0
    for kind in range(powers.shape[0]):
        for k in range(n_labels):
            scores[k] = powers[kind] * log_weights[k]
        log_total = log_sum_exp(scores)
        log_omega += n_alike[kind] * log_total
        for k in range(n_labels):
            counts[k] += n_alike[kind] * powers[kind] * math.exp(scores[k] - log_total)
    return log_omega


@kernel
def _share(power: float, log_weights: NDArray[np.float64], share: NDArray[np.float64]) -> float:
    """Write pi_k^a / sum_l pi_l^a; return the logarithm of the sum."""
    for k in range(share.shape[0]):
        share[k] = power * log_weights[k]
    log_total = log_sum_exp(share)
    for k in range(share.shape[0]):
        share[k] = math.exp(share[k] - log_total)
    return log_total


@kernel
def _joint(
    own: NDArray[np.float64],
    other: NDArray[np.float64],
    agree: float,
    differ: float,
    joint: NDArray[np.float64],
) -> float:
    """Write p_k (agree q_k + differ sum_{l != k} q_l) and return its sum.

    The sum over other labels is added up from both ends, not 1 - q_k, which would cancel.
    """
    n_labels = own.shape[0]
    before = 0.0
    for k in range(n_labels):
        joint[k] = before
        before += other[k]
    after = 0.0
    total = 0.0
    for k in range(n_labels - 1, -1, -1):
        joint[k] = own[k] * (agree * other[k] + differ * (joint[k] + after))
        after += other[k]
        total += joint[k]
    return total


@kernel
def add_pairs(
    kinds: NDArray[np.float64],
    n_alike: NDArray[np.int64],
    log_weights: NDArray[np.float64],
    counts: NDArray[np.float64],
) -> float:
    """Two groups joined by a link: log sum_kl pi_k^a pi_l^b exp(-cost of k, l); rows a, b, coupling."""
    n_labels = log_weights.shape[0]
    first, second, joint = np.empty(n_labels), np.empty(n_labels), np.empty(n_labels)
    log_omega = 0.0
    for kind in range(kinds.shape[0]):
        log_first = _share(kinds[kind, 0], log_weights, first)
        log_second = _share(kinds[kind, 1], log_weights, second)
        agree = math.exp(min(kinds[kind, 2], 0.0))
        differ = math.exp(-max(kinds[kind, 2], 0.0))
        omega = _joint(first, second, agree, differ, joint)
        log_omega += n_alike[kind] * (math.log(omega) + log_first + log_second)
        for k in range(n_labels):
            counts[k] += n_alike[kind] * kinds[kind, 0] * joint[k] / omega
        _joint(second, first, agree, differ, joint)
        for k in range(n_labels):
            counts[k] += n_alike[kind] * kinds[kind, 1] * joint[k] / omega
    return log_omega
