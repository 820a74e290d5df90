"""From the user's field to the smallest equivalent problem, which every engine gets.

Hard must-links are contracted, links on the same two groups added, a hard cannot-link absorbs soft
links beside it, and couplings of zero dropped. What the reduction takes out of the score is kept in
``constant``, so scores and partition functions stay those of the user's field.

A reduced link has the table ``log_agree(k)`` on the diagonal and one value ``log_differ`` elsewhere.

* coupling (m,): penalty form, both parts <= 0, so that strong links never overflow:
  must-link c > 0: agree 0, differ -c;  cannot-link c < 0: agree -abs(c), differ 0.
* coupling (m, K): reward form: agree c[k], differ 0 (the reduction has moved the rest into the unary).

``coupling.ndim`` is a compile-time constant, so the branch costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from linkwise._arrays import Bools, Floats, Ints, ShortInts
from linkwise._kernels import inline_kernel
from linkwise.exceptions import InfeasibleConstraints, Witness
from linkwise.graph import Adjacency, adjacency, check_feasibility, group_labels, path_witness, unique_pairs
from linkwise.inference.field import PottsField

Found = TypeVar("Found")

INSIDE = -1
DROPPED = -2


class Problem(NamedTuple):
    """What an engine sees: groups of points, at most one link between two groups, no ``+inf``.

    ``unary`` (n, K), C-contiguous: finite, or -inf for a forbidden label (never a whole row). ``pairs`` (m,
    2): i < j, sorted, unique. ``coupling`` (m,) or (m, K): see above. ``given_graph``: compressed rows of
    ``pairs``; None if they are in the cache, or to be made. ``cache``: what follows from the links alone (see
    ``cached``). ``may_overwrite_unary``: the engine may return ``unary`` as the probabilities.
    """

    unary: Floats
    pairs: Ints
    coupling: Floats
    given_graph: Adjacency | None
    cache: dict[Hashable, Any] | None = None
    may_overwrite_unary: bool = False

    @property
    def graph(self) -> Adjacency:
        """Compressed rows of ``pairs``."""
        # Not by ``cached``: another thread may forget the graph at any time.
        cache = {} if self.cache is None else self.cache
        graph: Adjacency = self.given_graph or cache.get("graph") or adjacency(len(self.unary), self.pairs)
        cache["graph"] = graph
        return graph

    def forget_graph(self) -> None:
        """Free the graph, 16 bytes a link, once a layout made from it is cached; it can be made again."""
        if self.cache is not None:
            self.cache.pop("graph", None)


def cached(problem: Problem, key: Hashable, find: Callable[[], Found]) -> Found:
    """What ``find`` returns, found once for all problems with these links and number of labels; read only."""
    if problem.cache is None:
        return find()
    if key not in problem.cache:
        problem.cache[key] = find()
    return problem.cache[key]


class Reduction(NamedTuple):
    """A problem and the way back to the field it came from.

    ``groups`` (n,): row of ``problem.unary`` for each point. ``edge_of`` (m,): row of ``problem.pairs`` for
    each pair, ``INSIDE`` one group, or ``DROPPED``; None if every pair is its own row. ``constant``: score of
    the field minus that of the problem. ``n_groups``: rows of ``problem.unary``.
    """

    problem: Problem
    groups: ShortInts
    edge_of: ShortInts | None
    constant: float
    n_groups: int


def reduce_field(
    field: PottsField, *, keep_zero_in_component: bool, table: Floats | None = None
) -> Reduction:
    """Contract, merge and clean a field; InfeasibleConstraints if a chunklet contradicts itself.

    ``keep_zero_in_component`` keeps links of coupling zero whose ends are joined by others, for their
    agreement. ``table`` is a copy of the scores, or the scores themselves; its first rows become the
    problem's.
    """
    # Costs that depend on labels are merged with the scores, so such fields are reduced anew.
    table = field.unary.copy() if table is None else table
    if field.link_cache is None or field.coupling.ndim == 2:
        return _reduce(field, keep_zero_in_component, table)
    key = (keep_zero_in_component, field.n_labels)
    known = field.link_cache.get(key)
    if known is None:
        known = _reduce(field, keep_zero_in_component, table)
        problem = known.problem._replace(given_graph=None, cache={"graph": known.problem.graph})
        known = known._replace(problem=problem)
        field.link_cache[key] = known._replace(problem=_without_scores(problem))
        return known
    unary = _add_rows(table, known.groups, known.n_groups)
    if (unary.max(axis=1) == -np.inf).any():
        raise_infeasible(field)
    return known._replace(problem=known.problem._replace(unary=unary))


def _reduce(field: PottsField, keep_zero_in_component: bool, table: Floats) -> Reduction:
    """The reduction of a field whose links were not seen before."""
    hard = field.coupling if field.coupling.ndim == 1 else field.coupling[:, 0]
    groups, n_groups = group_labels(field.n_points, field.pairs[hard == np.inf])
    unary = _add_rows(table, groups, n_groups)
    ends = field.pairs if n_groups == field.n_points else groups[field.pairs]
    inside = ends[:, 0] == ends[:, 1]
    _refuse_contradictions(field, unary, inside)

    if field.coupling.ndim == 1:
        merge = _merge_costs
    else:
        merge = _merge_rewards
    pairs, row_of = unique_pairs(n_groups, ends[~inside] if inside.any() else ends)
    pairs = _same(field.pairs, pairs)
    coupling, constant = field.coupling, 0.0
    # Otherwise there is nothing to merge.
    if pairs is not field.pairs or coupling.ndim == 2:
        coupling, constant = merge(coupling, inside, ends, row_of, len(pairs), unary)
    # A cannot-link inside a group that is hard for some labels only forbids the group these labels.
    if (unary.max(axis=1) == -np.inf).any():
        raise_infeasible(field)

    keep = (coupling != 0) if coupling.ndim == 1 else (coupling != 0).any(axis=1)
    if keep_zero_in_component and not keep.all():
        components, _ = group_labels(n_groups, pairs[keep])
        keep |= components[pairs[:, 0]] == components[pairs[:, 1]]
    if not keep.all():
        row_of = np.where(keep, np.cumsum(keep) - 1, DROPPED)[row_of]
        pairs, coupling = pairs[keep], coupling[keep]
    edge_of = None
    if pairs is not field.pairs:
        edge_of = np.full(len(field.pairs), INSIDE, dtype=np.int32)
        edge_of[~inside] = row_of
    del ends, row_of
    coupling = _same(field.coupling, np.ascontiguousarray(coupling))
    problem = Problem(unary, pairs, coupling, adjacency(n_groups, pairs))
    return Reduction(problem, groups.astype(np.int32), edge_of, constant, n_groups)


def induced(problem: Problem, nodes: NDArray[np.integer], key: Hashable = None) -> tuple[Problem, Ints]:
    """The problem restricted to ``nodes``, ascending, and rows of ``problem.pairs``; cached under ``key``."""
    if len(nodes) == len(problem.unary):
        return problem, np.arange(len(problem.pairs))
    if key is None or problem.cache is None:
        part, rows = induced_links(problem, nodes, None)
    else:
        part, rows = cached(problem, key, lambda: induced_links(problem, nodes, {}))
    return part._replace(unary=problem.unary[nodes]), rows


def induced_links(
    problem: Problem, nodes: NDArray[np.integer], cache: dict[Hashable, Any] | None
) -> tuple[Problem, Ints]:
    """The links among the nodes, without scores."""
    place = np.full(len(problem.unary), -1)
    place[nodes] = np.arange(len(nodes))
    ends = place[problem.pairs]
    rows = np.flatnonzero((ends >= 0).all(axis=1))
    pairs = np.ascontiguousarray(ends[rows])
    none = np.empty((0, problem.unary.shape[1]))
    graph = adjacency(len(nodes), pairs)
    coupling = problem.coupling
    # Otherwise only nodes without links are left out.
    if len(rows) < len(coupling):
        coupling = coupling[rows]
    if cache is None:
        return Problem(none, pairs, coupling, graph), rows
    return Problem(none, pairs, coupling, None, {**cache, "graph": graph}), rows


def _same(old: NDArray[Any], new: NDArray[Any]) -> NDArray[Any]:
    """The old array if the new one has the same numbers, so that only one of them is kept."""
    return old if old is new or np.array_equal(old, new) else new


def _without_scores(problem: Problem) -> Problem:
    """The links alone: scores would be kept as long as the links are, also by a view of none of them."""
    return problem._replace(unary=np.empty((0, problem.unary.shape[1])))


def _add_rows(table: Floats, groups: NDArray[np.integer], n_groups: int) -> Floats:
    """Sum of the rows of each group, in the first rows of the table."""
    if n_groups < len(table):
        add_groups(table, groups)
    return table[:n_groups]


def _refuse_contradictions(field: PottsField, unary: Floats, inside: Bools) -> None:
    forbidden = field.coupling == -np.inf
    if forbidden.ndim == 2:
        forbidden = forbidden.all(axis=1)
    if (inside & forbidden).any() or (unary.max(axis=1) == -np.inf).any():
        raise_infeasible(field)


def find_contradiction(field: PottsField) -> Witness | None:
    """Hard links that no labelling with K labels satisfies, if the search finds any."""
    hard = field.coupling if field.coupling.ndim == 1 else field.coupling.max(axis=1)
    rows = np.isinf(hard)
    pairs, row_of = unique_pairs(field.n_points, field.pairs[rows])
    sign = hard[rows]
    clash = np.intersect1d(row_of[sign > 0], row_of[sign < 0])
    if clash.size:
        i, j = pairs[clash[0]].tolist()
        return path_witness(field.n_points, pairs[clash[:1]], i, j)
    weights = np.empty(len(pairs))
    weights[row_of] = sign
    return check_feasibility(field.n_points, pairs, weights, field.n_labels).witness


def raise_infeasible(field: PottsField) -> NoReturn:
    """Raise with a witness, when the field is known to allow no labelling."""
    witness = find_contradiction(field)
    if witness is None:
        hard = np.isinf(field.coupling).reshape(len(field.pairs), -1).all(axis=1)
        positive = field.coupling.reshape(len(field.pairs), -1).max(axis=1) > 0
        witness = Witness(
            "subgraph",
            tuple((min(pair), max(pair)) for pair in field.pairs[hard & positive].tolist()),
            tuple((min(pair), max(pair)) for pair in field.pairs[hard & ~positive].tolist()),
            field.n_labels,
            "the hard links and the labels forbidden by -inf scores leave no labelling; "
            "allow more labels or soften a link",
            tuple(np.unique(field.pairs[hard]).tolist()),
        )
    raise InfeasibleConstraints(witness)


def _merge_costs(
    coupling: Floats, inside: Bools, ends: Ints, row_of: Ints, n_merged: int, unary: Floats
) -> tuple[Floats, float]:
    """Parallel links add; where they oppose each other, the smaller cost is paid in any case."""
    within, between = coupling[inside], coupling[~inside]
    attract = np.bincount(row_of, np.maximum(between, 0.0), n_merged)
    repel = np.bincount(row_of, np.maximum(-between, 0.0), n_merged)
    constant = np.minimum(within, 0.0).sum() - np.minimum(attract, repel).sum()
    return np.subtract(attract, repel, dtype=np.float64), float(constant)


def _merge_rewards(
    coupling: Floats, inside: Bools, ends: Ints, row_of: Ints, n_merged: int, unary: Floats
) -> tuple[Floats, float]:
    """Costs become rewards for agreeing: -(P_a + P_b)/2 [a != b] = -P_a/2 - P_b/2 + P_a [a == b]."""
    soft = coupling < np.inf
    half = np.where(soft, np.maximum(coupling, 0.0), 0.0) / 2
    np.subtract.at(unary, ends[:, 0], half)
    np.subtract.at(unary, ends[:, 1], half)
    np.add.at(unary, ends[inside, 0], np.where(soft, coupling, 0.0)[inside])
    rewards = np.zeros((n_merged, coupling.shape[1]))
    np.add.at(rewards, row_of, coupling[~inside])
    return rewards, 0.0


@inline_kernel
def log_agree(coupling: Floats, edge: int, label: int) -> float:
    """Log potential of link ``edge`` when both ends have this label."""
    if coupling.ndim == 1:
        return min(coupling[edge], 0.0)
    return coupling[edge, label]


@inline_kernel
def log_differ(coupling: Floats, edge: int) -> float:
    """Log potential of link ``edge`` when its ends have different labels."""
    if coupling.ndim == 1:
        return -max(coupling[edge], 0.0)
    return 0.0


@inline_kernel
def log_ratio(coupling: Floats, edge: int, label: int) -> float:
    """log_agree - log_differ: what agreeing on this label gains over differing."""
    if coupling.ndim == 1:
        return coupling[edge]
    return coupling[edge, label]


_ROWS_AT_ONCE = 1024


def add_groups(table: Floats, groups: NDArray[np.integer]) -> None:
    """Put the sum of the rows of group g into row g; what follows the rows of the groups is left over."""
    # Groups are numbered by their first rows, so the row of a group never comes after those it has.
    flat, n_groups, n_labels = table.reshape(-1), 0, table.shape[1]
    for start in range(0, len(table), _ROWS_AT_ONCE):
        rows, group = table[start : start + _ROWS_AT_ONCE].copy(), groups[start : start + _ROWS_AT_ONCE]
        highest = np.maximum.accumulate(np.append(n_groups - 1, group))
        first, n_groups = np.diff(highest) > 0, int(highest[-1]) + 1
        table[group[first]] = rows[first]
        places = group[~first, np.newaxis] * n_labels + np.arange(n_labels)
        np.add.at(flat, places.reshape(-1), rows[~first].reshape(-1))


def spread_groups(table: Floats, groups: NDArray[np.integer]) -> None:
    """Put row g into all rows of group g: ``table[:] = table[groups]``."""
    # From the end: no row is read after it was written, for groups come before their rows.
    for start in reversed(range(0, len(table), _ROWS_AT_ONCE)):
        table[start : start + _ROWS_AT_ONCE] = table[groups[start : start + _ROWS_AT_ONCE]]


def gather_rows(table: Floats, order: NDArray[np.integer]) -> None:
    """Permute the rows: ``table[:] = table[order]``."""
    for column in table.T:
        column[:] = column[order]


def scatter_rows(table: Floats, order: NDArray[np.integer]) -> None:
    """Take ``gather_rows`` back: ``table[order] = table``."""
    for column in table.T:
        column[order] = column.copy()


def normalise_rows(table: Floats) -> float:
    """Replace scores by exp(s_ik) / sum_l exp(s_il); returns the sum of the log normalisers."""
    log_normalisers = []
    for start in range(0, len(table), _ROWS_AT_ONCE):
        rows = table[start : start + _ROWS_AT_ONCE]
        top = rows.max(axis=1, keepdims=True)
        rows -= top
        np.exp(rows, out=rows)
        total = rows.sum(axis=1, keepdims=True)
        rows /= total
        log_normalisers.append(float((top + np.log(total)).sum()))
    return math.fsum(log_normalisers)
