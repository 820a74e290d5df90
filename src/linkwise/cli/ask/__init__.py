"""``linkwise ask``: questions about pairs of rows, answered with single keys."""

from __future__ import annotations

import hashlib
import os
import shlex
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from linkwise._files import replacing
from linkwise._validation import counted
from linkwise.cli import options
from linkwise.cli.ask.conversation import Conversation, Keys
from linkwise.cli.ask.records import Records, as_numbers, printable, text_frame
from linkwise.cli.errors import CommandError
from linkwise.cli.output import Output, console
from linkwise.cli.samples import Preparation, Samples
from linkwise.cli.tables import as_option

if TYPE_CHECKING:
    from rich.console import Console

    from linkwise.active.journal import Journal
    from linkwise.active.knowledge import Answers
    from linkwise.active.session import ActiveClustering
    from linkwise.constraints import Constraints


# Without a terminal there is no width to fit in.
_WIDTH_OF_A_FILE = 100
# Certainty of answers that are written after an error, when the model is not asked how often people err.
_UNLEARNED = 0.95


@options.with_groups
def ask(
    data: options.DataArgument,
    *,
    links: options.LinkFile,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Where to write the links. By default DATA_links.csv in this folder.",
        ),
    ] = None,
    journal: Annotated[
        Path | None,
        typer.Option(
            "--journal",
            metavar="FILE",
            help="File that gets every answer at once. By default the output file with .journal added.",
        ),
    ] = None,
    merge: Annotated[
        list[Path] | None,
        typer.Option(
            "--merge",
            metavar="FILE",
            help="Journal of another person about the same rows, to take its answers; repeat for more.",
        ),
    ] = None,
    show: Annotated[
        str | None,
        typer.Option("--show", metavar="A,B,..", help="Columns to show, in this order. By default all."),
    ] = None,
    image_column: Annotated[
        str | None,
        typer.Option(
            "--image-column", metavar="COLUMN", help="Column with the path of an image of each row."
        ),
    ] = None,
    n_clusters: options.KnownClustersOption = None,
    most: Annotated[int | None, typer.Option("--most", min=1, help="Stop after this many answers.")] = None,
    source: Annotated[
        str | None, typer.Option("--source", metavar="NAME", help="Who answers; kept with every answer.")
    ] = None,
    certainty: Annotated[
        float | None,
        typer.Option(
            "--certainty",
            "-c",
            metavar="0.5..1",
            help="How often your answers are right. By default that is learned from all answers.",
        ),
    ] = None,
    strategy: Annotated[
        str,
        typer.Option(
            "--strategy",
            metavar="NAME",
            help="How the next pair is chosen: auto, information, spread, npu, min_max, explore_consolidate "
            "or random.",
        ),
    ] = "auto",
    rows: options.Rows,
    seed: options.SeedOption = 0,
    as_json: options.JsonOption = False,
) -> None:
    """Ask about the pairs of rows whose answers tell most: same cluster, different, or unsure?

    Every answer is kept in a journal before the next question is shown, and the same command goes on where it
    stopped. At the end the answers, and the links given, are written as a file for `linkwise fit --links`.
    """
    from linkwise.active.knowledge import learned_certainty
    from linkwise.active.session import ActiveClustering

    out = Output(as_json)
    if certainty is not None and not 0.5 < certainty <= 1.0:
        raise typer.BadParameter(f"{certainty:g} is not above 0.5 and at most 1.", param_hint="--certainty")
    output = Path(f"{data.name.split('.')[0]}_links.csv") if output is None else output
    journal = output.with_name(output.name + ".journal") if journal is None else journal
    _refuse_paths(data, links.path, output, journal)
    samples, records = _read_rows(data, rows, options.names(show), image_column)
    given = links.read_given(samples)
    options.refuse_more_clusters(n_clusters, len(samples))
    if len(samples) < 2:
        raise CommandError(f"{data} has one row; there is no pair to ask about: pass a file with more rows")
    X = Preparation.of(samples, standardize=rows.standardize, clusters=[]).apply(samples.features).to_numpy()
    _refuse_stranger(output, journal)
    console = _console(as_json)
    for note in samples.notes:
        out.warn(note)
    with out.progress("clustering"):
        session = ActiveClustering(
            X,
            given if given.n_pairs else None,
            n_clusters=n_clusters or "auto",
            strategy=strategy,
            journal=journal,
            random_state=seed,
        )
        np.asarray(session.labels_)
    with session:
        for path in merge or []:
            taken = _merged(session, path)
            console.print(f"{counted(taken, 'answer')} taken from {path}.", markup=False)
        if session.n_answers:
            console.print(
                f"Going on after {counted(session.n_answers, 'answer')} in {journal}.", markup=False
            )
        conversation = Conversation(
            session,
            records,
            lambda row: printable(samples.name_of(row)) if samples.ids is not None else f"row {row}",
            console=console,
            keys=Keys(),
            source=source,
            certainty=certainty,
            most=most,
        )
        try:
            with _hearing_hang_up():
                ended = conversation.run()
        except BaseException:
            # Ctrl-C, SIGTERM, or an error: what was answered is written all the same.
            _rescue(console, output, session.journal, given, samples)
            raise
        answers = session.journal.answers()
        learned = learned_certainty(session.error_rate_)
        written = _write_links(output, session.journal, given, answers, samples, learned)
        after = _fit_command(data, output, rows, samples, records.columns)
        _finish(out, console, session, answers, written, output, journal, ended, after)


def _merged(session: ActiveClustering, path: Path) -> int:
    """Take the answers of another journal; the number of new ones."""
    try:
        return session.merge(path)
    except (OSError, ValueError) as error:
        raise CommandError(str(error)) from None


