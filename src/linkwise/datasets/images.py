"""Generated images with their true segmentation: stand-ins for the unpublished pictures of the papers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.ndimage import gaussian_filter

from linkwise._arrays import Floats, Ints
from linkwise._validation import as_generator
from linkwise.datasets.points import check_count, check_scale

Image = tuple[Floats, Ints]

# Wavelength in pixels, direction in degrees, bandwidth in cycles per pixel.
_TEXTURES = [(9.0, 20.0, 0.05), (9.0, 110.0, 0.05), (7.0, 65.0, 0.05), (12.0, 155.0, 0.04)]


def make_texture_mosaic(
    grid: tuple[int, int] = (32, 32), *, block: int = 7, noise: float = 0.5, random_state: Any = None
) -> Image:
    """Four textures in the four quarters of an image.

    Each texture is white noise filtered to a band around one frequency and direction, scaled to
    mean 0 and variance 1, so that brightness tells nothing; white noise is added on top. The
    quarters end at the edges of blocks, so that every block of :func:`texture_features` has one
    class. It stands for the mosaic of Brodatz textures of Lu & Leen 2007, experiment 4 (blocks of
    7 x 7 pixels, first five principal components, soft links between neighbouring blocks).

    Parameters
    ----------
    grid : (int, int), default=(32, 32)
        Rows and columns of blocks, at least 2 each.
    block : int, default=7
        Side of a block in pixels.
    noise : float, default=0.5
        Standard deviation of the white noise; that of the textures is 1.
    random_state : int, Generator, RandomState or None, default=None

    Returns
    -------
    image : ndarray of shape (grid[0] * block, grid[1] * block)
    truth : int ndarray of the same shape
        0 and 1 in the upper half, 2 and 3 in the lower half; ``truth[::block, ::block]`` is the class of
        each block.

    Notes
    -----
    On the first five principal components of the blocks, mean of 8 draws: four Gaussians fitted without
    classes (the likeliest of 20 starts) are right on 0.73 of the blocks, Gaussians fitted with the true
    classes on 0.74, so a single block does not tell its texture for sure; k-means reaches 0.34.

    Examples
    --------
    >>> from linkwise.datasets import make_texture_mosaic, texture_features
    >>> image, truth = make_texture_mosaic(random_state=0)
    >>> X, grid = texture_features(image)
    >>> X.shape, grid, truth[::7, ::7].shape
    ((1024, 49), (32, 32), (32, 32))
    """
    if len(grid) != 2:
        raise ValueError(f"grid is {grid!r}; pass (rows, columns) of blocks")
    n_rows, n_columns = (check_count("grid", count, 2) for count in grid)
    block = check_count("block", block, 1)
    noise = check_scale("noise", noise, zero=True)
    rng = as_generator(random_state)
    shape = (n_rows * block, n_columns * block)
    lower = np.arange(n_rows) >= n_rows // 2
    right = np.arange(n_columns) >= n_columns // 2
    truth = (2 * lower[:, None] + right).repeat(block, axis=0).repeat(block, axis=1)
    textures = np.stack([_filtered_noise(shape, *texture, rng) for texture in _TEXTURES])
    image = np.take_along_axis(textures, truth[None], axis=0)[0]
    return image + rng.normal(0.0, noise, shape), truth


def _filtered_noise(
    shape: tuple[int, int], wavelength: float, degrees: float, bandwidth: float, rng: np.random.Generator
) -> Floats:
    """White noise passed through a Gaussian band around one frequency; mean 0, variance 1."""
    down, across = np.fft.fftfreq(shape[0])[:, None], np.fft.fftfreq(shape[1])
    f_down, f_across = np.sin(np.deg2rad(degrees)) / wavelength, np.cos(np.deg2rad(degrees)) / wavelength
    gain = np.zeros(shape)
    for sign in (1.0, -1.0):
        squared = (down - sign * f_down) ** 2 + (across - sign * f_across) ** 2
        gain += np.exp(-squared / (2.0 * bandwidth**2))
    texture = np.fft.ifft2(np.fft.fft2(rng.normal(size=shape)) * gain).real
    return (texture - texture.mean()) / texture.std()


def texture_features(image: ArrayLike, block: int = 7) -> tuple[NDArray[np.float64], tuple[int, int]]:
    """Cut an image into square blocks; the pixels of a block are its features.

    Parameters
    ----------
    image : array-like of shape (height, width)
        Both multiples of ``block``.
    block : int, default=7
        Side of a block in pixels.

    Returns
    -------
    X : ndarray of shape (rows * columns, block ** 2)
        One row per block, blocks in reading order.
    grid : (int, int)
        Rows and columns of blocks: the ``shape`` for ``Constraints.from_grid``.

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise.datasets import texture_features
    >>> X, grid = texture_features(np.arange(16).reshape(4, 4), block=2)
    >>> grid
    (2, 2)
    >>> X[1]
    array([2., 3., 6., 7.])
    """
    pixels = np.asarray(image, dtype=float)
    block = check_count("block", block, 1)
    if pixels.ndim != 2:
        raise ValueError(f"image has shape {pixels.shape}; pass one channel, (height, width)")
    height, width = (side - side % block for side in pixels.shape)
    if (height, width) != pixels.shape or pixels.size == 0:
        raise ValueError(
            f"image of {pixels.shape[0]} x {pixels.shape[1]} pixels is not made of {block} x {block} blocks; "
            f"crop it, e.g. image[:{max(height, block)}, :{max(width, block)}]"
        )
    grid = (height // block, width // block)
    blocks = pixels.reshape(grid[0], block, grid[1], block).swapaxes(1, 2)
    return blocks.reshape(grid[0] * grid[1], block * block), grid


def make_noisy_objects(*, noise: float = 0.07, random_state: Any = None) -> Image:
    """Three shaded objects on a shaded background, 43 x 43 pixels with noise.

    A disc, a tilted bar and a triangle. Background and objects have brightness gradients of their own, so
    that each object fades into the background on one side and no threshold separates them. It
    stands for the 43 x 43 image of Lu & Carreira-Perpinan 2008, figure 7D, which is not published.

    Parameters
    ----------
    noise : float, default=0.07
        Standard deviation of the noise; brightness is between 0 and 1.
    random_state : int, Generator, RandomState or None, default=None

    Returns
    -------
    image : ndarray of shape (43, 43)
        Brightness, between 0 and 1.
    truth : int ndarray of shape (43, 43)
        0 = background, 1 = disc, 2 = bar, 3 = triangle.

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise.datasets import make_noisy_objects
    >>> image, truth = make_noisy_objects(random_state=0)
    >>> image.shape, np.unique(truth)
    ((43, 43), array([0, 1, 2, 3]))
    """
    noise = check_scale("noise", noise, zero=True)
    row, column = np.mgrid[0:43, 0:43].astype(float)
    along = (column - 12) * np.cos(0.45) + (row - 31) * np.sin(0.45)
    beside = (row - 31) * np.cos(0.45) - (column - 12) * np.sin(0.45)
    truth = np.zeros((43, 43), dtype=np.int64)
    truth[(row - 11) ** 2 + (column - 11) ** 2 <= 7.5**2] = 1
    truth[(np.abs(along) <= 9.5) & (np.abs(beside) <= 4)] = 2
    truth[(row >= 7) & (row <= 35) & (np.abs(column - 32) <= 0.5 + (row - 7) * 0.28)] = 3
    shades = np.stack(
        [
            0.20 + 0.25 * (row + column) / 84,
            0.75 - 0.42 * (column - 3.5) / 15,
            0.32 + 0.38 * (along + 9.5) / 19,
            0.36 + 0.49 * (row - 7) / 28,
        ]
    )
    clean = np.take_along_axis(shades, truth[None], axis=0)[0]
    return _photographed(clean, noise, as_generator(random_state)), truth


def make_occluder(*, noise: float = 0.03, random_state: Any = None) -> Image:
    """A slanted grey bar in front of an uneven gradient, 16 x 16 pixels.

    The background grows from dark to bright across the image, so that the outline of the bar shows at its
    upper left and lower right and nearly vanishes at its lower left and upper right. The bar cuts the
    background into two parts that only links can join. It stands for the 16 x 16 image of Lu &
    Carreira-Perpinan 2008, figure 7A-C, which is not published.

    Parameters
    ----------
    noise : float, default=0.03
        Standard deviation of the noise; brightness is between 0 and 1.
    random_state : int, Generator, RandomState or None, default=None
        Also draws the unevenness of the background.

    Returns
    -------
    image : ndarray of shape (16, 16)
        Brightness, between 0 and 1.
    truth : int ndarray of shape (16, 16)
        0 = background, 1 = bar.

    Examples
    --------
    >>> from linkwise.datasets import make_occluder
    >>> image, truth = make_occluder(random_state=0)
    >>> int(truth.sum())
    76
    """
    noise = check_scale("noise", noise, zero=True)
    rng = as_generator(random_state)
    row, column = np.mgrid[0:16, 0:16].astype(float)
    truth = (np.abs(column - 5.5 - row / 4) <= 2.25).astype(np.int64)
    uneven = gaussian_filter(rng.normal(size=(16, 16)), 2.0, mode="nearest")
    background = 0.08 + 0.84 * column / 15 + 0.03 * uneven / uneven.std()
    clean = np.where(truth == 1, 0.5, background)
    return _photographed(clean, noise, rng), truth


def _photographed(clean: Floats, noise: float, rng: np.random.Generator) -> Floats:
    """The picture slightly out of focus, with noise, as brightness between 0 and 1."""
    blurred = gaussian_filter(clean, 0.6, mode="nearest")
    return np.clip(blurred + rng.normal(0.0, noise, clean.shape), 0.0, 1.0)
