"""Data far from zero, huge, tiny or constant: no warning and no rise, or a line that says why not."""

from __future__ import annotations

import re
import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from linkwise import (
    ConstrainedSpectralClustering,
    Constraints,
    COPKMeans,
    HMRFKMeans,
    MPCKMeans,
    PCKMeans,
    SpectralLearning,
)
from linkwise._row_tables import exact_origin, from_origin
from linkwise.kmeans.distortions.metric_steps import log_det, metric_factor
from linkwise.spectral.kernels import gaussian_kernel, nearest_neighbours
from linkwise.spectral.learning import overwritten_affinity
from tests.kmeans.kmeans_cases import COMBINATIONS, random_data, random_links
from tests.repeats import examples

OFFSETS = [0.0, 1e3, 1e6, 1e9, -1e9, 1e15]
SCALES = [1e-300, 1e-145, 1e-30, 1e-6, 1.0, 1e6, 1e30, 1e135, 1e300]
CONSTANT = ["nothing", "a column", "nearly a column", "everything", "beside a tiny column"]
#: What a refusal names.
NAMED = r"column \d of X|column \d differs most|column \d, which differs most"


@st.composite
def tables(draw, kind="euclidean"):
    """Data of some kind, moved, scaled and made constant in part; and the generator that made them."""
    offset, scale = draw(st.sampled_from(OFFSETS)), draw(st.sampled_from(SCALES))
    constant, seed = draw(st.sampled_from(CONSTANT)), draw(st.integers(0, 2**31))
    rng = np.random.default_rng(seed)
    n = int(rng.integers(12, 40))
    X = random_data(rng, kind, n, 3, 3)[0] * scale + offset
    if constant == "a column":
        X[:, 1] = X[0, 1]
    if constant == "nearly a column":
        X[:, 1] = X[0, 1] * (1.0 + np.arange(n) % 2 * 1e-15)
    if constant == "everything":
        X[:] = X[0]
    if constant == "beside a tiny column":
        X[:, 1] *= 1e-12
    if kind in ("kl", "i_divergence"):
        X = np.abs(X)
    if 1e-30 <= scale <= 1e30 and draw(st.booleans()):
        X = X.astype(np.float32)
    return X, rng


