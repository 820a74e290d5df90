"""Processes of joblib's loky that are forked: those that it starts import everything anew, 4 s each."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from joblib import parallel_config
from joblib.externals.loky import get_reusable_executor
from joblib.externals.loky.backend import context

from tests.repeats import LONG


@contextmanager
def forked_loky() -> Iterator[None]:
    """Loky for what runs in parallel; in ``make test-long`` its processes start as they do for users."""
    before = context._DEFAULT_START_METHOD
    with parallel_config("loky"), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="`fork` start method", category=UserWarning)
        try:
            if not LONG:
                context.set_start_method("fork", force=True)
            yield
        finally:
            get_reusable_executor().shutdown(kill_workers=True)
            context._DEFAULT_START_METHOD = before
