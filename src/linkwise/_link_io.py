"""Links as CSV, as a sentence and as HTML."""

from __future__ import annotations

import csv
import os
import tempfile
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from linkwise._links import Links

__all__ = ["html", "read", "summary", "write"]

_KINDS = {"must_link": 1, "must": 1, "cannot_link": -1, "cannot": -1}
_SHOWN = 10


def read(
    path: str | os.PathLike[str], n_samples: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Must-links, cannot-links and abs(W), must-links first; errors name the line of the file."""
    ends: list[tuple[int, int]] = []
    signs: list[int] = []
    weights: list[float] = []
    with open(path, newline="", encoding="utf-8-sig") as stream:
        reader = csv.DictReader(stream, skipinitialspace=True)
        missing = [name for name in ("i", "j", "kind") if name not in (reader.fieldnames or [])]
        if missing:
            raise ValueError(
                f"{path} has no column {', '.join(missing)}; the first line must be i,j,kind,weight"
            )
        for record in reader:
            try:
                ends.append(_ends(record, n_samples))
                signs.append(_sign(record))
                weights.append(_weight(record))
            except ValueError as error:
                raise ValueError(f"{path}, line {reader.line_num}: {error}") from None
    pairs = np.array(ends, dtype=np.int64).reshape(-1, 2)
    must = np.array(signs) > 0
    strength = np.array(weights, dtype=np.float64)
    return pairs[must], pairs[~must], np.concatenate([strength[must], strength[~must]])


def _ends(record: dict[str, str | None], n_samples: int) -> tuple[int, int]:
    ends = []
    for name in ("i", "j"):
        text = (record[name] or "").strip()
        try:
            row = int(text)
        except ValueError:
            raise ValueError(f"{name} is {text!r}: it must be a row number") from None
        if not 0 <= row < n_samples:
            raise ValueError(f"{name} is {row}: points are numbered 0..{n_samples - 1}")
        ends.append(row)
    if ends[0] == ends[1]:
        raise ValueError(
            f"the pair is ({ends[0]}, {ends[0]}): a point cannot be linked to itself; remove the line"
        )
    return ends[0], ends[1]


def _sign(record: dict[str, str | None]) -> int:
    kind = (record["kind"] or "").strip().lower().replace("-", "_")
    if kind not in _KINDS:
        raise ValueError(f"kind is {record['kind']!r}: write must_link or cannot_link")
    return _KINDS[kind]


def _weight(record: dict[str, str | None]) -> float:
    text = (record.get("weight") or "").strip()
    try:
        weight = float(text or "inf")
    except ValueError:
        raise ValueError(f"weight is {text!r}: write a number >= 0, or inf for a hard link") from None
    if not weight >= 0:
        raise ValueError(f"weight is {text}: it must be >= 0, or inf for a hard link; kind gives the sign")
    return weight


def write(path: str | os.PathLike[str], pairs: NDArray[np.int64], weights: NDArray[np.float64]) -> None:
    """Write through a temporary file beside the target, so that no half-written file is ever seen."""
    target = Path(path)
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=target.name, suffix=".part")
    try:
        with open(handle, "w", newline="", encoding="utf-8") as stream:
            stream.write("i,j,kind,weight\n")
            for (i, j), weight in zip(pairs.tolist(), weights.tolist(), strict=True):
                stream.write(f"{i},{j},{'must_link' if weight > 0 else 'cannot_link'},{abs(weight)!r}\n")
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise


def summary(links: Links) -> str:
    """``150 samples, 40 must-links (12 hard), 60 cannot-links; 23 chunklets`` (of two or more samples)."""

    def count(number: int, noun: str) -> str:
        return f"{number} {noun}" + ("" if number == 1 else "s")

    def kind(chosen: NDArray[np.bool_], noun: str) -> str:
        hard = int(np.isinf(links.weights[chosen]).sum())
        return count(int(chosen.sum()), noun) + (f" ({hard} hard)" if hard else "")

    sizes = np.bincount(links.chunklets()) if links.n_samples else np.zeros(0)
    return (
        f"{count(links.n_samples, 'sample')}, {kind(links.weights > 0, 'must-link')}, "
        f"{kind(links.weights < 0, 'cannot-link')}; {count(int((sizes > 1).sum()), 'chunklet')}"
    )


def html(links: Links) -> str:
    """A heading and the first few links as a table."""
    rows = [
        f"<tr><td>{i}</td><td>{j}</td><td>{'must-link' if weight > 0 else 'cannot-link'}</td>"
        f"<td>{'hard' if np.isinf(weight) else f'{abs(weight):.3g}'}</td></tr>"
        for (i, j), weight in zip(links.pairs[:_SHOWN].tolist(), links.weights[:_SHOWN].tolist(), strict=True)
    ]
    if links.n_pairs > _SHOWN:
        rows.append(f"<tr><td colspan='4'>… and {links.n_pairs - _SHOWN} more</td></tr>")
    head = "<tr><th>i</th><th>j</th><th>kind</th><th>weight</th></tr>"
    return f"<div><b>Constraints</b>: {escape(summary(links))}<table>{head}{''.join(rows)}</table></div>"
