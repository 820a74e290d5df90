"""scikit-learn's checks of several estimators; in ``make test`` the later ones of a class have a third."""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from tests.repeats import LONG

#: ``make test`` gives one of so many of scikit-learn's checks to an estimator that has other options.
ONE_OF = 3


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
