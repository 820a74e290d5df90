"""CPPC with Dask gives the results of memory, however the rows and their classes are cut into chunks."""

from __future__ import annotations

import errno
import gc

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import linkwise
from linkwise.dask import CPPC, class_tables, classes, passes, source
from linkwise.metrics import rand_score
from linkwise.persistence import load_model, save_model
from tests.dask.dask_cases import assert_same_fit, blobs, chunkings, lazy, quietly

X, Y = blobs(120)
SOME = np.where(np.arange(120) % 7 == 0, -1, Y)
CHUNKS = ((50, 0, 70), (1, 2))
BELIEFS = {
    "none": None,
    "soft": np.array([[0.5, -0.5, 0.2], [-0.5, 0.3, 0.0], [0.2, 0.0, 0.8]]),
    # Sweeps go from row to row, across chunks.
    "split": np.array([[-0.6, -0.5, 0.2], [-0.5, 0.3, 0.0], [0.2, 0.0, -0.3]]),
}


def compare(data, chunks, y, lazy_y=None, tolerance=1e-8, **parameters):
    """Fit both; return the estimator for Dask."""
    parameters = {"random_state": 0, "max_iter": 4, "n_components": 4, "init": "paper", **parameters}
    theirs = quietly(lambda: linkwise.CPPC(**parameters).fit(data, y))
    mine = quietly(lambda: CPPC(**parameters).fit(lazy(data, chunks), y if lazy_y is None else lazy_y))
    assert_same_fit(mine, theirs, tolerance)
    return mine


class TestAsInMemory:
    @settings(max_examples=8)
    @given(
        chunks=chunkings(*X.shape),
        size=st.integers(20, 120),
        beliefs=st.sampled_from(list(BELIEFS)),
        covariance_type=st.sampled_from(["full", "tied", "diag", "spherical"]),
    )
    def test_any_chunking(self, chunks, size, beliefs, covariance_type):
        model = compare(
            X, chunks, SOME, da.from_array(SOME, chunks=size), beliefs=BELIEFS[beliefs],
            covariance_type=covariance_type, max_iter=2,
        )  # fmt: skip
        assert model.sweep_ == ("block" if beliefs == "soft" else "sequential")

    @pytest.mark.parametrize(
        "parameters",
        [
            {"n_components": None, "init": "evidence", "beliefs": BELIEFS["soft"], "max_iter": 2},
            {"n_init": 2, "beliefs": BELIEFS["soft"], "max_iter": 2},
            {"mixing": "sampled", "beliefs": BELIEFS["soft"], "max_iter": 2},
            {"normalize": "none", "confidence": 0.01, "beliefs": BELIEFS["split"], "max_iter": 2},
        ],
    )
    def test_other_parameters(self, parameters):
        compare(X, CHUNKS, SOME, **parameters)

    def test_disturbances_are_tried_and_undone(self):
        """To the end: versions of the tables are kept, restored and removed."""
        model = compare(X, CHUNKS, SOME, max_iter=100, n_components=3, beliefs=BELIEFS["soft"], tol=1e-3)
        assert model.converged_
        assert model.n_iter_ > 20

    def test_float32(self):
        model = compare(
            X.astype(np.float32), CHUNKS, SOME, tolerance=2e-4, beliefs=BELIEFS["soft"], max_iter=2
        )
        assert model.responsibilities_.dtype == np.float32


