"""The engines ``exact``: each component by the method that solves it exactly.

Marginals: two passes on trees, sums over sets of labels where all nodes need different ones, junction trees
on narrow components, a refusal for the rest. Labels: the same with maxima, minimum cuts where K = 2 and
nothing is frustrated, and an integer program with a time limit for the rest.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import NoReturn

import numpy as np

from linkwise._arrays import Bools, Floats, Ints
from linkwise.exceptions import InferenceBudgetExceeded
from linkwise.graph import adjacency, induced_subgraph
from linkwise.inference.engines import (
    EngineLabels,
    EngineMarginals,
    labels_engine,
    marginals_engine,
    number,
    whole,
)
from linkwise.inference.exact.distinct_labels import distinct_best_labels, distinct_marginals
from linkwise.inference.exact.forest import (
    RootedForest,
    fill_forest,
    forest_best_labels,
    forest_marginals,
    maximum_spanning_forest,
    root_forest,
)
from linkwise.inference.exact.junction_tree import (
    MAX_TABLE,
    Plan,
    find_components,
    junction_best_labels,
    junction_marginals,
    plan,
    total_budget,
)
from linkwise.inference.exact.min_cut import min_cut_labels, signed_two_colouring
from linkwise.inference.local_polytope import milp_labels
from linkwise.inference.problem import Problem, cached, induced
from linkwise.inference.scoring import component_scores, problem_score

#: Integer programs with more variables than this do not get past their first relaxation in reasonable time.
MAX_VARIABLES = 2_000_000


def solve_marginals(problem: Problem, planned: Plan) -> tuple[Floats, Floats, float]:
    """Marginals (n, K), agreement (m,) and log partition of every component that its plan calls feasible.

    NaN where the hard links allow no labelling. Other components have NaN as agreement and keep their scores.
    """
    if planned.forest.all():
        return forest_marginals(problem, planned.component)
    prob = problem.unary if problem.may_overwrite_unary else problem.unary.copy()
    agreement = np.full(len(problem.pairs), np.nan)
    if problem.unary.shape[1] == 1:
        log_partition = problem_score(problem, np.zeros(len(prob), dtype=np.int64))
        prob[:] = 1.0
        agreement[:] = 1.0
        return prob, agreement, log_partition
    forest = cached(problem, "rooted trees", lambda: _rooted_trees(problem, planned))
    log_partition = fill_forest(forest, problem.coupling, prob, agreement)
    # A component's scores are read before its probabilities are written, so both may be the same table.
    log_partition += junction_marginals(problem._replace(unary=prob), planned.buckets, prob, agreement)
    if planned.distinct.any():  # all of them or, where the budget is small, none
        for nodes, links in cached(problem, "distinct labels", lambda: _distinct_parts(problem, planned)):
            log_partition += distinct_marginals(prob, nodes, prob)
            agreement[links] = 0.0
    return prob, agreement, log_partition


def _distinct_parts(problem: Problem, planned: Plan) -> list[tuple[Ints, Ints]]:
    """Nodes and links of each component whose nodes need different labels."""
    of_links = planned.component[problem.pairs[:, 0]]
    return [
        (np.flatnonzero(planned.component == one), np.flatnonzero(of_links == one))
        for one in np.flatnonzero(planned.distinct).tolist()
    ]


def _rooted_trees(problem: Problem, planned: Plan) -> RootedForest:
    """The components that are trees, in the numbering of the problem."""
    nodes = np.flatnonzero(planned.forest[planned.component])
    order, parent, edge = root_forest(induced_subgraph(problem.graph, nodes), planned.component[nodes])
    return RootedForest(nodes[order].astype(np.int32), parent, edge)


@marginals_engine("exact", uses_initial=False, differentiable=True, max_table=whole(1))
def exact_marginals(
    problem: Problem,
    rng: np.random.Generator,
    *,
    initial: Floats | None = None,
    n_threads: int = 1,
    max_table: int = MAX_TABLE,
) -> EngineMarginals:
    """Exact marginals: trees in two passes, hard cliques by sets of labels, narrow parts by junction trees.

    Tables have at most ``max_table`` entries of 8 bytes; all tables of a component may add up to 2 ** 26,
    or to 16 times ``max_table`` if that is more. ``details`` has ``width``, the largest one, ``widths``,
    how many components have each, and ``parts``, the nodes each method answered for. Raises
    InferenceBudgetExceeded before anything is computed if a component is too wide.
    """
    planned = cached(problem, ("plan", max_table), lambda: plan(problem, max_table))
    if not planned.feasible.all():
        _refuse(planned, problem.unary.shape[1], max_table)
    prob, agreement, log_partition = solve_marginals(problem, planned)
    widths, counts = np.unique(planned.widths, return_counts=True)
    details = {
        "width": int(widths.max(initial=0)),
        "widths": dict(zip(widths.tolist(), counts.tolist(), strict=True)),
        "parts": exact_parts(planned),
    }
    return EngineMarginals(prob, log_partition, agreement, exact=True, details=details)


def exact_parts(planned: Plan) -> dict[str, Bools]:
    """Whether a node (n,) is one that each exact method answers for."""
    narrow = planned.feasible & ~planned.forest & ~planned.distinct
    chosen = {"tree": planned.forest, "junction_tree": narrow, "distinct_labels": planned.distinct}
    return {name: rows[planned.component] for name, rows in chosen.items() if rows.any()}


def _refuse(planned: Plan, n_labels: int, max_table: int) -> NoReturn:
    """Raise for the widest component that is out of reach."""
    worst = int(np.argmax(np.where(planned.feasible, -1, planned.widths)))
    width = int(planned.widths[worst])
    # A power of whole numbers has no largest value; a float would overflow from 200 labels on.
    size = f"{n_labels} ** {width + 1} = 1e{(width + 1) * math.log10(n_labels):.0f} entries"
    if n_labels ** (width + 1) > max_table:
        reason = f"tables of at least {size}, and max_table={max_table}"
    else:
        reason = f"tables of up to {size} that add up to more than {total_budget(max_table)}"
    raise InferenceBudgetExceeded(
        f"exact inference on a component of {planned.sizes[worst]} groups of points needs an elimination of "
        f"width {width}: {reason}; use method='auto' or 'belief_propagation', or raise max_table",
        width,
    )


@labels_engine("exact", max_table=whole(1), time_limit=number())
def exact_best_labels(
    problem: Problem,
    rng: np.random.Generator,
    *,
    initial: Ints | None = None,
    n_threads: int = 1,
    max_table: int = MAX_TABLE,
    time_limit: float = 30.0,
) -> EngineLabels:
    """The labelling of highest score, component by component.

    Trees by max-product; with two labels and no frustrated ring, one minimum cut; nodes that all need
    different labels by an assignment; narrow components by elimination; the rest by integer programs (HiGHS),
    which share ``time_limit`` seconds. Where one ran out of time, ``initial`` is what to fall back on.

    ``optimal`` if every component is proven best, integer programs to a relative gap of 1e-6. ``details``
    has ``gap`` = upper bound minus score and ``parts``, the nodes each method answered for. If the hard
    links allow no labelling, the labels score ``-inf`` and count as optimal. Raises InferenceBudgetExceeded
    if a component is too wide and too large for an integer program as well.
    """
    n_labels = problem.unary.shape[1]
    labels = np.zeros(len(problem.unary), dtype=np.int64)
    if n_labels == 1:
        return EngineLabels(labels, problem_score(problem, labels), optimal=True)
    component, sizes, forest = find_components(problem)
    parts = {"tree": np.flatnonzero(forest[component])}
    labels[parts["tree"]] = forest_best_labels(induced(problem, parts["tree"])[0])
    left = np.flatnonzero(~forest[component])
    if n_labels == 2 and left.size:  # for nothing left, maximum flows would still be compiled
        loopy, _ = induced(problem, left)
        swapped, frustrated = signed_two_colouring(loopy)
        # A part between links of coupling zero may be frustrated beside one that is not.
        cut = ~np.isin(component[left], component[left[frustrated]])
        parts["min_cut"] = left[cut]
        labels[left[cut]] = min_cut_labels(induced(loopy, np.flatnonzero(cut))[0], swapped[cut])
        left = left[~cut]
    rest, _ = induced(problem, left)
    planned = plan(rest, max_table)
    found = labels[left]
    junction_best_labels(rest, planned.buckets, found)
    for nodes, _ in _distinct_parts(rest, planned):
        found[nodes] = distinct_best_labels(rest.unary[nodes])
    labels[left] = found
    narrow, distinct = planned.feasible[planned.component], planned.distinct[planned.component]
    parts["junction_tree"], parts["milp"] = left[narrow & ~distinct], left[~narrow]
    parts["distinct_labels"] = left[distinct]

    bounds = component_scores(problem, labels, component, len(sizes))
    solved = np.ones(len(sizes), dtype=bool)
    solved[component[parts["milp"]]] = False
    infeasible = bool((bounds[solved] == -np.inf).any())
    if parts["milp"].size and not infeasible:
        start = None if initial is None else initial[left]
        for row, answer in _solve_wide(rest, planned, start, rng, time_limit):
            members = left[planned.component == row]
            labels[members] = answer.labels
            wide = component[members[0]]
            bounds[wide] = answer.upper_bound
            solved[wide] = answer.optimal
            if answer.upper_bound == -np.inf:
                infeasible = True
                break
    upper_bound = -np.inf if infeasible else math.fsum(bounds)
    optimal = infeasible or bool(solved.all())
    details = {
        "gap": 0.0 if optimal else upper_bound - problem_score(problem, labels),
        "width": int(planned.widths[planned.feasible].max(initial=min(parts["tree"].size, 1))),
        "parts": parts,
    }
    return EngineLabels(labels, upper_bound, optimal, converged=optimal, details=details)


def _solve_wide(
    problem: Problem, planned: Plan, initial: Ints | None, rng: np.random.Generator, time_limit: float
) -> Iterator[tuple[int, EngineLabels]]:
    """Integer programs of the components that are too wide for tables, the smallest first."""
    n_labels = problem.unary.shape[1]
    n_links = np.bincount(planned.component[problem.pairs[:, 0]], minlength=len(planned.sizes))
    n_variables = (planned.sizes + n_links) * n_labels
    wide = np.flatnonzero(~planned.feasible)
    if n_variables[wide].max() > MAX_VARIABLES:
        worst = wide[np.argmax(n_variables[wide])]
        width = int(planned.widths[worst])
        raise InferenceBudgetExceeded(
            f"a component of {planned.sizes[worst]} groups of points needs an elimination of width {width} "
            f"or an integer program of {n_variables[worst]} variables, both out of reach; use method='auto' "
            "or 'belief_propagation'",
            width,
        )
    deadline = time.monotonic() + time_limit
    for row in wide[np.argsort(n_variables[wide], kind="stable")]:
        members = np.flatnonzero(planned.component == row)
        part, _ = induced(problem, members)
        start = None if initial is None else initial[members]
        yield int(row), _solve_component(part, start, rng, deadline)


def _solve_component(
    problem: Problem, initial: Ints | None, rng: np.random.Generator, deadline: float
) -> EngineLabels:
    """Best of a spanning forest's labels, the initial ones and those of the integer program."""
    kept = maximum_spanning_forest(problem, rng)
    pairs = problem.pairs[kept]
    forest = Problem(problem.unary, pairs, problem.coupling[kept], adjacency(len(problem.unary), pairs))
    labels = forest_best_labels(forest)
    # Links left out can only cost something, or at most gain the largest of their rewards.
    bound = problem_score(forest, labels)
    if problem.coupling.ndim == 2:
        bound += float(np.maximum(problem.coupling[~kept].max(axis=1, initial=0.0), 0.0).sum())
    score = problem_score(problem, labels)
    if initial is not None and problem_score(problem, initial) > score:
        labels, score = initial, problem_score(problem, initial)
    remaining = deadline - time.monotonic()
    if score >= bound or remaining <= 0:
        return EngineLabels(labels, max(bound, score), optimal=score >= bound)
    answer = milp_labels(problem, remaining)
    if answer.labels is not None and problem_score(problem, answer.labels) >= score:
        labels = answer.labels
        score = problem_score(problem, labels)
    bound = min(bound, answer.upper_bound)
    return EngineLabels(labels, bound, answer.optimal or score >= bound)
