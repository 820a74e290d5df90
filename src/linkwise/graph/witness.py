"""Proofs that hard links contradict each other, told in the user's own links."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from linkwise._arrays import Ints, ShortInts
from linkwise._kernels import kernel
from linkwise.exceptions import Witness
from linkwise.graph.csr import adjacency, unique_pairs, with_room

#: Numbers (n,) of nodes in the user's data, ascending; None if they are 0, 1, ...
Names = Ints | None

#: Longer lists of points are abbreviated in messages (never in the witness).
_LONGEST_LIST = 12


@kernel
def _shortest_paths(indptr: ShortInts, neighbours: ShortInts, ends: Ints) -> tuple[Ints, Ints]:
    """Breadth-first paths between the two nodes of every row, end to end; nothing where there is none."""
    parent = np.full(indptr.size - 1, -1, dtype=np.int64)
    queue = np.empty(indptr.size, dtype=np.int64)
    head = 0
    tail = 0
    paths = np.empty(16, dtype=np.int64)
    path_ends = np.zeros(ends.shape[0] + 1, dtype=np.int64)
    for row in range(ends.shape[0]):
        source = ends[row, 0]
        target = ends[row, 1]
        if row == 0 or source != ends[row - 1, 0]:
            for place in range(tail):
                parent[queue[place]] = -1
            parent[source] = source
            queue[0] = source
            head = 0
            tail = 1
        while parent[target] < 0 and head < tail:
            node = queue[head]
            head += 1
            for slot in range(indptr[node], indptr[node + 1]):
                other = neighbours[slot]
                if parent[other] < 0:
                    parent[other] = node
                    queue[tail] = other
                    tail += 1
        length = 0
        if parent[target] >= 0:
            length = 1
            node = target
            while node != source:
                node = parent[node]
                length += 1
        start = path_ends[row]
        path_ends[row + 1] = start + length
        paths = with_room(paths, start, start + length)
        node = target
        for place in range(start + length - 1, start - 1, -1):
            paths[place] = node
            node = parent[node]
    return paths[: path_ends[-1]], path_ends


def _must_link_paths(n_nodes: int, must_link: Ints, ends: Ints, names: Names = None) -> tuple[Ints, Ints]:
    """Shortest chains of must-links between the ends of every row, by ``names``, and where each starts."""
    graph = adjacency(n_nodes, must_link)
    nodes, starts = _shortest_paths(graph.indptr, graph.neighbours, ends)
    return _named(nodes, names), starts


def _named(nodes: Ints, names: Names) -> Ints:
    return nodes if names is None else names[nodes]


def must_link_path(n_nodes: int, must_link_pairs: Ints, start: int, end: int) -> list[int]:
    """Shortest chain of must-links from one point to another, both included; ValueError if there is none."""
    path, _ = _must_link_paths(n_nodes, must_link_pairs, np.array([[start, end]]))
    if not path.size:
        raise ValueError(f"no chain of must-links joins {start} and {end}; pass two points of one chunklet")
    points: list[int] = path.tolist()
    return points


def _as_links(pairs: Ints) -> tuple[tuple[int, int], ...]:
    """Pairs as the user's links are written: smaller point first, sorted, each once."""
    links, _ = unique_pairs(int(pairs.max(initial=0)) + 1, pairs)
    return tuple(zip(links[:, 0].tolist(), links[:, 1].tolist(), strict=True))


def _chain_links(nodes: Ints, starts: Ints) -> Ints:
    """The pairs of consecutive points of chains that lie end to end."""
    inside = np.ones(nodes.size, dtype=bool)
    inside[starts[1:] - 1] = False
    return np.column_stack((nodes[inside], nodes[np.flatnonzero(inside) + 1]))


def _abbreviated(names: Sequence[Any], text: Callable[[Any], str] = str) -> list[str]:
    """Texts of the names, the middle of a long list replaced by dots."""
    if len(names) > _LONGEST_LIST:
        return [*map(text, names[:4]), "...", *map(text, names[-3:])]
    return [*map(text, names)]


def _chain(points: Sequence[int]) -> str:
    """Points that must be together, e.g. ``3-8-17``."""
    return "-".join(_abbreviated(points))


def _enumeration(groups: Sequence[Sequence[int]]) -> str:
    """Groups of points as a person lists them, e.g. ``0, 4-5 and 9``."""
    shown = _abbreviated(groups, _chain)
    return f"{', '.join(shown[:-1])} and {shown[-1]}"


def _note_on_chains(n_groups: int, n_points: int) -> str:
    """Explain the dashes, where there are any."""
    return " (points joined by - must be together)" if n_points > n_groups else ""


