"""Estimators in memory refuse collections of Dask and name ``linkwise.dask``."""

from __future__ import annotations

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

import linkwise
from linkwise import _exports
from linkwise._validation import refuse_dask

X = np.random.default_rng(0).normal(size=(40, 2))
LAZY = {
    "array": da.from_array(X, chunks=(10, 2)),
    "frame": dd.from_pandas(pd.DataFrame(X, columns=["a", "b"]), npartitions=2),
}
ESTIMATORS = [*_exports.ESTIMATORS, "LinkedClustering"]


def fit(model, data):
    return model.fit(data, np.arange(40) % 2) if type(model).__name__ == "CPPC" else model.fit(data)


@pytest.mark.parametrize("kind", LAZY)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_fit_names_the_module(name, kind):
    with pytest.raises(TypeError, match=r"linkwise\.dask"):
        fit(getattr(linkwise, name)(2), LAZY[kind])


@pytest.mark.parametrize("name", ["PPC", "CPPC", "HMRFKMeans", "ConstrainedSpectralClustering"])
def test_predict_names_the_module(name):
    model = fit(getattr(linkwise, name)(2, random_state=0), X)
    with pytest.raises(TypeError, match=r"linkwise\.dask"):
        model.predict(LAZY["array"])


def test_a_wrapper_without_dask_inside_is_data():
    class Wrapper:
        def __dask_graph__(self):
            return None

    refuse_dask(Wrapper())
