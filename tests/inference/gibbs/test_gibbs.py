"""Gibbs sampling. All seeds are fixed, so the statistical tests below give the same verdict on every run."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy import stats
from scipy.special import softmax

from linkwise.graph import Adjacency
from linkwise.inference import gibbs as module
from linkwise.inference.gibbs import N_BATCHES, Tally, gibbs
from linkwise.inference.gibbs.block_moves import exchange_labels, may_be_reducible, resample_forest
from linkwise.inference.gibbs.sweeps import sweep_labels
from linkwise.inference.sweep_layout import sweep_layout
from tests.inference.marginal_cases import brute_force, grid_problem, make_problem, random_problem
from tests.repeats import LONG, examples, share

HARD = -np.inf


def run(problem, seed=0, **options):
    return gibbs(problem, np.random.default_rng(seed), **options)


def chains_of(problem, seed=0, *, everything_sticky=False):
    """The engine's own set-up, in its own numbering (places), with one chain."""
    rng = np.random.default_rng(seed)
    status, starts = module._starts(problem, rng, None, 1)
    assert status == "feasible"
    chains = module._set_up(problem, starts, rng)
    if everything_sticky:
        n = len(problem.unary)
        chains = chains._replace(sticky=np.ones(n, dtype=bool), sticky_nodes=np.arange(n))
    return chains


def plain(chains, sweep, labels, tally=None, blocks=None):
    layout = chains.layout
    tally = Tally(chains.unary.shape, len(layout.edges)) if tally is None else tally
    first, last = (0, len(layout.blocks) - 1) if blocks is None else blocks
    return sweep_labels(
        first,
        last,
        layout.blocks,
        layout.order,
        chains.unary,
        layout.indptr,
        layout.neighbours,
        layout.edges,
        layout.coupling,
        layout.scattered,
        chains.seeds[0, 0],
        sweep,
        True,
        labels,
        tally.batch,
        tally.agreement,
    )


def exchange(chains, sweep, labels):
    graph = Adjacency(chains.layout.indptr, chains.layout.neighbours, chains.layout.edges)
    seeds = chains.seeds[0, 1:4]
    exchange_labels(
        chains.sticky_nodes, chains.sticky, chains.unary, graph, chains.coupling, seeds, sweep, labels
    )


def forest(chains, sweep, labels):
    graph = Adjacency(chains.layout.indptr, chains.layout.neighbours, chains.layout.edges)
    seeds = chains.seeds[0, 4:7]
    resample_forest(
        chains.sticky_nodes, chains.strong_pairs, chains.unary, graph, chains.coupling, seeds, sweep, labels
    )


def p_value(counts, weight):
    """Chi-square test of counts of labellings, the rare ones taken together."""
    expected = weight * counts.sum()
    common = expected >= 5.0
    expected = np.append(expected[common], expected[~common].sum())
    observed = np.append(counts[common], counts[~common].sum())
    return stats.chisquare(observed[expected > 0.0], expected[expected > 0.0]).pvalue


MOVES = {"plain": plain, "exchange": exchange, "forest": forest}


def test_conditionals_are_ratios_of_joint_probabilities():
    """What a sweep records for a node is P(z_i = k | rest) from the table of all labellings (spec I13)."""
    n_nodes = 0
    for seed in range(examples(150)):
        problem = random_problem(seed, hard=0.2, must_hard=False, forbidden=0.1)
        weight = brute_force(problem)[4]
        if weight is None:
            continue
        n_labels = problem.unary.shape[1]
        powers = n_labels ** np.arange(len(problem.unary))[::-1]
        chains = chains_of(problem, seed)
        layout, labels = chains.layout, chains.labels[0]
        tally = Tally(chains.unary.shape, len(layout.edges))
        for block in range(len(layout.blocks) - 1):
            before = labels.copy()
            squares = plain(chains, 0, labels, tally, blocks=(block, block + 1))
            expected_squares = 0.0
            for place in range(layout.blocks[block], layout.blocks[block + 1]):
                state = before[np.argsort(layout.order)]
                joint = np.empty(n_labels)
                for k in range(n_labels):
                    state[layout.order[place]] = k
                    joint[k] = weight[state @ powers]
                if joint.sum() == 0.0:
                    continue  # so improbable a state that the table has underflowed
                conditional = joint / joint.sum()
                np.testing.assert_allclose(tally.batch[place], conditional, atol=1e-10)
                assert conditional[labels[place]] > 0.0
                expected_squares += (conditional**2).sum()
                for slot in range(layout.indptr[place], layout.indptr[place + 1]):
                    agreed = conditional[labels[layout.neighbours[slot]]]
                    assert tally.agreement[slot] == pytest.approx(agreed, abs=1e-10)
                n_nodes += 1
            assert squares == pytest.approx(expected_squares, abs=1e-9)
    assert n_nodes > share(400)


