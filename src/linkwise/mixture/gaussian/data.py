"""The data as the kernels read it: any memory layout, never copied, centred while it is loaded."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import ArrayLike, NDArray

__all__ = ["Points", "points_of"]


class Points(NamedTuple):
    """A view of (n_samples, n_features) data, and the point that kernels subtract from every row.

    Attributes
    ----------
    values : 1-D array, float64 or float32, read-only
        The memory of the data; its type is the type kernels compute in.
    row_stride, column_stride : int
        Sample n, feature i is ``values[n * row_stride + i * column_stride]``.
    offset : (n_features,) float64
        Near the middle of the data. It is subtracted in float64 before anything is rounded, so that data far
        from the origin lose no digits.
    n_samples : int
    """

    values: NDArray[np.floating]
    row_stride: int
    column_stride: int
    offset: NDArray[np.float64]
    n_samples: int

    @property
    def memory(self) -> tuple[NDArray[np.floating], int, int, NDArray[np.float64]]:
        """All but ``n_samples``: the first arguments of every kernel."""
        return self[:4]

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.offset.shape[0]

    @property
    def dtype(self) -> np.dtype[np.floating]:
        """The type kernels compute in."""
        return self.values.dtype


def points_of(X: NDArray[np.floating], offset: ArrayLike | None = None) -> Points:
    """Describe data to the kernels without copying it.

    C order, Fortran order and slices with positive strides are read in place and share one compiled
    kernel. Types other than float64 and float32, and reversed axes, are copied to float64.
    """
    data = np.asarray(X)
    if data.dtype not in (np.float64, np.float32):
        data = data.astype(np.float64)
    size = data.itemsize
    if any(stride < 0 or stride % size for stride in data.strides):
        data = np.ascontiguousarray(data)
    n_samples, n_features = data.shape
    row_stride, column_stride = (stride // size for stride in data.strides)
    span = 1 + (n_samples - 1) * row_stride + (n_features - 1) * column_stride
    # Read-only whatever the data are, because numba compiles once for writable and once for read-only.
    values = as_strided(data, shape=(span if data.size else 0,), strides=(size,), writeable=False)
    if offset is None:
        centre = data.mean(axis=0, dtype=np.float64)
    else:
        centre = np.array(offset, dtype=np.float64)
    return Points(values, row_stride, column_stride, centre, n_samples)
