"""The one reader of link files: against a slow parser, on any bytes, from the library and the command."""

from __future__ import annotations

import gzip
import math
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linkwise import Constraints
from linkwise.cli.errors import CommandError
from linkwise.cli.samples import Samples
from linkwise.cli.tables import read_links
from linkwise.constraints.io import by_id, by_row, frame_records, link_list, records
from tests.repeats import examples

KINDS = {
    "must_link": 1,
    "must": 1,
    "same": 1,
    "yes": 1,
    "1": 1,
    "+1": 1,
    "1.0": 1,
    "cannot_link": -1,
    "cannot": -1,
    "different": -1,
    "no": -1,
    "0": -1,
    "0.0": -1,
    "-1": -1,
    "-1.0": -1,
}


def samples_of(n, ids=None):
    frame = pd.DataFrame({"x": np.arange(n, dtype=float)})
    return Samples(Path("data.csv"), frame, None if ids is None else pd.Series(ids, name="id"))


def slow_parser(text, find):
    """Links [(i, j, signed weight, source)] of a text without quotation marks, or None if it is refused."""
    header, *lines = text.split("\n")
    separator = max(",;\t", key=header.count)
    names = [name.strip().lower() for name in header.split(separator)]
    if len(set(names)) < len(names) or "" in names or "kind" not in names:
        return None
    if "source" in names and "annotator" in names:
        return None
    ends = slow_ends(names)
    known = {"kind", "weight", "certainty", "source", "annotator", "kept", "violation_probability"}
    if ends is None or not set(names) <= known | set(ends):
        return None
    links, numbers = [], set()
    for line in lines:
        cells = line.split(separator)
        if not "".join(cells).strip():
            continue
        if len(cells) != len(names):
            return None
        cell = dict(zip(names, cells, strict=True))
        rows = find(cell[ends[0]]), find(cell[ends[1]])
        kind = cell["kind"].strip().lower()
        kind = kind.replace(",0", ".0") if separator == ";" and kind in ("1,0", "0,0", "-1,0") else kind
        kind = kind if kind in KINDS else kind.replace("-", "_").replace(" ", "_")
        numbers |= {float(kind)} & {0.0, -1.0} if kind in ("0", "-1", "0.0", "-1.0") else set()
        given = [cell[name].strip() for name in ("weight", "certainty") if name in cell]
        if separator == ";":
            given = [re.sub(r"^([+-]?[0-9]*),([0-9]+([eE][+-]?[0-9]+)?)$", r"\1.\2", one) for one in given]
        both = dict(zip([name for name in ("weight", "certainty") if name in cell], given, strict=True))
        strength = slow_strength(both.get("weight", ""), both.get("certainty", ""), hard=not given)
        if None in rows or rows[0] == rows[1] or kind not in KINDS or strength is None or len(numbers) > 1:
            return None
        links.append(
            (*sorted(rows), KINDS[kind] * strength, cell.get("source", cell.get("annotator", "")).strip())
        )
    return links


def slow_ends(names):
    """The two columns of points: i and j, or the only two that are nothing else."""
    if "i" in names and "j" in names:
        return "i", "j"
    nothing_else = [
        name
        for name in names
        if name not in ("kind", "weight", "certainty", "source", "annotator", "kept", "violation_probability")
        and name not in ("confidence", "weights", "note")
    ]
    return tuple(nothing_else) if len(nothing_else) == 2 else None


def slow_strength(weight, certainty, *, hard):
    if weight and certainty:
        return None
    number = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|\+?inf"
    for text in (weight, certainty):
        if text and not re.fullmatch(number, text):
            return None
    if weight:
        return abs(float(weight)) if float(weight) >= 0 else None
    if certainty:
        if not 0.5 <= float(certainty) <= 1:
            return None
        return (
            math.inf if float(certainty) == 1 else 0.5 * math.log(float(certainty) / (1 - float(certainty)))
        )
    return math.inf if hard else None


def row_below(n):
    def find(cell):
        text = cell.strip()
        return int(text) if re.fullmatch(r"[+-]?[0-9]+", text) and 0 <= int(text) < n else None

    return find


