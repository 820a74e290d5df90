"""Cheapest labels under cannot-links, against enumeration of all labels."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from linkwise import Constraints
from linkwise.exceptions import InfeasibleConstraints, InferenceBudgetExceeded
from linkwise.graph import adjacency
from linkwise.inference import best_labels
from linkwise.kmeans.hard import hard_links
from linkwise.kmeans.hard.assignment import assign_chunklets
from linkwise.kmeans.hard.search import search_parts
from tests.repeats import examples

# Mycielski's construction from a ring of five: no triangle, but four colours needed.
GROTZSCH = [
    *[(i, (i + 1) % 5) for i in range(5)],
    *[(5 + i, j % 5) for i in range(5) for j in (i - 1, i + 1)],
    *[(10, 5 + i) for i in range(5)],
]

#: By branch and bound, and with everything left to ``best_labels``.
ROUTES = [{}, {"search_work": 0}]


def cheapest(cost, pairs):
    """Least cost over all labels under which pairs differ; inf if there are none."""
    n, k = cost.shape
    best = np.inf
    for labels in itertools.product(range(k), repeat=n):
        if all(labels[i] != labels[j] for i, j in pairs):
            best = min(best, sum(cost[i, label] for i, label in enumerate(labels)))
    return best


def random_pairs(rng, n):
    density = rng.choice([0.2, 0.5, 0.8])
    return [pair for pair in itertools.combinations(range(n), 2) if rng.random() < density]


def random_cost(rng, n, k):
    """Distances of all sizes, or small whole numbers with many ties."""
    if rng.random() < 0.3:
        return rng.integers(0, 3, size=(n, k)).astype(float)
    return rng.exponential(size=(n, k)) * 10.0 ** rng.integers(-3, 4, size=(n, 1))


def assert_apart(labels, pairs):
    assert all(labels[i] != labels[j] for i, j in pairs)


def assert_refuses(witness, links, k):
    """The witness holds links of the user, and no labels with k clusters keep them."""
    assert set(witness.must_link) <= {tuple(pair) for pair in links.must_link.tolist()}
    assert set(witness.cannot_link) <= {tuple(pair) for pair in links.cannot_link.tolist()}
    points = sorted({point for pair in witness.must_link + witness.cannot_link for point in pair})
    place = {point: number for number, point in enumerate(points)}
    for labels in itertools.product(range(k), repeat=len(points)):
        together = all(labels[place[i]] == labels[place[j]] for i, j in witness.must_link)
        apart = all(labels[place[i]] != labels[place[j]] for i, j in witness.cannot_link)
        assert not (together and apart)


def unary(links, cost):
    """Cost of the chunklets from that of the rows."""
    return np.array([cost[links.rows[links.chunklet == c]].sum(axis=0) for c in range(len(links.sizes))])


class TestAgainstEnumeration:
    @pytest.mark.parametrize("options", ROUTES)
    def test_random_cannot_links(self, options):
        rng = np.random.default_rng(0)
        n_feasible = n_infeasible = n_moved = 0
        for _ in range(200):
            n, k = int(rng.integers(2, 7)), int(rng.integers(1, 5))
            pairs = random_pairs(rng, n) or [(0, 1)]
            constraints = Constraints(n, cannot_link=pairs)
            cost = random_cost(rng, n, k)
            expected = cheapest(cost, pairs)
            if expected == np.inf:
                with pytest.raises(InfeasibleConstraints) as error:
                    hard_links(constraints, k)
                assert_refuses(error.value.witness, constraints, k)
                n_infeasible += 1
                continue
            links = hard_links(constraints, k)
            table = unary(links, cost)
            answer = assign_chunklets(links, table, **options)
            assert answer.optimal
            assert_apart(answer.labels, links.apart)
            free = np.delete(cost, links.rows, axis=0).min(axis=1).sum()
            paid = table[np.arange(len(table)), answer.labels].sum() + free
            assert paid == pytest.approx(expected, rel=1e-9, abs=1e-12)
            n_feasible += 1
            n_moved += not np.array_equal(answer.labels, table.argmin(axis=1))
        assert n_feasible > 100
        assert n_infeasible > 40
        assert n_moved > 50  # cannot-links that cost something

    def test_eight_chunklets(self):
        rng = np.random.default_rng(1)
        for _ in range(40):
            k = int(rng.integers(2, 4))
            pairs = random_pairs(rng, 8)
            cost = random_cost(rng, 8, k)
            expected = cheapest(cost, pairs)
            try:
                links = hard_links(Constraints(8, cannot_link=pairs), k)
            except InfeasibleConstraints:
                assert expected == np.inf
                continue
            answer = assign_chunklets(links, cost[links.rows])
            free = np.delete(cost, links.rows, axis=0).min(axis=1).sum()
            paid = cost[links.rows, answer.labels].sum() + free
            assert paid == pytest.approx(expected, rel=1e-9, abs=1e-12)

    def test_must_links_are_contracted(self):
        rng = np.random.default_rng(2)
        n_contradictions = 0
        for _ in range(examples(150)):
            n, k = 6, int(rng.integers(2, 4))
            pairs = list(itertools.combinations(range(n), 2))
            rng.shuffle(pairs)
            must, cannot = pairs[: rng.integers(1, 3)], pairs[3 : 3 + rng.integers(1, 6)]
            cost = random_cost(rng, n, k)
            best = np.inf
            for labels in itertools.product(range(k), repeat=n):
                together = all(labels[i] == labels[j] for i, j in must)
                if together and all(labels[i] != labels[j] for i, j in cannot):
                    best = min(best, cost[np.arange(n), labels].sum())
            try:
                links = hard_links(Constraints(n, must, cannot), k)
            except InfeasibleConstraints:
                assert best == np.inf
                n_contradictions += 1
                continue
            table = unary(links, cost)
            answer = assign_chunklets(links, table)
            paid = table[np.arange(len(table)), answer.labels].sum()
            paid += np.delete(cost, links.rows, axis=0).min(axis=1).sum()
            assert paid == pytest.approx(best, rel=1e-9, abs=1e-12)
        assert 0 < n_contradictions < 100

    def test_search_of_several_parts(self):
        rng = np.random.default_rng(3)
        for _ in range(100):
            k, n_parts = int(rng.integers(2, 4)), int(rng.integers(1, 4))
            part = np.sort(rng.integers(n_parts, size=7))
            part = np.unique(part, return_inverse=True)[1]
            n_parts = part.max() + 1
            pairs = [(i, j) for i, j in random_pairs(rng, 7) if part[i] == part[j]]
            cost = random_cost(rng, 7, k)
            graph = adjacency(7, np.array(pairs, dtype=np.int64).reshape(-1, 2))
            labels, found, proven = search_parts(part, n_parts, cost, graph, None, max_work=10**6)
            assert proven.all()
            for number in range(n_parts):
                members = np.flatnonzero(part == number)
                inner = [(i - members[0], j - members[0]) for i, j in pairs if part[i] == number]
                assert found[number] == pytest.approx(cheapest(cost[members], inner))
                if found[number] < np.inf:
                    assert_apart(labels[members], inner)
                    assert cost[members, labels[members]].sum() == pytest.approx(found[number])
                else:
                    assert (labels[members] == -1).all()

    def test_search_out_of_work_keeps_what_it_has(self):
        rng = np.random.default_rng(4)
        cost, pairs = rng.random((30, 4)), []
        truth = rng.integers(4, size=30)
        pairs = np.array([(i, j) for i, j in random_pairs(rng, 30) if truth[i] != truth[j]])
        part, graph = np.zeros(30, dtype=np.int64), adjacency(30, pairs)
        labels, found, proven = search_parts(part, 1, cost, graph, truth, max_work=10)
        np.testing.assert_array_equal(labels, truth)
        assert not proven[0]
        assert found[0] == pytest.approx(cost[np.arange(30), truth].sum())
        labels, found, proven = search_parts(part, 1, cost, graph, None, max_work=10)
        assert (labels == -1).all()
        assert found[0] == np.inf
        assert not proven[0]


class TestPreviousLabels:
    def test_never_worse_and_kept_on_ties(self):
        rng = np.random.default_rng(5)
        for _ in range(examples(100)):
            truth = rng.integers(3, size=12)
            pairs = [(i, j) for i, j in itertools.combinations(range(12), 2) if truth[i] != truth[j]]
            pairs = [pairs[place] for place in rng.permutation(len(pairs))[: rng.integers(5, 20)]]
            links = hard_links(Constraints(12, cannot_link=pairs), 3)
            cost = random_cost(rng, len(links.rows), 3)
            previous = truth[links.rows]
            alone = assign_chunklets(links, cost)
            answer = assign_chunklets(links, cost, previous)
            paid, before, best = (
                cost[np.arange(len(cost)), labels].sum() for labels in (answer.labels, previous, alone.labels)
            )
            assert paid <= before
            assert paid == pytest.approx(best, rel=1e-9)
            again = assign_chunklets(links, cost, answer.labels)
            np.testing.assert_array_equal(again.labels, answer.labels)

    def test_equal_costs_change_nothing(self):
        links = hard_links(Constraints(6, must_link=[(0, 1), (4, 5)], cannot_link=[(1, 2), (2, 3)]), 3)
        previous = np.array([2, 0, 1, 2])
        np.testing.assert_array_equal(assign_chunklets(links, np.ones((4, 3)), previous).labels, previous)

    def test_kept_where_an_engine_stops_short_of_them(self, monkeypatch):
        # An integer program that closes its gap to 1e-6 may call labels optimal that cost a little more.
        class NearlyBest:
            labels = np.array([0, 1])
            score = -1.0
            optimal = True

        monkeypatch.setattr("linkwise.kmeans.hard.assignment.best_labels", lambda *_, **__: NearlyBest)
        links = hard_links(Constraints(2, cannot_link=[(0, 1)]), 2)
        cost = np.array([[0.0, 1.0], [0.0, 1.0 + 1e-9]])
        answer = assign_chunklets(links, cost, np.array([1, 0]), search_work=0)
        assert answer.labels.tolist() == [1, 0]


def wide_case(seed, n=70, k=6, n_pairs=700):
    """A dense graph of cannot-links that random costs make hard to solve."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(k, size=n)
    pairs = [(i, j) for i, j in itertools.combinations(range(n), 2) if truth[i] != truth[j]]
    pairs = [pairs[place] for place in rng.permutation(len(pairs))[:n_pairs]]
    return Constraints(n, cannot_link=pairs), rng.random((n, k)), truth


