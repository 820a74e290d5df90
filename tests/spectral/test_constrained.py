from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.cluster import SpectralClustering
from sklearn.datasets import load_wine, make_blobs
from sklearn.exceptions import NotFittedError
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from linkwise import Constraints, SpectralLearning
from linkwise.datasets import (
    make_four_blobs,
    make_noisy_objects,
    make_occluder,
    make_rings,
    make_spirals,
    make_two_moons,
)
from linkwise.exceptions import InfeasibleConstraints
from linkwise.metrics import rand_score
from linkwise.spectral.constrained import ConstrainedSpectralClustering
from linkwise.spectral.kernels import gaussian_kernel, local_scale
from linkwise.spectral.propagation import signed_links
from linkwise.spectral.solvers import posterior_factor
from tests.repeats import LONG
from tests.sklearn_checks import estimator_checks
from tests.spectral.spectral_oracle import algorithm_b, by_inverses, by_svd, gaussian, random_links


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """The matrices are small: threads would only wait for each other."""
    with threadpool_limits(1):
        yield


def model(n_clusters=2, **options):
    return ConstrainedSpectralClustering(n_clusters, **{"random_state": 0, **options})


def width(X, factor=1.0):
    return factor * local_scale(NearestNeighbors().fit(X))


def quietly(function, *arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*arguments, **options)


@estimator_checks(
    ConstrainedSpectralClustering(random_state=0),
    ConstrainedSpectralClustering(affinity="rbf", random_state=0),
    ConstrainedSpectralClustering(2, solver="landmark", random_state=0),
    ConstrainedSpectralClustering(2, solver="basis", algorithm="A", random_state=0),
)
def test_scikit_learn_checks(estimator, check):
    quietly(check, estimator)


class TestWithoutLinks:
    @pytest.mark.parametrize("affinity", ["heat", "self_tuning", "rbf"])
    def test_is_plain_spectral_clustering(self, affinity):
        X, _ = make_blobs(150, centers=3, cluster_std=0.5, random_state=0)
        found = model(3, affinity=affinity, n_neighbors=15).fit(X)
        theirs = SpectralClustering(3, affinity="precomputed", random_state=0)
        assert adjusted_rand_score(theirs.fit_predict(found.affinity_matrix_), found.labels_) == 1.0
        scale = 1.0 / np.sqrt(found.affinity_matrix_.sum(axis=1))
        values, vectors = np.linalg.eigh(scale[:, np.newaxis] * found.affinity_matrix_ * scale)
        np.testing.assert_allclose(found.eigenvalues_, values[::-1][:3], atol=1e-10)
        rows = vectors[:, -3:] / np.linalg.norm(vectors[:, -3:], axis=1, keepdims=True)
        np.testing.assert_allclose(found.embedding_ @ found.embedding_.T, rows @ rows.T, atol=1e-8)
        assert found.violation_rate_ == 0.0
        assert found.trace_ratio_ == 1.0

    def test_none_and_an_empty_set_of_links_are_the_same(self):
        X, _ = make_four_blobs(random_state=0)
        plain, empty = model().fit(X), model().fit(X, constraints=Constraints(len(X)))
        np.testing.assert_array_equal(plain.labels_, empty.labels_)
        np.testing.assert_array_equal(plain.affinity_matrix_, empty.affinity_matrix_)

    def test_affinity_is_the_kernel(self):
        X, _ = make_four_blobs(20, random_state=0)
        K = gaussian_kernel(X, X, width(X))
        np.testing.assert_allclose(model(affinity="rbf").fit(X).affinity_matrix_, K)
        np.testing.assert_allclose(model(affinity="precomputed").fit(K).affinity_matrix_, K)


