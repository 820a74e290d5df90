"""What people hand in: each file is understood in full, or refused in one line that says how to mend it.

No link is lost, and none becomes hard: every file that is read is counted, links and weights.
"""

from __future__ import annotations

import gzip
import math
from itertools import product
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd
import polars as pl
import pyarrow
import pyarrow.parquet
import pytest

from linkwise import Constraints
from linkwise.cli.errors import CommandError
from linkwise.cli.samples import Samples
from linkwise.cli.tables import read_links
from linkwise.constraints.io import Columns
from tests.repeats import LONG

IDS = ["7", "8", "009", "anna", "bob", "c d", "Zoë"]
HEAD = "i,j,kind,certainty\n"

#: Name of the mistake: the file, and what the one line must say: where, which value, which remedy.
MISTAKES = {
    "empty file": ("", "no column i, j, kind", "it is empty", "the first line must be i,j,kind"),
    "blank lines only": ("\n\n", "no column i, j, kind", "it is empty", "the first line must be"),
    "no header": ("7,8,same,0.9\n", "it has 7, 8, same, 0.9", "no column", "name them with left="),
    "the data in place of the links": (
        "id,x,y,species\n7,1.0,2.0,oak\n",
        "it has id, x, y, species",
        "which two columns",
        "left= and right=",
    ),
    "confidence for certainty": (
        "i,j,kind,confidence\n7,8,same,0.9\n",
        "unknown columns: 'confidence'",
        "certainty",
        "--ignore-columns",
    ),
    "weights for weight": (
        "one,other,kind,weights\n7,8,same,2\n",
        "unknown columns: 'weights'",
        "weight",
        "ignore_columns=",
    ),
    "three columns of ids": ("a,b,c,kind\n7,8,009,same\n", "it has a, b, c, kind", "not clear", "--left"),
    "one column of ids": ("a,kind\n7,same\n", "it has a, kind", "not clear", "--left"),
    "no kind": (
        "i,j,certainty\n7,8,0.9\n",
        "no column kind",
        "it has i, j, certainty",
        "the first line must be",
    ),
    "column of pandas": (",i,j,kind\n0,7,8,same\n", "column 1 has no name", "", "name it or remove it"),
    "a column twice": (
        "i,j,kind,certainty,certainty\n7,8,same,.9,.8\n",
        "several columns named 'certainty'",
        "",
        "keep one",
    ),
    "two names of a source": (
        "i,j,kind,source,annotator\n7,8,same,A,B\n",
        "source and annotator",
        "",
        "leave one out",
    ),
    "trailing blank in an id": (f"{HEAD}anna ,bob,same,0.9\n", "line 2", "'anna '", "write both alike"),
    "ids as floats": (f"{HEAD}7,8,same,0.9\n7.0,8.0,same,0.9\n", "line 3", "'7.0'", "write both alike"),
    "leading zeros lost": (
        f"{HEAD}7,9,same,0.9\n",
        "line 2",
        "'9'",
        "'009' is: they differ in the way numbers",
    ),
    "id missing from the data": (f"{HEAD}anna,carl,same,0.9\n", "line 2", "'carl'", "correct it"),
    "no id": (f"{HEAD}anna,,same,0.9\n", "line 2", "j is ''", "correct it"),
    "a row linked to itself": (f"{HEAD}anna,anna,same,0.9\n", "line 2", "anna is linked to itself", "remove"),
    "kind misspelt": (
        f"{HEAD}anna,bob,mustlink,0.9\n",
        "line 2",
        "'mustlink'",
        "write must_link or cannot_link",
    ),
    "kind empty": (f"{HEAD}anna,bob,,0.9\n", "line 2", "kind is ''", "write must_link or cannot_link"),
    "unsure": (f"{HEAD}anna,bob,unsure,0.9\n", "line 2", "'unsure'", "write must_link or cannot_link"),
    "0 for unknown": (
        f"{HEAD}7,8,1,0.9\n7,009,-1,0.9\nanna,bob,0,0.9\n",
        "line 4",
        "kind is 0, but line 3 has -1",
        "leave out",
    ),
    "percent": (f"{HEAD}anna,bob,same,90\n", "line 2", "certainty is 90", "write 0.9 for 90 %"),
    "percent sign": (f"{HEAD}anna,bob,same,90%\n", "line 2", "'90%'", "write for example 0.9"),
    "certainty below one half": (f"{HEAD}anna,bob,same,0.2\n", "line 2", "certainty is 0.2", "between 0.5"),
    "certainty left empty": (
        f"{HEAD}7,8,same,0.9\nanna,bob,same,\n",
        "line 3",
        "certainty is empty",
        "write certainty 1",
    ),
    "weight with a sign": (
        "i,j,kind,weight\nanna,bob,different,-2\n",
        "line 2",
        "weight is -2",
        "write its size",
    ),
    "weight and certainty": (
        "i,j,kind,weight,certainty\n7,8,same,1,.9\n",
        "line 2",
        "not both",
        "empty one of the cells",
    ),
    "decimal comma between commas": (
        f"{HEAD}anna,bob,same,0,9\n",
        "line 2",
        "more cells (5)",
        "write one for each",
    ),
    "decimal comma between tabs": (
        "i\tj\tkind\tcertainty\n7\t8\tsame\t0,9\n",
        "line 2",
        "'0,9'",
        "write for example 0.9",
    ),
    "a thousand": ("i;j;kind;weight\n7;8;same;1.000,5\n", "line 2", "'1.000,5'", "which is no number"),
    "a short line": (f"{HEAD}anna,bob,same\n", "line 2", "fewer cells (3)", "write one for each"),
    "quotation mark left open": (f'{HEAD}"anna,bob,same,0.9\n', "line 2", "is no CSV", "correct the line"),
    "two separators": (
        "i;j;kind,certainty\n7;8;same,0.9\n",
        "no column kind",
        "kind,certainty",
        "first line",
    ),
}


