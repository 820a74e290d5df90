"""``python -m experiments``: the papers' experiments, with seeds, pairs and confidence intervals."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from linkwise._files import replacing, together
from linkwise._pages import TextTable
from linkwise.cli import options
from linkwise.cli.app import GuardedCommand, run
from linkwise.cli.errors import EXIT_CODES, USAGE, CommandError
from linkwise.cli.output import Output, as_json, check_folder, write_text

if TYPE_CHECKING:
    from experiments.framework.experiment import Experiment, Outcome

__all__ = ["app", "reproduce"]

app = typer.Typer(
    name="experiments",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.command(cls=GuardedCommand, epilog=EXIT_CODES)
def reproduce(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME]...", help="Experiments; none means all."),
    ] = None,
    show_list: Annotated[bool, typer.Option("--list", help="Say which experiments there are.")] = False,
    full: Annotated[
        bool, typer.Option("--full/--quick", help="As many draws as are reported, or a few.")
    ] = False,
    data: Annotated[
        Path | None,
        typer.Option(
            "--data",
            metavar="FOLDER",
            envvar="LINKWISE_DATA",
            help="Data sets that are not bundled.",
        ),
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FOLDER", help="Where to write tables and figures.")
    ] = Path("build/reproduce"),
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="Processes.")] = os.cpu_count() or 1,
    fresh: Annotated[bool, typer.Option("--fresh", help="Forget the trials of an earlier run.")] = False,
    stored: Annotated[
        bool, typer.Option("--stored", help="Run nothing: write what the trials run so far say.")
    ] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only",
            metavar="KEY=VALUE",
            help="Run settings with this value, or this method alone; may be repeated.",
        ),
    ] = None,
    draws: Annotated[int | None, typer.Option("--draws", min=1, help="Run at most so many draws.")] = None,
    keep: Annotated[
        Path | None,
        typer.Option(
            "--keep", metavar="FOLDER", help="Settings without trials keep their rows of the table there."
        ),
    ] = None,
    json_wanted: options.JsonOption = False,
) -> None:
    """Run the papers' experiments and write their tables and figures.

    A run that was stopped goes on where it was. Experiments whose data are missing are skipped, and named.
    """
    from experiments import EXPERIMENTS

    out = Output(json_wanted)
    unknown = [name for name in names or [] if name not in EXPERIMENTS]
    if unknown:
        raise CommandError(f"no experiment {', '.join(unknown)}; --list names those there are", USAGE)
    chosen = [EXPERIMENTS[name] for name in dict.fromkeys(names or EXPERIMENTS)]
    if show_list:
        _show(out, chosen)
        return
    if data is not None:
        if not data.is_dir():
            raise CommandError(f"--data {data} is not a folder; pass the folder that holds the data sets")
        os.environ["LINKWISE_DATA"] = str(data)
    if fresh and stored:
        raise CommandError("--fresh forgets the trials that --stored reads; leave one of them out", USAGE)
    check_folder(output)
    part = _Part(tuple(only or ()), draws, keep)
    results = [_run(out, experiment, not full, output, jobs, fresh, stored, part) for experiment in chosen]
    failed = sum(len(result["failed"]) for result in results)
    result = {"experiments": results}
    if failed:
        # One JSON object tells both what was found and that some of it is missing.
        raise CommandError(
            f"{failed} trials failed; the same command tries them again", result=out.record(result)
        )
    out.finish(result)


def _show(out: Output, chosen: list[Experiment]) -> None:
    keys = ("name", "paper", "title", "quick", "full")
    rows = [[e.name, e.paper, e.title, str(_n_trials(e, True)), str(_n_trials(e, False))] for e in chosen]
    out.table(TextTable("Experiments; trials of --quick and --full", list(keys), rows, 3))
    out.finish({"experiments": [dict(zip(keys, row, strict=True)) for row in rows]})


def _n_trials(experiment: Experiment, quick: bool) -> int:
    size = experiment.size(quick)
    return len(size.settings) * size.n_draws


class _Part(NamedTuple):
    """What of an experiment is run: see ``chosen_size``; and the folder of a table whose rows are kept."""

    only: tuple[str, ...] = ()
    draws: int | None = None
    keep: Path | None = None


def _run(
    out: Output,
    experiment: Experiment,
    quick: bool,
    output: Path,
    jobs: int,
    fresh: bool,
    stored: bool,
    part: _Part,
) -> dict[str, Any]:
    """One experiment: its table, its provenance and its figure."""
    from experiments.framework.data_files import DataMissing
    from experiments.framework.figures import save_figure
    from experiments.framework.kept import chosen_methods, chosen_size, with_kept
    from experiments.framework.tables import table_text, wide
    from experiments.framework.trials import TrialFile

    scale = "quick" if quick else "full"
    stem = experiment.name if scale == "full" else f"{experiment.name}-{scale}"
    try:
        methods, only = chosen_methods(experiment.methods, part.only)
        size = chosen_size(experiment.size(quick), only, part.draws)
    except ValueError as error:
        raise CommandError(f"--only: {error}", USAGE) from error
    if methods:
        experiment = replace(experiment, trial=partial(experiment.trial, methods=methods))
    trials = output / "trials" / ("-".join([experiment.name, scale, *methods]) + ".jsonl")
    chosen = replace(experiment, quick=size) if quick else replace(experiment, full=size)
    if fresh and only:
        TrialFile(trials).forget(size.settings)
    elif fresh:
        trials.unlink(missing_ok=True)
    out.say(f"{experiment.name} ({scale}): {experiment.title}")
    with out.progress(experiment.name, _n_trials(chosen, quick)) as step:
        counted = [0]

        def progress(done: int, total: int) -> None:
            for _ in range(done - counted[0]):
                step()
            # A log has no bar: a line for every tenth instead.
            if not sys.stderr.isatty() and done * 10 // total > counted[0] * 10 // total:
                print(f"{experiment.name}: {done} of {total} trials", file=sys.stderr, flush=True)
            counted[0] = done

        found = chosen.run(quick=quick, path=trials, n_jobs=jobs, progress=progress, only_stored=stored)
    # Trials of settings and draws that were not chosen are there, too.
    outcome = experiment.run(quick=quick, path=trials, only_stored=True)
    outcome = replace(outcome, skipped=found.skipped, failed=found.failed)
    kept: list[dict[str, Any]] = []
    if part.keep is not None:
        merged, kept = with_kept(
            part.keep, stem, experiment.size(quick).settings, outcome.table, other_methods=bool(methods)
        )
        outcome = replace(outcome, table=merged)
    record = {**_record(experiment, scale, outcome), "kept": kept}
    mine = [f"{stem}.json", f"{stem}.csv", f"{stem}.png"]
    failure = None
    with together(output, lambda _: mine, last=mine[0]) as draft:
        write_text(draft / mine[0], as_json(record) + "\n")
        if outcome.table:
            write_text(draft / mine[1], table_text(outcome.table))
        if outcome.table and experiment.has_figure:
            try:
                with replacing(draft / mine[2]) as picture:
                    save_figure(experiment, outcome.table, picture)
            except DataMissing as error:
                out.warn(f"{experiment.name}: no picture: {error}")
            except Exception as error:
                # The trials took long: their table is kept before the error is told.
                failure = error
        files = [output / name for name in mine if (draft / name).exists()]
    if failure is not None:
        raise failure
    for measure in (*experiment.measures, *experiment.texts):
        head, rows = wide(outcome.table, measure)
        if rows:
            n_keys = head.index("draws")
            out.table(TextTable(f"{experiment.name}: {measure}", head, rows, n_keys))
    for reason, settings in outcome.skipped.items():
        out.warn(f"{experiment.name}: {len(settings)} settings skipped: {reason}")
    if len(outcome.sources) > 1:
        out.warn(
            f"{experiment.name}: trials of {len(outcome.sources)} states of the code; --fresh runs all again"
        )
    for trial in outcome.failed:
        out.warn(f"{experiment.name}: draw {trial.draw} of {trial.setting} failed: {trial.error}")
    return {**record, "files": files}


def _record(experiment: Experiment, scale: str, outcome: Outcome) -> dict[str, Any]:
    """Where a table comes from."""
    import platform
    from importlib.metadata import version

    packages = ("linkwise", "numpy", "scipy", "scikit-learn", "numba")
    return {
        "name": experiment.name,
        "title": experiment.title,
        "paper": experiment.paper,
        "command": f"python -m experiments {experiment.name} --{scale}",
        "date": date.today().isoformat(),
        "versions": {"python": platform.python_version(), **{name: version(name) for name in packages}},
        "trials": outcome.n_trials,
        "seconds": round(outcome.seconds, 1),
        "sources": outcome.sources,
        "skipped": outcome.skipped,
        "failed": [{"setting": t.setting, "draw": t.draw, "error": t.error} for t in outcome.failed],
    }


if __name__ == "__main__":
    run(app, "python -m experiments")
