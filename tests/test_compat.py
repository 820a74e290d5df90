"""Progress through scikit-learn's callbacks, and its absence."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV

from linkwise import PPC, Constraints
from linkwise._compat import FitTask, fit_task

callback = pytest.importorskip("sklearn.callback", reason="scikit-learn >= 1.9 has callbacks")


class Recorder:
    """Writes down what happens, and asks to stop in the iteration ``stop_at`` of every restart."""

    max_propagation_depth = None

    def __init__(self, stop_at=None):
        self.stop_at = stop_at
        self.begun, self.ended, self.scores = [], [], []

    def setup(self, estimator, context):
        self.begun.append("setup")

    def on_fit_task_begin(self, estimator, context):
        self.begun.append((context.task_name, context.task_id))

    def on_fit_task_end(self, estimator, context, *, fitted_estimator):
        self.ended.append((context.task_name, context.task_id))
        if context.task_name == "iteration":
            self.scores.append(fitted_estimator.score(self.X))
            return context.task_id == self.stop_at
        return False

    def teardown(self, estimator, context):
        self.ended.append("teardown")


@pytest.fixture
def recorder():
    recorder = Recorder()
    recorder.X = load_iris(return_X_y=True)[0]
    return recorder


def test_restarts_and_iterations_are_reported(recorder):
    model = PPC(3, n_init=2, random_state=0).set_callbacks(recorder).fit(recorder.X)
    assert recorder.begun[:3] == ["setup", ("fit", 0), ("restart", 0)]
    assert recorder.ended[-2:] == [("fit", 0), "teardown"]
    assert sorted(recorder.begun[1:]) == sorted(recorder.ended[:-1])
    assert [name for name, _ in recorder.begun[1:]].count("restart") == 2
    assert recorder.begun.count(("iteration", model.n_iter_ - 1)) >= 1
    # The callback sees the estimator as it would be: its score is that of the parameters so far.
    assert model.score(recorder.X) in recorder.scores


def test_callbacks_change_nothing(recorder):
    links = Constraints.sample(load_iris(return_X_y=True)[1], 30, random_state=0)
    followed = PPC(3, n_init=2, random_state=0).set_callbacks(recorder).fit(recorder.X, constraints=links)
    alone = PPC(3, n_init=2, random_state=0).fit(recorder.X, constraints=links)
    np.testing.assert_array_equal(followed.means_, alone.means_)


def test_a_callback_may_stop_the_iterations(recorder, recwarn):
    recorder.stop_at = 1
    model = PPC(3, tol=0.0, random_state=0).set_callbacks(recorder).fit(recorder.X)
    assert model.n_iter_ == 2
    assert not model.converged_
    assert not recwarn.list  # it was asked for


def test_progress_bar_inside_a_grid_search(recorder):
    search = GridSearchCV(PPC(3, random_state=0), {"covariance_type": ["full", "diag"]}, cv=2)
    search.set_callbacks(recorder).fit(recorder.X)
    assert sum(name == "iteration" for name, _ in recorder.begun[1:]) >= 4


def test_without_callbacks_nothing_happens():
    task = fit_task(object(), 3)
    assert isinstance(task, FitTask)
    assert task.subtask("restart", 0) is task
    assert task.end() is False
