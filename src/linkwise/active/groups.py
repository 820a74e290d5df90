"""Groups that answers have found, among the landmarks that were asked about.

First rows are joined by answers (``join``). The part that was asked about first is a group; then, in that
order, a part that surely belongs to none of the groups found so far is one. At last a group is divided where
that explains answers and similarities better: one wrong answer "same" may have joined two clusters. And two
groups are united where that explains rows much better and answers do not speak against it: one wrong answer
"different" may have divided a cluster.

A row may belong to a cluster that no answer has found yet. The more rows like it are known, the less likely
that is: with s the similarity to known rows summed up, the chance is alpha / (alpha + s), as in a Chinese
restaurant whose tables are near or far. How often rows did found a group tells alpha.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from linkwise._arrays import Floats, Ints
from linkwise.active.evidence import (
    LEAST_SIMILARITY,
    MOST,
    Asked,
    Evidence,
    Split,
    asked_novelty,
    divide,
    log_total,
    operators_of,
    quick_prob,
    unite,
)

#: A group is founded, or a row is taken as known, when it is this probable.
SURE = 0.9
#: Prior of log alpha: mean and standard deviation; and the grid on which it is averaged.
_ALPHA, _ALPHA_SPREAD = 0.3, 1.5
_ALPHAS = np.exp(np.linspace(np.log(0.003), np.log(3.0), 30))
_MOST_ROUNDS = 30
#: Nats at most by which two rows are likelier of two clusters than of one, before any answer about them.
_MOST_BASE = 2.0


@dataclass(eq=False)
class Groups:
    """Groups of asked landmarks: ``label`` (t,), -1 for open ones; ``open_prob`` (t, g) is for these.

    ``merge_chance`` (g, g) and ``splits`` as in ``Posterior``.
    """

    label: Ints
    open_prob: Floats
    merge_chance: Floats
    alpha: float
    splits: list[Split]


class _Found(NamedTuple):
    """Groups that parts founded: ``label`` (t,), -1 for open rows, whose probabilities are ``prob`` (t, g).

    There can be at most ``most`` groups.
    """

    label: Ints
    prob: Floats
    merge_chance: Floats
    alpha: float
    most: int


def find_groups(
    asked: Asked,
    strength: Floats,
    n_clusters: int | None = None,
    others: Sequence[Ints] = (),
    n_likely: int = 2,
) -> Groups:
    """Groups among the asked landmarks: joined rows that nothing known resembles, or answers set apart.

    ``others``, groups (l,) of landmarks, are taken instead if they have more evidence. Among ``n_likely``
    clusters two rows are seldom of one, so that an answer which says so is likelier to be wrong.
    """
    found = _founded(asked, strength, n_clusters, n_likely)
    evidence = Evidence(asked, found.label >= 0, strength, found.alpha)
    label = found.label
    for other in others:
        if (other[asked.places] >= 0).any():
            groups = _numbered(other[asked.places])
            label, evidence = _with_more_evidence(evidence, label, groups, found.alpha, n_clusters, n_likely)
    label, splits = divide(evidence, label, found.most)
    label, united, chance = unite(evidence, label)
    if label is found.label:
        # What was likely when a group was founded, and what all rows say now, are both reasons to ask.
        chance = np.maximum(chance, found.merge_chance)
        return Groups(label, found.prob, chance, found.alpha, splits)
    scores = evidence.scores(label)
    open_prob = np.exp(scores - log_total(scores)[:, None])[:, :-1]
    splits = [_renumbered(one, asked, label) for one in (*splits, *united)]
    return Groups(label, open_prob, chance, found.alpha, splits)


def _founded(
    asked: Asked, strength: Floats, n_clusters: int | None, n_likely: int, first: Ints | None = None
) -> _Found:
    """Groups one after the other: ``first`` (t,) or the part asked about first, then what belongs to none."""
    if first is None:
        first = np.where(np.arange(len(asked.places)) == 0, 0, -1)
    part = _parts(asked, strength, n_likely, first)
    n_parts = int(part.max()) + 1
    most = n_parts if n_clusters is None else n_clusters
    group_of = np.full(n_parts, -1, dtype=np.int64)
    group_of[part[first >= 0]] = first[first >= 0]
    between = np.zeros((n_parts, n_parts))
    np.add.at(between, tuple(part[asked.pairs].T), strength)
    between += between.T
    chance = np.zeros((n_parts, n_parts))
    for _ in range(_MOST_ROUNDS):
        alpha = _restaurant(asked, group_of[part])
        n_groups = int(group_of.max()) + 1
        prob = _part_probabilities(asked, part, group_of, between, alpha)
        apart = np.array([between[:, group_of == group].sum(axis=1) < 0.0 for group in range(n_groups)])
        new = (prob[:, -1] > SURE) | (apart.all(axis=0) & (prob[:, -1] > 0.5))
        founders: list[int] = []
        for one in np.flatnonzero((group_of < 0) & new).tolist():
            if n_groups + len(founders) < most and all(between[one, other] < 0.0 for other in founders):
                founders.append(one)
        if not founders:
            break
        for number, one in enumerate(founders, start=n_groups):
            chance[number, :n_groups] = prob[one, :-1]
            group_of[one] = number
    n_groups = int(group_of.max()) + 1
    chance = chance[:n_groups, :n_groups]
    return _Found(group_of[part], prob[part][:, :n_groups], chance + chance.T, alpha, most)


def _parts(asked: Asked, strength: Floats, n_likely: int, first: Ints) -> Ints:
    """Parts (t,) that answers join, numbered by their first row; each group of ``first`` (t,) in its own."""
    known = first >= 0
    name = np.arange(len(first)) + int(first.max()) + 1
    name[known] = first[known]
    node = np.unique(name, return_inverse=True)[1]  # the groups have the lowest names
    groups = np.column_stack(np.triu_indices(int(first.max()) + 1, 1))
    pairs = np.concatenate([node[asked.pairs], groups])
    apart = np.full(len(groups), -len(pairs) * MOST)
    inside = pairs[:, 0] == pairs[:, 1]
    values = np.concatenate([strength, apart])
    # The odds of two rows of K clusters being of one are 1 / (K - 1). Questions are about likelier pairs than
    # any two, and the answers of a person who errs once in ten should join rows of however many clusters.
    least = min(float(np.log(max(n_likely - 1, 1))), _MOST_BASE)
    part = join(int(node.max()) + 1, pairs[~inside], values[~inside], least)[node]
    names, place = np.unique(part, return_index=True)
    number = np.empty(len(names), dtype=np.int64)
    number[np.argsort(place)] = np.arange(len(names))
    return np.asarray(number[part], dtype=np.int64)


def _with_more_evidence(
    evidence: Evidence, label: Ints, groups: Ints, alpha: float, n_clusters: int | None, n_likely: int
) -> tuple[Ints, Evidence]:
    """The groups ``label`` (t,) found so far, or others (t,) if these have more evidence.

    The others are improved, and open rows found groups beside them as they do beside those found so far: an
    open row costs less than one of a group, so that groups of fewer rows would always have more evidence.
    """
    asked, strength = evidence.asked, evidence.strength
    own = Evidence(asked, groups >= 0, strength, alpha)
    groups, value = own.improved(groups)
    if (groups < 0).any():
        groups = _founded(asked, strength, n_clusters, n_likely, groups).label
        own = Evidence(asked, groups >= 0, strength, alpha)
        value = own.value(groups)
    return (groups, own) if value > evidence.value(label) else (label, evidence)


def _renumbered(split: Split, asked: Asked, label: Ints) -> Split:
    """The division of a group that has another number now."""
    return split._replace(group=int(label[np.flatnonzero(asked.places == split.rows[0])[0]]))


def _numbered(label: Ints) -> Ints:
    """Labels numbered from 0 in the order of their first row; -1 stays."""
    known = label >= 0
    names, first = np.unique(label[known], return_index=True)
    number = np.full(int(label.max()) + 1, -1)
    number[names[np.argsort(first)]] = np.arange(len(names))
    return np.asarray(np.where(known, number[label], -1), dtype=np.int64)


def _part_probabilities(asked: Asked, part: Ints, group_of: Ints, between: Floats, alpha: float) -> Floats:
    """Probability of each group, and last of a new one, for parts that are no group yet: (parts, g + 1)."""
    n_groups = int(group_of.max()) + 1
    known = group_of[part] >= 0
    prob = quick_prob(operators_of(asked, known), group_of[part][known], n_groups)
    new = asked_novelty(asked, known.astype(np.float64), alpha)
    log_prob = np.column_stack([np.log(prob) + np.log1p(-new)[:, None], np.log(new)])
    by_part = np.zeros((len(group_of), n_groups + 1))
    np.add.at(by_part, part, log_prob)
    by_part /= np.bincount(part)[:, None]
    for group in range(n_groups):
        by_part[:, group] += between[:, group_of == group].sum(axis=1)
    return np.asarray(np.exp(by_part - log_total(by_part)[:, None]), dtype=np.float64)


def _restaurant(asked: Asked, group: Ints) -> float:
    """Posterior mean of alpha: which rows with a group founded it, in the order in which they were asked."""
    seated = np.flatnonzero(group >= 0)
    alike = (asked.nearness_before @ (group >= 0).astype(np.float64))[seated]
    founds = np.zeros(len(seated), dtype=bool)
    founds[np.unique(group[seated], return_index=True)[1]] = True
    alike, founds = alike[1:] + LEAST_SIMILARITY, founds[1:]
    log_density = -0.5 * ((np.log(_ALPHAS) - np.log(_ALPHA)) / _ALPHA_SPREAD) ** 2
    share = _ALPHAS[:, None] / (_ALPHAS[:, None] + alike)
    log_density = log_density + np.log(np.where(founds, share, 1.0 - share)).sum(axis=1)
    density = np.exp(log_density - log_density.max())
    return float(density @ _ALPHAS / density.sum())


def join(n: int, pairs: Ints, strength: Floats, least: float = 0.0) -> Ints:
    """Parts (n,) of n nodes from pairs (m, 2) of a strength (m,): positive says same, negative different.

    The two parts with the strongest pairs for being one are joined, and what was said of either holds for
    both, until no two have more than ``least`` for being one (greedy additive edge contraction). Pairs
    without a contradiction give the nodes that a chain of pairs "same" joins. Parts are numbered by their
    first node.
    """
    between: list[dict[int, float]] = [{} for _ in range(n)]
    for (i, j), value in zip(pairs.tolist(), strength.tolist(), strict=True):
        between[i][j] = between[j][i] = between[i].get(j, 0.0) + value
    part = np.arange(n)
    queue = [(-value, i, j) for i in range(n) for j, value in between[i].items() if i < j and value > least]
    heapq.heapify(queue)
    while queue:
        value, i, j = heapq.heappop(queue)
        if between[i].get(j) != -value:
            continue  # joined or weakened since
        part[part == j] = i
        del between[i][j], between[j][i]
        for k, other in between[j].items():
            del between[k][j]
            total = between[i].get(k, 0.0) + other
            between[i][k] = between[k][i] = total
            if total > least:
                heapq.heappush(queue, (-total, min(i, k), max(i, k)))
        between[j] = {}
    return np.unique(part, return_inverse=True)[1].astype(np.int64)
