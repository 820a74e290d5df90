"""Stored models that were damaged, forged or are in the way: refused with one line, or as good as new."""

from __future__ import annotations

import copy
import itertools
import json
import os
import re
import sys
import tempfile
import threading
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from linkwise import CPPC, PPC, ClassBeliefs
from linkwise._exports import ESTIMATORS
from linkwise.exceptions import ModelFileError
from linkwise.persistence import load_model, save_model
from linkwise.persistence.layout import LAYOUTS
from tests import warm_python
from tests.persistence.model_cases import CASES, data, fitted
from tests.repeats import examples

NEW = data()[0] + 0.01


@pytest.fixture(scope="module")
def pair():
    X = data()[0]
    return PPC(2, random_state=0).fit(X), PPC(3, random_state=0).fit(X)


def n_clusters(model):
    wanted = getattr(model, "n_clusters", None) or getattr(model, "n_components", None)
    return len(model.classes_) if wanted is None else wanted


@pytest.mark.parametrize("name", CASES)
def test_every_setting_comes_back(name, tmp_path):
    model = fitted(name)
    twin = load_model(save_model(model, tmp_path / "model"))
    assert vars(twin).keys() - {"_extension"} <= vars(model).keys()
    assert {key for key in vars(model) if key.endswith("_")} == {
        key for key in vars(twin) if key.endswith("_")
    }
    np.testing.assert_array_equal(twin.predict(NEW), model.predict(NEW))


def test_every_estimator_has_a_layout_and_a_case():
    assert LAYOUTS.keys() == ESTIMATORS.keys() | {"LinkedClustering", "GroupClassifier"}
    members = {type(fitted(name).best_estimator_).__name__ for name in CASES if name.startswith("linked-")}
    cases = {type(model).__name__ for model in CASES.values()}
    assert cases | {"GroupClassifier"} == LAYOUTS.keys()
    assert "GroupClassifier" in members


# What is in the way


def tree(folder):
    return {
        path.relative_to(folder).as_posix(): path.is_file() and path.read_bytes()
        for path in folder.rglob("*")
    }


@pytest.mark.parametrize(
    ("before", "blamed"),
    [
        ({"model.json": '{"a": 1}', "thesis.tex": "years"}, "model.json"),
        ({"model.json": "no JSON", "thesis.tex": "years"}, "model.json"),
        ({"thesis.tex": "years"}, "thesis.tex"),
        ({"thesis.tex": "years", "model.json": None}, "thesis.tex"),
        ({"columns.json": "[]", "model.json": None}, "columns.json"),
        (
            {"arrays-0123456789abcdef.npz/thesis.tex": "years", "model.json": None},
            "arrays-0123456789abcdef.npz",
        ),
    ],
)
def test_only_its_own_files_are_replaced(pair, tmp_path, before, blamed):
    """None stands for the file that save_model writes."""
    folder = tmp_path / "model"
    if None in before.values():
        save_model(pair[0], folder)
    for name, text in before.items():
        if text is not None:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
    state = tree(folder)
    with pytest.raises(FileExistsError, match=re.escape(f"{folder / blamed} is in the way")):
        save_model(pair[1], folder)
    assert tree(folder) == state
    (tmp_path / "file").write_text("years")
    with pytest.raises(FileExistsError, match="is a file"):
        save_model(pair[1], tmp_path / "file")
    assert (tmp_path / "file").read_text() == "years"


def test_a_link_stays_and_rights_follow_the_umask(pair, tmp_path):
    before = os.umask(0o027)
    try:
        (tmp_path / "link").symlink_to("real")
        for model in pair:
            save_model(model, tmp_path / "link")
    finally:
        os.umask(before)
    assert (tmp_path / "link").is_symlink()
    assert load_model(tmp_path / "real").n_components == 3
    assert (tmp_path / "real").stat().st_mode & 0o777 == 0o750
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "real").iterdir()} == {0o640}
    assert len(list((tmp_path / "real").iterdir())) == 2


