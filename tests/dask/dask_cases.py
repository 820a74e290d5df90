"""Data, links and chunkings for the tests of ``linkwise.dask``, and the comparison with memory."""

from __future__ import annotations

import warnings

import dask.array as da
import numpy as np
from dask.base import tokenize
from hypothesis import strategies as st

from linkwise import Constraints


def blobs(n=120, d=3, k=3, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, size=n)
    centres = 3.0 * rng.normal(size=(k, d))
    return (rng.normal(size=(n, d)) + centres[y] + 5.0).astype(dtype), y


def links_of(y, kind):
    """Links within and across chunks."""
    n_pairs = len(y) // 3
    return {
        "none": lambda: None,
        "hard": lambda: Constraints.sample(y, n_pairs, random_state=1),
        "soft": lambda: Constraints.sample(y, n_pairs, overlap=True, certainty=0.9, random_state=2),
        "noisy": lambda: Constraints.sample(
            y, n_pairs, overlap=True, flip=0.15, certainty=0.8, random_state=3
        ),
        "labels": lambda: Constraints.from_labels(np.where(np.arange(len(y)) % 4, -1, y)),
    }[kind]()


@st.composite
def chunkings(draw, n, d):
    """Sizes of chunks along rows, empty ones among them, and along columns."""
    cuts = sorted(draw(st.lists(st.integers(0, n), max_size=6)))
    rows = tuple(np.diff([0, *cuts, n]).tolist())
    columns = draw(st.sampled_from([(d,), (1, d - 1)] if d > 1 else [(d,)]))
    return rows, columns


def lazy(X, chunks):
    """A Dask array of these chunks, empty ones too, which ``from_array`` would refuse."""
    places = [np.concatenate([[0], np.cumsum(sizes)]) for sizes in chunks]
    name = f"lazy-{tokenize(X, chunks)}"
    graph = {
        (name, i, j): X[places[0][i] : places[0][i + 1], places[1][j] : places[1][j + 1]]
        for i in range(len(chunks[0]))
        for j in range(len(chunks[1]))
    }
    return da.Array(graph, name, chunks, dtype=X.dtype)


def quietly(call):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return call()


def same_value(mine, theirs, tolerance, name):
    if isinstance(mine, da.Array):
        mine = mine.compute()
    if isinstance(theirs, dict):
        assert mine.keys() == theirs.keys(), name
        for key in theirs:
            same_value(mine[key], theirs[key], tolerance, f"{name}[{key!r}]")
    elif isinstance(theirs, list) and theirs and isinstance(theirs[0], dict):
        assert len(mine) == len(theirs), name
        for place, (one, other) in enumerate(zip(mine, theirs, strict=True)):
            same_value(one, other, tolerance, f"{name}[{place}]")
    elif isinstance(theirs, list) and theirs and isinstance(theirs[0], str):
        assert mine == theirs, name
    elif isinstance(theirs, np.ndarray) and theirs.dtype.kind in "OUS":
        np.testing.assert_array_equal(mine, theirs, err_msg=name)
    elif isinstance(theirs, np.ndarray | float | list):
        if np.asarray(theirs).dtype.kind in "biu":
            np.testing.assert_array_equal(mine, theirs, err_msg=name)
        else:
            np.testing.assert_allclose(mine, theirs, rtol=tolerance, atol=tolerance, err_msg=name)
    else:
        assert mine == theirs, name


def assert_same_fit(mine, theirs, tolerance=1e-8):
    """All fitted attributes agree; ``mine`` is the estimator for Dask."""
    names = {name for name in vars(theirs) if name.endswith("_") and not name.startswith("_")}
    assert {name for name in vars(mine) if name.endswith("_") and not name.startswith("_")} == names
    for name in sorted(names):
        same_value(getattr(mine, name), getattr(theirs, name), tolerance, name)
