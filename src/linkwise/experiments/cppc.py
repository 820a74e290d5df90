"""Section 4.1 of Preston et al. (2010): what each reading of the paper yields on its own data."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.datasets import make_eleven_gaussians
from linkwise.metrics import belief_adherence, contingency_table, separability
from linkwise.mixture.cppc import CPPC

__all__ = ["cppc_fixed_groupings", "cppc_readings"]

#: Cluster of each class, and of the second mode of class 1. The last is the paper's claim for lambda = .2.
GROUPINGS = {
    "{1} {2,3} {4} {5-9}": ((0, 1, 1, 2, 3, 3, 3, 3, 3), 0),
    "{1a} {1b} {2,3} {4} {5-9}": ((0, 1, 1, 2, 3, 3, 3, 3, 3), 4),
    "{1a} {1b} {2} {3} {4} {5-9}": ((0, 1, 5, 2, 3, 3, 3, 3, 3), 4),
}
#: Half-way between the modes of class 1, at x = -5 and x = -2.
_BETWEEN_MODES = -3.5
#: How the pair weights are read: the normalisation, and the factor on the printed weight.
READINGS = {
    "as printed": ("none", 1.0),
    "printed / 100": ("none", 0.01),
    "printed / 400": ("none", 0.0025),
    "per class": ("class", 1.0),
}


def cppc_fixed_groupings(seeds: Iterable[int] = (0, 1, 2)) -> tuple[list[str], list[list[Any]]]:
    """Eq. 15 as printed on the groupings the paper names, without any EM.

    Parameters
    ----------
    seeds : iterable of int
        Draws of the data; the table holds means.

    Returns
    -------
    head, rows
        Grouping, number of clusters, and cBIC at lambda = .2 and .75 (lower is better).

    Examples
    --------
    >>> from linkwise.experiments import cppc_fixed_groupings
    >>> head, rows = cppc_fixed_groupings(seeds=[0])
    >>> [row[0] for row in rows if row[2] == min(row[2] for row in rows)]
    ['{1a} {1b} {2,3} {4} {5-9}']
    """
    rows: list[list[Any]] = []
    for name, (cluster_of, second_mode) in GROUPINGS.items():
        values = [_printed_criterion(np.array(cluster_of), second_mode, seed) for seed in seeds]
        n_clusters = len({*cluster_of, second_mode})
        rows.append([name, n_clusters, *np.mean(values, axis=0).tolist()])
    return ["grouping", "K", "cBIC .2", "cBIC .75"], rows


def _printed_criterion(cluster_of: NDArray[np.int64], second_mode: int, seed: int) -> list[float]:
    """CBIC of the grouping with one Gaussian per cluster, at lambda = .2 and .75."""
    X, y, beliefs = make_eleven_gaussians(random_state=seed)
    n_samples = len(X)
    labels = np.where((y == 1) & (X[:, 0] > _BETWEEN_MODES), second_mode, cluster_of[y - 1])
    residual = 0.0
    for label in range(labels.max() + 1):
        members = X[labels == label]
        covariance = np.cov(members.T, bias=True)
        deviations = members - members.mean(axis=0)
        squares = np.einsum("ni,ij,nj->n", deviations, np.linalg.inv(covariance), deviations)
        density = np.exp(-0.5 * squares) / np.sqrt(np.linalg.det(2.0 * np.pi * covariance))
        residual += float(((1.0 - density) ** 2).sum())
    adherence = belief_adherence(beliefs, separability(y, labels), normalize=True)
    size = (labels.max() + 1) * np.log(n_samples)
    return [
        n_samples * ((1.0 - weight) * np.log(residual / n_samples) + weight * np.log(adherence)) + size
        for weight in (0.2, 0.75)
    ]


def cppc_readings(
    n_components: Iterable[int] = range(3, 10), n_repeats: int = 3, random_state: int = 0
) -> tuple[list[str], list[list[Any]]]:
    """Which K the criteria choose under each reading of the pair weights, and what the clusters are.

    Parameters
    ----------
    n_components : iterable of int
    n_repeats : int
        Fits for each K; the criterion is averaged, as in the paper, and the run nearest the average shown.
    random_state : int

    Returns
    -------
    head, rows
        Reading of the pair weights, lambda, criterion (printed cBIC, the same with lambda C for C in the
        adherence, and the likelihood-based cBIC), its K, occupied clusters, and the classes of each cluster
        (those with at least 15 % of their rows in it).

    Examples
    --------
    >>> from linkwise.experiments import cppc_readings
    >>> head, rows = cppc_readings(n_components=[4], n_repeats=1)
    >>> rows[0]
    ['as printed', 0.2, 'cbic_paper', 4, 4, '{1} {2,3} {4} {5,6,7,8,9}']
    """
    X, y, beliefs = make_eleven_gaussians(random_state=random_state)
    rows: list[list[Any]] = []
    for reading, (normalize, factor) in READINGS.items():
        for weight in (0.2, 0.75):
            fits = {
                k: [
                    _fit(X, y, beliefs, k, normalize, factor * weight, weight, random_state + repeat)
                    for repeat in range(n_repeats)
                ]
                for k in n_components
            }
            for criterion in ("cbic_paper", "cbic_paper, lambda C", "cbic"):
                means = {k: np.mean([_criterion(fit, criterion, weight) for fit in fits[k]]) for k in fits}
                best = min(means, key=lambda k: means[k])
                typical = min(
                    fits[best], key=lambda fit: abs(_criterion(fit, criterion, weight) - means[best])
                )
                rows.append([reading, weight, criterion, best, typical.n_occupied_, _legend(typical, y)])
    return ["reading", "lambda", "criterion", "K", "occupied", "clusters"], rows


def _fit(
    X: NDArray[np.float64],
    y: NDArray[Any],
    beliefs: NDArray[np.float64],
    n_components: int,
    normalize: str,
    confidence: float,
    criterion_weight: float,
    seed: int,
) -> CPPC:
    model = CPPC(
        n_components,
        beliefs=beliefs,
        normalize=normalize,
        confidence=confidence,
        criterion_weight=criterion_weight,
        random_state=seed,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # empty clusters are what the table is about
        return model.fit(X, y)


def _criterion(model: CPPC, name: str, weight: float) -> float:
    if name != "cbic_paper, lambda C":
        return model.criteria_[name]
    scaled = belief_adherence(weight * model.beliefs_, model.separability_)
    n_samples = len(model.labels_)
    return model.criteria_["cbic_paper"] + weight * n_samples * float(np.log(scaled / model.adherence_))


def _legend(model: CPPC, y: NDArray[Any]) -> str:
    """Classes of each cluster, largest cluster of a class first in the order of the classes."""
    classes, _, table = contingency_table(y, model.labels_)
    shares = table / table.sum(axis=1, keepdims=True)
    groups = [[str(name) for name in classes[shares[:, k] >= 0.15]] for k in range(table.shape[1])]
    return " ".join("{" + ",".join(group) + "}" for group in sorted(groups))
