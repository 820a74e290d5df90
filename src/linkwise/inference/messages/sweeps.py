"""Sweeps: message passing to a fixed point, one message after the other, in one of three arithmetics.

A *sweep* goes through the places backwards, each sending to earlier neighbours, then forwards, each sending
to later ones: every message is sent once, and right before it is read. Sending all messages at
every visit takes about 1.4 times as many sweeps (measured on grids and random graphs), because half
of them are replaced before anyone reads them.

Every arithmetic has one kernel of its own. Made by a factory from the part that differs, kernels would be
compiled anew in every process, for numba's cache does not recognise a closure over a compiled function; and
with that part as a function of records of arrays a sweep took 3.5 times as long, counting references to
them.

Beyond half a million places the sweep order is cut into bands. Links reach no further than the next band, so
every second band can be swept at the same time by another thread, and the numbers do not depend on how many
threads there are.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise, product
from typing import NamedTuple

import numpy as np

from linkwise._arrays import Floats
from linkwise._kernels.simd import padded
from linkwise._threads import Workers
from linkwise.inference.messages.layout import (
    LINEAR,
    LOGARITHMIC,
    MAXIMUM,
    MessageGraph,
    PotentialTables,
    targets,
)
from linkwise.inference.messages.linear import sweep_linear
from linkwise.inference.messages.logarithmic import sweep_log
from linkwise.inference.messages.maximum import sweep_max
from linkwise.inference.problem import Problem

#: Units of work of a message entry in logarithms, 12 to 45 ns. One as a plain number is 1 unit, 4 to 8 ns.
LOGARITHMIC_ENTRY = 4
#: Damping is released once no message changes by more than this in a sweep.
SETTLED = 0.1
#: Four bands for this many places, eight for twice as many. Shorter bands would take more sweeps: a message
#: travels through two bands in half a sweep.
_PLACES_FOR_FOUR_BANDS = 2**19
_SWEEPS = {LINEAR: sweep_linear, LOGARITHMIC: sweep_log, MAXIMUM: sweep_max}


def sweep_work(problem: Problem) -> int:
    """Units of work of one sweep in plain numbers: the entries of both messages of every link.

    Work is counted in entries and not in seconds, so that a limit gives the same result on every machine.
    """
    return 2 * len(problem.pairs) * padded(problem.unary.shape[1])


def sweeps_within(max_work: float | None, per_sweep: float, max_iter: int) -> int:
    """Sweeps that a limit of work allows, at least one and at most ``max_iter``."""
    if max_work is None:
        return max_iter
    return int(min(max(max_work // max(per_sweep, 1), 1), max_iter))


class Propagation(NamedTuple):
    """How message passing ended: the largest change in each sweep, and 0.0 or the code of a failure."""

    residuals: Floats
    converged: bool
    failure: float


#: Pieces (start, stop) of the sweep order in groups; the pieces of a group share no link.
Bands = list[list[tuple[int, int]]]


def sweep_bands(graph: MessageGraph, forest: bool) -> Bands:
    """Cut the sweep order into bands, the even and the odd ones; one band where that would not pay.

    A forest keeps one band, so that one sweep is exact. So does a graph with a link across two bands.
    """
    n_places = len(graph.order)
    n_bands = 4 * (n_places // _PLACES_FOR_FOUR_BANDS)
    if n_bands and not forest:
        bounds = np.linspace(0, n_places, n_bands + 1).astype(np.int64)
        band = np.repeat(np.arange(n_bands), np.diff(bounds))
        furthest = np.arange(n_places)
        some = np.diff(graph.indptr) > 0
        furthest[some] = np.maximum.reduceat(targets(graph), graph.indptr[:-1][some])
        if (band[furthest] <= band + 1).all():
            bands = list(pairwise(bounds.tolist()))
            return [bands[0::2], bands[1::2]]
    return [[(0, n_places)]]


def sweeps(
    arithmetic: int,
    graph: MessageGraph,
    tables: PotentialTables,
    messages: Floats,
    *,
    damping: float,
    settled: float,
    bands: Bands | None = None,
    workers: Workers | None = None,
) -> Iterator[float]:
    """Sweep for ever, messages in place; yield the largest change, or as the last the code of a failure.

    Damping keeps a share of the old message while some message still moves by more than ``settled``; below,
    it would only slow the contraction (measured: half the sweeps, same fixed points). Whenever the change
    grows without damping, messages oscillate, and ``settled`` is halved. Where all links attract they only
    drift, and damping would double the sweeps for nothing.
    """
    sweep = _SWEEPS[arithmetic]
    of_labels = tables.coupling.ndim == 2
    repulsive = bool(((tables.coupling[graph.edges] if of_labels else tables.links) < 0.0).any())
    kept = damping
    previous = np.inf
    while True:
        change = 0.0
        for forwards, group in product((False, True), bands or [[(0, len(graph.order))]]):

            def send(piece: tuple[int, int], forwards: bool = forwards, kept: float = kept) -> float:
                return sweep(*piece, forwards, graph, tables, messages, kept)

            for moved in list((workers or Workers()).map(send, group)):
                if moved < 0.0:
                    yield moved
                    return
                change = max(change, moved)
        yield change
        if kept == 0.0 and change > previous and repulsive:
            settled *= 0.5
        kept = damping if change > settled else 0.0
        previous = change


def run_to_fixed_point(changes: Iterator[float], tol: float, max_iter: int) -> Propagation:
    """Consume changes until one is at most ``tol``, a failure code comes, or ``max_iter`` have come."""
    residuals: list[float] = []
    for change in changes:
        if change < 0.0:
            return Propagation(np.array(residuals), False, change)
        residuals.append(change)
        if change <= tol or len(residuals) == max_iter:
            break
    return Propagation(np.array(residuals), residuals[-1] <= tol, 0.0)
