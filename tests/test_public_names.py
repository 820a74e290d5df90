"""Public names are those of ``docs/reference/api.md``, documented, and never at a deep path."""

import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import linkwise

ROOT = Path(__file__).parents[1]
PACKAGES = ["linkwise"] + [
    f"linkwise.{module.name}"
    for module in pkgutil.iter_modules(linkwise.__path__)
    if not module.name.startswith("_") and module.name != "cli"  # the command is no library
]


def names_in_the_reference() -> list[tuple[str, str]]:
    """Module and name of every entry of docs/reference/api.md."""
    found, module = [], ""
    for line in (ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8").splitlines():
        if line.startswith(".. currentmodule:: "):
            module = line.split()[-1]
        elif re.fullmatch(r"   [A-Za-z]\w*", line):
            found.append((module, line.strip()))
    return found


LISTED = names_in_the_reference()


def value(module: str, name: str):
    return getattr(importlib.import_module(module), name)


def test_no_name_is_listed_twice():
    assert len(set(LISTED)) == len(LISTED) > 60


# The estimators share its building blocks; what people need of it is listed one by one.
PARTLY_PUBLIC = {"linkwise.graph"}


@pytest.mark.parametrize("package", [name for name in PACKAGES if name not in PARTLY_PUBLIC])
def test_every_public_name_is_in_the_reference(package):
    """An estimator is listed once, under linkwise, and public in its family too."""
    listed = {id(value(*entry)) for entry in LISTED}
    names = set(importlib.import_module(package).__all__) - {"__version__"}
    assert [name for name in sorted(names) if id(value(package, name)) not in listed] == []


@pytest.mark.parametrize(("module", "name"), LISTED)
def test_every_name_in_the_reference_is_public_and_documented(module, name):
    assert module in PACKAGES
    assert name in importlib.import_module(module).__all__
    listed = value(module, name)
    assert len(inspect.getdoc(listed) or "") > 60
    if inspect.isfunction(listed) and inspect.signature(listed).parameters:
        assert "Parameters\n" in listed.__doc__


@pytest.mark.parametrize(("module", "name"), LISTED)
def test_types_in_docstrings_are_no_references_of_restructured_text(module, name):
    """``make docs`` fails where a type such as (n_iter_ + 1,) has a word that ends with an underscore."""
    text = inspect.getdoc(value(module, name)) or ""
    types = re.findall(r"^\w+(?:, \w+)* : (.+)$", text, flags=re.MULTILINE)
    assert [kind for kind in types if re.search(r"\b\w+_(?!\w)", re.sub(r"`[^`]*`", "", kind))] == []


def test_imports_are_light_and_lazy_names_are_all_there():
    """In a fresh process: neither packages nor a fit import what they do not need, and then all names.

    What a package imports on request stands in ``__all__`` and in ``dir``.
    """
    code = (
        "import importlib, sys, numpy, linkwise\n"
        "assert 'linkwise.displays' not in sys.modules\n"
        "import linkwise.beliefs, linkwise.model_selection, linkwise.displays\n"
        "linkwise.PPC(2).fit(numpy.random.default_rng(0).normal(size=(20, 2)))\n"
        "assert not {'matplotlib', 'dask', 'distributed', 'linkwise.dask'} & set(sys.modules)\n"
        "for package in map(importlib.import_module, sys.argv[1:]):\n"
        "    for name in package.__all__: getattr(package, name)\n"
        "    exec(f'from {package.__name__} import *')\n"
        "    missing = set(package.__all__) - set(dir(package))\n"
        "    assert not missing, missing\n"
        "    try: package.no_such_name\n"
        "    except AttributeError as error: assert 'no_such_name' in str(error)\n"
        "    else: raise AssertionError\n"
    )
    subprocess.run([sys.executable, "-c", code, *PACKAGES], check=True)


def test_guides_import_no_deep_path():
    """People copy from here; only the guide for authors of engines looks inside."""
    deep = re.compile(r"(?:from|import) linkwise\.\w+\.\w+")
    pages = [ROOT / "README.md", *(ROOT / "examples").rglob("*.py"), *(ROOT / "docs").glob("*/*.md")]
    found = [
        f"{page.name}: {match}"
        for page in pages
        if page.name != "add_an_engine.md"
        for match in deep.findall(page.read_text(encoding="utf-8"))
    ]
    assert found == []