class TestAffinity:
    @pytest.mark.parametrize("algorithm", ["A", "B"])
    @pytest.mark.parametrize("negative_affinities", ["clip", "signed"])
    def test_is_the_literal_one(self, algorithm, negative_affinities):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(30, 2))
        K = 3.0 * gaussian(X, 0.5) + 0.3 * np.eye(30)  # mean diagonal 3.3
        pairs, signs = random_links(rng, 30, 12)
        links = Constraints(30, pairs[signs > 0], pairs[signs < 0], weight=2.0)
        found = model(
            affinity="precomputed",
            algorithm=algorithm,
            negative_affinities=negative_affinities,
            softness=0.2,
            base_rates=None,
        )
        found = quietly(found.fit, K, constraints=links)
        variances = np.full(12, 0.2**2 / 2.0 * 3.3)
        if algorithm == "A":
            expected = by_inverses(K, pairs, signs, variances)
        else:
            expected = algorithm_b(K, pairs, signs, variances, clip=False)
        assert expected.min() < 0.0
        if negative_affinities == "clip":
            expected = np.maximum(expected, 0.0)
        np.testing.assert_allclose(found.affinity_matrix_, expected, atol=1e-10)
        assert found.trace_ratio_ == pytest.approx(expected.trace() / K.trace())

    @pytest.mark.parametrize(("base_rates", "rate"), [(0.2, 0.2), ("auto", None)])
    def test_certainties_become_chances_of_the_truth(self, base_rates, rate):
        rng = np.random.default_rng(0)
        K = gaussian(rng.normal(size=(30, 2)), 0.5)
        pairs, signs = random_links(rng, 30, 12)
        strength = rng.uniform(1.0, 2.0, 12)
        links = Constraints(30, pairs[signs > 0], pairs[signs < 0],
                            weight=np.concatenate([strength[signs > 0], strength[signs < 0]]))  # fmt: skip
        found = model(affinity="precomputed", algorithm="A", softness=0.2, base_rates=base_rates)
        found = quietly(found.fit, K, constraints=links)
        if rate is None:
            rate = found.base_rate_
            assert 0.3 < rate < 0.7
            assert rate != 0.5
        assert found.base_rate_ == rate
        g = 1.0 / (1.0 + np.exp(-2.0 * strength))
        p = np.where(signs > 0, rate, 1.0 - rate)
        chance = g * p / (g * p + (1.0 - g) * (1.0 - p))
        assert chance.min() > 0.51
        variances = 0.2**2 / (0.5 * np.log(chance / (1.0 - chance)))
        expected = np.maximum(by_inverses(K, pairs, signs, variances), 0.0)
        np.testing.assert_allclose(found.affinity_matrix_, expected, atol=1e-9)

    def test_base_rates_leave_hard_links_alone(self):
        X, y = make_four_blobs(20, random_state=0)
        links = Constraints.sample(y, 20, random_state=0)
        found = [model(base_rates=rates).fit(X, constraints=links) for rates in ("auto", None, 0.1)]
        for other in found[1:]:
            np.testing.assert_array_equal(found[0].affinity_matrix_, other.affinity_matrix_)
        assert np.isnan(found[1].base_rate_)

    def test_figure_2_a_must_link_merges_two_clusters(self):
        rng = np.random.default_rng(0)
        X = np.concatenate([rng.normal(centre, 0.1, (20, 1)) for centre in (0.0, 2.0, 4.0)])
        links = Constraints(60, must_link=[(5, 25)])
        found = model(affinity="rbf", sigma=0.4).fit(X, constraints=links)
        assert adjusted_rand_score(np.repeat([0, 0, 1], 20), found.labels_) == 1.0
        assert found.affinity_matrix_[:20, 20:40].mean() > 0.1
        plain = model(3, affinity="rbf", sigma=0.4).fit(X)
        assert adjusted_rand_score(np.repeat([0, 1, 2], 20), plain.labels_) == 1.0

    def test_figure_3_a_cannot_link_splits_a_continuum(self):
        X = np.linspace(0.0, 4.0, 40)[:, np.newaxis]
        plain = model(affinity="rbf", sigma=0.6).fit(X)
        assert np.flatnonzero(np.diff(plain.labels_)).tolist() == [19]
        split = model(affinity="rbf", sigma=0.6).fit(X, constraints=Constraints(40, cannot_link=[(5, 15)]))
        (boundary,) = np.flatnonzero(np.diff(split.labels_))
        assert 9 <= boundary <= 13
        assert split.violation_rate_ == 0.0

    def test_permuting_the_rows_permutes_the_result(self):
        X, y = make_rings(60, random_state=0)
        links = Constraints.sample(y, 30, overlap=True, random_state=0)
        order = np.random.default_rng(0).permutation(len(X))
        plain = model().fit(X, constraints=links)
        permuted = model().fit(X[order], constraints=links[order])
        np.testing.assert_allclose(
            permuted.affinity_matrix_, plain.affinity_matrix_[np.ix_(order, order)], atol=1e-9
        )
        assert adjusted_rand_score(plain.labels_[order], permuted.labels_) == 1.0

    def test_redundant_links_count_in_soft_mode_and_vanish_in_hard_mode(self):
        K = gaussian(np.arange(8.0), 1.5) + 0.01 * np.eye(8)
        ring = Constraints(8, must_link=[(0, 3), (3, 6), (0, 6)])
        tree = Constraints(8, must_link=[(0, 3), (3, 6)])
        hard = [model(affinity="precomputed", softness=1e-5).fit(K, constraints=c) for c in (ring, tree)]
        np.testing.assert_allclose(hard[0].affinity_matrix_, hard[1].affinity_matrix_, atol=1e-9)
        assert [m.n_redundant_ for m in hard] == [1, 0]
        soft = [model(affinity="precomputed").fit(K, constraints=c) for c in (ring, tree)]
        assert np.abs(soft[0].affinity_matrix_ - soft[1].affinity_matrix_).max() > 1e-4


