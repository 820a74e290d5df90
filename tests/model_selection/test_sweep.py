"""sweep_components: seeds, choice of K, kept runs, warnings and refusals, on mixtures and on stand-ins."""

from __future__ import annotations

import warnings
from functools import partial

import matplotlib
import numpy as np
import pytest
from joblib import parallel_config
from sklearn.base import BaseEstimator
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from linkwise import (
    CPPC,
    PPC,
    ConstrainedEM,
    ConstrainedSpectralClustering,
    Constraints,
    COPKMeans,
    HMRFKMeans,
    MPCKMeans,
    PCKMeans,
    SpectralLearning,
)
from linkwise.model_selection import sweep_components
from linkwise.model_selection.held_out import hold_out
from tests.forked_loky import forked_loky

matplotlib.use("Agg")


class Scripted(BaseEstimator):
    """Criteria that are known functions of K and the seed, so that every choice can be checked."""

    def __init__(self, n_components=1, *, beliefs=None, values=None, random_state=None, warn=None):
        self.n_components = n_components
        self.beliefs = beliefs
        self.values = values
        self.random_state = random_state
        self.warn = warn

    def fit(self, X, y=None):
        if self.warn is not None:
            kind = ConvergenceWarning if "converge" in self.warn else UserWarning
            warnings.warn(self.warn, kind, stacklevel=1)
        noise = np.random.default_rng(self.random_state).normal()
        value = noise if self.values is None else self.values[self.n_components] + 0.1 * noise
        self.criteria_ = {"cbic": value, "bic": -value}
        self.lower_bound_ = noise**2
        self.n_occupied_ = min(self.n_components, 3)
        self.converged_ = self.warn is None or "converge" not in self.warn
        return self


X = np.zeros((10, 2))


@pytest.fixture
def blobs():
    return make_blobs(240, centers=[[0, 0], [6, 0], [0, 6], [6, 6]], cluster_std=0.7, random_state=0)