@pytest.mark.parametrize("function", ["rename", "replace", "unlink", "fsync", "mkdir"])
def test_a_call_that_fails_loses_nothing(pair, tmp_path, monkeypatch, function):
    genuine, n_failures = getattr(os, function), 0
    for number in itertools.count(1):
        folder = tmp_path / str(number)
        save_model(pair[0], folder)
        left = [number]

        def fail(*arguments, left=left, **options):
            left[0] -= 1
            if left[0] == 0:
                raise OSError("no space")
            return genuine(*arguments, **options)

        with monkeypatch.context() as patch:
            patch.setattr(os, function, fail)
            try:
                save_model(pair[1], folder)
            except OSError:
                n_failures += 1
        assert load_model(folder).n_components in (2, 3)
        save_model(pair[1], folder)
        assert len(list(folder.iterdir())) == 2
        if left[0] > 0:
            break
    assert n_failures > 0 or function in ("rename", "mkdir")


def test_readers_see_a_whole_model_while_it_is_replaced(pair, tmp_path):
    folder = save_model(pair[0], tmp_path / "model")
    done, seen, errors = threading.Event(), [], []

    def read():
        while not done.is_set():
            try:
                model = load_model(folder)
                seen.append((model.n_components, len(model.means_)))
            except Exception as error:
                errors.append(error)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for model in pair * 15:
        save_model(model, folder)
    done.set()
    for reader in readers:
        reader.join()
    assert errors == []
    assert set(seen) <= {(2, 2), (3, 3)}
    assert seen


# Damaged and forged files


class Stored:
    """The two files of a model, to be changed."""

    def __init__(self, name):
        with tempfile.TemporaryDirectory() as folder:
            saved = save_model(fitted(name), Path(folder) / "model")
            self.content = json.loads((saved / "model.json").read_text())
            with np.load(saved / self.content["arrays"]) as arrays:
                self.arrays = {key: arrays[key] for key in arrays.files}

    def copy(self):
        return copy.deepcopy(self)

    def references(self):
        """The places where the JSON file speaks of an array, by the name of the array."""

        def walk(value):
            if isinstance(value, dict) and value.get("kind") == "array":
                yield value["name"], value
            elif isinstance(value, dict | list):
                for item in value.values() if isinstance(value, dict) else value:
                    yield from walk(item)

        return dict(walk(self.content))

    def declare(self):
        """Make the JSON file say what the arrays are now."""
        for name, reference in self.references().items():
            reference.update(dtype=self.arrays[name].dtype.str, shape=list(self.arrays[name].shape))

    def entry(self, place, name):
        """The pair of a fitted attribute or parameter in the JSON file."""
        return next(pair for pair in self.content[place]["pairs"] if pair[0] == name)

    def write(self, folder, **options):
        folder.mkdir(exist_ok=True)
        for path in folder.iterdir():
            path.unlink()
        (folder / "model.json").write_text(json.dumps(self.content))
        np.savez(folder / self.content["arrays"], **self.arrays)
        return folder


@pytest.fixture(scope="module")
def stored():
    kept = {}

    def of(name):
        if name not in kept:
            kept[name] = Stored(name)
        return kept[name].copy()

    return of


def refusal(folder):
    with pytest.raises(ModelFileError) as caught:
        load_model(folder)
    assert "\n" not in str(caught.value)
    assert str(folder) in caught.value.file
    return caught.value


def test_more_means_than_clusters_crash_nothing(stored, tmp_path):
    """Kernels read out of bounds; a process of its own shows a crash as a test that fails."""
    cases = {"ppc-full": ("means_", (100_000, 4)), "cop": ("cluster_centers_", (20_000, 4))}
    for name, (array, shape) in cases.items():
        forged = stored(name)
        forged.arrays[f"fitted/{array}"] = np.random.default_rng(0).normal(size=shape)
        forged.declare()
        forged.write(tmp_path / name)
    script = (
        "import sys, numpy; from linkwise.persistence import load_model\n"
        "for folder in sys.argv[1:]:\n"
        "    try: print(load_model(folder).predict(numpy.zeros((5, 4))))\n"
        "    except ValueError as error: print(type(error).__name__, error)"
    )
    folders = [tmp_path / name for name in cases]
    ran = warm_python.run([sys.executable, "-c", script, *folders])
    assert ran.returncode == 0, ran.stderr
    for line, (array, shape) in zip(ran.stdout.splitlines(), cases.values(), strict=True):
        assert line.startswith("ModelFileError")
        assert f"entry fitted/{array}: its shape is {shape}" in line


