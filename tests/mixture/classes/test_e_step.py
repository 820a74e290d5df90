"""The class-level E-step against the mean field with every pair of rows written out."""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise

import numpy as np
import pytest

from linkwise._threads import Workers
from linkwise.mixture.classes.e_step import (
    SURE_STRENGTH,
    block_sweeps_climb,
    class_rows,
    class_sums,
    class_sweep,
    empty_table,
    pair_weights,
)
from tests.mixture import class_oracle
from tests.repeats import examples

SWEEPS = {True: class_oracle.sequential_sweep, False: class_oracle.block_sweep}


class Problem:
    """A random problem, in the tables of the fast code and as plain arrays."""

    def __init__(self, seed, *, strength=None, diagonal=None, n=None, dtype=np.float64):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(1, 25)) if n is None else n
        n_classes, self.n_components = int(rng.integers(1, 5)), int(rng.integers(1, 11))
        self.codes = rng.integers(-1, n_classes, n)
        if (self.codes < 0).all():
            self.codes[0] = 0
        strength = rng.choice([0.1, 1.0, 5.0]) if strength is None else strength
        weights = rng.uniform(-strength, strength, (n_classes, n_classes))
        self.weights = weights + weights.T
        if diagonal is not None:
            np.fill_diagonal(self.weights, rng.uniform(*diagonal, n_classes))
        self.unary = rng.normal(scale=3.0, size=(n, self.n_components))
        self.prob = rng.dirichlet(np.ones(self.n_components), n)
        self.rows = class_rows(self.codes, n_classes)
        order = self.rows.order
        self.unary_table = empty_table(n, self.n_components, np.dtype(dtype))
        self.unary_table[:, : self.n_components] = self.unary[order]
        self.unary_table[:, self.n_components :] = -np.inf
        self.table = empty_table(n, self.n_components, np.dtype(dtype))
        self.table[:, : self.n_components] = self.prob[order]
        self.sums = class_sums(self.table, self.rows)

    def sweep(self, sequential, workers=None):
        return class_sweep(
            self.unary_table, self.table, self.sums, self.weights, self.rows, sequential=sequential,
            workers=workers,
        )  # fmt: skip

    @cached_property
    def pairs(self):
        return class_oracle.pair_matrix(self.codes, self.weights)

    def result(self):
        prob = np.empty_like(self.prob)
        prob[self.rows.order] = self.table[:, : self.n_components]
        return prob

    def objective(self):
        return class_oracle.objective(self.unary, self.result(), self.pairs)


@pytest.mark.parametrize("sequential", [False, True])
def test_sweeps_equal_the_mean_field_over_all_pairs(sequential):
    for seed in range(examples(100)):
        problem = Problem(seed)
        expected = problem.prob
        for _ in range(3):
            expected = SWEEPS[sequential](problem.unary, expected, problem.pairs, problem.codes)
            sweep = problem.sweep(sequential)
            np.testing.assert_allclose(problem.result(), expected, atol=1e-10)
            bound = class_oracle.objective(problem.unary, expected, problem.pairs)
            assert sweep.objective == pytest.approx(bound, rel=1e-10, abs=1e-8)
        np.testing.assert_allclose(problem.sums, class_sums(problem.table, problem.rows), atol=1e-12)


def test_change_is_the_largest_change_of_a_probability():
    for seed in range(50):
        problem = Problem(seed)
        change = problem.sweep(False).change
        assert change == pytest.approx(np.abs(problem.result() - problem.prob).max(), abs=1e-12)


@pytest.mark.parametrize("sequential", [False, True])
def test_fixed_point_is_a_fixed_point_of_the_pairwise_update(sequential):
    settled = 0
    for seed in range(examples(100)):
        problem = Problem(seed, strength=0.5, diagonal=(0.0, 1.0))
        for _ in range(2000):
            if problem.sweep(sequential).change < 1e-12:
                settled += 1
                break
        prob = problem.result()
        for i in range(len(prob)):
            updated = class_oracle.updated_row(problem.unary, prob, problem.pairs, i)
            np.testing.assert_allclose(updated, prob[i], atol=1e-10)
    assert settled == examples(100)


def test_sequential_sweeps_never_lower_the_objective():
    for seed in range(examples(400)):
        problem = Problem(seed, diagonal=(-5.0, 5.0) if seed % 2 else (-5.0, 0.0))
        before = problem.objective()
        for _ in range(8):
            after = problem.sweep(sequential=True).objective
            assert after >= before - 1e-9 * max(abs(before), 1.0)
            before = after


def test_block_sweeps_never_lower_the_objective_where_that_is_promised():
    for seed in range(examples(400)):
        problem = Problem(seed, strength=[0.1, 1.0, 5.0][seed % 3], diagonal=(0.0, 2.0))
        assert block_sweeps_climb(problem.weights)
        before = problem.objective()
        for _ in range(8):
            after = problem.sweep(sequential=False).objective
            assert after >= before - 1e-9 * max(abs(before), 1.0)
            before = after


def test_beyond_the_promise_block_sweeps_do_lower_it():
    """The bound 2 is no empty caution: a class of two rows with A = 8 jumps back and forth."""
    rows = class_rows(np.array([0, 0]), 1)
    prob = np.zeros((2, 4))
    prob[0, 0] = prob[1, 1] = 1.0
    unary = np.zeros((2, 4))
    unary[:, 2:] = -np.inf
    weights, sums = np.array([[8.0]]), class_sums(prob, rows)
    assert not block_sweeps_climb(weights)
    bounds = [class_sweep(unary, prob, sums, weights, rows).objective for _ in range(20)]
    assert class_sweep(unary, prob, sums, weights, rows).change > 0.9
    sequential = [class_sweep(unary, prob, sums, weights, rows, sequential=True) for _ in range(20)]
    assert sequential[-1].change < 1e-6
    assert sequential[-1].objective > max(bounds) + 1.0


