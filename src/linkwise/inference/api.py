"""marginals() and best_labels(): reduce the field, call an engine, and translate its answer back."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from linkwise._arrays import Bools, Floats, Ints, ShortInts
from linkwise._validation import as_generator
from linkwise.exceptions import FeasibilityWarning
from linkwise.inference.engines import (
    BestLabels,
    EngineLabels,
    EngineMarginals,
    Marginals,
    checked_threads,
    find_labels_engine,
    find_marginals_engine,
)
from linkwise.inference.field import PottsField
from linkwise.inference.local_search.hard_links import HardPart, feasibility, hard_part
from linkwise.inference.problem import (
    DROPPED,
    Problem,
    Reduction,
    cached,
    gather_rows,
    induced,
    induced_links,
    normalise_rows,
    raise_infeasible,
    reduce_field,
    scatter_rows,
    spread_groups,
)


def marginals(
    field: PottsField,
    method: str | Callable[..., EngineMarginals] = "auto",
    random_state: Any = None,
    *,
    initial: ArrayLike | None = None,
    n_threads: int = 1,
    overwrite_unary: bool = False,
    **options: Any,
) -> Marginals:
    """Marginal probabilities, pair agreements and log partition function of a field.

    Parameters
    ----------
    field : PottsField
    method : {"auto", "exact", "tree", "mean_field", "gibbs", "belief_propagation"} or engine
        ``auto`` is exact wherever that is cheap and says where it was not. ``exact`` raises an error if it
        would take too long. A function with the signature of :mod:`linkwise.inference.engines` works too.
    random_state : int, RandomState, Generator or None
        Only engines with random starts or samples use it.
    initial : (n, K) array_like, optional
        Probabilities to start an iterative engine from.
    n_threads : int, default=1
        Threads of engines that sweep in parallel; results do not depend on it.
    overwrite_unary : bool, default=False
        Write ``prob`` over ``field.unary``, whose scores are then lost. Trees and narrow components need no
        other memory of that size.
    **options
        Options of the engine, e.g. ``max_iter`` or ``tol``; those of ``auto`` are its own and those of the
        engine that it uses where nothing exact is cheap.

    Returns
    -------
    Marginals

    Raises
    ------
    InfeasibleConstraints
        If no labelling satisfies the hard links; with a witness.
    InferenceBudgetExceeded
        If ``method="exact"`` would need larger tables than allowed.

    Warns
    -----
    FeasibilityWarning
        If an approximate engine answered and no labelling that satisfies all hard links was found.

    Examples
    --------
    >>> from linkwise.inference import PottsField, marginals
    >>> field = PottsField([[1.0, 0.0], [0.0, 0.0]], pairs=[(0, 1)], coupling=[2.0])
    >>> result = marginals(field)
    >>> result.prob.round(3)
    array([[0.731, 0.269],
           [0.676, 0.324]])
    >>> result.exact, result.agreement.round(3)
    (True, array([0.881]))
    """
    engine, n_threads = find_marginals_engine(method, options), checked_threads(n_threads)
    table = field.unary if overwrite_unary else field.unary.copy()
    reduction = reduce_field(field, keep_zero_in_component=True, table=table)
    problem = reduction.problem
    # The scores of the groups, which become their probabilities.
    prob = problem.unary
    linked = cached(problem, "linked", lambda: _linked_nodes(problem))
    n_linked = int(np.count_nonzero(linked))
    log_partition = reduction.constant
    if n_linked < len(prob):
        gather_rows(prob, _linked_first(linked))
        log_partition += normalise_rows(prob[n_linked:])
    answer = EngineMarginals(prob[:n_linked], 0.0, np.empty(0), exact=True)
    if n_linked:
        part = _linked_part(problem, linked, n_linked)
        if n_linked < len(prob):
            problem.forget_graph()
        start = None if initial is None else _start_table(initial, field, reduction)[linked]
        hard = hard_part(part)
        answer = engine.solve(
            part, as_generator(random_state), initial=start, n_threads=n_threads, **engine.options
        )
        if answer.log_partition == -np.inf and answer.exact:
            raise_infeasible(field)
        if not answer.exact and not _is_feasible(field, hard, answer.prob.argmax(axis=1)):
            _warn_of_broken_links()
            answer = answer._replace(converged=False)
        if answer.prob is not part.unary:
            part.unary[:] = answer.prob
        log_partition += answer.log_partition
    if n_linked < len(prob):
        scatter_rows(prob, _linked_first(linked))
    agreement = _agreement_of_pairs(field, reduction, prob, answer.agreement)
    if len(prob) < len(table):
        spread_groups(table, reduction.groups)

    parts = _count_points(reduction, linked, engine.name, answer.details)
    return Marginals(
        prob=table,
        log_partition=log_partition,
        agreement=agreement,
        exact=answer.exact,
        converged=answer.converged,
        n_iter=answer.n_iter,
        method=_method_name(engine.name, parts),
        log_partition_kind=answer.log_partition_kind,
        parts=parts,
        details={key: value for key, value in answer.details.items() if key != "parts"},
    )


def best_labels(
    field: PottsField,
    method: str | Callable[..., EngineLabels] = "auto",
    random_state: Any = None,
    *,
    initial: ArrayLike | None = None,
    n_threads: int = 1,
    **options: Any,
) -> BestLabels:
    """Find a labelling of the highest score, or of a high score where the highest is too expensive to find.

    Parameters
    ----------
    field : PottsField
    method : {"auto", "exact", "icm", "belief_propagation", "lp", "forest_descent"} or engine
        ``auto`` is exact on trees and narrow components and approximate on the rest. ``exact`` also
        tries minimum cuts and integer programming, with a time limit.
    random_state : int, RandomState, Generator or None
    initial : (n,) array_like of int, optional
        Labels to start from; the result never scores less.
    n_threads : int, default=1
    **options
        Options of the engine.

    Returns
    -------
    BestLabels

    Raises
    ------
    InfeasibleConstraints
        If no labelling satisfies the hard links; with a witness.

    Warns
    -----
    FeasibilityWarning
        If an approximate engine found no labelling that satisfies all hard links.

    Examples
    --------
    >>> from linkwise.inference import PottsField, best_labels
    >>> field = PottsField([[1.0, 0.0], [0.5, 0.0]], pairs=[(0, 1)], coupling=[float("-inf")])
    >>> best = best_labels(field)
    >>> best.labels, best.score, best.optimal
    (array([0, 1]), 1.0, True)
    """
    engine, n_threads = find_labels_engine(method, options), checked_threads(n_threads)
    reduction = reduce_field(field, keep_zero_in_component=False)
    problem = reduction.problem
    linked = _linked_nodes(problem)

    labels = problem.unary.argmax(axis=1)
    free = problem.unary[~linked]
    bound: float | None = reduction.constant + float(free.max(axis=1, initial=-np.inf).sum())
    answer = EngineLabels(labels[linked], 0.0, optimal=True)
    if linked.any():
        part, _ = induced(problem, np.flatnonzero(linked))
        start = None if initial is None else _start_labels(initial, field, reduction)[linked]
        answer = engine.solve(
            part, as_generator(random_state), initial=start, n_threads=n_threads, **engine.options
        )
        labels[linked] = answer.labels
    expanded = labels[reduction.groups]
    score = field.score(expanded)
    if score == -np.inf:
        if answer.optimal:
            raise_infeasible(field)
        _is_feasible(field, hard_part(part), answer.labels)
        _warn_of_broken_links()
    if answer.optimal:
        bound = score
    elif answer.upper_bound is None:
        bound = None
    else:
        assert bound is not None
        bound += answer.upper_bound

    parts = _count_points(reduction, linked, engine.name, answer.details)
    return BestLabels(
        labels=expanded,
        score=score,
        upper_bound=bound,
        optimal=answer.optimal,
        converged=answer.converged and score > -np.inf,
        n_iter=answer.n_iter,
        method=_method_name(engine.name, parts),
        parts=parts,
        details={key: value for key, value in answer.details.items() if key != "parts"},
    )


def _linked_nodes(problem: Problem) -> Bools:
    """Which nodes (n,) have links."""
    indptr = problem.graph.indptr
    return indptr[1:] > indptr[:-1]


def _linked_first(linked: Bools) -> Ints:
    """Nodes with links in ascending order, then those without; not kept, as it would take 8 bytes a node."""
    return np.argsort(~linked, kind="stable")


def _linked_part(problem: Problem, linked: Bools, n_linked: int) -> Problem:
    """The problem of the nodes with links, whose scores come first in the table of the problem."""
    part = problem
    if n_linked < len(linked):
        part = cached(problem, "linked part", lambda: induced_links(problem, np.flatnonzero(linked), {})[0])
    return part._replace(unary=problem.unary[:n_linked], may_overwrite_unary=True)


def _is_feasible(field: PottsField, hard: HardPart | None, labels: Ints) -> bool:
    """Whether some labelling keeps all hard links; raise if there is proof that none does."""
    if hard is None:
        return True
    status = feasibility(hard, labels)
    if status == "infeasible":
        raise_infeasible(field)
    return status == "feasible"


def _warn_of_broken_links() -> None:
    warnings.warn(
        "no labelling that satisfies all hard links was found, though none of the links was proven "
        "contradictory; try method='exact', or soften some links",
        FeasibilityWarning,
        stacklevel=3,
    )


def _start_table(initial: ArrayLike, field: PottsField, reduction: Reduction) -> Floats:
    """Starting probabilities of the groups: those of their first points."""
    table = np.asarray(initial, dtype=np.float64)
    if table.shape != field.unary.shape:
        raise ValueError(
            f"initial has shape {table.shape}, but it needs {field.unary.shape}; pass one row per point"
        )
    if not (np.isfinite(table).all() and (table >= 0).all()):
        raise ValueError("initial must hold probabilities; use numbers that are finite and >= 0")
    return table[_first_members(reduction)]


def _start_labels(initial: ArrayLike, field: PottsField, reduction: Reduction) -> Ints:
    """Starting labels of the groups: those of their first points."""
    labels = np.asarray(initial)
    if labels.shape != (field.n_points,) or labels.dtype.kind not in "iu":
        raise ValueError(f"initial must have shape ({field.n_points},); pass one whole number per point")
    if labels.min() < 0 or labels.max() >= field.n_labels:
        raise ValueError(f"initial must lie in 0..{field.n_labels - 1}; pass labels of the field")
    return labels.astype(np.int64)[_first_members(reduction)]


def _first_members(reduction: Reduction) -> Ints:
    """First point of each group."""
    return np.unique(reduction.groups, return_index=True)[1]


def _agreement_of_pairs(field: PottsField, reduction: Reduction, prob: Floats, agreement: Floats) -> Floats:
    """P(z_i == z_j) of the user's pairs from that of the reduced ones; 1 inside a group."""
    if reduction.edge_of is None:
        return agreement
    kinds = cached(reduction.problem, "kinds of pairs", lambda: _kinds_of_pairs(field, reduction))
    if kinds is None:
        return agreement[reduction.edge_of]
    between, dropped, ends = kinds
    result = np.ones(len(field.pairs))
    result[between] = agreement[reduction.edge_of[between]]
    # A dropped link joins two components, which are independent.
    result[dropped] = np.einsum("ek,ek->e", prob[ends[:, 0]], prob[ends[:, 1]])
    return result


