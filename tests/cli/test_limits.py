"""Large inputs: work grows with their size, not with its square, and large images go in pieces."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from linkwise import Constraints, _tables
from linkwise.cli import large_images
from linkwise.cli.fit.report import _class_counts
from linkwise.cli.images import Picture
from linkwise.cli.samples import read_samples
from linkwise.inference import PottsField, marginals
from linkwise.metrics import clustering_accuracy
from tests.repeats import for_seeds


class Counted(str):
    """Text that counts how often it is compared."""

    __slots__ = ()
    compared = 0

    def __eq__(self, other):
        Counted.compared += 1
        return str.__eq__(self, other)

    def __hash__(self):
        return str.__hash__(self)

    def __str__(self):
        return self

    def strip(self, *characters):
        return self


@pytest.fixture(autouse=True)
def fresh_count():
    Counted.compared = 0


def test_names_of_columns_are_compared_a_few_times_each(tmp_path, monkeypatch):
    n = 2000
    path = tmp_path / "wide.csv"
    path.write_text("a\n1\n")
    header = [Counted(f"c{number}") for number in range(n)]
    monkeypatch.setattr(_tables.csv, "reader", lambda *arguments, **options: iter([header]))
    assert len(_tables._header(path, ",")) == n
    assert Counted.compared < 20 * n


def test_labels_are_compared_a_few_times_each():
    n = 2000
    labels = np.array([Counted(f"k{number % (n // 2)}") for number in range(n)] + [None] * 3, dtype=object)
    assert _class_counts(labels) == "? 3, k0 2, k1 2, k2 2"
    assert Counted.compared < 20 * n


def test_six_thousand_columns(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(4, 6000)), columns=[f"c{number}" for number in range(6000)])
    frame["c7"] = [3, 4, 5, 6]
    frame.to_csv(tmp_path / "wide.csv", index=False)
    samples = read_samples(tmp_path / "wide.csv", ignore=[f"c{number}" for number in range(3000, 6000)])
    assert np.array_equal(samples.features, frame.iloc[:, :3000])
    assert (samples.features.dtypes == np.float64).all()
    (note,) = samples.notes
    assert note.startswith("column 'c7' only counts the rows")


def test_too_many_classes_for_a_table(refused, tmp_path):
    pd.DataFrame({"x": np.arange(2001) % 7, "y": [f"k{i}" for i in range(2001)]}).to_csv(
        "data.csv", index=False
    )
    line = refused("classes", "data.csv", "--label", "y")
    assert "names 2001 classes, more than the 2000" in line


# Large images


def mosaic(seed, shape=(40, 53), holes=True, noise=0.8):
    """Three noisy regions, some cells left out; truth of the cells and scores by colour."""
    rng = np.random.default_rng(seed)
    height, width = np.mgrid[: shape[0], : shape[1]]
    truth = (height > 18).astype(int) + (width > 30)
    mask = np.ones(shape, dtype=bool)
    if holes:
        mask[:5, :7] = False
        mask[20, 10:40] = False
    grey = truth + rng.normal(0, noise, shape)
    picture = Picture(grey[:, :, np.newaxis], mask)
    scores = -0.5 * ((picture.colours() - np.arange(3)) / noise) ** 2
    return picture, scores, truth[mask]


@pytest.fixture
def small_bands(monkeypatch):
    monkeypatch.setattr(large_images, "_BAND", 300)


@pytest.mark.parametrize("connectivity", [4, 8])
def test_bands_hold_every_pair_of_neighbours(small_bands, connectivity):
    """The slow way: all pairs of the lattice; each belongs to the bands of its ends and to no other."""
    picture, _, _ = mosaic(0)
    lattice = Constraints.from_grid(
        picture.mask.shape, weight=1.0, connectivity=connectivity, mask=picture.mask
    )
    whole = {tuple(pair) for pair in lattice.pairs.tolist()}
    bands = large_images._bands(picture.mask)
    assert len(bands) > 4
    last = 0
    for band in bands:
        pairs, costs, low, high = large_images._near_band(picture.mask, *band, connectivity, 2.5)
        assert low == last
        last = high
        found = {tuple(sorted(pair)) for pair in pairs.tolist()}
        assert len(found) == len(pairs) == len(costs)
        assert found == {pair for pair in whole if any(low <= end < high for end in pair)}
        assert (costs == 2.5).all()
    assert last == picture.n_samples


@pytest.mark.parametrize("connectivity", [4, 8])
@for_seeds(4)
def test_pieces_score_as_high_as_the_whole(small_bands, seed, connectivity):
    """The labels are as good, under the field of the whole lattice, as those of mean field on all of it."""
    picture, scores, truth = mosaic(seed)
    coupling = 1.2
    lattice = Constraints.from_grid(
        picture.mask.shape, weight=1.0, connectivity=connectivity, mask=picture.mask
    )
    field = PottsField(scores, lattice.pairs, np.full(lattice.n_pairs, coupling))
    whole = marginals(field, "mean_field", 0, max_iter=500).prob.argmax(axis=1)
    found = large_images.label_cells(
        picture, scores.copy(), Constraints(len(truth)), {}, coupling, connectivity, "mean_field", 0
    )
    assert found.converged
    assert field.score(found.labels) >= field.score(whole) - 0.002 * len(truth)
    by_colour = scores.argmax(axis=1)
    assert clustering_accuracy(truth, found.labels) > 0.97 > 0.75 > clustering_accuracy(truth, by_colour)


def test_neighbours_in_other_bands_are_heard(monkeypatch):
    """Rows without evidence take the label of the evidence beyond the border of their band."""
    monkeypatch.setattr(large_images, "_BAND", 20)
    monkeypatch.setattr(large_images, "_BLOCKS", ())
    picture = Picture(np.zeros((6, 20, 1)), np.ones((6, 20), dtype=bool))
    scores = np.zeros((120, 2))
    scores[:20, 1] = 4.0
    found = large_images.label_cells(picture, scores, Constraints(120), {}, 2.0, 4, "mean_field", 0)
    assert (found.labels == 1).all()


def test_known_and_soft_links_of_cells(small_bands):
    """A cell whose label is known keeps it; a soft link pulls a cell without evidence across bands."""
    picture, scores, truth = mosaic(1, holes=False)
    far = [int(np.flatnonzero(truth == 0)[0]), int(np.flatnonzero(truth == 2)[-1])]
    scores[far[0]] = 0.0
    links = Constraints(len(truth), must_link=[far], weight=40.0)
    known = {far[1]: 2, 700: 1}
    found = large_images.label_cells(picture, scores, links, known, 1.0, 4, "mean_field", 0)
    assert found.labels[far[1]] == 2
    assert found.labels[700] == 1
    assert found.labels[far[0]] == 2


@pytest.mark.parametrize("arguments", [[], ["--connectivity", 8], ["--inference", "belief_propagation"]])
def test_segment_a_large_image(invoke, monkeypatch, tmp_path, small_bands, arguments):
    """Fitted to a part, labelled as a whole; hard links between cells off the coarser lattice are kept."""
    monkeypatch.setattr("linkwise.cli.segment._MOST_FITTED", 600)
    picture, _, truth = mosaic(2, noise=0.5)
    grey = np.uint8(np.clip(60 + 60 * picture.pixels[:, :, 0], 0, 255))
    alpha = np.uint8(255 * picture.mask)
    Image.fromarray(np.dstack([grey, grey, grey, alpha])).save("large.png")
    (tmp_path / "links.csv").write_text("y1,x1,y2,x2,kind\n1,51,39,51,cannot\n11,13,13,15,must\n")
    result = invoke("segment", "large.png", "-k", 3, "-l", "links.csv", "--starts", 2, "--json", *arguments)
    assert result.exit_code == 0, result.output
    record = json.loads(result.stdout)
    assert record["n_violated"] == 0
    assert 400 < record["n_fitted"] < 620
    labels = np.asarray(Image.open(tmp_path / "large_segments" / "labels.png"))
    assert (labels[~picture.mask] == 255).all()
    assert labels[1, 51] != labels[39, 51]
    assert labels[11, 13] == labels[13, 15]
    assert clustering_accuracy(truth, labels[picture.mask]) > 0.95
    page = (tmp_path / "large_segments" / "report.html").read_text()
    assert f"fitted to {record['n_fitted']} of {len(truth)} cells" in page
