"""HMRFKMeans, PCKMeans and MPCKMeans with Dask give the results of memory for any chunks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import linkwise
from linkwise import Constraints
from linkwise.dask import HMRFKMeans, source
from linkwise.metrics import rand_score
from tests.dask.dask_cases import assert_same_fit, blobs, chunkings, lazy, links_of, quietly

X, Y = blobs()


def links(kind):
    """As for mixtures; soft links have weights of the size of squared distances."""
    found = links_of(Y, kind)
    if kind in ("soft", "noisy"):
        found = Constraints(len(Y), found.must_link, found.cannot_link, weight=2.0)
    return found


def compare(name, data, chunks, constraints, k=3, tolerance=1e-8, **parameters):
    parameters = {"random_state": 0, "n_init": 2, "max_iter": 20, **parameters}
    theirs = quietly(lambda: getattr(linkwise, name)(k, **parameters).fit(data, constraints=constraints))
    model = getattr(linkwise.dask, name)(k, **parameters)
    mine = quietly(lambda: model.fit(lazy(data, chunks), constraints=constraints))
    assert_same_fit(mine, theirs, tolerance)
    return mine


class TestAsInMemory:
    @settings(max_examples=10)
    @given(
        chunks=chunkings(*X.shape),
        kind=st.sampled_from(["none", "hard", "soft", "noisy", "labels"]),
        name=st.sampled_from(["HMRFKMeans", "PCKMeans", "MPCKMeans"]),
    )
    def test_any_chunking(self, chunks, kind, name):
        compare(name, X, chunks, links(kind))

    @pytest.mark.parametrize("metric", ["full", "per_cluster", None])
    @pytest.mark.parametrize("kind", ["none", "soft"])
    def test_metrics(self, metric, kind):
        compare("HMRFKMeans", X, ((50, 0, 70), (1, 2)), links(kind), metric=metric)

    @pytest.mark.parametrize("kind", ["none", "hard", "soft"])
    def test_empty_clusters_are_filled_as_in_memory(self, kind):
        """Two starts lie far from all rows, so that their clusters are empty at first."""
        start = np.vstack([X[:3], X.max(axis=0) + 1e3, X.max(axis=0) + 2e3])
        model = compare("PCKMeans", X, ((50, 0, 70), (3,)), links(kind), k=5, init=start, max_iter=1)
        assert model.n_reseeds_ == 2
        compare("PCKMeans", X, ((50, 0, 70), (3,)), links(kind), k=5, init=start)

    def test_far_from_the_origin(self):
        compare("MPCKMeans", X + 1e6, ((50, 70), (3,)), links("soft"))

    def test_float32(self):
        compare("MPCKMeans", X.astype(np.float32), ((50, 70), (3,)), links("soft"))

    def test_other_parameters(self):
        compare(
            "HMRFKMeans", X, ((50, 70), (3,)), links("noisy"), inference="icm", init="k-means++",
            compute_gap=True, weight=(1.0, 0.5),
        )  # fmt: skip


class TestSample:
    def test_starts_are_made_from_a_sample(self, monkeypatch):
        monkeypatch.setattr(source, "SAMPLE_ROWS", 40)
        model = HMRFKMeans(3, random_state=0).fit(lazy(X, ((50, 70), (3,))), constraints=links("hard"))
        assert rand_score(Y, model.labels_.compute()) > 0.9
        assert not model.violations_.any()

    def test_from_given_centres_the_sample_does_not_matter(self, monkeypatch):
        monkeypatch.setattr(source, "SAMPLE_ROWS", 40)
        compare("MPCKMeans", X, ((50, 70), (3,)), links("labels"), init=X[:3])


class TestPrediction:
    def test_is_lazy_and_that_of_memory(self):
        mine = compare("MPCKMeans", X, ((50, 70), (3,)), links("soft"))
        theirs = mine.to_local()
        new, _ = blobs(50, seed=7)
        for method in ("predict", "transform"):
            found = getattr(mine, method)(lazy(new, ((20, 0, 30), (1, 2))))
            np.testing.assert_allclose(found.compute(), getattr(theirs, method)(new))
        assert mine.score(lazy(new, ((20, 30), (3,)))) == pytest.approx(theirs.score(new))


class TestRefusals:
    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            ({"distortion": "cosine", "metric": None}, "distortion='cosine' is not there for Dask; use"),
            ({"penalty_bound": "diameter"}, "penalty_bound='diameter' compares all pairs of rows; use 'box'"),
            ({"n_clusters": 200}, "n_samples=120 should be >= n_clusters=200"),
        ],
    )
    def test_what_is_not_there(self, parameters, message):
        with pytest.raises(ValueError, match=message):
            HMRFKMeans(**{"n_clusters": 3, **parameters}).fit(lazy(X, ((50, 70), (3,))))

    def test_numbers_whose_squares_overflow_or_vanish(self):
        for factor, word in ((1e160, "overflow"), (1e-170, "vanish")):
            with pytest.raises(ValueError, match=word):
                HMRFKMeans(3).fit(lazy(factor * X, ((50, 70), (3,))))
