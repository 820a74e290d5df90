"""Two records beside each other: marks, widths, long and dangerous texts."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest
from rich.cells import cell_len
from rich.console import Console

from linkwise.cli.ask.records import Records, as_numbers, drawn, open_images, printable
from linkwise.cli.errors import CommandError


@pytest.fixture
def path(tmp_path):
    """Column x has a standard deviation of 2."""
    path = tmp_path / "rows.csv"
    path.write_text(
        "id,x,code,name,photo\n"
        "a,1.0,007,red fox,p/a.png\n"
        "b,1.9,7,red  fox,p/b.png\n"
        "c,5.00,007,\x1b[31mgrey,p/c.png\n"
        "d,5,,日本語,p/d.png\n"
    )
    return path


def shown(records, i, j):
    return {field.name: (field.left, field.right, field.mark) for field in records.fields(i, j)[0]}


def lines(fields, names, width):
    stream = io.StringIO()
    Console(file=stream, width=width, highlight=False).print(drawn(fields, names, width))
    return stream.getvalue().splitlines()


def test_values_are_shown_as_they_are_written_and_marked_where_they_differ(path):
    records = Records.read(path, [], None, ["id"])
    assert list(records.frame.columns) == ["x", "code", "name", "photo"]
    assert records.columns == ["id", "x", "code", "name", "photo"]
    assert records.spread["x"] == pytest.approx(np.std([1, 1.9, 5, 5]))
    found = shown(records, 0, 1)
    assert found["x"] == ("1.0", "1.9", "~")  # less than half a standard deviation
    assert found["code"][:2] == ("007", "7")
    assert found["name"] == ("red fox", "red fox", "")
    assert shown(records, 0, 2)["x"] == ("1.0", "5.00", "≠")
    assert shown(records, 2, 3)["x"] == ("5.00", "5", "")  # the same number
    assert shown(records, 0, 3)["code"] == ("007", "(missing)", "≠")
    assert shown(records, 0, 2)["name"] == ("red fox", "�[31mgrey", "≠")


def test_columns_that_are_named_are_shown_in_this_order(path):
    records = Records.read(path, ["name", "id"], "photo", ["id"])
    assert [field.name for field in records.fields(0, 1)[0]] == ["photo", "name", "id"]
    assert records.images(0, 2) == [path.parent / "p/a.png", path.parent / "p/c.png"]
    with pytest.raises(CommandError, match="no column 'nam'; it has id, x, code, name, photo: name one"):
        Records.read(path, ["nam"], None, [])
    with pytest.raises(CommandError, match="no column 'image'"):
        Records.read(path, [], "image", [])


def test_of_many_columns_those_that_differ_most_are_shown(tmp_path):
    path = tmp_path / "wide.csv"
    table = np.random.default_rng(0).normal(size=(50, 30))
    table[1] = table[0] + np.arange(30) / 10 * table.std(axis=0)
    frame = pd.DataFrame(table, columns=[f"c{k}" for k in range(30)]).assign(name="oak")
    frame.to_csv(path, index=False)
    fields, hidden = Records.read(path, [], None, []).fields(0, 1)
    # Words say more to a person than the twentieth number, also if they are the same.
    assert [field.name for field in fields] == [*(f"c{k}" for k in range(11, 30)), "name"]
    assert hidden == 11
    named = [f"c{k}" for k in range(25)]
    assert len(Records.read(path, named, None, []).fields(0, 1)[0]) == 25


@pytest.mark.parametrize("width", [40, 80, 120])
def test_no_line_is_wider_than_the_terminal(path, width):
    long = pd.DataFrame({"a" * 60: ["word " * 200, "word " * 200 + "end"], "日本": ["語" * 300, "x"]})
    long.to_csv(path, index=False)
    fields, _ = Records.read(path, [], None, []).fields(0, 1)
    text = lines(fields, ("row 0", "row 1"), width)
    assert max(map(cell_len, text)) <= width
    assert len(text) < 16
    # Two long texts are shown from where they begin to differ.
    assert "end" in " ".join(text)


def test_the_marks_need_no_colour(path):
    text = lines(Records.read(path, [], None, ["id"]).fields(0, 2)[0], ("a", "c"), 80)
    assert [line[0] for line in text[2:]] == ["≠", " ", "≠", "≠"]
    assert text[0].split() == ["a", "c"]
    assert "\x1b" not in "".join(text)


def test_text_cannot_steer_the_terminal():
    assert printable("a\x1b[2J\nb\x00\u202e") == "a�[2J b��"


def test_columns_of_numbers_may_have_gaps():
    assert as_numbers(pd.Series(["1", "x", "3"])).tolist()[::2] == [1.0, 3.0]
    assert as_numbers(pd.Series(["1", "x", "y"])) is None
    assert as_numbers(pd.Series([None, "NA", "3"])) is not None


def test_images_that_cannot_be_opened_are_told(tmp_path, monkeypatch):
    assert "no such file" in open_images([tmp_path / "a.png"])
    (tmp_path / "a.png").touch()
    monkeypatch.setattr("shutil.which", lambda _: None)
    assert "no command" in open_images([tmp_path / "a.png"])
    viewer, mark = tmp_path / "viewer", tmp_path / "seen"
    viewer.write_text(f'#!/bin/sh\necho "$1" >> {mark}\n')
    viewer.chmod(0o755)
    monkeypatch.setattr("shutil.which", lambda _: str(viewer))
    assert open_images([tmp_path / "a.png"]) is None
