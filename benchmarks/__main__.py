"""Run the sections named on the command line, or all of them, and write ``RESULTS.md``."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import sys
import time
from collections.abc import Iterator

import benchmarks
from benchmarks._results import record, write
from benchmarks._table import Table
from benchmarks._timing import one_line

SECTIONS = sorted(
    module.name for module in pkgutil.iter_modules(benchmarks.__path__) if not module.name.startswith("_")
)


def tables_of(name: str) -> Iterator[Table]:
    """The tables of a section as they come; an error ends the section with a table that names it."""
    try:
        yield from importlib.import_module(f"benchmarks.{name}").run()
    except Exception as error:
        yield Table("Stopped", ["error"], [[one_line(error)]])


def about(name: str) -> str:
    """The docstring of a section that was imported."""
    module = sys.modules.get(f"benchmarks.{name}")
    return inspect.getdoc(module) or "" if module else ""


def main(names: list[str]) -> None:
    """Print each table as it comes; write the results after every section."""
    unknown = [name for name in names if name not in SECTIONS]
    if unknown:
        sys.exit(f"no benchmark section {', '.join(unknown)}; there are {', '.join(SECTIONS)}")
    command = f'make bench SECTION="{" ".join(names)}"' if names else "make bench"
    for name in names or SECTIONS:
        print(f"\n== {name} ==", flush=True)
        start, tables = time.perf_counter(), []
        for table in tables_of(name):
            tables.append(table)
            print(f"\n{table.plain()}", flush=True)
        write(name, record(command, about(name), time.perf_counter() - start, tables), SECTIONS)


if __name__ == "__main__":
    main(sys.argv[1:])
