"""PCCC runs in another process on the same links; where Gurobi's licence ends, HiGHS solves its programs."""

from __future__ import annotations

import importlib
import importlib.util
import sys

import numpy as np
import pytest

from experiments.framework.data_files import DataMissing
from experiments.leaderboard.hard_groups import hard_groups_trial
from experiments.leaderboard.pccc import pccc_labels
from experiments.leaderboard.pccc_run import GRB, Program, run, solver_of
from linkwise.constraints import Constraints

#: What stands in for the authors' module: cluster k is at k, and rows are assigned at the least cost.
STAND_IN = """
import numpy as np
gb = None

def pccc(X, n_clusters, ml, cl, cluster_repositioning, perform_preprocessing, random_state):
    if not ml and perform_preprocessing:
        raise ValueError("too many values to unpack")
    model = gb.Model()
    cost = {(i, k): float((X[i, 0] - k) ** 2) for i in range(len(X)) for k in range(n_clusters)}
    x = model.addVars(cost.keys(), vtype=gb.GRB.BINARY, obj=cost)
    model.addConstrs(x[i, k] + x[j, k] <= 1 for i, j in cl for k in range(n_clusters))
    model.addConstrs(x[i, k] == x[j, k] for i, j in ml for k in range(n_clusters))
    model.addConstrs(x.sum(i, "*") == 1 for i in range(len(X)))
    model.setParam("OutputFlag", 0)
    model.setParam("TimeLimit", 10)
    model.optimize(None)
    if model.SolCount == 0:
        return {}
    labels = np.zeros(len(X), dtype=int)
    for (i, k), variable in x.items():
        if variable.X > 0.5:
            labels[i] = k
    assert abs(model.ObjVal - sum(v.Obj for v in x.values() if v.X > 0.5)) < 1e-6
    return {"labels": labels}
"""

X = np.array([[0.0], [0.1], [0.9], [1.0], [2.2]])


@pytest.fixture
def authors(tmp_path, monkeypatch):
    (tmp_path / "pccc.py").write_text(STAND_IN, encoding="utf-8")
    monkeypatch.setenv("LINKWISE_PCCC", str(tmp_path))
    monkeypatch.setenv("LINKWISE_PCCC_PYTHON", sys.executable)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    sys.modules.pop("pccc", None)


def job(must_link=(), cannot_link=(), rows=X, n_clusters=3):
    return {
        "X": rows.tolist(), "n_clusters": n_clusters, "must_link": list(must_link),
        "cannot_link": list(cannot_link), "seed": 0, "repositioning": "none",
    }  # fmt: skip


@pytest.mark.usefixtures("authors")
def test_links_hold_at_the_least_cost():
    assert run(job())["labels"] == [0, 0, 1, 1, 2]
    # Apart, row 1 goes to cluster 1, the nearer of the others; together, rows 3 and 4 to the second.
    assert run(job(cannot_link=[(0, 1)]))["labels"] == [0, 1, 1, 1, 2]
    assert run(job(must_link=[(3, 4)]))["labels"] == [0, 0, 1, 2, 2]
    impossible = [(i, j) for i in range(4) for j in range(i)]
    assert run(job(cannot_link=impossible)) == {"error": "no labels"}


def test_sums_of_variables_are_constraints():
    program = Program()
    x = program.addVars([(0, 0), (0, 1)], vtype=GRB.BINARY, obj={(0, 0): 2.0, (0, 1): 1.0})
    assert (x[0, 0] + x[0, 1] <= 1) == ({0: 1.0, 1: 1.0}, -np.inf, 1.0)
    assert (x[0, 0] == x[0, 1]) == ({0: 1.0, 1: -1.0}, 0.0, 0.0)
    program.addConstrs([x.sum(0, "*") == 1])
    program.optimize(None)
    assert (x[0, 0].X, x[0, 1].X, program.ObjVal) == pytest.approx((0.0, 1.0, 1.0))


def test_the_licence_decides_who_solves(monkeypatch):
    gurobi = object()
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: gurobi)
    monkeypatch.setattr(importlib, "import_module", lambda name: gurobi)
    rows = np.zeros((1000, 1))
    assert solver_of(job(rows=rows, n_clusters=2)) is gurobi
    assert solver_of(job(rows=rows)) is not gurobi
    # 400 must-linked rows are at most three rows of the program.
    chain = [(i, i + 1) for i in range(399)]
    assert solver_of(job(chain, rows=rows)) is gurobi
    # 40 rows that are all apart: more than 2000 constraints of a cluster.
    apart = [(i, j) for i in range(40) for j in range(i)]
    assert solver_of(job(cannot_link=apart, rows=rows[:100])) is not gurobi
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert solver_of(job()) is not gurobi


@pytest.mark.usefixtures("authors")
def test_labels_come_from_the_process():
    labels, seconds = pccc_labels(X, 3, Constraints(5, cannot_link=[(0, 1)]), 0, "none")
    assert labels.tolist() == [0, 1, 1, 1, 2]
    assert seconds >= 0.0
    impossible = Constraints(5, cannot_link=[(i, j) for i in range(4) for j in range(i)])
    with pytest.raises(RuntimeError, match="no labels"):
        pccc_labels(X, 3, impossible, 0, "none")


def test_without_the_code_the_trial_is_skipped(monkeypatch):
    monkeypatch.delenv("LINKWISE_PCCC", raising=False)
    with pytest.raises(DataMissing, match="LINKWISE_PCCC"):
        hard_groups_trial(0, "wine", 0.1, "PCCC")