class TestClasses:
    @pytest.mark.parametrize("kind", ["text", "floats", "objects"])
    def test_of_any_type(self, kind):
        y = {
            "text": np.array(["ash", "elm", "oak"])[Y],
            "floats": np.where(SOME < 0, np.nan, SOME),
            "objects": np.where(SOME < 0, None, np.array(["ash", "elm", "oak"])[Y]),
        }[kind]
        for lazy_y in (y, da.from_array(y, chunks=37)):
            model = compare(X, CHUNKS, y, lazy_y, max_iter=1, beliefs=BELIEFS["soft"])
        assert len(model.classes_) == 3

    def test_a_column_of_the_frame(self):
        frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(kind=np.array(["ash", "elm", "oak"])[Y])
        parts = dd.from_pandas(frame, npartitions=3)
        model = CPPC(3, random_state=0, max_iter=1)
        quietly(lambda: model.fit(parts.drop(columns="kind"), parts["kind"]))
        assert model.contingency_.sum() == 120
        assert list(model.feature_names_in_) == ["a", "b", "c"]

    def test_a_class_that_a_chunk_does_not_have(self):
        order = np.argsort(Y, kind="stable")
        compare(X[order], ((30, 60, 30), (3,)), Y[order], max_iter=2, beliefs=BELIEFS["soft"])

    @pytest.mark.parametrize(
        ("y", "message"),
        [
            (None, "requires y to be passed"),
            (Y[:50], "y has 50 labels, but X has 120 rows"),
            (da.from_array(Y[:50], chunks=20), "y has 50 labels, but X has 120 rows"),
            (da.zeros((120, 2)), "y has 2 dimensions"),
            (np.full(120, -1), "y has no labelled row"),
            (da.random.default_rng(0).normal(size=120), "Unknown label type: continuous"),
        ],
    )
    def test_refusals(self, y, message):
        with pytest.raises(ValueError, match=message):
            CPPC(3).fit(lazy(X, CHUNKS), y)


class TestSample:
    def test_starts_are_made_from_a_sample_with_rows_of_each_class(self, monkeypatch):
        monkeypatch.setattr(source, "SAMPLE_ROWS", 60)
        monkeypatch.setattr(classes, "SAMPLE_ROWS", 60)
        monkeypatch.setattr(classes, "_OF_A_CLASS", 5)
        rng = np.random.default_rng(0)
        y = np.repeat([0, 1, 2], [6, 250, 344])
        data = rng.normal(size=(600, 3)) + 8.0 * np.eye(3)[y]
        model = quietly(lambda: CPPC(random_state=0).fit(lazy(data, ((200, 400), (3,))), y))
        assert rand_score(y, model.labels_.compute()) == 1.0
        assert model.contingency_.sum(axis=1).tolist() == [6, 250, 344]


class TestScratch:
    def test_is_removed_with_the_results(self, tmp_path):
        model = quietly(lambda: CPPC(3, scratch=tmp_path, max_iter=2).fit(lazy(X, CHUNKS), Y))
        labels, found = model.labels_, model.labels_.compute()
        tables = [path for path in tmp_path.iterdir() if any(path.glob("prob-*"))]
        assert len(tables) == 1
        # The probabilities, and the scores, of three classes in two groups; nothing of earlier sweeps.
        assert len(list(tables[0].iterdir())) <= 3 * 3 * 2
        del model
        gc.collect()
        np.testing.assert_array_equal(labels.compute(), found)
        del labels
        gc.collect()
        assert list(tmp_path.iterdir()) == []

    def test_a_full_disk(self, tmp_path, monkeypatch):
        def full(file, array):
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(class_tables.np, "save", full)
        with pytest.raises(OSError, match=r"No space left on device; CPPC\(scratch=...\) may name another"):
            CPPC(3, scratch=tmp_path).fit(lazy(X, CHUNKS), Y)
        gc.collect()
        assert list(tmp_path.glob("*/*")) == []


class Interrupted(Exception):
    pass


@pytest.fixture
def sweeps(monkeypatch):
    """Counts sweeps; one of them can be made to fail when half of its tasks are done."""
    count, compute = {"done": 0, "fails": None}, passes.Runner.compute

    def counted(self, name, layer, key):
        if "classsweep" in name:
            count["done"] += 1
            if count["done"] == count["fails"]:
                compute(self, name, layer, sorted(one for one in layer if one[:2] == (name, 1))[0])
                raise Interrupted
        return compute(self, name, layer, key)

    monkeypatch.setattr(passes.Runner, "compute", counted)
    return count


