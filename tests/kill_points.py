"""Kill a process before each of its changes to the file system; run as a program by the tests.

``python kill_points.py FOLDER DATA LINKS`` prints JSON with a record for each kill point of ``save_model``
and of ``linkwise fit``. A child is forked for each, so that imports and fits are done once.
"""

from __future__ import annotations

import gc
import itertools
import json
import os
import re
import shutil
import signal
import sys
from pathlib import Path

CHANGES = {"open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.truncate", "os.chmod", "os.link"}


def kill_before(number: int, folder: Path) -> list[int]:
    """Send SIGKILL to this process before its change of this number inside the folder; counts the changes."""
    count = [0]

    def change() -> None:
        count[0] += 1
        if count[0] == number:
            os.kill(os.getpid(), signal.SIGKILL)

    def watch(event: str, arguments: tuple) -> None:
        # Names without a folder are those of shutil.rmtree, which works on open folders.
        if event in CHANGES and (
            str(arguments[0]).startswith(str(folder)) or (event != "open" and "/" not in str(arguments[0]))
        ):
            change()

    os.fsync = lambda _: change()
    sys.addaudithook(watch)
    return count


def killed_at(number: int, folder: Path, action) -> bool:
    """Whether a child that does this was killed before its change of this number."""
    gc.freeze()  # a child that collects garbage would copy all memory
    child = os.fork()
    if child == 0:
        try:
            kill_before(number, folder)
            action()
            os._exit(0)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return True
    assert os.WEXITSTATUS(status) == 0, f"kill point {number}: the child failed"
    return False


def n_changes(folder: Path, action) -> int:
    """How many changes an action makes, counted in a child."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            count = kill_before(0, folder)
            action()
            os.write(writer, str(count[0]).encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    return int(os.read(reader, 20))


def names(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def model_points(folder: Path) -> list[dict]:
    """A model of two components is replaced by one of three; then one is written to a new folder."""
    from sklearn.datasets import load_iris

    from linkwise import PPC
    from linkwise.persistence import load_model, save_model

    X, _ = load_iris(return_X_y=True)
    old, new = (PPC(k, random_state=0).fit(X[::3]) for k in (2, 3))
    records = []
    for earlier in (True, False):
        for number in itertools.count(1, 1 if earlier else 2):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            if earlier:
                save_model(old, folder / "model")
            killed = killed_at(number, folder, lambda: save_model(new, folder / "model"))
            found = load_model(folder / "model").n_components if (folder / "model").exists() else None
            left = names(folder)
            save_model(new, folder / "model")
            after = [re.sub("-[0-9a-f]{16}", "-*", name) for name in names(folder)]
            records.append(
                {"earlier": earlier, "killed": killed, "found": found, "left": left, "after": after}
            )
            if not killed:
                break
    return records


def fit_points(folder: Path, data: str, links: str) -> list[dict]:
    """A result with links and two clusters is replaced by one without links and with three."""
    from typer.testing import CliRunner

    from linkwise.cli import fit as command
    from linkwise.cli.app import app
    from linkwise.cli.fit import report
    from linkwise.cli.samples import load_prepared_model

    report.clusters_png = lambda *_, **__: b"rows"
    report.convergence_png = lambda *_: None
    fit_samples, done = command.fit_samples, {}

    def fit_once(out, samples, constraints, method, settings, **options):
        if settings.n_clusters not in done:
            done[settings.n_clusters] = fit_samples(out, samples, constraints, method, settings, **options)
        return done[settings.n_clusters]

    command.fit_samples = fit_once

    def run(*arguments):
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
        assert result.exit_code == 0, result.output

    def fit(k):
        extra = ["-l", links] if k == 2 else []
        run("fit", data, "-k", k, "--ignore", "flower,species", "--starts", 1, "-m", "ppc", "-o", out, *extra)

    def runs(out):
        """Which run each visible file is of."""
        seen = {}
        if (out / "labels.csv").exists():
            seen["labels"] = 2 + ("probability_2" in (out / "labels.csv").read_text())
        if (out / "links.csv").exists():
            seen["links"] = 2
        if (out / "model").exists():
            seen["model"] = 2 + ('"n_components",\n    3' in (out / "model" / "model.json").read_text())
        if (out / "report.html").exists():
            seen["report"] = 2 + ("3 clusters of" in (out / "report.html").read_text())
        return seen

    def reset():
        shutil.rmtree(out, ignore_errors=True)
        shutil.copytree(folder / "earlier", out)

    out, copy = folder / "out", folder / "copy"
    fit(2)
    (out / "thesis.txt").write_text("mine")
    shutil.copytree(out, folder / "earlier")
    fit(3)
    reset()
    total = n_changes(folder, lambda: fit(3))
    # Every change while the results are exchanged, which comes last, and some of those before.
    points = sorted({*range(1, total, 12), *range(total - 26, total + 2)})
    records = []
    for number in points:
        reset()
        killed = killed_at(number, folder, lambda: fit(3))
        record = {"killed": killed, "at once": runs(out)}
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(out, copy)
        load_prepared_model(copy / "model")
        record["after predict"], record["left by predict"] = runs(copy), top(copy)
        if number % 4 == 0:
            fit(3)
            record["after fit"], record["left by fit"] = runs(out), top(out)
        records.append(record)
    return records


def top(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


if __name__ == "__main__":
    # A killed process, unlike a power cut, loses nothing that was written.
    os.fsync = lambda _: None
    folder, data, links = sys.argv[1:]
    for name in ("model", "fit"):
        (Path(folder) / name).mkdir()
    print(
        json.dumps(
            {
                "model": model_points(Path(folder) / "model"),
                "fit": fit_points(Path(folder) / "fit", data, links),
            }
        )
    )