class TestLinksHelp:
    @pytest.mark.parametrize(
        ("make", "least"), [(make_two_moons, 0.9), (make_rings, 0.85), (make_spirals, 0.85)]
    )
    @pytest.mark.parametrize("negative_affinities", ["clip", "signed"])
    def test_two_classes(self, make, least, negative_affinities):
        X, y = make(200, random_state=0)
        scores = []
        estimator = model(negative_affinities=negative_affinities).fit(X)
        before = rand_score(y, estimator.labels_)
        for seed in range(3 if LONG else 2):
            links = Constraints.sample(y, 80, overlap=True, random_state=seed)
            scores.append(rand_score(y, estimator.update(links).labels_))
        assert np.mean(scores) > max(least, before + 0.1)

    def test_four_blobs(self):
        X, y = make_four_blobs(random_state=0)
        links = Constraints.sample(y, 40, overlap=True, random_state=0)
        assert rand_score(y, model().fit(X, constraints=links).labels_) > 0.8

    def test_occluder(self):
        image, truth = make_occluder(random_state=0)
        row, column = np.mgrid[0:16, 0:16]
        X = np.column_stack([row.ravel() / 16, column.ravel() / 16, image.ravel()])
        at = np.arange(256).reshape(16, 16)
        y = truth.ravel()
        links = Constraints(
            256,
            must_link=[
                (at[1, 6], at[14, 9]),
                (at[4, 6], at[11, 8]),
                (at[3, 1], at[3, 14]),
                (at[12, 2], at[12, 15]),
            ],
            cannot_link=[
                (at[2, 1], at[2, 6]),
                (at[13, 13], at[13, 9]),
                (at[7, 3], at[7, 7]),
                (at[8, 12], at[8, 8]),
            ],
        )
        assert not links.violations(y).any()
        before, after = model().fit(X), model().fit(X, constraints=links)
        assert rand_score(y, after.labels_) > rand_score(y, before.labels_) + 0.2

    def test_many_clusters_by_algorithm_b(self):
        image, truth = make_noisy_objects(random_state=0)
        keep = np.zeros((43, 43), dtype=bool)
        keep[::2, ::2] = True
        row, column = np.nonzero(keep)
        X = np.column_stack([row / 43, column / 43, 2.0 * image[keep]])
        y = truth[keep]
        links = Constraints.sample(y, 150, overlap=True, random_state=0)
        estimator = model(4).fit(X)
        before = rand_score(y, estimator.labels_)
        assert estimator.algorithm_ == "B"
        assert rand_score(y, estimator.update(links).labels_) > before + 0.05


