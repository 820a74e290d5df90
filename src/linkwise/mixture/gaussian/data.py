"""The data as the kernels read it: any memory layout, centred, refused where squares would overflow."""

from __future__ import annotations

from typing import NamedTuple, NoReturn

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import ArrayLike, NDArray

from linkwise._arrays import AnyFloats, Floats
from linkwise._row_tables import column_extremes
from linkwise.mixture.gaussian.gaussians import Gaussians

#: Sums of the squares of a billion such numbers are still far from the largest float64.
LARGEST = 1e140
#: The same for float32, whose squares reach to 1e38 and down to 1e-38.
_LARGEST_SINGLE, _SMALLEST_SINGLE = 1e15, 1e-15
#: Starts compare squared lengths of rows: farther from the origin than this, in spans of the data, they would
#: lose more than half of their digits.
_FAR = 1e4
_COMFORTABLE = (1e-70, 1e70)


class Points(NamedTuple):
    """A view of (n_samples, n_features) data, and the point that kernels subtract from every row.

    Sample n, feature i is ``values[n * row_stride + i * column_stride]``, in the type kernels compute in.
    ``offset`` (n_features,) is near the middle of the data. It is subtracted in float64 before anything is
    rounded, so that data far from the origin lose no digits.
    """

    values: AnyFloats
    row_stride: int
    column_stride: int
    offset: Floats
    n_samples: int

    @property
    def memory(self) -> tuple[AnyFloats, int, int, Floats]:
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


def points_of(X: AnyFloats, offset: ArrayLike | None = None) -> Points:
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


class Conditioned(NamedTuple):
    """Data as EM and as its starts see them.

    ``points`` are in float64 if squares do not fit into float32. ``for_starts`` (n, d) are the data, or a
    copy that is centred and divided by a power of two if their digits would be lost. Starts are assignments
    of rows, which neither changes.
    """

    points: Points
    for_starts: AnyFloats


def condition(X: AnyFloats, reg_covar: float, names: NDArray[np.object_] | None = None) -> Conditioned:
    """Prepare data for EM."""
    low, high = (end.astype(np.float64) for end in column_extremes(X))
    if max(high.max(), -low.min()) > LARGEST:
        _refuse(X, names)
    X = X.astype(computing_type(X.dtype, low, high, reg_covar), copy=False)
    # The mean of equal numbers may be none of them; far from the origin the difference is not small.
    centre = np.clip(X.mean(axis=0, dtype=np.float64), low, high)
    return Conditioned(points_of(X, centre), rows_for_starts(X, centre, low, high))


def computing_type(
    dtype: np.dtype[np.floating], low: Floats, high: Floats, reg_covar: float
) -> np.dtype[np.floating]:
    """The type that kernels compute in, for data in [low, high] (D,) of some type."""
    largest, widest = float(max(high.max(), -low.min())), float((high - low).max())
    if dtype == np.float32 and _in_reach_of_float32(largest, widest, reg_covar**0.5):
        return np.dtype(np.float32)
    return np.dtype(np.float64)


def rows_for_starts(X: AnyFloats, centre: Floats, low: Floats, high: Floats) -> AnyFloats:
    """Rows of data in [low, high] (D,) as starts see them, see ``Conditioned``."""
    largest, widest = float(max(high.max(), -low.min())), float((high - low).max())
    smallest, greatest = _COMFORTABLE
    if largest <= _FAR * widest and smallest < widest < greatest:
        return X
    # A power of two changes no digit.
    scale = 2.0 ** np.floor(np.log2(widest)) if widest > 0.0 else 1.0
    return np.asarray((X.astype(np.float64) - centre) / scale)


def new_points(X: AnyFloats, gaussians: Gaussians, names: NDArray[np.object_] | None = None) -> Points:
    """Prepare rows to be compared with fitted densities, which they may be far from."""
    largest = float(max(X.max(), -X.min())) if X.size else 0.0
    if largest > LARGEST:
        _refuse(X, names)
    if X.dtype == np.float32:
        reach = max(largest, float(np.abs(gaussians.means).max()))
        factor = float(np.abs(gaussians.factors).max())
        if not _in_reach_of_float32(reach, factor, reach * factor):
            X = X.astype(np.float64)
    return points_of(X)


def _in_reach_of_float32(*sizes: float) -> bool:
    """Whether the squares of these positive numbers fit into float32; zero does."""
    return all(size == 0.0 or _SMALLEST_SINGLE <= size <= _LARGEST_SINGLE for size in sizes)


def _refuse(X: AnyFloats, names: NDArray[np.object_] | None) -> NoReturn:
    """Name the column with the largest number."""
    row, column = np.unravel_index(np.abs(X).argmax(), X.shape)
    name = f"column {column}" if names is None else f"column {column} ({names[column]!r})"
    raise ValueError(
        f"{name} holds {X[row, column]:.3g} in row {row}, whose square overflows; divide the column by "
        f"{10.0 ** np.floor(np.log10(abs(X[row, column]))):.0g}"
    )
