"""Learning curves, criterion curves and convergence traces show the numbers they were given."""

from __future__ import annotations

import warnings

import numpy as np
import pandas
import polars
import pytest
from sklearn.base import BaseEstimator
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from linkwise import PPC, Constraints
from linkwise.displays import AnnotatorDisplay, ConvergenceDisplay, CriterionDisplay, LinkCurveDisplay
from linkwise.displays._drawing import VIOLATED
from linkwise.model_selection import sweep_components

RUNS = {
    "method": ["b", "b", "b", "a", "a", "b", "a"],
    "n_links": [10, 0, 10, 0, 10, 10, 10],
    "score": [0.5, 0.1, 0.7, 0.2, 0.8, 0.9, 0.6],
}


def legend_texts(display: object) -> list[str]:
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]  # type: ignore[attr-defined]


class TestLinkCurve:
    @pytest.mark.parametrize(
        "table",
        [
            RUNS,
            pandas.DataFrame(RUNS, index=range(7, 0, -1)),
            polars.DataFrame(RUNS),
            [dict(zip(RUNS, row, strict=True)) for row in zip(*RUNS.values(), strict=True)],
            np.array(
                list(zip(*RUNS.values(), strict=True)),
                dtype=[("method", "U1"), ("n_links", int), ("score", float)],
            ),
        ],
        ids=["dict", "pandas", "polars", "records", "structured"],
    )
    def test_curves_are_means_and_bands_deviations(self, table: object) -> None:
        display = LinkCurveDisplay.from_table(table)
        assert list(display.lines_) == ["b", "a"]
        for name, centres, deviations in (
            ("b", [0.1, 0.7], [0.0, np.std([0.5, 0.7, 0.9], ddof=1)]),
            ("a", [0.2, 0.7], [0.0, np.std([0.8, 0.6], ddof=1)]),
        ):
            line = display.lines_[name]
            assert line.get_xdata().tolist() == [0, 10]
            np.testing.assert_allclose(line.get_ydata(), centres)
            corners = display.bands_[name].get_paths()[0].vertices
            for x, centre, deviation in zip((0, 10), centres, deviations, strict=True):
                ys = corners[corners[:, 0] == x, 1]
                np.testing.assert_allclose([ys.min(), ys.max()], [centre - deviation, centre + deviation])
        assert legend_texts(display) == ["b", "a"]
        assert display.ax_.get_xlabel() == "number of links"
        assert display.ax_.get_ylabel() == "score (mean ± standard deviation)"
        assert display.curves_["b"].n_runs.tolist() == [1, 3]

    def test_quartiles(self) -> None:
        scores = [0.1, 0.2, 0.4, 0.9]
        display = LinkCurveDisplay([5] * 4, scores, spread="quartiles").plot()
        curve = display.curves_["score"]
        np.testing.assert_allclose([curve.low[0], curve.centre[0], curve.high[0]], [0.175, 0.3, 0.525])
        assert display.ax_.get_legend() is None

    def test_methods_differ_also_in_grey(self) -> None:
        display = LinkCurveDisplay([0, 1] * 4, range(8), np.repeat(list("abcd"), 2)).plot()
        looks = [(line.get_marker(), str(line.get_linestyle())) for line in display.lines_.values()]
        assert len({marker for marker, _ in looks}) == 4
        assert display.bands_ == {}

    def test_other_column_names_and_no_method(self) -> None:
        display = LinkCurveDisplay.from_table(
            {"pairs": [0, 5], "ari": [0.1, 0.4]}, n_links="pairs", score="ari", method=None
        )
        assert display.ax_.get_ylabel() == "ari"

    def test_runs_by_itself(self) -> None:
        X = np.r_[
            np.random.default_rng(0).normal(size=(30, 2)), np.random.default_rng(1).normal(size=(30, 2)) + 1.5
        ]
        y = np.repeat([0, 1], 30)
        seen = []

        class Recorder(KMeans):
            def fit(self, X: object, y: object = None, constraints: Constraints | None = None) -> Recorder:
                seen.append((self.random_state, constraints))
                return super().fit(X)

        original = Recorder(2)
        display = LinkCurveDisplay.from_estimator(
            {"PPC": PPC(2), "other": original}, X, y, n_links=(40, 0), n_repeats=3, random_state=0
        )
        assert list(display.curves_) == ["PPC", "other"]
        assert [links.n_pairs for _, links in seen] == [0, 40] * 3
        assert len({links for _, links in seen if links.n_pairs}) == 3, "repeats have links of their own"
        assert not hasattr(original, "labels_")
        curve = display.curves_["PPC"]
        assert curve.n_links.tolist() == [0, 40]
        assert curve.n_runs.tolist() == [3, 3]
        assert curve.centre[1] > curve.centre[0]
        again = LinkCurveDisplay.from_estimator(PPC(2), X, y, n_links=(0, 40), n_repeats=3, random_state=0)
        np.testing.assert_array_equal(again.curves_["PPC"].centre, curve.centre)
        assert again.ax_.get_ylabel().startswith("clustering accuracy")

    @pytest.mark.parametrize(
        ("table", "message"),
        [
            ({"n_links": [1], "method": ["a"]}, "no column 'score'; its columns are 'n_links', 'method'"),
            ({**RUNS, "score": [np.nan, 1, 1, 1, 1, 1, 1]}, "score of run 0 is nan; leave failed runs out"),
            ({**RUNS, "score": [1.0]}, "one entry for each run, got 7, 1 and 7"),
            ({"n_links": [], "method": [], "score": []}, "n_links must be a vector of at least one"),
            ([{"n_links": 1, "method": 2, "score": 1}, {"n_links": 1}], "row 1 has the keys"),
        ],
    )
    def test_bad_tables_are_refused(self, table: object, message: str) -> None:
        with pytest.raises(ValueError, match=message):
            LinkCurveDisplay.from_table(table)

    def test_other_bad_input_is_refused(self) -> None:
        with pytest.raises(TypeError, match="table is a int; pass a DataFrame"):
            LinkCurveDisplay.from_table(3)
        with pytest.raises(ValueError, match="spread must be 'std' or 'quartiles', got 'sem'"):
            LinkCurveDisplay.from_table(RUNS, spread="sem")
        for n_links, n_repeats in (((), 1), ((-1,), 1), ((1,), 0)):
            with pytest.raises(ValueError, match="n_links needs numbers >= 0 and n_repeats at least 1"):
                LinkCurveDisplay.from_estimator(PPC(1), [[0.0]], [0], n_links=n_links, n_repeats=n_repeats)


