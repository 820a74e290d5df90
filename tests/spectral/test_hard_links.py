"""Hard links hold in the labels of spectral clustering, whatever the affinities say."""

import itertools
import warnings

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

from linkwise import ConstrainedSpectralClustering, Constraints, COPKMeans, SpectralLearning
from linkwise.datasets import make_rings
from linkwise.exceptions import InfeasibleConstraints
from linkwise.kmeans.hard import hard_links
from linkwise.spectral import rounding
from linkwise.spectral.rounding import labels_keeping
from tests.repeats import examples, for_seeds


def wine():
    X, y = load_wine(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def all_pairs(y, rows, **strength):
    i, j = np.triu_indices(len(rows), 1)
    pairs = np.sort(np.column_stack([rows[i], rows[j]]), axis=1)
    same = y[pairs[:, 0]] == y[pairs[:, 1]]
    return Constraints(len(y), pairs[same], pairs[~same], **strength)


@pytest.fixture
def scrambled():
    """Wine, and hard links that follow classes drawn at random: no cut of the data would keep them."""
    X, y = wine()
    rng = np.random.default_rng(0)
    wrong = rng.permutation(y)
    return X, all_pairs(wrong, rng.permutation(len(y))[:20])


def fitted(estimator, X, links):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return estimator.fit(X, constraints=links)


@for_seeds(examples(6, 3))
def test_labels_have_the_least_inertia_of_all_that_keep_the_links(seed):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(8, 2))
    links = Constraints(8, must_link=[(0, 1), (1, 5)], cannot_link=[(0, 2), (2, 3), (5, 3)][: 1 + seed % 3])
    best = np.inf
    for labels in itertools.product(range(3), repeat=8):
        labels = np.array(labels)
        if len(set(labels)) == 3 and not links.violations(labels).any():
            best = min(best, sum(rows[labels == k].var(axis=0).sum() * (labels == k).sum() for k in range(3)))
    found = labels_keeping(rows, hard_links(links, 3), n_init=50, rng=rng)
    assert not links.violations(found).any()
    inertia = sum(rows[found == k].var(axis=0).sum() * (found == k).sum() for k in range(3))
    assert inertia == pytest.approx(best)


def test_starts_end_when_a_third_of_them_came_to_the_best(monkeypatch):
    ends = []
    descent = rounding.run_hard_descent

    def seen(*given, **settings):
        run = descent(*given, **settings)
        ends.append(run.history[-1])
        return run

    monkeypatch.setattr(rounding, "run_hard_descent", seen)
    rng = np.random.default_rng(0)
    links = hard_links(Constraints(60, must_link=[(0, 1)], cannot_link=[(0, 20), (20, 40)]), 3)
    clear = np.repeat([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0]], 20, axis=0) + 0.01 * rng.normal(size=(60, 2))
    labels_keeping(clear, links, n_init=10, rng=rng)
    assert len(ends) == 3
    assert np.ptp(ends) < 1e-9
    for n_init, n_made in ((2, 2), (3, 3), (20, 6)):
        ends.clear()
        labels_keeping(clear, links, n_init=n_init, rng=rng)
        assert len(ends) == n_made
    n_all = 0
    for _ in range(10):
        ends.clear()
        found = labels_keeping(rng.normal(size=(60, 5)), links, n_init=10, rng=rng)
        least = min(ends)
        alike = np.isclose(ends, least, rtol=1e-9, atol=0.0)
        assert len(ends) == 10 or alike.sum() == 3
        assert alike[-1] or len(ends) == 10
        assert len(np.unique(found)) == 3
        n_all += len(ends) == 10
    assert n_all > 5  # where starts end apart, all are made


@pytest.mark.parametrize("assign_labels", ["kmeans", "discretize", "cluster_qr"])
@pytest.mark.parametrize("kind", [ConstrainedSpectralClustering, SpectralLearning])
def test_no_hard_link_is_broken(kind, assign_labels, scrambled):
    X, links = scrambled
    settings = {"assign_labels": assign_labels, "random_state": 0}
    keeping = fitted(kind(3, **settings), X, links)
    assert not keeping.violations_.any()
    assert keeping.violation_rate_ == 0.0
    paper = fitted(kind(3, keep_hard_links=False, **settings), X, links)
    assert paper.violations_.sum() > 10


