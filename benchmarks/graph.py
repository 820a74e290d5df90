"""Inference: nanoseconds per edge, label and sweep, and the same problems given to what a user could install.

A sweep is the difference of two runs of one engine with different limits, divided by the sweeps between
them, so that preparation does not count.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from benchmarks._table import Measured, Table
from benchmarks._targets import TARGETS
from benchmarks._timing import attempt, best_of, in_child, peak_mebibytes
from linkwise.graph import adjacency, unique_pairs
from linkwise.inference import PottsField, best_labels, marginals
from linkwise.inference.gibbs import gibbs
from linkwise.inference.local_search.icm import icm
from linkwise.inference.mean_field import mean_field
from linkwise.inference.messages.sum_product import belief_propagation
from linkwise.inference.problem import Problem

SIDE = 1000
TARGET_LABELS = 10
GRID_LABELS = (2, 5, 10, 34)
#: Much larger ones take minutes and GiB.
RANDOM_NODES, RANDOM_LABELS = 250_000, (2, 10)
GROWTH = (250, 500, 1000)
PEER_SIDE, PEER_POINTS, PEER_LINKS = 200, 100_000, 10_000


def grid_pairs(side: int) -> np.ndarray:
    index = np.arange(side * side).reshape(side, side)
    across = np.column_stack([index[:, :-1].ravel(), index[:, 1:].ravel()])
    down = np.column_stack([index[:-1].ravel(), index[1:].ravel()])
    return np.concatenate([across, down])


def random_pairs(n_nodes: int, n_edges: int) -> np.ndarray:
    pairs = np.random.default_rng(0).integers(0, n_nodes, size=(n_edges, 2))
    return pairs[pairs[:, 0] != pairs[:, 1]]


def problem_of(pairs: np.ndarray, n_nodes: int, n_labels: int) -> Problem:
    """A graph with random scores and couplings of both signs."""
    rng = np.random.default_rng(0)
    pairs, _ = unique_pairs(n_nodes, pairs)
    coupling = rng.choice([0.5, -0.5], size=len(pairs))
    return Problem(rng.normal(size=(n_nodes, n_labels)), pairs, coupling, adjacency(n_nodes, pairs))


def _mean_field(problem: Problem, sweeps: int, n_threads: int = 1) -> Any:
    return mean_field(
        problem, np.random.default_rng(0), max_iter=sweeps, tol=_NEVER, n_threads=n_threads
    )  # fmt: skip


def _gibbs(problem: Problem, sweeps: int, n_threads: int = 1) -> Any:
    return gibbs(
        problem, np.random.default_rng(0), max_sweeps=sweeps, burn_in=1, n_chains=1, tol=_NEVER,
        n_threads=n_threads,
    )  # fmt: skip


def _belief_propagation(problem: Problem, sweeps: int, n_threads: int = 1) -> Any:
    return belief_propagation(
        problem, np.random.default_rng(0), max_iter=sweeps, tol=_NEVER, n_threads=n_threads
    )  # fmt: skip


def _icm(problem: Problem, sweeps: int, n_threads: int = 1) -> Any:
    return icm(problem, np.random.default_rng(0), max_iter=sweeps, n_threads=n_threads)


#: A tolerance that no engine reaches.
_NEVER = 1e-300

#: Engine, the two limits of sweeps whose difference is timed, and nearer ones where no target is at stake.
#: Later sweeps of ICM visit only nodes with a changed neighbour, so it runs to the end, preparation included,
#: and its sweeps are averaged.
ENGINES: dict[str, tuple[Callable[..., Any], tuple[int, ...], tuple[int, ...]]] = {
    "mean_field": (_mean_field, (2, 26), (2, 12)),
    "icm": (_icm, (1000,), (1000,)),
    "gibbs": (_gibbs, (8, 64), (8, 48)),
    "belief_propagation": (_belief_propagation, (2, 26), (2, 12)),
}


def nanoseconds(
    name: str,
    problem: Problem,
    *,
    accurate: bool = False,
    n_threads: int = 1,
    clock: Callable[[], float] = time.thread_time,
) -> float:
    """Time of one sweep per edge and label; a first run compiles and touches the memory."""
    run, far, near = ENGINES[name]
    limits, repeats = (far, 3) if accurate else (near, 2)
    run(problem, limits[0] if len(limits) > 1 else 1, n_threads)
    timed = [
        best_of(partial(run, problem, limit, n_threads), repeats=repeats, warm_up=False, clock=clock)
        for limit in limits
    ]
    seconds, sweeps = [taken for taken, _ in timed], [found.n_iter for _, found in timed]
    work = len(problem.pairs) * problem.unary.shape[1]
    if len(limits) == 1:
        return 1e9 * seconds[0] / (work * sweeps[0])
    return 1e9 * (seconds[1] - seconds[0]) / (work * (sweeps[1] - sweeps[0]))


def grid_table() -> Table:
    pairs = grid_pairs(SIDE)
    rows: dict[str, list[Any]] = {name: [name] for name in ENGINES}
    measured = {}
    for n_labels in GRID_LABELS:
        problem = problem_of(pairs, SIDE * SIDE, n_labels)
        for name, row in rows.items():
            at_target = n_labels == TARGET_LABELS
            found = nanoseconds(name, problem, accurate=at_target)
            row.append(f"{found:.2f} ({TARGETS[name]})" if at_target else found)
            if at_target:
                measured[name] = Measured(found)
    return Table(
        f"{SIDE} x {SIDE} grid, one thread: nanoseconds per edge, label and sweep",
        ["engine", *[f"K = {k}" for k in GRID_LABELS]],
        list(rows.values()),
        "Processor time.",
        measured,
    )


def random_table() -> Table:
    n_nodes, n_edges = RANDOM_NODES, 4 * RANDOM_NODES
    pairs = random_pairs(n_nodes, n_edges)
    rows: dict[str, list[Any]] = {name: [name] for name in ENGINES}
    for n_labels in RANDOM_LABELS:
        problem = problem_of(pairs, n_nodes, n_labels)
        for name, row in rows.items():
            row.append(nanoseconds(name, problem))
    return Table(
        f"Random graph, {n_nodes:,} nodes and {n_edges:,} edges, one thread: the same",
        ["engine", *[f"K = {k}" for k in RANDOM_LABELS]],
        list(rows.values()),
        "Neighbours lie anywhere in memory.",
    )


def _engine_memory(name: str, side: int) -> float:
    run = ENGINES[name][0]
    run(problem_of(grid_pairs(10), 100, TARGET_LABELS), 4)
    problem = problem_of(grid_pairs(side), side * side, TARGET_LABELS)
    return peak_mebibytes(lambda: run(problem, 4))


def growth_table() -> Table:
    rows: dict[str, list[Any]] = {name: [name] for name in ENGINES}
    for side in GROWTH:
        problem = problem_of(grid_pairs(side), side * side, TARGET_LABELS)
        for name, row in rows.items():
            row.append(nanoseconds(name, problem))
    for name, row in rows.items():
        one, two = (nanoseconds(name, problem, n_threads=n, clock=time.perf_counter) for n in (1, 2))
        memory, error = attempt(partial(in_child, _engine_memory, name, side))
        row += [one, two, one / two, error or memory]
    unary = side**2 * TARGET_LABELS * 8 / 2**20
    return Table(
        f"Growth with the grid, a second thread and memory, K = {TARGET_LABELS}: the same",
        [
            "engine", *[f"{s} x {s}" for s in GROWTH], "1 thread, wall clock", "2 threads, wall clock",
            "gain", "peak MiB",
        ],
        list(rows.values()),
        "Threads and memory on the largest grid; memory beyond the problem, whose scores take "
        f"{unary:.0f} MiB, in a process of its own.",
    )  # fmt: skip


def random_links_field(n_points: int, n_labels: int, n_links: int) -> PottsField:
    """Points in clusters, half must-links and half cannot-links, 5 % of them wrong (spec, section 9)."""
    rng = np.random.default_rng(0)
    y = rng.integers(n_labels, size=n_points)
    unary = rng.normal(scale=2.0, size=(n_points, n_labels))
    unary[np.arange(n_points), y] += 3.0
    first = rng.integers(n_points, size=n_links)
    by_class = [np.flatnonzero(y == k) for k in range(n_labels)]
    mates = np.array([rng.choice(by_class[k]) for k in y[first]])
    second = np.where(np.arange(n_links) % 2 == 0, mates, rng.integers(n_points, size=n_links))
    keep = first != second
    pairs = np.column_stack([first, second])[keep]
    same = (y[pairs[:, 0]] == y[pairs[:, 1]]) ^ (rng.random(len(pairs)) < 0.05)
    return PottsField(unary, pairs, np.where(same, 4.0, -8.0))


def alpha_expansion(field: PottsField, side: int) -> np.ndarray:
    """PyMaxflow's alpha-expansion on a grid with one attractive coupling."""
    from maxflow.fastmin import aexpansion_grid

    n_labels = field.n_labels
    costs = -field.unary.reshape(side, side, n_labels)
    coupling = float(field.coupling[0])
    return np.asarray(aexpansion_grid(costs, coupling * (1.0 - np.eye(n_labels)))).ravel()


