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
from numpy.typing import NDArray

from linkwise.exceptions import FeasibilityWarning, InfeasibleConstraints, InferenceBudgetExceeded
from linkwise.graph import Adjacency, adjacency, group_labels, min_fill_order
from linkwise.inference import BestLabels, PottsField, best_labels
from linkwise.kmeans.hard.links import HardLinks, matched_start, refuse
from linkwise.kmeans.hard.search import search_parts

__all__ = ["ChunkletLabels", "assign_chunklets"]

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
    """Labels (g,) of the chunklets, which keep every cannot-link, and how they were found.

    ``optimal``: proven that no labels that do so cost less, up to rounding (where an integer program was
    needed, up to 1e-6 of the total and of the largest cost). ``parts`` counts the rows that each engine
    answered for. ``search_seconds`` count against the time limit of a fit.
    """

    labels: NDArray[np.int64]
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
    cost: NDArray[np.float64],
    previous: NDArray[np.int64] | None = None,
    *,
    time_limit: float = 30.0,
    late_seconds: float = np.inf,
    proof_seconds: float = np.inf,
    hopeless: NDArray[np.bool_] | None = None,
    search_work: int | None = None,
) -> ChunkletLabels:
    """Labels of least total cost under which all chunklets that are linked apart differ.

    Groups of conflicting chunklets are solved by branch and bound, those that take it too long by
    ``best_labels(method="exact")``: two passes on trees, tables on narrow graphs, and after a longer search
    an integer program. Where that runs out of time as well, ``best_labels(method="auto")`` improves labels
    that are known to keep the links; only then is the result not proven optimal. Once the time is over,
    groups share a small amount of work, and ``late_seconds`` later ``method="icm"`` has to do.

    ``cost`` (g, K) is finite; a constant per chunklet does not matter. ``previous`` (g,) are labels that keep
    the links, e.g. those of the last step; they stay wherever nothing costs less. ``time_limit`` are the
    seconds for groups that take long, of which proofs may take ``proof_seconds``; ``late_seconds`` are those
    after the limit in which good labels may still take a while, and ``search_work`` is the work of the first
    search in one group. ``hopeless`` (g,) marks components, at the number of each, where the long search and
    the integer program failed in an earlier step: they are not tried again. It is changed in place.

    Raises InfeasibleConstraints if the links turn out to be contradictory, which only happens when
    ``links.start`` is None. Raises InferenceBudgetExceeded if ``links.start`` and ``previous`` are None and
    the budgets sufficed neither to find labels that keep the links nor to prove that there are none.
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
    excess: NDArray[np.float64],
    nodes: NDArray[np.int64],
    edges: NDArray[np.int64],
    part: NDArray[np.int64],
    labels: NDArray[np.int64],
    engine: NDArray[np.int64],
    before: NDArray[np.int64] | None,
    deadline: float,
    hopeless: NDArray[np.bool_],
    search_work: int,
) -> NDArray[np.int64]:
    """Solve the parts of ``nodes`` that ``edges`` of ``apart`` join.

    ``labels`` and ``engine`` are changed in place. Returns one node of each part that could not be solved.
    """
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
    part: NDArray[np.int64],
    n_parts: int,
    cost: NDArray[np.float64],
    graph: Adjacency,
    initial: NDArray[np.int64] | None,
    deadline: float,
    work: int,
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.bool_]]:
    """``search_parts`` until the deadline; after it all parts share the work of a few."""
    if time.perf_counter() >= deadline:
        deadline, work = np.inf, min(work, _LATE_SEARCHES * work // n_parts)
    return search_parts(part, n_parts, cost, graph, initial, max_work=work, deadline=deadline)


def _solve_part(
    cost: NDArray[np.float64],
    pairs: NDArray[np.int64],
    start: NDArray[np.int64] | None,
    deadline: float,
    search_work: int,
) -> tuple[NDArray[np.int64], bool, int]:
    """Labels of one part, whether they are proven best, and the engine: tables, a search, an integer program.

    Tables solve sparse parts of a thousand chunklets. With random costs, K = 4 and 45 chunklets in 150 or 250
    links, the search took up to 0.15 s, and integer programs were not done after 3 s.
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


def _field(cost: NDArray[np.float64], pairs: NDArray[np.int64]) -> PottsField:
    """Costs and links as a Potts field; scaled, because engines stop at gaps that are small beside 1."""
    largest = cost.max()
    return PottsField(-cost / (largest if largest > 0.0 else 1.0), pairs, np.full(len(pairs), -np.inf))


def _best_labels(
    field: PottsField, method: str, start: NDArray[np.int64] | None, **options: Any
) -> BestLabels:
    """``best_labels`` without its warning: whoever finds no labels here says so by a score of -inf."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FeasibilityWarning)
        return best_labels(field, method, 0, initial=start, **options)


def _approximate(
    links: HardLinks,
    excess: NDArray[np.float64],
    nodes: NDArray[np.int64],
    previous: NDArray[np.int64] | None,
    deadline: float,
    search_work: int,
) -> tuple[NDArray[np.int64], int]:
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
