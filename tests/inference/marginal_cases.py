"""Problems for the approximate marginals engines, and slow definitions to hold them against."""

from __future__ import annotations

import numpy as np

from linkwise.exceptions import InfeasibleConstraints
from linkwise.graph import adjacency
from linkwise.inference.problem import Problem, reduce_field
from tests.inference.oracle import random_field


def make_problem(unary, pairs, coupling):
    unary = np.ascontiguousarray(unary, dtype=np.float64)
    pairs = np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
    return Problem(unary, pairs, np.asarray(coupling, dtype=np.float64), adjacency(len(unary), pairs))


def random_problem(seed, *, forbidden=0.0, partly_hard=0.0, **options):
    """A reduced random field; shares of labels forbidden and of links hard for one label only."""
    rng = np.random.default_rng(seed)
    while True:
        options["per_label"] = options.get("per_label", bool(rng.random() < 0.4)) or partly_hard > 0.0
        try:
            problem = reduce_field(random_field(rng, **options), keep_zero_in_component=True).problem
        except InfeasibleConstraints:
            continue
        break
    n_labels = problem.unary.shape[1]
    for row in problem.unary:
        banned = rng.random(n_labels) < forbidden
        banned[rng.integers(n_labels)] = False
        row[banned] = -np.inf
    for row in problem.coupling:
        if rng.random() < partly_hard:
            row[rng.integers(n_labels)] = -np.inf
    return problem


def brute_force(problem):
    """(prob, log_partition, agreement, labellings, their probabilities), K**n labellings at once.

    ``prob`` is None if nothing is allowed. As oracle.enumerate_problem, in a tenth of the time.
    """
    n, n_labels = problem.unary.shape
    labellings = np.indices((n_labels,) * n).reshape(n, -1).T
    total = problem.unary[np.arange(n), labellings].sum(axis=1)
    for (i, j), c in zip(problem.pairs, problem.coupling, strict=True):
        same = labellings[:, i] == labellings[:, j]
        if problem.coupling.ndim == 2:
            total += np.where(same, c[labellings[:, i]], 0.0)
        else:
            total += np.where(same, min(c, 0.0), -max(c, 0.0))
    if total.max() == -np.inf:
        return None, -np.inf, None, labellings, None
    weight = np.exp(total - total.max())
    log_partition = float(total.max() + np.log(weight.sum()))
    weight /= weight.sum()
    prob = np.stack([np.bincount(labellings[:, i], weight, n_labels) for i in range(n)])
    agreement = np.array([weight[labellings[:, i] == labellings[:, j]].sum() for i, j in problem.pairs])
    return prob, log_partition, agreement, labellings, weight


def permuted_points(problem, order):
    """The same problem with node ``order[r]`` renamed r; also the new row of every pair."""
    place = np.argsort(order)
    pairs = np.sort(place[problem.pairs], axis=1)
    rows = np.lexsort((pairs[:, 1], pairs[:, 0]))
    return make_problem(problem.unary[order], pairs[rows], problem.coupling[rows]), rows


def permuted_labels(problem, order):
    coupling = problem.coupling if problem.coupling.ndim == 1 else problem.coupling[:, order]
    return make_problem(problem.unary[:, order], problem.pairs, coupling)


def slow_bound(problem, q):
    """The mean-field bound of a table, term by term, with 0 log 0 = 0 (-inf) = 0."""
    total = 0.0
    for i, row in enumerate(q):
        for k, p in enumerate(row):
            if p > 0.0:
                total += p * (problem.unary[i, k] - np.log(p))
    for (i, j), c in zip(problem.pairs, problem.coupling, strict=True):
        for a in range(q.shape[1]):
            for b in range(q.shape[1]):
                weight = q[i, a] * q[j, b]
                if weight == 0.0:
                    continue
                if problem.coupling.ndim == 2:
                    total += weight * (c[a] if a == b else 0.0)
                else:
                    total += weight * (min(c, 0.0) if a == b else -max(c, 0.0))
    return total


def grid_problem(side, n_labels, coupling, seed, *, shuffled=False):
    """A square lattice with normal unary scores; ``shuffled``: its points numbered at random."""
    rng = np.random.default_rng(seed)
    index = np.arange(side * side).reshape(side, side)
    right = np.column_stack([index[:, :-1].ravel(), index[:, 1:].ravel()])
    down = np.column_stack([index[:-1].ravel(), index[1:].ravel()])
    pairs = np.concatenate([right, down])
    if shuffled:
        pairs = np.sort(rng.permutation(side * side)[pairs], axis=1)
    pairs = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
    return make_problem(
        rng.normal(size=(side * side, n_labels)), pairs, rng.choice(coupling, size=len(pairs))
    )
