"""The one line that says why the first fit takes longer."""

from __future__ import annotations

import os
import subprocess
import sys

from linkwise._kernels import COMPILING

CALL = "import numpy as np; from linkwise._kernels.math import log_sum_exp; print(log_sum_exp(np.zeros(1)))"
SILENCE = "import logging; logging.getLogger('linkwise').setLevel(logging.ERROR);"


def run(code, cache):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache)}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        env=environment,
        timeout=120,
    )
    assert done.stdout == "0.0\n", done.stderr
    return done.stderr


def test_said_once_and_only_while_something_of_linkwise_compiles(tmp_path):
    """Silent about the functions of others; one process, since its imports take longer than the rest."""
    others = (
        "import sys, numba, linkwise._kernels\n"
        "def abs_of(x): return abs(x)\n"
        "numba.njit(abs_of)(0.0)\n"
        "numba.njit(nogil=True)(abs_of)(0.0)\n"
        "print('others are compiled', file=sys.stderr)\n"
    )
    two = CALL + "; from linkwise._kernels.math import log_sum_exp_rows; log_sum_exp_rows(np.zeros((1, 1)))"
    assert run(others + two, tmp_path) == f"others are compiled\n{COMPILING}\n"
    assert run(two, tmp_path) == ""


def test_silenced_by_the_level_of_the_logger(tmp_path):
    assert run(SILENCE + CALL, tmp_path) == ""
