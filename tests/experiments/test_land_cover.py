"""New legends: the three methods see the same rows and folds, and every measure is what it says."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesClassifier

from experiments.classes import land_cover, land_cover_map, land_cover_scenes
from experiments.classes.land_cover_scenes import Scene
from experiments.framework.data_files import DataMissing
from linkwise.beliefs import ClassBeliefs

NAMES = ["crops", "mixed", "water", "wood"]


def make_scene(seed=0):
    """Crops in two places, mixed and wood in one, water alone; 12 x 20 pixels of which 200 are labelled."""
    rng = np.random.default_rng(seed)
    centres = np.repeat([[0, 0], [14, 0], [0, 14], [0, 14], [14, 14]], 40, axis=0)
    X = rng.normal(size=(200, 2)) + centres
    y = np.repeat(["crops", "crops", "mixed", "wood", "water"], 40)
    beliefs = ClassBeliefs.keep(NAMES).merge("mixed", "wood").keep_whole("crops", strength=0.1)
    labelled = np.zeros((12, 20), dtype=bool)
    labelled.ravel()[:200] = True
    pixels = np.concatenate([X, rng.normal(size=(40, 2))]).reshape(12, 20, 2)
    return Scene(X, y, beliefs, pixels, labelled)


def few_trees(seed):
    return ExtraTreesClassifier(10, random_state=seed, n_jobs=1)


@pytest.fixture(scope="module", autouse=True)
def quick():
    """Ten trees instead of fifty."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(land_cover, "tree_classifier", few_trees)
        yield


@pytest.fixture(scope="module")
def rows(quick):
    return {row["method"]: row for row in land_cover.compare_legends(make_scene(), range(3, 6), seed=0)}


def test_both_ways_of_cppc_are_told(rows):
    assert list(rows) == ["original legend", "EM", "CPPC", land_cover.BY_RANGE]
    assert rows["CPPC"]["k"] == rows["CPPC"]["occupied"] == 4  # found, not given
    assert rows[land_cover.BY_RANGE]["k"] in range(3, 6)
    assert "at_edge" in rows[land_cover.BY_RANGE]
    assert "at_edge" not in rows["CPPC"]


def test_original_legend_is_the_classes(rows):
    row = rows["original legend"]
    assert (row["k"], row["occupied"], row["n_split"], row["n_merged"], row["n_kept"]) == (4, 4, 0, 0, 4)
    assert row["retained"] == pytest.approx(1.0)
    # S is +1 on the diagonal and -1 elsewhere: .9 is missed at crops, 2 at mixed and wood, twice.
    assert row["adherence"] == pytest.approx((0.9**2 + 2 * 2.0**2) / (4 * 16))
    assert row["legend"] == "4 kept"
    assert "stability" not in row


def test_redefined_legend_does_as_believed(rows):
    row = rows["CPPC"]
    assert row["legend"] == "split crops; merged mixed + wood; 1 kept"
    assert (row["occupied"], row["n_split"], row["n_merged"], row["n_kept"]) == (4, 1, 1, 1)
    assert row["adherence"] < 0.001 < rows["original legend"]["adherence"]
    assert row["accuracy"] > 0.98 > 0.9 > rows["original legend"]["accuracy"]
    assert row["cbic"] < rows["original legend"]["cbic"]
    assert row["stability"] == 1.0


def test_em_gets_the_k_of_cppc_and_no_classes(monkeypatch):
    asked = []

    class Recorder(land_cover.PPC):
        def fit(self, X, y=None, **other):
            asked.append((self.n_components, y, other))
            return super().fit(X, **other)

    monkeypatch.setattr(land_cover, "PPC", Recorder)
    found = {row["method"]: row for row in land_cover.compare_legends(make_scene(), [5], seed=0)}
    assert asked == [(4, None, {})]
    assert found["EM"]["k"] == found["CPPC"]["k"] == 4
    assert found[land_cover.BY_RANGE]["k"] == 5


def test_all_legends_are_learned_from_the_same_rows(monkeypatch):
    calls = []

    def recorded(classifier, X, labels, cv):
        calls.append((classifier.random_state, X, cv.n_splits, cv.random_state, cv.shuffle))
        return labels

    monkeypatch.setattr(land_cover, "cross_val_predict", recorded)
    scene = make_scene()
    found = land_cover.compare_legends(scene, [4], seed=3)
    assert len(calls) == 4
    assert all(call[1] is scene.X and (call[0], *call[2:]) == (3, 3, 3, True) for call in calls)
    assert all(row["accuracy"] == row["kappa"] == 1.0 for row in found)


