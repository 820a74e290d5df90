"""Every command from end to end, its results compared with those of the library."""

from __future__ import annotations

import base64
import json
import re
import shlex
import shutil
import warnings

import numpy as np
import pandas as pd
import pytest
import typer
from PIL import Image

from linkwise import PPC, Constraints
from linkwise.cli import compare
from linkwise.cli.app import app
from linkwise.cli.options import METHODS
from linkwise.cli.samples import Preparation, save_prepared_model
from linkwise.exceptions import InferenceBudgetExceeded
from linkwise.metrics import clustering_accuracy
from linkwise.persistence import save_model

FEATURES = ["sepal_length", "sepal_width", "petal_length", "petal_width"]


def check_page(path):
    """The page holds its pictures and refers to nothing outside."""
    page = path.read_text(encoding="utf-8")
    images = re.findall(r"src='data:image/png;base64,([^']+)'", page)
    for image in images:
        assert base64.b64decode(image, validate=True).startswith(b"\x89PNG\r\n\x1a\n")
        page = page.replace(image, "")
    assert not re.findall(r"https?://|<script|<link|@import|url\(", page)
    return page, images


@pytest.fixture(scope="module")
def standardised(files):
    frame = pd.read_csv(files / "iris.csv")
    table = frame[FEATURES]
    return (table - table.mean()) / table.std(ddof=0), frame["species"].to_numpy()


def test_fit_does_what_the_library_does(invoke, files, tmp_path, standardised):
    X, _ = standardised
    result = invoke(
        "fit", files / "iris.csv", "--links", files / "links_by_id.csv", "-k", 3, "--id", "flower",
        "--label", "species", "-c", 0.9, "--starts", 1, "--method", "ppc", "-o", "out",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    rows = Constraints.read_csv(files / "links.csv", 150)
    links = Constraints(150, rows.must_link, rows.cannot_link, certainty=0.9)
    model = PPC(3, n_init=1, random_state=0).fit(X, constraints=links)
    labels = pd.read_csv(tmp_path / "out" / "labels.csv")
    assert labels["flower"].tolist() == [f"f{row:03d}" for row in range(150)]
    assert np.array_equal(labels["cluster"], model.labels_)
    probabilities = labels[[f"probability_{k}" for k in range(3)]].to_numpy()
    assert np.allclose(probabilities, model.responsibilities_)
    told = pd.read_csv(tmp_path / "out" / "links.csv")
    assert told["i"].tolist() == [f"f{row:03d}" for row in links.pairs[:, 0]]
    assert np.array_equal(~told["kept"], links.violations(model.labels_))
    page, images = check_page(tmp_path / "out" / "report.html")
    assert len(images) == 2
    assert "30 of 30" in page
    assert "known classes" in page
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "labels.csv", "links.csv", "model", "report.html",
    ]  # fmt: skip


