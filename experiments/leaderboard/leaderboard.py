"""Leaderboard: every estimator with the same links on many sets, and clusterings that ignore the links."""

from __future__ import annotations

import time
import warnings
import zlib
from collections.abc import Iterable
from functools import lru_cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import adjusted_rand_score

from experiments.framework.experiment import Experiment, Size
from experiments.framework.summary import Row
from experiments.leaderboard.data import LINKS, SETS, WRONG, certainty_of, draw_links, load_set
from experiments.leaderboard.figure import draw_leaderboard
from experiments.leaderboard.methods import (
    BEFORE,
    CHOSEN_WITHOUT,
    KNOWN_WITHOUT,
    METHODS,
    WITHOUT_LINKS,
    Method,
)
from experiments.leaderboard.peers import PEERS
from linkwise.constraints import Constraints

__all__ = ["EXPERIMENTS", "N_REPEATS", "N_ROWS", "Clustered", "cluster", "leaderboard_trial"]

#: Rows of a set at most.
N_ROWS = 400

#: Repetitions of the full size.
N_REPEATS = 5

#: What the leaderboard compares, and what a trial can fit.
_COMPARED = (*METHODS, *BEFORE, *WITHOUT_LINKS)
EVERYTHING = {**METHODS, **BEFORE, **WITHOUT_LINKS, **PEERS}


class Clustered(NamedTuple):
    """Labels (n,), processor seconds of the fit, and what went wrong if there are no labels."""

    labels: NDArray[np.int64] | None
    seconds: float
    problem: str = ""


def leaderboard_trial(
    draw: int, repeat: int, set: str, links: str, flip: float, methods: Iterable[str] = _COMPARED
) -> list[Row]:
    """All methods on one set with the same links.

    400 rows of a set, the number of clusters given. Links are drawn among 10 % or 30 % of the rows, as many
    as these rows, or as disjoint pairs over 30 % of them; all right (told as certainty 0.99), or 15 % of them
    wrong (told as 0.85). Methods that need hard links take part where all are right. The reference is the
    clustering without links that keeps most links.

    Parameters
    ----------
    draw : int
        Not used: every repeat is a setting, so that the table holds each of them.
    repeat : int
        Fixes the pairs, whatever ``flip`` is, and the starts.
    set : str
        A name in :data:`experiments.leaderboard.data.SETS`.
    links : str
        A name in :data:`experiments.leaderboard.data.LINKS`.
    flip : float
        Share of the links that are wrong.
    methods : iterable of str
        Names of ours, of scikit-learn's and of other packages'; the reference is added if all of its
        candidates are among them.

    Returns
    -------
    list of dict
        "ari", the adjusted Rand index of the rows without links, "seconds" of the processor, and "kept", the
        share of the links that a method with links keeps. Where a fit was impossible, "problem" says why
        instead.

    Examples
    --------
    >>> from experiments.leaderboard.leaderboard import leaderboard_trial
    >>> rows = leaderboard_trial(0, 0, "iris", "30 %", 0.0, methods=["COPKMeans", "sklearn KMeans"])
    >>> [row["method"] for row in rows], rows[0]["ari"] > 0.5
    (['COPKMeans', 'sklearn KMeans'], True)
    """
    X, y = load_set(set, N_ROWS)
    k = len(np.unique(y))
    kind = LINKS[links]
    seed = zlib.crc32(f"{set} {links} {repeat}".encode())
    must_link, cannot_link, linked = draw_links(y, kind.share, flip, seed, disjoint=kind.disjoint)
    soft = Constraints(len(y), must_link, cannot_link, certainty=certainty_of(flip))
    given = {"soft": soft, "hard": None if flip else Constraints(len(y), must_link, cannot_link)}
    found: dict[str, Clustered] = {}
    for name in methods:
        method = EVERYTHING[name]
        if method.links is None:
            found[name] = _without_links(name, set, repeat)
        elif given[method.links] is not None:
            found[name] = cluster(method, X, k, repeat, given[method.links])
    if all(name in found for name in KNOWN_WITHOUT):
        found[CHOSEN_WITHOUT] = _keeping_most(soft, [found[name] for name in KNOWN_WITHOUT])
    rows = []
    for name, one in found.items():
        row = {"method": name, **_scores(one, y, ~linked)}
        if one.labels is not None and name in EVERYTHING and EVERYTHING[name].links is not None:
            row["kept"] = float(soft.satisfaction(one.labels))
        rows.append(row)
    return rows


@lru_cache(maxsize=2 * len(SETS) * len(WITHOUT_LINKS))
def _without_links(name: str, set: str, repeat: int) -> Clustered:
    """One fit for all kinds of links of a repeat."""
    X, y = load_set(set, N_ROWS)
    return cluster(EVERYTHING[name], X, len(np.unique(y)), repeat, None)


def cluster(
    method: Method, X: NDArray[np.float64], k: int, seed: int, links: Constraints | None, **known: Any
) -> Clustered:
    """Fit a method with links, or other things it knows; an error of one method does not end a trial."""
    start = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = method.build(k, seed)
            given = known if links is None else {"constraints": links, **known}
            labels = np.asarray(model.fit(X, **given).labels_ if given else model.fit_predict(X))
    except Exception as error:
        return Clustered(None, 0.0, f"{type(error).__name__}: {str(error)[:200]}")
    return Clustered(labels, time.process_time() - start)


def _keeping_most(links: Constraints, found: list[Clustered]) -> Clustered:
    """The first of the clusterings that keep most links; its time is that of all."""
    usable = [one.labels for one in found if one.labels is not None]
    kept = [links.satisfaction(labels) for labels in usable]
    return Clustered(usable[int(np.argmax(kept))], sum(one.seconds for one in found))


def _scores(found: Clustered, y: NDArray[np.int64], counted: NDArray[np.bool_]) -> Row:
    if found.labels is None:
        return {"problem": found.problem}
    return {
        "ari": float(adjusted_rand_score(y[counted], found.labels[counted])),
        "seconds": found.seconds,
    }


def _settings(sets: Iterable[str], n_repeats: int) -> list[Row]:
    """All settings, the sets innermost: a run that is cut short has looked at all sets."""
    return [
        {"repeat": repeat, "set": name, "links": links, "flip": flip}
        for repeat, links, flip, name in product(range(n_repeats), LINKS, (0.0, WRONG), sets)
    ]


EXPERIMENTS = (
    Experiment(
        "leaderboard",
        "Every estimator with links, and clusterings without, on 19 sets with the same links",
        "beyond the papers",
        leaderboard_trial,
        quick=Size(_settings(("iris", "wine", "moons"), 1), 1),
        full=Size(_settings(SETS, N_REPEATS), 1),
        measures=("ari", "seconds"),
        texts=("problem",),
        chart=draw_leaderboard,
        methods=_COMPARED,
    ),
)