class TestCriterion:
    VALUES = np.array([[5.0, 7.0], [2.0, 3.0], [4.0, 4.5]])

    def test_mean_spread_runs_and_choice(self) -> None:
        display = CriterionDisplay([2, 4, 8], self.VALUES, criterion="cbic").plot()
        np.testing.assert_allclose(display.line_.get_xydata(), [[2, 6.0], [4, 2.5], [8, 4.25]])
        np.testing.assert_allclose(
            display.runs_.get_offsets(), [[2, 5], [2, 7], [4, 2], [4, 3], [8, 4], [8, 4.5]]
        )
        corners = display.band_.get_paths()[0].vertices
        ys = corners[corners[:, 0] == 2, 1]
        np.testing.assert_allclose([ys.min(), ys.max()], [6 - np.sqrt(2), 6 + np.sqrt(2)])
        assert display.chosen_ == 4
        assert "chosen: 4" in legend_texts(display)
        marks = [line for line in display.ax_.lines if line.get_linestyle() == "--"]
        assert [mark.get_xdata()[0] for mark in marks] == [4]
        assert display.right_ax_ is None
        assert display.ax_.get_ylabel() == "cbic (lower is better)"

    def test_single_runs_have_no_spread(self) -> None:
        display = CriterionDisplay([1, 2], [3.0, 4.0]).plot()
        assert display.band_ is None
        assert display.runs_ is None
        assert display.chosen_ == 1

    def test_sweep(self) -> None:
        X = np.r_[
            np.random.default_rng(0).normal(size=(40, 2)), np.random.default_rng(1).normal(size=(40, 2)) + 6
        ]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            sweep = sweep_components(
                PPC(), X, n_components=range(1, 5), criterion="bic", n_repeats=3, random_state=0
            )
        display = CriterionDisplay.from_sweep(sweep)
        np.testing.assert_allclose(display.line_.get_ydata(), sweep.table["mean"])
        np.testing.assert_allclose(
            np.sort(display.runs_.get_offsets()[:, 1]), np.sort([run.criterion for run in sweep.runs])
        )
        (occupied,) = display.right_ax_.lines
        np.testing.assert_allclose(occupied.get_ydata(), sweep.table["n_occupied"])
        assert display.chosen_ == sweep.best_n_components == 2
        display.figure_.canvas.draw()
        label = display.right_ax_.yaxis.label.get_window_extent()
        assert display.ax_.get_legend().get_window_extent().x0 >= label.x1, "legend over the label"

    def test_values_that_are_not_finite_are_left_out_loudly(self) -> None:
        display = CriterionDisplay([1, 2, 3], [np.nan, 4.0, np.inf]).plot()
        assert display.line_.get_xdata().tolist() == [2]
        assert "not finite: K = 1, 3" in legend_texts(display)

    def test_bad_input_is_refused(self) -> None:
        for values in ([1.0], [[1.0], [2.0]], np.zeros((3, 2, 2)), np.zeros((3, 0))):
            with pytest.raises(ValueError, match="pass one row for each"):
                CriterionDisplay([1, 2, 3], values)
        with pytest.raises(ValueError, match="must rise"):
            CriterionDisplay([2, 1], [1.0, 2.0])
        with pytest.raises(ValueError, match="no bic is finite"):
            CriterionDisplay([1], [np.nan], criterion="bic")
        with pytest.raises(ValueError, match="chosen is 5"):
            CriterionDisplay([1], [0.0], chosen=5)
        with pytest.raises(ValueError, match="n_occupied has 2 entries"):
            CriterionDisplay([1], [0.0], n_occupied=[1, 2])
        with pytest.raises(TypeError, match="pass what sweep_components returns"):
            CriterionDisplay.from_sweep(PPC())  # type: ignore[arg-type]


