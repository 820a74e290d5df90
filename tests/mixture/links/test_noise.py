"""Error rates of annotators: all labellings enumerated, simulations, symmetries, cross-validation."""

import itertools
import warnings
from typing import ClassVar

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import beta
from sklearn.datasets import load_iris
from sklearn.model_selection import KFold, cross_validate

import linkwise.mixture.links.noise as noise_module
from linkwise import PPC, Constraints
from tests.mixture.oracle import log_density
from tests.repeats import LONG, examples, for_seeds


def fit_quietly(model, X, links):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, constraints=links)


def answers(y, rates, n_each, rng, *, certainty=0.8, same_pairs=False):
    """Links of annotators with these error rates, who judge the same pairs or pairs of their own."""
    every = np.column_stack(np.triu_indices(len(y), k=1))
    shared = rng.choice(every, n_each, replace=False)
    pairs = [shared if same_pairs else rng.choice(every, n_each, replace=False) for _ in rates]
    pairs, who = np.concatenate(pairs), np.repeat(list(rates), n_each)
    wrong = rng.random(len(pairs)) < np.repeat(list(rates.values()), n_each)
    same = (y[pairs[:, 0]] == y[pairs[:, 1]]) ^ wrong
    links = Constraints(
        len(y), pairs[same], pairs[~same], certainty=certainty, source=np.concatenate([who[same], who[~same]])
    )
    return links, {name: wrong[who == name].mean() for name in rates}


def enumerated(X, weights, means, covariances, said, rate_of):
    """P(z) of every labelling, log P(X, answers), P(answer is wrong), straight from the model."""
    joint = log_density(X, means, covariances) + np.log(weights)
    labellings = np.array(list(itertools.product(range(len(weights)), repeat=len(X))))
    logs = []
    for z in labellings:
        value = joint[np.arange(len(X)), z].sum()
        for (i, j), weight, name in zip(*said, strict=True):
            right = (z[i] == z[j]) == (weight > 0)
            if np.isinf(weight):
                value += 0.0 if right else -np.inf
            else:
                value += np.log(1 - rate_of[name] if right else rate_of[name])
        logs.append(value)
    total = float(logsumexp(logs))
    probability = np.exp(np.array(logs) - total)
    wrong = [
        probability[(labellings[:, i] == labellings[:, j]) != (weight > 0)].sum()
        for (i, j), weight in zip(said.pairs, said.weights, strict=True)
    ]
    resp = np.array(
        [[probability[labellings[:, i] == k].sum() for k in range(len(weights))] for i in range(len(X))]
    )
    return resp, total, np.array(wrong)


