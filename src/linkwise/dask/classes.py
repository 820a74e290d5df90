"""CPPC fitted to rows, and classes of them, that are read chunk by chunk."""

from __future__ import annotations

import copy
import zlib
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import dask.array as da
import numpy as np
from dask.highlevelgraph import HighLevelGraph
from dask.task_spec import DataNode, Task, TaskRef
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets

from linkwise._arrays import Floats, Ints
from linkwise._validation import as_vector, label_codes, refuse_links_as_labels
from linkwise.dask.checkpoint import digest, fit_identity
from linkwise.dask.class_tables import LabelledDaskRows, RowResults, Scratch
from linkwise.dask.collections import Table, known_sizes, read_table
from linkwise.dask.estimator import extended
from linkwise.dask.mixture import DaskPrediction
from linkwise.dask.passes import Group, Runner, local_rows
from linkwise.dask.source import SAMPLE_ROWS, DaskRows
from linkwise.mixture import cppc
from linkwise.mixture.classes.decisions import THRESHOLD
from linkwise.mixture.classes.e_step import class_rows
from linkwise.mixture.classes.report import ClassReport
from linkwise.mixture.cppc import _check_beliefs

#: Rows of each class that starts see at least, if it has them.
_OF_A_CLASS = 1000


@extended
class CPPC(DaskPrediction, cppc.CPPC, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """:class:`linkwise.CPPC` for data beyond memory: the same model, fitted chunk by chunk.

    The E-step needs the probabilities that rows had before. They are kept on disk, in a folder that all
    workers see: three tables of rows x clusters numbers, in the type of X. In an EM iteration all rows are
    read twice, and at most five sweeps read and write the tables. A sweep visits the classes in turn, as in
    memory, so that workers wait for each other after every class. Where sweeps are sequential (``sweep``),
    the chunks of a class are visited in turn, too, and workers do not work side by side.

    Parameters
    ----------
    n_components, n_clusters, beliefs, confidence, criterion_weight, normalize, sweep, covariance_type :
        As in :class:`linkwise.CPPC`, and so are all further parameters.
    client : distributed.Client, optional
        As in :class:`linkwise.dask.PPC`.
    scratch : path, optional
        Where to make a folder for the tables; by default where the system has temporary files. It must be
        the same place for this process and all workers. The folder is removed with the estimator and its
        lazy results, or when this process ends.
    checkpoint : path, optional
        Instead of ``scratch``, a folder in which the tables of all ``n_init`` starts stay until the fit is
        done, and what each step returned. A fit that was interrupted goes on from there, as in
        :class:`linkwise.dask.PPC`.

    Attributes
    ----------
    labels_ : dask.array.Array, (n_samples,) int64
        Lazy clusters of the training rows, read from the tables.
    responsibilities_ : dask.array.Array, (n_samples, K)
        Lazy probabilities of the training rows.
    weights_, means_, covariances_, classes_, contingency_, criteria_ :
        These and all further attributes are those of :class:`linkwise.CPPC`. Up to 131,072 rows they have the
        same values; of more rows, starts and ``evidence_`` come from a sample.

    Examples
    --------
    >>> import dask.array as da
    >>> from linkwise.dask import CPPC
    >>> X = da.random.default_rng(0).normal(size=(600, 2), chunks=(200, 2))
    >>> y = da.arange(600, chunks=200) % 3 // 2
    >>> model = CPPC(random_state=0).fit(X + 9 * y[:, None], y)
    >>> model.contingency_.tolist()
    [[400, 0], [0, 200]]
    >>> model.labels_
    dask.array<linkwise-classlabels, shape=(600,), dtype=int64, chunksize=(200,), chunktype=numpy.ndarray>
    """

    local_class = cppc.CPPC
    more = ("client", "scratch", "checkpoint")
    scratch: Any
    checkpoint: Any

    def fit(self, X: Any, y: Any) -> Self:
        """Find clusters in a Dask collection (n_samples, n_features) whose rows have classes.

        Parameters
        ----------
        X : dask.array.Array, dask.dataframe.DataFrame, xarray.DataArray, zarr.Array or path
            A path is that of a folder of Parquet files, or of a Zarr array.
        y : (n_samples,) dask.array.Array, dask.dataframe.Series or array_like
            The present classes; -1, NaN or None where unlabelled.

        Returns
        -------
        self
        """
        self.fit_predict(X, y)
        return self

    def fit_predict(self, X: Any, y: Any) -> Any:
        """Find clusters as :meth:`fit` does, and return ``labels_`` of the training rows, lazy."""
        table, _ = read_table(X, None, self.client)
        self._check_table(table)
        criterion_weight = self._check_parameters(table.n_samples)
        runner = Runner(table, self.client)
        of_classes = Runner(_class_table(y, table, self.client), self.client)
        of_classes.groups = runner.groups
        classes = _find_classes(of_classes)
        # A copy, so that starts draw the same numbers as in memory.
        seed = int(copy.deepcopy(check_random_state(self.random_state)).randint(2**31))
        place = self._place()
        orders = Scratch(place, None if self.checkpoint is None else "orders")
        job = _SortClasses(of_classes.table.array.dtype, orders, classes, seed)
        sorted_rows: _Sorted = of_classes.sum(
            job, [np.array([number, group.start]) for number, group in enumerate(runner.groups)]
        )
        kept = sorted_rows.rows if table.n_samples > SAMPLE_ROWS else np.empty(0, dtype=np.int64)
        source = DaskRows(runner, kept, self.reg_covar, seed)
        held = source.sample().rows
        rows = np.arange(table.n_samples) if held is None else held
        taken: _Taken = of_classes.sum(_TakeCodes(job.dtype, classes), local_rows(runner.groups, rows))
        identity = None if self.checkpoint is None else self._identity(source, classes, sorted_rows)
        labelled = LabelledDaskRows(source, orders, sorted_rows.counts, taken.codes, place, identity)
        self._fit_classes(labelled, classes, criterion_weight)
        labelled.finish()
        return self.labels_

    def _place(self) -> Any:
        """Where tables are kept."""
        if self.scratch is not None and self.checkpoint is not None:
            raise ValueError(
                "scratch and checkpoint are both given, but tables are in one of them; leave scratch out"
            )
        return self.scratch if self.checkpoint is None else self.checkpoint

    def _identity(self, source: DaskRows, classes: NDArray[Any], found: _Sorted) -> dict[str, str]:
        """What must be the same for a fit to go on from a checkpoint."""
        parameters = {name: value for name, value in self.get_params(deep=False).items() if name != "beliefs"}
        beliefs = _check_beliefs(self.beliefs, classes)
        bounds = [(group.start, group.stop) for group in source.runner.groups]
        return {
            **fit_identity(parameters, source.n_samples, source.n_features, None),
            "chunks of X": digest(bounds),
            "beliefs": digest(beliefs),
            "classes": digest([str(name) for name in classes.tolist()], found.counts, found.mark),
            "values of X": digest(source.identity, source.dtype.name),
        }

    def _store_rows(self, source: Any, prob: Any) -> Any:
        """Store lazy labels and probabilities, and count the rows of each cluster."""
        assert isinstance(source, LabelledDaskRows)
        own: Any = self
        results = RowResults(prob, len(self.means_))
        table, groups = source.source.runner.table, source.source.runner.groups
        own.labels_ = _lazy(table, groups, results, "classlabels", np.dtype(np.int64))
        own.responsibilities_ = _lazy(
            table, groups, results, "classprobabilities", source.source.dtype, len(self.means_)
        )
        found = source.measure(prob, self._gaussians, np.log(self.weights_))
        self._counted = (found.contingency.sum(axis=0), found.own)
        return found

    def to_local(self, *, labels: bool = True) -> Any:
        """Return the estimator of ``linkwise`` with these results; see :class:`linkwise.dask.PPC`."""
        local = super().to_local(labels=labels)
        if hasattr(self, "_counted"):
            local._counted = self._counted
        return local

    def report(self, X: Any = None, y: Any = None, *, threshold: float = THRESHOLD) -> ClassReport:
        """Report which classes were split, merged and kept, as in memory; flips need all rows in memory."""
        if X is not None or y is not None:
            raise ValueError(
                "flips and mislabelled rows are found in memory only; leave X and y out, or fit "
                "linkwise.CPPC to a sample"
            )
        return ClassReport.from_estimator(self, threshold=threshold)


def _class_table(y: Any, table: Table, client: Any) -> Table:
    """Classes (n, 1) in the chunks of the data."""
    if y is None:
        raise ValueError(
            "CPPC requires y to be passed, but the target y is None: pass the present class of each row"
        )
    refuse_links_as_labels(y)
    sizes = table.array.chunks[0]
    if hasattr(y, "to_dask_array"):
        y = y.to_dask_array()
    if not isinstance(y, da.Array):
        return Table(_in_chunks(_checked(as_vector(y, "y"), table.n_samples), sizes), None)
    if y.ndim != 1:
        raise ValueError(f"y has {y.ndim} dimensions; pass one class for each row")
    y = _checked(known_sizes(y, client), table.n_samples)
    if y.chunks[0] != sizes:
        y = y.rechunk((tuple(size for size in sizes if size),))
        name = f"linkwise-classes-{y.name}"
        blocks: dict[Any, Any] = {}
        full = iter(range(y.numblocks[0]))
        for place, size in enumerate(sizes):
            key = (name, place)
            nothing = DataNode(key, np.empty(0, dtype=y.dtype))
            blocks[key] = Task(key, np.asarray, TaskRef((y.name, next(full)))) if size else nothing
        graph = HighLevelGraph.from_collections(name, blocks, dependencies=[y])
        y = da.Array(graph, name, (sizes,), dtype=y.dtype)
    return Table(y[:, np.newaxis], None)


def _checked(y: Any, n_samples: int) -> Any:
    """Refuse classes of other rows."""
    if y.shape[0] != n_samples:
        raise ValueError(f"y has {y.shape[0]} labels, but X has {n_samples} rows; pass one label per row")
    return y


def _in_chunks(values: NDArray[Any], sizes: tuple[int, ...]) -> da.Array:
    """A Dask array (n, 1) of values in memory; chunks may be empty."""
    name, parts = Runner.new_name("classes"), np.split(values, np.cumsum(sizes)[:-1])
    layer = {(name, place, 0): DataNode((name, place, 0), part[:, None]) for place, part in enumerate(parts)}
    return da.Array(layer, name, (sizes, (1,)), dtype=values.dtype)


def _find_classes(runner: Runner) -> NDArray[Any]:
    """The sorted classes (L,); one pass over y."""
    found: _Classes = runner.sum(_FindClasses(runner.table.array.dtype))
    if not len(found.values):
        raise ValueError("y has no labelled row (all are -1, NaN or None); label some, or use PPC")
    if found.values.dtype.kind == "f":
        check_classification_targets(found.values)
    return found.values


class _Classes(NamedTuple):
    """Sorted classes of some rows."""

    values: NDArray[Any]

    def __add__(self, other: object) -> _Classes:
        assert isinstance(other, _Classes)
        if not len(self.values) or not len(other.values):
            return self if len(self.values) else other
        return _Classes(label_codes(np.concatenate([self.values, other.values]))[1])


@dataclass(frozen=True)
class _FindClasses:
    """Find the classes of rows."""

    dtype: np.dtype[Any]

    def __call__(self, block: NDArray[Any], chosen: Ints) -> _Classes:
        """Look at some classes (n, 1)."""
        return _Classes(label_codes(block[:, 0])[1])


def _codes(values: NDArray[Any], classes: NDArray[Any]) -> Ints:
    """Number of each class among all sorted ones, -1 where unlabelled."""
    codes, own = label_codes(values)
    # The place of each own class among all: they come in the same order.
    place = {value: number for number, value in enumerate(classes.tolist())}
    numbers = np.array([*(place[value] for value in own.tolist()), -1], dtype=np.int64)
    return numbers[codes]


class _Sorted(NamedTuple):
    """Rows (G, L + 1) of each class in each group, unlabelled ones last, and some rows of each class."""

    counts: Ints
    drawn: Floats
    codes: Ints
    rows: Ints
    mark: int
    """Tells the classes of all rows from others."""

    def __add__(self, other: object) -> _Sorted:
        assert isinstance(other, _Sorted)
        return _fewest(
            np.concatenate([self.counts, other.counts]), np.concatenate([self.drawn, other.drawn]),
            np.concatenate([self.codes, other.codes]), np.concatenate([self.rows, other.rows]),
            self.mark + other.mark,
        )  # fmt: skip


def _fewest(counts: Ints, drawn: Floats, codes: Ints, rows: Ints, mark: int) -> _Sorted:
    """Keep the rows of each class with the smallest numbers drawn, in the order of the rows."""
    order = np.lexsort((drawn, codes))
    rank = np.arange(len(order)) - np.searchsorted(codes[order], codes[order])
    kept = np.sort(order[rank < _OF_A_CLASS])
    return _Sorted(counts, drawn[kept], codes[kept], rows[kept], mark)


@dataclass(frozen=True)
class _SortClasses:
    """Store the class order of each group, count its classes, and draw some rows of each class."""

    dtype: np.dtype[Any]
    orders: Scratch
    classes: NDArray[Any]
    seed: int

    def __call__(self, block: NDArray[Any], chosen: Ints) -> _Sorted:
        """Sort the rows of a group; ``chosen`` are its number and its first row."""
        group, first = chosen.tolist()
        codes, n_classes = _codes(block[:, 0], self.classes), len(self.classes)
        rows = class_rows(codes, n_classes)
        stored = np.concatenate([[len(rows.starts)], rows.starts, rows.order])
        self.orders.save(f"order-{group}", stored)
        labelled = np.flatnonzero(codes >= 0)
        counts = np.append(rows.sizes, len(codes) - len(labelled))[np.newaxis]
        drawn = np.random.default_rng([self.seed, first]).random(len(labelled))
        mark = (group + 1) * zlib.crc32(codes.tobytes())
        return _fewest(counts, drawn, codes[labelled], first + labelled, mark)


class _Taken(NamedTuple):
    """Classes of chosen rows."""

    codes: Ints

    def __add__(self, other: object) -> _Taken:
        assert isinstance(other, _Taken)
        return _Taken(np.concatenate([self.codes, other.codes]))


@dataclass(frozen=True)
class _TakeCodes:
    """Take the classes of chosen rows."""

    dtype: np.dtype[Any]
    classes: NDArray[Any]

    def __call__(self, block: NDArray[Any], chosen: Ints) -> _Taken:
        """Take some classes of a group."""
        return _Taken(_codes(block[:, 0], self.classes)[chosen])


def _lazy(
    table: Table,
    groups: list[Group],
    results: RowResults,
    kind: str,
    dtype: Any,
    n_columns: int | None = None,
) -> da.Array:
    """Labels, or probabilities if there are columns, in the chunks of the data, read from the tables."""
    name, starts = Runner.new_name(kind), table.chunk_starts
    group_of = {chunk: number for number, group in enumerate(groups) for chunk in group.chunks}
    layer: dict[Any, Any] = {f"{name}-results": DataNode(f"{name}-results", results)}
    for chunk, size in enumerate(table.array.chunks[0]):
        key: tuple[Any, ...] = (name, chunk) if n_columns is None else (name, chunk, 0)
        if not size:
            layer[key] = DataNode(key, np.empty((0,) if n_columns is None else (0, n_columns), dtype=dtype))
            continue
        number = group_of[chunk]
        first = int(starts[chunk]) - groups[number].start
        layer[key] = Task(
            key, _read_results, TaskRef(f"{name}-results"), number, first, int(size), n_columns is None
        )
    chunks = (table.array.chunks[0],) if n_columns is None else (table.array.chunks[0], (n_columns,))
    return da.Array(layer, name, chunks, dtype=dtype)


def _read_results(results: RowResults, group: int, first: int, size: int, as_labels: bool) -> Any:
    """Labels or probabilities of the rows of a chunk, which may be a part of a group."""
    prob = results.probabilities(group)[first : first + size]
    return prob.argmax(axis=1).astype(np.int64) if as_labels else prob