@pytest.mark.usefixtures("three_candidates")
@pytest.mark.parametrize("name", list(METHODS))
def test_every_method_fits(invoke, files, tmp_path, name, standardised):
    result = invoke(
        "fit", files / "iris.csv", "-l", files / "links.csv", "-k", 3, "--method", name, "--ignore", "flower",
        "--label", "species", "--starts", 1, "-o", tmp_path / "out", "--json",
        *(["--effort", "quick"] if name == "auto" else []),
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    record = json.loads(result.stdout)
    labels = pd.read_csv(tmp_path / "out" / "labels.csv")["cluster"].to_numpy()
    links = Constraints.read_csv(files / "links.csv", 150)
    assert record["n_violated"] == links.violations(labels).sum()
    assert record["n_violated"] == 0
    assert record["sizes"] == np.bincount(labels, minlength=3).tolist()
    assert record["scores"]["accuracy"] == clustering_accuracy(standardised[1], labels)
    again = invoke("predict", tmp_path / "out", files / "iris.csv", "--json")
    assert again.exit_code == 0, again.output
    assert len(json.loads(again.stdout)["rows"]) == 150


def test_fit_without_output_or_links_prints_labels_as_json(invoke, files):
    result = invoke(
        "fit", files / "iris.parquet", "-k", 3, "--ignore", "flower,species", "--json", "--effort", "quick"
    )
    record = json.loads(result.stdout)
    assert record["method"] == "auto"
    assert len(record["labels"]) == 150
    assert record["files"] == {}
    assert record["n_links"] == 0


def test_parquet_in_and_out(invoke, files, tmp_path):
    result = invoke(
        "fit", files / "iris.parquet", "-k", 2, "--id", "flower", "--label", "species", "-o", "out"
    )
    assert result.exit_code == 0, result.output
    labels = pd.read_parquet(tmp_path / "out" / "labels.parquet")
    assert labels["flower"].iloc[149] == "f149"


def test_predict_new_rows(invoke, files, tmp_path, standardised):
    X, _ = standardised
    invoke(
        "fit", files / "iris.csv", "-k", 3, "--ignore", "flower,species", "--starts", 1, "-m", "ppc",
        "-o", "out",
    )  # fmt: skip
    shuffled = pd.read_csv(files / "iris.csv").sample(frac=1, random_state=0)
    shuffled = shuffled[shuffled.columns[::-1]].assign(extra="text")
    shuffled.to_csv("new.csv", index=False)
    result = invoke("predict", "out/model", "new.csv", "--id", "flower")
    assert result.exit_code == 0, result.output
    model = PPC(3, random_state=0).fit(X)
    printed = [line.split(",") for line in result.stdout.splitlines()]
    assert printed[0] == ["flower", "cluster", "probability_0", "probability_1", "probability_2"]
    clusters = {name: int(cluster) for name, cluster, *_ in printed[1:]}
    assert [clusters[f"f{row:03d}"] for row in range(150)] == model.predict(X).tolist()

    written = invoke("predict", "out", "new.csv", "-o", "deep/predictions.parquet")
    assert written.exit_code == 0
    assert len(pd.read_parquet(tmp_path / "deep" / "predictions.parquet")) == 150

    shuffled.iloc[3, shuffled.columns.get_loc("petal_width")] = np.nan
    shuffled.to_csv("holes.csv", index=False)
    filled = invoke("predict", "out", "holes.csv", "--impute", "--json")
    assert "petal_width 1.3" in filled.stderr  # the median of the training rows
    assert json.loads(filled.stdout)["n_rows"] == 150


def test_predict_refuses(refused, invoke, files, tmp_path, standardised):
    X, _ = standardised
    assert "no such folder" in refused("predict", "nothing", files / "iris.csv")
    (tmp_path / "empty").mkdir()
    assert "holds no model.json" in refused("predict", "empty", files / "iris.csv")
    save_model(PPC(3, random_state=0).fit(X.to_numpy()), tmp_path / "nameless")
    assert "does not say which columns" in refused("predict", "nameless", files / "iris.csv")
    save_model(PPC(3, random_state=0).fit(X), tmp_path / "model")
    X.to_csv("scaled.csv", index=False)
    assert invoke("predict", "model", "scaled.csv").exit_code == 0
    X.drop(columns="sepal_width").to_csv("narrow.csv", index=False)
    assert "no column 'sepal_width'" in refused("predict", "model", "narrow.csv")
    (arrays,) = (tmp_path / "model").glob("arrays-*.npz")
    arrays.write_bytes(b"PK\x03\x04 damaged")
    assert "damaged" in refused("predict", "model", "scaled.csv")
    (tmp_path / "model" / "model.json").write_text("{")
    assert "damaged" in refused("predict", "model", "scaled.csv")


def test_predict_by_a_model_of_the_workbench(invoke, files, standardised):
    """It was fitted to an array; scikit-learn's warnings about the names of columns were printed."""
    X, _ = standardised
    model = PPC(3, n_init=1, random_state=0).fit(X.to_numpy())
    save_prepared_model("model", model, Preparation.bare(list(X), None, model))
    X.to_csv("rows.csv", index=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = invoke("predict", "model", "rows.csv", "--json")
    assert result.exit_code == 0, result.output
    assert [row["cluster"] for row in json.loads(result.stdout)["rows"]] == model.labels_.tolist()


def test_predict_replaces_neither_the_data_nor_results_of_a_fit(refused, invoke, files, tmp_path):
    """Labels were written over both without a word."""
    shutil.copy(files / "iris.csv", tmp_path / "iris.csv")
    before = (tmp_path / "iris.csv").read_bytes()
    fit = ("fit", "iris.csv", "-k", 3, "--ignore", "flower,species", "-m", "cop", "--starts", 1, "-o", "out")
    assert invoke(*fit).exit_code == 0
    assert "-o iris.csv is read by this command" in refused("predict", "out", "iris.csv", "-o", "./iris.csv")
    assert (tmp_path / "iris.csv").read_bytes() == before
    line = refused("predict", "out", "iris.csv", "-o", "out/labels.csv")
    assert line == "out/labels.csv is in the way: `linkwise fit` wrote it; choose another name with -o"
    for _ in range(2):  # its own results are written again
        assert invoke("predict", "out", "iris.csv", "-o", "out/predicted.csv").exit_code == 0


def test_fit_refuses(refused, files, tmp_path):
    iris = files / "iris.csv"
    numbers = ["--ignore", "flower,species"]
    assert "no such file" in refused("fit", "nothing.csv", "-k", 3)
    assert "'flower' is 'f000' in row 0" in refused("fit", iris, "-k", 3)
    assert "no column 'petals'" in refused("fit", iris, "-k", 3, "--features", "petals")
    assert "no such file" in refused("fit", iris, "-k", 3, *numbers, "--links", "nothing.csv")
    assert "cannot be made of 150 rows" in refused("fit", iris, "-k", 151, *numbers)
    assert "is no row number" in refused("fit", iris, "-k", 3, *numbers, "-l", files / "links_by_id.csv")
    assert "hard links only" in refused(
        "fit", iris, "-k", 3, *numbers, "-l", files / "links_by_id.csv", "--id", "flower",
        "--features", "petal_width", "-c", 0.9, "-m", "cop",
    )  # fmt: skip
    (tmp_path / "taken").write_text("")
    line = refused("fit", iris, "-k", 3, *numbers, "--starts", 1, "-o", "taken")
    assert "taken is a file" in line


@pytest.mark.parametrize(
    ("method", "told"),
    [
        ("ppc", []),
        ("cem", []),
        ("hmrf", ["covariance"]),
        ("cop", ["covariance"]),
        ("spectral", ["covariance"]),
    ],
)
def test_fit_warns_of_options_that_a_method_does_not_have(invoke, files, method, told):
    given = ("--covariance", "diag", "--starts", 2, "--ignore", "flower,species")
    result = invoke("fit", files / "iris.csv", "-k", 3, "-m", method, *given, "--json")
    warnings = json.loads(result.stdout)["warnings"]
    found = [line.split()[0] for line in warnings if f"has no effect on --method {method}" in line]
    assert found == [f"--{option}" for option in told]


@pytest.mark.parametrize(
    ("links", "k", "proof"),
    [
        ("3,8,must\n8,17,must\n3,17,cannot", 3, "3 and 17 must be together (3-8-17)"),
        ("0,50,cannot\n50,100,cannot\n0,100,cannot", 2, "0, 50 and 100 are pairwise linked apart"),
    ],
)
def test_contradictory_links_are_refused_with_their_proof(refused, files, tmp_path, links, k, proof):
    (tmp_path / "bad.csv").write_text(f"i,j,kind\n{links}\n")
    line = refused(
        "fit", files / "iris.csv", "-k", k, "--ignore", "flower,species", "-l", "bad.csv", "-o", "out", code=3
    )
    assert proof in line
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ["fit"],
        ["fit", "data.csv", "-m", "ppc"],
        ["fit", "data.csv", "-k", "0"],
        ["fit", "data.csv", "-k", "3", "--method", "magic"],
        ["fit", "data.csv", "-k", "3", "--certainty", "0.2"],
        ["classes", "data.csv", "--label", "y", "-k", "9:2"],
        ["classes", "data.csv", "--label", "y", "-k", "two"],
        ["segment", "a.png", "-k", "2", "--connectivity", "5"],
        ["unknown"],
    ],
)
def test_wrong_usage(invoke, arguments):
    result = invoke(*arguments)
    assert result.exit_code == 2
    assert "Error" in result.stderr


