"""PCCC in an environment of its own, which the variables LINKWISE_PCCC_PYTHON and LINKWISE_PCCC name."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.framework.data_files import DataMissing
from linkwise.constraints import Constraints

__all__ = ["REPOSITIONING", "pccc_labels"]

_SCRIPT = Path(__file__).with_name("pccc_run.py")

#: Names in the table, and how the code repositions clusters: not, or as its own example does.
REPOSITIONING = {"PCCC": "none", "PCCC, repositioning": "violations_inertia"}


def pccc_labels(
    X: NDArray[np.float64], k: int, links: Constraints, seed: int, repositioning: str
) -> tuple[NDArray[np.int64], float]:
    """Labels of the authors' code with hard links, and its processor seconds.

    Parameters
    ----------
    X : (n, d) float64
    k : int
    links : Constraints
    seed : int
    repositioning : str
        A value of ``REPOSITIONING``.

    Returns
    -------
    labels : (n,) int64
    seconds : float

    Raises
    ------
    DataMissing
        If LINKWISE_PCCC_PYTHON is not set, a Python with numpy, scipy, scikit-learn, pandas, networkx and
        gurobipy, or LINKWISE_PCCC, the folder with the authors' ``pccc.py``.
    RuntimeError
        If there are no labels.
    """
    job: dict[str, Any] = {
        "X": X.tolist(),
        "n_clusters": k,
        "must_link": links.must_link.tolist(),
        "cannot_link": links.cannot_link.tolist(),
        "seed": seed,
        "repositioning": repositioning,
    }
    python, folder = (os.environ.get(name) for name in ("LINKWISE_PCCC_PYTHON", "LINKWISE_PCCC"))
    if not python or not folder:
        raise DataMissing("PCCC is not there; set LINKWISE_PCCC_PYTHON and LINKWISE_PCCC")
    process = _process(python, folder)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(job) + "\n")
    process.stdin.flush()
    answer = json.loads(process.stdout.readline() or '{"error": "the process has ended"}')
    if "error" in answer:
        raise RuntimeError(f"PCCC: {answer['error']}")
    return np.array(answer["labels"], dtype=np.int64), float(answer["seconds"])


@cache
def _process(python: str, folder: str) -> subprocess.Popen[str]:
    """One process for all fits: most of a short fit would be the imports of another."""
    process = subprocess.Popen(
        [python, "-P", str(_SCRIPT)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "PYTHONPATH": folder, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
    )
    atexit.register(process.kill)
    return process
