"""Beyond memory: EM iterations of PPC with Dask, on two worker processes of 1 GiB each.

Ten columns of float32, K = 10 full covariances, 100,000 soft links; rows in an uncompressed Zarr array on
disk, in chunks of a million. An iteration reads all rows once. Processor time is that of the workers, the
scheduler and this process together.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.mixture import GaussianMixture
from threadpoolctl import threadpool_limits

from benchmarks._table import Measured, Table
from benchmarks._timing import attempt, in_child
from linkwise import Constraints
from linkwise.mixture.em import MixtureParameters
from linkwise.mixture.gaussian.gaussians import Gaussians, precision_factors
from linkwise.mixture.gaussian.source import RowsInMemory
from linkwise.mixture.links.em_step import LinkedStep
from linkwise.mixture.links.rows import select_linked_rows

#: Rows; fewer for a trial run: LINKWISE_SCALE=1000000.
LARGEST = int(float(os.environ.get("LINKWISE_SCALE", "1e8")))
GROWTH = [n for n in (10**6, 10**7, 10**8) if n <= LARGEST]
N_FEATURES, N_COMPONENTS, N_LINKS, CHUNK = 10, 10, 100_000, 10**6
WORKER_MEMORY = "1GiB"


def _centres() -> Any:
    return 4.0 * np.random.default_rng(0).normal(size=(N_COMPONENTS, N_FEATURES))


def _block(number: int, n_rows: int) -> tuple[Any, Any]:
    """Rows of one chunk and their classes."""
    rng = np.random.default_rng(number + 1)
    y = rng.integers(N_COMPONENTS, size=n_rows)
    X = rng.standard_normal((n_rows, N_FEATURES), dtype=np.float32)
    return X + _centres().astype(np.float32)[y], y


def _write(path: Path, n_rows: int) -> None:
    import zarr

    array = zarr.create_array(
        store=path, shape=(n_rows, N_FEATURES), chunks=(CHUNK, N_FEATURES), dtype="f4", compressors=None
    )
    for number in range(n_rows // CHUNK):
        array[number * CHUNK : (number + 1) * CHUNK] = _block(number, CHUNK)[0]


def _links(n_rows: int) -> Constraints:
    """Soft links among rows of the first chunk and rows far away, whose classes are made anew."""
    rng = np.random.default_rng(0)
    last = n_rows // CHUNK - 1
    (_, first), (_, second) = _block(0, CHUNK), _block(last, CHUNK)
    i = rng.integers(CHUNK, size=N_LINKS)
    j = rng.integers(CHUNK, size=N_LINKS)
    same = first[i] == second[j]
    pairs = np.column_stack([i, j + last * CHUNK])
    kept = pairs[:, 0] != pairs[:, 1]
    pairs, same = pairs[kept], same[kept]
    return Constraints(n_rows, pairs[same], pairs[~same], certainty=0.9)


def _start(coupling: Any) -> MixtureParameters:
    covariances = np.tile(np.eye(N_FEATURES), (N_COMPONENTS, 1, 1))
    gaussians = Gaussians(_centres() + 0.3, precision_factors(covariances, "full"), "full")
    return MixtureParameters(np.full(N_COMPONENTS, -np.log(N_COMPONENTS)), gaussians, covariances, coupling)


def _worker_peak() -> float:
    """Most resident memory of a worker, MiB."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024.0


@contextmanager
def _cluster() -> Iterator[Any]:
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None,
            memory_limit=WORKER_MEMORY,
        ) as cluster,
        Client(cluster) as client,
    ):  # fmt: skip
        yield client


class _Fit:
    """A fit of rows on disk that goes on by one iteration when called; ``n_rows`` is their number."""

    def __init__(self, path: str, n_rows: int, client: Any, persist: bool = False) -> None:
        import dask.array as da
        import zarr

        from linkwise.dask.collections import read_table
        from linkwise.dask.passes import Runner
        from linkwise.dask.source import DaskRows

        links = _links(n_rows)
        source: Any
        if client is None:
            source = RowsInMemory(np.asarray(zarr.open_array(path, mode="r")[:]), 1e-6)
        else:
            X = da.from_zarr(path)
            if persist:
                from distributed import wait

                X = client.persist(X)
                wait(X)
            runner = Runner(read_table(X, None, client)[0], client)
            source = DaskRows(runner, np.unique(links.pairs), 1e-6, 0)
        linked = select_linked_rows(links, np.arange(N_COMPONENTS))
        self.client = client
        self._step = LinkedStep(source, linked, "full", 1e-6, "auto", "exact", None, 0)
        self._parameters = _start(linked.coupling)

    def __call__(self) -> tuple[float, float]:
        """Processor seconds, those of workers included, and wall seconds of an iteration."""
        cpu, wall = self._spent(), time.perf_counter()
        self._parameters, _ = self._step(self._parameters)
        wall = time.perf_counter() - wall
        return self._spent() - cpu, wall

    def _spent(self) -> float:
        workers = [] if self.client is None else self.client.run(time.process_time).values()
        return time.process_time() + sum(workers)


def _side_by_side(path: str, n_rows: int, n_iter: int) -> list[float]:
    """Processor seconds of the best iteration in memory, and with Dask, held and read.

    They take turns, since the machine is faster at one time than at another.
    """
    with threadpool_limits(1), warnings.catch_warnings(), _cluster() as client:
        warnings.simplefilter("ignore")
        fits = [
            _Fit(path, n_rows, None),
            _Fit(path, n_rows, client, persist=True),
            _Fit(path, n_rows, client),
        ]
        turns = [[fit()[0] for fit in fits] for _ in range(n_iter + 1)]
    return np.min(turns[1:], axis=0).tolist()


