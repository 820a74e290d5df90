"""Every error about links, labels and beliefs names argument, row and value, and what to do next."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import linkwise
from linkwise import PPC, ClassBeliefs, Constraints
from linkwise.beliefs import check_belief_array
from linkwise.inference import PottsField

NAN = float("nan")
LINKS = Constraints(5, [(0, 1)], [(1, 2)], weight=1.0)
BELIEFS = ClassBeliefs.keep(["lake", "wood"])
FIELD = PottsField(np.zeros((3, 2)), [(0, 1)], [1.0])
MASKED_PAIRS = np.ma.array([[0, 1], [2, 3]], mask=[[0, 0], [0, 1]])
X = np.random.default_rng(0).normal(size=(12, 2))

# A remedy tells the reader to do something; these are the words our messages do it with.
VERBS = (
    "pass write give remove correct use draw choose build drop fill leave reshape allow name rename take add "
    "divide move save"
)
REMEDY = re.compile(rf"\b({'|'.join(VERBS.split())})\b")

# call, the argument, the row (or None where no row is to blame), a part of the value
CASES = {
    # Constraints
    "n negative": (lambda: Constraints(-1), "n_samples", None, "-1"),
    "n fraction": (lambda: Constraints(2.5), "n_samples", None, "2.5"),
    "self link": (lambda: Constraints(8, [(0, 1), (7, 7)]), "must_link", 1, "(7, 7)"),
    "out of range": (lambda: Constraints(8, [], [(0, 1), (0, 9)]), "cannot_link", 1, "(0, 9)"),
    "negative row": (lambda: Constraints(8, [(-1, 2)]), "must_link", 0, "(-1, 2)"),
    "fraction": (lambda: Constraints(8, [(0, 1), (0.5, 2)]), "must_link", 1, "(0.5, 2.0)"),
    "nan row": (lambda: Constraints(8, [(0, 1), (NAN, 2)]), "must_link", 1, "(nan, 2.0)"),
    "text": (lambda: Constraints(8, [("a", "b")]), "must_link", 0, "('a', 'b')"),
    "text in frame": (
        lambda: Constraints(8, pd.DataFrame({"i": [0, 1], "j": [2, "x"]})), "must_link", 1, "(1, 'x')",
    ),
    "missing in frame": (
        lambda: Constraints(8, pd.DataFrame({"i": [0, 1], "j": [2, None]}, dtype="Int64")),
        "must_link", 1, "",
    ),
    "huge row": (lambda: Constraints(8, [(0, 1), (0, 2**70)]), "must_link", None, ""),
    "bool": (lambda: Constraints(8, [(True, False)]), "must_link", 0, "True"),
    "three columns": (lambda: Constraints(8, [(0, 1, 2)]), "must_link", None, "(1, 3)"),
    "flat": (lambda: Constraints(8, [0, 1]), "must_link", None, "(2,)"),
    "ragged": (lambda: Constraints(8, [(0, 1), (0, 1, 2)]), "must_link", 1, "(0, 1, 2)"),
    "no pairs": (lambda: Constraints(8, None), "must_link", None, "None"),
    "pairs without ends": (lambda: Constraints(8, [[], []]), "must_link", None, "(2, 0)"),
    "masked pair": (lambda: Constraints(8, MASKED_PAIRS), "must_link", 1, "masked"),
    "weight nan": (
        lambda: Constraints(8, [(0, 1)], [(2, 3), (3, 4)], weight=[1, 1, NAN]), "cannot_link", 1, "nan",
    ),
    "weight negative": (lambda: Constraints(8, [(0, 1), (2, 3)], weight=[1, -2]), "must_link", 1, "-2.0"),
    "weight text": (lambda: Constraints(8, [(0, 1), (2, 3)], weight=[1, "x"]), "weight", 1, "'x'"),
    "weight masked": (
        lambda: Constraints(8, [(0, 1), (2, 3)], weight=np.ma.array([1, 2], mask=[0, 1])), "weight", 1,
        "masked",
    ),
    "weight shape": (lambda: Constraints(8, [(0, 1)], weight=[1.0, 2.0]), "weight", None, "(2,)"),
    "weight without pairs": (lambda: Constraints(8, weight=-1.0), "weight", None, "-1.0"),
    "certainty low": (lambda: Constraints(8, [(0, 1)], certainty=0.4), "certainty", 0, "0.4"),
    "certainty percent": (lambda: Constraints(8, [(0, 1)], certainty=90), "certainty", 0, "90"),
    "both": (lambda: Constraints(8, [(0, 1)], weight=1.0, certainty=0.9), "certainty", None, ""),
    "contradiction": (lambda: Constraints(8, [(5, 2)], [(2, 5)]), "2 and 5", None, "(2-5)"),
    "row beyond": (lambda: LINKS[[0, 9]], "rows", 1, "9"),
    "row text": (lambda: LINKS[["a"]], "rows", 0, "a"),
    "row mask": (lambda: LINKS[[True, False]], "rows", None, "2"),
    "row masked": (lambda: LINKS[np.ma.array([0, 1], mask=[0, 1])], "rows", 1, "masked"),
    "row number": (lambda: LINKS[3], "rows", None, ""),
    "two keys": (lambda: LINKS[[0], [1]], "rows", None, ""),
    "union": (lambda: LINKS + Constraints(4), "n_samples", None, "4"),
    "few clusters": (lambda: LINKS.check(0), "n_clusters", None, "0"),
    "clusters text": (lambda: LINKS.check("3"), "n_clusters", None, "'3'"),
    "labels short": (lambda: LINKS.violations([0, 1]), "labels", None, "(2,)"),
    "labels masked": (
        lambda: LINKS.violations(np.ma.array([0, 1, 0, 1, 0], mask=[0, 0, 0, 1, 0])), "labels", 3, "masked",
    ),
    # Builders
    "y table": (lambda: Constraints.from_labels([[0, 1]]), "y", None, "(1, 2)"),
    "y number": (lambda: Constraints.from_labels(5), "y", None, "()"),
    "n_pairs many": (lambda: Constraints.sample([0, 0, 1], 2), "n_pairs", None, "2"),
    "n_pairs negative": (lambda: Constraints.sample([0, 0, 1], -1), "n_pairs", None, "-1"),
    "n_pairs fraction": (lambda: Constraints.sample([0, 0, 1], 0.5), "n_pairs", None, "0.5"),
    "flip": (lambda: Constraints.sample([0, 0, 1], 1, flip=1.5), "flip", None, "1.5"),
    "flip text": (lambda: Constraints.sample([0, 0, 1], 1, flip="x"), "flip", None, "'x'"),
    "certainty of a sample": (lambda: Constraints.sample([0, 0, 1], 1, certainty=2), "certainty", 0, "2"),
    "random_state": (lambda: Constraints.sample([0, 0], 1, random_state="x"), "random_state", None, "'x'"),
    "n_teachers": (lambda: Constraints.from_teachers([0, 1], -1, 1), "n_teachers", None, "-1"),
    "subset_size": (lambda: Constraints.from_teachers([0, 1], 1, 5), "subset_size", None, "5"),
    "subset_size fraction": (lambda: Constraints.from_teachers([0, 1], 1, 1.5), "subset_size", None, "1.5"),
    "groups": (lambda: Constraints.from_partial_classes([[0]]), "groups", None, "(1, 1)"),
    "per_point": (lambda: Constraints.from_partial_classes([0, 1], per_point=0), "per_point", None, "0"),
    "shape flat": (lambda: Constraints.from_grid((3,)), "shape", None, "(3,)"),
    "shape number": (lambda: Constraints.from_grid(3), "shape", None, "3"),
    "shape fraction": (lambda: Constraints.from_grid((3, 2.5)), "shape", 1, "2.5"),
    "shape zero": (lambda: Constraints.from_grid((0, 2)), "shape", 0, "0"),
    "connectivity": (lambda: Constraints.from_grid((3, 3), connectivity=6), "connectivity", None, "6"),
    "mask type": (lambda: Constraints.from_grid((2, 2), mask=np.ones((2, 2))), "mask", None, "float64"),
    "mask masked": (
        lambda: Constraints.from_grid((1, 2), mask=np.ma.array([[True, True]], mask=[[0, 1]])),
        "mask", "0, 1", "masked",
    ),
    "breaks": (lambda: Constraints.from_sequence(6, breaks=[2, 9]), "breaks", 1, "9"),
    "breaks text": (lambda: Constraints.from_sequence(6, breaks=["2"]), "breaks", 0, "'2'"),
    "breaks masked": (
        lambda: Constraints.from_sequence(6, breaks=np.ma.array([2, 3], mask=[0, 1])), "breaks", 1, "masked",
    ),
    "sequence length": (lambda: Constraints.from_sequence(2.5), "n_samples", None, "2.5"),
    # The field
    "field self link": (lambda: PottsField(np.zeros((3, 2)), [(0, 1), (1, 1)], [1, 1]), "pairs", 1, "(1, 1)"),
    "field range": (lambda: PottsField(np.zeros((3, 2)), [(0, 3)], [1]), "pairs", 0, "(0, 3)"),
    "field columns": (lambda: PottsField(np.zeros((3, 2)), [(0, 1, 2)], [1]), "pairs", None, "(1, 3)"),
    "unary nan": (lambda: PottsField([[0, 0], [0, NAN]], [], []), "unary", "1, 1", "nan"),
    "unary forbidden": (lambda: PottsField([[0, 0], [-np.inf] * 2], [], []), "unary", 1, "-inf"),
    "unary shape": (lambda: PottsField([0, 0], [], []), "unary", None, "(2,)"),
    "unary masked": (
        lambda: PottsField(np.ma.array([[0.0], [1.0]], mask=[[0], [1]]), [], []), "unary", 1, "masked",
    ),
    "coupling shape": (lambda: PottsField(np.zeros((3, 2)), [(0, 1)], [1, 2]), "coupling", None, "(2,)"),
    "coupling nan": (lambda: PottsField(np.zeros((3, 2)), [(0, 1)], [NAN]), "coupling", 0, "NaN"),
    "coupling half hard": (
        lambda: PottsField(np.zeros((3, 2)), [(0, 1)], [[np.inf, 1]]), "coupling", 0, "+inf",
    ),
    "score shape": (lambda: FIELD.score([0]), "labels", None, "(1,)"),
    "score range": (lambda: FIELD.score([0, 1, 2]), "labels", 2, "2"),
    "with_unary": (lambda: FIELD.with_unary(np.zeros((2, 2))), "unary", None, "(2, 2)"),
    # Beliefs
    "belief range": (lambda: check_belief_array([[1, 2], [2, 1]], 2), "belief", "(0, 1)", "2"),
    "belief nan": (lambda: check_belief_array([[1, NAN], [0, 1]], 2), "belief", "(0, 1)", "nan"),
    "belief halves": (lambda: check_belief_array([[1, 0], [0.5, 1]], 2), "belief", "(0, 1)", "0.5"),
    "belief text": (lambda: check_belief_array([[1, "x"], [0, 1]], 2), "belief", "(0, 1)", "'x'"),
    "belief shape": (lambda: check_belief_array([[1, 0]], 2), "beliefs", None, "(1, 2)"),
    "belief ragged": (lambda: check_belief_array([[1, 0], [0]], 2), "beliefs", None, ""),
    "belief masked": (
        lambda: check_belief_array(np.ma.array(np.eye(2), mask=[[0, 1], [0, 0]]), 2), "beliefs", "0, 1",
        "masked",
    ),
    "no classes": (lambda: ClassBeliefs.keep([]), "classes", None, ""),
    "one string": (lambda: ClassBeliefs.keep("lake"), "classes", None, "'lake'"),
    "class twice": (lambda: ClassBeliefs.keep(["a", "b", "a"]), "classes", 2, "'a'"),
    "class unlabelled": (lambda: ClassBeliefs.keep(["a", -1]), "class", 1, "-1"),
    "class list": (lambda: ClassBeliefs.keep(["a", ["b"]]), "class", 1, "['b']"),
    "unknown class": (lambda: BELIEFS.split("meadow"), "class", None, "'meadow'"),
    "strength": (lambda: BELIEFS.merge("lake", "wood", 2), "strength", None, "2"),
    "strength text": (lambda: BELIEFS.merge("lake", "wood", "x"), "strength", None, "'x'"),
    "same class": (lambda: BELIEFS.merge("lake", "lake"), "'lake'", None, ""),
    "no class to split": (lambda: BELIEFS.split(), "class", None, ""),
    "beliefs missing": (lambda: BELIEFS.for_classes(["lake", "meadow"]), "beliefs", None, "'meadow'"),
    "beliefs too many": (lambda: BELIEFS.for_classes(["lake"]), "beliefs", None, "'wood'"),
    # Estimators: the shared checks
    "raw pairs": (lambda: PPC(2).fit(X, constraints=[(0, 1)]), "constraints", None, "list"),
    "other rows": (lambda: PPC(2).fit(X, constraints=Constraints(5)), "constraints", None, "5"),
    "components": (lambda: PPC(0).fit(X), "n_components", None, "0"),
    "tolerance": (lambda: PPC(2, tol=-1.0).fit(X), "tol", None, "-1.0"),
    "covariance": (lambda: PPC(2, covariance_type="round").fit(X), "covariance_type", None, "'round'"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_names_argument_row_value_and_remedy_in_one_line(case):
    call, argument, row, value = CASES[case]
    with pytest.raises((ValueError, TypeError, IndexError)) as caught:
        call()
    message = str(caught.value)
    assert len(message.splitlines()) == 1
    assert re.search(rf"(?<!\w){re.escape(argument)}", message), message
    assert value in message, message
    # The remedy follows what is wrong.
    assert REMEDY.search(message.replace(argument, "", 1)), message
    if row is not None:
        assert re.search(
            rf"(?<![\d.]){re.escape(str(row))}(?![\d.]\d)", message.replace(value, "", 1) or message
        )


@pytest.mark.parametrize(
    ("content", "line", "value"),
    [
        (b",a,b\na,1,x\nb,x,1\n", "line 2", "'x'"),
        (b",a,b\na,1,\nb,0,1\n", "line 2", "empty"),
        (b",a,b\na,1\nb,0,1\n", "line 2", "1 values for 2"),
        (b",a,b\na,1,0\n", "", "'b'"),
        (b",a,b\na,1,3\nb,3,1\n", "", "3"),
        (b",a,a\na,1,0\n", "", "'a'"),
        (b",a,\na,1,0\n", "", "first line"),
        (b"", "", "class names"),
        (b"\xff\xfe,a\n", "", "byte 0"),
        (b',"a,b\na,1,0\n', "line", "end of data"),
    ],
)
def test_files_of_beliefs(tmp_path, content, line, value):
    path = tmp_path / "beliefs.csv"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=re.escape(value)) as caught:
        ClassBeliefs.from_csv(path)
    message = str(caught.value)
    assert str(path) in message
    assert line in message
    assert len(message.splitlines()) == 1
    assert REMEDY.search(message.replace(str(path), "")) or "must be" in message, message


# Their messages are reasons inside a ModelFileError, which adds the remedy.
REASONS = {"persistence/__init__.py", "persistence/checks.py", "persistence/layout.py"}
OTHER_VERBS = (
    "ask fit call compare choose convert copy count crop empty install keep label pack put run set sort"
)


def written_part(node):
    """The text of a message as far as it stands in the source; {} for what is filled in."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(written_part(part) for part in node.values)
    if isinstance(node, ast.BinOp):
        return written_part(node.left) + written_part(node.right)
    return "{}"


