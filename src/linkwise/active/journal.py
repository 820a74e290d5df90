"""Every answer on disk before the next question: a file to which lines are only ever added.

The first line says what data the answers are about; every other line is one record, a JSON object:

- ``{"op": "open", "pid", "time"}``: a session began. It holds a lock on the file until it ends or dies.
- ``{"op": "tell", "i", "j", "says", "certainty", "source", "time"}``: an answer.
- ``{"op": "retract", "answer", "source"}``: the answer at this place, counted from 0 among those that stand,
  is taken back, by this person if there is a name.
- ``{"op": "wrote", "sha256"}``: a file with this content was written from the answers, and may be replaced.
- ``{"op": "undo"}``: the last answer, or the last retraction, that was not undone yet is undone.

A record is acknowledged once its line has reached the disk, so that a process killed at any moment loses no
acknowledged answer. It may leave the beginning of one more line, which the next session cuts off.
"""

from __future__ import annotations

import hashlib
import json
import numbers
import os
import time
import weakref
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeGuard

import numpy as np
from numpy.typing import ArrayLike

from linkwise._files import PathLike, naming, to_disk, try_lock
from linkwise.active.knowledge import SAYS, Answers, chosen_answers

_FORMAT, _VERSION = "linkwise answers", 1
_MARK = json.dumps({"format": _FORMAT})[:-1].encode() + b", "
_BEGINNING = _MARK + f'"version": {_VERSION}, '.encode()
# Rows that the fingerprint of the data looks at.
_SAMPLED = 4096
# A session that has just locked the file writes its process id within this time, in seconds.
_PATIENCE = 1.0