def _from_disk(path: str, n_rows: int, n_iter: int) -> dict[str, float]:
    """Processor and wall seconds of the best iteration, and the memory of the larger worker."""
    with threadpool_limits(1), warnings.catch_warnings(), _cluster() as client:
        warnings.simplefilter("ignore")
        fit = _Fit(path, n_rows, client)
        turns = [fit() for _ in range(n_iter + 1)]
        cpu, wall = np.min(turns[1:], axis=0).tolist()
        return {"cpu": cpu, "wall": wall, "peak": max(client.run(_worker_peak).values())}


def _scikit_learn(path: str, n_rows: int) -> float:
    """Wall seconds of an iteration of GaussianMixture in float32."""
    import zarr

    data = np.asarray(zarr.open_array(path, mode="r")[:n_rows])
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = GaussianMixture(
            N_COMPONENTS, means_init=_centres(), weights_init=np.full(N_COMPONENTS, 0.1),
            precisions_init=np.tile(np.eye(N_FEATURES), (N_COMPONENTS, 1, 1)), max_iter=2, tol=0.0,
        )  # fmt: skip
        start = time.perf_counter()
        model.fit(data)
        # Two iterations and the last E-step, which is half of one.
        return (time.perf_counter() - start) / 2.5


#: The KMeans of dask-ml, which knows no links and no covariances, run by a Python of its own.
_DASK_ML = """
import sys, time
import dask.array as da, numpy as np
from dask_ml.cluster import KMeans
from distributed import Client, LocalCluster

if __name__ == "__main__":
    path, n_rows, memory = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    centres = np.array(eval(sys.argv[4]), dtype=np.float32)
    with LocalCluster(n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None,
                      memory_limit=memory) as cluster, Client(cluster):
        X = da.from_zarr(path)[:n_rows]
        start = time.perf_counter()
        KMeans(len(centres), init=centres, max_iter=3, tol=0.0).fit(X)
        print((time.perf_counter() - start) / 3)
"""


def _dask_ml(path: str, n_rows: int) -> Any:
    """Wall seconds of an iteration of dask-ml's KMeans; LINKWISE_DASK_ML names a Python that has dask-ml."""
    python = os.environ.get("LINKWISE_DASK_ML")
    if python is None:
        return "not measured: LINKWISE_DASK_ML is not set"
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "dask_ml_kmeans.py"
        script.write_text(_DASK_ML)
        centres = repr(_centres().tolist())
        plain = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        ended = subprocess.run(
            [python, str(script), path, str(n_rows), WORKER_MEMORY, centres],
            capture_output=True, text=True, env={**plain, "OMP_NUM_THREADS": "1"}, check=False,
        )  # fmt: skip
    if ended.returncode:
        return "failed: " + (ended.stderr.strip().splitlines() or ["no message"])[-1]
    return float(ended.stdout.split()[-1])


def run() -> Iterator[Table]:
    with tempfile.TemporaryDirectory() as folder:
        paths = {n: str(Path(folder) / f"{n}.zarr") for n in GROWTH}
        for n, path in paths.items():
            _write(Path(path), n)
        yield _overhead(paths)
        yield _growth(paths)


def _overhead(paths: dict[int, str]) -> Table:
    n = 10**7 if 10**7 in paths else GROWTH[-1]
    seconds = in_child(_side_by_side, paths[n], n, 6)
    names = ["in memory", "Dask, rows held by the workers", "Dask, rows read from disk"]
    rows = [[name, one, one / seconds[0]] for name, one in zip(names, seconds, strict=True)]
    return Table(
        f"An EM iteration at {n:,} rows: processor seconds",
        ["where", "seconds", "times memory"],
        rows,
        "The best of six iterations each, in turn. The time in memory is without reading.",
        {"dask iteration": Measured(seconds[1] / seconds[0])},
    )


def _growth(paths: dict[int, str]) -> Table:
    rows: list[list[Any]] = []
    per_row: list[float] = []
    for n, path in paths.items():
        found = in_child(_from_disk, path, n, 3 if n < 10**8 else 2)
        per_row.append(1e9 * found["wall"] / n)
        peers: list[Any] = []
        peers.append(_seconds(_scikit_learn, path, n) if n <= 10**6 else "")
        peers.append(_dask_ml(path, n) if n <= 10**7 else "")
        rows.append([f"{n:,}", found["wall"], per_row[-1], 1e9 * found["cpu"] / n, found["peak"], *peers])
    return Table(
        "Growth: an iteration of PPC with links, rows on disk, two workers of 1 GiB",
        [
            "rows", "seconds", "ns a row", "processor ns a row", "peak MiB of a worker",
            "scikit-learn GaussianMixture, s", "dask-ml KMeans, s",
        ],
        rows,
        "At a million rows, which are one chunk, most of the time is that of the 200,000 linked rows. "
        "scikit-learn has one thread, all rows in memory and no links; it was run where it takes seconds. "
        "dask-ml's KMeans has no links and no covariances; it is run by a Python of its own.",
        {"dask growth": Measured(per_row[-1] / per_row[0])},
    )  # fmt: skip


def _seconds(peer: Callable[[str, int], float], path: str, n: int) -> Any:
    value, error = attempt(lambda: in_child(peer, path, n))
    return error or value
