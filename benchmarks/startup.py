"""The first call of a process: with the compiled kernels in numba's cache, and without.

Every estimator has a cache folder of its own, empty at first (cold), then filled by the process before
(warm). The process imports linkwise and fits PPC with links, then fits the estimator: its own first fit is
what it costs beyond PPC. Processor time, as compiling uses one core.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from typing import Any

from benchmarks._table import Measured, Table
from benchmarks._timing import attempt

_SCRIPT = """
import json, time
start = time.process_time()
import numpy as np
import linkwise
from linkwise import Constraints, PPC
imported = time.process_time()
rng = np.random.default_rng(0)
y = np.repeat([0, 1], 100)
X = rng.normal(size=(200, 3)) + 4.0 * y[:, np.newaxis]
links = Constraints.sample(y, 20, certainty=0.9, random_state=0)
hard = Constraints.sample(y, 20, random_state=0)
def fit(call):
    begin = time.process_time()
    call()
    return time.process_time() - begin
first = fit(lambda: PPC(2, random_state=0).fit(X, constraints=links))
print(json.dumps([imported - start, first, fit(lambda: {call})]))
"""
_WITH_LINKS = "linkwise.{0}(2, random_state=0).fit(X, constraints=links)"
#: Estimator and the call that is timed after a first fit of PPC.
CALLS = {
    "PPC": _WITH_LINKS.format("PPC"),
    "CPPC": "linkwise.CPPC(2, random_state=0).fit(X, y)",
    **{
        name: _WITH_LINKS.format(name).replace("links)", "hard)")
        for name in ("ConstrainedEM", "COPKMeans")
    },
    **{
        name: _WITH_LINKS.format(name)
        for name in (
            "HMRFKMeans", "PCKMeans", "MPCKMeans",
            "ConstrainedSpectralClustering", "SpectralLearning",
        )
    },
}  # fmt: skip
WARM_RUNS = 3


def _seconds(estimator: str, cache: str) -> list[float]:
    """Import, first fit of PPC, first fit of the estimator after it."""
    script = _SCRIPT.format(call=CALLS[estimator])
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script],
        env={**os.environ, "NUMBA_CACHE_DIR": cache},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    return json.loads(done.stdout)


def _shortest(estimator: str, cache: str, n_runs: int) -> list[float]:
    """Of some fresh processes, the times of that with the shortest first fit."""
    return min((_seconds(estimator, cache) for _ in range(n_runs)), key=lambda seconds: seconds[1])


def run() -> Iterator[Table]:
    rows: list[list[Any]] = []
    measured: dict[str, Measured] = {}
    further: list[float] = []
    for estimator in CALLS:
        with tempfile.TemporaryDirectory() as cache:
            for state, n_runs in (("cold", 1), ("warm", WARM_RUNS)):
                found, error = attempt(partial(_shortest, estimator, cache, n_runs))
                rows.append([estimator, state, *(found or [error, "", ""])])
                if estimator == "PPC":
                    measured[f"{state} start"] = Measured(found[1] if found else None, reason=error)
                elif state == "cold":
                    further.append(found[2] if found else float("nan"))
    measured["further start"] = Measured(max(further))
    yield Table(
        "A small fit in a fresh process: seconds of processor time",
        ["", "cache", "import", "first fit of PPC with links", "then this estimator"],
        rows,
        f"Of {WARM_RUNS} warm processes the one with the shortest first fit. For PPC itself the last column "
        "is a second fit.",
        measured,
    )
