"""What is accepted as data, and what is said about data that cannot be used."""

from __future__ import annotations

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import xarray
import zarr

import linkwise
from linkwise import Constraints
from linkwise.dask import PPC
from tests.dask.dask_cases import assert_same_fit, blobs, lazy, links_of, quietly

X, Y = blobs()
NAMES = ["length", "width", "height"]
FRAME = pd.DataFrame(X, columns=NAMES, index=[f"row {i}" for i in range(len(X))])
LINKS = links_of(Y, "soft")


def fit(data, links=LINKS, **parameters):
    model = PPC(3, random_state=0, n_init=1, max_iter=5, **parameters)
    return quietly(lambda: model.fit(data, constraints=links))


@pytest.fixture(scope="module")
def in_memory():
    return quietly(
        lambda: linkwise.PPC(3, random_state=0, n_init=1, max_iter=5).fit(FRAME, constraints=LINKS)
    )


class TestSources:
    def test_frame(self, in_memory):
        model = fit(dd.from_pandas(FRAME, npartitions=3, sort=False))
        assert_same_fit(model, in_memory)
        assert model.predict(dd.from_pandas(FRAME, npartitions=2, sort=False)).compute().shape == (120,)
        with pytest.raises(ValueError, match="feature names"):
            model.predict(dd.from_pandas(FRAME[NAMES[::-1]], npartitions=2, sort=False))

    def test_folder_of_parquet_files(self, in_memory, tmp_path):
        dd.from_pandas(FRAME.reset_index(drop=True), npartitions=3).to_parquet(tmp_path / "rows")
        assert_same_fit(fit(tmp_path / "rows"), in_memory)
        assert_same_fit(fit(str(tmp_path / "rows")), in_memory)

    def test_a_folder_that_is_not_there(self, tmp_path):
        with pytest.raises(FileNotFoundError, match=r"rows does not exist; pass a folder"):
            fit(tmp_path / "rows")

    def test_zarr(self, tmp_path):
        """The array itself, and its folder; Zarr's last chunk is shorter."""
        store = zarr.create_array(store=tmp_path / "rows.zarr", shape=X.shape, chunks=(50, 2), dtype="f8")
        store[:] = X
        theirs = quietly(lambda: linkwise.PPC(3, random_state=0, n_init=1, max_iter=5).fit(X))
        for data in (store, tmp_path / "rows.zarr", str(tmp_path / "rows.zarr")):
            model = fit(data, None)
            assert_same_fit(model, theirs)
        np.testing.assert_array_equal(model.predict(store).compute(), theirs.predict(X))

    def test_xarray(self, in_memory):
        """Arrays with Dask inside; others are refused."""
        array = xarray.DataArray(X, dims=("row", "band"))
        for wrapped in (
            array.chunk({"row": 50, "band": 2}),
            array.to_dataset(name="x").chunk({"row": 50}).to_dataarray("v").squeeze("v"),
        ):
            model = fit(wrapped)
            np.testing.assert_allclose(model.means_, in_memory.means_, rtol=1e-8)
            np.testing.assert_array_equal(model.predict(wrapped).compute(), in_memory.predict(FRAME))
        with pytest.raises(TypeError, match=r"X is a DataArray without Dask inside; pass X\.chunk\(\)"):
            fit(array)
        with pytest.raises(TypeError, match=r"X is a Dataset; pass one of its arrays"):
            fit(array.to_dataset(name="x").chunk())
        with pytest.raises(ValueError, match="3 dimensions; reshape"):
            fit(array.expand_dims("time").chunk())

    def test_unknown_sizes_of_chunks_are_computed(self, in_memory):
        unknown = dd.from_pandas(FRAME, npartitions=3, sort=False).to_dask_array()
        assert np.isnan(unknown.shape[0])
        model = fit(unknown)
        np.testing.assert_allclose(model.means_, in_memory.means_, rtol=1e-8)
        assert np.isnan(unknown.shape[0])  # the user's array is not changed
        assert model.predict(unknown).compute().shape == (120,)

    def test_empty_partitions(self, in_memory):
        frame = dd.from_pandas(FRAME, npartitions=4, sort=False)
        few = frame.map_partitions(lambda part: part[part.index.isin(FRAME.index[35:90])])
        links = LINKS[np.arange(35, 90)]
        theirs = quietly(
            lambda: linkwise.PPC(3, random_state=0, n_init=1, max_iter=5).fit(
                FRAME.iloc[35:90], constraints=links
            )
        )
        model = fit(few, links)
        assert 0 in model.labels_.chunks[0]
        assert_same_fit(model, theirs)

    @pytest.mark.parametrize("kinds", [("f4", "f8", "i4"), ("f4", "f4", "i8"), ("i2", "u1", "?")])
    def test_columns_of_several_types_are_read_as_in_memory(self, kinds):
        frame = pd.DataFrame({name: (9 * X[:, k]).astype(kinds[k]) for k, name in enumerate(NAMES)})
        theirs = quietly(lambda: linkwise.PPC(2, random_state=0, n_init=1, max_iter=3).fit(frame))
        mine = PPC(2, random_state=0, n_init=1, max_iter=3)
        quietly(lambda: mine.fit(dd.from_pandas(frame, npartitions=2)))
        assert_same_fit(mine, theirs)

    def test_numbers_that_may_be_missing(self):
        frame = pd.DataFrame(np.round(9 * X), columns=NAMES).astype("Int64")
        theirs = quietly(lambda: linkwise.PPC(2, random_state=0, n_init=1, max_iter=3).fit(frame))
        mine = PPC(2, random_state=0, n_init=1, max_iter=3)
        assert_same_fit(quietly(lambda: mine.fit(dd.from_pandas(frame, npartitions=2))), theirs)
        frame.iloc[70, 1] = pd.NA
        with pytest.raises(ValueError, match=r"row 70 \(row 10 of chunk 1\)"):
            mine.fit(dd.from_pandas(frame, npartitions=2))

    def test_chunks_of_several_types(self):
        """An array that says float64 may have chunks of float32 or of integers."""
        rounded = np.round(X)
        blocks = {("mixed", 0, 0): rounded[:50].astype("f4"), ("mixed", 1, 0): rounded[50:].astype("i4")}
        mixed = da.Array(blocks, "mixed", ((50, 70), (3,)), dtype=np.float64)
        theirs = quietly(lambda: linkwise.PPC(2, random_state=0, n_init=1, max_iter=3).fit(rounded))
        mine = PPC(2, random_state=0, n_init=1, max_iter=3)
        assert_same_fit(quietly(lambda: mine.fit(mixed)), theirs)


