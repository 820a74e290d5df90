"""Single keys, at a real terminal and from a pipe."""

from __future__ import annotations

import io
import signal
import sys
import time

import pytest

from linkwise.cli.ask.conversation import END, UNDO, Keys
from tests.cli.ask.terminal import Terminal

READER = """
import sys, time
from linkwise.cli.ask.conversation import END, Keys
keys, key = Keys(), ""
while key != END:
    with keys.listening():
        print("ready", flush=True)
        key = keys.read()
    print(f"<{key}>", flush=True)
    time.sleep(float(sys.argv[1]))
"""


@pytest.fixture
def reader():
    terminals = []

    def start(pause=0.0):
        terminals.append(Terminal([sys.executable, "-c", READER, pause]))
        terminals[-1].wait_for("ready")
        return terminals[-1]

    yield start
    for terminal in terminals:
        terminal.close()


@pytest.mark.parametrize(
    ("pressed", "key"),
    [
        ("s", "s"), ("D", "d"), ("\x7f", "undo"), ("\x08", "undo"), ("\x04", "end"), ("ä", "ä"), ("?", "?"),
        # An arrow ends in D, a function key in ~; Enter and the bar are passed over.
        ("\x1b[Ds", "s"), ("\x1bODu", "u"), ("\x1b[15~q", "q"), ("\x1b[1;5Dz", "z"), ("\r \ts", "s"),
    ],
)  # fmt: skip
def test_one_key_is_enough_at_a_terminal(reader, pressed, key):
    terminal = reader()
    terminal.press(pressed)
    assert f"<{key}>" in terminal.wait_for(">")


def test_the_key_escape_alone_is_passed_over(reader):
    terminal = reader()
    terminal.press("\x1b")
    time.sleep(0.3)
    terminal.press("d")
    assert "<d>" in terminal.wait_for(">")


def test_what_is_typed_ahead_is_no_answer(reader):
    """A key held down, or pressed while the next question is computed, was not about that question."""
    terminal = reader(0.5)
    terminal.press("sss")
    assert "<s>" in terminal.wait_for(">")
    terminal.press("ss")
    terminal.wait_for("ready")
    terminal.press("u")
    assert "<u>" in terminal.wait_for(">")


def test_the_terminal_is_left_as_it_was(reader):
    terminal = reader()
    assert terminal.mode_now() != terminal.mode
    terminal.press("\x03")
    assert terminal.ended() != 0
    assert "KeyboardInterrupt" in terminal.screen
    assert terminal.mode_now() == terminal.mode


def test_a_stopped_session_takes_single_keys_again(reader):
    import termios

    terminal = reader()
    single = terminal.mode_now()
    terminal.process.send_signal(signal.SIGSTOP)
    termios.tcsetattr(terminal._inner, termios.TCSANOW, terminal.mode)  # as a shell does
    terminal.process.send_signal(signal.SIGCONT)
    end = time.monotonic() + 10
    while terminal.mode_now() != single:
        assert time.monotonic() < end
        time.sleep(0.02)
    terminal.press("d")
    assert "<d>" in terminal.wait_for(">")


def test_a_pipe_is_read_character_by_character(monkeypatch):
    content = "sD\nä\x7f\x1b[D\x1bOA u".encode() + b"\xff\xfex\xc3"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    keys = Keys()
    assert not keys.at_terminal
    found = []
    while (key := keys.read()) != END:
        found.append(key)
    assert found == ["s", "d", "ä", UNDO, "u", "�", "�", "x", "�"]
