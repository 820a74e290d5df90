"""Experiments with HMRF-KMeans: halves, links and what is scored; costs and gaps of an assignment step."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy import sparse

from experiments.framework.data_files import DataMissing
from experiments.hmrf import curves as hmrf
from experiments.hmrf import inference as hmrf_inference
from experiments.hmrf import newsgroups
from experiments.hmrf.curves import ENGINES, draw_fold, hmrf_curves
from experiments.hmrf.inference import METHODS, Step, assignment_step, hmrf_gaps, hmrf_times
from linkwise import HMRFKMeans
from linkwise.inference import EngineLabels
from linkwise.metrics import pairwise_f1


class Recorder(HMRFKMeans):
    """The estimator, which also keeps what it was given."""

    given: list[dict] = []  # noqa: RUF012

    def fit(self, X, y=None, *, constraints=None):
        self.given.append({**self.get_params(), "X": X, "links": constraints})
        return super().fit(X, y, constraints=constraints)


@pytest.fixture
def recorder(monkeypatch):
    Recorder.given = []
    for module in (hmrf, newsgroups):
        monkeypatch.setattr(module, "HMRFKMeans", Recorder)
    return Recorder


@pytest.mark.parametrize("draw", range(4))
@pytest.mark.parametrize("data", ["iris", "wine"])
def test_links_stay_in_their_half_and_are_true(data, draw):
    fold = draw_fold(draw, data, 60)
    everything = np.concatenate([fold.linkable, fold.held_out])
    assert np.array_equal(np.sort(everything), np.arange(len(fold.y)))
    assert abs(len(fold.linkable) - len(fold.held_out)) <= 1
    assert fold.links.n_pairs == 60
    assert not np.isin(fold.links.pairs, fold.held_out).any()
    assert fold.links.satisfaction(fold.y) == 1.0
    assert np.array_equal(np.abs(fold.links.weights), np.ones(60))


def test_folds_of_a_run_swap_their_halves():
    first, second, third = (draw_fold(draw, "iris", 5) for draw in range(3))
    assert np.array_equal(first.linkable, second.held_out)
    assert np.array_equal(first.held_out, second.linkable)
    assert set(third.linkable) != set(first.linkable)


def test_flips_change_kinds_only():
    right, wrong = draw_fold(3, "iris", 200), draw_fold(3, "iris", 200, flip=0.25)

    def signs(links):
        return {tuple(sorted(pair)): weight for pair, weight in zip(links.pairs, links.weights, strict=True)}

    truth, told = signs(right.links), signs(wrong.links)
    assert truth.keys() == told.keys()
    n_wrong = sum(truth[pair] != told[pair] for pair in truth)
    assert 25 <= n_wrong <= 75
    assert 1.0 - wrong.links.satisfaction(wrong.y) == pytest.approx(n_wrong / 200)


def test_every_engine_has_the_same_links_and_start(recorder):
    hmrf_curves(5, "iris", 30)
    plain, *fits = recorder.given
    assert plain["links"] is None
    assert plain["metric"] is None
    assert [fit["inference"] for fit in fits] == list(ENGINES)
    assert {fit["metric"] for fit in fits} == {"diag"}
    for fit in fits:
        assert fit["random_state"] == plain["random_state"] == 5
        assert np.array_equal(fit["X"], plain["X"])
        assert np.array_equal(fit["links"].pairs, fits[0]["links"].pairs)
        assert fit["links"].n_pairs == 30


def test_only_rows_without_links_are_scored(recorder, monkeypatch):
    scored = []

    def record(truth, labels):
        scored.append((truth, labels))
        return pairwise_f1(truth, labels)

    monkeypatch.setattr(hmrf, "pairwise_f1", record)
    rows = hmrf_curves(1, "wine", 40)
    fold = draw_fold(1, "wine", 40)
    assert [row["method"] for row in rows] == ["k-means", *ENGINES]
    assert len(scored) == len(rows)
    for row, (truth, labels) in zip(rows, scored, strict=True):
        assert np.array_equal(truth, fold.y[fold.held_out])
        assert row["f"] == pairwise_f1(truth, labels) > 0.3


def test_links_of_a_half_help_the_other_half():
    gains = []
    for draw in range(4):
        none, many = ({row["method"]: row["f"] for row in hmrf_curves(draw, "iris", n)} for n in (0, 200))
        assert none["icm"] == none["belief_propagation"] == none["lp"] == none["auto"]
        assert none["k-means"] == many["k-means"]
        gains.append(many["auto"] - none["auto"])
    assert np.mean(gains) > 0.03


def slow_cost(step: Step, labels: np.ndarray) -> float:
    total = sum(-step.problem.unary[i, label] for i, label in enumerate(labels))
    for (i, j), coupling in zip(step.problem.pairs, step.problem.coupling, strict=True):
        together = labels[i] == labels[j]
        if (coupling > 0 and not together) or (coupling < 0 and together):
            total += abs(coupling)
    return float(total)


@pytest.mark.parametrize("draw", range(3))
def test_gaps_are_measured_from_the_true_optimum(draw, monkeypatch):
    # Times are not looked at: no need to solve a large step first.
    monkeypatch.setattr(hmrf_inference, "_compile_steps", lambda *_: None)
    step = assignment_step(draw, "iris", 4, 0.5)
    n, k = step.problem.unary.shape
    assert n <= 8
    assert (step.problem.unary <= 0.0).all()
    costs = [slow_cost(step, labels) for labels in product(range(k), repeat=n)]
    best = min(costs)
    assert step.cost(np.zeros(n, dtype=np.int64)) == pytest.approx(costs[0])
    rows = {row["method"]: row for row in hmrf_gaps(draw, "iris", 0.5, 4)}
    for method, solve in METHODS.items():
        paid = slow_cost(step, solve(step, draw).labels)
        assert rows[method]["gap"] == pytest.approx((paid - best) / best, abs=1e-8)
        assert rows[method]["exact"] == float(paid <= best * (1 + 1e-9))
    assert rows["exact"]["certified"] == 1.0


def test_a_step_starts_from_the_labels_of_the_step_before():
    step = assignment_step(0, "iris", 50, 0.0)
    # Of a fit by ICM, so the labels mostly, but not all, are those of the nearest centre.
    nearest = step.problem.unary.argmax(axis=1)
    assert 0.5 < (nearest == step.previous).mean() < 1.0
    for method in ("icm", "belief propagation", "lp", "auto"):
        assert step.cost(METHODS[method](step, 0).labels) <= step.cost(step.previous) * (1 + 1e-12)


def test_a_draw_without_proof_has_no_gap(monkeypatch):
    def unproved(step, seed):
        return EngineLabels(step.previous, None, optimal=False)

    def zeros(step, seed):
        return EngineLabels(np.zeros_like(step.previous), None, optimal=False)

    monkeypatch.setattr(hmrf_inference, "METHODS", {"icm": zeros, "exact": unproved})
    rows = {row["method"]: row for row in hmrf_gaps(0, "iris", 0.0, 20)}
    step = assignment_step(0, "iris", 20, 0.0)
    assert all("gap" not in row and "exact" not in row for row in rows.values())
    low, high = step.cost(step.previous), step.cost(np.zeros_like(step.previous))
    assert low < high
    assert rows["exact"]["excess"] == 0.0
    assert rows["icm"]["excess"] == pytest.approx((high - low) / low)


def test_times_are_those_of_the_fastest_call(monkeypatch):
    # One call takes 0.5, the next ones 0.25 and 0.375 seconds of the processor.
    clock = iter([0.0, 0.5, 1.0, 1.25, 2.0, 2.375])
    monkeypatch.setattr(hmrf_inference.time, "process_time", lambda: next(clock))
    assert hmrf_inference._timed(lambda: "answer") == ("answer", 0.25)
    assert next(clock, None) is None


def test_a_long_call_is_made_once(monkeypatch):
    calls = []
    clock = iter([0.0, 100.0, 200.0, 300.0])
    monkeypatch.setattr(hmrf_inference.time, "process_time", lambda: next(clock))
    hmrf_inference._timed(lambda: calls.append(1))
    assert len(calls) == 1


def test_what_compiles_is_not_timed(monkeypatch):
    compiled = []
    monkeypatch.setattr(hmrf_inference, "_compile_fits", lambda: compiled.append("fits"))
    monkeypatch.setattr(hmrf_inference, "_compile_steps", lambda: compiled.append("steps"))
    monkeypatch.setattr(hmrf_inference, "_timed", lambda call: (compiled.append("timed") or call(), 1.0))
    hmrf_times(0, "iris", 20)
    hmrf_gaps(0, "iris", 0.0, 20)
    assert compiled == ["fits", *["timed"] * len(ENGINES), "steps", *["timed"] * len(METHODS)]


def test_times_are_multiples_of_icm(monkeypatch):
    seconds = iter([2.0, 6.0, 10.0, 3.0])
    monkeypatch.setattr(hmrf_inference, "_compile_fits", lambda: None)
    monkeypatch.setattr(hmrf_inference, "_timed", lambda call: (None, next(seconds)))
    rows = {row["method"]: row for row in hmrf_times(0, "iris", 20)}
    assert [rows[engine]["ratio"] for engine in ENGINES] == [1.0, 3.0, 5.0, 1.5]
    assert rows["lp"]["milliseconds"] == 10_000.0


def documents(task):
    """Sixty documents of three groups with words of their own, and some common ones."""
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], 20)
    rates = np.where(np.arange(150) // 50 == labels[:, np.newaxis], 1.0, 0.2)
    return sparse.csr_array(rng.poisson(rates).astype(np.float64)), labels


def test_documents_with_links_are_not_scored(recorder, monkeypatch):
    scored = []
    monkeypatch.setattr(newsgroups, "load_newsgroups", documents)
    monkeypatch.setattr(newsgroups, "TruncatedSVD", lambda n, random_state: _FirstColumns())
    monkeypatch.setattr(newsgroups, "pairwise_f1", lambda truth, labels: scored.append(truth) or 0.0)
    rows = newsgroups.hmrf_newsgroups(0, "easy", 20, documents=60)
    assert [row["method"] for row in rows] == list(newsgroups.METHODS)
    for fit in recorder.given:
        assert fit["n_clusters"] == 3
        assert fit["links"].n_pairs == 20
        assert np.array_equal(fit["links"].pairs, recorder.given[0]["links"].pairs)
        assert len(np.unique(fit["links"].pairs)) <= 30
    assert [len(truth) for truth in scored] == [30] * len(rows)


class _FirstColumns:
    def fit_transform(self, words):
        return words[:, :5].toarray()


def test_documents_of_clear_groups_are_found(monkeypatch):
    monkeypatch.setattr(newsgroups, "load_newsgroups", documents)
    monkeypatch.setattr(newsgroups, "TruncatedSVD", lambda n, random_state: _FirstColumns())
    scores = {row["method"]: row["f"] for row in newsgroups.hmrf_newsgroups(1, "easy", 0, documents=60)}
    assert scores["cosine"] == 1.0
    assert scores["cosine"] == scores["cosine constant"]
    assert scores["euclidean, SVD"] < scores["cosine"]


@pytest.mark.parametrize(
    "trial",
    [lambda: newsgroups.hmrf_newsgroups(0, "easy", 0), lambda: hmrf_curves(0, "protein116", 20)],
)
def test_missing_data_are_named(trial, monkeypatch):
    monkeypatch.delenv("LINKWISE_DATA", raising=False)
    with pytest.raises(DataMissing, match="LINKWISE_DATA"):
        trial()


@pytest.mark.parametrize(
    "experiment", [*hmrf.EXPERIMENTS, *hmrf_inference.EXPERIMENTS, *newsgroups.EXPERIMENTS]
)
def test_quick_settings_are_part_of_the_full_ones(experiment):
    assert all(setting in experiment.full.settings for setting in experiment.quick.settings)
    assert experiment.quick.n_draws < experiment.full.n_draws
    assert experiment.axis in experiment.full.settings[0]
