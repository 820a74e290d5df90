"""Passes of K-means and CPPC on disk: an interrupted fit is led through its steps by what they returned.

What a pass of the workers returns, sums of K x D numbers, is stored in a file of its own before it is used.
The same fit, started again, does the same steps in this process, and takes what its first passes return from
the files. So it comes to where it was without reading the data, and goes on from there. The files hold
arrays and text, no code. They are removed when the fit is done.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.dask.checkpoint import damaged, digest, read_arrays, values_identity, write_arrays
from linkwise.dask.collections import Table
from linkwise.dask.jobs import Look
from linkwise.dask.passes import Job, Runner

__all__ = ["Journal", "JournalRunner"]


class Journal:
    """What passes returned, in a folder; ``kinds`` are the classes of results, by name."""

    def __init__(
        self, folder: str | os.PathLike[str], identity: Mapping[str, str], kinds: Mapping[str, Any]
    ) -> None:
        self.folder, self.identity, self.kinds = Path(folder), identity, kinds
        self._n_passes = 0

    def answer(self, question: str, work: Callable[[], Any]) -> Any:
        """What the next pass returned before the interruption, or what its work returns now."""
        path = self.folder / f"pass-{self._n_passes}.npz"
        if path.exists():
            about, arrays = read_arrays(path, self.identity)
            if about.get("question") == question:
                self._n_passes += 1
                try:
                    return _decoded(about["answer"], arrays, self.kinds)
                except (KeyError, TypeError) as error:
                    raise damaged(path, error) from None
            self.remove(self._n_passes)  # without a random_state the fit goes another way
        found = work()
        arrays = {}
        answer = _encoded(found, arrays)
        write_arrays(path, self.identity, {"question": question, "answer": answer}, arrays)
        self._n_passes += 1
        return found

    def remove(self, first: int = 0) -> None:
        """Remove the files from this number on; the folder stays."""
        for path in self.folder.glob("pass-*.npz"):
            number = path.stem.removeprefix("pass-")
            if number.isdecimal() and int(number) >= first:
                path.unlink(missing_ok=True)


class JournalRunner(Runner):
    """A runner that stores what its passes return."""

    def __init__(self, table: Table, client: Any, journal: Journal) -> None:
        super().__init__(table, client)
        self.journal = journal

    def sum(self, job: Job, chosen: list[NDArray[np.int64]] | None = None) -> Any:
        """What the pass returned before the interruption, or what it returns now."""
        if isinstance(job, Look):  # it has all rows of the sample, and is done again
            look = super().sum(job, chosen)
            if look.bad is None:
                self.journal.identity = {**self.journal.identity, "values of X": values_identity(look)}
            return look
        question = digest(type(job).__name__, sorted(vars(job).items()), chosen)
        return self.journal.answer(question, lambda: Runner.sum(self, job, chosen))


def _encoded(value: Any, arrays: dict[str, Any]) -> Any:
    """Results as plain values, with the names of their arrays."""
    if isinstance(value, np.ndarray):
        name = f"array_{len(arrays)}"
        arrays[name] = value
        return {"array": name}
    if isinstance(value, float | int | np.generic):
        return value.item() if isinstance(value, np.generic) else value
    if type(value) is tuple:
        return {"tuple": [_encoded(item, arrays) for item in value]}
    fields = {name: _encoded(getattr(value, name), arrays) for name in type(value).__annotations__}
    return {"kind": type(value).__name__, "fields": fields}


def _decoded(value: Any, arrays: Mapping[str, Any], kinds: Mapping[str, Any]) -> Any:
    if not isinstance(value, dict):
        return value
    if "array" in value:
        return arrays[value["array"]]
    if "tuple" in value:
        return tuple(_decoded(item, arrays, kinds) for item in value["tuple"])
    fields = {name: _decoded(item, arrays, kinds) for name, item in value["fields"].items()}
    return kinds[value["kind"]](**fields)
