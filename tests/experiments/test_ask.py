"""Methods are scored on all rows; means, targets and pages agree with counting by hand."""

from __future__ import annotations

import sys
from functools import cache
from itertools import combinations
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import adjusted_rand_score, rand_score

from experiments.active import ask, curves, page
from experiments.active.ask import CONDITIONS, EXPERIMENTS, METHODS, ask_trial
from experiments.active.cobras import cobras_labels
from experiments.active.curves import CHECKPOINTS, cobras_curve, linked_curve, session_curve
from experiments.active.figure import draw_ask
from experiments.active.page import curves as curves_text
from experiments.active.page import details, target_table
from experiments.active.summary import (
    OURS,
    RANDOM,
    coverage,
    draw_measure,
    gaps,
    half_scores,
    mean_of,
    scores,
    targets,
    whole,
)
from experiments.framework.data_files import DataMissing
from experiments.framework.experiment import Size
from experiments.framework.summary import interval, summarise
from experiments.framework.tables import read_table, table_text
from experiments.framework.trials import Trial
from experiments.leaderboard.data import SETS, half_of, load_set
from linkwise import active
from tests.first_clusterings import few_for_sessions, shared_first_clusterings  # noqa: F401

Y = np.array([0, 1] * 6)


class Session:
    """Stands for ActiveClustering: asks about pair after pair, and learns one row with each answer."""

    made: ClassVar[list] = []

    def __init__(self, X, *, strategy, random_state):
        self.X, self.strategy, self.random_state = X, strategy, random_state
        self.told = []
        Session.made.append(self)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.closed = True

    def ask(self):
        return list(combinations(range(len(self.X)), 2))[len(self.told)]

    def tell(self, i, j, says):
        self.told.append((i, j, says))

    @property
    def labels_(self):
        return np.where(np.arange(len(self.X)) < len(self.told), Y, 2)

    @property
    def quality_(self):
        return SimpleNamespace(estimate=0.5, low=0.0, high=0.7)


@pytest.fixture
def session(monkeypatch):
    monkeypatch.setattr(active, "ActiveClustering", Session, raising=False)
    monkeypatch.setattr(ask, "load_set", lambda name, n_rows: (np.zeros((12, 1)), Y))
    Session.made.clear()
    return Session


def test_a_session_is_asked_and_told_and_scored_on_all_rows(session):
    (row,) = ask_trial(3, "iris", "right", "npu", checkpoints=(0, 5, 10))
    (made,) = session.made
    assert (made.strategy, made.random_state, made.closed) == ("npu", 3, True)
    assert len(made.told) == 10
    assert all(says == ("same" if Y[i] == Y[j] else "different") for i, j, says in made.told)
    assert row["method"] == "npu"
    for m in (0, 5, 10):
        labels = np.where(np.arange(12) < m, Y, 2)
        assert row[f"ari_{m}"] == pytest.approx(adjusted_rand_score(Y, labels))
        if m:
            assert row[f"covered_{m}"] == float(rand_score(Y, labels) <= 0.7)
    assert row["covered_5"] != row["covered_10"]
    assert row["seconds"] >= 0.0


def test_wrong_answers_do_not_depend_on_who_asks(session):
    for method in ("npu", "random"):
        ask_trial(1, "iris", "10 % wrong", method, checkpoints=(50,))
    first, second = session.made
    assert first.told == second.told
    ask_trial(2, "iris", "10 % wrong", "npu", checkpoints=(50,))
    assert session.made[2].told != first.told  # another draw
    ask_trial(1, "iris", "10 % unsure", "npu", checkpoints=(50,))
    assert {says for *_, says in session.made[3].told} == {"same", "different", "unsure"}


def test_random_pairs_with_linked_clustering(monkeypatch):
    given = []

    class Linked:
        def __init__(self, random_state):
            assert random_state == 4

        def fit(self, X, constraints):
            given.append(constraints)
            self.labels_ = np.zeros(len(X), dtype=int)
            return self

    monkeypatch.setattr(curves, "LinkedClustering", Linked)
    found = list(linked_curve(np.zeros((12, 1)), lambda i, j: "same" if i + j < 11 else "unsure", (0, 10), 4))
    assert [one.n_answers for one in found] == [0, 10]
    assert given[0] is None
    assert 0 < given[1].n_pairs < 10  # "unsure" gives no link
    assert len(given[1].cannot_link) == 0


