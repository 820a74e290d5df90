"""Leading eigenvectors of a symmetric operator by a block Krylov-Schur method, and smallest ones of a graph.

Eigenvalues 1, 1, 1 of well separated clusters are one vector to a Krylov space grown from one: ARPACK returns
wrong neighbours. A block as wide as the number of wanted vectors sees all of them, and a dense product with
eight vectors costs about as much as with one.

In two or three dimensions the smallest eigenvalues of a large graph crowd at 0 (1e-5 at 100,000 points). Only
shift-invert finds them, and the factors stay sparse. In higher dimensions the factors fill up, but the gaps
are wide and products are enough. A factorisation of a small part of the graph tells which case it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import eigh, qr
from scipy.sparse.linalg import SuperLU, splu

from linkwise._arrays import Floats

Operator = Callable[[Floats], Floats]

#: Vectors of a block: eigenvalues up to this often the same are all found.
_LEAST_WIDTH, _MOST_WIDTH = 8, 16

#: Blocks of a Krylov space besides the kept vectors before it is compressed to its best vectors.
_DEPTH = 6

#: Added to the matrix before it is factored: below the second eigenvalue of large graphs.
_SHIFT = 1e-6

#: Points of the trial graph, and entries per row of its factor up to which the whole graph is factored.
#: Measured for 10 neighbours: 20 in two, 80 in three, 170 in four, 360 in ten dimensions. At 20,000 points
#: the whole factor took 0.2, 2 and 19 s in two, three and four dimensions.
_TRIAL_POINTS, _TRIAL_FILL = 2000, 120.0


class Eigenpairs(NamedTuple):
    """Largest eigenvalues (k,), vectors (n, k), residual norm, products, and values (r, k) on the way."""

    values: Floats
    vectors: Floats
    residual: float
    converged: bool
    n_iter: int
    history: Floats


def leading_eigenpairs(
    operator: Operator, n: int, k: int, *, rng: np.random.Generator, tol: float = 1e-4, max_iter: int = 600
) -> Eigenpairs:
    """The k largest eigenpairs of an operator on (n, b); ``tol`` of |A x - lambda x| / max |lambda|."""
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

    def extended_by(self, block: Floats, image: Floats) -> Floats:
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

    def compressed(self, kept: int) -> tuple[Floats, Floats, Floats]:
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


def factor_stays_sparse(matrix: sparse.csr_array) -> bool:
    """Whether a factorisation of this sparse matrix (N, N) pays, judged by a connected part of it."""
    if matrix.shape[0] <= _TRIAL_POINTS:
        return True
    reached, _ = sparse.csgraph.breadth_first_order(sparse.csr_matrix(matrix), 0, directed=False)
    part = np.sort(reached[:_TRIAL_POINTS])
    return bool(_factor(sparse.csr_array(matrix[part][:, part])).L.nnz <= _TRIAL_FILL * len(part))


def smallest_eigenpairs(
    matrix: sparse.csr_array,
    k: int,
    *,
    rng: np.random.Generator,
    tol: float = 1e-6,
    direct: bool | None = None,
) -> Eigenpairs:
    """The k smallest eigenvalues, ascending, of a sparse positive semi-definite matrix, and their vectors.

    A ``tol`` of 1e-3 returns useless vectors. ``direct``: factor the matrix, or multiply; None decides.
    """
    n = matrix.shape[0]
    if factor_stays_sparse(matrix) if direct is None else direct:
        factor = _factor(matrix)
        found = leading_eigenpairs(
            lambda block: factor.solve(np.asfortranarray(block)), n, k, rng=rng, tol=tol
        )
        values, history = 1.0 / found.values - _SHIFT, 1.0 / found.history - _SHIFT
    else:
        found = leading_eigenpairs(lambda block: -(matrix @ block), n, k, rng=rng, tol=tol, max_iter=4000)
        values, history = -found.values, -found.history
    return found._replace(values=values, history=history)


def _factor(matrix: sparse.csr_array) -> SuperLU:
    shifted = sparse.csc_matrix(matrix + _SHIFT * sparse.eye_array(matrix.shape[0]))
    return splu(shifted, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
