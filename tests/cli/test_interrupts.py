"""Ctrl-C at any moment: exit code 130, one line, no traceback."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time

import pytest

from tests import warm_python

# Says up once the command hears signals; before that it is Python that starts, and its answer is its own.
START = (
    "import signal; from linkwise.cli import main\n"
    "original = signal.signal\n"
    "def heard(number, handler):\n"
    "    before = original(number, handler)\n"
    "    if number == signal.SIGINT and signal.signal is heard:\n"
    "        signal.signal = original\n"
    "        print('up', flush=True)\n"
    "    return before\n"
    "signal.signal = heard\n"
    "main()"
)
# The same, with a word at the moment when a function is called.
MARKED = (
    "import sys, importlib; from linkwise.cli import main\n"
    "module, kind, name = {place!r}.split(':')\n"
    "owner = importlib.import_module(module)\n"
    "owner = getattr(owner, kind) if kind else owner\n"
    "original = getattr(owner, name)\n"
    "def marked(*positional, **options):\n"
    "    print('up', flush=True)\n"
    "    return original(*positional, **options)\n"
    "setattr(owner, name, marked)\n"
    "main()"
)
# What swallows exceptions and what no signal handler of Python gets into, each for a minute.
DEAF = (
    "import sys, time\n"
    "from linkwise.cli.errors import listening\n"
    "with listening(sys.argv[1:]):\n"
    "    print('up', flush=True)\n"
    "    while True:\n"
    "        try:\n"
    "            time.sleep(60)\n"
    "        except KeyboardInterrupt:\n"
    "            pass\n"
)
BUSY = (
    "import sys, hashlib\n"
    "from linkwise.cli.errors import listening\n"
    "with listening(sys.argv[1:]):\n"
    "    print('up', flush=True)\n"
    "    hashlib.pbkdf2_hmac('sha256', b'', b'', 10**8)\n"
)


def interrupted(code, arguments, delay, number=signal.SIGINT):
    """Exit code, standard output and error of a process that gets a signal some time after it said up.

    Where the moment of the signal is not within an import, the modules are imported beforehand.
    """
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    if code is START:
        # Jobs in the background of a shell ignore SIGINT, and hand that on.
        options["preexec_fn"] = lambda: signal.signal(signal.SIGINT, signal.default_int_handler)
    running = (subprocess if code is START else warm_python).Popen(
        [sys.executable, "-c", code, *map(str, arguments)], **options
    )
    assert running.stdout.readline() == "up\n"
    time.sleep(delay)
    running.send_signal(number)
    out, err = running.communicate(timeout=120)
    return running.returncode, out, err


def check(result, code=130, word="interrupted"):
    assert result[0] == code, result
    (line,) = result[2].splitlines()
    assert line.startswith(f"linkwise: {word}; "), result


@pytest.fixture(scope="session")
def endless(files, tmp_path_factory):
    """Arguments of a fit that would run for hours."""
    folder = tmp_path_factory.mktemp("endless") / "out"
    return [
        "fit", files / "iris.csv", "-k", 3, "--ignore", "flower,species", "-m", "ppc",
        "--starts", 10**7, "-o", folder,
    ]  # fmt: skip


@pytest.mark.parametrize("delay", [0.0, 0.001, 0.003, 0.02, 0.05, 0.1, 0.2, 0.4])
def test_while_modules_are_imported_and_later(endless, delay):
    check(interrupted(START, endless, delay))
    assert not endless[-1].exists()


@pytest.fixture(scope="session")
def large_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("large") / "large.csv"
    path.write_text("a,b,c,d\n" + "1.25,2.5,3.125,4.75\n" * 1_000_000)
    return path


@pytest.mark.parametrize("delay", [0.0, 0.1])
def test_while_a_file_is_read(large_file, delay):
    code = MARKED.format(place="pandas::read_csv")
    check(interrupted(code, ["fit", large_file, "-k", 3, "-m", "ppc", "--starts", 10**6], delay))


def test_while_a_model_is_fitted(endless):
    code = MARKED.format(place="linkwise.mixture.ppc:PPC:fit")
    check(interrupted(code, endless, 0.1))
    assert not endless[-1].exists()


@pytest.mark.parametrize(
    ("code", "number", "exit_code", "word"),
    [(DEAF, signal.SIGINT, 130, "interrupted"), (BUSY, signal.SIGTERM, 143, "terminated")],
)
def test_what_swallows_the_exception_ends_all_the_same(code, number, exit_code, word):
    check(interrupted(code, [], 0.0, number), exit_code, word)


def test_json_tells_of_the_interruption(endless):
    done = interrupted(START, [*endless, "--json"], 0.1)
    check(done)
    error = json.loads(done[1])["error"]
    assert (error["kind"], error["exit_code"]) == ("interrupted", 130)


def test_an_ignored_signal_stays_ignored():
    """As under nohup: the parent decided."""
    code = (
        "import os, signal; from linkwise.cli.errors import listening\n"
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "with listening([]): os.kill(os.getpid(), signal.SIGINT)\n"
        "print('done')"
    )
    done = warm_python.run([sys.executable, "-c", code], timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
