"""Leaderboard: every estimator with the same links on many sets, and against itself without links."""

from __future__ import annotations

import csv
import time
import warnings
import zlib
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.metrics import adjusted_rand_score

from linkwise.constraints import Constraints
from linkwise.exceptions import InfeasibleConstraints
from linkwise.experiments.data_files import DataMissing
from linkwise.experiments.leaderboard_data import SETS, draw_links, half_of, load_set
from linkwise.experiments.leaderboard_methods import COUNTERPARTS, METHODS, Method
from linkwise.experiments.leaderboard_summary import read_cells, summarise
from linkwise.metrics import match_clusters

__all__ = ["CELL_HEAD", "leaderboard", "run_cells"]

#: Columns of the file of cells.
CELL_HEAD = (
    "set", "half", "share", "flip", "draw", "method", "status",
    "ari", "ari_unlinked", "accuracy", "accuracy_unlinked", "satisfaction", "seconds",
)  # fmt: skip

#: Certainty of soft links that are all right; the true one would make them hard.
CLEAN_CERTAINTY = 0.99

#: Certainty given to the method that learns it.
UNSURE_CERTAINTY = 0.9


class Task(NamedTuple):
    """One draw of links on one set, and the methods still to run on it."""

    name: str
    share: float
    flip: float
    draw: int
    methods: tuple[str, ...]


def leaderboard(
    path: str | Path = "leaderboard_cells.csv",
    quick: bool = True,
    n_jobs: int | None = None,
    verbose: bool = True,
) -> tuple[list[str], list[list[Any]]]:
    """Mean rank, wins and harm of every method over sets, shares of linked rows and shares of wrong links.

    Parameters
    ----------
    path : path
        File of cells (one row for each method, set, draw, share and flip rate). Those it holds are not run
        again.
    quick : bool
        3 draws on at most 200 rows; otherwise 10 draws on at most 600.
    n_jobs : int or None
        Processes.
    verbose : bool
        Print progress.

    Returns
    -------
    head, rows
        See :func:`linkwise.experiments.leaderboard_summary.summarise`.

    Examples
    --------
    The cells that were measured are part of the documentation (``docs/results/leaderboard_cells.csv``); to
    measure them again:

    >>> from linkwise.experiments.leaderboard import leaderboard
    >>> head, rows = leaderboard("cells.csv", n_jobs=2)  # doctest: +SKIP
    """
    run_cells(path, n_draws=3 if quick else 10, n_rows=200 if quick else 600, n_jobs=n_jobs, verbose=verbose)
    return summarise(read_cells(path))


def run_cells(
    path: str | Path,
    sets: tuple[str, ...] = tuple(SETS),
    shares: tuple[float, ...] = (0.05, 0.15, 0.3),
    flips: tuple[float, ...] = (0.0, 0.1, 0.2),
    n_draws: int = 3,
    n_rows: int = 200,
    methods: tuple[str, ...] = (*METHODS, *COUNTERPARTS),
    n_jobs: int | None = None,
    verbose: bool = False,
) -> None:
    """Measure all cells that the file does not hold yet, and append them as they come.

    Sets whose file is missing are skipped with a line that says so. Draws are the outermost loop: a run that
    is cut short covers all sets.

    Parameters
    ----------
    path : path
    sets : tuple of str
        Names in :data:`linkwise.experiments.leaderboard_data.SETS`.
    shares, flips : tuple of float
        Shares of rows that may carry links; shares of wrong links.
    n_draws, n_rows : int
    methods : tuple of str
    n_jobs : int or None
    verbose : bool

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from linkwise.experiments.leaderboard import run_cells
    >>> from linkwise.experiments.leaderboard_summary import read_cells
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "cells.csv"
    ...     run_cells(path, ("iris",), (0.3,), (0.0,), 1, 150, ("PCKMeans", "PCKMeans, no links"))
    ...     [cell["method"] for cell in read_cells(path)]
    ['PCKMeans', 'PCKMeans, no links']
    """
    path = Path(path)
    done = {_key(cell) for cell in read_cells(path)} if path.exists() else set()
    tasks = []
    for draw in range(n_draws):
        for name in sets:
            for share, flip in product(shares, flips):
                wanted = [m for m in methods if m in METHODS or flip == flips[0]]
                missing = tuple(m for m in wanted if _identity(name, share, flip, draw, m) not in done)
                if missing:
                    tasks.append(Task(name, share, flip, draw, missing))
    if not path.exists():
        with path.open("w", newline="") as file:
            csv.writer(file).writerow(CELL_HEAD)
    absent: set[str] = set()
    finished = Parallel(n_jobs=n_jobs, return_as="generator_unordered")(
        delayed(_run_task)(task, n_rows) for task in tasks
    )
    for count, (name, rows) in enumerate(finished, start=1):
        if rows is None:
            absent.add(name)
            continue
        with path.open("a", newline="") as file:
            csv.writer(file).writerows(rows)
        if verbose:
            print(f"leaderboard: {count} of {len(tasks)} ({name})", flush=True)
    if absent:
        print(f"leaderboard: skipped {', '.join(sorted(absent))}: set LINKWISE_DATA to their folder")


