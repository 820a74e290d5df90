"""Other packages from PyPI that cluster with links: which install and run, and how well, on Iris.

Each is installed with pip into a new environment and fitted once, in a process that is stopped at a time
limit. All get the same 40 true links and the number of classes. Where a package breaks with current versions,
the older ones it needs are tried in an environment of their own. Everything runs on one thread.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from benchmarks._table import Table
from benchmarks._timing import attempt, best_of, one_line
from experiments.leaderboard import peer_fits
from experiments.leaderboard.data import draw_links, load_set
from experiments.leaderboard.methods import METHODS, WITHOUT_LINKS, Method
from linkwise import Constraints

N_LINKS = 40
CERTAINTY = 0.99
SEED = 0
# Seconds for pip to install a package, and for one fit with the import before it.
INSTALL_LIMIT, FIT_LIMIT = 600.0, 90.0

ONE_THREAD = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

WORKS = "works"
HEAD = ["package", "version", "algorithm", "environment", "result", "seconds", "ARI", "links kept"]

Rows = list[list[Any]]


class Environment(NamedTuple):
    """Requirements that pip must keep to, and the version of Python if it is not the running one."""

    pins: tuple[str, ...] = ()
    python: str = ""

    def __str__(self) -> str:
        return ", ".join([f"Python {self.python}"] * bool(self.python) + list(self.pins)) or "current"


CURRENT = Environment()
BEFORE_1_8 = Environment(("scikit-learn<1.8",))

#: Environments to try for a package, until all its algorithms ran.
CANDIDATES: dict[str, tuple[Environment, ...]] = {
    "active-semi-supervised-clustering": (CURRENT, BEFORE_1_8),
    "metric-learn": (CURRENT, BEFORE_1_8),
    "constrained-linkage": (CURRENT,),
    "spectralcluster": (CURRENT,),
    "htcopkmeans": (CURRENT,),
    "gemclus": (CURRENT,),
    "cognitivefactory-interactive-clustering": (CURRENT, Environment(("scipy<1.11", "numpy<1.27"))),
    "clustlib": (CURRENT, Environment(python="3.12")),
}

NOT_COMPARABLE = {
    "cobras-ts": "asks its own questions; without the extra gui its import fails: No module named 'tornado'",
    "scikit-query": "chooses questions, clusters nothing",
    "LAMDA-SSL": "needs torch, torchvision and torch-geometric; its source never stores a must-link",
    "k-means-constrained, ccluster": "sizes of clusters, no links",
    "ConstrainedKMeans": "known labels of rows, no links",
    "evclust": "has no constrained variant, other than its namesake for R",
    "pyckmeans, kmodes, correlation-clustering": "no links beside the data",
    "cobras, pccc, mustlink": "something else under the name",
    "copkmeans, conclust, constrained-clustering, gmm-constraints": "pip finds no such package",
}


class InstallFailed(RuntimeError):
    """Pip's word for it."""


class Problem(NamedTuple):
    """Iris, standardised, with its links."""

    X: Any
    y: Any
    links: Constraints

    def scores(self, labels: Any) -> list[float]:
        """Adjusted Rand index, and share of the links that were kept."""
        return [float(adjusted_rand_score(self.y, labels)), float(self.links.satisfaction(labels))]


def _problem() -> Problem:
    X, y = load_set("iris")
    must_link, cannot_link, _ = draw_links(y, N_LINKS / len(y), 0.0, SEED)
    return Problem(X, y, Constraints(len(y), must_link, cannot_link))


def _run(command: list[str], time_limit: float, **settings: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, timeout=time_limit, text=True, capture_output=True, check=False, **settings
    )


def _python_of(wanted: str) -> str:
    """A Python of this version; pyenv finds one that is installed but not in use."""
    if not wanted:
        return sys.executable
    found = shutil.which(f"python{wanted}")
    if found is not None:
        with_pyenv = {**os.environ, "PYENV_VERSION": wanted}
        asked = _run([found, "-c", "import sys; print(sys.executable)"], 60.0, env=with_pyenv)
        if asked.returncode == 0:
            return asked.stdout.strip()
    raise InstallFailed(f"there is no Python {wanted}")


def _make(environment: Environment, folder: Path) -> Path:
    """A new environment; gives its Python."""
    done = _run([_python_of(environment.python), "-m", "venv", str(folder)], INSTALL_LIMIT)
    if done.returncode:
        raise InstallFailed("no environment can be made")
    return folder / ("Scripts" if os.name == "nt" else "bin") / "python"


def _install(python: Path, package: str, environment: Environment) -> None:
    options = ["--quiet", "--no-input", "--disable-pip-version-check"]
    command = [str(python), "-m", "pip", "install", *options, package, *environment.pins]
    done = _run(command, INSTALL_LIMIT)
    if done.returncode:
        lines = [line.partition("ERROR: ")[2] for line in done.stderr.splitlines()]
        raise InstallFailed("; ".join(line for line in lines if line) or "pip failed without a word")


