"""The workbench: the first page, the time until the next question, and the memory of the server.

A real server in a process of its own, asked over HTTP on the loopback address. Wall clock: what the person in
front of the page waits for.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from benchmarks._table import Measured, Table
from benchmarks._targets import TARGETS

#: Rows of the first page, rows of the answers, and answers of both sessions.
N_PAGE, N_ROWS, N_FEATURES, N_CLASSES = 10_000, 100_000, 8, 6
N_ANSWERS, N_LONG = 100, 1000
#: Seconds that a person looks at a question.
LOOKING = 0.3
#: What a page asks for before it can be used.
FIRST_PAGE = (
    "/",
    "/app.js",
    "/style.css",
    "/api/state",
    "/api/question",
    "/api/embedding/pca",
    "/api/labels",
)


class _Page:
    """A server of the command and a client for it."""

    def __init__(self, process: subprocess.Popen[str], address: str) -> None:
        where, _, token = address.partition("/?token=")
        self._process = process
        self.address = address
        self.client = httpx.Client(base_url=where, headers={"authorization": f"Bearer {token}"}, timeout=600)

    def get(self, path: str) -> Any:
        return self.client.get(path)

    def question(self) -> Any:
        while "i" not in (found := self.get("/api/question").json()):
            time.sleep(0.05)
        return found

    def mebibytes(self) -> float:
        """Resident memory of the server."""
        lines = Path(f"/proc/{self._process.pid}/status").read_text(encoding="utf-8").splitlines()
        return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) / 1024

    def answer(self, classes: Any, count: int) -> list[float]:
        """Seconds from each answer to the next question."""
        seconds, question = [], self.question()
        for _ in range(count):
            time.sleep(LOOKING)
            i, j = question["i"], question["j"]
            says = "same" if classes[i] == classes[j] else "different"
            start = time.perf_counter()
            question = self.client.post("/api/answer", json={"i": i, "j": j, "says": says}).json()["question"]
            seconds.append(time.perf_counter() - start)
        return seconds


@contextmanager
def _serving(n_samples: int) -> Iterator[tuple[_Page, Any]]:
    """A page about random clusters, once their labels are there."""
    rng = np.random.default_rng(0)
    y = rng.integers(N_CLASSES, size=n_samples)
    X = 2.0 * rng.normal(size=(N_CLASSES, N_FEATURES))[y] + rng.normal(size=(n_samples, N_FEATURES))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.csv"
        names = ",".join(f"c{number}" for number in range(N_FEATURES))
        np.savetxt(path, X, fmt="%.5g", delimiter=",", header=names, comments="")
        command = [sys.executable, "-m", "linkwise", "workbench", str(path), "--no-browser"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            try:
                line = next(line for line in process.stdout if "http://" in line)
                page = _Page(process, line.split()[-1])
                while page.get("/api/state").json()["refreshing"]:
                    time.sleep(0.1)
                yield page, y
            finally:
                process.kill()


def first_page() -> Table:
    """All that a page asks for, one after the other, from a server that has clustered the rows."""
    with _serving(N_PAGE) as (page, _):
        times = []
        for _ in range(4):  # the first time the picture is computed
            start = time.perf_counter()
            sizes = [len(page.get(path).content) for path in FIRST_PAGE]
            times.append(time.perf_counter() - start)
    warm = min(times[1:])
    return Table(
        f"The first page, {N_PAGE:,} rows, {N_FEATURES} columns: seconds of all its requests in turn",
        ["", "seconds", "KiB"],
        [["the first time", times[0], sum(sizes) / 1024], ["again", f"{warm:.3f} ({TARGETS['page']})", ""]],
        "Without what the browser does with it.",
        {"page": Measured(warm)},
    )


def answers() -> Table:
    """Latency of answers, and memory after some and after many."""
    rows: list[list[Any]] = []
    with _serving(N_ROWS) as (page, y):
        start = page.mebibytes()
        first = page.answer(y, N_ANSWERS)
        some = page.mebibytes()
        rows.append([N_ANSWERS, *_quantiles(first), some])
        later = page.answer(y, N_LONG - N_ANSWERS)
        many = page.mebibytes()
        rows.append([N_LONG, *_quantiles(later), many])
    slow = float(np.quantile(first, 0.95))
    return Table(
        f"From an answer to the next question, {N_ROWS:,} rows: seconds",
        ["answers", "median", "95 of 100", "slowest", "MiB of the server"],
        rows,
        f"A person looks at each question for {LOOKING} s. Before the first answer the server has {start:.0f}"
        " MiB. When four fifths of the landmarks were asked about, the model takes a quarter more.",
        {"answer": Measured(slow), "answers memory": Measured(many - some)},
    )


#: Moves the plane in each of 60 frames, and returns the milliseconds between frames.
_PAN = """async () => {
    const canvas = document.querySelector(".overlay"), box = canvas.getBoundingClientRect(), times = [];
    const at = (kind, x) => canvas.dispatchEvent(new PointerEvent(kind, {
        clientX: box.left + x, clientY: box.top + 200, buttons: 1, pointerId: 1, bubbles: true}));
    canvas.setPointerCapture = () => {};
    at("pointerdown", 200);
    let before = performance.now();
    for (let k = 0; k < 60; k++) {
        at("pointermove", 200 + 3 * k);
        await new Promise(requestAnimationFrame);
        times.push(performance.now() - before);
        before = performance.now();
    }
    at("pointerup", 380);
    return times;
}"""


def in_browser() -> Table:
    """Memory of the page and time between frames, with all rows in the plane, in Chromium without a GPU."""
    from playwright.sync_api import sync_playwright

    title = f"The page in the browser, {N_ROWS:,} rows in the plane"
    columns = ["milliseconds between frames, median", "95 of 100", "JavaScript, MiB", "whole page, MiB"]
    path = shutil.which("chromium")
    if path is None:
        return Table(title, columns, [], "not measured: there is no Chromium")
    with _serving(N_ROWS) as (page, _), sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        tab = chromium.new_page(viewport={"width": 1280, "height": 800})
        tab.goto(page.address)
        tab.click("[data-room=see]")
        tab.wait_for_selector(".legend li")
        tab.wait_for_timeout(2000)
        frames = tab.evaluate(_PAN)
        session = tab.context.new_cdp_session(tab)
        session.send("HeapProfiler.collectGarbage")
        heap = session.send("Runtime.getHeapUsage")["usedSize"] / 2**20
        renderers = [
            int(one["id"])
            for one in chromium.new_browser_cdp_session().send("SystemInfo.getProcessInfo")["processInfo"]
            if one["type"] == "renderer"
        ]
        whole = max(_private_mebibytes(number) for number in renderers)
        chromium.close()
    middle, slow, _ = _quantiles(frames)
    return Table(
        title,
        columns,
        [[middle, slow, heap, whole]],
        "While the plane is moved. The memory of the whole page is what its process shares with no other.",
        {"page memory": Measured(whole)},
    )


def _private_mebibytes(number: int) -> float:
    lines = Path(f"/proc/{number}/smaps_rollup").read_text(encoding="utf-8").splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_")) / 1024


def _quantiles(seconds: list[float]) -> list[float]:
    return np.quantile(seconds, [0.5, 0.95, 1.0]).tolist()


def run() -> Iterator[Table]:
    """Tables of this section."""
    yield first_page()
    yield answers()
    yield in_browser()
