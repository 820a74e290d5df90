from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from linkwise.graph import check_feasibility, must_link_path
from tests.graph.oracle import complete, cycle, distance, mycielski, random_pairs


def witness_of(n, n_clusters, must=(), cannot=()):
    links = sorted([(*link, np.inf) for link in must] + [(*link, -np.inf) for link in cannot])
    pairs = np.array([link[:2] for link in links], dtype=np.int64).reshape(-1, 2)
    return check_feasibility(n, pairs, np.array([link[2] for link in links]), n_clusters).witness


def test_paths_are_shortest():
    rng = np.random.default_rng(0)
    for _ in range(200):
        n = int(rng.integers(2, 15))
        pairs = random_pairs(rng, n, 2.0 / n)
        start, end = rng.integers(n, size=2).tolist()
        steps = distance(n, pairs, start, end)
        if steps is None:
            with pytest.raises(ValueError, match=f"joins {start} and {end}"):
                must_link_path(n, pairs, start, end)
            continue
        path = must_link_path(n, pairs, start, end)
        assert path[0] == start
        assert path[-1] == end
        assert len(path) == steps + 1
        links = {tuple(pair) for pair in pairs.tolist()}
        assert all((min(a, b), max(a, b)) in links for a, b in pairwise(path))


def test_path():
    witness = witness_of(20, None, must=[(3, 8), (8, 17), (3, 5), (5, 6), (6, 17)], cannot=[(3, 17)])
    assert witness.kind == "path"
    assert witness.message == (
        "3 and 17 must be together (3-8-17) but are linked apart; remove one of these links"
    )
    assert witness.points == (3, 8, 17)
    assert witness.must_link == ((3, 8), (8, 17))
    assert witness.cannot_link == ((3, 17),)
    assert witness.n_clusters is None


def test_long_path_is_shortened_in_the_message_only():
    n = 1000
    witness = witness_of(n, 3, must=[(i, i + 1) for i in range(n - 1)], cannot=[(0, n - 1)])
    assert witness.message == (
        "0 and 999 must be together (0-1-2-3-...-997-998-999) but are linked apart; remove one of these links"
    )
    assert witness.points == tuple(range(n))
    assert len(witness.must_link) == n - 1


def test_single_cluster():
    witness = witness_of(9, 1, cannot=[(2, 7), (4, 5)])
    assert witness.kind == "single_cluster"
    assert witness.cannot_link == ((2, 7),)
    assert witness.message == (
        "2 and 7 are linked apart: they need 2 clusters but n_clusters=1; "
        "use n_clusters >= 2 or remove this link"
    )


def test_triangle_in_two_clusters():
    witness = witness_of(10, 2, cannot=[(0, 4), (4, 9), (0, 9)])
    assert witness.kind == "odd_ring"
    assert witness.points == (0, 4, 9)
    assert witness.message == (
        "0, 4 and 9 are pairwise linked apart: they need 3 clusters but n_clusters=2; "
        "use n_clusters >= 3 or remove one of these links"
    )


def test_ring_of_five():
    witness = witness_of(10, 2, cannot=[(0, 4), (4, 9), (2, 9), (2, 7), (0, 7)])
    assert witness.kind == "odd_ring"
    assert witness.points == (0, 4, 9, 2, 7)
    assert witness.message == (
        "5 groups of points stand in a ring, each linked apart from the next (0 | 4 | 9 | 2 | 7 | 0): "
        "two clusters cannot satisfy an odd ring; use n_clusters >= 3 or remove one of these links"
    )


def test_ring_through_chunklets_tells_the_must_links():
    """0 and 3 are one group by way of 8: the ring is 3-8-0 | 1 | 2."""
    witness = witness_of(9, 2, must=[(0, 8), (3, 8)], cannot=[(0, 1), (1, 2), (2, 3)])
    assert witness.kind == "odd_ring"
    assert witness.points == (3, 8, 0, 1, 2)
    assert witness.must_link == ((0, 8), (3, 8))
    assert witness.cannot_link == ((0, 1), (1, 2), (2, 3))
    assert witness.message.startswith(
        "3-8-0, 1 and 2 are pairwise linked apart (points joined by - must be together): they need 3 clusters"
    )


def test_ring_of_five_through_a_chunklet():
    links = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)]
    witness = witness_of(6, 2, must=[(0, 5)], cannot=links)
    assert "(5-0 | 1 | 2 | 3 | 4 | 5) (points joined by - must be together)" in witness.message
    assert witness.cannot_link == tuple(links)
    assert witness.must_link == ((0, 5),)


def test_clique():
    witness = witness_of(
        12, 3, must=[(0, 7), (7, 9)], cannot=[(0, 2), (0, 3), (4, 9), (2, 3), (2, 4), (3, 4), (4, 6)]
    )
    assert witness.kind == "clique"
    assert witness.cannot_link == ((0, 2), (0, 3), (2, 3), (2, 4), (3, 4), (4, 9))
    assert witness.must_link == ((0, 7), (7, 9))
    assert witness.points == (0, 2, 3, 4, 7, 9)
    assert witness.message == (
        "0-7-9, 2, 3 and 4 are pairwise linked apart (points joined by - must be together): "
        "they need 4 clusters but n_clusters=3; use n_clusters >= 4 or remove one of these links"
    )


def test_the_first_of_parallel_links_is_told():
    must = [(0, 1), (2, 3)]
    for n_clusters in (2, 3):
        cannot = [(0, 2), (1, 2), (1, 3), (0, 4), (2, 4), (0, 5), (2, 5), (4, 5)]
        witness = witness_of(6, n_clusters, must=must, cannot=cannot)
        assert not {(1, 2), (1, 3)} & set(witness.cannot_link)
        assert witness.must_link == ()


def test_many_names_are_shortened():
    witness = witness_of(30, 20, cannot=complete(21).tolist())
    assert witness.message.startswith("0, 1, 2, 3, ..., 18, 19 and 20 are pairwise linked apart")
    assert len(witness.cannot_link) == 210


def test_subgraph():
    n, pairs = mycielski(5, cycle(5))
    witness = witness_of(n + 4, 3, must=[(0, n)], cannot=[*pairs.tolist(), (n + 1, n + 2)])
    assert witness.kind == "subgraph"
    assert witness.cannot_link == tuple(map(tuple, pairs.tolist()))
    assert witness.must_link == ()
    assert witness.points == tuple(range(n))
    assert witness.message == (
        "no labelling with n_clusters=3 satisfies the 20 cannot-links among 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 "
        "and 10: "
        "every way was tried; use more clusters or remove some of these links"
    )


def test_links_are_plain_python():
    for witness in (
        witness_of(4, 3, cannot=complete(4).tolist()),
        witness_of(3, 2, cannot=complete(3).tolist()),
        witness_of(3, 1, cannot=[(0, 2)]),
        witness_of(3, 2, must=[(0, 1), (1, 2)], cannot=[(0, 2)]),
    ):
        values = [*witness.points, *(end for link in witness.must_link + witness.cannot_link for end in link)]
        assert all(type(value) is int for value in values)
