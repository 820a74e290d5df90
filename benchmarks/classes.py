"""The class-level E-step of CPPC: growth in N and L, beside the printed O(NKL) and the naive O(N^2 K)."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from benchmarks._timing import print_table
from linkwise.mixture.class_pull import class_rows, class_sums, class_sweep, empty_table, pair_weights
from linkwise.mixture.cppc import CPPC

#: DESIGN.md: nanoseconds per row and cluster of a block sweep at (N, L, K) = (1e6, 100, 34), and the least
#: gain over O(NKL).
TARGET_NANOSECONDS = 4.5
TARGET_RATIO = 5.0
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


def _seconds(function: Callable[[], Any], rounds: int = ROUNDS) -> float:
    """Processor time of this thread, the shortest of some rounds after a warm-up."""
    function()
    best = np.inf
    for _ in range(rounds):
        start = time.thread_time()
        function()
        best = min(best, time.thread_time() - start)
    return float(best)


def _sweep_nanoseconds(
    n_samples: int, n_classes: int, n_components: int, dtype: Any, sequential: bool
) -> float:
    problem = _problem(n_samples, n_classes, n_components, dtype)
    seconds = _seconds(lambda: class_sweep(**problem, sequential=sequential))
    return 1e9 * seconds / n_samples / n_components


def _printed_nanoseconds(n_samples: int, n_classes: int, n_components: int) -> float:
    problem = _problem(n_samples, n_classes, n_components)
    unary, prob = (np.ascontiguousarray(problem[name][:, :n_components]) for name in ("unary", "prob"))
    sums = np.ascontiguousarray(problem["sums"][:, :n_components])
    codes = np.repeat(np.arange(n_classes), problem["rows"].sizes)
    seconds = _seconds(lambda: _printed_sweep(unary, prob, codes, problem["weights"], sums), rounds=2)
    return 1e9 * seconds / n_samples / n_components


def _naive_nanoseconds(n_samples: int, n_classes: int, n_components: int) -> float:
    problem = _problem(n_samples, n_classes, n_components)
    unary, prob = (np.ascontiguousarray(problem[name][:, :n_components]) for name in ("unary", "prob"))
    codes = np.repeat(np.arange(n_classes), problem["rows"].sizes)
    seconds = _seconds(lambda: _naive_sweep(unary, prob, codes, problem["weights"]), rounds=1)
    return 1e9 * seconds / n_samples / n_components


def _growth() -> list[list[Any]]:
    """Growth along each axis; the printed formula on fewer rows, as its time per row is the same."""
    rows = []
    for n_samples, n_classes, n_components in (
        (10_000, 100, 34),
        (100_000, 100, 34),
        (1_000_000, 100, 34),
        (1_000_000, 10, 34),
        (1_000_000, 1000, 34),
        (1_000_000, 100, 10),
    ):
        block, sequential, single = (
            _sweep_nanoseconds(n_samples, n_classes, n_components, dtype, in_turn)
            for dtype, in_turn in ((np.float64, False), (np.float64, True), (np.float32, False))
        )
        printed = _printed_nanoseconds(min(n_samples, 20_000), n_classes, n_components)
        target = (n_samples, n_classes, n_components) == (1_000_000, 100, 34)
        rows.append(
            [
                f"{n_samples:,}",
                n_classes,
                n_components,
                f"{block:.2f}" + (f" (<= {TARGET_NANOSECONDS:g})" if target else ""),
                f"{sequential:.2f}",
                f"{single:.2f}",
                f"{printed:.1f}",
                f"{printed / block:.1f}" + (f" (>= {TARGET_RATIO:g})" if target else ""),
            ]
        )
    return rows


def _against_all_pairs() -> list[list[Any]]:
    rows = []
    for n_samples in (1000, 2000, 4000):
        block = _sweep_nanoseconds(n_samples, 10, 10, np.float64, False)
        naive = _naive_nanoseconds(n_samples, 10, 10)
        rows.append([f"{n_samples:,}", f"{block:.2f}", f"{naive:.0f}", f"{naive / block:.0f}"])
    return rows


def _iterations() -> list[list[Any]]:
    """Share of the class-level E-step in an iteration of CPPC: the long fit less the short one."""
    rng = np.random.default_rng(0)
    n_samples, n_features, n_classes = 100_000, 19, 34
    centres = rng.normal(size=(n_classes, n_features))
    y = rng.integers(n_classes, size=n_samples)
    rows = []
    for dtype in (np.float64, np.float32):
        X = (centres[y] + rng.normal(size=(n_samples, n_features))).astype(dtype)
        seconds = [
            _seconds(lambda X=X, n=n: CPPC(tol=0.0, max_iter=n, random_state=0).fit(X, y), rounds=1)
            for n in (2, 6)
        ]
        rows.append([np.dtype(dtype).name, f"{1e3 * (seconds[1] - seconds[0]) / 4:.0f}"])
    return rows


def run() -> None:
    print("one sweep, one thread; nanoseconds of processor time per row and cluster")
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        print_table(["N", "L", "K", "block", "sequential", "float32", "O(NKL)", "O(NKL) / block"], _growth())
        print("\nL = K = 10, against every pair of rows, O(N^2 K)")
        print_table(["N", "block", "all pairs", "ratio"], _against_all_pairs())
        print("\nwhole EM iteration of CPPC, N = 100,000, D = 19, L = K = 34, full covariances, milliseconds")
        print_table(["type", "iteration"], _iterations())
