"""Smoothing on the grid of pixels: the engine's local optimum, the same whatever the tiles."""

import numpy as np
import pytest

from linkwise.constraints.builders import grid_links
from linkwise.inference import PottsField
from linkwise.raster import classify, read_stack
from linkwise.raster.smoothing import check_smooth, smooth_tile
from tests.raster.raster_cases import scene, write


def random_tile(shape=(13, 17), n_classes=5, seed=0, missing=0.1):
    rng = np.random.default_rng(seed)
    scores = rng.normal(scale=2.0, size=(shape[0] * shape[1], n_classes))
    return scores, rng.random(shape) >= missing


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("n_classes", [1, 2, 5, 9])
def test_no_single_change_raises_the_score_of_the_field(missing, n_classes):
    """Checked against a field of the valid pixels alone."""
    scores, valid = random_tile(n_classes=n_classes, missing=missing)
    coupling = 1.3
    labels, confidence = smooth_tile(scores, valid, coupling)
    inside = valid.ravel()
    assert (labels[~inside] == -1).all()
    pairs, _ = grid_links(valid.shape, 4, valid)
    field = PottsField(scores[inside], pairs, np.full(len(pairs), coupling))
    best, chosen = field.score(labels[inside]), labels[inside]
    assert best >= field.score(scores[inside].argmax(axis=1))
    for pixel in range(len(chosen)):
        changed = np.repeat(chosen[np.newaxis], n_classes, axis=0)
        changed[:, pixel] = np.arange(n_classes)
        gains = np.array([field.score(labelling) for labelling in changed]) - best
        assert gains.max() <= 1e-9
        # The probability of the class given the neighbours, by the field itself.
        assert confidence[inside][pixel] == pytest.approx(1.0 / np.exp(gains).sum(), rel=1e-5)


def test_scores_are_left_alone():
    scores, valid = random_tile()
    before = scores.copy()
    smooth_tile(scores, valid, 1.0)
    np.testing.assert_array_equal(scores, before)


def test_certainty_is_that_of_links():
    assert check_smooth(None) is None
    assert check_smooth(0.5) is None
    assert check_smooth(0.8) == pytest.approx(np.log(4.0))


@pytest.fixture(scope="module")
def noisy(tmp_path_factory):
    values, truth = scene((260, 230), noise=110.0, seed=3)
    values[:, 100:140, 90:97] = -1
    folder = tmp_path_factory.mktemp("noisy")
    return read_stack(write(folder / "noisy.tif", values, nodata=-1)), truth


@pytest.mark.parametrize("window", [37, 64, 100, 128])
def test_tiles_leave_no_seam(noisy, fitted, window):
    stack, _ = noisy
    whole = classify(stack, fitted, smooth=0.8, window=4096)
    parts = classify(stack, fitted, smooth=0.8, window=window)
    assert (whole["classes"] != parts["classes"]).values.mean() <= 1e-3
    assert (whole["classes"].values[100:140, 90:97] == 0).all()
    difference = np.abs(whole["confidence"].values - parts["confidence"].values)
    assert np.nanmean(difference > 1e-5) <= 1e-3


def test_smoothing_helps(noisy, fitted):
    """The labels of the clusters are the classes: CPPC was given them and believes in them."""
    stack, truth = noisy
    data = (stack.values != -1).all(axis=0)
    right = [
        (classify(stack, fitted, smooth=smooth)["classes"].values == truth + 1)[data].mean()
        for smooth in (None, 0.8)
    ]
    assert right[1] > right[0] + 0.05, right
