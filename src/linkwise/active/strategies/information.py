"""Questions that tell most about the labels of all rows, for each question that they are expected to take.

The value of knowing the group of a row i is

    H(i) * sum_j U(j) c_ij^2 / (c_ii + lambda) / Q(i)

with H the entropy of its group, U(j) the chance that the label of row j is wrong, c the covariance of a
Gaussian process with the kernel that predicts best, given the known rows, and Q the expected number
of questions until the group of i is sure, if the likeliest group is asked about first. The sum is the drop of
variance at all doubtful rows if row i were observed. A row whose answers are doubted keeps its variance, and
is asked about again, with another partner.

Whether two groups are one after all, or one is two, is worth the chance that the answer changes something,
times the rows of the smaller group.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpotrf

from linkwise._arrays import Bools, Floats, Ints
from linkwise.active.groups import SURE
from linkwise.active.knowledge import Knowledge
from linkwise.active.long import N_EXACT
from linkwise.active.posterior import Posterior
from linkwise.active.strategies.random_pairs import new_random_pairs
from linkwise.active.strategies.registry import strategy

#: Noise of an observed row, in units of the variance before it.
_NOISE = 0.1
#: A row whose group is open counts as this sure, so that its noise is bounded.
_OPEN = 0.5
#: Rows of the smallest value that is still a reason to ask.
_TINY = 1e-12
#: After many answers, rows with less than this share of the largest doubt are left out.
_NO_DOUBT = 1e-4
#: Worth of the question whether two groups are one, in entropies of the answer when it is open.
_MERGE = 2.0 * float(np.log(2.0))


@strategy("information")
def information(knowledge: Knowledge, n_pairs: int, rng: np.random.Generator) -> Ints:
    """Pairs that tell most about all labels for each expected question; later ones build on earlier ones."""
    landscape, posterior = knowledge.surveyed, knowledge.posterior
    prob = posterior.prob
    n_groups = posterior.n_groups
    asked = _asked_matrix(knowledge)
    partners = _partners(landscape.distances, posterior, asked)
    allowed = partners >= 0
    entropy = -np.einsum("lg,lg->l", prob, np.log(np.maximum(prob, _TINY)))
    worth = entropy / expected_questions(prob, allowed)
    worth[~allowed.any(axis=1)] = 0.0
    doubt = 1.0 - prob.max(axis=1)
    rows = np.arange(len(prob))
    if len(knowledge.answers.says) - knowledge.n_given > N_EXACT:
        # Rows without any doubt are as good as no reason to ask, and after many answers most are.
        rows = np.flatnonzero(doubt > _NO_DOUBT * doubt.max())
    covariance, factor = _covariance(landscape.kernels, rows, posterior)
    known = _Observed(covariance, doubt[rows])
    best_group = np.where(allowed, prob[:, :n_groups], -1.0).argmax(axis=1)
    merges = _group_questions(landscape.distances, posterior, asked)
    chosen: list[tuple[int, int]] = []
    for _ in range(n_pairs):
        gain = known.drop * factor**2
        gain *= worth[rows] / (np.maximum(known.variance * factor, 0.0) + _NOISE)
        place = int(gain.argmax())
        if merges and merges[0][0] > gain[place]:
            _, i, j = merges.pop(0)
            chosen.append((i, j))
            continue
        if gain[place] <= _TINY:
            break
        row = int(rows[place])
        chosen.append((row, int(partners[row, best_group[row]])))
        worth[row] = 0.0
        known.observe(place)
    pairs = landscape.rows[np.array(chosen, dtype=np.int64).reshape(-1, 2)]
    if len(pairs) < n_pairs:  # nothing is left in doubt: any pair of landmarks that was not asked about
        told = landscape.place[knowledge.asked]
        told = told[(told >= 0).all(axis=1)]
        more = landscape.rows[new_random_pairs(len(landscape.rows), told, n_pairs, rng)]
        if not len(more):
            more = new_random_pairs(knowledge.n_samples, knowledge.asked, n_pairs, rng)
        both = np.concatenate([pairs, more])
        codes = both.min(axis=1) * knowledge.n_samples + both.max(axis=1)
        pairs = both[np.sort(np.unique(codes, return_index=True)[1])][:n_pairs]
    return pairs


def expected_questions(prob: Floats, allowed: Bools) -> Floats:
    """Expected number of questions until each row's group is sure, (l,), at least 1.

    ``prob`` (l, g + 1) are those of the groups and last of a new one; groups are asked about in the
    order of their probability, and only those that are ``allowed`` (l, g). Asking ends with an answer "same",
    or when what is left is sure.
    """
    groups = -np.sort(-np.where(allowed, prob[:, :-1], 0.0), axis=1)
    new = prob[:, -1]
    left = np.ones(len(prob))
    count = np.zeros(len(prob))
    asking = np.ones(len(prob), dtype=bool)
    for k in range(groups.shape[1]):
        asking &= np.maximum(groups[:, k], new) < SURE * np.maximum(left, _TINY)
        count += left * (asking & (groups[:, k] > 0.0))
        left = left - groups[:, k]
    return np.maximum(count, 1.0)


def _asked_matrix(knowledge: Knowledge) -> Bools:
    """Which pairs of landmarks were asked about, (l, l), and the diagonal."""
    place = knowledge.surveyed.place
    asked = np.eye(len(knowledge.surveyed.rows), dtype=bool)
    pairs = place[knowledge.asked]
    pairs = pairs[(pairs >= 0).all(axis=1)]
    asked[pairs[:, 0], pairs[:, 1]] = asked[pairs[:, 1], pairs[:, 0]] = True
    return asked


def _partners(distances: Floats, posterior: Posterior, asked: Bools) -> Ints:
    """Nearest known landmark of each group to compare each landmark with, (l, g); -1 where there is none.

    A landmark that was found different from a group is not compared with it again unless that answer is in
    doubt: then its group is not sure, and another member is taken.
    """
    partners = np.full((len(distances), posterior.n_groups), -1, dtype=np.int64)
    sure = posterior.prob[posterior.asked].max(axis=1) > SURE
    for group in range(posterior.n_groups):
        inside = (posterior.group == group) & (posterior.trust > 0.0)
        members = posterior.asked[inside & sure]
        if not len(members):
            members = posterior.asked[inside]
        if len(members):
            apart = np.where(asked[:, members], np.inf, distances[:, members])
            nearest = apart.argmin(axis=1)
            found = np.isfinite(apart[np.arange(len(apart)), nearest])
            partners[found, group] = members[nearest[found]]
    return partners


def _covariance(kernels: Floats, rows: Ints, posterior: Posterior) -> tuple[Floats, Floats]:
    """Covariance of landmarks (r,) given those that were asked about, (r, r), and a factor for each (r,).

    A landmark whose group is still open counts as observed, too, with more noise: else one question would be
    asked about each of its neighbours, instead of another question about itself. Times its factor, the row of
    an asked landmark is what it would be if that landmark had not been asked about.
    """
    asked = posterior.asked
    noise = _NOISE / np.maximum(2.0 * posterior.trust - 1.0, _OPEN) ** 2
    needed = np.union1d(rows, asked)
    kernel = _mean_kernel(kernels, posterior.kernel_weights, needed)
    rows_, asked_ = np.searchsorted(needed, rows), np.searchsorted(needed, asked)
    columns = kernel[asked_]  # kernels are symmetric, and rows are read faster
    given = columns[:, asked_] + np.diag(noise)
    columns = columns if len(rows) == len(needed) else columns[:, rows_]
    kernel = kernel if len(rows) == len(needed) else kernel[np.ix_(rows_, rows_)]
    root, failed = dpotrf(given.T, lower=True)
    if failed:
        covariance = columns.T @ np.linalg.solve(given, columns)
    else:
        half = solve_triangular(root, columns, lower=True, check_finite=False)
        covariance = half.T @ half
    np.subtract(kernel, covariance, out=covariance)
    factor = np.ones(len(rows))
    inside = np.isin(asked, rows)
    noise, place = noise[inside], np.searchsorted(rows, asked[inside])
    factor[place] = noise / np.maximum(noise - covariance[place, place], 1e-3 * noise)
    return covariance, factor


def _mean_kernel(kernels: Floats, weights: Floats, rows: Ints) -> Floats:
    """Weighted mean of the kernels between these landmarks, (r, r)."""
    if len(rows) == kernels.shape[1]:
        return np.asarray(np.tensordot(weights, kernels, 1))
    total = np.zeros((len(rows), len(rows)))
    for kernel, weight in zip(kernels, weights, strict=True):
        if weight > 0.0:
            total += weight * kernel[np.ix_(rows, rows)]
    return total


class _Observed:
    """The covariance of all landmarks while rows are observed one after the other.

    ``variance`` (l,) is its diagonal, ``drop`` (l,) the sum over j of U(j) c_ij^2. Observing a row subtracts
    a product of a vector with itself. The vectors are kept, and the matrix is not written again: a row costs
    one product of the first matrix with a vector.
    """

    def __init__(self, covariance: Floats, doubt: Floats) -> None:
        self._first, self._doubt = covariance, doubt
        self._vectors: list[Floats] = []
        self.variance = np.diag(covariance).copy()
        self.drop = np.einsum("ij,ij,j->i", covariance, covariance, doubt)

    def observe(self, row: int) -> None:
        """Subtract what is known once this row is."""
        column = self._times(np.eye(1, len(self._first), row)[0], self._first[row])
        vector = column / np.sqrt(max(column[row], 0.0) + _NOISE)
        weighted = self._doubt * vector
        self.drop += vector * (vector * (weighted @ vector) - 2.0 * self._times(weighted))
        self.variance -= vector**2
        self._vectors.append(vector)

    def _times(self, values: Floats, product: Floats | None = None) -> Floats:
        """The covariance times values (l,); ``product`` is that of the first covariance, if it is known."""
        total = self._first @ values if product is None else product.copy()
        for vector in self._vectors:
            total -= vector * (vector @ values)
        return total


def _group_questions(distances: Floats, posterior: Posterior, asked: Bools) -> list[tuple[float, int, int]]:
    """Questions whether two groups are one, or one group is two, the most valuable first: (value, i, j)."""
    found = []
    size = posterior.prob[:, :-1].sum(axis=0)
    known = posterior.trust > 0.0
    for a, b in np.argwhere(np.triu(posterior.merge_chance, 1) > 0.0):
        rows = posterior.asked[(posterior.group == a) & known]
        others = posterior.asked[(posterior.group == b) & known]
        found.append((posterior.merge_chance[a, b], min(size[a], size[b]), rows, others))
    for split in posterior.splits:
        share = min(len(split.rows), len(split.others)) / (len(split.rows) + len(split.others))
        found.append((split.chance, share * size[split.group], split.rows, split.others))
    questions = []
    for chance, n_rows, rows, others in found:
        apart = np.where(asked[np.ix_(rows, others)], np.inf, distances[np.ix_(rows, others)])
        if apart.size and np.isfinite(apart.min()):
            i, j = np.unravel_index(apart.argmin(), apart.shape)
            value = _MERGE * min(chance, 1.0 - chance) * n_rows
            questions.append((float(value), int(rows[i]), int(others[j])))
    return sorted(questions, reverse=True)
