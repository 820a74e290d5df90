"""PPC and ConstrainedEM with Dask give the results of memory, however the rows are cut into chunks."""

from __future__ import annotations

import pickle
import warnings

import dask
import dask.array as da
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import linkwise
from linkwise import Constraints
from linkwise.dask import PPC, ConstrainedEM, passes, source
from linkwise.exceptions import SharedClusterWarning
from linkwise.metrics import rand_score
from linkwise.persistence import load_model, save_model
from tests.dask.dask_cases import assert_same_fit, blobs, chunkings, lazy, links_of, quietly

X, Y = blobs()
COVARIANCES = ("full", "tied", "diag", "spherical")
MIXING = ("exact", "disjoint", "ignore", "fixed")


def compare(name, data, chunks, links, tolerance=1e-8, k=3, **parameters):
    """Fit both; return the estimator for Dask."""
    parameters = {"random_state": 0, "max_iter": 6, "n_init": 1, **parameters}
    theirs = quietly(lambda: getattr(linkwise, name)(k, **parameters).fit(data, constraints=links))
    model = getattr(linkwise.dask, name)(k, **parameters)
    mine = quietly(lambda: model.fit(lazy(data, chunks), constraints=links))
    assert_same_fit(mine, theirs, tolerance)
    return mine


class TestAsInMemory:
    @settings(max_examples=12)
    @given(
        chunks=chunkings(*X.shape),
        kind=st.sampled_from(["none", "hard", "soft", "noisy", "labels"]),
        covariance_type=st.sampled_from(COVARIANCES),
        mixing=st.sampled_from(MIXING),
        shrinkage=st.sampled_from(["auto", 0.0]),
        n_init=st.integers(1, 2),
    )
    def test_any_chunking(self, chunks, kind, covariance_type, mixing, shrinkage, n_init):
        compare(
            "PPC", X, chunks, links_of(Y, kind), covariance_type=covariance_type, mixing=mixing,
            shrinkage=shrinkage, n_init=n_init, max_iter=3,
        )  # fmt: skip

    @settings(max_examples=8)
    @given(chunks=chunkings(*X.shape), learn_noise=st.sampled_from([True, "kind"]))
    def test_learned_noise(self, chunks, learn_noise):
        compare("PPC", X, chunks, links_of(Y, "noisy"), learn_noise=learn_noise, max_iter=3)

    @settings(max_examples=8)
    @given(chunks=chunkings(*X.shape), kind=st.sampled_from(["none", "hard", "labels"]))
    def test_constrained_em(self, chunks, kind):
        compare("ConstrainedEM", X, chunks, links_of(Y, kind), max_iter=3)

    @pytest.mark.parametrize(
        "parameters",
        [
            {"components_per_cluster": 2},
            {"decode": "map"},
            {"inference": "mean_field"},
            {"inference": "gibbs", "inference_options": {"max_sweeps": 50}, "max_iter": 3},
            {"init_params": "random"},
            {"n_init": 4, "n_jobs": 2, "max_iter": 3},
        ],
    )
    def test_other_parameters(self, parameters):
        compare("PPC", X, ((70, 50), (3,)), links_of(Y, "soft"), **parameters)

    def test_grid_of_weights(self):
        compare("PPC", X, ((70, 50), (3,)), links_of(Y, "hard"), k=2, mixing="grid", max_iter=2)

    def test_float32_stays(self):
        single = X.astype(np.float32)
        model = compare("PPC", single, ((1, 64, 55), (3,)), links_of(Y, "soft"), tolerance=1e-4)
        assert model.predict_proba(lazy(single, ((60, 60), (3,)))).dtype == np.float32

    def test_float32_out_of_its_reach_is_computed_in_float64(self):
        compare("PPC", (1e17 * X).astype(np.float32), ((60, 60), (3,)), None, tolerance=1e-6)

    def test_many_iterations_to_the_end(self):
        model = compare("PPC", X, ((7, 50, 63), (1, 2)), links_of(Y, "soft"), max_iter=200, tol=1e-6)
        assert model.converged_

    def test_warm_start_and_given_parameters(self):
        chunks = ((50, 70), (3,))
        given = {"means_init": X[:3], "weights_init": np.full(3, 1 / 3), "precisions_init": np.ones((3, 3))}
        compare("PPC", X, chunks, links_of(Y, "hard"), covariance_type="diag", **given)
        mine, theirs = (
            module.PPC(3, random_state=0, warm_start=True, max_iter=3, n_init=1)
            for module in (linkwise.dask, linkwise)
        )
        for model, data in ((mine, lazy(X, chunks)), (theirs, X)):
            quietly(lambda model=model, data=data: model.fit(data).fit(data, constraints=links_of(Y, "soft")))
        assert_same_fit(mine, theirs)

    def test_warnings_are_those_of_memory(self):
        """Lost clusters and shared clusters are found without all labels in memory."""
        names = Constraints.from_labels(np.where(np.arange(120) < 6, np.arange(120) % 5, -1), certainty=0.6)
        chain = Constraints.from_sequence(120, certainty=0.99)
        for links, parameters, wanted in (
            (names, {}, SharedClusterWarning),
            (chain, {"mixing": "ignore", "max_iter": 50}, UserWarning),
        ):
            told = []
            for module, data in ((linkwise, X), (linkwise.dask, lazy(X, ((50, 70), (3,))))):
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    module.PPC(3, random_state=0, **parameters).fit(data, constraints=links)
                told.append([(one.category, str(one.message)) for one in caught])
            assert told[0] == told[1]
            assert wanted in [category for category, _ in told[0]]


