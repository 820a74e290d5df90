"""The journal: no acknowledged answer is lost, whatever happens to the process, the disk or the file."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from linkwise.active.journal import Journal, fingerprint_of, read_answers
from tests import warm_python

ABOUT = {"n_samples": 9, "fingerprint": "rows"}
KILL_POINTS = Path(__file__).with_name("journal_kill_points.py")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "answers.jsonl"


def pairs(journal) -> list:
    return journal.answers().pairs.tolist()


def lines(path) -> list[str]:
    return path.read_text().splitlines()


def test_answers_come_back_as_they_were_told(path):
    with Journal(path, **ABOUT, seed=7, strategy="spread") as journal:
        journal.tell(np.int64(3), 1, "same", certainty=np.float64(0.9), source="Ännchen\n,\"'")
        journal.tell(2, 5, "unsure")
        journal.tell(0, 8, "different", certainty=1)
        told = journal.answers()
    with Journal(path, **ABOUT, seed=8, strategy="other") as journal:
        assert (journal.header["seed"], journal.header["strategy"]) == (7, "spread")
        found = journal.answers()
        assert len(journal) == 3
    for answers in (told, found, read_answers(path, **ABOUT)):
        assert answers.pairs.tolist() == [[3, 1], [2, 5], [0, 8]]
        assert answers.says.tolist() == [1, 0, -1]
        assert answers.certainty.tolist()[::2] == [0.9, 1.0]
        assert np.isnan(answers.certainty[1])
        assert answers.source == ("Ännchen\n,\"'", "", "")
        assert [column.dtype for column in answers[:3]] == [np.int64, np.int8, np.float64]
    # Plain text, one record a line: header, opening, three answers, opening.
    assert [json.loads(line).get("op") for line in lines(path)] == [
        None, "open", "tell", "tell", "tell", "open",
    ]  # fmt: skip


@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="no names of open files")
def test_an_answer_is_on_disk_before_the_call_returns(path, monkeypatch):
    """Also after a power cut, which loses what was written but not synchronised."""
    synchronised = []
    monkeypatch.setattr(
        os,
        "fsync",
        lambda handle: synchronised.append((os.readlink(f"/proc/self/fd/{handle}"), path.read_bytes())),
    )
    journal = Journal(path, **ABOUT)
    # The new file, then the folder that names it.
    assert [name for name, _ in synchronised] == [str(path), str(path.parent)]
    journal.tell(0, 1, "same")
    assert synchronised[2] == (str(path), path.read_bytes())
    journal.undo()
    assert synchronised[3] == (str(path), path.read_bytes())
    assert len(synchronised) == 4


def test_lines_are_only_added(path):
    with Journal(path, **ABOUT) as journal:
        before = path.read_bytes()
        for step in (
            lambda: journal.tell(0, 1, "same"),
            journal.undo,
            lambda: journal.tell(0, 2, "same"),
            lambda: journal.retract(0),
        ):
            step()
            after = path.read_bytes()
            assert after.startswith(before)
            assert after.count(b"\n") == before.count(b"\n") + 1
            before = after


@pytest.mark.parametrize("on_disk", [True, False])
def test_undo_goes_back_step_by_step_also_over_retractions(path, on_disk):
    with Journal(path if on_disk else None, **ABOUT) as journal:
        for j in (1, 2, 3):
            journal.tell(0, j, "same")
        journal.retract(1)
        assert pairs(journal) == [[0, 1], [0, 3]]
        journal.tell(0, 4, "different")
        journal.undo()
        assert pairs(journal) == [[0, 1], [0, 3]]
        journal.undo()
        assert pairs(journal) == [[0, 1], [0, 2], [0, 3]]
        journal.undo()
        journal.undo()
        journal.undo()
        assert journal.answers().pairs.shape == (0, 2)
        with pytest.raises(ValueError, match="no answer to take back"):
            journal.undo()
        journal.tell(7, 8, "same")
        if on_disk:
            journal.close()
            assert read_answers(path, **ABOUT).pairs.tolist() == [[7, 8]]


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"op": "tell", "i": 1, "j": 1, "says": "same"}, r"\(1, 1\); pass two different rows of 0\.\.8"),
        ({"op": "tell", "i": 1, "j": 9, "says": "same"}, r"\(1, 9\)"),
        ({"op": "tell", "i": True, "j": 3, "says": "same"}, "True"),
        ({"op": "tell", "i": 0.5, "j": 3, "says": "same"}, "0.5"),
        ({"op": "tell", "i": 1, "j": 2, "says": "maybe"}, "'maybe'; pass one of same, different, unsure"),
        ({"op": "tell", "i": 1, "j": 2, "says": "same", "certainty": 0.5}, "certainty is 0.5"),
        ({"op": "tell", "i": 1, "j": 2, "says": "same", "certainty": float("nan")}, "certainty is nan"),
        ({"op": "tell", "i": 1, "j": 2, "says": "same", "source": 3}, "source is 3; pass a name"),
        ({"op": "retract", "answer": 1}, "no answer 1 to take back among 1"),
        ({"op": "retract", "answer": -1}, "no answer -1 "),
        ({"op": "shout"}, "no record"),
    ],
)
def test_what_is_no_record_is_refused_and_nothing_is_written(path, record, message):
    with Journal(path, **ABOUT) as journal:
        journal.tell(0, 1, "same")
        before = path.read_bytes()
        with pytest.raises(ValueError, match=message):
            journal.append(record)
        assert path.read_bytes() == before
        assert pairs(journal) == [[0, 1]]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kill points need fork")
def test_killed_at_any_call_nothing_acknowledged_is_lost(tmp_path):
    done = warm_python.run([sys.executable, KILL_POINTS, tmp_path])
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    points, states, n_steps = result["points"], result["states"], result["steps"]
    whole, torn = ([one for one in points if one["torn"] is kind] for kind in (False, True))
    assert len(whole) == len(torn) > 25
    assert [one["killed"] for one in whole] == [True] * (len(whole) - 1) + [False]
    # Every step was once the last one acknowledged.
    assert {one["acknowledged"] for one in whole} == set(range(n_steps + 1))
    assert sum(one["again"] for one in points) > 10
    for one in points:
        assert one["steps"] >= one["acknowledged"]  # no answer is lost
        assert one["steps"] <= one["acknowledged"] + 2  # and at most one in each killed session is new
        assert one["end"] == states[-1]
    # The kill points leave everything that a kill can: nothing, half a header, half a record, whole lines.
    left = {one["left"] for one in points}
    assert None in left
    assert "" in left
    assert any(text and text.count("\n") == 0 for text in left)
    assert any(text and text.count("\n") > 3 and not text.endswith("\n") for text in left)


WRITER = """
import sys
from linkwise.active.journal import Journal
with Journal(sys.argv[1], n_samples=10**6, fingerprint="rows") as journal:
    for j in range(1, 10**6):
        journal.tell(0, j, "different")
        print(j, flush=True)
