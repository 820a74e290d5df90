"""Mixing weights with the normaliser Omega of the label prior, estimated by sampling.

Omega(pi) = sum_Z prod_i pi_{z_i} exp( sum_{i < j} A(l_i, l_j) [z_i = z_j] ), over the labelled rows. Only the
counts of each class in each cluster enter, so a labelling is drawn from prod pi as one multinomial a class:

    log Omega(pi) ~ log mean_s exp( E_s + sum_k c_sk (log pi_k - log pi0_k) ),

with E_s the exponent and c_s the cluster counts of draw s. The weights maximise sum_k N_k log pi_k - log
Omega by conjugate gradients in log pi. The effective sample size (sum w)^2 / sum w^2 of the draws' weights
tells whether the estimate means anything: with the paper's unnormalised pair weights it is 1, because the
labellings that carry Omega are never drawn.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from linkwise._arrays import Floats, Ints
from linkwise._threads import chunk_bounds

#: Labellings drawn in every M-step.
N_DRAWS = 2000
#: Fewer effective draws than this say nothing about Omega.
SMALLEST_ESS = 10.0

_CONJUGATE_GRADIENT_STEPS = 50
_HALVINGS = 20
#: Bounds the memory of the (draws, L, K) tables.
_DRAWS_AT_ONCE = 200


class OmegaDraws(NamedTuple):
    """Labellings drawn with log pi0: rows in each cluster (S, K) and exponents (S,)."""

    log_weights: Floats
    counts: Floats
    energy: Floats


class OmegaEstimate(NamedTuple):
    """log Omega at some mixing weights, with E_prior[n_k] = dlog Omega / dlog pi_k."""

    value: float
    expected_counts: Floats
    effective_sample_size: float


class MixingStep(NamedTuple):
    """New mixing weights, and log Omega at those before; not ``usable``: 0, weights of "ignore"."""

    log_weights: Floats
    log_omega: float
    effective_sample_size: float
    usable: bool


def draw_labellings(
    log_weights: Floats, sizes: Ints, weights: Floats, rng: np.random.Generator, n_draws: int = N_DRAWS
) -> OmegaDraws:
    """Draw labellings of the labelled rows, each row on its own; ``sizes`` (L,) are rows of each class."""
    shares = softmax(log_weights)
    counts = np.empty((n_draws, len(shares)))
    energy = np.full(n_draws, -0.5 * float(np.diagonal(weights) @ sizes))
    for start, stop in chunk_bounds(0, n_draws, _DRAWS_AT_ONCE):
        drawn = np.stack([rng.multinomial(size, shares, size=stop - start) for size in sizes], axis=1)
        tables = drawn.astype(np.float64)
        counts[start:stop] = tables.sum(axis=1)
        energy[start:stop] += 0.5 * (tables * (weights @ tables)).sum(axis=(1, 2))
    return OmegaDraws(np.asarray(log_weights, dtype=np.float64), counts, energy)


def log_omega(draws: OmegaDraws, log_weights: Floats) -> OmegaEstimate:
    """Estimate log Omega, its gradient and how many draws carry the estimate, at weights near the draws."""
    exponent = draws.energy + draws.counts @ (log_weights - draws.log_weights)
    top = float(exponent.max())
    weight = np.exp(exponent - top)
    total = float(weight.sum())
    return OmegaEstimate(
        top + float(np.log(total / len(weight))),
        weight @ draws.counts / total,
        total**2 / float((weight**2).sum()),
    )


def sampled_mixing(
    counts: Floats, log_weights: Floats, sizes: Ints, weights: Floats, rng: np.random.Generator
) -> MixingStep:
    """Mixing weights that maximise sum_k N_k log pi_k - log Omega(pi), as far as draws have weight."""
    ignoring = log_softmax(np.log(np.maximum(counts, np.finfo(np.float64).tiny)))
    start = log_softmax(log_weights)
    draws = draw_labellings(start, sizes, weights, rng)
    here = log_omega(draws, start)
    if here.effective_sample_size < SMALLEST_ESS:
        return MixingStep(ignoring, 0.0, here.effective_sample_size, False)
    n_samples = float(counts.sum())

    def loss(logits: Floats) -> tuple[float, Floats]:
        log_shares = log_softmax(logits)
        estimate = log_omega(draws, log_shares)
        value = float(counts @ log_shares) - estimate.value
        slope = counts - estimate.expected_counts
        slope = slope - np.exp(log_shares) * slope.sum()
        return -value / n_samples, -slope / n_samples

    found = minimize(
        loss, start, jac=True, method="CG", options={"maxiter": _CONJUGATE_GRADIENT_STEPS, "gtol": 1e-6}
    )
    step = log_softmax(found.x) - start
    for _ in range(_HALVINGS):
        there = log_softmax(start + step)
        if log_omega(draws, there).effective_sample_size >= SMALLEST_ESS:
            return MixingStep(there, here.value, here.effective_sample_size, True)
        step = 0.5 * step
    return MixingStep(start, here.value, here.effective_sample_size, True)
