"""A program in a terminal of its own: what it shows, and keys pressed one by one."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import termios
import time

from tests import warm_python


class Terminal:
    """Start a program with a terminal as its standard input, output and error."""

    def __init__(self, command, *, columns: int = 80, lines: int = 40, **options) -> None:
        self.handle, inner = pty.openpty()
        fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self.mode = termios.tcgetattr(inner)
        self._inner = inner
        self.process = warm_python.Popen(
            [str(word) for word in command], stdin=inner, stdout=inner, stderr=inner, start_new_session=True,
            **options,
        )  # fmt: skip
        self.raw, self._seen = "", 0

    @property
    def screen(self) -> str:
        """What was shown so far, without colours and without what a progress bar had drawn over."""
        text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.raw).replace("\r\n", "\n")
        return "\n".join(line.rpartition("\r")[2] for line in text.split("\n"))

    def wait_for(self, text: str, seconds: float = 60.0) -> str:
        """Read until the text is shown; gives what was shown from the last such text up to this one."""
        end = time.monotonic() + seconds
        while text not in self.screen[self._seen :]:
            assert time.monotonic() < end, f"{text!r} was not shown: {self.screen}"
            if not self._read():
                break
        screen = self.screen
        place = screen.find(text, self._seen)
        assert place >= 0, screen
        since, self._seen = self._seen, place + len(text)
        return screen[since : self._seen]

    def _read(self) -> bool:
        if select.select([self.handle], [], [], 0.1)[0]:
            try:
                self.raw += os.read(self.handle, 65536).decode(errors="replace")
            except OSError:  # the other end was closed
                return False
        return self.process.poll() is None or bool(select.select([self.handle], [], [], 0.0)[0])

    def press(self, keys: str | bytes) -> None:
        os.write(self.handle, keys.encode() if isinstance(keys, str) else keys)

    def ended(self, seconds: float = 60.0) -> int:
        """Read to the end; gives the exit code."""
        end = time.monotonic() + seconds
        while self._read():
            assert time.monotonic() < end, self.screen
        return self.process.wait(timeout=seconds)

    def mode_now(self) -> list:
        return termios.tcgetattr(self._inner)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.handle)
        os.close(self._inner)
