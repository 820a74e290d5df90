"""What was compared and what links gained: in words, as tables and as plain values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise._pages import TextTable

if TYPE_CHECKING:
    import pandas

    from linkwise.auto.estimator import LinkedClustering

__all__ = [
    "candidate_table",
    "chosen_in_words",
    "count_table",
    "gain_in_words",
    "selection_frame",
    "selection_record",
]

_TOGETHER = "consensus"


def chosen_in_words(model: LinkedClustering) -> str:
    """Name the candidate that was chosen, or count those that vote."""
    compared = [one for one in _candidates(model) if one.n_clusters == model.n_clusters_]
    members = [one for one in compared if one.weight > 0]
    if len(members) == 1:
        return str(members[0].candidate)
    return f"vote of {len(members)} of {len(compared)} candidates"


def gain_in_words(model: LinkedClustering, n_links: int) -> str:
    """Say what the links gained, and whether that is certain."""
    value, low, high = model.gain_
    if not np.isfinite(value):
        if any(np.isfinite(one.agreement) for one in model.selection_):
            return "What the links gained is not known: no method without links was compared."
        chosen = " The number of clusters was chosen by the silhouette of K-means."
        how = chosen if _number_was_open(model) else ""
        if not n_links:
            return f"Without links nothing could be compared: the methods without links vote.{how}"
        few = "1 link is" if n_links == 1 else f"{n_links} links are"
        return f"{few} too few to compare methods: the methods with links vote.{how}"
    share = "of the left-out links, compared with the best method without links"
    if low == high == 0:
        return f"The links gained about 0.000: the clusters keep the same share {share}. No gain is certain."
    if value < 0:
        told = f"The links lost about {-value:.3f} (90 % interval {-high:.3f} to {-low:.3f})"
    else:
        told = f"The links gained about {value:.3f} (90 % interval {low:.3f} to {high:.3f})"
    certain = "" if low > 0 or high < 0 else " This is not certain: the interval contains 0."
    return f"{told}: the clusters keep that much {'less' if value < 0 else 'more'} {share}.{certain}"


def _number_was_open(model: LinkedClustering) -> bool:
    """Whether neither the user nor the classes of labels gave the number of clusters."""
    if isinstance(model.n_clusters, str):
        return len(getattr(model, "classes_", ())) < 2
    return isinstance(model.n_clusters, list | tuple | range) and len(set(model.n_clusters)) > 1


def candidate_table(model: LinkedClustering) -> list[TextTable]:
    """Tabulate the candidates with the chosen number of clusters, the best first; none if none was asked."""
    records = [one for one in model.selection_ if one.n_clusters == model.n_clusters_]
    if not any(np.isfinite(one.agreement) for one in records):
        return []
    # Votes together come first, then the better agreement; equals stay in the order of the candidates.
    records.sort(key=lambda one: (one.candidate != _TOGETHER, -np.nan_to_num(one.agreement, nan=-np.inf)))
    rows = [
        [
            "all votes together" if one.candidate == _TOGETHER else one.candidate,
            _agreement(one),
            f"{one.weight:.2f}" if one.weight else "–",
        ]
        for one in records
    ]
    return [TextTable("Candidates", ["candidate", "agreement with held-out links", "vote"], rows)]


def count_table(model: LinkedClustering) -> list[TextTable]:
    """Tabulate the best agreement of each number of clusters; none if only one was compared."""
    best: dict[int, Any] = {}
    for one in sorted(_candidates(model), key=lambda one: np.nan_to_num(one.agreement, nan=-np.inf)):
        if np.isfinite(one.agreement):
            best[one.n_clusters] = one
    if len(best) < 2:
        return []
    rows = [
        [str(k), "chosen" if k == model.n_clusters_ else "", best[k].candidate, _agreement(best[k])]
        for k in sorted(best)
    ]
    return [
        TextTable(
            "Number of clusters", ["clusters", "", "best candidate", "agreement with held-out links"], rows, 3
        )
    ]


def selection_frame(model: LinkedClustering) -> pandas.DataFrame:
    """Tabulate all that was tried; what was chosen has the gain beside it."""
    import pandas

    frame = pandas.DataFrame(model.selection_).rename(columns={"weight": "vote"})
    chosen = frame["chosen"].to_numpy()
    for name, value in model.gain_._asdict().items():
        frame["gain" if name == "value" else f"gain_{name}"] = np.where(chosen, value, np.nan)
    return frame


def selection_record(model: LinkedClustering, n_links: int) -> dict[str, Any]:
    """The same as plain values, for JSON."""
    candidates = [{**one._asdict(), "vote": one.weight} for one in model.selection_]
    for one in candidates:
        del one["weight"]
    return {
        "gain": {**model.gain_._asdict(), "text": gain_in_words(model, n_links)},
        "candidates": candidates,
    }


def _candidates(model: LinkedClustering) -> list[Any]:
    """What was tried, without the record of all votes together."""
    return [one for one in model.selection_ if one.candidate != _TOGETHER]


def _agreement(one: Any) -> str:
    if np.isfinite(one.agreement):
        return f"{one.agreement:.3f} ± {one.error:.3f}"
    return "failed" if one.reason else "–"
