"""First centres: from groups of must-linked rows, and from rows far apart where there are too few groups."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.graph import group_labels
from linkwise.kmeans.distortions.base import Distortion

__all__ = ["choose_far_apart", "neighbourhoods", "start_centres"]

# Rows that the search for missing centres looks at; more do not make it better.
_SAMPLE = 32768


def neighbourhoods(
    n_samples: int, must_link: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """Groups of at least two rows joined by must-links.

    Parameters
    ----------
    n_samples : int
    must_link : (m, 2) int64

    Returns
    -------
    members : (c,) int64
        Rows that are in some group.
    groups : (c,) int64
        The group of each of them.
    n_groups : int

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise.kmeans.starts import neighbourhoods
    >>> neighbourhoods(6, np.array([[1, 4], [4, 5]]))
    (array([1, 4, 5]), array([0, 0, 0]), 1)
    """
    labels, _ = group_labels(n_samples, must_link)
    members = np.unique(must_link)
    kept, groups = np.unique(labels[members], return_inverse=True)
    return members, groups.astype(np.int64), len(kept)


def choose_far_apart(
    distances: Any, sizes: NDArray[np.float64], n_chosen: int, first: int
) -> NDArray[np.int64]:
    """Weighted farthest-first traversal: large groups far from those already chosen.

    Each next group maximises, over the nearest chosen group, distance times the root of both sizes; of equals
    the first.

    Parameters
    ----------
    distances : callable
        ``g -> (n_groups,)`` distances of all groups to group g.
    sizes : (n_groups,)
    n_chosen : int
    first : int

    Returns
    -------
    (n_chosen,) int64

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise.kmeans.starts import choose_far_apart
    >>> place = np.array([0.0, 1.0, 5.0, 5.5])
    >>> choose_far_apart(lambda g: np.abs(place - place[g]), np.array([3.0, 2.0, 4.0, 2.0]), 2, first=0)
    array([0, 2])
    """
    chosen = [first]
    gap = np.full(len(sizes), np.inf)
    while len(chosen) < n_chosen:
        last = chosen[-1]
        gap = np.minimum(gap, distances(last) * np.sqrt(sizes * sizes[last]))
        gap[chosen] = -1.0
        chosen.append(int(gap.argmax()))
    return np.array(chosen, dtype=np.int64)


def start_centres(
    distortion: Distortion,
    rows: Any,
    n_clusters: int,
    must_link: NDArray[np.int64],
    rng: np.random.Generator,
    *,
    largest_first: bool = True,
) -> NDArray[np.float64]:
    """Centres to start from (Basu, Bilenko & Mooney 2004).

    Of at least K neighbourhoods, those that ``choose_far_apart`` finds; of fewer, all, completed by rows
    drawn as in k-means++: with probability proportional to the distortion to the nearest centre, the best of
    a few draws each time.

    Parameters
    ----------
    distortion : Distortion
    rows : Any
        Rows of the distortion.
    n_clusters : int
    must_link : (m, 2) int64
    rng : numpy.random.Generator
    largest_first : bool, default=True
        Start from the largest neighbourhood; otherwise from one drawn in proportion to size, for restarts.

    Returns
    -------
    (K, d)
    """
    members, groups, n_groups = neighbourhoods(len(rows), must_link)
    if n_groups == 0:
        first = rng.integers(len(rows), size=1)
        centres = distortion.group_centres(rows.take(first), np.zeros(1, dtype=np.int64), 1)
        return _add_distant(distortion, rows, centres, n_clusters, rng)
    sizes = np.bincount(groups, minlength=n_groups).astype(np.float64)
    centres = distortion.group_centres(rows.take(members), groups, n_groups)
    if n_groups > n_clusters:
        as_rows = distortion.rows_of_centres(centres)

        def to_group(group: int) -> NDArray[np.float64]:
            # The root makes a distance of a distortion, as it does of a squared distance.
            return np.sqrt(np.maximum(distortion.distances(as_rows, centres[[group]], None)[:, 0], 0.0))

        first_group = int(sizes.argmax() if largest_first else rng.choice(n_groups, p=sizes / sizes.sum()))
        centres = centres[choose_far_apart(to_group, sizes, n_clusters, first_group)]
    return _add_distant(distortion, rows, centres, n_clusters, rng)


def _add_distant(
    distortion: Distortion,
    rows: Any,
    centres: NDArray[np.float64],
    n_clusters: int,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Complete centres to K by k-means++ on a sample of the rows."""
    if len(centres) == n_clusters:
        return centres
    if len(rows) > _SAMPLE:
        rows = rows.take(rng.choice(len(rows), size=_SAMPLE, replace=False))
    n_trials = 2 + int(np.log(n_clusters))
    nearest = distortion.distances(rows, centres, None).min(axis=1)
    while len(centres) < n_clusters:
        potential = np.maximum(nearest, 0.0)
        total = potential.sum()
        chance = potential / total if total > 0.0 else None
        drawn = rng.choice(len(rows), size=n_trials, p=chance)
        candidates = distortion.group_centres(rows.take(drawn), np.arange(n_trials), n_trials)
        left = np.minimum(distortion.distances(rows, candidates, None), nearest[:, np.newaxis])
        best = int(left.sum(axis=0).argmin())
        centres = np.vstack([centres, candidates[best]])
        nearest = left[:, best]
    return centres
