"""Every public method of every estimator for Dask works, lazily, and gives the results of memory."""

from __future__ import annotations

import dask.array as da
import numpy as np
import pytest
from sklearn import config_context

import linkwise
import linkwise.dask
from linkwise import Constraints
from tests.dask.dask_cases import blobs, lazy, quietly

X, Y = blobs(90)
DATA = lazy(X, ((40, 0, 50), (1, 2)))
LINKS = Constraints.sample(Y, 12, random_state=0)
FEW = {"candidates": ["mixture, tied"], "cv": 2, "effort": "quick"}
QUICK = {"n_clusters": 3, "n_init": 1, "max_iter": 3}
PARAMETERS = {
    "LinkedClustering": {"n_clusters": 3, **FEW},
    "CPPC": {"n_clusters": 3, "init": "paper", "max_iter": 2},
}


def known(model):
    """What ``fit`` is told beside the data."""
    return {"y": Y} if type(model).__name__ == "CPPC" else {"constraints": LINKS}


#: How to call each method; the first argument is the data, in memory or lazy.
CALLS = {
    "fit": lambda model, data: model.fit(data, **known(model)).converged_,
    "fit_predict": lambda model, data: model.fit_predict(data, **known(model)),
    "fit_transform": lambda model, data: model.fit_transform(data, **known(model)),
    "predict": lambda model, data: model.predict(data),
    "predict_proba": lambda model, data: model.predict_proba(data),
    "transform": lambda model, data: model.transform(data),
    "score_samples": lambda model, data: model.score_samples(data),
    "score": lambda model, data: model.score(data, constraints=LINKS),
    "aic": lambda model, data: model.aic(data),
    "bic": lambda model, data: model.bic(data),
    "icl": lambda model, data: model.icl(data),
    "sample": lambda model, data: model.sample(20)[0],
    "get_feature_names_out": lambda model, data: model.get_feature_names_out(),
    "doubtful_answers": lambda model, data: [
        one[:4] for one in model.doubtful_answers(data, LINKS, n_answers=4)
    ],
    "report": lambda model, data: str(model.report()),
    "table": lambda model, data: model.table(),
    "set_params": lambda model, data: model.set_params(random_state=0).random_state,
}
#: What is not about data, and methods that only estimators for Dask have.
OTHERS = {
    "get_params",
    "get_metadata_routing",
    "set_fit_request",
    "set_score_request",
    "set_callbacks",
    "to_local",
}


def methods(model):
    """Public methods of an estimator; some are there only for some parameters."""
    names = [name for name in dir(model) if not name.startswith("_")]
    return {name for name in names if callable(getattr(model, name)) and name != "local_class"}


@pytest.fixture(scope="module", params=sorted(linkwise.dask.__all__))
def models(request):
    """An estimator for Dask and the same fit in memory."""
    parameters = {"random_state": 0, **PARAMETERS.get(request.param, QUICK)}
    mine = getattr(linkwise.dask, request.param)(**parameters)
    quietly(lambda: mine.fit(DATA, **known(mine)))
    if request.param == "LinkedClustering":
        return mine, mine.to_local()  # in memory candidates vote, so that another fit would differ
    theirs = getattr(linkwise, request.param)(**parameters)
    return mine, quietly(lambda: theirs.fit(X, **known(theirs)))


def test_every_method_is_as_in_memory(models):
    mine, theirs = models
    assert methods(mine) - OTHERS <= CALLS.keys()
    # All that the estimator in memory has, but what turns results into frames.
    assert methods(theirs) - methods(mine) <= {"set_output"}
    for name in sorted(methods(mine) - OTHERS, key=lambda name: ("fit" in name, name)):
        found, wanted = (
            quietly(lambda name=name, model=model, data=data: CALLS[name](model, data))
            for model, data in ((mine, DATA), (theirs, X))
        )
        if isinstance(wanted, np.ndarray) and wanted.dtype.kind == "f" and name != "sample":
            assert isinstance(found, da.Array), name
        found = found.compute() if isinstance(found, da.Array) else found
        if name in ("get_feature_names_out", "table", "report", "doubtful_answers"):
            assert np.array_equal(found, wanted), name
        else:
            np.testing.assert_allclose(found, wanted, rtol=1e-8, atol=1e-12, err_msg=name)


def test_results_are_not_turned_into_frames_behind_the_user(models):
    """A frame of pandas would hold all rows in memory."""
    mine, _ = models
    with config_context(transform_output="pandas"):
        for name in methods(mine) & {"transform", "fit_transform", "predict_proba"}:
            assert isinstance(quietly(lambda name=name: CALLS[name](mine, DATA)), da.Array)
