"""Functions on arrays that make pairs: for the builders of ``Constraints``, and among some of its rows."""

from __future__ import annotations

import numbers
from collections.abc import Iterable
from types import EllipsisType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linkwise._arrays import Ints
from linkwise._validation import check_whole_number, refuse_masked

Pairs = Ints

# Of more rows than this, few are taken without an array of all.
_MANY_ROWS = 1 << 22

# Offsets to half of the neighbours of a cell; the other half are theirs to it.
_OFFSETS: dict[tuple[int, int], list[tuple[int, ...]]] = {
    (2, 4): [(0, 1), (1, 0)],
    (2, 8): [(0, 1), (1, 0), (1, 1), (1, -1)],
    (3, 6): [(0, 0, 1), (0, 1, 0), (1, 0, 0)],
}


def draw_pairs(rows: Ints, n_pairs: int, overlap: bool, rng: np.random.Generator) -> Pairs:
    """``n_pairs`` random pairs of these rows: disjoint, or distinct and uniform over all pairs."""
    n_pairs = check_whole_number(n_pairs, "n_pairs", 0)
    n_rows = len(rows)
    available = n_rows * (n_rows - 1) // 2 if overlap else n_rows // 2
    if n_pairs > available:
        fix = "draw fewer" if overlap else "draw fewer, or pass overlap=True"
        raise ValueError(
            f"n_pairs is {n_pairs}, but {n_rows} labelled samples make only {available} "
            f"{'distinct' if overlap else 'disjoint'} pairs; {fix}"
        )
    if not overlap:
        return rows[rng.permutation(n_rows)[: 2 * n_pairs].reshape(n_pairs, 2)]
    return rows[_pair_of_rank(rng.choice(available, size=n_pairs, replace=False))]


def _pair_of_rank(rank: Ints) -> Pairs:
    """The pair (i, j), i < j, at this place of (0,1), (0,2), (1,2), (0,3), ...: rank = j (j - 1) / 2 + i."""
    j = ((1.0 + np.sqrt(1.0 + 8.0 * rank)) / 2.0).astype(np.int64)
    # The square root is off by one for ranks beyond 2**52.
    j -= j * (j - 1) // 2 > rank
    j += j * (j + 1) // 2 <= rank
    return np.column_stack([rank - j * (j - 1) // 2, j])


def teacher_pairs(rows: Ints, n_teachers: int, subset_size: int, rng: np.random.Generator) -> Pairs:
    """All pairs within ``n_teachers`` random subsets."""
    n_teachers = check_whole_number(n_teachers, "n_teachers", 0)
    if check_whole_number(subset_size, "subset_size", 0) > len(rows):
        raise ValueError(
            f"subset_size is {subset_size}, but there are {len(rows)} labelled samples; choose 0..{len(rows)}"
        )
    a, b = np.triu_indices(subset_size, k=1)
    subsets = [rng.choice(rows, size=subset_size, replace=False) for _ in range(n_teachers)]
    pairs = [np.column_stack([subset[a], subset[b]]) for subset in subsets]
    return np.concatenate([np.empty((0, 2), dtype=np.int64), *pairs])


def star_links(codes: Ints, n_groups: int, per_point: int, rng: np.random.Generator) -> Pairs:
    """For every two groups: each point of the smaller with its own ``per_point`` points of the larger."""
    stars = [np.empty((0, 2), dtype=np.int64)]
    members = [np.flatnonzero(codes == group) for group in range(n_groups)]
    for a in range(n_groups):
        for b in range(a + 1, n_groups):
            centres, leaves = members[a], members[b]
            if len(centres) > len(leaves):
                centres, leaves = leaves, centres
            chosen = rng.permutation(leaves)[: per_point * len(centres)]
            stars.append(np.column_stack([np.repeat(centres, per_point)[: len(chosen)], chosen]))
    return np.concatenate(stars)


def grid_links(sides: Iterable[int], connectivity: int | None, mask: ArrayLike | None) -> tuple[Pairs, int]:
    """Neighbouring cells of a grid, numbered in C order over the cells kept by the mask."""
    given = tuple(sides) if isinstance(sides, Iterable) else (sides,)
    if len(given) not in (2, 3):
        raise ValueError(
            f"shape must be (height, width) or (depth, height, width), got {given}; pass image.shape[:2]"
        )
    shape = tuple(check_whole_number(side, f"shape[{place}]") for place, side in enumerate(given))
    connectivity = connectivity or {2: 4, 3: 6}[len(shape)]
    if (len(shape), connectivity) not in _OFFSETS:
        raise ValueError(
            f"connectivity {connectivity!r} is not defined in {len(shape)} dimensions; "
            "use 4 or 8 in two dimensions, 6 in three"
        )
    refuse_masked(mask, "mask", "pass for example mask.filled(False)")
    keep = np.ones(shape, dtype=bool) if mask is None else np.asarray(mask)
    if keep.shape != shape or keep.dtype != bool:
        raise ValueError(
            f"mask must be boolean of shape {shape}, got {keep.dtype} of shape {keep.shape}; "
            "pass for example image > 0"
        )
    number = np.where(keep, np.cumsum(keep).reshape(shape) - 1, -1)
    found = []
    for offset in _OFFSETS[len(shape), connectivity]:
        here = number[
            tuple(slice(max(-step, 0), side - max(step, 0)) for step, side in zip(offset, shape, strict=True))
        ]
        there = number[
            tuple(slice(max(step, 0), side - max(-step, 0)) for step, side in zip(offset, shape, strict=True))
        ]
        both = (here >= 0) & (there >= 0)
        found.append(np.column_stack([here[both], there[both]]))
    return np.concatenate(found), int(keep.sum())


def sequence_links(n_samples: int, breaks: Iterable[int]) -> Pairs:
    """Each sample with the next, except across a break."""
    n_samples = check_whole_number(n_samples, "n_samples", 0)
    refuse_masked(breaks, "breaks")
    starts = list(breaks)
    for place, row in enumerate(starts):
        if not isinstance(row, numbers.Integral) or isinstance(row, bool) or not 0 <= row <= n_samples:
            raise ValueError(
                f"breaks must be row numbers in 0..{n_samples}, got [{row!r}] at place {place}; correct it"
            )
    later = np.setdiff1d(np.arange(1, n_samples), np.array(starts, dtype=np.int64))
    return np.column_stack([later - 1, later])


def row_numbers(key: Any, n_samples: int) -> Ints:
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


def links_among(pairs: Pairs, rows: Ints, n_samples: int) -> tuple[Pairs, Ints]:
    """Pairs (m, 2) among rows (r,), which may repeat, in their numbering, and the old pair of each."""
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


def _copied_links(pairs: Pairs, rows: Ints, copies: Ints) -> tuple[Pairs, Ints]:
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
