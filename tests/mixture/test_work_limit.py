"""Dense hard cannot-links: the work of a whole fit has a limit, and the links hold all the same."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from linkwise import PPC, ConstrainedEM, Constraints
from linkwise.exceptions import ApproximationWarning
from linkwise.inference import marginals
from linkwise.mixture.links import em_step as link_steps
from tests.repeats import LONG


def crowd(kind, seed=0):
    """Data, hard cannot-links that are hard to infer with, and the number of clusters."""
    rng = np.random.default_rng(seed)
    if kind == "clique":
        links = Constraints(40, cannot_link=list(itertools.combinations(range(15), 2)))
        return rng.normal(size=(40, 2)), links, 15
    hidden = rng.integers(4, size=80)
    apart = [p for p in itertools.combinations(range(80), 2) if hidden[p[0]] != hidden[p[1]]]
    chosen = rng.choice(len(apart), 360, replace=False)
    return rng.normal(size=(80, 3)), Constraints(80, cannot_link=[apart[row] for row in chosen]), 4


def fitted(model, data, links):
    """The fit and the warnings of its inference."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        model.fit(data, constraints=links)
    return model, [w for w in seen if issubclass(w.category, ApproximationWarning | ConvergenceWarning)]


@pytest.fixture
def counted(monkeypatch):
    """Work of every call of inference during a fit, posteriors and priors apart."""
    work = {"posterior": [], "prior": []}
    for part, module in (("posterior", "rows"), ("prior", "prior")):
        path = f"linkwise.mixture.links.{module}.marginals"

        def counting(*args, part=part, **options):
            found = marginals(*args, **options)
            work[part].append(found.details.get("work", 0))
            return found

        monkeypatch.setattr(path, counting)
    return work


LIMITS = [(1.0, 1), (3e5, 1), (1e6, 1), (3e5, 3)]


@pytest.mark.parametrize(
    ("kind", "estimator", "limit", "n_init"),
    [
        (kind, estimator, *limit)
        for i, kind in enumerate(("clique", "colourable"))
        for j, estimator in enumerate((PPC, ConstrainedEM))
        for k, limit in enumerate(LIMITS)
        if LONG or (i + j + k) % 2 == 0
    ],
)
def test_a_fit_keeps_to_its_work_and_to_the_links(kind, estimator, limit, n_init, counted, monkeypatch):
    monkeypatch.setattr(link_steps, "_MAX_WORK", limit)
    monkeypatch.setattr(link_steps, "_WORK_PER_ENTRY", 0.0)
    data, links, n_components = crowd(kind)
    model, seen = fitted(estimator(n_components, n_init=n_init, max_iter=20, random_state=0), data, links)
    assert links.satisfaction(model.labels_) == 1.0
    assert np.isfinite(model.responsibilities_).all()
    assert np.isfinite(model.weights_).all()
    assert model.inference_["details"]["reason"] is not None
    assert not model.inference_["exact"]
    assert not model.inference_["details"]["prior_exact"]
    approximate = [w for w in seen if issubclass(w.category, ApproximationWarning)]
    assert len(approximate) == 1
    assert "certainty < 1" in str(approximate[0].message)
    # Belief propagation stops within a sweep; mean field then makes one or two, four times as cheap, a step.
    sweep = 2 * links.n_pairs * (n_components + 3) * 4
    assert sum(counted["prior"]) <= limit + 2 * n_init * sweep
    n_steps = len(counted["posterior"])
    assert sum(counted["posterior"]) <= limit + (n_steps + n_init) * sweep


def test_the_prior_stops_asking_once_its_work_is_used_up(counted, monkeypatch):
    data, links, n_components = crowd("clique")
    monkeypatch.setattr(link_steps, "_WORK_PER_ENTRY", 0.0)
    monkeypatch.setattr(link_steps, "_MAX_WORK", 1e15)
    fitted(PPC(n_components, max_iter=10, random_state=0), data, links)
    unlimited = sum(counted["prior"])
    counted["prior"].clear()
    monkeypatch.setattr(link_steps, "_MAX_WORK", unlimited / 10)
    model, _ = fitted(PPC(n_components, max_iter=10, random_state=0), data, links)
    assert sum(counted["prior"]) < unlimited / 5
    assert "prior" in model.inference_["details"]["reason"]


