"""The K-means family: the assignment step beside HiGHS, whole fits beside an installable package, and alone.

Times are those of the processor, one thread. Links are true ones at unit cost; F is the pairwise F of all
rows, the mean over as many random starts as stand in brackets. The package active-semi-supervised-clustering
runs in a process of its own that is stopped at a time limit.
"""

from __future__ import annotations

import importlib.util
import multiprocessing
import queue
import resource
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from benchmarks._timing import print_table
from linkwise import Constraints
from linkwise.cluster.assignment import assign_linked, link_costs, weighted_links
from linkwise.cluster.distortions import make_distortion
from linkwise.cluster.settings import MPCKMeans, PCKMeans
from linkwise.inference import PottsField
from linkwise.inference.local_polytope import solve_relaxation
from linkwise.inference.reduce import reduce_field
from linkwise.metrics import pairwise_f1

E_STEP_TARGET = 100.0
FIT_TARGET, TARGET_ROWS = 50.0, 10_000
# Seconds, on the wall clock, after which a fit of the other package is stopped.
PATIENCE = 20.0
FEATURES, CLUSTERS = 10, 10
PEER = "active_semi_clustering"


def _data(n_samples: int, n_links: int) -> tuple[Any, Any, Constraints]:
    """Overlapping clusters and true links of weight 1."""
    rng = np.random.default_rng(0)
    centres = 1.2 * rng.normal(size=(CLUSTERS, FEATURES))
    y = rng.integers(CLUSTERS, size=n_samples)
    X = centres[y] + rng.normal(size=(n_samples, FEATURES))
    hard = Constraints.sample(y, n_links, overlap=True, random_state=0)
    return X, y, Constraints(n_samples, hard.must_link, hard.cannot_link, weight=1.0)


def _cpu_seconds(function: Callable[[], Any], repeats: int = 1) -> tuple[float, Any]:
    """Shortest processor time of this thread over some calls, and the last result."""
    best, result = np.inf, None
    for _ in range(repeats):
        start = time.thread_time()
        result = function()
        best = min(best, time.thread_time() - start)
    return best, result


def _e_step_row() -> list[Any]:
    X, y, constraints = _data(100_000, 10_000)
    # Some links are wrong, so that they pull against the data.
    rng = np.random.default_rng(1)
    flipped = np.where(rng.random(constraints.n_pairs) < 0.05, -1.0, 1.0) * constraints.weights
    links = weighted_links(
        Constraints(
            len(X), constraints.pairs[flipped > 0], constraints.pairs[flipped < 0], weight=1.0
        ), 1.0, 1.0,
    )  # fmt: skip
    distortion = make_distortion("euclidean", "diag", CLUSTERS)
    rows = distortion.rows(X)
    linked_rows = rows.take(links.rows)
    metric = distortion.start_metric(rows)
    centres = distortion.group_centres(rows, y, CLUSTERS)
    unary = distortion.distances(linked_rows, centres, metric)
    coupling = link_costs(links, distortion, rows, metric, "distance")
    field = PottsField(-unary, links.local, coupling)

    def e_step() -> Any:
        unary = distortion.distances(linked_rows, centres, metric)
        coupling = link_costs(links, distortion, rows, metric, "distance")
        answer = assign_linked(links, unary, coupling, "auto", None, np.random.default_rng(0))
        given = np.full(len(X), -1)
        given[links.rows] = answer.labels
        distortion.assign(rows, centres, metric, given, 1)
        return answer

    ours, answer = _cpu_seconds(e_step, repeats=5)
    reduction = reduce_field(field, keep_zero_in_component=False)
    theirs, relaxed = _cpu_seconds(lambda: solve_relaxation(reduction.problem))
    return [
        "100,000 x 10, K = 10, 10,000 links",
        f"{1e3 * ours:.0f}",
        f"{1e3 * theirs:.0f}",
        f"{theirs / ours:.0f} (>= {E_STEP_TARGET:g})",
        f"{-field.score(answer.labels):.6f}",
        f"{-(relaxed.upper_bound or np.nan) - reduction.constant:.6f}",
        str(answer.optimal),
    ]


def _peer_fit(name: str, X: Any, must_link: Any, cannot_link: Any, n_seeds: int, results: Any) -> None:
    """Fit a class of the other package in a process of its own; tells first what starting up has cost."""
    from active_semi_clustering.semi_supervised import pairwise_constraints

    results.put(time.process_time())
    for seed in range(n_seeds):
        np.random.seed(seed)  # noqa: NPY002  (the only way to seed it)
        with threadpool_limits(1):
            start = time.process_time()
            try:
                model = getattr(pairwise_constraints, name)(n_clusters=CLUSTERS)
                model.fit(X, ml=must_link, cl=cannot_link)
                results.put((time.process_time() - start, model.labels_, ""))
            except Exception as error:  # whatever it raises is the answer of this row
                results.put((time.process_time() - start, None, type(error).__name__))


