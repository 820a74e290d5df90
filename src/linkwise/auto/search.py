"""Trials of candidates: each is fitted without a part of the links and asked about that part."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from linkwise._compat import FitTask
from linkwise._shared_work import SharedWork
from linkwise._threads import one_thread_if_small
from linkwise.auto.candidates import Candidate
from linkwise.auto.choice import agreement, held_out_kept
from linkwise.constraints import Constraints
from linkwise.model_selection.held_out import LinkFold, Questions

__all__ = ["Trial", "enough_folds", "fit_members", "rows_to_choose_on", "try_candidates"]

#: Answers after which no more folds of hard links are asked for, and the fewest folds.
_ENOUGH, _FEWEST_FOLDS = 100, 2


class Trial(NamedTuple):
    """What a candidate did: labels (n,) by fold, which questions (q,) it answers right, or its failure.

    ``more_nats`` is what else speaks for it, beside the questions.
    """

    candidate: Candidate
    n_clusters: int
    memberships: tuple[NDArray[np.int64], ...]
    kept: NDArray[np.float64]
    agreement: float
    error: float
    failure: str = ""
    more_nats: float = 0.0


def enough_folds(questions: Questions, folds: list[LinkFold]) -> tuple[Questions, list[LinkFold]]:
    """The first folds that ask for enough answers together, and the questions that they ask.

    Every fold costs a fit of every candidate, and many hard links make fits slow. All folds are needed where
    links may be wrong, because each link is judged by the fits that did not see it.
    """
    per_fold = questions.n_independent / len(folds)
    n_folds = max(_FEWEST_FOLDS, int(np.ceil(_ENOUGH / per_fold)))
    if n_folds >= len(folds):
        return questions, folds
    asked, place = np.unique(np.concatenate([fold.asked for fold in folds[:n_folds]]), return_inverse=True)
    ends = np.cumsum([len(fold.asked) for fold in folds[: n_folds - 1]])
    places = np.split(place, ends)
    return Questions(*(part[asked] for part in questions)), [
        fold._replace(asked=numbers) for fold, numbers in zip(folds, places, strict=False)
    ]


def try_candidates(
    candidates: Sequence[Candidate],
    counts: Sequence[int],
    X: Any,
    questions: Questions,
    folds: Sequence[LinkFold],
    seed: int,
    *,
    n_jobs: int | None = None,
    task: FitTask | None = None,
) -> list[Trial]:
    """Try every candidate with every number of clusters; one without links is fitted once for all folds."""
    pieces = [
        (candidate, k, fold)
        for k in counts
        for candidate in candidates
        for fold in (folds if candidate.uses_links else folds[:1])
    ]
    work = SharedWork()
    with warnings.catch_warnings(), one_thread_if_small(len(X)):
        # The chosen candidates are fitted again, and warn then.
        warnings.simplefilter("ignore")
        found = iter(
            Parallel(n_jobs=n_jobs, prefer="threads")(
                delayed(_labels)(*piece, X, seed, work) for piece in pieces
            )
        )
    trials = []
    for number, (k, candidate) in enumerate((k, candidate) for k in counts for candidate in candidates):
        stage = None if task is None else task.subtask("candidate", number)
        parts = [next(found) for _ in (folds if candidate.uses_links else folds[:1])]
        failure = next((part for part in parts if isinstance(part, str)), "")
        memberships = tuple(part for part in parts if not isinstance(part, str))
        if failure:
            kept = np.full(len(questions.pairs), np.nan)
        else:
            memberships = memberships if candidate.uses_links else memberships * len(folds)
            kept = held_out_kept(questions, folds, memberships)
        trials.append(Trial(candidate, k, memberships, kept, *agreement(kept, questions.trust), failure))
        if stage is not None:
            stage.end()
    return trials


def _labels(
    candidate: Candidate, k: int, fold: LinkFold, X: Any, seed: int, work: SharedWork
) -> NDArray[np.int64] | str:
    """Labels of a candidate that sees the links of a fold, or why there are none."""
    try:
        return np.asarray(candidate.fit(X, fold.kept, k, seed, work).labels_, dtype=np.int64)
    except (ValueError, RuntimeError) as error:  # also of linear algebra, and budgets that are exceeded
        return str(error)


def fit_members(
    members: Sequence[Candidate],
    weights: NDArray[np.float64],
    X: Any,
    links: Constraints | None,
    k: int,
    seed: int,
) -> tuple[list[Candidate], list[Any], NDArray[np.float64]]:
    """Fit candidates to all rows and links; those that fail are left out, with a warning, and their votes."""
    fitted: list[Any] = []
    failures: dict[str, str] = {}
    work = SharedWork()
    with one_thread_if_small(len(X)):
        for one in members:
            try:
                with _named_warnings(one.name):
                    fitted.append(one.fit(X, links, k, seed, work))
            except (ValueError, RuntimeError) as error:
                failures[one.name] = str(error)
    if not fitted:
        raise ValueError(
            f"no candidate could be fitted: {next(iter(failures.values()))}; pass other candidates"
        )
    for name, failure in failures.items():
        warnings.warn(f"candidate {name!r} has no vote, because it cannot be fitted: {failure}", stacklevel=2)
    stays = np.array([one.name not in failures for one in members])
    left = [one for one in members if one.name not in failures]
    return left, fitted, weights[stays] / weights[stays].sum()


@contextmanager
def _named_warnings(name: str) -> Iterator[None]:
    """Say in every warning of a block which candidate it is about; the user cannot raise its parameters."""
    with warnings.catch_warnings(record=True) as caught:
        yield
    for one in caught:
        message = str(one.message).partition("; raise ")[0]
        warnings.warn_explicit(f"candidate {name!r}: {message}", one.category, one.filename, one.lineno)


def rows_to_choose_on(
    n_samples: int, links: Constraints | None, n_rows: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Sorted rows (at most about ``n_rows``) that candidates are compared on: linked rows first, then any.

    If there are more linked rows, whole groups of linked rows are drawn until half of the rows are taken. Of
    a group that is larger than that, links are drawn one by one.
    """
    if n_samples <= n_rows:
        return np.arange(n_samples)
    chosen = np.zeros(n_samples, dtype=bool)
    if links is not None and links.n_pairs:
        chosen[_linked_rows(links, n_rows // 2, rng)] = True
    others = np.flatnonzero(~chosen)
    n_more = max(n_rows - int(chosen.sum()), n_rows // 4)
    chosen[rng.choice(others, min(n_more, len(others)), replace=False)] = True
    return np.flatnonzero(chosen)


def _linked_rows(links: Constraints, most: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """All linked rows; if they are more than ``most``, those of some groups or of some links of one group."""
    linked = np.unique(links.pairs)
    if len(linked) <= most:
        return linked
    _, group, sizes = np.unique(links.components()[linked], return_inverse=True, return_counts=True)
    order = rng.permutation(len(sizes))
    n_groups = int(np.searchsorted(np.cumsum(sizes[order]), most, "right"))
    if n_groups:
        return linked[np.isin(group, order[:n_groups])]
    pairs = rng.permutation(links.pairs[np.isin(links.pairs[:, 0], linked[group == order[0]])])
    rows, first = np.unique(pairs, return_index=True)
    return rows[np.argsort(first)][:most]