def found_links(path, find):
    """What the reader makes of a file, or None where it refuses it, in one line that names the file."""
    try:
        lines = link_list(path, records(path), find)
    except ValueError as error:
        message = str(error)
    else:
        source = lines.source or [""] * len(lines.pairs)
        return [
            (*pair, weight, name)
            for pair, weight, name in zip(lines.pairs.tolist(), lines.weights.tolist(), source, strict=True)
        ]
    assert str(path) in message
    assert len(message.splitlines()) == 1
    return None


def assert_same(found, expected):
    assert (found is None) == (expected is None), (found, expected)
    if expected is not None:
        assert [link[:2] for link in found] == [link[:2] for link in expected]
        assert [link[3] for link in found] == [link[3] for link in expected]
        assert [link[2] for link in found] == pytest.approx([link[2] for link in expected], rel=1e-9)


@st.composite
def link_texts(draw):
    """Files that are mostly right, with something odd about some of them."""
    separator = draw(st.sampled_from(",;\t"))
    left, right = draw(st.sampled_from([("i", "j"), ("left", "right"), ("flower_1", "flower_2"), ("a", "b")]))
    more = draw(
        st.lists(st.sampled_from(["weight", "certainty", "kept", "source", "annotator"]), unique=True)
    )
    names = [left, right, "kind", *more]
    if draw(st.integers(0, 4)) == 0:
        odd = st.sampled_from(
            ["Weight", "confidence", "note", "i", "", "certainty ", "J", "weights", "other"]
        )
        names.insert(draw(st.integers(0, len(names))), draw(odd))
    names = draw(st.permutations([draw(st.sampled_from([name, name.upper(), f" {name}"])) for name in names]))
    row = st.one_of(st.integers(-1, 6).map(str), st.integers(0, 4).map(lambda row: f" {row} "))
    numbers = draw(
        st.sampled_from(
            [["1", "0"], ["+1", "-1"], ["1.0", "0.0"], ["1,0", "0,0"], ["yes", "No"], ["1", "0", "-1"]]
        )
    )
    words = [*KINDS, "Must-Link", " cannot link"]
    words = [word for word in words if word not in ("0", "-1", "0.0", "-1.0")]
    good = {
        left: st.integers(0, 2).map(str),
        right: st.integers(3, 4).map(str),
        "kind": st.sampled_from(draw(st.sampled_from([words, numbers]))),
        "weight": st.sampled_from(
            ["1", "0.25", "inf", "1e3", "0", "0,5"] if separator != "," else ["1", "0.25"]
        ),
        "certainty": st.sampled_from(["0.9", "1", ".5"] if separator != ";" else ["0,9", "1", ",5", "0.75"]),
        "source": st.sampled_from(["Ann", " Bob", ""]),
        "annotator": st.sampled_from(["Ann", "Bob "]),
    }
    odd_cells = st.one_of(row, st.sampled_from(["", "nan", "-1", "1_0", "0x1", "maybe", "90%", "1.0", "٣"]))
    lines = []
    for _ in range(draw(st.integers(0, 4))):
        cells = [draw(good.get(name.strip().lower(), st.just("x"))) for name in names]
        if draw(st.booleans()):  # one of both strengths
            cells = [
                "" if name.strip().lower() == "weight" and "certainty" in more else cell
                for name, cell in zip(names, cells, strict=True)
            ]
        if draw(st.integers(0, 5)) == 0:
            cells[draw(st.integers(0, len(cells) - 1))] = draw(odd_cells)
        if draw(st.integers(0, 9)) == 0:
            cells = draw(st.sampled_from([cells[:-1], [*cells, ""], [*cells, "0.9"], [""] * len(cells)]))
        lines.append(separator.join(cells))
    return "\n".join([separator.join(names), *lines, *draw(st.sampled_from([[], [""], ["", ""], ["  "]]))])


@settings(max_examples=examples(60, 15), deadline=None)
@given(text=link_texts())
def test_reads_as_the_slow_parser(tmp_path_factory, text):
    path = tmp_path_factory.getbasetemp() / "fuzz_links.csv"
    path.write_text(text, encoding="utf-8")
    assert_same(found_links(path, by_row(5)), slow_parser(text, row_below(5)))


