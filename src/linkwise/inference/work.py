"""Work counted in table and message entries, so that a limit gives the same result on every machine."""

from __future__ import annotations

import numpy as np

from linkwise._kernels.lanes import padded
from linkwise.inference.exact.junction_tree import Plan
from linkwise.inference.problem import Problem

__all__ = ["LOGARITHMIC_ENTRY", "TABLE_ENTRY", "elimination_work", "sweep_work", "sweeps_within"]

#: Units of one message entry in logarithms, 12 to 45 ns. One as a plain number is 1 unit, 4 to 8 ns.
LOGARITHMIC_ENTRY = 4
#: Units of one entry of a table of elimination: 7 to 16 ns.
TABLE_ENTRY = 2


def sweep_work(problem: Problem) -> int:
    """Units of one sweep of belief propagation in plain numbers: both messages of every link."""
    return 2 * len(problem.pairs) * padded(problem.unary.shape[1])


def sweeps_within(max_work: float | None, per_sweep: float, max_iter: int) -> int:
    """Sweeps that a limit of work allows, at least one and at most ``max_iter``."""
    if max_work is None:
        return max_iter
    return int(min(max(max_work // max(per_sweep, 1), 1), max_iter))


def elimination_work(planned: Plan, n_labels: int) -> int:
    """Units of one pass over the tables of the narrow components."""
    bag_sizes = np.diff(planned.buckets.separator_indptr)
    return TABLE_ENTRY * int((float(n_labels) ** (bag_sizes + 1)).sum())