# Stands for cobras_ts: asks about row 0 and each other row, and puts those that are the same together.
FAKE = """
import numpy as np

print("a package may print")

class COBRAS_kmeans:
    def __init__(self, data, querier, max_questions, store_intermediate_results=True):
        assert not store_intermediate_results and data.shape == (12, 2)
        self.n, self.querier, self.budget = len(data), querier, max_questions

    def cluster(self):
        if self.budget == 11:
            raise ZeroDivisionError("eleven")
        self.labels = np.full(self.n, 7)
        for j in range(1, self.budget + 1):
            self.labels[j] = self.querier.query_points(np.int64(0), j)
        self.labels[0] = np.random.get_state()[1][0]
        return self

    def construct_cluster_labeling(self):
        return self.labels
"""


@pytest.fixture
def cobras(tmp_path, monkeypatch):
    (tmp_path / "cobras_ts").mkdir()
    (tmp_path / "cobras_ts" / "__init__.py").touch()
    (tmp_path / "cobras_ts" / "cobras_kmeans.py").write_text(FAKE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("LINKWISE_COBRAS", sys.executable)


def test_cobras_asks_from_its_own_process(cobras):
    first, second = cobras_labels(np.zeros((12, 2)), lambda i, j: Y[i] == Y[j], [3, 10], seed=3)
    assert first[0].tolist() == [3, 0, 1, 0, *[7] * 8]
    assert second[0].tolist() == [3, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 7]
    assert (first[1], second[1]) == (3, 10)


def test_cobras_has_one_run_for_each_budget_and_hears_different_for_unsure(cobras):
    found = list(cobras_curve(np.zeros((12, 2)), lambda i, j: "unsure", (0, 5, 10), 0))
    assert [one.n_answers for one in found] == [5, 10]
    assert found[0].labels.tolist() == [0] * 6 + [7] * 6


def test_cobras_that_fails_says_why(cobras):
    with pytest.raises(RuntimeError, match="COBRAS ended without labels: ZeroDivisionError: eleven"):
        list(cobras_labels(np.zeros((12, 2)), lambda i, j: True, [5, 11], seed=0))


def test_without_cobras_its_trials_are_skipped(monkeypatch):
    monkeypatch.delenv("LINKWISE_COBRAS", raising=False)
    with pytest.raises(DataMissing, match="set LINKWISE_COBRAS"):
        ask_trial(0, "iris", "right", "COBRAS")


@cache
def table_of(value, sets=tuple(SETS), methods=tuple(METHODS), n_draws=3):
    """Tidy table in which ``value(set, condition, method, answers, draw)`` is the score."""
    trials = []
    for condition in CONDITIONS:
        for method in methods:
            for name in sets:
                for draw in range(n_draws):
                    row = {"method": method, "seconds": 0.25}
                    row |= {f"ari_{m}": value(name, condition, method, m, draw) for m in CHECKPOINTS}
                    row |= {f"covered_{m}": float(draw != 1) for m in CHECKPOINTS if m}
                    setting = {"set": name, "condition": condition, "method": method}
                    trials.append(Trial(setting, draw, [row]))
    return summarise(trials, EXPERIMENTS[0].measures)


def linear(name, condition, method, m, draw):
    """ActiveClustering gains .002 for each answer, the others .001; half of it with wrong answers."""
    gain = 0.002 if method == "ActiveClustering" else 0.001
    return 0.3 + gain * m * (0.5 if condition == "10 % wrong" else 1.0)


def test_means_and_intervals_over_sets():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(19, 3)) * rng.uniform(0.01, 0.1, size=(19, 1))
    place = {name: number for number, name in enumerate(SETS)}
    table = table_of(lambda name, c, method, m, draw: 0.5 + noise[place[name], draw], methods=("npu",))
    one = mean_of(scores(table), "right", "npu", 50)
    assert one.mean == pytest.approx(0.5 + noise.mean())
    error = np.sqrt((noise.var(axis=1, ddof=1) / 3).sum()) / 19
    assert one.half_width == pytest.approx(error * stats.t.ppf(0.975, 38))
    half = mean_of(half_scores(scores(table), "A"), "right", "npu", 50).mean
    assert half == pytest.approx(0.5 + noise[[half_of(name) == "A" for name in SETS]].mean())
    missing = mean_of(scores(table), "right", "COBRAS", 50)
    assert missing.mean != missing.mean
    assert str(missing) == ""


