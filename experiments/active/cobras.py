"""COBRAS in an environment of its own, which the variable LINKWISE_COBRAS names."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.framework.data_files import DataMissing

__all__ = ["cobras_labels"]

_SCRIPT = Path(__file__).with_name("cobras_run.py")


def cobras_labels(
    X: NDArray[np.float64], answer: Callable[[int, int], bool], budgets: Sequence[int], seed: int
) -> Iterator[tuple[NDArray[np.int64], int]]:
    """Labels that COBRAS finds with each budget of questions, and how many it asked.

    Parameters
    ----------
    X : (n, d) float64
    answer : callable
        ``answer(i, j)``: whether two rows belong together.
    budgets : sequence of int
        Each is a run of its own, all with the same seed.
    seed : int

    Yields
    ------
    labels : (n,) int64
    n_asked : int

    Raises
    ------
    DataMissing
        If LINKWISE_COBRAS is not set; it is the path of a Python that has ``cobras_ts``.
    """
    python = os.environ.get("LINKWISE_COBRAS")
    if not python:
        raise DataMissing("COBRAS is not there; set LINKWISE_COBRAS to a Python that has cobras_ts")
    n_asked = n_found = 0
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    # Its errors go to a file: a pipe that nobody reads would stop the process when it is full.
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen([python, str(_SCRIPT)], stderr=errors, **pipes) as process,
    ):
        try:
            _write(process, json.dumps({"X": X.tolist(), "seed": seed, "budgets": list(budgets)}))
            for line in process.stdout or ():
                message = json.loads(line)
                if "labels" in message:
                    yield np.array(message["labels"], dtype=np.int64), n_asked
                    n_asked, n_found = 0, n_found + 1
                else:
                    n_asked += 1
                    _write(process, "1" if answer(*message["ask"]) else "0")
        finally:
            process.kill()
        process.wait()
        errors.seek(0)
        last = (errors.read().strip().splitlines() or ["it said nothing"])[-1]
    if n_found < len(budgets):
        raise RuntimeError(f"COBRAS ended without labels: {last}; see that {python} has cobras_ts")


def _write(process: subprocess.Popen[str], line: str) -> None:
    """Send a line; a process that has ended says why on its error output."""
    assert process.stdin is not None
    try:
        process.stdin.write(line + "\n")
        process.stdin.flush()
    except BrokenPipeError:
        pass
