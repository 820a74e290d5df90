"""The command ``linkwise workbench``: from the options to the page in the browser."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from linkwise._validation import counted
from linkwise.cli import options
from linkwise.cli.errors import CommandError
from linkwise.cli.output import Output


@options.with_groups
def workbench(
    data: options.DataArgument,
    *,
    links: options.LinkFile,
    label_column: Annotated[
        str | None,
        typer.Option("--label", metavar="COLUMN", help="Column of present classes, to be redefined."),
    ] = None,
    image_column: Annotated[
        str | None,
        typer.Option(
            "--image-column",
            metavar="COLUMN",
            help="Column with the path of an image of each row, below the folder of the data.",
        ),
    ] = None,
    text_column: Annotated[
        str | None,
        typer.Option(
            "--text-column",
            metavar="COLUMN",
            help="Column of a text to read. Without columns of numbers, rows are clustered by its words.",
        ),
    ] = None,
    session: Annotated[
        Path | None,
        typer.Option(
            "--session",
            metavar="FOLDER",
            help="Where answers and beliefs are kept. By default DATA.linkwise beside the data.",
        ),
    ] = None,
    host: Annotated[
        str,
        typer.Option(
            "--host",
            metavar="ADDRESS",
            help="Address to listen on. Any other address than the default lets other machines in.",
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="Port to listen at; by default a free one.")
    ] = 0,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page in the browser of this system.")
    ] = True,
    n_clusters: options.KnownClustersOption = None,
    rows: options.Rows,
    seed: options.SeedOption = 0,
) -> None:
    """Open a page where people answer questions about pairs of rows, see the clusters and redefine classes.

    Everything stays on this machine. Every answer is kept in the folder of the session before the next
    question is shown, and the same command goes on where it stopped.
    """
    try:
        import fastapi  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise CommandError(
            f'the workbench needs {error.name}; pip install "linkwise[cli,workbench]"'
        ) from None
    from linkwise.workbench.access import is_loopback
    from linkwise.workbench.app import Server
    from linkwise.workbench.classes import ClassDesk
    from linkwise.workbench.desk import Desk
    from linkwise.workbench.table import read_table

    out = Output()
    folder = data.with_name(data.name.split(".")[0] + ".linkwise") if session is None else session
    if folder.exists() and not folder.is_dir():
        raise CommandError(f"{folder} is not a folder; name another one with --session")
    table = read_table(
        data,
        session=folder,
        id_column=rows.id_column,
        label_column=label_column,
        image_column=image_column,
        text_column=text_column,
        features=options.names(rows.features),
        ignore=options.names(rows.ignore),
        impute=rows.impute,
        standardize=rows.standardize,
    )
    given = links.read_given(table.samples)
    options.refuse_more_clusters(n_clusters, len(table))
    for note in table.notes:
        out.warn(note)
    desk = Desk.open(
        table, folder, links=given if given.n_pairs else None, n_clusters=n_clusters or "auto", seed=seed
    )
    try:
        classes = None if label_column is None else ClassDesk(table, folder, seed=seed)
        server = Server(desk, classes, host=host, port=port)
        if not is_loopback(host):
            out.warn(
                f"the page can be reached from other machines ({host}), and nothing is encrypted: whoever "
                "has the address below can read the data and answer"
            )
        if len(desk.answers.says):
            out.say(f"Going on after {counted(len(desk.answers.says), 'answer')} in {folder}.")
        out.say(f"Workbench: {server.address}")
        out.say("Ctrl-C ends it; every answer is kept.")
        if browser:
            webbrowser.open(server.address)
        server.run()
    except KeyboardInterrupt:
        out.say(
            f"Ended. {counted(len(desk.answers.says), 'answer')} kept in {folder}; the same command goes on."
        )
    finally:
        desk.close()
