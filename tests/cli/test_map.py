"""``linkwise map`` makes a new legend and a map of a scene whose classes are known."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import rasterio
from scipy import stats

from linkwise import ClassBeliefs
from tests.cli.map_scene import GAP, N_POINTS, NAMES, make_scene, two_folds, write_polygons

FEW = ("--repeats", 1)


@pytest.fixture(scope="module", autouse=True)
def quick():
    with two_folds():
        yield


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    return make_scene(tmp_path_factory.mktemp("scene"))


@pytest.fixture(scope="module")
def made(scene, tmp_path_factory):
    """One run with doubts, smoothed, in small windows: the folder, and what it printed as JSON."""
    from typer.testing import CliRunner

    from linkwise.cli.app import app

    folder = tmp_path_factory.mktemp("made")
    arguments = [
        "map",
        scene.raster,
        "--samples",
        scene.points,
        "--label",
        "label",
        "--beliefs",
        scene.beliefs,
    ]
    arguments += ["--smooth", 0.7, "--window", 32, "-o", folder / "map.tif", "--json", *FEW]
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return folder, json.loads(result.stdout)


def true_share(scene, codes, names):
    """Share of the pixels with data whose new class is mostly of their true class."""
    valid = codes > 0
    owner = {
        code: Counter(scene.truth[codes == code].tolist()).most_common(1)[0][0]
        for code in np.unique(codes[valid]).tolist()
    }
    assert len(set(owner.values())) == len(owner) == len(names)
    return np.mean([owner[code] == true for code, true in zip(codes[valid], scene.truth[valid], strict=True)])


class TestMap:
    def test_coarse_class_is_split_and_mapped(self, scene, made):
        folder, record = made
        assert sorted(record["legend"]) == ["forest", "open (a)", "open (b)", "water"]
        with rasterio.open(folder / "map.tif") as file:
            codes, confidence = file.read()
        assert true_share(scene, codes, record["legend"]) > 0.99
        assert (codes[GAP] == 0).all()
        assert (codes > 0).sum() == codes.size - 54
        assert confidence[codes > 0].min() >= 1
        # The new classes are the two that had one name.
        for name in ("open (a)", "open (b)"):
            inside = scene.truth[codes == 1 + record["legend"].index(name)]
            assert NAMES[Counter(inside.tolist()).most_common(1)[0][0]] in ("crops", "pasture")

    def test_map_says_where_and_what_it_is(self, scene, made):
        folder, record = made
        with rasterio.open(folder / "map.tif") as file, rasterio.open(scene.raster) as source:
            assert (file.crs, file.transform, file.shape) == (source.crs, source.transform, source.shape)
            assert file.nodata == 0
            names = [file.tags(1)[f"class_{code}"] for code in range(1, 5)]
            colours = ["#{:02X}{:02X}{:02X}".format(*file.colormap(1)[code][:3]) for code in range(1, 5)]
        assert names == record["legend"]
        assert colours == record["colors"]
        assert len(set(colours)) == 4
        style = (folder / "map.qml").read_text(encoding="utf-8")
        assert all(name in style and colour in style for name, colour in zip(names, colours, strict=True))

    def test_areas_are_counted_and_adjusted(self, made):
        folder, record = made
        table = pd.read_csv(folder / "map_files" / "areas.csv")
        assert table["class"].tolist() == record["legend"]
        with rasterio.open(folder / "map.tif") as file:
            counts = np.bincount(file.read(1).ravel(), minlength=5)[1:]
        assert table["pixels"].tolist() == counts.tolist()
        # UTM shows lengths up to .04 % shorter than they are.
        np.testing.assert_allclose(table["hectares"], counts * 0.09, rtol=2e-3)
        confusion = np.array(record["confusion"])
        expected = (counts / counts.sum()) @ (confusion / confusion.sum(axis=1, keepdims=True))
        np.testing.assert_allclose(table["adjusted_hectares"], expected * table["hectares"].sum(), rtol=1e-9)
        assert (table["standard_error_hectares"] >= 0).all()

    def test_held_out_samples(self, made):
        folder, record = made
        table = pd.read_csv(folder / "map_files" / "confusion.csv", index_col=0)
        assert table.to_numpy().tolist() == record["confusion"]
        assert table.to_numpy().sum() == record["n_samples"] == N_POINTS
        assert record["accuracy"] > 0.95
        # Wilson's interval by scipy; it is no point even if all samples are right.
        right = int(np.trace(table.to_numpy()))
        expected = stats.binomtest(right, N_POINTS).proportion_ci(method="wilson")
        np.testing.assert_allclose(record["accuracy_interval"], expected, atol=1e-4)
        by_class = pd.read_csv(folder / "map_files" / "confusion_by_class.csv", index_col=0)
        assert by_class.index.tolist() == ["forest", "open", "water"]
        assert by_class.to_numpy().sum() == N_POINTS
        halves = by_class.loc["open", ["open (a)", "open (b)"]]
        assert halves.min() > N_POINTS / 6

    def test_stored_model_draws_the_same_map(self, scene, made, invoke, refused):
        folder, record = made
        model = (
            "map",
            scene.raster,
            "--model",
            folder / "map_files" / "model",
            "--smooth",
            0.7,
            "--window",
            32,
        )
        names = ("--rename", "open (a)=corn = maize", "--rename", "water=lake")
        result = invoke(*model, *names, "-o", "again.tif", "--json")
        assert result.exit_code == 0, result.output
        other = {"open (a)": "corn = maize", "water": "lake"}
        renamed = [other.get(name, name) for name in record["legend"]]
        assert json.loads(result.stdout)["legend"] == renamed
        again = invoke("map", scene.raster, "--model", "again_files/model", "-o", "third.tif", "--json")
        assert json.loads(again.stdout)["legend"] == renamed
        assert "'sea'" in refused(*model, "--rename", "sea=lake", "-o", "no.tif")
        assert "two classes" in refused(*model, "--rename", "water=forest", "-o", "no.tif")
        with rasterio.open(folder / "map.tif") as one, rasterio.open("again.tif") as other:
            np.testing.assert_array_equal(one.read(), other.read())
        # Drawn again in place of itself, it keeps the beliefs that it was fitted with.
        shutil.copytree(folder / "map_files", "fourth_files")
        beliefs = (folder / "map_files" / "beliefs.csv").read_bytes()
        for more in ([], ["--overwrite"]):
            fourth = invoke("map", scene.raster, "--model", "fourth_files", "-o", "fourth.tif", *more)
            assert fourth.exit_code == 0, fourth.output
            assert Path("fourth_files/beliefs.csv").read_bytes() == beliefs

    def test_trees_of_the_paper(self, scene, invoke):
        arguments = ("--samples", scene.points, "--label", "label", "--beliefs", scene.beliefs, *FEW)
        result = invoke("map", scene.raster, *arguments, "--classifier", "trees", "-o", "trees.tif", "--json")
        assert result.exit_code == 0, result.output
        record = json.loads(result.stdout)
        with rasterio.open("trees.tif") as file:
            assert true_share(scene, file.read(1), record["legend"]) > 0.95
        assert record["accuracy"] > 0.9
        with open("trees_files/report.html", encoding="utf-8") as report:
            assert "MAP_files/model is the mixture" in report.read()

    def test_range_of_numbers_without_beliefs(self, scene, invoke):
        arguments = ("--samples", scene.points, "--label", "label", "-k", "3:5", *FEW)
        result = invoke("map", scene.raster, *arguments, "-o", "map.tif")
        assert result.exit_code == 0, result.output
        assert "open (a)" in result.stdout
        beliefs = pd.read_csv("map_files/beliefs.csv", index_col=0)
        assert beliefs.loc["open", "open"] == 0.1

    def test_without_doubts_the_classes_stay(self, scene, invoke):
        arguments = ("--samples", scene.points, "--label", "label", *FEW)
        result = invoke("map", scene.raster, *arguments, "-o", "map.tif", "--json")
        assert json.loads(result.stdout)["legend"] == ["forest", "open", "water"]
        # The table to edit is there, and may be passed as it is.
        again = invoke(
            "map",
            scene.raster,
            *arguments,
            "--beliefs",
            "map_files/beliefs.csv",
            "-o",
            "map.tif",
            "--overwrite",
        )
        assert again.exit_code == 0, again.output

    def test_samples_that_carry_the_values(self, scene, invoke):
        points = pd.read_csv(scene.points)
        with rasterio.open(scene.raster) as file:
            found = np.array(list(file.sample(points[["x", "y"]].to_numpy()))) / 10_000
        points[["b1", "b2", "b3"]] = found
        points.drop(columns=["x", "y"]).to_csv("values.csv", index=False)
        arguments = ("--samples", "values.csv", "--label", "true", "--values", "b*", *FEW, "--json")
        result = invoke("map", scene.raster, *arguments, "--factor", 10_000, "-o", "map.tif")
        assert result.exit_code == 0, result.output
        with rasterio.open("map.tif") as file:
            assert true_share(scene, file.read(1), NAMES) > 0.97
        refused = invoke("map", scene.raster, *arguments, "-o", "other.tif")
        assert refused.exit_code == 1
        assert "--factor 10000" in refused.stderr or "--factor 1e+04" in refused.stderr


class TestHeldOut:
    def test_no_polygon_is_on_both_sides(self, scene, invoke, tmp_path, monkeypatch):
        """The folds are those of scikit-learn; the classifier sees which rows it gets."""
        from linkwise.cli.map import classifier

        write_polygons(scene, tmp_path / "fields.gpkg")
        seen = []
        original = classifier._folds
        monkeypatch.setattr(
            classifier, "_folds", lambda *given: seen.append((given, original(*given))) or seen[-1][1]
        )
        arguments = ("--samples", "fields.gpkg", "--label", "kind", *FEW)
        result = invoke("map", scene.raster, *arguments, "-o", "map.tif", "--json")
        assert result.exit_code == 0, result.output
        assert json.loads(result.stdout)["n_samples"] == 18 * 25
        (((_, _, groups, _), folds),) = seen
        assert len(np.unique(groups)) == 18
        tested = np.concatenate([test for _, test in folds])
        assert sorted(tested.tolist()) == list(range(len(groups)))
        for train, test in folds:
            assert not set(groups[train]) & set(groups[test])

    def test_one_polygon_of_a_class(self, scene, invoke):
        points = pd.read_csv(scene.points)
        lonely = points[points["label"] == "water"].iloc[:1]
        pd.concat([points[points["label"] != "water"], lonely, lonely]).to_csv("few.csv", index=False)
        result = invoke(
            "map", scene.raster, "--samples", "few.csv", "--label", "label", *FEW, "-o", "map.tif"
        )
        assert result.exit_code == 1
        assert "'water' 1" in result.stderr


class TestInterruption:
    def test_run_goes_on_where_it_was(self, scene, invoke, monkeypatch, made):
        from linkwise.raster import writing

        arguments = (
            "map",
            scene.raster,
            "--samples",
            scene.points,
            "--label",
            "label",
            "--beliefs",
            scene.beliefs,
        )
        arguments += ("--smooth", 0.7, "--window", 32, "-o", "map.tif", *FEW)
        calls = []
        original = writing.MapWriter.write

        def write(self, *given):
            if len(calls) == 4:
                raise KeyboardInterrupt
            calls.append(given)
            return original(self, *given)

        monkeypatch.setattr(writing.MapWriter, "write", write)
        stopped = invoke(*arguments)
        assert stopped.exit_code == 130
        import os

        assert [name for name in os.listdir() if not name.startswith(".")] == []
        monkeypatch.setattr(writing.MapWriter, "write", original)
        result = invoke(*arguments, "--json")
        assert result.exit_code == 0, result.output
        record = json.loads(result.stdout)
        assert record["n_resumed"] == 4
        assert [name for name in os.listdir() if name.startswith(".")] == []
        with rasterio.open(made[0] / "map.tif") as one, rasterio.open("map.tif") as other:
            np.testing.assert_array_equal(one.read(), other.read())
        assert record["areas"] == made[1]["areas"]

    def test_report_that_cannot_be_written_leaves_nothing(self, scene, invoke, monkeypatch):
        import os

        from linkwise.cli import map as command

        def full(*_):
            raise OSError(28, "No space left on device", "map_files/report.html")

        monkeypatch.setattr(command, "_write", full)
        arguments = ("--samples", scene.points, "--label", "label", "-o", "map.tif", *FEW)
        result = invoke("map", scene.raster, *arguments)
        assert result.exit_code == 1
        assert "no space left on device" in result.stderr
        assert os.listdir() == []


class TestBadInput:
    @pytest.fixture
    def refused_map(self, scene, refused):
        """Run the command with samples, and return the line it refuses them with; nothing may be written."""
        import os

        def run(*arguments, raster=scene.raster, samples=scene.points, label="label"):
            before = sorted(os.listdir())
            line = refused("map", raster, "--samples", samples, "--label", label, "-o", "map.tif", *arguments)
            assert sorted(os.listdir()) == before
            assert "; " in line
            return line

        return run

    def test_no_raster(self, refused_map):
        assert "nothing/*.tif" in refused_map(raster="nothing/*.tif")

    def test_bands_of_different_size(self, scene, refused_map, tmp_path):
        shutil.copy(scene.raster, "a.tif")
        make_scene(tmp_path, (40, 90))
        line = refused_map(raster="*.tif")
        assert "a.tif" in line
        assert "scene.tif" in line
        assert "90 x 60" in line
        assert "90 x 40" in line

    def test_unknown_class_column(self, refused_map):
        line = refused_map(label="kind")
        assert "'kind'" in line
        assert "true" in line

    def test_all_samples_outside(self, scene, refused_map):
        points = pd.read_csv(scene.points)
        points.rename(columns={"x": "y", "y": "x"}).to_csv("swapped.csv", index=False)
        assert "swapped" in refused_map(samples="swapped.csv")

    def test_some_samples_outside(self, scene, refused_map, invoke):
        points = pd.read_csv(scene.points)
        points.loc[3, "x"] -= 1e6
        points.to_csv("far.csv", index=False)
        line = refused_map(samples="far.csv")
        assert "line 5" in line
        assert "--skip-outside" in line
        arguments = (
            "--samples",
            "far.csv",
            "--label",
            "label",
            "--skip-outside",
            *FEW,
            "-o",
            "m.tif",
            "--json",
        )
        record = json.loads(invoke("map", scene.raster, *arguments).stdout)
        assert record["n_samples"] == N_POINTS - 1
        assert any("outside" in warning for warning in record["warnings"])

    def test_one_class(self, scene, refused_map):
        points = pd.read_csv(scene.points)
        points[points["label"] == "open"].to_csv("one.csv", index=False)
        assert "'open'" in refused_map(samples="one.csv")

    def test_no_crs(self, scene, refused_map):
        with (
            rasterio.open(scene.raster) as file,
            rasterio.open("bare.tif", "w", **{**file.profile, "crs": None}) as bare,
        ):
            bare.write(file.read())
        # --crs is that of the samples and would not help.
        assert "no CRS; write it by gdal_edit.py" in refused_map(raster="bare.tif")

    def test_no_areas(self, scene, refused_map, monkeypatch):
        """A raster that reaches over its projection is refused before anything is fitted."""
        globe = "+proj=geos +h=35785831 +lon_0=0"
        place = rasterio.Affine(2e5, 0.0, -9e6, 0.0, -2e5, 6e6)
        with (
            rasterio.open(scene.raster) as file,
            rasterio.open("disc.tif", "w", **{**file.profile, "crs": globe, "transform": place}) as disc,
        ):
            disc.write(file.read())
        monkeypatch.setattr("linkwise.raster.training_rows", None)
        assert "areas are not known" in refused_map(raster="disc.tif")

    def test_nodata_everywhere(self, scene, refused_map):
        with rasterio.open(scene.raster) as file, rasterio.open("empty.tif", "w", **file.profile) as empty:
            empty.write(np.full((3, *file.shape), -9999, dtype=np.int16))
        assert "without data" in refused_map(raster="empty.tif")

    def test_map_that_is_there(self, refused_map, tmp_path):
        (tmp_path / "map.tif").write_text("mine", encoding="utf-8")
        line = refused_map()
        assert "map.tif" in line
        assert "--overwrite" in line
        assert (tmp_path / "map.tif").read_text(encoding="utf-8") == "mine"
        (tmp_path / "map.tif").rename(tmp_path / "map.tif.ovr")
        assert "map.tif.ovr exists" in refused_map()

    @pytest.mark.parametrize("option", ["raster", "samples"])
    def test_files_that_are_read_are_not_replaced(self, scene, refused_map, tmp_path, option):
        """--overwrite is about an earlier map, not about the raster or the samples themselves."""
        before = shutil.copy(scene.raster, tmp_path / "map.tif").read_bytes()
        line = refused_map("--overwrite", **{option: "map.tif"})
        assert "map.tif is read by this command; choose another name" in line
        assert (tmp_path / "map.tif").read_bytes() == before

    def test_edited_beliefs_are_not_replaced(self, refused_map, tmp_path):
        """The first map writes a table to edit; without --beliefs the next one would lose the edits."""
        edited = tmp_path / "map_files" / "beliefs.csv"
        edited.parent.mkdir()
        kept = ClassBeliefs.keep(["forest", "open", "water"])
        kept.keep_whole("open", strength=0.1).to_csv(edited)
        (tmp_path / "map_files" / "report.html").write_text(
            '<!-- written by linkwise: {"command": "map", "files": ["beliefs.csv", "report.html"]} -->\n',
            encoding="utf-8",
        )
        assert "beliefs.csv has beliefs of yours" in refused_map("--overwrite")
        assert "open,-1.0,0.1,-1.0" in edited.read_text(encoding="utf-8")

    def test_files_of_the_user_in_the_folder(self, refused_map, tmp_path):
        (tmp_path / "map_files").mkdir()
        (tmp_path / "map_files" / "areas.csv").write_text("mine", encoding="utf-8")
        assert "areas.csv" in refused_map()

    def test_options_that_contradict(self, scene, refused, refused_map):
        assert "-k" in refused_map("--criterion", "bic")
        assert "neither" in refused("map", scene.raster, "-o", "map.tif")
        assert "both" in refused_map("--model", "somewhere")
        assert ".tif" in refused(
            "map", scene.raster, "--samples", scene.points, "--label", "label", "-o", "map.png"
        )
        refused(
            "map",
            scene.raster,
            "--samples",
            scene.points,
            "--label",
            "label",
            "--smooth",
            2,
            "-o",
            "m.tif",
            code=2,
        )

    def test_model_of_other_bands(self, scene, made, refused):
        model = made[0] / "map_files" / "model"
        line = refused("map", scene.raster, "--model", model, "--bands", "1,2", "-o", "map.tif")
        assert "3 bands" in line
        assert "2" in line
        line = refused("map", scene.raster, "--model", model, "--bands", "swir,nir,red", "-o", "map.tif")
        assert "in another order; pass --bands red,nir,swir" in line
