"""LinkedClustering on disk: its own entries as plain values, and the estimators that vote beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from linkwise.auto import CandidateRecord, Consensus, Gain
from linkwise.persistence.checks import ANY, Entries, LayoutError, Sizes, list_of, probability, text
from linkwise.persistence.layout import MEMBERS

_VOTES = Entries(
    {"names": list_of(text()), "weights": probability("V"), "shares": list_of(probability(ANY, "K"))}
)


def fitted_values(fitted: Mapping[str, Any]) -> dict[str, Any]:
    """The fitted attributes without the estimators that vote; records become tuples."""
    values = {key: value for key, value in fitted.items() if key != "best_estimator_"}
    values["gain_"] = tuple(map(float, values["gain_"]))
    values["selection_"] = [tuple(record) for record in values["selection_"]]
    return values


def members_of(best: Any) -> Sequence[Any]:
    """The estimators that vote; TypeError names one that cannot be stored."""
    members = best.estimators if isinstance(best, Consensus) else (best,)
    names = best.names if isinstance(best, Consensus) else (type(best).__name__,)
    for name, one in zip(names, members, strict=True):
        if MEMBERS.get(type(one).__name__) != type(one).__module__:
            raise TypeError(
                f"candidate {name!r} votes and holds parts of scikit-learn, which cannot be stored without "
                "pickle; fit with candidates= that leave it out, or use joblib or skops"
            )
    return tuple(members)


def votes_of(best: Any) -> dict[str, Any] | None:
    """Names, weights and shares of several estimators that vote; None for one."""
    if not isinstance(best, Consensus):
        return None
    return {"names": list(best.names), "weights": best.weights, "shares": list(best.shares)}


def restore(model: Any, fitted: Mapping[str, Any], votes: Any, members: Sequence[Any]) -> None:
    """Give a LinkedClustering its fitted attributes, once they agree with those of its members."""
    _check_members(fitted, votes, members)
    for key, value in fitted.items():
        setattr(model, key, value)
    model.gain_ = Gain(*model.gain_)
    model.selection_ = [CandidateRecord(*record) for record in model.selection_]
    if votes is None:
        model.best_estimator_ = members[0]
        return
    best = Consensus.__new__(Consensus)
    best.names, best.estimators = tuple(votes["names"]), tuple(members)
    best.weights, best.shares = votes["weights"], tuple(votes["shares"])
    best.n_clusters, best.labels_ = model.n_clusters_, model.labels_
    model.best_estimator_ = best


def _check_members(fitted: Mapping[str, Any], votes: Any, members: Sequence[Any]) -> None:
    """Refuse votes and members that contradict each other or the entries of the model."""
    for number, one in enumerate(members):
        if len(one.labels_) != len(fitted["labels_"]) or one.n_features_in_ != fitted["n_features_in_"]:
            raise LayoutError(f"members/{number}", "it was fitted to other rows or columns")
        if one.labels_.max() >= fitted["n_clusters_"] or _n_clusters(one) > fitted["n_clusters_"]:
            raise LayoutError(f"members/{number}", "it has more clusters than the model")
    if votes is None:
        if len(members) != 1:
            raise LayoutError("votes", f"it is missing, but there are {len(members)} members")
        return
    if not isinstance(votes, dict):
        raise LayoutError("votes", "it must be a table")
    _VOTES.check(votes, Sizes(K=fitted["n_clusters_"], V=len(members)), "votes")
    if not members or len(votes["names"]) != len(members) or len(votes["shares"]) != len(members):
        raise LayoutError("votes", f"it is not about {len(members)} members")
    for number, (one, share) in enumerate(zip(members, votes["shares"], strict=True)):
        if len(share) < _n_clusters(one) or not np.allclose(share.sum(axis=1), 1.0):
            raise LayoutError(f"votes/shares/{number}", "its rows are no shares of the member's clusters")


def _n_clusters(member: Any) -> int:
    """How many clusters a fitted estimator of linkwise may predict."""
    known = getattr(member, "n_clusters", None)
    return int(member._n_clusters if known is None else known)
