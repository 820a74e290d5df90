"""From columns of a file to the numbers an estimator sees, the same way for old rows and new ones."""

from __future__ import annotations

import json
import zipfile
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.cli.errors import CommandError
from linkwise.cli.files import replacing_folder, write_json
from linkwise.cli.samples import Samples

if TYPE_CHECKING:
    import pandas

__all__ = ["Preparation", "load_prepared_model", "save_prepared_model"]

_FILE = "columns.json"


@dataclass(frozen=True)
class Preparation:
    """Which columns, and how they were scaled.

    Attributes
    ----------
    columns : list of str
        In the order of the estimator.
    centres, scales : list of float
        Each column becomes (x - centre) / scale.
    medians : list of float
        Of the training rows; for --impute on new rows.
    clusters : list of str
        Names of the clusters.
    """

    columns: list[str]
    centres: list[float]
    scales: list[float]
    medians: list[float]
    clusters: list[str]

    @classmethod
    def of(cls, samples: Samples, *, standardize: bool, clusters: list[str]) -> Preparation:
        """Learn from the training rows; constant columns are only centred."""
        values = samples.features.to_numpy()
        centres, scales = np.zeros(values.shape[1]), np.ones(values.shape[1])
        if standardize:
            centres, spread = values.mean(axis=0), values.std(axis=0)
            # Rounding gives a constant column a spread of some 1e-16 of its size.
            constant = spread <= 1e-12 * np.maximum(np.abs(values).max(axis=0), 1e-300)
            scales = np.where(constant, 1.0, spread)
        medians = np.median(values, axis=0)
        names = [str(name) for name in samples.features.columns]
        return cls(names, centres.tolist(), scales.tolist(), medians.tolist(), clusters)

    def apply(self, features: pandas.DataFrame) -> pandas.DataFrame:
        """Scaled columns, in the order of the estimator."""
        return (features[self.columns] - np.array(self.centres)) / np.array(self.scales)


def save_prepared_model(path: str | Path, model: Any, preparation: Preparation) -> Path:
    """Write a model folder: what ``linkwise.persistence`` writes, and the columns beside it."""
    from linkwise.persistence import save_model

    with replacing_folder(path) as draft:
        save_model(model, draft)
        write_json(draft / _FILE, asdict(preparation))
    return Path(path)


def load_prepared_model(path: str | Path) -> tuple[Any, Preparation | None]:
    """Read a model folder; no preparation where the model was saved by ``save_model`` alone."""
    from linkwise.persistence import load_model

    folder = Path(path)
    if not folder.exists():
        raise CommandError(f"{folder}: no such folder; pass the model folder that `linkwise fit -o` wrote")
    if not (folder / "model.json").exists() and (folder / "model" / "model.json").exists():
        folder = folder / "model"
    try:
        model = load_model(folder)
    except (zipfile.BadZipFile, EOFError, KeyError, TypeError, RecursionError) as error:
        raise CommandError(f"{folder} is damaged ({type(error).__name__}); fit the model again") from None
    try:
        content = json.loads((folder / _FILE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return model, None
    except (ValueError, RecursionError) as error:
        raise CommandError(f"{folder / _FILE} is damaged ({error}); fit the model again") from None
    return model, _checked(content, folder / _FILE)


def _checked(content: Any, path: Path) -> Preparation:
    """The content of ``columns.json``, once every entry is of its type and as long as the others."""
    names = [field.name for field in fields(Preparation)]
    if not isinstance(content, dict) or sorted(content) != sorted(names):
        raise CommandError(f"{path} was not written by this version of linkwise; fit the model again")
    texts, numbers = ("columns", "clusters"), ("centres", "scales", "medians")
    for name in names:
        kinds = str if name in texts else (int, float)
        entry = content[name]
        sound = isinstance(entry, list) and all(
            isinstance(item, kinds) and not isinstance(item, bool) for item in entry
        )
        if sound and name in numbers:
            # Models that were saved in Python have no medians.
            sound = len(entry) == len(content["columns"]) or (name == "medians" and not entry)
            sound = sound and bool(np.isfinite(np.array(entry, dtype=np.float64)).all())
        if not sound:
            raise CommandError(f"{path} is damaged (its entry {name!r}); fit the model again")
    if 0.0 in content["scales"]:
        raise CommandError(f"{path} is damaged (a scale of 0); fit the model again")
    return Preparation(**content)
