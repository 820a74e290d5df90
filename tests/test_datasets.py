"""Generators: shapes, seeds, balance, the geometry they state, and how hard they are for a plain mixture."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
import sklearn.datasets
from scipy import stats
from scipy.ndimage import label as connected_regions
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.mixture import GaussianMixture

from linkwise import datasets
from linkwise.metrics import clustering_accuracy
from tests.repeats import for_seeds

GENERATORS = [getattr(datasets, name) for name in datasets.__all__ if name.startswith("make_")]
POINT_SETS = [
    (datasets.make_four_blobs, {}, (200, 2), [100, 100]),
    (datasets.make_ppc_artificial, {"which": 1}, (400, 2), [200, 200]),
    (datasets.make_ppc_artificial, {"which": 2}, (400, 2), [200, 200]),
    (datasets.make_ppc_artificial, {"which": 3}, (400, 2), [200, 200]),
    (datasets.make_ppc_artificial, {"which": 3, "n_per_class": 7}, (14, 2), [7, 7]),
    (datasets.make_two_moons, {}, (400, 2), [200, 200]),
    (datasets.make_spirals, {}, (400, 2), [200, 200]),
    (datasets.make_rings, {}, (400, 2), [200, 200]),
    (datasets.make_rings, {"radii": (3, 1, 2), "n_per_class": 5}, (15, 2), [5, 5, 5]),
    (datasets.make_eleven_gaussians, {}, (2200, 2), [0, 400, 200, 200, 400, 200, 200, 200, 200, 200]),
]


def mean_is_plausible(X, mean, sd):
    """Whether the mean of the rows is within 5 standard errors of the stated one."""
    return (np.abs(X.mean(axis=0) - mean) < 5 * np.asarray(sd) / np.sqrt(len(X))).all()


@pytest.mark.parametrize(("make", "options", "shape", "counts"), POINT_SETS)
def test_shapes_and_class_sizes(make, options, shape, counts):
    X, y = make(**options, random_state=0)[:2]
    assert X.shape == shape
    assert X.dtype == np.float64
    assert y.dtype == np.int64
    assert np.bincount(y).tolist() == counts


@pytest.mark.parametrize(("make", "options", "shape", "counts"), POINT_SETS)
def test_rows_are_in_random_order(make, options, shape, counts):
    y = make(**options, random_state=0)[1]
    assert (np.diff(y) != 0).sum() > len(y) / 5


@pytest.mark.parametrize("make", GENERATORS)
class TestRandomState:
    def test_a_seed_fixes_everything(self, make):
        for first, second in zip(make(random_state=3), make(random_state=3), strict=True):
            np.testing.assert_array_equal(first, second)

    def test_seeds_differ(self, make):
        assert not np.array_equal(make(random_state=3)[0], make(random_state=4)[0])
        assert not np.array_equal(make()[0], make()[0])

    @pytest.mark.parametrize("source", [np.random.default_rng, np.random.RandomState])
    def test_random_sources_advance_and_repeat(self, make, source):
        one, two = source(0), source(0)
        first = make(random_state=one)[0]
        np.testing.assert_array_equal(first, make(random_state=two)[0])
        assert not np.array_equal(first, make(random_state=one)[0])

    def test_a_bad_source_is_refused(self, make):
        with pytest.raises(ValueError, match="random_state"):
            make(random_state="seed")


@pytest.mark.parametrize("make", GENERATORS)
def test_options_are_keywords_with_defaults(make):
    for name, parameter in list(inspect.signature(make).parameters.items())[1:]:
        assert parameter.kind is parameter.KEYWORD_ONLY, name
        assert parameter.default is not parameter.empty, name


@pytest.mark.parametrize(
    ("make", "options", "message"),
    [
        (datasets.make_four_blobs, {"n_per_blob": 0}, "n_per_blob is 0; pass an integer >= 1"),
        (datasets.make_four_blobs, {"sd": -1.0}, r"sd is -1.0; pass a finite number >= 0"),
        (datasets.make_four_blobs, {"spacing": 0}, "spacing is 0; pass a finite number > 0"),
        (datasets.make_ppc_artificial, {"which": 4}, "which is 4; pass 1, 2 or 3"),
        (datasets.make_ppc_artificial, {"n_per_class": 3}, "n_per_class is 3; pass an integer >= 4"),
        (datasets.make_two_moons, {"n_per_class": 2.5}, "n_per_class is 2.5; pass an integer"),
        (datasets.make_two_moons, {"n_per_class": True}, "n_per_class is True; pass an integer"),
        (datasets.make_two_moons, {"noise": np.nan}, "noise is nan; pass a finite number"),
        (datasets.make_spirals, {"turns": np.inf}, "turns is inf; pass a finite number > 0"),
        (datasets.make_rings, {"radii": (1, 1.0)}, "one radius per class, all different"),
        (datasets.make_rings, {"radii": ()}, "one radius per class"),
        (datasets.make_rings, {"radii": (1, -2)}, "a radius is -2; pass a finite number > 0"),
        (datasets.make_eleven_gaussians, {"n_per_gaussian": -5}, "n_per_gaussian is -5"),
        (datasets.make_waveform, {"n_samples": 0}, "n_samples is 0; pass an integer >= 1"),
        (datasets.make_texture_mosaic, {"grid": (1, 4)}, "grid is 1; pass an integer >= 2"),
        (datasets.make_texture_mosaic, {"grid": (4, 4, 4)}, r"pass \(rows, columns\) of blocks"),
        (datasets.make_texture_mosaic, {"block": 0}, "block is 0; pass an integer >= 1"),
        (datasets.make_noisy_objects, {"noise": -0.1}, "noise is -0.1; pass a finite number >= 0"),
        (datasets.make_occluder, {"noise": np.inf}, "noise is inf; pass a finite number >= 0"),
    ],
)
def test_bad_arguments_name_the_fix(make, options, message):
    with pytest.raises(ValueError, match=message):
        make(**options, random_state=0)


def test_four_blobs_are_on_a_square_with_columns_as_classes():
    X, y = datasets.make_four_blobs(2000, random_state=0)
    centred = X - 1.1 * np.column_stack([2 * y - 1, np.zeros(len(y))])
    assert mean_is_plausible(centred[:, :1], 0.0, 0.8)
    assert stats.kstest(centred[:, 0], stats.norm(0, 0.8).cdf).pvalue > 1e-3
    rows = 0.5 * stats.norm(-1.1, 0.8).cdf(X[:, 1]) + 0.5 * stats.norm(1.1, 0.8).cdf(X[:, 1])
    assert stats.kstest(rows, "uniform").pvalue > 1e-3
    assert abs(np.corrcoef(y, X[:, 1])[0, 1]) < 0.05
    corners = np.unique(np.rint(datasets.make_four_blobs(1, sd=0, spacing=4)[0]), axis=0)
    np.testing.assert_array_equal(corners, [[-2, -2], [-2, 2], [2, -2], [2, 2]])


class TestPPCArtificial:
    @pytest.mark.parametrize(("which", "unaided"), [(1, 0.60), (2, 0.75), (3, 0.50)])
    def test_a_plain_mixture_and_k_means_are_misled(self, which, unaided):
        for seed in range(3):
            X, y = datasets.make_ppc_artificial(which, random_state=seed)
            mixture = GaussianMixture(2, n_init=20, init_params="random_from_data", random_state=seed)
            assert clustering_accuracy(y, mixture.fit_predict(X)) == pytest.approx(unaided, abs=0.02)
            means = KMeans(2, n_init=10, random_state=seed).fit_predict(X)
            assert clustering_accuracy(y, means) == pytest.approx(unaided, abs=0.02)

    @pytest.mark.parametrize(("which", "classwise"), [(1, 1.0), (2, 0.95), (3, 0.98)])
    def test_one_gaussian_per_class_is_enough(self, which, classwise):
        trained, fresh = [], []
        for seed in range(10):
            X, y = datasets.make_ppc_artificial(which, random_state=seed)
            new_X, new_y = datasets.make_ppc_artificial(which, random_state=100 + seed)
            model = QuadraticDiscriminantAnalysis().fit(X, y)
            trained.append(model.score(X, y))
            fresh.append(model.score(new_X, new_y))
        assert np.mean(trained) == pytest.approx(classwise, abs=0.01)
        assert np.mean(fresh) == pytest.approx(classwise, abs=0.015)

    @pytest.mark.parametrize("which", [1, 2, 3])
    def test_some_class_is_not_gaussian(self, which):
        X, y = datasets.make_ppc_artificial(which, random_state=0)
        gains = [
            GaussianMixture(1).fit(X[y == label]).bic(X[y == label])
            - GaussianMixture(2, n_init=5, random_state=0).fit(X[y == label]).bic(X[y == label])
            for label in (0, 1)
        ]
        assert max(gains) > 50


class TestCurves:
    def test_moons_lie_on_their_half_circles(self):
        X, y = datasets.make_two_moons(noise=0.0, random_state=0)
        upper, lower = X[y == 0], X[y == 1]
        np.testing.assert_allclose(np.hypot(upper[:, 0], upper[:, 1]), 1.0)
        np.testing.assert_allclose(np.hypot(lower[:, 0] - 1.0, lower[:, 1] - 0.5), 1.0)
        assert (upper[:, 1] >= 0).all()
        assert (lower[:, 1] <= 0.5).all()

    def test_spirals_are_wound_one_unit_apart(self):
        X, y = datasets.make_spirals(noise=0.0, turns=1.5, random_state=0)
        radius = np.hypot(X[:, 0], X[:, 1])
        assert radius.min() >= 0.5
        assert radius.max() <= 3.5
        angle = np.pi * (radius + y)
        np.testing.assert_allclose(X, np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]))
        # Evenly along the curve: equal shares on both sides of the radius that halves the squares.
        assert np.mean(radius**2 < (0.25 + 3.5**2) / 2) == pytest.approx(0.5, abs=0.1)

    def test_rings_have_their_radii(self):
        X, y = datasets.make_rings(500, radii=(4.0, 1.0, 2.5), noise=0.0, random_state=0)
        np.testing.assert_allclose(np.hypot(X[:, 0], X[:, 1]), np.array([4.0, 1.0, 2.5])[y])
        for label in range(3):
            angle = np.arctan2(X[y == label, 1], X[y == label, 0])
            assert stats.kstest((angle + np.pi) / (2 * np.pi), "uniform").pvalue > 1e-3

    @pytest.mark.parametrize("make", [datasets.make_two_moons, datasets.make_spirals, datasets.make_rings])
    def test_noise_is_a_standard_deviation(self, make):
        # The same seed draws the same curves before the noise, and the same shuffle after it.
        clean, noisy = (make(2000, noise=noise, random_state=0)[0] for noise in (0.0, 0.3))
        assert (noisy - clean).std() == pytest.approx(0.3, rel=0.03)
        assert np.abs((noisy - clean).mean(axis=0)).max() < 0.03


class TestElevenGaussians:
    MEANS = (
        [-5, 3],
        [-2, 3],
        [5, 3],
        [2, 3],
        [-5, -3],
        [-2, -3],
        [4, -2],
        [4, -4],
        [6, -4],
        [2, -4],
        [4, -6],
    )

    def test_classes_of_one_gaussian(self):
        X, y, _ = datasets.make_eleven_gaussians(1000, random_state=0)
        for label, mean in {2: 2, 3: 3, 5: 6, 6: 7, 7: 8, 8: 9, 9: 10}.items():
            assert mean_is_plausible(X[y == label], self.MEANS[mean], 1.0)
            np.testing.assert_allclose(np.cov(X[y == label].T), np.eye(2), atol=0.2)

    @pytest.mark.parametrize(("label", "height"), [(1, 3), (4, -3)])
    def test_classes_of_two_gaussians(self, label, height):
        X, y, _ = datasets.make_eleven_gaussians(1000, random_state=0)
        members = X[y == label]
        assert mean_is_plausible(members, [-3.5, height], [np.sqrt(1 + 1.5**2), 1.0])
        both = 0.5 * stats.norm(-5).cdf(members[:, 0]) + 0.5 * stats.norm(-2).cdf(members[:, 0])
        assert stats.kstest(both, "uniform").pvalue > 1e-3

    def test_beliefs_are_table_1(self):
        rows = """.1 -1 -1 -1 -1 -1 -1 -1 -1
                  -1 .5 .5 -1 -1 -1 -1 -1 -1
                  -1 .5 .5 -1 -1 -1 -1 -1 -1
                  -1 -1 -1  1 -1 -1 -1 -1 -1
                  -1 -1 -1 -1 .9 .9 .9 .9 .9
                  -1 -1 -1 -1 .9 .9 .9 .9 .9
                  -1 -1 -1 -1 .9 .9 .9 .9 .9
                  -1 -1 -1 -1 .9 .9 .9 .9 .9
                  -1 -1 -1 -1 .9 .9 .9 .9 .9"""
        table = np.array(rows.split(), dtype=float).reshape(9, 9)
        np.testing.assert_array_equal(datasets.make_eleven_gaussians(1)[2], table)


class TestWaveform:
    # Written out by hand from the definition: triangles of height 6 with peaks at t = 7, 15 and 11.
    H1 = np.array([0, 1, 2, 3, 4, 5, 6, 5, 4, 3, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0])
    H2 = np.array([0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 5, 4, 3, 2, 1, 0])
    H3 = np.array([0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 5, 4, 3, 2, 1, 0, 0, 0, 0, 0])

    @pytest.mark.parametrize(("label", "first", "second"), [(0, H1, H2), (1, H1, H3), (2, H2, H3)])
    def test_moments_have_their_closed_form(self, label, first, second):
        X, y = datasets.make_waveform(60_000, random_state=0)
        members, difference = X[y == label], first - second
        # u is uniform: mean 1/2, variance 1/12, so Cov = d d' / 12 + I.
        covariance = np.outer(difference, difference) / 12 + np.eye(21)
        assert mean_is_plausible(members, (first + second) / 2, np.sqrt(np.diag(covariance)))
        np.testing.assert_allclose(np.cov(members.T), covariance, atol=0.12)

    def test_classes_are_equally_likely(self):
        y = datasets.make_waveform(30_000, random_state=1)[1]
        assert stats.chisquare(np.bincount(y)).pvalue > 1e-3


class TestTextureMosaic:
    def test_layout(self):
        image, truth = datasets.make_texture_mosaic((6, 9), block=5, random_state=0)
        assert image.shape == truth.shape == (30, 45)
        blocks = truth[::5, ::5]
        np.testing.assert_array_equal(truth, np.kron(blocks, np.ones((5, 5), dtype=int)))
        np.testing.assert_array_equal(blocks[:3], [[0] * 4 + [1] * 5] * 3)
        np.testing.assert_array_equal(blocks[3:], [[2] * 4 + [3] * 5] * 3)

    def test_textures_differ_in_direction_not_in_brightness(self):
        image, truth = datasets.make_texture_mosaic((64, 64), noise=0.0, random_state=0)
        expected = {0: (9, 20), 1: (9, 110), 2: (7, 65), 3: (12, 155)}
        for label, (wavelength, degrees) in expected.items():
            part = image[truth == label].reshape(224, 224)
            assert abs(part.mean()) < 0.1
            assert part.std() == pytest.approx(1.0, abs=0.1)
            power = np.abs(np.fft.fft2(part)) ** 2
            down, across = np.meshgrid(np.fft.fftfreq(224), np.fft.fftfreq(224), indexing="ij")
            half = across * np.cos(np.deg2rad(degrees)) + down * np.sin(np.deg2rad(degrees)) > 0
            centre = np.array([across[half] @ power[half], down[half] @ power[half]]) / power[half].sum()
            assert 1 / np.hypot(*centre) == pytest.approx(wavelength, rel=0.2)
            assert np.rad2deg(np.arctan2(centre[1], centre[0])) == pytest.approx(degrees, abs=10)

    def test_noise_is_added_on_top(self):
        clean, noisy = (datasets.make_texture_mosaic(noise=s, random_state=0)[0] for s in (0.0, 0.7))
        assert (noisy - clean).std() == pytest.approx(0.7, rel=0.02)

    def test_single_blocks_are_ambiguous(self):
        image, truth = datasets.make_texture_mosaic(random_state=0)
        X, _ = datasets.texture_features(image)
        y = truth[::7, ::7].ravel()
        Z = PCA(5).fit_transform(X)
        mixture = GaussianMixture(4, n_init=10, init_params="random_from_data", random_state=0)
        assert clustering_accuracy(y, mixture.fit_predict(Z)) == pytest.approx(0.73, abs=0.05)
        assert QuadraticDiscriminantAnalysis().fit(Z, y).score(Z, y) == pytest.approx(0.74, abs=0.05)


class TestTextureFeatures:
    @pytest.mark.parametrize(("rows", "columns", "block"), [(2, 3, 7), (1, 1, 4), (5, 2, 1), (3, 4, 2)])
    def test_every_row_is_its_block(self, rows, columns, block):
        image = np.random.default_rng(0).normal(size=(rows * block, columns * block))
        X, grid = datasets.texture_features(image, block)
        assert grid == (rows, columns)
        assert X.shape == (rows * columns, block**2)
        for r in range(rows):
            for c in range(columns):
                cut = image[r * block : (r + 1) * block, c * block : (c + 1) * block]
                np.testing.assert_array_equal(X[r * columns + c], cut.ravel())

    def test_refusals(self):
        with pytest.raises(ValueError, match=r"crop it, e.g. image\[:14, :7\]"):
            datasets.texture_features(np.zeros((15, 13)))
        with pytest.raises(ValueError, match="not made of 7 x 7 blocks"):
            datasets.texture_features(np.zeros((7, 5)))
        with pytest.raises(ValueError, match=r"shape \(7, 7, 3\); pass one channel"):
            datasets.texture_features(np.zeros((7, 7, 3)))


class TestSmallImages:
    @pytest.mark.parametrize(
        ("make", "side", "n_classes"), [(datasets.make_noisy_objects, 43, 4), (datasets.make_occluder, 16, 2)]
    )
    def test_shapes_and_range(self, make, side, n_classes):
        image, truth = make(random_state=0)
        assert image.shape == truth.shape == (side, side)
        assert truth.dtype == np.int64
        assert image.min() >= 0.0
        assert image.max() <= 1.0
        np.testing.assert_array_equal(np.unique(truth), np.arange(n_classes))
        np.testing.assert_array_equal(truth, make(random_state=1)[1])

    @pytest.mark.parametrize("make", [datasets.make_noisy_objects, datasets.make_occluder])
    def test_noise_is_a_standard_deviation(self, make):
        clean, noisy = (make(noise=noise, random_state=0)[0] for noise in (0.0, 0.02))
        inside = (clean > 0.1) & (clean < 0.9)
        assert (noisy - clean)[inside].std() == pytest.approx(0.02, rel=0.2)

    def test_three_separate_objects(self):
        truth = datasets.make_noisy_objects(random_state=0)[1]
        for label in (1, 2, 3):
            assert connected_regions(truth == label)[1] == 1
            assert (truth == label).sum() > 100
        touching = np.ones((3, 3), dtype=int)
        assert connected_regions(truth > 0, structure=touching)[1] == 3
        assert connected_regions(truth == 0)[1] == 1

    @pytest.mark.parametrize("label", [1, 2, 3])
    def test_objects_fade_into_the_background_on_one_side(self, label):
        image, truth = datasets.make_noisy_objects(noise=0.0, random_state=0)
        steps = [
            image[r, c] - image[r + down, c + right]
            for r, c in np.argwhere(truth == label)
            for down, right in ((0, 1), (0, -1), (1, 0), (-1, 0))
            if truth[r + down, c + right] == 0
        ]
        assert min(steps) < 0.03
        assert max(steps) > 0.15
        # No threshold separates the object: some background is brighter than part of it.
        assert image[truth == label].min() < image[truth == 0].max()

    @for_seeds(5)
    def test_the_bar_cuts_the_background_and_fades_at_two_ends(self, seed):
        image, truth = datasets.make_occluder(noise=0.0, random_state=seed)
        assert connected_regions(truth == 0)[1] == 2
        rows = np.arange(16)
        first = truth.argmax(axis=1)
        last = 15 - truth[:, ::-1].argmax(axis=1)
        left_step = image[rows, first] - image[rows, first - 1]
        right_step = image[rows, last + 1] - image[rows, last]
        # The background itself rises by 0.056 a pixel.
        assert min(left_step[:3].mean(), right_step[-3:].mean()) > 0.12
        assert max(left_step[-3:].mean(), right_step[:3].mean()) < 0.12


class TestBundled:
    @pytest.mark.parametrize(
        ("name", "shape", "n_classes"),
        [
            ("iris", (150, 4), 3),
            ("wine", (178, 13), 3),
            ("digits", (1797, 64), 10),
            ("breast_cancer", (569, 30), 2),
        ],
    )
    def test_rows_and_class_names(self, name, shape, n_classes):
        X, y = datasets.load_bundled(name)
        bunch = getattr(sklearn.datasets, f"load_{name}")()
        np.testing.assert_array_equal(X, bunch.data)
        assert X.shape == shape
        assert len(np.unique(y)) == n_classes
        for row in range(0, len(y), 37):
            assert y[row] == bunch.target_names[bunch.target[row]]

    @pytest.mark.parametrize("name", ["moons", "Iris", 3, None])
    def test_unknown_names_list_the_known_ones(self, name):
        with pytest.raises(ValueError, match="'breast_cancer', 'digits', 'iris', 'wine'"):
            datasets.load_bundled(name)