def change_array(name, change):
    def apply(stored):
        stored.arrays[name] = change(stored.arrays[name])
        stored.declare()

    return apply


def put(array, place, value):
    array[place] = value
    return array


@pytest.mark.parametrize(
    ("case", "change", "entry"),
    [
        ("ppc-full", change_array("fitted/labels_", lambda a: put(a, 0, 2013)), "fitted/labels_"),
        ("ppc-full", change_array("fitted/labels_", lambda a: put(a, 0, -1)), "fitted/labels_"),
        ("ppc-full", change_array("fitted/labels_", lambda a: a.astype(float)), "fitted/labels_"),
        ("ppc-full", change_array("fitted/labels_", lambda a: a.astype("i4")), "fitted/labels_"),
        ("ppc-full", change_array("fitted/weights_", lambda a: a[:2]), "fitted/weights_"),
        ("ppc-full", change_array("fitted/weights_", lambda a: a * 2), "fitted/weights_"),
        ("ppc-full", change_array("fitted/means_", lambda a: a[:, :3]), "fitted/means_"),
        ("ppc-full", change_array("fitted/means_", lambda a: put(a, (0, 0), np.nan)), "fitted/means_"),
        ("ppc-full", change_array("fitted/means_", lambda a: put(a, (0, 0), np.inf)), "fitted/means_"),
        (
            "ppc-full",
            change_array("fitted/precisions_cholesky_", lambda a: a[:, :3, :3]),
            "fitted/precisions_cholesky_",
        ),
        (
            "ppc-diag",
            change_array("fitted/precisions_cholesky_", lambda a: -a),
            "fitted/precisions_cholesky_",
        ),
        ("ppc-tied", change_array("fitted/covariances_", lambda a: a[0]), "fitted/covariances_"),
        ("ppc-spherical", change_array("fitted/covariances_", lambda a: a[:1]), "fitted/covariances_"),
        (
            "ppc-parts",
            change_array("fitted/responsibilities_", lambda a: a[:, [0, 1, 1]]),
            "fitted/responsibilities_",
        ),
        ("cppc-classes", change_array("fitted/classes_", lambda a: a[:2]), "fitted/beliefs_"),
        ("cppc-more", change_array("fitted/beliefs_", lambda a: a * 3), "fitted/beliefs_"),
        ("cppc-more", change_array("fitted/contingency_", lambda a: a.T.copy()), "fitted/contingency_"),
        (
            "hmrf-euclidean-None",
            change_array("fitted/cluster_centers_", lambda a: a[:2]),
            "fitted/cluster_centers_",
        ),
        ("hmrf-euclidean-diag", change_array("fitted/metric_", lambda a: a[:1]), "fitted/metric_"),
        ("hmrf-euclidean-full", change_array("fitted/metric_", lambda a: -a), "fitted/metric_"),
        ("hmrf-euclidean-per_cluster", change_array("fitted/metric_", lambda a: a[0]), "fitted/metric_"),
        ("hmrf-euclidean-per_cluster", change_array("fitted/metric_", lambda a: a * 0), "fitted/metric_"),
        (
            "hmrf-cosine-None",
            change_array("fitted/cluster_centers_", lambda a: a * 0),
            "fitted/cluster_centers_",
        ),
        ("hmrf-kl-diag", change_array("fitted/cluster_centers_", lambda a: -a), "fitted/cluster_centers_"),
        ("pck", change_array("fitted/violations_", lambda a: a.astype(np.int64)), "fitted/violations_"),
        ("ppc-labels", change_array("fitted/cluster_names_", lambda a: a[:3]), "fitted/cluster_names_"),
        (
            "cop-labels",
            change_array("fitted/cluster_names_", lambda a: a[[0, 0, 1, 2]]),
            "fitted/cluster_names_",
        ),
        ("hmrf-labels", change_array("fitted/contingency_", lambda a: a - 9), "fitted/contingency_"),
        ("spectral-labels", change_array("fitted/contingency_", lambda a: a[:2]), "fitted/contingency_"),
        ("spectral-dense", change_array("state/rows", lambda a: a[:-1]), "state/rows"),
        ("spectral-dense", change_array("state/rows", lambda a: a[:, :1]), "state/rows"),
        ("spectral-dense", change_array("state/rows", lambda a: a * 1e200), "state/rows"),
        ("spectral-dense", change_array("state/reference", lambda a: a * 1e200), "state/reference"),
        ("spectral-dense", change_array("state/reference", lambda a: a[:, :2]), "state/reference"),
        (
            "spectral-learning",
            change_array("fitted/embedding_centers_", lambda a: a * np.nan),
            "fitted/embedding_centers_",
        ),
    ],
)
def test_the_error_names_the_entry(stored, tmp_path, case, change, entry):
    forged = stored(case)
    change(forged)
    assert refusal(forged.write(tmp_path / "model")).entry == entry


