"""Names that are too coarse, too fine or right: the tasks are as told, and so is every measure."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from experiments.classes import coarse, page, tasks
from experiments.framework.data_files import DataMissing

RESULTS = Path(__file__).parents[2] / "docs" / "results"


class Fake:
    """A CPPC that returns prepared labels and remembers how it was asked."""

    asked: list[dict] = []  # noqa: RUF012
    labels = staticmethod(lambda k, X, y: y)

    def __init__(self, n_components=None, *, beliefs, random_state):
        self.settings = {"k": n_components, "beliefs": beliefs, "seed": random_state}

    def fit(self, X, y):
        Fake.asked.append({**self.settings, "X": X, "y": y})
        k = self.settings["k"]
        self.labels_ = np.asarray(Fake.labels(k, X, y))
        self.n_occupied_ = len(np.unique(self.labels_))
        self.separability_ = coarse_separability(y, self.labels_)
        if k is not None:
            self.criteria_ = {"bic": k, "icl": -k, "cbic": abs(k - 3)}
        return self


def coarse_separability(y, labels):
    """Pair by pair, off the diagonal."""
    classes = np.unique(y)
    return np.array(
        [[2 * np.equal.outer(labels[y == a], labels[y == b]).mean() - 1 for b in classes] for a in classes]
    )


@pytest.fixture
def fake(monkeypatch):
    Fake.asked.clear()
    monkeypatch.setattr(Fake, "labels", staticmethod(lambda k, X, y: y))
    monkeypatch.setattr(coarse, "CPPC", Fake)
    return Fake


@pytest.mark.parametrize("n_classes", [2, 3, 4, 5, 10])
def test_two_classes_share_a_name(n_classes):
    y = np.arange(n_classes)
    names = [coarse.coarse_names(y, draw) for draw in range(6)]
    assert all(set(np.bincount(one)) <= {1, 2} for one in names)
    if n_classes > 2:
        assert all(len(np.unique(one)) == (n_classes + 1) // 2 for one in names)
        assert len({tuple(one) for one in names}) > 1


def test_second_name_is_given_to_half_of_one_class():
    y = np.repeat([0, 1, 2], [30, 41, 50])
    drawn = [tasks.doubled_names(y, draw) for draw in range(30)]
    for names, doubled in drawn:
        assert np.array_equal(np.where(names == 3, doubled, names), y)
        assert (names == 3).sum() == (y == doubled).sum() // 2
    assert {doubled for _, doubled in drawn} == {0, 1, 2}


def test_gaussians_have_the_moments_of_the_classes():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 20_000)
    X = rng.exponential(size=(40_000, 2)) @ np.array([[1.0, 0.5], [0.0, 2.0]]) + 9.0 * y[:, None]
    drawn = tasks.single_gaussians(X, y, 0)
    for name in (0, 1):
        np.testing.assert_allclose(drawn[y == name].mean(axis=0), X[y == name].mean(axis=0), atol=0.05)
        np.testing.assert_allclose(np.cov(drawn[y == name].T), np.cov(X[y == name].T), rtol=0.1, atol=0.1)
        skewness = [
            (((one - one.mean()) / one.std()) ** 3).mean()
            for one in (X[y == name][:, 0], drawn[y == name][:, 0])
        ]
        assert skewness[0] > 1.5 > 0.1 > abs(skewness[1])


@pytest.mark.parametrize("name", ["digits", "wine"])
def test_rows_are_those_of_the_classes(name):
    X, y = tasks.load_set(name, 150)
    assert X.shape == (150, 10)
    assert len(np.unique(y)) == {"digits": 10, "wine": 3}[name]
    # Principal components: no correlations, and falling variances.
    covariance = np.cov(X.T)
    np.testing.assert_allclose(covariance, np.diag(np.diag(covariance)), atol=1e-10)
    assert (np.diff(np.diag(covariance)) <= 0).all()


def test_halves_take_turns():
    assert list(tasks.SETS) == sorted(tasks.SETS)
    assert [tasks.half_of(name) for name in tasks.SETS] == ["A", "B"] * 4


def test_missing_sets_are_told(monkeypatch):
    monkeypatch.delenv("LINKWISE_DATA", raising=False)
    for name in set(tasks.SETS) - {"digits", "wine"}:
        with pytest.raises(DataMissing, match="LINKWISE_DATA"):
            coarse.coarse_classes(0, name)


def test_by_hand_divides_inside_classes_only():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(240, 2)) + np.repeat([[0, 0], [9, 0], [0, 9], [0, 9.5]], 60, axis=0)
    y = np.repeat([0, 0, 1, 2], 60)
    labels = coarse.by_hand(X, y, 0)
    assert adjusted_rand_score(np.repeat([0, 1, 2, 3], 60), labels) == 1.0


def test_coarse_classes_are_measured_against_the_truth(fake, monkeypatch):
    """The fit sees the names and not the truth; each measure of a known clustering is counted by hand."""
    truth = np.repeat([0, 1, 2, 3], 10)
    monkeypatch.setattr(coarse, "load_set", lambda name, n_rows: (np.zeros((40, 1)), truth))
    monkeypatch.setattr(coarse, "coarse_names", lambda y, draw: y // 2)
    monkeypatch.setattr(coarse, "by_hand", lambda X, y, seed: np.arange(40) % 2)
    labels = np.where(np.arange(40) == 39, 0, truth)  # a row of the last class strays into the first
    monkeypatch.setattr(Fake, "labels", staticmethod(lambda k, X, y: labels))
    given, hand, found = coarse.coarse_classes(2, "wine")
    (asked,) = fake.asked
    assert np.array_equal(asked["y"], truth // 2)
    assert (asked["k"], asked["seed"]) == (None, 2)
    assert asked["beliefs"].tolist() == [[0.1, -1.0], [-1.0, 0.1]]
    assert (given["clusters"], given["strayed"], given["below"]) == (2, 0.0, 0.0)
    assert (hand["clusters"], hand["strayed"], hand["below"]) == (2, 0.5, 1.0)
    assert (found["clusters"], found["strayed"], found["below"]) == (4, pytest.approx(1 / 40), 0.0)
    assert found["ari"] == adjusted_rand_score(truth, labels) > given["ari"]


def test_every_criterion_chooses_among_the_same_fits(fake, monkeypatch):
    truth = np.arange(24) % 4
    monkeypatch.setattr(coarse, "load_set", lambda name, n_rows: (np.zeros((24, 1)), truth))
    monkeypatch.setattr(coarse, "coarse_names", lambda y, draw: y // 2)
    monkeypatch.setattr(Fake, "labels", staticmethod(lambda k, X, y: np.arange(24) % (k or 5)))
    rows = {row["method"]: row for row in coarse.coarse_criteria(0, "wine")}
    assert [asked["k"] for asked in fake.asked] == [None, 2, 3, 4, 5, 6]
    clusters = {name: row["clusters"] for name, row in rows.items()}
    assert clusters == {
        coarse.AS_THEY_ARE: 2, coarse.AUTO: 5, "K by bic": 2, "K by icl": 6, "K by cbic": 3,
        "best K, if known": 4,
    }  # fmt: skip


@pytest.mark.parametrize("belief", coarse.BELIEFS)
def test_only_the_two_names_are_in_doubt(fake, belief):
    (row,) = coarse.doubled_classes(1, "wine", belief)
    (asked,) = fake.asked
    _, doubled = tasks.doubled_names(tasks.load_set("wine", 800)[1], 1)
    expected = 2.0 * np.eye(4) - 1.0
    expected[doubled, 3] = expected[3, doubled] = belief
    assert np.array_equal(asked["beliefs"], expected)
    assert (row["merged"], row["apart"], row["clusters"]) == (0.0, 1.0, 4)  # the fake keeps all names
    assert row["ari"] < 1.0


def test_merged_names_are_counted_as_such(fake, monkeypatch):
    monkeypatch.setattr(Fake, "labels", staticmethod(lambda k, X, y: np.where(y == 3, 1, y)))
    _, truth = tasks.load_set("wine", 800)
    draw = next(draw for draw in range(20) if tasks.doubled_names(truth, draw)[1] == 1)
    (row,) = coarse.doubled_classes(draw, "wine", 0.5)
    assert (row["merged"], row["apart"], row["ari"], row["clusters"]) == (1.0, 0.0, 1.0, 3)


def test_control_doubts_two_true_classes(fake, monkeypatch):
    monkeypatch.setattr(Fake, "labels", staticmethod(lambda k, X, y: np.zeros(len(y), dtype=int)))
    (row,) = coarse.distinct_classes(0, "wine", 0.5)
    (asked,) = fake.asked
    assert np.array_equal(asked["y"], tasks.load_set("wine", 800)[1])
    assert sorted(asked["beliefs"][np.triu_indices(3, k=1)].tolist()) == [-1.0, -1.0, 0.5]
    assert np.array_equal(asked["beliefs"], asked["beliefs"].T)
    assert (row["merged"], row["apart"], row["ari"]) == (1.0, 0.0, 0.0)


def test_divided_classes_are_those_without_a_main_cluster():
    classes = np.repeat([0, 1, 2], 100)
    labels = np.concatenate([np.repeat([0, 3], [95, 5]), np.repeat([1, 4], [94, 6]), np.full(100, 2)])
    assert coarse.divided_share(classes, labels) == pytest.approx(1 / 3)


def test_single_gaussians_replace_the_rows(fake):
    X, y = tasks.load_set("wine", 1500)
    for kind in coarse.KINDS:
        coarse.nothing_to_do(3, "wine", kind)
    assert np.array_equal(fake.asked[0]["X"], X)
    assert np.array_equal(fake.asked[1]["X"], tasks.single_gaussians(X, y, 3))
    assert all(np.array_equal(asked["y"], y) for asked in fake.asked)


def test_wine_is_found_again_and_names_stay_apart():
    """The real fit, on the smallest set: two draws of coarse names, one cultivar with two names."""
    rows = [coarse.coarse_classes(draw, "wine")[-1] for draw in range(2)]
    assert all(row["strayed"] == 0.0 and row["below"] == 0.0 for row in rows)
    assert np.mean([row["ari"] for row in rows]) > 0.9
    assert coarse.doubled_classes(0, "wine", 0.5)[0]["merged"] == 1.0
    assert coarse.doubled_classes(0, "wine", -0.5)[0]["apart"] == 1.0


def tidy(measure, mean, **setting):
    return {**setting, "measure": measure, "mean": mean}


def test_table_of_coarse_classes_means_sets_and_halves():
    found = {"digits": 0.9, "letters": 0.5, "satimage": 0.6}  # halves A, B, A
    table = [tidy("ari", mean, set=name, method="CPPC") for name, mean in found.items()]
    table += [tidy("below", float(name == "letters"), set=name, method="CPPC") for name in found]
    table += [tidy("strayed", 0.01, set=name, method="CPPC") for name in found]
    last = page.coarse_table(table).strip().splitlines()[-1]
    cells = [cell.strip() for cell in last.strip("|").split("|")]
    assert cells == ["CPPC", ".67", ".75", ".50", "33%", "1.0%", ".90", ".50", ".60"]


def test_table_of_doubled_classes_is_by_belief():
    table = [
        tidy(measure, mean, set=name, belief=belief, method="CPPC")
        for belief, name, means in [
            (0.5, "wine", (1.0, 0.0, 1.0)), (0.5, "digits", (0.5, 0.25, 0.9)),
            (-1.0, "wine", (0.0, 1.0, 0.8)),
        ]
        for measure, mean in zip(("merged", "apart", "ari"), means, strict=True)
    ]  # fmt: skip
    lines = page.doubled_table(table).strip().splitlines()[2:]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert cells == [["−1", "0%", "100%", ".80"], ["0.5", "75%", "12%", ".95"]]


def test_included_tables_are_what_was_measured():
    for name, text in page.class_includes(RESULTS).items():
        assert (RESULTS / name).read_text(encoding="utf-8") == text
