"""Sums and extremes of tables of rows."""

import numpy as np
import pytest
from scipy import sparse

from linkwise import _row_tables as row_tables
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


def test_few_and_many_rows_are_summed_to_the_same_bits(monkeypatch):
    rng = np.random.default_rng(0)
    for _ in range(100):
        n, d, k = rng.integers(0, 60), rng.integers(1, 8), rng.integers(1, 7)
        table = rng.normal(size=(n, d)) * 10.0 ** rng.normal(size=(n, d))
        labels = rng.integers(k, size=n)
        weights = None if rng.random() < 0.5 else rng.random(n)
        few = row_tables.label_sums(table, labels, k, weights)
        with monkeypatch.context() as patch:
            patch.setattr(row_tables, "_FEW_ENTRIES", -1)
            np.testing.assert_array_equal(few, row_tables.label_sums(table, labels, k, weights))
