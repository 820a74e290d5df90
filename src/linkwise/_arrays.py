"""Names of the array types that most signatures have."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
#: float64 or float32, as the data of the user.
AnyFloats = NDArray[np.floating]
Ints = NDArray[np.int64]
ShortInts = NDArray[np.int32]
Bools = NDArray[np.bool_]
