"""The server: a socket, a secret, the application, and uvicorn around them."""

from __future__ import annotations

import secrets
import socket
from typing import TYPE_CHECKING

from linkwise.workbench.access import Access, served_hosts
from linkwise.workbench.app import make_app
from linkwise.workbench.classes import ClassDesk
from linkwise.workbench.desk import Desk
from linkwise.workbench.pictures import Pictures

if TYPE_CHECKING:
    import uvicorn

__all__ = ["Server"]


class Server:
    """The page of a desk at an address; ``run`` serves it until it is told to stop.

    The socket is bound when this is made, so that ``address`` is known before.
    """

    def __init__(
        self, desk: Desk, classes: ClassDesk | None = None, *, host: str = "127.0.0.1", port: int = 0
    ) -> None:
        import uvicorn

        self.desk, self.token = desk, secrets.token_urlsafe(32)
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.socket(family, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind((host, port))
            self._socket.listen()  # a browser that is early waits
        except OSError as error:
            self._socket.close()
            reason = error.strerror or str(error)
            raise OSError(f"{host}:{port} cannot be listened at ({reason}); choose another --port") from None
        self.port: int = self._socket.getsockname()[1]
        self._host = host
        self.pictures = Pictures(desk.table.X, desk.labels)
        app = make_app(desk, self.pictures, classes)
        guarded = Access(app, token=self.token, port=self.port, is_served=served_hosts(host))
        # The access log would hold the secret, and uvicorn's own headers are not ours to trust.
        config = uvicorn.Config(
            guarded, log_level="warning", access_log=False, proxy_headers=False, server_header=False,
            ws="none", timeout_graceful_shutdown=2, h11_max_incomplete_event_size=65536,
        )  # fmt: skip
        self.uvicorn: uvicorn.Server = uvicorn.Server(config)

    @property
    def address(self) -> str:
        """Where the page is, with the secret."""
        host = self._host
        if host in ("0.0.0.0", "::"):
            host = socket.gethostname()
        shown = f"[{host}]" if ":" in host else host
        return f"http://{shown}:{self.port}/?token={self.token}"

    def run(self) -> None:
        """Serve until a signal, or ``stop``."""
        try:
            self.uvicorn.run(sockets=[self._socket])
        finally:
            self._socket.close()

    def stop(self) -> None:
        """Let ``run`` end."""
        self.uvicorn.should_exit = True
