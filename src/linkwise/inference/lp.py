"""Labels by linear programming: relax, round, polish, and certify when the relaxation is tight."""

from __future__ import annotations

import numpy as np

from linkwise._arrays import Floats, Ints
from linkwise._kernels import kernel
from linkwise._kernels.random import counter_uniform
from linkwise.inference.engines import EngineLabels, labels_engine, number, whole
from linkwise.inference.exact.junction_tree import find_components
from linkwise.inference.local_polytope import solve_relaxation
from linkwise.inference.local_search.forest_descent import polish
from linkwise.inference.problem import Problem, induced
from linkwise.inference.scoring import best_per_component, problem_score

# Gap up to which a labelling that meets the bound is called optimal, relative to the sum of all absolute
# scores. On tight relaxations the gap is rounding, about 1e-16.
_TIGHT = 1e-12
# A largest share this far below 1 counts as no clear label.
_FRACTIONAL = 1e-6
# A node with shares that add up to 1 is labelled by a draw with probability 1/K; after this many, by argmax.
_MOST_DRAWS = 5000


@labels_engine("lp", n_roundings=whole(0), time_limit=number(optional=True))
def lp(
    problem: Problem,
    rng: np.random.Generator,
    *,
    initial: Ints | None = None,
    n_threads: int = 1,
    n_roundings: int = 20,
    time_limit: float | None = None,
) -> EngineLabels:
    """Linear relaxation over the local polytope, solved by HiGHS (Bilenko & Basu 2004, Eqs. 8-15, corrected).

    Components without a cycle are solved in two passes, for there the relaxation is tight. On the others the
    shares of the linear program are rounded by argmax and, unless all are 0 or 1, ``n_roundings`` times by
    Kleinberg & Tardos. These labellings and the start are polished by forest descent, and every component
    keeps its best. (Polishing all of them rather than the best one closes half or more of the gap that is
    left, in less time than the linear program takes.)

    ``initial`` is one more candidate; without, that is the best label of each node on its own. The linear
    program has ``time_limit`` seconds; when they are over, the result is the polished start, without a bound.

    Optimal if the labels meet the bound, as they do when the shares are all 0 or 1, or if the hard links
    leave not even shares of labels. ``details["n_fractional"]`` counts the nodes without a clear label.
    """
    component, _, acyclic = find_components(problem)
    start = problem.unary.argmax(axis=1) if initial is None else np.asarray(initial, dtype=np.int64)
    labels = start.copy()
    bound = 0.0
    easy = np.flatnonzero(acyclic[component])
    if easy.size:
        part, _ = induced(problem, easy)
        labels[easy], _ = polish(part, start[easy], rng)
        bound = problem_score(part, labels[easy])
    loopy = np.flatnonzero(~acyclic[component])
    if not loopy.size or bound == -np.inf:
        return EngineLabels(labels, bound, True)

    part, _ = induced(problem, loopy)
    place = (np.cumsum(~acyclic) - 1)[component[loopy]]
    relaxed = solve_relaxation(part, time_limit)
    candidates = [start[loopy]]
    n_fractional = 0
    shares = relaxed.shares
    if shares is not None:
        candidates.insert(0, shares.argmax(axis=1))
        n_fractional = int((shares.max(axis=1) < 1 - _FRACTIONAL).sum())
        if n_fractional:
            candidates += [kleinberg_tardos(shares, place, rng) for _ in range(n_roundings)]
    polished = [polish(part, candidate, rng)[0] for candidate in candidates]
    labels[loopy] = best_per_component(part, polished, place, int((~acyclic).sum()))

    details = {"n_fractional": n_fractional}
    score = problem_score(problem, labels)
    if relaxed.status == "infeasible":
        return EngineLabels(labels, -np.inf, score == -np.inf, True, relaxed.n_iter, details)
    if relaxed.upper_bound is None:
        return EngineLabels(labels, None, False, False, relaxed.n_iter, details)
    bound += relaxed.upper_bound
    optimal = score >= bound - _TIGHT * _total_size(problem)
    return EngineLabels(labels, bound, bool(optimal), True, relaxed.n_iter, details)


def _total_size(problem: Problem) -> float:
    """Sum over nodes and links of the largest absolute score."""
    unary = np.where(np.isinf(problem.unary), 0.0, np.abs(problem.unary)).max(axis=1)
    coupling = np.where(np.isinf(problem.coupling), 0.0, np.abs(problem.coupling))
    return float(unary.sum() + coupling.reshape(len(coupling), -1).max(axis=1, initial=0.0).sum())


@kernel
def _round(shares: Floats, component: Ints, seed: np.uint64) -> Ints:
    """First draw (label, threshold) of the component's sequence that the node's share reaches."""
    n_nodes, n_labels = shares.shape
    labels = np.empty(n_nodes, dtype=np.int64)
    for node in range(n_nodes):
        labels[node] = np.argmax(shares[node])
        for draw in range(_MOST_DRAWS):
            label = int(n_labels * counter_uniform(seed, component[node], 2 * draw))
            # In (0, 1], so that a label without a share is never taken.
            threshold = 1.0 - counter_uniform(seed, component[node], 2 * draw + 1)
            if shares[node, label] >= threshold:
                labels[node] = label
                break
    return labels


def kleinberg_tardos(shares: Floats, component: Ints, rng: np.random.Generator) -> Ints:
    """Random labels with P(z_i = a) = shares[i, a] that tend to agree where the shares do.

    Draw a label a and a threshold in (0, 1] again and again, for each component its own; every node without a
    label whose share of a reaches the threshold takes it (Kleinberg & Tardos 2002). So must-links cost at
    most twice what they cost the relaxation; for cannot-links there is no such guarantee.
    """
    return _round(shares, component, rng.integers(2**64, dtype=np.uint64))
