"""Whatever goes wrong: one line that says what to do, an exit code, an object for scripts, no traceback."""

from __future__ import annotations

import ast
import gzip
import json
import os
import resource
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

import linkwise.cli
from linkwise import PPC
from linkwise.cli.errors import CommandError
from linkwise.cli.samples import load_prepared_model
from linkwise.persistence import save_model
from tests import warm_python
from tests.repeats import examples

NUMBERS = ["--ignore", "name,class"]


@pytest.fixture(scope="module")
def bad(tmp_path_factory):
    """A folder of good files and of many bad ones."""
    folder = tmp_path_factory.mktemp("bad")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "name": [f"r{i}" for i in range(12)],
            "x": rng.normal(size=12),
            "y": rng.normal(size=12),
            "class": ["a", "b"] * 6,
        }
    )
    frame.to_csv(folder / "data.csv", index=False)
    texts = {
        "empty.csv": "",
        "head.csv": "x,y\n",
        "numbers.csv": "1,2\n3,4\n",
        "twice.csv": "x,x\n1,2\n",
        "nameless.csv": "x,,y\n1,2,3\n",
        "ragged.csv": "x,y\n1,2\n1,2,3\n",
        "semicolons.csv": "x;y\n1;2\n",
        "quote.csv": 'x,y\n"1,2\n',
        "text.csv": "x,y\n1,one\n2,two\n",
        "holes.csv": "x,y\n1,\n2,3\n4,5\n",
        "inf.csv": "x,y\n1,inf\n2,3\n",
        "same_ids.csv": "name,x\na,1\na,2\n",
        "no_ids.csv": "name,x\na,1\n,2\n",
        "unlabelled.csv": "x,class\n1,\n2,\n",
        "one_class.csv": "x,class\n1,a\n2,a\n",
        "links.csv": "i,j,kind\n0,1,must\n2,3,cannot\n",
        "links_head.csv": "i,j,kind\n",
        "links_columns.csv": "from,to,kind,confidence\n0,1,must,0.9\n",
        "links_self.csv": "i,j,kind\n1,1,must\n",
        "links_far.csv": "i,j,kind\n0,12,must\n",
        "links_minus.csv": "i,j,kind\n-1,2,must\n",
        "links_huge.csv": f"i,j,kind\n0,{2**63},must\n",
        "links_huger.csv": f"i,j,kind\n0,{10**40},must\n",
        "links_text.csv": "i,j,kind\na,b,must\n",
        "links_kind.csv": "i,j,kind\n0,1,perhaps\n",
        "links_weight.csv": "i,j,kind,weight\n0,1,must,-3\n",
        "links_certainty.csv": "i,j,kind,certainty\n0,1,must,0.2\n",
        "links_both.csv": "i,j,kind,weight,certainty\n0,1,must,1,0.9\n",
        "links_word.csv": "i,j,kind,weight\n0,1,must,much\n",
        "links_ragged.csv": "i,j,kind\n0,1,must,5\n",
        "links_ring.csv": "i,j,kind\n0,1,must\n1,2,must\n0,2,cannot\n",
        "links_clique.csv": "i,j,kind\n0,1,cannot\n1,2,cannot\n0,2,cannot\n",
        "beliefs_other.csv": "class,p,q\np,1,-1\nq,-1,1\n",
        "beliefs_big.csv": "class,a,b\na,1,-7\nb,-7,1\n",
        "beliefs_word.csv": "class,a,b\na,1,no\nb,no,1\n",
        "beliefs_bare.csv": "nothing\n",
        "beliefs.csv": "class,a,b\na,1,-1\nb,-1,1\n",
        "pixels_far.csv": "y1,x1,y2,x2,kind\n0,0,0,99,must\n",
        "pixels_text.csv": "y1,x1,y2,x2,kind\n0,0,0,x,must\n",
        "pixels_huge.csv": f"y1,x1,y2,x2,kind\n0,0,0,{2**70},must\n",
        "text.png": "not an image",
        "table.xlsx": "PK",
        "table.parquet": "PAR1 not",
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    (folder / "latin.csv").write_bytes("x,größe\n1,2\n".encode("latin-1"))
    Image.fromarray(np.uint8(rng.integers(0, 255, (6, 7)))).save(folder / "image.png")
    whole = gzip.compress(b"x,y\n" + b"1.5,2.25\n" * 4000, mtime=0)
    (folder / "cut.csv.gz").write_bytes(whole[: len(whole) // 2])
    (folder / "cut_early.csv.gz").write_bytes(whole[:12])
    (folder / "plain.csv.gz").write_text("x,y\n1,2\n")
    overwritten = bytearray(whole)
    overwritten[14:30] = b"\xff" * 16
    (folder / "overwritten.csv.gz").write_bytes(bytes(overwritten))
    model = PPC(2, random_state=0).fit(frame[["x", "y"]])
    columns = {
        "columns": ["x", "y"],
        "centres": [0.0, 0.0],
        "scales": [1.0, 1.0],
        "medians": [0.0, 0.0],
        "clusters": ["0", "1"],
    }
    variants = {
        "list": [],
        "number": 5,
        "texts": {**columns, "scales": "ab"},
        "numbers": {**columns, "columns": [1, 2]},
        "short": {**columns, "centres": [0.0]},
        "zero": {**columns, "scales": [0.0, 1.0]},
        "null": {**columns, "clusters": None},
        "extra": {**columns, "more": 1},
    }
    save_model(model, folder / "model")
    (folder / "model" / "columns.json").write_text(json.dumps(columns))
    for name, content in variants.items():
        save_model(model, folder / f"model_{name}")
        (folder / f"model_{name}" / "columns.json").write_text(json.dumps(content))
    save_model(model, folder / "model_deep")
    (folder / "model_deep" / "columns.json").write_text("[" * 100_000)
    save_model(model, folder / "model_deeper")
    (folder / "model_deeper" / "model.json").write_text('{"a":' * 100_000)
    (folder / "taken").write_text("")
    return folder


FIT = "fit data.csv -k 2 --ignore name,class"
SEGMENT = "segment image.png -k 2"
# The command, and its exit code.
INVOCATIONS = [
    ("fit", 2), ("fit data.csv -m ppc", 2), ("fit data.csv -k 0", 2), ("fit data.csv -k two", 2),
    ("fit data.csv -k 2 --method magic", 2), ("fit data.csv -k 2 --certainty 0.2", 2),
    ("fit data.csv -k 2 --nonsense", 2), ("fit data.csv extra -k 2", 2), ("nonsense", 2), ("--nonsense", 2),
    ("fit data.csv -k 2 --seed -1", 2), ("fit data.csv -k 2 --format xml", 2), ("fit data.csv -k", 2),
    ("fit nothing.csv -k 2", 1), ("fit . -k 2", 2), ("fit table.xlsx -k 2", 1), ("fit table.parquet -k 2", 1),
    *((f"fit {name}.csv -k 2", 1) for name in (
        "empty", "head", "numbers", "twice", "nameless", "ragged", "semicolons", "quote", "text", "holes",
        "inf", "latin",
    )),
    *((f"fit {name}.csv.gz -k 2", 1) for name in ("cut", "cut_early", "plain", "overwritten")),
    ("fit same_ids.csv -k 2 --id name", 1), ("fit no_ids.csv -k 2 --id name", 1),
    (f"{FIT} --id nobody", 1), ("fit data.csv -k 2", 1), ("fit data.csv -k 2 --features z", 1),
    ("fit data.csv -k 2 --ignore name,class,x,y", 1), ("fit data.csv -k 99 --ignore name,class", 1),
    (f"{FIT} -m ppc --seed 99999999999", 1), (f"{FIT} -o taken", 1), (f"{FIT} -o taken/deeper", 1),
    (f"{FIT} -l links.csv -c 0.9 -m cop", 1), (f"{FIT} -l nothing.csv", 1),
    *((f"{FIT} -l links_{name}.csv", 1) for name in (
        "head", "columns", "self", "far", "minus", "huge", "huger", "text", "kind", "weight", "certainty",
        "both", "word", "ragged",
    )),
    (f"{FIT} -l links_ring.csv", 3), (f"{FIT} -l links_clique.csv", 3),
    ("check nothing.csv", 1), ("check links_huge.csv", 1), ("check links_huger.csv", 1),
    ("check links.csv -n 3", 1), ("check links.csv -n 12 -k 1000000000", 1), ("check links.csv --id name", 1),
    ("check links.csv --data data.csv --id nobody", 1), ("check links.csv -n 99999999999", 1),
    ("check links.csv -n 0", 2),
    ("compare unlabelled.csv --label class", 1), ("compare data.csv --label nobody", 1),
    ("compare data.csv --label class --ignore name -k 50", 1), ("compare data.csv", 2),
    ("compare data.csv --label class --ignore name -l links_ring.csv", 3),
    ("classes one_class.csv --label class", 1), ("classes unlabelled.csv --label class", 1),
    ("classes data.csv --label class --ignore name -b nothing.csv", 1),
    *((f"classes data.csv --label class --ignore name -b beliefs_{name}.csv", 1) for name in (
        "other", "big", "word", "bare",
    )),
    ("classes data.csv --label class --ignore name -b beliefs.csv -k 2:9999999999", 1),
    ("classes data.csv --label class --ignore name -b beliefs.csv --criterion icl", 1),
    ("classes data.csv --label class --ignore name -b beliefs.csv -k 2:3 --criterion knee", 1),
    ("classes data.csv --label class -k 9:2", 2), ("classes data.csv --label class -k 0:2", 2),
    (f"classes data.csv --label class -k {'9' * 5000}", 2),
    *((f"predict model_{name} data.csv", 1) for name in (
        "list", "number", "texts", "numbers", "short", "zero", "null", "extra", "deep", "deeper",
    )),
    ("predict nothing data.csv", 1), ("predict taken data.csv", 1), ("predict model head.csv", 1),
    ("predict model text.csv", 1), ("predict model data.csv -o labels.xml", 1),
    ("predict model data.csv -o taken/labels.csv", 1),
    ("segment nothing.png -k 2", 1), ("segment text.png -k 2", 1), (f"{SEGMENT} --block 9", 1),
    ("segment image.png -k 99", 1), ("segment image.png -k 300", 1), (f"{SEGMENT} --connectivity 5", 2),
    *((f"{SEGMENT} -l pixels_{name}.csv", 1) for name in ("far", "text", "huge")),
    ("demo -o taken", 1),
]  # fmt: skip


@pytest.mark.parametrize(("command", "code"), INVOCATIONS, ids=[line[:60] for line, _ in INVOCATIONS])
def test_bad_invocation(bad, invoke, monkeypatch, command, code):
    monkeypatch.chdir(bad)
    before = sorted(os.listdir(bad))
    result = invoke(*command.split(), *([] if command.startswith("--") else ["--json"]))
    assert result.exit_code == code, result.output
    (line,) = result.stderr.splitlines()
    assert line.startswith("linkwise: ")
    problem, remedy = line.removeprefix("linkwise: ").rsplit("; ", 1)
    assert problem
    assert len(remedy) > 5
    if not command.startswith("--"):
        error = json.loads(result.stdout)["error"]
        assert error["exit_code"] == code
        assert f"linkwise: {error['message']}" == line
        assert error["kind"] == {1: "bad_input", 2: "usage", 3: "infeasible"}[code]
    assert sorted(os.listdir(bad)) == before


def test_every_message_of_the_command_has_a_remedy():
    """A semicolon divides what is wrong from what to do; messages that pass another on have that one's."""
    without = []
    for path in Path(linkwise.cli.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not (isinstance(node, ast.Call) and getattr(node.func, "id", "") == "CommandError"):
                continue
            text = ast.unparse(node.args[0])
            passes_on = text.endswith(("{error}'", '{error}"')) or text.startswith(
                ("_witness(", "str(error)")
            )
            if "; " not in text and not passes_on:
                without.append(f"{path.name}:{node.lineno}: {text}")
    assert without == []


def test_defects_and_usage_are_told_apart(invoke, files, monkeypatch):
    def broken(*arguments, **options):
        raise ZeroDivisionError("here")

    monkeypatch.setattr("linkwise.cli.check.find_contradictions", broken)
    result = invoke("check", files / "links.csv", "-n", 150, "--json")
    assert result.exit_code == 70
    error = json.loads(result.stdout)["error"]
    assert (error["kind"], error["exit_code"]) == ("defect", 70)
    assert "ZeroDivisionError: here" in error["message"]


@settings(
    max_examples=examples(20), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    content=st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["columns", "centres", "scales", "medians", "clusters", "x"]),
                inner,
                max_size=6,
            )
        ),
        max_leaves=12,
    ),
    whole=st.booleans(),
)
def test_any_content_of_columns_json_is_read_or_refused(bad, content, whole):
    """Also files that hold every entry, with some of them wrong."""
    good = json.loads((bad / "model" / "columns.json").read_text())
    if whole and isinstance(content, dict):
        content = {**good, **{key: value for key, value in content.items() if key in good}}
    path = bad / "model_list" / "columns.json"
    path.write_text(json.dumps(content))
    try:
        _, preparation = load_prepared_model(bad / "model_list")
        message = ""
    except CommandError as error:
        message = str(error)
    finally:
        path.write_text("[]")
    if message:
        assert message.startswith(str(path))
        assert "; " in message
    else:
        assert len(preparation.columns) == len(preparation.centres) == len(preparation.scales)


