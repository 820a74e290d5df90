"""HMRF-KMeans on newsgroups: directions against points, with links and without (Basu et al. 2004)."""

from __future__ import annotations

import warnings
from itertools import product
from typing import Any

import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer

from experiments.framework.data_files import TASKS, even_sample, load_newsgroups
from experiments.framework.experiment import Experiment, Size
from experiments.framework.summary import Row
from linkwise.constraints import Constraints
from linkwise.kmeans.hmrf_kmeans import HMRFKMeans
from linkwise.metrics import pairwise_f1

__all__ = ["EXPERIMENTS", "hmrf_newsgroups"]

#: Methods and their settings. No metric is learned.
METHODS: dict[str, dict[str, Any]] = {
    "euclidean": {"distortion": "euclidean", "init": "constraints"},
    "euclidean, SVD": {"distortion": "euclidean", "init": "constraints"},
    "cosine": {"distortion": "cosine", "penalty": "distance", "init": "constraints"},
    "cosine constant": {"distortion": "cosine", "penalty": "constant", "init": "constraints"},
    "cosine constant, k-means++": {"distortion": "cosine", "penalty": "constant", "init": "k-means++"},
}


def hmrf_newsgroups(draw: int, task: str, links: int, documents: int = 400) -> list[Row]:
    """Pairwise F of HMRF-KMeans on documents that carry no links.

    Links of weight 1 between random documents of one half; F is counted on the other half. Documents are
    drawn evenly from the groups. TF-IDF with logarithmic term frequencies, without stop words; the Euclidean
    distortion, which takes dense rows, gets the same rows for the terms in at least three documents, and 100
    components of all of them (truncated SVD). Ten starts, from links as in the paper except where k-means++
    is named. "constant": a violated link costs 1 whatever the
    distance of its ends.

    Parameters
    ----------
    draw : int
    task : {"easy", "medium", "difficult"}
        As in :func:`experiments.spectral.curves.spectral_newsgroups`.
    links : int
    documents : int

    Returns
    -------
    list of dict
        "f" of each method.
    """
    counts, labels = load_newsgroups(task)
    chosen = even_sample(labels, documents, np.random.default_rng([draw, TASKS.index(task)]))
    counts, y = counts[chosen], labels[chosen]
    words = TfidfTransformer(sublinear_tf=True).fit_transform(counts)
    common = np.asarray((counts > 0).sum(axis=0)).ravel() >= 3
    components = TruncatedSVD(100, random_state=draw).fit_transform(words)
    dense = {"euclidean": words[:, common].toarray(), "euclidean, SVD": components}
    half, other = np.array_split(np.random.default_rng([draw, documents]).permutation(documents), 2)
    given = None
    if links:
        drawn = Constraints.sample(
            y[half], links, overlap=True, random_state=np.random.default_rng([draw, links])
        )
        given = Constraints(documents, half[drawn.must_link], half[drawn.cannot_link], weight=1.0)
    rows = []
    for name, settings in METHODS.items():
        model = HMRFKMeans(len(np.unique(y)), metric=None, n_init=10, random_state=draw, **settings)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            found = model.fit(dense.get(name, words), constraints=given).labels_
        rows.append({"method": name, "f": pairwise_f1(y[other], found[other])})
    return rows


def _settings(links: tuple[int, ...]) -> list[dict[str, Any]]:
    return [{"task": task, "links": count} for task, count in product(TASKS, links)]


EXPERIMENTS = (
    Experiment(
        "hmrf_newsgroups",
        "Pairwise F of HMRF-KMeans on 400 documents of 20 newsgroups, cosine and Euclidean",
        "Basu, Bilenko & Mooney 2004; tasks of Lu & Carreira-Perpinan 2008",
        hmrf_newsgroups,
        quick=Size(_settings((0, 200)), 2),
        full=Size(_settings((0, 50, 100, 200)), 8),
        measures=("f",),
        reference="euclidean",
        axis="links",
    ),
)
