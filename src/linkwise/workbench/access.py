"""Who may ask the server for what: one secret, one address, small requests, and no other web page.

Any page that a browser has open can send requests to a server on the loopback address, so that the address
alone protects nothing. Every request needs the secret of this run, in a cookie or a header; the names in
Host and Origin must be those that are served (else a foreign domain could be pointed at this machine); and
the browser is told to load nothing from elsewhere and to show no page inside another.
"""

from __future__ import annotations

import ipaddress
import json
import secrets
import socket
from collections.abc import Awaitable, Callable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs

Message = MutableMapping[str, Any]
App = Callable[
    [MutableMapping[str, Any], Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]],
    Awaitable[None],
]

#: Bytes of a request at most: a lasso around 200,000 rows.
MOST_BYTES = 2_000_000
POLICY = (
    "default-src 'self'; img-src 'self' data: blob:; style-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; object-src 'none'"
)
_HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
_METHODS = ("GET", "HEAD", "POST", "PUT")


class Refused(Exception):
    """A request that is not answered: status and one line."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status, self.reason = status, reason


class Access:
    """Lets only requests through that may be answered, and adds the headers that protect the page."""

    def __init__(self, app: App, *, token: str, port: int, is_served: Callable[[str], bool]) -> None:
        self._app, self._token, self._port, self._is_served = app, token, port, is_served
        self.cookie = f"linkwise_{port}"

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            raise RuntimeError("only HTTP is served")
        began = False

        async def send_protected(message: Message) -> None:
            nonlocal began
            if message["type"] == "http.response.start":
                began = True
                message["headers"] = [*message.get("headers", []), *_protection(message)]
            await send(message)

        try:
            self._check(scope)
            target = self._entrance(scope)
            if target is not None:
                await _reply(send_protected, 303, b"", [(b"location", b"/"), (b"set-cookie", target)])
                return
            self._check_token(scope)
            if scope["method"] in ("POST", "PUT"):
                receive = await _whole(receive)
            await self._app(scope, receive, send_protected)
        except Refused as refusal:
            if not began:
                content = json.dumps({"error": refusal.reason}).encode()
                await _reply(
                    send_protected, refusal.status, content, [(b"content-type", b"application/json")]
                )

    def _check(self, scope: Any) -> None:
        """Refuse what is no request of our own page, before anything is read."""
        if scope["method"] not in _METHODS:
            raise Refused(405, f"{scope['method']} is not served")
        hosts = _values(scope, b"host")
        if len(hosts) != 1 or not self._names_us(hosts[0]):
            raise Refused(421, "the Host of the request is not served here; use the address that was printed")
        for origin in _values(scope, b"origin"):
            if not origin.startswith("http://") or not self._names_us(origin.removeprefix("http://")):
                raise Refused(403, "the request comes from another web page")
        # A link to the printed address is followed from elsewhere; it only sets the cookie.
        sites = [] if scope["path"] == "/" else _values(scope, b"sec-fetch-site")
        if any(site not in ("same-origin", "none") for site in sites):
            raise Refused(403, "the request comes from another web page")
        lengths = _values(scope, b"content-length")
        if any(not length.isdecimal() or len(length) > 12 or int(length) > MOST_BYTES for length in lengths):
            raise Refused(413, f"a request has at most {MOST_BYTES:,} bytes")
        if scope["method"] in ("POST", "PUT"):
            kinds = _values(scope, b"content-type")
            if len(kinds) != 1 or kinds[0].partition(";")[0].strip().lower() != "application/json":
                raise Refused(415, "send JSON, with Content-Type: application/json")

    def _names_us(self, host: str) -> bool:
        """Whether ``name:port`` is served."""
        name, colon, port = host.rpartition(":")
        if not colon or host.endswith("]"):
            name, port = host, "80"
        return port == str(self._port) and self._is_served(name.strip("[]").lower())

    def _entrance(self, scope: Any) -> bytes | None:
        """The cookie, if this is the printed address with the right secret."""
        if scope["path"] != "/" or scope["method"] != "GET":
            return None
        given = parse_qs(scope["query_string"].decode("ascii", "replace")).get("token")
        if not given:
            return None
        if not self._is_token(given[0]):
            raise Refused(401, "the token is not that of this run; use the address that was printed last")
        return f"{self.cookie}={self._token}; Path=/; HttpOnly; SameSite=Strict".encode()

    def _check_token(self, scope: Any) -> None:
        for header in _values(scope, b"authorization"):
            kind, _, token = header.partition(" ")
            if kind.lower() == "bearer" and self._is_token(token.strip()):
                return
        for header in _values(scope, b"cookie"):
            try:
                found = SimpleCookie(header).get(self.cookie)
            except CookieError:
                continue
            if found is not None and self._is_token(found.value):
                return
        raise Refused(
            401, "open the address that `linkwise workbench` printed: it holds the token of this run"
        )

    def _is_token(self, text: str) -> bool:
        return secrets.compare_digest(text.encode("utf-8", "replace"), self._token.encode())


def _protection(message: Message) -> list[tuple[bytes, bytes]]:
    """The headers of every reply that it does not have yet."""
    there = {name.lower() for name, _ in message.get("headers", [])}
    return [(name.encode(), value.encode()) for name, value in _HEADERS.items() if name.encode() not in there]


def _values(scope: Any, name: bytes) -> list[str]:
    return [value.decode("latin-1").strip() for key, value in scope["headers"] if key == name]


async def _whole(receive: Any) -> Any:
    """Read a request to its end, at most what it may have; gives a function that gives it again."""
    content = b""
    more = True
    while more:
        message = await receive()
        if message["type"] != "http.request":
            return receive  # the client went away
        content += message.get("body", b"")
        more = message.get("more_body", False)
        if len(content) > MOST_BYTES:
            raise Refused(413, f"a request has at most {MOST_BYTES:,} bytes")
    given = False

    async def again() -> Any:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": content, "more_body": False}

    return again


async def _reply(send: Any, status: int, body: bytes, headers: list[tuple[bytes, bytes]]) -> None:
    headers = [*headers, (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def is_loopback(host: str) -> bool:
    """Whether an address can only be reached from this machine."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def served_hosts(host: str) -> Callable[[str], bool]:
    """Which names requests may have in Host; at all addresses any in figures, and this machine's name."""
    names = {host.lower()}
    try:
        everywhere = ipaddress.ip_address(host).is_unspecified
    except ValueError:
        everywhere = False
    if everywhere or is_loopback(host):
        names |= {"localhost", "127.0.0.1", "::1"}
    if everywhere:
        names |= {socket.gethostname().lower(), socket.getfqdn().lower()}

    def is_served(name: str) -> bool:
        if name in names:
            return True
        if not everywhere:
            return False
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True

    return is_served
