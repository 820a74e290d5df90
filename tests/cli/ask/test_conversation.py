"""The conversation, with a session whose questions are known beforehand."""

from __future__ import annotations

import io
from contextlib import nullcontext
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from linkwise.active.contradictions import find_contradictions
from linkwise.active.journal import Journal
from linkwise.cli.ask.conversation import END, UNDO, Conversation
from linkwise.cli.ask.records import Records
from linkwise.exceptions import InfeasibleConstraints
from linkwise.graph import path_witness


class Quality(NamedTuple):
    estimate: float
    low: float
    high: float


class Session:
    """Asks about given pairs; every answer "different" moves row 0 to a cluster of its own."""

    def __init__(self, pairs, n_samples=6, enough=99):
        self.pairs, self.enough = pairs, enough
        self.journal = Journal(None, n_samples=n_samples, fingerprint="rows")

    @property
    def n_answers(self):
        return len(self.journal)

    @property
    def answers(self):
        return self.journal.answers()

    @property
    def labels_(self):
        labels = np.zeros(6, dtype=int)
        labels[0] = (self.answers.says == -1).sum()
        return labels

    @property
    def quality_(self):
        return Quality(0.912, 0.845, 0.967) if self.n_answers else Quality(np.nan, np.nan, np.nan)

    @property
    def should_stop_(self):
        return self.n_answers >= self.enough, "more answers would change little"

    def ask(self):
        return self.pairs[self.n_answers % len(self.pairs)]

    def tell(self, i, j, says, certainty=None, source=None):
        self.journal.tell(i, j, says, certainty=certainty, source=source)

    def undo(self):
        self.journal.undo()

    def retract(self, answer):
        self.journal.retract(answer)

    def contradictions(self):
        return find_contradictions(self.answers)


class Script:
    """Keys that are pressed one after the other."""

    def __init__(self, keys):
        self.left = list(keys)

    def listening(self):
        return nullcontext()

    def read(self):
        return self.left.pop(0) if self.left else END


PAIRS = [(0, 1), (1, 2), (0, 2), (3, 4)]


def talk(keys, session=None, width=80, image_column=None, **options):
    session = Session(PAIRS) if session is None else session
    frame = pd.DataFrame({"x": [f"{k}.0" for k in range(6)]})
    records = Records(frame, ["x"], {"x": 2.0}, True, image_column, Path("no_such_folder"))
    stream = io.StringIO()
    conversation = Conversation(
        session, records, "row {}".format, console=Console(file=stream, width=width, highlight=False),
        keys=Script(keys), **options,
    )  # fmt: skip
    ended = conversation.run()
    text = stream.getvalue()
    assert max(map(len, text.split("\n"))) <= width
    return session, text, ended


def told(session):
    return [
        (*pair, says)
        for pair, says in zip(session.answers.pairs.tolist(), session.answers.says.tolist(), strict=True)
    ]


def test_keys_become_answers_with_their_source():
    session, text, ended = talk("sduq", source="Ann", certainty=0.9)
    assert told(session) == [(0, 1, 1), (1, 2, -1), (0, 2, 0)]
    assert session.answers.source == ("Ann",) * 3
    assert session.answers.certainty.tolist() == [0.9] * 3
    assert ended == "quit"
    assert "0 answers, 1 cluster\n" in text  # nothing is claimed before the first answer
    assert "1 answer, 1 cluster; about 91 % of the pairs are right (84 to 97 %)" in text
    assert "same: no row moved" in text
    assert "different: 1 row moved: 1 from cluster 0 to 1 (new)" in text
    assert "unsure: no row moved" in text


def test_a_key_without_a_meaning_asks_again_and_help_helps():
    session, text, _ = talk("x?os")
    assert told(session) == [(0, 1, 1)]
    assert "'x' means nothing here" in text
    assert "'o' means nothing here" in text
    assert "take back the last answer" in text
    assert "open both images" not in text
    assert text.count("Same cluster?") == 5


def test_images_are_opened_on_demand():
    _, text, _ = talk("?o", image_column="x")
    assert "o open images" in text
    assert "open both images" in text
    assert "no_such_folder" in text
    assert "no such file" in text.replace("\n", " ")


