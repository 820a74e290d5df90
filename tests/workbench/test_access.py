"""Who may ask for what, over a real server: token, Host, Origin, sizes, forms, files, and the headers."""

import json
import socket

import httpx
import pytest

from linkwise.workbench.access import MOST_BYTES, is_loopback, served_hosts
from tests.workbench.conftest import Client, serving


@pytest.fixture(scope="module")
def server(iris, tmp_path_factory):
    """One server for all tests here: none of them changes anything."""
    with serving(iris[0], tmp_path_factory.mktemp("session"), id_column="id", label_column="class") as server:
        yield server


@pytest.fixture
def stranger(server):
    """A client without the token."""
    with httpx.Client(base_url=f"http://127.0.0.1:{server.port}", timeout=60) as client:
        yield client


ANSWER = {"i": 0, "j": 1, "says": "same"}
PATHS = [
    "/",
    "/app.js",
    "/api/state",
    "/api/question",
    "/api/labels",
    "/api/export/links.csv",
    "/no/such/path",
]


@pytest.mark.parametrize("path", PATHS)
def test_every_request_needs_the_token(path, stranger):
    for headers in (
        {},
        {"authorization": "Bearer x"},
        {"cookie": "linkwise=x"},
        {"authorization": "Bearer é".encode()},
    ):
        reply = stranger.get(path, headers=headers)
        assert reply.status_code == 401
        assert list(reply.json()) == ["error"]
    assert stranger.post("/api/answer", json=ANSWER).status_code == 401
    assert stranger.put("/api/beliefs", json={}).status_code == 401


def test_the_printed_address_sets_a_cookie_and_hides_the_token(server, stranger):
    assert stranger.get("/?token=wrong").status_code == 401
    assert stranger.get(f"/api/state?token={server.token}").status_code == 401
    reply = stranger.get(server.address)
    assert (reply.status_code, reply.headers["location"]) == (303, "/")
    cookie = reply.headers["set-cookie"]
    assert cookie.startswith(f"linkwise_{server.port}=")
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert stranger.get("/api/state").status_code == 200  # the client keeps the cookie
    assert len(server.token) >= 32


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example:{port}", ""],
)
def test_a_foreign_name_for_this_machine_is_refused(host, server, client):
    reply = client.get("/api/state", headers={"host": host.format(port=server.port)})
    assert reply.status_code in (400, 421)
    assert "title" not in reply.text


def test_the_names_of_this_machine_are_served(server, client):
    for name in ("localhost", "127.0.0.1"):
        assert client.get("/api/state", headers={"host": f"{name}:{server.port}"}).status_code == 200


@pytest.mark.parametrize(
    "origin",
    ["http://evil.example", "null", "http://127.0.0.1:1", "https://127.0.0.1:{port}", "http://localhost"],
)
def test_another_page_is_refused_even_with_the_token(origin, server, client):
    before = server.desk.version
    headers = {"origin": origin.format(port=server.port)}
    assert client.post("/api/answer", json=ANSWER, headers=headers).status_code == 403
    assert client.get("/api/state", headers=headers).status_code == 403
    assert client.get("/api/state", headers={"sec-fetch-site": "cross-site"}).status_code == 403
    assert len(server.desk.answers.says) == 0
    assert server.desk.version <= before + 2  # the model may have come to rest meanwhile


def test_our_own_page_is_served(server, client):
    headers = {"origin": f"http://127.0.0.1:{server.port}", "sec-fetch-site": "same-origin"}
    assert client.post("/api/retract", json={"answer": 0}, headers=headers).status_code == 400


def test_browsers_are_told_to_load_nothing_from_elsewhere(client):
    for path in ("/", "/api/state", "/no/such/path"):
        headers = client.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'self'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["referrer-policy"] == "no-referrer"
        assert "access-control-allow-origin" not in headers


@pytest.mark.parametrize(
    ("content", "kind", "status"),
    [
        (b'{"i": 0, "j": 1, "says": "same"}', "text/plain", 415),
        (b"i=0&j=1&says=same", "application/x-www-form-urlencoded", 415),
        (b"{", "application/json", 422),
        (b"", "application/json", 422),
        (b"[]", "application/json", 422),
        (b"\xff\xfe", "application/json", 422),
        (b"[" * 100_000, "application/json", 400),
        (b'{"i": 0, "j": 0, "says": "same"}', "application/json", 400),
        (b'{"i": 0, "j": 150, "says": "same"}', "application/json", 422),
        (b'{"i": -1, "j": 1, "says": "same"}', "application/json", 422),
        (b'{"i": true, "j": 0, "says": "same"}', "application/json", 422),
        (b'{"i": 0.5, "j": 1, "says": "same"}', "application/json", 422),
        (b'{"i": 1e400, "j": 1, "says": "same"}', "application/json", 422),
        (b'{"i": ' + b"9" * 5000 + b', "j": 1, "says": "same"}', "application/json", 400),
        (b'{"i": 0, "j": 1, "says": "maybe"}', "application/json", 422),
        (b'{"i": 0, "j": 1, "says": "same", "certainty": 0.5}', "application/json", 422),
        (b'{"i": 0, "j": 1, "says": "same", "certainty": NaN}', "application/json", 422),
        (b'{"i": 0, "j": 1, "says": "same", "more": 1}', "application/json", 422),
        (b'{"i": 0, "j": 1, "says": "same", "source": "a\\u0000b"}', "application/json", 422),
        (json.dumps({**ANSWER, "source": "n" * 81}).encode(), "application/json", 422),
    ],
)
def test_malformed_answers_are_refused(content, kind, status, server, client):
    reply = client.post("/api/answer", content=content, headers={"content-type": kind})
    assert reply.status_code == status, reply.text
    error = reply.json()["error"]
    assert "\n" not in error
    assert len(error) < 400
    assert len(server.desk.answers.says) == 0


