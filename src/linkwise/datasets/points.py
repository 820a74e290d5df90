"""Two-dimensional point sets whose classes are not the clusters a plain method finds."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from linkwise._arrays import Floats, Ints
from linkwise._validation import as_generator

Points = tuple[Floats, Ints]


class GaussianPart(NamedTuple):
    """A Gaussian with independent features that supplies part of a class."""

    label: int
    n_samples: int
    mean: Sequence[float]
    sd: float | Sequence[float]


def check_count(name: str, value: int, minimum: int) -> int:
    """A whole number of at least ``minimum``."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < minimum:
        raise ValueError(f"{name} is {value!r}; pass an integer >= {minimum}")
    return int(value)


def check_scale(name: str, value: float, *, zero: bool = False) -> float:
    """A finite number above 0, or at least 0 where ``zero`` is allowed."""
    number = float(value)
    if not np.isfinite(number) or number < 0 or (number == 0 and not zero):
        raise ValueError(f"{name} is {value!r}; pass a finite number {'>= 0' if zero else '> 0'}")
    return number


def draw_parts(parts: Sequence[GaussianPart], rng: np.random.Generator) -> Points:
    """Samples of all parts in shuffled order."""
    X = np.concatenate([rng.normal(part.mean, part.sd, (part.n_samples, len(part.mean))) for part in parts])
    return shuffled(X, np.repeat([part.label for part in parts], [part.n_samples for part in parts]), rng)


def shuffled(X: Floats, y: Ints, rng: np.random.Generator) -> Points:
    """The rows in random order, so that the first rows are not all of one class."""
    order = rng.permutation(len(y))
    return X[order], y[order]


def make_four_blobs(
    n_per_blob: int = 50, *, sd: float = 0.8, spacing: float = 2.2, random_state: Any = None
) -> Points:
    """Four Gaussian blobs on a square, the class being the column: the toy of PPC.

    Two components can as well cover the rows as the columns, with nearly the same likelihood; links
    decide. Lu & Leen 2007 show such a set in figures 1 and 2 without its distribution: the
    square, the sizes and the widths are chosen here.

    Parameters
    ----------
    n_per_blob : int, default=50
    sd : float, default=0.8
        Standard deviation of every blob.
    spacing : float, default=2.2
        Side of the square, which is centred at the origin.
    random_state : int, Generator, RandomState or None, default=None

    Returns
    -------
    X : ndarray of shape (4 * n_per_blob, 2)
    y : ndarray of shape (4 * n_per_blob,)
        0 = left column, 1 = right column.

    Examples
    --------
    >>> from linkwise.datasets import make_four_blobs
    >>> X, y = make_four_blobs(random_state=0)
    >>> X.shape
    (200, 2)
    """
    n_per_blob = check_count("n_per_blob", n_per_blob, 1)
    sd = check_scale("sd", sd, zero=True)
    half = check_scale("spacing", spacing) / 2
    corners = [(column, row) for column in (0, 1) for row in (0, 1)]
    parts = [
        GaussianPart(column, n_per_blob, ((2 * column - 1) * half, (2 * row - 1) * half), sd)
        for column, row in corners
    ]
    return draw_parts(parts, as_generator(random_state))


# Per set: (class, share of the class, mean, standard deviations).
_PPC_SETS: dict[int, list[tuple[int, float, tuple[float, float], tuple[float, float]]]] = {
    1: [
        (0, 0.6, (3.0, 0.25), (0.5, 0.5)),
        (0, 0.4, (-3.0, -0.25), (0.5, 0.5)),
        (1, 0.6, (-0.25, -3.0), (0.5, 0.5)),
        (1, 0.4, (0.25, 3.0), (0.5, 0.5)),
    ],
    2: [
        (0, 1.0, (3.5, 2.2), (0.7, 0.7)),
        (1, 0.5, (3.5, 0.0), (0.7, 0.7)),
        (1, 0.5, (-3.5, 0.0), (0.7, 0.7)),
    ],
    3: [
        (0, 0.5, (-2.0, 0.0), (0.4, 0.22)),
        (0, 0.5, (2.0, 0.0), (0.4, 0.22)),
        (1, 0.25, (-1.1, 1.0), (0.4, 0.22)),
        (1, 0.25, (1.1, 1.0), (0.4, 0.22)),
        (1, 0.25, (-1.1, -1.0), (0.4, 0.22)),
        (1, 0.25, (1.1, -1.0), (0.4, 0.22)),
    ],
}


