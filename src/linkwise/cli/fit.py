"""``linkwise fit``: cluster a file of rows under a file of links."""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from linkwise._pages import Page, TextTable
from linkwise.auto.summary import (
    candidate_table,
    chosen_in_words,
    count_table,
    gain_in_words,
    selection_frame,
    selection_record,
)
from linkwise.cli import options
from linkwise.cli.compare import TruthScores, links_kept, score_truth
from linkwise.cli.errors import CommandError
from linkwise.cli.options import (
    METHODS,
    Covariance,
    MethodName,
    Settings,
    has_soft,
    probabilities_of,
)
from linkwise.cli.output import REPORT, Output, check_folder, write_text, writing_results
from linkwise.cli.parts.files import is_parts
from linkwise.cli.parts.fit import PartsRequest, fit_parts
from linkwise.cli.pictures import annotators_png, clusters_png, convergence_png, criterion_png
from linkwise.cli.samples import Preparation, Samples, output_frame, read_samples, save_prepared_model
from linkwise.cli.tables import add_labels, check_links, read_links, write_frame
from linkwise.constraints.cells import cell_text

if TYPE_CHECKING:
    import pandas

    from linkwise.constraints import Constraints
    from linkwise.model_selection import ComponentSweep


# Doubtful links that are listed on the terminal and in the report.
_LISTED_LINKS = 15
_LISTED_COLUMNS = 12
# Where learning starts for links whose certainty nobody told.
_UNKNOWN_CERTAINTY = 0.8
_CRITERIA = {"held_out_links": "share of held-out links broken"}
# Every start of a fit to many files reads all of them dozens of times.
_STARTS_OF_PARTS = 2


@dataclass(frozen=True)
class Fit:
    """A fitted model with everything the outputs need."""

    samples: Samples
    links: Constraints
    method: str
    reason: str
    model: Any
    X: pandas.DataFrame
    preparation: Preparation
    labels: NDArray[np.int64]
    probabilities: NDArray[np.floating] | None
    truth: TruthScores | None
    seconds: float
    sweep: ComponentSweep | None = None
    infeasible: Sequence[int] = ()

    @property
    def chosen_by_links(self) -> bool:
        """Tell whether ``model`` is a LinkedClustering."""
        return hasattr(self.model, "selection_")