def minimum_cut(field: PottsField, side: int) -> np.ndarray:
    """PyMaxflow's minimum cut of a grid with two labels and one attractive coupling."""
    import maxflow

    graph = maxflow.Graph[float]()
    nodes = graph.add_grid_nodes((side, side))
    graph.add_grid_edges(nodes, float(field.coupling[0]))
    costs = (field.unary.max() - field.unary).reshape(side, side, 2)
    graph.add_grid_tedges(nodes, costs[..., 1], costs[..., 0])
    graph.maxflow()
    return np.asarray(graph.get_grid_segments(nodes)).ravel().astype(np.int64)


def plain_relaxation(field: PottsField) -> float:
    """Value of the LP relaxation of all linked points at once by HiGHS, plus the free points' best scores."""
    from linkwise.inference.local_polytope import solve_relaxation
    from linkwise.inference.problem import induced, reduce_field

    reduction = reduce_field(field, keep_zero_in_component=False)
    degree = np.diff(reduction.problem.graph.indptr)
    part, _ = induced(reduction.problem, np.flatnonzero(degree > 0))
    free = reduction.problem.unary[degree == 0].max(axis=1).sum()
    bound = solve_relaxation(part).upper_bound
    return float("nan") if bound is None else float(bound + free + reduction.constant)


