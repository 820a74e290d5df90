"""One EM iteration and its memory beside scikit-learn's GaussianMixture in the same run; full covariances."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture
from threadpoolctl import threadpool_limits

from benchmarks._table import Measured, Table
from benchmarks._targets import TARGETS
from benchmarks._timing import in_child, peak_mebibytes
from linkwise import PPC, Constraints
from linkwise._threads import Workers
from linkwise.mixture.em import MixtureParameters
from linkwise.mixture.gaussian.data import Points, points_of
from linkwise.mixture.gaussian.gaussians import Gaussians, m_step, precision_factors
from linkwise.mixture.gaussian.passes import em_pass
from linkwise.mixture.gaussian.source import RowsInMemory
from linkwise.mixture.links.em_step import LinkedStep
from linkwise.mixture.links.rows import select_linked_rows

#: (N, D, K) of the targets by their names.
SHAPES = {
    "10k": (10_000, 10, 5),
    "100k": (100_000, 19, 34),
    "1M": (1_000_000, 10, 10),
    "200k": (200_000, 50, 10),
}
GROWTH = (10_000, 100_000, 1_000_000)
GROWTH_FEATURES, GROWTH_COMPONENTS = 10, 10
LINKED_ROWS, LINKED_ROWS_MEMORY = 50_000, 1_000_000
#: For the targets, and for the rest.
ROUNDS, FEWER_ROUNDS = 3, 2


def _data(n_samples: int, n_features: int, n_components: int) -> tuple[Any, Any]:
    """Overlapping clusters, so that no responsibility is exactly zero and nothing can be skipped."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(n_components, n_features))
    X = rng.normal(size=(n_samples, n_features))
    X += centres[rng.integers(n_components, size=n_samples)]
    return X, centres


def _start(centres: Any) -> dict[str, Any]:
    """The same start for everyone, in the words both estimators share."""
    n_components, n_features = centres.shape
    return {
        "weights_init": np.full(n_components, 1.0 / n_components),
        "means_init": centres,
        "precisions_init": np.repeat(np.eye(n_features)[np.newaxis], n_components, axis=0),
    }


def _gaussians(centres: Any) -> tuple[Gaussians, Any]:
    n_components = len(centres)
    log_weights = np.full(n_components, -np.log(n_components))
    return Gaussians(centres, _start(centres)["precisions_init"], "full"), log_weights


def _iterate(points: Points, centres: Any, n_iter: int, workers: Workers | None = None) -> None:
    gaussians, log_weights = _gaussians(centres)
    for _ in range(n_iter):
        statistics = em_pass(points, gaussians, log_weights, workers=workers)
        means, covariances = m_step(statistics, "full", 1e-6)
        gaussians = Gaussians(means, precision_factors(covariances, "full"), "full")
        log_weights = np.log(statistics.counts / statistics.counts.sum())


def _sklearn_fit(X: Any, centres: Any, max_iter: int) -> None:
    GaussianMixture(
        len(centres), tol=0.0, max_iter=max_iter, init_params="random_from_data", **_start(centres)
    ).fit(X)


def _linkwise_fit(X: Any, centres: Any, max_iter: int, links: Constraints | None = None) -> PPC:
    return PPC(len(centres), tol=0.0, max_iter=max_iter, **_start(centres)).fit(X, constraints=links)


def _turns(functions: list[Callable[[], Any]], clock: Callable[[], float], rounds: int) -> Any:
    """Shortest time of each function; they take turns, so that a slow spell of the machine hits all alike."""
    seconds = np.empty((rounds, len(functions)))
    for turn in seconds:
        for place, function in enumerate(functions):
            start = clock()
            function()
            turn[place] = clock() - start
    return seconds.min(axis=0)


