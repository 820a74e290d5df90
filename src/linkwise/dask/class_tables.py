"""The tables of CPPC on disk: probabilities of all rows, read and written by the workers.

There is one array for every class in every group of chunks, so that a sweep reads and writes the rows of one
class at a time, as in memory. Every sweep writes arrays of a new version and leaves the ones it read: a task
that is done again, because its worker was killed, finds what it needs and writes the same.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
import weakref
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import count, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from dask.task_spec import DataNode, List, Task, TaskRef
from numpy.typing import NDArray

from linkwise._arrays import Floats, Ints
from linkwise._threads import Workers
from linkwise.dask.checkpoint import Journal, digest
from linkwise.dask.passes import local_rows
from linkwise.dask.source import DaskRows
from linkwise.mixture.classes.e_step import ClassRows as Order
from linkwise.mixture.classes.e_step import Sweep, class_sums, empty_table, update_rows
from linkwise.mixture.classes.tables import (
    ClassSample,
    FittedRows,
    class_statistics,
    disturbed,
    fitted_rows,
    scored,
    start_table,
)
from linkwise.mixture.em import MixtureParameters
from linkwise.mixture.gaussian.data import Points, points_of
from linkwise.mixture.gaussian.gaussians import Gaussians, Statistics
from linkwise.mixture.gaussian.shrinkage import CovariancePrior, prior_of_moments


class Scratch:
    """A folder of arrays, which this process and all workers see.

    It is removed with the last reference to it in the process that made it; one with a ``name``, that of a
    checkpoint, only after ``expire``. Workers have copies that remove nothing.
    """

    def __init__(self, folder: str | os.PathLike[str] | None, name: str | None = None) -> None:
        if folder is not None:
            Path(folder).mkdir(parents=True, exist_ok=True)
        if folder is not None and name is not None:
            self.path = (Path(folder) / name).resolve()
            self.path.mkdir(exist_ok=True)
            return
        self.path = Path(tempfile.mkdtemp(prefix="linkwise-", dir=folder)).resolve()
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)

    def expire(self) -> None:
        """Make a folder with a name one of those without: the next fit may have the name."""
        self.path = self.path.rename(self.path.with_name(f"linkwise-{uuid.uuid4().hex}"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.path = state["path"]

    def __dask_tokenize__(self) -> str:
        return str(self.path)

    def save(self, name: str, array: NDArray[Any]) -> None:
        """Store an array at once: a worker that is killed leaves what was there.

        Nobody reads it after the machine went down, so it need not be forced to the disk as in ``_files``.
        """
        draft = self.path / f"{name}.{uuid.uuid4().hex}.draft"
        try:
            with draft.open("wb") as file:
                np.save(file, array)
            os.replace(draft, self.path / f"{name}.npy")
        except FileNotFoundError:
            raise self._not_shared() from None
        except OSError as error:
            draft.unlink(missing_ok=True)
            message = f"{error.strerror}; CPPC(scratch=...) may name another folder"
            raise OSError(error.errno, message, str(draft)) from None

    def load(self, name: str) -> NDArray[Any]:
        """Read an array."""
        try:
            return np.asarray(np.load(self.path / f"{name}.npy", allow_pickle=False))
        except FileNotFoundError:
            raise self._not_shared() from None

    def remove(self, names: Iterable[str]) -> None:
        """Remove arrays, if they are there."""
        for name in names:
            (self.path / f"{name}.npy").unlink(missing_ok=True)

    def _not_shared(self) -> FileNotFoundError:
        return FileNotFoundError(
            f"{self.path} is gone, or a worker does not see it; pass CPPC(scratch=...), a folder that all "
            "workers share"
        )


@dataclass(frozen=True)
class _Files:
    """The arrays of one run: class order of each group, scores and probabilities of each class in it."""

    orders: Scratch
    tables: Scratch

    def order(self, group: int) -> Order:
        """Rows of a group, class by class."""
        stored = self.orders.load(f"order-{group}")
        n_starts = int(stored[0])
        return Order(stored[1 + n_starts :], stored[1 : 1 + n_starts])

    def spans(self, group: int) -> list[tuple[int, int]]:
        """Places of each class in the tables of a group, unlabelled rows last."""
        order = self.order(group)
        return list(pairwise([*order.starts.tolist(), len(order.order)]))

    def save(self, kind: str, group: int, version: int, table: NDArray[np.floating]) -> None:
        """Store the table (n, K) of a group, class by class."""
        for label, (start, stop) in enumerate(self.spans(group)):
            if stop > start:
                self.tables.save(_name(kind, group, label, version), table[start:stop])

    def load(self, kind: str, group: int, version: int) -> NDArray[np.floating]:
        """The table of a group."""
        return np.concatenate(
            [
                self.tables.load(_name(kind, group, label, version))
                for label, (start, stop) in enumerate(self.spans(group))
                if stop > start
            ]
        )


def _name(kind: str, group: int, label: int, version: int) -> str:
    return f"{kind}-{group}-{label}-{version}"


class Kept(NamedTuple):
    """Probabilities of all rows at some time: their version on disk, and their class sums (L, K)."""

    files: _Files
    version: int
    sums: Floats


# What workers do. ``chosen`` of a job is the number of the group, and what else it needs of it.


@dataclass(frozen=True)
class _GroupJob:
    """Do something with the rows of a group and its number."""

    dtype: np.dtype[Any]
    offset: Floats
    work: Callable[[Points, int], Any]

    def __call__(self, block: NDArray[np.floating], chosen: Ints) -> Any:
        """Do it."""
        return self.work(points_of(block, self.offset), int(chosen[0]))


def _score(files: _Files, parameters: MixtureParameters, version: int, points: Points, group: int) -> float:
    """Store the scores of the rows; return the sum of the largest of each row."""
    unary = empty_table(points.n_samples, len(parameters.log_weights), points.dtype)
    top = scored(points, files.order(group).order, parameters, unary)
    files.save("score", group, version, unary)
    if version:
        labels = range(len(files.spans(group)))
        files.tables.remove(_name("score", group, label, version - 1) for label in labels)
    return top


def _moments(files: _Files, version: int, about: Floats, kind: str, points: Points, group: int) -> Statistics:
    """Sum rows by their probabilities."""
    prob = files.load("prob", group, version)[:, : len(about)]
    return class_statistics(points, files.order(group).order, prob, about, kind)


@dataclass(frozen=True)
class RowResults:
    """Labels (n,) and probabilities (n, K) of the rows of a group, as they were kept."""

    kept: Kept
    n_components: int

    def probabilities(self, group: int) -> NDArray[np.floating]:
        """Probabilities in the order of the rows."""
        prob = self.kept.files.load("prob", group, self.kept.version)[:, : self.n_components]
        found = np.empty_like(prob)
        found[self.kept.files.order(group).order] = prob
        return found

    def codes(self, group: int) -> Ints:
        """Class of each row, -1 for none."""
        order = self.kept.files.order(group)
        found = np.full(len(order.order), -1, dtype=np.int64)
        for label, (start, stop) in enumerate(pairwise(order.starts.tolist())):
            found[order.order[start:stop]] = label
        return found


def _measure(
    results: RowResults, gaussians: Gaussians, log_weights: Floats, n_classes: int, points: Points, group: int
) -> FittedRows:
    """Measure the rows of a fit."""
    codes, prob = results.codes(group), results.probabilities(group)
    return fitted_rows(points, codes, prob, gaussians, log_weights, n_classes)


@dataclass(frozen=True)
class _SweepJob:
    """Update the rows of one class after another."""

    files: _Files
    weights: Floats
    sequential: bool
    scores: int
    before: int
    after: int
    obsolete: tuple[int, ...]


class _Part(NamedTuple):
    """What the rows of one class in one group give: sum (K,) of probabilities, and the pull after them."""

    energy: float
    squares: float
    change: float
    total: Floats
    pull: Floats


class _State(NamedTuple):
    """A sweep after some classes: class sums (L, K), energies and changes."""

    sums: Floats
    energy: float
    pair_term: float
    change: float


def _update_class(
    job: _SweepJob, state: _State | None, label: int, group: int, previous: _Part | None
) -> _Part:
    """Update the rows of a class in a group; in sequential sweeps the pull comes from the group before."""
    unary = job.files.tables.load(_name("score", group, label, job.scores))
    prob = job.files.tables.load(_name("prob", group, label, job.before))
    labelled = state is not None
    pull, own = np.zeros(prob.shape[1]), 0.0
    if state is not None:
        pull, own = job.weights[label] @ state.sums, float(job.weights[label, label])
    in_turn = job.sequential and labelled
    if in_turn and previous is not None:
        pull = previous.pull.copy()
    total = np.zeros_like(pull)
    energy, squares, change = update_rows(unary, prob, 0, len(prob), pull, own, in_turn, total)
    job.files.tables.save(_name("prob", group, label, job.after), prob)
    job.files.tables.remove(_name("prob", group, label, version) for version in job.obsolete)
    return _Part(energy, squares, change, total, pull)


def _close_class(job: _SweepJob, state: _State, label: int, parts: list[_Part]) -> _State:
    """The state after all rows of a class, of which some group has one; unlabelled rows have no sums."""
    sums, pair_term = state.sums, state.pair_term
    if label < len(sums):
        sums = sums.copy()
        sums[label] = np.sum([part.total for part in parts], axis=0)
        pair_term -= float(job.weights[label, label]) * sum(part.squares for part in parts)
    energy = state.energy + float(np.sum([part.energy for part in parts]))
    return _State(sums, energy, pair_term, max([state.change, *(part.change for part in parts)]))


def _disturb(
    files: _Files, before: int, after: int, obsolete: tuple[int, ...], factors: Floats, group: int
) -> Floats:
    """Store disturbed probabilities of a group; return their class sums."""
    prob = files.load("prob", group, before)
    for (start, stop), factor in zip(files.spans(group), factors, strict=True):
        disturbed(prob[start:stop], factor)
    return _stored_sums(files, group, after, obsolete, prob)


def _begin(files: _Files, n_components: int, dtype: Any, group: int, rows: Ints, start: Ints) -> Floats:
    """Store the first probabilities of a group, of which some rows have clusters; return their class sums."""
    order = files.order(group)
    clusters = np.full(len(order.order), -1, dtype=np.int64)
    clusters[rows] = start
    return _stored_sums(files, group, 0, (), start_table(clusters[order.order], n_components, dtype))


def _stored_sums(
    files: _Files, group: int, version: int, obsolete: tuple[int, ...], prob: NDArray[np.floating]
) -> Floats:
    files.save("prob", group, version, prob)
    for label in range(len(files.spans(group))):
        files.tables.remove(_name("prob", group, label, old) for old in obsolete)
    return class_sums(prob, files.order(group))


class LabelledDaskRows:
    """The ``ClassSource`` of CPPC whose rows are those of a Dask collection.

    ``orders``: class order of each group; ``counts`` (G, L + 1): rows of each class in it; ``codes`` (s,):
    classes of ``source.sample()``. With an ``identity`` of the fit ``scratch`` is the folder of a checkpoint.
    """

    def __init__(
        self,
        source: DaskRows,
        orders: Scratch,
        counts: Ints,
        codes: Ints,
        scratch: Any,
        identity: Mapping[str, str] | None,
    ) -> None:
        self.source, self.orders, self.counts = source, orders, counts
        self.n_samples, self.n_features = source.n_samples, source.n_features
        self._scratch, self._identity, self._numbers = scratch, identity, count()
        self._runs: list[tuple[Scratch, Journal]] = []
        self.sizes = counts[:, :-1].sum(axis=0)
        among = np.bincount(codes[codes >= 0], minlength=len(self.sizes))
        self.sample = ClassSample(source.sample().X, codes, among)

    def prior(self, n_rows: float, reg_covar: float) -> CovariancePrior | None:
        """The prior of covariances; one pass."""
        if n_rows <= 0.0:
            return None
        return prior_of_moments(self.source.column_moments(), self.n_samples, n_rows, reg_covar)

    def tables(self, start: Ints, n_components: int, workers: Workers) -> TablesOnDisk:
        """Tables of all rows."""
        return TablesOnDisk(self, start, n_components)

    def new_run(self) -> tuple[Scratch, Journal | None]:
        """The folder for the tables of one more run, and with a checkpoint what it returned before."""
        if self._identity is None:
            return Scratch(self._scratch), None
        tables = Scratch(self._scratch, f"run-{next(self._numbers)}")
        self._runs.append((tables, Journal(tables.path, self._identity, _RESULTS)))
        return self._runs[-1]

    def finish(self) -> None:
        """The fit is done: what a checkpoint has goes, tables with the last that reads them."""
        for tables, journal in self._runs:
            journal.remove()
            tables.expire()
        if self._identity is not None:
            self.orders.expire()

    def over_rows(self, work: Callable[[Points, int], Any]) -> Any:
        """Sum of what the work returns for the rows and the number of every group; one pass."""
        runner = self.source.runner
        numbers = [np.array([number]) for number in range(len(runner.groups))]
        return runner.sum(_GroupJob(self.source.dtype, self.source.offset, work), numbers)

    def measure(self, kept: Kept, gaussians: Gaussians, log_weights: Floats) -> FittedRows:
        """Measure the rows of a fit; one pass."""
        results = RowResults(kept, len(log_weights))
        found: FittedRows = self.over_rows(
            partial(_measure, results, gaussians, log_weights, len(self.sizes))
        )
        return found


#: What the steps of a run return, by name.
_RESULTS = {kind.__name__: kind for kind in (_State, Statistics)}


class TablesOnDisk:
    """The ``ClassTables`` of one run. ``start`` (s,) are clusters of the rows of the sample, -1 for none."""

    def __init__(self, rows: LabelledDaskRows, start: Ints, n_components: int) -> None:
        self.rows, self.n_components, self.sizes = rows, n_components, rows.sizes
        self.runner, self.n_samples, self.offset = rows.source.runner, rows.n_samples, rows.source.offset
        tables, self._journal = rows.new_run()
        self.files = _Files(rows.orders, tables)
        self._version, self._scores, self._newest = 0, -1, 0
        self._held: int | None = None
        self._obsolete: list[int] = []
        held = rows.source.sample().rows
        places = np.arange(rows.n_samples) if held is None else held
        parts = local_rows(self.runner.groups, places)
        clusters = np.split(start, np.cumsum([len(part) for part in parts])[:-1])
        dtype = rows.source.dtype

        def begin(key: Any, group: int) -> Task:
            return Task(key, _begin, self.files, n_components, dtype, group, parts[group], clusters[group])

        sums = self._step(lambda: self._over_groups("classbegin", begin), "begin", start, n_components)
        # Rows outside the sample have no cluster yet; those of the sample stand for them.
        self.sums = sums * (rows.sizes / np.maximum(rows.sample.sizes, 1))[:, np.newaxis]

    def score(self, parameters: MixtureParameters) -> float:
        """One pass over the data."""
        self._scores += 1
        work = partial(_score, self.files, parameters, self._scores)
        return float(self._step(lambda: self.rows.over_rows(work), "score", parameters, self._scores))

    def statistics(self, about: Floats, covariance_type: str) -> Statistics:
        """One pass over the data."""
        asked = (self._version, about, covariance_type)
        work = partial(_moments, self.files, *asked)
        found: Statistics = self._step(lambda: self.rows.over_rows(work), "moments", asked)
        return found

    def counts(self) -> Floats:
        """Sums of the probabilities."""
        about = np.tile(self.offset, (self.n_components, 1))
        return self.statistics(about, "spherical").counts

    def sweep(self, weights: Floats, sequential: bool) -> Sweep:
        """One graph: the classes in turn, the groups of a class side by side or in turn."""
        before, after, obsolete = self._next()
        job = _SweepJob(self.files, weights, sequential, self._scores, before, after, obsolete)
        name, key = self.runner.new_name("classsweep"), ""
        layer: dict[Any, Any] = {f"{name}-job": DataNode(f"{name}-job", job)}
        closed = f"{name}-state"
        layer[closed] = DataNode(closed, _State(self.sums, 0.0, 0.0, 0.0))
        for label in range(len(self.sizes) + 1):
            labelled = label < len(self.sizes)
            parts: list[Any] = []
            for group in np.flatnonzero(self.rows.counts[:, label]).tolist():
                key_of_part = (name, label, group)
                previous = TaskRef(parts[-1]) if sequential and labelled and parts else None
                layer[key_of_part] = Task(
                    key_of_part, _update_class, TaskRef(f"{name}-job"), TaskRef(closed) if labelled else None,
                    label, group, previous,
                )  # fmt: skip
                parts.append(key_of_part)
            if not parts:
                continue
            key = f"{name}-closed-{label}"
            layer[key] = Task(
                key, _close_class, TaskRef(f"{name}-job"), TaskRef(closed), label, List(*map(TaskRef, parts))
            )
            closed = key
        state: _State = self._step(
            lambda: self.runner.compute(name, layer, key), "sweep", weights, sequential, before, after
        )
        self.sums = state.sums
        pair_term = state.pair_term + float((state.sums * (weights @ state.sums)).sum())
        return Sweep(state.energy + 0.5 * pair_term, state.change)

    def disturb(self, factors: Floats) -> None:
        """Multiply by factors of the classes."""
        before, after, obsolete = self._next()

        def disturb(key: Any, group: int) -> Task:
            return Task(key, _disturb, self.files, before, after, obsolete, factors, group)

        self.sums = self._step(
            lambda: self._over_groups("classdisturb", disturb), "disturb", factors, before, after
        )

    def kept(self) -> Kept:
        """The version of now, which is not removed until another one is kept."""
        if self._held is not None and self._held != self._version:
            self._obsolete.append(self._held)
        self._held = self._version
        return self.result()

    def restore(self, kept: Kept) -> None:
        """Go back to the version that is kept."""
        if self._version != kept.version:
            self._obsolete.append(self._version)
        self._version, self.sums = kept.version, kept.sums.copy()

    def result(self) -> Kept:
        """The version of now."""
        return Kept(self.files, self._version, self.sums.copy())

    def _next(self) -> tuple[int, int, tuple[int, ...]]:
        """The version to read, the one to write, and those that nothing needs any more."""
        before, obsolete = self._version, tuple(self._obsolete)
        self._newest += 1
        self._version = self._newest
        # Only the next step may remove what this one reads: tasks of it may be done again.
        self._obsolete = [] if before == self._held else [before]
        return before, self._version, obsolete

    def _step(self, work: Callable[[], Any], *asked: Any) -> Any:
        """Do a step; with a checkpoint what it returned before an interruption, whose tables are there."""
        return work() if self._journal is None else self._journal.answer(digest(*asked), work)

    def _over_groups(self, kind: str, task: Any) -> Any:
        """Sum of what a task returns for every group; none reads the data."""
        name = self.runner.new_name(kind)
        keys = [(name, 0, group) for group in range(len(self.runner.groups))]
        layer = {key: task(key, group) for group, key in enumerate(keys)}
        return self.runner.compute(name, *self.runner.summed(name, layer, keys))