def move_problems():
    rng = np.random.default_rng(11)
    ring = [(0, 1), (0, 3), (1, 2), (2, 3)]
    complete = [(i, j) for i in range(4) for j in range(i + 1, 4)]
    yield "attracting ring", make_problem(rng.normal(size=(4, 3)), ring, [2.0, 0.5, 1.0, 3.0])
    yield "repelling ring", make_problem(rng.normal(size=(4, 3)), ring, [-2.0, -0.5, -1.0, -3.0])
    yield (
        "frustrated clique",
        make_problem(rng.normal(size=(4, 2)), complete, [1.0, -2.0, 1.5, -0.7, 2.0, -1.0]),
    )
    yield "hard ring", make_problem(rng.normal(size=(4, 3)), ring, [HARD] * 4)
    yield "hard and soft", make_problem(rng.normal(size=(4, 3)), complete, [HARD, 1.0, HARD, -1.0, 2.0, 0.0])
    yield "path", make_problem(rng.normal(size=(4, 4)), [(0, 1), (1, 2), (2, 3)], [1.5, HARD, -1.0])
    rewards = rng.normal(scale=1.5, size=(6, 3))
    yield "rewards by label", make_problem(rng.normal(size=(4, 3)), complete, rewards)
    rewards = rewards.copy()
    rewards[1], rewards[2, 0], rewards[4, 2] = HARD, HARD, HARD
    unary = rng.normal(size=(4, 3))
    unary[0, 1] = HARD
    yield "rewards partly hard", make_problem(unary, complete, rewards)


PROBLEMS = dict(move_problems())


@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize("name", PROBLEMS)
def test_every_move_keeps_the_distribution(name, move):
    """States drawn exactly and moved once have the same distribution (chi-square over all labellings)."""
    problem = PROBLEMS[name]
    _, _, _, labellings, weight = brute_force(problem)
    chains = chains_of(problem, 5, everything_sticky=True)
    rng = np.random.default_rng(6)
    n_draws = 6000 if LONG else 2500
    rows = rng.choice(len(weight), size=n_draws, p=weight)
    states = labellings[rows][:, chains.layout.order].copy()
    n_moved = 0
    for sweep in range(n_draws):
        before = states[sweep].copy()
        MOVES[move](chains, sweep, states[sweep])
        n_moved += (states[sweep] != before).any()
    back = states[:, np.argsort(chains.layout.order)]
    counts = np.bincount(back @ (problem.unary.shape[1] ** np.arange(4)[::-1]), minlength=len(weight))
    assert counts[weight == 0.0].sum() == 0
    assert p_value(counts, weight) > 1e-3
    assert n_moved > 0.05 * n_draws


@pytest.mark.parametrize("move", ["exchange", "forest"])
def test_block_moves_condition_on_the_nodes_left_out(move):
    """Only two of the nodes may move; the others keep their labels and their influence."""
    problem = PROBLEMS["hard and soft"]
    _, _, _, labellings, weight = brute_force(problem)
    chains = chains_of(problem, 5)
    sticky = np.zeros(4, dtype=bool)
    sticky[[0, 2]] = True
    strong = (
        np.array([[0, 2]])
        if 2 in chains.layout.neighbours[: chains.layout.indptr[1]]
        else np.empty((0, 2), int)
    )
    chains = chains._replace(sticky=sticky, sticky_nodes=np.array([0, 2]), strong_pairs=strong)
    rng = np.random.default_rng(8)
    n_draws = 6000
    states = labellings[rng.choice(len(weight), size=n_draws, p=weight)][:, chains.layout.order].copy()
    before = states.copy()
    for sweep in range(n_draws):
        MOVES[move](chains, sweep, states[sweep])
    np.testing.assert_array_equal(states[:, ~sticky], before[:, ~sticky])
    assert (states != before).any()
    back = states[:, np.argsort(chains.layout.order)]
    counts = np.bincount(back @ (3 ** np.arange(4)[::-1]), minlength=len(weight))
    assert counts[weight == 0.0].sum() == 0
    assert p_value(counts, weight) > 1e-3


