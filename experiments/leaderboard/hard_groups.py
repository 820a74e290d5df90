"""Hard groups: all pairs among a few rows are known for sure, and no clustering may break one."""

from __future__ import annotations

import zlib
from itertools import product

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import adjusted_rand_score

from experiments.framework.experiment import Experiment, Size
from experiments.framework.summary import Row
from experiments.leaderboard.data import SETS, load_set
from experiments.leaderboard.leaderboard import N_ROWS, cluster
from experiments.leaderboard.methods import METHODS, WITHOUT_LINKS
from linkwise.constraints import Constraints

__all__ = ["EXPERIMENTS", "hard_groups_trial", "links_among"]

#: Methods with links that are compared, and clusterings without.
_LINKED = (
    "LinkedClustering", "ConstrainedEM", "COPKMeans", "MPCKMeans", "ConstrainedSpectralClustering",
)  # fmt: skip
_PLAIN = ("sklearn KMeans", "sklearn GaussianMixture", "sklearn SpectralClustering")


def links_among(rows: NDArray[np.int64], y: NDArray[np.int64]) -> Constraints:
    """Hard links between all pairs of some rows.

    Examples
    --------
    >>> import numpy as np
    >>> from experiments.leaderboard.hard_groups import links_among
    >>> links = links_among(np.array([0, 2, 3]), np.array([0, 0, 0, 1]))
    >>> links.must_link.tolist(), links.cannot_link.tolist()
    ([[0, 2]], [[0, 3], [2, 3]])
    """
    first, second = np.triu_indices(len(rows), 1)
    pairs = np.column_stack([rows[first], rows[second]])
    same = y[pairs[:, 0]] == y[pairs[:, 1]]
    return Constraints(len(y), pairs[same], pairs[~same])


def hard_groups_trial(draw: int, set: str, share: float) -> list[Row]:
    """All pairs among 5 % or 10 % of the rows are hard links.

    400 rows of a set, the number of clusters given. Scores are adjusted Rand indices of all rows ("ari", as
    in other work on hard links) and of the rows without links ("ari_unlinked"). "broken" counts hard links
    that a clustering breaks; of clusterings without links it is not asked.

    Parameters
    ----------
    draw : int
        Fixes the rows and the starts.
    set : str
        A name in :data:`experiments.leaderboard.data.SETS`.
    share : float
        Share of the rows that are linked.

    Returns
    -------
    list of dict
        "ari", "ari_unlinked", "broken", "seconds"; or "problem".

    Examples
    --------
    ``hard_groups_trial(0, "wine", 0.1)`` takes some seconds; no "broken" of its rows is above 0.
    """
    X, y = load_set(set, N_ROWS)
    k = len(np.unique(y))
    rng = np.random.default_rng(zlib.crc32(f"{set} {share:g} {draw}".encode()))
    chosen = np.sort(rng.choice(len(y), max(3, round(share * len(y))), replace=False))
    links = links_among(chosen, y)
    free = np.ones(len(y), dtype=bool)
    free[chosen] = False
    rows: list[Row] = []
    for name in (*_LINKED, *_PLAIN):
        method = METHODS[name] if name in METHODS else WITHOUT_LINKS[name]
        found = cluster(method, X, k, draw, links if name in METHODS else None)
        if found.labels is None:
            rows.append({"method": name, "problem": found.problem})
            continue
        row: Row = {
            "method": name,
            "ari": float(adjusted_rand_score(y, found.labels)),
            "ari_unlinked": float(adjusted_rand_score(y[free], found.labels[free])),
            "seconds": found.seconds,
        }
        if name in METHODS:
            row["broken"] = int(links.violations(found.labels).sum())
        rows.append(row)
    return rows


EXPERIMENTS = (
    Experiment(
        "hard_groups",
        "All pairs among a few rows are hard links, which no clustering may break",
        "beyond the papers",
        hard_groups_trial,
        quick=Size([{"set": name, "share": 0.1} for name in ("iris", "wine", "moons")], 1),
        full=Size([{"set": name, "share": share} for share, name in product((0.05, 0.1), SETS)], 2),
        measures=("ari", "ari_unlinked", "broken", "seconds"),
        texts=("problem",),
    ),
)
