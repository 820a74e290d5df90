"""HTML pages of reports, which need nothing beside themselves, and tables and heat maps of notebooks."""

from __future__ import annotations

import base64
import io
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from linkwise._arrays import Floats

# The ends and the middle of ColorBrewer's RdBu, which colour-blind readers can tell apart.
_APART, _NEUTRAL, _TOGETHER = (178, 24, 43), (247, 247, 247), (33, 102, 172)
_UNDEFINED = (224, 224, 224)
# Beyond this strength the cell is dark enough for white figures.
_DARK = 0.6

# Browsers refuse every request, whatever a page may come to hold.
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
_DPI = 110

# All rules are about the inside of one class, because a notebook shows the content among its own.
_STYLE = """
.linkwise{font:16px/1.5 system-ui,sans-serif;color:#1a1a1a;background:#fff;max-width:72rem;margin:0 auto}
.linkwise{padding:1.5rem}.linkwise p{max-width:46rem}.linkwise .wide{overflow-x:auto}
.linkwise h1{font-size:1.7rem;line-height:1.2;margin:.2em 0 .4em}
.linkwise h2{font-size:1.25rem;margin:2em 0 .4em}
.linkwise table{border-collapse:collapse;margin:.4rem 0 1rem;font-size:.94rem}
.linkwise caption{text-align:left;font-weight:600;padding:.3rem 0}
.linkwise .list th,.linkwise .list td{padding:.3rem .9rem .3rem 0;text-align:left;vertical-align:top}
.linkwise .list th,.linkwise .list td{border-bottom:1px solid #ddd}
.linkwise .list thead th{border-bottom:2px solid #888}
.linkwise .list .number{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.linkwise figure{margin:1rem 0}.linkwise figcaption{color:#555;font-size:.9rem;max-width:46rem}
.linkwise img,.linkwise svg{max-width:100%;height:auto}
.linkwise .maps{display:flex;flex-wrap:wrap;gap:2em}
.linkwise pre{background:#f3f4f6;padding:.7rem .9rem;overflow-x:auto;font-size:.85rem;line-height:1.4}
.linkwise .panels{display:flex;flex-wrap:wrap;gap:.5rem 1rem}
.linkwise .panels figure{flex:1 1 10rem;margin:.5rem 0;max-width:22rem}
.linkwise .panels figure:only-child{flex-basis:100%;max-width:36rem}
.linkwise .warning{border-left:4px solid #e69f00;background:#fdf6e3;padding:.4rem .8rem;margin:.5rem 0}
.linkwise .kind{font-weight:600}.linkwise .far{color:#b2182b;font-weight:600}.linkwise .quiet{color:#666}
.linkwise footer{border-top:1px solid #ddd;padding-top:.6rem;color:#666;font-size:.85rem}
@media(max-width:30rem){.linkwise{padding:1rem}.linkwise table{font-size:.8rem}
.linkwise .list th,.linkwise .list td{padding-right:.6rem}.linkwise .list th.number{white-space:normal}
.linkwise .panels figure{max-width:11rem}}
@media(prefers-color-scheme:dark){.linkwise-page{background:#16191e}.linkwise-page a{color:#7cc0f5}
.linkwise-page .linkwise{color:#e4e6e9;background:#16191e}
.linkwise-page img,.linkwise-page svg{background:#fff}.linkwise-page pre{background:#22272e}
.linkwise-page .list td,.linkwise-page .list tbody th,.linkwise-page footer{border-color:#3a3f47}
.linkwise-page figcaption,.linkwise-page footer,.linkwise-page .quiet{color:#a9aeb6}
.linkwise-page .warning{background:#3a3014}.linkwise-page .far{color:#ff9d85}}
"""


class Markup(str):
    """Text that is HTML already; all other text is escaped."""


def _markup(text: str) -> str:
    return text if isinstance(text, Markup) else escape(text)


