"""What a command gives back: lines and tables for people, one JSON object for scripts, and files.

The report of a run ends with a comment that lists its files. By it the next run of the same command knows
which files it may replace: all others belong to the user or to another command.
"""

from __future__ import annotations

import errno
import json
import math
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise._files import replacing, settle, together
from linkwise._pages import TextTable
from linkwise.cli.errors import CommandError

if TYPE_CHECKING:
    from rich.console import Console

# Without a terminal there is no width to fit in; long enough that no cell is cut.
_WIDTH_OF_A_FILE = 200


def console(**options: Any) -> Console:
    """A console of rich, which would end the process with code 1 if the reader of a pipe is gone."""
    from rich.console import Console

    class OfACommand(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))

    return OfACommand(highlight=False, **options)


class Output:
    """Prints the results of one command as text, or as one JSON object with ``--json``."""

    def __init__(self, as_json: bool = False) -> None:
        self.as_json = as_json
        self.warnings: list[str] = []
        width = None if sys.stdout.isatty() else _WIDTH_OF_A_FILE
        self._console = console(width=width, soft_wrap=True)
        self._errors = console(stderr=True, soft_wrap=True)

    def say(self, text: str = "") -> None:
        """Print a line for people."""
        if not self.as_json:
            self._console.print(text, markup=False)

    def paragraph(self, text: str) -> None:
        """Print a sentence or more for people, broken between words."""
        if not self.as_json:
            self._console.print(text, markup=False, soft_wrap=False)

    def warn(self, text: str) -> None:
        """Print a line on standard error, and keep it for the JSON object and the report."""
        line = " ".join(text.split())
        if line not in self.warnings:
            self.warnings.append(line)
            self._errors.print(f"warning: {line}", markup=False, style="yellow")

    def say_written(self, files: dict[str, Path]) -> None:
        """Print the names of the files that were written."""
        self.say("Written: " + ", ".join(str(path) for path in files.values()))

    def table(self, table: TextTable) -> None:
        """Print a table for people."""
        if self.as_json:
            return
        from rich import box
        from rich.table import Table
        from rich.text import Text

        drawn = Table(
            title=Text(table.title, style="bold"),
            title_justify="left",
            box=box.SIMPLE_HEAD,
            pad_edge=False,
            show_header=any(table.columns),
        )
        for place, name in enumerate(table.columns):
            drawn.add_column(Text(name), justify="left" if place < table.text_columns else "right")
        for row in table.rows:
            drawn.add_row(*(Text(cell) for cell in row))
        self._console.print(drawn, soft_wrap=False)

    def record(self, result: dict[str, Any]) -> dict[str, Any]:
        """Make the JSON object of a result: plain values, and the warnings so far."""
        return {**_plain(result), "warnings": self.warnings}

    def finish(self, result: dict[str, Any]) -> None:
        """Print the JSON object, if it was asked for."""
        if self.as_json:
            print(as_json(self.record(result)))

    @contextmanager
    def progress(self, task: str, total: int | None = None) -> Iterator[Callable[[], None]]:
        """Show a bar on a terminal; yields what to call after each of ``total`` steps."""
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        columns: list[Any] = [TextColumn("{task.description}"), BarColumn()]
        if total is not None:
            columns.append(MofNCompleteColumn())
        bar = Progress(
            *columns,
            TimeElapsedColumn(),
            console=self._errors,
            transient=True,
            disable=not self._errors.is_terminal,
        )
        with self.hearing_warnings(), bar:
            number = bar.add_task(task, total=total)
            yield lambda: bar.advance(number)

    @contextmanager
    def hearing_warnings(self) -> Iterator[None]:
        """Turn warnings raised inside the block into lines of :meth:`warn` at its end."""
        with warnings.catch_warnings(record=True) as raised:
            warnings.simplefilter("default")
            for kind in (DeprecationWarning, PendingDeprecationWarning):  # for programmers of other libraries
                warnings.simplefilter("ignore", kind)
            yield
        for warning in raised:
            self.warn(str(warning.message))


def _plain(value: Any) -> Any:
    """Turn numbers of numpy into Python's; NaN and infinities, which JSON does not have, become None."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def as_json(value: Any) -> str:
    """Write JSON; NaN and infinities become null, paths and other objects their text."""
    return json.dumps(_plain(value), ensure_ascii=False, allow_nan=False)


#: Every command that writes several files to a folder writes this one.
REPORT = "report.html"

_BEFORE_LIST, _AFTER_LIST = "<!-- written by linkwise: ", " -->\n"


def check_folder(
    path: str | os.PathLike[str] | None, command: str | None = None, names: Sequence[str] = ()
) -> None:
    """Refuse, before anything long runs, a folder that cannot be written to, or ``names`` of others in it."""
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


def refuse_input(output: Path, *read: str | os.PathLike[str]) -> None:
    """Refuse to write a file over one that the command reads."""
    if any(os.path.realpath(path) == os.path.realpath(output) for path in read):
        raise CommandError(f"-o {output} is read by this command; choose another name")


def refuse_result(output: Path) -> None:
    """Refuse to write a file over the result of a command that wrote its folder."""
    record = _read_list(output.parent / REPORT)
    if output.name in record.get("files", ()) and os.path.lexists(output):
        writer = f"`linkwise {record.get('command')}`"
        raise CommandError(f"{output} is in the way: {writer} wrote it; choose another name with -o")


@contextmanager
def writing_results(folder: str | os.PathLike[str], command: str) -> Iterator[Path]:
    """Yield a folder for the results of a run, report.html among them; all replace the earlier ones."""
    with together(folder, lambda target: _owned(target, command), last=REPORT) as draft:
        yield draft
        files = sorted(path.relative_to(draft).as_posix() for path in draft.rglob("*") if path.is_file())
        # Two hyphens would end the comment.
        listed = json.dumps({"command": command, "files": files}).replace("--", "-\\u002d")
        with open(draft / REPORT, "a", encoding="utf-8") as stream:
            stream.write(f"{_BEFORE_LIST}{listed}{_AFTER_LIST}")


def write_results(
    out: Output, folder: Path, command: str, write: Callable[[Path], dict[str, Path]]
) -> dict[str, Path]:
    """Let ``write`` write the files of a run to a draft of its folder, and say where they are."""
    with writing_results(folder, command) as draft:
        written = write(draft)
    files = {kind: folder / path.name for kind, path in written.items()}
    out.say_written(files)
    return files


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
    """List the entries of a folder that an earlier run of the command wrote and that hold nothing else."""
    record = _read_list(folder / REPORT)
    if record.get("command") != command:
        return set()
    files = {file for file in record["files"] if isinstance(file, str)}
    return {
        name for name in {file.split("/")[0] for file in files} if _holds_only(folder / name, files, name)
    }


def _holds_only(path: Path, files: set[str], name: str) -> bool:
    """Tell whether an entry is one of these files, or a folder of nothing else."""
    if path.is_symlink() or name in ("", ".", ".."):
        return False
    if not path.is_dir():
        return name in files
    return all(_holds_only(path / inner, files, f"{name}/{inner}") for inner in os.listdir(path))


def _read_list(path: Path) -> dict[str, Any]:
    """Read the list at the end of a report; empty if there is none."""
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
