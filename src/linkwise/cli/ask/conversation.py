"""Questions and answers: what is shown, which keys there are, and what each of them does."""

from __future__ import annotations

import os
import select
import signal
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from linkwise._arrays import Ints
from linkwise._validation import counted
from linkwise.cli.ask.records import UNLIKE, Records, drawn, open_images

if TYPE_CHECKING:
    from rich.console import Console

    from linkwise.active.contradictions import Contradiction


try:
    import termios
    import tty
except ImportError:  # Windows: the keys are read as from a pipe, so that the user ends them with Enter
    termios = tty = None  # type: ignore[assignment]


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
        """Wait for a key: a character in lower case, ``UNDO`` or ``END``; arrows and blanks are no keys."""
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


# Moves that are listed one by one.
_TOLD = 3


def renamed(before: Ints, after: Ints) -> Ints:
    """The new labels, numbered so that the fewest rows move; clusters without a match get new numbers."""
    old, old_of = np.unique(before, return_inverse=True)
    new, new_of = np.unique(after, return_inverse=True)
    shared = np.bincount(old_of * len(new) + new_of, minlength=len(old) * len(new)).reshape(
        len(old), len(new)
    )
    names = np.full(len(new), -1, dtype=np.int64)
    for row, column in zip(*linear_sum_assignment(shared, maximize=True), strict=True):
        if shared[row, column]:
            names[column] = old[row]
    free = names < 0
    names[free] = int(old.max()) + 1 + np.arange(np.count_nonzero(free))
    return names[new_of]


