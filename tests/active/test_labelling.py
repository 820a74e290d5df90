"""Labels from a posterior that is written down, and from clusters of LinkedClustering if they are better."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from linkwise import Constraints, LinkedClustering
from linkwise.active import ActiveClustering, LabelOracle, labelling, landscape, session
from linkwise.active.labelling import (
    are_few,
    better_clusters,
    foretold_share,
    keep_facts,
    label_landmarks,
    label_rows,
    last_choice,
)
from linkwise.datasets import load_bundled
from linkwise.exceptions import InfeasibleConstraints


def told(prob, start, nearest=None, known=(), kept=0.0, held_out=None):
    """A landscape and a posterior with nothing but what labels are made of."""
    prob = np.array(prob)
    nearest = np.arange(len(prob)) if nearest is None else np.array(nearest)
    landscape = SimpleNamespace(start=np.array(start), nearest=nearest)
    asked, group = np.array(known, dtype=int).reshape(-1, 2).T
    n_groups = prob.shape[1] - 1
    return landscape, SimpleNamespace(
        prob=prob, n_groups=n_groups, asked=asked, group=group, start_kept=kept, held_out=np.array(held_out)
    )


# Two groups, and last a group that was not found.
PROB = [
    [0.9, 0.1, 0.0],
    [0.2, 0.7, 0.1],
    [0.3, 0.1, 0.6],
    [0.1, 0.1, 0.8],
    [0.4, 0.15, 0.45],
    [0.0, 0.0, 1.0],
]
START = [0, 1, 2, 2, 0, 1]


def test_number_of_clusters_unknown():
    # Rows 2, 3 and 5 are likelier in no group: they keep their clusters 2, 2 and 1, behind the two groups.
    assert label_landmarks(*told(PROB, START)).tolist() == [0, 1, 4, 4, 0, 3]


def test_a_cluster_whose_known_rows_are_in_one_group_is_that_group():
    # Row 3 of cluster 2 is known to be in group 1; in cluster 1 the known rows are in different groups.
    known = [(3, 1), (1, 1), (5, 0)]
    assert label_landmarks(*told(PROB, START, known=known)).tolist() == [0, 1, 1, 1, 0, 3]
    # An open row tells nothing.
    assert label_landmarks(*told(PROB, START, known=[(3, -1)])).tolist() == [0, 1, 4, 4, 0, 3]


@pytest.mark.parametrize(
    ("n_clusters", "expected"),
    [(2, [0, 1, 0, 0, 0, 0]), (3, [0, 1, 4, 4, 0, 0]), (4, [0, 1, 4, 4, 0, 3]), (9, [0, 1, 4, 4, 0, 3])],
)
def test_number_of_clusters_known(n_clusters, expected):
    """One place is left for the larger cluster; the other rows take their likeliest group, of equals 0."""
    assert label_landmarks(*told(PROB, START), n_clusters).tolist() == expected


def test_rows_take_the_label_of_the_nearest_landmark_without_gaps():
    nearest = [5, 5, 2, 0, 3]
    # Labels 3, 3, 4, 0, 4 without gaps.
    assert label_rows(*told(PROB, START, nearest)).tolist() == [1, 1, 2, 0, 2]
    # Cluster 1 of row 5 has no place with three clusters.
    assert label_rows(*told(PROB, START, nearest), 3).tolist() == [0, 0, 1, 0, 1]


def test_one_group():
    assert label_landmarks(*told([[1.0, 0.0], [0.3, 0.7]], [0, 0])).tolist() == [0, 1]
    assert label_landmarks(*told([[1.0, 0.0], [0.3, 0.7]], [0, 0]), 1).tolist() == [0, 0]


def test_facts_are_kept_with_few_changes():
    labels = np.array([0, 0, 0, 1, 1, 2, 2])
    pairs, says = np.array([[0, 1], [3, 5]]), np.array([1, -1])
    assert keep_facts(labels, pairs, says) is labels
    # Row 3 is one of three that must be together; rows 5 and 6 must be apart.
    pairs = np.array([[0, 1], [1, 3], [5, 6], [5, 0]])
    says = np.array([1, 1, -1, -1])
    found = keep_facts(labels, pairs, says)
    assert ((found[pairs[:, 0]] == found[pairs[:, 1]]) == (says > 0)).all()
    assert (found != labels).sum() == 2
    assert found[3] == 0
    # Four rows that are all different need more than three labels.
    pairs = np.array([[i, j] for i in range(4) for j in range(i)])
    found = keep_facts(labels, pairs, np.full(6, -1))
    assert len(set(found[:4])) == 4
    assert np.array_equal(found[4:], labels[4:])


# Six landmarks in two groups, three of them known; the first clusters are {0, 1, 2}, {3, 4} and {5}.
FEW_START = [0, 0, 0, 1, 1, 2]
FEW_PROB = [
    [0.9, 0.1, 0.0],
    [0.9, 0.1, 0.0],
    [0.2, 0.8, 0.0],
    [0.1, 0.9, 0.0],
    [0.9, 0.1, 0.0],
    [0.6, 0.4, 0.0],
]
FEW_KNOWN = [(0, 0), (1, 0), (3, 1)]


def test_clusters_stay_whole_while_few_answers_contradict_them():
    """Row 2 has the group of its cluster, row 4 too; cluster {5} has no known row and stays for itself."""
    few = {"known": FEW_KNOWN, "held_out": np.full((3, 2), 0.5)}
    labels = label_landmarks(*told(FEW_PROB, FEW_START, kept=0.6, **few))
    assert labels.tolist() == [0, 0, 0, 1, 1, 4]
    # The answers contradict the clusters: the predictors have their way.
    assert label_landmarks(*told(FEW_PROB, FEW_START, kept=0.59, **few)).tolist() == [0, 0, 1, 1, 0, 0]
    # There is no third cluster.
    assert label_landmarks(*told(FEW_PROB, FEW_START, kept=1.0, **few), 2).tolist() == [0, 0, 1, 1, 0, 0]


def test_a_cluster_without_known_rows_is_part_of_a_group_that_predictors_are_sure_of():
    """Row 5 is a cluster of its own; the chance that its group was not found yet does not count."""
    few = {"known": FEW_KNOWN, "held_out": np.full((3, 2), 0.5), "kept": 1.0}
    for row, expected in (([0.26, 0.14, 0.6], 4), ([0.27, 0.13, 0.6], 0), ([0.1, 0.3, 0.6], 1)):
        labels = label_landmarks(*told([*FEW_PROB[:5], row], FEW_START, **few))
        assert labels.tolist() == [0, 0, 0, 1, 1, expected]
    # A single group has nothing beside it that the cluster could be likelier in.
    alone = told([[1.0, 0.0], [1.0, 0.0], [0.4, 0.6]], [0, 0, 1], known=[(0, 0), (1, 0)], kept=1.0,
                 held_out=np.ones((2, 1)))  # fmt: skip
    assert label_landmarks(*alone).tolist() == [0, 0, 2]


def test_clusters_give_way_to_predictors_that_are_much_better():
    """Rows 0 and 1 are each other's votes: 1 of 1, with .5 that all groups share, 1 + 1/2 of 2 + 1."""
    votes = 2.0 * np.log((1.0 + 0.5 * (1.5 / 3.0)) / 1.5)
    for ahead, expected in ((1.9, [0, 0, 0, 1, 1, 4]), (2.1, [0, 0, 1, 1, 0, 0])):
        guessed = np.exp((votes + ahead) / 2.0)  # above 1 here, so that the limit can be met
        held_out = np.full((3, 2), guessed)
        found = label_landmarks(*told(FEW_PROB, FEW_START, known=FEW_KNOWN, kept=1.0, held_out=held_out))
        assert found.tolist() == expected


