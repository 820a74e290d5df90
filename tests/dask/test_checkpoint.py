"""A fit that was interrupted goes on from its checkpoint and ends where the undisturbed one does."""

from __future__ import annotations

import errno
import signal
import sys

import numpy as np
import pytest

import linkwise
from linkwise.dask import PPC, ConstrainedEM, HMRFKMeans, LinkedClustering, PCKMeans, checkpoint, passes
from tests import warm_python
from tests.dask.dask_cases import blobs, lazy, links_of, quietly

X, Y = blobs()
DATA = lazy(X, ((50, 0, 70), (3,)))
QUICK = linkwise.PPC(n_init=1, max_iter=6, tol=0.0)
CASES = {
    "no links": (PPC, "none", {}),
    "soft": (PPC, "soft", {"n_init": 2}),
    "an engine that starts from the last step": (PPC, "soft", {"inference": "mean_field"}),
    "dense hard links": (PPC, "labels", {"covariance_type": "tied"}),
    "noisy": (PPC, "noisy", {"learn_noise": "kind"}),
    "chunklets": (ConstrainedEM, "hard", {"covariance_type": "diag"}),
    "k-means": (PCKMeans, "none", {"init": X[:3]}),
    "k-means, a metric": (HMRFKMeans, "hard", {"metric": "full", "n_init": 2}),
    # Two starts are far away, so that their clusters are empty at first.
    "k-means, empty clusters": (PCKMeans, "hard", {"n_clusters": 5, "init": np.vstack([X[:3], X[:2] + 1e3])}),
    "the winner of a choice": (LinkedClustering, "hard", {"candidates": [QUICK], "cv": 2}),
}
ATTRIBUTES = {
    "means_", "covariances_", "weights_", "lower_bounds_", "cluster_centers_", "metric_", "objectives_",
    "violations_", "n_iter_", "converged_",
}  # fmt: skip


class Interrupted(Exception):
    pass


@pytest.fixture
def passes_of(monkeypatch):
    """Counts passes over the data; one of them can be made to fail."""
    count, compute = {"emsums": 0, "fails": None}, passes.Runner.compute

    def counted(self, name, layer, key):
        if "emsums" in name or "_assign" in name:
            count["emsums"] += 1
            if count["emsums"] == count["fails"]:
                raise Interrupted
        return compute(self, name, layer, key)

    monkeypatch.setattr(passes.Runner, "compute", counted)
    return count


def make(case, folder):
    kind, links, parameters = CASES[case]
    if kind is not LinkedClustering:
        parameters = {"n_init": 1, "max_iter": 9, "tol": 0.0, **parameters}
    return kind(**{"n_clusters": 3, "random_state": 0, "checkpoint": folder, **parameters}), links_of(
        Y, links
    )


@pytest.mark.parametrize("case", CASES)
def test_ends_at_the_same_parameters(case, tmp_path, passes_of):
    undisturbed, links = make(case, None)
    quietly(lambda: undisturbed.fit(DATA, constraints=links))
    n_passes, passes_of["emsums"] = passes_of["emsums"], 0
    folder = tmp_path / "runs"
    n_rest = min(3, n_passes - 3)
    for fails in (n_passes - n_rest, 2):
        passes_of["fails"], passes_of["emsums"] = fails, 0
        model, _ = make(case, folder)
        with pytest.raises(Interrupted):
            quietly(lambda model=model: model.fit(DATA, constraints=links))
    passes_of["fails"], passes_of["emsums"] = None, 0
    model, _ = make(case, folder)
    quietly(lambda: model.fit(DATA, constraints=links))
    # The pass that failed last, and those after it.
    assert passes_of["emsums"] == n_rest
    for one, other in ((model, undisturbed), *_winners(model, undisturbed)):
        for name in ATTRIBUTES & {*vars(other), "violations_"}:
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    np.testing.assert_array_equal(model.labels_.compute(), undisturbed.labels_.compute())
    assert list(folder.iterdir()) == []


def _winners(model, other):
    return [(model.best_estimator_, other.best_estimator_)] if hasattr(other, "best_estimator_") else []


SCRIPT = """
import os, signal, sys
import dask
from linkwise.dask import passes
from tests.dask import test_checkpoint as case

compute, count = passes.Runner.compute, 0

def deadly(self, name, layer, key):
    global count
    count += "emsums" in name
    if count == 12:
        os.kill(os.getpid(), signal.SIGKILL)
    return compute(self, name, layer, key)

passes.Runner.compute = deadly
passes._FEWEST_NUMBERS = 1
model, links = case.make("soft", sys.argv[1])
with dask.config.set(scheduler="synchronous"):
    case.quietly(lambda: model.fit(case.DATA, constraints=links))
"""


