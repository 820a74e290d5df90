from __future__ import annotations

import numpy as np
import pytest

from linkwise.inference import sweep_layout as module
from linkwise.inference.sweep_layout import BLOCK, sweep_layout
from tests.inference.marginal_cases import grid_problem, make_problem, random_problem


def check(problem, layout):
    n = len(problem.unary)
    assert sorted(layout.order) == list(range(n))
    # Same links with the same couplings, seen from both ends.
    found = set()
    for place in range(n):
        for slot in range(layout.indptr[place], layout.indptr[place + 1]):
            other = layout.neighbours[slot]
            assert (other > place) == (slot >= layout.split[place])
            edge = layout.edges[slot]
            assert set(problem.pairs[edge]) == {layout.order[place], layout.order[other]}
            row = slot if problem.coupling.ndim == 1 else edge
            np.testing.assert_array_equal(layout.coupling[row], problem.coupling[edge])
            found.add((edge, place))
    assert len(found) == 2 * len(problem.pairs) == layout.indptr[-1]
    # Blocks cover all places and have no links inside.
    assert layout.blocks[0] == 0
    assert layout.blocks[-1] == n
    widths = np.diff(layout.blocks)
    assert (widths > 0).all()
    assert (widths <= BLOCK).all()
    block_of = np.repeat(np.arange(len(widths)), widths)
    place = np.argsort(layout.order)
    ends = place[problem.pairs]
    assert (block_of[ends[:, 0]] != block_of[ends[:, 1]]).all()
    # Steps cover all blocks in order; ranges of one step have no links between them.
    ranges = [piece for step in layout.steps for piece in step]
    assert [b for first, last in ranges for b in range(first, last)] == list(range(len(widths)))
    range_of = np.repeat(np.arange(len(ranges)), [last - first for first, last in ranges])
    step_of = np.repeat(np.arange(len(layout.steps)), [len(step) for step in layout.steps])
    first, second = range_of[block_of[ends]].T
    assert ((first == second) | (step_of[first] != step_of[second])).all()


def test_random_problems():
    for seed in range(200):
        problem = random_problem(seed)
        check(problem, sweep_layout(problem))


@pytest.mark.parametrize("chunk", [1, 3, 512])
def test_every_plan_of_a_lattice(monkeypatch, chunk):
    monkeypatch.setattr(module, "_CHUNK", chunk)
    problem = grid_problem(20, 2, [1.0], seed=0)
    layout = sweep_layout(problem)
    check(problem, layout)
    assert max(len(step) for step in layout.steps) == {1: 13, 3: 5, 512: 1}[chunk]


def test_large_classes_between_small_ones(monkeypatch):
    """A hub of each of two stars, joined, and their many leaves: classes of very different sizes."""
    monkeypatch.setattr(module, "_CHUNK", 2)
    pairs = [(0, 1), *[(0, leaf) for leaf in range(2, 60)], *[(1, leaf) for leaf in range(60, 150)]]
    problem = make_problem(np.zeros((150, 2)), sorted(pairs), np.ones(len(pairs)))
    layout = sweep_layout(problem)
    check(problem, layout)
    assert len(layout.steps) > 1


def test_scattered_only_if_neighbours_are_far_apart():
    assert not sweep_layout(grid_problem(60, 2, [1.0], seed=0)).scattered
    assert sweep_layout(grid_problem(60, 2, [1.0], seed=0, shuffled=True)).scattered
    assert not sweep_layout(make_problem(np.zeros((3, 2)), [], [])).scattered
