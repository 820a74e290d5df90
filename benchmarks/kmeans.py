"""The K-means family: the assignment step beside HiGHS, whole fits beside an installable package, and alone.

Links are true ones at unit cost; F is the pairwise F of all rows, the mean over as many random starts as
stand in brackets. The package active-semi-supervised-clustering (the peer) runs in a process of its own that
is stopped at a time limit.
"""

from __future__ import annotations

import multiprocessing
import queue
import resource
import time
import warnings
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import minimum_spanning_tree
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from benchmarks._table import Measured, Table
from benchmarks._targets import TARGETS
from benchmarks._timing import best_of, in_child, one_line, peak_mebibytes
from linkwise import Constraints
from linkwise.inference import PottsField
from linkwise.inference.local_polytope import solve_relaxation
from linkwise.inference.problem import reduce_field
from linkwise.kmeans.assignment import assign_linked, link_costs, weighted_links
from linkwise.kmeans.cop_kmeans import COPKMeans
from linkwise.kmeans.distortions import make_distortion
from linkwise.kmeans.variants import MPCKMeans, PCKMeans
from linkwise.metrics import pairwise_f1

E_STEP_ROWS, E_STEP_LINKS = 100_000, 10_000
#: Rows, and random starts.
FITS = ((1_000, 8), (10_000, 4), (100_000, 1))
TARGET_ROWS = 10_000
#: The peer is not asked for more.
PEER_ROWS = 10_000
# Seconds, on the wall clock, after which a fit of the peer is stopped.
PATIENCE, START_UP_PATIENCE = 60.0, 60.0
FEATURES, CLUSTERS = 10, 10
NAMES = ("PCKMeans", "MPCKMeans", "COPKMeans")


def _data(n_samples: int, n_links: int) -> tuple[Any, Any, Constraints]:
    """Overlapping clusters and true links of weight 1."""
    rng = np.random.default_rng(0)
    centres = 1.2 * rng.normal(size=(CLUSTERS, FEATURES))
    y = rng.integers(CLUSTERS, size=n_samples)
    X = centres[y] + rng.normal(size=(n_samples, FEATURES))
    hard = Constraints.sample(y, n_links, overlap=True, random_state=0)
    return X, y, Constraints(n_samples, hard.must_link, hard.cannot_link, weight=1.0)


def _forest(pairs: Any, n_samples: int) -> Any:
    """Which pairs make a spanning forest of the links."""
    numbers = np.arange(1, len(pairs) + 1)
    tree = minimum_spanning_tree(csr_array((numbers, pairs.T), shape=(n_samples, n_samples)))
    return tree.data.astype(np.int64) - 1


def _e_step_row(forest: bool) -> tuple[list[Any], float, float]:
    """Cells, ratio, and relative gap between our cost and the bound of the LP."""
    X, y, constraints = _data(E_STEP_ROWS, E_STEP_LINKS)
    # Some links are wrong, so that they pull against the data.
    rng = np.random.default_rng(1)
    pairs = constraints.pairs
    together = (rng.random(len(pairs)) >= 0.05) == (constraints.weights > 0)
    if forest:
        kept = _forest(pairs, len(X))
        pairs, together = pairs[kept], together[kept]
    links = weighted_links(Constraints(len(X), pairs[together], pairs[~together], weight=1.0), 1.0, 1.0)
    distortion = make_distortion("euclidean", "diag", CLUSTERS)
    rows = distortion.rows(X)
    linked_rows = rows.take(links.rows)
    metric = distortion.start_metric(rows)
    centres = distortion.group_centres(rows, y, CLUSTERS)
    unary = distortion.distances(linked_rows, centres, metric)
    coupling = link_costs(links, distortion, rows, metric, "distance")
    field = PottsField(-unary, links.local, coupling)

    def e_step() -> Any:
        unary = distortion.distances(linked_rows, centres, metric)
        coupling = link_costs(links, distortion, rows, metric, "distance")
        answer = assign_linked(links, unary, coupling, "auto", None, np.random.default_rng(0))
        given = np.full(len(X), -1)
        given[links.rows] = answer.labels
        distortion.assign(rows, centres, metric, given, 1)
        return answer

    ours, answer = best_of(e_step, repeats=5, clock=time.process_time)
    reduction = reduce_field(field, keep_zero_in_component=False)
    # HiGHS works in a thread of its own: the time of this thread alone would leave it out.
    theirs, relaxed = best_of(
        lambda: solve_relaxation(reduction.problem), repeats=1, warm_up=False, clock=time.process_time
    )
    cost = -field.score(answer.labels)
    bound = np.nan if relaxed.upper_bound is None else -relaxed.upper_bound - reduction.constant
    aim = "" if forest else f" ({TARGETS['e-step']})"
    cells = [len(pairs), "a forest of them" if forest else "random", 1e3 * ours, 1e3 * theirs]
    cells += [f"{theirs / ours:.0f}{aim}", f"{cost:.6f}", f"{bound:.6f}", str(answer.optimal)]
    return cells, theirs / ours, float(abs(cost - bound) / abs(cost))


