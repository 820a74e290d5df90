"""Probabilities of the rows of CPPC in memory, (n, K); ``linkwise.dask`` has such tables on disk."""

from __future__ import annotations

from functools import reduce
from itertools import pairwise
from operator import add
from typing import Any, NamedTuple, Protocol

import numpy as np

from linkwise._arrays import AnyFloats, Floats, Ints
from linkwise._kernels import kernel
from linkwise._threads import Workers, chunk_bounds
from linkwise.mixture.classes.criteria import Likelihoods, mixture_likelihoods
from linkwise.mixture.classes.e_step import (
    ClassRows,
    Sweep,
    class_rows,
    class_sums,
    class_sweep,
    empty_table,
)
from linkwise.mixture.em import MixtureParameters
from linkwise.mixture.gaussian.data import Points
from linkwise.mixture.gaussian.gaussians import Gaussians, Statistics
from linkwise.mixture.gaussian.passes import log_density_pass, statistics_pass
from linkwise.mixture.gaussian.shrinkage import CovariancePrior, covariance_prior

#: Rows whose (rows, K) float64 tables are held at once beside the two tables of all rows.
_ROWS_AT_ONCE = 1 << 14


class ClassTables(Protocol):
    """What the EM step of CPPC asks of the rows."""

    n_samples: int
    """Number of rows, unlabelled ones too."""
    n_components: int
    offset: Floats
    """(D,) A point near the middle of the data."""
    sums: Floats
    """(L, K padded) Class sums T of the probabilities."""
    sizes: Ints
    """(L,) Rows of each class."""

    def score(self, parameters: MixtureParameters) -> float:
        """Store log pi + log N of all rows, less the largest of each row; return the sum of those."""

    def sweep(self, weights: Floats, sequential: bool) -> Sweep:
        """Update every row once, see ``class_sweep``."""

    def statistics(self, about: Floats, covariance_type: str) -> Statistics:
        """Sums of all rows about these means, by the probabilities."""

    def counts(self) -> Floats:
        """Sums (K,) of the probabilities."""

    def disturb(self, factors: Floats) -> None:
        """Multiply probabilities by factors (L + 1, K padded) of their class, the last of unlabelled rows."""

    def kept(self) -> Any:
        """The probabilities as they are, to be restored later."""

    def restore(self, kept: Any) -> None:
        """Go back to earlier probabilities."""

    def result(self) -> Any:
        """The probabilities at the end of a run."""


class ClassSample(NamedTuple):
    """Rows (s,) that starts are made from: data for k-means, classes, and rows (L,) of each class."""

    X: AnyFloats
    codes: Ints
    sizes: Ints


class ClassSource(Protocol):
    """What CPPC asks of the data and their classes."""

    n_samples: int
    n_features: int
    sizes: Ints
    """(L,) Rows of each class."""
    sample: ClassSample

    def prior(self, n_rows: float, reg_covar: float) -> CovariancePrior | None:
        """The prior of covariances, see ``covariance_prior``."""

    def tables(self, start: Ints, n_components: int, workers: Workers) -> ClassTables:
        """Tables that start from clusters (s,) of the sample, -1 for none."""


class LabelledRows:
    """All rows and their classes in memory."""

    def __init__(self, points: Points, for_starts: AnyFloats, codes: Ints, n_classes: int) -> None:
        self.points, self.codes = points, codes
        self.n_samples, self.n_features = points.n_samples, points.n_features
        self.rows = class_rows(codes, n_classes)
        self.sizes = self.rows.sizes
        self.sample = ClassSample(for_starts, codes, self.sizes)

    def prior(self, n_rows: float, reg_covar: float) -> CovariancePrior | None:
        """The prior of covariances."""
        return covariance_prior(self.points, n_rows, reg_covar)

    def tables(self, start: Ints, n_components: int, workers: Workers) -> TablesInMemory:
        """Tables of all rows."""
        return TablesInMemory(self.points, self.rows, start, n_components, workers)


