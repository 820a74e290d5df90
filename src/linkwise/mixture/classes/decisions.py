"""What a clustering decided about classes, how stable that is, and what contradicts a belief of ±1."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, count
from string import ascii_lowercase
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils.parallel import Parallel, delayed

from linkwise._arrays import Bools, Ints
from linkwise._pages import signed
from linkwise._running import warn_once
from linkwise._validation import as_generator, as_vector, label_codes

if TYPE_CHECKING:
    from linkwise.mixture.classes.report import ClassReport

#: A cluster with at least this share of a class holds the class.
THRESHOLD = 0.15
#: Beliefs at least this strong count as ±1; a table may have been through a spreadsheet.
SURE = 1.0 - 1e-9


@dataclass(frozen=True)
class Decision:
    """What happened to one class or to two, and the clusters that hold it, most rows first.

    ``kind`` is "split": several clusters hold the class; "merged": a cluster holds both classes; "kept": one
    cluster holds the class and no other class; or "scattered": no cluster holds the class.
    """

    kind: str
    classes: tuple[Hashable, ...]
    clusters: tuple[int, ...]

    @property
    def key(self) -> tuple[str, tuple[Hashable, ...]]:
        """Kind and classes. They identify a decision across runs, whose clusters have other numbers."""
        return self.kind, self.classes


@dataclass(frozen=True)
class DecisionStability:
    """Share of a number of runs, "repeats" or "bootstrap samples", that have each (kind, classes)."""

    shares: dict[tuple[str, tuple[Hashable, ...]], float]
    n_runs: int
    source: str

    def share(self, decision: Decision) -> float:
        """Return the share of the runs that decided the same."""
        return self.shares.get(decision.key, 0.0)


def find_decisions(
    contingency: NDArray[np.integer], classes: Sequence[Hashable], threshold: float = THRESHOLD
) -> tuple[Decision, ...]:
    """Decisions by a table (L, K), kind by kind: clusters hold ``threshold`` of a class or more."""
    check_threshold(threshold)
    table = np.asarray(contingency, dtype=np.int64)
    holds = held(table, threshold)
    n_classes = len(classes)
    n_holders = holds.sum(axis=1)
    shared = {
        (a, b): np.flatnonzero(holds[a] & holds[b])
        for a in range(n_classes)
        for b in range(a + 1, n_classes)
        if (holds[a] & holds[b]).any()
    }
    in_merge = {place for pair in shared for place in pair}

    def single(kind: str, a: int) -> Decision:
        return Decision(kind, (classes[a],), _largest_first(np.flatnonzero(holds[a]), table[a]))

    places = range(n_classes)
    return (
        *(single("split", a) for a in places if n_holders[a] > 1),
        *(
            Decision("merged", (classes[a], classes[b]), _largest_first(clusters, table[a] + table[b]))
            for (a, b), clusters in shared.items()
        ),
        *(single("kept", a) for a in places if n_holders[a] == 1 and a not in in_merge),
        *(single("scattered", a) for a in places if n_holders[a] == 0),
    )


def held(contingency: NDArray[np.integer], threshold: float) -> Bools:
    """Return which clusters hold which classes, (L, K)."""
    sizes = contingency.sum(axis=1, keepdims=True)
    return (contingency > 0) & (contingency / np.maximum(sizes, 1) >= threshold)


def check_threshold(threshold: float) -> None:
    """Refuse a share that cannot tell splits from whole classes."""
    if not 0.0 < threshold <= 0.5:
        raise ValueError(
            f"threshold must lie in (0, 0.5], got {threshold!r}; it is the share of a class"
            " that counts, pass for example 0.1"
        )


def _largest_first(clusters: NDArray[np.integer], counts: NDArray[np.integer]) -> tuple[int, ...]:
    order = np.argsort(-counts[clusters], kind="stable")
    return tuple(clusters[order].tolist())


def name_clusters(
    contingency: NDArray[np.integer], classes: Sequence[Hashable], threshold: float = THRESHOLD
) -> tuple[str, ...]:
    """The new legend: clusters by the classes they hold, (a) the largest of equals, "rest" or "(none)"."""
    table = np.asarray(contingency, dtype=np.int64)
    holds = held(table, threshold)
    names = []
    for k in range(table.shape[1]):
        members = [str(name) for name, holder in zip(classes, holds[:, k], strict=True) if holder]
        names.append(" + ".join(members) or ("rest" if table[:, k].any() else "(none)"))
    by_size = np.argsort(-table.sum(axis=0), kind="stable").tolist()
    for name in set(names) - {"(none)"}:
        same = [k for k in by_size if names[k] == name]
        if len(same) > 1:
            letters = chain(ascii_lowercase, map(str, count(len(ascii_lowercase) + 1)))
            # A class of the user may have such a name.
            free = (one for one in (f"{name} ({letter})" for letter in letters) if one not in names)
            for k in same:
                names[k] = next(free)
    return tuple(names)


def count_decisions(
    contingencies: Iterable[NDArray[np.integer]],
    classes: Sequence[Hashable],
    threshold: float = THRESHOLD,
    source: str = "repeats",
) -> DecisionStability:
    """Count in which share of the runs, given by their tables (L, K), each decision occurs."""
    counts: dict[tuple[str, tuple[Hashable, ...]], int] = {}
    n_runs = 0
    for contingency in contingencies:
        n_runs += 1
        for decision in find_decisions(contingency, classes, threshold):
            counts[decision.key] = counts.get(decision.key, 0) + 1
    if not n_runs:
        raise ValueError("there are no runs to compare; pass at least one")
    ordered = sorted(counts.items(), key=lambda item: -item[1])
    return DecisionStability({key: count / n_runs for key, count in ordered}, n_runs, source)


def stability(
    estimator: Any,
    X: ArrayLike,
    y: ArrayLike,
    *,
    n_bootstrap: int = 20,
    threshold: float = THRESHOLD,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> DecisionStability:
    """How often each decision occurs when the rows are drawn anew: bootstrap within each class.

    Parameters
    ----------
    estimator : CPPC
        Cloned for every sample; ``random_state`` is set.
    X : (n_samples, n_features) array_like
    y : (n_samples,) array_like
        Classes; -1, NaN or None where unlabelled.
    n_bootstrap : int, default=20
        Samples; every class, and the unlabelled rows, keep their number.
    threshold : float, default=0.15
    random_state : int, Generator, RandomState or None
    n_jobs : int or None
        Fits at the same time, in threads. The result does not depend on it.

    Returns
    -------
    DecisionStability

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise import CPPC
    >>> from linkwise.mixture import stability
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(90, 2)) + np.repeat([[0, 0], [8, 0], [0, 8]], 30, axis=0)
    >>> y = np.repeat(["crops", "crops", "water"], 30)
    >>> found = stability(CPPC(3, beliefs=[[0, -1], [-1, 1]]), X, y, n_bootstrap=5, random_state=0)
    >>> found.shares
    {('split', ('crops',)): 1.0, ('kept', ('water',)): 1.0}
    """
    if n_bootstrap < 1:
        raise ValueError(f"n_bootstrap must be at least 1, got {n_bootstrap!r}; pass n_bootstrap=1 or more")
    data, classes = np.asarray(X), as_vector(y, "y")
    codes, names = label_codes(y)
    groups = [np.flatnonzero(codes == code) for code in np.unique(codes)]
    # One seed a sample, drawn here, so that neither order nor threads matter.
    seeds = as_generator(random_state).integers(2**31, size=n_bootstrap).tolist()

    def resampled_table(seed: int) -> NDArray[np.int64]:
        rng = np.random.default_rng(seed)
        rows = np.concatenate([rng.choice(group, len(group)) for group in groups])
        model = clone(estimator).set_params(random_state=seed)
        return np.array(model.fit(data[rows], classes[rows]).contingency_)

    with warn_once():
        tables = Parallel(n_jobs=n_jobs, prefer="threads")(delayed(resampled_table)(seed) for seed in seeds)
    return count_decisions(tables, tuple(names.tolist()), threshold, "bootstrap samples")


def contradictions(report: ClassReport) -> list[dict[str, Any]]:
    """Outcomes against a belief of ±1 ("merged", "apart", "split", "whole"), with belief and rows."""
    holds = held(report.contingency, report.threshold)
    found = []
    for a in range(len(report.classes)):
        clusters = np.flatnonzero(holds[a])
        belief = report.beliefs[a, a]
        if belief >= SURE and len(clusters) > 1:
            found.append(_contradiction(report, "split", [a], clusters))
        elif belief <= -SURE and len(clusters) == 1:
            found.append(_contradiction(report, "whole", [a], clusters))
    for a, b in combinations(range(len(report.classes)), 2):
        belief = report.beliefs[a, b]
        if abs(belief) < SURE:
            continue
        shared = np.flatnonzero(holds[a] & holds[b])
        if belief < 0 and len(shared):
            found.append(_contradiction(report, "merged", [a, b], shared))
        elif belief > 0 and not len(shared) and holds[a].any() and holds[b].any():
            found.append(_contradiction(report, "apart", [a, b], np.flatnonzero(holds[a] | holds[b])))
    return found


def _contradiction(report: ClassReport, outcome: str, places: list[int], clusters: Ints) -> dict[str, Any]:
    counts = report.contingency[places].sum(axis=0)[clusters]
    pair = places[0], places[-1]
    return {
        "outcome": outcome,
        "classes": tuple(report.classes[place] for place in places),
        "belief": float(report.beliefs[pair]),
        "separability": float(report.separability[pair]),
        "clusters": tuple(report.legend[k] for k in clusters.tolist()),
        "n_rows": int(counts.sum()),
        "certainty": float(np.average(report.certainty[clusters], weights=counts)),
    }


_OUTCOMES = {
    "merged": ("keeps {names} apart", "{n_rows} of their rows share {clusters}"),
    "apart": ("puts {names} together", "no cluster holds both: {n_rows} rows in {clusters}"),
    "split": ("keeps {names} whole", "it is split: {n_rows} rows in {clusters}"),
    "whole": ("asks to split {names}", "{n_rows} of its rows are in {clusters}"),
}


def contradiction_sentence(record: dict[str, Any]) -> str:
    """Put a record of ``contradictions`` into words."""
    names = " and ".join(str(name) for name in record["classes"])
    wish, outcome = (
        part.format(names=names, n_rows=record["n_rows"], clusters=", ".join(record["clusters"]))
        for part in _OUTCOMES[record["outcome"]]
    )
    return (
        f"the belief {signed(record['belief'])} {wish}, but {outcome} "
        f"(certainty {record['certainty']:.2f}, separability {signed(record['separability'])})"
    )
