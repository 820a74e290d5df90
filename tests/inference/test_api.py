"""marginals() and best_labels() as a user calls them, every method, against exhaustive enumeration."""

from __future__ import annotations

import warnings
from functools import cache

import numpy as np
import pytest

from linkwise.exceptions import (
    ApproximationWarning,
    FeasibilityWarning,
    InfeasibleConstraints,
    InferenceBudgetExceeded,
)
from linkwise.inference import EngineMarginals, PottsField, best_labels, marginals
from tests.inference.oracle import GRAPHS, enumerate_field, random_field
from tests.repeats import LONG, examples, for_seeds, share

MARGINALS = ["auto", "exact", "tree", "mean_field", "gibbs", "belief_propagation"]
LABELS = ["auto", "exact", "icm", "belief_propagation", "lp", "forest_descent"]
SEEDS = range(150 if LONG else 75)


def field_of(seed):
    rng = np.random.default_rng(seed)
    return random_field(
        rng,
        shape=GRAPHS[seed % len(GRAPHS)],
        hard=(0.0, 0.2, 0.6)[seed % 3],
        per_label=seed % 5 == 0,
        scale=(0.5, 2.0, 8.0)[seed % 4 % 3],
    )


@cache
def case_of(seed):
    """A field and its truth, which all methods are held against."""
    field = field_of(seed)
    return field, *enumerate_field(field)[:4]


@pytest.mark.parametrize("method", ["auto", "exact"])
def test_exact_methods_against_enumeration(method):
    n_infeasible = 0
    for seed in SEEDS:
        field, prob, log_partition, agreement, best = case_of(seed)
        if prob is None:
            n_infeasible += 1
            for solve in (marginals, best_labels):
                with pytest.raises(InfeasibleConstraints):
                    solve(field, method)
            continue
        found = marginals(field, method)
        assert found.exact
        assert found.converged
        assert found.log_partition_kind == "exact"
        np.testing.assert_allclose(found.prob, prob, atol=1e-10)
        np.testing.assert_allclose(found.agreement, agreement, atol=1e-10)
        assert found.log_partition == pytest.approx(log_partition, abs=1e-9)
        labels = best_labels(field, method)
        assert labels.optimal
        assert labels.score == pytest.approx(best, abs=1e-9)
        assert labels.upper_bound == labels.score
        assert labels.score == field.score(labels.labels)
    assert (10 if LONG else 4) < n_infeasible < (100 if LONG else 50)