COMMANDS = typer.main.get_command(app).commands


@pytest.mark.parametrize("command", COMMANDS)
def test_help(invoke, command):
    result = invoke(command, "--help")
    assert result.exit_code == 0
    assert "--json" in result.stdout or command == "workbench"  # which serves a page
    assert f"  linkwise {command}" in result.stdout.split("Example")[1]
    assert "Exit codes: 0 done" in result.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_examples_in_the_help_are_accepted(command):
    """Every option of an example exists; the files are not read."""
    for line in COMMANDS[command].epilog.splitlines():
        if line.startswith("  linkwise "):
            COMMANDS[command].make_context(command, shlex.split(line)[2:])


def test_summaries_are_not_cut(invoke):
    listed = invoke("--help").stdout.split("Commands:")[1].split("Exit codes")[0]
    assert [line.split()[0] for line in listed.splitlines() if line.strip()] == list(COMMANDS)
    assert "..." not in listed


def test_check_reports_every_contradiction(invoke, tmp_path):
    (tmp_path / "bad.csv").write_text(
        "i,j,kind\n3,8,must\n8,17,must\n3,17,cannot\n0,5,cannot\n5,10,cannot\n0,10,cannot\n1,2,must\n1,2,cannot\n"
    )
    result = invoke("check", "bad.csv", "-n", 20, "-k", 2, "--json")
    assert result.exit_code == 3
    record = json.loads(result.stdout)
    assert record["feasible"] is False
    found = [(entry["kind"], entry["must_link"], entry["cannot_link"]) for entry in record["contradictions"]]
    assert sorted(found) == [
        ("odd_ring", [], [[0, 5], [0, 10], [5, 10]]),
        ("path", [[1, 2]], [[1, 2]]),
        ("path", [[3, 8], [8, 17]], [[3, 17]]),
    ]
    shown = invoke("check", "bad.csv", "-n", 20, "-k", 2)
    assert shown.exit_code == 3
    assert "3 and 17 must be together (3-8-17)" in shown.stdout
    assert "odd ring" in shown.stdout
    first = invoke("check", "bad.csv", "-n", 20, "-k", 2, "--most", 1)
    assert "there may be more than 1" in first.stdout
    without_k = invoke("check", "bad.csv", "-n", 20, "--json")
    assert len(json.loads(without_k.stdout)["contradictions"]) == 2