def _n_iter(n_samples: int) -> int:
    return max(3, 100_000 // n_samples)


def _milliseconds(shape: tuple[int, int, int]) -> tuple[float, float, float]:
    """One iteration of scikit-learn, and of linkwise in float64 and float32; processor time of one thread."""
    X, centres = _data(*shape)
    n_iter = _n_iter(shape[0])
    double, single = points_of(X), points_of(X.astype(np.float32))
    _iterate(single, centres, 1)
    _iterate(double, centres, 1)
    # Of the fits of scikit-learn, the longer less the shorter leaves the iterations alone, without the start
    # and the last E-step.
    short, long, ours_64, ours_32 = _turns(
        [
            lambda: _sklearn_fit(X, centres, 1),
            lambda: _sklearn_fit(X, centres, 1 + n_iter),
            lambda: _iterate(double, centres, n_iter),
            lambda: _iterate(single, centres, n_iter),
        ],
        time.thread_time,
        ROUNDS,
    )
    milliseconds = 1e3 / n_iter
    return milliseconds * (long - short), milliseconds * ours_64, milliseconds * ours_32


def _fit_memory(shape: tuple[int, int, int]) -> tuple[float, float]:
    """Peak memory beyond the data of a whole fit: linkwise, scikit-learn."""
    X, centres = _data(*shape)
    fits = (partial(_linkwise_fit, max_iter=2), partial(_sklearn_fit, max_iter=2))
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for fit in fits:
            fit(X[:1000], centres)
        ours, theirs = (peak_mebibytes(partial(fit, X, centres)) for fit in fits)
    return ours, theirs


def iteration_table() -> Table:
    rows, measured, most = [], {}, 0.0
    for name, shape in SHAPES.items():
        theirs, ours_64, ours_32 = _milliseconds(shape)
        ours_memory, their_memory = in_child(_fit_memory, shape)
        most = max(most, ours_memory)
        measured[f"em {name}"] = Measured(theirs / ours_64)
        measured[f"em {name} float32"] = Measured(theirs / ours_32)
        rows.append(
            [
                str(shape),
                theirs,
                ours_64,
                ours_32,
                f"{theirs / ours_64:.1f} ({TARGETS[f'em {name}']})",
                f"{theirs / ours_32:.1f} ({TARGETS[f'em {name} float32']})",
                ours_memory,
                their_memory,
            ]
        )
    measured["em memory"] = Measured(most)
    return Table(
        "One iteration, one thread",
        [
            "(N, D, K)", "scikit-learn ms", "float64 ms", "float32 ms", "ratio", "ratio float32",
            "fit, MiB", "scikit-learn fit, MiB",
        ],
        rows,
        "Processor time. Memory is the peak of a whole fit beyond the data, in a process of its own; the "
        "labels of the training rows, 8 bytes a row, are part of it.",
        measured,
    )  # fmt: skip


def growth_table() -> Table:
    """Wall clock, as two threads share the work."""
    rows = []
    for n_samples in GROWTH:
        X, centres = _data(n_samples, GROWTH_FEATURES, GROWTH_COMPONENTS)
        points, n_iter = points_of(X), _n_iter(n_samples)
        cells = []
        for n_threads in (1, 2):
            with threadpool_limits(n_threads):
                workers = Workers(n_threads)
                _iterate(points, centres, 1, workers)
                short, long, ours = _turns(
                    [
                        partial(_sklearn_fit, X, centres, 1),
                        partial(_sklearn_fit, X, centres, 1 + n_iter),
                        partial(_iterate, points, centres, n_iter, workers),
                    ],
                    time.perf_counter,
                    FEWER_ROUNDS,
                )
            theirs = long - short
            cells.append((1e3 * theirs / n_iter, 1e3 * ours / n_iter, theirs / ours))
        rows.append([f"{n_samples:,}", *cells[0], *cells[1], cells[0][1] / cells[1][1]])
    return Table(
        "Growth with N, and a second thread",
        [
            "N", "scikit-learn ms", "linkwise ms", "ratio", "scikit-learn ms, 2 threads",
            "linkwise ms, 2 threads", "ratio, 2 threads", "gain of linkwise",
        ],
        rows,
        f"Wall clock, float64, D = {GROWTH_FEATURES}, K = {GROWTH_COMPONENTS}. The second thread of "
        "scikit-learn is that of its linear algebra.",
    )  # fmt: skip


def _links(X: Any, centres: Any) -> dict[str, Constraints | None]:
    """Links among a tenth of the rows."""
    rng = np.random.default_rng(1)
    y = np.full(len(X), -1)
    chosen = rng.permutation(len(X))[: len(X) // 10]
    y[chosen] = ((X[chosen, np.newaxis] - centres) ** 2).sum(axis=2).argmin(axis=1)
    few, many = len(X) // 20, len(X) // 10
    return {
        "none": None,
        f"{few:,} disjoint, soft": Constraints.sample(y, few, certainty=0.9, random_state=0),
        f"{few:,} disjoint, hard": Constraints.sample(y, few, random_state=0),
        f"{many:,} overlapping, soft": Constraints.sample(
            y, many, overlap=True, certainty=0.9, random_state=0
        ),
    }


def _loop_memory(n_samples: int, case: str) -> tuple[float, float]:
    """Peak memory of EM steps beyond data and links, and N_constrained x K numbers; MiB."""
    X, centres = _data(n_samples, GROWTH_FEATURES, GROWTH_COMPONENTS)
    gaussians, log_weights = _gaussians(centres)

    def step(X: Any, links: Constraints | None) -> tuple[Callable[[], Any], float]:
        linked = None if links is None else select_linked_rows(links, np.arange(len(centres)))
        coupling = np.empty(0) if linked is None else linked.coupling
        parameters = MixtureParameters(log_weights, gaussians, np.empty(0), coupling)
        em_step = LinkedStep(RowsInMemory(X, 1e-6), linked, "full", 1e-6, "auto", "exact", None, 0)
        allowed = 0.0 if linked is None else linked.rows.size * len(centres) * 8 / 2**20
        return (lambda: (em_step(parameters), em_step(parameters))), allowed

    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        small = X[:2000]
        step(small, list(_links(small, centres).values())[_CASES.index(case)])[0]()
        run, allowed = step(X, list(_links(X, centres).values())[_CASES.index(case)])
        return peak_mebibytes(run), allowed


_CASES = ["none", "disjoint, soft", "disjoint, hard", "overlapping, soft"]


def linked_table() -> Table:
    X, centres = _data(LINKED_ROWS, GROWTH_FEATURES, GROWTH_COMPONENTS)
    n_iter = 6

    def iteration(fit: Callable[[int], Any]) -> float:
        short, long = _turns([lambda: fit(2), lambda: fit(2 + n_iter)], time.thread_time, FEWER_ROUNDS)
        return 1e3 * (long - short) / n_iter

    theirs = iteration(partial(_sklearn_fit, X, centres))
    rows, most = [], 0.0
    for case, (name, links) in zip(_CASES, _links(X, centres).items(), strict=True):
        exact = getattr(_linkwise_fit(X, centres, 2, links), "inference_", {"exact": True})["exact"]
        ours = iteration(partial(_linkwise_fit, X, centres, links=links))
        # Twice: if the first process compiles a kernel, that counts among its memory.
        memory, allowed = min(in_child(_loop_memory, LINKED_ROWS_MEMORY, case) for _ in range(2))
        most = max(most, memory - allowed)
        rows.append([name, str(exact), theirs, ours, ours / theirs, memory, allowed])
    return Table(
        f"PPC with links, {LINKED_ROWS:,} x {GROWTH_FEATURES}, K = {GROWTH_COMPONENTS}",
        [
            "links", "exact", "scikit-learn ms", "PPC ms", "PPC / scikit-learn", "EM loop, MiB",
            "N_constrained x K, MiB",
        ],
        rows,
        "An iteration on one thread, processor time; scikit-learn's is without links. Memory is the peak of "
        f"the EM loop beyond data and links for {LINKED_ROWS_MEMORY:,} rows, with as large a share linked. "
        "What overlapping links need beyond N_constrained x K, in MiB: 12.0 are messages, both ways along "
        "63,055 links of rings (two fifths of them only pass through rows with two such links); 3.2 "
        "potentials and index tables of the sweeps; 0.8 agreement of the links; 0.9 groups and components; "
        "the rest is what the allocator keeps of tables that were freed.",
        {"em linked memory": Measured(most)},
    )  # fmt: skip


def run() -> Iterator[Table]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        with threadpool_limits(1):
            yield iteration_table()
            yield linked_table()
        yield growth_table()
