"""Kill a session at each of its calls that change its journal; run as a program by the tests.

``python journal_kill_points.py FOLDER`` prints JSON with a record for each kill point: before the call, and
for a write also after half of its bytes. A child is forked for each. It tells by a pipe which answers were
acknowledged to it before it was killed.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import sys
from pathlib import Path

from linkwise.active.journal import Journal

ABOUT = {"n_samples": 9, "fingerprint": "rows", "seed": 3, "strategy": "spread"}
STEPS = [
    ("tell", 0, 1, "same"),
    ("tell", 1, 2, "different"),
    ("undo",),
    ("tell", 4, 2, "unsure"),
    ("tell", 8, 2, "different"),
    ("retract", 1),
    ("undo",),
    ("tell", 5, 6, "same"),
]


def take(journal: Journal, step: tuple) -> None:
    getattr(journal, step[0])(*step[1:])


def state(journal: Journal) -> list:
    answers = journal.answers()
    return [answers.pairs.tolist(), answers.says.tolist()]


def states() -> list[list]:
    """The answers after 0, 1, ... steps, in memory alone."""
    journal = Journal(None, **ABOUT)
    found = [state(journal)]
    for step in STEPS:
        take(journal, step)
        found.append(state(journal))
    return found


def kill_at(number: int, *, torn: bool) -> None:
    """Send SIGKILL to this process at its call of this number that changes a file."""
    count = [0]

    def killing(name: str):
        original = getattr(os, name)

        def call(*arguments):
            count[0] += 1
            if count[0] == number:
                if torn and name == "write":
                    original(arguments[0], bytes(arguments[1])[: len(arguments[1]) // 2])
                os.kill(os.getpid(), signal.SIGKILL)
            return original(*arguments)

        return call

    for name in ("open", "write", "fsync", "ftruncate"):
        setattr(os, name, killing(name))


def session(path: Path, acknowledge, begin: int) -> None:
    """Take the steps from this one on, in sessions of three steps, and acknowledge each."""
    for first in range(begin, len(STEPS), 3):
        with Journal(path, **ABOUT) as journal:
            for step in STEPS[first : first + 3]:
                take(journal, step)
                acknowledge()


def killed_at(number: int, torn: bool, path: Path, begin: int) -> tuple[bool, int]:
    """Whether a child was killed, and how many steps were acknowledged to it."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        write = os.write
        try:
            kill_at(number, torn=torn)
            session(path, lambda: write(writer, b"x"), begin)
            os._exit(0)
        finally:
            os._exit(1)
    os.close(writer)
    _, status = os.waitpid(child, 0)
    acknowledged = len(os.read(reader, 100))
    os.close(reader)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, "the child failed"
    return os.WIFSIGNALED(status), acknowledged


def points(folder: Path) -> list[dict]:
    wanted, records = states(), []
    for torn in (False, True):
        for number in itertools.count(1):
            path = folder / f"{torn}-{number}" / "answers.jsonl"
            path.parent.mkdir()
            killed, acknowledged = killed_at(number, torn, path, 0)
            left = path.read_bytes().decode() if path.exists() else None
            # A second kill, at the third call after resuming, which may be the one that cuts the line off.
            again, more = killed_at(3, torn, path, acknowledged) if killed and number % 3 == 0 else (False, 0)
            with Journal(path, **ABOUT) as journal:
                found = state(journal)
            steps = next(place for place in range(acknowledged, len(wanted)) if wanted[place] == found)
            session(path, lambda: None, steps)
            with Journal(path, **ABOUT) as journal:
                end = state(journal)
            records.append(
                {
                    "torn": torn, "killed": killed, "again": again, "acknowledged": acknowledged + more,
                    "steps": steps, "left": left, "end": end,
                }
            )  # fmt: skip
            if not killed:
                break
    return records


if __name__ == "__main__":
    print(json.dumps({"points": points(Path(sys.argv[1])), "states": states(), "steps": len(STEPS)}))
