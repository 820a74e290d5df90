"""A symmetric table over named classes that cannot be changed: what ClassBeliefs is made of."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from linkwise import _belief_io

__all__ = ["BeliefTable", "listed"]


class BeliefTable:
    """Storage, look-up and reordering by name; see :class:`linkwise.beliefs.ClassBeliefs`."""

    __slots__ = ("_classes", "_values")

    _classes: tuple[Hashable, ...]
    _values: NDArray[np.float64]

    def __init__(self, values: Any, classes: Sequence[Any] | None = None) -> None:
        names: Sequence[Any]
        if isinstance(values, BeliefTable):
            names, table = _in_order(values.classes, values.values, classes)
        elif hasattr(values, "columns") and hasattr(values, "index"):
            names, table = _in_order(*_from_frame(values), classes)
        elif classes is None:
            names, table = range(len(np.atleast_1d(np.asarray(values, dtype=object)))), values
        else:
            names, table = classes, values
        checked = _belief_io.check_names(names)
        self._fill(checked, _belief_io.check_table(table, checked))

    def _fill(self, classes: tuple[Hashable, ...], values: NDArray[np.float64]) -> None:
        values.flags.writeable = False
        object.__setattr__(self, "_classes", classes)
        object.__setattr__(self, "_values", values)

    @property
    def values(self) -> NDArray[np.float64]:
        """The matrix, (L, L), read only."""
        return self._values

    @property
    def classes(self) -> tuple[Hashable, ...]:
        """Names of rows and columns."""
        return self._classes

    def __len__(self) -> int:
        return len(self._classes)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self._values, dtype=dtype) if copy is not False else np.asarray(self._values, dtype)

    def __getitem__(self, entry: tuple[Any, Any]) -> float:
        """The belief about two classes: ``beliefs["mixed", "deciduous"]``."""
        if not isinstance(entry, tuple) or len(entry) != 2:
            raise KeyError(
                f"{entry!r}: name two classes, e.g. beliefs[{self._classes[0]!r}, {self._classes[-1]!r}]"
            )
        return float(self._values[self._place(entry[0]), self._place(entry[1])])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, BeliefTable):
            return NotImplemented
        return self._classes == other._classes and np.array_equal(self._values, other._values)

    def __hash__(self) -> int:
        return hash((self._classes, self._values.tobytes()))

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(
            "ClassBeliefs cannot be changed; its edits return new beliefs, e.g. beliefs.split(name)"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._values, self._classes)

    def for_classes(self, classes: Sequence[Any]) -> NDArray[np.float64]:
        """The matrix for exactly these classes in this order, as an estimator needs it.

        Parameters
        ----------
        classes : sequence
            For example the sorted distinct labels of ``y``.

        Returns
        -------
        (L, L) float64
            A new array.

        Raises
        ------
        ValueError
            If a class has no beliefs, or beliefs are about a class that is not there.
        """
        wanted = _belief_io.check_names(classes)
        self._complete(wanted)
        present = set(wanted)
        extra = [name for name in self._classes if name not in present]
        if extra:
            raise ValueError(
                f"beliefs are about {listed(extra)}, but no sample has that class; "
                "leave it out with beliefs.select(classes), or check the spelling"
            )
        places = [self._place(name) for name in wanted]
        return self._values[np.ix_(places, places)]

    def select(self, classes: Sequence[Any]) -> Self:
        """Beliefs about some of the classes, in the given order.

        Parameters
        ----------
        classes : sequence

        Returns
        -------
        ClassBeliefs
        """
        wanted = _belief_io.check_names(classes)
        self._complete(wanted)
        places = [self._place(name) for name in wanted]
        return type(self)(self._values[np.ix_(places, places)], wanted)

    def _complete(self, wanted: Sequence[Hashable]) -> None:
        known = set(self._classes)
        missing = [name for name in wanted if name not in known]
        if not missing:
            return
        hint = "add it to the table"
        if {str(name) for name in missing} <= {str(name) for name in self._classes}:
            kinds = "strings" if isinstance(missing[0], str) else "numbers"
            function = "str" if isinstance(missing[0], str) else "int"
            hint = f"the samples have {kinds} as names: use beliefs.rename({function})"
        raise ValueError(
            f"beliefs say nothing about {listed(missing)}; they are about {listed(self._classes)}: {hint}"
        )

    def _place(self, name: Any) -> int:
        try:
            return self._classes.index(name)
        except ValueError:
            raise ValueError(
                f"there is no class {name!r}; the classes are {listed(self._classes)}: name one of them"
            ) from None


def _from_frame(frame: Any) -> tuple[tuple[Hashable, ...], Any]:
    """Names and values of a DataFrame, columns in the order of its rows."""
    rows = _belief_io.check_names(list(frame.index))
    columns = _belief_io.check_names(list(frame.columns))
    _belief_io.same_names(rows, columns)
    return rows, frame.to_numpy(dtype=object)[:, [columns.index(name) for name in rows]]


def _in_order(
    names: tuple[Hashable, ...], table: Any, classes: Sequence[Any] | None
) -> tuple[tuple[Hashable, ...], Any]:
    """Names and table in the order of ``classes``, which must be the same names."""
    if classes is None:
        return names, table
    wanted = _belief_io.check_names(classes)
    if set(wanted) != set(names):
        raise ValueError(
            f"classes are {listed(wanted)}, but the table is about {listed(names)}; leave classes out, "
            "or rename(...) the beliefs afterwards"
        )
    order = [names.index(name) for name in wanted]
    return wanted, table[np.ix_(order, order)]


def listed(names: Sequence[Any], most: int = 8) -> str:
    """The names, the first few of many."""
    shown = ", ".join(repr(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown}, … ({len(names)} in all)"