"""


@pytest.mark.parametrize("after", [1, 2, 17, 60])
def test_a_killed_process_leaves_what_it_had_acknowledged_and_no_lock(path, after):
    writer = warm_python.Popen([sys.executable, "-c", WRITER, path], stdout=subprocess.PIPE, text=True)
    seen = 0
    while seen < after:
        seen = int(writer.stdout.readline())
    os.kill(writer.pid, signal.SIGKILL)
    rest = writer.stdout.read()  # with what was read ahead, which communicate would lose
    writer.communicate(timeout=60)
    whole = [int(line) for line in rest.split("\n")[:-1] if line]
    seen = max([seen, *whole])
    with Journal(path, n_samples=10**6, fingerprint="rows") as journal:
        assert [j for _, j in pairs(journal)][:seen] == list(range(1, seen + 1))
        assert len(journal) <= seen + 1


def test_a_second_session_is_refused_with_the_process_of_the_first(path):
    writer = warm_python.Popen([sys.executable, "-c", WRITER, path], stdout=subprocess.PIPE, text=True)
    try:
        writer.stdout.readline()
        with pytest.raises(BlockingIOError) as refused:
            Journal(path, n_samples=10**6, fingerprint="rows")
        assert str(refused.value) == f"{path} is in use by process {writer.pid}; close that session first"
        # Reading is allowed meanwhile, also of a line that is just being written.
        assert len(read_answers(path, n_samples=10**6, fingerprint="rows").says) >= 1
    finally:
        writer.kill()
        writer.communicate()
    Journal(path, n_samples=10**6, fingerprint="rows").close()


def test_a_second_session_of_one_process_is_refused_until_the_first_is_closed_or_gone(path):
    first = Journal(path, **ABOUT)
    with pytest.raises(BlockingIOError, match=f"another session of this process, {os.getpid()}; close"):
        Journal(path, **ABOUT)
    first.tell(0, 1, "same")
    first.close()
    assert first.closed
    with pytest.raises(ValueError, match=r"was closed; use a new session"):
        first.tell(0, 2, "same")
    second = Journal(path, **ABOUT)
    second.tell(0, 3, "same")
    del second
    with Journal(path, **ABOUT) as third:
        assert pairs(third) == [[0, 1], [0, 3]]


def test_the_owner_that_has_not_put_down_its_id_is_not_mistaken(path, monkeypatch):
    """Between lock and first line there is only the id of an earlier session, which is dead."""
    code = "import sys; from linkwise.active.journal import Journal; "
    code += "Journal(sys.argv[1], n_samples=9, fingerprint='rows')"
    assert warm_python.run([sys.executable, "-c", code, path]).returncode == 0
    dead = json.loads(lines(path)[1])["pid"]
    monkeypatch.setattr("linkwise.active.journal._PATIENCE", 0.05)
    from linkwise._files import try_lock

    lock = try_lock(path)
    with pytest.raises(BlockingIOError) as refused:
        Journal(path, **ABOUT)
    os.close(lock)
    assert "another process" in str(refused.value)
    assert str(dead) not in str(refused.value).replace(str(path), "")


FULL_DISK = """
import json, resource, sys
from linkwise.active.journal import Journal
path, room = sys.argv[1], int(sys.argv[2])
journal = Journal(path, n_samples=9, fingerprint="rows")
journal.tell(0, 1, "same")
size = len(open(path, "rb").read())
resource.setrlimit(resource.RLIMIT_FSIZE, (size + room, resource.RLIM_INFINITY))
try:
    journal.tell(0, 2, "same")