def test_one_set_has_the_interval_of_its_draws():
    values = [0.3, 0.5, 0.9]
    table = table_of(lambda name, c, method, m, draw: values[draw], sets=("iris",), methods=("npu",))
    one = mean_of(scores(table), "right", "npu", 50)
    mean, _, high = interval(values)
    assert (one.mean, one.half_width) == pytest.approx((mean, high - mean))


def test_targets_are_judged():
    found = {one.what: one for one in targets(table_of(linear))}
    reached = {what: one.reached for what, one in found.items()}
    assert reached["mean after 100 answers"] is False  # .5 against .4
    assert reached["mean after 200 answers"] is True  # .7 against .5
    assert "+0.200" in found["mean after 200 answers"].measured
    assert reached["any set, any number of answers"] is True
    gain = found["10 % wrong, 100 answers: share of the gain over no answers"]
    assert gain.reached is False
    assert gain.measured.startswith("50%")
    covered = found["90 % intervals of the quality hold the truth"]
    assert covered.reached is False
    assert covered.measured == f"67% of {19 * 3 * 3 * 8}"
    assert coverage(table_of(linear))[0] == pytest.approx(2 / 3)


def test_one_bad_set_is_found():
    def worse(name, condition, method, m, draw):
        lost = 0.5 if (name, method, m) == ("wine", "ActiveClustering", 75) else 0.0
        return linear(name, condition, method, m, draw) - lost

    (one,) = [one for one in targets(table_of(worse, n_draws=1)) if one.what.startswith("any set")]
    assert one.reached is False
    assert one.measured == "-0.425 on wine after 75; 1 of 152 cases are below"


@pytest.mark.parametrize("better", ["random", "random, LinkedClustering"])
def test_the_better_random_pairs_count(better):
    def value(name, condition, method, m, draw):
        return linear(name, condition, method, m, draw) + (
            0.25 if (name, method) == ("iris", better) else 0.0
        )

    (one,) = [one for one in targets(table_of(value, n_draws=1)) if one.what.startswith("any set")]
    assert one.measured.startswith("-0.245 on iris after 5; ")


def paired_table(ours, theirs, keeps_draws=True):
    """Scores of iris after 10 right answers, draw by draw, of a session and of random pairs."""
    trials = []
    for method, values in ((OURS, ours), (RANDOM[1], theirs)):
        setting = {"set": "iris", "condition": "right", "method": method}
        for draw, value in enumerate(values):
            row = {"method": method, "ari_10": value}
            if keeps_draws:
                row[draw_measure(10, draw)] = value
            trials.append(Trial(setting, draw, [row]))
    return summarise(trials, EXPERIMENTS[0].measures)


def test_random_pairs_are_compared_on_the_same_draws():
    """Five draws against one: the first draw alone is compared, in which both had little luck."""
    table = paired_table([0.3, 0.8, 0.9, 0.9, 0.9], [0.4])
    (gap,) = gaps(table).values()
    assert (gap.mean, gap.n, gap.method) == (pytest.approx(-0.1), 1, RANDOM[1])
    assert gap.error != gap.error
    # If only means are known they are compared, and the text says so.
    table = paired_table([0.3, 0.8, 0.9, 0.9, 0.9], [0.8], keeps_draws=False)
    (gap,) = gaps(table).values()
    assert (gap.mean, gap.n, gap.n_theirs) == (pytest.approx(-0.04), 5, 1)
    (one,) = [one for one in targets(table) if one.what.startswith("any set")]
    assert one.measured == (
        "-0.040 (5 draws against 1) on iris after 10; 1 of 1 cases are below; "
        "1 compare different numbers of draws"
    )
    assert f"| iris | 10 | 5 and 1 | {RANDOM[1]} |" in details(table)


