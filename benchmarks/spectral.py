"""Constrained spectral clustering: links against the eigensolve, and large N without an N x N matrix."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse.linalg import eigsh
from sklearn.neighbors import NearestNeighbors
from threadpoolctl import threadpool_limits

from benchmarks._table import Measured, Table
from benchmarks._targets import TARGETS
from benchmarks._timing import attempt, best_of, in_child, peak_mebibytes
from linkwise import Constraints
from linkwise.datasets import make_two_moons
from linkwise.metrics import rand_score
from linkwise.spectral.constrained import ConstrainedSpectralClustering
from linkwise.spectral.kernels import heat_kernel, neighbour_graph, normalised_adjacency
from linkwise.spectral.normalised_cut import CutSettings, affinity_embedding, constrained_affinity

SIZES = (1000, 2000, 5000)
LINKS = (100, 500)
#: N and links of the targets for algorithms A and B.
TARGET_CASE = (5000, 500)
LARGE = (
    (20_000, "landmark"),
    (20_000, "basis"),
    (20_000, "signed_laplacian"),
    (50_000, "landmark"),
    (50_000, "basis"),
    (100_000, "landmark"),
    (100_000, "basis"),
    (100_000, "signed_laplacian"),
)
#: Rows of the target without an N x N matrix.
TARGET_ROWS = 100_000


def _kernel(n: int) -> tuple[Any, Any, float]:
    """Heat kernel of two moons, the labels, and the processor seconds the kernel took."""
    X, y = make_two_moons(n // 2, random_state=0)
    adjacency = normalised_adjacency(neighbour_graph(NearestNeighbors().fit(X), 10))
    seconds, K = best_of(
        partial(heat_kernel, adjacency, 20.0), repeats=1, warm_up=False, clock=time.thread_time
    )
    return K, y, seconds


def _update(K: Any, y: Any, n_links: int, algorithm: str) -> Any:
    links = Constraints.sample(y, n_links, overlap=True, random_state=0)
    settings = CutSettings(2, algorithm, "clip", 0.1, 0.0, 1e-4)
    return partial(constrained_affinity, K, links.pairs, links.weights, settings)


def update_table() -> Table:
    """What links add to a dense kernel, beside scipy's eigensolver at the tolerance the estimator uses."""
    rows, measured = [], {}
    timed = partial(best_of, repeats=2, clock=time.thread_time)
    for n in SIZES:
        K, y, build = _kernel(n)
        scale = 1.0 / np.sqrt(K.sum(axis=1))
        normalised = scale[:, np.newaxis] * K * scale
        first = np.random.default_rng(0).normal(size=n)
        eigen, _ = timed(partial(eigsh, normalised, 2, which="LA", tol=1e-4, v0=first))
        ours, _ = timed(partial(affinity_embedding, K, 2, rng=np.random.default_rng(0), tol=1e-4))
        del normalised
        for n_links in LINKS:
            for algorithm in "AB":
                update, _ = timed(_update(K, y, n_links, algorithm))
                aim = ""
                if (n, n_links) == TARGET_CASE:
                    measured[f"spectral {algorithm}"] = Measured(update / eigen)
                    aim = f" ({TARGETS[f'spectral {algorithm}']})"
                cells = [f"{n:,}", n_links, algorithm, build, eigen, ours, update]
                rows.append([*cells, f"{update / eigen:.2f}{aim}"])
    return Table(
        "Links against the eigensolve, moons, heat kernel, one thread",
        ["N", "links", "algorithm", "kernel s", "eigsh s", "our eigensolve s", "update s", "update / eigsh"],
        rows,
        "Processor time.",
        measured,
    )


def threads_table() -> Table:
    """Wall clock, as two threads share the work."""
    n, n_links = TARGET_CASE
    K, y, _ = _kernel(n)
    rows = []
    for algorithm in "AB":
        update = _update(K, y, n_links, algorithm)
        seconds = []
        for n_threads in (1, 2):
            with threadpool_limits(n_threads):
                seconds.append(best_of(update, repeats=2)[0])
        rows.append(
            [algorithm, *seconds, seconds[0] / seconds[1], in_child(_update_memory, n, n_links, algorithm)]
        )
    return Table(
        f"A second thread and memory of the update, N = {n:,}, {n_links} links",
        ["algorithm", "1 thread, s", "2 threads, s", "gain", "peak MiB"],
        rows,
        "Wall clock. Only linear algebra uses a second thread. Memory beyond the kernel of "
        f"{K.nbytes / 2**20:.0f} MiB, result included, in a process of its own.",
    )


def _update_memory(n: int, n_links: int, algorithm: str) -> float:
    K, y, _ = _kernel(200)
    _update(K, y, 20, algorithm)()
    K, y, _ = _kernel(n)
    return peak_mebibytes(_update(K, y, n_links, algorithm))


def _large_fit(n: int, solver: str) -> list[float]:
    """Seconds of a fit and an update, Rand index, peak memory; in a fresh process."""
    X, y = make_two_moons(n // 2, random_state=0)
    small = ConstrainedSpectralClustering(2, solver=solver, random_state=0)
    small.fit(X[:500], constraints=Constraints.sample(y[:500], 10, overlap=True, random_state=0))  # compiles
    links = Constraints.sample(y, 100, overlap=True, random_state=0)
    more = links + Constraints.sample(y, 1, overlap=True, random_state=1)
    model = ConstrainedSpectralClustering(2, solver=solver, random_state=0)
    found: list[float] = []

    def fit_and_update() -> None:
        start = time.process_time()
        model.fit(X, constraints=links)
        found.append(time.process_time() - start)
        score = rand_score(y, model.labels_)
        start = time.process_time()
        model.update(more)
        found.extend([time.process_time() - start, score])

    with threadpool_limits(1):
        memory = peak_mebibytes(fit_and_update)
    return [*found, memory]


def large_table() -> Table:
    rows = []
    shares, problem = [], "not run"
    for n, solver in LARGE:
        cells, error = attempt(partial(in_child, _large_fit, n, solver))
        matrix = n * n * 8 / 2**20
        rows.append([f"{n:,}", solver, *(cells or [error, "", "", ""]), f"{matrix:,.0f}"])
        if n == TARGET_ROWS:
            shares += [cells[3] / matrix] if cells else []
            problem = error or problem
    return Table(
        "Growth with N: fits with 100 links on moons (noise 0.18), then one more link, one thread",
        ["N", "solver", "fit s", "update s", "Rand", "peak MiB", "one N x N matrix, MiB"],
        rows,
        "Processor time; memory beyond the data, in a process of its own.",
        {"spectral memory": Measured(max(shares)) if shares else Measured(reason=problem)},
    )


def run() -> Iterator[Table]:
    with threadpool_limits(1):
        yield update_table()
    yield threads_table()
    yield large_table()