@pytest.fixture
def small_disk():
    """A limit on the size of files stands for a full disk; both end the writing in the middle."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.fixture
def many_rows(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"name": [rng.bytes(30).hex() for _ in range(10_000)], "x": 1.0, "y": 2.0})
    frame.to_csv(tmp_path / "many.csv", index=False)
    return tmp_path / "many.csv"


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_full_disk_names_the_file(bad, refused, many_rows, small_disk, suffix):
    target = many_rows.parent / "out" / f"labels.{suffix}"
    line = refused("predict", bad / "model", many_rows, "--id", "name", "-o", target)
    assert line.startswith(f"{target}: ")
    assert "file too large; " in line
    assert list(target.parent.iterdir()) == []


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no full device")
def test_full_disk_behind_standard_output(bad):
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "linkwise", "predict", bad / "model", bad / "data.csv"]
        done = warm_python.run(command, stdout=full)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("linkwise: standard output: no space left on device; ")


def test_safe_csv(invoke, tmp_path):
    """Ids and names a spreadsheet would run get an apostrophe; numbers, also negative ones, stay."""
    ids = ["=1+1", "+x", "-y", "@z", "\tt", "plain", "'quoted"] * 2
    frame = pd.DataFrame({"=id": [f"{name}{i}" for i, name in enumerate(ids)], "x": np.arange(14.0) - 7})
    frame["class"] = ["=a", "b"] * 7
    frame.to_csv("data.csv", index=False)
    arguments = [
        "fit",
        "data.csv",
        "-k",
        2,
        "--id",
        "=id",
        "--label",
        "class",
        "-m",
        "ppc",
        "--starts",
        1,
        "-o",
    ]
    (tmp_path / "links.csv").write_text("i,j,kind\n=1+10,+x1,must\n")
    for name, options in {"as_it_is": [], "safe": ["--safe-csv"]}.items():
        result = invoke(*arguments, name, *options, "-l", "links.csv")
        assert result.exit_code == 0, result.output
    plain, safe = (pd.read_csv(tmp_path / name / "labels.csv", dtype=str) for name in ("as_it_is", "safe"))
    assert plain["=id"].tolist() == frame["=id"].tolist()
    assert safe["'=id"].tolist() == [
        f"'{name}" if name[0] in "=+-@\t" else name for name in frame["=id"].tolist()
    ]
    figures = plain.columns[1:]
    assert safe[figures].equals(plain[figures])
    links = pd.read_csv(tmp_path / "safe" / "links.csv")
    assert (links["i"][0], links["j"][0]) == ("'=1+10", "'+x1")
    printed = invoke("predict", "safe", "data.csv", "--id", "=id", "--safe-csv").stdout.splitlines()
    assert printed[0].startswith("'=id,cluster")
    assert printed[1].startswith("'=1+10,")
    again = invoke("predict", "safe", "data.csv", "--id", "=id").stdout.splitlines()
    assert again[1].startswith("=1+10,")


@pytest.mark.usefixtures("fewest_candidates")
@pytest.mark.parametrize("names", [("$x$", "b$"), (r"$\frac{$", r"$\nope$")])
def test_dollar_signs_in_names_are_no_formulas(invoke, rendered, tmp_path, names):
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 20)
    frame = pd.DataFrame({names[0]: rng.normal(size=40) + 5 * y, names[1]: rng.normal(size=40)})
    frame["class"] = np.array(["$a_$", r"$\b$"])[y]
    frame.to_csv("data.csv", index=False)
    fitted = invoke("fit", "data.csv", "-k", 2, "--label", "class", "--effort", "quick", "-o", "out")
    assert fitted.exit_code == 0, fitted.output
    compared = invoke(
        "compare", "data.csv", "--label", "class", "--starts", 1, "--effort", "quick", "-o", "compared"
    )
    assert compared.exit_code == 0, compared.output