def make_ppc_artificial(which: int = 1, *, n_per_class: int = 200, random_state: Any = None) -> Points:
    """Three two-class sets in the plane that mislead a plain mixture, after PPC's artificial sets.

    Lu & Leen 2007 (section 5.1.3) show three sets of 200 points per class in a figure and state how
    their method does on them; the distributions are not published. The sets here were designed to
    behave as that text says. Each class is a mixture of a few Gaussian lumps:

    1. A cross: class 0 left and right, class 1 below and above. The likeliest two components take
       adjacent arms.
    2. Class 1 in two lumps far apart, class 0 beside one of them and overlapping it.
    3. A hexagon: class 0 the left and right corners, class 1 the other four. The likeliest
       two components are the left and the right half.

    Parameters
    ----------
    which : {1, 2, 3}, default=1
    n_per_class : int, default=200
        At least 4.
    random_state : int, Generator, RandomState or None, default=None

    Returns
    -------
    X : ndarray of shape (2 * n_per_class, 2)
    y : ndarray of shape (2 * n_per_class,)
        0 or 1.

    Notes
    -----
    Accuracy of two Gaussians, mean of 20 draws: ``unaided`` is scikit-learn's ``GaussianMixture(2)`` without
    links, the likeliest of 20 starts (k-means does the same); ``classwise`` are the two Gaussians fitted with
    the true classes, on the same rows and on a fresh draw: about what links can lead to.

    ===  =======  =========  =====
    set  unaided  classwise  fresh
    ===  =======  =========  =====
    1    0.60     1.00       1.00
    2    0.75     0.95       0.95
    3    0.50     0.98       0.97
    ===  =======  =========  =====

    Examples
    --------
    >>> from linkwise.datasets import make_ppc_artificial
    >>> X, y = make_ppc_artificial(2, random_state=0)
    >>> X.shape
    (400, 2)
    """
    if which not in _PPC_SETS:
        raise ValueError(f"which is {which!r}; pass 1, 2 or 3")
    n_per_class = check_count("n_per_class", n_per_class, 4)
    parts = []
    for label in (0, 1):
        lumps = [lump for lump in _PPC_SETS[which] if lump[0] == label]
        ends = np.rint(n_per_class * np.cumsum([0.0, *(share for _, share, _, _ in lumps)])).astype(int)
        sizes = np.diff(ends)
        parts += [
            GaussianPart(label, size, mean, sd) for size, (_, _, mean, sd) in zip(sizes, lumps, strict=True)
        ]
    return draw_parts(parts, as_generator(random_state))


def make_two_moons(n_per_class: int = 200, *, noise: float = 0.18, random_state: Any = None) -> Points:
    """Two interleaved half circles of radius 1 with Gaussian noise.

    The upper moon is (cos t, sin t), the lower (1 - cos t, 1/2 - sin t), t uniform in [0, pi].

    Parameters
    ----------
    n_per_class : int, default=200
    noise : float, default=0.18
        Standard deviation of the noise in each feature; the moons touch from about 0.15 on.
    random_state : int, Generator, RandomState or None, default=None

    Returns
    -------
    X : ndarray of shape (2 * n_per_class, 2)
    y : ndarray of shape (2 * n_per_class,)
        0 = upper moon, 1 = lower moon.

    Examples
    --------
    >>> from linkwise.datasets import make_two_moons
    >>> X, y = make_two_moons(noise=0.0, random_state=0)
    >>> bool((X[y == 0, 1] >= 0).all() and (X[y == 1, 1] <= 0.5).all())
    True
    """
    n_per_class = check_count("n_per_class", n_per_class, 1)
    noise = check_scale("noise", noise, zero=True)
    rng = as_generator(random_state)
    angle = rng.uniform(0.0, np.pi, (2, n_per_class))
    upper = np.column_stack([np.cos(angle[0]), np.sin(angle[0])])
    lower = np.column_stack([1.0 - np.cos(angle[1]), 0.5 - np.sin(angle[1])])
    return _noisy_curves([upper, lower], noise, rng)


