"""Links that a fit does not see, to judge it by without labels."""

from __future__ import annotations

import inspect
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from linkwise.constraints import Constraints
from linkwise.graph import group_labels

__all__ = [
    "HELD_OUT",
    "HeldOut",
    "LinkFold",
    "both_kinds",
    "corrected_error",
    "hold_out",
    "link_folds",
    "takes_links",
    "without_pairs",
]

#: Share of the links of each kind that a fit does not see.
HELD_OUT = 0.2

#: Whole rows are left out if fewer than this share of the links left out would be news to a fit.
_NEWS = 0.5


class HeldOut(NamedTuple):
    """Links to fit with, and (m, 2) pairs of the links that were left out."""

    kept: Constraints
    must_link: NDArray[np.int64]
    cannot_link: NDArray[np.int64]

    def error(self, labels: NDArray[np.integer]) -> float:
        """Share of the links left out that the labels break, averaged over the two kinds.

        The average does not depend on how many of each kind there are: one cluster for all rows has the error
        1/2, and so have clusters of one row each.
        """
        together = [labels[pairs[:, 0]] == labels[pairs[:, 1]] for pairs in self[1:]]
        return float(0.5 * (np.mean(~together[0]) + np.mean(together[1])))


class LinkFold(NamedTuple):
    """Links to fit with, and the numbers (m,) of the links to ask: left out, and not implied by the others."""

    kept: Constraints
    asked: NDArray[np.int64]


def takes_links(estimator: Any) -> bool:
    """Tell whether ``fit`` has the parameter ``constraints``."""
    return "constraints" in inspect.signature(estimator.fit).parameters


def both_kinds(links: Constraints | None) -> bool:
    """Tell whether there are must-links and cannot-links."""
    return links is not None and len(links.must_link) > 0 and len(links.cannot_link) > 0


def hold_out(links: Constraints, seed: int) -> HeldOut:
    """Leave out a random part of the links of each kind; those that the others imply are not asked for."""
    rng = np.random.default_rng(seed)
    out = np.zeros(links.n_pairs, dtype=bool)
    for kind in (np.flatnonzero(links.weights > 0), np.flatnonzero(links.weights < 0)):
        out[rng.choice(kind, max(1, round(HELD_OUT * len(kind))), replace=False)] = True
    asked = out & ~_implied(links, out)
    must, cannot = (links.pairs[asked & kind] for kind in (links.weights > 0, links.weights < 0))
    if not len(must) or not len(cannot):
        raise ValueError(
            "the links that criterion 'held_out_links' leaves out follow from the others; pass more links, "
            "or choose another criterion"
        )
    return HeldOut(without_pairs(links, out), must, cannot)


def link_folds(links: Constraints, n_folds: int, rng: np.random.Generator) -> list[LinkFold]:
    """Leave out each link once, in folds with equal shares of must-links and cannot-links.

    Where most links follow from the others, as in complete groups of rows, folds are made of rows instead: a
    fold leaves out all links of its rows, so that their labels are news to the fit. Folds without a link to
    ask are left out.
    """
    fold_of = np.empty(links.n_pairs, dtype=np.int64)
    for kind in (np.flatnonzero(links.weights > 0), np.flatnonzero(links.weights < 0)):
        fold_of[rng.permutation(kind)] = (np.arange(len(kind)) + rng.integers(n_folds)) % n_folds
    left_out = [fold_of == fold for fold in range(n_folds)]
    news = [out & ~_implied(links, out) for out in left_out]
    if sum(asked.sum() for asked in news) < _NEWS * links.n_pairs:
        fold_of_row = _row_folds(links, n_folds, rng)
        left_out = [(fold_of_row[links.pairs] == fold).any(axis=1) for fold in range(n_folds)]
        news = [out & ~_implied(links, out) for out in left_out]
    return [
        LinkFold(without_pairs(links, out), np.flatnonzero(asked))
        for out, asked in zip(left_out, news, strict=True)
        if asked.any()
    ]


def _row_folds(links: Constraints, n_folds: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Fold (n,) of every linked row, those of a must-linked group dealt out in turn; -1 without links."""
    rows = np.unique(links.pairs)
    group, _ = group_labels(links.n_samples, links.must_link)
    order = np.lexsort((rng.random(len(rows)), group[rows]))
    fold_of_row = np.full(links.n_samples, -1, dtype=np.int64)
    fold_of_row[rows[order]] = (np.arange(len(rows)) + rng.integers(n_folds)) % n_folds
    return fold_of_row


def _implied(links: Constraints, out: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which links (m,) follow from those that are not ``out``: groups of must-links, apart or not."""
    group, _ = group_labels(links.n_samples, links.pairs[~out & (links.weights > 0)])
    ends = np.sort(group[links.pairs], axis=1)
    between = _codes(links, ends)
    return (ends[:, 0] == ends[:, 1]) | np.isin(between, between[~out & (links.weights < 0)])


def without_pairs(links: Constraints, out: NDArray[np.bool_]) -> Constraints:
    """The links without those that are ``out`` (m,), all judgements of a pair included."""
    said = links.judgements
    stays = ~np.isin(_codes(links, said.pairs), _codes(links, links.pairs[out]))
    must, cannot = stays & (said.weights > 0), stays & (said.weights < 0)
    return Constraints(
        links.n_samples,
        said.pairs[must],
        said.pairs[cannot],
        weight=np.concatenate([said.weights[must], -said.weights[cannot]]),
        source=None if said.source is None else np.concatenate([said.source[must], said.source[cannot]]),
    )


def _codes(links: Constraints, pairs: NDArray[np.int64]) -> NDArray[np.int64]:
    """One number for each pair."""
    return pairs @ np.array([links.n_samples, 1])


def corrected_error(differences: NDArray[np.float64]) -> float:
    """Standard error of a mean difference over repeated hold-outs; 0 for one.

    Hold-outs share most of their links, so that the variance over their number is too small. Nadeau & Bengio
    (2003) add the ratio of links left out to links kept.
    """
    n = len(differences)
    if n < 2:
        return 0.0
    return float(np.sqrt((1.0 / n + HELD_OUT / (1.0 - HELD_OUT)) * differences.var(ddof=1)))