def test_the_whole_process_is_killed(tmp_path, passes_of):
    undisturbed, links = make("soft", None)
    quietly(lambda: undisturbed.fit(DATA, constraints=links))
    n_passes, passes_of["emsums"] = passes_of["emsums"], 0
    ended = warm_python.run([sys.executable, "-c", SCRIPT, str(tmp_path)], timeout=300)
    assert ended.returncode == -signal.SIGKILL
    assert [path.name for path in tmp_path.iterdir()] == ["start-0.npz"]
    model, _ = make("soft", tmp_path)
    quietly(lambda: model.fit(DATA, constraints=links))
    assert passes_of["emsums"] < n_passes
    for name in ("means_", "covariances_", "weights_", "lower_bounds_", "violation_probability_"):
        np.testing.assert_array_equal(getattr(model, name), getattr(undisturbed, name), err_msg=name)


class TestRefusals:
    @pytest.fixture
    def interrupted(self, tmp_path, passes_of):
        passes_of["fails"] = 4
        model, links = make("no links", tmp_path)
        with pytest.raises(Interrupted):
            quietly(lambda: model.fit(DATA, constraints=links))
        passes_of["fails"] = None
        return model

    def test_another_fit(self, interrupted):
        for parameters, links, data, word in (
            ({"covariance_type": "diag"}, None, DATA, "covariance_type"),
            ({}, links_of(Y, "soft"), DATA, "constraints"),
            ({}, None, lazy(X[:90], ((90,), (3,))), "rows of X"),
            ({"means_init": X[:3]}, None, DATA, "means_init"),
            ({}, None, lazy(X[::-1] + 0.1, DATA.chunks), "values of X"),
        ):
            model = PPC(**{**interrupted.get_params(), **parameters})
            with pytest.raises(ValueError, match=f"another fit: {word} differs; remove it"):
                quietly(lambda model=model, data=data, links=links: model.fit(data, constraints=links))

    def test_parameters_that_change_nothing(self, interrupted, passes_of):
        model = PPC(**{**interrupted.get_params(), "verbose": 0, "n_jobs": 2})
        passes_of["emsums"] = 0
        quietly(lambda: model.fit(DATA))
        assert passes_of["emsums"] == model.n_iter_ - 3

    @pytest.mark.parametrize("damage", [b"", b"PK\x03\x04 no archive", None])
    def test_a_damaged_file(self, interrupted, tmp_path, damage):
        path = tmp_path / "start-0.npz"
        path.write_bytes(path.read_bytes()[:-200] if damage is None else damage)
        with pytest.raises(ValueError, match=r"start-0\.npz is no checkpoint that can be read .*; remove it"):
            quietly(lambda: interrupted.fit(DATA))

    def test_of_k_means(self, tmp_path, passes_of):
        """Another fit and a damaged file are refused; a pass that is missing is done again."""
        passes_of["fails"] = 4
        model, _ = make("k-means", tmp_path)
        with pytest.raises(Interrupted):
            model.fit(DATA)
        passes_of["fails"] = None
        with pytest.raises(ValueError, match="another fit: weight differs; remove it"):
            PCKMeans(**{**model.get_params(), "weight": 4.0}).fit(DATA)
        with pytest.raises(ValueError, match="another fit: values of X differs; remove it"):
            model.fit(DATA + 1.0)
        (tmp_path / "pass-1.npz").write_bytes(b"PK")
        with pytest.raises(ValueError, match=r"pass-1\.npz is no checkpoint that can be read"):
            model.fit(DATA)
        (tmp_path / "pass-1.npz").unlink()
        assert quietly(lambda: model.fit(DATA)).n_iter_ > 0
        assert list(tmp_path.iterdir()) == []

    def test_a_full_disk(self, interrupted, tmp_path, monkeypatch):
        """The error names the file, and the checkpoint before it stays."""
        path = tmp_path / "start-0.npz"
        before = path.read_bytes()

        def full(file, **arrays):
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(checkpoint.np, "savez", full)
        with pytest.raises(OSError, match=r"No space left on device: .*start-0\.npz"):
            quietly(lambda: interrupted.fit(DATA))
        assert path.read_bytes() == before
        assert [entry.name for entry in tmp_path.iterdir()] == ["start-0.npz"]