class TablesInMemory:
    """Scores and probabilities (n, K) in class order; ``start`` (n,) are first clusters, -1 for none."""

    def __init__(
        self, points: Points, rows: ClassRows, start: Ints, n_components: int, workers: Workers
    ) -> None:
        self.points, self.rows, self.workers = points, rows, workers
        self.n_samples, self.offset = points.n_samples, points.offset
        self.n_components, self.sizes = n_components, rows.sizes
        self.unary = empty_table(points.n_samples, n_components, points.dtype)
        self.prob = start_table(start[rows.order], n_components, points.dtype)
        self.sums = class_sums(self.prob, rows)

    def score(self, parameters: MixtureParameters) -> float:
        """Fill ``unary``."""
        return scored(self.points, self.rows.order, parameters, self.unary, self.workers)

    def sweep(self, weights: Floats, sequential: bool) -> Sweep:
        """Update every row once."""
        return class_sweep(
            self.unary,
            self.prob,
            self.sums,
            weights,
            self.rows,
            sequential=sequential,
            workers=self.workers,
        )

    def statistics(self, about: Floats, covariance_type: str) -> Statistics:
        """Sums of all rows."""
        prob = self.prob[:, : self.n_components]
        return class_statistics(self.points, self.rows.order, prob, about, covariance_type, self.workers)

    def counts(self) -> Floats:
        """Sums of the probabilities."""
        found: Floats = self.prob[:, : self.n_components].sum(axis=0, dtype=np.float64)
        return found

    def disturb(self, factors: Floats) -> None:
        """Multiply by factors of the classes."""
        ends = np.append(self.rows.starts, len(self.prob))
        for (start, stop), factor in zip(pairwise(ends), factors, strict=True):
            disturbed(self.prob[start:stop], factor)
        self.sums = class_sums(self.prob, self.rows)

    def kept(self) -> AnyFloats:
        """A copy of the table."""
        return self.prob.copy()

    def restore(self, kept: AnyFloats) -> None:
        """Go back to an earlier table."""
        self.prob[:] = kept
        self.sums = class_sums(self.prob, self.rows)

    def result(self) -> AnyFloats:
        """The table."""
        return self.prob


class FittedRows(NamedTuple):
    """What measures need of rows, which adds up: the table (L + 1, K) and sums (K,) of own probabilities."""

    contingency: Ints
    own: Floats
    likelihoods: Likelihoods

    def __add__(self, other: object) -> FittedRows:
        assert isinstance(other, FittedRows)
        return FittedRows(
            self.contingency + other.contingency, self.own + other.own, self.likelihoods + other.likelihoods
        )


def fitted_rows(
    points: Points, codes: Ints, prob: AnyFloats, gaussians: Gaussians, log_weights: Floats, n_classes: int
) -> FittedRows:
    """Measure rows of these classes (n,), -1 for none, with these probabilities (n, K)."""
    labels = prob.argmax(axis=1).astype(np.int64)
    k = len(log_weights)
    cells = np.where(codes < 0, n_classes, codes) * k + labels
    counts = np.bincount(cells, minlength=(n_classes + 1) * k).reshape(-1, k)
    own = np.bincount(labels, weights=prob[np.arange(len(prob)), labels], minlength=k).astype(np.float64)
    return FittedRows(counts, own, mixture_likelihoods(points, gaussians, log_weights, labels))


def start_table(start: Ints, n_components: int, dtype: np.dtype[np.floating]) -> AnyFloats:
    """Probabilities (n, K padded) of rows whose clusters are known; 0 for those that are -1."""
    prob = empty_table(len(start), n_components, dtype)
    place = np.flatnonzero(start >= 0)
    prob[place, start[place]] = 1.0
    return prob


def scored(
    points: Points,
    order: Ints,
    parameters: MixtureParameters,
    unary: AnyFloats,
    workers: Workers | None = None,
) -> float:
    """Fill ``unary`` with log pi + log N less its largest, which float32 survives; the sum of those."""
    unary[:, len(parameters.log_weights) :] = -np.inf
    top = 0.0
    for start, stop in chunk_bounds(0, len(unary), _ROWS_AT_ONCE):
        log_joint = log_density_pass(
            points,
            parameters.gaussians,
            log_weights=parameters.log_weights,
            rows=order[start:stop],
            workers=workers,
        )
        top += _centre_rows(log_joint, unary[start:stop])
    return top


def class_statistics(
    points: Points,
    order: Ints,
    prob: AnyFloats,
    about: Floats,
    covariance_type: str,
    workers: Workers | None = None,
) -> Statistics:
    """Sums about these means of rows in some order, with these probabilities (n, K)."""
    parts = [
        statistics_pass(
            points, about, prob[start:stop], covariance_type, rows=order[start:stop], workers=workers
        )
        for start, stop in chunk_bounds(0, len(prob), _ROWS_AT_ONCE)
    ]
    return reduce(add, parts)


def disturbed(prob: AnyFloats, factor: Floats) -> None:
    """Multiply the probabilities of rows by a factor (K padded) and divide them by their sums, in place."""
    prob *= factor.astype(prob.dtype)
    prob /= prob.sum(axis=1, keepdims=True)


@kernel
def _centre_rows(scores: Floats, table: AnyFloats) -> float:
    """Copy rows into a wider table, less their largest value; return the sum of those."""
    total = 0.0
    for i in range(scores.shape[0]):
        top = scores[i, 0]
        for k in range(1, scores.shape[1]):
            top = max(top, scores[i, k])
        total += top
        for k in range(scores.shape[1]):
            table[i, k] = scores[i, k] - top
    return total
