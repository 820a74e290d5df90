"""K-means under hard links: assign, move centres; no step raises the inertia or breaks a link."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from linkwise._arrays import Bools, Floats, Ints
from linkwise.kmeans.descent import Run
from linkwise.kmeans.distortions.base import AssignmentPass
from linkwise.kmeans.distortions.euclidean import EuclideanRows, SquaredEuclidean
from linkwise.kmeans.hard import HardLinks
from linkwise.kmeans.hard.assignment import ChunkletLabels, assign_chunklets

# Share of the time limit for labels that are proven best; the rest is for good labels in later steps.
_PROOF_SHARE = 0.8
# ... and for those of one step; a proof that failed once is not tried again. On the dense links of
# benchmarks/hard_links.py (limit 30 s) fits take 2 to 3 s in place of 19 to 38, and inertias differ by .6 %
# at most, either way. Four of these five cases are not proven in all the time there is either.
_STEP_SHARE = 0.05
# Seconds after the limit in which the iterations may settle.
_GRACE = 1.0
# Moves of the centres that a run makes all the same: centres that have hardly moved are no clustering.
_LEAST_MOVES = 3


class _Chunklets(NamedTuple):
    """What distances of chunklets follow from: size |mean - centre|^2 + a constant."""

    means: EuclideanRows
    sizes: Floats
    first_rows: Ints

    def cost(self, distortion: SquaredEuclidean, centres: Floats) -> Floats:
        """Cost of each chunklet in each cluster, (g, K), without the constant."""
        return distortion.distances(self.means, centres, None) * self.sizes[:, np.newaxis]


def time_is_over(search_seconds: float, time_limit: float) -> bool:
    """Whether a fit that spent so many seconds on labels of linked rows has to end."""
    return search_seconds >= time_limit + _GRACE


def run_hard_descent(
    distortion: SquaredEuclidean,
    rows: EuclideanRows,
    links: HardLinks | None,
    start: Floats,
    *,
    tol: float,
    max_iter: int,
    time_limit: float = 30.0,
    search_seconds: float = 0.0,
    hopeless: Bools | None = None,
    n_threads: int = 1,
    verbose: int = 0,
) -> Run:
    """Iterate from centres (K, d) until the labels repeat, the centres hardly move or the time is over.

    ``tol`` is on the sum of squared moves. ``time_limit`` seconds are for labels of linked rows,
    ``search_seconds`` of it are gone. ``hopeless`` (g,): see ``assign_chunklets``; None remembers nothing.
    """
    chunklets = None if links is None else _contract(distortion, rows, links)
    centres = start.copy()
    labels: Ints | None = None
    history: list[float] = []
    assignments: list[ChunkletLabels] = []
    n_iter, n_reseeds, shift = 0, 0, np.inf
    while True:
        given = None
        if links is not None and chunklets is not None:
            before = None if labels is None else labels[chunklets.first_rows]
            answer = assign_chunklets(
                links,
                chunklets.cost(distortion, centres),
                before,
                time_limit=_PROOF_SHARE * time_limit - search_seconds,
                late_seconds=(1.0 - _PROOF_SHARE) * time_limit,
                proof_seconds=_STEP_SHARE * time_limit,
                hopeless=hopeless,
            )
            assignments.append(answer)
            search_seconds += answer.search_seconds
            given = np.full(len(rows), -1, dtype=np.int64)
            given[links.rows] = answer.labels[links.chunklet]
        found = distortion.assign(rows, centres, None, given, n_threads)
        n_moved = 0
        # At the last pass there is no move of the centres left to go with new clusters.
        if n_iter < max_iter and (found.counts == 0).any():
            found, n_moved = _fill_empty(distortion, rows, links, chunklets, centres, found, n_threads)
            n_reseeds += n_moved
        history.append(float(found.cost.sum()))
        if verbose:
            print(f"  iteration {n_iter}: inertia {history[-1]:.8g}", flush=True)
        repeated = labels is not None and np.array_equal(labels, found.labels)
        labels = found.labels
        # This pass was made with the final centres, so that labels and centres agree.
        converged = repeated or (shift <= tol and n_moved == 0)
        stopped = n_iter >= _LEAST_MOVES and time_is_over(search_seconds, time_limit)
        if converged or n_iter == max_iter or stopped:
            return Run(
                labels, centres, None, history, n_iter, converged, n_reseeds, found.counts, assignments
            )
        n_iter += 1
        moved, within = distortion.move_centres(rows, found, centres, None)
        history.append(distortion.within_cost(within, None))
        shift = float(((moved - centres) ** 2).sum())
        centres = moved


def _contract(distortion: SquaredEuclidean, rows: EuclideanRows, links: HardLinks) -> _Chunklets:
    means = distortion.group_centres(rows.take(links.rows), links.chunklet, len(links.sizes))
    first = np.unique(links.chunklet, return_index=True)[1]
    return _Chunklets(EuclideanRows(means), links.sizes.astype(np.float64), links.rows[first])


def _fill_empty(
    distortion: SquaredEuclidean,
    rows: EuclideanRows,
    links: HardLinks | None,
    chunklets: _Chunklets | None,
    centres: Floats,
    found: AssignmentPass,
    n_threads: int,
) -> tuple[AssignmentPass, int]:
    """Let the row or whole chunklet that gains most found each empty cluster; ``centres`` change in place."""
    labels, counts = found.labels.copy(), found.counts.copy()
    gain, sizes = found.cost.copy(), np.ones(len(rows))
    if links is not None and chunklets is not None:
        # The first row stands for its chunklet.
        gain[links.rows] = -np.inf
        cost = chunklets.cost(distortion, centres)
        gain[chunklets.first_rows] = cost[np.arange(len(cost)), labels[chunklets.first_rows]]
        sizes[chunklets.first_rows] = chunklets.sizes
    rounding = len(rows.mean) * (16 * np.finfo(float).eps * np.abs(rows.X).max()) ** 2
    n_moved = 0
    for cluster in np.flatnonzero(counts == 0).tolist():
        worth = np.where(counts[labels] > sizes, gain, -np.inf)
        founder = int(worth.argmax())
        if not worth[founder] > rounding * sizes[founder]:
            break
        members = np.array([founder])
        if links is not None:
            place = np.searchsorted(links.rows, founder)
            if place < len(links.rows) and links.rows[place] == founder:
                members = links.rows[links.chunklet == links.chunklet[place]]
        counts[labels[founder]] -= len(members)
        counts[cluster] = len(members)
        labels[members] = cluster
        centres[cluster] = rows.X[members].mean(axis=0)
        n_moved += 1
    if n_moved:
        found = distortion.assign(rows, centres, None, labels, n_threads)
    return found, n_moved
