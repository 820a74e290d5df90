"""Names and colours of the classes of a map, and the files that carry them to a GIS."""

from __future__ import annotations

import colorsys
from collections.abc import Iterable, Sequence
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np


class Legend:
    """Names and colours of the classes 1, 2, ... of a map; 0 is no data.

    Parameters
    ----------
    names : iterable of str
        One for each class; all must differ.
    colors : iterable of str, optional
        Such as "#0072B2". By default those of Okabe and Ito and further ones that colour-blind eyes can tell
        apart, as far as 24 classes go; more get darker and paler shades of these.

    Attributes
    ----------
    names, colors : list of str

    Examples
    --------
    >>> from linkwise.raster import Legend
    >>> legend = Legend(["forest", "pasture"])
    >>> legend.colors
    ['#0072B2', '#E69F00']
    >>> legend.colormap()[1]
    (0, 114, 178, 255)
    """

    def __init__(self, names: Iterable[Any], colors: Iterable[str] | None = None) -> None:
        self.names = [str(name) for name in names]
        if not self.names:
            raise ValueError("a legend needs at least one class; pass their names")
        if len(set(self.names)) < len(self.names):
            twice = next(name for place, name in enumerate(self.names) if name in self.names[:place])
            raise ValueError(f"two classes are named {twice!r}; give them different names")
        self.colors = _palette(len(self.names)) if colors is None else [str(color) for color in colors]
        if len(self.colors) != len(self.names):
            raise ValueError(
                f"there are {len(self.names)} classes and {len(self.colors)} colours; pass one for each class"
            )
        for name, color in zip(self.names, self.colors, strict=True):
            if _channels(color) is None:
                raise ValueError(f"the colour of {name!r} is {color!r}; write it as '#RRGGBB'")

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        return f"Legend({dict(zip(self.names, self.colors, strict=True))})"

    def colormap(self) -> dict[int, tuple[int, int, int, int]]:
        """Return red, green, blue and opacity of each code, as rasterio takes them; 0 is transparent."""
        table = {0: (0, 0, 0, 0)}
        for code, color in enumerate(self.colors, start=1):
            channels = _channels(color)
            assert channels is not None
            table[code] = (*channels, 255)
        return table

    def tags(self) -> dict[str, str]:
        """Return the names for the metadata of the class band: ``class_1`` and so on."""
        return {f"class_{code}": name for code, name in enumerate(self.names, start=1)}

    def qml(self) -> str:
        """Return a style file of QGIS for the class band."""
        entries = "\n".join(
            f"        <paletteEntry value={quoteattr(str(code))} label={quoteattr(name)} "
            f'color={quoteattr(color)} alpha="255"/>'
            for code, (name, color) in enumerate(zip(self.names, self.colors, strict=True), start=1)
        )
        return (
            "<!DOCTYPE qgis PUBLIC 'http://mrcc.com/qgis.dtd' 'SYSTEM'>\n"
            '<qgis styleCategories="Symbology" version="3.22">\n'
            "  <pipe>\n"
            '    <rasterrenderer type="paletted" band="1" opacity="1" alphaBand="-1" nodataColor="">\n'
            "      <rasterTransparency/>\n"
            f"      <colorPalette>\n{entries}\n      </colorPalette>\n"
            "    </rasterrenderer>\n"
            "  </pipe>\n"
            "</qgis>\n"
        )

    def category_names(self) -> str:
        """Return the names as GDAL keeps them beside a GeoTIFF (``.aux.xml``)."""
        from xml.sax.saxutils import escape

        listed = "".join(f"      <Category>{escape(name)}</Category>\n" for name in ["no data", *self.names])
        return (
            "<PAMDataset>\n"
            '  <PAMRasterBand band="1">\n'
            f"    <CategoryNames>\n{listed}    </CategoryNames>\n"
            "  </PAMRasterBand>\n"
            "</PAMDataset>\n"
        )


def names_in(tags: dict[str, str]) -> dict[int, str]:
    """The names that ``Legend.tags`` wrote, by code."""
    found = {key[6:]: name for key, name in tags.items() if key.startswith("class_")}
    return {int(code): name for code, name in found.items() if code.isdigit()}


def _palette(n_colors: int) -> list[str]:
    from linkwise.displays._drawing import COLOURS

    shades: list[tuple[str, ...]] = [COLOURS]
    for lightness in (0.35, 0.8, 0.2, 0.65, 0.5):
        shades.append(tuple(_with_lightness(color, lightness) for color in COLOURS))
    chosen: list[str] = []
    for color in (color for shade in shades for color in shade):
        if color not in chosen:
            chosen.append(color)
    while len(chosen) < n_colors:  # hundreds of classes: no eye tells them apart
        number = len(chosen)
        red, green, blue = colorsys.hls_to_rgb(
            (0.618034 * number) % 1.0, 0.3 + 0.4 * ((number * 7) % 5) / 4, 0.6
        )
        color = _hex((red, green, blue))
        chosen.append(color if color not in chosen else f"#{number:06X}")
    return chosen[:n_colors]


def _with_lightness(color: str, lightness: float) -> str:
    channels = _channels(color)
    assert channels is not None
    hue, _, saturation = colorsys.rgb_to_hls(*(channel / 255 for channel in channels))
    return _hex(colorsys.hls_to_rgb(hue, lightness, saturation))


def _hex(channels: Sequence[float]) -> str:
    return "#" + "".join(f"{round(255 * channel):02X}" for channel in channels)


def _channels(color: str) -> tuple[int, int, int] | None:
    """Red, green and blue of "#RRGGBB", None if it is not that."""
    digits = color.removeprefix("#")
    if len(digits) != 6 or not color.startswith("#"):
        return None
    try:
        value = int(digits, 16)
    except ValueError:
        return None
    red, green, blue = (int(part) for part in np.array([value >> 16, value >> 8, value]) & 255)
    return red, green, blue