@pytest.mark.parametrize(
    "options",
    [
        {"hard": 0.0},
        {"hard": 0.3, "must_hard": False},
        {"hard": 0.2, "must_hard": False, "forbidden": 0.2},
        {"hard": 0.1, "must_hard": False, "partly_hard": 0.3},
        {"hard": 0.2, "scale": 6.0},
    ],
    ids=["soft", "hard", "forbidden", "partly_hard", "strong"],
)
def test_estimates_against_enumeration(options):
    """z-scores of all entries: none absurd, and their mean square near what honest errors give."""
    worst, squares, errors = [], [], []
    for seed in range(110 if LONG else 75):
        problem = random_problem(seed, **options)
        prob, _, agreement, _, _ = brute_force(problem)
        answer = run(problem, seed, tol=0.02, max_sweeps=600)
        if prob is None:
            assert answer.log_partition == -np.inf
            continue
        if answer.exact:
            np.testing.assert_allclose(answer.prob, prob, atol=1e-12)
            continue
        assert np.isnan(answer.log_partition)
        assert answer.log_partition_kind == "unavailable"
        assert (answer.prob[problem.unary == -np.inf] == 0.0).all()
        np.testing.assert_allclose(answer.prob.sum(axis=1), 1.0, rtol=1e-12)
        hard = (problem.coupling.reshape(len(agreement), -1) == HARD).all(axis=1)
        np.testing.assert_array_equal(answer.agreement[hard], 0.0)
        if answer.details["may_be_reducible"]:
            continue
        z = (answer.prob - prob) / answer.details["standard_error"]
        worst.append(np.abs(z).max())
        squares.append((z**2).mean())
        errors.append(max(np.abs(answer.prob - prob).max(), np.abs(answer.agreement - agreement).max()))
    assert len(worst) > (15 if LONG else 10)
    # A mode that 500 sweeps never met costs its weight: rare, and small.
    assert np.mean(np.array(worst) > 4.0) <= 0.02
    assert max(errors) < 0.1
    assert np.mean(errors) < 0.025
    # Below 1 by what the error allows for the unseen.
    assert 0.2 < np.mean(squares) < 1.1


def test_reported_errors_match_the_scatter_between_runs():
    """Sixteen runs of equal length on each problem: their standard deviation over the error they report."""
    ratios = []
    for seed in range(14 if LONG else 7):
        problem = random_problem(seed, n=5, n_labels=3, shape="dense", hard=0.1, must_hard=False)
        answers = [run(problem, 100 + repeat, tol=0.0, max_sweeps=160) for repeat in range(16)]
        assert {answer.n_iter for answer in answers} == {160}
        scatter = np.std([answer.prob for answer in answers], axis=0, ddof=1)
        reported = np.mean([answer.details["standard_error"] for answer in answers], axis=0)
        # Where next to nothing varies, the allowance for the unseen is all that is reported.
        if reported.max() > 2.0 * reported.min():
            ratios.append(np.sqrt((scatter**2).mean() / (reported**2).mean()))
    assert len(ratios) >= (10 if LONG else 5)
    assert 0.7 < np.median(ratios) < 1.2
    assert min(ratios) > 0.5
    assert max(ratios) < 1.7


