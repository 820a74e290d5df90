"""Trials of an experiment, and the file that keeps them: one JSON object a line."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import linkwise
from experiments.framework.summary import Row
from linkwise._files import replacing

__all__ = ["Trial", "TrialFile", "source_state"]


class Trial(NamedTuple):
    """One draw of one setting.

    ``rows`` holds a dict for each method; ``error`` is empty unless the trial failed; ``source`` tells which
    state of the code ran it.
    """

    setting: dict[str, Any]
    draw: int
    rows: list[Row] = []  # noqa: RUF012  (never changed)
    seconds: float = 0.0
    error: str = ""
    source: str = ""

    @property
    def key(self) -> str:
        """Text that identifies the setting and the draw."""
        return json.dumps([self.setting, self.draw], sort_keys=True, default=_plain)


class TrialFile:
    """The trials that have been run; without a path, nothing is kept.

    Parameters
    ----------
    path : path or None

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from experiments.framework.trials import Trial, TrialFile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = TrialFile(pathlib.Path(folder) / "trials.jsonl")
    ...     file.append(Trial({"links": 20}, 0, [{"method": "PPC", "accuracy": 0.9}]))
    ...     file.read()[0].rows
    [{'method': 'PPC', 'accuracy': 0.9}]
    """

    def __init__(self, path: str | Path | None) -> None:
        self.path = None if path is None else Path(path)
        self._trimmed = False

    def read(self) -> list[Trial]:
        """All complete trials; a last line that was cut off is not one."""
        if self.path is None or not self.path.exists():
            return []
        text = self.path.read_text(encoding="utf-8")
        complete = text[: text.rfind("\n") + 1]
        trials = []
        for number, line in enumerate(complete.splitlines(), start=1):
            try:
                trials.append(Trial(**json.loads(line)))
            except (ValueError, TypeError) as error:
                raise ValueError(
                    f"{self.path}, line {number} is no trial ({error}); remove the line, or start afresh"
                ) from error
        return trials

    def append(self, trial: Trial) -> None:
        """Add a trial, and drop the rest of a line that was cut off."""
        if self.path is None:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if not self._trimmed and self.path.exists():
            written = self.path.read_bytes()
            self.path.write_bytes(written[: written.rfind(b"\n") + 1])
        self._trimmed = True
        with self.path.open("a", encoding="utf-8") as file:
            file.write(_line(trial))

    def forget(self, settings: Sequence[dict[str, Any]]) -> None:
        """Drop the trials of these settings."""
        if self.path is None or not self.path.exists():
            return
        dropped = {Trial(dict(setting), 0).key for setting in settings}
        left = [trial for trial in self.read() if trial._replace(draw=0).key not in dropped]
        with replacing(self.path) as draft:
            draft.write_text("".join(_line(trial) for trial in left), encoding="utf-8")


def _line(trial: Trial) -> str:
    return json.dumps(trial._asdict(), default=_plain) + "\n"


@cache
def source_state() -> str:
    """Short fingerprint of the files of the library and of the experiments.

    Returns
    -------
    str
        Twelve hexadecimal digits; any change of a module changes them.

    Examples
    --------
    >>> from experiments.framework.trials import source_state
    >>> len(source_state())
    12
    """
    digest = hashlib.sha256()
    for package in (Path(linkwise.__file__).parent, Path(__file__).parents[1]):
        for path in sorted(package.rglob("*.py")):
            digest.update(path.relative_to(package).as_posix().encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def _plain(value: Any) -> Any:
    """Numbers of numpy as Python's."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} cannot be stored: {value!r}")
