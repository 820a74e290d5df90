"""Cells are paired, resumable and scored on the right rows; summaries agree with counting by hand."""

from __future__ import annotations

import numpy as np
import pytest

from linkwise.experiments import leaderboard as board
from linkwise.experiments.leaderboard_data import SETS, draw_links, half_of, load_set
from linkwise.experiments.leaderboard_methods import COUNTERPARTS, METHODS
from linkwise.experiments.leaderboard_summary import losses, read_cells, summarise

METHOD, WITHOUT = "PCKMeans", "PCKMeans, no links"


def cell(name, flip, draw, method, score, *, status="ok", share="0.3", half="A"):
    return {
        "set": name, "half": half, "share": share, "flip": flip, "draw": str(draw), "method": method,
        "status": status, "ari_unlinked": "" if score is None else str(score),
    }  # fmt: skip


def test_every_method_has_a_counterpart_without_links():
    assert {method.counterpart for method in METHODS.values()} <= set(COUNTERPARTS)
    assert all(method.links is None for method in COUNTERPARTS.values())


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


def test_run_resumes_without_measuring_again(tmp_path, monkeypatch):
    path = tmp_path / "cells.csv"
    settings = {"sets": ("iris",), "shares": (0.2,), "flips": (0.0, 0.1), "n_draws": 1, "n_rows": 150}
    board.run_cells(path, methods=(METHOD, WITHOUT), **settings)
    first = path.read_text()
    cells = read_cells(path)
    assert [c["method"] for c in cells] == [METHOD, WITHOUT, METHOD]
    assert {c["status"] for c in cells} == {"ok"}

    monkeypatch.setattr(board, "load_set", lambda *_: pytest.fail("measured a cell that is in the file"))
    board.run_cells(path, methods=(METHOD, WITHOUT), **settings)
    assert path.read_text() == first

    monkeypatch.undo()
    board.run_cells(path, methods=(METHOD, WITHOUT, "COPKMeans"), **settings)
    assert path.read_text().startswith(first)
    assert [c["method"] for c in read_cells(path)[3:]] == ["COPKMeans", "COPKMeans"]


def test_cells_do_not_depend_on_the_number_of_processes(tmp_path):
    settings = {"sets": ("iris",), "shares": (0.2,), "flips": (0.0, 0.2), "n_draws": 1, "n_rows": 100}
    scores = []
    for n_jobs in (1, 2):
        board.run_cells(tmp_path / f"{n_jobs}.csv", methods=("MPCKMeans",), n_jobs=n_jobs, **settings)
        cells = read_cells(tmp_path / f"{n_jobs}.csv")
        scores.append(sorted((c["flip"], c["ari"], c["accuracy_unlinked"]) for c in cells))
    assert scores[0] == scores[1]


