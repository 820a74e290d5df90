"""The page in a notebook: the same front end and the same routes, without a server."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from numpy.typing import ArrayLike, NDArray

from linkwise.active.session import ActiveClustering
from linkwise.constraints import Constraints

_STATIC = Path(__file__).parent / "static"
_log = logging.getLogger("linkwise")


def widget_of(
    session: ActiveClustering,
    X: NDArray[Any],
    links: Constraints | None,
    make: Callable[[str | None], ActiveClustering],
    records: Any,
    labels: ArrayLike | None = None,
) -> Any:
    """A widget that asks the questions of a session; see ``ActiveClustering.widget``."""
    try:
        import anywidget

        from linkwise.workbench.app import make_app
        from linkwise.workbench.classes import ClassDesk
        from linkwise.workbench.desk import Desk
        from linkwise.workbench.pictures import Pictures
        from linkwise.workbench.table import table_of
    except ImportError as error:
        raise ImportError(
            f'the widget needs {error.name}; install it with pip install anywidget "linkwise[cli,workbench]"'
        ) from error

    table = table_of(X, records, labels)
    desk = Desk(table, session, make, links)
    # Beside the journal are files of the user, maybe of the same names.
    journal = session.journal.path
    folder = None if journal is None else journal.with_suffix(".linkwise")
    classes = None if labels is None else ClassDesk(table, folder)
    app = make_app(desk, Pictures(table.X, desk.labels), classes)

    class Workbench(anywidget.AnyWidget):
        """The page; requests and replies are messages of the notebook."""

        _esm = _STATIC / "widget.js"

        def __init__(self) -> None:
            super().__init__()
            self.desk = desk
            self.on_msg(self._answer)

        def _answer(self, _: Any, message: Any, __: Any) -> None:
            """Answer one request in a thread, so that the notebook can go on."""
            threading.Thread(target=self._reply, args=(message,), daemon=True).start()

        def _reply(self, message: Any) -> None:
            status, kind, content = ask_app(
                app, str(message.get("method", "GET")), str(message.get("path", "/")), message.get("body")
            )
            self.send({"id": message.get("id"), "status": status, "type": kind}, buffers=[content])

    return Workbench()


def ask_app(app: Any, method: str, path: str, body: Any = None) -> tuple[int, str, bytes]:
    """What an ASGI application replies: status, media type and content."""
    where = urlsplit(path)
    content = b"" if body is None else json.dumps(body).encode()
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method.upper(),
        "scheme": "http", "path": unquote(where.path), "raw_path": where.path.encode(),
        "query_string": where.query.encode(), "root_path": "", "server": ("notebook", 80), "client": None,
        "headers": [(b"host", b"notebook"), (b"content-type", b"application/json")],
    }  # fmt: skip
    found: dict[str, Any] = {"status": 500, "headers": [], "body": b""}

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": content, "more_body": False}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            found["status"], found["headers"] = message["status"], message.get("headers", [])
        else:
            found["body"] += message.get("body", b"")

    try:
        asyncio.run(app(scope, receive, send))
    except Exception:  # a defect, which was answered before it was raised again
        _log.exception("a request of the page failed")
    kinds = [value.decode() for name, value in found["headers"] if name.lower() == b"content-type"]
    return found["status"], kinds[0] if kinds else "", found["body"]
