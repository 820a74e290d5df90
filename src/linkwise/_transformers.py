"""What estimators with links share as transformers: names of columns, and ``fit_transform`` by id."""

from __future__ import annotations

from typing import Any

from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from linkwise._validation import align_rows
from linkwise.constraints import Constraints


class LinkedTransformerMixin(ClassNamePrefixFeaturesOutMixin, TransformerMixin):
    """A transformer whose ``fit`` takes links."""

    def fit_transform(self, X: Any, y: Any = None, *, constraints: Constraints | None = None) -> Any:
        """Fit under links and return ``transform(X)``, which itself uses none.

        Rows and links are matched by id as in ``fit``; the result has the order of X.
        """
        # A column of ids is no feature, neither for fit nor for transform.
        X, constraints = align_rows(X, constraints)
        if isinstance(constraints, Constraints):
            constraints = constraints.with_index(None)
        return self.fit(X, y, constraints=constraints).transform(X)