def _children_seconds() -> float:
    """Processor time of all processes started here that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _peer(name: str, X: Any, y: Any, links: Constraints, n_seeds: int) -> tuple[float, str, str]:
    """Processor time of a fit (at least, if none came to an end), what became of it, and the mean F."""
    if importlib.util.find_spec(PEER) is None:
        return np.nan, "not installed", ""
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    pairs = [[tuple(pair) for pair in part.tolist()] for part in (links.must_link, links.cannot_link)]
    process = context.Process(target=_peer_fit, args=(name, X, *pairs, n_seeds, results))
    before = _children_seconds()
    process.start()
    fits: list[tuple[float, Any, str]] = []
    start_up = None
    try:
        start_up = results.get(timeout=60.0)
        deadline = time.monotonic() + PATIENCE
        while len(fits) < n_seeds:
            fits.append(results.get(timeout=max(deadline - time.monotonic(), 0.0)))
    except queue.Empty:
        process.terminate()
    process.join()
    if start_up is None:
        return np.nan, "does not start", ""
    if not fits:
        seconds = _children_seconds() - before - start_up
        return seconds, f"> {seconds:.3g}", ""
    done = [(seconds, pairwise_f1(y, labels)) for seconds, labels, _ in fits if labels is not None]
    if not done:
        return np.nan, fits[0][2], ""
    seconds = float(np.median([seconds for seconds, _ in done]))
    return seconds, f"{seconds:.3g}", f"{np.mean([f for _, f in done]):.3f} ({len(done)})"


def _fit(name: str, X: Any, links: Constraints, seed: int) -> Any:
    if name == "PCKMeans":
        # The other package halves squared distances, as the paper does: its w = 1 is a weight of 2.
        return PCKMeans(CLUSTERS, weight=2.0, random_state=seed).fit(X, constraints=links)
    if name == "MPCKMeans":
        return MPCKMeans(CLUSTERS, random_state=seed).fit(X, constraints=links)
    from linkwise.cluster.cop_kmeans import COPKMeans

    hard = Constraints(len(X), links.must_link, links.cannot_link)
    return COPKMeans(CLUSTERS, random_state=seed).fit(X, constraints=hard)


def _fit_rows() -> list[list[Any]]:
    names = ["PCKMeans", "MPCKMeans"]
    if importlib.util.find_spec("linkwise.cluster.cop_kmeans") is not None:
        names.append("COPKMeans")
    rows = []
    for n_samples, n_seeds in ((1_000, 8), (10_000, 4), (100_000, 1), (1_000_000, 1)):
        X, y, links = _data(n_samples, n_samples // 20)
        for name in names:
            fits = [_cpu_seconds(partial(_fit, name, X, links, seed)) for seed in range(n_seeds)]
            ours = np.median([seconds for seconds, _ in fits])
            n_iter = np.mean([fitted.n_iter_ for _, fitted in fits])
            quality = np.mean([pairwise_f1(y, fitted.labels_) for _, fitted in fits])
            outcome = peer_f = ratio = ""
            if n_samples <= 10_000:
                theirs, outcome, peer_f = _peer(name, X, y, links, n_seeds)
                if np.isfinite(theirs):
                    more = "" if peer_f else "> "
                    target = f" (>= {FIT_TARGET:g})" if n_samples == TARGET_ROWS else ""
                    ratio = f"{more}{theirs / ours:.0f}{target}"
            cells = [name, f"{n_samples:,}", f"{ours:.3g}", f"{n_iter:.0f}", f"{quality:.3f} ({n_seeds})"]
            rows.append([*cells, outcome, peer_f, ratio])
    return rows


def run() -> None:
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        e_step = _e_step_row()
        print("assignment step: milliseconds, and cost of the linked rows")
        print_table(
            ["problem", "linkwise", "HiGHS LP", "ratio", "cost", "LP bound", "optimal"],
            [e_step],
        )
        if importlib.util.find_spec(PEER) is None:
            print("\nactive-semi-supervised-clustering is not installed: its columns stay empty")
        print(f"\nfits: {FEATURES} features, K = {CLUSTERS}, one link for every 20 rows; seconds")
        print_table(["", "rows", "linkwise", "iterations", "F", "peer", "peer F", "ratio"], _fit_rows())
