"""Random problems and checks shared by the tests of the exact engines."""

from __future__ import annotations

import decimal
import itertools

import numpy as np

from linkwise.graph import adjacency
from linkwise.inference.problem import Problem
from tests.inference.oracle import random_pairs

SHAPES = ("tree", "cycle", "clique", "sparse", "dense", "two_parts")


def make_problem(unary, pairs, coupling):
    unary = np.ascontiguousarray(unary, dtype=np.float64)
    pairs = np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
    return Problem(
        unary, pairs, np.ascontiguousarray(coupling, dtype=np.float64), adjacency(len(unary), pairs)
    )


def random_problem(rng, *, shape=None, n_labels=None, max_states=1500):
    """A random reduced problem: per edge or per label, soft and hard, forbidden labels, zero links."""
    n_labels = int(rng.integers(2, 5)) if n_labels is None else n_labels
    n = int(rng.integers(2, 9))
    while n_labels**n > max_states:
        n -= 1
    pairs = random_pairs(rng, n, str(rng.choice(SHAPES)) if shape is None else shape)
    scale = rng.choice([0.3, 2.0, 30.0])
    unary = rng.normal(scale=scale, size=(n, n_labels))
    if rng.random() < 0.3:
        forbidden = rng.random(unary.shape) < 0.3
        forbidden[np.arange(n), rng.integers(n_labels, size=n)] = False
        unary[forbidden] = -np.inf
    shape_of_coupling = (len(pairs), n_labels) if rng.random() < 0.4 else (len(pairs),)
    coupling = rng.normal(scale=rng.choice([0.3, 2.0, 30.0]), size=shape_of_coupling)
    coupling[rng.random(len(pairs)) < rng.choice([0.0, 0.3])] = -np.inf
    coupling[rng.random(len(pairs)) < 0.05] = 0.0
    if coupling.ndim == 2 and rng.random() < 0.5:
        coupling[rng.random(coupling.shape) < 0.1] = -np.inf
    return make_problem(unary, pairs, coupling)


def enumerate_fast(problem):
    """What ``oracle.enumerate_problem`` returns, with one array operation per term instead of loops."""
    n, n_labels = problem.unary.shape
    labellings = np.indices((n_labels,) * n).reshape(n, -1)
    total = sum(problem.unary[i, labellings[i]] for i in range(n))
    for (i, j), value in zip(problem.pairs, problem.coupling, strict=True):
        equal = labellings[i] == labellings[j]
        if problem.coupling.ndim == 2:
            total[equal] += value[labellings[i, equal]]
        else:
            total[equal if value < 0 else ~equal] -= abs(value)
    best = int(np.argmax(total))
    if total[best] == -np.inf:
        return None, -np.inf, None, -np.inf, None
    weight = np.exp(total - total[best])
    mass = weight.sum()
    prob = np.array([np.bincount(labels, weight, n_labels) for labels in labellings]) / mass
    agreement = np.array([weight[labellings[i] == labellings[j]].sum() for i, j in problem.pairs]) / mass
    return prob, float(total[best] + np.log(mass)), agreement, float(total[best]), labellings[:, best]


def check_marginals(problem, prob, agreement, log_partition):
    """Compare with enumeration to 1e-10; True if the problem has a labelling."""
    true_prob, true_log_partition, true_agreement, _, _ = enumerate_fast(problem)
    if true_log_partition == -np.inf:
        assert log_partition == -np.inf
        return False
    np.testing.assert_allclose(prob, true_prob, rtol=0, atol=1e-10)
    np.testing.assert_allclose(agreement, true_agreement, rtol=0, atol=1e-10)
    assert abs(log_partition - true_log_partition) <= 1e-10 * max(1.0, abs(true_log_partition))
    return True


def precise_marginals(problem):
    """Enumeration with 60 digits: (prob, log_partition, agreement)."""
    with decimal.localcontext() as context:
        context.prec = 60
        n, n_labels = problem.unary.shape
        zero = decimal.Decimal(0)
        prob = [[zero] * n_labels for _ in range(n)]
        agreement = [zero] * len(problem.pairs)
        terms = []
        for z in itertools.product(range(n_labels), repeat=n):
            score = sum((decimal.Decimal(problem.unary[i, z[i]]) for i in range(n)), zero)
            for e, (i, j) in enumerate(problem.pairs):
                if problem.coupling.ndim == 2:
                    score += decimal.Decimal(problem.coupling[e, z[i]]) if z[i] == z[j] else zero
                elif (z[i] == z[j]) == (problem.coupling[e] < 0):
                    score -= decimal.Decimal(abs(problem.coupling[e]))
            terms.append((z, score))
        best = max(score for _, score in terms)
        total = zero
        for z, score in terms:
            weight = (score - best).exp()
            total += weight
            for i in range(n):
                prob[i][z[i]] += weight
            for e, (i, j) in enumerate(problem.pairs):
                if z[i] == z[j]:
                    agreement[e] += weight
        return (
            np.array([[float(p / total) for p in row] for row in prob]),
            float(best + total.ln()),
            np.array([float(a / total) for a in agreement]),
        )


def grid_pairs(n_rows, n_columns):
    index = np.arange(n_rows * n_columns).reshape(n_rows, n_columns)
    across = np.column_stack([index[:, :-1].ravel(), index[:, 1:].ravel()])
    down = np.column_stack([index[:-1].ravel(), index[1:].ravel()])
    pairs = np.concatenate([across, down])
    return pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]


def ring_pairs(n_rings, length):
    start = np.arange(n_rings)[:, None] * length
    step = np.arange(length)
    pairs = np.sort(np.stack([start + step, start + (step + 1) % length], axis=2).reshape(-1, 2), axis=1)
    return pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
