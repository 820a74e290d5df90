"""Maps as GeoTIFF files, written window by window; a run that was killed goes on where it was.

A GeoTIFF that is compressed cannot be read after a kill, so finished windows first go to a journal beside the
target: a header, and then for each window its place, its check sum and its compressed pixels. A record that a
kill tore is recognised by its check sum and cut off. When all windows are there, they are written to a draft
of the GeoTIFF tile by tile, read back and compared, and the draft is renamed.
"""

from __future__ import annotations

import errno
import json
import os
import struct
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

import joblib
import numpy as np
import rasterio
import xarray as xr
from numpy.typing import ArrayLike, NDArray
from rasterio.enums import ColorInterp
from rasterio.errors import RasterioError
from rasterio.windows import Window

from linkwise._files import naming, replacing, to_disk, try_lock
from linkwise.raster.classify import CACHE, class_type
from linkwise.raster.grid import as_stack, class_codes, grid_of
from linkwise.raster.legend import Legend

#: Side of the tiles of the GeoTIFF.
_TILE = 256
#: Row, column, height and width of a window, length and check sum of its pixels.
_RECORD = struct.Struct("<IIIIQI")
_VERSION = 1
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class MapWriter:
    """Write a map window by window; nothing appears under the target's name before it is complete.

    Parameters
    ----------
    path : path
        A ``.tif`` file. Beside it come a style for QGIS (``.qml``) and the names for GDAL
        (``.tif.aux.xml``).
    like : xarray.DataArray or Dataset
        The stack: size, CRS and transform of the map.
    legend : Legend or sequence of str
        Names and colours of the classes 1, 2, ...
    overwrite : bool, default=False
        Replace a map of this name, and remove its overviews (``.ovr``). Otherwise an existing file raises
        FileExistsError.
    fingerprint : str, optional
        What identifies stack, model and settings, see :func:`fingerprint`. A run of the same fingerprint that
        was interrupted is taken up: ``done`` then has its windows. None starts anew.
    confidence : bool, default=True
        Whether there is a second band, the confidence in percent (1 to 100, 0 for no data).

    Attributes
    ----------
    grid : Grid
        Size, CRS and transform of the map.
    done : set of (row, column)
        Upper left corners of the windows that are already written, see :func:`iter_windows`.

    Notes
    -----
    The class band has a colour table, nodata 0, and the names in its metadata (``class_1``, ...). After
    Ctrl-C, a kill, or a file that could not be read or written, a hidden journal stays beside the target for
    the next run, if there is a fingerprint. After bad input, or on a full disk, nothing stays.

    Examples
    --------
    >>> import tempfile, numpy as np, rasterio, xarray as xr
    >>> from rasterio.windows import Window
    >>> from linkwise.raster import MapWriter
    >>> stack = xr.DataArray(np.zeros((1, 4, 6)), dims=("band", "y", "x")).rio.write_crs("EPSG:32721")
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = f"{folder.name}/map.tif"
    >>> with MapWriter(path, like=stack, legend=["water", "wood"]) as writer:
    ...     for column in (0, 3):
    ...         classes = np.full((4, 3), 1 + (column > 0), dtype=np.uint8)
    ...         writer.write(Window(column, 0, 3, 4), classes, np.full((4, 3), 0.9))
    >>> with rasterio.open(path) as file:
    ...     file.read()[:, 0].tolist(), file.tags(1)["class_2"]
    ([[1, 1, 1, 2, 2, 2], [90, 90, 90, 90, 90, 90]], 'wood')
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        like: Any,
        legend: Legend | Sequence[str],
        overwrite: bool = False,
        fingerprint: str | None = None,
        confidence: bool = True,
    ) -> None:
        self.path = Path(path)
        self.legend = legend if isinstance(legend, Legend) else Legend(legend)
        self.grid = grid_of(like)
        if self.grid.crs is None:
            raise ValueError(
                'the stack has no CRS, so the map would have none; set it by stack.rio.write_crs("EPSG:...")'
            )
        self._overwrite, self._confidence, self._fingerprint = overwrite, confidence, fingerprint
        self._dtype = class_type(len(self.legend))
        if self.path.suffix.lower() not in (".tif", ".tiff"):
            raise ValueError(f"{path} is no name of a GeoTIFF; end it with .tif")
        self._check_free()
        self.done: set[tuple[int, int]] = set()

    @property
    def _beside(self) -> list[Path]:
        return [self.path.with_suffix(".qml"), self.path.with_name(f"{self.path.name}.aux.xml")]

    @property
    def _overviews(self) -> Path:
        """Smaller copies of an earlier map: viewers would show them instead of the new one."""
        return self.path.with_name(f"{self.path.name}.ovr")

    @property
    def _journal_path(self) -> Path:
        return self.path.with_name(f".{self.path.name}.windows")

    def _check_free(self) -> None:
        for path in [self.path, *self._beside, self._overviews]:
            if path.is_dir():
                raise FileExistsError(f"{path} is in the way: it is a folder; choose another name")
            if path.exists() and not self._overwrite:
                raise FileExistsError(
                    f"{path} exists; choose another name, or pass overwrite=True to replace it"
                )

    def __enter__(self) -> Self:
        self._offsets: dict[tuple[int, int, int, int], int] = {}
        with naming(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._journal_path.touch()
        lock = try_lock(self._journal_path)
        if lock is None:
            raise BlockingIOError(f"another run is writing {self.path}; wait for it, or choose another name")
        self._journal: BinaryIO = os.fdopen(lock, "r+b")  # closing it opens the lock
        try:
            self._resume()
        except BaseException:
            self._drop()
            raise
        return self

    def write(self, window: Window, classes: ArrayLike, confidence: ArrayLike | None = None) -> None:
        """Write the classes (h, w) of a window, and their probabilities (h, w), NaN without data."""
        codes = np.asarray(classes)
        if codes.dtype.kind == "f" and (codes == np.rint(codes)).all():
            codes = codes.astype(np.int64)
        codes = class_codes(codes)
        place = (int(window.row_off), int(window.col_off), int(window.height), int(window.width))
        row, column, height, width = place
        if row < 0 or column < 0 or row + height > self.grid.height or column + width > self.grid.width:
            raise ValueError(
                f"window {place} reaches over the map of {self.grid.shape}; pass windows inside it"
            )
        if codes.shape != (height, width):
            raise ValueError(
                f"classes have shape {codes.shape}, but the window is {(height, width)}; pass that"
            )
        if codes.size and int(codes.max()) > len(self.legend):
            raise ValueError(
                f"class {int(codes.max())} is not in the legend of {len(self.legend)}; add its name"
            )
        parts = [codes.astype(self._dtype).tobytes()]
        if self._confidence:
            if confidence is None:
                raise ValueError("confidence is missing; pass it, or MapWriter(..., confidence=False)")
            parts.append(self._percent(np.asarray(confidence), codes).tobytes())
        packed = zlib.compress(b"".join(parts), 1)
        try:
            offset = self._journal.seek(0, os.SEEK_END)
            self._journal.write(_RECORD.pack(*place, len(packed), zlib.crc32(packed)) + packed)
            self._journal.flush()
        except OSError as error:
            raise _not_written(self.path, error) from error
        self._offsets[place] = offset
        self.done.add((row, column))

    def _percent(self, confidence: NDArray[Any], codes: NDArray[Any]) -> NDArray[np.unsignedinteger]:
        """Whole percent, at least 1 because 0 is no data."""
        percent = np.rint(np.float32(100.0) * confidence.astype(np.float32, copy=False))
        # NaN becomes the smaller number.
        percent = np.fmin(np.fmax(percent, np.float32(1.0)), np.float32(100.0)).astype(self._dtype)
        percent[codes == 0] = 0
        return percent

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is None:
            try:
                self._finish()
            except BaseException as failure:
                self._leave(failure)
                raise
            self._drop()
        else:
            assert error is not None
            self._leave(error)

    def _leave(self, error: BaseException) -> None:
        """Keep the journal where the same run may succeed later: after Ctrl-C, or a file out of reach."""
        full = isinstance(error, _Full) or getattr(error, "errno", None) in _FULL
        may_succeed = not isinstance(error, Exception) or isinstance(error, OSError | MemoryError)
        if self._fingerprint is not None and may_succeed and not full:
            self._journal.close()
        else:
            self._drop()

    def _header(self) -> bytes:
        about = {
            "version": _VERSION,
            "fingerprint": self._fingerprint,
            "grid": [*self.grid.shape, *self.grid.transform[:6], self.grid.crs.to_wkt()],
            "names": self.legend.names,
            "type": self._dtype.name,
            "confidence": self._confidence,
        }
        return json.dumps(about).encode() + b"\n"

    def _resume(self) -> None:
        """Take up the windows of an interrupted run of the same map, or begin anew."""
        header = self._header()
        self._journal.seek(0)
        end = len(header)
        if self._fingerprint is not None and self._journal.read(end) == header:
            size = os.fstat(self._journal.fileno()).st_size
            while end + _RECORD.size <= size:
                self._journal.seek(end)
                *place, length, check = _RECORD.unpack(self._journal.read(_RECORD.size))
                packed = self._journal.read(length) if end + _RECORD.size + length <= size else b""
                if len(packed) != length or zlib.crc32(packed) != check:
                    break
                row, column, height, width = place
                self._offsets[row, column, height, width] = end
                self.done.add((row, column))
                end += _RECORD.size + length
            self._journal.truncate(end)
            return
        try:
            self._journal.seek(0)
            self._journal.truncate()
            self._journal.write(header)
            self._journal.flush()
        except OSError as error:
            raise _not_written(self.path, error) from error

    def _window(self, place: tuple[int, int, int, int]) -> NDArray[np.unsignedinteger]:
        """Bands (1 or 2, h, w) of a window in the journal."""
        self._journal.seek(self._offsets[place])
        *_, length, _ = _RECORD.unpack(self._journal.read(_RECORD.size))
        pixels = np.frombuffer(zlib.decompress(self._journal.read(length)), dtype=self._dtype)
        return pixels.reshape(-1, *place[2:])

    def _drop(self) -> None:
        try:
            self._journal_path.unlink(missing_ok=True)
        finally:
            self._journal.close()

    def _finish(self) -> None:
        """Write the GeoTIFF from the journal, read it back, and put it in its place."""
        missing = self.grid.height * self.grid.width - sum(h * w for _, _, h, w in self._offsets)
        if missing:
            raise ValueError(f"the windows leave {missing} pixels of the map out; write every pixel once")
        self._check_free()
        try:
            with ExitStack() as stack:
                draft = stack.enter_context(replacing(self.path))
                style, names = (stack.enter_context(replacing(path)) for path in self._beside)
                style.write_text(self.legend.qml(), encoding="utf-8")
                names.write_text(self.legend.category_names(), encoding="utf-8")
                self._write_tiff(draft)
                for path in (draft, style, names):
                    to_disk(path)
                self._overviews.unlink(missing_ok=True)
        except (OSError, RasterioError) as error:
            raise _not_written(self.path, error) from error

    def _write_tiff(self, draft: Path) -> None:
        checks = []
        with rasterio.Env(GDAL_CACHEMAX=CACHE, GDAL_PAM_ENABLED=False):
            with rasterio.open(draft, "w", **self._profile()) as file:
                file.write_colormap(1, self.legend.colormap())
                file.update_tags(1, **self.legend.tags())
                file.set_band_description(1, "class")
                if self._confidence:
                    file.set_band_description(2, "confidence")
                    file.set_band_unit(2, "percent")
                    file.colorinterp = [ColorInterp.palette, ColorInterp.undefined]
                for strip, pixels in self.strips():
                    file.write(pixels, window=strip)
                    checks.append(zlib.crc32(pixels.data))
            # GDAL does not always say when the last tiles did not fit onto the disk.
            with rasterio.open(draft) as file:
                for (strip, _), check in zip(self._strip_windows(), checks, strict=True):
                    if zlib.crc32(file.read(window=strip)) != check:
                        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))

    def _profile(self) -> dict[str, Any]:
        return {
            "driver": "GTiff",
            "height": self.grid.height,
            "width": self.grid.width,
            "count": 1 + self._confidence,
            "dtype": self._dtype,
            "crs": self.grid.crs,
            "transform": self.grid.transform,
            "nodata": 0,
            "tiled": True,
            "blockxsize": _TILE,
            "blockysize": _TILE,
            "compress": "deflate",
            "interleave": "band",
            "bigtiff": "if_safer",
        }

    def _strip_windows(self) -> Iterator[tuple[Window, list[tuple[int, int, int, int]]]]:
        """Rows of tiles, and the windows that meet each."""
        places = sorted(self._offsets)
        for top in range(0, self.grid.height, _TILE):
            height = min(_TILE, self.grid.height - top)
            meeting = [place for place in places if place[0] < top + height and place[0] + place[2] > top]
            yield Window(0, top, self.grid.width, height), meeting

    def strips(self) -> Iterator[tuple[Window, NDArray[np.unsignedinteger]]]:
        """Yield rows of tiles of what was written so far: the window, and its bands (1 or 2, h, w)."""
        for strip, places in self._strip_windows():
            top, height = int(strip.row_off), int(strip.height)
            pixels = np.zeros((1 + self._confidence, height, self.grid.width), dtype=self._dtype)
            written = np.zeros((height, self.grid.width), dtype=bool)
            for place in places:
                row, column, its_height, its_width = place
                first, last = max(row, top), min(row + its_height, top + height)
                inner = np.s_[first - top : last - top, column : column + its_width]
                if written[inner].any():
                    raise ValueError(
                        f"the window at row {row}, column {column} covers pixels of another one; write every "
                        "pixel once"
                    )
                written[inner] = True
                pixels[:, *inner] = self._window(place)[:, first - row : last - row]
            yield strip, pixels


def write_map(
    path: str | os.PathLike[str],
    classes: xr.Dataset | xr.DataArray,
    *,
    names: Legend | Sequence[str],
    colors: Sequence[str] | None = None,
    overwrite: bool = False,
) -> None:
    """Write a map that is in memory as a GeoTIFF, see :class:`MapWriter`.

    Parameters
    ----------
    path : path
        A ``.tif`` file.
    classes : xarray.Dataset or DataArray
        What :func:`classify` returned, or its ``classes`` alone.
    names : Legend or sequence of str
        Names of the classes 1, 2, ...
    colors : sequence of str, optional
        Such as "#0072B2", one for each class.
    overwrite : bool, default=False
        Replace a map of this name.
    """
    legend = names if isinstance(names, Legend) else Legend(names, colors)
    codes, confidence = classes, None
    if isinstance(classes, xr.Dataset):
        codes = classes["classes"]
        confidence = classes["confidence"].values if "confidence" in classes else None
    with MapWriter(
        path, like=codes, legend=legend, overwrite=overwrite, confidence=confidence is not None
    ) as writer:
        height, width = codes.shape
        writer.write(Window(0, 0, width, height), np.asarray(codes), confidence)


def fingerprint(stack: xr.DataArray, model: Any, *, smooth: float | None = None, window: int = 512) -> str:
    """Identify a classification, so that :class:`MapWriter` takes up an interrupted run of the same only.

    Parameters
    ----------
    stack, model, smooth, window
        As in :func:`classify`. Files of a stack count by their path, size and time of change.

    Returns
    -------
    str
    """
    stack = as_stack(stack)
    grid = grid_of(stack)
    about: list[Any] = [_VERSION, smooth, window, grid.shape, grid.transform[:6], str(stack.dtype)]
    about += [
        stack.attrs.get("nodatavals"),
        stack.rio.nodata,
        [str(name) for name in np.atleast_1d(stack["band"].values)],
    ]
    files = stack.attrs.get("files")
    if files and not stack.variable._in_memory:
        for path in files:
            about.append(os.path.abspath(path))
            if os.path.exists(path):
                found = os.stat(path)
                about += [found.st_size, found.st_mtime_ns]
    else:
        about.append(np.asarray(stack.values))
    return str(joblib.hash([about, model]))


class _Full(OSError):
    """The disk is full, or may be."""


def _not_written(path: Path, error: Exception) -> OSError:
    """One line that names the user's file."""
    number = getattr(error, "errno", None)
    text = " ".join(str(getattr(error, "strerror", None) or error).split())
    if number in _FULL or not isinstance(error, OSError) or number is None:
        return _Full(f"{path} could not be written ({text}); is the disk full? Nothing was left there")
    return OSError(number, text, str(path))
