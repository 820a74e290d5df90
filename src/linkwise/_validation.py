"""Checks of what users pass in, and labels of any kind as integer codes; messages name row, value and fix."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linkwise._arrays import Bools, Ints

if TYPE_CHECKING:
    from linkwise.constraints import Constraints

# Integers are coded by a table when their range is at most this many times the sample size.
_DENSE_FACTOR = 8
# From here on floats cannot tell neighbouring whole numbers apart.
_EXACT = 2**53

Coded = tuple[NDArray[Any], NDArray[np.intp]]


def as_generator(random_state: Any) -> np.random.Generator:
    """A ``Generator`` from None, an int, a ``RandomState`` or a ``Generator`` (returned as it is)."""
    if type(random_state) is int or random_state is None or isinstance(random_state, np.random.Generator):
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


def check_pairs(pairs: ArrayLike, n_samples: int, name: str) -> Ints:
    """Pairs as (m, 2) int64, each with two different points in range."""
    name = f"{name} pair"
    table = _as_table(pairs, name)
    if len(table) == 0:
        return np.empty((0, 2), dtype=np.int64)
    if table.ndim != 2 or table.shape[1] != 2:
        raise ValueError(f"{name}s must have two columns, got shape {table.shape}; pass [(i, j), ...]")
    if table.dtype.kind not in "iuf":
        entries = list(enumerate(table.tolist()))
        row, entry = next((one for one in entries if not all(map(_is_row_number, one[1]))), entries[0])
        raise ValueError(
            f"{name}s must hold row numbers, got ({entry[0]!r}, {entry[1]!r}) in {name} {row}; "
            "pass pairs of integers, or index= with the ids of the rows"
        )
    with np.errstate(invalid="ignore"):
        rows = table.astype(np.int64)
    outside = f"points are numbered 0..{n_samples - 1}; correct it or the number of points"
    for bad, reason in (
        ((rows != table).any(axis=1), "row numbers must be whole numbers; correct it"),
        (((rows < 0) | (rows >= n_samples)).any(axis=1), outside),
        (rows[:, 0] == rows[:, 1], "a point cannot be linked to itself; remove it"),
    ):
        if bad.any():
            row = int(np.argmax(bad))
            i, j = table[row].tolist()
            raise ValueError(f"{name} {row} is ({i}, {j}): {reason}")
    return rows


def check_constraints(constraints: Any, n_samples: int | None, y: Any = None) -> Constraints | None:
    """Constraints of an estimator, None or about these rows; raw pairs and links in ``y`` are refused."""
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


def align_rows(X: Any, constraints: Any) -> tuple[Any, Any]:
    """Data and links with the same order of rows: where both have ids, they are matched by them.

    The ids of a data frame are the column that the index of the links was taken from, which is then no
    feature, or else its row labels (pandas). Data without ids are taken in the order of the links, with a
    warning.
    """
    from linkwise.constraints import Constraints

    refuse_dask(X)
    if not isinstance(constraints, Constraints) or constraints.index is None:
        return X, constraints
    columns, name = getattr(X, "columns", None), constraints.index_name
    if columns is not None and name is not None and name in list(columns):
        ids, X = X[name], X.drop(columns=[name]) if hasattr(X, "iloc") else X.drop(name)
    elif columns is not None and hasattr(X, "iloc"):
        ids = X.index
    else:
        warnings.warn(
            f"the links have ids, but X, a {type(X).__name__}, has none: its rows are taken in the order of "
            "the links. Pass a DataFrame with these ids (in a pipeline: set_output(transform='pandas')), or, "
            "if the order is right, constraints.with_index(None)",
            stacklevel=3,
        )
        return X, constraints
    return X, constraints._for_rows(ids)


def validate_rows(estimator: Any, X: Any, **options: Any) -> Any:
    """Rows (n, d) as ``validate_data`` of scikit-learn checks them; an error names the cell that is wrong."""
    # The command has other checks from here before it loads any numerics.
    from scipy.sparse import issparse
    from sklearn.utils.validation import validate_data

    try:
        return validate_data(estimator, X, **options)
    except (TypeError, ValueError):
        if not issparse(X):
            _refuse_table(X)
        raise


def _refuse_table(X: Any) -> None:
    """Raise ValueError if X has one dimension, or for its first cell that is no finite number."""
    cells = X.to_numpy() if hasattr(X, "iloc") else np.asarray(X)
    if cells.ndim == 1:
        raise ValueError(
            f"Expected 2D array, got {len(cells)} values in one dimension. Reshape your data: pass "
            "X.reshape(-1, 1) for one column, X.reshape(1, -1) for one row"
        ) from None
    if cells.dtype.kind == "c":
        raise ValueError(
            "Complex data not supported: X holds complex numbers; pass X.real and X.imag as columns"
        ) from None
    if cells.ndim != 2:
        return
    rows: Iterable[int] = range(len(cells))
    if cells.dtype.kind in "iufb":
        rows = np.flatnonzero(~np.isfinite(cells).all(axis=1))[:1].tolist()
    for row in rows:
        for column, cell in enumerate(cells[row].tolist()):
            _refuse_cell(cell, X, row, column)


def _refuse_cell(cell: Any, X: Any, row: int, column: int) -> None:
    """Raise ValueError if a cell of X is text or a date, missing or infinite."""
    number = np.nan
    if cell is not None and not _is_missing(cell):
        try:
            number = float(cell)
        except (TypeError, ValueError):
            if not isinstance(cell, str) and not hasattr(cell, "isoformat"):
                return
            raise ValueError(
                f"{_place(X, row, column)} is {str(cell)[:40]!r}, which is no number; leave the column out, "
                "or write it as numbers (text: pandas.get_dummies)"
            ) from None
    if np.isnan(number):
        raise ValueError(
            f"Input X contains NaN: {_place(X, row, column)} is missing; fill it in, for example with "
            "sklearn.impute.SimpleImputer, or leave the row out"
        ) from None
    if np.isinf(number):
        raise ValueError(f"Input X contains infinity: {_place(X, row, column)} is inf; correct it") from None


def _place(X: Any, row: int, column: int) -> str:
    """A cell as a reader finds it: ``X[7, 2]``, or in a frame of pandas ``column 'age' of row 7``."""
    if not hasattr(X, "iloc"):
        columns = getattr(X, "columns", None)
        return f"X[{row}, {column}]" if columns is None else f"column {list(columns)[column]!r} of row {row}"
    return f"column {X.columns.tolist()[column]!r} of row {X.index[row : row + 1].tolist()[0]!r}"


def refuse_dask(X: Any) -> None:
    """Raise TypeError if X is a collection of Dask, which numpy would silently pull into memory."""
    # Objects of xarray have a graph only if there is Dask inside.
    graph = getattr(X, "__dask_graph__", None)
    if graph is not None and not isinstance(X, type) and graph() is not None:
        raise TypeError(
            f"X is a {type(X).__name__} of Dask, and this estimator works in memory; use an estimator of "
            "linkwise.dask, or, if the data fit in memory, pass X.compute()"
        )


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
        if np.ndim(value) > 0:
            example = ", such as len(X) for the number of rows" if name == "n_samples" else ""
            raise ValueError(
                f"{name} must be a whole number >= {least}, got a {type(value).__name__} of shape "
                f"{np.shape(value)}; pass one number{example}"
            )
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


def label_codes(y: ArrayLike, name: str = "y") -> tuple[Ints, NDArray[Any]]:
    """Class number of each row and the sorted classes; -1, NaN, None, masked or pandas.NA is unknown: -1."""
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


def _missing(array: NDArray[Any]) -> Bools:
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


def unlabelled(array: NDArray[Any]) -> Bools:
    """Which labels mark an unlabelled row: missing, or the number -1."""
    gaps = _missing(array)
    if array.dtype.kind in "if":
        return gaps | (array == -1)
    if array.dtype.kind == "O":
        minus_one = (isinstance(v, numbers.Real) and v == -1 for v in array)
        return gaps | np.fromiter(minus_one, dtype=bool, count=len(array))
    return gaps


def listed(names: Sequence[Any], shown: int = 5) -> str:
    """Join a few names, and say how many more there are: ``3, 7 and 2 more``."""
    more = f" and {len(names) - shown} more" if len(names) > shown else ""
    return ", ".join(map(str, names[:shown])) + more


def counted(count: int, noun: str) -> str:
    """``1 answer`` or ``3 answers``."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