def change_in_words(before: Ints, after: Ints) -> str:
    """Say which rows moved; ``after`` has the numbers of ``renamed``."""
    moved = before != after
    if not moved.any():
        return "no row moved"
    pairs, counts = np.unique(np.column_stack([before, after])[moved], axis=0, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    parts = []
    for place in order[:_TOLD].tolist():
        source, target = pairs[place].tolist()
        gone = "" if (after == source).any() else " (gone)"
        new = "" if (before == target).any() else " (new)"
        parts.append(f"{counts[place]} from cluster {source}{gone} to {target}{new}")
    rest = int(counts[order[_TOLD:]].sum())
    if rest:
        parts.append(f"{rest} elsewhere")
    total = int(moved.sum())
    return f"{counted(total, 'row')} moved: {', '.join(parts)}"


_ANSWERS = {"s": "same", "d": "different", "u": "unsure"}
_MENU = ("s same", "d different", "u unsure", "z undo", "q quit", "? help")
_HELP = """\
s, d, u     the two records are of one cluster; they are not; you cannot tell
z           take back the last answer (so does backspace), and be asked again
q           stop; what was answered is kept, and the same command goes on later
?           this help"""
_LEGEND = "Marks: ≠ differs, ~ two numbers differ by less than half a standard deviation, none: equal."
_HELP_IMAGES = "o           open both images with the viewer of this system"
# Keys of the answers in a contradiction: not those that mean something else there.
_CHOICES = "123456789abcdefghijlmnoprstuvwxy"


class Conversation:
    """One session of questions, until the user quits, the input ends or enough was answered."""

    def __init__(
        self,
        session: Any,
        records: Records,
        name: Callable[[int], str],
        *,
        console: Console,
        keys: Keys,
        source: str | None = None,
        certainty: float | None = None,
        most: int | None = None,
    ) -> None:
        self.session, self.records, self.name = session, records, name
        self.console, self.keys = console, keys
        self.source, self.certainty, self.most = source, certainty, most
        self._labels: Ints = np.asarray(session.labels_)
        # Contradictions that the user has seen and left as they are: the pairs and what was said of them.
        self._left: set[frozenset[Any]] = set()
        self._told_to_stop = False
        self._ended = ""

    def run(self) -> str:
        """Ask until the end; gives the reason why it ended."""
        told = 0
        self._say(_LEGEND, style="dim")
        self._settle_contradictions(None)
        while self.most is None or told < self.most:
            if self._ended:
                return self._ended
            pair = self._next_pair()
            if pair is None:
                return "every pair was asked about"
            self._show_state()
            self._show_question(*pair)
            answer = self._answer(*pair)
            if answer == END:
                return self._ended
            if answer == UNDO:
                self._undo()
                told = max(told - 1, 0)
            else:
                told += self._tell(*pair, answer)
        return "as many answers as --most asked for"

    def _next_pair(self) -> tuple[int, int] | None:
        """The next question, or None if there is none left."""
        try:
            i, j = self.session.ask()
        except ValueError as error:
            if "every pair was asked about" in str(error):
                return None
            raise
        return int(i), int(j)

    def _say(self, text: str = "", *, style: str | None = None) -> None:
        """Print a paragraph, broken between words."""
        for line in text.splitlines() or [""]:
            for part in textwrap.wrap(line, self.console.width) or [""]:
                self.console.print(part, style=style, markup=False, highlight=False)

    def _show_state(self) -> None:
        """How many answers there are, how good the clusters are, and whether to stop."""
        count = self.session.n_answers
        quality = self.session.quality_
        clusters = len(np.unique(self._labels))
        state = f"{counted(count, 'answer')}, {counted(clusters, 'cluster')}"
        if np.isfinite(quality.estimate):
            low, high = round(100 * quality.low), round(100 * quality.high)
            state += f"; about {100 * quality.estimate:.0f} % of the pairs are right ({low} to {high} %)"
        self._say()
        self._say(state, style="dim")
        stop, reason = self.session.should_stop_
        if stop and not self._told_to_stop:
            self._say(f"You may stop now: {reason}.", style="bold")
        self._told_to_stop = bool(stop)

    def _show_question(self, i: int, j: int) -> None:
        fields, hidden = self.records.fields(i, j)
        self._say()
        self.console.print(drawn(fields, (self.name(i), self.name(j)), self.console.width))
        if hidden:
            self._say(f"and {counted(hidden, 'column')} more that differ less (--show chooses)")
        self._say()

    def _answer(self, i: int, j: int) -> str:
        """Wait for a key that is an answer, ``UNDO`` or ``END``."""
        while True:
            images = () if self.records.image_column is None else ("o open images",)
            key = self._key("Same cluster?", *_MENU, *images)
            if key in _ANSWERS:
                self._echo(_ANSWERS[key])
                return _ANSWERS[key]
            if key in (UNDO, "z"):
                self._echo("undo")
                return UNDO
            if self._is_end(key):
                return END
            if key == "?":
                self._echo("help")
                self._say(_HELP)
                if images:
                    self._say(_HELP_IMAGES)
                self._say(_LEGEND)
            elif key == "o" and images:
                self._echo("open")
                problem = open_images(self.records.images(i, j))
                if problem:
                    self._say(problem)
            else:
                self._echo("")
                self._say(f"The key {key!r} means nothing here.")

    def _key(self, question: str, *menu: str) -> str:
        """Show a question with the keys that answer it, and wait for a key."""
        items = "  ".join(item.replace(" ", "\N{NO-BREAK SPACE}") for item in menu)
        # There is room for the word that the key stands for.
        lines = textwrap.wrap(f"{question}  {items} >", self.console.width - 10, break_on_hyphens=False)
        prompt = "\n".join(lines).replace("\N{NO-BREAK SPACE}", " ")
        with self.keys.listening():
            self.console.print(prompt + " ", markup=False, end="", soft_wrap=True)
            self.console.file.flush()
            return self.keys.read()

    def _is_end(self, key: str) -> bool:
        """Whether the key ends the session; if so, say it."""
        if key not in (END, "q"):
            return False
        self._echo("quit" if key == "q" else "")
        self._ended = "quit" if key == "q" else "end of the input"
        return True

    def _echo(self, word: str) -> None:
        """End the line of the prompt with what the key meant."""
        self.console.print(word, markup=False)

    def _tell(self, i: int, j: int, answer: str) -> int:
        """Keep an answer, say what it changed and settle contradictions; gives the number of answers more."""
        from linkwise.exceptions import InfeasibleConstraints

        try:
            self.session.tell(i, j, answer, certainty=self.certainty, source=self.source)
        except InfeasibleConstraints as error:
            self._say(f"Not kept, because of facts told before: {self._chain(i, j, answer) or error}")
            return 0
        self._show_change(answer)
        return 1 - self._settle_contradictions(self.session.n_answers - 1)

    def _chain(self, i: int, j: int, answer: str) -> str:
        """The chain of answers that a new one contradicts; empty if given links are part of it."""
        from linkwise.active.contradictions import find_contradictions
        from linkwise.active.knowledge import SAYS, append

        found = find_contradictions(append(self.session.answers, i, j, SAYS[answer]))
        return next((one.text(self.name) for one in found if self.session.n_answers in one.answers), "")

    def _undo(self) -> None:
        if self.session.n_answers == 0:
            self._say("There is no answer to take back.")
            return
        self.session.undo()
        self._show_change("undo")

    def _show_change(self, what: str) -> None:
        after = renamed(self._labels, np.asarray(self.session.labels_))
        self._say(f"{what}: {change_in_words(self._labels, after)}")
        self._labels = after

    def _settle_contradictions(self, newest: int | None) -> int:
        """Show each contradiction once, and take back what the user chooses; gives how many were."""
        taken_back = 0
        while True:
            found = [one for one in self.session.contradictions() if self._key_of(one) not in self._left]
            if not found:
                return taken_back
            chosen = self._choose(found[0], newest)
            if self._ended:
                return taken_back
            if chosen is None:
                self._left.add(self._key_of(found[0]))
                continue
            self.session.retract(chosen)
            taken_back += 1
            newest = None
            self._show_change("taken back")

    def _choose(self, contradiction: Contradiction, newest: int | None) -> int | None:
        """Let the user choose the answer that is wrong; None if all are to stay."""
        title = "These answers cannot all be right"
        if contradiction.n_clusters is not None:
            title += f": they need more than {counted(contradiction.n_clusters, 'cluster')}"
        self._say()
        self._say(title + ".", style="bold")
        choices = {}
        for key, answer, (i, j), says in zip(
            _CHOICES, contradiction.answers, contradiction.pairs, contradiction.says, strict=False
        ):
            choices[key] = answer
            sign = "=" if says > 0 else UNLIKE
            note = "just given" if answer == newest else f"answer {answer + 1}"
            self._say(f"  {key}  {self.name(i)} {sign} {self.name(j)}   ({note})")
        while True:
            key = self._key(
                "Which one is wrong?", f"1-{list(choices)[-1]} take it back", "k keep all", "q quit"
            )
            if key in choices:
                self._echo("taken back")
                return choices[key]
            if self._is_end(key):
                return None
            if key == "k":
                self._echo("all kept")
                return None
            self._echo("")
            self._say(f"The key {key!r} means nothing here.")

    def _key_of(self, contradiction: Contradiction) -> frozenset[Any]:
        return frozenset(
            (frozenset(pair), says)
            for pair, says in zip(contradiction.pairs, contradiction.says, strict=True)
        )
