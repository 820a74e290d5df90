"""Compile the kernels that most tests need, before the tests: else their workers would all compile the same.

``make test`` runs it twice at a time, the second time ``--backwards`` and after linting: what one process has
compiled the other finds on disk, so that they share the work and meet somewhere.
"""

from __future__ import annotations

import gc
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np

import linkwise
from linkwise import Constraints
from linkwise._exports import ESTIMATORS
from linkwise.active import ActiveClustering, LabelOracle
from linkwise.graph import adjacency, dsatur_colouring, find_clique, path_witness, two_colouring
from linkwise.graph.colour_search import search_colouring
from linkwise.graph.colourability import anneal_colouring
from linkwise.graph.parity import link_parity
from linkwise.inference import PottsField, best_labels, marginals
from linkwise.inference.engines import engine_options
from linkwise.raster.smoothing import smooth_tile


def jobs() -> list[Callable[[], Any]]:
    """Algorithms of graphs, fields of both forms of coupling by every engine, and fits of every estimator."""
    rng = np.random.default_rng(0)
    y = np.arange(24) % 3
    X = 4.0 * rng.normal(size=(3, 2))[y] + rng.normal(size=(24, 2))
    links = Constraints.sample(y, 30, overlap=True, random_state=0)
    pairs, unary = links.pairs, rng.normal(size=(24, 3))
    graph = adjacency(24, pairs)
    found: list[Callable[[], Any]] = [
        partial(dsatur_colouring, graph),
        partial(find_clique, graph, 3),
        partial(search_colouring, graph, 2, clique=np.empty(0, dtype=np.int64), budget=100),
        partial(anneal_colouring, graph, 2, n_moves=100),
        partial(two_colouring, graph),
        partial(link_parity, 24, pairs, np.sign(links.weights)),
        partial(path_witness, 3, np.array([[0, 1], [1, 2]]), 0, 2),
    ]
    fields = [
        PottsField(unary, pairs, coupling)
        for coupling in (4.0 * np.sign(links.weights), 4.0 * rng.normal(size=(len(pairs), 3)))
    ]
    for field in fields:
        for solve in (marginals, best_labels):
            for method in engine_options(solve.__name__):
                found.append(partial(solve, field, method=method, random_state=0))
        # Too strong for plain numbers: messages are logarithms.
        strong = PottsField(1e4 * unary, pairs, 1e3 * field.coupling)
        found.append(partial(marginals, strong, method="belief_propagation"))
        # Two labels that attract each other are found by a minimum cut.
        attraction = np.ones((len(pairs), *unary[0, :2].shape)[: field.coupling.ndim])
        found.append(partial(best_labels, PottsField(unary[:, :2], pairs, attraction), method="exact"))
    hard = PottsField(unary, pairs, np.where(links.weights < 0, -np.inf, 1.0))
    triangle = PottsField(unary[:3], [(0, 1), (0, 2), (1, 2)], [-np.inf] * 3)
    found += [
        partial(best_labels, hard, method="icm", random_state=0),
        partial(marginals, triangle, method="exact"),
        partial(smooth_tile, unary, np.ones((4, 6), dtype=bool), 1.0),
        partial(_answer_questions, X, y),
    ]
    soft = Constraints(24, links.must_link, links.cannot_link, certainty=0.9)
    frozen = X.copy()  # the checks of scikit-learn pass such data, for which kernels are compiled anew
    frozen.setflags(write=False)
    for name in ESTIMATORS:
        for data, given in ((X, links), (X, soft), (X.astype(np.float32), links), (frozen, links)):
            known = {"y": y} if name == "CPPC" else {"constraints": given}
            found.append(partial(getattr(linkwise, name)(3, random_state=0).fit, data, **known))
    for distortion in ("cosine", "kl", "i_divergence"):
        kmeans = linkwise.HMRFKMeans(3, distortion=distortion, random_state=0)
        found.append(partial(kmeans.fit, np.exp(X / 8.0), constraints=soft))
    return found


def _answer_questions(X: np.ndarray, y: np.ndarray) -> None:
    """A session of a few answers."""
    session, person = ActiveClustering(X, random_state=0), LabelOracle(y)
    for _ in range(3):
        i, j = session.ask()
        session.tell(i, j, person(i, j))
    session.labels_, session.quality_  # noqa: B018


def main(*, backwards: bool = False) -> None:
    """Do all of it, from the first to the last or the other way."""
    warnings.simplefilter("ignore")
    # What numba makes is kept for long: to look through it every 700 objects was 8 % of the time.
    gc.set_threshold(100_000, 20, 100)
    for job in reversed(jobs()) if backwards else jobs():
        # Some engines are not for such a field, and some estimators take hard links only.
        with suppress(ValueError, RuntimeError):
            job()


if __name__ == "__main__":
    main(backwards="--backwards" in sys.argv)
