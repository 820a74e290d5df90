"""Exact inference on narrow components: a junction tree in the form of elimination buckets.

A component is narrow if min-fill finds an elimination order that keeps its tables, of K ** (width + 1)
entries, within the budget. That is decided before anything large is allocated.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from linkwise._arrays import Bools, Floats, Ints, ShortInts
from linkwise._kernels import kernel
from linkwise.graph import Adjacency, core_numbers, group_labels, induced_subgraph, min_fill_order
from linkwise.inference.exact.bucket_kernels import Buckets, fill_best_labels, fill_marginals
from linkwise.inference.exact.distinct_labels import distinct_components
from linkwise.inference.problem import Problem, cached

#: Entries of the largest table: 32 MB.
MAX_TABLE = 2**22
#: The tables of a component are kept for the way back. Together they may have this many times as many entries
#: as the largest table allowed by default, or by ``max_table`` if that is larger: 512 MB.
TABLES_PER_COMPONENT = 16
#: Nodes of the neighbourhoods that are tried before a much larger component.
_PROBES = (2**12, 2**16)


class Plan(NamedTuple):
    """Which components of a problem exact inference can solve.

    ``component`` (n,) of each node; ``sizes`` (c,); ``forest`` (c,): a node or a tree; ``distinct`` (c,): all
    nodes need different labels; ``feasible`` (c,): within the budget; ``buckets``: elimination of the other
    feasible ones; ``widths`` (c,): of the order found, or a lower bound above the budget.
    """

    component: ShortInts
    sizes: ShortInts
    forest: Bools
    widths: ShortInts
    feasible: Bools
    buckets: Buckets
    distinct: Bools


def find_components(problem: Problem) -> tuple[Ints, Ints, Bools]:
    """Connected component (n,) of each node, their sizes (c,), and which (c,) have no ring."""
    component, n_components = group_labels(len(problem.unary), problem.pairs)
    sizes = np.bincount(component, minlength=n_components)
    n_links = np.bincount(component[problem.pairs[:, 0]], minlength=n_components)
    return component, sizes, n_links < sizes


def plan(problem: Problem, max_table: int = MAX_TABLE) -> Plan:
    """Find elimination orders by min-fill and decide which components are narrow enough.

    A table may have ``max_table`` entries; those of a component 2 ** 26, or 16 times ``max_table`` if that is
    more.
    """
    n_labels = problem.unary.shape[1]
    component, sizes, forest = find_components(problem)
    n_components = len(sizes)
    widths = np.minimum(sizes - 1, 1)
    if n_labels == 1:
        # One label, one labelling: solved without tables.
        solvable = np.ones(n_components, dtype=bool)
        return _kept(component, sizes, forest, widths, solvable, _no_buckets(), ~solvable)

    max_width = _largest_width(max_table, n_labels)
    distinct = distinct_components(problem, component, sizes, max_table)
    widths[distinct] = sizes[distinct] - 1
    left = np.flatnonzero(~(forest | distinct)[component])
    steps = _eliminate(problem.graph, left, component, widths, max_width)
    entries = np.bincount(
        component[steps.order], float(n_labels) ** (steps.bag_sizes + 1), minlength=n_components
    )
    narrow = (entries > 0) & (entries <= total_budget(max_table))
    buckets = _buckets(steps.select(narrow[component[steps.order]]), component, n_labels)
    feasible = forest | narrow | distinct
    return _kept(component, sizes, forest, widths, feasible, buckets, distinct)


def _kept(component: Ints, sizes: Ints, forest: Bools, widths: Ints, *rest: Any) -> Plan:
    """A plan in integers of 32 bits, because a mixture keeps it between EM steps."""
    return Plan(component.astype(np.int32), sizes.astype(np.int32), forest, widths.astype(np.int32), *rest)


def total_budget(max_table: int) -> int:
    """Entries that the tables of one component may have together."""
    return TABLES_PER_COMPONENT * max(max_table, MAX_TABLE)


def _largest_width(max_table: int, n_labels: int) -> int:
    """Largest w with n_labels ** (w + 1) <= max_table."""
    width = -1
    entries = n_labels
    while entries <= max_table:
        entries *= n_labels
        width += 1
    return width


class _Elimination(NamedTuple):
    """Steps in order: node, size of its bag, and the bags end to end."""

    order: Ints
    bag_sizes: Ints
    bags: Ints

    def select(self, rows: Bools) -> _Elimination:
        """Some of the steps."""
        return _Elimination(
            self.order[rows], self.bag_sizes[rows], self.bags[np.repeat(rows, self.bag_sizes)]
        )


def _eliminate(graph: Adjacency, nodes: Ints, component: Ints, widths: Ints, max_width: int) -> _Elimination:
    """Eliminate the components of these nodes, but those that are too wide; small ones all at once."""
    if nodes.size == 0:
        return _Elimination(nodes, nodes, nodes)
    left_of = np.bincount(component[nodes], minlength=len(widths))
    small = nodes[left_of[component[nodes]] <= _PROBES[0]]
    # The core number, a lower bound of the width, keeps dense components from stopping the others.
    np.maximum.at(widths, component[small], core_numbers(_part(graph, small))[1])
    small = small[widths[component[small]] <= max_width]
    together, _ = _min_fill(_part(graph, small), small, max_width)
    left_of -= np.bincount(component[together.order], minlength=len(widths))
    pieces = [together.select(left_of[component[together.order]] == 0)]

    left_of[widths > max_width] = 0
    # Without a copy of a component that turns out to be too wide, which most large ones are.
    for large in np.flatnonzero(left_of >= 4 * _PROBES[0]).tolist():
        width = _probe(graph, int(np.argmax(component == large)), left_of[large], max_width)
        if width > max_width:
            widths[large], left_of[large] = width, 0
    left = nodes[left_of[component[nodes]] > 0]
    left = left[np.argsort(component[left], kind="stable")]
    rest = _part(graph, left)
    bounds = np.flatnonzero(np.diff(component[left], prepend=-1, append=-1))
    for start, stop in itertools.pairwise(bounds.tolist()):
        slots = slice(rest.indptr[start], rest.indptr[stop])
        one = Adjacency(
            rest.indptr[start : stop + 1] - rest.indptr[start],
            rest.neighbours[slots] - start,
            rest.edges[slots],
        )
        found, width = _min_fill(one, left[start:stop], max_width)
        pieces.append(found)
        widths[component[left[start]]] = width
    steps = _Elimination(*(np.concatenate(column) for column in zip(*pieces, strict=True)))
    np.maximum.at(widths, component[steps.order], steps.bag_sizes)
    return steps.select(widths[component[steps.order]] <= max_width)


def _part(graph: Adjacency, nodes: Ints) -> Adjacency:
    """The subgraph on these nodes, without a copy if they are all nodes in order."""
    if len(nodes) == len(graph.indptr) - 1 and (np.diff(nodes) == 1).all():
        return graph
    return induced_subgraph(graph, nodes)


@kernel
def _neighbourhood(indptr: ShortInts, neighbours: ShortInts, start: int, size: int) -> Ints:
    """The first nodes that a breadth-first search from this node meets."""
    near = np.empty(size, dtype=np.int64)
    seen = np.zeros(indptr.shape[0] - 1, dtype=np.bool_)
    seen[start] = True
    near[0] = start
    head = 0
    tail = 1
    while head < tail:
        for slot in range(indptr[near[head]], indptr[near[head] + 1]):
            other = neighbours[slot]
            if not seen[other]:
                if tail == size:
                    return near
                seen[other] = True
                near[tail] = other
                tail += 1
        head += 1
    return near[:tail]


def _probe(graph: Adjacency, start: int, n_nodes: int, max_width: int) -> int:
    """Width of a neighbourhood of this node if it is too wide, else 0: a whole search may take seconds.

    ``n_nodes``: of the component.
    """
    for size in _PROBES:
        if 4 * size <= n_nodes:
            near = _neighbourhood(graph.indptr, graph.neighbours, start, size)
            found = min_fill_order(induced_subgraph(graph, near), max_width)
            if not found.complete:
                return found.width
    return 0


def _min_fill(graph: Adjacency, nodes: Ints, max_width: int) -> tuple[_Elimination, int]:
    """Min-fill elimination of a subgraph, in the numbering of the whole graph, and its width."""
    found = min_fill_order(graph, max_width)
    return _Elimination(nodes[found.order], np.diff(found.bags_indptr), nodes[found.bags]), found.width


def _buckets(steps: _Elimination, component: Ints, n_labels: int) -> Buckets:
    """Renumber by step, components contiguous, separators ascending."""
    order, bag_sizes, bags = steps
    if order.size == 0:
        return _no_buckets()
    rank = np.argsort(component[order], kind="stable")
    new_step = np.empty_like(rank)
    new_step[rank] = np.arange(len(rank))
    step_of = np.full(len(component), -1)
    step_of[order] = new_step
    owner = np.repeat(new_step, bag_sizes)
    later = step_of[bags]
    order, bag_sizes = order[rank], bag_sizes[rank]
    separators = later[np.lexsort((later, owner))]
    first = np.flatnonzero(np.diff(component[order], prepend=-1))
    ends = np.cumsum(n_labels ** (bag_sizes + 1))
    before = ends - n_labels ** (bag_sizes + 1)
    starts = np.append(first, len(order))
    offset = before - np.repeat(before[first], np.diff(starts))
    return Buckets(
        order,
        step_of,
        np.append(0, np.cumsum(bag_sizes)),
        separators,
        offset,
        starts,
        int(np.diff(np.append(before[first], ends[-1])).max()),
        int(n_labels ** bag_sizes.max()),
    )


def _no_buckets() -> Buckets:
    none = np.empty(0, dtype=np.int64)
    zero = np.zeros(1, dtype=np.int64)
    return Buckets(none, none, zero, none, none, zero, 0, 0)


#: Table entries for one call of a kernel.
_ENTRIES_AT_ONCE = 2**24


def junction_marginals(problem: Problem, buckets: Buckets, prob: Floats, agreement: Floats) -> float:
    """Calibrate the junction trees: rows of ``prob`` (n, K), ``agreement`` (m,), and the log partition."""
    if not buckets.order.size:
        return 0.0
    # Kept even where message passing forgets it: every call reads it.
    graph, links = cached(problem, "graph of buckets", lambda: problem.graph), _links(problem)
    shift = np.zeros(len(buckets.order))
    for some in _at_a_time(buckets, problem.unary.shape[1]):
        fill_marginals(problem.unary, *links, graph, some, prob, agreement, shift)
    return float(shift.sum())


def junction_best_labels(problem: Problem, buckets: Buckets, labels: Ints) -> None:
    """Max-sum on the junction trees with back-tracking, written into ``labels`` (n,)."""
    graph, links = problem.graph, _links(problem)
    for some in _at_a_time(buckets, problem.unary.shape[1]):
        fill_best_labels(problem.unary, *links, graph, some, labels)


def _links(problem: Problem) -> tuple[Floats, bool]:
    """Coupling as a table (m, K) or (m, 1), and whether it is rewards for each label."""
    rewards = problem.coupling.ndim == 2
    return problem.coupling if rewards else problem.coupling[:, np.newaxis], rewards


def _at_a_time(buckets: Buckets, n_labels: int) -> Iterator[Buckets]:
    """The buckets in portions that a kernel solves in some 0.2 s, so that an interrupt gets through."""
    starts = buckets.component_start
    if len(starts) == 1:
        return
    if buckets.n_entries * (len(starts) - 1) <= _ENTRIES_AT_ONCE:
        yield buckets
        return
    entries = np.append(0, np.cumsum(float(n_labels) ** (np.diff(buckets.separator_indptr) + 1)))[starts]
    first = 0
    while first < len(starts) - 1:
        last = int(np.searchsorted(entries, entries[first] + _ENTRIES_AT_ONCE, side="right")) - 1
        last = max(last, first + 1)
        yield buckets._replace(component_start=starts[first : last + 1])
        first = last
