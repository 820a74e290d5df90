"""Runs of EM on disk: parameters are stored after every iteration, and an interrupted fit goes on with them.

A folder has a file for every start, replaced at once, so that a process killed while it writes leaves the one
before. The files hold arrays and text, no code. They are removed when the fit is done.
"""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from linkwise._arrays import Ints
from linkwise._files import replacing
from linkwise.constraints import Constraints
from linkwise.dask.collections import Table
from linkwise.dask.jobs import Look, Overview
from linkwise.dask.passes import Job, Runner
from linkwise.mixture.em import EMRun, MixtureParameters
from linkwise.mixture.gaussian.gaussians import Gaussians
from linkwise.mixture.links.em_step import LinkedStep

_FORMAT = 1
#: What a file raises that is cut off, overwritten, or none of ours.
_DAMAGED = (ValueError, KeyError, TypeError, OSError, EOFError, zipfile.BadZipFile)
#: Parameters that do not change what a fit finds.
_IRRELEVANT = ("client", "checkpoint", "verbose", "n_jobs", "warm_start")


def fit_identity(
    parameters: Mapping[str, Any], n_samples: int, n_features: int, constraints: Constraints | None
) -> dict[str, str]:
    """What must be the same for a fit to go on from a checkpoint, as text."""
    told = {name: _text(value) for name, value in sorted(parameters.items()) if name not in _IRRELEVANT}
    links = "none" if constraints is None else digest(constraints.pairs, constraints.weights)
    return {**told, "rows of X": str(n_samples), "columns of X": str(n_features), "constraints": links}


def _text(value: Any) -> str:
    if isinstance(value, list | tuple | np.ndarray):
        return digest(np.asarray(value))
    return getattr(value, "__qualname__", None) or repr(value)


def values_identity(look: Overview) -> str:
    """What tells rows from others, by their columns; how they are cut into chunks does not matter."""
    size = np.maximum(np.maximum(np.abs(look.low), np.abs(look.high)), np.finfo(np.float64).tiny)
    # Sums in another order differ in their last digits.
    mean = np.round(look.total / look.n_rows / size, 9) + 0.0
    return digest(look.low, look.high, mean)


def digest(*values: Any) -> str:
    """Tell arrays, numbers and text, also inside of tuples and lists, from others; objects are ignored."""
    found = hashlib.sha256()

    def feed(value: Any) -> None:
        if isinstance(value, np.ndarray):
            found.update(repr((value.shape, value.dtype.str)).encode())
            found.update(np.ascontiguousarray(value).tobytes())
        elif isinstance(value, tuple | list):
            found.update(f"{len(value)} of".encode())
            for one in value:
                feed(one)
        elif value is None or isinstance(value, str | float | int):
            found.update(f"{value!r} ".encode())

    feed(values)
    return found.hexdigest()


def write_arrays(
    path: Path, identity: Mapping[str, str], about: Mapping[str, Any], arrays: Mapping[str, Any]
) -> None:
    """Store arrays and plain values of a fit at once."""
    head = json.dumps({**about, "format": _FORMAT, "fit": dict(identity)})
    with replacing(path) as draft, draft.open("wb") as file:
        np.savez(file, about=np.array(head), **arrays)


def read_arrays(path: Path, identity: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read what ``write_arrays`` stored; that of another fit is refused."""
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        about = json.loads(str(arrays.pop("about")))
        if about["format"] != _FORMAT:
            raise KeyError("format")
        fit = about["fit"]
    except _DAMAGED as error:
        raise damaged(path, error) from None
    other = next((name for name in identity if fit.get(name) != identity[name]), None)
    if other is not None:
        raise ValueError(
            f"{path} is the checkpoint of another fit: {other} differs; remove it or choose another folder"
        )
    return about, arrays


def damaged(path: Path, error: Exception) -> ValueError:
    """The error for a file that is no checkpoint."""
    return ValueError(
        f"{path} is no checkpoint that can be read ({error}); remove it, or choose another folder"
    )


class Checkpoint:
    """The runs of one fit of a mixture in a folder; ``identity`` tells the fit from others."""

    def __init__(
        self,
        folder: str | os.PathLike[str],
        identity: dict[str, str],
        watch: Callable[[int, float], None] | None = None,
    ) -> None:
        self.folder, self.identity, self._watch = Path(folder), identity, watch

    def _file(self, number: int) -> Path:
        return self.folder / f"start-{number}.npz"

    def save(self, number: int, step: LinkedStep, run: EMRun) -> None:
        """Store a run after an iteration."""
        assert run.start is not None
        arrays = {**_arrays("now", run.parameters), **_arrays("start", run.start)}
        arrays["lower_bounds"] = np.array(run.lower_bounds)
        state = step.state()
        arrays |= {f"step_{name}": value for name, value in state.items() if isinstance(value, np.ndarray)}
        about = {
            "converged": run.converged,
            "n_decreases": run.n_decreases,
            "covariance_type": run.parameters.gaussians.covariance_type,
            "step": {
                name: None
                if value is None
                else (bool(value) if isinstance(value, bool | np.bool_) else float(value))
                for name, value in state.items()
                if not isinstance(value, np.ndarray)
            },
        }
        write_arrays(self._file(number), self.identity, about, arrays)
        if self._watch is not None:
            self._watch(len(run.lower_bounds), run.lower_bounds[-1] if run.lower_bounds else np.nan)

    def load(self, number: int, step: LinkedStep) -> EMRun | None:
        """Return a stored run and restore its step; None if there is none."""
        path = self._file(number)
        if not path.exists():
            return None
        about, arrays = read_arrays(path, self.identity)
        try:
            kind = about["covariance_type"]
            now, start = (_parameters(name, arrays, kind) for name in ("now", "start"))
            state = {**about["step"], **_under("step_", arrays)}
            run = EMRun(
                now,
                arrays["lower_bounds"].tolist(),
                bool(about["converged"]),
                int(about["n_decreases"]),
                start=start,
            )
        except _DAMAGED as error:
            raise damaged(path, error) from None
        step.restore(state)
        return run

    def remove(self) -> None:
        """Remove the files; the folder stays."""
        for path in self.folder.glob("start-*.npz"):
            path.unlink(missing_ok=True)


def _arrays(prefix: str, parameters: MixtureParameters) -> dict[str, Any]:
    return {
        f"{prefix}_log_weights": parameters.log_weights,
        f"{prefix}_means": parameters.gaussians.means,
        f"{prefix}_factors": parameters.gaussians.factors,
        f"{prefix}_covariances": parameters.covariances,
        f"{prefix}_coupling": parameters.coupling,
    }


def _parameters(prefix: str, arrays: Mapping[str, Any], covariance_type: str) -> MixtureParameters:
    own = _under(f"{prefix}_", arrays)
    gaussians = Gaussians(own["means"], own["factors"], covariance_type)
    return MixtureParameters(own["log_weights"], gaussians, own["covariances"], own["coupling"])


def _under(prefix: str, arrays: Mapping[str, Any]) -> dict[str, Any]:
    return {name.removeprefix(prefix): value for name, value in arrays.items() if name.startswith(prefix)}


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

    def sum(self, job: Job, chosen: list[Ints] | None = None) -> Any:
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
