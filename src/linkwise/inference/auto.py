"""The engines ``auto``: exact wherever that is cheap, approximate on the rest; results say which was used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from linkwise._arrays import Floats, Ints
from linkwise.inference.engines import (
    EngineLabels,
    EngineMarginals,
    engine_name,
    find_labels_engine,
    find_marginals_engine,
    labels_engine,
    marginals_engine,
    number,
    whole,
)
from linkwise.inference.exact.distinct_labels import n_set_entries
from linkwise.inference.exact.exact import exact_best_labels, exact_parts, solve_marginals
from linkwise.inference.exact.junction_tree import Plan, plan
from linkwise.inference.exact.min_cut import signed_two_colouring
from linkwise.inference.local_search.forest_descent import polish
from linkwise.inference.local_search.hard_links import hard_rows
from linkwise.inference.messages.sum_product import belief_propagation, propagate
from linkwise.inference.messages.sweeps import LOGARITHMIC_ENTRY, sweep_work
from linkwise.inference.problem import Problem, cached, induced
from linkwise.inference.scoring import component_scores

#: Largest table of the part solved exactly. ``exact`` allows 16 times as much, but ``auto`` runs in every EM
#: step: at 7 to 16 ns an entry, a table of this size takes 2 to 4 ms.
AUTO_TABLE = 2**18
#: Units of work of one entry of a table of elimination, 7 to 16 ns; see ``LOGARITHMIC_ENTRY``.
_TABLE_ENTRY = 2
#: Belief propagation is left out where the limit of work allows fewer sweeps (in logarithms).
_FEWEST_SWEEPS = 20
#: Limits of the message entries for labels under hard links; some 0.2 s, or 300 sweeps over sparse links.
_HARD_WORK = 4e7
_HARD_WORK_PER_SCORE = 1000.0


@marginals_engine(
    "auto",
    uses_initial=False,
    differentiable=True,
    max_table=whole(1),
    approximate=engine_name(),
    max_work=number(positive=True, optional=True),
)
def auto_marginals(
    problem: Problem,
    rng: np.random.Generator,
    *,
    initial: Floats | None = None,
    n_threads: int = 1,
    max_table: int = AUTO_TABLE,
    approximate: str | Callable[..., EngineMarginals] = "belief_propagation",
    max_work: float | None = None,
    **options: Any,
) -> EngineMarginals:
    """Trees and narrow components exactly, the rest by one approximate engine.

    Belief propagation is the default for the rest because its marginals were closer to the truth than
    those of mean field on loopy fields of every kind and strength measured; see the page on inference.

    ``max_table`` limits the entries of the largest table of the exact part; ``approximate`` is the engine
    of the rest, which takes ``options``. ``max_work`` limits the table and message entries (see
    ``sweep_work``): narrow components whose tables exceed it count as wide, and mean field takes the place
    of belief propagation where it does not allow 20 sweeps. ``details["parts"]`` has the nodes that each
    engine answered for, ``details["work"]`` the entries counted, and ``details["limited"]`` whether
    ``max_work`` made a difference.
    """
    n_labels = problem.unary.shape[1]
    planned = cached(problem, ("plan", max_table), lambda: plan(problem, max_table))
    work = cached(problem, ("work", max_table), lambda: _elimination_work(planned, n_labels))
    limited = max_work is not None and work > max_work
    if limited:
        max_table, work = 1, 0
        planned = cached(problem, ("plan", max_table), lambda: plan(problem, max_table))
    parts = cached(problem, ("parts", max_table), lambda: exact_parts(planned))
    if planned.feasible.all():
        prob, agreement, log_partition = solve_marginals(problem, planned)
        return EngineMarginals(
            prob, log_partition, agreement, exact=True, details={"parts": parts, "work": work}
        )
    # True for every node of a component that is too wide.
    wide = ~planned.feasible[planned.component]
    n_wide_links = int(np.count_nonzero(wide[problem.pairs[:, 0]]))
    per_sweep = sweep_work(problem) // len(problem.pairs) * n_wide_links
    if max_work is not None and approximate == "belief_propagation":
        if max_work - work < _FEWEST_SWEEPS * LOGARITHMIC_ENTRY * per_sweep:
            approximate, limited, options = "mean_field", True, {}
        else:
            options["max_work"] = max_work - work
    name, engine, options, *_ = find_marginals_engine(approximate, options)

    def outcome(answer: EngineMarginals) -> dict[str, Any]:
        counted = work + answer.details.get("work", answer.n_iter * per_sweep)
        stopped = limited or answer.details.get("limited", False)
        return {**answer.details, "parts": {**parts, name: wide}, "work": counted, "limited": stopped}

    in_place = engine is belief_propagation
    part, rows, start = problem, np.empty(0, dtype=np.int64), initial
    if not (wide.all() or in_place):
        part, rows = induced(problem, np.flatnonzero(wide), ("wide", max_table))
        part = part._replace(may_overwrite_unary=True)
        start = None if initial is None else initial[wide]
    if approximate == "mean_field" and limited:
        start = _polished_start(part, rng, start)
    if part is problem and not in_place:
        answer = engine(problem, rng, initial=start, n_threads=n_threads, **options)
        return answer._replace(details=outcome(answer))
    prob, agreement, log_partition = solve_marginals(problem, planned)
    if log_partition == -np.inf:
        return EngineMarginals(prob, log_partition, agreement, exact=True, details={"parts": parts})
    if in_place:
        # Among the other components, without a copy of their scores and links.
        answer = propagate(problem, wide, max_table, prob, agreement, n_threads=n_threads, **options)
    else:
        answer = engine(part, rng, initial=start, n_threads=n_threads, **options)
        prob[wide], agreement[rows] = answer.prob, answer.agreement
    return answer._replace(
        prob=prob,
        agreement=agreement,
        log_partition=log_partition + answer.log_partition,
        details=outcome(answer),
    )


def _elimination_work(planned: Plan, n_labels: int) -> int:
    """Units of work of one pass over the tables of the narrow components and over sets of labels."""
    bag_sizes = np.diff(planned.buckets.separator_indptr)
    in_sets = int(planned.distinct.sum()) * n_set_entries(n_labels) if planned.distinct.any() else 0
    return _TABLE_ENTRY * (int((float(n_labels) ** (bag_sizes + 1)).sum()) + in_sets)


def _polished_start(problem: Problem, rng: np.random.Generator, initial: Floats | None) -> Floats:
    """Labels of high score near the start for mean field, which stays close to them where links are hard."""
    near = problem.unary if initial is None else np.where(problem.unary > -np.inf, initial, -1.0)
    labels, _ = polish(problem, near.argmax(axis=1), rng)
    one_hot: Floats = np.eye(problem.unary.shape[1])[labels]
    return one_hot


@labels_engine(
    "auto", max_table=whole(1), approximate=engine_name(), max_work=number(positive=True, optional=True)
)
def auto_best_labels(
    problem: Problem,
    rng: np.random.Generator,
    *,
    initial: Ints | None = None,
    n_threads: int = 1,
    max_table: int = AUTO_TABLE,
    approximate: str | Callable[..., EngineLabels] = "belief_propagation",
    max_work: float | None = None,
    **options: Any,
) -> EngineLabels:
    """Trees, narrow components and cuttable ones exactly, the rest by damped max-product and forest descent.

    Every wide component keeps the better of two labellings: the one of the approximate engine and, given a
    start, the one that forest descent reaches from it.

    ``max_work`` limits the message entries of belief propagation. None: without a limit, but with hard links
    1000 times the entries of ``unary``, at least 4e7: on dense hard links messages rarely settle, and the
    labels come from the polish. ``details["parts"]`` has the nodes that each engine answered for.
    """
    planned = plan(problem, max_table)
    solvable = planned.feasible.copy()
    if problem.unary.shape[1] == 2 and not solvable.all():
        _, frustrated = signed_two_colouring(problem)
        solvable[:] = True
        solvable[planned.component[frustrated]] = planned.feasible[planned.component[frustrated]]
    exact, wide = (np.flatnonzero(chosen[planned.component]) for chosen in (solvable, ~solvable))
    labels = np.zeros(len(problem.unary), dtype=np.int64)
    narrow, _ = induced(problem, exact)
    solved = exact_best_labels(narrow, rng, max_table=max_table)
    labels[exact] = solved.labels
    parts = {name: exact[members] for name, members in solved.details.get("parts", {"tree": exact}).items()}
    if wide.size == 0 or solved.upper_bound == -np.inf:
        return solved._replace(labels=labels, details={**solved.details, "parts": parts})
    part, _ = induced(problem, wide)
    if approximate == "belief_propagation":
        if max_work is None and hard_rows(part).any():
            max_work = max(_HARD_WORK, _HARD_WORK_PER_SCORE * part.unary.size)
        options["max_work"] = max_work
    name, engine, options, *_ = find_labels_engine(approximate, options)
    start = None if initial is None else initial[wide]
    answer = engine(part, rng, initial=start, n_threads=n_threads, **options)
    labels[wide] = answer.labels
    if start is not None:
        component = np.unique(planned.component[wide], return_inverse=True)[1].astype(np.int64)
        other, _ = polish(part, start, rng)
        gain = component_scores(part, other, component, component.max() + 1) > component_scores(
            part, answer.labels, component, component.max() + 1
        )
        labels[wide] = np.where(gain[component], other, answer.labels)
    bound = None
    if answer.upper_bound is not None and solved.upper_bound is not None:
        bound = solved.upper_bound + answer.upper_bound
    return answer._replace(
        labels=labels,
        upper_bound=bound,
        optimal=solved.optimal and answer.optimal,
        details={**answer.details, "parts": {**parts, name: wide}},
    )
