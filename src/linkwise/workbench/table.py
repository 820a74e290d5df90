"""The rows of the user's file: numbers to cluster by, and records to look at."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from linkwise._arrays import Floats
from linkwise._files import replacing
from linkwise._tables import first_line, label_names
from linkwise._validation import listed
from linkwise.cli.ask.records import UNLIKE, Records, as_numbers, printable, text_frame
from linkwise.cli.errors import CommandError
from linkwise.cli.samples import Preparation, Samples, checked_ids, read_samples
from linkwise.constraints.cells import cell_text

if TYPE_CHECKING:
    import pandas

# Characters of a text that are sent to the page.
_MOST_TEXT = 20_000
# Columns of one record where it is looked at alone.
_MOST_VALUES = 60
# Dimensions that texts are reduced to, and columns that words are hashed to.
_N_TOPICS, _N_HASHED = 50, 2**18
# Shares of a column below its range and below the end of it.
_RANGE = (0.01, 0.99)
_FEATURES = "text_features.npz"
_IMAGES = {
    ".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif",
    ".webp": "image/webp", ".bmp": "image/bmp", ".avif": "image/avif",
}  # fmt: skip


@dataclass(frozen=True)
class Table:
    """The rows of a file; ``X`` (n, d) are made by ``preparation``, or of texts without one."""

    samples: Samples
    records: Records
    X: Floats
    preparation: Preparation | None
    notes: tuple[str, ...]
    images: pandas.Series | None = None
    texts: pandas.Series | None = None
    label_column: str | None = None
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.X)

    @property
    def folder(self) -> Path:
        """Folder of the data; no image outside it is shown."""
        return self.samples.path.resolve().parent

    @cached_property
    def columns(self) -> list[dict[str, Any]]:
        """Name and kind of the columns that records show, and where most numbers of it lie."""
        return [
            {"name": printable(name), "kind": "number" if name in self.records.spread else "text"}
            | dict(zip(("low", "high"), self.ranges.get(name, (None, None)), strict=True))
            for name in self.records.frame.columns
        ]

    @cached_property
    def _number_names(self) -> set[str]:
        return {printable(name) for name in self.records.spread}

    def name_of(self, row: int) -> str:
        """Id of a row, or its number."""
        return self.samples.name_of(row) if self.samples.ids is not None else f"row {row}"

    def pair(self, i: int, j: int) -> tuple[list[dict[str, Any]], list[str], int]:
        """Two records, the columns that differ, and how many columns are left out."""
        fields, hidden = self.records.fields(i, j)
        left = self._record(i, [(field.name, field.left) for field in fields])
        right = self._record(j, [(field.name, field.right) for field in fields])
        return [left, right], [field.name for field in fields if field.mark == UNLIKE], hidden

    def record(self, row: int) -> dict[str, Any]:
        """One record with its first columns."""
        fields = [self.records.compared(name, row, row) for name in self.records.frame.columns[:_MOST_VALUES]]
        record = self._record(row, [(field.name, field.left) for field in fields])
        return {**record, "hidden": len(self.records.frame.columns) - len(fields)}

    def _record(self, row: int, values: Sequence[tuple[str, str]]) -> dict[str, Any]:
        text = None if self.texts is None else cell_text(self.texts.iloc[row])
        label = None if self.samples.labels is None else self.samples.labels[row]
        return {
            "row": row,
            "id": self.name_of(row),
            "values": [
                {"name": name, "value": value, "number": name in self._number_names} for name, value in values
            ],
            "image": None if self.images is None else f"/api/image/{row}",
            "text": text if text is None or len(text) <= _MOST_TEXT else text[:_MOST_TEXT] + " …",
            "label": None if label is None else str(label),
        }

    def image_file(self, row: int) -> Path | None:
        """The image of a row if its column names a picture below the data's folder."""
        if self.images is None:
            return None
        name = cell_text(self.images.iloc[row])
        if not name or "\0" in name:
            return None
        path = (self.folder / name).resolve()
        inside = path.is_relative_to(self.folder) and path.suffix.lower() in _IMAGES
        return path if inside and path.is_file() else None


def image_type(path: Path) -> str:
    """The media type of an image by its name."""
    return _IMAGES[path.suffix.lower()]


def read_table(
    path: Path,
    *,
    session: Path,
    id_column: str | None = None,
    label_column: str | None = None,
    image_column: str | None = None,
    text_column: str | None = None,
    features: Sequence[str] = (),
    ignore: Sequence[str] = (),
    impute: bool = False,
    standardize: bool = True,
) -> Table:
    """Read a file. Without a column of numbers the rows are clustered by the words of the text column."""
    frame = text_frame(path)
    roles = {"--id": id_column, "--label": label_column, "--image-column": image_column}
    roles["--text-column"] = text_column
    for option, name in roles.items():
        if name is not None and name not in frame.columns:
            raise CommandError(
                f"{path} has no column {name!r} ({option}); it has {listed(list(frame.columns), 12)}: name "
                "one of these"
            )
    special = [name for name in roles.values() if name is not None]
    shown = [name for name in frame.columns if name not in special]
    numbers = {name: as_numbers(frame[name]) for name in shown}
    spread = {name: float(np.nanstd(found)) for name, found in numbers.items() if found is not None}
    records = Records(frame[shown], list(frame.columns), spread, True, None, path.parent)
    by_words = text_column is not None and not features and not set(spread) - set(ignore)
    preparation = None
    if by_words:
        assert text_column is not None
        samples, X = _by_words(path, frame, text_column, id_column, label_column, session)
    else:
        words = [name for name in frame.columns if name not in spread and name != id_column]
        left_out = [] if features else [name for name in words if name != label_column]
        samples = read_samples(
            path, id_column=id_column, label_column=label_column, features=features,
            ignore=list(dict.fromkeys([*ignore, *left_out])), impute=impute,
        )  # fmt: skip
        preparation = Preparation.of(samples, standardize=standardize, clusters=[])
        X = preparation.apply(samples.features).to_numpy()
    notes = samples.notes
    if text_column is not None and not by_words:
        notes += (f"rows are clustered by their columns of numbers; {text_column!r} is only shown",)
    if len(samples) < 2:
        raise CommandError(f"{path} has one row; there is no pair to ask about: pass a file with more rows")
    return Table(
        samples, records, np.ascontiguousarray(X, dtype=np.float64), preparation, notes,
        None if image_column is None else frame[image_column],
        None if text_column is None else frame[text_column],
        label_column,
        {name: _range(numbers[name]) for name in spread},
    )  # fmt: skip


