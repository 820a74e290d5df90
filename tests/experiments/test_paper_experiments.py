"""The protocols are what the papers describe; small runs of the parts that need no data folder."""

from __future__ import annotations

import numpy as np
import pytest

from linkwise import Constraints
from linkwise.datasets import load_bundled
from linkwise.experiments import teachers as teaching
from linkwise.experiments.data_files import DataMissing
from linkwise.experiments.faces import faces
from linkwise.experiments.leaderboard_page import leaderboard_tables, markdown_table
from linkwise.experiments.newsgroups import hmrf_newsgroups
from linkwise.experiments.texture import _blocks, texture_mosaic


def test_teachers_see_the_share_of_points():
    y = np.arange(200) % 4
    links = teaching.teachers_links(y, 0.3, 10, seed=1)
    seen = np.unique(links.pairs)
    assert 45 <= len(seen) <= 60  # six subsets of ten, which may overlap
    assert links.satisfaction(y) == 1.0


def test_must_links_alone_go_to_the_plus_variants(monkeypatch):
    given = []

    class Recorder:
        def __init__(self, n_clusters, **settings):
            self.labels_ = np.zeros(6, dtype=int)

        def fit(self, X, constraints=None):
            given.append(constraints)
            return self

    monkeypatch.setattr(teaching, "COPKMeans", Recorder)
    monkeypatch.setattr(teaching, "ConstrainedEM", Recorder)
    X = np.arange(6.0)[:, np.newaxis]
    links = Constraints(6, [(0, 1), (4, 5)], [(0, 5)])
    scores = teaching.six_algorithms(X, np.array([0, 0, 0, 1, 1, 1]), links, seed=0)
    assert len(scores) == len(teaching.ALGORITHMS)
    assert [None if g is None else (len(g.must_link), len(g.cannot_link)) for g in given] == [
        (2, 0), (2, 1), None, (2, 0), (2, 1),
    ]  # fmt: skip


def test_links_of_all_points_give_the_classes():
    X, y = load_bundled("iris")
    links = Constraints.from_labels(y)
    scores = dict(zip(teaching.ALGORITHMS, teaching.six_algorithms(X, y, links, seed=0), strict=True))
    assert scores["COP +-"] == scores["EM +-"] == 1.0
    assert scores["k-means"] < 1.0


def test_gains_are_paired():
    scores = np.array([[0, 0, 0, 0.1, 0.3, 0.4], [0, 0, 0, 0.5, 0.9, 0.8]])
    assert teaching.gains(scores) == pytest.approx([0.3, 0.1, 0.0, 0.1])


def test_texture_blocks_match_their_truth():
    X, y, (height, width) = _blocks("generated", n_components=5)
    assert X.shape == (height * width, 5)
    assert len(np.unique(y)) == 4


def test_neighbours_help_on_textures():
    head, rows = texture_mosaic("generated", n_draws=1)
    table = {row[0]: dict(zip(head, row, strict=True)) for row in rows}
    assert table["mean_field"]["ari"] > table["no links"]["ari"]
    assert table["mean_field"]["time ratio"] == 1.0


@pytest.mark.parametrize("experiment", [faces, hmrf_newsgroups])
def test_missing_data_are_named(experiment, monkeypatch):
    monkeypatch.delenv("LINKWISE_DATA", raising=False)
    with pytest.raises(DataMissing, match="LINKWISE_DATA"):
        experiment()


def test_tables_name_every_set_and_leave_out_nan():
    cell = {"half": "B", "set": "iris", "share": "0.3", "draw": "0", "status": "ok", "flip": "0"}
    cells = [{**cell, "method": "PCKMeans", "ari_unlinked": "0.8"}]
    page = leaderboard_tables(cells)
    assert "iris 1" in page
    assert "| PCKMeans | 1 | 0.800 | 0.000 | 1 |" in page
    assert markdown_table(["a"], [[float("nan")]]).endswith("|  |")
