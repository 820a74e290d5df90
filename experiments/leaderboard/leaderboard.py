"""Leaderboard: every estimator with the same links on many sets, and against itself without links."""

from __future__ import annotations

import time
import warnings
import zlib
from collections.abc import Iterable
from itertools import product

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import adjusted_rand_score

from experiments.framework.experiment import Experiment, Size
from experiments.framework.summary import Row
from experiments.leaderboard.data import SETS, draw_links, load_set
from experiments.leaderboard.methods import COUNTERPARTS, METHODS, Method
from experiments.leaderboard.peers import PEERS
from linkwise.constraints import Constraints
from linkwise.exceptions import InfeasibleConstraints

__all__ = ["EXPERIMENTS", "leaderboard_trial"]

#: Certainty of soft links that are all right; the true one would make them hard.
CLEAN_CERTAINTY = 0.99

#: Certainty given to the method that learns it.
UNSURE_CERTAINTY = 0.9

#: Rows of a set at most.
N_ROWS = 200

EVERYTHING = {**METHODS, **COUNTERPARTS, **PEERS}


def leaderboard_trial(
    draw: int, set: str, share: float, flip: float, methods: Iterable[str] = tuple(EVERYTHING)
) -> list[Row]:
    """All methods on one set with the same links.

    Parameters
    ----------
    draw : int
        Fixes the links, which do not depend on ``flip`` but for their kind, and the starts.
    set : str
        A name in :data:`experiments.leaderboard.data.SETS`.
    share : float
        Share of the rows that may carry links; as many links as these rows.
    flip : float
        Share of the links that are wrong.
    methods : iterable of str
        Names of ours, of scikit-learn's and of other packages'.

    Returns
    -------
    list of dict
        "ari_unlinked", the adjusted Rand index of rows without links; "ari" of all rows; "satisfaction", the
        share of the links that were kept; "seconds". Where a fit was impossible, "problem" says why instead.

    Examples
    --------
    >>> from experiments.leaderboard.leaderboard import leaderboard_trial
    >>> rows = leaderboard_trial(0, "iris", 0.3, 0.0, methods=["COPKMeans", "PCKMeans, no links"])
    >>> rows[0]["satisfaction"], "satisfaction" in rows[1]
    (1.0, False)
    """
    X, y = load_set(set, N_ROWS)
    seed = zlib.crc32(f"{set} {share:g} {draw}".encode())
    must_link, cannot_link, linked = draw_links(y, share, flip, seed)
    links = {
        kind: Constraints(len(y), must_link, cannot_link, certainty=certainty)
        for kind, certainty in (("soft", min(CLEAN_CERTAINTY, 1 - flip)), ("unsure", UNSURE_CERTAINTY))
    }
    rows = []
    for name in methods:
        method = EVERYTHING[name]
        try:
            if method.links == "hard":
                hard = Constraints(len(y), must_link, cannot_link)
                hard.check(len(np.unique(y)))
                given: Constraints | None = hard
            else:
                given = links.get(method.links or "")
            scores = _scores(method, X, y, given, linked, draw)
        except InfeasibleConstraints:
            scores = {"problem": "infeasible"}
        except Exception as error:  # of one method; the others go on
            scores = {"problem": f"{type(error).__name__}: {str(error)[:200]}"}
        rows.append({"method": name, **scores})
    return rows


def _scores(
    method: Method,
    X: NDArray[np.float64],
    y: NDArray[np.int64],
    links: Constraints | None,
    linked: NDArray[np.bool_],
    seed: int,
) -> Row:
    model = method.build(len(np.unique(y)), seed)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        labels = model.fit_predict(X) if links is None else model.fit(X, constraints=links).labels_
    seconds = time.perf_counter() - start
    row: Row = {
        "ari_unlinked": float(adjusted_rand_score(y[~linked], labels[~linked])),
        "ari": float(adjusted_rand_score(y, labels)),
        "seconds": seconds,
    }
    if links is not None:
        row["satisfaction"] = float(links.satisfaction(labels))
    return row


def _settings(sets: Iterable[str], shares: Iterable[float], flips: Iterable[float]) -> list[Row]:
    return [{"set": name, "share": share, "flip": flip} for name, share, flip in product(sets, shares, flips)]


EXPERIMENTS = (
    Experiment(
        "leaderboard",
        "Every estimator, scikit-learn without links and other packages on 19 sets with the same links",
        "beyond the papers",
        leaderboard_trial,
        quick=Size(_settings(("iris", "wine", "breast_cancer", "moons"), (0.15,), (0.0, 0.2)), 1),
        full=Size(_settings(SETS, (0.05, 0.15, 0.3), (0.0, 0.1, 0.2)), 3),
        measures=("ari_unlinked", "satisfaction"),
        texts=("problem",),
    ),
)
