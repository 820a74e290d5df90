"""Tables of the leaderboard from its tidy table."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy.stats import rankdata

from experiments.framework.summary import Row
from experiments.leaderboard.data import half_of
from experiments.leaderboard.methods import COUNTERPARTS, METHODS
from experiments.leaderboard.peers import PEERS

__all__ = ["TIE", "Scores", "losses", "scores_by_setting", "standings"]

#: A difference in the adjusted Rand index below this is a tie.
TIE = 0.01

#: Methods that take part in the ranking: all with links, and scikit-learn without.
RANKED = (*METHODS, *PEERS, *(name for name in COUNTERPARTS if name.startswith("sklearn")))

#: What each method is without links.
WITHOUT_LINKS = {name: method.counterpart for name, method in {**METHODS, **PEERS}.items()}

#: (set, share, flip): mean score of every method that had one in all draws.
Scores = dict[tuple[str, float, float], dict[str, float]]


def scores_by_setting(
    table: Iterable[Row],
    *,
    half: str | None = None,
    shares: Iterable[float] | None = None,
    flips: Iterable[float] | None = None,
    measure: str = "ari_unlinked",
) -> Scores:
    """Mean scores of every setting; a method that failed in some draw is left out of that setting.

    Parameters
    ----------
    table : list of dict
        Tidy table of the experiment "leaderboard".
    half : {"A", "B"}, optional
        Only the sets of this half.
    shares, flips : iterable of float, optional
        Only these shares of linked rows and of wrong links.
    measure : str

    Returns
    -------
    dict of (set, share, flip) to dict of method to score

    Examples
    --------
    >>> from experiments.leaderboard.summary import scores_by_setting
    >>> row = {"set": "iris", "share": 0.3, "flip": 0.0, "measure": "ari_unlinked", "mean": 0.5}
    >>> table = [{**row, "method": "PPC soft", "n": 3}, {**row, "method": "COPKMeans", "n": 2}]
    >>> scores_by_setting(table)
    {('iris', 0.3, 0.0): {'PPC soft': 0.5}}
    """
    rows = [
        row
        for row in table
        if row["measure"] == measure
        and half in (None, half_of(row["set"]))
        and (shares is None or row["share"] in shares)
        and (flips is None or row["flip"] in flips)
    ]
    draws: dict[tuple[str, float, float], int] = defaultdict(int)
    for row in rows:
        key = row["set"], row["share"], row["flip"]
        draws[key] = max(draws[key], row["n"])
    scores: Scores = defaultdict(dict)
    for row in rows:
        key = row["set"], row["share"], row["flip"]
        if row["n"] == draws[key]:
            scores[key][row["method"]] = float(row["mean"])
    return dict(scores)


def standings(scores: Scores) -> tuple[list[str], list[list[Any]]]:
    """Mean rank, wins, and how often a method is worse than itself without links.

    Ranks are given as shares, 0 for the best and 1 for the worst of the methods that ran in a setting.
    Differences to the method without links below 0.01 are ties.

    Parameters
    ----------
    scores : dict
        From :func:`scores_by_setting`.

    Returns
    -------
    head, rows
        Method, number of settings, mean score, mean relative rank, wins (a tie is no win), then settings
        better and worse than without links, and the mean difference with its standard error over the sets.
        Best rank first.

    Examples
    --------
    >>> from experiments.leaderboard.summary import standings
    >>> scores = {("iris", 0.3, 0.0): {"PCKMeans": 0.8, "MPCKMeans": 0.7, "PCKMeans, no links": 0.9}}
    >>> head, rows = standings(scores)
    >>> [(row[0], row[3], row[head.index("worse")]) for row in rows]
    [('PCKMeans', 0.0, 1), ('MPCKMeans', 1.0, 0)]
    """
    ranks: dict[str, list[float]] = defaultdict(list)
    wins: dict[str, int] = defaultdict(int)
    means: dict[str, list[float]] = defaultdict(list)
    gains: dict[str, list[tuple[str, float]]] = defaultdict(list)
    for (name, _, _), found in scores.items():
        ranked = [method for method in RANKED if method in found]
        values = np.array([found[method] for method in ranked])
        places = (rankdata(-values) - 1) / max(1, len(values) - 1)
        for method, place, value in zip(ranked, places, values, strict=True):
            ranks[method].append(float(place))
            means[method].append(float(value))
            wins[method] += int(place == 0.0)
            counterpart = WITHOUT_LINKS.get(method)
            if counterpart in found:
                gains[method].append((name, float(value - found[counterpart])))
    rows = [
        [method, len(ranks[method]), float(np.mean(means[method])), float(np.mean(ranks[method])),
         wins[method], *against_itself(gains[method])]
        for method in sorted(ranks, key=lambda method: float(np.mean(ranks[method])))
    ]  # fmt: skip
    return ["method", "settings", "score", "rank", "wins", "better", "worse", "gain", "error"], rows


def against_itself(gains: list[tuple[str, float]]) -> list[Any]:
    """Settings better and worse than without links, the mean gain, and its standard error over the sets.

    Parameters
    ----------
    gains : list of (set, gain)

    Returns
    -------
    better, worse, gain, error
    """
    if not gains:
        return [0, 0, float("nan"), float("nan")]
    values = np.array([gain for _, gain in gains])
    by_set: dict[str, list[float]] = defaultdict(list)
    for name, gain in gains:
        by_set[name].append(gain)
    means = np.array([np.mean(list_of) for list_of in by_set.values()])
    error = float(means.std(ddof=1) / np.sqrt(len(means))) if len(means) > 1 else float("nan")
    return [int((values > TIE).sum()), int((values < -TIE).sum()), float(values.mean()), error]


def losses(scores: Scores, methods: Iterable[str] = tuple(METHODS)) -> tuple[list[str], list[list[Any]]]:
    """Where links make a method worse, of each set the mean over shares of linked rows.

    Parameters
    ----------
    scores : dict
        From :func:`scores_by_setting`.
    methods : iterable of str

    Returns
    -------
    head, rows
        Method, set, share of wrong links, mean score without and with links; largest loss first. Losses below
        0.01 are not listed.

    Examples
    --------
    >>> from experiments.leaderboard.summary import losses
    >>> losses({("iris", 0.3, 0.1): {"PCKMeans": 0.8, "PCKMeans, no links": 0.9}})[1]
    [['PCKMeans', 'iris', 0.1, 0.9, 0.8]]
    """
    found: dict[tuple[str, str, float], list[tuple[float, float]]] = defaultdict(list)
    for (name, _, flip), by_method in scores.items():
        for method in methods:
            counterpart = WITHOUT_LINKS[method]
            if method in by_method and counterpart in by_method:
                found[method, name, flip].append((by_method[counterpart], by_method[method]))
    rows: list[list[Any]] = []
    for key, pairs in found.items():
        without, with_links = np.mean(pairs, axis=0).tolist()
        if with_links < without - TIE:
            rows.append([*key, without, with_links])
    rows.sort(key=lambda row: row[4] - row[3])
    return ["method", "set", "flip", "no links", "links"], rows
