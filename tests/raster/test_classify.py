"""Classes of a stack: window by window the same as at once, and the same as the model says row by row."""

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

from linkwise import CPPC, PPC
from linkwise.raster import classify, iter_windows, read_stack
from tests.raster.raster_cases import scene, write


def table(values):
    return values.reshape(len(values), -1).T.astype(np.float64)


@pytest.fixture
def stack(tmp_path):
    values, _ = scene()
    values[:, :7, :9] = -1
    values[2, 30, 40] = -1
    return read_stack(write(tmp_path / "scene.tif", values, nodata=-1))


@pytest.mark.parametrize("window", [16, 33, 64, 512])
def test_windows_equal_the_whole_exactly(stack, fitted, window):
    whole, parts = classify(stack, fitted, window=4096), classify(stack, fitted, window=window)
    np.testing.assert_array_equal(whole["classes"], parts["classes"])
    np.testing.assert_array_equal(whole["confidence"], parts["confidence"])


def test_the_map_is_what_the_model_predicts(stack, fitted):
    found = classify(stack, fitted)
    data = (stack.values != -1).all(axis=0)
    X = table(stack.values)
    expected = np.where(data, fitted.predict(X).reshape(data.shape) + 1, 0)
    np.testing.assert_array_equal(found["classes"], expected)
    confidence = np.where(data, fitted.predict_proba(X).max(axis=1).reshape(data.shape), np.nan)
    np.testing.assert_allclose(found["confidence"], confidence, atol=1e-4)
    assert found["classes"].dtype == np.uint8
    assert found["confidence"].dtype == np.float32
    assert found.rio.crs == stack.rio.crs
    assert found["classes"].rio.transform() == stack.rio.transform()
    assert found["classes"].rio.nodata == 0


@pytest.mark.parametrize("covariance_type", ["full", "tied", "diag", "spherical"])
@pytest.mark.parametrize(
    "scaler",
    [StandardScaler(), StandardScaler(with_mean=False), RobustScaler(), MinMaxScaler((1, 3)), MaxAbsScaler()],
)
def test_scalers_become_part_of_the_mixture(stack, covariance_type, scaler):
    values, _ = scene()
    model = make_pipeline(
        scaler, PPC(3, covariance_type=covariance_type, random_state=0, n_init=1, max_iter=5)
    )
    model.fit(table(values)[::7])
    from linkwise.raster.classify import _Mixture, pixel_model

    assert isinstance(pixel_model(model, 4), _Mixture)
    found = classify(stack, model)
    data = (stack.values != -1).all(axis=0)
    assert (
        found["classes"].values[data] == model.predict(table(stack.values)).reshape(data.shape)[data] + 1
    ).mean() > 0.999
    assert (found["classes"].values[~data] == 0).all()


def test_any_classifier(stack):
    values, truth = scene()
    names = np.array(["forest", "pasture", "water"])
    model = RandomForestClassifier(20, random_state=0).fit(table(values), names[truth.ravel()])
    found = classify(stack, model, window=48)
    data = (stack.values != -1).all(axis=0)
    predicted = model.predict(table(stack.values)).reshape(data.shape)
    np.testing.assert_array_equal(model.classes_[found["classes"].values[data] - 1], predicted[data])
    assert np.isnan(found["confidence"].values[~data]).all()


def test_a_cut_stack_keeps_its_place(stack, fitted):
    part = stack[:, 10:40, 20:70]
    found = classify(part, fitted)
    np.testing.assert_array_equal(found["classes"], classify(stack, fitted)["classes"][10:40, 20:70])
    transform = found["classes"].rio.transform()
    assert (transform.c, transform.f) == (stack.rio.transform().c + 600.0, stack.rio.transform().f - 300.0)


def test_any_array_with_bands_is_a_stack(stack, fitted):
    """As rioxarray opens it, in Dask chunks, in memory with other dimensions first."""
    import rioxarray

    expected = classify(stack, fitted)["classes"]
    path = stack.attrs["files"][0]
    for other in (
        rioxarray.open_rasterio(path),
        rioxarray.open_rasterio(path, masked=True),
        rioxarray.open_rasterio(path, chunks={"x": 32, "y": 32}),
        stack.load().transpose("y", "x", "band"),
    ):
        found = classify(other, fitted, window=48)
        np.testing.assert_array_equal(found["classes"], expected)
        assert found["classes"].rio.transform() == stack.rio.transform()
    with pytest.raises(ValueError, match="dimensions band, y and x, not ndarray"):
        classify(stack.values, fitted)
    with pytest.raises(ValueError, match="dimensions band, y and x"):
        iter_windows(stack.rename(y="row"), fitted)


def test_float64_stays_float64(tmp_path):
    """Differences of 1e-9 would be lost in float32."""
    values = (
        1.0
        + 1e-9 * np.repeat([[[0.0], [1.0]]], 20, axis=2)
        + np.random.default_rng(0).normal(scale=1e-10, size=(1, 2, 20))
    )
    model = PPC(2, random_state=0, reg_covar=0.0).fit(table(values))
    stack = read_stack(write(tmp_path / "fine.tif", values))
    found = classify(stack, model)["classes"].values
    assert len(np.unique(found[0])) == len(np.unique(found[1])) == 1
    assert found[0, 0] != found[1, 0]


def test_windows_that_are_done_are_left_out(stack, fitted):
    places = [(w.row_off, w.col_off) for w, _, _ in iter_windows(stack, fitted, window=32)]
    assert places[:3] == [(0, 0), (0, 32), (0, 64)]
    rest = [
        (w.row_off, w.col_off) for w, _, _ in iter_windows(stack, fitted, window=32, done=set(places[1:5]))
    ]
    assert rest == [places[0], *places[5:]]


def test_bad_input(tmp_path, stack, fitted):
    with pytest.raises(ValueError, match="fitted to 4 bands, but the stack has 3"):
        iter_windows(stack[:3], fitted)
    with pytest.raises(ValueError, match="no predict_proba"):
        classify(stack, StandardScaler().fit(np.ones((3, 4))))
    with pytest.raises(ValueError, match="not fitted"):
        classify(stack, CPPC())
    for smooth in (0.3, 1.0, 7):
        with pytest.raises(ValueError, match="smooth is"):
            classify(stack, fitted, smooth=smooth)
    with pytest.raises(ValueError, match="window"):
        classify(stack, fitted, window=3)
    empty = read_stack(write(tmp_path / "empty.tif", np.full((4, 20, 20), -1, dtype=np.int16), nodata=-1))
    with pytest.raises(ValueError, match="no pixel of the stack has data"):
        classify(empty, fitted)
    huge = stack.values.astype(np.float32)
    huge[1, 50, 60] = -3.4e38
    huge = read_stack(write(tmp_path / "huge.tif", huge, nodata=-1))
    with pytest.raises(ValueError, match=r"band 2 holds -3.4e\+38 in row 50, column 60.*nodata="):
        classify(huge, fitted, window=32)
