"""Folds of links: what is asked is news, and what is kept says no more than all links."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linkwise import Constraints
from linkwise.model_selection.held_out import link_folds
from tests.repeats import examples, for_seeds

#: The weight of a certainty of 0.95; doubtful links imply nothing.
SURE = 0.5 * np.log(0.95 / 0.05) - 1e-9


def closure(links, *, least=0.0):
    """What links say of every pair, +1 same, -1 different, 0 nothing; Warshall on must-links, then apart."""
    n = links.n_samples
    same, apart = np.eye(n, dtype=bool), np.zeros((n, n), dtype=bool)
    for (i, j), weight in zip(links.pairs.tolist(), links.weights.tolist(), strict=True):
        if abs(weight) >= least:
            table = same if weight > 0 else apart
            table[i, j] = table[j, i] = True
    for k, i, j in itertools.product(range(n), repeat=3):
        same[i, j] |= same[i, k] and same[k, j]
    apart = (same.astype(int) @ apart @ same) > 0
    return np.where(same, 1, np.where(apart, -1, 0))


def by_rows(links, questions):
    """Whether folds are made of rows: the questions are then no longer the links."""
    return questions.pairs.shape != links.pairs.shape or not (questions.pairs == links.pairs).all()


def folds_of(links, n_folds=5, seed=0):
    return link_folds(links, n_folds, np.random.default_rng(seed))


def drawn(seed, n=12, n_links=14, k=3, hard=0.5):
    """True links of random pairs, some hard, others soft."""
    rng = np.random.default_rng(seed)
    y = rng.integers(k, size=n)
    pairs = np.array(list(itertools.combinations(range(n), 2)))
    pairs = pairs[rng.choice(len(pairs), n_links, replace=False)]
    same = y[pairs[:, 0]] == y[pairs[:, 1]]
    weight = np.where(rng.random(n_links) < hard, np.inf, 0.5 + 2.0 * rng.random(n_links))
    return y, Constraints(
        n, pairs[same], pairs[~same], weight=np.concatenate([weight[same], weight[~same]])
    )  # fmt: skip


def check(links, y, questions, folds, n_folds):
    """What holds for any folds of true links."""
    everything = closure(links)
    hard = closure(links, least=np.inf)
    assert len(folds) <= n_folds
    assert (questions.same == (y[questions.pairs[:, 0]] == y[questions.pairs[:, 1]])).all()
    times = np.zeros(len(questions.pairs), dtype=int)
    for fold in folds:
        assert len(fold.asked)
        times[fold.asked] += 1
        assert not fold.kept.violations(y).any()
        said, surely = closure(fold.kept), closure(fold.kept, least=SURE)
        kept = set(map(tuple, fold.kept.pairs.tolist()))
        for i, j in questions.pairs[fold.asked]:
            assert surely[i, j] == 0, "a fit that knows the answer is asked"
            assert (i, j) not in kept
        # Nothing is kept that all links together do not say, and nothing harder.
        assert (everything[said != 0] == said[said != 0]).all()
        said_hard = closure(fold.kept, least=np.inf)
        assert (hard[said_hard != 0] == said_hard[said_hard != 0]).all()
        by_row = not np.isin(questions.pairs[fold.asked], fold.kept.pairs).all(axis=1).any()
    assert times.max(initial=0) <= (2 if by_row else 1)


class TestAnyLinks:
    @settings(deadline=None, max_examples=examples(60, 15))
    @given(st.integers(0, 2**32 - 1), st.integers(2, 30), st.integers(2, 5), st.sampled_from([0.0, 0.5, 1.0]))
    def test_random_overlapping_links(self, seed, n_links, n_folds, hard):
        y, links = drawn(seed, n_links=n_links, hard=hard)
        check(links, y, *folds_of(links, n_folds, seed), n_folds)

    @for_seeds(4)
    def test_rows_that_are_left_out_are_in_no_link(self, seed):
        _, links = drawn(seed, n_links=45)
        questions, folds = folds_of(links, seed=seed)
        assert by_rows(links, questions)
        met = np.zeros(12, dtype=int)
        for fold in folds:
            inside = np.unique(fold.kept.pairs)
            outside = np.setdiff1d(np.arange(12), inside)
            # Each question has an end that is left out.
            assert np.isin(questions.pairs[fold.asked], outside).any(axis=1).all()
            met[inside] += 1
        # A row is in all folds but its own, unless nothing is known of it there.
        assert (met <= len(folds) - 1).all()


class TestDisjointLinks:
    """No link follows from another: each is asked once."""

    links = Constraints(
        40, [(4 * i, 4 * i + 1) for i in range(10)], [(4 * i + 2, 4 * i + 3) for i in range(10)]
    )

    def test_each_is_asked_once(self):
        questions, folds = folds_of(self.links)
        assert len(folds) == 5
        np.testing.assert_array_equal(questions.pairs, self.links.pairs)
        asked = np.concatenate([fold.asked for fold in folds])
        assert sorted(asked) == list(range(20))
        for fold in folds:
            assert fold.kept.n_pairs == 20 - len(fold.asked)
            # Equal shares of both kinds.
            assert questions.same[fold.asked].sum() == 2
            assert len(fold.asked) == 4

    def test_trust_is_twice_the_certainty_less_one(self):
        links = Constraints(4, [(0, 1)], [(2, 3)], certainty=[0.9, 0.6])
        questions, _ = folds_of(links, 2)
        np.testing.assert_allclose(questions.trust, [0.8, 0.2])
        assert questions.n_independent == pytest.approx(0.8**2 + 0.2**2)
        assert folds_of(self.links)[0].n_independent == 20

    def test_rows_limit_how_much_questions_are_worth(self):
        y = np.arange(6) % 2
        questions, _ = folds_of(Constraints.from_labels(y))
        assert len(questions.pairs) == 15
        assert questions.n_independent == 6

    def test_the_seed_decides(self):
        first, second, other = (
            [fold.asked.tolist() for fold in folds_of(self.links, seed=seed)[1]] for seed in (3, 3, 4)
        )
        assert first == second != other

    def test_more_folds_than_links_leave_out_empty_ones(self):
        _, folds = folds_of(Constraints(4, [(0, 1)], [(2, 3)], certainty=0.9), 5)
        assert 1 <= len(folds) <= 2
        assert sum(len(fold.asked) for fold in folds) == 2


class TestGroups:
    def test_complete_groups(self):
        """Two cliques of four rows, linked apart throughout: only whole rows can be news."""
        y = np.repeat([0, 1], 4)
        pairs = np.array(list(itertools.combinations(range(8), 2)))
        same = y[pairs[:, 0]] == y[pairs[:, 1]]
        links = Constraints(10, pairs[same], pairs[~same])
        questions, folds = folds_of(links, 4)
        check(links, np.append(y, [0, 0]), questions, folds, 4)
        assert len(questions.pairs) == 28
        assert len(folds) == 4
        left_out = [np.setdiff1d(np.arange(8), fold.kept.pairs) for fold in folds]
        assert sorted(np.concatenate(left_out)) == list(range(8))
        for fold, rows in zip(folds, left_out, strict=True):
            assert sorted(y[rows]) == [0, 1]  # one of each group
            assert len(fold.asked) == 13  # 28 pairs less the 15 of six rows
            # All that is known of the other rows is kept.
            others = np.setdiff1d(np.arange(8), rows)
            assert (closure(fold.kept)[np.ix_(others, others)] != 0).all()

    def test_labels(self):
        y = np.array(["a", "b", None, "a", "b", "c", "c", "a", None, "c"], dtype=object)
        links = Constraints.from_labels(y)
        questions, folds = folds_of(links, 3)
        known = [row for row in range(10) if y[row] is not None]
        assert {tuple(pair) for pair in questions.pairs.tolist()} == set(itertools.combinations(known, 2))
        assert (questions.trust == 1.0).all()
        truth = np.array([ord(name or "z") for name in y])
        check(links, truth, questions, folds, 3)

    def test_hard_groups_and_soft_links(self):
        """Soft links are asked with their trust, and kept where no end is left out."""
        hard = list(itertools.combinations(range(5), 2))
        soft = [(5, 6), (6, 7), (0, 7)]
        links = Constraints(
            8, hard + soft, [(0, 5)], weight=[*[np.inf] * len(hard), 0.5, 0.5, 0.5, 2.0]
        )  # fmt: skip
        questions, folds = folds_of(links, 3)
        found = dict(zip(map(tuple, questions.pairs.tolist()), questions.trust.tolist(), strict=True))
        assert found == pytest.approx(
            dict.fromkeys(hard, 1.0) | dict.fromkeys(soft, np.tanh(0.5)) | {(0, 5): np.tanh(2.0)}
        )
        for fold in folds:
            inside = set(np.unique(fold.kept.pairs).tolist())
            kept = {tuple(pair) for pair in fold.kept.pairs[np.isfinite(fold.kept.weights)].tolist()}
            assert kept <= {*soft, (0, 5)}
            asked = {tuple(pair) for pair in questions.pairs[fold.asked].tolist()}
            assert kept == {*soft, (0, 5)} - asked
            assert all(set(pair) <= inside for pair in kept)

    def test_many_rows_are_asked_about_some_pairs(self):
        y = np.arange(400) % 2
        questions, _ = folds_of(Constraints.from_labels(y))
        assert 15_000 < len(questions.pairs) <= 20_000
        assert (questions.same == (y[questions.pairs[:, 0]] == y[questions.pairs[:, 1]])).all()
        assert len(np.unique(questions.pairs @ [400, 1])) == len(questions.pairs)


class TestSources:
    def judged(self, n_pairs):
        """Two people judge each pair, one of them surer."""
        pairs = [(2 * i, 2 * i + 1) for i in range(n_pairs)]
        return Constraints(
            2 * n_pairs + 8, pairs * 2, weight=[0.5] * n_pairs + [1.0] * n_pairs,
            source=["ann"] * n_pairs + ["ben"] * n_pairs,
        )  # fmt: skip

    def test_are_kept_with_all_judgements(self):
        links = self.judged(10)
        questions, folds = folds_of(links)
        assert len(questions.pairs) == 10
        for fold in folds:
            assert sorted(fold.kept.source) == ["ann"] * 8 + ["ben"] * 8

    def test_are_kept_where_rows_are_left_out(self):
        groups = Constraints(28, list(itertools.combinations(range(20, 28), 2)), [(0, 20)])
        links = self.judged(10) + groups
        questions, folds = folds_of(links)
        assert by_rows(links, questions)
        said = links.judgements
        for fold in folds:
            kept = fold.kept.judgements
            soft = np.isfinite(kept.weights)
            assert kept.source is not None
            wanted = {
                (*pair, weight, name)
                for pair, weight, name in zip(said.pairs.tolist(), said.weights, said.source, strict=True)
                if name and set(pair) <= set(np.unique(kept.pairs[soft]).tolist())
            }
            found = {
                (*pair, weight, name)
                for pair, weight, name in zip(
                    kept.pairs[soft].tolist(), kept.weights[soft], kept.source[soft], strict=True
                )
            }
            assert found == wanted
            assert (kept.source[~soft] == "").all()
