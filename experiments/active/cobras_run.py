"""COBRAS (Van Craenendonck et al. 2018) as its own documentation shows, in a process that asks on its output.

Nothing of linkwise is imported: the file runs as a script, in an environment that has the package
``cobras_ts``. Its input is one line of JSON with the rows, the seed and the budgets. For each budget it
writes ``{"ask": [i, j]}`` for every question and reads an answer, 1 for same and 0 for different, and at the
end ``{"labels": [...]}``.
"""

from __future__ import annotations

import importlib
import json
import sys
import warnings
from typing import Any, TextIO

import numpy as np

__all__ = ["Person", "run"]


class Person:
    """What COBRAS calls a querier: it passes questions on."""

    def __init__(self, reader: TextIO, writer: TextIO) -> None:
        self.reader, self.writer = reader, writer

    def query_points(self, i: int, j: int) -> bool:
        """Ask whether two rows belong together."""
        print(json.dumps({"ask": [int(i), int(j)]}), file=self.writer, flush=True)
        return self.reader.readline().strip() == "1"

    def continue_cluster_process(self) -> bool:
        """Nobody stops before the budget is used up."""
        return True

    def update_clustering(self, clustering: Any) -> None:
        """Nothing is shown."""


def run(reader: TextIO, writer: TextIO) -> None:
    """Cluster as the line of input says."""
    algorithm = importlib.import_module("cobras_ts.cobras_kmeans").COBRAS_kmeans
    given = json.loads(reader.readline())
    warnings.simplefilter("ignore")
    for budget in given["budgets"]:
        np.random.seed(given["seed"])  # noqa: NPY002  (the only way to seed it)
        person = Person(reader, writer)
        model = algorithm(np.array(given["X"]), person, budget, store_intermediate_results=False)
        labels = model.cluster().construct_cluster_labeling()
        print(json.dumps({"labels": [int(label) for label in labels]}), file=writer, flush=True)


if __name__ == "__main__":
    sys.stdout, own = sys.stderr, sys.stdout  # what the package prints is no answer
    run(sys.stdin, own)
