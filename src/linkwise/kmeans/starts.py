"""First centres: from groups that links join and separate, completed by rows far apart."""

from __future__ import annotations

from typing import Any

import numpy as np

from linkwise._arrays import Floats, Ints
from linkwise.constraints.groups import choose_far_apart, groups_apart
from linkwise.kmeans.distortions.base import Distortion

# Rows that the search for missing centres looks at; more do not make it better.
_SAMPLE = 32768


def start_centres(
    distortion: Distortion,
    rows: Any,
    n_clusters: int,
    must_link: Ints,
    rng: np.random.Generator,
    *,
    cannot_link: Ints | None = None,
    largest_first: bool = True,
) -> Floats:
    """Choose the first centres (K, d) from links: those of Basu, Bilenko & Mooney 2004, and cannot-links.

    Of at least K neighbourhoods ``choose_far_apart`` takes K, from the largest one on, or for restarts drawn.
    Fewer are all taken, then rows that cannot-links separate from all of them; the rest is k-means++.
    """
    nothing = np.empty((0, 2), dtype=np.int64)
    members, groups, n_neighbourhoods, apart = groups_apart(
        must_link, nothing if cannot_link is None else cannot_link
    )
    if n_neighbourhoods >= n_clusters:
        kept = groups < n_neighbourhoods
        members, groups, apart = members[kept], groups[kept], apart[apart[:, 1] < n_neighbourhoods]
    if len(members) == 0:
        first_row = rng.integers(len(rows), size=1)
        centres = distortion.group_centres(rows.take(first_row), np.zeros(1, dtype=np.int64), 1)
        return _add_distant(distortion, rows, centres, n_clusters, rng)
    sizes = np.bincount(groups).astype(np.float64)
    centres = distortion.group_centres(rows.take(members), groups, len(sizes))
    as_rows = distortion.rows_of_centres(centres)

    def to_group(group: int) -> Floats:
        # The root makes a distance of a distortion, as it does of a squared distance.
        return np.sqrt(np.maximum(distortion.distances(as_rows, centres[[group]], None)[:, 0], 0.0))

    if 0 < n_neighbourhoods <= n_clusters:
        first = list(range(n_neighbourhoods))
    elif n_neighbourhoods and largest_first:
        first = [int(sizes.argmax())]
    else:
        first = [int(rng.choice(len(sizes), p=sizes / sizes.sum()))]
    chosen = choose_far_apart(
        to_group,
        sizes,
        n_clusters,
        first,
        apart=apart,
        only_apart=n_neighbourhoods < n_clusters,
        rng=None if largest_first else rng,
    )
    return _add_distant(distortion, rows, centres[chosen], n_clusters, rng)


def _add_distant(
    distortion: Distortion, rows: Any, centres: Floats, n_clusters: int, rng: np.random.Generator
) -> Floats:
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
