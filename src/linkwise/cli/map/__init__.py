"""``linkwise map``: from a raster and doubtful classes to a new legend and a new map."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from linkwise._tables import column_names
from linkwise.cli import options
from linkwise.cli.errors import CommandError
from linkwise.cli.map import report as reports
from linkwise.cli.map.classifier import Classifier, tested_classifier
from linkwise.cli.map.legend import (
    FitSettings,
    beliefs_about,
    new_legend,
    refuse_edited,
    renamed,
    stored_legend,
)
from linkwise.cli.options import Covariance
from linkwise.cli.output import REPORT, Output, check_folder, refuse_input, write_text, writing_results
from linkwise.cli.samples import save_prepared_model
from linkwise.cli.tables import write_frame

if TYPE_CHECKING:
    from linkwise.beliefs import ClassBeliefs
    from linkwise.raster import MapWriter


_BELIEFS = "beliefs.csv"
_FILES = (
    "areas.csv",
    _BELIEFS,
    "classes.html",
    "confusion.csv",
    "confusion_by_class.csv",
    "model",
    REPORT,
)
# Arguments of linkwise.raster that its messages advise, and the options of the command.
_OPTIONS = {
    'outside="skip"': "--skip-outside",
    "all_touched=True": "--all-touched",
    "x= and y=": "--x and --y",
    "overwrite=True": "--overwrite",
    "(bands=)": "(--bands)",
    # --crs is that of the samples.
    'pass crs="EPSG:...", or write it': "write it",
}


@dataclass(frozen=True)
class Drawing:
    """How pixels are classified: a model of bands as they are in the raster, and how windows are made."""

    model: Any
    smooth: float | None
    window: int


def map_raster(
    rasters: Annotated[
        list[str],
        typer.Argument(
            metavar="RASTER",
            help="A raster of several bands, several files in the order of the bands, or a pattern in quotes "
            "('scene/*.jp2', ordered by name). Anything GDAL reads.",
        ),
    ],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="MAP.tif", help="The map; tables and report go to MAP_files."),
    ],
    samples: Annotated[
        str | None,
        typer.Option(
            "--samples",
            "-s",
            metavar="FILE",
            help="Samples of known classes: a table of points (columns lon, lat or x, y), polygons or points "
            "(GeoPackage, Shapefile, GeoJSON), or a raster of labels.",
        ),
    ] = None,
    label: Annotated[
        str | None, typer.Option("--label", metavar="COLUMN", help="Column of the samples' present classes.")
    ] = None,
    beliefs: Annotated[
        Path | None,
        typer.Option(
            "--beliefs",
            "-b",
            metavar="FILE",
            help="Table of beliefs about the classes, as in `linkwise classes`. Without it classes stay as "
            "they are; MAP_files/beliefs.csv is a table to edit.",
        ),
    ] = None,
    n_clusters: Annotated[
        str | None,
        typer.Option(
            "-k",
            "--clusters",
            metavar="2:20",
            help="Numbers of new classes to try, the criterion chooses. Without --beliefs, every class may "
            "then be split.",
        ),
    ] = None,
    model: Annotated[
        Path | None, typer.Option("--model", metavar="FOLDER", help="A fitted mixture, instead of samples.")
    ] = None,
    classifier: Annotated[
        Classifier,
        typer.Option(
            "--classifier", help="mixture: its posterior. trees: boosted trees, trained on the new classes."
        ),
    ] = Classifier.mixture,
    smooth: Annotated[
        float | None,
        typer.Option(
            "--smooth",
            metavar="0.5..1",
            help="Probability that neighbouring pixels are of one class, such as 0.8.",
        ),
    ] = None,
    bands: Annotated[
        str | None, typer.Option("--bands", metavar="A,B,..", help="Bands to use: numbers from 1, or names.")
    ] = None,
    values: Annotated[
        str | None,
        typer.Option(
            "--values",
            metavar="A,B,..",
            help="Columns of the samples that hold the values of the bands, in their order: such samples may "
            "lie outside the raster. 'ndvi_*' stands for several columns.",
        ),
    ] = None,
    factor: Annotated[
        float, typer.Option("--factor", help="Multiplies the --values, if pixels are in other units.")
    ] = 1.0,
    x: Annotated[str | None, typer.Option("--x", metavar="COLUMN", help="Column of x or longitude.")] = None,
    y: Annotated[str | None, typer.Option("--y", metavar="COLUMN", help="Column of y or latitude.")] = None,
    crs: Annotated[
        str | None,
        typer.Option("--crs", metavar="EPSG:4326", help="CRS of the samples, if they do not say it."),
    ] = None,
    all_touched: Annotated[
        bool,
        typer.Option(
            "--all-touched",
            help="Use every pixel that a polygon touches, not only pixels whose centre is inside.",
        ),
    ] = False,
    skip_outside: Annotated[
        bool,
        typer.Option("--skip-outside", help="Leave out samples outside the raster instead of refusing them."),
    ] = False,
    per_class: Annotated[
        int | None,
        typer.Option("--per-class", min=2, help="Fit at most this many pixels of a class, drawn at random."),
    ] = None,
    nodata: Annotated[
        float | None,
        typer.Option("--nodata", help="Value that means no data, if the raster does not say it."),
    ] = None,
    rename: Annotated[
        list[str] | None,
        typer.Option("--rename", metavar="OLD=NEW", help="Another name for a new class; may be repeated."),
    ] = None,
    confidence: options.ConfidenceOption = 1.0,
    criterion: options.CriterionOption = None,
    repeats: options.BeliefRepeatsOption = 5,
    covariance: options.CovarianceOption = Covariance.full,
    standardize: options.StandardizeOption = True,
    window: Annotated[
        int,
        typer.Option("--window", min=16, help="Side in pixels of the windows that are classified at once."),
    ] = 512,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an earlier map.")] = False,
    seed: options.SeedOption = 0,
    as_json: options.JsonOption = False,
) -> None:
    """Redefine doubtful classes and map them.

    Fits the classes of the samples with what is believed about them (CPPC), classifies the raster window by
    window and writes MAP.tif (classes and confidence, with names and colours), MAP.qml for QGIS, and
    MAP_files: report.html, classes.html, areas, tables of errors on held-out samples, the beliefs and the
    model. A run that was interrupted goes on where it was when it is started again.
    """
    out = Output(as_json)
    fitting = FitSettings(n_clusters, criterion, confidence, repeats, covariance.value, standardize, seed)
    _check_options(fitting, classifier, smooth, samples, beliefs, model)
    folder = output.with_name(f"{output.stem}_files")
    _check_output(output, folder, overwrite)
    with _messages():
        from linkwise.raster import Legend, read_stack, training_rows
        from linkwise.raster.grid import grid_of, pixel_areas

        wanted = [int(band) if band.isdecimal() else band for band in options.names(bands)] or None
        stack = read_stack(rasters[0] if len(rasters) == 1 else rasters, bands=wanted, nodata=nodata)
        refuse_input(output, *stack.attrs["files"], *([] if samples is None else [samples]))
        pixel_areas(grid_of(stack))  # refuses a raster without areas before the long work
        rows = None
        if samples is not None:
            rows = training_rows(
                stack, samples, label=label, x=x, y=y, values=_value_columns(values, samples), factor=factor,
                crs=crs, all_touched=all_touched, outside="skip" if skip_outside else "raise",
                max_per_class=per_class, random_state=seed,
            )  # fmt: skip
            for line in rows.skipped:
                out.warn(f"left out: {line}")
    names = [str(name) for name in np.atleast_1d(stack["band"].values)]
    table = None
    if rows is None:
        assert model is not None
        legend = renamed(stored_legend(model, names), rename or [])
        drawing, checked = Drawing(legend.after_scaling(legend.mixture), smooth, window), None
    else:
        table = beliefs_about(beliefs, rows, fitting)
        if beliefs is None:
            refuse_edited(folder / _BELIEFS, table)
        legend = renamed(new_legend(out, rows, names, table, fitting), rename or [])
        fitted, checked = tested_classifier(out, legend, rows, classifier, seed)
        drawing = Drawing(fitted, smooth, window)
    colours = Legend(legend.names)
    with (
        ExitStack() as results,  # the folder comes last, when the map is in its place
        _messages(),
        _map_writer(output, stack, colours, overwrite, drawing) as writer,
    ):
        n_resumed = len(writer.done)
        _classify(out, writer, stack, drawing)
        about = reports.about_map(stack, rows, fitting, classifier, smooth, model)
        facts = reports.facts_of(output.name, about, legend, colours.colors, rows, checked, writer, stack)
        draft = results.enter_context(_results(folder))
        written = _write(out, facts, table, draft)
        if model is not None and (folder / _BELIEFS).exists() and _is_inside(model, folder):
            shutil.copy(folder / _BELIEFS, draft)  # those that the model was fitted with
    files = {"map": output, "style": output.with_suffix(".qml")}
    files |= {kind: folder / path.name for kind, path in written.items()}
    reports.say_all(out, facts, n_resumed)
    if classifier is Classifier.trees:
        out.say(f"{folder / 'model'} is the mixture that found the classes; trees cannot be stored.")
    out.say_written(files)
    out.finish({**reports.as_record(facts), "n_resumed": n_resumed, "files": files})


def _check_options(
    fitting: FitSettings,
    classifier: Classifier,
    smooth: float | None,
    samples: str | None,
    beliefs: Path | None,
    model: Path | None,
) -> None:
    """Refuse what contradicts itself before anything is read."""
    options.check_criterion(fitting.criterion, fitting.counts)
    if smooth is not None and not 0.5 <= smooth < 1.0:
        raise typer.BadParameter(f"{smooth:g} is outside 0.5 (no smoothing) to 1.", param_hint="--smooth")
    if (samples is None) == (model is None):
        missing = (
            "neither --samples nor --model is given"
            if model is None
            else "--samples and --model are both given"
        )
        raise CommandError(
            f"{missing}; pass samples to fit the classes to, or a model that was fitted before"
        )
    if model is not None and (beliefs is not None or fitting.counts is not None):
        raise CommandError(
            "--beliefs and -k are about the fit, but --model is fitted already; pass --samples instead"
        )
    if model is not None and classifier is Classifier.trees:
        raise CommandError("--classifier trees is trained on samples; pass --samples instead of --model")


def _check_output(output: Path, folder: Path, overwrite: bool) -> None:
    """Refuse a map that cannot be written, or that is there already, before anything long runs."""
    if output.suffix.lower() not in (".tif", ".tiff"):
        raise CommandError(f"-o {output} is no name of a GeoTIFF; end it with .tif")
    check_folder(output.parent)
    check_folder(folder, "map", _FILES)
    beside = (output.with_name(f"{output.name}{suffix}") for suffix in (".aux.xml", ".ovr"))
    for path in (output, output.with_suffix(".qml"), *beside):
        if os.path.lexists(path) and not overwrite:
            raise CommandError(f"{path} exists; pass --overwrite to replace it, or another -o")


def _value_columns(text: str | None, samples: str) -> list[str] | None:
    """List the columns of --values; a pattern stands for all columns it matches, in their order."""
    wanted = options.names(text)
    if not wanted:
        return None
    columns: list[str] = []
    for name in wanted:
        found = (
            [column for column in column_names(samples) if fnmatchcase(column, name)]
            if "*" in name
            else [name]
        )
        if not found:
            raise CommandError(f"{samples} has no column like {name!r}; name the columns that hold the bands")
        columns += found
    return columns


@contextmanager
def _messages() -> Iterator[None]:
    """Make messages of linkwise.raster advise options instead of arguments."""
    try:
        yield
    except ImportError as error:
        if "linkwise[raster]" not in str(error):
            raise
        raise CommandError(str(error)) from None
    except (ValueError, FileExistsError) as error:
        text = str(error)
        for argument, option in _OPTIONS.items():
            text = text.replace(argument, option)
        text = re.sub(
            r'\b(crs|factor|nodata|values|bands)="?([^\s",;)]*)"?( to read_stack)?', r"--\1 \2", text
        )
        raise CommandError(text) from None


def _map_writer(output: Path, stack: Any, colours: Any, overwrite: bool, drawing: Drawing) -> MapWriter:
    from linkwise.raster import MapWriter, fingerprint

    same = fingerprint(stack, drawing.model, smooth=drawing.smooth, window=drawing.window)
    return MapWriter(output, like=stack, legend=colours, overwrite=overwrite, fingerprint=same)


def _classify(out: Output, writer: MapWriter, stack: Any, drawing: Drawing) -> None:
    """Write the windows that are not there yet."""
    from linkwise.raster import iter_windows

    n_windows = int(np.prod([-(-int(stack.sizes[side]) // drawing.window) for side in ("y", "x")]))
    with out.progress("classifying windows", n_windows) as advance:
        for _ in writer.done:
            advance()
        found = iter_windows(
            stack, drawing.model, smooth=drawing.smooth, window=drawing.window, done=writer.done
        )
        for place, classes, sure in found:
            writer.write(place, classes, sure)
            advance()


@contextmanager
def _results(folder: Path) -> Iterator[Path]:
    """Yield a draft of the results; a folder that did not exist is removed again if nothing comes of them."""
    new = not folder.exists()
    try:
        with writing_results(folder, "map") as draft:
            yield draft
    except BaseException:
        if new:
            with suppress(OSError):
                folder.rmdir()
        raise


def _is_inside(path: Path, folder: Path) -> bool:
    return path.resolve().is_relative_to(folder.resolve())


def _write(out: Output, facts: reports.Facts, beliefs: ClassBeliefs | None, folder: Path) -> dict[str, Path]:
    files = {
        name: write_frame(folder / f"{name}.csv", frame) for name, frame in reports.frames(facts).items()
    }
    if beliefs is not None:
        beliefs.to_csv(folder / _BELIEFS)
        files["beliefs"] = folder / _BELIEFS
    if facts.legend.report is not None:
        files["classes"] = write_text(folder / "classes.html", facts.legend.report.to_html())
    files["model"] = save_prepared_model(folder / "model", facts.legend.whole, facts.legend.preparation)
    files["report"] = write_text(folder / REPORT, reports.page(facts, out.warnings).html())
    return files
