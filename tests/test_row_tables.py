"""Sums and extremes of tables of rows."""

import numpy as np
import pytest
from scipy import sparse

from linkwise._row_tables import column_extremes


@pytest.mark.parametrize("n_rows", [1, 2, 63, 64, 65, 127, 128, 500])
@pytest.mark.parametrize("form", ["C", "F", "sliced", "float32", "csr"])
def test_extremes_of_columns(n_rows, form):
    rng = np.random.default_rng(n_rows)
    table = rng.normal(size=(n_rows, 3)) * [1.0, 1e-3, 1e6]
    given = {
        "C": table,
        "F": np.asfortranarray(table),
        "sliced": np.repeat(table, 2, axis=0)[::2],
        "float32": table.astype(np.float32),
        "csr": sparse.csr_array(table),
    }[form]
    expected = np.array([(min(column), max(column)) for column in table.astype(given.dtype).T.tolist()])
    for place in range(n_rows):  # the extreme may stand in any row
        moved = given if place == 0 else np.roll(given, place, axis=0)
        np.testing.assert_array_equal(np.column_stack(column_extremes(moved)), expected)
        if form == "csr" or place > 70:
            break
