"""Hard links that leave no labelling are reported by every engine, and never where there is one."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest

from linkwise.exceptions import ApproximationWarning, FeasibilityWarning, InfeasibleConstraints
from linkwise.inference import PottsField, best_labels, marginals
from linkwise.inference.engines import EngineMarginals, engine_options
from linkwise.inference.local_search import hard_links as feasibility_module
from tests.repeats import examples

ENGINES = [(solve, name) for solve in (marginals, best_labels) for name in engine_options(solve.__name__)]
#: Whatever makes an engine quick; the answers themselves are judged elsewhere.
QUICK = {"gibbs": {"max_sweeps": 8, "n_chains": 1}, "lp": {"n_roundings": 0}}


def crowded_field(rng):
    """A small field with about as many hard links as a labelling bears, every kind of -inf among them."""
    n_points, n_labels = int(rng.integers(3, 7)), int(rng.integers(2, 4))
    everything = np.array(list(itertools.combinations(range(n_points), 2)))
    pairs = everything[rng.random(len(everything)) < rng.uniform(0.5, 1.0)]
    coupling = rng.choice([-np.inf, -np.inf, -np.inf, np.inf, 1.0, -2.0], size=len(pairs))
    unary = rng.normal(size=(n_points, n_labels))
    kind = rng.integers(4)
    if kind == 1:
        forbidden = rng.random(unary.shape) < 0.25
        forbidden[np.arange(n_points), rng.integers(n_labels, size=n_points)] = False
        unary[forbidden] = -np.inf
    elif kind == 2:
        coupling = np.repeat(coupling[:, np.newaxis], n_labels, axis=1)
        soft = (rng.random(coupling.shape) < 0.3) & (coupling < np.inf)
        coupling[soft] = rng.normal(size=int(soft.sum()))
    return PottsField(unary, pairs, coupling)


def is_feasible(field):
    """Whether one of the K ** n labellings breaks no hard link and uses no forbidden label."""
    labellings = np.array(list(itertools.product(range(field.n_labels), repeat=field.n_points)))
    allowed = (field.unary[np.arange(field.n_points), labellings] > -np.inf).all(axis=1)
    coupling = field.coupling if field.coupling.ndim == 2 else np.tile(field.coupling, (field.n_labels, 1)).T
    for (i, j), costs in zip(field.pairs, coupling, strict=True):
        together = labellings[:, i] == labellings[:, j]
        allowed &= ~together | (costs[labellings[:, i]] > -np.inf)
        allowed &= together | (costs[0] < np.inf)
    return bool(allowed.any())


@pytest.fixture(scope="module")
def fields():
    rng = np.random.default_rng(14)
    drawn = [crowded_field(rng) for _ in range(examples(100, 40))]
    return [(field, is_feasible(field)) for field in drawn]


def test_the_fields_are_of_both_kinds(fields):
    assert 0.25 < np.mean([feasible for _, feasible in fields]) < 0.75


@pytest.mark.parametrize(("solve", "method"), ENGINES, ids=[f"{s.__name__}-{name}" for s, name in ENGINES])
def test_infeasible_links_are_refused_with_a_witness(solve, method, fields):
    for number, (field, feasible) in enumerate(fields):
        with warnings.catch_warnings():
            # Small fields are all proven one way or the other; dropping links is what "tree" does.
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", ApproximationWarning)
            if feasible:
                answer = solve(field, method, number, **QUICK.get(method, {}))
                if solve is best_labels:
                    assert answer.score > -np.inf
                else:
                    assert np.isfinite(answer.prob).all()
            else:
                with pytest.raises(InfeasibleConstraints) as refused:
                    solve(field, method, number, **QUICK.get(method, {}))
                hard = {tuple(pair) for pair in np.sort(field.pairs).tolist()}
                witness = refused.value.witness
                assert {*witness.must_link, *witness.cannot_link} <= hard


def test_what_cannot_be_proven_is_warned_about(monkeypatch):
    """An engine that says nothing of feasibility, and a search that gives up."""

    def flat(problem, rng, *, initial=None, n_threads=1):
        shape = problem.unary.shape
        return EngineMarginals(
            np.full(shape, 1 / shape[1]), 0.0, np.full(len(problem.pairs), 0.5), exact=False
        )

    monkeypatch.setattr(feasibility_module, "_search", lambda problem: "unknown")
    ring = PottsField(np.zeros((3, 2)), [(0, 1), (1, 2), (0, 2)], [-np.inf] * 3)
    with pytest.warns(FeasibilityWarning):
        answer = marginals(ring, flat)
    assert not answer.converged


def test_feasibility_is_found_once_for_all_scores(monkeypatch):
    """EM asks with the same links in every step."""
    asked = []
    search = feasibility_module._search
    monkeypatch.setattr(feasibility_module, "_search", lambda problem: asked.append(1) or search(problem))
    pairs = list(itertools.combinations(range(4), 2))
    links = PottsField(np.zeros((4, 1)), pairs, [-np.inf] * 6)
    for seed in range(5):
        # All points want the same label, so that the labels themselves prove nothing.
        unary = np.tile(np.random.default_rng(seed).normal(size=4), (4, 1))
        marginals(links.with_unary(unary), "belief_propagation")
    assert len(asked) == 1
