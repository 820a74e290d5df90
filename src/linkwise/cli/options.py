"""What the user may choose: options that several commands share, and the clustering methods."""

from __future__ import annotations

import csv
import inspect
import io
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import numpy as np
import typer
from numpy.typing import NDArray

from linkwise._tables import table_suffix
from linkwise.cli.errors import CommandError
from linkwise.cli.samples import Samples, read_samples
from linkwise.cli.tables import protect_csv, read_links
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


class Effort(StrEnum):
    """What ``--effort`` may be."""

    quick = "quick"
    balanced = "balanced"
    thorough = "thorough"


class LearnNoise(StrEnum):
    """What ``--learn-noise`` may be."""

    all = "all"
    kind = "kind"
    source = "source"

    @property
    def parameter(self) -> bool | str:
        """The same for ``PPC(learn_noise=...)``."""
        return True if self is LearnNoise.all else self.value


@dataclass(frozen=True)
class Settings:
    """What the user may choose about a method; ``n_clusters`` of ``auto`` may be "auto" or a list."""

    n_clusters: Any
    covariance: str = "full"
    n_init: int = 10
    seed: int = 0
    soft: bool = False
    learn_noise: bool | str = False
    effort: str = Effort.balanced.value


@dataclass(frozen=True)
class Method:
    """An estimator of linkwise, by name, and the settings it takes; ``only_hard`` ones refuse soft links."""

    title: str
    estimator: str
    takes: tuple[str, ...] = ("n_init",)
    only_hard: bool = False

    def build(self, settings: Settings) -> Any:
        """Import and make the estimator."""
        import linkwise

        offered = {
            "covariance_type": settings.covariance,
            "n_init": settings.n_init,
            "learn_noise": settings.learn_noise,
            "effort": settings.effort,
            # Chunklets are made of hard must-links.
            "sampling": "points" if settings.soft else "chunklets",
        }
        given = {name: offered[name] for name in self.takes}
        return getattr(linkwise, self.estimator)(settings.n_clusters, random_state=settings.seed, **given)


METHODS = {
    "auto": Method("candidates that vote by the links", "LinkedClustering", ("effort",)),
    "ppc": Method("Gaussian mixture, PPC", "PPC", ("covariance_type", "n_init", "learn_noise")),
    "cem": Method(
        "Gaussian mixture, constrained EM", "ConstrainedEM", ("covariance_type", "n_init", "sampling")
    ),
    "hmrf": Method("k-means with a learned metric", "HMRFKMeans"),
    "cop": Method("k-means, every link kept", "COPKMeans", only_hard=True),
    "spectral": Method("spectral clustering", "ConstrainedSpectralClustering"),
}


def has_soft(links: Constraints) -> bool:
    """Tell whether some links are soft."""
    return bool(np.isfinite(links.weights).any())


def hardened(links: Constraints) -> Constraints:
    """Make all links hard."""
    from linkwise.constraints import Constraints

    return Constraints(links.n_samples, links.must_link, links.cannot_link)


def probabilities_of(model: Any, X: Any) -> NDArray[np.floating] | None:
    """Probabilities of the clusters for the training rows, (n, K); None where the method has none."""
    chosen = getattr(model, "best_estimator_", model)
    if hasattr(chosen, "responsibilities_"):
        return np.asarray(chosen.responsibilities_)
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
    """Split the column names of an option: ``a,b,c``, or ``a,"b, c"`` as in a line of CSV."""
    cells = next(csv.reader(io.StringIO(text or "", newline=""), skipinitialspace=True), [])
    return [name.strip() for name in cells if name.strip()]


def _between_half_and_one(value: float | None) -> float | None:
    if value is not None and not 0.5 <= value <= 1.0:
        raise typer.BadParameter(f"{value:g} is outside 0.5 (a guess) to 1 (hard).")
    return value


