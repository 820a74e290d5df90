"""Single keys from a terminal, or characters from a pipe."""

from __future__ import annotations

import os
import select
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

try:
    import termios
    import tty
except ImportError:  # Windows: the keys are read as from a pipe, so that the user ends them with Enter
    termios = tty = None  # type: ignore[assignment]

__all__ = ["END", "UNDO", "Keys"]

END, UNDO = "end", "undo"
_BACKSPACE, _END_OF_INPUT, _ESCAPE = (b"\x7f", b"\x08"), b"\x04", b"\x1b"
# The rest of the sequence of an arrow or function key follows its first byte at once.
_SEQUENCE_PAUSE = 0.05


class Keys:
    """Read one key after the other from standard input, without Enter where it is a terminal."""

    def __init__(self) -> None:
        self._stream: Any = getattr(sys.stdin, "buffer", sys.stdin)
        self.at_terminal = termios is not None and sys.stdin is not None and sys.stdin.isatty()

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Make single keys readable inside the block; what was typed at a terminal before is dropped."""
        if not self.at_terminal:
            yield
            return
        handle = self._stream.fileno()
        before = termios.tcgetattr(handle)

        def prepare(*_: object) -> None:
            tty.setcbreak(handle, termios.TCSAFLUSH)

        # A shell gives the terminal back in its own mode when a stopped session is continued.
        continued = signal.signal(signal.SIGCONT, prepare)
        try:
            prepare()
            yield
        finally:
            with suppress(termios.error):  # the terminal was closed
                termios.tcsetattr(handle, termios.TCSADRAIN, before)
            signal.signal(signal.SIGCONT, continued)

    def read(self) -> str:
        """Wait for a key: a character in lower case, ``UNDO`` for backspace, or ``END``.

        Keys that stand for nothing here (Enter, blanks, arrows) are passed over.
        """
        while True:
            key = self._byte()
            if key == _ESCAPE:
                self._pass_over_sequence()
            elif key in (b"", _END_OF_INPUT):
                return END
            elif key in _BACKSPACE:
                return UNDO
            elif key.strip():
                return self._character(key).lower()

    def _byte(self) -> bytes:
        try:
            if self.at_terminal:
                return os.read(self._stream.fileno(), 1)
            return bytes(self._stream.read(1))
        except OSError:  # the terminal was closed
            return b""

    def _character(self, first: bytes) -> str:
        """The whole character that begins with this byte, in UTF-8."""
        length = 1 + sum(first[0] >= start for start in (0xC2, 0xE0, 0xF0)) if first[0] < 0xF5 else 1
        text = first + b"".join(self._byte() for _ in range(length - 1))
        try:
            return text.decode()
        except UnicodeDecodeError:
            return "�"

    def _pass_over_sequence(self) -> None:
        """Read on to the end of what an arrow or function key sends: the D of ESC [ D is no answer."""
        if self.at_terminal and not select.select([self._stream.fileno()], [], [], _SEQUENCE_PAUSE)[0]:
            return  # the key Esc alone
        second = self._byte()
        if second == b"O":
            self._byte()
        elif second == b"[":
            while True:
                key = self._byte()
                if not key or b"@" <= key <= b"~":
                    return
