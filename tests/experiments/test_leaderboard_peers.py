"""Peers answer from a process of their own: labels, errors, a missing package, a fit that never ends."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec

import numpy as np
import pytest

from experiments.leaderboard import peer_fits
from experiments.leaderboard import peers as leaderboard_peers
from experiments.leaderboard.leaderboard import leaderboard_trial
from experiments.leaderboard.methods import METHODS, WITHOUT_LINKS
from experiments.leaderboard.peers import PEERS, Peer, PeerError, PeerMissing, PeerTimeLimit
from linkwise import Constraints

PCK = "PCKMeans (active-semi-supervised-clustering)"
MPCK = "MPCKMeans (active-semi-supervised-clustering)"
COP = "COPKMeans (active-semi-supervised-clustering)"

# Stands for active-semi-supervised-clustering. The labels of its PCKMeans tell all that it was given.
FAKE = """
import os, sys, time
import numpy as np

print("a peer may print")

class PCKMeans:
    def __init__(self, n_clusters):
        self.n_clusters = n_clusters

    def fit(self, X, ml, cl):
        assert all(type(pair) is tuple for pair in ml + cl)
        seed = np.random.get_state()[1][0]
        self.labels_ = [self.n_clusters, *X.shape, *sum(ml, ()), -1, *sum(cl, ()), -1, seed, os.getpid()]
        print("even here")
        return self

class MPCKMeans(PCKMeans):
    def fit(self, X, ml, cl):
        if len(ml) == 0:
            os._exit(3)
        if len(cl) == 0:
            time.sleep(60)
        raise ZeroDivisionError("two\\n  lines")

class COPKMeans(PCKMeans):
    def fit(self, X, ml, cl):
        self.labels_ = np.arange(len(X)) % self.n_clusters
        return self
