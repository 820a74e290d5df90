"""The demo from end to end, and its report in a browser."""

from __future__ import annotations

import base64
import json
import re
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from typer.testing import CliRunner

from linkwise.auto import candidates
from linkwise.cli.app import app
from linkwise.cli.demo import chapters
from tests.repeats import LONG

PROBE = """<script>
addEventListener("load", () => {
  const seen = {
    images: [...document.images].map(image => [image.complete, image.naturalWidth, image.clientWidth]),
    tables: [...document.querySelectorAll("table")].map(table => [table.rows.length, table.clientHeight]),
    requests: performance.getEntriesByType("resource").map(entry => entry.name),
    scroll: document.documentElement.scrollWidth - innerWidth,
  };
  document.body.innerHTML = "<pre id=seen>" + btoa(JSON.stringify(seen)) + "</pre>";
});
</script>"""


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """One run, in ``make test`` with ten questions instead of 25 and a choice among three candidates."""
    output = tmp_path_factory.mktemp("demo") / "new" / "folder"
    with pytest.MonkeyPatch.context() as patch:
        if not LONG:
            patch.setattr(chapters, "_QUESTIONS", 10)
            patch.setattr(candidates, "_QUICK", ("spectral, near", "mixture, tied", "k-means, no links"))
        result = CliRunner().invoke(app, ["demo", "-o", str(output)])
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    return output, result.stdout


def test_table_on_the_terminal_and_in_the_report(shown):
    output, printed = shown
    page = (output / "report.html").read_text(encoding="utf-8")
    table = page[page.index("<caption>What the links gained</caption>") :]
    table = table[: table.index("</table>")]
    rows = [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in re.findall(r"<tr>(.*?)</tr>", table)[1:]]
    assert len(rows) == 6
    for row in rows:
        assert re.search(r"\s+".join(map(re.escape, row)), printed)
    gains = {row[0].split(":")[0]: float(row[4]) for row in rows}
    assert list(gains)[:2] == ["shaded objects", "texture mosaic"]  # what succeeds comes first
    assert min(gains.values()) > 0.2
    assert gains["two rings"] > 0.3  # which no method without links finds
    assert gains["three annotators"] > 0.7  # nearly all answers to ask again are wrong
    assert "3 and 17 must be together (3-8-17) but are linked apart" in page


def test_contents_lead_to_sections_with_code_and_command(shown):
    output, _ = shown
    page = (output / "report.html").read_text(encoding="utf-8")
    targets = re.findall(r"<li><a href='#([^']+)'>", page)
    assert len(targets) == 7
    sections = re.split(r"<h2 id='", page)[1:]
    assert [section.split("'")[0] for section in sections] == [*targets, "what-next"]
    for section in sections:
        assert "\nlinkwise " in section or "<pre>linkwise " in section
    assert all("<figure>" in section or "<table" in section for section in sections[:-1])


def test_it_says_how_long_where_the_report_is_and_what_next(shown):
    output, printed = shown
    assert printed.startswith("About half a minute")
    assert f"Open {(output / 'report.html').as_uri()}" in printed
    assert "7 of 7" in printed
    assert printed.index("What next") > printed.index("What the links gained")


def test_pictures_are_in_the_report_and_beside_it(shown):
    output, _ = shown
    page = (output / "report.html").read_text(encoding="utf-8")
    inside = [base64.b64decode(image) for image in re.findall(r"src='data:image/png;base64,([^']+)'", page)]
    beside = {path.name: path.read_bytes() for path in output.glob("*.png")}
    assert len(beside) == 14
    hero, rest = inside[:3], inside[3:]  # three of the first section stand at the top
    assert hero == [beside[f"objects_{name}.png"] for name in ("image", "without", "with")]
    assert sorted(rest) == sorted(beside.values())
    assert {path.name for path in output.iterdir()} == {*beside, "report.html"}


class _Recorder(BaseHTTPRequestHandler):
    asked: list[str]

    def do_GET(self):
        self.asked.append(self.path)
        self.send_error(403)

    do_CONNECT = do_POST = do_HEAD = do_GET

    def log_message(self, *arguments):
        pass


@pytest.fixture
def recording_proxy():
    """A proxy that lets nothing through and remembers what was asked of it."""
    handler = type("Recorder", (_Recorder,), {"asked": []})
    server = HTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port, handler.asked
    server.shutdown()
    server.server_close()


def browse(chromium, port, profile, address):
    options = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--disable-background-networking",
        f"--user-data-dir={profile}",
        f"--proxy-server=127.0.0.1:{port}",
        "--window-size=1200,2000",
        "--virtual-time-budget=5000",
        "--dump-dom",
    ]
    done = subprocess.run(
        [chromium, *options, address], capture_output=True, text=True, timeout=120, check=True
    )
    return done.stdout


def test_report_in_a_browser(shown, chromium, recording_proxy, tmp_path):
    """A copy without the policy that forbids requests, so that an attempt would be seen, and with a probe."""
    output, _ = shown
    port, asked = recording_proxy
    page = (output / "report.html").read_text(encoding="utf-8")
    bare = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page)
    assert bare != page
    (tmp_path / "probed.html").write_text(bare.replace("</head>", f"{PROBE}</head>"), encoding="utf-8")
    seen = _probe(browse(chromium, port, tmp_path / "profile", f"file://{tmp_path}/probed.html"))
    assert len(seen["images"]) == 17
    for complete, width, displayed in seen["images"]:
        assert complete
        assert width > 300
        assert 150 < displayed <= 600
    assert len(seen["tables"]) == 7
    for rows, height in seen["tables"]:
        assert rows >= 2
        assert height > 30
    assert seen["scroll"] <= 0
    assert [name for name in seen["requests"] if not name.startswith("data:")] == []
    assert _strangers(asked) == []


def test_the_probe_would_see_a_request(chromium, recording_proxy, tmp_path):
    port, asked = recording_proxy
    (tmp_path / "page.html").write_text(
        f"<html><head>{PROBE}</head><body><img src='http://example.org/a.png'></body></html>"
    )
    seen = _probe(browse(chromium, port, tmp_path / "profile", f"file://{tmp_path}/page.html"))
    assert seen["images"][0][1] == 0
    assert seen["requests"] == ["http://example.org/a.png"]
    assert _strangers(asked) == ["http://example.org/a.png"]


def _strangers(asked):
    """Requests but for those the browser makes on its own behalf, whatever page it shows."""
    own = r"(https?://)?[\w.-]*\b(google|googleapis|gvt1|gstatic)\.com[:/]"
    return [address for address in asked if not re.match(own, address)]


def _probe(dom):
    return json.loads(base64.b64decode(re.search(r"<pre id=\"seen\">([^<]+)</pre>", dom).group(1)))