def samples_by_id(ids=IDS):
    frame = pd.DataFrame({"x": np.arange(len(ids), dtype=float)})
    return Samples(Path("data.csv"), frame, pd.Series(ids, name="id"))


def check_line(error, path, words):
    line = str(error.value)
    assert len(line.splitlines()) == 1
    assert line.startswith(str(path))
    assert "; " in line
    for word in words:
        assert word in line, line


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("mistake", MISTAKES)
def test_every_mistake_is_named_with_its_remedy(tmp_path, mistake, packed):
    text, *words = MISTAKES[mistake]
    path = tmp_path / ("links.csv.gz" if packed else "links.csv")
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    with pytest.raises(ValueError, match=r".") as refused:
        Constraints.read_csv(path, index=IDS)
    check_line(refused, path, words)
    with pytest.raises(CommandError, match=r".") as of_the_command:
        read_links(path, samples_by_id())
    check_line(of_the_command, path, [word for word in words if word != "correct it"])


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (
            "i,j,kind\nZoë,anna,same\n".encode("latin-1"),
            ("line 2", "0xeb", "in Latin-1 it would be 'ë'", "CSV in UTF-8"),
        ),
        ("i\tj\tkind\nZoë\tanna\tsame\n".encode("utf-16"), ("UTF-16", "Excel", "CSV in UTF-8")),
        (b"\x80\x81", ("line 1", "0x80", "CSV in UTF-8")),
    ],
)
def test_other_encodings(tmp_path, content, words):
    path = tmp_path / "links.csv"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="not text in UTF-8") as refused:
        Constraints.read_csv(path, index=IDS)
    check_line(refused, path, words)


def test_duplicated_ids_of_the_data():
    with pytest.raises(ValueError, match="the id 'a' stands for rows 0 and 2; give every row its own id"):
        Constraints.from_frame({"i": ["a"], "j": ["b"], "kind": ["same"]}, index=["a", "b", "a"])
    with pytest.raises(ValueError, match="the ids of rows 0 and 1 are both '7' in a table of links"):
        Constraints.from_frame({"i": ["7"], "j": ["b"], "kind": ["same"]}, index=[7, "7", "b"])


def test_rows_or_ids_must_be_said(tmp_path):
    path = tmp_path / "links.csv"
    path.write_text("i,j,kind\n0,1,same\n")
    with pytest.raises(ValueError, match=r"give the number of rows, .* or the ids of the rows, index"):
        Constraints.read_csv(path)
    with pytest.raises(ValueError, match="pass one of the two"):
        Constraints.read_csv(path, 2, index=[0, 1])


