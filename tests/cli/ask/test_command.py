"""``linkwise ask`` as a whole: at a terminal, from a pipe, interrupted, killed, resumed."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from linkwise.active import ActiveClustering
from linkwise.active.strategies import strategy_names
from tests import warm_python
from tests.cli.ask.terminal import Terminal

QUESTION = "? help > "


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Twenty rows of two kinds, with ids and a column of words."""
    rng = np.random.default_rng(0)
    kind = np.repeat([0, 1], 10)
    frame = pd.DataFrame(
        {
            "id": [f"r{row:02d}" for row in range(20)],
            "x": (kind * 5 + rng.normal(size=20)).round(2),
            "y": (kind * 5 + rng.normal(size=20)).round(2),
            "word": np.where(kind, "oak", "elm"),
        }
    )
    frame.to_csv(tmp_path / "rows.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def asked(folder):
    """Run the command in this process with these keys on standard input."""
    from linkwise.cli.app import app

    def run(keys, *arguments):
        words = ["ask", "rows.csv", "--id", "id", *map(str, arguments)]
        result = CliRunner().invoke(app, words, input=keys)
        assert "Traceback" not in result.output
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return run


def answers(path="links.csv.journal"):
    """What stands in a journal, by the rules that its documentation states."""
    standing = []
    for line in Path(path).read_text().splitlines()[1:]:
        record = json.loads(line)
        if record["op"] == "tell":
            standing.append((record["i"], record["j"], record["says"]))
        elif record["op"] == "undo":
            standing.pop()
        elif record["op"] == "retract":
            standing.pop(record["answer"])
    return standing


def expected_links(standing):
    kinds = {"same": "must_link", "different": "cannot_link"}
    ends = [
        (f"r{min(i, j):02d}", f"r{max(i, j):02d}", kinds[says]) for i, j, says in standing if says in kinds
    ]
    return sorted(ends)


def links(path="links.csv"):
    frame = pd.read_csv(path)
    return sorted(frame[["i", "j", "kind"]].itertuples(index=False, name=None))


def test_answers_from_a_pipe_become_links(asked):
    result = asked("sdu\nq", "-o", "links.csv")
    assert result.exit_code == 0, result.output
    standing = answers()
    assert [says for _, _, says in standing] == ["same", "different", "unsure"]
    assert links() == expected_links(standing)
    assert len(links()) == 2
    # As certain as the session found people to be.
    x = pd.read_csv("rows.csv")[["x", "y"]]
    session = ActiveClustering((x - x.mean()) / x.std(ddof=0), random_state=0)
    for i, j, says in standing:
        session.tell(i, j, says)
    weights = pd.read_csv("links.csv")["weight"]
    assert np.allclose(weights, 0.5 * np.log(1.0 / session.error_rate_ - 1.0))
    assert "Written: links.csv (2 links); every answer: links.csv.journal" in result.stdout
    # The command that is suggested works.
    command = next(line for line in result.stdout.splitlines() if line.startswith("Next: "))
    assert command == "Next: linkwise fit rows.csv --links links.csv --id id --ignore word"
    # The words are shown, though they are no numbers to cluster by.
    assert "word" in result.stdout
    assert "elm" in result.stdout or "oak" in result.stdout


@pytest.mark.parametrize("command", ["ask", "workbench"])
def test_contradictory_links_are_made_soft_in_their_file(folder, refused, command):
    """Both commands advised --certainty, which workbench has not and ask has for the answers."""
    Path("given.csv").write_text("i,j,kind\nr00,r01,same\nr01,r00,different\n", encoding="utf-8")
    line = refused(command, "rows.csv", "--id", "id", "--links", "given.csv", "--ignore", "word", code=3)
    assert line.endswith("remove one of these links, or make them soft with a column certainty")


def test_suggested_command_with_a_comma_in_a_name(asked, invoke):
    """It named two columns that are not there."""
    frame = pd.read_csv("rows.csv").rename(columns={"x": "x, in m", "word": "leaf, or tree"})
    frame.to_csv("rows.csv", index=False)
    result = asked("sdq", "-o", "links.csv")
    command = next(line for line in result.stdout.splitlines() if line.startswith("Next: "))
    assert command.endswith("""--ignore '"leaf, or tree"'""")
    fitted = invoke(*shlex.split(command)[2:], "-m", "ppc", "-k", 2, "--json")
    assert fitted.exit_code == 0, fitted.output
    refused = invoke("fit", "rows.csv", "--id", "id", "-k", 2)
    assert """leave it out with --ignore '"leaf, or tree"'""" in refused.stderr
    dated = frame.assign(day=pd.Timestamp("2026-01-01")).drop(columns="leaf, or tree")
    dated.to_parquet("rows.parquet")
    assert "leave it out with --ignore 'day'" in invoke("fit", "rows.parquet", "--id", "id", "-k", 2).stderr


def test_the_command_that_is_suggested_takes_columns_as_they_were(asked):
    result = asked("sq", "-o", "links.csv", "--no-standardize")
    assert "--ignore word --no-standardize" in result.stdout


def test_the_same_command_goes_on(asked):
    asked("sd", "-o", "links.csv")
    first = answers()
    result = asked("zu", "-o", "links.csv")
    assert "Going on after 2 answers in links.csv.journal." in result.stdout
    assert answers()[0] == first[0]
    assert [says for _, _, says in answers()] == ["same", "unsure"]
    assert links() == expected_links(answers())
    # Nothing but a look: the file stays as it is.
    before = Path("links.csv").read_text()
    assert asked("", "-o", "links.csv").exit_code == 0
    assert Path("links.csv").read_text() == before


def test_the_questions_do_not_depend_on_interruptions(asked):
    asked("sduds", "-o", "links.csv")
    whole = answers()
    for key in "sduds":
        asked(key, "-o", "parts.csv")
    assert answers("parts.csv.journal") == whole


def test_names_of_files_by_default_and_by_option(asked):
    asked("s")
    assert len(links("rows_links.csv")) == 1
    assert len(answers("rows_links.csv.journal")) == 1
    asked("s", "-o", "sub/links.csv", "--journal", "kept.jsonl")
    assert len(links("sub/links.csv")) == 1
    assert len(answers("kept.jsonl")) == 1
    assert not os.path.exists("sub/links.csv.journal")


def test_without_an_answer_nothing_is_written(asked):
    result = asked("q", "-o", "links.csv")
    assert "No answers yet; nothing was written." in result.stdout
    assert not os.path.exists("links.csv")
    # But answers that were all taken back leave an empty file, not one with answers that do not hold.
    asked("s", "-o", "links.csv")
    asked("z", "-o", "links.csv")
    assert links() == []


def test_links_that_are_given_are_written_too(asked):
    with open("given.csv", "w") as stream:
        stream.write("i,j,kind,certainty\nr00,r19,different,0.9\n")
    asked("s", "--links", "given.csv", "-o", "links.csv")
    assert links() == sorted([("r00", "r19", "cannot_link"), *expected_links(answers())])
    assert Path("given.csv").read_text() == "i,j,kind,certainty\nr00,r19,different,0.9\n"


def test_source_and_certainty_go_with_the_answers(asked):
    asked("s", "-o", "links.csv", "--source", "Ann", "--certainty", "0.8")
    frame = pd.read_csv("links.csv")
    assert frame["source"].tolist() == ["Ann"]
    assert frame["weight"].tolist() == pytest.approx([0.5 * np.log(4)])


def test_json_has_one_object_and_shows_the_questions_elsewhere(asked):
    result = asked("sdq", "-o", "links.csv", "--json")
    record = json.loads(result.stdout)
    assert (record["n_answers"], record["n_same"], record["n_different"], record["n_unsure"]) == (2, 1, 1, 0)
    assert record["ended"] == "quit"
    assert record["files"] == {"journal": "links.csv.journal", "links": "links.csv"}
    assert set(record["quality"]) == {"estimate", "low", "high"}
    assert record["contradictions"] == []
    assert "Same cluster?" in result.stderr
    assert json.loads(asked("s", "-o", "links.csv", "--json", "--most", 1).stdout)["ended"].startswith(
        "as many"
    )


REFUSED = {
    "foreign output": (
        lambda: Path("links.csv").write_text("mine\n"),
        [],
        "links.csv is in the way: no earlier `linkwise ask` wrote it; move it away",
    ),
    "foreign journal": (
        lambda: Path("links.csv.journal").write_text("mine\n"),
        [],
        "links.csv.journal is no journal of answers; choose another name",
    ),
    "output is the data": (lambda: None, ["-o", "rows.csv"], "DATA and -o both name rows.csv"),
    "output is the links": (
        lambda: Path("links.csv").write_text("i,j,kind\nr00,r01,same\n"),
        ["--links", "./links.csv"],
        "--links and -o both name links.csv",
    ),
    "no csv": (lambda: None, ["-o", "links.parquet"], "links.parquet: links are written as CSV"),
    "a folder": (lambda: os.mkdir("links.csv"), [], "links.csv is a folder"),
    "no column": (lambda: None, ["--show", "colour"], "rows.csv has no column 'colour'"),
    "no image column": (lambda: None, ["--image-column", "colour"], "rows.csv has no column 'colour'"),
    "too many clusters": (lambda: None, ["-k", 21], "-k 21 clusters cannot be made of 20 rows"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_leaves_everything_as_it_was(asked, case):
    prepare, arguments, message = REFUSED[case]
    prepare()
    before = {path: Path(path).read_text() for path in sorted(os.listdir()) if os.path.isfile(path)}
    arguments = arguments if "-o" in arguments else ["-o", "links.csv", *arguments]
    result = asked("sss", *arguments)
    assert result.exit_code == 1
    (line,) = result.stderr.strip().splitlines()
    assert line.startswith(f"linkwise: {message}")
    assert "; " in line
    assert {path: Path(path).read_text() for path in sorted(os.listdir()) if os.path.isfile(path)} == before


def test_a_file_of_links_that_was_changed_by_hand_is_not_replaced(asked):
    asked("sd", "-o", "links.csv")
    changed = Path("links.csv").read_text() + "r00,r01,must_link,1.0\n"
    Path("links.csv").write_text(changed)
    result = asked("s", "-o", "links.csv")
    assert result.exit_code == 1
    assert "links.csv is in the way: it was changed after `linkwise ask` wrote it" in result.stderr
    assert Path("links.csv").read_text() == changed
    assert len(answers()) == 2


def test_a_journal_of_other_data_is_refused(asked, folder):
    asked("sd", "-o", "links.csv")
    before = Path("links.csv.journal").read_text()
    frame = pd.read_csv("rows.csv")
    frame["x"] = frame["x"].to_numpy()[::-1]
    frame.to_csv("rows.csv", index=False)
    result = asked("s", "-o", "links.csv")
    assert result.exit_code == 1
    (line,) = result.stderr.strip().splitlines()
    assert line.startswith("linkwise: links.csv.journal holds answers about other data (also of 20 rows")
    assert Path("links.csv.journal").read_text() == before


# At a terminal, and as a process of its own


def command(*arguments):
    return [sys.executable, "-m", "linkwise", "ask", "rows.csv", "--id", "id", "-o", "links.csv", *arguments]


@pytest.fixture
def terminal(folder):
    opened = []

    def start(*arguments, columns=80):
        opened.append(Terminal(command(*arguments), columns=columns, cwd=folder))
        return opened[-1]

    yield start
    for one in opened:
        one.close()


@pytest.mark.parametrize("columns", [80, 120])
def test_single_keys_at_a_terminal(terminal, columns):
    screen = terminal(columns=columns)
    for key, word in (("s", "same"), ("d", "different"), ("\x7f", "undo"), ("u", "unsure")):
        screen.wait_for(QUESTION)
        screen.press(key)
        screen.wait_for(f"{word}: ")
    screen.wait_for(QUESTION)
    assert [says for _, _, says in answers()] == ["same", "unsure"]  # before the end
    screen.press("q")
    assert screen.ended() == 0
    assert links() == expected_links(answers())
    assert max(len(line.rstrip()) for line in screen.screen.splitlines()) <= columns
    assert screen.mode_now() == screen.mode


def test_an_answer_is_on_disk_when_the_next_question_is_shown(terminal):
    screen = terminal()
    for number in range(4):
        screen.wait_for(QUESTION)
        assert len(answers()) == number
        screen.press("s")
    screen.wait_for(QUESTION)
    screen.process.kill()
    screen.ended()
    assert len(answers()) == 4


@pytest.mark.parametrize(
    ("end", "code"),
    [
        (lambda screen: screen.press("\x03"), 130),
        (lambda screen: screen.process.send_signal(signal.SIGTERM), 143),
        (lambda screen: screen.process.send_signal(signal.SIGHUP), 130),
        (lambda screen: screen.press("\x04"), 0),
    ],
)
def test_interrupted_at_a_question_the_links_are_written(terminal, end, code):
    screen = terminal()
    for key in "sd":
        screen.wait_for(QUESTION)
        screen.press(key)
    screen.wait_for(QUESTION)
    end(screen)
    assert screen.ended() == code
    assert links() == expected_links(answers())
    assert len(links()) == 2
    assert screen.mode_now() == screen.mode
    assert "Traceback" not in screen.screen
    if code:
        assert "Kept: 2 answers; the same command goes on." in screen.screen


def test_killed_at_any_time_nothing_shown_as_answered_is_lost(folder):
    """Many answers from a pipe; the process is killed after some of them were told."""
    for after in (1, 4):
        shutil.rmtree("run", ignore_errors=True)
        os.mkdir("run")
        shutil.copy("rows.csv", "run/rows.csv")
        running = warm_python.Popen(
            command(),
            cwd="run",
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        running.stdin.write("sdu" * 50)
        running.stdin.flush()
        seen = 0
        while seen < after:
            line = running.stdout.readline()
            assert line
            seen += line.startswith(("same: ", "different: ", "unsure: "))
        running.send_signal(signal.SIGKILL)
        rest = running.stdout.read()
        running.wait(timeout=60)
        seen += sum(line.startswith(("same: ", "different: ", "unsure: ")) for line in rest.splitlines()[:-1])
        assert len(answers("run/links.csv.journal")) >= seen
        again = warm_python.run(command(), cwd="run", stdin=subprocess.DEVNULL)
        assert again.returncode == 0, again.stderr
        assert len(links("run/links.csv")) <= len(answers("run/links.csv.journal"))
        n_kept = len(answers("run/links.csv.journal"))
        assert n_kept == 0 or f"Going on after {n_kept} answer" in again.stdout


def test_a_second_session_is_refused_with_the_process_of_the_first(terminal, asked):
    screen = terminal()
    screen.wait_for(QUESTION)
    result = asked("s", "-o", "links.csv")
    assert result.exit_code == 1
    assert result.stderr.strip() == (
        f"linkwise: links.csv.journal is in use by process {screen.process.pid}; close that session first"
    )
    screen.press("s")
    screen.wait_for(QUESTION)
    screen.press("q")
    assert screen.ended() == 0
    assert len(answers()) == 1


def test_a_full_disk_is_told_and_the_answers_before_are_kept(folder):
    """The limit of file sizes stands for a full disk."""
    code = (
        "import resource, sys\n"
        "from linkwise.active import journal\n"
        "tell = journal.Journal.tell\n"
        "def told(self, *rest, **options):\n"
        "    if len(self) == 2:\n"
        "        import os; size = os.path.getsize(self.path)\n"
        "        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 30, resource.RLIM_INFINITY))\n"
        "    return tell(self, *rest, **options)\n"
        "journal.Journal.tell = told\n"
        "from linkwise.cli import main\n"
        "main()"
    )
    done = warm_python.run([sys.executable, "-c", code, *command()[3:]], input="sdsss")
    assert done.returncode == 1, done.stderr
    assert done.stderr.splitlines()[-1].startswith("linkwise: links.csv.journal: file too large; ")
    assert len(answers()) == 2


def test_the_end_of_a_terminal_is_the_end_of_the_session(terminal):
    screen = terminal()
    screen.wait_for(QUESTION)
    screen.press("s")
    screen.wait_for(QUESTION)
    os.close(screen._inner)
    os.close(screen.handle)  # the window is closed
    screen.process.wait(timeout=30)
    screen.handle, screen._inner = os.open(os.devnull, os.O_RDONLY), os.open(os.devnull, os.O_RDONLY)
    time.sleep(0.1)
    assert len(answers()) == 1
    assert len(links()) == 1


def test_answers_of_another_journal_are_merged(asked):
    asked("sd", "-o", "ann.csv", "--source", "Ann")
    result = asked("", "-o", "links.csv", "--source", "Bob", "--merge", "ann.csv.journal")
    assert result.exit_code == 0, result.output
    assert "2 answers taken from ann.csv.journal." in result.stdout
    assert answers() == answers("ann.csv.journal")
    assert links() == links("ann.csv")
    again = asked("", "-o", "links.csv", "--merge", "ann.csv.journal")
    assert "0 answers taken" in again.stdout
    missing = asked("", "-o", "links.csv", "--merge", "nobody.journal")
    assert missing.exit_code == 1
    assert "nobody.journal" in missing.output


def test_help_names_every_strategy(asked):
    """The help is written by hand, so that it needs no import of the strategies."""
    words = asked("", "--help").stdout.replace(",", " ").split()
    assert set(strategy_names()) <= set(words)
