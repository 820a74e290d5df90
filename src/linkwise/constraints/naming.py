"""Names of clusters after their labelled rows; classes that share a cluster or are split are reported.

A cluster has the name of the commonest class among its labelled rows. A class that is the commonest one
nowhere is added to the name of the cluster that has most of its rows ("rice + wheat"), so that every class is
found in some name. Clusters of one class are numbered ("rice (1)", "rice (2)"), and clusters without labelled
rows keep their number ("cluster 3"). All names differ.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from linkwise._arrays import Ints
from linkwise.exceptions import SharedClusterWarning

if TYPE_CHECKING:
    from linkwise.constraints.constraints import Constraints

#: Clusters that a warning lists.
_LISTED = 5


class ClusterNames(NamedTuple):
    """Names (K,) of clusters, the classes (L,) and how many labelled rows of each are where, (L, K)."""

    names: NDArray[np.str_]
    classes: NDArray[Any]
    contingency: Ints

    @property
    def split(self) -> dict[Any, list[int]]:
        """Classes with labelled rows in several clusters, and these clusters."""
        names = self.classes.tolist()
        found = [np.flatnonzero(row).tolist() for row in self.contingency]
        return {name: clusters for name, clusters in zip(names, found, strict=True) if len(clusters) > 1}

    @property
    def shared(self) -> dict[int, list[Any]]:
        """Clusters with labelled rows of several classes, and these classes, the commonest first."""
        names = self.classes.tolist()
        several = np.flatnonzero((self.contingency > 0).sum(axis=0) > 1).tolist()
        return {k: [names[c] for c in self._commonest_first(k)] for k in several}

    def _commonest_first(self, k: int) -> list[int]:
        """Numbers of the classes in cluster k."""
        column = self.contingency[:, k]
        return [c for c in np.argsort(-column, kind="stable").tolist() if column[c]]

    def shared_sentence(self) -> str:
        """Say which classes share a cluster, with counts: ``cluster 1 (rice) has 12 of rice, 3 of wheat``."""
        texts = _texts(self.classes)
        parts = []
        for k in self.shared:
            listed = ", ".join(f"{self.contingency[c, k]} of {texts[c]}" for c in self._commonest_first(k))
            parts.append(f"cluster {k} ({self.names[k]}) has {listed}")
        more = len(parts) - _LISTED
        return "; ".join(parts[:_LISTED]) + (f"; and {more} more" if more > 0 else "")


def name_clusters(
    labels: NDArray[np.integer], row_classes: NDArray[np.integer], classes: NDArray[Any], n_clusters: int
) -> ClusterNames:
    """Name clusters 0 .. K - 1 by the class numbers (n,) of their rows, -1 where the class is unknown."""
    known = row_classes >= 0
    cells = row_classes[known] * n_clusters + labels[known]
    counts = np.bincount(cells, minlength=len(classes) * n_clusters).astype(np.int64)
    contingency = counts.reshape(len(classes), n_clusters)
    return ClusterNames(_names(contingency, _texts(classes)), classes, contingency)


def _texts(classes: NDArray[Any]) -> list[str]:
    """Classes as text; if 1 and "1" are both classes, as Python writes them."""
    texts = [str(name) for name in classes]
    return texts if len(set(texts)) == len(texts) else [repr(name) for name in classes.tolist()]


def _names(contingency: Ints, texts: list[str]) -> NDArray[np.str_]:
    """Names (K,) by the rule above; in the end a name that another cluster has gets the number of its own."""
    n_classes, n_clusters = contingency.shape
    parts: list[list[str]] = [[] for _ in range(n_clusters)]
    present = contingency.any(axis=1)
    if present.any():
        commonest = np.where(contingency.any(axis=0), contingency.argmax(axis=0), -1)
        for c in range(n_classes):
            own = np.flatnonzero(commonest == c).tolist()
            for number, k in enumerate(own, start=1):
                parts[k].append(texts[c] if len(own) == 1 else f"{texts[c]} ({number})")
        for c in np.setdiff1d(np.flatnonzero(present), commonest).tolist():
            parts[int(contingency[c].argmax())].append(texts[c])
    names = [" + ".join(part) or f"cluster {k}" for k, part in enumerate(parts)]
    taken: set[str] = set()
    for k in sorted(range(n_clusters), key=lambda k: not parts[k]):  # those named after classes first
        while names[k] in taken:
            names[k] += f" [{k}]"
        taken.add(names[k])
    return np.array(names, dtype=np.str_)


class NamedClustersMixin:
    """Estimators whose clusters are named after labelled rows, if the links were built from labels."""

    labels_: Ints

    @property
    def split_classes_(self) -> dict[Any, list[int]]:
        """Classes with labelled rows in several clusters, and these clusters."""
        return self._cluster_names().split

    @property
    def shared_clusters_(self) -> dict[int, list[Any]]:
        """Clusters with labelled rows of several classes, and these classes, the commonest first."""
        return self._cluster_names().shared

    def _cluster_names(self) -> ClusterNames:
        return ClusterNames(self.cluster_names_, self.classes_, self.contingency_)

    def _labels_at(self, rows: Ints) -> Ints:
        """Labels of some training rows."""
        return self.labels_[rows]

    def _store_cluster_names(self, constraints: Constraints | None, n_clusters: int) -> None:
        """Name the clusters of ``labels_``, or forget the names of an earlier fit."""
        for name in ("classes_", "cluster_names_", "contingency_"):
            self.__dict__.pop(name, None)
        if constraints is None or constraints.classes is None or constraints.row_classes is None:
            return
        known = np.flatnonzero(constraints.row_classes >= 0)
        labels, codes = self._labels_at(known), constraints.row_classes[known]
        found = name_clusters(labels, codes, constraints.classes, n_clusters)
        self.cluster_names_, self.classes_, self.contingency_ = found
        if found.shared:
            warnings.warn(
                f"labelled rows of several classes share a cluster: {found.shared_sentence()}. Look at the "
                "labels of these rows, make the labels surer (certainty), or ask for more clusters; "
                "contingency_ has all counts",
                SharedClusterWarning,
                stacklevel=5,
            )
