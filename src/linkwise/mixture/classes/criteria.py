"""Criteria that choose the number of clusters of CPPC; lower is better.

With log L the log-likelihood of the fitted mixture, p its free parameters, z the labels, S the separability
and G = sum (C - S)^2 its distance from the beliefs:

| name | formula |
| --- | --- |
| bic | -2 log L + p log N (Schwarz) |
| icl | -2 sum_i log(pi_z N(x_i; z)) + p log N, z the fitted labels (Biernacki, Celeux & Govaert 2000) |
| cbic | (1 - w)(-2 log L) + w N_l log max(G / 4 L^2, 1 / N_l) + p log N, N_l the labelled rows |
| bic_paper | N log(RSS / N) + K log N, RSS = sum_i (1 - N(x_i; z_i))^2 (Preston et al. 2010, Eq. 12-13) |
| cbic_paper | (1 - w) N log(RSS / N) + w N log(G / 4 L^2) + K log N (Eq. 15) |

The paper's RSS treats a density as a probability: it changes with the units of the data, to the point of
preferring the worse fit, and its cBIC is -inf at perfect adherence whatever the fit. ``cbic`` keeps the idea
and repairs both. Its argmin does not depend on units (a change of units adds the same constant for every K),
and it is floored: G / 4 L^2 < 1 / N_l is closer than separabilities counted on N_l rows can be told apart.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from linkwise._arrays import Floats, Ints
from linkwise._threads import chunk_bounds
from linkwise.mixture.gaussian.data import Points
from linkwise.mixture.gaussian.gaussians import Gaussians
from linkwise.mixture.gaussian.passes import log_density_pass

#: Above this, 1 is lost beside the density.
_LOG_LARGE = 40.0
_ROWS_AT_ONCE = 1 << 14


class Likelihoods(NamedTuple):
    """What criteria need of rows, which adds up: log L, sum of log(pi_z N(x_i; z)) with labels z, log RSS."""

    n_samples: int
    log_likelihood: float
    classification: float
    log_residuals: float

    def __add__(self, other: object) -> Likelihoods:
        assert isinstance(other, Likelihoods)
        return Likelihoods(
            self.n_samples + other.n_samples,
            self.log_likelihood + other.log_likelihood,
            self.classification + other.classification,
            float(np.logaddexp(self.log_residuals, other.log_residuals)),
        )


def class_criteria(
    fit: Likelihoods,
    *,
    n_components: int,
    n_parameters: int,
    n_labelled: int,
    adherence: float,
    criterion_weight: float,
) -> dict[str, float]:
    """All criteria of one fit; ``adherence`` is G / (4 L^2), w in [0, 1], and empty clusters count."""
    n_samples = fit.n_samples
    penalty = n_parameters * math.log(n_samples)
    printed_penalty = n_components * math.log(n_samples)
    floored = math.log(max(adherence, 1.0 / n_labelled))
    printed_fit = n_samples * (fit.log_residuals - math.log(n_samples))
    weighted = printed_penalty
    if criterion_weight < 1.0:
        weighted += (1.0 - criterion_weight) * printed_fit
    if criterion_weight > 0.0:
        weighted += criterion_weight * n_samples * (math.log(adherence) if adherence > 0.0 else -math.inf)
    return {
        "bic": -2.0 * fit.log_likelihood + penalty,
        "icl": -2.0 * fit.classification + penalty,
        "cbic": -2.0 * (1.0 - criterion_weight) * fit.log_likelihood
        + criterion_weight * n_labelled * floored
        + penalty,
        "bic_paper": printed_fit + printed_penalty,
        "cbic_paper": weighted,
    }


def mixture_likelihoods(
    points: Points, gaussians: Gaussians, log_weights: Floats, labels: Ints
) -> Likelihoods:
    """Compute what the criteria need of some rows with these labels (n,)."""
    total, assigned = 0.0, np.empty(points.n_samples)
    for start, stop in chunk_bounds(0, points.n_samples, _ROWS_AT_ONCE):
        rows = np.arange(start, stop)
        log_density = log_density_pass(points, gaussians, rows=rows)
        assigned[rows] = log_density[np.arange(len(rows)), labels[rows]]
        total += float(logsumexp(log_density + log_weights, axis=1).sum())
    return assigned_likelihoods(total, assigned, log_weights[labels])


def assigned_likelihoods(log_likelihood: float, log_density: Floats, log_weight: Floats) -> Likelihoods:
    """The same from log N(x_i; z_i) and log pi_{z_i} of each row (n,)."""
    classification = float((log_density + log_weight).sum())
    return Likelihoods(len(log_density), log_likelihood, classification, _log_residuals(log_density))


def _log_residuals(log_density: Floats) -> float:
    """Compute log sum_i (1 - exp(log_density))^2, where the density itself may overflow."""
    with np.errstate(divide="ignore"):
        residual = np.log(np.abs(np.expm1(np.minimum(log_density, _LOG_LARGE))))
    return float(logsumexp(2.0 * np.where(log_density > _LOG_LARGE, log_density, residual)))
