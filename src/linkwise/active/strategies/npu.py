"""Normalised point-based uncertainty (NPU; Xiong, Azimi & Fern, IEEE TKDE 2014, algorithms 1 and 2).

Before each row the data are clustered with the answers so far (MPCKMeans with links of weight 1, as in the
paper), and a forest of 50 trees learns these labels. The similarity M(x, y) of two rows is the share of trees
in which they reach the same leaf, and

    P(x in N_i)  is proportional to  the mean of M(x, y) over y in N_i,
    H(x)   = - sum_i P(x in N_i) log2 P(x in N_i),
    E q(x) = sum_i i P(x in N_(i)),     N_(1) the likeliest neighbourhood, N_(2) the next, ...

The next row has the largest H / E q among the rows outside of the neighbourhoods: uncertainty for each
question that it takes to settle it. Neighbourhoods are asked about, the likeliest first, until one
answer is "same"; if none is, the row founds a new one.

With one neighbourhood H is 0 for all rows, and the row is random. A row that shares no leaf
with any neighbourhood is equally likely in all. The seed of the fits is the number of answers before the row,
so that all questions about a row see the same probabilities.

MPCKMeans looks for K clusters; without K, for as many as there are neighbourhoods, at least two.

Every question costs a clustering and a forest of all rows: .15 s for 400 rows, and far more for many.
"""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.ensemble import RandomForestClassifier

from linkwise._arrays import Floats, Ints
from linkwise.active.knowledge import Answers, Knowledge, chosen_answers
from linkwise.active.strategies.neighbourhoods import Neighbourhoods, ask_rows, counted_votes, neighbourhoods
from linkwise.active.strategies.registry import among_landmarks, strategy
from linkwise.constraints import Constraints
from linkwise.kmeans import MPCKMeans

N_TREES = 50


@strategy("npu")
@among_landmarks
def npu(knowledge: Knowledge, n_pairs: int, rng: np.random.Generator) -> Ints:
    """Questions about the row with the largest uncertainty for each expected question."""
    known = neighbourhoods(knowledge)
    before = _without_rows(knowledge.answers, known.pending_rows)
    cached: list[Floats] = []

    def probabilities(known: Neighbourhoods) -> Floats:
        if not cached:
            leaves = _leaves(knowledge.X, before, knowledge.n_clusters or max(2, len(known.members)))
            cached.append(membership(leaves, known.members))
        return cached[0]

    def choose(known: Neighbourhoods, free: Ints, chosen: list[int], rng: np.random.Generator) -> int:
        if len(known.members) == 1:
            return int(rng.choice(free))
        prob = probabilities(known)[free]
        return int(free[np.argmax(uncertainty(prob) / expected_questions(prob))])

    def order(known: Neighbourhoods, rows: Ints) -> Ints:
        if len(known.members) == 1:
            return np.zeros(1, dtype=np.int64)
        return np.argsort(-probabilities(known)[rows].mean(axis=0), kind="stable")

    return ask_rows(knowledge, n_pairs, rng, choose, order, known)


def _without_rows(answers: Answers, rows: Ints) -> Answers:
    """The answers but for those about some rows."""
    return chosen_answers(answers, np.flatnonzero(~np.isin(answers.pairs, rows).any(axis=1)))


def _leaves(X: Floats, answers: Answers, n_clusters: int) -> Ints:
    """Leaf of each row in each tree, (n, 50), of a forest that learned a clustering with the answers."""
    seed = len(answers.says)
    # No link is hard, since answers may contradict each other.
    pairs, votes = counted_votes(answers, len(X))
    links = Constraints(len(X), pairs[votes > 0], pairs[votes < 0], weight=1.0)
    with warnings.catch_warnings():
        # A clustering that stopped early or lost a cluster still says where rows are alike.
        warnings.simplefilter("ignore", UserWarning)
        # One start: the answers give it, and ten would take three times as long as the forest.
        model = MPCKMeans(min(n_clusters, len(X)), n_init=1, random_state=seed).fit(X, constraints=links)
    forest = RandomForestClassifier(N_TREES, random_state=seed).fit(X, model.labels_)
    return forest.apply(X).astype(np.int64)


def membership(leaves: Ints, members: list[Ints]) -> Floats:
    """Probability of each row (n,) to be in each neighbourhood: (n, k)."""
    prob = np.zeros((len(leaves), len(members)))
    for number, rows in enumerate(members):
        for row in rows:
            prob[:, number] += (leaves == leaves[row]).mean(axis=1) / len(rows)
    prob[prob.sum(axis=1) == 0.0] = 1.0
    return prob / prob.sum(axis=1, keepdims=True)


def uncertainty(prob: Floats) -> Floats:
    """Entropy in bits of each row of probabilities (n, k)."""
    return -np.sum(prob * np.log2(np.where(prob > 0.0, prob, 1.0)), axis=1)


def expected_questions(prob: Floats) -> Floats:
    """Questions until "same" for each row of (n, k), if neighbourhoods are asked about likeliest first."""
    falling = -np.sort(-prob, axis=1)
    return falling @ np.arange(1.0, prob.shape[1] + 1.0)
