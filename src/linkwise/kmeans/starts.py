"""First centres: from groups of must-linked rows, and from rows far apart where there are too few groups."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise._neighbourhoods import choose_far_apart, neighbourhoods
from linkwise.kmeans.distortions.base import Distortion

__all__ = ["start_centres"]

# Rows that the search for missing centres looks at; more do not make it better.
_SAMPLE = 32768


def start_centres(
    distortion: Distortion,
    rows: Any,
    n_clusters: int,
    must_link: NDArray[np.int64],
    rng: np.random.Generator,
    *,
    largest_first: bool = True,
) -> NDArray[np.float64]:
    """Choose the first centres (K, d) as Basu, Bilenko & Mooney 2004 do.

    Of at least K neighbourhoods, ``choose_far_apart`` takes K: from the largest one on, or for restarts from
    one drawn in proportion to size. Fewer are all taken and completed by k-means++.
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
    """Complete centres to K by k-means++ on a sample of the rows, the best of a few draws each time."""
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