"""


@pytest.fixture
def fake(tmp_path, monkeypatch):
    """A package that is found in a process started from here, and processes that end with the test."""
    place = tmp_path / "active_semi_clustering" / "semi_supervised"
    place.mkdir(parents=True)
    (tmp_path / "active_semi_clustering" / "__init__.py").touch()
    (place / "__init__.py").touch()
    (place / "pairwise_constraints.py").write_text(FAKE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    yield from own_processes(monkeypatch)


@pytest.fixture
def no_packages(tmp_path, monkeypatch):
    """A Python that has numpy and no peer, whatever this environment has."""
    python = tmp_path / "python"
    block = "import sys; sys.modules['active_semi_clustering'] = None; sys.argv = sys.argv[1:]; "
    block += "exec(compile(open(sys.argv[0]).read(), sys.argv[0], 'exec'))"
    python.write_text(f'#!/bin/sh\nshift\nexec {sys.executable} -c "{block}" "$@"\n')
    python.chmod(0o755)
    monkeypatch.setenv("LINKWISE_PEER_PYTHON", str(python))
    yield from own_processes(monkeypatch)


def own_processes(monkeypatch):
    workers = {}
    monkeypatch.setattr(leaderboard_peers, "_WORKERS", workers)
    yield workers
    for worker in workers.values():
        worker._stop()


X = np.array([[0.1], [1 / 3], [2.0], [2.5]])
LINKS = Constraints(4, [(0, 1), (1, 2)], [(0, 3)], certainty=0.9)


def test_peer_gets_data_links_clusters_and_seed_as_they_are(fake):
    labels = Peer(PCK, n_clusters=2, seed=7).fit(X, constraints=LINKS).labels_
    assert labels[:-1].tolist() == [2, 4, 1, 0, 1, 1, 2, -1, 0, 3, -1, 7]
    assert labels.dtype == np.int64


def test_a_process_is_used_again_and_is_not_this_one(fake):
    processes = {Peer(PCK, 2, seed).fit(X, LINKS).labels_[-1] for seed in range(3)}
    assert len(processes) == 1
    assert len(fake) == 1
    assert processes != {os.getpid()}


def test_error_of_a_peer_is_named_and_the_process_lives_on(fake):
    peer = Peer(MPCK, 2, 0)
    for _ in range(2):
        with pytest.raises(PeerError, match=r"^ZeroDivisionError: two lines$"):
            peer.fit(X, LINKS)
    assert Peer(PCK, 2, 0).fit(X, LINKS).labels_[0] == 2


def test_fit_is_stopped_at_the_time_limit_and_the_next_one_runs(fake):
    peer = Peer(MPCK, 2, 0, time_limit=0.5)
    with pytest.raises(PeerTimeLimit, match=r"time limit of 0\.5 s"):
        peer.fit(X, Constraints(4, [(0, 1)]))
    (worker,) = fake.values()
    assert worker._process.returncode is not None
    assert Peer(PCK, 2, 0).fit(X, LINKS).labels_[0] == 2


def test_crash_of_the_process_is_an_error_of_the_peer(fake):
    with pytest.raises(PeerError, match="ended with code 3"):
        Peer(MPCK, 2, 0).fit(X, Constraints(4, [], [(0, 3)]))
    assert Peer(PCK, 2, 0).fit(X, LINKS).labels_[0] == 2


def test_missing_package_is_said_at_the_fit_and_not_before(no_packages):
    peer = Peer(PCK, 2, 0)
    for _ in range(2):
        with pytest.raises(PeerMissing, match="active-semi-supervised-clustering is not installed"):
            peer.fit(X, LINKS)
    assert Peer(COP, 2, 0)._worker is peer._worker


def test_trial_records_a_missing_peer_and_goes_on(no_packages):
    rows = leaderboard_trial(0, 0, "iris", "10 %", 0.0, methods=[f"peer {PCK}", "sklearn KMeans"])
    assert rows[0]["problem"] == "PeerMissing: active-semi-supervised-clustering is not installed"
    assert rows[1]["ari"] > 0.3


def test_trial_scores_a_peer_and_the_links_it_breaks(fake):
    (row,) = leaderboard_trial(0, 0, "iris", "10 %", 0.0, methods=[f"peer {COP}"])
    assert "problem" not in row
    assert abs(row["ari"]) < 0.1
    assert 0.0 < row["kept"] < 1.0


def test_peers_stand_beside_our_methods():
    assert {method.counterpart for method in PEERS.values()} == {"sklearn KMeans"}
    assert set(WITHOUT_LINKS) >= {"sklearn KMeans"}
    assert not set(PEERS) & {*METHODS, *WITHOUT_LINKS}
    assert PEERS[f"peer {COP}"].links == "hard"
    assert PEERS[f"peer {PCK}"].links == "soft"


def test_error_of_a_dependency_is_not_a_missing_package(monkeypatch):
    def call(*_):
        raise ModuleNotFoundError("No module named 'tornado'", name="tornado")

    monkeypatch.setitem(peer_fits.PEER_FITS, "x", peer_fits.PeerFit("numpy", "numpy", "x", "soft", call))
    job = {"name": "x", "X": [[0.0]], "must_link": [], "cannot_link": [], "n_clusters": 1, "seed": 0}
    answer = peer_fits._answer(job)
    assert answer["error"] == "ModuleNotFoundError: No module named 'tornado'"
    assert answer["version"] == np.__version__
    assert "missing" not in answer


def test_chunks_are_the_components_of_the_must_links():
    chunks = peer_fits._chunks(7, [(5, 3), (3, 1), (0, 6)])
    assert chunks[[2, 4]].tolist() == [-1, -1]
    assert chunks[1] == chunks[3] == chunks[5]
    assert chunks[0] == chunks[6]
    assert sorted({*chunks}) == [-1, 0, 1]


def test_matrix_of_links_is_symmetric():
    matrix = peer_fits._matrix(3, [(0, 1)], [(2, 1)])
    np.testing.assert_array_equal(matrix, [[0, 1, 0], [1, 0, -1], [0, -1, 0]])


# Importing it would make numpy raise on underflow for the rest of the session.
@pytest.mark.skipif(find_spec("active_semi_clustering") is None, reason="another package, not installed")
def test_real_peer_separates_two_groups(monkeypatch):
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 20)
    data = rng.normal(size=(40, 2)) + 12.0 * y[:, np.newaxis]
    links = Constraints(40, [(0, 1), (20, 21)], [(0, 20)])
    for _ in own_processes(monkeypatch):
        for name in (PCK, MPCK, COP):
            labels = Peer(name, 2, 0).fit(data, links).labels_
            assert links.satisfaction(labels) == 1.0
            assert len({*zip(y.tolist(), labels.tolist(), strict=True)}) == 2
