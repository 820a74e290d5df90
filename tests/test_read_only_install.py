"""The package in a place where nothing can be written, and no home."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import linkwise
from linkwise._kernels import COMPILING

FIT = (
    "import numpy as np, linkwise; from linkwise import PPC, Constraints;"
    "X = np.r_[np.zeros((5, 1)), np.ones((5, 1))] + 0.01 * np.arange(10).reshape(-1, 1);"
    "print(linkwise.__file__, PPC(2, covariance_type='spherical', random_state=0).fit(X).labels_.tolist())"
)


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A copy of the package that numba cannot cache beside.

    The tests may run as root, whom no permission stops; a plain file in place of ``__pycache__`` does.
    """
    place = tmp_path_factory.mktemp("site")
    package = place / "linkwise"
    shutil.copytree(Path(linkwise.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in [package, *(path for path in package.rglob("*") if path.is_dir())]:
        (folder / "__pycache__").write_text("")
    return place


def run(installed, code, *options, **variables):
    """A process without a home."""
    environment = {
        key: value
        for key, value in os.environ.items()
        if key not in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "PYTHONWARNINGS")
    }
    environment |= {"PYTHONPATH": str(installed), "HOME": os.devnull, **variables}
    return subprocess.run(
        [sys.executable, *options, "-c", code], capture_output=True, text=True, env=environment, timeout=120
    )


def test_fits_without_a_cache_and_says_so_once(installed):
    """Also where warnings are errors: the caller's code can do nothing about it."""
    # Not optimised, because every kernel is compiled for this one run.
    done = run(installed, FIT, "-W", "error", NUMBA_OPT="0")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(installed))
    labels = json.loads(done.stdout.split(" ", 1)[1])
    assert labels in ([0] * 5 + [1] * 5, [1] * 5 + [0] * 5)
    (line,) = done.stderr.splitlines()
    assert "set NUMBA_CACHE_DIR" in line


def test_cache_folder_of_the_user_is_used(installed, tmp_path):
    code = (
        "import numpy as np; from linkwise.graph.csr import group_labels;"
        "print(group_labels(3, np.array([[0, 1]]))[0].tolist())"
    )
    done = run(installed, code, NUMBA_CACHE_DIR=str(tmp_path / "cache"))
    assert (done.returncode, done.stderr) == (0, f"{COMPILING}\n")
    assert list((tmp_path / "cache").rglob("*.nbi"))
