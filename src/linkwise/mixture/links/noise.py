"""How often links are wrong: sources of links, and the EM update of their flip rates."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linkwise._validation import label_codes

__all__ = ["check_learn_noise", "flip_rates", "learned_coupling", "noise_sources"]

#: A flip rate is kept inside [this, 1/2 - this]: at 0 links would turn hard, at 1/2 they say nothing.
_NOISE_MARGIN = 1e-6


def check_learn_noise(learn_noise: Any) -> bool | str | ArrayLike:
    """The parameter as False, True, "kind" or an array; numpy's booleans and 0 and 1 mean what they say."""
    if np.ndim(learn_noise) > 0:
        return learn_noise
    value = learn_noise.item() if isinstance(learn_noise, np.generic | np.ndarray) else learn_noise
    if isinstance(value, Integral) and value in (0, 1):
        return bool(value)
    if isinstance(value, str) and value == "kind":
        return value
    raise ValueError(
        f'learn_noise must be False, True, "kind" or one source per link, got {learn_noise!r}'
        "; pass one of them"
    )


def noise_sources(
    learn_noise: bool | str | ArrayLike, coupling: NDArray[np.float64]
) -> tuple[NDArray[Any] | None, NDArray[np.int64]]:
    """Who is responsible for each link: the sorted names (S,), if any were given, and sources (m,).

    One source for all, one for must-links and one for cannot-links ("kind"), or the given name of each.
    Hard links, which stay hard, have the source -1.
    """
    names = None
    if np.ndim(learn_noise) > 0:
        given = np.asarray(learn_noise)
        if given.shape != coupling.shape:
            raise ValueError(
                f"learn_noise names sources in the shape {given.shape}, but the constraints hold "
                f"{len(coupling)} links; give one source for every row of constraints.pairs"
            )
        sources, names = label_codes(given)
        if (sources < 0).any():
            link = int(np.argmax(sources < 0))
            raise ValueError(f"learn_noise[{link}] is {given[link]!r}: name a source for every link")
    elif learn_noise == "kind":
        sources = np.where(coupling > 0, 0, 1)
    else:
        sources = np.zeros(len(coupling), dtype=np.int64)
    return names, np.where(np.isfinite(coupling), sources, -1)


def learned_coupling(
    coupling: NDArray[np.float64], sources: NDArray[np.int64], agreement: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Couplings (m,) from the flip rate of each source: the mean probability that its links are violated.

    sign(coupling) log((1 - rate) / rate), the same for all links of a source; links of source -1 stay.
    """
    violated = np.where(coupling > 0, 1.0 - agreement, agreement)
    soft = sources >= 0
    total = np.bincount(sources[soft], violated[soft])
    rate = np.clip(total / np.maximum(np.bincount(sources[soft]), 1), _NOISE_MARGIN, 0.5 - _NOISE_MARGIN)
    learned = coupling.copy()
    learned[soft] = np.sign(coupling[soft]) * np.log((1.0 - rate) / rate)[sources[soft]]
    return learned


def flip_rates(
    learn_noise: bool | str | ArrayLike, coupling: NDArray[np.float64]
) -> float | NDArray[np.float64] | dict[Any, float]:
    """Learned rates 1 - gamma: one number, one for each kind of link, or by the name of the source.

    After learning, abs(coupling) is the log-odds of gamma for all links of a source; NaN for a source
    without soft links.
    """
    names, sources = noise_sources(learn_noise, coupling)
    n_sources = len(names) if names is not None else 2 if learn_noise == "kind" else 1
    rates = np.full(n_sources, np.nan)
    soft = sources >= 0
    rates[sources[soft]] = 1.0 / (1.0 + np.exp(np.abs(coupling[soft])))
    if names is not None:
        return dict(zip(names.tolist(), rates.tolist(), strict=True))
    return rates if learn_noise == "kind" else float(rates[0])
