"""Hard groups link all pairs of the rows drawn; few labels are as many as said, and free rows are scored."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from experiments.leaderboard import few_labels, hard_groups, unknown_number
from experiments.leaderboard.data import SETS, draw_links, half_of
from experiments.leaderboard.few_labels import CLASSIFIERS, few_labels_trial, labels_of_few
from experiments.leaderboard.hard_groups import hard_groups_trial, hard_pairs_trial, links_among
from experiments.leaderboard.leaderboard import Clustered, cluster
from experiments.leaderboard.page import few_labels as few_labels_text
from experiments.leaderboard.page import hard_groups as hard_groups_text
from experiments.leaderboard.page import other_packages as other_packages_text
from experiments.leaderboard.page import unknown_number as unknown_number_text
from experiments.leaderboard.real_sets import REAL_SETS
from experiments.leaderboard.unknown_number import unknown_number_trial


def test_links_among_rows_are_all_pairs_and_true():
    y = np.array([0, 1, 0, 2, 1, 0])
    links = links_among(np.array([0, 1, 2, 4]), y)
    assert links.n_pairs == 6
    assert np.isinf(links.weights).all()
    assert {tuple(pair) for pair in links.must_link} == {(0, 2), (1, 4)}
    assert {tuple(pair) for pair in links.cannot_link} == {(0, 1), (0, 4), (1, 2), (2, 4)}


def test_broken_hard_links_are_counted(monkeypatch):
    y = np.repeat([0, 1], 20)
    monkeypatch.setattr(hard_groups, "load_real", lambda *_: (np.zeros((40, 1)), y))
    given = []

    def one_cluster(method, X, k, seed, links, **known):
        given.append(links)
        return Clustered(np.zeros(len(X), dtype=np.int64), 0.0)

    monkeypatch.setattr(hard_groups, "cluster", one_cluster)
    (row,) = hard_groups_trial(0, "iris", 0.1, "choice")
    (links,) = given
    assert links.n_pairs == 6
    assert row["broken"] == len(links.cannot_link) > 0
    rows = hard_groups_trial(0, "iris", 0.1, "no links")
    assert not [row for row in rows if "broken" in row]
    assert given[1:] == [None] * len(rows)
    hard_groups_trial(0, "iris", 0.1, "spectral with links")
    assert np.array_equal(given[-1].pairs, links.pairs)


def test_hard_pairs_are_true_and_drawn_among_all_rows(monkeypatch):
    y = np.arange(100) % 3
    monkeypatch.setattr(hard_groups, "load_real", lambda *_: (np.zeros((100, 1)), y))
    given = []

    def truth(method, X, k, seed, links, **known):
        given.append(links)
        return Clustered(y.copy(), 0.0)

    monkeypatch.setattr(hard_groups, "cluster", truth)
    for share, n_pairs in ((0.05, 10), (0.1, 45)):
        (row,) = hard_pairs_trial(0, "iris", share, "choice")
        links = given[-1]
        assert links.n_pairs == n_pairs
        assert np.isinf(links.weights).all()
        assert ((y[links.pairs[:, 0]] == y[links.pairs[:, 1]]) == (links.weights > 0)).all()
        assert (row["broken"], row["ari"]) == (0, 1.0)
    # 45 pairs of ten rows would touch ten rows.
    assert len(np.unique(given[-1].pairs)) > 40
    hard_pairs_trial(1, "iris", 0.1, "choice")
    assert not np.array_equal(given[-1].pairs, links.pairs)


@pytest.mark.usefixtures("fewest_candidates")
@pytest.mark.parametrize("trial", [hard_groups_trial, hard_pairs_trial])
def test_hard_links_are_kept_by_all_estimators(trial, monkeypatch):
    X, y = hard_groups.load_real("wine")
    monkeypatch.setattr(hard_groups, "load_real", lambda *_: (X[::3], y[::3]))
    for group in ("k-means with links", "spectral with links", "mixtures with links", "choice"):
        rows = trial(0, "wine", 0.1, group)
        assert {row["broken"] for row in rows} == {0}


def test_few_labels_are_of_every_class():
    y = np.repeat([0, 1, 2], [50, 20, 3])
    known = labels_of_few(y, 5, np.random.default_rng(3))
    assert np.bincount(known[known >= 0]).tolist() == [5, 5, 1]
    assert (known[known >= 0] == y[known >= 0]).all()


@pytest.mark.usefixtures("fewer_candidates")
def test_classifiers_see_no_label_of_a_free_row_and_free_rows_are_scored(monkeypatch):
    X = np.linspace(0.0, 1.0, 40)[:, None]
    y = (X[:, 0] > 0.5).astype(np.int64)
    monkeypatch.setattr(few_labels, "load_set", lambda *_: (X, y))
    seen = []

    class Spy:
        def fit(self, X, known):
            seen.append(known)
            return self

        def predict(self, X):
            return np.arange(len(X)) % 2

    monkeypatch.setattr(few_labels, "CLASSIFIERS", {"spy": lambda seed: Spy()})
    monkeypatch.setattr(few_labels, "_LINKED", {})
    (ours, spy) = few_labels_trial(0, "iris")
    assert ours["method"] == "LinkedClustering"
    assert ours["ari"] > 0.8
    (known,) = seen
    assert np.bincount(known).tolist() == [5, 5]
    rng = np.random.default_rng(few_labels.zlib.crc32(b"iris labels 0"))
    free = labels_of_few(y, 5, rng) < 0
    assert spy["ari"] == pytest.approx(adjusted_rand_score(y[free], (np.arange(40) % 2)[free]))


def test_cluster_passes_labels_on():
    class Model:
        def fit(self, X, labels=None):
            self.labels_ = labels
            return self

    found = cluster(few_labels.Method(lambda *_: Model()), np.zeros((3, 1)), 2, 0, None, labels=[0, 1, -1])
    assert found.labels.tolist() == [0, 1, -1]


@pytest.mark.usefixtures("fewest_candidates")
def test_the_number_of_clusters_is_found_and_free_rows_are_scored(monkeypatch):
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(3), 20)
    X = 9.0 * np.eye(3)[y] + 0.5 * rng.standard_normal((60, 3))
    monkeypatch.setattr(unknown_number, "load_set", lambda *_: (X, y))
    rows = unknown_number_trial(0, "iris", "none")
    assert len(rows) == 4
    assert all(row == {"method": row["method"], "ari": 1.0, "off": 0.0} for row in rows)
    # A number that is not found is off by the difference, and linked rows are not scored.
    linked = draw_links(y, 0.3, 0.0, 0)[2]
    wrong = np.where(linked, np.arange(60), y)
    monkeypatch.setattr(unknown_number, "_by_bic", lambda *_: wrong)
    *others, by_bic = unknown_number_trial(0, "iris", "30 %")
    assert [row["method"] for row in [*others, by_bic]] == [row["method"] for row in rows]
    assert others == rows[:3]
    assert by_bic["ari"] == 1.0
    assert by_bic["off"] == len(np.unique(wrong)) - 3 > 0


def row(mean, **values):
    return {"measure": "ari", "n": 2, "mean": mean, "text": "", **values}


def test_table_of_unknown_numbers():
    a, b = (next(name for name in SETS if half_of(name) == half) for half in "AB")
    table = [
        row(0.9, set=a, links="none", method="one"), row(0.5, set=b, links="none", method="one"),
        row(0.4, set=b, links="10 %", method="one"),
        row(2.0, set=b, links="10 %", method="one") | {"measure": "off"},
    ]  # fmt: skip
    lines = unknown_number_text(table).splitlines()
    assert lines[2].startswith(
        "| method | no links | no links, half B | no links, clusters off | links of 10 %"
    )
    assert lines[4].startswith("| one | 0.700 | 0.500 |")
    assert lines[4].endswith("| 0.400 | 0.400 | 2.000 |")


def test_tables_are_means_over_sets():
    a, b = (next(name for name in SETS if half_of(name) == half) for half in "AB")
    lda = next(iter(CLASSIFIERS))
    table = [
        row(0.9, set=a, method="LinkedClustering"), row(0.5, set=b, method="LinkedClustering"),
        row(0.7, set=a, method=lda), row(0.8, set=b, method=lda),
    ]  # fmt: skip
    text = few_labels_text(table)
    assert "2 of 19 sets, 2 draws." in text
    assert f"| {lda} | 0.750 | 0.700 | 0.800 | 0.000 |" in text.splitlines()[4]
    assert "| LinkedClustering | 0.700 | 0.900 | 0.500 | 0.300 |" in text
    table = [
        row(0.5, set=a, share=0.05, method="PPC"), row(0.7, set=b, share=0.05, method="PPC"),
        row(0.8, set=a, share=0.1, method="PPC"), row(0.6, set=b, share=0.1, method="PPC"),
        row(1.5, set=a, share=0.05, method="PPC", measure="broken"),
    ]  # fmt: skip
    text = hard_groups_text(table)
    assert "| PPC | 0.600 | 0.700 |  |  | 3 |" in text
    assert f"2 of {len(REAL_SETS)} sets, 2 draws." in text
    assert f"| {b} | 10% | 0.600 |" in text
    assert "| PPC | 0.600 |  | 3 |" in hard_groups_text([table[0], table[1], table[2], table[4]])
    table += [row(0.3, set=a, share=share, method="other") for share in (0.05, 0.1)]
    text = hard_groups_text(table)
    assert f"1 of {len(REAL_SETS)} sets" in text
    assert "| PPC | 0.500 | 0.800 |  |  | 3 |" in text
    assert "| other | 0.300 | 0.300 |  |  |  |" in text
    table += [row(0.5, set=name, share=share, method="PPC") for name in "xyz" for share in (0.05, 0.1)]
    text = hard_groups_text(table)
    assert f"5 of {len(REAL_SETS)} sets, 2 draws. other has clustered 1 of them: see below." in text
    assert "| other |" not in text.split("<details>")[0].split("| method |")[1]
    assert f"| {a} | 10% | 0.800 | 0.300 |" in text
    assert "| x | 10% | 0.500 |  |" in text
    table = [
        row(0.5, set=a, flip=0.0, method="peer X"),
        row(0.9, set=a, flip=0.0, method="peer X", measure="kept"),
        row(1.0, set=b, flip=0.0, method="peer X", measure="problem"),
    ]
    assert "| X | 0.500 | 0.900 | 2 |  |  |  |" in other_packages_text(table)