class TestEnumeration:
    X = np.random.default_rng(0).normal(size=(6, 2)) + np.repeat([[0.0], [1.5]], 3, axis=0)
    # Two pairs judged twice, one three times with two opinions, one whose answers cancel, one hard.
    links = Constraints(
        6,
        must_link=[(0, 1), (0, 1), (1, 2), (1, 2), (2, 3), (3, 4)],
        cannot_link=[(1, 2), (2, 3), (0, 5), (4, 5)],
        certainty=[0.8, 0.9, 0.8, 0.9, 0.8, 0.7, 0.7, 0.8, 0.9, 1.0],
        source=["a", "b", "a", "b", "a", "c", "c", "a", "b", "c"],
    )
    start: ClassVar = {
        "weights_init": [0.4, 0.6],
        "means_init": [[0.0, 0.1], [1.4, 1.2]],
        "precisions_init": [np.eye(2), 0.5 * np.eye(2)],
    }
    given: ClassVar = {"a": 0.2, "b": 0.1, "c": 0.3}

    def model(self, **options):
        options = {"reg_covar": 0.1, "shrinkage": 0, "inference": "exact", **self.start, **options}
        return PPC(2, learn_noise="source", **options)

    def test_a_pair_whose_answers_cancel_is_no_link_but_is_judged(self):
        assert [2, 3] not in self.links.pairs.tolist()
        assert [2, 3] in self.links.judgements.pairs.tolist()

    def test_one_step(self):
        model = fit_quietly(self.model(max_iter=1), self.X, self.links)
        covariances = [np.eye(2), 2.0 * np.eye(2)]
        arguments = (self.X, self.start["weights_init"], self.start["means_init"], covariances)
        _, total, wrong = enumerated(*arguments, self.links.judgements, self.given)
        prior = sum(2.0 * (r * np.log(r) + (1 - r) * np.log(1 - r)) for r in self.given.values())
        assert model.lower_bounds_[0] == pytest.approx((total + prior) / 6, abs=1e-12)
        soft = np.isfinite(self.links.judgements.weights)
        for name, rate in self.given.items():
            mine = (self.links.source == name) & soft
            expected = (wrong[mine].sum() + 2.0 * rate) / (mine.sum() + 2.0)
            assert model.noise_[name] == pytest.approx(min(expected, 0.5 - 1e-6), abs=1e-12)

    def test_posterior_at_the_fitted_parameters(self):
        model = fit_quietly(self.model(max_iter=4), self.X, self.links)
        resp, _, wrong = enumerated(
            self.X, model.weights_, model.means_, model.covariances_, self.links.judgements, model.noise_
        )
        np.testing.assert_allclose(model.responsibilities_, resp, atol=1e-10)
        np.testing.assert_allclose(model.answer_error_probability_, wrong, atol=1e-10)
        # Of the links, which leave out the pair that cancels.
        said = self.links.judgements
        of_pair = {tuple(pair): (w if s > 0 else 1 - w) for pair, s, w in zip(*said[:2], wrong, strict=True)}
        expected = [
            of_pair[tuple(pair)] if weight > 0 else 1 - of_pair[tuple(pair)]
            for pair, weight in zip(self.links.pairs, self.links.weights, strict=True)
        ]
        np.testing.assert_allclose(model.violation_probability_, expected, atol=1e-10)

    def test_joint_decoding_uses_the_learned_rates(self):
        model = fit_quietly(self.model(max_iter=4, decode="map"), self.X, self.links)
        joint = log_density(self.X, model.means_, model.covariances_) + np.log(model.weights_)
        best, value = None, -np.inf
        for z in itertools.product(range(2), repeat=6):
            score = joint[np.arange(6), list(z)].sum()
            for (i, j), weight, name in zip(*self.links.judgements, strict=True):
                rate = 0.0 if np.isinf(weight) else model.noise_[name]
                with np.errstate(divide="ignore"):
                    score += np.log(1 - rate if (z[i] == z[j]) == (weight > 0) else rate)
            if score > value:
                best, value = z, score
        assert model.labels_.tolist() == list(best)

    @for_seeds(examples(5, 3))
    def test_objective_never_falls(self, seed):
        rng = np.random.default_rng(seed)
        y = rng.integers(2, size=40)
        X = rng.normal(size=(40, 2)) + 2.0 * y[:, np.newaxis]
        links, _ = answers(y, {"a": 0.05, "b": 0.4}, 15, rng, same_pairs=seed % 2 == 0)
        model = PPC(
            2,
            learn_noise="source",
            reg_covar=0.0,
            tol=0.0,
            n_init=1,
            max_iter=40,
            inference="exact",
            random_state=0,
        )
        fit_quietly(model, X, links)
        assert model.n_decreases_ == 0
        assert len(model.lower_bounds_) == 40