@pytest.mark.parametrize(
    ("place", "name", "entry"),
    [
        ("fitted", "predict", "fitted/predict"),
        ("fitted", "_n_clusters", "fitted/_n_clusters"),
        ("fitted", "n_components", "fitted/n_components"),
        ("fitted", "__class__", "fitted/__class__"),
        ("fitted", "strange_", "fitted/strange_"),
        ("parameters", "fit", "parameters/fit"),
        ("parameters", "means_", "parameters/means_"),
    ],
)
def test_an_entry_replaces_nothing(stored, tmp_path, place, name, entry):
    forged = stored("ppc-full")
    forged.content[place]["pairs"].append([name, 3])
    assert refusal(forged.write(tmp_path / "model")).entry == entry
    missing = stored("ppc-full")
    gone = missing.content[place]["pairs"].pop()[0]
    if place == "parameters" or gone not in ("responsibilities_", "violation_probability_"):
        assert refusal(missing.write(tmp_path / "model")).entry == f"{place}/{gone}"


def test_what_the_archive_holds_must_be_declared(stored, tmp_path):
    folder = tmp_path / "model"
    undeclared = stored("ppc-full")
    undeclared.arrays["fitted/means_"] = np.zeros((500, 4))
    assert refusal(undeclared.write(folder)).entry == "fitted/means_"
    surplus = stored("ppc-full")
    surplus.arrays["fitted/more_"] = np.zeros(10)
    assert refusal(surplus.write(folder)).entry == "fitted/more_"
    missing = stored("ppc-full")
    del missing.arrays["fitted/means_"]
    assert refusal(missing.write(folder)).entry == "fitted/means_"
    pickled = stored("ppc-full")
    pickled.arrays["fitted/means_"] = np.full((3, 4), None, dtype=object)
    assert refusal(pickled.write(folder)).entry == "fitted/means_"
    elsewhere = stored("ppc-full")
    elsewhere.write(folder)
    elsewhere.content["arrays"] = "../arrays.npz"
    (folder / "model.json").write_text(json.dumps(elsewhere.content))
    assert refusal(folder).entry == "arrays"


def test_an_archive_that_expands_is_refused_unread(stored, tmp_path, monkeypatch):
    """A hundred megabytes of zeros in a few kilobytes, and the same bytes under several names."""
    bomb = stored("ppc-full")
    bomb.arrays["fitted/means_"] = np.zeros((3_000_000, 4))
    bomb.declare()
    folder = bomb.write(tmp_path / "model")
    np.savez_compressed(folder / bomb.content["arrays"], **bomb.arrays)
    monkeypatch.setattr(zipfile.ZipFile, "open", lambda *_: pytest.fail("it was opened"))
    assert "would expand to" in refusal(folder).reason