class TestWideGraphs:
    def test_integer_program_and_branch_and_bound_agree(self, monkeypatch):
        methods = []

        def recorded(*arguments, **options):
            answer = best_labels(*arguments, **options)
            methods.extend(answer.parts)
            return answer

        monkeypatch.setattr("linkwise.kmeans.hard.assignment.best_labels", recorded)
        for seed in range(1, 4):
            constraints, cost, _ = wide_case(seed, n=30, k=4, n_pairs=300)
            links = hard_links(constraints, 4)
            table = cost[links.rows]
            searched = assign_chunklets(links, table, search_work=10**9)
            assert seed > 1 or not methods
            programmed = assign_chunklets(links, table, search_work=0)
            assert searched.optimal
            assert programmed.optimal
            costs = [table[np.arange(len(table)), a.labels].sum() for a in (searched, programmed)]
            assert costs[0] == pytest.approx(costs[1], rel=1e-6)
        assert "milp" in methods

    @pytest.mark.parametrize("unit", [1e-12, 1e12])
    def test_units_do_not_matter(self, unit):
        constraints, cost, _ = wide_case(2, n=30, k=4, n_pairs=300)
        links = hard_links(constraints, 4)
        table = cost[links.rows]
        searched = assign_chunklets(links, table, search_work=10**9)
        programmed = assign_chunklets(links, unit * table, search_work=0)
        assert programmed.optimal
        np.testing.assert_array_equal(programmed.labels, searched.labels)

    def test_too_large_for_an_integer_program(self, monkeypatch):
        def refusing(field, method, *arguments, **options):
            if method == "exact":
                raise InferenceBudgetExceeded("too large", width=99)
            return best_labels(field, method, *arguments, **options)

        monkeypatch.setattr("linkwise.kmeans.hard.assignment.best_labels", refusing)
        constraints, cost, _ = wide_case(3)
        links = hard_links(constraints, 6)
        answer = assign_chunklets(links, cost[links.rows], search_work=0)
        assert not answer.optimal
        assert_apart(answer.labels, links.apart)