class TestFailureModes:
    """F1 to F5 of the specification: they are properties of the method, and warned about."""

    def test_f1_many_hard_links_wipe_out_the_variance(self):
        X, y = make_two_moons(75, random_state=0)
        links = Constraints.sample(y, 200, overlap=True, random_state=0)
        estimator = model(affinity="rbf", sigma=width(X, 2.0), softness=1e-5)
        with pytest.warns(UserWarning, match=r"leave \d+ points without variance"):
            estimator.fit(X, constraints=links)
        assert (estimator.affinity_matrix_.diagonal() < 1e-6).sum() > 100
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            soft = model(affinity="rbf", sigma=width(X, 2.0)).fit(X, constraints=links)
        assert (soft.affinity_matrix_.diagonal() > 1e-6).all()

    def test_f2_a_triangle_of_hard_cannot_links(self):
        X = np.random.default_rng(0).normal(size=(40, 2))
        links = Constraints(40, cannot_link=[(0, 1), (1, 2), (0, 2)])
        # As in the paper: labels need not keep the links, which they cannot.
        estimator = model(affinity="rbf", sigma=1.0, softness=1e-5, keep_hard_links=False)
        with (
            pytest.warns(UserWarning, match="0, 1 and 2 are pairwise linked apart"),
            pytest.warns(UserWarning, match="3 points without variance"),
        ):
            estimator.fit(X, constraints=links)
        assert estimator.affinity_matrix_.diagonal()[:3].max() < 1e-9
        assert [points.tolist() for points in estimator.unbalanced_components_] == [[0, 1, 2]]
        softer = model(affinity="rbf", sigma=1.0, softness=0.5, keep_hard_links=False)
        quietly(softer.fit, X, constraints=links)
        assert softer.affinity_matrix_.diagonal()[:3].min() > 0.05
        # Legal with three clusters, where algorithm B takes the links one by one.
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            three = model(3, affinity="rbf", sigma=1.0).fit(X, constraints=links)
        assert three.unbalanced_components_ == []

    def test_f3_b_with_many_links_starves_and_degree_regularisation_helps(self):
        X, y = load_wine(return_X_y=True)
        X = StandardScaler().fit_transform(X)
        sigma = width(X, 2.0)
        plain = rand_score(y, model(3, affinity="rbf", sigma=sigma).fit(X).labels_)
        scores = {}
        for tau in (0.0, 0.1):
            estimator = model(
                3, affinity="rbf", sigma=sigma, softness=0.1, degree_regularisation=tau, keep_hard_links=False
            )
            links = [Constraints.sample(y, 200, overlap=True, random_state=seed) for seed in range(3)]
            scores[tau] = np.mean([rand_score(y, estimator.fit(X, constraints=c).labels_) for c in links])
        assert plain > 0.95
        assert scores[0.0] < 0.8
        assert scores[0.1] > 0.97

    def test_f4_narrow_width_and_hard_links_damage_a_good_start(self):
        X, y = make_two_moons(200, noise=0.1, random_state=0)
        links = Constraints.sample(y, 20, overlap=True, random_state=0)
        scores = {}
        for extra in (0, 2):
            estimator = model(affinity="rbf", sigma=width(X, 0.5), softness=1e-5, n_extra_eigenvectors=extra)
            assert rand_score(y, quietly(estimator.fit, X).labels_) > 0.98
            scores[extra] = rand_score(y, quietly(estimator.update, links).labels_)
        assert scores[0] < 0.7  # the paper's method
        assert scores[2] > 0.98

    def test_f5_wrong_links_need_softness(self):
        X, y = make_two_moons(200, random_state=0)
        scores = {1e-5: [], 1.0: []}
        for seed in range(3):
            pairs = Constraints.sample(y, 100, overlap=True, flip=0.1, certainty=0.9, random_state=seed)
            links = Constraints(len(y), pairs.must_link, pairs.cannot_link, weight=1.0)
            for softness, found in scores.items():
                estimator = model(affinity="rbf", softness=softness)
                found.append(rand_score(y, quietly(estimator.fit, X, constraints=links).labels_))
        assert np.mean(scores[1e-5]) < 0.8
        assert np.mean(scores[1.0]) > 0.9


class TestUpdate:
    @pytest.mark.parametrize("solver", ["dense", "landmark", "signed_laplacian", "basis"])
    def test_equals_a_fresh_fit(self, solver):
        X, y = make_rings(100, random_state=0)
        options = {"solver": solver, "n_landmarks": 80, "n_basis": 20}
        estimator = model(**options).fit(X)
        for n_links in (10, 40):
            links = Constraints.sample(y, n_links, overlap=True, random_state=n_links)
            fresh = model(**options).fit(X, constraints=links)
            estimator.update(links)
            np.testing.assert_array_equal(estimator.labels_, fresh.labels_)
            np.testing.assert_allclose(estimator.embedding_, fresh.embedding_, atol=1e-12)
            assert estimator.violation_rate_ == fresh.violation_rate_
        np.testing.assert_array_equal(estimator.update(None).labels_, model(**options).fit(X).labels_)

    def test_needs_a_fit_and_links_about_the_same_rows(self):
        X, _ = make_four_blobs(10, random_state=0)
        with pytest.raises(NotFittedError):
            model().update(Constraints(40))
        with pytest.raises(ValueError, match="constraints are about 5 samples, but X has 40 rows"):
            model().fit(X).update(Constraints(5))

    def test_survives_pickling_and_clone_forgets(self):
        X, y = make_four_blobs(20, random_state=0)
        links = Constraints.sample(y, 15, overlap=True, random_state=0)
        estimator = model().fit(X)
        twin = pickle.loads(pickle.dumps(estimator))
        np.testing.assert_array_equal(twin.update(links).labels_, estimator.update(links).labels_)
        np.testing.assert_array_equal(twin.predict(X), estimator.predict(X))
        assert not hasattr(clone(estimator), "labels_")