except OSError as error:
    found = [error.errno, str(error.filename)]
else:
    found = None
left = len(open(path, "rb").read()) - size
standing = journal.answers().pairs.tolist()
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
journal.tell(0, 3, "same")
print(json.dumps([found, left, standing, journal.answers().pairs.tolist()]))
"""


@pytest.mark.parametrize("room", [0, 1, 40])
def test_a_full_disk_is_told_and_leaves_whole_lines(path, room):
    """The limit of file sizes takes part of a line and then no more, as a full disk does."""
    done = warm_python.run([sys.executable, "-c", FULL_DISK, path, str(room)])
    found, left, standing, after = json.loads(done.stdout)
    assert found == [27, str(path)]  # EFBIG, with the name of the file
    assert left == 0
    assert standing == [[0, 1]]
    assert after == [[0, 1], [0, 3]]
    assert read_answers(path, **ABOUT).pairs.tolist() == [[0, 1], [0, 3]]


def test_a_full_disk_that_does_not_even_take_back_is_put_right_later(path, monkeypatch):
    journal = Journal(path, **ABOUT)
    journal.tell(0, 1, "same")
    write, whole = os.write, path.read_bytes()

    def half(handle, content):
        write(handle, bytes(content)[: len(content) // 2])
        raise OSError(28, "No space left on device")

    def refuse(*_):
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as broken:
        broken.setattr(os, "write", half)
        broken.setattr(os, "ftruncate", refuse)
        with pytest.raises(OSError, match=r"No space left.*answers\.jsonl"):
            journal.tell(0, 2, "same")
        assert path.read_bytes() != whole
        with pytest.raises(OSError, match="Input/output"):
            journal.tell(0, 2, "same")
    journal.undo()
    journal.tell(0, 3, "same")
    journal.close()
    assert path.read_bytes().startswith(whole)
    assert read_answers(path, **ABOUT).pairs.tolist() == [[0, 3]]


def test_an_interrupted_write_is_taken_back(path, monkeypatch):
    journal = Journal(path, **ABOUT)
    journal.tell(0, 1, "same")
    before = path.read_bytes()

    def interrupt(_):
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(os, "fsync", interrupt)
        with pytest.raises(KeyboardInterrupt):
            journal.tell(0, 2, "same")
    assert path.read_bytes() == before
    assert pairs(journal) == [[0, 1]]


def told(path):
    with Journal(path, **ABOUT) as journal:
        journal.tell(0, 1, "same")
        journal.tell(0, 2, "different")
    return path.read_text()


@pytest.mark.parametrize("kept", [1, 20, -3, -2])
def test_a_torn_last_line_is_cut_off(path, kept):
    text = told(path)
    before, last = text[: text.rindex("{")], text[text.rindex("{") :]
    path.write_text(before + last[:kept])
    assert read_answers(path, **ABOUT).pairs.tolist() == [[0, 1]]
    with Journal(path, **ABOUT) as journal:
        assert pairs(journal) == [[0, 1]]
        assert path.read_text().startswith(before)
        journal.tell(5, 6, "same")
    assert read_answers(path, **ABOUT).pairs.tolist() == [[0, 1], [5, 6]]
    assert "\x00" not in path.read_text()


def test_a_last_line_that_lacks_its_break_alone_is_whole(path):
    """An editor may have taken the break away from an acknowledged answer."""
    path.write_text(told(path).rstrip("\n"))
    with Journal(path, **ABOUT) as journal:
        assert pairs(journal) == [[0, 1], [0, 2]]
        journal.tell(5, 6, "same")
    assert read_answers(path, **ABOUT).pairs.tolist() == [[0, 1], [0, 2], [5, 6]]


@pytest.mark.parametrize(
    ("number", "line", "reason"),
    [
        (3, "}", "it is no JSON object"),
        (3, "", "it is no JSON object"),
        (3, "[1, 2]", "it is no record of an answer"),
        (2, '{"op": "undo"}', "there is no answer to take back"),
        (4, '{"op": "tell", "i": 0, "j": 99, "says": "same"}', r"the pair is \(0, 99\)"),
        (1, "{", "damaged"),
    ],
)
def test_a_broken_line_is_refused_with_its_number(path, number, line, reason):
    text = told(path).splitlines()
    if number == 1:  # its beginning says that it is a journal
        text[0] = text[0][:60]
    else:
        text[number - 1] = line
    broken = "\n".join(text) + "\n"
    path.write_text(broken)
    with pytest.raises(
        ValueError, match=rf"answers\.jsonl, line {number} is damaged.*{reason}|line 1 is"
    ) as it:
        Journal(path, **ABOUT)
    assert "\n" not in str(it.value)
    assert path.read_text() == broken
    # It was not left locked.
    path.write_text(told(path.with_name("other.jsonl")))
    Journal(path, **ABOUT).close()


@pytest.mark.parametrize("content", ["i,j,kind\n0,1,must\n", "x", "{", '{"format": "other"}\n', "\n"])
def test_a_file_of_somebody_else_is_not_touched(path, content):
    path.write_text(content)
    if '{"format": "linkwise'.startswith(content):  # may be what a killed process left
        Journal(path, **ABOUT).close()
        return
    with pytest.raises(ValueError, match=r"is no journal of answers; choose another name"):
        Journal(path, **ABOUT)
    assert path.read_text() == content


def test_a_journal_of_a_newer_version_is_refused(path):
    path.write_text(told(path).replace('"version": 1,', '"version": 12,', 1))
    with pytest.raises(ValueError, match="newer linkwise"):
        Journal(path, **ABOUT)


def test_a_journal_of_other_data_is_refused_with_one_line(path):
    before = told(path)
    for about, reason in (
        ({"n_samples": 8, "fingerprint": "rows"}, "of 9 rows, not 8"),
        ({"n_samples": 9, "fingerprint": "others"}, "also of 9 rows, but with other values"),
    ):
        wanted = f"{path} holds answers about other data ({reason}); pass the data it began with, or name "
        wanted += "another journal"
        for call in (Journal, read_answers):
            with pytest.raises(ValueError) as refused:
                call(path, **about)
            assert str(refused.value) == wanted
    assert path.read_text() == before


def test_a_file_that_was_moved_or_changed_takes_no_answer(path):
    """An answer written to a file without a name would be acknowledged and lost."""
    journal = Journal(path, **ABOUT)
    path.rename(path.with_name("moved"))
    with pytest.raises(FileNotFoundError, match="moved, removed or replaced"):
        journal.tell(0, 1, "same")
    path.write_text("other")
    with pytest.raises(FileNotFoundError, match="moved, removed or replaced"):
        journal.tell(0, 1, "same")
    assert path.read_text() == "other"
    path.with_name("moved").rename(path)
    journal.tell(0, 1, "same")
    with open(path, "a") as stream:
        stream.write("a note\n")
    with pytest.raises(OSError, match="changed by another program"):
        journal.tell(0, 2, "same")
    assert path.read_text().endswith("a note\n")


def test_the_folder_is_made_and_a_folder_is_no_journal(tmp_path):
    path = tmp_path / "new" / "deep" / "answers.jsonl"
    Journal(path, **ABOUT).close()
    assert path.exists()
    with pytest.raises(IsADirectoryError, match="new"):
        Journal(tmp_path / "new", **ABOUT)
    with pytest.raises(FileNotFoundError, match="no_such"):
        read_answers(tmp_path / "no_such", **ABOUT)


def test_fingerprints_tell_data_apart():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    kept = fingerprint_of(X)
    assert fingerprint_of(X.tolist()) == fingerprint_of(np.asfortranarray(X)) == kept
    assert fingerprint_of(X * (1 + 1e-13)) == kept  # the last digits of another machine
    assert len({kept, fingerprint_of(X[:-1]), fingerprint_of(X[::-1]), fingerprint_of(X.T)}) == 4
    changed = X.copy()
    changed[7, 2] += 0.01
    assert fingerprint_of(changed) != kept
    assert fingerprint_of(["a", "b"]) == fingerprint_of(np.array(["a", "b"], dtype=object))
    assert len({fingerprint_of(ids) for ids in (["a", "b"], ["b", "a"], ["a", "b", "c"], ["ab"])}) == 4
    large = np.zeros((100_000, 1))
    before = fingerprint_of(large)
    large[1] = 1.0  # one row in 24 is looked at
    assert fingerprint_of(large) == before
    large[48] = 1.0
    assert fingerprint_of(large) != before


def test_a_journal_in_memory_needs_no_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    journal = Journal(None, **ABOUT)
    journal.tell(0, 1, "same", certainty=0.7)
    assert pairs(journal) == [[0, 1]]
    journal.close()
    assert not journal.closed
    assert list(tmp_path.iterdir()) == []
