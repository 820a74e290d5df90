"""Reports as one HTML page that needs nothing beside itself."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from html import escape

from linkwise._pages import page_head
from linkwise.cli.output import TextTable

__all__ = ["Report"]

_STYLE = """
body{font:16px/1.5 system-ui,sans-serif;color:#1a1a1a;background:#fff}
body{max-width:64rem;margin:0 auto;padding:1.5rem}
h1{font-size:1.7rem;line-height:1.2;margin:.2em 0 .4em}h2{font-size:1.25rem;margin:2.2em 0 .4em}
p{max-width:46rem}.wide{overflow-x:auto}
table{border-collapse:collapse;margin:.6rem 0 1rem;font-size:.94rem}
caption{text-align:left;font-weight:600;padding:.3rem 0}
th,td{padding:.3rem .9rem .3rem 0;border-bottom:1px solid #ddd;text-align:left;vertical-align:top}
th{border-bottom:2px solid #888}
.number{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
figure{margin:1rem 0}figcaption{color:#555;font-size:.9rem;max-width:46rem}
img{max-width:100%;height:auto}
.warning{border-left:4px solid #e69f00;background:#fdf6e3;padding:.4rem .8rem;margin:.5rem 0}
footer{margin-top:3rem;border-top:1px solid #ddd;padding-top:.6rem;color:#666;font-size:.85rem}
"""


class Report:
    """A page, made from top to bottom.

    Parameters
    ----------
    title : str

    Examples
    --------
    >>> from linkwise.cli.output import TextTable
    >>> from linkwise.cli.report import Report
    >>> report = Report("Two clusters")
    >>> report.table(TextTable("Sizes", ["cluster", "rows"], [["0", "7"]]))
    >>> page = report.html()
    >>> "<caption>Sizes</caption>" in page, "http:" in page
    (True, False)
    """

    def __init__(self, title: str) -> None:
        self._title = title
        self._parts: list[str] = []

    def heading(self, text: str) -> None:
        """Begin a section."""
        self._parts.append(f"<h2>{escape(text)}</h2>")

    def text(self, text: str) -> None:
        """Add a paragraph."""
        self._parts.append(f"<p>{escape(text)}</p>")

    def warnings(self, texts: Sequence[str]) -> None:
        """Add what the user was warned of."""
        self._parts += [f"<p class='warning'>{escape(text)}</p>" for text in texts]

    def table(self, table: TextTable) -> None:
        """Add a table."""

        def line(cells: Sequence[str], tag: str) -> str:
            return "".join(
                f"<{tag}{'' if place < table.text_columns else ' class=number'}>{escape(cell)}</{tag}>"
                for place, cell in enumerate(cells)
            )

        head = f"<thead><tr>{line(table.columns, 'th')}</tr></thead>" if any(table.columns) else ""
        rows = "".join(f"<tr>{line(row, 'td')}</tr>" for row in table.rows)
        caption = f"<caption>{escape(table.title)}</caption>"
        self._parts.append(f"<div class='wide'><table>{caption}{head}<tbody>{rows}</tbody></table></div>")

    def picture(self, png: bytes, description: str, caption: str = "") -> None:
        """Add a picture, inside the page.

        Parameters
        ----------
        png : bytes
        description : str
            For readers who do not see it.
        caption : str
        """
        image = base64.b64encode(png).decode("ascii")
        below = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
        self._parts.append(
            f"<figure><img alt='{escape(description)}' src='data:image/png;base64,{image}'>{below}</figure>"
        )

    def html(self) -> str:
        """The page."""
        from linkwise import __version__

        return (
            f"{page_head(self._title)}<style>{_STYLE}</style></head>\n<body><h1>{escape(self._title)}</h1>\n"
            + "\n".join(self._parts)
            + f"\n<footer>Made by linkwise {escape(__version__)}.</footer></body></html>\n"
        )
