"""The thread that follows the answers: what it says first, and how it keeps up with undo and retraction."""

import threading

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from linkwise.active import ActiveClustering, LabelOracle
from linkwise.active.knowledge import append, chosen_answers, first_answers
from linkwise.workbench import model as models
from linkwise.workbench.model import Model

N = 60


@pytest.fixture
def rows():
    """Rows of three clusters, and their clusters."""
    rng = np.random.default_rng(0)
    y = np.arange(N) % 3
    return 5.0 * rng.standard_normal((3, 2))[y] + rng.standard_normal((N, 2)), y


def told_by(X, y, count):
    """Answers of a session of its own."""
    session = ActiveClustering(X, random_state=0)
    person = LabelOracle(y)
    for _ in range(count):
        i, j = session.ask()
        session.tell(i, j, person(i, j))
    return session.answers


class Watched:
    """A model whose news are written down."""

    def __init__(self, X):
        self.questions, self._changed = [], threading.Condition()
        self.model = Model(
            lambda strategy: ActiveClustering(X, strategy=strategy or "auto", random_state=0), self._news
        )
        self.model.start()

    def _news(self):
        with self._changed:
            if not self.questions or self.questions[-1] is not self.model.questions:
                self.questions.append(self.model.questions)
            self._changed.notify_all()

    def after(self, answers):
        """What it says about these answers."""
        self.model.follow(answers)
        with self._changed:
            assert self._changed.wait_for(lambda: not self.model.busy, 120)
        assert self.model.trouble is None
        return self.model.view


@pytest.fixture
def watched(rows):
    """A model of the rows, ended with the test."""
    watched = Watched(rows[0])
    yield watched
    watched.model.close()


def test_it_says_what_a_session_says_also_after_undo_and_retraction(rows, watched):
    X, y = rows
    answers = told_by(X, y, 12)
    for kept in (
        answers,
        first_answers(answers, len(answers.says) - 1),
        chosen_answers(answers, np.delete(np.arange(12), 3)),
        append(answers, 0, 3, -1, 0.8, "ben"),
        answers,
    ):
        view = watched.after(kept)
        alone = ActiveClustering(X, random_state=0)
        models._tell_the_same(alone, kept)
        assert view.told is kept
        assert adjusted_rand_score(view.labels, alone.labels_) == 1.0
        assert view.quality == alone.quality_
        assert watched.model.questions.pairs[0] == alone.ask()
        assert [doubt.answer for doubt in view.doubts] == [doubt.answer for doubt in alone.doubts()]


def test_clusters_keep_their_numbers(rows, watched):
    X, y = rows
    answers = told_by(X, y, 20)
    before = watched.after(answers)
    after = watched.after(chosen_answers(answers, np.delete(np.arange(len(answers.says)), 2)))
    assert after.version == before.version + 1
    assert (before.labels == after.labels).mean() > 0.8
    assert after.labels.max() < 10
    names = models._small_numbers(np.array([2, 7, 7, 9]), np.array([0, 1, 2], dtype=np.uint16))
    assert names.tolist() == [2, 0, 0, 1]


def test_a_long_session_that_goes_on_is_asked_at_once(rows, watched, monkeypatch):
    """Before all answers are understood there are questions that need less."""
    X, y = rows
    monkeypatch.setattr(models, "_MANY", 10)
    answers = told_by(X, y, 12)
    watched.after(answers)
    quick = ActiveClustering(X, strategy="spread", random_state=0)
    models._tell_the_same(quick, answers)
    assert watched.questions[0].pairs == tuple(map(tuple, quick.suggest(models._MOST_AHEAD).tolist()))
    assert watched.questions[-1].pairs[0] == watched_ask(X, answers)


def watched_ask(X, answers):
    session = ActiveClustering(X, random_state=0)
    models._tell_the_same(session, answers)
    return session.ask()


def test_trouble_is_told_and_left_behind(rows, watched, monkeypatch):
    X, y = rows
    answers = told_by(X, y, 3)
    monkeypatch.setattr(models, "_seen", lambda *_: 1 / 0)
    watched.model.follow(answers)
    with watched._changed:
        assert watched._changed.wait_for(lambda: watched.model.trouble, 120)
    assert "ZeroDivisionError" in watched.model.trouble
    monkeypatch.undo()
    assert watched.after(first_answers(answers, len(answers.says) - 1)).version == 1
