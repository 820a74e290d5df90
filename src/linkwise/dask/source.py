"""Rows of a mixture that are read chunk by chunk; only rows that carry links, and a sample, are held."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise._arrays import Floats, Ints
from linkwise._threads import Workers
from linkwise.dask.checkpoint import values_identity
from linkwise.dask.collections import Table
from linkwise.dask.jobs import ColumnMoments, EMSums, LabelCounts, Look, Overview
from linkwise.dask.passes import Runner, local_rows
from linkwise.mixture.gaussian.data import LARGEST, Points, computing_type, points_of, rows_for_starts
from linkwise.mixture.gaussian.gaussians import Gaussians, Statistics
from linkwise.mixture.gaussian.passes import log_density_pass, statistics_pass
from linkwise.mixture.gaussian.source import Sample

#: Rows that starts are made from, beside those that carry links. Smaller data are taken whole, and start as
#: they do in memory.
SAMPLE_ROWS = 1 << 17


def sample_rows(n_samples: int, kept: Ints, seed: int) -> Ints:
    """Rows, ascending, to make starts from: all of few, else those to be kept and some drawn at random."""
    if n_samples <= SAMPLE_ROWS:
        return np.arange(n_samples)
    n_more = max(SAMPLE_ROWS - len(kept), SAMPLE_ROWS // 4)
    drawn = np.random.default_rng(seed).choice(n_samples, size=n_more, replace=False, shuffle=False)
    return np.union1d(kept, drawn)


def first_look(runner: Runner, rows: Ints) -> Overview:
    """One pass that checks all rows and takes some (r,), ascending; an entry that is no number is named."""
    table = runner.table
    found: Overview = runner.sum(Look(table.dtype), local_rows(runner.groups, rows))
    if found.bad is not None:
        row, column, value = found.bad
        raise ValueError(
            f"X holds {value} in {table.place(row)}, {_column(table, column)}; drop such rows or fill them in"
        )
    return found


def _column(table: Table, column: int) -> str:
    return f"column {column}" if table.names is None else f"column {column} ({table.names[column]!r})"


class DaskRows:
    """The ``Source`` of a Dask collection; the rows ``kept``, with links or labels, are gathered once."""

    def __init__(self, runner: Runner, kept: Ints, reg_covar: float, seed: int) -> None:
        self.runner = runner
        self.workers = Workers()
        table = runner.table
        self._rows = sample_rows(table.n_samples, kept, seed)
        look = first_look(runner, self._rows)
        if max(look.high.max(), -look.low.min()) > LARGEST:
            column = int(np.maximum(look.high, -look.low).argmax())
            raise ValueError(
                f"{_column(table, column)} reaches from {look.low[column]:.3g} to {look.high[column]:.3g}, "
                "whose squares overflow; divide the column by a power of ten"
            )
        self.identity = values_identity(look)
        self.dtype = computing_type(table.dtype, look.low, look.high, reg_covar)
        self.offset = np.clip(look.total / look.n_rows, look.low, look.high)
        held = self._held = np.ascontiguousarray(look.taken, dtype=self.dtype)
        self.points: Points = points_of(held, self.offset)
        self._for_starts = rows_for_starts(held, self.offset, look.low, look.high)
        self._moments: dict[str, Floats] = {}
        self._excluded: tuple[Ints, list[Ints]] | None = None

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return self.runner.table.n_samples

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return self.runner.table.n_features

    def of_groups(self, rows: Ints) -> list[Ints]:
        """Rows as places in the groups of chunks; those of a fit are the same in every pass."""
        if self._excluded is None or self._excluded[0] is not rows:
            self._excluded = (rows, local_rows(self.runner.groups, rows))
        return self._excluded[1]

    def em_statistics(self, gaussians: Gaussians, log_weights: Floats, excluded: Ints | None) -> Statistics:
        """One pass on the workers."""
        chosen = None if excluded is None else self.of_groups(excluded)
        found: Statistics = self.runner.sum(EMSums(self.dtype, self.offset, gaussians, log_weights), chosen)
        return found

    def places(self, rows: Ints) -> Ints:
        """Places of kept rows among those that are held."""
        return np.searchsorted(self._rows, rows)

    def log_density(self, gaussians: Gaussians, rows: Ints) -> Floats:
        """From the rows that are held."""
        return log_density_pass(self.points, gaussians, rows=self.places(rows), workers=self.workers)

    def statistics(
        self, means: Floats, responsibilities: Floats, covariance_type: str, rows: Ints
    ) -> Statistics:
        """From the rows that are held."""
        return statistics_pass(
            self.points,
            means,
            responsibilities,
            covariance_type,
            rows=self.places(rows),
            workers=self.workers,
        )

    def column_moments(self, covariance_type: str = "diag") -> Floats:
        """One pass on the workers, done once for each type."""
        if covariance_type not in self._moments:
            job = ColumnMoments(self.dtype, self.offset, covariance_type)
            self._moments[covariance_type] = np.asarray(self.runner.sum(job))
        return self._moments[covariance_type]

    def label_counts(self, gaussians: Gaussians, log_weights: Floats, rows: Ints) -> tuple[Ints, Ints]:
        """One pass on the workers."""
        job = LabelCounts(self.dtype, self.offset, gaussians, log_weights)
        every, some = self.runner.sum(job, self.of_groups(rows))
        return every, some

    def sample(self) -> Sample:
        """The rows that are held."""
        whole = len(self._rows) == self.n_samples
        return Sample(self._for_starts, self.points, None if whole else self._rows)

    def held(self, rows: Ints) -> NDArray[Any]:
        """Kept rows (r, d) themselves."""
        return self._held[self.places(rows)]
