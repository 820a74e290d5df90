"""From a labelling that breaks hard links towards one that does not."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from linkwise.graph import group_labels
from linkwise.inference.local_search.hard_links import feasible_labels, hard_rows
from linkwise.inference.problem import Problem, induced

__all__ = ["lexicographic", "recolour"]

# Far below the largest double, so that sums of many such terms stay finite.
_LARGEST_COST = 1e290


def lexicographic(problem: Problem) -> Problem:
    """The problem with every ``-inf`` replaced by a finite cost that outweighs all soft terms together.

    Its best labellings break the fewest hard links (forbidden labels counted alike) and among those have
    the highest finite score. A descent from an infeasible labelling runs on it until nothing is broken.

    Parameters
    ----------
    problem : Problem

    Returns
    -------
    Problem
        Sharing ``pairs`` and ``graph`` with the argument.

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise.inference import PottsField
    >>> from linkwise.inference.problem import reduce_field
    >>> from linkwise.inference.local_search.repair import lexicographic
    >>> field = PottsField([[0.0, 3.0], [1.0, 0.0]], [(0, 1)], [-np.inf])
    >>> lexicographic(reduce_field(field, keep_zero_in_component=False).problem).coupling
    array([-9.])
    """
    forbidden = problem.unary == -np.inf
    highest = problem.unary.max(axis=1)
    lowest = np.where(forbidden, np.inf, problem.unary).min(axis=1)
    strength = np.where(problem.coupling == -np.inf, 0.0, np.abs(problem.coupling))
    if strength.ndim == 2:
        # A link's terms range from its lowest to its highest reward, or 0.
        strength = 2.0 * strength.max(axis=1)
    cost = min(1.0 + 2.0 * ((highest - lowest).sum() + strength.sum()), _LARGEST_COST)
    return Problem(
        np.where(forbidden, lowest[:, None] - cost, problem.unary),
        problem.pairs,
        np.maximum(problem.coupling, -cost),
        problem.graph,
    )


def recolour(problem: Problem, labels: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """Relabel the groups of hard-linked nodes in which something is broken by a proper colouring.

    A group is a connected component of the hard cannot-links. Which label each colour becomes is chosen by
    an assignment that maximises the unary score of the group. Soft links are ignored: a descent follows.

    Parameters
    ----------
    problem : Problem
    labels : (n,) int64
    rng : numpy.random.Generator

    Returns
    -------
    (n,) int64
        A copy; unchanged when no colouring was found.
    """
    result = labels.copy()
    n_labels = problem.unary.shape[1]
    hard = hard_rows(problem)
    pairs, coupling = problem.pairs[hard], problem.coupling[hard]
    group, n_groups = group_labels(len(labels), pairs)
    broken = np.zeros(n_groups, dtype=bool)
    at_first, at_second = labels[pairs].T
    violated = at_first == at_second
    if coupling.ndim == 2:
        violated &= coupling[np.arange(len(pairs)), at_first] == -np.inf
    broken[group[pairs[violated, 0]]] = True
    broken[group[problem.unary[np.arange(len(labels)), labels] == -np.inf]] = True
    nodes = np.flatnonzero(broken[group])
    part, _ = induced(problem, nodes)
    status, colours = feasible_labels(part, rng)
    if status != "feasible":
        return result

    inside = hard_rows(part)
    if (part.coupling[inside] > -np.inf).any():
        # Labels differ in what is hard for them, so that colours cannot change places.
        result[nodes] = colours
        return result
    members = np.cumsum(broken)[group[nodes]] - 1
    value = np.zeros((int(broken.sum()), n_labels, n_labels))
    # A renaming that keeps to the allowed labels exists (the identity), so the assignment finds one too.
    np.add.at(value, (members, colours), lexicographic(part).unary)
    label_of = np.array([linear_sum_assignment(table, maximize=True)[1] for table in value])
    result[nodes] = label_of[members, colours]
    return result
