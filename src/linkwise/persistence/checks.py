"""Checks of single entries of a model: arrays by kind, shape and bounds, numbers, texts, lists and tables.

A check raises ValueError with the reason. Sizes of arrays are letters: a letter takes the first size it
meets, or the one the parameters give it, and every other array must agree.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

#: Probabilities and weights are rounded: they may leave [0, 1] by this much.
ROUNDING = 1e-6


#: A size that nothing depends on.
ANY = "any"


#: The largest whole number that counts anything.
_MOST = 2**53


class LayoutError(ValueError):
    """An entry is not what the layout says; ``entry`` names it."""

    def __init__(self, entry: str, reason: str) -> None:
        super().__init__(f"{entry}: {reason}")
        self.entry, self.reason = entry, reason


class Sizes(dict[str, int]):
    """What the letters of shapes stand for."""

    def agree(self, letter: str | int, size: int) -> bool:
        """Return whether a size is the one known for a letter; the first one met becomes known."""
        if letter == ANY:
            return True
        return size == (letter if isinstance(letter, int) else self.setdefault(letter, size))


Check = Callable[[Any, Sizes], None]


class Entries(NamedTuple):
    """Names of entries and the check of each."""

    required: Mapping[str, Check]
    optional: Mapping[str, Check] = {}

    def check(self, values: Mapping[str, Any], sizes: Sizes, place: str) -> None:
        """Refuse entries that are missing, unknown or wrong; the required ones first, in their order."""
        for name in values:
            if name not in self.required and name not in self.optional:
                raise LayoutError(f"{place}/{name}", "this estimator has no such entry")
        for name in self.required:
            if name not in values:
                raise LayoutError(f"{place}/{name}", "it is missing")
        for name, check in {**self.required, **self.optional}.items():
            if name in values:
                try:
                    check(values[name], sizes)
                except LayoutError:
                    raise
                except ValueError as error:
                    raise LayoutError(f"{place}/{name}", str(error)) from None


def array(
    kinds: str,
    *shape: str | int,
    low: float = -math.inf,
    high: float = math.inf,
    below: str | None = None,
    nan: bool = False,
    infinite: bool = False,
) -> Check:
    """An array of these kinds (``b`` bool, ``i`` integer, ``f`` float) and shape, in [low, high]."""

    def check(value: Any, sizes: Sizes) -> None:
        if not isinstance(value, np.ndarray) or value.dtype.kind not in kinds:
            raise ValueError(f"it must be an array of kind {kinds}, not {kind_of(value)}")
        if value.dtype.kind == "i" and value.dtype != np.int64:
            raise ValueError(f"it must be an array of int64, not {value.dtype}")
        if value.dtype.kind == "f" and value.dtype not in (np.float64, np.float32):
            raise ValueError(f"it must be an array of float64 or float32, not {value.dtype}")
        wanted = [sizes.get(letter, letter) for letter in map(str, shape)]
        if value.ndim != len(shape) or not all(map(sizes.agree, shape, value.shape)):
            raise ValueError(f"its shape is {value.shape}, not ({', '.join(map(str, wanted))})")
        known = value[~np.isnan(value)] if value.dtype.kind == "f" else value
        if known.size < value.size and not nan:
            raise ValueError("it holds NaN")
        if value.dtype.kind not in "if" or not known.size:
            return
        least, most = float(known.min()), float(known.max())
        if not infinite and (math.isinf(least) or math.isinf(most)):
            raise ValueError("it holds an infinite value")
        if least < low or most > high:
            raise ValueError(f"it holds {least if least < low else most:.6g}, outside [{low:g}, {high:g}]")
        if below is not None and most >= sizes[below]:
            raise ValueError(f"it holds {most:.0f}, but there are {sizes[below]}, counted from 0")

    return check


def probability(*shape: str | int, nan: bool = False) -> Check:
    """An array of probabilities."""
    return array("f", *shape, low=-ROUNDING, high=1.0 + ROUNDING, nan=nan)


def unit_rows(*shape: str | int, nan: bool = False) -> Check:
    """An array of rows of length one, or their means."""
    return array("f", *shape, low=-1.0 - ROUNDING, high=1.0 + ROUNDING, nan=nan)


def whole(low: int = 0, high: str | int = _MOST, *, size: str | None = None) -> Check:
    """A whole number in [low, high]; ``size`` is the letter that it is the size of."""

    def check(value: Any, sizes: Sizes) -> None:
        most = sizes[high] if isinstance(high, str) else high
        if type(value) is not int or not low <= value <= most:
            raise ValueError(f"it must be a whole number from {low} to {most}, not {kind_of(value)}")
        if size is not None and not sizes.agree(size, value):
            raise ValueError(f"it is {value}, not {sizes[size]}")

    return check


def real(low: float = -math.inf, high: float = math.inf, *, nan: bool = True) -> Check:
    """A number in [low, high]; NaN where nothing is known."""

    def check(value: Any, sizes: Sizes) -> None:
        if type(value) not in (float, int) or not (low <= value <= high or (nan and math.isnan(value))):
            raise ValueError(f"it must be a number from {low:g} to {high:g}, not {kind_of(value)}")

    return check


def flag(value: Any, sizes: Sizes) -> None:
    """True or False."""
    if type(value) is not bool:
        raise ValueError(f"it must be true or false, not {kind_of(value)}")


def text(*choices: str) -> Check:
    """A string, one of the choices if there are any."""

    def check(value: Any, sizes: Sizes) -> None:
        if not isinstance(value, str) or (choices and value not in choices):
            wanted = f"one of {', '.join(choices)}" if choices else "text"
            raise ValueError(f"it must be {wanted}, not {kind_of(value)}")

    return check


def nothing(value: Any, sizes: Sizes) -> None:
    """None."""
    if value is not None:
        raise ValueError(f"it must be null, not {kind_of(value)}")


def either(first: Check, second: Check) -> Check:
    """Pass the first check or the second, whose error is the one reported."""

    def check(value: Any, sizes: Sizes) -> None:
        try:
            first(value, sizes)
        except ValueError:
            second(value, sizes)

    return check


def list_of(item: Check) -> Check:
    """A list whose items all pass a check."""
    return _each(list, item)


def table_of(item: Check) -> Check:
    """A dict of any keys whose values all pass a check."""
    return _each(dict, item)


def _each(kind: type[list[Any]] | type[dict[Any, Any]], item: Check) -> Check:
    whole_name, part_name = ("table", "key") if kind is dict else ("list", "item")

    def check(value: Any, sizes: Sizes) -> None:
        if not isinstance(value, kind):
            raise ValueError(f"it must be a {whole_name}, not {kind_of(value)}")
        for key, one in value.items() if isinstance(value, dict) else enumerate(value):
            try:
                item(one, sizes)
            except ValueError as error:
                raise ValueError(f"{part_name} {str(key)[:40]}: {error}") from None

    return check


def sequence(*items: Check) -> Check:
    """A tuple of these items."""

    def check(value: Any, sizes: Sizes) -> None:
        if not isinstance(value, tuple) or len(value) != len(items):
            raise ValueError(f"it must be {len(items)} values, not {kind_of(value)}")
        for item, one in zip(items, value, strict=True):
            item(one, sizes)

    return check


def table(required: Mapping[str, Check], optional: Mapping[str, Check] | None = None) -> Check:
    """A dict of these keys."""
    entries = Entries(required, optional or {})

    def check(value: Any, sizes: Sizes) -> None:
        if not isinstance(value, dict):
            raise ValueError(f"it must be a table, not {kind_of(value)}")
        try:
            entries.check(value, sizes, "")
        except LayoutError as error:
            raise ValueError(f"key {error.entry.removeprefix('/')}: {error.reason}") from None

    return check


def labels_of(letter: str, *, only_text: bool = False) -> Check:
    """An array of names, numbers or times, all different."""

    def check(value: Any, sizes: Sizes) -> None:
        if not isinstance(value, np.ndarray) or value.ndim != 1 or value.dtype.kind not in "biufUSmMO":
            raise ValueError(f"it must be a row of names, not {kind_of(value)}")
        if not sizes.agree(letter, len(value)):
            raise ValueError(f"it has {len(value)} names, not {sizes[letter]}")
        names = value.tolist()
        kinds = (str,) if only_text else (str, bytes, bool, int, float)
        if value.dtype == object and not all(isinstance(name, kinds) for name in names):
            raise ValueError("it holds a name that is neither text nor a number")
        if only_text and value.dtype != object:
            raise ValueError(f"it must be a row of text objects, not of {value.dtype}")
        if len(set(names)) < len(names):
            raise ValueError("it holds a name twice")

    return check


def kind_of(value: Any) -> str:
    """Say what something is, in a few words."""
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype}"
    if value is None or isinstance(value, bool | int | float | str):
        shown = repr(value) if not isinstance(value, int) or abs(value) <= _MOST else "a huge number"
        return shown if len(shown) <= 40 else f"{shown[:36]}..."
    return f"a {type(value).__name__}"