class TestColumns:
    """Columns that are named, and columns that are ignored."""

    TABLE: ClassVar = {
        "source": ["7", "8"],
        "target": ["8", "anna"],
        "kind": ["1", "0"],
        "note": ["sure", ""],
    }

    def test_left_right_and_ignored(self):
        links = Constraints.from_frame(
            self.TABLE, index=IDS, left="source", right="TARGET", ignore_columns=["note"], certainty=0.9
        )
        assert links.must_link.tolist() == [[0, 1]]
        assert links.cannot_link.tolist() == [[1, 3]]
        assert links.source is None

    def test_of_the_command(self, tmp_path):
        path = tmp_path / "links.csv"
        pd.DataFrame(self.TABLE).to_csv(path, index=False)
        columns = Columns("source", "target", ("note",))
        assert read_links(path, samples_by_id(), columns=columns).n_pairs == 2

    @pytest.mark.parametrize(
        ("wanted", "message"),
        [
            ({"left": "source"}, "left and right are the two columns of points; name both"),
            (
                {"left": "source", "right": "tgt"},
                "has no column 'tgt' to take points from .*; correct",
            ),
            ({"left": "source", "right": "source"}, "cannot be the two points; name two other columns"),
            ({"left": "source", "right": "kind"}, "cannot be the two points"),
            ({"left": "source", "right": "target"}, "unknown columns: 'note'"),
            ({"ignore_columns": ["remark"]}, "has no column 'remark' to ignore .*; correct the name"),
            ({"ignore_columns": "kind", "left": "source", "right": "target"}, "has no column kind"),
        ],
    )
    def test_wrong_names(self, wanted, message):
        with pytest.raises(ValueError, match=message):
            Constraints.from_frame(self.TABLE, index=IDS, **wanted)


EXPECTED = {(0, 1): 0.9, (0, 3): -0.8, (2, 4): 0.75, (5, 6): -1.0}
ROWS = [(*pair, certainty) for pair, certainty in EXPECTED.items()]
KINDS = {
    "words": ("must_link", "cannot_link"), "short": ("must", "cannot"), "plain": ("same", "different"),
    "answers": ("yes", "no"), "capitals": ("Same", "CANNOT LINK"), "dashes": ("must-link", "cannot-link"),
    "0 and 1": ("1", "0"), "signs": ("+1", "-1"), "numbers": (1, 0), "floats": (1.0, -1.0),
}  # fmt: skip
ENDS = {"i and j": ("i", "j"), "others": ("flower_1", "flower_2"), "sides": ("left", "right")}


def table_of(kinds, ends, strength="certainty", by_id=True):
    """The same four links in one of many forms."""
    same, different = KINDS[kinds]
    rows = []
    for i, j, certainty in ROWS:
        g = abs(certainty)
        weight = math.inf if g == 1 else 0.5 * math.log(g / (1 - g))
        rows.append(
            {
                ENDS[ends][0]: IDS[i] if by_id else i,
                ENDS[ends][1]: IDS[j] if by_id else j,
                "kind": same if certainty > 0 else different,
                strength: g if strength == "certainty" else weight,
                "annotator": "Ann" if i == 0 else "Bob",
            }
        )
    return pd.DataFrame(rows)


def check_all_there(links):
    """Four links of four judgements, three of them soft, as they were written."""
    assert [tuple(pair) for pair in links.pairs.tolist()] == sorted(EXPECTED)
    certainties = 1 / (1 + np.exp(-2 * np.abs(links.weights)))
    assert (np.sign(links.weights) * certainties).tolist() == pytest.approx(
        [EXPECTED[pair] for pair in sorted(EXPECTED)]
    )
    assert np.isinf(links.weights).sum() == 1
    assert links.source.tolist() == ["Ann", "Ann", "Bob", "Bob"]


#: Every kind, both ends and both strengths, but a quarter of all: 3.3 s of processor for all.
FORMS = [
    (kinds, ends, strength)
    for (a, kinds), (b, ends), (c, strength) in product(
        *map(enumerate, (KINDS, ENDS, ["certainty", "weight"]))
    )
    if LONG or (a + b + 2 * c) % 4 == 0
]


@pytest.mark.parametrize(("kinds", "ends", "strength"), FORMS)
def test_every_form_in_every_reader(tmp_path, kinds, ends, strength):
    for by_id in (True, False):
        frame = table_of(kinds, ends, strength, by_id)
        known = {"index": IDS} if by_id else {"n_samples": len(IDS)}
        for table in (frame, pl.from_pandas(frame), pyarrow.Table.from_pandas(frame), frame.to_dict("list")):
            check_all_there(Constraints.from_frame(table, **known))
        frame.to_csv(tmp_path / "comma.csv", index=False)
        frame.to_csv(tmp_path / "tab.tsv", index=False, sep="\t")
        frame.to_csv(tmp_path / "tab.csv", index=False, sep="\t")
        frame.to_csv(tmp_path / "packed.csv.gz", index=False)
        frame.to_csv(tmp_path / "excel.csv", index=False, sep=";", decimal=",", encoding="utf-8-sig")
        frame.to_csv(tmp_path / "semicolon.txt", index=False, sep=";", lineterminator="\r\n")
        frame.iloc[::-1].to_parquet(tmp_path / "links.parquet")
        for path in tmp_path.iterdir():
            check_all_there(Constraints.read_csv(path, **known))
            check_all_there(read_links(path, samples_by_id(), by_row=not by_id))


