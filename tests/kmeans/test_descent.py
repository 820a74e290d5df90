"""Empty clusters of HMRF-KMeans: which row founds them, against every other choice."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from linkwise import Constraints
from linkwise.inference import EngineLabels
from linkwise.kmeans.assignment import weighted_links
from linkwise.kmeans.descent import Descent
from linkwise.kmeans.distortions import make_distortion
from linkwise.kmeans.hmrf_kmeans import HMRFKMeans
from tests.kmeans import kmeans_oracle as oracle
from tests.kmeans.kmeans_cases import fit_quietly, random_data

K = 4


def links_with_hard_ones(rng, n, m):
    """Random links, about half of them hard; hard must-links form no paths, so nothing is contradictory."""
    pairs = [tuple(sorted(rng.choice(n, size=2, replace=False).tolist())) for _ in range(m)]
    pairs = sorted(set(pairs))
    must = rng.random(len(pairs)) < 0.5
    hard = rng.random(len(pairs)) < 0.5
    used: set[int] = set()
    for number, pair in enumerate(pairs):
        if must[number] and hard[number]:
            hard[number] = not used & set(pair)
            used |= set(pair)
    weight = np.where(hard, np.inf, rng.uniform(0.2, 2.0, size=len(pairs)))
    order = np.argsort(~must, kind="stable")
    together = [pair for pair, is_must in zip(pairs, must, strict=True) if is_must]
    apart = [pair for pair, is_must in zip(pairs, must, strict=True) if not is_must]
    return Constraints(n, together, apart, weight=weight[order])


def cost_of(labels, unary, links, tables):
    """Number of broken hard links, and everything else."""
    n_broken, total = 0, sum(unary[row, label] for row, label in enumerate(labels))
    for ((i, j), weight), table in zip(links, tables, strict=True):
        if np.isinf(weight):
            n_broken += (labels[i] == labels[j]) != (weight > 0)
        else:
            total += table[labels[i], labels[j]]
    return n_broken, total


def best_founder(X, labels, cluster, centres, metric, kind, links, tables):
    """Labels and centres after the single move into an empty cluster that costs least, or the same ones."""
    unary = oracle.unary_table(X, centres, metric, kind, "euclidean")
    best = (*cost_of(labels, unary, links, tables), labels, centres)
    for row in range(len(X)):
        if np.sum(labels == labels[row]) < 2:
            continue
        moved, trial = labels.copy(), centres.copy()
        moved[row], trial[cluster] = cluster, X[row]
        unary = oracle.unary_table(X, trial, metric, kind, "euclidean")
        n_broken, total = cost_of(moved, unary, links, tables)
        if (n_broken, total) < best[:2]:
            best = (n_broken, total, moved, trial)
    return best


@pytest.mark.parametrize(
    ("kind", "penalty"), product([None, "diag", "per_cluster"], ["constant", "distance"])
)
def test_founders_of_empty_clusters(kind, penalty):
    n_broken_before = n_mended = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(6, 11))
        X, _ = random_data(rng, "euclidean", n, 2, 3)
        links = links_with_hard_ones(rng, n, 2 * n)
        distortion = make_distortion("euclidean", kind, K)
        rows = distortion.rows(X)
        descent = Descent(distortion, rows, weighted_links(links, 1.0, 1.0), penalty, "icm")
        labels = rng.integers(K - int(rng.integers(1, 3)), size=n)  # any labels: some hard links are broken
        centres = X[rng.choice(n, size=K, replace=False)] + 0.1
        metric = distortion.start_metric(rows)
        if metric is not None:
            metric = metric * rng.uniform(0.5, 2.0, size=metric.shape)
        found = distortion.assign(rows, centres, metric, labels, 1)
        coupling = descent._coupling(metric)

        signed = [((int(i), int(j)), float(w)) for (i, j), w in zip(links.pairs, links.weights, strict=True)]
        soft = [(pair, w if np.isfinite(w) else np.sign(w)) for pair, w in signed]
        tables = oracle.link_tables(X, soft, metric, kind, "euclidean", penalty, K)
        expected, expected_centres = labels, centres
        unary = oracle.unary_table(X, centres, metric, kind, "euclidean")
        n_broken_before += (before := cost_of(labels, unary, signed, tables)[0])
        for cluster in range(K):
            if not (labels == cluster).any():
                after, _, expected, expected_centres = best_founder(
                    X, expected, cluster, expected_centres, metric, kind, signed, tables
                )
                n_mended += after < before
        with np.errstate(all="raise"):
            filled, _ = descent._fill_empty(found, centres, metric, coupling)
        np.testing.assert_array_equal(filled.labels, expected)
        np.testing.assert_allclose(centres, expected_centres)
    assert n_broken_before > 25
    assert n_mended > 5


@pytest.mark.filterwarnings("ignore::linkwise.exceptions.FeasibilityWarning")
@pytest.mark.parametrize("kind", [None, "diag", "full", "per_cluster"])
def test_a_broken_hard_link_poisons_nothing(kind):
    """An engine that breaks hard links leaves centres and metric finite."""
    rng = np.random.default_rng(1)
    X, _ = random_data(rng, "euclidean", 30, 3, 3)
    links = Constraints(30, must_link=[(0, 1), (2, 3)], cannot_link=[(4, 5), (6, 7)])

    def careless(problem, rng, **options):
        return EngineLabels(problem.unary.argmax(axis=1), None, False, True, 1)

    model = HMRFKMeans(3, metric=kind, inference=careless, random_state=0)
    with np.errstate(all="raise"):
        fit_quietly(model, X, links)
    assert model.violations_.sum()
    assert np.isfinite(model.cluster_centers_).all()
    assert kind is None or np.isfinite(model.metric_).all()
