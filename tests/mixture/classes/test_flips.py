"""Flips of decisions against the objective written out pair by pair and a scan over every belief."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from linkwise.mixture.classes.decisions import find_decisions
from linkwise.mixture.classes.flips import Rival, SoftGrouping, find_flips, find_rivals

NAMES = ("a", "b", "c")
REG = 1e-3
#: Largest belief of the scans: ±1 itself is as good as hard.
EDGE = 0.9995


def objective(X, codes, q, beliefs, confidence, normalize, covariance_type):
    """F of CPPC with the M-step of q."""
    return data_part(X, q, covariance_type) + pair_part(codes, q, beliefs, confidence, normalize)


def data_part(X, q, covariance_type):
    """Expected log-density and entropy."""
    n, n_clusters = q.shape
    weights, means, scatters = q.sum(axis=0), [], []
    for k in range(n_clusters):
        if weights[k] == 0:
            means.append(None)
            scatters.append(np.zeros((X.shape[1], X.shape[1])))
            continue
        mean = (q[:, k, None] * X).sum(axis=0) / weights[k]
        means.append(mean)
        scatters.append((q[:, k] * (X - mean).T) @ (X - mean))
    total = 0.0
    for k in range(n_clusters):
        if weights[k] == 0:
            continue
        covariance = sum(scatters) / n if covariance_type == "tied" else scatters[k] / weights[k]
        if covariance_type in ("diag", "spherical"):
            covariance = np.diag(np.diag(covariance))
        if covariance_type == "spherical":
            covariance = np.eye(len(covariance)) * np.trace(covariance) / len(covariance)
        density = multivariate_normal(means[k], covariance + REG * np.eye(len(covariance))).logpdf(X)
        inside = q[:, k] > 0
        share = q[inside, k]
        total += (share * (np.log(weights[k] / n) + density[inside] - np.log(share))).sum()
    return total


def strengths(beliefs, normalize):
    """Half the log-odds of the certainty that a belief states, or the belief itself as in the paper."""
    return 0.5 * np.log((1 + beliefs) / (1 - beliefs)) if normalize == "class" else beliefs


def pair_part(codes, q, beliefs, confidence, normalize):
    """What beliefs add, over all pairs of rows."""
    labelled = codes >= 0
    sizes = np.bincount(codes[labelled], minlength=len(beliefs))
    scale = np.sqrt(np.outer(sizes, sizes)) if normalize == "class" else 1.0
    wished = (confidence * strengths(beliefs, normalize) / scale)[np.ix_(codes[labelled], codes[labelled])]
    together = q[labelled] @ q[labelled].T
    np.fill_diagonal(together, 0.0)
    return (wished * together).sum()


def moved(q, codes, rival):
    changed = q.copy()
    for i in np.flatnonzero(codes == rival.class_code):
        for source in rival.sources:
            changed[i, rival.target] += changed[i, source]
            changed[i, source] = 0.0
    return changed


def problem(seed, *, hard=False, n=36, n_clusters=4):
    rng = np.random.default_rng(seed)
    codes = np.repeat([0, 1, 2], n // 3)
    codes[rng.random(n) < 0.1] = -1
    centres = rng.normal(scale=2.0, size=(n_clusters, 2))
    X = centres[rng.integers(0, n_clusters, n)] + rng.normal(size=(n, 2))
    distance = ((X[:, None] - centres) ** 2).sum(axis=2)
    q = np.exp(-distance / 2)
    q /= q.sum(axis=1, keepdims=True)
    labels = q.argmax(axis=1)
    if hard:
        q = np.eye(n_clusters)[labels]
    beliefs = np.round(rng.uniform(-1, 1, (3, 3)), 2)
    beliefs = np.triu(beliefs) + np.triu(beliefs, 1).T
    known = codes >= 0
    contingency = np.zeros((3, n_clusters), dtype=int)
    np.add.at(contingency, (codes[known], labels[known]), 1)
    return X, codes, q, beliefs, contingency


@pytest.mark.parametrize("covariance_type", ["full", "tied", "diag", "spherical"])
@pytest.mark.parametrize("normalize", ["class", "none"])
@pytest.mark.parametrize("hard", [False, True])
def test_objective_and_its_rivals(covariance_type, normalize, hard):
    for seed in range(4):
        X, codes, q, beliefs, contingency = problem(seed, hard=hard)
        grouping = SoftGrouping(X, codes, 3, q, covariance_type, REG)
        sizes = contingency.sum(axis=1)
        weight = 0.3 / np.sqrt(np.outer(sizes, sizes)) if normalize == "class" else np.full((3, 3), 0.3)
        for rival in (None, Rival(0, (1,), 2), Rival(1, (0, 2, 3), 1), Rival(2, (0, 1), 3)):
            wished = weight * strengths(beliefs, normalize)
            ours = grouping.data_term(rival) + float((wished * grouping.pair_mass(rival)).sum())
            table = q if rival is None else moved(q, codes, rival)
            assert ours == pytest.approx(
                objective(X, codes, table, beliefs, 0.3, normalize, covariance_type), rel=1e-9, abs=1e-7
            )


def test_rivals_reverse_their_decision_and_all_are_there():
    rng = np.random.default_rng(0)
    kinds = set()
    for _ in range(300):
        table = rng.integers(0, 9, (3, 4)) * (rng.random((3, 4)) < rng.random())
        table[:, 0] += 1
        for decision in find_decisions(table, NAMES):
            rivals = set(find_rivals(decision, table, NAMES, 0.15))
            reversing = set()
            for rival in rivals:
                changed = table.copy()
                for source in rival.sources:
                    changed[rival.class_code, rival.target] += changed[rival.class_code, source]
                    changed[rival.class_code, source] = 0
                if decision.key not in {d.key for d in find_decisions(changed, NAMES)}:
                    reversing.add(rival)
            assert rivals == reversing
            if decision.kind == "split":
                assert {rival.target for rival in rivals} == set(range(4))
            kinds.add((decision.kind, bool(rivals)))
    assert {("split", True), ("merged", True), ("kept", True), ("merged", False)} <= kinds


def brute_force(decision, X, codes, q, beliefs, contingency, confidence, normalize, covariance_type, grid):
    """Scan every belief over the grid; smallest change at which some rival is at least as good."""
    groupings = [moved(q, codes, rival) for rival in find_rivals(decision, contingency, NAMES, 0.15)]
    present = data_part(X, q, covariance_type)
    lost = [data_part(X, grouping, covariance_type) - present for grouping in groupings]
    best = np.inf
    for a in range(3):
        for b in range(a, 3):
            ends = []
            for value in (-EDGE, EDGE):
                changed = beliefs.copy()
                changed[a, b] = changed[b, a] = value
                wished = pair_part(codes, q, changed, confidence, normalize)
                ends.append(
                    [
                        loss + pair_part(codes, grouping, changed, confidence, normalize) - wished
                        for loss, grouping in zip(lost, groupings, strict=True)
                    ]
                )
            low, high = np.array(ends[0]), np.array(ends[1])
            # F is linear in the strength of a belief, so its two ends give it everywhere on the grid.
            place = strengths(np.array([-EDGE, EDGE, *grid]), normalize)
            gain = low + np.outer((place[2:] - place[0]) / (place[1] - place[0]), high - low)
            better = grid[(gain >= 0.0).any(axis=1)]
            if better.size:
                best = min(best, np.abs(better - beliefs[a, b]).min())
    return best


@pytest.mark.parametrize(
    ("scale", "covariance_type"), product([("class", 4.0), ("none", 0.05)], ["full", "tied"])
)
def test_flips_are_those_of_a_scan(scale, covariance_type):
    normalize, confidence = scale
    grid = np.linspace(-EDGE, EDGE, 4001)
    seen = {"possible": 0, "impossible": 0, "already": 0}
    for seed in range(4):
        X, codes, q, beliefs, contingency = problem(seed, n=24)
        decisions = find_decisions(contingency, NAMES)
        flips = find_flips(
            decisions, X, codes, q, contingency, NAMES, beliefs, 0.15, confidence=confidence,
            normalize=normalize, covariance_type=covariance_type, reg_covar=REG,
        )  # fmt: skip
        assert [flip.order for flip in flips] == sorted(flip.order for flip in flips)
        for flip in flips:
            scanned = brute_force(
                flip.decision, X, codes, q, beliefs, contingency, confidence, normalize, covariance_type, grid
            )
            if flip.margin <= 0.0:
                assert scanned < 1e-3
                assert flip.change == 0.0
                seen["already"] += 1
            elif abs(flip.value) < EDGE:
                assert scanned == pytest.approx(abs(flip.change), abs=6e-4)
                seen["possible"] += 1
            else:
                # Out of reach of the scan; what it finds is farther away.
                assert scanned >= abs(flip.change) if flip.possible else scanned == np.inf
                seen["impossible"] += 1
            a, b = (NAMES.index(name) for name in flip.entry)
            changed = beliefs.copy()
            if normalize == "class" and abs(flip.value) > EDGE:
                continue
            changed[a, b] = changed[b, a] = flip.value
            rival = Rival(NAMES.index(flip.mover), flip.sources, flip.target)
            arguments = (changed, confidence, normalize, covariance_type)
            level = objective(X, codes, q, *arguments) - objective(
                X, codes, moved(q, codes, rival), *arguments
            )
            assert level == pytest.approx(min(flip.margin, 0.0), abs=1e-6)
    assert min(seen.values()) > 0 or normalize == "none", seen


def test_without_weight_no_belief_flips_anything():
    X, codes, q, beliefs, contingency = problem(0)
    flips = find_flips(
        find_decisions(contingency, NAMES), X, codes, q, contingency, NAMES, beliefs, 0.15, confidence=0.0,
        normalize="class", covariance_type="full", reg_covar=REG,
    )  # fmt: skip
    assert flips == ()
