"""What a second thread gains in a whole fit, at a size where it should and at one where it must not harm.

One and two threads take turns, and the shortest of the turns counts, so that a busy moment harms both alike.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from benchmarks._table import Measured, Table
from benchmarks.graph import TARGET_LABELS, grid_pairs, problem_of
from linkwise import PPC, PCKMeans
from linkwise.inference.messages.sum_product import belief_propagation

FEATURES, CLUSTERS = 10, 10
#: Rows, and turns of one and of two threads.
SIZES = ((1_000_000, 5), (10_000, 60))
SIDES = ((1000, 5), (100, 60))


def _data(n_samples: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    centres = 2.0 * rng.normal(size=(CLUSTERS, FEATURES))
    return centres[rng.integers(CLUSTERS, size=n_samples)] + rng.normal(size=(n_samples, FEATURES)), centres


def _em(X: Any, centres: Any, n_jobs: int) -> None:
    start = {
        "weights_init": np.full(CLUSTERS, 1.0 / CLUSTERS),
        "means_init": centres,
        "precisions_init": np.repeat(np.eye(FEATURES)[np.newaxis], CLUSTERS, axis=0),
    }
    PPC(CLUSTERS, **start, tol=0.0, max_iter=10, n_jobs=n_jobs).fit(X)


def _k_means(X: Any, centres: Any, n_jobs: int) -> None:
    PCKMeans(CLUSTERS, init=centres, n_init=1, tol=0.0, max_iter=10, n_jobs=n_jobs).fit(X)


def _sweeps(problem: Any, n_sweeps: int, n_threads: int) -> None:
    belief_propagation(problem, np.random.default_rng(0), max_iter=n_sweeps, tol=1e-300, n_threads=n_threads)


def _turns(work: Callable[[int], Any], n_turns: int) -> tuple[float, float]:
    """Shortest wall-clock time of one thread and of two, which take turns."""
    taken: dict[int, list[float]] = {1: [], 2: []}
    for n_threads in (1, 2) * (n_turns + 1):
        begin = time.perf_counter()
        work(n_threads)
        taken[n_threads].append(time.perf_counter() - begin)
    return min(taken[1][1:]), min(taken[2][1:])


def run() -> Iterator[Table]:
    rows, measured = [], {}
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for name, fit in (("EM", _em), ("K-means", _k_means)):
            for n_samples, n_turns in SIZES:
                one, two = _turns(partial(fit, *_data(n_samples)), n_turns)
                rows.append([name, f"{n_samples:,} rows", one, two, one / two])
                measured[f"threads {name} {n_samples}"] = Measured(one / two)
        for side, n_turns in SIDES:
            problem = problem_of(grid_pairs(side), side * side, TARGET_LABELS)
            few = _turns(partial(_sweeps, problem, 2), n_turns)
            many = _turns(partial(_sweeps, problem, 10), n_turns)
            one, two = (after - before for before, after in zip(few, many, strict=True))
            rows.append(["belief propagation, 8 sweeps", f"{side} x {side} grid", one, two, one / two])
            measured[f"threads BP {side}"] = Measured(one / two)
    yield Table(
        "One and two threads",
        ["", "size", "1 thread, s", "2 threads, s", "gain"],
        rows,
        f"Wall clock. Ten iterations of PPC and of PCKMeans on {FEATURES} features and {CLUSTERS} clusters, "
        "checks and starts included.",
        measured,
    )
