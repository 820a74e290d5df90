"""The rooms of the package stand in layers: a module imports only from its own layer or from one below."""

import ast
import re
from functools import cache
from pathlib import Path

import linkwise
from tests.repeats import for_cases

PACKAGE = Path(linkwise.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))

#: Lowest first. A room that is not named here is on top.
LAYERS = (
    ("exceptions", "_arrays", "_kernels", "_exports", "_files"),
    ("graph", "_threads", "_shared_work", "_running", "_compat"),
    (
        "constraints",
        "_validation",
        "_pages",
        "_row_tables",
        "_tables",
        "_transformers",
        "beliefs",
        "metrics",
    ),
    ("inference",),
    ("mixture", "kmeans", "spectral"),
    ("discriminative",),
    ("model_selection",),
    ("auto",),
    ("active",),
)
LEVEL = {room: level for level, rooms in enumerate(LAYERS) for room in rooms}
#: Rooms of one layer that do not know each other.
APART = ("mixture", "kmeans", "spectral")
#: But for these (who imports, from where): K-means under hard links makes the labels of an embedding.
ALLOWED = {("spectral", "kmeans")}


def name_of(path: Path) -> str:
    parts = ("linkwise", *path.relative_to(PACKAGE).with_suffix("").parts)
    return ".".join(parts).removesuffix(".__init__")


def room_of(module: str) -> str:
    return (module.split(".") + [""])[1]


PATHS = {name_of(path): path for path in MODULES}


@cache
def imports_of(module: str) -> set[str]:
    """Modules of linkwise that are imported when the module is."""
    return imports_in(PATHS[module].read_text(encoding="utf-8")) - {module}


def imports_in(source: str) -> set[str]:
    """Modules of linkwise that code imports when it is run: not inside functions, not for types only."""
    found: set[str] = set()

    def visit(node: ast.AST) -> None:
        inner = ast.iter_child_nodes(node)
        if isinstance(node, ast.Import):
            named = (alias.name for alias in node.names)
            found.update(name for name in named if name.split(".")[0] == "linkwise")
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: a relative import, which has no name to look up"
            if str(node.module).split(".")[0] == "linkwise":
                for alias in node.names:
                    whole = f"{node.module}.{alias.name}"
                    found.add(whole if whole in PATHS else str(node.module))
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            inner = iter(node.orelse)
        elif isinstance(node, ast.expr | ast.FunctionDef | ast.AsyncFunctionDef):
            return
        for one in inner:
            visit(one)

    visit(ast.parse(source))
    return found


def trespasses(module: str, imports: set[str]) -> list[str]:
    """What the layers forbid among the imports of a module, one sentence each."""
    room, top, said = room_of(module), len(LAYERS), []
    for other in sorted(imports):
        if LEVEL.get(room_of(other), top) > LEVEL.get(room, top):
            said.append(f"{module} imports {other}, which is in a layer above")
        strangers = room in APART and room_of(other) in APART and room != room_of(other)
        if strangers and (room, room_of(other)) not in ALLOWED:
            said.append(f"{module} imports {other}; {' and '.join(APART)} do not know each other")
    return said


@for_cases(("module",), [(module,) for module in sorted(PATHS)])
def test_no_module_imports_from_a_layer_above(module):
    assert trespasses(module, imports_of(module)) == []


@for_cases(
    ("statement",),
    [
        ("from linkwise.auto.search import X",),
        ("from linkwise.auto import search",),
        ("from linkwise import auto",),
        ("import linkwise.auto.search",),
        ("import linkwise.auto.search as search",),
        ("import numpy, linkwise.auto",),
        ("if True:\n    import linkwise.auto.search",),
        ("try:\n    import numpy\nexcept ImportError:\n    import linkwise.auto.search",),
        ("try:\n    import numpy\nfinally:\n    from linkwise.auto import search",),
        ("if TYPE_CHECKING:\n    import numpy\nelse:\n    import linkwise.auto.search",),
        ("class A:\n    import linkwise.auto.search",),
        ("with a:\n    for b in c:\n        from linkwise.auto.search import X",),
    ],
)
def test_a_forbidden_import_of_either_form_is_found(statement):
    (said,) = trespasses("linkwise.graph.csr", imports_in(f"import linkwise.exceptions\n{statement}\n"))
    assert said.startswith("linkwise.graph.csr imports linkwise.auto")
    assert said.endswith("which is in a layer above")


def test_rooms_that_do_not_know_each_other_are_found_in_either_form():
    for statement in ("from linkwise.mixture.ppc import PPC", "import linkwise.mixture.ppc"):
        (said,) = trespasses("linkwise.kmeans.descent", imports_in(statement))
        assert "do not know each other" in said
    for statement in ("from linkwise.kmeans.descent import X", "import linkwise.kmeans.descent"):
        assert trespasses("linkwise.spectral.constrained", imports_in(statement)) == []


@for_cases(
    ("source",),
    [
        ("import numpy\nfrom linkwise_of_others import a\nimport linkwise_of_others.auto",),
        ("def f():\n    import linkwise.auto.search",),
        ("if TYPE_CHECKING:\n    import linkwise.auto.search\nelse:\n    import numpy",),
        ("import linkwise.graph.witness\nfrom linkwise import exceptions",),
    ],
)
def test_what_is_allowed_is_not_found(source):
    assert trespasses("linkwise.graph.csr", imports_in(source)) == []


def test_there_is_no_import_cycle():
    done: set[str] = set()

    def visit(module: str, path: tuple[str, ...]) -> None:
        assert module not in path, " -> ".join([*path[path.index(module) :], module])
        if module not in done:
            for other in imports_of(module):
                visit(other, (*path, module))
            done.add(module)

    for module in PATHS:
        visit(module, ())


def test_the_layers_see_the_imports():
    """The tests above would pass if no import were found."""
    assert "linkwise._kernels" in imports_of("linkwise.graph.csr")
    assert sum(map(len, map(imports_of, PATHS))) > 300


def test_folders_of_numerics_are_small():
    for room in (
        "_kernels",
        "graph",
        "constraints",
        "beliefs",
        "inference",
        "mixture",
        "kmeans",
        "spectral",
        "auto",
        "active",
        "cli",
        "displays",
    ):
        for folder in {path.parent for path in (PACKAGE / room).rglob("*.py")}:
            count = sum(path.name != "__init__.py" for path in folder.glob("*.py"))
            assert count <= 15, f"{folder.relative_to(PACKAGE)} has {count} modules"


def test_files_named_by_the_map_exist():
    """Paths in the map count from the package, from the repository or from the folder of the file."""
    root = Path(__file__).parents[1]
    text = (root / "docs" / "research" / "architecture.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([\w/]+(?:\.py|/))`", text)) - {"src/linkwise/", "__init__.py"}
    assert len(named) > 40
    folders = (PACKAGE, root, PACKAGE / "cli", PACKAGE / "inference", PACKAGE / "mixture", PACKAGE / "kmeans")
    missing = [path for path in sorted(named) if not any((folder / path).exists() for folder in folders)]
    assert missing == []
