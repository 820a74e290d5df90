"""Section 4.1 of Preston et al. (2010): what each reading of the paper yields on its own data."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.framework.experiment import Experiment, Size
from experiments.framework.summary import Row
from linkwise.datasets import make_eleven_gaussians
from linkwise.metrics import belief_adherence, contingency_table
from linkwise.mixture.cppc import CPPC

__all__ = ["CLAIMS", "CONSTRAINED", "EXPERIMENTS", "PLAIN", "READINGS", "cppc_readings"]

#: How the pair weights are read: the normalisation, and the factor on the printed weight.
READINGS = {
    "as printed": ("none", 1.0),
    "printed / 100": ("none", 0.01),
    "printed / 400": ("none", 0.0025),
    "per class": ("class", 1.0),
    "no beliefs": ("none", 0.0),
}
#: K and clusters that the paper reports, by lambda.
CLAIMS = {
    0.2: (6, "{1} {1} {2} {3} {4} {5,6,7,8,9}"),
    0.75: (5, "{1} {1} {2,3} {4} {5,6,7,8,9}"),
}
#: Criteria that use beliefs, and those that do not.
CONSTRAINED = ("cbic_paper", "cbic_paper, lambda C", "cbic")
PLAIN = ("bic_paper", "bic")

#: Starts with at most as many clusters as classes are not random, so one fit is enough there.
_N_CLASSES = 9
_N_REPEATS = 2
#: A cluster holds a class if it has at least this share of it.
_SHARE = 0.15


def cppc_readings(draw: int, reading: str, weight: float, most: int = 12, fewest: int = 3) -> list[Row]:
    """Which K the criteria choose under one reading of the pair weights, and what the clusters are.

    The paper averages a criterion over ten runs for each K, takes the lowest average and shows the run
    nearest to it, on one draw of the data. Here draws of the data take the place of most repeats: one fit for
    K up to the nine classes, where starts are not random, and two above. The range of K is not stated in the
    text. Printed weights are a sum over all rows; the readings scale them or divide by class sizes. The
    factors were found by trying which come near the claims; nothing in the paper supports them. "no beliefs"
    is plain EM from the same starts; starts are the paper's, and covariances are not shrunk. "per class" has
    the scale of beliefs of this library, atanh(C) for C; the paper sees the knee of BIC at about 12.

    Parameters
    ----------
    draw : int
        Seed of the data and the starts.
    reading : str
        A key of ``READINGS``.
    weight : float
        lambda, both in the E-step and in cBIC: .2 or .75.
    most, fewest : int
        Range of K.

    Returns
    -------
    list of dict
        For each criterion (printed cBIC, the same with lambda C for C in the adherence, the cBIC of this
        library, printed BIC, BIC) its K "k", "occupied" clusters, "clusters" by the classes of which they
        have at least 15 %; for the first three "grouping_met" if these are the paper's and "claim_met" if
        K is the paper's as well. Plain EM has only the last two criteria.

    Examples
    --------
    >>> from experiments.classes.readings import cppc_readings
    >>> row = cppc_readings(0, "as printed", 0.2, fewest=4, most=5)[0]
    >>> row["method"], row["k"], row["clusters"], row["claim_met"]
    ('cbic_paper', 4, '{1} {2,3} {4} {5,6,7,8,9}', 0.0)
    """
    X, y, beliefs = make_eleven_gaussians(random_state=draw)
    normalize, factor = READINGS[reading]
    fits: dict[int, list[CPPC]] = {}
    for k in range(fewest, most + 1):
        model = CPPC(
            k, beliefs=beliefs, normalize=normalize, confidence=factor * weight, criterion_weight=weight,
            init="paper", shrinkage=0,
        )  # fmt: skip
        n_repeats = 1 if k <= _N_CLASSES else _N_REPEATS
        fits[k] = [_fit(model, X, y, [draw, k, repeat]) for repeat in range(n_repeats)]
    rows = []
    for criterion in PLAIN if factor == 0.0 else CONSTRAINED + PLAIN:
        means = {k: np.mean([_criterion(fit, criterion, weight) for fit in fits[k]]) for k in fits}
        best = min(means, key=lambda k: means[k])
        typical = min(fits[best], key=lambda fit: abs(_criterion(fit, criterion, weight) - means[best]))
        clusters = _clusters(typical, y)
        row = {"method": criterion, "k": best, "occupied": typical.n_occupied_, "clusters": clusters}
        if criterion in CONSTRAINED:
            claimed_k, claimed_clusters = CLAIMS[weight]
            row["grouping_met"] = float(clusters == claimed_clusters)
            row["claim_met"] = float(best == claimed_k and clusters == claimed_clusters)
        rows.append(row)
    return rows


def _fit(model: CPPC, X: NDArray[np.float64], y: NDArray[Any], seed: list[int]) -> CPPC:
    """A new fit, silent: empty clusters are what the table is about."""
    random_state = int(np.random.default_rng(seed).integers(2**31))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return CPPC(**{**model.get_params(), "random_state": random_state}).fit(X, y)


def _criterion(model: CPPC, name: str, weight: float) -> float:
    """A criterion of the fit; lambda C for C changes G alone, which enters the printed cBIC by its log."""
    if name != "cbic_paper, lambda C":
        return model.criteria_[name]
    scaled = belief_adherence(weight * model.beliefs_, model.separability_)
    n_samples = len(model.labels_)
    return model.criteria_["cbic_paper"] + weight * n_samples * float(np.log(scaled / model.adherence_))


def _clusters(model: CPPC, y: NDArray[Any]) -> str:
    """The classes of each occupied cluster, in the order of the classes."""
    classes, _, table = contingency_table(y, model.labels_)
    shares = table / table.sum(axis=1, keepdims=True)
    groups = [[str(name) for name in classes[shares[:, k] >= _SHARE]] for k in range(table.shape[1])]
    return " ".join("{" + ",".join(group) + "}" for group in sorted(groups))


def _settings(readings: tuple[str, ...], most: int) -> list[dict[str, Any]]:
    beliefs = [
        {"reading": reading, "weight": weight, "most": most} for reading in readings for weight in CLAIMS
    ]
    return [*beliefs, {"reading": "no beliefs", "weight": 0.2, "most": 16}]


EXPERIMENTS = (
    Experiment(
        "cppc_readings",
        "K and clusters that each criterion chooses on CPPC's example, by reading of the pair weights",
        "CPPC, section 4.1: K = 6 at lambda .2, K = 5 at .75, BIC's knee at about 12",
        cppc_readings,
        quick=Size(_settings(("as printed", "printed / 400", "per class"), most=10), 2),
        full=Size(_settings(("as printed", "printed / 100", "printed / 400", "per class"), most=12), 6),
        measures=("k", "occupied", "claim_met", "grouping_met"),
        texts=("clusters",),
    ),
)
