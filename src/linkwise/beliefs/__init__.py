"""ClassBeliefs: what an expert thinks about the classes of a data set, pair by pair."""

from __future__ import annotations

import numbers
import os
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linkwise._arrays import Floats
from linkwise._pages import heat_table, signed
from linkwise.beliefs import io as _belief_io

__all__ = ["ClassBeliefs"]


class ClassBeliefs:
    """What is believed about each class and each two classes: the matrix C of CPPC, with names.

    An entry says what a new legend should do with two samples of these classes: -1 keep them apart, +1
    put them together, 0 no opinion. On the diagonal, +1 keeps the class whole, a small value allows a split
    if the data support it, and a negative value asks for a split (Preston et al. 2010, section 2.3). Beliefs
    say what the classes should be, not how separable they are.

    The object is immutable; every edit returns a new one.

    Parameters
    ----------
    values : (L, L) array_like, DataFrame or ClassBeliefs
        Symmetric, in [-1, 1]. Halves that differ by rounding (1e-12) are averaged; anything else is refused.
    classes : sequence of length L, optional
        Names, as they occur in ``y``. By default those of the DataFrame, or 0 .. L - 1. With a table that has
        names already they give the order.

    Attributes
    ----------
    values : (L, L) float64
        Read only.
    classes : tuple

    See Also
    --------
    linkwise.CPPC : the estimator that uses them.

    Examples
    --------
    Start from the legend as it is, then write down the doubts:

    >>> from linkwise.beliefs import ClassBeliefs
    >>> beliefs = (
    ...     ClassBeliefs.keep(["agriculture", "deciduous", "mixed"])
    ...     .split("agriculture", strength=0.3)
    ...     .merge("mixed", "deciduous", 0.5)
    ... )
    >>> print(beliefs)
                 agriculture  deciduous  mixed
    agriculture         −0.3         −1     −1
    deciduous             −1          1    0.5
    mixed                 −1        0.5      1
    >>> beliefs.for_classes(["mixed", "agriculture", "deciduous"])
    array([[ 1. , -1. ,  0.5],
           [-1. , -0.3, -1. ],
           [ 0.5, -1. ,  1. ]])
    """

    __slots__ = ("_classes", "_values")

    _classes: tuple[Hashable, ...]
    _values: NDArray[np.float64]

    def __init__(self, values: Any, classes: Sequence[Any] | None = None) -> None:
        names: Sequence[Any]
        if isinstance(values, ClassBeliefs):
            names, table = _in_order(values.classes, values.values, classes)
        elif hasattr(values, "columns") and hasattr(values, "index"):
            names, table = _in_order(*_from_frame(values), classes)
        elif classes is None:
            names, table = range(len(np.atleast_1d(np.asarray(values, dtype=object)))), values
        else:
            names, table = classes, values
        checked = _belief_io.check_names(names)
        self._fill(checked, _belief_io.check_table(table, checked))

    def _fill(self, classes: tuple[Hashable, ...], values: Floats) -> None:
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
        if not isinstance(other, ClassBeliefs):
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
        """Beliefs about some of the classes, in the given order."""
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

    @classmethod
    def keep(cls, classes: Sequence[Any]) -> Self:
        """Keep the classes as they are: +1 on the diagonal, -1 elsewhere.

        Parameters
        ----------
        classes : sequence
            Names, each once: ``np.unique(y)`` will do.

        Examples
        --------
        >>> from linkwise.beliefs import ClassBeliefs
        >>> ClassBeliefs.keep(["forest", "water"]).values
        array([[ 1., -1.],
               [-1.,  1.]])
        """
        names = _belief_io.check_names(classes)
        return cls(2.0 * np.eye(len(names)) - 1.0, names)

    @classmethod
    def unsure(cls, classes: Sequence[Any]) -> Self:
        """No opinion about anything: zeros, the start of a table filled in by edits.

        Parameters
        ----------
        classes : sequence
            Names, each once.

        Examples
        --------
        >>> from linkwise.beliefs import ClassBeliefs
        >>> ClassBeliefs.unsure(["forest", "water"]).separate("forest", "water").values
        array([[ 0., -1.],
               [-1.,  0.]])
        """
        names = _belief_io.check_names(classes)
        return cls(np.zeros((len(names), len(names))), names)

    @classmethod
    def from_csv(cls, path: str | os.PathLike[str]) -> Self:
        """Read a table whose first line and first column are the class names.

        Rows and columns are matched by name. If all names are whole numbers they become integers, as they
        are in ``y``; ``rename(str)`` undoes that.

        Parameters
        ----------
        path : path_like
            UTF-8, separated by commas.

        Raises
        ------
        ValueError
            Naming the line, the classes and the value of a bad entry.
        """
        names, table = _belief_io.read(path)
        return cls(table, names)

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the table; :meth:`from_csv` reads the same values back."""
        _belief_io.write(path, self._classes, self._values)

    def to_frame(self) -> Any:
        """The table as a pandas DataFrame, names in index and columns.

        Returns
        -------
        DataFrame
            ``ClassBeliefs(frame)`` makes the same beliefs of it.
        """
        import pandas

        names = list(self._classes)
        return pandas.DataFrame(self._values.copy(), index=names, columns=names)

    def split(self, *classes: Any, strength: float = 0.5) -> Self:
        """Ask for classes to be split: their diagonal becomes ``-strength``.

        ``strength=0`` only removes the belief that they are whole. To allow a split without asking for it,
        keep the class together weakly: ``keep_whole(name, strength=0.1)``.

        Examples
        --------
        >>> from linkwise.beliefs import ClassBeliefs
        >>> ClassBeliefs.keep(["forest", "water"]).split("forest")["forest", "forest"]
        -0.5
        """
        return self._with_diagonal(classes, -_strength(strength))

    def keep_whole(self, *classes: Any, strength: float = 1.0) -> Self:
        """Ask for classes to stay whole: their diagonal becomes ``strength``."""
        return self._with_diagonal(classes, _strength(strength))

    def merge(self, first: Any, second: Any, strength: float = 1.0) -> Self:
        """Ask for two classes to become one: their entry becomes ``strength``."""
        return self._with_pair(first, second, _strength(strength))

    def separate(self, first: Any, second: Any, strength: float = 1.0) -> Self:
        """Ask for two classes to stay apart: their entry becomes ``-strength``."""
        return self._with_pair(first, second, -_strength(strength))

    def rename(self, names: Mapping[Any, Any] | Callable[[Any], Any]) -> Self:
        """The same beliefs under other names.

        Parameters
        ----------
        names : mapping from old to new names, or a function of the old name
            Names that a mapping does not hold stay as they are.

        Examples
        --------
        >>> from linkwise.beliefs import ClassBeliefs
        >>> ClassBeliefs.keep([1, 2]).rename({1: "forest", 2: "water"}).classes
        ('forest', 'water')
        """
        if callable(names):
            return type(self)(self._values, [names(name) for name in self._classes])
        for name in names:
            self._place(name)
        return type(self)(self._values, [names.get(name, name) for name in self._classes])

    def _with_diagonal(self, classes: Sequence[Any], value: float) -> Self:
        if not classes:
            raise ValueError("classes is empty; name the class, e.g. split('agriculture')")
        table = self._values.copy()
        for name in classes:
            place = self._place(name)
            table[place, place] = value
        return type(self)(table, self._classes)

    def _with_pair(self, first: Any, second: Any, value: float) -> Self:
        a, b = self._place(first), self._place(second)
        if a == b:
            raise ValueError(
                f"{first!r} is named twice; for a single class use split(...) or keep_whole(...)"
            )
        table = self._values.copy()
        table[a, b] = table[b, a] = value
        return type(self)(table, self._classes)

    def plot(self, ax: Any = None) -> Any:
        """Draw the beliefs as a heat map (needs matplotlib).

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; new axes by default.
        """
        from linkwise.displays.belief_map import draw_heat_map

        return draw_heat_map(self._values, self._classes, "beliefs", ax)

    def __repr__(self) -> str:
        return f"ClassBeliefs({len(self)} classes: {listed(self._classes)})"

    def __str__(self) -> str:
        names = [str(name) for name in self._classes]
        cells = [[signed(value) for value in row] for row in self._values.tolist()]
        widths = [max(len(name), *(len(row[place]) for row in cells)) for place, name in enumerate(names)]
        margin = max(len(name) for name in names)
        lines = [
            " " * margin + "".join(f"  {name:>{width}}" for name, width in zip(names, widths, strict=True))
        ]
        for name, row in zip(names, cells, strict=True):
            lines.append(
                f"{name:<{margin}}"
                + "".join(f"  {cell:>{width}}" for cell, width in zip(row, widths, strict=True))
            )
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return heat_table(self._values, self._classes, "beliefs: −1 apart, +1 together")


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


def check_belief_array(values: ArrayLike, n_classes: int) -> Floats:
    """Check a table of beliefs without names: shape (L, L), range [-1, 1], symmetry; return it as floats."""
    return _belief_io.check_table(values, range(n_classes))


def _strength(strength: float) -> float:
    if not isinstance(strength, numbers.Real) or not 0.0 <= float(strength) <= 1.0:
        raise ValueError(
            f"strength must lie between 0 and 1, got {strength!r}; pass its size, the method gives the sign"
        )
    return float(strength)
