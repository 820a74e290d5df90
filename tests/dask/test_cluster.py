"""Real worker processes, on the loopback address: the same results, also when workers are killed."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import threading
import time
from contextlib import contextmanager, suppress

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from dask.task_spec import Task
from distributed import Client, LocalCluster, Scheduler, Worker
from distributed.utils import get_mp_context

import linkwise
from linkwise.dask import CPPC, PPC, LinkedClustering, passes
from tests.dask.dask_cases import assert_same_fit, blobs, lazy, links_of, quietly
from tests.repeats import LONG

X, Y = blobs(400)
LINKS = links_of(Y, "noisy")
CHUNKS = ((100, 0, 130, 70, 100), (1, 2))
PARAMETERS = {"random_state": 0, "n_init": 1, "max_iter": 5, "tol": 0.0}
#: Seconds that anything may take here before it counts as hanging.
PATIENCE = 90


@pytest.fixture(scope="module")
def client():
    """A cluster whose workers are forked from a process that has everything imported: an import takes 6 s."""
    settings = {
        "distributed.comm.timeouts.connect": PATIENCE,
        "distributed.worker.multiprocessing-method": "forkserver",
        # What Dask looks at all the time, for its dashboard.
        "distributed.worker.profile.enabled": False,
        "distributed.admin.system-monitor.interval": "10s",
    }
    with (
        dask.config.set(settings),
        _preloaded("tests.dask.warm_worker"),
        _closed(
            LocalCluster(
                n_workers=1,
                threads_per_worker=1,
                processes=True,
                host="127.0.0.1",
                dashboard_address=None,
                memory_limit="1GiB",
            )
        ) as cluster,
        Client(cluster, timeout=PATIENCE) as client,
    ):
        yield client


@contextmanager
def _closed(cluster):
    """A cluster that is closed in the end.

    Tests kill its workers. If one is gone before distributed has listed it, distributed looks for it in its
    list when it is removed, and ``close`` raises this KeyError of the address.
    """
    try:
        yield cluster
    finally:
        with suppress(KeyError):
            cluster.close()


@contextmanager
def _preloaded(module):
    get_mp_context().set_forkserver_preload(["distributed", module])
    yield


@pytest.fixture(scope="module")
def in_memory():
    return quietly(lambda: linkwise.PPC(3, **PARAMETERS).fit(X, constraints=LINKS))


@pytest.mark.parametrize("n_workers", [1, 2, 4] if LONG else [1, 2])
def test_results_do_not_depend_on_the_workers(client, in_memory, n_workers):
    client.cluster.scale(n_workers)
    client.wait_for_workers(n_workers, timeout=PATIENCE)
    model = PPC(3, **PARAMETERS, client=client)
    quietly(lambda: model.fit(lazy(X, CHUNKS), constraints=LINKS))
    with dask.config.set(scheduler=client):
        assert_same_fit(model, in_memory)
    end = time.monotonic() + PATIENCE
    while client.futures and time.monotonic() < end:  # they are released in the background
        time.sleep(0.05)
    assert not client.futures


@pytest.mark.parametrize("derived", [False, True])
def test_rows_that_workers_hold_stay_as_long_as_the_model(client, in_memory, derived):
    """The user keeps no name for them: the labels of the model are enough."""
    labels = _labels_of_held_rows(client, derived)
    gc.collect()
    np.testing.assert_array_equal(client.compute(labels).result(timeout=PATIENCE), in_memory.labels_)
    del labels


def _labels_of_held_rows(client, derived):
    held = client.persist(lazy(X, CHUNKS))
    model = PPC(3, **PARAMETERS, client=client)
    quietly(lambda: model.fit(held[:, ::-1][:, ::-1] if derived else held, constraints=LINKS))
    return model.labels_


@pytest.fixture
def deadly(client, monkeypatch):
    """Kills a worker process, by its own id, in some passes of a kind, while it has tasks to do."""
    client.cluster.scale(2)
    client.wait_for_workers(2, timeout=PATIENCE)
    killed, compute = [], passes.Runner.compute

    def kill_later():
        time.sleep(0.05)
        pids = client.run(os.getpid)
        pid = next(pid for pid in pids.values() if pid not in killed)
        killed.append(pid)
        os.kill(pid, signal.SIGKILL)

    def arm(kind, numbers):
        n_passes = 0

        def disturbed(self, name, layer, key):
            nonlocal n_passes
            n_passes += kind in name
            if kind in name and n_passes in numbers:
                # Tasks that are still at work when the worker dies.
                for key_, task in list(layer.items()):
                    if isinstance(key_, tuple) and key_[1] == 0:
                        layer[key_] = Task(key_, _slowly, task.func, *task.args)
                threading.Thread(target=kill_later).start()
            return compute(self, name, layer, key)

        monkeypatch.setattr(passes.Runner, "compute", disturbed)
        return killed

    return arm


def test_workers_killed_during_a_fit_cost_time_only(client, in_memory, deadly):
    killed = deadly("emsums", (3, 9))
    model = PPC(3, **PARAMETERS, client=client)
    quietly(lambda: model.fit(lazy(X, CHUNKS), constraints=LINKS))
    assert len(killed) == 2
    with dask.config.set(scheduler=client):
        assert_same_fit(model, in_memory)


def test_workers_killed_between_reading_and_writing_tables(client, deadly, tmp_path):
    """CPPC: a sweep that is done again finds what it read, and writes the same."""
    beliefs = np.array([[0.5, -0.5, 0.2], [-0.5, 0.3, 0.0], [0.2, 0.0, 0.8]])
    parameters = {"n_components": 3, "beliefs": beliefs, "random_state": 0, "max_iter": 2}
    theirs = quietly(lambda: linkwise.CPPC(**parameters).fit(X, Y))
    killed = deadly("classsweep", (2, 6))
    model = CPPC(**parameters, client=client, scratch=tmp_path)
    quietly(lambda: model.fit(lazy(X, CHUNKS), Y))
    assert len(killed) == 2
    with dask.config.set(scheduler=client):
        assert_same_fit(model, theirs)


def _slowly(function, *arguments):
    time.sleep(0.4)
    return function(*arguments)


def _serve_scheduler(connection):
    async def serve():
        async with Scheduler(host="127.0.0.1", port=0, dashboard=False) as scheduler:
            connection.send(scheduler.address)
            await scheduler.finished()

    asyncio.run(serve())


def _serve_worker(address):
    async def serve():
        async with Worker(address, nthreads=1, host="127.0.0.1", dashboard=False) as worker:
            await worker.finished()

    asyncio.run(serve())


def test_the_scheduler_is_lost_during_a_fit(client, in_memory, monkeypatch, tmp_path):
    """Its process is killed in the middle: one clear line, and the checkpoint is kept, for another one."""
    context, (mine, theirs) = get_mp_context(), get_mp_context().Pipe()
    processes = [context.Process(target=_serve_scheduler, args=(theirs,), daemon=True)]
    processes[0].start()
    try:
        assert mine.poll(PATIENCE)
        address = mine.recv()
        processes.append(context.Process(target=_serve_worker, args=(address,), daemon=True))
        processes[1].start()
        compute, n_passes = passes.Runner.compute, 0

        def disturbed(self, name, layer, key):
            nonlocal n_passes
            n_passes += "emsums" in name
            if n_passes == 9:
                os.kill(processes[0].pid, signal.SIGKILL)
            return compute(self, name, layer, key)

        monkeypatch.setattr(passes.Runner, "compute", disturbed)
        with Client(address, timeout=PATIENCE, set_as_default=False) as other:
            model = PPC(3, **PARAMETERS, client=other, checkpoint=tmp_path)
            with pytest.raises(
                ConnectionError, match=r"connection to the scheduler was lost .*; start the same"
            ):
                quietly(lambda: model.fit(lazy(X, CHUNKS), constraints=LINKS))
            monkeypatch.setattr(passes.Runner, "compute", compute)
            other.close(timeout=1)
    finally:
        for process in processes:
            process.kill()
            process.join(PATIENCE)
    assert [path.name for path in tmp_path.iterdir()] == ["start-0.npz"]
    again = PPC(3, **PARAMETERS, client=client, checkpoint=tmp_path)
    quietly(lambda: again.fit(lazy(X, CHUNKS), constraints=LINKS))
    with dask.config.set(scheduler=client):
        assert_same_fit(again, in_memory)


def test_rows_that_the_user_persisted_are_used_where_they_are(client, in_memory):
    data = client.persist(lazy(X, CHUNKS))
    model = PPC(3, **PARAMETERS, client=client)
    quietly(lambda: model.fit(data, constraints=LINKS))
    np.testing.assert_allclose(model.means_, in_memory.means_, rtol=1e-8)
    with dask.config.set(scheduler=client):
        np.testing.assert_array_equal(model.labels_.compute(), in_memory.labels_)


def test_nothing_is_computed_outside_of_the_client(client, in_memory):
    """Rows that its workers hold cannot be read elsewhere; here Dask is set to compute in this process."""
    frame = client.persist(dd.from_pandas(pd.DataFrame(X), npartitions=3))
    model = PPC(3, **PARAMETERS, client=client)
    quietly(lambda: model.fit(frame.to_dask_array(), constraints=LINKS))
    np.testing.assert_array_equal(model.to_local().labels_, in_memory.labels_)
    assert model.score(frame) == pytest.approx(in_memory.score(X))
    quick = linkwise.PPC(n_init=1, max_iter=5)
    winner = LinkedClustering(3, candidates=[quick], cv=2, random_state=0, client=client)
    quietly(lambda: winner.fit(frame, labels=np.where(np.arange(len(X)) % 8, -1, Y)))
    assert sorted(winner.cluster_names_) == ["0", "1", "2"]
    redefined = CPPC(3, init="paper", random_state=0, max_iter=1, client=client)
    quietly(lambda: redefined.fit(frame, client.persist(dd.from_pandas(pd.Series(Y), npartitions=2))))
    assert redefined.contingency_.sum() == len(X)


def test_an_error_on_a_worker_reaches_the_caller(client):
    spoilt = X.copy()
    spoilt[150, 2] = np.nan
    with pytest.raises(ValueError, match=r"row 150 \(row 50 of chunk 2\), column 2"):
        PPC(3, client=client).fit(lazy(spoilt, CHUNKS))
