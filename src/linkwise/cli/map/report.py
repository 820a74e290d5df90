"""What ``linkwise map`` tells about a map: tables, a page, and a record for JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from linkwise._pages import Markup, Page, TextTable, new_figure, png_of
from linkwise._validation import listed
from linkwise.cli.classes import decision_table, say_evidence
from linkwise.cli.map.classifier import Classifier, HeldOut
from linkwise.cli.map.legend import FitSettings, NewLegend
from linkwise.cli.output import Output

if TYPE_CHECKING:
    import pandas

    from linkwise.raster import ClassArea, MapWriter, TrainingRows
    from linkwise.raster.picture import SmallMap

#: Pixels along the longer side of the pictures.
_MOST_DRAWN = 1000
#: Two standard errors on both sides hold 95 %.
_95_PERCENT = 1.96

_AREAS_NOTE = (
    "Counted: pixels times their area on the ground. Adjusted: the counted areas corrected by the errors on "
    "held-out samples, with a 95 % interval (Olofsson et al. 2013). This supposes that samples were drawn at "
    "random within each class of the map. If yours were collected otherwise, check a random sample of the "
    "finished map before you publish these figures."
)
_ELSEWHERE_NOTE = (
    "The samples carry their own values and need not lie in this raster: errors and adjusted areas suppose "
    "that the classes look the same here as where the samples are from."
)
_CONFIDENCE_NOTE = (
    "Probability of the class that a pixel has, if every pixel is of one of these classes; with smoothing, "
    "given the classes of its neighbours. What no sample showed may get a class with full confidence."
)


_TREES = "boosted trees, which cannot be stored: MAP_files/model is the mixture that found the classes"


@dataclass(frozen=True)
class Facts:
    """What the report is made of."""

    map_name: str
    about: list[tuple[str, str]]
    legend: NewLegend
    colours: list[str]
    areas: list[ClassArea]
    picture: SmallMap
    confidence: NDArray[np.floating]
    rows: TrainingRows | None
    held_out: HeldOut | None


def thinned_map(writer: MapWriter, stack: Any) -> tuple[SmallMap, NDArray[Any]]:
    """Take every n-th pixel of a map that is being written, and its confidence in percent."""
    from linkwise.raster.grid import grid_of
    from linkwise.raster.picture import SmallMap, every_nth, ground_size, north_up

    grid = grid_of(stack)
    step = every_nth(grid.shape, _MOST_DRAWN)
    parts = [pixels[:, -int(strip.row_off) % step :: step, ::step] for strip, pixels in writer.strips()]
    classes, confidence = north_up(np.concatenate(parts, axis=1), grid)
    size = ground_size(grid)
    return SmallMap(classes, None if size is None else (step * size[0], step * size[1])), confidence


def about_map(
    stack: Any,
    rows: TrainingRows | None,
    fitting: FitSettings,
    kind: Classifier,
    smooth: float | None,
    model: Path | None,
) -> list[tuple[str, str]]:
    """List how the map was made."""
    files = [Path(path).name for path in stack.attrs.get("files", [])]
    bands = [str(name) for name in np.atleast_1d(stack["band"].values)]
    lines = [
        ("raster", listed(files, 3)),
        ("size", f"{int(stack.sizes['y'])} x {int(stack.sizes['x'])} pixels, {len(bands)} bands"),
        ("CRS", f"EPSG:{code}" if (code := stack.rio.crs.to_epsg()) else stack.rio.crs.to_proj4()),
    ]
    if rows is None:
        lines.append(("model", str(model)))
    else:
        chosen = (
            "evidence" if fitting.counts is None else f"{fitting.criterion or 'cbic'} among {fitting.counts}"
        )
        lines += [
            ("samples", f"{len(rows.y)} of {len(np.unique(rows.groups))} points or polygons"),
            ("number of classes by", chosen),
            ("classifier", "posterior of the mixture" if kind is Classifier.mixture else _TREES),
        ]
    told = "none" if smooth is None else f"neighbours are of one class with probability {smooth:g}"
    return [*lines, ("smoothing", told)]


def facts_of(
    name: str,
    about: list[tuple[str, str]],
    legend: NewLegend,
    colours: list[str],
    rows: TrainingRows | None,
    checked: HeldOut | None,
    writer: MapWriter,
    stack: Any,
) -> Facts:
    """Collect what the report tells, from a map that is being written."""
    from linkwise.raster import areas

    confusion = None if checked is None else checked.confusion
    picture, confidence = thinned_map(writer, stack)
    return Facts(
        map_name=name,
        about=about,
        legend=legend,
        colours=colours,
        areas=areas(writer, confusion=confusion),
        picture=picture,
        confidence=confidence,
        rows=rows,
        held_out=checked,
    )


def legend_table(facts: Facts) -> TextTable:
    """Tabulate the new classes: colour, samples of each present class, share of the map."""
    whole = sum(area.pixels for area in facts.areas) or 1
    rows = []
    for k, (name, colour, area) in enumerate(
        zip(facts.legend.names, facts.colours, facts.areas, strict=True)
    ):
        swatch = Markup(
            "<span style='display:inline-block;width:1.6em;height:1em;border:1px solid #444;"
            f"background:{colour}'></span>"
        )
        rows.append([swatch, str(k + 1), name, _made_of(facts, k), f"{area.pixels / whole:.1%}"])
    return TextTable("", ["", "value", "new class", "samples", "of the map"], rows, 4)


def _made_of(facts: Facts, k: int) -> str:
    """Samples of the present classes in a new class, most first."""
    if facts.rows is None or facts.legend.labels is None:
        return "–"
    names, counts = np.unique(facts.rows.y[facts.legend.labels == k], return_counts=True)
    order = np.argsort(-counts, kind="stable")
    return ", ".join(f"{names[place]} {counts[place]}" for place in order) or "–"


def before_table(facts: Facts) -> TextTable:
    """Tabulate the present classes and what became of their samples."""
    assert facts.rows is not None
    assert facts.legend.labels is not None
    rows = []
    for name in np.unique(facts.rows.y):
        codes = facts.legend.labels[facts.rows.y == name]
        counts = np.bincount(codes, minlength=len(facts.legend.names))
        order = [k for k in np.argsort(-counts, kind="stable") if counts[k]]
        became = ", ".join(f"{facts.legend.names[k]} {counts[k]}" for k in order)
        rows.append([str(name), str(len(codes)), became])
    return TextTable("", ["class before", "samples", "new classes"], rows, 3)


def areas_table(areas: Sequence[ClassArea]) -> TextTable:
    """Tabulate hectares of each class."""
    rows = [
        [
            area.name,
            str(area.pixels),
            f"{area.hectares:,.0f}",
            "–" if np.isnan(area.adjusted) else f"{area.adjusted:,.0f}",
            "–" if np.isnan(area.standard_error) else f"± {_95_PERCENT * area.standard_error:,.0f}",
        ]
        for area in areas
    ]
    columns = ["class", "pixels", "hectares counted", "adjusted", "95 % interval"]
    return TextTable("Areas", columns, rows)


def confusion_table(found: HeldOut, names: Sequence[str]) -> TextTable:
    """Tabulate held-out samples by class on the map and new class, with user's and producer's accuracy."""
    table = found.confusion
    rows = [
        [name, *(str(count) for count in table[k]), str(table[k].sum()), _share(table[k, k], table[k].sum())]
        for k, name in enumerate(names)
    ]
    sums = table.sum(axis=0)
    rows.append(["all", *(str(count) for count in sums), str(table.sum()), ""])
    right = [_share(table[k, k], sums[k]) for k in range(len(names))]
    rows.append(["found (producer's accuracy)", *right, "", f"{found.accuracy:.0%}"])
    return TextTable("", ["on the map", *names, "all", "right (user's accuracy)"], rows)


def by_class_table(found: HeldOut, names: Sequence[str]) -> TextTable:
    """Tabulate held-out samples by the class they came with and the class on the map."""
    rows = [
        [name, *(str(count) for count in counts)]
        for name, counts in zip(found.classes, found.by_class, strict=True)
    ]
    return TextTable("", ["class before", *names], rows)


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.0%}" if whole else "–"


def frames(facts: Facts) -> dict[str, pandas.DataFrame]:
    """Make the tables that are written as CSV."""
    import pandas

    names = facts.legend.names
    written = {
        "areas": pandas.DataFrame(
            [
                {
                    "value": k + 1,
                    "class": area.name,
                    "pixels": area.pixels,
                    "hectares": area.hectares,
                    "adjusted_hectares": area.adjusted,
                    "standard_error_hectares": area.standard_error,
                }
                for k, area in enumerate(facts.areas)
            ]
        )
    }
    if facts.held_out is not None:
        table = pandas.DataFrame(facts.held_out.confusion, columns=list(names))
        table.insert(0, "on the map \\ true", list(names))
        written["confusion"] = table
        table = pandas.DataFrame(facts.held_out.by_class, columns=list(names))
        table.insert(0, "class before \\ on the map", facts.held_out.classes)
        written["confusion_by_class"] = table
    return written


def page(facts: Facts, warnings: Sequence[str]) -> Page:
    """Make the report."""
    from linkwise.mixture.classes.report.text import alternative_lines, evidence_lines

    made = Page(f"Map {facts.map_name}", warnings=warnings)
    made.picture(map_png(facts), f"Map of {len(facts.legend.names)} classes with a scale and a legend")
    made.heading("The legend")
    made.table(legend_table(facts))
    report = facts.legend.report
    if report is not None:
        made.text("Before:")
        made.table(before_table(facts))
        made.heading("What was split, merged and kept")
        shown = decision_table(report)
        made.table(TextTable("", shown.columns, shown.rows, shown.text_columns))
        lines = [*evidence_lines(report), *alternative_lines(report)] if report.evidence else []
        if lines:
            made.add("<ul>" + "".join(f"<li>{escape(line)}</li>" for line in lines) + "</ul>")
        made.text("classes.html tells more: beliefs, separability, and which belief would change a decision.")
    made.heading("Areas")
    shown = areas_table(facts.areas)
    made.table(TextTable("", shown.columns, shown.rows, shown.text_columns))
    made.text(_AREAS_NOTE if facts.held_out is not None else _AREAS_NOTE.split(" Adjusted")[0], "quiet")
    if any(area.standard_error == 0.0 for area in facts.areas):
        made.text("An interval of ± 0 says that no held-out sample was wrong, not that no pixel is.", "quiet")
    if facts.held_out is not None:
        if facts.rows is not None and (facts.rows.pixels < 0).all():
            made.text(_ELSEWHERE_NOTE, "quiet")
        _add_errors(made, facts, facts.held_out)
    made.heading("Confidence")
    made.picture(confidence_png(facts), "Map of the confidence", _CONFIDENCE_NOTE)
    made.heading("How it was made")
    made.table(TextTable("", ["", ""], facts.about, 2))
    return made


def _add_errors(made: Page, facts: Facts, found: HeldOut) -> None:
    names = facts.legend.names
    made.heading("Errors on held-out samples")
    made.text(accuracy_line(found))
    made.table(confusion_table(found, names))
    made.text(
        "True is here the new class that a sample got when the legend was found, with all samples. By the "
        "classes that the samples came with:"
    )
    made.table(by_class_table(found, names))


def say_all(out: Output, facts: Facts, n_resumed: int) -> None:
    """Print what the map holds."""
    if facts.legend.report is not None:
        out.table(decision_table(facts.legend.report))
        if facts.legend.report.evidence:
            say_evidence(out, facts.legend.report)
    out.table(areas_table(facts.areas))
    if facts.held_out is not None:
        out.say(accuracy_line(facts.held_out))
    if n_resumed:
        out.say(f"{n_resumed} windows were taken over from a run that was interrupted.")


def accuracy_line(found: HeldOut) -> str:
    """Say how many held-out samples get their new class."""
    low, high = found.accuracy_interval
    return (
        f"{found.accuracy:.1%} (95 % interval: {low:.1%} to {high:.1%}) of {int(found.confusion.sum())} "
        "samples get their new class from a classifier that has not seen their point or polygon "
        f"({found.n_folds} folds of {found.n_groups} points or polygons)."
    )


def map_png(facts: Facts) -> bytes:
    """Draw the map with scale and legend."""
    from linkwise.displays import ClassMapDisplay

    figure, ax = _figure(facts)
    labels = np.where(facts.picture.codes > 0, facts.picture.codes.astype(np.int64), -1)
    codes = range(1, len(facts.legend.names) + 1)
    ClassMapDisplay(
        labels,
        dict(zip(codes, facts.legend.names, strict=True)),
        colors=dict(zip(codes, facts.colours, strict=True)),
        cell_size=facts.picture.cell_size,
    ).plot(ax)
    return png_of(figure)


def confidence_png(facts: Facts) -> bytes:
    """Draw the confidence."""
    figure, ax = _figure(facts)
    shown = np.ma.masked_array(facts.confidence, facts.picture.codes == 0)
    size = facts.picture.cell_size
    image = ax.imshow(
        shown, cmap="cividis", vmin=0, vmax=100, interpolation="nearest",
        aspect=1.0 if size is None else size[0] / size[1],
    )  # fmt: skip
    ax.set(xticks=[], yticks=[])
    figure.colorbar(image, ax=ax, label="confidence (%)", shrink=0.8)
    return png_of(figure)


def _figure(facts: Facts) -> Any:
    height, width = facts.picture.codes.shape
    size = facts.picture.cell_size
    tall = height / width * (1.0 if size is None else size[0] / size[1])
    return new_figure(size=(9.0, 0.6 + 6.4 * min(max(tall, 0.3), 1.6)))


def as_record(facts: Facts) -> dict[str, Any]:
    """Make the JSON object of the result."""
    found = facts.held_out
    return {
        "legend": facts.legend.names,
        "colors": facts.colours,
        "n_samples": None if facts.rows is None else len(facts.rows.y),
        "areas": [area._asdict() for area in facts.areas],
        "accuracy": None if found is None else found.accuracy,
        "accuracy_interval": None if found is None else found.accuracy_interval,
        "confusion": None if found is None else found.confusion,
        "confusion_by_class": None
        if found is None
        else dict(zip(found.classes, found.by_class.tolist(), strict=True)),
    }
