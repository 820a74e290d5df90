"""The texture experiment: blocks, links and engines."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from experiments.framework.data_files import DataMissing
from experiments.ppc import texture
from linkwise.datasets import make_texture_mosaic
from linkwise.inference.gibbs import gibbs


@pytest.fixture(scope="module")
def few_sweeps():
    """A quarter of the sweeps of Gibbs sampling, which take nine tenths of the time."""
    assert texture.ENGINES["Gibbs"].func is gibbs
    assert texture.ENGINES["Gibbs"].keywords == {"max_sweeps": 200, "n_chains": 1}
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(texture.ENGINES, "Gibbs", partial(gibbs, max_sweeps=50, n_chains=1))
        yield


@pytest.fixture(scope="module")
def rows(few_sweeps):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(texture, "_fits", partial(texture._fits, max_iter=15))
        return {row["method"]: row for row in texture.texture_mosaic(0, "generated")}


def test_blocks_match_their_truth_and_links_its_agreement():
    X, y, (height, width), links = texture._mosaic("generated")
    assert X.shape == (height * width, 5)
    np.testing.assert_array_equal(y.reshape(height, width), make_texture_mosaic(random_state=0)[1][::7, ::7])
    assert links.n_pairs == height * (width - 1) + width * (height - 1)
    wrong = links.violations(y).mean()
    np.testing.assert_allclose(links.weights, 0.5 * np.log((1 - wrong) / wrong))


def test_neighbours_help(rows):
    assert tuple(rows) == (*texture.ENGINES, texture.FROM_CLASSES)
    for engine in ("mean field", "Gibbs", "belief propagation"):
        assert rows[engine]["ari"] > rows["GMM"]["ari"] + 0.2


def test_a_start_at_the_textures_is_at_least_as_good(rows):
    found = rows[texture.FROM_CLASSES]
    assert found["objective"] > rows["mean field"]["objective"] - 1e-3
    assert found["ari"] > 0.9


def test_comparisons_are_with_mean_field(rows):
    assert rows["mean field"]["time_ratio"] == 1.0
    assert rows["mean field"]["over_mean_field"] == 0.0
    assert rows["Gibbs"]["time_ratio"] == rows["Gibbs"]["seconds"] / rows["mean field"]["seconds"]
    assert rows["Gibbs"]["over_mean_field"] == rows["Gibbs"]["ari"] - rows["mean field"]["ari"]
    assert "time_ratio" not in rows["GMM"]


def test_engines_start_from_the_mixture_without_links(few_sweeps, monkeypatch):
    fitted = []

    class Recorder(texture.PPC):
        def fit(self, X, y=None, *, constraints=None):
            fitted.append((self, constraints))
            return super().fit(X, constraints=constraints)

    monkeypatch.setattr(texture, "PPC", Recorder)
    mosaic = texture._mosaic("generated")
    texture._fits(mosaic, 0, max_iter=2)
    (plain, none), *others = fitted
    assert none is None
    assert len(others) == 3
    for model, links in others:
        assert links is mosaic.links
        assert model.mixing == "fixed"
        np.testing.assert_array_equal(model.means_init, plain.means_)


def test_plates_name_the_data_they_need(monkeypatch):
    monkeypatch.delenv("LINKWISE_DATA", raising=False)
    with pytest.raises(DataMissing, match="brodatz_mosaic4"):
        texture.texture_mosaic(0, "curved")
    assert texture.EXPERIMENTS[0].alone
