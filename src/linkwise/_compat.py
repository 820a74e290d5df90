"""Callbacks of scikit-learn, which show progress, also inside GridSearchCV.

They depend on its version: before 1.9 there are none, and everything here does nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands for the base class of estimators that take callbacks."""

    def with_callbacks(method: Callable[..., Any]) -> Callable[..., Any]:
        """Leave the method as it is."""
        return method


__all__ = ["CallbackSupportMixin", "FitTask", "fit_task", "with_callbacks"]


class FitTask:
    """A stage of fitting that callbacks follow: the fit, a restart, an iteration."""

    def __init__(self, estimator: Any, context: Any) -> None:
        self._estimator = estimator
        self._context = context

    def subtask(self, name: str, number: int, n_subtasks: int = 0) -> FitTask:
        """Begin the stage ``number`` inside this one; it has at most ``n_subtasks`` stages of its own."""
        if self._context is None:
            return self
        context = self._context.subcontext(
            task_name=name, task_id=number, max_subtasks=n_subtasks, sequential_subtasks=False
        )
        return FitTask(self._estimator, context).begin()

    def begin(self) -> FitTask:
        """Tell the callbacks that this stage begins."""
        if self._context is not None:
            self._context.call_on_fit_task_begin(estimator=self._estimator)
        return self

    def end(self, fitted: Callable[[], dict[str, Any]] | None = None) -> bool:
        """Tell the callbacks that this stage is over; ``fitted()`` is for them. True if one asks to stop."""
        if self._context is None:
            return False
        return bool(
            self._context.call_on_fit_task_end(estimator=self._estimator, reconstruction_attributes=fitted)
        )


def fit_task(estimator: Any, n_subtasks: int) -> FitTask:
    """Begin the fit of an estimator. Its method must be decorated by ``with_callbacks``."""
    if not hasattr(estimator, "_init_callback_context"):
        return FitTask(estimator, None)
    context = estimator._init_callback_context(max_subtasks=n_subtasks, sequential_subtasks=False)
    followed = bool(getattr(estimator, "_skl_callbacks", None))
    return FitTask(estimator, context if followed else None).begin()
