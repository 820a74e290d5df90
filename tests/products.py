"""Cases that are combinations: all in ``make test-long``, in ``make test`` enough to have every value."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from tests.repeats import LONG

#: ``make test`` gives one of so many of scikit-learn's checks to an estimator that has other options.
ONE_OF = 3


def combinations(*values: Iterable[Any]) -> list[tuple[Any, ...]]:
    """All combinations of these values; in ``make test`` the shortest list in which every value occurs."""
    lists = [list(some) for some in values]
    if LONG:
        return list(product(*lists))
    return [tuple(some[i % len(some)] for some in lists) for i in range(max(map(len, lists)))]


def estimator_checks(*estimators: Any) -> pytest.MarkDecorator:
    """scikit-learn's checks: all of the first estimator of a class; ``make test`` has a third of others.

    Three further ones of a class together take every check.
    """
    every = parametrize_with_checks(list(estimators))
    if LONG:
        return every
    names, cases = every.args
    kept, known = [], []
    for estimator in estimators:
        own = [case for case in cases if case[0] is estimator]
        turn = known.count(type(estimator))
        kept += [case for i, case in enumerate(own) if turn == 0 or i % ONE_OF == turn % ONE_OF]
        known.append(type(estimator))
    return pytest.mark.parametrize(names, kept, **every.kwargs)
