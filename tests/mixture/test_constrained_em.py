"""Constrained EM: chunklets, sampling assumptions, cannot-links exactly and by spanning tree."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning

from linkwise import PPC, ConstrainedEM, Constraints
from linkwise.exceptions import ApproximationWarning
from tests.mixture import oracle
from tests.mixture.test_ppc import blobs, start_of
from tests.repeats import examples, for_seeds


def fit(model, X, links):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, constraints=links)


def test_assumption_2_is_hard_ppc():
    rng = np.random.default_rng(0)
    X, y = blobs(rng, 50, 2, 3)
    links = Constraints.from_teachers(y, 4, 8, random_state=0)
    start = start_of(rng, 2, 3, "full")
    ours = fit(ConstrainedEM(3, sampling="points", **start), X, links)
    ppc = fit(PPC(3, **start), X, links)
    np.testing.assert_array_equal(ours.means_, ppc.means_)
    np.testing.assert_array_equal(ours.responsibilities_, ppc.responsibilities_)


@for_seeds(12)
@pytest.mark.parametrize("sampling", ["chunklets", "points"])
def test_chunklets_against_their_closed_form(seed, sampling):
    """R_T = softmax_k(c_T log pi_k + sum_{i in T} log N(x_i; k)), c_T = 1 or |T|; pi closed if 1."""
    rng = np.random.default_rng(seed)
    X, _ = blobs(rng, 12, 2, 3)
    links = Constraints(12, must_link=[(0, 1), (1, 2), (4, 5), (7, 8)])
    start = start_of(rng, 2, 3, "full")
    model = fit(
        ConstrainedEM(3, sampling=sampling, max_iter=1, reg_covar=0.1, linked_weight=1, **start), X, links
    )
    chunklets = links.chunklets()

    def closed(weights, means, covariances):
        density = oracle.log_density(X, means, covariances)
        power = np.ones(chunklets.max() + 1) if sampling == "chunklets" else np.bincount(chunklets)
        scores = np.array([density[chunklets == t].sum(axis=0) for t in range(len(power))])
        return softmax(scores + power[:, None] * np.log(weights), axis=1)

    covariances = np.linalg.inv(start["precisions_init"])
    resp = closed(start["weights_init"], start["means_init"], covariances)
    rows = resp[chunklets]
    # scikit-learn's 10 eps in the counts show in the mean of a component that holds next to nothing.
    held = rows.sum(axis=0) > 1e-6
    expected = (rows.T @ X) / rows.sum(axis=0)[:, None]
    np.testing.assert_allclose(model.means_[held], expected[held], atol=1e-8)
    if sampling == "chunklets":
        np.testing.assert_allclose(model.weights_, resp.mean(axis=0), atol=1e-8)
    final = closed(model.weights_, model.means_, model.covariances_)
    np.testing.assert_allclose(model.responsibilities_, final[chunklets], atol=1e-8)


def test_covariance_keeps_the_scatter_within_chunklets():
    """S5: a chunklet is one weighted point for the means only."""
    X = np.array([[-1.0], [1.0], [0.0], [10.0], [11.0], [9.0]])
    links = Constraints(6, must_link=[(0, 1), (1, 2), (3, 4), (4, 5)])
    model = fit(ConstrainedEM(2, reg_covar=0.0, shrinkage=0, random_state=0), X, links)
    np.testing.assert_allclose(np.sort(model.covariances_.ravel()), [2 / 3, 2 / 3], atol=1e-6)


def test_assumption_1_on_data_of_assumption_2_biases_the_weights():
    """Chunklets chosen among i.i.d. points: whole-chunklet sampling overrates what chunklets contain."""
    rng = np.random.default_rng(0)
    y = (rng.random(20_000) < 0.2).astype(int)
    X = (rng.normal(size=20_000) + 3.0 * y)[:, np.newaxis]
    pairs = rng.permutation(20_000).reshape(-1, 2)
    kept = pairs[y[pairs[:, 0]] == y[pairs[:, 1]]]
    rows = np.unique(kept)
    links = Constraints(len(rows), must_link=np.searchsorted(rows, kept))
    start = {"weights_init": [0.5, 0.5], "means_init": [[0.0], [3.0]], "precisions_init": np.ones((2, 1, 1))}
    points = fit(ConstrainedEM(2, sampling="points", tol=1e-8, max_iter=300, **start), X[rows], links)
    chunklets = fit(ConstrainedEM(2, sampling="chunklets", tol=1e-8, max_iter=300, **start), X[rows], links)
    assert points.weights_[0] == pytest.approx(0.8, abs=0.02)
    assert chunklets.weights_[0] > 0.9


@pytest.mark.parametrize("sampling", ["chunklets", "points"])
@for_seeds(examples(6, 3))
def test_likelihood_never_falls_with_cannot_links(seed, sampling):
    rng = np.random.default_rng(seed)
    X, y = blobs(rng, 60, 2, 3)
    links = Constraints.from_teachers(y, 3, 6, random_state=seed)
    model = fit(
        ConstrainedEM(
            3,
            sampling=sampling,
            inference="exact",
            reg_covar=0.0,
            tol=0.0,
            n_init=1,
            max_iter=15,
            random_state=seed,
        ),
        X,
        links,
    )
    assert model.n_decreases_ == 0
    assert model.inference_["exact"]
    assert links.satisfaction(model.labels_) == 1.0


def test_spanning_tree_warns_of_dropped_links():
    X, y = load_iris(return_X_y=True)
    links = Constraints.from_teachers(y, 3, 10, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        with pytest.warns(ApproximationWarning):
            model = ConstrainedEM(3, inference="tree", random_state=0).fit(X, constraints=links)
    assert not model.inference_["exact"]


def test_soft_must_links_form_no_chunklets():
    X, _ = blobs(np.random.default_rng(0), 20, 2, 2)
    links = Constraints(20, must_link=[(3, 8)], weight=1.0)
    with pytest.raises(ValueError, match=r"the must-link \(3, 8\) is soft.*use sampling=\"points\", or PPC"):
        ConstrainedEM(2).fit(X, constraints=links)
    fit(ConstrainedEM(2, sampling="points"), X, links)
    fit(ConstrainedEM(2), X, Constraints(20, cannot_link=[(3, 8)], weight=1.0))
    with pytest.raises(ValueError, match="sampling must be chunklets or points"):
        ConstrainedEM(2, sampling="both").fit(X)
