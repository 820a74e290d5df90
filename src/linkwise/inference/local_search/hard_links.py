"""Hard cannot-links for approximate engines: labels that keep them, repairs, and what to do without."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.special import softmax

from linkwise._arrays import Bools, Floats, Ints
from linkwise._kernels import kernel
from linkwise.graph import Adjacency, adjacency, check_feasibility, group_labels
from linkwise.inference.exact.exact import exact_best_labels
from linkwise.inference.exact.junction_tree import plan
from linkwise.inference.problem import Problem, cached, induced, log_ratio
from linkwise.inference.scoring import n_broken, problem_score

#: Nats a softened hard link costs beyond the largest spread of the unary scores.
_SOFTENED = 20.0
#: Entries of the largest table in the search for a labelling.
_TABLE = 2**16
# Far below the largest double, so that sums of many such terms stay finite.
_LARGEST_COST = 1e290


def hard_rows(problem: Problem) -> Bools:
    """Links that forbid agreement on some label, (m,) bool."""
    forbidden = problem.coupling == -np.inf
    return forbidden if forbidden.ndim == 1 else forbidden.any(axis=1)


def feasible_labels(
    problem: Problem, rng: np.random.Generator
) -> tuple[Literal["feasible", "infeasible", "unknown"], Ints]:
    """A labelling of finite score, drawn with some randomness.

    Points with hard links are coloured; labels forbidden by ``-inf`` scores become links to K extra nodes,
    one per label and all linked apart. A link that is hard for some labels counts as hard for all. Where that
    finds and proves nothing, narrow components are eliminated.
    """
    n_labels = problem.unary.shape[1]
    labels = problem.unary.argmax(axis=1)
    hard = hard_rows(problem)
    if not hard.any():
        return "feasible", labels
    nodes, ends = np.unique(problem.pairs[hard], return_inverse=True)
    shuffled = rng.permutation(len(nodes))
    forbidden_node, forbidden_label = np.nonzero(problem.unary[nodes] == -np.inf)
    extra = len(nodes) + rng.permutation(n_labels)
    apart = [shuffled[ends.reshape(-1, 2)]]
    if forbidden_node.size:
        apart.append(np.column_stack([shuffled[forbidden_node], extra[forbidden_label]]))
        apart.append(np.column_stack(np.triu_indices(n_labels, 1)) + len(nodes))
    pairs = np.sort(np.concatenate(apart), axis=1)
    pairs = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
    found = check_feasibility(len(nodes) + n_labels, pairs, np.full(len(pairs), -np.inf), n_labels)
    if found.labels is None:
        partly = problem.coupling.ndim == 2 and (problem.coupling[hard] > -np.inf).any()
        if found.status == "infeasible" and not partly:
            return "infeasible", labels
        status, labels[nodes] = _eliminate(problem, nodes, rng)
        return status, labels
    label_of_colour = rng.permutation(n_labels)
    if forbidden_node.size:
        label_of_colour[found.labels[extra]] = np.arange(n_labels)
    labels[nodes] = label_of_colour[found.labels[shuffled]]
    return "feasible", labels


def _eliminate(
    problem: Problem, nodes: Ints, rng: np.random.Generator
) -> tuple[Literal["feasible", "infeasible", "unknown"], Ints]:
    """The same answer for the nodes with hard links, from the tables of narrow components."""
    part, _ = induced(problem, nodes)
    part = part._replace(
        # Random scores choose among the labellings that are allowed.
        unary=np.where(part.unary == -np.inf, -np.inf, rng.random(part.unary.shape)),
        coupling=np.where(part.coupling == -np.inf, -np.inf, 0.0),
        cache=None,
    )
    labels = part.unary.argmax(axis=1)
    planned = plan(part, _TABLE)
    narrow = np.flatnonzero(planned.feasible[planned.component])
    if narrow.size:
        solvable, _ = induced(part, narrow)
        labels[narrow] = exact_best_labels(solvable, rng, max_table=_TABLE).labels
        if problem_score(solvable, labels[narrow]) == -np.inf:
            return "infeasible", labels
    return "feasible" if narrow.size == len(nodes) else "unknown", labels


def soften(problem: Problem) -> Problem:
    """The problem with hard cannot-links replaced by soft ones that outweigh any single point."""
    finite = np.where(problem.unary > -np.inf, problem.unary, np.nan)
    spread = np.nanmax(finite, axis=1) - np.nanmin(finite, axis=1)
    strength = spread.max() + _SOFTENED
    return problem._replace(coupling=np.maximum(problem.coupling, -strength))


def disjoint_supports(problem: Problem, labels: Ints) -> Problem:
    """Give each label to one side of every hard link; no hard links are left.

    Every point keeps its label, and takes any other that no point across a hard link has, the most probable
    first. The partition function is at most that of the problem.
    """
    hard = hard_rows(problem)
    nodes = np.unique(problem.pairs[hard])
    allowed = problem.unary > -np.inf
    allowed[nodes] = False
    allowed[nodes, labels[nodes]] = True
    candidates = np.argsort(-softmax(problem.unary[nodes], axis=1), axis=None, kind="stable")
    _grow(nodes, candidates, problem.unary, problem.graph, problem.coupling, allowed)
    return problem._replace(
        unary=np.where(allowed, problem.unary, -np.inf),
        coupling=np.where(problem.coupling == -np.inf, 0.0, problem.coupling),
    )


@kernel
def _grow(
    nodes: Ints, candidates: Ints, unary: Floats, graph: Adjacency, coupling: Floats, allowed: Bools
) -> None:
    """Allow each (node, label) in turn unless a node across a hard link has the label already."""
    indptr, neighbours, edges = graph
    n_labels = unary.shape[1]
    for candidate in candidates:
        node = nodes[candidate // n_labels]
        label = candidate % n_labels
        if unary[node, label] == -np.inf:
            continue
        free = True
        for slot in range(indptr[node], indptr[node + 1]):
            if allowed[neighbours[slot], label] and log_ratio(coupling, edges[slot], label) == -np.inf:
                free = False
                break
        if free:
            allowed[node, label] = True


def lexicographic(problem: Problem) -> Problem:
    """The problem with every ``-inf`` replaced by a finite cost that outweighs all soft terms together."""
    forbidden = problem.unary == -np.inf
    highest = problem.unary.max(axis=1)
    lowest = np.where(forbidden, np.inf, problem.unary).min(axis=1)
    strength = np.where(problem.coupling == -np.inf, 0.0, np.abs(problem.coupling))
    if strength.ndim == 2:
        # A link's terms range from its lowest to its highest reward, or 0.
        strength = 2.0 * strength.max(axis=1)
    cost = min(1.0 + 2.0 * ((highest - lowest).sum() + strength.sum()), _LARGEST_COST)
    return Problem(
        np.where(forbidden, lowest[:, None] - cost, problem.unary),
        problem.pairs,
        np.maximum(problem.coupling, -cost),
        problem.graph,
    )


def recolour(problem: Problem, labels: Ints, rng: np.random.Generator) -> Ints:
    """Relabel hard-linked groups with a broken link by a colouring and an assignment to the unary score."""
    result = labels.copy()
    n_labels = problem.unary.shape[1]
    hard = hard_rows(problem)
    pairs, coupling = problem.pairs[hard], problem.coupling[hard]
    group, n_groups = group_labels(len(labels), pairs)
    broken = np.zeros(n_groups, dtype=bool)
    at_first, at_second = labels[pairs].T
    violated = at_first == at_second
    if coupling.ndim == 2:
        violated &= coupling[np.arange(len(pairs)), at_first] == -np.inf
    broken[group[pairs[violated, 0]]] = True
    broken[group[problem.unary[np.arange(len(labels)), labels] == -np.inf]] = True
    nodes = np.flatnonzero(broken[group])
    part, _ = induced(problem, nodes)
    status, colours = feasible_labels(part, rng)
    if status != "feasible":
        return result

    inside = hard_rows(part)
    if (part.coupling[inside] > -np.inf).any():
        # Labels differ in what is hard for them, so that colours cannot change places.
        result[nodes] = colours
        return result
    members = np.cumsum(broken)[group[nodes]] - 1
    value = np.zeros((int(broken.sum()), n_labels, n_labels))
    # A renaming that keeps to the allowed labels exists (the identity), so the assignment finds one too.
    np.add.at(value, (members, colours), lexicographic(part).unary)
    label_of = np.array([linear_sum_assignment(table, maximize=True)[1] for table in value])
    result[nodes] = label_of[members, colours]
    return result


class HardPart(NamedTuple):
    """What decides whether labels are allowed: the ``whole`` problem without scores, ``forbidden`` (s, K)."""

    whole: Problem
    forbidden: Bools | None

    def problem(self) -> tuple[Problem, Ints]:
        """The links with couplings and scores of 0 and ``-inf``, and the nodes (s,) that have any."""
        links, nodes = cached(self.whole, "hard links", lambda: _hard_links(self.whole))
        scores = np.zeros((len(nodes), links.unary.shape[1]))
        if self.forbidden is not None:
            scores[self.forbidden] = -np.inf
        return links._replace(unary=scores), nodes


def hard_part(problem: Problem) -> HardPart | None:
    """The hard part, taken before an engine writes over the scores; None without hard cannot-links."""
    if not cached(problem, "any hard", lambda: bool(hard_rows(problem).any())):
        return None
    forbidden = None
    if problem.unary.min() == -np.inf:
        _, nodes = cached(problem, "hard links", lambda: _hard_links(problem))
        forbidden = problem.unary[nodes] == -np.inf
        forbidden = forbidden if forbidden.any() else None
    return HardPart(problem._replace(unary=np.empty((0, problem.unary.shape[1]))), forbidden)


def _hard_links(problem: Problem) -> tuple[Problem, Ints]:
    """The hard links with couplings of 0 and ``-inf``, without scores, and the nodes that have any."""
    hard = hard_rows(problem)
    nodes, ends = np.unique(problem.pairs[hard], return_inverse=True)
    pairs = ends.reshape(-1, 2).astype(np.int64)
    coupling = np.where(problem.coupling[hard] == -np.inf, -np.inf, 0.0)
    none = np.empty((0, problem.unary.shape[1]))
    cache: dict[Hashable, Any] | None = None if problem.cache is None else {}
    return Problem(none, pairs, coupling, adjacency(len(nodes), pairs), cache), nodes


def feasibility(part: HardPart, labels: Ints) -> Literal["feasible", "infeasible", "unknown"]:
    """Whether some labelling, such as ``labels`` (n,), breaks no hard link and uses no forbidden label."""
    problem, nodes = part.problem()
    if n_broken(problem, labels[nodes]) == 0:
        return "feasible"
    if part.forbidden is None:
        return cached(problem, "feasibility", lambda: _search(problem))
    return _search(problem)


def _search(problem: Problem) -> Literal["feasible", "infeasible", "unknown"]:
    # The search shuffles: a generator of its own leaves the draws of the engine alone.
    return feasible_labels(problem, np.random.default_rng(0))[0]
