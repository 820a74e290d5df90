"""``RESULTS.md``: the summary and the tables of every section, rendered from ``results.json``.

A run of one section replaces its record and leaves the others as they were.
"""

from __future__ import annotations

import datetime
import json
import os
import platform
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks._table import Measured, Table
from benchmarks._targets import summary

__all__ = ["PAGE", "RECORDS", "machine", "page", "read_records", "record", "write"]

PAGE = Path(__file__).with_name("RESULTS.md")
RECORDS = Path(__file__).with_name("results.json")
_PACKAGES = ("linkwise", "numpy", "scipy", "scikit-learn", "numba")

#: A section as it was last measured: command, date, seconds, machine, about, tables.
Record = dict[str, Any]


def machine() -> str:
    """Versions, processor and number of cores."""
    versions = [f"Python {platform.python_version()}", *[f"{name} {version(name)}" for name in _PACKAGES]]
    return f"{', '.join(versions)}; {_processor()}, {os.cpu_count()} cores"


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def record(command: str, about: str, seconds: float, tables: Iterable[Table]) -> Record:
    """A section measured now."""
    return {
        "command": command,
        "date": datetime.datetime.now().isoformat(" ", "minutes"),
        "seconds": round(seconds),
        "machine": machine(),
        "about": about,
        "tables": [{**asdict(table), "rows": table.cells()} for table in tables],
    }


def read_records(path: Path = RECORDS) -> dict[str, Record]:
    """The sections measured so far."""
    return json.loads(path.read_text()) if path.exists() else {}


def write(
    name: str, measured: Record, order: Iterable[str], records: Path = RECORDS, results: Path = PAGE
) -> None:
    """Put a section's record in the place of its last one, drop sections that are gone, render the page."""
    known = {**read_records(records), name: measured}
    known = {section: known[section] for section in order if section in known}
    records.write_text(json.dumps(known, indent=1, default=float, allow_nan=False) + "\n")
    results.write_text(page(known))


def page(records: Mapping[str, Record]) -> str:
    """The whole of ``RESULTS.md``."""
    tables = {name: [_table(fields) for fields in entry["tables"]] for name, entry in records.items()}
    measured = {
        name: found for part in tables.values() for table in part for name, found in table.measured.items()
    }
    newest = max(records.values(), key=lambda entry: entry["date"])
    parts = [
        "# Speed and memory",
        "Written by `make bench`; `make bench SECTION=em` measures one section again and keeps the others. "
        f"Last command: `{newest['command']}`, {newest['date']}. {newest['machine']}.",
        summary(measured).markdown().replace("### ", "## ", 1),
    ]
    for name, entry in records.items():
        parts += [
            f"## {name}",
            entry["about"],
            f"`make bench SECTION={name}`, {entry['date']}, {entry['seconds']} s. {entry['machine']}.",
            *[table.markdown() for table in tables[name]],
        ]
    return "\n\n".join(parts) + "\n"


def _table(fields: Mapping[str, Any]) -> Table:
    measured = {name: Measured(**values) for name, values in fields["measured"].items()}
    return Table(**{**fields, "measured": measured})
