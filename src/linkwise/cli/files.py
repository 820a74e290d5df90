"""Files and folders that appear complete or not at all."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from linkwise.cli.errors import CommandError, naming

__all__ = ["check_folder", "replacing", "replacing_folder", "write_bytes", "write_json", "write_text"]


def check_folder(path: str | os.PathLike[str] | None) -> None:
    """Refuse, before anything long runs, a folder that cannot be made or written to."""
    if path is None:
        return
    place = Path(path)
    while not place.exists() and place != place.parent:
        place = place.parent
    if not place.is_dir():
        raise CommandError(f"{place} is a file; -o must name a folder")
    if not os.access(place, os.W_OK | os.X_OK):
        raise CommandError(f"{place}: permission denied; -o must name a folder that can be written to")


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Write a file beside its place and rename it once it is complete.

    Parameters
    ----------
    path : path_like
        Its folder is made if it is missing.

    Yields
    ------
    Path
        Where to write. Whatever stops the writing, an earlier file at ``path`` stays as it was.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from linkwise.cli.files import replacing
    >>> target = Path(tempfile.mkdtemp()) / "labels.csv"
    >>> with replacing(target) as draft:
    ...     _ = draft.write_text("row,cluster")
    ...     target.exists()
    False
    >>> target.read_text(), [entry.name for entry in target.parent.iterdir()]
    ('row,cluster', ['labels.csv'])
    """
    target = Path(path)
    with naming(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        # The suffix stays, because writers choose the format by it.
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.stem}-", suffix=target.suffix)
        os.close(handle)
        draft = Path(name)
        try:
            yield draft
            draft.chmod(0o666 & ~_umask())
            draft.replace(target)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise


@contextmanager
def replacing_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Fill a folder beside its place and rename it once it is complete.

    Parameters
    ----------
    path : path_like

    Yields
    ------
    Path
        A folder of the same name that does not exist yet, in a temporary one.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    drafts = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}-"))
    try:
        draft = drafts / target.name
        with naming(target):
            yield draft
        if target.exists():
            target.rename(drafts / "earlier")
        draft.rename(target)
        target.chmod(0o777 & ~_umask())
    finally:
        shutil.rmtree(drafts, ignore_errors=True)


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


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
