"""The score of a labelling of a reduced problem, as a whole and per component, and the best of several."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from linkwise._arrays import Floats, Ints
from linkwise._kernels import kernel
from linkwise.inference.problem import Problem, log_agree, log_differ


@kernel
def _score(unary: Floats, pairs: Ints, coupling: Floats, labels: Ints) -> tuple[float, int]:
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
    unary: Floats, pairs: Ints, coupling: Floats, labels: Ints, component: Ints, n_components: int
) -> Floats:
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


def problem_score(problem: Problem, labels: Ints) -> float:
    """Score of one labelling by a compensated sum; -inf if it breaks a hard link or a forbidden label."""
    total, n_infinite = _score(problem.unary, problem.pairs, problem.coupling, labels)
    return -np.inf if n_infinite else float(total)


def n_broken(problem: Problem, labels: Ints) -> int:
    """Number of hard cannot-links broken plus number of forbidden labels used: the terms that are -inf."""
    return int(_score(problem.unary, problem.pairs, problem.coupling, labels)[1])


def component_scores(problem: Problem, labels: Ints, component: Ints, n_components: int) -> Floats:
    """Score of a labelling, split into the parts of the connected components."""
    return _component_scores(problem.unary, problem.pairs, problem.coupling, labels, component, n_components)


def best_per_component(
    problem: Problem, candidates: Sequence[Ints], component: Ints, n_components: int
) -> Ints:
    """Join the best parts of several labellings: each component chooses for itself; the first wins ties."""
    labels, best = candidates[0], component_scores(problem, candidates[0], component, n_components)
    for candidate in candidates[1:]:
        scores = component_scores(problem, candidate, component, n_components)
        better = scores > best
        best = np.where(better, scores, best)
        labels = np.where(better[component], candidate, labels)
    return labels
