"""``linkwise fit``: cluster a file of rows under a file of links."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from linkwise.auto.summary import gain_in_words
from linkwise.cli import options
from linkwise.cli.errors import CommandError
from linkwise.cli.fit.fitting import fit_samples
from linkwise.cli.fit.report import all_tables, as_record, write_files
from linkwise.cli.options import Covariance, MethodName, Settings, has_soft
from linkwise.cli.output import REPORT, Output, check_folder, write_results
from linkwise.cli.parts import is_parts
from linkwise.cli.parts.fit import PartsRequest, fit_parts
from linkwise.cli.tables import add_labels

if TYPE_CHECKING:
    from linkwise.constraints import Constraints


# The certainty that learning starts from, for links that have none.
_UNKNOWN_CERTAINTY = 0.8
# Every start of a fit to many files reads all of them dozens of times.
_STARTS_OF_PARTS = 2


@options.with_groups
def fit(
    context: typer.Context,
    data: options.DataArgument,
    *,
    n_clusters: Annotated[
        str | None,
        typer.Option(
            "-k",
            "--clusters",
            metavar="3 | 2:12 | auto",
            help="Number of clusters, or a range that held-out links and BIC choose from. By default the "
            "number of classes in --labels-column, or what auto finds.",
        ),
    ] = None,
    links: options.LinkFile,
    method: Annotated[
        MethodName,
        typer.Option(
            "--method",
            "-m",
            help="auto compares methods with and without links on links that were left out of their fit; the "
            "best ones vote. The others are single methods.",
        ),
    ] = MethodName.auto,
    effort: options.EffortOption = None,
    certainty: options.CertaintyOption = None,
    learn_noise: options.LearnNoiseOption = None,
    repeats: Annotated[
        int, typer.Option("--repeats", min=1, help="Runs for each number of clusters of a range.")
    ] = 5,
    labels_column: options.LabelsColumnOption = None,
    labels_certainty: options.LabelsCertaintyOption = None,
    label_column: Annotated[
        str | None,
        typer.Option(
            "--label", metavar="COLUMN", help="Column of known classes; never used to fit, only to score."
        ),
    ] = None,
    rows: options.Rows,
    covariance: options.CovarianceOption = Covariance.full,
    starts: options.StartsOption = 10,
    seed: options.SeedOption = 0,
    scheduler: options.SchedulerOption = None,
    output: options.OutputOption = None,
    table_format: options.FormatOption = None,
    safe_csv: options.SafeCsvOption = False,
    as_json: options.JsonOption = False,
) -> None:
    """Cluster rows under must-links and cannot-links, or under the known classes of some rows.

    With -o, writes labels (with probabilities where the method has them), links (which were kept), the model
    for `linkwise predict`, and report.html. A folder or a quoted pattern such as 'data/*.parquet' is read
    chunk by chunk with Dask; labels are then written for each file.
    """
    out = Output(as_json)
    chooses = method is MethodName.auto and learn_noise is None
    n_clusters = None if n_clusters is not None and n_clusters.strip() == "auto" else n_clusters
    _check_options(
        n_clusters, links, effort, certainty, learn_noise, labels_column, labels_certainty, chooses=chooses
    )
    if learn_noise is not None and certainty is None:
        certainty = _UNKNOWN_CERTAINTY
    settings = Settings(
        "auto",
        covariance.value,
        starts,
        seed,
        learn_noise=False if learn_noise is None else learn_noise.parameter,
        effort=(effort or options.Effort.balanced).value,
    )
    if is_parts(data) or scheduler is not None:
        _refuse_in_memory(context)
        _warn_of_ignored(context, out, method, chooses=chooses)
        settings = replace(
            settings,
            n_clusters=_count_of_many(n_clusters, several=chooses),
            n_init=starts if _is_given(context, "starts") else _STARTS_OF_PARTS,
        )
        name = "ppc" if method is MethodName.auto and learn_noise is not None else method.value
        folder = options.needed_folder(output)
        fit_parts(out, PartsRequest(data, folder, links, name, settings, rows, certainty, scheduler))
        return
    suffix = options.chosen_format(table_format, data)
    tables_written = ["labels", *([] if links.path is None and labels_column is None else ["links"])]
    tables_written += ["candidates"] if chooses else []
    check_folder(output, "fit", ["model", REPORT, *(f"{name}{suffix}" for name in tables_written)])
    samples = rows.read(data, label_column=label_column, known_column=labels_column)
    constraints = links.read(samples, certainty)
    if samples.known is not None:
        constraints = add_labels(constraints, samples, labels_certainty)
    if learn_noise is options.LearnNoise.source and constraints.source is None:
        raise CommandError(f"{links.path} names no sources; add a column source, or use --learn-noise all")
    counts: list[int] = []
    if n_clusters is not None:
        counts = options.parse_counts(n_clusters, len(samples))
    elif constraints.classes is not None:
        counts = [_n_classes(constraints)]
    _warn_of_ignored(context, out, method, chooses=chooses)
    settings = replace(settings, n_clusters=counts[-1] if counts else "auto", soft=has_soft(constraints))
    done = fit_samples(
        out, samples, constraints, method, settings,
        standardize=rows.standardize, counts=counts, repeats=repeats,
    )  # fmt: skip
    tables = all_tables(done, by_source=learn_noise is options.LearnNoise.source)
    for note in samples.notes:
        out.say(note)
    for table in tables:
        out.table(table)
    if done.chosen_by_links:
        out.paragraph(gain_in_words(done.model, done.links.n_pairs))
    files = {}
    if output is not None:
        files = write_results(
            out, output, "fit", lambda draft: write_files(done, tables, out, draft, suffix, seed)
        )
    else:
        out.say("Nothing was written; add -o FOLDER for labels, model and report.")
    out.finish(as_record(done, files))


def _check_options(
    n_clusters: str | None,
    links: options.LinkFile,
    effort: options.Effort | None,
    certainty: float | None,
    learn_noise: options.LearnNoise | None,
    labels_column: str | None,
    labels_certainty: float | None,
    *,
    chooses: bool,
) -> None:
    """Refuse options that contradict each other, and typing errors, before a long file is read."""
    if n_clusters is None and labels_column is None and not chooses:
        raise typer.BadParameter(
            "missing; say how many clusters, name a column of labels, or use --method auto without "
            "--learn-noise.",
            param_hint="-k",
        )
    if effort is not None and not chooses:
        raise typer.BadParameter(
            "only --method auto compares candidates; leave it out.", param_hint="--effort"
        )
    if labels_certainty is not None and labels_column is None:
        raise typer.BadParameter(
            "name the column of the labels with --labels-column.", param_hint="--labels-certainty"
        )
    if learn_noise is not None and links.path is None:
        raise typer.BadParameter("pass the links with --links.", param_hint="--learn-noise")
    options.check_certainty(certainty, links.path)
    if n_clusters is not None:
        options.count_ranges(n_clusters)


def _count_of_many(n_clusters: str | None, *, several: bool) -> Any:
    """The number of clusters of a fit to many files, "auto", or a list if there may be several."""
    wanted = [] if n_clusters is None else options.parse_counts(n_clusters)
    if len(wanted) > 1 and not several:
        raise CommandError("-k must be one number here, or --method auto; many files are fitted once")
    return "auto" if not wanted else wanted if len(wanted) > 1 else wanted[0]


def _refuse_in_memory(context: typer.Context) -> None:
    """Refuse options that need all rows in memory."""
    for option in ("labels_column", "label_column", "impute", "repeats", "table_format"):
        if _is_given(context, option):
            name = {"label_column": "label", "table_format": "format"}.get(option, option.replace("_", "-"))
            raise CommandError(f"--{name} is for one file in memory; leave it out, or pass one file")


def _warn_of_ignored(context: typer.Context, out: Output, method: MethodName, *, chooses: bool) -> None:
    """Warn of options that the method does not have."""
    takes = options.METHODS["ppc" if method is MethodName.auto and not chooses else method.value].takes
    settings = {"covariance": "covariance_type", "starts": "n_init"}
    ignored = [option for option, setting in settings.items() if setting not in takes]
    reason = ", whose candidates have their own settings" if chooses else ""
    for option in [*ignored, *(["repeats"] if chooses else [])]:
        if _is_given(context, option):
            out.warn(
                f"--{option} has no effect on --method {method.value}{reason}; leave it out, or name "
                f"{'a' if chooses else 'another'} method, for example --method ppc"
            )


def _is_given(context: typer.Context, option: str) -> bool:
    """Tell whether the user wrote an option."""
    source = context.get_parameter_source(option)
    return source is not None and source.name not in ("DEFAULT", "DEFAULT_MAP")


def _n_classes(links: Constraints) -> int:
    """Number of the classes that rows are known to be of."""
    assert links.classes is not None
    if len(links.classes) < 2:
        raise CommandError(
            f"all labelled rows are {str(links.classes[0])!r}, which does not tell the number of clusters; "
            "say it with -k"
        )
    return len(links.classes)
