"""PCCC (Baumann & Hochbaum 2024) by its authors' own code, in a process that reads links and writes labels.

Nothing of linkwise is imported: the file runs as a script, in an environment that has the authors' module
``pccc`` and what it needs. Every line of input is a JSON object with rows, links, the number of clusters, the
seed and the way clusters are repositioned; every line of output one with the labels, or with an error.

Their code solves its integer programs with Gurobi, whose free licence has at most 2000 variables and 2000
constraints: rows times clusters. Larger programs are solved by HiGHS instead (:class:`Program`, which has the
few calls of Gurobi that the code makes). Both solve to optimality.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
import time
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array

__all__ = ["Program", "run", "solver_of"]

#: Variables and constraints of the free licence of Gurobi.
GUROBI_LIMIT = 2000


class Sum:
    """A sum of variables, each with a factor; comparing it with a number makes a constraint."""

    def __init__(self, terms: dict[int, float]) -> None:
        self.terms = terms

    def __add__(self, other: Sum) -> Sum:
        joined = dict(self.terms)
        for place, factor in other.terms.items():
            joined[place] = joined.get(place, 0.0) + factor
        return Sum(joined)

    def __sub__(self, other: Sum) -> Sum:
        return self + Sum({place: -factor for place, factor in other.terms.items()})

    def __le__(self, bound: float) -> tuple[dict[int, float], float, float]:
        return self.terms, -np.inf, float(bound)

    def __eq__(self, other: Any) -> Any:
        if isinstance(other, Sum):
            return (self - other).terms, 0.0, 0.0
        return self.terms, float(other), float(other)

    __hash__ = None  # type: ignore[assignment]


class Variable(Sum):
    """One variable; ``Obj`` is its cost and ``X`` its value when the program is solved."""

    def __init__(self, place: int, cost: float) -> None:
        super().__init__({place: 1.0})
        self.Obj, self.X, self.Start = float(cost), 0.0, None


class Variables(dict[tuple[int, int], Variable]):
    """Variables by row and cluster."""

    def sum(self, row: int, _: str) -> Sum:
        """All variables of a row."""
        if not hasattr(self, "_rows"):
            self._rows: dict[int, dict[int, float]] = {}
            for key, variable in self.items():
                self._rows.setdefault(key[0], {}).update(variable.terms)
        return Sum(self._rows[row])


class Program:
    """The calls of ``gurobipy.Model`` that PCCC makes for hard links, solved by HiGHS."""

    def __init__(self) -> None:
        self.variables: list[Variable] = []
        self.rows: list[tuple[dict[int, float], float, float]] = []
        self.SolCount, self.ObjVal, self.time_limit = 0, np.nan, np.inf

    def addVars(self, keys: Iterable[Any], vtype: str, obj: dict[Any, float]) -> Variables:
        """Binary variables with their costs."""
        assert vtype == GRB.BINARY
        added = Variables()
        for key in keys:
            added[key] = Variable(len(self.variables), obj[key])
            self.variables.append(added[key])
        return added

    def addConstrs(self, constraints: Iterable[tuple[dict[int, float], float, float]]) -> None:
        """Constraints that the comparison of sums made."""
        self.rows.extend(constraints)

    def setParam(self, name: str, value: float) -> None:
        """The time limit counts; HiGHS is silent and has no counterpart of the other settings."""
        if name == "TimeLimit":
            self.time_limit = value

    def optimize(self, _: Callable[..., Any]) -> None:
        """Solve the program; without a solution ``SolCount`` stays 0."""
        places = [place for terms, _, _ in self.rows for place in terms]
        factors = [factor for terms, _, _ in self.rows for factor in terms.values()]
        numbers = np.repeat(np.arange(len(self.rows)), [len(terms) for terms, _, _ in self.rows])
        shape = (len(self.rows), len(self.variables))
        matrix = csr_array((factors, (numbers, places)), shape=shape)
        found = milp(
            [variable.Obj for variable in self.variables],
            integrality=np.ones(shape[1]),
            bounds=Bounds(0, 1),
            constraints=LinearConstraint(
                matrix, [low for _, low, _ in self.rows], [high for _, _, high in self.rows]
            ),
            options={"time_limit": min(self.time_limit, 1e6)},
        )
        if found.x is None:
            return
        self.SolCount, self.ObjVal = 1, float(found.fun)
        for variable, value in zip(self.variables, found.x, strict=True):
            variable.X = float(value)


class GRB:
    """Names of Gurobi that the code mentions."""

    BINARY = "B"


class _HIGHS:
    """Stands in for the module ``gurobipy``."""

    Model, GRB = Program, GRB


def solver_of(job: dict[str, Any]) -> Any:
    """Gurobi where its free licence covers the program and it is installed, else what stands in for it."""
    k, linked = job["n_clusters"], {row for pair in job["must_link"] for row in pair}
    # Must-linked rows become one row for each group, of which there are k at most; all cannot-links that are
    # left join these groups and single rows.
    n_groups = min(k, len(linked))
    apart = {row for pair in job["cannot_link"] for row in pair} - linked
    n_rows, n_apart = len(job["X"]) - len(linked) + n_groups, n_groups + len(apart)
    n_constraints = n_rows + k * n_apart * (n_apart - 1) // 2
    if max(n_rows * k, n_constraints) > GUROBI_LIMIT or importlib.util.find_spec("gurobipy") is None:
        return _HIGHS
    return importlib.import_module("gurobipy")


def run(job: dict[str, Any]) -> dict[str, Any]:
    """Cluster as a line of input says."""
    module: Any = importlib.import_module("pccc")
    module.gb = solver_of(job)
    start = time.process_time()
    found = module.pccc(
        np.array(job["X"]),
        job["n_clusters"],
        ml=job["must_link"],
        cl=job["cannot_link"],
        cluster_repositioning=job["repositioning"],
        # Without must-links their preparation returns one value more than it should.
        perform_preprocessing=bool(job["must_link"]),
        random_state=job["seed"],
    )
    if "labels" not in found:
        return {"error": "no labels"}
    labels = [int(label) for label in found["labels"]]
    return {"labels": labels, "seconds": time.process_time() - start}


if __name__ == "__main__":
    sys.stdout, own = sys.stderr, sys.stdout  # what the solver prints is no answer
    warnings.simplefilter("ignore")
    for line in sys.stdin:
        try:
            answer = run(json.loads(line))
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=own, flush=True)