class TestSimulatedAnnotators:
    @pytest.mark.parametrize("same_pairs", [False, True])
    def test_rates_lie_in_their_intervals(self, same_pairs):
        """Of 30 intervals of 90 % that hold the true rates, chance allows 5 misses (3 expected, p = .93).

        Of the 15 intervals of ``make test`` it allows 3 misses (p = .94).
        """
        X, y = load_iris(return_X_y=True)
        rates = {"Ann": 0.02, "Bob": 0.15, "Carl": 0.4}
        held, error = [], []
        for seed in range(10 if LONG else 5):
            links, share = answers(y, rates, 100, np.random.default_rng(seed), same_pairs=same_pairs)
            model = fit_quietly(PPC(3, learn_noise="source", n_init=1, random_state=seed), X, links)
            for name, rate in rates.items():
                low, high = model.noise_interval_[name]
                assert low <= model.noise_[name] <= high
                held.append(low <= rate <= high)
                error.append(abs(model.noise_[name] - share[name]))
        assert np.sum(held) >= (25 if LONG else 12)
        assert np.mean(error) < 0.03

    def test_one_rate_is_right_on_average(self):
        """Two of three clusters overlap, as in Iris; the prior of the covariances does not bias the rate."""
        means = np.array([[0.0, 0.0], [7.0, 0.0], [10.0, 0.0]])
        y = np.repeat([0, 1, 2], 50)
        errors = []
        for seed in range(24):
            rng = np.random.default_rng(seed)
            X = means[y] + rng.normal(size=(len(y), 2))
            links = Constraints.sample(y, 37, flip=0.15, certainty=0.8, random_state=rng)
            model = PPC(3, learn_noise=True, n_init=1, means_init=means, random_state=0)
            errors.append(fit_quietly(model, X, links).noise_ - links.violations(y).mean())
            assert model.linked_weight_ == 1.0
        assert abs(np.mean(errors)) < 2.0 * np.std(errors) / np.sqrt(len(errors)) < 0.015

    def test_answers_are_told_apart(self):
        rng = np.random.default_rng(0)
        y = rng.integers(2, size=400)
        X = rng.normal(size=(400, 2)) + 6.0 * y[:, np.newaxis]
        links, share = answers(y, {"Ann": 0.02, "Bob": 0.15, "Carl": 0.4}, 200, rng)
        model = fit_quietly(PPC(2, learn_noise="source", random_state=0), X, links)
        said = links.judgements
        wrong = (y[said.pairs[:, 0]] == y[said.pairs[:, 1]]) != (said.weights > 0)
        assert ((model.answer_error_probability_ > 0.5) == wrong).all()
        for name, rate in share.items():
            assert model.noise_[name] == pytest.approx(rate, abs=0.01)
        listed = model.doubtful_answers(X, links, n_answers=int(wrong.sum()))
        expected = {
            (*pair, name) for pair, name in zip(said.pairs[wrong].tolist(), said.source[wrong], strict=True)
        }
        assert {(a.i, a.j, a.source) for a in listed} == {(i, j, n) for i, j, n in expected}

    def test_a_reliable_annotator_outvotes_two_bad_ones(self):
        rng = np.random.default_rng(1)
        y = rng.integers(2, size=300)
        X = rng.normal(size=(300, 2)) + 4.0 * y[:, np.newaxis]
        links, _ = answers(y, {"good": 0.0, "bad": 0.4, "worse": 0.45}, 150, rng, same_pairs=True)
        model = fit_quietly(PPC(2, learn_noise="source", random_state=0), X, links)
        told = y[links.pairs[:, 0]] == y[links.pairs[:, 1]]
        found = model.labels_[links.pairs[:, 0]] == model.labels_[links.pairs[:, 1]]
        assert (told == found).mean() > 0.98
        assert ((links.weights > 0) == told).mean() < 0.9  # what adding up equal votes gives

    def test_one_answer_does_not_decide(self):
        X, y = load_iris(return_X_y=True)
        rng = np.random.default_rng(0)
        many, _ = answers(y, {"Ann": 0.1}, 80, rng)
        one = Constraints(150, cannot_link=[(0, 140)], certainty=0.8, source="new")
        model = fit_quietly(PPC(3, learn_noise="source", random_state=0), X, many + one)
        assert model.noise_["new"] == pytest.approx(2 * 0.2 / 3, abs=0.01)
        low, high = model.noise_interval_["new"]
        assert low < 0.02
        assert high > 0.4