class TestSample:
    @pytest.fixture(autouse=True)
    def few(self, monkeypatch):
        monkeypatch.setattr(source, "SAMPLE_ROWS", 40)

    def test_starts_are_made_from_a_sample_with_all_linked_rows(self):
        links = links_of(Y, "hard")
        rows = source.sample_rows(120, np.unique(links.pairs), 0)
        assert np.isin(links.pairs, rows).all()
        assert len(np.unique(rows)) == len(rows) < 120
        model = PPC(3, random_state=0).fit(lazy(X, ((50, 70), (3,))), constraints=links)
        assert rand_score(Y, model.labels_.compute()) > 0.95
        assert not model.violations_.any()

    def test_from_a_given_start_the_sample_does_not_matter(self):
        given = {"means_init": X[:3], "weights_init": np.full(3, 1 / 3), "precisions_init": np.ones((3, 3))}
        compare(
            "PPC", X, ((50, 70), (3,)), links_of(Y, "labels"), covariance_type="diag", max_iter=40, **given
        )

    def test_draws_from_very_many_rows_need_no_memory_for_all(self):
        rows = source.sample_rows(10**12, np.array([3, 10**11]), 0)
        assert len(rows) == 40
        assert {3, 10**11} <= set(rows.tolist())


class TestPrediction:
    @pytest.fixture(scope="class")
    @classmethod
    def models(cls):
        with dask.config.set(scheduler="synchronous"):
            mine = PPC(3, random_state=0).fit(lazy(X, ((50, 70), (3,))), constraints=links_of(Y, "soft"))
        return mine, linkwise.PPC(3, random_state=0).fit(X, constraints=links_of(Y, "soft"))

    @pytest.mark.parametrize("method", ["predict", "predict_proba", "score_samples", "transform"])
    def test_is_lazy_and_that_of_memory(self, models, method):
        mine, theirs = models
        new, _ = blobs(50, seed=7)
        found = getattr(mine, method)(lazy(new, ((20, 0, 30), (1, 2))))
        assert isinstance(found, da.Array)
        np.testing.assert_allclose(found.compute(), getattr(theirs, method)(new), rtol=1e-8)
        assert found.shape == getattr(theirs, method)(new).shape
        np.testing.assert_allclose(getattr(mine, method)(new), getattr(theirs, method)(new), rtol=1e-8)

    @pytest.mark.parametrize("method", ["score", "aic", "bic", "icl"])
    def test_scores(self, models, method):
        mine, theirs = models
        assert getattr(mine, method)(lazy(X, ((20, 100), (3,)))) == pytest.approx(getattr(theirs, method)(X))
        weights = np.arange(120.0)
        lazy_weights = da.from_array(weights, chunks=(20, 100))
        assert mine.score(lazy(X, ((20, 100), (3,))), sample_weight=lazy_weights) == pytest.approx(
            theirs.score(X, sample_weight=weights)
        )

    def test_other_columns_are_refused(self, models):
        with pytest.raises(ValueError, match="2 features"):
            models[0].predict(lazy(X[:, :2], ((60, 60), (2,))))

    def test_doubtful_answers(self, models):
        mine, theirs = models
        links = links_of(Y, "soft")
        found = mine.doubtful_answers(lazy(X, ((20, 100), (3,))), links, n_answers=5)
        for one, other in zip(found, theirs.doubtful_answers(X, links, n_answers=5), strict=True):
            assert one[:4] == other[:4]

    def test_is_saved_as_the_estimator_in_memory(self, models, tmp_path):
        with pytest.raises(TypeError, match=r"save model\.to_local\(\)"):
            save_model(models[0], tmp_path / "model")
        twin = load_model(save_model(models[0].to_local(), tmp_path / "model"))
        np.testing.assert_array_equal(twin.predict(X), models[1].predict(X))

    def test_to_local_clone_and_pickle(self, models):
        mine, theirs = models
        local = mine.to_local()
        assert type(local) is linkwise.PPC
        np.testing.assert_array_equal(local.labels_, theirs.labels_)
        np.testing.assert_array_equal(local.predict(X), theirs.predict(X))
        assert not hasattr(mine.to_local(labels=False), "labels_")
        twin = pickle.loads(pickle.dumps(mine))
        np.testing.assert_array_equal(twin.labels_.compute(), theirs.labels_)
        connection = object()
        copied = clone(mine.set_params(client=connection))
        assert copied.client is connection
        assert not hasattr(copied, "means_")
        mine.set_params(client=None)
        assert {*mine.get_params()} == {*theirs.get_params(), "client", "checkpoint"}
        assert copied.n_components == 3


