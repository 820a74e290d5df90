"""The model behind the page: one thread that follows the answers and prepares the next questions."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise._arrays import Floats, Ints
from linkwise.active.knowledge import NO_ANSWERS, WORDS, Answers
from linkwise.active.quality import Quality
from linkwise.active.session import ActiveClustering, Doubt, StopHint
from linkwise.cli.ask.conversation import renamed

# Questions prepared ahead: at least, and at most while the model is slower than the person who answers.
_LEAST_AHEAD, _MOST_AHEAD = 8, 64
# Seconds that the thread is waited for at the end.
_PARTING = 0.5
# So many answers take a while to be understood when a session goes on: its first questions are those of a
# strategy that needs no more than the rows and who was joined to whom.
_MANY = 60
#: Makes a session about the same rows, without answers and journal; None: with the strategy of the first.
Make = Callable[[str | None], ActiveClustering]
_log = logging.getLogger("linkwise")


@dataclass(frozen=True)
class Questions:
    """Pairs to ask about after the first answers ``told``, the most useful first."""

    told: Answers = NO_ANSWERS
    pairs: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class View:
    """What the model said about the answers ``told``; numbers of clusters stay with their rows.

    ``labels`` (n,); ``landmarks`` (l,): rows with probabilities of their own, of which ``landmark_of`` (n,)
    gives each row its label; ``prob`` (l, K + 1): of ``clusters`` (K,), and last of one that no answer has
    found; ``wrong`` (m,): probability that each answer is wrong.
    """

    version: int
    told: Answers
    labels: NDArray[np.uint16]
    landmarks: Ints
    landmark_of: Ints
    prob: Floats
    clusters: Ints
    quality: Quality | None = None
    stop: StopHint | None = None
    error_rate: float = 0.0
    wrong: Floats = field(default_factory=lambda: np.empty(0))
    doubts: tuple[Doubt, ...] = ()
    converged: bool = True

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the labels should know."""
        if self.converged:
            return ()
        return (
            "The probabilities did not come to rest, so that labels of doubtful rows may be wrong; look at "
            "the answers under Doubt.",
        )

    def probabilities(self, row: int) -> Floats:
        """Probability of each of ``clusters`` for a row, and last of one not found: (K + 1,)."""
        return np.asarray(self.prob[np.searchsorted(self.landmarks, self.landmark_of[row])])

    def chance(self, i: int, j: int) -> float | None:
        """Probability that two rows are of one cluster, as if independent; None where little is known."""
        first, second = self.probabilities(i), self.probabilities(j)
        if max(first[-1], second[-1]) > 0.5:
            return None
        return float(first[:-1] @ second[:-1])


