"""Settings of the whole suite."""

import gc
import os

# What is imported and collected stays until the end: to look through it for garbage again and again is an
# eighth of the time of collecting, and 3 % of that of the tests.
gc.disable()

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
from tests.repeats import LONG, examples  # noqa: E402

# Kernels compile on their first call, so a deadline would fail at random; a fixed seed keeps runs alike, so
# that many examples would only be the same ones every time.
settings.register_profile("linkwise", deadline=None, derandomize=True, max_examples=examples(40))
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


def pytest_collection_finish():
    """Collect garbage from now on, only what the tests make, and seldom: every 700 objects were 3 %."""
    gc.freeze()
    gc.set_threshold(20_000, 10, 10)
    gc.enable()


#: Files that mostly wait, for processes and browsers. They come first: at the end a worker would wait alone.
WAITING = ("tests/dask/test_cluster.py", "tests/workbench/test_page.py", "tests/cli/test_interrupts.py")
#: What takes long and cannot be divided, a page or a file. At the end come the short doctests of modules.
SLOW = ("docs/", "README.md", "tests/cli/", "tests/test_examples.py", "tests/auto/", "tests/experiments/")


#: Files whose tests start processes, by a server (``tests.warm_python``) that takes 4 s to start.
STARTING = (
    "tests/active/test_journal.py", "tests/cli/ask/", "tests/cli/test_errors.py",
    "tests/cli/test_interrupts.py", "tests/cli/test_killed.py", "tests/cli/test_process.py",
    "tests/dask/test_checkpoint.py", "tests/kmeans/test_time_limit.py",
    "tests/persistence/test_model_files.py", "tests/raster/test_writing.py", "tests/workbench/",
)  # fmt: skip


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Files are shared out as by ``--dist loadfile``, but one worker has all those that need the server."""
    if config.getoption("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class ByFile(LoadFileScheduling):
        def _split_scope(self, nodeid):
            return "processes" if nodeid.startswith(STARTING) else super()._split_scope(nodeid)

    return ByFile(config, log)


def pytest_collection_modifyitems(items):
    """Put the files that wait first and those that take long next; ``make test`` keeps to the order."""
    items.sort(key=lambda item: (not item.nodeid.startswith(WAITING), not item.nodeid.startswith(SLOW)))


def _keep_candidates(monkeypatch, keeps):
    """Let a choice know only the candidates of which this says so; a quick one has part of them."""
    from linkwise.auto import candidates

    known = {name: one for name, one in candidates.CANDIDATES.items() if keeps(name)}
    monkeypatch.setattr(candidates, "CANDIDATES", known)
    monkeypatch.setattr(candidates, "_QUICK", tuple(filter(known.get, candidates._QUICK)))


@pytest.fixture
def fewer_candidates(monkeypatch):
    """A choice without what takes nine tenths of its time: mixtures that see links, all but one of the
    boundaries, and forests."""
    slow = {"mixture", "mixture, tied", "mixture, diagonal", "forest of groups"}
    _keep_candidates(
        monkeypatch,
        lambda name: name not in slow and (name == "boundaries, smooth" or not name.startswith("boundaries")),
    )


@pytest.fixture
def fewest_candidates(monkeypatch):
    """A choice among one with boundaries and those that look for the number of clusters."""
    kept = {"boundaries, smooth", "spectral, near", "mixture, no links", "mixture, tied, no links"}
    _keep_candidates(monkeypatch, kept.__contains__)


@pytest.fixture
def few_candidates(request):
    """In ``make test`` a choice among the fewest candidates, in ``make test-long`` among all."""
    if not LONG:
        request.getfixturevalue("fewest_candidates")
