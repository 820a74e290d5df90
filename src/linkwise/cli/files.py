"""What commands write: single files, and the results of a run, which appear together or not at all.

The report of a run ends with a comment that lists the files of the run. By it the next run of the same
command knows what it may replace, and what it must not: all else belongs to the user or to another command.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from linkwise._files import reading, replacing, settle, together
from linkwise.cli.errors import CommandError

__all__ = [
    "REPORT",
    "check_folder",
    "reading",
    "replacing",
    "together",
    "write_bytes",
    "write_json",
    "write_text",
    "writing_results",
]

#: Every command that writes several files to a folder writes this one.
REPORT = "report.html"

_BEFORE_LIST, _AFTER_LIST = "<!-- written by linkwise: ", " -->\n"


def check_folder(
    path: str | os.PathLike[str] | None, command: str | None = None, names: Sequence[str] = ()
) -> None:
    """Refuse, before anything long runs, a folder that cannot be made or written to.

    Parameters
    ----------
    path : path_like or None
        None checks nothing. What a killed run left in the folder is settled.
    command : str, optional
        The command that will write results to the folder.
    names : sequence of str
        What it will write; whatever has such a name and is not of an earlier run of the command is refused.
    """
    if path is None:
        return
    place = Path(path)
    while not place.exists() and place != place.parent:
        place = place.parent
    if not place.is_dir():
        raise CommandError(f"{place} is a file; -o must name a folder")
    if not os.access(place, os.W_OK | os.X_OK):
        raise CommandError(f"{place}: permission denied; -o must name a folder that can be written to")
    settle(path)
    if command is not None:
        _refuse_strangers(Path(path), command, names)


@contextmanager
def writing_results(folder: str | os.PathLike[str], command: str) -> Iterator[Path]:
    """Write the results of a run, in place of those of an earlier run of the same command.

    Parameters
    ----------
    folder : path_like
    command : str

    Yields
    ------
    Path
        A folder to write to, ``report.html`` among others. Whatever stops the writing, there are all files of
        the earlier run or all of this one, at the latest after the next command that uses the folder.
    """
    with together(folder, lambda target: _owned(target, command), last=REPORT) as draft:
        yield draft
        files = sorted(path.relative_to(draft).as_posix() for path in draft.rglob("*") if path.is_file())
        # Two hyphens would end the comment.
        listed = json.dumps({"command": command, "files": files}).replace("--", "-\\u002d")
        with open(draft / REPORT, "a", encoding="utf-8") as stream:
            stream.write(f"{_BEFORE_LIST}{listed}{_AFTER_LIST}")


def _refuse_strangers(folder: Path, command: str, names: Sequence[str]) -> None:
    """Refuse to replace what no earlier run of the command wrote."""
    owned = _owned(folder, command)
    for name in names:
        if os.path.lexists(folder / name) and name not in owned:
            raise CommandError(
                f"{folder / name} is in the way: no earlier `linkwise {command}` wrote it; move it away, or "
                "choose another folder with -o"
            )


def _owned(folder: Path, command: str) -> set[str]:
    """Entries of a folder that an earlier run of the command wrote, and nobody put anything into."""
    record = _read_list(folder / REPORT)
    if record.get("command") != command:
        return set()
    files = {file for file in record["files"] if isinstance(file, str)}
    return {
        name for name in {file.split("/")[0] for file in files} if _holds_only(folder / name, files, name)
    }


def _holds_only(path: Path, files: set[str], name: str) -> bool:
    """Whether an entry is one of these files, or a folder of nothing else."""
    if path.is_symlink() or name in ("", ".", ".."):
        return False
    if not path.is_dir():
        return name in files
    return all(_holds_only(path / inner, files, f"{name}/{inner}") for inner in os.listdir(path))


def _read_list(path: Path) -> dict[str, Any]:
    """The list at the end of a report; empty if there is none."""
    try:
        with open(path, "rb") as stream:
            stream.seek(max(0, path.stat().st_size - 65536))
            end = stream.read()
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        return {}
    _, before, rest = end.rpartition(_BEFORE_LIST.encode())
    if not before or not rest.endswith(_AFTER_LIST.encode()):
        return {}
    try:
        record = json.loads(rest.removesuffix(_AFTER_LIST.encode()))
    except ValueError:
        return {}
    return record if isinstance(record, dict) and isinstance(record.get("files"), list) else {}


def write_bytes(path: str | os.PathLike[str], content: bytes) -> Path:
    """Write a binary file, all or nothing."""
    with replacing(path) as draft:
        draft.write_bytes(content)
    return Path(path)


def write_text(path: str | os.PathLike[str], content: str) -> Path:
    """Write a UTF-8 file, all or nothing."""
    return write_bytes(path, content.encode("utf-8"))


def write_json(path: str | os.PathLike[str], content: Any) -> Path:
    """Write a JSON file, all or nothing."""
    return write_text(path, json.dumps(content, indent=1, allow_nan=False) + "\n")