def messages_of(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args:
            name = getattr(node.exc.func, "id", "")
            if name in ("ValueError", "TypeError", "IndexError"):
                yield f"{path.name}:{node.lineno}", written_part(node.exc.args[0])


def test_every_message_of_the_library_says_what_to_do_next():
    """Read from the source; where the remedy itself is filled in, it is tested above."""
    verbs = re.compile(rf"\b({'|'.join([*VERBS.split(), *OTHER_VERBS.split()])})\b", re.IGNORECASE)
    folder = Path(linkwise.__file__).parent
    seen, silent = 0, []
    for path in sorted(folder.rglob("*.py")):
        place = path.relative_to(folder).as_posix()
        if place.startswith("cli/") or place in REASONS:
            continue
        for where, message in messages_of(path):
            seen += 1
            if not verbs.search(message) and not re.search(r"([;:]|: it) \{\}$", message):
                silent.append(f"{where}: {message}")
    assert seen > 150
    assert silent == []


FRAME = pd.DataFrame({"age": [30.0, 41.0, 52.0], "height": [1.7, 1.8, 1.6]}, index=["ann", "bob", "carl"])
TIMES = pd.Timestamp("2020-01-01")
LEAVE_OUT = "leave the column out"


@pytest.mark.filterwarnings("ignore:X has feature names")
@pytest.mark.parametrize(
    ("table", "where", "what", "remedy"),
    [
        ([[1, 2], [3, NAN]], "X[1, 1]", "NaN", "fill it in"),
        ([[1, None], [3, 4]], "X[0, 1]", "NaN", "fill it in"),
        ([[1, 2], [-np.inf, 4]], "X[1, 0]", "inf", "correct it"),
        (np.array([["1", "x{}"]] * 2), "X[0, 1]", "'x{}'", LEAVE_OUT),
        (FRAME.mask(FRAME == 1.8), "column 'height' of row 'bob'", "NaN", "fill it in"),
        (FRAME.mask(FRAME == 1.8).astype("Float64"), "column 'height' of row 'bob'", "NaN", "fill it in"),
        (FRAME.assign(town="Lima").reset_index(drop=True), "column 'town' of row 0", "'Lima'", LEAVE_OUT),
        (FRAME.assign(seen=TIMES), "column 'seen' of row 'ann'", "'2020-01-01 00:00:00'", LEAVE_OUT),
        (FRAME.astype({"age": "category"}).assign(b=["u", "v", "u"]), "column 'b' of", "'u'", LEAVE_OUT),
        (X[:, 0], "12 values in one dimension", "Expected 2D array", "X.reshape(-1, 1)"),
        (X + 1j, "X holds complex", "Complex data", "pass X.real"),
    ],
)
def test_rows_that_are_no_numbers_are_named(table, where, what, remedy):
    """In every estimator alike, for fit and for predict."""
    fitted = PPC(1).fit(X)
    calls = [
        PPC(2).fit,
        fitted.predict,
        linkwise.HMRFKMeans(2).fit,
        linkwise.ConstrainedSpectralClustering(2).fit,
        linkwise.DiscriminativeClustering(2).fit,
        linkwise.LinkedClustering(2).fit,
        lambda rows: linkwise.CPPC(2).fit(rows, [0] * len(rows)),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=re.escape(where)) as caught:
            call(table)
        message = str(caught.value)
        assert len(message.splitlines()) == 1
        assert what in message
        assert remedy in message


def test_data_in_place_of_their_number_of_rows():
    with pytest.raises(
        ValueError, match=r"got a ndarray of shape \(12, 2\); pass one number, such as len\(X\)"
    ):
        Constraints(X, must_link=[(0, 1)])


def test_several_numbers_in_place_of_one():
    with pytest.raises(ValueError, match=r"^n_components .* got a list of shape \(2,\); pass one number$"):
        PPC([2, 3]).fit(X)
