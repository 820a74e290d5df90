"""Files and folders that appear complete or not at all, whatever stops the writing, SIGKILL included.

One file (``replacing``) is written under a hidden name beside its place and renamed.

Several entries of a folder that belong together (``together``) cannot be replaced by renames alone: no system
renames two names at once, and links into a hidden folder, which could be turned at once, would break when a
user moves a result elsewhere. A journal does it instead:

1. Everything is written to a hidden folder inside the target. A run that is killed here has changed nothing.
2. The journal, a list of names, is put into the hidden folder by one rename. From then on the new results
   count.
3. First all earlier entries are moved into the hidden folder, then all new ones out of it. After a kill here
   some entries are missing, but there is never a mixture of two runs.
4. The journal is removed, then the hidden folder.

``settle`` ends what a killed run left: it carries out a journal and removes drafts without one. All commands
call it before they read or write a folder. Drafts of runs that are still at work hold a lock, which the
system releases when a process dies; on a system without locks two runs must not write to one place at the
same time.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

PathLike = str | os.PathLike[str]

_JOURNAL, _LOCK, _NEW, _OLD = "journal.json", "lock", "new", "old"
# What drafts of ``together`` are named after.
_RESULTS = "results"


@contextmanager
def naming(path: PathLike, draft: Path | None = None) -> Iterator[None]:
    """Make errors of the system name the user's file: not a draft inside ``draft``, and not no file."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        place = Path(path)
        if draft is not None and error.filename is not None and Path(error.filename).is_relative_to(draft):
            place /= Path(error.filename).relative_to(draft)
        raise OSError(error.errno, error.strerror or str(error), str(place)) from error


@contextmanager
def replacing(path: PathLike) -> Iterator[Path]:
    """Yield a draft that replaces the file at ``path`` once it is complete; a symbolic link stays."""
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        raise FileExistsError(f"{path} is in the way: it is not a file; choose another name")
    with naming(path):
        target.parent.mkdir(parents=True, exist_ok=True)
        sweep(target)
        draft, lock = _draft_file(target)
        try:
            yield draft
            to_disk(draft)
            os.replace(draft, target)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise
        finally:
            os.close(lock)


@contextmanager
def together(
    folder: PathLike, owned: Callable[[Path], Iterable[str]], *, last: str | None = None
) -> Iterator[Path]:
    """Yield an empty folder whose entries then appear in ``folder`` together, instead of an earlier run's.

    ``owned(folder)`` names the entries that may be replaced or removed; FileExistsError if another is in the
    way. While the entry ``last`` is there, all of its run are. Nothing else is touched.
    """
    target = Path(os.path.realpath(folder))
    target.mkdir(parents=True, exist_ok=True)
    settle(target)
    with _stage(target / _RESULTS) as stage:
        draft = stage / _NEW
        with naming(folder, draft):
            draft.mkdir()
            yield draft
            _all_to_disk(draft)
            (stage / _OLD).mkdir()
        settle(target)
        with _locked(target):
            names = sorted(os.listdir(draft), key=lambda name: (name == last, name))
            mine = set(owned(target))
            for name in names:
                if os.path.lexists(target / name) and name not in mine:
                    raise FileExistsError(
                        f"{Path(folder) / name} is in the way: it is not part of an earlier result; move it "
                        "away or choose another folder"
                    )
            outdated = sorted(name for name in mine - set(names) if os.path.lexists(target / name))
            _write_journal(stage, {"forward": True, "names": names, "outdated": outdated})
            _carry_out(stage, target)


def settle(folder: PathLike) -> None:
    """Carry out the journals and remove the drafts that killed runs left in a folder, if it exists."""
    target = Path(os.path.realpath(folder))
    for stage in _drafts(target / _RESULTS):
        with _dead(stage) as dead:
            if not dead:
                continue
            with _locked(target):
                if (stage / _JOURNAL).exists():
                    _carry_out(stage, target)
                shutil.rmtree(stage, ignore_errors=True)


def sweep(target: Path) -> None:
    """Remove drafts that killed runs left beside the file they were to become."""
    for draft in _drafts(target):
        with _dead(draft) as dead:
            if dead and draft.is_dir():
                shutil.rmtree(draft, ignore_errors=True)
            elif dead:
                draft.unlink(missing_ok=True)


@contextmanager
def reading(*folders: PathLike) -> Iterator[None]:
    """Keep other runs from exchanging entries of these folders while they are read; settle them first."""
    for folder in folders:
        settle(folder)
    with ExitStack() as stack:
        for folder in folders:
            stack.enter_context(_locked(Path(os.path.realpath(folder)), shared=True))
        yield


def _write_journal(stage: Path, journal: dict[str, object]) -> None:
    with replacing(stage / _JOURNAL) as draft:
        draft.write_text(json.dumps(journal), encoding="utf-8")
    to_disk(stage)


