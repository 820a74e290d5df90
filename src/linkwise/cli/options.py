"""Options that several commands share, spelled and explained once."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from linkwise.cli.methods import Covariance
from linkwise.cli.tables import protect_csv

__all__ = [
    "CertaintyOption",
    "CovarianceOption",
    "DataArgument",
    "FeaturesOption",
    "FormatOption",
    "IdOption",
    "IgnoreOption",
    "ImputeOption",
    "JsonOption",
    "LinksBy",
    "LinksByOption",
    "LinksOption",
    "OutputOption",
    "SafeCsvOption",
    "SeedOption",
    "StandardizeOption",
    "StartsOption",
    "TableFormat",
    "names",
]


class TableFormat(StrEnum):
    """Formats of the tables written."""

    csv = "csv"
    parquet = "parquet"


class LinksBy(StrEnum):
    """What the columns i and j of a file of links hold."""

    row = "row"
    id = "id"


def names(text: str | None) -> list[str]:
    """Column names of an option: ``a,b,c``."""
    return [name.strip() for name in (text or "").split(",") if name.strip()]


def _between_half_and_one(value: float | None) -> float | None:
    if value is not None and not 0.5 <= value <= 1.0:
        raise typer.BadParameter(f"{value:g} is outside 0.5 (a guess) to 1 (hard).")
    return value


DataArgument = Annotated[
    Path, typer.Argument(metavar="DATA", help="CSV, TSV or Parquet file, one row per sample.")
]
LinksOption = Annotated[
    Path | None,
    typer.Option(
        "--links",
        "-l",
        metavar="FILE",
        help="Links: columns i, j, kind (must_link or cannot_link) and, if wanted, weight or certainty.",
    ),
]
LinksByOption = Annotated[
    LinksBy | None,
    typer.Option(
        "--links-by", help="What i and j are: row numbers from 0, or ids. Ids if --id is given, else rows."
    ),
]
CertaintyOption = Annotated[
    float | None,
    typer.Option(
        "--certainty",
        "-c",
        callback=_between_half_and_one,
        metavar="0.5..1",
        help="How sure links are that carry no weight of their own. Without it they are hard.",
    ),
]
IdOption = Annotated[
    str | None, typer.Option("--id", metavar="COLUMN", help="Column of ids; kept in the output.")
]
FeaturesOption = Annotated[
    str | None,
    typer.Option("--features", metavar="A,B,..", help="Columns to cluster by. By default all others."),
]
IgnoreOption = Annotated[str | None, typer.Option("--ignore", metavar="A,B,..", help="Columns to leave out.")]
ImputeOption = Annotated[
    bool,
    typer.Option(
        "--impute", help="Replace missing values by the median of their column instead of refusing them."
    ),
]
StandardizeOption = Annotated[
    bool,
    typer.Option("--standardize/--no-standardize", help="Bring all columns to mean 0 and variance 1 first."),
]
CovarianceOption = Annotated[
    Covariance, typer.Option("--covariance", help="Shape of the clusters of Gaussian mixtures.")
]
StartsOption = Annotated[int, typer.Option("--starts", min=1, help="Starts, of which the best is kept.")]
SeedOption = Annotated[int, typer.Option("--seed", min=0, help="Seed of everything random.")]
OutputOption = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FOLDER", help="Where to write. Made if it is missing."),
]
FormatOption = Annotated[
    TableFormat | None, typer.Option("--format", help="Of the tables written. By default that of the data.")
]
SafeCsvOption = Annotated[
    bool,
    typer.Option(
        "--safe-csv",
        callback=protect_csv,
        help="Put ' before text in CSV files that a spreadsheet would run as a formula (= + - @).",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")]


def chosen_format(wanted: TableFormat | None, data: Any) -> str:
    """Suffix of the tables to write."""
    from linkwise.cli.tables import table_suffix

    if wanted is not None:
        return f".{wanted.value}"
    return ".parquet" if table_suffix(data) == ".parquet" else ".csv"
