"""Learning curves of HMRF-KMeans under three ways of inference (Bilenko & Basu 2004, section 4)."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from linkwise.cluster.hmrf_kmeans import HMRFKMeans
from linkwise.constraints import Constraints
from linkwise.datasets import load_bundled
from linkwise.exceptions import ApproximationWarning
from linkwise.experiments.data_files import load_table
from linkwise.metrics import pairwise_f1

__all__ = ["hmrf_learning_curve"]

_BUNDLED = ("iris", "wine")


def hmrf_learning_curve(
    data: str = "iris",
    n_links: tuple[int, ...] = (0, 20, 50, 100, 200),
    engines: tuple[str, ...] = ("icm", "belief_propagation", "lp"),
    n_runs: int = 10,
    random_state: int = 0,
) -> tuple[list[str], list[list[Any]]]:
    """Pairwise F on rows without links against the number of links, for three ways of inference.

    Twofold: links between random rows of one half, all rows clustered, F counted on the other half.
    Halves, links and starts are the same for every engine. Only the features of wine, whose units
    differ, are standardised.

    Parameters
    ----------
    data : {"iris", "wine", "letters_ijl", "protein116"}
        The last two from the folder named by LINKWISE_DATA; of the letters a tenth, as in the paper.
    n_links : tuple of int
    engines : tuple of str
        Values of ``inference``.
    n_runs : int
        Each gives two folds.
    random_state : int

    Returns
    -------
    head, rows
        Number of links, mean F of each engine, and the mean difference of the second to the first with its
        standard error over the folds.

    Examples
    --------
    >>> from linkwise.experiments import hmrf_learning_curve
    >>> head, rows = hmrf_learning_curve(n_links=(50,), engines=("icm", "belief_propagation"), n_runs=1)
    >>> head
    ['links', 'icm', 'belief_propagation', 'difference', 'error']
    """
    X, y = _load(data)
    rows: list[list[Any]] = []
    for count in n_links:
        scores = np.array(
            [
                _fold_scores(X, y, half, other, count, engines, seed)
                for seed, half, other in _folds(len(y), n_runs, random_state)
            ]
        )
        gain = scores[:, 1] - scores[:, 0] if len(engines) > 1 else np.zeros(len(scores))
        error = gain.std(ddof=1) / np.sqrt(len(gain))
        rows.append([count, *scores.mean(axis=0).tolist(), float(gain.mean()), float(error)])
    return ["links", *engines, "difference", "error"], rows


def _load(data: str) -> tuple[NDArray[np.float64], NDArray[Any]]:
    if data in _BUNDLED:
        X, y = load_bundled(data)
        return (StandardScaler().fit_transform(X) if data == "wine" else X), y
    return load_table(data, marked="sample10" if data == "letters_ijl" else None)


def _folds(
    n_samples: int, n_runs: int, random_state: int
) -> list[tuple[int, NDArray[np.int64], NDArray[np.int64]]]:
    """Seed, rows that may carry links and rows to score, both ways round for each run."""
    folds = []
    for run in range(n_runs):
        order = np.random.default_rng([random_state, run]).permutation(n_samples)
        halves = order[: n_samples // 2], order[n_samples // 2 :]
        folds += [(2 * run, *halves), (2 * run + 1, *halves[::-1])]
    return folds


def _fold_scores(
    X: NDArray[np.float64],
    y: NDArray[Any],
    half: NDArray[np.int64],
    other: NDArray[np.int64],
    n_links: int,
    engines: tuple[str, ...],
    seed: int,
) -> list[float]:
    links = Constraints.sample(y[half], n_links, overlap=True, random_state=seed)
    must, cannot = half[links.must_link], half[links.cannot_link]
    soft = Constraints(len(y), must, cannot, weight=1.0) if n_links else None
    scores = []
    for engine in engines:
        model = HMRFKMeans(
            len(np.unique(y)), metric="diag", inference=engine, phi_max="diameter", random_state=seed
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.simplefilter("ignore", ApproximationWarning)
            labels = model.fit(X, constraints=soft).labels_
        scores.append(pairwise_f1(y[other], labels[other]))
    return scores
