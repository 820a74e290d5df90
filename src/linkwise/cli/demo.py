"""``linkwise demo``: what links and beliefs buy, on data that come with the library."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from linkwise.cli import demo_chapters as chapters
from linkwise.cli import options
from linkwise.cli.demo_chapters import Chapter, Gain
from linkwise.cli.files import REPORT, check_folder, write_bytes, write_text, writing_results
from linkwise.cli.output import Output, TextTable
from linkwise.cli.report import Report

__all__ = ["demo"]


def demo(
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FOLDER", help="Where to write report.html and its pictures."),
    ] = Path("build/demo"),
    as_json: options.JsonOption = False,
) -> None:
    """Show in a minute what links buy: noisy links, a class redefinition, images cut by links.

    Everything is made from bundled data. Writes report.html, which needs nothing beside itself, and its PNGs.
    """
    out = Output(as_json)
    check_folder(output, "demo", [REPORT])
    began = time.perf_counter()
    makers: list[Callable[[Output], Chapter]] = [
        chapters.noisy_links,
        chapters.new_classes,
        chapters.textures,
        chapters.pixels,
        chapters.refusals,
    ]
    told = []
    for maker in makers:
        told.append(maker(out))
        out.say(f"done: {told[-1].title}")
    table = _gain_table([gain for chapter in told for gain in chapter.gain])
    out.say()
    out.table(table)
    report = Report("What links buy")
    report.text(
        "linkwise clusters data while listening to what people know: these two belong together, these two do "
        "not, and how sure they are. Each section shows bundled data without and with such knowledge."
    )
    report.table(table)
    with writing_results(output, "demo") as draft:
        written = []
        for chapter in told:
            _tell(report, chapter)
            written += [write_bytes(draft / picture.name, picture.png) for picture in chapter.pictures]
        written.append(write_text(draft / REPORT, report.html()))
    files = [output / path.name for path in written]
    seconds = time.perf_counter() - began
    out.say(f"{seconds:.0f} s. Open {output / REPORT}")
    gains = [asdict(gain) for chapter in told for gain in chapter.gain]
    out.finish({"gains": gains, "files": files, "seconds": seconds})


def _tell(report: Report, chapter: Chapter) -> None:
    report.heading(chapter.title)
    for text in chapter.text:
        report.text(text)
    for table in chapter.tables:
        report.table(table)
    for picture in chapter.pictures:
        report.picture(picture.png, picture.description, picture.caption)


def _gain_table(gains: list[Gain]) -> TextTable:
    rows = [
        [
            gain.task,
            gain.knowledge,
            gain.measure,
            f"{gain.without:.3f}",
            f"{gain.with_it:.3f}",
            f"{gain.with_it - gain.without:+.3f}",
        ]
        for gain in gains
    ]
    return TextTable(
        "What the links bought", ["task", "told", "measured by", "without", "with", "gain"], rows, 3
    )
