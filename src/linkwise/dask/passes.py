"""One pass over a table: a task for each group of chunks, and a tree that adds up what they return.

A pass is one graph, made anew from that of the data, so that graphs do not grow over iterations.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import CancelledError
from functools import reduce
from operator import add
from typing import Any, NamedTuple, Protocol

import dask
import dask.array as da
import numpy as np
from dask.delayed import Delayed
from dask.highlevelgraph import HighLevelGraph
from dask.task_spec import DataNode, List, Task, TaskRef
from numpy.typing import NDArray

from linkwise._arrays import Ints
from linkwise.dask.collections import Table

#: Numbers that a task should read at least; smaller neighbouring chunks are read by one task. A task costs
#: about a millisecond, and a million numbers take some 10 ms.
_FEWEST_NUMBERS = 1 << 20
#: Results that one task adds up.
_FAN_IN = 8


class Job(Protocol):
    """What is done with rows: it is sent to the workers, and its results add."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type that rows are read as."""

    def __call__(self, block: NDArray[np.floating], chosen: Ints) -> Any:
        """Work on some rows; ``chosen`` are places among them that mean something to the job."""


class Group(NamedTuple):
    """Neighbouring chunks, without empty ones, that one task reads: rows ``start`` to ``stop`` - 1."""

    chunks: tuple[int, ...]
    start: int
    stop: int


