"""Run the experiments named on the command line, or all of them."""

from __future__ import annotations

import inspect
import sys

from linkwise.experiments import EXPERIMENTS


def main(names: list[str]) -> None:
    """Print the table of each experiment."""
    unknown = [name for name in names if name not in EXPERIMENTS]
    if unknown:
        sys.exit(f"no experiment {', '.join(unknown)}; there are {', '.join(EXPERIMENTS)}")
    for name in names or EXPERIMENTS:
        experiment = EXPERIMENTS[name]
        head, rows = experiment()
        summary = inspect.getdoc(getattr(experiment, "func", experiment)) or ""
        print(f"\n{name}: {summary.splitlines()[0]}")
        for row in (head, *rows):
            print("  ".join(f"{cell:>10.3g}" if isinstance(cell, float) else f"{cell!s:>10}" for cell in row))


if __name__ == "__main__":
    main(sys.argv[1:])
