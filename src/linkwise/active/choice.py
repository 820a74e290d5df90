"""Clusters of ``LinkedClustering`` with the answers as links, where they foretell answers better.

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

from linkwise.active.knowledge import Knowledge
from linkwise.active.labelling import label_landmarks
from linkwise.active.landscape import Landscape, landmarks
from linkwise.active.posterior import Posterior
from linkwise.constraints import Constraints
from linkwise.exceptions import InfeasibleConstraints

__all__ = ["are_few", "better_clusters", "foretold_share", "last_choice"]

#: Numbers of answers after which rows are clustered anew: it takes seconds. Fewer cannot choose.
_CHOICES = (10, 15, 25, 40, 60, 80, 100)
#: No more once there are so many links for each cluster, given or told: the predictors know enough.
_FEW = 13
#: Of more landmarks so many are clustered, those in answers among them; the others follow. With all of 1000
#: landmarks a choice takes four times as long.
_ROWS = 400


def last_choice(n_answers: int) -> int:
    """Number of answers at the last choice; 0: there was none."""
    return max((number for number in _CHOICES if number <= n_answers), default=0)


def are_few(n_links: int, n_clusters: int) -> bool:
    """Whether links given and told are so few that clusters of all rows may be better than predictors."""
    return n_links <= _FEW * n_clusters


def better_clusters(knowledge: Knowledge, links: Constraints) -> NDArray[np.int64] | None:
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
