"""The class report: on a hand-made fit whose every figure is known, and on CPPC end to end."""

from __future__ import annotations

import dataclasses
import html.parser
import re
import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from linkwise import _pages
from linkwise.datasets import make_eleven_gaussians
from linkwise.metrics import belief_adherence, separability
from linkwise.mixture.classes.decisions import count_decisions, stability
from linkwise.mixture.classes.report import ClassReport
from linkwise.mixture.cppc import CPPC
from linkwise.model_selection import sweep_components

NAMES = np.array(["<crops>", "deciduous", "mixed", "water"])


class Fitted(BaseEstimator):
    """Whatever attributes a fit should have."""

    def __init__(self, **attributes):
        self.__dict__.update(attributes)

    def fit(self, X, y):
        raise NotImplementedError


def stand_in(seed=0, *, swap=False):
    """A fit with crops in two clusters, deciduous and mixed in one, water in its own and an empty cluster."""
    rng = np.random.default_rng(seed)
    y = np.repeat(NAMES, [100, 40, 60, 50]).astype(object)
    labels = np.concatenate(
        [np.repeat([0, 1, 4], [60, 35, 5]), np.full(40, 2), np.full(60, 2), np.repeat([3, 1], [48, 2])]
    )
    y, labels = np.append(y, [None, None]), np.append(labels, [3, 3])
    if swap:
        labels = np.array([3, 2, 1, 0, 4, 5])[labels]
    centres = np.array([[0.0, 0], [5, 0], [0, 6], [6, 6], [20, 20], [9, 9]])
    if swap:
        centres = centres[[3, 2, 1, 0, 4, 5]]
    X = centres[labels] + rng.normal(size=(len(y), 2))
    q = np.full((len(y), 6), 0.02)
    q[np.arange(len(y)), labels] = 0.9
    codes = np.array([-1 if name is None else NAMES.tolist().index(name) for name in y])
    contingency = np.zeros((4, 6), dtype=int)
    np.add.at(contingency, (codes[codes >= 0], labels[codes >= 0]), 1)
    beliefs = 2 * np.eye(4) - 1
    beliefs[0, 0] = -0.5
    beliefs[1, 2] = beliefs[2, 1] = 0.5
    S = separability(y, labels)
    model = Fitted(
        classes_=NAMES,
        contingency_=contingency,
        separability_=S,
        beliefs_=beliefs,
        adherence_=belief_adherence(beliefs, S),
        criteria_={"bic": 123.0, "cbic": 77.5},
        labels_=labels,
        n_occupied_=5,
        responsibilities_=q,
        confidence=0.25,
        normalize="class",
        covariance_type="full",
        reg_covar=1e-6,
    )
    return model, X, y


@pytest.fixture
def report():
    return ClassReport.from_estimator(stand_in()[0])


@pytest.fixture
def full():
    model, X, y = stand_in()
    return ClassReport.from_estimators([model, stand_in(1, swap=True)[0]], X, y)