@settings(max_examples=examples(60, 15), deadline=None)
@given(
    content=st.one_of(
        st.binary(max_size=60),
        st.binary(max_size=40).map(lambda tail: b"i,j,kind,weight\n0,1,must," + tail),
        st.text(max_size=40).map(lambda tail: ("i,j,kind\n" + tail).encode("utf-8", "surrogatepass")),
        st.text(alphabet='i,jkndmust01\n\r" \t;', max_size=60).map(str.encode),
        st.binary(max_size=30).map(lambda tail: gzip.compress(b"i,j,kind\n0,1,must\n") + tail),
    ),
    name=st.sampled_from(["any.csv", "any.tsv", "any.csv.gz"]),
)
def test_any_bytes_give_links_or_one_line(tmp_path_factory, content, name):
    path = tmp_path_factory.getbasetemp() / name
    path.write_bytes(content)
    if name.endswith(".csv"):
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError:
            assert found_links(path, by_row(5)) is None
            return
        if not set('"\r') & set(text):
            assert_same(found_links(path, by_row(5)), slow_parser(text, row_below(5)))
            return
    found = found_links(path, by_row(5))
    assert found is None or all(0 <= i < j < 5 for i, j, *_ in found)


IDS = ["a", " a", "a ", "007", "7", "b c", "x,y", 'q"q', "Ä", "9007199254740993", "9007199254740992"]


@settings(max_examples=examples(25, 12), deadline=None)
@given(data=st.data(), column=st.sampled_from([None, "weight", "Weight", "certainty", "CERTAINTY"]))
def test_no_link_is_lost_or_hardened(tmp_path_factory, data, column):
    """Links counted in and out of every kind of file, by row and by id, in the library and the command."""
    folder = tmp_path_factory.getbasetemp()
    pairs = data.draw(
        st.lists(
            st.tuples(st.integers(0, len(IDS) - 1), st.integers(0, len(IDS) - 1)).filter(
                lambda p: p[0] < p[1]
            ),
            min_size=1,
            max_size=8,
            unique=True,
        )
    )
    must = data.draw(st.lists(st.booleans(), min_size=len(pairs), max_size=len(pairs)))
    # Hard links might contradict each other and are drawn all of one kind.
    soft = column is not None
    must = must if soft else [False] * len(pairs)
    given_strength = data.draw(
        st.lists(st.sampled_from([0.6, 0.75, 0.9]), min_size=len(pairs), max_size=len(pairs))
    )
    frame = pd.DataFrame(pairs, columns=["i", "j"])
    frame["kind"] = ["must_link" if kind else "cannot_link" for kind in must]
    strength = np.full(len(pairs), np.inf)
    if soft:
        frame[column] = given_strength
        strength = np.array(given_strength)
        if column.lower() == "certainty":
            strength = 0.5 * np.log(strength / (1 - strength))
    expected = dict(zip(pairs, np.where(must, strength, -strength).tolist(), strict=True))
    named = frame.assign(i=[IDS[i] for i in frame["i"]], j=[IDS[j] for j in frame["j"]])

    def check(links):
        assert len(links) == len(IDS)
        assert [tuple(pair) for pair in links.pairs.tolist()] == sorted(expected)
        assert links.weights.tolist() == pytest.approx([expected[pair] for pair in sorted(expected)])

    frame.to_csv(folder / "rows.csv", index=False)
    check(Constraints.read_csv(folder / "rows.csv", len(IDS)))
    for table, ids in ((frame, None), (named, IDS)):
        table.to_csv(folder / "links.csv", index=False)
        table.to_csv(folder / "links.tsv", index=False, sep="\t")
        table.to_csv(folder / "links.csv.gz", index=False)
        table.to_parquet(folder / "links.parquet")
        for name in ("links.csv", "links.tsv", "links.csv.gz", "links.parquet"):
            check(read_links(folder / name, samples_of(len(IDS), ids)))


