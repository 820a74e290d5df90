"""Timing helpers shared by the sections."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def best_of(function: Callable[[], Any], *, repeats: int = 3) -> tuple[float, Any]:
    """Shortest of several wall-clock times in seconds, and the last result; the first call is warm-up."""
    function()
    best, result = float("inf"), None
    for _ in range(repeats):
        start = time.perf_counter()
        result = function()
        best = min(best, time.perf_counter() - start)
    return best, result


def print_table(head: list[str], rows: list[list[Any]]) -> None:
    """A plain table with right-aligned columns."""
    cells = [
        head,
        *[[f"{cell:.3g}" if isinstance(cell, float) else str(cell) for cell in row] for row in rows],
    ]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    for place, row in enumerate(cells):
        print("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)), flush=True)
        if place == 0:
            print("  ".join("-" * width for width in widths))
