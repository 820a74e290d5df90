"""Run the sections named on the command line, or all of them."""

from __future__ import annotations

import importlib
import pkgutil
import sys

import benchmarks

SECTIONS = sorted(
    module.name for module in pkgutil.iter_modules(benchmarks.__path__) if not module.name.startswith("_")
)


def main(names: list[str]) -> None:
    """Run these sections; each prints its own table."""
    unknown = [name for name in names if name not in SECTIONS]
    if unknown:
        sys.exit(f"no benchmark section {', '.join(unknown)}; there are {', '.join(SECTIONS)}")
    for name in names or SECTIONS:
        print(f"\n== {name} ==", flush=True)
        importlib.import_module(f"benchmarks.{name}").run()


if __name__ == "__main__":
    main(sys.argv[1:])
