"""Beliefs that are kept, a run of CPPC in the background, and what people take home."""

import io
import re
import sys
import time
import zipfile

import numpy as np
import pandas
import pytest

from linkwise import Constraints
from linkwise.active import LabelOracle
from linkwise.beliefs import ClassBeliefs
from linkwise.workbench import classes
from tests import warm_python
from tests.workbench.conftest import Client, serving


def believe(client, i, j, belief):
    return client.put("/api/beliefs", json={"i": i, "j": j, "belief": belief})


def finished(client):
    """The run, once it has ended."""
    for _ in range(1200):
        run = client.json_of("/api/classes/run")
        if run["status"] in ("done", "failed"):
            return run
        assert run["status"] == "running"
        assert 0 <= run["progress"] <= 1
        time.sleep(0.05)
    raise AssertionError("the run does not end")


def test_beliefs_are_on_disk_after_every_edit(server, client):
    table = client.json_of("/api/beliefs")
    assert table["classes"] == ["<b>set</b>", "versi", "virgi"]
    assert table["counts"] == [50, 50, 50]
    assert table["beliefs"] == [[1, -1, -1], [-1, 1, -1], [-1, -1, 1]]
    assert believe(client, 1, 2, "merge").json()["beliefs"][1][2] == 1
    assert believe(client, 0, 0, "split").json()["beliefs"][0][0] == -0.5
    assert believe(client, 0, 2, "unsure").json()["beliefs"][2][0] == 0
    kept = ClassBeliefs.from_csv(server.desk.folder / "beliefs.csv")
    assert np.array_equal(kept.values, client.json_of("/api/beliefs")["beliefs"])
    assert believe(client, 0, 1, "split").status_code == 400
    assert believe(client, 1, 1, "merge").status_code == 400
    assert believe(client, 0, 3, "merge").status_code == 400
    assert believe(client, 0, 1, "love").status_code == 422
    assert np.array_equal(kept.values, ClassBeliefs.from_csv(server.desk.folder / "beliefs.csv").values)


def test_a_run_merges_what_is_believed_to_be_one(server, client):
    assert client.get("/api/export/classes.csv").status_code == 404
    assert client.post("/api/classes/accept", json={}).status_code == 404
    believe(client, 1, 2, "merge")
    reply = client.post("/api/classes/run", json={}).json()
    assert reply["run"]["status"] == "running"
    assert client.post("/api/classes/run", json={}).status_code == 400  # one at a time
    # Answers are taken while it runs.
    assert client.json_of("/api/answer", i=0, j=1, says="same")["kept"]
    run = finished(client)
    assert run["status"] == "done", run["message"]
    assert any("versi and virgi are merged" in sentence for sentence in run["merges"])
    assert run["table"]["old"] == ["<b>set</b>", "versi", "virgi"]
    assert np.sum(run["table"]["counts"]) == 150
    assert not run["stale"]
    believe(client, 1, 2, "apart")
    assert client.json_of("/api/classes/run")["stale"]

    names = [client.post("/api/classes/accept", json={}).json()["labels_file"] for _ in range(2)]
    assert names == ["classes-1.csv", "classes-2.csv"]  # nothing is overwritten
    frame = pandas.read_csv(server.desk.folder / names[0])
    assert list(frame.columns) == ["id", "class", "new_class", "cluster", "probability"]
    assert frame["new_class"].nunique() == len(run["new_names"])
    exported = pandas.read_csv(io.BytesIO(client.get("/api/export/classes.csv").content))
    pandas.testing.assert_frame_equal(exported, frame)
    report = client.get("/api/export/classes.html").text
    assert "&lt;b&gt;set" in report
    assert "<b>set" not in report


def test_a_run_that_fails_without_a_message_ends(server, client, monkeypatch):
    """Python's own MemoryError says nothing; the next run can begin all the same."""

    def fail(*_, **__):
        raise MemoryError

    monkeypatch.setattr(classes, "propose_classes", fail)
    client.post("/api/classes/run", json={})
    run = finished(client)
    assert (run["status"], run["message"]) == ("failed", "MemoryError")
    assert client.post("/api/classes/run", json={}).status_code == 200


def test_without_classes_there_are_no_beliefs(iris, tmp_path):
    with serving(iris[0], tmp_path, id_column="id", ignore=["class"]) as server, Client(server) as client:
        assert not client.json_of("/api/state")["has_classes"]
        reply = client.get("/api/beliefs")
        assert (reply.status_code, "--label" in reply.json()["error"]) == (404, True)


def test_links_labels_model_and_report_are_taken_home(iris, server, client, tmp_path):
    path, y = iris
    oracle = LabelOracle(y)
    question = client.question()
    for _ in range(12):
        i, j = question["i"], question["j"]
        question = client.json_of("/api/answer", i=i, j=j, says=oracle(i, j), source="anna")["question"]
    state = client.settled()

    (tmp_path / "links.csv").write_bytes(client.get("/api/export/links.csv").content)
    links = Constraints.read_csv(tmp_path / "links.csv", index=[f"s{k}" for k in range(150)])
    assert links.n_pairs == 12
    assert set(links.source) == {"anna"}
    told = {tuple(sorted((line["i"], line["j"]))): line["says"] for line in client.json_of("/api/answers")}
    assert {tuple(pair): "same" for pair in links.must_link.tolist()} == {
        pair: says for pair, says in told.items() if says == "same"
    }

    labels = pandas.read_csv(io.BytesIO(client.get("/api/export/labels.csv").content))
    assert labels["id"].tolist() == [f"s{k}" for k in range(150)]
    assert labels["cluster"].nunique() == state["n_clusters"]
    assert labels["probability"].between(0, 1).all()

    archive = zipfile.ZipFile(io.BytesIO(client.get("/api/export/model.zip").content))
    assert not any(name.endswith((".pkl", ".pickle", ".joblib")) for name in archive.namelist())
    assert "12 links" in archive.read("README.txt").decode()
    archive.extractall(tmp_path)
    command = [sys.executable, "-m", "linkwise", "predict", str(tmp_path / "model"), str(path), "--id", "id"]
    found = warm_python.run(command)
    assert found.returncode == 0, found.stderr
    predicted = pandas.read_csv(io.StringIO(found.stdout))
    named = predicted["name" if "name" in predicted else "cluster"]
    agreed = (named.astype(str) == labels["cluster"].astype(str)).mean()
    stated = re.search(r"puts ([0-9.]+)% of these rows", archive.read("README.txt").decode()).group(1)
    assert agreed == pytest.approx(float(stated) / 100, abs=1e-3)
    assert agreed > 0.5

    report = client.get("/api/export/report.html").text
    assert "anna" in report
    assert "12" in report
    assert "<script" not in report


def test_a_label_column_of_one_class_is_refused(tmp_path):
    path = tmp_path / "one.csv"
    path.write_text("a,class\n1,x\n2,x\n", encoding="utf-8")
    with (
        pytest.raises(Exception, match="two classes or more"),
        serving(path, tmp_path / "s", label_column="class"),
    ):
        pass
