"""Settings of the whole suite."""

import os

# Workers share the cores, and threads of OpenMP and BLAS of one worker wait for those of the other.
# Before numpy is imported, which reads these once.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

from functools import cache  # noqa: E402

import pytest  # noqa: E402
import typer.testing  # noqa: E402
from _pytest.doctest import DoctestModule  # noqa: E402
from hypothesis import settings  # noqa: E402

from linkwise import _kernels  # noqa: E402

# Kernels compile on their first call, so a deadline would fail at random; a fixed seed keeps runs alike, so
# that many examples would only be the same ones every time.
settings.register_profile("linkwise", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("linkwise")

# Whether the cache of numba is warm must not show in captured output; subprocesses are not affected.
_kernels._told.add(_kernels.COMPILING)

# Typer makes the parser anew for every command that is run: 50 ms, most of the time of many tests.
typer.testing._get_command = cache(typer.testing._get_command)


@pytest.hookimpl(wrapper=True)
def pytest_collect_file():
    """Look for no doctests in the tests themselves: there are none, and the search takes seconds."""
    found = yield
    return [one for one in found if not isinstance(one, DoctestModule)]


#: Files that mostly wait, for processes and browsers. They come first: at the end a worker would wait alone.
WAITING = ("tests/dask/test_cluster.py", "tests/workbench/test_page.py", "tests/cli/test_interrupts.py")


def pytest_collection_modifyitems(items):
    """Put the files that wait first; ``make test`` keeps to the order."""
    items.sort(key=lambda item: not item.nodeid.startswith(WAITING))