def test_criteria_of_em_are_its_own(rows):
    scene = make_scene()
    # EM is the paper's: starts by k-means, no prior of the covariances.
    plain = {"random_state": 0, "shrinkage": 0.0, "n_init": 1, "init_params": "kmeans"}
    model = land_cover.PPC(rows["EM"]["k"], **plain).fit(scene.X)
    assert rows["EM"]["bic"] == pytest.approx(model.bic(scene.X), rel=1e-6)


def test_stability_counts_decisions_of_another_start(monkeypatch):
    """The second fit merges mixed and wood but leaves crops whole: one decision of three differs.

    The first two fits are those that find K by themselves.
    """
    scene = make_scene()
    together = np.unique(np.where(scene.y == "wood", "mixed", scene.y), return_inverse=True)[1]
    fit = land_cover.CPPC.fit
    n_fits = []

    def second_differs(self, X, y):
        fit(self, X, y)
        n_fits.append(1)
        if len(n_fits) == 2:
            self.contingency_ = land_cover.contingency_table(y, together)[2]
            self.labels_, self.responsibilities_ = together, np.eye(3)[together]
        return self

    monkeypatch.setattr(land_cover.CPPC, "fit", second_differs)
    found = land_cover.new_legend(scene, [5], seed=0)
    kinds = [decision.kind for decision in found.model.report().decisions]
    assert kinds == ["split", "merged", "kept"]
    assert found.stability == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    "beliefs",
    [
        land_cover_scenes.satimage_beliefs,
        land_cover_scenes.matogrosso_beliefs,
        land_cover_scenes.indian_pines_beliefs,
    ],
)
def test_beliefs_are_doubts_about_a_legend_that_is_kept(beliefs):
    stated = beliefs()
    assert list(stated.classes) == sorted(stated.classes)
    diagonal = np.diag(stated.values)
    assert (diagonal > 0).all()
    pairs = stated.values[np.triu_indices(len(diagonal), k=1)]
    assert set(pairs[pairs > 0]) <= {0.3, 0.5}
    assert (pairs == -1.0).sum() > len(pairs) / 2


def test_image_rows_are_the_labelled_pixels(tmp_path, monkeypatch):
    names = np.array(["background", *land_cover_scenes.indian_pines_beliefs().classes])
    rng = np.random.default_rng(0)
    classes = rng.integers(0, 17, size=(15, 30)).astype(np.uint8)
    image = rng.integers(0, 4000, size=(15, 30, 12)).astype(np.uint16)
    np.savez(tmp_path / "indian_pines.npz", X=image, gt=classes, class_names=names)
    monkeypatch.setenv("LINKWISE_DATA", str(tmp_path))
    scene = land_cover_scenes.load_scene("indian_pines")
    assert scene.pixels.shape == (15, 30, 10)
    assert np.allclose(scene.pixels[scene.labelled], scene.X)
    assert np.array_equal(scene.y, names[classes[classes > 0]])
    # Unlabelled pixels have no part in the scaling.
    assert np.allclose(scene.X.mean(axis=0), 0.0)


def test_missing_scene_is_named(monkeypatch):
    monkeypatch.delenv("LINKWISE_DATA", raising=False)
    land_cover._redefined.cache_clear()
    for name in land_cover_scenes.SCENES:
        with pytest.raises(DataMissing, match=name):
            land_cover.land_cover(0, name)


def test_clusters_have_the_colour_of_their_class(tmp_path, monkeypatch):
    from matplotlib.axes import Axes

    scene = make_scene()
    images, legends = [], []
    monkeypatch.setattr(Axes, "imshow", lambda ax, image, **style: images.append(image))
    monkeypatch.setattr(
        Axes, "legend", lambda ax, handles, **style: legends.append({h.get_label() for h in handles})
    )
    labels = np.repeat([0, 1, 2, 2, 4], 40)  # cluster 3 is empty
    names = ("crops (a)", "crops (b)", "mixed + wood", "(none)", "rest (a)")
    land_cover_map.draw_legends(scene, names, labels, land_cover.tree_classifier(0), tmp_path / "map.png")
    assert (tmp_path / "map.png").stat().st_size > 0
    assert legends == [set(NAMES), {"crops (a)", "crops (b)", "mixed + wood", "part of water"}]
    old, old_whole, new, new_whole = (image.reshape(-1, 3) for image in images)
    for image in (old, new):
        assert (image[200:] == 1.0).all()  # unlabelled pixels are white
    for image in (old_whole, new_whole):
        assert not (image[200:] == 1.0).all(axis=1).any()
    assert np.array_equal(old[160], new[160])
    assert np.array_equal(old[0], old[40])
    assert not np.array_equal(new[0], new[40])
    assert np.array_equal(new[80], new[120])
    assert np.array_equal(new[80], old[80]) or np.array_equal(new[80], old[120])
