"""How far approximate marginals are from the truth: the evidence behind the choices of ``auto``."""

from __future__ import annotations

import warnings

import numpy as np

from linkwise.exceptions import ApproximationWarning, InfeasibleConstraints
from linkwise.inference import PottsField, marginals

__all__ = ["engine_accuracy"]

ENGINES = ("belief_propagation", "mean_field", "tree")
STRENGTHS = (0.2, 0.5, 1.0, 2.0, 4.0)
_KINDS = ("attractive", "repulsive", "mixed", "hard cannot-links")


def _field(rng: np.random.Generator, kind: str, strength: float) -> PottsField:
    """Ten points with twenty random links and three labels: far from a tree, yet enumerable."""
    everything = np.column_stack(np.triu_indices(10, k=1))
    pairs = everything[rng.permutation(len(everything))[:20]]
    sign = {"attractive": 1.0, "repulsive": -1.0}.get(kind)
    coupling = strength * (np.full(20, sign) if sign else rng.choice([-1.0, 1.0], size=20))
    if kind == "hard cannot-links":
        coupling[:5] = -np.inf
    return PottsField(rng.normal(size=(10, 3)), pairs, coupling)


def engine_accuracy(n_draws: int = 50, seed: int = 0) -> tuple[list[str], list[list[float | str]]]:
    """Mean over fields of the largest error of a marginal, by engine, kind and strength of the links.

    Parameters
    ----------
    n_draws : int
        Fields for each kind and strength.
    seed : int

    Returns
    -------
    head : list of str
    rows : list of list
        Kind, strength, the error of each engine, and the share of fields on which belief propagation
        converged.

    Examples
    --------
    >>> from linkwise.experiments import engine_accuracy
    >>> head, rows = engine_accuracy(n_draws=1)
    >>> head
    ['links', 'strength', 'belief_propagation', 'mean_field', 'tree', 'bp converged']
    """
    rng = np.random.default_rng(seed)
    rows: list[list[float | str]] = []
    for kind in _KINDS:
        for strength in STRENGTHS:
            errors: list[list[float]] = []
            converged = []
            while len(errors) < n_draws:
                field = _field(rng, kind, strength)
                try:
                    truth = marginals(field, "exact").prob
                except InfeasibleConstraints:
                    continue
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", ApproximationWarning)
                    found = [marginals(field, engine, random_state=seed) for engine in ENGINES]
                errors.append([float(np.abs(answer.prob - truth).max()) for answer in found])
                converged.append(found[0].converged)
            means = np.mean(errors, axis=0).tolist()
            rows.append([kind, strength, *means, float(np.mean(converged))])
    return ["links", "strength", *ENGINES, "bp converged"], rows
