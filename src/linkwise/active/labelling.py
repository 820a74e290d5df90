"""Labels of all rows: from the posterior of the landmarks, and of few answers also from ``LinkedClustering``.

The predictors learn from rows in answers alone. While these are few, a clustering of all rows that follows
the answers may be better. Both are asked about answers that they did not see, and the better one labels.
Mean adjusted Rand index of the leaderboard's sets after 10, 25 and 50 right answers, five draws: half A, of
which one draw decided, .616, .709 and .771 by predictors alone, .609, .723 and .776 so; half B .586, .641
and .733, so .624, .670 and .727.
"""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

from linkwise._arrays import Floats, Ints
from linkwise.active.knowledge import Knowledge
from linkwise.active.landscape import Landscape, landmarks
from linkwise.active.posterior import Posterior
from linkwise.constraints import Constraints
from linkwise.exceptions import InfeasibleConstraints
from linkwise.graph import compact
from linkwise.inference import PottsField, best_labels

#: Clusters without answers stay whole up to so many known landmarks, if they agree with this share of the
#: answers and predict known landmarks at most so many nats worse than the predictors. On half A of the
#: leaderboard's sets, two draws, labels after 5 and 10 right answers were better so: .474 and .614, not
#: .463 and .599; with 10 % wrong answers .341 and .386, not .340 and .371.
_FEW, _LEAST_KEPT, _AHEAD = 12, 0.6, 2.0
#: Known landmarks that the shares of all groups count as, in a cluster.
_SHARED = 0.5
#: A cluster without a known landmark is part of a group that has more than this share of it, by the
#: predictors. On half A, five draws, labels after 5 and 7 right answers: .479 and .518 if no cluster is, .489
#: and .522 with .6, .490 and .527 with .65, .482 and .518 with .7.
_ALIKE = 0.65
#: Numbers of answers after which rows are clustered anew: it takes seconds. Fewer cannot choose.
_CHOICES = (10, 15, 25, 40, 60, 80, 100)
#: No more once there are so many links for each cluster, given or told: the predictors know enough.
_LINKS_PER_CLUSTER = 13
#: Of more landmarks so many are clustered, those in answers among them; the others follow. With all of 1000
#: landmarks a choice takes four times as long.
_ROWS = 400


def label_rows(
    landscape: Landscape, posterior: Posterior, n_clusters: int | None = None, clusters: Ints | None = None
) -> Ints:
    """Labels of all rows, (n,), numbered from 0: each row has that of the nearest landmark."""
    labels = label_landmarks(landscape, posterior, n_clusters, clusters)[landscape.nearest]
    return np.unique(labels, return_inverse=True)[1].astype(np.int64)


def label_landmarks(
    landscape: Landscape, posterior: Posterior, n_clusters: int | None = None, clusters: Ints | None = None
) -> Ints:
    """Labels of the landmarks, (l,): the likeliest group found, or a number above all groups.

    A landmark that is likelier in a group not found yet keeps the cluster that it had without answers; if all
    known landmarks of that cluster are in one group, this group is the cluster. With a known number of
    clusters, no more of these clusters are kept than groups are missing, those with most such landmarks.

    While few landmarks are known, a cluster stays whole unless the answers speak against it: its landmarks
    have the group of most known ones, or if none is known, the group that the predictors say (``_votes``).
    A group that has most known landmarks of no cluster takes part of one (``_with_lost_groups``).
    ``clusters`` (l,), if given, foretell answers better than the predictors, and stay whole.
    """
    labels = posterior.prob[:, :-1].argmax(axis=1)
    new = posterior.prob[:, -1] > 0.5
    if n_clusters is not None:
        counts = np.bincount(landscape.start[new], minlength=1)
        kept = np.argsort(-counts, kind="stable")[: max(0, n_clusters - posterior.n_groups)]
        new &= np.isin(landscape.start, kept)
    cluster = posterior.n_groups + np.arange(int(landscape.start.max()) + 1)
    known = posterior.group >= 0
    for number in np.unique(landscape.start[posterior.asked[known]]):
        groups = np.unique(posterior.group[known & (landscape.start[posterior.asked] == number)])
        if len(groups) == 1:
            cluster[number] = groups[0]
    labels = np.where(new, cluster[landscape.start], labels)
    if clusters is None:
        clusters, votes = landscape.start, _votes(landscape, posterior)
    else:
        votes = _groups_of(clusters, posterior)
    if votes is not None:
        voted = _with_lost_groups(votes, clusters, posterior)
        voted[posterior.asked[known]] = labels[posterior.asked[known]]
        if n_clusters is None or len(np.unique(voted)) <= n_clusters:
            labels = voted
    return np.asarray(labels, dtype=np.int64)