@pytest.mark.parametrize(
    ("coupling", "n_labels"), product([6.0, 10.0, 30.0, -6.0, -10.0, -30.0, HARD], [2, 3])
)
def test_sticky_pairs(coupling, n_labels):
    """Trap T5 (coupling = 2 w): single points need 101 sweeps at w = 3, 5507 at w = 5, for ever if hard."""
    rng = np.random.default_rng(n_labels)
    problem = make_problem(rng.normal(size=(2, n_labels)), [(0, 1)], [coupling])
    prob, _, agreement, _, _ = brute_force(problem)
    answer = run(problem, 1, tol=0.01)
    assert answer.converged
    assert answer.details["effective_samples"] > 0.2 * answer.details["n_samples"]
    np.testing.assert_allclose(answer.prob, prob, atol=0.04)
    np.testing.assert_allclose(answer.agreement, agreement, atol=0.02)


def sticky_structures():
    rng = np.random.default_rng(3)
    triangle = [(0, 1), (0, 2), (1, 2)]
    clique = [(i, j) for i in range(5) for j in range(i + 1, 5)]
    path = [(i, i + 1) for i in range(6)]
    yield "strong triangle", make_problem(0.3 * rng.normal(size=(3, 2)), triangle, [8.0] * 3)
    yield "strong clique of three labels", make_problem(0.5 * rng.normal(size=(5, 3)), clique, [6.0] * 10)
    opposed = np.zeros((7, 2))
    opposed[:, 0] = [9.0, 9.0, -5.4, -5.4, -5.4, 9.0, 9.0]
    yield "chain against its points", make_problem(opposed, path, [8.0] * 6)
    yield (
        "hard ring of two labels",
        make_problem(rng.normal(size=(4, 2)), [(0, 1), (0, 3), (1, 2), (2, 3)], [HARD] * 4),
    )
    yield (
        "hard path closed by a weak link",
        make_problem(rng.normal(size=(3, 2)), triangle, [HARD, 0.5, HARD]),
    )
    yield "hard star", make_problem(rng.normal(size=(6, 2)), [(0, i) for i in range(1, 6)], [HARD] * 5)
    yield (
        "hard ring of five, three labels",
        make_problem(rng.normal(size=(5, 3)), [(0, 1), (0, 4), (1, 2), (2, 3), (3, 4)], [HARD] * 5),
    )
    two_triangles = [(0, 1), (0, 2), (1, 2), (2, 3), (3, 4), (3, 5), (4, 5)]
    yield (
        "strong triangles kept apart",
        make_problem(rng.normal(size=(6, 2)), two_triangles, [7.0] * 3 + [HARD] + [7.0] * 3),
    )
    rewards = np.array([[9.0, 6.0, 8.0]] * 3)
    yield "strong rewards by label", make_problem(rng.normal(size=(3, 3)) - 2 * rewards[0], triangle, rewards)
    yield (
        "opposing log-odds of 60 under a hard link",
        make_problem([[60.0, 0.0], [59.5, 0.0]], [(0, 1)], [HARD]),
    )


STRUCTURES = dict(sticky_structures())


@pytest.mark.parametrize("name", STRUCTURES)
def test_structures_on_which_single_points_stick(name):
    problem = STRUCTURES[name]
    prob, _, agreement, _, _ = brute_force(problem)
    answer = run(problem, 4, tol=0.012, max_sweeps=4000)
    assert answer.converged
    assert not answer.details["may_be_reducible"]
    np.testing.assert_allclose(answer.prob, prob, atol=0.05)
    np.testing.assert_allclose(answer.agreement, agreement, atol=0.05)


def test_without_block_moves_these_structures_do_stick():
    """The tests above would mean little if plain sweeps could do it."""
    for name in ("strong triangle", "chain against its points", "hard ring of two labels"):
        problem = STRUCTURES[name]
        chains = chains_of(problem, 1)
        tally = Tally(chains.unary.shape, len(chains.layout.edges))
        labels = chains.labels[0]
        for sweep in range(300):
            plain(chains, sweep, labels, tally)
        truth = brute_force(problem)[0][chains.layout.order]
        assert np.abs(tally.batch / 300 - truth).max() > 0.1