class TestDiffusionTime:
    def test_rises_with_the_share_of_wrong_links(self):
        X, _ = make_two_moons(60, random_state=0)

        def time(estimator, **strength):
            return estimator.fit(X, constraints=Constraints(len(X), [(0, 1)], [(2, 3)], **strength))

        assert model().fit(X).diffusion_time_ == 20.0
        for certainty, expected in ((None, 5.0), (0.99, 6.0), (0.95, 10.0), (0.85, 20.0), (0.6, 20.0)):
            assert quietly(time, model(), certainty=certainty).diffusion_time_ == expected
        assert quietly(time, model(), certainty=[0.99, 0.89]).diffusion_time_ == 11.0
        assert quietly(time, model(diffusion_time=3), certainty=0.8).diffusion_time_ == 3.0
        assert quietly(time, model(solver="basis")).diffusion_time_ == 20.0

    @pytest.mark.parametrize("solver", ["dense", "landmark"])
    def test_auto_is_that_time_and_updates_follow(self, solver):
        X, y = make_two_moons(60, random_state=0)
        sure = Constraints.sample(y, 10, certainty=0.99, random_state=0)
        doubtful = Constraints.sample(y, 10, certainty=0.8, random_state=0)
        options = {"solver": solver, "n_landmarks": 60}
        found = model(**options).fit(X, constraints=sure)
        for links, time in ((sure, 6.0), (doubtful, 20.0), (None, 20.0), (sure, 6.0)):
            found.update(links)
            fresh = model(diffusion_time=time, **options).fit(X, constraints=links)
            np.testing.assert_array_equal(found.embedding_, fresh.embedding_)
            np.testing.assert_array_equal(found.labels_, fresh.labels_)

    def test_other_words_are_refused(self):
        with pytest.raises(ValueError, match="diffusion_time must be"):
            model(diffusion_time="long").fit(np.arange(20.0)[:, np.newaxis])


