"""Questions and answers over a real server: nothing is lost, nothing counts twice, the model follows."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score, homogeneity_score

from linkwise import Constraints
from linkwise.active import ActiveClustering, LabelOracle
from linkwise.cli.errors import CommandError
from linkwise.workbench import desk
from linkwise.workbench.classes import ClassDesk
from linkwise.workbench.table import Table, read_table
from tests import warm_python
from tests.workbench.conftest import Client, serving


def answered(client, oracle, count, source=None):
    """Answer so many questions; gives the pairs."""
    question, pairs = client.question(source), []
    for _ in range(count):
        i, j = question["i"], question["j"]
        pairs.append((i, j))
        reply = client.json_of("/api/answer", i=i, j=j, says=oracle(i, j), source=source)
        question = reply["question"]
    return pairs


def journal(server):
    """The lines of the journal that are answers, retractions and undos."""
    lines = (server.desk.folder / "answers.journal").read_text().splitlines()[1:]
    return [line for line in map(json.loads, lines) if line["op"] != "open"]


def test_where_the_model_is_quick_the_questions_are_those_of_the_session_alone(
    iris, server, client, monkeypatch
):
    """A reply waits for the model as long as it is quick; here it always is."""
    monkeypatch.setattr(desk, "_PATIENCE", 120.0)
    _, y = iris
    pairs = answered(client, LabelOracle(y), 20, "anna")
    state = client.settled()
    assert state["n_answers"] == 20
    assert state["annotators"] == ["anna"]
    labels = np.frombuffer(client.get("/api/labels").content, dtype="<u2")
    alone = ActiveClustering(server.desk.table.X, random_state=0)
    asked = []
    for _ in range(20):
        asked.append(alone.ask())
        alone.tell(*asked[-1], LabelOracle(y)(*asked[-1]))
    assert pairs == asked
    assert adjusted_rand_score(alone.labels_, labels) == 1.0


def test_a_question_waits_for_news_that_are_on_their_way(iris, server, client, monkeypatch):
    """The model has found its questions, the desk has not heard of them: older ones are not given."""
    monkeypatch.setattr(desk, "_PATIENCE", 120.0)
    question = client.question()
    client.settled()
    model, news = server.desk.model, server.desk.model._news
    monkeypatch.setattr(model, "_news", lambda: (time.sleep(0.1), news()))
    alone = ActiveClustering(server.desk.table.X, random_state=0)
    for _ in range(5):
        pair, says = (question["i"], question["j"]), LabelOracle(iris[1])(question["i"], question["j"])
        assert pair == alone.ask()
        alone.tell(*pair, says)
        server.desk.tell(*pair, says)
        while model.questions.told is not server.desk._answers:
            time.sleep(0.001)
        question = client.question()


def test_an_answer_is_on_disk_before_the_reply(server, client):
    question = client.question()
    reply = client.json_of("/api/answer", i=question["i"], j=question["j"], says="same", certainty=0.9)
    told = journal(server)[-1]
    assert (told["i"], told["j"], told["says"], told["certainty"]) == (
        question["i"],
        question["j"],
        "same",
        0.9,
    )
    assert reply["state"]["counts"] == {"same": 1, "different": 0, "unsure": 0}
    assert {reply["question"]["i"], reply["question"]["j"]} != {question["i"], question["j"]}


def test_a_retry_and_a_second_tab_count_once(server, client):
    question = client.question("anna")
    body = {"i": question["i"], "j": question["j"], "says": "different", "source": "anna"}
    first, again = client.json_of("/api/answer", **body), client.json_of("/api/answer", **body)
    assert first["kept"]
    assert not again["kept"]
    assert again["question"]["i"] == first["question"]["i"]
    assert len(journal(server)) == 1
    # Another person's opinion about the same pair is an answer of its own.
    assert client.json_of("/api/answer", **{**body, "source": "ben"})["kept"]


def test_each_person_has_a_question_until_it_is_answered(client):
    nobody, anna, ben = client.question(), client.question("anna"), client.question("ben")
    assert {anna["i"], anna["j"]} != {ben["i"], ben["j"]}
    assert client.question("anna")["i"] == anna["i"]
    # Who was asked before giving a name goes on with the same question.
    assert (nobody["i"], nobody["j"]) == (anna["i"], anna["j"])
    client.json_of("/api/answer", i=ben["i"], j=ben["j"], says="unsure", source="ben")
    assert (client.question("anna")["i"], client.question("anna")["j"]) == (anna["i"], anna["j"])


def test_undo_takes_back_ones_own_answer_and_asks_again(server, client):
    anna, ben = client.question("anna"), client.question("ben")
    client.json_of("/api/answer", i=anna["i"], j=anna["j"], says="same", source="anna")
    client.json_of("/api/answer", i=ben["i"], j=ben["j"], says="different", source="ben")
    reply = client.json_of("/api/undo", source="anna")
    assert reply["state"]["annotators"] == ["ben"]
    assert (reply["question"]["i"], reply["question"]["j"]) == (anna["i"], anna["j"])
    reply = client.json_of("/api/undo")  # the last step of all was that retraction
    assert reply["state"]["annotators"] == ["anna", "ben"]
    assert client.post("/api/undo", json={"source": "carl"}).status_code == 409


def test_undo_leaves_alone_what_others_did(client):
    """Answers by letter: what stands after each step."""

    def stands():
        return [line["ids"][1] for line in client.json_of("/api/answers")]

    for row, source in ((1, "anna"), (2, "anna"), (3, "ben")):
        client.json_of("/api/answer", i=0, j=row, says="same", source=source)
    client.json_of("/api/undo", source="anna")
    assert stands() == ["s1", "s3"]
    client.json_of("/api/undo", source="ben")
    assert stands() == ["s1"]
    client.json_of("/api/undo", source="anna")
    assert stands() == []
    # What anna took back in the list, anna's undo brings back, also where nothing is left, but not ben's.
    client.json_of("/api/answer", i=0, j=4, says="same", source="anna")
    reply = client.json_of("/api/retract", answer=0, source="anna")
    assert (reply["state"]["n_answers"], reply["state"]["can_undo"]) == (0, True)
    assert client.post("/api/undo", json={"source": "ben"}).status_code == 409
    client.json_of("/api/undo", source="anna")
    assert stands() == ["s4"]


def test_there_is_nothing_to_undo_at_first(client):
    assert not client.json_of("/api/state")["can_undo"]
    reply = client.post("/api/undo", json={})
    assert (reply.status_code, reply.json()["error"]) == (
        400,
        "there is no answer to take back; give one first",
    )


def test_idle_questions_are_dropped(server, client):
    """Once a = b is told, nobody is asked about b and c where a and c were answered about."""
    client.settled()
    one = server.desk
    a, b = one.model.questions.pairs[0]
    other = next(row for row in range(150) if row not in (a, b))
    assert not one._known.says((b, other))
    client.json_of("/api/answer", i=a, j=b, says="same")
    client.json_of("/api/answer", i=a, j=other, says="different")
    assert one._known.says((b, other))
    assert one._known.idle((b, other), False)
    assert not one._known.idle((b, other), True)
    assert not one._known.says((b, next(row for row in range(150) if row not in (a, b, other))))


def test_a_contradiction_is_shown_with_its_chain_and_resolved(client):
    for i, j, says in ((0, 1, "same"), (1, 2, "same"), (0, 2, "different")):
        client.json_of("/api/answer", i=i, j=j, says=says, source="anna")
    (found,) = client.json_of("/api/contradictions")
    assert found["text"] == "s0 = s1, s1 = s2, s0 ≠ s2"
    assert [line["answer"] for line in found["answers"]] == [0, 1, 2]
    last = found["answers"][-1]
    # The numbers of another tab may be out of date.
    wrong = client.post("/api/retract", json={"answer": 1, "i": last["i"], "j": last["j"]})
    assert wrong.status_code == 409
    reply = client.json_of("/api/retract", answer=2, i=0, j=2)
    assert reply["state"]["n_contradictions"] == 0
    assert reply["state"]["n_answers"] == 2


def test_wrong_answers_are_doubted(client):
    for row in range(1, 9):
        client.json_of("/api/answer", i=0, j=row, says="same", source="anna")
        client.json_of("/api/answer", i=row, j=100 + row, says="different", source="anna")
    client.json_of("/api/answer", i=4, j=0, says="different", source="ben")
    state = client.settled()
    doubts = client.json_of("/api/doubts")
    assert state["n_doubts"] == len(doubts) >= 1
    assert {"ben", "anna"} >= {line["source"] for line in doubts}
    assert {doubts[0]["i"], doubts[0]["j"]} == {0, 4}
    assert doubts[0]["wrong"] > 0.5
    assert [record["id"] for record in doubts[0]["records"]] == doubts[0]["ids"]
    assert state["n_contradictions"] == 1


def test_a_lasso_writes_few_answers(server, client):
    apart = client.json_of("/api/groups", relation="apart", a=list(range(20)), b=list(range(60, 80)))
    assert apart["added"] == len(apart["pairs"]) == 3
    assert all((i < 20) and (60 <= j < 80) for i, j in apart["pairs"])
    together = client.json_of("/api/groups", relation="together", a=list(range(20)), b=list(range(20, 40)))
    assert together["added"] == 5
    assert [line["says"] for line in journal(server)] == ["different"] * 3 + ["same"] * 5
    bad = client.post("/api/groups", json={"relation": "apart", "a": [1, 2], "b": [2, 3]})
    assert (bad.status_code, "both groups" in bad.json()["error"]) == (400, True)


def test_a_row_says_why_it_is_where_it_is(iris, client):
    answered(client, LabelOracle(iris[1]), 8, "anna")
    client.settled()
    line = client.json_of("/api/answers")[0]
    about = client.json_of(f"/api/row/{line['i']}")
    assert about["why"][0].startswith("answer 1: ")
    assert about["why"][0].endswith(f"{line['ids'][1]} (anna)")
    assert 0.9 < sum(one["p"] for one in about["probabilities"]) <= 1.0 + 1e-9
    assert about["links"][0]["answer"] == 0
    assert about["record"]["id"] == line["ids"][0]


def test_pictures_have_all_rows_in_the_plane(client):
    client.settled()
    pictures = {}
    for one in client.json_of("/api/embeddings"):
        reply = client.get(f"/api/embedding/{one['name']}")
        points = np.frombuffer(reply.content, dtype="<f4").reshape(-1, 2)
        assert points.shape == (150, 2)
        assert np.abs(points).max() == pytest.approx(1.0, abs=1e-5)
        assert (np.ptp(points, axis=0) > 0.01).all()
        pictures[one["name"]] = points
    assert not np.allclose(pictures["pca"], pictures["discriminant"])
    assert client.get("/api/embedding/other").status_code == 422


def test_a_session_goes_on_with_another_server(iris, tmp_path):
    path, y = iris
    oracle = LabelOracle(y)
    with serving(path, tmp_path, id_column="id") as server, Client(server) as client:
        answered(client, oracle, 5, "anna")
        lines = client.json_of("/api/answers")
        # A second server on the same answers is refused, with the process that has them.
        with pytest.raises(BlockingIOError, match=str(os.getpid())), serving(path, tmp_path, id_column="id"):
            pass
    with serving(path, tmp_path, id_column="id") as server, Client(server) as client:
        client.settled()
        keys = ("i", "j", "says", "source")
        again = client.json_of("/api/answers")
        assert [[line[key] for key in keys] for line in again] == [
            [line[key] for key in keys] for line in lines
        ]


def test_a_killed_server_loses_no_answer(iris, tmp_path):
    """SIGKILL right after a reply: the command goes on after the same answers."""
    path, session = iris[0], tmp_path / "session"
    command = [sys.executable, "-m", "linkwise", "workbench", str(path), "--id", "id", "--no-browser"]
    process = warm_python.Popen([*command, "--session", str(session)], stdout=subprocess.PIPE, text=True)
    try:
        while "http://" not in (line := process.stdout.readline()):
            assert process.poll() is None
        with Client(_Address(line.split()[-1])) as client:
            client.json_of("/api/answer", i=0, j=1, says="same", source="anna")
            client.json_of("/api/answer", i=0, j=99, says="different", source="anna")
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
    with serving(path, session, id_column="id") as server, Client(server) as client:
        told = [(line["ids"], line["says"]) for line in client.json_of("/api/answers")]
        assert told == [(["s0", "s1"], "same"), (["s0", "s99"], "different")]


class _Address:
    """Port and token of a printed address."""

    def __init__(self, address):
        where, _, self.token = address.partition("/?token=")
        self.port = int(where.rpartition(":")[2])


def test_links_given_at_first_are_known(iris, tmp_path):
    links = Constraints(150, [(0, 1)], [(0, 60)])
    with (
        serving(iris[0], tmp_path, links=links, id_column="id", ignore=["class"]) as server,
        Client(server) as client,
    ):
        assert server.desk.shown((1, 60))["reask"]
        assert not server.desk.shown((1, 61))["reask"]
        client.json_of("/api/answer", i=5, j=6, says="same")
        client.settled()
        exported = client.get("/api/export/links.csv").text.splitlines()
        assert [line.split(",")[:3] for line in exported[1:]] == [
            ["s0", "s1", "must_link"], ["s0", "s60", "cannot_link"], ["s5", "s6", "must_link"],
        ]  # fmt: skip


def test_an_answer_that_cannot_be_kept_is_refused(server, client):
    client.settled()
    (server.desk.folder / "answers.journal").rename(server.desk.folder / "moved")
    reply = client.post("/api/answer", json={"i": 0, "j": 1, "says": "same"})
    assert reply.status_code == 507
    assert "was moved" in reply.json()["error"]
    assert client.json_of("/api/state")["n_answers"] == 0
    (server.desk.folder / "moved").rename(server.desk.folder / "answers.journal")
    assert client.json_of("/api/answer", i=0, j=1, says="same")["state"]["n_answers"] == 1


def test_lists_of_answers_hold_together_while_somebody_takes_one_back(server, client, monkeypatch):
    """Requests are answered in threads: the last answer goes while a list of all is being written."""
    here, name_of = server.desk, Table.name_of

    def undoing(table, row):
        if len(here.answers.says) == 3:
            here.undo()
        return name_of(table, row)

    for ends, says in (((0, 1), "same"), ((1, 2), "same"), ((0, 2), "different")):
        here.tell(*ends, says)
    monkeypatch.setattr(Table, "name_of", undoing)
    assert [line["says"] for line in client.json_of("/api/answers")] == ["same", "same", "different"]
    here.tell(0, 2, "different")
    (found,) = client.json_of("/api/contradictions")
    assert [line["says"] for line in found["answers"]] == ["same", "same", "different"]


def test_facts_that_contradict_are_refused_and_not_kept(server, client):
    client.json_of("/api/answer", i=0, j=1, says="same", certainty=1.0)
    reply = client.post("/api/answer", json={"i": 1, "j": 0, "says": "different", "certainty": 1.0})
    assert reply.status_code == 409
    assert "facts" in reply.json()["error"]
    assert len(journal(server)) == 1


def test_every_pair_is_asked_and_then_there_is_an_end(tmp_path):
    path = tmp_path / "few.csv"
    path.write_text("a,b\n0,0\n0,1\n9,9\n", encoding="utf-8")
    with serving(path, tmp_path / "s") as server, Client(server) as client:
        for _ in range(3):
            question = client.question()
            client.json_of("/api/answer", i=question["i"], j=question["j"], says="unsure")
        client.settled()
        assert client.question() == {"done": True, "reason": "every pair was asked about"}


def test_texts_are_clustered_by_their_words(tmp_path):
    path = tmp_path / "notes.csv"
    words = {"sea": "ship wave sail harbour", "wood": "tree leaf bark forest"}
    rng = np.random.default_rng(0)
    lines = ["note,kind"]
    for kind in ("sea", "wood") * 20:
        lines.append(f"the {' '.join(rng.choice(words[kind].split(), 4))} again,{kind}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    for _ in range(2):  # the second time the numbers are those kept on disk
        serves = serving(path, tmp_path / "s", text_column="note", label_column="kind")
        with serves as server, Client(server) as client:
            state = client.settled()
            assert "clustered by the words of 'note'" in state["notes"][0]
            record = client.question()["records"][0]
            assert record["text"].startswith("the ")
            assert record["label"] in words
            labels = np.frombuffer(client.get("/api/labels").content, dtype="<u2")
            answer = client.get("/api/export/model.zip")
            assert (answer.status_code, "words" in answer.json()["error"]) == (404, True)
    assert homogeneity_score([line.endswith("sea") for line in lines[1:]], labels) > 0.8


def test_a_text_labelled_minus_one_is_of_no_class(tmp_path):
    """As where rows are clustered by numbers."""
    lines = ["text,class", "red wine,1", "white wine,2", "green tea,10", "black tea,-1", "coffee,"]
    (tmp_path / "texts.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    table = read_table(
        tmp_path / "texts.csv", session=tmp_path / "s", text_column="text", label_column="class"
    )
    assert ClassDesk(table, None).classes == [1, 2, 10]


def test_damaged_features_of_texts_are_named(tmp_path):
    (tmp_path / "texts.csv").write_text("text\nred wine\nwhite wine\ngreen tea\n", encoding="utf-8")
    read_table(tmp_path / "texts.csv", session=tmp_path, text_column="text")
    kept = tmp_path / "text_features.npz"
    kept.write_bytes(kept.read_bytes()[:100])
    with pytest.raises(CommandError, match=r"text_features.npz is damaged .*; .*remove it"):
        read_table(tmp_path / "texts.csv", session=tmp_path, text_column="text")
