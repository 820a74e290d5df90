"""Ids of rows: checked once, found in pairs, and matched with the rows of a data frame."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from linkwise._arrays import Ints
from linkwise._validation import listed, refuse_masked
from linkwise.constraints.cells import cell_text
from linkwise.exceptions import InfeasibleConstraints, Witness


class RowIds:
    """The id of each row, (n,), and the name of the column they come from, if it has one."""

    __slots__ = ("_places", "name", "values")

    def __init__(self, values: NDArray[Any], name: Hashable = None) -> None:
        values.flags.writeable = False
        self.values, self.name = values, name
        self._places: dict[Hashable, int] | None = None

    @classmethod
    def of(cls, ids: Any, n_samples: int | None = None) -> RowIds:
        """Check ids given by a user: one for each row, all known and all different."""
        found = cls.unchecked(ids, "index")
        if n_samples is not None and len(found) != n_samples:
            raise ValueError(
                f"index has {len(found)} ids, but n_samples is {n_samples}; give one id for each row"
            )
        found.places()
        return found

    @classmethod
    def unchecked(cls, ids: Any, what: str) -> RowIds:
        """Ids that may repeat."""
        return cls(_packed(as_names(ids, what)), getattr(ids, "name", None))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.values, self.name)

    def __len__(self) -> int:
        return len(self.values)

    def same_as(self, other: RowIds) -> bool:
        """Whether the ids are equal, in the same order."""
        return len(self) == len(other) and self.values.tolist() == other.values.tolist()

    def take(self, rows: Ints) -> RowIds:
        """The ids of some rows, which may repeat."""
        return RowIds(self.values[rows], self.name)

    def listed(self, rows: Ints) -> str:
        """The first few ids of these rows, and how many more there are."""
        return listed([*map(repr, self.values[rows].tolist())])

    def places(self) -> dict[Hashable, int]:
        """Row number of each id; ids that are repeated are refused."""
        if self._places is None:
            names = self.values.tolist()
            places = dict(zip(names, range(len(names)), strict=True))
            if len(places) < len(names):
                row = next(row for row, name in enumerate(names) if places[name] != row)
                again = places[names[row]]
                raise ValueError(
                    f"the id {names[row]!r} stands for rows {row} and {again}; give every row its own id"
                )
            self._places = places
        return self._places

    def pairs(self, pairs: Any, name: str) -> Ints:
        """Pairs of ids as pairs of row numbers, (m, 2)."""
        refuse_masked(pairs, f"{name} pair")
        if not isinstance(pairs, Iterable):
            raise ValueError(f"{name} is {pairs!r}; pass a list of pairs of ids, [(id, id), ...]")
        entries = np.asarray(pairs, dtype=object).tolist() if hasattr(pairs, "shape") else list(pairs)
        places = self.places()
        kinds = {*map(type, entries)}
        if any(issubclass(kind, str) or not issubclass(kind, Sequence | np.ndarray) for kind in kinds):
            self._refuse_pairs(entries, name)  # text of two letters would pass for a pair
        try:
            found = [(places[_plain(i)], places[_plain(j)]) for i, j in entries]
        except (TypeError, ValueError, KeyError):
            self._refuse_pairs(entries, name)
        rows = np.array(found, dtype=np.int64).reshape(-1, 2)
        if (rows[:, 0] == rows[:, 1]).any():
            self._refuse_pairs(entries, name)
        return rows

    def _refuse_pairs(self, entries: list[Any], name: str) -> NoReturn:
        """Name the first pair that is none."""
        places = self.places()
        for number, entry in enumerate(entries):
            if isinstance(entry, str) or not isinstance(entry, Sequence | np.ndarray) or len(entry) != 2:
                raise ValueError(
                    f"{name} pair {number} is {entry!r}: a pair has two ends; pass [(id, id), ...]"
                )
            ends = [_plain(end) for end in entry]
            shown = f"{name} pair {number} is ({ends[0]!r}, {ends[1]!r})"
            for end in ends:
                if not isinstance(end, Hashable) or end not in places:
                    raise ValueError(f"{shown}: {end!r} is no id in index; {self._remedy(end)}")
            if ends[0] == ends[1]:
                raise ValueError(f"{shown}: a point cannot be linked to itself; remove it")
        raise AssertionError("every pair is right")

    def order_of(self, ids: RowIds, what: str = "ids") -> Ints:
        """Row number of each of other ids; those that are not here are named."""
        ids.places()
        places = self.places()
        wanted = ids.values.tolist()
        rows = np.array([places.get(name, -1) for name in wanted], dtype=np.int64)
        if (rows < 0).any():
            unknown = [wanted[row] for row in np.flatnonzero(rows < 0).tolist()]
            raise ValueError(
                f"{what} holds {listed([*map(repr, unknown)])}, about which the links know nothing; "
                f"{self._remedy(unknown[0])}"
            )
        return rows

    def _remedy(self, unknown: Any) -> str:
        """What to do about an id that is not here: an id of another type looks the same."""
        text = cell_text(unknown)
        for name in self.values.tolist():
            if cell_text(name) == text:
                return f"the index has {name!r}, of type {type(name).__name__}: convert one of them"
            if cell_text(name).strip() == text.strip():
                return f"the index has {name!r}: they differ in blanks; write both alike"
        if type(unknown) is int and len(self) and isinstance(self.values[0], str):
            return f"the index has ids such as {self.values[0]!r}, not row numbers; name rows by them"
        return "correct it, or add the row to the index"


def as_names(ids: Any, name: str) -> list[Hashable]:
    """Ids as a list of plain values; missing and unhashable ones are refused."""
    refuse_masked(ids, name)
    if isinstance(ids, str | bytes) or not isinstance(ids, Iterable):
        raise ValueError(f"{name} is {ids!r}; pass a list of ids, one for each row")
    shape = getattr(ids, "shape", (0,))
    if len(shape) != 1:
        raise ValueError(f"{name} has shape {shape}; pass one id for each row, such as frame.index")
    names = list(ids.tolist() if hasattr(ids, "tolist") else ids)
    if {*map(type, names)} <= {int, str} and "" not in names:
        return names
    names = [_plain(value) for value in names]
    for row, value in enumerate(names):
        if not isinstance(value, Hashable):
            raise ValueError(
                f"{name}[{row}] is {value!r}, a {type(value).__name__}; pass text or numbers as ids"
            )
        if cell_text(value) == "":
            raise ValueError(f"{name}[{row}] is {value!r}: the id is missing; give every row an id")
    return names


def contradiction_by_id(error: InfeasibleConstraints, ids: RowIds | None) -> InfeasibleConstraints:
    """The same contradiction; where rows have ids, the message names those of its points."""
    if ids is None:
        return error
    named = named_points(error.witness, lambda row: ids.values[row])
    told, _, remedy = error.witness.message.partition("; ")
    message = f"{told} ({named}); {remedy}"
    return InfeasibleConstraints(dataclasses.replace(error.witness, message=message))


def named_points(witness: Witness, name_of: Callable[[int], Any]) -> str:
    """The ids of the first rows of a proof: ``row 3 is 'a', row 7 is 'b'``."""
    points = sorted({point for link in witness.must_link + witness.cannot_link for point in link})
    return ", ".join(f"row {point} is {name_of(point)!r}" for point in points[:12])


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _packed(names: Sequence[Any]) -> NDArray[Any]:
    """Whole numbers as int64, anything else as objects, which keep every id as it is."""
    if {*map(type, names)} == {int} and all(-(2**63) <= end < 2**63 for end in (min(names), max(names))):
        return np.array(names, dtype=np.int64)
    packed = np.empty(len(names), dtype=object)
    packed[:] = names
    return packed