class TestSolvers:
    @pytest.mark.parametrize("algorithm", ["A", "B"])
    @pytest.mark.parametrize("affinity", ["heat", "rbf", "precomputed"])
    def test_all_points_as_landmarks_is_the_dense_solver(self, algorithm, affinity):
        X, y = make_two_moons(60, random_state=0)
        if affinity == "precomputed":
            X = gaussian_kernel(X, X, width(X))
        links = Constraints.sample(y, 20, overlap=True, random_state=0)
        dense = model(affinity=affinity, algorithm=algorithm).fit(X, constraints=links)
        landmark = model(affinity=affinity, algorithm=algorithm, solver="landmark").fit(X, constraints=links)
        np.testing.assert_allclose(landmark.embedding_, dense.embedding_, atol=1e-9)
        np.testing.assert_array_equal(landmark.labels_, dense.labels_)
        assert hasattr(dense, "affinity_matrix_")
        assert not hasattr(landmark, "affinity_matrix_")

    @pytest.mark.parametrize("options", [{}, {"algorithm": "B"}, {"affinity": "rbf"}], ids=str)
    def test_landmarks_cluster_all_points(self, options):
        X, y = make_rings(600, random_state=1)
        links = Constraints.sample(y, 80, overlap=True, random_state=0)
        # A softness with which the links choose no more eigenvectors than clusters.
        estimator = model(solver="landmark", n_landmarks=400, softness=0.1, **options)
        estimator.fit(X, constraints=links)
        assert rand_score(y, estimator.labels_) > 0.9
        assert estimator.embedding_.shape == (1200, 2)

    @pytest.mark.parametrize("solver", ["dense", "landmark", "signed_laplacian", "basis"])
    def test_self_tuning_on_every_solver(self, solver):
        X, y = make_rings(200, random_state=1)
        links = Constraints.sample(y, 60, overlap=True, certainty=0.95, random_state=0)
        heat, tuned = (
            model(solver=solver, affinity=affinity, n_landmarks=300).fit(X, constraints=links)
            for affinity in ("heat", "self_tuning")
        )
        assert rand_score(y, tuned.labels_) > 0.8
        assert np.abs(tuned.eigenvalues_[1] - heat.eigenvalues_[1]) > 1e-4
        assert adjusted_rand_score(tuned.predict(X), tuned.labels_) > 0.98

    @pytest.mark.parametrize("solver", ["signed_laplacian", "basis"])
    def test_graph_solvers(self, solver):
        X, y = make_rings(600, random_state=1)
        links = Constraints.sample(y, 80, overlap=True, random_state=0)
        estimator = model(solver=solver).fit(X, constraints=links)
        assert rand_score(y, estimator.labels_) > 0.9
        free = np.setdiff1d(np.arange(len(y)), links.pairs)  # labels of linked rows obey links as well
        np.testing.assert_array_equal(estimator.predict(X)[free], estimator.labels_[free])

    def test_the_factor_of_the_basis_is_the_propagated_kernel(self):
        rng = np.random.default_rng(0)
        F = rng.normal(size=(20, 5))
        pairs, signs = random_links(rng, 20, 15)
        links = signed_links(pairs, signs, 0.3, 1.0)
        B = posterior_factor(F, links)
        np.testing.assert_allclose(B @ B.T, by_svd(F @ F.T, pairs, signs, links.variances), atol=1e-10)

    def test_auto_avoids_large_matrices(self):
        X, y = make_two_moons(2000, random_state=0)
        links = Constraints.sample(y, 50, overlap=True, random_state=0)
        estimator = model().fit(X, constraints=links)
        assert estimator.solver_ == "landmark"
        assert rand_score(y, estimator.labels_) > 0.85
        assert model().fit(X[:400]).solver_ == "dense"

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"solver": "basis", "affinity": "rbf"}, "needs affinity='heat'"),
            ({"solver": "basis", "n_clusters": 3}, "does algorithm A only"),
            ({"solver": "signed_laplacian", "algorithm": "B"}, "does algorithm A only"),
            ({"solver": "signed_laplacian", "degree_regularisation": 0.1}, "degree_regularisation needs"),
            ({"solver": "basis", "n_clusters": 5, "algorithm": "A", "n_basis": 3}, "n_basis=3"),
        ],
    )
    def test_impossible_combinations_say_what_to_use(self, options, message):
        X, _ = make_four_blobs(random_state=0)
        with pytest.raises(ValueError, match=message):
            model(**options).fit(X)


class TestPredict:
    @pytest.mark.parametrize("affinity", ["heat", "rbf"])
    @pytest.mark.parametrize("algorithm", ["A", "B"])
    def test_new_points_join_their_cluster(self, affinity, algorithm):
        X, y = make_rings(200, noise=0.05, random_state=0)
        new, truth = make_rings(100, noise=0.05, random_state=1)
        links = Constraints.sample(y, 60, overlap=True, random_state=0)
        estimator = model(affinity=affinity, algorithm=algorithm, sigma=width(X, 1.5))
        estimator.fit(X, constraints=links)
        assert rand_score(y, estimator.labels_) > 0.95
        match = [np.bincount(y[estimator.labels_ == k]).argmax() for k in range(2)]
        assert (np.array(match)[estimator.predict(new)] == truth).mean() > 0.95
        np.testing.assert_array_equal(estimator.predict(X), estimator.labels_)

    def test_precomputed_kernel_to_the_training_rows(self):
        X, y = make_two_moons(100, random_state=0)
        new, _ = make_two_moons(30, random_state=1)
        links = Constraints.sample(y, 40, overlap=True, random_state=0)
        sigma = width(X)
        by_rows = model(affinity="rbf", sigma=sigma).fit(X, constraints=links)
        by_kernel = model(affinity="precomputed").fit(gaussian_kernel(X, X, sigma), constraints=links)
        expected = by_rows.predict(new)
        found = by_kernel.predict(gaussian_kernel(new, X, sigma))
        assert adjusted_rand_score(expected, found) == 1.0

    @pytest.mark.parametrize("assign_labels", ["discretize", "cluster_qr"])
    def test_every_assignment_predicts(self, assign_labels):
        X, _ = make_blobs(120, centers=3, random_state=0)
        # These labels are not those of nearest means; on a graph without weights they nearly are.
        estimator = model(3, affinity="heat", assign_labels=assign_labels).fit(X)
        assert adjusted_rand_score(estimator.predict(X), estimator.labels_) > 0.95


