"""Hard cannot-links so dense that inference has no cheap exact way: whole fits, and whether the links hold.

Cliques of as many rows as clusters, and random links that a hidden labelling keeps, on data that knows
nothing of it. PPC works within a limit of table and message entries; the last column says what it had to
approximate further for that. Default settings, one start; three iterations of PPC on the largest clique.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks._table import Table
from benchmarks._timing import best_of, one_line
from linkwise import PPC, Constraints, COPKMeans, HMRFKMeans

#: Name, rows, features, rows of the clique (also the number of clusters), iterations of PPC.
CLIQUES = (
    ("clique of 200 among 400 rows", 400, 5, 200, 3),
    ("clique of 30 among 60 rows", 60, 3, 30, 100),
)
#: Rows, links, clusters.
COLOURABLE = ((300, 1200, 3), (300, 1200, 4), (300, 1500, 4), (300, 1800, 5), (214, 528, 6))


def _clique(n_samples: int, n_features: int, n_apart: int) -> tuple[Any, Constraints]:
    """Rows of which some all differ."""
    X = np.random.default_rng(0).normal(size=(n_samples, n_features))
    return X, Constraints(n_samples, cannot_link=list(itertools.combinations(range(n_apart), 2)))


def _colourable(n_samples: int, n_links: int, n_clusters: int) -> tuple[Any, Constraints]:
    """Rows with random links between different hidden classes."""
    rng = np.random.default_rng(0)
    hidden = rng.integers(n_clusters, size=n_samples)
    pairs = np.column_stack(np.triu_indices(n_samples, 1))
    pairs = pairs[hidden[pairs[:, 0]] != hidden[pairs[:, 1]]]
    chosen = rng.choice(len(pairs), n_links, replace=False)
    return rng.normal(size=(n_samples, 4)), Constraints(n_samples, cannot_link=pairs[chosen])


def _cells(make: Callable[[], Any], X: Any, links: Constraints) -> list[Any]:
    """Seconds, how labels or posterior were found, share of the links kept."""

    def fit() -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return make().fit(X, constraints=links)

    try:
        seconds, model = best_of(fit, repeats=1, warm_up=False)
    except Exception as error:
        return [one_line(error), "", "", ""]
    inference = getattr(model, "inference_", {})
    exact = inference.get("exact", inference.get("optimal", ""))
    reason = inference.get("details", {}).get("reason") or ""
    return [seconds, f"{exact}", f"{links.satisfaction(model.labels_):.3g}", reason]


def _rows(case: str, X: Any, links: Constraints, n_clusters: int, max_iter: int) -> Iterator[list[Any]]:
    for name, make in (
        ("PPC", lambda: PPC(n_clusters, max_iter=max_iter, random_state=0)),
        ("HMRFKMeans", lambda: HMRFKMeans(n_clusters, n_init=1, random_state=0)),
        ("COPKMeans", lambda: COPKMeans(n_clusters, n_init=1, random_state=0)),
    ):
        yield [case, links.n_pairs, n_clusters, name, *_cells(make, X, links)]


def run() -> Iterator[Table]:
    """Every case with every estimator."""
    rows: list[list[Any]] = []
    for case, n_samples, n_features, n_clusters, max_iter in CLIQUES:
        rows += _rows(case, *_clique(n_samples, n_features, n_clusters), n_clusters, max_iter)
    for n_samples, n_links, n_clusters in COLOURABLE:
        X, links = _colourable(n_samples, n_links, n_clusters)
        rows += _rows(f"colourable, {n_samples} rows", X, links, n_clusters, 100)
    head = ["links", "number", "K", "estimator", "seconds", "exact", "links kept", "reason"]
    yield Table("Whole fits", head, rows)
