"""Links that a fit does not see, to judge it by without labels."""

from __future__ import annotations

import inspect
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from linkwise._arrays import Bools, Floats, Ints
from linkwise.constraints import Constraints
from linkwise.constraints.groups import codes_apart, implied_pairs, pair_codes
from linkwise.graph import group_labels

#: Share of the links of each kind that a fit does not see.
HELD_OUT = 0.2

#: Whole rows are left out if fewer than this share of the links left out would be news to a fit, or if there
#: are fewer must-links than this share of the pairs that they put together.
_NEWS = 0.5
#: Weight from which a link may imply others: that of a certainty of 0.95.
_SURE = 0.5 * np.log(19.0) - 1e-9
#: Pairs under hard links that fits are asked about at most.
_MOST_QUESTIONS = 20_000


class HeldOut(NamedTuple):
    """Links to fit with, and (m, 2) pairs of the links that were left out."""

    kept: Constraints
    must_link: Ints
    cannot_link: Ints

    def error(self, labels: NDArray[np.integer]) -> float:
        """Share of the links left out that labels break, each kind half: 1/2 for one cluster of all rows."""
        together = [labels[pairs[:, 0]] == labels[pairs[:, 1]] for pairs in self[1:]]
        return float(0.5 * (np.mean(~together[0]) + np.mean(together[1])))


class Questions(NamedTuple):
    """Pairs (q, 2) that fits are asked about, whether they are the same (q,), and how sure it is, 2 g - 1."""

    pairs: NDArray[np.int64]
    same: NDArray[np.bool_]
    trust: NDArray[np.float64]

    @property
    def n_independent(self) -> float:
        """How many answers the questions are worth: a doubtful one counts less, and no row counts twice."""
        return float(min((self.trust**2).sum(), len(np.unique(self.pairs))))


class LinkFold(NamedTuple):
    """Links to fit with, and the numbers (m,) of the questions that are news to this fit."""

    kept: Constraints
    asked: Ints


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


