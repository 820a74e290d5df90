"""The loop of HMRF-KMeans: assign, move centres, move the metric; no step raises the objective."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from linkwise._arrays import Floats, Ints
from linkwise.kmeans.assignment import (
    LinkedLabels,
    WeightedLinks,
    assign_linked,
    link_costs,
    violation_costs,
)
from linkwise.kmeans.distortions.base import AssignmentPass, Distortion, Metric, ViolatedLinks

# Decrease that counts as none when the labels repeat, as a share of what rows pay for their clusters.
_ROUNDING = 1e-12
# Rise of the objective, as a share of what it is made of, that shows that a step has drowned in rounding.
_RISE = 1e-12
# Starts that end this near to each other, as a share of the objective, have met: the first of them is kept.
_MEETING = 1e-10


class Run(NamedTuple):
    """Where a descent ended: objectives, rows (K,) of each cluster, reseeds, and assignment steps."""

    labels: Ints
    centres: Floats
    metric: Metric
    history: list[float]
    n_iter: int
    converged: bool
    n_reseeds: int
    counts: Floats
    assignments: list[Any]


def ended_lower(run: Run, best: Run | None) -> bool:
    """Whether a run is the best so far; rounding, which units and threads change, does not decide."""
    if best is None:
        return True
    lowest = best.history[-1]
    margin = _MEETING * abs(lowest) if np.isfinite(lowest) else 0.0
    return run.history[-1] < lowest - margin


def _rises(reached: float, before: float, size: float) -> bool:
    """Whether the objective, a sum of numbers of this ``size``, went up by more than rounding."""
    return bool(reached - before > _RISE * (abs(before) + size))


class Descent:
    """Block descent on the objective of HMRF-KMeans (Bilenko & Basu 2004, Fig. 2)."""

    def __init__(
        self,
        distortion: Distortion,
        rows: Any,
        links: WeightedLinks | None,
        penalty: str,
        inference: str | Callable[..., Any],
        *,
        options: Mapping[str, Any] | None = None,
        n_threads: int = 1,
        want_bound: bool = False,
    ) -> None:
        self.distortion = distortion
        self.rows = rows
        self.links = links
        self.linked_rows = None if links is None else rows.take(links.rows)
        self.penalty = penalty
        self.inference = inference
        self.options = options
        self.n_threads = n_threads
        self.want_bound = want_bound

    def run(
        self, start: Floats, rng: np.random.Generator, *, tol: float, max_iter: int, verbose: int = 0
    ) -> Run:
        """Alternate from centres (K, d) until labels repeat or the objective falls by less than ``tol``."""
        distortion, rows = self.distortion, self.rows
        centres = start.copy()
        metric = distortion.start_metric(rows)
        coupling = self._coupling(metric)
        last: AssignmentPass | None = None
        history: list[float] = []
        assignments: list[LinkedLabels] = []
        n_reseeds, converged, n_iter = 0, False, 0
        while True:
            answer, found = self._assign(centres, metric, coupling, last, rng)
            if answer is not None:
                assignments.append(answer)
            refounded, n_moved = centres.copy(), 0
            if (found.counts == 0).any():
                found, n_moved = self._fill_empty(found, refounded, metric, coupling)
            reached = self._objective(found.paid, found.labels, metric, coupling)
            size = found.size
            if last is not None and _rises(reached, history[-1], size):
                # Nothing but rounding is left: labels, centres and objective stay what they were.
                history.append(history[-1])
                converged = True
                break
            history.append(reached)
            centres, n_reseeds, counts = refounded, n_reseeds + n_moved, found.counts
            repeated = last is not None and found.repeats(last)
            last, labels = found, found.labels
            if verbose:
                print(f"  iteration {n_iter}: objective {history[-1]:.8g}", flush=True)
            # The last pass is made with the final centres, so that labels and centres agree.
            if converged or n_iter == max_iter:
                break
            n_iter += 1
            moved, within = distortion.move_centres(rows, found, centres, metric)
            reached = self._objective(distortion.within_cost(within, metric), labels, metric, coupling)
            if _rises(reached, history[-1], size):
                history += [history[-1]] * 3
                converged = True
                break
            history.append(reached)
            centres = moved
            if metric is not None:
                learned = distortion.move_metric(rows, within, self._violated(labels), metric)
                new_coupling = self._coupling(learned)
                paid = distortion.within_cost(within, learned)
                reached = self._objective(paid, labels, learned, new_coupling)
                if not _rises(reached, history[-1], size):
                    metric, coupling = learned, new_coupling
                else:
                    reached = history[-1]
            history.append(reached)
            fall = history[-4] - history[-1] if n_iter > 1 else np.inf
            least = max(tol, _ROUNDING) if repeated else tol
            # Written so that an infinite objective, where a hard link could not be kept, ends the loop.
            converged = not fall > least * size
        return Run(labels, centres, metric, history, n_iter, converged, n_reseeds, counts, assignments)

    def _coupling(self, metric: Metric) -> Floats:
        """Signed costs of the links under a metric."""
        if self.links is None:
            return np.empty(0)
        return link_costs(self.links, self.distortion, self.rows, metric, self.penalty)

    def _violated(self, labels: Ints) -> ViolatedLinks:
        """Violated links whose cost depends on the metric."""
        if self.links is None or self.penalty == "constant":
            nothing, no_pairs = np.empty(0), np.empty((0, 2), dtype=np.int64)
            return ViolatedLinks(no_pairs, nothing.astype(np.bool_), nothing, no_pairs)
        return self.links.violated_links(labels)

    def _objective(self, paid: float, labels: Ints, metric: Metric, coupling: Floats) -> float:
        """What rows pay for their clusters, the violated links, and the metric's own term."""
        total = paid + self.distortion.metric_term(self.rows, metric)
        if self.links is not None:
            violated, ends = self.links.violated(labels), labels[self.links.pairs]
            total += float(violation_costs(coupling, violated, ends).sum())
        return total

    def _assign(
        self,
        centres: Floats,
        metric: Metric,
        coupling: Floats,
        last: AssignmentPass | None,
        rng: np.random.Generator,
    ) -> tuple[LinkedLabels | None, AssignmentPass]:
        """Labels for these centres and this metric: linked rows together, the others one by one."""
        answer, given = self._assign_linked(centres, metric, coupling, last, rng), None
        if self.links is not None and answer is not None:
            given = np.full(len(self.rows), -1, dtype=np.int64)
            given[self.links.rows] = answer.labels
        return answer, self.distortion.assign(self.rows, centres, metric, given, self.n_threads)

    def _assign_linked(
        self,
        centres: Floats,
        metric: Metric,
        coupling: Floats,
        last: AssignmentPass | None,
        rng: np.random.Generator,
    ) -> LinkedLabels | None:
        """Labels of the linked rows, found together; None without links."""
        if self.links is None:
            return None
        return assign_linked(
            self.links,
            self.distortion.distances(self.linked_rows, centres, metric),
            coupling,
            self.inference,
            None if last is None else last.labels[self.links.rows],
            rng,
            options=self.options,
            n_threads=self.n_threads,
            want_bound=self.want_bound,
        )

    def _fill_empty(
        self, found: AssignmentPass, centres: Floats, metric: Metric, coupling: Floats
    ) -> tuple[AssignmentPass, int]:
        """Let the row that lowers the objective most found each empty cluster; changes ``centres``."""
        labels, cost, counts = found.labels.copy(), found.cost.copy(), found.counts.copy()
        n_moved = 0
        for cluster in np.flatnonzero(counts == 0).tolist():
            extra, newly_broken = self._moving_cost(labels, coupling, cluster)
            gain = np.where(counts[labels] > 1, cost - extra, -np.inf)
            # Hard links come first, whatever the rest costs; among moves that break equally many, the gain.
            fewest = newly_broken[counts[labels] > 1].min()
            row = np.array([np.where(newly_broken == fewest, gain, -np.inf).argmax()])
            alone = self.rows.take(row)
            trial = centres.copy()
            trial[cluster] = self.distortion.group_centres(alone, np.zeros(1, dtype=np.int64), 1)[0]
            price = float(self.distortion.distances(alone, trial, metric)[0, cluster])
            if fewest > 0 or (fewest == 0 and gain[row[0]] <= price + _ROUNDING * abs(cost.max())):
                continue
            counts[labels[row]] -= 1.0
            labels[row], cost[row], centres[cluster] = cluster, price, trial[cluster]
            n_moved += 1
        if n_moved:
            found = self.distortion.assign(self.rows, centres, metric, labels, self.n_threads)
        return found, n_moved

    def _moving_cost(self, labels: Ints, coupling: Floats, cluster: int) -> tuple[Floats, Ints]:
        """What moving each row to an empty cluster costs its soft links (n,), and hard links broken (n,)."""
        extra, newly_broken = np.zeros(len(labels)), np.zeros(len(labels), dtype=np.int64)
        if self.links is None:
            return extra, newly_broken
        links, hard = self.links, np.isinf(self.links.weight)
        soft_coupling = np.where(hard if coupling.ndim == 1 else hard[:, np.newaxis], 0.0, coupling)
        ends, violated = labels[links.pairs], links.violated(labels)
        before = violation_costs(soft_coupling, violated, ends)
        for place in range(2):
            moved = ends.copy()
            moved[:, place] = cluster
            after = violation_costs(soft_coupling, links.must, moved)
            np.add.at(extra, links.pairs[:, place], after - before)
            # In an empty cluster a row breaks its must-links and keeps its cannot-links.
            turned = np.where(hard, links.must.astype(np.int64) - violated, 0)
            np.add.at(newly_broken, links.pairs[:, place], turned)
        return extra, newly_broken