class TestGraphs:
    def test_one_graph_an_iteration_and_none_grows(self, monkeypatch):
        sizes = []
        compute = passes.Runner.compute

        def spy(self, name, layer, key):
            sizes.append((name.split("-")[1], len(layer)))
            return compute(self, name, layer, key)

        monkeypatch.setattr(passes.Runner, "compute", spy)
        model = PPC(
            3, random_state=0, n_init=1, tol=0.0, max_iter=12, init_params="kmeans", linked_weight=1.0
        )
        data = lazy(X, (tuple([5] * 24), (3,)))
        before = len(data.dask)
        quietly(lambda: model.fit(data, constraints=links_of(Y, "soft")))
        assert len(data.dask) == before
        kinds = [kind for kind, _ in sizes]
        assert kinds == ["look", "columnmoments", *["emsums"] * 12, "clustersizes"]
        # 24 tasks, a tree of 3 + 1, and the job.
        assert {size for _, size in sizes} == {29}

    def test_small_chunks_are_read_by_one_task(self, monkeypatch):
        monkeypatch.setattr(passes, "_FEWEST_NUMBERS", 60)
        table = linkwise.dask.collections.Table(lazy(X, ((1, 0, 18, 50, 30, 21), (3,))), None)
        groups = passes.groups_of(table)
        assert [group.chunks for group in groups] == [(0, 2, 3), (4,), (5,)]
        assert [(group.start, group.stop) for group in groups] == [(0, 69), (69, 99), (99, 120)]
        compare("PPC", X, ((1, 0, 18, 50, 30, 21), (3,)), links_of(Y, "soft"))

    def test_data_are_read_again_and_not_kept(self):
        reads = []

        def block(start):
            reads.append(start)
            return X[start : start + 40]

        parts = [
            da.from_delayed(dask.delayed(block, pure=True)(start), shape=(40, 3), dtype=X.dtype)
            for start in (0, 40, 80)
        ]
        model = ConstrainedEM(3, random_state=0, n_init=1, max_iter=4, tol=0.0)
        quietly(lambda: model.fit(da.concatenate(parts)))
        # Look, moments, four iterations, sizes of clusters.
        assert sorted(reads) == [0] * 7 + [40] * 7 + [80] * 7