def groups_of(table: Table) -> list[Group]:
    """Put small neighbouring chunks together; empty chunks are in no group."""
    starts, groups, chunks = table.chunk_starts, list[Group](), list[int]()
    fewest = max(_FEWEST_NUMBERS // max(table.n_features, 1), 1)
    first = 0
    for chunk, size in enumerate(table.array.chunks[0]):
        if size == 0:
            continue
        if not chunks:
            first = int(starts[chunk])
        chunks.append(chunk)
        if starts[chunk + 1] - first >= fewest:
            groups.append(Group(tuple(chunks), first, int(starts[chunk + 1])))
            chunks = []
    if chunks:
        groups.append(Group(tuple(chunks), first, int(starts[chunks[-1] + 1])))
    return groups


def local_rows(groups: Sequence[Group], rows: Ints) -> list[Ints]:
    """The rows (r,), ascending, that lie in each group, as places in it."""
    bounds = np.searchsorted(rows, [(group.start, group.stop) for group in groups]).reshape(-1, 2)
    return [rows[low:high] - group.start for group, (low, high) in zip(groups, bounds, strict=True)]


class Runner:
    """Computes passes over one table, on the given client, or as Dask is set up."""

    def __init__(self, table: Table, client: Any = None) -> None:
        self.table = table
        self.groups = groups_of(table)
        self.client = client
        self._reading = _tasks_of_chunks(table)

    @staticmethod
    def new_name(kind: str) -> str:
        """A name that no other pass has: what an earlier one returned must not be taken for this one's."""
        return f"linkwise-{kind.lower()}-{uuid.uuid4().hex}"

    def sum(self, job: Job, chosen: list[Ints] | None = None) -> Any:
        """Sum of what the job returns for every group, added in the order of the rows."""
        name, source = self.new_name(type(job).__name__), self.table.array.name
        layer: dict[Any, Any] = {f"{name}-job": DataNode(f"{name}-job", job)}
        level: list[Any] = []
        nothing = np.empty(0, dtype=np.int64)
        for number, group in enumerate(self.groups):
            blocks = List(*(TaskRef((source, chunk, 0)) for chunk in group.chunks))
            rows = nothing if chosen is None else chosen[number]
            key = (name, 0, number)
            work = Task(key, _work, TaskRef(f"{name}-job"), blocks, rows)
            # One task reads and sums: what was read is gone at once, and no worker reads ahead.
            layer[key] = Task.fuse(*(task for chunk in group.chunks for task in self._reading[chunk]), work)
            level.append(key)
        return self.compute(name, *self.summed(name, layer, level))

    def summed(self, name: str, layer: dict[Any, Any], level: list[Any]) -> tuple[dict[Any, Any], Any]:
        """A layer with a tree that adds up the tasks of these keys, and the key of the sum."""
        height = 0
        while len(level) > 1:
            height += 1
            parts = [level[first : first + _FAN_IN] for first in range(0, len(level), _FAN_IN)]
            level = [(name, height, number) for number in range(len(parts))]
            for key, part in zip(level, parts, strict=True):
                layer[key] = Task(key, _total, List(*map(TaskRef, part)))
        return layer, level[0]

    def compute(self, name: str, layer: dict[Any, Any], key: Any) -> Any:
        """Compute one task of a layer on top of the data."""
        graph = HighLevelGraph.from_collections(name, layer, dependencies=[self.table.array])
        result = Delayed(key, graph, layer=name)
        try:
            if self.client is None:
                return dask.compute(result)[0]
            return self.client.compute(result).result()
        except CancelledError as error:
            reason = getattr(error, "reason", "")
            what = "the connection to the scheduler was lost"
            if "scheduler" not in reason:
                what = f"Dask gave up on its tasks ({reason or 'no reason was given'})"
            raise ConnectionError(
                f"{what} in the middle of a fit; start the same fit again when there is a scheduler: with a "
                "checkpoint it goes on from the last iteration"
            ) from None


def _tasks_of_chunks(table: Table) -> list[list[Task]]:
    """The tasks that make each chunk and nothing else; data that workers hold already have none."""
    graph = {key: node for key, node in table.array.dask.items() if isinstance(node, Task)}
    n_uses = Counter(name for node in graph.values() for name in node.dependencies)
    found: list[list[Task]] = []
    for chunk in range(len(table.array.chunks[0])):
        waiting, tasks = [(table.array.name, chunk, 0)], list[Task]()
        while waiting:
            node = graph.get(waiting.pop())
            if node is not None:
                tasks.append(node)
                waiting += [name for name in node.dependencies if n_uses[name] == 1]
        found.append(tasks)
    return found


def _work(job: Job, blocks: list[NDArray[Any]], chosen: Ints) -> Any:
    """Do a job on the rows of a group."""
    arrays = [np.asarray(block, dtype=job.dtype) for block in blocks]
    return job(arrays[0] if len(arrays) == 1 else np.concatenate(arrays), chosen)


def _total(parts: list[Any]) -> Any:
    return reduce(add, parts)


def lazy_rows(
    table: Table, job: Job, rows: Ints, values: NDArray[Any], *, dtype: Any, n_columns: int | None = None
) -> da.Array:
    """A lazy array of what the job returns for every row; some rows (r,), ascending, have given values."""
    name = Runner.new_name(type(job).__name__)
    layer: dict[Any, Any] = {f"{name}-job": DataNode(f"{name}-job", job)}
    starts = table.chunk_starts
    bounds = np.searchsorted(rows, starts)
    for chunk in range(len(starts) - 1):
        part = slice(bounds[chunk], bounds[chunk + 1])
        key: tuple[Any, ...] = (name, chunk) if n_columns is None else (name, chunk, 0)
        block = TaskRef((table.array.name, chunk, 0))
        layer[key] = Task(key, _fill, TaskRef(f"{name}-job"), block, rows[part] - starts[chunk], values[part])
    graph = HighLevelGraph.from_collections(name, layer, dependencies=[table.array])
    chunks = (table.array.chunks[0],) if n_columns is None else (table.array.chunks[0], (n_columns,))
    return da.Array(graph, name, chunks, dtype=dtype)


def _fill(job: Job, block: NDArray[Any], rows: Ints, values: NDArray[Any]) -> Any:
    """Results for the rows of a chunk, with given values in some of them."""
    found = job(np.asarray(block, dtype=job.dtype), rows)
    found[rows] = values
    return found