def e_step_table() -> Table:
    (some, ratio, _), (forest, _, gap) = (_e_step_row(forest) for forest in (False, True))
    return Table(
        f"Assignment step, {E_STEP_ROWS:,} x {FEATURES}, K = {CLUSTERS}, one thread",
        ["links", "", "linkwise ms", "HiGHS LP ms", "ratio", "cost of linked rows", "LP bound", "optimal"],
        [some, forest],
        "Processor time. The step assigns all rows, the LP those with links.",
        {"e-step": Measured(ratio), "forest gap": Measured(gap)},
    )


def _peer_fit(name: str, X: Any, must_link: Any, cannot_link: Any, n_seeds: int, results: Any) -> None:
    """Fit a class of the peer in a process of its own; tells first what starting up has cost."""
    try:
        from active_semi_clustering.semi_supervised import pairwise_constraints
    except Exception as error:  # whatever it raises is the answer of this row
        results.put(one_line(error))
        return
    results.put(time.process_time())
    for seed in range(n_seeds):
        np.random.seed(seed)  # noqa: NPY002  (the only way to seed it)
        with threadpool_limits(1):
            start = time.process_time()
            try:
                model = getattr(pairwise_constraints, name)(n_clusters=CLUSTERS)
                model.fit(X, ml=must_link, cl=cannot_link)
                results.put((time.process_time() - start, model.labels_, ""))
            except Exception as error:
                results.put((time.process_time() - start, None, one_line(error)))