def _installed(python: Path) -> str:
    """Versions of what the peers stand on."""
    listed = json.loads(_run([str(python), "-m", "pip", "list", "--format", "json"], 120.0).stdout)
    versions = {entry["name"].lower(): entry["version"] for entry in listed}
    base = [name for name in ("numpy", "scipy", "scikit-learn") if name in versions]
    return ", ".join(f"{name} {versions[name]}" for name in base)


def _fit(python: Path, name: str, problem: Problem) -> dict[str, Any]:
    """Answer of the peer, or an error that the time limit or a crash is."""
    job = {
        "name": name, "X": problem.X.tolist(), "n_clusters": len(np.unique(problem.y)), "seed": SEED,
        "must_link": problem.links.must_link.tolist(), "cannot_link": problem.links.cannot_link.tolist(),
    }  # fmt: skip
    try:
        done = _run(
            [str(python), "-P", peer_fits.__file__], FIT_LIMIT, input=json.dumps(job) + "\n", env=ONE_THREAD
        )
    except subprocess.TimeoutExpired:
        return {"error": f"stopped after {FIT_LIMIT:g} s"}
    if done.returncode:
        return {"error": f"ended with code {done.returncode}"}
    return json.loads(done.stdout)


def _short(text: str) -> str:
    return one_line(RuntimeError(text)).removeprefix("RuntimeError: ")


def _peer_row(name: str, environment: Environment, python: Path, problem: Problem) -> list[Any]:
    peer, answer = peer_fits.PEER_FITS[name], _fit(python, name, problem)
    row = [peer.package, answer.get("version", ""), peer.algorithm, str(environment)]
    if "labels" in answer:
        return [*row, WORKS, answer["seconds"], *problem.scores(np.array(answer["labels"]))]
    return [*row, _short(answer.get("error", "installed, but not found")), *[np.nan] * 3]


def _package_rows(package: str, pythons: dict[Environment, Path], folder: str, problem: Problem) -> Rows:
    """A row for each algorithm of the package, or one where it does not install."""
    rows: Rows = []
    names = [name for name, peer in peer_fits.PEER_FITS.items() if peer.package == package]
    for environment in CANDIDATES[package]:
        try:
            if environment not in pythons:
                pythons[environment] = _make(environment, Path(folder, str(len(pythons))))
            _install(pythons[environment], package, environment)
        except (InstallFailed, subprocess.TimeoutExpired) as error:
            rows.append([package, "", "", str(environment), _short(str(error)), *[np.nan] * 3])
            continue
        found = {name: _peer_row(name, environment, pythons[environment], problem) for name in names}
        rows += found.values()
        names = [name for name, row in found.items() if WORKS not in row]
        if not names:
            break
    return rows


def peer_table(problem: Problem) -> Table:
    rows: Rows = []
    pythons: dict[Environment, Path] = {}
    with tempfile.TemporaryDirectory() as folder:
        for package in CANDIDATES:
            rows += _package_rows(package, pythons, folder, problem)
        versions = [f"{environment}: {_installed(python)}" for environment, python in pythons.items()]
    return Table(
        "Other packages",
        HEAD,
        rows,
        f"Links are weighted as each package does by default; the global seed is {SEED}. Seconds are of one "
        f"fit without imports; fits were stopped after {FIT_LIMIT:g} s. In a second environment only what "
        f"failed in the first is run. Environments: {'; '.join(versions)}.",
    )


def our_table(problem: Problem) -> Table:
    plain = {name: method for name, method in WITHOUT_LINKS.items() if name.startswith("sklearn")}
    rows: Rows = []
    for name, method in {**METHODS, **plain}.items():
        package = "scikit-learn" if name in plain else "linkwise"
        row = [package, version(package), name.removeprefix("sklearn "), "this"]
        result, error = attempt(partial(best_of, partial(_our_labels, method, problem), repeats=1))
        if error:
            rows.append([*row, error, *[np.nan] * 3])
        else:
            rows.append([*row, WORKS, result[0], *problem.scores(result[1])])
    return Table(
        "Ours, and scikit-learn without links",
        HEAD,
        rows,
        f"Settings of the leaderboard; soft links have a certainty of {CERTAINTY:g}, hard ones are the same "
        "links. Seconds are of the second fit.",
    )


def _our_labels(method: Method, problem: Problem) -> Any:
    model = method.build(len(np.unique(problem.y)), SEED)
    if method.links is None:
        return model.fit_predict(problem.X)
    links = problem.links
    if method.links != "hard":
        links = Constraints(len(problem.X), links.must_link, links.cannot_link, certainty=CERTAINTY)
    return model.fit(problem.X, constraints=links).labels_


def run() -> Iterator[Table]:
    problem = _problem()
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield our_table(problem)
    yield peer_table(problem)
    yield Table("Not comparable", ["package", "why"], [list(item) for item in NOT_COMPARABLE.items()])
