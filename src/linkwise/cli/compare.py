"""``linkwise compare``: all methods side by side, scored against known classes, or by links held out."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
import typer
from numpy.typing import NDArray

from linkwise._arrays import Bools, Ints
from linkwise._pages import Page, TextTable
from linkwise.cli import options
from linkwise.cli.errors import CommandError
from linkwise.cli.options import METHODS, Covariance, Settings, hardened, has_soft
from linkwise.cli.output import REPORT, Output, check_folder, write_results, write_text
from linkwise.cli.samples import Preparation, output_frame
from linkwise.cli.tables import check_links, write_frame

if TYPE_CHECKING:
    from linkwise.constraints import Constraints
    from linkwise.model_selection.held_out import HeldOut


_PLAIN = {"kmeans": "k-means, no links", "mixture": "Gaussian mixture, no links"}


@dataclass(frozen=True)
class Comparison:
    """The result of one method; without labels, ``note`` says why it failed."""

    method: str
    title: str
    labels: Ints | None
    scores: TruthScores | None
    unlinked: TruthScores | None
    links_kept: str
    seconds: float
    note: str
    held_out: HeldOutScore | None = None

    def named(self) -> list[str]:
        """The first cells of a row about it."""
        return [self.method, self.title + (f"; {self.note}" if self.note else "")]

    def ended(self) -> list[str]:
        """The last cells of a row about it."""
        return [self.links_kept, f"{self.seconds:.2f}"]


class HeldOutScore(NamedTuple):
    """Share of held-out links kept, averaged over both kinds and repeats, and its standard error."""

    agreement: float
    error: float


@options.with_groups
def compare(
    data: options.DataArgument,
    *,
    label_column: Annotated[
        str | None,
        typer.Option(
            "--label",
            metavar="COLUMN",
            help="Column of the known classes to score by. Without it links are held out to score by.",
        ),
    ] = None,
    links: options.LinkFile,
    n_clusters: Annotated[
        int | None,
        typer.Option("-k", "--clusters", min=1, help="Number of clusters; that of the classes by default."),
    ] = None,
    effort: options.EffortOption = None,
    certainty: options.CertaintyOption = None,
    rows: options.Rows,
    covariance: options.CovarianceOption = Covariance.full,
    starts: options.StartsOption = 10,
    repeats: Annotated[int, typer.Option("--repeats", min=1, help="How often links are held out.")] = 5,
    seed: options.SeedOption = 0,
    output: options.OutputOption = None,
    table_format: options.FormatOption = None,
    safe_csv: options.SafeCsvOption = False,
    as_json: options.JsonOption = False,
) -> None:
    """Run every method and score it by known classes that the fit does not use, or by held-out links.

    Without --label a fifth of the links is left out of the fit, several times, and the score is the share of
    them that the clusters keep, must-links and cannot-links counting half each. The first two rows are
    methods without links: they show how much the links help the others. The row auto is what `linkwise fit`
    does by default; --effort quick shortens it.
    """
    out = Output(as_json)
    if label_column is None and links.path is None:
        raise typer.BadParameter("pass known classes, or --links to hold out.", param_hint="--label")
    if label_column is None and n_clusters is None:
        raise typer.BadParameter(
            "missing; say how many clusters, or name the column of known classes.", param_hint="-k"
        )
    options.check_certainty(certainty, links.path)
    suffix = options.chosen_format(table_format, data)
    check_folder(output, "compare", [f"comparison{suffix}", REPORT])
    samples = rows.read(data, label_column=label_column)
    truth = samples.labels
    n_classes = 0
    if truth is not None:
        n_classes = len({name for name in truth.tolist() if name is not None and name != -1})
    if truth is not None and n_classes == 0:
        raise CommandError(
            f"{data}: column {label_column!r} names no class; pass --label with the column of known ones"
        )
    k = n_clusters or n_classes
    options.refuse_more_clusters(k, len(samples))
    constraints = links.read(samples, certainty)
    check_links(constraints, k, samples)
    preparation = Preparation.of(samples, standardize=rows.standardize, clusters=[str(c) for c in range(k)])
    effort = effort or options.Effort.balanced
    settings = Settings(k, covariance.value, starts, seed, has_soft(constraints), effort=effort.value)
    X = preparation.apply(samples.features)
    held_out = hold_outs(constraints, repeats, seed) if truth is None else []
    compared = compare_methods(out, X, truth, constraints, settings, held_out)
    table = comparison_table(compared, constraints)
    for note in samples.notes:
        out.say(note)
    classes = "" if truth is None else f" {n_classes} classes,"
    out.say(f"{len(samples)} rows,{classes} {k} clusters; {constraints}")
    out.table(table)
    files: dict[str, Path] = {}
    if output is not None:
        results: dict[str, Any] = {}
        if truth is not None:
            results[f"true_{label_column}"] = [None if name is None else str(name) for name in truth]
        results |= {row.method: row.labels for row in compared if row.labels is not None}
        frame = output_frame(samples, results, note=out.warn)
        about = f"{len(samples)} rows,{classes} {k} clusters. {constraints}."
        report = Page(f"Methods compared on {samples.path.name}", notes=[about], warnings=out.warnings)
        score = "Accuracy" if truth is not None else "Share of held-out links kept"
        report.picture(comparison_png(compared), f"{score} of every method")
        report.table(table)
        files = write_results(
            out,
            output,
            "compare",
            lambda draft: {
                "labels": write_frame(draft / f"comparison{suffix}", frame),
                "report": write_text(draft / REPORT, report.html()),
            },
        )
    out.finish(
        {
            "n_clusters": k,
            "n_links": constraints.n_pairs,
            "methods": [_record(row) for row in compared],
            "files": files,
        }
    )


def hold_outs(links: Constraints, repeats: int, seed: int) -> list[HeldOut]:
    """Parts of the links to score by; refuse links that leave nothing to ask."""
    from linkwise.model_selection.held_out import both_kinds, hold_out

    if not both_kinds(links):
        raise CommandError(
            "without known classes, must-links and cannot-links are needed to score by; pass both, or --label"
        )
    seeds = np.random.default_rng(seed).integers(2**31, size=repeats).tolist()
    try:
        return [hold_out(links, one) for one in seeds]
    except ValueError:
        raise CommandError(
            "the links to hold out follow from the others, so that they score nothing; pass more links"
        ) from None


def compare_methods(
    out: Output,
    X: Any,
    truth: NDArray[Any] | None,
    links: Constraints,
    settings: Settings,
    held_out: Sequence[HeldOut] = (),
) -> list[Comparison]:
    """Fit every method with all links, and to score it with parts left out; one that refuses says why."""
    rows = []
    with out.progress("comparing", len(_PLAIN) + len(METHODS)) as advance:
        for name in [*_PLAIN, *METHODS]:
            rows.append(_compared(name, X, truth, links, settings, held_out))
            advance()
    return rows


def _compared(
    name: str,
    X: Any,
    truth: NDArray[Any] | None,
    links: Constraints,
    settings: Settings,
    held_out: Sequence[HeldOut],
) -> Comparison:
    """Fit one method with all links, and to score it with parts left out."""
    title = _PLAIN.get(name) or METHODS[name].title
    began = time.perf_counter()
    by_links = None
    try:
        labels, note = _fit(name, X, links, settings)
        if held_out:
            by_links = _score_held_out(name, X, labels, settings, held_out)
    except (ValueError, RuntimeError) as error:  # also budgets that are exceeded
        seconds = time.perf_counter() - began
        return Comparison(name, title, None, None, None, "–", seconds, f"failed: {error}")
    seconds = time.perf_counter() - began
    unlinked = np.ones(len(X), dtype=bool)
    unlinked[links.pairs.ravel()] = False
    scores = score_truth(truth, labels)
    rest = score_truth(truth, labels, unlinked) if links.n_pairs else scores
    kept = links_kept(links, labels)
    return Comparison(name, title, labels, scores, rest, kept, seconds, note, by_links)


def _score_held_out(
    name: str, X: Any, labels: Ints, settings: Settings, held_out: Sequence[HeldOut]
) -> HeldOutScore:
    """Score a method by links that its fit did not see; methods without links see none in any case."""
    from linkwise.model_selection.held_out import corrected_error

    errors = [
        part.error(labels if name in _PLAIN else _fit(name, X, part.kept, settings)[0]) for part in held_out
    ]
    return HeldOutScore(1.0 - float(np.mean(errors)), corrected_error(np.array(errors)))


def _fit(name: str, X: Any, links: Constraints, settings: Settings) -> tuple[Ints, str]:
    if name == "kmeans":
        from sklearn.cluster import KMeans

        model = KMeans(settings.n_clusters, n_init=settings.n_init, random_state=settings.seed)
        return np.asarray(model.fit_predict(X)), ""
    if name == "mixture":
        # Without links PPC is scikit-learn's GaussianMixture.
        return np.asarray(METHODS["ppc"].build(settings).fit_predict(X)), ""
    note = ""
    if METHODS[name].only_hard and settings.soft:
        links, note = hardened(links), "soft links taken as hard"
    model = METHODS[name].build(settings)
    labels = model.fit(X, constraints=links if links.n_pairs else None).labels_
    return np.asarray(labels), note


def comparison_table(rows: list[Comparison], links: Constraints) -> TextTable:
    """Tabulate the scores, those of rows without links only where there are links."""
    if any(row.held_out is not None for row in rows):
        return _held_out_table(rows)

    heads = ["method", "", "accuracy", "pairwise F", "Rand", "acc. unlinked", "links kept", "seconds"]
    cells = []
    for row in rows:
        known = row.scores and (row.scores.accuracy, row.scores.pairwise_f1, row.scores.rand)
        unlinked = None if row.unlinked is None else row.unlinked.accuracy
        cells.append([*row.named(), *map(_figure, known or (None,) * 3), _figure(unlinked), *row.ended()])
    if not links.n_pairs:
        heads = heads[:5] + heads[7:]
        cells = [row[:5] + row[7:] for row in cells]
    return TextTable("Methods against the known classes", heads, cells, 2)


def _held_out_table(rows: list[Comparison]) -> TextTable:
    cells = [[*row.named(), *map(_figure, row.held_out or (None, None)), *row.ended()] for row in rows]
    heads = ["method", "", "held-out links kept", "std. error", "links kept", "seconds"]
    return TextTable("Methods by links that they did not see", heads, cells, 2)


def _figure(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def comparison_png(rows: list[Comparison]) -> bytes:
    """Draw accuracies, or shares of held-out links, as bars, those of methods without links in grey."""
    from linkwise._pages import new_figure, png_of
    from linkwise.displays._drawing import COLOURS

    by_links = any(row.held_out is not None for row in rows)
    shown = [row for row in rows if (row.held_out if by_links else row.scores) is not None][::-1]
    figure, ax = new_figure(size=(7.2, 0.5 + 0.4 * len(shown)))
    values = [row.held_out.agreement for row in shown if row.held_out is not None]
    values = values or [row.scores.accuracy for row in shown if row.scores is not None]
    colours = ["0.65" if row.method in _PLAIN else COLOURS[0] for row in shown]
    bars = ax.barh([row.method for row in shown], values, color=colours)
    ax.bar_label(bars, fmt="%.3f", padding=3)
    ax.set_xlim(0.0, 1.12)
    ax.set_xlabel(("share of held-out links kept" if by_links else "accuracy") + " (grey: without links)")
    ax.spines[["top", "right"]].set_visible(False)
    return png_of(figure)


def _record(row: Comparison) -> dict[str, Any]:
    record: dict[str, Any] = {
        name: getattr(row, name) for name in ("method", "seconds", "links_kept", "note")
    }
    if row.held_out is not None:
        record |= {"held_out_links": row.held_out.agreement, "standard_error": row.held_out.error}
    if row.scores is not None:
        record |= {name: getattr(row.scores, name) for name in ("accuracy", "pairwise_f1", "rand")}
    return record


@dataclass(frozen=True)
class TruthScores:
    """How well clusters match known classes, over the ``n_rows`` rows whose class is known."""

    accuracy: float
    pairwise_f1: float
    rand: float
    n_rows: int


def score_truth(
    truth: NDArray[Any] | None, labels: NDArray[Any], rows: Bools | None = None
) -> TruthScores | None:
    """Score the rows whose class is known (not None or -1); None if there are fewer than two."""
    if truth is None:
        return None
    from linkwise import metrics

    known = np.array([name is not None and name != -1 for name in truth.tolist()], dtype=bool)
    if rows is not None:
        known &= rows
    if known.sum() < 2:
        return None
    y, found = truth[known], np.asarray(labels)[known]
    return TruthScores(
        metrics.clustering_accuracy(y, found),
        metrics.pairwise_f1(y, found),
        metrics.rand_score(y, found),
        int(known.sum()),
    )


def links_kept(links: Constraints, labels: NDArray[Any]) -> str:
    """Write ``38 of 40``, or a dash if there are no links."""
    if not links.n_pairs:
        return "–"
    return f"{links.n_pairs - int(links.violations(labels).sum())} of {links.n_pairs}"
