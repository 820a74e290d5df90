"""The report of CPPC: it says what became of each class, how surely, and what would change it."""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from linkwise._arrays import Floats, Ints
from linkwise._validation import label_codes
from linkwise.mixture.classes.decisions import (
    THRESHOLD,
    Decision,
    DecisionStability,
    contradictions,
    count_decisions,
    find_decisions,
    name_clusters,
)
from linkwise.mixture.classes.flips import Flip, find_flips
from linkwise.mixture.classes.mislabelled import MislabelledRow, find_mislabelled
from linkwise.mixture.classes.report.text import (
    class_records,
    cluster_records,
    decision_records,
    mislabelled_records,
)


@dataclass(frozen=True)
class ClassReport:
    """Report which classes were split, merged and kept, with counts, doubts and alternatives.

    ``print(report)`` is the text, :meth:`to_frame` the tables, :meth:`to_html` a page for a colleague.

    Attributes
    ----------
    classes : tuple
        Names, L of them.
    contingency : (L, K) int64
        Rows of each class in each cluster.
    n_unlabelled : (K,) int64
        Unlabelled rows in each cluster.
    beliefs, separability : (L, L) float64
        C and S: the belief about each two classes, and the result.
    adherence : float
        sum (C - S)^2.
    criteria : dict
    n_occupied : int
        Clusters that hold a row.
    certainty : (K,) float64
        Mean probability of the cluster among the rows that were put into it; NaN for an empty one, and
        where the probabilities were not kept.
    threshold : float
        A cluster holds a class if it has at least this share of it.
    decisions : tuple of Decision
    legend : tuple of str
        A name for each cluster, made of the classes it holds.
    stability : DecisionStability or None
        How often each decision occurs over repeats or bootstrap samples.
    flips : tuple of Flip or None
        For each decision the belief whose smallest change reverses it, smallest first; None if the data were
        not given.
    mislabelled : tuple of MislabelledRow or None
        Rows whose class is likely wrong (``row``, ``label``, ``told``, ``probability``), the surest first;
        None if the data were not given. Computed from the densities of all classes, without the beliefs.
    curve : ComponentSweep or None
        The sweep over the number of clusters.
    evidence : tuple of dict
        The evidence for each split and merge that was considered (``evidence_`` of CPPC).
    alternatives : dict
        ICL and number of clusters of the classes as they are, of each class divided on its own, and of the
        proposal (``alternatives_`` of CPPC).

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise import CPPC
    >>> from linkwise.beliefs import ClassBeliefs
    >>> from linkwise.mixture.classes.report import ClassReport
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2)) + np.repeat([[0, 0], [9, 0], [0, 9], [1, 9]], 50, axis=0)
    >>> y = np.repeat(["crops", "crops", "mixed", "deciduous"], 50)
    >>> beliefs = ClassBeliefs.keep(np.unique(y)).split("crops").merge("mixed", "deciduous", 0.5)
    >>> model = CPPC(4, beliefs=beliefs, random_state=0).fit(X, y)
    >>> for decision in ClassReport.from_estimator(model).decisions:
    ...     print(decision.kind, *decision.classes)
    split crops
    merged deciduous mixed
    """

    classes: tuple[Hashable, ...]
    contingency: NDArray[np.int64]
    n_unlabelled: NDArray[np.int64]
    beliefs: NDArray[np.float64]
    separability: NDArray[np.float64]
    adherence: float
    criteria: Mapping[str, float]
    n_occupied: int
    certainty: NDArray[np.float64]
    threshold: float
    decisions: tuple[Decision, ...]
    legend: tuple[str, ...]
    stability: DecisionStability | None = None
    flips: tuple[Flip, ...] | None = None
    mislabelled: tuple[MislabelledRow, ...] | None = None
    curve: Any = None
    evidence: tuple[Mapping[str, Any], ...] = ()
    alternatives: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: ArrayLike | None = None,
        y: ArrayLike | None = None,
        *,
        threshold: float = THRESHOLD,
    ) -> ClassReport:
        """Make the report of one fitted CPPC.

        With the training data ``X`` and classes ``y`` it says which belief would flip each decision, and
        which rows are likely mislabelled.
        ``threshold`` in (0, 0.5] is the share of a class that a cluster must have to hold it.
        """
        check_is_fitted(estimator, ["classes_", "contingency_", "beliefs_"])
        classes = tuple(estimator.classes_.tolist())
        contingency = np.array(estimator.contingency_, dtype=np.int64)
        sizes, certainty = _sizes_and_certainty(estimator, contingency.shape[1])
        report = cls(
            classes=classes,
            contingency=contingency,
            n_unlabelled=sizes - contingency.sum(axis=0),
            beliefs=np.array(estimator.beliefs_, dtype=np.float64),
            separability=np.array(estimator.separability_, dtype=np.float64),
            adherence=float(estimator.adherence_),
            criteria=dict(estimator.criteria_),
            n_occupied=int(estimator.n_occupied_),
            certainty=certainty,
            threshold=threshold,
            decisions=find_decisions(contingency, classes, threshold),
            legend=name_clusters(contingency, classes, threshold),
            evidence=tuple(getattr(estimator, "evidence_", ())),
            alternatives=dict(getattr(estimator, "alternatives_", {})),
        )
        if X is None and y is None:
            return report
        if X is None or y is None:
            raise ValueError(
                "flips and mislabelled rows need the data and their classes; pass both X and y, or neither"
            )
        data = np.asarray(X)
        report = replace(report, flips=report._find_flips(estimator, data, y))
        doubted = find_mislabelled(
            data, label_codes(y)[0], classes,
            covariance_type=estimator.covariance_type, reg_covar=estimator.reg_covar,
        )  # fmt: skip
        return replace(report, mislabelled=doubted)

    @classmethod
    def from_estimators(
        cls,
        estimators: Sequence[Any],
        X: ArrayLike | None = None,
        y: ArrayLike | None = None,
        *,
        threshold: float = THRESHOLD,
    ) -> ClassReport:
        """Make the report of the first of several CPPC about the same classes; count how many decided alike.

        ``X`` and ``y`` are the training data of the first, ``threshold`` as in :meth:`from_estimator`.
        """
        if not len(estimators):
            raise ValueError("there are no estimators; pass at least one fitted CPPC")
        report = cls.from_estimator(estimators[0], X, y, threshold=threshold)
        for number, estimator in enumerate(estimators):
            if tuple(estimator.classes_.tolist()) != report.classes:
                raise ValueError(
                    f"estimator {number} is about other classes than the first; compare like with like"
                )
        tables = [estimator.contingency_ for estimator in estimators]
        return report.with_stability(count_decisions(tables, report.classes, threshold, "repeats"))

    @classmethod
    def from_sweep(
        cls,
        sweep: Any,
        X: ArrayLike | None = None,
        y: ArrayLike | None = None,
        *,
        n_components: int | None = None,
        threshold: float = THRESHOLD,
    ) -> ClassReport:
        """Make the report of the chosen run of a sweep of CPPC, with its curve and the agreement of repeats.

        ``n_components`` takes another K than the one the sweep chose; the others as in
        :meth:`from_estimator`.
        """
        k = sweep.best_n_components if n_components is None else n_components
        if k not in sweep.typical:
            there = ", ".join(str(number) for number in sweep.typical)
            raise ValueError(f"the sweep has no run with n_components={k!r}; it has {there}")
        tables = [run.contingency for run in sweep.runs if run.n_components == k]
        if any(table is None for table in tables):
            raise ValueError(
                f"{type(sweep.best).__name__} knows no classes; a report needs a sweep of CPPC: pass one"
            )
        report = cls.from_estimator(sweep.typical[k], X, y, threshold=threshold)
        agreed = count_decisions(tables, report.classes, threshold, "repeats")
        return replace(report.with_stability(agreed), curve=sweep)

    def _find_flips(self, estimator: Any, X: NDArray[Any], y: ArrayLike) -> tuple[Flip, ...]:
        codes, names = label_codes(y)
        labels = np.asarray(estimator.labels_)
        if len(X) != len(labels) or len(codes) != len(labels):
            raise ValueError(
                f"X has {len(X)} and y {len(codes)} rows, but the estimator was fitted to {len(labels)}; "
                "pass the training data"
            )
        table = np.zeros_like(self.contingency)
        if tuple(names.tolist()) == self.classes:
            np.add.at(table, (codes[codes >= 0], labels[codes >= 0]), 1)
        if not np.array_equal(table, self.contingency):
            raise ValueError(
                "y is not what the estimator was fitted to; pass the classes of the training rows"
            )
        return find_flips(
            self.decisions, X, codes, np.asarray(estimator.responsibilities_), self.contingency,
            self.classes, self.beliefs, self.threshold,
            confidence=estimator.confidence, normalize=estimator.normalize,
            covariance_type=estimator.covariance_type, reg_covar=estimator.reg_covar,
        )  # fmt: skip

    def with_stability(self, stability: DecisionStability) -> ClassReport:
        """Return the same report with another count of how often its decisions occur (:func:`stability`)."""
        return replace(self, stability=stability)

    @property
    def contradictions(self) -> list[dict[str, Any]]:
        """Outcomes that contradict a belief of ±1, with belief, certainty and rows.

        However certain the clusters of the rows are (certainty), such an outcome contradicts a belief that
        was stated as certain. A larger ``confidence``, more clusters or another belief resolves it. Entries
        are ``outcome`` ("merged", "apart", "split" or "whole"), ``classes``, ``belief``, ``separability``,
        ``clusters`` (their names), ``n_rows`` (rows of the classes in them) and ``certainty``.
        """
        return contradictions(self)

    def to_frame(self, which: str = "decisions") -> Any:
        """Return one of the tables of the report as a pandas DataFrame.

        ``decisions``: one row for each split, merge and kept class, with counts, belief, separability, share
        of runs, flip, and the belief of ±1 it contradicts. ``classes``: one row for each class. ``clusters``:
        one row for each cluster, with its name in the legend and its rows of each class. ``mislabelled``:
        one row for each row of the data whose class is likely wrong; needs X and y.
        """
        import pandas

        tables = {
            "decisions": decision_records,
            "classes": class_records,
            "clusters": cluster_records,
            "mislabelled": mislabelled_records,
        }
        if which not in tables:
            raise ValueError(f"which must be one of {', '.join(tables)}; got {which!r}: pass one of them")
        columns = list(MislabelledRow._fields) if which == "mislabelled" else None
        return pandas.DataFrame(tables[which](self), columns=columns)

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the report as a self-contained page with tables, maps and curve; write it to ``path``."""
        from linkwise.mixture.classes.report.page import page

        text = page(self).html()
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text

    def __str__(self) -> str:
        from linkwise.mixture.classes.report.text import text

        return text(self)

    def __repr__(self) -> str:
        counts = {kind: sum(d.kind == kind for d in self.decisions) for kind in ("split", "merged", "kept")}
        return (
            f"ClassReport({len(self.classes)} classes in {self.n_occupied} of {len(self.legend)} clusters: "
            f"{counts['split']} split, {counts['merged']} pairs merged, {counts['kept']} kept)"
        )

    def _repr_html_(self) -> str:
        from linkwise.mixture.classes.report.page import page

        return page(self).body()


def _sizes_and_certainty(estimator: Any, n_clusters: int) -> tuple[Ints, Floats]:
    """Rows of each cluster, and the mean probability of it among them, NaN if there are none; (K,) both."""
    counted = getattr(estimator, "_counted", None)  # where the rows are not in memory
    if counted is not None:
        sizes, own = counted
    else:
        labels, own = np.asarray(estimator.labels_), np.full(n_clusters, np.nan)
        sizes = np.bincount(labels, minlength=n_clusters)
        if hasattr(estimator, "responsibilities_"):
            prob = np.asarray(estimator.responsibilities_)[np.arange(len(labels)), labels]
            own = np.bincount(labels, weights=prob, minlength=n_clusters)
    with np.errstate(invalid="ignore"):
        return sizes, own / sizes
