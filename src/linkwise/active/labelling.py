"""Labels of all rows from the posterior of the landmarks."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from linkwise.active.landscape import Landscape
from linkwise.active.posterior import Posterior
from linkwise.exceptions import InfeasibleConstraints
from linkwise.graph import compact
from linkwise.inference import PottsField, best_labels

__all__ = ["keep_facts", "label_landmarks", "label_rows"]


def label_rows(
    landscape: Landscape, posterior: Posterior, n_clusters: int | None = None
) -> NDArray[np.int64]:
    """Labels of all rows, (n,), numbered from 0: each row has that of the nearest landmark."""
    labels = label_landmarks(landscape, posterior, n_clusters)[landscape.nearest]
    return np.unique(labels, return_inverse=True)[1].astype(np.int64)


def label_landmarks(
    landscape: Landscape, posterior: Posterior, n_clusters: int | None = None
) -> NDArray[np.int64]:
    """Labels of the landmarks, (l,): the likeliest group found, or a number above all groups.

    A landmark that is likelier in a group not found yet keeps the cluster that it had without answers; if all
    known landmarks of that cluster are in one group, this group is the cluster. With a known number of
    clusters, no more of these clusters are kept than groups are missing, those with most such landmarks.
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
    return np.asarray(np.where(new, cluster[landscape.start], labels), dtype=np.int64)


def keep_facts(
    labels: NDArray[np.int64], pairs: NDArray[np.int64], says: NDArray[np.int8]
) -> NDArray[np.int64]:
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
