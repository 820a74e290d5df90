"""Exact inference where all nodes of a component need different labels: sums over sets of labels.

Hard labels of L classes are such a component: L groups of rows, each two of them linked apart. Elimination
needs a table of K ** L entries there. But which labels are left for the next node depends only on the *set*
of labels that the nodes before it took, and there are 2 ** K sets:

    F(S) = sum over the ways to give the labels S to the first abs(S) nodes
         = sum_{k in S} F(S - k) exp(unary[abs(S) - 1, k])

and in the same way from the last node back. This takes n 2 ** K steps for each label instead of K ** n.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from linkwise._arrays import Bools, Floats, Ints
from linkwise._kernels import kernel
from linkwise.inference.problem import Problem

#: Elimination with tables of up to this many entries takes no longer than a few hundredths of a millisecond.
_SMALL_TABLE = 2**12


def n_set_entries(n_labels: int) -> int:
    """Terms of the sums over sets of labels."""
    return n_labels * 2**n_labels


def distinct_components(problem: Problem, component: Ints, sizes: Ints, max_table: int) -> Bools:
    """Components (c,) whose nodes are all linked apart by hard links, and that tables suit less than sets."""
    n_labels = problem.unary.shape[1]
    if n_set_entries(n_labels) > max_table:
        return np.zeros(len(sizes), dtype=bool)
    hard = problem.coupling == -np.inf
    hard = hard if hard.ndim == 1 else hard.all(axis=1)
    n_hard = np.bincount(component[problem.pairs[hard, 0]], minlength=len(sizes))
    large = float(n_labels) ** np.minimum(sizes, n_labels) > _SMALL_TABLE
    found: Bools = large & (sizes <= n_labels) & (2 * n_hard == sizes * (sizes - 1))
    return found


def distinct_marginals(unary: Floats, nodes: NDArray[np.integer], prob: Floats) -> float:
    """Write P(z_i = k) into rows of ``prob`` (n, K), NaN if labels do not suffice; the log partition."""
    table, log_partition = _set_marginals(np.ascontiguousarray(unary[nodes]))
    prob[nodes] = table
    return float(log_partition)


def distinct_best_labels(unary: Floats) -> Ints:
    """Different labels (n,) of highest score for all rows, an assignment problem; zeros if there are none."""
    try:
        return np.asarray(linear_sum_assignment(unary, maximize=True)[1], dtype=np.int64)
    except ValueError:  # forbidden labels leave no assignment
        return np.zeros(len(unary), dtype=np.int64)


@kernel
def _set_marginals(unary: Floats) -> tuple[Floats, float]:
    """Marginals (n, K) and log partition of n <= K nodes with different labels, in logarithms."""
    n_nodes, n_labels = unary.shape
    n_sets = 1 << n_labels
    size_of = np.zeros(n_sets, dtype=np.uint8)
    before = np.full(n_sets, -np.inf)
    before[0] = 0.0
    terms = np.empty(n_labels)
    log_partition = -np.inf
    for taken in range(1, n_sets):
        size = size_of[taken >> 1] + (taken & 1)
        size_of[taken] = size
        if size > n_nodes:
            continue
        largest = -np.inf
        for k in range(n_labels):
            terms[k] = -np.inf
            if taken >> k & 1:
                terms[k] = before[taken ^ (1 << k)] + unary[size - 1, k]
                largest = max(largest, terms[k])
        before[taken] = _log_sum(terms, largest)
        if size == n_nodes:
            log_partition = np.logaddexp(log_partition, before[taken])
    prob = np.zeros((n_nodes, n_labels))
    if log_partition == -np.inf:
        prob[:] = np.nan
        return prob, log_partition
    after = np.full(n_sets, -np.inf)
    for taken in range(n_sets - 1, -1, -1):
        size = size_of[taken]
        if size == n_nodes:
            after[taken] = 0.0
        if size >= n_nodes:
            continue
        largest = -np.inf
        for k in range(n_labels):
            terms[k] = -np.inf
            if not taken >> k & 1:
                terms[k] = after[taken | (1 << k)] + unary[size, k]
                largest = max(largest, terms[k])
                share = before[taken] + terms[k] - log_partition
                if share > -745.0:  # below, exp is zero
                    prob[size, k] += np.exp(share)
        after[taken] = _log_sum(terms, largest)
    return prob, log_partition


@kernel
def _log_sum(terms: Floats, largest: float) -> float:
    """log(sum(exp(terms))), given the largest of them."""
    if largest == -np.inf:
        return largest
    total = 0.0
    for term in terms:
        if term > largest - 745.0:
            total += np.exp(term - largest)
    return largest + np.log(total)