def path_witness(n_nodes: int, must_link: Ints, start: int, end: int, names: Names = None) -> Witness:
    """Two points are linked apart, yet a chain of must-links joins them; with a shortest chain."""
    path = must_link_path(n_nodes, must_link, start, end)
    if names is not None:
        path, start, end = names[path].tolist(), int(names[start]), int(names[end])
    return Witness(
        kind="path",
        must_link=_as_links(np.column_stack((path[:-1], path[1:]))),
        cannot_link=((min(start, end), max(start, end)),),
        n_clusters=None,
        message=f"{start} and {end} must be together ({_chain(path)}) but are linked apart; "
        "remove one of these links",
        points=tuple(path),
    )


def single_cluster_witness(cannot_link: tuple[int, int]) -> Witness:
    """One cluster cannot hold two points that are linked apart."""
    first, second = cannot_link
    return Witness(
        kind="single_cluster",
        must_link=(),
        cannot_link=(cannot_link,),
        n_clusters=1,
        message=(
            f"{first} and {second} are linked apart: they need 2 clusters but n_clusters=1; "
            "use n_clusters >= 2 or remove this link"
        ),
        points=(first, second),
    )


def ring_witness(n_nodes: int, must_link: Ints, ring: Ints, names: Names = None) -> Witness:
    """Two clusters cannot satisfy an odd ring of cannot-links (l, 2), given in ring order."""
    # A ring can be read from any place in both directions: start low and go the lower way.
    lowest = np.minimum(ring[:, 0], np.roll(ring[:, 1], 1))
    ring = np.roll(ring, -np.argmin(lowest), axis=0)
    if min(ring[-1, 0], ring[-2, 1]) < min(ring[1, 0], ring[0, 1]):
        ring = ring[::-1, ::-1]
    nodes, starts = _must_link_paths(
        n_nodes, must_link, np.column_stack((np.roll(ring[:, 1], 1), ring[:, 0])), names
    )
    length = len(ring)
    note = _note_on_chains(length, nodes.size)

    def chain(place: int) -> list[int]:
        points: list[int] = nodes[starts[place] : starts[place + 1]].tolist()
        return points

    if length == 3:
        message = (
            f"{_enumeration([chain(place) for place in range(3)])} are pairwise linked apart{note}: "
            "they need 3 clusters but n_clusters=2"
        )
    else:
        groups = _abbreviated(range(length), lambda place: _chain(chain(place)))
        message = (
            f"{length} groups of points stand in a ring, each linked apart from the next "
            f"({' | '.join([*groups, str(nodes[0])])}){note}: two clusters cannot satisfy an odd ring"
        )
    return Witness(
        kind="odd_ring",
        must_link=_as_links(_chain_links(nodes, starts)),
        cannot_link=_as_links(_named(ring, names)),
        n_clusters=2,
        message=f"{message}; use n_clusters >= 3 or remove one of these links",
        points=tuple(nodes.tolist()),
    )


def _joined_ends(
    must_link: Ints, groups: Ints, cannot_link: Ints, names: Names
) -> tuple[list[list[int]], tuple[tuple[int, int], ...]]:
    """Points of every chunklet the cannot-links touch, and the must-links that join them there."""
    points = np.unique(cannot_link)
    _, first, group_of = np.unique(groups[points], return_index=True, return_inverse=True)
    by_group = np.argsort(group_of, kind="stable")
    ends = np.column_stack((points[first[group_of]], points))[by_group]
    nodes, starts = _must_link_paths(groups.size, must_link, ends, names)
    group_of_node = np.repeat(group_of[by_group], np.diff(starts))
    members = [np.unique(nodes[group_of_node == group]).tolist() for group in range(first.size)]
    return sorted(members), _as_links(_chain_links(nodes, starts))


def groups_witness(
    must_link: Ints,
    groups: Ints,
    cannot_link: Ints,
    n_clusters: int,
    names: Names = None,
    *,
    clique: bool = False,
) -> Witness:
    """More groups than clusters are pairwise linked apart, or an exhaustive search found no labelling."""
    members, joining = _joined_ends(must_link, groups, cannot_link, names)
    points = sorted(point for group in members for point in group)
    among, chains = _enumeration(members), _note_on_chains(len(members), len(points))
    message = (
        f"no labelling with n_clusters={n_clusters} satisfies the {len(cannot_link)} cannot-links among "
        f"{among}{chains}: every way was tried; use more clusters or remove some of these links"
    )
    if clique:
        message = (
            f"{among} are pairwise linked apart{chains}: they need {len(members)} clusters but "
            f"n_clusters={n_clusters}; use n_clusters >= {len(members)} or remove one of these links"
        )
    return Witness(
        kind="clique" if clique else "subgraph",
        must_link=joining,
        cannot_link=_as_links(_named(cannot_link, names)),
        n_clusters=n_clusters,
        message=message,
        points=tuple(points),
    )