def _children_seconds() -> float:
    """Processor time of all processes started here that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class PeerResult(NamedTuple):
    """Processor seconds of a fit (at least, if none came to an end), mean F, number of fits, or the error."""

    seconds: float = np.nan
    quality: float = np.nan
    n_fits: int = 0
    error: str = ""

    @property
    def text(self) -> str:
        """Seconds as they are shown."""
        return self.error or f"{'' if self.n_fits else '> '}{self.seconds:.3g}"


def _peer(name: str, X: Any, y: Any, links: Constraints, n_seeds: int) -> PeerResult:
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    pairs = [[tuple(pair) for pair in part.tolist()] for part in (links.must_link, links.cannot_link)]
    process = context.Process(target=_peer_fit, args=(name, X, *pairs, n_seeds, results))
    before = _children_seconds()
    process.start()
    fits: list[tuple[float, Any, str]] = []
    start_up = None
    try:
        start_up = results.get(timeout=START_UP_PATIENCE)
        deadline = time.monotonic() + PATIENCE
        while len(fits) < n_seeds and not isinstance(start_up, str):
            fits.append(results.get(timeout=max(deadline - time.monotonic(), 0.0)))
    except queue.Empty:
        process.terminate()
    process.join()
    if start_up is None or isinstance(start_up, str):
        return PeerResult(error=start_up or "does not start")
    if not fits:
        return PeerResult(_children_seconds() - before - start_up)
    done = [(seconds, pairwise_f1(y, labels)) for seconds, labels, _ in fits if labels is not None]
    if not done:
        return PeerResult(error=fits[0][2])
    seconds, qualities = zip(*done, strict=True)
    return PeerResult(float(np.median(seconds)), float(np.mean(qualities)), len(done))


def _fit(name: str, X: Any, links: Constraints, seed: int, n_jobs: int | None = None) -> Any:
    # With our defaults, as a user has them: more starts than the peer makes.
    settings: dict[str, Any] = {"random_state": seed, "n_jobs": n_jobs}
    if name == "PCKMeans":
        # The peer halves squared distances, as the paper does: its w = 1 is a weight of 2.
        return PCKMeans(CLUSTERS, weight=2.0, **settings).fit(X, constraints=links)
    if name == "MPCKMeans":
        return MPCKMeans(CLUSTERS, **settings).fit(X, constraints=links)
    hard = Constraints(len(X), links.must_link, links.cannot_link)
    return COPKMeans(CLUSTERS, **settings).fit(X, constraints=hard)


def fits_table() -> Table:
    rows: list[list[Any]] = []
    measured: dict[str, Measured] = {}
    for n_samples, n_seeds in FITS:
        X, y, links = _data(n_samples, n_samples // 20)
        for name in NAMES:
            fits = [
                best_of(partial(_fit, name, X, links, seed), repeats=1, warm_up=False, clock=time.thread_time)
                for seed in range(n_seeds)
            ]
            ours = float(np.median([seconds for seconds, _ in fits]))
            n_iter = np.mean([fitted.n_iter_ for _, fitted in fits])
            quality = float(np.mean([pairwise_f1(y, fitted.labels_) for _, fitted in fits]))
            cells = [name, f"{n_samples:,}", ours, f"{n_iter:.0f}", f"{quality:.3f} ({n_seeds})"]
            if n_samples > PEER_ROWS:
                rows.append([*cells, "", "", ""])
                continue
            peer = _peer(name, X, y, links, n_seeds)
            ratio = Measured(None if peer.error else peer.seconds / ours, not peer.n_fits, peer.error)
            peer_quality = f"{peer.quality:.3f} ({peer.n_fits})" if peer.n_fits else ""
            at_target = n_samples == TARGET_ROWS
            aim = f" ({TARGETS[f'{name} speed']})" if at_target and not peer.error else ""
            rows.append([*cells, peer.text, peer_quality, "" if peer.error else f"{ratio}{aim}"])
            if at_target:
                measured[f"{name} speed"] = ratio
            if peer.n_fits:
                measured[f"{name} F"] = Measured(quality - peer.quality)
            else:
                measured.setdefault(f"{name} F", Measured(reason=peer.error or "stopped"))
    return Table(
        f"Fits, {FEATURES} features, K = {CLUSTERS}, one link for every 20 rows, one thread",
        ["", "rows", "linkwise s", "iterations", "F", "peer s", "peer F", "ratio"],
        rows,
        "Processor time. Both have their defaults: ten starts of ours, one of the peer, which is stopped "
        f"after {PATIENCE:g} s on the wall clock and not asked for more than {PEER_ROWS:,} rows. The summary "
        "compares F at the largest size that it finishes.",
        measured,
    )


def _fit_memory(name: str, n_samples: int) -> float:
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        small, _, few = _data(1000, 50)
        _fit(name, small, few, 0)
        X, _, links = _data(n_samples, n_samples // 20)
        return peak_mebibytes(lambda: _fit(name, X, links, 0))


def threads_table() -> Table:
    n_samples = FITS[-1][0]
    X, _, links = _data(n_samples, n_samples // 20)
    rows = []
    for name in NAMES:
        one, two = (best_of(partial(_fit, name, X, links, 0, n_jobs), repeats=2)[0] for n_jobs in (1, 2))
        rows.append([name, one, two, one / two, in_child(_fit_memory, name, n_samples)])
    return Table(
        f"A second thread and memory, {n_samples:,} rows",
        ["", "1 thread, s", "2 threads, s", "gain", "peak MiB"],
        rows,
        f"Wall clock. Memory beyond the data of {X.nbytes / 2**20:.1f} MiB, in a process of its own.",
    )


def run() -> Iterator[Table]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        with threadpool_limits(1):
            yield e_step_table()
            yield fits_table()
        yield threads_table()