def fit(
    context: typer.Context,
    data: options.DataArgument,
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
    links: options.LinksOption = None,
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
    id_column: options.IdOption = None,
    label_column: Annotated[
        str | None,
        typer.Option(
            "--label", metavar="COLUMN", help="Column of known classes; never used to fit, only to score."
        ),
    ] = None,
    features: options.FeaturesOption = None,
    ignore: options.IgnoreOption = None,
    impute: options.ImputeOption = False,
    standardize: options.StandardizeOption = True,
    covariance: options.CovarianceOption = Covariance.full,
    starts: options.StartsOption = 10,
    seed: options.SeedOption = 0,
    links_by: options.LinksByOption = None,
    left: options.LeftOption = None,
    right: options.RightOption = None,
    ignore_columns: options.IgnoreColumnsOption = None,
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
    if learn_noise is not None and links is None:
        raise typer.BadParameter("pass the links with --links.", param_hint="--learn-noise")
    if learn_noise is not None and certainty is None:
        certainty = _UNKNOWN_CERTAINTY
    if n_clusters is not None:
        options.count_ranges(n_clusters)  # a typing error is reported before a long file is read
    if is_parts(data) or scheduler is not None:
        _refuse_in_memory(context)
        columns = options.link_columns(left, right, ignore_columns)
        wanted = [] if n_clusters is None else options.parse_counts(n_clusters)
        if len(wanted) > 1 and not chooses:
            raise CommandError("-k must be one number here, or --method auto; many files are fitted once")
        settings = Settings(
            "auto" if not wanted else wanted if len(wanted) > 1 else wanted[0],
            covariance.value,
            starts if _is_given(context, "starts") else _STARTS_OF_PARTS,
            seed,
            certainty is not None,
            False if learn_noise is None else learn_noise.parameter,
            (effort or options.Effort.balanced).value,
        )
        name = "ppc" if method is MethodName.auto and learn_noise is not None else method.value
        fit_parts(
            out,
            PartsRequest(
                data, options.needed_folder(output), links, name, settings, id_column,
                options.names(features), options.names(ignore), standardize, certainty,
                links_by is options.LinksBy.row, columns, scheduler,
            ),
        )  # fmt: skip
        return
    suffix = options.chosen_format(table_format, data)
    tables_written = ["labels", *([] if links is None and labels_column is None else ["links"])]
    tables_written += ["candidates"] if chooses else []
    check_folder(output, "fit", ["model", REPORT, *(f"{name}{suffix}" for name in tables_written)])
    samples = read_samples(
        data,
        id_column=id_column,
        label_column=label_column,
        known_column=labels_column,
        features=options.names(features),
        ignore=options.names(ignore),
        impute=impute,
    )
    constraints = read_links(
        links,
        samples,
        certainty=certainty,
        by_row=links_by is options.LinksBy.row,
        columns=options.link_columns(left, right, ignore_columns),
    )
    if samples.known is not None:
        constraints = add_labels(constraints, samples, labels_certainty)
    if learn_noise is options.LearnNoise.source and constraints.source is None:
        raise CommandError(f"{links} names no sources; add a column source, or use --learn-noise all")
    counts: list[int] = []
    if n_clusters is not None:
        counts = options.parse_counts(n_clusters, len(samples))
    elif constraints.classes is not None:
        counts = [_n_classes(constraints)]
    if chooses:
        for option in ("covariance", "starts", "repeats"):
            if _is_given(context, option):
                out.warn(
                    f"--{option} has no effect on --method auto, whose candidates have their own settings; "
                    "leave it out, or name a method, for example --method ppc"
                )
    noise = False if learn_noise is None else learn_noise.parameter
    done = fit_samples(
        out,
        samples,
        constraints,
        method,
        Settings(
            counts[-1] if counts else "auto",
            covariance.value,
            starts,
            seed,
            has_soft(constraints),
            noise,
            (effort or options.Effort.balanced).value,
        ),
        standardize=standardize,
        counts=counts,
        repeats=repeats,
    )
    tables = [
        _summary(done),
        *_selection_tables(done),
        *_sweep_table(done),
        _clusters(done),
        *_classes(done),
        *_rates(done),
    ]
    doubtful = _doubtful_answers(done) if learn_noise is options.LearnNoise.source else _doubtful_links(done)
    if doubtful.rows:
        tables.append(doubtful)
    for note in samples.notes:
        out.say(note)
    for table in tables:
        out.table(table)
    if done.chosen_by_links:
        out.paragraph(gain_in_words(done.model, done.links.n_pairs))
    files = {}
    if output is not None:
        with writing_results(output, "fit") as draft:
            written = _write(done, tables, out, draft, suffix, seed)
        files = {kind: output / path.name for kind, path in written.items()}
        out.say("Written: " + ", ".join(str(path) for path in files.values()))
    else:
        out.say("Nothing was written; add -o FOLDER for labels, model and report.")
    out.finish(_as_record(done, files))


def _refuse_in_memory(context: typer.Context) -> None:
    """Refuse options that need all rows in memory."""
    for option in ("labels_column", "label_column", "impute", "repeats", "table_format"):
        if _is_given(context, option):
            name = {"label_column": "label", "table_format": "format"}.get(option, option.replace("_", "-"))
            raise CommandError(f"--{name} is for one file in memory; leave it out, or pass one file")


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


def fit_samples(
    out: Output,
    samples: Samples,
    links: Constraints,
    method: MethodName,
    settings: Settings,
    *,
    standardize: bool = True,
    counts: Sequence[int] = (),
    repeats: int = 5,
) -> Fit:
    """Fit one method to rows that were read; of several ``counts`` of clusters the best is chosen first."""
    if settings.n_clusters != "auto":
        if settings.n_clusters > len(samples):
            raise CommandError(
                f"-k {settings.n_clusters} clusters cannot be made of {len(samples)} rows; ask for fewer"
            )
        check_links(links, settings.n_clusters, samples)
    name, reason = method.value, ""
    if settings.learn_noise is not False and name != "ppc":
        if method is not MethodName.auto:
            raise CommandError(f"--method {name} cannot learn how often links are wrong; use --method ppc")
        name, reason = "ppc", "only ppc learns how often links are wrong"
    if METHODS[name].only_hard and settings.soft:
        raise CommandError(
            f"--method {name} takes hard links only; leave --certainty and weights out, or use ppc"
        )
    preparation = Preparation.of(samples, standardize=standardize, clusters=[])
    X = preparation.apply(samples.features)
    sweep, infeasible = None, [k for k in counts if not _allow(links, k)]
    if len(counts) > 1 and infeasible:
        out.say(f"The hard links need more than {infeasible[-1]} clusters; fewer were not tried.")
    if len(counts) > 1 and name == "auto":
        settings = replace(settings, n_clusters=[k for k in counts if k not in infeasible])
    elif len(counts) > 1:
        possible = [k for k in counts if k not in infeasible]
        sweep = _choose_n_clusters(out, name, X, links, settings, possible, repeats)
        if sweep.at_edge == "upper" or (sweep.at_edge == "lower" and not infeasible):
            out.warn(
                f"{sweep.criterion} chooses {sweep.best_n_components} clusters, the {sweep.at_edge} edge of "
                "the range: the best number may lie beyond. Widen -k."
            )
        settings = replace(settings, n_clusters=sweep.best_n_components)
    model = METHODS[name].build(settings)
    began = time.perf_counter()
    with out.progress(f"fitting {name}"):
        model.fit(X, constraints=links if links.n_pairs or links.classes is not None else None)
    seconds = time.perf_counter() - began
    if name == "auto":
        _warn_of_edge(out, model, counts, infeasible)
    n_clusters = model.n_clusters_ if name == "auto" else settings.n_clusters
    names = getattr(model, "cluster_names_", np.arange(n_clusters)).tolist()
    preparation = replace(preparation, clusters=[str(one) for one in names])
    labels = np.asarray(model.labels_)
    return Fit(
        samples,
        links,
        name,
        reason,
        model,
        X,
        preparation,
        labels,
        probabilities_of(model, X),
        score_truth(samples.labels, labels),
        seconds,
        sweep,
        infeasible,
    )


def _warn_of_edge(out: Output, model: Any, counts: Sequence[int], infeasible: Sequence[int]) -> None:
    """Warn if the number of clusters that was chosen is the first or last of those that were tried."""
    tried = sorted({*counts} - {*infeasible}) or sorted({one.n_clusters for one in model.selection_})
    if len(tried) < 2:
        return
    edge = "lower" if model.n_clusters_ == tried[0] and tried[0] > 2 and not infeasible else ""
    edge = "upper" if model.n_clusters_ == tried[-1] else edge
    if edge:
        out.warn(
            f"{model.n_clusters_} clusters were chosen, the {edge} edge of what was tried ({tried[0]} to "
            f"{tried[-1]}): the best number may lie beyond. Pass a wider range with -k."
        )


def _selection_tables(done: Fit) -> list[TextTable]:
    """Tabulate the numbers of clusters and the candidates that were compared."""
    if not done.chosen_by_links:
        return []
    return [*count_table(done.model), *candidate_table(done.model)]


def _allow(links: Constraints, n_clusters: int) -> bool:
    """Tell whether this many clusters can satisfy the hard links."""
    from linkwise.exceptions import InfeasibleConstraints

    try:
        links.check(n_clusters)
    except InfeasibleConstraints:
        return False
    return True


def _choose_n_clusters(
    out: Output,
    method: str,
    X: Any,
    links: Constraints,
    settings: Settings,
    counts: Sequence[int],
    repeats: int,
) -> ComponentSweep:
    """Fit every number of clusters several times and compare them.

    The starts of the final fit are shared out among the runs of each number.
    """
    from linkwise.model_selection import ComponentSweep, sweep_components

    estimator = METHODS[method].build(replace(settings, n_init=max(1, settings.n_init // repeats)))
    parts = []
    given = links if links.n_pairs else None
    with out.progress("trying numbers of clusters", len(counts)) as advance, warnings.catch_warnings():
        # Runs that lose clusters or do not converge are counted in the table.
        warnings.simplefilter("ignore")
        for k in counts:
            advance()
            try:
                # Seeds depend on K and repeat alone, so that sweeps of one K each are parts of the whole.
                parts.append(
                    sweep_components(
                        estimator, X, n_components=k, constraints=given, n_repeats=repeats,
                        random_state=settings.seed,
                    )
                )  # fmt: skip
            except ValueError as error:
                raise CommandError(f"-k {counts[0]}:{counts[-1]}: {error}") from None
    return ComponentSweep(
        parts[0].criterion,
        tuple(run for part in parts for run in part.runs),
        {k: model for part in parts for k, model in part.typical.items()},
        {k: model for part in parts for k, model in part.best_runs.items()},
    )


def _sweep_table(done: Fit) -> list[TextTable]:
    """Tabulate the criteria of every number of clusters."""
    if done.sweep is None:
        return []
    first, _, second = done.sweep.criterion.partition("+")
    rows = []
    for row in done.sweep.table:
        k = int(row["n_components"])
        chosen = "chosen" if k == done.sweep.best_n_components else ""
        mark = chosen or ("plausible" if second and k in done.sweep.plausible else "")
        other = [f"{row['second']:.6g}"] if second else []
        spread = "–" if np.isnan(row["std"]) else f"{row['std']:.3g}"
        rows.append([str(k), mark, f"{row['mean']:.6g}", spread, *other, f"{row['n_occupied']:.3g}"])
    heads = ["clusters", "", _CRITERIA.get(first, first), "std", *([second] if second else []), "occupied"]
    return [TextTable("Number of clusters", heads, rows, 2)]


def _rates(done: Fit) -> list[TextTable]:
    """Tabulate how often the links of each source, or kind, are wrong."""
    rows = []
    for name, (rate, low, high, n_answers, n_wrong) in noise_record(done).items():
        figures = ["–", "–"] if np.isnan(rate) else [f"{rate:.1%}", f"{low:.1%} to {high:.1%}"]
        rows.append([name or "(no name)", str(n_answers), *figures, str(n_wrong)])
    if not rows:
        return []
    heads = ["source", "answers", "wrong", "90 % interval", "probably wrong answers"]
    return [TextTable("How often answers are wrong", heads, rows, 1)]


def noise_record(done: Fit) -> dict[str, tuple[float, float, float, int, int]]:
    """Rate, both ends of its interval, number of answers and of wrong ones, by source or kind."""
    model = done.model
    if not hasattr(model, "answer_error_probability_"):
        return {}
    said, wrong = done.links.judgements, model.answer_error_probability_ > 0.5
    if isinstance(model.noise_, dict):
        assert said.source is not None
        groups = {name: said.source == name for name in model.noise_}
        rates, intervals = list(model.noise_.values()), list(model.noise_interval_.values())
    else:
        groups = {"all links": np.ones(len(wrong), dtype=bool)}
        if np.ndim(model.noise_):
            groups = {"must_link": said.weights > 0, "cannot_link": said.weights < 0}
        rates, intervals = list(np.atleast_1d(model.noise_)), list(np.atleast_2d(model.noise_interval_))
    return {
        name: (float(rate), float(low), float(high), int(mine.sum()), int(wrong[mine].sum()))
        for (name, mine), rate, (low, high) in zip(groups.items(), rates, intervals, strict=True)
    }


def _doubtful_answers(done: Fit) -> TextTable:
    """Tabulate the answers that are probably wrong: the pairs to ask about again."""
    n_wrong = int((done.model.answer_error_probability_ > 0.5).sum())
    names = done.samples.row_names
    listed = done.model.doubtful_answers(done.X, done.links, n_answers=max(1, min(n_wrong, _LISTED_LINKS)))
    rows = [
        [str(names[i]), str(names[j]), kind, source, f"{probability:.3f}"]
        for i, j, kind, source, probability in listed
        if probability > 0.5
    ]
    more = "" if n_wrong <= _LISTED_LINKS else f", the first {_LISTED_LINKS} of {n_wrong}"
    heads = ["i", "j", "answer", "source", "probability of being wrong"]
    return TextTable(f"Answers to ask for again{more}", heads, rows, 4)


def _summary(done: Fit) -> TextTable:
    model = done.model
    state = "converged" if getattr(model, "converged_", True) else "NOT converged"
    if hasattr(model, "n_iter_"):
        state += f" after {model.n_iter_} iterations"
    title = chosen_in_words(model) if done.chosen_by_links else METHODS[done.method].title
    rows = [
        ["data", f"{done.samples.path}: {len(done.samples)} rows, {done.samples.features.shape[1]} columns"],
        ["links", str(done.links).removeprefix("Constraints(").removesuffix(")")],
        [
            "method",
            f"{done.method}: {title}" + (f" (auto: {done.reason})" if done.reason else ""),
        ],
        ["fit", f"{state}, {done.seconds:.2f} s"],
        ["links kept", links_kept(done.links, done.labels)],
    ]
    inference = getattr(model, "inference_", {})
    if done.links.n_pairs and "exact" in inference:
        rows.append(
            ["inference", f"{inference['method']}, {'exact' if inference['exact'] else 'approximate'}"]
        )
    if done.truth is not None:
        rows.append(
            [
                "against the known classes",
                f"accuracy {done.truth.accuracy:.3f}, pairwise F {done.truth.pairwise_f1:.3f}, "
                f"Rand {done.truth.rand:.3f} ({done.truth.n_rows} rows)",
            ]
        )
    return TextTable(f"{len(done.preparation.clusters)} clusters", ["", ""], rows, 2)


def _named(done: Fit) -> bool:
    """Tell whether clusters have names, after the classes of labelled rows."""
    return hasattr(done.model, "cluster_names_")


def _classes(done: Fit) -> list[TextTable]:
    """Tabulate where the labelled rows of each class are; which are split or share a cluster is told."""
    if not _named(done):
        return []
    model, names = done.model, done.preparation.clusters
    rows = []
    for name, counts in zip(model.classes_.tolist(), model.contingency_, strict=True):
        homes = np.flatnonzero(counts).tolist()
        others = {other for k in homes for other in model.shared_clusters_.get(k, []) if other != name}
        remarks = [f"split over {len(homes)} clusters"] if name in model.split_classes_ else []
        if others:
            remarks.append("shares a cluster with " + ", ".join(sorted(map(str, others))))
        told = ", ".join(f"{names[k]} {counts[k]}" for k in homes) or "–"
        rows.append([str(name), told, "; ".join(remarks), str(counts.sum())])
    return [TextTable("Classes of labelled rows", ["class", "clusters", "remark", "labelled rows"], rows, 3)]


def _clusters(done: Fit) -> TextTable:
    counts = np.bincount(done.labels, minlength=len(done.preparation.clusters))
    own = None
    if done.probabilities is not None:
        own = done.probabilities[np.arange(len(done.labels)), done.labels]
    rows = []
    for k, count in enumerate(counts):
        members = done.labels == k
        row = [str(k), *([done.preparation.clusters[k]] if _named(done) else [])]
        if done.samples.labels is not None:
            row.append(_class_counts(done.samples.labels[members]))
        row += [str(count), f"{count / len(done.labels):.1%}"]
        if own is not None:
            row.append(f"{own[members].mean():.3f}" if count else "–")
        rows.append(row)
    known = ["name"] * _named(done) + ([] if done.samples.labels is None else ["known classes"])
    heads = ["cluster", *known, "rows", "share", *([] if own is None else ["mean probability"])]
    return TextTable("Clusters", heads, rows, 1 + len(known))


def _class_counts(labels: NDArray[Any]) -> str:
    counts = Counter("?" if name is None else str(name) for name in labels.tolist())
    return ", ".join(f"{name} {count}" for name, count in counts.most_common(4))


def _link_frame(done: Fit) -> pandas.DataFrame:
    """Tabulate the links: ends, kind, weight, whether kept, and the probability that the link is wrong."""
    import pandas

    names = done.samples.row_names
    weights = done.links.weights
    frame = pandas.DataFrame(
        {
            "i": names[done.links.pairs[:, 0]],
            "j": names[done.links.pairs[:, 1]],
            "kind": np.where(weights > 0, "must_link", "cannot_link"),
            "weight": np.abs(weights),
            "kept": ~done.links.violations(done.labels),
        }
    )
    if hasattr(done.model, "violation_probability_") and done.links.n_pairs:
        frame["violation_probability"] = done.model.violation_probability_
    return frame


def _with_classes(frame: pandas.DataFrame, links: Constraints) -> pandas.DataFrame:
    """Add the classes of both ends, so that the file can be read again with them."""
    if links.classes is None or links.row_classes is None:
        return frame
    # As text: Parquet has no column of numbers and blanks. The last name is that of -1, unknown.
    names = np.array([*map(cell_text, links.classes.tolist()), ""], dtype=object)[links.row_classes]
    return frame.assign(class_i=names[links.pairs[:, 0]], class_j=names[links.pairs[:, 1]])


def _doubtful_links(done: Fit) -> TextTable:
    """Tabulate links that were broken or that the data contradict, the most doubtful first."""
    frame = _link_frame(done)
    heads = ["i", "j", "kind", "weight", "kept"]
    if "violation_probability" in frame:
        heads.append("probability of being wrong")
        doubt = frame["violation_probability"]
        chosen = frame[~frame["kept"] | (doubt > 0.5)].sort_values("violation_probability", ascending=False)
    else:
        chosen = frame[~frame["kept"]]
    rows = []
    for i, j, kind, weight, kept, *doubts in chosen.head(_LISTED_LINKS).itertuples(index=False):
        strength = "hard" if np.isinf(weight) else f"{weight:.3g}"
        rows.append([str(i), str(j), kind, strength, "yes" if kept else "no", *(f"{p:.3f}" for p in doubts)])
    more = "" if len(chosen) <= _LISTED_LINKS else f", the first {_LISTED_LINKS} of {len(chosen)}"
    return TextTable(f"Links that the data contradict{more}", heads, rows, 3)


def _label_frame(done: Fit, out: Output) -> pandas.DataFrame:
    """Tabulate the samples: id, cluster and probabilities."""
    results: dict[str, Any] = {"cluster": done.labels}
    if _named(done):
        results["name"] = np.array(done.preparation.clusters, dtype=object)[done.labels]
    if done.probabilities is not None:
        results |= {f"probability_{k}": column for k, column in enumerate(done.probabilities.T)}
    return output_frame(done.samples, results, note=out.warn)


def _write(
    done: Fit, tables: list[TextTable], out: Output, folder: Path, suffix: str, seed: int
) -> dict[str, Path]:
    files = {"labels": write_frame(folder / f"labels{suffix}", _label_frame(done, out))}
    if done.links.n_pairs:
        files["links"] = write_frame(folder / f"links{suffix}", _with_classes(_link_frame(done), done.links))
    if done.chosen_by_links:
        files["candidates"] = write_frame(folder / f"candidates{suffix}", selection_frame(done.model))
    try:
        files["model"] = save_prepared_model(folder / "model", done.model, done.preparation)
    except TypeError as error:
        reason = str(error).partition(";")[0]
        out.warn(
            f"no model was written, all else was: {reason}; for a model name a method, for example "
            "--method ppc"
        )
    report = Page(f"{len(done.preparation.clusters)} clusters of {done.samples.path.name}")
    for note in done.samples.notes:
        report.text(note)
    for warning in out.warnings:
        report.text(warning, "warning")
    _, *rest = tables
    report.table(tables[0])
    if done.chosen_by_links:
        report.text(gain_in_words(done.model, done.links.n_pairs))
    report.picture(
        clusters_png(done.X, _shown_labels(done), done.links if done.links.n_pairs else None, seed=seed),
        "Rows by cluster, with the links between them",
        "Solid lines are must-links, dashed ones cannot-links; broken links are red and crossed out.",
    )
    for table in rest:
        report.table(table)
    if done.sweep is not None:
        report.heading("Number of clusters")
        for criterion in done.sweep.criterion.split("+"):
            report.picture(criterion_png(done.sweep, criterion), _CRITERIA.get(criterion, criterion))
    if isinstance(getattr(done.model, "noise_", None), dict):
        report.heading("How often answers are wrong")
        report.picture(annotators_png(done.model, done.links), "Share of wrong answers of each source")
    report.table(_means(done))
    trace = convergence_png(done.model)
    if trace is not None:
        report.heading("Convergence")
        report.picture(trace, "Objective over the iterations")
    files["report"] = write_text(folder / REPORT, report.html())
    return files


def _shown_labels(done: Fit) -> NDArray[Any]:
    """Give the name of each row's cluster, or its number."""
    return np.array(done.preparation.clusters)[done.labels] if _named(done) else done.labels


def _means(done: Fit) -> TextTable:
    columns = list(done.samples.features.columns)[:_LISTED_COLUMNS]
    means = done.samples.features[columns].groupby(done.labels).mean()
    more = done.samples.features.shape[1] - len(columns)
    rows = [
        [done.preparation.clusters[int(cluster)], *(f"{value:.4g}" for value in row)]
        for cluster, row in zip(means.index, means.to_numpy(), strict=True)
    ]
    return TextTable("Means" + (f" ({more} more columns)" if more else ""), ["cluster", *columns], rows)


def _as_record(done: Fit, files: dict[str, Path]) -> dict[str, Any]:
    record: dict[str, Any] = {
        "method": done.method,
        "n_clusters": len(done.preparation.clusters),
        "n_rows": len(done.samples),
        "n_links": done.links.n_pairs,
        "n_violated": int(done.links.violations(done.labels).sum()),
        "converged": bool(getattr(done.model, "converged_", True)),
        "n_iter": getattr(done.model, "n_iter_", None),
        "sizes": np.bincount(done.labels, minlength=len(done.preparation.clusters)),
        "scores": None if done.truth is None else asdict(done.truth),
        "notes": list(done.samples.notes),
        "files": files,
    }
    if _named(done):
        record |= {
            "cluster_names": done.preparation.clusters,
            "classes": done.model.classes_,
            "contingency": done.model.contingency_,
            "split_classes": done.model.split_classes_,
            "shared_clusters": done.model.shared_clusters_,
        }
    if done.chosen_by_links:
        record |= selection_record(done.model, done.links.n_pairs)
    if done.sweep is not None:
        record["sweep"] = {
            "criterion": done.sweep.criterion,
            "plausible": done.sweep.plausible,
            "infeasible": list(done.infeasible),
            "table": [dict(zip(row.dtype.names, row.tolist(), strict=True)) for row in done.sweep.table],
        }
    noise = noise_record(done)
    if noise:
        fields = ("rate", "low", "high", "n_answers", "n_wrong")
        record["noise"] = {name: dict(zip(fields, values, strict=True)) for name, values in noise.items()}
    if not files:
        record["labels"] = done.labels
    return record
