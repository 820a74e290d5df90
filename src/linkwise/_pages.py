"""How every HTML page of linkwise begins."""

from __future__ import annotations

from html import escape

__all__ = ["page_head"]

# Browsers refuse every request, whatever a page may come to hold: it needs nothing beside itself.
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


def page_head(title: str) -> str:
    """The page up to its title; ``</head>`` is left to the caller.

    Parameters
    ----------
    title : str

    Returns
    -------
    str
    """
    return (
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>{escape(title)}</title>"
    )
