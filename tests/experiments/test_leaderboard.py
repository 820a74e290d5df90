"""Cells are paired and scored on the right rows; standings and choices agree with counting by hand."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.leaderboard import leaderboard as board
from experiments.leaderboard.choice import CANDIDATES, SITUATIONS, choice_table, choose
from experiments.leaderboard.data import SETS, draw_links, half_of, load_set
from experiments.leaderboard.methods import COUNTERPARTS, METHODS
from experiments.leaderboard.page import leaderboard_tables
from experiments.leaderboard.peers import PEERS
from experiments.leaderboard.summary import losses, scores_by_setting, standings
from linkwise.exceptions import InfeasibleConstraints

METHOD, WITHOUT = "PCKMeans", "PCKMeans, no links"


def row(name, flip, method, mean, *, share=0.3, n=3):
    return {
        "set": name, "share": share, "flip": flip, "method": method, "measure": "ari_unlinked",
        "n": n, "mean": mean, "low": None, "high": None, "text": "",
    }  # fmt: skip


def test_every_method_has_a_counterpart_without_links():
    assert {method.counterpart for method in {**METHODS, **PEERS}.values()} <= set(COUNTERPARTS)
    assert all(method.links is None for method in COUNTERPARTS.values())
    assert not set(METHODS) & set(PEERS)


def test_halves_cover_all_sets_and_differ_by_one_at_most():
    halves = [half_of(name) for name in SETS]
    assert set(halves) == {"A", "B"}
    assert abs(halves.count("A") - halves.count("B")) <= 1
    assert len(SETS) >= 12


def test_sets_are_standardised_and_narrow():
    X, y = load_set("breast_cancer", n_rows=120)
    assert X.shape == (120, 10)
    assert np.array_equal(np.unique(y), [0, 1])
    np.testing.assert_allclose(X.mean(axis=0), 0.0, atol=1e-9)
    np.testing.assert_array_equal(X, load_set("breast_cancer", n_rows=120)[0])


def test_flips_change_kinds_and_not_pairs():
    y = np.arange(200) % 3
    must, cannot, linked = draw_links(y, 0.3, 0.0, seed=5)
    noisy_must, noisy_cannot, noisy_linked = draw_links(y, 0.3, 0.2, seed=5)
    assert len(must) + len(cannot) == 60
    assert (y[must[:, 0]] == y[must[:, 1]]).all()
    assert (y[cannot[:, 0]] != y[cannot[:, 1]]).all()
    assert {*map(tuple, must), *map(tuple, cannot)} == {*map(tuple, noisy_must), *map(tuple, noisy_cannot)}
    wrong = (y[noisy_must[:, 0]] != y[noisy_must[:, 1]]).sum()
    wrong += (y[noisy_cannot[:, 0]] == y[noisy_cannot[:, 1]]).sum()
    assert wrong == 12
    np.testing.assert_array_equal(linked, noisy_linked)
    assert set(np.flatnonzero(linked)) == {*must.ravel(), *cannot.ravel()}


class Recorder:
    """A method that returns fixed labels and remembers its links."""

    def __init__(self, labels):
        self.labels_ = labels
        self.given = []

    def fit(self, X, constraints=None):
        self.given.append(constraints)
        return self

    def fit_predict(self, X):
        self.given.append(None)
        return self.labels_


@pytest.fixture
def recorded(monkeypatch):
    """Three methods that share one recorder, on twelve rows of which the last six carry no links."""
    y = np.array([0, 1] * 6)
    labels = y.copy()
    labels[[0, 11]] = 1 - labels[[0, 11]]
    recorder = Recorder(labels)
    monkeypatch.setattr(board, "load_set", lambda name, n_rows: (np.zeros((12, 1)), y))
    must, cannot = np.array([[0, 2], [1, 3]]), np.array([[0, 1], [4, 5]])
    linked = np.arange(12) < 6
    monkeypatch.setattr(board, "draw_links", lambda *_: (must, cannot, linked))
    for name, links in (("hard", "hard"), ("soft", "soft"), ("unsure", "unsure"), ("plain", None)):
        method = METHODS[METHOD]._replace(build=lambda *_: recorder, links=links)
        monkeypatch.setitem(board.EVERYTHING, name, method)
    return recorder


def test_all_methods_get_the_same_pairs_in_their_own_kind(recorded):
    board.leaderboard_trial(0, "iris", 0.3, 0.2, methods=["hard", "soft", "unsure", "plain"])
    hard, soft, unsure, plain = recorded.given
    assert plain is None
    for links in (hard, soft, unsure):
        np.testing.assert_array_equal(links.pairs, [[0, 1], [0, 2], [1, 3], [4, 5]])
        np.testing.assert_array_equal(np.sign(links.weights), [-1, 1, 1, -1])
    assert np.isinf(hard.weights).all()
    np.testing.assert_allclose(abs(soft.weights), 0.5 * np.log(0.8 / 0.2))
    np.testing.assert_allclose(abs(unsure.weights), 0.5 * np.log(0.9 / 0.1))


def test_scores_count_rows_without_links(recorded):
    (found,) = board.leaderboard_trial(0, "iris", 0.3, 0.0, methods=["soft"])
    y = np.array([0, 1] * 6)
    assert found["satisfaction"] == 0.5  # row 0 is wrong: it breaks 0-2 and 0-1
    from sklearn.metrics import adjusted_rand_score

    assert found["ari_unlinked"] == pytest.approx(adjusted_rand_score(y[6:], [0, 1, 0, 1, 0, 0]))
    assert found["ari"] == pytest.approx(adjusted_rand_score(y, recorded.labels_))


def test_impossible_links_and_errors_are_recorded(recorded, monkeypatch):
    def fail(*_):
        raise ZeroDivisionError("of no use")

    monkeypatch.setitem(board.EVERYTHING, "broken", METHODS[METHOD]._replace(build=fail))

    def impossible(*_):
        return np.array([[0, 1], [1, 2]]), np.array([[0, 2]]), np.arange(12) < 3

    monkeypatch.setattr(board, "draw_links", impossible)
    rows = board.leaderboard_trial(0, "iris", 0.3, 0.0, methods=["hard", "broken", "soft"])
    assert rows[0] == {"method": "hard", "problem": "infeasible"}
    assert rows[1] == {"method": "broken", "problem": "ZeroDivisionError: of no use"}
    assert "ari" in rows[2]
    with pytest.raises(InfeasibleConstraints):
        board.Constraints(12, *impossible()[:2])


def test_standings_of_two_settings_by_hand():
    table = [
        row("iris", 0.0, METHOD, 0.6), row("iris", 0.0, "MPCKMeans", 0.7), row("iris", 0.0, WITHOUT, 0.7),
        row("wine", 0.0, METHOD, 0.9), row("wine", 0.0, "MPCKMeans", 0.1), row("wine", 0.0, WITHOUT, 0.2),
    ]  # fmt: skip
    head, rows = standings(scores_by_setting(table))
    found = {line[0]: dict(zip(head, line, strict=True)) for line in rows}
    assert found[METHOD]["settings"] == 2
    assert found[METHOD]["score"] == pytest.approx(0.75)
    assert found[METHOD]["rank"] == pytest.approx(0.5)
    assert (found[METHOD]["wins"], found["MPCKMeans"]["wins"]) == (1, 1)
    assert (found[METHOD]["better"], found[METHOD]["worse"]) == (1, 1)
    assert found[METHOD]["gain"] == pytest.approx((-0.1 + 0.7) / 2)
    assert found[METHOD]["error"] == pytest.approx(0.4)
    assert found["MPCKMeans"]["better"] == found["MPCKMeans"]["worse"] == 0
    assert losses(scores_by_setting(table))[1] == [[METHOD, "iris", 0.0, pytest.approx(0.7), 0.6]]


def test_settings_are_selected_and_incomplete_methods_left_out():
    table = [
        row("iris", 0.2, METHOD, 0.6), row("iris", 0.2, "COPKMeans", 0.9, n=2),
        row("iris", 0.0, METHOD, 0.5, share=0.05), row("balance_scale", 0.0, METHOD, 0.4),
    ]  # fmt: skip
    assert scores_by_setting(table)["iris", 0.3, 0.2] == {METHOD: 0.6}
    assert set(scores_by_setting(table, flips=(0.2,))) == {("iris", 0.3, 0.2)}
    assert set(scores_by_setting(table, shares=(0.05,))) == {("iris", 0.05, 0.0)}
    half = half_of("balance_scale")
    assert ("balance_scale", 0.3, 0.0) in scores_by_setting(table, half=half)
    assert ("balance_scale", 0.3, 0.0) not in scores_by_setting(table, half="AB".replace(half, ""))


def test_choice_prefers_methods_that_links_seldom_harm():
    def scores(ppc, kmeans):
        return {
            ("iris", 0.3, flip): {
                "PPC soft": p, "PPC, no links": 0.5, "MPCKMeans": k, "MPCKMeans, no links": 0.5,
            }
            for flip, (p, k) in enumerate(zip(ppc, kmeans, strict=True))
        }  # fmt: skip

    methods = ["PPC soft", "MPCKMeans"]
    assert choose(scores([0.6] * 5, [0.9, 0.9, 0.9, 0.9, 0.4]), methods) == "MPCKMeans"
    assert choose(scores([0.6] * 5, [0.9, 0.9, 0.9, 0.4, 0.4]), methods) == "PPC soft"
    # Nobody is careful: the least harmed. Careful, but nothing gained: not chosen either.
    assert choose(scores([0.4] * 5, [0.9, 0.9, 0.9, 0.4, 0.4]), methods) == "MPCKMeans"
    assert choose(scores([0.4, 0.4, 0.9, 0.9, 0.9], [0.3, 0.3, 0.3, 0.9, 0.9]), methods) == "PPC soft"


def test_choice_is_made_on_half_a_alone():
    names = {half: next(name for name in SETS if half_of(name) == half) for half in "AB"}
    table = []
    for half, (ppc, kmeans) in {"A": (0.9, 0.6), "B": (0.2, 0.8)}.items():
        for share in (0.05, 0.15, 0.3):
            for flip in (0.0, 0.1, 0.2):
                for method, mean in (
                    ("PPC soft", ppc), ("PPC hard", ppc), ("PPC, no links", 0.5), ("MPCKMeans", kmeans),
                    ("MPCKMeans, no links", 0.5), ("COPKMeans", kmeans), (WITHOUT, 0.5),
                    ("ConstrainedEM", 0.1), ("ConstrainedSpectral", 0.1),
                    ("ConstrainedSpectral, no links", 0.5),
                ):  # fmt: skip
                    table.append(row(names[half], flip, method, mean, share=share))
    _, rows = choice_table(table)
    assert [line[0] for line in rows] == list(SITUATIONS)
    for line in rows:
        assert line[1] == "PPC"
        assert line[2].startswith("+0.400 ±")
        assert line[4].startswith("-0.300 ±")
        assert line[3].startswith("0 of")
        assert line[5].split(" of ")[0] == line[5].split(" of ")[1]
    page = leaderboard_tables(table)
    assert "2 of 19 sets, 3 draws" in page
    assert f"Sets: {names['A']}." in page
    assert "| soft, sure, few | PPC | +0.400 ± nan | 0 of 1 | -0.300 ± nan | 1 of 1 |" in page


def test_candidates_are_on_the_leaderboard_with_these_links():
    for kind, methods in CANDIDATES.items():
        assert all(METHODS[name].links == kind for name in methods)
