"""How far approximate marginals are from the truth: the evidence behind the choices of ``auto``."""

from __future__ import annotations

import warnings
from itertools import product

import numpy as np

from experiments.framework.experiment import Experiment, Size
from experiments.framework.summary import Row
from linkwise.exceptions import ApproximationWarning, InfeasibleConstraints
from linkwise.inference import PottsField, marginals

__all__ = ["EXPERIMENTS", "engine_accuracy"]

ENGINES = ("belief_propagation", "mean_field", "tree")
STRENGTHS = (0.2, 0.5, 1.0, 2.0, 4.0)
KINDS = ("attractive", "repulsive", "mixed", "hard cannot-links")


def _field(rng: np.random.Generator, kind: str, strength: float) -> PottsField:
    """Ten points with twenty random links and three labels: far from a tree, yet enumerable."""
    everything = np.column_stack(np.triu_indices(10, k=1))
    pairs = everything[rng.permutation(len(everything))[:20]]
    sign = {"attractive": 1.0, "repulsive": -1.0}.get(kind)
    coupling = strength * (np.full(20, sign) if sign else rng.choice([-1.0, 1.0], size=20))
    if kind == "hard cannot-links":
        coupling[:5] = -np.inf
    return PottsField(rng.normal(size=(10, 3)), pairs, coupling)


def engine_accuracy(draw: int, links: str, strength: float) -> list[Row]:
    """Largest error of a marginal of one random field, and whether the engine converged.

    A field has ten points, three labels, normal unary scores and twenty random links, so it is far from a
    tree and yet can be enumerated, which gives the true marginals. All links attract, all repel, or each
    does either at random ("mixed"); "hard cannot-links" are mixed fields with five hard links.

    Parameters
    ----------
    draw : int
    links : {"attractive", "repulsive", "mixed", "hard cannot-links"}
    strength : float
        Absolute coupling.

    Returns
    -------
    list of dict
        For each engine "error" and "converged".

    Examples
    --------
    >>> from experiments.ppc.engines import engine_accuracy
    >>> [row["method"] for row in engine_accuracy(0, "mixed", 0.5)]
    ['belief_propagation', 'mean_field', 'tree']
    """
    rng = np.random.default_rng([draw, KINDS.index(links), round(10 * strength)])
    while True:
        field = _field(rng, links, strength)
        try:
            truth = marginals(field, "exact").prob
            break
        except InfeasibleConstraints:
            continue
    rows = []
    for engine in ENGINES:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ApproximationWarning)
            found = marginals(field, engine, random_state=draw)
        error = float(np.abs(found.prob - truth).max())
        rows.append({"method": engine, "error": error, "converged": float(found.converged)})
    return rows


_SETTINGS = [{"links": kind, "strength": strength} for kind, strength in product(KINDS, STRENGTHS)]

EXPERIMENTS = (
    Experiment(
        "engine_accuracy",
        "Error of approximate marginals on small random fields with many loops",
        "beyond the papers: why `auto` chooses as it does",
        engine_accuracy,
        quick=Size(_SETTINGS, 5),
        full=Size(_SETTINGS, 50),
        measures=("error", "converged"),
        reference="mean_field",
        axis="strength",
    ),
)