@pytest.mark.parametrize("drop", ["exchange", "forest"])
def test_each_block_move_is_needed(monkeypatch, drop):
    """Exchanging labels flips loops of strong links; forests turn over a piece of a chain."""
    if drop == "exchange":
        problem = make_problem([[0.2, 0.0]] * 3, [(0, 1), (0, 2), (1, 2)], [14.0] * 3)
    else:
        unary = np.zeros((7, 2))
        unary[:, 0] = [15.0, 15.0, -9.4, -9.4, -9.4, 15.0, 15.0]
        problem = make_problem(unary, [(i, i + 1) for i in range(6)], [14.0] * 6)
    prob = brute_force(problem)[0]
    # One chain: several would start in different modes and hide that none of them moves.
    options = {"tol": 0.0, "max_sweeps": 1056, "n_chains": 1}
    whole = [run(problem, seed, **options).prob for seed in range(4)]
    kernel = {"exchange": "exchange_labels", "forest": "resample_forest"}[drop]
    monkeypatch.setattr(module, kernel, lambda *_: None)
    crippled = [run(problem, seed, **options).prob for seed in range(4)]
    assert max(np.abs(estimate - prob).max() for estimate in whole) < 0.1
    assert min(np.abs(estimate - prob).max() for estimate in crippled) > 0.3


def test_chains_in_different_modes_are_noticed(monkeypatch):
    """With block moves disabled the chains stay where they start: the error must say so."""
    monkeypatch.setattr(module, "exchange_labels", lambda *_: None)
    monkeypatch.setattr(module, "resample_forest", lambda *_: None)
    problem = make_problem(np.zeros((2, 2)), [(0, 1)], [HARD])
    answers = [run(problem, seed, tol=0.02, max_sweeps=300) for seed in range(10)]
    for answer in answers:
        same_side = np.ptp(answer.prob[0]) == 1.0
        assert same_side or (not answer.converged and answer.details["standard_error"].max() > 0.05)
    assert sum(not answer.converged for answer in answers) >= 7


def test_reducible_or_not():
    def reducible(n_labels, n, pairs, **changes):
        unary = np.zeros((n, n_labels))
        if "forbid" in changes:
            unary[changes["forbid"], 0] = HARD
        return may_be_reducible(
            make_problem(unary, sorted(pairs), changes.get("coupling", [HARD] * len(pairs)))
        )

    prism = [(0, 1), (0, 2), (1, 2), (3, 4), (3, 5), (4, 5), (0, 3), (1, 4), (2, 5)]
    path = [(0, 1), (1, 2), (2, 3)]
    assert reducible(3, 6, prism)
    assert not reducible(4, 6, prism)
    assert not reducible(2, 4, path)
    assert not reducible(3, 5, [(0, 1), (1, 2), (2, 3), (3, 4), (0, 4)])
    assert not reducible(2, 9, [(0, 1), (0, 3), (1, 2), (2, 3), (5, 6)])
    assert not reducible(3, 6, prism, coupling=[-3.0] * 9)
    assert reducible(2, 4, path, forbid=1)
    assert not reducible(2, 5, path, forbid=4)


def test_the_prism_is_reducible_and_said_to_be():
    """Three labels on the triangular prism: exchanges do not connect all its colourings."""
    prism = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 4), (2, 5), (3, 4), (3, 5), (4, 5)]
    problem = make_problem(np.zeros((6, 3)), prism, [HARD] * 9)
    assert run(problem, max_sweeps=60).details["may_be_reducible"]


@pytest.mark.parametrize(
    "coupling", [[0.3, -0.3], [0.3, 4.0], [-np.inf, 0.5]], ids=["weak", "strong", "hard"]
)
@pytest.mark.parametrize("shuffled", [False, True])
def test_same_numbers_for_any_number_of_threads(monkeypatch, coupling, shuffled):
    monkeypatch.setattr("linkwise.inference.sweep_layout._CHUNK", 8)
    problem = grid_problem(30, 3, coupling, seed=2, shuffled=shuffled)
    assert max(len(step) for step in sweep_layout(problem).steps) > 1
    answers = [run(problem, 3, n_threads=n_threads, max_sweeps=40, n_chains=2) for n_threads in (1, 2, 5)]
    for answer in answers[1:]:
        np.testing.assert_array_equal(answer.prob, answers[0].prob)
        np.testing.assert_array_equal(answer.agreement, answers[0].agreement)
        np.testing.assert_array_equal(answer.details["standard_error"], answers[0].details["standard_error"])


