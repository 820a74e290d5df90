"""What inference returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["BestLabels", "Marginals"]


@dataclass(frozen=True)
class Marginals:
    """Marginal probabilities of a field, and how far they can be trusted.

    Attributes
    ----------
    prob : (n, K)
        P(z_i = k).
    log_partition : float
        log sum_z exp(score(z)), or what ``log_partition_kind`` says.
    agreement : (m,)
        P(z_i == z_j) for each pair of the field.
    exact : bool
        True only if every number above is exact (up to rounding).
    converged : bool
        False if any approximate part stopped at its iteration limit.
    n_iter : int
        Sweeps of the approximate part; 0 if there was none.
    method : str
        The engines that were used, joined by ``+``.
    log_partition_kind : {"exact", "lower_bound", "upper_bound", "bethe", "approximation", "unavailable"}
        ``lower_bound`` comes from mean field, ``upper_bound`` from dropped penalties; ``bethe`` and
        ``approximation`` may err to either side; ``unavailable`` comes with NaN.
    parts : mapping of str to int
        How many points each engine answered for.
    details : mapping
        Diagnostics of the engines: traces, Monte Carlo errors, widths, dropped links.

    Examples
    --------
    >>> from linkwise.inference import PottsField, marginals
    >>> result = marginals(PottsField([[0.0, 0.0], [0.0, 1.0]], [(0, 1)], [float("inf")]))
    >>> result.exact, result.agreement
    (True, array([1.]))
    """

    prob: NDArray[np.float64]
    log_partition: float
    agreement: NDArray[np.float64]
    exact: bool
    converged: bool
    n_iter: int
    method: str
    log_partition_kind: str = "exact"
    parts: Mapping[str, int] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class BestLabels:
    """A labelling of high score, with a bound where one is known.

    Attributes
    ----------
    labels : (n,) int64
    score : float
        ``field.score(labels)``, evaluated on the labels themselves.
    upper_bound : float or None
        No labelling scores more than this; None if no bound was computed.
    optimal : bool
        True only if the labelling is proven to have the highest score (up to rounding).
    converged : bool
    n_iter : int
    method : str
        The engines that were used, joined by ``+``.
    parts, details : mapping
        As in :class:`Marginals`.

    Examples
    --------
    >>> from linkwise.inference import PottsField, best_labels
    >>> best = best_labels(PottsField([[0.0, 0.0], [0.0, 1.0]], [(0, 1)], [2.0]))
    >>> best.labels, best.score, best.optimal
    (array([1, 1]), 1.0, True)
    """

    labels: NDArray[np.int64]
    score: float
    upper_bound: float | None
    optimal: bool
    converged: bool
    n_iter: int
    method: str
    parts: Mapping[str, int] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)