def _kinds_of_pairs(field: PottsField, reduction: Reduction) -> tuple[ShortInts, ...] | None:
    """Pairs that are links, that were dropped, and the groups (., 2) these join; None if all are links."""
    edge_of = reduction.edge_of
    if edge_of is None or (edge_of >= 0).all():
        return None
    between, dropped = (
        np.flatnonzero(chosen).astype(np.int32) for chosen in (edge_of >= 0, edge_of == DROPPED)
    )
    return between, dropped, reduction.groups[field.pairs[dropped]]


def _count_points(
    reduction: Reduction,
    linked: Bools,
    name: str,
    details: Mapping[str, Any],
) -> dict[str, int]:
    """Points of the field each engine answered for; ``independent`` are those without links."""
    parts = details.get("parts", {name: slice(None)})
    groups, n_points = reduction.groups, len(reduction.groups)
    sizes = np.ones(len(linked), dtype=np.int32)
    if len(linked) < n_points:
        sizes = cached(reduction.problem, "points of groups", lambda: np.bincount(groups).astype(np.int32))
    of_linked = sizes if linked.all() else sizes[linked]
    counts = {engine: int(of_linked[members].sum()) for engine, members in parts.items()}
    counts = {"independent": n_points - sum(counts.values()), **counts}
    return {engine: count for engine, count in counts.items() if count}


def _method_name(name: str, parts: Mapping[str, int]) -> str:
    """The engine asked for, or for ``auto`` those it used."""
    if name != "auto":
        return name
    used = [engine for engine in parts if engine != "independent"]
    return "+".join(used or ["independent"])