class TestCheckpoint:
    def fit(self, folder, X=X, y=SOME, chunks=CHUNKS, **parameters):
        usual = {"n_components": 3, "random_state": 0, "beliefs": BELIEFS["soft"], "tol": 1e-3}
        return quietly(lambda: CPPC(**usual | parameters, checkpoint=folder).fit(lazy(X, chunks), y))

    @pytest.mark.parametrize("parameters", [{}, {"n_init": 2, "beliefs": BELIEFS["split"], "max_iter": 3}])
    def test_ends_at_the_same_parameters(self, parameters, tmp_path, sweeps):
        """Interrupted three times, with disturbances before and after."""
        undisturbed = self.fit(None, **parameters)
        undisturbed.labels_ = undisturbed.labels_.compute()
        undisturbed.responsibilities_ = undisturbed.responsibilities_.compute()
        n_sweeps = sweeps["done"]
        before = 0
        for fails in (5, n_sweeps // 2, n_sweeps - 2):
            sweeps.update(done=0, fails=fails - before)
            with pytest.raises(Interrupted):
                self.fit(tmp_path, **parameters)
            before = fails - 1
        sweeps.update(done=0, fails=None)
        model = self.fit(tmp_path, **parameters)
        # The sweep that failed last, and those after it.
        assert sweeps["done"] == 3
        assert_same_fit(model, undisturbed, 0.0)
        # Another fit with the same folder does not take the tables away.
        again = self.fit(tmp_path, **{**parameters, "max_iter": 1})
        np.testing.assert_array_equal(model.labels_.compute(), undisturbed.labels_)
        del model, again
        gc.collect()
        assert list(tmp_path.iterdir()) == []

    def test_of_another_fit_is_refused(self, tmp_path, sweeps):
        sweeps["fails"] = 4
        with pytest.raises(Interrupted):
            self.fit(tmp_path)
        sweeps["fails"] = None
        other = np.where(np.arange(120) == 60, 0, SOME)
        # Two rows of one chunk that have different classes: all counts are the same.
        row = 60 + int(np.flatnonzero(SOME[60:-1] != SOME[61:])[0])
        swapped = SOME.copy()
        swapped[[row, row + 1]] = swapped[[row + 1, row]]
        for changes, word in (
            ({"beliefs": BELIEFS["none"]}, "beliefs"),
            ({"covariance_type": "diag"}, "covariance_type"),
            ({"y": other}, "classes"),
            ({"y": swapped}, "classes"),
            ({"X": X + 1.0}, "values of X"),
            ({"chunks": ((60, 60), (3,))}, "chunks of X"),
        ):
            with pytest.raises(ValueError, match=f"another fit: {word} differs; remove it"):
                self.fit(tmp_path, **changes)
        with pytest.raises(ValueError, match="scratch and checkpoint are both given"):
            self.fit(tmp_path, scratch=tmp_path)


class TestAfterwards:
    @pytest.fixture(scope="class")
    @classmethod
    def models(cls):
        parameters = {"n_components": 3, "random_state": 0, "max_iter": 3, "beliefs": BELIEFS["soft"]}
        with dask.config.set(scheduler="synchronous"):
            mine = quietly(lambda: CPPC(**parameters).fit(lazy(X, CHUNKS), SOME))
        return mine, quietly(lambda: linkwise.CPPC(**parameters).fit(X, SOME))

    def test_report(self, models):
        mine, theirs = models
        assert str(mine.report()) == str(theirs.report())
        assert str(mine.to_local().report()) == str(theirs.report())
        with pytest.raises(ValueError, match="found in memory only; leave X and y out"):
            mine.report(lazy(X, CHUNKS), SOME)

    def test_is_saved_as_the_estimator_in_memory(self, models, tmp_path):
        mine, theirs = models
        twin = load_model(save_model(mine.to_local(), tmp_path / "model"))
        np.testing.assert_array_equal(twin.predict(X), theirs.predict(X))
