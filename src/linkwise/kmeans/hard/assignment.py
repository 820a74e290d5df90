"""The assignment step of K-means under hard links: cheapest labels that keep every one of them.

Rows joined by must-links are contracted to chunklets, which leaves cannot-links between chunklets. The
cheapest labels without regard to cannot-links are a lower bound; only the cannot-links that they break are
taken up, the groups of chunklets that these join are solved exactly, and so on until nothing is broken. The
result is then optimal, because every cannot-link left out is kept all the same.
"""

from __future__ import annotations

import time
import warnings
from typing import Any, NamedTuple

import numpy as np

from linkwise._arrays import Bools, Floats, Ints
from linkwise.exceptions import FeasibilityWarning, InfeasibleConstraints, InferenceBudgetExceeded
from linkwise.graph import Adjacency, adjacency, group_labels, min_fill_order
from linkwise.inference import BestLabels, PottsField, best_labels
from linkwise.kmeans.hard import HardLinks, matched_start, refuse
from linkwise.kmeans.hard.search import search_parts

#: Labels and neighbours that the first search may look at in one group of chunklets, in 2 to 10 ms.
SEARCH_WORK = 10**6
# How much longer the second search may take where tables are out of reach.
_LONGER_SEARCH = 100
# ... and the last one, for labels that will not be proven.
_LAST_SEARCH = 10
# Entries of tables once the time is over; larger ones may take seconds.
_LATE_TABLE = 2**16
# Searches of that size that all groups share once the time is over.
_LATE_SEARCHES = 10
# Widths beyond this are reported as being beyond it.
_REPORTED_WIDTH = 64
#: What found the labels of a chunklet; "independent" is its cheapest label, which broke no link.
_ENGINES = ("independent", "branch_and_bound", "exact", "auto", "icm")
_INDEPENDENT, _SEARCH, _EXACT, _AUTO, _ICM = range(len(_ENGINES))


class ChunkletLabels(NamedTuple):
    """Labels (g,) that keep every cannot-link, whether they are proven best, and the work they took."""

    labels: Ints
    optimal: bool
    parts: dict[str, int]
    search_seconds: float
    converged: bool = True
    n_iter: int = 0

    @property
    def method(self) -> str:
        """The engines of rows in conflict, joined by ``+``; independent if there was no conflict."""
        return "+".join(engine for engine in self.parts if engine != "independent") or "independent"


def assign_chunklets(
    links: HardLinks,
    cost: Floats,
    previous: Ints | None = None,
    *,
    time_limit: float = 30.0,
    late_seconds: float = np.inf,
    proof_seconds: float = np.inf,
    hopeless: Bools | None = None,
    search_work: int | None = None,
) -> ChunkletLabels:
    """Labels of least total cost under which all chunklets that are linked apart differ.

    Groups in conflict are solved by branch and bound, long ones by ``best_labels(method="exact")``, after a
    longer search by an integer program, and if that runs out of time by ``method="auto"`` from labels that
    keep the links, not proven optimal. Once the time is over, groups share a little work, and
    ``late_seconds`` later ``method="icm"`` has to do.

    ``cost`` (g, K) is finite; ``previous`` (g,) are labels that keep the links; ``time_limit``,
    ``proof_seconds`` of it for proofs, and ``search_work`` of the first search in a group are the limits.
    ``hopeless`` (g,) marks components not to be tried again, in place. Raises InfeasibleConstraints, or
    InferenceBudgetExceeded if neither labels nor a proof were found; only without ``links.start``.
    """
    begin = time.perf_counter()
    deadline, over = begin + min(time_limit, proof_seconds), begin + time_limit + late_seconds
    hopeless = np.zeros(len(cost), dtype=bool) if hopeless is None else hopeless
    search_work = SEARCH_WORK if search_work is None else search_work
    excess = cost - cost.min(axis=1, keepdims=True)
    labels = excess.argmin(axis=1)
    apart, component = links.apart, links.component
    active = np.zeros(len(apart), dtype=bool)
    too_hard = np.zeros(len(labels), dtype=bool)
    engine = np.full(len(labels), _INDEPENDENT)
    while True:
        broken = (labels[apart[:, 0]] == labels[apart[:, 1]]) & ~too_hard[component[apart[:, 0]]]
        if not broken.any():
            break
        active |= broken
        part, _ = group_labels(len(labels), apart[active])
        touched = np.zeros(len(labels), dtype=bool)
        touched[part[apart[broken, 0]]] = True
        nodes = np.flatnonzero(touched[part])
        edges = np.flatnonzero(active & touched[part[apart[:, 0]]])
        before = None if previous is None else previous[nodes]
        unsolved = _solve(
            links, excess, nodes, edges, part[nodes], labels, engine, before, deadline, hopeless, search_work
        )
        too_hard[component[unsolved]] = hopeless[component[unsolved]] = True
    hard = np.flatnonzero(too_hard[component])
    if hard.size:
        labels[hard], engine[hard] = _approximate(links, excess, hard, previous, over, search_work)
    if previous is not None:
        # An integer program closes its gap to 1e-6, so what it found may be no improvement.
        rows = np.arange(len(labels))
        gain = np.bincount(component, excess[rows, previous] - excess[rows, labels])
        labels = np.where(gain[component] > 0.0, labels, previous)
    n_rows = np.bincount(engine, links.sizes, minlength=len(_ENGINES)).astype(int).tolist()
    parts = {name: count for name, count in zip(_ENGINES, n_rows, strict=True) if count}
    return ChunkletLabels(labels, not hard.size, parts, time.perf_counter() - begin)