def make_spirals(
    n_per_class: int = 200, *, turns: float = 1.25, noise: float = 0.2, random_state: Any = None
) -> Points:
    """Two spirals wound into each other, one unit apart, with Gaussian noise.

    A point at angle t has radius t / pi; the second spiral is the first one turned by half a
    circle, so that between two arms lies the radius 1. Points are spread evenly over the length.

    Parameters
    ----------
    n_per_class : int, default=200
    turns : float, default=1.25
        Turns of each spiral, beginning at radius 1/2.
    noise : float, default=0.2
        Standard deviation of the noise in each feature.
    random_state : int, Generator, RandomState or None, default=None

    Returns
    -------
    X : ndarray of shape (2 * n_per_class, 2)
    y : ndarray of shape (2 * n_per_class,)
        The spiral, 0 or 1.

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise.datasets import make_spirals
    >>> X, y = make_spirals(turns=1.0, noise=0.0, random_state=0)
    >>> radius = np.hypot(X[:, 0], X[:, 1])
    >>> bool(radius.min() >= 0.5 and radius.max() <= 2.5)
    True
    """
    n_per_class = check_count("n_per_class", n_per_class, 1)
    turns = check_scale("turns", turns)
    noise = check_scale("noise", noise, zero=True)
    rng = as_generator(random_state)
    # The length of the curve grows nearly as the square of the radius.
    inner, outer = 0.5, 0.5 + 2.0 * turns
    radius = np.sqrt(rng.uniform(inner**2, outer**2, (2, n_per_class)))
    angle = np.pi * radius + np.array([[0.0], [np.pi]])
    return _noisy_curves(np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=2), noise, rng)


def make_rings(
    n_per_class: int = 200,
    *,
    radii: Sequence[float] = (1.0, 2.0),
    noise: float = 0.2,
    random_state: Any = None,
) -> Points:
    """Rings around the origin with Gaussian noise, one class each.

    Parameters
    ----------
    n_per_class : int, default=200
    radii : sequence of float, default=(1.0, 2.0)
        One radius per class, all different.
    noise : float, default=0.2
        Standard deviation of the noise in each feature.
    random_state : int, Generator, RandomState or None, default=None

    Returns
    -------
    X : ndarray of shape (len(radii) * n_per_class, 2)
    y : ndarray of shape (len(radii) * n_per_class,)
        The place of the ring in ``radii``.

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise.datasets import make_rings
    >>> X, y = make_rings(radii=(1.0, 2.0, 3.0), noise=0.0, random_state=0)
    >>> bool(np.allclose(np.hypot(X[:, 0], X[:, 1]), y + 1.0))
    True
    """
    n_per_class = check_count("n_per_class", n_per_class, 1)
    sizes = [check_scale("a radius", radius) for radius in radii]
    if not sizes or len(set(sizes)) != len(sizes):
        raise ValueError(f"radii is {radii!r}; pass one radius per class, all different")
    noise = check_scale("noise", noise, zero=True)
    rng = as_generator(random_state)
    angle = rng.uniform(0.0, 2.0 * np.pi, (len(sizes), n_per_class))
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=2)
    return _noisy_curves(circle * np.array(sizes)[:, None, None], noise, rng)


def _noisy_curves(curves: Sequence[Floats] | Floats, noise: float, rng: np.random.Generator) -> Points:
    """The points of all curves, one class each, moved by Gaussian noise and shuffled."""
    X = np.concatenate(list(curves))
    y = np.repeat(np.arange(len(curves)), [len(curve) for curve in curves])
    return shuffled(X + rng.normal(0.0, noise, X.shape), y, rng)
