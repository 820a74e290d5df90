"""What EM starts from and which run it keeps: warm starts that do not fit, engines without an objective."""

from __future__ import annotations

import warnings
from functools import cache
from itertools import permutations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from linkwise import PPC, ConstrainedEM, Constraints
from linkwise.inference.exact.exact import exact_marginals
from linkwise.metrics import clustering_accuracy
from linkwise.mixture import linked as base
from tests.mixture.test_ppc import blobs
from tests.repeats import LONG

TYPES = ("full", "tied", "diag", "spherical")
#: Those of "tied" and "diag" have the same shape where there are as many features as components.
FEW_CHANGES = [("tied", "diag"), ("diag", "tied"), ("full", "spherical"), ("spherical", "full")]
TYPE_CHANGES = list(permutations(TYPES, 2)) if LONG else FEW_CHANGES


def quiet_fit(model, X, links=None):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, constraints=links)


class TestLearnNoise:
    X, y = blobs(np.random.default_rng(0), 60, 2, 2)
    links = Constraints.sample(y, 15, certainty=0.8, random_state=0)

    @classmethod
    @cache
    def fit_with(cls, learn_noise):
        return quiet_fit(
            PPC(2, learn_noise=learn_noise, n_init=1, max_iter=4, random_state=0), cls.X, cls.links
        )

    @pytest.mark.parametrize(
        ("given", "meant"),
        [
            (True, True), (False, False), (np.True_, True), (np.False_, False),
            (np.array(False), False), (np.array(True), True), (0, False), (1, True), (np.int64(0), False),
            (np.str_("kind"), "kind"),
        ],
    )  # fmt: skip
    def test_booleans_of_any_make(self, given, meant):
        model = quiet_fit(PPC(2, learn_noise=given, n_init=1, max_iter=4, random_state=0), self.X, self.links)
        same = self.fit_with(meant)
        assert hasattr(model, "noise_") == (meant is not False)
        np.testing.assert_array_equal(model.means_, same.means_)
        assert model.lower_bound_ == same.lower_bound_
        if meant is not False:
            np.testing.assert_array_equal(model.noise_, same.noise_)

    @pytest.mark.parametrize("given", ["garbage", "True", 2, -1, 0.5, 0.0, None, np.float64(1.0)])
    def test_anything_else_is_refused(self, given):
        with pytest.raises(ValueError, match=r'learn_noise is .*: pass False, True, "kind" or "source"'):
            PPC(2, learn_noise=given).fit(self.X, constraints=self.links)


class TestWarmStart:
    X, y = blobs(np.random.default_rng(0), 90, 3, 3)
    links = Constraints.sample(y, 20, random_state=0)

    @pytest.mark.parametrize(
        ("model_class", "before", "after", "reason"),
        [
            (PPC, {}, {"n_components": 4}, "3 components in 3 clusters, but 4 in 4"),
            (PPC, {}, {"n_components": 2}, "3 components in 3 clusters, but 2 in 2"),
            (ConstrainedEM, {}, {"n_components": 4}, "3 components in 3 clusters, but 4 in 4"),
            *(
                (PPC, {"covariance_type": before}, {"covariance_type": after}, f"not of the type '{after}'")
                for before, after in TYPE_CHANGES
            ),
            (
                PPC,
                {"components_per_cluster": 2},
                {"components_per_cluster": 1},
                "6 components in 3 clusters, but 3",
            ),
            (
                PPC,
                {"n_components": 2, "components_per_cluster": 2},
                {"n_components": 4, "components_per_cluster": 1},
                "4 components in 2 clusters, but 4 in 4",
            ),
        ],
    )
    def test_a_fit_of_another_shape_is_no_start(self, model_class, before, after, reason):
        """Three features and three components: shapes of "tied" and "diag" are the same."""
        # Cannot-links among three classes leave no room for two.
        links = None if 2 in (before.get("n_components"), after.get("n_components")) else self.links
        options = {
            "n_components": 3, "n_init": 1, "max_iter": 3, "random_state": 0, "reg_covar": 1e-3, **before
        }  # fmt: skip
        model = quiet_fit(model_class(warm_start=True, **options), self.X, links)
        model.set_params(**after)
        with pytest.warns(UserWarning, match=f"last fit is no start for this one: .*{reason}"):
            quiet_fit(model, self.X, links)
        fresh = quiet_fit(model_class(**{**options, **after}), self.X, links)
        np.testing.assert_array_equal(model.means_, fresh.means_)
        np.testing.assert_array_equal(model.labels_, fresh.labels_)

    def test_other_features(self):
        model = quiet_fit(PPC(3, warm_start=True, random_state=0), self.X)
        with pytest.warns(UserWarning, match="it has 3 features and the data 2. EM starts afresh"):
            quiet_fit(model, self.X[:, :2])
        assert model.means_.shape == (3, 2)

    @pytest.mark.parametrize("covariance_type", ["full", "tied", "diag", "spherical"])
    @pytest.mark.parametrize("n_components", [1, 2, 3])
    def test_the_same_shape_is_one(self, covariance_type, n_components):
        model = PPC(n_components, covariance_type=covariance_type, warm_start=True, random_state=0)
        quiet_fit(model.set_params(max_iter=2), self.X)
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)
            warnings.simplefilter("ignore", ConvergenceWarning)
            first = model.lower_bound_
            assert model.fit(self.X).lower_bounds_[0] >= first - 1e-12

    def test_a_weight_of_zero_warns_of_nothing(self):
        start = {"weights_init": [1.0, 0.0], "mixing": "fixed"}
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            model = quiet_fit(PPC(2, warm_start=True, random_state=0, reg_covar=0.1, **start), self.X)
            quiet_fit(model, self.X)