class Model:
    """A thread that computes questions and labels from the newest answers and calls ``news``."""

    def __init__(self, make: Make, news: Callable[[], None]) -> None:
        self._make, self._news = make, news
        self._changed = threading.Condition()
        self._wanted: Answers | None = None
        self._closing = False
        self.busy = True
        self.trouble: str | None = None
        self.questions: Questions | None = None
        self.view: View | None = None
        self.nothing_left = False
        # Seconds of the last questions and of the last refresh, and when the last two answers came.
        self.question_time, self._refresh_time = 0.0, 0.0
        self._pace = [0.0, 0.0]
        self._thread = threading.Thread(target=self._run, name="linkwise model", daemon=True)

    def start(self) -> None:
        """Begin to work."""
        self._thread.start()

    def follow(self, answers: Answers) -> None:
        """Let the thread take these answers next."""
        with self._changed:
            self._wanted = answers
            self.busy = True
            self._pace = [self._pace[1], time.monotonic()]
            self._changed.notify_all()

    def close(self) -> None:
        """End the thread after what it computes now."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        if self._thread.is_alive():
            self._thread.join(_PARTING)

    def _run(self) -> None:
        session: ActiveClustering | None = None
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._wanted is not None or self._closing)
                if self._closing:
                    return
                told, self._wanted = self._wanted, None
            assert told is not None
            try:
                session = self._make(None) if session is None else session
                self._refresh(session, told)
                self.trouble = None
            except Exception as error:
                _log.exception("the model could not follow the answers")
                self.trouble = f"the model could not follow the answers ({type(error).__name__}: {error})"
                session = None
            with self._changed:
                self.busy = self._wanted is not None
            self._news()

    def _refresh(self, session: ActiveClustering, told: Answers) -> None:
        """Questions first, because somebody waits for them; then labels, then what is said about them."""
        began = time.monotonic()
        if self.questions is None and len(told.says) >= _MANY:
            quick = self._make("spread")
            _tell_the_same(quick, told)
            self._publish(told, _pairs(quick.suggest(_MOST_AHEAD)))
        _tell_the_same(session, told)
        pairs = self._next_questions(session)
        self.question_time = time.monotonic() - began
        self._publish(told, pairs)
        self.nothing_left = not pairs
        self.view = _seen(session, told, self.view)
        self._refresh_time = time.monotonic() - began

    def _publish(self, told: Answers, pairs: list[tuple[int, int]]) -> None:
        self.questions = Questions(told, tuple(dict.fromkeys(pairs)))
        self._news()

    def _next_questions(self, session: ActiveClustering) -> list[tuple[int, int]]:
        """What the session would ask, and enough for the time until the next refresh."""
        try:
            first = session.ask()
        except ValueError as error:
            if "every pair was asked about" in str(error):
                return []
            raise
        between = max(self._pace[1] - self._pace[0], 0.05)
        ahead = int(np.clip(3.0 * self._refresh_time / between, _LEAST_AHEAD, _MOST_AHEAD))
        return [first, *_pairs(session.suggest(ahead))]


def _pairs(found: Ints) -> list[tuple[int, int]]:
    return [(i, j) for i, j in found.tolist()]


def _tell_the_same(session: ActiveClustering, told: Answers) -> None:
    """Make the answers of a session without a journal those ``told``: undo back to the first that differs."""
    before = session.answers
    shared = 0
    for one, other in zip(_lines(before), _lines(told), strict=False):
        if one != other:
            break
        shared += 1
    for _ in range(len(before.says) - shared):
        session.undo()
    for (i, j), says, certainty, source in list(_lines(told))[shared:]:
        session.tell(i, j, WORDS[says], None if np.isnan(certainty) else certainty, source)


def _lines(answers: Answers) -> Any:
    """Pair, what was said, certainty and source of each answer; NaN as one object, equal to itself."""
    certainty = [np.nan if value != value else value for value in answers.certainty.tolist()]
    pairs = map(tuple, answers.pairs.tolist())
    return zip(pairs, answers.says.tolist(), certainty, answers.source, strict=True)


def _seen(session: ActiveClustering, told: Answers, before: View | None) -> View:
    """What the session says now, its clusters under the numbers that most of their rows had."""
    found = session.labels_
    clusters = np.arange(int(found.max()) + 1)
    if before is not None:
        named = _small_numbers(renamed(before.labels.astype(np.int64), found), before.labels)
        clusters[found] = named
        found = named
    landmark_of = session.landmark_of_
    landmarks = np.unique(landmark_of)
    if before is not None and np.array_equal(before.landmark_of, landmark_of):
        landmark_of = before.landmark_of  # not held twice
    answers, doubts = session.answers, session.doubts()
    wrong = np.zeros(len(answers.says))
    for doubt in session.doubts(0.0):
        wrong[doubt.answer] = doubt.probability
    quality = session.quality_
    return View(
        version=1 if before is None else before.version + 1,
        told=told,
        labels=found.astype(np.uint16),
        landmarks=landmarks,
        landmark_of=landmark_of,
        prob=session.cluster_probabilities(landmarks),
        clusters=clusters,
        quality=quality if np.isfinite(quality.estimate) else None,
        stop=session.should_stop_,
        error_rate=session.error_rate_,
        wrong=wrong,
        doubts=tuple(doubts),
        converged=session.converged_,
    )


def _small_numbers(labels: Ints, before: NDArray[np.uint16]) -> Ints:
    """Give clusters that are new the smallest numbers that are free, so that numbers do not grow."""
    used = np.unique(labels)
    kept = used[used <= before.max()]
    free = np.setdiff1d(np.arange(len(used)), kept)
    new = used[used > before.max()]
    names = np.arange(int(used.max()) + 1)
    names[new] = free[: len(new)]
    return names[labels]