class TestBadInput:
    def test_nan(self):
        with pytest.raises(ValueError, match="NaN"):
            model().fit([[0.0], [np.nan], [1.0]])

    def test_one_point(self):
        with pytest.raises(ValueError, match="minimum of 2"):
            model(1).fit([[0.0, 1.0]])

    def test_more_clusters_than_points(self):
        with pytest.raises(ValueError, match="n_clusters=8 clusters cannot be made of n_samples=5"):
            model(8).fit(np.arange(5.0)[:, np.newaxis])

    def test_as_many_clusters_as_points(self):
        X = np.arange(4.0)[:, np.newaxis] * 10
        labels = model(4, affinity="rbf", sigma=1.0).fit(X).labels_
        assert len(np.unique(labels)) == 4

    @pytest.mark.parametrize(
        ("K", "message"),
        [
            (np.array([[1.0, 0.1, 0.0], [0.2, 1.0, 0.0], [0.0, 0.0, 1.0]]), "not symmetric"),
            (np.array([[0.0, 1.0], [1.0, 0.0]]), "diagonal"),
            (np.array([[1.0, 2.0], [2.0, 1.0]]), "not positive semi-definite"),
            (np.ones((3, 2)), "square"),
        ],
    )
    def test_matrices_that_are_no_kernel(self, K, message):
        with pytest.raises(ValueError, match=message):
            model(affinity="precomputed").fit(K)

    def test_contradictory_links_never_reach_the_estimator(self):
        with pytest.raises(InfeasibleConstraints):
            Constraints(3, must_link=[(0, 1), (1, 2)], cannot_link=[(0, 2)])
        # Soft ones may contradict each other: evidence that the model weighs.
        X = np.random.default_rng(0).normal(size=(20, 2))
        links = Constraints(20, must_link=[(0, 1), (1, 2)], cannot_link=[(0, 2)], weight=1.0)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            estimator = model().fit(X, constraints=links)
        assert len(estimator.unbalanced_components_) == 1
        assert estimator.violation_rate_ > 0.0

    def test_raw_pairs_are_refused(self):
        with pytest.raises(TypeError, match="build one with"):
            model().fit(np.zeros((4, 1)), constraints=[(0, 1)])

    def test_duplicates(self):
        X, y = make_four_blobs(20, random_state=0)
        twice = np.concatenate([X, X])
        links = Constraints.sample(np.concatenate([y, y]), 40, overlap=True, random_state=0)
        for affinity in ("heat", "rbf"):
            estimator = model(affinity=affinity).fit(twice, constraints=links)
            assert np.isfinite(estimator.embedding_).all()

    def test_constant_data(self):
        for affinity in ("heat", "rbf"):
            estimator = quietly(model(affinity=affinity).fit, np.ones((30, 2)))
            assert np.isfinite(estimator.embedding_).all()
            assert np.isfinite(estimator.eigenvalues_).all()

    def test_disconnected_graph_within_the_number_of_clusters_is_fine(self):
        X, y = make_blobs(400, centers=[[0, 0], [100, 0], [0, 100]], random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            estimator = model(3).fit(X)
        assert adjusted_rand_score(y, estimator.labels_) == 1.0
        np.testing.assert_allclose(estimator.eigenvalues_, 1.0, atol=1e-6)

    def test_too_many_parts_are_warned_about_until_links_join_them(self):
        X, y = make_blobs(400, centers=[[0, 0], [100, 0], [0, 100]], random_state=0)
        with pytest.warns(UserWarning, match="falls into 3 parts"):
            model(2).fit(X)
        first, second = np.flatnonzero(y == 0)[0], np.flatnonzero(y == 1)[0]
        links = Constraints(400, must_link=[(first, second)])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            estimator = model(2).fit(X, constraints=links)
        assert adjusted_rand_score(np.where(y == 2, 1, 0), estimator.labels_) == 1.0

    def test_sparse_rows(self):
        X, y = make_two_moons(60, random_state=0)
        links = Constraints.sample(y, 20, overlap=True, random_state=0)
        for affinity in ("heat", "rbf"):
            dense = model(affinity=affinity).fit(X, constraints=links)
            found = model(affinity=affinity).fit(sparse.csr_matrix(X), constraints=links)
            assert adjusted_rand_score(found.labels_, dense.labels_) == 1.0
            assert adjusted_rand_score(found.predict(sparse.csr_matrix(X)), dense.predict(X)) == 1.0

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"n_clusters": 0}, "n_clusters must be a whole number >= 1"),
            ({"n_clusters": 2.0}, "n_clusters must be a whole number"),
            ({"affinity": "cosine"}, "affinity must be one of heat, self_tuning, rbf, precomputed"),
            ({"algorithm": "C"}, "algorithm must be one of"),
            ({"softness": -0.1}, "softness must be a finite number >= 0"),
            ({"softness": np.nan}, "softness must be a finite number"),
            ({"negative_affinities": "drop"}, "negative_affinities must be one of"),
            ({"solver": "magic"}, "solver must be one of"),
            ({"sigma": 0.0}, "sigma must be"),
            ({"sigma": "wide"}, "sigma must be"),
            ({"diffusion_time": 0}, "diffusion_time must be a finite number > 0"),
            ({"assign_labels": "guess"}, "assign_labels must be one of"),
            ({"eigen_tol": 0.0}, "eigen_tol must be a finite number > 0"),
            ({"base_rates": 1.0}, r"base_rates must be .* in \(0, 1\), got 1.0"),
            ({"base_rates": "mine"}, "base_rates must be"),
            ({"n_landmarks": 1}, "n_landmarks must be a whole number >= 2"),
        ],
    )
    def test_parameters(self, options, message):
        with pytest.raises(ValueError, match=message):
            model(**options).fit(np.arange(20.0)[:, np.newaxis])


