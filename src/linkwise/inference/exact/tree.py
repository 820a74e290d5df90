"""The engine ``tree``: exact on a maximum spanning forest of the links (Shental et al. 2003)."""

from __future__ import annotations

import warnings

import numpy as np

from linkwise._arrays import Bools, Floats, Ints
from linkwise._kernels import kernel
from linkwise.exceptions import ApproximationWarning
from linkwise.graph import adjacency
from linkwise.graph.csr import find
from linkwise.inference.engines import EngineMarginals, marginals_engine
from linkwise.inference.exact.forest import forest_marginals
from linkwise.inference.problem import Problem


@kernel
def _kruskal(n_nodes: int, pairs: Ints, order: Ints) -> Bools:
    """Keep each pair, in this order, that joins two groups not yet joined."""
    parent = np.arange(n_nodes)
    kept = np.zeros(pairs.shape[0], dtype=np.bool_)
    for row in order:
        a = find(parent, pairs[row, 0])
        b = find(parent, pairs[row, 1])
        if a != b:
            parent[max(a, b)] = min(a, b)
            kept[row] = True
    return kept


def maximum_spanning_forest(problem: Problem, rng: np.random.Generator) -> Bools:
    """The links (m,) of a spanning forest of largest total abs(coupling); ``rng`` settles ties."""
    strength = np.abs(problem.coupling)
    if strength.ndim == 2:
        strength = strength.max(axis=1)
    shuffled = rng.permutation(len(strength))
    order = shuffled[np.argsort(-strength[shuffled], kind="stable")]
    return _kruskal(len(problem.unary), problem.pairs, order)


@marginals_engine("tree", uses_initial=False, differentiable=True)
def spanning_forest(
    problem: Problem, rng: np.random.Generator, *, initial: Floats | None = None, n_threads: int = 1
) -> EngineMarginals:
    """Exact marginals of the field without the links outside a maximum spanning forest.

    Exact if no link had to be dropped. Otherwise it warns, and ``details`` has ``n_dropped`` and
    ``dropped``, the rows of ``pairs``; the agreement of a dropped link is that of independent ends, ``sum_k
    P(z_i = k) P(z_j = k)``, so it also says how often the forest would break a hard one. A dropped penalty
    can only have lowered the partition function, so ``log_partition`` is an upper bound; it is a lower
    bound where only rewards were dropped (couplings per label), and an approximation without a sign where
    both were.
    """
    kept = maximum_spanning_forest(problem, rng)
    n_dropped = len(kept) - int(kept.sum())
    if n_dropped == 0:
        prob, agreement, log_partition = forest_marginals(problem)
        return EngineMarginals(prob, log_partition, agreement, exact=True)
    pairs = problem.pairs[kept]
    forest = Problem(problem.unary, pairs, problem.coupling[kept], adjacency(len(problem.unary), pairs))
    agreement = np.empty(len(kept))
    prob, agreement[kept], log_partition = forest_marginals(forest)
    if log_partition == -np.inf:
        # The forest's links alone allow no labelling: that much is exact.
        return EngineMarginals(prob, log_partition, np.full(len(kept), np.nan), exact=True)
    ends = problem.pairs[~kept]
    agreement[~kept] = np.einsum("ek,ek->e", prob[ends[:, 0]], prob[ends[:, 1]])
    warnings.warn(
        f"{n_dropped} of {len(kept)} links were dropped to leave a forest and may be violated; "
        "method='exact' or 'auto' uses all of them",
        ApproximationWarning,
        stacklevel=4,
    )
    return EngineMarginals(
        prob,
        log_partition,
        agreement,
        exact=False,
        log_partition_kind=_kind(problem.coupling[~kept]),
        details={"n_dropped": n_dropped, "dropped": np.flatnonzero(~kept)},
    )


def _kind(dropped: Floats) -> str:
    """What the partition function without these links is of the one with them."""
    if dropped.ndim == 1 or not (dropped > 0).any():
        return "upper_bound"
    return "lower_bound" if not (dropped < 0).any() else "approximation"
