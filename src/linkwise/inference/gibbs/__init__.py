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

from linkwise._arrays import Bools, Floats, Ints
from linkwise._kernels import kernel
from linkwise._threads import Workers
from linkwise.graph import Adjacency
from linkwise.inference.engines import EngineMarginals, marginals_engine, number, whole
from linkwise.inference.gibbs.block_moves import (
    STRONG,
    exchange_labels,
    may_be_reducible,
    resample_forest,
    sticky_nodes,
)
from linkwise.inference.gibbs.sweeps import BELOW_ONE, sweep_labels
from linkwise.inference.local_search.forest_descent import polish
from linkwise.inference.local_search.hard_links import feasible_labels, hard_rows, soften
from linkwise.inference.mean_field import independent_answer
from linkwise.inference.problem import Problem
from linkwise.inference.scoring import n_broken
from linkwise.inference.sweep_layout import SweepLayout, sweep_layout

#: Sweeps per chain of the first round; every further round is twice as long. Shorter ones miss modes.
_FIRST_ROUND = 128
#: Batches per chain. With 4 chains the error estimate of an entry is itself good to 13 %.
N_BATCHES = 8
#: Chains differ beyond doubt if their means scatter this much more than expected. Four chains that agree
#: exceed it once in 30 times if all entries move together, hardly ever if there are many.
_DIFFERENT = 3.5


class _Chains(NamedTuple):
    """What the moves need, by place of the layout."""

    layout: SweepLayout
    unary: Floats
    coupling: Floats
    sticky: Bools
    sticky_nodes: Ints
    strong_pairs: Ints
    labels: list[Ints]
    seeds: NDArray[np.uint64]


@marginals_engine("gibbs", tol=number(), max_sweeps=whole(N_BATCHES), burn_in=whole(0), n_chains=whole(1))
def gibbs(
    problem: Problem,
    rng: np.random.Generator,
    *,
    initial: Floats | None = None,
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
    problem: Problem, rng: np.random.Generator, initial: Floats | None, n_chains: int
) -> tuple[str, list[Ints]]:
    """Starting labels of each chain; they satisfy the hard links if the status is "feasible"."""
    table = softmax(problem.unary, axis=1)
    if initial is not None:
        given = np.where(problem.unary > -np.inf, initial, 0.0)
        table = np.where(given.sum(axis=1, keepdims=True) > 0.0, given, table)
    below = np.cumsum(table, axis=1)
    linked = np.unique(problem.pairs[hard_rows(problem)])
    status = "feasible"
    starts: list[Ints] = []
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


def _set_up(problem: Problem, starts: list[Ints], rng: np.random.Generator) -> _Chains:
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
    graph = Adjacency(layout.indptr, layout.neighbours, layout.edges)
    of_moves = chains.unary, graph, chains.coupling
    for sweep in sweeps:
        if chains.sticky_nodes.size:
            exchange_labels(chains.sticky_nodes, chains.sticky, *of_moves, seeds[1:4], sweep, labels)
        # A forest costs several sweeps, so it is drawn every other time only.
        if chains.sticky_nodes.size and sweep % 2:
            resample_forest(chains.sticky_nodes, chains.strong_pairs, *of_moves, seeds[4:7], sweep, labels)

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


class Estimate(NamedTuple):
    """What a round of sampling found, by place (n, K) and half-edge (2 m,).

    ``n_samples``: sweeps of all chains, worth ``effective_samples`` independent ones. ``between_chains``:
    variance of the chains' means over that expected from their batches, well above 1 if chains do not mix.
    """

    prob: Floats
    standard_error: Floats
    agreement: Floats
    n_samples: int
    effective_samples: float
    between_chains: float


class Tally:
    """Sums of a round in which every chain runs ``N_BATCHES`` batches; they are closed one into the other."""

    def __init__(self, shape: tuple[int, ...], n_half_edges: int) -> None:
        self.batch = np.zeros(shape)
        self.agreement = np.zeros(n_half_edges)
        self._chain = np.zeros(shape)
        self._total = np.zeros(shape)
        self._squares = np.zeros(shape)
        self.clear()

    def clear(self) -> None:
        """Forget the round."""
        for table in (self.batch, self.agreement, self._chain, self._total, self._squares):
            table[:] = 0.0
        self._sweep_squares = self._chain_squares = 0.0
        self._n_chains = self._n_samples = 0

    def close_batch(self, n_sweeps: int, squares: float) -> None:
        """Take the mean of the last sweeps as one batch; ``squares`` sums the squares of what they added."""
        _close_batch(self.batch, 1.0 / n_sweeps, self._chain, self._squares)
        self._sweep_squares += squares
        self._n_samples += n_sweeps

    def close_chain(self) -> None:
        """Go on to the next chain."""
        self._chain_squares += _close_chain(self._chain, self._total) / N_BATCHES**2
        self._n_chains += 1

    def estimate(self) -> Estimate:
        """Means and standard errors over all chains and batches.

        The variance of the batch means over their number is that of the overall mean. If chains clearly
        differ by more, all errors are scaled up. To this comes 1 / N, N effective samples: what one more
        could change.
        """
        n_batches = self._n_chains * N_BATCHES
        prob = self._total / n_batches
        squared_mean = float(np.vdot(prob, prob))
        variance = np.maximum(self._squares - n_batches * prob**2, 0.0) / (n_batches - 1)
        pooled = float(variance.sum())
        per_sweep = self._sweep_squares / self._n_samples - squared_mean
        between = inflation = 1.0
        effective = float(self._n_samples)
        # Differences of squares that are rounding only say that nothing varies.
        if min(pooled, per_sweep) > 1e-12 * squared_mean:
            if self._n_chains > 1:
                observed = self._chain_squares - self._n_chains * squared_mean
                between = observed / (self._n_chains - 1) / (pooled / N_BATCHES)
                inflation = between if between > _DIFFERENT else 1.0
            effective = min(effective, per_sweep / (pooled * inflation / n_batches))
        standard_error = np.sqrt(variance * (inflation / n_batches) + effective**-2)
        return Estimate(
            prob, standard_error, self.agreement / self._n_samples, self._n_samples, effective, between
        )


@kernel
def _close_batch(batch: Floats, scale: float, chain: Floats, squares: Floats) -> None:
    """Add the batch mean to the chain and its square to the squares; clear the batch."""
    for node in range(batch.shape[0]):
        for label in range(batch.shape[1]):
            mean = batch[node, label] * scale
            chain[node, label] += mean
            squares[node, label] += mean * mean
            batch[node, label] = 0.0


@kernel
def _close_chain(chain: Floats, total: Floats) -> float:
    """Add the chain to the total and clear it; the sum of its squares."""
    squares = 0.0
    for node in range(chain.shape[0]):
        for label in range(chain.shape[1]):
            squares += chain[node, label] * chain[node, label]
            total[node, label] += chain[node, label]
            chain[node, label] = 0.0
    return squares
