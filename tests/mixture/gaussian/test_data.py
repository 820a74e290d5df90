"""How data are described to the kernels."""

from __future__ import annotations

import numpy as np
import pytest

from linkwise.mixture.gaussian.data import points_of


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_no_copy_in_any_layout(dtype):
    X = np.random.default_rng(0).normal(size=(20, 6)).astype(dtype)
    for layout in (X, np.asfortranarray(X), X[::2], X[:, 1:4], X[3:, ::-1][:, ::-1], X.T):
        points = points_of(layout)
        assert np.shares_memory(points.values, layout)
        assert points.dtype == dtype
        assert not points.values.flags.writeable
        n, d = layout.shape
        rows, columns = np.indices((n, d))
        assert np.array_equal(
            points.values[rows * points.row_stride + columns * points.column_stride], layout
        )
        np.testing.assert_allclose(points.offset, layout.mean(axis=0, dtype=np.float64), rtol=1e-6)
        assert (points.n_samples, points.n_features) == (n, d)


def test_other_types_and_reversed_axes_are_copied():
    X = np.arange(12).reshape(4, 3)
    assert points_of(X).dtype == np.float64
    reversed_axes = X.astype(np.float64)[::-1]
    points = points_of(reversed_axes, offset=[1, 2, 3])
    assert points.values.tolist() == reversed_axes.ravel().tolist()
    assert points.offset.tolist() == [1.0, 2.0, 3.0]


def test_the_mean_of_float32_data_is_taken_in_float64():
    X = np.full((300_000, 1), 0.1, dtype=np.float32)
    assert points_of(X).offset[0] == pytest.approx(float(np.float32(0.1)), rel=1e-12)
