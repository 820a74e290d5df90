"""Every example runs and leaves a picture with something in it."""

from __future__ import annotations

import ast
import warnings
from inspect import signature
from pathlib import Path

import matplotlib
import pytest

import linkwise
from linkwise._exports import ESTIMATORS
from tests.repeats import LONG

EXAMPLES = Path(__file__).parents[1] / "examples"
SCRIPTS = sorted(EXAMPLES.rglob("plot_*.py"))


def test_there_are_examples():
    assert len(SCRIPTS) >= 15


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_example_explains_itself(script):
    docstring = ast.get_docstring(ast.parse(script.read_text(encoding="utf-8")))
    title, underline, empty, *text = docstring.splitlines()
    assert underline == "=" * len(title)
    assert not empty
    assert len(" ".join(text).split()) > 15


def test_every_folder_has_a_place_in_the_gallery():
    conf = (EXAMPLES.parent / "docs" / "conf.py").read_text(encoding="utf-8")
    for folder in {script.parent for script in SCRIPTS}:
        assert (folder / "GALLERY_HEADER.rst").exists()
        assert folder == EXAMPLES or f'"{folder.name}"' in conf


@pytest.fixture
def pyplot():
    matplotlib.use("Agg")
    from matplotlib import pyplot

    pyplot.close("all")
    yield pyplot
    pyplot.close("all")


#: What estimators may do in ``make test``, where they are not told.
QUICK = {"n_init": 1, "max_iter": 5}


class Quick(ast.NodeTransformer):
    """Estimators start once and iterate little, links are drawn twice, of a range of K the ends are tried.

    A picture is wanted, not the best fit. The gallery and ``make test-long`` have all of them.
    """

    def visit_Call(self, node):
        self.generic_visit(node)
        name = getattr(node.func, "id", None)
        if name in ESTIMATORS:
            told = {keyword.arg for keyword in node.keywords}
            for option in (QUICK.keys() & signature(getattr(linkwise, name)).parameters.keys()) - told:
                node.keywords.append(ast.keyword(option, ast.Constant(QUICK[option])))
        return node

    def visit_keyword(self, node):
        once = node.arg in ("n_init", "n_repeats")
        if node.arg == "n_components" and ast.unparse(node.value).startswith("range("):
            node.value = ast.parse(f"({ast.unparse(node.value)})[::3]", mode="eval").body
        return ast.keyword(node.arg, ast.Constant(1)) if once else self.generic_visit(node)

    def visit_For(self, node):
        self.generic_visit(node)
        if isinstance(node.target, ast.Name) and node.target.id == "seed":
            node.iter = ast.parse("range(2)", mode="eval").body
        return node


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_example_draws(script, pyplot):
    tree = ast.parse(script.read_text(encoding="utf-8"))
    tree = tree if LONG else Quick().visit(tree)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(
            compile(ast.fix_missing_locations(tree), script, "exec"),
            {"__name__": "__main__", "__file__": str(script)},
        )
    (number,) = pyplot.get_fignums()  # the gallery shows one figure
    figure = pyplot.figure(number)
    assert figure.axes
    for ax in figure.axes:
        assert ax.has_data() or ax.images or ax.collections, f"empty axes {ax.get_title()!r}"
    figure.draw_without_rendering()  # a label that cannot be typeset fails here
    assert script.read_text(encoding="utf-8").rstrip().endswith("plt.show()")
