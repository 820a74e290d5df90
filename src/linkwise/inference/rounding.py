"""From shares of labels to labels: Kleinberg-Tardos rounding, and the best candidate per component."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from linkwise._kernels import kernel
from linkwise._kernels.random import counter_uniform
from linkwise.inference.problem import Problem
from linkwise.inference.scoring import component_scores

__all__ = ["best_per_component", "kleinberg_tardos"]

# A node with shares that add up to 1 is labelled by a draw with probability 1/K; after this many, by argmax.
_MOST_DRAWS = 5000


@kernel
def _round(shares: NDArray[np.float64], component: NDArray[np.int64], seed: np.uint64) -> NDArray[np.int64]:
    """First draw (label, threshold) of the component's sequence that the node's share reaches."""
    n_nodes, n_labels = shares.shape
    labels = np.empty(n_nodes, dtype=np.int64)
    for node in range(n_nodes):
        labels[node] = np.argmax(shares[node])
        for draw in range(_MOST_DRAWS):
            label = int(n_labels * counter_uniform(seed, component[node], 2 * draw))
            # In (0, 1], so that a label without a share is never taken.
            threshold = 1.0 - counter_uniform(seed, component[node], 2 * draw + 1)
            if shares[node, label] >= threshold:
                labels[node] = label
                break
    return labels


def kleinberg_tardos(
    shares: NDArray[np.float64], component: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """Random labels with P(z_i = a) = shares[i, a] that tend to agree where the shares do.

    Draw a label a and a threshold in (0, 1] again and again; every node that has no label yet and whose share
    of a reaches the threshold takes it (Kleinberg & Tardos 2002). Two nodes are separated with probability at
    most sum_a abs(y_ia - y_ja), so must-links cost at most twice what they cost the relaxation. For
    cannot-links there is no such guarantee: nodes with equal shares always get equal labels.

    Parameters
    ----------
    shares : (n, K) float64
        >= 0, rows add up to 1.
    component : (n,) int64
        Nodes of one component share a sequence of draws; other components have their own.
    rng : numpy.random.Generator

    Returns
    -------
    (n,) int64

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise.inference.rounding import kleinberg_tardos
    >>> shares = np.array([[1.0, 0.0], [0.5, 0.5], [0.5, 0.5]])
    >>> labels = kleinberg_tardos(shares, np.zeros(3, dtype=np.int64), np.random.default_rng(0))
    >>> int(labels[0]), bool(labels[1] == labels[2])
    (0, True)
    """
    return _round(shares, component, rng.integers(2**64, dtype=np.uint64))


def best_per_component(
    problem: Problem,
    candidates: Iterable[NDArray[np.int64]],
    component: NDArray[np.int64],
    n_components: int,
) -> NDArray[np.int64]:
    """Join the best parts of several labellings: no link crosses a component, so each chooses for itself.

    Parameters
    ----------
    problem : Problem
    candidates : iterable of (n,) int64
        At least one; the first wins ties.
    component : (n,) int64
    n_components : int

    Returns
    -------
    (n,) int64
    """
    labels: NDArray[np.int64] | None = None
    best = np.empty(0)
    for candidate in candidates:
        scores = component_scores(problem, candidate, component, n_components)
        if labels is None:
            labels, best = candidate.copy(), scores
            continue
        better = scores > best
        best = np.where(better, scores, best)
        labels = np.where(better[component], candidate, labels)
    if labels is None:
        raise ValueError("candidates is empty: give at least one labelling")
    return labels
