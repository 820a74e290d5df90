"""``linkwise classes``: redefine the classes of labelled data by beliefs about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from linkwise._files import replacing
from linkwise._pages import TextTable
from linkwise._validation import listed
from linkwise.cli import options
from linkwise.cli.errors import CommandError
from linkwise.cli.fit.fitting import sweep_counts
from linkwise.cli.options import Covariance
from linkwise.cli.output import REPORT, Output, check_folder, write_results, write_text
from linkwise.cli.samples import Preparation, Samples, free_name, output_frame, save_prepared_model
from linkwise.cli.tables import write_frame

if TYPE_CHECKING:
    from linkwise.beliefs import ClassBeliefs
    from linkwise.mixture.classes.report import ClassReport
    from linkwise.mixture.cppc import CPPC
    from linkwise.model_selection import ComponentSweep

# Beliefs are a square table: this many classes make four million of them.
_MOST_CLASSES = 2000


@options.with_groups
def classes(
    data: options.DataArgument,
    *,
    label_column: Annotated[
        str, typer.Option("--label", metavar="COLUMN", help="Column of the present classes.")
    ],
    beliefs: Annotated[
        Path | None,
        typer.Option(
            "--beliefs", "-b", metavar="FILE", help="Table of beliefs; without it a template is written."
        ),
    ] = None,
    n_clusters: Annotated[
        str | None,
        typer.Option(
            "-k",
            "--clusters",
            metavar="2:40",
            help="Numbers of clusters to try, the criterion chooses; by default classes are split and merged "
            "as far as there is evidence.",
        ),
    ] = None,
    confidence: options.ConfidenceOption = 1.0,
    criterion: options.CriterionOption = None,
    repeats: options.BeliefRepeatsOption = 5,
    rows: options.Rows,
    covariance: options.CovarianceOption = Covariance.full,
    seed: options.SeedOption = 0,
    output: options.OutputOption = None,
    table_format: options.FormatOption = None,
    safe_csv: options.SafeCsvOption = False,
    as_json: options.JsonOption = False,
) -> None:
    """Split, merge and keep classes where data and beliefs agree (CPPC).

    Without --beliefs, writes beliefs.csv to edit: one row and one column per class; 1 together, -1 apart,
    0 no opinion; on the diagonal 1 keeps a class whole, below 0 asks for it to be split. With it, splits and
    merges classes where there is evidence, and reports what became of every class and why.
    """
    out = Output(as_json)
    suffix = options.chosen_format(table_format, data)
    chosen_by = "evidence" if n_clusters is None else "criterion"
    tables_written = ("labels", chosen_by, "separability", "decisions", "mislabelled")
    names = ["model", REPORT, *(f"{name}{suffix}" for name in tables_written)]
    check_folder(output, "classes", [] if beliefs is None else names)
    options.check_criterion(criterion, n_clusters)
    samples = rows.read(data, label_column=label_column)
    present = present_classes(samples, label_column)
    if beliefs is None:
        _write_template(out, present, output)
        return
    table = read_beliefs(beliefs, present)
    preparation = Preparation.of(samples, standardize=rows.standardize, clusters=[])
    X = preparation.apply(samples.features)
    settings = {"confidence": confidence, "covariance_type": covariance.value}
    sweep: ComponentSweep | None = None
    if n_clusters is None:
        model, report = propose_classes(out, X, samples.labels, table, settings, repeats=repeats, seed=seed)
    else:
        counts = options.parse_counts(n_clusters, len(samples))
        sweep, report = sweep_classes(
            out, X, samples.labels, table, counts, settings, criterion=criterion or "cbic", repeats=repeats,
            seed=seed,
        )  # fmt: skip
        model = sweep.best
    for note in samples.notes:
        out.say(note)
    shown = decision_table(report)
    out.table(shown)
    _say_contradictions(out, report)
    if report.mislabelled:
        from linkwise.mixture.classes.report.text import mislabelled_line

        where = "" if output is None else f": see mislabelled{suffix}"
        out.say(f"{mislabelled_line(report)}{where}.")
    if sweep is None:
        say_evidence(out, report)
    else:
        out.say(
            f"{sweep.criterion} is lowest for {sweep.best_n_components} clusters "
            f"({report.n_occupied} of them occupied) among {counts[0]} to {counts[-1]}."
        )
    files: dict[str, Path] = {}
    if output is not None:
        files = write_results(
            out,
            output,
            "classes",
            lambda draft: _write(
                out, samples, model, sweep, report, preparation, label_column, draft, suffix
            ),
        )
    else:
        out.say("Nothing was written; add -o FOLDER for new labels, curve, model and report.")
    out.finish(_as_record(model, sweep, report, files))


def present_classes(samples: Samples, column: str) -> list[Any]:
    """The classes in the column of labels, sorted; two at least, and not too many for a table of beliefs."""
    assert samples.labels is not None
    names = {name for name in samples.labels.tolist() if name is not None and name != -1}
    if len(names) < 2:
        found = f"only {listed(sorted(names))}" if names else "no class at all"
        raise CommandError(
            f"{samples.path}: column {column!r} names {found}; pass --label with a column of two "
            "classes or more"
        )
    if len(names) > _MOST_CLASSES:
        raise CommandError(
            f"{samples.path}: column {column!r} names {len(names)} classes, more than the {_MOST_CLASSES} "
            "that a table of beliefs can be about; pass another --label"
        )
    return sorted(names)


def _write_template(out: Output, present: Sequence[Any], folder: Path | None) -> None:
    from linkwise.beliefs import ClassBeliefs

    path = (folder or Path()) / "beliefs.csv"
    if path.exists():
        raise CommandError(
            f"{path} exists and was left alone; pass it with --beliefs, or remove it for a new template"
        )
    with replacing(path) as draft:
        ClassBeliefs.keep(present).to_csv(draft)
    out.say(f"Wrote {path} for {len(present)} classes: {listed([str(name) for name in present], 8)}.")
    out.say("It says: keep every class as it is. Write down your doubts (1 together, -1 apart, 0 no opinion;")
    out.say("on the diagonal 0.1 to allow a split, -1 to ask for one).")
    out.say(f"Then run the same command with --beliefs {path}")
    out.finish({"template": path, "classes": list(present)})


def read_beliefs(path: Path, present: Sequence[Any]) -> ClassBeliefs:
    """Read beliefs about exactly the classes there are, under the names they have in the data."""
    from linkwise.beliefs import ClassBeliefs

    beliefs = ClassBeliefs.from_csv(path)
    present_as = {str(kept): kept for kept in present}
    # The file may hold 1, 2, 3 where the labels are text, or the other way round.
    beliefs = beliefs.rename(
        {name: present_as[str(name)] for name in beliefs.classes if str(name) in present_as}
    )
    try:
        return ClassBeliefs(beliefs.for_classes(present), present)
    except ValueError as error:
        raise CommandError(f"{path}: {error}") from None


def propose_classes(
    out: Output,
    X: Any,
    labels: Any,
    beliefs: ClassBeliefs,
    settings: dict[str, Any],
    *,
    repeats: int = 5,
    seed: int = 0,
) -> tuple[CPPC, ClassReport]:
    """Let CPPC split and merge as far as there is evidence, from several seeds; report on the first run."""
    from linkwise.mixture.classes.report import ClassReport
    from linkwise.mixture.cppc import CPPC

    # An array instead of ClassBeliefs, because the model is stored with its parameters.
    models = []
    with out.progress("looking for evidence", repeats) as advance:
        for number in range(repeats):
            model = CPPC(beliefs=beliefs.values, random_state=seed + number, **settings)
            models.append(model.fit(X, labels))
            advance()
    with out.progress("finding which beliefs would change a decision"):
        report = ClassReport.from_estimators(models, X, labels)
    return models[0], report


def sweep_classes(
    out: Output,
    X: Any,
    labels: Any,
    beliefs: ClassBeliefs,
    counts: Sequence[int],
    settings: dict[str, Any],
    *,
    criterion: str = "cbic",
    repeats: int = 5,
    seed: int = 0,
) -> tuple[ComponentSweep, ClassReport]:
    """Fit CPPC for every number of clusters and report on the chosen one."""
    from linkwise.mixture.classes.report import ClassReport
    from linkwise.mixture.cppc import CPPC

    # An array instead of ClassBeliefs, because the model is stored with its parameters.
    model = CPPC(beliefs=beliefs.values, **settings)
    sweep = sweep_counts(
        out, model, X, labels, counts, ignored=".*clusters are empty", criterion=criterion, n_repeats=repeats,
        random_state=seed,
    )  # fmt: skip
    if sweep.at_edge is not None:
        out.warn(
            f"{criterion} is lowest at the {sweep.at_edge} edge of the range, {sweep.best_n_components} "
            "clusters: the best number may lie beyond. Widen -k; if the criterion keeps falling, try another "
            "--covariance."
        )
    with out.progress("finding which beliefs would change a decision"):
        report = ClassReport.from_sweep(sweep, X, labels)
    return sweep, report


def decision_table(report: ClassReport) -> TextTable:
    """Tabulate which classes were split, merged and kept."""
    frame = report.to_frame("decisions")
    known = ("decision", "classes", "clusters", "n_rows", "certainty", "belief", "separability")
    columns = [name for name in (*known, "share_of_runs") if name in frame]
    rows = [[_cell(value) for value in row] for row in frame[columns].itertuples(index=False)]
    return TextTable("What became of the classes", [name.replace("_", " ") for name in columns], rows, 3)


def say_evidence(out: Output, report: ClassReport) -> None:
    """Say what spoke for every split and merge, and what the proposal is compared with."""
    from linkwise.mixture.classes.report.text import alternative_lines, evidence_lines

    if not report.evidence:
        out.say("The beliefs leave nothing to the data: all classes stay as they are.")
        return
    out.say("Evidence:")
    for line in [*evidence_lines(report), *alternative_lines(report)]:
        out.say(f"  {line}")


def _say_contradictions(out: Output, report: ClassReport) -> None:
    """Say which results are against a belief of ±1, however certain they look, and what to do about it."""
    from linkwise.mixture.classes.decisions import contradiction_sentence

    if report.contradictions:
        out.say("Against beliefs of ±1 (raise --confidence, allow more clusters with -k, or change them):")
    for found in report.contradictions:
        out.say(f"  {contradiction_sentence(found)}")


def _cell(value: Any) -> str:
    if isinstance(value, float | np.floating):
        return "–" if np.isnan(value) else f"{value:.3g}"
    if isinstance(value, list | tuple):
        return ", ".join(_cell(item) for item in value)
    return str(value)


def _write(
    out: Output,
    samples: Samples,
    model: CPPC,
    sweep: ComponentSweep | None,
    report: ClassReport,
    preparation: Preparation,
    label_column: str,
    folder: Path,
    suffix: str,
) -> dict[str, Path]:
    import pandas

    from linkwise.mixture.classes.plan import Evidence

    legend = np.array(report.legend, dtype=object)
    labels = np.asarray(model.labels_)
    assert samples.labels is not None
    results = {
        "new_class": legend[labels],
        "cluster": labels,
        "probability": np.asarray(model.responsibilities_)[np.arange(len(labels)), labels],
    }
    present = [None if name is None else str(name) for name in samples.labels]
    frame = output_frame(samples, results, {label_column: present}, note=out.warn)
    names = [str(name) for name in report.classes]
    separability = pandas.DataFrame(report.separability, columns=names)
    separability.insert(0, free_name("class", names), names)
    files = {
        "labels": write_frame(folder / f"labels{suffix}", frame),
        "separability": write_frame(folder / f"separability{suffix}", separability),
    }
    if sweep is None:
        found = [{**one, "classes": ", ".join(map(str, one["classes"]))} for one in report.evidence]
        evidence = pandas.DataFrame(found, columns=list(Evidence._fields))
        files["evidence"] = write_frame(folder / f"evidence{suffix}", evidence)
    else:
        files["criterion"] = write_frame(folder / f"criterion{suffix}", sweep.to_frame().reset_index())
    decisions = report.to_frame("decisions").map(
        lambda value: _cell(value) if isinstance(value, list | tuple) else value
    )
    files["decisions"] = write_frame(folder / f"decisions{suffix}", decisions)
    if report.mislabelled:
        files["mislabelled"] = write_frame(
            folder / f"mislabelled{suffix}", _mislabelled_frame(samples, report, label_column)
        )
    named = replace(preparation, clusters=list(report.legend))
    files["model"] = save_prepared_model(folder / "model", model, named)
    files["report"] = write_text(folder / REPORT, report.to_html())
    return files


def _mislabelled_frame(samples: Samples, report: ClassReport, label_column: str) -> Any:
    """Tabulate the rows that are likely mislabelled by the ids of the user."""
    doubts = report.mislabelled or ()
    rows = [doubt.row for doubt in doubts]
    results = {name: np.full(len(samples), None, dtype=object) for name in ("likely_class", "probability")}
    for doubt in doubts:
        results["likely_class"][doubt.row] = str(doubt.told)
        results["probability"][doubt.row] = doubt.probability
    assert samples.labels is not None
    present = [None if name is None else str(name) for name in samples.labels]
    # Names that are taken were noted with the table of labels.
    frame = output_frame(samples, results, {label_column: present}, note=lambda line: None)
    return frame.iloc[rows].infer_objects()


def _as_record(
    model: CPPC, sweep: ComponentSweep | None, report: ClassReport, files: dict[str, Path]
) -> dict[str, Any]:
    from linkwise.mixture.classes.report.text import decision_records

    chosen: dict[str, Any] = {"best_n_clusters": len(model.means_), "evidence": list(report.evidence)}
    if sweep is not None:
        chosen |= {
            "criterion": sweep.criterion,
            "best_n_clusters": sweep.best_n_components,
            "at_edge": sweep.at_edge,
            "curve": {int(row["n_components"]): float(row["mean"]) for row in sweep.table},
        }
    return {
        **chosen,
        "alternatives": dict(report.alternatives),
        "classes": list(report.classes),
        "separability": report.separability,
        "decisions": [
            {
                "kind": decision.kind,
                "classes": list(decision.classes),
                **{name: facts[name] for name in ("n_rows", "certainty", "belief", "contradiction")},
            }
            for decision, facts in zip(report.decisions, decision_records(report), strict=True)
        ],
        "contradictions": report.contradictions,
        "n_mislabelled": len(report.mislabelled or ()),
        "legend": list(report.legend),
        "files": files,
    }