def _carry_out(stage: Path, target: Path) -> None:
    """Do what the journal lists and is not done yet."""
    journal = json.loads((stage / _JOURNAL).read_text(encoding="utf-8"))
    try:
        if journal["forward"]:
            _forward(stage, target, journal["names"], journal["outdated"])
        else:
            _back(stage, target, journal["names"])
    except FileExistsError:
        raise
    except OSError:
        if journal["forward"]:
            # A rename was refused, and would be refused again: the earlier results come back.
            _write_journal(stage, {**journal, "forward": False})
            _back(stage, target, journal["names"])
            (stage / _JOURNAL).unlink()
        raise
    except BaseException:
        # Ctrl-C or a signal to end: the few renames that are left take next to no time.
        if journal["forward"]:
            _forward(stage, target, journal["names"], journal["outdated"])
            (stage / _JOURNAL).unlink(missing_ok=True)
        raise
    (stage / _JOURNAL).unlink()


def _forward(stage: Path, target: Path, names: list[str], outdated: list[str]) -> None:
    """Move earlier entries out, then new ones in."""
    waiting = [name for name in names if os.path.lexists(stage / _NEW / name)]
    for name in [*reversed(waiting), *outdated]:
        if os.path.lexists(target / name):
            _move(target / name, stage / _OLD / name, target / name)
    for name in waiting:
        _move(stage / _NEW / name, target / name, target / name)


def _back(stage: Path, target: Path, names: list[str]) -> None:
    """Move new entries out, then earlier ones in."""
    for name in reversed(names):
        if not os.path.lexists(stage / _NEW / name) and os.path.lexists(target / name):
            _move(target / name, stage / _NEW / name, target / name)
    kept = set(os.listdir(stage / _OLD))
    for name in [*sorted(kept - set(names)), *(name for name in names if name in kept)]:
        _move(stage / _OLD / name, target / name, target / name)


def _move(source: Path, place: Path, named: Path) -> None:
    """Rename to a place that must be free."""
    if os.path.lexists(place):
        raise FileExistsError(
            f"{named} is in the way: it came after a run that was killed while it wrote its results; move it "
            "away and try again"
        )
    os.rename(source, place)


def _draft_name(target: Path) -> Path:
    # The suffix stays, because writers choose the format by it; a long name would be too long with more.
    return target.with_name(f".{target.stem[:40]}.linkwise-{secrets.token_hex(8)}{target.suffix}")


def _drafts(target: Path) -> list[Path]:
    """List the drafts of a target: those of this process and of others, dead or alive."""
    pattern = re.escape(f".{target.stem[:40]}.linkwise-") + "[0-9a-f]{16}" + re.escape(target.suffix)
    try:
        names = os.listdir(target.parent)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return []
    return [target.parent / name for name in sorted(names) if re.fullmatch(pattern, name)]


def _draft_file(target: Path) -> tuple[Path, int]:
    """Make an empty file with the rights that the umask leaves, and lock it."""
    while True:
        draft = _draft_name(target)
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        lock = try_lock(draft)
        if lock is not None:
            return draft, lock


@contextmanager
def _stage(target: Path) -> Iterator[Path]:
    """Yield a locked hidden folder beside a target; remove it at the end unless its journal is unfinished."""
    while True:
        stage = _draft_name(target)
        stage.mkdir()
        try:
            (stage / _LOCK).touch()
        except FileNotFoundError:  # swept by another run before it was locked
            continue
        lock = try_lock(stage / _LOCK)
        if lock is not None:
            break
    try:
        yield stage
    finally:
        if not (stage / _JOURNAL).exists():
            shutil.rmtree(stage, ignore_errors=True)
        os.close(lock)


@contextmanager
def _dead(draft: Path) -> Iterator[bool]:
    """Yield whether no process works on a draft; none can begin to inside the block."""
    guard = draft / _LOCK if draft.is_dir() else draft
    if not guard.exists():
        yield draft.is_dir()
        return
    lock = try_lock(guard)
    try:
        yield lock is not None
    finally:
        if lock is not None:
            os.close(lock)


def try_lock(path: Path) -> int | None:
    """Open and lock a file until it is closed; None if another process has the lock or removed the file."""
    try:
        handle = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return None
    try:
        if fcntl is not None:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        mine = os.path.samestat(os.fstat(handle), os.stat(path))
    except (BlockingIOError, FileNotFoundError):
        mine = False
    except OSError:  # this file system has no locks
        mine = True
    if mine:
        return handle
    os.close(handle)
    return None


@contextmanager
def _locked(folder: Path, *, shared: bool = False) -> Iterator[None]:
    """Wait for other runs that exchange the entries of a folder, and keep them out."""
    handle = None
    # A folder that cannot be read or lies on a network drive has no lock: there, two runs must not end at the
    # same moment.
    with suppress(OSError):
        if fcntl is not None:
            handle = os.open(folder, os.O_RDONLY)
            fcntl.flock(handle, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
    try:
        yield
    finally:
        if handle is not None:
            os.close(handle)


def _all_to_disk(folder: Path) -> None:
    for place, _, names in os.walk(folder):
        for name in names:
            to_disk(Path(place) / name)


def to_disk(path: Path) -> None:
    """Wait until the content is on the disk, so that a power cut after the rename finds it there."""
    if os.name == "nt" and path.is_dir():
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
