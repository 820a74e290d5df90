"""Sweeps in bands: the numbers of any number of threads, and the fixed point of one band."""

from itertools import product

import numpy as np
import pytest

from linkwise.constraints import Constraints
from linkwise.inference import PottsField, best_labels, marginals
from linkwise.inference.messages import sweeps
from linkwise.inference.messages.layout import message_graph
from linkwise.inference.problem import reduce_field


def grid_field(shape, seed, weight=0.4, n_labels=3):
    links = Constraints.from_grid(shape, weight=weight)
    unary = np.random.default_rng(seed).normal(size=(links.n_samples, n_labels))
    return PottsField(unary, links.pairs, 2.0 * links.weights)


def bands_of(field, forest=False):
    problem = reduce_field(field, keep_zero_in_component=False).problem
    return sweeps.sweep_bands(message_graph(problem.graph), forest), problem


@pytest.fixture
def small_bands(monkeypatch):
    monkeypatch.setattr(sweeps, "_PLACES_FOR_FOUR_BANDS", 100)


@pytest.mark.parametrize("shape", [(40, 10), (100, 9), (12, 70)])
def test_bands_cover_every_place_once_and_share_no_link(small_bands, shape):
    (even, odd), problem = bands_of(grid_field(shape, 0))
    pieces = sorted(even + odd)
    assert pieces[0][0] == 0
    assert pieces[-1][1] == len(problem.unary)
    assert [stop for _, stop in pieces[:-1]] == [start for start, _ in pieces[1:]]
    graph = message_graph(problem.graph)
    place = np.argsort(graph.order)
    band = np.repeat(np.arange(len(pieces)), [stop - start for start, stop in pieces])
    assert np.ptp(band[place[problem.pairs]], axis=1).max() == 1


def test_one_band_for_forests_small_graphs_and_links_that_reach_far(small_bands):
    assert len(bands_of(grid_field((9, 10), 0))[0]) == 1
    assert len(bands_of(grid_field((40, 10), 0), forest=True)[0]) == 1
    rng = np.random.default_rng(0)
    pairs = np.unique(np.sort(rng.integers(500, size=(2000, 2)), axis=1), axis=0)
    pairs = pairs[pairs[:, 0] < pairs[:, 1]]
    assert len(bands_of(PottsField(rng.normal(size=(500, 3)), pairs, np.full(len(pairs), 0.3)))[0]) == 1


@pytest.mark.parametrize(("seed", "weight"), product(range(2), [0.1, 0.5]))
def test_threads_do_not_change_a_bit_and_bands_not_the_fixed_point(monkeypatch, seed, weight):
    field = grid_field((30, 20), seed, weight)
    whole = marginals(field, method="belief_propagation", tol=1e-12, max_iter=2000)
    monkeypatch.setattr(sweeps, "_PLACES_FOR_FOUR_BANDS", 100)
    one, two, three = (
        marginals(field, method="belief_propagation", tol=1e-12, max_iter=2000, n_threads=n)
        for n in (1, 2, 3)
    )
    assert whole.converged
    assert one.converged
    np.testing.assert_array_equal(one.prob, two.prob)
    np.testing.assert_array_equal(one.prob, three.prob)
    np.testing.assert_array_equal(one.details["residuals"], two.details["residuals"])
    np.testing.assert_allclose(one.prob, whole.prob, atol=1e-9)
    assert one.log_partition == pytest.approx(whole.log_partition, rel=1e-10)


@pytest.mark.parametrize("seed", range(3))
def test_best_labels_in_bands(small_bands, seed):
    field = grid_field((30, 20), seed)
    one, two = (best_labels(field, method="belief_propagation", random_state=0, n_threads=n) for n in (1, 2))
    np.testing.assert_array_equal(one.labels, two.labels)
    assert one.score == field.score(one.labels)


def test_labels_ruled_out_by_hand_stay_out_in_bands(small_bands):
    field = grid_field((30, 20), 0)
    unary = field.unary.copy()
    unary[300] = [0.0, -np.inf, -np.inf]
    unary[301] = [-np.inf, 0.0, -np.inf]
    coupling = field.coupling.copy()
    pair = np.flatnonzero((field.pairs == [300, 301]).all(axis=1))
    coupling[pair] = 1e4
    found = marginals(PottsField(unary, field.pairs, coupling), method="belief_propagation", n_threads=2)
    np.testing.assert_allclose(found.prob[300], [1.0, 0.0, 0.0])
    np.testing.assert_allclose(found.prob[301], [0.0, 1.0, 0.0])