class TestContent:
    def test_decisions(self, report):
        assert [(d.kind, d.classes, d.clusters) for d in report.decisions] == [
            ("split", ("<crops>",), (0, 1)),
            ("merged", ("deciduous", "mixed"), (2,)),
            ("kept", ("water",), (3,)),
        ]
        assert report.legend == ("<crops> (a)", "<crops> (b)", "deciduous + mixed", "water", "rest", "(none)")
        assert report.n_unlabelled.tolist() == [0, 0, 0, 2, 0, 0]
        np.testing.assert_allclose(report.certainty[:5], 0.9)
        assert np.isnan(report.certainty[5])
        assert report.stability is None
        assert report.flips is None

    def test_threshold(self):
        model, _, _ = stand_in()
        fine = ClassReport.from_estimator(model, threshold=0.02)
        assert fine.decisions[0].clusters == (0, 1, 4)
        assert ("merged", ("<crops>", "water")) in {d.key for d in fine.decisions}
        coarse = ClassReport.from_estimator(model, threshold=0.5)
        assert ("kept", ("<crops>",)) in {d.key for d in coarse.decisions}
        with pytest.raises(ValueError, match="threshold"):
            ClassReport.from_estimator(model, threshold=0.7)

    def test_frames(self, full):
        frame = full.to_frame().set_index("classes")
        crops = frame.loc["<crops>"]
        assert crops["decision"] == "split"
        assert crops["clusters"] == ("<crops> (a)", "<crops> (b)")
        assert crops["counts"] == (60, 35)
        assert crops["coverage"] == pytest.approx(0.95)
        assert crops["certainty"] == pytest.approx(0.9)
        assert crops["belief"] == -0.5
        together = (60 * 59 + 35 * 34 + 5 * 4) / (100 * 99)
        assert crops["separability"] == pytest.approx(2 * together - 1)
        assert crops["gap"] == pytest.approx(2 * together - 1 + 0.5)
        assert crops["share_of_runs"] == 1.0
        assert frame.loc["deciduous + mixed", "counts"] == (100,)
        assert frame.loc["deciduous + mixed", "separability"] == 1.0
        assert np.isfinite(frame["flip_change"]).all()
        classes = full.to_frame("classes").set_index("class")
        assert classes["outcome"].tolist() == ["split", "merged", "merged", "kept"]
        assert classes.loc["mixed", "with"] == "deciduous"
        assert classes["n_rows"].tolist() == [100, 40, 60, 50]
        clusters = full.to_frame("clusters").set_index("cluster")
        assert clusters.loc[3, "n_rows"] == 50
        assert clusters.loc[3, "n_unlabelled"] == 2
        assert clusters.loc[1, "purity"] == pytest.approx(35 / 37)
        assert clusters[NAMES.tolist()].to_numpy().T.tolist() == full.contingency.tolist()
        with pytest.raises(ValueError, match="decisions, classes, clusters, mislabelled; got 'x'"):
            full.to_frame("x")

    def test_flips_need_the_training_data(self):
        model, X, y = stand_in()
        flips = ClassReport.from_estimator(model, X, y).flips
        assert {flip.decision.kind for flip in flips} == {"split", "merged", "kept"}
        with pytest.raises(ValueError, match="pass both"):
            ClassReport.from_estimator(model, X)
        with pytest.raises(ValueError, match="X has 9 and y 252 rows, but the estimator was fitted to 252"):
            ClassReport.from_estimator(model, X[:9], y)
        for wrong in (np.roll(y, 3), np.where(y == "water", "mixed", y)):
            with pytest.raises(ValueError, match="y is not what the estimator was fitted to"):
                ClassReport.from_estimator(model, X, wrong)

    def test_runs_are_compared_by_classes_not_by_numbers_of_clusters(self, full):
        assert full.stability.n_runs == 2
        assert set(full.stability.shares.values()) == {1.0}

    def test_runs_that_disagree(self):
        first, second = stand_in()[0], stand_in()[0]
        second.contingency_ = np.array([[100, 0, 0, 0], [0, 40, 0, 0], [0, 0, 60, 0], [0, 0, 0, 50]])
        report = ClassReport.from_estimators([first, second, second])
        split = report.decisions[0]
        assert report.stability.share(split) == pytest.approx(1 / 3)
        assert "kept mixed: in 67% of runs" in str(report)
        second.classes_ = np.array(["a", "b", "c", "d"])
        with pytest.raises(ValueError, match="estimator 1 is about other classes"):
            ClassReport.from_estimators([first, second])
        with pytest.raises(ValueError, match="no estimators"):
            ClassReport.from_estimators([])


class TestText:
    def test_says_it_all(self, full):
        text = str(full)
        assert text.startswith("4 classes, 250 labelled rows and 2 unlabelled, in 5 of 6 clusters\n")
        assert "<crops> (100 rows) -> <crops> (a) [60], <crops> (b) [35]" in text
        assert "deciduous + mixed (100 rows) -> deciduous + mixed [100]" in text
        assert "95% of its rows there, certainty 0.90, belief −0.5, separability −0.0" in text
        assert "in 100% of runs" in text
        assert text.count("would flip") == 3
        assert "FAR FROM THE BELIEF" not in text
        assert repr(full) == "ClassReport(4 classes in 5 of 6 clusters: 1 split, 1 pairs merged, 1 kept)"

    def test_far_from_the_belief(self):
        model, _, _ = stand_in()
        model.beliefs_ = 2 * np.eye(4) - 1
        text = str(ClassReport.from_estimator(model))
        assert text.count("FAR FROM THE BELIEF") == 2
        assert "Pass X and y" in text

    def test_merges_into_one_cluster_are_one_entry(self):
        model, X, y = stand_in()
        model.contingency_ = np.array([[0, 100], [40, 0], [60, 0], [50, 0]])
        model.labels_ = np.repeat([1, 0], [100, 152])
        model.responsibilities_ = np.eye(2)[model.labels_]
        report = ClassReport.from_estimator(model, X, y)
        assert sum(d.kind == "merged" for d in report.decisions) == 3
        text = str(report)
        assert "  deciduous + mixed + water (150 rows) -> deciduous + mixed + water [150]\n" in text
        assert "belief −1 … 0.5" in text
        assert len(re.findall(r"^  \S.*rows\)", text, re.M)) == 2
        assert report.to_html().count("<td><span class='kind'>merged") == 1


