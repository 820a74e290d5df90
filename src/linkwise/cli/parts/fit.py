"""``linkwise fit`` on many Parquet files: links by id or row, a fit chunk by chunk, labels for every file."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise._arrays import Ints
from linkwise._pages import Page, TextTable
from linkwise.cli.errors import CommandError
from linkwise.cli.options import METHODS, LinkFile, Rows, Settings, has_soft, names
from linkwise.cli.output import REPORT, Output, check_folder, write_text, writing_results
from linkwise.cli.parts import Parts, Progress, check_scheduler, connected, find_parts, id_rows
from linkwise.cli.parts.labels import Label, write_labels
from linkwise.cli.samples import Preparation, safe_scales, save_prepared_model
from linkwise.cli.tables import build_links, check_links, link_frame, read_link_list, write_frame

if TYPE_CHECKING:
    from linkwise.constraints import Constraints

_METHODS = ("auto", "ppc", "cem", "hmrf")
_CHECKPOINT = ".checkpoint-"


@dataclass(frozen=True)
class PartsRequest:
    """What the user asked for."""

    data: Path
    output: Path
    links: LinkFile
    method: str
    settings: Settings
    rows: Rows
    certainty: float | None
    scheduler: str | None


@dataclass(frozen=True)
class _Links:
    """Links between rows, and how the file of links names the rows."""

    constraints: Constraints
    names: dict[int, str]

    def name(self, row: int) -> Any:
        """Id or number of a row."""
        return self.names.get(row, row)


def fit_parts(out: Output, request: PartsRequest) -> None:
    """Fit many files and write labels for each of them, the model, the links and a report."""
    check_scheduler(request.scheduler)
    if request.method not in _METHODS:
        raise CommandError(
            f"--method {request.method} needs all rows in memory; use {', '.join(_METHODS)}, or one file"
        )
    parts = find_parts(
        request.data,
        id_column=request.rows.id_column,
        features=names(request.rows.features),
        ignore=names(request.rows.ignore),
    )
    links = _read_links(request, parts)
    _check_links(request, links)
    soft = links is not None and has_soft(links.constraints)
    request = replace(request, settings=replace(request.settings, soft=soft))
    check_folder(request.output, "fit", ["labels", "model", REPORT, *(["links.parquet"] if links else [])])
    progress = Progress(parts.n_rows)
    began = time.perf_counter()
    with connected(request.scheduler) as client:
        progress.say(f"{parts.n_rows} rows in {len(parts.paths)} files, {len(parts.columns)} columns")
        preparation = _preparation(parts, client, request.rows.standardize)
        checkpoint = request.output / f"{_CHECKPOINT}{_fingerprint(request, parts, links)}"
        model = _build(request, client, checkpoint)
        model._watch = progress
        X = parts.array(preparation)
        with out.hearing_warnings():
            try:
                model.fit(X, constraints=None if links is None else links.constraints)
            finally:
                progress.end()
                _remove_empty(checkpoint)
        n_clusters = int(getattr(model, "n_clusters_", 0) or request.settings.n_clusters)
        preparation = replace(preparation, clusters=[str(number) for number in range(n_clusters)])
        with writing_results(request.output, "fit") as draft:
            sizes = write_labels(draft / "labels", parts, _results(model, X), n_clusters, progress)
            tables = _tables(request, parts, links, model, sizes, time.perf_counter() - began)
            _write_rest(draft, out, request, links, model, preparation, tables)
        _remove_outdated(request.output)
    for table in tables:
        out.table(table)
    files = {name: request.output / name for name in ("labels", "model", REPORT)}
    out.say_written(files)
    out.finish(
        {
            "method": request.method,
            "n_clusters": n_clusters,
            "n_rows": parts.n_rows,
            "n_files": len(parts.paths),
            "n_links": 0 if links is None else links.constraints.n_pairs,
            "n_violated": int(model.violations_.sum()),
            "converged": bool(model.converged_),
            "n_iter": int(getattr(model, "best_estimator_", model).n_iter_),
            "sizes": sizes,
            "files": files,
        }
    )


def _fingerprint(request: PartsRequest, parts: Parts, links: _Links | None) -> str:
    """Tell a fit from others: one with other options starts anew, and does not go on from this one."""
    from linkwise.dask.checkpoint import digest

    told = None if links is None else [links.constraints.pairs, links.constraints.weights]
    asked = [request.method, repr(request.settings), request.rows.standardize]
    return digest(parts.fingerprint(), asked, told)[:16]


def _remove_outdated(output: Path) -> None:
    """Remove checkpoints of interrupted runs with other options; what others put there stays."""
    for folder in output.glob(f"{_CHECKPOINT}*"):
        ours = re.fullmatch("[0-9a-f]{16}", folder.name.removeprefix(_CHECKPOINT)) and folder.is_dir()
        if ours and all(path.suffix == ".npz" and path.is_file() for path in folder.iterdir()):
            shutil.rmtree(folder, ignore_errors=True)


def _remove_empty(folder: Path) -> None:
    """Remove the folder of a checkpoint whose fit is done."""
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()


def _read_links(request: PartsRequest, parts: Parts) -> _Links | None:
    """Read the links; of ids only those that the links name are looked for in the data."""
    from linkwise.constraints.io import records

    links, id_column = request.links, request.rows.id_column
    if links.path is None:
        return None
    places: dict[str, int] | None = None
    if id_column is not None and not links.by_row:
        try:
            wanted = {cells[end] for _, cells in records(links.path, links.columns) for end in ("i", "j")}
        except ValueError as error:
            raise CommandError(str(error)) from None
        places = id_rows(parts, wanted)
    found = read_link_list(
        links.path, parts.n_rows, places=places, certainty=request.certainty, columns=links.columns
    )
    constraints = build_links(found, parts.n_rows)
    return _Links(constraints, {row: name for name, row in (places or {}).items()})


def _check_links(request: PartsRequest, links: _Links | None) -> None:
    """Refuse a number of clusters that the links do not allow."""
    if links is None:
        return
    counts = request.settings.n_clusters
    if counts != "auto":
        check_links(links.constraints, max(counts) if isinstance(counts, list) else counts)


def _preparation(parts: Parts, client: Any, standardize: bool) -> Preparation:
    """Look at all rows once or twice: refuse what is no number, and find mean and spread of each column."""
    from linkwise.dask.collections import Table
    from linkwise.dask.jobs import ColumnMoments, Look
    from linkwise.dask.passes import Runner

    runner = Runner(Table(parts.array(None), None), client)
    nothing = [np.empty(0, dtype=np.int64) for _ in runner.groups]
    look = runner.sum(Look(parts.dtype), nothing)
    if look.bad is not None:
        row, column, value = look.bad
        what = "is missing" if np.isnan(value) else "is infinite"
        raise CommandError(
            f"{parts.place(row)}: {parts.columns[column]!r} {what}; fill it in, leave the row out, or leave "
            "the column out with --ignore"
        )
    centres, scales = np.zeros(len(parts.columns)), np.ones(len(parts.columns))
    if standardize:
        centres = np.clip(look.total / look.n_rows, look.low, look.high)
        first, second = runner.sum(ColumnMoments(parts.dtype, centres)) / look.n_rows
        spread = np.sqrt(np.maximum(second - first**2, 0.0))
        scales = safe_scales(spread, np.maximum(np.abs(look.low), np.abs(look.high)))
    return Preparation(list(parts.columns), centres.tolist(), scales.tolist(), [], [])


def _build(request: PartsRequest, client: Any, checkpoint: Path) -> Any:
    """The estimator of ``linkwise.dask`` with the settings of the one that the method has in memory."""
    import linkwise.dask

    local = METHODS[request.method].build(request.settings)
    kind = getattr(linkwise.dask, type(local).__name__)
    return kind(**local.get_params(deep=False), client=client, checkpoint=checkpoint)


def _results(model: Any, X: Any) -> Label:
    """Labels, and probabilities if the method has them, of the rows of some pieces, read once for both."""
    import dask

    best = getattr(model, "best_estimator_", model)
    labels, prob = model.labels_, getattr(best, "responsibilities_", None)
    if prob is None and hasattr(best, "predict_proba"):
        prob = best.predict_proba(X)

    def label(pieces: list[int]) -> tuple[Ints, Any]:
        if not pieces:
            return np.empty(0, dtype=np.int64), None if prob is None else np.empty(
                (0, prob.shape[1]), prob.dtype
            )
        wanted = [labels.blocks[pieces]] if prob is None else [labels.blocks[pieces], prob.blocks[pieces]]
        found = dask.compute(*wanted)
        return np.asarray(found[0]), None if prob is None else np.asarray(found[1])

    return label


def _tables(
    request: PartsRequest, parts: Parts, links: _Links | None, model: Any, sizes: Ints, seconds: float
) -> list[TextTable]:
    best = getattr(model, "best_estimator_", model)
    method = METHODS[request.method].title
    if best is not model:
        chosen = next(record.candidate for record in model.selection_ if record.chosen)
        method = f"{method}: {chosen}"
    facts = [
        ["rows", f"{parts.n_rows} in {len(parts.paths)} files"],
        ["columns", str(len(parts.columns))],
        ["method", method],
        ["clusters", str(len(sizes))],
        ["iterations", f"{best.n_iter_}{'' if best.converged_ else ' (not converged)'}"],
    ]
    if links is not None:
        kept = links.constraints.n_pairs - int(model.violations_.sum())
        facts.append(["links kept", f"{kept} of {links.constraints.n_pairs}"])
    facts.append(["seconds", f"{seconds:.1f}"])
    rows = [[str(k), str(size), f"{size / sizes.sum():.1%}"] for k, size in enumerate(sizes.tolist())]
    return [
        TextTable("Fit", ["", ""], facts, 2),
        TextTable("Clusters", ["cluster", "rows", "share"], rows, 1),
    ]


def _write_rest(
    draft: Path,
    out: Output,
    request: PartsRequest,
    links: _Links | None,
    model: Any,
    preparation: Preparation,
    tables: Sequence[TextTable],
) -> None:
    """Write links, model and report."""
    best = getattr(model, "best_estimator_", model)
    if links is not None:
        write_frame(draft / "links.parquet", _link_frame(links, model))
    local = best.to_local(labels=False)
    local.feature_names_in_ = np.array(preparation.columns, dtype=object)
    save_prepared_model(draft / "model", local, preparation)
    page = Page(f"{len(preparation.clusters)} clusters of {request.data}", warnings=out.warnings)
    for table in tables:
        page.table(table)
    write_text(draft / REPORT, page.html())


def _link_frame(links: _Links, model: Any) -> Any:
    first, second = ([links.name(row) for row in column] for column in links.constraints.pairs.T.tolist())
    return link_frame(links.constraints, first, second, ~model.violations_)
