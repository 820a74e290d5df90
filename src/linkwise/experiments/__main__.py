"""Run the experiments named on the command line, or all of them."""

from __future__ import annotations

import inspect
import sys

from linkwise.experiments import EXPERIMENTS
from linkwise.experiments.data_files import DataMissing


def main(names: list[str]) -> None:
    """Print the table of each experiment."""
    unknown = [name for name in names if name not in EXPERIMENTS]
    if unknown:
        sys.exit(f"no experiment {', '.join(unknown)}; there are {', '.join(EXPERIMENTS)}")
    for name in names or EXPERIMENTS:
        experiment = EXPERIMENTS[name]
        summary = inspect.getdoc(getattr(experiment, "func", experiment)) or ""
        print(f"\n{name}: {summary.splitlines()[0]}", flush=True)
        try:
            head, rows = experiment()
        except DataMissing as error:
            print(f"skipped: {error}")
            continue
        numbers = [[f"{cell:.4g}" if isinstance(cell, float) else str(cell) for cell in row] for row in rows]
        cells = [head, *numbers]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        for row in cells:
            print("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)))


if __name__ == "__main__":
    main(sys.argv[1:])
