"""HMRF-KMeans on newsgroups: directions against points, with links and without (Basu et al. 2004)."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer

from linkwise.cluster.hmrf_kmeans import HMRFKMeans
from linkwise.constraints import Constraints
from linkwise.experiments.data_files import even_sample, load_newsgroups
from linkwise.metrics import pairwise_f1

__all__ = ["hmrf_newsgroups"]

#: Column of the table and the settings behind it. No metric is learned.
_SETTINGS: dict[str, dict[str, Any]] = {
    "euclidean": {"distortion": "euclidean", "metric": None},
    "euclidean, SVD": {"distortion": "euclidean", "metric": None},
    "cosine": {"distortion": "cosine", "metric": None},
    "cosine constant": {"distortion": "cosine", "metric": None, "penalty": "constant"},
    "cosine constant, k-means++": {
        "distortion": "cosine", "metric": None, "penalty": "constant", "init": "k-means++",
    },
}  # fmt: skip


def hmrf_newsgroups(
    task: str = "easy",
    n_links: tuple[int, ...] = (0, 50, 100, 200),
    n_documents: int = 600,
    n_runs: int = 3,
    random_state: int = 0,
) -> tuple[list[str], list[list[Any]]]:
    """Pairwise F of HMRF-KMeans on documents that carry no links, against the number of links.

    Links of weight 1 between random documents of one half; F is counted on the other half. The Euclidean
    distortion, which takes dense rows, gets the same TF-IDF rows of the terms in at least three documents,
    and 100 components of all of them (truncated SVD).

    Parameters
    ----------
    task : {"easy", "medium", "difficult"}
        As in :func:`linkwise.experiments.spectral.spectral_newsgroups`.
    n_links : tuple of int
    n_documents : int
        Drawn evenly from the groups, anew in each run.
    n_runs : int
    random_state : int

    Returns
    -------
    head, rows
        Number of links and the mean F of every setting. ``constant``: a violated link costs 1 whatever the
        distance of its ends.
    """
    counts, labels = load_newsgroups(task)
    rows: list[list[Any]] = []
    drawn = [
        even_sample(labels, n_documents, np.random.default_rng([random_state, run])) for run in range(n_runs)
    ]
    for count in n_links:
        scores = [
            _scores(counts[chosen], labels[chosen], count, np.random.default_rng([random_state, run, count]))
            for run, chosen in enumerate(drawn)
        ]
        rows.append([count, *np.mean(scores, axis=0).tolist()])
    return ["links", *_SETTINGS], rows


def _scores(counts: Any, y: NDArray[np.int64], n_links: int, rng: np.random.Generator) -> list[float]:
    words = TfidfTransformer(sublinear_tf=True).fit_transform(counts)
    common = np.asarray((counts > 0).sum(axis=0)).ravel() >= 3
    dense = {
        "euclidean": words[:, common].toarray(),
        "euclidean, SVD": TruncatedSVD(100, random_state=0).fit_transform(words),
    }
    half = np.sort(rng.permutation(len(y))[: len(y) // 2])
    other = np.setdiff1d(np.arange(len(y)), half)
    links = None
    if n_links:
        drawn = Constraints.sample(y[half], n_links, overlap=True, random_state=rng)
        links = Constraints(len(y), half[drawn.must_link], half[drawn.cannot_link], weight=1.0)
    found = []
    for name, settings in _SETTINGS.items():
        model = HMRFKMeans(len(np.unique(y)), n_init=10, random_state=0, **settings)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            labels = model.fit(dense.get(name, words), constraints=links).labels_
        found.append(pairwise_f1(y[other], labels[other]))
    return found
