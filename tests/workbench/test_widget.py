"""The page in a notebook: the same routes by messages."""

import json

import numpy as np
import pandas
import pytest

from linkwise.active import ActiveClustering
from linkwise.workbench.app import STATIC

pytest.importorskip("anywidget")


@pytest.fixture
def made():
    """A session of 30 rows and its widget."""
    if not (STATIC / "widget.js").exists():
        pytest.skip("the page was not built as a module")
    rng = np.random.default_rng(0)
    session = ActiveClustering(rng.normal(size=(30, 2)) + 6.0 * (np.arange(30) % 2)[:, None], random_state=0)
    widget = session.widget(labels=np.array(["a", "b"])[np.arange(30) % 2])
    yield session, widget
    widget.desk.close()
    widget.close()


def asked(widget, method, path, body=None):
    """Status and content of the reply to one message."""
    sent = []
    widget.send = lambda message, buffers: sent.append((message, buffers))
    widget._reply({"id": 7, "method": method, "path": path, "body": body})
    ((message, buffers),) = sent
    assert message["id"] == 7
    content = json.loads(buffers[0]) if message["type"].startswith("application/json") else buffers[0]
    return message["status"], content


def test_answers_of_the_widget_are_those_of_the_session(made):
    session, widget = made
    status, state = asked(widget, "GET", "/api/state")
    assert (status, state["n_rows"], state["session"]) == (200, 30, None)
    status, reply = asked(
        widget, "POST", "/api/answer", {"i": 0, "j": 1, "says": "different", "source": "anna"}
    )
    assert (status, reply["state"]["n_answers"]) == (200, 1)
    assert session.answers.pairs.tolist() == [[0, 1]]
    assert session.answers.source == ("anna",)
    assert asked(widget, "GET", "/api/answers?after=1") == (200, [])
    assert asked(widget, "POST", "/api/answer", {"i": 0})[0] == 422
    status, points = asked(widget, "GET", "/api/embedding/pca")
    assert (status, len(points)) == (200, 30 * 8)
    status, beliefs = asked(widget, "GET", "/api/beliefs")
    assert beliefs["classes"] == ["a", "b"]


def test_what_the_session_is_told_beside_the_widget_is_seen(made):
    session, widget = made
    for row in (1, 2, 3):
        session.tell(0, row, "same")
    assert asked(widget, "GET", "/api/state")[1]["n_answers"] == 3
    session.undo()
    session.retract(0)
    # The page has an old list: what it points at is another answer by now.
    assert asked(widget, "POST", "/api/retract", {"answer": 0, "i": 0, "j": 1})[0] == 409
    assert asked(widget, "POST", "/api/undo", {})[1]["state"]["n_answers"] == 2
    assert session.answers.pairs.tolist() == [[0, 1], [0, 2]]


def test_files_of_the_user_beside_the_journal_are_left_alone(tmp_path):
    (tmp_path / "beliefs.csv").write_text("of the user", encoding="utf-8")
    X = np.arange(20.0).reshape(10, 2)
    with ActiveClustering(X, journal=tmp_path / "mine.journal", random_state=0) as session:
        widget = session.widget(labels=["a", "b"] * 5)
        status, _ = asked(widget, "PUT", "/api/beliefs", {"i": 0, "j": 1, "belief": "merge"})
        widget.desk.close()
        widget.close()
    assert status == 200
    assert (tmp_path / "beliefs.csv").read_text(encoding="utf-8") == "of the user"
    assert (tmp_path / "mine.linkwise" / "beliefs.csv").exists()


def test_a_defect_is_answered_too(made, monkeypatch):
    """Else the page waits a minute and then says that the notebook does not answer."""
    _, widget = made

    def broken():
        raise RuntimeError("no such luck")

    monkeypatch.setattr(widget.desk, "state", broken)
    status, reply = asked(widget, "GET", "/api/state")
    assert status == 500
    assert "RuntimeError: no such luck" in reply["error"]


def test_classes_that_pandas_marks_as_missing_are_unknown(made):
    session, _ = made
    labels = pandas.array(["a", "b", pandas.NA] * 10, dtype="string")
    widget = session.widget(labels=labels)
    beliefs = asked(widget, "GET", "/api/beliefs")[1]
    widget.desk.close()
    widget.close()
    assert (beliefs["classes"], beliefs["counts"]) == (["a", "b"], [10, 10])


def test_records_and_labels_need_a_line_for_each_row(made):
    session, _ = made
    with pytest.raises(ValueError, match="29 lines for 30 rows"):
        session.widget(np.zeros((29, 1)))
    with pytest.raises(ValueError, match="3 entries for 30 rows"):
        session.widget(labels=[0, 1, 2])
