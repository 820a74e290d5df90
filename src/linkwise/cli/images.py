"""Images as rows of numbers, links between pixels, and label images."""

from __future__ import annotations

import io
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise._arrays import Bools, Floats, Ints
from linkwise.cli.errors import CommandError
from linkwise.cli.tables import LinkList, build_links, read_link_list
from linkwise.constraints.cells import column_names
from linkwise.constraints.io import Columns, link_sign, link_strength, records, whole_number

if TYPE_CHECKING:
    from linkwise.constraints import Constraints

#: A byte for each pixel, one value of which means transparent.
MOST_LABELS = 255
_PIXEL_COLUMNS = ("y1", "x1", "y2", "x2")
# Principal components of the pixels of a block, as in Lu & Leen 2007, experiment 4.
_BLOCK_COMPONENTS = 5
# Names of files that may be rasters of the Earth, and the tag of a TIFF that says it is one.
_RASTERS = (".tif", ".tiff", ".jp2", ".img", ".vrt")
_GEO_TAG = 34735
# Bands of a raster are scaled so that these percentiles become 0 and 1: a few odd pixels do not count.
_DARK, _BRIGHT = 2.0, 98.0


@dataclass(frozen=True)
class Picture:
    """An image as samples: one for each cell that is not fully transparent.

    ``pixels`` (height, width, channels), 0 to 1 for 8-bit images; ``mask`` (rows, columns) of the cells that
    are samples; ``block`` pixels along a cell; ``georeference``: CRS and transform of a raster.
    """

    pixels: Floats
    mask: Bools
    block: int = 1
    georeference: tuple[Any, Any] | None = None

    @property
    def n_samples(self) -> int:
        """Number of cells to label."""
        return int(self.mask.sum())

    def colours(self) -> Floats:
        """Features of the cells, (n, d): colours of pixels, or principal components of blocks."""
        if self.block == 1 and self.mask.all():
            return self.pixels.reshape(self.n_samples, -1)
        if self.block == 1:
            return self.pixels[self.mask]
        from sklearn.decomposition import PCA

        rows, columns = self.mask.shape
        side, channels = self.block, self.pixels.shape[2]
        cells = self.pixels.reshape(rows, side, columns, side, channels).swapaxes(1, 2)
        table = cells.reshape(rows, columns, side * side * channels)[self.mask]
        n_components = min(_BLOCK_COMPONENTS, *table.shape)
        return np.asarray(PCA(n_components, random_state=0).fit_transform(table))

    def shown(self) -> Floats:
        """Give grey, or red, green and blue, to look at: of many bands the first, middle and last."""
        n_bands = self.pixels.shape[2]
        if n_bands < 3:
            return self.pixels[:, :, 0]
        return np.clip(self.pixels[:, :, [0, n_bands // 2, n_bands - 1]], 0.0, 1.0)

    def places(self) -> Floats:
        """Row and column of the cells, (n, 2)."""
        return np.argwhere(self.mask).astype(np.float64)

    def draw_links(self, ax: Any, links: Constraints) -> None:
        """Draw links between cells over the image, cannot-links dashed."""
        from linkwise.displays._drawing import COLOURS

        centres = (self.places()[links.pairs] + 0.5) * self.block - 0.5
        for ends, weight in zip(centres, links.weights, strict=True):
            colour, style = (COLOURS[1], "-") if weight > 0 else (COLOURS[6], "--")
            ax.plot(*ends.T[::-1], color=colour, linestyle=style, marker="o", markersize=2.5, linewidth=1.2)

    def paint(self, labels: Ints) -> Ints:
        """Labels of all pixels, (height, width); -1 where the image is transparent."""
        cells = np.full(self.mask.shape, -1, dtype=np.int64)
        cells[self.mask] = labels
        return cells.repeat(self.block, axis=0).repeat(self.block, axis=1)


def read_picture(path: str | Path, block: int = 1) -> Picture:
    """Read an image or a raster in blocks of this side; pixels that fill no block are left out."""
    raster = _read_raster(Path(path))
    if raster is not None:
        return _in_blocks(path, *raster, block)
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError:
        raise CommandError('reading images needs pillow; pip install "linkwise[cli]"') from None
    try:
        with Image.open(path) as image:
            image.load()
            if _GEO_TAG in getattr(image, "tag_v2", ()):
                raise CommandError(
                    f'{path} is a GeoTIFF, whose georeference needs rasterio; pip install "linkwise[raster]"'
                )
            grey = image.mode in ("1", "L", "I", "F") or image.mode.startswith("I;16")
            if grey and not (image.mode in ("1", "L") and "transparency" in image.info):
                table = np.asarray(image, dtype=np.float64)[:, :, np.newaxis]
                largest = (
                    65535.0 if image.mode.startswith("I") else 1.0 if image.mode in ("1", "F") else 255.0
                )
                values, opaque = table / largest, np.full_like(table[:, :, 0], True, dtype=bool)
            else:
                colours = np.asarray(image.convert("RGBA"))
                opaque = colours[:, :, 3] > 0
                grey = bool((colours[:, :, :3] == colours[:, :, :1]).all())  # written as colour
                values = colours[:, :, : 1 if grey else 3] / 255.0
    except UnidentifiedImageError:
        raise CommandError(
            f"{path} is no image that can be read; pass PNG, JPEG, TIFF and the like, or, with "
            'pip install "linkwise[raster]", a raster that GDAL reads'
        ) from None
    except (SyntaxError, ValueError, EOFError, OSError, Image.DecompressionBombError) as error:
        if isinstance(error, OSError) and error.filename is not None:
            raise
        raise CommandError(
            f"{path} cannot be read as an image ({error}); save it again, as PNG for example"
        ) from None
    return _in_blocks(path, values, opaque, None, block)


def _read_raster(path: Path) -> tuple[Floats, Bools, tuple[Any, Any] | None] | None:
    """Read bands (height, width, bands), a mask of data, and the georeference; None for plain images."""
    if path.suffix.lower() not in _RASTERS or not path.is_file():
        return None
    try:
        import rasterio
        from rasterio.enums import ColorInterp
        from rasterio.errors import RasterioError
    except ImportError:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", rasterio.errors.NotGeoreferencedWarning)
            with rasterio.open(path) as file:
                if file.crs is None and file.count in (1, 3, 4) and path.suffix.lower() in (".tif", ".tiff"):
                    return None
                if any(kind.startswith("complex") for kind in file.dtypes):
                    raise CommandError(f"{path} holds complex numbers; pass their amplitude")
                kinds = zip(file.indexes, file.colorinterp, strict=True)
                bands = [band for band, kind in kinds if kind is not ColorInterp.alpha]
                values = np.moveaxis(file.read(bands).astype(np.float64), 0, 2)
                valid = (file.read_masks(bands) > 0).all(axis=0) & np.isfinite(values).all(axis=2)
                georeference = None if file.crs is None else (file.crs, file.transform)
                eight_bits = all(file.dtypes[band - 1] == "uint8" for band in bands)
    except RasterioError as error:
        reason = " ".join(str(error.__cause__ or error).split())
        raise CommandError(f"{path} cannot be read as a raster ({reason}); save it again") from None
    if not valid.any():
        raise CommandError(f"{path} has no pixel with data in every band; check its nodata value")
    if eight_bits:
        values /= 255.0
    else:
        dark, bright = np.percentile(values[valid], (_DARK, _BRIGHT), axis=0)
        values = (values - dark) / np.where(bright > dark, bright - dark, 1.0)
    values[~valid] = 0.0
    return values, valid, georeference


def _in_blocks(
    path: str | Path, values: Floats, opaque: Bools, georeference: tuple[Any, Any] | None, block: int
) -> Picture:
    """Make the picture, once its numbers are known to be finite and enough for the blocks."""
    if not np.isfinite(values).all():
        y, x = np.argwhere(~np.isfinite(values))[0][:2].tolist()
        raise CommandError(f"{path}: pixel ({y}, {x}) is no finite number; correct it")
    height, width = opaque.shape[0] // block * block, opaque.shape[1] // block * block
    if not height or not width:
        raise CommandError(
            f"{path} has {opaque.shape[0]} x {opaque.shape[1]} pixels: too few for blocks of "
            f"{block}; use a smaller --block"
        )
    values, opaque = values[:height, :width], opaque[:height, :width]
    mask = np.asarray(opaque.reshape(height // block, block, width // block, block).all(axis=(1, 3)))
    if mask.sum() < 2:
        raise CommandError(
            f"{path} has fewer than two pixels that are not transparent; remove its alpha channel"
        )
    return Picture(values, mask, block, georeference)


def pixel_links(path: str | Path | None, picture: Picture, certainty: float | None) -> Constraints:
    """Read links between pixels: ``y1, x1, y2, x2, kind``, or ``i, j, kind`` with pixels in reading order."""
    from linkwise.constraints import Constraints

    if path is None:
        return Constraints(picture.n_samples)
    height, width = (side * picture.block for side in picture.mask.shape)
    places = _read_places(Path(path), certainty)
    if places is None:
        lines = read_link_list(path, height * width, certainty=certainty)
        pixels = np.stack(np.divmod(lines.pairs, width), axis=-1)
        weights = lines.weights
    else:
        pixels, weights = places
    outside = ((pixels < 0) | (pixels >= (height, width))).any(axis=(1, 2))
    if outside.any():
        y1, x1, y2, x2 = pixels[np.argmax(outside)].ravel().tolist()
        raise CommandError(
            f"{path}: the link from ({y1}, {x1}) to ({y2}, {x2}) leaves the image of {height} x {width} "
            "pixels; correct it"
        )
    cells = pixels // picture.block
    number = np.full(picture.mask.shape, -1, dtype=np.int64)
    number[picture.mask] = np.arange(picture.n_samples)
    ends = number[cells[:, :, 0], cells[:, :, 1]]
    bad = (ends < 0).any(axis=1) | (ends[:, 0] == ends[:, 1])
    if bad.any():
        y1, x1, y2, x2 = pixels[np.argmax(bad)].ravel().tolist()
        reason = "lies in one block" if (ends[np.argmax(bad)] >= 0).all() else "has a transparent end"
        raise CommandError(f"{path}: the link from ({y1}, {x1}) to ({y2}, {x2}) {reason}; remove it")
    return build_links(LinkList(np.sort(ends, axis=1), weights), picture.n_samples)


def _read_places(path: Path, certainty: float | None) -> tuple[Ints, Floats] | None:
    """Read pixels (m, 2, 2) and signed weights of a file by coordinates; None if it has not these columns."""
    ends: list[int] = []
    weights: list[float] = []
    try:
        if not set(_PIXEL_COLUMNS) <= set(column_names(path)):
            return None
        for place, cells in records(path, Columns(ends=_PIXEL_COLUMNS)):
            try:
                pixel = [_coordinate(name, cells[name]) for name in _PIXEL_COLUMNS]
                weights.append(link_sign(cells) * link_strength(cells, certainty))
            except ValueError as error:
                raise ValueError(f"{path}, {place}: {error}") from None
            ends += pixel
    except ValueError as error:
        raise CommandError(str(error)) from None
    if not ends:
        raise CommandError(f"{path} has no links; write some into it, or leave it out")
    return np.array(ends, dtype=np.int64).reshape(-1, 2, 2), np.array(weights)


def _coordinate(name: str, cell: str) -> int:
    """Read a coordinate; whether it lies inside the image is checked later."""
    number = whole_number(cell)
    if number is None or abs(number) >= 2**31:
        raise ValueError(
            f"{name} is {cell.strip()!r}: y1, x1, y2 and x2 must be whole numbers; count pixels from 0"
            " and correct it"
        )
    return number


def label_png(labels: Ints) -> bytes:
    """Make a PNG whose pixel values are the labels 0 to 254, (height, width); -1 becomes transparent."""
    from PIL import Image

    from linkwise.displays._drawing import COLOURS

    if labels.max() >= MOST_LABELS:
        raise CommandError(
            f"a label image holds up to {MOST_LABELS} labels, not {int(labels.max()) + 1}; ask for fewer"
        )
    image: Any = Image.fromarray(np.where(labels < 0, MOST_LABELS, labels).astype(np.uint8), mode=None)
    palette = [int(colour[place : place + 2], 16) for colour in COLOURS for place in (1, 3, 5)]
    repeated = (palette * (1 + 3 * 256 // len(palette)))[: 3 * 256]
    image = image.convert("P") if image.mode != "P" else image
    image.putpalette(repeated)
    stream = io.BytesIO()
    image.save(stream, format="PNG", transparency=MOST_LABELS if (labels < 0).any() else None)
    return stream.getvalue()
