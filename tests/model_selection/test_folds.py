"""ConstraintKFold: links stay whole, folds stay even, scikit-learn can use it."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV, cross_validate

from linkwise import PPC, Constraints
from linkwise.model_selection import ConstraintKFold
from linkwise.model_selection.folds import assign_folds


def greedy_loads(sizes, n_splits):
    """Largest component first, one by one, into the smallest fold."""
    loads = [0] * n_splits
    for size in sorted(sizes, reverse=True):
        loads[loads.index(min(loads))] += size
    return sorted(loads)


component_sizes = st.lists(st.integers(1, 9), min_size=2, max_size=30)


@given(component_sizes, st.integers(2, 6), st.integers(0, 5), st.booleans())
@pytest.mark.filterwarnings("ignore:links join")
def test_folds_are_whole_and_as_even_as_one_by_one(sizes, n_splits, seed, shuffle):
    if len(sizes) < n_splits:
        return
    rng = np.random.default_rng(seed)
    component_of = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    folds = assign_folds(component_of, n_splits, rng if shuffle else None)
    for component in range(len(sizes)):
        assert len(set(folds[component_of == component])) == 1
    assert sorted(np.bincount(folds, minlength=n_splits).tolist()) == greedy_loads(sizes, n_splits)


@pytest.fixture
def links():
    return Constraints(
        20, must_link=[(0, 5), (5, 9), (3, 4)], cannot_link=[(9, 10), (11, 12)], weight=[1, 2, 3, 1, 1]
    )


class TestConstraintKFold:
    def test_every_row_is_tested_once_and_no_link_is_cut(self, links):
        X = np.zeros((20, 1))
        tested = []
        for train, test in ConstraintKFold(4, constraints=links).split(X):
            assert sorted([*train, *test]) == list(range(20))
            assert links[train].n_pairs + links[test].n_pairs == links.n_pairs
            tested += test.tolist()
            assert len(test) == 5
        assert sorted(tested) == list(range(20))

    def test_without_links_between_rows_it_is_kfold(self):
        from sklearn.model_selection import KFold

        X = np.zeros((11, 1))
        ours = [test.tolist() for _, test in ConstraintKFold(3, constraints=Constraints(11)).split(X)]
        assert ours == [test.tolist() for _, test in KFold(3).split(X)]

    def test_shuffle_is_reproducible(self, links):
        X = np.zeros((20, 1))

        def tests(seed):
            folds = ConstraintKFold(4, constraints=links, shuffle=True, random_state=seed)
            return [test.tolist() for _, test in folds.split(X)]

        assert tests(0) == tests(0)
        assert tests(0) != tests(1)

    def test_links_given_to_split_win(self, links):
        folds = ConstraintKFold(2, constraints=Constraints(3))
        assert len(list(folds.split(np.zeros((20, 1)), constraints=links))) == 2

    def test_refusals(self, links):
        X = np.zeros((20, 1))
        with pytest.raises(
            ValueError, match=r"no links to keep: pass ConstraintKFold\(n_splits, constraints"
        ):
            next(ConstraintKFold(3).split(X))
        with pytest.raises(ValueError, match="about 20 samples, but X has 7 rows"):
            next(ConstraintKFold(3, constraints=links).split(X[:7]))
        with pytest.raises(TypeError, match=r"must be a linkwise\.Constraints, got list"):
            next(ConstraintKFold(3, constraints=[(0, 1)]).split(X))
        for n_splits in (1, 2.5, "3"):
            with pytest.raises(ValueError, match="n_splits must be a whole number >= 2"):
                next(ConstraintKFold(n_splits, constraints=links).split(X))
        chain = Constraints.from_sequence(20, breaks=[10])
        with pytest.raises(ValueError, match=r"into 2 groups, the largest of 10: too few for 3 folds.*<= 2"):
            next(ConstraintKFold(3, constraints=chain).split(X))

    def test_a_component_that_fills_its_fold_warns(self):
        chain = Constraints(20, must_link=[(i, i + 1) for i in range(13)])
        with pytest.warns(UserWarning, match="join 14 of 20 samples into one group.*a fair fold has 5"):
            tests = [test for _, test in ConstraintKFold(4, constraints=chain).split(np.zeros((20, 1)))]
        assert sorted(len(test) for test in tests) == [2, 2, 2, 14]

    def test_in_cross_validate(self):
        X, y = (table[::2] for table in load_iris(return_X_y=True))
        links = Constraints.sample(y, 30, overlap=True, certainty=0.95, random_state=0)
        folds = ConstraintKFold(3, constraints=links)
        for routing in (False, True):
            with sklearn.config_context(enable_metadata_routing=routing):
                found = cross_validate(
                    PPC(3, n_init=1, random_state=0),
                    X,
                    cv=folds,
                    params={"constraints": links},
                    error_score="raise",
                )
            assert np.isfinite(found["test_score"]).all()

    def test_routing_brings_the_links_to_the_splitter(self):
        X, y = (table[::2] for table in load_iris(return_X_y=True))
        links = Constraints.sample(y, 30, overlap=True, certainty=0.95, random_state=0)
        with sklearn.config_context(enable_metadata_routing=True):
            search = GridSearchCV(
                PPC(3, n_init=1, random_state=0), {"covariance_type": ["full", "diag"]}, error_score="raise"
            )
            search.set_params(cv=ConstraintKFold(3)).fit(X, constraints=links)
        assert np.isfinite(search.cv_results_["mean_test_score"]).all()

    def test_repr_and_parameters(self, links):
        folds = ConstraintKFold(4, constraints=links, shuffle=True)
        assert "n_splits=4" in repr(folds)
        assert folds.get_n_splits(np.zeros((20, 1))) == 4
        assert clone(folds, safe=False).n_splits == 4
