"""``linkwise fit``: cluster a file of rows under a file of links."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from numpy.typing import ArrayLike, NDArray

from linkwise._pages import Page, TextTable, new_figure, png_of
from linkwise.cli import options
from linkwise.cli.compare import TruthScores, links_kept, score_truth
from linkwise.cli.errors import CommandError
from linkwise.cli.options import (
    METHODS,
    Covariance,
    MethodName,
    Settings,
    choose_method,
    has_soft,
    probabilities_of,
)
from linkwise.cli.output import REPORT, Output, check_folder, write_text, writing_results
from linkwise.cli.samples import Preparation, Samples, output_frame, read_samples, save_prepared_model
from linkwise.cli.tables import add_labels, check_links, read_links, write_frame
from linkwise.constraints.io import cell_text

if TYPE_CHECKING:
    import pandas

    from linkwise.constraints import Constraints


# Doubtful links that are listed on the terminal and in the report.
_LISTED_LINKS = 15
_LISTED_COLUMNS = 12
# Beyond this a scatter plot takes long and shows no more.
_MOST_POINTS = 20_000


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


def fit(
    data: options.DataArgument,
    n_clusters: Annotated[
        int | None,
        typer.Option(
            "-k",
            "--clusters",
            min=1,
            help="Number of clusters; by default that of the classes in --labels-column.",
        ),
    ] = None,
    links: options.LinksOption = None,
    method: Annotated[
        MethodName,
        typer.Option("--method", "-m", help="auto chooses by the kind and number of the links."),
    ] = MethodName.auto,
    certainty: options.CertaintyOption = None,
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
    output: options.OutputOption = None,
    table_format: options.FormatOption = None,
    safe_csv: options.SafeCsvOption = False,
    as_json: options.JsonOption = False,
) -> None:
    """Cluster rows under must-links and cannot-links, or under the known classes of some rows.

    With -o, writes labels (with probabilities where the method has them), links (which were kept), the model
    for `linkwise predict`, and report.html.
    """
    out = Output(as_json)
    if n_clusters is None and labels_column is None:
        raise typer.BadParameter(
            "missing; say how many clusters, or name a column of labels.", param_hint="-k"
        )
    if labels_certainty is not None and labels_column is None:
        raise typer.BadParameter(
            "name the column of the labels with --labels-column.", param_hint="--labels-certainty"
        )
    suffix = options.chosen_format(table_format, data)
    tables_written = ["labels", *([] if links is None and labels_column is None else ["links"])]
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
    done = fit_samples(
        out,
        samples,
        constraints,
        method,
        Settings(
            n_clusters or _n_classes(constraints), covariance.value, starts, seed, has_soft(constraints)
        ),
        standardize=standardize,
    )
    tables = [_summary(done), _clusters(done), *_classes(done)]
    doubtful = _doubtful_links(done)
    if doubtful.rows:
        tables.append(doubtful)
    for note in samples.notes:
        out.say(note)
    for table in tables:
        out.table(table)
    files = {}
    if output is not None:
        with writing_results(output, "fit") as draft:
            written = _write(done, tables, out, draft, suffix, seed)
        files = {kind: output / path.name for kind, path in written.items()}
        out.say("Written: " + ", ".join(str(path) for path in files.values()))
    else:
        out.say("Nothing was written; add -o FOLDER for labels, model and report.")
    out.finish(_as_record(done, files))


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
) -> Fit:
    """Fit one method to rows that were read."""
    if settings.n_clusters > len(samples):
        raise CommandError(
            f"-k {settings.n_clusters} clusters cannot be made of {len(samples)} rows; ask for fewer"
        )
    check_links(links, settings.n_clusters, samples)
    name, reason = method.value, ""
    if method is MethodName.auto:
        name, reason = choose_method(len(samples), samples.features.shape[1], settings.n_clusters, links)
    if METHODS[name].only_hard and settings.soft:
        raise CommandError(
            f"--method {name} takes hard links only; leave --certainty and weights out, or use ppc"
        )
    numbers = [str(number) for number in range(settings.n_clusters)]
    preparation = Preparation.of(samples, standardize=standardize, clusters=numbers)
    X = preparation.apply(samples.features)
    model = METHODS[name].build(settings)
    began = time.perf_counter()
    with out.progress(f"fitting {name}"):
        model.fit(X, constraints=links if links.n_pairs or links.classes is not None else None)
    seconds = time.perf_counter() - began
    if hasattr(model, "cluster_names_"):
        preparation = replace(preparation, clusters=model.cluster_names_.tolist())
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
    )


def _summary(done: Fit) -> TextTable:
    model = done.model
    state = "converged" if getattr(model, "converged_", True) else "NOT converged"
    rows = [
        ["data", f"{done.samples.path}: {len(done.samples)} rows, {done.samples.features.shape[1]} columns"],
        ["links", str(done.links).removeprefix("Constraints(").removesuffix(")")],
        [
            "method",
            f"{done.method}: {METHODS[done.method].title}"
            + (f" (auto: {done.reason})" if done.reason else ""),
        ],
        ["fit", f"{state} after {model.n_iter_} iterations, {done.seconds:.2f} s"],
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
    files["model"] = save_prepared_model(folder / "model", done.model, done.preparation)
    report = Page(f"{len(done.preparation.clusters)} clusters of {done.samples.path.name}")
    for note in done.samples.notes:
        report.text(note)
    for warning in out.warnings:
        report.text(warning, "warning")
    _, *rest = tables
    report.table(tables[0])
    report.picture(
        clusters_png(done.X, _shown_labels(done), done.links if done.links.n_pairs else None, seed=seed),
        "Rows by cluster, with the links between them",
        "Solid lines are must-links, dashed ones cannot-links; broken links are red and crossed out.",
    )
    for table in rest:
        report.table(table)
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
        "n_iter": int(done.model.n_iter_),
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
    if not files:
        record["labels"] = done.labels
    return record


def clusters_png(X: Any, labels: ArrayLike, links: Constraints | None, *, seed: int = 0) -> bytes:
    """Draw rows by cluster with the links; a random part of the rows if they are very many."""
    from linkwise.displays import ClusterDisplay

    shown, names = X, np.asarray(labels)
    if len(names) > _MOST_POINTS:
        rows = _rows_to_show(len(names), links, seed)
        shown, names = (X.iloc[rows] if hasattr(X, "iloc") else X[rows]), names[rows]
        links = None if links is None else links[rows]
    figure, ax = new_figure()
    ClusterDisplay.from_predictions(shown, names, constraints=links, ax=ax)
    return png_of(figure)


def _rows_to_show(n_rows: int, links: Constraints | None, seed: int) -> NDArray[np.int64]:
    """Choose linked rows first, then others at random."""
    order = np.random.default_rng(seed).permutation(n_rows)
    if links is not None and links.n_pairs:
        linked = np.zeros(n_rows, dtype=bool)
        linked[links.pairs.ravel()] = True
        order = order[np.argsort(~linked[order], kind="stable")]
    return np.sort(order[:_MOST_POINTS])


def convergence_png(model: Any) -> bytes | None:
    """Draw the objective over the iterations, for estimators that keep it."""
    from linkwise.displays import ConvergenceDisplay

    if len(getattr(model, "objectives_", ())) < 2:
        return None
    figure, ax = new_figure(size=(7.2, 3.4))
    ConvergenceDisplay.from_estimator(model, ax=ax)
    return png_of(figure)