class TestChoice:
    def test_lowest_mean_wins_and_the_kept_runs_are_the_right_ones(self):
        values = {2: 5.0, 3: 1.0, 4: 2.0}
        sweep = sweep_components(
            Scripted(values=values), X, n_components=[4, 2, 3, 3], n_repeats=7, random_state=1
        )
        assert sweep.table["n_components"].tolist() == [2, 3, 4]
        assert sweep.best_n_components == 3
        assert sweep.at_edge is None
        assert sweep.best is sweep.typical[3]
        for row in sweep.table:
            k = int(row["n_components"])
            mine = [run for run in sweep.runs if run.n_components == k]
            scores = np.array([run.criterion for run in mine])
            assert len(scores) == 7
            assert row["mean"] == pytest.approx(scores.mean())
            assert row["std"] == pytest.approx(np.sqrt(((scores - scores.mean()) ** 2).sum() / 6))
            assert row["best"] == scores.min()
            assert row["n_occupied"] == min(k, 3)
            assert row["converged"] == 1.0
            nearest = min(mine, key=lambda run: abs(run.criterion - scores.mean()))
            highest = max(mine, key=lambda run: run.objective)
            assert sweep.typical[k].criteria_["cbic"] == nearest.criterion
            assert sweep.best_runs[k].lower_bound_ == highest.objective
            assert sweep.best_runs[k].random_state == highest.seed

    def test_another_criterion(self):
        sweep = sweep_components(
            Scripted(values={2: 5.0, 3: 6.0, 4: 2.0}),
            X,
            n_components=range(2, 5),
            criterion="bic",
            n_repeats=2,
        )
        assert sweep.best_n_components == 3

    def test_one_run_has_no_spread(self):
        sweep = sweep_components(Scripted(), X, n_components=5, n_repeats=1, random_state=0)
        assert np.isnan(sweep.table["std"]).all()
        assert sweep.at_edge is None
        assert sweep.best is sweep.best_runs[5]

    @pytest.mark.parametrize(("best", "edge", "words"), [(2, "lower", "smaller"), (6, "upper", "larger")])
    def test_edges_warn(self, best, edge, words):
        values = {k: float(abs(k - best)) for k in range(2, 7)}
        with pytest.warns(UserWarning, match=f"K = {best}, the {edge} edge of the range.*Add {words} values"):
            sweep = sweep_components(
                Scripted(values=values), X, n_components=range(2, 7), n_repeats=3, random_state=0
            )
        assert sweep.at_edge == edge
        assert edge in str(sweep)

    def test_one_component_is_no_edge(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            sweep = sweep_components(Scripted(values={1: 0.0, 2: 9.0}), X, n_components=[1, 2], n_repeats=2)
        assert sweep.at_edge is None

    def test_infinite_and_undefined_criteria(self):
        with pytest.warns(UserWarning, match="NaN in some run with K = 2; these K were not considered"):
            sweep = sweep_components(
                Scripted(values={2: np.nan, 3: 1.0, 4: -np.inf, 5: 3.0}),
                X,
                n_components=range(2, 6),
                n_repeats=3,
            )
        assert sweep.best_n_components == 4
        assert sweep.best.criteria_["cbic"] == -np.inf
        with pytest.raises(ValueError, match="cbic is NaN for every"):
            sweep_components(Scripted(values={2: np.nan}), X, n_components=2)


class TestSeeds:
    def test_seeds_depend_on_k_and_repeat_only(self):
        wide = sweep_components(Scripted(), X, n_components=range(1, 6), n_repeats=4, random_state=3)
        narrow = sweep_components(Scripted(), X, n_components=[3], n_repeats=2, random_state=3)
        seeds = {(run.n_components, run.repeat): run.seed for run in wide.runs}
        assert len(set(seeds.values())) == 20
        for run in narrow.runs:
            assert run.seed == seeds[run.n_components, run.repeat]
        other = sweep_components(Scripted(), X, n_components=[3], n_repeats=2, random_state=4)
        assert other.runs[0].seed != narrow.runs[0].seed

    def test_generators_and_none_are_accepted(self):
        first = sweep_components(Scripted(), X, n_components=2, n_repeats=1)
        second = sweep_components(Scripted(), X, n_components=2, n_repeats=1)
        assert first.runs[0].seed != second.runs[0].seed
        rng = np.random.default_rng(0)
        assert sweep_components(Scripted(), X, n_components=2, n_repeats=1, random_state=rng).runs

    @pytest.mark.parametrize("backend", [partial(parallel_config, "threading"), forked_loky])
    def test_results_do_not_depend_on_n_jobs(self, backend, blobs):
        data, _ = blobs

        def sweep(n_jobs):
            return sweep_components(
                PPC(init_params="random"), data, n_components=[2, 3, 4, 9], criterion="bic", n_repeats=3,
                random_state=0, n_jobs=n_jobs,
            )  # fmt: skip

        with backend(), warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            np.testing.assert_array_equal(sweep(1).table, sweep(2).table)

    def test_the_seed_of_a_run_repeats_it(self, blobs):
        data, _ = blobs
        sweep = sweep_components(
            PPC(init_params="random"),
            data,
            n_components=[3, 4, 5],
            criterion="bic",
            n_repeats=2,
            random_state=0,
        )
        run = sweep.runs[-1]
        again = PPC(run.n_components, init_params="random", random_state=run.seed).fit(data)
        assert again.bic(data) == run.criterion
        assert again.lower_bound_ == run.objective


class TestMixtures:
    @pytest.mark.parametrize("estimator", [PPC(), ConstrainedEM(), GaussianMixture()])
    @pytest.mark.parametrize("criterion", ["bic", "aic"])
    def test_finds_the_blobs(self, estimator, criterion, blobs):
        data, _ = blobs
        sweep = sweep_components(
            estimator, data, n_components=range(2, 7), criterion=criterion, n_repeats=2, random_state=0
        )
        assert sweep.best_n_components == 4 if criterion == "bic" else sweep.best_n_components >= 4
        value = getattr(sweep.best, criterion)(data)
        assert value in [run.criterion for run in sweep.runs]
        assert not hasattr(estimator, "means_")

    @pytest.mark.filterwarnings("ignore:bic chooses")
    def test_links_are_passed_on(self, blobs):
        data, y = blobs
        links = Constraints.sample(y // 2, 60, random_state=0)
        sweep = sweep_components(
            PPC(),
            data,
            n_components=[2, 3],
            constraints=links,
            criterion="bic",
            n_repeats=1,
            random_state=0,
        )
        assert sweep.typical[2].violation_probability_.shape == (links.n_pairs,)
        with pytest.raises(TypeError, match=r"must be a linkwise\.Constraints"):
            sweep_components(PPC(), data, n_components=2, constraints=[(0, 1)], criterion="bic")


# Few starts: numbers are compared here, not fits.
MIXTURES = [PPC(n_init=1), ConstrainedEM(n_init=1)]
OTHERS = [
    HMRFKMeans(n_init=2), PCKMeans(n_init=2), MPCKMeans(n_init=2), COPKMeans(n_init=2),
    ConstrainedSpectralClustering(n_init=2), SpectralLearning(n_init=2),
]  # fmt: skip


class TestCriteria:
    """Every estimator with every criterion: a number, or an error that says what to choose."""

    X, y = make_blobs(90, centers=[[0, 0], [8, 0], [0, 8]], cluster_std=0.8, random_state=0)
    links = Constraints.sample(y, 45, random_state=0)

    def sweep(self, estimator, y=None, **options):
        options = {"n_components": [2, 3, 4], "n_repeats": 2, "random_state": 0, **options}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return sweep_components(estimator, self.X, y, **options)

    @pytest.mark.parametrize("estimator", [*MIXTURES, *OTHERS], ids=lambda e: type(e).__name__)
    def test_default_with_links(self, estimator):
        # Hard links among three classes leave no two clusters.
        soft = Constraints(90, self.links.must_link, self.links.cannot_link, weight=2.0)
        hard_only = isinstance(estimator, ConstrainedEM | COPKMeans)
        found = self.sweep(estimator, constraints=self.links if hard_only else soft, n_components=[3, 5])
        assert found.criterion == ("held_out_links+bic" if estimator in MIXTURES else "held_out_links")
        assert found.best_n_components == 3
        assert np.isfinite(found.table["mean"]).all()
        if estimator in OTHERS:
            assert found.table["mean"][0] == 0.0
            assert found.table["mean"][-1] > 0.0
        best = found.best_runs[3]
        mine = [run for run in found.runs if run.n_components == 3]
        if hasattr(best, "cluster_centers_"):
            assert -best.objective_ == max(run.objective for run in mine)
        elif estimator in OTHERS:
            assert all(np.isnan(run.objective) for run in mine)
        assert found.best.labels_.shape == best.labels_.shape

    @pytest.mark.parametrize("estimator", [*MIXTURES, GaussianMixture()], ids=lambda e: type(e).__name__)
    def test_default_without_links(self, estimator):
        found = self.sweep(estimator)
        assert (found.criterion, found.best_n_components) == ("bic", 3)

    @pytest.mark.parametrize("criterion", ["auto", "bic", "aic", "icl", "cbic", "bic_paper", "cbic_paper"])
    def test_beliefs(self, criterion):
        found = self.sweep(CPPC(init="paper"), self.y, criterion=criterion, n_components=[2, 3], n_repeats=1)
        assert found.criterion == ("cbic" if criterion == "auto" else criterion)
        assert not np.isnan(found.table["mean"]).any()

    @pytest.mark.parametrize("estimator", [*MIXTURES, *OTHERS], ids=lambda e: type(e).__name__)
    @pytest.mark.parametrize("criterion", ["bic", "aic", "icl", "cbic", "held_out_links"])
    def test_named(self, estimator, criterion):
        links, allowed = (
            self.links,
            ("bic", "aic", "icl", "held_out_links") if estimator in MIXTURES else ("held_out_links",),
        )
        if criterion in allowed:
            found = self.sweep(estimator, constraints=links, criterion=criterion, n_components=3, n_repeats=1)
            assert np.isfinite(found.runs[0].criterion)
            return
        name = type(estimator).__name__
        listed = ", ".join(map(repr, allowed))
        with pytest.raises(
            ValueError, match=f"{name} has no criterion '{criterion}'; choose one of {listed}"
        ):
            self.sweep(estimator, constraints=links, criterion=criterion, n_components=3, n_repeats=1)

    @pytest.mark.parametrize("estimator", OTHERS, ids=lambda e: type(e).__name__)
    def test_nothing_applies_without_links(self, estimator):
        name = type(estimator).__name__
        for links in (None, Constraints(90, self.links.must_link)):
            with pytest.raises(ValueError, match=f"needs must-links and cannot-links.*{name} has no other"):
                self.sweep(estimator, constraints=links)
        with pytest.raises(ValueError, match=r"GaussianMixture takes no links.*choose another criterion"):
            self.sweep(GaussianMixture(), criterion="held_out_links")

    def test_implied_links_are_not_asked_for(self):
        complete = Constraints(4, [(0, 1), (1, 2), (0, 2)], [(0, 3), (1, 3), (2, 3)])
        for seed in range(5):
            with pytest.raises(ValueError, match="follow from the others"):
                hold_out(complete, seed)
        chain = Constraints(60, [(i, i + 1) for i in range(28)], [(i, i + 30) for i in range(28)])
        found = hold_out(chain, 0)
        assert found.kept.n_pairs == chain.n_pairs - 12
        assert len(found.must_link) == 6
        assert found.error(np.zeros(60, dtype=int)) == 0.5
        assert found.error(np.arange(60)) == 0.5
        assert found.error(np.repeat([0, 1], 30)) == 0.0

    def test_sources_stay_with_the_links_that_are_kept(self):
        must, cannot = [(i, i + 1) for i in range(28)], [(i, i + 30) for i in range(28)]
        names = np.array(["Ann", "Bob"] * 28)
        links = Constraints(60, must, cannot, weight=np.linspace(1.0, 2.0, 56), source=names)
        kept = hold_out(links, 0).kept
        pairs, weights, sources = links.judgements[:3]
        said = {(*pair, w): name for pair, w, name in zip(pairs.tolist(), weights, sources, strict=True)}
        assert kept.n_pairs == links.n_pairs - 12
        for pair, weight, name in zip(kept.pairs.tolist(), kept.weights, kept.source, strict=True):
            assert said[*pair, weight] == name


class TestWarnings:
    def test_unconverged_runs_are_summed_up(self):
        with pytest.warns(ConvergenceWarning, match="3 of 3 runs did not converge") as caught:
            sweep = sweep_components(Scripted(warn="did not converge"), X, n_components=2, n_repeats=3)
        assert len(caught) == 1
        assert sweep.table["converged"].tolist() == [0.0]

    @pytest.mark.parametrize("n_jobs", [1, 2])
    def test_other_warnings_are_passed_on_once(self, n_jobs):
        with pytest.warns(UserWarning, match="watch out") as caught:
            sweep_components(Scripted(warn="watch out"), X, n_components=2, n_repeats=5, n_jobs=n_jobs)
        assert [str(entry.message) for entry in caught] == ["watch out"]
        assert caught[0].filename == __file__


class TestRefusals:
    def test_unknown_criteria_are_listed(self, blobs):
        with pytest.raises(ValueError, match="Scripted has no criterion 'icl'; choose one of 'cbic', 'bic'"):
            sweep_components(Scripted(), X, n_components=2, criterion="icl")
        with pytest.raises(
            ValueError, match="PPC has no criterion 'cbic'; choose one of 'bic', 'aic', 'icl', 'held_"
        ):
            sweep_components(PPC(), blobs[0], n_components=2, criterion="cbic")

    def test_bad_ranges(self):
        for bad in ([], range(0)):
            with pytest.raises(ValueError, match="n_components is empty"):
                sweep_components(Scripted(), X, n_components=bad)
        for bad in ([0, 1], [2.5], [True]):
            with pytest.raises(ValueError, match="whole numbers >= 1"):
                sweep_components(Scripted(), X, n_components=bad)
        with pytest.raises(ValueError, match="n_repeats must be"):
            sweep_components(Scripted(), X, n_components=2, n_repeats=0)

    def test_pipelines_are_told_what_to_do(self):
        with pytest.raises(ValueError, match="transform X first"):
            sweep_components(make_pipeline(StandardScaler(), PPC()), X, n_components=2)

    def test_errors_say_which_run(self):
        with pytest.raises(ValueError, match="cannot be fitted to n_samples=10") as caught:
            sweep_components(PPC(), X + np.arange(20).reshape(10, 2) ** 2, n_components=11, criterion="bic")
        assert "n_components=11" in caught.value.__notes__[0]


class TestDisplay:
    @pytest.fixture
    def sweep(self):
        values = {2: 5.0, 3: 1.0, 4: 2.0}
        return sweep_components(
            Scripted(values=values), X, n_components=[2, 3, 4], n_repeats=3, random_state=0
        )

    def test_frame(self, sweep):
        frame = sweep.to_frame()
        assert frame.index.tolist() == [2, 3, 4]
        assert frame["mean"].idxmin() == sweep.best_n_components

    def test_text(self, sweep):
        assert repr(sweep) == "ComponentSweep(cbic over 2 .. 4 components, 9 runs, lowest mean at 3)"
        assert [line[0] for line in str(sweep).splitlines()[2:]] == [" ", "*", " "]

    def test_progress(self, capsys):
        sweep_components(Scripted(), X, n_components=[1, 2], n_repeats=2, verbose=1, random_state=4)
        lines = capsys.readouterr().out.splitlines()
        assert [line.split(":")[0] for line in lines] == ["K = 1", "K = 2"]
        assert lines[0].endswith("1 occupied, 2 of 2 converged")

    def test_plot(self, sweep):
        from matplotlib import pyplot

        display = sweep.plot()
        np.testing.assert_array_equal(display.line_.get_ydata(), sweep.table["mean"])
        labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
        assert labels == ["mean of runs", "± std", "runs (3 each)", "chosen: 3", "occupied clusters"]
        pyplot.close(display.figure_)
        axes = pyplot.subplots()[1]
        assert sweep.plot(axes).ax_ is axes
        pyplot.close(axes.figure)