def test_chunks_do_not_matter_either(monkeypatch):
    """Coloured sweeps depend on the colouring only, not on how classes are cut into pieces."""
    problem = grid_problem(20, 3, [0.4, 3.5], seed=2)
    whole = run(problem, 3, max_sweeps=40)
    monkeypatch.setattr("linkwise.inference.sweep_layout._CHUNK", 2)
    np.testing.assert_array_equal(run(problem, 3, max_sweeps=40, n_threads=2).prob, whole.prob)


def test_a_lattice_against_enumeration():
    """A 3 x 6 lattice is small enough to enumerate with two labels (2**18 labellings)."""
    index = np.arange(18).reshape(3, 6)
    pairs = np.concatenate(
        [
            np.column_stack([index[:, :-1].ravel(), index[:, 1:].ravel()]),
            np.column_stack([index[:-1].ravel(), index[1:].ravel()]),
        ]
    )
    pairs = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
    rng = np.random.default_rng(0)
    problem = make_problem(rng.normal(size=(18, 2)), pairs, rng.choice([-0.8, 1.2], size=len(pairs)))
    prob, _, agreement, _, _ = brute_force(problem)
    answer = run(problem, 0, tol=0.01, max_sweeps=6000)
    assert answer.converged
    z = (answer.prob - prob)[:, 0] / answer.details["standard_error"][:, 0]
    assert np.abs(z).max() < 4.0
    np.testing.assert_allclose(answer.agreement, agreement, atol=0.025)


def test_averaging_conditionals_beats_averaging_labels():
    """Rao-Blackwell: the same chain, estimated from its labels, scatters more."""
    problem = grid_problem(3, 2, [0.4, -0.4], seed=0)
    chains = chains_of(problem, 2)
    labels = chains.labels[0]
    conditional, counted = [], []
    for repeat in range(60):
        tally = Tally(chains.unary.shape, len(chains.layout.edges))
        counts = np.zeros((9, 2))
        for sweep in range(repeat * 50, repeat * 50 + 50):
            plain(chains, sweep, labels, tally)
            counts[np.arange(9), labels] += 1
        conditional.append(tally.batch / 50)
        counted.append(counts / 50)
    truth = brute_force(problem)[0][chains.layout.order]
    np.testing.assert_allclose(np.mean(conditional, axis=0), truth, atol=0.01)
    assert np.std(conditional, axis=0).mean() < 0.4 * np.std(counted, axis=0).mean()


def test_starts_follow_the_given_table():
    problem = make_problem(np.array([[0.0, 0.0, HARD]] * 400), [(0, 1)], [0.5])
    initial = np.tile([0.2, 0.8, 0.0], (400, 1))
    initial[0] = [0.0, 0.0, 1.0]
    status, starts = module._starts(problem, np.random.default_rng(0), initial, 3)
    assert status == "feasible"
    for labels in starts:
        assert np.mean(labels[1:]) == pytest.approx(0.8, abs=0.06)
        assert labels[0] in (0, 1)
    assert (starts[0] != starts[1]).any()


def test_starts_satisfy_hard_links_and_differ():
    problem = grid_problem(8, 3, [HARD], seed=0)
    status, starts = module._starts(problem, np.random.default_rng(0), None, 4)
    assert status == "feasible"
    for labels in starts:
        assert (labels[problem.pairs[:, 0]] != labels[problem.pairs[:, 1]]).all()
    assert len({tuple(labels) for labels in starts}) > 1


@pytest.mark.parametrize("coupling", [np.zeros(1), np.zeros((1, 3))])
def test_exact_without_couplings(coupling):
    problem = make_problem(np.random.default_rng(0).normal(size=(2, 3)), [(0, 1)], coupling)
    answer = run(problem)
    assert answer.exact
    np.testing.assert_allclose(answer.prob, softmax(problem.unary, axis=1))
    assert answer.log_partition == pytest.approx(brute_force(problem)[1])


