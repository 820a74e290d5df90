"""Restarts: from links and by k-means++ in turn, the best objective kept."""

from __future__ import annotations

import numpy as np
import pytest

from linkwise import Constraints, COPKMeans, HMRFKMeans, MPCKMeans, PCKMeans
from linkwise.kmeans.descent import Run, ended_lower
from linkwise.kmeans.starts import start_centres
from tests.kmeans.kmeans_cases import fit_quietly
from tests.repeats import LONG

ESTIMATORS = {
    "COPKMeans": COPKMeans,
    "PCKMeans": PCKMeans,
    "MPCKMeans": MPCKMeans,
    "HMRFKMeans": HMRFKMeans,
    "HMRFKMeans cosine": lambda k, **options: HMRFKMeans(k, distortion="cosine", metric=None, **options),
}


def problem(seed, name):
    """More clusters than one start finds, and true links."""
    rng = np.random.default_rng(seed)
    y = rng.integers(7, size=120)
    X = rng.normal(scale=1.2, size=(7, 3))[y] + rng.normal(size=(120, 3))
    links = Constraints.sample(y, 40, overlap=True, random_state=rng)
    if name != "COPKMeans":
        links = Constraints(120, links.must_link, links.cannot_link, weight=1.0)
    return X, links


@pytest.mark.parametrize("name", ESTIMATORS)
def test_auto_is_the_better_of_both(name):
    make, winners = ESTIMATORS[name], set()
    for seed in range(5):
        if not LONG and seed >= 2 and len(winners) == 2:
            break
        X, links = problem(seed, name)
        found = {
            init: fit_quietly(make(7, init=init, n_init=n_init, random_state=seed), X, links)
            for init, n_init in (("auto", 4), ("constraints", 2), ("k-means++", 2))
        }
        reached = {init: model.objective_ for init, model in found.items()}
        lowest = min(reached["constraints"], reached["k-means++"])
        assert reached["auto"] == pytest.approx(lowest, rel=1e-9)
        winner = min(("constraints", "k-means++"), key=reached.get)
        if reached["constraints"] != pytest.approx(reached["k-means++"], rel=1e-6):
            np.testing.assert_array_equal(found["auto"].labels_, found[winner].labels_)
            winners.add(winner)
    assert winners == {"constraints", "k-means++"}


def recorded(monkeypatch):
    """What every start of a fit was made from: the number of must-links and cannot-links, and its centres."""
    calls = []

    def start(distortion, rows, n_clusters, must_link, rng, *, cannot_link, largest_first):
        centres = start_centres(
            distortion, rows, n_clusters, must_link, rng, cannot_link=cannot_link, largest_first=largest_first
        )
        calls.append((len(must_link), len(cannot_link), largest_first, centres.tobytes()))
        return centres

    monkeypatch.setattr("linkwise.kmeans.fitted.start_centres", start)
    return calls


def test_kinds_take_turns_and_restarts_differ(monkeypatch):
    calls = recorded(monkeypatch)
    X, links = problem(0, "COPKMeans")
    fit_quietly(COPKMeans(7, random_state=0), X, links)
    n_must, n_cannot = len(links.must_link), len(links.cannot_link)
    assert [call[:2] for call in calls] == [(0, 0), (n_must, n_cannot)] * 5
    assert [call[2] for call in calls] == [True] * 2 + [False] * 8
    assert len({call[3] for call in calls}) == 10


def test_without_links_all_starts_are_kmeans_plus_plus(monkeypatch):
    calls = recorded(monkeypatch)
    X, _ = problem(0, "COPKMeans")
    for links in (None, Constraints(len(X))):
        fits = [
            fit_quietly(COPKMeans(7, init=init, n_init=3, random_state=0), X, links).inertia_
            for init in ("auto", "constraints", "k-means++")
        ]
        assert fits[0] == fits[1] == fits[2]
    assert {call[:2] for call in calls} == {(0, 0)}
    assert len({call[3] for call in calls}) == 3


def test_of_starts_that_meet_the_first_is_kept():
    def ended(objective):
        return Run(None, None, None, [objective], 1, True, 0, None, [])

    assert ended_lower(ended(5.0), None)
    assert ended_lower(ended(5.0), ended(5.1))
    assert not ended_lower(ended(5.0 - 1e-13), ended(5.0))
    assert not ended_lower(ended(-5.0 - 1e-13), ended(-5.0))
    assert ended_lower(ended(5.0), ended(np.inf))
    assert not ended_lower(ended(np.inf), ended(np.inf))


def test_a_generator_goes_on():
    X, links = problem(1, "COPKMeans")
    rng = np.random.default_rng(0)
    fits = [fit_quietly(COPKMeans(7, n_init=1, random_state=rng), X, links) for _ in range(4)]
    assert len({model.inertia_ for model in fits}) > 1


def test_starts_from_links_of_dense_cannot_links_keep_them():
    """Cliques of as many rows as clusters: seeds of these rows, and no group is left to search for."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    links = Constraints(60, cannot_link=[(i, j) for j in range(12) for i in range(j)])
    model = fit_quietly(COPKMeans(12, init="constraints", n_init=1, random_state=0), X, links)
    assert model.inference_["exact"]
    assert not model.violations_.any()
    centres = start_centres(
        model._make_distortion(),
        model._make_distortion().rows(X),
        12,
        links.must_link,
        rng,
        cannot_link=links.cannot_link,
    )
    np.testing.assert_allclose(np.sort(centres, axis=0), np.sort(X[:12], axis=0))
