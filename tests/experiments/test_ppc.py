"""Experiments of PPC: the methods get the same rows, links and starts, and the links are as described."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.exceptions import ConvergenceWarning

from experiments.framework import starts
from experiments.framework.data_files import DataMissing
from experiments.framework.summary import summarise
from experiments.framework.trials import Trial
from experiments.ppc import data as ppc_data
from experiments.ppc import hard as ppc_hard
from experiments.ppc import noise as ppc_noise
from experiments.ppc import partial as ppc_partial
from experiments.ppc import toy as ppc_toy
from experiments.ppc.optimum import class_start, ppc_soft_optimum
from linkwise import PPC, COPKMeans
from linkwise.metrics import clustering_accuracy

FEW_STARTS = 2


def _recorded(monkeypatch):
    """List that fills with what each method was fitted to, in the order of the fits."""
    seen = []
    original = starts.best_fit

    def recording(model, X, links, begin, objective):
        fitted = original(model, X, links, begin, objective)
        seen.append((type(model).__name__, X, links, begin, fitted))
        return fitted

    for module in (ppc_hard, ppc_noise, ppc_partial):
        monkeypatch.setattr(module, "best_fit", recording)
        monkeypatch.setattr(module, "N_STARTS", FEW_STARTS)
    monkeypatch.setattr(ppc_noise, "STARTS", {})
    return seen


@pytest.fixture
def calls(monkeypatch):
    return _recorded(monkeypatch)


@pytest.fixture(scope="module")
def noisy():
    """Rows and fits of one trial with noisy links."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        seen = _recorded(monkeypatch)
        return ppc_noise.ppc_noisy_links(0, "iris", flip=0.3), seen


class TestStarts:
    def test_best_fit_keeps_the_highest_objective_and_the_model(self):
        X = np.random.default_rng(0).normal(size=(40, 2))
        begin = starts.kmeans_starts(starts.random_centres(X, 4, 6, np.random.default_rng(1)))
        model = COPKMeans(4)
        best = starts.best_fit(model, X, None, begin, lambda fitted: -fitted.inertia_)
        inertias = [COPKMeans(4, **start).fit(X).inertia_ for start in begin]
        assert best.inertia_ == min(inertias) < max(inertias)
        assert not hasattr(model, "labels_")

    def test_mixture_starts_are_where_em_starts(self):
        X = np.random.default_rng(0).normal(size=(50, 3)) @ np.diag([1.0, 2.0, 3.0])
        start = starts.mixture_starts(X, [X[:2]])[0]
        ridge = starts.RIDGE * X.var(axis=0).mean()
        np.testing.assert_allclose(
            np.linalg.inv(start["precisions_init"][1]), np.cov(X.T, bias=True) + ridge * np.eye(3)
        )
        # The first bound is the likelihood of the start itself.
        with pytest.warns(ConvergenceWarning):
            fitted = PPC(2, max_iter=1, shrinkage=0, **start).fit(X)
        density = [multivariate_normal(mean, np.linalg.inv(start["precisions_init"][0])) for mean in X[:2]]
        expected = np.log(0.5 * sum(part.pdf(X) for part in density)).mean()
        assert fitted.lower_bounds_ == [pytest.approx(expected)]

    def test_centres_are_different_rows(self):
        X = np.arange(20.0).reshape(10, 2)
        for centres in starts.random_centres(X, 5, 20, np.random.default_rng(0)):
            assert len(np.unique(centres[:, 0])) == 5
            assert np.isin(centres[:, 0], X[:, 0]).all()


class TestSets:
    @pytest.mark.parametrize("name", ppc_data.SETS[:4])
    def test_free_sets_are_fixed(self, name):
        first, second = ppc_data.load_ppc_set(name, 0), ppc_data.load_ppc_set(name, 5)
        np.testing.assert_array_equal(first[0], second[0])
        np.testing.assert_array_equal(np.unique(first[1]), np.arange(first[1].max() + 1))

    def test_large_sets_name_the_data_they_need(self, monkeypatch):
        monkeypatch.delenv("LINKWISE_DATA", raising=False)
        for name in ppc_data.SETS[4:]:
            with pytest.raises(DataMissing, match=name):
                ppc_data.load_ppc_set(name, 0)

    def test_large_sets_are_cut_evenly_and_anew(self, monkeypatch):
        labels = np.repeat([0, 6, 8, 9, 5], 400)
        table = np.arange(len(labels), dtype=float)[:, np.newaxis]
        monkeypatch.setattr(ppc_data, "load_table", lambda name: (table, labels))
        X, y = ppc_data.load_ppc_set("pendigits", 0)
        assert np.bincount(y).tolist() == [250] * 4
        assert X.max() < 1600  # no fives
        assert not np.array_equal(X, ppc_data.load_ppc_set("pendigits", 1)[0])