class TestSymmetries:
    def test_names_do_not_matter(self):
        X, y = load_iris(return_X_y=True)
        links, _ = answers(y, {"a": 0.02, "b": 0.15, "c": 0.35}, 60, np.random.default_rng(3))
        said = links.judgements
        other = {"a": "z", "b": "y", "c": "x"}
        must = said.weights > 0
        order = np.concatenate([np.flatnonzero(must), np.flatnonzero(~must)])[::-1]
        order = np.concatenate([order[must[order]], order[~must[order]]])
        renamed = Constraints(
            150, said.pairs[must][::-1],
            said.pairs[~must][::-1], certainty=0.8, source=[other[said.source[row]] for row in order],
        )  # fmt: skip
        first = fit_quietly(PPC(3, learn_noise="source", random_state=0), X, links)
        second = fit_quietly(PPC(3, learn_noise="source", random_state=0), X, renamed)
        assert first.lower_bound_ == pytest.approx(second.lower_bound_, abs=1e-10)
        np.testing.assert_array_equal(first.labels_, second.labels_)
        for name, rate in first.noise_.items():
            assert second.noise_[other[name]] == pytest.approx(rate, abs=1e-8)
            np.testing.assert_allclose(
                second.noise_interval_[other[name]], first.noise_interval_[name], atol=1e-6
            )

    def test_rows_do_not_matter(self):
        import pandas

        X, y = load_iris(return_X_y=True)
        links, _ = answers(y, {"a": 0.02, "b": 0.3}, 60, np.random.default_rng(3))
        ids = np.array([f"flower {row}" for row in range(150)])
        links = links.with_index(ids)
        frame = pandas.DataFrame(X, index=ids)
        model = fit_quietly(PPC(3, learn_noise="source", means_init=X[[0, 60, 120]]), frame, links)
        mixed = frame.sample(frac=1.0, random_state=0)
        other = fit_quietly(PPC(3, learn_noise="source", means_init=X[[0, 60, 120]]), mixed, links)
        for name in ("a", "b"):
            assert other.noise_[name] == pytest.approx(model.noise_[name], abs=0.005)
        listed = {frozenset(a[:2]) for a in other.doubtful_answers(mixed, links, n_answers=5)}
        assert listed <= {frozenset(a[:2]) for a in model.doubtful_answers(frame, links, n_answers=15)}

    def test_without_several_answers_one_source_is_one_rate_for_all(self, monkeypatch):
        monkeypatch.setattr(noise_module, "_PRIOR_ANSWERS", 0.0)
        X, y = load_iris(return_X_y=True)
        links = Constraints.sample(y, 60, flip=0.2, certainty=0.8, random_state=0)
        named = Constraints(150, links.must_link, links.cannot_link, certainty=0.8, source="me")
        one = fit_quietly(PPC(3, learn_noise=True, random_state=0), X, links)
        other = fit_quietly(PPC(3, learn_noise="source", random_state=0), X, named)
        assert other.noise_["me"] == one.noise_
        assert other.lower_bounds_ == one.lower_bounds_


