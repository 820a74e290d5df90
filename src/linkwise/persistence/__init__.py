"""Fitted estimators on disk without pickles: loading a model runs no code of the file.

A model is a folder with ``model.json`` (class, parameters, small attributes, versions, and the type and shape
of every array) and a file of arrays whose name holds a digest of them. A model is replaced by writing its
arrays under their own name first and then exchanging ``model.json``, which is one rename: readers find the
earlier model or the new one, and a run that is killed leaves the earlier one as it was.

What is read is checked against the layouts of ``linkwise.persistence.layout`` before it becomes an
estimator.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import math
import os
import re
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import sklearn

from linkwise._exports import ESTIMATORS, MODULES
from linkwise._files import replacing, settle, sweep, together
from linkwise.beliefs import ClassBeliefs
from linkwise.exceptions import ModelFileError
from linkwise.persistence.checks import LayoutError
from linkwise.persistence.layout import MEMBERS, check_fitted

__all__ = ["load_model", "save_model"]

#: Where the estimators are that can be stored.
_KINDS = {**ESTIMATORS, "LinkedClustering": MODULES["LinkedClustering"]}

#: Rises when what is written cannot be read by older versions of linkwise, or the other way round.
FORMAT = 3

_JSON = "model.json"
_ARRAYS = re.compile(r"arrays(-[0-9a-f]{16})?\.npz")
_DRAFT = re.compile(r"\.(arrays-[0-9a-f]{16}|model)\.linkwise-[0-9a-f]{16}\.(npz|json)")
#: Without a time unit, or with one.
_TYPE = re.compile(r"[<>|=][biufcSUmM][1-9][0-9]{0,5}(\[[0-9a-zA-Z]{1,8}\])?")
#: Arrays are in the other file: this one is small.
_LONGEST_JSON = 1 << 28


def save_model(model: Any, path: str | os.PathLike[str]) -> Path:
    """Write a fitted estimator of linkwise to a folder.

    Parameters
    ----------
    model : estimator
        Fitted.
    path : path
        The folder; an earlier model in it is replaced once the new one is complete. A link to a folder stays,
        and the folder is written to.

    Returns
    -------
    Path
        The folder.

    Raises
    ------
    FileExistsError
        If the path is taken by anything but a model, or if other files lie beside the model: nothing was
        changed.
    TypeError
        If it is no estimator of linkwise, or holds something that cannot be stored without pickle: a
        :class:`LinkedClustering` that has estimators of yours among its ``candidates``.

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
    if type(model).__module__.startswith("linkwise.dask"):
        raise TypeError(f"this {name} has its rows in Dask; save model.to_local(), the estimator in memory")
    if _KINDS.get(name) != type(model).__module__:
        raise TypeError(f"{name} is no estimator of linkwise; use joblib or skops to store it")
    arrays: dict[str, Any] = {}
    content = {
        "format": FORMAT,
        "linkwise": importlib.import_module("linkwise").__version__,
        "scikit-learn": sklearn.__version__,
        **_content(model, arrays, ""),
    }
    content["arrays"] = f"arrays-{_digest(arrays)}.npz"
    try:
        _assemble(content, arrays)
    except LayoutError as error:
        raise ValueError(
            f"this {name} cannot be stored: {error}; fit it again after changing its parameters"
        ) from None
    _write(Path(path), content, arrays)
    return Path(path)