class TestWarnings:
    def test_softness_below_the_hardest(self):
        with pytest.warns(UserWarning, match="softness=0 is treated as 1e-05"):
            model(softness=0).fit(np.arange(20.0)[:, np.newaxis])

    def test_algorithm_a_with_three_clusters(self):
        X, _ = make_blobs(60, centers=3, random_state=0)
        links = Constraints(60, cannot_link=[(0, 1), (2, 3)])
        with pytest.warns(UserWarning, match="use algorithm='B'"):
            model(3, algorithm="A").fit(X, constraints=links)

    def test_links_that_the_kernel_does_not_spread(self):
        X = np.arange(20.0)[:, np.newaxis]
        links = Constraints(20, must_link=[(0, 5)], cannot_link=[(3, 9)])
        for algorithm in "AB":
            with pytest.warns(UserWarning, match="2 of 2 links, e.g. .0, 5., have no effect on other points"):
                estimator = model(affinity="rbf", sigma=0.1, algorithm=algorithm).fit(X, constraints=links)
            assert estimator.ineffective_links_.all()

    def test_a_must_link_between_duplicates_is_recorded_without_a_warning(self):
        X = np.repeat(np.arange(15.0), 2)[:, np.newaxis]
        links = Constraints(30, must_link=[(0, 1), (4, 20)])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            estimator = model(affinity="rbf", sigma=1.5).fit(X, constraints=links)
        np.testing.assert_array_equal(estimator.ineffective_links_, [True, False])

    def test_labels_are_the_same_for_the_same_seed(self):
        X, y = make_spirals(100, random_state=0)
        links = Constraints.sample(y, 20, overlap=True, random_state=0)
        for solver in ("dense", "landmark", "basis"):
            first, second = (model(solver=solver, n_landmarks=80).fit(X, constraints=links) for _ in range(2))
            np.testing.assert_array_equal(first.labels_, second.labels_)


@pytest.mark.parametrize("estimator", [ConstrainedSpectralClustering, SpectralLearning])
def test_score_is_that_of_k_means_on_the_embedding(estimator):
    X, y = make_blobs(60, centers=[[0, 0], [8, 0], [0, 8]], cluster_std=0.8, random_state=0)
    links = Constraints.sample(y, 20, random_state=0)
    model = estimator(3, random_state=0).fit(X, constraints=links)
    new = X + 0.01
    rows = model.transform(new)
    nearest = np.array([min(((row - mean) ** 2).sum() for mean in model.embedding_centers_) for row in rows])
    assert model.score(new) == pytest.approx(-nearest.sum())
    weights = np.arange(60.0)
    assert model.score(new, sample_weight=weights, constraints=links) == pytest.approx(-(weights @ nearest))
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(StandardScaler(), estimator(random_state=0))
        name = pipeline.steps[-1][0]
        search = GridSearchCV(pipeline, {f"{name}__n_clusters": [2, 3]}, cv=3, error_score="raise")
        assert np.isfinite(search.fit(X, constraints=links).cv_results_["mean_test_score"]).all()
