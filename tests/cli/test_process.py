"""The command as a process of its own: pipes, signals, colours, exit codes."""

from __future__ import annotations

import importlib.metadata
import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

import linkwise
from linkwise import PPC
from linkwise._kernels import COMPILING
from linkwise.persistence import save_model
from tests import warm_python
from tests.repeats import LONG


def finish(running):
    out, err = running.communicate(timeout=120)
    assert "Traceback" not in err
    assert "Exception ignored" not in err
    return running.returncode, out, err


def test_version_and_help(process):
    code, out, _ = finish(process("--version"))
    assert (code, out) == (0, f"linkwise {linkwise.__version__}\n")
    code, out, _ = finish(process("--help", fresh=True))
    assert code == 0
    for command in ("fit", "predict", "check", "compare", "classes", "segment", "demo"):
        assert f"\n  {command} " in out


def test_console_script_is_installed():
    (script,) = importlib.metadata.entry_points(group="console_scripts", name="linkwise")
    assert script.load() is linkwise.cli.main
    found = shutil.which("linkwise", path=str(Path(sys.executable).parent))
    assert subprocess.run([found, "--version"], capture_output=True, check=True).stdout


def test_help_does_not_load_the_numerics():
    code = (
        "import sys, linkwise.cli.app; print([m for m in ('numba', 'sklearn', 'pandas') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out == "[]\n"


def test_fit_prints_no_colours_into_a_pipe(process, files, tmp_path):
    code, out, err = finish(
        process("fit", files / "iris.csv", "-l", files / "links.csv", "-k", 3, "--ignore", "flower,species",
                "-m", "ppc", "--starts", 2, "-o", tmp_path / "out", fresh=LONG)
    )  # fmt: skip
    assert code == 0
    assert err in ("", f"{COMPILING}\n")
    assert "\x1b" not in out
    assert "links kept" in out
    assert (tmp_path / "out" / "report.html").exists()


def test_error_is_one_line(process, tmp_path):
    code, out, err = finish(process("check", tmp_path / "nothing.csv", "-n", 5))
    assert (code, out) == (1, "")
    assert err == f"linkwise: {tmp_path / 'nothing.csv'}: no such file or directory; check the path\n"


def test_unreadable_file(process, tmp_path, files):
    data = shutil.copy(files / "iris.csv", tmp_path / "secret.csv")
    Path(data).chmod(0)
    try:
        open(data).close()
    except PermissionError:
        code, _, err = finish(process("fit", data, "-k", 3))
        remedy = "change its permissions, or pass another path"
        assert (code, err) == (1, f"linkwise: {data}: permission denied; {remedy}\n")
    else:
        pytest.skip("this user may read everything")


@pytest.mark.parametrize("format", [["--json"], []])
def test_reader_that_goes_away(process, files, tmp_path, format):
    """More output than a pipe holds, of which the reader takes one line."""
    lines = "".join(f"{row},{row + 1},must\n" for row in range(0, 2_000, 2))
    (tmp_path / "links.csv").write_text(f"i,j,kind\n{lines}")
    contradictions = "".join(f"{row},{row + 1},cannot\n" for row in range(0, 1_600, 2))
    with open(tmp_path / "links.csv", "a") as stream:
        stream.write(contradictions)
    running = process("check", tmp_path / "links.csv", "-n", 2_000, "-k", 2, "--most", 5000, *format)
    running.stdout.read(1)
    running.stdout.close()
    err = running.stderr.read()
    running.stderr.close()
    assert err in ("", f"{COMPILING}\n")
    assert running.wait(timeout=120) == 141


def test_pipe_into_head(process, files, tmp_path):
    """``linkwise predict | head -1`` with more rows than the pipe holds."""
    X = pd.read_csv(files / "iris.csv").drop(columns=["flower", "species"])
    save_model(PPC(3, n_init=1, random_state=0).fit(X), tmp_path / "model")
    pd.concat([X] * 60).to_csv(tmp_path / "many.csv", index=False)
    running = process("predict", tmp_path / "model", tmp_path / "many.csv")
    head = subprocess.run(["head", "-1"], stdin=running.stdout, capture_output=True, text=True, check=True)
    running.stdout.close()
    assert head.stdout == "row,cluster,probability_0,probability_1,probability_2\n"
    assert running.stderr.read() in ("", f"{COMPILING}\n")
    running.stderr.close()
    assert running.wait(timeout=120) == 141


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_interrupted_run_leaves_no_half_file(process, files, tmp_path, number, code):
    """Writing is slowed down in the middle of a file; then the signal comes."""
    script = (
        "import sys, time, pandas, linkwise.cli;"
        "pandas.DataFrame.to_csv = lambda frame, path, **options: "
        "(open(path, 'w').write('row,clus'), print('writing', flush=True), time.sleep(60));"
        f"sys.argv = ['linkwise', 'fit', {str(files / 'iris.csv')!r}, '-k', '3',"
        f"'--ignore', 'flower,species', '-m', 'ppc', '--starts', '1', '-o', {str(tmp_path / 'out')!r}];"
        "linkwise.cli.main()"
    )
    running = warm_python.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    for line in running.stdout:
        if line == "writing\n":
            break
    assert len(list((tmp_path / "out").iterdir())) == 1  # the draft
    time.sleep(0.2)
    running.send_signal(number)
    _, err = running.communicate(timeout=60)
    assert "Traceback" not in err
    assert running.returncode == code
    assert list((tmp_path / "out").iterdir()) == []


def test_json_can_be_read_by_a_script(process, files):
    code, out, err = finish(process("check", files / "links.csv", "-n", 150, "-k", 3, "--json"))
    assert code == 0
    assert err in ("", f"{COMPILING}\n")
    assert json.loads(out)["feasible"] is True