@pytest.mark.parametrize(
    "settings",
    [{"solver": "landmark", "n_landmarks": 60}, {"reliability_subsets": 2}, {"n_extra_eigenvectors": 0}],
    ids=str,
)
def test_nor_in_other_settings(settings, scrambled):
    X, links = scrambled
    found = fitted(ConstrainedSpectralClustering(3, random_state=0, **settings), X, links)
    assert not found.violations_.any()


@pytest.mark.parametrize("solver", ["basis", "signed_laplacian"])
def test_nor_on_a_graph(solver):
    X, y = make_rings(150, random_state=0)
    rng = np.random.default_rng(0)
    links = all_pairs(rng.permutation(y), rng.permutation(len(y))[:12])
    found = fitted(ConstrainedSpectralClustering(2, solver=solver, random_state=0), X, links)
    assert not found.violations_.any()


def test_hard_links_hold_beside_soft_ones():
    X, y = wine()
    rows = np.random.default_rng(1).permutation(len(y))
    hard = all_pairs(y[::-1], rows[:10])
    soft = all_pairs(y, rows[10:40], certainty=0.9)
    links = hard + soft
    found = fitted(ConstrainedSpectralClustering(3, random_state=0), X, links)
    assert not found.violations_[np.isinf(links.weights)].any()
    free = rows[40:]
    assert adjusted_rand_score(y[free], found.labels_[free]) > 0.7


@pytest.mark.parametrize("kind", [ConstrainedSpectralClustering, SpectralLearning])
def test_links_that_cannot_hold_are_refused_as_by_cop_k_means(kind):
    X, _ = wine()
    links = Constraints(
        len(X), must_link=[(3, 4)], cannot_link=[(0, 1), (1, 2), (0, 2), (0, 3), (1, 4), (2, 3)]
    )
    with pytest.raises(InfeasibleConstraints) as theirs:
        COPKMeans(3).fit(X, constraints=links)
    with pytest.raises(InfeasibleConstraints) as ours:
        kind(3).fit(X, constraints=links)
    assert str(ours.value) == str(theirs.value)
    assert ours.value.witness == theirs.value.witness
    fitted(kind(3, keep_hard_links=False), X, links)
    fitted(kind(4), X, links)


def test_an_update_that_is_refused_changes_nothing():
    X, _ = wine()
    model = ConstrainedSpectralClustering(2, random_state=0).fit(X)
    labels, embedding = model.labels_.copy(), model.embedding_.copy()
    with pytest.raises(InfeasibleConstraints):
        model.update(Constraints(len(X), cannot_link=[(0, 1), (1, 2), (0, 2)]))
    np.testing.assert_array_equal(model.labels_, labels)
    np.testing.assert_array_equal(model.embedding_, embedding)


def test_true_hard_links_move_rows_without_links():
    X, y = make_rings(200, random_state=0)
    rows = np.random.default_rng(0).permutation(len(y))
    model = ConstrainedSpectralClustering(2, random_state=0).fit(X, constraints=all_pairs(y, rows[:40]))
    free = rows[40:]
    assert not model.violations_.any()
    assert adjusted_rand_score(y[free], model.labels_[free]) > 0.5
    assert adjusted_rand_score(model.labels_[free], model.predict(X[free])) == 1.0


def test_other_values_are_refused():
    with pytest.raises(ValueError, match="keep_hard_links must be True or False, got 'yes'"):
        ConstrainedSpectralClustering(2, keep_hard_links="yes").fit(wine()[0])


@pytest.mark.parametrize(("known", "n_made"), [(False, 3), (True, 2)])
def test_few_starts_are_made_where_no_labels_can_be_proven(known, n_made, monkeypatch):
    starts = []
    descent = rounding.run_hard_descent

    def unproven(distortion, table, links, start, **settings):
        starts.append(start)
        run = descent(distortion, table, links, start, **settings)
        answers = [answer._replace(optimal=len(starts) > 1) for answer in run.assignments]
        return run._replace(assignments=answers)

    monkeypatch.setattr(rounding, "run_hard_descent", unproven)
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(60, 5))
    constraints = Constraints(60, must_link=[(0, 1)], cannot_link=[(0, 20), (20, 40)])
    centres = rng.normal(size=(3, 5)) if known else None
    found = labels_keeping(rows, hard_links(constraints, 3), n_init=10, rng=rng, other=centres)
    assert constraints.satisfaction(found) == 1.0
    assert len(starts) == n_made
    assert (starts[-1] is centres) == known
    starts.clear()
    labels_keeping(rows, hard_links(constraints, 3), n_init=1, rng=rng, other=centres)
    assert len(starts) == 1