def test_limits_and_tolerance():
    problem = grid_problem(5, 3, [1.0, -1.0], seed=0)
    for max_sweeps in (30, 100, 333):
        answer = run(problem, tol=0.0, max_sweeps=max_sweeps)
        assert not answer.converged
        assert max_sweeps - N_BATCHES < answer.n_iter <= max_sweeps
    loose, tight = run(problem, tol=0.03), run(problem, tol=0.01)
    assert loose.converged
    assert tight.converged
    assert tight.n_iter > loose.n_iter
    for answer, tol in ((loose, 0.03), (tight, 0.01)):
        assert answer.details["standard_error"].max() <= tol
        assert answer.details["effective_samples"] <= answer.details["n_samples"]
    np.testing.assert_array_equal(run(problem, 7, tol=0.05).prob, run(problem, 7, tol=0.05).prob)


@pytest.mark.parametrize("n_labels", [1, 2, 3])
def test_infeasible_is_minus_infinity_and_exact(n_labels):
    clique = [(i, j) for i in range(n_labels + 1) for j in range(i + 1, n_labels + 1)]
    problem = make_problem(np.zeros((n_labels + 1, n_labels)), clique, [HARD] * len(clique))
    answer = run(problem)
    assert answer.log_partition == -np.inf
    assert answer.exact


def test_unknown_feasibility_softens(monkeypatch):
    problem = make_problem([[1.0, 0.0, 0.0], [2.0, 0.0, 1.0]], [(0, 1)], [HARD])
    monkeypatch.setattr(module, "feasible_labels", lambda p, rng: ("unknown", np.zeros(2, dtype=np.int64)))
    monkeypatch.setattr(module, "polish", lambda p, labels, rng: (np.zeros(2, dtype=np.int64), 0))
    answer = run(problem, tol=0.03)
    assert answer.log_partition == -np.inf
    assert answer.log_partition_kind == "lower_bound"
    assert not answer.exact
    assert not answer.converged
    np.testing.assert_allclose(answer.prob, brute_force(problem)[0], atol=0.1)
    assert answer.agreement[0] < 1e-6


@pytest.mark.parametrize("scale", [1e-6, 1e3, 1e6])
def test_no_overflow_at_any_scale(scale):
    for seed in range(15):
        problem = random_problem(seed, scale=scale, hard=0.2, must_hard=False)
        prob = brute_force(problem)[0]
        answer = run(problem, seed, max_sweeps=60)
        if prob is not None:
            assert np.isfinite(answer.prob).all()
            assert np.isfinite(answer.agreement).all()


@pytest.mark.parametrize("offset", [0.0, 0.2])
def test_tally_against_numpy(offset):
    """Batch means, chain means and squares of made-up samples, computed at once from all of them."""
    rng = np.random.default_rng(0)
    length, n_chains = 5, 3
    samples = rng.dirichlet(np.ones(3), size=(n_chains, N_BATCHES, length, 4))
    samples += rng.normal(scale=offset, size=(n_chains, 1, 1, 4, 3))
    tally = Tally((4, 3), 6)
    for chain in samples:
        for batch in chain:
            for sample in batch:
                tally.batch += sample
                tally.agreement += 1.0
            tally.close_batch(length, float((batch**2).sum()))
        tally.close_chain()
    estimate = tally.estimate()
    np.testing.assert_allclose(estimate.prob, samples.mean(axis=(0, 1, 2)))
    np.testing.assert_allclose(estimate.agreement, 1.0)
    assert estimate.n_samples == n_chains * N_BATCHES * length
    batch_means = samples.mean(axis=2)
    variance = batch_means.reshape(-1, 4, 3).var(axis=0, ddof=1)
    between = batch_means.mean(axis=1).var(axis=0, ddof=1).sum() / (variance.sum() / N_BATCHES)
    assert estimate.between_chains == pytest.approx(between)
    assert (between > 3.5) == (offset > 0.0)
    inflation = between if offset > 0.0 else 1.0
    spread = samples.reshape(-1, 4, 3).var(axis=0).sum()
    effective = min(spread / (variance.sum() * inflation / (n_chains * N_BATCHES)), estimate.n_samples)
    assert estimate.effective_samples == pytest.approx(effective)
    expected = np.sqrt(variance * inflation / (n_chains * N_BATCHES) + effective**-2)
    np.testing.assert_allclose(estimate.standard_error, expected)
    tally.clear()
    assert not any(table.any() for table in (tally.batch, tally.agreement, tally._total, tally._squares))