class TestOutOfBudget:
    def test_unproven_labels_keep_the_links(self):
        constraints, cost, truth = wide_case(0)
        links = hard_links(constraints, 6)
        cost = cost[links.rows]
        answer = assign_chunklets(links, cost, time_limit=0.0, search_work=0)
        assert not answer.optimal
        assert_apart(answer.labels, links.apart)
        previous = truth[links.rows]
        improved = assign_chunklets(links, cost, previous, time_limit=0.0, search_work=0)
        assert not improved.optimal
        assert_apart(improved.labels, links.apart)
        assert cost[np.arange(len(cost)), improved.labels].sum() <= cost[np.arange(len(cost)), previous].sum()

    def test_one_hard_component_does_not_spoil_the_others(self):
        constraints, cost, _ = wide_case(1)
        both = Constraints(73, cannot_link=[*constraints.cannot_link.tolist(), (70, 71), (71, 72)])
        links = hard_links(both, 6)
        easy = np.array([[0.0, 5, 9, 9, 9, 9], [0.0, 3, 9, 9, 9, 9], [0.0, 5, 9, 9, 9, 9]])
        table = np.vstack([cost, easy])[links.rows]
        answer = assign_chunklets(links, table, time_limit=0.0, search_work=0)
        assert not answer.optimal
        assert answer.labels[-3:].tolist() == [0, 1, 0]

    def test_unknown_feasibility_is_settled_by_the_assignment(self):
        # Without cliques of four, and with a budget of one node, the colouring of the graph stays open.
        links = hard_links(Constraints(12, must_link=[(10, 11)], cannot_link=GROTZSCH), 3, node_budget=1)
        assert links.start is None
        cost = np.random.default_rng(0).random((11, 3))
        constraints = Constraints(12, must_link=[(10, 11)], cannot_link=GROTZSCH)
        for options in ROUTES:
            with pytest.raises(InfeasibleConstraints) as error:
                assign_chunklets(links, cost, **options)
            assert error.value.witness.n_clusters == 3
            assert_refuses(error.value.witness, constraints, 3)

    def test_labels_are_found_although_the_colouring_is_not(self):
        constraints, cost, _ = hard_to_colour()
        links = hard_links(constraints, 3, node_budget=1)
        assert links.start is None
        answer = assign_chunklets(links, cost[links.rows])
        assert answer.optimal
        assert_apart(answer.labels, links.apart)

    def test_nothing_found_and_nothing_proven(self, monkeypatch):
        constraints, cost, _ = hard_to_colour()
        links = hard_links(constraints, 3, node_budget=1)
        monkeypatch.setattr("linkwise.kmeans.hard.assignment.best_labels", find_nothing)
        with pytest.raises(InferenceBudgetExceeded, match="node_budget and time_limit") as error:
            assign_chunklets(links, cost[links.rows], search_work=0)
        assert error.value.width >= 3


def find_nothing(field, method, random_state, *, initial, time_limit=None):
    """Stands for engines that ran out of time before they had any labels."""

    class Nothing:
        labels = np.zeros(field.n_points, dtype=np.int64)
        score = -np.inf
        optimal = False

    assert initial is None
    return Nothing


def hard_to_colour():
    """Links of a true 3-colouring that a search of one node does not find."""
    for seed in range(1000):
        constraints, cost, truth = wide_case(seed, n=40, k=3, n_pairs=90)
        try:
            if hard_links(constraints, 3, node_budget=1).start is None:
                return constraints, cost, truth
        except InfeasibleConstraints:
            raise AssertionError("links of a true colouring were refused") from None
    raise AssertionError("every graph was coloured at once")
