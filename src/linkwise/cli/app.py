"""The command ``linkwise`` and its subcommands."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from linkwise.cli.ask import ask
from linkwise.cli.check import check
from linkwise.cli.classes import classes
from linkwise.cli.compare import compare
from linkwise.cli.demo import demo
from linkwise.cli.errors import EXIT_CODES, INTERRUPTED, close_pipe, guard, leave, wants_json
from linkwise.cli.fit import fit
from linkwise.cli.map import map_raster
from linkwise.cli.predict import predict
from linkwise.cli.segment import segment
from linkwise.workbench.command import workbench


class _Guarded:
    """A command whose errors become one line, an exit code and, with ``--json``, an object."""

    _as_json = False
    _command = ""

    def main(self, args: Any = None, *positional: Any, **options: Any) -> Any:
        """Run a command and leave the process, as typer does without ``standalone_mode=False``."""
        arguments = list(sys.argv[1:] if args is None else args)
        self._as_json = wants_json(arguments)
        self._command = next((word for word in arguments if word in getattr(self, "commands", ())), "")
        options["standalone_mode"] = False
        with guard(as_json=self._as_json):
            try:
                code = super().main(arguments, *positional, **options)  # type: ignore[misc]
            except Exception as error:
                if not hasattr(error, "format_message"):
                    raise
                _refuse_usage(error, self._as_json)
            if code == INTERRUPTED:  # what typer makes of an interruption between its parts
                raise KeyboardInterrupt
        sys.exit(code or 0)

    def invoke(self, ctx: Any) -> Any:
        """Run the subcommand; its errors are dealt with before typer sees them."""
        with guard(debug=bool(ctx.params.get("debug")), as_json=self._as_json, command=self._command):
            return super().invoke(ctx)  # type: ignore[misc]


class _GuardedGroup(_Guarded, TyperGroup):
    """The subcommands of ``linkwise``."""


class GuardedCommand(_Guarded, TyperCommand):
    """A program of one command."""


def _refuse_usage(error: Any, as_json: bool) -> NoReturn:
    """One line about wrong usage; the whole help where nothing was asked for."""
    if type(error).__name__ == "NoArgsIsHelpError":
        error.show()
        raise SystemExit(error.exit_code) from None
    command = error.ctx.command_path if getattr(error, "ctx", None) is not None else "linkwise"
    message = " ".join(error.format_message().split()).rstrip(".")
    leave(
        f"Error in usage: {message}; `{command} --help` shows how",
        error.exit_code,
        kind="usage",
        as_json=as_json,
    )


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
        typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit."),
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Cluster data with pairs of rows that belong together (must-link) or apart (cannot-link)."""


# What the list of commands says of each, and examples for its own help.
_COMMANDS: dict[Callable[..., Any], tuple[str, list[str]]] = {
    fit: (
        "Cluster rows with pairs, or with a few known classes.",
        [
            "linkwise fit data.csv --id id --links pairs.csv --certainty 0.95 -o result",
            "linkwise fit data.csv --labels-column species -o result",
        ],
    ),
    predict: ("Find the clusters of new rows.", ["linkwise predict result new.csv -o new_labels.csv"]),
    check: (
        "Find pairs that contradict each other.",
        ["linkwise check pairs.csv --data data.csv --id id -k 3"],
    ),
    compare: (
        "Compare all methods by pairs or by known classes.",
        ["linkwise compare data.csv --id id --links pairs.csv -k 3"],
    ),
    classes: (
        "Split and merge classes that you doubt.",
        [
            "linkwise classes data.csv --label class -o new",
            "linkwise classes data.csv --label class --beliefs beliefs.csv -o new",
        ],
    ),
    segment: ("Divide an image into regions.", ["linkwise segment photo.png -k 4 -o regions"]),
    ask: ("Answer questions about pairs, and get links.", ["linkwise ask data.csv --id id -o pairs.csv"]),
    workbench: (
        "Answer, look and decide in the browser.",
        ["linkwise workbench data.csv --id id --links pairs.csv"],
    ),
    map_raster: (
        "Map classes that you doubt, from a raster and samples.",
        [
            "linkwise map 'scene/*.tif' --samples points.csv --label class -o map.tif",
            "linkwise map scene.tif --samples fields.gpkg --label class --beliefs beliefs.csv -o map.tif",
        ],
    ),
    demo: ("See on bundled data what links gain.", ["linkwise demo"]),
}


def _after_the_options(examples: list[str]) -> str:
    """Examples, each on a line of its own, and the exit codes."""
    head = "Example:" if len(examples) == 1 else "Examples:"
    return "\n".join(["\b", head, *(f"  {line}" for line in examples)]) + f"\n\n{EXIT_CODES}"


for _command, (_summary, _examples) in _COMMANDS.items():
    # `map` is a function of Python, so that of the command has a longer name.
    _name = "map" if _command is map_raster else None
    app.command(_name, short_help=_summary, epilog=_after_the_options(_examples))(_command)


def run(program: typer.Typer = app, name: str = "linkwise") -> None:
    """Run a command line and leave the process."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # A terminal that lacks a character shows a question mark instead of failing.
            stream.reconfigure(errors="replace")
    try:
        program(prog_name=name)
    finally:
        try:
            sys.stdout.flush()
        except OSError:
            close_pipe()