def test_difference_of_draws_has_the_standard_error_of_its_draws():
    ours, theirs = np.array([0.3, 0.5, 0.9]), np.array([0.4, 0.7, 0.8])
    (gap,) = gaps(paired_table(ours, theirs)).values()
    gain = ours - theirs
    assert (gap.ours, gap.theirs) == (pytest.approx(ours.mean()), pytest.approx(theirs.mean()))
    assert gap.mean == pytest.approx(gain.mean())
    assert gap.error == pytest.approx(gain.std(ddof=1) / np.sqrt(3))
    # As many draws of which only means are known: the error is that of independent draws.
    (gap,) = gaps(paired_table(ours, theirs, keeps_draws=False)).values()
    assert gap.mean == pytest.approx(gain.mean())
    assert gap.error == pytest.approx(np.sqrt((ours.var(ddof=1) + theirs.var(ddof=1)) / 3))
    table = paired_table(ours - 0.1, theirs)
    (one,) = [one for one in targets(table) if one.what.startswith("any set")]
    assert one.measured == ("-0.167 (standard error 0.088, 3 draws) on iris after 10; 1 of 1 cases are below")
    text = details(table)
    assert f"| iris | 10 | 3 | {RANDOM[1]} | 0.467 | 0.633 | -0.167 | 0.088 |" in text
    assert "There are none." in details(paired_table(theirs, theirs))


def test_draws_are_kept_of_methods_that_are_compared_by_them(session):
    (row,) = ask_trial(3, "iris", "right", OURS, checkpoints=(0, 5, 10))
    assert {key for key in row if "draw" in key} == {"ari_5_draw_3", "ari_10_draw_3"}
    assert row["ari_10_draw_3"] == row["ari_10"]
    for condition, method in (("right", "npu"), ("10 % wrong", OURS)):
        (row,) = ask_trial(3, "iris", condition, method, checkpoints=(5,))
        assert not any("draw" in key for key in row)


def test_targets_that_were_not_measured_say_so():
    table = table_of(linear, methods=("npu",))
    assert {one.reached for one in targets(table) if "intervals" not in one.what} == {None}
    assert "not measured yet" in target_table(table)


def test_page_says_who_is_missing_and_whether_it_is_finished(monkeypatch):
    assert curves_text(table_of(linear)).startswith("19 of 19 sets, 3 draws. The run is not finished.\n")
    monkeypatch.setattr(page, "_FULL", Size(EXPERIMENTS[0].full.settings, 3))
    assert curves_text(table_of(linear)).startswith("19 of 19 sets, 3 draws.\n\n**Answers: right**")
    part = [row for row in table_of(linear) if row["method"] != "COBRAS"]
    text = curves_text(part)
    assert text.startswith("19 of 19 sets, 3 draws. Not run: COBRAS. The run is not finished.\n")
    assert "| COBRAS |" not in text
    assert "| ActiveClustering | 0.300 ± 0.000 |" in text


def test_methods_that_have_not_seen_all_sets_are_left_out():
    part = [
        row
        for row in table_of(linear)
        if (row["condition"], row["method"], row["set"]) != ("right", "npu", "wine")
    ]
    kept, unfinished = whole(part)
    assert unfinished == {"npu"}
    assert {row["condition"] for row in kept if row["method"] == "npu"} == {"10 % wrong", "10 % unsure"}
    assert len(whole(table_of(linear))[0]) == len(table_of(linear))
    assert "left out there: npu." in curves_text(part)


def test_details_and_figure_are_made_of_the_table_that_was_written(tmp_path):
    (tmp_path / "ask.csv").write_text(table_text(table_of(linear)))
    table = read_table(tmp_path / "ask.csv")
    text = details(table)
    assert "| wine | **0.50** | 0.40 |" in text
    assert "| npu | 0.250 |" in text
    figure = draw_ask(table)
    panels = figure.axes
    assert [ax.get_title() for ax in panels] == [f"answers: {name}" for name in CONDITIONS]
    line = panels[1].lines[0]
    np.testing.assert_allclose(line.get_ydata(), 0.3 + 0.001 * np.array(CHECKPOINTS))


@pytest.mark.parametrize("method", [name for name in METHODS if name != "COBRAS"])
def test_every_method_runs(method):
    X, y = load_set("iris", 60)
    curve = METHODS[method]
    found = list(curve(X, lambda i, j: "same" if y[i] == y[j] else "different", (0, 10), 0))
    assert [one.n_answers for one in found] == [0, 10]
    assert all(one.labels.shape == (60,) for one in found)
    assert adjusted_rand_score(y, found[-1].labels) > 0.3


def test_all_strategies_of_the_experiment_are_known():
    assert session_curve("spread") is not session_curve("spread")
    for setting in EXPERIMENTS[0].full.settings:
        assert setting["method"] in METHODS
    assert len(EXPERIMENTS[0].full.settings) == 19 * 3 * len(METHODS)
