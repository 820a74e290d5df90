"""The score of a labelling of a reduced problem, as a whole and per component."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from linkwise._kernels import kernel
from linkwise.inference.problem import Problem, log_agree, log_differ

__all__ = ["component_scores", "n_broken", "problem_score"]


@kernel
def _score(
    unary: NDArray[np.float64],
    pairs: NDArray[np.int64],
    coupling: NDArray[np.float64],
    labels: NDArray[np.int64],
) -> tuple[float, int]:
    """Compensated sum (Neumaier) of the finite terms, and the number of terms that are -inf."""
    n_nodes = unary.shape[0]
    total = 0.0
    lost = 0.0
    n_infinite = 0
    for item in range(n_nodes + pairs.shape[0]):
        if item < n_nodes:
            term = unary[item, labels[item]]
        else:
            edge = item - n_nodes
            label = labels[pairs[edge, 0]]
            if label == labels[pairs[edge, 1]]:
                term = log_agree(coupling, edge, label)
            else:
                term = log_differ(coupling, edge)
        if term == -np.inf:
            n_infinite += 1
            continue
        grown = total + term
        lost += (total - grown) + term if abs(total) >= abs(term) else (term - grown) + total
        total = grown
    return total + lost, n_infinite


@kernel
def _component_scores(
    unary: NDArray[np.float64],
    pairs: NDArray[np.int64],
    coupling: NDArray[np.float64],
    labels: NDArray[np.int64],
    component: NDArray[np.int64],
    n_components: int,
) -> NDArray[np.float64]:
    """Sums of the terms of each component."""
    scores = np.zeros(n_components)
    for node in range(unary.shape[0]):
        scores[component[node]] += unary[node, labels[node]]
    for edge in range(pairs.shape[0]):
        first = pairs[edge, 0]
        label = labels[first]
        if label == labels[pairs[edge, 1]]:
            scores[component[first]] += log_agree(coupling, edge, label)
        else:
            scores[component[first]] += log_differ(coupling, edge)
    return scores


def problem_score(problem: Problem, labels: NDArray[np.int64]) -> float:
    """Score of one labelling: unary terms plus ``log_agree`` or ``log_differ`` of every link.

    Parameters
    ----------
    problem : Problem
    labels : (n,) int64

    Returns
    -------
    float
        ``-inf`` if a hard link is broken or a forbidden label used. The sum is compensated, so two
        labellings compare correctly even when a million terms are added.

    Examples
    --------
    >>> from linkwise.inference import PottsField
    >>> from linkwise.inference.problem import reduce_field
    >>> from linkwise.inference.scoring import problem_score
    >>> import numpy as np
    >>> field = PottsField([[0.0, 1.0], [2.0, 0.0]], pairs=[(0, 1)], coupling=[0.5])
    >>> problem_score(reduce_field(field, keep_zero_in_component=False).problem, np.array([1, 0]))
    2.5
    """
    total, n_infinite = _score(problem.unary, problem.pairs, problem.coupling, labels)
    return -np.inf if n_infinite else float(total)


def n_broken(problem: Problem, labels: NDArray[np.int64]) -> int:
    """Number of hard cannot-links broken plus number of forbidden labels used: the terms that are ``-inf``.

    Parameters
    ----------
    problem : Problem
    labels : (n,) int64

    Returns
    -------
    int
    """
    return int(_score(problem.unary, problem.pairs, problem.coupling, labels)[1])


def component_scores(
    problem: Problem, labels: NDArray[np.int64], component: NDArray[np.int64], n_components: int
) -> NDArray[np.float64]:
    """Score of a labelling, split into the parts of the connected components.

    Parameters
    ----------
    problem : Problem
    labels : (n,) int64
    component : (n,) int64
        Component of each node, as from :func:`linkwise.graph.group_labels`.
    n_components : int

    Returns
    -------
    (n_components,) float64
    """
    return _component_scores(problem.unary, problem.pairs, problem.coupling, labels, component, n_components)
