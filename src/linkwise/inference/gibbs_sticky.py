"""Which points single draws move too slowly, so that Gibbs sampling moves them in blocks as well."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from linkwise._numba import kernel
from linkwise.inference.reduce import Problem

__all__ = ["STRONG", "correlation_growth", "sticky_nodes"]

#: Links of this strength hold their ends: a lone pair of coupling 3 needs 5 sweeps to forget itself, of
#: coupling 6 a hundred.
STRONG = 3.0
#: Links of this strength hold their ends together with others: on a chain of links of coupling 1.5 and K = 2,
#: sweeps with block moves take six times as long and give five times as many effective samples.
_HOLDING = 1.0
#: Where correlations die out by this factor with every link, block moves gave at most a tenth more effective
#: samples on random graphs, for six times the time. Nearer to 1 they gave up to three times as many on grids.
_DIES_OUT = 0.75
_N_STEPS = 32
_N_AVERAGED = 16


def sticky_nodes(problem: Problem) -> NDArray[np.bool_]:
    """Nodes for block moves: those that their neighbours hold, where that carries far.

    A node may stick if it has a strong link, or if the influences of its neighbours on it add up to 1: where
    they do so nowhere, single draws mix fast (Dobrushin 1968). That bound takes all neighbours to pull in the
    same direction for ever. Where links are weak and correlations soon die out all the same
    (:func:`correlation_growth`), as on graphs whose links disagree, single draws are enough.

    Parameters
    ----------
    problem : Problem

    Returns
    -------
    (n,) bool

    Examples
    --------
    >>> from linkwise.inference import PottsField
    >>> from linkwise.inference.gibbs_sticky import sticky_nodes
    >>> from linkwise.inference.reduce import reduce_field
    >>> field = PottsField([[0.0, 0.0]] * 4, [(0, 1), (1, 2), (2, 3)], [4.0, 0.5, 0.5])
    >>> sticky_nodes(reduce_field(field, keep_zero_in_component=True).problem)
    array([ True,  True, False, False])
    """
    n_nodes, n_labels = problem.unary.shape
    strength, influence = np.abs(problem.coupling), _influence(problem.coupling, n_labels)
    if strength.ndim == 2:
        strength, influence = strength.max(axis=1), influence.max(axis=1)
    total = np.where(strength >= STRONG, 1.0, influence)
    held = np.bincount(problem.pairs.ravel(), np.repeat(total, 2), n_nodes) >= 1.0
    holding = np.zeros(n_nodes, dtype=bool)
    holding[problem.pairs[strength >= _HOLDING]] = True
    if (held & ~holding).any():
        signed = influence if problem.coupling.ndim == 2 else np.copysign(influence, problem.coupling)
        if correlation_growth(n_nodes, problem.pairs, signed) < _DIES_OUT:
            held &= holding
    return held


def correlation_growth(n_nodes: int, pairs: NDArray[np.int64], influence: NDArray[np.float64]) -> float:
    """Factor by which a small disturbance grows with every link that it passes, none twice in a row.

    The spectral radius of the non-backtracking operator of the graph with signed influences as weights. Below
    1 the flat fixed point of belief propagation is stable (Mooij & Kappen 2005); on random graphs with links
    of both signs that is so up to links that are much stronger than with links of one sign.

    Parameters
    ----------
    n_nodes : int
    pairs : (m, 2) int64
    influence : (m,) float64
        Of one end on the other; negative if it pushes away.

    Returns
    -------
    float
        0 on small trees, where every way ends.

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise.inference.gibbs_sticky import correlation_growth
    >>> complete = np.column_stack(np.triu_indices(6, 1))
    >>> round(correlation_growth(6, complete, np.full(15, 0.2)), 6)
    0.8
    """
    signals = np.random.default_rng(0).normal(size=(len(pairs), 2))
    received = np.empty(n_nodes)
    growth = np.empty(_N_STEPS)
    for step in range(_N_STEPS):
        size = float(np.linalg.norm(signals))
        if size == 0.0:
            return 0.0
        signals /= size
        _pass_on(pairs, influence, signals, received)
        growth[step] = np.linalg.norm(signals)
    if growth[-1] == 0.0:
        return 0.0
    return float(np.exp(np.log(growth[-_N_AVERAGED:]).mean()))


@kernel
def _pass_on(
    pairs: NDArray[np.int64],
    influence: NDArray[np.float64],
    signals: NDArray[np.float64],
    received: NDArray[np.float64],
) -> None:
    """One step: a link passes on what an end received from other links. Column 0 goes to the second end."""
    received[:] = 0.0
    for edge in range(pairs.shape[0]):
        received[pairs[edge, 1]] += signals[edge, 0]
        received[pairs[edge, 0]] += signals[edge, 1]
    for edge in range(pairs.shape[0]):
        forth, back = signals[edge, 0], signals[edge, 1]
        signals[edge, 0] = influence[edge] * (received[pairs[edge, 0]] - back)
        signals[edge, 1] = influence[edge] * (received[pairs[edge, 1]] - forth)


def _influence(coupling: NDArray[np.float64], n_labels: int) -> NDArray[np.float64]:
    """How far a neighbour's label moves a point's distribution (total variation), all else being flat."""
    weight = np.exp(-np.abs(coupling))
    others = max(n_labels - 1, 1)
    return (1.0 - weight) / np.where(coupling > 0.0, 1.0 + others * weight, others + weight)
