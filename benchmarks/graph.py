"""Inference: nanoseconds per edge, label and sweep, and the same problems given to what a user could install.

The first table measures one thread on a 1000 x 1000 grid and on a random graph with 1e6 nodes and 4e6
edges. A sweep is the difference of two runs of one engine with different limits, divided by the
sweeps between them, so that preparation does not count. The second table puts objective values
beside times; higher scores are better.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks._timing import best_of, print_table
from linkwise.graph import adjacency, unique_pairs
from linkwise.inference import PottsField, best_labels, marginals
from linkwise.inference.belief_propagation import belief_propagation
from linkwise.inference.gibbs import gibbs
from linkwise.inference.icm import icm
from linkwise.inference.mean_field import mean_field
from linkwise.inference.reduce import Problem

SIDE = 1000
LABELS = (2, 5, 10, 34)
TARGETS = {"mean_field": 4.0, "icm": 3.0, "gibbs": 4.5, "belief_propagation": 7.5}


def grid_pairs(side: int) -> np.ndarray:
    index = np.arange(side * side).reshape(side, side)
    across = np.column_stack([index[:, :-1].ravel(), index[:, 1:].ravel()])
    down = np.column_stack([index[:-1].ravel(), index[1:].ravel()])
    return np.concatenate([across, down])


def random_pairs(n_nodes: int, n_edges: int) -> np.ndarray:
    pairs = np.random.default_rng(0).integers(0, n_nodes, size=(n_edges, 2))
    return pairs[pairs[:, 0] != pairs[:, 1]]


def problems(pairs: np.ndarray, n_nodes: int) -> Iterator[Problem]:
    """The same graph and couplings with 2, 5, 10 and 34 labels."""
    rng = np.random.default_rng(0)
    pairs, _ = unique_pairs(n_nodes, pairs)
    graph = adjacency(n_nodes, pairs)
    coupling = rng.choice([0.5, -0.5], size=len(pairs))
    for n_labels in LABELS:
        yield Problem(rng.normal(size=(n_nodes, n_labels)), pairs, coupling, graph)


def _mean_field(problem: Problem, sweeps: int) -> Any:
    return mean_field(problem, np.random.default_rng(0), max_iter=sweeps, tol=_NEVER)


def _gibbs(problem: Problem, sweeps: int) -> Any:
    return gibbs(problem, np.random.default_rng(0), max_sweeps=sweeps, burn_in=1, n_chains=1, tol=_NEVER)


def _belief_propagation(problem: Problem, sweeps: int) -> Any:
    return belief_propagation(problem, np.random.default_rng(0), max_iter=sweeps, tol=_NEVER)


def _icm(problem: Problem, sweeps: int) -> Any:
    return icm(problem, np.random.default_rng(0), max_iter=sweeps)


#: A tolerance that no engine reaches.
_NEVER = 1e-300

#: Engine, and the two limits of sweeps whose difference is timed. Later sweeps of ICM visit only nodes with a
#: changed neighbour, so it runs to the end, preparation included, and its sweeps are averaged.
ENGINES: dict[str, tuple[Callable[[Problem, int], Any], tuple[int, ...]]] = {
    "mean_field": (_mean_field, (2, 26)),
    "icm": (_icm, (1000,)),
    "gibbs": (_gibbs, (8, 64)),
    "belief_propagation": (_belief_propagation, (2, 26)),
}


def nanoseconds(
    run: Callable[[Problem, int], Any], limits: tuple[int, ...], problem: Problem, repeats: int = 1
) -> float:
    """Processor time of one sweep per edge and label; a first run compiles and touches the memory."""
    run(problem, limits[0] if len(limits) > 1 else 1)
    seconds, sweeps = [], []
    for limit in limits:
        shortest = np.inf
        for _ in range(repeats):
            start = time.thread_time()
            n_iter = run(problem, limit).n_iter
            shortest = min(shortest, time.thread_time() - start)
        sweeps.append(n_iter)
        seconds.append(shortest)
    work = len(problem.pairs) * problem.unary.shape[1]
    if len(limits) == 1:
        return 1e9 * seconds[0] / (work * sweeps[0])
    return 1e9 * (seconds[1] - seconds[0]) / (work * (sweeps[1] - sweeps[0]))


def sweep_table() -> None:
    graphs = {"grid": grid_pairs(SIDE), "random": random_pairs(SIDE * SIDE, 4 * SIDE * SIDE)}
    for graph, pairs in graphs.items():
        rows: dict[str, list[Any]] = {name: [name] for name in ENGINES}
        for problem in problems(pairs, SIDE * SIDE):
            for name, (run, limits) in ENGINES.items():
                rows[name].append(nanoseconds(run, limits, problem, 3 if graph == "grid" else 1))
        for name, row in rows.items():
            row.append(f"<= {TARGETS[name]}" if graph == "grid" else "")
        print(f"\n{graph}: nanoseconds per edge, label and sweep, one thread")
        print_table(["engine", *[f"K={k}" for k in LABELS], "target, K=10"], list(rows.values()))


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


def plain_relaxation(field: PottsField) -> float:
    """Value of the LP relaxation of all linked points at once by HiGHS, plus the free points' best scores."""
    from linkwise.inference.local_polytope import solve_relaxation
    from linkwise.inference.reduce import induced, reduce_field

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


def peers_table() -> None:
    rows = []
    side = 200
    rng = np.random.default_rng(0)
    grid = PottsField(
        rng.normal(size=(side * side, 5)), grid_pairs(side), np.full(2 * side * (side - 1), 0.7)
    )
    work = f"labels, {side} x {side} grid, K=5"
    for name in ("auto", "icm", "belief_propagation"):
        seconds, found = best_of(lambda name=name: best_labels(grid, name, random_state=0), repeats=1)
        rows.append([work, f"linkwise {name}", seconds, found.score])
    seconds, labels = best_of(lambda: alpha_expansion(grid, side), repeats=1)
    rows.append([work, "PyMaxflow alpha-expansion", seconds, grid.score(labels)])

    links = random_links_field(100_000, 10, 10_000)
    work = "labels, 1e5 points, 1e4 links, K=10"
    for name in ("auto", "icm", "forest_descent", "lp"):
        seconds, found = best_of(lambda name=name: best_labels(links, name, random_state=0), repeats=1)
        rows.append([work, f"linkwise {name}", seconds, found.score])
    seconds, bound = best_of(lambda: plain_relaxation(links), repeats=1)
    rows.append([work, "HiGHS LP of all linked points", seconds, bound])

    tiny = PottsField(rng.normal(size=(9, 3)), grid_pairs(3), rng.normal(size=12))
    work = "marginals, 3 x 3 grid, K=3"
    seconds, found = best_of(lambda: marginals(tiny, "exact"), repeats=3)
    rows.append([work, "linkwise exact", seconds, float(found.prob[4, 0])])
    seconds, prob = best_of(lambda: pgmpy_marginals(tiny), repeats=1)
    rows.append([work, "pgmpy junction tree", seconds, float(prob[4, 0])])
    cells = [[*row[:3], f"{row[3]:.6f}"] for row in rows]
    print_table(["work", "by", "seconds", "score, or P(z_4 = 0)"], cells)


def run() -> None:
    sweep_table()
    print()
    peers_table()
