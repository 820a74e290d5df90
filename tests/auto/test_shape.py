"""The number of clusters by links and by the shape, and Gaussian clusters told from bent ones by the rows."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from sklearn.datasets import make_blobs
from sklearn.metrics import silhouette_samples
from sklearn.model_selection import KFold

from linkwise import PPC, Constraints, LinkedClustering
from linkwise.auto.candidates import Candidate
from linkwise.auto.search import Trial
from linkwise.auto.shape import gaussian_nats, n_clusters_by_links, n_clusters_by_shape, paired_t, silhouettes
from linkwise.datasets import make_rings, make_two_moons
from linkwise.model_selection.held_out import Questions
from tests.repeats import LONG, for_seeds

FLAT = dict.fromkeys(range(1, 11), 0.0)


def trials(kept_of):
    candidate = Candidate("one", True, lambda k, seed: None)
    return [
        Trial(candidate, k, (), np.array(kept, dtype=float), 0.0, 0.0, "" if kept else "failed")
        for k, kept in kept_of
    ]


def questions(n_must, n_cannot):
    n = n_must + n_cannot
    return Questions(np.zeros((n, 2), dtype=int), np.arange(n) < n_must, np.ones(n))


def blobs(k, n=30, seed=0, spread=0.25):
    """Rows around the corners of a polygon."""
    angle = 2.0 * np.pi * np.arange(k) / k
    y = np.arange(n * k) % k
    centres = np.column_stack([np.cos(angle), np.sin(angle)]) * k
    return centres[y] + spread * np.random.default_rng(seed).standard_normal((n * k, 2)), y


class TestByLinks:
    def test_the_one_that_keeps_most(self):
        kept = [(2, [1, 1, 0, 0]), (3, [1, 1, 1, 1]), (4, [0, 0, 1, 1])]
        assert n_clusters_by_links(trials(kept), questions(2, 2), {2: 1.0, 3: 0.0, 4: 1.0}) == 3

    def test_both_kinds_count_half(self):
        """Plain shares are .9 and .55; with halves .5 and .75."""
        kept = [(2, [1] * 90 + [0] * 10), (5, [1] * 45 + [0] * 45 + [1] * 10)]
        assert n_clusters_by_links(trials(kept), questions(90, 10), {2: 1.0, 5: 0.0}) == 5

    def test_the_shape_decides_where_links_cannot(self):
        """4 breaks one link that 3 keeps, and 3 one, two or three that 4 keeps."""
        for n_broken, chosen in ((1, 3), (2, 3), (3, 4)):
            kept = [(4, [0] + [1] * 19), (3, [1] * (20 - n_broken) + [0] * n_broken), (2, [0] * 20)]
            lost, noise = (n_broken - 1) / 10, np.sqrt(n_broken + 1) / 10
            assert (lost <= max(0.5 * noise, 0.1)) == (chosen == 3)
            assert n_clusters_by_links(trials(kept), questions(10, 10), {2: 0.9, 3: 0.8, 4: 0.1}) == chosen
        assert n_clusters_by_links(trials(kept), questions(10, 10), {2: 0.9, 3: 0.1, 4: 0.8}) == 4

    def test_a_single_link_decides_nothing(self):
        kept = [(3, [1] * 10 + [0]), (4, [1] * 11)]
        assert n_clusters_by_links(trials(kept), questions(5, 6), {3: 0.8, 4: 0.1}) == 3
        kept = [(3, [1] * 9 + [0, 0]), (4, [1] * 11)]
        assert n_clusters_by_links(trials(kept), questions(5, 6), {3: 0.8, 4: 0.1}) == 4

    def test_of_several_candidates_the_best_counts(self):
        kept = [(2, [1, 0, 1, 0]), (2, [1, 1, 1, 1]), (3, [0, 0, 0, 0]), (3, [1, 0, 0, 1])]
        assert n_clusters_by_links(trials(kept), questions(2, 2), {2: 0.0, 3: 1.0}) == 2

    def test_links_of_one_kind_only(self):
        kept = [(2, [0] * 12), (3, [1] * 12)]
        assert n_clusters_by_links(trials(kept), questions(0, 12), FLAT) == 3

    def test_failures_are_left_out_unless_all_fail(self):
        assert n_clusters_by_links(trials([(2, []), (3, [1, 1])]), questions(1, 1), FLAT) == 3
        with pytest.raises(ValueError, match="no candidate could be fitted: failed; pass other candidates"):
            n_clusters_by_links(trials([(2, []), (3, [])]), questions(1, 1), FLAT)

    @pytest.mark.usefixtures("fewer_candidates")
    def test_six_clear_blobs_and_few_links(self):
        X, y = blobs(6, n=12)
        links = Constraints.sample(y, 15, overlap=True, certainty=0.99, random_state=1)
        model = LinkedClustering(effort="quick", random_state=0).fit(X, constraints=links)
        assert model.n_clusters_ == 6


class TestByShape:
    @pytest.mark.parametrize("k", [2, 3, 5, 7])
    def test_clear_blobs(self, k):
        X, _ = blobs(k)
        assert n_clusters_by_shape(X, range(1, 11), 0) == k

    @for_seeds(4)
    def test_one_gaussian_is_one_cluster(self, seed):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((150, 4)) @ rng.standard_normal((4, 4))
        assert n_clusters_by_shape(X, range(1, 11), 0) == 1

    def test_numbers_that_were_not_offered_are_not_taken(self):
        X, _ = blobs(3)
        assert n_clusters_by_shape(X, [1], 0) == 1
        assert n_clusters_by_shape(X, [4, 5], 0) in (4, 5)
        # One is not among them, though it would be best.
        rows = np.random.default_rng(0).standard_normal((60, 2))
        assert n_clusters_by_shape(rows, [2, 3], 0) in (2, 3)

    def test_silhouettes_are_those_of_the_clusters(self):
        X, y = blobs(4)
        found = silhouettes(X, [4], 0)[4]
        assert found == pytest.approx(silhouette_samples(X, y).mean())

    @pytest.mark.parametrize("n_distinct", [1, 2])
    def test_fewer_distinct_rows_than_clusters(self, n_distinct):
        X = np.repeat(np.arange(n_distinct), 6)[:, None] * np.ones((1, 2))
        found = silhouettes(X, [2, 3], 0)
        assert found[3] == -1.0
        assert found[2] == (1.0 if n_distinct == 2 else -1.0)
        assert n_clusters_by_shape(X, [2, 3], 0) == 2

    def test_as_many_clusters_as_rows(self):
        assert silhouettes(np.arange(3.0)[:, None], [3], 0) == {3: -1.0}


def test_t_is_that_of_a_one_sample_test():
    differences = np.random.default_rng(0).normal(0.3, size=40)
    assert paired_t(differences) == pytest.approx(stats.ttest_1samp(differences, 0.0).statistic)
    assert paired_t(np.full(5, 2.0)) == 0.0


@pytest.mark.parametrize("seed", range(3 if LONG else 1))
def test_gaussians_gain_and_bent_clusters_do_not(seed):
    rng = np.random.default_rng(seed)
    overlapping = np.concatenate([rng.normal(0, 1, (150, 4)), rng.normal(0, 4, (150, 4))])
    apart = make_blobs(300, centers=[[0, 0], [6, 0], [0, 6]], random_state=seed)[0]
    assert gaussian_nats(overlapping, 2, seed) > 1.0
    assert 0.2 < gaussian_nats(apart, 3, seed) <= 2.0
    assert gaussian_nats(apart, 1, seed) == 0.0
    assert gaussian_nats(make_two_moons(150, noise=0.08, random_state=seed)[0], 2, seed) == 0.0
    assert gaussian_nats(make_rings(150, random_state=seed)[0], 2, seed) == 0.0


@pytest.mark.parametrize("n_columns", [11, 122])
def test_many_columns_make_no_gaussians(n_columns):
    """Bent clusters that are turned into many columns: 2 K Gaussians of so many cannot be learned there."""
    rng = np.random.default_rng(0)
    moons = np.pad(make_two_moons(200, noise=0.06, random_state=0)[0], ((0, 0), (0, n_columns - 2)))
    turn = np.linalg.qr(rng.normal(size=(n_columns, n_columns)))[0]
    assert gaussian_nats(moons @ turn + 0.01 * rng.normal(size=moons.shape), 2, 0) == 0.0
    apart = np.zeros((400, n_columns))
    apart[:200, 0] = 6.0
    assert gaussian_nats(apart @ turn + rng.normal(size=apart.shape), 2, 0) > 1.0


def test_does_not_depend_on_the_unit():
    X = make_blobs(200, centers=3, n_features=3, random_state=1)[0]
    nats = gaussian_nats(X, 3, 0)
    assert 0.0 < nats < 2.0
    assert gaussian_nats(X * 1024.0 + 7.0, 3, 0) == pytest.approx(nats, abs=1e-3)


@pytest.mark.parametrize(
    ("rows", "k"),
    [
        (np.zeros((40, 2)), 2),
        (np.arange(4.0)[:, np.newaxis], 1),
        (np.random.default_rng(0).normal(size=(20, 2)), 5),
    ],
    ids=["repeated rows", "fewer rows than folds", "too few rows for 2 K clusters"],
)
def test_too_little_to_tell(rows, k):
    assert gaussian_nats(rows, k, 0) == 0.0


@pytest.mark.parametrize("clear", ["yes", "no", "unclear"])
def test_folds_end_once_it_is_clear(clear, monkeypatch):
    rng, fits = np.random.default_rng(0), []
    fit = PPC.fit

    def counted(self, *args, **options):
        fits.append(self.n_components)
        return fit(self, *args, **options)

    if clear == "yes":
        X, k = np.concatenate([rng.normal(0, 1, (300, 6)), rng.normal(0, 6, (300, 6))]), 2
    elif clear == "no":
        X, k = make_rings(300, random_state=0)[0], 2
    else:
        X, k = make_blobs(200, centers=3, n_features=3, random_state=1)[0], 3
    every = full_gains(X, k, 0)
    monkeypatch.setattr(PPC, "fit", counted)
    nats = gaussian_nats(X, k, 0)
    assert nats == np.clip(0.5 * paired_t(every), 0.0, 2.0)
    assert fits == [k, 2 * k] * (5 if clear == "unclear" else len(fits) // 2)
    assert (len(fits) == 10) == (clear == "unclear")
    assert (nats == 2.0, nats == 0.0) == (clear == "yes", clear == "no")


def full_gains(X, k, seed):
    """How much better K Gaussians foretell all rows than 2 K."""
    scores = np.empty((2, len(X)))
    for kept, left_out in KFold(5, shuffle=True, random_state=seed).split(X):
        for row, n_components in enumerate((k, 2 * k)):
            model = PPC(n_components, random_state=seed).fit(X[kept])
            scores[row, left_out] = model.score_samples(X[left_out])
    return scores[0] - scores[1]
