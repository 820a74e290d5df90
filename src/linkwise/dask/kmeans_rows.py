"""Rows of HMRF-KMeans that are read chunk by chunk, and the steps of the descent that need all of them.

The descent is that of memory. A pass of the workers returns sums; labels of free rows follow from the centres
and the metric, so that only those of linked rows, and of rows that found an empty cluster, are kept.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from linkwise._arrays import Floats, Ints
from linkwise._row_tables import origin_between, refuse_narrow, refuse_overflowing
from linkwise.dask.passes import Runner, local_rows
from linkwise.dask.source import first_look, sample_rows
from linkwise.kmeans.assignment import LinkedLabels
from linkwise.kmeans.descent import Descent, Run
from linkwise.kmeans.distortions.base import Distortion, Metric
from linkwise.kmeans.distortions.euclidean import (
    EuclideanRows,
    SquaredEuclidean,
    constant_columns,
    moments_about,
)
from linkwise.kmeans.distortions.metric_steps import BoxBound, PenaltyBound, metric_factor

_DOUBLE = np.dtype(np.float64)


class DaskEuclideanRows:
    """Rows of a table, measured from an origin; a sample and all ``kept`` (linked) rows are held."""

    def __init__(self, runner: Runner, kept: Ints, seed: int) -> None:
        self.runner, self.n_features = runner, runner.table.n_features
        self.rows = sample_rows(runner.table.n_samples, kept, seed)
        look = first_look(runner, self.rows)
        with np.errstate(over="ignore"):
            spread = look.high - look.low
        self.origin = origin_between(look.low, spread)
        self._extremes = look.low - self.origin, look.high - self.origin
        refuse_overflowing(*self._extremes)
        refuse_narrow(spread)
        self.mean = look.total / look.n_rows - self.origin
        self.held = EuclideanRows(
            np.ascontiguousarray(look.taken.astype(np.float64) - self.origin), self.origin
        )
        self.constant = constant_columns(*self._extremes, self.origin)
        self._variance: Floats | None = None

    def __len__(self) -> int:
        return self.runner.table.n_samples

    @property
    def squared_range(self) -> Floats:
        """(max - min)^2 of each feature, (d,)."""
        lowest, highest = self._extremes
        return np.asarray((highest - lowest) ** 2)

    @property
    def variance(self) -> Floats:
        """Variance of each feature, 1 for constant ones, (d,); one pass, done once."""
        if self._variance is None:
            first, second = self.runner.sum(_Moments(_DOUBLE, self.origin, self.mean))
            variance = (second - first**2 / len(self)) / len(self)
            self._variance = np.where(self.constant, 1.0, variance)
        return self._variance

    def places(self, rows: Ints) -> Ints:
        """Places of kept rows among those that are held."""
        return np.searchsorted(self.rows, rows)

    def take(self, rows: Ints) -> EuclideanRows:
        """Some of the kept rows."""
        return self.held.take(self.places(rows))

    def gaps(self, pairs: Ints) -> Floats:
        """Differences of pairs of kept rows, (m, d)."""
        return self.held.differences(self.places(pairs))

    differences = gaps


@dataclass(frozen=True)
class _Moments:
    """Sums (2, d) of rows and of their squares, about the mean."""

    dtype: np.dtype[Any]
    origin: Floats
    mean: Floats

    def __call__(self, block: NDArray[np.floating], chosen: Ints) -> Floats:
        """Sum over rows."""
        return moments_about(_measured(block, self.origin), self.mean)


def _measured(block: NDArray[np.floating], origin: Floats) -> Floats:
    return np.ascontiguousarray(block - origin if origin.any() else block, dtype=np.float64)


class KnownLabels(NamedTuple):
    """Labels of linked rows (c,) and of ``moved`` rows; those of others follow from the centres."""

    rows: Ints
    values: Ints
    moved: dict[int, int]
    mark: int
    centres: Floats
    metric: Metric

    def at(self, rows: Ints) -> Ints:
        """Labels of linked rows."""
        return self.values[np.searchsorted(self.rows, rows)]

    def given(self) -> tuple[Ints, Ints]:
        """Rows, ascending, whose labels do not follow from the centres, and these labels."""
        moved = np.array(list(self.moved.items()), dtype=np.int64).reshape(-1, 2)
        rows = np.concatenate([self.rows, moved[:, 0]])
        order = np.argsort(rows)
        return rows[order], np.concatenate([self.values, moved[:, 1]])[order]


class _LinkedLabels:
    """The labels of a pass, by row number, as the descent reads them."""

    def __init__(self, known: KnownLabels) -> None:
        self.known = known

    def __getitem__(self, rows: Ints) -> Ints:
        return self.known.at(rows)


@dataclass(frozen=True)
class _Sums:
    """What a pass returns of some rows; sums of neighbouring groups add."""

    paid: float
    size: float
    counts: Floats
    moments: tuple[Floats, Floats]
    mark: int

    def __add__(self, other: _Sums) -> _Sums:
        return _Sums(
            self.paid + other.paid,
            self.size + other.size,
            self.counts + other.counts,
            (self.moments[0] + other.moments[0], self.moments[1] + other.moments[1]),
            (1_000_003 * self.mark + other.mark) % 2**61,
        )


@dataclass(frozen=True)
class DaskPass:
    """An ``AssignmentPass`` of rows that are elsewhere."""

    labels: Any
    paid: float
    size: float
    counts: Floats
    moments: tuple[Floats, ...]

    def repeats(self, other: DaskPass) -> bool:
        """Whether all rows are where they were."""
        mine, theirs = self.labels.known, other.labels.known
        same = mine.mark == theirs.mark and mine.moved == theirs.moved
        return bool(same and np.array_equal(mine.values, theirs.values))


@dataclass(frozen=True)
class _Assign:
    """Send rows to their clusters, those with a given label (c, 2) to that one, and sum over them."""

    dtype: np.dtype[Any]
    distortion: Distortion
    origin: Floats
    centres: Floats
    metric: Metric

    def assigned(self, block: NDArray[np.floating], chosen: Ints) -> Any:
        """The pass over some rows in memory."""
        given = None
        if chosen.ndim == 2 and len(chosen):
            given = np.full(len(block), -1, dtype=np.int64)
            given[chosen[:, 0]] = chosen[:, 1]
        rows = EuclideanRows(_measured(block, self.origin), self.origin)
        return self.distortion.assign(rows, self.centres, self.metric, given, 1)

    def __call__(self, block: NDArray[np.floating], chosen: Ints) -> Any:
        """Sum over rows."""
        found = self.assigned(block, chosen)
        mark = zlib.crc32(found.labels.tobytes())
        return _Sums(found.paid, found.size, found.counts, found.moments, mark)


@dataclass(frozen=True)
class ClusterLabels(_Assign):
    """Cluster of each row (n,) by centres and metric alone."""

    def __call__(self, block: NDArray[np.floating], chosen: Ints) -> Ints:
        """Label some rows; given labels are filled in afterwards."""
        if len(block) == 0:
            return np.empty(0, dtype=np.int64)
        labels: Ints = self.assigned(block, np.empty(0, dtype=np.int64)).labels
        return labels


class _Costly(NamedTuple):
    """Free rows that pay most, by cluster: cost and row number, and the rows themselves (t, d)."""

    n_rows: int
    label: Ints
    cost: Floats
    row: Ints
    values: Floats
    most: int

    def __add__(self, other: object) -> _Costly:
        assert isinstance(other, _Costly)
        label, cost = np.append(self.label, other.label), np.append(self.cost, other.cost)
        row = np.append(self.row, self.n_rows + other.row)
        values = np.concatenate([self.values, other.values])
        kept = _costliest(label, cost, row, self.most)
        total = self.n_rows + other.n_rows
        return _Costly(total, label[kept], cost[kept], row[kept], values[kept], self.most)


def _costliest(label: Ints, cost: Floats, row: Ints, most: int) -> Ints:
    """Places of the rows of each cluster that pay most, of equals the first, in the order of the rows."""
    order = np.lexsort((row, -cost, label))
    first = np.searchsorted(label[order], label[order], side="left")
    return np.sort(order[np.arange(len(order)) - first < most])


@dataclass(frozen=True)
class _FindCostly(_Assign):
    """Find the free rows that pay most."""

    most: int = 1

    def __call__(self, block: NDArray[np.floating], chosen: Ints) -> _Costly:
        """Look at some rows."""
        found = self.assigned(block, chosen)
        free = np.ones(len(block), dtype=bool)
        if chosen.ndim == 2:
            free[chosen[:, 0]] = False
        rows = np.flatnonzero(free)
        label, cost = found.labels[rows], found.cost[rows]
        kept = _costliest(label, cost, rows, self.most)
        values = _measured(block[rows[kept]], self.origin)
        return _Costly(len(block), label[kept], cost[kept], rows[kept], values, self.most)


class _Farthest(NamedTuple):
    """The row farthest from the mean, and its squared distance; of two the farther, of equals the first."""

    value: float
    gap: Floats

    def __add__(self, other: object) -> _Farthest:
        assert isinstance(other, _Farthest)
        return other if other.value > self.value else self


@dataclass(frozen=True)
class _FindFarthest:
    """Find the row farthest from the mean."""

    dtype: np.dtype[Any]
    origin: Floats
    mean: Floats
    factor: Floats

    def __call__(self, block: NDArray[np.floating], chosen: Ints) -> _Farthest:
        """Look at some rows."""
        gaps = _measured(block, self.origin) - self.mean
        length = ((gaps @ self.factor) ** 2).sum(axis=1)
        row = int(length.argmax())
        return _Farthest(float(length[row]), gaps[row])


class _DaskSphere:
    """The ``SphereBound`` of rows that are elsewhere: one pass for every new matrix."""

    def __init__(self, rows: DaskEuclideanRows) -> None:
        self.rows = rows
        self._last: tuple[bytes, _Farthest] | None = None

    def _farthest(self, metric: Floats) -> _Farthest:
        key = metric.tobytes()
        if self._last is None or self._last[0] != key:
            job = _FindFarthest(_DOUBLE, self.rows.origin, self.rows.mean, metric_factor(metric))
            self._last = (key, self.rows.runner.sum(job))
        return self._last[1]

    def value(self, metric: Floats) -> float:
        """The bound for a matrix (d, d)."""
        return 4.0 * self._farthest(metric).value

    def slope(self, metric: Floats) -> Floats:
        """A subgradient, (d, d)."""
        gap = self._farthest(metric).gap
        return np.asarray(4.0 * np.outer(gap, gap))


class DaskEuclidean(SquaredEuclidean):
    """Squared Euclidean distance of rows that are elsewhere, and of those in memory as ever."""

    def in_memory(self) -> SquaredEuclidean:
        """The same distortion for the workers."""
        return SquaredEuclidean(
            self.metric, self.n_clusters, metric_weight=self.metric_weight, shrinkage=self.shrinkage,
            penalty_bound=self.penalty_bound,
        )  # fmt: skip

    def _bound(self, rows: Any) -> PenaltyBound:
        if self.metric != "full":
            return BoxBound(rows.squared_range)
        if not hasattr(rows, "sphere"):
            rows.sphere = _DaskSphere(rows)
        bound: PenaltyBound = rows.sphere
        return bound


#: What passes of a descent return, by name, for the journal of a checkpoint.
RESULTS = {kind.__name__: kind for kind in (_Sums, _Costly, _Farthest)}


class DaskDescent(Descent):
    """The descent of HMRF-KMeans on ``DaskEuclideanRows``; ``watch`` is told iterations and objectives."""

    watch: Any = None
    _reached = np.nan

    def run(self, *arguments: Any, **options: Any) -> Run:
        """Descend from one start."""
        self._n_passes = 0
        return super().run(*arguments, **options)

    def _objective(self, *arguments: Any) -> float:
        self._reached = super()._objective(*arguments)
        return self._reached

    @property
    def _memory(self) -> SquaredEuclidean:
        """The distortion of rows in memory."""
        assert isinstance(self.distortion, DaskEuclidean)
        return self.distortion.in_memory()

    def _job(self, centres: Floats, metric: Metric) -> _Assign:
        return _Assign(_DOUBLE, self._memory, self.rows.origin, centres, metric)

    def _chosen(self, labels: Ints | None) -> list[Ints] | None:
        """Linked rows in each group of chunks, as places, with their labels."""
        if self.links is None or labels is None:
            return None
        parts = local_rows(self.rows.runner.groups, self.links.rows)
        ends = np.cumsum([len(part) for part in parts])[:-1]
        return [np.column_stack(pair) for pair in zip(parts, np.split(labels, ends), strict=True)]

    def _assign(
        self, centres: Floats, metric: Metric, coupling: Floats, last: Any, rng: np.random.Generator
    ) -> tuple[LinkedLabels | None, Any]:
        """Linked rows together in this process, the others by the workers."""
        if self.watch is not None:
            self.watch(self._n_passes, self._reached)
        self._n_passes += 1
        answer = self._assign_linked(centres, metric, coupling, last, rng)
        values = np.empty(0, dtype=np.int64) if answer is None else answer.labels
        sums: _Sums = self.rows.runner.sum(
            self._job(centres, metric), self._chosen(None if answer is None else values)
        )
        linked = values[:0] if self.links is None else self.links.rows
        known = KnownLabels(linked, values, {}, sums.mark, centres, metric)
        return answer, DaskPass(_LinkedLabels(known), sums.paid, sums.size, sums.counts, sums.moments)

    def _fill_empty(self, found: Any, centres: Floats, metric: Metric, coupling: Floats) -> tuple[Any, int]:
        """Give empty clusters the rows that lower the objective most, as in memory, in one more pass."""
        known: KnownLabels = found.labels.known
        runner, job = self.rows.runner, self._job(centres, metric)
        most = int((found.counts == 0).sum())
        search = _FindCostly(_DOUBLE, job.distortion, job.origin, centres, metric, most)
        costly: _Costly = runner.sum(search, self._chosen(known.values))
        rows = np.concatenate([known.rows, costly.row])
        order = np.argsort(rows)
        rows, labels = rows[order], np.concatenate([known.values, costly.label])[order]
        X = np.concatenate([self.rows.take(known.rows).X, costly.values])[order]
        # The rule of memory, among these rows and with the sizes of the clusters of all rows.
        few = self._among(rows, np.ascontiguousarray(X))
        before = few.distortion.assign(few.rows, centres, metric, labels, 1)
        after, n_moved = few._fill_empty(before._replace(counts=found.counts), centres, metric, coupling)
        if not n_moved:
            return found, 0
        values, moved = known.values.copy(), dict(known.moved)
        for place in np.flatnonzero(after.labels != labels).tolist():
            at = int(np.searchsorted(known.rows, rows[place]))
            if at < len(known.rows) and known.rows[at] == rows[place]:
                values[at] = after.labels[place]
            else:
                moved[int(rows[place])] = int(after.labels[place])
        # Only rows that moved change the sums.
        return DaskPass(
            _LinkedLabels(known._replace(values=values, moved=moved)),
            found.paid + after.paid - before.paid,
            found.size + after.size - before.size,
            found.counts + after.counts - before.counts,
            tuple(
                whole + new - old
                for whole, new, old in zip(found.moments, after.moments, before.moments, strict=True)
            ),
        ), n_moved

    def _among(self, rows: Ints, X: Floats) -> Descent:
        """The descent of memory among a few rows, ascending, all linked ones included."""
        links = self.links
        if links is not None:
            places, pairs = np.searchsorted(rows, links.rows), np.searchsorted(rows, links.pairs)
            links = links._replace(rows=places, pairs=pairs)
        return Descent(self._memory, EuclideanRows(X), links, self.penalty, self.inference)
