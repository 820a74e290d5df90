"""The command ``linkwise`` and its subcommands."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from linkwise.cli.check import check
from linkwise.cli.classes import classes
from linkwise.cli.compare import compare
from linkwise.cli.demo import demo
from linkwise.cli.errors import EXIT_CODES, close_pipe, guard, terminable
from linkwise.cli.fit import fit
from linkwise.cli.predict import predict
from linkwise.cli.reproduce import reproduce
from linkwise.cli.segment import segment

__all__ = ["app", "run"]


class _GuardedGroup(TyperGroup):
    """Commands whose errors become one line and an exit code."""

    def invoke(self, ctx: Any) -> Any:
        with guard(debug=bool(ctx.params.get("debug"))):
            return super().invoke(ctx)


app = typer.Typer(
    name="linkwise",
    cls=_GuardedGroup,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    epilog=EXIT_CODES,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from linkwise import __version__

        print(f"linkwise {__version__}")
        raise typer.Exit


@app.callback()
def linkwise(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and leave."),
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Cluster data while listening to what people know: these two belong together, these two do not."""


for _command in (fit, predict, check, compare, classes, segment, demo, reproduce):
    app.command(epilog=EXIT_CODES)(_command)


def run() -> None:
    """Run the command line and leave the process."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # A terminal that lacks a character shows a question mark instead of failing.
            stream.reconfigure(errors="replace")
    with terminable():
        try:
            app(prog_name="linkwise")
        finally:
            try:
                sys.stdout.flush()
            except OSError:
                close_pipe()
