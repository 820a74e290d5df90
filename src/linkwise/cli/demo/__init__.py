"""``linkwise demo``: what links and beliefs gain, on data that come with the library."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from linkwise._pages import Page, TextTable
from linkwise.cli import options
from linkwise.cli.demo.chapters import (
    Chapter,
    Gain,
    annotators,
    answers,
    chosen_method,
    new_classes,
    objects,
    refusals,
    textures,
)
from linkwise.cli.output import REPORT, Output, check_folder, write_bytes, write_text, writing_results

_CHAPTERS: list[Callable[[Output], Chapter]] = [
    objects,
    textures,
    annotators,
    new_classes,
    answers,
    chosen_method,
    refusals,
]
_NEXT = [
    "linkwise fit data.csv --id id --links pairs.csv -o result     # your own rows and pairs",
    "linkwise ask data.csv --id id -o pairs.csv                    # no pairs yet: answer questions",
    "linkwise --help                                               # everything else",
]


def demo(
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FOLDER", help="Where to write report.html and its pictures."),
    ] = Path("build/demo"),
    as_json: options.JsonOption = False,
) -> None:
    """Show on bundled data, in about a minute, what links gain.

    Images from a few links, annotators who err, classes redefined, answers to questions. Writes
    report.html, which needs nothing beside itself, and its pictures.
    """
    out = Output(as_json)
    check_folder(output, "demo", [REPORT])
    began = time.perf_counter()
    out.say("About half a minute; the first time a little longer, because kernels are compiled once.")
    told = []
    for number, make in enumerate(_CHAPTERS, start=1):
        told.append(make(out))
        out.say(f"{number} of {len(_CHAPTERS)}: {told[-1].title}")
    table = _gain_table([gain for chapter in told for gain in chapter.gain])
    out.say()
    out.table(table)
    with writing_results(output, "demo") as draft:
        pictures = [picture for chapter in told for picture in chapter.pictures]
        written = [write_bytes(draft / picture.name, picture.png) for picture in pictures]
        written.append(write_text(draft / REPORT, _report(told, table)))
    files = [output / path.name for path in written]
    seconds = time.perf_counter() - began
    out.say(f"{seconds:.0f} s. Open {(output / REPORT).absolute().as_uri()}")
    out.say("What next:")
    for line in _NEXT:
        out.say(f"  {line}")
    gains = [asdict(gain) for chapter in told for gain in chapter.gain]
    out.finish({"gains": gains, "files": files, "seconds": seconds})


def _report(told: list[Chapter], table: TextTable) -> str:
    """The page: what was gained, contents, and a section for every chapter."""
    page = Page("What links gain")
    page.text(
        "linkwise clusters data with what people know: these two belong together, these two do not, and how "
        "sure they are. Each section shows clusters without this knowledge, with it, and how to do the same."
    )
    first = told[0].pictures
    page.pictures([(one.png, one.description, one.caption) for one in (first[0], *first[-2:])])
    page.contents([chapter.title for chapter in told])
    page.table(table)
    for chapter in told:
        page.heading(chapter.title)
        for text in chapter.text:
            page.text(text)
        page.pictures([(one.png, one.description, one.caption) for one in chapter.pictures])
        for facts in chapter.tables:
            page.table(facts)
        page.text("The same in Python, and on the command line:")
        page.code(f"{chapter.code}\n\n{chapter.command}")
    page.heading("What next")
    page.code("\n".join(_NEXT))
    return page.html()


def _gain_table(gains: list[Gain]) -> TextTable:
    rows = [
        [
            f"{gain.task}: {gain.knowledge}",
            gain.measure,
            f"{gain.without:.3f}",
            f"{gain.with_it:.3f}",
            f"{gain.with_it - gain.without:+.3f}",
        ]
        for gain in gains
    ]
    return TextTable(
        "What the links gained", ["task and knowledge", "measured by", "without", "with", "gain"], rows, 2
    )