DataArgument = Annotated[
    Path,
    typer.Argument(
        metavar="DATA",
        help="CSV, TSV or Parquet file, one row per sample; fit and predict also read a folder or a quoted "
        "pattern of Parquet files.",
    ),
]
SchedulerOption = Annotated[
    str | None,
    typer.Option(
        "--scheduler",
        metavar="ADDRESS|local",
        help="Where to compute a folder or pattern of Parquet files: a Dask scheduler (tcp://host:8786), or "
        "processes of this machine (local). By default threads of this process.",
    ),
]
LinksOption = Annotated[
    Path | None,
    typer.Option(
        "--links",
        "-l",
        metavar="FILE",
        help="Links: two columns of ids or row numbers, and kind (same or different); also weight or "
        "certainty, and source.",
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
    str | None, typer.Option("--ignore-columns", metavar="A,B,..", help="Columns of the links to leave out.")
]
CertaintyOption = Annotated[
    float | None,
    typer.Option(
        "--certainty",
        "-c",
        callback=_between_half_and_one,
        metavar="0.5..1",
        help="Certainty of links that have no weight in the file. Without this option they are hard.",
    ),
]
LearnNoiseOption = Annotated[
    LearnNoise | None,
    typer.Option(
        "--learn-noise",
        help="Learn how often links are wrong: one rate for all, one for each kind, or one for each source. "
        "Links without a weight then start from a certainty of 0.8.",
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
        help="Certainty of the labels in --labels-column. Without this option they are certain.",
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
EffortOption = Annotated[
    Effort | None,
    typer.Option(
        "--effort", help="How much time auto may take to compare candidates; balanced if it is left out."
    ),
]
BeliefRepeatsOption = Annotated[
    int, typer.Option("--repeats", min=1, help="Runs, for each number of clusters.")
]
ConfidenceOption = Annotated[
    float, typer.Option("--confidence", min=0.0, help="How much beliefs weigh against the data.")
]
CriterionOption = Annotated[
    str | None,
    typer.Option("--criterion", help="Chooses among the numbers of -k: cbic (default), bic or icl."),
]
KnownClustersOption = Annotated[
    int | None, typer.Option("-k", "--clusters", min=1, help="Number of clusters, if it is known.")
]
SeedOption = Annotated[int, typer.Option("--seed", min=0, help="Seed of the random numbers.")]
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


@dataclass(frozen=True)
class Rows:
    """Options of the columns of a table that are read."""

    id_column: IdOption = None
    features: FeaturesOption = None
    ignore: IgnoreOption = None
    impute: ImputeOption = False
    standardize: StandardizeOption = True

    def read(self, data: Path, *, ignore: Sequence[str] = (), **columns: Any) -> Samples:
        """The rows of a file; ``ignore`` is left out, too, and ``columns`` are as in ``read_samples``."""
        return read_samples(
            data, id_column=self.id_column, features=names(self.features), impute=self.impute,
            ignore=[*names(self.ignore), *ignore], **columns,
        )  # fmt: skip


@dataclass(frozen=True)
class LinkFile:
    """Options of a file of links."""

    path: LinksOption = None
    links_by: LinksByOption = None
    left: LeftOption = None
    right: RightOption = None
    ignore_columns: IgnoreColumnsOption = None

    @property
    def by_row(self) -> bool:
        """Whether points are named by row numbers though rows have ids."""
        return self.links_by is LinksBy.row

    @property
    def columns(self) -> Columns:
        """How to read the columns."""
        return link_columns(self.left, self.right, self.ignore_columns)

    def read(self, samples: Samples, certainty: float | None = None) -> Constraints:
        """Links among the rows; none if no file was named."""
        return read_links(self.path, samples, certainty=certainty, by_row=self.by_row, columns=self.columns)

    def read_given(self, samples: Samples) -> Constraints:
        """Links among the rows for a command without a certainty for them: they have it in the file."""
        return read_links(
            self.path, samples, by_row=self.by_row, columns=self.columns, softened_by="a column certainty"
        )


def with_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Make a command whose parameters of the types above stand for all options of these."""
    groups: dict[str, tuple[Any, list[str]]] = {}
    parameters: list[inspect.Parameter] = []
    signature = inspect.signature(command, eval_str=True)
    for parameter in signature.parameters.values():
        group: Any = parameter.annotation
        if group not in (Rows, LinkFile):
            parameters.append(parameter)
            continue
        types = get_type_hints(group, include_extras=True)
        groups[parameter.name] = group, [field.name for field in fields(group)]
        parameters += [
            parameter.replace(name=field.name, default=field.default, annotation=types[field.name])
            for field in fields(group)
        ]

    @wraps(command)
    def run(**given: Any) -> None:
        for name, (group, members) in groups.items():
            given[name] = group(**{member: given.pop(member) for member in members})
        command(**given)

    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return run


def parse_counts(text: str, most: int | None = None) -> list[int]:
    """List the numbers of clusters of ``5``, ``2:40`` (both ends included), ``2,4,8`` or a mixture."""
    counts: set[int] = set()
    for first, last in count_ranges(text):
        if most is not None and last > most:
            raise CommandError(f"-k: {last} clusters cannot be made of {most} rows; ask for fewer")
        counts |= set(range(first, last + 1))
    return sorted(counts)


def refuse_more_clusters(n_clusters: int | None, n_rows: int) -> None:
    """Refuse more clusters than there are rows."""
    if n_clusters is not None and n_clusters > n_rows:
        raise CommandError(f"-k {n_clusters} clusters cannot be made of {n_rows} rows; ask for fewer")


def check_criterion(criterion: str | None, counts: str | None) -> None:
    """Refuse wrong numbers of clusters before a long file is read, and a criterion without any."""
    if counts is not None:
        count_ranges(counts)
    elif criterion is not None:
        raise CommandError(
            f"--criterion {criterion} chooses among numbers of clusters, but there are none to choose from; "
            "pass them with -k, such as -k 2:10, or leave the criterion out"
        )


def check_certainty(certainty: float | None, links: Path | None) -> None:
    """Refuse a certainty of links that are not there: it may be meant for labels."""
    if certainty is not None and links is None:
        raise typer.BadParameter(
            "it is that of links, and there are none; pass them with --links (labels have --labels-certainty "
            "in `linkwise fit`).",
            param_hint="--certainty",
        )


def _is_count(text: str) -> bool:
    # More digits than a row number has are no count; int() itself refuses more than 4300 of them.
    return text.isdecimal() and len(text) < 20 and int(text) >= 1


def count_ranges(text: str) -> list[tuple[int, int]]:
    """Read the first and last number of every part of the option; refuse what is no number."""
    ranges = []
    for part in text.split(","):
        ends = part.strip().split(":")
        if len(ends) > 2 or not all(_is_count(end.strip()) for end in ends):
            raise typer.BadParameter(
                f"{text!r} is no number of clusters; write for example 5, 2:40 or 2,4,8."
            )
        first, last = int(ends[0]), int(ends[-1])
        if last < first:
            raise typer.BadParameter(f"{part.strip()} runs backwards; write {last}:{first}.")
        ranges.append((first, last))
    return ranges


def needed_folder(output: Path | None) -> Path:
    """The folder of -o, which commands on many files cannot do without."""
    if output is None:
        raise typer.BadParameter("missing; many files need a folder for their labels.", param_hint="-o")
    return output


def link_columns(left: str | None, right: str | None, ignore: str | None) -> Columns:
    """How to read the columns of a file of links."""
    return Columns(left, right, tuple(names(ignore)))


def chosen_format(wanted: TableFormat | None, data: Any) -> str:
    """Choose the suffix of the tables to write."""
    if wanted is not None:
        return f".{wanted.value}"
    # A name without a file is refused when it is read.
    return ".parquet" if os.path.isfile(data) and table_suffix(data) == ".parquet" else ".csv"
