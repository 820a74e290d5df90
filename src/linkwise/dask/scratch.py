"""A folder for tables that are too large for memory; it goes when nothing refers to it any more."""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
import weakref
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Scratch:
    """A folder of arrays, which this process and all workers see.

    It is removed with the last reference to it in the process that made it; one with a ``name``, that of a
    checkpoint, only after ``expire``. Workers have copies that remove nothing.
    """

    def __init__(self, folder: str | os.PathLike[str] | None, name: str | None = None) -> None:
        if folder is not None:
            Path(folder).mkdir(parents=True, exist_ok=True)
        if folder is not None and name is not None:
            self.path = (Path(folder) / name).resolve()
            self.path.mkdir(exist_ok=True)
            return
        self.path = Path(tempfile.mkdtemp(prefix="linkwise-", dir=folder)).resolve()
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)

    def expire(self) -> None:
        """Make a folder with a name one of those without: the next fit may have the name."""
        self.path = self.path.rename(self.path.with_name(f"linkwise-{uuid.uuid4().hex}"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.path = state["path"]

    def __dask_tokenize__(self) -> str:
        return str(self.path)

    def save(self, name: str, array: NDArray[Any]) -> None:
        """Store an array at once: a worker that is killed leaves what was there.

        Nobody reads it after the machine went down, so it need not be forced to the disk as in ``_files``.
        """
        draft = self.path / f"{name}.{uuid.uuid4().hex}.draft"
        try:
            with draft.open("wb") as file:
                np.save(file, array)
            os.replace(draft, self.path / f"{name}.npy")
        except FileNotFoundError:
            raise self._not_shared() from None
        except OSError as error:
            draft.unlink(missing_ok=True)
            message = f"{error.strerror}; CPPC(scratch=...) may name another folder"
            raise OSError(error.errno, message, str(draft)) from None

    def load(self, name: str) -> NDArray[Any]:
        """Read an array."""
        try:
            return np.asarray(np.load(self.path / f"{name}.npy", allow_pickle=False))
        except FileNotFoundError:
            raise self._not_shared() from None

    def remove(self, names: Iterable[str]) -> None:
        """Remove arrays, if they are there."""
        for name in names:
            (self.path / f"{name}.npy").unlink(missing_ok=True)

    def _not_shared(self) -> FileNotFoundError:
        return FileNotFoundError(
            f"{self.path} is gone, or a worker does not see it; pass CPPC(scratch=...), a folder that all "
            "workers share"
        )