def _console(as_json: bool) -> Console:
    """Where the questions are shown: not on standard output if that is to be one JSON object."""
    stream = sys.stderr if as_json else sys.stdout
    width = None if stream.isatty() else _WIDTH_OF_A_FILE
    return console(file=stream, width=width)


def _refuse_paths(data: Path, links: Path | None, output: Path, journal: Path) -> None:
    """Refuse names that mean two files."""
    if output.suffix.lower() != ".csv":
        raise CommandError(f"{output}: links are written as CSV; pass a name that ends in .csv with -o")
    if output.is_dir() or journal.is_dir():
        raise CommandError(f"{output if output.is_dir() else journal} is a folder; pass the name of a file")
    places: dict[str, tuple[str, Path]] = {}
    for option, path in (("DATA", data), ("--links", links), ("-o", output), ("--journal", journal)):
        if path is None:
            continue
        other = places.setdefault(os.path.realpath(path), (option, path))[0]
        if other != option:
            raise CommandError(f"{other} and {option} both name {path}; choose another name for {option}")


def _read_rows(
    data: Path, rows: options.Rows, show: list[str], image_column: str | None
) -> tuple[Samples, Records]:
    """The rows to cluster by and the records to show; columns of text are shown, not clustered by."""
    left_out = [] if rows.id_column is None else [rows.id_column]
    unused: list[str] = []
    records = Records.read(data, show, image_column, left_out)
    if not options.names(rows.features):
        frame = text_frame(data)
        words = [name for name in frame.columns if name not in left_out and as_numbers(frame[name]) is None]
        unused = words if image_column is None else [*words, image_column]
    return rows.read(data, ignore=unused), records


def _refuse_stranger(output: Path, journal: Path) -> None:
    """Refuse to replace a file that was not written from this journal, or that was changed since."""
    from linkwise.active.journal import written_from

    if not output.exists() or _hash(output.read_bytes()) in written_from(journal):
        return
    reason = "it was changed after" if journal.exists() else "no earlier"
    raise CommandError(
        f"{output} is in the way: {reason} `linkwise ask` wrote it; move it away (--links reads it), "
        "or choose another name with -o"
    )


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _write_links(
    output: Path, journal: Journal, given: Constraints, answers: Answers, samples: Samples, certainty: float
) -> Constraints | None:
    """Write the links given and the answers, of this certainty if without one; None if there is nothing."""
    from linkwise.active.knowledge import as_constraints

    links = given + as_constraints(answers, len(samples), certainty=certainty)
    if not links.n_pairs and not output.exists():
        return None
    with replacing(output) as draft:
        links.with_index(samples.ids).to_csv(draft)
        # First who wrote it, then the file: a process killed between both has changed nothing.
        journal.append({"op": "wrote", "sha256": _hash(draft.read_bytes())})
    return links


def _rescue(console: Console, output: Path, journal: Journal, given: Constraints, samples: Samples) -> None:
    """Write what was answered before Ctrl-C or an error; errors of this writing do not hide that one."""
    kept = f"\nEvery answer is kept in {journal.path}; the same command goes on."
    with suppress(OSError, ValueError):
        answers = journal.reread()
        kept = f"\nKept: {counted(len(answers.says), 'answer')}; the same command goes on."
        _write_links(output, journal, given, answers, samples, _UNLEARNED)
    with suppress(OSError):  # the terminal was closed
        console.print(kept, markup=False, soft_wrap=True)


@contextmanager
def _hearing_hang_up() -> Iterator[None]:
    """End as by Ctrl-C when the terminal is closed."""
    number = getattr(signal, "SIGHUP", None)
    if number is None or signal.getsignal(number) is signal.SIG_IGN:
        yield
        return

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(number, interrupt)
    try:
        yield
    finally:
        signal.signal(number, before)


def _fit_command(
    data: Path, output: Path, rows: options.Rows, samples: Samples, columns: Sequence[str]
) -> str:
    """The command that clusters the same columns of the data by the links."""
    words = ["linkwise", "fit", str(data), "--links", str(output)]
    words += [] if rows.id_column is None else ["--id", rows.id_column]
    words += [] if rows.features is None else ["--features", rows.features]
    used = {*samples.features.columns, rows.id_column}
    left_out = [name for name in columns if name not in used]
    words += ["--ignore", as_option(left_out)] if left_out and rows.features is None else []
    words += [] if rows.standardize else ["--no-standardize"]
    return shlex.join([*words, "--impute"] if rows.impute else words)


def _finish(
    out: Output,
    console: Console,
    session: Any,
    answers: Answers,
    written: Constraints | None,
    output: Path,
    journal: Path,
    ended: str,
    after: str,
) -> None:
    """Say what there is now, and what to do with it."""
    quality = session.quality_
    contradictions = session.contradictions()
    console.print()
    if written is None:
        console.print("No answers yet; nothing was written.", markup=False)
    else:
        links = counted(written.n_pairs, "link")
        console.print(f"Written: {output} ({links}); every answer: {journal}", markup=False, soft_wrap=True)
        console.print(f"Next: {after}", markup=False, soft_wrap=True)
    out.finish(
        {
            "ended": ended,
            "n_answers": len(answers.says),
            "n_same": int((answers.says > 0).sum()),
            "n_different": int((answers.says < 0).sum()),
            "n_unsure": int((answers.says == 0).sum()),
            "n_clusters": len(np.unique(session.labels_)),
            "quality": {"estimate": quality.estimate, "low": quality.low, "high": quality.high},
            "may_stop": bool(session.should_stop_[0]),
            "contradictions": [list(one.answers) for one in contradictions],
            "files": {"journal": journal, **({} if written is None else {"links": output})},
        }
    )