class TestWorkbooks:
    def test_cells_of_a_workbook(self, tmp_path, monkeypatch):
        """pandas reads the sheet, with whatever engine; its cells are taken as they are."""
        path = tmp_path / "links.xlsx"
        path.write_bytes(b"a workbook")
        asked = {}

        def read_excel(given, **options):
            asked.update(options)
            return table_of("numbers", "others").astype(object)

        monkeypatch.setattr(pd, "read_excel", read_excel)
        check_all_there(Constraints.read_csv(path, index=IDS))
        check_all_there(read_links(path, samples_by_id()))
        assert asked["dtype"] is object  # numbers are not rounded
        assert asked["keep_default_na"] is False  # the id NA stays an id

    def test_a_real_workbook(self, tmp_path):
        pytest.importorskip("openpyxl")
        path = tmp_path / "links.xlsx"
        for kinds, strength in (("numbers", "certainty"), ("answers", "weight")):
            frame = table_of(kinds, "others", strength)
            frame[strength] = [str(value) if value == math.inf else value for value in frame[strength]]
            frame.to_excel(path, index=False)
            check_all_there(Constraints.read_csv(path, index=IDS))
            check_all_there(read_links(path, samples_by_id()))

    def test_engine_that_is_missing(self, tmp_path, monkeypatch):
        path = tmp_path / "links.xlsx"
        path.write_bytes(b"a workbook")

        def read_excel(*_, **__):
            raise ImportError("Missing optional dependency 'openpyxl'.")

        monkeypatch.setattr(pd, "read_excel", read_excel)
        with pytest.raises(ValueError, match="needs pandas and openpyxl; pip install") as refused:
            Constraints.read_csv(path, index=IDS)
        check_line(refused, path, ["save it as CSV"])

    def test_no_workbook_and_no_parquet_file(self, tmp_path, monkeypatch):
        for suffix, word in (
            (".xlsx", "workbook|openpyxl"),
            (".parquet", "no Parquet file that can be read"),
        ):
            path = tmp_path / f"links{suffix}"
            path.write_bytes(b"i,j,kind\n0,1,same\n")
            with pytest.raises(ValueError, match=word) as refused:
                Constraints.read_csv(path, index=IDS)
            check_line(refused, path, [])
            with pytest.raises(FileNotFoundError):
                Constraints.read_csv(tmp_path / f"nothing{suffix}", index=IDS)

    def test_no_engine_for_parquet(self, tmp_path, monkeypatch):
        import sys

        path = tmp_path / "links.parquet"
        table_of("words", "i and j").to_parquet(path)
        monkeypatch.setitem(sys.modules, "pyarrow", None)
        with pytest.raises(ValueError, match="reading Parquet needs pyarrow; pip install pyarrow"):
            Constraints.read_csv(path, index=IDS)


class TestFrames:
    def test_gaps_and_whole_floats(self):
        frame = pd.DataFrame({"i": [7.0, None], "j": [8.0, None], "kind": [1.0, None]})
        assert Constraints.from_frame(frame, index=[7, 8]).n_pairs == 1
        frame = pl.DataFrame({"i": [7, None], "j": [8, None], "kind": [0, None]})
        assert Constraints.from_frame(frame, index=["7", "8"]).n_pairs == 1

    @pytest.mark.parametrize(
        ("frame", "error", "message"),
        [
            (
                [("a", "b", "same")],
                TypeError,
                "frame is a list, which has no named columns; pass",
            ),
            (pd.Series([1, 2]), TypeError, "frame is a Series, which has no named columns"),
            ({"i": [7], "j": [8, 9], "kind": [1]}, ValueError, "columns of several lengths .*; pass as many"),
            (pd.DataFrame([[7, 8, 1, 1]], columns=["i", "j", "kind", "kind"]), ValueError, "named 'kind'"),
            (
                {"i": ["7"], "j": ["x"], "kind": ["same"]},
                ValueError,
                r"frame, row 0 \(counted from 0\): j is",
            ),
        ],
    )
    def test_no_table_of_links(self, frame, error, message):
        with pytest.raises(error, match=message):
            Constraints.from_frame(frame, index=[7, 8, 9])
