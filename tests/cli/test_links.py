"""Reading links: the same as Constraints.read_csv by row, and by id, with errors that name the line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from linkwise import Constraints
from linkwise.cli.errors import CommandError
from linkwise.cli.samples import Samples
from linkwise.cli.tables import read_links


def samples_of(n, ids=None):
    frame = pd.DataFrame({"x": np.arange(n, dtype=float)})
    return Samples(Path("data.csv"), frame, None if ids is None else pd.Series(ids, name="id"))


def written(tmp_path, content, name="links.csv"):
    path = tmp_path / name
    path.write_text(content)
    return path


@pytest.mark.parametrize("seed", range(5))
def test_by_row_as_constraints_read_them(tmp_path, seed):
    rng = np.random.default_rng(seed)
    weight = np.where(rng.random(20) < 0.3, np.inf, rng.exponential(size=20))
    pairs = rng.permutation(80)[:40].reshape(20, 2)
    links = Constraints(80, pairs[:9], pairs[9:], weight=weight)
    links.to_csv(tmp_path / "links.csv")
    assert read_links(tmp_path / "links.csv", samples_of(80)) == links
    # pandas 2 rounds the last digit unless asked not to.
    table = pd.read_csv(tmp_path / "links.csv", float_precision="round_trip")
    table.to_parquet(tmp_path / "links.parquet")
    assert read_links(tmp_path / "links.parquet", samples_of(80)) == links


def test_by_id(tmp_path):
    path = written(tmp_path, "i,j,kind\n007,b, must-link\nb,7,Cannot \n")
    samples = samples_of(3, ["7", "007", "b"])
    assert read_links(path, samples) == Constraints(3, [(1, 2)], [(0, 2)])
    rows = written(tmp_path, "i,j,kind\n0,1,same\n", "rows.csv")
    assert read_links(rows, samples, by_row=True) == Constraints(3, [(0, 1)])


def test_certainty_of_links_without_one(tmp_path):
    path = written(
        tmp_path,
        "kind,i,j,weight,certainty\nmust,0,1,,\nmust,2,3,0.5,\ncannot,4,5,,0.8\ncannot,6,7,inf,\nmust,8,9,,1\n",
    )
    hard = np.inf
    sure = 0.5 * np.log(9)
    expected = Constraints(
        10, [(0, 1), (2, 3), (8, 9)], [(4, 5), (6, 7)], weight=[sure, 0.5, hard, 0.5 * np.log(4), hard]
    )
    found = read_links(path, samples_of(10), certainty=0.9)
    assert np.array_equal(found.pairs, expected.pairs)
    assert np.allclose(found.weights, expected.weights)
    with pytest.raises(CommandError, match="line 2: weight and certainty are empty, and the link is not"):
        read_links(path, samples_of(10))


def test_no_file_means_no_links():
    assert read_links(None, samples_of(4)).n_pairs == 0


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "has no column i, j, kind .it is empty"),
        ("i,j,kind\n", "has no links"),
        ("a,b\n0,1\n", "has no column kind .it has a, b"),
        ("i,j,kind\n0,1,must\n1,9,must\n", r"line 3: j is 9, but rows are numbered 0\.\.4"),
        ("i,j,kind\n-1,2,must\n", "line 2: i is -1"),
        ("i,j,kind\n0,x,must\n", "line 2: j is 'x', which is no row number; for links by id"),
        ("i,j,kind\n3,3,must\n", "line 2: 3 is linked to itself"),
        ("i,j,kind\n0,1,friends\n", "kind is 'friends'; write must_link or cannot_link"),
        ("i,j,kind,weight\n0,1,must,heavy\n", "weight is 'heavy'"),
        ("i,j,kind,weight\n0,1,must,-2\n", "weight is -2; it must be >= 0"),
        ("i,j,kind,weight\n0,1,must,nan\n", "weight is nan"),
        ("i,j,kind,certainty\n0,1,must,0.2\n", "certainty is 0.2"),
        ("i,j,kind,weight,certainty\n0,1,must,1,0.9\n", "not both"),
        ("i,j,kind\n0,1,must,5,6\n", "line 2: more cells"),
    ],
)
def test_bad_lines(tmp_path, content, words):
    with pytest.raises(CommandError, match=words) as caught:
        read_links(written(tmp_path, content), samples_of(5))
    assert "links.csv" in str(caught.value)
    assert caught.value.code == 1


def test_unknown_id_and_unreadable_file(tmp_path):
    path = written(tmp_path, "i,j,kind\na,zz,must\n")
    with pytest.raises(CommandError, match="line 2: j is 'zz', which is no id of the data"):
        read_links(path, samples_of(2, ["a", "b"]))
    path.write_bytes(b"i,j,kind\n\xff,1,must\n")
    with pytest.raises(CommandError, match="not text in UTF-8"):
        read_links(path, samples_of(2))
    with pytest.raises(FileNotFoundError):
        read_links(tmp_path / "nothing.csv", samples_of(2))


def test_contradiction_names_rows_and_ids(tmp_path):
    path = written(tmp_path, "i,j,kind\na,b,must\nb,c,must\na,c,cannot\n")
    with pytest.raises(
        CommandError, match=r"0 and 2 must be together \(0-1-2\).*row 0 is 'a'.*row 2 is 'c'"
    ) as error:
        read_links(path, samples_of(3, ["a", "b", "c"]))
    assert error.value.code == 3
    # More clusters would not help, and one piece of advice is enough.
    assert str(error.value).endswith("; remove one of these links, or make them soft with --certainty")
    assert str(error.value).count("remove one of these links") == 1


def test_links_that_cancel_each_other_are_refused(tmp_path):
    path = written(tmp_path, "i,j,kind\n0,1,same\n1,0,different\n")
    with pytest.raises(CommandError, match=r"links\.csv: no link is left, because answers .* cancel"):
        read_links(path, samples_of(3), certainty=0.9)


def test_columns_that_the_user_names(invoke, refused, tmp_path):
    """A table of a colleague: two columns of ids with other names, a source, and remarks to leave out."""
    frame = pd.DataFrame({"name": list("abcdefgh"), "x": [0.0, 1, 2, 3, 10, 11, 12, 13]})
    frame.to_csv(tmp_path / "data.csv", index=False)
    (tmp_path / "links.csv").write_text(
        "from;to;kind;certainty;annotator;remark\na;b;yes;0,9;Ann;sure\na;e;no;0,8;Bob;\na;e;no;0,7;Ann;\n",
        encoding="utf-8-sig",
    )
    data, links = tmp_path / "data.csv", tmp_path / "links.csv"
    fit = [
        "fit",
        data,
        "-k",
        2,
        "--id",
        "name",
        "-l",
        links,
        "--starts",
        1,
        "-m",
        "ppc",
        "-o",
        tmp_path / "out",
    ]
    assert "'remark'" in refused(*fit, "--left", "from", "--right", "to")
    assert "--left" in refused(*fit)
    result = invoke(*fit, "--left", "from", "--right", "to", "--ignore-columns", "remark")
    assert result.exit_code == 0, result.output
    written = pd.read_csv(tmp_path / "out" / "links.csv")
    assert written[["i", "j"]].to_numpy().tolist() == [["a", "b"], ["a", "e"]]
    expected = [0.5 * np.log(9), 0.5 * (np.log(4) + np.log(7 / 3))]
    assert written["weight"].tolist() == pytest.approx(expected)
    checked = invoke(
        "check",
        links,
        "--data",
        data,
        "--id",
        "name",
        "--left",
        "from",
        "--right",
        "to",
        "--ignore-columns",
        "remark",
    )
    assert checked.exit_code == 0, checked.output