def fitted(model, X, links):
    """The model, used as well, or None if it refused the data by name; a RuntimeWarning is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", RuntimeWarning)
        refusal = None
        try:
            model.fit(X, constraints=links)
            model.predict(X)
            if isinstance(model, (HMRFKMeans, COPKMeans)):
                assert np.isfinite(model.transform(X)).all()
                assert np.isfinite(model.score(X))
        except ValueError as error:
            refusal = str(error)
    if refusal is None:
        return model
    assert re.search(NAMED, refusal), refusal
    assert "divide X by" in refusal or "'euclidean'" in refusal
    return None


def assert_sound(model):
    history = model.objectives_
    assert np.isfinite(history).all()
    assert np.isfinite(model.cluster_centers_).all()
    assert model.metric_ is None or np.isfinite(model.metric_).all()
    assert np.diff(history).max(initial=0.0) <= 1e-9 * np.abs(history).max()


class TestKMeans:
    @pytest.mark.parametrize(("name", "kind"), COMBINATIONS)
    def test_objective_never_rises(self, name, kind):
        n_fitted = [0, 0]

        @settings(max_examples=16)
        @given(tables(name), st.sampled_from(["distance", "constant"]), st.sampled_from(["box", "diameter"]))
        def check(table, penalty, penalty_bound):
            X, rng = table
            model = HMRFKMeans(
                3, distortion=name, metric=kind, penalty=penalty, penalty_bound=penalty_bound,
                n_init=2, tol=0.0, max_iter=15, random_state=int(rng.integers(1000)),
            )  # fmt: skip
            model = fitted(model, X, random_links(rng, len(X), len(X) // 2))
            n_fitted[model is None] += 1
            if model is not None:
                assert_sound(model)

        check()
        assert n_fitted[0] > 5

    @pytest.mark.parametrize(
        "model", [COPKMeans(3, n_init=2, tol=0.0), PCKMeans(3, n_init=2), MPCKMeans(3, n_init=2)], ids=repr
    )
    def test_settings_and_hard_links(self, model):
        @settings(max_examples=examples(25, 12))
        @given(tables())
        def check(table):
            X, rng = table
            links = Constraints.sample(np.arange(len(X)) % 3, 6, random_state=0)
            model.set_params(random_state=int(rng.integers(1000)))
            if fitted(model, X, links) is not None:
                assert_sound(model)
                assert not links.violations(model.labels_).any()

        check()

    @pytest.mark.parametrize("model", [COPKMeans(3), PCKMeans(3), MPCKMeans(3)], ids=repr)
    @pytest.mark.parametrize("shift", [2.0**20, -(2.0**33), 2.0**46])
    def test_a_shift_shifts_the_centres_and_nothing_else(self, model, shift):
        check_shift(model, shift)

    @pytest.mark.parametrize("kind", [None, "diag", "full", "per_cluster"])
    @pytest.mark.parametrize("penalty", ["distance", "constant"])
    @pytest.mark.parametrize("penalty_bound", ["box", "diameter"])
    def test_a_shift_with_every_metric(self, kind, penalty, penalty_bound):
        check_shift(
            HMRFKMeans(3, metric=kind, penalty=penalty, penalty_bound=penalty_bound, n_init=2), 2.0**43
        )

    @pytest.mark.parametrize(("name", "kind"), COMBINATIONS)
    @pytest.mark.parametrize("unit", [2.0**-400, 2.0**400])
    def test_units_do_not_matter(self, name, kind, unit):
        for seed in range(2):
            rng = np.random.default_rng(seed)
            X, _ = random_data(rng, name, 40, 3, 3)
            links = random_links(rng, 40, 20)
            model = HMRFKMeans(3, distortion=name, metric=kind, n_init=1, random_state=seed)
            labels = fitted(model, X, links).labels_
            history = model.objectives_
            scaled = fitted(model, X * unit, links)
            np.testing.assert_array_equal(scaled.labels_, labels)
            factor = {"euclidean": unit**2, "i_divergence": unit}.get(name, 1.0)
            if kind is None or name != "euclidean":
                np.testing.assert_allclose(scaled.objectives_, factor * history, rtol=1e-9)

    @pytest.mark.parametrize("distortion", ["cosine", "kl", "i_divergence"])
    def test_sparse_constant_rows_make_one_cluster(self, distortion):
        X = csr_matrix(np.tile([0.3, 0.0, 0.1, 7.0], (20, 1)))
        model = fitted(HMRFKMeans(2, distortion=distortion, random_state=0), X, None)
        assert_sound(model)
        assert model.objective_ <= 1e-12

    def test_given_centres_are_moved_as_well(self):
        X = np.array([[0.0], [1.0], [8.0], [9.0]]) + 2.0**40
        for model in (COPKMeans(2), PCKMeans(2)):
            model.set_params(init=[[2.0**40], [2.0**40 + 9]]).fit(X)
            assert model.labels_.tolist() == [0, 0, 1, 1]
            assert (model.cluster_centers_ - 2.0**40).ravel().tolist() == [0.5, 8.5]

    @pytest.mark.parametrize("model", [COPKMeans(2), PCKMeans(2), MPCKMeans(2), HMRFKMeans(2)], ids=repr)
    def test_refusals_name_the_column_and_the_fix(self, model):
        X = np.random.default_rng(0).normal(size=(20, 3))
        with pytest.raises(
            ValueError, match=r"column 2 of X holds .*e\+200: .* overflow; divide X by \de\+200"
        ):
            model.fit(X * [1.0, 1.0, 1e200])
        with pytest.raises(
            ValueError, match=r"column 1 of X varies most, by .*e-198: .* vanish; divide X by \de-198"
        ):
            model.fit(X * [1e-203, 1e-198, 1e-210])
        model.fit(X)
        with pytest.raises(ValueError, match=r"column 0 of X .* overflow"):
            model.predict(X * [1e200, 1.0, 1.0])

    def test_refusals_of_other_distortions(self):
        counts = np.random.default_rng(0).poisson(5.0, size=(20, 3)) + 1.0
        for name in ("kl", "i_divergence"):
            for factor in (1e290, 1e-290):
                with pytest.raises(ValueError, match=r"column . of X holds .* divide X by a constant"):
                    HMRFKMeans(2, distortion=name).fit(counts * factor)
            with pytest.raises(ValueError, match=r"column ., which differs most, by a share of"):
                HMRFKMeans(2, distortion=name).fit(counts + [1e9, 1e9, 1e9])
        with pytest.raises(ValueError, match="row 3 sums to 6e-300, too little to be normalised"):
            HMRFKMeans(2, distortion="kl").fit(np.where(np.arange(20)[:, None] == 3, 2e-300, counts))
        with pytest.raises(ValueError, match=r"nearly the same way.*; column \d differs most"):
            HMRFKMeans(2, distortion="cosine").fit(counts + 1e9)


def check_shift(model, shift):
    """Rows on a grid can be moved without rounding, so that everything has to be the same to the last bit."""
    rng = np.random.default_rng(3)
    y = rng.integers(3, size=60)
    X = np.round(2.0**6 * (3.0 * rng.normal(size=(3, 4))[y] + rng.normal(size=(60, 4)))) / 2.0**6
    links = Constraints.sample(y, 25, overlap=True, random_state=0)
    model.set_params(random_state=0)
    fitted(model, X, links)
    labels, history, centres = model.labels_, model.objectives_, model.cluster_centers_
    fitted(model, X + shift, links)
    np.testing.assert_array_equal(model.labels_, labels)
    np.testing.assert_allclose(model.objectives_, history, rtol=1e-12)
    np.testing.assert_allclose(model.cluster_centers_ - shift, centres, atol=2 * np.spacing(abs(shift)))


SPECTRAL = [
    *[
        ConstrainedSpectralClustering(3, affinity=affinity, solver=solver, algorithm=algorithm)
        for affinity in ("heat", "rbf")
        for solver in ("dense", "landmark")
        for algorithm in ("A", "B")
    ],
    ConstrainedSpectralClustering(3, solver="basis", algorithm="A", n_basis=10),
    ConstrainedSpectralClustering(3, solver="signed_laplacian", algorithm="A"),
    SpectralLearning(3),
    SpectralLearning(3, affinity="rbf"),
]


def short_name(model):
    """Solver, algorithm and affinity, on one line."""
    parameters = model.get_params()
    return " ".join(str(parameters.get(name, "")) for name in ("solver", "algorithm", "affinity"))


class TestSpectral:
    @pytest.mark.parametrize("model", SPECTRAL, ids=short_name)
    def test_no_warnings_and_finite_rows(self, model):
        model.set_params(random_state=0, n_init=1)

        @settings(max_examples=8)
        @given(tables())
        def check(table):
            X, _ = table
            links = Constraints.sample(np.arange(len(X)) % 3, 6, random_state=0)
            if fitted(model, X, links) is not None:
                assert np.isfinite(model.embedding_).all()
                assert model.labels_.min() >= 0

        check()

    @pytest.mark.parametrize("model", SPECTRAL, ids=short_name)
    def test_a_shift_changes_nothing(self, model):
        rng = np.random.default_rng(3)
        y = rng.integers(3, size=50)
        # More than 15 features: scikit-learn then multiplies distances out instead of searching a tree.
        X = np.round(2.0**6 * (2.0 * rng.normal(size=(3, 18))[y] + rng.normal(size=(50, 18)))) / 2.0**6
        links = Constraints.sample(y, 12, random_state=0)
        model.set_params(random_state=0, n_init=1)
        labels = fitted(model, X, links).labels_
        predicted = model.predict(X[::3] + 0.25)
        fitted(model, X + 2.0**40, links)
        np.testing.assert_array_equal(model.labels_, labels)
        np.testing.assert_array_equal(model.predict(X[::3] + 2.0**40 + 0.25), predicted)

    def test_kernel_and_neighbours_far_from_zero(self):
        X = np.round(64 * np.random.default_rng(0).normal(size=(30, 20))) / 64
        np.testing.assert_allclose(
            gaussian_kernel(X + 2.0**40, X[:7] + 2.0**40, 2.0), gaussian_kernel(X, X[:7], 2.0), rtol=1e-9
        )
        near, far = (nearest_neighbours(table).kneighbors(n_neighbors=4) for table in (X, X + 2.0**40))
        np.testing.assert_array_equal(far[1], near[1])
        np.testing.assert_allclose(far[0], near[0], rtol=1e-9)

    def test_units_of_a_kernel(self):
        rng = np.random.default_rng(0)
        y = np.repeat([0, 1, 2], 15)
        X = 3.0 * rng.normal(size=(3, 3))[y] + rng.normal(size=(45, 3))
        K = gaussian_kernel(X, X, 1.5)
        links = Constraints.sample(y, 15, random_state=0)
        for unit in (2.0**-900, 2.0**900):
            np.testing.assert_array_equal(
                overwritten_affinity(unit * K, links.pairs, links.weights),
                unit * overwritten_affinity(K, links.pairs, links.weights),
            )
            for model in (SpectralLearning(3), ConstrainedSpectralClustering(3)):
                model.set_params(affinity="precomputed", random_state=0)
                labels = fitted(model, K, links).labels_
                np.testing.assert_array_equal(fitted(model, unit * K, links).labels_, labels)


class TestParts:
    @settings(max_examples=examples(60, 15))
    @given(
        st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=6),
        st.sampled_from([0.0, 1.0, 777.7, 1e9, -3e14, 1e120]),
        st.sampled_from([1e-9, 1.0, 1e5, 1e100]),
    )
    @example([0.0, 954.0], 777.7, 1e-9)  # 2.2 times the range
    def test_differences_from_the_origin_are_exact(self, values, offset, scale):
        X = np.array(values)[:, np.newaxis] * scale + offset
        origin = exact_origin(X)
        for measured, value in zip(from_origin(X, origin)[:, 0], X[:, 0], strict=True):
            assert Fraction(measured) == Fraction(value) - Fraction(origin[0])
        spread = float(np.ptp(X))
        # Half the range to the middle, and from there less than a step, which is less than twice the range.
        assert np.abs(from_origin(X, origin)).max() < 2.5 * spread or spread == 0.0

    def test_ordinary_data_stay_where_they_are(self):
        X = np.random.default_rng(0).normal(size=(100, 4)) + 0.5
        assert not exact_origin(X).any()
        assert from_origin(X, exact_origin(X)) is X

    def test_factor_and_determinant_of_features_in_all_units(self):
        rng = np.random.default_rng(0)
        for _ in range(20):
            root = rng.normal(size=(4, 4))
            plain = root @ root.T + np.eye(4)
            unit = 2.0 ** rng.integers(-60, 60, size=4)
            metric = plain * np.outer(unit, unit)
            factor = metric_factor(metric)
            np.testing.assert_allclose((factor @ factor.T) / np.outer(unit, unit), plain, rtol=1e-9)
            expected = np.linalg.slogdet(plain)[1] + 2.0 * np.log(unit).sum()
            assert log_det(metric, diagonal=False) == pytest.approx(expected, rel=1e-12)