class TestHardLinks:
    def test_methods_share_training_rows_links_and_starts(self, calls):
        ppc_hard.ppc_hard_links(3, "iris", pairs=30)
        kinds = [call[0] for call in calls]
        assert kinds == ["ConstrainedEM", "PPC", "PPC", "GreedyCOPKMeans", "COPKMeans"]
        (_, X, links, begin, _), ppc, gmm, greedy, cop = calls
        assert len(X) == 135
        assert ppc[1] is gmm[1] is greedy[1] is cop[1] is X
        assert ppc[2] is greedy[2] is cop[2] is links
        assert greedy[3] is cop[3]
        assert gmm[2] is None
        assert ppc[3] is gmm[3] is begin
        assert len(begin) == FEW_STARTS
        for broad, narrow in zip(begin, cop[3], strict=True):
            np.testing.assert_array_equal(broad["means_init"], narrow["init"])

    def test_links_are_hard_true_disjoint_and_among_training_rows(self, calls):
        ppc_hard.ppc_hard_links(0, "iris", pairs=40)
        links, X_train = calls[0][2], calls[0][1]
        assert len(links) == len(X_train)
        assert links.n_pairs == 40
        assert len(np.unique(links.pairs)) == 80
        assert np.isinf(links.weights).all()
        X, y = ppc_data.load_ppc_set("iris", 0)
        # Rows of Iris that occur twice are of one class.
        class_of = {row.tobytes(): label for row, label in zip(X, y, strict=True)}
        assert links.satisfaction([class_of[row.tobytes()] for row in X_train]) == 1.0

    def test_test_rows_use_the_matching_of_the_training_rows(self, monkeypatch):
        class Fixed:
            labels_ = np.array([1, 1, 1, 0, 0, 0, 0, 0])

            def predict(self, X):
                return np.array([0, 1])

        monkeypatch.setattr(ppc_hard, "load_ppc_set", lambda *_: (np.zeros((10, 1)), np.zeros(10, dtype=int)))
        split = [np.zeros((8, 1)), np.zeros((2, 1)), np.array([0] * 3 + [1] * 5), np.array([0, 1])]
        monkeypatch.setattr(ppc_hard, "train_test_split", lambda *_, **__: split)
        monkeypatch.setattr(ppc_hard, "mixture_starts", lambda *_: [])
        monkeypatch.setattr(ppc_hard, "best_fit", lambda *_: Fixed())
        for row in ppc_hard.ppc_hard_links(0, "iris", pairs=2):
            # Matched on the test rows alone, the same labels would score 1.
            assert (row["train"], row["test"]) == (1.0, 0.0)

    def test_pairs_fit_into_the_training_rows(self):
        rows = {"iris": 135, "waveform": 1350, "pendigits": 900}
        for setting in ppc_hard.EXPERIMENTS[0].full.settings:
            assert 2 * setting["pairs"] <= rows.get(setting["data"], 360)

    def test_draws_differ_and_repeat(self, calls):
        first = ppc_hard.ppc_hard_links(0, "artificial 2", pairs=20)
        assert first == ppc_hard.ppc_hard_links(0, "artificial 2", pairs=20)
        assert first != ppc_hard.ppc_hard_links(1, "artificial 2", pairs=20)

    def test_reference_gives_the_paired_difference(self, calls):
        experiment = ppc_hard.EXPERIMENTS[0]
        rows = ppc_hard.ppc_hard_links(0, "artificial 2", pairs=70)
        table = summarise(
            [Trial({"data": "a", "pairs": 70}, 0, rows)], experiment.measures, experiment.reference
        )
        score = {row["method"]: row["train"] for row in rows}
        found = {row["method"]: row["difference"] for row in table if row["measure"] == "train"}
        assert found["PPC"] == pytest.approx(score["PPC"] - score["constrained EM"])
        assert found["constrained EM"] is None


