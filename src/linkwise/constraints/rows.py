"""The links among some rows: which rows a key means, and the pairs between them in their own numbering."""

from __future__ import annotations

from types import EllipsisType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise._validation import refuse_masked

__all__ = ["links_among", "row_numbers"]

# Of more rows than this, few are taken without an array of all.
_MANY_ROWS = 1 << 22


def row_numbers(key: Any, n_samples: int) -> NDArray[np.int64]:
    """Row numbers meant by an index array, slice, mask, or the tuples scikit-learn passes."""
    if isinstance(key, tuple):
        if any(not isinstance(part, EllipsisType) and part != slice(None) for part in key[1:]):
            raise IndexError("links are selected by rows only: write links[rows], not links[rows, columns]")
        key = key[0]
    if not isinstance(key, slice):
        refuse_masked(key, "rows")
        key = np.asarray(key)
        if key.ndim != 1:
            raise IndexError(
                "links[rows] needs a list of rows, a slice or a mask; for one row write links[[i]]"
            )
        if key.size == 0:
            key = key.astype(np.int64)
        _refuse_rows(key, n_samples)
        if key.dtype.kind != "b":
            rows = key.astype(np.int64)
            return np.where(rows < 0, rows + n_samples, rows) if (rows < 0).any() else rows
    return np.arange(n_samples)[key]


def _refuse_rows(key: NDArray[Any], n: int) -> None:
    """Refuse row numbers that there are not, and masks of another length."""
    if key.dtype.kind == "b":
        if len(key) != n:
            raise IndexError(
                f"rows is a mask of {len(key)} entries, but there are {n} samples; pass one each"
            )
    elif key.dtype.kind not in "iu":
        raise IndexError(f"rows[0] is {key[0]!r}: pass row numbers, a slice or a mask")
    elif len(key) and (key.min() < -n or key.max() >= n):
        place = int(np.argmax((key < -n) | (key >= n)))
        raise IndexError(f"rows[{place}] is {key[place]}, but rows are numbered 0..{n - 1}; correct it")


def links_among(
    pairs: NDArray[np.int64], rows: NDArray[np.int64], n_samples: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pairs (m, 2) among rows (r,) in their numbering, and the number of the old pair of each.

    Of rows that repeat, every copy of i is linked to every copy of j.
    """
    if n_samples > max(_MANY_ROWS, 8 * len(rows)):
        order = np.argsort(rows, kind="stable")
        ordered = rows[order]
        if (ordered[1:] != ordered[:-1]).all():
            if not len(rows):
                return pairs[:0], np.empty(0, dtype=np.int64)
            place = np.searchsorted(ordered, pairs)
            place[place == len(rows)] = 0
            kept = np.flatnonzero((ordered[place] == pairs).all(axis=1))
            return order[place[kept]], kept
    copies = np.bincount(rows, minlength=n_samples)
    if copies.max(initial=0) > 1:
        return _copied_links(pairs, rows, copies)
    number = np.full(n_samples, -1)
    number[rows] = np.arange(len(rows))
    ends = number[pairs]
    kept = np.flatnonzero((ends >= 0).all(axis=1))
    return ends[kept], kept


def _copied_links(
    pairs: NDArray[np.int64], rows: NDArray[np.int64], copies: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The same for rows that repeat; ``copies`` (n,) counts how often each row occurs."""
    place = np.argsort(rows, kind="stable")
    start = np.cumsum(copies) - copies
    n_first, n_second = copies[pairs[:, 0]], copies[pairs[:, 1]]
    repeated = np.repeat(np.arange(len(pairs)), n_first * n_second)
    # Within the block of link (i, j) the counter runs over copies of i times copies of j.
    ends = np.cumsum(n_first * n_second)
    counter = np.arange(len(repeated)) - (ends - n_first * n_second)[repeated]
    copy_of_first, copy_of_second = np.divmod(counter, n_second[repeated])
    first = place[start[pairs[repeated, 0]] + copy_of_first]
    second = place[start[pairs[repeated, 1]] + copy_of_second]
    return np.column_stack([first, second]), repeated
