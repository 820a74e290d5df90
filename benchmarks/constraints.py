"""Building and checking links: the costs every user pays first. Nothing here uses a second thread."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from benchmarks._table import Table
from benchmarks._timing import best_of, in_child, peak_mebibytes
from linkwise import Constraints

GROWTH = (10_000, 100_000, 1_000_000)


def _cases(n: int) -> dict[str, Callable[[], Any]]:
    rng = np.random.default_rng(0)
    pairs = rng.integers(0, n, size=(n, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    y = rng.integers(0, 10, size=n)
    chain = np.column_stack([np.arange(n - 1), np.arange(1, n)])
    star = np.column_stack([np.zeros(n - 1, dtype=np.int64), np.arange(1, n)])
    links = Constraints(n, pairs, weight=1.0)
    half = rng.permutation(n)[: n // 2]
    side = round(n**0.5)
    return {
        "build, N random soft pairs": partial(Constraints, n, pairs, weight=1.0),
        "build, hard must-link chain": partial(Constraints, n, chain),
        "build, hard must-link star": partial(Constraints, n, star),
        "components, N random pairs": links.components,
        "components, chain": Constraints(n, chain).components,
        "from_labels, 10 classes": partial(Constraints.from_labels, y),
        "sample N overlapping pairs": partial(
            Constraints.sample, y, n, overlap=True, certainty=0.9, random_state=0
        ),
        "from_grid, a square of N": partial(Constraints.from_grid, (side, side), weight=1.0),
        "links[half of the rows]": partial(links.__getitem__, half),
        "violations": partial(links.violations, y),
    }


def _memory(n: int) -> dict[str, float]:
    for case in _cases(1000).values():
        case()
    return {name: peak_mebibytes(case) for name, case in _cases(n).items()}


def run() -> Iterator[Table]:
    rows: dict[str, list[Any]] = {name: [name] for name in _cases(1000)}
    for n in GROWTH:
        for name, case in _cases(n).items():
            seconds, _ = best_of(case, clock=time.thread_time)
            rows[name].append(1e3 * seconds)
    for name, memory in in_child(_memory, GROWTH[-1]).items():
        rows[name].append(memory)
    yield Table(
        "Links among N points: milliseconds",
        ["work", *[f"N = {n:,}" for n in GROWTH], f"N = {GROWTH[-1]:,}, peak MiB"],
        list(rows.values()),
        "Processor time; memory beyond the arguments, result included, in a process of its own.",
    )