class TestNoisyLinks:
    def test_flips_change_kinds_only_and_hard_links_are_the_same(self, noisy):
        linked = {}
        for kind, _, links, _, _ in noisy[1]:
            linked.setdefault(kind, []).append(links)
        none, soft, hard = linked["PPC"]
        assert none is None
        assert linked["COPKMeans"] == [None, hard]
        assert all(links is soft for links in linked["PCKMeans"])
        np.testing.assert_array_equal(soft.pairs, hard.pairs)
        np.testing.assert_array_equal(np.sign(soft.weights), np.sign(hard.weights))
        assert np.isinf(hard.weights).all()
        np.testing.assert_allclose(np.abs(soft.weights), 0.5 * np.log(0.7 / 0.3))
        assert soft.n_pairs == 37
        assert len(np.unique(soft.pairs)) == 74
        y = ppc_data.load_ppc_set("iris", 0)[1]
        assert 0.1 < soft.violations(y).mean() < 0.5

    def test_all_methods_see_all_rows_and_the_same_starts(self, noisy):
        centres = [
            [start.get("means_init", start.get("init")) for start in begin] for _, _, _, begin, _ in noisy[1]
        ]
        for others in centres[1:]:
            np.testing.assert_array_equal(centres[0], others)
        assert {len(X) for _, X, _, _, _ in noisy[1]} == {150}

    def test_oracle_is_the_best_weight_and_the_fixed_one_is_among_them(self, noisy):
        rows = {row["method"]: row["accuracy"] for row in noisy[0]}
        assert next(iter(rows)) == ppc_noise.EXPERIMENTS[0].reference == "GMM"
        y = ppc_data.load_ppc_set("iris", 0)[1]
        accuracies = [
            clustering_accuracy(y, fitted.labels_) for kind, *_, fitted in noisy[1] if kind == "PCKMeans"
        ]
        assert rows["soft k-means, oracle weight"] == max(accuracies)
        assert rows["soft PPC"] > rows["hard PPC"]
        assert rows["soft k-means"] == accuracies[ppc_noise.ORACLE_FACTORS.index(1.0)]

    def test_cost_of_a_link_is_that_of_spherical_ppc(self, noisy):
        """A violated link lowers the log posterior by 2 w, and a squared distance of c by c / (2 s)."""
        fits = noisy[1]
        X, weight = fits[0][1], abs(fits[1][2].weights[0])
        plain = next(fitted for kind, *_, fitted in fits if kind == "COPKMeans")
        soft = [fitted for kind, *_, fitted in fits if kind == "PCKMeans"]
        cost = soft[ppc_noise.ORACLE_FACTORS.index(1.0)].weight * weight
        assert cost / (2.0 * plain.inertia_ / X.size) == pytest.approx(2.0 * weight, rel=1e-3)

    def test_learned_rate_follows_the_realised_one(self, monkeypatch):
        monkeypatch.setattr(ppc_noise, "N_STARTS", 5)
        realised, learned = ppc_noise.learned_noise(2, flip=0.0)
        assert realised["rate"] == 0.0
        assert learned["rate"] < 0.05
        realised, learned = ppc_noise.learned_noise(1, flip=0.3)
        assert realised["rate"] > 0.15
        assert learned["rate"] == pytest.approx(realised["rate"], abs=0.1)


class TestToy:
    def test_weight_zero_is_the_mixture_without_links(self):
        X, y, links, _ = ppc_toy._problem(0)
        assert links.n_pairs == 20
        assert links.satisfaction(y) == 1.0
        model = ppc_toy._after(X, links, 0.5, 0.0, 5)
        almost = ppc_toy._after(X, links, 0.5, 1e-9, 5)
        np.testing.assert_allclose(model.means_, almost.means_, atol=1e-6)

    def test_snapshots_are_of_one_run(self):
        X, _, links, _ = ppc_toy._problem(1)
        short, long = (ppc_toy._after(X, links, 0.6, 3.0, n) for n in (3, 5))
        assert (short.n_iter_, long.n_iter_) == (3, 5)
        np.testing.assert_allclose(short.lower_bounds_, long.lower_bounds_[:3])

    def test_heavy_links_turn_the_start_around(self):
        rows = {row["method"]: row for row in ppc_toy.ppc_toy(1, tilt=0.8)}
        assert rows["w = 0"]["right"] == 0.0
        assert rows["w = 0"]["accuracy_20"] < 0.7
        assert rows["w = 3"]["right"] == 1.0
        assert rows["w = 3"]["accuracy_20"] > 0.85

    def test_picture_is_written(self, tmp_path):
        ppc_toy.EXPERIMENTS[0].picture(tmp_path / "toy.png")
        assert (tmp_path / "toy.png").stat().st_size > 10_000


