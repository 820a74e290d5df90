"""Methods see the same links and are scored on the rows without; summaries agree with counting by hand."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from experiments.framework.tables import read_table, table_text
from experiments.leaderboard import leaderboard as board
from experiments.leaderboard.data import LINKS, SETS, WRONG, certainty_of, draw_links, half_of, load_set
from experiments.leaderboard.figure import draw_leaderboard
from experiments.leaderboard.methods import BEFORE, CHOSEN_WITHOUT, METHODS, WITHOUT_LINKS, Method
from experiments.leaderboard.page import changes, details, standings, target_table
from experiments.leaderboard.summary import (
    CONDITIONS,
    NOISY,
    RIGHT,
    Case,
    best_without,
    harm,
    harm_of_means,
    mean_score,
    measured,
    n_repeats,
    scores,
    targets,
)


def test_every_method_has_a_counterpart_without_links():
    assert {method.counterpart for method in {**METHODS, **BEFORE}.values()} <= set(WITHOUT_LINKS)
    assert all(method.links is None for method in WITHOUT_LINKS.values())
    assert all(name.split(", ")[0] in METHODS for name in BEFORE)


def test_methods_are_fitted_with_their_defaults():
    for method in METHODS.values():
        model = method.build(3, 7)
        plain = type(model)().get_params()
        changed = {key for key, value in model.get_params().items() if value != plain[key]}
        assert changed <= {"n_clusters", "n_components", "random_state"}


def test_halves_cover_all_sets_and_differ_by_one_at_most():
    halves = [half_of(name) for name in SETS]
    assert set(halves) == {"A", "B"}
    assert abs(halves.count("A") - halves.count("B")) <= 1
    assert len(SETS) == 19


def test_sets_are_standardised_and_narrow():
    X, y = load_set("breast_cancer", n_rows=120)
    assert X.shape == (120, 10)
    assert np.array_equal(np.unique(y), [0, 1])
    np.testing.assert_allclose(X.mean(axis=0), 0.0, atol=1e-9)
    np.testing.assert_array_equal(X, load_set("breast_cancer", n_rows=120)[0])


@pytest.mark.parametrize("disjoint", [False, True])
def test_flips_change_kinds_and_not_pairs(disjoint):
    y = np.arange(200) % 3
    must, cannot, linked = draw_links(y, 0.3, 0.0, seed=5, disjoint=disjoint)
    noisy_must, noisy_cannot, noisy_linked = draw_links(y, 0.3, 0.2, seed=5, disjoint=disjoint)
    n_links = 30 if disjoint else 60
    assert len(must) + len(cannot) == n_links
    assert (y[must[:, 0]] == y[must[:, 1]]).all()
    assert (y[cannot[:, 0]] != y[cannot[:, 1]]).all()
    assert {*map(tuple, must), *map(tuple, cannot)} == {*map(tuple, noisy_must), *map(tuple, noisy_cannot)}
    wrong = (y[noisy_must[:, 0]] != y[noisy_must[:, 1]]).sum()
    wrong += (y[noisy_cannot[:, 0]] == y[noisy_cannot[:, 1]]).sum()
    assert wrong == n_links // 5
    np.testing.assert_array_equal(linked, noisy_linked)
    ends = np.concatenate([must.ravel(), cannot.ravel()])
    assert set(np.flatnonzero(linked)) == set(ends)
    assert (len(set(ends)) == len(ends)) == disjoint


def test_certainty_is_the_true_one():
    assert certainty_of(0.15) == pytest.approx(0.85)
    assert certainty_of(0.0) == 0.99


class Recorder:
    """A method that returns fixed labels and remembers its links."""

    def __init__(self, labels):
        self.labels_ = np.asarray(labels)
        self.given = []

    def fit(self, X, constraints=None):
        self.given.append(constraints)
        return self

    def fit_predict(self, X):
        self.given.append(None)
        return self.labels_


Y = np.array([0, 1] * 6)
MUST, CANNOT = np.array([[0, 2], [1, 3]]), np.array([[0, 1], [4, 5]])


@pytest.fixture
def recorded(monkeypatch):
    """Three methods that share one recorder, on twelve rows of which the last six carry no links."""
    labels = Y.copy()
    labels[[0, 11]] = 1 - labels[[0, 11]]
    recorder = Recorder(labels)
    monkeypatch.setattr(board, "load_set", lambda name, n_rows: (np.zeros((12, 1)), Y))
    monkeypatch.setattr(board, "draw_links", lambda *_, **__: (MUST, CANNOT, np.arange(12) < 6))
    board._without_links.cache_clear()
    for name, links in (("hard", "hard"), ("soft", "soft"), ("plain", None)):
        monkeypatch.setitem(board.EVERYTHING, name, Method(lambda *_: recorder, links))
    yield recorder
    board._without_links.cache_clear()


def test_all_methods_get_the_same_pairs_in_their_own_kind(recorded):
    found = board.leaderboard_trial(0, 0, "iris", "30 %", 0.0, methods=["hard", "soft", "plain"])
    assert [row["method"] for row in found] == ["hard", "soft", "plain"]
    hard, soft, plain = recorded.given
    assert plain is None
    for links in (hard, soft):
        np.testing.assert_array_equal(links.pairs, [[0, 1], [0, 2], [1, 3], [4, 5]])
        np.testing.assert_array_equal(np.sign(links.weights), [-1, 1, 1, -1])
    assert np.isinf(hard.weights).all()
    np.testing.assert_allclose(abs(soft.weights), 0.5 * np.log(0.99 / 0.01))


def test_hard_links_are_given_only_where_all_are_right(recorded):
    found = board.leaderboard_trial(0, 0, "iris", "30 %", 0.15, methods=["hard", "soft"])
    assert [row["method"] for row in found] == ["soft"]
    np.testing.assert_allclose(abs(recorded.given[0].weights), 0.5 * np.log(0.85 / 0.15))


def test_scores_count_rows_without_links(recorded):
    (found,) = board.leaderboard_trial(0, 0, "iris", "30 %", 0.0, methods=["soft"])
    assert found["ari"] == pytest.approx(adjusted_rand_score(Y[6:], [0, 1, 0, 1, 0, 0]))
    assert found["ari"] < 1.0
    assert found["seconds"] >= 0.0
    assert found["kept"] == 0.5  # row 0 is wrong: it breaks 0-2 and 0-1


def test_reference_keeps_most_links_and_the_truth_does_not_choose(recorded, monkeypatch):
    # "one" breaks 0-2 and 0-1 and is right elsewhere; "other" keeps all links and is wrong on free rows.
    one, other = Y.copy(), Y.copy()
    one[0] = 1 - one[0]
    other[[6, 7]] = 1 - other[[6, 7]]
    for name, labels in (("one", one), ("other", other)):
        monkeypatch.setitem(board.EVERYTHING, name, Method(lambda *_, labels=labels: Recorder(labels)))
    monkeypatch.setattr(board, "KNOWN_WITHOUT", ("one", "other"))
    found = {
        row["method"]: row
        for row in board.leaderboard_trial(0, 0, "iris", "30 %", 0.15, methods=["one", "other"])
    }
    assert found[CHOSEN_WITHOUT]["ari"] == found["other"]["ari"] < found["one"]["ari"] == 1.0
    assert found[CHOSEN_WITHOUT]["seconds"] == found["one"]["seconds"] + found["other"]["seconds"]


def test_fits_without_links_are_shared_by_the_conditions_of_a_repeat(recorded):
    for links in LINKS:
        board.leaderboard_trial(0, 0, "iris", links, 0.0, methods=["plain"])
    assert recorded.given == [None]
    board.leaderboard_trial(0, 1, "iris", "30 %", 0.0, methods=["plain"])
    assert recorded.given == [None, None]


def test_error_of_a_method_is_recorded_and_the_others_go_on(recorded, monkeypatch):
    def fail(*_):
        raise ZeroDivisionError("of no use")

    monkeypatch.setitem(board.EVERYTHING, "broken", Method(fail, "soft"))
    rows = board.leaderboard_trial(0, 0, "iris", "30 %", 0.0, methods=["broken", "soft"])
    assert rows[0] == {"method": "broken", "problem": "ZeroDivisionError: of no use"}
    assert "ari" in rows[1]


def test_full_size_begins_with_one_repeat_of_all_sets():
    (experiment,) = board.EXPERIMENTS
    settings = experiment.full.settings
    assert len(settings) == 19 * 6 * 5
    assert {one["set"] for one in settings[: 19 * 6]} == set(SETS)
    assert {one["repeat"] for one in settings[: 19 * 6]} == {0}
    assert {one["set"] for one in settings[:19]} == set(SETS)
    assert {(one["links"], one["flip"]) for one in settings[: 19 * 6]} == {tuple(c) for c in CONDITIONS}


def row(repeat, name, condition, method, mean, measure="ari"):
    return {
        "repeat": repeat, "set": name, "links": condition.links, "flip": condition.flip, "method": method,
        "measure": measure, "n": 1, "mean": mean, "text": "",
    }  # fmt: skip


def test_unfinished_repeats_are_left_out():
    table = [row(0, name, c, "PPC", 0.5) for name in ("iris", "moons") for c in CONDITIONS]
    known = scores([*table, row(1, "iris", CONDITIONS[0], "PPC", 0.9)])
    assert n_repeats(known) == 1
    assert {case.repeat for case in known} == {0}
    assert measured(scores([*table[:6], *table[6:9]])) == CONDITIONS[:3]
    more = [*table, *(row(1, name, CONDITIONS[0], "PPC", 0.9) for name in ("iris", "moons"))]
    assert mean_score(scores(more), "PPC", CONDITIONS[:1]).mean == pytest.approx(0.7)
    assert mean_score(scores(more), "PPC").mean == pytest.approx(0.5)  # repeat 1 has one condition only
    assert {case.set for case in scores(table, half=half_of("iris"))} == {"iris"}


def test_mean_is_over_sets_then_repeats_with_students_interval():
    known = {
        Case(name, CONDITIONS[0], repeat): {"PPC": value}
        for name, values in (("iris", (0.2, 0.4)), ("wine", (0.6, 0.6)))
        for repeat, value in enumerate(values)
    }
    found = mean_score(known, "PPC", CONDITIONS[:1])
    assert found.mean == pytest.approx(0.45)
    assert found.half_width == pytest.approx(12.7062047 * 0.05)  # t(1) at 97.5 %, standard error .05
    assert np.isnan(mean_score(known, "PPC").mean)  # not measured in all conditions
    assert str(mean_score({Case("iris", CONDITIONS[0], 0): {"PPC": 0.5}}, "PPC", CONDITIONS[:1])) == "0.500"


def test_harm_counts_draws_and_means():
    reference = {0: 0.5, 1: 0.5}
    own = {"iris": {0: 0.49, 1: 0.9}, "wine": {0: 0.47, 1: 0.5}, "moons": {0: 0.3, 1: 0.6}}
    known = {
        Case(name, RIGHT[0], repeat): {"PPC": value, CHOSEN_WITHOUT: reference[repeat]}
        for name, values in own.items()
        for repeat, value in values.items()
    }
    assert harm(known, "PPC", conditions=RIGHT).mean == pytest.approx(2 / 6)
    assert harm_of_means(known, "PPC", conditions=RIGHT) == pytest.approx(1 / 3)
    assert np.isnan(harm(known, "PPC", conditions=NOISY).mean)


def test_best_without_links_is_chosen_by_its_mean():
    known = {
        Case("iris", c, 0): {"sklearn KMeans": 0.6, "PPC, no links": 0.5, "LinkedClustering, no links": 0.9}
        for c in CONDITIONS
    }
    assert best_without(known) == "sklearn KMeans"


@pytest.fixture
def table():
    """Two repeats of a set of each half; LinkedClustering is best, worse than the reference in one case."""
    found = []
    for repeat in (0, 1):
        for name in ("iris", "moons"):
            for condition in CONDITIONS:
                for method in (*METHODS, *BEFORE, CHOSEN_WITHOUT, *WITHOUT_LINKS):
                    kind = METHODS[method].links if method in METHODS else None
                    if kind == "hard" and condition.flip:
                        continue
                    mean = {"LinkedClustering": 0.7, "PPC": 0.58 if condition in RIGHT else 0.4}.get(
                        method, 0.5
                    )
                    if method == "LinkedClustering" and (repeat, name, condition) == (0, "moons", RIGHT[0]):
                        mean = 0.4
                    found.append(row(repeat, name, condition, method, mean))
                    found.append(row(repeat, name, condition, method, 2.0, "seconds"))
    return found


def test_targets_follow_from_the_table(table):
    found = {target.what: target for target in targets(table)}
    assert len(found) == 6 + 2 + 1 + 3 + 1
    means = [
        target for what, target in found.items() if what.startswith("LinkedClustering, ") and "%" in what
    ]
    assert [target.reached for target in means if "10 %, right" in target.what] == [False]  # .625 < .63
    assert found["LinkedClustering, 30 %, right"].reached
    (right,) = [target for what, target in found.items() if "worse" in what and "right" in what]
    assert right.measured == "0.0% of the settings (8.3% of single draws)"
    assert right.reached
    (wrong,) = [target for what, target in found.items() if "worse" in what and "wrong" in what]
    assert wrong.reached
    assert found["PPC, 30 %, right"].reached
    assert not found["PPC, disjoint, 15 % wrong: not below itself without links"].reached
    assert found["LinkedClustering, processor seconds of a fit (mean)"].measured == "2.0"


def test_harm_is_judged_by_the_mean_of_a_setting(table):
    setting = {
        "method": "LinkedClustering",
        "set": "moons",
        "links": RIGHT[0].links,
        "flip": 0.0,
        "repeat": 1,
    }
    (second,) = [one for one in table if setting.items() <= one.items() and one["measure"] == "ari"]
    second["mean"] = 0.5  # the first draw has .4, the reference .5 in both
    (right,) = [one for one in targets(table) if "worse" in one.what and "right" in one.what]
    assert right.measured == "16.7% of the settings (8.3% of single draws)"
    assert not right.reached


def test_page_shows_what_the_table_says(table):
    page = standings(table)
    assert "2 of 19 sets, 6 of 6 kinds of links, 2 draws of them." in page
    fewer = [one for one in table if (one["method"], one["repeat"]) != ("PPC", 1)]
    assert "2 draws of them, 1 of `PPC`." in standings(fewer)
    lines = page.splitlines()
    assert lines[4].startswith(
        "| LinkedClustering | 0.625 | 0.700 | 0.700 | 0.700 | 0.700 | 0.700 | 8% | 0% | 2 |"
    )
    (hard,) = [line for line in lines if line.startswith("| COPKMeans")]
    assert hard == "| COPKMeans | 0.500 | 0.500 | 0.500 |  |  |  | 0% |  | 2 |"
    assert "| PPC, now | 0.580 | 0.580 | 0.580 | 0.400 | 0.400 | 0.400 | 0% | 100% |" in changes(table)
    assert "targets are reached" in target_table(table)
    text = details(table)
    assert "| PPC | +0.080 | +0.080 | +0.080 | -0.100 | -0.100 | -0.100 | 0% | 100% |" in text
    assert "| LinkedClustering | 0.625 ±" in text
    assert text.endswith("None.\n")


def test_an_unfinished_run_leaves_gaps_and_no_verdicts(table):
    part = [one for one in table if one["repeat"] == 0 and (one["links"], one["flip"]) == ("10 %", 0.0)]
    lines = standings(part).splitlines()
    assert lines[0] == "2 of 19 sets, 1 of 6 kinds of links, 1 draw of them. The run is not finished."
    assert lines[4].startswith("| PPC | 0.580 |  |  |  |  |  | 0% |  |")
    verdicts = {target.what: target.reached for target in targets(part)}
    assert verdicts["LinkedClustering, 10 %, right"] is False
    assert verdicts["LinkedClustering, 30 %, right"] is None
    assert verdicts["PPC, 10 %, 15 % wrong: not below itself without links"] is None
    assert "not measured yet" in target_table(part)
    assert draw_leaderboard(part).axes


def test_picture_has_a_line_for_every_method(table):
    figure = draw_leaderboard(table)
    labels = [text.get_text() for text in figure.axes[0].get_yticklabels()]
    assert labels[-1] == "LinkedClustering"
    assert set(labels) >= {*METHODS, CHOSEN_WITHOUT}


def test_table_survives_its_file(table, tmp_path):
    keys = ("repeat", "set", "links", "flip")
    full = [{**{key: one[key] for key in keys}, **one, "low": None, "high": None} for one in table]
    (tmp_path / "table.csv").write_text(table_text(full))
    assert scores(read_table(tmp_path / "table.csv")) == scores(table)


@pytest.mark.usefixtures("fewest_candidates")
def test_a_quick_trial_runs_every_method(monkeypatch):
    monkeypatch.setattr(board, "N_ROWS", 40)
    try:
        rows = board.leaderboard_trial(0, 0, "iris", "10 %", WRONG)
    finally:
        board._without_links.cache_clear()  # fits of 40 rows
    assert not [one for one in rows if "problem" in one]
    kinds = {name for name, method in board.EVERYTHING.items() if method.links != "hard"}
    assert {one["method"] for one in rows} == {
        *(name for name in kinds if not name.startswith("peer")),
        CHOSEN_WITHOUT,
    }