def _range(numbers: Floats | None) -> tuple[float, float]:
    """What all but the outermost hundredths of the numbers lie between."""
    assert numbers is not None
    low, high = np.quantile(numbers[np.isfinite(numbers)], _RANGE)
    return float(low), float(high)


def table_of(X: NDArray[Any], records: Any, labels: Any = None) -> Table:
    """A table of rows that are in memory: ``records`` are shown, a frame or an array with a line for each."""
    import pandas

    frame = records if isinstance(records, pandas.DataFrame) else pandas.DataFrame(np.asarray(records))
    if len(frame) != len(X):
        raise ValueError(f"records has {len(frame)} lines for {len(X)} rows; pass one for each row")
    frame = frame.rename(columns=str).reset_index(drop=True)
    numbers = {name: as_numbers(frame[name]) for name in frame.columns}
    spread = {name: float(np.nanstd(found)) for name, found in numbers.items() if found is not None}
    classes = None
    if labels is not None:
        given = np.asarray(labels, dtype=object)
        classes = given.copy()
        classes[pandas.isna(given)] = None
        if len(classes) != len(X):
            raise ValueError(f"labels has {len(classes)} entries for {len(X)} rows; pass one for each row")
    features = pandas.DataFrame(np.asarray(X, dtype=np.float64)).rename(columns=str)
    samples = Samples(Path("rows of the notebook"), features, None, classes)
    return Table(
        samples, Records(frame, list(frame.columns), spread, True), features.to_numpy(),
        Preparation.of(samples, standardize=False, clusters=[]), (),
        label_column=None if labels is None else "class",
        ranges={name: _range(numbers[name]) for name in spread},
    )  # fmt: skip


def _by_words(
    path: Path,
    frame: pandas.DataFrame,
    text_column: str,
    id_column: str | None,
    label_column: str | None,
    session: Path,
) -> tuple[Samples, Floats]:
    """Rows by the words of their texts."""
    import pandas

    texts = [cell_text(value) for value in frame[text_column].tolist()]
    X = _features_of(texts, session)
    features = pandas.DataFrame(X, columns=[f"topic {number + 1}" for number in range(X.shape[1])])
    labels = None
    if label_column is not None:
        labels = label_names(frame[label_column])
    ids = None if id_column is None else checked_ids(path, frame[id_column])
    note = (
        f"{path.name} has no column of numbers: rows are clustered by the words of {text_column!r} (TF-IDF "
        f"of hashed words, reduced to {X.shape[1]} dimensions by a truncated SVD)"
    )
    return Samples(path, features, ids, labels, None, (note,)), X


def _features_of(texts: list[str], session: Path) -> Floats:
    """Directions of texts in the space of their words, (n, d).

    They are kept in the folder of the session: on another machine their last digits would differ, and the
    answers would seem to be about other data.
    """
    key = hashlib.sha256(json.dumps(texts).encode()).hexdigest()
    kept = session / _FEATURES
    known = _kept_features(kept, key) if kept.exists() else None
    if known is not None:
        return known
    X = word_features(texts)
    with replacing(kept) as draft, open(draft, "wb") as stream:
        np.savez_compressed(stream, texts=np.array(key), features=X)
    return X


def _kept_features(path: Path, key: str) -> Floats | None:
    """The features in a file; None if they are of other texts."""
    try:
        with np.load(path, allow_pickle=False) as content:
            same = str(content["texts"]) == key
            return np.asarray(content["features"], dtype=np.float64) if same else None
    except (ValueError, KeyError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise CommandError(
            f"{path} is damaged ({first_line(error)}); restore it from a copy, or, on the machine that made "
            "it, remove it: the same numbers are then computed again"
        ) from None


def word_features(texts: Sequence[str]) -> Floats:
    """TF-IDF of hashed words, reduced by a truncated SVD; rows have length 1, or 0 without a word."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer
    from sklearn.preprocessing import normalize

    counts = HashingVectorizer(n_features=_N_HASHED, alternate_sign=False, norm=None).transform(texts)
    weights = TfidfTransformer(sublinear_tf=True).fit_transform(counts)
    used = weights[:, np.asarray(weights.sum(axis=0)).ravel() > 0.0]
    n_topics = min(_N_TOPICS, used.shape[0] - 1, used.shape[1] - 1)
    if n_topics < 1:
        raise CommandError("the texts have fewer than two different words; name another --text-column")
    return np.asarray(normalize(TruncatedSVD(n_topics, random_state=0).fit_transform(used)))