class TestPartialClasses:
    @pytest.fixture
    def scene(self, monkeypatch):
        rng = np.random.default_rng(0)
        classes = np.repeat([14, 2, 3], [40, 150, 150])
        centres = {14: (0.0, 3.0), 2: (0.0, 0.0), 3: (6.0, 0.0)}
        X = np.array([centres[label] for label in classes]) + rng.normal(size=(340, 2))
        monkeypatch.setattr(
            ppc_partial, "_blocks", lambda n: (X, classes, np.ones(340, dtype=bool), (20, 17))
        )
        return X, classes

    def test_links_join_no_two_blocks_of_one_group_and_no_test_block(self, scene, calls):
        X, classes = scene
        ppc_partial.ppc_partial_classes(0, "woods", components=2)
        (_, X_gmm, none, begin, _), (_, X_ppc, links, begin_ppc, _) = calls
        train = ppc_partial._training_rows(340, 0)
        assert none is None
        assert begin is begin_ppc
        np.testing.assert_array_equal(X_ppc, X[train])
        np.testing.assert_array_equal(X_gmm, X_ppc)
        woods = classes[train] == 14
        assert len(links.must_link) == 0
        assert np.isinf(links.weights).all()
        assert (woods[links.pairs].sum(axis=1) == 1).all()
        others = links.pairs[~woods[links.pairs]]
        assert len(np.unique(others)) == len(others) == min(6 * woods.sum(), (~woods).sum())

    def test_scores_are_of_the_coarse_division(self, scene):
        rows = {row["method"]: row for row in ppc_partial.ppc_partial_classes(0, "woods", components=2)}
        for row in rows.values():
            assert row["test"] == pytest.approx((row["found"] + 1.0 - row["lost"]) / 2)
        assert rows["PPC"]["train"] > 0.85

    def test_clusters_go_to_the_group_that_maximises_balanced_accuracy(self):
        rng = np.random.default_rng(0)
        for _ in range(100):
            labels, group = rng.integers(3, size=30), rng.random(30) < 0.3
            group[:2] = True, False
            scores = {}
            for choice in np.ndindex(2, 2, 2):
                told = np.array(choice, dtype=bool)[labels]
                scores[choice] = told[group].mean() - told[~group].mean()
            chosen = ppc_partial.group_of_clusters(labels, group)
            assert scores[tuple(chosen.astype(int))] == pytest.approx(max(scores.values()))


def test_start_at_the_classes_is_their_maximum_likelihood():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), np.repeat([0, 1, 2], [10, 20, 30])
    start = class_start(X, y)
    assert start["weights_init"] == pytest.approx([1 / 6, 1 / 3, 1 / 2])
    for label in range(3):
        part = X[y == label]
        covariance = (part - part.mean(axis=0)).T @ (part - part.mean(axis=0)) / len(part)
        ridge = 1e-3 * X.var(axis=0).mean() * np.eye(2)
        assert start["means_init"][label] == pytest.approx(part.mean(axis=0))
        assert start["precisions_init"][label] @ (covariance + ridge) == pytest.approx(np.eye(2))


def test_soft_links_do_not_outweigh_the_shape_of_the_first_artificial_set():
    without, classes = ppc_soft_optimum(0, "artificial 1", 0.15)
    assert classes["accuracy"] == 1.0
    assert without["accuracy"] < 0.7
    assert classes["objective"] < without["objective"] - 50


def test_mixtures_are_plain_em_at_its_maximum(monkeypatch):
    """No default of the library reaches a paper's experiment, and one more step changes nothing."""
    seen = _recorded(monkeypatch)
    ppc_hard.ppc_hard_links(0, "artificial 2", 40)
    mixtures = [(X, links, fitted) for name, X, links, _, fitted in seen if name in ("PPC", "ConstrainedEM")]
    assert len(mixtures) == 3
    for X, links, fitted in mixtures:
        assert fitted.shrinkage_ == 0.0
        assert fitted.converged_
        onward = fitted.set_params(warm_start=True, max_iter=50, tol=0.0)
        before = fitted.means_.copy()
        with pytest.warns(ConvergenceWarning):
            onward.fit(X, constraints=links)
        assert onward.means_ == pytest.approx(before, abs=1e-3)