def test_negative_diagonal_needs_sequential_sweeps():
    """Rows that must avoid their own class: all at once they flee together, one by one they spread out."""
    rng = np.random.default_rng(0)
    n, n_components = 60, 4
    codes = np.repeat([0, 1], n // 2)
    rows = class_rows(codes, 2)
    weights = np.array([[-0.5, -0.2], [-0.2, 0.3]])
    unary = rng.normal(scale=0.5, size=(n, n_components))
    assert not block_sweeps_climb(weights)
    ends = {}
    for sequential in (False, True):
        prob = rng.dirichlet(np.ones(n_components), n)
        sums = class_sums(prob, rows)
        history = [class_sweep(unary, prob, sums, weights, rows, sequential=sequential) for _ in range(300)]
        ends[sequential] = history[-1]
        drops = sum(late.objective < early.objective - 1e-9 for early, late in pairwise(history))
        if sequential:
            assert history[60].change < 1e-6
            assert drops == 0
        else:
            assert min(sweep.change for sweep in history[50:]) > 0.3
            assert drops > 20
    assert ends[True].objective > ends[False].objective + 10.0


def test_row_and_cluster_order_do_not_matter():
    rng = np.random.default_rng(1)
    for seed in range(50):
        problem, twin = Problem(seed, n=20), Problem(seed, n=20)
        columns = rng.permutation(problem.n_components)
        twin.table[:, : len(columns)] = twin.table[:, columns]
        twin.unary_table[:, : len(columns)] = twin.unary_table[:, columns]
        twin.sums = class_sums(twin.table, twin.rows)
        # Within a class, block sweeps see the rows in any order.
        for start, stop in pairwise(twin.rows.starts):
            shuffled = start + rng.permutation(stop - start)
            twin.table[start:stop], twin.unary_table[start:stop] = (
                twin.table[shuffled],
                twin.unary_table[shuffled],
            )
        for _ in range(3):
            first, second = problem.sweep(False), twin.sweep(False)
            assert second.objective == pytest.approx(first.objective, rel=1e-10, abs=1e-9)
        np.testing.assert_allclose(twin.sums[:, : len(columns)], problem.sums[:, columns], atol=1e-10)


@pytest.mark.parametrize("sequential", [False, True])
def test_float32_tables_keep_float64_sums(sequential):
    for seed in range(50):
        double, single = (
            Problem(seed, strength=0.5, diagonal=(0.0, 1.0), dtype=t) for t in (np.float64, np.float32)
        )
        for _ in range(5):
            expected, found = double.sweep(sequential), single.sweep(sequential)
            assert found.objective == pytest.approx(expected.objective, rel=1e-5, abs=1e-4)
        assert single.table.dtype == np.float32
        np.testing.assert_allclose(single.table, double.table, atol=2e-5)


@pytest.mark.parametrize("sequential", [False, True])
def test_any_number_of_threads_gives_the_same_bits(sequential):
    results = []
    for n_threads in (1, 2, 3):
        problem = Problem(3, n=120_000, strength=1e-6)
        workers = Workers(n_threads)
        sweeps = [problem.sweep(sequential, workers) for _ in range(2)]
        results.append((sweeps, problem.table, problem.sums))
    for sweeps, table, sums in results[1:]:
        assert sweeps == results[0][0]
        np.testing.assert_array_equal(table, results[0][1])
        np.testing.assert_array_equal(sums, results[0][2])


def test_unlabelled_rows_are_the_plain_posterior_and_pull_nobody():
    rng = np.random.default_rng(0)
    problem = Problem(0, n=20)
    problem.sweep(False)
    alone = problem.codes < 0
    shifted = problem.unary[alone] - problem.unary[alone].max(axis=1, keepdims=True)
    posterior = np.exp(shifted) / np.exp(shifted).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(problem.result()[alone], posterior, atol=1e-12)
    other = Problem(0, n=20)
    last = int(other.rows.starts[-1])
    other.table[last:, : other.n_components] = rng.dirichlet(np.ones(other.n_components), 20 - last)
    other.sweep(False)
    np.testing.assert_array_equal(other.result()[~alone], problem.result()[~alone])


def test_pair_weights():
    beliefs, sizes = np.array([[0.1, -1.0], [-1.0, 0.5]]), np.array([4, 9])
    np.testing.assert_allclose(pair_weights(beliefs, 0.2, sizes, "none"), 0.4 * beliefs)
    weak, strong = 0.5 * np.log(1.1 / 0.9), 0.5 * np.log(3.0)  # half the log-odds of .55 and .75
    sure = -SURE_STRENGTH
    expected = [[0.4 * weak / 4, 0.4 * sure / 6], [0.4 * sure / 6, 0.4 * strong / 9]]
    np.testing.assert_allclose(pair_weights(beliefs, 0.2, sizes, "class"), expected)


def test_no_class_is_driven_apart_harder_than_by_a_belief_of_nine_tenths():
    sizes = np.array([10, 20])
    sure, nearly = (
        pair_weights(np.array([[value, -1.0], [-1.0, 1.0]]), 1.0, sizes, "class") for value in (-1.0, -0.9)
    )
    np.testing.assert_allclose(sure, nearly)
    assert pair_weights(np.array([[-1.0]]), 1.0, sizes[:1], "none")[0, 0] == -2.0


def test_a_whole_class_holds_its_rows_with_the_log_odds_of_the_belief():
    """At confidence 1, whatever the size: .5 states 3 to 1."""
    for n in (5, 500):
        weight = pair_weights(np.array([[0.5]]), 1.0, np.array([n]), "class")
        assert n * weight[0, 0] == pytest.approx(np.log(3.0))
