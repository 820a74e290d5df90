"""Reading data: what survives, and what is refused with which words."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow
import pyarrow.parquet
import pytest

from linkwise._tables import read_frame
from linkwise.cli.errors import CommandError
from linkwise.cli.samples import Preparation, read_samples
from linkwise.cli.tables import write_frame


def written(tmp_path, content, name="data.csv"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "is empty"),
        ("\n\n", "is empty"),
        ("a,b\n", "no rows"),
        ("1.0,2.0\n3,4\n", r"first line holds numbers \(1.0, 2.0\)"),
        ("a,a\n1,2\n", "several columns named 'a'"),
        (",a\n1,2\n", "column 1 has no name"),
        ("a,b\n1,2,3\n", "more cells"),
        ("a,b\n1,2\n1,2,3\n", "line 3"),
        ("a,b\n1,2\n3\n4,5\n", r"line 3: fewer cells \(1\) than the first line has names \(2\)"),
        ("a,b,c\n1,2,3\n1,2,\n1,2\n", "line 4: fewer cells"),
        ("a;b\n1;2\n", "semicolons"),
        (b"a,b\n\xff\xfe,1\n", "UTF-8|utf-8"),
        (b"\xff\xfe\x00a", "UTF-8"),
        ('a,b\n"1,2\n', "cannot be read as CSV"),
    ],
)
def test_bad_csv(tmp_path, content, words):
    path = written(tmp_path, content)
    with pytest.raises(ValueError, match=words) as caught:
        read_samples(path)
    assert str(path) in str(caught.value)


def test_other_bad_files(tmp_path):
    with pytest.raises(ValueError, match="no Parquet file"):
        read_frame(written(tmp_path, "a,b\n1,2\n", "data.parquet"))
    with pytest.raises(ValueError, match=r"\.csv, \.tsv and \.parquet files, not \.xlsx"):
        read_frame(tmp_path / "data.xlsx")
    with pytest.raises(ValueError, match="is a folder"):
        read_frame(tmp_path)
    with pytest.raises(FileNotFoundError):
        read_frame(tmp_path / "nothing.csv")
    with pytest.raises(FileNotFoundError):
        read_frame(tmp_path / "nothing.parquet")


def test_ids_and_labels_stay_as_they_were(tmp_path):
    path = written(tmp_path, "id, x ,class\n007,1,NA\n7,2,b\n1e3,3,\n")
    samples = read_samples(path, id_column="id", label_column="class")
    assert samples.ids.tolist() == ["007", "7", "1e3"]
    assert samples.labels.tolist() == ["NA", "b", None]
    assert samples.features.columns.tolist() == ["x"]
    assert samples.row_names.tolist() == ["007", "7", "1e3"]


@pytest.mark.parametrize(
    ("column", "labels"),
    [
        (["3", "10", "-1"], [3, 10, -1]),
        (["3", "010", ""], ["3", "010", None]),
        (["1.5", "2", "2"], ["1.5", "2", "2"]),
    ],
)
def test_labels_are_numbers_only_if_nothing_is_lost(tmp_path, column, labels):
    lines = "\n".join(f"{row}.5,{name}" for row, name in enumerate(column))
    samples = read_samples(written(tmp_path, f"x,y\n{lines}\n"), label_column="y")
    assert samples.labels.tolist() == labels


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet", ".csv.gz"])
def test_round_trip(tmp_path, suffix):
    frame = pd.DataFrame({"id": ["a", "b,c", 'd"e'], "x": [0.1, 1e-300, -3.0], "k": [1, 2, 3]})
    again = read_frame(write_frame(tmp_path / f"table{suffix}", frame))
    pd.testing.assert_frame_equal(again, frame, check_dtype=False)


def test_missing_values_are_refused_with_their_rows(tmp_path):
    path = written(tmp_path, "id,x,y\na,1,2\nb,,2\nc,3,NA\nd,5,6\n")
    with pytest.raises(
        CommandError, match=r"2 values are missing, in row 1 \(id b\), 2 \(id c\).*column x, y"
    ):
        read_samples(path, id_column="id")
    with pytest.raises(CommandError, match=r"in row 1, 2 \(counted from 0\)"):
        read_samples(path, ignore=["id"])


def test_impute_fills_in_medians_and_says_so(tmp_path):
    path = written(tmp_path, "x,y\n1,7\n,5\n4,NA\n100,5\n")
    samples = read_samples(path, impute=True)
    assert samples.features.to_numpy().tolist() == [[1, 7], [4, 5], [4, 5], [100, 5]]
    assert samples.notes == (
        "2 missing values in 2 rows were replaced by medians of their columns: x 4, y 5",
    )
    given = read_samples(path, features=["x", "y"], impute=True, medians=[-1.0, -2.0])
    assert given.features.to_numpy()[1:3].tolist() == [[-1, 5], [4, -2]]
    with pytest.raises(CommandError, match="column y has no value at all"):
        read_samples(written(tmp_path, "x,y\n1,\n2,\n"), impute=True)


@pytest.mark.parametrize(
    ("content", "options", "words"),
    [
        ("x,y\n1,red\n2,blue\n", {}, "'y' is 'red' in row 0.*--label or --id.*--ignore 'y'"),
        ("x,y\n1,2\n2,3\n3,4\n4,o5\n", {}, "'y' is 'o5' in row 3, which is no number; correct it"),
        ("x,y\n1,inf\n2,3\n", {}, "'y' is infinite in row 0"),
        ("x,y\n1,2\n", {"id_column": "z"}, "no column 'z'; it has x, y"),
        ("x,y\n1,2\n", {"features": ["x", "z"]}, "no column 'z'"),
        ("x,y\n1,2\n", {"ignore": ["x", "y"]}, "no column left"),
        ("i,x\na,1\n,2\n", {"id_column": "i"}, "'i' is empty in row 1"),
        ("i,x\na,1\na,2\n", {"id_column": "i"}, r"has a more than once \(a in rows 0, 1, counted from 0\)"),
        ("x,y\n1,2\n,3\n", {}, r"1 value is missing, in row 1 .*; fill it in, leave the row out"),
    ],
)
def test_bad_columns(tmp_path, content, options, words):
    with pytest.raises(CommandError, match=words):
        read_samples(written(tmp_path, content), **options)


def test_a_column_that_counts_rows_is_pointed_out(tmp_path):
    samples = read_samples(written(tmp_path, "index,x\n0,5\n1,7\n2,1\n3,3\n"))
    assert samples.notes == ("column 'index' only counts the rows; if it is an id, pass --id index",)


def test_empty_line_of_a_single_column_is_a_missing_value(tmp_path):
    with pytest.raises(CommandError, match="in row 1 "):
        read_samples(written(tmp_path, "x\n1\n\n3\n"))


def test_standardised_columns(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(5, 2, 40), "b": np.full(40, 0.1), "c": rng.normal(0, 1e-6, 40)})
    samples = read_samples(write_frame(tmp_path / "data.csv", frame))
    scaled = Preparation.of(samples, standardize=True, clusters=[]).apply(samples.features).to_numpy()
    assert np.allclose(scaled.mean(axis=0), 0)
    assert np.allclose(scaled.std(axis=0), [1, 0, 1])
    plain = Preparation.of(samples, standardize=False, clusters=[]).apply(samples.features)
    assert np.array_equal(plain.to_numpy(), frame.to_numpy())


def test_parquet_with_two_columns_of_one_name(tmp_path):
    path = tmp_path / "data.parquet"
    pyarrow.parquet.write_table(pyarrow.table([[1, 2], [3, 4]], names=["a", "a"]), path)
    with pytest.raises(ValueError, match="several columns named 'a'; rename them"):
        read_samples(path)


def test_short_lines_are_not_taken_for_missing_labels(tmp_path):
    path = written(tmp_path, "id,x,class\na,1,red\nb,2\n")
    with pytest.raises(ValueError, match="line 3: fewer cells"):
        read_samples(path, id_column="id", label_column="class")
    path = written(tmp_path, "id,x,class\na,1,red\n\nb,2,\n\n")
    assert read_samples(path, id_column="id", label_column="class").labels.tolist() == ["red", None]


def test_blanks_belong_to_ids_but_not_to_numbers_and_labels(tmp_path):
    path = written(tmp_path, "id,x,class\na, 1 , red\na , NA ,red \n a,2,\n")
    samples = read_samples(path, id_column="id", label_column="class", impute=True)
    assert samples.ids.tolist() == ["a", "a ", " a"]
    assert samples.places == {"a": 0, "a ": 1, " a": 2}
    assert samples.features["x"].tolist() == [1, 1.5, 2]
    assert samples.labels.tolist() == ["red", "red", None]
    with pytest.raises(CommandError, match="'id' is empty in row 1"):
        read_samples(written(tmp_path, "id,x\na,1\n  ,2\n"), id_column="id")
    with pytest.raises(ValueError, match="'class' has blanks before a quotation mark in row 1"):
        read_samples(written(tmp_path, 'x,class\n1,"red"\n2, "red"\n'), label_column="class")


LARGE = [2**53, 2**53 + 1, 2**53 + 2, 2**60 + 1, -(2**53) - 1]


@pytest.mark.parametrize("gap", [False, True])
@pytest.mark.parametrize("kind", ["csv", "int64", "uint64", "Int64", "text", "category"])
def test_whole_numbers_beyond_2_53_stay_apart(tmp_path, kind, gap):
    """As classes, with and without rows that have none; as ids, which every row has."""
    numbers = [abs(number) for number in LARGE] if kind == "uint64" else LARGE
    labels = [*numbers, None] if gap else numbers
    ids = list(range(2**53, 2**53 + len(labels)))
    if kind == "csv":
        lines = [
            f"{i},{row},{'' if y is None else y}" for row, (i, y) in enumerate(zip(ids, labels, strict=True))
        ]
        path = written(tmp_path, "\n".join(["id,x,class", *lines, ""]))
    else:
        path = tmp_path / "data.parquet"
        column = {
            "int64": lambda: pyarrow.array(labels, pyarrow.int64()),
            "uint64": lambda: pyarrow.array(labels, pyarrow.uint64()),
            "Int64": lambda: pyarrow.array(pd.Series(labels, dtype="Int64")),
            "text": lambda: pyarrow.array([None if y is None else str(y) for y in labels]),
            "category": lambda: pyarrow.array(labels, pyarrow.int64()).dictionary_encode(),
        }[kind]()
        table = {"id": pyarrow.array(ids), "x": np.arange(len(ids), dtype=float), "class": column}
        pyarrow.parquet.write_table(pyarrow.table(table), path)
    samples = read_samples(path, id_column="id", label_column="class")
    assert samples.labels.tolist() == labels
    assert samples.places == {str(name): row for row, name in enumerate(ids)}
    assert [str(name) for name in samples.row_names] == [str(name) for name in ids]


@pytest.mark.parametrize("column", ["id", "class"])
def test_floats_that_may_have_been_rounded_are_refused(tmp_path, column):
    frame = pd.DataFrame({"id": [1.0, 2.0, 3.0], "x": [1.0, 2.0, 4.0], "class": [1.0, 2.0, np.nan]})
    frame.to_parquet(tmp_path / "data.parquet")
    samples = read_samples(tmp_path / "data.parquet", id_column="id", label_column="class")
    assert samples.labels.tolist() == [1, 2, None]
    frame.loc[1, column] = 2.0**53
    frame.to_parquet(tmp_path / "data.parquet")
    with pytest.raises(CommandError, match=rf"'{column}' is 9007199254740992.0 in row 1.*integers or text"):
        read_samples(tmp_path / "data.parquet", id_column="id", label_column="class")
