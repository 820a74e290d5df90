"""What the user may choose: options that several commands share, and the clustering methods."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from scipy.special import expit

from linkwise.cli.tables import protect_csv, table_suffix
from linkwise.constraints.io import Columns

if TYPE_CHECKING:
    from linkwise.constraints import Constraints


class MethodName(StrEnum):
    """What ``--method`` may be."""

    auto = "auto"
    ppc = "ppc"
    cem = "cem"
    hmrf = "hmrf"
    cop = "cop"
    spectral = "spectral"


class Covariance(StrEnum):
    """What ``--covariance`` may be."""

    full = "full"
    tied = "tied"
    diag = "diag"
    spherical = "spherical"


@dataclass(frozen=True)
class Settings:
    """What the user may choose about a method; ``soft`` tells whether some links are soft."""

    n_clusters: int
    covariance: str = "full"
    n_init: int = 10
    seed: int = 0
    soft: bool = False


@dataclass(frozen=True)
class Method:
    """A method: ``build`` imports and makes the estimator; ``only_hard`` ones refuse soft links."""

    title: str
    build: Callable[[Settings], Any]
    only_hard: bool = False


def _ppc(settings: Settings) -> Any:
    from linkwise.mixture.ppc import PPC

    return PPC(
        settings.n_clusters,
        covariance_type=settings.covariance,
        n_init=settings.n_init,
        random_state=settings.seed,
    )


def _cem(settings: Settings) -> Any:
    from linkwise.mixture.constrained_em import ConstrainedEM

    return ConstrainedEM(
        settings.n_clusters,
        # Chunklets are made of hard must-links.
        sampling="points" if settings.soft else "chunklets",
        covariance_type=settings.covariance,
        n_init=settings.n_init,
        random_state=settings.seed,
    )


def _hmrf(settings: Settings) -> Any:
    from linkwise.kmeans.hmrf_kmeans import HMRFKMeans

    return HMRFKMeans(settings.n_clusters, n_init=settings.n_init, random_state=settings.seed)


def _cop(settings: Settings) -> Any:
    from linkwise.kmeans.cop_kmeans import COPKMeans

    return COPKMeans(settings.n_clusters, n_init=settings.n_init, random_state=settings.seed)


def _spectral(settings: Settings) -> Any:
    from linkwise.spectral.constrained import ConstrainedSpectralClustering

    return ConstrainedSpectralClustering(
        settings.n_clusters, n_init=settings.n_init, random_state=settings.seed
    )


METHODS = {
    "ppc": Method("Gaussian mixture, PPC", _ppc),
    "cem": Method("Gaussian mixture, constrained EM", _cem),
    "hmrf": Method("k-means with a learned metric", _hmrf),
    "cop": Method("k-means, every link kept", _cop, only_hard=True),
    "spectral": Method("spectral clustering", _spectral),
}


#: Method of the command line for each estimator that can be recommended.
_METHOD_OF = {
    "PPC": "ppc",
    "ConstrainedEM": "cem",
    "HMRFKMeans": "hmrf",
    "COPKMeans": "cop",
    "ConstrainedSpectralClustering": "spectral",
}


def choose_method(n_rows: int, n_features: int, n_clusters: int, links: Constraints) -> tuple[str, str]:
    """Choose what ``auto`` stands for, and say why (see ``recommend_method``).

    Soft links are expected to be wrong as often as their weights say.
    """
    from linkwise.model_selection.recommendation import recommend_method

    strength = np.abs(links.weights)
    # The certainty of a pair of weight w is 1 / (1 + exp(-2 w)): a hard link is never wrong.
    wrong = expit(-2.0 * strength)
    chosen = recommend_method(
        n_rows,
        n_features,
        links.n_pairs,
        hard=not has_soft(links),
        n_clusters=n_clusters,
        wrong_share=float(wrong.sum() / max(1, links.n_pairs)),
    )
    return _METHOD_OF[chosen.estimator], chosen.reason


def has_soft(links: Constraints) -> bool:
    """Tell whether some links are soft."""
    return bool(np.isfinite(links.weights).any())


def hardened(links: Constraints) -> Constraints:
    """Make all links hard."""
    from linkwise.constraints import Constraints

    return Constraints(links.n_samples, links.must_link, links.cannot_link)


def probabilities_of(model: Any, X: Any) -> NDArray[np.floating] | None:
    """Probabilities of the clusters for the training rows, (n, K); None where the method has none."""
    if hasattr(model, "responsibilities_"):
        return np.asarray(model.responsibilities_)
    if hasattr(model, "predict_proba"):
        return np.asarray(model.predict_proba(X))
    return None


class TableFormat(StrEnum):
    """Formats of the tables written."""

    csv = "csv"
    parquet = "parquet"


class LinksBy(StrEnum):
    """What the columns i and j of a file of links hold."""

    row = "row"
    id = "id"


def names(text: str | None) -> list[str]:
    """Split the column names of an option: ``a,b,c``."""
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
        help="Links: columns i, j, kind (must_link or cannot_link); also weight or certainty, and source.",
    ),
]
LinksByOption = Annotated[
    LinksBy | None,
    typer.Option(
        "--links-by", help="What i and j are: row numbers from 0, or ids. Ids if --id is given, else rows."
    ),
]
LeftOption = Annotated[
    str | None, typer.Option("--left", metavar="COLUMN", help="Column of the links with one of the points.")
]
RightOption = Annotated[
    str | None, typer.Option("--right", metavar="COLUMN", help="Column of the links with the other point.")
]
IgnoreColumnsOption = Annotated[
    str | None,
    typer.Option("--ignore-columns", metavar="A,B,..", help="Columns of the links to leave out."),
]
CertaintyOption = Annotated[
    float | None,
    typer.Option(
        "--certainty",
        "-c",
        callback=_between_half_and_one,
        metavar="0.5..1",
        help="Certainty of links without a weight of their own. Without this option they are hard.",
    ),
]
IdOption = Annotated[
    str | None, typer.Option("--id", metavar="COLUMN", help="Column of ids; kept in the output.")
]
LabelsColumnOption = Annotated[
    str | None,
    typer.Option(
        "--labels-column",
        metavar="COLUMN",
        help="Column of known classes to cluster by: rows of one class belong together, others apart. Blank: "
        "unknown.",
    ),
]
LabelsCertaintyOption = Annotated[
    float | None,
    typer.Option(
        "--labels-certainty",
        callback=_between_half_and_one,
        metavar="0.5..1",
        help="Certainty of the labels in --labels-column. Without this option they are sure.",
    ),
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
StartsOption = Annotated[int, typer.Option("--starts", min=1, help="Number of starts; the best is kept.")]
SeedOption = Annotated[int, typer.Option("--seed", min=0, help="Seed of everything random.")]
OutputOption = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", metavar="FOLDER", help="Where to write. The folder is made if it is missing."
    ),
]
FormatOption = Annotated[
    TableFormat | None,
    typer.Option("--format", help="Format of the tables written. By default that of the data."),
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


def link_columns(left: str | None, right: str | None, ignore: str | None) -> Columns:
    """How to read the columns of a file of links."""
    return Columns(left, right, tuple(names(ignore)))


def chosen_format(wanted: TableFormat | None, data: Any) -> str:
    """Choose the suffix of the tables to write."""
    if wanted is not None:
        return f".{wanted.value}"
    return ".parquet" if table_suffix(data) == ".parquet" else ".csv"
