"""Constrained EM under the protocol of teachers (Shental et al. 2003, figure 5)."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans, kmeans_plusplus

from linkwise.cluster.cop_kmeans import COPKMeans
from linkwise.constraints import Constraints
from linkwise.experiments.leaderboard_data import load_set
from linkwise.metrics import pairwise_f1
from linkwise.mixture.constrained_em import ConstrainedEM

__all__ = ["ALGORITHMS", "six_algorithms", "teachers", "teachers_links"]

Table = tuple[list[str], list[list[Any]]]

#: The six algorithms of the paper; + with must-links alone, +- with both kinds.
ALGORITHMS = ("k-means", "COP +", "COP +-", "EM", "EM +", "EM +-")


def teachers(
    sets: tuple[str, ...] = ("iris", "wine", "balance_scale", "ionosphere", "protein116"),
    shares: tuple[float, ...] = (0.15, 0.3),
    n_draws: int = 20,
    subset_size: int = 10,
) -> Table:
    """Pairwise F of six algorithms when teachers sort 15 % and 30 % of the points.

    The names of the paper's five sets are not readable; these are the likely ones. Features are prepared as
    for the leaderboard. All k-means start from the same centres and all mixtures from the same labels, which
    ignore the links, as in the paper.

    Parameters
    ----------
    sets : tuple of str
        Names in :data:`linkwise.experiments.leaderboard_data.SETS`.
    shares : tuple of float
        Share of the points that teachers see; subsets may overlap.
    n_draws : int
    subset_size : int
        Points of each teacher; the paper does not say.

    Returns
    -------
    head, rows
        Set, share, mean F of the algorithms, and two differences with their standard errors: EM + to EM and
        EM +- to EM +.

    Examples
    --------
    >>> from linkwise.experiments.teachers import teachers
    >>> head, rows = teachers(("iris",), (0.3,), n_draws=2)
    >>> head[2:8]
    ['k-means', 'COP +', 'COP +-', 'EM', 'EM +', 'EM +-']
    """
    rows: list[list[Any]] = []
    for name in sets:
        X, y = load_set(name, n_rows=400)
        for share in shares:
            scores = np.array(
                [
                    six_algorithms(X, y, teachers_links(y, share, subset_size, draw), draw)
                    for draw in range(n_draws)
                ]
            )
            rows.append([name, share, *scores.mean(axis=0).tolist(), *gains(scores)])
    return ["set", "share", *ALGORITHMS, "gain of +", "error", "gain of -", "error of -"], rows


def gains(scores: NDArray[np.float64]) -> list[float]:
    """Mean gains of EM by must-links and then by cannot-links, each with its standard error.

    Parameters
    ----------
    scores : (n_draws, 6)
        In the order of ``ALGORITHMS``.

    Returns
    -------
    list of four floats
    """
    plain, positive, both = scores[:, 3:].T
    summary: list[float] = []
    for gain in (positive - plain, both - positive):
        summary += [float(gain.mean()), float(gain.std(ddof=1) / np.sqrt(len(gain)))]
    return summary


def teachers_links(y: NDArray[Any], share: float, subset_size: int, seed: int) -> Constraints:
    """Links of as many teachers as it takes to show them a share of the points.

    Parameters
    ----------
    y : (n,) array
    share : float
    subset_size : int
    seed : int

    Returns
    -------
    Constraints

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise.experiments.teachers import teachers_links
    >>> teachers_links(np.repeat([0, 1], 50), 0.1, 10, seed=0).n_pairs
    45
    """
    n_teachers = max(1, round(share * len(y) / subset_size))
    return Constraints.from_teachers(y, n_teachers, subset_size, random_state=seed)


def six_algorithms(
    X: NDArray[np.float64], y: NDArray[Any], links: Constraints, seed: int, **mixture: Any
) -> list[float]:
    """Pairwise F of the six algorithms on all rows.

    Parameters
    ----------
    X : (n, d)
    y : (n,) array
    links : Constraints
        Hard.
    seed : int
        Of the starts.
    **mixture
        Settings of ConstrainedEM.

    Returns
    -------
    list of six floats

    Examples
    --------
    >>> from linkwise.datasets import load_bundled
    >>> from linkwise.experiments.teachers import six_algorithms, teachers_links
    >>> X, y = load_bundled("iris")
    >>> scores = six_algorithms(X, y, teachers_links(y, 0.3, 10, seed=0), seed=0)
    >>> scores[4] > scores[0]
    True
    """
    n_clusters = len(np.unique(y))
    centres, _ = kmeans_plusplus(X, n_clusters, random_state=seed)
    positive = Constraints(len(y), links.must_link)
    with warnings.catch_warnings():
        # Single starts from common centres need not converge, and large groups of teachers are approximated.
        warnings.simplefilter("ignore", UserWarning)
        found = [KMeans(n_clusters, init=centres, n_init=1).fit(X).labels_]
        for hard in (positive, links):
            hard_means = COPKMeans(n_clusters, init=centres, time_limit=5.0)
            found.append(hard_means.fit(X, constraints=hard).labels_)
        for known in (None, positive, links):
            model = ConstrainedEM(n_clusters, init_params="kmeans", random_state=seed, **mixture)
            found.append(model.fit(X, constraints=known).labels_)
    return [pairwise_f1(y, labels) for labels in found]
