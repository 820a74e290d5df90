"""The desk where people answer: answers go to disk at once, questions are ready, the model follows behind."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from linkwise._arrays import Ints
from linkwise.active.contradictions import Contradiction
from linkwise.active.knowledge import SAYS, UNSURE, WORDS, Answers
from linkwise.active.session import ActiveClustering
from linkwise.constraints import Constraints
from linkwise.graph import group_labels
from linkwise.workbench.model import Make, Model, Questions, View
from linkwise.workbench.table import Table

JOURNAL = "answers.journal"
# Seconds that a reply waits for questions which know the last answer, before one prepared earlier is given;
# it does not wait where the last questions took longer.
_PATIENCE = 0.12
# Seconds after which a question is given although none is prepared.
_MOST_PATIENCE = 0.15
# Seconds of the last questions from which on nobody waits for the next ones.
_HOPELESS = 1.0
# Random pairs that are looked at then.
_TRIES = 200
# A question that somebody left is free for others after so many seconds.
_HELD = 600.0


class Conflict(ValueError):
    """What was asked for does not fit what there is now; the page should look again."""


class Missing(ValueError):
    """What was asked for is not there yet, or not at all."""


class Held(NamedTuple):
    """A pair that somebody looks at; ``again``: though it may follow; ``is_random``: not prepared."""

    pair: tuple[int, int]
    again: bool
    since: float
    is_random: bool = False


class Desk:
    """Questions and answers of one table, for several people and several pages.

    ``session`` keeps the answers in its journal; ``make`` makes one about the same rows without answers, for
    the model; ``links`` were given to both.
    """

    def __init__(
        self, table: Table, session: ActiveClustering, make: Make, links: Constraints | None = None
    ) -> None:
        self.table, self.given, self._session = table, links, session
        self._changed = threading.Condition()
        self.version = 1
        self._answers, self._n_records = session.answers, session.journal.n_records
        self._known = Known(links, self._answers)
        self._contradictions: tuple[Answers, list[Contradiction]] | None = None
        # What each person looks at.
        self._held: dict[str, Held] = {}
        # Prepared pairs, and whether their answer followed from others then: such a pair is asked again.
        self._prepared: dict[tuple[int, int], bool] = {}
        self._prepared_of: Questions | None = None
        self._rng = np.random.default_rng(0)
        self.model = Model(make, self._news)
        self.model.start()
        self.model.follow(self._answers)

    @classmethod
    def open(
        cls,
        table: Table,
        folder: Path,
        *,
        links: Constraints | None = None,
        n_clusters: int | str = "auto",
        seed: int = 0,
    ) -> Self:
        """Begin a session in this folder, or go on with the one that is there."""
        session = ActiveClustering(
            table.X, links, n_clusters=n_clusters, journal=folder / JOURNAL, random_state=seed
        )
        seed = int(session.journal.header.get("seed") or 0)

        def make(strategy: str | None) -> ActiveClustering:
            return ActiveClustering(
                table.X, links, n_clusters=n_clusters, strategy=strategy or "auto", random_state=seed
            )

        return cls(table, session, make, links)

    @property
    def folder(self) -> Path | None:
        """Where the answers are kept; None if they are not."""
        path = self._session.journal.path
        return None if path is None else path.parent

    @property
    def answers(self) -> Answers:
        """The answers that stand."""
        return self._answers

    @property
    def view(self) -> View | None:
        """What the model said last; None before it has said anything."""
        return self.model.view

    def labels(self) -> tuple[int, NDArray[np.uint16] | None]:
        """Version and clusters of the last view; 0 and None before there is one."""
        return (0, None) if self.view is None else (self.view.version, self.view.labels)

    def state(self) -> dict[str, Any]:
        """Everything about the session that fits in a few lines."""
        self._look_again()
        answers, view = self._answers, self.view
        says = Counter(answers.says.tolist())
        quality = None if view is None else view.quality
        return {
            "version": self.version,
            "model_version": 0 if view is None else view.version,
            "n_rows": len(self.table),
            "title": self.table.samples.path.name,
            "session": None if self.folder is None else self.folder.name,
            "notes": [*self.table.notes, *(() if view is None else view.notes)],
            "columns": self.table.columns,
            "image_column": None if self.table.images is None else self.table.images.name,
            "text_column": None if self.table.texts is None else self.table.texts.name,
            "label_column": self.table.label_column,
            "n_answers": len(answers.says),
            "can_undo": self._session.journal.last_source is not None,
            "counts": {word: says[number] for word, number in SAYS.items()},
            "annotators": sorted({name for name in answers.source if name}),
            "n_clusters": 0 if view is None else len(view.clusters),
            "quality": None if quality is None else dict(zip(("value", "low", "high"), quality, strict=True)),
            "stop": None if view is None or view.stop is None else view.stop._asdict(),
            "error_rate": None if view is None else view.error_rate,
            "refreshing": self.model.busy,
            "trouble": self.model.trouble,
            "has_classes": self.table.label_column is not None,
            "n_doubts": 0 if view is None else len(self.doubts()),
            "n_contradictions": len(self.contradictions()),
        }

    def answer_lines(self) -> list[dict[str, Any]]:
        """All answers, with the probability that each is wrong where the model knows it."""
        answers = self._answers
        return [self._line(answers, number) for number in range(len(answers.says))]

    def doubted_lines(self) -> list[dict[str, Any]]:
        """Answers that contradict the others, the most doubtful first."""
        answers = self._answers
        return [self._line(answers, number) for number in self._doubts_among(answers)]

    def contradiction_lines(self) -> list[dict[str, Any]]:
        """Chains of answers that cannot all be right, each as text and with its answers."""
        answers, found = self._contradicting()
        return [
            {
                "text": one.text(self.table.name_of),
                "answers": [self._line(answers, number) for number in one.answers],
            }
            for one in found
        ]

    def _line(self, answers: Answers, number: int) -> dict[str, Any]:
        """One of these answers; others may stand by now, because requests are answered in threads."""
        i, j = answers.pairs[number].tolist()
        certainty = float(answers.certainty[number])
        return {
            "answer": number,
            "i": i,
            "j": j,
            "ids": [self.table.name_of(i), self.table.name_of(j)],
            "says": WORDS[int(answers.says[number])],
            "certainty": None if np.isnan(certainty) else certainty,
            "source": answers.source[number] or None,
            "wrong": self._wrong(answers, number),
        }

    def _wrong(self, answers: Answers, number: int) -> float | None:
        """How probably an answer is wrong; None if the model has not seen it at this place."""
        view = self.view
        if view is None or number >= len(view.told.says):
            return None
        seen, told = (
            (a.pairs[number].tolist(), a.says[number], a.source[number]) for a in (view.told, answers)
        )
        return float(view.wrong[number]) if seen == told else None

    def doubts(self) -> list[int]:
        """Places of answers that contradict the others, the most doubtful first."""
        return self._doubts_among(self._answers)

    def _doubts_among(self, answers: Answers) -> list[int]:
        doubts = () if self.view is None else self.view.doubts
        places = [doubt.answer for doubt in doubts if doubt.answer < len(answers.says)]
        return [place for place in places if self._wrong(answers, place) is not None]

    def contradictions(self) -> list[Contradiction]:
        """Chains of answers that cannot all be right."""
        return self._contradicting()[1]

    def _contradicting(self) -> tuple[Answers, list[Contradiction]]:
        """The answers that stand, and the contradictions among them."""
        with self._changed:
            if self._contradictions is None or self._contradictions[0] is not self._answers:
                self._contradictions = self._answers, self._session.contradictions()
            return self._contradictions

    def question(self, source: str | None = None) -> dict[str, Any]:
        """The question of one person: the same one until it is answered, and nobody else's."""
        name = source or ""
        self._look_again()
        with self._changed:
            held = self._held.get(name)
            if held is None or self._known.idle(held.pair, held.again):
                held = self._next(name)
            if held is None:
                self._held.pop(name, None)
                return {"done": True, "reason": self._reason()}
            self._held[name] = held
        return {**self.shown(held.pair), "random": held.is_random}

    def _reason(self) -> str:
        if self.model.trouble:
            return self.model.trouble
        if self.model.questions is None:
            return "the first question is looked for"
        return (
            "every pair was asked about" if self.model.nothing_left else "nothing is left that is not known"
        )

    def _next(self, name: str) -> Held | None:
        """A pair that was prepared, or any pair where the model is too slow; called with the lock."""
        began = time.monotonic()
        if self.model.question_time < _PATIENCE:
            self._changed.wait_for(lambda: self._is_fresh or self.model.trouble, _PATIENCE)
        while True:
            found = self._prepared_for(name)
            if found is not None or self.model.nothing_left:
                return found
            left = began + _MOST_PATIENCE - time.monotonic()
            if self.model.trouble or left <= 0.0 or self.model.question_time > _HOPELESS:
                return None if self.model.questions is None else self._any_pair()
            self._changed.wait(left)

    @property
    def _is_fresh(self) -> bool:
        """Whether the prepared pairs know the last answer; those of the model may not have arrived yet."""
        return self._prepared_of is not None and self._prepared_of.told is self._answers

    def _prepared_for(self, name: str) -> Held | None:
        """The first prepared pair that is not idle, and that nobody else of a name looks at."""
        now = time.monotonic()
        taken = {
            frozenset(held.pair)
            for other, held in self._held.items()
            if other and other != name and now - held.since < _HELD
        }
        for pair, again in self._prepared.items():
            if frozenset(pair) not in taken and not self._known.idle(pair, again):
                return Held(pair, again, now)
        return None

    def _any_pair(self) -> Held | None:
        """A random pair of landmarks that nothing is known about; other rows would make the model slower."""
        rows = np.arange(len(self.table)) if self.view is None else self.view.landmarks
        for i, j in self._rng.choice(rows, size=(_TRIES, 2)).tolist():
            if i != j and not self._known.says((i, j)):
                return Held((i, j), True, time.monotonic(), True)
        return None

    def shown(self, pair: tuple[int, int]) -> dict[str, Any]:
        """A question as the page shows it."""
        i, j = pair
        view = self.view
        records, differs, hidden = self.table.pair(i, j)
        for record in records:
            record["cluster"] = self.cluster_of(record["row"])
        return {
            "i": i,
            "j": j,
            "records": records,
            "differs": differs,
            "hidden": hidden,
            "chance": None if view is None else view.chance(i, j),
            "queue": sum(not self._known.idle(*prepared) for prepared in list(self._prepared.items())),
            "reask": self._known.says(pair),
        }

    def cluster_of(self, row: int) -> int | None:
        """Cluster of a row; None before the model has said anything."""
        return None if self.view is None else int(self.view.labels[row])

    def tell(
        self, i: int, j: int, says: str, certainty: float | None = None, source: str | None = None
    ) -> bool:
        """Keep an answer; when this returns it is on disk. False if the same was kept already."""
        self._look_again()
        with self._changed:
            held = self._held.get(source or "")
            asked = held is not None and set(held.pair) == {i, j}
            if not asked and self._is_repeated(i, j, says, certainty, source):
                return False
            self._session.tell(i, j, says, certainty, source)
            if asked:
                del self._held[source or ""]
            self._follow()
        return True

    def _is_repeated(self, i: int, j: int, says: str, certainty: float | None, source: str | None) -> bool:
        answers = self._answers
        same = (np.sort(answers.pairs, axis=1) == sorted((i, j))).all(axis=1) & (answers.says == SAYS[says])
        for place in np.flatnonzero(same).tolist():
            told = float(answers.certainty[place])
            if answers.source[place] == (source or "") and (None if np.isnan(told) else told) == certainty:
                return True
        return False

    def undo(self, source: str | None = None) -> None:
        """Undo the last answer or retraction, with a name of that person; the pair is asked about again."""
        self._look_again()
        with self._changed:
            before = self._answers
            mine = [place for place, name in enumerate(before.source) if name == (source or "")]
            if source is None or self._session.journal.last_source == source:
                self._session.undo()
            elif mine:
                # Without the name: undone once more, the answer before it is taken back.
                self._session.retract(mine[-1])
            else:
                raise Conflict(f"{source} has given no answer to take back")
            self._follow()
            if len(self._answers.says) < len(before.says):
                place = len(before.says) - 1 if source is None else mine[-1]
                i, j = before.pairs[place].tolist()
                self._held[source or ""] = Held((i, j), True, time.monotonic())

    def retract(self, answer: int, pair: tuple[int, int] | None = None, source: str | None = None) -> None:
        """Take back the answer at this place; with ``pair``, only if it is about these rows."""
        self._look_again()
        with self._changed:
            if pair is not None and (
                not 0 <= answer < len(self._answers.says)
                or set(self._answers.pairs[answer].tolist()) != set(pair)
            ):
                raise Conflict(f"answer {answer} is about other rows by now; look at the list again")
            self._session.retract(answer, source)
            self._follow()

    def tell_all(self, pairs: Sequence[tuple[int, int]], says: str, source: str | None = None) -> int:
        """Keep the same answer about several pairs, each one step of undo; gives how many were new."""
        return sum(self.tell(i, j, says, None, source) for i, j in pairs)

    def _follow(self) -> None:
        """After a change of the answers, with the lock held."""
        self._answers, self._n_records = self._session.answers, self._session.journal.n_records
        self._known = Known(self.given, self._answers)
        self.version += 1
        self.model.follow(self._answers)

    def _look_again(self) -> None:
        """In a notebook the session may have been told something beside the page."""
        with self._changed:
            if self._session.journal.n_records != self._n_records:
                self._follow()

    def _news(self) -> None:
        """The model has new questions or labels; called by its thread."""
        with self._changed:
            questions = self.model.questions
            if questions is not None and questions is not self._prepared_of:
                known = Known(self.given, questions.told)
                self._prepared_of = questions
                self._prepared = {pair: known.says(pair) for pair in questions.pairs}
            self.version += 1
            self._changed.notify_all()

    def wait(self, ready: Callable[[], Any], seconds: float) -> bool:
        """Wait until something is so, looked at after every change."""
        with self._changed:
            return bool(self._changed.wait_for(ready, seconds))

    def close(self) -> None:
        """End the thread and give the journal free."""
        self.model.close()
        self._session.close()