def test_missing_data_are_skipped_and_named(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("LINKWISE_DATA", raising=False)
    board.run_cells(tmp_path / "cells.csv", ("iris", "bupa"), (0.2,), (0.0,), 1, 50, (METHOD,))
    assert {c["set"] for c in read_cells(tmp_path / "cells.csv")} == {"iris"}
    assert "skipped bupa" in capsys.readouterr().out


def test_impossible_links_and_errors_are_recorded(monkeypatch):
    y = np.array([0, 0, 1, 1])
    X = y[:, np.newaxis].astype(float)
    linked = np.array([True, True, True, False])
    task = board.Task("iris", 0.2, 0.2, 0, ())
    must, cannot = np.array([[0, 1], [1, 2]]), np.array([[0, 2]])
    row = board._run_method(METHODS["COPKMeans"], X, y, must, cannot, linked, task)
    assert row[0] == "infeasible"
    assert row[1:] == [""] * 6

    broken = METHODS["PCKMeans"]._replace(build=lambda *_: None)
    assert board._run_method(broken, X, y, must, cannot, linked, task)[0].startswith("AttributeError")


def test_scores_count_unlinked_rows_after_matching_on_all():
    class Fixed:
        labels_ = np.array([0, 0, 0, 1, 1, 0])

        def fit(self, X, constraints=None):
            return self

    y = np.array([0, 0, 0, 1, 1, 1])
    linked = np.array([True, True, False, False, False, False])
    method = METHODS["PCKMeans"]._replace(build=lambda *_: Fixed())
    row = board._run_method(
        method, np.zeros((6, 1)), y, np.array([[0, 1]]), np.zeros((0, 2), int), linked,
        board.Task("iris", 0.2, 0.0, 0, ()),
    )  # fmt: skip
    assert row[0] == "ok"
    assert float(row[3]) == pytest.approx(5 / 6, abs=1e-4)
    assert float(row[4]) == pytest.approx(3 / 4, abs=1e-4)
    assert float(row[5]) == 1.0


def test_summary_of_two_settings_by_hand():
    cells = [
        cell("iris", "0", 0, METHOD, 0.5), cell("iris", "0", 1, METHOD, 0.7),
        cell("iris", "0", 0, "MPCKMeans", 0.9), cell("iris", "0", 1, "MPCKMeans", 0.5),
        cell("iris", "", 0, WITHOUT, 0.8), cell("iris", "", 1, WITHOUT, 0.6),
        cell("wine", "0", 0, METHOD, 0.9, half="B"), cell("wine", "0", 0, "MPCKMeans", 0.1, half="B"),
        cell("wine", "", 0, WITHOUT, 0.2, half="B"),
    ]  # fmt: skip
    head, rows = summarise(cells)
    table = {row[0]: dict(zip(head, row, strict=True)) for row in rows}
    assert table[METHOD]["settings"] == 2
    assert table[METHOD]["ari_unlinked"] == pytest.approx(0.75)
    assert table[METHOD]["rank"] == pytest.approx(0.5)
    assert (table[METHOD]["wins"], table["MPCKMeans"]["wins"]) == (1, 1)
    assert (table[METHOD]["better"], table[METHOD]["worse"]) == (1, 1)
    assert table[METHOD]["gain"] == pytest.approx((-0.1 + 0.7) / 2)
    assert table["MPCKMeans"]["better"] == table["MPCKMeans"]["worse"] == 0

    only_a = summarise(cells, half="A")[1]
    assert [row[0] for row in only_a] == ["MPCKMeans", METHOD]
    assert losses(cells)[1] == [[METHOD, "iris", "0", pytest.approx(0.7), pytest.approx(0.6)]]


def test_method_infeasible_in_one_draw_is_left_out_of_the_setting():
    cells = [
        cell("iris", "0.2", 0, METHOD, 0.5), cell("iris", "0.2", 1, METHOD, 0.7),
        cell("iris", "0.2", 0, "COPKMeans", 0.9),
        cell("iris", "0.2", 1, "COPKMeans", None, status="infeasible"),
        cell("iris", "", 0, WITHOUT, 0.1), cell("iris", "", 1, WITHOUT, 0.1),
    ]  # fmt: skip
    _, rows = summarise(cells)
    assert [row[:3] for row in rows] == [[METHOD, 1, pytest.approx(0.6)]]


def test_draws_that_some_method_lacks_are_not_compared():
    cells = [
        cell("iris", "0", 0, METHOD, 0.5), cell("iris", "0", 1, METHOD, 0.9),
        cell("iris", "0", 0, "MPCKMeans", 0.6),
    ]  # fmt: skip
    table = {row[0]: row[2] for row in summarise(cells)[1]}
    assert table == {METHOD: pytest.approx(0.5), "MPCKMeans": pytest.approx(0.6)}


def test_noise_level_selects_settings_and_shares_the_fits_without_links():
    cells = [
        cell("iris", "0", 0, METHOD, 0.5), cell("iris", "0.1", 0, METHOD, 0.3),
        cell("iris", "", 0, WITHOUT, 0.4),
    ]  # fmt: skip
    gains = {flip: summarise(cells, flip=flip)[1][0][7] for flip in ("0", "0.1")}
    assert gains == {"0": pytest.approx(0.1), "0.1": pytest.approx(-0.1)}
