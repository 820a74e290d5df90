"""Killed at any point, a run leaves the whole earlier result or the whole new one, and the user's files."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import sys
from pathlib import Path

import pytest

from linkwise._files import replacing, settle, together
from linkwise.cli.output import writing_results
from tests import warm_python

KILL_POINTS = Path(__file__).parents[1] / "kill_points.py"

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="kill points need fork")


@pytest.fixture(scope="module")
def rows(files, tmp_path_factory):
    """Thirty flowers and a few links, so that writing takes no time."""
    folder = tmp_path_factory.mktemp("rows")
    lines = (files / "iris.csv").read_text().splitlines()
    (folder / "rows.csv").write_text("\n".join([lines[0], *lines[1::5]]) + "\n")
    (folder / "links.csv").write_text("i,j,kind\n0,1,must\n0,20,cannot\n")
    return folder


@pytest.fixture(scope="module")
def killed(rows, tmp_path_factory):
    """What was found after each kill point, of ``save_model`` and of the command."""
    done = warm_python.run(
        [
            sys.executable,
            KILL_POINTS,
            tmp_path_factory.mktemp("killed"),
            rows / "rows.csv",
            rows / "links.csv",
        ]
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_killed_save_model_leaves_one_whole_model(killed):
    records = killed["model"]
    assert len(records) > 30
    for record in records:
        assert record["found"] in ((2, 3) if record["earlier"] else (None, 3)), record
        assert record["after"] == ["model", "model/arrays-*.npz", "model/model.json"], record
    assert {(record["earlier"], record["found"]) for record in records} == {
        (True, 2), (True, 3), (False, None), (False, 3),
    }  # fmt: skip


def test_a_killed_fit_leaves_one_whole_result(killed):
    records = killed["fit"]
    assert len(records) > 30
    assert [record["killed"] for record in records] == [True] * (len(records) - 1) + [False]
    earlier = {"labels": 2, "links": 2, "model": 2, "report": 2}
    new = {"labels": 3, "model": 3, "report": 3}
    tables = {
        2: ["labels.csv", "links.csv", "model", "report.html"],
        3: ["labels.csv", "model", "report.html"],
    }
    for record in records:
        # Before anybody cleans up, files may be missing, but none of two runs lie side by side.
        assert len(set(record["at once"].values())) <= 1, record
        assert "report" not in record["at once"] or record["at once"] in (earlier, new), record
        assert record["after predict"] in (earlier, new), record
        run = record["after predict"]["labels"]
        assert record["left by predict"] == [*tables[run], "thesis.txt"], record
        if "after fit" in record:
            assert record["after fit"] == new, record
            assert record["left by fit"] == [*tables[3], "thesis.txt"], record
    assert {record["after predict"]["labels"] for record in records} == {2, 3}


def test_the_command_itself_killed_while_it_exchanges_results(rows, tmp_path, invoke):
    """No fork, no stand-ins: the process dies between two renames, and predict completes the result."""
    common = [
        "fit",
        rows / "rows.csv",
        "--ignore",
        "flower,species",
        "--starts",
        1,
        "-m",
        "ppc",
        "-o",
        tmp_path / "out",
    ]
    assert invoke(*common, "-k", 2, "-l", rows / "links.csv").exit_code == 0
    script = (
        f"import sys; sys.path.insert(0, {str(KILL_POINTS.parent)!r})\n"
        "import os, signal, linkwise.cli\n"
        "def watch(event, arguments):\n"
        f"    if event == 'os.rename' and arguments[1] == {str(tmp_path / 'out' / 'model')!r}:\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "sys.addaudithook(watch)\n"
        f"sys.argv = {['linkwise', *map(str, common), '-k', '3']!r}\n"
        "linkwise.cli.main()\n"
    )
    assert warm_python.run([sys.executable, "-c", script]).returncode == -signal.SIGKILL
    assert not (tmp_path / "out" / "model").exists()
    result = invoke("predict", tmp_path / "out", rows / "rows.csv")
    assert result.exit_code == 0
    assert "probability_2" in result.stdout
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == ["labels.csv", "model", "report.html"]


def write_run(folder, number, command="fit"):
    with writing_results(folder, command) as draft:
        (draft / "labels.csv").write_text(number)
        (draft / "report.html").write_text(f"<html>{number}</html>")
        (draft / "model").mkdir()
        (draft / "model" / "model.json").write_text(number)
        if number == "1":
            (draft / "links.csv").write_text(number)


def contents(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_text()[:20].removeprefix("<html>")[0]
        for path in folder.rglob("*")
        if path.is_file()
    }


FIRST = dict.fromkeys(["labels.csv", "links.csv", "model/model.json", "report.html"], "1")
SECOND = dict.fromkeys(["labels.csv", "model/model.json", "report.html"], "2")


@pytest.mark.parametrize("error", [OSError(errno.EACCES, "no"), KeyboardInterrupt(), SystemExit(143)])
def test_a_rename_that_fails_loses_nothing(tmp_path, monkeypatch, error):
    """The n-th rename fails: by the system, then all comes back; by Ctrl-C or SIGTERM, then all is done."""
    rename = os.rename
    for number in range(1, 20):
        folder = tmp_path / str(number)
        write_run(folder, "1")
        left = [number]

        def fail(*arguments, left=left):
            left[0] -= 1
            if left[0] == 0:
                raise error
            rename(*arguments)

        with monkeypatch.context() as patch:
            patch.setattr(os, "rename", fail)
            try:
                write_run(folder, "2")
            except type(error):
                assert left[0] <= 0
            else:
                assert left[0] > 0
                break
        assert contents(folder) == (FIRST if isinstance(error, OSError) else SECOND)
        n_failures = number
    assert n_failures >= 6


@pytest.mark.parametrize("name", ["model", "labels.csv", "report.html"])
@pytest.mark.parametrize("earlier", [False, True])
def test_what_the_user_put_there_stays(tmp_path, name, earlier):
    if earlier:
        write_run(tmp_path, "1", command="compare")
        place = tmp_path / name
    else:
        place = tmp_path / name
        place.write_text("thesis")
    before = contents(tmp_path)
    with pytest.raises(FileExistsError, match=r"is in the way"):
        write_run(tmp_path, "2")
    assert contents(tmp_path) == before
    assert place.exists()


def test_a_note_inside_the_model_folder_stays(tmp_path):
    write_run(tmp_path, "1")
    (tmp_path / "model" / "notes.txt").write_text("thesis")
    with pytest.raises(FileExistsError, match=r"model is in the way"):
        write_run(tmp_path, "2")
    assert (tmp_path / "model" / "notes.txt").read_text() == "thesis"


def test_a_list_that_was_forged_leads_nowhere_else(tmp_path):
    outside = tmp_path / "thesis.txt"
    outside.write_text("thesis")
    folder = tmp_path / "out"
    write_run(folder, "1")
    report = folder / "report.html"
    for name in ("../thesis.txt", "..", ".", "", str(outside)):
        report.write_text(
            f'<!-- written by linkwise: {{"command": "fit", "files": ["report.html", "{name}"]}} -->\n'
        )
        for path in folder.iterdir():
            if path != report:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        write_run(folder, "2")
        assert outside.read_text() == "thesis"


def test_fit_refuses_what_is_in_the_way_before_it_fits(rows, tmp_path, refused, monkeypatch):
    monkeypatch.setattr("linkwise.cli.fit.fit_samples", lambda *_, **__: pytest.fail("it was fitted"))
    (tmp_path / "out").mkdir()
    arguments = ["fit", rows / "rows.csv", "-k", 3, "--ignore", "flower,species", "-o", "out"]
    for name in ("model", "labels.csv", "report.html", "links.csv"):
        (tmp_path / "out" / name).write_text("mine")
        line = refused(*arguments, "-l", rows / "links.csv")
        assert f"out/{name} is in the way" in line
        assert (tmp_path / "out" / name).read_text() == "mine"
        (tmp_path / "out" / name).unlink()


def test_results_have_the_usual_rights_and_a_link_to_the_folder_stays(tmp_path):
    before = os.umask(0o027)
    try:
        (tmp_path / "real").mkdir()
        (tmp_path / "link").symlink_to("real")
        for number in "12":
            write_run(tmp_path / "link", number)
    finally:
        os.umask(before)
    assert (tmp_path / "link").is_symlink()
    assert contents(tmp_path / "real") == SECOND
    modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "real").rglob("*")}
    assert modes == {"labels.csv": 0o640, "report.html": 0o640, "model": 0o750, "model.json": 0o640}


def test_drafts_of_a_living_run_stay(tmp_path):
    target = tmp_path / "labels.csv"
    with replacing(target) as first:
        with replacing(target) as second:
            second.write_text("second")
        assert first.exists()
        first.write_text("first")
    assert target.read_text() == "first"
    with together(tmp_path, lambda _: ["labels.csv"]) as draft:
        settle(tmp_path)
        (draft / "labels.csv").write_text("third")
    assert target.read_text() == "third"
    assert [path.name for path in tmp_path.iterdir()] == ["labels.csv"]


def test_links_stay_and_devices_are_not_replaced(tmp_path):
    (tmp_path / "real.csv").write_text("old")
    (tmp_path / "link.csv").symlink_to("real.csv")
    with replacing(tmp_path / "link.csv") as draft:
        draft.write_text("new")
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "real.csv").read_text() == "new"
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(FileExistsError, match="is not a file"), replacing(tmp_path / "pipe.csv"):
        pytest.fail("it began to write")
