"""Asking: seconds until the next question by the number of rows and of answers, and memory."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks._table import Measured, Table
from benchmarks._targets import TARGETS
from benchmarks._timing import in_child, peak_mebibytes
from linkwise.active import ActiveClustering, LabelOracle

#: Rows, with the name of the target.
ROWS = {10_000: "question 1e4", 100_000: "question 1e5", 1_000_000: "question 1e6"}
N_FEATURES, N_CLASSES = 10, 8
N_ANSWERS = 60
#: Numbers of answers up to which long sessions are shown, by the number of rows.
LONG = {10_000: (25, 50, 100, 200, 400, 600, 800, 1000), 100_000: (200, 400), 1_000_000: (200, 400)}
#: Share of wrong answers in long sessions.
WRONG = (0.0, 0.1)


def _data(n_samples: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    y = rng.integers(N_CLASSES, size=n_samples)
    centres = 2.0 * rng.normal(size=(N_CLASSES, N_FEATURES))
    return (centres[y] + rng.normal(size=(n_samples, N_FEATURES))).astype(np.float32), y


def _asked(session: ActiveClustering, person: LabelOracle, n_answers: int) -> list[float]:
    """Processor seconds of each question; those that were ready take none."""
    seconds = []
    for _ in range(n_answers):
        start = time.process_time()
        i, j = session.ask()
        seconds.append(time.process_time() - start)
        session.tell(i, j, person(i, j))
    return seconds


def _timed(function: Any) -> tuple[float, Any]:
    start = time.process_time()
    found = function()
    return time.process_time() - start, found


def _one_size(n_samples: int) -> tuple[float, ...]:
    """First question, slowest and mean later one, labels, quality, and peak MiB beyond the data."""
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Imports and compilation are not what is measured, nor the kernels that the twelfth question loads.
        small, classes = _data(2000)
        _asked(ActiveClustering(small, random_state=0), LabelOracle(classes), 20)
        X, y = _data(n_samples)
        person = LabelOracle(y)
        times: list[float] = []

        def work() -> None:
            session = ActiveClustering(X, random_state=0)
            first = _timed(session.ask)[0]
            later = _asked(session, person, N_ANSWERS)
            labels = _timed(lambda: session.labels_)[0]
            quality = _timed(lambda: session.quality_)[0]
            times.extend([first, max(later[1:]), float(np.mean(later[1:])), labels, quality])

        memory = peak_mebibytes(work)
    return (*times, memory)


def rows_table() -> Table:
    """Growth in the number of rows, each in a process of its own."""
    rows, measured = [], {}
    for n_samples, target in ROWS.items():
        first, slowest, mean, labels, quality, memory = in_child(_one_size, n_samples)
        measured[target] = Measured(slowest)
        rows.append(
            [f"{n_samples:,}", first, f"{slowest:.2f} ({TARGETS[target]})", mean, labels, quality, memory]
        )
    return Table(
        f"The next of {N_ANSWERS} questions, {N_FEATURES} features, {N_CLASSES} classes: seconds",
        ["rows", "first question", "slowest later", "mean later", "all labels, once", "quality", "MiB"],
        rows,
        "Processor time. The first question looks at the landmarks and clusters them. MiB is the peak beyond "
        "the data.",
        measured,
    )


def _long_session(n_samples: int, error_rate: float) -> list[tuple[float, ...]]:
    """For each part of a session its mean and slowest question, one answer with its labels, and clusters."""
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        X, y = _data(n_samples)
        session = ActiveClustering(X, random_state=0)
        person = LabelOracle(y, error_rate=error_rate, random_state=0)
        _asked(session, person, 20)  # the first look, imports and compilation
        rows, done = [], 20
        for n_answers in LONG[n_samples]:
            seconds = _asked(session, person, n_answers - done)
            done = n_answers
            labels = _timed(lambda: session.labels_)[0]
            rows.append((float(np.mean(seconds)), max(seconds), labels, float(session.n_clusters_)))
    return rows


def answers_table() -> Table:
    """Growth in the number of answers, each session in a process of its own."""
    rows, measured = [], {}
    for n_samples, numbers in LONG.items():
        for error_rate in WRONG if n_samples == min(LONG) else WRONG[:1]:
            slowest = 0.0
            for n_answers, (mean, slow, labels, n_clusters) in zip(
                numbers, in_child(_long_session, n_samples, error_rate), strict=True
            ):
                slowest = max(slowest, slow)
                target = f"{ROWS[n_samples]}, {n_answers} answers"
                limit = f" ({TARGETS[target]})" if target in TARGETS else ""
                if limit:
                    earlier = measured[target].value if target in measured else None
                    measured[target] = Measured(max(slowest, earlier or 0.0))
                rows.append(
                    [f"{n_samples:,}", f"{error_rate:.0%}", n_answers, mean, slow, f"{slowest:.2f}{limit}",
                     labels, int(n_clusters)]
                )  # fmt: skip
    return Table(
        "The next question by the number of answers: seconds",
        ["rows", "wrong", "answers", "mean since the row above", "slowest since", "slowest so far", "labels",
         "clusters found"],
        rows,
        "Processor time, without the first 20 questions. Several questions are chosen at once the more "
        "answers there are. Targets are for the slower of right and 10 % wrong answers. When more than 800 "
        "rows are in answers, new landmarks are drawn, which takes as long as the first question.",
        measured,
    )  # fmt: skip


def run() -> Iterator[Table]:
    """Tables of this section."""
    yield rows_table()
    yield answers_table()