class TestIds:
    @pytest.mark.parametrize("as_column", [False, True])
    def test_links_and_rows_are_matched_by_id(self, as_column):
        order = np.random.default_rng(0).permutation(120)
        links = LINKS.with_index(FRAME.index)
        frame = FRAME.iloc[order]
        if as_column:
            links = LINKS.with_index(pd.Series(FRAME.index, name="id"))
            frame = frame.reset_index(names="id")
        theirs = quietly(
            lambda: linkwise.PPC(3, random_state=0, n_init=1, max_iter=5).fit(frame, constraints=links)
        )
        model = fit(dd.from_pandas(frame, npartitions=3, sort=False), links)
        assert_same_fit(model, theirs)
        assert list(model.feature_names_in_) == NAMES

    def test_ids_that_rows_do_not_have(self):
        links = LINKS.with_index(FRAME.index)
        with pytest.warns(UserWarning, match="the links have ids, but X"):
            PPC(3, random_state=0, max_iter=1, tol=1e9).fit(lazy(X, ((60, 60), (3,))), constraints=links)
        with pytest.raises(ValueError, match="'row 119'"):
            fit(dd.from_pandas(FRAME.iloc[:119], npartitions=2, sort=False), links)


class TestRefusals:
    @pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
    def test_the_chunk_and_the_row_of_a_nan(self, value):
        spoilt = X.copy()
        spoilt[77, 1] = spoilt[110, 0] = value
        place = rf"X holds {value} in row 77 \(row 27 of chunk 2\), column 1; drop"
        with pytest.raises(ValueError, match=place):
            fit(lazy(spoilt, ((50, 0, 70), (3,))))
        frame = dd.from_pandas(pd.DataFrame(spoilt, columns=NAMES), npartitions=2)
        with pytest.raises(ValueError, match=r"row 77 \(row 17 of chunk 1\), column 1 \('width'\)"):
            fit(frame)

    def test_a_number_whose_square_overflows(self):
        spoilt = X.copy()
        spoilt[3, 2] = -1e200
        with pytest.raises(ValueError, match=r"column 2 reaches from -1e\+200 .* divide"):
            fit(lazy(spoilt, ((60, 60), (3,))))

    @pytest.mark.parametrize(
        ("data", "error", "message"),
        [
            (X, TypeError, "X is a ndarray; pass a Dask array"),
            (FRAME, TypeError, "X is a DataFrame"),
            (da.zeros(5), ValueError, "1 dimensions; reshape"),
            (da.zeros((5, 2), dtype=complex), ValueError, "complex128, not of real numbers"),
            (da.zeros((5, 2)).astype("U3"), ValueError, "not of real numbers"),
            (da.zeros((1, 2)), ValueError, "X has 1 rows; pass"),
            (da.zeros((5, 0)), ValueError, "0 columns"),
            (da.zeros((2, 2)), ValueError, "n_samples=2"),
            (dd.from_pandas(FRAME.assign(name="x"), npartitions=1), ValueError, "column 'name' is of type"),
        ],
    )
    def test_data_that_cannot_be_fitted(self, data, error, message):
        with pytest.raises(error, match=message):
            fit(data, None)

    def test_links_about_other_rows(self):
        with pytest.raises(ValueError, match="about 7 samples, but X has 120 rows"):
            fit(lazy(X, ((60, 60), (3,))), Constraints(7))
        with pytest.raises(TypeError, match=r"must be a linkwise\.Constraints"):
            fit(lazy(X, ((60, 60), (3,))), [(0, 1)])
