"""The workbench as its users meet it: the command in a process of its own, and a browser that looks at it."""

import os
import re
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from urllib.parse import urlsplit

from tests import warm_python

CHROMIUM = shutil.which("chromium")
_ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--no-first-run",
]  # fmt: skip
# Every question waits for the model, however busy the machine is: they are those of a session alone.
_PATIENT = (
    "from linkwise.workbench import desk; desk._PATIENCE = desk._MOST_PATIENCE = desk._HOPELESS = 60.0\n"
    "from linkwise.cli import main; main()"
)
ROOMS = ["answer", "see", "doubt", "classes", "keep"]


class Bench:
    """The command ``linkwise workbench`` about one file, at one port."""

    def __init__(self, data, *options):
        self.data = data
        self._command = [sys.executable, "-c", _PATIENT, "workbench", str(data), "--no-browser", *options]
        self.port = "0"
        self.start()

    def start(self):
        """Start the server, at the port that it had before."""
        self.process = warm_python.Popen(
            [*self._command, "--port", self.port],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "COLUMNS": "500"},
        )
        said = ""
        for line in self.process.stdout:
            said += line
            if found := re.search(r"http://\S+", line):
                self.address = found[0]
                self.port = str(urlsplit(self.address).port)
                return
        raise AssertionError(f"the workbench did not start: {said}")

    def kill(self):
        """End it without a chance to tidy up."""
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


@contextmanager
def browser():
    """Chromium without a window."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=_ARGUMENTS)
        yield found
        found.close()


class Visit:
    """A tab that keeps what went wrong in it: errors in the console, and requests to anywhere else."""

    def __init__(self, bench, browser, **context):
        self.bench, self.trouble = bench, []
        self.context = browser.new_context(viewport={"width": 1280, "height": 800}, **context)
        self.page = self.tab()

    def tab(self):
        """One more tab of the same browser, at the printed address."""
        page = self.context.new_page()
        page.set_default_timeout(30_000)
        page.on("console", lambda said: said.type in ("error", "warning") and self.trouble.append(said.text))
        page.on("pageerror", lambda error: self.trouble.append(str(error)))
        page.on("request", self._check_request)
        page.goto(self.bench.address)
        return page

    def _check_request(self, request):
        if urlsplit(request.url).netloc != f"127.0.0.1:{self.bench.port}" and not request.url.startswith(
            "data:"
        ):
            self.trouble.append(f"asked for {request.url}")

    def go(self, room):
        """Walk into a room by the links at the top."""
        self.page.click(f"#rooms [data-room={room}]")
        self.page.wait_for_selector(f".room.{room}:not([hidden])")

    def pair(self, page=None):
        """The rows in question."""
        found = (page or self.page).locator(".room.answer[data-pair*='-']:not(.busy)")
        return tuple(map(int, found.get_attribute("data-pair").split("-")))

    def press(self, key):
        """Answer by a key, and wait for the next question."""
        before = "-".join(map(str, self.pair()))
        self.page.keyboard.press(key)
        self.page.wait_for_function(
            "before => document.querySelector('.room.answer').dataset.pair !== before", arg=before
        )

    def settle(self):
        """Wait until the clusters know all answers."""
        for _ in range(1200):
            state = self.state()
            if state["model_version"] and not state["refreshing"]:
                return
            time.sleep(0.05)
        raise AssertionError(f"the model does not come to rest: {state}")

    def state(self):
        """What the server says."""
        return self.json("/api/state")

    def answers(self):
        """All answers: rows, what was said, how certain, by whom."""
        told = self.json("/api/answers")
        return [(one["i"], one["j"], one["says"], one["certainty"], one["source"]) for one in told]

    def json(self, path):
        """What the server answers to the page."""
        return self.page.evaluate("path => fetch(path).then(reply => reply.json())", path)

    def close(self):
        """Close the tab; nothing may have gone wrong in it."""
        self.context.close()
        assert not self.trouble