def _votes(landscape: Landscape, posterior: Posterior) -> Ints | None:
    """Group of most known landmarks of each cluster without answers, else its own number; or None.

    If no landmark of a cluster is known, the predictors may say which of two groups or more it is part of.
    The chance of a group not found yet does not count: after few answers it is high everywhere.

    None if many landmarks are known, if the clusters contradict many answers, or if the group of a known
    landmark, left out, is predicted much better without the clusters.
    """
    known = posterior.group >= 0
    group, start = posterior.group[known], landscape.start[posterior.asked[known]]
    if not 0 < len(group) <= _FEW or posterior.start_kept < _LEAST_KEPT:
        return None
    n_groups, counts = posterior.n_groups, _counts(landscape.start, posterior)
    own = np.eye(n_groups)[group]
    share = counts.sum(axis=0) - own + 1.0 / n_groups
    share /= share.sum(axis=1, keepdims=True)
    others = counts[start] - own
    share = (others + _SHARED * share) / (others.sum(axis=1, keepdims=True) + _SHARED)
    rows = np.flatnonzero(np.bincount(group, minlength=n_groups)[group] > 1)  # a group of one is not guessed
    guessed = posterior.held_out[known][rows, group[rows]]
    if np.log(share[rows, group[rows]]).sum() <= np.log(guessed).sum() - _AHEAD:
        return None
    foretold = np.zeros_like(counts)
    np.add.at(foretold, landscape.start, posterior.prob[:, :-1])
    alike = (n_groups > 1) & (foretold.max(axis=1) > _ALIKE * foretold.sum(axis=1))
    unknown = np.where(alike, foretold.argmax(axis=1), n_groups + np.arange(len(counts)))
    return np.where(counts.any(axis=1), counts.argmax(axis=1), unknown)


def _groups_of(clusters: Ints, posterior: Posterior) -> Ints:
    """Group of most known landmarks of each of the ``clusters`` (l,), else a number above all groups."""
    counts = _counts(clusters, posterior)
    return np.where(counts.any(axis=1), counts.argmax(axis=1), posterior.n_groups + np.arange(len(counts)))


def _counts(clusters: Ints, posterior: Posterior) -> Floats:
    """Known landmarks of each cluster that are of each group, (c, g)."""
    known = posterior.group >= 0
    counts = np.zeros((int(clusters.max()) + 1, posterior.n_groups))
    np.add.at(counts, (clusters[posterior.asked[known]], posterior.group[known]), 1.0)
    return counts


def _with_lost_groups(votes: Ints, start: Ints, posterior: Posterior) -> Ints:
    """Labels (l,) by the votes of clusters, which groups without a cluster divide as the predictors say.

    The answers may have found more groups than there are clusters without answers. Such a group would else
    be its few known rows alone, however many rows the predictors say are of it.
    """
    labels = votes[start]
    known = posterior.group >= 0
    inside = start[posterior.asked[known]]
    for cluster in np.unique(inside):
        lost = np.setdiff1d(posterior.group[known][inside == cluster], votes)
        if len(lost):
            groups = np.append(lost, votes[cluster])
            rows = np.flatnonzero(start == cluster)
            labels[rows] = groups[posterior.prob[np.ix_(rows, groups)].argmax(axis=1)]
    return labels