class Known:
    """What follows from answers and links given: rows joined by "same", and groups told apart."""

    def __init__(self, links: Constraints | None, answers: Answers) -> None:
        told = answers.says != UNSURE
        pairs, same = answers.pairs[told], answers.says[told] > 0
        if links is not None:
            pairs = np.concatenate([links.pairs, pairs])
            same = np.concatenate([links.weights > 0.0, same])
        self._rows, ends = np.unique(pairs, return_inverse=True)
        ends = ends.reshape(-1, 2).astype(np.int64)
        self._group: Ints = group_labels(len(self._rows), ends[same])[0]
        self._apart = {frozenset(pair) for pair in self._group[ends[~same]].tolist()}
        self._asked = {frozenset(pair) for pair in answers.pairs.tolist()}

    def says(self, pair: tuple[int, int]) -> bool:
        """Whether the pair was asked about, or its answer follows from others."""
        if frozenset(pair) in self._asked:
            return True
        places = np.searchsorted(self._rows, pair)
        inside = places < len(self._rows)
        if not inside.all() or (self._rows[places] != pair).any():
            return False
        first, second = self._group[places].tolist()
        return first == second or frozenset((first, second)) in self._apart

    def idle(self, pair: tuple[int, int], before: bool) -> bool:
        """Whether answers since made the question idle; one that was to be asked again until it is."""
        return frozenset(pair) in self._asked if before else self.says(pair)
