"""Clusters of LinkedClustering in place of the predictors: when, by which evidence, and with what labels."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from linkwise import Constraints, LinkedClustering
from linkwise.active import ActiveClustering, LabelOracle, choice, landscape, session
from linkwise.active.choice import are_few, better_clusters, foretold_share, last_choice
from linkwise.active.labelling import label_landmarks
from linkwise.datasets import load_bundled
from linkwise.exceptions import InfeasibleConstraints
from tests.active.test_labelling import told


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
    monkeypatch.setattr(choice, "foretold_share", lambda *_: 1.0)
    assert better_clusters(known._knowledge, links) is None


def test_facts_that_need_more_clusters_than_are_found(iris, monkeypatch):
    """Three rows that are surely different cannot be in two clusters: the predictors label."""
    X, y = iris
    known = asked_about(X, y, 10)
    facts = Constraints(len(X), cannot_link=[(0, 50), (0, 100), (50, 100)])
    monkeypatch.setattr(choice, "label_landmarks", lambda *_: np.arange(len(X)) % 2)
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
    monkeypatch.setattr(choice, "_ROWS", 60)
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
    for module in (choice, session):
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
    monkeypatch.setattr(choice, "label_landmarks", lambda *_: np.arange(len(X)) % n_predicted)
    asked = []

    def fit(model, X, *, constraints):
        asked.append(model.n_clusters)
        raise InfeasibleConstraints(SimpleNamespace(message="none can be made"))

    monkeypatch.setattr(LinkedClustering, "fit", fit)
    assert better_clusters(seen, known.constraints) is None
    assert asked == [counts]