def test_check_tells_how_inference_will_work(invoke, files, tmp_path):
    """A ring of 4 has width 2, a complete graph of 16 is too wide for tables of 3 ** 16 entries."""
    ring = [(0, 1), (1, 2), (2, 3), (0, 3)]
    complete = [(i, j) for i in range(10, 26) for j in range(i) if j >= 10]
    links = Constraints(40, must_link=ring + complete + [(30, 31)], certainty=0.7)
    links.to_csv(tmp_path / "links.csv")
    record = json.loads(invoke("check", "links.csv", "-n", 40, "-k", 3, "--json").stdout)
    assert record["feasible"] is True
    assert record["exact"] is False
    assert record["largest_component"] == 16
    shown = re.sub(" +", " ", invoke("check", "links.csv", "-n", 40, "-k", 3).stdout)
    assert "single rows exact, one by one 18 18 0 3" in shown
    assert "trees exact, two passes 1 2 1 9" in shown
    assert "narrow exact, junction tree 1 4 2 27" in shown
    assert "wide belief propagation (approximate) 1 16" in shown
    assert "No contradictions with 3 clusters." in shown


def test_check_tells_that_labels_of_classes_are_exact(invoke, tmp_path):
    """Ten classes: tables of 10 ** 10 entries are out of reach, sets of ten clusters are not."""
    Constraints.from_labels(np.arange(40) % 10).to_csv(tmp_path / "links.csv")
    record = json.loads(invoke("check", "links.csv", "-n", 40, "-k", 10, "--json").stdout)
    assert record["exact"] is True
    shown = re.sub(" +", " ", invoke("check", "links.csv", "-n", 40, "-k", 10).stdout)
    assert "all apart exact, sums over sets of clusters 1 10 9 1.02e+03" in shown