def test_a_group_that_was_found_does_not_vanish():
    """Groups 1 and 2 share cluster {3, 4, 5, 6}, in which most known rows are of group 1: they divide it."""
    start = [0, 0, 0, 1, 1, 1, 1]
    known = [(0, 0), (1, 0), (3, 1), (4, 1), (5, 2)]
    prob = [
        [0.9, 0.1, 0.0, 0.0],
        [0.9, 0.1, 0.0, 0.0],
        [0.1, 0.1, 0.8, 0.0],  # cluster 0 has a group of its own alone, and stays whole
        [0.1, 0.8, 0.1, 0.0],
        [0.1, 0.8, 0.1, 0.0],
        [0.1, 0.1, 0.8, 0.0],
        [0.5, 0.2, 0.3, 0.0],  # likeliest in group 0, which has no known row in the cluster
    ]
    few = {"kept": 0.9, "held_out": np.full((5, 3), 1 / 3)}
    assert label_landmarks(*told(prob, start, known=known, **few)).tolist() == [0, 0, 0, 1, 1, 2, 2]
    prob[6] = [0.5, 0.3, 0.2, 0.0]
    assert label_landmarks(*told(prob, start, known=known, **few)).tolist() == [0, 0, 0, 1, 1, 2, 1]
    # Where group 2 has most known rows of a third cluster, a single row of it divides nothing.
    start[2], known[1] = 2, (2, 2)
    assert label_landmarks(*told(prob, start, known=known, **few))[6] == 1
    prob[6] = [0.5, 0.2, 0.3, 0.0]
    assert label_landmarks(*told(prob, start, known=known, **few))[6] == 1


