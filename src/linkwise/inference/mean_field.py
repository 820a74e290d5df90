"""Mean field: the best approximation of the field by independent points, found by coordinate ascent.

With q_i the approximate distribution of point i, and for link e the numbers differ_e = log_differ and
ratio_e(k) = log_agree(k) - log_differ of :mod:`linkwise.inference.problem`, the bound

    B(q) = sum_i [H(q_i) + sum_k q_i(k) unary_i(k)] + sum_{e = ij} [differ_e + sum_k ratio_e(k) q_i(k) q_j(k)]

never exceeds log Z, and for fixed neighbours it is largest at

    q_i(k) proportional to exp( unary_i(k) + sum_{e = ij} ratio_e(k) q_j(k) )

(Lu & Leen 2007, section 3.3; the factor 2 that is missing there is inside the coupling). Points are updated
one after another, or together where no link joins them, which is the same thing: the bound never falls.
Updating all points at once, as the paper suggests, can cycle for ever.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from linkwise._arrays import Floats, Ints, ShortInts
from linkwise._kernels import kernel, reassociating_kernel
from linkwise._kernels.math import exp_nonpositive
from linkwise._kernels.random import counter_uniform
from linkwise._kernels.simd import (
    WIDTH,
    hint,
    lane_max,
    lane_sum,
    larger,
    load,
    padded,
    splat,
    store,
)
from linkwise._threads import Workers
from linkwise.inference.engines import EngineMarginals, marginals_engine, number, whole
from linkwise.inference.local_search.forest_descent import polish
from linkwise.inference.local_search.hard_links import disjoint_supports, feasible_labels, hard_rows, soften
from linkwise.inference.problem import Problem
from linkwise.inference.scoring import n_broken
from linkwise.inference.sweep_layout import SweepLayout, sweep_layout

#: Relative size of the noise that breaks the symmetry of a start from the unary scores.
_COLD_JITTER = 1e-2
#: The same for a given start, in units of the tolerance: enough to leave an exact saddle, too little to
#: cost more than a few sweeps where the start is already good.
_WARM_JITTER = 10.0
#: Normalisers (at most K each) are multiplied up to this size before one logarithm is taken of the product.
_LARGE = 1e200
#: How many nodes before its update the rows of a node's neighbours are asked for.
_NODES_AHEAD = 8


@marginals_engine("mean_field", max_iter=whole(1), tol=number(), jitter=number(below=1.0, optional=True))
def mean_field(
    problem: Problem,
    rng: np.random.Generator,
    *,
    initial: Floats | None = None,
    n_threads: int = 1,
    max_iter: int = 200,
    tol: float = 1e-6,
    jitter: float | None = None,
) -> EngineMarginals:
    """Mean-field marginals and a lower bound of the log partition function.

    Points are swept colour by colour, so the numbers do not depend on ``n_threads``. The result is a local
    optimum: over-confident where links are strong, and dependent on the start.

    Hard cannot-links are a poor match: the bound is finite only if linked points share no label. So each
    label is given to one side of every hard link beforehand, starting from a labelling of high score
    (``local_search.hard_links.disjoint_supports``), and the bound leaves out all the rest. Prefer
    exact inference, belief propagation or Gibbs sampling there.

    ``initial`` (n, K) are probabilities to start from, by default the softmax of the unary scores. If their
    most probable labels hold the hard links, labels are given to the sides from there. Sweeps end when no
    probability moves by more than ``tol``, or after ``max_iter``. ``jitter`` is the relative size of the
    noise that breaks symmetric starts: by default 0.01, or 10 ``tol`` if ``initial`` is given.

    ``log_partition`` is the bound at the returned table, ``details["bounds"]`` its value after every sweep.
    If the hard links allow no labelling, ``log_partition`` is -inf and ``exact``; if none was found, it is
    -inf as a bound, and the table is that of strong soft links instead.
    """
    if not problem.coupling.any():
        return independent_answer(problem)
    status, soft_problem = _without_hard_links(problem, rng, initial)
    if status == "infeasible":
        return independent_answer(problem)._replace(log_partition=-math.inf)
    n_labels = problem.unary.shape[1]
    layout = sweep_layout(soft_problem)
    unary = _padded_rows(soft_problem.unary, layout.order, -np.inf)
    if initial is None:
        q = _softmax(unary)
        amplitude = _COLD_JITTER if jitter is None else jitter
    else:
        q = _allowed_part(_padded_rows(initial, layout.order, 0.0), unary)
        amplitude = _WARM_JITTER * tol if jitter is None else jitter
    _shake(q, n_labels, layout.order, rng.integers(2**64, dtype=np.uint64), amplitude)
    bounds, converged = _ascend(layout, unary, q, max_iter, tol, Workers(n_threads))
    if problem.coupling.ndim == 1:
        bounds -= np.maximum(problem.coupling, 0.0).sum()
    prob = np.empty_like(problem.unary)
    prob[layout.order] = q[:, :n_labels]
    return EngineMarginals(
        prob=prob,
        log_partition=float(bounds[-1]) if status == "feasible" else -math.inf,
        agreement=link_agreement(problem.pairs, prob),
        exact=False,
        converged=converged and status == "feasible",
        n_iter=len(bounds),
        log_partition_kind="lower_bound",
        details={"bounds": bounds},
    )


def independent_answer(problem: Problem) -> EngineMarginals:
    """Exact answer if no coupling differs from zero."""
    normaliser = logsumexp(problem.unary, axis=1, keepdims=True)
    prob = np.exp(problem.unary - normaliser)
    return EngineMarginals(prob, float(normaliser.sum()), link_agreement(problem.pairs, prob), exact=True)


@reassociating_kernel
def link_agreement(pairs: Ints, prob: Floats) -> Floats:
    """P(z_i == z_j) of each pair, (m,), if points are independent: sum_k prob_i(k) prob_j(k)."""
    agreement = np.empty(pairs.shape[0])
    for edge in range(pairs.shape[0]):
        first = prob[pairs[edge, 0]]
        second = prob[pairs[edge, 1]]
        total = 0.0
        for label in range(prob.shape[1]):
            total += first[label] * second[label]
        agreement[edge] = total
    return agreement


def _without_hard_links(
    problem: Problem, rng: np.random.Generator, initial: Floats | None
) -> tuple[str, Problem]:
    """A problem whose bound holds for this one, too, and has soft links only."""
    if not hard_rows(problem).any():
        return "feasible", problem
    labels = None
    if initial is not None:
        labels = np.where(problem.unary > -np.inf, initial, -1.0).argmax(axis=1)
    # Labels that hold the links already know the data; those of a search do not.
    if labels is None or n_broken(problem, labels):
        status, labels = feasible_labels(problem, rng)
        if status == "infeasible":
            return status, problem
    labels, _ = polish(problem, labels, rng)
    if n_broken(problem, labels):
        return "unknown", soften(problem)
    return "feasible", disjoint_supports(problem, labels)


def _padded_rows(table: Floats, rows: NDArray[np.integer] | slice, filler: float) -> Floats:
    """Rows of a table, filled up to whole lanes."""
    n_labels = table.shape[1]
    if padded(n_labels) == n_labels:
        return table[rows]
    result = np.full((len(table), padded(n_labels)), filler)
    result[:, :n_labels] = table[rows]
    return result


@reassociating_kernel
def _softmax(scores: Floats) -> Floats:
    """Rows of exp(scores), normalised; rows of whole lanes."""
    n_rows, stride = scores.shape
    prob = np.empty_like(scores)
    for start in range(0, n_rows * stride, stride):
        highest = splat(-np.inf)
        for position in range(start, start + stride, WIDTH):
            highest = larger(load(scores, position), highest)
        shift = splat(lane_max(highest))
        weights = splat(0.0)
        for position in range(start, start + stride, WIDTH):
            weight = exp_nonpositive(load(scores, position) - shift)
            weights = weights + weight
            store(prob, position, weight)
        scale = splat(1.0 / lane_sum(weights))
        for position in range(start, start + stride, WIDTH):
            store(prob, position, load(prob, position) * scale)
    return prob


def _allowed_part(prob: Floats, unary: Floats) -> Floats:
    """The given rows without the labels forbidden here; the softmax where nothing is left."""
    part = np.where(unary > -np.inf, prob, 0.0)
    empty = part.sum(axis=1) <= 0.0
    part[empty] = _softmax(unary[empty])
    return part


@kernel
def _shake(q: Floats, n_labels: int, order: Ints, seed: np.uint64, jitter: float) -> None:
    """Multiply by factors in 1 +- jitter that belong to the node, and normalise, in place."""
    for place in range(q.shape[0]):
        total = 0.0
        for label in range(n_labels):
            q[place, label] *= 1.0 + jitter * (2.0 * counter_uniform(seed, order[place], label) - 1.0)
            total += q[place, label]
        for label in range(n_labels):
            q[place, label] /= total


def _ascend(
    layout: SweepLayout, unary: Floats, q: Floats, max_iter: int, tol: float, workers: Workers
) -> tuple[Floats, bool]:
    """Sweep ``q`` in place until it stands still; the bound without its constant after every sweep."""
    coupling = layout.coupling
    if coupling.ndim == 2:
        coupling = _padded_rows(coupling, slice(None), 0.0)

    def run(blocks: tuple[int, int]) -> tuple[float, float]:
        return _sweep(
            layout.blocks[blocks[0]],
            layout.blocks[blocks[1]],
            unary,
            layout.indptr,
            layout.split,
            layout.neighbours,
            layout.edges,
            coupling,
            layout.scattered,
            q,
        )

    bounds: list[float] = []
    converged = False
    while not converged and len(bounds) < max_iter:
        parts = [part for step in layout.steps for part in workers.map(run, step)]
        bounds.append(math.fsum(bound for bound, _ in parts))
        converged = max(change for _, change in parts) < tol
    return np.array(bounds), converged


@reassociating_kernel
def _sweep(
    first_place: int,
    last_place: int,
    unary: Floats,
    indptr: ShortInts,
    split: Ints,
    neighbours: ShortInts,
    edges: Ints,
    coupling: Floats,
    scattered: bool,
    q: Floats,
) -> tuple[float, float]:
    """Update the nodes of some places in place; their share of the bound and the largest change.

    Every node contributes log sum_k exp(score) - sum_k q(k) later(k), where ``later`` is the part of its
    score from neighbours updated after it, so that each link counts once, with both ends new.
    """
    stride = q.shape[1]
    score = np.empty(stride)
    later = np.empty(stride)
    bound = 0.0
    product = 1.0
    change = splat(0.0)
    for place in range(first_place, last_place):
        if scattered:
            ahead = min(place + _NODES_AHEAD, last_place - 1)
            for slot in range(indptr[ahead], indptr[ahead + 1]):
                row = neighbours[slot] * stride
                hint(q, row, row + stride)
        start = place * stride
        highest = splat(-np.inf)
        for label in range(0, stride, WIDTH):
            total = splat(0.0)
            for half in range(2):
                first = split[place] if half == 0 else indptr[place]
                last = indptr[place + 1] if half == 0 else split[place]
                for slot in range(first, last):
                    if coupling.ndim == 1:
                        strength = splat(coupling[slot])
                    else:
                        strength = load(coupling, edges[slot] * stride + label)
                    total = total + strength * load(q, neighbours[slot] * stride + label)
                if half == 0:
                    store(later, label, total)
                    total = total + load(unary, start + label)
            store(score, label, total)
            highest = larger(total, highest)
        top = lane_max(highest)
        shift = splat(top)
        weights = splat(0.0)
        overlaps = splat(0.0)
        for label in range(0, stride, WIDTH):
            weight = exp_nonpositive(load(score, label) - shift)
            store(score, label, weight)
            weights = weights + weight
            overlaps = overlaps + weight * load(later, label)
        normaliser = lane_sum(weights)
        scale = splat(1.0 / normaliser)
        for label in range(0, stride, WIDTH):
            value = load(score, label) * scale
            before = load(q, start + label)
            change = larger(larger(value - before, before - value), change)
            store(q, start + label, value)
        bound += top - lane_sum(overlaps) / normaliser
        product *= normaliser
        if product > _LARGE:
            bound += math.log(product)
            product = 1.0
    return bound + math.log(product), lane_max(change)
