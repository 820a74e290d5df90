"""Gibbs sampling: every point in turn draws its label given its neighbours.

    P(z_i = k | rest) proportional to exp( unary_i(k) + sum_{e = ij} ratio_e(k) [z_j = k] )

(Lu & Leen 2007, Eq. 3.1 with the links of a point in sum). Probabilities are averages of these conditional
distributions, not of the labels drawn from them, which never has a larger variance per sample. Where links
are strong or hard, single points rarely move, and sweeps alternate with moves of many points at once
(:mod:`linkwise.inference.gibbs.block_moves`).

Random numbers are a function of chain, sweep and node, and points of one colour do not depend on each
other, so the result is the same for any number of threads.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from linkwise._threads import Workers
from linkwise.inference.engines import EngineMarginals, marginals_engine, number, whole
from linkwise.inference.gibbs.block_moves import (
    STRONG,
    exchange_labels,
    may_be_reducible,
    resample_forest,
    sticky_nodes,
)
from linkwise.inference.gibbs.sweeps import BELOW_ONE, sweep_labels
from linkwise.inference.gibbs.tally import N_BATCHES, Estimate, Tally
from linkwise.inference.local_search.forest_descent import polish
from linkwise.inference.local_search.hard_links import feasible_labels, hard_rows, soften
from linkwise.inference.mean_field import independent_answer
from linkwise.inference.problem import Problem
from linkwise.inference.scoring import n_broken
from linkwise.inference.sweep_layout import SweepLayout, sweep_layout

__all__ = ["gibbs"]

#: Sweeps per chain of the first round; every further round is twice as long. Shorter ones miss modes.
_FIRST_ROUND = 128


class _Chains(NamedTuple):
    """What the moves need, by place of the layout."""

    layout: SweepLayout
    unary: NDArray[np.float64]
    coupling: NDArray[np.float64]
    sticky: NDArray[np.bool_]
    sticky_nodes: NDArray[np.int64]
    strong_pairs: NDArray[np.int64]
    labels: list[NDArray[np.int64]]
    seeds: NDArray[np.uint64]


@marginals_engine("gibbs", tol=number(), max_sweeps=whole(N_BATCHES), burn_in=whole(0), n_chains=whole(1))
def gibbs(
    problem: Problem,
    rng: np.random.Generator,
    *,
    initial: NDArray[np.float64] | None = None,
    n_threads: int = 1,
    tol: float = 0.01,
    max_sweeps: int = 2000,
    burn_in: int = 32,
    n_chains: int = 4,
) -> EngineMarginals:
    """Monte Carlo marginals with their standard error.

    Several chains run in rounds, each twice as long as the one before. A round is judged on its own, all
    earlier sweeps being burn-in, so at least a third of the sweeps serves the result.

    Chains start from labels drawn from ``initial`` (n, K), by default the softmax of the unary scores;
    points with hard links start from a labelling that satisfies them instead. They run for ``burn_in``
    sweeps, but no more than a quarter of ``max_sweeps``, then until no probability has a larger standard
    error than ``tol`` or ``max_sweeps`` are made, at least 8, for the error is estimated from 8 batches of
    each chain.

    The partition function is not estimated (NaN). In ``details``: ``standard_error`` (n, K) of ``prob``,
    from batch means; ``n_samples``, the sweeps averaged over all chains; ``effective_samples``, the
    independent ones they are worth; ``between_chains``, the variance between chains over what their batches
    lead to expect, about 1 if they agree; ``may_be_reducible``, that hard links might confine the chains to
    a part of the labellings. If the hard links allow no labelling, ``log_partition`` is -inf and ``exact``;
    if none was found, it is -inf as a bound, and strong soft links take the place of hard ones.
    """
    if not problem.coupling.any():
        return independent_answer(problem)
    status, starts = _starts(problem, rng, initial, n_chains)
    if status == "infeasible":
        return independent_answer(problem)._replace(log_partition=-math.inf)
    chains = _set_up(problem if status == "feasible" else soften(problem), starts, rng)
    tally = Tally(chains.unary.shape, len(chains.layout.edges))
    done = min(burn_in, max_sweeps // 4, max_sweeps - N_BATCHES)
    length = max(min(_FIRST_ROUND, max_sweeps - done) // N_BATCHES, 1)
    workers = Workers(n_threads)
    for chain in range(n_chains):
        _run(chains, chain, range(done), tally, False, workers)
    while True:
        tally.clear()
        for chain in range(n_chains):
            for batch in range(N_BATCHES):
                first = done + batch * length
                squares = _run(chains, chain, range(first, first + length), tally, True, workers)
                tally.close_batch(length, squares)
            tally.close_chain()
        done += N_BATCHES * length
        estimate = tally.estimate()
        converged = bool(estimate.standard_error.max() <= tol)
        longest = (max_sweeps - done) // N_BATCHES
        if converged or longest < length:
            break
        length = min(2 * length, longest)
    return _answer(problem, chains.layout, estimate, done, status, converged)


def _starts(
    problem: Problem, rng: np.random.Generator, initial: NDArray[np.float64] | None, n_chains: int
) -> tuple[str, list[NDArray[np.int64]]]:
    """Starting labels of each chain; they satisfy the hard links if the status is "feasible"."""
    table = softmax(problem.unary, axis=1)
    if initial is not None:
        given = np.where(problem.unary > -np.inf, initial, 0.0)
        table = np.where(given.sum(axis=1, keepdims=True) > 0.0, given, table)
    below = np.cumsum(table, axis=1)
    linked = np.unique(problem.pairs[hard_rows(problem)])
    status = "feasible"
    starts: list[NDArray[np.int64]] = []
    for _ in range(n_chains):
        threshold = rng.random(len(below)) * below[:, -1] * BELOW_ONE
        labels = (below <= threshold[:, None]).sum(axis=1)
        if linked.size and status == "feasible":
            found, satisfying = feasible_labels(problem, rng)
            if found == "infeasible":
                return found, []
            labels[linked] = satisfying[linked]
            if found == "unknown":
                labels, _ = polish(problem, labels, rng)
            if n_broken(problem, labels):
                labels = starts[0].copy() if starts else labels
                status = "feasible" if starts else "unknown"
        starts.append(labels)
    return status, starts


def _set_up(problem: Problem, starts: list[NDArray[np.int64]], rng: np.random.Generator) -> _Chains:
    """Renumber the problem for sweeps and find the points for block moves."""
    layout = sweep_layout(problem)
    place = np.empty(len(layout.order), dtype=np.int64)
    place[layout.order] = np.arange(len(place))
    strength = np.abs(problem.coupling)
    strong = (strength if strength.ndim == 1 else strength.max(axis=1)) >= STRONG
    sticky = sticky_nodes(problem)[layout.order]
    return _Chains(
        layout=layout,
        unary=problem.unary[layout.order],
        coupling=problem.coupling,
        sticky=sticky,
        sticky_nodes=np.flatnonzero(sticky),
        strong_pairs=place[problem.pairs[strong]],
        labels=[labels[layout.order] for labels in starts],
        seeds=rng.integers(2**64, size=(len(starts), 7), dtype=np.uint64),
    )


def _run(chains: _Chains, chain: int, sweeps: range, tally: Tally, record: bool, workers: Workers) -> float:
    """Sweeps of one chain, each after block moves if there are points that stick; the squares recorded."""
    squares: list[float] = []
    layout, labels, seeds = chains.layout, chains.labels[chain], chains.seeds[chain]
    graph = layout.indptr, layout.neighbours, layout.edges
    for sweep in sweeps:
        if chains.sticky_nodes.size:
            exchange_labels(
                chains.sticky_nodes,
                chains.sticky,
                chains.unary,
                *graph,
                chains.coupling,
                seeds[1:4],
                sweep,
                labels,
            )
        # A forest costs several sweeps, so it is drawn every other time only.
        if chains.sticky_nodes.size and sweep % 2:
            resample_forest(
                chains.sticky_nodes,
                chains.strong_pairs,
                chains.unary,
                *graph,
                chains.coupling,
                seeds[4:7],
                sweep,
                labels,
            )

        def draw(blocks: tuple[int, int], sweep: int = sweep) -> float:
            return sweep_labels(
                blocks[0],
                blocks[1],
                layout.blocks,
                layout.order,
                chains.unary,
                *graph,
                layout.coupling,
                layout.scattered,
                seeds[0],
                sweep,
                record,
                labels,
                tally.batch,
                tally.agreement,
            )

        for step in layout.steps:
            squares += workers.map(draw, step)
    return math.fsum(squares)


def _answer(
    problem: Problem, layout: SweepLayout, estimate: Estimate, n_sweeps: int, status: str, converged: bool
) -> EngineMarginals:
    """Back to the numbering of the problem."""
    prob = np.empty_like(estimate.prob)
    prob[layout.order] = estimate.prob
    standard_error = np.empty_like(prob)
    standard_error[layout.order] = estimate.standard_error
    feasible = status == "feasible"
    return EngineMarginals(
        prob=prob,
        log_partition=math.nan if feasible else -math.inf,
        agreement=np.bincount(layout.edges, estimate.agreement, len(problem.pairs)) / 2.0,
        exact=False,
        converged=converged and feasible,
        n_iter=n_sweeps,
        log_partition_kind="unavailable" if feasible else "lower_bound",
        details={
            "standard_error": standard_error,
            "n_samples": estimate.n_samples,
            "effective_samples": estimate.effective_samples,
            "between_chains": estimate.between_chains,
            "may_be_reducible": may_be_reducible(problem),
        },
    )
