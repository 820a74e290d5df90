"""Sessions about the same rows share what they see of them before the first answer.

Most of 900 tests with sessions begin with rows that another one has had: clustering them was 16 of 68 s.
"""

from __future__ import annotations

from copy import copy
from functools import cached_property

import pytest

from linkwise.active import landscape
from linkwise.auto import candidates, estimator

_known: dict[tuple, list] = {}
_fitted: dict[tuple, object] = {}
_nats: dict[tuple, float] = {}
_first = landscape.Landscape.start.func
_graph_and_clusterings = landscape._graph_and_clusterings


def _shared(key, find):
    """Copies of the arrays that were found for a key; all that they depend on has to be in it."""
    if key not in _known:
        _known[key] = find()
    return [one.copy() for one in _known[key]]


def _start(self):
    links = self.links
    told = () if links is None else (links.pairs.tobytes(), links.weights.tobytes())
    choice = (*candidates.CANDIDATES, *candidates._QUICK)
    key = (self.features.shape, self.features.tobytes(), self.n_clusters, self.seed, told, choice)
    return _shared(key, lambda: [_first(self)])[0]


def _kernels(distances, features, rng):
    state = str(rng.bit_generator.state)
    key = (features.shape, features.tobytes(), distances.tobytes(), state)
    return _shared(key, lambda: _graph_and_clusterings(distances, features, rng))


def fit_once(monkeypatch):
    """A candidate of LinkedClustering is fitted once to the same rows and links, with the same seed.

    Likewise it is found once whether clusters of the same rows look Gaussian.
    """
    fit, gaussian_nats = candidates.Candidate.fit, estimator.gaussian_nats

    def once(self, X, links, n_clusters, seed, work=None):
        told = None if links is None else (links.pairs.tobytes(), links.weights.tobytes())
        key = (self.name, X.shape, X.dtype.str, X.tobytes(), told, n_clusters, seed)
        if key not in _fitted:
            _fitted[key] = fit(self, X, links, n_clusters, seed, work)
        return copy(_fitted[key])

    def nats_once(X, n_clusters, seed):
        key = (X.shape, X.dtype.str, X.tobytes(), n_clusters, seed)
        if key not in _nats:
            _nats[key] = gaussian_nats(X, n_clusters, seed)
        return _nats[key]

    monkeypatch.setattr(candidates.Candidate, "fit", once)
    monkeypatch.setattr(estimator, "gaussian_nats", nats_once)


@pytest.fixture
def looked_at_anew():
    """For a test of what the fixture below would hide: that two sessions see the same in the same rows."""


@pytest.fixture
def all_candidates():
    """For a test that needs what the fixture below takes away, the candidates that a user has."""


@pytest.fixture(autouse=True)
def few_for_sessions(request):
    """Clusterings of the rows were half of the time of 600 tests, which are about answers and questions."""
    if "all_candidates" not in request.fixturenames:
        request.getfixturevalue("few_candidates")


@pytest.fixture(autouse=True)
def shared_first_clusterings(request, monkeypatch):
    """Rows are clustered once in each process, for all sessions about them with the same answers."""
    if "looked_at_anew" not in request.fixturenames:
        start = cached_property(_start)
        start.__set_name__(landscape.Landscape, "start")
        monkeypatch.setattr(landscape.Landscape, "start", start)
        monkeypatch.setattr(landscape, "_graph_and_clusterings", _kernels)
        fit_once(monkeypatch)