@pytest.mark.parametrize("method", MARGINALS)
def test_flags_of_marginals_never_lie(method):
    options = {"tol": 0.05, "max_sweeps": 200} if method == "gibbs" else {}
    for seed in list(SEEDS)[:: 3 if method == "gibbs" else 2]:
        field, prob, log_partition, agreement, _ = case_of(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", (ApproximationWarning))
            warnings.simplefilter("ignore", (FeasibilityWarning))
            try:
                found = marginals(field, method, random_state=seed, **options)
            except InfeasibleConstraints:
                assert prob is None
                continue
        if prob is None:
            # Only a method that does not enforce every link may overlook a contradiction.
            assert not found.exact
            continue
        assert np.isfinite(found.prob).all()
        np.testing.assert_allclose(found.prob.sum(axis=1), 1.0, atol=1e-9)
        assert ((found.agreement >= -1e-12) & (found.agreement <= 1 + 1e-12)).all()
        if found.exact:
            np.testing.assert_allclose(found.prob, prob, atol=1e-8)
            np.testing.assert_allclose(found.agreement, agreement, atol=1e-8)
            assert found.log_partition == pytest.approx(log_partition, abs=1e-7)
        if found.log_partition_kind == "lower_bound":
            assert found.log_partition <= log_partition + 1e-8
        if found.log_partition_kind == "upper_bound":
            assert found.log_partition >= log_partition - 1e-8


@pytest.mark.parametrize("method", LABELS)
def test_flags_of_labels_never_lie(method):
    for seed in list(SEEDS)[::2]:
        field, *_, best = case_of(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FeasibilityWarning)
            try:
                found = best_labels(field, method, random_state=seed)
            except InfeasibleConstraints:
                assert best == -np.inf
                continue
        assert found.score == field.score(found.labels)
        assert found.score <= best + 1e-9
        if found.optimal:
            assert found.score == pytest.approx(best, abs=1e-7)
        if found.upper_bound is not None:
            assert found.upper_bound >= best - 1e-7


@pytest.mark.parametrize("method", ["icm", "belief_propagation", "lp", "forest_descent", "auto"])
def test_labels_never_score_less_than_the_start(method):
    n_feasible = 0
    for seed in range(examples(100)):
        field, prob, *_ = case_of(seed)
        if prob is None:
            continue
        n_feasible += 1
        start = np.random.default_rng(seed).integers(field.n_labels, size=field.n_points)
        found = best_labels(field, method, random_state=seed, initial=start)
        assert found.score >= field.score(start)
    assert n_feasible > share(60)


class TestInvariances:
    """Of the exact answer, through the whole pipeline."""

    def test_permutations_scaling_and_splitting(self):
        feasible = [seed for seed in range(60) if case_of(seed)[1] is not None]
        assert len(feasible) > 35
        for seed in feasible:
            self.check_permutations_scaling_and_splitting(seed)

    def check_permutations_scaling_and_splitting(self, seed):
        field = field_of(seed)
        rng = np.random.default_rng(seed)
        base = marginals(field)

        order = rng.permutation(field.n_points)
        place = np.argsort(order)
        moved = marginals(PottsField(field.unary[order], place[field.pairs], field.coupling))
        np.testing.assert_allclose(moved.prob, base.prob[order], atol=1e-10)
        np.testing.assert_allclose(moved.agreement, base.agreement, atol=1e-10)

        labels = rng.permutation(field.n_labels)
        coupling = field.coupling if field.coupling.ndim == 1 else field.coupling[:, labels]
        renamed = marginals(PottsField(field.unary[:, labels], field.pairs, coupling))
        np.testing.assert_allclose(renamed.prob, base.prob[:, labels], atol=1e-10)

        rows = rng.permutation(len(field.pairs))
        flipped = field.pairs[rows][:, ::-1]
        reordered = marginals(PottsField(field.unary, flipped, field.coupling[rows]))
        np.testing.assert_allclose(reordered.prob, base.prob, atol=1e-10)
        np.testing.assert_allclose(reordered.agreement, base.agreement[rows], atol=1e-10)

        halves = PottsField(
            field.unary, np.concatenate([field.pairs] * 2), np.concatenate([field.coupling / 2] * 2)
        )
        split = marginals(halves)
        np.testing.assert_allclose(split.prob, base.prob, atol=1e-9)
        assert split.log_partition == pytest.approx(base.log_partition, abs=1e-9)

        shifted = marginals(
            PottsField(field.unary + rng.normal(size=(field.n_points, 1)), field.pairs, field.coupling)
        )
        np.testing.assert_allclose(shifted.prob, base.prob, atol=1e-10)

    @for_seeds(20)
    def test_adding_a_disconnected_component(self, seed):
        rng = np.random.default_rng(seed)
        a, b = (random_field(rng, n=4, n_labels=3, hard=0.0) for _ in range(2))
        both = PottsField(
            np.concatenate([a.unary, b.unary]),
            np.concatenate([a.pairs, b.pairs + 4]),
            np.concatenate([a.coupling, b.coupling]),
        )
        joint, left, right = marginals(both), marginals(a), marginals(b)
        np.testing.assert_allclose(joint.prob, np.concatenate([left.prob, right.prob]), atol=1e-12)
        assert joint.log_partition == pytest.approx(left.log_partition + right.log_partition)

    @for_seeds(20)
    def test_scaling_the_field_scales_the_best_score(self, seed):
        field = random_field(np.random.default_rng(seed), hard=0.0)
        best = best_labels(field)
        scaled = best_labels(PottsField(7.0 * field.unary, field.pairs, 7.0 * field.coupling))
        assert scaled.score == pytest.approx(7.0 * best.score)


class TestTraps:
    """Large magnitudes and degenerate inputs (spec mixture.md, section 8)."""

    @pytest.mark.parametrize("odds", [60.0, 700.0, 1e5])
    @pytest.mark.parametrize("method", ["auto", "exact", "tree", "belief_propagation", "mean_field"])
    def test_hard_link_between_points_of_opposite_opinion(self, odds, method):
        field = PottsField([[odds, 0.0], [0.0, odds]], [(0, 1)], [np.inf])
        found = marginals(field, method)
        np.testing.assert_allclose(found.prob, 0.5)
        assert found.log_partition == pytest.approx(odds + np.log(2.0))

    @pytest.mark.parametrize(("weight", "kept"), [(20.0, 4e-9), (29.0, 0.21), (31.0, 0.94)])
    def test_large_weights_are_not_hard(self, weight, kept):
        """T2: with log-odds of 60 against each other a soft link holds only beyond w = 30."""
        field = PottsField([[60.0, 0.0], [0.0, 60.0]], [(0, 1)], [2 * weight])
        assert marginals(field).agreement[0] == pytest.approx(kept, rel=0.1)

    def test_couplings_of_any_size(self):
        for coupling in (1e-300, 1e-12, 1e3, 1e12, 1e300):
            for sign in (1, -1):
                field = PottsField([[0.3, 0.0, -0.2]] * 3, [(0, 1), (1, 2), (0, 2)], [sign * coupling] * 3)
                found = marginals(field)
                assert np.isfinite(found.prob).all()
                np.testing.assert_allclose(found.prob, enumerate_field(field)[0], atol=1e-10)

    def test_cancelling_links_leave_their_cost(self):
        field = PottsField([[0.0, 1.0], [0.5, 0.0]], [(0, 1), (1, 0)], [2.0, -2.0])
        prob, log_partition, agreement, best, _ = enumerate_field(field)
        found = marginals(field)
        np.testing.assert_allclose(found.prob, prob)
        np.testing.assert_allclose(found.agreement, agreement)
        assert found.log_partition == pytest.approx(log_partition)
        assert best_labels(field).score == pytest.approx(best)

    def test_zero_coupling_inside_a_component_has_its_agreement(self):
        field = PottsField(np.eye(3), [(0, 1), (1, 2), (0, 2)], [1.5, -2.0, 0.0])
        np.testing.assert_allclose(marginals(field).agreement, enumerate_field(field)[2], atol=1e-12)

    def test_forbidden_labels(self):
        unary = [[0.0, -np.inf], [0.0, 1.0]]
        assert marginals(PottsField(unary, [(0, 1)], [np.inf])).prob.tolist() == [[1, 0], [1, 0]]
        with pytest.raises(InfeasibleConstraints):
            marginals(PottsField([[0.0, -np.inf], [-np.inf, 0.0]], [(0, 1)], [np.inf]))
        with pytest.raises(InfeasibleConstraints):
            marginals(PottsField([[0.0, -np.inf]] * 2, [(0, 1)], [-np.inf]))

    def test_one_label_and_no_points_and_no_links(self):
        assert marginals(PottsField([[0.0]] * 3, [(0, 1)], [2.0])).log_partition == 0.0
        assert marginals(PottsField([[0.0]] * 3, [(0, 1)], [-2.0])).log_partition == -2.0
        assert marginals(PottsField(np.empty((0, 2)), [], [])).prob.shape == (0, 2)
        lonely = marginals(PottsField([[0.0, np.log(3.0)]], [], []))
        np.testing.assert_allclose(lonely.prob, [[0.25, 0.75]])
        assert lonely.method == "independent"
        assert best_labels(PottsField([[0.0, 1.0]], [], [])).labels.tolist() == [1]

    def test_contradiction_names_the_path(self):
        field = PottsField(np.zeros((3, 4)), [(0, 1), (1, 2), (2, 0)], [np.inf, np.inf, -np.inf])
        with pytest.raises(
            InfeasibleConstraints, match=r"0 and 2 must be together \(0-1-2\) but are linked apart"
        ):
            marginals(field)
        with pytest.raises(InfeasibleConstraints, match=r"0 and 1 must be together \(0-1\)"):
            best_labels(PottsField(np.zeros((2, 4)), [(0, 1), (1, 0)], [np.inf, -np.inf]))


class TestHonesty:
    def grid(self, side, n_labels=3, coupling=1.0, seed=0):
        index = np.arange(side * side).reshape(side, side)
        pairs = np.concatenate(
            [
                np.column_stack([index[:, :-1].ravel(), index[:, 1:].ravel()]),
                np.column_stack([index[:-1].ravel(), index[1:].ravel()]),
            ]
        )
        unary = np.random.default_rng(seed).normal(size=(side * side, n_labels))
        return PottsField(unary, pairs, np.full(len(pairs), coupling))

    def test_exact_refuses_before_it_runs(self):
        with pytest.raises(InferenceBudgetExceeded, match="width") as caught:
            marginals(self.grid(40), "exact")
        assert 3 ** (caught.value.width + 1) > 2**22

    def test_auto_says_what_was_exact(self):
        wide, narrow = self.grid(40), self.grid(3)
        field = PottsField(
            np.concatenate([wide.unary, narrow.unary, np.zeros((3, 3))]),
            np.concatenate([wide.pairs, narrow.pairs + 1600, [[1609, 1610]]]),
            np.concatenate([wide.coupling, narrow.coupling, [-1.0]]),
        )
        found = marginals(field)
        assert not found.exact
        assert sum(found.parts.values()) == field.n_points
        assert found.parts["independent"] == 1
        assert found.parts["tree"] == 2
        assert found.parts["junction_tree"] == 9
        np.testing.assert_allclose(found.prob[1600:1609], marginals(narrow, "exact").prob, atol=1e-10)
        labels = best_labels(field)
        assert sum(labels.parts.values()) == field.n_points

    def test_a_spanning_tree_says_how_many_links_it_dropped(self):
        with pytest.warns(ApproximationWarning, match="1 "):
            found = marginals(PottsField(np.eye(3), [(0, 1), (1, 2), (0, 2)], [1.0, 2.0, 3.0]), "tree")
        assert not found.exact
        assert found.details["n_dropped"] == 1

    @pytest.mark.parametrize("method", ["mean_field", "gibbs", "belief_propagation"])
    def test_threads_do_not_change_the_numbers(self, method):
        field = self.grid(30)
        options = {"tol": 0.05} if method == "gibbs" else {}
        one, two = (
            marginals(field, method, random_state=0, n_threads=threads, **options) for threads in (1, 2)
        )
        np.testing.assert_array_equal(one.prob, two.prob)

    def test_iteration_limits_are_reported(self):
        assert not marginals(self.grid(20), "mean_field", max_iter=1).converged
        assert not marginals(self.grid(20), "belief_propagation", max_iter=1).converged


class TestArguments:
    field = PottsField(np.zeros((3, 2)), [(0, 1)], [1.0])

    @pytest.mark.parametrize("coupling", [[], np.empty((0, 2))])
    def test_a_field_without_links_can_be_shown(self, coupling):
        assert (
            repr(PottsField([[0.0, 1.0]], [], coupling)) == "PottsField(1 points, 2 labels, 0 links (0 hard))"
        )

    def test_unknown_method(self):
        with pytest.raises(ValueError, match=r"marginals has no method 'magic'; use one of auto, "):
            marginals(self.field, "magic")
        with pytest.raises(ValueError, match="best_labels has no method 'gibbs'"):
            best_labels(self.field, "gibbs")

    def test_own_engine(self):
        def uniform(problem, rng, *, initial=None, n_threads=1, power=1):
            prob = np.full_like(problem.unary, 1 / problem.unary.shape[1])
            return EngineMarginals(prob, 0.0, np.full(len(problem.pairs), 0.5**power), exact=False)

        found = marginals(self.field, uniform, power=2)
        assert found.method == "uniform"
        assert found.agreement.tolist() == [0.25]

    @pytest.mark.parametrize("initial", [np.zeros((2, 2)), np.full((3, 2), np.nan), -np.ones((3, 2))])
    def test_bad_starts(self, initial):
        with pytest.raises(ValueError, match="initial"):
            marginals(self.field, "mean_field", initial=initial)

    @pytest.mark.parametrize("initial", [[0, 1], [0, 1, 2], [0.5, 0, 1], [0, -1, 0]])
    def test_bad_start_labels(self, initial):
        with pytest.raises(ValueError, match="initial must"):
            best_labels(self.field, initial=initial)

    @pytest.mark.parametrize(
        ("unary", "pairs", "coupling", "message"),
        [
            (np.zeros(3), [], [], r"unary must have shape \(n_points, n_labels\)"),
            (np.zeros((3, 0)), [], [], "at least one label"),
            ([[0.0, np.nan]], [], [], r"unary\[0, 1\] is nan"),
            ([[0.0, np.inf]], [], [], r"unary\[0, 1\] is inf"),
            ([[0.0, 1.0], [-np.inf, -np.inf]], [], [], "row 1 of unary is -inf throughout"),
            (np.zeros((3, 2)), [(0, 3)], [1.0], r"pair 0 is \(0, 3\): points are numbered 0..2"),
            (np.zeros((3, 2)), [(0, 1), (2, 2)], [1.0, 1.0], r"pair 1 is \(2, 2\): a point cannot be linked"),
            (np.zeros((3, 2)), [(0.5, 1)], [1.0], "pairs: pair 0 is .*whole numbers"),
            (np.zeros((3, 2)), [(0, 1)], [np.nan], "coupling of pair 0 is NaN"),
            (np.zeros((3, 2)), [(0, 1)], [1.0, 2.0], r"coupling must have shape \(1,\) or \(1, 2\)"),
            (np.zeros((3, 2)), [(0, 1)], [[1.0, np.inf]], r"\+inf for some labels only"),
        ],
    )
    def test_bad_fields(self, unary, pairs, coupling, message):
        with pytest.raises(ValueError, match=message):
            PottsField(unary, pairs, coupling)

    def test_score(self):
        with pytest.raises(ValueError, match=r"labels has shape \(2,\)"):
            self.field.score([0, 1])
        with pytest.raises(ValueError, match=r"labels must lie in 0..1"):
            self.field.score([0, 1, 2])
        assert repr(self.field) == "PottsField(3 points, 2 labels, 1 links (0 hard))"
