"""Sphinx configuration. The pages need no network, neither to build nor to read."""

from __future__ import annotations

import os
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from typer.main import get_command
from typer.testing import CliRunner

from linkwise import __version__
from linkwise.cli.app import app as command_line

project = "linkwise"
author = "The linkwise developers"
project_copyright = author
release = version = __version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "gallery/**/*.ipynb"]
templates_path = ["_templates"]

myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
# The column at the right has the names of methods, not "PPC.fit", which would not fit into it.
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False
# Doctest prompts stay off the clipboard, so a block can be pasted into an interpreter.
trim_doctest_flags = True

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "subsection_order": [f"../examples/{folder}" for folder in ("real_data", "links", "methods", "figures")],
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "write_computation_times": False,
    "show_signature": False,
    "capture_repr": (),
}

html_theme = "pydata_sphinx_theme"
html_title = "linkwise"
html_static_path = ["_static"]
html_css_files = ["linkwise.css"]
html_copy_source = False
html_show_sourcelink = False
html_math_renderer = "mathml"
# The first page has cards instead of a left column.
html_sidebars = {"index": []}
html_theme_options = {
    "navbar_align": "left",
    "navbar_persistent": ["search-button"],
    "header_links_before_dropdown": 6,
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
}


def write_mathml(translator: Any, node: Any) -> None:
    """A formula as MathML, which browsers draw by themselves: no script is loaded from elsewhere."""
    block = isinstance(node, nodes.math_block)
    formula = tex2mathml(node.astext(), as_block=block)
    if block:
        large = formula.replace("<math ", '<math displaystyle="true" ', 1)
        formula = f'<div class="formula">{large}</div>'
    translator.body.append(formula)
    raise nodes.SkipNode


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


def add_help_texts(app: Any, docname: str, source: list[str]) -> None:
    """Put the help of every command on the page of commands."""
    if docname != "reference/commands":
        return
    os.environ["COLUMNS"] = "90"
    run = CliRunner().invoke
    names = list(get_command(command_line).commands)
    for words in ([], *([name] for name in names)):
        text = run(command_line, [*words, "--help"], prog_name="linkwise").output
        source[0] += f"\n## {' '.join(['linkwise', *words])}\n\n```text\n{text.strip()}\n```\n"


def setup(app: Any) -> None:
    """Connect the hooks above."""
    app.add_html_math_renderer("mathml", (write_mathml, None), (write_mathml, None))
    app.connect("autodoc-skip-member", skip_foreign_members)
    app.connect("source-read", drop_empty_last_lines)
    app.connect("source-read", add_help_texts)
