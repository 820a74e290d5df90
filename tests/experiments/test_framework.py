"""Trials are paired, resumable and independent of processes; intervals agree with scipy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from experiments import EXPERIMENTS
from experiments.framework.data_files import DataMissing
from experiments.framework.experiment import Experiment, Size
from experiments.framework.figures import draw_curves, save_figure
from experiments.framework.summary import interval, summarise
from experiments.framework.tables import plain_table, read_table, table_text, wide
from experiments.framework.trials import Trial, TrialFile
from tests.forked_loky import forked_loky

SIZE = Size([{"data": "a", "links": 10}, {"data": "b", "links": 20}], n_draws=3)


def noisy(draw, data, links):
    value = np.random.default_rng([draw, links]).normal()
    return [{"method": "plain", "score": value}, {"method": "linked", "score": value + links}]


def make(trial=noisy, **options):
    return Experiment("name", "title", "paper", trial, SIZE, SIZE, ("score",), reference="plain", **options)


def test_differences_are_paired():
    table = make().run().table
    linked = {row["links"]: row for row in table if row["method"] == "linked"}
    for links, row in linked.items():
        assert row["difference"] == pytest.approx(links)
        # The noise is common to both methods and cancels; it does not in the interval of the mean.
        assert row["difference_high"] - row["difference_low"] < 1e-9 < row["high"] - row["low"]
        assert row["n"] == 3
    assert all(row["difference"] is None for row in table if row["method"] == "plain")


def test_stopped_run_goes_on_where_it_was(tmp_path):
    path = tmp_path / "trials" / "name.jsonl"
    seen = []

    def counted(draw, **setting):
        seen.append((draw, setting["data"]))
        if len(seen) == 4:
            raise KeyboardInterrupt
        return noisy(draw, **setting)

    with pytest.raises(KeyboardInterrupt):
        make(counted).run(path=path)
    assert len(TrialFile(path).read()) == 3
    # The machine went down while a line was written.
    path.write_text(path.read_text() + '{"setting": {"data": "b", ')
    outcome = make(counted).run(path=path)
    assert len(seen) == 4 + 3
    assert len(set(seen)) == 6
    assert outcome.n_trials == 6
    assert outcome.table == make().run().table
    assert make(lambda *_, **__: pytest.fail("run again")).run(path=path).table == outcome.table


def test_tables_do_not_depend_on_processes(tmp_path):
    progress = []
    with forked_loky():
        two = make().run(n_jobs=2, progress=lambda done, total: progress.append((done, total)))
    assert two.table == make().run().table
    assert progress == [(done, 6) for done in range(7)]


def test_missing_data_are_named_and_failures_tried_again(tmp_path):
    path = tmp_path / "trials.jsonl"

    def partly(draw, data, links):
        if data == "b":
            raise DataMissing("b.csv is needed")
        if draw == 1:
            raise ZeroDivisionError("bad draw")
        return noisy(draw, data, links)

    outcome = make(partly).run(path=path)
    assert outcome.skipped == {"b.csv is needed": [{"data": "b", "links": 20}]}
    assert [(trial.draw, trial.error) for trial in outcome.failed] == [(1, "ZeroDivisionError: bad draw")]
    assert outcome.n_trials == 2
    assert {row["n"] for row in outcome.table} == {2}
    assert make().run(path=path).n_trials == 6


def test_settings_keep_their_order_though_a_draw_failed():
    def trial(draw, data, links):
        if (draw, data) == (0, "a"):
            raise ZeroDivisionError
        return noisy(draw, data, links)

    assert [row["data"] for row in make(trial).run().table] == ["a", "a", "b", "b"]


def test_trials_remember_the_code_that_ran_them(tmp_path):
    path = tmp_path / "trials.jsonl"
    first = make().run(path=path)
    assert list(first.sources.values()) == [6]
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0].replace(*first.sources, "older"), *lines[1:]]) + "\n")
    assert make().run(path=path).sources == {"older": 1, next(iter(first.sources)): 5}


def test_damaged_line_is_named(tmp_path):
    path = tmp_path / "trials.jsonl"
    make().run(path=path)
    path.write_text("{}\nnonsense\n" + path.read_text())
    with pytest.raises(ValueError, match=r"trials\.jsonl, line 1 is no trial"):
        make().run(path=path)


def test_draws_without_a_value_are_not_counted():
    trials = [Trial({"k": 1}, 0, [{"method": "a", "f": float("nan")}]),
              Trial({"k": 1}, 1, [{"method": "a", "f": 2.0}])]  # fmt: skip
    (row,) = summarise(trials, ["f"])
    assert (row["n"], row["mean"]) == (1, 2.0)


@given(st.lists(st.floats(-5, 5), min_size=2, max_size=30))
def test_interval_is_students(values):
    mean, low, high = interval(values)
    assert mean == pytest.approx(np.mean(values))
    spread = np.std(values, ddof=1)
    if spread > 1e-6:
        expected = stats.t.interval(0.95, len(values) - 1, np.mean(values), spread / np.sqrt(len(values)))
        assert (low, high) == pytest.approx(expected)


def test_interval_covers_as_often_as_it_says():
    rng = np.random.default_rng(0)
    limits = np.array([interval(rng.normal(1.0, 2.0, size=6)) for _ in range(2000)])
    covered = np.mean((limits[:, 1] <= 1.0) & (limits[:, 2] >= 1.0))
    assert covered == pytest.approx(0.95, abs=0.02)


def test_too_few_values_have_no_interval():
    assert interval([0.5, float("nan")])[0] == 0.5
    assert np.isnan(interval([0.5])[1:]).all()
    assert np.isnan(interval([])).all()


def test_measures_and_words_that_some_methods_lack():
    trials = [
        Trial({"k": 1}, 0, [{"method": "a", "f": 1.0, "legend": "x"}, {"method": "b", "g": 2.0}]),
        Trial({"k": 1}, 1, [{"method": "a", "f": 2.0, "legend": "y"}, {"method": "b", "f": 5.0}]),
        Trial({"k": 1}, 2, [{"method": "a", "f": None, "legend": "y"}]),
    ]
    table = {(row["method"], row["measure"]): row for row in summarise(trials, ["f", "g"], "a", ["legend"])}
    assert set(table) == {("a", "f"), ("a", "legend"), ("b", "f"), ("b", "g")}
    assert (table["a", "f"]["n"], table["b", "f"]["n"]) == (2, 1)
    assert table["b", "f"]["difference"] == 3.0
    assert table["b", "g"]["difference"] is None
    assert table["a", "legend"]["text"] == "y"
    assert table["a", "legend"]["mean"] == pytest.approx(2 / 3)


def test_tables_survive_the_file(tmp_path):
    table = make().run().table
    path = tmp_path / "table.csv"
    path.write_text(table_text(table))
    back = read_table(path)
    assert [list(row) for row in back] == [list(row) for row in table]
    for row, stored in zip(table, back, strict=True):
        for key, value in row.items():
            assert stored[key] == (pytest.approx(value, rel=1e-6) if isinstance(value, float) else value)


def test_wide_table_puts_methods_side_by_side():
    head, rows = wide(make().run().table, "score")
    assert head == ["data", "links", "draws", "plain", "linked"]
    assert [row[:3] for row in rows] == [["a", "10", "3"], ["b", "20", "3"]]
    assert all("±" in cell for row in rows for cell in row[3:])
    assert wide([], "score") == ([], [])
    assert plain_table(head, rows).splitlines()[0].split() == head


def test_figure_has_a_panel_for_each_set_and_a_line_for_each_method(tmp_path):
    table = [{**row, "data": data} for row in make().run().table for data in ("a", "b", "c", "d")]
    figure = draw_curves(table, "score", "links")
    drawn = [ax for ax in figure.axes if ax.lines]
    assert [ax.get_title() for ax in drawn] == ["a", "b", "c", "d"]
    assert all(len(ax.lines) == 2 for ax in drawn)
    assert list(drawn[0].lines[0].get_xdata()) == [10, 20]
    path = tmp_path / "figure.png"
    assert not make().has_figure
    assert make(axis="links").has_figure
    save_figure(make(axis="links"), table, path)
    assert path.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_registered_experiments_are_complete(name):
    experiment = EXPERIMENTS[name]
    assert experiment.name == name
    assert experiment.title
    assert experiment.paper
    assert not experiment.title.endswith(".")
    for size in (experiment.quick, experiment.full):
        keys = {tuple(setting) for setting in size.settings}
        assert len(keys) == 1
        assert experiment.axis is None or experiment.axis in next(iter(keys))
        assert len({tuple(setting.values()) for setting in size.settings}) == len(size.settings)
    n_quick, n_full = (len(size.settings) * size.n_draws for size in (experiment.quick, experiment.full))
    assert 0 < n_quick <= n_full
