"""Checks shared by the public classes; every message names the row, the value and the fix."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linkwise._label_coding import as_vector, encode, unlabelled

if TYPE_CHECKING:
    from linkwise.constraints import Constraints

__all__ = [
    "as_generator",
    "check_choice",
    "check_constraints",
    "check_number",
    "check_pairs",
    "check_whole_number",
    "label_codes",
    "refuse_links_as_labels",
    "refuse_masked",
]


def as_generator(random_state: Any) -> np.random.Generator:
    """A ``Generator`` from None, an int, a ``RandomState`` or a ``Generator`` (returned as it is)."""
    if random_state is None or isinstance(random_state, np.random.Generator):
        return np.random.default_rng(random_state)
    if isinstance(random_state, numbers.Integral):
        return np.random.default_rng(int(random_state))
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**32, size=4, dtype=np.uint64))
    raise ValueError(
        f"random_state must be None, an int, a RandomState or a Generator, got {random_state!r}; "
        "pass for example random_state=0"
    )


def refuse_masked(values: Any, name: str, remedy: str = "fill it in or leave it out") -> None:
    """Refuse a masked array that hides an entry: what is behind a mask is not known."""
    if isinstance(values, np.ma.MaskedArray):
        hidden = np.argwhere(np.ma.getmaskarray(values))
        if len(hidden):
            place = ", ".join(str(number) for number in hidden[0].tolist())
            raise ValueError(f"{name}{f'[{place}]' if place else ''} is masked; {remedy}")


def check_pairs(pairs: ArrayLike, n_samples: int, name: str) -> NDArray[np.int64]:
    """Pairs as (m, 2) int64, each with two different points in range.

    Raises
    ------
    ValueError
        Naming the first bad row, its value and the fix.
    """
    name = f"{name} pair"
    table = _as_table(pairs, name)
    if len(table) == 0:
        return np.empty((0, 2), dtype=np.int64)
    if table.ndim != 2 or table.shape[1] != 2:
        raise ValueError(f"{name}s must have two columns, got shape {table.shape}; pass [(i, j), ...]")
    if table.dtype.kind not in "iuf":
        row, entry = next(
            ((row, entry) for row, entry in enumerate(table.tolist()) if not all(map(_is_row_number, entry))),
            (0, table[0].tolist()),
        )
        raise ValueError(
            f"{name}s must hold row numbers, got ({entry[0]!r}, {entry[1]!r}) in {name} {row}; "
            "pass pairs of integers"
        )
    with np.errstate(invalid="ignore"):
        rows = table.astype(np.int64)
    _refuse(
        np.any(rows != table, axis=1),
        table,
        name,
        "row numbers must be whole numbers; correct it",
    )
    _refuse(
        ((rows < 0) | (rows >= n_samples)).any(axis=1),
        table,
        name,
        f"points are numbered 0..{n_samples - 1}; correct it or the number of points",
    )
    _refuse(rows[:, 0] == rows[:, 1], table, name, "a point cannot be linked to itself; remove it")
    return rows


def check_constraints(constraints: Any, n_samples: int | None, y: Any = None) -> Constraints | None:
    """Constraints of an estimator: None, or links about exactly these rows.

    Raw pairs are refused, because scikit-learn would subset them by position under cross-validation. Links
    given by position are in ``y``, where nobody would read them: refused as well.
    """
    from linkwise.constraints import Constraints

    refuse_links_as_labels(y, n_samples)
    if constraints is None:
        return None
    if not isinstance(constraints, Constraints):
        raise TypeError(
            f"constraints must be a linkwise.Constraints, got {type(constraints).__name__}; build one with "
            "Constraints(len(X), must_link=[(i, j), ...], cannot_link=[(i, j), ...])"
        )
    if n_samples is not None and len(constraints) != n_samples:
        raise ValueError(
            f"constraints are about {len(constraints)} samples, but X has {n_samples} rows; "
            "for a subset of the rows pass constraints[rows]"
        )
    return constraints


def refuse_links_as_labels(y: Any, n_samples: int | None = None) -> None:
    """Raise TypeError if ``y`` holds links: a Constraints, or pairs that are no label per row."""
    from linkwise.constraints import Constraints

    pairs = (
        isinstance(y, (list, tuple, np.ndarray))
        and n_samples is not None
        and len(y) not in (0, n_samples)
        and all(np.shape(entry) == (2,) for entry in y)
    )
    if pairs or isinstance(y, Constraints):
        given = f"{len(y)} pairs" if pairs else "links"
        raise TypeError(
            f"{given} were given in place of y, where they would be ignored or read as labels; pass links by "
            "name, as in PPC().fit(X, constraints=links)"
        )


def _refuse(bad: Any, table: NDArray[Any], name: str, reason: str) -> None:
    if bad.any():
        row = int(np.argmax(bad))
        i, j = table[row].tolist()
        raise ValueError(f"{name} {row} is ({i}, {j}): {reason}")


def _as_table(pairs: Any, name: str) -> NDArray[Any]:
    """The pairs as an array; masked ends and rows of several lengths are named."""
    if isinstance(pairs, list | tuple) and any(isinstance(entry, np.ma.MaskedArray) for entry in pairs):
        pairs = np.ma.array(pairs)
    if isinstance(pairs, np.ma.MaskedArray) and pairs.ndim == 2:
        hidden = np.ma.getmaskarray(pairs).any(axis=1)
        if hidden.any():
            raise ValueError(
                f"{name} {int(np.argmax(hidden))} is masked: an end is not known; leave the pair out"
            )
    refuse_masked(pairs, name)
    try:
        table = np.asarray(pairs)
    except ValueError:  # rows of several lengths
        row, entry = next((row, entry) for row, entry in enumerate(pairs) if np.size(entry) != 2)
        raise ValueError(f"{name} {row} is {entry!r}: a pair has two ends; pass [(i, j), ...]") from None
    if table.ndim == 0:
        raise ValueError(f"{name}s must be a list of pairs, got {pairs!r}; pass [(i, j), ...]")
    return table


def _is_row_number(value: Any) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def check_whole_number(value: Any, name: str, least: int = 1) -> int:
    """An int of at least ``least``; booleans and floats are refused."""
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < least:
        raise ValueError(
            f"{name} must be a whole number >= {least}, got {value!r}; pass {name}={least} or more"
        )
    return int(value)


def check_number(value: Any, name: str, *, positive: bool = False) -> float:
    """A finite number >= 0, or > 0."""
    usable = isinstance(value, numbers.Real) and not isinstance(value, bool) and 0.0 <= float(value) < np.inf
    if not usable or (positive and value == 0):
        raise ValueError(
            f"{name} must be a finite number {'>' if positive else '>='} 0, got {value!r}; pass such a number"
        )
    return float(value)


def check_choice(value: Any, name: str, allowed: Sequence[str]) -> str:
    """One of the allowed strings."""
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(allowed)}; got {value!r}: pass one of them")
    return value


def label_codes(y: ArrayLike, name: str = "y") -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Class number of each row, -1 where unknown, and the sorted classes.

    Unknown is ``-1``, NaN, ``None``, masked, or a missing value of pandas.
    """
    refuse_links_as_labels(y)
    if np.shape(y) == (0,):
        return np.empty(0, dtype=np.int64), np.empty(0)
    values = as_vector(y, name)
    known = ~unlabelled(values)
    codes = np.full(len(values), -1, dtype=np.int64)
    if not known.any():
        return codes, values[known]
    classes, codes[known] = encode(values[known], name)
    return codes, classes