def test_clusters_count_only_while_few_rows_are_known():
    start, known = [0] * 13 + [1, 0], [(row, 0) for row in range(12)] + [(13, 1)]
    prob = np.tile([0.9, 0.1, 0.0], (15, 1))
    prob[13:] = [0.1, 0.9, 0.0]
    held_out = np.full((13, 2), 0.5)
    # Row 14 is in the cluster of rows that are known to be in group 0; the predictors say 1.
    more = told(prob, start, known=known, kept=1.0, held_out=held_out)
    assert label_landmarks(*more)[14] == 1
    fewer = told(prob, start, known=known[1:], kept=1.0, held_out=held_out[1:])
    assert label_landmarks(*fewer)[14] == 0


def test_numbers_of_answers():
    assert [last_choice(n) for n in (0, 9, 10, 14, 15, 24, 25, 99, 100, 5000)] == [
        0, 0, 10, 10, 15, 15, 25, 80, 100, 100,
    ]  # fmt: skip
    assert are_few(26, 2)
    assert not are_few(27, 2)


@pytest.mark.parametrize("seed", range(20))
def test_foretold_share_link_by_link(seed):
    """Rows 5 to 44 are landmarks, and some of them are in answers; other links tell nothing."""
    rng = np.random.default_rng(seed)
    rows = np.arange(5, 45)
    asked = np.sort(rng.choice(40, 25, replace=False))
    held_out = rng.dirichlet(np.ones(3), 25)
    pairs = np.unique(np.sort(rng.integers(0, 50, (120, 2)), axis=1), axis=0)
    pairs = rng.permutation(pairs[pairs[:, 0] < pairs[:, 1]])
    links = Constraints(50, pairs[:20], pairs[20:], certainty=0.9)
    chances = []
    for (i, j), weight in zip(links.pairs.tolist(), links.weights.tolist(), strict=True):
        if i - 5 in asked and j - 5 in asked:
            one, other = (held_out[list(asked).index(row - 5)] for row in (i, j))
            same = sum(one[g] * other[g] for g in range(3))
            chances.append(same if weight > 0 else 1 - same)
    seen = SimpleNamespace(rows=rows), SimpleNamespace(asked=asked, held_out=held_out)
    assert 5 < len(chances) < len(links.pairs)
    assert foretold_share(*seen, links) == pytest.approx(np.mean(chances), abs=1e-12)
    assert foretold_share(*seen, Constraints(50)) == 0.0