def fingerprint_of(rows: ArrayLike) -> str:
    """Tell data apart: a hash of the shape and of a strided sample of the rows, or of ids.

    Numbers count to single precision, because the last digits of standardised values depend on the machine.
    """
    array = np.asarray(rows)
    sample = array[:: max(1, len(array) // _SAMPLED)]
    if sample.dtype.kind in "biuf":
        with np.errstate(over="ignore"):
            content = np.ascontiguousarray(sample, dtype="<f4").tobytes()
    else:
        content = json.dumps([str(value) for value in sample.ravel().tolist()]).encode()
    return hashlib.sha256(repr(array.shape).encode() + content).hexdigest()


class AnswerLog:
    """The answers that stand after each record: told, taken back, undone. Nothing is on disk."""

    def __init__(self, n_samples: int) -> None:
        self.n_samples = n_samples
        self.n_records = 0
        self.written: set[str] = set()
        self._standing: list[dict[str, Any]] = []
        # For every step that can be undone: who did it, and place and answer if it is a retraction.
        self._steps: list[tuple[str, tuple[int, dict[str, Any]] | None]] = []
        self._answers: Answers | None = None

    def check(self, record: Any) -> None:
        """Refuse with ValueError what is no record, or cannot follow the records so far."""
        operation = record.get("op") if isinstance(record, dict) else None
        if operation == "tell":
            self._check_answer(record)
        elif operation == "retract":
            number = record.get("answer")
            if not _is_whole(number) or not 0 <= number < len(self._standing):
                raise ValueError(
                    f"no answer {number!r} to take back among {len(self._standing)}; pass one of them"
                )
        elif operation == "undo":
            if not self._steps:
                raise ValueError("there is no answer to take back; give one first")
        elif operation == "wrote":
            if not isinstance(record.get("sha256"), str):
                raise ValueError("sha256 is missing; pass the hash of the file")
        elif operation != "open":
            raise ValueError("it is no record of an answer; pass tell, undo or retract")

    def _check_answer(self, record: dict[str, Any]) -> None:
        ends = record.get("i"), record.get("j")
        if not all(_is_whole(row) and 0 <= row < self.n_samples for row in ends) or ends[0] == ends[1]:
            raise ValueError(
                f"the pair is ({ends[0]!r}, {ends[1]!r}); pass two different rows of 0..{self.n_samples - 1}"
            )
        if record.get("says") not in SAYS:
            raise ValueError(f"the answer is {record.get('says')!r}; pass one of {', '.join(SAYS)}")
        certainty = record.get("certainty")
        number = isinstance(certainty, int | float) and not isinstance(certainty, bool)
        if certainty is not None and not (number and 0.5 < certainty <= 1):
            raise ValueError(f"certainty is {certainty!r}; pass a number above 0.5 and at most 1, or None")
        if not isinstance(record.get("source", ""), str | None):
            raise ValueError(f"source is {record['source']!r}; pass a name")

    def apply(self, record: dict[str, Any]) -> None:
        """Take a record that was checked."""
        self.n_records += 1
        self._answers = None
        if record["op"] == "tell":
            self._standing.append(record)
            self._steps.append((record.get("source") or "", None))
        elif record["op"] == "retract":
            place = record["answer"]
            self._steps.append((record.get("source") or "", (place, self._standing.pop(place))))
        elif record["op"] == "undo":
            _, retracted = self._steps.pop()
            if retracted is None:
                self._standing.pop()
            else:
                self._standing.insert(*retracted)
        elif record["op"] == "wrote":
            self.written.add(record["sha256"])

    def __len__(self) -> int:
        return len(self._standing)

    @property
    def last_source(self) -> str | None:
        """Who did the step that ``undo`` would undo, "" without a name; None if there is none."""
        return self._steps[-1][0] if self._steps else None

    def answers(self) -> Answers:
        """The answers that stand, in the order of telling; the same arrays until a record comes."""
        if self._answers is None:
            self._answers = self._as_arrays()
        return self._answers

    def _as_arrays(self) -> Answers:
        """The answers that stand, made anew; the arrays cannot be written to."""
        told = self._standing
        answers = Answers(
            np.array([(one["i"], one["j"]) for one in told], dtype=np.int64).reshape(-1, 2),
            np.array([SAYS[one["says"]] for one in told], dtype=np.int8),
            # None becomes NaN.
            np.array([one.get("certainty") for one in told], dtype=np.float64),
            tuple(one.get("source") or "" for one in told),
        )
        for column in answers[:3]:
            column.flags.writeable = False
        return answers


class Journal:
    """The answers of a session, each on disk before the call that gives it returns.

    The file at ``path`` is made if it is missing, and continued if it holds answers about the same rows;
    without a path answers are kept in memory alone. ``header`` has n_samples, fingerprint, seed and strategy
    with which the file began.
    """

    def __init__(
        self,
        path: PathLike | None,
        *,
        n_samples: int,
        fingerprint: str,
        seed: int | None = None,
        strategy: str | None = None,
    ) -> None:
        self.path = None if path is None else Path(path)
        self.header: dict[str, Any] = {
            "format": _FORMAT, "version": _VERSION, "n_samples": n_samples, "fingerprint": fingerprint,
            "seed": seed, "strategy": strategy,
        }  # fmt: skip
        self._log = AnswerLog(n_samples)
        # Behind the last whole line; what is beyond it if the last write failed is nobody's.
        self._end, self._failed = 0, False
        if self.path is None:
            return
        self._handle = _locked(self.path)
        self._close = weakref.finalize(self, os.close, self._handle)
        try:
            self._resume()
        except BaseException:
            self.close()
            raise

    def _resume(self) -> None:
        """Read what is there, cut off what a killed process left, and put down who is at work."""
        assert self.path is not None
        with naming(self.path):
            content = _read(self.path, self._handle)
            found = _parse(self.path, content)
            if found is None:
                self._failed = bool(content)
                self._put([self.header, _opening()])
                to_disk(self.path.resolve().parent)
                return
            _refuse_other_data(self.path, found.header, self.header)
            self.header, self._log, self._end = found.header, found.log, found.end
            self._failed = self._end != len(content)
            ended = content[: self._end].endswith(b"\n")
            self._put([_opening()], before=b"" if ended else b"\n")

    @property
    def closed(self) -> bool:
        """Whether the file was given free."""
        return self.path is not None and not self._close.alive

    def tell(
        self, i: int, j: int, says: str, *, certainty: float | None = None, source: str | None = None
    ) -> None:
        """Keep an answer: "same", "different" or "unsure"."""
        self.append(_answer(i, j, says, certainty, source))

    def check_answer(
        self, i: int, j: int, says: str, *, certainty: float | None = None, source: str | None = None
    ) -> None:
        """Refuse what ``tell`` would refuse; nothing is kept."""
        self._log.check(_answer(i, j, says, certainty, source))

    def undo(self) -> None:
        """Undo the last answer or retraction."""
        self.append({"op": "undo"})

    def retract(self, answer: int, *, source: str | None = None) -> None:
        """Take back the answer at this place, counted from 0 among those that stand."""
        self.append({"op": "retract", "answer": answer, "source": source or ""})

    @property
    def last_source(self) -> str | None:
        """Who did the step that ``undo`` would undo, "" without a name; None if there is none."""
        return self._log.last_source

    @property
    def n_records(self) -> int:
        """Number of records; it grows with every change."""
        return self._log.n_records

    def append(self, record: dict[str, Any]) -> None:
        """Keep a record; when this returns it is on disk. After an error nothing has changed."""
        record = {key: _plain(value) for key, value in record.items()}
        self._log.check(record)
        if self.path is not None:
            if self.closed:
                raise ValueError(f"{self.path} was closed; use a new session to go on")
            with naming(self.path):
                self._put([{**record, "time": _now()}])
        self._log.apply(record)

    def answers(self) -> Answers:
        """The answers that stand, in the order of telling."""
        return self._log.answers()

    def reread(self) -> Answers:
        """The answers as they are on disk: the same, unless an interruption came right after a write."""
        if self.path is None or self.closed:
            return self.answers()
        found = _parse(self.path, _read(self.path, self._handle))
        assert found is not None
        self._log = found.log
        return self.answers()

    def __len__(self) -> int:
        return len(self._log)

    def close(self) -> None:
        """Give the file free for other sessions."""
        if self.path is not None:
            self._close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _put(self, records: list[dict[str, Any]], before: bytes = b"") -> None:
        """Write lines behind the last whole one, and wait until they are on disk."""
        self._refuse_changed()
        content = before + "".join(json.dumps(record) + "\n" for record in records).encode()
        try:
            if self._failed:
                os.ftruncate(self._handle, self._end)
            self._failed = True
            os.lseek(self._handle, self._end, os.SEEK_SET)
            left = memoryview(content)
            while left:
                left = left[os.write(self._handle, left) :]
            os.fsync(self._handle)
        except BaseException:
            # A full disk, or Ctrl-C: the record was not acknowledged, so it must not be there.
            with suppress(OSError):
                os.ftruncate(self._handle, self._end)
                self._failed = False
            raise
        self._end += len(content)
        self._failed = False

    def _refuse_changed(self) -> None:
        """Refuse to write to a file that is not at its place any more, or that others wrote to."""
        assert self.path is not None
        mine = os.fstat(self._handle)
        try:
            in_place = os.path.samestat(mine, os.stat(self.path))
        except FileNotFoundError:
            in_place = False
        if not in_place:
            raise FileNotFoundError(
                f"{self.path} was moved, removed or replaced while a session wrote to it; put it back, or "
                "use a new session"
            )
        if mine.st_size != self._end and not self._failed:
            raise OSError(f"{self.path} was changed by another program; use a new session")


def read_answers(path: PathLike, *, n_samples: int, fingerprint: str) -> Answers:
    """The answers that stand in a journal about these rows, also while a session writes to it."""
    path = Path(path)
    with naming(path), _opened(path, os.O_RDONLY) as handle:
        found = _parse(path, _read(path, handle))
    if found is None:
        return AnswerLog(n_samples).answers()
    _refuse_other_data(path, found.header, {"n_samples": n_samples, "fingerprint": fingerprint})
    return found.log.answers()


def answers_beyond(own: Answers, others: Answers) -> Answers:
    """The other answers, but for those that the same person gave in both."""
    known = Counter(_keys(own))
    kept = []
    for place, key in enumerate(_keys(others)):
        if known[key] > 0:
            known[key] -= 1
        else:
            kept.append(place)
    return chosen_answers(others, np.array(kept, dtype=np.int64))


def _keys(answers: Answers) -> Iterator[tuple[Any, ...]]:
    """Pair, answer, certainty and person, to be compared."""
    columns = (column.tolist() for column in answers[:3])
    for (i, j), says, certainty, source in zip(*columns, answers.source, strict=True):
        yield min(i, j), max(i, j), says, None if certainty != certainty else certainty, source


def written_from(path: PathLike) -> set[str]:
    """Hashes of the files that were written from the answers of a journal; none if there is no journal."""
    path = Path(path)
    try:
        with naming(path), _opened(path, os.O_RDONLY) as handle:
            found = _parse(path, _read(path, handle))
    except FileNotFoundError:
        return set()
    return set() if found is None else found.log.written


class _Found(NamedTuple):
    """What is in a file: header, answers, and where the last whole record ends."""

    header: dict[str, Any]
    log: AnswerLog
    end: int


def _read(path: Path, handle: int) -> bytes:
    """The whole file, once its beginning says that it is a journal."""
    os.lseek(handle, 0, os.SEEK_SET)
    with os.fdopen(handle, "rb", closefd=False) as stream:
        beginning = stream.read(len(_BEGINNING))
        if not _BEGINNING.startswith(beginning):
            if beginning.startswith(_MARK):
                raise ValueError(f"{path} was written by a newer linkwise; use that one")
            raise ValueError(f"{path} is no journal of answers; choose another name")
        return beginning + stream.read()


def _parse(path: Path, content: bytes) -> _Found | None:
    """Replay the lines of a journal; None if a killed process had not finished the header."""
    *lines, rest = content.split(b"\n")
    if rest and _is_whole_record(rest):
        # Somebody's editor left out the last line break, or only that was cut off.
        lines, rest = [*lines, rest], b""
    if not lines:
        return None
    try:
        header = json.loads(lines[0])
        log = AnswerLog(_header_rows(header))
    except ValueError:
        raise ValueError(f"{path}, line 1 is damaged; restore the file from a copy") from None
    for number, line in enumerate(lines[1:], start=2):
        try:
            record = json.loads(line)
            log.check(record)
        except ValueError as error:
            reason = "it is no JSON object" if isinstance(error, json.JSONDecodeError) else str(error)
            raise ValueError(
                f"{path}, line {number} is damaged ({reason.split(';')[0]}); correct or remove the line, or "
                "restore the file from a copy"
            ) from None
        log.apply(record)
    return _Found(header, log, len(content) - len(rest))


def _header_rows(header: Any) -> int:
    """Number of rows that a header names."""
    n_samples = header.get("n_samples") if isinstance(header, dict) else None
    if not _is_whole(n_samples) or not isinstance(header.get("fingerprint"), str):
        raise ValueError
    return int(n_samples)


def _is_whole_record(text: bytes) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def _refuse_other_data(path: Path, header: dict[str, Any], wanted: dict[str, Any]) -> None:
    if header["n_samples"] != wanted["n_samples"]:
        difference = f"of {header['n_samples']} rows, not {wanted['n_samples']}"
    elif header["fingerprint"] != wanted["fingerprint"]:
        difference = f"also of {header['n_samples']} rows, but with other values"
    else:
        return
    raise ValueError(
        f"{path} holds answers about other data ({difference}); pass the data it began with, or name another "
        "journal"
    )


def _locked(path: Path) -> int:
    """Open a file, which is made if it is missing, and lock it against other sessions."""
    with naming(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with _opened(path, os.O_RDWR | os.O_CREAT):
            pass
        handle = try_lock(path)
    if handle is not None:
        return handle
    owner = _owner(path)
    who = "another process" if owner is None else f"process {owner}"
    if owner == os.getpid():
        who = f"another session of this process, {owner}"
    raise BlockingIOError(f"{path} is in use by {who}; close that session first")


@contextmanager
def _opened(path: Path, flags: int) -> Iterator[int]:
    handle = os.open(path, flags, 0o666)
    try:
        yield handle
    finally:
        os.close(handle)


def _owner(path: Path) -> int | None:
    """The process that locked the file: the last one that put down its id."""
    waited = time.monotonic()
    while time.monotonic() < waited + _PATIENCE:
        records = []
        for line in path.read_bytes().splitlines():
            with suppress(ValueError):
                records.append(json.loads(line))
        pids = [record["pid"] for record in records if isinstance(record, dict) and "pid" in record]
        if pids and _is_alive(pids[-1]):
            return int(pids[-1])
        # It has the lock, but has not put down its id yet.
        time.sleep(0.02)
    return None


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _opening() -> dict[str, Any]:
    return {"op": "open", "pid": os.getpid(), "time": _now()}


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _is_whole(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _answer(i: Any, j: Any, says: Any, certainty: Any, source: Any) -> dict[str, Any]:
    """The record of an answer."""
    record = {"op": "tell", "i": i, "j": j, "says": says, "certainty": certainty, "source": source or ""}
    return {key: _plain(value) for key, value in record.items()}


def _plain(value: Any) -> Any:
    """Python's own number instead of one of numpy."""
    if isinstance(value, numbers.Integral) and not isinstance(value, bool):
        return int(value)
    return float(value) if isinstance(value, np.floating) else value
