"""PCCC in an environment of its own, which the variables LINKWISE_PCCC_PYTHON and LINKWISE_PCCC name."""

from __future__ import annotations

import json
import os
import subprocess
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

#: Seconds after which a fit is stopped.
TIME_LIMIT = 600.0


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
    python, folder = (os.environ.get(name) for name in ("LINKWISE_PCCC_PYTHON", "LINKWISE_PCCC"))
    if not python or not folder:
        raise DataMissing("PCCC is not there; set LINKWISE_PCCC_PYTHON and LINKWISE_PCCC")
    job: dict[str, Any] = {
        "X": X.tolist(),
        "n_clusters": k,
        "must_link": links.must_link.tolist(),
        "cannot_link": links.cannot_link.tolist(),
        "seed": seed,
        "repositioning": repositioning,
    }
    done = subprocess.run(
        [python, "-P", str(_SCRIPT)],
        input=json.dumps(job) + "\n",
        capture_output=True,
        text=True,
        timeout=TIME_LIMIT,
        env={**os.environ, "PYTHONPATH": folder, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        check=False,
    )
    answer = json.loads(done.stdout or '{"error": "it said nothing"}')
    if "error" in answer:
        raise RuntimeError(f"PCCC: {answer['error']}")
    return np.array(answer["labels"], dtype=np.int64), float(answer["seconds"])
