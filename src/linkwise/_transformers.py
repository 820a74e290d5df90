"""What estimators with links share: metadata that they take, and what makes them transformers."""

from __future__ import annotations

from typing import Any, ClassVar

from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from linkwise._arrays import Ints
from linkwise._validation import align_rows
from linkwise.constraints import Constraints


class LinkedTransformerMixin(ClassNamePrefixFeaturesOutMixin, TransformerMixin):
    """A clustering whose ``fit`` takes links, as a transformer: names of columns, ``fit_transform`` by id."""

    __metadata_request__fit: ClassVar[dict[str, bool]] = {"constraints": True}
    __metadata_request__fit_predict: ClassVar[dict[str, bool]] = {"constraints": True}
    # Pipeline.score passes sample_weight on whether or not it was given (scikit-learn 1.9).
    __metadata_request__score: ClassVar[dict[str, bool]] = {"constraints": True, "sample_weight": True}

    def fit_predict(self, X: Any, y: Any = None, *, constraints: Constraints | None = None) -> Ints:
        """Fit and return ``labels_``, which use the links."""
        labels: Ints = self.fit(X, y, constraints=constraints).labels_
        return labels

    def fit_transform(self, X: Any, y: Any = None, *, constraints: Constraints | None = None) -> Any:
        """Fit under links and return ``transform(X)``, which itself uses none.

        Rows and links are matched by id as in ``fit``; the result has the order of X.
        """
        # A column of ids is no feature, neither for fit nor for transform.
        X, constraints = align_rows(X, constraints)
        if isinstance(constraints, Constraints):
            constraints = constraints.with_index(None)
        return self.fit(X, y, constraints=constraints).transform(X)