def _content(model: Any, arrays: dict[str, Any], place: str) -> dict[str, Any]:
    """What is stored of an estimator, and of the members of one that has some."""
    fitted = {key: value for key, value in vars(model).items() if key.endswith("_") and key[0] != "_"}
    if not fitted:
        raise ValueError(f"this {type(model).__name__} is not fitted; call fit before saving it")
    content: dict[str, Any] = {"class": type(model).__name__}
    if content["class"] == "LinkedClustering":
        from linkwise.persistence import votes

        best, fitted = fitted["best_estimator_"], votes.fitted_values(fitted)
        content["votes"] = _encode(votes.votes_of(best), arrays, "votes")
        content["members"] = [
            _content(one, arrays, f"members/{number}/") for number, one in enumerate(votes.members_of(best))
        ]
    content["parameters"] = _encode(model.get_params(deep=False), arrays, f"{place}parameters")
    content["fitted"] = _encode(fitted, arrays, f"{place}fitted")
    if hasattr(model, "_prediction_state"):
        content["state"] = _encode(model._prediction_state(), arrays, f"{place}state")
    return content


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

    Raises
    ------
    ModelFileError
        If the model is damaged, was changed by hand, or is of another version; it names the file and the
        entry.

    Examples
    --------
    See :func:`save_model`.
    """
    folder = Path(path)
    file = str(folder / _JSON)
    try:
        content = _read_json(folder)
        arrays = None
        while arrays is None:
            try:
                arrays = _read_arrays(folder / content["arrays"], dict(_declared(content)))
            except FileNotFoundError:
                # Another process may have replaced the model since its first file was read, even twice, by
                # another model and by the same one again.
                before, content = content, _read_json(folder)
                missing = folder / content["arrays"]
                if content == before and not missing.exists():
                    raise ModelFileError(str(missing), None, "it is missing; save the model again") from None
        return _assemble(content, arrays)
    except LayoutError as error:
        raise ModelFileError(file, error.entry, f"{error.reason}; fit and save the model again") from None
    except RecursionError:
        raise ModelFileError(file, None, "its entries are nested too deeply; save the model again") from None


def _assemble(content: Mapping[str, Any], arrays: Mapping[str, Any]) -> Any:
    """Make an estimator from what was read, once all of it was checked."""
    parts = {
        place: _decode(content[place], arrays, place)
        for place in ("parameters", "fitted", "state")
        if place in content
    }
    for place, part in parts.items():
        if not isinstance(part, dict) or not all(isinstance(key, str) for key in part):
            raise LayoutError(place, "it must be a table of named entries")
    kind = getattr(importlib.import_module({**MEMBERS, **_KINDS}[content["class"]]), content["class"])
    known = kind().get_params(deep=False)
    for key in {**parts["parameters"], **known}:
        if (key in known) != (key in parts["parameters"]):
            raise LayoutError(
                f"parameters/{key}",
                "it is missing" if key in known else f"{kind.__name__} has no such parameter",
            )
    model = kind(**parts["parameters"])
    check_fitted(model, parts["fitted"], parts.get("state"))
    if content["class"] == "LinkedClustering":
        from linkwise.persistence import votes

        members = [_assemble_member(content, number, arrays) for number in range(len(content["members"]))]
        votes.restore(model, parts["fitted"], _decode(content["votes"], arrays, "votes"), members)
        return model
    for key, value in parts["fitted"].items():
        setattr(model, key, value)
    if "state" in parts:
        model._restore_prediction(parts["state"])
    return model


def _assemble_member(content: Mapping[str, Any], number: int, arrays: Mapping[str, Any]) -> Any:
    """Make one of the estimators that vote."""
    try:
        return _assemble(content["members"][number], arrays)
    except LayoutError as error:
        raise LayoutError(f"members/{number}/{error.entry}", error.reason) from None


def _encode(value: Any, arrays: dict[str, Any], place: str) -> Any:
    """Turn a value into JSON; arrays go to ``arrays`` under the name of their place."""
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
        if not _TYPE.fullmatch(value.dtype.str):
            raise TypeError(f"{place} is an array of {value.dtype}, which cannot be stored; convert it")
        arrays[place] = value
        return {"kind": "array", "name": place, "dtype": value.dtype.str, "shape": list(value.shape)}
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


#: What each kind of value consists of.
_PARTS: dict[str, dict[str, type]] = {
    "float": {"value": str},
    "array": {"name": str, "dtype": str, "shape": list},
    "objects": {"shape": list, "items": list},
    "list": {"items": list},
    "tuple": {"items": list},
    "dict": {"pairs": list},
    "beliefs": {"values": dict, "items": list},
}


def _decode(value: Any, arrays: Mapping[str, Any], place: str) -> Any:
    """Undo ``_encode``."""
    if not isinstance(value, dict):
        if isinstance(value, list):
            raise LayoutError(place, "it is a bare list, which linkwise never writes")
        return value
    kind = value.get("kind")
    parts = _PARTS.get(kind) if isinstance(kind, str) else None
    if parts is None or set(value) != {"kind", *parts}:
        raise LayoutError(place, "it is of no kind that linkwise writes")
    for part, wanted in parts.items():
        if not isinstance(value[part], wanted):
            raise LayoutError(f"{place}/{part}", f"it must be a {wanted.__name__}")
    if kind == "float":
        if value["value"] not in ("nan", "inf", "-inf"):
            raise LayoutError(place, f"{value['value'][:20]!r} is neither nan nor infinite")
        return float(value["value"])
    if kind == "array":
        if value["name"] not in arrays:
            raise LayoutError(place, f"there is no array {value['name'][:80]!r}")
        return arrays[value["name"]]
    if kind == "dict":
        return dict(_pairs(value["pairs"], arrays, place))
    items = [_decode(item, arrays, f"{place}/{i}") for i, item in enumerate(value["items"])]
    if kind == "list":
        return items
    if kind == "tuple":
        return tuple(items)
    if any(isinstance(item, dict | list | tuple | np.ndarray) for item in items):
        raise LayoutError(place, "it holds something else than names and numbers")
    if kind == "beliefs":
        try:
            return ClassBeliefs(_decode(value["values"], arrays, place), items)
        except (ValueError, TypeError) as error:
            raise LayoutError(place, str(error)) from None
    if _shape(value["shape"], place) != (len(items),):
        raise LayoutError(place, f"{len(items)} items are no row of shape {value['shape']}")
    row = np.empty(len(items), dtype=object)
    row[:] = items
    return row


def _pairs(pairs: list[Any], arrays: Mapping[str, Any], place: str) -> Iterator[tuple[Any, Any]]:
    """Yield keys and values of a dict."""
    for number, pair in enumerate(pairs):
        if not isinstance(pair, list) or len(pair) != 2:
            raise LayoutError(f"{place}/{number}", "it must be a key and a value")
        key = _decode(pair[0], arrays, f"{place}/{number}")
        if key is not None and not isinstance(key, str | int | float):
            raise LayoutError(f"{place}/{number}", "a key must be text or a number")
        yield key, _decode(pair[1], arrays, f"{place}/{key}")


def _shape(shape: list[Any], place: str) -> tuple[int, ...]:
    if len(shape) > 4 or not all(type(size) is int and 0 <= size < 2**48 for size in shape):
        raise LayoutError(f"{place}/shape", "it must be a few whole numbers")
    return tuple(shape)


def _declared(content: Any) -> Iterator[tuple[str, tuple[np.dtype[Any], tuple[int, ...]]]]:
    """Yield name, type and shape of every array that the JSON file names."""
    if isinstance(content, list) or (isinstance(content, dict) and content.get("kind") != "array"):
        for item in content if isinstance(content, list) else content.values():
            yield from _declared(item)
    elif isinstance(content, dict):
        name, dtype, shape = (content.get(part) for part in ("name", "dtype", "shape"))
        if not isinstance(name, str) or not isinstance(dtype, str) or not isinstance(shape, list):
            raise LayoutError(str(name)[:80], "it does not say the type and shape of its array")
        if not _TYPE.fullmatch(dtype):
            raise LayoutError(name, f"its type {dtype[:20]!r} is none that linkwise writes")
        try:
            yield name, (np.dtype(dtype), _shape(shape, name))
        except TypeError as error:
            raise LayoutError(name, str(error)) from None


def _refuse_json(file: Path, reason: str) -> NoReturn:
    raise ModelFileError(
        str(file), None, f"{reason}; pass the folder save_model wrote, or save the model again"
    )


def _read_json(folder: Path) -> dict[str, Any]:
    """Read ``model.json`` and check that it has all entries of a model."""
    file = folder / _JSON
    try:
        if not file.is_file():
            raise FileNotFoundError
        if file.stat().st_size > _LONGEST_JSON:
            _refuse_json(file, f"it is longer than {_LONGEST_JSON} bytes")
        content = json.loads(file.read_text(encoding="utf-8"), parse_constant=_no_constant)
    except FileNotFoundError:
        raise FileNotFoundError(f"{folder} holds no {_JSON}; pass the folder save_model wrote") from None
    except (ModelFileError, OSError):
        raise
    except (ValueError, RecursionError) as error:
        _refuse_json(file, f"it is damaged ({error})")
    if not _is_model(content):
        _refuse_json(file, "it was not written by linkwise")
    if content["format"] != FORMAT:
        advice = (
            "Install a newer linkwise." if content["format"] > FORMAT else "Fit and save the model again."
        )
        raise ModelFileError(
            str(file),
            "format",
            f"it was written by linkwise {str(content.get('linkwise'))[:20]}, in format "
            f"{str(content['format'])[:20]}; this version reads format {FORMAT}. {advice}",
        )
    _check_parts(content, {"parameters": dict, "fitted": dict, "arrays": str}, _KINDS)
    if content["class"] == "LinkedClustering":
        _check_parts(content, {"members": list}, _KINDS)
        if "votes" not in content:
            raise LayoutError("votes", "it is missing")
        for member in content["members"]:
            _check_parts(member, {"parameters": dict, "fitted": dict}, MEMBERS)
    if not _ARRAYS.fullmatch(content["arrays"]):
        raise LayoutError("arrays", f"{content['arrays'][:80]!r} is no name of a file of arrays")
    return dict(content)


def _check_parts(content: Any, parts: Mapping[str, type], kinds: Mapping[str, str]) -> None:
    """Refuse a description of an estimator that has not these parts, or is of another class."""
    found = str(content.get("class")) if isinstance(content, dict) else ""
    if found not in kinds:
        raise LayoutError("class", f"{found[:80]!r} is no estimator of linkwise")
    for name, kind in parts.items():
        if not isinstance(content.get(name), kind):
            raise LayoutError(name, "it is missing or damaged")


def _is_model(content: Any) -> bool:
    """Return whether a JSON file says that linkwise wrote it."""
    if not isinstance(content, dict) or not isinstance(content.get("class"), str):
        return False
    return type(content.get("format")) is int and isinstance(content.get("linkwise"), str)


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number of JSON")


def _read_arrays(
    file: Path, declared: dict[str, tuple[np.dtype[Any], tuple[int, ...]]]
) -> dict[str, np.ndarray[Any, Any]]:
    """Read the declared arrays and no others, none before its size is known to be right."""
    place: str | None = None
    try:
        with open(file, "rb") as stream, zipfile.ZipFile(stream) as archive:
            entries = {entry.filename.removesuffix(".npy"): entry for entry in archive.infolist()}
            if set(entries) != set(declared) or len(archive.infolist()) != len(declared):
                strange = sorted(set(entries) ^ set(declared)) or ["an array that is there twice"]
                raise ModelFileError(
                    str(file), strange[0][:80], f"it is not both here and in {_JSON}; save the model again"
                )
            stored = sum(entry.file_size for entry in entries.values())
            if stored > file.stat().st_size or any(e.compress_type for e in entries.values()):
                raise ModelFileError(
                    str(file), None, f"it would expand to {stored} bytes; save_model compresses nothing"
                )
            arrays = {}
            for place, (dtype, shape) in declared.items():
                with archive.open(entries[place]) as content:
                    _check_header(content, dtype, shape, entries[place].file_size)
                with archive.open(entries[place]) as content:
                    arrays[place] = np.lib.format.read_array(content, allow_pickle=False)
            return arrays
    except (ModelFileError, FileNotFoundError, PermissionError):
        raise
    except Exception as error:
        # The readers of ZIP and NPY raise a dozen types for damaged bytes.
        reason = f"it is damaged ({type(error).__name__}: {error}); fit and save the model again"
        raise ModelFileError(str(file), place, reason) from error


def _check_header(content: Any, dtype: np.dtype[Any], shape: tuple[int, ...], size: int) -> None:
    """Refuse an array that is not what was declared, before memory is reserved for it."""
    version = np.lib.format.read_magic(content)
    if version == (1, 0):
        found_shape, _, found_dtype = np.lib.format.read_array_header_1_0(content)
    elif version == (2, 0):
        found_shape, _, found_dtype = np.lib.format.read_array_header_2_0(content)
    else:
        raise ValueError(f"version {version} of NPY")
    if found_shape != shape or found_dtype != dtype:
        raise ValueError(f"an array {found_dtype} {found_shape} where {dtype} {shape} was declared")
    if size != content.tell() + dtype.itemsize * math.prod(shape):
        raise ValueError(f"{size} bytes, which is not the size of an array {dtype} {shape}")


def _digest(arrays: Mapping[str, Any]) -> str:
    """Return sixteen digits that differ for different arrays."""
    digest = hashlib.sha256()
    for name, value in arrays.items():
        digest.update(f"{name} {value.dtype.str} {value.shape} ".encode())
        digest.update(np.ascontiguousarray(value).tobytes())
    return digest.hexdigest()[:16]


def _write(path: Path, content: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
    """Write a new folder, or replace the model in one that holds nothing else."""
    folder = Path(os.path.realpath(path))
    settle(folder.parent)
    if not os.path.lexists(folder):
        with together(folder.parent, lambda _: ()) as draft:
            (draft / folder.name).mkdir()
            _write_files(draft / folder.name, content, arrays)
        return
    _refuse_strangers(folder, path)
    for left in filter(None, map(_DRAFT.fullmatch, os.listdir(folder))):
        sweep(folder / f"{left[1]}.{left[2]}")
    _write_files(folder, content, arrays)
    for name in os.listdir(folder):
        if _ARRAYS.fullmatch(name) and name != content["arrays"]:
            (folder / name).unlink(missing_ok=True)


def _write_files(folder: Path, content: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
    """Write the arrays, then the file that names them."""
    with replacing(folder / content["arrays"]) as draft:
        np.savez(draft, **arrays)
    with replacing(folder / _JSON) as draft:
        draft.write_text(json.dumps(content, indent=1, allow_nan=False), encoding="utf-8")


def _refuse_strangers(folder: Path, path: Path) -> None:
    """Refuse a folder that ``save_model`` did not write, or that holds other files."""
    if not folder.is_dir():
        raise FileExistsError(f"{path} is in the way: it is a file; choose another folder")
    names = sorted(os.listdir(folder))
    if _JSON not in names:
        shown = f"{path / names[0]} is in the way" if names else "it is empty"
        raise FileExistsError(f"{path} exists and holds no model ({shown}); choose another folder")
    try:
        known = _is_model(json.loads((folder / _JSON).read_text(encoding="utf-8")))
    except (ValueError, RecursionError, OSError):
        known = False
    if not known:
        raise FileExistsError(
            f"{path / _JSON} is in the way: save_model did not write it; choose another folder"
        )
    for name in names:
        ours = name == _JSON or _ARRAYS.fullmatch(name) or _DRAFT.fullmatch(name)
        if not ours or not (folder / name).is_file() or (folder / name).is_symlink():
            raise FileExistsError(
                f"{path / name} is in the way: save_model did not write it; move it away, or choose another "
                "folder"
            )
