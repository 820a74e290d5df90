"""Processes of Python that start with linkwise imported: a tenth of a second instead of two.

``Popen`` and ``run`` are those of :mod:`subprocess`, for ``[sys.executable, "-c" or "-m" or a file, ...]``.
A server imports what most programs need and forks a copy of itself for each. The copy is a process like any
other: it has its own pipes, folder and environment, hears signals, and ends as Python ends. It did not have
to start and import, so tests of that take ``subprocess``. No signal is ignored, also under nohup.
"""

from __future__ import annotations

import atexit
import ctypes
import fcntl
import gc
import importlib
import inspect
import os
import pathlib
import pickle
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import threading
import types
from functools import cache
from typing import Any

#: What is imported before programs start.
MODULES = (
    "linkwise.cli.app", "linkwise.cli.fit", "linkwise.cli.predict", "linkwise.cli.ask",
    "linkwise.auto.estimator", "linkwise.active.session", "linkwise.persistence.layout", "pandas",
    "linkwise.mixture.ppc", "linkwise.kmeans.hmrf_kmeans", "linkwise.spectral.constrained",
)  # fmt: skip
_LARGEST_MESSAGE = 1_000_000
_SET_CHILD_SUBREAPER = 36


def run(command: list[Any], *, input: Any = None, timeout: float | None = None, **options: Any) -> Any:
    """Run a program to its end, as ``subprocess.run`` does with output captured as text."""
    pipe = subprocess.PIPE
    given = {"stdin": pipe} if input is not None else {}
    with Popen(command, **{"stdout": pipe, "stderr": pipe, "text": True, **given, **options}) as running:
        try:
            out, err = running.communicate(input, timeout)
        except BaseException:
            running.kill()
            raise
    return subprocess.CompletedProcess(running.args, running.returncode, out, err)


class _WarmPopen(subprocess.Popen):
    """A process that the server forks. It becomes a child of this process, so waiting is as ever."""

    def _execute_child(self, *arguments: Any) -> None:
        given = inspect.signature(subprocess.Popen._execute_child).bind(self, *arguments).arguments
        program, *words = [
            os.fsdecode(word) if isinstance(word, bytes) else str(word) for word in given["args"]
        ]
        assert program == sys.executable, f"{program} is not this Python: start it by subprocess"
        assert given["preexec_fn"] is None, "a warm process takes no preexec_fn"
        ends = [given[name] for name in ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")]
        request = {
            "words": words,
            "folder": os.path.abspath(given["cwd"] or "."),
            "environment": dict(os.environ if given["env"] is None else given["env"]),
            "session": bool(given["start_new_session"]),
        }
        streams = [own if end == -1 else end for own, end in enumerate((ends[0], ends[3], ends[5]))]
        server, _ = _server()
        socket.send_fds(server, [pickle.dumps(request)], streams)
        self.pid = pickle.loads(server.recv(_LARGEST_MESSAGE))
        self._child_created = True
        self._close_pipe_fds(*ends)


Popen = _WarmPopen if sys.platform == "linux" else subprocess.Popen


@cache
def _server() -> tuple[socket.socket, subprocess.Popen]:
    """Start the server of this process; the socket that takes requests, and the server."""
    # Orphans become children of this process: those that the server's short-lived children leave.
    ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with there:
        server = subprocess.Popen(
            [sys.executable, __file__, str(there.fileno())], pass_fds=[there.fileno()],
            start_new_session=True, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    return here, server


def _serve(requests: socket.socket) -> dict[str, Any] | None:
    """Fork for each request until there are no more; a copy returns with its request."""
    while True:
        message, streams, _, _ = socket.recv_fds(requests, _LARGEST_MESSAGE, 3)
        if not message:
            return None
        assert threading.active_count() == 1, "threads do not survive a fork"
        told, tell = os.pipe()
        helper = os.fork()
        if helper == 0:
            child = os.fork()
            if child:
                os.write(tell, pickle.dumps(child))
                os._exit(0)
            for number, stream in enumerate(streams):
                os.dup2(stream, number)
            requests.close()
            for handle in (told, tell, *streams):
                if handle > 2:
                    os.close(handle)
            return pickle.loads(message)
        os.waitpid(helper, 0)
        requests.send(os.read(told, 1000))
        for handle in (told, tell, *streams):
            os.close(handle)


def _become(request: dict[str, Any]) -> None:
    """Run the program as Python would have, had it been started for it."""
    if request["session"]:
        os.setsid()
        if os.isatty(0):
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    for name, number in (("stdin", 0), ("stdout", 1), ("stderr", 2)):
        by_line = number == 2 or (number == 1 and os.isatty(1))
        stream = open(  # noqa: SIM115
            number, "w" if number else "r", 1 if by_line else -1, "utf-8",
            "backslashreplace" if number == 2 else None, closefd=False,
        )  # fmt: skip
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    option, *words = request["words"]
    if option == "-m":
        sys.argv = words
        sys.path[0] = request["folder"]
        runpy.run_module(words[0], run_name="__main__", alter_sys=True)
    elif option == "-c":
        sys.argv = ["-c", *words[1:]]
        sys.path[0] = ""
        main = sys.modules["__main__"] = types.ModuleType("__main__")
        exec(compile(words[0], "<string>", "exec"), main.__dict__)
    else:
        sys.argv = [option, *words]
        sys.path[0] = os.path.dirname(option)
        runpy.run_path(option, run_name="__main__")


def _end(code: Any) -> None:
    """End as Python does, but leave memory as it is: freeing all of it takes longer than most programs."""
    if isinstance(code, int | None):
        threading._shutdown()  # waits for threads
        atexit._run_exitfuncs()
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except OSError:
            pass  # a reader that went away, or a full disk: Python says so below
        else:
            os._exit((code or 0) & 0xFF)
    sys.exit(code)


def _warm_up() -> None:
    """Run small commands, so that copies have what is imported late and the compiled kernels in memory."""
    import typer.main

    typer.main.get_command = cache(typer.main.get_command)  # the parser of the command takes 50 ms
    from typer.testing import CliRunner

    from linkwise.cli.app import app

    here = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        rows = "".join(f"r{row},{row % 7 + 9 * (row // 10)}.0,{row % 3}.0\n" for row in range(20))
        pathlib.Path("rows.csv").write_text(f"id,x,y\n{rows}")
        pathlib.Path("links.csv").write_text("i,j,kind\nr0,r1,must\nr1,r2,must\nr0,r15,cannot\n")
        shared = ["rows.csv", "--id", "id", "-l", "links.csv"]
        for words in (
            ["fit", *shared, "-k", "2", "-m", "ppc", "-o", "model"],
            ["predict", "model", "rows.csv", "--id", "id"],
            ["ask", *shared, "-o", "asked.csv"],
        ):
            CliRunner().invoke(app, words, input="sdq")
        os.chdir(here)


if __name__ == "__main__":
    sys.path[0] = ""  # not this folder, which has a folder named dask
    for number, action in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        signal.signal(number, action)
    for name in MODULES:
        importlib.import_module(name)
    _warm_up()
    gc.freeze()  # a copy that collects garbage would copy all memory
    found = _serve(socket.socket(fileno=int(sys.argv[1])))
    if found is not None:
        code: Any = None
        try:
            _become(found)
        except SystemExit as end:
            code = end.code
        _end(code)
