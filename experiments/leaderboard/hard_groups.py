"""Hard links, which no clustering may break: all pairs among a few rows, or as many pairs among all rows."""

from __future__ import annotations

import zlib
from itertools import product

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import adjusted_rand_score

from experiments.framework.data_files import DataMissing
from experiments.framework.experiment import Experiment, Size
from experiments.framework.summary import Row
from experiments.leaderboard.leaderboard import Clustered, cluster
from experiments.leaderboard.methods import METHODS, WITHOUT_LINKS
from experiments.leaderboard.pccc import REPOSITIONING, pccc_labels
from experiments.leaderboard.real_sets import REAL_SETS, load_real
from linkwise.constraints import Constraints

__all__ = ["EXPERIMENTS", "GROUPS", "SHARES", "hard_groups_trial", "hard_pairs_trial", "links_among"]

#: Rows of a set at most where pairs are drawn among all rows, about as many as the sets of PCCC's authors.
PAIR_ROWS = 400

#: Share of the rows among which all pairs are links.
SHARES = (0.05, 0.1)

#: What is compared, in groups that can be run apart.
GROUPS: dict[str, tuple[str, ...]] = {
    "no links": ("sklearn KMeans", "sklearn GaussianMixture", "sklearn SpectralClustering"),
    "k-means with links": ("COPKMeans", "MPCKMeans"),
    "PCCC": tuple(REPOSITIONING),
    "spectral with links": ("ConstrainedSpectralClustering",),
    "mixtures with links": ("PPC", "ConstrainedEM"),
    "choice": ("LinkedClustering",),
}


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


def hard_groups_trial(draw: int, set: str, share: float, group: str) -> list[Row]:
    """All pairs among 5 % or 10 % of the rows are hard links.

    A real set, at most 1000 rows of it, standardised, with all its features; the number of clusters is given.
    Scores are adjusted Rand indices of all rows ("ari", as in other work on hard links) and of the rows
    without links ("ari_unlinked"). "broken" counts hard links that a clustering breaks; of clusterings
    without links it is not asked. Estimators have their defaults; PCCC (Baumann & Hochbaum 2024) is the
    authors' own code, with one start as they have it, on the same rows and links.

    Parameters
    ----------
    draw : int
        Fixes the rows that are linked, whatever the group is, and the starts.
    set : str
        A name in :data:`experiments.leaderboard.real_sets.REAL_SETS`.
    share : float
        Share of the rows that are linked.
    group : str
        A name in ``GROUPS``.

    Returns
    -------
    list of dict
        "ari", "ari_unlinked", "broken", "seconds"; or "problem".

    Examples
    --------
    >>> from experiments.leaderboard.hard_groups import hard_groups_trial
    >>> rows = hard_groups_trial(0, "wine", 0.1, "k-means with links")
    >>> [(row["method"], row["broken"]) for row in rows]
    [('COPKMeans', 0), ('MPCKMeans', 0)]
    """
    X, y = load_real(set)
    rng = np.random.default_rng(zlib.crc32(f"{set} {share:g} {draw}".encode()))
    chosen = np.sort(rng.choice(len(y), max(3, round(share * len(y))), replace=False))
    return _scored(X, y, links_among(chosen, y), group, draw)


def hard_pairs_trial(draw: int, set: str, share: float, group: str) -> list[Row]:
    """As many hard links as there are pairs among 5 % or 10 % of the rows, drawn among all rows.

    This is how the authors of PCCC draw their links (PCCC-Data, ``generate_hard_constraints``, after
    Gonzalez-Almagro et al. 2020): s n (s n - 1) / 2 pairs of n rows. With s = 10 % a row of a set of 400 is
    in four links on average, so that links imply most others; with 5 % it is in one. At most 400 rows of a
    real set; otherwise as :func:`hard_groups_trial`.

    Parameters
    ----------
    draw : int
        Fixes the pairs, whatever the group is, and the starts.
    set : str
        A name in :data:`experiments.leaderboard.real_sets.REAL_SETS`.
    share : float
        Share of the rows among which there would be as many pairs.
    group : str
        A name in ``GROUPS``.

    Returns
    -------
    list of dict
        As :func:`hard_groups_trial`.

    Examples
    --------
    >>> from experiments.leaderboard.hard_groups import hard_pairs_trial
    >>> rows = hard_pairs_trial(0, "wine", 0.1, "k-means with links")
    >>> [(row["method"], row["broken"], row["ari"] > 0.9) for row in rows]
    [('COPKMeans', 0, True), ('MPCKMeans', 0, True)]
    """
    X, y = load_real(set, PAIR_ROWS)
    rng = np.random.default_rng(zlib.crc32(f"{set} {share:g} {draw} pairs".encode()))
    n_rows = max(3, round(share * len(y)))
    links = Constraints.sample(y, n_rows * (n_rows - 1) // 2, overlap=True, random_state=rng)
    return _scored(X, y, links, group, draw)


def _scored(
    X: NDArray[np.float64], y: NDArray[np.int64], links: Constraints, group: str, seed: int
) -> list[Row]:
    """Scores of the clusterings of a group under hard links."""
    free = np.ones(len(y), dtype=bool)
    free[links.pairs] = False
    rows: list[Row] = []
    for name in GROUPS[group]:
        found = _clustered(name, X, len(np.unique(y)), seed, links)
        if found.labels is None:
            rows.append({"method": name, "problem": found.problem})
            continue
        row: Row = {
            "method": name,
            "ari": float(adjusted_rand_score(y, found.labels)),
            "ari_unlinked": float(adjusted_rand_score(y[free], found.labels[free])),
            "seconds": found.seconds,
        }
        if name not in WITHOUT_LINKS:
            row["broken"] = int(links.violations(found.labels).sum())
        rows.append(row)
    return rows


def _clustered(name: str, X: NDArray[np.float64], k: int, seed: int, links: Constraints) -> Clustered:
    if name in METHODS:
        return cluster(METHODS[name], X, k, seed, links)
    if name in WITHOUT_LINKS:
        return cluster(WITHOUT_LINKS[name], X, k, seed, None)
    try:
        return Clustered(*pccc_labels(X, k, links, seed, REPOSITIONING[name]))
    except DataMissing:
        raise
    except Exception as error:
        return Clustered(None, 0.0, f"{type(error).__name__}: {str(error)[:200]}")


EXPERIMENTS = tuple(
    Experiment(
        name,
        title,
        "beyond the papers",
        trial,
        quick=Size(
            [
                {"set": name, "share": 0.1, "group": group}
                for group, name in product(GROUPS, ("iris", "wine", "soybean_small"))
            ],
            1,
        ),
        full=Size(
            [
                {"set": name, "share": share, "group": group}
                for group, share, name in product(GROUPS, SHARES, REAL_SETS)
            ],
            2,
        ),
        measures=("ari", "ari_unlinked", "broken", "seconds"),
        texts=("problem",),
    )
    for name, title, trial in (
        (
            "hard_groups",
            "All pairs among a few rows are hard links, which no clustering may break",
            hard_groups_trial,
        ),
        (
            "hard_pairs",
            "As many hard links as pairs among 5 % or 10 % of the rows, drawn among all rows",
            hard_pairs_trial,
        ),
    )
)