@dataclass(frozen=True)
class TextTable:
    """A table of text; a list of facts has empty heads. Columns after ``text_columns`` hold figures."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    text_columns: int = 1


def html_table(table: TextTable) -> str:
    """Write a table as HTML, its figures at the right of their cells."""

    def line(cells: Sequence[str], tag: str) -> str:
        return "".join(
            f"<{tag}{'' if place < table.text_columns else ' class=number'}>{_markup(cell)}</{tag}>"
            for place, cell in enumerate(cells)
        )

    caption = f"<caption>{escape(table.title)}</caption>" if table.title else ""
    head = f"<thead><tr>{line(table.columns, 'th')}</tr></thead>" if any(table.columns) else ""
    rows = "".join(f"<tr>{line(row, 'td')}</tr>" for row in table.rows)
    return f"<table class='list'>{caption}{head}<tbody>{rows}</tbody></table>"


class Page:
    """A page that is filled from top to bottom; it begins with a title, notes and warnings."""

    def __init__(self, title: str, *, notes: Sequence[str] = (), warnings: Sequence[str] = ()) -> None:
        self._title = title
        self._parts = [f"<h1>{escape(title)}</h1>"]
        for note in notes:
            self.text(note)
        for warning in warnings:
            self.text(warning, "warning")

    def add(self, content: str) -> None:
        """Add HTML as it is."""
        self._parts.append(content)

    def heading(self, text: str) -> None:
        """Begin a section."""
        self.add(f"<h2 id='{_anchor(text)}'>{escape(text)}</h2>")

    def contents(self, headings: Sequence[str]) -> None:
        """List sections of the page, to jump to."""
        lines = [f"<li><a href='#{_anchor(text)}'>{escape(text)}</a></li>" for text in headings]
        self.add(f"<nav><ul>{''.join(lines)}</ul></nav>")

    def code(self, text: str) -> None:
        """Add lines of code or commands, which scroll where they are wider than the page."""
        self.add(f"<pre>{escape(text)}</pre>")

    def text(self, text: str, kind: str = "") -> None:
        """Add a paragraph; ``kind`` is a class of the style sheet."""
        self.add(f"<p class='{kind}'>{_markup(text)}</p>" if kind else f"<p>{_markup(text)}</p>")

    def table(self, table: TextTable) -> None:
        """Add a table, which scrolls where it is wider than the page."""
        self.add(f"<div class='wide'>{html_table(table)}</div>")

    def picture(self, png: bytes, description: str, caption: str = "") -> None:
        """Add a picture inside the page; ``description`` is for readers who do not see it."""
        self.add(_figure(png, description, caption))

    def pictures(self, pictures: Sequence[tuple[bytes, str, str]]) -> None:
        """Add pictures, each with description and caption, beside each other as far as the page is wide."""
        figures = "".join(_figure(*picture) for picture in pictures)
        self.add(f"<div class='panels'>{figures}</div>")

    def body(self) -> str:
        """Give the content with its style, for a notebook."""
        return f"<style>{_STYLE}</style><div class='linkwise'>" + "\n".join(self._parts) + "</div>"

    def html(self) -> str:
        """Give the whole page."""
        from linkwise import __version__

        footer = f"<div class='linkwise'><footer>Made by linkwise {escape(__version__)}.</footer></div>"
        return (
            "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
            "<meta name='viewport' content='width=device-width, initial-scale=1'>"
            f"<title>{escape(self._title)}</title></head>\n"
            f"<body class='linkwise-page'>{self.body()}{footer}</body></html>\n"
        )


def _anchor(heading: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", heading.lower()).strip("-")


def _figure(png: bytes, description: str, caption: str) -> str:
    image = base64.b64encode(png).decode("ascii")
    below = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
    return f"<figure><img alt='{escape(description)}' src='data:image/png;base64,{image}'>{below}</figure>"


def heat_colours(value: float) -> tuple[str, str]:
    """Background and text colour (CSS) of an entry: -1 red (apart), 0 white, +1 blue (together), NaN grey."""
    if math.isnan(value):
        red, green, blue = _UNDEFINED
        strength = 0.0
    else:
        strength = min(abs(value), 1.0)
        end = _TOGETHER if value > 0 else _APART
        red, green, blue = (
            round(low + strength * (high - low)) for low, high in zip(_NEUTRAL, end, strict=True)
        )
    return f"#{red:02x}{green:02x}{blue:02x}", "#ffffff" if strength > _DARK else "#1a1a1a"


def heat_table(values: Floats, names: Sequence[Any], caption: str) -> str:
    """Write a matrix (L, L) as an HTML table with coloured cells; names are escaped, styles are inline."""
    cell = "padding:0.25em 0.5em;text-align:right"
    heads = "".join(f"<th style='{cell}' scope='col'>{escape(str(name))}</th>" for name in names)
    rows = []
    for name, row in zip(names, values.tolist(), strict=True):
        cells = []
        for value in row:
            background, text = heat_colours(value)
            cells.append(f"<td style='{cell};background:{background};color:{text}'>{signed(value)}</td>")
        rows.append(f"<tr><th style='{cell}' scope='row'>{escape(str(name))}</th>{''.join(cells)}</tr>")
    return (
        f"<table class='heat' style='border-collapse:collapse'><caption>{escape(caption)}</caption>"
        f"<tr><th></th>{heads}</tr>{''.join(rows)}</table>"
    )


def signed(value: float) -> str:
    """Write at most two digits after the point, a proper minus sign and no negative zero; NaN is a dash."""
    if math.isnan(value):
        return "–"
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "0") else text.replace("-", "−")


def new_figure(n_columns: int = 1, size: tuple[float, float] = (7.2, 4.8)) -> tuple[Any, Any]:
    """Make a matplotlib figure without a window, and its axes side by side, each of this size in inches."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(n_columns * size[0], size[1]), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots(1, n_columns)


def png_of(figure: Any) -> bytes:
    """Draw a figure as the content of a PNG file, without date or version in it."""
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=_DPI, metadata={"Software": None})
    return stream.getvalue()


def svg_of(figure: Any) -> str:
    """Draw a figure as an SVG element inside a page; nothing is clipped, so that axes must hold all drawn."""
    from matplotlib import rc_context

    stream = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "linkwise"}):
        figure.savefig(stream, format="svg", metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
    text = stream.getvalue()
    text = re.sub(r"<style.*?</style>|<metadata.*?</metadata>", "", text[text.index("<svg") :], flags=re.S)
    return re.sub(r' (xmlns|xmlns:xlink|clip-path)="[^"]*"', "", text)
