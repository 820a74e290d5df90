"""Exhaustive enumeration of a Potts field: slow, obvious, and the truth for every engine."""

from __future__ import annotations

import numpy as np

from linkwise.inference import PottsField
from linkwise.inference.problem import Problem


def all_labellings(n, n_labels):
    """Every labelling, (K**n, n)."""
    return np.indices((n_labels,) * n).reshape(n, -1).T


def scores(field):
    """All labellings (K**n, n) and their scores, straight from the definition of the score."""
    labellings = all_labellings(field.n_points, field.n_labels)
    total = np.zeros(len(labellings))
    for i in range(field.n_points):
        total += field.unary[i, labellings[:, i]]
    for (i, j), c in zip(field.pairs, field.coupling, strict=True):
        c = np.broadcast_to(c, field.n_labels)
        first, second = c[labellings[:, i]], c[labellings[:, j]]
        apart = 0.5 * (np.maximum(first, 0.0) + np.maximum(second, 0.0))
        total -= np.where(labellings[:, i] != labellings[:, j], apart, np.maximum(-first, 0.0))
    return labellings, total


def summary(labellings, total, pairs, n_labels):
    """(prob, log_partition, agreement, best score, best labelling); log_partition -inf if infeasible."""
    best = int(np.argmax(total))
    if total[best] == -np.inf:
        return None, -np.inf, None, -np.inf, None
    weight = np.exp(total - total[best])
    log_partition = float(total[best] + np.log(weight.sum()))
    weight /= weight.sum()
    prob = np.array([[weight[labels == k].sum() for k in range(n_labels)] for labels in labellings.T])
    agreement = np.array([weight[labellings[:, i] == labellings[:, j]].sum() for i, j in pairs])
    return prob, log_partition, agreement, float(total[best]), labellings[best]


def enumerate_field(field):
    """(prob, log_partition, agreement, best score, best labelling); log_partition -inf if infeasible."""
    return summary(*scores(field), field.pairs, field.n_labels)


def enumerate_problem(problem: Problem):
    """The same for a reduced problem, whose links read differently (see ``linkwise.inference.problem``)."""
    if problem.coupling.ndim == 1:
        return enumerate_field(PottsField(problem.unary, problem.pairs, problem.coupling))
    n, n_labels = problem.unary.shape
    labellings = all_labellings(n, n_labels)
    total = np.zeros(len(labellings))
    for i in range(n):
        total += problem.unary[i, labellings[:, i]]
    for (i, j), reward in zip(problem.pairs, problem.coupling, strict=True):
        total += np.where(labellings[:, i] == labellings[:, j], reward[labellings[:, i]], 0.0)
    return summary(labellings, total, problem.pairs, n_labels)


GRAPHS = ("empty", "tree", "cycle", "clique", "sparse", "dense", "two_parts")


def random_pairs(rng, n, shape):
    """Distinct pairs i < j of a random graph of this shape."""
    everything = [(i, j) for i in range(n) for j in range(i + 1, n)]
    order = rng.permutation(n)
    if shape == "tree":
        chosen = {tuple(sorted((int(order[i]), int(order[rng.integers(i)])))) for i in range(1, n)}
    elif shape == "cycle":
        chosen = (
            {tuple(sorted((int(order[i]), int(order[(i + 1) % n])))) for i in range(n)} if n > 2 else set()
        )
    elif shape == "clique":
        chosen = set(everything)
    elif shape == "two_parts":
        chosen = {p for p in everything if (p[0] < n // 2) == (p[1] < n // 2) and rng.random() < 0.7}
    else:
        share = {"empty": 0.0, "sparse": 0.3, "dense": 0.7}[shape]
        chosen = {p for p in everything if rng.random() < share}
    return np.array(sorted(chosen), dtype=np.int64).reshape(-1, 2)


def random_field(
    rng, *, n=None, n_labels=None, shape=None, hard=0.2, must_hard=True, per_label=False, scale=2.0
):
    """A random field: signs mixed, a share ``hard`` of the links infinite."""
    n = int(rng.integers(1, 8)) if n is None else n
    n_labels = int(rng.integers(1, 5)) if n_labels is None else n_labels
    while n_labels**n > 5000:
        n -= 1
    shape = str(rng.choice(GRAPHS)) if shape is None else shape
    pairs = random_pairs(rng, n, shape)
    unary = rng.normal(scale=scale, size=(n, n_labels))
    m = len(pairs)
    sign = rng.choice([-1.0, 1.0], size=m)
    infinite = rng.random(m) < hard
    if not must_hard:
        infinite &= sign < 0
    if per_label:
        coupling = sign[:, None] * rng.exponential(scale, size=(m, n_labels))
        coupling[infinite] = sign[infinite, None] * np.inf
    else:
        coupling = sign * rng.exponential(scale, size=m)
        coupling[infinite] = sign[infinite] * np.inf
    return PottsField(unary, pairs, coupling)
