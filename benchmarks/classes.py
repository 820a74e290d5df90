"""The class-level E-step of CPPC: growth in N and L, beside the printed O(NKL) and the naive O(N² K)."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from functools import partial
from typing import Any

import numba
import numpy as np
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from benchmarks._table import Measured, Table
from benchmarks._targets import TARGETS
from benchmarks._timing import best_of, in_child, peak_mebibytes
from linkwise._threads import Workers
from linkwise.mixture.classes.e_step import class_rows, class_sums, class_sweep, empty_table, pair_weights
from linkwise.mixture.cppc import CPPC

#: (N, L, K) of the sweeps; the first is that of the targets.
TARGET_SHAPE = (1_000_000, 100, 34)
SHAPES = (
    TARGET_SHAPE,
    (10_000, 100, 34),
    (100_000, 100, 34),
    (1_000_000, 10, 34),
    (1_000_000, 1000, 34),
    (1_000_000, 100, 10),
)
PAIRED_ROWS = (1000, 2000, 4000)
#: (N, D, L = K) of the fits.
FIT_SHAPE = (100_000, 19, 34)
ROUNDS = 4


@numba.njit(cache=True)
def _printed_sweep(unary: Any, prob: Any, codes: Any, weights: Any, sums: Any) -> None:
    """Eq. 7-8 as printed: for every row and cluster a sum over the classes, all from the last sweep."""
    n, n_components = prob.shape
    n_classes = len(weights)
    score = np.empty(n_components)
    for i in range(n):
        label = codes[i]
        top = -np.inf
        for k in range(n_components):
            total = unary[i, k] - weights[label, label] * prob[i, k]
            for other in range(n_classes):
                total += weights[label, other] * sums[other, k]
            score[k] = total
            top = max(top, total)
        normaliser = 0.0
        for k in range(n_components):
            score[k] = np.exp(score[k] - top)
            normaliser += score[k]
        for k in range(n_components):
            prob[i, k] = score[k] / normaliser
    sums[:] = 0.0
    for i in range(n):
        sums[codes[i]] += prob[i]


@numba.njit(cache=True)
def _naive_sweep(unary: Any, prob: Any, codes: Any, weights: Any) -> None:
    """The mean field over every pair of rows."""
    n = len(prob)
    for i in range(n):
        score = unary[i].copy()
        for j in range(n):
            if j != i:
                score += weights[codes[i], codes[j]] * prob[j]
        score = np.exp(score - score.max())
        prob[i] = score / score.sum()


def _problem(n_samples: int, n_classes: int, n_components: int, dtype: Any = np.float64) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    codes = np.sort(rng.integers(n_classes, size=n_samples))
    rows = class_rows(codes, n_classes)
    unary = empty_table(n_samples, n_components, np.dtype(dtype))
    prob = np.zeros_like(unary)
    unary[:, :n_components] = rng.normal(scale=2.0, size=(n_samples, n_components))
    unary[:, n_components:] = -np.inf
    prob[:, :n_components] = 1.0 / n_components
    beliefs = rng.uniform(-1.0, 1.0, (n_classes, n_classes))
    beliefs = 0.5 * (beliefs + beliefs.T)
    np.fill_diagonal(beliefs, 1.0)
    weights = pair_weights(beliefs, 0.25, rows.sizes, "class")
    return {"unary": unary, "prob": prob, "sums": class_sums(prob, rows), "weights": weights, "rows": rows}


def _per_row(seconds: float, n_samples: int, n_components: int) -> float:
    return 1e9 * seconds / n_samples / n_components


def _sweep_nanoseconds(shape: tuple[int, int, int], dtype: Any, sequential: bool) -> float:
    n_samples, n_classes, n_components = shape
    problem = _problem(n_samples, n_classes, n_components, dtype)
    sweep = partial(class_sweep, **problem, sequential=sequential)
    seconds, _ = best_of(sweep, repeats=ROUNDS, clock=time.thread_time)
    return _per_row(seconds, n_samples, n_components)


def _peer_nanoseconds(shape: tuple[int, int, int], naive: bool) -> float:
    """The printed formula, or the naive one, on rows without padding."""
    n_samples, n_classes, n_components = shape
    problem = _problem(n_samples, n_classes, n_components)
    unary, prob, sums = (
        np.ascontiguousarray(problem[name][:, :n_components]) for name in ("unary", "prob", "sums")
    )
    arguments = (unary, prob, np.repeat(np.arange(n_classes), problem["rows"].sizes), problem["weights"])
    sweep = partial(_naive_sweep, *arguments) if naive else partial(_printed_sweep, *arguments, sums)
    seconds, _ = best_of(sweep, repeats=1 if naive else 2, clock=time.thread_time)
    return _per_row(seconds, n_samples, n_components)


def growth_table() -> Table:
    """Growth along each axis; the printed formula on fewer rows, as its time per row is the same."""
    rows, measured = [], {}
    for shape in SHAPES:
        block = _sweep_nanoseconds(shape, np.float64, False)
        sequential = _sweep_nanoseconds(shape, np.float64, True)
        single = _sweep_nanoseconds(shape, np.float32, False)
        printed = _peer_nanoseconds((min(shape[0], 20_000), *shape[1:]), naive=False)
        aims = ["", ""]
        if shape == TARGET_SHAPE:
            measured = {"class sweep": Measured(block), "class ratio": Measured(printed / block)}
            aims = [f" ({TARGETS[name]})" for name in measured]
        rows.append(
            [
                f"{shape[0]:,}",
                *shape[1:],
                f"{block:.2f}{aims[0]}",
                sequential,
                single,
                printed,
                f"{printed / block:.1f}{aims[1]}",
            ]
        )
    return Table(
        "One sweep, one thread: nanoseconds per row and cluster",
        ["N", "L", "K", "block", "sequential", "block, float32", "O(NKL)", "O(NKL) / block"],
        rows,
        "Processor time.",
        measured,
    )


def pairs_table() -> Table:
    rows = []
    for n_samples in PAIRED_ROWS:
        block = _sweep_nanoseconds((n_samples, 10, 10), np.float64, False)
        naive = _peer_nanoseconds((n_samples, 10, 10), naive=True)
        rows.append([f"{n_samples:,}", block, naive, f"{naive / block:.0f}"])
    return Table(
        "Against every pair of rows, O(N² K), L = K = 10: the same",
        ["N", "block", "all pairs", "ratio"],
        rows,
    )


def threads_table() -> Table:
    n_samples, _, n_components = TARGET_SHAPE
    problem = _problem(*TARGET_SHAPE)
    found = []
    for n_threads in (1, 2):
        workers = Workers(n_threads)
        seconds, _ = best_of(partial(class_sweep, **problem, workers=workers), repeats=ROUNDS)
        found.append(_per_row(seconds, n_samples, n_components))
    return Table(
        f"A second thread, block sweep, (N, L, K) = {TARGET_SHAPE}: the same",
        ["1 thread", "2 threads", "gain"],
        [[*found, found[0] / found[1]]],
        "Wall clock. A sequential sweep shares out unlabelled rows only, and here all have a label.",
    )


def _fit_data(shape: tuple[int, int, int], dtype: str) -> tuple[Any, Any]:
    n_samples, n_features, n_classes = shape
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(n_classes, n_features))
    y = rng.integers(n_classes, size=n_samples)
    return (centres[y] + rng.normal(size=(n_samples, n_features))).astype(dtype), y


def _fit(X: Any, y: Any, max_iter: int) -> CPPC:
    return CPPC(tol=0.0, max_iter=max_iter, random_state=0).fit(X, y)


def _fit_memory(shape: tuple[int, int, int], dtype: str) -> float:
    X, y = _fit_data(shape, dtype)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        _fit(X[:2000], y[:2000], 2)
        return peak_mebibytes(lambda: _fit(X, y, 2))


def iterations_table() -> Table:
    """The long fit less the short one."""
    rows = []
    for dtype in ("float64", "float32"):
        X, y = _fit_data(FIT_SHAPE, dtype)
        short, long = (
            best_of(partial(_fit, X, y, n_iter), repeats=1, clock=time.thread_time)[0] for n_iter in (2, 6)
        )
        rows.append([dtype, 1e3 * (long - short) / 4, in_child(_fit_memory, FIT_SHAPE, dtype)])
    n_samples, n_features, n_classes = FIT_SHAPE
    return Table(
        f"Whole EM iteration of CPPC, N = {n_samples:,}, D = {n_features}, L = K = {n_classes}, one thread",
        ["type", "iteration, ms", "fit, peak MiB"],
        rows,
        "Processor time; memory beyond the data, in a process of its own.",
    )


def run() -> Iterator[Table]:
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield growth_table()
        yield pairs_table()
        yield threads_table()
        yield iterations_table()
