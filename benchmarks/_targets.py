"""The table "Speed the design must reach" of DESIGN.md, and whether a measurement meets its line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from benchmarks._table import Measured, Table

__all__ = ["TARGETS", "Target", "summary", "verdict"]


class Target(NamedTuple):
    """A line of the table.

    Attributes
    ----------
    section : str
        Which section measures it.
    work, anchor : str
        What is measured, and against what or in which unit.
    sense : {">=", "<="}
    limit : float
    """

    section: str
    work: str
    anchor: str
    sense: str
    limit: float

    def __str__(self) -> str:
        return f"{self.sense} {self.limit:.3g}"


_SHAPES = {
    "10k": ("(10k, 10, 5)", 6.0),
    "100k": ("(100k, 19, 34)", 9.0),
    "1M": ("(1M, 10, 10)", 15.0),
    "200k": ("(200k, 50, 10)", 6.0),
}
_FASTER = "times faster than scikit-learn in float64"
_GRID = "ns per edge and label"
_EIGENSOLVE = "times the plain eigensolve"
_TWO = "times faster with two threads"
_PEER = "active-semi-supervised-clustering"

#: Every line of the table by the name that sections give their measurements.
TARGETS: dict[str, Target] = {
    **{
        f"em {name}": Target("em", f"EM iteration, float64, (N, D, K) = {shape}", _FASTER, ">=", limit)
        for name, (shape, limit) in _SHAPES.items()
    },
    **{
        f"em {name} float32": Target("em", f"EM iteration, float32, {shape}", _FASTER, ">=", 10.0)
        for name, (shape, _) in _SHAPES.items()
    },
    **{
        f"question {name}": Target("active", f"next question, {name} rows", "seconds", "<=", limit)
        for name, limit in (("1e4", 0.2), ("1e5", 1.0), ("1e6", 3.0))
    },
    **{
        f"question {name}, {n} answers": Target(
            "active", f"slowest question up to {n} answers, {name} rows", "seconds", "<=", limit
        )
        for name, limit, answers in (
            ("1e4", 0.2, (200, 400, 1000)),
            ("1e5", 1.0, (400,)),
            ("1e6", 3.0, (400,)),
        )
        for n in answers
    },
    "page": Target("workbench", "first page of the workbench, 1e4 rows, server warm", "s", "<=", 1.0),
    "answer": Target("workbench", "answer to next question, 1e5 rows, 95 of 100", "s", "<=", 0.3),
    "page memory": Target("workbench", "the page with 1e5 rows in the plane", "MiB", "<=", 300.0),
    "answers memory": Target("workbench", "900 more answers after the first 100", "MiB", "<=", 50.0),
    "em memory": Target(
        "em", "unconstrained fit, the dearest of these shapes", "MiB beyond the data", "<=", 10.0
    ),
    "em linked memory": Target(
        "em", "EM loop with links, less N_constrained x K numbers", "MiB beyond the data", "<=", 10.0
    ),
    "mean_field": Target("graph", "mean-field sweep, 1000 x 1000 grid, K = 10", _GRID, "<=", 4.0),
    "icm": Target("graph", "ICM sweep, the same", _GRID, "<=", 3.0),
    "gibbs": Target("graph", "Gibbs sweep, the same", _GRID, "<=", 4.5),
    "belief_propagation": Target("graph", "belief propagation sweep, the same", _GRID, "<=", 7.5),
    "class sweep": Target("classes", "class-level sweep, N = 1e6, L = 100, K = 34", "ns per N K", "<=", 4.5),
    "class ratio": Target("classes", "the same", "times faster than O(N K L)", ">=", 5.0),
    "e-step": Target(
        "kmeans", "HMRF E-step, N = 1e5, K = 10, 1e4 links", "times faster than the HiGHS LP", ">=", 100.0
    ),
    "forest gap": Target(
        "kmeans", "the same on a forest", "relative gap to the objective of the LP", "<=", 1e-6
    ),
    **{
        f"{name} speed": Target("kmeans", f"{name}, N = 1e4", f"times faster than {_PEER}", ">=", 50.0)
        for name in ("PCKMeans", "MPCKMeans", "COPKMeans")
    },
    **{
        f"{name} F": Target("kmeans", f"{name}, pairwise F", f"less that of {_PEER}", ">=", 0.0)
        for name in ("PCKMeans", "MPCKMeans", "COPKMeans")
    },
    "spectral A": Target("spectral", "algorithm A, N = 5000, 500 links", _EIGENSOLVE, "<=", 2.0),
    "spectral B": Target("spectral", "algorithm B, the same", _EIGENSOLVE, "<=", 8.0),
    "spectral memory": Target("spectral", "fit of N = 100k", "memory of one N x N matrix", "<=", 1.0),
    "warm start": Target("startup", "first small PPC fit with links, numba cache warm", "s", "<=", 0.4),
    "cold start": Target("startup", "the same, numba cache empty", "s, processor", "<=", 8.0),
    "further start": Target(
        "startup", "first fit of any other estimator after it, numba cache empty", "s, processor", "<=", 4.0
    ),
    **{
        f"threads {name} {rows}": Target("threads", f"{name}, {rows:.0e} rows", _TWO, ">=", limit)
        for name in ("EM", "K-means")
        for rows, limit in ((1_000_000, 1.5), (10_000, 0.95))
    },
    **{
        f"threads BP {side}": Target(
            "threads", f"belief propagation, {side} x {side} grid", _TWO, ">=", limit
        )
        for side, limit in ((1000, 1.5), (100, 0.95))
    },
    "dask iteration": Target(
        "scale",
        "Dask iteration, 1e7 x 10, float32, 1e5 links, two workers",
        "times the kernel in memory, CPU",
        "<=",
        1.2,
    ),
    "dask growth": Target(
        "scale", "time per row and iteration up to 1e8 rows from disk", "times that at 1e6 rows", "<=", 1.5
    ),
    "raster window": Target(
        "raster",
        "classify a raster window, 12 bands, 10 classes",
        "times faster than GaussianMixture.predict",
        ">=",
        5.0,
    ),
    "raster smoothing": Target(
        "raster",
        "smoothing, noise that leaves 98, 85 and 64 % of the pixels right",
        "times the time, added",
        "<=",
        3.0,
    ),
    "raster memory": Target(
        "raster", "map of 20,000 x 20,000 x 12 int16 from disk", "MiB, whole process", "<=", 1536.0
    ),
    "raster growth": Target(
        "raster", "processor time per pixel of that map", "times that of an eighth of its side", "<=", 1.5
    ),
}


#: What the tree measured before the source moved into folders (2026-11-16, the same machine).
EARLIER = {
    "em 10k": 10.6, "em 100k": 10.7, "em 1M": 20.5, "em 200k": 6.87,
    "em 10k float32": 16.2, "em 100k float32": 21.1, "em 1M float32": 35.7, "em 200k float32": 13.2,
    "em memory": 7.78, "em linked memory": 94.9,
    "mean_field": 3.49, "icm": 1.22, "gibbs": 5.18, "belief_propagation": 9.51,
    "class sweep": 3.25, "class ratio": 30.1, "e-step": 151, "forest gap": 1.19e-12,
    "PCKMeans speed": "> 282", "MPCKMeans speed": "> 485", "COPKMeans speed": "> 768",
    "PCKMeans F": -0.00493, "COPKMeans F": -0.0124,
    "spectral A": 0.73, "spectral B": 1.52, "spectral memory": 0.00779,
    "warm start": 0.41, "cold start": 18.9,
}  # fmt: skip


def verdict(target: Target, measured: Measured | None) -> str:
    """``met``, ``missed``, ``not measured``, or ``open`` if the anchor was stopped too early to tell."""
    if measured is None or measured.value is None:
        return "not measured"
    if target.sense == ">=":
        if measured.value >= target.limit:
            return "met"
        return "open" if measured.at_least else "missed"
    if measured.value > target.limit:
        return "missed"
    return "open" if measured.at_least else "met"


def summary(measured: Mapping[str, Measured]) -> Table:
    """Every target with what was measured."""
    verdicts = {name: verdict(target, measured.get(name)) for name, target in TARGETS.items()}
    rows = [
        [
            target.section,
            target.work,
            target.anchor,
            str(EARLIER.get(name, "")),
            str(target),
            str(measured.get(name, "")),
            verdicts[name],
        ]
        for name, target in TARGETS.items()
    ]
    words = {
        "met": "",
        "missed": "",
        "open": " (the anchor was stopped too early to tell)",
        "not measured": "",
    }
    counts = [f"{list(verdicts.values()).count(word)} {word}{more}" for word, more in words.items()]
    return Table(
        "Targets",
        ["section", "work", "measured in", "before the move", "target", "measured", ""],
        rows,
        f"{', '.join(counts)}.",
    )