def test_oversized_requests_are_refused(server, client):
    kind = {"content-type": "application/json"}
    large = json.dumps({"relation": "together", "a": [0] * MOST_BYTES}).encode()
    assert client.post("/api/groups", content=large, headers=kind).status_code == 413
    # Without a length in the header, too.
    chunked = client.post("/api/groups", content=iter([large[:MOST_BYTES], large[MOST_BYTES:]]), headers=kind)
    assert chunked.status_code == 413
    wrong = b"POST /api/groups HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Length: -5\r\n\r\n" % server.port
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as plain:
        plain.sendall(wrong)
        assert plain.recv(100).split()[1] in (b"400", b"413")
    assert len(server.desk.answers.says) == 0


def test_only_some_methods_and_paths_are_served(client):
    for method in ("DELETE", "PATCH", "OPTIONS", "TRACE"):
        assert client.request(method, "/api/state").status_code == 405
    for path in ("/docs", "/openapi.json", "/api/none", "/api/row/150", "/api/row/x", "/api/export/x.csv"):
        assert client.get(path).status_code in (404, 422)


@pytest.mark.parametrize(
    "path",
    [
        "/../desk.py",
        "/..%2fdesk.py",
        "/%2e%2e/%2e%2e/active/session.py",
        "//etc/passwd",
        "/..\\desk.py",
        "/%00",
    ],
)
def test_no_file_outside_the_page_is_served(path, server):
    request = (
        f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nAuthorization: Bearer {server.token}\r\n"
    )
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as plain:
        plain.sendall((request + "Connection: close\r\n\r\n").encode())
        reply = b""
        while part := plain.recv(65536):
            reply += part
    assert reply.split()[1] in (b"400", b"404")
    assert b"import" not in reply
    assert b"root:" not in reply


def test_images_outside_the_folder_of_the_data_are_not_shown(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    picture = b"\x89PNG\r\n\x1a\n" + bytes(20)
    (folder / "inside.png").write_bytes(picture)
    (tmp_path / "outside.png").write_bytes(picture)
    (folder / "secret.txt").write_text("secret", encoding="utf-8")
    (folder / "script.svg").write_text("<svg/>", encoding="utf-8")
    (folder / "link.png").symlink_to(tmp_path / "outside.png")
    names = [
        "inside.png",
        "../outside.png",
        str(tmp_path / "outside.png"),
        "link.png",
        "secret.txt",
        "script.svg",
    ]
    names += ["missing.png", "", "/etc/passwd", "."]
    lines = [f"{name},{number}" for number, name in enumerate(names)]
    path = folder / "rows.csv"
    path.write_text("\n".join(["file,x", *lines]) + "\n", encoding="utf-8")
    with serving(path, tmp_path / "s", image_column="file") as server, Client(server) as client:
        replies = [client.get(f"/api/image/{row}") for row in range(len(names))]
    assert [reply.status_code for reply in replies] == [200] + [404] * (len(names) - 1)
    assert replies[0].content == picture
    assert replies[0].headers["content-type"] == "image/png"


def test_html_in_names_stays_text(server, client):
    """Names reach the page in JSON, as they are, and reports escape them."""
    reply = client.get("/api/beliefs")
    assert reply.headers["content-type"] == "application/json"
    assert reply.json()["classes"][0] == "<b>set</b>"
    client.settled()
    report = client.get("/api/export/report.html")
    assert "attachment" in report.headers["content-disposition"]
    assert "<b>set" not in report.text


def test_only_addresses_of_this_machine_are_its_own():
    assert all(map(is_loopback, ["127.0.0.1", "127.8.8.8", "::1", "localhost"]))
    assert not any(map(is_loopback, ["0.0.0.0", "::", "192.168.0.2", "example.org"]))
    own, every = served_hosts("127.0.0.1"), served_hosts("0.0.0.0")
    assert own("localhost")
    assert not own("192.168.0.2")
    assert every("192.168.0.2")
    assert every(socket.gethostname().lower())
    assert not every("evil.example")


def test_the_server_listens_at_the_loopback_address_alone(server):
    assert server._socket.getsockname()[0] == "127.0.0.1"
    assert server.address.startswith("http://127.0.0.1:")