def test_check_by_id_and_without_n(invoke, refused, files, tmp_path):
    by_id = invoke(
        "check", files / "links_by_id.csv", "--data", files / "iris.csv", "--id", "flower", "-k", 3, "--json"
    )
    assert json.loads(by_id.stdout)["n_samples"] == 150
    (tmp_path / "few.csv").write_text("i,j,kind\n0,6,must\n")
    guessed = invoke("check", "few.csv")
    assert guessed.exit_code == 0
    assert "assuming 7 rows" in guessed.stderr
    line = refused("check", "few.csv", "--data", files / "iris.csv", "-n", 149)
    assert line == f"-n 149, but {files / 'iris.csv'} has 150 rows; leave -n out"
    assert "need the data" in refused("check", files / "links_by_id.csv", "--id", "flower")


@pytest.mark.usefixtures("three_candidates")
def test_compare_scores_all_methods(invoke, refused, files, tmp_path, standardised):
    result = invoke(
        "compare", files / "iris.csv", "--label", "species", "--ignore", "flower", "-l", files / "links.csv",
        "--starts", 1, "--effort", "quick", "-o", "out", "--json",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    record = json.loads(result.stdout)
    assert record["n_clusters"] == 3
    labels = pd.read_csv(tmp_path / "out" / "comparison.csv")
    for entry in record["methods"]:
        assert entry["accuracy"] == clustering_accuracy(standardised[1], labels[entry["method"]].to_numpy())
    assert [entry["method"] for entry in record["methods"]] == ["kmeans", "mixture", *METHODS]
    check_page(tmp_path / "out" / "report.html")
    (tmp_path / "data.csv").write_text("x,y\n1,\n2,\n")
    assert "names no class" in refused("compare", "data.csv", "--label", "y")


def test_compare_goes_on_after_a_refusal(invoke, tmp_path):
    """Soft links that contradict each other as hard ones: COP-KMeans cannot, the others can."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=60), "y": np.repeat(["a", "b"], 30)})
    frame.loc[30:, "x"] += 8
    frame.to_csv("data.csv", index=False)
    (tmp_path / "links.csv").write_text("i,j,kind\n0,1,must\n1,2,must\n0,2,cannot\n")
    result = invoke(
        "compare", "data.csv", "--label", "y", "-l", "links.csv", "-c", 0.8, "--starts", 1, "--json"
    )
    methods = {entry["method"]: entry for entry in json.loads(result.stdout)["methods"]}
    assert methods["cop"]["note"].startswith("failed: 0 and 2 must be together")
    assert methods["ppc"]["accuracy"] == 1.0


def test_compare_goes_on_after_a_method_that_gives_up(invoke, files, monkeypatch):
    """Exact inference on wide links gives up with an error of its own."""
    fit = compare._fit

    def limited(name, *rest):
        if name == "cem":
            raise InferenceBudgetExceeded("the tables of width 40 are too large; use mean_field", 40)
        return fit(name, *rest)

    monkeypatch.setattr(compare, "_fit", limited)
    given = ("--id", "flower", "--label", "species", "--starts", 1, "--effort", "quick", "--json")
    methods = {
        entry["method"]: entry
        for entry in json.loads(invoke("compare", files / "iris.csv", *given).stdout)["methods"]
    }
    assert methods["cem"]["note"].startswith("failed: the tables of width 40")
    assert methods["ppc"]["accuracy"] > 0.8


@pytest.mark.parametrize(
    "command", ["fit data.csv -k 3", "compare data.csv -k 3 --label y", "segment x.png -k 2"]
)
def test_a_certainty_without_links_is_not_ignored(refused, command):
    """Who writes it beside --labels-column means the labels."""
    line = refused(*command.split(), "--certainty", 0.9, code=2)
    assert "--links" in line


def test_classes_template_then_sweep(invoke, refused, files, tmp_path):
    template = invoke("classes", files / "wine.csv", "--label", "kind")
    assert template.exit_code == 0, template.output
    beliefs = pd.read_csv("beliefs.csv", index_col=0)
    assert beliefs.to_numpy().tolist() == (2 * np.eye(3) - 1).tolist()
    assert "left alone" in refused("classes", files / "wine.csv", "--label", "kind")

    beliefs.loc["table", "table"] = -0.5
    beliefs.loc["sweet", "dessert"] = beliefs.loc["dessert", "sweet"] = 0.5
    beliefs.to_csv("beliefs.csv")
    result = invoke(
        "classes", files / "wine.csv", "--label", "kind", "-b", "beliefs.csv", "-k", "2:4",
        "--covariance", "diag", "--repeats", 1, "-o", "out", "--json",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    record = json.loads(result.stdout)
    assert record["best_n_clusters"] == 3
    assert list(record["curve"]) == ["2", "3", "4"]
    kinds = {(entry["kind"], *entry["classes"]) for entry in record["decisions"]}
    assert kinds == {("split", "table"), ("merged", "dessert", "sweet")}
    labels = pd.read_csv(tmp_path / "out" / "labels.csv")
    assert set(labels["new_class"]) == {"dessert + sweet", "table (a)", "table (b)"}
    assert labels["kind"].tolist() == pd.read_csv(files / "wine.csv")["kind"].tolist()
    page, _ = check_page(tmp_path / "out" / "report.html")
    assert "<svg" in page
    assert len(pd.read_csv(tmp_path / "out" / "criterion.csv")) == 3

    predicted = invoke("predict", "out", files / "wine.csv", "--json")
    names = {entry["name"] for entry in json.loads(predicted.stdout)["rows"]}
    assert names <= set(record["legend"])

    edge = invoke(
        "classes", files / "wine.csv", "--label", "kind", "-b", "beliefs.csv", "-k", "2:3", "--repeats", 1
    )
    assert edge.exit_code == 0
    assert "edge of the range" in edge.stderr
    pd.read_csv("beliefs.csv").drop(columns="sweet").to_csv("bad.csv", index=False)
    assert "same classes" in refused("classes", files / "wine.csv", "--label", "kind", "-b", "bad.csv")
    (tmp_path / "bad.csv").write_text("class,a,b\na,1,-1\nb,-1,1\n")
    assert "bad.csv" in refused("classes", files / "wine.csv", "--label", "kind", "-b", "bad.csv")


def test_classes_writes_the_rows_that_are_likely_mislabelled(invoke, tmp_path):
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1], 50)
    frame = pd.DataFrame(
        {
            "plot": [f"p{i}" for i in range(100)],
            "u": rng.normal(size=100) + 12 * truth,
            "v": rng.normal(size=100),
            "kind": np.array(["ash", "fir"])[truth],
        }
    )
    frame.to_csv("right.csv", index=False)
    frame.loc[[3, 77], "kind"] = ["fir", "ash"]
    frame.to_csv("wrong.csv", index=False)
    (tmp_path / "beliefs.csv").write_text("class,ash,fir\nash,1,-1\nfir,-1,1\n")
    shared = ["--label", "kind", "--id", "plot", "-b", "beliefs.csv", "-k", "2", "--repeats", 1, "-o", "out"]
    result = invoke("classes", "wrong.csv", *shared)
    assert result.exit_code == 0, result.output
    assert "2 rows (2.0% of the labelled) are more likely of another class" in result.output
    listed = pd.read_csv(tmp_path / "out" / "mislabelled.csv").set_index("plot")
    assert set(listed.index) == {"p3", "p77"}
    assert listed.loc["p3", ["kind", "likely_class"]].tolist() == ["fir", "ash"]
    assert listed["probability"].min() > 0.5
    assert json.loads(invoke("classes", "wrong.csv", *shared, "--json").stdout)["n_mislabelled"] == 2

    # Another run into the same folder leaves no list of the first behind.
    result = invoke("classes", "right.csv", *shared)
    assert result.exit_code == 0, result.output
    assert "more likely of another class" not in result.output
    assert not (tmp_path / "out" / "mislabelled.csv").exists()


def test_classes_named_by_numbers(invoke, tmp_path):
    rng = np.random.default_rng(0)
    y = np.repeat([1, 2], 40)
    frame = pd.DataFrame({"a": rng.normal(size=80) + 9 * y, "b": rng.normal(size=80), "y": y})
    frame.loc[0, "y"] = None
    frame.to_csv("data.csv", index=False)
    (tmp_path / "beliefs.csv").write_text("class,2,1\n2,1,-1\n1,-1,1\n")
    result = invoke(
        "classes", "data.csv", "--label", "y", "-b", "beliefs.csv", "-k", "2", "--json", "--repeats", 1
    )
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["classes"] == [1, 2]


def test_segment_by_pixel_links(invoke, files, tmp_path):
    truth = np.load(files / "objects_truth.npy")
    result = invoke(
        "segment", files / "objects.png", "-k", 4, "-m", "spectral", "-l", files / "pixel_links.csv", "--json"
    )
    assert result.exit_code == 0, result.output
    record = json.loads(result.stdout)
    labels = np.asarray(Image.open(tmp_path / "objects_segments" / "labels.png"))
    assert labels.shape == truth.shape
    assert np.bincount(labels.ravel(), minlength=4).tolist() == record["sizes"]
    assert clustering_accuracy(truth.ravel(), labels.ravel()) > 0.85
    links = Constraints.read_csv(files / "pixel_links.csv", truth.size)
    assert record["n_violated"] == links.violations(labels.ravel()).sum()
    check_page(tmp_path / "objects_segments" / "report.html")


@pytest.mark.parametrize("inference", ["mean_field", "belief_propagation"])
def test_segment_by_neighbours_removes_noise(invoke, tmp_path, inference):
    """Two halves under noise that hides single pixels; a corner is transparent; two pixels are apart."""
    rng = np.random.default_rng(0)
    truth = np.zeros((24, 30), dtype=int)
    truth[:, 15:] = 1
    grey = np.clip(100 + 50 * truth + rng.normal(0, 30, truth.shape), 0, 255)
    alpha = np.full(truth.shape, 255)
    alpha[:3, :3] = 0
    Image.fromarray(np.uint8(np.dstack([grey, grey, grey, alpha]))).save("noisy.png")
    (tmp_path / "links.csv").write_text("y1,x1,y2,x2,kind\n20,2,20,28,cannot\n")
    result = invoke(
        "segment",
        "noisy.png",
        "-k",
        2,
        "--inference",
        inference,
        "-l",
        "links.csv",
        "-o",
        "out",
        "--starts",
        3,
    )
    assert result.exit_code == 0, result.output
    labels = np.asarray(Image.open(tmp_path / "out" / "labels.png"))
    assert (labels[:3, :3] == 255).all()
    inside = alpha > 0
    assert clustering_accuracy(truth[inside], labels[inside]) > 0.97
    bright = grey[inside] > 125
    assert clustering_accuracy(truth[inside], bright) < 0.85
    assert labels[20, 2] != labels[20, 28]


def test_segment_refuses(refused, files, tmp_path):
    assert "no such file" in refused("segment", "nothing.png", "-k", 2)
    (tmp_path / "text.png").write_text("not an image")
    assert "no image that can be read" in refused("segment", "text.png", "-k", 2)
    whole = (files / "objects.png").read_bytes()
    (tmp_path / "half.png").write_bytes(whole[: len(whole) // 2])
    assert "half.png" in refused("segment", "half.png", "-k", 2)
    assert "too few for blocks" in refused("segment", files / "objects.png", "-k", 2, "--block", 50)
    (tmp_path / "links.csv").write_text("y1,x1,y2,x2,kind\n0,0,0,43,must\n")
    assert "leaves the image" in refused("segment", files / "objects.png", "-k", 2, "-l", "links.csv")
    (tmp_path / "links.csv").write_text("y1,x1,y2,x2,kind\n0,0,0,x,must\n")
    assert "line 2" in refused("segment", files / "objects.png", "-k", 2, "-l", "links.csv")
    (tmp_path / "links.csv").write_text("i,j,kind\n0,1,must\n1,2,must\n0,2,cannot\n")
    refused("segment", files / "objects.png", "-k", 2, "-l", "links.csv", code=3)
    assert not [path for path in tmp_path.iterdir() if path.is_dir()]


def test_warnings_of_the_library_become_lines(invoke, tmp_path):
    """Three clusters of two distinct rows: HMRF-KMeans warns that one stays empty."""
    (tmp_path / "data.csv").write_text("x,z\n" + "1,5\n2,7\n" * 5)
    result = invoke("fit", "data.csv", "-k", 3, "-m", "hmrf", "--json")
    (line,) = json.loads(result.stdout)["warnings"]
    assert "clusters have no rows" in line
    assert result.stderr == f"warning: {line}\n"
