"""Each distortion against its formula, dense and sparse, and its steps against what they promise."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.sparse import csr_matrix

from linkwise._row_tables import row_products
from linkwise.kmeans.assignment import weighted_links
from linkwise.kmeans.distortions import make_distortion
from linkwise.kmeans.distortions.cosine import cosine_scatter
from tests.kmeans import kmeans_oracle as oracle
from tests.kmeans.kmeans_cases import COMBINATIONS, random_data, random_links
from tests.repeats import examples, for_seeds

SPARSE = [pair for pair in COMBINATIONS if pair[0] != "euclidean"]


class Case:
    """Data, centres, a metric and links for one distortion."""

    def __init__(self, name, kind, seed, *, sparse=False):
        rng = np.random.default_rng(seed)
        self.name, self.kind, self.k = name, kind, 3
        X, _ = random_data(rng, name, 24, 4, self.k)
        if name == "cosine" and seed % 2:
            X = np.abs(X)
        self.X = X
        self.distortion = make_distortion(name, kind, self.k)
        self.rows = self.distortion.rows(csr_matrix(X) if sparse else X)
        self.seen = oracle.prepared(X, name)
        labels = np.concatenate([np.arange(self.k), rng.integers(self.k, size=24 - self.k)])
        self.labels = labels
        self.centres = self.distortion.group_centres(self.rows, labels, self.k)
        self.metric = self.distortion.start_metric(self.rows)
        if kind == "full":
            root = rng.normal(size=(4, 4))
            self.metric = root @ root.T + 0.2 * np.eye(4)
        elif kind is not None:
            self.metric = self.metric * rng.uniform(0.4, 2.0, size=self.metric.shape)
        self.links = weighted_links(random_links(rng, 24, 20), 1.0, 1.0)
        self.pairs = self.links.pairs

    def matrix(self, cluster=0):
        return oracle.matrix_of(self.metric, cluster, 4, self.kind)

    def assigned(self):
        return self.distortion.assign(self.rows, self.centres, self.metric, self.labels, 1)


@pytest.mark.parametrize(("name", "kind"), COMBINATIONS)
@for_seeds(examples(6, 3))
class TestFormulas:
    def test_distances(self, name, kind, seed):
        case = Case(name, kind, seed)
        table = case.distortion.distances(case.rows, case.centres, case.metric)
        expected = oracle.unary_table(case.seen, case.centres, case.metric, kind, name)
        np.testing.assert_allclose(table, expected, rtol=1e-9, atol=1e-11)

    def test_assignment_takes_the_smallest(self, name, kind, seed):
        case = Case(name, kind, seed)
        table = case.distortion.distances(case.rows, case.centres, case.metric)
        given = np.where(np.arange(24) % 5 == 0, case.labels, -1)
        found = case.distortion.assign(case.rows, case.centres, case.metric, given, 1)
        expected = np.where(given >= 0, given, table.argmin(axis=1))
        np.testing.assert_array_equal(found.labels, expected)
        np.testing.assert_allclose(found.cost, table[np.arange(24), expected], rtol=1e-9, atol=1e-11)
        np.testing.assert_array_equal(found.counts, np.bincount(expected, minlength=3))

    def test_pair_penalty_and_its_bound(self, name, kind, seed):
        case = Case(name, kind, seed)
        phi = case.distortion.pair_penalty(case.rows, case.pairs, case.metric)
        top = case.distortion.largest_penalty(case.rows, case.metric)
        clusters = range(3) if kind == "per_cluster" else [0]
        for k in clusters:
            expected = [oracle.phi(case.seen[i], case.seen[j], case.matrix(k), name) for i, j in case.pairs]
            own = phi[:, k] if kind == "per_cluster" else phi
            own_top = top[k] if kind == "per_cluster" else top
            np.testing.assert_allclose(own, expected, rtol=1e-9, atol=1e-12)
            assert own_top == pytest.approx(oracle.phi_max(case.seen, case.matrix(k), name, kind))
            assert (own <= own_top + 1e-12).all()

    def test_metric_term(self, name, kind, seed):
        case = Case(name, kind, seed)
        expected = oracle.metric_term(case.seen, case.metric, kind, name, case.k)
        assert case.distortion.metric_term(case.rows, case.metric) == pytest.approx(
            expected, rel=1e-9, abs=1e-12
        )

    def test_centres_are_the_best_ones(self, name, kind, seed):
        case = Case(name, kind, seed)
        rng = np.random.default_rng(seed)

        def cost(centres):
            table = oracle.unary_table(case.seen, centres, case.metric, kind, name)
            return table[np.arange(24), case.labels].sum()

        start = rng.permutation(case.centres)
        found = case.distortion.assign(case.rows, start, case.metric, case.labels, 1)
        moved, within = case.distortion.move_centres(case.rows, found, start, case.metric)
        best = cost(moved)
        assert case.distortion.within_cost(within, case.metric) == pytest.approx(best, rel=1e-9)
        for size in (1e-4, 1e-2, 0.3):
            for _ in range(5):
                other = moved * np.exp(size * rng.normal(size=moved.shape))
                assert best <= cost(other) + 1e-10 * abs(best)

    def test_metric_step_lowers_the_objective(self, name, kind, seed):
        case = Case(name, kind, seed)
        moved, within = case.distortion.move_centres(case.rows, case.assigned(), case.centres, case.metric)
        violated = case.links.violated_links(case.labels)
        assert len(violated.pairs) > 2
        signed = [
            (tuple(pair), w if must else -w)
            for pair, w, must in zip(case.pairs, case.links.weight, case.links.must, strict=True)
        ]

        def cost(metric):
            unary = oracle.unary_table(case.seen, moved, metric, kind, name)
            tables = oracle.link_tables(case.seen, signed, metric, kind, name, "distance", case.k)
            term = oracle.metric_term(case.seen, metric, kind, name, case.k)
            return oracle.objective(unary, tables, signed, case.labels) + term

        metric, history = case.metric, [cost(case.metric)]
        for _ in range(2):
            metric = case.distortion.move_metric(case.rows, within, violated, metric)
            history.append(cost(metric))
        if kind is None:
            assert metric is None
            return
        assert np.diff(history).max() <= 1e-9 * (1 + abs(history[0]))
        assert history[1] < history[0] - 1e-6
        if (name, kind) in (("euclidean", "diag"), ("euclidean", "per_cluster")):
            # Closed form: nothing nearby is better.
            rng = np.random.default_rng(seed)
            for size in (1e-3, 0.1):
                other = metric * np.exp(size * rng.normal(size=metric.shape))
                assert history[1] <= cost(other) + 1e-9 * abs(history[1])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("name", "kind"), SPARSE)
def test_sparse_equals_dense(name, kind, seed):
    dense, sparse = Case(name, kind, seed), Case(name, kind, seed, sparse=True)
    for method, arguments in (
        ("distances", (dense.centres, dense.metric)),
        ("pair_penalty", (dense.pairs, dense.metric)),
        ("largest_penalty", (dense.metric,)),
        ("metric_term", (dense.metric,)),
        ("group_centres", (dense.labels, 3)),
    ):
        left = getattr(dense.distortion, method)(dense.rows, *arguments)
        right = getattr(sparse.distortion, method)(sparse.rows, *arguments)
        np.testing.assert_allclose(left, right, rtol=1e-10, atol=1e-12)
    moves = []
    for case in (dense, sparse):
        moved, within = case.distortion.move_centres(case.rows, case.assigned(), case.centres, case.metric)
        violated = case.links.violated_links(case.labels)
        metric = case.distortion.move_metric(case.rows, within, violated, case.metric)
        moves.append((moved, np.ones(1) if metric is None else metric))
    np.testing.assert_allclose(moves[0][0], moves[1][0], rtol=1e-10)
    np.testing.assert_allclose(moves[0][1], moves[1][1], rtol=1e-7)


@pytest.mark.parametrize("sparse", [False, True])
@for_seeds(10)
def test_cosine_gradient_agrees_with_finite_differences(seed, sparse):
    case = Case("cosine", "diag", seed, sparse=sparse)
    _, within = case.distortion.move_centres(case.rows, case.assigned(), case.centres, case.metric)
    violated = case.links.violated_links(case.labels)
    products = row_products(case.rows.table[violated.pairs[:, 0]], case.rows.table[violated.pairs[:, 1]])
    _, gradient = cosine_scatter(within, violated, products, case.metric)
    numeric = approx_fprime(case.metric, lambda a: cosine_scatter(within, violated, products, a)[0], 1e-6)
    np.testing.assert_allclose(gradient, numeric, atol=2e-5 * np.abs(gradient).max())


@pytest.mark.parametrize("name", ["kl", "i_divergence"])
@for_seeds(5)
def test_divergence_weights_are_the_minimiser_without_violated_cannot_links(name, seed):
    case = Case(name, "diag", seed)
    moved, within = case.distortion.move_centres(case.rows, case.assigned(), case.centres, case.metric)
    violated = case.links.violated_links(case.labels)
    kept = violated.must
    violated = violated._replace(**{field: getattr(violated, field)[kept] for field in violated._fields})
    found = case.distortion.move_metric(case.rows, within, violated, case.metric)

    def cost(a):
        unary = oracle.unary_table(case.seen, moved, a, "diag", name)[np.arange(24), case.labels].sum()
        links = sum(
            w * oracle.phi(case.seen[i], case.seen[j], np.diag(a), name)
            for (i, j), w in zip(violated.pairs, violated.weight, strict=True)
        )
        return unary + links + oracle.metric_term(case.seen, a, "diag", name, 3)

    slope = approx_fprime(found, cost, 1e-6)
    assert np.abs(slope).max() < 1e-3 * cost(found)
    rng = np.random.default_rng(seed)
    for size in (1e-3, 0.1, 1.0):
        assert cost(found) <= cost(found * np.exp(size * rng.normal(size=4))) + 1e-9


class TestBadInput:
    def test_zero_rows_have_no_direction(self):
        for data in (np.array([[1.0, 0.0], [0.0, 0.0]]), csr_matrix([[1.0, 0.0], [0.0, 0.0]])):
            with pytest.raises(ValueError, match="row 1 is zero throughout and has no direction"):
                make_distortion("cosine", None, 2).rows(data)

    def test_zero_rows_cannot_be_normalised(self):
        with pytest.raises(ValueError, match="row 0 is zero throughout"):
            make_distortion("kl", None, 2).rows(np.array([[0.0, 0.0], [1.0, 0.0]]))
        rows = make_distortion("i_divergence", None, 2).rows(np.array([[0.0, 0.0], [1.0, 0.0]]))
        assert len(rows) == 2

    @pytest.mark.parametrize("name", ["kl", "i_divergence"])
    def test_negative_counts(self, name):
        for data in (np.array([[1.0, 2.0], [3.0, -1.0]]), csr_matrix([[1.0, 2.0], [3.0, -1.0]])):
            with pytest.raises(ValueError, match="row 1 holds -1"):
                make_distortion(name, None, 2).rows(data)

    def test_sparse_euclidean(self):
        with pytest.raises(TypeError, match="needs dense data"):
            make_distortion("euclidean", None, 2).rows(csr_matrix(np.eye(2)))

    @pytest.mark.parametrize("kind", ["full", "per_cluster"])
    def test_metrics_without_a_normaliser(self, kind):
        with pytest.raises(ValueError, match="'euclidean' only"):
            make_distortion("cosine", kind, 2)

    def test_unknown_names(self):
        with pytest.raises(ValueError, match="distortion must be one of"):
            make_distortion("manhattan", None, 2)
        for metric in ("learned", np.eye(2)):
            with pytest.raises(ValueError, match='metric must be "auto", None'):
                make_distortion("euclidean", metric, 2)

    def test_tiny_and_huge_rows_have_directions(self):
        rows = make_distortion("cosine", None, 2).rows(np.array([[1e-200, 1e-200], [1e200, 1e200]]))
        np.testing.assert_allclose(rows.table, np.sqrt(0.5))
