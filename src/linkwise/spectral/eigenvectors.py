"""Leading eigenvectors of a symmetric operator by a block Krylov-Schur method.

Well separated clusters are the best case of spectral clustering, and the worst of Lanczos: eigenvalues 1,
1, 1 are one vector to a Krylov space grown from one vector, so with a loose tolerance ARPACK returns wrong
neighbours. A block as wide as the number of wanted vectors sees all of them. On a dense matrix a product with
eight vectors costs about as much as with one, because reading the matrix is what takes the time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh, qr

__all__ = ["Eigenpairs", "leading_eigenpairs"]

Operator = Callable[[NDArray[np.float64]], NDArray[np.float64]]

#: Vectors of a block: eigenvalues up to this often the same are all found.
_LEAST_WIDTH, _MOST_WIDTH = 8, 16

#: Blocks of a Krylov space besides the kept vectors before it is compressed to its best vectors.
_DEPTH = 6


class Eigenpairs(NamedTuple):
    """Eigenvectors of a symmetric operator, largest eigenvalue first.

    Attributes
    ----------
    values : (k,) float64
    vectors : (n, k) float64
        Orthonormal columns.
    residual : float
        Largest norm of A x - lambda x among the pairs.
    converged : bool
    n_iter : int
        Products of the operator with a block of vectors.
    history : (r, k) float64
        Values whenever the space was compressed; the last are ``values``.
    """

    values: NDArray[np.float64]
    vectors: NDArray[np.float64]
    residual: float
    converged: bool
    n_iter: int
    history: NDArray[np.float64]


def leading_eigenpairs(
    operator: Operator,
    n: int,
    k: int,
    *,
    rng: np.random.Generator,
    tol: float = 1e-4,
    max_iter: int = 600,
) -> Eigenpairs:
    """The k largest eigenvalues of a symmetric operator and their vectors.

    Parameters
    ----------
    operator : callable
        Maps an (n, b) array to A times it.
    n, k : int
    rng : numpy.random.Generator
        Draws the first block.
    tol : float, default=1e-4
        Largest norm of A x - lambda x allowed, relative to the largest abs(lambda) seen.
    max_iter : int, default=600
        Most products of the operator with a block.

    Returns
    -------
    Eigenpairs

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise.spectral.eigenvectors import leading_eigenpairs
    >>> values = np.concatenate([[3.0, 3.0, 2.0], np.linspace(0.0, 1.0, 97)])
    >>> pairs = leading_eigenpairs(lambda x: values[:, np.newaxis] * x, 100, 3, rng=np.random.default_rng(0))
    >>> pairs.values.round(6)
    array([3., 3., 2.])
    """
    width = min(n, max(_LEAST_WIDTH, min(k + 2, _MOST_WIDTH)))
    kept = min(k + width // 2, n)
    space = _KrylovSpace(n, min(n, kept + _DEPTH * width))
    block = qr(rng.standard_normal((n, width)), mode="economic")[0]
    n_iter = 0
    history = []
    while True:
        while block.shape[1]:
            image = operator(block)
            n_iter += 1
            block = space.extended_by(block, image)
            if space.size + block.shape[1] > space.room:
                break
        values, vectors, images = space.compressed(kept)
        history.append(values[:k])
        residual = float(np.linalg.norm(images[:, :k] - values[:k] * vectors[:, :k], axis=0).max())
        scale = max(abs(float(values[0])), abs(float(values[-1])))
        converged = residual <= tol * scale or not block.shape[1]
        if converged or n_iter >= max_iter:
            return Eigenpairs(
                values[:k], vectors[:, :k].copy(), residual, converged, n_iter, np.array(history)
            )


class _KrylovSpace:
    """Orthonormal basis of span(X, A X, A² X, ...) and A times it, in arrays of fixed size."""

    def __init__(self, n: int, room: int) -> None:
        self.basis = np.empty((n, room), order="F")
        self.images = np.empty((n, room), order="F")
        self.room = room
        self.size = 0

    def extended_by(self, block: NDArray[np.float64], image: NDArray[np.float64]) -> NDArray[np.float64]:
        """Take in a block that is orthogonal to the basis; the next block, or none if the space is closed."""
        stop = self.size + block.shape[1]
        self.basis[:, self.size : stop] = block
        self.images[:, self.size : stop] = image
        self.size = stop
        basis = self.basis[:, :stop]
        left, triangle, _ = qr(image - basis @ (basis.T @ image), mode="economic", pivoting=True)
        # Directions lost in rounding would not be orthogonal to the basis.
        largest = float(np.abs(self.images[:, :stop]).max())
        n_left = int((np.abs(np.diag(triangle)) > 1e-12 * largest).sum())
        left = left[:, : min(n_left, len(basis) - stop)]
        return np.asarray(qr(left - basis @ (basis.T @ left), mode="economic")[0])

    def compressed(self, kept: int) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Keep the best vectors of the space (Rayleigh-Ritz): their values, vectors and images."""
        basis, images = self.basis[:, : self.size], self.images[:, : self.size]
        projected = basis.T @ images
        values, rotation = eigh(0.5 * (projected + projected.T))
        rotation = rotation[:, ::-1][:, :kept]
        vectors, rotated = basis @ rotation, images @ rotation
        self.size = rotation.shape[1]
        self.basis[:, : self.size] = vectors
        self.images[:, : self.size] = rotated
        return values[::-1], vectors, rotated