def test_labels_by_clusters():
    """Each cluster has the group of most known rows; one without known rows is itself; known rows stay."""
    start, known = [0] * 9, [(0, 0), (1, 0), (3, 1), (4, 1), (5, 0)]
    prob = np.full((9, 3), 1 / 3)
    for row, group in known:
        prob[row] = np.eye(3)[group]
    clusters = np.array([0, 0, 0, 1, 1, 1, 1, 2, 2])
    seen = told(prob, start, known=known)
    assert label_landmarks(*seen, None, clusters).tolist() == [0, 0, 0, 1, 1, 0, 1, 4, 4]
    # Of two clusters there is no third.
    assert set(label_landmarks(*seen, 2, clusters)) == {0, 1}
    # A group that has most known rows of no cluster takes the rows that are likelier in it.
    prob = np.column_stack([prob[:, :2], np.zeros(9), prob[:, 2]])
    prob[5:7] = [0.0, 0.1, 0.9, 0.0]
    lost = told(prob, start, known=[*known[:4], (5, 2)])
    assert label_landmarks(*lost, None, clusters).tolist() == [0, 0, 0, 1, 1, 2, 2, 5, 5]


def asked_about(X, y, n_answers, **settings):
    person = LabelOracle(y)
    found = ActiveClustering(X, random_state=0, **settings)
    while found.n_answers < n_answers:
        i, j = found.ask()
        found.tell(i, j, person(i, j))
    return found


@pytest.fixture(scope="module")
def iris():
    X, y = load_bundled("iris")
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def test_iris_after_ten_answers(iris, tmp_path):
    """Two of the three kinds overlap: few answers tell predictors little, and a mixture much."""
    X, y = iris
    with asked_about(X, y, 10, journal=tmp_path / "iris.journal") as found:
        predicted = label_landmarks(found._knowledge.surveyed, found._knowledge.posterior)
        assert adjusted_rand_score(y, predicted) < 0.75
        assert adjusted_rand_score(y, found.labels_) > 0.9
        labels = found.labels_
        i, j = found.ask()
        found.tell(i, j, LabelOracle(y)(i, j))
        assert adjusted_rand_score(y, found.labels_) > 0.9
        found.undo()
        assert (found.labels_ == labels).all()
    with ActiveClustering(X, journal=tmp_path / "iris.journal") as again:
        assert (again.labels_ == labels).all()


def test_predictors_stay_where_they_are_better(iris, monkeypatch):
    X, y = iris
    known = asked_about(X, y, 10)
    links = known._as_links(known._knowledge)
    assert better_clusters(known._knowledge, links) is not None
    monkeypatch.setattr(labelling, "foretold_share", lambda *_: 1.0)
    assert better_clusters(known._knowledge, links) is None


def test_facts_that_need_more_clusters_than_are_found(iris, monkeypatch):
    """Three rows that are surely different cannot be in two clusters: the predictors label."""
    X, y = iris
    known = asked_about(X, y, 10)
    facts = Constraints(len(X), cannot_link=[(0, 50), (0, 100), (50, 100)])
    monkeypatch.setattr(labelling, "label_landmarks", lambda *_: np.arange(len(X)) % 2)
    assert better_clusters(known._knowledge, facts) is None