def test_deep_and_long_json(stored, tmp_path, monkeypatch):
    folder = stored("ppc-full").write(tmp_path / "model")
    file = folder / "model.json"
    text = file.read_text()
    for depth in (400, 3000, 200_000):
        nested = '{"kind": "list", "items": [' * depth + "1" + "]}" * depth
        file.write_text(text.replace('"fitted": {', f'"fitted": {nested}, "rest": {{'))
        refusal(folder)
    for value in ("NaN", "1e999", "9" * 5000):
        file.write_text(text.replace('"fitted": {', f'"format": {value}, "fitted": {{'))
        refusal(folder)
    monkeypatch.setattr("linkwise.persistence._LONGEST_JSON", 10)
    file.write_text(text)
    assert "longer than" in refusal(folder).reason


def test_a_model_that_was_changed_since_it_was_fitted_is_not_stored(pair, tmp_path):
    changed = copy.deepcopy(pair[0]).set_params(n_components=3)
    with pytest.raises(ValueError, match=r"fitted/means_: its shape is \(2, 4\), not \(3, 4\)"):
        save_model(changed, tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_what_is_known_of_classes_is_stored_together(tmp_path):
    model = copy.copy(fitted("ppc-labels"))
    del model.contingency_
    with pytest.raises(ValueError, match="contingency_"):
        save_model(model, tmp_path / "model")
    twin = load_model(save_model(fitted("ppc-labels"), tmp_path / "model"))
    assert twin.cluster_names_.tolist() == fitted("ppc-labels").cluster_names_.tolist()
    assert (twin.split_classes_, twin.shared_clusters_) == ({}, {})


def test_an_older_format_says_what_to_do(stored, tmp_path):
    old = stored("ppc-full")
    old.content["format"] = 1
    assert "Fit and save the model again" in refusal(old.write(tmp_path / "model")).reason


def test_beliefs_come_back(tmp_path):
    X, y = data()
    model = CPPC(4, beliefs=ClassBeliefs.keep([0, 1, 2]).split(1), random_state=0).fit(X, y)
    folder = save_model(model, tmp_path / "model")
    assert load_model(folder).beliefs == model.beliefs
    file = folder / "model.json"
    content = json.loads(file.read_text())
    pair = next(pair for pair in content["parameters"]["pairs"] if pair[0] == "beliefs")
    pair[1]["items"] = [0, 0, 1]
    file.write_text(json.dumps(content))
    assert refusal(folder).entry == "parameters/beliefs"


# Fuzz: whatever is changed, a refusal in one line or a model that predicts labels in range

FUZZED = [
    "ppc-full", "ppc-parts", "ppc-noise-source", "em-points", "cppc-classes", "cppc-sampled", "cop",
    "hmrf-euclidean-full", "hmrf-euclidean-per_cluster", "hmrf-kl-diag", "hmrf-cosine-diag", "spectral-auto",
    "spectral-learning",
]  # fmt: skip

BOUNDED = settings(
    max_examples=examples(60, 15), suppress_health_check=[HealthCheck.function_scoped_fixture], database=None
)

VALUES = st.sampled_from(
    [None, True, False, -1, 0, 1, 2, 7, 10**6, 2**62, 2**70, 0.5, -0.0, 1e308, "", "full", "diag", "x" * 300,
     [], [[]], {}, {"kind": "list", "items": []}, {"kind": "float", "value": "nan"},
     {"kind": "float", "value": "1"}, {"kind": "dict", "pairs": []},
     {"kind": "array", "name": "fitted/labels_", "dtype": "<i8", "shape": [50]},
     {"kind": "dict", "pairs": [[1, 2], [1, 3]]}, {"kind": "objects", "shape": [2], "items": [1, "a"]}]
)  # fmt: skip

ARRAY_CHANGES = [
    lambda a: a[:-1], lambda a: a[1:], lambda a: np.concatenate([a, a]), lambda a: a.T.copy(),
    lambda a: a.reshape(-1), lambda a: a[np.newaxis], lambda a: a[:0], lambda a: a.astype("f4"),
    lambda a: a.astype("i8"), lambda a: a.astype("i4"), lambda a: a.astype("u8"), lambda a: a.astype(bool),
    lambda a: a.astype("S5"), lambda a: a.astype("U5"), lambda a: a.astype("c16"), lambda a: a.astype(">f8"),
    lambda a: np.asfortranarray(a), lambda a: -a, lambda a: a * 0, lambda a: a * 1e200, lambda a: a * 1e-200,
    lambda a: a + 1, lambda a: a * np.nan, lambda a: a + np.inf,
    lambda a: np.tile(a, (300, *[1] * (a.ndim - 1))), lambda a: np.broadcast_to(a.flat[0], a.shape).copy(),
]  # fmt: skip


def outcome(folder):
    """What loading and predicting came to."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = load_model(folder)
        except ModelFileError as error:
            message = str(error)
        else:
            labels, message = model.predict(NEW), None
    if message is not None:
        assert "\n" not in message
        assert str(folder) in message
        return "refused"
    assert labels.shape == (len(NEW),)
    assert labels.min() >= 0
    assert labels.max() < n_clusters(model)
    return "works"


def places(value):
    """All containers of the JSON tree with the keys under which they hold something."""
    if isinstance(value, dict | list):
        for key in value.keys() if isinstance(value, dict) else range(len(value)):
            yield value, key
            yield from places(value[key])


@BOUNDED
@given(name=st.sampled_from(FUZZED), draw=st.data())
def test_changed_json(stored, tmp_path_factory, name, draw):
    forged = stored(name)
    arrays = forged.content["arrays"]
    for _ in range(draw.draw(st.integers(1, 2))):
        found = list(places(forged.content))
        container, key = found[draw.draw(st.integers(0, len(found) - 1))]
        if draw.draw(st.booleans()):
            container[key] = copy.deepcopy(draw.draw(VALUES))
        elif isinstance(container, list):
            container.insert(key, copy.deepcopy(container[key]))
        else:
            del container[key]
    folder = tmp_path_factory.getbasetemp() / "changed_json"
    forged_content, forged.content = forged.content, {"arrays": arrays}
    forged.write(folder)
    (folder / "model.json").write_text(json.dumps(forged_content))
    outcome(folder)


@BOUNDED
@given(name=st.sampled_from(FUZZED), draw=st.data())
def test_changed_arrays(stored, tmp_path_factory, name, draw):
    forged = stored(name)
    array = draw.draw(st.sampled_from(sorted(forged.arrays)))
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            forged.arrays[array] = draw.draw(st.sampled_from(ARRAY_CHANGES))(forged.arrays[array])
        except (TypeError, ValueError):  # not every array can be changed in every way
            return
    if draw.draw(st.booleans()):
        forged.declare()
    outcome(forged.write(tmp_path_factory.getbasetemp() / "changed_arrays"))


@BOUNDED
@given(name=st.sampled_from(FUZZED), draw=st.data())
def test_damaged_bytes(stored, tmp_path_factory, name, draw):
    whole = stored(name)
    folder = whole.write(tmp_path_factory.getbasetemp() / "damaged")
    file = folder / draw.draw(st.sampled_from(["model.json", whole.content["arrays"]]))
    content = bytearray(file.read_bytes())
    # The directory of a ZIP file is at its end, and most of the rest are numbers.
    span = draw.draw(st.sampled_from([len(content), 2000]))
    place = len(content) - 1 - draw.draw(st.integers(0, min(span, len(content)) - 1))
    if draw.draw(st.booleans()):
        content[place] ^= 1 << draw.draw(st.integers(0, 7))
    else:
        del content[place:]
    file.write_bytes(bytes(content))
    outcome(folder)


def test_the_fuzz_finds_both_outcomes(stored, tmp_path):
    whole = stored("ppc-full")
    assert outcome(whole.write(tmp_path / "model")) == "works"
    (tmp_path / "model" / "model.json").write_text("{")
    assert outcome(tmp_path / "model") == "refused"