class _Costs(BaseEstimator):
    """Stands for HMRF-KMeans: three values an iteration."""

    def __init__(self, history: object = (9.0, 5.0, 4.0, 3.0, 3.5, 3.0, 2.0), n_iter: int = 2) -> None:
        self.history = history
        self.n_iter = n_iter

    def fit(self, X: object = None) -> _Costs:
        self.objectives_ = np.array(self.history)
        self.n_iter_ = self.n_iter
        self.converged_ = False
        return self


class TestConvergence:
    def test_lower_bounds(self) -> None:
        X = np.random.default_rng(0).normal(size=(50, 2))
        models = {"one": PPC(2, random_state=0).fit(X), "two": PPC(3, random_state=0).fit(X)}
        display = ConvergenceDisplay.from_estimator(models)
        for name, model in models.items():
            np.testing.assert_array_equal(display.lines_[name].get_ydata(), model.lower_bounds_)
            np.testing.assert_array_equal(
                display.lines_[name].get_xdata(), np.arange(len(model.lower_bounds_))
            )
            assert display.setbacks_[name].size == 0
        assert display.ax_.get_xlabel() == "iteration"
        assert display.ax_.get_ylabel() == "objective per sample (higher is better)"

    def test_costs_are_drawn_by_iteration_and_rises_are_marked(self) -> None:
        display = ConvergenceDisplay.from_estimator(_Costs().fit())
        np.testing.assert_allclose(display.lines_["_Costs"].get_xdata(), np.arange(7) / 3)
        assert display.setbacks_["_Costs"].tolist() == [4]
        assert legend_texts(display) == ["_Costs (not converged)", "rose (1 of 6 steps)"]
        marks = display.ax_.collections[-1]
        np.testing.assert_allclose(marks.get_offsets(), [[4 / 3, 3.5]])
        np.testing.assert_allclose(
            marks.get_edgecolor()[0][:3], [int(VIOLATED[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        )

    def test_a_falling_bound_is_marked_but_rounding_is_not(self) -> None:
        display = ConvergenceDisplay([1.0, 2.0, 2.0 - 1e-12, 1.5, 3.0]).plot()
        assert display.setbacks_["objective"].tolist() == [3]
        assert legend_texts(display) == ["objective", "fell (1 of 4 steps)"]

    def test_bad_input_is_refused(self) -> None:
        with pytest.raises(NotFittedError):
            ConvergenceDisplay.from_estimator(PPC())
        X = np.random.default_rng(0).normal(size=(20, 2))
        with pytest.raises(
            ValueError, match=r"KMeans: all estimators need objectives_.*ConvergenceDisplay\(traces\)"
        ):
            ConvergenceDisplay.from_estimator(KMeans(2).fit(X))
        with pytest.raises(ValueError, match="PPC, _Costs"):
            ConvergenceDisplay.from_estimator({"a": PPC(1).fit(X), "b": _Costs().fit()})
        with pytest.raises(ValueError, match="trace 'a' must be a vector"):
            ConvergenceDisplay({"a": [[1.0]]})
        with pytest.raises(ValueError, match="traces is empty"):
            ConvergenceDisplay({})
        with pytest.raises(ValueError, match="steps of 'objective' must be at least 1"):
            ConvergenceDisplay([1.0], steps=0)


class TestAnnotators:
    def test_rates_and_intervals_are_those_given(self) -> None:
        rates = {"Bob": 0.2, "Ann": 0.05, "new": float("nan"), "$x$": 0.4}
        intervals = {"Bob": (0.1, 0.3), "Ann": (0.01, 0.1), "new": (0.0, 0.5), "$x$": (0.35, 0.45)}
        display = AnnotatorDisplay(rates, intervals, {"Ann": 7}).plot()
        assert display.names_ == ["Ann", "Bob", "$x$"]
        assert list(display.points_.get_xdata()) == [0.05, 0.2, 0.4]
        ends = [segment[:, 0].tolist() for segment in display.bars_.get_segments()]
        assert ends == [[0.01, 0.1], [0.1, 0.3], [0.35, 0.45]]
        assert [text.get_text() for text in display.ax_.get_yticklabels()] == ["Ann (7)", "Bob", "$x$"]

    def test_from_estimator(self) -> None:
        links = Constraints(
            6, [(0, 1), (1, 2)], [(0, 5), (3, 4)], certainty=0.8, source=["Ann", "Bob", "Ann", "Ann"]
        )
        X = np.arange(6.0)[:, np.newaxis]
        model = PPC(1, learn_noise="source").fit(X, constraints=links)
        display = AnnotatorDisplay.from_estimator(model, constraints=links)
        assert display.rates == model.noise_
        assert sorted(text.get_text() for text in display.ax_.get_yticklabels()) == ["Ann (3)", "Bob (1)"]
        with pytest.raises(ValueError, match=r'PPC learned no rates; fit PPC\(learn_noise="source"\)'):
            AnnotatorDisplay.from_estimator(PPC(1).fit(X, constraints=links))
        with pytest.raises(ValueError, match="no annotator has a rate"):
            AnnotatorDisplay({"Ann": np.nan})