def test_landmarks_that_changed_since_the_choice(iris, monkeypatch):
    """Rows that become landmarks later have the cluster of the nearest landmark of then."""
    X, y = iris
    monkeypatch.setattr(session, "N_LANDMARKS", 100)
    monkeypatch.setattr(landscape, "N_LANDMARKS", 100)
    known = asked_about(X, y, 10)
    first = known._better_clusters()
    then = known._knowledge.surveyed
    assert first is not None
    assert len(first) == len(then.rows) == 100
    other = int(np.setdiff1d(np.arange(len(X)), then.rows)[0])
    known.tell(other, int(then.rows[0]), "unsure")
    known.tell(other, int(then.rows[1]), "same" if y[other] == y[then.rows[1]] else "different")
    now = known._knowledge.surveyed
    assert other in now.rows
    second = known._better_clusters()
    for row, cluster in zip(now.rows, second, strict=True):
        near = np.flatnonzero(then.rows == row)
        near = near if len(near) else [np.linalg.norm(X[then.rows] - X[row], axis=1).argmin()]
        assert cluster == first[near[0]]
    assert len(known.labels_) == len(X)


def test_some_landmarks_are_clustered_and_the_others_follow(monkeypatch):
    rng = np.random.default_rng(0)
    y = np.arange(150) % 3
    X = 6.0 * np.eye(3)[y] + rng.normal(size=(150, 3))
    known = asked_about(X, y, 10)
    seen = known._knowledge, known._as_links(known._knowledge)
    monkeypatch.setattr(labelling, "_ROWS", 60)
    sizes = []
    fit = LinkedClustering.fit
    monkeypatch.setattr(
        LinkedClustering, "fit", lambda self, X, **given: (sizes.append(len(X)), fit(self, X, **given))[1]
    )
    assert adjusted_rand_score(y, better_clusters(*seen)) > 0.95
    assert sizes == [60]


def test_no_choice_with_many_answers(iris):
    X, y = iris
    known = asked_about(X, y, 40)
    assert known._better_clusters() is None


def test_links_given_at_first_are_knowledge(iris, monkeypatch):
    """Links are counted alike whoever told them; pairs that nobody was sure about are none."""
    X, y = iris
    counted = []
    for module in (labelling, session):
        monkeypatch.setattr(module, "are_few", lambda n, k: bool(counted.append(n)) or are_few(n, k))
    few = asked_about(X, y, 10, constraints=Constraints.sample(y, 20, random_state=0))
    assert few._better_clusters() is not None
    assert counted == [30, 30]
    few.tell(0, 149, "unsure")
    few.tell(1, 149, "different")
    few._better_clusters()
    assert counted[2:] == [31]
    many = asked_about(X, y, 10, constraints=Constraints.sample(y, 300, overlap=True, random_state=0))
    monkeypatch.setattr(LinkedClustering, "fit", None)
    assert many._better_clusters() is None
    assert counted[3:] == [310]


@pytest.mark.parametrize(
    ("n_groups", "n_predicted", "n_known", "counts"),
    [
        (4, 5, None, [4, 5]),
        (3, 5, None, [5]),
        (3, 3, None, [3]),
        (1, 2, None, [2]),
        (4, 3, None, [3]),
        (4, 5, 5, [5]),
    ],
)
def test_links_choose_whether_a_cluster_without_answers_is_one(
    iris, monkeypatch, n_groups, n_predicted, n_known, counts
):
    """Predictors keep clusters that no answer has told of, and these may be parts of groups found."""
    X, y = iris
    known = asked_about(X, y, 10)
    seen = SimpleNamespace(
        surveyed=known._knowledge.surveyed, posterior=SimpleNamespace(n_groups=n_groups, asked=[0]),
        n_clusters=n_known,
    )  # fmt: skip
    monkeypatch.setattr(labelling, "label_landmarks", lambda *_: np.arange(len(X)) % n_predicted)
    asked = []

    def fit(model, X, *, constraints):
        asked.append(model.n_clusters)
        raise InfeasibleConstraints(SimpleNamespace(message="none can be made"))

    monkeypatch.setattr(LinkedClustering, "fit", fit)
    assert better_clusters(seen, known.constraints) is None
    assert asked == [counts]