def without_partition_function(problem, rng, **options):
    """An engine of the user that knows no partition function."""
    return exact_marginals(problem, rng, **options)._replace(log_partition=float("nan"))


class TestEnginesWithoutObjective:
    X, y = blobs(np.random.default_rng(1), 90, 2, 3, spread=6.0)
    links = Constraints.sample(y, 20, certainty=0.9, random_state=0)

    def with_starts(self, monkeypatch, *assignments):
        """Fits start from these assignments in turn."""
        remaining = list(assignments)
        monkeypatch.setattr(base, "restart_labels", lambda *_, **__: remaining.pop(0))

    @pytest.mark.parametrize(
        ("model_class", "inference", "good"),
        [
            (PPC, "gibbs", 0), (ConstrainedEM, "gibbs", 2),
            (PPC, without_partition_function, 2), (ConstrainedEM, without_partition_function, 0),
            *([
                (PPC, "gibbs", 2), (ConstrainedEM, "gibbs", 0),
                (PPC, without_partition_function, 0), (ConstrainedEM, without_partition_function, 2),
            ] if LONG else []),
        ],
    )  # fmt: skip
    def test_a_bad_start_is_not_kept(self, monkeypatch, model_class, inference, good):
        rng = np.random.default_rng(0)
        starts = [rng.permutation(self.y), rng.permutation(self.y), rng.permutation(self.y)]
        starts[good] = self.y
        self.with_starts(monkeypatch, *starts)
        options = {"sampling": "points"} if model_class is ConstrainedEM else {}
        if inference == "gibbs":
            options["inference_options"] = {"max_sweeps": 200, "n_chains": 2}
        model = model_class(3, inference=inference, n_init=3, max_iter=2, random_state=0, **options)
        quiet_fit(model, self.X, self.links)
        assert clustering_accuracy(self.y, model.labels_) > 0.95
        assert np.isfinite(model.lower_bound_)
        assert model.inference_["details"]["objective"] == "auto"

    @pytest.mark.parametrize("options", [
        {}, {"mixing": "ignore"}, {"mixing": "disjoint"}, {"mixing": "fixed"}, {"learn_noise": True},
    ])  # fmt: skip
    def test_the_objective_is_the_one_of_exact_inference(self, options):
        """These links are disjoint, so that auto is exact: an iteration more tells the same number."""
        model = PPC(3, inference=without_partition_function, random_state=0, max_iter=3, **options)
        quiet_fit(model, self.X, self.links)
        exact = PPC(3, inference="exact", random_state=0, max_iter=4, tol=0.0, **options)
        quiet_fit(exact, self.X, self.links)
        assert np.isnan(model.lower_bounds_).all()
        assert model.lower_bound_ == pytest.approx(exact.lower_bounds_[model.n_iter_], abs=1e-9)
        assert exact.inference_["details"]["objective"] == "exact"


@pytest.mark.parametrize("inference", ["mean_field", "gibbs"])
def test_the_last_step_starts_from_the_data(monkeypatch, inference):
    """Within EM a step starts where the last one ended; labels_ do not depend on what EM passed through."""
    from linkwise.mixture.links import rows

    starts, infer = [], rows.marginals

    def recorded(*arguments, **options):
        starts.append(options["initial"])
        return infer(*arguments, **options)

    monkeypatch.setattr(rows, "marginals", recorded)
    X = np.random.default_rng(0).normal(size=(36, 2))
    links = Constraints.from_grid((6, 6), certainty=0.8)
    options = {"max_sweeps": 40} if inference == "gibbs" else {}
    model = PPC(
        2, inference=inference, inference_options=options, mixing="fixed", max_iter=3, tol=0.0, random_state=0
    )
    quiet_fit(model, X, links)
    assert len(starts) >= 4
    assert starts[0] is None
    assert all(start is not None for start in starts[1:3])
    assert starts[-1] is None
