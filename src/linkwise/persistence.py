"""Fitted estimators on disk without pickles: loading a model runs no code of the file.

A model is a folder with ``model.json`` (class, parameters, small attributes, versions) and ``arrays.npz``.
"""

from __future__ import annotations

import importlib
import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import sklearn

from linkwise._exports import ESTIMATORS
from linkwise.beliefs import ClassBeliefs

__all__ = ["load_model", "save_model"]

#: Rises when older versions of linkwise could no longer read what is written.
FORMAT = 1


def save_model(model: Any, path: str | os.PathLike[str]) -> Path:
    """Write a fitted estimator of linkwise to a folder.

    Parameters
    ----------
    model : estimator
        Fitted.
    path : path
        The folder; an earlier model in it is replaced once the new one is complete.

    Returns
    -------
    Path
        The folder.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from linkwise import PPC
    >>> from linkwise.persistence import load_model, save_model
    >>> from sklearn.datasets import load_iris
    >>> X, _ = load_iris(return_X_y=True)
    >>> model = PPC(3, random_state=0).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     twin = load_model(save_model(model, Path(folder) / "iris"))
    >>> bool((twin.predict(X) == model.predict(X)).all())
    True
    """
    name = type(model).__name__
    if ESTIMATORS.get(name) != type(model).__module__:
        raise TypeError(f"{name} is no estimator of linkwise; use joblib or skops to store it")
    fitted = {key: value for key, value in vars(model).items() if key.endswith("_") and key[0] != "_"}
    if not fitted:
        raise ValueError(f"this {name} is not fitted; call fit before saving it")
    arrays: dict[str, Any] = {}
    content = {
        "format": FORMAT,
        "linkwise": importlib.import_module("linkwise").__version__,
        "scikit-learn": sklearn.__version__,
        "class": name,
        "parameters": _encode(model.get_params(deep=False), arrays, "parameters"),
        "fitted": _encode(fitted, arrays, "fitted"),
    }
    if hasattr(model, "_prediction_state"):
        content["state"] = _encode(model._prediction_state(), arrays, "state")
    return _write(Path(path), content, arrays)


def load_model(path: str | os.PathLike[str]) -> Any:
    """Read an estimator written by :func:`save_model`.

    Parameters
    ----------
    path : path
        The folder.

    Returns
    -------
    estimator
        Fitted.

    Examples
    --------
    See :func:`save_model`.
    """
    folder = Path(path)
    try:
        content = json.loads((folder / "model.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileNotFoundError(f"{folder} holds no model.json; pass the folder save_model wrote") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{folder / 'model.json'} is damaged: {error}") from None
    if not isinstance(content, dict) or "class" not in content or "format" not in content:
        raise ValueError(f"{folder / 'model.json'} was not written by linkwise")
    if content["format"] > FORMAT:
        raise ValueError(
            f"{folder} was written by linkwise {content.get('linkwise')}, in format {content['format']}; "
            f"this version reads up to format {FORMAT}. Install a newer linkwise."
        )
    name = content["class"]
    if name not in ESTIMATORS:
        raise ValueError(f"{folder} holds a {name!r}, which is no estimator of linkwise")
    with np.load(folder / "arrays.npz", allow_pickle=False) as stored:
        arrays = {key: stored[key] for key in stored.files}
    model = getattr(importlib.import_module(ESTIMATORS[name]), name)(**_decode(content["parameters"], arrays))
    for key, value in _decode(content["fitted"], arrays).items():
        setattr(model, key, value)
    if "state" in content:
        model._restore_prediction(_decode(content["state"], arrays))
    return model


def _encode(value: Any, arrays: dict[str, Any], place: str) -> Any:
    """Value as JSON; arrays go to ``arrays`` under the name of their place."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        # JSON has no NaN and no infinity.
        return value if np.isfinite(value) else {"kind": "float", "value": repr(value)}
    if isinstance(value, np.generic):
        return _encode(value.item(), arrays, place)
    if isinstance(value, np.ndarray):
        if value.dtype == object:
            items = [_encode(item, arrays, f"{place}/{i}") for i, item in enumerate(value.ravel())]
            return {"kind": "objects", "shape": list(value.shape), "items": items}
        arrays[place] = value
        return {"kind": "array", "name": place}
    if isinstance(value, list | tuple):
        items = [_encode(item, arrays, f"{place}/{i}") for i, item in enumerate(value)]
        return {"kind": type(value).__name__, "items": items}
    if isinstance(value, dict):
        pairs = [
            [_encode(key, arrays, f"{place}/key{i}"), _encode(item, arrays, f"{place}/{key}")]
            for i, (key, item) in enumerate(value.items())
        ]
        return {"kind": "dict", "pairs": pairs}
    if isinstance(value, ClassBeliefs):
        values = _encode(value.values, arrays, place)
        return {
            "kind": "beliefs",
            "values": values,
            "items": [_encode(c, arrays, place) for c in value.classes],
        }
    if isinstance(value, np.random.RandomState | np.random.Generator):
        # A generator that was used says nothing about a fitted model.
        return None
    raise TypeError(
        f"{place} is a {type(value).__name__}, which cannot be stored without pickle; "
        "set it to a number, a string or an array before saving"
    )


def _decode(value: Any, arrays: dict[str, Any]) -> Any:
    """Undo ``_encode``."""
    if not isinstance(value, dict):
        return value
    kind = value["kind"]
    if kind == "float":
        return float(value["value"])
    if kind == "array":
        return arrays[value["name"]]
    if kind == "dict":
        return {_decode(key, arrays): _decode(item, arrays) for key, item in value["pairs"]}
    items = [_decode(item, arrays) for item in value["items"]]
    if kind == "beliefs":
        return ClassBeliefs(_decode(value["values"], arrays), items)
    if kind == "objects":
        array = np.empty(len(items), dtype=object)
        array[:] = items
        return array.reshape(value["shape"])
    return tuple(items) if kind == "tuple" else items


def _write(folder: Path, content: dict[str, Any], arrays: dict[str, Any]) -> Path:
    """Write into a folder beside the target, then rename: an interrupted run leaves no half model."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    if folder.exists() and not (folder / "model.json").exists():
        raise FileExistsError(f"{folder} exists and holds no model; choose another folder")
    draft = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        (draft / "model.json").write_text(json.dumps(content, indent=1, allow_nan=False), encoding="utf-8")
        np.savez(draft / "arrays.npz", **arrays)
        if folder.exists():
            shutil.rmtree(folder)
        draft.replace(folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return folder