def _identity(name: str, share: float, flip: float, draw: int, method: str) -> tuple[str, ...]:
    """Key of a cell; fits without links depend on the share alone, through the rows they are scored on."""
    return name, f"{share:g}", "" if method in COUNTERPARTS else f"{flip:g}", str(draw), method


def _key(cell: dict[str, str]) -> tuple[str, ...]:
    return cell["set"], cell["share"], cell["flip"], cell["draw"], cell["method"]


def _run_task(task: Task, n_rows: int) -> tuple[str, list[list[Any]] | None]:
    """All methods of a task, or None if the data are not there."""
    try:
        X, y = load_set(task.name, n_rows)
    except DataMissing:
        return task.name, None
    seed = zlib.crc32(f"{task.name} {task.share:g} {task.draw}".encode())
    must_link, cannot_link, linked = draw_links(y, task.share, task.flip, seed)
    rows = []
    for name in task.methods:
        method = METHODS.get(name) or COUNTERPARTS[name]
        identity = _identity(task.name, task.share, task.flip, task.draw, name)
        scores = _run_method(method, X, y, must_link, cannot_link, linked, task)
        rows.append([task.name, half_of(task.name), *identity[1:4], name, *scores])
    return task.name, rows


def _run_method(
    method: Method,
    X: NDArray[np.float64],
    y: NDArray[np.int64],
    must_link: NDArray[np.int64],
    cannot_link: NDArray[np.int64],
    linked: NDArray[np.bool_],
    task: Task,
) -> list[Any]:
    """Status and scores of one fit. Impossible links and errors are results, not ends."""
    n_clusters = len(np.unique(y))
    model = method.build(n_clusters, task.draw)
    start = time.perf_counter()
    try:
        links = _links(method.links, len(y), must_link, cannot_link, task.flip)
        if method.links == "hard" and links is not None:
            links.check(n_clusters)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            labels = model.fit(X, constraints=links).labels_ if links is not None else model.fit_predict(X)
    except InfeasibleConstraints:
        return ["infeasible", *[""] * 6]
    except Exception as error:
        return [f"{type(error).__name__}: {str(error)[:200]}", *[""] * 6]
    seconds = time.perf_counter() - start
    matching = match_clusters(y, labels)
    unlinked = ~linked
    satisfaction = "" if links is None else f"{links.satisfaction(labels):.4f}"
    scores = (
        adjusted_rand_score(y, labels),
        adjusted_rand_score(y[unlinked], labels[unlinked]),
        matching.accuracy,
        matching.score(y[unlinked], labels[unlinked]),
    )
    return ["ok", *[f"{score:.4f}" for score in scores], satisfaction, f"{seconds:.3f}"]


def _links(
    kind: str | None, n: int, must_link: NDArray[np.int64], cannot_link: NDArray[np.int64], flip: float
) -> Constraints | None:
    if kind is None:
        return None
    if kind == "hard":
        return Constraints(n, must_link, cannot_link)
    certainty = UNSURE_CERTAINTY if kind == "unsure" else min(CLEAN_CERTAINTY, 1 - flip)
    return Constraints(n, must_link, cannot_link, certainty=certainty)