@pytest.mark.parametrize("key", [UNDO, "z"])
def test_undo_asks_the_same_question_again(key):
    session, text, _ = talk(["s", "d", key, "u"])
    assert told(session) == [(0, 1, 1), (1, 2, 0)]
    assert "undo: 1 row moved" in text
    session, text, _ = talk([key, "s"])
    assert "There is no answer to take back." in text
    assert told(session) == [(0, 1, 1)]


def test_the_end_of_the_input_and_most_end_it():
    assert talk("sd")[2] == "end of the input"
    session, _, ended = talk("szsud", most=2)
    assert ended == "as many answers as --most asked for"
    assert told(session) == [(0, 1, 1), (1, 2, 0)]
    session = Session(PAIRS[:1] * 9, n_samples=2)
    session, _, ended = talk("zzsss", session, most=2)
    assert session.n_answers == 2


def test_stopping_is_suggested_once():
    _, text, _ = talk("suuzu", Session([(0, 1), (2, 3), (3, 4), (4, 5), (1, 5)], enough=2))
    assert text.count("You may stop now: more answers would change little.") == 1
    _, text, _ = talk("suzs", Session([(0, 1), (2, 3), (3, 4)], enough=2))
    assert text.count("You may stop now") == 2  # after the undo it had not been true


def test_the_user_chooses_which_of_contradicting_answers_is_wrong():
    session, text, _ = talk("ssd2q")
    assert told(session) == [(0, 1, 1), (0, 2, -1)]
    chain = text[text.index("These answers cannot all be right.") :].splitlines()
    assert chain[1:4] == [
        "  1  row 0 = row 1   (answer 1)",
        "  2  row 1 = row 2   (answer 2)",
        "  3  row 0 ≠ row 2   (just given)",
    ]
    assert chain[4].startswith("Which one is wrong?  1-3 take it back  k keep all  q quit > taken back")
    session, text, _ = talk("ssdx3q")
    assert told(session) == [(0, 1, 1), (1, 2, 1)]
    assert "'x' means nothing here" in text


def test_kept_contradictions_are_not_shown_again():
    session, text, _ = talk("ssdkuuq")
    assert session.n_answers == 5
    assert text.count("cannot all be right") == 1
    # In a new session they are shown once more.
    _, text, _ = talk("1q", session)
    assert text.count("cannot all be right") == 1
    assert session.n_answers == 4


def test_the_end_while_a_contradiction_is_shown_keeps_the_answers():
    for key, ended in (("q", "quit"), (END, "end of the input")):
        session, text, found = talk([*"ssd", key])
        assert found == ended
        assert session.n_answers == 3
        assert text.rstrip().endswith("> quit" if key == "q" else ">")


def test_an_undo_after_a_contradiction_brings_the_answer_back():
    session, text, _ = talk("ssd1zq")
    assert text.count("cannot all be right") == 1  # it comes back with its contradiction, which was seen
    assert told(session) == [(0, 1, 1), (1, 2, 1), (0, 2, -1)]


def test_an_answer_against_facts_is_not_kept():
    session = Session(PAIRS)
    tell = session.tell

    def strict(i, j, says, certainty=None, source=None):
        if (i, j, says) == (0, 2, "different"):
            raise InfeasibleConstraints(path_witness(6, np.array([[0, 1], [1, 2]]), 0, 2))
        tell(i, j, says, certainty=certainty, source=source)

    session.tell = strict
    _, text, _ = talk("ssdsq", session, certainty=1.0)
    wanted = "Not kept, because of facts told before: row 0 = row 1, row 1 = row 2, row 0 ≠ row 2"
    assert wanted in text.replace("\n", " ")
    assert told(session) == [(0, 1, 1), (1, 2, 1), (0, 2, 1)]


def test_no_question_is_left():
    session = Session(PAIRS)

    def ask():
        if session.n_answers == 1:
            raise ValueError("every pair was asked about; there is nothing left to ask")
        return 0, 1

    session.ask = ask
    assert talk("sss", session)[2] == "every pair was asked about"
    assert session.n_answers == 1


@pytest.mark.parametrize("width", [30, 80, 120])
def test_the_prompt_breaks_between_keys(width):
    _, text, _ = talk("s", width=width, image_column="x")
    menu = text[text.index("Same cluster?") :].split("same\n")[0]
    for item in ("s same", "d different", "u unsure", "z undo", "q quit", "? help", "o open images >"):
        assert item in menu
