"""Links that a fit does not see, to judge it by without labels."""

from __future__ import annotations

import inspect
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from linkwise.constraints import Constraints
from linkwise.graph import group_labels

__all__ = ["HELD_OUT", "HeldOut", "both_kinds", "corrected_error", "hold_out", "takes_links"]

#: Share of the links of each kind that a fit does not see.
HELD_OUT = 0.2


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
    group, _ = group_labels(links.n_samples, links.pairs[~out & (links.weights > 0)])
    ends = np.sort(group[links.pairs], axis=1)
    place = np.array([links.n_samples, 1])
    between = ends @ place
    implied = (ends[:, 0] == ends[:, 1]) | np.isin(between, between[~out & (links.weights < 0)])
    asked, sign = links.pairs[out & ~implied], links.weights[out & ~implied]
    if not (sign > 0).any() or not (sign < 0).any():
        raise ValueError(
            "the links that criterion 'held_out_links' leaves out follow from the others; pass more links, "
            "or choose another criterion"
        )
    said = links.judgements
    stays = ~np.isin(said.pairs @ place, links.pairs[out] @ place)
    must, cannot = stays & (said.weights > 0), stays & (said.weights < 0)
    kept = Constraints(
        links.n_samples,
        said.pairs[must],
        said.pairs[cannot],
        weight=np.concatenate([said.weights[must], -said.weights[cannot]]),
        source=None if said.source is None else np.concatenate([said.source[must], said.source[cannot]]),
    )
    return HeldOut(kept, asked[sign > 0], asked[sign < 0])


def corrected_error(differences: NDArray[np.float64]) -> float:
    """Standard error of a mean difference over repeated hold-outs; 0 for one.

    Hold-outs share most of their links, so that the variance over their number is too small. Nadeau & Bengio
    (2003) add the ratio of links left out to links kept.
    """
    n = len(differences)
    if n < 2:
        return 0.0
    return float(np.sqrt((1.0 / n + HELD_OUT / (1.0 - HELD_OUT)) * differences.var(ddof=1)))
