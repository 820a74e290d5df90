"""Class and cluster labels of any kind as integer codes, by counting, hashing or (floats) sorting."""

from __future__ import annotations

import numbers
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["Coded", "as_vector", "check_same_length", "encode", "encode_pair", "pack", "unlabelled"]

# Integers are coded by a table when their range is at most this many times the sample size.
_DENSE_FACTOR = 8
# From here on floats cannot tell neighbouring whole numbers apart.
_EXACT = 2**53

Coded = tuple[NDArray[Any], NDArray[np.intp]]


def encode_pair(y: ArrayLike, labels: ArrayLike) -> tuple[Coded, Coded]:
    """Codes of two label vectors of equal length."""
    class_vector, cluster_vector = as_vector(y, "y"), as_vector(labels, "labels")
    check_same_length(class_vector, cluster_vector)
    return encode(class_vector, "y"), encode(cluster_vector, "labels")


def check_same_length(y: NDArray[Any], labels: NDArray[Any]) -> None:
    """Refuse label vectors that cannot be about the same samples."""
    if len(y) != len(labels):
        raise ValueError(f"y has {len(y)} samples but labels has {len(labels)}; pass both for the same rows")


def as_vector(values: ArrayLike, name: str) -> NDArray[Any]:
    """One label per sample as an array that keeps 1 and "1" apart, and every whole number; masked is None."""
    array = np.asarray(_with_gaps(values))
    if array.ndim != 1:
        raise ValueError(
            f"{name} has shape {array.shape}; pass one label per sample, e.g. {name}.ravel() for a column or "
            f"{name}.argmax(axis=1) for memberships"
        )
    if array.size == 0:
        raise ValueError(f"{name} is empty; pass at least one label")
    listed = not isinstance(values, np.ndarray) and not hasattr(values, "dtype")
    if listed and (array.dtype.kind in "US" or (array.dtype.kind == "f" and _rounded(values))):
        # numpy turns [1, "a", None] into strings, and rounds [2**53 + 1, nan]; keep what the caller wrote.
        array = np.empty(len(array), dtype=object)
        array[:] = list(values)  # type: ignore[arg-type]
    return array


def _with_gaps(values: Any) -> Any:
    """Labels with None where a masked array is masked, and integers of pandas with gaps not as floats."""
    if isinstance(values, np.ma.MaskedArray):
        if not np.ma.getmaskarray(values).any():
            return values.data
        labels = np.asarray(values.data).astype(object)
        labels[np.ma.getmaskarray(values)] = None
        return labels
    if hasattr(values, "isna") and not isinstance(getattr(values, "dtype", np.dtype(float)), np.dtype):
        # Not by numpy, which asks pandas for floats as soon as an integer is missing.
        return values.to_numpy(dtype=object) if values.isna().any() else values.to_numpy()
    return values


def _rounded(values: Any) -> bool:
    """Whether whole numbers among them, beside NaN or a fraction, would lose digits as floats."""
    return any(isinstance(value, numbers.Integral) and abs(int(value)) > _EXACT for value in values)


def encode(array: NDArray[Any], name: str) -> Coded:
    """Sorted distinct values, and for each sample the position of its value among them."""
    gaps = _missing(array)
    if gaps.any():
        row = int(gaps.argmax())
        raise ValueError(
            f"{name}[{row}] is {array[row]}; drop unlabelled rows first, e.g. with a boolean mask"
        )
    if array.dtype.kind in "bui" and int(array.max()) - int(array.min()) <= _DENSE_FACTOR * array.size:
        wide = array.astype(np.uint64 if array.dtype.kind == "u" else np.int64, copy=False)
        low = wide.min()
        offsets = (wide - low).astype(np.intp)
        present = np.bincount(offsets) > 0
        values = (np.flatnonzero(present).astype(wide.dtype) + low).astype(array.dtype)
        return values, offsets if present.all() else (np.cumsum(present) - 1)[offsets]
    if array.dtype.kind not in "OUS":
        # Sorting a million floats takes half the time of hashing them as Python objects.
        return np.unique(array, return_inverse=True)
    items = array.tolist()
    try:
        distinct = sorted(set(items), key=_sort_key)
    except TypeError as error:
        raise ValueError(
            f"{name} holds values that cannot be hashed and sorted; pass numbers or strings"
        ) from error
    lookup = {value: code for code, value in enumerate(distinct)}
    codes = np.fromiter(map(lookup.__getitem__, items), dtype=np.intp, count=len(items))
    return pack(distinct) if array.dtype.kind == "O" else np.array(distinct, dtype=array.dtype), codes


def _sort_key(value: Any) -> tuple[str, Any]:
    """Numbers first, then strings and other types by name."""
    if isinstance(value, numbers.Number):
        return "", value
    return ("str" if isinstance(value, str) else type(value).__name__), value


def pack(values: Iterable[Any]) -> NDArray[Any]:
    """An array of the values that does not turn numbers into strings."""
    items = list(values)
    if all(isinstance(v, str) for v in items):
        return np.array(items)
    if all(isinstance(v, numbers.Number) for v in items):
        array = np.array(items)
        if array.dtype.kind != "f" or not _rounded(items):
            return array
    packed = np.empty(len(items), dtype=object)
    packed[:] = items
    return packed


def _missing(array: NDArray[Any]) -> NDArray[np.bool_]:
    """Which labels are NaN, NaT, None or pandas.NA."""
    if array.dtype.kind in "fcmM":
        return array != array
    if array.dtype.kind == "O":
        return np.fromiter(map(_is_missing, array), dtype=bool, count=len(array))
    return np.zeros(len(array), dtype=bool)


def _is_missing(value: Any) -> bool:
    """Whether one label is None, not equal to itself, or of unknown truth."""
    try:
        return value is None or bool(value != value)
    except TypeError:  # pandas.NA refuses to be a truth value
        return True


def unlabelled(array: NDArray[Any]) -> NDArray[np.bool_]:
    """Which labels mark an unlabelled row: missing, or the number -1."""
    gaps = _missing(array)
    if array.dtype.kind in "if":
        return gaps | (array == -1)
    if array.dtype.kind == "O":
        minus_one = (isinstance(v, numbers.Real) and v == -1 for v in array)
        return gaps | np.fromiter(minus_one, dtype=bool, count=len(array))
    return gaps
