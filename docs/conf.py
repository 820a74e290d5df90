"""Sphinx configuration. The pages need no network, neither to build nor to read."""

from __future__ import annotations

from typing import Any

from linkwise import __version__

project = "linkwise"
author = "The linkwise developers"
project_copyright = author
release = version = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "numpydoc"]
exclude_patterns = ["_build"]
templates_path = ["_templates"]

myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
# Doctest prompts stay off the clipboard, so a block can be pasted into an interpreter.
trim_doctest_flags = True

html_theme = "pydata_sphinx_theme"
html_title = "linkwise"
html_static_path = ["_static"]
html_css_files = ["linkwise.css"]
html_copy_source = False
html_show_sourcelink = False
PAGES = (
    "add_an_engine", "ask", "classes", "command_line", "constraints", "contributing", "errata", "gallery",
    "howto_big_data", "howto_images", "howto_noisy_annotators", "howto_pipelines", "howto_text",
    "howto_time_series", "index", "inference", "kmeans", "leaderboard", "mixtures", "model", "results",
    "spectral", "tutorial", "which_method",
)  # fmt: skip
# Only the reference has pages below it; elsewhere the left column would be empty.
html_sidebars = {page: [] for page in PAGES}
html_theme_options = {
    "navbar_align": "left",
    "navbar_persistent": ["search-button"],
    "header_links_before_dropdown": 6,
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
}


def skip_foreign_members(
    app: Any, what: str, name: str, member: object, skip: bool, options: Any
) -> bool | None:
    """Leave out the fields of named tuples ("Alias for field number 0") and what scikit-learn documents."""
    routing = name.startswith("set_") and name.endswith("_request")
    foreign = getattr(member, "__module__", None) or ""
    if type(member).__name__ == "_tuplegetter" or routing or foreign.startswith("sklearn."):
        return True
    return None


def drop_empty_last_lines(app: Any, docname: str, source: list[str]) -> None:
    """Doctest needs an empty line before a closing fence; the reader does not."""
    source[0] = source[0].replace("\n\n```\n", "\n```\n")


def setup(app: Any) -> None:
    """Connect the hooks above."""
    app.connect("autodoc-skip-member", skip_foreign_members)
    app.connect("source-read", drop_empty_last_lines)