def test_the_objective_does_not_jump_where_the_prior_is_frozen(monkeypatch):
    """log Omega keeps its value, so that the bounds before and after can be compared."""
    data, links, n_components = crowd("colourable")
    monkeypatch.setattr(link_steps, "_WORK_PER_ENTRY", 0.0)
    bounds = []
    for limit in (1e15, 2e6):
        monkeypatch.setattr(link_steps, "_MAX_WORK", limit)
        model, _ = fitted(PPC(n_components, n_init=1, max_iter=15, tol=0.0, random_state=0), data, links)
        bounds.append(np.array(model.lower_bounds_))
    assert "prior" in model.inference_["details"]["reason"]
    assert np.abs(np.diff(bounds[1])).max() < 10 * np.abs(np.diff(bounds[0])).max() + 1.0


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_limited_fits_repeat(n_jobs, monkeypatch):
    monkeypatch.setattr(link_steps, "_MAX_WORK", 2e6)
    monkeypatch.setattr(link_steps, "_WORK_PER_ENTRY", 0.0)
    data, links, n_components = crowd("colourable")
    first, second = (
        fitted(PPC(n_components, n_init=3, max_iter=5, random_state=0, n_jobs=jobs), data, links)[0]
        for jobs in (1, n_jobs)
    )
    assert first.inference_["details"]["reason"] is not None
    np.testing.assert_array_equal(first.responsibilities_, second.responsibilities_)
    assert first.lower_bounds_ == second.lower_bounds_


@pytest.mark.parametrize("seed", range(3 if LONG else 1))
def test_ordinary_links_do_not_notice_the_limit(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    truth = rng.integers(3, size=120)
    data = rng.normal(size=(120, 2)) + 3.0 * rng.normal(size=(3, 2))[truth]
    links = Constraints.sample(truth, 60, overlap=True, random_state=seed)
    model, seen = fitted(PPC(3, random_state=0), data, links)
    assert model.inference_["details"]["reason"] is None
    assert not [w for w in seen if issubclass(w.category, ApproximationWarning)]
    monkeypatch.setattr(link_steps, "_MAX_WORK", 1e15)
    without, _ = fitted(PPC(3, random_state=0), data, links)
    np.testing.assert_array_equal(model.responsibilities_, without.responsibilities_)


def test_soft_links_and_explicit_engines_have_no_limit(monkeypatch):
    monkeypatch.setattr(link_steps, "_MAX_WORK", 1.0)
    monkeypatch.setattr(link_steps, "_WORK_PER_ENTRY", 0.0)
    data, links, n_components = crowd("clique")
    soft = Constraints(len(data), cannot_link=links.cannot_link, certainty=0.9)
    model, _ = fitted(PPC(n_components, max_iter=2, random_state=0), data, soft)
    assert model.inference_["details"]["reason"] is None
    asked, _ = fitted(
        PPC(n_components, max_iter=2, inference="belief_propagation", random_state=0), data, links
    )
    assert asked.inference_["details"]["reason"] is None
    assert asked.inference_["method"] == "belief_propagation"
    assert links.satisfaction(asked.labels_) == 1.0


def test_nearly_hard_links_have_a_limit_where_they_are_dense(monkeypatch):
    monkeypatch.setattr(link_steps, "_MAX_WORK", 1.0)
    monkeypatch.setattr(link_steps, "_WORK_PER_ENTRY", 0.0)
    data, links, n_components = crowd("colourable")
    soft = Constraints(len(data), cannot_link=links.cannot_link, certainty=0.99)
    model, seen = fitted(PPC(n_components, max_iter=3, random_state=0), data, soft)
    assert "posterior" in model.inference_["details"]["reason"]
    assert [w for w in seen if issubclass(w.category, ApproximationWarning)]
    few = Constraints(len(data), cannot_link=links.cannot_link[:100], certainty=0.99)
    model, _ = fitted(PPC(n_components, max_iter=3, random_state=0), data, few)
    assert model.inference_["details"]["reason"] is None


@pytest.mark.parametrize("seed", range(3 if LONG else 1))
def test_what_takes_the_place_of_belief_propagation_knows_the_data(seed, monkeypatch):
    """Not any labelling that keeps the links: with clear clusters, the fit finds them."""
    monkeypatch.setattr(link_steps, "_MAX_WORK", 1.0)
    monkeypatch.setattr(link_steps, "_WORK_PER_ENTRY", 0.0)
    _, links, n_components = crowd("colourable", seed)
    rng = np.random.default_rng(seed)
    truth = rng.integers(4, size=80)
    data = rng.normal(size=(80, 3)) + 10.0 * np.eye(4, 3)[truth]
    model, _ = fitted(PPC(n_components, random_state=0), data, links)
    assert model.inference_["method"] == "mean_field"
    assert links.satisfaction(model.labels_) == 1.0
    assert adjusted_rand_score(truth, model.labels_) > 0.95