@pytest.mark.parametrize(
    ("header", "named"),
    [
        ("i,j,kind,confidence", "confidence"),
        ("i,j,kind,annotator,source", "annotator"),
        ("one,other,kind,confidence", "confidence"),
        ("one,other,third,kind", "left="),
        ("source,target,kind", "left="),
        ("i,j,kind,certainty,Weights", "Weights"),
        ("row,i,j,kind", "row"),
        ("i,j,kind,weight,Weight", "weight"),
        ("i,j,kind,i", "i"),
        ("i,j,kind,certainty, CERTAINTY ", "certainty"),
        ("i,j,kind,", "column 4"),
    ],
)
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_columns_that_are_refused(tmp_path, header, named, suffix):
    names = header.split(",")
    cells = {"i": "0", "j": "1", "kind": "must"}
    row = [cells.get(name.strip().lower(), "0.9") for name in names]
    path = tmp_path / f"links{suffix}"
    if suffix == ".csv":
        path.write_text(f"{header}\n{','.join(row)}\n")
        with pytest.raises(ValueError, match=named) as caught:
            Constraints.read_csv(path, 3)
        assert str(path) in str(caught.value)
    else:
        import pyarrow
        import pyarrow.parquet

        pyarrow.parquet.write_table(pyarrow.table([[cell] for cell in row], names=names), path)
    with pytest.raises(CommandError, match=named) as refused:
        read_links(path, samples_of(3))
    assert str(path) in str(refused.value)
    message = str(refused.value)
    if "unknown columns" in message:
        assert "ignore_columns= (--ignore-columns)" in message
        for known in (*(["i", "j"] if "i" in names else names[:2]), "kind", "weight", "certainty", "source"):
            assert re.search(rf"\b{known}\b", message.split("columns", 2)[-1])


def test_certainty_is_understood_by_the_library(tmp_path):
    path = tmp_path / "links.csv"
    path.write_text("i,j,kind,Certainty\n0,1,must,0.9\n1,2,different,1\n")
    expected = Constraints(3, [(0, 1)], [(1, 2)], certainty=[0.9, 1.0])
    assert Constraints.read_csv(path, 3) == expected
    assert read_links(path, samples_of(3)) == expected


def test_what_fit_writes_beside_links_may_stay(tmp_path):
    path = tmp_path / "links.csv"
    path.write_text("i,j,kind,weight,kept,violation_probability\n0,1,must_link,0.5,True,0.2\n")
    assert Constraints.read_csv(path, 3) == Constraints(3, [(0, 1)], weight=0.5)


def test_ids_that_differ_in_blanks(tmp_path):
    path = tmp_path / "links.csv"
    both = samples_of(3, ["a", "a ", " a"])
    path.write_text("i,j,kind\na,a ,cannot\na, a,must\n")
    assert read_links(path, both) == Constraints(3, [(0, 2)], [(0, 1)])
    path.write_text("i,j,kind\na,b ,must\n")
    with pytest.raises(CommandError, match=r"line 2: j is 'b ', .* but 'b' is: they differ in blanks"):
        read_links(path, samples_of(2, ["a", "b"]))
    path.write_text("i,j,kind\na,b,must\n")
    with pytest.raises(CommandError, match=r"j is 'b', .* but 'b ' is: they differ in blanks"):
        read_links(path, samples_of(2, ["a", "b "]))


def test_whole_floats_of_a_frame_are_row_numbers_and_ids():
    frame = pd.DataFrame({"i": [0.0, 1.0, None], "j": [2.0, 2.0, None], "kind": ["must", "cannot", None]})
    lines = link_list("links", frame_records("links", frame), by_row(3))
    assert lines.pairs.tolist() == [[0, 2], [1, 2]]
    lines = link_list("links", frame_records("links", frame), by_id({"0": 2, "1": 1, "2": 0}))
    assert lines.pairs.tolist() == [[0, 2], [0, 1]]
    large = pd.DataFrame({"i": [2.0**53], "j": [2.0], "kind": ["must"]})
    with pytest.raises(ValueError, match=r"links, row 0 \(counted from 0\): i is '9007199254740992.0'"):
        link_list("links", frame_records("links", large), by_id({str(2**53): 0, str(2**53 + 1): 1, "2": 2}))


@pytest.mark.parametrize("row", [2**63, 2**64, 10**30, "9" * 5000])
def test_row_numbers_no_array_can_hold(tmp_path, row):
    path = tmp_path / "links.csv"
    path.write_text(f"i,j,kind\n0,{row},must\n")
    for find in (by_row(None), by_row(5)):
        with pytest.raises(ValueError, match="line 2: j is"):
            link_list(path, records(path), find)


def test_damaged_archives(tmp_path):
    whole = gzip.compress(b"i,j,kind\n" + b"".join(b"%d,%d,must\n" % (i, i + 1) for i in range(500)))
    path = tmp_path / "links.csv.gz"
    for content in (whole[:-20], whole[: len(whole) // 2], whole[:5], b"i,j,kind\n0,1,must\n"):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"links\.csv\.gz is damaged"):
            Constraints.read_csv(path, 501)
    path.write_bytes(whole)
    assert Constraints.read_csv(path, 501).n_pairs == 500
