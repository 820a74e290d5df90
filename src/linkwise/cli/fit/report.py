"""What ``linkwise fit`` tells: tables, files, a page, and a record for JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linkwise._arrays import Ints
from linkwise._pages import Page, TextTable, new_figure, png_of
from linkwise.auto import summary
from linkwise.cli.compare import links_kept
from linkwise.cli.fit.fitting import Fit
from linkwise.cli.options import METHODS
from linkwise.cli.output import REPORT, Output, write_text
from linkwise.cli.samples import cluster_columns, output_frame, save_prepared_model
from linkwise.cli.tables import link_frame, write_frame
from linkwise.constraints.cells import cell_text

if TYPE_CHECKING:
    import pandas

    from linkwise.constraints import Constraints
    from linkwise.model_selection import ComponentSweep

# Doubtful links, and columns of means, that are listed on the terminal and in the report.
_LISTED_LINKS, _LISTED_COLUMNS = 15, 12
# Beyond this a scatter plot takes long and shows no more.
_MOST_POINTS = 20_000
_CRITERIA = {"held_out_links": "share of held-out links broken"}


def all_tables(done: Fit, *, by_source: bool) -> list[TextTable]:
    """The tables for people; the last one is about doubtful answers of sources, or about doubtful links."""
    compared = []
    if done.chosen_by_links:
        compared = [*summary.count_table(done.model), *summary.candidate_table(done.model)]
    doubtful = _doubtful_answers(done) if by_source else _doubtful_links(done)
    tables = [_summary(done), *compared, *_sweep_table(done), _clusters(done), *_classes(done), *_rates(done)]
    return [*tables, doubtful] if doubtful.rows else tables


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
    for name, (rate, low, high, n_answers, n_wrong) in _noise_record(done).items():
        figures = ["–", "–"] if np.isnan(rate) else [f"{rate:.1%}", f"{low:.1%} to {high:.1%}"]
        rows.append([name or "(no name)", str(n_answers), *figures, str(n_wrong)])
    if not rows:
        return []
    heads = ["source", "answers", "wrong", "90 % interval", "probably wrong answers"]
    return [TextTable("How often answers are wrong", heads, rows, 1)]


def _noise_record(done: Fit) -> dict[str, tuple[float, float, float, int, int]]:
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
    title = summary.chosen_in_words(model) if done.chosen_by_links else METHODS[done.method].title
    rows = [
        ["data", f"{done.samples.path}: {len(done.samples)} rows, {done.samples.features.shape[1]} columns"],
        ["links", str(done.links).removeprefix("Constraints(").removesuffix(")")],
        ["method", f"{done.method}: {title}" + (f" (auto: {done.reason})" if done.reason else "")],
        ["fit", f"{state}, {done.seconds:.2f} s"],
        ["links kept", links_kept(done.links, done.labels)],
    ]
    inference = getattr(model, "inference_", {})
    if done.links.n_pairs and "exact" in inference:
        how = "exact" if inference["exact"] else "approximate"
        rows.append(["inference", f"{inference['method']}, {how}"])
    if done.truth is not None:
        scores = (
            f"accuracy {done.truth.accuracy:.3f}, pairwise F {done.truth.pairwise_f1:.3f}, "
            f"Rand {done.truth.rand:.3f} ({done.truth.n_rows} rows)"
        )
        rows.append(["against the known classes", scores])
    return TextTable(f"{len(done.preparation.clusters)} clusters", ["", ""], rows, 2)


def _classes(done: Fit) -> list[TextTable]:
    """Tabulate where the labelled rows of each class are, and which classes are split or share a cluster."""
    if not done.named:
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
        row = [str(k), *([done.preparation.clusters[k]] if done.named else [])]
        if done.samples.labels is not None:
            row.append(_class_counts(done.samples.labels[members]))
        row += [str(count), f"{count / len(done.labels):.1%}"]
        if own is not None:
            row.append(f"{own[members].mean():.3f}" if count else "–")
        rows.append(row)
    known = ["name"] * done.named + ([] if done.samples.labels is None else ["known classes"])
    heads = ["cluster", *known, "rows", "share", *([] if own is None else ["mean probability"])]
    return TextTable("Clusters", heads, rows, 1 + len(known))


def _class_counts(labels: NDArray[Any]) -> str:
    counts = Counter("?" if name is None else str(name) for name in labels.tolist())
    return ", ".join(f"{name} {count}" for name, count in counts.most_common(4))


def _link_frame(done: Fit) -> pandas.DataFrame:
    """Tabulate the links: ends, kind, weight, whether kept, and the probability that the link is wrong."""
    first, second = done.samples.row_names[done.links.pairs.T]
    frame = link_frame(done.links, first, second, ~done.links.violations(done.labels))
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
    names = done.preparation.clusters if done.named else None
    results = cluster_columns(done.labels, names, done.probabilities)
    return output_frame(done.samples, results, note=out.warn)


def write_files(
    done: Fit, tables: list[TextTable], out: Output, folder: Path, suffix: str, seed: int
) -> dict[str, Path]:
    """Write labels, links, candidates, the model and the report."""
    files = {"labels": write_frame(folder / f"labels{suffix}", _label_frame(done, out))}
    if done.links.n_pairs:
        files["links"] = write_frame(folder / f"links{suffix}", _with_classes(_link_frame(done), done.links))
    if done.chosen_by_links:
        files["candidates"] = write_frame(folder / f"candidates{suffix}", summary.selection_frame(done.model))
    files["model"] = save_prepared_model(folder / "model", done.model, done.preparation)
    files["report"] = write_text(folder / REPORT, _page(done, tables, out.warnings, seed).html())
    return files


def _page(done: Fit, tables: list[TextTable], warnings: Sequence[str], seed: int) -> Page:
    title = f"{len(done.preparation.clusters)} clusters of {done.samples.path.name}"
    report = Page(title, notes=done.samples.notes, warnings=warnings)
    report.table(tables[0])
    if done.chosen_by_links:
        report.text(summary.gain_in_words(done.model, done.links.n_pairs))
    labels = np.array(done.preparation.clusters)[done.labels] if done.named else done.labels
    report.picture(
        clusters_png(done.X, labels, done.links if done.links.n_pairs else None, seed=seed),
        "Rows by cluster, with the links between them",
        "Solid lines are must-links, dashed ones cannot-links; broken links are red and crossed out.",
    )
    for table in tables[1:]:
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
    return report


def clusters_png(X: Any, labels: ArrayLike, links: Constraints | None, *, seed: int = 0) -> bytes:
    """Draw rows by cluster with the links; a random part of the rows if they are very many."""
    from linkwise.displays import ClusterDisplay

    shown, names = X, np.asarray(labels)
    if len(names) > _MOST_POINTS:
        rows = _rows_to_show(len(names), links, seed)
        shown, names = (X.iloc[rows] if hasattr(X, "iloc") else X[rows]), names[rows]
        links = None if links is None else links[rows]
    return _drawn(4.8, lambda ax: ClusterDisplay.from_predictions(shown, names, constraints=links, ax=ax))


def _rows_to_show(n_rows: int, links: Constraints | None, seed: int) -> Ints:
    """Choose linked rows first, then others at random."""
    order = np.random.default_rng(seed).permutation(n_rows)
    if links is not None and links.n_pairs:
        linked = np.zeros(n_rows, dtype=bool)
        linked[links.pairs.ravel()] = True
        order = order[np.argsort(~linked[order], kind="stable")]
    return np.sort(order[:_MOST_POINTS])


def criterion_png(sweep: ComponentSweep, criterion: str) -> bytes:
    """Draw a criterion over the numbers of clusters."""
    from linkwise.displays import CriterionDisplay

    return _drawn(3.8, lambda ax: CriterionDisplay.from_sweep(sweep, criterion=criterion, ax=ax))


def annotators_png(model: Any, links: Constraints) -> bytes:
    """Draw the error rate of each source."""
    from linkwise.displays import AnnotatorDisplay

    height = 1.4 + 0.4 * len(model.noise_)
    return _drawn(height, lambda ax: AnnotatorDisplay.from_estimator(model, constraints=links, ax=ax))


def convergence_png(model: Any) -> bytes | None:
    """Draw the objective over the iterations, for estimators that keep it."""
    from linkwise.displays import ConvergenceDisplay

    if len(getattr(model, "objectives_", ())) < 2:
        return None
    return _drawn(3.4, lambda ax: ConvergenceDisplay.from_estimator(model, ax=ax))


def _drawn(height: float, draw: Callable[[Any], object]) -> bytes:
    """A picture of this height in inches, drawn into its axes."""
    figure, ax = new_figure(size=(7.2, height))
    draw(ax)
    return png_of(figure)


def _means(done: Fit) -> TextTable:
    columns = list(done.samples.features.columns)[:_LISTED_COLUMNS]
    means = done.samples.features[columns].groupby(done.labels).mean()
    more = done.samples.features.shape[1] - len(columns)
    rows = [
        [done.preparation.clusters[int(cluster)], *(f"{value:.4g}" for value in row)]
        for cluster, row in zip(means.index, means.to_numpy(), strict=True)
    ]
    return TextTable("Means" + (f" ({more} more columns)" if more else ""), ["cluster", *columns], rows)


def as_record(done: Fit, files: dict[str, Path]) -> dict[str, Any]:
    """Make the JSON object of the result."""
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
    if done.named:
        record |= {
            "cluster_names": done.preparation.clusters,
            "classes": done.model.classes_,
            "contingency": done.model.contingency_,
            "split_classes": done.model.split_classes_,
            "shared_clusters": done.model.shared_clusters_,
        }
    if done.chosen_by_links:
        record |= summary.selection_record(done.model, done.links.n_pairs)
    if done.sweep is not None:
        record["sweep"] = {
            "criterion": done.sweep.criterion,
            "plausible": done.sweep.plausible,
            "infeasible": list(done.infeasible),
            "table": [dict(zip(row.dtype.names, row.tolist(), strict=True)) for row in done.sweep.table],
        }
    noise = _noise_record(done)
    if noise:
        fields = ("rate", "low", "high", "n_answers", "n_wrong")
        record["noise"] = {name: dict(zip(fields, values, strict=True)) for name, values in noise.items()}
    if not files:
        record["labels"] = done.labels
    return record