class Page(html.parser.HTMLParser):
    """Collects the tags and references of a page, and whether tags are closed in order."""

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.references = [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.references += [value for name, value in attrs if name in ("src", "href", "xlink:href")]
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def parsed(text):
    page = Page()
    page.feed(text)
    assert page.open == []
    return page


class TestPage:
    def test_is_self_contained_and_escaped(self, full, tmp_path):
        path = tmp_path / "report.html"
        text = full.to_html(path)
        assert path.read_text(encoding="utf-8") == text
        page = parsed(text)
        assert page.references == []
        assert "script" not in page.tags
        assert "crops" not in page.tags
        assert "<crops>" not in text
        assert "&lt;crops&gt; (a)" in text
        assert not re.search(r"https?:|@import|url\(", text)
        assert "(60 rows)" in text
        assert text.count("class='heat'") == 2

    def test_has_the_policy_of_all_pages(self, report):
        """Browsers refuse every request; a notebook, which shows the body alone, has its own policy."""
        pages = [report.to_html(), _pages.Page("Another page").html()]
        policies = [
            re.findall(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', p) for p in pages
        ]
        assert policies == [["default-src 'none'; img-src data:; style-src 'unsafe-inline'"]] * 2
        assert pages[0].index("Content-Security-Policy") < pages[0].index("<title>")
        assert "Content-Security-Policy" not in report._repr_html_()

    def test_without_data_or_runs(self, report):
        text = report.to_html()
        parsed(text)
        assert "of runs" not in text
        assert "made without the data" in text
        assert "<svg" not in text
        assert report._repr_html_() in text


@pytest.fixture(scope="module")
def gaussians():
    X, y, beliefs = make_eleven_gaussians(60, random_state=0)
    return X, y, beliefs


@pytest.fixture(scope="module")
def sweep(gaussians):
    X, y, beliefs = gaussians
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # empty clusters, the edge: whatever the run has to say
        return sweep_components(
            CPPC(beliefs=beliefs, init="paper", shrinkage=0),
            X,
            y,
            n_components=[4, 5, 6],
            n_repeats=2,
            random_state=0,
        )


class TestEndToEnd:
    def test_eleven_gaussians(self, gaussians, sweep):
        X, y, beliefs = gaussians
        report = ClassReport.from_sweep(sweep, X, y)
        np.testing.assert_array_equal(report.beliefs, beliefs)
        assert report.contingency.sum() == len(y)
        assert report.curve is sweep
        assert report.stability.n_runs == 2
        # Classes 5 to 9 are believed to be one (0.9) and apart from all others (-1), and overlap.
        shares = report.stability.shares
        for a in range(1, 10):
            for b in range(a + 1, 10):
                merged = shares.get(("merged", (a, b)), 0.0)
                assert merged == 1.0 if a >= 5 else merged == 0.0 or (a, b) == (2, 3), (a, b)
        page = parsed(report.to_html())
        assert page.tags.count("svg") == 1
        # Within the group of 5 to 9 a single belief does nothing against the other nine, unless it is sure.
        for flip in report.flips:
            assert min(flip.decision.classes) < 5 or abs(flip.value) > 0.99
        four = ClassReport.from_sweep(sweep, n_components=4)
        assert four.contingency.shape == (9, 4)
        with pytest.raises(ValueError, match="no run with n_components=7; it has 4, 5, 6"):
            ClassReport.from_sweep(sweep, n_components=7)

    def test_objective_is_that_of_the_estimator(self, gaussians, sweep):
        from linkwise._validation import label_codes
        from linkwise.mixture.classes.e_step import pair_weights
        from linkwise.mixture.classes.flips import SoftGrouping

        X, y, beliefs = gaussians
        for model in sweep.best_runs.values():
            codes, classes = label_codes(y)
            grouping = SoftGrouping(X, codes, len(classes), model.responsibilities_)
            weights = pair_weights(beliefs, model.confidence, np.bincount(codes), model.normalize)
            ours = grouping.data_term() + 0.5 * float((weights * grouping.pair_mass()).sum())
            # One M-step later than the estimator: at least as good, and as good where EM has converged.
            assert ours / len(y) == pytest.approx(model.lower_bound_, abs=2e-3)

    def test_sweeps_of_other_mixtures_have_no_report(self, gaussians):
        from linkwise import PPC

        X, _, _ = gaussians
        plain = sweep_components(PPC(), X, n_components=2, n_repeats=1, criterion="bic", random_state=0)
        with pytest.raises(ValueError, match="PPC knows no classes"):
            ClassReport.from_sweep(plain)

    def test_bootstrap(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(150, 2)) + np.repeat([[0, 0], [8, 0], [0, 8], [0.2, 8], [4, 4]], 30, axis=0)
        y = np.repeat(np.array(["crops", "crops", "mixed", "pine", None], dtype=object), 30)
        beliefs = [[0.0, -1, -1], [-1, 1, 0.8], [-1, 0.8, 1]]
        model = CPPC(4, beliefs=beliefs)
        found = stability(model, X, y, n_bootstrap=2, random_state=0, n_jobs=1)
        assert found.n_runs == 2
        assert found.source == "bootstrap samples"
        assert found.shares[("split", ("crops",))] == 1.0
        assert found.shares[("merged", ("mixed", "pine"))] == 1.0
        again = stability(model, X, y, n_bootstrap=2, random_state=0, n_jobs=2)
        assert again == found
        report = ClassReport.from_estimator(model.fit(X, y)).with_stability(found)
        assert "Shares are of 2 bootstrap samples" in str(report)
        with pytest.raises(ValueError, match="n_bootstrap must be at least 1"):
            stability(model, X, y, n_bootstrap=0)

    def test_bootstrap_keeps_classes_and_their_sizes(self):
        seen = []

        class Recorder(CPPC):
            def fit(self, X, y):
                seen.append((X.copy(), y.copy(), self.random_state))
                self.contingency_ = np.array([[3, 0], [0, 5]])
                return self

        X = np.arange(10.0)[:, np.newaxis]
        y = np.array([0, 0, 0, 1, 1, 1, 1, 1, -1, -1])
        found = stability(Recorder(2), X, y, n_bootstrap=6, random_state=0)
        assert found.shares == count_decisions([np.array([[3, 0], [0, 5]])], (0, 1)).shares
        assert len({seed for _, _, seed in seen}) == 6
        for rows, classes, _ in seen:
            assert np.bincount(classes + 1).tolist() == [2, 3, 5]
            np.testing.assert_array_equal(y[rows[:, 0].astype(int)], classes)
        assert any(len(set(rows[:, 0])) < 10 for rows, _, _ in seen)


class TestMislabelled:
    """Rows with a wrong label, in every view of the report."""

    @pytest.fixture(scope="class")
    @classmethod
    def fitted(cls):
        rng = np.random.default_rng(0)
        names = np.array(["<crops>", "mixed", "water"], dtype=object)
        truth = np.repeat([0, 1, 2], 60)
        X = rng.normal(size=(180, 2)) + 9.0 * truth[:, np.newaxis]
        y = names[truth]
        y[[7, 100]] = ["water", "<crops>"]
        y[150] = None
        return CPPC(3, random_state=0).fit(X, y), X, y

    def test_rows_are_listed(self, fitted):
        model, X, y = fitted
        report = model.report(X, y)
        assert {doubt[:3] for doubt in report.mislabelled} == {
            (7, "water", "<crops>"),
            (100, "<crops>", "mixed"),
        }
        probabilities = [doubt.probability for doubt in report.mislabelled]
        assert probabilities == sorted(probabilities, reverse=True)
        assert min(probabilities) > 0.9
        frame = report.to_frame("mislabelled")
        assert frame.columns.tolist() == ["row", "label", "told", "probability"]
        assert frame["row"].tolist() == [doubt.row for doubt in report.mislabelled]
        text = str(report)
        assert "2 rows (1.1% of the labelled) are more likely of another class" in text
        assert "row 7: water, rather <crops> (probability" in text
        page = report.to_html()
        assert "Likely mislabelled rows" in page
        assert "<td>&lt;crops&gt;</td>" in page

    def test_long_lists_are_cut_in_text_and_page(self, fitted):
        model, X, y = fitted
        report = model.report(X, y)
        report = dataclasses.replace(report, mislabelled=report.mislabelled * 15)
        assert str(report).count("rather") == 5
        assert 'to_frame("mislabelled")' in str(report)
        assert "The first 20 of them" in report.to_html()
        assert len(report.to_frame("mislabelled")) == 30

    def test_right_labels_are_not_mentioned(self, fitted):
        X = fitted[1]
        right = np.array(["<crops>", "mixed", "water"], dtype=object)[np.repeat([0, 1, 2], 60)]
        report = CPPC(3, random_state=0).fit(X, right).report(X, right)
        assert report.mislabelled == ()
        assert report.to_frame("mislabelled").columns.tolist() == ["row", "label", "told", "probability"]
        assert "mislabelled" not in str(report)
        assert "mislabelled" not in report.to_html()

    def test_without_data_there_is_none(self, fitted):
        report = fitted[0].report()
        assert report.mislabelled is None
        with pytest.raises(ValueError, match="pass X and y to the report"):
            report.to_frame("mislabelled")
