"""Exact inference on narrow components: a junction tree in the form of elimination buckets."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from linkwise.inference.bucket_tables import fill_best_labels, fill_marginals
from linkwise.inference.junction_plan import Buckets, Plan, plan
from linkwise.inference.reduce import Problem

__all__ = ["Buckets", "Plan", "junction_best_labels", "junction_marginals", "plan"]

#: Table entries for one call of a kernel.
_ENTRIES_AT_ONCE = 2**24


def junction_marginals(
    problem: Problem, buckets: Buckets, prob: NDArray[np.float64], agreement: NDArray[np.float64]
) -> float:
    """Calibrate the junction trees of the narrow components: one pass there, one pass back.

    Parameters
    ----------
    problem : Problem
    buckets : Buckets
        Of a :func:`plan` of this problem.
    prob : (n, K)
        Receives P(z_i = k) in the rows of the nodes eliminated; NaN where no labelling is allowed.
    agreement : (m,)
        Receives P(z_i == z_j) of their links.

    Returns
    -------
    float
        log partition of these components together, ``-inf`` if one of them allows no labelling.

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise.inference import PottsField
    >>> from linkwise.inference.reduce import reduce_field
    >>> from linkwise.inference.junction import junction_marginals, plan
    >>> field = PottsField([[0.0] * 3] * 3, [(0, 1), (1, 2), (0, 2)], [-np.inf] * 3)
    >>> problem = reduce_field(field, keep_zero_in_component=True).problem
    >>> prob, agreement = np.empty((3, 3)), np.empty(3)
    >>> log_partition = junction_marginals(problem, plan(problem).buckets, prob, agreement)
    >>> round(float(np.exp(log_partition)), 9)
    6.0
    """
    graph = problem.graph
    shift = np.zeros(len(buckets.order))
    for some in _at_a_time(buckets, problem.unary.shape[1]):
        fill_marginals(problem.unary, problem.coupling, *graph, *some, prob, agreement, shift)
    return float(shift.sum())


def junction_best_labels(problem: Problem, buckets: Buckets, labels: NDArray[np.int64]) -> None:
    """Max-sum on the junction trees of the narrow components, ties settled by back-tracking.

    Parameters
    ----------
    problem : Problem
    buckets : Buckets
        Of a :func:`plan` of this problem.
    labels : (n,) int64
        Receives a labelling of highest score at the nodes eliminated.

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise.inference import PottsField
    >>> from linkwise.inference.reduce import reduce_field
    >>> from linkwise.inference.junction import junction_best_labels, plan
    >>> field = PottsField(np.eye(3)[[0, 0, 1]], [(0, 1), (1, 2), (0, 2)], [5.0, 5.0, 5.0])
    >>> problem = reduce_field(field, keep_zero_in_component=False).problem
    >>> labels = np.empty(3, dtype=np.int64)
    >>> junction_best_labels(problem, plan(problem).buckets, labels)
    >>> labels
    array([0, 0, 0])
    """
    graph = problem.graph
    for some in _at_a_time(buckets, problem.unary.shape[1]):
        fill_best_labels(problem.unary, problem.coupling, *graph, *some, labels)


def _at_a_time(buckets: Buckets, n_labels: int) -> Iterator[Buckets]:
    """The buckets in portions that a kernel solves in some 0.2 s, so that an interrupt gets through."""
    starts = buckets.component_start
    if buckets.n_entries * (len(starts) - 1) <= _ENTRIES_AT_ONCE:
        yield buckets
        return
    entries = np.append(0, np.cumsum(float(n_labels) ** (np.diff(buckets.separator_indptr) + 1)))[starts]
    first = 0
    while first < len(starts) - 1:
        last = int(np.searchsorted(entries, entries[first] + _ENTRIES_AT_ONCE, side="right")) - 1
        last = max(last, first + 1)
        yield buckets._replace(component_start=starts[first : last + 1])
        first = last