def keep_facts(labels: Ints, pairs: Ints, says: NDArray[np.int8]) -> Ints:
    """The labels (n,) with as few changes as can be found so that facts (m, 2), which can hold, do."""
    if ((labels[pairs[:, 0]] == labels[pairs[:, 1]]) == (says > 0)).all():
        return labels
    rows, ends = compact(pairs)
    n_labels = int(labels.max()) + 1
    for n_more in range(len(rows)):  # facts may need more clusters than were found
        unary = np.eye(n_labels + n_more)[labels[rows]]
        field = PottsField(unary, ends, np.where(says > 0, np.inf, -np.inf))
        try:
            found = best_labels(field).labels
        except InfeasibleConstraints:
            continue
        break
    labels = labels.copy()
    labels[rows] = found
    return np.unique(labels, return_inverse=True)[1].astype(np.int64)


def last_choice(n_answers: int) -> int:
    """Number of answers at the last choice; 0: there was none."""
    return max((number for number in _CHOICES if number <= n_answers), default=0)


def are_few(n_links: int, n_clusters: int) -> bool:
    """Whether links given and told are so few that clusters of all rows may be better than predictors."""
    return n_links <= _LINKS_PER_CLUSTER * n_clusters


def better_clusters(knowledge: Knowledge, links: Constraints) -> Ints | None:
    """Clusters (l,) of the landmarks that foretell left-out answers better than the predictors do, or None.

    ``links`` among all rows are those given at first and the answers. There are as many clusters as the
    predictors find; if there is one of which no answer told, links choose whether there is one less.
    """
    from linkwise.auto.candidates import CANDIDATES
    from linkwise.auto.estimator import LinkedClustering

    landscape, posterior = knowledge.surveyed, knowledge.posterior
    k = len(np.unique(label_landmarks(landscape, posterior, knowledge.n_clusters)))
    if k < 2 or not are_few(links.n_pairs, k):
        return None
    # Mixtures with links take seconds for each fold where clusters are many.
    quick = [one.name for one in CANDIDATES.values() if not (one.gaussian and one.uses_links)]
    # If more than one cluster is not told of, groups are still being found: they are too few to choose from.
    spare = knowledge.n_clusters is None and 2 <= posterior.n_groups == k - 1
    counts = [k - 1, k] if spare else [k]
    model = LinkedClustering(counts, candidates=quick, random_state=landscape.seed)
    model._cautious = False
    some = landmarks(len(landscape.rows), posterior.asked, n_landmarks=_ROWS, seed=landscape.seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about candidates that play no part
        try:
            model.fit(landscape.points[some], constraints=links[landscape.rows[some]])
        except InfeasibleConstraints:  # facts need more clusters than were found
            return None
    kept = next((record.agreement for record in model.selection_ if record.chosen), np.nan)
    if not kept > foretold_share(landscape, posterior, links):
        return None
    if len(some) == len(landscape.rows):
        return model.labels_
    clusters = model.predict(landscape.points)
    clusters[some] = model.labels_
    return clusters


def foretold_share(landscape: Landscape, posterior: Posterior, links: Constraints) -> float:
    """Share of the links between asked landmarks that the predictors expect to hold, each row left out."""
    place = np.full(len(landscape.rows), -1, dtype=np.int64)
    place[posterior.asked] = np.arange(len(posterior.asked))
    near = links[landscape.rows]
    ends = place[near.pairs]
    asked = (ends >= 0).all(axis=1)
    one, other = posterior.held_out[ends[asked]].transpose(1, 0, 2)
    together = (one * other).sum(axis=1)
    chance = np.where(near.weights[asked] > 0.0, together, 1.0 - together)
    return float(chance.mean()) if len(chance) else 0.0