def _solve(
    links: HardLinks,
    excess: Floats,
    nodes: Ints,
    edges: Ints,
    part: Ints,
    labels: Ints,
    engine: Ints,
    before: Ints | None,
    deadline: float,
    hopeless: Bools,
    search_work: int,
) -> Ints:
    """Solve the parts of ``nodes`` that ``edges`` join, in place; one node of each part that failed."""
    part = np.unique(part, return_inverse=True)[1].astype(np.int64)
    pairs = np.searchsorted(nodes, links.apart[edges])
    table = excess[nodes]
    found, cost, proven = _search(
        part, int(part.max()) + 1, table, adjacency(len(nodes), pairs), before, deadline, search_work
    )
    contradictory = np.flatnonzero(proven & (cost == np.inf))
    if contradictory.size:
        refuse(links, edges[part[pairs[:, 0]] == contradictory[0]])
    unsolved = []
    engine[nodes] = _SEARCH
    for number in np.flatnonzero(~proven).tolist():
        members, inner = np.flatnonzero(part == number), np.flatnonzero(part[pairs[:, 0]] == number)
        start = None if cost[number] == np.inf else found[members]
        if start is None and links.start is not None:
            start = matched_start(links, excess, nodes[members])
        in_vain = hopeless[links.component[nodes[members[0]]]]
        try:
            answer, optimal, solved_by = _solve_part(
                table[members],
                np.searchsorted(members, pairs[inner]),
                start,
                -np.inf if in_vain else deadline,
                search_work,
            )
        except InfeasibleConstraints:
            refuse(links, edges[inner])
        except InferenceBudgetExceeded:
            optimal = False
        if optimal:
            found[members] = answer
            engine[nodes[members]] = solved_by
        else:
            unsolved.append(nodes[members[0]])
    labels[nodes] = found
    return np.array(unsolved, dtype=np.int64)


def _search(
    part: Ints, n_parts: int, cost: Floats, graph: Adjacency, initial: Ints | None, deadline: float, work: int
) -> tuple[Ints, Floats, Bools]:
    """``search_parts`` until the deadline; after it all parts share the work of a few."""
    if time.perf_counter() >= deadline:
        deadline, work = np.inf, min(work, _LATE_SEARCHES * work // n_parts)
    return search_parts(part, n_parts, cost, graph, initial, max_work=work, deadline=deadline)


def _solve_part(
    cost: Floats, pairs: Ints, start: Ints | None, deadline: float, search_work: int
) -> tuple[Ints, bool, int]:
    """Labels of one part, whether they are proven best, and the engine: tables, a search, an integer program.

    With random costs, K = 4 and 45 chunklets in 150 or 250 links, the search took up to 0.15 s, integer
    programs over 3 s.
    """
    field = _field(cost, pairs)
    late = time.perf_counter() >= deadline
    smaller = {"max_table": _LATE_TABLE} if late else {}
    answer = _best_labels(field, "exact", start, time_limit=0.0, **smaller)
    if answer.optimal or late:
        return answer.labels, answer.optimal, _EXACT
    one_part = np.zeros(len(cost), dtype=np.int64)
    graph = adjacency(len(cost), pairs)
    labels, found, proven = search_parts(
        one_part, 1, cost, graph, start, max_work=_LONGER_SEARCH * search_work, deadline=deadline
    )
    if proven[0] and found[0] < np.inf:
        return labels, True, _SEARCH
    left = deadline - time.perf_counter()
    answer = _best_labels(field, "exact", labels if found[0] < np.inf else None, time_limit=max(left, 0.0))
    return answer.labels, answer.optimal, _EXACT


def _field(cost: Floats, pairs: Ints) -> PottsField:
    """Costs and links as a Potts field; scaled, because engines stop at gaps that are small beside 1."""
    largest = cost.max()
    return PottsField(-cost / (largest if largest > 0.0 else 1.0), pairs, np.full(len(pairs), -np.inf))


def _best_labels(field: PottsField, method: str, start: Ints | None, **options: Any) -> BestLabels:
    """``best_labels`` without its warning: whoever finds no labels here says so by a score of -inf."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FeasibilityWarning)
        return best_labels(field, method, 0, initial=start, **options)


def _approximate(
    links: HardLinks, excess: Floats, nodes: Ints, previous: Ints | None, deadline: float, search_work: int
) -> tuple[Ints, int]:
    """Cheap labels of whole components, from labels that keep the links, and the engine that found them."""
    edges = np.flatnonzero(np.isin(links.apart[:, 0], nodes))
    pairs = np.searchsorted(nodes, links.apart[edges])
    cost = excess[nodes]
    start = None
    if previous is not None:
        start = previous[nodes]
    elif links.start is not None:
        start = matched_start(links, excess, nodes)
    component = np.unique(links.component[nodes], return_inverse=True)[1].astype(np.int64)
    graph = adjacency(len(nodes), pairs)
    late = time.perf_counter() >= deadline
    work = search_work if late else _LAST_SEARCH * search_work
    n_parts = int(component.max()) + 1
    labels, found, _ = _search(component, n_parts, cost, graph, start, deadline, work)
    known = bool((found < np.inf).all())
    field = _field(cost, pairs)
    # Without labels that keep the links, the better method has to find some.
    engine = _ICM if late and known else _AUTO
    try:
        answer = _best_labels(field, _ENGINES[engine], labels if known else None)
    except InfeasibleConstraints:
        refuse(links, edges)
    if answer.score == -np.inf:
        raise InferenceBudgetExceeded(
            f"neither labels with {links.n_clusters} clusters that keep all hard cannot-links nor a proof "
            "that there are none was found within the budgets; raise node_budget and time_limit, ask for "
            "more clusters, or make links soft and use PCKMeans",
            min_fill_order(graph, _REPORTED_WIDTH).width,
        )
    return answer.labels, engine