def link_folds(
    links: Constraints, n_folds: int, rng: np.random.Generator
) -> tuple[Questions, list[LinkFold]]:
    """Leave out each link once, in folds with equal shares of must-links and cannot-links.

    Links that follow from others are not asked. Where most do, folds are made of rows: each leaves out all
    that hard links say about its rows, and asks for their pairs with all others.
    """
    trust = np.asarray(np.tanh(np.abs(links.weights)))
    fold_of = np.empty(links.n_pairs, dtype=np.int64)
    for kind in (np.flatnonzero(links.weights > 0), np.flatnonzero(links.weights < 0)):
        fold_of[rng.permutation(kind)] = (np.arange(len(kind)) + rng.integers(n_folds)) % n_folds
    left_out = [fold_of == fold for fold in range(n_folds)]
    news = [out & ~_implied(links, out) for out in left_out]
    group_sizes = np.unique(links.chunklets(), return_counts=True)[1]
    n_together = int((group_sizes * (group_sizes - 1) // 2).sum())
    n_hard = int(np.isposinf(links.weights).sum())
    few_news = sum(asked.sum() for asked in news) < _NEWS * links.n_pairs or n_together > n_hard / _NEWS
    if few_news or _of_labels_alone(links):
        return _row_folds(links, n_folds, rng)
    folds = [
        LinkFold(without_pairs(links, out), np.flatnonzero(asked))
        for out, asked in zip(left_out, news, strict=True)
        if asked.any()
    ]
    return Questions(links.pairs, links.weights > 0, trust), folds


def _of_labels_alone(links: Constraints) -> bool:
    """Tell whether all links are hard and between labelled rows: they stand for all pairs of these rows."""
    codes = links.row_classes
    return codes is not None and bool(np.isinf(links.weights).all() and (codes[links.pairs] >= 0).all())


def _row_folds(
    links: Constraints, n_folds: int, rng: np.random.Generator
) -> tuple[Questions, list[LinkFold]]:
    """Folds of rows under hard links, those of a group dealt out in turn; soft links are asked, too."""
    hard = np.isinf(links.weights)
    rows = np.unique(links.pairs)
    group = links.chunklets()
    order = np.lexsort((rng.random(len(rows)), group[rows]))
    fold_of_row = np.full(links.n_samples, -1, dtype=np.int64)
    fold_of_row[rows[order]] = (np.arange(len(rows)) + rng.integers(n_folds)) % n_folds
    apart = codes_apart(links, group)
    pairs, same = implied_pairs(links, _MOST_QUESTIONS, rng)
    trust = np.concatenate([np.ones(len(pairs)), np.tanh(np.abs(links.weights[~hard]))])
    pairs = np.concatenate([pairs, links.pairs[~hard]])
    same = np.concatenate([same, links.weights[~hard] > 0])
    folds = []
    for fold in range(n_folds):
        out = fold_of_row == fold
        asked = np.flatnonzero(out[pairs].any(axis=1))
        if len(asked):
            folds.append(LinkFold(_without_rows(links, out, group, apart), asked))
    return Questions(pairs, same, trust), folds


def _without_rows(links: Constraints, out: Bools, group: Ints, apart: Ints) -> Constraints:
    """All that the links say about rows that are not ``out``: groups stay chained and linked apart."""
    said = links.judgements
    soft = np.isfinite(said.weights) & (said.weights != 0.0) & ~out[said.pairs].any(axis=1)
    rows = np.setdiff1d(np.unique(links.pairs[np.isinf(links.weights)]), np.flatnonzero(out))
    order = rows[np.argsort(group[rows], kind="stable")]
    next_to = group[order[1:]] == group[order[:-1]]
    chain = np.stack([order[:-1][next_to], order[1:][next_to]], axis=1)
    first_of = np.full(links.n_samples, -1, dtype=np.int64)
    first_of[group[order[::-1]]] = order[::-1]
    ends = first_of[np.stack(np.divmod(apart, links.n_samples), axis=1)]
    between = ends[(ends >= 0).all(axis=1)]
    pairs = np.concatenate([chain, between, said.pairs[soft]])
    hard = np.repeat([np.inf, -np.inf], [len(chain), len(between)])
    source = None
    if said.source is not None:
        source = np.concatenate([np.full(len(hard), ""), said.source[soft]])
    return Constraints._from_signed(
        links.n_samples, pairs, np.concatenate([hard, said.weights[soft]]), source
    )


def _implied(links: Constraints, out: Bools) -> Bools:
    """Which links (m,) follow from those that are not ``out``: groups of must-links, apart or not."""
    # Doubtful links imply nothing: two answers that are each right in 85 % of the cases are both so in 74 %.
    known = ~out & (np.abs(links.weights) >= _SURE)
    group, _ = group_labels(links.n_samples, links.pairs[known & (links.weights > 0)])
    ends = np.sort(group[links.pairs], axis=1)
    between = pair_codes(links.n_samples, ends)
    return (ends[:, 0] == ends[:, 1]) | np.isin(between, between[known & (links.weights < 0)])


def without_pairs(links: Constraints, out: Bools) -> Constraints:
    """The links without those that are ``out`` (m,), all judgements of a pair included."""
    said = links.judgements
    stays = ~np.isin(pair_codes(links.n_samples, said.pairs), pair_codes(links.n_samples, links.pairs[out]))
    # Answers of certainty 1/2 say nothing.
    stays &= said.weights != 0.0
    source = None if said.source is None else said.source[stays]
    return Constraints._from_signed(links.n_samples, said.pairs[stays], said.weights[stays], source)


def corrected_error(differences: Floats) -> float:
    """Standard error of a mean difference over repeated hold-outs, which share links; 0 for one.

    Nadeau & Bengio (2003) add the ratio of links left out to links kept to the variance over their number.
    """
    n = len(differences)
    if n < 2:
        return 0.0
    return float(np.sqrt((1.0 / n + HELD_OUT / (1.0 - HELD_OUT)) * differences.var(ddof=1)))
