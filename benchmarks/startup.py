"""The first call of a process: with the compiled kernels in numba's cache, and without.

Every estimator has a cache folder of its own, empty at first (cold), then filled by the process before
(warm). Importing loads numpy, scipy, scikit-learn and numba; the first fit loads or compiles kernels.
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
start = time.perf_counter()
import numpy as np
from linkwise import Constraints, {estimator}
imported = time.perf_counter()
rng = np.random.default_rng(0)
y = np.repeat([0, 1], 100)
X = rng.normal(size=(200, 3)) + 4.0 * y[:, np.newaxis]
def fit():
    begin = time.perf_counter()
    {call}
    return time.perf_counter() - begin
print(json.dumps([imported - start, fit(), fit()]))
"""
_LINKS = "constraints=Constraints.sample(y, 20, certainty=0.9, random_state=0)"
#: Estimator and its first call.
CALLS = {
    "PPC": f"PPC(2, random_state=0).fit(X, {_LINKS})",
    "CPPC": "CPPC(2, random_state=0).fit(X, y)",
    "MPCKMeans": f"MPCKMeans(2, random_state=0).fit(X, {_LINKS})",
    "ConstrainedSpectralClustering": f"ConstrainedSpectralClustering(2, random_state=0).fit(X, {_LINKS})",
}
TARGET_ESTIMATOR = "PPC"
WARM_RUNS = 3


def _seconds(estimator: str, cache: str) -> list[float]:
    """Import, first fit, second fit."""
    script = _SCRIPT.format(estimator=estimator, call=CALLS[estimator])
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
    measured = {}
    for estimator in CALLS:
        with tempfile.TemporaryDirectory() as cache:
            for state, n_runs in (("cold", 1), ("warm", WARM_RUNS)):
                found, error = attempt(partial(_shortest, estimator, cache, n_runs))
                rows.append([estimator, state, *(found or [error, "", ""])])
                if estimator == TARGET_ESTIMATOR:
                    measured[f"{state} start"] = Measured(found[1] if found else None, reason=error)
    yield Table(
        "A small fit with links in a fresh process: seconds",
        ["", "cache", "import", "first fit", "second fit"],
        rows,
        f"Wall clock; of {WARM_RUNS} warm processes the one with the shortest first fit. The targets count "
        f"the first fit of {TARGET_ESTIMATOR} beyond the import.",
        measured,
    )
