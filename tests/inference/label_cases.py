"""Small random problems for the labels engines, and the score of a labelling from its definition."""

from __future__ import annotations

import itertools

import numpy as np

from linkwise.graph import adjacency
from linkwise.inference.problem import Problem
from tests.inference.oracle import GRAPHS, random_pairs

KINDS = ("costs", "rewards", "mixed_signs")


def make_problem(unary, pairs, coupling):
    unary = np.ascontiguousarray(unary, dtype=np.float64)
    pairs = np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
    return Problem(unary, pairs, np.asarray(coupling, dtype=np.float64), adjacency(len(unary), pairs))


def random_problem(
    rng, *, n=None, n_labels=None, shape=None, kind=None, hard=0.0, forbidden=0.0, scale=2.0, unary_scale=1.0
):
    """Links of either sign; a share ``hard`` of them hard, a share ``forbidden`` of the unary scores -inf.

    kind: (m,) costs, (m, K) rewards of one sign per link, or of mixed signs and partly hard. A small
    ``unary_scale`` makes links that contradict each other, and relaxations that are not tight.
    """
    n = int(rng.integers(2, 7)) if n is None else n
    n_labels = int(rng.integers(1, 4)) if n_labels is None else n_labels
    shape = str(rng.choice(GRAPHS)) if shape is None else shape
    kind = str(rng.choice(KINDS)) if kind is None else kind
    pairs = random_pairs(rng, n, shape)
    unary = rng.normal(scale=unary_scale * scale, size=(n, n_labels))
    for row in unary:
        banned = rng.random(n_labels) < forbidden
        banned[rng.integers(n_labels)] = False
        row[banned] = -np.inf
    m = len(pairs)
    if kind == "costs":
        coupling = rng.choice([-1.0, 1.0], size=m) * rng.exponential(scale, size=m)
        coupling[rng.random(m) < hard] = -np.inf
    else:
        sign_shape = (m, n_labels) if kind == "mixed_signs" else (m, 1)
        coupling = rng.choice([-1.0, 0.0, 1.0], p=[0.45, 0.1, 0.45], size=sign_shape) * rng.exponential(
            scale, size=(m, n_labels)
        )
        coupling[np.broadcast_to(rng.random(sign_shape) < hard, coupling.shape)] = -np.inf
    return make_problem(unary, pairs, coupling)


def slow_terms(problem, labels):
    """Every term of the score, one by one."""
    terms = [problem.unary[i, labels[i]] for i in range(len(labels))]
    for (i, j), c in zip(problem.pairs, problem.coupling, strict=True):
        same = labels[i] == labels[j]
        if problem.coupling.ndim == 2:
            terms.append(c[labels[i]] if same else 0.0)
        else:
            terms.append(min(c, 0.0) if same else -max(c, 0.0))
    return terms


def slow_score(problem, labels):
    return float(sum(slow_terms(problem, labels)))


def slow_broken(problem, labels):
    return sum(term == -np.inf for term in slow_terms(problem, labels))


def best_score(problem):
    """Highest score by enumeration, -inf if nothing is allowed."""
    n, n_labels = problem.unary.shape
    labellings = np.array(list(itertools.product(range(n_labels), repeat=n)))
    total = problem.unary[np.arange(n), labellings].sum(axis=1)
    for (i, j), c in zip(problem.pairs, problem.coupling, strict=True):
        same = labellings[:, i] == labellings[:, j]
        if problem.coupling.ndim == 2:
            total += np.where(same, c[labellings[:, i]], 0.0)
        else:
            total += np.where(same, min(c, 0.0), -max(c, 0.0))
    return float(total.max())


def best_single_change(problem, labels):
    """Highest score among the labellings that differ from this one at one node."""
    best = -np.inf
    for node in range(len(labels)):
        for label in range(problem.unary.shape[1]):
            if label != labels[node]:
                changed = labels.copy()
                changed[node] = label
                best = max(best, slow_score(problem, changed))
    return best