def pgmpy_marginals(field: PottsField) -> np.ndarray:
    """The junction tree of pgmpy on the same field."""
    from pgmpy.factors.discrete import DiscreteFactor
    from pgmpy.inference import BeliefPropagation
    from pgmpy.models import DiscreteMarkovNetwork

    network = DiscreteMarkovNetwork()
    names = [f"z{i}" for i in range(field.n_points)]
    network.add_nodes_from(names)
    k = field.n_labels
    for i, name in enumerate(names):
        network.add_factors(DiscreteFactor([name], [k], np.exp(field.unary[i])))
    for (i, j), c in zip(field.pairs, field.coupling, strict=True):
        table = np.exp(np.where(np.eye(k, dtype=bool), min(c, 0.0), -max(c, 0.0)))
        network.add_edge(names[i], names[j])
        network.add_factors(DiscreteFactor([names[i], names[j]], [k, k], table))
    solver = BeliefPropagation(network)
    solver.calibrate()
    return np.array([solver.query([name], show_progress=False).values for name in names])


def _labels_work() -> Iterator[tuple[str, PottsField, dict[str, Callable[[PottsField], Any]]]]:
    """Name, field, and who looks for its best labelling: each returns a score, or a bound of it."""

    def ours(method: str) -> Callable[[PottsField], float]:
        return lambda field: best_labels(field, method, random_state=0).score

    side = PEER_SIDE
    rng = np.random.default_rng(0)
    coupling = np.full(2 * side * (side - 1), 0.7)
    grid = PottsField(rng.normal(size=(side * side, 5)), grid_pairs(side), coupling)
    yield (
        f"labels, {side} x {side} grid, K = 5",
        grid,
        {
            **{f"linkwise {name}": ours(name) for name in ("auto", "icm", "belief_propagation")},
            "PyMaxflow alpha-expansion": lambda field: field.score(alpha_expansion(field, side)),
        },
    )
    two_labels = np.random.default_rng(1).normal(size=(side * side, 2))
    yield (
        f"labels, {side} x {side} grid, K = 2",
        PottsField(two_labels, grid_pairs(side), coupling),
        {
            "linkwise exact (a minimum cut)": ours("exact"),
            "PyMaxflow minimum cut": lambda field: field.score(minimum_cut(field, side)),
        },
    )
    yield (
        f"labels, {PEER_POINTS:,} points, {PEER_LINKS:,} links, K = 10",
        random_links_field(PEER_POINTS, 10, PEER_LINKS),
        {
            **{f"linkwise {name}": ours(name) for name in ("auto", "icm", "forest_descent", "lp")},
            "HiGHS LP of all linked points (a bound)": plain_relaxation,
        },
    )
    tiny = PottsField(rng.normal(size=(9, 3)), grid_pairs(3), rng.normal(size=12))
    yield (
        "P(z_4 = 0), 3 x 3 grid, K = 3",
        tiny,
        {
            "linkwise exact": lambda field: marginals(field, "exact").prob[4, 0],
            "pgmpy junction tree": lambda field: pgmpy_marginals(field)[4, 0],
        },
    )


def peers_table() -> Table:
    rows: list[list[Any]] = []
    for work, field, solvers in _labels_work():
        anchor = None
        for name, solve in solvers.items():
            timed, error = attempt(partial(best_of, partial(solve, field), repeats=1))
            if error:
                rows.append([work, name, error, "", ""])
                continue
            seconds, value = timed
            anchor = anchor or seconds
            rows.append([work, name, seconds, seconds / anchor, f"{value:.6f}"])
    return Table(
        "Beside other packages",
        ["work", "by", "seconds", "times the first of its kind", "score, or the probability"],
        rows,
        "Wall clock; higher scores are better.",
    )


def run() -> Iterator[Table]:
    yield grid_table()
    yield random_table()
    yield growth_table()
    yield peers_table()
