"""Averages over sweeps of several chains, and their Monte Carlo error from batch means."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from linkwise._kernels import kernel

__all__ = ["N_BATCHES", "Estimate", "Tally"]

#: Batches per chain. With 4 chains the error estimate of an entry is itself good to 13 %.
N_BATCHES = 8
#: Chains differ beyond doubt if their means scatter this much more than expected. Four chains that agree
#: exceed it once in 30 times if all entries move together, hardly ever if there are many.
_DIFFERENT = 3.5


class Estimate(NamedTuple):
    """What a round of sampling found, by place (n, K) and half-edge (2 m,).

    ``n_samples``: sweeps averaged, over all chains. ``effective_samples``: independent sweeps that would
    give errors of the same size, all entries taken together. ``between_chains``: variance of the chains'
    means over that expected from their batches; well above 1 if batches are shorter than the memory of the
    chains, or if chains sit in different parts of the distribution.
    """

    prob: NDArray[np.float64]
    standard_error: NDArray[np.float64]
    agreement: NDArray[np.float64]
    n_samples: int
    effective_samples: float
    between_chains: float


class Tally:
    """Sums of a round in which every chain runs ``N_BATCHES`` batches of equal length.

    Sweeps add their conditional distributions to ``batch`` and the agreement these imply to ``agreement``.
    Batches are closed into chains and chains into the round, so memory does not grow with their number.
    """

    def __init__(self, shape: tuple[int, ...], n_half_edges: int) -> None:
        self.batch = np.zeros(shape)
        self.agreement = np.zeros(n_half_edges)
        self._chain = np.zeros(shape)
        self._total = np.zeros(shape)
        self._squares = np.zeros(shape)
        self._sweep_squares = 0.0
        self._chain_squares = 0.0
        self._n_chains = 0
        self._n_samples = 0

    def clear(self) -> None:
        """Forget the round."""
        for table in (self.batch, self.agreement, self._chain, self._total, self._squares):
            table[:] = 0.0
        self._sweep_squares = 0.0
        self._chain_squares = 0.0
        self._n_chains = 0
        self._n_samples = 0

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

        The variance of the batch means over the number of batches is that of the overall mean, if batches
        are independent. If chains clearly differ by more than that, all errors are scaled up to match. To
        this comes 1 / N for the effective number of samples, N: what one more sample could change, for a part
        of the distribution not met so far leaves no trace in the variance.
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
def _close_batch(
    batch: NDArray[np.float64],
    scale: float,
    chain: NDArray[np.float64],
    squares: NDArray[np.float64],
) -> None:
    """Add the batch mean to the chain and its square to the squares; clear the batch."""
    for node in range(batch.shape[0]):
        for label in range(batch.shape[1]):
            mean = batch[node, label] * scale
            chain[node, label] += mean
            squares[node, label] += mean * mean
            batch[node, label] = 0.0


@kernel
def _close_chain(chain: NDArray[np.float64], total: NDArray[np.float64]) -> float:
    """Add the chain to the total and clear it; the sum of its squares."""
    squares = 0.0
    for node in range(chain.shape[0]):
        for label in range(chain.shape[1]):
            squares += chain[node, label] * chain[node, label]
            total[node, label] += chain[node, label]
            chain[node, label] = 0.0
    return squares