class TestCrossValidation:
    def test_folds_keep_sources(self):
        X, y = load_iris(return_X_y=True)
        links, _ = answers(y, {"Ann": 0.02, "Carl": 0.35}, 200, np.random.default_rng(0))
        rare = Constraints(150, must_link=[(0, 1)], certainty=0.8, source="Rare")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = cross_validate(
                PPC(3, learn_noise="source", random_state=0), X, params={"constraints": links + rare},
                cv=KFold(3, shuffle=True, random_state=0), return_estimator=True, error_score="raise",
            )  # fmt: skip
        for model in found["estimator"]:
            assert {"Ann", "Carl"} <= set(model.noise_) <= {"Ann", "Carl", "Rare"}
            assert model.noise_["Ann"] < 0.15 < model.noise_["Carl"]

    def test_a_fold_without_answers(self):
        links = Constraints(8, must_link=[(0, 1)], certainty=0.8, source="Ann")[np.arange(2, 8)]
        model = fit_quietly(PPC(1, learn_noise="source"), np.arange(12.0).reshape(6, 2), links)
        assert model.noise_ == {}
        assert model.noise_interval_ == {}

    @pytest.mark.parametrize("learn_noise", [True, "source"])
    def test_answers_that_are_as_good_as_certain(self, learn_noise):
        X = np.arange(8.0)[:, np.newaxis] // 4 * 9.0 + np.random.default_rng(0).normal(size=(8, 2))
        links = Constraints(
            8, [(0, 1), (4, 5)], [(0, 4), (2, 6)], weight=[400, 1, 1e300, 1], source=["a"] * 4
        )
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            model = PPC(2, learn_noise=learn_noise, random_state=0).fit(X, constraints=links)
        assert not links.violations(model.labels_).any()

    def test_answers_that_all_cancel(self):
        X = np.r_[np.zeros((5, 1)), np.ones((5, 1))] + np.linspace(0, 0.01, 10)[:, None]
        links = Constraints(10, [(0, 1)], [(0, 1)], certainty=0.8, source=["Ann", "Bob"])
        assert links.n_pairs == 0
        model = fit_quietly(PPC(2, learn_noise="source", random_state=0), X, links)
        assert model.noise_["Ann"] < 0.2 < model.noise_["Bob"]
        assert len(model.violation_probability_) == 0
        assert model.answer_error_probability_[0] < 0.1 < 0.9 < model.answer_error_probability_[1]


class TestIntervals:
    @pytest.mark.parametrize(("n_wrong", "n"), [(0, 50), (5, 50), (40, 400), (3, 4), (20000, 100_000)])
    def test_known_states_give_a_beta_posterior(self, n_wrong, n):
        wrong = np.repeat([1.0, 0.0], [n_wrong, n - n_wrong])
        rate = np.clip(n_wrong / n, 1e-6, 0.5 - 1e-6)
        low, high = noise_module._shortest_interval(rate, wrong, np.zeros(2))
        posterior = beta(1 + n_wrong, 1 + n - n_wrong)
        held = (posterior.cdf(high) - posterior.cdf(low)) / posterior.cdf(0.5)
        assert held == pytest.approx(0.9, abs=0.02)
        if low > 0 and high < 0.5:
            assert posterior.pdf(low) == pytest.approx(posterior.pdf(high), rel=0.1)

    def test_answers_that_nothing_confirms_say_nothing(self):
        wrong = np.full(1000, 0.2)
        low, high = noise_module._shortest_interval(0.2, wrong, np.array([0.4, 1.6]))
        posterior = beta(1.4, 2.6)
        assert (posterior.cdf(high) - posterior.cdf(low)) / posterior.cdf(0.5) == pytest.approx(0.9, abs=0.02)
        assert high - low > 0.35


class TestRefusals:
    X = np.arange(12.0).reshape(6, 2)

    def test_links_without_sources(self):
        links = Constraints(6, must_link=[(0, 1)], certainty=0.9)
        for given in (links, None):
            with pytest.raises(ValueError, match=r'learn_noise="source" needs to know who .*source=names'):
                PPC(2, learn_noise="source").fit(self.X, constraints=given)

    def test_an_array_of_names(self):
        links = Constraints(6, must_link=[(0, 1)], certainty=0.9)
        with pytest.raises(ValueError, match=r"pass the names as Constraints\(\.\.\., source"):
            PPC(2, learn_noise=["Ann"]).fit(self.X, constraints=links)

    def test_links_of_another_fit(self):
        links = Constraints(6, must_link=[(0, 1), (2, 3)], certainty=0.9)
        model = fit_quietly(PPC(1), self.X, links)
        with pytest.raises(ValueError, match="fitted with 2 answers, but these links have 1"):
            model.doubtful_answers(self.X, Constraints(6, must_link=[(0, 1)]))

    def test_hard_answers_have_no_rate(self):
        links = Constraints(6, must_link=[(0, 1), (4, 5)], certainty=[0.9, 1.0], source=["Ann", "Bob"])
        model = fit_quietly(PPC(1, learn_noise="source"), self.X, links)
        assert np.isnan(model.noise_["Bob"])
        assert np.isnan(model.noise_interval_["Bob"]).all()
