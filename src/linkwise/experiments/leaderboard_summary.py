"""Tables of the leaderboard from its file of cells."""

from __future__ import annotations

import csv
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import rankdata

from linkwise.experiments.leaderboard_methods import COUNTERPARTS, METHODS

__all__ = ["losses", "read_cells", "summarise"]

#: A difference in the adjusted Rand index below this is a tie.
TIE = 0.01

#: Methods without links that take part in the ranking.
_RANKED = (*METHODS, *(name for name in COUNTERPARTS if name.startswith("sklearn")))

Cells = list[dict[str, str]]
#: (set, share, flip): mean score over the draws of every method that ran in all of them.
Settings = dict[tuple[str, str, str], dict[str, float]]


def read_cells(path: str | Path) -> Cells:
    """Cells of a file that :func:`linkwise.experiments.leaderboard.run_cells` wrote.

    Parameters
    ----------
    path : path

    Returns
    -------
    list of dict
        Everything as text; empty scores where ``status`` is not "ok".
    """
    with Path(path).open(newline="") as file:
        return list(csv.DictReader(file))


def summarise(
    cells: Cells, half: str | None = None, flip: str | None = None, measure: str = "ari_unlinked"
) -> tuple[list[str], list[list[Any]]]:
    """Mean rank, wins, and how often a method is worse than itself without links.

    A setting is a set, a share of linked rows and a share of wrong links, its score the mean over the draws
    that were run. A method that had no feasible links in some draw is left out of that setting: ranks are
    given as shares, 0 for the best and 1 for the worst of those that ran. Differences to the method without
    links are of the same draws; below 0.01 they are ties.

    Parameters
    ----------
    cells : list of dict
    half : {"A", "B"}, optional
        Only the sets of this half.
    flip : str, optional
        Only this share of wrong links, "0", "0.1" or "0.2".
    measure : str
        A column of scores.

    Returns
    -------
    head, rows
        Method, number of settings, mean score, mean relative rank, wins (ties within 1e-9 share none), then
        settings better and worse than without links, and the mean difference with its standard error over the
        sets. Best rank first.

    Examples
    --------
    >>> from linkwise.experiments.leaderboard_summary import summarise
    >>> cell = {"half": "A", "set": "iris", "share": "0.3", "draw": "0", "status": "ok"}
    >>> cells = [
    ...     {**cell, "flip": "0", "method": "PCKMeans", "ari_unlinked": "0.8"},
    ...     {**cell, "flip": "0", "method": "MPCKMeans", "ari_unlinked": "0.7"},
    ...     {**cell, "flip": "", "method": "PCKMeans, no links", "ari_unlinked": "0.9"},
    ... ]
    >>> head, rows = summarise(cells)
    >>> [(row[0], row[3], row[head.index("worse")]) for row in rows]
    [('PCKMeans', 0.0, 1), ('MPCKMeans', 1.0, 0)]
    """
    settings = _settings([c for c in cells if half in (None, c["half"])], flip, measure)
    ranks: dict[str, list[float]] = defaultdict(list)
    wins: dict[str, int] = defaultdict(int)
    scores: dict[str, list[float]] = defaultdict(list)
    gains: dict[str, list[tuple[str, float]]] = defaultdict(list)
    for (name, _, _), found in settings.items():
        ranked = [method for method in _RANKED if method in found]
        values = np.array([found[method] for method in ranked])
        places = (rankdata(-values) - 1) / max(1, len(values) - 1)
        for method, place, value in zip(ranked, places, values, strict=True):
            ranks[method].append(float(place))
            scores[method].append(float(value))
            wins[method] += int(place == 0.0)
            counterpart = METHODS[method].counterpart if method in METHODS else None
            if counterpart in found:
                gains[method].append((name, float(value - found[counterpart])))
    rows = [
        [method, len(ranks[method]), float(np.mean(scores[method])), float(np.mean(ranks[method])),
         wins[method], *_against_itself(gains[method])]
        for method in sorted(ranks, key=lambda method: float(np.mean(ranks[method])))
    ]  # fmt: skip
    head = ["method", "settings", measure, "rank", "wins", "better", "worse", "gain", "error"]
    return head, rows


def losses(
    cells: Cells, methods: tuple[str, ...] = tuple(METHODS), measure: str = "ari_unlinked"
) -> tuple[list[str], list[list[Any]]]:
    """Settings where links make a method worse, of each set the mean over shares of linked rows.

    Parameters
    ----------
    cells : list of dict
    methods : tuple of str
    measure : str

    Returns
    -------
    head, rows
        Method, set, share of wrong links, mean score without and with links; largest loss first. Losses below
        0.01 are not listed.

    Examples
    --------
    >>> from linkwise.experiments.leaderboard_summary import losses
    >>> losses([])[1]
    []
    """
    found: dict[tuple[str, str, str], list[tuple[float, float]]] = defaultdict(list)
    for (name, _, flip), scores in _settings(cells, None, measure).items():
        for method in methods:
            counterpart = METHODS[method].counterpart
            if method in scores and counterpart in scores:
                found[method, name, flip].append((scores[counterpart], scores[method]))
    rows: list[list[Any]] = []
    for key, pairs in found.items():
        without, with_links = np.mean(pairs, axis=0).tolist()
        if with_links < without - TIE:
            rows.append([*key, without, with_links])
    rows.sort(key=lambda row: row[4] - row[3])
    return ["method", "set", "flip", "no links", "links"], rows


def _settings(cells: Cells, flip: str | None, measure: str) -> Settings:
    by_draw: dict[tuple[str, str, str], dict[str, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    failed: set[tuple[tuple[str, str, str], str]] = set()
    flips = sorted({cell["flip"] for cell in cells} - {""}) if flip is None else [flip]
    for cell in cells:
        for level in flips if cell["flip"] == "" else [cell["flip"]]:
            if level not in flips:
                continue
            key = cell["set"], cell["share"], level
            if cell["status"] == "ok":
                by_draw[key][cell["method"]][cell["draw"]] = float(cell[measure])
            else:
                failed.add((key, cell["method"]))
    settings: Settings = {}
    for key, methods in by_draw.items():
        linked = [set(draws) for m, draws in methods.items() if m in METHODS and (key, m) not in failed]
        if not linked:
            continue
        common = set.intersection(*linked)
        kept = {m: draws for m, draws in methods.items() if (key, m) not in failed and common <= set(draws)}
        if common:
            settings[key] = {m: float(np.mean([draws[d] for d in common])) for m, draws in kept.items()}
    return settings


def _against_itself(gains: list[tuple[str, float]]) -> list[Any]:
    """Better, worse, mean gain, and its standard error over the means of the sets."""
    if not gains:
        return [0, 0, float("nan"), float("nan")]
    values = np.array([gain for _, gain in gains])
    by_set: dict[str, list[float]] = defaultdict(list)
    for name, gain in gains:
        by_set[name].append(gain)
    means = np.array([np.mean(list_of) for list_of in by_set.values()])
    error = float(means.std(ddof=1) / np.sqrt(len(means))) if len(means) > 1 else float("nan")
    return [int((values > TIE).sum()), int((values < -TIE).sum()), float(values.mean()), error]
